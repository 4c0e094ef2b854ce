"""A fitted method that was saved makes the same sentences elsewhere."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends.fakes import FakeLexicon, FakeTagger
from entaug.core.data import Mention, Sentence
from entaug.errors import EntaugError, InputError, ParameterError
from entaug.filters import Duplicates
from entaug.methods import create_augmenter
from entaug.methods.combined import CombinedAugmenter, parse_methods
from entaug.methods.fitted import signed
from entaug.teacher import Relabeller
from helpers.odd_values import changed, places

ODD: list[Any] = [None, -1, float("nan"), "x", "\ud800", [], {"a": {}}]
GOLD = list(entaug.read(EXAMPLE / "train.conll"))
NESTED = [s.with_(mentions=(*s.mentions, Mention("ALL", [(0, len(s))]))) for s in GOLD] + GOLD[:20]


@pytest.mark.parametrize(
    "method", ["mr", "mr:donors=any,p=0.7", "lwtr:copies=2", "sis", "mr:seed=3+lwtr+sis", "mr:filters=duplicates"]
)
@pytest.mark.parametrize("gold", [GOLD, NESTED], ids=["flat", "nested"])
def test_a_saved_fit_makes_the_same_sentences(tmp_path: Path, method: str, gold: list[Sentence]) -> None:
    fitted = parse_methods(method).fit(gold)
    for name in ("fitted.json", "fitted.json.gz"):
        entaug.save_augmenter(fitted, tmp_path / name)
        loaded = entaug.load_augmenter(tmp_path / name)
        assert loaded.is_fitted
        assert loaded.signature == fitted.signature
        assert loaded.notes() == fitted.notes()
        assert [s.to_dict() for s in loaded.augment(gold)] == [s.to_dict() for s in fitted.augment(gold)]
    entaug.save_augmenter(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "fitted.json").read_bytes()
    assert json.loads(gzip.decompress((tmp_path / "fitted.json.gz").read_bytes()))["entaug"] == "augmenter"


@pytest.mark.models
@pytest.mark.parametrize("parser", ["auto", "none"])
def test_a_saved_fit_names_its_word_list_and_its_parser(tmp_path: Path, parser: str) -> None:
    method = f"sr:dependency_parser={parser}"
    fitted = parse_methods(method).fit(NESTED)
    entaug.save_augmenter(fitted, tmp_path / "sr.json")
    loaded = entaug.load_augmenter(tmp_path / "sr.json")
    assert loaded.signature == fitted.signature
    assert loaded.notes() == fitted.notes()
    assert [s.to_dict() for s in loaded.augment(GOLD)] == [s.to_dict() for s in fitted.augment(GOLD)]
    content = json.loads((tmp_path / "sr.json").read_text())
    assert content["state"]["kinds"]["words"]
    (tmp_path / "sr.json").write_bytes(signed({**content, "signature": "sr|lexicon=other"}))
    with pytest.raises(
        InputError, match=r"fitted with other models or parameters: sr\|lexicon=other there, sr\|.* here; prepare"
    ):
        entaug.load_augmenter(tmp_path / "sr.json")


@pytest.mark.models
@pytest.mark.parametrize(
    "method", ["lm", "bt", "cr", "crop", pytest.param("cassi:filters=validity", marks=pytest.mark.slow), "lm+sis"]
)
def test_a_method_with_models_is_fitted_again_where_it_is_loaded(tmp_path: Path, method: str) -> None:
    gold = GOLD[:12]
    fitted = parse_methods(method).fit(gold)
    entaug.save_augmenter(fitted, tmp_path / "fitted.json")
    loaded = entaug.load_augmenter(tmp_path / "fitted.json")
    assert (loaded.signature, loaded.notes()) == (fitted.signature, fitted.notes())
    assert [s.to_dict() for s in loaded.augment(gold)] == [s.to_dict() for s in fitted.augment(gold)]


@pytest.mark.parametrize(("method", "kind"), [("daga", ""), ("entda", "bart"), ("melm", "bert")])
def test_a_trained_model_is_saved_with_its_method(
    tmp_path: Path,
    method: str,
    kind: str,
    tiny_model: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models: dict[str, dict[str, Any]] = {
        "daga": {},
        "entda": {"generator": str(tiny_model(kind)), "max_new_tokens": 12},
        "melm": {"masked_lm": str(tiny_model(kind))},
    }
    gold = GOLD[:12]
    fitted = create_augmenter(
        method, guard=False, epochs=1, checkpoint_dir=str(tmp_path / "checkpoints"), **models[method]
    ).fit(gold)
    entaug.save_augmenter(fitted, tmp_path / "fitted.json.gz")

    def no_training(*args: Any, **options: Any) -> None:
        pytest.fail("the model was trained again")

    shutil.rmtree(tmp_path / "checkpoints")
    monkeypatch.setattr(type(fitted._model), "fit", no_training)  # type: ignore[attr-defined]
    loaded = entaug.load_augmenter(tmp_path / "fitted.json.gz")
    assert loaded.signature == fitted.signature
    assert [s.to_dict() for s in loaded.augment(gold)] == [s.to_dict() for s in fitted.augment(gold)]
    assert not (tmp_path / "checkpoints").exists()
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        loaded.fit(GOLD[12:24])


def test_the_training_sentences_are_needed_to_save_some_methods(tmp_path: Path) -> None:
    path = tmp_path / "fitted.json"
    fitted = create_augmenter("mr", filters="duplicates").fit(iter(GOLD))
    with pytest.raises(ParameterError, match="mr was fitted on sentences that can be read only once; fit it on a list"):
        entaug.save_augmenter(fitted, path)
    for gold in (GOLD, entaug.stream(EXAMPLE / "train.conll")):
        fitted = create_augmenter("mr", filters="duplicates").fit(gold)
        entaug.save_augmenter(fitted, path)
        assert list(entaug.load_augmenter(path).augment(GOLD)) == list(fitted.augment(GOLD))
        unpickled = pickle.loads(pickle.dumps(fitted))  # noqa: S301
        assert list(unpickled.augment(GOLD)) == list(fitted.augment(GOLD))
        with pytest.raises(ParameterError, match="can be read only once"):
            entaug.save_augmenter(unpickled, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": {"checkpoint_dir": "somewhere"}}, "fitted.json: is no fitted method"),
        ({"parameters": {"held_out": [[]]}}, "fitted.json: is no fitted method"),
        ({"parameters": {"p": float("nan")}}, "fitted.json: "),
        ({"parameters": {"copies": -1}}, "fitted.json: copies must be"),
        ({"parameters": {"unknown": 1}}, "fitted.json: "),
        ({"parameters": 7}, "fitted.json: is no fitted method"),
        ({"method": "no method"}, "fitted.json: unknown method 'no method'"),
        ({"method": ["daga"]}, "fitted.json: is no fitted method"),
        ({"methods": []}, "fitted.json: is no fitted method"),
        ({"methods": {"a": 1}}, "fitted.json: is no fitted method"),
        ({"methods": [None]}, "fitted.json: is no fitted method"),
        ({"parameters": {"filters": "nonsense"}}, "fitted.json: unknown filter 'nonsense'"),
        ({"corpus": [1]}, "fitted.json: "),
        ({"corpus": [{"tokens": []}]}, "fitted.json: "),
        ({"corpus": None}, "fitted.json: is no fitted method"),
        ({"existing_ids": 1}, "fitted.json: is no fitted method"),
        ({"trained": {"learned.json": "%%%"}}, "fitted.json: is no fitted method"),
        ({"trained": {"../learned.json": ""}}, "fitted.json: has other files than those of a trained model"),
        ({"trained": {"a" * 300 + ".json": ""}}, "fitted.json: has other files"),
        ({"trained": {"learned.json": "e30="}}, "fitted.json: "),
    ],
)
def test_damaged_and_foreign_files(
    tmp_path: Path, daga: bytes, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    content = json.loads(daga)
    for name, value in change.items():
        content[name] = {**content[name], **value} if isinstance(value, dict) and name == "parameters" else value
    (tmp_path / "fitted.json").write_bytes(signed(content))
    with pytest.raises(EntaugError, match=message) as caught:
        entaug.load_augmenter("fitted.json")
    assert "\n" not in str(caught.value)
    assert "entaug-" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["fitted.json"]


@pytest.mark.parametrize("method", ["mr", "lwtr", "sis", "mr:filters=duplicates", "mr+sis"])
def test_a_file_that_was_changed_is_one_error(tmp_path: Path, method: str) -> None:
    """Wherever and however: the values of a fit are not understood one by one, so all have one sum."""
    path = tmp_path / "fitted.json"
    entaug.save_augmenter(parse_methods(method).fit(GOLD[:3]), path)
    content = json.loads(path.read_text())
    for place in list(places(content))[::13]:
        for odd in ODD:
            other = changed(content, place, odd)
            if other != content:
                path.write_text(json.dumps(other))
                with pytest.raises(EntaugError, match=r"fitted\.json: ") as caught:
                    entaug.load_augmenter(path)
                assert "\n" not in str(caught.value)
    path.write_text(json.dumps({**content, "unknown": 1}))
    with pytest.raises(InputError, match=r"fitted\.json: was changed after it was written; fit the method again"):
        entaug.load_augmenter(path)
    path.write_text(json.dumps(content, indent=2))
    assert entaug.load_augmenter(path).is_fitted, "a tool may have set it in other lines"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"entaug"', "[" * 10**5, '{"entaug": ' * 10**5, "\0"])
def test_what_is_no_fitted_method(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fitted.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"fitted\.json: is no fitted method"):
        entaug.load_augmenter(path)
    entaug.save_augmenter(create_augmenter("sis").fit(GOLD), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"fitted\.json: is no fitted method"):
        entaug.load_augmenter(path)


def test_a_fit_without_that_of_its_filters_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fitted.json"
    entaug.save_augmenter(create_augmenter("sis").fit(GOLD), path)
    content = json.loads(path.read_text())
    path.write_bytes(signed({**content, "parameters": {**content["parameters"], "filters": "duplicates"}}))
    with pytest.raises(InputError, match=r"fitted\.json: is no fitted method"):
        entaug.load_augmenter(path)


@pytest.fixture(scope="module")
def daga(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What is written of a trained method."""
    path = tmp_path_factory.mktemp("daga") / "fitted.json"
    entaug.save_augmenter(create_augmenter("daga", epochs=1, guard=False).fit(GOLD[:12]), path)
    return path.read_bytes()


