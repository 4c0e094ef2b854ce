"""Records of others: merged whole or not at all, and only where they are runs of the plan on the same sentences."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

import entaug
from conftest import EXAMPLE, ROOT
from entaug.commands.main import main
from entaug.core.corpus import Corpus
from entaug.errors import EntaugError, InputError, UnknownNameError
from entaug.metrics.span_f1 import score
from entaug.study.data import prepare_splits, short_hash
from entaug.study.engine import run_experiment
from entaug.study.merge import ENVIRONMENT, _Check, _most_sentences, merge_records
from entaug.study.plan import Plan, read_plan
from entaug.study.planned import PLAN_FILE, RunCount, read_known_plan
from entaug.study.records import RECORDS_FILE, RunRecord
from entaug.study.runs import current_environment
from entaug.study.schedule import Schedule
from helpers import tiny

Change = Callable[[dict[str, Any]], object]
PLAN = """
seeds = [1, 2]
baselines = ["gold", "gold-steps", "duplicate"]
[training]
steps = 2
batch_size = 4
[[taggers]]
name = "linear"
encoder = "{encoder}"
precision = "fp32"
[[methods]]
name = "mr"
[[methods]]
name = "lwtr"
grid = {{ p = [0.1, 0.5] }}
[[corpora]]
name = "toy"
train = "{corpus}/train.conll"
test = "{corpus}/test.conll"
dev = "{corpus}/dev.conll"
sizes = [16]
max_test = 20
missing_types = "allow"
"""


@pytest.fixture(scope="module")
def study(kept_process: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plan, and the records of all its runs."""
    folder = tmp_path_factory.mktemp("study")
    encoder = tiny.save(folder / "bert", "bert")
    (folder / "plan.toml").write_text(PLAN.format(encoder=encoder, corpus=EXAMPLE), encoding="utf-8")
    with patch("entaug.study.engine.process_pool", lambda *_: contextlib.nullcontext(kept_process)):
        run_experiment(folder / "plan.toml", jobs=1)
    return folder


@pytest.fixture
def plan(study: Path, tmp_path: Path) -> Plan:
    """The same plan on another machine, where nothing has been run."""
    shutil.copy(study / "plan.toml", tmp_path)
    return read_plan(tmp_path / "plan.toml")


def values_of(study: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (study / "plan" / RECORDS_FILE).read_text("utf-8").splitlines()]


def handed_in(folder: Path, values: list[dict[str, Any]]) -> Path:
    path = folder / "others.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def test_all_records_merged_are_those_of_the_study(study: Path, plan: Plan) -> None:
    merged = merge_records(plan, [study / "plan"])
    keys = {value["key"] for value in values_of(study)}
    assert (merged.added, merged.known, merged.notes) == (len(keys), 0, ())
    # Also what dev chose, for which some of the runs are known only from the records of others.
    for name in (RECORDS_FILE, PLAN_FILE):
        assert (plan.output / name).read_bytes() == (study / "plan" / name).read_bytes()
    assert merged.plan == read_known_plan([plan.output]).count == RunCount(number := len(values_of(study)), number)
    state = run_experiment(plan, jobs=1)
    assert state.runs_done == state.previously_done == state.runs


