"""Records with tokens and labels: which fields hold them, by name and value, and the sentence of a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, Literal, TypeVar

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention, contiguous_mention
from entaug.core.tags import InvalidTag, SchemeDetector, decode_canonical, have_no_prefixes, is_tag
from entaug.errors import InputError
from entaug.formats.base import BEFORE, ENTITY_FIELDS, NO_LABELS, Dialect, ReadReport, are_columns
from entaug.formats.records import TOKEN_NAMES, as_object

T = TypeVar("T")

_TAG_NAMES = ("ner_tags", "ner", "ner_labels", "tags", "labels", "ner_tag", "tag", "label", "bio_tags", "iob_tags")
_ENTITY_NAMES = ("entities", "mentions", "spans", "entity_mentions", "annotations", "ner", "labels", "label")
RESERVED = frozenset((*TOKEN_NAMES, *_TAG_NAMES, *_ENTITY_NAMES))
"""Names of fields that may be taken for fields of tokens or labels."""
LABEL_NAMES = ("type", "label", "entity_type", "entity_group", "entity", "tag")
"""Names of the fields of an entity that may hold its label; the first that is there does."""
_SENTENCE_FIELDS = frozenset(("tokens", "entities", "id", "text", "columns"))
POSITION_FIELDS = frozenset(("start", "end", "spans"))
"""Names of the fields of an entity that hold its place."""
SPACES = "_spaces"
"""Field of a sentence: the white space after each token, where the field ``text`` is another text."""
_SAMPLE = 5000  # values
_EXAMPLE = 'write {"tokens": [...], "entities": [...]}'
_NAME_NUMBERS = "give them in order, such as `names='O,B-PER,I-PER'`"
_ASSUMED_ENDS = "the ends of mentions in {!r} were taken as the tokens after them (else: `ends='inclusive'`)"


@dataclass(frozen=True)
class RecordLayout(Dialect):
    """Where records have their tokens and mentions.

    Args:
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

    mentions: Literal["auto", "tags", "entities"] = "auto"
    token_field: str = "tokens"  # noqa: S105 - no password
    tag_field: str = ""
    entity_field: str = "entities"
    scheme: str = "IOB2"
    names: tuple[str, ...] = ()
    ends: Literal["", "exclusive", "inclusive"] = ""
    columns: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def tags(self) -> str | None:
        """The field of tags, if mentions are tags."""
        return self.tag_field or "ner_tags" if self.mentions == "tags" or (self.tag_field and self.is_auto) else None

    @property
    def is_auto(self) -> bool:
        """Whether the field of mentions may differ between sentences."""
        return self.mentions == "auto"

    @property
    def is_own(self) -> bool:
        """Whether a sentence with ``entities`` needs no conversion to be read."""
        return self.is_auto and self.token_field == "tokens" and self.ends != "inclusive"  # noqa: S105 - no password


# ----------------------------------------------------------------------------------------------------------- detection


