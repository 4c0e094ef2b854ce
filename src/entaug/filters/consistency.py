"""Does a tagger that has learned from gold alone find the same mentions?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from entaug.backends.protocols import Tagger
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import InputError
from entaug.filters.base import Filter, check_share

__all__ = ["Consistency"]

_DISAGREES = "the tagger does not agree"


@dataclass(kw_only=True, eq=False)
class Consistency(Filter):
    """Keep what a tagger that has learned from gold alone agrees with.

    ACLM's published code has it, and its paper does not mention it.

    Args:
        tagger: a `Tagger`, or the name of one.
        confidence: the least that the tagger's confidence in a sentence's mentions must be (see `Tagger.confidences`);
            none where it must predict them exactly.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeTagger
        >>> rome = Sentence(["Rome", "burns"], [Mention("LOC", [(0, 1)])])
        >>> other = Sentence(["Rome", "shines"], [Mention("LOC", [(0, 1)])])
        >>> Consistency(tagger=FakeTagger()).fit([rome]).judge([rome, other], [rome, rome])
        [None, 'the tagger does not agree']
    """

    filter_name = "consistency"
    summary = "a tagger that has learned from gold alone finds the same mentions"
    reasons = (_DISAGREES,)

    tagger: Tagger | str = "linear"
    confidence: float | None = None

    def _check(self) -> None:
        check_share("confidence", self.confidence)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if not any(sentence.mentions for sentence in gold):
            raise InputError("no mentions for the consistency filter to learn from", remedy="leave the filter out")
        self._taught: Tagger = resolve("tagger", self.tagger).fit(gold)

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        del sources
        if self.confidence is None:
            agreed = [a.mentions == b.mentions for a, b in zip(made, self._taught.predict(made), strict=True)]
        else:
            agreed = [value >= self.confidence for value in self._taught.confidences(made)]
        return [None if one else _DISAGREES for one in agreed]
