"""Reading text files, plain or gzipped, with every fault reported as one clear error."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from entaug.errors import EntaugError, InputError, OutputError, ParameterError
from entaug.files.signatures import identify

STDIN = "-"
_STDOUT = ("-", "/dev/stdout")
_BLOCK = 1 << 20
_HEAD_SIZE = 1 << 16  # bytes that tell what a file is
_MAX_LINE = 1 << 28  # bytes
_MAX_FILE = 1 << 30  # bytes, unpacked, of a file that is read at once
_FREE = 1 << 28  # bytes of the temporary folder that a copy leaves free
_PATIENCE = 2.0  # seconds without a writer of a pipe until the user is told
_BOM = b"\xef\xbb\xbf"
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_LATIN_RUN = 1.3  # mean length of runs of letters with accents is 1.0 to 1.1; that of others 1.5 to 6
_CONVERT_LATIN = (
    "convert it first: iconv -f CP1252 -t UTF-8; CP1250 in place of CP1252 for Polish, Czech and their neighbours, "
    "CP1254 for Turkish"
)
_CONVERT_OTHER = (
    "convert it first: iconv -f ENCODING -t UTF-8, with its own ENCODING, such as GB18030 (Chinese), CP932 (Japanese), "
    "CP949 (Korean), CP1251 (Russian), CP1256 (Arabic)"
)
"""Remedies for text that is not UTF-8, by `is_latin`: a wrong encoding gives wrong letters without any error."""
_MARKS_DROPPED = "byte-order mark at the beginning of a line within the file dropped"
_MARKS_KEPT = "invisible byte-order mark (U+FEFF) within a line kept"
_NO_TEXT = {"\0": ("NUL character", "\\0"), "\r": ("carriage return within a line", "\\r")}


def as_path(path: object) -> Path:
    """The path that an argument names."""
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(f"a path must be a string or a Path, not {path!r:.40}", remedy="name a file or a folder")
    if not os.fspath(path):  # it would be the working directory
        raise ParameterError("a path is empty", remedy="name a file or a folder")
    return Path(path)


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, through gzip when its name ends in ``.gz``."""
    try:
        if path.is_dir():
            raise InputError("is a directory", path=str(path), remedy="name a file in it")
        with _waiting_for_writer(path):
            return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError:
        if path.is_symlink():
            message = f"is a link to {str(path.readlink())!r}, which does not exist"
            raise InputError(message, path=str(path), remedy="repair the link, or remove it") from None
        raise InputError("no such file", path=str(path), remedy="check the path") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None


@contextlib.contextmanager
def _waiting_for_writer(path: Path) -> Iterator[None]:
    """Tell the user, on standard error, if a block waits long for another process to open a named pipe for writing."""
    if not path.is_fifo():
        yield
        return
    note = f"entaug: {path}: is a pipe, waiting for a process that writes to it\n"
    timer = threading.Timer(_PATIENCE, lambda: sys.stderr.write(note))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def read_block(stream: BinaryIO, path: Path, size: int = _BLOCK) -> bytes:
    """The next bytes of a stream; none at its end."""
    try:
        return stream.read(size)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"broken gzip file ({error})", path=str(path), remedy="fetch it again") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None


def _read_blocks(stream: BinaryIO, path: Path, limit: int | None = None) -> Iterator[bytes]:
    """The content of a stream, block by block; the last block is empty."""
    while True:
        block = read_block(stream, path, _BLOCK if limit is None else min(_BLOCK, limit))
        if limit is not None:
            limit -= len(block)
        yield block
        if not block:
            return


def read_beginning(path: Path, size: int = _HEAD_SIZE) -> bytes:
    """The first bytes of a file, unpacked; none where it cannot be read, which is reported when it is opened."""
    try:
        with open_bytes(path) as stream:
            return stream.read(size)
    except (InputError, OSError, EOFError, zlib.error):
        return b""


def is_kind(path: Path, format_name: str) -> bool:
    """Whether the first bytes of a file tell that it is of a format."""
    kind = identify(read_beginning(path))
    return kind is not None and kind.format == format_name


