"""The registry of measures: a new measure is a function with the decorator `measure` and one line here."""

from __future__ import annotations

from typing import Any

from entaug.config.registry import Registry
from entaug.errors import ParameterError
from entaug.metrics.quality.base import Measure

__all__ = ["MEASURES"]


def _check(name: str, value: Any) -> None:
    if not isinstance(value, Measure):
        raise ParameterError(
            f"the measure {name!r} must be a Measure, not {type(value).__name__}",
            remedy="decorate its function with entaug.metrics.quality.base.measure",
        )


MEASURES: Registry[Measure] = Registry(
    "measure",
    {
        "perplexity": "entaug.metrics.quality.fluency:perplexity",
        "lm_score": "entaug.metrics.quality.fluency:lm_score",
        "source_lm_difference": "entaug.metrics.quality.fluency:source_lm_difference",
        "masked_lm_score": "entaug.metrics.quality.fluency:masked_lm_score",
        "diversity_e": "entaug.metrics.quality.novelty:diversity_e",
        "diversity_n": "entaug.metrics.quality.novelty:diversity_n",
        "diversity_l": "entaug.metrics.quality.novelty:diversity_l",
        "new_words": "entaug.metrics.quality.novelty:new_words",
        "similarity": "entaug.metrics.quality.novelty:similarity_to_source",
        "near_source": "entaug.metrics.quality.novelty:near_source",
        "near_gold": "entaug.metrics.quality.novelty:near_gold",
        "near_others": "entaug.metrics.quality.novelty:near_others",
        "unseen_mentions": "entaug.metrics.quality.novelty:unseen_mentions",
        "unseen_mentions_distinct": "entaug.metrics.quality.novelty:unseen_mentions_distinct",
        "unseen_contexts": "entaug.metrics.quality.novelty:unseen_contexts",
        "unseen_contexts_distinct": "entaug.metrics.quality.novelty:unseen_contexts_distinct",
        "type_token_ratio": "entaug.metrics.quality.diversity:type_token_ratio",
        "distinct_1": "entaug.metrics.quality.diversity:distinct_1",
        "distinct_2": "entaug.metrics.quality.diversity:distinct_2",
        "self_bertscore": "entaug.metrics.quality.diversity:self_bertscore",
        "self_bertscore_with_gold": "entaug.metrics.quality.diversity:self_bertscore_with_gold",
        "label_distance": "entaug.metrics.quality.distribution:label_distance",
        "label_variation": "entaug.metrics.quality.distribution:label_variation",
        "mentions": "entaug.metrics.quality.distribution:mentions",
        "length": "entaug.metrics.quality.distribution:length",
        "length_difference": "entaug.metrics.quality.novelty:length_difference",
    },
    group="entaug.measures",
    check=_check,
)
"""All measures, in the order of tables."""
