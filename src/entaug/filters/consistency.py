"""The consistency filter, which uses a tagger trained on the training sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from entaug.backends.protocols import Tagger
from entaug.backends.resolve import is_alias
from entaug.config.params import Probability
from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.filters.base import Filter

__all__ = ["Consistency"]

_DISAGREES = "the tagger predicts other mentions"


@dataclass(kw_only=True, eq=False)
class Consistency(Filter):
    """Keep sentences whose mentions are also predicted by a tagger trained on the training sentences.

    The published code of ACLM has this filter; its paper does not mention it.

    Args:
        tagger: a `Tagger` or the name of one, which is trained, with parameters of it and of its training if there are
            any (``linear:encoder=mpnet;epochs=20``); or a folder with a saved one, used as it is.
        min_confidence: the minimum confidence of the tagger in a sentence's mentions (see `Tagger.confidences`); none
            to require that it predicts exactly these mentions.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTagger
        >>> rome = Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])
        >>> other = Sentence(["Rome", "shines"], [Mention("LOC", [(0, 1)])])
        >>> Consistency(tagger=FakeTagger()).fit([rome]).judge([rome, other], [rome, rome])
        [None, 'the tagger predicts other mentions']
    """

    name = "consistency"
    summary = "a tagger trained on the training sentences predicts the same mentions"
    reasons = (_DISAGREES,)

    tagger: Tagger | str = "linear"
    min_confidence: Probability | None = None
    tagger_: Tagger = field(init=False, repr=False)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if not any(sentence.mentions for sentence in gold):
            raise InputError(
                "the training sentences have no mentions, which the consistency filter needs",
                remedy="remove the filter",
            )
        is_trained = isinstance(self.tagger, str) and not is_alias("tagger", self.tagger)
        self._trained: Tagger = self.tagger_ if is_trained else self.tagger_.fit(gold)

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        del sources
        if self.min_confidence is None:
            predictions = self._trained.predict(sentences)
            # A tagger of another library may have no counterpart of some labels: of these it says nothing.
            known = getattr(self._trained, "known_labels", None)
            agrees = [
                [m for m in a.mentions if known is None or m.label in known] == list(b.mentions)
                for a, b in zip(sentences, predictions, strict=True)
            ]
        else:
            agrees = [confidence >= self.min_confidence for confidence in self._trained.confidences(sentences)]
        return [None if agreed else _DISAGREES for agreed in agrees]
