"""``entaug data``: list the corpora of the papers and of the atlas, and prepare one from a local copy or the hub."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from entaug.commands.command import Command, Summary
from entaug.commands.options import JSON
from entaug.errors import ParameterError
from entaug.study.corpora import PARTS, PaperCorpus, find_corpus, paper_corpora, prepare


@dataclass(kw_only=True)
class DataSummary(Summary):
    """The corpora that there are, or what is known of one and what was written."""

    corpora: list[PaperCorpus]
    output: str = ""
    sentences: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        if len(self.corpora) > 1:
            for corpus in self.corpora:
                yield f"{corpus.name:<20} {corpus.title} ({', '.join(corpus.papers)})"
                yield f"{'':<20} {corpus.licence}; {corpus.address}"
            return
        [corpus] = self.corpora
        yield f"{corpus.name}: {corpus.title}; in the tables of {', '.join(corpus.papers)}"
        files = {part: " or ".join(names) for part in PARTS if (names := getattr(corpus, part))}
        parts = zip(PARTS, corpus.sentences, strict=False)
        sentences = ", ".join(f"{part} {number:,}" for part, number in parts if number)
        shares = f"{':'.join(map(str, corpus.shares))}, {'in order' if corpus.ordered else 'at random without lists'}"
        about = {
            "address": corpus.address,
            "repository": corpus.repository,
            "licence": corpus.licence,
            "sentences": f"{sentences} ({corpus.counted})" if sentences else "",
            "release": corpus.release + f" (reader {corpus.reader})" * bool(corpus.release and corpus.reader),
            "files": ("or of W2NER: " if "train.json" in files.values() else "") + ", ".join(files.values()),
            "lists": ", ".join(corpus.lists),
            "shares": shares if corpus.shares else "",
            "split": corpus.split,
            "plans": f"read benchmarks/papers/data/{corpus.folder}" if corpus.folder else "",
            **{f"SHA-256 {part}": known for part, known in zip(files, corpus.sums, strict=False)},
        }
        yield from (f"  {name:<13} {value}" for name, value in about.items() if value)
        yield from (f"note: {note}" for note in self.notes)
        if self.output:
            counts = ", ".join(f"{part} {number:,}" for part, number in self.sentences.items())
            yield f"wrote {self.output}: {counts} sentences"


def data(
    name: str | None = None,
    output: str | Path | None = None,
    *,
    source: str | Path | None = None,
    lists: str | Path | None = None,
    hub: str | None = None,
    seed: int = 0,
) -> DataSummary:
    """List the corpora of the papers and of the atlas, describe one, or write its parts as the plans read them.

    Nothing is fetched unless `hub` is given.

    Args:
        name: the name of a corpus; None to list all.
        output: the new folder to write, with a file for each part and `SOURCE.md`.
        source: the file or the folder of the corpus as it was distributed.
        lists: a folder with lists of documents (`train.txt`, `dev.txt`, `test.txt`), where these divide the corpus.
        hub: fetch the dataset of this name from the Hugging Face hub, or read the local folder of one; alone or
            `"known"`: the one that is known for the corpus.
        seed: of the division into parts where there are no lists.

    Returns:
        The corpora, or what was written.

    Raises:
        UnknownNameError: there is no such corpus.
        InputError: the source lacks a file, or one is invalid.
        ParameterError: no source is given, or two, or no output for one, or lists where each part has a file.
    """
    if output is None and (source is not None or hub is not None or lists is not None):
        raise ParameterError("no output is named", remedy="name the new folder with -o")
    if name is None:
        if output is not None:
            raise ParameterError("no corpus is named", remedy="entaug data lists them")
        return DataSummary(corpora=[*paper_corpora().values()])
    corpus = find_corpus(name)
    if output is None:
        return DataSummary(corpora=[corpus])
    if hub == "known" and not corpus.hub:
        raise ParameterError(f"no dataset of the hub is known for {name}", remedy="name one, or give --source")
    done = prepare(
        corpus,
        Path(output),
        source=None if source is None else Path(source),
        lists=None if lists is None else Path(lists),
        hub=corpus.hub if hub == "known" else hub,
        seed=seed,
    )
    return DataSummary(corpora=[corpus], output=str(output), sentences=done.counts, notes=done.notes)


def _show(_: argparse.Namespace, summary: DataSummary) -> Iterator[str]:
    if summary.output:
        yield from summary.lines()
    else:  # what was asked for
        sys.stdout.writelines(f"{line}\n" for line in summary.lines())


COMMAND = Command(
    data,
    {
        "name": {"flags": (), "nargs": "?"},
        "output": {"metavar": "FOLDER", "default": None},
        "source": {"metavar": "PATH"},
        "lists": {"metavar": "FOLDER"},
        "hub": {"nargs": "?", "const": "known", "metavar": "NAME"},
    },
    (JSON,),
    show=_show,
)
