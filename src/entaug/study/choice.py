"""The recipes that `entaug.auto` chooses from, with their priors, and the rule by which it chooses.

The gain of a recipe is its micro-F1 on held-out sentences, over all folds together, less the mean of the gold-only
taggers of the same folds. Two sources of noise are estimated: the sentences, by a paired bootstrap that draws a
sentence for all recipes and repetitions at once, and the training, by the spread of the gold-only taggers of a fold,
which differ by their seeds. The gains are combined with a prior (normal, with the mean `Recipe.prior_gain` and the
standard deviation `PRIOR_SD`, of whose variance the share `SHARED` is common to all recipes of a corpus): the noisier
the measurement, the closer the result is to the prior, so that the best of several noisy gains is not taken at face
value. Where nothing is measured, the prior is all there is.

The recipe with the highest expected gain is taken if this gain is at least `LEAST_GAIN` and the probability of losing
more than `TOLERATED_LOSS` is at most `RISK`; otherwise the tagger is trained on gold alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from entaug.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


GOLD = "gold"
"""The name of training on the gold sentences alone."""
TEACHER = "teacher"
"""The name of training a teacher with another encoder on the gold sentences."""


# -------------------------------------------------------------------------------------------------------------- recipes

_ORDERS = {
    "shuffled": "shuffled with gold",
    "mixed": "mixed with gold in each batch",
    "staged": "first, then gold alone",
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to train with more than the gold sentences."""

    name: str
    prior_gain: float
    prior_gain_larger: float | None = None
    method: str | None = None
    unlabelled: bool = False
    soft: bool = False
    schedule: Literal["shuffled", "mixed", "staged"] = "staged"
    copies: int = 5
    cost: float = 1.0
    sources: bool = False
    regularised: bool = False

    def prior(self, *, is_teacher_larger: bool) -> float:
        """Return the prior gain."""
        larger = self.prior_gain_larger if is_teacher_larger else None
        return self.prior_gain if larger is None else larger

    def relative_cost(self, batches: float) -> float:
        """The time of a training as a multiple of gold's, with a number of batches of text for each step."""
        # A step in which the whole encoder learns to predict masked words takes about as long as two others.
        epochs: int = self.training.get("pretraining_epochs", 0)
        return self.cost + 2 * epochs * batches

    @property
    def has_teacher(self) -> bool:
        """Whether sentences are labelled by a teacher."""
        return self.unlabelled or self.soft

    @property
    def summary(self) -> str:
        """A description in one line."""
        parts = ["unlabelled sentences"] if self.unlabelled else []
        parts += [f"sentences of {self.method}"] if self.method else []
        if self.sources:
            labels = "joined labels of your sources"
        elif self.soft:
            labels = "soft labels of a teacher"
        else:
            labels = "predicted labels" if self.unlabelled else "the labels of the method"
        order = _ORDERS[self.schedule]
        if self.regularised:
            order += "; masked words of all of them before, consistency and averaged weights"
        return f"{' and '.join(parts)} with {labels}, {order}"

    @property
    def training(self) -> dict[str, Any]:
        """The hyperparameters of its trainings, besides those of gold alone."""
        regularisers = {"pretraining_epochs": 3, "consistency": 1.0, "averaged_share": 0.2} if self.regularised else {}
        return {"schedule": self.schedule, "gold_learning_rate": "same", **regularisers}


# In the order in which a small budget tries them. Prior gains are means of the ten settings of
# benchmarks/results/gains.md, rounded down to half a point: "self" with a larger teacher (+6.6), "self" and "self-hard"
# (+3.0, +2.2) over three seeds, "gal" with a larger teacher with one seed (+4.3), "mr-soft" with one in two settings
# (+0.1). "mr" (+1.3, and +0.8 in benchmarks/results/choice-study.md) and "sis" (+0.4) are those of benchmarks/atlas,
# with their schedule there. "self-regularised" gained more than "self" with MPNet (+2.7 and +1.6, see
# benchmarks/results/larger-encoder.md), so its values are those of "self". The others are not measured; their values
# are guesses from the most similar ones. They matter where the measurement is noisy, or missing. How good sources of
# labels are is theirs: "sources" has that of "self".
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="sources", prior_gain=3.0, unlabelled=True, soft=True, sources=True),
        Recipe(name="self", prior_gain=3.0, prior_gain_larger=6.5, unlabelled=True, soft=True),
        Recipe(
            name="self-regularised",
            prior_gain=3.0,
            prior_gain_larger=6.5,
            unlabelled=True,
            soft=True,
            regularised=True,
            cost=2,
        ),
        Recipe(name="self-hard", prior_gain=2.0, unlabelled=True),
        Recipe(name="self+mr", prior_gain=2.0, method="mr", unlabelled=True, soft=True),
        Recipe(name="self-mixed", prior_gain=1.5, unlabelled=True, soft=True, schedule="mixed"),
        Recipe(name="gal", prior_gain=1.5, prior_gain_larger=4.0, method="gal", soft=True, copies=10, cost=6),
        Recipe(name="mr", prior_gain=1.0, method="mr", schedule="shuffled", copies=3),
        Recipe(name="sis", prior_gain=0.0, method="sis", schedule="shuffled", copies=3),
        Recipe(name="mr-soft", prior_gain=0.0, method="mr", soft=True),
        Recipe(name="lm", prior_gain=0.0, method="lm"),
        Recipe(name="mr-soft-mixed", prior_gain=0.0, method="mr", soft=True, schedule="mixed"),
    )
}
"""The recipes by name, in the order in which a small budget tries them."""


