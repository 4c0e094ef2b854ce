"""``entaug subset``: draw low-resource subsets of a corpus."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from entaug.commands.command import Command, FileSummary, split_names
from entaug.commands.options import FORCE, JSON, READING
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import ParameterError
from entaug.files.atomic import make_folder
from entaug.files.streams import STDIN
from entaug.formats.base import ReadReport
from entaug.formats.file_job import FileJob, FileOptions, check_output, read_sentences
from entaug.methods.statistics import CorpusStatistics
from entaug.metrics.tables import quantity
from entaug.study.subsets import draw, rest


@dataclass
class SubsetFile:
    """A file that `subset` wrote."""

    path: str
    counts: CorpusStatistics


@dataclass(kw_only=True)
class SubsetSummary(FileSummary):
    """Result of `subset`."""

    how: str
    seed: int
    counts: CorpusStatistics = field(default_factory=CorpusStatistics)
    files: list[SubsetFile] = field(default_factory=list)

    def count_lines(self) -> Iterator[str]:
        for file in self.files:
            counts = file.counts
            mentions = f"{quantity(counts.mentions.total(), 'mention')} of {quantity(len(counts.mentions), 'type')}"
            yield f"wrote {file.path}: {quantity(counts.sentences, 'sentence')}, {mentions}"


def subset(
    input: str | Path,
    folder: str | Path,
    sizes: Sequence[float],
    *,
    how: str = "progressive",
    seed: int = 0,
    with_rest: bool = False,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> SubsetSummary:
    r"""Write subsets of a file in its format and layout: ``FOLDER/train.100.conll`` of ``train.conll``.

    Args:
        input: the file, or ``"-"`` for standard input.
        folder: the folder for the subsets; created where it does not exist.
        sizes: the numbers of sentences, such as 100,200; for ``fraction`` also 0.1; see `entaug.study.subsets.draw`.
        how: the sampling strategy: progressive, first, fraction or stratified; see `entaug.study.subsets.STRATEGIES`.
        seed: the random seed.
        with_rest: also write the sentences that are in no subset, as ``FOLDER/train.rest.conll``.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        InputError: the input is invalid, or smaller than a subset.
        OutputError: a file exists or cannot be written; then no subset is written.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\n\n" * 8)
        >>> summary = subset(folder / "train.conll", folder, [2, 4])
        >>> [(pathlib.Path(file.path).name, file.counts.sentences) for file in summary.files]
        [('train.2.conll', 2), ('train.4.conll', 4)]
    """
    files["allow_loss"] = ["all"]
    job = FileJob(input, **files)
    summary = SubsetSummary(input=str(input), how=how, seed=seed)
    with job.open_input() as source:
        path = source.path
        reading = ReadReport(repair=job.repair)
        corpus = Corpus(read_sentences(source, reading, progress=progress))
        parts: dict[Any, list[Sentence]] = {**draw(how, corpus, sizes, seed)}
        if with_rest:
            parts["rest"] = rest(corpus, *parts.values())
        summary.from_format, summary.counts = source.dialect.describe(), CorpusStatistics.of(corpus)
        for sentence in {id(sentence): sentence for part in parts.values() for sentence in part}.values():
            summary.lost.update(source.lost(sentence))
        reading.notes.update(job.settle_losses(summary.lost, source))
        name = path.name.removesuffix(".gz")
        suffix = Path(name).suffix + path.name[len(name) :]
        if str(input) == STDIN:  # standard input has no extension, but the subsets need one
            suffix = source.format.extensions[0]
        make_folder(folder)
        targets = {part: replace(source, path=Path(folder, f"{Path(name).stem}.{part}{suffix}")) for part in parts}
        for target_file in targets.values():
            check_output(target_file.path, input, force=job.force, folders=True)
            target_file.check_target(force=job.force)
        with contextlib.ExitStack() as stack:  # move all files into place together
            for part, sentences in parts.items():
                writer = stack.enter_context(targets[part].writer(force=job.force))
                for sentence in sentences:
                    writer.write(sentence)
                summary.files.append(SubsetFile(str(targets[part].path), CorpusStatistics.of(sentences)))
    return summary.finish(reading)


def _size(text: str) -> float:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        remedy = "give numbers separated by commas: 100,200"
        raise ParameterError(f"--sizes: {text!r} is not a number", remedy=remedy) from None


COMMAND = Command(
    subset,
    {
        "folder": {"flags": ("-o", "--output"), "required": True, "metavar": "FOLDER"},
        "sizes": {"flags": ("--sizes",), "required": True, "nargs": None, "action": "store"},
        "with_rest": {"flags": ("--rest",)},
    },
    (FORCE, JSON, READING),
    values=lambda args: {"sizes": [*map(_size, split_names(args.sizes))]},
)
