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
from functools import partial
from pathlib import Path
from typing import IO, Any

from entaug._version import __version__
from entaug.augmenters.base import Augmenter, Run, Tally
from entaug.data import FILL, Sentence
from entaug.errors import EntaugError, InputError, LossError, OutputError, ParameterError
from entaug.formats import Opened, named, open_file, target
from entaug.formats.base import Format, Reading
from entaug.formats.files import STDIN, atomic, followed, is_special, open_bytes, output_error, rereadable
from entaug.formats.whole import Whole, check_folder, finish_whole
from entaug.sinks import Counts, PartialSink, Sink, StreamSink, left_by

__all__ = ["AugmentSummary", "CheckSummary", "ConvertSummary", "augment_file", "check_file", "convert_file"]

STDOUT = ("-", "/dev/stdout")
_BEGINNING = 1 << 18  # bytes looked at to guess the length of a file

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how many sentences of it are done, and of how many if known."""


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
    tally: Tally = field(default_factory=Tally)
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


LOSSES = ("id", "text", "column", "field", "tokens", "trees")
"""Kinds of what a format may have no place for; each is told as one of these words and what it is."""
_SAME_KIND = {"ids": "id", "fields": "field", "provenance": "field", "columns": "column"}


def _check_losses(lose: Collection[str]) -> None:
    """Raise where something is to be left out that is no kind of loss."""
    for kind in lose:
        if kind not in (*LOSSES, "all"):
            raise ParameterError(
                f"nothing of the kind {kind!r} can be lost", remedy=f"there are: {', '.join(LOSSES)}; or all"
            )


def _refuse_loss(lost: Counter[str], lose: Collection[str], to: Opened) -> None:
    """Raise where something would be left out that nobody said to."""
    kinds = {name: _SAME_KIND.get(name.split()[0], name.split()[0]) for name in lost}  # "field 'source'" is a field
    kept = [name for name in lost if "all" not in lose and kinds[name] not in lose]
    if kept:
        shown = ", ".join(f"{name} ({_times(lost[name])})" for name in kept[:5])
        more = f" and {len(kept) - 5} more" if len(kept) > 5 else ""
        asked = ",".join(sorted({kinds[name] for name in kept} | set(lose)))
        remedy = f"pass --lose {asked} to leave that out, or choose another format"
        raise LossError(f"{to.format.title} has no place for {shown}{more}", remedy=remedy)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _silent(what: str, done: int, total: int | None) -> None:
    """No progress."""


def _guess(opened: Opened, progress: Progress) -> int | None:
    """About how many sentences a file has, for the time left; from how many its beginning has."""
    if progress is _silent or opened.path.suffix == ".gz" or isinstance(opened.format, Whole):
        return None
    size = opened.path.stat().st_size
    if not size:
        return None  # reading will say so
    beginning = min(size, _BEGINNING)
    faults: list[InputError] = []  # they are told when the file is really read
    reading = Reading(repair=True, on_fault=faults.append)
    found = sum(1 for _ in opened.format.read(opened.path, opened.dialect, reading, 0, beginning))
    return max(1, round(found * size / beginning))


def _watched(
    sentences: Iterable[Sentence], what: str, progress: Progress, total: int | None = None
) -> Iterator[Sentence]:
    done = 0
    for done, sentence in enumerate(sentences, start=1):
        if not done % 256:
            progress(what, done, total)
        yield sentence
    progress(what, done, done)


def _name(output: str | Path) -> str | Path:
    """What the output's format is told by; standard output has no extension."""
    return "stdout" if str(output) in STDOUT else output


