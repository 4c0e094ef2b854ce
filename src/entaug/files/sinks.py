"""Where augmented text goes: standard output, or a partial file that becomes the target when it is complete."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from entaug.augmenters.contracts import RunStatistics
from entaug.data import Sentence
from entaug.errors import InputError, LossError, OutputError
from entaug.files.atomic import atomic_file, follow_link, output_error
from entaug.files.streams import encode_text

__all__ = ["Counts", "PartialSink", "Sink", "StreamSink", "left_by"]

_CHECKPOINT = 2.0  # seconds between notes of how far a run has come


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
            if not sentence.is_flat:
                self.discontinuous += sum(not mention.is_contiguous for mention in mentions)
                held = Counter(i for mention in mentions for i in mention.positions())
                self.nested += sum(any(held[i] > 1 for i in mention.positions()) for mention in mentions)


def _text(lines: list[str], heading: str) -> str:
    return heading + "".join(lines) if lines else ""


class Sink(contextlib.AbstractContextManager["Sink"]):
    """Where augmented text goes.

    Attributes:
        can_undo: whether what was written vanishes when the input turns out to be faulty.
        gold_done: whether the gold sentences are written already.
        sources_done: of how many sources the augmented sentences are written already.
        gold_end: where the gold sentences end, in bytes.
        offset: how far the text is good, in bytes.
    """

    can_undo = False

    path = Path()
    sources_done = 0
    gold_done = False
    gold_end = 0
    offset = 0

    def write(self, lines: list[str]) -> None:
        """Append text."""
        raise NotImplementedError

    def write_aside(self, lines: list[str]) -> None:
        """Append text to what stands aside: drafts that were refused."""
        raise NotImplementedError

    def finish_gold(self) -> None:
        """All gold sentences are written."""

    def reached(self, done: int, tally: RunStatistics, after: Counts) -> None:
        """So many sources are done and written."""

    def restore(self, tally: RunStatistics, after: Counts) -> None:
        """Fill in the counts of the run that is gone on with."""


class StreamSink(Sink):
    """Standard output, a pipe or a device.

    Args:
        stream: it.
        heading: what stands before the first sentence.
        aside: where refused drafts go, if anybody wants them.
    """

    def __init__(self, stream: IO[bytes], heading: str = "", aside: IO[bytes] | None = None) -> None:
        self._stream = stream
        self._heading = heading
        self._aside = aside

    def write(self, lines: list[str]) -> None:
        """See `Sink`."""
        data = encode_text(_text(lines, "" if self.offset else self._heading), first=not self.offset)
        self._stream.write(data)
        self.offset += len(data)

    def write_aside(self, lines: list[str]) -> None:
        """See `Sink`."""
        if self._aside is not None:
            self._aside.write("".join(lines).encode())

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self._stream.flush()


class PartialSink(Sink):
    """A partial file beside the target, and a note beside that of how far it is good.

    The note is there before the partial file is, and tells whose it is. It is rewritten atomically after the text it
    speaks of has been flushed, so a run that was killed goes on from the last note; what stands after it is cut off
    and made again, to the same bytes.

    Args:
        output: the target.
        job: what must be equal for a run to go on where another stopped.
        force: whether to drop what another interrupted run left.
        finish: what makes the target of the partial file; by default it becomes the target itself.
        heading: what stands before the first sentence.
        aside: a second target, of refused drafts, if anybody wants them.
    """

    can_undo = True

    def __init__(
        self,
        output: Path,
        job: str,
        *,
        force: bool,
        finish: Callable[[Path, Path], None] | None = None,
        heading: str = "",
        aside: Path | None = None,
    ) -> None:
        self._output = output
        self._aside = _Aside(aside) if aside else None
        self._finish = finish
        self._heading = heading
        self.target = follow_link(output)
        self.path, self._note = left_by(output)
        self._job = job
        self._last = time.monotonic()
        self._state: dict[str, Any] = {}
        self._stream: IO[bytes]
        try:
            if _there(self.path) or _there(self._note):
                self._take_up(force=force)
            if self.gold_done:
                self._stream = self.path.open("r+b")
                self._stream.truncate(self.offset)
                self._stream.seek(self.offset)
                if self._aside:
                    self._aside.go_on(self._state["aside"])
            else:
                # Never into what is there: it could be a link to something else. The note comes first, so that a
                # partial file without one is known to be somebody else's.
                self._remove()
                self._note_down({"job": job})
                self._stream = self.path.open("xb")
                if self._aside:
                    self._aside.begin()
        except OSError as error:
            raise output_error(self.path, error) from None

    def _take_up(self, *, force: bool) -> None:
        """Go on from what is there, when it is of this job.

        Raises:
            OutputError: it is another's, and `force` is not given.
        """
        try:
            state = orjson.loads(self._note.read_bytes())
            job = state["job"]
        except (OSError, ValueError, LookupError, TypeError):
            state, job = {}, None
        if job == self._job:
            # With no progress noted yet, or the text gone, it begins anew.
            there = "offset" in state and self.path.is_file() and self.path.stat().st_size >= state["offset"]
            if there and (not self._aside or self._aside.has(state["aside"])):
                self._state = state
                self.gold_done = True
                self.gold_end, self.offset = state["gold_end"], state["offset"]
                self.sources_done = state["done"]
        elif not force:
            left = self.path if _there(self.path) else self._note
            raise OutputError(
                "was left by an interrupted run with other input or options" if job else "exists, and is of no run",
                path=str(left),
                remedy=f"{'repeat that run, ' if job else ''}pass --force to drop it, or move it away",
            )

    def write(self, lines: list[str]) -> None:
        """See `Sink`."""
        if not lines:
            return
        data = encode_text(_text(lines, "" if self.offset else self._heading), first=not self.offset)
        try:
            self._stream.write(data)
        except OSError as error:
            raise output_error(self.path, error) from None
        self.offset += len(data)

    def write_aside(self, lines: list[str]) -> None:
        """See `Sink`."""
        if self._aside:
            self._aside.write("".join(lines).encode())

    def finish_gold(self) -> None:
        """See `Sink`."""
        if not self.gold_done:
            self.gold_end = self.offset
            self.gold_done = True
            self._tally, self._after = RunStatistics(), Counts()

    def reached(self, done: int, tally: RunStatistics, after: Counts) -> None:
        """See `Sink`."""
        self._state = {
            "job": self._job,
            "done": done,
            "offset": self.offset,
            "gold_end": self.gold_end,
            "aside": self._aside.offset if self._aside else 0,
            "tally": (tally.sources, tally.requested, tally.accepted, dict(tally.missing), dict(tally.rejected)),
            "after": (after.sentences, after.tokens, dict(after.mentions), after.nested, after.discontinuous),
        }
        if time.monotonic() - self._last >= _CHECKPOINT:
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._last = time.monotonic()
        try:
            self._stream.flush()
        except OSError as error:
            raise output_error(self.path, error) from None
        if self._aside:
            self._aside.flush()
        self._note_down(self._state)

    def _note_down(self, state: dict[str, Any]) -> None:
        with atomic_file(self._note) as out:
            out.write(orjson.dumps(state))

    def restore(self, tally: RunStatistics, after: Counts) -> None:
        """See `Sink`."""
        sources, asked, made, missing, rejected = self._state["tally"]
        tally.sources, tally.requested, tally.accepted = sources, asked, made
        tally.missing.update(missing)
        tally.rejected.update(rejected)
        after.sentences, after.tokens, mentions, after.nested, after.discontinuous = self._state["after"]
        after.mentions.update(mentions)

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            try:
                self._stream.close()
                self._put_in_place()
            except OSError as error:
                raise output_error(self.target, error) from None
            return
        keep = self._state and not issubclass(kind, InputError | LossError)
        with contextlib.suppress(OSError, OutputError):  # what went wrong first is what counts
            if keep:
                self._checkpoint()
        with contextlib.suppress(OSError):
            self._stream.close()
        with contextlib.suppress(OSError):
            if self._aside:
                self._aside.close()
        with contextlib.suppress(OSError):
            if not keep:
                self._remove()

    def _put_in_place(self) -> None:
        if self._aside:  # before the target, whose being there says that all is done
            self._aside.put_in_place()
        if self._finish is not None:  # the partial file is not of the format that is wanted
            self._finish(self.path, self._output)
        else:
            put_in_place(self.path, self._output)
        self._remove()

    def _remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        if self._aside:
            self._aside.path.unlink(missing_ok=True)


class _Aside:
    """A second partial file, whose progress is noted with that of the first."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self.path = left_by(output)[0]
        self.offset = 0
        self._stream: IO[bytes] | None = None

    def has(self, offset: int) -> bool:
        """Whether the file is good so far."""
        return self.path.is_file() and self.path.stat().st_size >= offset

    def begin(self) -> None:
        """Begin anew, never into what is there."""
        self.path.unlink(missing_ok=True)
        self._stream = self.path.open("xb")

    def go_on(self, offset: int) -> None:
        """Go on behind what is good."""
        self._stream, self.offset = self.path.open("r+b"), offset
        self._stream.truncate(offset)
        self._stream.seek(offset)

    def write(self, data: bytes) -> None:
        """Append."""
        try:
            if self._stream and data:
                self._stream.write(data)
        except OSError as error:
            raise output_error(self.path, error) from None
        self.offset += len(data)

    def flush(self) -> None:
        """Hand all to the system."""
        try:
            if self._stream:
                self._stream.flush()
        except OSError as error:
            raise output_error(self.path, error) from None

    def close(self) -> None:
        """Close the file, and leave it where it is."""
        if self._stream:
            self._stream.close()

    def put_in_place(self) -> None:
        """Close it and move it to its target."""
        self.close()
        put_in_place(self.path, self._output)


def put_in_place(partial: Path, output: Path) -> None:
    """Make a complete partial file the target, gzipped where its name asks for it."""
    if output.suffix == ".gz":
        with partial.open("rb") as plain, atomic_file(output) as out:
            shutil.copyfileobj(plain, out)
    else:
        partial.replace(follow_link(output))


def left_by(output: Path) -> tuple[Path, Path]:
    """Where a run that was stopped leaves its text and its note: beside what is written in the end."""
    real = follow_link(output)
    return real.with_name(real.name + ".partial"), real.with_name(real.name + ".partial.json")


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
