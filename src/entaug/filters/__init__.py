"""Filters, which decide which augmented sentences to keep. Every method accepts several, applied in order.

A new filter is one class and one line in `FILTERS`; a package adds filters through the entry point group
``entaug.filters``.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isabstract
from typing import Any

from entaug.config.params import check_declaration, construct, parse_assignments
from entaug.config.registry import Registry
from entaug.core.data import Sentence
from entaug.filters.base import Filter, apply_filters
from entaug.filters.models import Consistency, Fluency, Similarity
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
    "apply_filters",
    "create_filters",
]


def _check_filter(name: str, cls: Any) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Filter) and not isabstract(cls)):
        raise TypeError("it is not a subclass of entaug.filters.Filter with a method _judge")
    if not (isinstance(getattr(cls, "summary", None), str) and isinstance(getattr(cls, "reasons", None), tuple)):
        raise TypeError(f"{name} has no summary or no reasons")
    if getattr(cls, "name", None) != name:
        raise TypeError(f"its class attribute `name` is not {name!r}")
    check_declaration(cls)


FILTERS: Registry[type[Filter]] = Registry(
    "filter",
    {
        "validity": "entaug.filters.texts:Validity",
        "duplicates": "entaug.filters.texts:Duplicates",
        "fluency": "entaug.filters.models:Fluency",
        "similarity": "entaug.filters.models:Similarity",
        "mentions": "entaug.filters.texts:Mentions",
        "consistency": "entaug.filters.models:Consistency",
        "leakage": "entaug.filters.texts:Leakage",
        "guard": "entaug.filters.label_guard:LabelGuard",
    },
    group="entaug.filters",
    check=_check_filter,
)
"""The filters."""


def create_filters(
    filters: str | Filter | Sequence[str | Filter | None] | None, held_out: Sequence[Sentence] | None = None
) -> list[Filter]:
    """Create filters from instances, names or their text form."""
    if filters is None:
        return []
    if isinstance(filters, Filter):
        return [filters]
    if not isinstance(filters, str):
        return [filter_ for item in filters for filter_ in create_filters(item, held_out)]
    return [_create(text, held_out) for text in filters.split("+") if text.strip() not in ("", "none")]


def _create(text: str, held_out: Sequence[Sentence] | None) -> Filter:
    name, _, assignments = text.strip().partition(":")
    cls = FILTERS[name]
    values = parse_assignments(cls, name, filter(None, assignments.split(",")))
    if cls is Leakage:
        values.setdefault("held_out", held_out)
    return construct(cls, name, values)
