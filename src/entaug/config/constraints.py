"""Constraints in the annotations of parameters, and the conversion and validation of values."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Lt

__all__ = [
    "Alternative",
    "Check",
    "Cosine",
    "NonNegativeFloat",
    "NonNegativeInt",
    "PositiveFloat",
    "PositiveInt",
    "PositiveShare",
    "Probability",
    "Subset",
    "alternatives_of",
    "is_optional",
]


@dataclass(frozen=True)
class Subset:
    """Constraint on a string: one or more names from a fixed list, joined by a separator."""

    choices: tuple[str, ...]
    separator: str = "+"


@dataclass(frozen=True)
class Check:
    """Constraint defined by a function."""

    accepts: Callable[[Any], bool]
    expected: str


PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
NonNegativeFloat = Annotated[float, Ge(0)]
Probability = Annotated[float, Interval(ge=0, le=1)]
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
Cosine = Annotated[float, Interval(ge=-1, le=1)]

_NUMBERS = {int: "an integer", float: "a number"}


@dataclass(frozen=True)
class Alternative:
    """One member of an annotated union: a type with its constraints."""

    type: Any
    constraints: tuple[Any, ...] = ()

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of a `typing.Literal`; empty for other types."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds by the name of their operator: ge, gt, le, lt."""
        found: dict[str, float] = {}
        for constraint in self.constraints:
            if isinstance(constraint, Ge | Gt | Le | Lt | Interval):
                for name in ("ge", "gt", "le", "lt"):
                    if (bound := getattr(constraint, name, None)) is not None:
                        found[name] = bound
        return found

    def accepts(self, value: Any) -> bool:
        """Whether a value has this type and satisfies the constraints."""
        kind = self.type
        if self.choices:
            return any(value == choice and type(value) is type(choice) for choice in self.choices)
        if kind is float:
            fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        elif kind is int:
            fits = type(value) is int
        else:
            fits = _is_instance(value, kind)
        return fits and _in_bounds(value, self.bounds) and all(_satisfies(value, c) for c in self.constraints)

    def parse(self, text: str) -> Any:
        """Convert text without checking the constraints."""
        if self.choices:
            return next(choice for choice in self.choices if str(choice) == text)
        if self.type is bool:
            return {"true": True, "false": False}[text.lower()]
        if self.type in (int, float, str):
            return self.type(text)
        if get_origin(self.type) is tuple:
            item = alternatives_of(get_args(self.type)[0])[0]
            return tuple(item.parse(part.strip()) for part in text.split(","))
        raise ValueError(text)

    @property
    def expected(self) -> str:
        """Description of the valid values."""
        if self.choices:
            return _one_of(self.choices)
        for constraint in self.constraints:
            if isinstance(constraint, Subset):
                return f"one or more of {constraint.separator.join(constraint.choices)}"
            if isinstance(constraint, Check):
                return constraint.expected
        if self.type in _NUMBERS:
            return _NUMBERS[self.type] + _bounds_in_words(self.bounds)
        if get_origin(self.type) is tuple:
            return "a tuple"
        named = {bool: "true or false", str: "a string"}
        return named.get(self.type) or f"a {getattr(self.type, '__name__', None) or self.type}"


def _is_instance(value: Any, kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Any or not isinstance(origin, type):
        return True
    if origin is Sequence or (issubclass(origin, Sequence) and origin is not str):
        return isinstance(value, Sequence) and not isinstance(value, str) and _are_items(value, kind)
    try:
        return isinstance(value, origin)
    except TypeError:  # a protocol that is not runtime checkable
        return True


def _are_items(values: Sequence[Any], kind: Any) -> bool:
    """Whether values are what the annotation of a tuple of any length says of each; other annotations say nothing."""
    if get_origin(kind) is not tuple or get_args(kind)[1:] != (...,):
        return True
    alternatives = alternatives_of(get_args(kind)[0])
    return all(any(one.accepts(value) for one in alternatives) for value in values)


def _in_bounds(value: Any, bounds: Mapping[str, float]) -> bool:
    return (
        value >= bounds.get("ge", -math.inf)
        and value <= bounds.get("le", math.inf)
        and ("gt" not in bounds or value > bounds["gt"])
        and ("lt" not in bounds or value < bounds["lt"])
        if bounds
        else True
    )


def _satisfies(value: Any, constraint: Any) -> bool:
    if isinstance(constraint, Subset):
        names = [name.strip() for name in value.split(constraint.separator)]
        return bool(names) and set(names) <= set(constraint.choices)
    return constraint.accepts(value) if isinstance(constraint, Check) else True


def _one_of(choices: Sequence[Any]) -> str:
    names = [repr(choice) for choice in choices]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _bounds_in_words(bounds: Mapping[str, float]) -> str:
    if {"ge", "le"} <= bounds.keys():
        return f" from {bounds['ge']:g} to {bounds['le']:g}"
    words = {"ge": "of at least {:g}", "gt": "above {:g}", "le": "of at most {:g}", "lt": "below {:g}"}
    told = [words[name].format(bound) for name, bound in bounds.items()]
    return f" {' and '.join(told)}" if told else ""


def alternatives_of(annotation: Any) -> list[Alternative]:
    """Return the members of an annotation, without None; constraints of an annotated union apply to each member."""
    if get_origin(annotation) is Annotated:
        inner, *constraints = get_args(annotation)
        return [Alternative(a.type, (*a.constraints, *constraints)) for a in alternatives_of(inner)]
    if get_origin(annotation) in (Union, types.UnionType):
        return [a for part in get_args(annotation) if part is not type(None) for a in alternatives_of(part)]
    return [Alternative(annotation)]


def is_optional(annotation: Any) -> bool:
    """Whether an annotation permits None."""
    if get_origin(annotation) is Annotated:
        return is_optional(get_args(annotation)[0])
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)
