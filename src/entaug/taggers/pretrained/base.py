"""The base of taggers of other libraries: their labels are mapped to those of the corpus, and nothing is trained."""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from entaug.backends.config import TrainingProgress
from entaug.backends.language_check import LoadedModel, check_languages
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.soft_labels import TagProbabilities, label_confidence
from entaug.errors import ParameterError
from entaug.taggers.pretrained.label_maps import LabelMap, propose_label_map, split_name

__all__ = ["PretrainedTagger", "ScoredMention"]

_SAMPLE = 500  # gold sentences on which the map of labels is measured


class ScoredMention(NamedTuple):
    """A predicted mention with the label of the other tagger."""

    mention: Mention
    score: float | None = None


class PretrainedTagger(abc.ABC):
    """A tagger of another library, as a `entaug.backends.protocols.Tagger`."""

    # `fit` trains nothing. It measures on gold sentences which label of the corpus each label of the tagger stands for
    # (see `propose_label_map`), and how often its mentions are right. The latter is the confidence of mentions where
    # the tagger itself gives no probability.

    prefix: str
    name: str
    languages: Collection[str] | None = None

    def __init__(self, name: str) -> None:
        self.given = name
        model, self._given_map = split_name(name)
        self.label_map_: LabelMap | None = None
        self._load(model)
        if self._given_map:
            self.name += "@" + ";".join(f"{label}={target}" for label, target in sorted(self._given_map.items()))
        unknown = sorted(set(self._given_map or ()) - set(known)) if (known := self.own_labels) is not None else []
        if unknown:
            remedy = f"it has: {', '.join(sorted(known or ()))}"
            raise ParameterError(f"the tagger {self.prefix}:{model} has no label {unknown[0]!r}", remedy=remedy)

    # -------------------------------------------------------------------------------------------------- for subclasses

    @property
    @abc.abstractmethod
    def own_labels(self) -> list[str] | None:
        """The labels of the tagger; None if it takes any."""

    @abc.abstractmethod
    def _load(self, model: str) -> None:
        """Load the model, and set `name`."""

    @abc.abstractmethod
    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        """Predict flat mentions with the labels of the tagger."""

    def _choose_labels(self, gold_labels: Sequence[str]) -> None:
        """Choose the labels to ask for, where the tagger takes any."""
        del gold_labels

    # ------------------------------------------------------------------------------------------------------- for users

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: Any = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        """Measure the map of labels on gold sentences."""
        del dev, config, progress
        if list(augmented):
            raise ParameterError(
                f"{self.name} is used as it is and cannot be trained further", remedy="use rounds=1, or another tagger"
            )
        model = LoadedModel("tagger", f"{self.prefix}:{self.given}", self, "--tagger")
        gold = sorted(check_languages(train, [model]), key=lambda sentence: sentence.fingerprint())
        sample = gold[:: max(1, len(gold) // _SAMPLE)][:_SAMPLE]
        self._choose_labels(sorted({mention.label for sentence in gold for mention in sentence.mentions}))
        predicted = [[one.mention for one in mentions] for mentions in self._predict(sample)]
        self.label_map_ = propose_label_map(sample, predicted, self._given_map)
        outside = right = 0
        for sentence, mentions in zip(sample, predicted, strict=True):
            inside = {i for m in mentions if m.label in self.label_map_.labels for i in m.positions()}
            named = {i for mention in sentence.mentions for i in mention.positions()}
            outside += len(sentence) - len(inside)
            right += len(sentence) - len(inside | named)
        self._outside_precision = (right + 1) / (outside + 2)
        self._missing = missing = sorted({m.label for s in gold for m in s.mentions} - set(self.known_labels))
        self.notes = [f"{self.name}: {'given' if self._given_map else 'measured'} labels {self.label_map_.description}"]
        if missing:
            self.notes.append(
                f"{self.name}: no label stands for {', '.join(missing)}; such mentions stay as they are in "
                "relabelling, count as missed in scores, and are missing in text that it labels"
            )
        return self

    notes: Sequence[str] = ()
    """What the user should know of the map of labels, set by `fit`."""

    @property
    def known_labels(self) -> list[str]:
        """The labels of the corpus that the tagger can predict."""
        return sorted(set(self._fitted_map().labels.values()))

    def _fitted_map(self) -> LabelMap:
        if self.label_map_ is None:
            raise ParameterError(f"{self.name} has no map of labels yet", remedy="call fit(gold) first")
        return self.label_map_

    @property
    def _tags(self) -> list[str]:
        return ["O", *(f"{prefix}-{label}" for label in self.known_labels for prefix in "BI")]

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """See `entaug.backends.protocols.Tagger.predict`."""
        sentences = list(sentences)
        return [
            sentence.with_(mentions=[mention for mention, _ in mentions])
            for sentence, mentions in zip(sentences, self._mapped(sentences), strict=True)
        ]

    def _mapped(self, sentences: Sequence[Sentence]) -> list[list[tuple[Mention, float]]]:
        """The mentions with labels of the corpus and their probabilities."""
        label_map = self._fitted_map()
        return [
            [
                (
                    Mention(label_map.labels[mention.label], mention.spans),
                    label_map.precision(mention.label) if score is None else score,
                )
                for mention, score in mentions
                if mention.label in label_map.labels
            ]
            for mentions in self._predict(sentences)
        ]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        """See `entaug.backends.protocols.Tagger.tag_probabilities`."""
        # The probability of a predicted mention is that of the tagger, or the share of mentions of its label that were
        # right on gold; that of a word outside mentions is the share of such words that are outside in gold.
        sentences, tags = list(sentences), self._tags
        results = []
        for sentence, mentions in zip(sentences, self._mapped(sentences), strict=True):
            values = np.zeros((len(sentence), len(tags)), np.float32)
            values[:, 1::2] = (1 - self._outside_precision) / len(self.known_labels)
            values[:, 0] = self._outside_precision
            for mention, score in mentions:
                for position in mention.positions():
                    row = values[position]
                    row[:] = 0
                    row[0] = 1 - score
                    row[tags.index(f"{'B' if position == mention.start else 'I'}-{mention.label}")] = score
            results.append(TagProbabilities(tags, values))
        return results

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """See `entaug.backends.protocols.Tagger.confidences`: without mentions of labels that no label stands for."""
        sentences = list(sentences)
        results = []
        for sentence, soft in zip(sentences, self.tag_probabilities(sentences), strict=True):
            judged = [mention for mention in sentence.mentions if mention.label not in self._missing]
            values = soft.values.copy()
            for mention in set(sentence.mentions).difference(judged):
                values[list(mention.positions())] = np.eye(len(soft.tags))[soft.tags.index("O")]
            results.append(label_confidence(sentence.with_(mentions=judged), TagProbabilities(soft.tags, values)))
        return results
