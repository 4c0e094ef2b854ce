"""Pseudo-log-likelihood of sentences under a masked language model, exact and fast (Salazar et al. 2020; CASSI, 3.3).

Every sub-word is hidden alone and its log-probability given all others is summed. What makes it fast is in the backend
(the head at the hidden place only, rows of one width, half precision where the device has it) and here: equal texts are
computed once, and where only the best few are wanted, a candidate is given up as soon as it cannot be among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from entaug.align import running_text
from entaug.backends.protocols import MaskedLM
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

__all__ = ["best_by_likelihood", "pseudo_log_likelihood"]

_ROWS = 4096  # hidden places asked of the model at a time, so that memory does not grow with the corpus


def pseudo_log_likelihood(
    sentences: Iterable[Sentence | str], model: MaskedLM | str = "mpnet-mlm", *, per_word: bool = False
) -> NDArray[float64]:
    """The pseudo-log-likelihood of each sentence.

    Args:
        sentences: sentences, or running texts.
        model: a `MaskedLM`, or the name of one.
        per_word: divide by the number of words that are not punctuation (CASSI's score).

    Returns:
        One natural logarithm per sentence, never positive; 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> pseudo_log_likelihood(["A red car.", "A red car."], FakeMaskedLM()).shape
        (2,)
    """
    import numpy as np

    lm: MaskedLM = resolve("masked_lm", model)
    given = list(sentences)
    texts = [_text(sentence) for sentence in given]
    distinct = list(dict.fromkeys(texts))
    score: dict[str, float] = {}
    start = rows = 0
    for end, length in enumerate(lm.lengths(distinct), start=1):
        rows += length
        if rows >= _ROWS or end == len(distinct):
            of_texts = lm.token_log_probs([(text, None) for text in distinct[start:end]])
            score.update(zip(distinct[start:end], (math.fsum(p.tolist()) for p in of_texts), strict=True))
            start, rows = end, 0
    sums = np.array([score[text] for text in texts], dtype=np.float64)
    return sums / np.array([_words(sentence) for sentence in given]) if per_word else sums


def best_by_likelihood(
    sentences: Sequence[Sentence | str],
    best: int,
    model: MaskedLM | str = "mpnet-mlm",
    *,
    per_word: bool = True,
    first: Sequence[Sequence[int]] | None = None,
    at_once: int = 4,
) -> list[int]:
    """The candidates of highest pseudo-log-likelihood, without computing the others to the end.

    A log-probability is never positive, so the sum over the places seen so far bounds the score from above. Candidates
    are computed a few places at a time, the most promising to the end first, and one whose bound is below the score of
    the `best`-th so far is given up. The result is that of computing all.

    Args:
        sentences: the candidates.
        best: how many are wanted.
        model: a `MaskedLM`, or the name of one.
        per_word: compare by the sum divided by the number of words that are not punctuation.
        first: for each candidate the sub-words to begin with, where it is likeliest to be bad (near a splice).
        at_once: how many sub-words of a candidate are computed between looks at the bound.

    Returns:
        Positions of the best, the very best first; equal scores in the order given.

    Raises:
        ParameterError: fewer than one wanted.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> texts = ["a b c", "a c b", "c b a", "b a c"]
        >>> scores = pseudo_log_likelihood(texts, FakeMaskedLM())
        >>> list((-scores).argsort()[:2]) == best_by_likelihood(texts, 2, FakeMaskedLM(), per_word=False)
        True
    """
    if best < 1 or at_once < 1:
        raise ParameterError(f"best and at_once must be at least 1, not {best!r} and {at_once!r}")
    lm: MaskedLM = resolve("masked_lm", model)
    texts = [_text(sentence) for sentence in sentences]
    groups: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        groups.setdefault(text, []).append(i)
    candidates = []
    for text, length in zip(groups, lm.lengths(list(groups)), strict=True):
        i = groups[text][0]
        early = [place for place in (first[i] if first else ()) if 0 <= place < length]
        order = [*dict.fromkeys(early), *(place for place in range(length) if place not in set(early))]
        words = _words(sentences[i]) if per_word else 1.0
        candidates.append(_Candidate(text, order, words, len(groups[text])))
    # A look at each, then those that promise most to the end, which sets the score to beat; then the others by and by.
    _advance(lm, candidates, at_once)
    promising = sorted(candidates, key=lambda c: -c.guess)[:best]
    _advance(lm, promising, max((c.left for c in promising), default=0))
    done = [c for c in candidates if c.finished]
    open_ = [c for c in candidates if not c.finished]
    while open_:
        floor = _floor(done, best)
        open_ = [c for c in open_ if c.bound >= floor]
        _advance(lm, open_, at_once)
        done += [c for c in open_ if c.finished]
        open_ = [c for c in open_ if not c.finished]
    ranked = sorted((-c.bound, i) for c in done for i in groups[c.text])
    return [i for _, i in ranked[:best]]


class _Candidate:
    """A text on its way to its score."""

    def __init__(self, text: str, order: list[int], words: float, copies: int) -> None:
        self.text = text
        self.copies = copies
        self._order = order
        self._words = words
        self._values: list[float] = []

    @property
    def finished(self) -> bool:
        return len(self._values) == len(self._order)

    @property
    def bound(self) -> float:
        """What the score can be at most; the score itself when finished."""
        return math.fsum(self._values) / self._words

    @property
    def guess(self) -> float:
        """What the score will be if the places to come are like those seen."""
        return self.bound * len(self._order) / max(1, len(self._values))

    @property
    def left(self) -> int:
        return len(self._order) - len(self._values)

    def next(self, count: int) -> list[int]:
        seen = len(self._values)
        return self._order[seen : seen + count]

    def add(self, values: Any) -> None:
        self._values += values.tolist()


def _advance(lm: MaskedLM, candidates: list[_Candidate], count: int) -> None:
    """Compute the next few places of each, a bounded number of rows at a time."""
    several = max(1, _ROWS // max(1, count))
    for start in range(0, len(candidates), several):
        part = candidates[start : start + several]
        for candidate, values in zip(part, lm.token_log_probs([(c.text, c.next(count)) for c in part]), strict=True):
            candidate.add(values)


def _floor(done: list[_Candidate], best: int) -> float:
    """The score that a candidate must reach to be among the best; minus infinity while there are too few."""
    left = best
    for candidate in sorted(done, key=lambda c: -c.bound):
        left -= candidate.copies
        if left <= 0:
            return candidate.bound
    return -math.inf


def _text(sentence: Sentence | str) -> str:
    return sentence if isinstance(sentence, str) else running_text(sentence.tokens, sentence.spaces)


def _words(sentence: Sentence | str) -> float:
    tokens = sentence.split() if isinstance(sentence, str) else sentence.tokens
    return float(max(1, sum(any(c.isalnum() for c in token) for token in tokens)))
