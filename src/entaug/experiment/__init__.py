"""Did it help? Subsets, amounts, baselines, seeds: every run of a plan, each kept as a record, none done twice.

`plan.py` checks the plan; `cells.py` makes data files of it, `schedule.py` runs; each run (`runs.py`) is done in a
process of its own kind, so that neither company nor interruptions change its record (`records.py`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.backends.compute import ComputeSettings, compute_settings, set_compute_settings
from entaug.errors import EntaugError, OutputError
from entaug.experiment.data import prepare
from entaug.experiment.plan import Plan, read_plan
from entaug.experiment.records import RECORDS, Records
from entaug.experiment.runs import Run, perform
from entaug.experiment.schedule import Schedule, f1_of
from entaug.files.locks import lock

__all__ = ["State", "run_experiment"]


@dataclass
class State:
    """How far an experiment is, for whoever shows it.

    Args:
        total: runs known of; the patience rule may add some.
        done: runs finished, those of earlier calls included.
        earlier: runs finished by earlier calls.
        rows: for each corpus, size and tagger: runs done, runs known of, and the mean F1 on test of each arm.
        steps_left: optimiser steps still to take.
        seconds_left: about how long that takes; None until something is known.
        leaks: what the leakage guard has to say, a line each.
    """

    total: int = 0
    done: int = 0
    earlier: int = 0
    rows: dict[tuple[str, int, str], dict[str, Any]] = field(default_factory=dict)
    steps_left: int = 0
    seconds_left: float | None = None
    leaks: list[str] = field(default_factory=list)


Watch = Callable[[State], None]


def run_experiment(
    plan: str | Path | Plan,
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
    check_only: bool = False,
    waiting: Callable[[], None] = lambda: None,
) -> State:
    """Do the runs of a plan that are not done yet.

    Kill it at any moment and call it again: finished runs are not repeated, unfinished ones begin anew.

    Args:
        plan: a plan or its file.
        jobs: runs at a time; by default as many as the cores allow for the plan's threads, four at most, and one on a
            GPU. The records do not depend on it.
        watch: told how far it is.
        check_only: check the plan and count the runs, and do none.
        waiting: called once if another process is at this experiment; it is waited for.

    Returns:
        How far it is; all done, if nothing broke.

    Raises:
        InputError: the plan or a corpus is faulty. Nothing was done then.
        MissingExtraError: a library that a method or tagger needs is not installed.
        MissingModelError: a model is not on this machine.
    """
    if not isinstance(plan, Plan):
        plan = read_plan(plan)
    cells = prepare(plan)
    schedule = Schedule(plan, cells)
    if check_only:
        return _state(schedule, {}, set(), 0.0)
    _check_models(plan)
    plan.output.mkdir(parents=True, exist_ok=True)
    with lock(plan.output / RECORDS, waiting):
        return _run_all(plan, schedule, jobs or _jobs(plan.threads), watch or (lambda _: None))


def _check_models(plan: Plan) -> None:
    """Find out what is missing before any work, not when its turn comes."""
    checks: list[tuple[str, int, Mapping[str, Any], Callable[[], object]]] = []
    checks += [("taggers", i, tagger.params, tagger.make().check_requirements) for i, tagger in enumerate(plan.taggers)]
    checks += [("methods", i, method.params, method.augmenter(1, 0).load) for i, method in enumerate(plan.methods)]
    for table, number, params, check in checks:
        try:
            check()
        except EntaugError as error:
            if error.path is None:
                key = next((k for k, value in params.items() if repr(value) in error.message), "")
                error.path, error.line = str(plan.path), plan.lines.of(table, number, key)
            raise


def _run_all(plan: Plan, schedule: Schedule, jobs: int, watch: Watch) -> State:
    records = Records(plan.output)
    records.settle(schedule.runs, schedule.chosen)
    earlier = set(records.found)
    begun = time.monotonic()
    futures: dict[Future[Any], Run] = {}
    pending: set[str] = set()

    def note() -> State:
        state = _state(schedule, records.found, earlier, time.monotonic() - begun)
        watch(state)
        return state

    failed: list[tuple[Run, BaseException]] = []
    with _pool(jobs, plan.threads) as pool:
        while True:
            advanced = -1
            while advanced != len(schedule.runs):
                advanced = len(schedule.runs)
                schedule.advance(records.found)
            for run in schedule.runs:
                if run.key not in records.found and run.key not in pending:
                    pending.add(run.key)
                    with _unheard():
                        futures[pool.submit(perform, run)] = run
            note()
            if not futures:
                break
            finished: set[Future[Any]] = set()
            # A signal may reach another thread than this one, which learns of it when it wakes up.
            while not finished:
                finished, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                run = futures.pop(future)
                if (error := future.exception()) is None:
                    records.append(*future.result())
                else:
                    failed.append((run, error))
                    if isinstance(error, BrokenProcessPool):
                        raise _failure(run, error) from error
    records.settle(schedule.runs, schedule.chosen)
    state = note()
    if failed:  # the others were done all the same
        error = _failure(*failed[0])
        if len(failed) > 1:
            error.message += f", and {len(failed) - 1:,} more failed"
        raise error from failed[0][1]
    return state


def _failure(run: Run, error: BaseException) -> EntaugError:
    """What a run broke off by, with the run named; an error that nobody foresaw too becomes one line."""
    amount = "" if run.arm == "gold" else f" {run.amount:g}N"
    name = f"{run.cell.corpus.name}, {run.cell.size}, {run.tagger.label}, {run.arm}{amount}, seed {run.seed}"
    if isinstance(error, EntaugError):
        error.message += f" (in the run {name})"
        return error
    remedy = "mend it and run the same command again: finished runs are kept"
    if isinstance(error, BrokenProcessPool):
        remedy = "run the same command again with fewer --jobs: finished runs are kept"
        return EntaugError(f"a run died ({name}), perhaps for lack of memory", remedy=remedy)
    if isinstance(error, OSError):
        return OutputError(f"the run {name} could not use a file ({error})", remedy=remedy)
    what = " ".join(str(error).split())[:200]
    return EntaugError(f"the run {name} failed ({type(error).__name__}: {what})", remedy=remedy)


def _state(schedule: Schedule, records: dict[str, dict[str, Any]], earlier: set[str], seconds: float) -> State:
    state = State(total=len(schedule.runs), leaks=schedule.leaks)
    keys: Counter[str] = Counter()
    taken = 0
    for run in schedule.runs:
        key = run.key
        row = state.rows.setdefault(
            (run.cell.corpus.name, run.cell.size, run.tagger.label), {"done": 0, "total": 0, "arms": {}}
        )
        row["total"] += 1
        record = records.get(key)
        keys[key] += 1
        if record is None:
            state.steps_left += run.steps if keys[key] == 1 else 0
            continue
        state.done += 1
        row["done"] += 1
        row["arms"].setdefault((run.arm, run.amount), []).append(f1_of(record["test"]))
        if key in earlier:
            state.earlier += 1
        elif keys[key] == 1:
            taken += run.steps
    if taken:
        state.seconds_left = seconds / taken * state.steps_left
    return state


def _jobs(threads: int) -> int:
    from entaug.backends.transformers.base import choose_device

    if choose_device()[0].type == "cuda":
        return 1
    return max(1, min(4, (os.cpu_count() or 1) // threads))


@contextlib.contextmanager
def _pool(jobs: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for runs, which end with this one however it ends."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin, initargs=(threads, os.getpid(), compute_settings())
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    pool.shutdown()


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Processes that begin here never hear Ctrl-C, not even before they could say so; this one hears it afterwards."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(threads: int, parent: int, settings: ComputeSettings) -> None:
    """Make a process ready for runs."""
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends them
    torch.set_num_threads(threads)
    set_compute_settings(settings)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)  # a killed parent wants no results

    threading.Thread(target=watch, daemon=True).start()
