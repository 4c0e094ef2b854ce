"""Tables with a heading: CSV, TSV and Excel workbooks (``.xlsx``), with a token or a sentence in each row.

One token a row: columns of words, of tags and of sentences, as ``sentence_id,words,labels``. The cell of the sentence
is filled in each row, or in the first one of a sentence only (``Sentence #,Word,POS,Tag``); without such a column, an
empty row divides two sentences. The cell is the id of the sentence, unless it only numbers it; sentences without an id
are numbered when they are written. Other columns become columns of the sentence. Nested mentions have no place in such
a table.

One sentence a row: ``text,entities`` with a list of ``[start, end, label]`` by characters, where mentions may nest,
and fields, provenance and the white space of the text are kept; ``tokens,ner_tags`` with a list of each; or
``sentence,tags`` with as many words as tags, separated by spaces. Lists are JSON or as Python prints them. Other
columns become fields, or columns where they hold a list of one value a token.

Cells stay text: ``NA``, ``1.0``, ``007`` and ``=A1`` mean nothing else. Names of columns are compared without case;
options name those that are not known. Tags may also stand in a file without a heading that has two columns.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

from entaug.config.registry import import_extra
from entaug.core.data import Sentence
from entaug.core.tags import (
    InvalidTag,
    Overlap,
    SchemeDetector,
    decode_canonical,
    describe_scheme,
    encode_canonical,
    have_no_prefixes,
    is_tag,
)
from entaug.errors import InputError, LossError, OutputError, TagError
from entaug.files.atomic import atomic_file
from entaug.files.streams import extension_of, is_latin, read_beginning, read_bytes
from entaug.formats.base import BEFORE, ENTITY_FIELDS, FormatCapabilities, ReadReport, check_label_edges
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import no_sentences, read_records, to_json
from entaug.formats.text import DOCUMENT, CharMention, Document, SegmentationOptions
from entaug.formats.text_records import char_spans, cut_record, layout_text, parse_mention, token_spans
from entaug.formats.token_records import RecordLayout, parse_record, without

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
_NAMES = {
    "tokens": ("words", "labels"),
    "offsets": ("text", "entities"),
    "lists": ("tokens", "ner_tags"),
    "strings": ("sentence", "tags"),
}
"""The columns of words and of labels in a new table, by what a row or its cells hold."""
Encoding = Literal[
    "utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256",
    "gb18030", "big5", "cp932", "cp949",
]  # fmt: skip
"""The encodings of tables: UTF-8, and those in which spreadsheets save text of one script."""
Row = tuple[int, list[str]]
"""A row of a table with the number of its line; an empty list where all cells are empty."""


@dataclass(frozen=True)
class TableDialect(SegmentationOptions):
    """Layout of a table.

    Args:
        rows: whether a row is one of the ``"tokens"`` or one of the ``"sentences"``.
        cells: what a row of a sentence holds: ``"offsets"``: a text and a list of [start, end, label]; ``"lists"`` of
            tokens and of tags; ``"strings"`` of as many words as tags.
        words: the name of the column of words; of texts or lists of words where a row is a sentence.
        labels: the name of the column of tags or mentions.
        sentence: the name of the column that tells the sentences apart.
        document: the name of the column of documents, in each of which sentences are numbered anew.
        empty_rows: whether empty rows tell sentences apart, and no column does.
        repeated: whether the cell of the sentence is filled in each row.
        ids: whether these cells are ids; otherwise they number the sentences, and are written anew.
        separator: the separator of the cells; by default a tab in files named .tsv, else a comma.
        quoted: whether cells may be quoted.
        encoding: the encoding of the characters.
        has_heading: whether the first row holds the names of the columns; otherwise they are numbered from 0.
        scheme: the tag scheme.
        names: the names of tags that are numbers, in order, as O,B-PER,I-PER.
        tokens: whether to write the tokens beside a text, so that the same tokens are read back.
        sheet: the sheet of a workbook; by default the first.
        overlap: which nested mentions to write as tags, see `entaug.core.tags.flatten`.
        columns: the names of all columns in order; those of the file that was read.
        number_prefix: the text before the number of a sentence.
        number_from: the first number.
    """

    rows: Literal["tokens", "sentences"] = "tokens"
    cells: Literal["offsets", "lists", "strings"] = "offsets"
    words: str = ""
    labels: str = ""
    sentence: str = ""
    document: str = ""
    empty_rows: bool = False
    repeated: bool = True
    ids: bool = True
    separator: Literal["", "comma", "semicolon", "tab"] = ""
    quoted: bool = True
    encoding: Encoding = "utf-8"
    has_heading: bool = True
    scheme: str = "IOB2"
    names: tuple[str, ...] = ()
    tokens: bool = True
    sheet: str = ""
    overlap: Overlap = "error"
    columns: tuple[str, ...] = field(default=(), compare=False)
    number_prefix: str = field(default="", compare=False)
    number_from: int = field(default=1, compare=False)

    @property
    def is_tagged(self) -> bool:
        """Whether mentions are tags."""
        return self.rows == "tokens" or self.cells != "offsets"

    @property
    def words_column(self) -> str:
        """The name of the column of words."""
        return self.words or _NAMES[self.rows if self.rows == "tokens" else self.cells][0]

    @property
    def labels_column(self) -> str:
        """The name of the column of labels."""
        return self.labels or _NAMES[self.rows if self.rows == "tokens" else self.cells][1]

    @property
    def sentence_column(self) -> str:
        """The name of the column of ids; empty where there is none."""
        if self.rows == "tokens" and self.empty_rows:
            return ""
        return self.sentence or ("sentence_id" if self.rows == "tokens" else "id")

    @property
    def text_column(self) -> str:
        """The name of a column of texts beside lists or strings of words; empty where there can be none."""
        return "" if self.rows == "tokens" or self.words_column == "text" else "text"

    def describe(self) -> str:
        unit = self.rows.removesuffix("s")
        sentence = f", sentences in {self.sentence_column!r}" if self.rows == "tokens" and not self.empty_rows else ""
        scheme = f", {describe_scheme(self.scheme)}" if self.is_tagged else ""
        where = f"words in {self.words_column!r}, labels in {self.labels_column!r}"
        separator = f" with {self.separator}s" if self.separator else ""
        return f"table{separator}, one {unit} a row, {where}{sentence}{scheme}"


_MAX_CELL = csv.field_size_limit()  # of the reader; setting it would change it for the whole process
_ONE_LITERAL = re.compile(r"""[rbuRBU]{0,2}(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")""", re.DOTALL)
_JSON_FIELDS = ("entaug", DOCUMENT)  # columns that hold JSON: provenance, and the place in a document


