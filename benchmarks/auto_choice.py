"""The rule by which `entaug auto` chooses, on simulated gains: what it gains, and how often it loses.

For each corpus the true gains of the recipes that are tried where there is unlabelled text are drawn around a common
mean, and measured with a standard error. Run: python benchmarks/auto_choice.py -o benchmarks/results/auto-choice.md
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from entaug.study.choice import LEAST_GAIN, RISK, TOLERATED_LOSS, applicable_recipes, shrink

CORPORA = 20_000
PRIORS = [recipe.prior_gain for recipe in applicable_recipes(None, has_unlabelled=True, has_probabilities=True)[0]]
WORLDS = (("recipes help", 3.0, 2.0), ("no recipe helps or hurts", 0.0, 0.7), ("recipes hurt", -2.0, 1.0))
STANDARD_ERRORS = (1.0, 1.8, 2.5, 3.5)
SHARE = 0.5  # of the variance of gains and of errors that the recipes of a corpus have in common


def correlated(rng: np.random.Generator, deviation: float) -> np.ndarray:
    """Normal numbers (corpora, recipes)."""
    common = rng.standard_normal((CORPORA, 1))
    own = rng.standard_normal((CORPORA, len(PRIORS)))
    return deviation * (math.sqrt(SHARE) * common + math.sqrt(1 - SHARE) * own)


def simulate() -> str:
    """The results as Markdown."""
    rows = []
    size = len(PRIORS)
    for world, mean, deviation in WORLDS:
        for error in STANDARD_ERRORS:
            rng = np.random.default_rng(0)
            true = mean + correlated(rng, deviation)
            measured = true + correlated(rng, error)
            noise = error**2 * (SHARE * np.ones((size, size)) + (1 - SHARE) * np.eye(size))
            expected, deviations = shrink(measured, noise, PRIORS)
            at = np.arange(CORPORA)
            best = expected.argmax(1)
            risk = ndtr((-TOLERATED_LOSS - expected[at, best]) / deviations[best])
            chosen = (expected[at, best] >= LEAST_GAIN) & (risk <= RISK)
            ours = np.where(chosen, true[at, best], 0)
            naive = np.where(measured.max(1) > 0, true[at, measured.argmax(1)], 0)
            numbers = (
                f"{100 * chosen.mean():.0f} %",
                *(f"{gain.mean():+.2f} | {100 * (gain < -TOLERATED_LOSS).mean():.1f} %" for gain in (ours, naive)),
                f"{np.maximum(true.max(1), 0).mean():+.2f}",
            )
            rows.append(f"| {world} | {error:g} | {' | '.join(numbers)} |")
    head = (
        "# The choice of a recipe on simulated gains\n\n"
        f"`python benchmarks/auto_choice.py`: {CORPORA:,} corpora a row, {size} recipes. True gains of a corpus are "
        "normal, with mean 3, 0 or -2 and standard deviation 2, 0.7 or 1 point; half of their variance, and of that of "
        "the errors, is common to all recipes. *Naive*: the recipe with the highest measured gain, if it is positive. "
        "*Loses*: the share of corpora that lose more than one point.\n\n"
        "| world | standard error | a recipe is taken | gain | loses | naive: gain | loses | best possible |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.parse_args().output.write_text(simulate(), encoding="utf-8")
