"""Similarity of sentences by tokens, held to a plain computation of the longest common subsequence."""

from __future__ import annotations

import time
from random import Random

import pytest

from entaug.data import Sentence
from entaug.errors import ParameterError
from entaug.scoring import near_duplicates
from entaug.scoring.near_duplicates import find_near_duplicates, similarity


def plain(a: Sentence, b: Sentence) -> float:
    """The definition, by the textbook's table."""
    one, other = [t.casefold() for t in a.tokens], [t.casefold() for t in b.tokens]
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, x in enumerate(one):
        for j, y in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return 2 * table[-1][-1] / (len(one) + len(other))


def some(rng: Random, count: int) -> list[Sentence]:
    return [Sentence([rng.choice("aAbBcdefg") for _ in range(rng.randint(1, 9))]) for _ in range(count)]


def test_similarity_of_hand_computed_pairs() -> None:
    def of(a: str, b: str) -> float:
        return similarity(Sentence(a.split()), Sentence(b.split()))

    assert of("Ada left Rome .", "ada LEFT rome .") == 1
    assert of("a b c d", "a x c d") == 0.75  # one of four replaced
    assert of("a b c d", "a b c d e f") == 0.8  # 8 of 10 tokens are shared
    assert of("a b", "b a") == 0.5  # only one keeps its order
    assert of("a b", "c d") == 0
    assert of("Straße", "STRASSE") == 1  # case is folded, not lowered
    assert of("ab c", "a bc") == 0  # tokens, not letters


@pytest.mark.parametrize("least", [0.0, 0.3, 0.5, 2 / 3, 0.9, 1.0])
@pytest.mark.parametrize("cells", [1, 70, 1 << 21])
def test_nearest_is_that_of_all_pairs_one_by_one(least: float, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "_CELLS", cells)
    rng = Random(3)
    sentences, others = some(rng, 60), some(rng, 40)

    def expected(sentence: Sentence, among: list[Sentence]) -> tuple[int, float] | None:
        scores = [round(plain(sentence, other), 9) for other in among]
        best = max(scores, default=-1.0)
        return (scores.index(best), best) if best >= round(least, 9) else None

    def rounded(found: list[tuple[int, float] | None]) -> list[tuple[int, float] | None]:
        return [pair and (pair[0], round(pair[1], 9)) for pair in found]

    assert rounded(find_near_duplicates(sentences, others, min_similarity=least)) == [
        expected(s, others) for s in sentences
    ]
    assert rounded(find_near_duplicates(sentences, min_similarity=least)) == [
        expected(s, sentences[:i]) for i, s in enumerate(sentences)
    ]


def test_one_of_each_pair_stays_and_nothing_is_found_in_nothing() -> None:
    same = [Sentence(["a"]), Sentence(["A"]), Sentence(["a"])]
    assert find_near_duplicates(same, min_similarity=1.0) == [None, (0, 1.0), (0, 1.0)]
    assert find_near_duplicates(same, [], min_similarity=0.0) == [None, None, None]
    assert find_near_duplicates([], same, min_similarity=0.5) == []
    assert find_near_duplicates(same[:1], min_similarity=0.0) == [None]
    with pytest.raises(ParameterError, match="between 0 and 1"):
        find_near_duplicates(same, min_similarity=85)


def test_thousands_take_seconds() -> None:
    rng = Random(0)
    words = [f"w{int(rng.paretovariate(0.8)) % 20_000}" for _ in range(200_000)]
    sentences = [Sentence([rng.choice(words) for _ in range(25)]) for _ in range(5000)]
    told: list[tuple[int, int]] = []
    begun = time.process_time()
    found = find_near_duplicates(
        [*sentences[:2000], *reversed(sentences)], sentences, min_similarity=0.8, progress=lambda *n: told.append(n)
    )
    assert time.process_time() - begun < 20
    assert [pair and pair[0] for pair in found] == [*range(2000), *reversed(range(5000))]
    assert told[-1] == (7000, 7000)
