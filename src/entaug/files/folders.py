"""Folders of documents: their files, in which order, and names that are safe to write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from entaug.errors import InputError, OutputError

_MAX_INSPECTED = 20_000  # number of files of a folder that are looked at to recognise it
_MAX_NAME_BYTES = 240  # of a file name without its extension
_UNSAFE = re.compile("[\0-\x1f\x7f\ud800-\udfff]")


def walk_files(root: Path, on_skip: Callable[[str], object] = str) -> Iterator[tuple[str, Path]]:
    """The files of a folder and of its subfolders; hidden ones are left out."""
    # A link to a folder is not followed, nor one to a file outside the folder.
    real_root = os.path.realpath(root)
    pending = [(root, "")]
    while pending:
        folder, prefix = pending.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if prefix and isinstance(error, FileNotFoundError | ProcessLookupError):
                on_skip("folder that vanished while the one around it was read: left out")
                continue
            raise InputError(f"cannot be read ({error.strerror})", path=str(folder)) from None
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                if not _is_to_file_in(real_root, path):
                    on_skip("link to a folder, or out of the folder, not followed")
                    continue
            elif entry.is_dir():
                pending.append((path, f"{prefix}{entry.name}/"))
                continue
            elif not entry.is_file():
                on_skip("neither a file nor a folder (a pipe, a socket): left out")
                continue
            yield prefix + entry.name, path


def _is_to_file_in(root: str, link: Path) -> bool:
    """Whether a link is to a file in a folder; one that vanished, or may not be followed, is not."""
    try:
        return not link.is_dir() and Path(os.path.realpath(link)).is_relative_to(root)
    except OSError:
        return False


def holds_document(path: Path, extension: str, is_document: Callable[[Path], bool]) -> bool:
    """Whether a path is the main file of a document, or a folder that holds one among its first 20,000 files."""
    try:
        if not path.is_dir():
            return path.suffix == extension and path.is_file() and is_document(path)
        files = islice(walk_files(path), _MAX_INSPECTED)
        return any(is_document(file) for _, file in files if file.suffix == extension)
    except (InputError, OSError, ValueError):
        return False


def is_safe_name(name: str) -> bool:
    """Whether a name is valid UTF-8 without control characters."""
    return not _UNSAFE.search(name)


def natural_sort_key(name: str) -> tuple[Any, str]:
    """A sort key of paths: folder by folder, numbers by value."""
    parts = [re.split("([0-9]{1,300})", part) for part in name.split("/")]
    return [[int(piece) if i % 2 else piece for i, piece in enumerate(part)] for part in parts], name


def safe_file_name(name: str) -> str:
    """A relative path that is safe to create below a folder: the name itself where it is safe."""
    parts = []
    for part in name.split("/"):
        safe = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", part)
        safe = f"%2E{safe[1:]}" if safe.startswith(".") else safe or "%"
        if len(safe.encode()) > _MAX_NAME_BYTES:
            safe = f"{safe[:40]}-{blake2b(safe.encode(), digest_size=8).hexdigest()}"
        parts.append(safe)
    return "/".join(parts)


def unused_name(name: str, taken: Container[str], mark: str) -> str:
    """A name, with a number behind a mark where it is taken."""
    return next(one for one in chain([name], (f"{name}{mark}{i}" for i in count(2))) if one not in taken)


def write_documents(documents: Iterable[tuple[str, Mapping[str, str]]], folder: Path) -> None:
    """Write a new folder with one or more files for each document."""
    folder.mkdir()
    taken: set[str] = set()
    for document, files in documents:
        name = unused_name(safe_file_name(document), taken, "+")
        taken.add(name)
        for extension, content in files.items():
            file = folder / f"{name}{extension}"
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("xb") as out:
                    out.write(content.encode(errors="replace"))
            except (FileExistsError, NotADirectoryError):
                what = f"document {name!r} is in the way of another"
                raise OutputError(what, path=str(folder), remedy="rename one of them") from None


def holds_only(folder: Path, extensions: Sequence[str], needed: Collection[str]) -> bool:
    """Whether a folder holds nothing but the files of documents, so that it may be replaced."""
    found: dict[str, set[str]] = {}
    for parent, folders, names in os.walk(folder):
        if any(Path(parent, name).is_symlink() for name in (*folders, *names)):
            return False
        if not (folders or names) or any(name.startswith(".") for name in folders):  # never written
            return False
        for name in names:
            extension = next((end for end in extensions if name.endswith(end)), None)
            if extension is None or name.startswith("."):
                return False
            found.setdefault(str(Path(parent, name.removesuffix(extension))), set()).add(extension)
    return all(of_document.issuperset(needed) for of_document in found.values())
