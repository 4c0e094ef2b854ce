"""Files and folders that appear under their names only when they are complete."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, cast

from entaug.errors import OutputError
from entaug.files.streams import as_path, is_special, is_stdout

_REPLACED = "replaced"
_MAX_NAME = 200  # bytes of a name that temporary names repeat; file systems allow 255
_REMEDIES = {
    errno.ENOSPC: "free some space or write elsewhere",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), or write less",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "make the folder first",
    errno.ENOTDIR: "make the folder first",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "repair the links",
    errno.EPIPE: "the process that read it has ended",
}


def output_error(path: Path, error: OSError) -> OutputError:
    """The error for a failed write, with its remedy."""
    remedy = _REMEDIES.get(error.errno or 0, "check its permissions")
    return OutputError(f"cannot be written ({error.strerror or error})", path=str(path), remedy=remedy)


def follow_link(path: Path) -> Path:
    """The target of a symbolic link, so that writing there keeps the link; any other path unchanged."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


# Outputs whose leftovers this process has looked for.
_searched: set[Path] = set()


def _temporary_path(target: Path) -> Path:
    """A new name beside a target for what is not complete yet."""
    # The name cannot be guessed, and tells the machine and the process: what a killed process left there is removed by
    # the next one that writes the same target on the same machine.
    name = target.name
    if len(os.fsencode(name)) > _MAX_NAME:
        name = blake2b(os.fsencode(name), digest_size=8).hexdigest()
    machine = blake2b(platform.node().encode(), digest_size=4).hexdigest()
    if target not in _searched:
        _searched.add(target)
        _remove_leftovers(target, re.compile(rf"\.{re.escape(name)}\.{machine}-(\d+)-[0-9a-f]{{8}}\.tmp"))
    return target.with_name(f".{name}.{machine}-{os.getpid()}-{token_hex(4)}.tmp")


def _remove_leftovers(target: Path, pattern: re.Pattern[str]) -> None:
    """Remove what killed processes left beside a target; a folder that was moved away last comes back."""
    with contextlib.suppress(OSError):
        with os.scandir(target.parent) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            match = pattern.fullmatch(name)
            if match is None or not _is_dead(int(match[1])):
                continue
            path = target.with_name(name)
            if path.is_symlink() or not path.is_dir():
                path.unlink()
                continue
            if (path / _REPLACED).exists() and not target.exists():
                (path / _REPLACED).rename(target)
            shutil.rmtree(path, ignore_errors=True)


def _is_dead(process: int) -> bool:
    """Whether a process of this machine has ended; unknown where asking would end it."""
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # of another user, or no number of a process
        return False
    return False


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name when the block ends without an error."""
    # It is written beside the target and moved there; gzipped, without a time stamp, when the name ends in `.gz`. Of a
    # symbolic link the target is written. A pipe or a device is written directly.
    try:
        if is_special(path):
            with path.open("wb") as raw, _compressed(path, raw) as out:
                yield out
            return
        target = follow_link(path)
        temporary = _temporary_path(target)
        try:
            with temporary.open("xb") as raw, _compressed(path, raw) as out:
                yield out
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(path, error) from None


def write_file(path: Path, content: bytes) -> None:
    """Write a file, which appears under its name with all of its content; what is there and the same stays."""
    if not path.exists() or path.read_bytes() != content:
        with atomic_file(path) as out:
            out.write(content)


@contextlib.contextmanager
def _compressed(path: Path, raw: BinaryIO) -> Iterator[BinaryIO]:
    """The stream, through gzip where the name asks for it."""
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped:
        yield cast("BinaryIO", zipped)


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open standard output or a file; nothing of either appears before the block has ended without an error."""
    if not is_stdout(path):
        with atomic_file(path) as out:
            yield out
        return
    with tempfile.TemporaryFile(prefix="entaug-") as held:
        yield cast("BinaryIO", held)
        held.seek(0)
        shutil.copyfileobj(held, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def move_file(complete: Path, path: Path) -> None:
    """Move a complete file to its name, gzipped where the name ends in ``.gz``."""
    if path.suffix == ".gz":
        with complete.open("rb") as plain, atomic_file(path) as out:
            shutil.copyfileobj(plain, out)
        complete.unlink()
        return
    try:
        complete.replace(follow_link(path))
    except OSError as error:
        raise output_error(path, error) from None


@contextlib.contextmanager
def atomic_path(path: Path, before_replacing: Callable[[Path], object] | None = None) -> Iterator[Path]:
    """Write a file or a folder that appears under its name when the block ends without an error."""
    try:
        target = follow_link(path)
        beside = _temporary_path(target)
        beside.mkdir(mode=0o700)
        new, old = beside / target.name, beside / _REPLACED
        try:
            yield new
            if not new.is_dir():
                if new.exists():
                    new.replace(target)
                return
            if target.exists():
                if before_replacing is None:
                    check_new_folder(target)
                else:
                    before_replacing(target)
                target.rename(old)
            try:
                new.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise
        except OutputError as error:
            error.path = error.path and error.path.replace(str(new), str(path))  # nobody knows its temporary name
            raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise output_error(path, error) from None


@contextlib.contextmanager
def atomic_folder(path: Path, before_replacing: Callable[[Path], object] | None = None) -> Iterator[Path]:
    """Fill a folder that appears under its name when the block ends without an error."""
    # The folders above it are created.
    if before_replacing is None:
        check_new_folder(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(path, error) from None
    with atomic_path(path, before_replacing) as new:
        new.mkdir()
        yield new


def make_folder(folder: str | Path) -> Path:
    """Make a folder and those above it, unless they exist."""
    path = as_path(folder)
    _refuse_stdout(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(path, error) from None
    return path


def check_new_folder(path: Path) -> None:
    """Check that a folder is new or empty and can be written, and not the current one, which cannot be replaced."""
    _refuse_stdout(path)
    if path.exists() and path.samefile("."):
        raise OutputError("is the current folder", path=str(path), remedy="name a new one in it")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise OutputError("is there already", path=str(path), remedy="name a folder that is new or empty")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise output_error(path, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(above, os.W_OK):
        raise OutputError("cannot be written", path=str(path), remedy="name another folder")


def _refuse_stdout(folder: Path) -> None:
    """Refuse to write a folder to standard output."""
    if is_stdout(folder):
        raise OutputError("a folder cannot be written to standard output", remedy="name a folder")
