"""What a tagger is, how one is trained, and names to instances; no heavy import."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from entaug.data import Sentence
from entaug.errors import EntaugError, InputError, MissingExtraError, OutputError, ParameterError, UnknownNameError

__all__ = ["TAGGERS", "Fitted", "Progress", "Tagger", "Training", "create_tagger", "load_tagger"]

TAGGERS = {
    "linear": "entaug.taggers.neural:LinearTagger",
    "bilstm-crf": "entaug.taggers.neural:BiLSTMCRFTagger",
    "static-bilstm-crf": "entaug.taggers.neural:StaticBiLSTMCRFTagger",
    "w2ner": "entaug.taggers.neural:GridTagger",
}
"""A new tagger is one line here."""

CONFIG = "tagger.json"

Progress = Callable[[int, int, float], None]
"""Told of each step: how many are done, of how many, and the loss."""


@dataclass(frozen=True)
class Training:
    """How a tagger is trained.

    Args:
        epochs: passes over the training sentences. Ignored where `steps` is given.
        steps: optimiser steps, whatever the number of sentences: what makes runs comparable.
        batch_size: sentences of a step.
        learning_rate: learning rate of the encoder, at its highest.
        head_learning_rate: learning rate of all that is new.
        warmup_ratio: share of the steps in which the rates rise; then they fall to nothing.
        weight_decay: weight decay.
        max_grad_norm: largest norm of the gradient.
        checkpoint: ``"last"`` keeps the weights after the last step; ``"best"`` those of the epoch that did best on dev.
        seed: of everything random in the training.

    Example:
        >>> Training(epochs=10, batch_size=16).total(100)
        70
        >>> Training(steps=200).total(100)
        200
    """

    epochs: int = 30
    steps: int | None = None
    batch_size: int = 16
    learning_rate: float = 2e-4
    head_learning_rate: float = 1e-3
    warmup_ratio: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    checkpoint: str = "last"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"epochs": 1, "batch_size": 1}.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ParameterError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.steps is not None and (type(self.steps) is not int or self.steps < 1):
            raise ParameterError(f"steps must be a whole number of at least 1, not {self.steps!r}")
        if type(self.seed) is not int or abs(self.seed) >= 2**63:
            raise ParameterError(f"seed must be a whole number below 2^63, not {self.seed!r}")
        for name in ("learning_rate", "head_learning_rate", "max_grad_norm"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not (0 < value < math.inf):
                raise ParameterError(f"{name} must be a number above 0, not {value!r}")
        for name in ("warmup_ratio", "weight_decay"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not (0 <= value <= 1):
                raise ParameterError(f"{name} must be a number from 0 to 1, not {value!r}")
        if self.checkpoint not in ("last", "best"):
            raise ParameterError(f'checkpoint must be "last" or "best", not {self.checkpoint!r}')

    def per_epoch(self, sentences: int) -> int:
        """Steps of one pass over so many sentences."""
        return math.ceil(sentences / self.batch_size)

    def total(self, sentences: int) -> int:
        """Steps in all, for so many training sentences."""
        return self.steps or self.epochs * self.per_epoch(sentences)


@dataclass
class Fitted:
    """What a training came to.

    Args:
        steps: optimiser steps taken.
        losses: mean loss of each epoch.
        dev: micro-F1 on dev after each epoch, where it was asked for.
        kept: the epoch whose weights were kept, from 1; None for the last.
    """

    steps: int = 0
    losses: list[float] = field(default_factory=list)
    dev: list[float] = field(default_factory=list)
    kept: int | None = None


@runtime_checkable
class Tagger(Protocol):
    """Finds mentions in sentences."""

    def check(self) -> None:
        """Look for what learning needs, and raise what is missing: a model, a device."""
        ...

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        training: Training | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from scratch.

        Args:
            train: sentences with gold mentions.
            dev: sentences to choose the best epoch by; needed where `Training.checkpoint` is ``"best"``, else unused.
            training: how; by default `Training()`.
            progress: told of each step.

        Returns:
            The tagger itself.
        """
        ...

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """The sentences with the mentions that the tagger finds in place of those they had."""
        ...

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """How likely it holds the mentions that sentences have.

        From 0 to 1: the geometric mean, over the words of a sentence, of the probability of their tags together.
        """
        ...

    def save(self, folder: str | Path) -> None:
        """Write all that `load_tagger` needs into a folder that is not there yet or is empty."""
        ...

    def restore(self, folder: Path) -> Self:
        """Read back what `save` wrote, into a tagger of the same parameters; see `load_tagger`."""
        ...


def create_tagger(name: str, **params: Any) -> Tagger:
    """A tagger by name.

    Args:
        name: a key of `TAGGERS`.
        params: its parameters.

    Raises:
        UnknownNameError: there is no such tagger.
        ParameterError: a parameter it does not have, or a value that cannot be.
        MissingExtraError: a library it needs is not installed.
    """
    if name not in TAGGERS:
        raise UnknownNameError("tagger", name, list(TAGGERS))
    module, _, cls = TAGGERS[name].partition(":")
    try:
        made = getattr(import_module(module), cls)
    except ImportError as error:
        raise error if isinstance(error, EntaugError) else MissingExtraError(error.name or "torch", "taggers") from None
    known = [f.name for f in fields(made) if f.init]
    for param in params:
        if param not in known:
            raise UnknownNameError(f"parameter of {name}", param, known)
    tagger: Tagger = made(**params)
    return tagger


def load_tagger(folder: str | Path) -> Tagger:
    """A tagger that was saved.

    Args:
        folder: what was given to `Tagger.save`.

    Raises:
        InputError: there is no tagger in the folder, or it is damaged.
    """
    folder = Path(folder)
    remedy = "name a folder that `entaug train` or `Tagger.save` wrote"
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        name, params = str(config["tagger"]), {**config["params"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"holds no tagger (no readable {CONFIG})", path=str(folder), remedy=remedy) from None
    try:
        made = create_tagger(name, **params)
    except (UnknownNameError, ParameterError) as error:
        raise InputError(
            f"holds a damaged tagger ({error})", path=str(folder), remedy="train the tagger again"
        ) from None
    return made.restore(folder)


def check_new(folder: Path) -> None:
    """Refuse a folder for a tagger that holds something already.

    Raises:
        OutputError: it does, or is a file.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError("is there already", path=str(folder), remedy="name a folder that is new or empty")


def labels_of(sentences: Sequence[Sentence]) -> list[str]:
    """The labels of the mentions, sorted."""
    return sorted({mention.label for sentence in sentences for mention in sentence.mentions})
