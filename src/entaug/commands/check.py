"""``entaug check``: validate a corpus."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Unpack

from entaug.backends.language_check import LoadedModel, check_languages
from entaug.backends.protocols import ConstituencyParser
from entaug.backends.resolve import resolve
from entaug.commands.command import Command, FileSummary
from entaug.commands.options import COMPUTING, JSON, READING
from entaug.commands.output import label_lines, with_options
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError
from entaug.files.streams import name_original, rereadable_path
from entaug.formats.base import ReadReport
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions, read_sentences
from entaug.formats.files import open_file
from entaug.methods.statistics import CorpusStatistics, PhraseCounts
from entaug.metrics.tables import quantity

_WINDOW = 256  # sentences that are parsed together
_MAX_ERRORS = 20  # errors that are printed, and kinds of the others
_PARTICULAR = re.compile(r"^.*?(?::\d+)?: |'[^']*'?|\"[^\"]*\"?|\d+")  # what errors of one kind differ in


@dataclass(kw_only=True)
class CheckSummary(FileSummary):
    """Result of `check`."""

    counts: CorpusStatistics = field(default_factory=CorpusStatistics)
    errors: list[str] = field(default_factory=list)
    repeated: int = 0
    phrases: PhraseCounts | None = None

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """1 where there are errors."""
        return int(bool(self.errors))

    def count_lines(self) -> Iterator[str]:
        counts = self.counts
        if self.from_format:
            yield f"{self.input}: {self.from_format}"
        sentences, tokens = quantity(counts.sentences, "valid sentence"), quantity(counts.tokens, "token")
        mentions = quantity(counts.mentions.total(), "mention")
        kinds = f"{counts.nested:,} nested, {counts.discontinuous:,} discontinuous"
        yield f"{sentences}, {tokens}, {mentions} ({kinds})"
        if self.repeated:
            yield quantity(self.repeated, "duplicate sentence")
        yield from label_lines(counts.mentions)
        if self.phrases is not None:
            yield "phrases: all, and those that hold a mention"
            yield from label_lines(self.phrases.phrases, self.phrases.with_mention)
        yield quantity(len(self.errors), "error") if self.errors else "no errors"
        yield from _kind_lines(self.errors[_MAX_ERRORS:])


@takes_data("input")
def check(
    input: CorpusData,
    *,
    phrases: ConstituencyParser | str | None = None,
    on_error: Callable[[str], object] | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> CheckSummary:
    r"""Report every error of a corpus with its line number, and count sentences, tokens and mentions.

    The program prints the first 20 errors, and counts the others by kind; ``--json`` has all of them.

    Args:
        input: the file, or ``"-"`` for standard input.
        phrases: also count phrases by category, as this constituency parser, or the one of this name, gives them to the
            method ``cr``.
        on_error: called with the message of each error immediately.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        Counts and errors. Errors inside the file are not raised.

    Raises:
        InputError: the file cannot be read at all, or the parser does not serve its language.
        MissingModelError: the model of the parser is not on this machine.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "train.conll")
        >>> _ = file.write_text("Ada B-PER\nsings O\n\nBo I-PER\n")
        >>> summary = check(file)
        >>> summary.counts.sentences, len(summary.errors)
        (1, 1)
    """
    job = FileJob(input, **files)
    summary = CheckSummary(input=str(input))
    parser: ConstituencyParser | None = None
    models: list[LoadedModel] = []
    if phrases is not None:
        parser, summary.phrases = resolve("constituency_parser", phrases), PhraseCounts()
        models = [LoadedModel("constituency_parser", phrases, parser, "`phrases=NAME`")]
    with rereadable_path(input) as path:

        def add_error(error: InputError) -> None:
            name_original(error, path, input)
            summary.errors.append(str(error))
            if on_error:
                on_error(str(error))

        reading = ReadReport(repair=job.repair, on_fault=add_error)
        contents: set[int] = set()
        waiting: list[Sentence] = []  # sentences that are not parsed yet
        try:
            source = open_file(path, job.from_format, **job.read_options)
            summary.from_format = source.dialect.describe()
            sentences = check_languages(read_sentences(source, reading, "checking", progress), models, str(input))
            for sentence in sentences:
                summary.counts.add(sentence)
                contents.add(hash((sentence.tokens, sentence.mentions)))
                waiting.append(sentence)
                if len(waiting) == _WINDOW:
                    _count_phrases(waiting, parser, summary.phrases)
        except InputError as error:
            if error.line is None:
                raise
            add_error(error)
        _count_phrases(waiting, parser, summary.phrases)
        summary.repeated = summary.counts.sentences - len(contents)
    return summary.finish(reading)


def _kind_lines(errors: list[str]) -> Iterator[str]:
    """The number of the errors that are not printed, and of each kind of them, with one of it."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for error in errors:
        kinds[_PARTICULAR.sub("", error)].append(error)
    if errors:
        yield f"{len(errors):,} of them, after the first {_MAX_ERRORS}, by kind (all: --json, in Python `errors`):"
    ordered = sorted(kinds.values(), key=len, reverse=True)
    yield from (f"  {len(alike):>6,} such as {alike[0]}" for alike in ordered[:_MAX_ERRORS])
    if rest := sum(map(len, ordered[_MAX_ERRORS:])):
        yield f"  {rest:>6,} of {quantity(len(ordered) - _MAX_ERRORS, 'other kind')}"


def _first_only(show: Callable[[str], object]) -> Callable[[str], object]:
    """Show no more errors than are printed."""
    numbers = itertools.count()
    return lambda error: next(numbers) < _MAX_ERRORS and show(error)


def _count_phrases(waiting: list[Sentence], parser: ConstituencyParser | None, counts: PhraseCounts | None) -> None:
    """Count the phrases of the waiting sentences, which are then no longer waiting."""
    if waiting and parser is not None and counts is not None:
        for sentence, phrases in zip(waiting, parser.parse([s.tokens for s in waiting]), strict=True):
            counts.add(sentence, phrases)
    waiting.clear()


COMMAND = Command(
    check,
    {"phrases": {"nargs": "?", "const": "projected", "metavar": "PARSER"}},
    (JSON, READING, COMPUTING),
    values=lambda args: {} if args.json else {"on_error": _first_only(lambda error: print(with_options(error)))},
)
