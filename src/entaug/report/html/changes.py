"""What changed between an augmented sentence and its source: added, removed, moved and transferred words.

Where provenance names the spans that come from other sentences, these are marked; else the tokens are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from entaug.core.data import Sentence, Span
from entaug.formats.augmented import AugmentedPair

__all__ = ["Changes", "Mark", "Side", "find_changes"]

Mark = tuple[int, int, str]
"""Start and end of a token range, and its kind: ``"added"``, ``"removed"``, ``"moved"`` or ``"transferred"``."""

_MIN_KEPT = 0.25
"""Share of kept words below which no marks are given: nearly every word would be marked."""


@dataclass(frozen=True)
class Side:
    """A gold sentence beside an augmented one."""

    sentence: Sentence
    role: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Changes:
    """Changes of an augmented sentence."""

    sides: tuple[Side, ...] = ()
    marks: tuple[Mark, ...] = ()
    changed: float | None = None
    is_rewritten: bool = False


def find_changes(pair: AugmentedPair) -> Changes:
    """Find what changed between an augmented sentence and its source."""
    if pair.source is None:
        return Changes()
    return _transfers(pair, pair.source) or _replaced_mentions(pair, pair.source) or _compare(pair, pair.source)


@dataclass(frozen=True)
class _Transfer:
    """A range of a sentence that was replaced by a range of another one."""

    removed: Span
    donor: Sentence | None
    taken: Span


def _transfers(pair: AugmentedPair, source: Sentence) -> Changes | None:
    """Changes as the provenance of ``cassi`` or ``cr`` tells them; None if it does not, or not for these tokens."""
    details = pair.provenance.details
    recipient, donors = source, pair.other_sources
    transfers: list[_Transfer | None] = []
    if details.get("frame") in (0, 1) and donors:
        if details["frame"] == 1:
            recipient, donors = donors[0], (source,)
        donors = donors[:1]
        transfers = [_transfer(details, recipient, donors[0])]
    elif isinstance(grafts := details.get("grafts"), list):
        by_key = dict(zip(pair.provenance.sources[1:], donors, strict=False))
        donors = tuple(by_key.values())
        transfers = [_transfer(g, source, by_key.get(str(g["from"]))) if _is_graft(g) else None for g in grafts]
    known = sorted((t for t in transfers if t is not None), key=lambda t: t.removed)
    if not known or len(known) < len(transfers):
        return None
    tokens: list[str] = []
    inserted: list[Span] = []
    end = 0
    for transfer in known:
        if transfer.removed[0] < end:
            return None
        tokens += recipient.tokens[end : transfer.removed[0]]
        inserted.append((len(tokens), len(tokens) + transfer.taken[1] - transfer.taken[0]))
        tokens += pair.augmented.tokens[slice(*inserted[-1])]
        end = transfer.removed[1]
    if (*tokens, *recipient.tokens[end:]) != pair.augmented.tokens:  # the file was edited since
        return None
    sides = [Side(recipient, "recipient", tuple((*t.removed, "removed") for t in known))]
    for donor in donors:
        taken = sorted(t.taken for t in known if t.donor is donor)
        sides.append(Side(donor, "donor", tuple((*span, "transferred") for span in taken)))
    changed = sum(end - start for start, end in inserted) / len(pair.augmented)
    return Changes(tuple(sides), tuple((*span, "transferred") for span in inserted), changed)


def _is_graft(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value.get("from"))


def _transfer(value: Mapping[str, object], recipient: Sentence, donor: Sentence | None) -> _Transfer | None:
    removed = _span(value.get("out"), len(recipient))
    taken = _span(value.get("into"), 1 << 30 if donor is None else len(donor))
    return None if removed is None or taken is None else _Transfer(removed, donor, taken)


def _span(value: object, length: int) -> Span | None:
    """A range of tokens in provenance; None if it is no valid range of a sentence of this length."""
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(type(n) is int for n in value)):
        return None
    start, end = value
    return (start, end) if 0 <= start < end <= length else None


def _replaced_mentions(pair: AugmentedPair, source: Sentence) -> Changes | None:
    """Whole mentions that were replaced, where nothing else changed."""
    augmented = pair.augmented
    if not (source.is_flat and augmented.is_flat) or _outline(source) != _outline(augmented):
        return None
    both = zip(source.mentions, augmented.mentions, strict=True)
    words = [(old, new, source.mention_tokens(old), augmented.mention_tokens(new)) for old, new in both]
    replaced = [(old, new) for old, new, before, after in words if before != after]
    # Words that only moved within a mention are marked singly.
    if not replaced or any(before != after and Counter(before) == Counter(after) for _, _, before, after in words):
        return None
    removed = tuple((old.start, old.end, "removed") for old, _ in replaced)
    added = tuple((new.start, new.end, "added") for _, new in replaced)
    changed = sum(end - start for start, end, _ in added) / len(augmented)
    return Changes((Side(source, "source", removed), *_others(pair)), added, changed)


def _outline(sentence: Sentence) -> list[tuple[str, bool]]:
    """The words outside mentions, and the labels in place of flat mentions."""
    labels = {mention.start: mention.label for mention in sentence.mentions}
    outside = sentence.outside_mask()
    return [
        (token if is_outside else labels[i], is_outside)
        for i, (token, is_outside) in enumerate(zip(sentence.tokens, outside, strict=True))
        if is_outside or i in labels
    ]


def _others(pair: AugmentedPair) -> list[Side]:
    return [Side(other, "other") for other in pair.other_sources]


def _compare(pair: AugmentedPair, source: Sentence) -> Changes:
    """Changes by comparison of the tokens."""
    augmented = pair.augmented
    matcher = SequenceMatcher(None, source.tokens, augmented.tokens, autojunk=False)
    codes = [code[1:] for code in matcher.get_opcodes() if code[0] != "equal"]
    removed = [(start, end) for start, end, _, _ in codes if end > start]
    added = [(start, end) for _, _, start, end in codes if end > start]
    moved = _counts(source, removed) & _counts(augmented, added)
    changed = sum(end - start for start, end in added) / len(augmented)
    if 1 - changed + moved.total() / len(augmented) < _MIN_KEPT:
        return Changes((Side(source, "source"), *_others(pair)), (), changed, is_rewritten=True)
    sides = (Side(source, "source", _marks(source, removed, moved, "removed")), *_others(pair))
    return Changes(sides, _marks(augmented, added, moved, "added"), changed)


def _counts(sentence: Sentence, spans: Sequence[Span]) -> Counter[str]:
    return Counter(token for start, end in spans for token in sentence.tokens[start:end])


def _marks(sentence: Sentence, spans: Sequence[Span], moved: Counter[str], kind: str) -> tuple[Mark, ...]:
    """The ranges with their kind; words that are also in the ranges of the other sentence have moved."""
    left = moved.copy()
    marks: list[Mark] = []
    for start, end in spans:
        kinds = []
        for token in sentence.tokens[start:end]:
            kinds.append("moved" if left[token] > 0 else kind)
            left[token] -= 1
        cuts = [0, *(i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]), len(kinds)]
        marks += [(start + first, start + last, kinds[first]) for first, last in pairwise(cuts)]
    return tuple(marks)