def _separator_of(path: Path) -> Literal["comma", "tab"]:
    """The separator of a file by its extension."""
    return "tab" if extension_of(path) == ".tsv" else "comma"


# ------------------------------------------------------------------------------------------------- characters and rows


def _decode(data: bytes, path: Path, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"not {encoding.upper().removesuffix('-SIG')} (byte 0x{data[error.start]:02x})"
        remedy = "pass `encoding='cp1252'` (Windows), latin-1 or utf-16, whichever it is"
        if not is_latin(data, error.start):
            remedy = "pass its own encoding, such as `encoding='gb18030'` (Chinese), cp932 (Japanese), cp1251 (Russian)"
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


def _first_row(text: str) -> tuple[str, list[str]]:
    """The separator that divides the first row of a table into most cells, and the cells."""
    found = []
    for name in ("tab", "comma", "semicolon"):
        try:
            found.append(
                (name, next(csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=SEPARATORS[name]), []))
            )
        except csv.Error:
            continue
    best = max(found, key=lambda one: len(one[1]), default=("comma", []))
    return best if best[1] else ("comma", [])


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
            remedy = "close its quotation marks, or pass `quoted=False` if marks are characters of words"
            named = None if path is None else str(path)
            raise InputError(f"no row of a table ({error})", path=named, line=line, remedy=remedy) from None
        yield line, row


def _read_rows(path: Path, dialect: TableDialect, reading: ReadReport | None = None) -> Iterator[Row]:
    """The rows of a file; one without any text is an empty list."""
    if _is_workbook(path):
        rows = _workbook_rows(path, dialect.sheet, reading)
    else:
        text = _decode(read_bytes(path), path, dialect.encoding)
        rows = _split_rows(text, path, dialect.separator or _separator_of(path), quoted=dialect.quoted)
    for line, cells in rows:
        yield line, cells if any(cell and not cell.isspace() for cell in cells) else []


def _detect_characters(path: Path, dialect: TableDialect, options: Collection[str]) -> dict[str, Any]:
    """Encoding and separator of a file, and whether quotation marks are marks of cells or characters of words."""
    data = read_bytes(path)
    encoding = dialect.encoding if "encoding" in options else _marked_encoding(data)
    text = _decode(data, path, encoding)
    usual = _separator_of(path)
    separator = (dialect.separator if "separator" in options else _first_row(text)[0]) or usual
    quoted = dialect.quoted if "quoted" in options or '"' not in text else _are_quoted(text, path, separator)
    return {"encoding": encoding, "separator": "" if separator == usual else separator, "quoted": quoted}


