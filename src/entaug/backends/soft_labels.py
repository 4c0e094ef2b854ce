"""Probabilities of tags: soft labels, and how sure a teacher is of each word."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import decode
from entaug.errors import InputError

LEAST = 0.001
"""Smaller probabilities are not written."""
_FLOOR = 1e-6  # smaller ones count as this one in `TagProbabilities.mentions`


@dataclass(frozen=True, eq=False)
class SoftLabels(abc.ABC):
    """Probabilities that a teacher gives to the labels of a sentence; a field of it in files and in its layout."""

    field: ClassVar[str]

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of words of the sentence."""

    @property
    @abc.abstractmethod
    def confidences(self) -> NDArray[np.float32]:
        """The probability of the likeliest label of each word (words,)."""

    @abc.abstractmethod
    def mentions(self) -> tuple[Mention, ...]:
        """The likeliest mentions."""

    @classmethod
    @abc.abstractmethod
    def _read(cls, data: Mapping[str, Any]) -> Self:
        """Create probabilities from a dictionary; any error of Python says that it is no such one."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the probabilities as a dictionary that can be written as JSON or Parquet."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create probabilities from a dictionary as files hold it; the inverse of `to_dict`."""
        try:
            return cls._read(data)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            what = cls.field.replace("_", " ")
            raise InputError(f"no {what} as entaug writes them ({error})") from None

    @classmethod
    def from_sentence(cls, sentence: Sentence) -> Self | None:
        """Read the probabilities of a sentence."""
        data = sentence.layout.get(cls.field)
        if data is None:
            return None
        soft = cls.from_dict(data)
        if len(soft) != len(sentence):
            what = cls.field.replace("_", " ")
            raise InputError(f"there are {what} of {len(soft)} words for {len(sentence)}")
        return soft

    def attach_to(self, sentence: Sentence) -> Sentence:
        """Return a copy of a sentence with these probabilities, in place of those that it has."""
        return sentence.with_(layout={**sentence.layout, self.field: self.to_dict()})

    def label(self, sentence: Sentence) -> Sentence:
        """Return a copy of a sentence with `mentions` and these probabilities."""
        # The mentions are computed before the probabilities are rounded to four digits: where two tags of a word are
        # equal after rounding, the rounded probabilities may yield other mentions.
        return self.attach_to(sentence.with_(mentions=self.mentions()))


@dataclass(frozen=True, eq=False)
class TagProbabilities(SoftLabels):
    """The probabilities of the IOB2 tags of each word of a sentence."""

    field = "tag_probabilities"

    tags: tuple[str, ...]
    values: NDArray[np.float32]
    weights: NDArray[np.float32] | None = None

    def __init__(self, tags: Sequence[str], values: ArrayLike, weights: ArrayLike | None = None) -> None:
        tags = tuple(tags)
        if not all(tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2) for tag in map(str, tags)):
            raise InputError(f"tag probabilities of tags that are not IOB2: {', '.join(map(str, tags))}")
        if "O" not in tags or len(set(tags)) < len(tags):
            raise InputError(f"tag probabilities need distinct tags with O among them, not {', '.join(tags)}")
        matrix = to_float32(values)
        if matrix.ndim != 2 or matrix.shape[1] != len(tags):
            raise InputError(f"tag probabilities of shape {matrix.shape} for {len(tags)} tags")
        sums = matrix.sum(axis=1)
        if not (np.isfinite(sums).all() and (matrix >= 0).all() and (sums > 0).all()):
            raise InputError("tag probabilities must be numbers of at least 0, and not 0 for all tags of a word")
        object.__setattr__(self, "tags", tags)
        object.__setattr__(self, "values", matrix / sums[:, None])
        object.__setattr__(self, "weights", None if weights is None else word_weights(weights, len(matrix)))

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.values)

    @property
    def confidences(self) -> NDArray[np.float32]:
        confidences: NDArray[np.float32] = self.values.max(axis=1)
        return confidences

    def best_tags(self) -> list[str]:
        """The likeliest tag of each word."""
        return [self.tags[i] for i in self.values.argmax(axis=1)]

    def mentions(self) -> tuple[Mention, ...]:
        """The mentions of the likeliest valid sequence of tags; see `best_valid_tags`."""
        floors = np.full(self.values.shape, _FLOOR)
        for column, tag in enumerate(self.tags):
            # Where a word can only be inside a mention that nothing begins, it begins one, as in conlleval.
            if tag.startswith("B-") and f"I-{tag[2:]}" in self.tags:
                floors[:, column] *= 1 + self.values[:, self.tags.index(f"I-{tag[2:]}")]
        log_probs = np.log(np.maximum(self.values, floors))
        return decode([self.tags[i] for i in best_valid_tags(log_probs, self.tags)])

    def aligned(self, tags: Sequence[str]) -> NDArray[np.float32]:
        """The probabilities for another list of tags."""
        column = {tag: i for i, tag in enumerate(tags)}
        result = np.zeros((len(self.values), len(tags)), np.float32)
        for i, tag in enumerate(self.tags):
            result[:, column.get(tag, column["O"])] += self.values[:, i]
        return result

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Self:
        tags, ids, values = list(data["tags"]), data["ids"], data["values"]
        matrix = np.zeros((len(ids), len(tags)), np.float32)
        for row, columns, numbers in zip(matrix, ids, values, strict=True):
            for column, number in zip(columns, numbers, strict=True):
                if column < 0:
                    raise IndexError(f"there is no tag {column}")
                row[column] = number
        return cls(tags, matrix, data.get("weights"))

    def to_dict(self) -> dict[str, Any]:
        kept = (self.values >= LEAST) | (self.values == self.values.max(axis=1, keepdims=True))
        ids = [np.flatnonzero(row).tolist() for row in kept]
        values = [[round(float(x), 4) for x in row[columns]] for row, columns in zip(self.values, ids, strict=True)]
        data: dict[str, Any] = {"tags": list(self.tags), "ids": ids, "values": values}
        if self.weights is not None:
            data["weights"] = [round(float(x), 4) for x in self.weights]
        return data


