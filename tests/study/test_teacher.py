"""Arms with a teacher: self-training, labels of the teacher, methods whose sentences are used together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends.soft_labels import TagProbabilities
from entaug.errors import EntaugError, InputError
from entaug.report.comparison import compare_arms
from entaug.report.markdown import recommend
from entaug.study.data import prepare_splits
from entaug.study.engine import _check_requirements
from entaug.study.plan import read_plan
from entaug.study.runs import RunSpec, _new_sentences, execute_run, gold_folder
from entaug.study.schedule import Schedule, Selection
from entaug.taggers.base import CONFIG_FILE, load_tagger
from helpers import tiny

TRAIN, DEV, TEST = (EXAMPLE / f"{name}.conll" for name in ("train", "dev", "test"))
METHODS = """
[[methods]]
name = "selftrain"
label = "self soft"
labels = "teacher"
ratios = [1]
training = { schedule = "staged", gold_learning_rate = 1e-3 }
[[methods]]
name = "selftrain"
label = "self hard"
labels = "teacher-hard"
[[methods]]
name = "mr"
label = "mr soft"
labels = "teacher"
ratios = [2]
[[methods]]
combine = ["self soft", "mr soft"]
label = "both"
"""


def write_plan(folder: Path, encoder: Path, methods: str = METHODS, unlabelled: str | None = None) -> Path:
    plan = folder / "plan.toml"
    text = f"""
