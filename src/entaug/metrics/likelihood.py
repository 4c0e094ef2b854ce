"""Log-likelihood of sentences under a causal language model, and pseudo-log-likelihood under a masked one.

The pseudo-log-likelihood (Salazar et al. 2020; CASSI, section 2.3) masks every sub-word alone and sums the
log-probabilities of the sub-words given all others. Equal texts are computed once.

CASSI (section 2.3) takes the most preferred among the k candidates of highest pseudo-log-likelihood per word. Where
candidates consist of parts of sentences whose scores are known, a sub-word far from every joint scores nearly what it
scored in its own sentence. With an expected value and a standard deviation for each sub-word not yet computed, a score
is known within an interval, and a selection is made once the intervals are far enough apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from entaug.backends.protocols import CausalLM, MaskedLM
from entaug.backends.resolve import resolve
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from numpy import float32, float64
    from numpy.typing import NDArray


MAX_ROWS = 4096
"""Masked rows requested from a model at once, so that memory does not grow with the corpus."""

_PASSES = 3  # sub-words computed of a candidate before its interval is compared again


def as_text(sentence: Sentence | str) -> str:
    """Convert a sentence to running text."""
    return sentence if isinstance(sentence, str) else detokenize(sentence.tokens, sentence.spaces)


def count_words(tokens: Iterable[str]) -> float:
    """Count the tokens that are not punctuation: the divisor of CASSI's score."""
    return float(max(1, sum(any(c.isalnum() for c in token) for token in tokens)))


def pseudo_log_likelihood(
    sentences: Iterable[Sentence | str], model: MaskedLM | str = "mpnet-mlm", *, per_word: bool = False
) -> NDArray[float64]:
    """Compute the pseudo-log-likelihood of each sentence.

    Args:
        sentences: sentences, or running texts.
        model: a `MaskedLM`, or the name of one.
        per_word: divide by the number of words that are not punctuation (CASSI's score).

    Returns:
        One natural logarithm per sentence, at most 0; 0 for an empty text.

    Raises:
        MissingModelError: the model is not on this machine.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> pseudo_log_likelihood(["A red car.", "A red car."], FakeMaskedLM()).shape
        (2,)
    """
    lm: MaskedLM = resolve("masked_lm", model)
    return _sums(sentences, lambda texts: masked_log_probs(texts, lm), per_word=per_word)


def log_likelihood(
    sentences: Iterable[Sentence | str], model: CausalLM | str = "smollm2", *, per_word: bool = False
) -> NDArray[float64]:
    """Compute the log-likelihood of each sentence under a causal language model, in one pass per sentence."""
    lm: CausalLM = resolve("causal_lm", model)
    return _sums(sentences, lambda texts: causal_log_probs(texts, lm), per_word=per_word)


def masked_log_probs(texts: Sequence[str], lm: MaskedLM) -> Iterator[NDArray[Any]]:
    """Compute the log-probability of every sub-word with that sub-word masked, in batches of bounded memory."""
    start = rows = 0
    for end, pieces in enumerate(lm.token_offsets(texts), start=1):
        rows += len(pieces)
        if rows >= MAX_ROWS or end == len(texts):
            yield from lm.token_log_probs([(text, None) for text in texts[start:end]])
            start, rows = end, 0


def variant_log_probs(texts: Sequence[str], lm: CausalLM) -> list[NDArray[float32]]:
    """Compute the log-probability of every sub-word given those before it, for variants of one sentence."""
    # They begin alike; a model that can computes their common beginning once.
    found: list[NDArray[float32]] = getattr(lm, "log_probs_of_variants", lm.token_log_probs)(texts)
    return found


def causal_log_probs(texts: Sequence[str], lm: CausalLM, batch_size: int = MAX_ROWS) -> Iterator[NDArray[Any]]:
    """Compute the log-probability of every sub-word given those before it."""
    for start in range(0, len(texts), batch_size):
        yield from lm.token_log_probs(texts[start : start + batch_size])


def _sums(
    sentences: Iterable[Sentence | str], compute: Callable[[list[str]], Iterator[NDArray[Any]]], *, per_word: bool
) -> NDArray[float64]:
    """The sum of the log-probabilities of each sentence's sub-words; equal texts are computed once."""
    import numpy as np

    sentences = list(sentences)
    texts = list(map(as_text, sentences))
    distinct = list(dict.fromkeys(texts))
    totals = (math.fsum(values.tolist()) for values in compute(distinct))
    total_of = dict(zip(distinct, totals, strict=True))
    sums = np.array([total_of[text] for text in texts], dtype=np.float64)
    return sums / np.array(list(map(_word_count, sentences))) if per_word else sums


