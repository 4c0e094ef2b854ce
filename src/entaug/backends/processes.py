"""Processes that share the work of a command, and end together with it."""

from __future__ import annotations

import ast
import contextlib
import os
import pickle
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from entaug.backends.compute import ComputeSettings, compute_settings, set_compute_settings
from entaug.errors import EntaugError, ParameterError

__all__ = ["Workers", "available_cores", "check_jobs", "interrupts_blocked", "number_of_processes", "process_pool"]

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_SMALL = 4 << 20  # bytes of an input that one process has read before others have started
_AHEAD = 2  # tasks a process that are given out before the first result is taken


def available_cores() -> int:
    """Return the number of cores that this process may use, for example those that Slurm gave to it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_jobs(jobs: int | None) -> None:
    """Check a number of processes."""
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise ParameterError(f"--jobs must be at least 1, not {jobs}", parameter="jobs")


def number_of_processes(jobs: int | None, size: int, with_models: Sequence[str] = ()) -> int:
    """Return the number of processes that are worth starting."""
    check_jobs(jobs)
    if with_models and (jobs or 1) > 1:
        raise ParameterError(
            f"{with_models[0]} uses models, which compute in one process with all threads",
            parameter="jobs",
            remedy="leave out --jobs",
        )
    if jobs is not None:
        return jobs
    return 1 if with_models or size < _SMALL or _unguarded_line() is not None else available_cores()


# ---------------------------------------------------------------------------------------------------------------- pools


@contextlib.contextmanager
def process_pool(jobs: int, threads: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """Start processes, which end together with this one and at once where the block ends with an error."""
    # They are spawned: a fork of a process with threads (progress bars, models) may wait for ever for a lock of a
    # thread that it does not have.
    import multiprocessing

    if (line := _unguarded_line()) is not None:
        raise EntaugError(
            "several processes are started by code that each of them would run again",
            path=str(sys.modules["__main__"].__file__),
            line=line,
            remedy='put the code of the script under: if __name__ == "__main__":, or leave out jobs',
        )
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_initialize,
        initargs=(threads, os.getpid(), compute_settings()),
    )
    others = set(multiprocessing.active_children())
    try:
        yield pool
    except BaseException:
        _end(pool, set(multiprocessing.active_children()) - others)
        raise
    pool.shutdown()


def _unguarded_line() -> int | None:
    """The line of the script that is running, if processes that import the script would run it, too."""
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", "").endswith(".__main__"):  # python -m PACKAGE: not run again
        return None
    path = getattr(main, "__file__", None)
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - as `inspect` does
    while frame is not None and not (frame.f_globals is vars(main) and frame.f_code.co_name == "<module>"):
        frame = frame.f_back
    if path is None or frame is None:  # interactive, or a thread
        return None
    try:
        statements = ast.parse(Path(path).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    line = frame.f_lineno
    for statement in statements:
        if statement.lineno <= line <= (statement.end_lineno or 0):
            tested = ast.walk(statement.test) if isinstance(statement, ast.If) else ()
            return None if any(isinstance(name, ast.Name) and name.id == "__name__" for name in tested) else line
    return None


def _end(pool: ProcessPoolExecutor, children: Iterable[BaseProcess]) -> None:
    """End a pool and its processes at once."""
    # The pool's thread is waited for: at its own exit Python wakes up such a thread, and prints a traceback if the
    # thread closes its pipe meanwhile. The thread may be blocked reading a result whose writer was ended; to close our
    # own copy of the write end, the last one, gives it the end of the file.
    thread, results = (vars(pool).get(name) for name in ("_executor_manager_thread", "_result_queue"))
    pool.shutdown(wait=False, cancel_futures=True)
    for child in children:
        child.terminate()
    if thread is not None and results is not None:
        results._writer.close()  # noqa: SLF001 - there is no public way
        thread.join()


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT, so that processes that start here never receive Ctrl-C; this one receives it afterwards."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _initialize(threads: int | None, parent: int, settings: ComputeSettings) -> None:
    """Initialize a process of a pool."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates it
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    set_compute_settings(settings)

    def exit_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()


# -------------------------------------------------------------------------------------------------------------- workers


class Workers:
    """Processes that apply functions to tasks; results come in the order of the tasks."""

    def __init__(self, pool: ProcessPoolExecutor, jobs: int, folder: Path) -> None:
        self.jobs = jobs
        self._pool = pool
        self._folder = folder
        self._count = 0

    @classmethod
    @contextlib.contextmanager
    def start(cls, jobs: int) -> Iterator[Workers]:
        """Start processes; they end at the end of the block."""
        with tempfile.TemporaryDirectory(prefix="entaug-") as folder, process_pool(jobs) as pool:
            yield cls(pool, jobs, Path(folder))

    def map(self, function: Callable[[S, T], R], shared: S, tasks: Iterable[T]) -> Iterator[R]:
        """Apply a function to tasks."""
        self._count += 1
        path = self._folder / f"shared-{self._count}.pickle"
        with path.open("xb") as stream:
            pickle.dump(shared, stream, protocol=pickle.HIGHEST_PROTOCOL)
        waiting: deque[Future[R]] = deque()
        try:
            for task in tasks:
                with interrupts_blocked():
                    waiting.append(self._pool.submit(_call, function, path, task))
                if len(waiting) >= _AHEAD * self.jobs:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        except BrokenProcessPool as error:
            raise EntaugError(
                "a process ended before its work was done, perhaps for lack of memory",
                remedy="run the same command again with fewer --jobs",
            ) from error


def _result(future: Future[R]) -> R:
    # A signal may reach another thread; the main thread handles it when it wakes up.
    while not future.done():
        wait([future], timeout=0.5)
    return future.result()


_shared: tuple[Path, Any] | None = None  # of the latest tasks of this process


def _call(function: Callable[[Any, Any], R], path: Path, task: Any) -> R:
    """Apply a function in a process of a pool."""
    global _shared  # noqa: PLW0603
    if _shared is None or _shared[0] != path:
        _shared = None  # free the memory first
        with path.open("rb") as stream:
            _shared = path, pickle.load(stream)  # noqa: S301 - written by the parent
    return function(_shared[1], task)
