"""Fields of records with tokens: ids, columns, white space and further fields of mentions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import InvalidTag, decode_canonical
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, ReadReport, are_columns

T = TypeVar("T")


# ------------------------------------------------------------------------------------------------------------- reading


def pop_id(fields: dict[str, Any]) -> str | None:
    """Remove the id from the fields of a record and return it."""
    return str(fields.pop("id")) if type(fields.get("id")) in (str, int) else None


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
        raise InputError(f"no list {name!r} of tokens", remedy="give it a list of strings")
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
            raise InputError(what, remedy="remove one, or pass --repair")
    if len(unique) < 2:
        return unique
    return dict(sorted(unique.items(), key=lambda item: (item[0].spans, item[0].label)))


def add_entity_fields(meta: dict[str, Any], fields: Iterable[Mapping[str, Any]]) -> None:
    """Add the further fields of mentions to the fields of a sentence."""
    of_mentions = list(fields)
    if any(of_mentions):
        meta.setdefault(ENTITY_FIELDS, of_mentions)


# ------------------------------------------------------------------------------------------------------------- writing


def entity_fields(sentence: Sentence) -> Sequence[Mapping[str, Any]]:
    """Return the further fields of each mention."""
    fields = sentence.fields.get(ENTITY_FIELDS)
    if type(fields) is list and len(fields) == len(sentence.mentions) and set(map(type, fields)) <= {dict}:
        return fields
    return [{}] * len(sentence.mentions)


def without(fields: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Copy fields, except those of some names."""
    return {name: value for name, value in fields.items() if name not in names}
