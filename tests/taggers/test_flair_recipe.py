"""The recipe for Flair of docs/trainers.md. Flair is in no extra: it needs another version of transformers.

To run this test, install flair, pytest, hypothesis and entaug into an environment of their own.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import entaug
from helpers import tiny
from helpers.trainer_recipes import blocks, prepare, replaced

pytest.importorskip("flair", reason="Flair is not installed: the recipe is checked in an environment of its own")


def test_the_recipe_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    tiny.save(tmp_path / "encoder", "bert")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    [code] = blocks("Flair")
    namespace: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Flair's own
        exec(replaced(code, {"max_epochs=10": "max_epochs=1"}), namespace)  # noqa: S102
    corpus = namespace["corpus"]
    gold, new = list(entaug.read("train.conll")), list(entaug.read("new.jsonl"))
    expected = [*gold, *new[:10]]  # the unsure half is left out
    read = list(corpus.train)  # type: ignore[attr-defined]
    assert [[token.text for token in sentence] for sentence in read] == [list(s.tokens) for s in expected]
    spans = [
        [(span.tag, span.tokens[0].idx - 1, span.tokens[-1].idx) for span in sentence.get_spans("ner")]
        for sentence in read
    ]
    assert spans == [[(m.label, m.start, m.end) for m in s.mentions] for s in expected]
    assert Path("flair-model", "final-model.pt").is_file()
