"""How unsure a tagger is of the labels of a sentence, for the selection of sentences to annotate (active learning)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from entaug.tag_probabilities import TagProbabilities

__all__ = ["Uncertainty", "uncertainty"]

Uncertainty = Literal["confidence", "entropy", "margin"]
"""The measures of `uncertainty`."""
_LEAST = 1e-12


def uncertainty(probabilities: TagProbabilities, measure: Uncertainty = "confidence") -> float:
    """Compute how unsure a tagger is of the labels of a sentence.

    Args:
        probabilities: the probabilities of the tags of its words.
        measure: ``"confidence"``: 1 minus the geometric mean, over the words, of the probability of the likeliest tag
            (Shen et al. 2018, Deep Active Learning for Named Entity Recognition); ``"entropy"``: the mean entropy of
            the tags of a word, in nats; ``"margin"``: 1 minus the smallest difference, over the words, between the
            two likeliest tags.

    Returns:
        A number of at least 0; larger for less sure.

    Example:
        >>> from entaug.tag_probabilities import TagProbabilities
        >>> soft = TagProbabilities(["O", "B-LOC"], [[1.0, 0.0], [0.25, 0.75]])
        >>> [round(uncertainty(soft, measure), 3) for measure in ("confidence", "entropy", "margin")]
        [0.134, 0.281, 0.5]
    """
    rows = [sorted(map(float, row), reverse=True) for row in probabilities.values]
    if measure == "confidence":
        return 1 - math.exp(math.fsum(math.log(max(row[0], _LEAST)) for row in rows) / len(rows))
    if measure == "entropy":
        return math.fsum(-p * math.log(p) for row in rows for p in row if p > 0) / len(rows)
    return max(1 - (row[0] - (row[1] if len(row) > 1 else 0.0)) for row in rows)
