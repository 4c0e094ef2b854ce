"""Execution of an experiment: every run of a plan is executed once, and its record is kept.

Each run is executed in a separate process with a fixed number of threads, so that neither other runs nor interruptions
change its record.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from entaug.backends.language_check import note_on_encoder
from entaug.backends.processes import interrupts_blocked, process_pool
from entaug.errors import EntaugError, OutputError
from entaug.files.locks import lock
from entaug.formats import read
from entaug.methods.shared.generative import GenerativeAugmenter
from entaug.study.data import DataSplit, prepare_splits
from entaug.study.plan import MethodPlan, Plan
from entaug.study.reading import key_of_error, read_plan
from entaug.study.records import RECORDS_FILE, RecordStore, RunRecord
from entaug.study.runs import execute_run
from entaug.study.schedule import Schedule
from entaug.study.specification import RunSpec

__all__ = ["ExperimentProgress", "ProgressCallback", "SettingProgress", "run_experiment"]


@dataclass
class SettingProgress:
    """Progress of the runs of one corpus, size and tagger."""

    done: int = 0
    total: int = 0
    test_f1: dict[tuple[str, float], list[float]] = field(default_factory=dict)


@dataclass
class ExperimentProgress:
    """Progress of an experiment."""

    total: int = 0
    done: int = 0
    previously_done: int = 0
    settings: dict[tuple[str, int, str], SettingProgress] = field(default_factory=dict)
    steps_left: int = 0
    seconds_left: float | None = None
    warnings: list[str] = field(default_factory=list)


ProgressCallback = Callable[[ExperimentProgress], None]
"""Takes the progress of an experiment."""


def run_experiment(
    plan: str | Path | Plan,
    *,
    jobs: int | None = None,
    progress: ProgressCallback = lambda _: None,
    check_only: bool = False,
    on_wait: Callable[[], None] = lambda: None,
    report: Callable[[str], None] = lambda _: None,
) -> ExperimentProgress:
    """Execute the runs of a plan that have no record yet."""
    # It can be interrupted at any time and called again: finished runs are not repeated.
    if not isinstance(plan, Plan):
        plan = read_plan(plan)
    splits = prepare_splits(plan)
    schedule = Schedule(plan, splits)
    for note in _notes_on_encoders(plan, splits):
        report(note)
    if check_only:
        return _progress(schedule, {}, set(), 0.0)
    for note in _check_requirements(plan, splits):
        report(note)
    plan.output.mkdir(parents=True, exist_ok=True)
    with lock(plan.output / RECORDS_FILE, on_wait):
        return _execute(plan, schedule, jobs or _default_jobs(plan.threads), progress)


def _notes_on_encoders(plan: Plan, splits: Sequence[DataSplit]) -> list[str]:
    """Notes on starter encoders of another language than a corpus, each once."""
    first = {split.corpus.name: split for split in splits}
    notes: dict[str, None] = {}
    for name, split in first.items():
        gold = list(read(split.train))
        labels = split.corpus.taggers
        for tagger in (tagger for tagger in plan.taggers if labels is None or tagger.label in labels):
            notes |= dict.fromkeys(f"{name}: {note}" for note in note_on_encoder(tagger.create(), gold))
    return list(notes)


def _check_requirements(plan: Plan, splits: Sequence[DataSplit]) -> list[str]:
    """Load every model once, so that missing ones are reported before any run; return notes."""
    by_corpus = {split.corpus.name: split for split in splits}
    used: dict[str, tuple[MethodPlan, list[DataSplit]]] = {}
    for method in (method for method in plan.methods if method.makes_sentences):
        for split in by_corpus.values():
            if split.corpus.includes(method):
                own = method.on(split.corpus)
                used.setdefault(repr((own.name, own.params)), (own, []))[1].append(split)
    checks: list[tuple[str, int, Mapping[str, Any], Callable[[], list[str] | None]]] = []
    checks += [
        ("taggers", i, tagger.params, tagger.create().check_requirements) for i, tagger in enumerate(plan.taggers)
    ]
    checks += [("methods", method.table, method.params, partial(_load, method, some)) for method, some in used.values()]
    notes: list[str] = []
    for table, number, params, check in checks:
        try:
            notes += check() or []
        except EntaugError as error:
            if error.path is None:
                error.path = str(plan.path)
                error.line = plan.lines.line_of(table, number, key_of_error(error, params))
            raise
    return notes


def _load(method: MethodPlan, splits: Sequence[DataSplit]) -> list[str]:
    """Load the models of a method; return notes on the languages of the corpora that it is used on."""
    augmenter = method.create()
    augmenter.load()
    if not isinstance(augmenter, GenerativeAugmenter):
        return []
    notes = [(split.corpus.name, note) for split in splits for note in augmenter.notes_on_languages(read(split.train))]
    return [f"{name}: {method.label}: {note} for the corpus" for name, note in notes]


def _execute(plan: Plan, schedule: Schedule, jobs: int, progress: ProgressCallback) -> ExperimentProgress:
    store = RecordStore(plan.output)
    previous = set(store.records)
    start = time.monotonic()
    futures: dict[Future[tuple[RunRecord, float]], RunSpec] = {}
    submitted: set[str] = set()
    failures: list[tuple[RunSpec, BaseException]] = []

    def report() -> ExperimentProgress:
        current = _progress(schedule, store.records, previous, time.monotonic() - start)
        progress(current)
        return current

    def sort_records() -> None:
        store.sort([(run.key, {**run.labels(), "chosen": run.key in schedule.chosen}) for run in schedule.runs])

    sort_records()
    with process_pool(jobs, plan.threads) as pool:
        while True:
            number_of_runs = -1
            while number_of_runs != len(schedule.runs):
                number_of_runs = len(schedule.runs)
                schedule.advance(store.records)
            for run in _execution_order(schedule.runs):
                if run.key not in store.records and run.key not in submitted:
                    submitted.add(run.key)
                    with interrupts_blocked():
                        futures[pool.submit(execute_run, run)] = run
            report()
            if not futures:
                break
            finished: set[Future[tuple[RunRecord, float]]] = set()
            # A signal may reach another thread; the main thread handles it when it wakes up.
            while not finished:
                finished, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                run = futures.pop(future)
                if (error := future.exception()) is None:
                    store.append(*future.result())
                else:
                    failures.append((run, error))
                    if isinstance(error, BrokenProcessPool):
                        raise _run_error(run, error) from error
    sort_records()
    current = report()
    if failures:  # the other runs were executed
        failure = _run_error(*failures[0])
        if len(failures) > 1:
            failure.message += f", and {len(failures) - 1:,} more failed"
        raise failure from failures[0][1]
    return current


def _execution_order(runs: Sequence[RunSpec]) -> list[RunSpec]:
    """Runs in order: the first seed with all arms comes first, so that an interrupted experiment can be compared."""
    # The corpora alternate within an arm: parallel runs of one corpus would wait for the teacher that they share.
    positions: Counter[tuple[Path, str, int]] = Counter()
    order: list[tuple[int, int, int]] = []
    seeds = list(dict.fromkeys(run.seed for run in runs))
    for number, run in enumerate(runs):
        setting = (run.split.train, run.tagger.label, run.seed)
        order.append((seeds.index(run.seed), positions[setting], number))
        positions[setting] += 1
    return [runs[number] for *_, number in sorted(order)]


def _run_error(run: RunSpec, error: BaseException) -> EntaugError:
    """The error of a failed run, in one line that names the run."""
    amount = "" if run.arm == "gold" else f" {run.amount:g}N"
    name = f"{run.split.corpus.name}, {run.split.size}, {run.tagger.label}, {run.arm}{amount}, seed {run.seed}"
    if isinstance(error, EntaugError):
        error.message += f" (in the run {name})"
        return error
    remedy = "correct it and run the same command again: finished runs are kept"
    if isinstance(error, BrokenProcessPool):
        remedy = "run the same command again with fewer --jobs: finished runs are kept"
        return EntaugError(f"the process of the run {name} ended, perhaps for lack of memory", remedy=remedy)
    if isinstance(error, OSError):
        return OutputError(f"the run {name} could not use a file ({error})", remedy=remedy)
    reason = " ".join(str(error).split())[:200]
    return EntaugError(f"the run {name} failed ({type(error).__name__}: {reason})", remedy=remedy)


def _progress(
    schedule: Schedule, records: Mapping[str, RunRecord], previous: set[str], seconds: float
) -> ExperimentProgress:
    progress = ExperimentProgress(total=len(schedule.runs), warnings=schedule.warnings)
    seen: set[str] = set()
    steps_done = 0
    for run in schedule.runs:
        steps = 0 if run.key in seen else run.steps  # arms may share a run
        seen.add(run.key)
        identity = (run.split.corpus.name, run.split.size, run.tagger.label)
        setting = progress.settings.setdefault(identity, SettingProgress())
        setting.total += 1
        record = records.get(run.key)
        if record is None:
            progress.steps_left += steps
            continue
        progress.done += 1
        setting.done += 1
        setting.test_f1.setdefault((run.arm, run.amount), []).append(record.test.micro.f1)
        if run.key in previous:
            progress.previously_done += 1
        else:
            steps_done += steps
    if steps_done:
        progress.seconds_left = seconds / steps_done * progress.steps_left
    return progress


def _default_jobs(threads: int) -> int:
    from entaug.backends.transformers.base import choose_device

    if choose_device()[0].type == "cuda":
        return 1
    return max(1, min(4, (os.cpu_count() or 1) // threads))
