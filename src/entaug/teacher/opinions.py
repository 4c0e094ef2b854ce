"""What a teacher says about the labels of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from entaug.core.data import Sentence
from entaug.core.mentions import Mention

__all__ = ["MentionOpinion", "Opinion", "TagOpinion"]


class Opinion(Protocol):
    """Labels and probabilities that a teacher predicts for a sentence."""

    mentions: tuple[Mention, ...]

    def probability(self, mention: Mention) -> float:
        """The probability of a mention."""

    def disagreement(self, sentence: Sentence) -> float:
        """The improbability of the least probable label of the sentence, from 0 to 1."""


class TagOpinion:
    """The opinion of a teacher that gives probabilities to tags; mentions are flat."""

    def __init__(self, probabilities: Any, tags: Sequence[str], unjudged: Sequence[Mention] = ()) -> None:
        from entaug.backends.soft_labels import TagProbabilities

        self._column = {tag: i for i, tag in enumerate(tags)}
        values = probabilities.aligned(tags)
        for mention in unjudged:
            for position in mention.positions():
                values[position] = 0
                values[position, self._column[f"{'B' if position == mention.start else 'I'}-{mention.label}"]] = 1
        aligned = TagProbabilities(tags, values)
        self.values: list[list[float]] = aligned.values.tolist()
        self.mentions = aligned.mentions()

    def probability(self, mention: Mention) -> float:
        """See `Opinion.probability`: the lowest probability among the tags of the mention, and of its end."""
        begin, inside = (self._column[f"{prefix}-{mention.label}"] for prefix in "BI")
        values = [self.values[mention.start][begin]]
        values += [row[inside] for row in self.values[mention.start + 1 : mention.end]]
        values += [1 - row[inside] for row in self.values[mention.end : mention.end + 1]]
        return min(values)

    def disagreement(self, sentence: Sentence) -> float:
        """See `Opinion.disagreement`: of the word whose tag is least probable."""
        return 1 - min(row[self._column[tag]] for row, tag in zip(self.values, sentence.iob(), strict=True))


class MentionOpinion:
    """The opinion of a teacher that predicts mentions without probabilities."""

    def __init__(self, predicted: Sequence[Mention], *, is_flat: bool, unjudged: Sequence[Mention] = ()) -> None:
        kept = list(unjudged)
        taken = {position for mention in unjudged for position in mention.positions()}
        for mention in predicted:
            if not is_flat or (mention.is_contiguous and taken.isdisjoint(mention.positions())):
                kept.append(mention)
                taken.update(mention.positions())
        self.mentions = tuple(sorted(kept, key=lambda mention: mention.spans)) if unjudged else tuple(kept)

    def probability(self, mention: Mention) -> float:
        """See `Opinion.probability`: 1 for a mention that was predicted, else 0."""
        return float(mention in self.mentions)

    def disagreement(self, sentence: Sentence) -> float:
        """See `Opinion.disagreement`: 1 if other mentions are predicted, else 0."""
        return float(set(self.mentions) != set(sentence.mentions))
