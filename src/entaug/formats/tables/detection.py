"""Detection of the columns of a table, and what they hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from entaug.core.tags import SchemeDetector, is_tag
from entaug.errors import InputError
from entaug.formats.tables.cells import is_list, parse_list, read_rows
from entaug.formats.tables.dialect import Row, TableDialect
from entaug.formats.tables.reader import single_rows, tags_of_cell, token_groups

__all__ = ["LABEL_NAMES", "WORD_NAMES", "detect_columns", "detect_numbers", "detect_scheme", "normal_name"]

WORD_NAMES = ("word", "words", "token", "tokens", "form", "text", "sentence", "sentences", "sentence_text")
_TEXTS = ("text", "sentence", "sentence_text", "content")
LABEL_NAMES = (
    *("ner_tags", "ner_tag", "ner", "ner_labels", "ner_label", "entities", "entity", "labels", "label", "tags", "tag"),
    *("bio_tags", "bio_tag", "iob_tags", "iob_tag", "bio", "iob", "annotations", "spans", "ne", "ne_tag"),
)
_SENTENCES = (
    *("sentence_#", "sentence#", "sentence_id", "sent_id", "sentence_idx", "sentence_no", "sentence_number"),
    *("sentence_num", "sent_no", "sentid", "sentenceid", "sent", "sentence", "sid"),
)
_DOCUMENTS = ("document_id", "doc_id", "docid", "document", "doc", "document_#", "doc_#", "file_name", "filename")
_NUMBERED = re.compile(r"((?:sentence[\s:#]*)?)(0|[1-9][0-9]{0,17})", re.IGNORECASE)
_NAME_IT = "name them: --layout words=NAME --layout labels=NAME"


def normal_name(name: str) -> str:
    """The name of a column as it is compared."""
    return re.sub(r"[^\w#]+", "_", name.strip().lower()).strip("_")


def detect_columns(rows: list[Row], dialect: TableDialect, options: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the columns, and what they hold."""
    names = [name.strip() for name in rows[0][1]]
    has_heading = options.get("has_heading", not any(map(is_tag, names)))
    if has_heading:
        rows = rows[1:]
        while names and not names[-1]:  # spreadsheets end rows with empty cells
            names.pop()
        if len(set(names)) < len(names):
            name = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two columns {name!r}", remedy="rename one")
    else:
        names = [str(i) for i in range(len(names))]
    cells = {name: [row[i] if i < len(row) else "" for _, row in rows] for i, name in enumerate(names)}
    found = _ColumnNames(cells, options, has_heading=has_heading)
    detected: dict[str, Any] = {"has_heading": has_heading, "columns": tuple(names)}
    labels = detected["labels"] = found.labels(dialect.names)
    kind = _kind_of(cells[labels], dialect.names)
    is_token = options.get("rows", "tokens" if kind == "tag" else "sentences") == "tokens"
    detected["rows"] = "tokens" if is_token else "sentences"
    words = detected["words"] = found.words(labels, is_offsets=kind == "offsets")
    if not is_token:
        has_lists = any(is_list(cell) for cell in cells[words])
        detected["cells"] = "offsets" if kind == "offsets" else "lists" if has_lists or kind == "list" else "strings"
        if kind == "offsets" and has_lists:
            what = f"{words!r} holds lists of words, and {labels!r} positions of characters"
            raise InputError(what, remedy="name the column of texts: --layout words=NAME")
        if id_ := found.get("sentence", (*_SENTENCES, "id"), {words, labels}):
            detected["sentence"] = id_
        detected["tokens"] = "tokens" in names
        return detected
    sentence = found.get("sentence", _SENTENCES, {words, labels})
    if sentence:
        given = cells[sentence]
        detected |= {"sentence": sentence, "repeated": all(given)}
    detected["empty_rows"] = not sentence
    if document := found.get("document", _DOCUMENTS, {words, labels, sentence}):
        detected["document"] = document
    return detected


