"""Execution of studies: every run is executed once, and its record is kept.

The runs of an experiment are executed in separate processes with a fixed number of threads, so that neither other runs
nor interruptions change their records; those of `entaug.auto` one after the other in this process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from entaug.backends.config import TrainingProgress
from entaug.backends.language_check import note_on_encoder
from entaug.backends.processes import interrupts_blocked, process_pool
from entaug.core.progress import in_notebook, notebook_line
from entaug.errors import EntaugError, OutputError
from entaug.files.locks import lock
from entaug.formats import read
from entaug.methods.shared.generative import GenerativeAugmenter
from entaug.study.data import DataSplit, prepare_splits
from entaug.study.plan import MethodPlan, Plan, read_plan
from entaug.study.records import RECORDS_FILE, RecordStore, RunRecord
from entaug.study.runs import RunSpec, execute_run
from entaug.study.schedule import Schedule

T = TypeVar("T")

_clock = time.monotonic


# ------------------------------------------------------------------------------------------------------------- progress


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study: what is in work, and the runs and optimizer steps of the whole, as far as known."""

    phase: str = ""
    runs: int = 0
    runs_done: int = 0
    previously_done: int = 0
    steps: int | None = None
    steps_done: int = 0
    seconds_left: float | None = None
    warnings: list[str] = field(default_factory=list)


ProgressCallback = Callable[[StudyProgress], None]
"""Takes the progress of a study."""


def estimate_seconds(seconds: float, steps: int, left: int) -> float | None:
    """The time that the steps left take, if each takes as long as those of this call."""
    return seconds / steps * left if steps else None


class StepCounter:
    """Counts the optimizer steps of trainings that follow one another."""

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback
        self._start = _clock()
        self._earlier = self._done = 0  # steps of an earlier call, and of both
        self.total: int | None = None
        """The steps of the whole; None as long as unknown."""

    def skip(self, steps: int) -> None:
        """Count steps of an earlier call."""
        self._earlier += steps
        self._done += steps

    def report(self, phase: str) -> None:
        """Report what is in work."""
        seconds = None
        if self.total is not None:
            left = max(0, self.total - self._done)
            seconds = estimate_seconds(_clock() - self._start, self._done - self._earlier, left)
        self._callback(StudyProgress(phase, steps=self.total, steps_done=self._done, seconds_left=seconds))

    def training(self, phase: str) -> TrainingProgress:
        """Begin a training; return what is to be called after each of its steps."""
        before = self._done
        self.report(phase)

        def update(done: int, total: int, loss: float) -> None:
            del total, loss
            self._done = before + done
            self.report(phase)

        return update


@contextlib.contextmanager
def show_study(*, quiet: bool = False) -> Iterator[Callable[[StudyProgress], None]]:
    """Show how far a study is: one line on a terminal or in a notebook; in a pipe one for each phase and run."""
    with contextlib.ExitStack() as stack:
        live: Any = None
        line = stack.enter_context(notebook_line()) if in_notebook() and not quiet else None
        if sys.stderr.isatty() and not quiet:
            from rich.console import Console
            from rich.live import Live

            live = stack.enter_context(Live(console=Console(stderr=True), refresh_per_second=2, transient=True))
        shown = ("", 0)

        def update(state: StudyProgress) -> None:
            nonlocal shown
            if line is not None:
                line(_study_line(state))
            elif live is not None:
                live.update(_study_line(state))
            elif (state.phase, state.runs_done) != shown and not quiet:
                shown = state.phase, state.runs_done
                sys.stderr.write(_study_line(state) + "\n")

        yield update


def _study_line(state: StudyProgress) -> str:
    what = f"{state.runs_done:,} of {state.runs:,} runs"
    if state.phase:
        total = "" if state.steps is None else f" of {state.steps:,}"
        what = f"{state.phase}: {state.steps_done:,}{total} steps"
    return f"{what}, about {max(1, round(state.seconds_left / 60)):,} min left" if state.seconds_left else what


# ---------------------------------------------------------------------------------------------------------- experiments


def run_experiment(
    plan: str | Path | Plan,
    *,
    jobs: int | None = None,
    progress: ProgressCallback = lambda _: None,
    check_only: bool = False,
    on_wait: Callable[[], None] = lambda: None,
    report: Callable[[str], None] = lambda _: None,
) -> StudyProgress:
    """Execute the runs of a plan that have no record yet."""
    # It can be interrupted at any time and called again: finished runs are not repeated.
    if not isinstance(plan, Plan):
        plan = read_plan(plan)
    splits = prepare_splits(plan)
    schedule = Schedule(plan, splits)
    by_corpus = {split.corpus.name: split for split in splits}
    notes: dict[str, None] = {}
    for name, split in by_corpus.items():
        gold = list(read(split.train))
        for tagger in filter(split.corpus.includes, plan.taggers):
            notes |= dict.fromkeys(f"{name}: {note}" for note in note_on_encoder(tagger.create(), gold))
    for note in notes:
        report(note)
    if check_only:
        return _progress(schedule, {}, set(), 0.0)
    for note in _check_requirements(plan, list(by_corpus.values())):
        report(note)
    plan.output.mkdir(parents=True, exist_ok=True)
    with lock(plan.output / RECORDS_FILE, on_wait):
        return _execute(plan, schedule, jobs or default_jobs(plan.threads), progress)


