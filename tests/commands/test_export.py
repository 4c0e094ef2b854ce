"""The command ``entaug export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import transformers
from huggingface_hub import DatasetCard, ModelCard

import entaug
from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from helpers import tiny

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagger")
    bert = tiny.save(folder / "bert", "bert")
    gold = entaug.read(EXAMPLE / "train.conll")[:20]
    config = TaggerTrainingConfig(steps=2)
    create_tagger("linear", encoder=str(bert), device="cpu").fit(gold, config=config).save(folder / "tagger")
    return folder / "tagger"


@pytest.fixture
def result(tagger: Path, tmp_path: Path) -> Path:
    """A folder as `entaug.auto` writes it."""
    folder = tmp_path / "result"
    folder.mkdir()
    (folder / "tagger").symlink_to(tagger)
    gold = entaug.read(EXAMPLE / "train.conll")[:20]
    new = entaug.create_augmenter("mr").fit(gold).augment(gold)
    entaug.write([*gold, *new], folder / "train.jsonl")
    lines = ["chosen: mr", "result: mr with minilm: about F1 57.3, +5.6 (3.1 to 8.1) over gold alone", "next: more"]
    (folder / "summary.json").write_text(json.dumps({"recipe": "mr", "text": lines}))
    return folder


def test_a_result_is_exported_with_cards(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    assert main(["export", str(result), "-o", str(out), "--license", "cc-by-4.0"]) == 0
    assert "labels: " in capsys.readouterr().err
    card: Any = ModelCard((out / "README.md").read_text())
    assert (card.data.library_name, card.data.license, card.data.language) == ("transformers", "cc-by-4.0", "en")
    assert card.data.pipeline_tag == "token-classification"
    assert "+5.6 (3.1 to 8.1) over gold alone" in card.text
    assert "next: more" not in card.text
    data: Any = DatasetCard((out / "DATA.md").read_text())
    assert data.data.task_categories == ["token-classification"]
    counts = entaug.read(result / "train.jsonl")
    new = sum(sentence.provenance is not None for sentence in counts)
    assert new > 0
    assert f"- {len(counts)} sentences" in data.text
    assert f"- {new} by the method `mr`" in data.text
    assert transformers.pipeline("token-classification", str(out))("Ada left Rome .") is not None
    assert main(["export", str(result), "-o", str(out)]) == 3


def test_what_is_not_known_is_said(tagger: Path, tmp_path: Path) -> None:
    assert main(["export", str(tagger), "-o", str(tmp_path / "model"), "--to", "spacy", "--language", "de"]) == 0
    text = (tmp_path / "model" / "README.md").read_text()
    assert "Not known: the tagger was exported without a result" in text
    assert "Not known: name the file" in text
    assert "Not stated." in text
    assert json.loads((tmp_path / "model" / "meta.json").read_text())["lang"] == "de"


def test_the_language_is_that_of_the_training_sentences(
    tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tags = ["O", "O", "O", "B-LOC", "I-LOC", "O"]
    entaug.write([Sentence.from_iob(list("他住在北京。"), tags)] * 9, tmp_path / "train.jsonl")
    argv = ["export", str(tagger), "--to", "spacy"]
    assert main([*argv, "-o", str(tmp_path / "zh"), "--train", str(tmp_path / "train.jsonl")]) == 0
    assert "note:" not in capsys.readouterr().err
    assert json.loads((tmp_path / "zh" / "meta.json").read_text())["lang"] == "zh"
    assert "language: zh" in (tmp_path / "zh" / "README.md").read_text()
    assert main([*argv, "-o", str(tmp_path / "en")]) == 0
    assert "note: the language is taken to be English: name another (--language)" in capsys.readouterr().err
    assert json.loads((tmp_path / "en" / "meta.json").read_text())["lang"] == "en"


def test_nothing_is_left_of_a_failed_export(tagger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tagger), "-o", str(tmp_path / "model"), "--to", "spacy", "--language", "xq"]) == 2
    assert "spaCy has no language 'xq'" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "model")]) == 2
    assert "holds no tagger" in capsys.readouterr().err
