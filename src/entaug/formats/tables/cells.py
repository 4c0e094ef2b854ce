"""Cells of tables: characters, separators, quotation marks, and lists in cells."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal

from entaug.errors import InputError, LossError
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import ReadReport
from entaug.formats.tables.dialect import SEPARATORS, Row, TableDialect
from entaug.formats.tables.workbook import is_workbook, workbook_rows

__all__ = [
    "beginning_of",
    "check_cell",
    "detect_characters",
    "extension_of",
    "first_row",
    "is_list",
    "parse_list",
    "quoted_row",
    "read_rows",
    "separator_of",
]

_MAX_CELL = csv.field_size_limit()  # of the reader; setting it would change it for the whole process
_ONE_LITERAL = re.compile(r"""[rbuRBU]{0,2}(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""", re.DOTALL)


def extension_of(path: Path) -> str:
    """The extension of a file, without that of gzip."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def separator_of(path: Path) -> str:
    """The separator of a file by its extension."""
    return "tab" if extension_of(path) == ".tsv" else "comma"


def quoted_row(row: list[str], delimiter: str) -> str:
    """A row of cells; those that hold a separator, a quotation mark or an end of line are quoted."""
    out = io.StringIO()
    # Only characters of the line end are quoted by all versions of Python, so both are named here.
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(row)
    return out.getvalue().removesuffix("\r\n")


def check_cell(cell: str, dialect: TableDialect, subject: str) -> None:
    """Raise LossError where a cell would not be read as it is written."""
    if "\0" in cell or len(cell) > _MAX_CELL:
        what = "a NUL character" if "\0" in cell else f"more than {_MAX_CELL:,} characters"
        raise LossError(f"a cell holds {what}", path=subject, remedy="write JSON lines")
    separators = (SEPARATORS[dialect.separator],) if dialect.separator else SEPARATORS.values()
    if not dialect.quoted and any(character in cell for character in ("\n", "\r", *separators)):
        what = f"{cell!r:.60} holds a separator or an end of line, and cells are not quoted"
        raise LossError(what, path=subject, remedy="pass --to-layout quoted=true")
    try:
        cell.encode(dialect.encoding)
    except UnicodeEncodeError as error:
        what = f"{cell[error.start : error.end]!r} is no character of {dialect.encoding}"
        raise LossError(what, path=subject, remedy="pass --to-layout encoding=utf-8") from None


def _decode(data: bytes, path: Path, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"not {encoding.upper().removesuffix('-SIG')} (byte 0x{data[error.start]:02x})"
        remedy = "pass --layout encoding=cp1252 (Windows), latin-1 or utf-16, whichever it is"
        raise InputError(what, path=str(path), line=line, remedy=remedy) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("holds a NUL character", path=str(path), line=line, remedy="check that it is text")
    return text


def _marked_encoding(data: bytes) -> Literal["utf-8", "utf-8-sig", "utf-16"]:
    """The encoding that a byte-order mark tells; UTF-8 without one."""
    if data.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    return "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"


def beginning_of(path: Path) -> tuple[str, str]:
    """The encoding and text of the first lines of a file, for looking at; empty where it is no text."""
    data = read_beginning(path)
    encoding = _marked_encoding(data)
    text = data.decode(encoding, "replace")
    return ("", "") if "\0" in text or data.startswith(b"PK\x03\x04") else (encoding, text)


def first_row(text: str) -> tuple[Literal["comma", "semicolon", "tab"], list[str]]:
    """The separator that divides the first row of a table into most cells, and the cells."""
    best: tuple[Literal["comma", "semicolon", "tab"], list[str]] = "comma", []
    names: tuple[Literal["comma", "semicolon", "tab"], ...] = ("tab", "comma", "semicolon")
    for name in names:
        try:
            rows = csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=SEPARATORS[name])
            cells = next(rows, [])
        except csv.Error:
            continue
        if len(cells) > len(best[1]):
            best = name, cells
    return best


def _split_rows(text: str, path: Path | None, separator: str, *, quoted: bool) -> Iterator[Row]:
    options: dict[str, Any] = {"strict": True} if quoted else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=SEPARATORS[separator], **options)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "close its quotation marks, or pass --layout quoted=false if marks are characters of words"
            named = None if path is None else str(path)
            raise InputError(f"no row of a table ({error})", path=named, line=line, remedy=remedy) from None
        yield line, row


def read_rows(path: Path, dialect: TableDialect, reading: ReadReport | None = None) -> Iterator[Row]:
    """The rows of a file; one without any text is an empty list."""
    if is_workbook(path):
        rows = workbook_rows(path, dialect.sheet, reading)
    else:
        text = _decode(read_bytes(path), path, dialect.encoding)
        rows = _split_rows(text, path, dialect.separator or separator_of(path), quoted=dialect.quoted)
    for line, cells in rows:
        yield line, cells if any(cell and not cell.isspace() for cell in cells) else []


def detect_characters(path: Path, dialect: TableDialect, options: Collection[str]) -> dict[str, Any]:
    """Encoding and separator of a file, and whether quotation marks are marks of cells or characters of words."""
    data = read_bytes(path)
    encoding = dialect.encoding if "encoding" in options else _marked_encoding(data)
    text = _decode(data, path, encoding)
    separator: str = dialect.separator if "separator" in options else first_row(text)[0]
    separator = separator or separator_of(path)
    quoted = dialect.quoted
    if "quoted" not in options and '"' in text:
        quoted = _are_quoted(text, path, separator)
    told = "" if separator == separator_of(path) else separator
    return {"encoding": encoding, "separator": told, "quoted": quoted}


def _are_quoted(text: str, path: Path, separator: str) -> bool:
    """Whether quotation marks stand around cells; an error where a mark that is a word may have swallowed rows."""
    width = 0
    swallowed = 0
    is_faulty = False
    try:
        for line, row in _split_rows(text, None, separator, quoted=True):
            width = width or len(row)
            is_faulty = is_faulty or (bool(row) and len(row) != width)
            if not swallowed and any("\n" in cell and SEPARATORS[separator] in cell for cell in row):
                swallowed = line
    except InputError:
        is_faulty = True
    if not (is_faulty or swallowed):
        return True
    widths = {len(row) for _, row in _split_rows(text, None, separator, quoted=False) if row}
    if len(widths) > 1 or widths == {1}:
        return True  # the rows are not right without marks either
    if separator != "tab" and swallowed:
        what = "a quotation mark that is a word, or a cell over several lines"
        remedy = "pass --layout quoted=false if it is a word, quoted=true if not"
        raise InputError(what, path=str(path), line=swallowed, remedy=remedy)
    return separator != "tab"


def is_list(cell: str) -> bool:
    """Whether a cell looks like a list."""
    return cell.lstrip().startswith("[") and cell.rstrip().endswith("]")


def parse_list(cell: str) -> Any:
    """The value of a cell in the notation of JSON or of Python; tuples become lists."""
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    try:
        tree = ast.parse(cell.strip(), mode="eval")
        for node in ast.walk(tree):
            # Python joins 'a' 'b' to 'ab'; arrays of NumPy are printed like that.
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                source = ast.get_source_segment(cell.strip(), node) or ""
                if not _ONE_LITERAL.fullmatch(source):
                    raise InputError(f"no commas between the items of {cell!r:.60}", remedy="write the list as JSON")
        return _lists(ast.literal_eval(tree))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise InputError(f"no list that can be read: {cell!r:.60}", remedy="write it as JSON") from None


def _lists(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_lists(item) for item in value]
    return {name: _lists(item) for name, item in value.items()} if isinstance(value, dict) else value
