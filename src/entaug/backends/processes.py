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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from entaug.backends.compute import ComputeSettings, compute_settings, set_compute_settings
from entaug.errors import EntaugError, ParameterError

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_SMALL = 4 << 20  # bytes of an input that one process has read before others have started
_MOST_DEATHS = 3  # of processes, one after the other, without a result in between
_AHEAD = 2  # tasks a process that are given out before the first result is taken


def available_cores() -> int:
    """Return the number of cores that this process may use, for example those that Slurm gave to it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_jobs(jobs: int | None) -> None:
    """Check a number of processes."""
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise ParameterError(f"`jobs` must be at least 1, not {jobs}", parameter="jobs")


def number_of_processes(jobs: int | None, size: int, *, uses_models: bool = False) -> int:
    """Return the number of processes that are worth starting, for an input of so many bytes."""
    check_jobs(jobs)
    if jobs is not None:
        return jobs
    return 1 if uses_models or size < _SMALL or _unguarded_line() is not None else available_cores()


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
    """Processes that apply functions to tasks; results come in the order of the tasks. One that dies is replaced."""

    def __init__(self, jobs: int, folder: Path, pools: contextlib.ExitStack) -> None:
        self.jobs = jobs
        self._folder = folder
        self._pools = pools
        self._pool = pools.enter_context(process_pool(jobs))
        self._shared: list[Any] = []

    @classmethod
    @contextlib.contextmanager
    def start(cls, jobs: int) -> Iterator[Workers]:
        """Start processes; they end at the end of the block."""
        with tempfile.TemporaryDirectory(prefix="entaug-") as folder, contextlib.ExitStack() as pools:
            yield cls(jobs, Path(folder), pools)

    def begin(self, function: Callable[[S, None], object], shared: S) -> None:
        """Let each process apply a function to None, for example to load what it needs."""
        for _ in range(self.jobs):
            self._submit(function, shared, None)

    def map(self, function: Callable[[S, T], R], shared: S, tasks: Iterable[T]) -> Iterator[R]:
        """Apply a function to tasks."""
        waiting: deque[tuple[T, Future[R]]] = deque()
        left, deaths = iter(tasks), 0
        while True:
            try:
                while len(waiting) < _AHEAD * self.jobs:
                    try:
                        task = next(left)
                    except StopIteration:
                        break
                    waiting.append((task, Future()))  # in case that the pool is broken
                    waiting[-1] = task, self._submit(function, shared, task)
                if not waiting:
                    return
                result = _result(waiting[0][1])
            except BrokenProcessPool as error:
                deaths += 1
                if deaths > _MOST_DEATHS:
                    raise EntaugError(
                        "a process ended before its work was done, perhaps for lack of memory",
                        remedy="run the same command again with fewer `jobs`",
                    ) from error
                self._pools.close()
                self._pool = self._pools.enter_context(process_pool(self.jobs))
                waiting = deque((task, self._submit(function, shared, task)) for task, _ in waiting)
                continue
            waiting.popleft()
            deaths = 0
            yield result

    def _submit(self, function: Callable[[S, Any], R], shared: S, task: Any) -> Future[R]:
        """Give a task to a process; what tasks share is written once, to a file."""
        if not (self._shared and self._shared[-1] is shared):
            self._shared.append(shared)
            with self._path.open("xb") as stream:
                pickle.dump(shared, stream, protocol=pickle.HIGHEST_PROTOCOL)
        with interrupts_blocked():
            return self._pool.submit(_call, function, self._path, task)

    @property
    def _path(self) -> Path:
        return self._folder / f"shared-{len(self._shared)}.pickle"


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
    return with_plain_errors(function, _shared[1], task)


def with_plain_errors(function: Callable[..., R], *arguments: Any) -> R:
    """Call a function in a process of a pool; an error that cannot be sent becomes one that can."""
    try:
        return function(*arguments)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 - packed here
        except Exception:  # noqa: BLE001 - a class whose arguments are not those of its message, for example
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            vars(plain).update({name: own for name, own in vars(error).items() if name in ("__notes__", "named_part")})
            raise plain from error
        raise
