"""doccano: JSON lines with a text and labelled character ranges.

A line has a ``text`` (``data`` in some exports) and, under ``label`` or ``labels``, a list of ``[start, end, label]``;
or under ``entities`` objects with ``id``, ``label``, ``start_offset`` and ``end_offset`` (in projects with relations)
or such lists (in projects with intents). Files of others with such lists, or with objects of ``start``, ``end`` and
``label``, are read too, also under ``spans``, ``annotations``, ``mentions`` or ``ner``, as lines, as a JSON array or as
``{"train": [...], "dev": [...]}``. Its other export has ``annotations`` with numbers of labels, without their names; it
cannot be read. doccano counts offsets in UTF-16 units, or in grapheme clusters where a project counts these; files that
Python programs write for it often count characters. What a file counts is detected. doccano treats all other fields as
metadata and exports them unchanged, so tokens and provenance are stored there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.formats.base import ReadReport
from entaug.formats.records import peek_records, to_json
from entaug.formats.text import Document, counter
from entaug.formats.text_records import (
    TextLines,
    TextOptions,
    char_spans,
    layout_text,
    numeric_id,
    parse_mention,
    token_spans,
)
from entaug.formats.token_records import (
    add_other_fields,
    entity_fields,
    is_entity,
    note_no_labels,
    pop_id,
    without,
)

_Field = Literal["label", "labels", "entities", "annotations", "mentions", "entity_mentions", "spans", "ner"]
_FIELDS: tuple[str, ...] = get_args(_Field)
_OF_MENTION = ("label", "start_offset", "end_offset", "start", "end")
# Relations refer to the ids of entities, which a new text does not have.
_OF_SOURCE = ("relations", "Comments", "comments")


@dataclass(frozen=True)
class DoccanoDialect(TextOptions):
    """Layout of a file of doccano.

    Args:
        field: the field that holds the labels.
        objects: whether a label is an object; otherwise it is a list of start, end and label.
        text: the field that holds the text.
        tokens: whether to write the tokens in addition to the text, so that the same tokens are read back.
    """

    field: _Field = "label"
    objects: bool = False
    text: str = "text"
    tokens: bool = True

    def describe(self) -> str:
        form = "objects" if self.objects else "[start, end, label]"
        return f"doccano, {form} in {self.field!r}{self.offsets_text}"


class Doccano(TextLines):
    """The format of doccano; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "doccano"
    title = "doccano"
    dialect_class = DoccanoDialect

    def matches(self, record: dict[str, Any]) -> bool | None:
        # Whether a record has a text and labels in the form of doccano; None if it has no label.
        if not any(type(record.get(name)) is str for name in ("text", "data")):
            return False
        lists = [record[name] for name in _FIELDS if type(record.get(name)) is list]
        tokens, spans = record.get("tokens"), record.get("spans")
        if type(spans) is list and spans and type(spans[0]) is dict:  # as Prodigy writes them
            lists.remove(spans)
        if any(_has_labels(value, tokens) for value in lists):
            return True
        # Several formats have empty lists; tokens with entities are JSON lines.
        is_empty = any(record.get(name) == [] for name in ("label", "labels", "entities"))
        return None if is_empty and not {"tokens", "entities"} <= record.keys() else False

    def detect(self, path: Path, dialect: DoccanoDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        detected: dict[str, Any] = {}
        for record in peek_records(path, 20)[0]:
            if type(record) is not dict:
                continue
            if "text" not in record and type(record.get("data")) is str:
                detected["text"] = "data"
            if field := _field_of(record):
                return detected | {"field": field, "objects": type(record[field][0]) is dict}
            if field := next((name for name in _FIELDS if type(record.get(name)) is list), None):
                detected.setdefault("field", field)
        return detected

    def parse(self, record: dict[str, Any], dialect: DoccanoDialect, reading: ReadReport) -> Document:
        key = dialect.text if dialect.text in record else "data" if "data" in record else "text"
        text = record.get(key)
        if type(text) is not str:
            remedy = "give it a string 'text'" if key in record else 'write {"text": ..., "label": [...]}'
            raise InputError(f"no string {key!r} in the object", remedy=remedy)
        field: str = dialect.field
        if field not in record:
            field = _field_of(record) or field
        if field not in record:
            note_no_labels(record, reading, "`field=NAME`")
        labels = record.get(field, [])
        if type(labels) is not list:
            raise InputError(f"{field!r} is not a list", remedy="write [[start, end, label], ...]")
        if any(type(label) is dict and type(label.get("label")) is int for label in labels):
            what = f"doccano's export with the numbers of labels ({field!r}), which does not hold their names"
            raise InputError(what, remedy="export the project as JSONL with text labels, which has them under 'label'")
        spans = token_spans(record.get("tokens"), text, reading)
        fields = without(record, (key, field) if spans is None else (key, field, "tokens"))
        id_ = pop_id(fields, is_checked=True)
        return Document(text, [parse_mention(label) for label in labels], id_, fields, token_spans=spans)

    def dump(self, sentence: Sentence, dialect: DoccanoDialect) -> str:
        self.check_contiguous(sentence)
        text, spans = layout_text(sentence)
        count = counter(text, dialect.offsets)
        record: dict[str, Any] = {} if sentence.id is None else {"id": numeric_id(sentence.id)}
        record[dialect.text] = text
        record[dialect.field] = [
            {**fields, "label": label, "start_offset": start, "end_offset": end}
            if dialect.objects
            else (start, end, label)
            for label, start, end, fields in char_spans(sentence, spans, _OF_MENTION, count)
        ]
        if dialect.tokens:
            record["tokens"] = sentence.tokens
        add_other_fields(sentence, record, _OF_SOURCE)
        return to_json(record, sentence.key).decode() + "\n"

    def lost(self, sentence: Sentence, dialect: DoccanoDialect) -> list[str]:
        # Columns, fields whose names are in use, and, if labels are lists, all fields of mentions.
        names = {name for fields in entity_fields(sentence) for name in fields}
        if dialect.objects:
            names.intersection_update(_OF_MENTION)
        lost = super().lost(sentence, dialect) + sorted(f"field {name!r} of mentions" for name in names)
        taken = {dialect.text, dialect.field, *(("tokens",) if dialect.tokens else ())}
        return lost + [f"field {name!r}" for name in sentence.fields if name in taken]


def _field_of(record: Mapping[str, Any]) -> str | None:
    """The first field that holds labels."""
    return next((name for name in _FIELDS if _has_labels(record.get(name), record.get("tokens"))), None)


def _has_labels(value: Any, tokens: Any) -> bool:
    """Whether a value is a list of labels by characters: objects, or lists as doccano writes them."""
    if type(value) is not list or not value:
        return False
    label = value[0]
    if type(label) is not dict:
        return is_entity(label)
    if "start_offset" in label and "end_offset" in label:
        return True
    # Where there are tokens, offsets count these, unless they are too large.
    ends: list[int] = [one["end"] for one in value if type(one) is dict and type(one.get("end")) is int]
    return (
        is_entity(label) and "spans" not in label and (type(tokens) is not list or max(ends, default=0) > len(tokens))
    )
