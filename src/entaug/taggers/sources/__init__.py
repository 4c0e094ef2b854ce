"""Sources of labels: taggers that know the labels of the corpus already, because a user or an instruct model does.

What several sources say is joined by `entaug.taggers.sources.joined.JoinedTagger`.
"""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Sequence

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.taggers.pretrained import LabelMap, PretrainedTagger, ScoredMention


class SourceTagger(PretrainedTagger):
    """A source whose labels are those of the corpus, and which may say nothing of a sentence."""

    def __init__(self, name: str) -> None:
        self.given, self._given_map, self.label_map_ = name, None, None
        self._load(name)

    @abc.abstractmethod
    def opinions(self, sentences: Sequence[Sentence]) -> list[list[Mention] | None]:
        """The flat mentions in each sentence; None where the source says nothing."""

    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        return [list(map(ScoredMention, mentions or ())) for mentions in self.opinions(sentences)]

    def _measure_map(self, gold: Sequence[Sentence], predicted: Sequence[Sequence[Mention]]) -> LabelMap:
        """Each label stands for itself; how often it is right."""
        numbers = Counter(mention.label for mentions in predicted for mention in mentions)
        correct = Counter(
            m.label for s, mentions in zip(gold, predicted, strict=True) for m in mentions if m in s.mentions
        )
        labels = self._own_map(sorted({m.label for s in gold for m in s.mentions} | set(numbers)))
        return LabelMap(labels, numbers, correct, sum(len(s.mentions) for s in gold), len(gold))
