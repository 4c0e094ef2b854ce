"""Pairing of similar sentences: each sentence has some partners, and no two sentences are paired twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from entaug.backends.protocols import Encoder
from entaug.backends.resolve import resolve
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.spacing import is_word_character
from entaug.metrics.bertscore import bertscore_among, nearest_neighbors, pairwise_bertscore

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = ["Pairing", "PairingOptions", "argsort_descending", "assign_partners", "rank_partners"]

Pairing = Literal["bertscore", "embedding", "random", "off-by-one"]

_FIRST_SORTED = 64  # number of positions sorted at first; more are rarely needed
_LARGE_CORPUS, _DEFAULT_SHORTLIST = 5000, 100


class PairingOptions(NamedTuple):
    """Options of a ranking."""

    encoder: Encoder | None
    layer: int | None
    shortlist_size: int | None
    include_punctuation: bool
    stream: Callable[[Sentence], Random]


def rank_partners(sentences: Sequence[Sentence], pairing: Pairing, options: PairingOptions) -> list[Iterator[int]]:
    """Rank the other sentences by similarity, for each sentence."""
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
    """Assign partners to each sentence, each pair once."""
    # Partners are assigned in rounds: in each round every sentence in turn takes the first sentence of its ranking that
    # is suitable and not paired with it yet. The first partners therefore do not depend on the number of rounds.
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
    """Yield the positions of scores, the highest first, equal ones in order; sorted lazily."""
    import numpy as np

    num_read, size = 0, _FIRST_SORTED
    while num_read < len(scores):
        kth = len(scores) - min(size, len(scores))
        positions = np.flatnonzero(scores >= np.partition(scores, kth)[kth])
        positions = positions[np.argsort(-scores[positions], kind="stable")]
        yield from positions[num_read:].tolist()
        num_read = len(positions)
        size *= 8
