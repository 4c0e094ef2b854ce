"""The device, the precision, the network access and the languages of models that are loaded by name.

Settings come from the code around (`use_compute_settings`), as the command line's ``--device``, ``--precision`` and
``--offline`` do; what is not set there comes from the environment variables ``ENTAUG_DEVICE``, ``ENTAUG_PRECISION``,
``ENTAUG_OFFLINE`` (or the hub's ``HF_HUB_OFFLINE``) and ``ENTAUG_ANY_LANGUAGE``, which are read here alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

from entaug.config.params import validate

_TRUE = frozenset({"1", "true", "yes", "on"})
# oneDNN, by which PyTorch computes on a CPU, keeps 1,024 kernels, one or more for each shape of an array, unless this
# says otherwise: in a training whose batches have many lengths they take hundreds of megabytes, and save little time.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")


@dataclass(frozen=True, kw_only=True)
class ComputeSettings:
    """Device, precision and threads of models.

    Args:
        device: device of PyTorch, for example ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``; by
            default CUDA where there is a GPU, else the CPU.
        precision: number format of language models and encoders; by default bf16 where the device supports it, else
            fp16 on GPUs such as the T4 (except for T5 and Gemma), else fp32. Translation models use fp32 unless this is
            set.
        offline: fetch nothing from the network.
        any_language: use models also for text in a language that they do not serve.
    """

    device: str | None = None
    precision: Literal["fp32", "bf16", "fp16"] | None = None
    offline: bool | None = None
    any_language: bool | None = None

    def __post_init__(self) -> None:
        validate(self)


_active: ContextVar[ComputeSettings] = ContextVar("compute_settings", default=ComputeSettings())  # noqa: B039 (frozen)


def compute_settings() -> ComputeSettings:
    """The settings in force: those of the code around, completed from the environment."""
    active = _active.get()
    variables = ("ENTAUG_OFFLINE", "HF_HUB_OFFLINE")
    return ComputeSettings(
        device=active.device or os.environ.get("ENTAUG_DEVICE") or None,
        precision=active.precision or os.environ.get("ENTAUG_PRECISION") or None,  # type: ignore[arg-type]
        offline=bool(active.offline) or any(map(_is_set, variables)),
        any_language=bool(active.any_language) or _is_set("ENTAUG_ANY_LANGUAGE"),
    )


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in _TRUE


def set_compute_settings(settings: ComputeSettings) -> None:
    """Set the settings of the current context, for example of a worker process."""
    _active.set(settings)


@contextlib.contextmanager
def use_compute_settings(**settings: Any) -> Iterator[ComputeSettings]:
    """Use `ComputeSettings` within a ``with`` block; what is None stays as it is outside."""
    given = {name: value for name, value in settings.items() if value is not None}
    token = _active.set(replace(_active.get(), **given))
    try:
        yield _active.get()
    finally:
        _active.reset(token)


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let PyTorch use so many threads within a ``with`` block; 0 for as many as outside."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def trim_heap() -> None:
    """Give memory that is free, but kept by the allocator of glibc, back to the operating system."""
    # The arrays of a training have many sizes, so that gigabytes stay with the process in pieces that are too small for
    # the next arrays.
    with contextlib.suppress(AttributeError, OSError, TypeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)