def best_by_likelihood(
    sentences: Sequence[Sentence | str], n_best: int, model: MaskedLM | str = "mpnet-mlm", *, per_word: bool = True
) -> list[int]:
    """Find the candidates of highest pseudo-log-likelihood.

    Args:
        sentences: the candidates.
        n_best: how many to find.
        model: a `MaskedLM`, or the name of one.
        per_word: compare by the sum divided by the number of words that are not punctuation.

    Returns:
        Indices of the best candidates, best first; equal scores in the given order.

    Raises:
        ParameterError: `n_best` is below 1.

    Example:
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> texts = ["a b c", "a c b", "c b a", "b a c"]
        >>> scores = pseudo_log_likelihood(texts, FakeMaskedLM())
        >>> list((-scores).argsort()[:2]) == best_by_likelihood(texts, 2, FakeMaskedLM(), per_word=False)
        True
    """
    if n_best < 1:
        raise ParameterError(f"n_best must be at least 1, not {n_best!r}", parameter="n_best")
    scores = pseudo_log_likelihood(sentences, model, per_word=per_word)
    best: list[int] = (-scores).argsort(kind="stable")[:n_best].tolist()
    return best


def _word_count(sentence: Sentence | str) -> float:
    return count_words(sentence.split() if isinstance(sentence, str) else sentence.tokens)


# ------------------------------------------------------------------------------------------------------------ selection


class CandidateSet(NamedTuple):
    """Candidates of which the most preferred among the likeliest is selected; there must be at least one."""

    texts: Sequence[str]
    words: Sequence[float]
    preferences: Sequence[float] | None = None
    expected: Sequence[Sequence[float]] | None = None
    spread: Sequence[Sequence[float]] | None = None


class Selection(NamedTuple):
    """Result of a selection."""

    chosen: int
    score: float | None
    best: tuple[int, ...]


def select_best(
    candidate_sets: Sequence[CandidateSet], n_best: int, lm: MaskedLM, confidence: float | None = None
) -> list[Selection]:
    """Select from each set by pseudo-log-likelihood."""
    # With a confidence, a number of standard deviations, no more sub-words are computed than the results need; without
    # one all are.
    # All sets advance together, so that the model always gets many rows.
    selectors = [_Selector(candidates, n_best, confidence) for candidates in candidate_sets]
    scorings = [scoring for selector in selectors for scoring in selector.scorings]
    for scoring, pieces in zip(scorings, lm.token_offsets([scoring.text for scoring in scorings]), strict=True):
        scoring.set_length(len(pieces))
    undecided = selectors
    while undecided:
        requests = [(selector, selector.next_requests()) for selector in undecided]
        undecided = [selector for selector, wanted in requests if wanted]
        _compute(lm, [request for _, wanted in requests for request in wanted])
    return [selector.selection() for selector in selectors]


def select_best_left_to_right(candidate_sets: Sequence[CandidateSet], n_best: int, lm: CausalLM) -> list[Selection]:
    """Select from each set by the log-likelihood under a causal model, which takes one pass per candidate."""
    selectors = [_Selector(candidates, n_best) for candidates in candidate_sets]
    scorings = [scoring for selector in selectors for scoring in selector.scorings]
    distinct = list(dict.fromkeys(scoring.text for scoring in scorings))
    log_probs = dict(zip(distinct, causal_log_probs(distinct, lm), strict=True))
    for scoring in scorings:
        scoring.set_length(len(log_probs[scoring.text]))
        scoring.add(log_probs[scoring.text].tolist())
    return [selector.selection() for selector in selectors]


