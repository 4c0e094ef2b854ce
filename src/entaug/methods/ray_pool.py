"""Actors of a Ray cluster that apply a function to tasks: the only module that knows Ray."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import re
import signal
import socket
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from entaug.backends.compute import compute_settings
from entaug.errors import EntaugError, MissingExtraError, ParameterError

__all__ = ["Cluster", "Pool", "connected", "pool_for"]

_ON_GPU = ("causal_lm", "encoder", "generator", "masked_lm", "tagger", "token_lm", "translator")
_SECONDS = 10.0  # to wait for an address
_STORE_SHARE = 8  # tasks that are sent before their results are waited for take at most this part of the object store
_MAX_SENT = 1 << 30  # bytes
_ERROR = re.compile(r"\s*[\w.]+(Error|Exception): ")


@dataclass(frozen=True)
class Pool:
    """The actors of a run."""

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
            raise ParameterError("the cluster has no GPU", parameter="device", remedy="leave out --device")
        actors = jobs or gpus
        return Pool(actors, 1, 1 / -(-actors // gpus))
    cores = [int(of) for of, _ in machines if of >= 1]
    total = sum(cores)
    if not total or (jobs or 1) > total:
        remedy = "start more machines" if not total else f"pass --jobs {total} at most"
        raise ParameterError(f"the cluster has {total} CPUs", parameter="jobs", remedy=remedy)
    if jobs is None:
        each = min(cores) if uses_models else 1
        return Pool(sum(of // each for of in cores), each)
    # As many as fit: an actor needs its CPUs on one machine.
    each = max(n for n in range(1, max(cores) + 1) if n == 1 or sum(of // n for of in cores) >= jobs)
    return Pool(jobs, each if uses_models else 1)


class Cluster:
    """A Ray cluster that this process is connected to."""

    def pool(self, augmenter: Any, jobs: int | None) -> Pool:
        """Choose the actors for a method; see `pool_for`."""
        import ray

        machines = [
            (node["Resources"].get("CPU", 0.0), node["Resources"].get("GPU", 0.0))
            for node in ray.nodes()
            if node["Alive"]
        ]
        methods = getattr(augmenter, "augmenters", [augmenter])
        components = [part for method in methods for part in (method, *method.filters_, method.teacher_)]
        on_gpu = any(getattr(part, f"{kind}_", None) is not None for part in components for kind in _ON_GPU)
        device = compute_settings().device
        return pool_for(machines, jobs, device=device, uses_models=augmenter.uses_models, on_gpu=on_gpu)

    def map(
        self,
        pool: Pool,
        kind: Callable[[Any], Callable[[bytes], tuple[int, bytes]]],
        shared: Any,
        tasks: Iterable[tuple[int, bytes]],
    ) -> Iterator[tuple[int, tuple[int, bytes]]]:
        """Apply a function to tasks."""
        # An actor that dies is started again, and its task repeated.
        import ray

        reference = ray.put(shared)
        most = min(_MAX_SENT, int(ray.cluster_resources().get("object_store_memory", 0)) // _STORE_SHARE)
        try:
            for some in _in_portions(tasks, most):
                yield from self._results(pool, kind, [reference], some)
        except ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines()
            raise _failure(next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1])) from error

    def _results(
        self, pool: Pool, kind: Any, reference: Sequence[Any], tasks: Sequence[tuple[int, bytes]]
    ) -> Iterator[tuple[int, tuple[int, bytes]]]:
        import pyarrow as pa
        import ray.data

        # A block for each task, so that each is sent, computed and repeated alone.
        blocks = [pa.table({"number": [number], "task": pa.array([task], pa.large_binary())}) for number, task in tasks]
        results = ray.data.from_arrow(blocks).map_batches(
            _Actor,
            fn_constructor_args=(kind, reference),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=min(pool.actors, len(blocks))),
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
        )
        for batch in results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            for row in batch.to_pylist():
                if row["error"]:
                    raise pickle.loads(row["error"])  # noqa: S301 - written by a worker of this run
                yield row["number"], (row["count"], row["result"])


class _Actor:
    """Ray Data actor; errors of ours are results, so that they arrive as they are."""

    def __init__(self, kind: Any, reference: Sequence[Any]) -> None:
        import ray

        [shared] = ray.get(list(reference))
        self._function = kind(shared)

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        [row] = batch.to_pylist()
        count, result, error = 0, b"", b""
        try:
            count, result = self._function(row["task"])
        except EntaugError as raised:
            error = pickle.dumps(raised)
        except Exception as raised:  # noqa: BLE001 - of any library
            failure = _failure(f"{type(raised).__name__}: {raised}")
            failure.add_note(traceback.format_exc())
            error = pickle.dumps(failure)
        of_bytes = {n: pa.array([v], pa.large_binary()) for n, v in (("result", result), ("error", error))}
        return pa.table({"number": [row["number"]], "count": [count], **of_bytes})


def _failure(reason: str) -> EntaugError:
    remedy = "mend it, and run the same command again to go on"
    return EntaugError(f"a worker of the cluster failed ({reason.strip()})", remedy=remedy)


def _in_portions(tasks: Iterable[tuple[int, bytes]], most: int) -> Iterator[list[tuple[int, bytes]]]:
    """Divide tasks into lists of so many bytes at most, or of one task."""
    portion: list[tuple[int, bytes]] = []
    size = 0
    for task in tasks:
        if portion and size + len(task[1]) > most:
            yield portion
            portion, size = [], 0
        portion.append(task)
        size += len(task[1])
    if portion:
        yield portion


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Cluster]:
    """Connect to a Ray cluster, or start one on this machine for the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that starts here tells its makers nothing
    try:
        import pyarrow as pa  # noqa: F401
        import ray
        import ray.data
    except ModuleNotFoundError:
        raise MissingExtraError("ray", "ray") from None
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield Cluster()
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
        yield Cluster()
    finally:
        ray.shutdown()


def _no_cluster(address: str, reason: str) -> EntaugError:
    remedy = "check --address, or start one: ray start --head"
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
