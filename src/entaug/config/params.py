"""Parameters of configurable objects, declared once in the annotations of dataclass fields.

A parameter is declared only as a field, such as ``p: Probability = 0.3`` or ``order: Literal["a", "b"] = "a"``. The
check in the constructor, the command-line option with its help, the key of an experiment plan, the text form of a
filter (``fluency:margin=1``) and the tables of the documentation are derived from it through `parameters`.

Example:
    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class Dropout(Configurable):
    ...     '''Drop tokens.
    ...
    ...     Args:
    ...         p: probability of dropping a token.
    ...     '''
    ...     p: Probability = 0.1
    >>> Dropout(p=2)
    Traceback (most recent call last):
    ...
    entaug.errors.ParameterError: p must be a number from 0 to 1, not 2
    >>> [p] = parameters(Dropout)
    >>> p.name, p.expected, p.description, p.parse("0.5")
    ('p', 'a number from 0 to 1', 'probability of dropping a token.', 0.5)
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from entaug.config.constraints import (
    Alternative,
    Check,
    Cosine,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PositiveShare,
    Probability,
    Subset,
    alternatives_of,
    is_optional,
)
from entaug.errors import ParameterError, UnknownNameError

__all__ = [
    "REQUIRED",
    "Check",
    "Configurable",
    "Cosine",
    "NonNegativeFloat",
    "NonNegativeInt",
    "Parameter",
    "PositiveFloat",
    "PositiveInt",
    "PositiveShare",
    "Probability",
    "Subset",
    "argument_descriptions",
    "construct",
    "parameters",
    "parse_assignments",
    "validate",
]

REQUIRED = dataclasses.MISSING
"""Marks a parameter without a default value."""

T = TypeVar("T")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a configurable class."""

    name: str
    default: Any
    description: str
    optional: bool
    metadata: Mapping[str, Any] = field(repr=False)
    alternatives: tuple[Alternative, ...] = field(repr=False)

    @property
    def expected(self) -> str:
        """Description of the valid values, for example ``"an integer of at least 1, or none"``."""
        # On the command line and in plans a backend is given by name, so its class is not listed.
        shown = [a.expected for a in self.alternatives if a.type in (int, float, bool, str) or a.choices]
        shown = shown or [a.expected for a in self.alternatives]
        return " or ".join(dict.fromkeys(shown)) + (", or none" if self.optional else "")

    @property
    def choices(self) -> tuple[Any, ...]:
        """The valid values, if they are a fixed list; otherwise empty."""
        return self.alternatives[0].choices if len(self.alternatives) == 1 else ()

    @property
    def is_flag(self) -> bool:
        """Whether the parameter is a boolean."""
        return all(a.type is bool for a in self.alternatives)

    def check(self, value: Any) -> None:
        """Check a value."""
        try:
            if (value is None and self.optional) or any(a.accepts(value) for a in self.alternatives):
                return
        except ParameterError as error:  # of a `Check`, which does not know the name
            error.parameter = error.parameter or self.name
            raise
        near = difflib.get_close_matches(str(value), map(str, self.choices), n=1, cutoff=0.5)
        raise ParameterError(
            f"{self.name} must be {self.expected}, not {value!r}",
            parameter=self.name,
            remedy=f"did you mean {near[0]!r}?" if near else None,
        )

    def parse(self, text: str) -> Any:
        """Convert text, as given on the command line or in a filter's text form, and check the value."""
        if self.optional and text.lower() == "none":
            return None
        for alternative in self.alternatives:
            try:
                value = alternative.parse(text)
            except (ValueError, LookupError, StopIteration):
                continue
            if alternative.accepts(value):
                return value
        raise ParameterError(f"{self.name} must be {self.expected}, not {text!r}", parameter=self.name)


@cache
def parameters(cls: type) -> tuple[Parameter, ...]:
    """Return the parameters of a dataclass, in the order of its fields."""
    hints = _hints(cls)
    texts = argument_descriptions(cls)
    return tuple(
        Parameter(
            name=f.name,
            default=f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default,
            description=texts.get(f.name, ""),
            optional=is_optional(hints[f.name]),
            metadata=f.metadata,
            alternatives=tuple(alternatives_of(hints[f.name])),
        )
        for f in dataclasses.fields(cls)
        if f.init
    )


def _hints(cls: type) -> dict[str, Any]:
    """Return the evaluated annotations of a class; each is evaluated in the module that defines it."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if own := inspect.get_annotations(base):
            module = vars(inspect.getmodule(base) or types)
            for name, annotation in own.items():
                hints[name] = (
                    eval(annotation, dict(module), dict(vars(base)))  # noqa: S307 - our own source
                    if isinstance(annotation, str) and not annotation.startswith("ClassVar")
                    else annotation
                )
    return hints


def argument_descriptions(cls: type) -> dict[str, str]:
    """Return the entries of the ``Args`` sections of a class and its bases."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        _, _, section = inspect.cleandoc(base.__doc__ or "").partition("Args:\n")
        last = ""
        for line in section.split("\n"):
            if not line.strip():
                break
            name, colon, text = line.strip().partition(": ")
            if colon and name.isidentifier() and line.startswith("    ") and not line.startswith(" " * 5):
                last = name
                texts[last] = text
            elif last:
                texts[last] += " " + line.strip()
    return texts


def validate(instance: Any) -> None:
    """Check all parameters of an instance of a dataclass."""
    cls: Any = type(instance)
    for parameter in parameters(cls):
        parameter.check(getattr(instance, parameter.name))


def construct(cls: Callable[..., T], name: str, values: Mapping[str, Any]) -> T:
    """Construct an object from parameters by name."""
    known = {parameter.name: parameter for parameter in parameters(typing.cast(type, cls))}
    for given in values:
        if given not in known:
            raise UnknownNameError(f"parameter of {name}:", given, known)
    missing = [p.name for p in known.values() if p.default is REQUIRED and p.name not in values]
    if missing:
        raise ParameterError(f"{name} needs the parameter {missing[0]}", parameter=missing[0])
    return cls(**values)


def parse_assignments(cls: type, name: str, assignments: Iterable[str]) -> dict[str, Any]:
    """Convert parameters in text form."""
    known = {parameter.name: parameter for parameter in parameters(cls)}
    values = {}
    for assignment in assignments:
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ParameterError(f"{name}: {assignment!r} is not of the form PARAMETER=VALUE")
        if key not in known:
            raise UnknownNameError(f"parameter of {name}:", key, known)
        values[key] = known[key].parse(value)
    return values


@dataclass(kw_only=True, eq=False)
class Configurable:
    """Base class of dataclasses whose fields are validated parameters."""

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Check all parameters."""
        validate(self)
        self._check()

    def _check(self) -> None:
        """Check constraints between several parameters; overridden by subclasses."""
