"""JSON lines: one object a sentence, with ``tokens`` and ``entities``.

An entity has a ``type`` (or ``label``) and either ``start`` and ``end`` (exclusive) or ``spans``, a list of such
pairs. ``id`` names the sentence; ``text``, where it is the tokens with white space between, gives the spaces;
``columns`` holds further values per token. All other fields are kept. Carries everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from entaug.alignment import align_spaces
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError, LossError, ParameterError
from entaug.files.streams import read_beginning, read_line_chunks
from entaug.formats.base import BEFORE, ENTITY_FIELDS, FormatCapabilities, Reading, are_columns
from entaug.formats.records import no_sentences, parse_json

__all__ = ["Jsonl", "JsonlDialect"]

_KNOWN = frozenset(("tokens", "entities", "id", "text", "columns"))
_LONG_NUMBER = re.compile(r"\d{19}")
_PLACE = frozenset(("start", "end", "spans"))
_STYLES = ("offsets", "spans", "mixed")


@dataclass(frozen=True)
class JsonlDialect:
    """How a JSON lines file is laid out.

    Args:
        entities: ``"offsets"`` (``start`` and ``end``), ``"spans"``, or ``"mixed"``: offsets where they suffice.
        label: the name of the field that holds the type.
        ids: whether sentences have an ``id``; for formats that can do without.
        texts: whether they have a ``text``; likewise.
    """

    entities: str = "mixed"
    label: str = "type"
    ids: bool = False
    texts: bool = False

    def describe(self) -> str:
        """One line for people."""
        how = {"offsets": "start/end", "spans": "spans", "mixed": "start/end, spans where there are gaps"}
        return f"JSON lines, entities with {self.label} and {how[self.entities]}"


class Jsonl:
    """The JSON lines format; see `entaug.formats.base.Format` for the methods."""

    name = "jsonl"
    title = "JSON lines"
    extensions = (".jsonl", ".json", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether the first line begins like a JSON object or array."""
        for line in read_beginning(path).decode("utf-8-sig", "replace").splitlines():
            if line.strip():
                # A row of columns may start with a bracket too, but then it does not hold a field name.
                return line.lstrip()[:1] in "{[" and ('"' in line or len(line.strip()) == 1)
        return False

    def dialect(self, **options: Any) -> JsonlDialect:
        """A dialect from options given by hand: entities (offsets, spans, mixed) and label (type, label)."""
        changes = {name: value for name, value in options.items() if value is not None}
        if changes.get("entities", "mixed") not in _STYLES:
            raise ParameterError(f"entities must be one of {', '.join(_STYLES)}, not {changes['entities']!r}")
        return replace(JsonlDialect(), **changes)

    def look(self, path: Path, **options: Any) -> JsonlDialect:
        """Find the layout from the first entity of the file; faults are left for reading to tell."""
        ids = texts = False
        for _, lines in read_line_chunks(path):
            for line in lines:
                try:
                    record = orjson.loads(line)
                    ids = ids or record.get("id") is not None
                    texts = texts or record.get("text") is not None
                    entity = record["entities"][0]
                    label = "type" if "type" in entity else "label"
                    found = JsonlDialect("spans" if "spans" in entity else "mixed", label, ids, texts)
                except (ValueError, LookupError, TypeError, AttributeError):
                    continue
                given = {name: value for name, value in options.items() if value is not None}
                return replace(found, **given)
        return replace(self.dialect(**options), ids=ids, texts=texts)

    def read(
        self, path: Path, dialect: JsonlDialect, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """The sentences of a file, streamed.

        Raises:
            InputError: a line that is not a JSON object, a field that is missing or of the wrong kind, a span that
                does not fit, an id that was there before, no sentence at all.
        """
        del dialect  # both styles are read, entity by entity
        seen: dict[str, int] = {}
        empty = True
        for first, lines in read_line_chunks(path, start, stop):
            for number, line in enumerate(lines, start=first):
                if not line or line.isspace():
                    continue
                empty = False
                try:
                    sentence = _sentence(line)
                    if reading.repeats(sentence.id, number, seen):
                        sentence = sentence.with_(id=None)
                except InputError as error:
                    error.path, error.line = str(path), number
                    reading.fault(error)
                    continue
                reading.line = number
                yield sentence
        if empty and stop is None:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def carried(self, sentence: Sentence, dialect: JsonlDialect) -> Sentence:
        """The sentence itself."""
        del dialect
        return sentence

    def dump(self, sentence: Sentence, dialect: JsonlDialect) -> str:
        """One line with the sentence as a JSON object.

        Raises:
            LossError: the dialect has ``start`` and ``end`` only, and a mention has a gap.
        """
        record: dict[str, Any] = {}
        if sentence.id is not None:
            record["id"] = sentence.id
        before = sentence.fields.get(BEFORE) if sentence.spaces is not None else None
        if sentence.spaces is not None:
            record["text"] = f"{before}{sentence.text}" if _is_blank(before) else sentence.text
        record["tokens"] = sentence.tokens
        record["entities"] = entities = [_entity(mention, dialect) for mention in sentence.mentions]
        if sentence.columns:
            record["columns"] = dict(sentence.columns)
        for name, value in sentence.fields.items():
            if name == BEFORE and _is_blank(before):
                continue  # it stands in the text
            if name == ENTITY_FIELDS and _are_extras(value, len(entities)):
                for entity, extra in zip(entities, value, strict=True):
                    _add_fields(entity, extra, dialect.label)
            else:
                record.setdefault(name, value)
        try:
            return orjson.dumps(record).decode() + "\n"
        except TypeError:  # a number of more than 64 bits, or no JSON at all
            return _dump_slowly(record, sentence.key)

    def lost(self, sentence: Sentence, dialect: JsonlDialect) -> list[str]:
        """Nothing."""
        del sentence, dialect
        return []


def _is_blank(before: object) -> bool:
    """Whether a value is what `BEFORE` holds; else it is a field of somebody else's."""
    return type(before) is str and before.isspace()


def _dump_slowly(record: dict[str, Any], name: str) -> str:
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise LossError(f"sentence {name} cannot be written as JSON ({error})") from None


def _are_extras(value: object, n: int) -> bool:
    """Whether a value is what `_entity_fields` gives; else it is a field of somebody else's that has its name."""
    return type(value) is list and len(value) == n and all(type(extra) is dict for extra in value)


def _add_fields(entity: dict[str, Any], extra: dict[str, Any], label: str) -> None:
    """Add further fields to an entity; label and place stay what they are."""
    if label == "label" and "label" in extra:  # this one had a type besides, which was its label
        entity["type"] = entity.pop("label")
    for name, value in extra.items():
        if name not in _PLACE:
            entity.setdefault(name, value)


def _entity(mention: Mention, dialect: JsonlDialect) -> dict[str, Any]:
    if dialect.entities == "spans":
        return {"spans": mention.spans, dialect.label: mention.label}
    if len(mention.spans) == 1:
        start, end = mention.spans[0]
        return {"start": start, "end": end, dialect.label: mention.label}
    if dialect.entities == "offsets":
        raise LossError(
            f"discontinuous mention ({mention.label} {list(mention.spans)}) has no single start and end",
            remedy="write spans",
        )
    return {"spans": mention.spans, dialect.label: mention.label}


def _sentence(line: str) -> Sentence:
    try:
        record = orjson.loads(line)
    except json.JSONDecodeError:
        array = line.lstrip().startswith("[") and "one JSON object a line is wanted, not an array over several lines"
        record = parse_json(line, array or "mend the line")
    if record == [] and type(record) is list:
        raise no_sentences()
    if type(record) is not dict:
        raise InputError(
            f"a JSON {_KINDS.get(type(record), 'value')} where an object is expected",
            remedy='write {"tokens": [...], "entities": [...]}',
        )
    if len(record) > 2 and _LONG_NUMBER.search(line):
        record = parse_json(line)  # orjson makes a float of a number of more than 64 bits, and loses its last digits
    tokens = record.get("tokens")
    if type(tokens) is not list:
        raise InputError("no list 'tokens' in the object", remedy='write {"tokens": [...], "entities": [...]}')
    entities = record.get("entities", [])
    if type(entities) is not list:
        raise InputError("'entities' is not a list", remedy='write {"tokens": [...], "entities": [...]}')
    mentions = [_mention(entity) for entity in entities]
    name = record.get("id")
    if name is not None and type(name) is not str:
        if type(name) is not int:
            raise InputError(f"'id' must be a string, not {name!r}", remedy="mend the line")
        name = str(name)
    meta = {field: value for field, value in record.items() if field not in _KNOWN}
    if any(len(entity) > 2 + ("start" in entity) for entity in entities):
        extra = _entity_fields(mentions, entities)
        if any(extra):
            meta[ENTITY_FIELDS] = extra
    columns, spaces, text = record.get("columns"), None, record.get("text")
    if are_columns(columns, len(tokens)):
        columns = {column: tuple(values) for column, values in columns.items()}
    elif columns is not None:
        meta["columns"], columns = columns, None
    if text is not None:
        spaces, before = _spaces(tokens, text)
        if before:
            meta[BEFORE] = before
        if spaces is None:
            meta["text"] = text
    return Sentence(tuple(tokens), tuple(mentions), name, columns=columns or {}, spaces=spaces, **split_fields(meta))


def _spaces(tokens: list[Any], text: object) -> tuple[tuple[str, ...] | None, str]:
    """The white space after each token of a text, none where it is not theirs; and that before the first."""
    if type(text) is not str or not all(type(token) is str for token in tokens):
        return None, ""
    spaces = align_spaces(tokens, text)  # a token may begin with white space itself
    if spaces is not None or not tokens or not text[:1].isspace():
        return spaces, ""
    rest = text.lstrip()
    spaces = align_spaces(tokens, rest)
    return spaces, "" if spaces is None else text[: len(text) - len(rest)]


_KINDS = {list: "array", str: "string", int: "number", float: "number", bool: "truth value", type(None): "null"}


def _mention(entity: Any) -> Mention:
    if type(entity) is not dict:
        raise InputError(f"an entity must be an object, not {entity!r}", remedy="give it type, start and end")
    label = entity.get("type", entity.get("label"))
    if type(label) is not str:
        raise InputError(f"an entity without a type: {entity}", remedy="give it a string 'type'")
    spans = entity.get("spans")
    if spans is None:
        if "start" not in entity or "end" not in entity:
            raise InputError(f"an entity without start and end: {entity}", remedy="give it both, or 'spans'")
        return Mention(label, ((entity["start"], entity["end"]),))
    if type(spans) is not list:
        raise InputError(f"'spans' of an entity is not a list: {spans!r}", remedy="write [[start, end], ...]")
    return Mention(label, tuple([tuple(span) if type(span) is list else span for span in spans]))


def _entity_fields(mentions: list[Mention], entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What entities hold besides type and place, in the canonical order of the mentions."""
    order = sorted(range(len(mentions)), key=lambda i: (mentions[i].spans, mentions[i].label))
    label = [{"type"} if "type" in entity else {"label"} for entity in entities]
    return [{k: v for k, v in entities[i].items() if k not in label[i] and k not in _PLACE} for i in order]
