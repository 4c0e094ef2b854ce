"""Which label of a corpus a label of another tagger stands for: given by the user, or measured on gold sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import ParameterError

__all__ = ["LabelMap", "parse_label_map", "propose_label_map", "split_name"]

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
    # Each label of the tagger is compared with the label of the corpus that it shares the most mentions with: first
    # exactly, else in a word. It is used if F1 on the gold sentences rises by that.
    numbers = Counter(mention.label for mentions in predicted for mention in mentions)
    exact, touching = _count_pairs(gold, predicted)
    gold_labels = sorted({mention.label for sentence in gold for mention in sentence.mentions})
    size = sum(len(sentence.mentions) for sentence in gold)
    if given is not None:
        chosen = {label: target for label, target in given.items() if target}
        unknown = sorted(set(chosen.values()) - set(gold_labels))
        if unknown:
            remedy = f"the corpus has: {', '.join(gold_labels)}"
            raise ParameterError(f"the map of labels names {unknown[0]}, which the corpus does not have", remedy=remedy)
    else:
        best = {
            label: max(gold_labels, key=lambda b: (exact[label, b], touching[label, b]))
            for label in sorted(numbers)
            if gold_labels
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


def _count_pairs(
    gold: Sequence[Sentence], predicted: Sequence[Sequence[Mention]]
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Counts of mentions of two labels with the same words, and with a word in common."""
    exact: Counter[tuple[str, str]] = Counter()
    touching: Counter[tuple[str, str]] = Counter()
    for sentence, mentions in zip(gold, predicted, strict=True):
        for mention in mentions:
            words = set(mention.positions())
            for other in sentence.mentions:
                exact[mention.label, other.label] += mention.spans == other.spans
                touching[mention.label, other.label] += not words.isdisjoint(other.positions())
    return exact, touching


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
