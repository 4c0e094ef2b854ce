"""Mentions that quote their words: where the text has them, whatever their offsets count.

Formats with standoff annotations repeat the words of a mention beside its offsets. Offsets count characters (code
points); some tools count UTF-16 code units or bytes of UTF-8 instead, and the words tell which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from entaug.core.data import Span
from entaug.errors import InputError
from entaug.formats.base import ReadReport
from entaug.formats.offsets import characters_of, title_of

__all__ = ["Quote", "locate_quotes"]


class Quote(NamedTuple):
    """The ranges of a mention in its file, its words there (None if it has none), and its line."""

    spans: tuple[Span, ...]
    words: str | None
    line: int | None = None


def locate_quotes(text: str, quotes: Sequence[Quote], reading: ReadReport) -> list[tuple[Span, ...]]:
    """The characters of each mention of a text."""
    wrong = [quote for quote in quotes if not _agrees(text, quote.spans, quote.words)]
    if not wrong:
        return [quote.spans for quote in quotes]
    for unit in ("utf16", "bytes"):
        if (characters := characters_of(text, unit)) is None:
            continue
        spans = [tuple((characters.get(a, -1), characters.get(b, -1)) for a, b in quote.spans) for quote in quotes]
        if all(_agrees(text, own, quote.words) for own, quote in zip(spans, quotes, strict=True)):
            reading.notes[f"text whose offsets count {title_of(unit)}"] += 1
            return spans
    if not reading.repair:
        faults = []
        for quote in wrong:
            offsets = ", ".join(f"{start}-{end}" for start, end in quote.spans)
            there = " ... ".join(text[max(0, start) : max(0, end)] for start, end in quote.spans)
            what = f"a mention is at {offsets}, where the text has {there!r:.60} and not {quote.words!r:.60}"
            remedy = "correct its offsets or its words, or pass --repair to believe the offsets"
            faults.append(InputError(what, line=quote.line, remedy=remedy))
        faults[0].others = faults[1:]
        raise faults[0]
    reading.repaired["mention with other words than those of its place"] += len(wrong)
    return [quote.spans for quote in quotes]


def _agrees(text: str, spans: Sequence[Span], words: str | None) -> bool:
    """Whether the ranges are in the text, and have these letters; white space may differ, gaps may be left out."""
    if words is None:  # `split_document` has errors for ranges outside the text
        return True
    if not all(0 <= start < end <= len(text) for start, end in spans):
        return False
    letters = "".join(words.split())
    pieces = "".join(text[start:end] for start, end in spans)
    return letters in ("".join(p.split()) for p in (pieces, text[spans[0][0] : spans[-1][1]]))