def find_in_file(path: Path, wanted: bytes) -> bool:
    """Return whether bytes occur in a file, unpacked."""
    end = b""
    with open_bytes(path) as stream:
        for block in _read_blocks(stream, path):
            if wanted in end + block:
                return True
            end = block[-len(wanted) :]
    return False


def read_bytes(path: Path, max_size: int = _MAX_FILE) -> bytes:
    """The content of a file, unpacked."""
    blocks: list[bytes] = []
    size = 0
    with open_bytes(path) as stream:
        for block in _read_blocks(stream, path):
            blocks.append(block)
            size += len(block)
            if size > max_size:
                remedy = "check that it is the right file, or split it"
                raise InputError(f"holds more than {max_size >> 20:,} MiB", path=str(path), remedy=remedy)
    return b"".join(blocks)


def is_special(path: Path) -> bool:
    """Whether a path exists and is neither a regular file nor a folder: a pipe, a device, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_stdout(path: str | Path) -> bool:
    """Whether an output path means standard output: ``-`` or ``/dev/stdout``."""
    return str(path) in _STDOUT


def name_original(error: EntaugError, copy: Path, path: str | Path) -> None:
    """Let an error name the file that was given instead of its temporary copy."""
    if error.path == str(copy):
        error.path = "<stdin>" if str(path) == STDIN else str(path)


@contextlib.contextmanager
def rereadable_path(path: str | Path) -> Iterator[Path]:
    """A path that can be read as often as needed."""
    # What can be read only once (standard input, a pipe) is copied to a temporary file of the same name. Errors raised
    # in the block name the original.
    path = as_path(path)
    is_stdin = str(path) == STDIN
    try:
        once = is_stdin or is_special(path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
    if not once:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
        copy = Path(folder, "stdin" if is_stdin else path.name)
        try:
            with _waiting_for_writer(path):
                raw = sys.stdin.buffer if is_stdin else path.open("rb")
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
        try:
            _check_no_device(raw, path)
            _copy(raw, copy, "<stdin>" if is_stdin else str(path))
        finally:
            if not is_stdin:
                raw.close()
        try:
            yield copy
        except EntaugError as error:
            name_original(error, copy, path)
            raise


def _check_no_device(stream: BinaryIO, path: Path) -> None:
    """Refuse devices such as ``/dev/zero``, which have no end; not terminals, nor ``/dev/null``."""
    try:
        is_device = stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty()
    except (OSError, ValueError):  # no file of the system
        return
    if is_device and os.fstat(stream.fileno()).st_rdev != Path(os.devnull).stat().st_rdev:
        raise InputError("is a device", path=str(path), remedy="name a file, a folder or a pipe")


def _copy(stream: BinaryIO, copy: Path, name: str) -> None:
    """Copy a stream to a temporary file, whose folder is never filled."""
    free = shutil.disk_usage(copy.parent).free
    done = line = 0
    try:
        with copy.open("wb") as out:
            while block := stream.read(_BLOCK):
                done += len(block)
                end = block.rfind(b"\n") + 1
                line = len(block) - end if end else line + len(block)
                if line > _MAX_LINE:
                    message = f"has no end of line in {_MAX_LINE >> 20} MiB"
                    raise InputError(message, path=name, remedy="check that it is the right input")
                if done > free - _FREE:
                    message = f"is larger than the space for its temporary copy, {max(0, free - _FREE) >> 20:,} MiB"
                    remedy = "write it to a file and name that, or let TMPDIR name a folder with more space"
                    raise OutputError(message, path=name, remedy=remedy)
                out.write(block)
    except OSError as error:
        message = f"cannot be written ({error.strerror})"
        raise OutputError(message, path=str(copy), remedy="free some space") from None


def read_line_chunks(
    path: Path, start: int = 0, stop: int | None = None, notes: Counter[str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The lines of a UTF-8 file, about a megabyte at a time."""
    # A byte-order mark and carriage returns before line feeds are dropped. Only a line feed ends a line: a token may
    # hold the other separators of Unicode.
    number = 1
    parts: list[bytes] = []  # of the line that the last block ends within
    size = 0
    with open_bytes(path) as stream:
        if start:
            stream.seek(start)
        for block in _read_blocks(stream, path, None if stop is None else stop - start):
            text = block
            # Only the new block is searched, and a long line is joined once, at its end.
            cut = text.rfind(b"\n") + 1 if block else 0
            data = b""
            if cut or not block:
                data = b"".join((*parts, text[:cut]))
                parts, size = [], 0
            parts.append(text[cut:])
            size += len(text) - cut
            if size > _MAX_LINE:
                message = f"a line of more than {_MAX_LINE >> 20} MiB"
                raise InputError(message, path=str(path), line=number, remedy="check that it is the right file")
            if data:
                if _BOM in data:
                    data = _drop_marks(data, notes, is_beginning=number == 1 and not start)
                lines = _split_lines(data, number, path)
                yield number, lines
                number += len(lines)


