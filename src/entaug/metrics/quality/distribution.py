"""Distribution: labels, numbers of mentions and lengths of sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from entaug.core.data import Sentence
from entaug.metrics.quality.base import MeasureInputs, MeasureValue, UndefinedError, mean_over_sentences, measure

__all__ = ["jensen_shannon", "label_distance", "label_variation", "length", "mentions", "total_variation"]


@measure("Label distance", unit="score", higher="further from gold")
def label_distance(inputs: MeasureInputs) -> MeasureValue:
    """Jensen-Shannon distance (base 2) of the distribution of labels from that of gold."""
    return MeasureValue(jensen_shannon(*_label_distributions(inputs)))


@measure("Label variation", unit="share", higher="further from gold")
def label_variation(inputs: MeasureInputs) -> MeasureValue:
    """Share of mentions that would need another label for gold's distribution of labels (total variation)."""
    return MeasureValue(total_variation(*_label_distributions(inputs)))


def _label_distributions(inputs: MeasureInputs) -> tuple[dict[str, float], dict[str, float]]:
    """The label distributions of the sentences and of gold."""
    augmented, gold = _label_shares(inputs.sentences), _label_shares(inputs.require_gold())
    if not (augmented and gold):
        raise UndefinedError("there are no mentions")
    return augmented, gold


def _label_shares(sentences: Iterable[Sentence]) -> dict[str, float]:
    counts = Counter(mention.label for sentence in sentences for mention in sentence.mentions)
    return {label: count / counts.total() for label, count in counts.items()}


def jensen_shannon(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """Jensen-Shannon distance: the square root of the divergence in bits (Endres and Schindelin 2003)."""
    middle = {label: (p.get(label, 0) + q.get(label, 0)) / 2 for label in sorted({*p, *q})}

    def divergence(of: Mapping[str, float]) -> float:
        return math.fsum(of[label] * math.log2(of[label] / middle[label]) for label in middle if label in of)

    return math.sqrt(max(0.0, (divergence(p) + divergence(q)) / 2))


def total_variation(p: Mapping[str, float], q: Mapping[str, float]) -> float:
    """Total variation distance: half the sum of the absolute differences."""
    return math.fsum(abs(p.get(label, 0) - q.get(label, 0)) for label in {*p, *q}) / 2


@measure("Mentions")
def mentions(inputs: MeasureInputs) -> MeasureValue:
    """Number of mentions, mean over sentences."""
    return mean_over_sentences([float(len(sentence.mentions)) for sentence in inputs.sentences])


@measure("Length", unit="tokens")
def length(inputs: MeasureInputs) -> MeasureValue:
    """Number of tokens, mean over sentences."""
    return mean_over_sentences([float(len(sentence)) for sentence in inputs.sentences])
