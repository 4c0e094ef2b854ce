"""Writing sentences as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from entaug.core.data import Sentence
from entaug.core.tags import encode_canonical
from entaug.formats.base import ENTITY_FIELDS
from entaug.formats.documents import BEFORE
from entaug.formats.records import to_json
from entaug.formats.tables.dialect import TableDialect, is_json_field
from entaug.formats.text_records import char_spans, layout_text

__all__ = ["Places", "rows_of"]


class Places:
    """The columns of a table that is written, and numbers for sentences without an id."""

    def __init__(self, sentences: Sequence[Sentence], dialect: TableDialect) -> None:
        words, labels, id_ = dialect.words_column, dialect.labels_column, dialect.sentence_column
        further = dict.fromkeys(name for sentence in sentences for name in sentence.columns)
        if dialect.rows == "tokens":
            first = [id_] if id_ else []
        else:
            has_id = any(sentence.id is not None for sentence in sentences)
            first = [id_] if has_id else []
            further |= dict.fromkeys(name for s in sentences for name in s.fields if _is_written(name, s))
            if dialect.cells == "offsets" and dialect.tokens:
                further = {"tokens": None} | further
            elif dialect.text_column and dialect.cells != "offsets" and any(s.spaces is not None for s in sentences):
                further = {dialect.text_column: None} | further
        own = dialect.columns or (*first, words, labels)
        if not dialect.has_heading:
            further = {}
        self.names = tuple(dict.fromkeys((*own, *first, *further)))
        self._ids = {sentence.id for sentence in sentences}
        self._count = 0
        self._number = dialect.number_from - 1

    @property
    def is_first(self) -> bool:
        """Whether the sentence that is written is the first."""
        return self._count == 1

    def number(self) -> str:
        """The number of the next sentence that has no id."""
        self._number += 1
        return str(self._number)

    def id_of(self, sentence: Sentence, dialect: TableDialect) -> str:
        """The cell of a sentence: its id, or its number in the table."""
        self._count += 1
        number = self.number()
        if sentence.id is None:
            while f"{dialect.number_prefix}{number}" in self._ids:
                number = self.number()
            return f"{dialect.number_prefix}{number}"
        document = sentence.columns.get(dialect.document) if dialect.document else None
        return sentence.id.removeprefix(f"{document[0]}:") if document else sentence.id


def _is_written(name: str, sentence: Sentence) -> bool:
    """Whether a field of a sentence has a column; white space before the text is part of the text."""
    value = sentence.fields[name]
    return name not in (BEFORE, ENTITY_FIELDS) and (isinstance(value, str) or is_json_field(name))


def rows_of(sentence: Sentence, dialect: TableDialect, places: Places) -> Iterator[list[str]]:
    """The rows of a sentence, each a cell for each column."""
    id_ = places.id_of(sentence, dialect)
    tags = encode_canonical(len(sentence), sentence.mentions, dialect.scheme) if dialect.is_tagged else []
    words, labels = dialect.words_column, dialect.labels_column
    if dialect.rows == "tokens":
        n = len(sentence)
        ids = [id_] * n if dialect.repeated else [id_] + [""] * (n - 1)
        columns = {**sentence.columns, words: sentence.tokens, labels: tags, dialect.sentence_column: ids}
        values = [columns.get(name, [""] * n) for name in places.names]
        if dialect.empty_rows and not places.is_first:
            yield []
        yield from (list(row) for row in zip(*values, strict=True))
        return
    record = {name: _json(list(values), sentence) for name, values in sentence.columns.items()}
    for name, value in sentence.fields.items():
        if _is_written(name, sentence):
            record.setdefault(
                name, value if isinstance(value, str) and not is_json_field(name) else _json(value, sentence)
            )
    record[dialect.sentence_column] = sentence.id or ""
    if dialect.cells == "offsets":
        record[words], spans = layout_text(sentence)
        record[labels] = _json([[start, end, label] for label, start, end, _ in char_spans(sentence, spans)], sentence)
        if dialect.tokens:
            record["tokens"] = _json(sentence.tokens, sentence)
    else:
        if dialect.text_column and sentence.spaces is not None:
            record[dialect.text_column] = sentence.text
        is_lists = dialect.cells == "lists"
        record[words] = _json(sentence.tokens, sentence) if is_lists else " ".join(sentence.tokens)
        record[labels] = _json(tags, sentence) if is_lists else " ".join(tags)
    yield [record.get(name, "") for name in places.names]


def _json(value: Any, sentence: Sentence) -> str:
    return to_json(value, sentence.key).decode()
