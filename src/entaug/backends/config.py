"""Hyperparameters of the training of generators, language models and taggers, and of decoding."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from annotated_types import Interval

from entaug.config.params import (
    Check,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    validate,
)
from entaug.errors import ParameterError

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
        warmup_steps: number of these steps, in place of `warmup_ratio`; None for the share.
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
    warmup_steps: NonNegativeInt | None = None
    weight_decay: Probability = 0.01
    max_grad_norm: PositiveFloat = 1.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        validate(self)

    def num_warmup_steps(self, total_steps: int) -> int:
        """The number of steps in which the learning rate rises."""
        if self.warmup_steps is None:
            return math.ceil(total_steps * self.warmup_ratio)
        return min(self.warmup_steps, total_steps)

    def steps_per_epoch(self, num_examples: int) -> int:
        """The number of optimizer steps of one epoch."""
        return math.ceil(num_examples / self.batch_size)

    def total_steps(self, num_examples: int) -> int:
        """The maximum number of optimizer steps of the training."""
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
        adapters: whether low-rank adapters are trained instead of the whole model; None for what the model was loaded
            for.
    """

    learning_rate: PositiveFloat | None = None
    validation_fraction: Annotated[float, Interval(ge=0, lt=1)] = 0.1
    patience: PositiveInt = 2
    adapters: bool | None = None


class Gap(NamedTuple):
    """Words beside a part of a required phrase: one to `max_words`, of which the first is none of `beginnings`."""

    max_words: int
    beginnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """Parameters of decoding of a generator.

    Args:
        num_return_sequences: number of texts for each input, at most `num_beams`.
        strategy: ``"beam_search"``; ``"diverse_beam_search"``, which penalises continuations by their rank within their
            beam (EnTDA, Hu et al. 2023, section 4.2); or ``"sample"``, random draws of which the likeliest are
            returned.
        num_beams: number of beams, or of draws for each input.
        diversity_penalty: penalty for each rank in diverse beam search, the paper's gamma.
        top_k: number of likeliest tokens that are drawn from.
        temperature: temperature of draws; above 1 for more variety, below for less.
        max_new_tokens: maximum number of tokens of a text.
        drop_unfinished: whether texts that have not ended by then are dropped.
        begins_with_required: whether each text begins with the first part of its first required phrase.
        marker_rules: markers that must each be followed by one word, with the markers that must precede them and their
            word directly; None for a marker that may occur anywhere. Empty for no such rule.
    """

    num_return_sequences: PositiveInt = 1
    strategy: Literal["beam_search", "diverse_beam_search", "sample"] = "beam_search"
    num_beams: PositiveInt = 3
    diversity_penalty: NonNegativeFloat = 10.0
    top_k: PositiveInt = 50
    temperature: PositiveFloat = 1.0
    max_new_tokens: PositiveInt = 128
    drop_unfinished: bool = True
    begins_with_required: bool = False
    marker_rules: Mapping[str, Collection[str] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate(self)
        if self.num_return_sequences > self.num_beams:
            raise ParameterError(
                f"num_return_sequences must be at most num_beams ({self.num_beams}), not {self.num_return_sequences}",
                parameter="num_return_sequences",
            )