def _are_quoted(text: str, path: Path, separator: str) -> bool:
    """Whether quotation marks stand around cells; an error where a mark that is a word may have swallowed rows."""
    swallowed = 0
    try:
        rows = [(line, row) for line, row in _split_rows(text, None, separator, quoted=True) if row]
        is_faulty = len({len(row) for _, row in rows}) > 1
        swallowed = next((n for n, row in rows if any("\n" in c and SEPARATORS[separator] in c for c in row)), 0)
    except InputError:
        is_faulty = True
    widths = {len(row) for _, row in _split_rows(text, None, separator, quoted=False) if row}
    if not (is_faulty or swallowed) or len(widths) > 1 or widths == {1}:
        return True  # also where the rows are not right without marks either
    if separator != "tab" and swallowed:
        what = "a quotation mark that is a word, or a cell over several lines"
        remedy = "pass `quoted=False` if it is a word, `quoted=True` if not"
        raise InputError(what, path=str(path), line=swallowed, remedy=remedy)
    return separator != "tab"


def _quoted_row(row: list[str], delimiter: str) -> str:
    """A row of cells; those that hold a separator, a quotation mark or an end of line are quoted."""
    out = io.StringIO()
    # Only characters of the line end are quoted by all versions of Python, so both are named here.
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(row)
    return out.getvalue().removesuffix("\r\n")


def _check_cell(cell: str, dialect: TableDialect, subject: str) -> None:
    """Raise LossError where a cell would not be read as it is written."""
    if "\0" in cell or len(cell) > _MAX_CELL:
        what = "a NUL character" if "\0" in cell else f"more than {_MAX_CELL:,} characters"
        raise LossError(f"a cell holds {what}", path=subject, remedy="write JSON lines")
    separators = (SEPARATORS[dialect.separator],) if dialect.separator else SEPARATORS.values()
    if not dialect.quoted and any(character in cell for character in ("\n", "\r", *separators)):
        what = f"{cell!r:.60} holds a separator or an end of line, and cells are not quoted"
        raise LossError(what, path=subject, remedy="pass `quoted=True`")
    try:
        cell.encode(dialect.encoding)
    except UnicodeEncodeError as error:
        what = f"{cell[error.start : error.end]!r} is no character of {dialect.encoding}"
        raise LossError(what, path=subject, remedy="pass `encoding='utf-8'`") from None


# ------------------------------------------------------------------------------------------------------ values of cells


def _is_list(cell: str) -> bool:
    """Whether a cell looks like a list."""
    return cell.lstrip().startswith("[") and cell.rstrip().endswith("]")


def _parse_list(cell: str) -> Any:
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
        return json.loads(json.dumps(ast.literal_eval(tree)))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise InputError(f"no list that can be read: {cell!r:.60}", remedy="write it as JSON") from None


def _tags_of(cell: str, names: Sequence[str]) -> list[Any]:
    """The tags in a cell: those of a list, or those between spaces; numbers where these have names."""
    if _is_list(cell):
        return list(_parse_list(cell))
    return [int(tag) if names and tag.isdecimal() and len(tag) < 10 else tag for tag in cell.split()]


def _mentions_of(cell: str) -> list[CharMention]:
    """The mentions in a cell: ``[start, end, label]``, or objects with these names."""
    value = _parse_list(cell) if cell.strip() else []
    if isinstance(value, dict):
        value = value.get("entities", value.get("spans"))
    if not isinstance(value, list):
        raise InputError(f"no list of mentions: {cell!r:.60}", remedy="write [[start, end, label], ...]")
    mentions = []
    for item in value:
        labels = item.get("labels") if isinstance(item, dict) and "label" not in item else None
        of_labels = labels if isinstance(labels, list) else []  # of Label Studio: each is a mention
        for own in [{**without(item, ("labels",)), "label": label} for label in of_labels] or [item]:
            mention = parse_mention(own)
            mentions.append(mention._replace(fields=without(mention.fields, ("text",))))
    return mentions


# --------------------------------------------------------------------------------------------------------- workbooks

_ZIP = b"PK\x03\x04"
_MAX_UNPACKED = 1 << 30  # bytes
_MAX_ROWS = 1 << 20
_MAX_XLSX_CELL = 32767  # characters
_NOT_WRITTEN = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")  # no XML, or escapes of Excel
_TIME_STAMP = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")
_FIXED_TIME = rb"\g<1>2000-01-01T00:00:00Z"  # the same table is the same bytes


def _is_workbook(path: Path) -> bool:
    """Whether a file is named like a workbook, or begins like a zip archive of one."""
    return extension_of(path) == ".xlsx" or (
        read_beginning(path, 4) == _ZIP and b"[Content_Types].xml" in read_beginning(path, 1 << 12)
    )


_openpyxl = partial(import_extra, "openpyxl", "xlsx")


def _workbook_rows(path: Path, sheet: str, reading: ReadReport | None) -> Iterator[tuple[int, list[str]]]:
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
            reading.notes[f"sheets left out: {others} (`sheet=NAME`)"] += 1
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


