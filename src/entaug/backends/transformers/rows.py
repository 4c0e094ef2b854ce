"""Rows of a batch: vectors for the head of a model, and mean log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from entaug.backends.transformers.base import torch

__all__ = ["HeadInputs", "mean_log_probs"]


def mean_log_probs(steps: Sequence[Any], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    """Return the mean log-probability of the tokens of each row up to its end.

    Args:
        steps: for each step the log-probabilities of the drawn tokens of all rows.
        rows: the tokens of each row, and whether it has ended.
    """
    table = torch.stack(list(steps), dim=1).tolist()
    lengths = [len(row) + has_ended for row, has_ended in rows]
    return [math.fsum(values[:n]) / max(1, n) for values, n in zip(table, lengths, strict=True)]


class HeadInputs:
    """Lets the head of a causal model read vectors of selected positions, or contiguous ones.

    After the inputs a model computes the head for the last token of each row alone: a slice. For a slice of three
    dimensions ``matmul`` copies the table of the vocabulary for each row: 57 MB a row in a model of 135 million
    parameters, 3.5 GB in a batch of 63.

    Args:
        model: a model of transformers; the hook stays with it.

    Attributes:
        has_head: whether the model has a head that this holds for.
        positions: the rows and columns of the positions whose logits are computed, each of shape (positions,); None for
            those of all positions.
    """

    def __init__(self, model: Any) -> None:
        self.positions: tuple[Any, Any] | None = None
        head = model.get_output_embeddings()
        self.has_head = head is not None
        if head is not None:
            head.register_forward_pre_hook(self._select)

    def _select(self, _: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = inputs[0]
        return (hidden.contiguous() if self.positions is None else hidden[self.positions], *inputs[1:])
