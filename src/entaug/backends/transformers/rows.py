"""Rows of token ids: equal rows read once, vectors for the head, and mean log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from entaug.backends.transformers.base import torch

__all__ = ["mean_log_probs", "shared_inputs", "with_contiguous_head"]

_MIN_WIDTH = 48  # shorter inputs cost little


def mean_log_probs(steps: Sequence[Any], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    """Return the mean log-probability of the tokens of each row up to its end.

    Args:
        steps: for each step the log-probabilities of the drawn tokens of all rows.
        rows: the tokens of each row, and whether it has ended.
    """
    table = torch.stack(list(steps), dim=1).tolist()
    lengths = [len(row) + has_ended for row, has_ended in rows]
    return [math.fsum(values[:n]) / max(1, n) for values, n in zip(table, lengths, strict=True)]


def shared_inputs(model: Any, ids: Any, mask: Any) -> dict[str, Any]:
    """Let a causal language model read equal inputs once, where there are many.

    Args:
        model: the model.
        ids: the inputs, padded on the left, of shape (rows, width).
        mask: their attention mask.

    Returns:
        Further arguments of the model: the keys and values of all tokens but the last of each row; empty where it does
        not pay.
    """
    if ids.shape[1] < _MIN_WIDTH:
        return {}
    distinct, index = torch.unique(ids, dim=0, return_inverse=True)
    if 2 * len(distinct) > len(ids):
        return {}
    rows = [index.tolist().index(i) for i in range(len(distinct))]
    own_mask = mask[rows, :-1]
    past = model.base_model(  # without the head, whose output is not used
        input_ids=distinct[:, :-1],
        attention_mask=own_mask,
        position_ids=(own_mask.cumsum(-1) - 1).clamp(min=0),
        use_cache=True,
    ).past_key_values
    past.batch_select_indices(index)
    return {"past_key_values": past}


def with_contiguous_head(model: Any) -> Any:
    """Have the head of a causal model read contiguous vectors.

    After the inputs a model computes the head for the last token of each row alone: a slice. For a slice of three
    dimensions ``matmul`` copies the table of the vocabulary for each row: 57 MB a row in a model of 135 million
    parameters, 3.5 GB in a batch of 63.

    Args:
        model: a model of transformers; changed in place.

    Returns:
        The model.
    """
    head = model.get_output_embeddings()
    if head is not None:
        head.register_forward_pre_hook(_contiguous)
    return model


def _contiguous(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.contiguous() if isinstance(value, torch.Tensor) else value for value in inputs)
