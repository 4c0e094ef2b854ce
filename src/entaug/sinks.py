"""Where augmented text goes: standard output, or a partial file that becomes the target when it is complete."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from entaug.augmenters.base import Tally
from entaug.data import Sentence
from entaug.errors import InputError, LossError, OutputError
from entaug.formats.files import atomic, output_error

__all__ = ["Counts", "PartialSink", "Sink", "StreamSink"]

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
            if not sentence.flat:
                self.discontinuous += sum(not mention.contiguous for mention in mentions)
                held = Counter(i for mention in mentions for i in mention.positions())
                self.nested += sum(any(held[i] > 1 for i in mention.positions()) for mention in mentions)


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

    def finish_gold(self) -> None:
        """All gold sentences are written."""

    def reached(self, done: int, tally: Tally, after: Counts) -> None:
        """So many sources are done and written."""

    def restore(self, tally: Tally, after: Counts) -> None:
        """Fill in the counts of the run that is gone on with."""


class StreamSink(Sink):
    """Standard output."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, lines: list[str]) -> None:
        """See `Sink`."""
        self._stream.write("".join(lines).encode("utf-8", "surrogatepass"))

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self._stream.flush()


class PartialSink(Sink):
    """A partial file beside the target, and a note beside that of how far it is good.

    The note is rewritten atomically after the text it speaks of has been flushed, so a run that was killed
    goes on from the last note; what stands after it is cut off and made again, to the same bytes.
    """

    can_undo = True

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
        """See `Sink`."""
        if not lines:
            return
        data = "".join(lines).encode("utf-8", "surrogatepass")
        try:
            self._stream.write(data)
        except OSError as error:
            raise output_error(self.path, error) from None
        self.offset += len(data)

    def finish_gold(self) -> None:
        """See `Sink`."""
        if not self.gold_done:
            self.gold_end = self.offset
            self.gold_done = True
            self._tally, self._after = Tally(), Counts()

    def reached(self, done: int, tally: Tally, after: Counts) -> None:
        """See `Sink`."""
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
        """See `Sink`."""
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
