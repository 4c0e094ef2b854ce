"""Several processes on one plan, a part of its runs, and the time that they will take."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.errors import EntaugError
from entaug.files.locks import try_claim
from entaug.formats import read
from entaug.metrics.span_f1 import MatchCounts, Scores
from entaug.report.markdown import markdown_report
from entaug.study.data import prepare_splits
from entaug.study.engine import StudyProgress, run_experiment
from entaug.study.plan import read_plan
from entaug.study.planned import PLAN_FILE, RunCount, read_known_plan
from entaug.study.records import RecordStore, RunRecord, read_run_records
from entaug.study.runs import RunSpec
from entaug.study.schedule import Schedule, Selection
from entaug.study.times import seconds_left, seconds_per_step
from entaug.taggers.base import TaggerTrainingConfig
from helpers import tiny
from helpers.counting import wait_until

TRAIN, DEV, TEST = (EXAMPLE / f"{name}.conll" for name in ("train", "dev", "test"))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(
        f"""
        seeds = [1, 2]
        baselines = ["gold", "gold-steps"]
        [training]
        epochs = 1
        [[taggers]]
        name = "linear"
        [[methods]]
        name = "mr"
        ratios = [1, 2]
        [[methods]]
        name = "lwtr"
        ratios = "patience"
        [[corpora]]
        name = "toy"
        train = "{TRAIN}"
        dev = "{DEV}"
        test = "{TEST}"
        sizes = [8, 16]
        """,
        encoding="utf-8",
    )
    return path


def record_of(run: RunSpec) -> RunRecord:
    counts = MatchCounts(1, 2, 2)
    scores = Scores({"X": counts}, {}, {}, {}, (counts,), (3,))
    return RunRecord(run.key, **run.labels(), steps=run.steps, new=3, test=scores, dev=scores)


Execute = Callable[[RunSpec], tuple[RunRecord, float]]


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[Execute], None]:
    """Let threads take the place of processes, and a function that of the training of a tagger."""

    @contextlib.contextmanager
    def pool(jobs: int, threads: int) -> Iterator[ThreadPoolExecutor]:
        del threads
        with ThreadPoolExecutor(jobs) as executor:
            yield executor

    def use(execute: Execute) -> None:
        monkeypatch.setattr("entaug.study.engine.process_pool", pool)
        monkeypatch.setattr("entaug.study.engine._check_requirements", lambda _: [])
        monkeypatch.setattr("entaug.study.engine._POLL", 0.02)
        monkeypatch.setattr("entaug.study.engine.execute_run", execute)

    return use


# ------------------------------------------------------------------------------------------------------------- sharing


def test_processes_share_the_runs_of_a_plan(plan: Path, in_threads: Any) -> None:
    executed: list[str] = []
    numbers, all_have_begun = itertools.count(), threading.Barrier(6, timeout=300)

    def execute(run: RunSpec) -> tuple[RunRecord, float]:
        executed.append(run.key)
        if next(numbers) < all_have_begun.parties:
            all_have_begun.wait()
        time.sleep(0.02)
        return record_of(run), 0.5

    in_threads(execute)
    with ThreadPoolExecutor(3) as processes:
        states = [one.result() for one in [processes.submit(run_experiment, plan, jobs=2) for _ in range(3)]]
    runs = states[0].runs
    assert set(Counter(executed).values()) == {1}
    assert [(state.runs_done, state.previously_done) for state in states] == [(runs, 0)] * 3
    assert all(0 < state.by_others < runs for state in states)
    # The file of records is that of a single process.
    shared = (plan.with_suffix("") / "runs.jsonl").read_bytes()
    (plan.with_suffix("") / "runs.jsonl").unlink()
    assert run_experiment(plan, jobs=1).by_others == 0
    assert (plan.with_suffix("") / "runs.jsonl").read_bytes() == shared
    assert not list(plan.with_suffix("").glob(".*.lock"))


def test_an_interrupted_experiment_has_the_records_of_all_arms_that_share_a_run(plan: Path, in_threads: Any) -> None:
    plan.write_text(plan.read_text(encoding="utf-8").replace("epochs = 1", "steps = 1"), encoding="utf-8")
    in_threads(lambda run: (record_of(run), 0.5))

    def interrupt(state: StudyProgress) -> None:
        if state.runs_done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(plan, jobs=1, progress=interrupt)
    arms = {record.arm for record in read_run_records([plan.with_suffix("")])}
    assert arms == {"gold", "gold-steps"}


def test_runs_that_follow_from_a_record_of_another_process_are_executed(
    plan: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads(pytest.fail)
    schedule, others = Schedule(read_plan(plan), prepare_splits(read_plan(plan))), RecordStore(plan.with_suffix(""))
    at_first = len(schedule.runs)

    def claim_of_a_finished_run(path: Path) -> Any:
        """Let another process finish a run just before it is claimed."""
        schedule.advance(others.records)
        [run, *_] = [run for run in schedule.runs if run.key == path.name]
        others.append(record_of(run), 0.5)
        return try_claim(path)

    monkeypatch.setattr("entaug.study.engine.try_claim", claim_of_a_finished_run)
    state = run_experiment(plan, jobs=1)
    assert state.by_others == state.runs_done == state.runs > at_first


def test_what_another_process_gives_up_is_done_by_those_that_wait(plan: Path, in_threads: Any) -> None:
    in_threads(lambda run: (record_of(run), 0.5))
    first = Schedule(read_plan(plan), prepare_splits(read_plan(plan))).runs[0]
    folder = plan.with_suffix("")
    claim = try_claim(folder / first.key)
    assert claim is not None
    assert try_claim(folder / first.key) is None
    waiting = threading.Event()
    with ThreadPoolExecutor(1) as process:
        done = process.submit(run_experiment, plan, jobs=2, on_wait=waiting.set)
        assert waiting.wait(60)
        wait_until(lambda: len(RecordStore(folder).records) > 1)
        assert first.key not in RecordStore(folder).records
        assert not done.done()
        claim.close()
        state = done.result(60)
    assert state.runs_done == state.runs


def test_records_that_others_write_are_read_also_from_a_sorted_file(plan: Path) -> None:
    runs = Schedule(read_plan(plan), prepare_splits(read_plan(plan))).runs
    folder = plan.with_suffix("")
    mine, other = RecordStore(folder), RecordStore(folder)
    for number, run in enumerate(runs[:3], start=1):
        other.append(record_of(run), 1.0)
        mine.refresh()
        assert len(mine.records) == number
    with (folder / "runs.jsonl").open("ab") as stream:
        stream.write(b'{"key": "half')
    mine.refresh()
    other.append(record_of(runs[3]), 1.0)  # ends the half line
    other.sort([(run.key, run.labels()) for run in reversed(runs)])
    other.append(record_of(runs[4]), 1.0)
    mine.refresh()
    assert mine.records.keys() == {run.key for run in runs[:5]}


# ---------------------------------------------------------------------------------------------------- some of the runs


@pytest.mark.parametrize(
    ("only", "arms"),
    [
        (["method=mr"], {"gold", "gold-steps 1", "gold-steps 2", "mr 1", "mr 2"}),
        (["method=gold"], {"gold"}),
        (["method=gold-steps"], {"gold", "gold-steps 1", "gold-steps 2"}),
        (["method=lwtr"], {"gold", "gold-steps 1", "lwtr 1"}),
        (["seed=2", "size=8"], {"gold", "gold-steps 1", "gold-steps 2", "mr 1", "mr 2", "lwtr 1"}),
    ],
)
def test_some_of_the_runs_with_the_baselines_that_they_need(only: list[str], arms: set[str], plan: Path) -> None:
    parsed = read_plan(plan)
    schedule = Schedule(parsed, prepare_splits(parsed), Selection.of(only, parsed))
    assert {f"{run.arm} {run.ratio:g}".removesuffix(" 0") for run in schedule.selected} == arms
    given = {text.partition("=")[0] for text in only}
    assert {run.seed for run in schedule.selected} == ({2} if "seed" in given else {1, 2})
    assert {run.split.size for run in schedule.selected} == ({8} if "size" in given else {8, 16})


def test_parts_of_a_plan_come_together(plan: Path, in_threads: Any) -> None:
    executed: list[str] = []

    def execute(run: RunSpec) -> tuple[RunRecord, float]:
        executed.append(run.arm)
        return record_of(run), 0.5

    in_threads(execute)
    for only in (["method=mr"], ["method=lwtr"], []):
        executed.clear()
        state = run_experiment(plan, jobs=1, only=only)
        assert state.runs_done == state.runs
        assert {"mr": "mr" in executed, "lwtr": "lwtr" in executed} == {
            name: f"method={name}" in only for name in ("mr", "lwtr")
        }
    assert executed == []
    # Ratios up to the one without a better F1 on dev in three trials were tried, and the first one chosen.
    assert len(RecordStore(plan.with_suffix("")).records) == state.runs


def test_ratios_that_dev_chose_before_and_the_plan_now_lists_are_compared(plan: Path, in_threads: Any) -> None:
    in_threads(lambda run: (record_of(run), 0.5))
    run_experiment(plan, jobs=1)
    plan.write_text(plan.read_text(encoding="utf-8").replace('ratios = "patience"', "ratios = [1]"), encoding="utf-8")
    run_experiment(plan, jobs=1)
    assert {record.search for record in read_run_records([plan.with_suffix("")])} == {"list"}


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("corpus=tony", "unknown corpus 'tony'; did you mean 'toy'"),
        ("method=cassi", "unknown method 'cassi'"),
        ("corpora=toy", "cannot be selected by 'corpora=toy'; write corpus=NAME, size=NAME"),
        ("toy", "cannot be selected by 'toy'"),
        ("size=9", "unknown size '9'; there are: 16, 8"),
        ("seed=3", "unknown seed '3'"),
    ],
)
def test_what_no_run_is_named_by_is_refused(
    only: str, message: str, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", str(plan), "--check", "--only", only]) == 2
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------- times


def test_the_time_is_that_of_the_steps_that_were_taken(plan: Path) -> None:
    parsed = read_plan(plan)
    runs = Schedule(parsed, prepare_splits(parsed)).runs
    keys = {run.key: run.steps for run in runs}
    known = dict.fromkeys([runs[0].key, runs[1].key], 3.0)
    rate = 6.0 / sum(keys[key] for key in known)
    left = sum(steps for key, steps in keys.items() if key not in known)
    assert seconds_left(runs, known, 2, pytest.fail) == pytest.approx(rate * left / 2)
    assert seconds_left(runs, dict.fromkeys(keys, 3.0), 2, pytest.fail) == 0
    *others, last = keys
    known = dict.fromkeys(others, 3.0)  # one run is left, for which one process is enough
    rate = 3.0 * len(others) / sum(keys[key] for key in others)
    assert seconds_left(runs, known, 4, pytest.fail) == pytest.approx(rate * keys[last])


def test_runs_of_other_machines_are_not_left(plan: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(lambda run: (record_of(run), 0.5))
    run_experiment(plan)
    (plan.with_suffix("") / "times.jsonl").unlink()
    monkeypatch.setattr("entaug.study.times.seconds_per_step", pytest.fail)
    assert run_experiment(plan, check_only=True).seconds_left == 0


class SteadyTagger:
    """A tagger whose steps take a while on a clock of its own."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0
        self.steps = self.threads = 0

    def fit(self, train: Any, dev: Any = None, config: Any = None, progress: Any = None) -> None:
        assert dev is None
        self.threads = torch.get_num_threads()
        assert 0 < len(train) <= 8 * config.batch_size
        assert config.checkpoint == "last"
        for self.steps in range(1, config.steps + 1):
            self.now += self.seconds
            progress(self.steps, config.steps, 0.5)