@pytest.mark.models
def test_the_models_of_filters_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "fitted.json"
    entaug.save_augmenter(create_augmenter("mr", filters="fluency").fit(GOLD[:12]), path)
    content = json.loads(path.read_text())
    assert "smollm2" in content["signature"]
    path.write_bytes(signed({**content, "signature": content["signature"].replace("smollm2", "other")}))
    with pytest.raises(InputError, match=r"fitted.json: was fitted with other models"):
        entaug.load_augmenter(path)


def test_parts_of_a_corpus_are_learned_like_the_whole(tmp_path: Path) -> None:
    for gold in (GOLD, NESTED):
        whole = parse_methods("mr+lwtr").fit(gold)
        parts = CombinedAugmenter([create_augmenter("mr"), create_augmenter("lwtr")]).load()
        learned = parts.learn(gold[:7])
        for start in range(7, len(gold), 20):
            learned.update(parts.learn(gold[start : start + 20]))
        parts.fit_learned(learned)
        for name, one in (("whole", whole), ("parts", parts)):
            entaug.save_augmenter(one, tmp_path / f"{name}.json")
        assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("mr", {}, "mr is not fitted; call fit"),
        (
            "sis",
            {"filters": [Duplicates()]},
            "sis has filters given as Python objects and cannot be saved; give them as text",
        ),
        (
            "sis",
            {"teacher": Relabeller(tagger=FakeTagger())},
            "sis with a teacher cannot be saved; fit it where it is needed",
        ),
        (
            "sr",
            {"lexicon": FakeLexicon({})},
            "sr was given a lexicon object and cannot be saved; give the name of the model instead",
        ),
        (
            "mr",
            {"mentions": {"PER": ["Grace Hopper"]}},
            "mr with lists of mentions cannot be saved; fit it where it is needed",
        ),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path: Path, method: str, parameters: dict[str, Any], message: str) -> None:
    augmenter = create_augmenter(method, **parameters)
    if "not fitted" not in message:
        augmenter.fit(GOLD)
    with pytest.raises(ParameterError, match=message):
        entaug.save_augmenter(augmenter, tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "0.0.0"}, "was written by entaug 0.0.0, and this is .*; fit the method again"),
        ({"entaug": "shard"}, "is no fitted method"),
        ({"state": {"O": 1}}, "is no fitted method"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.json"
    entaug.save_augmenter(create_augmenter("lwtr").fit(GOLD), path)
    path.write_bytes(signed({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=message):
        entaug.load_augmenter(path)
    path.write_text("no JSON")
    with pytest.raises(InputError, match=r"a\.json: is no fitted method; name a file that save_augmenter wrote"):
        entaug.load_augmenter(path)
