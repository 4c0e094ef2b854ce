"""Similarity of sentences by tokens, held to a plain computation of the longest common subsequence."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import numpy as np
import pytest

from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.metrics import near_duplicates
from entaug.metrics.near_duplicates import NearDuplicateIndex, similarity


def find_repeats(sentences: Iterable[Sentence], *, min_similarity: float) -> list[bool]:
    return NearDuplicateIndex(sentences, min_similarity=min_similarity).repeats()


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


@pytest.mark.parametrize("least", [0.0, 0.3, 0.5, 2 / 3, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0])
@pytest.mark.parametrize(("tokens", "pairs", "first"), [(1, 1, 1), (40, 70, 2), (1 << 19, 1 << 17, 16)])
def test_what_is_found_is_what_all_pairs_one_by_one_tell(
    least: float, tokens: int, pairs: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_duplicates, "_TOKENS", tokens)
    monkeypatch.setattr(near_duplicates, "_PAIRS", pairs)
    monkeypatch.setattr(near_duplicates, "_FIRST", first)
    rng = Random(3)
    sentences, others = some(rng, 60), some(rng, 40)

    def expected(sentence: Sentence, among: list[Sentence]) -> bool:
        return any(round(plain(sentence, other), 9) >= round(least, 9) for other in among)

    index = NearDuplicateIndex(others, min_similarity=least)
    assert index.contains(sentences) == [expected(s, others) for s in sentences]
    assert find_repeats(sentences, min_similarity=least) == [
        expected(s, sentences[:i]) for i, s in enumerate(sentences)
    ]


@pytest.mark.parametrize("least", [0.5, 0.7, 0.8, 0.9])
def test_sentences_just_above_and_below_the_threshold(least: float) -> None:
    """Random edits of longer sentences of few words, where bounds that are wrong by one would show."""
    rng = Random(7)
    sentences: list[Sentence] = []
    for _ in range(60):
        tokens = [rng.choice("abcdefghijklmnopqrst") for _ in range(rng.randint(1, 40))]
        for _ in range(3):
            sentences.append(Sentence(tokens))
            edited = list(tokens)
            for _ in range(rng.randint(0, round((1 - least) * len(tokens)) + 1)):
                place = rng.randrange(len(edited) + 1)
                edited[place : place + rng.randint(0, 1)] = rng.choice([[], ["x"], ["a"], ["b", "c"]])
            tokens = edited or ["x"]
    rng.shuffle(sentences)
    scores = [[similarity(a, b) for b in sentences[:i]] for i, a in enumerate(sentences)]
    expected = [any(score >= least - 1e-9 for score in row) for row in scores]
    assert 0.1 < sum(expected) / len(expected) < 0.95
    assert find_repeats(sentences, min_similarity=least) == expected


def test_one_of_each_pair_stays_and_nothing_is_found_in_nothing() -> None:
    same = [Sentence(["a"]), Sentence(["A"]), Sentence(["a"])]
    assert find_repeats(same, min_similarity=1.0) == [False, True, True]
    assert find_repeats([], min_similarity=0.5) == []
    assert find_repeats(same[:1], min_similarity=0.0) == [False]
    assert NearDuplicateIndex([], min_similarity=0.0).contains(same) == [False] * 3
    assert NearDuplicateIndex(same, min_similarity=0.5).contains([]) == []
    with pytest.raises(ParameterError, match="between 0 and 1"):
        NearDuplicateIndex(same, min_similarity=85)


def test_sentences_of_one_hash_are_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "_mix", lambda values: np.zeros(len(values), np.uint64))
    different = [Sentence(text.split()) for text in ("a b c", "d e f", "a b c", "d e g", "h i j")]
    assert find_repeats(different, min_similarity=0.6) == [False, False, True, True, False]
    assert NearDuplicateIndex(different, min_similarity=1).contains([different[1], Sentence(["k"])]) == [True, False]


def zipfian(count: int, length: int = 25) -> list[Sentence]:
    """Sentences whose words are as frequent as those of text (Zipf and Mandelbrot)."""
    words = [f"w{rank}" for rank in range(20_000)]
    weights = [1 / (rank + 2.7) for rank in range(20_000)]
    drawn = iter(Random(0).choices(words, weights, k=count * length))
    return [Sentence([next(drawn) for _ in range(length)]) for _ in range(count)]


def test_few_pairs_are_compared() -> None:
    """All pairs would be 9 million in either call."""
    sentences = zipfian(3000)
    told: list[tuple[int, int]] = []
    index = NearDuplicateIndex(sentences, min_similarity=0.9)
    edited = [Sentence([*s.tokens[:7], "new", *s.tokens[8:]]) for s in sentences]
    assert all(index.contains(edited, lambda *n: told.append(n)))
    assert not any(index.contains([Sentence(s.tokens[::-1]) for s in sentences]))
    assert index._compared < 10 * len(sentences)
    assert told[-1] == (3000, 3000)


def test_near_duplicates_of_one_another_are_compared_with_few() -> None:
    """Sentences from one template are all near-duplicates: one comparison tells, not one with each."""
    sentences = [Sentence([*"the patient received aspirin at a dose of".split(), str(i), "mg ."]) for i in range(2000)]
    index = NearDuplicateIndex(sentences, min_similarity=0.8)
    assert index.repeats() == [False] + [True] * 1999
    assert index._compared < 200 * len(sentences)