def detect_fields(records: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of tokens and labels of some records, as fields of `RecordLayout`; empty without one of tokens."""
    rows: dict[str, list[Any]] = {}
    for record in records:
        for name, given in record.items():
            value = as_list_of_objects(given) if name in _ENTITY_NAMES else given
            if value:
                rows.setdefault(name, []).append(value)
    lists = {name: values for name, values in rows.items() if set(map(type, values)) == {list}}
    kinds = {name: {type(item) for row in values for item in row} for name, values in lists.items()}
    texts = [name for name, kind in kinds.items() if kind == {str}]
    numbers = [name for name, kind in kinds.items() if kind == {int}]
    tokens = options.get("token_field") or next((name for name in TOKEN_NAMES if name in texts), None)
    if tokens is None:
        return {}
    tags = _find_tags([name for name in texts if name != tokens], numbers, lists, options)
    entities = options.get("entity_field")
    if entities is None:
        found = [name for name in lists if all(is_entity(item) for row in lists[name] for item in row)]
        entities = next((name for name in _ENTITY_NAMES if name in found), None)
        if entities is None and tags is None and len(found) == 1:
            [entities] = found
    if tags is None and entities is None:  # an error follows, as they have no names
        tags = next((name for name in _TAG_NAMES if name in numbers), None)
    scheme = SchemeDetector()
    for row in lists.get(tags or "", ()):
        named = (_name_of(value, options.get("names", ())) for value in row)
        scheme.update(tag for tag in named if tag is not None)
    detected: dict[str, Any] = {"token_field": tokens, "scheme": scheme.scheme()}
    if "tag_field" in options or "entity_field" in options:
        detected["mentions"] = "tags" if "tag_field" in options else "entities"
    if entities is not None:
        detected |= {"entity_field": entities, "ends": _ends(records, tokens, entities)}
        detected |= next((layout_of_entity(row[0]) for row in lists.get(entities, ())), {})
    elif tags is not None:
        detected["tag_field"] = tags
    whole = [record for record in records if type(record.get(tokens)) is list]
    detected["columns"] = tuple(
        name
        for name in texts
        if name not in (tokens, tags, entities)
        and all(len(r[tokens]) == len(r[name]) for r in whole if r.get(name) is not None)
    )
    return detected


def _find_tags(
    texts: Sequence[str], numbers: Sequence[str], rows: Mapping[str, Any], options: Mapping[str, Any]
) -> str | None:
    """The field of tags: the one that is given, or one whose values or whose name and values are those of tags."""
    if given := options.get("tag_field"):
        return str(given)
    found = [name for name in texts if are_tags([value for row in rows[name] for value in row], name)]
    known = [name for name in _TAG_NAMES if name in found]
    known += [name for name in _TAG_NAMES if name in numbers and (name == "ner_tags" or options.get("names"))]
    return next(iter(known or (found if len(found) == 1 else ())), None)


def are_tags(values: Sequence[Any], name: str) -> bool:
    """Whether the values of a field are tags."""
    # A word may look like a tag, so a field of any name needs more evidence.
    has_evidence = bool(values) if name in _TAG_NAMES else "O" in values[:_SAMPLE]
    if name in _TAG_NAMES and set(map(type, values)) == {str} and have_no_prefixes(Counter(values)):
        return True
    return has_evidence and all(isinstance(value, str) and is_tag(value) for value in values[:_SAMPLE])


def layout_of_entity(entity: Any) -> dict[str, Any]:
    """The form of an entity, as options of JSON lines."""
    if type(entity) is list:
        return {"entities": "lists"}
    return {"label": label_name(entity), "entities": "spans" if "spans" in entity else "mixed"}


def _ends(records: Sequence[Mapping[str, Any]], tokens: str, name: str) -> str:
    """Whether the ends of entities are their last tokens, as far as a mention shows it."""
    for record in records:
        for entity in as_list_of_objects(record.get(name)) or ():
            given = entity if type(entity) is dict else {"spans": [entity]}
            spans = given.get("spans") or [[given.get("start"), given.get("end")]]
            for start, end in (span[:2] for span in spans if type(span) is list and len(span) > 1):
                if start is not None and start == end:
                    return "inclusive"
                if end == len(record.get(tokens) or ()):
                    return "exclusive"
    return ""


def label_name(entity: Mapping[str, Any]) -> str:
    """The name of the field of an entity that holds its label."""
    return next((name for name in LABEL_NAMES if entity.get(name) is not None), "label")


def is_entity(value: Any) -> bool:
    """Whether a value has the form of an entity: an object, or a list of start, end and label."""
    if isinstance(value, dict):
        has_place = "spans" in value or {"start", "end"} <= value.keys()
        return has_place and not value.keys().isdisjoint(LABEL_NAMES)
    return type(value) is list and len(value) == 3 and type(value[0]) is type(value[1]) is int and type(value[2]) is str


def are_entities(value: Any) -> bool:
    """Whether a value is a list of objects, the form of entities that is written by default."""
    return type(value) is list and (not value or type(value[0]) is dict)


def as_list_of_objects(value: Any) -> Any:
    """Convert a structure of lists, the form of a list of structures in older datasets; other values stay."""
    if not isinstance(value, dict):
        return value
    lists = [values if isinstance(values, list) else [] for values in value.values()]
    return [dict(zip(value, values, strict=False)) for values in zip(*lists, strict=False)]


def note_no_labels(record: Mapping[str, Any], reading: ReadReport, options: str) -> None:
    """Count a record without any label field; a field that seems to hold labels must not be passed over."""
    unread = [name for name in record if name in RESERVED - {*TOKEN_NAMES} and isinstance(record[name], (list, dict))]
    if names := ", ".join(repr(name) for name in unread if record[name]):
        what = f"{names} may hold labels, but not in a form that is read here"
        raise InputError(what, remedy=f"say where the labels are ({options}), or rename what holds no labels")
    if record.keys().isdisjoint(_ENTITY_NAMES):  # an empty list: there are none
        reading.notes[NO_LABELS] += 1


# ------------------------------------------------------------------------------------------------------ whole records


def parse_record(record: Any, layout: RecordLayout, reading: ReadReport, *, is_own: bool) -> Sentence:
    """The sentence of a record; `is_own` is `RecordLayout.is_own`, which is asked for each file only."""
    record = as_object(record, _EXAMPLE)
    if not is_own or not are_entities(record.get("entities")):
        record = _in_own_form(record, layout, reading)
    entities, tokens = record["entities"], record.get("tokens")
    if type(tokens) is not list:
        raise _no_tokens(record, "tokens")
    try:
        mentions = [_parse_mention(entity) for entity in entities]
    except InputError as error:
        if _ends([record], "tokens", "entities") == "inclusive":
            error.remedy = "correct it, or pass `ends='inclusive'` if the ends of all mentions are their last tokens"
        raise
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
    given = fields.get(SPACES)
    if given is not None and are_columns({"": given}, len(tokens)) and not "".join(given).strip():
        spaces = tuple(fields.pop(SPACES))
        fields |= {} if text is None else {"text": text}
    elif text is not None:
        spaces, before = _parse_spaces(tokens, text)
        fields |= {BEFORE: before} if before else {}
        fields |= {"text": text} if spaces is None else {}
    # Equal tokens of a corpus in memory are one string; what is none is refused by the sentence.
    shared = tuple(map(intern, tokens)) if set(map(type, tokens)) == {str} else tuple(tokens)
    columns = {name: tuple(values) for name, values in (columns or {}).items()}
    return Sentence(shared, tuple(mentions), id_, columns=columns, spaces=spaces, **split_fields(fields))


def _no_tokens(record: Mapping[str, Any], name: str) -> InputError:
    names = [n for n, value in record.items() if type(value) is list and value and set(map(type, value)) == {str}]
    more = f", or name the field of tokens: `token_field=NAME` ({', '.join(names)}?)" if names else ""
    return InputError(f"no list {name!r} in the object", remedy=_EXAMPLE + more)


def _in_own_form(record: Mapping[str, Any], layout: RecordLayout, reading: ReadReport) -> dict[str, Any]:
    """A record of another layout with the fields ``tokens`` and ``entities``."""
    own = dict(record)
    tokens = own.pop(layout.token_field, None)
    if type(tokens) is not list:
        raise _no_tokens(record, layout.token_field)
    source: str | None = None
    if layout.is_auto and "entities" in own and "entities" not in layout.columns:
        source = "entities"
    elif (tag_field := layout.tags) and (own.get(tag_field) is not None or not layout.is_auto):
        source = tag_field
    elif own.get(layout.entity_field) is not None:
        source = layout.entity_field
    labels = None if source is None else own.pop(source, None)
    entities: Any = []
    if labels is None:
        note_no_labels(own if layout.is_auto else {}, reading, "`tag_field=NAME` or `entity_field=NAME`")
    elif source == layout.tags and source != "entities":
        entities = [
            {"type": mention.label, "start": mention.start, "end": mention.end}
            for mention in _mentions_of_tags(labels, len(tokens), str(source), layout, reading)
        ]
    else:
        entities = as_list_of_objects(labels)
        if type(entities) is not list:
            raise InputError(f"{source!r} is not a list", remedy=_EXAMPLE)
        if layout.ends == "inclusive":
            entities = [_with_next_token(entity) for entity in entities]
        elif not layout.ends and entities:
            reading.notes[_ASSUMED_ENDS.format(source)] += 1
    of_tokens = {name: own[name] for name in layout.columns if are_columns({name: own.get(name)}, len(tokens))}
    if of_tokens and are_columns(own.get("columns", {}), len(tokens)):
        own = without(own, of_tokens)
        own["columns"] = {**own.get("columns", {}), **of_tokens}
    for name, value in (("tokens", tokens), ("entities", entities)):
        if name in own:
            reading.notes[f"field {name!r} left out, as tokens or labels are in another field"] += 1
        own[name] = value
    return own


def _mentions_of_tags(tags: Any, n: int, name: str, layout: RecordLayout, reading: ReadReport) -> Iterable[Mention]:
    """The mentions of the tags of a record with `n` tokens; `name` is that of their field."""
    if not isinstance(tags, list) or len(tags) != n:
        count = len(tags) if isinstance(tags, list) else 0
        raise InputError(f"{count} tags for {n} tokens in {name!r}", remedy="give each token one")
    if tags.count("O") == n or (tags.count(0) == n and layout.names[:1] == ("O",)):
        return ()
    named = [_name_of(tag, layout.names) for tag in tags]
    if None in named:
        if not layout.names and set(map(type, tags)) == {int}:
            raise InputError(f"the numbers in {name!r} have no names", remedy=_NAME_NUMBERS)
        what = f"a tag {tags[named.index(None)]!r} in {name!r} that has no name"
        raise InputError(what, remedy="correct it, or give the names in order: `names='O,B-PER,I-PER'`")
    return decode_tags(named, layout.scheme, reading)


def _name_of(value: Any, names: Sequence[str]) -> str | None:
    """The string of a value or of its number; None for any other value."""
    if isinstance(value, str):
        return value
    return names[value] if type(value) is int and 0 <= value < len(names) else None


def _with_next_token(entity: Any) -> Any:
    """An entity whose end is its last token, with the token after it as its end."""

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
    """The white space after each token (None if the text does not match), and before the first."""
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
    return without(entity, {*POSITION_FIELDS, "type" if "type" in entity else label_name(entity)})


# ---------------------------------------------------------------------------------------------------- parts of records


def pop_id(fields: dict[str, Any], *, is_checked: bool = False) -> str | None:
    """Remove the id from the fields of a record and return it; one of another type stays there, or is an error."""
    if type(fields.get("id")) in (str, int):
        return str(fields.pop("id"))
    if is_checked and fields.get("id") is not None:
        raise InputError(f"'id' must be a string, not {fields['id']!r:.80}", remedy="correct it")
    return None


def pop_columns(fields: dict[str, Any], n: int) -> dict[str, tuple[str, ...]]:
    """Remove the columns from the fields of a record and return them."""
    if not are_columns(fields.get("columns"), n):
        return {}
    return {name: tuple(values) for name, values in fields.pop("columns").items()}


def pop_spaces(fields: dict[str, Any], tokens: Sequence[Any]) -> tuple[str, ...] | None:
    """Remove the text from the fields of a record if it consists of the tokens and white space."""
    text = fields.get("text")
    if type(text) is not str or not all(type(token) is str and token for token in tokens):
        return None
    spaces = align_spaces(tokens, text)
    if spaces is not None:
        del fields["text"]
    return spaces


def check_tokens(value: Any, name: str) -> tuple[str, ...]:
    """Check that a field holds tokens."""
    if type(value) is not list:
        raise InputError(f"no list {name!r} of tokens in the object", remedy="give it a list of strings")
    if set(map(type, value)) - {str}:
        invalid = next(token for token in value if type(token) is not str)
        raise InputError(f"a token in {name!r} must be a string, not {invalid!r}", remedy="correct it")
    return tuple(value)


def decode_tags(tags: Sequence[Any], scheme: str, reading: ReadReport) -> tuple[Mention, ...]:
    """Decode the tags of a record."""
    if not set(map(type, tags)) <= {str}:
        raise InputError("a tag that is no string", remedy="correct it")
    try:
        return decode_canonical(tags, scheme, reading.repaired if reading.repair else None)
    except InvalidTag as fault:
        raise InputError(f"token {fault.index + 1}: {fault.message}", remedy=fault.remedy) from None


def unique_mentions(mentions: Iterable[tuple[Mention, T]], reading: ReadReport) -> dict[Mention, T]:
    """Sort mentions, and drop duplicates."""
    unique: dict[Mention, T] = {}
    for mention, value in mentions:
        if mention not in unique:
            unique[mention] = value
        elif reading.repair:
            reading.repaired["mention that was given twice dropped"] += 1
        else:
            what = f"mention {mention.label} {list(mention.spans)} is given twice"
            raise InputError(what, remedy="remove one, or pass `repair=True`")
    if len(unique) < 2:
        return unique
    return dict(sorted(unique.items(), key=lambda item: (item[0].spans, item[0].label)))


def add_entity_fields(meta: dict[str, Any], fields: Iterable[Mapping[str, Any]]) -> None:
    """Add the further fields of mentions to the fields of a sentence."""
    of_mentions = list(fields)
    if any(of_mentions):
        meta.setdefault(ENTITY_FIELDS, of_mentions)


def entity_fields(sentence: Sentence) -> Sequence[Mapping[str, Any]]:
    """The further fields of each mention."""
    fields = sentence.fields.get(ENTITY_FIELDS)
    if type(fields) is list and len(fields) == len(sentence.mentions) and set(map(type, fields)) <= {dict}:
        return fields
    return [{}] * len(sentence.mentions)


def add_other_fields(
    sentence: Sentence, record: dict[str, Any], of_source: Collection[str] = (), written: Collection[str] = ()
) -> None:
    """Add the fields of a sentence to its record, except those whose names are in use."""
    excluded = {BEFORE, ENTITY_FIELDS, *written, *(of_source if sentence.provenance is not None else ())}
    for name, value in sentence.fields.items():
        if name not in excluded:
            record.setdefault(name, value)


def without(fields: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Copy fields, except those of some names."""
    return {name: value for name, value in fields.items() if name not in names}
