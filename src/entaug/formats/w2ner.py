"""The input format of the code of W2NER: one JSON array with an object per sentence.

``sentence`` holds the tokens, and ``ner`` an object per mention with ``index``, the positions of its tokens in order,
and ``type``. All other fields are kept, also those of mentions; that code does not read them.

Li et al. (2022), Unified Named Entity Recognition as Word-Word Relation Classification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention, Span
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.label_fields import note_no_labels
from entaug.formats.records import as_object, peek_records, read_array, read_records, to_json, write_array
from entaug.formats.token_records import (
    add_entity_fields,
    check_tokens,
    entity_fields,
    pop_columns,
    pop_id,
    pop_spaces,
    unique_mentions,
    without,
)

_OF_MENTION = ("index", "type")
_OF_SOURCE = ("word",)  # the words among Chinese characters, which augmented sentences do not inherit
_MENTION = 'write {"index": [0], "type": "X"}'


@dataclass(frozen=True)
class W2nerDialect:
    """The only layout of W2NER's files."""

    def describe(self) -> str:
        """Return a description of the layout."""
        return "W2NER's JSON array"


class W2ner(BufferedFormat):
    """The format of W2NER; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "w2ner"
    title = "W2NER's JSON"
    extensions = (".json",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    dialect_class = W2nerDialect
    reserved_fields = ("sentence", "ner")

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`."""
        # Whether it is an array whose first element is an object with `sentence` and `ner`.
        records, is_array = peek_records(path, 1)
        first = records[0] if is_array and records and type(records[0]) is dict else {}
        tokens, mentions = first.get("sentence"), first.get("ner")
        return (
            type(tokens) is list
            and type(mentions) is list
            and {*map(type, tokens[:1])} <= {str}
            and {*map(type, mentions[:1])} <= {dict}
        )

    def sentences(self, path: Path, dialect: W2nerDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`."""
        del dialect

        def parse(_number: int, record: Any) -> Iterable[Sentence]:
            return _parse(as_object(record, 'write {"sentence": [], "ner": []}'), reading)

        return read_records(path, read_array(path, lambda _: False), parse, reading, unit="sentence")

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: W2nerDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`."""
        del dialect
        records = (to_json(_record(sentence), sentence.key) for sentence in sentences)
        write_array(path, records, start=b"[", end=b"]\n")


def _parse(record: dict[str, Any], reading: ReadReport) -> Iterator[Sentence]:
    tokens, entities = check_tokens(record.get("sentence"), "sentence"), record.get("ner", [])
    if type(entities) is not list:
        raise InputError("'ner' is not a list", remedy='write [{"index": [0], "type": "X"}]')
    if not tokens and not entities:
        reading.notes["empty sentence left out"] += 1
        return
    if "ner" not in record:
        note_no_labels(record, (), reading, "as 'ner'")
    mentions = unique_mentions(
        [(_mention(entity, reading), without(entity, _OF_MENTION)) for entity in entities], reading
    )
    meta = without(record, W2ner.reserved_fields)
    id_ = pop_id(meta)
    if meta.get("id") is not None:
        raise InputError(f"'id' must be a string, not {meta['id']!r}", remedy="correct it")
    columns, spaces = pop_columns(meta, len(tokens)), pop_spaces(meta, tokens)
    meta.pop(ENTITY_FIELDS, None) if any(mentions.values()) else None
    add_entity_fields(meta, mentions.values())
    yield Sentence(tokens, mentions, id_, columns=columns, spaces=spaces, **split_fields(meta))


def _mention(entity: Any, reading: ReadReport) -> Mention:
    if type(entity) is not dict:
        raise InputError(f"a mention must be an object, not {entity!r}", remedy=_MENTION)
    index, label = entity.get("index"), entity.get("type")
    if type(label) is not str:
        raise InputError(f"a mention without a type: {entity}", remedy=_MENTION)
    if type(index) is not list or not index or set(map(type, index)) != {int}:
        raise InputError(f"'index' of a mention must be a list of whole numbers, not {index!r}", remedy=_MENTION)
    positions = sorted(set(index))
    if index != positions:
        if not reading.repair:
            what = f"'index' {index} is out of order"
            raise InputError(what, remedy="correct it, or pass --repair to put it in order")
        reading.repaired["tokens of a mention put in order"] += 1
    return Mention(label, _to_spans(positions))


def _to_spans(positions: list[int]) -> tuple[Span, ...]:
    """Convert positions in increasing order to spans."""
    ends = [i for i, (position, following) in enumerate(pairwise(positions), start=1) if following != position + 1]
    bounds = [0, *ends, len(positions)]
    return tuple((positions[a], positions[b - 1] + 1) for a, b in pairwise(bounds))


def _record(sentence: Sentence) -> dict[str, Any]:
    record: dict[str, Any] = {"sentence": sentence.tokens}
    record["ner"] = [
        {"index": mention.positions(), "type": mention.label} | without(fields, _OF_MENTION)
        for mention, fields in zip(sentence.mentions, entity_fields(sentence), strict=True)
    ]
    if sentence.id is not None:
        record["id"] = sentence.id
    if sentence.spaces is not None:
        record["text"] = sentence.text
    if sentence.columns:
        record["columns"] = dict(sentence.columns)
    excluded = {*W2ner.reserved_fields, *(_OF_SOURCE if sentence.provenance is not None else ())}
    if any(entity_fields(sentence)):
        excluded.add(ENTITY_FIELDS)
    for name, value in sentence.fields.items():
        if name not in excluded:
            record.setdefault(name, value)
    return record
