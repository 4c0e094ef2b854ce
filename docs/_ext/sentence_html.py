"""Sentences as HTML: mentions marked with their type, new words underlined."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from entaug import Sentence
from entaug.formats.augmented import AugmentedPair

__all__ = ["pairs_to_html", "sentence_to_html"]

_HUES = 6  # colours of types in the style sheet
_MIN_SIMILARITY = 0.4  # to the source; sentences below it are not compared with the source


class _Piece(NamedTuple):
    """Tokens to be marked: a span of a mention, or the part of it that lies outside another one."""

    start: int
    end: int
    label: str
    caption: str  # the label and, for spans of discontinuous mentions, their number


def sentence_to_html(sentence: Sentence, labels: Sequence[str], source: Sentence | None = None) -> str:
    """Convert a sentence to HTML.

    Args:
        sentence: the sentence.
        labels: all entity types, in the order of their colours.
        source: the gold sentence; words that it does not have in the same place are underlined.
    """
    new: set[int] = set()
    if source is not None and not _is_rewritten(sentence, source):
        matcher = difflib.SequenceMatcher(None, source.tokens, sentence.tokens, autojunk=False)
        new = {j for op, _, _, j1, j2 in matcher.get_opcodes() if op != "equal" for j in range(j1, j2)}
    words = [f"<ins>{escape(token)}</ins>" if i in new else escape(token) for i, token in enumerate(sentence.tokens)]
    pieces = []
    for mention in sentence.mentions:
        n = len(mention.spans)
        for number, (start, end) in enumerate(mention.spans, 1):
            pieces.append(
                _Piece(start, end, mention.label, f"{mention.label} {number}/{n}" if n > 1 else mention.label)
            )
    return _mark(words, 0, len(words), sorted(pieces, key=lambda p: (p.start, -p.end)), labels)


def _mark(words: list[str], start: int, end: int, pieces: list[_Piece], labels: Sequence[str]) -> str:
    """Mark pieces of text, nested ones inside others; a piece that crosses the end of another one is cut there."""
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
        text = _mark(words, outer.start, outer.end, inner, labels)
        hue = labels.index(outer.label) % _HUES if outer.label in labels else 0
        parts.append(f'<mark class="hue{hue}">{text}<small> {escape(outer.caption)}</small></mark>')
        at = outer.end
    return " ".join([*parts, *words[at:end]])


def _is_rewritten(sentence: Sentence, source: Sentence) -> bool:
    return _similarity(sentence, source) < _MIN_SIMILARITY


def _similarity(a: Sentence, b: Sentence) -> float:
    return difflib.SequenceMatcher(None, b.tokens, a.tokens, autojunk=False).ratio()


def pairs_to_html(shown: Iterable[AugmentedPair]) -> str:
    """Convert sentences and their sources to a block of HTML."""
    shown = list(shown)
    every = [s for pair in shown for s in (pair.source, *pair.other_sources, pair.augmented) if s is not None]
    labels = sorted({mention.label for s in every for mention in s.mentions})
    blocks = []
    for pair in shown:
        rows = [("before", sentence_to_html(pair.source, labels))] if pair.source else []
        rows += [("and", sentence_to_html(other, labels)) for other in pair.other_sources]
        # Exchanged parts may hold nearly all words of the result: compare with the more similar source.
        nearest = max(
            filter(None, (pair.source, *pair.other_sources)), key=lambda s: _similarity(pair.augmented, s), default=None
        )
        is_rewritten = nearest is None or _is_rewritten(pair.augmented, nearest)
        rows.append(("rewritten" if is_rewritten else "after", sentence_to_html(pair.augmented, labels, nearest)))
        items = "\n".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
        blocks.append(f"<dl>\n{items}\n</dl>")
    return '<div class="shown">\n' + "\n".join(blocks) + "\n</div>"
