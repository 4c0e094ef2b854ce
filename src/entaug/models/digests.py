"""A short digest of large files, for the names of backends in provenance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["digest"]

_SAMPLE = 1 << 20


def digest(files: Iterable[Path]) -> str:
    """Compute a digest of the size, the first and the last megabyte of each file.

    Args:
        files: the files, in an order that does not depend on the machine.

    Returns:
        Eight hexadecimal digits.
    """
    total = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        total.update(f"{file.name} {size} ".encode())
        with file.open("rb") as stream:
            total.update(stream.read(_SAMPLE))
            stream.seek(max(0, size - _SAMPLE))
            total.update(stream.read(_SAMPLE))
    return total.hexdigest()[:8]
