"""Folders of documents: what is in them, in which order, and names that are safe to write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from entaug.errors import InputError
from entaug.formats.base import Reading

__all__ = ["file_name", "files_in", "natural", "sound"]

_LONGEST = 240  # bytes of a file name without its ending
_UNSAFE = re.compile("[\0-\x1f\x7f\ud800-\udfff]")


def files_in(root: Path, reading: Reading) -> Iterator[tuple[str, Path]]:
    """The files of a folder and of those in it, with their paths in it; what begins with a full stop is passed over.

    A link to a folder is not followed, nor one to a file that is not in the folder; they are counted.

    Raises:
        InputError: a folder cannot be read.
    """
    real = os.path.realpath(root)
    waiting = [(root, "")]
    while waiting:
        folder, before = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", path=str(folder)) from None
        for entry in found:
            file = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                if file.is_dir() or not Path(os.path.realpath(file)).is_relative_to(real):
                    reading.notes["link to a folder, or out of the folder, not followed"] += 1
                    continue
            elif entry.is_dir():
                waiting.append((file, f"{before}{entry.name}/"))
                continue
            elif not entry.is_file():
                reading.notes["what is neither a file nor a folder (a pipe, a socket) left out"] += 1
                continue
            yield before + entry.name, file


def sound(name: str) -> bool:
    """Whether a name is UTF-8, and no control characters are in it."""
    return not _UNSAFE.search(name)


def natural(name: str) -> tuple[Any, str]:
    """The order of names: folder by folder, numbers by size.

    Example:
        >>> sorted(["b/x", "a10", "a9"], key=natural)
        ['a9', 'a10', 'b/x']
    """
    pieces = [re.split("([0-9]{1,300})", part) for part in name.split("/")]
    return [[int(p) if i % 2 else p for i, p in enumerate(part)] for part in pieces], name


def file_name(name: str) -> str:
    """A path that is safe below a folder: the name itself where it can be.

    Example:
        >>> file_name("news/1"), file_name("/../x")
        ('news/1', '%/%2E./x')
    """
    parts = []
    for part in name.split("/"):
        safe = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", part)
        safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe or "%"
        if len(safe.encode()) > _LONGEST:
            safe = f"{safe[:40]}-{blake2b(safe.encode(), digest_size=8).hexdigest()}"
        parts.append(safe)
    return "/".join(parts)
