"""Files as chunks of lines, plain or gzipped, with every fault of the outside world as one clear error."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from entaug.errors import InputError, OutputError, ParameterError

__all__ = [
    "STDIN",
    "as_path",
    "atomic",
    "beginning",
    "decoded",
    "encoded",
    "followed",
    "is_special",
    "line_chunks",
    "open_bytes",
    "output_error",
    "read_bytes",
    "refuse_nul",
    "rereadable",
]

STDIN = "-"
_CHUNK = 1 << 20
_OTHERS = (
    (b"\x1f\x8b", "gzip", "let its name end in .gz"),
    (b"PK\x03\x04", "a zip archive", "unpack it"),
    (b"PAR1", "Parquet", "let its name end in .parquet, or pass --from parquet"),
)
_LINE = 1 << 28  # bytes of a line at most
_FILE = 1 << 30  # bytes of a file that is read at once at most, unpacked
_BOM = b"\xef\xbb\xbf"


def as_path(given: object) -> Path:
    """What was given as a path.

    Raises:
        ParameterError: it is none.
    """
    if not isinstance(given, (str, os.PathLike)):
        raise ParameterError(f"a path must be a string or a Path, not {given!r:.40}", remedy="name a file or a folder")
    return Path(given)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, through gzip when its name ends in ``.gz``.

    Raises:
        InputError: it is missing, a directory, or may not be read.
    """
    try:
        if path.is_dir():
            raise InputError("is a directory", path=str(path), remedy="name a file in it")
        return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError:
        if path.is_symlink():
            what = f"is a link to {str(path.readlink())!r}, which is not there"
            raise InputError(what, path=str(path), remedy="mend the link, or remove it") from None
        raise InputError("no such file", path=str(path), remedy="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None


def beginning(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, unpacked; none where it cannot be read, which is told when it is opened."""
    try:
        with open_bytes(path) as stream:
            return stream.read(size)
    except (InputError, OSError, EOFError, zlib.error):
        return b""


def read_bytes(path: Path, most: int = _FILE) -> bytes:
    """A whole file, unpacked.

    Raises:
        InputError: it cannot be read, is a broken gzip file, or is larger than `most`.
    """
    parts: list[bytes] = []
    size = 0
    with open_bytes(path) as stream:
        while True:
            try:
                block = stream.read(_CHUNK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise InputError(f"broken gzip file ({error})", path=str(path), remedy="fetch it anew") from None
            except OSError as error:
                raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
            if not block:
                return b"".join(parts)
            parts.append(block)
            size += len(block)
            if size > most:
                remedy = "see whether it is what it should be, or split it"
                raise InputError(f"holds more than {most >> 20:,} MiB", path=str(path), remedy=remedy)


def is_special(path: Path) -> bool:
    """Whether a path is there and neither a regular file nor a folder: a pipe, a device, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def followed(path: Path) -> Path:
    """The file that a path means: a symbolic link is followed, so that writing there keeps the link."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def rereadable(path: str | Path) -> Iterator[Path]:
    """A path to read as often as needed.

    What can be read only once (standard input, a pipe) is kept in a temporary file of the same name for the while.

    Raises:
        InputError: it cannot be read.
        OutputError: there is no room to keep it.
    """
    path = as_path(path)
    standard = str(path) == STDIN
    try:
        once = standard or is_special(path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
    if not once:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
        kept = Path(folder, "stdin" if standard else path.name)
        try:
            raw = sys.stdin.buffer if standard else path.open("rb")
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
        try:
            with kept.open("wb") as copy:
                shutil.copyfileobj(raw, copy)
        except OSError as error:
            raise output_error(kept, error) from None
        finally:
            if not standard:
                raw.close()
        yield kept


def line_chunks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """The lines of a UTF-8 file, about a megabyte at a time.

    A byte-order mark and carriage returns before line feeds are dropped. Only a line feed ends a line: a token may
    hold the other separators of Unicode.

    Args:
        path: the file.
        start: the first byte to read.
        stop: the byte to stop before.

    Yields:
        The 1-based number of the chunk's first line (counted from `start`), and its lines without their ends.

    Raises:
        InputError: it cannot be read, is not UTF-8, or is a broken gzip file.
    """
    number = 1
    rest = b""
    with open_bytes(path) as stream:
        if start:
            stream.seek(start)
        left = None if stop is None else stop - start
        while True:
            try:
                block = stream.read(_CHUNK if left is None else min(_CHUNK, left))
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise InputError(f"broken gzip file ({error})", path=str(path), remedy="fetch it anew") from None
            except OSError as error:
                raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
            if left is not None:
                left -= len(block)
            if number == 1 and not rest and not start and block.startswith(_BOM):
                block = block[len(_BOM) :]
            data = rest + block
            if block:
                cut = data.rfind(b"\n") + 1
                data, rest = data[:cut], data[cut:]
            if len(rest) > _LINE:
                remedy = "see whether it is what it should be"
                raise InputError(f"a line of more than {_LINE >> 20} MiB", path=str(path), line=number, remedy=remedy)
            if data:
                lines = _decode(data, number, path)
                yield number, lines
                number += len(lines)
            if not block:
                return


def refuse_nul(lines: list[str], first: int, path: Path) -> None:
    """Raise where lines hold a NUL character: none is in a text, and JSON has none between its quotes either.

    Args:
        lines: the lines.
        first: the number of the first.
        path: their file.

    Raises:
        InputError: one does.
    """
    for number, line in enumerate(lines, start=first):
        if "\0" in line:
            remedy = "see whether it is text, and remove it: tr -d '\\0'"
            raise InputError("holds a NUL character", path=str(path), line=number, remedy=remedy)


def encoded(text: str, *, first: bool) -> bytes:
    """The bytes of a text, which may be the first of its file.

    A file whose first token begins with the character of the byte-order mark gets a mark besides, which is dropped
    when it is read; else the character would be.
    """
    data = text.encode("utf-8", "surrogatepass")
    return _BOM + data if first and data.startswith(_BOM) else data


def _decode(data: bytes, number: int, path: Path) -> list[str]:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    text = decoded(data, path, number)
    if b"\r" in data and b"\n" not in data:
        remedy = "convert it first: tr '\\r' '\\n'"
        raise InputError("lines end with lone carriage returns", path=str(path), line=number, remedy=remedy)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def decoded(data: bytes, path: Path, number: int = 1) -> str:
    """Bytes of a file as text.

    Args:
        data: the bytes.
        path: whose they are.
        number: the line that they begin in.

    Raises:
        InputError: they are not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + data.count(b"\n", 0, error.start)
        for magic, kind, remedy in _OTHERS:
            if number == 1 and data.startswith(magic):
                raise InputError(f"not text but {kind}", path=str(path), remedy=remedy) from None
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        what = "not UTF-8 but UTF-16" if utf16 else f"not UTF-8 (byte 0x{data[error.start]:02x})"
        remedy = f"convert it first: iconv -f {'UTF-16' if utf16 else 'LATIN1'} -t UTF-8"
        raise InputError(what, path=str(path), line=line, remedy=remedy) from None


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content is at `path` only once it is complete.

    Writes beside the target and moves into place; gzipped, without a time stamp, when the name ends in ``.gz``. Where
    the path is a link, what it names is written and the link stays. A pipe or a device is written straight to.

    Raises:
        OutputError: the folder is missing or cannot be written, or the disk is full.
    """
    try:
        if is_special(path):
            with path.open("wb") as raw, _zipped(path, raw) as out:
                yield out
            return
        real = followed(path)
        beside = real.with_name(f".{real.name}.{os.getpid()}.tmp")
        try:
            with beside.open("wb") as raw, _zipped(path, raw) as out:
                yield out
            beside.replace(real)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(path, error) from None


@contextlib.contextmanager
def _zipped(path: Path, raw: BinaryIO) -> Iterator[BinaryIO]:
    """The stream, through gzip where the name asks for it."""
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped:
        yield cast("BinaryIO", zipped)


_REMEDIES = {
    errno.ENOSPC: "free some space or write elsewhere",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "make the folder first",
    errno.ENOTDIR: "make the folder first",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "mend the links",
    errno.EPIPE: "its reader went away",
}


def output_error(path: Path, error: OSError) -> OutputError:
    """The error for a failed write, with what to do about it."""
    remedy = _REMEDIES.get(error.errno or 0, "check its permissions")
    return OutputError(f"cannot be written ({error.strerror})", path=str(path), remedy=remedy)