def _write_workbook(path: Path, rows: Iterable[list[str]], sheet: str) -> None:
    """Write rows as a workbook of one sheet; raises LossError at a cell that it cannot hold."""
    openpyxl = _openpyxl()
    from openpyxl.cell import WriteOnlyCell

    table = []
    for row in rows:  # before anything is written: openpyxl cannot stop in the middle
        for text in row:
            if _NOT_WRITTEN.search(text) or len(text) > _MAX_XLSX_CELL:
                is_long = len(text) > _MAX_XLSX_CELL
                what = "a cell is too long" if is_long else f"{text!r:.60} holds a control character"
                raise LossError(f"{what} for a workbook", remedy="write .csv")
        table.append(row)
    if len(table) > _MAX_ROWS:
        raise LossError(f"a workbook has no place for more than {_MAX_ROWS:,} rows", remedy="write .csv")
    book = openpyxl.Workbook(write_only=True)
    try:
        page = book.create_sheet(sheet or "Sheet1")
    except ValueError as error:
        raise OutputError(f"no name of a sheet: {sheet!r} ({error})", remedy="name another") from None
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


# ------------------------------------------------------------------------------------------------------------- reading

_MAX_SENTENCE = 1000  # tokens of a table that nothing divides into sentences


def _groups_of(path: Path, dialect: TableDialect, reading: ReadReport | None = None) -> Iterator[list[Row]]:
    """The rows of each sentence of a file."""
    rows = _read_rows(path, dialect, reading)
    if dialect.has_heading:
        next(row for row in rows if row[1])
    if dialect.rows == "tokens":
        return _token_groups(rows, dialect, reading, path)
    return ([row] for row in rows if row[1])


def _token_groups(
    rows: Iterator[Row], dialect: TableDialect, reading: ReadReport | None, path: Path
) -> Iterator[list[Row]]:
    """The rows of each sentence of a table with a token in each row."""
    at = dialect.columns.index(dialect.sentence_column) if dialect.sentence_column else None
    document = dialect.columns.index(dialect.document) if dialect.document else None
    group: list[Row] = []
    is_divided = at is not None
    current = ["", ""]  # sentence and document
    for line, cells in rows:
        said = [cells[i] if i is not None and i < len(cells) else "" for i in (at, document)]
        is_new = bool(said[0]) and (said[0] != current[0] or not dialect.repeated)
        is_new = is_new or (bool(said[1]) and said[1] != current[1])
        if group and (is_new or not cells):
            yield group
            is_divided, group = True, []
        if not cells:
            current[0] = ""
            continue
        current = [new or old for new, old in zip(said, current, strict=True)]
        group.append((line, cells))
        if not is_divided and len(group) > _MAX_SENTENCE:
            what = f"nothing divides its first {_MAX_SENTENCE:,} rows into sentences: no column, and no empty row"
            remedy = "name the column that does: `sentence=NAME`"
            raise InputError(what, path=str(path), line=group[0][0], remedy=remedy)
    if group:
        if not is_divided and len(group) > 1 and reading is not None:
            what = "neither empty rows nor a column (`sentence=NAME`) divide the table: it is one sentence"
            reading.notes[what] += 1
        yield group


def _check_widths(group: list[Row], dialect: TableDialect) -> None:
    """Raise InputError at a row without a cell in each column; empty cells after the last column are dropped."""
    width = len(dialect.columns)
    for line, cells in group:
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        if len(cells) != width:
            what = f"{len(cells)} cell{'s' * (len(cells) != 1)} where the table has {width} columns"
            raise InputError(what, line=line, remedy="correct the row, or quote the cell that holds a separator")


def _parse_tokens(group: list[Row], dialect: TableDialect, reading: ReadReport) -> Sentence:
    """The sentence of rows of one token each."""
    columns = dict(zip(dialect.columns, zip(*(cells for _, cells in group), strict=True), strict=True))
    tokens, tags = columns.pop(dialect.words_column), [tag.strip() for tag in columns.pop(dialect.labels_column)]
    if "" in tokens:
        line = group[tokens.index("")][0]
        raise InputError("the token is empty", line=line, remedy="give it one, or delete the row")
    ids = columns.pop(dialect.sentence_column) if dialect.sentence_column else ()
    id_ = next((cell for cell in ids if cell), None)
    if id_ and dialect.repeated and "" in ids:
        remedy = "fill it, or pass `repeated=False` if only the first row of a sentence has it"
        what = f"no sentence in the column {dialect.sentence_column!r}"
        raise InputError(what, line=group[ids.index("")][0], remedy=remedy)
    if id_ and dialect.document:
        id_ = f"{columns[dialect.document][0]}:{id_}"
    if dialect.names:
        numbers = {str(i): name for i, name in enumerate(dialect.names)}
        tags = [numbers.get(tag, tag) for tag in tags]
    try:
        mentions = decode_canonical(tags, dialect.scheme, reading.repaired if reading.repair else None)
    except InvalidTag as fault:
        raise TagError(fault.message, line=group[fault.index][0], remedy=fault.remedy) from None
    further = {name: values for name, values in columns.items() if any(values)}
    return Sentence(tokens, mentions, id_ if dialect.ids else None, columns=further)


