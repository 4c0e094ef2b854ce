"""What the offsets of a file count: characters (code points), as in Python, or another unit, as in other languages.

JavaScript and Java count UTF-16 units, two for an emoji: so does doccano, unless a project counts grapheme clusters, of
which a flag or a letter with a combining accent is one. Go and Rust count bytes of UTF-8. A file does not say so. What
tells is whether the ranges before which the units differ begin and end with words, or hold the words that the file
gives, in one unit or in the other; this is decided over all of a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, product
from typing import Any, Literal, NamedTuple

from entaug.core.data import Span
from entaug.core.spacing import is_unspaced_script, is_word_character
from entaug.errors import InputError, LossError
from entaug.formats.base import ReadReport
from entaug.formats.documents import CharMention, Document

__all__ = [
    "OffsetUnit",
    "Quote",
    "UnitDetector",
    "characters_of",
    "counter",
    "in_characters",
    "locate_quotes",
    "other_units",
    "title_of",
]

OffsetUnit = Literal["auto", "characters", "utf16", "graphemes", "bytes"]
_UNITS: tuple[OffsetUnit, ...] = ("utf16", "graphemes", "bytes")
_TITLES = {"utf16": "UTF-16 units", "graphemes": "grapheme clusters", "bytes": "bytes of UTF-8"}
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")  # two UTF-16 units
_CLUSTERED = re.compile("\r\n|[\u0300-\U0010ffff]")  # may be in a grapheme cluster of several characters
_BYTES_MARGIN = 2  # Nearly every text that is not English has ranges that bytes move, and one may fit by chance.


def title_of(unit: str) -> str:
    """The name of a unit in messages."""
    return _TITLES.get(unit, "characters")


def characters_of(text: str, unit: str) -> dict[int, int] | None:
    """The character at each offset that does not divide one; None where the unit counts characters in this text."""
    if unit == "graphemes" and _CLUSTERED.search(text):
        import regex

        ends = [0, *accumulate(map(len, regex.findall(r"\X", text)))]
        return dict(enumerate(ends)) if len(ends) <= len(text) else None
    is_moved = _ASTRAL.search(text) is not None if unit == "utf16" else unit == "bytes" and not text.isascii()
    if not is_moved:
        return None
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    limits = (0xFFFF,) if unit == "utf16" else (0x7F, 0x7FF, 0xFFFF)
    sizes = 1 + sum(points > limit for limit in limits)
    return dict(zip([0, *np.cumsum(sizes).tolist()], range(len(text) + 1), strict=True))


def in_characters(document: Document, unit: str) -> Document:
    """The document with mentions whose offsets counted a unit and count characters now."""
    known = characters_of(document.text, unit)
    if known is None:
        return document
    mentions: list[CharMention] = []
    faults: list[InputError] = []
    for mention in document.mentions:
        spans = [(known.get(start), known.get(end)) for start, end in mention.spans]
        placed = tuple((start, end) for start, end in spans if start is not None and end is not None)
        if len(placed) == len(spans):
            mentions.append(mention._replace(spans=placed))
            continue
        where = ", ".join(f"{start}-{end}" for start, end in mention.spans)
        what = f"mention {mention.label} ({where}) is outside the text or divides a character: offsets count "
        remedy = "correct its offsets, or name another unit: --layout offsets=characters"
        faults.append(InputError(what + title_of(unit), remedy=remedy))
    if faults:
        faults[0].others = faults[1:]
        raise faults[0]
    return document._replace(mentions=mentions)


def counter(text: str, unit: str) -> Callable[[int], int]:
    """The function that counts the units before a character of a text, to write its offsets."""
    known = characters_of(text, unit)
    if known is None:
        return int
    offsets = {character: offset for offset, character in known.items()}

    def count(character: int) -> int:
        if character not in offsets:
            what = f"a mention or token begins or ends within a grapheme cluster of {text!r:.60}, which has no offset"
            raise LossError(what, remedy="count characters: --to-layout offsets=characters")
        return offsets[character]

    return count


# ------------------------------------------------------------------------------------------------------------ decision


class UnitDetector:
    """Collects evidence for the unit of the offsets of a file."""

    def __init__(self) -> None:
        # By unit, and whether a range that it moves fits words as characters and as this unit.
        self._evidence: Counter[tuple[str, bool, bool]] = Counter()

    def add(self, text: str, ranges: Iterable[tuple[Any, Any, Any]], tokens: Iterable[Span] | None = None) -> None:
        """Add ranges of a text as the file gives them: start, end, and the words there or None."""
        known = {unit: places for unit in _UNITS if (places := characters_of(text, unit)) is not None}
        if not known:
            return
        edges = None if tokens is None else tuple(map(set, zip(*tokens, strict=True)))

        def fits(start: int | None, end: int | None, words: Any) -> bool:
            if edges and words is None:
                return start in edges[0] and end in edges[1]
            return _fits(text, start, end, words)

        for start, end, words in ranges:
            if type(start) is not int or type(end) is not int:
                continue
            for unit, places in known.items():
                place = places.get(start), places.get(end)
                if place != (start, end):
                    self._evidence[unit, fits(start, end, words), fits(*place, words)] += 1

    def decide(self) -> dict[str, str]:
        """The options ``offsets`` and ``offsets_note`` of the layout."""
        unit, note = _weigh(self._evidence)
        return {"offsets": unit, "offsets_note": note}


class _Votes(NamedTuple):
    """Numbers of ranges that have different places in characters and in another unit, by where they fit words."""

    total: int
    characters: int
    other: int

    @property
    def margin(self) -> int:
        return self.other - self.characters


def _weigh(evidence: Counter[tuple[str, bool, bool]]) -> tuple[OffsetUnit, str]:
    """The unit, and a note unless all ranges agree that offsets count characters."""
    votes: dict[OffsetUnit, _Votes] = {}
    for unit in _UNITS:
        both, characters, other, neither = (evidence[unit, a, b] for a, b in product((True, False), repeat=2))
        votes[unit] = _Votes(both + characters + other + neither, both + characters, both + other)
    certain = [
        unit
        for unit, vote in votes.items()
        if vote.margin > 0 and (unit != "bytes" or (vote.margin >= _BYTES_MARGIN and vote.other == vote.total))
    ]
    if certain:
        chosen = max(certain, key=lambda unit: votes[unit].margin)
        return chosen, _note(f"offsets count {title_of(chosen)}", votes[chosen], chosen, "characters")
    # Words fit bytes by chance too often for a remark.
    doubtful = [u for u in _UNITS[:2] if votes[u].total and (not votes[u].margin or evidence[u, False, True])]
    if not doubtful:
        return "characters", ""
    unit = max(doubtful, key=lambda unit: votes[unit].margin)
    is_tied = not votes[unit].margin
    claim = f"offsets may count {title_of(unit)} and were read as characters" if is_tied else "offsets count characters"
    return "characters", _note(claim, votes[unit], unit, unit)


def _note(claim: str, votes: _Votes, unit: str, remedy: str) -> str:
    ranges = f"{votes.total:,} range{'s' * (votes.total != 1)}"
    return (
        f"{claim}: of {ranges} where that matters, {votes.other:,} fit words as {title_of(unit)} and "
        f"{votes.characters:,} as characters; to change it: --layout offsets={remedy}"
    )


def other_units(text: str, spans: Iterable[tuple[int, int]], unit: str) -> Iterator[tuple[str, str]]:
    """Other units in which ranges, here by characters, would begin and end with words, and these words."""
    offsets = {character: offset for offset, character in (characters_of(text, unit) or {}).items()}
    given = [(offsets.get(start, start), offsets.get(end, end)) for start, end in spans]
    for other in ("characters", *_UNITS):
        known = characters_of(text, other)
        places = given if known is None else [(known.get(start), known.get(end)) for start, end in given]
        if places != list(spans) and all(_fits(text, start, end, None) for start, end in places):
            yield other, " ... ".join(text[start:end] for start, end in places)


def _fits(text: str, start: int | None, end: int | None, words: Any) -> bool:
    """Whether a range holds the given words, or else begins and ends with words."""
    if start is None or end is None or not 0 <= start < end <= len(text):
        return False
    covered = text[start:end]
    if isinstance(words, str):
        return covered.split() == words.split()
    is_stripped = not (covered[0].isspace() or covered[-1].isspace())
    return is_stripped and not any(0 < i < len(text) and _is_within_word(text[i - 1], text[i]) for i in (start, end))


def _is_within_word(before: str, after: str) -> bool:
    return all(is_word_character(char) and not is_unspaced_script(char) for char in (before, after))


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
