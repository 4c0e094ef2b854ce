"""Which fields of records hold tokens and labels, by name and value, and their mentions: shared by JSON and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from entaug.core.mentions import Mention
from entaug.core.tags import SchemeDetector, is_tag
from entaug.errors import InputError
from entaug.formats.base import NO_LABELS, ReadReport
from entaug.formats.token_records import decode_tags

TOKEN_NAMES = ("tokens", "words", "token", "word")
"""Names of fields of tokens."""
_TAG_NAMES = ("ner_tags", "ner", "ner_labels", "tags", "labels", "ner_tag", "tag", "label", "bio_tags", "iob_tags")
ENTITY_NAMES = ("entities", "mentions", "spans", "entity_mentions", "annotations", "ner", "labels", "label")
"""Names of fields of entities."""
RESERVED = frozenset((*TOKEN_NAMES, *_TAG_NAMES, *ENTITY_NAMES))
"""Names of fields that may be taken for fields of tokens or labels."""
LABEL_NAMES = ("type", "label", "entity_type", "entity_group", "entity", "tag")
"""Names of the field of an entity that holds its label."""
_SAMPLE = 5000  # values


@dataclass(frozen=True)
class FieldSample:
    """The fields of some records that may hold labels, by name."""

    texts: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Sequence[Any]]
    entities: Collection[str]
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def is_tag_like(self, name: str) -> bool:
        """Whether the strings of a field are tags, or the names of its integers."""
        if name in self.texts:
            values: Iterable[Any] = (value for row in self.texts[name] for value in row or ())
        else:
            values = self.names.get(name, ())
        sample = list(islice(values, _SAMPLE))
        # A word may look like a tag, so a field of any name needs more evidence.
        has_evidence = bool(sample) if name in _TAG_NAMES else "O" in sample
        return has_evidence and all(isinstance(value, str) and is_tag(value) for value in sample)


@dataclass(frozen=True)
class LabelFields:
    """The fields that hold labels; None where there is none."""

    tags: str | None
    names: tuple[str, ...]
    scheme: str
    entities: str | None


def find_label_fields(
    sample: FieldSample, tokens: str, tags: str | None, entities: str | None, names: Sequence[str]
) -> LabelFields:
    """Find the fields of labels; those that are given, and the names of the integers of tags, are taken as they are."""
    others = [name for name in (*sample.texts, *sample.numbers) if name != tokens]
    candidates = [name for name in others if sample.is_tag_like(name)]
    known = [name for name in _TAG_NAMES if name in candidates]
    known += [name for name in _TAG_NAMES if name in sample.numbers and (name == "ner_tags" or names)]
    if not known and len(candidates) == 1:
        known = candidates
    tags = tags or next(iter(known), None)
    if entities is None:
        entities = next((name for name in ENTITY_NAMES if name in sample.entities), None)
        if entities is None and tags is None and len(sample.entities) == 1:
            [entities] = sample.entities
    if tags is None and entities is None:  # an error follows, as they have no names
        unnamed = [name for name in _TAG_NAMES if name in sample.numbers and not sample.names.get(name)]
        tags = next(iter(unnamed), None)
    scheme = SchemeDetector()
    own_names = tuple(sample.names.get(tags or "", ()))
    for row in {**sample.numbers, **sample.texts}.get(tags or "", ()):
        named = (name_of(value, names or own_names) for value in row or ())
        scheme.update(tag for tag in named if tag is not None)
    return LabelFields(tags, own_names, scheme.scheme(), entities)


def unread_labels(record: Mapping[str, Any], read: Collection[str] = ()) -> list[str]:
    """Name the fields of a record that seem to hold labels, except those that were read."""
    known = (*_TAG_NAMES, *ENTITY_NAMES)
    return [n for n in record if n in known and n not in read and record[n] and isinstance(record[n], (list, dict))]


def note_no_labels(record: Mapping[str, Any], read: Collection[str], reading: ReadReport, options: str) -> None:
    """Count a record without any label field; a field that seems to hold labels must not be passed over."""
    if unread := unread_labels(record, read):
        names = ", ".join(map(repr, unread))
        what = f"{names} may hold labels, but not in a form that is read here"
        raise InputError(what, remedy=f"say where the labels are ({options}), or rename what holds no labels")
    if not any(name in record and name not in read for name in ENTITY_NAMES):  # an empty list: there are none
        reading.notes[NO_LABELS] += 1


# ------------------------------------------------------------------------------------------------------------ tags


def name_of(value: Any, names: Sequence[str]) -> str | None:
    """Return the string of a value or of its number; None for any other value."""
    if isinstance(value, str):
        return value
    return names[value] if type(value) is int and 0 <= value < len(names) else None


def numbers_without_names(name: str) -> InputError:
    """Create the error for tags that are numbers of unknown meaning."""
    what = f"the numbers in {name!r} have no names"
    return InputError(what, remedy="give them in order, such as --layout names=O,B-PER,I-PER")


def mentions_of_tags(
    tags: Any, n: int, name: str, names: Sequence[str], scheme: str, reading: ReadReport
) -> Iterable[Mention]:
    """Decode the tags of a record with `n` tokens; `name` is that of their field, `names` those of its numbers."""
    if not isinstance(tags, list) or len(tags) != n:
        count = len(tags) if isinstance(tags, list) else 0
        raise InputError(f"{count} tags for {n} tokens in {name!r}", remedy="give each token one")
    if tags.count("O") == n or (tags.count(0) == n and names[:1] == ("O",)):
        return ()
    named = [name_of(tag, names) for tag in tags]
    if None in named:
        if not names and set(map(type, tags)) == {int}:
            raise numbers_without_names(name)
        what = f"a tag {tags[named.index(None)]!r} in {name!r} that has no name"
        raise InputError(what, remedy="correct it, or give the names in order: --layout names=O,B-PER,I-PER")
    return decode_tags(named, scheme, reading)


# ------------------------------------------------------------------------------------------------------------ entities


def label_name(entity: Mapping[str, Any]) -> str:
    """Return the name of the field of an entity that holds its label."""
    return next((name for name in LABEL_NAMES if entity.get(name) is not None), "label")


def is_entity(value: Any) -> bool:
    """Whether a value has the form of an entity: an object, or a list of start, end and label."""
    if isinstance(value, dict):
        has_place = "spans" in value or {"start", "end"} <= value.keys()
        return has_place and not value.keys().isdisjoint(LABEL_NAMES)
    return type(value) is list and len(value) == 3 and type(value[0]) is type(value[1]) is int and type(value[2]) is str


def as_list_of_objects(value: Any) -> Any:
    """Convert a structure of lists, the form of a list of structures in older datasets; other values stay."""
    if not isinstance(value, dict):
        return value
    lists = [values if isinstance(values, list) else [] for values in value.values()]
    return [dict(zip(value, values, strict=False)) for values in zip(*lists, strict=False)]