def _parse_sentence(record: dict[str, Any], dialect: TableDialect, reading: ReadReport) -> Iterable[Sentence]:
    """The sentences of a row of one text."""
    words, labels = record.pop(dialect.words_column), record.pop(dialect.labels_column)
    id_ = record.pop(dialect.sentence_column, "") or None
    if not labels.strip():
        reading.notes[f"empty cell in the column {dialect.labels_column!r}, read as a text without mentions"] += 1
    fields: dict[str, Any] = {name: cell for name, cell in record.items() if cell != ""}
    for name in filter(fields.__contains__, _JSON_FIELDS):
        fields[name] = _parse_list(fields[name])
    if dialect.cells == "offsets":
        spans = None
        if _is_list(fields.get("tokens", "")):
            spans = token_spans(_parse_list(fields["tokens"]), words, reading)
        if spans is not None:
            del fields["tokens"]
        document = Document(words, _mentions_of(labels), id_, fields, token_spans=spans)
        sentences = list(cut_record(document, dialect, reading))
        return [_with_columns(sentence) for sentence in sentences] if len(sentences) == 1 else sentences
    tokens = _parse_list(words) if _is_list(words) else words.split()
    tags = _tags_of(labels, dialect.names) if labels.strip() else ["O"] * len(tokens)
    own = {"id": id_, dialect.words_column: tokens, dialect.labels_column: tags}
    layout = RecordLayout(
        "tags", dialect.words_column, dialect.labels_column, scheme=dialect.scheme, names=dialect.names
    )
    return (_with_columns(parse_record(fields | own, layout, reading, is_own=False)),)


def _with_columns(sentence: Sentence) -> Sentence:
    """The sentence with the fields as columns that hold a list of one value a token."""
    columns = {}
    for name, value in sentence.meta.items():
        if isinstance(value, str) and _is_list(value):
            try:
                items = _parse_list(value)
            except InputError:
                continue
            if len(items) == len(sentence) and all(isinstance(item, str) for item in items):
                columns[name] = tuple(items)
    return sentence.with_(meta=without(sentence.meta, columns), columns=columns) if columns else sentence


# ----------------------------------------------------------------------------------------------------------- detection

_WORD_NAMES = ("word", "words", "token", "tokens", "form", "text", "sentence", "sentences", "sentence_text")
_TEXT_NAMES = ("text", "sentence", "sentence_text", "content")
_STRING_NAMES = ("word", "words", "token", "tokens", "form", "sentence", "sentences", "sentence_text", "text")
_LABEL_NAMES = (
    *("ner_tags", "ner_tag", "ner", "ner_labels", "ner_label", "entities", "entity", "labels", "label", "tags", "tag"),
    *("bio_tags", "bio_tag", "iob_tags", "iob_tag", "bio", "iob", "annotations", "spans", "ne", "ne_tag"),
)
_SENTENCE_NAMES = (
    *("sentence_#", "sentence#", "sentence_id", "sent_id", "sentence_idx", "sentence_no", "sentence_number"),
    *("sentence_num", "sent_no", "sentid", "sentenceid", "sent", "sentence", "sid"),
)
_DOCUMENT_NAMES = (
    *("document_id", "doc_id", "docid", "document", "doc", "document_#", "doc_#", "file_name", "filename"),
)
_NUMBERED = re.compile(r"((?:sentence[\s:#]*)?)(0|[1-9][0-9]{0,17})", re.IGNORECASE)


def _normal_name(name: str) -> str:
    """The name of a column as it is compared."""
    return re.sub(r"[^\w#]+", "_", name.strip().lower()).strip("_")


