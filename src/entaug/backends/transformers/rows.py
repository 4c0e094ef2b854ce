"""Rows of token ids: padding on the left, and mean log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from entaug.backends.transformers.base import torch

__all__ = ["mean_log_probs", "padded_left"]


def padded_left(ids: Any, mask: Any) -> tuple[Any, Any]:
    """Move the padding of rows from their ends to their beginnings.

    Args:
        ids: the rows, changed in place.
        mask: their attention mask, changed in place.

    Returns:
        Both.
    """
    for i, length in enumerate(mask.sum(1).tolist()):
        shift = mask.shape[1] - int(length)
        ids[i], mask[i] = ids[i].roll(shift), mask[i].roll(shift)
    return ids, mask


def mean_log_probs(steps: Sequence[Any], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    """Return the mean log-probability of the tokens of each row up to its end.

    Args:
        steps: for each step the log-probabilities of the drawn tokens of all rows.
        rows: the tokens of each row, and whether it has ended.
    """
    table = torch.stack(list(steps), dim=1).tolist()
    lengths = [len(row) + has_ended for row, has_ended in rows]
    return [math.fsum(values[:n]) / max(1, n) for values, n in zip(table, lengths, strict=True)]
