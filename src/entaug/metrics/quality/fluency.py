"""Fluency: how likely sentences are under a language model.

CASSI is Surana et al. (2023), EnTDA Hu et al. (2023), ACLM Ghosh et al. (2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from entaug.core.data import Sentence
from entaug.metrics.quality.base import (
    Likelihood,
    MeasureInputs,
    MeasureValue,
    UndefinedError,
    mean_over_sentences,
    measure,
)
from entaug.metrics.texts import count_words

__all__ = ["lm_score", "masked_lm_score", "perplexity", "source_lm_difference"]


@measure("Perplexity", higher="less fluent", needs="causal_lm")
def perplexity(inputs: MeasureInputs) -> MeasureValue:
    """Exponential of the mean negative log-probability of a sub-word under a causal language model."""
    # The mean is over the sub-words of all sentences. ACLM and EnTDA report it for GPT-2, and do not say whether their
    # mean is over sub-words or over sentences, nor how tokens are joined to text. The mean of the perplexities of
    # single sentences, which are the values by sentence, is higher and dominated by few sentences.
    likelihoods = inputs.models.causal_likelihoods(inputs.sentences)
    pieces = sum(likelihood.pieces for likelihood in likelihoods)
    if not pieces:
        raise UndefinedError("no sentence has a sub-word")
    by_sentence = [_exp(-total / count) if count else None for total, count in likelihoods]
    return MeasureValue(_exp(-math.fsum(total for total, _ in likelihoods) / pieces), by_sentence)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


@measure("LM score", unit="nats", higher="more fluent", needs="causal_lm")
def lm_score(inputs: MeasureInputs) -> MeasureValue:
    """Log-likelihood per word under a causal language model, mean over sentences."""
    # Punctuation does not count as words. CASSI itself uses the pseudo-log-likelihood: `masked_lm_score`.
    return mean_over_sentences(_per_word(inputs.sentences, inputs.models.causal_likelihoods(inputs.sentences)))


@measure("Masked LM score", unit="nats", higher="more fluent", needs="masked_lm")
def masked_lm_score(inputs: MeasureInputs) -> MeasureValue:
    """Pseudo-log-likelihood per word under a masked language model, mean over sentences (CASSI, table 8)."""
    # Punctuation does not count as words. The paper measures with mBERT, another model than the one it selects with;
    # scores of two models cannot be compared.
    return mean_over_sentences(_per_word(inputs.sentences, inputs.models.masked_likelihoods(inputs.sentences)))


@measure("LM score change", unit="nats", higher="more fluent than the source", needs="causal_lm")
def source_lm_difference(inputs: MeasureInputs) -> MeasureValue:
    """Log-likelihood per word minus that of the source, mean over sentences."""
    models = inputs.models
    scores = _per_word(inputs.sentences, models.causal_likelihoods(inputs.sentences))
    known = [source for source in inputs.sources if source is not None]
    source_scores = iter(_per_word(known, models.causal_likelihoods(known)))
    differences = [
        None if source is None else score - next(source_scores)
        for score, source in zip(scores, inputs.sources, strict=True)
    ]
    return mean_over_sentences(differences, "the source of no sentence is known")


def _per_word(sentences: Sequence[Sentence], likelihoods: Iterable[Likelihood]) -> list[float]:
    both = zip(sentences, likelihoods, strict=True)
    return [likelihood.total / count_words(sentence.tokens) for sentence, likelihood in both]
