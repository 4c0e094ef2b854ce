"""The choice of a recipe from noisy measurements: folds, steps, gains, designs."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entaug.core.data import Sentence
from entaug.core.folds import content_key, partition
from entaug.core.mentions import Mention
from entaug.errors import ParameterError, UnknownNameError
from entaug.study.choice import (
    RECIPES,
    Outcome,
    SearchSize,
    applicable_recipes,
    choose,
    estimate_gains,
    prior_gains,
    search_sizes,
)
from entaug.taggers.base import default_steps

PRIORS = {"self": 2.0, "mr": 1.5}


def outcomes(
    rng: np.random.Generator, gains: dict[str, float], *, sentences: int = 150, repeats: int = 2
) -> list[Outcome]:
    """Results of taggers that find each mention with a probability, in five folds with three gold-only taggers."""
    gold = rng.integers(0, 4, sentences)
    folds = (np.arange(sentences) % 5).astype(np.float64)
    base = 0.5 + 0.2 * rng.standard_normal(sentences)  # some sentences are harder, for all taggers

    def counts(gain: float) -> np.ndarray:
        quality = np.clip(
            base + gain / 100 + 0.03 * rng.standard_normal(5)[folds.astype(int)], 0, 1
        )  # noise of a training
        correct = rng.binomial(gold, quality)
        return np.stack([correct, gold, gold], axis=1).astype(float)

    return [
        Outcome(folds, np.stack([counts(0) for _ in range(3)]), {name: counts(gain) for name, gain in gains.items()})
        for _ in range(repeats)
    ]


def chosen(seed: int, gain: float) -> str | None:
    best = choose(estimate_gains(outcomes(np.random.default_rng(seed), dict.fromkeys(PRIORS, gain)), PRIORS))
    return best.recipe if best else None


def test_recipes_that_help_are_found_and_those_that_hurt_are_not() -> None:
    assert sum(chosen(seed, 6.0) is not None for seed in range(40)) >= 36
    assert sum(chosen(seed, -4.0) is not None for seed in range(40)) <= 2


def test_without_a_measurement_only_a_large_prior_gain_is_credible() -> None:
    larger = {name: RECIPES[name].prior(is_teacher_larger=True) for name in ("self", "mr")}
    same = {name: RECIPES[name].prior(is_teacher_larger=False) for name in RECIPES}
    best = choose(prior_gains(larger))
    assert best is not None
    assert (best.recipe, best.measured, best.standard_error) == ("self", None, None)
    assert best.low < 1 < best.expected < best.high
    assert choose(prior_gains(same)) is None
    without_text, _ = applicable_recipes(None, has_unlabelled=False, has_probabilities=True)
    best = choose(prior_gains({recipe.name: recipe.prior(is_teacher_larger=True) for recipe in without_text}))
    assert best is not None
    assert best.recipe == "gal"


def test_the_interval_contains_the_true_gain() -> None:
    inside = 0
    for seed in range(60):
        gains = estimate_gains(outcomes(np.random.default_rng(seed), {"self": 3.0, "mr": 1.0}), PRIORS)
        inside += sum(gain.low <= true <= gain.high for gain, true in zip(gains, (3.0, 1.0), strict=True))
    assert inside >= 0.9 * 120


def test_the_measured_gain_is_the_difference_in_micro_f1() -> None:
    # By hand: gold 1 of 2, 2 of 2 and 0 of 2 found, nothing wrong: F1 2/3, 1 and 0; the recipe finds both: F1 1.
    gold = np.array([[[1, 1, 2]], [[2, 2, 2]], [[0, 0, 2]]], float)
    outcome = Outcome(np.zeros(1), gold, {"mr": np.array([[2, 2, 2]], float)})
    [gain] = estimate_gains([outcome], {"mr": 1.5})
    assert gain.measured is not None
    assert gain.measured == pytest.approx(100 * (1 - (2 / 3 + 1 + 0) / 3), abs=1e-3)
    assert gain.low < gain.expected < gain.high
    assert 1.5 <= gain.expected < gain.measured


def test_equal_results_are_no_reason_to_take_a_recipe() -> None:
    nothing = np.array([[0, 0, 2]] * 20, float)
    folds = (np.arange(20) % 5).astype(np.float64)
    [gain] = estimate_gains([Outcome(folds, np.stack([nothing] * 3), {"self": nothing})], {"self": 2.0})
    assert gain.measured == 0
    assert gain.low < gain.expected < gain.high
    assert choose([gain]) is None


def test_a_noisy_gain_is_shrunk_more_than_a_precise_one() -> None:
    def measured(sentences: int) -> tuple[float, float]:
        results = outcomes(np.random.default_rng(1), {"mr": 8.0}, sentences=sentences)
        [gain] = estimate_gains(results, {"mr": 1.5})
        assert gain.measured
        assert gain.standard_error
        return gain.standard_error, gain.expected / gain.measured

    few, many = measured(20), measured(2000)
    assert few[0] > 3 * many[0]
    assert few[1] < many[1]


def test_the_same_results_give_the_same_gains_and_a_recipe_may_be_repeated_less_often() -> None:
    results = outcomes(np.random.default_rng(3), {"self": 4.0, "mr": 1.0})
    assert estimate_gains(results, PRIORS) == estimate_gains(results, PRIORS)
    once = [results[0], Outcome(results[1].folds, results[1].gold, {"self": results[1].recipes["self"]})]
    errors = {gain.recipe: gain.standard_error or 0.0 for gain in estimate_gains(once, PRIORS)}
    assert errors["mr"] > errors["self"] > 0
    assert choose([]) is None


@given(st.lists(st.text("ab", min_size=1, max_size=2), min_size=6, max_size=40), st.integers(2, 5), st.integers(0, 9))
def test_folds_hold_each_sentence_once_and_equal_ones_together(words: list[str], folds: int, seed: int) -> None:
    sentences = [Sentence([word, "x"], [Mention(word[0], [(0, 1)])]) for word in words]
    parts = partition(sentences, folds, seed)
    assert sorted(i for part in parts for i in part) == list(range(len(words)))
    fold_of = {i: fold for fold, part in enumerate(parts) for i in part}
    for i, word in enumerate(words):
        assert fold_of[i] == fold_of[words.index(word)]
    assert parts == partition(sentences, folds, seed)


def test_each_fold_has_its_share_of_a_rare_type() -> None:
    sentences = [Sentence([f"w{i}"], [Mention("RARE" if i % 10 == 0 else "COMMON", [(0, 1)])]) for i in range(100)]
    for part in partition(sentences, 5, seed=1):
        counts = Counter(sentences[i].mentions[0].label for i in part)
        assert counts == {"RARE": 2, "COMMON": 18}


def test_equal_text_has_the_same_key_however_it_was_tokenised() -> None:
    assert content_key(Sentence(["New", "York", "."])) == content_key(Sentence(["new", "York."]))


def test_larger_budgets_give_larger_search_sizes() -> None:
    for has_dev, costs in itertools.product((False, True), ([1] * 6, [6, 1, 1, 1, 1, 1])):
        candidates = search_sizes(6, has_dev=has_dev)
        sizes = [design.num_trainings(costs) for design in candidates]
        assert sizes == sorted(set(sizes))
    assert search_sizes(6, has_dev=False)[-1] == SearchSize(5, 6, 2)
    assert SearchSize(5, 6, 2).num_trainings([1] * 6) == 5 * (3 + 6) + 5 * (3 + 3)
    # The recipe that takes six times as long may be among those that are measured again.
    assert SearchSize(5, 6, 2).num_trainings([1, 6, 1, 1, 1, 1]) == 5 * (3 + 11) + 5 * (3 + 8)
    assert search_sizes(0, has_dev=False)[0].num_trainings([]) == 0


def test_steps_grow_slower_than_the_corpus() -> None:
    steps = [default_steps(n) for n in (1, 36, 100, 1000, 10_000)]
    assert steps == sorted(steps)
    assert steps[0] == steps[1] == 300
    assert 400 <= default_steps(100) <= 600  # where pilots on 100 sentences converged


def test_which_recipes_apply() -> None:
    def names(**options: object) -> list[str]:
        given = {"has_unlabelled": True, "has_probabilities": True, **options}
        return [recipe.name for recipe in applicable_recipes(None, **given)[0]]  # type: ignore[arg-type]

    assert names()[:2] == ["self", "self+mr"]
    assert not {"self-hard", "gal"} & set(names())
    assert names(has_unlabelled=False)[0] == "gal", "in place of unlabelled text"
    assert not any("self" in name for name in names(has_unlabelled=False))
    assert names(can_regularise=True)[:2] == ["self", "self-regularised"]
    wanted, _ = applicable_recipes(["gal"], has_unlabelled=True, has_probabilities=True)
    assert [recipe.name for recipe in wanted] == ["gal"]
    priors = [recipe.prior_gain for recipe in RECIPES.values()]
    assert priors == sorted(priors, reverse=True), "a small budget tries the best first"
    without = names(has_probabilities=False)
    assert without[0] == "self-hard"
    assert not any(RECIPES[name].soft for name in without)
    assert "lm" not in names(available=["mr", "sis"])
    with pytest.raises(UnknownNameError, match="did you mean 'self'"):
        applicable_recipes(["slef"], has_unlabelled=True, has_probabilities=True)
    with pytest.raises(ParameterError, match="self is not tried: it needs unlabelled text"):
        applicable_recipes(["self"], has_unlabelled=False, has_probabilities=True)
    assert len({recipe.summary for recipe in RECIPES.values()}) == len(RECIPES)
