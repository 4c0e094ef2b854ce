"""Filters: whether to keep a sentence that a method made. Every method can have some, one after the other.

A new filter is one class and one line in `FILTERS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from entaug.data import Sentence
from entaug.errors import ParameterError, UnknownNameError
from entaug.filters.base import Filter, judge_all
from entaug.filters.consistency import Consistency
from entaug.filters.models import Fluency, Similarity
from entaug.filters.texts import Duplicates, Leakage, Mentions, Validity

__all__ = [
    "FILTERS",
    "Consistency",
    "Duplicates",
    "Filter",
    "Fluency",
    "Leakage",
    "Mentions",
    "Similarity",
    "Validity",
    "create_filters",
    "find_filter",
    "judge_all",
]

FILTERS: dict[str, type[Filter]] = {
    cls.filter_name: cls for cls in (Validity, Duplicates, Fluency, Similarity, Mentions, Consistency, Leakage)
}


def find_filter(name: str) -> type[Filter]:
    """The class of a filter.

    Raises:
        UnknownNameError: there is no such filter.
    """
    if name not in FILTERS:
        raise UnknownNameError("filter", name, list(FILTERS))
    return FILTERS[name]


def create_filters(
    what: str | Filter | Sequence[str | Filter | None] | None, held_out: Sequence[Sentence] | None = None
) -> list[Filter]:
    """Filters from what a user gives.

    Args:
        what: a filter; its name, with parameters behind a colon; several of these, as a sequence or joined by ``+``.
        held_out: sentences of dev and test, for `Leakage` given by its name.

    Raises:
        UnknownNameError: there is no such filter.
        ParameterError: it has no such parameter, or that value cannot be.

    Example:
        >>> [f.name for f in create_filters("mentions:words=false + consistency:confidence=0.5")]
        ['mentions:words=false', 'consistency:tagger=linear,confidence=0.5']
    """
    if what is None:
        return []
    if isinstance(what, Filter):
        return [what]
    if not isinstance(what, str):
        return [made for one in what for made in create_filters(one, held_out)]
    return [_create(text, held_out) for text in what.split("+") if text.strip() not in ("", "none")]


def _create(text: str, held_out: Sequence[Sentence] | None) -> Filter:
    name, _, rest = text.strip().partition(":")
    cls = find_filter(name)
    known = {f.name: str(f.type) for f in fields(cls) if "given" not in f.metadata}
    params: dict[str, Any] = {"held_out": held_out} if cls is Leakage else {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in known:
            near = difflib.get_close_matches(key.strip(), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            remedy = f"{hint}(as in {name}:{next(iter(known))}=..., it has: {', '.join(known)})"
            raise ParameterError(f"{name} has no parameter {key.strip()!r}", remedy=remedy)
        params[key.strip()] = _value(value.strip(), known[key.strip()])
    return cls(**params)


def _value(text: str, kind: str) -> Any:
    """The value of a parameter from its text, by the annotation of its field."""
    if text.lower() == "none":
        return None
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number, name, what in ((float, "float", "number"), (int, "int", "whole number")):
        if name in kind:
            try:
                return number(text)
            except ValueError:
                raise ParameterError(f"{text!r} is no {what}") from None
    return text