seeds = [1, 2]
baselines = ["gold", "ensemble"]
[training]
steps = 3
batch_size = 8
learning_rate = 2e-3
[[teachers]]
size = 2
[[taggers]]
name = "linear"
encoder = "{encoder}"
precision = "fp32"
[[corpora]]
name = "toy"
train = "{TRAIN}"
test = "{TEST}"
sizes = [16]
max_test = 12
unlabelled = {unlabelled or "{ rest = 20 }"}
missing_types = "allow"
{methods}"""
    plan.write_text(text, encoding="utf-8")
    return plan


def runs_of(plan: Path) -> dict[tuple[str, int], RunSpec]:
    read = read_plan(plan)
    return {(run.arm, run.seed): run for run in Schedule(read, prepare_splits(read)).runs}


def test_arms_learn_from_the_teacher_and_its_taggers_are_trained_once(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_of(write_plan(tmp_path, bert))
    assert {arm for arm, _ in runs} == {"gold", "ensemble", "self soft", "self hard", "mr soft", "both"}
    assert {run.steps for run in runs.values()} == {3}
    assert len({run.key for run in runs.values()}) == len(runs)
    records = {name: execute_run(run)[0] for name, run in runs.items()}
    # Seeds 1 and 2 have teachers of the seeds 1 and 2, and 2 and 3; the taggers of the gold runs are among them.
    teachers = [path for path in (tmp_path / "plan" / "teachers").iterdir() if path.is_dir()]
    assert sorted(path.name.split(".")[-2] for path in teachers) == ["1", "2", "3"]
    assert all(len(record.test.sentences) == 12 for record in records.values())
    assert records["self soft", 1].new == 16
    assert records["both", 1].new == records["self soft", 1].new + records["mr soft", 1].new
    # Whether a teacher was there already makes no difference.
    shutil.rmtree(tmp_path / "plan" / "teachers")
    for name in (("both", 2), ("gold", 2)):
        again = execute_run(runs[name])[0]
        assert again.to_dict() == records[name].to_dict()


@pytest.mark.parametrize("damage", ["{", "", '{"tagger": "linear", "params": {}, "sum": "0"}'])
def test_a_damaged_tagger_of_a_teacher_is_to_be_deleted(damage: str, bert: Path, tmp_path: Path) -> None:
    run = runs_of(write_plan(tmp_path, bert))["gold", 1]
    folder = gold_folder(run, run.tagger, run.seed)
    folder.mkdir(parents=True)
    (folder / CONFIG_FILE).write_text(damage)
    with pytest.raises(InputError, match=r"holds .* tagger .*; delete this folder: its tagger is then") as caught:
        execute_run(run)
    assert caught.value.path == str(folder)


def test_a_teacher_selects_its_epoch_as_the_tagger_of_the_run_does(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert)
    plan.write_text(plan.read_text().replace("steps = 3", 'steps = 3\ncheckpoint = "best"'))
    with pytest.raises(EntaugError, match="no dev set"):
        read_plan(plan)
    found = []
    for dev in (DEV, TRAIN):
        plan.write_text(plan.read_text().replace("[[corpora]]", f'[[corpora]]\ndev_in_test = "allow"\ndev = "{dev}"'))
        runs = runs_of(plan)
        for arm in ("gold", "ensemble", "self soft"):
            execute_run(runs[arm, 1])
        found.append({path for path in (tmp_path / "plan" / "teachers").iterdir() if path.is_dir()})
        assert all(load_tagger(path).history_.best_epoch for path in found[-1])  # type: ignore[attr-defined]
        plan.write_text(plan.read_text().replace(f'\ndev_in_test = "allow"\ndev = "{dev}"', ""))
    assert [len(folders) for folders in found] == [2, 4]  # with another dev set they are others


def test_new_sentences_have_the_labels_that_the_plan_asks_for(bert: Path, tmp_path: Path) -> None:
    runs = runs_of(write_plan(tmp_path, bert))
    gold = list(entaug.read(runs["gold", 1].split.train))
    soft, hard, mr, both = (_new_sentences(runs[arm, 1], gold) for arm in ("self soft", "self hard", "mr soft", "both"))
    members = [load_tagger(path) for path in sorted((tmp_path / "plan" / "teachers").iterdir()) if path.is_dir()]
    for sentence in soft:
        probabilities = TagProbabilities.from_sentence(sentence)
        assert probabilities is not None
        means = np.mean([m.tag_probabilities([sentence])[0].aligned(probabilities.tags) for m in members], axis=0)
        assert probabilities.values == pytest.approx(means, abs=2e-3)
        # Not those of `probabilities`, which are rounded: two tags may be alike to four digits.
        assert sentence.mentions == TagProbabilities(probabilities.tags, means).mentions()
    assert [s.mentions for s in hard] == [s.mentions for s in soft]
    assert all(TagProbabilities.from_sentence(s) is None for s in hard)
    assert all(TagProbabilities.from_sentence(s) is not None and s.provenance and s.mentions for s in mr)
    assert [s.tokens for s in both] == [s.tokens for s in [*soft, *mr]]
    assert runs["self soft", 1].training.schedule == "staged"
    assert runs["gold", 1].training.schedule == runs["both", 1].training.schedule == "shuffled"


def test_unlabelled_sentences_are_never_those_of_train_or_test(bert: Path, tmp_path: Path) -> None:
    everything = tmp_path / "all.jsonl"
    train, test = list(entaug.read(TRAIN)), list(entaug.read(TEST))
    entaug.write([*train, *test, *train], everything)
    run = runs_of(write_plan(tmp_path, bert, unlabelled=f'"{everything}"'))["self soft", 1]
    assert run.split.unlabelled is not None
    unlabelled = list(entaug.read(run.split.unlabelled))
    assert run.split.test is not None
    used = {s.tokens for path in (run.split.train, run.split.test) for s in entaug.read(path)}
    assert unlabelled
    assert not used & {s.tokens for s in unlabelled}
    assert len({s.tokens for s in unlabelled}) == len(unlabelled)
    assert not any(s.mentions for s in unlabelled)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("unlabelled = { rest = 20 }\n", "", "has no unlabelled sentences for self soft"),
        ('combine = ["self soft", "mr soft"]', 'combine = ["self soft", "mr sft"]', "did you mean 'mr soft'"),
        ('combine = ["self soft", "mr soft"]', 'name = "mr"\ncombine = ["mr soft"]', "either a name or combine"),
        ('labels = "teacher-hard"', "", "labels of the teacher"),
        ('schedule = "staged"', 'schedule = "stages"', "schedule must be"),
        ("gold_learning_rate", "gold_lerning_rate", "did you mean 'gold_learning_rate'"),
        ('labels = "teacher-hard"', 'labels = "techer"', "labels must be"),
        ("ratios = [2]", 'ratios = "patience"', "mr soft has the ratio 'patience'"),
        ("size = 2", "size = 0", "size must be"),
        ("size = 2", f"size = {10**30}", "size must be an integer from 1 to 1000, not 1000000"),
        ("size = 2", 'by_corpus = { toy = { encoder = "x" } }', "is the same on all corpora"),
        ("size = 2", "sized = 2", "sized"),
        ("size = 2", 'seeds = "mine"', "seeds must be"),
        ("rest = 20", "rest = 20000", "unlabelled asks for 20,000 sentences"),
        ('label = "both"', 'label = "ensemble"', "is there already, among the teachers"),
        ('labels = "teacher-hard"', 'labels = "teacher-hard"\nteacher = "ensembl"', "did you mean 'ensemble'"),
        ("size = 2", "size = 2\n[[teachers]]\nsize = 3", "is there already, among the teachers"),
    ],
)
def test_faulty_arms_are_refused(old: str, new: str, message: str, bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert)
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new, 1))
    with pytest.raises(EntaugError, match=message) as caught:
        prepare_splits(read_plan(plan))
    assert caught.value.line


def test_requirements_of_arms_without_an_augmenter(bert: Path, tmp_path: Path) -> None:
    plan: Any = read_plan(write_plan(tmp_path, bert))
    assert _check_requirements(Schedule(plan, prepare_splits(plan))) == []


def test_models_of_teachers_are_looked_for_before_any_run(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert)
    missing = f'[[teachers]]\nencoder = "{tmp_path / "none"}"'
    plan.write_text(plan.read_text().replace("[[teachers]]", missing, 1))
    parsed: Any = read_plan(plan)
    with pytest.raises(EntaugError, match="none") as caught:
        _check_requirements(Schedule(parsed, prepare_splits(parsed)))
    assert caught.value.line == plan.read_text().splitlines().index(missing.splitlines()[1]) + 1


def test_a_teacher_is_selected_by_its_label(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert)
    plan.write_text(plan.read_text().replace("size = 2", 'label = "large"', 1))
    parsed = read_plan(plan)
    splits = prepare_splits(parsed)
    selected = Schedule(parsed, splits, Selection.of(["method=large"], parsed)).selected
    assert {run.arm for run in selected} == {"gold", "large"}
    with pytest.raises(EntaugError, match="unknown method 'ensemble'"):
        Selection.of(["method=ensemble"], parsed)


def test_a_teacher_may_be_another_tagger_that_all_runs_share(bert: Path, tmp_path: Path) -> None:
    plan = write_plan(tmp_path, bert)
    larger = tiny.save(tmp_path / "larger", "bert")
    own = f'[[teachers]]\nsize = 1\nseeds = "shared"\nencoder = "{larger}"\nprecision = "fp32"\n'
    own += "training = { steps = 2 }"
    plan.write_text(plan.read_text().replace("[[teachers]]\nsize = 2", own, 1))
    runs = runs_of(plan)
    records = {name: execute_run(runs[name])[0] for name in (("self soft", 1), ("self soft", 2), ("ensemble", 1))}
    teachers = [path for path in (tmp_path / "plan" / "teachers").iterdir() if path.is_dir()]
    assert len(teachers) == 1
    assert load_tagger(teachers[0]).history_.steps == 2  # type: ignore[attr-defined]
    assert records["self soft", 1].key != records["self soft", 2].key
    assert records["self soft", 1].config["arm"]["teacher"]["seeds"] == [1]


def test_reports_show_a_teacher_without_recommending_it(bert: Path, tmp_path: Path) -> None:
    runs = runs_of(write_plan(tmp_path, bert))
    records = [execute_run(runs[arm, seed])[0] for arm in ("gold", "ensemble") for seed in (1, 2)]
    assert [record.is_teacher for record in records] == [False, False, True, True]
    [results] = compare_arms(records).values()
    assert [str(result.arm) for result in results] == ["gold", "ensemble"]
    assert results[1].difference is None
    assert results[1].gain_over_gold is not None
    assert results[1].notes == ("a teacher, not a tagger of this setting",)
    assert "ensemble" not in str(recommend(compare_arms(records)))
