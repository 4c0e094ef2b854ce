"""Rows of Excel workbooks (``.xlsx``), read and written with openpyxl; all cells are text."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from entaug.errors import InputError, LossError, MissingExtraError, OutputError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import ReadReport

__all__ = ["is_workbook", "workbook_rows", "write_workbook"]

_ZIP = b"PK\x03\x04"
_MAX_UNPACKED = 1 << 30  # bytes
_MAX_ROWS = 1 << 20
_MAX_CELL = 32767  # characters
_NOT_WRITTEN = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")  # no XML, or escapes of Excel
_TIME_STAMP = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")
_FIXED_TIME = rb"\g<1>2000-01-01T00:00:00Z"  # the same table is the same bytes


def is_workbook(path: Path) -> bool:
    """Whether a file is named like a workbook, or begins like a zip archive of one."""
    return Path(path.name.removesuffix(".gz")).suffix.lower() == ".xlsx" or (
        read_beginning(path, 4) == _ZIP and b"[Content_Types].xml" in read_beginning(path, 1 << 12)
    )


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError(error.name or "openpyxl", "xlsx") from None
    return openpyxl


def workbook_rows(path: Path, sheet: str, reading: ReadReport | None) -> Iterator[tuple[int, list[str]]]:
    """The numbered rows of a sheet; notes tell of other sheets, and of cells that are no text."""
    openpyxl = _openpyxl()
    data = read_bytes(path)

    def refused(what: str, remedy: str) -> InputError:
        return InputError(what, path=str(path), remedy=remedy)

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_UNPACKED:
                raise refused(f"holds more than {_MAX_UNPACKED >> 20:,} MiB", "check that it is the right file")  # noqa: TRY301
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        names = list(book.sheetnames)
        if sheet and sheet not in names:
            raise refused(f"no sheet {sheet!r}", f"it has {', '.join(map(repr, names))}")  # noqa: TRY301
        chosen = book[sheet] if sheet else book.worksheets[0]
        if reading is not None and len(names) > 1:
            others = ", ".join(repr(name) for name in names if name != chosen.title)
            reading.notes[f"sheets left out: {others} (--layout sheet=NAME)"] += 1
        # The size that a file states may be wrong, and rows after it would be left out.
        chosen.reset_dimensions()
        width = 0
        for number, row in enumerate(chosen.iter_rows(), start=1):
            cells = [_text(cell, number, path, reading) for cell in row]
            width = width or len(cells)
            yield number, cells + [""] * (width - len(cells))  # empty cells at the end of a row are not stored
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - openpyxl raises whatever its parsers do
        what = f"no workbook that can be read ({type(error).__name__}: {error})".replace("\n", " ")
        raise refused(f"{what:.200}", "save it as .xlsx or .csv again") from None


def _text(cell: Any, number: int, path: Path, reading: ReadReport | None) -> str:
    value = cell.value
    if value is None or isinstance(value, str):
        if getattr(cell, "data_type", "s") == "f":
            remedy = "replace formulas by their values (copy, paste special)"
            raise InputError(f"a formula: {value!r:.60}", path=str(path), line=number, remedy=remedy)
        return value or ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (date, datetime, time, timedelta)) and reading is not None:
        reading.notes["cell with a date or time read as text"] += 1
    return str(value)


def write_workbook(path: Path, rows: Iterable[list[str]], sheet: str) -> None:
    """Write rows as a workbook of one sheet; raises LossError at a cell that it cannot hold."""
    openpyxl = _openpyxl()
    from openpyxl.cell import WriteOnlyCell

    table = []
    for row in rows:  # before anything is written: openpyxl cannot stop in the middle
        for text in row:
            if _NOT_WRITTEN.search(text) or len(text) > _MAX_CELL:
                what = f"{text!r:.60} holds a control character" if len(text) <= _MAX_CELL else "a cell is too long"
                raise LossError(f"{what} for a workbook", path=str(path), remedy="write .csv")
        table.append(row)
    if len(table) > _MAX_ROWS:
        what = f"a workbook has no place for more than {_MAX_ROWS:,} rows"
        raise LossError(what, path=str(path), remedy="write .csv")
    book = openpyxl.Workbook(write_only=True)
    try:
        page = book.create_sheet(sheet or "Sheet1")
    except ValueError as error:
        raise OutputError(f"no name of a sheet: {sheet!r} ({error})", path=str(path), remedy="name another") from None
    for row in table:
        cells = [WriteOnlyCell(page, value=text) if text else None for text in row]
        for cell in filter(None, cells):
            cell.data_type = "s"  # a text such as =A1 is no formula
        page.append(cells)
    packed = io.BytesIO()
    book.save(packed)
    with atomic_file(path) as out, zipfile.ZipFile(packed) as source, zipfile.ZipFile(out, "w") as archive:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "docProps/core.xml":
                content = _TIME_STAMP.sub(_FIXED_TIME, content)
            archive.writestr(zipfile.ZipInfo(entry.filename), content, zipfile.ZIP_DEFLATED)
