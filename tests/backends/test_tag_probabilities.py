"""Soft labels: validation, round trips through files, and what of hostile input is refused."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import encode
from entaug.errors import EntaugError, InputError

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
SENTENCE = Sentence("Ada Byron sang".split(), [Mention("PER", [(0, 2)])])
SOFT = TagProbabilities(
    TAGS, [[0.1, 0.8, 0, 0.1, 0], [0.25, 0, 0.5, 0, 0.25], [0.9, 0.0996, 0.0004, 0, 0]], [1, 0.5, 0]
)


def test_rows_are_normalised_and_read() -> None:
    soft = TagProbabilities(["O", "B-X"], [[2, 2], [1, 3]])
    assert soft.values.tolist() == [[0.5, 0.5], [0.25, 0.75]]
    assert soft.confidences.tolist() == [0.5, 0.75]
    assert soft.best_tags() == ["O", "B-X"]
    assert soft.mentions() == (Mention("X", [(1, 2)]),)


def test_labelling_replaces_mentions_and_adds_probabilities() -> None:
    other = SENTENCE.with_(mentions=[Mention("LOC", [(2, 3)])])
    labelled = SOFT.label(other)
    assert labelled.mentions == SENTENCE.mentions
    assert labelled.layout["tag_probabilities"] == SOFT.to_dict()
    # What can only be inside a mention that nothing begins, begins one, as in conlleval.
    stray = TagProbabilities(TAGS, [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0]])
    assert stray.mentions() == (Mention("LOC", [(0, 1)]), Mention("PER", [(2, 3)]))


def test_other_tags_take_what_they_know_and_o_the_rest() -> None:
    aligned = SOFT.aligned(["O", "B-PER", "I-PER", "B-ORG"])
    np.testing.assert_allclose(aligned, [[0.2, 0.8, 0, 0], [0.5, 0, 0.5, 0], [0.9, 0.0996, 0.0004, 0]], atol=1e-6)
    np.testing.assert_array_equal(SOFT.aligned(TAGS), SOFT.values)


@pytest.mark.parametrize("name", ["soft.jsonl", "soft.parquet"])
def test_files_keep_probabilities(name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    plain = Sentence("no soft labels".split())
    entaug.write([SOFT.attach_to(SENTENCE), plain], tmp_path / name)
    soft, none = entaug.read(tmp_path / name)
    again = TagProbabilities.from_sentence(soft)
    assert again is not None
    assert soft.layout["tag_probabilities"] == SOFT.to_dict()
    assert again.weights is not None
    assert again.weights.tolist() == [1, 0.5, 0]
    np.testing.assert_allclose(again.values, SOFT.values, atol=1e-3)
    assert TagProbabilities.from_sentence(none) is None
    assert soft.mentions == SENTENCE.mentions


@given(st.lists(st.lists(st.floats(0, 1, width=32), min_size=5, max_size=5), min_size=1, max_size=6), st.booleans())
def test_a_dictionary_holds_the_same_to_a_thousandth(rows: list[list[float]], weighted: bool) -> None:
    values = [row if sum(row) > 1e-6 else [1, 0, 0, 0, 0] for row in rows]
    soft = TagProbabilities(TAGS, values, [0.5] * len(rows) if weighted else None)
    again = TagProbabilities.from_dict(soft.to_dict())
    np.testing.assert_allclose(again.values, soft.values, atol=6e-3)
    assert (again.weights is None) == (not weighted)


def test_many_tags_of_small_probability_survive() -> None:
    tags = ["O", *(f"B-{i}" for i in range(1999))]
    soft = TagProbabilities(tags, np.full((2, 2000), 1 / 2000))
    assert TagProbabilities.from_dict(soft.to_dict()).values.shape == (2, 2000)


def test_augmented_sentences_drop_probabilities_of_the_text_before() -> None:
    new = list(entaug.create_augmenter("sis", p=1.0).augment([SOFT.attach_to(SENTENCE)]))
    assert new
    assert all(TagProbabilities.from_sentence(sentence) is None for sentence in new)


@pytest.mark.parametrize(
    ("tags", "values", "weights", "message"),
    [
        (["B-X", "I-X"], [[1, 0]], None, "O among them"),
        (["O", "O"], [[1, 0]], None, "distinct"),
        (["O", "X"], [[1, 0]], None, "not IOB2"),
        (["O", "B-"], [[1, 0]], None, "not IOB2"),
        (["O", 5], [[1, 0]], None, "not IOB2"),
        (["O", "B-X"], [1, 0], None, "shape"),
        (["O", "B-X"], [[1, 0, 0]], None, "shape"),
        (["O", "B-X"], [[0, 0]], None, "at least 0"),
        (["O", "B-X"], [[-1, 2]], None, "at least 0"),
        (["O", "B-X"], [[float("nan"), 1]], None, "at least 0"),
        (["O", "B-X"], [[float("inf"), 1]], None, "at least 0"),
        (["O", "B-X"], [[1, 0]], [1, 1], "one for each word"),
        (["O", "B-X"], [[1, 0]], [-1], "one for each word"),
        (["O", "B-X"], [[1, 0]], [float("nan")], "one for each word"),
    ],
)
def test_what_is_no_distribution_is_refused(tags: Any, values: Any, weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TagProbabilities(tags, values, weights)


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        "O",
        [],
        {},
        {"tags": ["O"], "ids": [[0]]},
        {"tags": None, "ids": [[0]], "values": [[1]]},
        {"tags": [["O"]], "ids": [[0]], "values": [[1]]},
        {"tags": ["O"], "ids": [[1]], "values": [[1]]},
        {"tags": ["O"], "ids": [[-1]], "values": [[1]]},
        {"tags": ["O"], "ids": [["0"]], "values": [[1]]},
        {"tags": ["O"], "ids": [[0.5]], "values": [[1]]},
        {"tags": ["O"], "ids": [[0]], "values": [["x"]]},
        {"tags": ["O"], "ids": [[0]], "values": [[None]]},
        {"tags": ["O"], "ids": [[0, 0]], "values": [[1]]},
        {"tags": ["O"], "ids": [[0]], "values": [[1], [1]]},
        {"tags": ["O"], "ids": [0], "values": [1]},
        {"tags": ["O"], "ids": [[]], "values": [[]]},
        {"tags": ["O"], "ids": [[0]], "values": [[1]], "weights": ["x"]},
        {"tags": ["O"], "ids": [[0]], "values": [[1]], "weights": 3},
        {"tags": ["O"], "ids": [[0]], "values": [[1]], "weights": {"a": 1}},
        {"tags": ["O"], "ids": [[0]], "values": [[10**400]]},
        {"tags": ["O"], "ids": [[10**400]], "values": [[1]]},
    ],
)
def test_hostile_dictionaries_are_told(data: Any) -> None:
    with pytest.raises(InputError):
        TagProbabilities.from_dict(data)
    with pytest.raises(InputError):
        assert TagProbabilities.from_sentence(SENTENCE.with_(layout={"tag_probabilities": data or {}}))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["O", "B-X", "I-X", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "tags"]), inner, max_size=2),
    max_leaves=8,
)


@given(st.fixed_dictionaries({"tags": JUNK, "ids": JUNK, "values": JUNK}, optional={"weights": JUNK}))
def test_any_dictionary_is_read_or_refused(data: Any) -> None:
    try:
        soft = TagProbabilities.from_dict(data)
    except EntaugError:
        return
    np.testing.assert_allclose(soft.values.sum(axis=1), 1, atol=1e-5)


def test_a_sentence_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="3 words for 1"):
        TagProbabilities.from_sentence(SOFT.attach_to(Sentence(["one"])))


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=5, max_size=5), min_size=1, max_size=4))
def test_the_likeliest_valid_tags_are_those_of_exhaustive_search(rows: list[list[float]]) -> None:
    tags = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    soft = TagProbabilities(tags, rows)

    def probability(sequence: tuple[int, ...]) -> float:
        return math.prod(float(soft.values[i, tag]) for i, tag in enumerate(sequence))

    def is_valid(sequence: tuple[int, ...]) -> bool:
        names = ["O", *(tags[i] for i in sequence)]
        return all(b[0] != "I" or a[2:] == b[2:] for a, b in itertools.pairwise(names))

    best = max(map(probability, filter(is_valid, itertools.product(range(5), repeat=len(rows)))))
    decoded = encode(len(rows), soft.mentions())
    assert probability(tuple(tags.index(tag) for tag in decoded)) == pytest.approx(best)
