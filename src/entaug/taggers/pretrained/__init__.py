"""Taggers of other libraries, used as they are: their labels are mapped to those of the corpus; nothing is trained.

The map says which label of the corpus a label of the tagger stands for: given by the user, or measured on gold
sentences.
"""

from __future__ import annotations

import abc
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from entaug.backends.config import TrainingProgress
from entaug.backends.language_check import LoadedModel, check_languages
from entaug.backends.soft_labels import TagProbabilities, label_confidence, tags_of
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import ParameterError

_SAMPLE = 500  # gold sentences on which the map of labels is measured
_UNMEASURED = 0.9  # the share of words outside mentions that are taken to be so without gold sentences
_NONE = ("", "none")  # stand for no label of the corpus


@dataclass(frozen=True)
class LabelMap:
    """A map of labels, with what was measured on gold sentences."""

    labels: Mapping[str, str]
    predicted: Counter[str]
    correct: Counter[str]
    gold: int
    num_sentences: int

    def precision(self, label: str) -> float:
        """The share of the predicted mentions of a label that are right, a little nearer to one half than measured."""
        return (self.correct[label] + 1) / (self.predicted[label] + 2)

    @property
    def f1(self) -> float:
        """F1 of the mapped mentions on the gold sentences."""
        predicted = sum(self.predicted[label] for label in self.labels)
        return 2 * sum(self.correct[label] for label in self.labels) / max(1, predicted + self.gold)

    @property
    def description(self) -> str:
        """The map and its measurement in one line."""
        used = [f"{a}={b} ({self.correct[a]} of {self.predicted[a]} right)" for a, b in sorted(self.labels.items())]
        others = [f"{a} ({n})" for a, n in sorted(self.predicted.items()) if a not in self.labels]
        left_out = f", left out: {', '.join(others)}" if others else ""
        return f"{', '.join(used)}{left_out}; F1 {self.f1:.0%} on {self.num_sentences} gold sentences"


def split_name(name: str) -> tuple[str, dict[str, str] | None]:
    """Split the name of a tagger of another library into its model and the map of labels."""
    match = re.fullmatch(r"(?P<model>[^=]*)@(?P<map>[^@]*=.*)", name)
    return (match["model"], parse_label_map(match["map"])) if match else (name, None)


def parse_label_map(text: str) -> dict[str, str]:
    """Read a map of labels."""
    labels: dict[str, str] = {}
    for entry in filter(None, map(str.strip, re.split("[,;]", text))):
        left, equals, right = (part.strip() for part in entry.partition("="))
        if not (left and equals) or left in labels:
            what = "is given twice" if left in labels else "is not of the form LABEL=LABEL"
            raise ParameterError(f"the entry {entry!r} of the map of labels {what}", remedy="for example PERSON=PER")
        labels[left] = "" if right.lower() in _NONE else right
    if not labels:
        raise ParameterError("the map of labels has no entry", remedy="for example PERSON=PER,GPE=LOC")
    return labels


def propose_label_map(
    gold: Sequence[Sentence], predicted: Sequence[Sequence[Mention]], given: Mapping[str, str] | None = None
) -> LabelMap:
    """Measure which labels of a corpus those of a tagger stand for."""
    # Each label of the tagger is compared with the label of the corpus that it shares the most mentions with. It is
    # used if F1 on the gold sentences rises by that.
    numbers = Counter(mention.label for mentions in predicted for mention in mentions)
    exact = Counter(
        (mention.label, other.label)
        for sentence, mentions in zip(gold, predicted, strict=True)
        for mention in mentions
        for other in sentence.mentions
        if mention.spans == other.spans
    )
    gold_labels = sorted({mention.label for sentence in gold for mention in sentence.mentions})
    size = sum(len(sentence.mentions) for sentence in gold)
    if given is not None:
        chosen = {label: target for label, target in given.items() if target}
        if not chosen:
            message = "the map of labels gives no label of the tagger one of the corpus"
            raise ParameterError(message, remedy=f"the corpus has: {', '.join(gold_labels)}")
        unknown = sorted(set(chosen.values()) - set(gold_labels))
        if unknown:
            remedy = f"the corpus has: {', '.join(gold_labels)}"
            raise ParameterError(f"the map of labels names {unknown[0]}, which the corpus does not have", remedy=remedy)
    else:
        best = {
            label: max(gold_labels, key=lambda other: exact[label, other]) for label in sorted(numbers) if gold_labels
        }
        chosen = _raising_f1(best, {label: exact[label, target] for label, target in best.items()}, numbers, size)
        if not chosen:
            seen = f"it predicts {', '.join(sorted(numbers))}" if numbers else "it predicts no mention there"
            raise ParameterError(
                f"no label of the tagger stands for one of the corpus ({', '.join(gold_labels)}): {seen}",
                remedy="give a map of labels: NAME@PERSON=PER;GPE=LOC",
            )
    correct = Counter({label: exact[label, target] for label, target in chosen.items()})
    return LabelMap(dict(sorted(chosen.items())), numbers, correct, size, len(gold))


