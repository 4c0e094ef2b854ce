"""What the command line does, as functions that take and return data.

Nothing here prints. Results appear at their target only when they are complete; an interrupted `augment_file` leaves
a partial file beside it, and the same call goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from entaug._version import __version__
from entaug.augmenters.base import Augmenter
from entaug.augmenters.contracts import REVIEWED, Accepted, RunStatistics
from entaug.augmenters.run import Run
from entaug.data import PLACEHOLDER, Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_file
from entaug.files.sinks import Counts, PartialSink, Sink, StreamSink
from entaug.files.streams import is_special, name_original, open_bytes, rereadable_path
from entaug.formats import OpenedFile, find, open_file, target
from entaug.formats.base import Reading
from entaug.formats.buffered import BufferedFormat
from entaug.report.review import Review, read_review
from entaug.workflows.common import (
    STDOUT,
    Progress,
    aside_path,
    check_apart,
    check_kind,
    check_losses,
    check_output,
    dumped,
    format_name,
    guess,
    refuse_loss,
    said,
    silent,
    watched,
)

__all__ = ["AugmentSummary", "CheckSummary", "ConvertSummary", "augment_file", "check_file", "convert_file"]


@dataclass
class AugmentSummary:
    """What `augment_file` did."""

    method: str
    signature: str
    input: str
    output: str
    from_format: str
    format: str
    before: Counts = field(default_factory=Counts)
    after: Counts = field(default_factory=Counts)
    tally: RunStatistics = field(default_factory=RunStatistics)
    lost: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    resumed_at: int = 0
    seconds: float = 0.0


@dataclass
class CheckSummary:
    """What `check_file` found."""

    input: str
    format: str = ""
    counts: Counts = field(default_factory=Counts)
    faults: list[str] = field(default_factory=list)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    repeated: int = 0


@dataclass
class ConvertSummary:
    """What `convert_file` did."""

    input: str
    output: str
    from_format: str
    to_format: str
    counts: Counts = field(default_factory=Counts)
    lost: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


# ------------------------------------------------------------------------------------------------------------- augment


def augment_file(
    input: str | Path,
    output: str | Path,
    augmenter: Augmenter,
    *,
    only_new: bool = False,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    write_options: dict[str, Any] | None = None,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    progress: Progress = silent,
) -> AugmentSummary:
    """Augment a file.

    Args:
        input: the gold training file, or ``"-"`` for standard input.
        output: where gold and augmented sentences go, or ``"-"`` for standard output.
        augmenter: the method; it is fitted on the input.
        only_new: write the augmented sentences alone.
        force: replace an output that exists, and drop what another interrupted run left.
        repair: mend broken tag sequences of the input.
        from_format: the input's format, found by default.
        to_format: the output's format, by default that of its extension, else the input's.
        read_options: layout of the input given by hand.
        write_options: layout of the output given by hand.
        rejected: where drafts that filters refused go, as JSON lines that say why; a file.
        review: what was decided in a report, see `entaug.report.review`: what was rejected there is left out.
        progress: called now and then.

    Returns:
        What was done.

    Raises:
        InputError: the input is faulty. Nothing is written then.
        OutputError: the output exists or cannot be written.
        KeyboardInterrupt: as it came; what was done is kept and the same call goes on from there.
    """
    begun = time.monotonic()
    augmenter.load()
    check_output(output, input, force=force, folders=True)
    aside = aside_path(rejected, input, output, force=force)
    check_apart([output, rejected], [review])
    decided = read_review(review, augmenter.info.name) if review is not None else Review()
    with rereadable_path(input) as kept, contextlib.ExitStack() as stack:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            to = target(format_name(output), to_format, source, **(write_options or {}))
            check_kind(output, to.format, force=force)
            finish = None
            if isinstance(to.format, BufferedFormat):
                finish = lambda draft, _output: to.finish(draft, force=force)  # noqa: E731
            if str(output) in STDOUT or is_special(Path(output)):
                standard = str(output) in STDOUT
                stream = sys.stdout.buffer if standard else stack.enter_context(atomic_file(Path(output)))
                sink: Sink = StreamSink(stream, to.heading, stack.enter_context(atomic_file(aside)) if aside else None)
            else:
                job = _job_key(
                    kept,
                    augmenter,
                    only_new,
                    repair,
                    source,
                    to,
                    bool(aside),
                    sorted(map(repr, decided.decisions.items())),
                )
                sink = PartialSink(Path(output), job, force=force, finish=finish, heading=to.heading, aside=aside)
            summary = AugmentSummary(
                augmenter.info.name,
                augmenter.signature,
                str(input),
                str(output),
                source.dialect.describe(),
                to.dialect.describe(),
                resumed_at=sink.sources_done,
            )
            with sink:
                _augment(source, to, sink, augmenter, summary, only_new, repair, progress, decided, bool(aside))
        finally:
            pass
    summary.seconds = time.monotonic() - begun
    return summary


def _augment(
    source: OpenedFile,
    to: OpenedFile,
    sink: Sink,
    augmenter: Augmenter,
    summary: AugmentSummary,
    only_new: bool,
    repair: bool,
    progress: Progress,
    decided: Review,
    tell_refused: bool,
) -> None:
    reading = Reading(repair=repair)
    gold_wanted = not only_new and not sink.gold_done

    def first_pass() -> Iterator[Sentence]:
        sentences = watched(source.sentences(reading), "reading", progress, guess(source, progress))
        written = _written(sentences, source, reading, to, sink) if gold_wanted and sink.can_undo else sentences
        for sentence in written:
            summary.before.add(sentence)
            summary.lost.update(to.format.lost(sentence, to.dialect))
            yield sentence

    augmenter.progress = lambda done, total, loss: progress(f"learning, loss {loss:.2f}", done, total)
    augmenter.fit(_Named(first_pass(), str(source.path)))
    summary.repaired = reading.repaired
    summary.notes += [*augmenter.notes(), *_other_tags(source), *said(reading.notes)]
    if gold_wanted and not sink.can_undo:
        again = Reading(repair=repair)
        for _ in _written(source.sentences(again), source, again, to, sink):
            pass
    sink.finish_gold()
    filled: set[str] = set()
    run = augmenter.run(target=_Target(to), excluded=decided.rejects if decided.decisions else None)
    summary.tally = run.statistics
    sentences = source.sentences(Reading(repair=repair))
    if sink.sources_done:
        for _ in range(sink.sources_done):
            run.skip(next(sentences))
        for made in to.format.read(sink.path, to.dialect, Reading(), sink.gold_end, sink.offset):
            run.remember(made)
        sink.restore(run.statistics, summary.after)
    else:
        for label, count in summary.before.mentions.items():
            summary.after.mentions[label] = 0 if only_new else count
        if not only_new:
            summary.after = Counts(**{**vars(summary.before), "mentions": Counter(summary.before.mentions)})
    total = summary.before.sentences
    _pour(run, sentences, filled, sink, summary, total, progress, tell_refused)
    if decided.others and not decided.decisions:
        summary.notes.append(
            f"the review decides about other methods alone, and leaves all of {summary.method} as it is"
        )
    if (unknown := len(decided.rejected) - run.statistics.missing[REVIEWED.reason]) > 0:
        summary.notes.append(
            f"{unknown:,} of {len(decided.rejected):,} sentences that the review rejects were not made here: "
            "run it with the same file, options, seed and version"
        )
    summary.notes += augmenter.advice(run.statistics)
    if filled:
        summary.notes.append(f"new words have {PLACEHOLDER!r} in other columns ({', '.join(sorted(filled))})")


def _other_tags(source: OpenedFile) -> list[str]:
    """What a user should know of columns that look like tags and are not the one that is kept right."""
    return [
        f"column {column} looks like tags too: its values go with their words and may be no valid tags in new "
        "sentences; only the tag column is kept right (another one: --tag-column)"
        for column in getattr(source.dialect, "also_tags", ())
    ]


class _Target:
    """An output format as a run sees it."""

    def __init__(self, to: OpenedFile) -> None:
        self._format, self._dialect = to.format, to.dialect

    def carried(self, sentence: Sentence) -> Sentence:
        return self._format.carried(sentence, self._dialect)

    def encode(self, sentence: Sentence) -> str:
        return self._format.dump(sentence, self._dialect)


def _written(
    sentences: Iterable[Sentence], source: OpenedFile, reading: Reading, to: OpenedFile, sink: Sink
) -> Iterator[Sentence]:
    """The sentences, each written on its way."""
    dump, dialect = to.format.dump, to.dialect
    lines: list[str] = []
    for sentence in sentences:
        lines.append(dumped(sentence, dump, dialect, source, reading))
        if len(lines) >= 256:
            sink.write(lines)
            lines = []
        yield sentence
    sink.write(lines)


def _pour(
    run: Run,
    sentences: Iterator[Sentence],
    filled: set[str],
    sink: Sink,
    summary: AugmentSummary,
    total: int,
    progress: Progress,
    tell_refused: bool,
) -> None:
    """Write the accepted sentences of a run and count them; note in which columns new words have no value."""
    as_json = find("jsonl")
    lines: list[str] = []
    refused: list[str] = []
    done = run.statistics.sources
    for done, (source, outcomes) in enumerate(run.outcomes(sentences), start=run.statistics.sources + 1):
        for outcome in outcomes:
            made = outcome.sentence
            if isinstance(outcome, Accepted):
                lines.append(outcome.encoded or "")
                summary.after.add(outcome.sentence)
                filled.update(
                    name
                    for name, values in (outcome.sentence.columns or {}).items()
                    if name not in filled and PLACEHOLDER in values and PLACEHOLDER not in source.columns[name]
                )
            elif tell_refused and made is not None:
                refused.append(as_json.dump(made, as_json.dialect()))
        if not done % 64:
            sink.write(lines)
            lines.clear()
            sink.write_aside(refused)
            refused.clear()
            sink.reached(done, run.statistics, summary.after)
            if not done % 256:
                progress("augmenting", done, total)
    sink.write(lines)
    sink.write_aside(refused)
    progress("augmenting", done, total)


class _Named(Iterable[Sentence]):
    """Sentences that say where they come from."""

    def __init__(self, sentences: Iterator[Sentence], source: str) -> None:
        self._sentences = sentences
        self.source = source

    def __iter__(self) -> Iterator[Sentence]:
        return self._sentences


def _job_key(
    kept: Path, augmenter: Augmenter, only_new: bool, repair: bool, source: OpenedFile, to: OpenedFile, *more: Any
) -> str:
    """What must be equal for a run to go on where another stopped."""
    content = ""
    for file in source.format.files(kept) if isinstance(source.format, BufferedFormat) else [kept]:
        with open_bytes(file) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        content += f"{file.relative_to(kept) if kept.is_dir() else ''}{digest}"
    parts = (
        __version__,
        augmenter.signature,
        only_new,
        repair,
        source.dialect,
        to.format.name,
        to.dialect,
        content,
        *more,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------ check, convert


def check_file(
    input: str | Path,
    *,
    repair: bool = False,
    from_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    on_fault: Callable[[str], None] | None = None,
    progress: Progress = silent,
) -> CheckSummary:
    """Read a file through and name every fault.

    Args:
        input: the file, or ``"-"``.
        repair: count what ``--repair`` would mend instead of calling it a fault.
        from_format: its format, found by default.
        read_options: layout given by hand.
        on_fault: called with each fault as it is found.
        progress: called now and then.

    Returns:
        Counts and faults; never raises for a fault inside the file.

    Raises:
        InputError: the file cannot be read at all.
    """
    summary = CheckSummary(str(input))
    with rereadable_path(input) as kept:

        def note(error: InputError) -> None:
            name_original(error, kept, input)
            summary.faults.append(str(error))
            if on_fault:
                on_fault(str(error))

        reading = Reading(repair=repair, on_fault=note)
        seen: set[int] = set()
        try:
            opened = open_file(kept, from_format, **(read_options or {}))
            summary.format = opened.dialect.describe()
            add = summary.counts.add
            for sentence in watched(opened.sentences(reading), "checking", progress, guess(opened, progress)):
                add(sentence)
                seen.add(hash((sentence.tokens, sentence.mentions)))
        except InputError as error:
            if error.line is None:
                name_original(error, kept, input)
                raise
            note(error)
        summary.repaired, summary.notes = reading.repaired, reading.notes
        summary.repeated = summary.counts.sentences - len(seen)
    return summary


def convert_file(
    input: str | Path,
    output: str | Path,
    *,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    write_options: dict[str, Any] | None = None,
    lose: Collection[str] = (),
    progress: Progress = silent,
) -> ConvertSummary:
    """Write a file in another format or layout.

    Args:
        input: the file, or ``"-"``.
        output: the new file, or ``"-"``.
        force: replace an output that exists.
        repair: mend broken tag sequences.
        from_format: the input's format, found by default.
        to_format: the output's format, by default that of its extension.
        read_options: layout of the input given by hand.
        write_options: layout of the output given by hand.
        lose: kinds of what may be left out where the new format has no place for it: ``"id"``, ``"text"`` (the spaces
            between tokens), ``"column"``, ``"field"`` ..., as `LossError` names them, or ``"all"``.
        progress: called now and then.

    Raises:
        InputError: the input is faulty.
        LossError: the new format cannot carry what the input holds, and `lose` does not say to leave it out.
        OutputError: the output exists or cannot be written.
    """
    check_losses(lose)
    check_output(output, input, force=force, folders=True)
    with rereadable_path(input) as kept, contextlib.ExitStack() as stack:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            to = target(format_name(output), to_format, source, **(write_options or {}))
            summary = ConvertSummary(str(input), str(output), source.dialect.describe(), to.dialect.describe())
            reading = Reading(repair=repair)
            check_kind(output, to.format, force=force)
            standard = str(output) in STDOUT
            if (
                isinstance(to.format, BufferedFormat) or standard
            ):  # nothing is said before it is known that nothing is lost
                held = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="entaug-")), "lines.jsonl")
                out: IO[bytes] = stack.enter_context(held.open("wb"))
            else:
                out = sys.stdout.buffer if str(output) in STDOUT else stack.enter_context(atomic_file(Path(output)))
            sink = StreamSink(out, to.heading)
            dump, dialect, lost = to.format.dump, to.dialect, to.format.lost
            lines = []
            for sentence in watched(source.sentences(reading), "converting", progress, guess(source, progress)):
                summary.counts.add(sentence)
                summary.lost.update(lost(sentence, dialect))
                lines.append(dumped(sentence, dump, dialect, source, reading))
                if len(lines) >= 256:
                    sink.write(lines)
                    lines = []
            sink.write(lines)
            out.flush()
            refuse_loss(summary.lost, lose, to)
            if isinstance(to.format, BufferedFormat):
                to.finish(held, force=force)
            elif standard:
                with held.open("rb") as lines_held:
                    shutil.copyfileobj(lines_held, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            summary.repaired = reading.repaired
            summary.notes = reading.notes
        finally:
            pass
    return summary
