"""Execution of studies: every run is executed once, and its record is kept.

The runs of an experiment are executed in separate processes with a fixed number of threads, so that neither other runs
nor interruptions change their records; those of `entaug.auto` one after the other in this process. Several calls may
share the runs of one experiment: each claims a run before it executes it.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from entaug.backends.config import TrainingProgress
from entaug.backends.language_check import note_on_encoder
from entaug.backends.processes import available_cores, interrupts_blocked, process_pool, with_plain_errors
from entaug.core.progress import in_notebook, notebook_line, shown_time
from entaug.errors import EntaugError, OutputError
from entaug.files.locks import is_locked, lock, try_claim
from entaug.formats import read
from entaug.methods.shared.generative import GenerativeAugmenter
from entaug.study.data import DataSplit, prepare_splits
from entaug.study.plan import MethodPlan, Plan, TaggerPlan, read_plan
from entaug.study.planned import RunCount, write_known_plan
from entaug.study.records import DAMAGED_FILE, RECORDS_FILE, RecordStore, RunRecord, differing_environments
from entaug.study.runs import (
    RunSpec,
    current_environment,
    execute_run,
    make_sentences,
    missing_sentences,
    sentences_file,
)
from entaug.study.schedule import Schedule, Selection
from entaug.study.times import seconds_left

T = TypeVar("T")

_clock = time.monotonic
_POLL = 0.5  # seconds after which a process looks what others have done


# ------------------------------------------------------------------------------------------------------------- progress


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study: what is in work, and the runs and optimizer steps of the whole, as far as known."""

    phase: str = ""
    unit: str = "runs"
    runs: int = 0
    runs_done: int = 0
    at_least: bool = False
    plan: RunCount | None = None  # in results only: nothing that shows progress needs it
    previously_done: int = 0
    steps: int | None = None
    steps_done: int = 0
    seconds_left: float | None = None
    by_others: int = 0
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
    what = f"{state.runs_done:,} of {state.runs:,} {state.unit}"
    if state.phase:
        total = "" if state.steps is None else f" of {state.steps:,}"
        what = f"{state.phase}: {state.steps_done:,}{total} steps"
    return f"{what}, about {shown_time(state.seconds_left)} left" if state.seconds_left else what


# ---------------------------------------------------------------------------------------------------------- experiments


def run_experiment(
    plan: str | Path | Plan,
    *,
    jobs: int | None = None,
    only: Sequence[str] = (),
    progress: ProgressCallback = lambda _: None,
    check_only: bool = False,
    sentences_only: bool = False,
    on_wait: Callable[[], None] = lambda: None,
    report: Callable[[str], None] = lambda _: None,
) -> StudyProgress:
    """Execute the runs of a plan that have no record yet."""
    # It can be interrupted at any time and called again: finished runs are not repeated.
    if not isinstance(plan, Plan):
        plan = read_plan(plan)
    selection = Selection.of(only, plan)
    splits = prepare_splits(plan)
    schedule = Schedule(plan, splits, selection)
    by_corpus = {split.corpus.name: split for split in splits}
    notes: dict[str, None] = {}
    for name, split in by_corpus.items():
        gold = list(read(split.train))
        for tagger in filter(split.corpus.includes, plan.taggers):
            notes |= dict.fromkeys(
                f"{name}: {note}" for note in note_on_encoder(tagger.on(split.corpus).create(), gold)
            )
    for note in notes:
        report(note)
    jobs = jobs or default_jobs(plan.threads)
    store = RecordStore(plan.output)
    if check_only and sentences_only:
        return _sentences_to_make(schedule)[0]
    if check_only:
        schedule.advance(store.records)
        state = _progress(schedule, store.records, set(store.records), 0.0)
        # Records of other machines have no times: their runs are neither left, nor do they tell how long others take.
        runs = [run for run in schedule.selected if run.key in store.seconds or run.key not in store.records]
        left = seconds_left(runs, store.seconds, jobs, report)
        return replace(state, plan=schedule.count(store.records), seconds_left=left)
    for note in _check_requirements(schedule):
        report(note)
    plan.output.mkdir(parents=True, exist_ok=True)
    if sentences_only:
        return _make_all_sentences(schedule, jobs, progress)
    if store.records and any(run.key not in store.records for run in schedule.selected):
        known = (record.environment for record in store.records.values())
        for note in differing_environments([*known, current_environment()]):
            report(note)
    if store.damaged:
        count = f"{len(store.damaged):,}"
        report(f"damaged lines of {RECORDS_FILE} moved to {DAMAGED_FILE}: {count}; their runs are repeated")
    return _Execution(plan, schedule, store, jobs, progress, on_wait).run()