@dataclass(eq=False)
class _Scoring:
    """The score of a text, computed sub-word by sub-word."""

    text: str
    _words: float
    members: list[int]  # indices of the candidates that have this text and this number of words
    _expected: Sequence[float] | None
    _spread: Sequence[float] | None
    _values: list[float] = field(default_factory=list, init=False)

    def set_length(self, length: int) -> None:
        """Set the number of sub-words, and order them, the highest spread first."""
        expected, spread = self._expected or [0.0] * length, self._spread or [0.0] * length
        for values in (expected, spread):
            if len(values) != length:
                raise ParameterError(f"{len(values)} values expected for {length} sub-words of {self.text!r}")
        self._order = sorted(range(length), key=lambda i: -spread[i])
        # The expected values and the variances of what remains after each number of computed sub-words.
        backwards = self._order[::-1]
        self._remaining = list(accumulate((expected[i] for i in backwards), initial=0.0))[::-1]
        self._variance = list(accumulate((spread[i] ** 2 for i in backwards), initial=0.0))[::-1]

    @property
    def left(self) -> int:
        """Number of sub-words not computed yet."""
        return len(self._order) - len(self._values)

    @property
    def estimate(self) -> float:
        """Expected score; the score itself when all sub-words are computed."""
        return (math.fsum(self._values) + self._remaining[len(self._values)]) / self._words

    @property
    def deviation(self) -> float:
        """Standard deviation of the estimate; 0 when all sub-words are computed."""
        return math.sqrt(self._variance[len(self._values)]) / self._words

    def next_positions(self, count: int) -> list[int]:
        """Positions of the next sub-words to compute."""
        computed = len(self._values)
        return self._order[computed : computed + count]

    def add(self, values: list[float]) -> None:
        """Add the log-probabilities of the next sub-words."""
        self._values += values


class _Selector:
    """A selection in progress: it ends when the intervals of the scores lie apart wherever the result depends on it."""

    # The choice is the most preferred of the candidates with the highest estimates. It is final when all others are
    # clearly below it, and those preferred to it are below all of the best. Without expected values or a confidence all
    # candidates are computed to the end.

    def __init__(self, candidates: CandidateSet, n_best: int, confidence: float | None = None) -> None:
        self._n_best = n_best
        self._preferences = candidates.preferences or [0.0] * len(candidates.texts)
        expected, spread = candidates.expected, candidates.spread
        self._confidence = None if spread is None else confidence
        groups: dict[tuple[str, float], list[int]] = {}
        for i, key in enumerate(zip(candidates.texts, candidates.words, strict=True)):
            groups.setdefault(key, []).append(i)
        self.scorings = [
            _Scoring(
                text, words, members, expected[members[0]] if expected else None, spread[members[0]] if spread else None
            )
            for (text, words), members in groups.items()
        ]

    def next_requests(self) -> list[tuple[_Scoring, int]]:
        """The next scorings, with a number of sub-words each; empty when the selection is certain."""
        if self._confidence is None:
            return [(scoring, scoring.left) for scoring in self.scorings if scoring.left]
        ranked = self._ranked()
        top, rest = ranked[: self._n_best], ranked[self._n_best :]
        choice, chosen = min(top, key=lambda pair: self._rank(pair[1]))
        unclear: dict[int, _Scoring] = {}
        for scoring, index in rest:
            rivals = [rival for rival, _ in top] if self._rank(index) < self._rank(chosen) else [choice]
            for rival in rivals:
                deviation = math.hypot(scoring.deviation, rival.deviation)
                if deviation and rival.estimate - scoring.estimate < self._confidence * deviation:
                    less_certain = rival if rival.deviation > scoring.deviation else scoring
                    unclear[less_certain.members[0]] = less_certain
        return [(scoring, _PASSES) for scoring in unclear.values()]

    def selection(self) -> Selection:
        """The result; the score of an estimate is None."""
        best = self._ranked()[: self._n_best]
        scoring, chosen = min(best, key=lambda pair: self._rank(pair[1]))
        score = scoring.estimate if self._confidence is None else None
        return Selection(chosen, score, tuple(index for _, index in best))

    def _rank(self, index: int) -> tuple[float, int]:
        """Sort key of a candidate by preference, most preferred first."""
        return -self._preferences[index], index

    def _ranked(self) -> list[tuple[_Scoring, int]]:
        """All candidates, highest estimate first."""
        pairs = [(scoring, index) for scoring in self.scorings for index in scoring.members]
        return sorted(pairs, key=lambda pair: (-pair[0].estimate, pair[1]))


def _compute(lm: MaskedLM, requests: list[tuple[_Scoring, int]]) -> None:
    """Compute the next sub-words of each scoring, a bounded number of rows at once."""
    batch: list[tuple[_Scoring, list[int]]] = []
    rows = 0
    for number, (scoring, count) in enumerate(requests, start=1):
        positions = scoring.next_positions(count)
        batch.append((scoring, positions))
        rows += len(positions)
        if rows >= MAX_ROWS or number == len(requests):
            log_probs = lm.token_log_probs([(requested.text, some) for requested, some in batch])
            for (requested, _), values in zip(batch, log_probs, strict=True):
                requested.add(values.tolist())
            batch, rows = [], 0
