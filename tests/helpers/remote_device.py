"""A device without hardware: its tensors are computed by the CPU, but mixing them with others fails as on a GPU.

Code for GPUs can thus be tested on any machine: where tensors are put, and at least how often something is copied
between the devices. Inside `RemoteDevice` PyTorch has a device ``"remote"``.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

__all__ = ["RemoteDevice", "remote_device"]

_NAME = "remote"
# Operations that have a result on the CPU: the processor waits for the device.
_READING = {"_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "masked_select", "equal", "is_nonzero"}
# Operations whose indices may lie on the CPU: PyTorch copies them.
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_MIXED = {"_pack_padded_sequence", "_pad_packed_sequence"}  # lengths have to be on the CPU


class _Module(getattr(backend_registration, "_DummyBackendModule", object)):  # type: ignore[misc]
    """What PyTorch asks about the device."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


def _register() -> None:
    setup = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
    if setup is None:
        pytest.skip("this version of PyTorch has no devices in Python")
    if hasattr(torch, _NAME):
        return
    setup(_NAME, backend_module=_Module())
    # PyTorch converts lists and numbers past all modes.
    new_library: Any = torch.library.Library
    library = new_library("aten", "IMPL")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    _LIBRARIES.append(library)  # what it registers lives as long as it does


_LIBRARIES: list[Any] = []


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> Any:
    return _RemoteTensor(torch.empty_strided(size, stride, dtype=dtype))


def _copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
    del non_blocking
    RemoteDevice.current.copies["to the device" if isinstance(target, _RemoteTensor) else "from the device"] += 1
    source, place = (t.cpu_values if isinstance(t, _RemoteTensor) else t for t in (source, target))
    place.copy_(source)
    return target


class _RemoteTensor(torch.Tensor):
    """A tensor of the device; ``cpu_values`` are its values on the CPU."""

    cpu_values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> Any:
        tensor: Any = torch.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            layout=values.layout,
            device=torch.device(_NAME, 0),
        )
        tensor.cpu_values = values
        return tensor

    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return RemoteDevice.current.__torch_dispatch__(func, types, args, kwargs)

    def tolist(self) -> Any:
        RemoteDevice.current.copies["from the device"] += 1
        return self.cpu_values.tolist()


class RemoteDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes what is on the device ``"remote"``.

    Attributes:
        copies: how often something was copied, by direction.
    """

    current: RemoteDevice

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.copies: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.overloadpacket.__name__, dict(kwargs or {})
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        remote = [tensor for tensor in tensors if isinstance(tensor, _RemoteTensor)]
        local = [tensor for tensor in tensors if not isinstance(tensor, _RemoteTensor)]
        target = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else None
        if target is not None:
            kwargs["device"] = torch.device("cpu")
        plain_args, plain_kwargs = tree_map(
            lambda x: x.cpu_values if isinstance(x, _RemoteTensor) else x, (args, kwargs)
        )
        if name == "copy_":
            if len(remote) == 1:
                self.copies["to the device" if isinstance(args[0], _RemoteTensor) else "from the device"] += 1
            func(*plain_args, **plain_kwargs)
            return args[0]
        if name == "_to_copy":
            if target == _NAME and not remote:
                self.copies["to the device"] += 1
            if target == "cpu" and remote:
                self.copies["from the device"] += 1
        elif name in _READING:
            self.copies["from the device"] += bool(remote)
        elif remote and name in _INDEXING and isinstance(args[0], _RemoteTensor):
            self.copies["to the device"] += sum(tensor.dim() > 0 for tensor in local)
        elif remote and name not in _MIXED and any(tensor.dim() > 0 for tensor in local):
            raise RuntimeError(f"{name}: tensors on two devices: {[tuple(tensor.shape) for tensor in tensors]}")
        compute = {"_thnn_fused_lstm_cell": _lstm_cell, "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward}
        result = compute.get(name, func)(*plain_args, **plain_kwargs)
        if target not in (None, _NAME) or (target is None and not remote):
            return result
        if name == "_pack_padded_sequence":
            return _RemoteTensor(result[0]), result[1]
        own = {id(tensor.cpu_values): tensor for tensor in remote}  # operations in place return their argument

        def wrapped(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            return own[id(x)] if id(x) in own else _RemoteTensor(x)

        return tree_map(wrapped, result)

    def __enter__(self) -> Any:
        RemoteDevice.current = self
        return super().__enter__()  # type: ignore[no-untyped-call]


def _lstm_cell(
    of_input: torch.Tensor, of_hidden: torch.Tensor, cell: torch.Tensor, *biases: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """A step of an LSTM, for which devices have an operation that the CPU lacks."""
    gates = sum(biases, of_input + of_hidden).chunk(4, 1)
    opened = [gates[0].sigmoid(), gates[1].sigmoid(), gates[2].tanh(), gates[3].sigmoid()]
    new_cell = opened[1] * cell + opened[0] * opened[2]
    return opened[3] * new_cell.tanh(), new_cell, torch.cat(opened, 1)


def _lstm_cell_backward(
    grad_hidden: Any, grad_cell: Any, cell: torch.Tensor, new_cell: torch.Tensor, gates: torch.Tensor, has_bias: bool
) -> tuple[torch.Tensor, ...]:
    entry, kept, value, output = gates.chunk(4, 1)
    grad_hidden = torch.zeros_like(cell) if grad_hidden is None else grad_hidden
    total = grad_hidden * output * (1 - new_cell.tanh() ** 2) + (0 if grad_cell is None else grad_cell)
    of_gates = torch.cat(
        [
            total * value * entry * (1 - entry),
            total * cell * kept * (1 - kept),
            total * entry * (1 - value**2),
            grad_hidden * new_cell.tanh() * output * (1 - output),
        ],
        1,
    )
    return of_gates, total * kept, of_gates.sum(0) if has_bias else cell.new_empty(0)


@contextlib.contextmanager
def remote_device() -> Iterator[RemoteDevice]:
    """Give PyTorch the device ``"remote"``."""
    _register()
    # The threads of backward passes were counted at the first one, perhaps before there was this device.
    threads: Any = torch.autograd.set_multithreading_enabled
    with pytest.MonkeyPatch.context() as patch, threads(False), RemoteDevice() as device:
        patch.setattr(torch.__future__, "_overwrite_module_params_on_conversion", True)
        patch.setattr(torch, "inference_mode", torch.no_grad)  # its tensors cannot be wrapped
        yield device
