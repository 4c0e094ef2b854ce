"""A lock between processes, freed by the system when its holder is killed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["lock"]


@contextlib.contextmanager
def lock(target: Path, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let one process at a time write a file or folder.

    The lock file ``.NAME.lock`` stands beside the target and is removed by its holder. A process that waited notices
    that the file it has locked is gone and locks a new one.

    Args:
        target: the file or folder to be written; the folder that holds it must exist.
        on_wait: called once if another process holds the lock.

    Yields:
        Nothing, as soon as this process holds the lock.
    """
    from filelock import FileLock, Timeout

    file_lock = FileLock(target.parent / f".{target.name}.lock", poll_interval=0.1)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        file_lock.acquire()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes no open file
            Path(file_lock.lock_file).unlink()
        file_lock.release()