def _detect_columns(rows: list[Row], dialect: TableDialect, options: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the columns, and what they hold."""
    names = [name.strip() for name in rows[0][1]]
    has_heading = options.get("has_heading", not any(map(is_tag, names)))
    if has_heading:
        if not (rows := rows[1:]):
            raise InputError("no sentence in it", remedy="give a file with labelled sentences")
        while names and not names[-1]:  # spreadsheets end rows with empty cells
            names.pop()
        if len(set(names)) < len(names):
            name = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two columns {name!r}", remedy="rename one")
    else:
        names = [str(i) for i in range(len(names))]
    cells = {name: [row[i] if i < len(row) else "" for _, row in rows] for i, name in enumerate(names)}
    by_name = {_normal_name(name): name for name in reversed(names)}
    told = f"it has {', '.join(map(repr, names))}"

    def find(option: str, known: Collection[str], taken: Collection[str]) -> str:
        """The column that an option names, or else the first of known names; empty without one."""
        if (given := options.get(option)) and given not in names:
            raise InputError(f"no column {given!r}", remedy=f"name another: `{option}=NAME`; {told}")
        found = (by_name[name] for name in known if name in by_name and by_name[name] not in taken)
        return given or next(found, "")

    labels = find("labels", (), ()) or _label_column(cells, by_name, dialect.names)
    if not labels:
        what = "no column of labels is known" if has_heading else "no heading, and no column of tags alone"
        raise InputError(f"{what}: {told}", remedy="name them: `words=NAME` and `labels=NAME`")
    kind = _kind_of(cells[labels], dialect.names, is_named=has_heading)
    others = [name for name in names if name != labels]
    known = {"offsets": (*_TEXT_NAMES, *_WORD_NAMES), "string": _STRING_NAMES}.get(kind, _WORD_NAMES)
    words = find("words", known, {labels})
    words = words or (others[0] if len(others) == 1 else "")
    if not words:
        what = "no column of words is known" if has_heading else "no heading, and several columns"
        raise InputError(f"{what}: {told}", remedy="name it: `words=NAME`")
    detected = {"has_heading": has_heading, "columns": tuple(names), "labels": labels, "words": words}
    if options.get("rows", "tokens" if kind == "tag" else "sentences") == "tokens":
        sentence = find("sentence", _SENTENCE_NAMES, {words, labels})
        document = find("document", _DOCUMENT_NAMES, {words, labels, sentence})
        detected |= {"rows": "tokens", "sentence": sentence, "document": document, "empty_rows": not sentence}
        return detected | ({"repeated": all(cells[sentence])} if sentence else {})
    has_lists = any(map(_is_list, cells[words]))
    if kind == "offsets" and has_lists:
        what = f"{words!r} holds lists of words, and {labels!r} positions of characters"
        raise InputError(what, remedy="name the column of texts: `words=NAME`")
    form = "offsets" if kind == "offsets" else "lists" if has_lists or kind == "list" else "strings"
    sentence = find("sentence", (*_SENTENCE_NAMES, "id"), {words, labels})
    return detected | {"rows": "sentences", "cells": form, "sentence": sentence, "tokens": "tokens" in names}


def _label_column(cells: Mapping[str, list[str]], by_name: Mapping[str, str], tag_names: Sequence[str]) -> str:
    """The column of tags or mentions, by its name or by its values; empty without one."""
    known = [by_name[name] for name in _LABEL_NAMES if name in by_name]
    if fitting := [name for name in known if _kind_of(cells[name], tag_names, is_named=True)]:
        return fitting[0]
    # Without a known name only tags show what they are.
    others = [name for name in cells if name not in known and _kind_of(cells[name], ()) == "tag"]
    if len(others) == 1:
        return others[0]
    if known:
        cell = next((cell for cell in cells[known[0]] if cell.strip() and not is_tag(cell)), "")
        what = f"the column {known[0]!r} holds neither tags nor lists of mentions (first: {cell!r:.60})"
        remedy = "write tags such as B-PER, or [start, end, label]; numbers need `names='O,B-PER,I-PER'`"
        raise InputError(what, remedy=remedy)
    return ""


def _kind_of(
    cells: Iterable[str], names: Sequence[str], *, is_named: bool = False
) -> Literal["", "tag", "string", "list", "offsets"]:
    """The kind of labels in a column; empty where its cells are neither tags nor mentions."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    sample = filled[:100]
    if any(len(cell.split()) > 1 for cell in sample) and all(is_tag(tag) for cell in sample for tag in cell.split()):
        return "string"
    is_number = bool(names) and all(cell.isdecimal() for cell in filled)
    # A few cells may be faults, which reading reports.
    if filled and (is_number or sum(map(is_tag, filled)) >= 0.8 * len(filled)):
        return "tag"
    if is_named and have_no_prefixes(Counter(filled)):  # without a heading the first row might be one
        return "tag"
    try:
        values = [_parse_list(cell) for cell in sample]
    except InputError:
        return ""
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    if items and all(type(item) is int or (isinstance(item, str) and is_tag(item)) for item in items):
        return "list"
    return "offsets" if filled and all(isinstance(item, (list, dict)) for item in items) else ""


def _detect_numbers_and_scheme(path: Path, dialect: TableDialect) -> dict[str, Any]:
    """Whether the column of sentences numbers all of them, one after the other, and how; and the tag scheme."""
    is_numbered = dialect.rows == "tokens" and bool(dialect.sentence_column)
    detected: dict[str, Any] = {"ids": True} if is_numbered else {}
    numbers: set[tuple[str, int]] = set()
    detector = SchemeDetector()
    for number, group in enumerate(_groups_of(path, dialect)):
        rows = [dict(zip(dialect.columns, cells, strict=False)) for _, cells in group]
        if is_numbered:
            match = _NUMBERED.fullmatch(rows[0].get(dialect.sentence_column, ""))
            numbers.add((match[1], int(match[2]) - number) if match else ("", -1))
            is_numbered = len(numbers) == 1
        if dialect.is_tagged and not detector.is_decided:
            tags = [row.get(dialect.labels_column, "O").strip() for row in rows]
            try:
                detector.update(tags if dialect.rows == "tokens" else map(str, _tags_of(tags[0], dialect.names)))
            except InputError:
                continue  # reported when it is read
        elif not is_numbered:
            break
    if is_numbered and numbers:
        [(prefix, first)] = numbers
        if first in (0, 1):
            detected = {"ids": False, "number_prefix": prefix, "number_from": first}
    return detected | ({"scheme": detector.scheme()} if dialect.is_tagged else {})


# ------------------------------------------------------------------------------------------------------------- writing


def _columns_of(sentences: Sequence[Sentence], dialect: TableDialect) -> tuple[str, ...]:
    """The columns of a table that is written."""
    further = dict.fromkeys(name for sentence in sentences for name in sentence.columns)
    first = [dialect.sentence_column] if dialect.sentence_column else []
    if dialect.rows == "sentences":
        first = first if any(sentence.id is not None for sentence in sentences) else []
        further |= dict.fromkeys(name for s in sentences for name in s.fields if _is_written(name, s))
        if dialect.cells == "offsets" and dialect.tokens:
            further = {"tokens": None} | further
        elif dialect.text_column and dialect.cells != "offsets" and any(s.spaces is not None for s in sentences):
            further = {dialect.text_column: None} | further
    own = dialect.columns or (*first, dialect.words_column, dialect.labels_column)
    return tuple(dict.fromkeys((*own, *first, *(further if dialect.has_heading else ()))))


def _id_cells(sentences: Sequence[Sentence], dialect: TableDialect) -> Iterator[str]:
    """The cell of each sentence: its id, or its number in the table."""
    taken = {sentence.id for sentence in sentences}
    numbers = (f"{dialect.number_prefix}{number}" for number in count(dialect.number_from))
    for sentence in sentences:
        if sentence.id is None:
            yield next(number for number in numbers if number not in taken)
            continue
        next(numbers)
        document = sentence.columns.get(dialect.document) if dialect.document else None
        yield sentence.id.removeprefix(f"{document[0]}:" if document else "")


def _is_written(name: str, sentence: Sentence) -> bool:
    """Whether a field of a sentence has a column; white space before the text is part of the text."""
    return name not in (BEFORE, ENTITY_FIELDS) and (isinstance(sentence.fields[name], str) or name in _JSON_FIELDS)


def _rows_of(sentence: Sentence, id_: str, columns: Sequence[str], dialect: TableDialect) -> Iterator[list[str]]:
    """The rows of a sentence, each a cell for each column."""
    tags = encode_canonical(len(sentence), sentence.mentions, dialect.scheme) if dialect.is_tagged else []
    words, labels = dialect.words_column, dialect.labels_column
    if dialect.rows == "tokens":
        n = len(sentence)
        ids = [id_] * n if dialect.repeated else [id_] + [""] * (n - 1)
        values = {**sentence.columns, words: sentence.tokens, labels: tags, dialect.sentence_column: ids}
        yield from (list(row) for row in zip(*(values.get(name, [""] * n) for name in columns), strict=True))
        return

    def as_json(value: Any) -> str:
        return to_json(value, sentence.key).decode()

    fields = {name: value for name, value in sentence.fields.items() if _is_written(name, sentence)}
    record = {name: as_json(value) if name in _JSON_FIELDS else value for name, value in fields.items()}
    record |= {name: as_json(list(values)) for name, values in sentence.columns.items()}
    record[dialect.sentence_column] = sentence.id or ""
    if dialect.cells == "offsets":
        record[words], spans = layout_text(sentence)
        record[labels] = as_json([[start, end, label] for label, start, end, _ in char_spans(sentence, spans)])
        if dialect.tokens:
            record["tokens"] = as_json(sentence.tokens)
    else:
        if dialect.text_column and sentence.spaces is not None:
            record[dialect.text_column] = sentence.text
        is_lists = dialect.cells == "lists"
        record[words] = as_json(sentence.tokens) if is_lists else " ".join(sentence.tokens)
        record[labels] = as_json(tags) if is_lists else " ".join(tags)
    yield [record.get(name, "") for name in columns]


# -------------------------------------------------------------------------------------------------------------- format

_SAMPLE = 2000  # rows from which the layout is detected


class Table(BufferedFormat):
    """The format of tables; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "table"
    title = "a table (CSV, TSV, Excel)"
    extensions = (".csv", ".tsv", ".xlsx")
    # Fields and white space have a place only where a row is a sentence; see `lost`.
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=False, spaces=False)
    dialect_class = TableDialect

    def recognises(self, path: Path) -> bool:
        if path.is_dir():
            return False
        if _is_workbook(path):
            return True
        data = read_beginning(path)
        text = data.decode(_marked_encoding(data), "replace")
        separator, cells = _first_row(text)
        if "\0" in text or data.startswith(_ZIP) or len(cells) < 2:
            return False
        is_csv = separator != "tab" and extension_of(path) == ".csv"
        if any(is_tag(cell.strip()) for cell in cells):
            return is_csv
        names = set(map(_normal_name, cells))
        # What else could a file named .csv be? As a table, its error names the columns.
        return is_csv or not (names.isdisjoint(_LABEL_NAMES) or names.isdisjoint(_WORD_NAMES))

    def detect(self, path: Path, dialect: TableDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        detected = {} if _is_workbook(path) else _detect_characters(path, dialect, options)
        dialect = replace(dialect, **detected)
        rows = [row for row in islice(_read_rows(path, dialect), _SAMPLE) if row[1]]
        if not rows:
            raise no_sentences(path)
        try:
            detected |= _detect_columns(rows, dialect, options)
        except InputError as error:
            error.locate(str(path), rows[0][0])
            raise
        return detected | _detect_numbers_and_scheme(path, replace(dialect, **detected))

    def sentences(self, path: Path, dialect: TableDialect, reading: ReadReport) -> Iterator[Sentence]:
        def parse(_number: int, group: list[Row]) -> Iterable[Sentence]:
            _check_widths(group, dialect)
            if dialect.rows == "tokens":
                return (_parse_tokens(group, dialect, reading),)
            return _parse_sentence(dict(zip(dialect.columns, group[0][1], strict=True)), dialect, reading)

        return read_records(
            path, ((group[0][0], group) for group in _groups_of(path, dialect, reading)), parse, reading
        )

    def check(self, sentence: Sentence, dialect: TableDialect) -> None:
        super().check(sentence, dialect)
        as_stored = self.as_stored(sentence, dialect)
        if dialect.is_tagged:
            tables = "where a row is a sentence (`rows='sentences'`)"
            keeping = "keep some with `overlap='outermost'`"
            self.check_flat(as_stored, f"write JSON lines, or a table {tables}, or {keeping}")
        subject = f"sentence {sentence.key}"
        if dialect.rows == "tokens":
            check_label_edges(as_stored)
        elif dialect.cells == "strings":
            for text in (*sentence.tokens, *(mention.label for mention in as_stored.mentions)):
                if text.split() != [text]:
                    raise LossError(f"{text!r} holds white space", path=subject, remedy="write cells=lists or offsets")
        for row in _rows_of(as_stored, sentence.id or "", _columns_of([as_stored], dialect), dialect):
            for cell in row:
                _check_cell(cell, dialect, subject)

    def lost(self, sentence: Sentence, dialect: TableDialect) -> list[str]:
        taken = {dialect.words_column, dialect.labels_column, dialect.sentence_column}
        if not dialect.has_heading:
            taken |= sentence.columns.keys() - set(dialect.columns)
        lost = [f"column {name!r}" for name in sentence.columns if name in taken]
        lost += ["id"] * (sentence.id is not None and not dialect.sentence_column)
        lost += ["fields of mentions"] * any(sentence.fields.get(ENTITY_FIELDS) or ())
        if dialect.rows == "tokens":
            lost += [f"field {name!r}" for name in sentence.fields if name != ENTITY_FIELDS]
            return lost + ["text"] * (sentence.spaces is not None)
        if dialect.cells != "offsets":
            lost += ["text"] * (sentence.spaces is not None and not dialect.text_column)
        taken |= {*sentence.columns, "tokens" if dialect.cells == "offsets" and dialect.tokens else ""}
        for name, value in sentence.fields.items():
            if name in taken or not (isinstance(value, str) or name in _JSON_FIELDS):
                lost.append(f"field {name!r}")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: TableDialect) -> None:
        kept = [self.as_stored(sentence, dialect) for sentence in sentences]
        columns = _columns_of(kept, dialect)

        def rows() -> Iterator[list[str]]:
            if dialect.has_heading:
                yield list(columns)
            for number, (sentence, id_) in enumerate(zip(kept, _id_cells(kept, dialect), strict=True)):
                if number and dialect.rows == "tokens" and dialect.empty_rows:
                    yield []
                yield from _rows_of(sentence, id_, columns, dialect)

        if extension_of(path) == ".xlsx":
            _write_workbook(path, rows(), dialect.sheet)
            return
        own = replace(dialect, separator=dialect.separator or _separator_of(path))
        for name in columns if dialect.has_heading else ():
            _check_cell(name, own, "the heading")
        delimiter = SEPARATORS[own.separator]
        with atomic_file(path) as out:
            text = io.TextIOWrapper(out, encoding=dialect.encoding, newline="")
            for row in rows():
                text.write((_quoted_row(row, delimiter) if dialect.quoted else delimiter.join(row)) + "\n")
            text.flush()
            text.detach()
