"""Which recipe to take: gains with their uncertainty, shrunk towards what is expected of recipes in general.

The gain of a recipe is its micro-F1 on held-out sentences, over all folds together, less the mean of the gold-only
taggers of the same folds. Two sources of noise are estimated: the sentences, by a paired bootstrap, and the training,
by the spread of the gold-only taggers of a fold, which differ by their seeds. The gains are combined with a prior
(normal, with the mean `Recipe.prior_gain` and the standard deviation `PRIOR_SD`, of whose variance the share
`SHARED` is common to all recipes of a corpus): the noisier the measurement, the closer the result is to the prior, so
that the best of several noisy gains is not taken at face value. Where nothing is measured, the prior is all there is.

The recipe with the highest expected gain is taken if this gain is at least `LEAST_GAIN` and the probability of losing
more than `TOLERATED_LOSS` is at most `RISK`; otherwise the tagger is trained on gold alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

__all__ = [
    "LEAST_GAIN",
    "PRIOR_SD",
    "RISK",
    "SHARED",
    "TOLERATED_LOSS",
    "Gain",
    "Outcome",
    "choose",
    "estimate_gains",
    "prior_gains",
    "shrink",
]

PRIOR_SD = 3.0
"""Standard deviation of the prior of a gain, in points of F1."""
SHARED = 0.6
"""Share of the variance of the prior that all recipes of a corpus have in common."""
LEAST_GAIN = 0.5
"""The expected gain in points of F1 from which on a recipe is worth its sentences."""
TOLERATED_LOSS = 1.0
"""A loss in points of F1 that must be unlikely."""
RISK = 0.05
"""The probability of a larger loss that is accepted."""

_SAMPLES = 1000
_LEAST_ERROR = 0.5  # points: results that are equal by chance are not without error
_CHUNK = 100


@dataclass(frozen=True)
class Gain:
    """The gain of a recipe over gold alone, in points of F1."""

    recipe: str
    measured: float | None
    standard_error: float | None
    expected: float
    low: float
    high: float
    risk: float

    @property
    def is_credible(self) -> bool:
        """Whether the gain is good enough to take the recipe."""
        return self.expected >= LEAST_GAIN and self.risk <= RISK


@dataclass(frozen=True)
class Outcome:
    """The held-out results of one repetition of the cross-validation."""

    folds: NDArray[float64]
    gold: NDArray[float64]
    recipes: Mapping[str, NDArray[float64]]


def choose(gains: Sequence[Gain]) -> Gain | None:
    """Choose a recipe."""
    best = max(gains, key=lambda gain: gain.expected, default=None)
    return best if best is not None and best.is_credible else None


def estimate_gains(outcomes: Sequence[Outcome], priors: Mapping[str, float]) -> list[Gain]:
    """Estimate the gains of recipes."""
    import numpy as np

    names = list(priors)
    ones = np.ones((1, len(outcomes[0].folds)))
    measured = _gains(outcomes, names, ones)[0]
    rng = np.random.default_rng(0)
    n = ones.shape[1]
    draws = []
    for _ in range(0, _SAMPLES, _CHUNK):
        drawn = rng.integers(n, size=(_CHUNK, n)) + n * np.arange(_CHUNK)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=_CHUNK * n).reshape(_CHUNK, n).astype(np.float64)
        draws.append(_gains(outcomes, names, weights))
    noise = np.atleast_2d(np.cov(np.concatenate(draws), rowvar=False)) + _training_noise(outcomes, names)
    noise += _LEAST_ERROR**2 * np.eye(len(names))
    expected, deviations = shrink(measured, noise, [priors[name] for name in names])
    errors = np.sqrt(np.diag(noise))
    return [
        _gain(name, float(expected[i]), float(deviations[i]), (float(measured[i]), float(errors[i])))
        for i, name in enumerate(names)
    ]


def prior_gains(priors: Mapping[str, float]) -> list[Gain]:
    """Return what to expect of recipes where nothing is measured."""
    return [_gain(name, gain, PRIOR_SD) for name, gain in priors.items()]


def _gain(recipe: str, expected: float, deviation: float, measured: tuple[float, float] | None = None) -> Gain:
    """A gain with a normal distribution, and the measurement with its standard error."""
    return Gain(
        recipe=recipe,
        measured=round(measured[0], 4) if measured else None,
        standard_error=round(measured[1], 4) if measured else None,
        expected=round(expected, 4),
        low=round(expected - 1.96 * deviation, 4),
        high=round(expected + 1.96 * deviation, 4),
        risk=round(0.5 * math.erfc((TOLERATED_LOSS + expected) / (deviation * math.sqrt(2))), 4),
    )


def shrink(
    measured: NDArray[float64], noise: NDArray[float64], priors: Sequence[float]
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Combine measured gains with the prior."""
    import numpy as np

    size = len(priors)
    prior = PRIOR_SD**2 * (SHARED * np.ones((size, size)) + (1 - SHARED) * np.eye(size))
    weights = prior @ np.linalg.inv(prior + noise)
    expected: NDArray[float64] = np.array(priors) + (measured - np.array(priors)) @ weights.T
    deviations: NDArray[float64] = np.sqrt(np.diag(prior - weights @ prior))
    return expected, deviations


def _gains(outcomes: Sequence[Outcome], names: Sequence[str], weights: NDArray[float64]) -> NDArray[float64]:
    """Gains in points from weights of sentences (rows, sentences): means over the repetitions that have a recipe."""
    import numpy as np

    by_name: dict[str, list[NDArray[float64]]] = {name: [] for name in names}
    for outcome in outcomes:
        gold = np.mean([_f1(weights @ counts) for counts in outcome.gold], axis=0)
        for name, counts in outcome.recipes.items():
            if name in by_name:
                by_name[name].append(_f1(weights @ counts) - gold)
    return 100 * np.stack([np.mean(by_name[name], axis=0) for name in names], axis=1)


def _f1(sums: NDArray[float64]) -> NDArray[float64]:
    import numpy as np

    result: NDArray[float64] = 2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1)
    return result


def _training_noise(outcomes: Sequence[Outcome], names: Sequence[str]) -> NDArray[float64]:
    """The covariance of the gains (recipes, recipes) that comes from the seeds of the trainings."""
    # A training of a recipe is taken to vary as much as one of a gold-only tagger. The variance of the F1 of a
    # repetition is the sum over folds of the variance of what a fold contributes to F1, to first order.
    import numpy as np

    variances = []
    num_taggers = len(outcomes[0].gold)
    for outcome in outcomes:
        totals = outcome.gold.sum(1)  # (taggers, 3)
        f1 = _f1(totals).mean()
        size = max(1.0, float((totals[:, 1] + totals[:, 2]).mean()))
        influence = (2 * outcome.gold[..., 0] - f1 * (outcome.gold[..., 1] + outcome.gold[..., 2])) / size
        variances += [100**2 * influence[:, outcome.folds == k].sum(1).var(ddof=1) for k in np.unique(outcome.folds)]
    total = float(np.sum(variances))
    variance = total / len(outcomes)
    if total:
        # The estimate has few degrees of freedom: as wide as Student's distribution (Satterthwaite 1946).
        freedom = (num_taggers - 1) * total**2 / float(np.sum(np.square(variances)))
        variance *= freedom / (freedom - 2) if freedom > 4 else 2.0
    has = np.array([[name in outcome.recipes for outcome in outcomes] for name in names], np.float64)
    repeats = has.sum(1)
    shared = (has @ has.T) / np.outer(repeats, repeats)
    result: NDArray[float64] = variance * (np.diag(1 / repeats) + shared / num_taggers)
    return result
