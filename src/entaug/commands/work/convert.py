"""The workflow behind ``entaug convert``: write a corpus in another format or layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from entaug.backends.processes import number_of_processes
from entaug.core.progress import Progress, no_progress
from entaug.files.streams import is_special, is_stdout
from entaug.formats.base import ReadReport
from entaug.formats.file_job import (
    Options,
    check_loss_kinds,
    check_output,
    locate_losses,
    open_corpora,
    read_sentences,
    settle_losses,
)
from entaug.methods.statistics import CorpusStatistics
from entaug.methods.surveys import Sharing, SurveyJob, in_parts_or_whole

__all__ = ["ConvertSummary", "convert_file"]


@dataclass
class ConvertSummary:
    """Result of `convert_file`."""

    input: str
    output: str
    from_format: str
    to_format: str
    counts: CorpusStatistics = field(default_factory=CorpusStatistics)
    lost: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def convert_file(
    input: str | Path,
    output: str | Path,
    *,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: Options = None,
    write_options: Options = None,
    lose: Collection[str] = (),
    jobs: int | None = 1,
    progress: Progress = no_progress,
) -> ConvertSummary:
    r"""Write a file in another format or layout.

    Args:
        input: the file, or ``"-"``.
        output: the new file, or ``"-"``.
        force: replace an output that exists.
        repair: repair invalid tag sequences.
        from_format: the format of the input; None to detect it.
        to_format: the format of the output; None for the format of its extension.
        read_options: options of the input's format.
        write_options: options of the output's format.
        lose: kinds of content to drop if the new format cannot store them: ``"id"``, ``"text"`` (the spaces between
            tokens), ``"column"``, ``"field"`` ..., as `LossError` names them, or ``"all"``.
        jobs: the number of processes, see `entaug.augment_file`; standard output is written by one.
        progress: the progress callback.

    Returns:
        A summary with counts.

    Raises:
        InputError: the input is invalid.
        LossError: the new format cannot store some content of the input, and `lose` does not include its kind.
        OutputError: the output exists or cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\n")
        >>> summary = convert_file(folder / "train.conll", folder / "train.jsonl")
        >>> (folder / "train.jsonl").read_text()
        '{"tokens":["Ada","sings"],"entities":[{"start":0,"end":1,"type":"PER"}]}\n'
    """
    check_loss_kinds(lose)
    check_output(output, input, force=force, folders=True)
    with open_corpora(
        input,
        output,
        force=force,
        from_format=from_format,
        to_format=to_format,
        read_options=read_options,
        write_options=write_options,
    ) as (source, to):

        def attempt(jobs: int) -> ConvertSummary:
            summary = ConvertSummary(str(input), str(output), source.dialect.describe(), to.dialect.describe())
            reading = ReadReport(repair=repair)
            with Sharing.start(jobs, source) as sharing, to.writer(force=force) as writer:
                if sharing is None:
                    with locate_losses(source, reading):
                        for sentence in read_sentences(source, reading, "converting", progress):
                            summary.counts.add(sentence)
                            summary.lost.update(to.lost(sentence))
                            writer.write(sentence)
                else:
                    job = SurveyJob(source, to, repair, with_gold=True, fingerprints="none")
                    for survey in sharing.surveys(job, reading, "converting", progress):
                        summary.counts.update(survey.before)
                        summary.lost.update(survey.lost)
                        writer.write_text(survey.text, survey.before.sentences)
                reading.notes.update(settle_losses(summary.lost, lose, to))
            summary.repaired, summary.notes = reading.repaired, reading.notes
            return summary

        is_once = is_stdout(output) or is_special(Path(output))  # what was written there cannot be taken back
        return in_parts_or_whole(attempt, number_of_processes(1 if is_once else jobs, source.size))
