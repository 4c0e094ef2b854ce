"""What became of a sentence: which of its words went, which came, and which only moved.

Where provenance says what was grafted, that is told; else the words are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from entaug.augmented import AugmentedPair, provenance_of
from entaug.data import Sentence, Span

__all__ = ["ANEW", "Changes", "Mark", "Side", "changes"]

Mark = tuple[int, int, str]
"""A range of tokens and what it is: ``"new"``, ``"gone"``, ``"moved"`` or ``"graft"`` (came from another sentence)."""

ANEW = 0.25
"""The share of equal words below which a sentence counts as written anew: marks would only say that all is."""


@dataclass(frozen=True)
class Side:
    """A gold sentence beside a made one.

    Args:
        sentence: it.
        role: ``"source"``, ``"frame"`` (keeps its frame, in which something of another is put), ``"gives"`` or
            ``"also"``.
        marks: what of it went, or was given.
    """

    sentence: Sentence
    role: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What became of a pair.

    Args:
        sides: the gold sentences, the one that the made one is nearest to first.
        made: what of the made sentence is new.
        changed: the share of its words that are not the first side's, in their place; None without a source.
        anew: whether so little stayed that no marks are given.
    """

    sides: tuple[Side, ...] = ()
    made: tuple[Mark, ...] = ()
    changed: float | None = None
    anew: bool = False


def changes(pair: AugmentedPair) -> Changes:
    """Compare a made sentence with what it was made of.

    Example:
        >>> found = changes(AugmentedPair(Sentence("Bo left Oslo".split()), Sentence("Ada left Oslo".split())))
        >>> found.made, found.sides[0].marks, round(found.changed, 2)
        (((0, 1, 'new'),), ((0, 1, 'gone'),), 0.33)
    """
    if pair.source is None:
        return Changes()
    for told in (_exchange, _phrases, _mentions):
        found = told(pair, pair.source)
        if found is not None:
            return found
    return _compared(pair, pair.source)


def _provenance(pair: AugmentedPair) -> Mapping[str, Any]:
    return provenance_of(pair.augmented)


def _span(value: object, length: int) -> Span | None:
    """A range of tokens as provenance tells it, if it is one of a sentence of this length."""
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(type(n) is int for n in value)):
        return None
    start, end = value
    return (start, end) if 0 <= start < end <= length else None


def _exchange(pair: AugmentedPair, source: Sentence) -> Changes | None:
    """One range of one of two sentences in the place of a range of the other, as `cassi` tells it."""
    own = _provenance(pair)
    if own.get("frame") not in (0, 1) or not pair.other_sources:
        return None
    both = (source, pair.other_sources[0])
    keeps, gives = both if own["frame"] == 0 else both[::-1]
    out, into = _span(own.get("out"), len(keeps)), _span(own.get("into"), len(gives))
    came = _span(own.get("graft"), len(pair.augmented))
    if out is None or into is None or came is None or not _fits(pair.augmented, keeps, [(out, came)]):
        return None
    sides = Side(keeps, "frame", ((*out, "gone"),)), Side(gives, "gives", ((*into, "graft"),))
    return Changes(sides, ((*came, "graft"),), (came[1] - came[0]) / len(pair.augmented))


def _phrases(pair: AugmentedPair, source: Sentence) -> Changes | None:
    """Phrases of other sentences in the places of phrases, as `cr` tells it."""
    grafts = _provenance(pair).get("grafts")
    if not isinstance(grafts, list) or not grafts:
        return None
    by_key = dict(zip(_provenance(pair).get("sources", ())[1:], pair.other_sources, strict=False))
    told: list[tuple[Span, Span, str]] = []
    for one in grafts:
        giver = str(one.get("from")) if isinstance(one, Mapping) else ""
        out = _span(one.get("out"), len(source)) if giver else None
        into = _span(one.get("into"), len(by_key[giver]) if giver in by_key else 1 << 30) if giver else None
        if out is None or into is None:
            return None
        told.append((out, into, giver))
    told.sort()
    places: list[tuple[Span, Span]] = []
    moved = 0
    for out, into, _ in told:
        start = out[0] + moved
        places.append((out, (start, start + into[1] - into[0])))
        moved += (into[1] - into[0]) - (out[1] - out[0])
    if not _fits(pair.augmented, source, places):
        return None
    sides = [Side(source, "frame", tuple((*out, "gone") for out, _ in places))]
    for key, giver_sentence in by_key.items():
        marks = tuple((*into, "graft") for _, into, giver in sorted(told, key=lambda t: t[1]) if giver == key)
        sides.append(Side(giver_sentence, "gives", marks))
    new = sum(end - start for _, (start, end) in places)
    return Changes(tuple(sides), tuple((*came, "graft") for _, came in places), new / len(pair.augmented))


