"""doccano: JSON lines with a text and labelled character ranges.

A line has a ``text`` (``data`` in some exports) and, under ``label`` or ``labels``, a list of ``[start, end, label]``;
or under ``entities`` objects with ``id``, ``label``, ``start_offset`` and ``end_offset`` (in projects with relations)
or such lists (in projects with intents). Its other export has ``annotations`` with numbers of labels, without their
names; it cannot be read. doccano counts offsets in UTF-16 units, or in grapheme clusters where a project counts these;
files that Python programs write for it often count characters. What a file counts is detected. doccano treats all other
fields as metadata and exports them unchanged, so tokens and provenance are stored there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from entaug.data import Sentence
from entaug.errors import InputError
from entaug.formats.base import Reading
from entaug.formats.documents import CharMention, Document
from entaug.formats.offsets import counter
from entaug.formats.records import peek_records, to_json
from entaug.formats.segmentation import OffsetOptions
from entaug.formats.text_records import (
    TextLines,
    add_other_fields,
    char_mention,
    char_spans,
    layout_text,
    numeric_id,
    text_record,
    token_spans,
)
from entaug.formats.token_records import entity_fields, without

__all__ = ["Doccano", "DoccanoDialect"]

_FIELDS = ("label", "labels", "entities")
_NUMBERED = "annotations"
_OF_MENTION = ("label", "start_offset", "end_offset")
# Relations refer to the ids of entities, which a new text does not have.
_OF_SOURCE = ("relations", "Comments", "comments")


@dataclass(frozen=True)
class DoccanoDialect(OffsetOptions):
    """Layout of a file of doccano.

    Args:
        field: the field that holds the labels.
        objects: whether a label is an object; otherwise it is a list of start, end and label.
        text: the field that holds the text.
        tokens: whether to write the tokens in addition to the text, so that the same tokens are read back.
    """

    field: Literal["label", "labels", "entities"] = "label"
    objects: bool = False
    text: str = "text"
    tokens: bool = True

    def describe(self) -> str:
        """Return a description of the layout."""
        form = "objects" if self.objects else "[start, end, label]"
        return f"doccano, {form} in {self.field!r}{self.offsets_text}"


class Doccano(TextLines):
    """The format of doccano; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "doccano"
    title = "doccano"
    dialect_class = DoccanoDialect

    def matches(self, record: dict[str, Any]) -> bool | None:
        """See `entaug.formats.text_records.TextLines.matches`.

        Whether a record has a text and labels in the form of doccano; None if it has no label.
        """
        if not any(type(record.get(name)) is str for name in ("text", "data")):
            return False
        lists = [record[name] for name in _FIELDS if type(record.get(name)) is list]
        if any(map(_has_labels, lists)) or _has_labels(record.get(_NUMBERED)):
            return True
        # Several formats have empty lists; tokens with entities are JSON lines.
        return None if [] in lists and not {"tokens", "entities"} <= record.keys() else False

    def detect(self, path: Path, dialect: DoccanoDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: the fields of text and labels from the first label."""
        del dialect, options
        detected: dict[str, Any] = {}
        for record in peek_records(path, 20)[0]:
            if type(record) is not dict:
                continue
            if "text" not in record and type(record.get("data")) is str:
                detected["text"] = "data"
            if field := next((name for name in _FIELDS if _has_labels(record.get(name))), None):
                return detected | {"field": field, "objects": type(record[field][0]) is dict}
            if field := next((name for name in _FIELDS if type(record.get(name)) is list), None):
                detected.setdefault("field", field)
        return detected

    def parse(self, record: dict[str, Any], dialect: DoccanoDialect, reading: Reading) -> Document:
        """See `entaug.formats.text_records.TextLines`."""
        key = dialect.text if dialect.text in record else "data" if "data" in record else "text"
        text = record.get(key)
        if type(text) is not str:
            remedy = "give it a string 'text'" if key in record else 'write {"text": ..., "label": [...]}'
            raise InputError(f"no string {key!r} in the object", remedy=remedy)
        field: str = dialect.field
        if field not in record:
            field = next((name for name in _FIELDS if _has_labels(record.get(name))), field)
        if field not in record and _has_labels(record.get(_NUMBERED)):
            what = "doccano's export with the numbers of labels ('annotations'), which does not hold their names"
            raise InputError(what, remedy="export the project as JSONL with text labels, which has them under 'label'")
        labels = record.get(field, [])
        if type(labels) is not list:
            raise InputError(f"{field!r} is not a list", remedy="write [[start, end, label], ...]")
        spans = token_spans(record.get("tokens"), text, reading)
        known = (key, field) if spans is None else (key, field, "tokens")
        return text_record(text, [_mention(label) for label in labels], record, known, spans)

    def dump(self, sentence: Sentence, dialect: DoccanoDialect) -> str:
        """See `entaug.formats.base.BaseFormat.dump`: the sentence as one line.

        Raises:
            LossError: a mention is discontinuous, or the tokens cannot be located in the text.
        """
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
        """See `entaug.formats.base.BaseFormat.lost`.

        Columns, fields whose names are in use, and, if labels are lists, fields of mentions.
        """
        lost = super().lost(sentence, dialect)
        if not dialect.objects:
            names = {name for fields in entity_fields(sentence) for name in fields}
            lost += sorted(f"field {name!r} of mentions" for name in names)
        taken = {dialect.text, dialect.field, *(("tokens",) if dialect.tokens else ())}
        return lost + [f"field {name!r}" for name in sentence.fields if name in taken]


def _has_labels(value: Any) -> bool:
    """Whether a value is a list whose first element is a label as doccano writes it."""
    if type(value) is not list or not value:
        return False
    label = value[0]
    if type(label) is dict:
        return "start_offset" in label and "end_offset" in label
    return type(label) is list and len(label) == 3 and type(label[0]) is int and type(label[2]) is str


def _mention(label: Any) -> CharMention:
    if type(label) is dict:
        fields = without(label, _OF_MENTION)
        return char_mention(label.get("label"), label.get("start_offset"), label.get("end_offset"), fields)
    if type(label) is not list or len(label) != 3:
        raise InputError(f"a label must be [start, end, label], not {label!r:.80}", remedy="correct the line")
    return char_mention(label[2], label[0], label[1], {})