def _check_requirements(schedule: Schedule) -> list[str]:
    """Load every model once, so that missing ones are reported before any run; return notes on languages."""
    plan = schedule.plan
    taggers: dict[str, tuple[str, int, TaggerPlan]] = {}  # each with its place in the plan
    labels = [tagger.label for tagger in plan.taggers]
    used: dict[str, tuple[MethodPlan, dict[str, DataSplit]]] = {}
    for run in schedule.selected:
        teachers = filter(None, (run.own_teacher, *map(run.teacher_of, run.parts)))
        own = [("teachers", plan.teachers.index(one), one.tagger) for one in teachers if one.tagger]
        for place in (("taggers", labels.index(run.tagger.label), run.tagger), *own):
            taggers.setdefault(repr((place[2].name, place[2].params)), place)
        for method, _ in missing_sentences(run):
            of_method = used.setdefault(repr((method.name, method.params)), (method, {}))
            of_method[1].setdefault(f"{run.split.corpus.name}: {method.label}", run.split)
    for table, number, tagger in taggers.values():
        with plan.lines.at(table, number, tagger.params):
            tagger.create().check_requirements()
    notes: list[str] = []
    for method, splits in used.values():
        with plan.lines.at("methods", method.table, method.params):
            augmenter = method.create().load()
            if isinstance(augmenter, GenerativeAugmenter):
                for name, split in splits.items():
                    found = augmenter.notes_on_languages(read(split.train))
                    notes += [f"{name}: {note} for the corpus" for note in found]
    return list(dict.fromkeys(notes))


def _sentences_to_make(schedule: Schedule) -> tuple[StudyProgress, list[tuple[RunSpec, MethodPlan]]]:
    """The files of sentences of the methods, so far as the runs are known, and those that are not there."""
    parts = [(run, part) for run in _execution_order(schedule.selected) for part in run.parts if part.makes_sentences]
    files = {sentences_file(*one): one for one in parts}
    left = [one for file, one in files.items() if not file.exists()]
    before = len(files) - len(left)
    return StudyProgress(unit="files of sentences", runs=len(files), runs_done=before, previously_done=before), left


def _make_all_sentences(schedule: Schedule, jobs: int, progress: ProgressCallback) -> StudyProgress:
    """Make the sentences of the methods, so far as the runs are known."""
    state, left = _sentences_to_make(schedule)
    with process_pool(jobs, schedule.plan.threads) as pool:
        progress(state)
        for _ in completed(pool, make_sentences, left):
            state = replace(state, runs_done=state.runs_done + 1)
            progress(state)
    return state


def sort_records(schedule: Schedule, store: RecordStore) -> RunCount:
    """Bring the records into the order of the plan, under its labels, put beside them what it has, and count them."""
    # In which order runs were added depended on which were finished first.
    schedule = schedule.fresh()
    store.refresh()  # what others finished meanwhile is kept
    schedule.advance(store.records)
    count = schedule.count(store.records)
    write_known_plan(store.folder, schedule.runs, schedule.plan.tables, at_least=count.at_least)
    store.sort([(run.key, {**run.labels(), "chosen": run.key in schedule.chosen}) for run in schedule.runs])
    return count


@dataclass
class _Execution:
    """The execution of the runs of an experiment, which it may share with other processes."""

    plan: Plan
    schedule: Schedule
    store: RecordStore
    jobs: int
    progress: ProgressCallback
    on_wait: Callable[[], None]

    def run(self) -> StudyProgress:
        self.previous = set(self.store.records)
        self.own: set[str] = set()  # finished here
        self.failures: dict[str, tuple[RunSpec, BaseException]] = {}
        self.futures: dict[Future[tuple[RunRecord, float]], tuple[RunSpec, ExitStack]] = {}
        self.start = _clock()
        with lock(self.plan.output / RECORDS_FILE, self.on_wait):
            sort_records(self.schedule, self.store)
        try:
            with process_pool(self.jobs, self.plan.threads) as pool:
                self._execute(pool)
        finally:
            for _, claim in self.futures.values():
                claim.close()
        if self.failures:  # the other runs were executed
            failed, *others = self.failures.values()
            failure = run_error(*failed)
            if others:
                failure.message += f", and {len(others):,} more failed"
            raise failure from failed[1]
        return replace(self.state(), plan=self.schedule.count(self.store.records))

    def _execute(self, pool: ProcessPoolExecutor) -> None:
        has_waited = False
        shown = (-1, -1)
        while True:
            self.store.refresh()
            self.schedule.advance(self.store.records)
            is_shared = self._submit(pool)
            if shown != (len(self.store.records), len(self.schedule.runs)):
                shown = len(self.store.records), len(self.schedule.runs)
                self.progress(self.state())
            if not (self.futures or is_shared):
                return
            if not self.futures and not has_waited:
                has_waited = True
                self.on_wait()
            self._take_finished()

    def _submit(self, pool: ProcessPoolExecutor) -> bool:
        """Begin runs as long as there are idle processes; return whether others execute some, or just did."""
        is_shared = False
        in_work = {run.key for run, _ in self.futures.values()}
        in_making = {file for run, _ in self.futures.values() for _, file in missing_sentences(run)}
        for run in _execution_order(self.schedule.selected):
            if len(self.futures) >= self.jobs:
                break
            if run.key in self.store.records or run.key in self.failures or run.key in in_work:
                continue
            missing = {file for _, file in missing_sentences(run)}
            if not in_making.isdisjoint(missing) or any(map(is_locked, missing)):
                is_shared = True  # it would only wait for them
                continue
            if (claim := try_claim(self.plan.output / run.key)) is None:
                is_shared = True
                continue
            self.store.refresh()  # whoever had the claim wrote the record before giving it back
            if run.key in self.store.records:
                claim.close()
                is_shared = True  # what it was chosen for may have new runs
                continue
            in_work.add(run.key)
            in_making.update(missing)
            with interrupts_blocked():
                self.futures[pool.submit(partial(with_plain_errors, execute_run), run)] = run, claim
        return is_shared

    def _take_finished(self) -> None:
        """Wait a moment for runs, and write the records of those that are finished."""
        if not self.futures:
            time.sleep(_POLL)
        # A signal may reach another thread; the main thread handles it when it wakes up.
        for future in wait(self.futures, timeout=_POLL, return_when=FIRST_COMPLETED).done:
            run, claim = self.futures.pop(future)
            with claim:
                if (error := future.exception()) is None:
                    with lock(self.plan.output / RECORDS_FILE):
                        self.store.append(*future.result())
                        sort_records(self.schedule, self.store)  # arms that share the run have their records at once
                    self.own.add(run.key)
                    continue
            self.failures[run.key] = run, error
            if isinstance(error, BrokenProcessPool):
                raise run_error(run, error) from error

    def state(self) -> StudyProgress:
        others = self.store.records.keys() - self.previous - self.own
        return _progress(self.schedule, self.store.records, self.previous, _clock() - self.start, others)


