"""One run at a time: locks that the system frees when a run is killed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["locked"]


@contextlib.contextmanager
def locked(target: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[bool]:
    """Let one run at a time make a file or folder; yields False where the file system knows no locks.

    The system frees the lock of a run that is killed. The file is deleted by who holds it: who has opened it before
    that and gets the lock afterwards sees that it is no longer the file of that name, and opens it anew.

    Args:
        target: what is made; its folder has to be there.
        waiting: called once if another run has the lock.
    """
    file = target.parent / f".{target.name}.lock"
    told = False
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            got = _try_lock(descriptor)
            if got is None or (got and _is_at(file, descriptor)):
                try:
                    yield got is not None
                finally:
                    with contextlib.suppress(OSError):
                        file.unlink()
                return
        finally:
            os.close(descriptor)
        if not got and not told:
            waiting()
            told = True
        time.sleep(0.1)


def _is_at(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool | None:
    """Whether an open file could be locked; None where that is not possible at all."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
