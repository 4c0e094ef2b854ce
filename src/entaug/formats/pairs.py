"""Files of augmented sentences that are read, judged and written again: what filtering and relabelling share."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from entaug.core.data import Sentence
from entaug.core.progress import Progress
from entaug.core.provenance import Provenance
from entaug.errors import InputError
from entaug.formats import CorpusFile, read_each, target
from entaug.formats.augmented import AugmentedPair, pair_with_sources
from entaug.formats.base import ReadReport
from entaug.formats.file_job import Options, open_corpora, read_sentences, settle_losses

__all__ = ["PairedFile", "open_pairs", "write_kept"]


@dataclass
class PairedFile:
    """A file of augmented sentences, read."""

    source: CorpusFile
    to: CorpusFile
    reading: ReadReport
    sentences: list[Sentence]
    pairs: list[AugmentedPair | None]
    gold: list[Sentence]


@contextlib.contextmanager
def open_pairs(
    input: str | Path,
    output: str | Path,
    gold: str | Path | None,
    *,
    force: bool,
    repair: bool,
    from_format: str | None,
    to_format: str | None,
    read_options: Options,
    write_options: Options,
    progress: Progress,
) -> Iterator[PairedFile]:
    """Read a file of augmented sentences and pair them with their sources; open the output."""
    with open_corpora(
        input,
        output,
        force=force,
        from_format=from_format,
        to_format=to_format,
        read_options=read_options,
        write_options=write_options,
    ) as (source, to):
        reading = ReadReport(repair=repair)
        sentences = list(read_sentences(source, reading, progress=progress))
        gold_sentences = None
        if gold is not None:
            options = read_options or {}
            gold_sentences = list(read_each([gold], from_format, repair=repair, beside=True, **options)[0])
        pairs = pair_with_sources(sentences, gold_sentences)
        if not any(pairs):
            raise InputError(
                "holds no augmented sentence" + (" that says so" if gold_sentences is None else ""),
                path=str(input),
                remedy="name the file that was augmented with --gold",
            )
        if gold_sentences is None:
            gold_sentences = [s for s, pair in zip(sentences, pairs, strict=True) if pair is None]
        yield PairedFile(source, to, reading, sentences, pairs, gold_sentences)


def write_kept(
    file: PairedFile,
    sentences: Sequence[Sentence],
    rejections: Sequence[str | None],
    rejected_path: Path | None,
    lose: Collection[str],
    *,
    force: bool,
) -> None:
    """Write the kept and the rejected sentences; both files are moved into place together."""
    to = file.to
    kept = [sentence for sentence, reason in zip(sentences, rejections, strict=True) if reason is None]
    lost = Counter(name for sentence in kept for name in to.lost(sentence))
    file.reading.notes.update(settle_losses(lost, lose, to))
    with contextlib.ExitStack() as stack:
        if rejected_path is not None:
            rejected = stack.enter_context(target(rejected_path, "jsonl").writer())
            for sentence, reason in zip(sentences, rejections, strict=True):
                if reason is not None:
                    provenance = replace(sentence.provenance or Provenance(), rejected=reason)
                    rejected.write(sentence.with_(provenance=provenance))
        writer = stack.enter_context(to.writer(force=force))
        for sentence in kept:
            writer.write(sentence)
