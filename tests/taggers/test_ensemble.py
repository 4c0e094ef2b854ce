"""Ensembles: members, averages, saving and loading, parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import EXAMPLE
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.formats import read
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger
from entaug.taggers.ensemble import EnsembleTagger
from helpers import tiny

GOLD = list(read(EXAMPLE / "train.conll"))[:16]
CONFIG = TaggerTrainingConfig(steps=30, batch_size=8, learning_rate=2e-3, head_learning_rate=5e-3, seed=4)


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    encoder = tiny.save(tmp_path_factory.mktemp("encoder") / "bert", "bert")
    return {"encoder": str(encoder), "device": "cpu", "precision": "fp32"}


@pytest.fixture(scope="module")
def ensemble(params: dict[str, Any]) -> EnsembleTagger:
    return EnsembleTagger(size=2, params=params).fit(GOLD, config=CONFIG)


def test_members_are_trained_with_successive_seeds(ensemble: EnsembleTagger, params: dict[str, Any]) -> None:
    second = create_tagger("linear", **params).fit(GOLD, config=TaggerTrainingConfig(**{**vars(CONFIG), "seed": 5}))
    mine = ensemble.members_[1].tag_probabilities(GOLD)
    for a, b in zip(mine, second.tag_probabilities(GOLD), strict=True):
        np.testing.assert_array_equal(a.values, b.values)
    assert ensemble.history_.steps == 60
    assert ensemble.labels_ == ensemble.members_[0].labels_


def test_probabilities_are_means_and_predictions_follow_them(ensemble: EnsembleTagger) -> None:
    soft = ensemble.tag_probabilities(GOLD)
    first, second = (member.tag_probabilities(GOLD) for member in ensemble.members_)
    for one, a, b in zip(soft, first, second, strict=True):
        np.testing.assert_allclose(one.values, (a.values + b.values) / 2, atol=1e-6)
    assert [s.mentions for s in ensemble.predict(GOLD)] == [one.mentions() for one in soft]
    assert ensemble.predict([]) == []


def test_confidences_are_means_of_the_probabilities_of_tags(ensemble: EnsembleTagger) -> None:
    strange = Sentence(["a", "b"], [Mention("NEVER", [(0, 1)])])
    nested = Sentence(["a", "b"], [Mention("PER", [(0, 1)]), Mention("PER", [(0, 2)])])
    *found, no_label, no_tags = ensemble.confidences([*GOLD, strange, nested])
    assert no_label == no_tags == 0
    for sentence, soft, confidence in zip(GOLD, ensemble.tag_probabilities(GOLD), found, strict=True):
        chosen = [row[soft.tags.index(tag)] for row, tag in zip(soft.values, sentence.iob(), strict=True)]
        assert confidence == pytest.approx(float(np.exp(np.mean(np.log(chosen)))), rel=1e-4)


def test_members_with_different_labels_are_averaged_over_all(params: dict[str, Any]) -> None:
    words = "Kent saw Ana".split()
    corpora = [[Sentence(words, [Mention(label, [(0, 1)])])] * 4 for label in ("PER", "LOC")]
    members = [create_tagger("linear", **params).fit(corpus, config=CONFIG) for corpus in corpora]
    both = EnsembleTagger.of(members)
    assert both.labels_ == ["LOC", "PER"]
    [soft] = both.tag_probabilities([Sentence(words)])
    assert soft.tags == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert soft.values[0, 1] > 0.3
    assert soft.values[0, 3] > 0.3


def test_a_saved_ensemble_gives_the_same(ensemble: EnsembleTagger, tmp_path: Path) -> None:
    ensemble.save(tmp_path / "saved")
    again: Any = load_tagger(tmp_path / "saved")
    assert again.get_params() == ensemble.get_params()
    assert again.labels_ == ensemble.labels_
    assert again.predict(GOLD) == ensemble.predict(GOLD)
    assert again.confidences(GOLD) == ensemble.confidences(GOLD)
    given = EnsembleTagger.of(ensemble.members_)
    given.save(tmp_path / "given")
    assert load_tagger(tmp_path / "given").predict(GOLD) == ensemble.predict(GOLD)
    (tmp_path / "saved" / "member-2" / "tagger.json").unlink()
    with pytest.raises(InputError, match="saved: holds a damaged tagger"):
        load_tagger(tmp_path / "saved")


def test_an_interrupted_training_leaves_no_members(params: dict[str, Any]) -> None:
    def interrupt(done: int, total: int, _: float) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    few = TaggerTrainingConfig(steps=1)
    ensemble = EnsembleTagger(size=2, params=params).fit(GOLD, config=few)
    with pytest.raises(KeyboardInterrupt):
        ensemble.fit(GOLD, config=few, progress=interrupt)
    with pytest.raises(ParameterError, match="not trained"):
        ensemble.predict(GOLD)


def test_what_cannot_be_is_refused(params: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="ensemble cannot consist"):
        EnsembleTagger(member="ensemble")
    with pytest.raises(UnknownNameError, match="linear"):
        EnsembleTagger(member="lineal")
    with pytest.raises(UnknownNameError, match="encoder"):
        EnsembleTagger(params={"encodr": "x"})
    for size in (0, 1.5, True):
        with pytest.raises(ParameterError, match="size must be"):
            EnsembleTagger(size=size)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="size must be"):
        EnsembleTagger.of([])
    new = EnsembleTagger(params=params)
    for use in (new.predict, new.tag_probabilities, new.confidences):
        with pytest.raises(ParameterError, match="not trained"):
            use(GOLD)
    with pytest.raises(ParameterError, match="not trained"):
        new.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "tagger.json").write_text(json.dumps({"tagger": "ensemble", "params": {"size": 0}, "sum": ""}))
    with pytest.raises(InputError, match="damaged"):
        load_tagger(tmp_path)
