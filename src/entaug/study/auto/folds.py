"""Folds of cross-validation, and the number of training steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from entaug.core.data import Sentence

__all__ = ["content_key", "default_steps", "partition"]

_FEWEST_STEPS = 300
_STEPS_PER_ROOT = 50


def default_steps(num_sentences: int) -> int:
    """The number of optimizer steps of batches of 8 after which training on gold sentences has converged."""
    # 50 times the square root of the number of sentences, at least 300: 40 epochs of 100 sentences, 13 of 1,000, 4 of
    # 10,000. In pilots on 100 sentences F1 no longer rose after 400 to 600 steps.
    return max(_FEWEST_STEPS, round(_STEPS_PER_ROOT * math.sqrt(num_sentences)))


def content_key(sentence: Sentence) -> str:
    """A key that sentences of the same letters share, however they were split into tokens."""
    return "".join("".join(sentence.tokens).split()).casefold()


def partition(sentences: Sequence[Sentence], folds: int, seed: int) -> list[list[int]]:
    """Divide sentences into folds of nearly equal size."""
    # Sentences with equal text share a fold. Sentences with the rarest type of mention are dealt out first, so that
    # each fold has its share of every type as far as possible.
    counts = Counter(label for sentence in sentences for label in _labels(sentence))
    groups: dict[str, list[int]] = {}
    for i, sentence in enumerate(sentences):
        groups.setdefault(content_key(sentence), []).append(i)
    shuffled = list(groups.values())
    Random(f"folds {seed}").shuffle(shuffled)

    def rarity(group: list[int]) -> tuple[float, str]:
        labels = {label for i in group for label in _labels(sentences[i])}
        return min(((counts[label], label) for label in labels), default=(math.inf, ""))

    result: list[list[int]] = [[] for _ in range(folds)]
    for number, group in enumerate(sorted(shuffled, key=rarity)):
        result[number % folds] += group
    return [sorted(fold) for fold in result]


def _labels(sentence: Sentence) -> Iterable[str]:
    return {mention.label for mention in sentence.mentions}
