"""The workflow behind ``entaug check``: validate a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from entaug.errors import InputError
from entaug.files.streams import name_original, rereadable_path
from entaug.formats import open_file
from entaug.formats.base import Reading
from entaug.progress import Progress, no_progress
from entaug.workflows.common import Options, read_sentences
from entaug.workflows.statistics import CorpusStatistics

__all__ = ["CheckSummary", "check_file"]


@dataclass
class CheckSummary:
    """Result of `check_file`.

    Args:
        input: the file.
        format: description of its format and layout.
        counts: counts of the valid sentences.
        errors: the message of each error.
        repaired: counts of repairs by kind.
        notes: counts of notes on the input.
        repeated: the number of sentences that duplicate an earlier sentence.
    """

    input: str
    format: str = ""
    counts: CorpusStatistics = field(default_factory=CorpusStatistics)
    errors: list[str] = field(default_factory=list)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    repeated: int = 0


def check_file(
    input: str | Path,
    *,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Options = None,
    on_error: Callable[[str], object] | None = None,
    progress: Progress = no_progress,
) -> CheckSummary:
    r"""Read a file and report every error in it.

    Args:
        input: the file, or ``"-"``.
        repair: count what ``--repair`` would repair instead of reporting it as an error.
        from_format: its format; None to detect it.
        read_options: options of its format.
        on_error: called with the message of each error immediately.
        progress: the progress callback.

    Returns:
        Counts and errors. Errors inside the file are not raised.

    Raises:
        InputError: the file cannot be read at all.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "train.conll")
        >>> _ = file.write_text("Ada B-PER\nsings O\n\nBo I-PER\n")
        >>> summary = check_file(file)
        >>> summary.counts.sentences, len(summary.errors)
        (1, 1)
    """
    summary = CheckSummary(str(input))
    with rereadable_path(input) as path:

        def add_error(error: InputError) -> None:
            name_original(error, path, input)
            summary.errors.append(str(error))
            if on_error:
                on_error(str(error))

        reading = Reading(repair=repair, on_fault=add_error)
        contents: set[int] = set()
        try:
            source = open_file(path, from_format, **(read_options or {}))
            summary.format = source.dialect.describe()
            for sentence in read_sentences(source, reading, "checking", progress):
                summary.counts.add(sentence)
                contents.add(hash((sentence.tokens, sentence.mentions)))
        except InputError as error:
            if error.line is None:
                raise
            add_error(error)
        summary.repaired, summary.notes = reading.repaired, reading.notes
        summary.repeated = summary.counts.sentences - len(contents)
    return summary
