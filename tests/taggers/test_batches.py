"""Schedules: which sentences are in which batch, and the learning rate over the stages."""

from __future__ import annotations

from itertools import islice, pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from entaug.errors import ParameterError
from entaug.taggers.base import TaggerTrainingConfig
from entaug.taggers.encoders import Encoder
from entaug.taggers.neural import batches, learning_rate_factor

NUM_GOLD, NUM_ALL = 10, 40
LENGTHS = [Random(i).randint(1, 30) for i in range(NUM_ALL)]


def _draw(total: int = 20, num_gold: int = NUM_GOLD, lengths: list[int] = LENGTHS, **config: Any) -> list[list[int]]:
    settings = TaggerTrainingConfig(batch_size=8, **config)
    return list(islice(batches(lengths, num_gold, settings, total, Random(3)), total))


def _gold_in(batch: list[int]) -> int:
    return sum(i < NUM_GOLD for i in batch)


def test_shuffled_batches_hold_each_sentence_once_a_pass() -> None:
    drawn = _draw(10)
    for one in (drawn[:5], drawn[5:]):
        assert sorted(i for batch in one for i in batch) == list(range(NUM_ALL))
    assert drawn[:5] != drawn[5:]


@pytest.mark.parametrize(("share", "expected"), [(None, 4), (0.25, 2), (0.3, 2), (0.0, 0), (1.0, 8)])
def test_mixed_batches_have_their_share_of_gold(share: float | None, expected: int) -> None:
    drawn = _draw(schedule="mixed", gold_share=share)
    assert [len(batch) for batch in drawn] == [8] * 20
    assert [_gold_in(batch) for batch in drawn] == [expected] * 20


def test_mixed_batches_use_each_sentence_before_one_comes_again() -> None:
    drawn = _draw(20, schedule="mixed")
    gold = [i for batch in drawn for i in batch if i < NUM_GOLD]
    augmented = [i for batch in drawn for i in batch if i >= NUM_GOLD]
    for indices, size in ((gold, NUM_GOLD), (augmented, NUM_ALL - NUM_GOLD)):
        for start in range(0, len(indices) - size + 1, size):
            assert len(set(indices[start : start + size])) == size


@pytest.mark.parametrize(("share", "expected"), [(None, 0), (0.25, 2)])
def test_staged_batches_end_with_gold_alone(share: float | None, expected: int) -> None:
    drawn = _draw(20, schedule="staged", first_stage=0.7, gold_share=share)
    assert [_gold_in(batch) for batch in drawn] == [expected] * 14 + [8] * 6


@pytest.mark.parametrize(("first_stage", "steps"), [(0.0, 0), (1.0, 20), (0.03, 1)])
def test_a_stage_may_take_nothing_or_all(first_stage: float, steps: int) -> None:
    drawn = _draw(20, schedule="staged", first_stage=first_stage)
    assert [_gold_in(batch) for batch in drawn] == [0] * steps + [8] * (20 - steps)


@pytest.mark.parametrize("schedule", ["mixed", "staged"])
@pytest.mark.parametrize("num_gold", [0, NUM_ALL])
def test_one_kind_of_sentences_alone_is_shuffled(schedule: Any, num_gold: int) -> None:
    assert _draw(num_gold=num_gold, schedule=schedule) == _draw(num_gold=num_gold)


@pytest.mark.parametrize("schedule", ["shuffled", "mixed", "staged"])
def test_the_same_seed_draws_the_same_batches(schedule: Any) -> None:
    assert _draw(schedule=schedule) == _draw(schedule=schedule)


def test_few_sentences_of_a_kind_come_again_and_again() -> None:
    drawn = _draw(6, num_gold=1, lengths=[3, 4, 5], schedule="mixed")
    assert all(sum(i == 0 for i in batch) == 4 for batch in drawn)


# ------------------------------------------------------------------------------------------------------- learning rate


def _factors(total: int = 100, has_augmented: bool = True, **config: Any) -> list[float]:
    settings = TaggerTrainingConfig(learning_rate=2e-4, warmup_ratio=0.1, **config)
    factor = learning_rate_factor(settings, total, has_augmented)
    return [factor(step) for step in range(total + 1)]


def test_one_decay_over_both_stages_unless_the_second_has_a_rate() -> None:
    plain = _factors()
    assert plain[10] == max(plain) == 1
    assert plain[0] == plain[100] == 0
    assert _factors(schedule="staged") == _factors(schedule="mixed", gold_learning_rate=1e-4) == plain
    # Without augmented sentences there is one stage.
    assert _factors(schedule="staged", gold_learning_rate=1e-4, has_augmented=False) == plain


def test_each_stage_warms_up_to_its_own_rate() -> None:
    factors = _factors(schedule="staged", first_stage=0.5, gold_learning_rate=5e-5)
    assert factors[5] == max(factors[:50]) == 1
    assert factors[50] == factors[100] == 0
    assert factors[55] == max(factors[50:]) == pytest.approx(0.25)
    assert all(a < b for a, b in pairwise(factors[50:56]))
    assert all(a > b for a, b in pairwise(factors[55:]))


def test_the_rate_of_the_second_stage_may_be_that_of_the_first() -> None:
    same = _factors(schedule="staged", gold_learning_rate="same")
    assert same == _factors(schedule="staged", gold_learning_rate=2e-4)
    assert same != _factors(schedule="staged")


@pytest.mark.parametrize(
    ("layers", "size", "rate"),
    [(2, 128, 2e-4), (6, 384, 2e-4), (12, 384, 1e-4), (6, 768, 5e-5), (12, 768, 5e-5), (24, 1024, 1.875e-5)],
)
def test_larger_encoders_have_a_lower_default_rate(layers: int, size: int, rate: float) -> None:
    body = Encoder.__new__(Encoder)
    torch.nn.Module.__init__(body)
    body.size = size
    body.model = SimpleNamespace(config=SimpleNamespace(num_hidden_layers=layers))
    assert body.default_learning_rate == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize("first_stage", [0.0, 1.0])
def test_a_stage_without_steps_is_left_out(first_stage: float) -> None:
    factors = _factors(schedule="staged", first_stage=first_stage, gold_learning_rate=1e-4)
    assert max(factors[:100]) == pytest.approx(0.5 if first_stage == 0 else 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"schedule": "stages"},
        {"gold_share": 1.5},
        {"first_stage": -0.1},
        {"gold_learning_rate": 0},
        {"gold_learning_rate": "equal"},
    ],
)
def test_settings_out_of_range_are_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        TaggerTrainingConfig(**wrong)
