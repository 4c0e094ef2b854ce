"""Soft labels for mentions of any shape: probabilities of relations, and a student that learns them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, ParameterError
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger
from entaug.taggers.ensemble import EnsembleTagger
from entaug.taggers.relations import NNW, THW, RelationProbabilities, relations
from entaug.taggers.w2ner import GridDecoder, W2NERTagger
from helpers import tiny
from helpers.strategies import sentences

NAMES = [NNW, "THW-ADR", "THW-PART"]
SENTENCE = Sentence("pain in left arm".split(), [Mention("ADR", [(0, 2), (3, 4)]), Mention("PART", [(2, 4)])])
GOLD = [
    Sentence(f"{a} and {b} pain in {c} arm".split(), mentions)
    for a, b, c in (("sharp", "slow", "left"), ("dull", "hot", "right"), ("mild", "cold", "my"), ("old", "odd", "her"))
    for mentions in [[Mention("ADR", [(0, 1), (3, 4)]), Mention("ADR", [(2, 4)]), Mention("PART", [(5, 7)])]]
]
CONFIG = TaggerTrainingConfig(steps=70, batch_size=4, learning_rate=1e-3, head_learning_rate=6e-3)


def _certain(sentence: Sentence, names: list[str] = NAMES, **more: Any) -> RelationProbabilities:
    triples = sorted(relations(sentence))
    cells = [[row, column, names.index(name)] for row, column, name in triples]
    return RelationProbabilities(names, len(sentence), cells, [1.0] * len(cells), **more)


@given(sentences(gaps=False))
def test_certain_relations_of_contiguous_mentions_give_them_back(sentence: Sentence) -> None:
    names = [NNW, *(THW + label for label in sorted({m.label for m in sentence.mentions}))]
    soft = _certain(sentence, names)
    assert soft.mentions() == sentence.mentions
    assert soft.label(sentence.with_(mentions=())).mentions == sentence.mentions
    assert (soft.confidences == 1).all()
    again = RelationProbabilities.from_dict(soft.to_dict())
    assert again.to_dict() == soft.to_dict()


@pytest.mark.parametrize("name", ["soft.jsonl", "soft.parquet"])
def test_files_keep_probabilities(name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    soft = RelationProbabilities(NAMES, 4, [[0, 1, 0], [1, 0, 1], [3, 2, 2]], [0.9, 0.5557, 0.0002], [1, 1, 0.5, 0])
    entaug.write([soft.attach_to(SENTENCE), Sentence(["x"])], tmp_path / name)
    first, second = entaug.read(tmp_path / name)
    again = RelationProbabilities.from_sentence(first)
    assert again is not None
    assert again.to_dict() == soft.to_dict()
    assert again.values.round(4).tolist() == pytest.approx([0.9, 0.5557])  # those of about 0 are left out
    assert again.weights is not None
    assert RelationProbabilities.from_sentence(second) is None
    assert first.mentions == SENTENCE.mentions


def test_means_count_what_is_missing_as_0() -> None:
    one = RelationProbabilities(["THW-A", NNW], 2, [[0, 0, 0], [0, 1, 1]], [0.8, 0.4])
    other = RelationProbabilities([NNW, "THW-B"], 2, [[0, 1, 0], [1, 1, 1]], [0.6, 0.2])
    mean = RelationProbabilities.mean([one, other])
    assert mean.names == (NNW, "THW-A", "THW-B")
    assert {tuple(c): round(float(v), 6) for c, v in zip(mean.cells.tolist(), mean.values, strict=True)} == {
        (0, 1, 0): 0.5,
        (0, 0, 1): 0.4,
        (1, 1, 2): 0.1,
    }


@pytest.mark.parametrize(
    ("names", "cells", "values", "message"),
    [
        (["THW-A"], [], [], "must be distinct, NNW and"),
        ([NNW, NNW], [], [], "distinct"),
        ([NNW, 3], [], [], "with labels"),
        ([NNW, "THW-A"], [[0, 1, 1]], [1], "diagonal"),
        ([NNW, "THW-A"], [[1, 1, 0]], [1], "diagonal"),
        ([NNW, "THW-A"], [[0, 2, 0]], [1], "outside"),
        ([NNW, "THW-A"], [[0, 1, 2]], [1], "outside"),
        ([NNW, "THW-A"], [[-1, 1, 0]], [1], "outside"),
        ([NNW, "THW-A"], [[0, 1, 0]], [1.5], "from 0 to 1"),
        ([NNW, "THW-A"], [[0, 1, 0]], [float("nan")], "from 0 to 1"),
        ([NNW, "THW-A"], [[0, 1, 0]], [1, 1], "as many probabilities"),
        ([NNW, "THW-A"], [[0, 1, 0]] * 2, [1, 1], "stands once"),
    ],
)
def test_what_is_no_probability_of_a_relation_is_refused(names: Any, cells: Any, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RelationProbabilities(names, 2, cells, values)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([NNW, "THW-A"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
KEYS = ("relations", "words", "rows", "columns", "ids", "values", "weights")


@given(st.dictionaries(st.sampled_from(KEYS), JUNK))
def test_any_dictionary_is_read_or_refused(changes: Any) -> None:
    data = {**RelationProbabilities(NAMES, 3, [[0, 1, 0]], [0.5]).to_dict(), **changes}
    try:
        soft = RelationProbabilities.from_dict(data)
    except EntaugError:
        return
    soft.mentions()


def test_a_sentence_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="4 words for 1"):
        RelationProbabilities.from_sentence(_certain(SENTENCE).attach_to(Sentence(["one"])))


# ------------------------------------------------------------------------------------------------------------ learning


def _head() -> Any:
    torch.manual_seed(1)
    return GridDecoder(6, ["ADR", "PART"], W2NERTagger(hidden=4, channels=4, biaffine=4, dropout=0.0))


def test_certain_soft_targets_are_hard_ones() -> None:
    head, vectors = _head(), torch.randn(2, 4, 6)
    plain = Sentence("a b".split())
    hard = head.loss(vectors, [4, 2], [head.targets(s) for s in (SENTENCE, plain)])
    soft = [_certain(s).attach_to(s.with_(mentions=())) for s in (SENTENCE, plain)]
    torch.testing.assert_close(hard, head.loss(vectors, [4, 2], [head.targets(s) for s in soft]))


def test_the_soft_loss_is_smallest_at_the_probabilities_of_the_teacher() -> None:
    head, vectors = _head(), torch.randn(1, 4, 6)
    [own] = head.probabilities(vectors, [4])
    own = RelationProbabilities(own.names, 4, own.cells, own.values)
    head.loss(vectors, [4], [head.targets(own.attach_to(SENTENCE))]).backward()
    largest = max(float(p.grad.abs().max()) for p in head.parameters())
    assert largest < 1e-3
    head.zero_grad()
    head.loss(vectors, [4], [head.targets(SENTENCE)]).backward()
    assert max(float(p.grad.abs().max()) for p in head.parameters()) > 0.1


@pytest.mark.parametrize("kind", ["relations", "tags"])
def test_words_of_weight_0_teach_nothing(kind: str) -> None:
    head, vectors = _head(), torch.randn(1, 4, 6)

    def loss(sentence: Sentence, weights: list[float]) -> float:
        soft: Any = _certain(sentence, weights=weights)
        if kind == "tags":
            soft = TagProbabilities(["O"], [[1.0]] * 4, weights)
        return float(head.loss(vectors, [4], [head.targets(soft.attach_to(sentence))]).detach())

    other = SENTENCE.with_(mentions=[m for m in SENTENCE.mentions if m.label == "ADR"])
    assert loss(SENTENCE, [1, 1, 0, 1]) == pytest.approx(loss(other, [1, 1, 0, 1]), rel=1e-6)
    assert loss(SENTENCE, [1, 1, 1, 1]) != pytest.approx(loss(other, [1, 1, 1, 1]), rel=1e-3)
    assert loss(SENTENCE, [0, 0, 0, 0]) == 0


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    encoder = tiny.save(tmp_path_factory.mktemp("encoder") / "bert", "bert")
    return {"encoder": str(encoder), "device": "cpu", "precision": "fp32"}


def test_a_student_agrees_with_a_teacher_and_an_ensemble_averages(
    params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small_head(self: Any, size: int) -> GridDecoder:
        return GridDecoder(size, self.labels_, W2NERTagger(hidden=48, channels=24, biaffine=32))

    monkeypatch.setattr(W2NERTagger, "build_decoder", small_head)
    teacher = EnsembleTagger(member="w2ner", size=2, params=params).fit(GOLD, config=CONFIG)
    predicted = teacher.predict(GOLD)
    assert score(GOLD, predicted).micro.f1 > 0.8
    with pytest.raises(ParameterError, match="no probabilities to tags"):
        teacher.tag_probabilities(GOLD)
    soft = teacher.relation_probabilities(GOLD)
    by_member = [member.relation_probabilities(GOLD) for member in teacher.members_]
    expected = RelationProbabilities.mean([by_member[0][0], by_member[1][0]])
    np.testing.assert_allclose(soft[0].values, expected.values)
    # The student sees the text and the probabilities; its own gold sentence names the labels.
    unlabelled = [one.attach_to(s.with_(mentions=())) for one, s in zip(soft, GOLD, strict=True)]
    student: Any = create_tagger("w2ner", **params)
    student.fit(GOLD[:1], config=CONFIG, augmented=unlabelled)
    assert score(predicted, student.predict(GOLD)).micro.f1 > 0.8
    teacher.save(tmp_path / "teacher")
    assert load_tagger(tmp_path / "teacher").predict(GOLD) == predicted
    flat = EnsembleTagger(params=params).fit([Sentence(["a"], [Mention("X", [(0, 1)])])], config=CONFIG)
    with pytest.raises(ParameterError, match="no relations"):
        flat.relation_probabilities(GOLD)
