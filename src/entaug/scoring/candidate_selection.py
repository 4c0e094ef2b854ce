"""Which of several candidates a language model likes best, found without computing all of them.

CASSI (section 2.3) takes, among the k candidates of highest pseudo-log-likelihood per word, the one it prefers. To know
who that is needs no more than to know who is among the k, and that is often clear long before the sums are complete:

- Log-probabilities are never positive, so the sum over the places seen so far bounds a score from above. This is proof,
  but a weak one: even if each candidate's worst places were known beforehand, half of all rows have to be computed.
- Where the candidates are made of parts of sentences whose scores are known, a sub-word far from every joint scores
  nearly what it did at home. With an expectation and a spread for each place not seen, a score is known within an
  interval, and a decision is taken once the intervals lie apart by so many standard deviations.
"""

from __future__ import annotations

import abc
import math
import sys
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from entaug.backends.protocols import CausalLM, MaskedLM
from entaug.errors import ParameterError

__all__ = ["ROWS", "CandidateSet", "Selection", "count_words", "decide", "select_best_left_to_right"]

ROWS = 4096  # hidden places asked of the model at a time, so that memory does not grow with the corpus
_LOOK = 4  # places of a candidate of which nothing is known that are computed to get an idea
_STEP = 3  # places computed of a candidate between two looks at its interval


class CandidateSet(NamedTuple):
    """Candidates for one place; there must be at least one.

    Args:
        texts: running texts.
        words: for each what its sum of log-probabilities is divided by.
        preferences: for each how much it is wanted if it is among the best; None where all the best are wanted.
        expected: for each the log-probability that each of its sub-words is expected to have; None where nothing is
            known.
        spread: for each the standard deviation of what its sub-words have from what is expected.
    """

    texts: Sequence[str]
    words: Sequence[float]
    preferences: Sequence[float] | None = None
    expected: Sequence[Sequence[float]] | None = None
    spread: Sequence[Sequence[float]] | None = None


class Selection(NamedTuple):
    """How a contest ended.

    Args:
        chosen: the candidate most preferred among the best; without preferences the very best. Of equals the first.
        score: its log-likelihood divided by its words, computed to the end.
        best: the best in order, the very best first, as far as they are known; the place of the chosen one is its rank.
    """

    chosen: int
    score: float
    best: tuple[int, ...]


def decide(
    contests: Sequence[CandidateSet], best: int, lm: MaskedLM, confidence: float | None = None
) -> list[Selection]:
    """Settle contests by pseudo-log-likelihood, computing no more than the outcome needs.

    All contests advance together, so that the model is always asked for many rows.

    Args:
        contests: what is to be settled.
        best: among how many of the highest scores the choice is made.
        lm: the model.
        confidence: by how many standard deviations intervals must lie apart. None for proof, and contests without
            spreads are always proved: then the outcome is that of computing everything, and expectations settle only
            what is computed first.

    Returns:
        One for each contest.
    """
    races: list[_Race] = [
        _Proof(contest, best) if confidence is None or contest.spread is None else _Likely(contest, best, confidence)
        for contest in contests
    ]
    entries = [entry for race in races for entry in race.entries]
    for entry, pieces in zip(entries, lm.pieces([entry.text for entry in entries]), strict=True):
        entry.prepare(len(pieces))
    looks = [(entry, _LOOK) for entry in entries if entry.unknown]
    _advance(lm, looks)
    for entry, _ in looks:
        entry.guess()
    open_ = races
    while open_:
        asked = [(race, race.steps()) for race in open_]
        open_ = [race for race, steps in asked if steps]
        _advance(lm, [step for _, steps in asked for step in steps])
    return [race.verdict() for race in races]


def select_best_left_to_right(contests: Sequence[CandidateSet], best: int, lm: CausalLM) -> list[Selection]:
    """Settle contests by the log-likelihood of a model that reads from the left, which takes one pass a candidate.

    Args:
        contests: what is to be settled.
        best: among how many of the highest scores the choice is made.
        lm: the model.
    """
    races = [_Proof(contest._replace(expected=None, spread=None), best) for contest in contests]
    entries = [entry for race in races for entry in race.entries]
    distinct = list(dict.fromkeys(entry.text for entry in entries))
    values: dict[str, list[float]] = {}
    for start in range(0, len(distinct), ROWS):
        part = distinct[start : start + ROWS]
        values.update(zip(part, (p.tolist() for p in lm.token_log_probs(part)), strict=True))
    for entry in entries:
        entry.prepare(len(values[entry.text]))
        entry.add(values[entry.text])
    return [race.verdict() for race in races]


