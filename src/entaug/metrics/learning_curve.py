"""Learning curves: how F1 grows with the number of training sentences, and what more sentences would bring.

F1 follows a power law with an asymptote, F(n) = F(m) + g h(n): m is the largest size that was measured, and g the gain
of the last doubling up to it. The gain of each doubling is 2^-b times that of the one before, so that
h(n) = (1 - (m / n)^b) / (2^b - 1), and h(n) = log2(n / m) at b = 0. For a given b this is linear in F(m) and g, and
with normal noise and priors the posterior is known in closed form. Exponents b, and factors of the noise of training,
are a grid; each of its cells is weighted by its prior and by how likely it makes the data. Forecasts are mixtures over
the grid, so that the uncertainty on the shape of the curve is in the interval.

The noise has two sources. That of the test sentences is estimated by the influence of each sentence on F1, which is
what a bootstrap of the sentences gives for many samples; sizes share test sentences, so most of it cancels in gains.
That of the training (its seed, and which sentences were drawn) is independent for each training, and its size is known
from other corpora up to the factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entaug.errors import ParameterError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class CurvePrior:
    """The learning curve that is expected before anything is measured."""

    # The gain is that of politics of CrossNER from 100 to 200 sentences (benchmarks/results, 56.0 to 62.3), and the
    # noise of training that of the gold taggers of ten settings, with some more for the draw of the sentences. How far
    # corpora differ, and the exponent, are somewhat wider than what forecasts 14 corpora best, and covers a fifteenth:
    # benchmarks/forecasts.py.
    gain: float = 0.14  # of a doubling, as a share of the error 1 - F1
    gain_sd: float = 0.04  # between corpora
    exponent: float = 0.2  # b
    exponent_sd: float = 0.15
    training_sd: float = 0.018  # of F1 between trainings on as many sentences that differ in these and in the seed:
    training_size: int = 100

    def training_sd_of(self, size: float) -> float:
        """The standard deviation between trainings of a size."""
        return self.training_sd * math.sqrt(self.training_size / size)


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Estimate:
        """The estimate in a unit that is smaller by a positive factor, rounded."""
        return Estimate(*(round(factor * number, 4) for number in (self.value, self.low, self.high)))


_GRID = 25  # exponents, over three standard deviations to both sides
_NOISE_FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
_NOISE_WEIGHTS = (1.0, 2.0, 3.0, 2.0, 1.0)
_LEVEL_SD = 1.0  # of the prior of F1 itself: none
_LEAST_SD = 1e-4  # of F1: where all sentences are alike there is no noise to divide by


@dataclass(eq=False)
class LearningCurve:
    """A learning curve that was fitted to F1 at some sizes; see `fit_learning_curve`."""

    sizes: Sequence[int]
    measured: Sequence[Estimate]
    _exponents: NDArray[float64]
    _weights: NDArray[float64]
    _means: NDArray[float64]
    _covariances: NDArray[float64]
    _shared: float

    def f1(self, size: float, *, same_sentences: bool = False) -> Estimate:
        """Estimate F1 after training on a number of sentences, on any like the tested ones, or on these very ones."""
        estimate = self._estimate(self._rows(size), self._shared if same_sentences else 0.0)
        return Estimate(*(min(1.0, max(0.0, number)) for number in (estimate.value, estimate.low, estimate.high)))

    def gain(self, start: float, end: float) -> Estimate:
        """Estimate the difference in F1 between two numbers of training sentences."""
        return self._estimate(self._rows(end) - self._rows(start))

    def _rows(self, size: float) -> NDArray[float64]:
        """The row of the design matrix for each exponent of the grid."""
        import numpy as np

        growth = [_growth(max(self.sizes), [size], exponent)[0] for exponent in self._exponents]
        return np.stack([np.ones(len(growth)), growth], axis=1)

    def _estimate(self, rows: NDArray[float64], less: float = 0.0) -> Estimate:
        """The distribution of a linear function of the parameters, a mixture of normal ones, with less variance."""
        import numpy as np

        means = (rows * self._means).sum(1)
        variances = np.einsum("gi,gij,gj->g", rows, self._covariances, rows)
        deviations = np.sqrt(np.maximum(variances - less, _LEAST_SD**2))
        low, high = (_mixture_quantile(self._weights, means, deviations, p) for p in (0.025, 0.975))
        return Estimate(float(self._weights @ means), low, high)


def fit_learning_curve(
    sizes: Sequence[int],
    folds: Sequence[Any],
    *,
    trainings: Sequence[int] | None = None,
    prior: CurvePrior | None = None,
) -> LearningCurve:
    """Fit a learning curve to match counts (sizes, sentences, 3) of each held-out fold."""
    # Counts are correct, predicted and gold mentions; where a size was trained several times, their means, and
    # `trainings` has the number for each fold.
    import numpy as np

    prior = prior or CurvePrior()
    arrays = [np.asarray(fold, np.float64) for fold in folds]
    _check(sizes, arrays)
    pooled = np.concatenate(arrays, axis=1)
    sums = pooled.sum(1)
    if not sums[:, 2].all():
        raise ParameterError("no held-out sentence has a mention", parameter="folds")
    f1 = 2 * sums[:, 0] / (sums[:, 1] + sums[:, 2])
    # To first order, F1 of some sentences is that of all plus their mean influence.
    influence = [_influence(array, f1, sums / pooled.shape[1]) for array in arrays]
    covariance = np.cov(np.concatenate(influence, axis=1))
    times = [1] * len(arrays) if trainings is None else trainings
    training = np.array([prior.training_sd_of(size) ** 2 for size in sizes])
    observed = [
        _Observation(f1 + one.mean(1), covariance / one.shape[1], training / number)
        for one, number in zip(influence, times, strict=True)
    ]
    error = 1 - f1[-1]
    mean = np.array([0.5, prior.gain / (1 - prior.gain) * error])
    precision = np.diag([_LEVEL_SD**-2, max(_LEAST_SD, prior.gain_sd * error) ** -2])
    exponents = np.linspace(-3, 3, _GRID)
    cells = []
    for number, exponent in enumerate(prior.exponent + prior.exponent_sd * exponents):
        growth = _growth(sizes[-1], sizes, exponent)
        design = np.stack([np.ones(len(sizes)), growth], axis=1)
        for factor, weight in zip(_NOISE_FACTORS, _NOISE_WEIGHTS, strict=True):
            log_prior = np.log(weight) - exponents[number] ** 2 / 2
            cells.append((exponent, factor, log_prior, *_posterior(observed, design, factor, mean, precision)))
    grid, factors, log_priors, log_likelihoods, means, covariances = map(np.array, zip(*cells, strict=True))
    weights = np.exp(log_priors + log_likelihoods - (log_priors + log_likelihoods).max())
    weights /= weights.sum()
    shares = np.array([one.shape[1] for one in arrays]) / pooled.shape[1]
    noise = training * float(weights @ factors**2) * float((shares**2 / np.array(times)).sum())
    errors = np.sqrt(np.diag(covariance) / pooled.shape[1] + noise)
    measured = [
        Estimate(float(value), float(max(0, value - 1.96 * sd)), float(min(1, value + 1.96 * sd)))
        for value, sd in zip(f1, errors, strict=True)
    ]
    # The variance that the sentences give to F1 at all sizes alike: the most that can be taken from the covariance.
    all_noise = covariance / pooled.shape[1] + _LEAST_SD**2 * np.eye(len(sizes))
    shared = 1 / np.linalg.inv(all_noise).sum()
    return LearningCurve(sizes, measured, grid, weights, means, covariances, float(shared))


def _check(sizes: Sequence[int], arrays: Sequence[NDArray[float64]]) -> None:
    if len(sizes) < 2 or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
        raise ParameterError(f"a learning curve needs at least two increasing sizes, not {list(sizes)}")
    if not arrays or any(array.ndim != 3 or array.shape[::2] != (len(sizes), 3) for array in arrays):
        raise ParameterError("each fold needs counts of the shape (sizes, sentences, 3)", parameter="folds")
    if sum(array.shape[1] for array in arrays) < 2:
        raise ParameterError("a learning curve needs at least two held-out sentences", parameter="folds")


def _influence(counts: NDArray[float64], f1: NDArray[float64], means: NDArray[float64]) -> NDArray[float64]:
    """The influence of each sentence on F1, times the number of sentences: (sizes, sentences)."""
    moved: NDArray[float64] = 2 * counts[..., 0] - f1[:, None] * (counts[..., 1] + counts[..., 2])
    return moved / (means[:, 1] + means[:, 2])[:, None]


def _growth(largest: float, sizes: Sequence[float], exponent: float) -> NDArray[float64]:
    """The function h of the head of this module."""
    import numpy as np

    doublings = np.log2(np.array(sizes, np.float64) / largest)
    if abs(exponent) < 1e-6:
        return doublings
    growth: NDArray[float64] = (1 - 2 ** (-exponent * doublings)) / (2**exponent - 1)
    return growth


@dataclass(frozen=True)
class _Observation:
    """F1 of a fold at each size, the covariance that its sentences give it, and the variance that the training does."""

    f1: NDArray[float64]
    sentences: NDArray[float64]
    training: NDArray[float64]


def _posterior(
    observed: Sequence[_Observation],
    design: NDArray[float64],
    factor: float,
    mean: NDArray[float64],
    precision: NDArray[float64],
) -> tuple[float, NDArray[float64], NDArray[float64]]:
    """The logarithm of the marginal likelihood, and the mean and covariance of the parameters."""
    import numpy as np

    total, vector = precision.copy(), precision @ mean
    log_likelihood = float(np.linalg.slogdet(precision)[1] - mean @ precision @ mean)
    for one in observed:
        noise = one.sentences + np.diag(factor**2 * one.training + _LEAST_SD**2)
        weighted = np.linalg.solve(noise, np.column_stack([design, one.f1]))
        total += design.T @ weighted[:, :2]
        vector += design.T @ weighted[:, 2]
        log_likelihood -= float(np.linalg.slogdet(noise)[1] + one.f1 @ weighted[:, 2])
    covariance = np.linalg.inv(total).astype(np.float64)
    posterior = covariance @ vector
    log_likelihood += float(vector @ posterior - np.linalg.slogdet(total)[1])
    return log_likelihood / 2, posterior, covariance


def _mixture_quantile(
    weights: NDArray[float64], means: NDArray[float64], deviations: NDArray[float64], probability: float
) -> float:
    """The quantile of a mixture of normal distributions, by bisection."""
    from scipy.special import ndtr

    low, high = float((means - 9 * deviations).min()), float((means + 9 * deviations).max())
    for _ in range(60):
        middle = (low + high) / 2
        is_below = float(weights @ ndtr((middle - means) / (deviations + 1e-12))) < probability
        low, high = (middle, high) if is_below else (low, middle)
    return (low + high) / 2
