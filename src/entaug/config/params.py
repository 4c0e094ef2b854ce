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
import math
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Number
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval

from entaug.errors import ParameterError, UnknownNameError


@dataclass(frozen=True)
class Check:
    """Constraint defined by a function."""

    accepts: Callable[[Any], bool]
    expected: str


def some_of(choices: Sequence[str]) -> Check:
    """Constraint on a string: one or more names from a fixed list, joined by "+"."""
    expected = f"one or more of {'+'.join(choices)}"
    return Check(lambda text: {name.strip() for name in text.split("+")} <= set(choices), expected)


PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
NonNegativeFloat = Annotated[float, Ge(0)]
Probability = Annotated[float, Interval(ge=0, le=1)]
PositiveShare = Annotated[float, Interval(gt=0, le=1)]
Cosine = Annotated[float, Interval(ge=-1, le=1)]

_BOUNDS = {"ge": "of at least {:g}", "gt": "above {:g}", "le": "of at most {:g}", "lt": "below {:g}"}
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
        found = {name: getattr(constraint, name, None) for constraint in self.constraints for name in _BOUNDS}
        return {name: bound for name, bound in found.items() if bound is not None}

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
        in_bounds = fits and all(getattr(operator, name)(value, bound) for name, bound in self.bounds.items())
        return in_bounds and all(c.accepts(value) for c in self.constraints if isinstance(c, Check))

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
            if isinstance(constraint, Check):
                return constraint.expected
        if self.type in _NUMBERS:
            return _NUMBERS[self.type] + _bounds_in_words(self.bounds)
        if get_origin(self.type) is tuple:
            items = [item for item in alternatives_of(get_args(self.type)[0]) if item.type is not Any]
            return "a list" + ", each item " * bool(items) + " or ".join(item.expected for item in items)
        named = {bool: "true or false", str: "a string"}
        return named.get(self.type) or f"a {getattr(self.type, '__name__', None) or self.type}"


def _is_instance(value: Any, kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Any or not isinstance(origin, type):
        return True
    if issubclass(origin, Sequence) and origin is not str:
        item, *rest = get_args(kind) or (Any,)
        items = value if rest == [...] else ()  # other annotations than that of a tuple of any length say nothing
        is_sequence = isinstance(value, Sequence) and not isinstance(value, str)
        return is_sequence and all(any(one.accepts(own) for one in alternatives_of(item)) for own in items)
    try:
        return isinstance(value, origin)
    except TypeError:  # a protocol that is not runtime checkable
        return True


def _one_of(choices: Sequence[Any]) -> str:
    names = [repr(choice) for choice in choices]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _bounds_in_words(bounds: Mapping[str, float]) -> str:
    if {"ge", "le"} <= bounds.keys():
        return f" from {bounds['ge']:g} to {bounds['le']:g}"
    told = [_BOUNDS[name].format(bound) for name, bound in bounds.items()]
    return f" {' and '.join(told)}" if told else ""


def alternatives_of(annotation: Any) -> list[Alternative]:
    """Return the members of an annotation; constraints of an annotated union apply to each member."""
    if get_origin(annotation) is Annotated:
        inner, *constraints = get_args(annotation)
        return [Alternative(a.type, (*a.constraints, *constraints)) for a in alternatives_of(inner)]
    if get_origin(annotation) in (Union, types.UnionType):
        return [a for part in get_args(annotation) for a in alternatives_of(part)]
    return [Alternative(annotation)]


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
    hints = [inspect.get_annotations(base, eval_str=True) for base in reversed(cls.__mro__)]
    members = {name: alternatives_of(hint) for of_base in hints for name, hint in of_base.items()}
    texts = argument_descriptions(cls)
    return tuple(
        Parameter(
            name=f.name,
            default=f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default,
            description=texts.get(f.name, ""),
            optional=any(member.type is NoneType for member in members[f.name]),
            metadata=f.metadata,
            alternatives=tuple(member for member in members[f.name] if member.type is not NoneType),
        )
        for f in dataclasses.fields(cls)
        if f.init
    )


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a function, as if it were a dataclass with these fields."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any, Any]] = []
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is not one.VAR_KEYWORD:
            own = field() if one.default is one.empty else field(default_factory=partial(_same, one.default))
            fields.append((name, hints[name], own))
    cls = dataclasses.make_dataclass("Options", fields, namespace={"__doc__": function.__doc__}, kw_only=True)
    return parameters(cls)


def check_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check arguments of a call against the annotations of the function."""
    for parameter in parameters_of(function):
        if parameter.name in given:
            parameter.check(given[parameter.name])


def _same(value: T) -> T:
    return value


def argument_descriptions(cls: type) -> dict[str, str]:
    """Return the entries of the ``Args`` sections of a class and its bases."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = inspect.cleandoc(base.__doc__ or "").partition("Args:\n")[2].partition("\n\n")[0]
        for name, text in re.findall(r"(?m)^    (\w+): (.*(?:\n {5,}.*)*)", section):
            texts[name] = " ".join(text.split())
    return texts


def check_declaration(cls: type) -> None:
    """Check that a class declares its parameters as `parameters` needs them; a class of another package may not."""
    for base in cls.__mro__:
        if issubclass(base, Configurable) and "__dataclass_fields__" not in vars(base):
            for name, hint in inspect.get_annotations(base, eval_str=True).items():
                if name in vars(base) and ClassVar not in (hint, get_origin(hint)):
                    decorator = "@dataclass(kw_only=True, eq=False)"
                    raise TypeError(f"{name!r} is no parameter: write {decorator} above the class {base.__name__}")
    parameters(cls)


def validate(instance: Any) -> None:
    """Check all parameters of an instance of a dataclass."""
    cls: Any = type(instance)
    for parameter in parameters(cls):
        value, default = getattr(instance, parameter.name), parameter.default
        if isinstance(value, Number) and hasattr(value, "item"):  # a number of NumPy
            value = value.item()
            object.__setattr__(instance, parameter.name, value)
        try:
            parameter.check(value)
        except ParameterError as error:
            if type(value) is type(default) and value == default:  # nobody gave it
                error.message += f", which is the default of {cls.__module__}.{cls.__qualname__}"
                error.remedy = "give another value, or correct the class"
            raise


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


def with_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file, for `construct`: lists are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


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
