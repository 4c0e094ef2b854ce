"""JSON lines: one object per sentence, with ``tokens`` and ``entities``.

An entity has a ``type`` (or ``label``) and either ``start`` and ``end`` (exclusive) or ``spans``, a list of such
pairs. ``id`` is the id of the sentence; ``text`` gives the white space, if it consists of the tokens with white space
between them; ``columns`` holds further values per token. All other fields are kept. The format represents sentences
without loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, Literal

import orjson

from entaug.alignment import align_spaces
from entaug.corpus import is_made_key
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError, LossError
from entaug.files.streams import read_beginning, read_line_chunks
from entaug.formats.base import BEFORE, ENTITY_FIELDS, BaseFormat, FormatCapabilities, Reading, are_columns
from entaug.formats.records import json_type, no_sentences, parse_json, to_json
from entaug.mentions import contiguous_mention
from entaug.params import validate

__all__ = ["Jsonl", "JsonlDialect"]

_EXAMPLE = 'write {"tokens": [...], "entities": [...]}'
_SENTENCE_FIELDS = frozenset(("tokens", "entities", "id", "text", "columns"))
_LONG_NUMBER = re.compile(r"\d{19}")
_POSITION_FIELDS = frozenset(("start", "end", "spans"))


@dataclass(frozen=True)
class JsonlDialect:
    """Layout of a JSON lines file.

    Args:
        entities: how entities are located: ``"offsets"`` (``start`` and ``end``), ``"spans"``, or ``"mixed"``: offsets
            for contiguous entities and spans for discontinuous ones.
        label: the field that holds the type of an entity.
        ids: whether sentences have an ``id``; used in conversion to formats with optional ids.
        texts: whether sentences have a ``text``; used in conversion to formats with optional text.
    """

    entities: Literal["offsets", "spans", "mixed"] = "mixed"
    label: str = "type"
    ids: bool = False
    texts: bool = False

    def __post_init__(self) -> None:
        validate(self)

    def describe(self) -> str:
        """Return a description of the layout."""
        how = {"offsets": "start/end", "spans": "spans", "mixed": "start/end, spans where there are gaps"}
        return f"JSON lines, entities with {self.label} and {how[self.entities]}"


class Jsonl(BaseFormat):
    """The JSON lines format; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "jsonl"
    title = "JSON lines"
    extensions = (".jsonl", ".json", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    dialect_class = JsonlDialect
    is_divisible = True

    def recognises(self, path: Path) -> bool:
        """See `BaseFormat.recognises`: the first line begins like a JSON object or array."""
        for line in read_beginning(path).decode("utf-8-sig", "replace").splitlines():
            if line.strip():
                # A row of columns may begin with a bracket too, but it holds no quoted field name.
                return line.lstrip()[:1] in "{[" and ('"' in line or len(line.strip()) == 1)
        return False

    def detect(self, path: Path, dialect: JsonlDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `BaseFormat.detect`; the first entity of the file determines the layout."""
        del dialect, options
        detected: dict[str, Any] = {"ids": False, "texts": False}
        for _, lines in read_line_chunks(path):
            for line in lines:
                try:
                    record = orjson.loads(line)
                    id_ = record.get("id")
                    detected["ids"] = detected["ids"] or not (id_ is None or is_made_key(str(id_)))
                    detected["texts"] = detected["texts"] or record.get("text") is not None
                    entity = record["entities"][0]
                    detected["label"] = "type" if "type" in entity else "label"
                    detected["entities"] = "spans" if "spans" in entity else "mixed"
                except (ValueError, LookupError, TypeError, AttributeError):
                    continue
                return detected
        return detected

    def read(
        self, path: Path, dialect: JsonlDialect, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """See `entaug.formats.base.BaseFormat.read`."""
        del dialect  # entities of both forms are read
        lines_of_ids: dict[str, int] = {}
        is_empty = True
        for first, lines in read_line_chunks(path, start, stop, reading.notes):
            for number, line in enumerate(lines, start=first):
                if not line or line.isspace():
                    continue
                is_empty = False
                try:
                    sentence = _parse_sentence(line)
                    if reading.repeats(sentence.id, number, lines_of_ids):
                        sentence = sentence.with_(id=None)
                except InputError as error:
                    error.locate(str(path), number)
                    reading.fault(error)
                    continue
                reading.line = number
                yield sentence
        if is_empty and stop is None:
            raise no_sentences(path)

    def last_break(self, data: bytes) -> int:
        """See `BaseFormat.last_break`: after a line."""
        return data.rfind(b"\n") + 1

    def dump(self, sentence: Sentence, dialect: JsonlDialect) -> str:
        """See `BaseFormat.dump`; a sentence is one line with a JSON object."""
        record: dict[str, Any] = {}
        fields = sentence.fields
        if sentence.id is not None:
            record["id"] = sentence.id
        before = fields.get(BEFORE) if sentence.spaces is not None else None
        has_before = type(before) is str and before.isspace()
        if sentence.spaces is not None:
            record["text"] = f"{before}{sentence.text}" if has_before else sentence.text
        record["tokens"] = sentence.tokens
        record["entities"] = entities = [_entity(mention, dialect) for mention in sentence.mentions]
        if sentence.columns:
            record["columns"] = dict(sentence.columns)
        for name, value in fields.items():
            if name == BEFORE and has_before:
                continue  # part of the text
            if name == ENTITY_FIELDS and _are_entity_fields(value, len(entities)):
                for entity, further in zip(entities, value, strict=True):
                    _add_fields(entity, further, dialect.label)
            else:
                record.setdefault(name, value)
        try:
            return orjson.dumps(record).decode() + "\n"
        except (
            TypeError
        ):  # an integer of more than 64 bits, or a value without a JSON form; the key is expensive to compute
            return to_json(record, sentence.key).decode() + "\n"


def _are_entity_fields(value: object, n: int) -> bool:
    """Whether a value has the form of `_entity_fields`, and is not a field of that name from another program."""
    return type(value) is list and len(value) == n and all(type(fields) is dict for fields in value)


def _add_fields(entity: dict[str, Any], fields: dict[str, Any], label: str) -> None:
    """Add further fields to an entity; its label and position do not change."""
    if label == "label" and "label" in fields:  # the entity had both fields; `type` was the label of the mention
        entity["type"] = entity.pop("label")
    for name, value in fields.items():
        if name not in _POSITION_FIELDS:
            entity.setdefault(name, value)


def _entity(mention: Mention, dialect: JsonlDialect) -> dict[str, Any]:
    if len(mention.spans) == 1 and dialect.entities != "spans":
        start, end = mention.spans[0]
        return {"start": start, "end": end, dialect.label: mention.label}
    if dialect.entities == "offsets":
        raise LossError(
            f"discontinuous mention ({mention.label} {list(mention.spans)}) has no single start and end",
            remedy="write spans",
        )
    return {"spans": mention.spans, dialect.label: mention.label}


def _shared(tokens: list[Any]) -> tuple[Any, ...]:
    """Tokens, so that equal ones of a corpus in memory are one string; what is none is refused later."""
    return tuple(map(intern, tokens)) if set(map(type, tokens)) == {str} else tuple(tokens)


def _parse_sentence(line: str) -> Sentence:
    try:
        record = orjson.loads(line)
    except json.JSONDecodeError:
        is_array = line.lstrip().startswith("[")
        record = parse_json(line, "write one JSON object a line, not an array" if is_array else "correct the line")
    if type(record) is not dict:
        if record == [] and type(record) is list:
            raise no_sentences()
        raise InputError(f"{json_type(record)} where an object is expected", remedy=_EXAMPLE)
    if len(record) > 2 and _LONG_NUMBER.search(line):
        record = parse_json(line)  # orjson converts a number of more than 64 bits to a float and loses its last digits
    tokens = record.get("tokens")
    if type(tokens) is not list:
        raise InputError("no list 'tokens' in the object", remedy=_EXAMPLE)
    entities = record.get("entities", [])
    if type(entities) is not list:
        raise InputError("'entities' is not a list", remedy=_EXAMPLE)
    mentions = [_parse_mention(entity) for entity in entities]
    id_ = record.get("id")
    if id_ is not None and type(id_) is not str:
        if type(id_) is not int:
            raise InputError(f"'id' must be a string, not {id_!r}", remedy="correct the line")
        id_ = str(id_)
    fields = {name: value for name, value in record.items() if name not in _SENTENCE_FIELDS}
    if any(len(entity) > 2 + ("start" in entity) for entity in entities):
        entity_fields = _entity_fields(mentions, entities)
        if any(entity_fields):
            fields[ENTITY_FIELDS] = entity_fields
    arguments: dict[str, Any] = {}
    columns, text = record.get("columns"), record.get("text")
    if are_columns(columns, len(tokens)):
        arguments["columns"] = {name: tuple(values) for name, values in columns.items()}
    elif columns is not None:
        fields["columns"] = columns
    if text is not None:
        arguments["spaces"], before = _parse_spaces(tokens, text)
        if before:
            fields[BEFORE] = before
        if arguments["spaces"] is None:
            fields["text"] = text
    return Sentence(_shared(tokens), tuple(mentions), id_, **arguments, **split_fields(fields))


def _parse_spaces(tokens: list[Any], text: object) -> tuple[tuple[str, ...] | None, str]:
    """Return the white space after each token (None if the text does not match), and before the first."""
    if type(text) is not str or not all(type(token) is str for token in tokens):
        return None, ""
    spaces = align_spaces(tokens, text)  # a token may itself begin with white space
    if spaces is not None or not tokens or not text[:1].isspace():
        return spaces, ""
    stripped = text.lstrip()
    spaces = align_spaces(tokens, stripped)
    return spaces, "" if spaces is None else text[: len(text) - len(stripped)]


def _parse_mention(entity: Any) -> Mention:
    if type(entity) is not dict:
        raise InputError(f"an entity must be an object, not {entity!r}", remedy="give it type, start and end")
    label = entity.get("type", entity.get("label"))
    if type(label) is not str:
        raise InputError(f"an entity without a type: {entity}", remedy="give it a string 'type'")
    spans = entity.get("spans")
    if spans is None:
        if "start" not in entity or "end" not in entity:
            raise InputError(f"an entity without start and end: {entity}", remedy="give it both, or 'spans'")
        start, end = entity["start"], entity["end"]
        if type(start) is int and type(end) is int:
            return contiguous_mention(label, start, end)
        return Mention(label, ((start, end),))
    if type(spans) is not list:
        raise InputError(f"'spans' of an entity is not a list: {spans!r}", remedy="write [[start, end], ...]")
    return Mention(label, tuple([tuple(span) if type(span) is list else span for span in spans]))


def _entity_fields(mentions: list[Mention], entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the further fields of entities, in the canonical order of the mentions."""
    order = sorted(range(len(mentions)), key=lambda i: (mentions[i].spans, mentions[i].label))
    own = [{*_POSITION_FIELDS, "type" if "type" in entity else "label"} for entity in entities]
    return [{name: value for name, value in entities[i].items() if name not in own[i]} for i in order]
