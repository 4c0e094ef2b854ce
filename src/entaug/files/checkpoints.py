"""Output of a long run: written directly, or to a partial file that an interrupted run is resumed from."""

from __future__ import annotations

import abc
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import orjson

from entaug.errors import InputError, LossError, OutputError
from entaug.files.atomic import atomic_file, follow_link, move_file, output_error
from entaug.files.locks import claim
from entaug.files.streams import encode_text

_CHECKPOINT_SECONDS = 2.0  # between two notes of the progress
_BLOCK = 1 << 20


def partial_paths(output: Path) -> tuple[Path, Path]:
    """The partial file of an interrupted run and the note of its progress, both beside the output."""
    target = follow_link(output)
    return Path(f"{target}.partial"), Path(f"{target}.partial.json")


class RunWriter(contextlib.AbstractContextManager["RunWriter"], abc.ABC):
    """Where the text of a run goes, and that of its rejected sentences."""

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self.state: Mapping[str, Any] | None = None
        self.offset = 0

    def write(self, texts: Sequence[str]) -> None:
        """Append text."""
        if texts:
            heading = "" if self.offset else self.heading
            self._append(encode_text(heading + "".join(texts)))

    @abc.abstractmethod
    def _append(self, data: bytes) -> None:
        """Append bytes, and count them."""

    @abc.abstractmethod
    def write_rejected(self, texts: Sequence[str]) -> None:
        """Append text to the file of rejected sentences."""

    def release(self) -> None:
        """Let text appear: the input is valid."""

    def keep_rejected(self) -> None:
        """Move the rejected sentences to their file although the run fails, if there is one."""

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        """Note that all text up to here belongs to a state that a run can be resumed from."""


class DirectWriter(RunWriter):
    """Writes to standard output, a pipe or a device."""

    def __init__(self, stream: IO[bytes], heading: str = "", rejected: Path | None = None) -> None:
        super().__init__(heading)
        self._stream = stream
        self._rejected = rejected
        self._texts = tempfile.TemporaryFile(prefix="entaug-")  # noqa: SIM115 - until the end
        self._held: IO[bytes] | None = tempfile.TemporaryFile(prefix="entaug-")  # noqa: SIM115 - until `release`

    def _append(self, data: bytes) -> None:
        (self._held or self._stream).write(data)
        self.offset += len(data)

    def release(self) -> None:
        if self._held is not None:
            with self._held as held:
                held.seek(0)
                shutil.copyfileobj(held, self._stream)
            self._held = None

    def write_rejected(self, texts: Sequence[str]) -> None:
        self._texts.write("".join(texts).encode())

    def keep_rejected(self) -> None:
        if self._rejected is not None:
            self._texts.seek(0)
            with atomic_file(self._rejected) as out:
                shutil.copyfileobj(self._texts, out)

    def __exit__(self, *exc: object) -> None:
        if self._held is not None:
            self._held.close()
        if exc[0] is None:
            self.keep_rejected()
            self._stream.flush()
        self._texts.close()