def applicable_recipes(
    names: Sequence[str] | None,
    *,
    has_unlabelled: bool,
    has_probabilities: bool,
    is_flat: bool = True,
    available: Collection[str] | None = None,
    has_sources: bool = False,
    can_regularise: bool = False,
) -> tuple[list[Recipe], list[str]]:
    """Return the recipes that can be tried on a corpus, and notes on others."""
    for name in names or ():
        if name not in RECIPES:
            raise UnknownNameError("recipe", name, RECIPES)
    recipes, notes = [], []
    for recipe in RECIPES.values():
        if names is None:
            # Soft labels take the place of hard ones, and unlabelled text that of generated text.
            is_wanted = not (recipe.name == "gal" and has_unlabelled)
            is_wanted &= not (recipe.name == "self-hard" and has_probabilities)
            is_wanted &= has_sources or not recipe.sources
            is_wanted &= can_regularise or not recipe.regularised
        else:
            is_wanted = recipe.name in names
        if not is_wanted:
            continue
        is_notable = names is not None
        if recipe.unlabelled and not has_unlabelled:
            reason = "it needs unlabelled text"
        elif recipe.sources and not has_sources:
            reason = "it needs sources of labels"
        elif recipe.sources and not is_flat:
            reason, is_notable = "sources are not joined for nested or discontinuous mentions", True
        elif recipe.soft and not has_probabilities:
            reason = "its soft labels need a tagger that gives probabilities"
        elif recipe.regularised and not can_regularise:
            reason = "it needs a tagger that gives probabilities to tags, and an encoder that predicts masked words"
        elif recipe.method and available is not None and recipe.method not in available:
            reason = f"no model of {recipe.method} for this corpus is on this machine"
            reason, is_notable = f"{reason} (entaug list methods {recipe.method})", True
        else:
            recipes.append(recipe)
            continue
        if is_notable:
            notes.append(f"the recipe {recipe.name} is not tried: {reason}")
    if names and not recipes:
        raise ParameterError(f"none of the recipes can be tried ({'; '.join(notes)})", parameter="recipes")
    return recipes, notes


# ----------------------------------------------------------------------------------------------------- size of a search

TEACHER_SIZE = 3
"""Number of gold-only taggers of a fold: the baseline, and together the teacher."""
FINALISTS = 3
"""Number of recipes that are measured again in further repetitions."""
# Folds, recipes (None for all) and repetitions, from the smallest to the largest.
_Stages = tuple[tuple[int, int | None, int], ...]
_STAGES: _Stages = ((3, 1, 1), (3, 2, 1), (5, 2, 1), (5, 3, 1), (5, None, 1), (5, None, 2))
_DEV_STAGES: _Stages = ((1, 1, 1), (1, 2, 1), (1, 3, 1), (1, None, 1), (1, None, 2), (1, None, 3))


@dataclass(frozen=True)
class SearchSize:
    """The size of a search: how many folds, recipes and repetitions it takes."""

    folds: int
    recipes: int
    repeats: int

    def num_trainings(self, costs: Sequence[float], teacher: float = 0.0) -> float:
        """The number of trainings on parts of the training sentences."""
        if not self.recipes:
            return 0
        base = TEACHER_SIZE + teacher
        tried = costs[: self.recipes]
        further = base + sum(sorted(tried)[-FINALISTS:])  # at most
        return self.folds * (base + sum(tried) + (self.repeats - 1) * further)

    @property
    def is_measured(self) -> bool:
        """Whether gains are measured at all."""
        return bool(self.folds and self.recipes)


def search_sizes(
    num_recipes: int, *, has_dev: bool, folds: int | None = None, repeats: int | None = None
) -> list[SearchSize]:
    """The sizes from the smallest to the largest; numbers of folds and repetitions may be given."""
    stages = _DEV_STAGES if has_dev else _STAGES
    if folds == 0:
        stages = ((0, None, 0),)
    sizes = [
        SearchSize(n if has_dev else folds or n, min(recipes or num_recipes, num_recipes), repeats or times)
        for n, recipes, times in (stages if num_recipes else stages[:1])
    ]
    return list(dict.fromkeys(sizes))


# ------------------------------------------------------------------------------------------------------------- the rule

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
    """The held-out results of one repetition; all repetitions have the same sentences in the same order."""

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
    n = len(outcomes[0].folds)
    measured = _gains(outcomes, names, np.ones((1, n)))[0]
    drawn = np.random.default_rng(0).integers(n, size=(_SAMPLES, n))
    weights = np.stack([np.bincount(draw, minlength=n).astype(np.float64) for draw in drawn])
    draws = _gains(outcomes, names, weights)
    noise = np.atleast_2d(np.cov(draws, rowvar=False)) + _training_noise(outcomes, names)
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