def _fits(made: Sentence, keeps: Sentence, places: Sequence[tuple[Span, Span]]) -> bool:
    """Whether the made sentence is the other but for these ranges: a file may have been edited by hand since."""
    around: list[str] = []
    stayed: list[str] = []
    done = at = 0
    for out, came in places:
        if out[0] < done or came[0] < at:
            return False
        stayed += keeps.tokens[done : out[0]]
        around += made.tokens[at : came[0]]
        done, at = out[1], came[1]
    return [*stayed, *keeps.tokens[done:]] == [*around, *made.tokens[at:]]


def _mentions(pair: AugmentedPair, source: Sentence) -> Changes | None:
    """Other mentions in the places of mentions, each as a whole, where nothing else is different."""
    made = pair.augmented
    if not (source.is_flat and made.is_flat) or _frame(source) != _frame(made):
        return None
    both = [
        (old, new)
        for old, new in zip(source.mentions, made.mentions, strict=True)
        if source.mention_tokens(old) != made.mention_tokens(new)
    ]
    # Words that only changed places within a mention are told one by one.
    if not both or any(Counter(source.mention_tokens(old)) == Counter(made.mention_tokens(new)) for old, new in both):
        return None
    gone = tuple((old.start, old.end, "gone") for old, _ in both)
    came = tuple((new.start, new.end, "new") for _, new in both)
    sides = Side(source, "source", gone), *(Side(other, "also") for other in pair.other_sources)
    return Changes(sides, came, sum(end - start for start, end, _ in came) / len(made))


def _frame(sentence: Sentence) -> list[tuple[str, bool]]:
    """The words outside flat mentions, and the labels in the places of these."""
    starts = {mention.start: mention.label for mention in sentence.mentions}
    found = []
    for i, (token, free) in enumerate(zip(sentence.tokens, sentence.outside_mask(), strict=True)):
        if free:
            found.append((token, True))
        elif i in starts:
            found.append((starts[i], False))
    return found


def _compared(pair: AugmentedPair, source: Sentence) -> Changes:
    """What the words themselves say."""
    matcher = SequenceMatcher(None, source.tokens, pair.augmented.tokens, autojunk=False)
    gone: list[Span] = []
    new: list[Span] = []
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what != "equal":
            gone += [(i1, i2)] if i2 > i1 else []
            new += [(j1, j2)] if j2 > j1 else []
    others = tuple(Side(other, "also") for other in pair.other_sources)
    changed = sum(end - start for start, end in new) / len(pair.augmented)
    left = Counter(token for start, end in gone for token in source.tokens[start:end])
    came = Counter(token for start, end in new for token in pair.augmented.tokens[start:end])
    moved = left & came
    if 1 - changed + moved.total() / len(pair.augmented) < ANEW:
        return Changes((Side(source, "source"), *others), (), changed, anew=True)
    sides = (Side(source, "source", _marked(source, gone, moved, "gone")), *others)
    return Changes(sides, _marked(pair.augmented, new, moved, "new"), changed)


def _marked(sentence: Sentence, spans: Sequence[Span], moved: Counter[str], kind: str) -> tuple[Mark, ...]:
    """The ranges with what they are; words that stand elsewhere on the other side have only moved."""
    left = moved.copy()
    marks: list[Mark] = []
    for start, end in spans:
        kinds = []
        for token in sentence.tokens[start:end]:
            kinds.append("moved" if left[token] > 0 else kind)
            left[token] -= 1
        cuts = [0, *(i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]), len(kinds)]
        marks += [(start + a, start + b, kinds[a]) for a, b in pairwise(cuts)]
    return tuple(marks)
