"""Which sentence goes with which: for each a few of the most similar others, no two sentences together twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from entaug.alignment import detokenize
from entaug.backends.protocols import Encoder
from entaug.backends.resolve import resolve
from entaug.data import Sentence
from entaug.scoring.bertscore import bertscore_among, nearest_neighbors, pairwise_bertscore
from entaug.spacing import is_word_character

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

__all__ = ["PAIRINGS", "PairingOptions", "by_falling_score", "partners", "rankings"]

PAIRINGS = ("bertscore", "embedding", "random", "off-by-one")
_FIRST = 64  # places sorted at first; more are rarely asked for
_LARGE, _NEAREST = 5000, 100  # above so many sentences only so many neighbours of each are compared by BERTScore


class PairingOptions(NamedTuple):
    """What a ranking needs to know.

    Args:
        encoder: the model, except for random rankings.
        layer: which of its layers BERTScore looks at; None for the last.
        shortlist: how many nearest by sentence vector are ranked; 0 for all; None for all in a corpus of usual size.
        punctuation: whether BERTScore sees punctuation.
        stream: the random numbers of a sentence.
    """

    encoder: Encoder | None
    layer: int | None
    shortlist: int | None
    punctuation: bool
    stream: Callable[[Sentence], Random]


def rankings(sentences: Sequence[Sentence], pairing: str, how: PairingOptions) -> list[Iterator[int]]:
    """For each sentence the positions of others, the most alike first.

    Args:
        sentences: all of them.
        pairing: one of `PAIRINGS`.
        how: what else has to be known.
    """
    n = len(sentences)
    if pairing == "random":
        return [_without(i, _shuffled(n, how.stream(sentence))) for i, sentence in enumerate(sentences)]
    encoder: Encoder = resolve("encoder", how.encoder)
    texts = [detokenize(s.tokens, s.spaces) for s in sentences]
    seen = texts if how.punctuation else [_words_alone(s) for s in sentences]
    shortlist = (_NEAREST if n > _LARGE else 0) if how.shortlist is None else how.shortlist
    if pairing == "embedding":
        vectors = encoder.sentence_vectors(texts)
        if shortlist:
            return [iter(near) for near in nearest_neighbors(vectors, shortlist)]
        return [_without(i, by_falling_score(vectors @ vector)) for i, vector in enumerate(vectors)]
    if shortlist and pairing == "bertscore":
        some = [sorted(near) for near in nearest_neighbors(encoder.sentence_vectors(texts), shortlist)]
        scores = bertscore_among(seen, some, encoder, layer=how.layer)
        return [map(near.__getitem__, by_falling_score(of)) for near, of in zip(some, scores, strict=True)]
    rows = pairwise_bertscore(seen, encoder, layer=how.layer)
    ranked = [_without(i, by_falling_score(row)) for i, row in enumerate(rows)]
    if pairing == "bertscore":
        return ranked
    # Off by one: the sentence itself was taken out of the scores, and those behind it are not where they seem to be.
    return [map(partial(_misplaced, i), ranking) for i, ranking in enumerate(ranked)]


def _words_alone(sentence: Sentence) -> str:
    return detokenize([token for token in sentence.tokens if any(map(is_word_character, token))])


def _without(number: int, ranking: Iterable[int]) -> Iterator[int]:
    return (other for other in ranking if other != number)


def _misplaced(number: int, other: int) -> int:
    return other if other < number else other - 1


def _shuffled(n: int, rng: Random) -> Iterator[int]:
    """All numbers below n in random order, drawn as they are read."""
    moved: dict[int, int] = {}
    for last in range(n - 1, -1, -1):
        at = rng.randrange(last + 1)
        yield moved.get(at, at)
        moved[at] = moved.get(last, last)


def partners(rankings: Sequence[Iterator[int]], count: int, suits: Callable[[int, int], bool]) -> list[list[int]]:
    """The partners of each sentence, each pair used once.

    Partners are given out in rounds: in each round every sentence in turn takes the first of its ranking that suits it,
    that it has not had, and that has not had it. So the first partners do not depend on how many are asked for.

    Args:
        rankings: for each sentence the numbers of others, the most wanted first; read as far as necessary.
        count: how many partners each is to have; one whose ranking ends has fewer.
        suits: whether the first may have the second.

    Example:
        >>> rankings = [iter([1, 2]), iter([0, 2]), iter([1, 0])]
        >>> partners(rankings, 1, lambda one, other: True)  # 1 cannot have 0, which has it, nor 2 then 1, which has it
        [[1], [2], [0]]
    """
    given: list[list[int]] = [[] for _ in rankings]
    used: set[tuple[int, int]] = set()
    for _ in range(count):
        for one, ranking in enumerate(rankings):
            for other in ranking:
                pair = (min(one, other), max(one, other))
                if pair not in used and suits(one, other):
                    used.add(pair)
                    given[one].append(other)
                    break
    return given


def by_falling_score(scores: NDArray[float32]) -> Iterator[int]:
    """Positions by falling score, equal ones in order, sorted only as far as they are read.

    Example:
        >>> import numpy as np
        >>> list(by_falling_score(np.array([0.1, 0.9, 0.5, 0.9], np.float32)))
        [1, 3, 2, 0]
    """
    import numpy as np

    taken, size = 0, _FIRST
    while taken < len(scores):
        least = len(scores) - min(size, len(scores))
        places = np.flatnonzero(scores >= np.partition(scores, least)[least])
        places = places[np.argsort(-scores[places], kind="stable")]
        yield from places[taken:].tolist()
        taken = len(places)
        size *= 8
