"""The errors that the benchmark of `entaug audit` plants, and how rankings are measured."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from label_errors import KINDS, Case, Planter, by_entaug, confusable_labels, truth

CORPUS = [Sentence(s.tokens, s.mentions) for s in entaug.read(EXAMPLE / "train.conll")]


def test_planted_errors_are_what_is_asked_for() -> None:
    number = sum(len(sentence.mentions) for sentence in CORPUS)
    dirty, planted = Planter(CORPUS, "en", Random(1)).plant(0.2)
    assert len(planted) == round(0.2 * number)
    assert {error.kind for error in planted} == set(KINDS)
    assert all(new.tokens == old.tokens and new.is_flat for new, old in zip(dirty, CORPUS, strict=True))
    for error in planted:
        assert error.right is None or error.right in CORPUS[error.place].mentions
        assert error.right not in dirty[error.place].mentions
        assert error.wrong is None or error.wrong in dirty[error.place].mentions
        if error.right is not None and error.wrong is not None:
            same_spans, same_label = error.right.spans == error.wrong.spans, error.right.label == error.wrong.label
            assert (same_spans, same_label) == ((True, False) if error.kind == "type" else (False, True))
    # Repaired, they are the corpus again: each was planted at a place of its own.
    repaired = [set(sentence.mentions) for sentence in dirty]
    for error in planted:
        repaired[error.place] -= {error.wrong}
        repaired[error.place] |= {error.right} if error.right is not None else set()
    assert repaired == [set(sentence.mentions) for sentence in CORPUS]
    assert Planter(CORPUS, "en", Random(1)).plant(0.2) == (dirty, planted)
    assert Planter(CORPUS, "en", Random(2)).plant(0.2)[1] != planted


def test_a_label_is_confused_with_those_that_share_words() -> None:
    sentences = [
        Sentence("in Rome".split(), [Mention("LOC", [(1, 2)])]),
        Sentence("in Oslo".split(), [Mention("GPE", [(1, 2)])]),
        Sentence("Ada sang".split(), [Mention("PER", [(0, 1)])]),
    ]
    assert list(confusable_labels(sentences)["LOC"]) == ["GPE", "PER"]
    assert confusable_labels(sentences[:1]) == {"LOC": {}}


def test_a_ranking_of_sentences_and_words() -> None:
    clean = [Sentence(["Rome", word], [Mention("LOC", [(0, 1)])]) for word in "abcd"]
    dirty = [clean[0].with_(mentions=[Mention("PER", [(0, 1)])]), *clean[1:]]
    case = Case(clean, dirty, [], ("O", "B-LOC", "I-LOC", "B-PER", "I-PER"), [])
    assert truth(case)["types"].tolist() == [True, *[False] * 7]
    ranking = by_entaug(case, None)
    assert np.argmax(ranking["sentences"]) == np.argmax(ranking["types"]) == 0
    assert ranking["tags"][0] == pytest.approx(1 - 0.9 / 4)