def _check_requirements(plan: Plan, splits: Sequence[DataSplit]) -> list[str]:
    """Load every model once, so that missing ones are reported before any run; return notes on languages."""
    for i, tagger in enumerate(plan.taggers):
        with plan.lines.at("taggers", i, tagger.params):
            tagger.create().check_requirements()
    used: dict[str, tuple[MethodPlan, list[DataSplit]]] = {}
    for method in plan.methods:
        for split in splits:
            if method.makes_sentences and split.corpus.includes(method):
                own = method.on(split.corpus)
                used.setdefault(repr((own.name, own.params)), (own, []))[1].append(split)
    notes: list[str] = []
    for method, some in used.values():
        with plan.lines.at("methods", method.table, method.params):
            augmenter = method.create().load()
            if isinstance(augmenter, GenerativeAugmenter):
                for split in some:
                    found = augmenter.notes_on_languages(read(split.train))
                    notes += [f"{split.corpus.name}: {method.label}: {note} for the corpus" for note in found]
    return notes


def _execute(plan: Plan, schedule: Schedule, jobs: int, progress: ProgressCallback) -> StudyProgress:
    store = RecordStore(plan.output)
    previous = set(store.records)
    start = _clock()
    futures: dict[Future[tuple[RunRecord, float]], RunSpec] = {}
    submitted: set[str] = set()
    failures: list[tuple[RunSpec, BaseException]] = []

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
            progress(_progress(schedule, store.records, previous, _clock() - start))
            if not futures:
                break
            for future in finished(futures):
                run = futures.pop(future)
                if (error := future.exception()) is None:
                    store.append(*future.result())
                else:
                    failures.append((run, error))
                    if isinstance(error, BrokenProcessPool):
                        raise run_error(run, error) from error
    sort_records()
    if failures:  # the other runs were executed
        failure = run_error(*failures[0])
        if len(failures) > 1:
            failure.message += f", and {len(failures) - 1:,} more failed"
        raise failure from failures[0][1]
    return _progress(schedule, store.records, previous, _clock() - start)


def finished(futures: Iterable[Future[T]]) -> set[Future[T]]:
    """Wait until some are finished, and return these."""
    done: set[Future[T]] = set()
    # A signal may reach another thread; the main thread handles it when it wakes up.
    while not done:
        done, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
    return done


def _execution_order(runs: Sequence[RunSpec]) -> list[RunSpec]:
    """Runs in order: the first seed with all arms comes first, so that an interrupted experiment can be compared."""
    # The corpora alternate within an arm: parallel runs of one corpus would wait for the teacher that they share.
    positions: Counter[tuple[Path, str, int]] = Counter()
    order: list[tuple[int, int, int]] = []
    seeds = list(dict.fromkeys(run.seed for run in runs))
    for number, run in enumerate(runs):
        setting = (run.split.train, run.tagger.label, run.seed)
        positions[setting] += 1
        order.append((seeds.index(run.seed), positions[setting], number))
    return [runs[number] for *_, number in sorted(order)]


def run_error(run: RunSpec, error: BaseException) -> EntaugError:
    """The error of a failed run, in one line that names the run."""
    ratio = "" if run.arm == "gold" else f" {run.ratio:g}N"
    name = f"{run.split.corpus.name}, {run.split.size}, {run.tagger.label}, {run.arm}{ratio}, seed {run.seed}"
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
) -> StudyProgress:
    steps = {run.key: run.steps for run in schedule.runs}  # arms may share a run
    left = sum(number for key, number in steps.items() if key not in records)
    own = sum(number for key, number in steps.items() if key in records and key not in previous)
    return StudyProgress(
        runs=len(schedule.runs),
        runs_done=sum(run.key in records for run in schedule.runs),
        previously_done=sum(run.key in previous for run in schedule.runs),
        steps=sum(steps.values()),
        steps_done=sum(steps.values()) - left,
        seconds_left=estimate_seconds(seconds, own, left),
        warnings=schedule.warnings,
    )


def default_jobs(threads: int) -> int:
    """The number of processes of so many threads that trainings are shared among."""
    from entaug.backends.transformers.base import choose_device

    if choose_device()[0].type == "cuda":
        return 1
    return max(1, min(4, (os.cpu_count() or 1) // threads))
