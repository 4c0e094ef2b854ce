"""Diversity: how much sentences differ from one another.

EnTDA is Hu et al. (2023), tables 5 and 6; CASSI is Surana et al. (2023), section 4.3.2.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Literal

from entaug.core.data import Sentence
from entaug.metrics.bertscore import pairwise_bertscore
from entaug.metrics.quality.base import MeasureInputs, MeasureValue, UndefinedError, mean_over_sentences, measure, words
from entaug.metrics.texts import as_text

__all__ = [
    "MAX_SENTENCES",
    "distinct_1",
    "distinct_2",
    "self_bertscore",
    "self_bertscore_with_gold",
    "type_token_ratio",
]

MAX_SENTENCES = 300
"""Number of sentences that Self-BERTScore compares; of more, a random sample."""
_SEED = 0


@measure("Type-token ratio", unit="share", higher="more varied words")
def type_token_ratio(inputs: MeasureInputs) -> MeasureValue:
    """Distinct words divided by all words of a sentence, mean over sentences (EnTDA)."""
    # The paper says "for each original text", which could mean all sentences made from one source; its values (81 to 86
    # %) are those of single sentences.
    rows = (words(sentence.tokens) for sentence in inputs.sentences)
    return mean_over_sentences([len(set(row)) / len(row) if row else None for row in rows], "no sentence has a word")


@measure("Distinct-1", unit="share", higher="more varied words")
def distinct_1(inputs: MeasureInputs) -> MeasureValue:
    """Distinct words divided by all words; only for sets of equal size."""
    # See Li et al. (2016). It decreases with the number of sentences: compare only sets of equal size.
    return _distinct_ngrams(inputs, 1)


@measure("Distinct-2", unit="share", higher="more varied words")
def distinct_2(inputs: MeasureInputs) -> MeasureValue:
    """Distinct bigrams of words divided by all bigrams; only for sets of equal size."""
    # Li et al. (2016) divide by words. It decreases with the number of sentences: compare only sets of equal size.
    return _distinct_ngrams(inputs, 2)


def _distinct_ngrams(inputs: MeasureInputs, n: Literal[1, 2]) -> MeasureValue:
    """Distinct n-grams for `n` of 1 or 2, as numbers: a large corpus has many million bigrams."""
    import numpy as np

    numbers: dict[str, int] = {}
    ngrams = array("Q")
    for sentence in inputs.sentences:
        row = [numbers.setdefault(word, len(numbers)) for word in words(sentence.tokens)]
        ngrams.extend(row if n == 1 else [one << 32 | other for one, other in pairwise(row)])
    if not ngrams:
        raise UndefinedError(f"no sentence has {n} words" if n > 1 else "no sentence has a word")
    ordered = np.frombuffer(ngrams, np.uint64)
    ordered.sort()  # in place
    return MeasureValue((1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))) / len(ordered))


@measure("Self-BERTScore", unit="score", higher="less varied", needs="encoder")
def self_bertscore(inputs: MeasureInputs) -> MeasureValue:
    """Mean BERTScore F1 of all pairs of sentences (CASSI)."""
    # Each set is measured by itself; the paper measures gold and augmented sentences together, see
    # `self_bertscore_with_gold`. It calls the measure "similar to Self-BLEU", which takes the best match of all other
    # sentences; its values (0.59 for gold, 0.60 with five augmentations of each) are those
    # of a mean over pairs. Values of different models cannot be compared.
    return _mean_of_pairs(inputs.sentences, inputs)


@measure("Self-BERTScore with gold", unit="score", higher="less varied", needs="encoder")
def self_bertscore_with_gold(inputs: MeasureInputs) -> MeasureValue:
    """Mean BERTScore F1 of all pairs of gold and augmented sentences together (CASSI, table 9)."""
    # For the gold sentences it is their own. Values of different models cannot be compared.
    return _mean_of_pairs([*inputs.gold, *inputs.sentences], inputs)


def _mean_of_pairs(sentences: Sequence[Sentence], inputs: MeasureInputs) -> MeasureValue:
    encoder = inputs.models.encoder
    if encoder is None:
        raise UndefinedError("there is no encoder")
    texts = sorted(map(as_text, sentences))
    n = min(len(texts), MAX_SENTENCES)
    if n < 2:
        raise UndefinedError("there are no two sentences")
    note = ""
    if n < len(texts):
        texts = sorted(Random(_SEED).sample(texts, n))
        note = f"of {n} sentences drawn with seed {_SEED}"
    scores = pairwise_bertscore(texts, encoder)
    total = float(scores.sum(dtype="float64")) - float(scores.diagonal().sum(dtype="float64"))
    inputs.models.progress("comparing", n, n)
    return MeasureValue(total / (n * (n - 1)), note=note)