def _raising_f1(
    best: Mapping[str, str], correct: Mapping[str, int], numbers: Mapping[str, int], gold: int
) -> dict[str, str]:
    """Take labels from the most precise one on, as long as F1 rises."""
    chosen: dict[str, str] = {}
    right, total, f1 = 0, 0, 0.0
    for label in sorted(best, key=lambda a: (-correct[a] / numbers[a], a)):
        new = 2 * (right + correct[label]) / (total + numbers[label] + gold)
        if new > f1:
            chosen[label] = best[label]
            right, total, f1 = right + correct[label], total + numbers[label], new
    return chosen


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
    def own_labels(self) -> list[str] | None:
        """The labels of the tagger; None if it takes any."""
        return None

    @abc.abstractmethod
    def _load(self, model: str) -> None:
        """Load the model, and set `name`."""

    @abc.abstractmethod
    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        """Predict flat mentions with the labels of the tagger."""

    def _choose_labels(self, gold_labels: Sequence[str]) -> None:
        """Choose the labels to ask for, where the tagger takes any."""
        del gold_labels

    def _measure_map(self, gold: Sequence[Sentence], predicted: Sequence[Sequence[Mention]]) -> LabelMap:
        return propose_label_map(gold, predicted, self._given_map)

    def _own_map(self, labels: Sequence[str] = ()) -> Mapping[str, str]:
        """The map of labels where there are no gold sentences to measure it on."""
        if self._given_map:
            return {label: target for label, target in self._given_map.items() if target}
        return {label: label for label in self.own_labels or labels}

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
        if list(augmented):
            raise ParameterError(
                f"{self.name} is used as it is and cannot be trained further", remedy="use rounds=1, or another tagger"
            )
        model = LoadedModel("tagger", f"{self.prefix}:{self.given}", self, "`tagger=NAME`")
        gold = sorted(check_languages(train, [model]), key=lambda sentence: sentence.fingerprint())
        sample = gold[:: max(1, len(gold) // _SAMPLE)][:_SAMPLE]
        self._choose_labels(sorted({mention.label for sentence in gold for mention in sentence.mentions}))
        predicted = [[one.mention for one in mentions] for mentions in self._predict(sample)]
        self.label_map_ = self._measure_map(sample, predicted)
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

    def fit_without_gold(self, labels: Sequence[str] = ()) -> Self:
        """Take the given map of labels, or the labels as they are."""
        self._choose_labels(labels)
        own = self._own_map(labels)
        if not own:
            remedy = f"give a map of labels: {self.prefix}:NAME@person=PER;city=LOC, or name the labels"
            raise ParameterError(f"without gold sentences {self.name} has no labels to look for", remedy=remedy)
        self.label_map_ = LabelMap(dict(sorted(own.items())), Counter(), Counter(), 0, 0)
        self._outside_precision, self._missing, self.notes = _UNMEASURED, [], []
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

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
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
        # The probability of a predicted mention is that of the tagger, or the share of mentions of its label that were
        # right on gold; that of a word outside mentions is the share of such words that are outside in gold.
        sentences, tags = list(sentences), tags_of(self.known_labels)
        results = []
        for sentence, mentions in zip(sentences, self._mapped(sentences), strict=True):
            values = np.zeros((len(sentence), len(tags)), np.float32)
            values[:, 1::2] = (1 - self._outside_precision) / len(self.known_labels)
            values[:, 0] = self._outside_precision
            for mention, score in mentions:
                for position in mention.positions():
                    values[position] = 0
                    values[position, 0] = 1 - score
                    values[position, tags.index(f"{'B' if position == mention.start else 'I'}-{mention.label}")] = score
            results.append(TagProbabilities(tags, values))
        return results

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        sentences = list(sentences)
        results = []
        for sentence, soft in zip(sentences, self.tag_probabilities(sentences), strict=True):
            judged = [mention for mention in sentence.mentions if mention.label not in self._missing]
            values = soft.values.copy()
            for mention in set(sentence.mentions).difference(judged):
                values[list(mention.positions())] = np.eye(len(soft.tags))[soft.tags.index("O")]
            results.append(label_confidence(sentence.with_(mentions=judged), TagProbabilities(soft.tags, values)))
        return results
