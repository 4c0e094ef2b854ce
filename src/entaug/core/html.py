"""Sentences as HTML, for notebooks and pages: mentions marked with their type, new words underlined."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple, Protocol

from entaug.core.mentions import Mention

_HUES = 6  # colours of types in the style sheet
_STYLE = """\
.shown mark { color: inherit; border-bottom: 2px solid hsl(var(--hue) 60% 50%); }
.shown mark { background: hsl(var(--hue) 75% 50% / .16); }
.shown small { opacity: .75; } .shown p { margin: .2em 0; line-height: 1.8; }
.shown dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em .9em; line-height: 1.8; }
.hue0 { --hue: 190; } .hue1 { --hue: 35; } .hue2 { --hue: 285; }
.hue3 { --hue: 110; } .hue4 { --hue: 345; } .hue5 { --hue: 230; }
"""
_MIN_SIMILARITY = 0.4  # to the source; sentences below it are not compared with the source


class Labelled(Protocol):
    """Tokens and mentions, as a `entaug.core.data.Sentence` has them."""

    @property
    def tokens(self) -> Sequence[str]:
        """The tokens."""
        ...

    @property
    def mentions(self) -> Sequence[Mention]:
        """The mentions."""
        ...


class _Piece(NamedTuple):
    """Tokens to be marked: a span of a mention, or the part of it that lies outside another one."""

    start: int
    end: int
    label: str
    caption: str  # the label and, for spans of discontinuous mentions, their number


def sentence_to_html(sentence: Labelled, labels: Sequence[str], source: Labelled | None = None) -> str:
    """Convert a sentence to HTML; words that the source does not have in the same place are underlined."""
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


def _is_rewritten(sentence: Labelled, source: Labelled) -> bool:
    return _similarity(sentence, source) < _MIN_SIMILARITY


def _similarity(a: Labelled, b: Labelled) -> float:
    return difflib.SequenceMatcher(None, b.tokens, a.tokens, autojunk=False).ratio()


def versions_to_html(versions: Iterable[tuple[Labelled, Sequence[Labelled]]], explanations: Sequence[str] = ()) -> str:
    """Convert sentences, each with those that it was made of, to a block of HTML; explanations say how."""
    versions = list(versions)
    every = [one for sentence, sources in versions for one in (*sources, sentence)]
    labels = labels_of(every)
    blocks = []
    for place, (sentence, sources) in enumerate(versions):
        rows = [
            ("and" if number else "before", sentence_to_html(source, labels)) for number, source in enumerate(sources)
        ]
        # Exchanged parts may hold nearly all words of the result: compare with the more similar source.
        nearest = max(sources, key=lambda source: _similarity(sentence, source), default=None)
        is_rewritten = nearest is None or _is_rewritten(sentence, nearest)
        rows.append(("rewritten" if is_rewritten else "after", sentence_to_html(sentence, labels, nearest)))
        rows += [("how", escape(explanation)) for explanation in explanations[place : place + 1] if explanation]
        items = "\n".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
        blocks.append(f"<dl>\n{items}\n</dl>")
    return '<div class="shown">\n' + "\n".join(blocks) + "\n</div>"


def labels_of(sentences: Iterable[Labelled]) -> list[str]:
    """All entity types, in the order of their colours."""
    return sorted({mention.label for sentence in sentences for mention in sentence.mentions})


def sentences_to_html(sentences: Sequence[Labelled]) -> str:
    """Convert sentences to a block of HTML, a line each."""
    labels = labels_of(sentences)
    lines = "\n".join(f"<p>{sentence_to_html(sentence, labels)}</p>" for sentence in sentences)
    return f'<div class="shown">\n{lines}\n</div>'


def for_notebook(html: str) -> str:
    """Add the style that a notebook needs."""
    return f"<style>{_STYLE}</style>{html}"
