"""Actors of a Ray cluster that do the work of processes: the only module that knows Ray."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from entaug.backends.compute import ComputeSettings, compute_settings, set_compute_settings
from entaug.errors import EntaugError, MissingExtraError, ParameterError

_ON_GPU = ("causal_lm", "encoder", "generator", "masked_lm", "tagger", "token_lm", "translator")
_SECONDS = 10.0  # to wait for an address
_AHEAD = 2  # tasks an actor that are given out before the first result is taken
_RESTARTS = 3  # of an actor that died
_ERROR = re.compile(r"\s*[\w.]+(Error|Exception): ")


class Pool(NamedTuple):
    """The actors of a run, and what each of them takes."""

    actors: int
    cpus: float
    gpus: float = 0.0


def pool_for(
    machines: Sequence[tuple[float, float]], jobs: int | None, *, device: str | None, uses_models: bool, on_gpu: bool
) -> Pool:
    """Choose the actors of a run."""
    gpus = sum(int(of) for _, of in machines)
    wants_gpu = device is not None and device.startswith("cuda")
    if on_gpu and (wants_gpu or (gpus and device is None)):
        if not gpus:
            raise ParameterError("the cluster has no GPU", parameter="device", remedy="leave out `device`")
        actors = jobs or gpus
        return Pool(actors, 1, 1 / -(-actors // gpus))
    cores = [int(of) for of, _ in machines if of >= 1]
    total = sum(cores)
    if not total or (jobs or 1) > total:
        remedy = "start more machines" if not total else f"pass `jobs={total}` at most"
        raise ParameterError(f"the cluster has {total} CPUs", parameter="jobs", remedy=remedy)
    if jobs is None:
        each = min(cores) if uses_models else 1
        return Pool(sum(of // each for of in cores), each)
    # As many as fit: an actor needs its CPUs on one machine.
    each = max(n for n in range(1, max(cores) + 1) if n == 1 or sum(of // n for of in cores) >= jobs)
    return Pool(jobs, each if uses_models else 1)


class RayWorkers:
    """Actors that apply functions to tasks, as `entaug.backends.processes.Workers` do; those that die start again."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._actors: list[Any] = []
        self._reference: Any = None

    @classmethod
    @contextlib.contextmanager
    def start(cls, address: str | None, augmenter: Any, jobs: int | None) -> Iterator[RayWorkers]:
        """Connect to a cluster, or start one on this machine, for the block."""
        with connected(address):
            import ray

            machines = [
                (node["Resources"].get("CPU", 0.0), node["Resources"].get("GPU", 0.0))
                for node in ray.nodes()
                if node["Alive"]
            ]
            components = [part for one in augmenter.augmenters for part in (one, *one.filters_, one.teacher_)]
            on_gpu = any(getattr(part, f"{kind}_", None) is not None for part in components for kind in _ON_GPU)
            device = compute_settings().device
            workers = cls(pool_for(machines, jobs, device=device, uses_models=augmenter.uses_models, on_gpu=on_gpu))
            try:
                yield workers
            finally:
                for actor in workers._actors:
                    ray.kill(actor)

    def begin(self, function: Callable[[Any, None], object], shared: Any) -> None:
        """Start the actors; each applies the function to None."""
        import ray

        actor, self._reference = ray.remote(_Actor), ray.put(shared)  # kept for actors that are started again
        options = actor.options(
            num_cpus=self._pool.cpus, num_gpus=self._pool.gpus, max_restarts=_RESTARTS, max_task_retries=_RESTARTS
        )
        self._actors = [
            options.remote(function, [self._reference], compute_settings()) for _ in range(self._pool.actors)
        ]
        for one in self._actors:
            one.apply.remote(None)

    def map(self, _function: Callable[[Any, Any], Any], _shared: Any, tasks: Iterable[Any]) -> Iterator[Any]:
        """Apply the function to tasks, of which each actor takes its turn; results come in the order of the tasks."""
        import ray

        waiting: deque[Any] = deque()
        try:
            for number, task in enumerate(tasks):
                waiting.append(self._actors[number % len(self._actors)].apply.remote(task))
                if len(waiting) >= _AHEAD * len(self._actors):
                    yield _result(ray.get(waiting.popleft()))
            while waiting:
                yield _result(ray.get(waiting.popleft()))
        except ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines()
            raise _failure(next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1])) from error


class _Actor:
    """Applies a function; errors of ours are results, so that they arrive as they are."""

    def __init__(
        self, function: Callable[[Any, Any], Any], reference: Sequence[Any], settings: ComputeSettings
    ) -> None:
        import ray

        self._function, self._settings = function, settings
        [self._shared] = ray.get(list(reference))

    def apply(self, task: Any) -> tuple[Any, EntaugError | None]:
        set_compute_settings(self._settings)
        try:
            return self._function(self._shared, task), None
        except EntaugError as error:
            return None, error


def _result(of_actor: tuple[Any, EntaugError | None]) -> Any:
    result, error = of_actor
    if error is not None:
        raise error
    return result


def _failure(reason: str) -> EntaugError:
    remedy = "mend it, and run the same command again to go on"
    return EntaugError(f"a worker of the cluster failed ({reason.strip()})", remedy=remedy)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to a Ray cluster, or start one on this machine for the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that starts here tells its makers nothing
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtraError("ray", "ray") from None
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or None
    is_local = address in (None, "local")
    if not is_local:
        _check_reachable(str(address))
    options: dict[str, Any] = {"include_dashboard": False} if is_local else {"address": address}
    try:
        with _own_signals(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(**options, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError, TimeoutError, ValueError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise _no_cluster("a cluster cannot be started here" if is_local else str(address), reason) from error
    try:
        yield
    finally:
        ray.shutdown()


def _no_cluster(address: str, reason: str) -> EntaugError:
    remedy = "check `address`, or start one: ray start --head"
    return EntaugError(f"no Ray cluster: {reason}", path=address, remedy=remedy)


def _check_reachable(address: str) -> None:
    """Check that something answers at an address: Ray itself waits for minutes, and may end the process."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal():
        if address != "auto":
            raise _no_cluster(address, "the address is not HOST:PORT or auto")
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, f"nothing answers there ({getattr(error, 'strerror', None) or error})") from None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers of signals of this process, which Ray replaces when it starts."""
    names = [name for name in ("SIGTERM", "SIGINT") if hasattr(signal, name)]
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for name, handler in before.items():
                signal.signal(getattr(signal, name), handler)
