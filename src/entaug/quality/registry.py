"""The registry of measures: a new measure is a function with the decorator `measure` and one line here."""

from __future__ import annotations

from typing import Any

from entaug.errors import ParameterError
from entaug.quality.base import Measure
from entaug.registry import Registry

__all__ = ["MEASURES"]


def _check(name: str, value: Any) -> None:
    if not isinstance(value, Measure):
        raise ParameterError(
            f"the measure {name!r} must be a Measure, not {type(value).__name__}",
            remedy="decorate its function with entaug.quality.base.measure",
        )


MEASURES: Registry[Measure] = Registry(
    "measure",
    {
        "perplexity": "entaug.quality.fluency:perplexity",
        "lm_score": "entaug.quality.fluency:lm_score",
        "source_lm_difference": "entaug.quality.fluency:source_lm_difference",
        "masked_lm_score": "entaug.quality.fluency:masked_lm_score",
        "diversity_e": "entaug.quality.novelty:diversity_e",
        "diversity_n": "entaug.quality.novelty:diversity_n",
        "diversity_l": "entaug.quality.novelty:diversity_l",
        "new_words": "entaug.quality.novelty:new_words",
        "similarity": "entaug.quality.novelty:similarity_to_source",
        "near_source": "entaug.quality.novelty:near_source",
        "near_gold": "entaug.quality.novelty:near_gold",
        "near_others": "entaug.quality.novelty:near_others",
        "unseen_mentions": "entaug.quality.novelty:unseen_mentions",
        "unseen_mentions_distinct": "entaug.quality.novelty:unseen_mentions_distinct",
        "unseen_contexts": "entaug.quality.novelty:unseen_contexts",
        "unseen_contexts_distinct": "entaug.quality.novelty:unseen_contexts_distinct",
        "type_token_ratio": "entaug.quality.diversity:type_token_ratio",
        "distinct_1": "entaug.quality.diversity:distinct_1",
        "distinct_2": "entaug.quality.diversity:distinct_2",
        "self_bertscore": "entaug.quality.diversity:self_bertscore",
        "self_bertscore_with_gold": "entaug.quality.diversity:self_bertscore_with_gold",
        "label_distance": "entaug.quality.distribution:label_distance",
        "label_variation": "entaug.quality.distribution:label_variation",
        "mentions": "entaug.quality.distribution:mentions",
        "length": "entaug.quality.distribution:length",
        "length_difference": "entaug.quality.novelty:length_difference",
    },
    group="entaug.measures",
    check=_check,
)
"""All measures, in the order of tables."""