def test_records_that_another_process_adds_meanwhile_are_counted(
    study: Path, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *rest = values_of(study)
    mine, others = handed_in(tmp_path, [first]), "".join(json.dumps(value) + "\n" for value in rest)

    @contextlib.contextmanager
    def lock_after_others(path: Path) -> Iterator[None]:
        path.write_text(others, encoding="utf-8")
        yield

    monkeypatch.setattr("entaug.study.merge.lock", lock_after_others)
    merged = merge_records(plan, [mine])
    assert merged.plan.is_complete
    assert merged.plan == read_known_plan([plan.output]).count


def test_a_test_set_is_read_and_scored_once_for_all_training_sets(
    study: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = _Check(Schedule(plan, prepare_splits(plan)))
    [[run, *_], *_] = check.runs.values()
    assert run.split.test
    test = list(entaug.read(run.split.test))
    trains = [run.split.train, EXAMPLE / "dev.conll", run.split.train]
    scored = [score(test, test, entaug.read(train)) for train in trains]
    reads: list[Path] = []

    def read(path: Path) -> Corpus:
        reads.append(path)
        return entaug.read(path)

    monkeypatch.setattr("entaug.study.merge.read", read)
    for train, scores in zip(trains, scored, strict=True):
        assert not list(check.faults_of_scores("test", scores, run.split.test, train))
    assert reads == [run.split.test, *trains[:2]]
    assert scored[0].by_novelty != scored[1].by_novelty
    [fault] = check.faults_of_scores("test", scored[0], run.split.test, trains[1])
    assert fault == "test has other gold mentions in by_novelty than the corpus here"


def test_a_part_in_any_order_is_completed_by_a_second_part(study: Path, plan: Plan, tmp_path: Path) -> None:
    values = values_of(study)
    last = handed_in(tmp_path, values[::-1][: len(values) // 2])
    first = merge_records(plan, [last])
    again = merge_records(plan, [last])
    assert (again.added, again.known) == (0, first.added)
    assert first.plan == again.plan == read_known_plan([plan.output]).count
    assert not first.plan.is_complete
    rest = merge_records(plan, [study / "plan" / RECORDS_FILE])
    assert first.added + rest.added == len({value["key"] for value in values})
    assert (plan.output / RECORDS_FILE).read_bytes() == (study / "plan" / RECORDS_FILE).read_bytes()


def test_a_run_of_two_machines_is_kept_once_and_a_large_difference_is_told(
    study: Path, plan: Plan, tmp_path: Path
) -> None:
    value = next(value for value in values_of(study) if value["arm"] == "mr")
    other = json.loads(json.dumps(value))
    set_perfect(other["test"], other["test_counts"])
    other = RunRecord.from_dict(other).to_dict()
    other["environment"]["torch"] = "1.0"
    merge_records(plan, [handed_in(tmp_path, [value])])
    before = (plan.output / RECORDS_FILE).read_bytes()
    merged = merge_records(plan, [handed_in(tmp_path, [other])])
    assert (merged.added, merged.known) == (0, 1)
    (note,) = merged.notes
    assert note.startswith("toy, 16, linear, mr 1N, seed 1: F1 100.0 in ")
    assert note.endswith("before, which is kept")
    assert (plan.output / RECORDS_FILE).read_bytes() == before
    (plan.output / RECORDS_FILE).unlink()
    merged = merge_records(plan, [handed_in(tmp_path, [value, other])])
    assert (merged.added, merged.known, merged.notes) == (1, 0, (note.replace(":1,", ":2,"),))
    assert (plan.output / RECORDS_FILE).read_bytes() == before


def set_perfect(test: dict[str, Any], counts: dict[str, Any]) -> None:
    """Let all mentions be found, and no others."""
    for part in ("by_type", "by_mention_length", "by_sentence_length", "by_kind", "by_novelty"):
        for of in test[part].values():
            of |= {"correct": of["gold"], "predicted": of["gold"]}
    counts |= {"correct": counts["gold"], "predicted": counts["gold"]}
    test["errors"] = dict.fromkeys(test["errors"], 0)


def test_versions_of_libraries_that_differ_are_told(study: Path, plan: Plan, tmp_path: Path) -> None:
    values = values_of(study)[:2]
    values[0]["environment"]["torch"] = "1.0"
    second = values[1] if values[1]["key"] != values[0]["key"] else values_of(study)[-1]
    (note,) = merge_records(plan, [handed_in(tmp_path, [values[0], second])]).notes
    assert note.startswith("the records are of torch 1.0 and ")


def test_a_record_of_before_novelty_is_merged(study: Path, plan: Plan, tmp_path: Path) -> None:
    values = values_of(study)
    for value in values:
        for scores in (value["test"], value["dev"]):
            del scores["by_novelty"], scores["errors"]
    assert merge_records(plan, [handed_in(tmp_path, values)]).added == len({value["key"] for value in values})


def set_config(**changes: Any) -> Change:
    """Change the configuration, and the key with it, as another plan or installation would."""

    def change(value: dict[str, Any]) -> None:
        value["config"] |= changes
        value["key"] = short_hash(value["config"])

    return change


def set_labels(**labels: Any) -> Change:
    return lambda value: (value.update(labels), set_config(seed=99)(value))


def set_impossible(value: dict[str, Any]) -> None:
    label = next(iter(value["test"]["by_type"]))
    value["test"]["by_type"][label]["correct"] += 100
    value["test_counts"]["correct"][0] += 100


def set_text(value: dict[str, Any]) -> None:
    next(iter(value["test"]["by_kind"].values()))["gold"] = "3"


def move_gold(part: str) -> Change:
    """Put all mentions under one key of a part, whose counts add up all the same."""

    def change(value: dict[str, Any]) -> None:
        value["test"][part] = {next(iter(value["test"][part])): value["test"]["micro"]}

    return change


def swap_sentences(value: dict[str, Any]) -> None:
    for numbers in value["test_counts"].values():
        numbers.reverse()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (set_labels(corpus="news"), UnknownNameError, "corpus: 'news'"),
        (set_labels(tagger="w2ner"), UnknownNameError, "tagger of toy, 16: 'w2ner'"),
        (set_labels(arm="aclm"), UnknownNameError, "arm of toy, 16, linear: 'aclm'"),
        (set_labels(amount=7), UnknownNameError, "ratio of toy, 16, linear, mr: '7'"),
        (set_labels(seed=3), UnknownNameError, "seed of .*: '3'"),
        (set_config(train="0" * 16), InputError, "train 0000000000000000 instead of .*release of the corpus"),
        (set_config(test="0" * 16), InputError, "test 0000000000000000 instead of"),
        (set_config(entaug="0.0.1"), InputError, "entaug 0.0.1 instead of .*version of this installation"),
        (set_config(computed={"device": "cuda", "precision": None}), InputError, "device cuda .* without `device`"),
        (set_config(steps=9), InputError, "steps 9 instead of 2"),
        (lambda value: value["config"].update(steps=9), InputError, "is not that of its configuration"),
        (lambda value: value.update(steps=9), InputError, "steps is 9, and the run has 2"),
        (lambda value: value.update(arm="gold"), InputError, "but it says it is toy, 16, linear, gold 1N"),
        (lambda value: value["sentences"].update(new=17), InputError, "new is 17, and the ratio asks for 16"),
        (lambda value: value["sentences"].update(new=-1), InputError, "new is -1"),
        (lambda value: value.update(new_in_test=99), InputError, "new_in_test is 99"),
        (lambda value: value.update(dev=None), InputError, "dev is missing"),
        (lambda value: value.pop("test_counts"), InputError, "test_counts"),
        (set_impossible, InputError, "impossible counts"),
        (set_text, InputError, "counts from 0"),
        (lambda value: value["test"]["by_kind"]["flat"].update(predicted=999), InputError, "do not add up"),
        (swap_sentences, InputError, "other sentences than the corpus here"),
        (move_gold("by_mention_length"), InputError, "other gold mentions in by_mention_length than the corpus"),
        (move_gold("by_sentence_length"), InputError, "other gold mentions in by_sentence_length than the corpus"),
        (
            lambda value: value["test"].update(by_kind={"<b>": value["test"]["micro"]}),
            InputError,
            "other gold mentions in by_kind than the corpus",
        ),
        (lambda value: value["test"].update(by_kind={}), InputError, "counts do not add up"),
        (move_gold("by_novelty"), InputError, "other gold mentions in by_novelty than the corpus"),
        (lambda value: value["test"]["errors"].update(missing=999), InputError, "errors that do not add up"),
        (lambda value: value["test"]["errors"].update({"<b>": 0}), InputError, "errors that do not add up"),
        (lambda value: value["dev"]["errors"].update(spurious=999), InputError, "dev has errors that do not add up"),
        (lambda value: value.update(fold=None), InputError, "not as an experiment writes it: fold, which is none"),
        (lambda value: value.pop("seed"), InputError, "seed"),
        (lambda value: value.pop("environment"), InputError, "environment"),
        (lambda value: value["environment"].pop("torch"), InputError, "environment must have texts for python, torch"),
        (lambda value: value["environment"].update(torch=""), InputError, "environment must have texts"),
        (lambda value: value["environment"].update(user="x"), InputError, "environment must have texts"),
        (lambda value: value["environment"].update(device="made up"), InputError, "device is 'made up'"),
        (lambda value: value.update(extra=1), InputError, "not as an experiment writes it: extra 1"),
        (lambda value: value["test"].update(extra=1), InputError, "test extra 1"),
        (lambda value: value["test"]["micro"].update(f1=1), InputError, "test micro f1 1 instead of"),
        (lambda value: value.pop("leaks"), InputError, "leaks None instead of"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_with_its_line(
    change: Change, error: type[EntaugError], message: str, study: Path, plan: Plan, tmp_path: Path
) -> None:
    values = values_of(study)
    number = next(i for i, value in enumerate(values) if value["arm"] == "mr")
    change(values[number])
    path = handed_in(tmp_path, values)
    with pytest.raises(error, match=message) as caught:
        merge_records(plan, [path])
    assert (caught.value.path, caught.value.line) == (str(path), number + 1)
    assert not (plan.output / RECORDS_FILE).exists()


def test_a_file_that_was_cut_off_is_refused(study: Path, plan: Plan, tmp_path: Path) -> None:
    path = handed_in(tmp_path, values_of(study))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="no JSON") as caught:
        merge_records(plan, [path])
    assert caught.value.line == len(values_of(study))


def test_the_command_checks_and_merges(
    study: Path, plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["experiment", str(tmp_path / "plan.toml"), "--merge", str(study / "plan" / RECORDS_FILE)]
    assert main([*arguments, "--check"]) == 0
    assert "valid: " in capsys.readouterr().err
    assert not (plan.output / RECORDS_FILE).exists()
    assert main(arguments) == 0
    assert f"merged into {plan.output}" in (told := capsys.readouterr().err)
    assert re.search(r"with them (\d+) of \1 runs of the plan are done", told)
    assert main(["experiment", str(tmp_path / "plan.toml"), "--merge", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err
    assert main(["experiment", str(tmp_path / "plan.toml"), "--merge", str(study / "plan"), "--only", "seed=1"]) == 2
    assert "with merge nothing is run, so jobs, only and sentences-only have no effect" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------------------- schema

SCHEMA = ROOT / "benchmarks" / "atlas" / "record.schema.json"


def test_the_schema_has_the_keys_of_records(study: Path) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    line = values_of(study)[0]
    record = RunRecord.from_dict(line)
    least = RunRecord("k", "c", 1, "t", "gold", 0, 1, 1, 0, record.test).to_dict()
    most = RunRecord.from_dict(
        {
            **line,
            "subset_seed": 1,
            "fold": [1, 2],
            "group": "g",
            "chosen": True,
            "tests": {"a": {**line["test"], "test_counts": line["test_counts"]}},
        }
    ).to_dict()
    assert set(schema["required"]) == least.keys()
    assert set(schema["properties"]) == most.keys()
    assert set(schema["properties"]["environment"]["required"]) == set(ENVIRONMENT) == current_environment().keys()
    scores = schema["$defs"]["scores"]
    assert set(scores["properties"]) == {*most["test"], "test_counts"}
    assert set(schema["$defs"]["counts"]["required"]) == most["test"]["micro"].keys()
    assert set(schema["properties"]["test_counts"]["properties"]) == most["test_counts"].keys()


def test_the_schema_accepts_real_records_and_no_others(study: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
    validator.check_schema(validator.schema)
    committed = ROOT.glob("benchmarks/results/*/runs.jsonl")
    lines = [path.read_text("utf-8").splitlines()[0] for path in committed if "auto" not in path.parent.name]
    values = [*values_of(study), *map(json.loads, lines)]
    for value in values:
        validator.validate(value)
    changes: list[Change] = [
        lambda value: value.pop("key"),
        lambda value: value.update(extra=1),
        lambda value: value["environment"].pop("torch"),
        lambda value: value["environment"].update(device="made up"),
        lambda value: value["sentences"].update(new=-1),
        lambda value: value["test"]["by_type"].update(X={"correct": 1.5}),
        lambda value: value.update(seed="1"),
    ]
    for change in changes:
        value = json.loads(json.dumps(values[0]))
        change(value)
        assert not validator.is_valid(value)


def test_of_a_combination_each_part_is_rounded() -> None:
    parts = {"combine": ("a", "b")}
    run: Any = SimpleNamespace(own_teacher=None, arm="both", method=SimpleNamespace(**parts), parts=["a", "b"])
    run.ratio_of, run.split = lambda _: 0.75, SimpleNamespace(num_gold=50)
    assert _most_sentences(run) == 2 * 38
