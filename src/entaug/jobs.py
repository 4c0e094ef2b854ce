"""What the command line does, as functions that take and return data.

Nothing here prints. Results appear at their target only when they are complete; an interrupted `augment_file` leaves
a partial file beside it, and the same call goes on from there.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from entaug._version import __version__
from entaug.augmenters.base import Augmenter, Run, Tally
from entaug.data import Sentence
from entaug.errors import EntaugError, InputError, LossError, OutputError
from entaug.formats import Opened, open_file, target
from entaug.formats.base import Reading
from entaug.formats.files import atomic, open_bytes, output_error

__all__ = ["AugmentSummary", "CheckSummary", "ConvertSummary", "augment_file", "check_file", "convert_file"]

STDIO = "-"
_CHECKPOINT = 2.0  # seconds between notes of how far a run has come

Progress = Callable[[str, int, int | None], None]
"""Called with what is being done, how many sentences of it are done, and of how many if known."""


@dataclass
class Counts:
    """What is in a file.

    Args:
        sentences: how many.
        tokens: how many.
        mentions: how many, by label.
        nested: mentions that overlap another.
        discontinuous: mentions with a gap.
    """

    sentences: int = 0
    tokens: int = 0
    mentions: Counter[str] = field(default_factory=Counter)
    nested: int = 0
    discontinuous: int = 0

    def add(self, sentence: Sentence) -> None:
        """Count a sentence."""
        self.sentences += 1
        self.tokens += len(sentence.tokens)
        mentions = sentence.mentions
        if mentions:
            for mention in mentions:
                self.mentions[mention.label] += 1
            if not sentence.flat:
                self.discontinuous += sum(not mention.contiguous for mention in mentions)
                held = Counter(i for mention in mentions for i in mention.positions())
                self.nested += sum(any(held[i] > 1 for i in mention.positions()) for mention in mentions)


@dataclass
class AugmentSummary:
    """What `augment_file` did."""

    method: str
    signature: str
    input: str
    output: str
    format: str
    before: Counts = field(default_factory=Counts)
    after: Counts = field(default_factory=Counts)
    tally: Tally = field(default_factory=Tally)
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


def _silent(what: str, done: int, total: int | None) -> None:
    """No progress."""


@contextlib.contextmanager
def _input(path: str | Path) -> Iterator[Path]:
    """A path to read as often as needed: standard input is kept in a temporary file for the while."""
    if str(path) != STDIO:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
        kept = Path(folder, "stdin")
        with kept.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield kept


def _named(error: EntaugError, kept: Path, name: str | Path) -> None:
    """Let an error speak of standard input, not of its temporary copy."""
    if error.path == str(kept):
        error.path = "<stdin>" if str(name) == STDIO else str(name)


def _watched(
    sentences: Iterable[Sentence], what: str, progress: Progress, total: int | None = None
) -> Iterator[Sentence]:
    done = 0
    for done, sentence in enumerate(sentences, start=1):
        if not done % 256:
            progress(what, done, total)
        yield sentence
    progress(what, done, total if total is not None else done)


def check_output(path: str | Path, *, force: bool) -> None:
    """Fail early where the output could not be put in place at the end.

    Raises:
        OutputError: it exists and `force` is not given, or its folder cannot be written.
    """
    if str(path) == STDIO:
        return
    path = Path(path)
    if path.is_dir():
        raise OutputError("is a directory", path=str(path), remedy="name a file in it")
    if path.exists() and not force:
        raise OutputError("exists", path=str(path), remedy="pass --force to replace it, or name another")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise output_error(path, error) from None


def same_file(a: str | Path, b: str | Path) -> bool:
    """Whether two paths name one existing file."""
    with contextlib.suppress(OSError):
        return str(a) != STDIO and str(b) != STDIO and Path(a).samefile(b)
    return False


# ----------------------------------------------------------------------------------------------------- augment


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
    augmenter.check()
    if same_file(input, output):
        raise OutputError("is the input, which is never changed", path=str(output), remedy="name another file")
    check_output(output, force=force)
    with _input(input) as kept:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            if str(output) == STDIO:
                to = target("stdout", to_format or source.format.name, source, **(write_options or {}))
                sink: _Sink = _StreamSink(sys.stdout.buffer)
            else:
                to = target(output, to_format, source, **(write_options or {}))
                job = _job_key(kept, augmenter, only_new, repair, source, to)
                sink = _PartialSink(Path(output), job, force=force)
            summary = AugmentSummary(
                augmenter.facts.name,
                augmenter.signature,
                str(input),
                str(output),
                to.dialect.describe(),
                resumed_at=sink.sources_done,
            )
            with sink:
                _augment(source, to, sink, augmenter, summary, only_new, repair, progress)
        except EntaugError as error:
            _named(error, kept, input)
            raise
    summary.seconds = time.monotonic() - begun
    return summary


def _augment(
    source: Opened,
    to: Opened,
    sink: _Sink,
    augmenter: Augmenter,
    summary: AugmentSummary,
    only_new: bool,
    repair: bool,
    progress: Progress,
) -> None:
    reading = Reading(repair=repair)
    dump, dialect = to.format.dump, to.dialect
    write_gold = not only_new and not sink.gold_done

    def first_pass() -> Iterator[Sentence]:
        lines: list[str] = []
        for sentence in _watched(source.sentences(reading), "reading", progress):
            summary.before.add(sentence)
            if write_gold:
                lines.append(dump(sentence, dialect))
                if len(lines) >= 256:  # noqa: PLR2004
                    sink.write(lines)
                    lines = []
            yield sentence
        sink.write(lines)

    augmenter.fit(_Named(first_pass(), str(source.path)))
    summary.repaired = reading.repaired
    summary.notes += getattr(augmenter, "notes", list)()
    sink.finish_gold()
    run = augmenter.run()
    summary.tally = run.tally
    sentences = source.sentences(Reading(repair=repair))
    if sink.sources_done:
        for _ in range(sink.sources_done):
            run.skip(next(sentences))
        for made in to.format.read(sink.path, dialect, Reading(), sink.gold_end, sink.offset):
            run.remember(made)
        sink.restore(run.tally, summary.after)
    else:
        for label, count in summary.before.mentions.items():
            summary.after.mentions[label] = 0 if only_new else count
        if not only_new:
            summary.after = Counts(**{**vars(summary.before), "mentions": Counter(summary.before.mentions)})
    total = summary.before.sentences
    _pour(run, sentences, to, sink, summary, total, progress)


def _pour(
    run: Run,
    sentences: Iterator[Sentence],
    to: Opened,
    sink: _Sink,
    summary: AugmentSummary,
    total: int,
    progress: Progress,
) -> None:
    dump, dialect = to.format.dump, to.dialect
    lines: list[str] = []
    done = run.tally.sources
    for done, (_, made) in enumerate(run.each(sentences), start=run.tally.sources + 1):
        for sentence in made:
            lines.append(dump(sentence, dialect))
            summary.after.add(sentence)
        if not done % 64:
            sink.write(lines)
            lines = []
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


def _job_key(
    kept: Path, augmenter: Augmenter, only_new: bool, repair: bool, source: Opened, to: Opened
) -> str:
    """What must be equal for a run to go on where another stopped."""
    with open_bytes(kept) as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    parts = (__version__, augmenter.signature, only_new, repair, source.dialect, to.format.name, to.dialect, content)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class _Sink(contextlib.AbstractContextManager["_Sink"]):
    """Where augmented text goes."""

    path = Path()
    sources_done = 0
    gold_done = False
    gold_end = 0
    offset = 0

    def write(self, lines: list[str]) -> None:
        raise NotImplementedError

    def finish_gold(self) -> None:
        """All gold sentences are written."""

    def reached(self, done: int, tally: Tally, after: Counts) -> None:
        """So many sources are done and written."""

    def restore(self, tally: Tally, after: Counts) -> None:
        """Fill in the counts of the run that is gone on with."""


class _StreamSink(_Sink):
    """Standard output."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, lines: list[str]) -> None:
        self._stream.write("".join(lines).encode("utf-8", "surrogatepass"))

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self._stream.flush()


