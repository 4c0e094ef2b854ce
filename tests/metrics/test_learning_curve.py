"""Learning curves: hand-worked fits, and forecasts of simulated curves whose true course is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entaug.errors import ParameterError
from entaug.metrics.learning_curve import CurvePrior, Estimate, fit_learning_curve
from forecasts import simulate

SIZES = [40, 68, 116, 200]


def exact(f1: list[float], sentences: int = 200) -> Any:
    """Counts of which all sentences have the same F1, without noise."""
    return np.array([[[1000 * one, 1000, 1000]] * sentences for one in f1])


def power(size: int, asymptote: float, exponent: float) -> float:
    return asymptote - 0.9 * math.pow(size, -exponent)


@pytest.mark.parametrize("exponent", [0.1, 0.3, 0.6])
def test_a_curve_without_noise_is_continued(exponent: float) -> None:
    truth = [power(size, 0.9, exponent) for size in (*SIZES, 400)]
    prior = CurvePrior(gain_sd=0.5, training_sd=1e-4)
    curve = fit_learning_curve(SIZES, [exact(truth[:-1])], prior=prior)
    assert [one.value for one in curve.measured] == pytest.approx(truth[:-1])
    assert curve.f1(400).value == pytest.approx(truth[-1], abs=0.005)
    assert curve.gain(200, 400).value == pytest.approx(truth[-1] - truth[-2], abs=0.005)


def test_a_flat_curve_stays_flat() -> None:
    curve = fit_learning_curve(SIZES, [exact([0.6] * 4)], prior=CurvePrior(gain_sd=0.5, training_sd=1e-4))
    assert curve.gain(200, 400).value == pytest.approx(0, abs=1e-3)


def test_without_data_the_gain_is_the_prior() -> None:
    # A prior without doubt on the gain: what is measured moves the level alone. 0.2 of the error before the doubling
    # is 0.25 of that after it; an exponent of 1 halves the gain of the next doubling.
    prior = CurvePrior(gain=0.2, gain_sd=1e-6, exponent=1.0, exponent_sd=1e-6)
    curve = fit_learning_curve(SIZES, [exact([0.5, 0.5, 0.5, 0.6])], prior=prior)
    assert curve.gain(200, 400).value == pytest.approx(0.25 * 0.4 / 2, abs=1e-3)


def test_forecasts_further_away_are_less_certain() -> None:
    curve = fit_learning_curve(SIZES, [exact([0.4, 0.45, 0.5, 0.55])])
    widths = [curve.gain(200, size).high - curve.gain(200, size).low for size in (250, 300, 400, 800)]
    assert widths == sorted(widths)
    assert curve.f1(200, same_sentences=True).high <= curve.f1(200).high


def test_more_trainings_make_it_more_certain() -> None:
    counts = exact([0.4, 0.45, 0.5, 0.55])
    widths = [_width(fit_learning_curve(SIZES, [counts], trainings=[times]).f1(400)) for times in (1, 3, 10)]
    assert widths == sorted(widths, reverse=True)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


@given(st.integers(0, 2**32), st.floats(0.2, 0.9), st.integers(2, 5), st.integers(5, 40))
def test_what_holds_of_all_curves(seed: int, f1: float, sizes: int, sentences: int) -> None:
    rng = np.random.default_rng(seed)
    gold = rng.poisson(2, sentences) + 1
    correct = np.array([rng.binomial(gold, f1) for _ in range(sizes)])
    counts = np.stack([correct, np.broadcast_to(gold, correct.shape), np.broadcast_to(gold, correct.shape)], axis=2)
    steps = [50 * 2**i for i in range(sizes)]
    curve = fit_learning_curve(steps, [counts[:, ::2], counts[:, 1::2]])
    for size in (10, *steps, 10_000):
        one, same = curve.f1(size), curve.f1(size, same_sentences=True)
        assert 0 <= one.low <= one.high <= 1
        assert _width(same) <= _width(one) + 1e-9
    assert curve.gain(100, 100).value == pytest.approx(0)
    # Folds have no order, and neither have sentences.
    other = fit_learning_curve(steps, [counts[:, 1::2][:, ::-1], counts[:, ::2]])
    assert other.f1(1000).value == pytest.approx(curve.f1(1000).value, abs=1e-6)


def test_intervals_cover_what_they_should() -> None:
    rng = np.random.default_rng(5)
    number = 200
    simulated = [simulate(rng, 300) for _ in range(number)]
    forecasts = [(one.curve.f1(600), one.twice) for one in simulated]
    gains = [(one.curve.gain(300, 600), one.twice - one.known) for one in simulated]
    for some in (forecasts, gains):
        # 95 % of the true values; three standard errors of 200 draws are 4.6 %.
        assert sum(one.low <= truth <= one.high for one, truth in some) >= 0.904 * number
    errors = [(one.value - truth) ** 2 for one, truth in gains]
    assert math.sqrt(np.mean(errors)) < 0.5 * math.sqrt(np.mean([truth**2 for _, truth in gains]))


@pytest.mark.parametrize(
    ("sizes", "folds", "message"),
    [
        ([100], [exact([0.5])], "at least two increasing sizes"),
        ([100, 50], [exact([0.5, 0.6])], "at least two increasing sizes"),
        ([50, 100], [], "the shape"),
        ([50, 100], [exact([0.5])], "the shape"),
        ([50, 100], [exact([0.5, 0.6], 1)], "at least two held-out sentences"),
        ([50, 100], [np.zeros((2, 5, 3))], "no held-out sentence has a mention"),
    ],
)
def test_data_that_are_no_curve(sizes: list[int], folds: list[Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fit_learning_curve(sizes, folds)
