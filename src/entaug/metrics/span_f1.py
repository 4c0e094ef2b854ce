"""Precision, recall and F1 of predicted mentions.

A predicted mention is correct if its label and its spans equal those of a gold mention of the same sentence; there is
no partial credit. Flat, nested and discontinuous mentions are scored alike. Counts are summed over sentences before
anything is divided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import zip_longest
from typing import Any

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.metrics.tables import padded

MENTION_KINDS = ("flat", "outer", "inner", "discontinuous")
"""Relations of a mention to the others of its sentence; see `score`."""

ERROR_KINDS = ("type", "boundary", "type and boundary", "missing", "spurious")
"""Kinds of error; see `score`."""

SENTENCE_LENGTHS = (10, 20, 30, 50)
"""The last length of each bin of `Scores.by_sentence_length` but the last, in tokens."""

PARTS = ("by_type", "by_mention_length", "by_sentence_length", "by_kind", "by_novelty")
"""The fields of `Scores` with match counts of parts of the mentions."""

_LONGEST_MENTION = 5  # tokens; longer mentions are counted with those of this length
_SENTENCE_BINS = ("1-10", "11-20", "21-30", "31-50", "51+")
_COUNTS = ("correct", "predicted", "gold")
_REMEDY = "give both the same sentences in the same order"


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """Numbers of mentions from which precision, recall and F1 are computed; each is 0 where it is undefined.

    Args:
        correct: predicted mentions that are correct.
        predicted: predicted mentions.
        gold: mentions of the gold annotation.

    Example:
        >>> total = MatchCounts(1, 2, 1) + MatchCounts(0, 0, 2)
        >>> total, total.precision, round(total.f1, 2)
        (MatchCounts(correct=1, predicted=2, gold=3), 0.5, 0.4)
    """

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    def __add__(self, other: MatchCounts) -> MatchCounts:
        """Sum of the counts."""
        return MatchCounts(self.correct + other.correct, self.predicted + other.predicted, self.gold + other.gold)

    def __iter__(self) -> Iterator[int]:
        """Yield correct, predicted, gold."""
        return iter((self.correct, self.predicted, self.gold))

    @property
    def precision(self) -> float:
        """Share of the predicted mentions that are correct."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold mentions that were predicted."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.predicted + self.gold
        return 2 * self.correct / total if total else 0.0

    def to_dict(self) -> dict[str, float]:
        """Convert to counts and measures by name, for JSON.

        Returns:
            ``correct``, ``predicted``, ``gold``, ``precision``, ``recall`` and ``f1``.
        """
        return {name: getattr(self, name) for name in (*_COUNTS, "precision", "recall", "f1")}


