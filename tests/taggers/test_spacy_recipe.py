"""The recipe for spaCy of docs/trainers.md: a DocBin of confident sentences, trained by spaCy's own commands."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli._util import setup_cli

import entaug
from helpers.trainer_recipes import blocks, prepare


def test_the_recipe_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    [code] = blocks("spaCy")
    exec(code, {})  # noqa: S102
    gold, new = list(entaug.read("train.conll")), list(entaug.read("new.jsonl"))
    docs = list(spacy.tokens.DocBin().from_disk("train.spacy").get_docs(spacy.blank("en").vocab))
    expected = [*gold, *new[:10]]  # the unsure half is left out
    assert [[token.text for token in doc] for doc in docs] == [list(s.tokens) for s in expected]
    spans = [[(ent.label_, ent.start, ent.end) for ent in doc.ents] for doc in docs]
    assert spans == [[(m.label, m.start, m.end) for m in s.mentions] for s in expected]

    commands, *_ = blocks("spaCy", "")
    init, train = [shlex.split(line) for line in commands.splitlines()]
    assert init[:3] == train[:3] == ["python", "-m", "spacy"]
    few = ["--training.max_steps", "4", "--training.eval_frequency", "2"]
    for arguments in (init[3:], [*train[3:], *few]):
        monkeypatch.setattr("sys.argv", ["spacy", *arguments])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # spaCy's own
            with pytest.raises(SystemExit) as caught:
                setup_cli()
        assert caught.value.code == 0
    nlp = spacy.load("model/model-last")
    recognizer: Any = nlp.get_pipe("ner")
    assert set(recognizer.labels) == {m.label for s in expected for m in s.mentions}