def count_words(tokens: Iterable[str]) -> float:
    """How many tokens are not punctuation, at least 1: what CASSI divides a sum of log-probabilities by.

    Example:
        >>> count_words(["Well", ",", "no", "."])
        2.0
    """
    return float(max(1, sum(any(c.isalnum() for c in token) for token in tokens)))


class _Entry:
    """A text on its way to its score."""

    def __init__(
        self,
        text: str,
        words: float,
        members: list[int],
        expected: Sequence[float] | None,
        spread: Sequence[float] | None,
    ) -> None:
        self.text = text
        self.members = members  # the candidates that have this text and this number of words
        self._words = words
        self._expected = list(expected) if expected is not None else None
        self._spread = spread
        self._order: list[int] = []
        self._values: list[float] = []
        self._sum = 0.0

    def prepare(self, length: int) -> None:
        """Be told how many sub-words there are, and settle the order.

        Those that are least known come first; where nothing is said of that, those expected to be worst.
        """
        for known in (self._expected, self._spread):
            if known is not None and len(known) != length:
                raise ParameterError(f"{len(known)} values expected for {length} sub-words of {self.text!r}")
        self._order = list(range(length))
        if self._spread is not None:
            self._order.sort(key=lambda place: -self._spread[place])  # type: ignore[index]
        elif self._expected is not None:
            self._order.sort(key=self._expected.__getitem__)
        self._count_ahead()

    def _count_ahead(self) -> None:
        """What is to come after each number of places: the sums of what is expected, and of its variance."""
        expected = self._expected or [0.0] * len(self._order)
        spread = self._spread or [0.0] * len(self._order)
        back = self._order[::-1]
        self._to_come = list(accumulate((expected[place] for place in back), initial=0.0))[::-1]
        self._variance = list(accumulate((spread[place] ** 2 for place in back), initial=0.0))[::-1]

    @property
    def unknown(self) -> bool:
        """Whether there is nothing to expect."""
        return self._expected is None

    def guess(self) -> None:
        """Expect of the places to come what those seen are like."""
        mean = self._sum / max(1, len(self._values))
        self._expected = [mean] * len(self._order)
        self._count_ahead()

    @property
    def left(self) -> int:
        """How many places are not computed yet."""
        return len(self._order) - len(self._values)

    @property
    def bound(self) -> float:
        """What the score can be at most; the score itself when nothing is left."""
        return self._sum / self._words

    @property
    def promise(self) -> float:
        """What the score is expected to be."""
        return (self._sum + self._to_come[len(self._values)]) / self._words

    @property
    def doubt(self) -> float:
        """The standard deviation of that; 0 when nothing is left."""
        return math.sqrt(self._variance[len(self._values)]) / self._words if self.left else 0.0

    def until(self, floor: float) -> int:
        """After how many more places the bound is expected to be below a score; at least one, at most all."""
        seen = len(self._values)
        for count in range(1, self.left):
            if self._sum + self._to_come[seen] - self._to_come[seen + count] < floor * self._words:
                return count
        return self.left

    def next(self, count: int) -> list[int]:
        seen = len(self._values)
        return self._order[seen : seen + count]

    def add(self, values: list[float]) -> None:
        self._values += values
        self._sum = math.fsum(self._values)


class _Race(abc.ABC):
    """A contest on its way to its verdict."""

    def __init__(self, contest: CandidateSet, best: int) -> None:
        self._best = best
        self._preferences = contest.preferences
        groups: dict[tuple[str, float], list[int]] = {}
        for i, key in enumerate(zip(contest.texts, contest.words, strict=True)):
            groups.setdefault(key, []).append(i)
        expected, spread = contest.expected, contest.spread
        self.entries = [
            _Entry(
                text,
                words,
                members,
                expected[members[0]] if expected else None,
                spread[members[0]] if spread else None,
            )
            for (text, words), members in groups.items()
        ]

    @abc.abstractmethod
    def steps(self) -> list[tuple[_Entry, int]]:
        """What has to be computed next, each a candidate and how many more places; nothing when all is known."""

    @abc.abstractmethod
    def verdict(self) -> Selection:
        """The outcome."""

    def _rank(self, number: int) -> tuple[float, int]:
        """The place of a candidate among those that are preferred, the least for the most preferred."""
        return (-self._preferences[number] if self._preferences is not None else 0.0), number


