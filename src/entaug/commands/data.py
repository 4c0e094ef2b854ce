"""``entaug data``: list the corpora of the papers, and prepare one from a local copy or the hub."""

from __future__ import annotations

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
        """Return them for the user."""
        if len(self.corpora) > 1:
            for corpus in self.corpora:
                yield f"{corpus.name:<20} {corpus.title} ({', '.join(corpus.papers)})"
            return
        [corpus] = self.corpora
        yield f"{corpus.name}: {corpus.title}; in the tables of {', '.join(corpus.papers)}"
        yield f"  address   {corpus.address}"
        yield f"  licence   {corpus.licence}"
        if corpus.sentences:
            parts = zip(PARTS, corpus.sentences, strict=False)
            yield f"  sentences {', '.join(f'{part} {number:,}' for part, number in parts)}"
        if corpus.split:
            yield f"  split     {corpus.split}"
        if files := [" or ".join(getattr(corpus, part)) for part in PARTS if getattr(corpus, part)]:
            yield f"  files     {', '.join(files)}"
        yield f"  plans     read benchmarks/papers/data/{corpus.folder}"
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
    """List the corpora of the papers, describe one, or write its parts as the plans of the papers read them.

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
)
