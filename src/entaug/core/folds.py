"""Folds for cross-validation, which depend on the sentences and the seed only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from entaug.core.data import Sentence
from entaug.core.words import folded

FEWEST = 20
"""The number of sentences with mentions that cross-validation needs at least."""


def content_key(sentence: Sentence) -> str:
    """A key that sentences of the same letters share, however they were split into tokens."""
    return folded("".join("".join(sentence.tokens).split()))


def partition(sentences: Sequence[Sentence], number: int, seed: int) -> list[list[int]]:
    """Divide sentences into folds of nearly equal size."""
    # Sentences with equal text share a fold. Sentences with the rarest type of mention are dealt out first, so that
    # each fold has its share of every type as far as possible.
    labels_of = [{mention.label for mention in sentence.mentions} for sentence in sentences]
    counts = Counter(label for labels in labels_of for label in labels)
    groups: dict[str, list[int]] = {}
    for i, sentence in enumerate(sentences):
        groups.setdefault(content_key(sentence), []).append(i)
    shuffled = list(groups.values())
    Random(f"folds {seed}").shuffle(shuffled)

    def rarity(group: list[int]) -> tuple[float, str]:
        return min(((counts[label], label) for i in group for label in labels_of[i]), default=(math.inf, ""))

    result: list[list[int]] = [[] for _ in range(number)]
    for place, group in enumerate(sorted(shuffled, key=rarity)):
        result[place % number] += group
    return [sorted(fold) for fold in result]


def folds(sentences: Sequence[Sentence], number: int, seed: int) -> Iterator[tuple[list[Sentence], list[Sentence]]]:
    """The sentences outside and those inside of each fold."""
    return (without(sentences, fold) for fold in partition(sentences, number, seed))


def without(sentences: Sequence[Sentence], fold: Sequence[int]) -> tuple[list[Sentence], list[Sentence]]:
    """The sentences outside and those inside of a fold."""
    inside = set(fold)
    return [s for i, s in enumerate(sentences) if i not in inside], [sentences[i] for i in fold]
