"""LwTR: tokens replaced by tokens with the same tag (Dai and Adel 2020, aclanthology.org/2020.coling-main.343)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import ClassVar

from entaug.config.params import Probability
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.rng import sample_positions
from entaug.core.tags import position_tags
from entaug.core.words import StopWords, stop_words
from entaug.methods.base import NO_CANDIDATE, Augmenter, MethodInfo, Rejection


@dataclass(kw_only=True, eq=False)
class LabelWiseTokenReplacement(Augmenter):
    """Replace tokens by training tokens with the same full tag (B-X, I-X or O), drawn by frequency.

    With nested and discontinuous mentions a token's tag is the set of its tags in all mentions that contain it.

    Args:
        p: the probability of replacing each token; at least one is replaced.
        stop_words: words that neither are replaced nor replace others: a language code, or a path to a word list.

    Example:
        >>> from entaug.core.data import Mention
        >>> person = [Mention("PER", [(0, 1)])]
        >>> gold = [Sentence(["Ada", "sings"], person), Sentence(["Bo", "rests"], person)]
        >>> new = LabelWiseTokenReplacement(p=1.0).fit(gold).augment(gold)
        >>> all(s.iob() == ["B-PER", "O"] for s in new)
        True
    """

    p: Probability = 0.3
    stop_words: StopWords | None = None

    info: ClassVar[MethodInfo] = MethodInfo(
        name="lwtr",
        long_name="label-wise-token-replacement",
        summary="tokens replaced by training tokens of the same tag",
        paper="Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition",
        keeps_length=True,
        keeps_order=True,
        needs_fit=True,
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        stop = stop_words(self.stop_words)
        for sentence in corpus:
            for token, tag in zip(sentence.tokens, position_tags(len(sentence), sentence.mentions), strict=True):
                counts[tag][token] += token.lower() not in stop
        # Sorted, so that the order of the corpus does not matter; cumulated, so that sampling is a binary search.
        self.pools_ = {
            tag: (tokens, list(accumulate(of_tag[token] for token in tokens)))
            for tag, of_tag in counts.items()
            if (tokens := sorted(+of_tag))
        }

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        tokens, stop = sentence.tokens, stop_words(self.stop_words)
        candidates = [i for i, token in enumerate(tokens) if token.lower() not in stop] if stop else range(len(tokens))
        if not candidates:
            return NO_CANDIDATE
        tags = position_tags(len(sentence), sentence.mentions)
        edits = []
        for k in sample_positions(rng, len(candidates), self.p):
            i = candidates[k]
            pool = self.pools_.get(tags[i])
            if pool is not None:
                words, sums = pool
                edits.append(Edit(i, i + 1, (words[bisect_right(sums, rng.random() * sums[-1])],)))
        return sentence.edit(edits)
