"""Translating texts once each, and those that are too long in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["TextPart", "split_text", "translate_in_parts"]

# Where to split, the best place first: after a sentence, after a clause, between words.
_BOUNDARIES = (
    re.compile(r"(?<=[.!?…。！？])\s+|(?<=[.!?…][\"'”’»)\]])\s+"),  # noqa: RUF001
    re.compile(r"(?<=[;:,–—])\s+"),  # noqa: RUF001
    re.compile(r"\s+"),
)


class TextPart(NamedTuple):
    """A text, or a part of one, that is translated at once."""

    text: str
    seed: int | None
    number: int


def translate_in_parts(
    texts: Sequence[str],
    seeds: Sequence[int] | None,
    lengths: Callable[[Sequence[str]], Sequence[int]],
    max_length: int,
    translate: Callable[[list[TextPart]], Sequence[str]],
) -> tuple[list[str], int]:
    """Translate each distinct text once, and those that are too long in parts."""
    # White space counts as one space; a blank text is returned unchanged.
    requests = [(" ".join(text.split()), seeds[i] if seeds else None) for i, text in enumerate(texts)]
    distinct = list(dict.fromkeys(text for text, _ in requests if text))
    pieces_of = {
        text: [text] if length <= max_length else split_text(text, lambda part: lengths([part])[0] <= max_length)
        for text, length in zip(distinct, lengths(distinct), strict=True)
    }
    parts = [
        TextPart(piece, seed, number)
        for text, seed in dict.fromkeys(requests)
        if text
        for number, piece in enumerate(pieces_of[text])
    ]
    translation_of = dict(zip(parts, translate(parts) if parts else (), strict=True))
    translations = []
    for original, (text, seed) in zip(texts, requests, strict=True):
        pieces = [translation_of[TextPart(piece, seed, n)] for n, piece in enumerate(pieces_of.get(text, ()))]
        translations.append(" ".join(filter(None, pieces)) if text else original)
    return translations, sum(len(pieces) > 1 for pieces in pieces_of.values())


def split_text(text: str, fits: Callable[[str], bool], level: int = 0) -> list[str]:
    """Split a text into as few parts as fit."""
    # A text is split at sentence ends, and pieces are joined again from the left as long as they fit. A sentence that
    # does not fit is split after commas and the like in the same way, then between words, and a word into halves.
    if len(text) < 2 or fits(text):
        return [text]
    if level == len(_BOUNDARIES):
        half = len(text) // 2
        return split_text(text[:half], fits, level) + split_text(text[half:], fits, level)
    parts: list[str] = []
    is_extensible = False
    for piece in filter(None, _BOUNDARIES[level].split(text)):
        if is_extensible and fits(f"{parts[-1]} {piece}"):
            parts[-1] += f" {piece}"
            continue
        smaller = [piece] if fits(piece) else split_text(piece, fits, level + 1)
        parts += smaller
        is_extensible = len(smaller) == 1
    return parts
