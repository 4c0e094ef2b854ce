"""Fast training of encoders: sentences packed into one sequence without padding, fused attention, cheap dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

__all__ = ["FastDropout", "Packing", "can_pack", "pack_rows", "replace_dropout", "use_packed_attention"]

_NAME = "entaug_packed"
# Families whose attention can be replaced and whose positions can be given; the value is the first position, where
# None stands for the position behind the padding id.
_FIRST_POSITION: dict[str, int | None] = {
    "bert": 0,
    "camembert": None,
    "electra": 0,
    "roberta": None,
    "xlm-roberta": None,
}


class Packing(NamedTuple):
    """Where the sub-words of packed rows are in a padded batch."""

    padded_index: torch.Tensor
    mask: torch.Tensor | None
    shape: tuple[int, int]


def can_pack(config: Any) -> bool:
    """Whether an encoder can take packed rows."""
    if getattr(config, "is_decoder", False) or config.model_type not in _FIRST_POSITION:
        return False
    return getattr(config, "position_embedding_type", "absolute") in (None, "absolute")


def pack_rows(
    rows: Sequence[Sequence[int]], config: Any, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, Packing]:
    """Concatenate rows of token ids."""
    width = max(map(len, rows))
    lengths = np.array([len(row) for row in rows])
    within = np.concatenate([np.arange(n) for n in lengths])
    row_of = np.repeat(np.arange(len(rows)), lengths)
    first = _FIRST_POSITION[config.model_type]
    positions = within + (config.pad_token_id + 1 if first is None else first)
    ids = torch.tensor([i for row in rows for i in row])
    mask = None
    if int(lengths.min()) < width:
        mask = torch.from_numpy(np.where(np.arange(width)[None] < lengths[:, None], 0.0, -1e4))[:, None, None].to(
            device
        )
    packing = Packing(torch.from_numpy(row_of * width + within).to(device), mask, (len(rows), width))
    return ids[None], torch.from_numpy(positions)[None].to(device), packing


def _packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    packing: Packing | None = None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention within each packed row, without dropout of its probabilities."""
    # Written out, because the backward pass of the fused kernel of CPUs takes seven times as long as this one in bf16.
    if packing is None:
        result: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return result
    rows, width = packing.shape

    def pad(states: torch.Tensor) -> torch.Tensor:
        _, heads, _, size = states.shape
        padded = states.new_zeros(rows * width, heads, size)
        padded = padded.index_copy(0, packing.padded_index, states[0].transpose(0, 1))
        return padded.view(rows, width, heads, size).transpose(1, 2)

    query, key, value = pad(query), pad(key), pad(value)
    scores = (query * (scaling or query.shape[-1] ** -0.5)) @ key.transpose(-1, -2)
    if packing.mask is not None:
        scores = scores + packing.mask.to(scores.dtype)
    states = scores.softmax(-1) @ value
    packed: torch.Tensor = _Unpad.apply(states.transpose(1, 2).flatten(0, 1), packing.padded_index)  # type: ignore[no-untyped-call]
    return packed[None], None


class _Unpad(torch.autograd.Function):
    """The rows of sub-words; since no row is taken twice, the gradients need not be summed."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(index)
        ctx.num_rows = len(states)
        return states.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        (index,) = ctx.saved_tensors
        zeros = grads[0].new_zeros(ctx.num_rows, *grads[0].shape[1:])
        return zeros.index_copy_(0, index, grads[0].contiguous()), None


AttentionInterface.register(_NAME, _packed_attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)


def use_packed_attention(model: Any) -> None:
    """Let an encoder compute attention within packed rows."""
    model.set_attn_implementation(_NAME)
    model.embeddings.register_forward_hook(_lower_precision)


def _lower_precision(module: torch.nn.Module, args: Any, states: torch.Tensor) -> torch.Tensor:
    """Cast the embeddings of words to the precision of autocast on the CPU."""
    # Then all states have it. Otherwise each linear layer would cast its input, since the residual states are fp32.
    del module, args
    if states.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return states
    return states.to(torch.get_autocast_dtype("cpu"))


class FastDropout(torch.nn.Module):
    """Dropout on the CPU: torch draws one number after another there, which takes a tenth of a training step."""

    def __init__(self, p: float, rng: np.random.Generator) -> None:
        super().__init__()
        self.p = p
        self._rng = rng
        self._threshold = min(round(p * 65536) - 32768, 32767)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Set a share of the values to 0 and scale the others."""
        if not self.training or self.p == 0 or not states.numel():
            return states
        bits = torch.frombuffer(bytearray(self._rng.bytes(2 * states.numel())), dtype=torch.int16)
        factors = (bits >= self._threshold).to(states.dtype).mul_(1 / (1 - self.p))
        return states * factors.view(states.shape)


def replace_dropout(module: torch.nn.Module, seed: int) -> None:
    """Replace each dropout of a module that is on the CPU by `FastDropout`."""
    rng = np.random.Generator(np.random.SFC64(abs(seed)))
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if type(child) is torch.nn.Dropout:
                setattr(parent, name, FastDropout(child.p, rng))
