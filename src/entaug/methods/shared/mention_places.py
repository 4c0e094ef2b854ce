"""Mentions that can be replaced or moved whole, with the mentions within them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from entaug.core.data import Mention, Sentence
from entaug.core.mentions import sorted_mentions

__all__ = ["Place", "Structure", "replaceable_mentions", "self_contained_mentions"]

_MAX_INNER = 100  # mentions within a mention that is moved whole; no text has the same labels in the same order

Structure = tuple[str, tuple[str, ...]]
"""The label of a mention; and, in their order, the labels of the mention and those within it."""


class Place(NamedTuple):
    """A mention that can be replaced, with the mentions within it."""

    mention: Mention
    inner: tuple[Mention, ...] = ()

    @property
    def structure(self) -> Structure:
        """The labels."""
        if not self.inner:
            return self.mention.label, (self.mention.label,)
        return self.mention.label, tuple([m.label for m in sorted_mentions((self.mention, *self.inner))])


def replaceable_mentions(sentence: Sentence, *, nested: bool) -> list[Place]:
    """Return the mentions that can be replaced whole: contiguous ones that are neither in another nor cut by one."""
    places = (place for place, is_outermost in self_contained_mentions(sentence) if is_outermost)
    return [place for place in places if nested or not place.inner]


def self_contained_mentions(sentence: Sentence) -> Iterator[tuple[Place, bool]]:
    """Yield the mentions whose words can be moved with all their labels, and whether they are in no other."""
    # All mentions that overlap such a mention are inside or around it, at most 100 of them inside. Of several with the
    # same span only the first by label is yielded, whatever their order in the sentence; the others are within it.
    mentions = sentence.mentions
    if len(mentions) < 2 or sentence.is_flat:
        for mention in mentions:
            if mention.is_contiguous:
                yield Place(mention), True
        return
    # All spans from left to right, a longer one before the shorter ones that begin with it.
    spans = sorted((start, -end, i) for i, mention in enumerate(mentions) for start, end in mention.spans)
    ends: list[int] = []  # of the spans that begin before the current one, sorted
    behind = 0  # the first span that does not
    places: dict[int, tuple[Place, bool]] = {}
    for position, (start, minus_end, i) in enumerate(spans):
        end = -minus_end
        while spans[behind][0] < start:
            insort(ends, -spans[behind][1])
            behind += 1
        del ends[: bisect_left(ends, start + 1)]
        if not mentions[i].is_contiguous or (ends and ends[0] < end):  # one that begins before ends within
            continue
        first = bisect_left(spans, (start, minus_end, -1), behind, position + 1)
        found = _spans_within(mentions, spans, first, end, i)
        if found is None:
            continue
        inner, around = found
        # A mention has the same outermost label wherever it is inserted.
        if any(mentions[j].spans == mentions[i].spans and mentions[j].label < mentions[i].label for j in inner):
            continue
        is_outermost = not (ends or first > behind or around)
        places[i] = Place(mentions[i], tuple([mentions[j] for j in inner])), is_outermost
    for _, place in sorted(places.items()):
        yield place


def _spans_within(
    mentions: Sequence[Mention], spans: Sequence[tuple[int, int, int]], first: int, end: int, own: int
) -> tuple[list[int], bool] | None:
    """The mentions within a contiguous one, and whether a mention with gaps has one of its spans there."""
    inner: set[int] = set()
    around = False
    start = mentions[own].start
    for k in range(first, len(spans)):
        other_start, minus_end, j = spans[k]
        if other_start >= end:
            break
        if -minus_end > end or len(inner) > _MAX_INNER:
            return None
        if j == own:
            continue
        other = mentions[j]
        if (other_start, -minus_end) == (start, end) and not other.is_contiguous:
            around = True
        elif other.start < start or other.end > end:
            return None
        else:
            inner.add(j)
    return (sorted(inner), around) if len(inner) <= _MAX_INNER else None
