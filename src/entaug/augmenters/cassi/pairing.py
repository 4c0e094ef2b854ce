"""Pairing of similar sentences: each sentence has some partners, and no two sentences are paired twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from entaug.alignment import detokenize
from entaug.backends.protocols import Encoder
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.scoring.bertscore import bertscore_among, nearest_neighbors, pairwise_bertscore
from entaug.spacing import is_word_character

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = ["Pairing", "PairingOptions", "argsort_descending", "assign_partners", "rank_partners"]

Pairing = Literal["bertscore", "embedding", "random", "off-by-one"]

_FIRST_SORTED = 64  # number of positions sorted at first; more are rarely needed
_LARGE_CORPUS, _DEFAULT_SHORTLIST = 5000, 100


class PairingOptions(NamedTuple):
    """Options of a ranking.

    Args:
        encoder: the model; None for random rankings.
        layer: the layer of the encoder that BERTScore uses; None for the last.
        shortlist_size: the number of nearest sentences by sentence vector that are ranked; 0 for all; None for all in a
            corpus of up to 5,000 sentences and 100 in larger ones.
        include_punctuation: whether BERTScore includes punctuation.
        stream: returns the random stream of a sentence.
    """

    encoder: Encoder | None
    layer: int | None
    shortlist_size: int | None
    include_punctuation: bool
    stream: Callable[[Sentence], Random]


def rank_partners(sentences: Sequence[Sentence], pairing: Pairing, options: PairingOptions) -> list[Iterator[int]]:
    """Rank the other sentences by similarity, for each sentence.

    Args:
        sentences: all sentences.
        pairing: the measure: BERTScore F1; the cosine of sentence vectors; none (random order); or the incorrect
            BERTScore ranking of the published code, which removes the sentence itself from the scores without
            correcting the positions after it.
        options: further options.

    Returns:
        For each sentence the positions of the others, the most similar first, computed lazily.
    """
    n = len(sentences)
    if pairing == "random":
        return [_without(i, _shuffle(n, options.stream(sentence))) for i, sentence in enumerate(sentences)]
    encoder: Encoder = resolve("encoder", options.encoder)
    texts = [detokenize(s.tokens, s.spaces) for s in sentences]
    compared = texts if options.include_punctuation else [_without_punctuation(s) for s in sentences]
    size = options.shortlist_size
    if size is None:
        size = _DEFAULT_SHORTLIST if n > _LARGE_CORPUS else 0
    if pairing == "embedding":
        vectors = encoder.sentence_vectors(texts)
        if size:
            return [iter(neighbors) for neighbors in nearest_neighbors(vectors, size)]
        return [_without(i, argsort_descending(vectors @ vector)) for i, vector in enumerate(vectors)]
    if size and pairing == "bertscore":
        shortlists = [sorted(neighbors) for neighbors in nearest_neighbors(encoder.sentence_vectors(texts), size)]
        scores = bertscore_among(compared, shortlists, encoder, layer=options.layer)
        return [map(of.__getitem__, argsort_descending(row)) for of, row in zip(shortlists, scores, strict=True)]
    rows = pairwise_bertscore(compared, encoder, layer=options.layer)
    rankings = [_without(i, argsort_descending(row)) for i, row in enumerate(rows)]
    return rankings if pairing == "bertscore" else [_shifted(i, ranking) for i, ranking in enumerate(rankings)]


def _without_punctuation(sentence: Sentence) -> str:
    return detokenize([token for token in sentence.tokens if any(map(is_word_character, token))])


def _without(own: int, ranking: Iterable[int]) -> Iterator[int]:
    return (other for other in ranking if other != own)


def _shifted(own: int, ranking: Iterable[int]) -> Iterator[int]:
    return (other if other < own else other - 1 for other in ranking)


def _shuffle(n: int, rng: Random) -> Iterator[int]:
    """Yield all numbers below n in random order, drawn lazily."""
    moved: dict[int, int] = {}
    for last in range(n - 1, -1, -1):
        at = rng.randrange(last + 1)
        yield moved.get(at, at)
        moved[at] = moved.get(last, last)


def assign_partners(
    rankings: Sequence[Iterator[int]], count: int, is_suitable: Callable[[int, int], bool]
) -> list[list[int]]:
    """Assign partners to each sentence, each pair once.

    Partners are assigned in rounds: in each round every sentence in turn takes the first sentence of its ranking that
    is suitable and not paired with it yet. The first partners therefore do not depend on the number of rounds.

    Args:
        rankings: for each sentence the numbers of the others, the best first; read lazily.
        count: the number of rounds.
        is_suitable: returns whether the first sentence may have the second as partner.

    Returns:
        The partners of each sentence; fewer than `count` if its ranking ends early.

    Example:
        >>> rankings = [iter([1, 2]), iter([0, 2]), iter([1, 0])]
        >>> assign_partners(rankings, 1, lambda one, other: True)  # 1 cannot take 0 again, nor 2 then 1
        [[1], [2], [0]]
    """
    partners: list[list[int]] = [[] for _ in rankings]
    pairs: set[tuple[int, int]] = set()
    for _ in range(count):
        for one, ranking in enumerate(rankings):
            for other in ranking:
                pair = (min(one, other), max(one, other))
                if pair not in pairs and is_suitable(one, other):
                    pairs.add(pair)
                    partners[one].append(other)
                    break
    return partners


def argsort_descending(scores: NDArray[float32]) -> Iterator[int]:
    """Yield the positions of scores, the highest first, equal ones in order; sorted lazily.

    Args:
        scores: one score for each position.

    Yields:
        The positions.

    Example:
        >>> import numpy as np
        >>> list(argsort_descending(np.array([0.1, 0.9, 0.5, 0.9], np.float32)))
        [1, 3, 2, 0]
    """
    import numpy as np

    num_read, size = 0, _FIRST_SORTED
    while num_read < len(scores):
        kth = len(scores) - min(size, len(scores))
        positions = np.flatnonzero(scores >= np.partition(scores, kth)[kth])
        positions = positions[np.argsort(-scores[positions], kind="stable")]
        yield from positions[num_read:].tolist()
        num_read = len(positions)
        size *= 8
