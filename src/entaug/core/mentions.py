"""Spans and mentions: annotated entities over token positions.

A span is a half-open token range ``[start, end)``. A mention with one span is contiguous, one with several spans is
discontinuous. Nested mentions are simply several mentions over the same tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from operator import attrgetter

from entaug.errors import InputError

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, init=False)
class Mention:
    """An annotated entity: a label and the tokens that it covers.

    Args:
        label: the entity type, for example ``"PER"``.
        spans: half-open token ranges in increasing order; adjacent ranges are merged.

    Raises:
        InputError: a span is reversed, empty, negative or out of order, or the label is empty.

    Example:
        >>> Mention("LOC", [(0, 1), (3, 4)]).is_contiguous
        False
    """

    label: str
    spans: tuple[Span, ...]

    def __init__(self, label: str, spans: Iterable[Iterable[int]]) -> None:
        if not isinstance(label, str) or not label:
            raise InputError(f"a mention's label must be a non-empty string, not {label!r}")
        # Mentions are created for every sentence of a corpus: the usual case, one valid span, must stay cheap.
        if not (type(spans) is tuple and len(spans) == 1 and _is_span(spans[0])):
            spans = _merge_spans(spans)
        _set_label(self, label)
        _set_spans(self, spans)

    @property
    def start(self) -> int:
        """The position of the first token."""
        return self.spans[0][0]

    @property
    def end(self) -> int:
        """The position after the last token; gaps are not skipped."""
        return self.spans[-1][1]

    @property
    def is_contiguous(self) -> bool:
        """Whether the mention has a single span."""
        return len(self.spans) == 1

    def positions(self) -> tuple[int, ...]:
        """Return the token positions that the mention covers, in increasing order."""
        return tuple(i for start, end in self.spans for i in range(start, end))

    def shift(self, offset: int) -> Mention:
        """Return the mention moved by a number of tokens.

        Args:
            offset: the number of tokens; negative to move to the left.

        Raises:
            InputError: a position would be negative.
        """
        if len(self.spans) == 1:
            start, end = self.spans[0]
            return contiguous_mention(self.label, start + offset, end + offset)
        return Mention(self.label, tuple((start + offset, end + offset) for start, end in self.spans))


# The setters of the slots, which are faster than `object.__setattr__`.
_set_label = Mention.__dict__["label"].__set__
_set_spans = Mention.__dict__["spans"].__set__


@lru_cache(maxsize=65536)
def contiguous_mention(label: str, start: int, end: int) -> Mention:
    """Return a mention of one span; equal ones are usually the same object, which saves memory in large corpora."""
    return Mention(label, ((start, end),))


def _is_span(span: object) -> bool:
    if type(span) is not tuple or len(span) != 2:
        return False
    start, end = span
    return type(start) is int and type(end) is int and 0 <= start < end


def _merge_spans(spans: Iterable[Iterable[int]]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for span in spans:
        try:
            start, end = span
        except (TypeError, ValueError):
            raise InputError(f"a span must be a pair (start, end), not {span!r}") from None
        if not all(isinstance(place, Integral) and not isinstance(place, bool) for place in (start, end)):
            raise InputError(f"a span must hold two integers, not ({start!r}, {end!r})")
        start, end = int(start), int(end)  # of NumPy
        if start < 0 or start >= end:
            raise InputError(f"span ({start}, {end}) is reversed, empty or negative")
        if merged and start < merged[-1][1]:
            raise InputError(f"span ({start}, {end}) overlaps or precedes {merged[-1]}")
        if merged and start == merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    if not merged:
        raise InputError("a mention needs at least one span")
    return tuple(merged)


def sorted_mentions(mentions: Iterable[Mention]) -> list[Mention]:
    """Sort mentions in canonical order: by spans, then by label."""
    return sorted(mentions, key=attrgetter("spans", "label"))


def is_flat(mentions: Sequence[Mention]) -> bool:
    """Return whether all mentions are contiguous and none overlap."""
    end = 0
    for mention in mentions:
        spans = mention.spans
        if len(spans) > 1 or spans[0][0] < end:
            return False
        end = spans[0][1]
    return True
