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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from entaug.core.corpus import is_made_key
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import describe_scheme
from entaug.errors import LossError
from entaug.files.streams import read_beginning, read_line_chunks
from entaug.formats.base import BEFORE, ENTITY_FIELDS, BaseFormat, FormatCapabilities, ReadReport, before_of
from entaug.formats.records import numbered_lines, parse_json, read_records, to_json
from entaug.formats.token_records import (
    LABEL_NAMES,
    POSITION_FIELDS,
    SPACES,
    RecordLayout,
    are_entities,
    detect_fields,
    entity_fields,
    layout_of_entity,
    parse_record,
)

_SAMPLE = 2000  # records from which the fields of labels are found


@dataclass(frozen=True)
class JsonlDialect(RecordLayout):
    """Layout of a JSON lines file.

    Args:
        entities: how entities are located: ``"offsets"`` (``start`` and ``end``), ``"spans"``, or ``"mixed"``: offsets
            for contiguous entities and spans for discontinuous ones; or ``"lists"``: ``[start, end, label]``.
        label: the field that holds the type of an entity.
        ids: whether sentences have an ``id``; used in conversion to formats with optional ids.
        texts: whether sentences have a ``text``; used in conversion to formats with optional text.
    """

    entities: Literal["offsets", "spans", "mixed", "lists"] = "mixed"
    label: str = "type"
    ids: bool = False
    texts: bool = False

    def describe(self) -> str:
        fields = "" if self.token_field == "tokens" else f", tokens in {self.token_field!r}"  # noqa: S105
        if self.tags:
            return f"JSON lines{fields}, {describe_scheme(self.scheme)} tags in {self.tags!r}"
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
        for line in read_beginning(path).decode("utf-8-sig", "replace").splitlines():
            if line.strip():
                # A row of columns may begin with a bracket too, but it holds no quoted field name.
                return line.lstrip()[:1] in "{[" and ('"' in line or len(line.strip()) == 1)
        return False

    def detect(self, path: Path, dialect: JsonlDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        return detect_layout((line for _, lines in read_line_chunks(path) for line in lines), dialect, options)

    def read(
        self, path: Path, dialect: JsonlDialect, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        is_own = dialect.is_own

        def parse(_number: int, line: str) -> Iterable[Sentence]:
            is_array = line.lstrip().startswith("[")
            record = parse_json(line, "write one JSON object a line, not an array" if is_array else "correct the line")
            return (parse_record(record, dialect, reading, is_own=is_own),)

        return read_records(
            path, numbered_lines(path, start, stop, reading.notes), parse, reading, is_whole=stop is None
        )

    def dump(self, sentence: Sentence, dialect: JsonlDialect) -> str:
        record: dict[str, Any] = {}
        fields = sentence.fields
        if sentence.id is not None:
            record["id"] = sentence.id
        before = ""
        if sentence.spaces is not None:
            if "text" in fields:  # a field, not the text of the tokens
                record[SPACES] = sentence.spaces
            else:
                before = before_of(sentence)
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
            if name == ENTITY_FIELDS and not tag_field and value is further and not _are_misread(further, dialect):
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
        if not sentence.meta and not sentence.layout:
            return []
        taken = (dialect.token_field, dialect.tags or dialect.entity_field, *dialect.columns)
        lost = [f"field {name!r}" for name in sentence.meta if name in taken]
        has_no_place = dialect.tags is not None or dialect.entities == "lists"
        return lost + ["field of mentions"] * (has_no_place and ENTITY_FIELDS in sentence.fields)


def detect_layout(lines: Iterable[Any], dialect: JsonlDialect, options: Mapping[str, Any]) -> dict[str, Any]:
    """Detect the options that are not given from the first entity of the file, or else the first records."""
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
            if not is_own or not are_entities(entities):
                sample.append(record)
                if len(sample) == _SAMPLE:
                    break
            elif entities:
                detected |= layout_of_entity(entities[0])
                break
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
    return detected | detect_fields(sample, options)


def _are_misread(further: Sequence[Mapping[str, Any]], dialect: JsonlDialect) -> bool:
    """Whether a further field of a mention would be read as its label or place in an entity."""
    label = dialect.label
    preferred = LABEL_NAMES[: LABEL_NAMES.index(label)] if label in LABEL_NAMES else LABEL_NAMES
    taken = {*POSITION_FIELDS, *preferred, *(() if label == "label" else (label,))}  # see `_add_fields` on `label`
    return dialect.entities != "lists" and not all(taken.isdisjoint(own) for own in further)


def _add_fields(entity: dict[str, Any], fields: Mapping[str, Any], label: str) -> None:
    """Add further fields to an entity."""
    if label == "label" and "label" in fields:  # the entity had both fields; `type` was the label of the mention
        entity["type"] = entity.pop("label")
    entity.update(fields)


def _tags(sentence: Sentence, dialect: JsonlDialect) -> Sequence[Any]:
    path = f"sentence {sentence.key}"
    try:
        tags = sentence.iob(dialect.scheme)
    except LossError as error:
        error.path, error.remedy = path, "write entities: `mentions='entities'`"
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
