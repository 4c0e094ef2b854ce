"""The confidence of words and mentions, and the cut-off for hard labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug import Mention, Sentence
from entaug.backends.soft_labels import TagProbabilities
from entaug.errors import InputError, LossError, ParameterError
from entaug.teacher.label import filter_by_confidence, mention_confidence, word_confidences

TAGS = ["O", "B-LOC", "I-LOC"]
SOFT = TagProbabilities(TAGS, [[0.1, 0.9, 0], [0.2, 0.2, 0.6], [0.7, 0.3, 0], [0.05, 0.95, 0]])
SENTENCE = SOFT.label(Sentence("New York likes Rome".split()))


def test_confidences_are_those_of_the_tags_that_the_sentence_has() -> None:
    assert word_confidences(SENTENCE) == pytest.approx([0.9, 0.6, 0.7, 0.95])
    other = SENTENCE.with_(mentions=[Mention("LOC", [(0, 1)]), Mention("PER", [(3, 4)])])
    # The teacher does not know PER.
    confidences = word_confidences(other)
    assert confidences == pytest.approx([0.9, 0.2, 0.7, 0])
    assert confidences is not None
    assert [mention_confidence(m, confidences) for m in other.mentions] == pytest.approx([0.9, 0])
    assert word_confidences(Sentence(["Rome"])) is None


def test_sentences_and_mentions_are_dropped() -> None:
    gold = Sentence(["Rome"], [Mention("LOC", [(0, 1)])])
    assert list(filter_by_confidence([gold, SENTENCE], 0.65)) == [gold]
    assert list(filter_by_confidence([gold, SENTENCE], 0.5)) == [gold, SENTENCE]
    [kept] = filter_by_confidence([SENTENCE], 0.65, drop="mentions")
    assert kept.mentions == (Mention("LOC", [(3, 4)]),)
    assert kept.layout == SENTENCE.layout


@given(st.data(), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=examples(60))
def test_a_higher_minimum_never_keeps_more(data: Any, first: float, second: float) -> None:
    low, high = sorted((first, second))
    rng = np.random.default_rng(data.draw(st.integers(0, 9999)))
    n = data.draw(st.integers(1, 6))
    soft = [TagProbabilities(TAGS, rng.random((n, 3)) + 1e-3).label(Sentence([f"w{i}" for i in range(n)]))]
    few, many = list(filter_by_confidence(soft, high)), list(filter_by_confidence(soft, low))
    assert set(few) <= set(many)
    [a] = filter_by_confidence(soft, high, drop="mentions")
    [b] = filter_by_confidence(soft, low, drop="mentions")
    assert set(a.mentions) <= set(b.mentions) <= set(soft[0].mentions)
    if many:
        assert b == soft[0]


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), True])
def test_a_minimum_that_is_no_probability_is_refused_at_once(bad: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        filter_by_confidence([], bad)


def test_bad_arguments_and_sentences_are_refused() -> None:
    with pytest.raises(ParameterError, match="drop must be"):
        filter_by_confidence([], 0.5, drop="words")  # type: ignore[arg-type]
    short = Sentence(["Rome"], layout=dict(SENTENCE.layout))
    with pytest.raises(InputError, match="4 words for 1"):
        list(filter_by_confidence([short], 0.5))
    relations = Sentence(["Rome"], layout={"relation_probabilities": {}}, id="s1")
    with pytest.raises(InputError, match=r"s1.*probabilities of relations"):
        list(filter_by_confidence([relations], 0.5))
    nested = SENTENCE.with_(mentions=[Mention("LOC", [(0, 2)]), Mention("LOC", [(0, 1)])])
    with pytest.raises(LossError):
        list(filter_by_confidence([nested], 0.5))
    assert entaug.teacher.filter_by_confidence is filter_by_confidence
