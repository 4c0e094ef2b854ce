"""Files as chunks of lines, plain or gzipped, with every fault of the outside world as one clear error."""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from entaug.errors import InputError, OutputError

__all__ = ["atomic", "line_chunks", "open_bytes"]

_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, through gzip when its name ends in ``.gz``.

    Raises:
        InputError: it is missing, a directory, or may not be read.
    """
    if path.is_dir():
        raise InputError("is a directory", path=str(path), remedy="name a file in it")
    try:
        return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError:
        raise InputError("no such file", path=str(path), remedy="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None


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
            if data:
                lines = _decode(data, number, path)
                yield number, lines
                number += len(lines)
            if not block:
                return


def _decode(data: bytes, number: int, path: Path) -> list[str]:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + data.count(b"\n", 0, error.start)
        utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        what = "not UTF-8 but UTF-16" if utf16 else f"not UTF-8 (byte 0x{data[error.start]:02x})"
        remedy = f"convert it first: iconv -f {'UTF-16' if utf16 else 'LATIN1'} -t UTF-8"
        raise InputError(what, path=str(path), line=line, remedy=remedy) from None
    if b"\r" in data and b"\n" not in data:
        remedy = "convert it first: tr '\\r' '\\n'"
        raise InputError("lines end with lone carriage returns", path=str(path), line=number, remedy=remedy)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content is at `path` only once it is complete.

    Writes beside the target and moves into place; gzipped, without a time stamp, when the name ends in ``.gz``.

    Raises:
        OutputError: the folder is missing or cannot be written, or the disk is full.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped:
                    yield cast("BinaryIO", zipped)
            else:
                yield raw
        beside.replace(path)
    except OSError as error:
        raise output_error(path, error) from None
    finally:
        beside.unlink(missing_ok=True) if beside.parent.is_dir() else None


def output_error(path: Path, error: OSError) -> OutputError:
    """The error for a failed write, with what to do about it."""
    if isinstance(error, FileNotFoundError) or not path.parent.is_dir():
        remedy = "make the folder first"
    elif isinstance(error, IsADirectoryError):
        remedy = "name a file, not a folder"
    else:
        remedy = "free some space or write elsewhere" if error.errno == _NO_SPACE else "check its permissions"
    return OutputError(f"cannot be written ({error.strerror})", path=str(path), remedy=remedy)


_NO_SPACE = 28
