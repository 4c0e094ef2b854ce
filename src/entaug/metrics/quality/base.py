"""Measures of quality and what they take and return.

A measure is a function of `MeasureInputs` that the decorator `measure` turns into a `Measure` with its description. A
line in `entaug.metrics.quality.registry`, or an entry point ``entaug.measures`` of another package, makes it available.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.metrics.likelihood import causal_log_probs, masked_log_probs
from entaug.metrics.texts import as_text

__all__ = [
    "Likelihood",
    "Measure",
    "MeasureInputs",
    "MeasureValue",
    "ModelScores",
    "UndefinedError",
    "mean_over_sentences",
    "measure",
    "words",
]

_BATCH = 256  # texts between two reports of progress


class UndefinedError(Exception):
    """A measure has no value for its inputs; the message is a reason, for example ``"there are no mentions"``."""


class MeasureValue(NamedTuple):
    """Result of a measure."""

    value: float
    by_sentence: Sequence[float | None] | None = None
    note: str = ""


@dataclass(eq=False)
class Measure:
    """A measure of quality; its description is the first line of the docstring of its function.

    Args:
        function: computes the measure; raises `UndefinedError` where it has no value.
        title: the title of its row in tables.
        unit: ``"share"`` (from 0 to 1, shown in percent), ``"score"``, ``"nats"``, ``"tokens"`` or empty.
        higher: what a higher value means, or ``"neutral"``.
        needs: the kind of backend that it needs, for example ``"causal_lm"``, or None.
    """

    function: Callable[[MeasureInputs], MeasureValue]
    title: str
    unit: str = ""
    higher: str = "neutral"
    needs: str | None = None

    def __call__(self, inputs: MeasureInputs) -> MeasureValue:
        """Compute the measure."""
        return self.function(inputs)

    @property
    def description(self) -> str:
        """A one-sentence description of the measure."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def explanation(self) -> str:
        """The description and what a higher value means."""
        return self.description if self.higher == "neutral" else f"{self.description} Higher: {self.higher}."


def measure(
    title: str, *, unit: str = "", higher: str = "neutral", needs: str | None = None
) -> Callable[[Callable[[MeasureInputs], MeasureValue]], Measure]:
    """Make a `Measure` of the decorated function, which is described by the first line of its docstring."""

    def decorate(function: Callable[[MeasureInputs], MeasureValue]) -> Measure:
        decorated = Measure(function, title, unit, higher, needs)
        functools.update_wrapper(decorated, function)
        return decorated

    return decorate


class Likelihood(NamedTuple):
    """Log-likelihood of a text under a language model."""

    total: float
    pieces: int


@dataclass
class ModelScores:
    """Models of measures, and their cached scores of texts."""

    # Equal texts are scored once. Texts go to a model ordered by length, so the order of sentences affects no result.

    causal_lm: CausalLM | None = None
    masked_lm: MaskedLM | None = None
    encoder: Encoder | None = None
    progress: Progress = no_progress
    _cache: dict[tuple[str, str], Likelihood] = field(default_factory=dict)

    def causal_likelihoods(self, sentences: Iterable[Sentence]) -> list[Likelihood]:
        """The log-likelihood of each sentence under the causal language model."""
        lm = self.causal_lm
        if lm is None:
            raise UndefinedError("there is no causal language model")
        return self._score(sentences, "scoring", lambda texts: causal_log_probs(texts, lm, _BATCH))

    def masked_likelihoods(self, sentences: Iterable[Sentence]) -> list[Likelihood]:
        """The pseudo-log-likelihood of each sentence under the masked language model."""
        lm = self.masked_lm
        if lm is None:
            raise UndefinedError("there is no masked language model")
        return self._score(sentences, "scoring with masks", lambda texts: masked_log_probs(texts, lm))

    def _score(
        self, sentences: Iterable[Sentence], stage: str, compute: Callable[[list[str]], Iterator[Any]]
    ) -> list[Likelihood]:
        texts = list(map(as_text, sentences))
        new = sorted({text for text in texts if (stage, text) not in self._cache}, key=lambda text: (len(text), text))
        for done, (text, log_probs) in enumerate(zip(new, compute(new), strict=True), start=1):
            self._cache[stage, text] = Likelihood(math.fsum(log_probs.tolist()), len(log_probs))
            if not done % _BATCH or done == len(new):
                self.progress(stage, done, len(new))
        return [self._cache[stage, text] for text in texts]


@dataclass
class MeasureInputs:
    """Sentences to be measured."""

    sentences: Sequence[Sentence]
    sources: Sequence[Sentence | None]
    gold: Sequence[Sentence]
    models: ModelScores

    def mean_over_sources(self, compare: Callable[[Sentence, Sentence], float | None]) -> MeasureValue:
        """The mean of a comparison of each sentence with its source."""
        pairs = zip(self.sentences, self.sources, strict=True)
        values = [None if source is None else compare(sentence, source) for sentence, source in pairs]
        known = any(source is not None for source in self.sources)
        why = "no sentence with a source has such words" if known else "the source of no sentence is known"
        return mean_over_sentences(values, why)

    def require_gold(self) -> Sequence[Sentence]:
        """The gold sentences."""
        if not self.gold:
            raise UndefinedError("there are no gold sentences to compare with")
        return self.gold


def mean_over_sentences(values: Sequence[float | None], why_undefined: str = "there are no sentences") -> MeasureValue:
    """The mean over the sentences that have a value."""
    defined = [value for value in values if value is not None]
    if not defined:
        raise UndefinedError(why_undefined)
    return MeasureValue(math.fsum(defined) / len(defined), values)


def words(tokens: Iterable[str]) -> list[str]:
    """The tokens that contain a letter or a digit, in lower case."""
    return [token.casefold() for token in tokens if token.isalnum() or any(map(str.isalnum, token))]
