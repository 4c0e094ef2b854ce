"""How unsure a tagger is of the labels of a sentence, for the selection of sentences to annotate (active learning)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from entaug.backends.soft_labels import TagProbabilities

__all__ = ["Uncertainty", "uncertainty"]

Uncertainty = Literal["confidence", "entropy", "margin"]
"""The measures of `uncertainty`."""
_LEAST = 1e-12


def uncertainty(probabilities: TagProbabilities, measure: Uncertainty = "confidence") -> float:
    """Compute how unsure a tagger is of the labels of a sentence."""
    rows = [sorted(map(float, row), reverse=True) for row in probabilities.values]
    if measure == "confidence":
        return 1 - math.exp(math.fsum(math.log(max(row[0], _LEAST)) for row in rows) / len(rows))
    if measure == "entropy":
        return math.fsum(-p * math.log(p) for row in rows for p in row if p > 0) / len(rows)
    return max(1 - (row[0] - (row[1] if len(row) > 1 else 0.0)) for row in rows)
