"""Consistency of a sentence with a tagger that was trained on the training sentences alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from entaug.backends.protocols import Tagger
from entaug.data import Sentence
from entaug.errors import InputError
from entaug.filters.base import Filter
from entaug.params import Probability

__all__ = ["Consistency"]

_DISAGREES = "the tagger does not agree"


@dataclass(kw_only=True, eq=False)
class Consistency(Filter):
    """Keep sentences whose mentions a tagger trained on the training sentences predicts too.

    The published code of ACLM has this filter; its paper does not mention it.

    Args:
        tagger: a `Tagger`, or the name of one.
        min_confidence: the minimum confidence of the tagger in a sentence's mentions (see `Tagger.confidences`); none
            where it must predict them exactly.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTagger
        >>> rome = Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])
        >>> other = Sentence(["Rome", "shines"], [Mention("LOC", [(0, 1)])])
        >>> Consistency(tagger=FakeTagger()).fit([rome]).judge([rome, other], [rome, rome])
        [None, 'the tagger does not agree']
    """

    name = "consistency"
    summary = "a tagger trained on the training sentences alone predicts the same mentions"
    reasons = (_DISAGREES,)

    tagger: Tagger | str = "linear"
    min_confidence: Probability | None = None
    tagger_: Tagger = field(init=False, repr=False)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if not any(sentence.mentions for sentence in gold):
            raise InputError("no mentions for the consistency filter to learn from", remedy="leave the filter out")
        self._trained: Tagger = self.tagger_.fit(gold)

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        del sources
        if self.min_confidence is None:
            predictions = self._trained.predict(sentences)
            agrees = [a.mentions == b.mentions for a, b in zip(sentences, predictions, strict=True)]
        else:
            agrees = [confidence >= self.min_confidence for confidence in self._trained.confidences(sentences)]
        return [None if agreed else _DISAGREES for agreed in agrees]
