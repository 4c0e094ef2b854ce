"""Rows of a batch: vectors for the head of a model, and mean log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from entaug.backends.transformers.base import torch

__all__ = ["HeadInputs", "mean_log_probs"]


def mean_log_probs(steps: Sequence[Any], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    """Return the mean log-probability of the tokens of each row up to its end."""
    table = torch.stack(list(steps), dim=1).tolist()
    lengths = [len(row) + has_ended for row, has_ended in rows]
    return [math.fsum(values[:n]) / max(1, n) for values, n in zip(table, lengths, strict=True)]


class HeadInputs:
    """Makes the output layer of a causal model compute the logits of selected positions only."""

    # When a model has read its input, `generate` needs the logits of the last position, and passes a slice that is not
    # contiguous to the output layer. For such a slice `matmul` copies the table of the vocabulary for each row: 57 MB a
    # row in a model of 135 million parameters, 3.5 GB in a batch of 63. So slices are made contiguous.

    def __init__(self, model: Any) -> None:
        self.positions: tuple[Any, Any] | None = None
        head = model.get_output_embeddings()
        self.has_head = head is not None
        if head is not None:
            head.register_forward_pre_hook(self._select)

    def _select(self, _: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = inputs[0]
        return (hidden.contiguous() if self.positions is None else hidden[self.positions], *inputs[1:])
