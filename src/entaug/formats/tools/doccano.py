"""doccano: JSON lines with a text and the places of its labels.

A line has a ``text`` (``data`` in some exports) and, under ``label`` or ``labels``, a list of ``[start, end, label]``;
or ``entities``, objects with ``id``, ``label``, ``start_offset`` and ``end_offset`` (of projects with relations), or
lists as before (of projects with intents). Offsets count characters (code points). What else a line holds doccano
takes for metadata, which it gives back on export: so our tokens and where a sentence comes from survive there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.formats.base import Reading
from entaug.formats.documents import CharMention, Cutting, Text
from entaug.formats.records import (
    TextLines,
    beginnings,
    char_mention,
    entity_fields,
    fields_of,
    is_augmented,
    laid_out,
    left_over,
    name_of,
    number_or_name,
    refuse_gaps,
    tokens_beside,
    without_place,
    written,
)

__all__ = ["Doccano", "DoccanoDialect"]

_FIELDS = ("label", "labels", "entities")
_PLACE = ("label", "start_offset", "end_offset")
# Relations name the ids of entities: doccano would look for those of the source in a new text.
_OF_THE_SOURCE = frozenset(("relations", "Comments", "comments"))


@dataclass(frozen=True)
class DoccanoDialect(Cutting):
    """How a file of doccano is laid out.

    Args:
        language: see `entaug.formats.documents.Cutting`, and so `split` and `misaligned`.
        field: what the labels stand under: ``"label"``, ``"labels"`` or ``"entities"``.
        objects: whether a label is an object; else it is a list of start, end and label.
        text: what the text stands under.
        tokens: whether to write the tokens beside the text, so that the same are read again.
    """

    field: str = "label"
    objects: bool = False
    text: str = "text"
    tokens: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.field not in _FIELDS:
            raise ParameterError(f"field must be one of {', '.join(_FIELDS)}, not {self.field!r}")

    def describe(self) -> str:
        """One line for people."""
        return f"doccano, {'objects' if self.objects else '[start, end, label]'} in {self.field!r}"


class Doccano(TextLines):
    """The format of doccano; see `entaug.formats.base.Format` for the methods."""

    name = "doccano"
    title = "doccano"

    def tells(self, record: dict[str, Any]) -> bool | None:
        """Whether a record has a text and labels as doccano writes them; None where it has no label."""
        if not any(type(record.get(key)) is str for key in ("text", "data")):
            return False
        found = [record[key] for key in _FIELDS if type(record.get(key)) is list]
        if any(_is_place(value[0]) for value in found if value):
            return True
        # Empty lists may be anybody's; but tokens and entities are our own JSON lines.
        return None if any(not value for value in found) and not {"tokens", "entities"} <= record.keys() else False

    def dialect(self, **options: Any) -> DoccanoDialect:
        """A dialect from options given by hand."""
        return DoccanoDialect(**{name: value for name, value in options.items() if value is not None})

    def look(self, path: Path, **options: Any) -> DoccanoDialect:
        """Find the layout from the first label; faults are left for reading to tell."""
        found: dict[str, Any] = {}
        for record in beginnings(path):
            if type(record) is not dict:
                continue
            if "text" not in record and type(record.get("data")) is str:
                found["text"] = "data"
            for field in _FIELDS:
                value = record.get(field)
                if type(value) is list and value and _is_place(value[0]):
                    found |= {"field": field, "objects": type(value[0]) is dict}
                    break
                if type(value) is list and "field" not in found:
                    found["field"] = field
            if "objects" in found:
                break
        return replace(self.dialect(**options), **{k: v for k, v in found.items() if options.get(k) is None})

    def text_in(self, record: dict[str, Any], dialect: DoccanoDialect, reading: Reading) -> Text:
        """See `entaug.formats.records.TextLines`."""
        key = dialect.text if dialect.text in record else "data" if "data" in record else "text"
        text = record.get(key)
        if type(text) is not str:
            remedy = "give it a string 'text'" if key in record else 'write {"text": ..., "label": [...]}'
            raise InputError(f"no string {key!r} in the object", remedy=remedy)
        field = _field(record, dialect)
        places = record.get(field, [])
        if type(places) is not list:
            raise InputError(f"{field!r} is not a list", remedy="write [[start, end, label], ...]")
        tokens = tokens_beside(record.get("tokens"), text, reading)
        known = (key, field) if tokens is None else (key, field, "tokens")
        mentions = [_mention(place) for place in places]
        return Text(text, mentions, name_of(record), fields_of(record, known), places=tokens)

    def dump(self, sentence: Sentence, dialect: DoccanoDialect) -> str:
        """One line with the sentence as a JSON object.

        Raises:
            LossError: a mention is discontinuous; tokens that could not be found again in the text.
        """
        refuse_gaps(sentence, self.title)
        text, bounds = laid_out(sentence)
        record: dict[str, Any] = {} if sentence.id is None else {"id": number_or_name(sentence.id)}
        record[dialect.text] = text
        places: list[Any] = []
        if dialect.objects:
            said = entity_fields(sentence)
            for i, mention in enumerate(sentence.mentions):
                place = {} if said is None else without_place(said[i], _PLACE)
                start, end = bounds[mention.start][0], bounds[mention.end - 1][1]
                places.append({**place, "label": mention.label, "start_offset": start, "end_offset": end})
        else:
            places = [(bounds[m.start][0], bounds[m.end - 1][1], m.label) for m in sentence.mentions]
        record[dialect.field] = places
        if dialect.tokens:
            record["tokens"] = sentence.tokens
        left_over(sentence, record, _OF_THE_SOURCE if is_augmented(sentence) else ())
        return written(record, sentence.key) + "\n"

    def lost(self, sentence: Sentence, dialect: DoccanoDialect) -> list[str]:
        """Columns, and where labels are lists, what is said of a mention besides."""
        lost = [f"column {name!r}" for name in sentence.columns]
        said = entity_fields(sentence)
        if not dialect.objects and said is not None:
            lost += sorted({f"field {key!r} of mentions" for extra in said for key in extra})
        taken = {dialect.text, dialect.field, *(("tokens",) if dialect.tokens else ())}
        return lost + [f"field {key!r}" for key in sentence.fields if key in taken]


def _field(record: Mapping[str, Any], dialect: DoccanoDialect) -> str:
    """What the labels of a record stand under."""
    if dialect.field in record:
        return dialect.field
    others = (key for key in _FIELDS if type(record.get(key)) is list and record[key] and _is_place(record[key][0]))
    return next(others, dialect.field)


def _is_place(value: Any) -> bool:
    """Whether a value is where a label is, as doccano writes it."""
    if type(value) is dict:
        return "start_offset" in value and "end_offset" in value
    return type(value) is list and len(value) == 3 and type(value[0]) is int and type(value[2]) is str


def _mention(place: Any) -> CharMention:
    if type(place) is dict:
        fields = {key: value for key, value in place.items() if key not in _PLACE}
        return char_mention(place.get("label"), place.get("start_offset"), place.get("end_offset"), fields)
    if type(place) is not list or len(place) != 3:
        raise InputError(f"a label must be [start, end, label], not {place!r:.80}", remedy="mend the line")
    return char_mention(place[2], place[0], place[1], {})
