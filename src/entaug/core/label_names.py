"""Labels in words, as models that read them need them and as labels of several tools are compared."""

from __future__ import annotations

import re

__all__ = ["label_in_words"]

# What usual abbreviations of labels stand for.
_WORDS = {
    "cw": "creative work",
    "fac": "facility",
    "gpe": "country, city or state",
    "grp": "group",
    "loc": "location",
    "misc": "miscellaneous",
    "norp": "nationality, religious or political group",
    "org": "organization",
    "per": "person",
    "pers": "person",
    "prod": "product",
}


def label_in_words(label: str) -> str:
    """Put a label into words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s_./-]+", " ", label).strip().lower()
    return _WORDS.get(words, words) or label
