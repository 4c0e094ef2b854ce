"""Templates of sentences with their mentions and keywords (Ghosh et al., ACL 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from entaug.core.data import Sentence
from entaug.core.spacing import is_word_character
from entaug.methods.shared.linearization import label_token

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = ["MASK", "AttentionMap", "Template", "candidate_positions", "mask_keywords", "select_keywords"]

MASK = "<mask>"


class Template(NamedTuple):
    """A sentence with its keywords; a template keeps only mentions and keywords."""

    sentence: Sentence
    keywords: tuple[int, ...]

    def parts(self, hidden: Iterable[int] = ()) -> list[str]:
        """Return label tokens, tokens of mentions, keywords and masks, in order."""
        shown = set(self.keywords).difference(hidden)
        parts: list[str] = []
        for i, (token, tag) in enumerate(zip(self.sentence.tokens, self.sentence.iob(), strict=True)):
            if tag != "O":
                parts += [label_token(tag), token, label_token(tag)]
            elif i in shown:
                parts.append(token)
            elif parts[-1:] != [MASK]:
                parts.append(MASK)
        return parts


class AttentionMap(NamedTuple):
    """Attention of the mentions of a sentence to its words, and the keywords selected by it.

    Args:
        sentence: the sentence.
        weights: attention weights of shape (words, words); row i holds the weights that word i gives to each word.
        keywords: the positions of the keywords.

    Example:
        >>> import numpy
        >>> sentence = Sentence(["Suede", "split"])
        >>> AttentionMap(sentence, numpy.ones((2, 2), "float32"), (1,)).keywords
        (1,)
    """

    sentence: Sentence
    weights: NDArray[float32]
    keywords: tuple[int, ...]


def select_keywords(
    sentence: Sentence, weights: Sequence[Sequence[float]], count: int, candidates: Sequence[int]
) -> tuple[int, ...]:
    """Select the words that mentions attend to most (section 3.1 of the paper)."""
    selected: set[int] = set()
    for mention in sentence.mentions:
        rows = [weights[i] for i in mention.positions()]
        sums = {i: math.fsum(row[i] for row in rows) for i in candidates}
        selected.update(sorted(candidates, key=lambda i: (-sums[i], i))[:count])
    return tuple(sorted(selected))


def candidate_positions(sentence: Sentence, stop: frozenset[str]) -> list[int]:
    """Return the positions of words outside mentions that are neither punctuation nor stop words."""
    return [
        i
        for i, (token, outside) in enumerate(zip(sentence.tokens, sentence.outside_mask(), strict=True))
        if outside and any(map(is_word_character, token)) and token.lower() not in stop
    ]


def mask_keywords(templates: Sequence[Template], rng: Random, mean: float) -> list[str]:
    """Join templates, with a normally distributed share of the keywords masked (standard deviation: one keyword)."""
    keywords = [(number, i) for number, template in enumerate(templates) for i in template.keywords]
    hidden: set[tuple[int, int]] = set()
    if keywords:
        share = rng.gauss(mean, 1 / len(keywords))
        count = min(len(keywords), max(0, round(share * len(keywords))))
        hidden = set(rng.sample(keywords, count))
    parts: list[str] = []
    for number, template in enumerate(templates):
        new = template.parts(i for n, i in hidden if n == number)
        parts += new[1:] if parts[-1:] == [MASK] == new[:1] else new
    return parts
