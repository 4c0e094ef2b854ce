"""Krippendorff's alpha against the examples of its author and an independent implementation."""

from __future__ import annotations

import random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from entaug.errors import ParameterError
from entaug.metrics.agreement import Level, krippendorff_alpha

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability: the reliability data of sections A, B and C, with the
# values of alpha that the paper computes from them. A full stop is a missing rating.
TWO_VALUES = ("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0")
FIVE_CATEGORIES = ("1 1 2 2 4 3 3 3 5 4 4 1", "2 1 2 2 2 3 3 3 5 4 4 4")
FOUR_RATERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)


def units_of(raters: tuple[str, ...]) -> list[list[float | None]]:
    rows = [[None if cell == "." else float(cell) for cell in row.split()] for row in raters]
    return [list(unit) for unit in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("raters", "level", "published"),
    [
        (TWO_VALUES, "nominal", 0.095),
        (TWO_VALUES, "interval", 0.095),
        (FIVE_CATEGORIES, "nominal", 0.692),
        (FOUR_RATERS, "nominal", 0.743),
        (FOUR_RATERS, "ordinal", 0.815),
        (FOUR_RATERS, "interval", 0.849),
    ],
)
def test_examples_of_krippendorff_2011(raters: tuple[str, ...], level: Level, published: float) -> None:
    assert krippendorff_alpha(units_of(raters), level) == pytest.approx(published, abs=5e-4)


def by_definition(units: list[list[float | None]], level: Level) -> float | None:
    """1 - observed / expected disagreement, pair by pair, without a matrix of coincidences."""
    pairable = [unit for unit in ([r for r in one if r is not None] for one in units) if len(unit) > 1]
    pooled = [rating for unit in pairable for rating in unit]

    def distance(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        return float(sum(low <= r <= high for r in pooled) - (pooled.count(a) + pooled.count(b)) / 2) ** 2

    def disagreement(ratings: list[float]) -> float:
        return sum(distance(a, b) for i, a in enumerate(ratings) for j, b in enumerate(ratings) if i != j)

    expected = disagreement(pooled)
    if not expected:
        return None
    observed = sum(disagreement(unit) / (len(unit) - 1) for unit in pairable)
    return 1 - observed * (len(pooled) - 1) / expected


RATINGS = st.lists(st.lists(st.none() | st.integers(1, 5).map(float), max_size=5), max_size=8)


@settings(max_examples=examples(200))
@given(RATINGS, st.sampled_from(get_args(Level)), st.randoms(use_true_random=False))
def test_equals_the_definition_in_any_order(units: list[list[float | None]], level: Level, rng: random.Random) -> None:
    alpha = krippendorff_alpha(units, level)
    expected = by_definition(units, level)
    assert (alpha is None) == (expected is None)
    if alpha is not None:
        assert alpha == pytest.approx(expected, abs=1e-9)
        assert alpha <= 1 + 1e-9
    shuffled = [rng.sample(unit, len(unit)) for unit in rng.sample(units, len(units))]
    assert krippendorff_alpha(shuffled, level) == pytest.approx(alpha, abs=1e-9)


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_agrees_with_nltk(level: Level) -> None:
    agreement = pytest.importorskip("nltk.metrics.agreement")
    distances = pytest.importorskip("nltk.metrics.distance")
    rng = random.Random(7)
    units = [[float(rng.randint(1, 5)) if rng.random() < 0.8 else None for _ in range(5)] for _ in range(40)]
    data = [(r, i, rating) for i, unit in enumerate(units) for r, rating in enumerate(unit) if rating is not None]
    distance = distances.interval_distance if level == "interval" else distances.binary_distance
    oracle = agreement.AnnotationTask(data=data, distance=distance)
    assert krippendorff_alpha(units, level) == pytest.approx(oracle.alpha())


def test_extremes() -> None:
    for level in get_args(Level):
        assert krippendorff_alpha([[1, 1, 1], [2, 2], [5, None, 5]], level) == 1
        assert krippendorff_alpha([[1, 2], [2, 1]], level) < 0  # type: ignore[operator]
        undefined: list[list[list[float | None]]] = [[], [[]], [[1], [2], [None, 3]], [[4, 4], [4, 4, 4], [1]]]
        for units in undefined:
            assert krippendorff_alpha(units, level) is None


def test_faulty_arguments() -> None:
    with pytest.raises(ParameterError, match="choose from nominal, ordinal, interval"):
        krippendorff_alpha([[1, 2]], "ratio")  # type: ignore[arg-type]
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="use None for a missing rating"):
            krippendorff_alpha([[1, bad]])
