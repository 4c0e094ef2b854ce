"""Hyperparameters of training, shared by generators, masked language models, token language models and taggers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from entaug.params import Check, PositiveFloat, PositiveInt, Probability, validate

__all__ = ["BaseTrainingConfig", "Seed", "TrainingConfig", "TrainingProgress"]

Seed = Annotated[int, Check(lambda seed: abs(seed) < 2**63, "an integer below 2^63")]

TrainingProgress = Callable[[int, int, float], None]
"""Called after each optimizer step with the number of steps done, the number of all steps and the loss of the step."""


@dataclass(frozen=True, kw_only=True)
class BaseTrainingConfig:
    """Hyperparameters that all trainings have: AdamW, warm-up and linear decay of the learning rate, clipped gradients.

    Args:
        epochs: maximum number of passes over the training data.
        batch_size: examples of an optimizer step.
        warmup_ratio: share of the steps in which the learning rate rises linearly; afterwards it decays linearly to 0.
        weight_decay: weight decay; biases and normalisation weights are excluded.
        max_grad_norm: norm to which gradients are clipped.
        seed: seed of all random numbers of the training.

    Example:
        >>> BaseTrainingConfig(epochs=10, batch_size=16).total_steps(100)
        70
    """

    epochs: PositiveInt = 10
    batch_size: PositiveInt = 8
    warmup_ratio: Probability = 0.1
    weight_decay: Probability = 0.01
    max_grad_norm: PositiveFloat = 1.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        validate(self)

    def steps_per_epoch(self, num_examples: int) -> int:
        """The number of optimizer steps of one epoch.

        Args:
            num_examples: the number of training examples.

        Returns:
            The number of batches.
        """
        return math.ceil(num_examples / self.batch_size)

    def total_steps(self, num_examples: int) -> int:
        """The maximum number of optimizer steps of the training.

        Args:
            num_examples: the number of training examples.

        Returns:
            The number of steps of all epochs.
        """
        return self.epochs * self.steps_per_epoch(num_examples)


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(BaseTrainingConfig):
    """Hyperparameters of fine-tuning a generator or a language model.

    Args:
        learning_rate: peak learning rate; None for the default of the model: 5e-4 for low-rank adapters, 5e-5 for
            whole transformers, 2e-3 for the LSTM.
        validation_fraction: share of the examples that is held out for early stopping.
        patience: number of epochs without a smaller validation loss after which training stops; the weights of the best
            epoch are kept.
    """

    learning_rate: PositiveFloat | None = None
    validation_fraction: Annotated[float, Interval(ge=0, lt=1)] = 0.1
    patience: PositiveInt = 2
