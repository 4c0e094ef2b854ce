"""How sure a teacher is of the labels of a sentence: cut-offs for hard labels, and what to annotate next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal

from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, ParameterError

Uncertainty = Literal["confidence", "entropy", "margin"]
"""The measures of `uncertainty`."""

_LEAST = 1e-12
_RELATIONS = "relation_probabilities"  # see `entaug.taggers.relations`


def word_confidences(sentence: Sentence) -> list[float] | None:
    """The probability of the tag that each word has."""
    # It is that of the mentions which the sentence has, whether or not they are the likeliest.
    soft = TagProbabilities.from_sentence(sentence)
    if soft is None:
        if _RELATIONS in sentence.layout:
            reason = "a sentence has probabilities of relations between words, not of tags"
            raise InputError(reason, path=f"sentence {sentence.key}", remedy="select when labelling: min_confidence")
        return None
    column = {tag: i for i, tag in enumerate(soft.tags)}
    pairs = zip(soft.values, sentence.iob(), strict=True)
    return [float(row[column[tag]]) if tag in column else 0.0 for row, tag in pairs]


def mention_confidence(mention: Mention, confidences: list[float]) -> float:
    """The confidence of a mention: that of the word that the teacher is least sure of."""
    return min(min(confidences[start:end]) for start, end in mention.spans)


def filter_by_confidence(
    sentences: Iterable[Sentence], min_token_confidence: float, *, drop: Literal["sentences", "mentions"] = "sentences"
) -> Iterator[Sentence]:
    """Drop what a teacher is unsure of, for trainers that take hard labels only.

    Sentences without tag probabilities, such as gold sentences, are kept as they are.

    Args:
        sentences: sentences with `entaug.backends.soft_labels.TagProbabilities`.
        min_token_confidence: the minimum probability of the tag of a token.
        drop: ``"sentences"``: sentences with a word whose tag has a lower probability. ``"mentions"``: only the
            mentions with such a word; a tagger then learns that their words are no mention.

    Yields:
        The sentences that are left.

    Raises:
        ParameterError: `min_token_confidence` is no probability, or `drop` is neither of the two.
        InputError: tag probabilities are invalid, or a sentence has probabilities of relations instead.
        LossError: a sentence with tag probabilities has nested or discontinuous mentions.

    Example:
        >>> soft = TagProbabilities(["O", "B-LOC"], [[0.9, 0.1], [0.4, 0.6]])
        >>> unsure = soft.label(Sentence(["in", "Essen"]))
        >>> list(filter_by_confidence([unsure], 0.8))
        []
        >>> [sentence.mentions for sentence in filter_by_confidence([unsure], 0.8, drop="mentions")]
        [()]
    """
    if isinstance(min_token_confidence, bool) or not 0 <= min_token_confidence <= 1:
        raise ParameterError(f"min_token_confidence must be between 0 and 1, not {min_token_confidence!r}")
    if drop not in ("sentences", "mentions"):
        raise ParameterError(f'drop must be "sentences" or "mentions", not {drop!r}')
    return _filter(sentences, min_token_confidence, drop)


def _filter(sentences: Iterable[Sentence], min_token_confidence: float, drop: str) -> Iterator[Sentence]:
    for sentence in sentences:
        confidences = word_confidences(sentence)
        if confidences is None or min(confidences) >= min_token_confidence:
            yield sentence
        elif drop == "mentions":
            kept = [m for m in sentence.mentions if mention_confidence(m, confidences) >= min_token_confidence]
            yield sentence.with_(mentions=kept)


def uncertainty(probabilities: TagProbabilities, measure: Uncertainty = "confidence") -> float:
    """Compute how unsure a tagger is of the labels of a sentence."""
    rows = [sorted(map(float, row), reverse=True) for row in probabilities.values]
    if measure == "confidence":
        return 1 - math.exp(math.fsum(math.log(max(row[0], _LEAST)) for row in rows) / len(rows))
    if measure == "entropy":
        return math.fsum(-p * math.log(p) for row in rows for p in row if p > 0) / len(rows)
    return max(1 - (row[0] - (row[1] if len(row) > 1 else 0.0)) for row in rows)