@dataclass(frozen=True)
class Scores:
    """Scores of a prediction.

    Args:
        by_type: counts by label of the gold and the predicted mentions.
        by_mention_length: counts by number of tokens of the mention, gaps left out: ``"1"`` to ``"4"``, ``"5+"``.
        by_sentence_length: counts by number of tokens of the sentence: ``"1-10"``, ``"11-20"``, ``"21-30"``,
            ``"31-50"``, ``"51+"``.
        by_kind: counts by the names in `MENTION_KINDS`; see `score`.
        sentences: counts of each sentence, in order; empty when read back without them.
        lengths: number of tokens of each sentence, in order; empty when read back without them.
        by_novelty: counts of the mentions whose words have this label in the training sentences (``"seen"``), and of
            the others (``"unseen"``); empty where these are not known.
        errors: number of errors by the names in `ERROR_KINDS`; see `score`.

    Example:
        >>> counts = {"LOC": MatchCounts(3, 4, 5)}
        >>> Scores(counts, {}, {}, {}).micro.precision
        0.75
    """

    by_type: Mapping[str, MatchCounts]
    by_mention_length: Mapping[str, MatchCounts]
    by_sentence_length: Mapping[str, MatchCounts]
    by_kind: Mapping[str, MatchCounts]
    sentences: tuple[MatchCounts, ...] = field(default=(), repr=False)
    lengths: tuple[int, ...] = field(default=(), repr=False)
    by_novelty: Mapping[str, MatchCounts] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Scores) -> Scores:
        """Scores of the sentences of both."""
        parts = {}
        for name in PARTS:
            one, two = getattr(self, name), getattr(other, name)
            parts[name] = {key: one.get(key, MatchCounts()) + two.get(key, MatchCounts()) for key in {**one, **two}}
        errors = {
            kind: self.errors.get(kind, 0) + other.errors.get(kind, 0) for kind in {**self.errors, **other.errors}
        }
        return Scores(
            **parts, errors=errors, sentences=self.sentences + other.sentences, lengths=self.lengths + other.lengths
        )

    def _repr_html_(self) -> str:
        """Return the table of `score_table` for a notebook."""
        return f"<pre>{escape(score_table(self))}</pre>"

    @property
    def micro(self) -> MatchCounts:
        """Counts of all mentions."""
        return sum(self.by_type.values(), MatchCounts())

    @property
    def macro(self) -> float:
        """Mean F1 over the labels, including labels that occur in the prediction only (F1 0).

        Equals the F1 of ``macro avg`` in seqeval's report; 0 where there is no mention at all.
        """
        return sum(counts.f1 for counts in self.by_type.values()) / len(self.by_type) if self.by_type else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON, without the counts of sentences; for those see `sentence_counts`.

        Returns:
            ``micro``, ``macro``, the counts by type, length, kind and novelty, and the errors.
        """
        parts = {name: {key: c.to_dict() for key, c in getattr(self, name).items()} for name in PARTS}
        return {"micro": self.micro.to_dict(), "macro": self.macro, **parts, "errors": dict(self.errors)}

    def sentence_counts(self) -> dict[str, list[int]]:
        """Convert the counts of sentences to lists.

        Returns:
            A mapping with the lists ``correct``, ``predicted`` and ``gold``, and ``tokens`` if lengths are known.
        """
        lists = {name: [getattr(counts, name) for counts in self.sentences] for name in _COUNTS}
        return {**lists, "tokens": list(self.lengths)} if self.lengths else lists

    def length_counts(self, ends: Sequence[int]) -> dict[str, MatchCounts]:
        """Counts by number of tokens of the sentence, with bins of the caller's choice.

        Args:
            ends: the last length of each bin but the last, increasing.

        Returns:
            The counts by bin, for example ``"1-10"`` and ``"11+"``; empty if lengths are not known.

        Example:
            >>> s = Sentence(["In", "Rome"], [Mention("LOC", [(1, 2)])])
            >>> score([s], [s]).length_counts([4])
            {'1-4': MatchCounts(correct=1, predicted=1, gold=1), '5+': MatchCounts(correct=0, predicted=0, gold=0)}
        """
        if not self.lengths:
            return {}
        starts = [1, *(end + 1 for end in ends)]
        names = [f"{start}-{end}" for start, end in zip(starts, ends, strict=False)] + [f"{starts[-1]}+"]
        counts = dict.fromkeys(names, MatchCounts())
        for length, of_sentence in zip(self.lengths, self.sentences, strict=True):
            counts[names[sum(length > end for end in ends)]] += of_sentence
        return counts

    @classmethod
    def from_dict(cls, scores: Mapping[str, Any], sentences: Mapping[str, Sequence[int]] | None = None) -> Scores:
        """Rebuild scores from the output of `to_dict`.

        Args:
            scores: output of `to_dict`.
            sentences: output of `sentence_counts`, if it was kept.

        Returns:
            The scores.

        Raises:
            InputError: a part is missing, a count is invalid, or counts contradict one another.

        Example:
            >>> s = Sentence(["Rome"], [Mention("LOC", [(0, 1)])])
            >>> scores = score([s], [s])
            >>> Scores.from_dict(scores.to_dict(), scores.sentence_counts()) == scores
            True
        """
        counts = sentences or dict.fromkeys(_COUNTS, ())
        try:
            lengths = tuple(counts.get("tokens", ()))
            parts = {
                name: {str(key): MatchCounts(*(c[count] for count in _COUNTS)) for key, c in scores[name].items()}
                for name in PARTS
                if name in scores or name != "by_novelty"  # records of versions before 0.3 have none, and no errors
            }
            errors = {str(kind): int(count) for kind, count in scores.get("errors", {}).items()}
            rows = tuple(MatchCounts(*row) for row in zip(*(counts[name] for name in _COUNTS), strict=True))
            restored = cls(**parts, errors=errors, sentences=rows, lengths=lengths)
            adds_up = sentences is None or sum(rows, MatchCounts()) == restored.micro
            every: list[Iterable[int]] = [*(counts[name] for name in _COUNTS), lengths, errors.values()]
            every += (some for part in parts.values() for some in part.values())
            are_counts = all({*map(type, some)} <= {int} and min(some, default=0) >= 0 for some in every)
        except (AttributeError, LookupError, TypeError, ValueError):
            are_counts = False
        if not are_counts:
            message = f"scores need {', '.join(PARTS)}, each with counts from 0, and equally long lists for sentences"
            raise InputError(message)
        if not adds_up or len(lengths) not in (0, len(rows)):
            raise InputError("the counts of the sentences do not add up to those of the types")
        return restored


def score(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], training: Iterable[Sentence] | None = None
) -> Scores:
    """Compare predicted mentions with gold mentions.

    The kind of a mention is ``"discontinuous"`` if it has a gap; else ``"inner"`` if all its tokens lie in a larger
    mention; else ``"outer"`` if it contains an inner one; else ``"flat"``. A gold mention has its kind among the gold
    mentions, predicted or not; a wrong prediction has its kind among the predicted mentions. So each mention counts
    once, and the kinds add up to the total.

    What is left of both, correct mentions taken away, is paired: first mentions of the same words, a ``"type"`` error;
    then those of one label that overlap, a ``"boundary"`` error; then others that overlap, an error of both. Gold
    mentions without a partner are ``"missing"``, predicted ones ``"spurious"``. Where no mention overlaps two others,
    this is what nervaluate counts.

    Args:
        gold: the annotated sentences.
        predicted: the same sentences in the same order, with predicted mentions.
        training: the sentences of the training, which tell what mentions have been seen; none for no such counts.

    Returns:
        The scores, with counts by label, mention length, sentence length, kind, novelty and sentence, and the errors.

    Raises:
        InputError: the numbers of sentences or their tokens differ; the message gives the number of the sentence.

    Example:
        >>> tokens = ["New", "York", "Times"]
        >>> gold = Sentence(tokens, [Mention("ORG", [(0, 3)]), Mention("LOC", [(0, 2)])])
        >>> scores = score([gold], [Sentence(tokens, [Mention("ORG", [(0, 3)])])])
        >>> scores.micro, scores.macro, scores.by_kind["inner"].recall
        (MatchCounts(correct=1, predicted=1, gold=2), 0.5, 0.0)
    """
    # Numbers of mentions by field of `MatchCounts`, part of `Scores` and key.
    counters: dict[str, dict[str, Counter[Any]]] = {name: {part: Counter() for part in PARTS} for name in _COUNTS}
    seen = None if training is None else mention_forms(training)
    errors = Counter(dict.fromkeys(ERROR_KINDS, 0))
    by_sentence: list[MatchCounts] = []
    lengths: list[int] = []
    for gold_sentence, other in _pairs(gold, predicted):
        gold_mentions, predicted_mentions = set(gold_sentence.mentions), set(other.mentions)
        groups = (gold_mentions & predicted_mentions, predicted_mentions, gold_mentions)
        by_sentence.append(MatchCounts(*map(len, groups)))
        lengths.append(len(gold_sentence))
        if not (gold_mentions or predicted_mentions):
            continue
        errors.update(_errors(gold_mentions - groups[0], predicted_mentions - groups[0]))
        kinds = {**_kinds(other), **_kinds(gold_sentence)}
        sentence_bin = sum(len(gold_sentence) > end for end in SENTENCE_LENGTHS)
        for name, mentions in zip(_COUNTS, groups, strict=True):
            for mention in mentions:
                length = min(len(mention.positions()), _LONGEST_MENTION)
                keys: list[Any] = [mention.label, length, sentence_bin, kinds[mention]]
                if seen is not None:
                    keys.append("seen" if _form(gold_sentence, mention) in seen else "unseen")
                for part, key in zip(PARTS, keys, strict=False):
                    counters[name][part][key] += 1
    parts = [
        {
            key: MatchCounts(*(counters[name][part][key] for name in _COUNTS))
            for key in sorted(counters["predicted"][part].keys() | counters["gold"][part].keys())
        }
        for part in PARTS
    ]
    by_type, by_length, by_bin, by_kind, by_novelty = parts
    return Scores(
        by_type,
        {f"{n}{'+' if n == _LONGEST_MENTION else ''}": counts for n, counts in by_length.items()},
        {_SENTENCE_BINS[n]: counts for n, counts in by_bin.items()},
        {kind: by_kind[kind] for kind in MENTION_KINDS if kind in by_kind},
        tuple(by_sentence),
        tuple(lengths),
        by_novelty,
        dict(errors),
    )


def mention_forms(sentences: Iterable[Sentence]) -> Counter[tuple[str, str]]:
    """The number of mentions of each label and words; those of the training are seen."""
    return Counter(_form(sentence, mention) for sentence in sentences for mention in sentence.mentions)


def _form(sentence: Sentence, mention: Mention) -> tuple[str, str]:
    """A mention as it is recognised again: its label and its words, whatever their case."""
    return mention.label, " ".join(sentence.mention_tokens(mention)).casefold()


def _errors(gold: set[Mention], predicted: set[Mention]) -> Counter[str]:
    """The errors of a sentence by kind; each mention is paired at most once, and with the one that it overlaps most."""
    errors: Counter[str] = Counter()
    left = sorted(gold, key=lambda m: (m.spans, m.label))
    others = sorted(predicted, key=lambda m: (m.spans, m.label))
    alike: dict[str, Callable[[Mention], object]] = {
        "type": lambda mention: mention.spans,
        "boundary": lambda mention: mention.label,
        "type and boundary": lambda _: None,
    }
    for kind, key in alike.items():
        unpaired = []
        for other in others:
            positions = set(other.positions())
            overlaps = [len(positions.intersection(one.positions())) * (key(one) == key(other)) for one in left]
            if any(overlaps):
                left.pop(overlaps.index(max(overlaps)))
                errors[kind] += 1
            else:
                unpaired.append(other)
        others = unpaired
    errors["missing"] = len(left)
    errors["spurious"] = len(others)
    return errors


def _pairs(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Iterator[tuple[Sentence, Sentence]]:
    for number, (sentence, other) in enumerate(zip_longest(gold, predicted), start=1):
        if sentence is None or other is None:
            more, less = ("predicted", "gold") if sentence is None else ("gold", "predicted")
            message = f"the {less} sentences end after {number - 1}, there are more {more} ones"
            raise InputError(message, remedy=_REMEDY)
        if sentence.tokens != other.tokens:
            difference = _first_difference(sentence.tokens, other.tokens)
            message = f"sentence {number} has other tokens in gold than predicted: {difference}"
            raise InputError(message, remedy=_REMEDY)
        yield sentence, other


def _first_difference(gold: tuple[str, ...], predicted: tuple[str, ...]) -> str:
    for i, (a, b) in enumerate(zip(gold, predicted, strict=False), start=1):
        if a != b:
            return f"token {i} is {a!r} and {b!r}"
    return f"{len(gold)} and {len(predicted)} of them"


def _kinds(sentence: Sentence) -> dict[Mention, str]:
    """The kind of each mention of a sentence."""
    if sentence.is_flat:
        return dict.fromkeys(sentence.mentions, "flat")
    kinds = {}
    for mention in sentence.mentions:
        if not mention.is_contiguous:
            kinds[mention] = "discontinuous"
        elif any(_inside(mention, other) for other in sentence.mentions):
            kinds[mention] = "inner"
        else:
            contains = any(other.is_contiguous and _inside(other, mention) for other in sentence.mentions)
            kinds[mention] = "outer" if contains else "flat"
    return kinds


def _inside(mention: Mention, other: Mention) -> bool:
    """Whether a contiguous mention lies in a span of another mention that covers more."""
    if other.spans == mention.spans:
        return False
    return any(start <= mention.start and mention.end <= end for start, end in other.spans)


def score_table(scores: Scores) -> str:
    """Format scores as a text table, in percentage points."""
    lines = [f"{'':<20} {'precision':>9} {'recall':>8} {'F1':>8} {'gold':>8} {'predicted':>10} {'correct':>8}"]

    def add(name: str, c: MatchCounts) -> None:
        points = f"{100 * c.precision:>9.1f} {100 * c.recall:>8.1f} {100 * c.f1:>8.1f}"
        lines.append(f"{padded(name, 20)} {points} {c.gold:>8,} {c.predicted:>10,} {c.correct:>8,}")

    add("micro", scores.micro)
    lines.append(f"{'macro':<20} {'':>9} {'':>8} {100 * scores.macro:>8.1f}")
    for part in PARTS:
        if of_part := getattr(scores, part):
            lines.append(part.replace("_", " "))
        for name, counts in of_part.items():
            add(f"  {name}", counts)
    lines.append("errors")
    lines += [f"{f'  {kind}':<20} {count:>9,}" for kind, count in scores.errors.items()]
    return "\n".join(lines) + "\n"