def completed(pool: ProcessPoolExecutor, function: Callable[..., T], calls: Iterable[Sequence[Any]]) -> Iterator[T]:
    """Call a function in processes, and yield what it returns as it comes; the first argument of a call is its run."""
    with interrupts_blocked():
        futures = {pool.submit(with_plain_errors, function, *call): call[0] for call in calls}
    while futures:
        # A signal may reach another thread; the main thread handles it when it wakes up.
        for future in wait(futures, timeout=_POLL, return_when=FIRST_COMPLETED).done:
            run = futures.pop(future)
            if failure := future.exception():
                raise run_error(run, failure) from failure
            yield future.result()


def _execution_order(runs: Sequence[RunSpec]) -> list[RunSpec]:
    """Runs in order: the first seed with all arms of the first tagger, then with those of the next one."""
    # So an interrupted experiment can be compared, and a part of it is one tagger on all corpora.
    # The corpora alternate within an arm: parallel runs of one corpus would wait for the teacher that they share.
    positions: Counter[tuple[Path, str, int]] = Counter()
    order: list[tuple[int, int, int, int]] = []
    seeds = list(dict.fromkeys(run.seed for run in runs))
    taggers = list(dict.fromkeys(run.tagger.label for run in runs))
    for number, run in enumerate(runs):
        setting = (run.split.train, run.tagger.label, run.seed)
        positions[setting] += 1
        order.append((seeds.index(run.seed), taggers.index(run.tagger.label), positions[setting], number))
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
        remedy = "run the same command again with fewer `jobs`: finished runs are kept"
        return EntaugError(f"the process of the run {name} ended, perhaps for lack of memory", remedy=remedy)
    if isinstance(error, OSError):
        return OutputError(f"the run {name} could not use a file ({error})", remedy=remedy)
    reason = " ".join(str(error).split())[:200]
    part = getattr(error, "named_part", None)  # a method or a filter of another package
    where = "" if part is None else f" in {part}"
    return EntaugError(f"the run {name} failed{where} ({type(error).__name__}: {reason})", remedy=remedy)


def _progress(
    schedule: Schedule,
    records: Mapping[str, RunRecord],
    previous: set[str],
    seconds: float,
    others: Collection[str] = (),
) -> StudyProgress:
    runs = schedule.selected
    steps = {run.key: run.steps for run in runs}  # arms may share a run
    count = schedule.count(records, runs)
    left = sum(number for key, number in steps.items() if key not in records)
    own = sum(number for key, number in steps.items() if key in records and key not in previous)
    return StudyProgress(
        runs=count.planned,
        runs_done=count.done,
        at_least=count.at_least,
        previously_done=sum(run.key in previous for run in runs),
        steps=sum(steps.values()),
        steps_done=sum(steps.values()) - left,
        seconds_left=estimate_seconds(seconds, own, left),
        by_others=sum(run.key in others for run in runs),
        warnings=schedule.warnings,
    )


def default_jobs(threads: int) -> int:
    """The number of processes of so many threads that trainings are shared among."""
    from entaug.backends.transformers.base import choose_device

    if choose_device()[0].type == "cuda":
        return 1
    return max(1, min(4, available_cores() // threads))