def _check_output(output: str | Path, input: str | Path, *, force: bool, folders: bool = False) -> None:
    """Fail early where the output could not be put in place at the end.

    Args:
        output: where to write.
        input: what is read.
        force: whether what is there may be replaced.
        folders: whether that may be a folder; then `_check_kind` has to look at it.

    Raises:
        OutputError: it is the input, or exists and `force` is not given, or its folder cannot be written.
    """
    path = Path(output)
    if str(output) in STDOUT:
        return
    try:
        if path.is_dir() and (path.name in ("", "..") or (any(path.iterdir()) and not (force and folders))):
            remedy = "name a file in it, or for a format of folders a new or empty one"
            if folders and not force:
                remedy += ", or pass --force to replace what such a format wrote"
            raise OutputError("is a directory", path=str(path), remedy=remedy)
        for written in (path, *left_by(path)):
            if str(input) != STDIN and written.exists() and Path(input).exists() and written.samefile(input):
                raise OutputError(
                    "is the input, which is never changed", path=str(written), remedy="name another output"
                )
        if is_special(path):
            return
        if Path(input).is_dir() and path.resolve().is_relative_to(Path(input).resolve()):
            raise OutputError("is inside the input", path=str(path), remedy="name an output outside of it")
        if path.is_dir() and str(input) != STDIN and Path(input).resolve().is_relative_to(path.resolve()):
            raise OutputError("holds the input, which is never changed", path=str(path), remedy="name another output")
        if path.exists() and not force and not path.is_dir():
            raise OutputError("exists", path=str(path), remedy="pass --force to replace it, or name another")
        with tempfile.TemporaryFile(dir=followed(path).parent):
            pass
    except OSError as error:
        raise output_error(path, error) from None


def _check_kind(output: str | Path, format_: Format, *, force: bool) -> None:
    """Fail early where the output is not of the kind that the format is written as.

    Raises:
        OutputError: a stream where a file or a folder is wanted, a file for a folder, or a folder for a file; a folder
            that is not to be replaced.
    """
    path = Path(output)
    folder = isinstance(format_, Whole) and format_.folder
    if isinstance(format_, Whole) and (str(output) in STDOUT or is_special(path)):
        remedy = f"name a {'folder' if folder else 'file'} to write to"
        raise OutputError(f"{format_.title} cannot be written to a stream", remedy=remedy)
    if folder and path.is_file():
        raise OutputError("is a file, and a folder is to be written", path=str(output), remedy="name another")
    if isinstance(format_, Whole) and folder and path.is_dir():
        check_folder(format_, path, force=force)
    if not folder and str(output).endswith("/") and not path.is_dir():
        what = f"is the name of a folder, and {format_.title} is written as a file"
        raise OutputError(what, path=str(output), remedy="name a file, or make the folder and name a file in it")
    if not folder and path.is_dir():
        raise OutputError("is a directory", path=str(output), remedy="name a file in it")


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
    progress: Progress = _silent,
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
    _check_output(output, input, force=force, folders=True)
    with rereadable(input) as kept, contextlib.ExitStack() as stack:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            to = target(_name(output), to_format, source, **(write_options or {}))
            _check_kind(output, to.format, force=force)
            finish = None
            if isinstance(to.format, Whole):
                finish = partial(finish_whole, to.format, to.dialect, force=force)
            if str(output) in STDOUT:
                sink: Sink = StreamSink(sys.stdout.buffer, to.heading)
            elif is_special(Path(output)):
                sink = StreamSink(stack.enter_context(atomic(Path(output))), to.heading)
            else:
                job = _job_key(kept, augmenter, only_new, repair, source, to)
                sink = PartialSink(Path(output), job, force=force, finish=finish, heading=to.heading)
            summary = AugmentSummary(
                augmenter.facts.name,
                augmenter.signature,
                str(input),
                str(output),
                source.dialect.describe(),
                to.dialect.describe(),
                resumed_at=sink.sources_done,
            )
            with sink:
                _augment(source, to, sink, augmenter, summary, only_new, repair, progress)
        except EntaugError as error:
            named(error, kept, input)
            raise
    summary.seconds = time.monotonic() - begun
    return summary


