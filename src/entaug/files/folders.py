"""Folders of documents: their files, in which order, and names that are safe to write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from entaug.errors import InputError

__all__ = ["is_safe_name", "natural_sort_key", "safe_file_name", "walk_files"]

_MAX_NAME_BYTES = 240  # of a file name without its extension
_UNSAFE = re.compile("[\0-\x1f\x7f\ud800-\udfff]")


def walk_files(root: Path, on_skip: Callable[[str], object] = str) -> Iterator[tuple[str, Path]]:
    """The files of a folder and of its subfolders; hidden ones are left out.

    A link to a folder is not followed, nor one to a file outside the folder.

    Args:
        root: the folder.
        on_skip: called with the reason for each entry that is left out and not hidden.

    Yields:
        The path of each file relative to the folder, with ``/`` between folders, and the path to open.

    Raises:
        InputError: a folder cannot be read.
    """
    real_root = os.path.realpath(root)
    pending = [(root, "")]
    while pending:
        folder, prefix = pending.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", path=str(folder)) from None
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                if path.is_dir() or not Path(os.path.realpath(path)).is_relative_to(real_root):
                    on_skip("link to a folder, or out of the folder, not followed")
                    continue
            elif entry.is_dir():
                pending.append((path, f"{prefix}{entry.name}/"))
                continue
            elif not entry.is_file():
                on_skip("neither a file nor a folder (a pipe, a socket): left out")
                continue
            yield prefix + entry.name, path


def is_safe_name(name: str) -> bool:
    """Whether a name is valid UTF-8 without control characters.

    Args:
        name: a path with ``/`` between folders.
    """
    return not _UNSAFE.search(name)


def natural_sort_key(name: str) -> tuple[Any, str]:
    """A sort key of paths: folder by folder, numbers by value.

    Args:
        name: a path with ``/`` between folders.

    Example:
        >>> sorted(["b/x", "a10", "a9"], key=natural_sort_key)
        ['a9', 'a10', 'b/x']
    """
    parts = [re.split("([0-9]{1,300})", part) for part in name.split("/")]
    return [[int(piece) if i % 2 else piece for i, piece in enumerate(part)] for part in parts], name


def safe_file_name(name: str) -> str:
    """A relative path that is safe to create below a folder: the name itself where it is safe.

    Args:
        name: the wanted path with ``/`` between folders.

    Example:
        >>> safe_file_name("news/1"), safe_file_name("/../x")
        ('news/1', '%/%2E./x')
    """
    parts = []
    for part in name.split("/"):
        safe = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", part)
        safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe or "%"
        if len(safe.encode()) > _MAX_NAME_BYTES:
            safe = f"{safe[:40]}-{blake2b(safe.encode(), digest_size=8).hexdigest()}"
        parts.append(safe)
    return "/".join(parts)