def tags_of(labels: Iterable[str]) -> list[str]:
    """The IOB2 tags of mentions with some labels."""
    return ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


def label_confidence(sentence: Sentence, probabilities: TagProbabilities) -> float:
    """Compute how likely the mentions of a sentence are."""
    if not sentence.is_flat or not {mention.label for mention in sentence.mentions} <= {
        t[2:] for t in probabilities.tags
    }:
        return 0.0
    columns = [probabilities.tags.index(tag) for tag in sentence.iob()]
    if not columns:
        return 1.0
    chosen = probabilities.values[np.arange(len(columns)), columns]
    return float(np.exp(np.log(np.maximum(chosen, 1e-12)).mean()))


def word_weights(weights: ArrayLike, num_words: int) -> NDArray[np.float32]:
    """Check the weights of words in the loss of a training."""
    array = to_float32(weights)
    if array.shape != (num_words,) or not np.isfinite(array).all() or (array < 0).any():
        raise InputError("weights of words must be numbers of at least 0, one for each word")
    return array


def to_float32(values: ArrayLike) -> NDArray[np.float32]:
    """Convert numbers; those that are too large become infinite, without a warning."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32)


def best_valid_tags(scores: NDArray[Any], tags: tuple[str, ...]) -> list[int]:
    """The sequence of IOB2 tags with the highest sum of scores among the valid ones (Viterbi)."""
    # In a valid sequence an `I-` tag follows only a `B-` or `I-` tag of its type. The likeliest tag of each word by
    # itself often breaks this at the edges of mentions.
    if not len(scores):
        return []
    inside, penalties = _transitions(tags)
    totals = np.where(inside, -np.inf, scores[0])
    pointers = []
    for row in scores[1:]:
        candidates = totals[:, None] + penalties
        pointers.append(candidates.argmax(axis=0))
        totals = candidates.max(axis=0) + row
    sequence = [int(totals.argmax())]
    for previous in reversed(pointers):
        sequence.append(int(previous[sequence[-1]]))
    return sequence[::-1]


@lru_cache(maxsize=64)
def _transitions(tags: tuple[str, ...]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which tags are I- tags, and 0 or minus infinity for each pair of a tag and the next one."""
    inside = np.array([tag.startswith("I-") for tag in tags])
    labels = np.array([tag[2:] for tag in tags])
    return inside, np.where(inside & (labels[:, None] != labels), -np.inf, 0.0)
