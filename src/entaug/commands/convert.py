"""``entaug convert``: change the format, layout or tag scheme."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from entaug.commands.command import Command, FileSummary
from entaug.commands.options import FORCE, JSON, LOSSES, READING, WRITING
from entaug.core.progress import Progress, no_progress
from entaug.formats.base import ReadReport
from entaug.formats.file_job import FileJob, FileOptions, locate_losses, read_sentences
from entaug.methods.statistics import CorpusStatistics
from entaug.metrics.tables import quantity


@dataclass(kw_only=True)
class ConvertSummary(FileSummary):
    """Result of `convert`."""

    counts: CorpusStatistics = field(default_factory=CorpusStatistics)

    def count_lines(self) -> Iterator[str]:
        yield f"{quantity(self.counts.sentences, 'sentence')} from {self.from_format}"


def convert(
    input: str | Path, output: str | Path = "-", *, progress: Progress = no_progress, **files: Unpack[FileOptions]
) -> ConvertSummary:
    r"""Change the format, layout or tag scheme of a file.

    Args:
        input: the file, or ``"-"`` for standard input.
        output: the new file, or ``"-"`` for standard output.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        InputError: the input is invalid.
        LossError: the new format cannot store some content of the input, and ``allow_loss`` does not include its kind.
        OutputError: the output exists or cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\n")
        >>> summary = convert(folder / "train.conll", folder / "train.jsonl")
        >>> (folder / "train.jsonl").read_text()
        '{"tokens":["Ada","sings"],"entities":[{"start":0,"end":1,"type":"PER"}]}\n'
    """
    job = FileJob(input, output, **files)
    job.check()
    summary = ConvertSummary(input=str(input), output=str(output))
    with job.open() as (source, target_file):
        summary.from_format, summary.to_format = source.dialect.describe(), target_file.dialect.describe()
        reading = ReadReport(repair=job.repair)
        lines: dict[str, int | None] = {}  # where each kind of content was first lost
        with target_file.writer(force=job.force) as writer:
            with locate_losses(source, reading):
                for sentence in read_sentences(source, reading, "converting", progress):
                    summary.counts.add(sentence)
                    for name in target_file.lost(sentence):
                        summary.lost[name] += 1
                        lines.setdefault(name, reading.line or None)
                    writer.write(sentence)
            reading.notes.update(job.settle_losses(summary.lost, target_file, lines))
    return summary.finish(reading)


COMMAND = Command(convert, {"output": {"flags": (), "nargs": "?"}}, (FORCE, LOSSES, JSON, READING, WRITING))