def _augment(
    source: Opened,
    to: Opened,
    sink: Sink,
    augmenter: Augmenter,
    summary: AugmentSummary,
    only_new: bool,
    repair: bool,
    progress: Progress,
) -> None:
    reading = Reading(repair=repair)
    gold_wanted = not only_new and not sink.gold_done

    def first_pass() -> Iterator[Sentence]:
        sentences = _watched(source.sentences(reading), "reading", progress, _guess(source, progress))
        written = _written(sentences, source, reading, to, sink) if gold_wanted and sink.can_undo else sentences
        for sentence in written:
            summary.before.add(sentence)
            summary.lost.update(to.format.lost(sentence, to.dialect))
            yield sentence

    augmenter.progress = lambda done, total, loss: progress(f"learning, loss {loss:.2f}", done, total)
    augmenter.fit(_Named(first_pass(), str(source.path)))
    summary.repaired = reading.repaired
    summary.notes += [*augmenter.notes(), *_other_tags(source), *_said(reading.notes)]
    if gold_wanted and not sink.can_undo:
        again = Reading(repair=repair)
        for _ in _written(source.sentences(again), source, again, to, sink):
            pass
    sink.finish_gold()
    lines: list[str] = []
    filled: set[str] = set()
    run = augmenter.run(lambda sentence: to.format.carried(sentence, to.dialect), _putting(to, lines, summary, filled))
    summary.tally = run.tally
    sentences = source.sentences(Reading(repair=repair))
    if sink.sources_done:
        for _ in range(sink.sources_done):
            run.skip(next(sentences))
        for made in to.format.read(sink.path, to.dialect, Reading(), sink.gold_end, sink.offset):
            run.remember(made)
        sink.restore(run.tally, summary.after)
    else:
        for label, count in summary.before.mentions.items():
            summary.after.mentions[label] = 0 if only_new else count
        if not only_new:
            summary.after = Counts(**{**vars(summary.before), "mentions": Counter(summary.before.mentions)})
    total = summary.before.sentences
    _pour(run, sentences, lines, sink, summary, total, progress)
    summary.notes += augmenter.advice(run.tally)
    if filled:
        summary.notes.append(f"new words have {FILL!r} in other columns ({', '.join(sorted(filled))})")


def _said(notes: Counter[str]) -> list[str]:
    """What was met when the input was read, in words."""
    return [f"{name} ({count:,} times)" if count > 1 else name for name, count in sorted(notes.items())]


def _other_tags(source: Opened) -> list[str]:
    """What a user should know of columns that look like tags and are not the one that is kept right."""
    return [
        f"column {column} looks like tags too: its values go with their words and may be no valid tags in new "
        "sentences; only the tag column is kept right (another one: --tag-column)"
        for column in getattr(source.dialect, "also_tags", ())
    ]


def _putting(
    to: Opened, lines: list[str], summary: AugmentSummary, filled: set[str]
) -> Callable[[Sentence, Sentence], bool]:
    """What puts augmented sentences into `lines` and counts them, and notes in which columns words lack a value."""
    dump, dialect = to.format.dump, to.dialect

    def put(made: Sentence, source: Sentence) -> bool:
        try:
            lines.append(dump(made, dialect))
        except LossError:
            dump(source, dialect)  # raises where the source is no better: then another layout must be chosen
            return False
        summary.after.add(made)
        if made.columns:
            filled.update(
                name
                for name, values in made.columns.items()
                if name not in filled and FILL in values and FILL not in source.columns[name]
            )
        return True

    return put


def _dumped(
    sentence: Sentence, dump: Callable[[Sentence, Any], str], dialect: Any, source: Opened, reading: Reading
) -> str:
    """The text of a sentence that was just read; where it cannot be written, its line is named."""
    try:
        return dump(sentence, dialect)
    except LossError as error:
        error.path, error.line = str(source.path), reading.line or None
        raise


def _written(
    sentences: Iterable[Sentence], source: Opened, reading: Reading, to: Opened, sink: Sink
) -> Iterator[Sentence]:
    """The sentences, each written on its way."""
    dump, dialect = to.format.dump, to.dialect
    lines: list[str] = []
    for sentence in sentences:
        lines.append(_dumped(sentence, dump, dialect, source, reading))
        if len(lines) >= 256:
            sink.write(lines)
            lines = []
        yield sentence
    sink.write(lines)


