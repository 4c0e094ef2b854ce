"""Edits: replacing, inserting and deleting tokens, and what happens to mentions, columns and white space.

`Sentence.edit` and `Sentence.reorder` are the public functions; this module holds the parts that work on token
positions alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from entaug.core.mentions import Mention, Span, contiguous_mention
from entaug.errors import EditError

PLACEHOLDER = "_"
"""The value of new tokens in the further columns of a sentence."""


class Edit(NamedTuple):
    """A replacement of the tokens ``[start, end)``; `Sentence.edit` says what happens to mentions.

    Args:
        start: position of the first replaced token.
        end: position after the last replaced token; equal to `start` for an insertion before `start`.
        tokens: the new tokens; empty for a deletion.
        mentions: mentions of the new tokens, with spans counted from the first new token. None means that the edit
            makes no statement about mentions.
        spaces: the white space after each new token except the last, for sentences whose `Sentence.spaces` are known.
            By default that of the replaced tokens if their number is the same, else as in printed text. The last new
            token keeps the white space that followed the replaced range.

    Example:
        >>> from entaug.core.data import Sentence
        >>> Sentence(["in", "Rome"]).edit([Edit(1, 2, ["New", "York"], [Mention("LOC", [(0, 2)])])]).tokens
        ('in', 'New', 'York')
    """

    start: int
    end: int
    tokens: Sequence[str]
    mentions: Sequence[Mention] | None = None
    spaces: Sequence[str] | None = None


def check_edits(edits: Sequence[Edit], length: int) -> None:
    """Check that edits fit a sentence and do not overlap."""
    last_start, last_end = -1, 0
    for edit in edits:
        start, end = edit.start, edit.end
        if not 0 <= start <= end <= length:
            raise EditError(f"edit of [{start}, {end}) leaves the sentence of {length} tokens")
        if start < last_end or (start == end == last_start):
            raise EditError(f"edits overlap at token {start}")
        if isinstance(edit.tokens, str):
            raise EditError("the tokens of an edit must be a sequence of strings, not a string")
        if edit.spaces is not None and len(edit.spaces) != max(0, len(edit.tokens) - 1):
            raise EditError(f"an edit has {len(edit.spaces)} spaces between {len(edit.tokens)} tokens")
        last_start, last_end = start, end


def edited_mentions(mentions: Sequence[Mention], edits: Sequence[Edit]) -> Iterator[Mention]:
    """Yield the existing mentions of a sentence at their positions after edits."""
    starts, ends = [edit.start for edit in edits], [edit.end for edit in edits]
    # By number of edits, how much these let the sentence grow.
    growths = list(accumulate((len(edit.tokens) - (edit.end - edit.start) for edit in edits), initial=0))
    for mention in mentions:
        first, last = mention.spans[0][0], mention.spans[-1][1]
        spans: list[Span] | None = []
        for start, end in mention.spans:
            # Edits before `left` are left of the span, including an insertion at its edge; those from `right` on are
            # right of it. Of those between, only the first and the last can reach out of the span or cover all of it.
            left, right = bisect_right(ends, start), bisect_left(starts, end)
            new_start, new_end = start + growths[left], end + growths[max(left, right)]
            for edit in edits[left:right] if right - left < 3 else (edits[left], edits[right - 1]):
                if len(edit.tokens) == edit.end - edit.start and edit.mentions is None:
                    continue
                if edit.start <= first and edit.end >= last:
                    spans = None
                    break
                if edit.start < start or edit.end > end:
                    raise EditError(
                        f"edit of [{edit.start}, {edit.end}) would cut mention {mention.label} {list(mention.spans)}"
                    )
            if spans is None:
                break
            if new_start >= new_end:
                raise EditError(f"edits would delete a part of mention {mention.label} {list(mention.spans)}")
            spans.append((new_start, new_end))
        if spans is not None:
            yield contiguous_mention(mention.label, *spans[0]) if len(spans) == 1 else Mention(mention.label, spans)


def edited_columns(columns: Mapping[str, Sequence[str]], edits: Sequence[Edit]) -> dict[str, tuple[str, ...]]:
    """Return the further columns of a sentence after edits."""
    edited = {}
    for name, values in columns.items():
        new_values: list[str] = []
        position = 0
        for edit in edits:
            new_values += values[position : edit.start]
            new_values += [PLACEHOLDER] * len(edit.tokens)
            position = edit.end
        edited[name] = (*new_values, *values[position:])
    return edited


def reordered_mention(mention: Mention, new_positions: Sequence[int]) -> Mention:
    """Return a mention at its positions in a new token order."""
    spans = []
    for start, end in mention.spans:
        covered = new_positions[start:end]
        low = min(covered)
        if max(covered) - low != end - start - 1:
            raise EditError(f"the new order would split mention {mention.label} {list(mention.spans)}")
        spans.append((low, low + end - start))
    moved = tuple(sorted(spans))
    return mention if moved == mention.spans else Mention(mention.label, moved)