@pytest.mark.parametrize(("seconds", "steps"), [(0.5, 8), (9.0, 4), (100.0, 3)])
def test_a_trial_tells_the_time_of_a_step_and_soon_ends(
    seconds: float, steps: int, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger: Any = SteadyTagger(seconds)
    clock = SimpleNamespace(monotonic=lambda: tagger.now)
    monkeypatch.setattr("entaug.study.times.time", clock)
    gold = list(read(prepare_splits(read_plan(plan))[0].train))
    training = TaggerTrainingConfig(epochs=5, checkpoint="best")
    before = torch.get_num_threads()
    assert seconds_per_step(tagger, gold, training, threads=3) == pytest.approx(seconds)
    assert (tagger.steps, tagger.threads, torch.get_num_threads()) == (steps, 3, before)


def test_where_a_model_is_missing_there_is_no_estimate(plan: Path, tmp_path: Path) -> None:
    text = plan.read_text(encoding="utf-8")
    for encoder in (tmp_path / "none", tiny.save(tmp_path / "bert", "bert")):
        plan.write_text(text.replace('"linear"', f'"linear"\nencoder = "{encoder}"'), encoding="utf-8")
        parsed = read_plan(plan)
        notes: list[str] = []
        seconds = seconds_left(Schedule(parsed, prepare_splits(parsed)).runs, {}, 1, notes.append)
        assert (seconds is None) == (encoder.name == "none") == bool(notes)
        assert all(note.startswith("no estimate of the time, because linear cannot be tried: ") for note in notes)


def test_predictions_take_time_too(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entaug.study.times.seconds_per_step", lambda *_, **__: 2.0)
    monkeypatch.setattr("entaug.study.times.SLOWER", 1.0)
    parsed = read_plan(plan)
    [run, *_] = Schedule(parsed, prepare_splits(parsed)).runs
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in run.split.held_out]
    expected = 2.0 * (run.steps + sum(lines) / 3 / run.training.batch_size)
    assert seconds_left([run], {}, 4, pytest.fail) == pytest.approx(expected)  # one run, one process


def test_check_tells_runs_and_time(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("entaug.study.engine.seconds_left", lambda *_: 7500.0)
    parsed = read_plan(plan)
    [run, *_] = Schedule(parsed, prepare_splits(parsed)).runs
    RecordStore(plan.with_suffix("")).append(record_of(run), 1.0)
    assert main(["experiment", str(plan), "--check"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[-2] == "1 run done"
    assert told[-1] == "about 2 h of training and testing; what methods make takes time besides"


# ---------------------------------------------------------------------------------------- what of the plan is missing


def shown(folder: Path) -> str:
    return markdown_report(read_run_records([folder]), plan=read_known_plan([folder]))


def test_the_report_of_an_interrupted_experiment_names_what_is_missing(
    plan: Path, in_threads: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_threads(lambda run: (record_of(run), 0.5))
    folder = plan.with_suffix("")

    def interrupt(state: StudyProgress) -> None:
        if state.runs_done >= 11:  # of each size: gold, gold-steps and mr with two ratios, lwtr with one, for two seeds
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(plan, jobs=1, progress=interrupt)
    assert str(read_known_plan([folder]).count) == "11 of at least 24 runs of the plan"
    text = shown(folder)
    assert "**11 of at least 24 runs of the plan are done**: what is missing is named at the end." in text
    told = "gold, gold-steps 1N, mr 1N, gold-steps 2N, mr 2N, lwtr 1N: 1 of 2 runs, without seed 2\n"
    assert f"## Missing\n\n11 of at least 24 runs of the plan are done.\n\n- toy, 8, linear: {told}" in text
    assert "- toy, 16, linear: lwtr 1N: no run\n" in text
    assert "incomplete: 1 of 2 seeds, without 2" in text  # in the table of all arms
    assert "- toy, 8, linear: mr 1N: incomplete" not in text  # it is told with the others
    assert "+0.0 (1 of 2 seeds)" in text
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["plan"] == {"done": 11, "planned": 24, "at_least": True}
    assert told["missing"][2] == "toy, 16, linear: lwtr 1N: no run"
    assert "11 of at least 24 runs of the plan are done" in (tmp_path / "page.html").read_text(encoding="utf-8")
    # The whole plan counts, also where some of it is asked for.
    assert main(["experiment", str(plan), "--only", "method=mr", "--check"]) == 0
    told = capsys.readouterr().err
    assert "valid; 20 runs with" in told
    assert "11 of at least 24 runs of the plan are done" in told


def test_a_part_of_a_plan_or_an_earlier_plan_is_not_the_whole(
    plan: Path, in_threads: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_threads(lambda run: (record_of(run), 0.5))
    folder = plan.with_suffix("")
    assert main(["experiment", str(plan), "--only", "method=mr", "--jobs", "1"]) == 0
    assert "20 runs done, 0 of them before: " in (told := capsys.readouterr().err)
    assert "20 of at least 24 runs of the plan are done" in told
    assert "- toy, 8, linear: lwtr 1N: no run\n" in shown(folder)
    assert main(["experiment", str(plan), "--jobs", "1"]) == 0
    assert "runs of the plan" not in capsys.readouterr().err
    whole = read_known_plan([folder])
    assert whole.count == RunCount(number := len(read_run_records([folder])), number)
    assert f"\n{number} of {number} runs of the plan are done.\n\nNothing is missing.\n" in shown(folder)
    # Whichever part came first, the file is the same; records of others have none.
    content = (folder / PLAN_FILE).read_bytes()
    (folder / "runs.jsonl").rename(tmp_path / "runs.jsonl")
    run_experiment(plan, jobs=3)
    assert (folder / PLAN_FILE).read_bytes() == content
    others = shown(tmp_path / "runs.jsonl")
    assert "The plan is not known here, so arms without any run cannot be named" in others
    assert "runs of the plan" not in others
    both = [folder, tmp_path / "runs.jsonl"]
    text = markdown_report(read_run_records(both), plan=read_known_plan(both))
    assert f"The plan of {tmp_path / 'runs.jsonl'} is not known" in text
    assert main(["report", *map(str, both), "-o", str(tmp_path / "both.md")]) == 0
    assert f"note: the plan of {tmp_path / 'runs.jsonl'} is not known\n" in capsys.readouterr().err
    plan.write_text(plan.read_text(encoding="utf-8").replace("seeds = [1, 2]", "seeds = [1, 2, 3]"), encoding="utf-8")
    run_experiment(plan, jobs=1, only=["seed=1"])
    assert (count := read_known_plan([folder]).count)
    assert count.done < count.planned
    assert "without seed 3" in shown(folder)


def test_a_folder_without_records_has_no_run_of_its_plan(
    plan: Path, in_threads: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(run: RunSpec) -> tuple[RunRecord, float]:
        raise EntaugError("it cannot be trained")

    in_threads(fail)
    with pytest.raises(EntaugError):
        run_experiment(plan, jobs=1)
    folder = plan.with_suffix("")
    assert str(read_known_plan([folder]).count) == "0 of at least 24 runs of the plan"
    assert main(["report", str(folder), "-o", str(folder / "page.html")]) == 0
    assert f"note: {folder} holds no record of a run yet" in capsys.readouterr().err
    assert main(["report", str(folder)]) == 2
    assert f"error: {folder}: holds no record of a run; name the output folder" in capsys.readouterr().err


def test_the_whole_plan_is_counted_for_the_result_alone(plan: Path, in_threads: Any) -> None:
    in_threads(lambda run: (record_of(run), 0.5))
    states: list[StudyProgress] = []
    result = run_experiment(plan, jobs=1, only=["seed=1"], progress=states.append)
    assert {state.plan for state in states} == {None}
    assert result.plan == read_known_plan([plan.with_suffix("")]).count
    assert run_experiment(plan, check_only=True).plan == result.plan


# ------------------------------------------------------------------------------------------------- taggers by corpus


def test_a_tagger_with_parameters_of_its_own_on_a_corpus(plan: Path) -> None:
    text = plan.read_text(encoding="utf-8")
    own = 'by_corpus = { toy = { encoder = "large", training = { epochs = 20, learning_rate = 1e-5 } } }'
    plan.write_text(text.replace('"linear"', f'"linear"\nencoder = "small"\n{own}'), encoding="utf-8")
    parsed = read_plan(plan)
    [tagger] = parsed.taggers
    [corpus] = parsed.corpora
    on_other = tagger.on(replace(corpus, name="other"))
    assert (on_other.params["encoder"], on_other.training.epochs) == ("small", 1)
    for run in Schedule(parsed, prepare_splits(parsed)).runs:
        assert run.tagger.label == "linear"
        assert run.config()["tagger"]["params"] == {"encoder": "large"}
        assert run.training.learning_rate == 1e-5
        assert run.steps >= 20
    for wrong, message in (("toy = { hiden = 3 }", "hiden"), ("tony = {}", "did you mean 'toy'")):
        plan.write_text(text.replace('"linear"', f'"linear"\nby_corpus = {{ {wrong} }}'), encoding="utf-8")
        with pytest.raises(EntaugError, match=message) as told:
            read_plan(plan)
        assert told.value.line == 1 + plan.read_text(encoding="utf-8").split("\n").index(f"by_corpus = {{ {wrong} }}")
