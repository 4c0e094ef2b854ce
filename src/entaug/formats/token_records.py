"""JSON objects of sentences: the fields that they have in every format besides tokens and mentions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from entaug.alignment import align_spaces
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, are_columns

__all__ = ["extras_of", "fields", "kind_of", "sentence_of", "tokens_of"]

_KINDS = {list: "an array", dict: "an object", str: "a string", bool: "a truth value", type(None): "null"}


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), "a number")


def tokens_of(value: Any, name: str) -> tuple[str, ...]:
    """Tokens, where a field holds them.

    Raises:
        InputError: it holds something else.
    """
    if type(value) is not list:
        raise InputError(f"no list {name!r} of tokens", remedy="give it one")
    if set(map(type, value)) - {str}:
        odd = next(token for token in value if type(token) is not str)
        raise InputError(f"a token in {name!r} must be a string, not {odd!r}", remedy="mend it")
    return tuple(value)


def sentence_of(
    record: Mapping[str, Any],
    own: Collection[str],
    tokens: tuple[str, ...],
    mentions: Sequence[Mention],
    extras: Sequence[dict[str, Any]],
) -> Sentence:
    """A sentence from its object.

    Args:
        record: the object; ``id``, ``text``, where it is the tokens with white space between, and ``columns`` are taken
            for what they are, and all else is kept as a field.
        own: the fields that tokens and mentions were read from.
        tokens: its tokens.
        mentions: in the order of the file.
        extras: what else the file says of each mention.

    Raises:
        InputError: see `entaug.data.Sentence`.
    """
    name, text, columns = record.get("id"), record.get("text"), record.get("columns")
    meta = {field: value for field, value in record.items() if field not in own}
    if name is not None and type(name) in (str, int):
        name = str(meta.pop("id"))
    elif name is not None:
        raise InputError(f"'id' must be a string, not {name!r}", remedy="mend it")
    if are_columns(columns, len(tokens)):
        columns = {column: tuple(values) for column, values in meta.pop("columns").items()}
    else:
        columns = {}
    spaces = align_spaces(tokens, text) if type(text) is str and tokens and "" not in tokens else None
    if spaces is not None:
        del meta["text"]
    if any(extras):
        order = sorted(range(len(mentions)), key=lambda i: (mentions[i].spans, mentions[i].label))
        meta[ENTITY_FIELDS] = [extras[i] for i in order]
    return Sentence(tokens, mentions, name, columns=columns, spaces=spaces, **split_fields(meta))


def fields(sentence: Sentence, own: Collection[str]) -> dict[str, Any]:
    """What an object has to hold of a sentence besides tokens and mentions: the other way round.

    Args:
        sentence: the sentence.
        own: the fields that tokens and mentions are written to.
    """
    found: dict[str, Any] = {}
    if sentence.id is not None:
        found["id"] = sentence.id
    if sentence.spaces is not None:
        found["text"] = sentence.text
    if sentence.columns:
        found["columns"] = dict(sentence.columns)
    for name, value in sentence.fields.items():
        if name not in own and not (name == ENTITY_FIELDS and extras_of(sentence) is not None):
            found.setdefault(name, value)
    return found


def extras_of(sentence: Sentence) -> list[dict[str, Any]] | None:
    """What else is known of each mention, where that is one object a mention."""
    extras = sentence.fields.get(ENTITY_FIELDS)
    if type(extras) is not list or len(extras) != len(sentence.mentions):
        return None
    return extras if all(type(extra) is dict for extra in extras) else None
