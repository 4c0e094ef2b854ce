"""Sentences as HTML: mentions marked with their type, new words underlined."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from entaug import Sentence
from entaug.augmented import AugmentedPair

__all__ = ["pairs", "sentence"]

_HUES = 6  # colours of types in the style sheet
_ANEW = 0.4  # of all words; where fewer are those of the source, nothing is left to compare


class _Piece(NamedTuple):
    """Tokens to be marked: a span of a mention, or what another left of it."""

    start: int
    end: int
    label: str
    about: str  # what a screen reader says besides


def sentence(one: Sentence, labels: Sequence[str], source: Sentence | None = None) -> str:
    """A sentence as HTML.

    Args:
        one: it.
        labels: all types in their order, which settles their colours.
        source: what it was made of; words that are not in their place there are underlined.
    """
    new: set[int] = set()
    if source is not None and not _anew(one, source):
        matcher = difflib.SequenceMatcher(None, source.tokens, one.tokens, autojunk=False)
        new = {j for op, _, _, j1, j2 in matcher.get_opcodes() if op != "equal" for j in range(j1, j2)}
    words = [f"<ins>{escape(token)}</ins>" if i in new else escape(token) for i, token in enumerate(one.tokens)]
    pieces = []
    for mention in one.mentions:
        n = len(mention.spans)
        for number, (start, end) in enumerate(mention.spans, 1):
            pieces.append(
                _Piece(start, end, mention.label, f"{mention.label} {number}/{n}" if n > 1 else mention.label)
            )
    return _marked(words, 0, len(words), sorted(pieces, key=lambda p: (p.start, -p.end)), labels)


def _marked(words: list[str], start: int, end: int, pieces: list[_Piece], labels: Sequence[str]) -> str:
    """Words with marks around pieces, those within others inside; one that crosses another's end is cut there."""
    parts = []
    at = start
    while pieces:
        outer = pieces.pop(0)
        parts += words[at : outer.start]
        inner, later = [], []
        for piece in pieces:
            if piece.start >= outer.end:
                later.append(piece)
            elif piece.end <= outer.end:
                inner.append(piece)
            else:
                inner.append(piece._replace(end=outer.end))
                later.append(piece._replace(start=outer.end))
        pieces = sorted(later, key=lambda p: (p.start, -p.end))
        text = _marked(words, outer.start, outer.end, inner, labels)
        hue = labels.index(outer.label) % _HUES if outer.label in labels else 0
        parts.append(f'<mark class="hue{hue}">{text}<small> {escape(outer.about)}</small></mark>')
        at = outer.end
    return " ".join([*parts, *words[at:end]])


def _anew(one: Sentence, source: Sentence) -> bool:
    return _likeness(one, source) < _ANEW


def _likeness(one: Sentence, source: Sentence) -> float:
    return difflib.SequenceMatcher(None, source.tokens, one.tokens, autojunk=False).ratio()


def pairs(shown: Iterable[AugmentedPair]) -> str:
    """Sentences before and after, as a block of HTML."""
    shown = list(shown)
    every = [s for pair in shown for s in (pair.source, *pair.other_sources, pair.augmented) if s is not None]
    labels = sorted({mention.label for s in every for mention in s.mentions})
    blocks = []
    for pair in shown:
        rows = [("before", sentence(pair.source, labels))] if pair.source else []
        rows += [("and", sentence(other, labels)) for other in pair.other_sources]
        # What is exchanged between two sentences may be all but a word: the new one is compared with the nearer.
        near = max(
            filter(None, (pair.source, *pair.other_sources)), key=lambda s: _likeness(pair.augmented, s), default=None
        )
        anew = near is None or _anew(pair.augmented, near)
        rows.append(("written anew" if anew else "after", sentence(pair.augmented, labels, near)))
        told = "\n".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
        blocks.append(f"<dl>\n{told}\n</dl>")
    return '<div class="shown">\n' + "\n".join(blocks) + "\n</div>"
