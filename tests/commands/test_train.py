"""``entaug train`` with augmented sentences, soft labels, schedules and ensembles."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.study.plan import TaggerPlan
from entaug.taggers.base import TaggerTrainingConfig, load_tagger
from entaug.taggers.relations import RelationProbabilities

pytest.importorskip("torch")

GOLD = list(entaug.read(EXAMPLE / "train.conll"))[:8]
NEW = entaug.augment(GOLD, "mr", copies=1, p=1.0, seed=1)
LABELS = sorted({mention.label for sentence in GOLD for mention in sentence.mentions})
TAGS = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BI")]
ARGUMENTS = ["--steps", "2", "--batch-size", "4", "--device", "cpu", "--json"]


class Recorder:
    """A tagger that keeps what it was given."""

    name = "recorder"

    def fit(self, train: Any, dev: Any = None, config: Any = None, progress: Any = None, augmented: Any = ()) -> Any:
        self.gold, self.augmented, self.labels_ = list(train), list(augmented), LABELS
        return self

    def save(self, folder: Path) -> None:
        folder.mkdir()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    soft = [TagProbabilities(TAGS, [[1.0] * len(TAGS)] * len(s)).attach_to(s) for s in GOLD[:3]]
    entaug.write(GOLD, tmp_path / "gold.conll")
    entaug.write([*GOLD, *NEW], tmp_path / "both.jsonl")
    entaug.write(NEW, tmp_path / "new.jsonl")
    entaug.write([s.with_(id=None, mentions=()) for s in soft], tmp_path / "soft.jsonl")
    return tmp_path


def _fit(files: Path, name: str, schedule: Any = "staged", **more: Any) -> tuple[Recorder, Any]:
    recorder: Any = Recorder()
    config = TaggerTrainingConfig(schedule=schedule)
    return recorder, entaug.train(files / name, files / "tagger", recorder, config=config, **more)


def test_a_file_of_both_kinds_is_split_by_provenance_where_it_matters(files: Path) -> None:
    tagger, summary = _fit(files, "both.jsonl")
    assert [s.tokens for s in tagger.gold] == [s.tokens for s in GOLD]
    assert [s.tokens for s in tagger.augmented] == [s.tokens for s in NEW]
    assert (summary.sentences, summary.augmented, summary.soft_labels) == (len(GOLD) + len(NEW), len(NEW), 0)
    (files / "tagger").rmdir()
    tagger, summary = _fit(files, "both.jsonl", "shuffled")
    assert (len(tagger.gold), tagger.augmented, summary.augmented) == (len(GOLD) + len(NEW), [], 0)
    types = f"{len(LABELS)} type{'s' if len(LABELS) > 1 else ''}"
    assert [*summary.count_lines()] == [f"recorder: {len(GOLD) + len(NEW)} sentences, {types}"], "it has no history"


def test_folders_above_the_tagger_are_made_when_it_is_saved(files: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.conll"):
        entaug.train(files / "nothing.conll", files / "some" / "where" / "tagger")
    assert not (files / "some").exists()
    entaug.train(files / "gold.conll", files / "some" / "where" / "tagger", Recorder())  # type: ignore[arg-type]
    assert (files / "some" / "where" / "tagger").is_dir()


def test_augmented_files_of_several_formats_are_joined_without_gold(files: Path) -> None:
    more = [files / "both.jsonl", files / "soft.jsonl"]
    tagger, summary = _fit(files, "gold.conll", "mixed", augmented=more)
    assert [s.tokens for s in tagger.augmented] == [s.tokens for s in (*NEW, *GOLD[:3])]
    assert summary.soft_labels == 3
    assert summary.to_dict()["augmented"] == len(NEW) + 3


def test_rejected_sentences_are_not_trained_on(files: Path) -> None:
    first, *others = NEW
    assert first.provenance
    refused = first.with_(provenance=replace(first.provenance, rejected="duplicates"))
    entaug.write([refused, *others], files / "some.jsonl")
    notes: list[str] = []
    tagger, summary = _fit(files, "gold.conll", augmented=[files / "some.jsonl"], report=notes.append)
    assert [s.tokens for s in tagger.augmented] == [s.tokens for s in others]
    assert summary.augmented == len(others)
    assert notes == ["1 rejected sentence not used: filters or a review refused them"]


def test_nested_mentions_name_the_file_and_a_tagger_that_learns_them(
    files: Path, bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = Sentence(["Bank", "of", "Rome"], [Mention("ORG", [(0, 3)]), Mention("LOC", [(2, 3)])])
    entaug.write([nested], files / "nested.jsonl")
    command = ["train", str(files / "nested.jsonl"), "-o", str(files / "new"), "--encoder", str(bert), *ARGUMENTS]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "nested.jsonl: a nested mention" in said
    assert "--tagger w2ner" in said
    with pytest.raises(SystemExit):
        main(["train", "--tagger", "linear", "--help"])
    assert "--overlap" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "augmented", "message"),
    [
        ("gold.conll", [], "gold.conll: has no augmented sentences for the schedule staged"),
        ("gold.conll", ["gold.conll"], "no augmented sentences"),
        ("new.jsonl", ["new.jsonl"], "new.jsonl: has augmented sentences only"),
        ("gold.conll", ["none.jsonl"], "none.jsonl"),
        ("gold.conll", ["strange.jsonl"], "types that no gold mention has: STRANGE"),
        ("gold.conll", ["relations.jsonl"], "types that no gold mention has: STRANGE"),
        ("gold.conll", ["short.jsonl"], "1 words for 2"),
    ],
)
def test_what_cannot_be_trained_on_is_told(files: Path, name: str, augmented: list[str], message: str) -> None:
    words = Sentence(["a", "b"])
    strange = TagProbabilities(["O", "B-STRANGE"], [[1, 0], [0, 1]])
    entaug.write([strange.attach_to(words)], files / "strange.jsonl")
    any_shape = RelationProbabilities(["NNW", "THW-STRANGE"], 2, [[0, 1, 0]], [0.4])
    entaug.write([any_shape.attach_to(words)], files / "relations.jsonl")
    entaug.write([TagProbabilities(["O"], [[1]]).attach_to(words)], files / "short.jsonl")
    with pytest.raises(InputError, match=message):
        _fit(files, name, augmented=[files / one for one in augmented])
    assert not (files / "tagger").exists()


def test_train_on_the_command_line(files: Path, bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = files / "tagger"
    train = ["train", str(files / "gold.conll"), "-o", str(folder), "--encoder", str(bert), *ARGUMENTS]
    train += ["--augmented", str(files / "new.jsonl"), str(files / "soft.jsonl"), "--schedule", "staged"]
    assert main([*train, "--first-stage", "0.5", "--gold-share", "0.25", "--gold-learning-rate", "1e-4"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["augmented"], told["soft_labels"], told["labels"]) == (len(NEW) + 3, 3, LABELS)
    assert load_tagger(folder).labels_ == LABELS  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", ["--gold-share", "--first-stage", "--gold-learning-rate"])
def test_options_without_effect_are_told(option: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", str(files / "gold.conll"), "-o", str(files / "tagger"), option, "0.5"]
    assert main(train) == 2
    error = capsys.readouterr().err
    assert f"{option} has no effect with the schedule shuffled" in error
    assert "--schedule" in error


def test_an_ensemble_on_the_command_line(files: Path, bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", str(files / "gold.conll"), "-o", str(files / "tagger"), "--tagger", "ensemble", "--size", "2"]
    train += ["--member", "bilstm-crf", "--encoder", str(bert), "--hidden", "8", "--dropout", "0.2", *ARGUMENTS]
    assert main(train) == 0
    ensemble: Any = load_tagger(files / "tagger")
    assert [type(member).name for member in ensemble.members_] == ["bilstm-crf"] * 2
    assert ensemble.params == {"encoder": str(bert), "hidden": 8, "dropout": 0.2}
    capsys.readouterr()
    assert main(["train", "x", "-o", "y", "--tagger", "ensemble", "--member", "lineal"]) == 2
    assert "linear" in capsys.readouterr().err


def test_plans_give_ensembles_their_overlap() -> None:
    def plan(name: str, **params: Any) -> TaggerPlan:
        return TaggerPlan(name=name, label="x", params=params)

    assert plan("ensemble").is_flat_only
    assert not plan("ensemble", member="w2ner").is_flat_only
    assert not plan("ensemble", params={"overlap": "innermost"}).is_flat_only
    created: Any = plan("ensemble", params={"dropout": 0.2}).create("outermost")
    assert created.params == {"dropout": 0.2, "overlap": "outermost"}
    created = plan("ensemble", params={"overlap": "innermost"}).create("outermost")
    assert created.params == {"overlap": "innermost"}
    assert plan("linear").create("outermost").overlap == "outermost"  # type: ignore[attr-defined]
    assert not hasattr(plan("w2ner").create("outermost"), "overlap")
