"""The parameter layer: checks, texts, descriptions, and that every configurable class obeys it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge

from entaug.config.params import (
    REQUIRED,
    Check,
    Configurable,
    Parameter,
    PositiveInt,
    Probability,
    construct,
    parameters,
    parse_assignments,
    some_of,
)
from entaug.errors import ParameterError, UnknownNameError
from entaug.filters import FILTERS
from entaug.methods import METHODS


@dataclass(kw_only=True)
class Example(Configurable):
    """An example.

    Args:
        count: how many,
            on two lines.
        share: a share; none for all.
        order: the order.
        flag: whether.
        kinds: some of a list.
        word: a word of at most three letters.
        either: a number or a name.
        numbers: several integers.
    """

    count: PositiveInt = 1
    share: Probability | None = None
    order: Literal["up", "down"] = "up"
    flag: bool = False
    kinds: Annotated[str, some_of(("a", "b"))] = "a"
    word: Annotated[str, Check(lambda word: len(word) <= 3, "a short word")] = "abc"
    either: Annotated[int, Ge(0)] | str = 0
    numbers: tuple[int, ...] = ()


PARAMETERS = {parameter.name: parameter for parameter in parameters(Example)}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", 0, "an integer of at least 1, not 0"),
        ("count", True, "an integer of at least 1, not True"),
        ("count", 1.0, "an integer of at least 1, not 1.0"),
        ("count", None, "an integer of at least 1, not None"),
        ("share", 1.5, "a number from 0 to 1, or none, not 1.5"),
        ("share", float("nan"), "a number from 0 to 1, or none, not nan"),
        ("order", "left", "one of 'up', 'down', not 'left'"),
        ("flag", 1, "true or false, not 1"),
        ("kinds", "a+c", "one or more of a+b, not 'a+c'"),
        ("word", "abcd", "a short word, not 'abcd'"),
        ("either", -1, "an integer of at least 0 or a string, not -1"),
        ("numbers", "12", "a list, each item an integer, not '12'"),
    ],
)
def test_a_wrong_value_fails_in_the_constructor_and_says_what_is_expected(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Example(**{name: value})
    assert str(caught.value) == f"{name} must be {expected}"
    assert caught.value.parameter == name


def test_numbers_of_numpy_become_numbers() -> None:
    given: dict[str, Any] = {"count": np.int64(2), "share": np.float32(0.5), "either": np.int32(3)}
    made = Example(**given)
    assert [(type(v), v) for v in (made.count, made.share, made.either)] == [(int, 2), (float, 0.5), (int, 3)]
    with pytest.raises(ParameterError, match=r"^share must be a number from 0 to 1, or none, not 1\.5$"):
        Example(share=np.float64(1.5))


def test_an_invalid_default_is_told_as_that_of_its_class() -> None:
    @dataclass(kw_only=True)
    class Other(Configurable):
        p: Probability = 2

    told = r"^p must be a number from 0 to 1, not 2, which is the default of .*Other; give another value, or correct"
    with pytest.raises(ParameterError, match=told):
        Other()
    with pytest.raises(ParameterError, match=r"^p must be a number from 0 to 1, not 3$"):
        Other(p=3)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("count", "3", 3),
        ("share", "0.5", 0.5),
        ("share", "none", None),
        ("share", "None", None),
        ("order", "down", "down"),
        ("flag", "true", True),
        ("kinds", "b+a", "b+a"),
        ("either", "7", 7),
        ("either", "seven", "seven"),
        ("numbers", "1, 2", (1, 2)),
    ],
)
def test_texts_become_values(name: str, text: str, value: Any) -> None:
    parsed = PARAMETERS[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)
    assert getattr(Example(**{name: parsed}), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("count", "0"), ("count", "x"), ("count", "none"), ("share", "2"), ("order", "UP"), ("flag", "1")],
)
def test_texts_that_are_no_value(name: str, text: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be .*, not '{text}'"):
        PARAMETERS[name].parse(text)


def test_descriptions_come_from_the_docstring() -> None:
    assert PARAMETERS["count"].description == "how many, on two lines."
    assert PARAMETERS["order"].choices == ("up", "down")
    assert PARAMETERS["flag"].is_flag
    assert not PARAMETERS["count"].is_flag


def test_construct_suggests_the_nearest_name() -> None:
    assert construct(Example, "example", {"count": 2}).count == 2
    with pytest.raises(UnknownNameError, match="unknown parameter of example: 'cuont'; did you mean 'count'"):
        construct(Example, "example", {"cuont": 2})


def test_assignments() -> None:
    assert parse_assignments(Example, "example", ["count=2", " share = none "]) == {"count": 2, "share": None}
    with pytest.raises(ParameterError, match="'count' is not of the form PARAMETER=VALUE"):
        parse_assignments(Example, "example", ["count"])
    with pytest.raises(UnknownNameError, match="did you mean 'share'"):
        parse_assignments(Example, "example", ["shar=1"])


def configurable_classes() -> list[type]:
    return [*(METHODS[name] for name in METHODS), *(FILTERS[name] for name in FILTERS)]


@pytest.mark.parametrize("cls", configurable_classes(), ids=lambda cls: cls.__name__)
def test_every_parameter_is_described_and_its_default_valid(cls: type) -> None:
    for parameter in parameters(cls):
        assert parameter.description, f"{cls.__name__}.{parameter.name} stands in no Args section"
        assert parameter.default is not REQUIRED
        parameter.check(parameter.default)
        assert parameter.expected


def nonsense(parameter: Parameter) -> list[Any]:
    values: list[Any] = [object(), -(10**9), 10**9 + 0.5, "\0", [], float("nan"), True, None]
    return [value for value in values if not accepts(parameter, value)]


def accepts(parameter: Parameter, value: Any) -> bool:
    try:
        parameter.check(value)
    except (ParameterError, UnknownNameError):
        return False
    return True


@pytest.mark.parametrize("cls", configurable_classes(), ids=lambda cls: cls.__name__)
def test_every_constructor_refuses_what_the_annotations_exclude(cls: type) -> None:
    presets = {name for preset in getattr(cls, "presets", {}).values() for name in preset}
    for parameter in parameters(cls):
        for value in nonsense(parameter):
            if value is None and parameter.name in presets:
                continue  # the preset settles it
            with pytest.raises((ParameterError, UnknownNameError)):
                cls(**{parameter.name: value})
