"""A lock between processes, freed by the system when its holder is killed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from entaug.errors import OutputError

if TYPE_CHECKING:
    from filelock import FileLock


@contextlib.contextmanager
def lock(target: Path, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let one process at a time write a file or folder."""
    # The lock file is removed by its holder. A process that waited notices that the file it has locked is gone and
    # locks a new one.
    from filelock import FileLock, Timeout

    file_lock = FileLock(_lock_file(target), poll_interval=0.1)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        file_lock.acquire()
    with _released(file_lock):
        yield


def is_locked(target: Path) -> bool:
    """Whether a process writes a file or folder under `lock`."""
    from filelock import FileLock, Timeout

    path = _lock_file(target)
    if not path.exists():
        return False
    file_lock = FileLock(path)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        return True
    with _released(file_lock):  # left by a process that was killed
        return False


@contextlib.contextmanager
def claim(target: Path) -> Iterator[None]:
    """Like `lock`, but fail at once where another process writes the target."""
    # It is independent of `lock`: who holds that may claim the target.
    from filelock import FileLock, Timeout

    path = _lock_file(target, ".writing")
    holder = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        holder = path.read_text(encoding="ascii")
    file_lock = FileLock(path)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        process = f"process {holder}" if holder.isdecimal() else "another process"
        raise OutputError(
            f"is being written by {process}", path=str(target), remedy="wait until it has ended, or name another output"
        ) from None
    with _released(file_lock):
        with contextlib.suppress(OSError):  # Windows lets nobody write to a locked file
            path.write_text(str(os.getpid()), encoding="ascii")
        yield


def try_claim(target: Path) -> contextlib.ExitStack | None:
    """Claim a target unless another process has it; closing what is returned gives it back."""
    stack = contextlib.ExitStack()
    try:
        stack.enter_context(claim(target))
    except OutputError:
        return None
    return stack


def _lock_file(target: Path, kind: str = "") -> Path:
    return target.parent / f".{target.name}{kind}.lock"


@contextlib.contextmanager
def _released(file_lock: FileLock) -> Iterator[None]:
    """Remove and release a lock at the end."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file
            Path(file_lock.lock_file).unlink()
        file_lock.release()
