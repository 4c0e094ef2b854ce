"""The rule by which `entaug auto` chooses, on simulated gains: what it gains, and how often it loses.

For each corpus the true gains of the recipes that are tried where there is unlabelled text are drawn around a common
mean, and measured with a known standard error. Then standard errors are estimated, from real taggers' counts of a
hundred test sentences of a study.

Run, from the project's root: python benchmarks/auto_choice.py -o benchmarks/results/auto-choice.md
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from entaug.study.choice import (
    LEAST_GAIN,
    RISK,
    TOLERATED_LOSS,
    Outcome,
    applicable_recipes,
    estimate_gains,
    shrink,
)
from entaug.study.records import read_run_records

CORPORA = 20_000
PRIORS = [recipe.prior_gain for recipe in applicable_recipes(None, has_unlabelled=True, has_probabilities=True)[0]]
WORLDS = (("recipes help", 3.0, 2.0), ("no recipe helps or hurts", 0.0, 0.7), ("recipes hurt", -2.0, 1.0))
STANDARD_ERRORS = (1.0, 1.8, 2.5, 3.5)
SHARE = 0.5  # of the variance of gains and of errors that the recipes of a corpus have in common
STUDY, ARMS = Path("benchmarks/results/gains"), ("gold-steps", "self-training soft")
DRAWS = 200  # samples of sentences for each corpus of the study


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


def with_real_counts() -> str:
    """Standard errors, and how often a recipe is taken without a true gain, as Markdown."""
    rng = np.random.default_rng(0)
    counts: dict[str, dict[tuple[str, int], np.ndarray]] = defaultdict(dict)
    for record in read_run_records([STUDY]):
        if record.size == 100 and record.arm in ARMS:
            counts[record.corpus][record.arm, record.seed] = np.array(list(map(tuple, record.test.sentences)), float)
    errors: dict[int, list[float]] = defaultdict(list)
    taken: dict[tuple[int, float], list[bool]] = defaultdict(list)
    folds = np.arange(100.0) % 5
    for runs in counts.values():
        taggers = [np.stack([runs[arm, seed] for seed in (1, 2, 3)]) for arm in ARMS]
        for _ in range(DRAWS):
            some = rng.choice(taggers[0].shape[1], 100, replace=False)
            gold, recipe = (one[:, some] for one in taggers)
            is_exchanged = rng.random((100, 1)) < 0.5
            either = np.where(is_exchanged, recipe, gold), np.where(is_exchanged, gold, recipe)
            for repeats in (1, 2):
                [gain] = estimate_gains([Outcome(folds, gold, {"": one}) for one in recipe[:repeats]], {"": 0.0})
                errors[repeats].append(gain.standard_error or 0.0)
                for prior in (0.0, 1.0, 3.0):
                    outcomes = [Outcome(folds, either[0], {"": one}) for one in either[1][:repeats]]
                    taken[repeats, prior].append(estimate_gains(outcomes, {"": prior})[0].is_credible)
    head = (
        f"\n## With counts of real taggers\n\nThe study `gains`: {len(counts)} corpora with 100 gold sentences, "
        f"{DRAWS} samples of 100 test sentences of each, with estimated standard errors. The recipe is self-training "
        "with soft labels (another seed in the second repetition; the three gold-only taggers are the same). *Taken "
        "without a true gain*: the share of samples in which the recipe is taken if in every sentence the counts of "
        "gold and of the recipe are exchanged with probability 1/2, by its prior gain; as this mixes trainings, "
        "whose noise partly cancels, true shares may be higher.\n\n"
        "| repetitions | standard error: median | 5 to 95 % | taken without a true gain: prior 0 | prior 1 "
        "| prior 3 |\n"
        "|---:|---:|---:|---:|---:|---:|\n"
    )
    rows = []
    for repeats in (1, 2):
        low, median, high = np.quantile(errors[repeats], [0.05, 0.5, 0.95])
        shares = " | ".join(f"{100 * np.mean(taken[repeats, prior]):.0f} %" for prior in (0.0, 1.0, 3.0))
        rows.append(f"| {repeats} | {median:.1f} | {low:.1f} to {high:.1f} | {shares} |\n")
    return head + "".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.parse_args().output.write_text(simulate() + with_real_counts(), encoding="utf-8")
