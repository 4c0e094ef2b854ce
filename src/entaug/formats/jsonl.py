"""JSON lines: one object per sentence, with ``tokens`` and ``entities``.

An entity has a ``type`` (or ``label``) and either ``start`` and ``end`` (exclusive) or ``spans``, a list of such
pairs. ``id`` is the id of the sentence; ``text`` gives the white space, if it consists of the tokens with white space
between them; ``columns`` holds further values per token. All other fields are kept. The format represents sentences
without loss.

Sentences without ``entities`` may have their labels in a field of tags (``ner_tags``, ``tags``, ``labels``: strings, or
integers with ``names``) or of entities (``spans``, ``mentions``, ``annotations``, ``entity_mentions``, ``ner``, also as
``[start, end, label]``), and their tokens in ``words``; the fields are found as in a table, and written again. A field
that may hold labels and is not read is an error; a sentence without such a field is counted in a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any, Literal

import orjson

from entaug.config.params import validate
from entaug.core.alignment import align_spaces
from entaug.core.corpus import is_made_key
from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention, contiguous_mention
from entaug.errors import InputError, LossError
from entaug.files.streams import read_beginning, read_line_chunks
from entaug.formats.base import (
    BEFORE,
    ENTITY_FIELDS,
    BaseFormat,
    FormatCapabilities,
    ReadReport,
    are_columns,
    before_of,
)
from entaug.formats.label_fields import (
    ENTITY_NAMES,
    TOKEN_NAMES,
    FieldSample,
    as_list_of_objects,
    find_label_fields,
    is_entity,
    label_name,
    mentions_of_tags,
    note_no_labels,
)
from entaug.formats.records import as_object, numbered_lines, parse_json, read_records, to_json
from entaug.formats.token_records import add_entity_fields, entity_fields, without

_EXAMPLE = 'write {"tokens": [...], "entities": [...]}'
_SENTENCE_FIELDS = frozenset(("tokens", "entities", "id", "text", "columns"))
_LONG_NUMBER = re.compile(r"\d{19}")
_POSITION_FIELDS = frozenset(("start", "end", "spans"))
_SAMPLE = 2000  # records from which the fields of labels are found
_OPTIONS = "--layout tag_field or entity_field"
_ASSUMED_ENDS = "the ends of mentions in {!r} were taken as the tokens after them (else: --layout ends=inclusive)"


@dataclass(frozen=True)
class JsonlDialect:
    """Layout of a JSON lines file.

    Args:
        entities: how entities are located: ``"offsets"`` (``start`` and ``end``), ``"spans"``, or ``"mixed"``: offsets
            for contiguous entities and spans for discontinuous ones; or ``"lists"``: ``[start, end, label]``.
        label: the field that holds the type of an entity.
        ids: whether sentences have an ``id``; used in conversion to formats with optional ids.
        texts: whether sentences have a ``text``; used in conversion to formats with optional text.
        mentions: where mentions are: ``"tags"``, ``"entities"``, or ``"auto"``: in ``entities`` where a sentence has
            that field, else in the field of tags or entities that was found.
        token_field: the field of tokens.
        tag_field: the field of tags; empty if there is none.
        entity_field: the field of entities.
        scheme: the scheme of the tags.
        names: the tags that integers stand for, in order.
        ends: what the end of an entity is: ``"exclusive"``, the token after it, or ``"inclusive"``, its last token.
        columns: the fields with a string per token.
    """

    entities: Literal["offsets", "spans", "mixed", "lists"] = "mixed"
    label: str = "type"
    ids: bool = False
    texts: bool = False
    mentions: Literal["auto", "tags", "entities"] = "auto"
    token_field: str = "tokens"  # noqa: S105 - no password
    tag_field: str = ""
    entity_field: str = "entities"
    scheme: str = "IOB2"
    names: tuple[str, ...] = ()
    ends: Literal["", "exclusive", "inclusive"] = ""
    columns: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        validate(self)

    @property
    def tags(self) -> str | None:
        """The field of tags, if mentions are written as tags."""
        return self.tag_field or "ner_tags" if self.mentions == "tags" or (self.tag_field and self.is_auto) else None

    @property
    def is_auto(self) -> bool:
        """Whether the field of mentions may differ between sentences."""
        return self.mentions == "auto"

    @property
    def is_own(self) -> bool:
        """Whether a sentence with ``entities`` needs no conversion to be read."""
        return self.is_auto and self.token_field == "tokens" and self.ends != "inclusive"  # noqa: S105 - no password

    def describe(self) -> str:
        """Return a description of the layout."""
        fields = "" if self.token_field == "tokens" else f", tokens in {self.token_field!r}"  # noqa: S105
        if self.tags:
            return f"JSON lines{fields}, {self.scheme} tags in {self.tags!r}"
        how = {"offsets": "start/end", "spans": "spans", "mixed": "start/end, spans where there are gaps"}
        if self.entity_field != "entities":
            fields += f", entities in {self.entity_field!r}"
        if self.ends == "inclusive":
            fields += ", ends inclusive"
        form = "[start, end, label]" if self.entities == "lists" else f"{self.label} and {how[self.entities]}"
        return f"JSON lines{fields}, entities with {form}"


class Jsonl(BaseFormat):
    """The JSON lines format; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "jsonl"
    title = "JSON lines"
    extensions = (".jsonl", ".json", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    dialect_class = JsonlDialect

    def recognises(self, path: Path) -> bool:
        """See `BaseFormat.recognises`: the first line begins like a JSON object or array."""
        for line in read_beginning(path).decode("utf-8-sig", "replace").splitlines():
            if line.strip():
                # A row of columns may begin with a bracket too, but it holds no quoted field name.
                return line.lstrip()[:1] in "{[" and ('"' in line or len(line.strip()) == 1)
        return False

    def detect(self, path: Path, dialect: JsonlDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `BaseFormat.detect`; the first entity of the file, or the first records without, determine the layout."""
        return detect_layout((line for _, lines in read_line_chunks(path) for line in lines), dialect, options)

    def read(
        self, path: Path, dialect: JsonlDialect, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """See `entaug.formats.base.BaseFormat.read`."""
        is_own = dialect.is_own

        def parse(_number: int, line: str) -> Iterable[Sentence]:
            return (parse_record(_parse_line(line), dialect, reading, is_own=is_own),)

        return read_records(
            path, numbered_lines(path, start, stop, reading.notes), parse, reading, is_whole=stop is None
        )

    def dump(self, sentence: Sentence, dialect: JsonlDialect) -> str:
        """See `BaseFormat.dump`; a sentence is one line with a JSON object."""
        record: dict[str, Any] = {}
        fields = sentence.fields
        if sentence.id is not None:
            record["id"] = sentence.id
        before = "" if sentence.spaces is None else before_of(sentence)
        if sentence.spaces is not None:
            record["text"] = before + sentence.text
        record[dialect.token_field] = sentence.tokens
        entities: list[Any] = []
        if tag_field := dialect.tags:
            record[tag_field] = _tags(sentence, dialect)
        else:
            record[dialect.entity_field] = entities = [_entity(mention, dialect) for mention in sentence.mentions]
        further = entity_fields(sentence)
        if sentence.columns:
            columns = dict(sentence.columns)
            record |= {name: columns.pop(name) for name in dialect.columns if name in columns}
            if columns:
                record["columns"] = columns
        for name, value in fields.items():
            if name == BEFORE and before:
                continue  # part of the text
            if name == ENTITY_FIELDS and not tag_field and value is further:
                if dialect.entities == "lists":
                    continue  # named by `lost`
                for entity, own in zip(entities, further, strict=True):
                    _add_fields(entity, own, dialect.label)
            else:
                record.setdefault(name, value)
        try:
            return orjson.dumps(record).decode() + "\n"
        except TypeError:  # an integer of more than 64 bits, or a value without a JSON form; the key takes long
            return to_json(record, sentence.key).decode() + "\n"

    def lost(self, sentence: Sentence, dialect: JsonlDialect) -> list[str]:
        """See `BaseFormat.lost`: fields whose names are in use, and those of mentions where they have no place."""
        if not sentence.meta and not sentence.layout:
            return []
        taken = (dialect.token_field, dialect.tags or dialect.entity_field, *dialect.columns)
        lost = [f"field {name!r}" for name in sentence.meta if name in taken]
        has_no_place = dialect.tags is not None or dialect.entities == "lists"
        return lost + ["field of mentions"] * (has_no_place and ENTITY_FIELDS in sentence.fields)


def detect_layout(lines: Iterable[Any], dialect: JsonlDialect, options: Mapping[str, Any]) -> dict[str, Any]:
    """Detect the options of JSON lines, or of the objects of a JSON array, that are not given."""
    detected: dict[str, Any] = {"ids": False, "texts": False}
    sample: list[dict[str, Any]] = []
    is_own = dialect.is_own and options.keys().isdisjoint(("tag_field", "entity_field"))
    for line in lines:
        try:
            record = orjson.loads(line) if isinstance(line, str) else line
            id_ = record.get("id")
            detected["ids"] = detected["ids"] or not (id_ is None or is_made_key(str(id_)))
            detected["texts"] = detected["texts"] or record.get("text") is not None
            entities = record.get("entities")
            if not is_own or not _are_own(entities):
                sample.append(record)
                if len(sample) == _SAMPLE:
                    break
            elif entities:
                detected |= _layout_of_entity(entities[0])
                break
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    return detected | _detect_fields(sample, options)


def _are_own(entities: Any) -> bool:
    """Whether entities are objects, as in the form that is written by default."""
    return type(entities) is list and (not entities or type(entities[0]) is dict)


def _layout_of_entity(entity: Any) -> dict[str, Any]:
    if type(entity) is list:
        return {"entities": "lists"}
    return {"label": label_name(entity), "entities": "spans" if "spans" in entity else "mixed"}


def _detect_fields(records: Sequence[dict[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of tokens and labels of records that have no entities in the form that is written by default."""
    values: dict[str, list[list[Any]]] = {}
    invalid: set[str] = set()
    for record in records:
        for name, given in record.items():
            value = as_list_of_objects(given) if name in ENTITY_NAMES else given
            if value and type(value) is list:
                values.setdefault(name, []).append(value)
            elif value:
                invalid.add(name)
    kinds = {n: {type(item) for row in rows for item in row} for n, rows in values.items() if n not in invalid}
    sample = FieldSample(
        {name: values[name] for name, kind in kinds.items() if kind == {str}},
        {name: values[name] for name, kind in kinds.items() if kind == {int}},
        [name for name in kinds if all(is_entity(item) for row in values[name] for item in row)],
    )
    tokens = options.get("token_field") or next((name for name in TOKEN_NAMES if name in sample.texts), None)
    if tokens is None:
        return {}
    tag_field, entity_field = options.get("tag_field"), options.get("entity_field")
    found = find_label_fields(sample, tokens, tag_field, entity_field, options.get("names", ()))
    detected: dict[str, Any] = {"token_field": tokens, "scheme": found.scheme}
    if "tag_field" in options or "entity_field" in options:
        detected["mentions"] = "tags" if "tag_field" in options else "entities"
    if found.tags is not None and found.entities is None:
        detected["tag_field"] = found.tags
    if found.entities is not None:
        detected |= {"entity_field": found.entities, "ends": _ends(records, tokens, found.entities)}
        detected |= next((_layout_of_entity(row[0]) for row in values.get(found.entities, ())), {})
    per_token = (name for name in sample.texts if name not in (tokens, found.tags, found.entities))
    rows = [record for record in records if type(record.get(tokens)) is list]
    detected["columns"] = tuple(n for n in per_token if all(len(r[tokens]) == len(r.get(n) or r[tokens]) for r in rows))
    return detected


def _ends(records: Sequence[dict[str, Any]], tokens: str, name: str) -> str:
    """Whether the ends of entities are their last tokens, as far as a mention shows it."""
    for record in records:
        for entity in as_list_of_objects(record.get(name)) or ():
            start, end = entity[:2] if type(entity) is list else (entity.get("start"), entity.get("end"))
            if start is not None and start == end:
                return "inclusive"
            if end == len(record.get(tokens) or ()) or (type(entity) is dict and "spans" in entity):
                return "exclusive"
    return ""


def _add_fields(entity: dict[str, Any], fields: dict[str, Any], label: str) -> None:
    """Add further fields to an entity; its label and position do not change."""
    if label == "label" and "label" in fields:  # the entity had both fields; `type` was the label of the mention
        entity["type"] = entity.pop("label")
    for name, value in fields.items():
        if name not in _POSITION_FIELDS:
            entity.setdefault(name, value)


def _tags(sentence: Sentence, dialect: JsonlDialect) -> Sequence[Any]:
    path = f"sentence {sentence.key}"
    try:
        tags = sentence.iob(dialect.scheme)
    except LossError as error:
        error.path, error.remedy = path, "write entities: --to-layout mentions=entities"
        raise
    if not dialect.names:
        return tags
    numbers = {name: i for i, name in enumerate(dialect.names)}
    if missing := next((tag for tag in tags if tag not in numbers), None):
        raise LossError(f"the tag {missing!r} has no number in names={','.join(dialect.names)}", path=path)
    return [numbers[tag] for tag in tags]


def _entity(mention: Mention, dialect: JsonlDialect) -> Any:
    last = int(dialect.ends == "inclusive")
    if len(mention.spans) == 1 and dialect.entities != "spans":
        start, end = mention.spans[0]
        if dialect.entities == "lists":
            return start, end - last, mention.label
        return {"start": start, "end": end - last, dialect.label: mention.label}
    if dialect.entities in ("offsets", "lists"):
        raise LossError(
            f"discontinuous mention ({mention.label} {list(mention.spans)}) has no single start and end",
            remedy="write spans",
        )
    spans = [(start, end - last) for start, end in mention.spans] if last else mention.spans
    return {"spans": spans, dialect.label: mention.label}


def _parse_line(line: str) -> Any:
    try:
        record = orjson.loads(line)
    except json.JSONDecodeError:
        is_array = line.lstrip().startswith("[")
        return parse_json(line, "write one JSON object a line, not an array" if is_array else "correct the line")
    if type(record) is dict and len(record) > 2 and _LONG_NUMBER.search(line):
        return parse_json(line)  # orjson converts a number of more than 64 bits to a float and loses its last digits
    return record


def parse_record(record: Any, dialect: JsonlDialect, reading: ReadReport, *, is_own: bool) -> Sentence:
    """Return the sentence of a record; `is_own` is `JsonlDialect.is_own`, which is asked for each file only."""
    record = as_object(record, _EXAMPLE)
    if not is_own or not _are_own(record.get("entities")):
        record = _in_own_form(record, dialect, reading)
    entities, tokens = record["entities"], record.get("tokens")
    if type(tokens) is not list:
        raise _no_tokens(record, "tokens")
    mentions = [_parse_mention(entity) for entity in entities]
    id_ = record.get("id")
    if id_ is not None and type(id_) is not str:
        if type(id_) is not int:
            raise InputError(f"'id' must be a string, not {id_!r}", remedy="correct the line")
        id_ = str(id_)
    fields = {name: value for name, value in record.items() if name not in _SENTENCE_FIELDS}
    if any(len(entity) > 2 + ("start" in entity) and type(entity) is dict for entity in entities):
        # In the canonical order of the mentions.
        order = sorted(range(len(mentions)), key=lambda i: (mentions[i].spans, mentions[i].label))
        add_entity_fields(fields, [_further_fields(entities[i]) for i in order])
    columns, text = record.get("columns"), record.get("text")
    if columns is not None and not are_columns(columns, len(tokens)):
        fields["columns"], columns = columns, None
    spaces = None
    if text is not None:
        spaces, before = _parse_spaces(tokens, text)
        fields |= {BEFORE: before} if before else {}
        fields |= {"text": text} if spaces is None else {}
    # Equal tokens of a corpus in memory are one string; what is none is refused by the sentence.
    shared = tuple(map(intern, tokens)) if set(map(type, tokens)) == {str} else tuple(tokens)
    columns = {name: tuple(values) for name, values in (columns or {}).items()}
    return Sentence(shared, tuple(mentions), id_, columns=columns, spaces=spaces, **split_fields(fields))


def _no_tokens(record: Mapping[str, Any], name: str) -> InputError:
    names = [n for n, value in record.items() if type(value) is list and value and set(map(type, value)) == {str}]
    more = f", or name the field of tokens: --layout token_field=NAME ({', '.join(names)}?)" if names else ""
    return InputError(f"no list {name!r} in the object", remedy=_EXAMPLE + more)


def _in_own_form(record: Mapping[str, Any], dialect: JsonlDialect, reading: ReadReport) -> dict[str, Any]:
    """Return a record of another layout with the fields ``tokens`` and ``entities``."""
    own = dict(record)
    tokens = own.pop(dialect.token_field, None)
    if type(tokens) is not list:
        raise _no_tokens(record, dialect.token_field)
    if dialect.is_auto and "entities" in own:
        source: str | None = "entities"
    elif (tag_field := dialect.tags) and (own.get(tag_field) is not None or not dialect.is_auto):
        source = tag_field
    else:
        source = dialect.entity_field if own.get(dialect.entity_field) is not None else None
    labels = None if source is None else own.pop(source, None)
    if labels is None:
        note_no_labels(own if dialect.is_auto else {}, (), reading, _OPTIONS)
        entities: Any = []
    elif source == dialect.tags and source != "entities":
        mentions = mentions_of_tags(labels, len(tokens), str(source), dialect.names, dialect.scheme, reading)
        entities = [{"type": m.label, "start": m.start, "end": m.end} for m in mentions]
    else:
        entities = as_list_of_objects(labels)
        if type(entities) is not list:
            raise InputError(f"{source!r} is not a list", remedy=_EXAMPLE)
        if dialect.ends == "inclusive":
            entities = [_with_next_token(entity) for entity in entities]
        elif not dialect.ends and entities:
            reading.notes[_ASSUMED_ENDS.format(source)] += 1
    for name, value in (("tokens", tokens), ("entities", entities)):
        if name in own:
            reading.notes[f"field {name!r} left out, as tokens or labels are in another field"] += 1
        own[name] = value
    of_tokens = {name: own[name] for name in dialect.columns if are_columns({name: own.get(name)}, len(tokens))}
    if of_tokens and are_columns(own.get("columns", {}), len(tokens)):
        own = {name: value for name, value in own.items() if name not in of_tokens}
        own["columns"] = {**own.get("columns", {}), **of_tokens}
    return own


def _with_next_token(entity: Any) -> Any:
    """Return an entity whose end is its last token, with the token after it as its end."""

    def after(end: Any) -> Any:
        return end + 1 if type(end) is int else end

    if type(entity) is list and len(entity) == 3:
        return [entity[0], after(entity[1]), entity[2]]
    if type(entity) is not dict:
        return entity
    if type(spans := entity.get("spans")) is list:
        return {**entity, "spans": [[s[0], after(s[1])] if type(s) is list and len(s) == 2 else s for s in spans]}
    return {**entity, "end": after(entity.get("end"))} if "end" in entity else entity


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
        if is_entity(entity):
            return contiguous_mention(entity[2], entity[0], entity[1])
        raise InputError(f"an entity must be an object, not {entity!r}", remedy="give it type, start and end")
    label = entity.get("type", entity.get("label"))
    if label is None:
        label = entity.get(label_name(entity))
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


def _further_fields(entity: Any) -> dict[str, Any]:
    """The fields of an entity besides label and position."""
    if type(entity) is not dict:
        return {}
    return without(entity, {*_POSITION_FIELDS, "type" if "type" in entity else label_name(entity)})