def _drop_marks(data: bytes, notes: Counter[str] | None, *, is_beginning: bool) -> bytes:
    """Drop one byte-order mark at the beginning of each line, and count those within the file."""
    dropped = data.removeprefix(_BOM).replace(b"\n" + _BOM, b"\n")
    if notes is not None:
        num_kept = dropped.count(_BOM)
        num_dropped = data.count(_BOM) - num_kept - (is_beginning and data.startswith(_BOM))
        notes.update({what: n for what, n in ((_MARKS_DROPPED, num_dropped), (_MARKS_KEPT, num_kept)) if n})
    return dropped


def check_characters(lines: list[str], first: int, path: Path, forbidden: str = "\0\r") -> None:
    """Check that no line holds a character that occurs in no token: an InputError names the first that does."""
    for number, line in enumerate(lines, start=first):
        for character in forbidden:
            if character in line:
                name, escape = _NO_TEXT[character]
                remedy = f"check that it is text, and remove the character: tr -d '{escape}'"
                raise InputError(f"holds a {name}", path=str(path), line=number, remedy=remedy)


def extension_of(path: Path) -> str:
    """The extension of a file in lower case, without that of gzip; empty without one."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def encode_text(text: str) -> bytes:
    """The bytes of lines in a file; a line that begins with a byte-order mark gets one besides, which reading drops."""
    # A file whose first token begins with the character of the byte-order mark gets a mark besides, which is dropped
    # when it is read; otherwise the character would be.
    data = text.encode("utf-8", "surrogatepass")
    if _BOM in data:
        data = (b"\n" + data).replace(b"\n" + _BOM, b"\n" + _BOM + _BOM)[1:]
    return data


def _split_lines(data: bytes, number: int, path: Path) -> list[str]:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    text = decode_text(data, path, number)
    if b"\r" in data and b"\n" not in data:
        remedy = "convert it first: tr '\\r' '\\n'"
        raise InputError("lines end with lone carriage returns", path=str(path), line=number, remedy=remedy)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def decode_text(data: bytes, path: Path, number: int = 1) -> str:
    """The text of bytes in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + data.count(b"\n", 0, error.start)
        if number == 1 and (kind := identify(data[:_HEAD_SIZE])):
            raise InputError(f"not text but {kind.name}", path=str(path), remedy=kind.remedy) from None
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            message, remedy = "not UTF-8 but UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8"
        else:
            message = f"not UTF-8 (byte 0x{data[error.start]:02x})"
            remedy = _CONVERT_LATIN if is_latin(data, error.start) else _CONVERT_OTHER
        raise InputError(message, path=str(path), line=line, remedy=remedy) from None


def is_latin(data: bytes, start: int) -> bool:
    """Whether bytes that are not UTF-8 look like Latin letters with accents, which stand alone among plain ones."""
    # Letters of other scripts are one or two such bytes each, one after the other.
    runs = _NOT_ASCII.findall(data[start : start + _HEAD_SIZE])
    return sum(map(len, runs)) < _LATIN_RUN * len(runs)
