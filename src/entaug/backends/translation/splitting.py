"""What translators share: repetitions and blank texts, and texts that are too long to be taken whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Part", "in_parts", "parts"]

# Where to cut, the best first: behind a sentence, behind a clause, between words.
_CUTS = (
    re.compile(r"(?<=[.!?…。！？])\s+|(?<=[.!?…][\"'”’»)\]])\s+"),  # noqa: RUF001
    re.compile(r"(?<=[;:,–—])\s+"),  # noqa: RUF001
    re.compile(r"\s+"),
)


class Part(NamedTuple):
    """What is translated at once.

    Args:
        text: a text or a part of one.
        seed: the seed of its text, if it has one.
        number: which part of its text, from 0.
    """

    text: str
    seed: int | None
    number: int


def in_parts(
    texts: Sequence[str],
    seeds: Sequence[int] | None,
    lengths: Callable[[Sequence[str]], Sequence[int]],
    room: int,
    translate: Callable[[list[Part]], Sequence[str]],
) -> tuple[list[str], int]:
    """Translate each different text once, and those that are too long in parts.

    White space counts as one space; a blank text comes back as it is.

    Args:
        texts: any texts.
        seeds: one a text, or None.
        lengths: how long texts are for the translator.
        room: how long a part may be.
        translate: given parts, gives their translations in the same order.

    Returns:
        A translation of each text, and how many different texts were cut.

    Example:
        >>> def shout(asked):
        ...     return [part.text.upper() for part in asked]
        >>> def lengths(texts):
        ...     return [len(text) for text in texts]
        >>> in_parts(["One. Two.", " ", "One.  Two."], None, lengths, 5, shout)
        (['ONE. TWO.', ' ', 'ONE. TWO.'], 1)
    """
    asked = [(" ".join(text.split()), seeds[i] if seeds else None) for i, text in enumerate(texts)]
    different = list(dict.fromkeys(text for text, _ in asked if text))
    pieces = {
        text: [text] if length <= room else parts(text, lambda part: lengths([part])[0] <= room)
        for text, length in zip(different, lengths(different), strict=True)
    }
    todo = [
        Part(piece, seed, number)
        for text, seed in dict.fromkeys(asked)
        if text
        for number, piece in enumerate(pieces[text])
    ]
    done = dict(zip(todo, translate(todo) if todo else (), strict=True))
    found = []
    for original, (text, seed) in zip(texts, asked, strict=True):
        translated = [done[Part(piece, seed, number)] for number, piece in enumerate(pieces.get(text, ()))]
        found.append(" ".join(filter(None, translated)) if text else original)
    return found, sum(len(cut) > 1 for cut in pieces.values())


def parts(text: str, fits: Callable[[str], bool], level: int = 0) -> list[str]:
    """A text in as few parts as fit.

    A text that fits is one part. Any other is cut at sentence ends, and pieces are joined again from the left as long
    as they fit; a sentence that does not fit is cut behind commas and their like in the same way, what is still too
    long between words, and a word as the last resort in halves.

    Args:
        text: any text.
        fits: whether a part can be taken; a single character always is.
        level: where to begin to cut: at sentences, clauses, words or characters.

    Returns:
        The parts in order, without the white space between them.

    Example:
        >>> parts("It rained. We stayed in, and read. Nobody came.", lambda part: len(part) < 25)
        ['It rained.', 'We stayed in, and read.', 'Nobody came.']
        >>> parts("It rained, so we stayed in.", lambda part: len(part) < 20)
        ['It rained,', 'so we stayed in.']
    """
    if len(text) < 2 or fits(text):
        return [text]
    if level == len(_CUTS):
        half = len(text) // 2
        return parts(text[:half], fits, level) + parts(text[half:], fits, level)
    found: list[str] = []
    open_to_more = False
    for piece in filter(None, _CUTS[level].split(text)):
        if open_to_more and fits(f"{found[-1]} {piece}"):
            found[-1] += f" {piece}"
            continue
        smaller = [piece] if fits(piece) else parts(piece, fits, level + 1)
        found += smaller
        open_to_more = len(smaller) == 1
    return found
