"""How well predicted mentions match gold ones, and whether one system is better than another.

A predicted mention is right when its label and its spans are those of a gold mention of the same sentence: nothing in
between. So flat, nested and discontinuous mentions are scored alike. Counts are summed before anything is divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from entaug.data import Mention, Sentence
from entaug.errors import InputError, ParameterError

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

__all__ = ["Counts", "Difference", "Scores", "paired_bootstrap", "score", "table"]

KINDS = ("flat", "outer", "inner", "discontinuous")
"""Where a mention stands among the others: see `score`."""

_LONGEST_MENTION = 5
_SENTENCE_ENDS = (10, 20, 30, 50)
_CHUNK = 64  # resamples at a time: so many rows of weights lie in memory


@dataclass(frozen=True, slots=True)
class Counts:
    """What precision, recall and F1 are made of. Each is 0 where it is undefined.

    Args:
        correct: mentions predicted and right.
        predicted: mentions predicted.
        gold: mentions in the gold annotation.

    Example:
        >>> both = Counts(1, 2, 1) + Counts(0, 0, 2)
        >>> both, both.precision, round(both.f1, 2)
        (Counts(correct=1, predicted=2, gold=3), 0.5, 0.4)
    """

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: Counts) -> Counts:
        """The counts of both."""
        return Counts(self.correct + other.correct, self.predicted + other.predicted, self.gold + other.gold)

    def __iter__(self) -> Iterator[int]:
        """Correct, predicted, gold."""
        return iter((self.correct, self.predicted, self.gold))

    @property
    def precision(self) -> float:
        """The share of the predicted mentions that is right."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the gold mentions that was found."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.predicted + self.gold
        return 2 * self.correct / total if total else 0.0

    def as_dict(self) -> dict[str, float]:
        """Counts and measures, for JSON."""
        names = ("correct", "predicted", "gold", "precision", "recall", "f1")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Scores:
    """The scores of one prediction.

    Args:
        by_type: counts by label, of gold and predicted mentions.
        by_mention_length: by the tokens a mention covers, gaps left out: ``"1"`` to ``"4"``, ``"5+"``.
        by_sentence_length: by the tokens of the sentence: ``"1-10"``, ``"11-20"``, ``"21-30"``, ``"31-50"``, ``"51+"``.
        by_kind: by the keys of `KINDS`; see `score`.
        sentences: counts of each sentence, in order; empty when read back without them.
    """

    by_type: Mapping[str, Counts]
    by_mention_length: Mapping[str, Counts]
    by_sentence_length: Mapping[str, Counts]
    by_kind: Mapping[str, Counts]
    sentences: tuple[Counts, ...] = field(default=(), repr=False)

    @property
    def micro(self) -> Counts:
        """The counts of all mentions."""
        return sum(self.by_type.values(), Counts())

    @property
    def macro(self) -> float:
        """The mean F1 of all labels, those that are predicted only (F1 0) too.

        This is the F1 of ``macro avg`` in seqeval's report; 0 where there is no mention at all.
        """
        return sum(counts.f1 for counts in self.by_type.values()) / len(self.by_type) if self.by_type else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All but the counts of sentences, for JSON; for those see `sentence_counts`."""
        parts = {name: {key: c.as_dict() for key, c in getattr(self, name).items()} for name in _PARTS}
        return {"micro": self.micro.as_dict(), "macro": self.macro, **parts}

    def sentence_counts(self) -> dict[str, list[int]]:
        """The counts of sentences as three lists: ``correct``, ``predicted``, ``gold``."""
        return {name: [getattr(counts, name) for counts in self.sentences] for name in _COUNTS}

    @classmethod
    def from_dict(cls, scores: Mapping[str, Any], sentences: Mapping[str, Sequence[int]] | None = None) -> Scores:
        """The scores that `as_dict` was made from.

        Args:
            scores: what `as_dict` gave.
            sentences: what `sentence_counts` gave, if it was kept.

        Raises:
            InputError: something is missing, is no count, or counts contradict one another.

        Example:
            >>> s = Sentence(["Rome"], [Mention("LOC", [(0, 1)])])
            >>> scores = score([s], [s])
            >>> Scores.from_dict(scores.as_dict(), scores.sentence_counts()) == scores
            True
        """
        try:
            parts = {
                name: {str(key): Counts(*(c[count] for count in _COUNTS)) for key, c in scores[name].items()}
                for name in _PARTS
            }
        except (AttributeError, LookupError, TypeError):
            raise InputError(f"scores need {', '.join(_PARTS)}, each with counts by name") from None
        rows = [tuple(counts) for part in parts.values() for counts in part.values()]
        if any(type(n) is not int or n < 0 for row in rows for n in row):
            raise InputError("a count must be a whole number of at least 0")
        made = cls(**parts, sentences=() if sentences is None else _from_lists(sentences))
        if sentences is not None and sum(made.sentences, Counts()) != made.micro:
            raise InputError("the counts of the sentences do not add up to those of the types")
        return made


_COUNTS = ("correct", "predicted", "gold")
_PARTS = ("by_type", "by_mention_length", "by_sentence_length", "by_kind")


def _from_lists(lists: Mapping[str, Sequence[int]]) -> tuple[Counts, ...]:
    try:
        rows = tuple(Counts(*row) for row in zip(*(lists[name] for name in _COUNTS), strict=True))
    except (LookupError, TypeError, ValueError):
        raise InputError(f"counts of sentences need three lists of one length: {', '.join(_COUNTS)}") from None
    for row in rows:
        if any(type(n) is not int for n in row) or not 0 <= row.correct <= min(row.predicted, row.gold):
            raise InputError(f"counts that cannot be: {tuple(row)}")
    return rows


# ------------------------------------------------------------------------------------------------------------- scoring


def score(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Scores:
    """Compare predicted mentions with gold ones.

    The kind of a mention is ``"discontinuous"`` where it has a gap; else ``"inner"`` where its tokens all lie in a
    larger mention; else ``"outer"`` where it holds an inner one; else ``"flat"``. A gold mention has the kind it has
    among the gold ones, found or not; a wrong prediction the kind it has among the predicted ones. So each mention
    counts in one kind, and the kinds add up to the whole.

    Args:
        gold: the annotated sentences.
        predicted: the same sentences in the same order, with predicted mentions.

    Raises:
        InputError: there are more of one than of the other, or tokens differ; the sentence is named by its number.

    Example:
        >>> tokens = ["New", "York", "Times"]
        >>> gold = Sentence(tokens, [Mention("ORG", [(0, 3)]), Mention("LOC", [(0, 2)])])
        >>> scores = score([gold], [Sentence(tokens, [Mention("ORG", [(0, 3)])])])
        >>> scores.micro, scores.macro, scores.by_kind["inner"].recall
        (Counts(correct=1, predicted=1, gold=2), 0.5, 0.0)
    """
    tallies: dict[str, dict[Any, list[int]]] = {name: {} for name in _PARTS}
    of_sentences: list[Counts] = []
    for one, other in _pairs(gold, predicted):
        wanted, given = set(one.mentions), set(other.mentions)
        of_sentences.append(Counts(len(wanted & given), len(given), len(wanted)))
        if not (wanted or given):
            continue
        kinds = {**_kinds(other), **_kinds(one)}
        sentence_bin = sum(len(one) > end for end in _SENTENCE_ENDS)
        for mention, kind in kinds.items():
            counts = (mention in wanted and mention in given, mention in given, mention in wanted)
            length = min(len(mention.positions()), _LONGEST_MENTION)
            for name, key in zip(_PARTS, (mention.label, length, sentence_bin, kind), strict=True):
                tally = tallies[name].setdefault(key, [0, 0, 0])
                for i in range(3):
                    tally[i] += counts[i]
    by_type, by_mention, by_sentence, by_kind = (
        {key: Counts(*tally) for key, tally in tallies[name].items()} for name in _PARTS
    )
    return Scores(
        {label: by_type[label] for label in sorted(by_type)},
        {f"{n}{'+' if n == _LONGEST_MENTION else ''}": by_mention[n] for n in sorted(by_mention)},
        {_bin_name(n): by_sentence[n] for n in sorted(by_sentence)},
        {kind: by_kind[kind] for kind in KINDS if kind in by_kind},
        tuple(of_sentences),
    )


def _pairs(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Iterator[tuple[Sentence, Sentence]]:
    number = 0
    for number, (one, other) in enumerate(zip_longest(gold, predicted), start=1):
        if one is None or other is None:
            more, less = ("predicted", "gold") if one is None else ("gold", "predicted")
            remedy = "both need the same sentences in the same order"
            raise InputError(f"the {less} sentences end after {number - 1}, there are more {more} ones", remedy=remedy)
        if one.tokens != other.tokens:
            raise InputError(
                f"sentence {number} has other tokens in gold than predicted: {_where_apart(one.tokens, other.tokens)}",
                remedy="both need the same sentences in the same order",
            )
        yield one, other


def _where_apart(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    for i, (a, b) in enumerate(zip(one, other, strict=False), start=1):
        if a != b:
            return f"token {i} is {a!r} and {b!r}"
    return f"{len(one)} and {len(other)} of them"


def _kinds(sentence: Sentence) -> dict[Mention, str]:
    """The kind of each mention among those of its sentence."""
    if sentence.is_flat:
        return dict.fromkeys(sentence.mentions, "flat")
    kinds = {}
    for mention in sentence.mentions:
        if not mention.is_contiguous:
            kinds[mention] = "discontinuous"
        elif any(_inside(mention, other) for other in sentence.mentions):
            kinds[mention] = "inner"
        else:
            held = any(other.is_contiguous and _inside(other, mention) for other in sentence.mentions)
            kinds[mention] = "outer" if held else "flat"
    return kinds


def _inside(mention: Mention, other: Mention) -> bool:
    """Whether a contiguous mention lies in another that covers more."""
    if other.spans == mention.spans:
        return False
    return any(start <= mention.start and mention.end <= end for start, end in other.spans)


def _bin_name(n: int) -> str:
    first = 1 if n == 0 else _SENTENCE_ENDS[n - 1] + 1
    return f"{first}+" if n == len(_SENTENCE_ENDS) else f"{first}-{_SENTENCE_ENDS[n]}"


def table(scores: Scores) -> str:
    """The scores as a table for people, in points.

    Example:
        >>> s = Sentence(["Rome"], [Mention("LOC", [(0, 1)])])
        >>> print(table(score([s], [s])).split("by type")[0].rstrip())
                             precision   recall       F1     gold  predicted  correct
        micro                    100.0    100.0    100.0        1          1        1
        macro                                      100.0
    """
    lines = [f"{'':<20} {'precision':>9} {'recall':>8} {'F1':>8} {'gold':>8} {'predicted':>10} {'correct':>8}"]

    def add(name: str, c: Counts) -> None:
        points = f"{100 * c.precision:>9.1f} {100 * c.recall:>8.1f} {100 * c.f1:>8.1f}"
        lines.append(f"{name:<20} {points} {c.gold:>8,} {c.predicted:>10,} {c.correct:>8,}")

    add("micro", scores.micro)
    lines.append(f"{'macro':<20} {'':>9} {'':>8} {100 * scores.macro:>8.1f}")
    for part in _PARTS:
        lines.append(part.replace("_", " "))
        for name, counts in getattr(scores, part).items():
            add(f"  {name}", counts)
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------------------------------------------- significance


@dataclass(frozen=True)
class Difference:
    """How much better one system is than another; see `paired_bootstrap`.

    Args:
        gain: the mean over seeds of micro-F1 of the first system less that of the second, between -1 and 1.
        low: the lower end of the 95 % interval.
        high: its upper end.
        seeds: over how many seeds. With one, the interval knows of the choice of test sentences alone, not of the
            chance in training.
        samples: how many resamples.
    """

    gain: float
    low: float
    high: float
    seeds: int
    samples: int

    @property
    def verdict(self) -> str:
        """``"helps"`` (the interval lies above 0), ``"hurts"`` (below) or ``"no difference seen"``."""
        if self.low > 0:
            return "helps"
        return "hurts" if self.high < 0 else "no difference seen"

    @property
    def covers(self) -> str:
        """What chance the interval knows of: ``"sentences and seeds"``, or ``"sentences"`` with one seed."""
        return "sentences and seeds" if self.seeds > 1 else "sentences"


Outcome = Scores | Sequence[Counts] | Mapping[str, Sequence[int]]
"""What the counts of sentences may come as: scores, counts, or three lists as of `Scores.sentence_counts`."""


def paired_bootstrap(
    first: Sequence[Outcome], second: Sequence[Outcome], *, samples: int = 1000, seed: int = 0
) -> Difference:
    """How much better the first system is than the second, with a 95 % interval.

    Test sentences are drawn anew with replacement, the same for both systems and all seeds (Koehn 2004), which gives
    the mean gain over seeds as other test sentences might have shown it; with one seed the interval is made of its
    quantiles. With several, the variance of that is added to the variance that the gains of the seeds give their mean,
    and the interval is Student's for the degrees of freedom of such a sum (Welch 1947, Satterthwaite 1946): where the
    few seeds make most of the chance it is wide, where the test sentences do it is the usual one. Of systems that are
    equally good it held 0 in 90 (two seeds that differ much) to 98 of 100 simulated cases.

    Args:
        first: one outcome a seed.
        second: of the same seeds in the same order.
        samples: how many resamples.
        seed: of the resampling.

    Raises:
        ParameterError: nothing to compare, not as many seeds, or not the same test sentences.

    Example:
        >>> better, worse = [Counts(1, 1, 1)] * 50, [Counts(0, 1, 1)] * 50
        >>> found = paired_bootstrap([better], [worse])
        >>> found.gain, found.low, found.verdict, found.covers
        (1.0, 1.0, 'helps', 'sentences')
    """
    import numpy as np

    if len(first) != len(second) or not first:
        remedy = "give one outcome a seed for both, in the same order"
        raise ParameterError(f"{len(first)} and {len(second)} seeds cannot be paired", remedy=remedy)
    if samples < 1:
        raise ParameterError(f"samples must be at least 1, not {samples}")
    rows = [_array(outcome) for outcome in (*first, *second)]
    if not len(rows[0]) or any(not np.array_equal(row[:, 2], rows[0][:, 2]) for row in rows):
        what = "have other test sentences" if len(rows[0]) else "have no test sentence"
        raise ParameterError(f"the two systems {what}", remedy="compare outcomes on the same test set")
    n, seeds = len(rows[0]), len(first)
    counts = np.concatenate(rows, axis=1).astype(np.float64)  # sentence x (system, seed, count)
    of_seeds = _gains(counts.sum(0)[None], seeds)[0]
    rng = np.random.default_rng(seed)
    gains = np.empty(samples)
    for begin in range(0, samples, _CHUNK):
        some = min(_CHUNK, samples - begin)
        # How often each sentence is drawn, a row a resample.
        drawn = rng.integers(n, size=(some, n)) + n * np.arange(some)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=some * n).reshape(some, n)
        gains[begin : begin + some] = _gains(weights.astype(np.float64) @ counts, seeds).mean(1)
    gain = float(of_seeds.mean())
    if seeds == 1:
        low, high = np.quantile(gains, [0.025, 0.975])
        return Difference(gain, float(low), float(high), seeds=seeds, samples=samples)
    by_seeds = float(of_seeds.var(ddof=1)) / seeds
    whole = by_seeds + float(gains.var())
    times = _student((seeds - 1) * (whole / by_seeds) ** 2) if by_seeds else 1.96
    half = times * whole**0.5
    return Difference(gain, max(-1.0, gain - half), min(1.0, gain + half), seeds=seeds, samples=samples)


_STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 8: 2.306, 10: 2.228, 15: 2.131, 30: 2.042}
"""By degrees of freedom, between which 1.96 is approached about as their inverse."""


def _student(freedom: float) -> float:
    """The 97.5 % quantile of Student's distribution, to about one in a hundred.

    Example:
        >>> round(_student(2), 3), round(_student(7), 2), round(_student(1e9), 2)
        (4.303, 2.37, 1.96)
    """
    known = [(1 / n, value) for n, value in _STUDENT.items()] + [(0.0, 1.96)]
    for (x, high), (y, low) in pairwise(known):
        if 1 / freedom >= y:
            return low + (high - low) * (min(1 / freedom, 1.0) - y) / (x - y)
    return 1.96


def _gains(sums: NDArray[float64], seeds: int) -> NDArray[float64]:
    """From sums of counts (row x (system, seed, count)): micro-F1 of the first less the second (row x seed)."""
    import numpy as np

    correct, predicted, gold = np.moveaxis(sums.reshape(-1, 2, seeds, 3), -1, 0)
    f1 = 2 * correct / np.maximum(predicted + gold, 1)
    gains: NDArray[float64] = f1[:, 0] - f1[:, 1]
    return gains


def _array(outcome: Outcome) -> NDArray[int64]:
    import numpy as np

    if isinstance(outcome, Scores):
        outcome = outcome.sentences
    elif isinstance(outcome, Mapping):
        return np.array([outcome[name] for name in _COUNTS], np.int64).T
    return np.array([tuple(counts) for counts in outcome], np.int64).reshape(-1, 3)