class _PartialFile:
    """A file that grows beside its target."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.path = partial_paths(output)[0]
        self.offset = 0
        self._stream: IO[bytes] | None = None
        self._sum = blake2b(digest_size=16)

    @property
    def checksum(self) -> str:
        """The checksum of what was written so far."""
        return self._sum.hexdigest()

    def reaches(self, offset: int) -> bool:
        """Whether the file that an interrupted run left is at least so long."""
        return self.path.is_file() and self.path.stat().st_size >= offset

    def is_unchanged(self, offset: int, checksum: str) -> bool:
        """Whether the beginning of the file that an interrupted run left has a checksum; it counts as written then."""
        self._sum = blake2b(digest_size=16)
        with self.path.open("rb") as stream:
            while offset and (block := stream.read(min(offset, _BLOCK))):
                self._sum.update(block)
                offset -= len(block)
        return self.checksum == checksum

    def create(self) -> None:
        """Start a new file; never through a link that is there."""
        self._sum = blake2b(digest_size=16)
        self.path.unlink(missing_ok=True)
        self._stream = self.path.open("xb")

    def resume(self, offset: int) -> None:
        """Go on after so many bytes; the rest is cut off."""
        self._stream, self.offset = self.path.open("r+b"), offset
        self._stream.truncate(offset)
        self._stream.seek(offset)

    def write(self, data: bytes) -> None:
        assert self._stream is not None
        try:
            self._stream.write(data)
        except OSError as error:
            raise output_error(self.path, error) from None
        self._sum.update(data)
        self.offset += len(data)

    def flush(self) -> None:
        assert self._stream is not None
        try:
            self._stream.flush()
        except OSError as error:
            raise output_error(self.path, error) from None

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()


class CheckpointedWriter(RunWriter):
    """Writes to a partial file beside the output, with a note of how far it is complete."""

    # The note is created before the partial file and names the run. It is replaced atomically after the text up to its
    # offset has been flushed: a run that was killed is resumed from the latest note. Text after that offset is
    # truncated and written again, to the same bytes.

    def __init__(
        self,
        output: Path,
        key: str,
        *,
        force: bool,
        heading: str = "",
        rejected: Path | None = None,
        finish: Callable[[Path], object] | None = None,
    ) -> None:
        super().__init__(heading)
        self._output = output
        self._key = key
        self._finish = finish or (lambda draft: move_file(draft, output))
        self._text = _PartialFile(output)
        self.path = self._text.path
        self._rejected = _PartialFile(rejected) if rejected else None
        self._files = [self._text, *([self._rejected] if self._rejected else [])]
        self._note = partial_paths(output)[1]
        self._note_content: dict[str, Any] = {}
        self._last_note = time.monotonic()
        with contextlib.ExitStack() as claims:
            try:
                # Partial files have fixed names, so two runs at once would write into each other's text.
                for file in self._files:
                    claims.enter_context(claim(follow_link(file.output)))
                self._open_files(force=force)
            except OSError as error:
                raise output_error(self.path, error) from None
            self._claims = claims.pop_all()

    def _open_files(self, *, force: bool) -> None:
        """Open the partial files, where an interrupted run stopped or at their beginning."""
        offsets = self._resumable_offsets(force=force)
        if offsets:
            for file, offset in zip(self._files, offsets, strict=True):
                file.resume(offset)
            self.offset = self._text.offset
        else:
            self._remove()
            self._write_note({"key": self._key})
            for file in self._files:
                file.create()

    def _resumable_offsets(self, *, force: bool) -> list[int]:
        """The number of bytes of each partial file to keep; empty to start from the beginning."""
        if not (os.path.lexists(self.path) or os.path.lexists(self._note)):
            return []
        note = self._read_note()
        key = note.get("key")
        if key != self._key:
            if force:
                return []
            raise self._not_resumable(
                "was left by an interrupted run with other input, options or models"
                if key
                else "exists and does not belong to a run",
                "repeat that run, " if key else "",
            )
        offsets: list[int] = note.get("offsets", [])
        if len(offsets) != len(self._files) or not all(map(_PartialFile.reaches, self._files, offsets)):
            return []  # killed before the first checkpoint, or a file is gone
        if not all(map(_PartialFile.is_unchanged, self._files, offsets, note["sums"])):
            if force:
                return []
            raise self._not_resumable("has changed since the run that left it was interrupted")
        self.state, self._note_content = note["state"], note
        return offsets

    def _read_note(self) -> dict[str, Any]:
        """The note that an interrupted run left; empty where it is no note, or was changed."""
        try:
            note = orjson.loads(self._note.read_bytes())
            checksum = note.pop("sum")
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}
        return note if checksum == _sum_of_note(note) else {}

    def _not_resumable(self, why: str, other_remedy: str = "") -> OutputError:
        path = self.path if os.path.lexists(self.path) else self._note
        return OutputError(why, path=str(path), remedy=f"{other_remedy}pass `force=True` to drop it, or move it away")

    def _append(self, data: bytes) -> None:
        self._text.write(data)
        self.offset = self._text.offset

    def write_rejected(self, texts: Sequence[str]) -> None:
        if self._rejected and texts:
            self._rejected.write("".join(texts).encode())

    def keep_rejected(self) -> None:
        if self._rejected:
            self._rejected.close()
            move_file(self._rejected.path, self._rejected.output)

    def checkpoint(self, state: Mapping[str, Any]) -> None:
        self._note_content = {
            "key": self._key,
            "offsets": [file.offset for file in self._files],
            "sums": [file.checksum for file in self._files],
            "state": state,
        }
        self.state = state  # after the note: a run that is interrupted in between writes the note if it has a state
        if time.monotonic() - self._last_note >= _CHECKPOINT_SECONDS:
            self._save()

    def _save(self) -> None:
        """Flush the text, then write the note."""
        self._last_note = time.monotonic()
        for file in self._files:
            file.flush()
        self._write_note(self._note_content)

    def _write_note(self, content: Mapping[str, Any]) -> None:
        with atomic_file(self._note) as out:
            out.write(orjson.dumps({**content, "sum": _sum_of_note(content)}))

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        with self._claims:
            if kind is None:
                self._conclude()
            else:
                self._give_up(kind)

    def _conclude(self) -> None:
        try:
            for file in self._files:
                file.close()
            self.keep_rejected()  # before the output, whose existence says that all is done
            self._finish(self.path)
            self._remove()
        except OSError as error:
            raise output_error(follow_link(self._output), error) from None

    def _give_up(self, kind: type[BaseException]) -> None:
        keep = self.state is not None and not issubclass(kind, InputError | LossError)
        with contextlib.suppress(OSError, OutputError):  # the first error is the one to report
            if keep:
                self._save()
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        with contextlib.suppress(OSError):
            if not keep:
                self._remove()

    def _remove(self) -> None:
        for path in (*(file.path for file in self._files), self._note):
            path.unlink(missing_ok=True)


def _sum_of_note(content: Mapping[str, Any]) -> str:
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