class _ColumnNames:
    """Finds columns by the options, their names and what they hold."""

    def __init__(self, cells: Mapping[str, list[str]], options: Mapping[str, Any], *, has_heading: bool) -> None:
        self._cells, self._options = cells, options
        self._has_heading = has_heading
        self._by_name = {normal_name(name): name for name in reversed(list(cells))}
        self._told = f"it has {', '.join(map(repr, cells))}"

    def get(self, option: str, known: Collection[str], taken: Collection[str]) -> str:
        """The column that an option names, or else the first of known names; empty without one."""
        given = self._options.get(option)
        if given:
            name: str | None = given if given in self._cells else self._by_name.get(normal_name(given))
            if name is None:
                raise InputError(f"no column {given!r}", remedy=f"name another: --layout {option}=NAME; {self._told}")
            return name
        return next((self._by_name[n] for n in known if n in self._by_name and self._by_name[n] not in taken), "")

    def labels(self, names: Sequence[str]) -> str:
        """The column of tags or mentions."""
        if "labels" in self._options:
            return self.get("labels", (), ())
        known = [self._by_name[name] for name in LABEL_NAMES if name in self._by_name]
        fitting = [name for name in known if _kind_of(self._cells[name], names)]
        if fitting:
            return fitting[0]
        # Without a known name only tags show what they are.
        others = [name for name in self._cells if name not in known and _kind_of(self._cells[name], ()) == "tag"]
        if len(others) == 1:
            return others[0]
        if known:
            cell = next((cell for cell in self._cells[known[0]] if cell.strip() and not is_tag(cell)), "")
            what = f"the column {known[0]!r} holds neither tags nor lists of mentions (first: {cell!r:.60})"
            remedy = "write tags such as B-PER, or [start, end, label]; numbers need --layout names=O,B-PER,I-PER"
            raise InputError(what, remedy=remedy)
        what = "no column of labels is known" if self._has_heading else "no heading, and no column of tags alone"
        raise InputError(f"{what}: {self._told}", remedy=_NAME_IT)

    def words(self, labels: str, *, is_offsets: bool) -> str:
        """The column of words or texts."""
        if name := self.get("words", (*_TEXTS, *WORD_NAMES) if is_offsets else WORD_NAMES, {labels}):
            return name
        others = [name for name in self._cells if name != labels]
        if len(others) == 1:
            return others[0]
        what = "no column of words is known" if self._has_heading else "no heading, and several columns"
        raise InputError(f"{what}: {self._told}", remedy="name it: --layout words=NAME")


def _kind_of(cells: Iterable[str], names: Sequence[str]) -> Literal["", "tag", "string", "list", "offsets"]:
    """The kind of labels in a column; empty where its cells are neither tags nor mentions."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    sample = filled[:100]
    if any(len(cell.split()) > 1 for cell in sample) and all(is_tag(tag) for cell in sample for tag in cell.split()):
        return "string"
    is_number = bool(names) and all(cell.isdecimal() for cell in filled)
    # A few cells may be faults, which reading reports.
    if filled and (is_number or sum(map(is_tag, filled)) >= 0.8 * len(filled)):
        return "tag"
    try:
        values = [parse_list(cell) for cell in sample]
    except InputError:
        return ""
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    if items and all(type(item) is int or (isinstance(item, str) and is_tag(item)) for item in items):
        return "list"
    return "offsets" if filled and all(isinstance(item, (list, dict)) for item in items) else ""


def detect_numbers(path: Path, dialect: TableDialect) -> dict[str, Any]:
    """Whether the column of sentences numbers all of them, one after the other, and how."""
    if dialect.rows != "tokens" or not dialect.sentence_column:
        return {}
    rows = read_rows(path, dialect)
    if dialect.has_heading:
        next(row for row in rows if row[1])
    column = dialect.columns.index(dialect.sentence_column)
    found: dict[str, Any] = {}
    for count, group in enumerate(token_groups(rows, dialect, None, path)):
        cells = group[0][1]
        number = _NUMBERED.fullmatch(cells[column]) if column < len(cells) else None
        first = int(number[2]) - count if number else -1
        told = {"ids": False, "number_prefix": number[1] if number else "", "number_from": first}
        if first not in (0, 1) or told != (found or told):
            return {"ids": True}
        found = told
    return found


def detect_scheme(path: Path, dialect: TableDialect, options: Collection[str]) -> dict[str, Any]:
    """The tag scheme, from as many rows as show it."""
    if "scheme" in options or not dialect.is_tagged:
        return {}
    detector = SchemeDetector()
    rows = read_rows(path, dialect)
    if dialect.has_heading:
        next(row for row in rows if row[1])
    column = dialect.columns.index(dialect.labels_column)
    groups = token_groups(rows, dialect, None, path) if dialect.rows == "tokens" else single_rows(rows)
    for group in groups:
        cells = [row[column].strip() if column < len(row) else "O" for _, row in group]
        try:
            detector.update(cells if dialect.rows == "tokens" else map(str, tags_of_cell(cells[0], dialect.names)))
        except InputError:
            continue  # reported when it is read
        if detector.is_decided:
            break
    return {"scheme": detector.scheme()}
