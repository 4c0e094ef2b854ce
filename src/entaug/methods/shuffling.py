"""SiS: shuffling within segments (Dai and Adel 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from entaug.config.params import Probability
from entaug.core.data import Sentence
from entaug.core.rng import sample_positions
from entaug.methods.base import Augmenter, MethodInfo, Rejection

_NOTHING_TO_PERMUTE = Rejection("no segment with two different words", final=True)


@dataclass(kw_only=True, eq=False)
class ShuffleWithinSegments(Augmenter):
    """Permute the tokens within segments, which are mentions and the text between mentions.

    With nested and discontinuous mentions a segment ends at every mention boundary, so all its tokens have the
    same mentions.

    Args:
        p: the probability of permuting each segment with two or more different tokens; at least one is permuted.

    Example:
        >>> from entaug.core.data import Mention
        >>> gold = [Sentence("Ada Byron sings well today".split(), [Mention("PER", [(0, 2)])])]
        >>> [new] = ShuffleWithinSegments(p=1.0).augment(gold)
        >>> sorted(new.tokens[:2]), new.iob()
        (['Ada', 'Byron'], ['B-PER', 'I-PER', 'O', 'O', 'O'])
    """

    p: Probability = 0.3

    info: ClassVar[MethodInfo] = MethodInfo(
        name="sis",
        long_name="shuffle-within-segments",
        summary="words shuffled within mentions, and within the text between mentions",
        paper="Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition",
        keeps_length=True,
        keeps_words=True,
        keeps_mention_words=True,
    )

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        tokens = sentence.tokens
        segments = [
            (start, end) for start, end in sentence.segments() if end - start > 1 and len(set(tokens[start:end])) > 1
        ]
        if not segments:
            return _NOTHING_TO_PERMUTE
        permutation = list(range(len(tokens)))
        for k in sample_positions(rng, len(segments), self.p):
            start, end = segments[k]
            permutation[start:end] = rng.sample(range(start, end), end - start)
        return sentence.reorder(permutation)
