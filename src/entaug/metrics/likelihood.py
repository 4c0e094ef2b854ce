"""Log-likelihood of sentences under a causal language model, and pseudo-log-likelihood under a masked one.

The pseudo-log-likelihood (Salazar et al. 2020; CASSI, section 2.3) masks every sub-word alone and sums the
log-probabilities of the sub-words given all others. Equal texts are computed once.

Candidates are selected without computing all scores. CASSI (section 2.3) takes the most preferred among the k
candidates of highest pseudo-log-likelihood per word. Which candidates these are is often certain long before all scores
are complete:

- Log-probabilities are at most 0, so the sum over the sub-words computed so far is an upper bound of the score. A
  selection by these bounds is exact, but has to compute about half of all sub-words.
- Where candidates consist of parts of sentences whose scores are known, a sub-word far from every joint scores nearly
  what it scored in its own sentence. With an expected value and a standard deviation for each sub-word not yet
  computed, a score is known within an interval, and a selection is made once the intervals are far enough apart.
"""

from __future__ import annotations

import abc
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from entaug.backends.protocols import CausalLM, MaskedLM
from entaug.backends.resolve import resolve
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


MAX_ROWS = 4096
"""Masked rows requested from a model at once, so that memory does not grow with the corpus."""

_FIRST_PASSES = 4  # sub-words computed of a candidate of which no expected values are known
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
    sentences: Sequence[Sentence | str],
    n_best: int,
    model: MaskedLM | str = "mpnet-mlm",
    *,
    per_word: bool = True,
    expected: Sequence[Sequence[float]] | None = None,
) -> list[int]:
    """Find the candidates of highest pseudo-log-likelihood without computing the others to the end.

    The result equals that of computing all scores; see the head of the module.

    Args:
        sentences: the candidates.
        n_best: how many to find.
        model: a `MaskedLM`, or the name of one.
        per_word: compare by the sum divided by the number of words that are not punctuation.
        expected: for each candidate the expected log-probability of each of its sub-words. It affects how much is
            computed, never the result.

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
    if not sentences:
        return []
    divisors = [_word_count(sentence) if per_word else 1.0 for sentence in sentences]
    candidates = CandidateSet(list(map(as_text, sentences)), divisors, expected=expected)
    [selection] = select_best([candidates], n_best, resolve("masked_lm", model))
    return list(selection.best)


def _word_count(sentence: Sentence | str) -> float:
    return count_words(sentence.split() if isinstance(sentence, str) else sentence.tokens)


# ------------------------------------------------------------------------------------------------------------ selection


class CandidateSet(NamedTuple):
    """Candidates of which one is selected; there must be at least one."""

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
    """Select from each set by pseudo-log-likelihood, computing no more sub-words than the results need."""
    # All sets advance together, so that the model always gets many rows.
    selectors: list[_Selector] = [
        _ExactSelector(candidates, n_best)
        if confidence is None or candidates.spread is None
        else _IntervalSelector(candidates, n_best, confidence)
        for candidates in candidate_sets
    ]
    scorings = [scoring for selector in selectors for scoring in selector.scorings]
    for scoring, pieces in zip(scorings, lm.token_offsets([scoring.text for scoring in scorings]), strict=True):
        scoring.set_length(len(pieces))
    unknown = [scoring for scoring in scorings if not scoring.has_expectation]
    _compute(lm, [(scoring, _FIRST_PASSES) for scoring in unknown])
    for scoring in unknown:
        scoring.expect_mean()
    undecided = selectors
    while undecided:
        requests = [(selector, selector.next_requests()) for selector in undecided]
        undecided = [selector for selector, wanted in requests if wanted]
        _compute(lm, [request for _, wanted in requests for request in wanted])
    return [selector.selection() for selector in selectors]


def select_best_left_to_right(candidate_sets: Sequence[CandidateSet], n_best: int, lm: CausalLM) -> list[Selection]:
    """Select from each set by the log-likelihood under a causal model, which takes one pass per candidate."""
    selectors = [
        _ExactSelector(candidates._replace(expected=None, spread=None), n_best) for candidates in candidate_sets
    ]
    scorings = [scoring for selector in selectors for scoring in selector.scorings]
    distinct = list(dict.fromkeys(scoring.text for scoring in scorings))
    log_probs: dict[str, list[float]] = {}
    for start in range(0, len(distinct), MAX_ROWS):
        part = distinct[start : start + MAX_ROWS]
        log_probs.update(zip(part, (values.tolist() for values in lm.token_log_probs(part)), strict=True))
    for scoring in scorings:
        scoring.set_length(len(log_probs[scoring.text]))
        scoring.add(log_probs[scoring.text])
    return [selector.selection() for selector in selectors]


class _Scoring:
    """The score of a text, computed sub-word by sub-word."""

    def __init__(
        self,
        text: str,
        words: float,
        members: list[int],
        expected: Sequence[float] | None,
        spread: Sequence[float] | None,
    ) -> None:
        self.text = text
        self.members = members  # indices of the candidates that have this text and this number of words
        self._words = words
        self._expected = list(expected) if expected is not None else None
        self._spread = spread
        self._order: list[int] = []
        self._values: list[float] = []
        self._sum = 0.0

    def set_length(self, length: int) -> None:
        """Set the number of sub-words, and order them: highest spread first, else lowest expected value first."""
        for values in (self._expected, self._spread):
            if values is not None and len(values) != length:
                raise ParameterError(f"{len(values)} values expected for {length} sub-words of {self.text!r}")
        self._order = list(range(length))
        if self._spread is not None:
            self._order.sort(key=[-deviation for deviation in self._spread].__getitem__)
        elif self._expected is not None:
            self._order.sort(key=self._expected.__getitem__)
        self._sum_remaining()

    def _sum_remaining(self) -> None:
        """Sum the expected values and variances of what remains after each number of computed sub-words."""
        expected = self._expected or [0.0] * len(self._order)
        spread = self._spread or [0.0] * len(self._order)
        backwards = self._order[::-1]
        self._remaining = list(accumulate((expected[i] for i in backwards), initial=0.0))[::-1]
        self._variance = list(accumulate((spread[i] ** 2 for i in backwards), initial=0.0))[::-1]

    @property
    def has_expectation(self) -> bool:
        """Whether there are expected values."""
        return self._expected is not None

    def expect_mean(self) -> None:
        """Expect the mean of the computed sub-words of all others."""
        mean = self._sum / max(1, len(self._values))
        self._expected = [mean] * len(self._order)
        self._sum_remaining()

    @property
    def left(self) -> int:
        """Number of sub-words not computed yet."""
        return len(self._order) - len(self._values)

    @property
    def bound(self) -> float:
        """Upper bound of the score; the score itself when all sub-words are computed."""
        return self._sum / self._words

    @property
    def estimate(self) -> float:
        """Expected score."""
        return (self._sum + self._remaining[len(self._values)]) / self._words

    @property
    def deviation(self) -> float:
        """Standard deviation of the estimate; 0 when all sub-words are computed."""
        return math.sqrt(self._variance[len(self._values)]) / self._words if self.left else 0.0

    def passes_until_below(self, score: float) -> int:
        """Number of sub-words, at least 1, after which the bound is expected to fall below a score."""
        computed = len(self._values)
        for count in range(1, self.left):
            if self._sum + self._remaining[computed] - self._remaining[computed + count] < score * self._words:
                return count
        return self.left

    def next_positions(self, count: int) -> list[int]:
        """Positions of the next sub-words to compute."""
        computed = len(self._values)
        return self._order[computed : computed + count]

    def add(self, values: list[float]) -> None:
        """Add the log-probabilities of the next sub-words."""
        self._values += values
        self._sum = math.fsum(self._values)


class _Selector(abc.ABC):
    """A selection in progress."""

    def __init__(self, candidates: CandidateSet, n_best: int) -> None:
        self._n_best = n_best
        self._preferences = candidates.preferences
        groups: dict[tuple[str, float], list[int]] = {}
        for i, key in enumerate(zip(candidates.texts, candidates.words, strict=True)):
            groups.setdefault(key, []).append(i)
        expected, spread = candidates.expected, candidates.spread
        self.scorings = [
            _Scoring(
                text,
                words,
                members,
                expected[members[0]] if expected else None,
                spread[members[0]] if spread else None,
            )
            for (text, words), members in groups.items()
        ]

    @abc.abstractmethod
    def next_requests(self) -> list[tuple[_Scoring, int]]:
        """The next scorings, with a number of sub-words each; empty when the selection is certain."""

    @abc.abstractmethod
    def selection(self) -> Selection:
        """The result."""

    def _rank(self, index: int) -> tuple[float, int]:
        """Sort key of a candidate by preference, most preferred first."""
        return (-self._preferences[index] if self._preferences is not None else 0.0), index


class _ExactSelector(_Selector):
    """Selection that ends when nothing left to compute can change it."""

    # The candidates of highest estimate are computed to the end first. A candidate preferred to the current choice is
    # then computed until it is certain whether it is among the best; any other only until its bound falls below the
    # score of the choice.

    _started = False

    def next_requests(self) -> list[tuple[_Scoring, int]]:
        if not self._started:
            self._started = True
            promising = sorted(self.scorings, key=lambda scoring: -scoring.estimate)[: self._n_best]
            if first := [(scoring, sys.maxsize) for scoring in promising if scoring.left]:
                return first
        finished = self._finished()
        threshold = finished[self._n_best - 1][0] if len(finished) >= self._n_best else -math.inf
        choice = self._choice(finished)
        requests = []
        for scoring in self.scorings:
            minimum = threshold
            if choice is not None and min(map(self._rank, scoring.members)) > self._rank(choice[1]):
                minimum = choice[0]
            if scoring.left and scoring.bound >= minimum:
                requests.append((scoring, scoring.passes_until_below(minimum)))
        return requests

    def selection(self) -> Selection:
        finished = self._finished()
        score, chosen = self._choice(finished) or finished[0]
        return Selection(chosen, score, tuple(i for _, i in finished[: self._n_best]))

    def _finished(self) -> list[tuple[float, int]]:
        """Scores and indices of the candidates that are computed to the end, best first."""
        finished = [(scoring.bound, i) for scoring in self.scorings if not scoring.left for i in scoring.members]
        return sorted(finished, key=lambda pair: (-pair[0], pair[1]))

    def _choice(self, finished: list[tuple[float, int]]) -> tuple[float, int] | None:
        """The choice if nothing more were computed; None without preferences."""
        if self._preferences is None:
            return None
        return min(finished[: self._n_best], key=lambda pair: self._rank(pair[1]))


class _IntervalSelector(_Selector):
    """Selection that ends when the intervals of the scores lie apart wherever the result depends on it."""

    # The choice is the most preferred of the candidates with the highest estimates. It is final when all others are
    # clearly below it, and those preferred to it are below all of the best.

    def __init__(self, candidates: CandidateSet, n_best: int, confidence: float) -> None:
        super().__init__(candidates, n_best)
        self._confidence = confidence

    def next_requests(self) -> list[tuple[_Scoring, int]]:
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
        best = tuple(index for _, index in self._ranked()[: self._n_best])
        return Selection(min(best, key=self._rank), None, best)

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