def _pour(
    run: Run,
    sentences: Iterator[Sentence],
    lines: list[str],
    sink: Sink,
    summary: AugmentSummary,
    total: int,
    progress: Progress,
) -> None:
    """Write what the run puts into `lines`, from time to time."""
    done = run.tally.sources
    for done, _ in enumerate(run.each(sentences), start=run.tally.sources + 1):
        if not done % 64:
            sink.write(lines)
            lines.clear()
            sink.reached(done, run.tally, summary.after)
            if not done % 256:
                progress("augmenting", done, total)
    sink.write(lines)
    progress("augmenting", done, total)


class _Named(Iterable[Sentence]):
    """Sentences that say where they come from."""

    def __init__(self, sentences: Iterator[Sentence], source: str) -> None:
        self._sentences = sentences
        self.source = source

    def __iter__(self) -> Iterator[Sentence]:
        return self._sentences


def _job_key(kept: Path, augmenter: Augmenter, only_new: bool, repair: bool, source: Opened, to: Opened) -> str:
    """What must be equal for a run to go on where another stopped."""
    content = ""
    for file in source.format.files(kept) if isinstance(source.format, Whole) else [kept]:
        with open_bytes(file) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        content += f"{file.relative_to(kept) if kept.is_dir() else ''}{digest}"
    parts = (__version__, augmenter.signature, only_new, repair, source.dialect, to.format.name, to.dialect, content)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------ check, convert


def check_file(
    input: str | Path,
    *,
    repair: bool = False,
    from_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    on_fault: Callable[[str], None] | None = None,
    progress: Progress = _silent,
) -> CheckSummary:
    """Read a file through and name every fault.

    Args:
        input: the file, or ``"-"``.
        repair: count what `--repair` would mend instead of calling it a fault.
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
    with rereadable(input) as kept:

        def note(error: InputError) -> None:
            named(error, kept, input)
            summary.faults.append(str(error))
            if on_fault:
                on_fault(str(error))

        reading = Reading(repair=repair, on_fault=note)
        seen: set[int] = set()
        try:
            opened = open_file(kept, from_format, **(read_options or {}))
            summary.format = opened.dialect.describe()
            add = summary.counts.add
            for sentence in _watched(opened.sentences(reading), "checking", progress, _guess(opened, progress)):
                add(sentence)
                seen.add(hash((sentence.tokens, sentence.mentions)))
        except InputError as error:
            if error.line is None:
                named(error, kept, input)
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
    progress: Progress = _silent,
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
    _check_losses(lose)
    _check_output(output, input, force=force, folders=True)
    with rereadable(input) as kept, contextlib.ExitStack() as stack:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            to = target(_name(output), to_format, source, **(write_options or {}))
            summary = ConvertSummary(str(input), str(output), source.dialect.describe(), to.dialect.describe())
            reading = Reading(repair=repair)
            _check_kind(output, to.format, force=force)
            standard = str(output) in STDOUT
            if isinstance(to.format, Whole) or standard:  # nothing is said before it is known that nothing is lost
                held = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="entaug-")), "lines.jsonl")
                out: IO[bytes] = stack.enter_context(held.open("wb"))
            else:
                out = sys.stdout.buffer if str(output) in STDOUT else stack.enter_context(atomic(Path(output)))
            sink = StreamSink(out, to.heading)
            dump, dialect, lost = to.format.dump, to.dialect, to.format.lost
            lines = []
            for sentence in _watched(source.sentences(reading), "converting", progress, _guess(source, progress)):
                summary.counts.add(sentence)
                summary.lost.update(lost(sentence, dialect))
                lines.append(_dumped(sentence, dump, dialect, source, reading))
                if len(lines) >= 256:
                    sink.write(lines)
                    lines = []
            sink.write(lines)
            out.flush()
            _refuse_loss(summary.lost, lose, to)
            if isinstance(to.format, Whole):
                finish_whole(to.format, to.dialect, held, Path(output), force=force)
            elif standard:
                with held.open("rb") as lines_held:
                    shutil.copyfileobj(lines_held, sys.stdout.buffer)
                sys.stdout.buffer.flush()
            summary.repaired = reading.repaired
            summary.notes = reading.notes
        except EntaugError as error:
            named(error, kept, input)
            raise
    return summary