class _Proof(_Race):
    """Settled when nothing that is left can change the outcome.

    The candidates that promise most are computed to the end first. Whoever is preferred to the best choice so far is
    then computed until it is known whether it is among the best; whoever is not, only until it is known to score less
    than that choice.
    """

    _begun = False

    def steps(self) -> list[tuple[_Entry, int]]:
        if not self._begun:
            self._begun = True
            promising = sorted(self.entries, key=lambda entry: -entry.promise)[: self._best]
            if first := [(entry, sys.maxsize) for entry in promising if entry.left]:
                return first
        done = self._done()
        floor = done[self._best - 1][0] if len(done) >= self._best else -math.inf
        choice = self._choice(done)
        found = []
        for entry in self.entries:
            least = floor
            if choice is not None and min(map(self._rank, entry.members)) > self._rank(choice[1]):
                least = choice[0]
            if entry.left and entry.bound >= least:
                found.append((entry, entry.until(least)))
        return found

    def verdict(self) -> Selection:
        done = self._done()
        score, chosen = self._choice(done) or done[0]
        return Selection(chosen, score, tuple(i for _, i in done[: self._best]))

    def _done(self) -> list[tuple[float, int]]:
        """Scores and numbers of the candidates that are finished, the best first."""
        done = [(entry.bound, i) for entry in self.entries if not entry.left for i in entry.members]
        return sorted(done, key=lambda pair: (-pair[0], pair[1]))

    def _choice(self, done: list[tuple[float, int]]) -> tuple[float, int] | None:
        """Who would be chosen if no more were computed; None where all the best are wanted."""
        if self._preferences is None:
            return None
        return min(done[: self._best], key=lambda pair: self._rank(pair[1]))


class _Likely(_Race):
    """Settled when the intervals of the scores lie apart wherever the outcome depends on it.

    Of the candidates that seem to be the best so many, the most preferred is the choice. It stands when all others are
    clearly below it, and those preferred to it below all of the best.
    """

    def __init__(self, contest: CandidateSet, best: int, confidence: float) -> None:
        super().__init__(contest, best)
        self._confidence = confidence

    def steps(self) -> list[tuple[_Entry, int]]:
        ranked = self._ranked()
        top, rest = ranked[: self._best], ranked[self._best :]
        choice, chosen = min(top, key=lambda pair: self._rank(pair[1]))
        unclear: dict[int, _Entry] = {}
        for entry, number in rest:
            for rival in [one for one, _ in top] if self._rank(number) < self._rank(chosen) else [choice]:
                doubt = math.hypot(entry.doubt, rival.doubt)
                if doubt and rival.promise - entry.promise < self._confidence * doubt:
                    more = rival if rival.doubt > entry.doubt else entry
                    unclear[more.members[0]] = more
        if unclear:
            return [(entry, _STEP) for entry in unclear.values()]
        return [(choice, choice.left)] if choice.left else []

    def verdict(self) -> Selection:
        top = self._ranked()[: self._best]
        choice, chosen = min(top, key=lambda pair: self._rank(pair[1]))
        return Selection(chosen, choice.bound, tuple(number for _, number in top))

    def _ranked(self) -> list[tuple[_Entry, int]]:
        """All candidates, the most promising first."""
        pairs = [(entry, number) for entry in self.entries for number in entry.members]
        return sorted(pairs, key=lambda pair: (-pair[0].promise, pair[1]))


def _advance(lm: MaskedLM, steps: list[tuple[_Entry, int]]) -> None:
    """Compute the next few places of each, a bounded number of rows at a time."""
    part: list[tuple[_Entry, list[int]]] = []
    rows = 0
    for number, (entry, count) in enumerate(steps, start=1):
        places = entry.next(count)
        part.append((entry, places))
        rows += len(places)
        if rows >= ROWS or number == len(steps):
            answers = lm.token_log_probs([(asked.text, some) for asked, some in part])
            for (asked, _), values in zip(part, answers, strict=True):
                asked.add(values.tolist())
            part, rows = [], 0
