"""A short digest of files, for the names of backends in provenance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["digest"]

_WHOLE = 1 << 25  # bytes; tokenizers and configurations are smaller, weights are larger
_SAMPLE = 1 << 20


def digest(files: Iterable[Path]) -> str:
    """Compute a digest of files; of those above 32 MB the size, the first and the last megabyte count."""
    total = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        total.update(f"{file.name} {size} ".encode())
        with file.open("rb") as stream:
            if size <= _WHOLE:
                total.update(stream.read())
                continue
            total.update(stream.read(_SAMPLE))
            stream.seek(size - _SAMPLE)
            total.update(stream.read())
    return total.hexdigest()[:8]
