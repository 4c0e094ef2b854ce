"""Texts that language models score."""

from __future__ import annotations

from collections.abc import Iterable

from entaug.core.alignment import detokenize
from entaug.core.data import Sentence

__all__ = ["as_text", "count_words"]


def as_text(sentence: Sentence | str) -> str:
    """Convert a sentence to running text."""
    return sentence if isinstance(sentence, str) else detokenize(sentence.tokens, sentence.spaces)


def count_words(tokens: Iterable[str]) -> float:
    """Count the tokens that are not punctuation: the divisor of CASSI's score."""
    return float(max(1, sum(any(c.isalnum() for c in token) for token in tokens)))
