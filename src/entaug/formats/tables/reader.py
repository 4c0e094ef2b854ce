"""Reading sentences from the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence, split_fields
from entaug.core.tags import InvalidTag, decode_canonical
from entaug.errors import InputError, TagError
from entaug.formats.base import ReadReport
from entaug.formats.documents import CharMention, Document
from entaug.formats.segmentation import split_document
from entaug.formats.tables.cells import is_list, parse_list
from entaug.formats.tables.dialect import Row, TableDialect, is_json_field
from entaug.formats.text_records import char_mention, token_spans
from entaug.formats.token_records import decode_tags, pop_spaces

__all__ = ["check_widths", "parse_sentence", "parse_tokens", "single_rows", "tags_of_cell", "token_groups"]

_MAX_SENTENCE = 1000  # tokens of a table that nothing divides into sentences


def single_rows(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """The rows that hold something, each alone."""
    return ([row] for row in rows if row[1])


def token_groups(
    rows: Iterator[Row], dialect: TableDialect, reading: ReadReport | None, path: Path
) -> Iterator[list[Row]]:
    """The rows of each sentence."""
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
            remedy = "name the column that does: --layout sentence=NAME"
            raise InputError(what, path=str(path), line=group[0][0], remedy=remedy)
    if group:
        if not is_divided and len(group) > 1 and reading is not None:
            what = "neither empty rows nor a column (--layout sentence=NAME) divide the table: it is one sentence"
            reading.notes[what] += 1
        yield group


def check_widths(group: list[Row], dialect: TableDialect) -> None:
    """Raise InputError at a row without a cell in each column; empty cells after the last column are dropped."""
    width = len(dialect.columns)
    for line, cells in group:
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        if len(cells) != width:
            what = f"{len(cells)} cell{'s' * (len(cells) != 1)} where the table has {width} columns"
            raise InputError(what, line=line, remedy="correct the row, or quote the cell that holds a separator")


def parse_tokens(group: list[Row], dialect: TableDialect, reading: ReadReport) -> Sentence:
    """The sentence of rows of one token each."""
    columns = dict(zip(dialect.columns, zip(*(cells for _, cells in group), strict=True), strict=True))
    tokens, tags = columns.pop(dialect.words_column), [tag.strip() for tag in columns.pop(dialect.labels_column)]
    if "" in tokens:
        line = group[tokens.index("")][0]
        raise InputError("the token is empty", line=line, remedy="give it one, or delete the row")
    id_ = None
    if dialect.sentence_column:
        ids = columns.pop(dialect.sentence_column)
        id_ = next((cell for cell in ids if cell), None)
        if id_ and dialect.repeated and "" in ids:
            remedy = "fill it, or pass --layout repeated=false if only the first row of a sentence has it"
            what = f"no sentence in the column {dialect.sentence_column!r}"
            raise InputError(what, line=group[ids.index("")][0], remedy=remedy)
    if not dialect.ids:
        id_ = None
    elif id_ and dialect.document:
        id_ = f"{columns[dialect.document][0]}:{id_}"
    if dialect.names:
        tags = [_name_of(_number(tag), dialect.names) for tag in tags]
    try:
        mentions = decode_canonical(tags, dialect.scheme, reading.repaired if reading.repair else None)
    except InvalidTag as fault:
        raise TagError(fault.message, line=group[fault.index][0], remedy=fault.remedy) from None
    further = {name: values for name, values in columns.items() if any(values)}
    return Sentence(tokens, mentions, id_, columns=further)


def parse_sentence(record: dict[str, Any], dialect: TableDialect, reading: ReadReport) -> Iterable[Sentence]:
    """The sentences of a row of one text."""
    words, labels = record.pop(dialect.words_column), record.pop(dialect.labels_column)
    id_ = record.pop(dialect.sentence_column, "") or None
    if not labels.strip():
        reading.notes[f"empty cell in the column {dialect.labels_column!r}, read as a text without mentions"] += 1
    fields: dict[str, Any] = {name: cell for name, cell in record.items() if cell != ""}
    for name in filter(is_json_field, tuple(fields)):
        fields[name] = parse_list(fields[name])
    if dialect.cells == "offsets":
        spans = None
        if has_tokens := is_list(fields.get("tokens", "")):
            spans = token_spans(parse_list(fields["tokens"]), words, reading)
        if has_tokens and spans is not None:
            del fields["tokens"]
        mentions = [_char_mention(item) for item in _items(labels)]
        sentences = split_document(Document(words, mentions, id_, fields, token_spans=spans), dialect, reading)
        if not sentences:
            reading.notes["text of white space alone left out"] += 1
        return [_with_columns(sentence) for sentence in sentences] if len(sentences) == 1 else sentences
    tokens = parse_list(words) if is_list(words) else words.split()
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise InputError(f"no list of words in {dialect.words_column!r}", remedy='write ["Ada", "sang"]')
    tags = tags_of_cell(labels, dialect.names) if labels.strip() else ["O"] * len(tokens)
    if len(tags) != len(tokens):
        what = f"{len(tags)} tags for {len(tokens)} words"
        raise InputError(what, remedy="correct the row; words that hold spaces need a list")
    spaces = pop_spaces(fields, tokens) if dialect.text_column else None
    sentence = Sentence(tokens, decode_tags(tags, dialect.scheme, reading), id_, spaces=spaces, **split_fields(fields))
    return (_with_columns(sentence),)


def _with_columns(sentence: Sentence) -> Sentence:
    """The sentence with the fields as columns that hold a list of one value a token."""
    columns = {}
    for name, value in sentence.meta.items():
        if isinstance(value, str) and is_list(value):
            try:
                items = parse_list(value)
            except InputError:
                continue
            if len(items) == len(sentence) and all(isinstance(item, str) for item in items):
                columns[name] = tuple(items)
    if not columns:
        return sentence
    meta = {name: value for name, value in sentence.meta.items() if name not in columns}
    return sentence.with_(meta=meta, columns=columns)


def tags_of_cell(cell: str, names: Sequence[str]) -> list[Any]:
    """The tags in a cell: those of a list, or those between spaces."""
    tags = parse_list(cell) if is_list(cell) else [_number(tag) if names else tag for tag in cell.split()]
    return [_name_of(tag, names) for tag in tags]


def _number(tag: str) -> int | str:
    """The number that a tag is; other tags as they are."""
    return int(tag) if tag.isdecimal() and len(tag) < 10 else tag


def _name_of(tag: Any, names: Sequence[str]) -> Any:
    """The name of a tag that is a number; an error where it has none."""
    if type(tag) is not int:
        return tag
    if not 0 <= tag < len(names):
        what = f"the number {tag} has no name" if names else f"the tags are numbers ({tag}) without names"
        raise InputError(what, remedy="give them in order: --layout names=O,B-PER,I-PER")
    return names[tag]


def _items(cell: str) -> list[Any]:
    """The mentions in a cell."""
    value = parse_list(cell) if cell.strip() else []
    if isinstance(value, dict):
        value = value.get("entities", value.get("spans"))
    if not isinstance(value, list):
        raise InputError(f"no list of mentions: {cell!r:.60}", remedy="write [[start, end, label], ...]")
    return value


def _char_mention(item: Any) -> CharMention:
    """A mention ``[start, end, label]``, or an object with these fields."""
    if isinstance(item, dict):
        label = next((item[name] for name in ("label", "type", "labels", "entity_type") if name in item), None)
        label = label[0] if isinstance(label, list) and len(label) == 1 else label
        start, end = (item.get(name, item.get(f"{name}_offset")) for name in ("start", "end"))
        known = ("label", "type", "labels", "entity_type", "start", "end", "start_offset", "end_offset", "text")
        return char_mention(label, start, end, {name: value for name, value in item.items() if name not in known})
    if not isinstance(item, list) or len(item) != 3:
        raise InputError(f"a mention must be [start, end, label], not {item!r:.60}", remedy="correct the row")
    return char_mention(item[2], item[0], item[1], {})
