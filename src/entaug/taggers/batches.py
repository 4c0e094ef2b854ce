"""Batches of gold and augmented sentences, and the learning rate over their stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, repeat
from random import Random

from entaug.backends.transformers.base import shuffled_batches
from entaug.backends.transformers.training import linear_decay
from entaug.taggers.base import TaggerTrainingConfig

__all__ = ["batches", "learning_rate_factor"]


def batches(
    lengths: Sequence[int], num_gold: int, config: TaggerTrainingConfig, total_steps: int, rng: Random
) -> Iterator[list[int]]:
    """Draw the batches of a training, without end.

    Args:
        lengths: the length of each sentence, gold ones first.
        num_gold: the number of gold sentences.
        config: the schedule, and the size of batches.
        total_steps: the number of steps of the training.
        rng: the generator that shuffles.

    Yields:
        Indices of sentences. With the schedule ``"shuffled"`` those of a batch are of similar length.
    """
    num_all = len(lengths)
    if config.schedule == "shuffled" or num_gold in (0, num_all):
        while True:
            yield from shuffled_batches(list(lengths), config.batch_size, rng)
    gold, augmented = _stream(range(num_gold), rng), _stream(range(num_gold, num_all), rng)
    share = config.gold_share
    if share is None:
        share = 0.5 if config.schedule == "mixed" else 0.0
    num_from_gold = round(config.batch_size * share)
    last_mixed = total_steps if config.schedule == "mixed" else round(total_steps * config.first_stage)
    for num in chain(repeat(num_from_gold, last_mixed), repeat(config.batch_size)):
        yield [*islice(gold, num), *islice(augmented, config.batch_size - num)]


def learning_rate_factor(config: TaggerTrainingConfig, total_steps: int, has_augmented: bool) -> Callable[[int], float]:
    """The course of the learning rate: one decay, or one for each stage.

    Args:
        config: the hyperparameters, with a learning rate.
        total_steps: the number of steps of the training.
        has_augmented: whether there are augmented sentences; without them there is one stage.

    Returns:
        The factor of the peak learning rates at a step, counted from 0.
    """
    if config.schedule != "staged" or config.gold_learning_rate is None or not has_augmented:
        return linear_decay(total_steps, config.num_warmup_steps(total_steps))
    first_steps = round(total_steps * config.first_stage)
    first, second = (
        linear_decay(steps, config.num_warmup_steps(steps)) for steps in (first_steps, total_steps - first_steps)
    )
    assert config.learning_rate is not None
    ratio = 1.0 if config.gold_learning_rate == "same" else config.gold_learning_rate / config.learning_rate
    return lambda step: first(step) if step < first_steps else ratio * second(step - first_steps)


def _stream(indices: Sequence[int], rng: Random) -> Iterator[int]:
    """All indices in random order, again and again."""
    order = list(indices)
    while True:
        rng.shuffle(order)
        yield from order
