"""All measures by name: a new one is a function in `entaug.quality.measures` and one entry here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from entaug.quality import measures as m
from entaug.quality.material import Material

__all__ = ["MEASURES", "Measure"]


class Measure(NamedTuple):
    """A measure.

    Args:
        title: what it is called.
        meaning: what it is, in one line.
        unit: ``"share"`` (from 0 to 1, shown in percent), ``"score"``, ``"nats"``, ``"tokens"`` or nothing.
        higher: what more of it means, or ``"neutral"``.
        needs: the kind of backend it asks, or None.
        function: what computes it. It raises `UndefinedError` where there is no value.
    """

    title: str
    meaning: str
    unit: str
    higher: str
    needs: str | None
    function: Callable[[Material], m.Found]


_CAUSAL, _MASKED, _ENCODER = "causal_lm", "masked_lm", "encoder"

MEASURES: dict[str, Measure] = {
    "perplexity": Measure(
        "Perplexity", "of a causal language model, by sub-words", "", "less fluent", _CAUSAL, m.perplexity
    ),
    "lm_score": Measure(
        "LM score", "log-likelihood by words, of a causal language model", "nats", "more fluent", _CAUSAL, m.lm_score
    ),
    "source_lm_difference": Measure(
        "LM score - source's",
        "LM score less that of the source",
        "nats",
        "more fluent than the source",
        _CAUSAL,
        m.source_lm_difference,
    ),
    "masked_lm_score": Measure(
        "LM score, masked",
        "pseudo-log-likelihood by words, of a masked language model (CASSI)",
        "nats",
        "more fluent",
        _MASKED,
        m.masked_lm_score,
    ),
    "diversity_e": Measure(
        "Diversity-E",
        "words of mentions that are in no mention of the source (ACLM)",
        "share",
        "newer mentions",
        None,
        partial(m.diversity, mentions=True),
    ),
    "diversity_n": Measure(
        "Diversity-N",
        "words outside mentions that are not among the source's (ACLM)",
        "share",
        "newer contexts",
        None,
        partial(m.diversity, mentions=False),
    ),
    "diversity_l": Measure(
        "Diversity-L",
        "absolute difference in length from the source (ACLM)",
        "tokens",
        "more varied lengths",
        None,
        m.diversity_l,
    ),
    "new_words": Measure(
        "New words", "words that the source has nowhere", "share", "further from the source", None, m.new_words
    ),
    "similarity": Measure(
        "Similarity to source",
        "tokens in common with the source, in their order",
        "share",
        "nearer to the source",
        None,
        m.similarity_to_source,
    ),
    "near_source": Measure(
        "Near its source",
        "sentences at least 90 % similar to their source",
        "share",
        "more near-duplicates",
        None,
        m.near_source,
    ),
    "near_gold": Measure(
        "Near gold",
        "sentences at least 90 % similar to any gold sentence",
        "share",
        "more near-duplicates",
        None,
        m.near_gold,
    ),
    "near_others": Measure(
        "Near one another",
        "sentences at least 90 % similar to an earlier one of the same method",
        "share",
        "more near-duplicates",
        None,
        m.near_others,
    ),
    "unseen_mentions": Measure(
        "Unseen mentions",
        "mentions that gold has not with that label",
        "share",
        "newer mentions",
        None,
        partial(m.unseen_mentions, distinct=False),
    ),
    "unseen_mentions_distinct": Measure(
        "Unseen mentions, distinct",
        "the same, each different mention counted once",
        "share",
        "newer mentions",
        None,
        partial(m.unseen_mentions, distinct=True),
    ),
    "unseen_contexts": Measure(
        "Unseen contexts",
        "mentions between neighbours (two on each side) that gold has not for that label",
        "share",
        "newer contexts",
        None,
        partial(m.unseen_contexts, distinct=False),
    ),
    "unseen_contexts_distinct": Measure(
        "Unseen contexts, distinct",
        "the same, each different context counted once",
        "share",
        "newer contexts",
        None,
        partial(m.unseen_contexts, distinct=True),
    ),
    "type_token_ratio": Measure(
        "Type-token ratio",
        "different words by words of a sentence (EnTDA)",
        "share",
        "more varied words",
        None,
        m.type_token_ratio,
    ),
    "distinct_1": Measure(
        "Distinct-1",
        "different words by all words; only for sets of one size",
        "share",
        "more varied words",
        None,
        partial(m.distinct, n=1),
    ),
    "distinct_2": Measure(
        "Distinct-2",
        "different pairs of words by all pairs; only for sets of one size",
        "share",
        "more varied words",
        None,
        partial(m.distinct, n=2),
    ),
    "self_bertscore": Measure(
        "Self-BERTScore",
        "mean BERTScore of the sentences with one another (CASSI)",
        "score",
        "less varied",
        _ENCODER,
        m.self_bertscore,
    ),
    "label_distance": Measure(
        "Label shift",
        "Jensen-Shannon distance (logarithms to base 2) of the labels of mentions from gold's",
        "score",
        "further from gold",
        None,
        partial(m.label_shift, distance=m.jensen_shannon),
    ),
    "label_variation": Measure(
        "Labels elsewhere",
        "mentions that would need another label to be distributed as in gold (total variation)",
        "share",
        "further from gold",
        None,
        partial(m.label_shift, distance=m.total_variation),
    ),
    "mentions": Measure("Mentions", "mentions of a sentence", "", "neutral", None, m.mentions_per_sentence),
    "length": Measure("Length", "tokens of a sentence", "tokens", "neutral", None, m.length),
    "length_difference": Measure(
        "Length - source's",
        "tokens more than the source has",
        "tokens",
        "longer than the source",
        None,
        m.length_difference,
    ),
}
"""All measures, in the order in which they are shown. A new one is one line here."""