class _PartialSink(_Sink):
    """A partial file beside the target, and a note beside that of how far it is good.

    The note is rewritten atomically after the text it speaks of has been flushed, so a run that was killed
    goes on from the last note; what stands after it is cut off and made again, to the same bytes.
    """

    def __init__(self, output: Path, job: str, *, force: bool) -> None:
        self.target = output
        self.path = output.with_name(output.name + ".partial")
        self._note = output.with_name(output.name + ".partial.json")
        self._job = job
        self._last = time.monotonic()
        self._state: dict[str, Any] = {}
        if self.path.exists() or self._note.exists():
            self._take_up(force=force)
        try:
            self._stream = self.path.open("r+b" if self.sources_done or self.gold_done else "wb")
            self._stream.truncate(self.offset)
            self._stream.seek(self.offset)
        except OSError as error:
            raise output_error(self.path, error) from None

    def _take_up(self, *, force: bool) -> None:
        try:
            state = orjson.loads(self._note.read_bytes())
            fits = state["job"] == self._job and self.path.stat().st_size >= state["offset"]
        except (OSError, ValueError, LookupError, TypeError):
            state, fits = {}, not self._note.exists()  # no note yet: nothing in it that could be gone on with
        if fits and state:
            self._state = state
            self.gold_done = True
            self.gold_end, self.offset = state["gold_end"], state["offset"]
            self.sources_done = state["done"]
        elif not fits and not force:
            raise OutputError(
                "was left by an interrupted run with other input or options",
                path=str(self.path),
                remedy="repeat that run, pass --force to drop it, or delete it",
            )

    def write(self, lines: list[str]) -> None:
        if not lines:
            return
        data = "".join(lines).encode("utf-8", "surrogatepass")
        try:
            self._stream.write(data)
        except OSError as error:
            raise output_error(self.path, error) from None
        self.offset += len(data)

    def finish_gold(self) -> None:
        if not self.gold_done:
            self.gold_end = self.offset
            self.gold_done = True
            self._tally, self._after = Tally(), Counts()

    def reached(self, done: int, tally: Tally, after: Counts) -> None:
        self._state = {
            "job": self._job,
            "done": done,
            "offset": self.offset,
            "gold_end": self.gold_end,
            "tally": (tally.sources, tally.asked, tally.made, dict(tally.missing), dict(tally.rejected)),
            "after": (after.sentences, after.tokens, dict(after.mentions), after.nested, after.discontinuous),
        }
        if time.monotonic() - self._last >= _CHECKPOINT:
            self._write_note()

    def _write_note(self) -> None:
        self._last = time.monotonic()
        self._stream.flush()
        beside = self._note.with_suffix(".tmp")
        beside.write_bytes(orjson.dumps(self._state))
        beside.replace(self._note)

    def restore(self, tally: Tally, after: Counts) -> None:
        sources, asked, made, missing, rejected = self._state["tally"]
        tally.sources, tally.asked, tally.made = sources, asked, made
        tally.missing.update(missing)
        tally.rejected.update(rejected)
        after.sentences, after.tokens, mentions, after.nested, after.discontinuous = self._state["after"]
        after.mentions.update(mentions)

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            if kind is None:
                self._stream.close()
                self._put_in_place()
            elif self._state and not issubclass(kind, InputError | LossError):
                self._write_note()
                self._stream.close()
            else:
                self._stream.close()
                self._remove()
        except OSError as error:
            if kind is None:
                raise output_error(self.target, error) from None

    def _put_in_place(self) -> None:
        if self.target.suffix == ".gz":
            with self.path.open("rb") as plain, atomic(self.target) as out:
                shutil.copyfileobj(plain, out)
        else:
            self.path.replace(self.target)
        self._remove()

    def _remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------- check, convert


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
    with _input(input) as kept:

        def note(error: InputError) -> None:
            _named(error, kept, input)
            summary.faults.append(str(error))
            if on_fault:
                on_fault(str(error))

        reading = Reading(repair=repair, on_fault=note)
        seen: set[int] = set()
        try:
            opened = open_file(kept, from_format, **(read_options or {}))
            summary.format = opened.dialect.describe()
            add = summary.counts.add
            for sentence in _watched(opened.sentences(reading), "checking", progress):
                add(sentence)
                seen.add(hash((sentence.tokens, sentence.mentions)))
        except InputError as error:
            note(error)
        summary.repaired = reading.repaired
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
        progress: called now and then.

    Raises:
        InputError: the input is faulty.
        LossError: the new format cannot carry what the input holds.
        OutputError: the output exists or cannot be written.
    """
    if same_file(input, output):
        raise OutputError("is the input, which is never changed", path=str(output), remedy="name another file")
    check_output(output, force=force)
    with _input(input) as kept, contextlib.ExitStack() as stack:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            to = target("stdout" if str(output) == STDIO else output, to_format, source, **(write_options or {}))
            summary = ConvertSummary(
                str(input), str(output), source.dialect.describe(), to.dialect.describe()
            )
            reading = Reading(repair=repair)
            out = sys.stdout.buffer if str(output) == STDIO else stack.enter_context(atomic(Path(output)))
            dump, dialect, carries = to.format.dump, to.dialect, to.format.carries
            keeps = ("comments", "entaug")
            lines = []
            for sentence in _watched(source.sentences(reading), "converting", progress):
                summary.counts.add(sentence)
                if not carries.fields and sentence.meta:
                    summary.lost.update(name for name in sentence.meta if name not in keeps)
                lines.append(dump(sentence, dialect))
                if len(lines) >= 256:  # noqa: PLR2004
                    out.write("".join(lines).encode("utf-8", "surrogatepass"))
                    lines = []
            out.write("".join(lines).encode("utf-8", "surrogatepass"))
            out.flush()
            summary.repaired = reading.repaired
        except EntaugError as error:
            _named(error, kept, input)
            raise
    return summary
