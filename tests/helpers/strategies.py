"""Hypothesis strategies for sentences: flat, nested and discontinuous."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention

LABELS = ("PER", "ORG", "LOC-x")
WORDS = st.sampled_from(
    "the a of Ada Byron ran fast 's , . New York IL-2 é 東京 👩‍🔬 ﷺ e\u0301 \u200b \xa0x".split(" ")
)
# Any text that a file can hold; surrogates cannot be written as UTF-8.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


# A strategy that is made anew for each draw is validated anew, which takes longer than the draw.
@cache
def spans(n: int, gaps: bool = True) -> st.SearchStrategy[list[tuple[int, int]]]:
    cuts = st.lists(st.integers(0, n), min_size=2, max_size=6 if gaps else 2, unique=True).map(sorted)
    return cuts.map(lambda cuts: list(zip(cuts[: len(cuts) // 2 * 2 : 2], cuts[1::2], strict=True)))


@cache
def _mentions(n: int, gaps: bool, labels: tuple[str, ...]) -> st.SearchStrategy[list[Mention]]:
    return st.lists(st.builds(Mention, st.sampled_from(labels), spans(n, gaps=gaps)), max_size=4, unique=True)


@cache
def _cuts(n: int) -> st.SearchStrategy[set[int]]:
    return st.sets(st.integers(0, n), max_size=6)


@cache
def _tokens(words: st.SearchStrategy[str], max_tokens: int) -> st.SearchStrategy[list[str]]:
    return st.lists(words, min_size=1, max_size=max_tokens)


@cache
def _spaces(n: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(["", " "]), min_size=n, max_size=n)


@st.composite
def sentences(
    draw: Callable[[Any], Any],
    words: st.SearchStrategy[str] = WORDS,
    flat: bool = False,
    gaps: bool = True,
    labels: tuple[str, ...] = LABELS,
    max_tokens: int = 12,
) -> Sentence:
    tokens = draw(_tokens(words, max_tokens))
    n = len(tokens)
    if flat:
        chosen = [piece for piece in itertools.pairwise(sorted(draw(_cuts(n)))) if draw(st.booleans())]
        mentions = [Mention(draw(st.sampled_from(labels)), (piece,)) for piece in chosen]
    else:
        mentions = draw(_mentions(n, gaps, labels))
    extra: dict[str, Any] = {}
    if draw(st.booleans()):
        extra["columns"] = {"1": tuple(str(i) for i in range(n))}
    if draw(st.booleans()):
        extra["spaces"] = tuple(draw(_spaces(n)))
    return Sentence(tuple(tokens), tuple(mentions), **extra)


@st.composite
def edited(draw: Callable[[Any], Any]) -> tuple[Sentence, list[Edit]]:
    """A sentence and edits that do not overlap (but may cut mentions)."""
    sentence = draw(sentences())
    n = len(sentence)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=6)))
    ranges = list(zip(cuts[::2], cuts[1::2], strict=False))
    edits: list[Edit] = []
    for start, end in ranges:
        last = edits[-1] if edits else None
        if last and start == end == last.end == last.start:
            continue
        size = draw(st.sampled_from([end - start, end - start, 0, 1, 2, 3]))
        new = [f"new{len(edits)}{i}" for i in range(size)]
        brought = None
        if size and draw(st.booleans()):
            brought = tuple(draw(st.lists(st.builds(Mention, st.just("NEW"), spans(size)), max_size=2, unique=True)))
        edits.append(Edit(start, end, new, brought))
    return sentence, draw(st.permutations(edits))
