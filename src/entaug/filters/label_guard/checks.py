"""The checks of the label guard, by the reason for which they refuse a sentence.

A check is a function of a `CheckedSentence` that yields the words of each fault. It never changes the sentence.
"""

from __future__ import annotations

from collections.abc import Callable

from entaug.filters.label_guard.checked import CheckedSentence, Faults
from entaug.filters.label_guard.mention_checks import (
    cut_mentions,
    joined_mentions,
    oddly_shaped_mentions,
    ordinary_mentions,
    unbalanced_mentions,
)
from entaug.filters.label_guard.text_checks import label_names, markup, repetitions, unlabelled_names, unpaired_brackets

__all__ = ["CHECKS", "STYLE_CHECKS", "Check"]

Check = Callable[[CheckedSentence], Faults]

CHECKS: dict[str, Check] = {
    "the name of a label in the text": label_names,
    "traces of a prompt or of markup": markup,
    "unpaired brackets": unpaired_brackets,
    "repeated words": repetitions,
    "a mention with unpaired brackets": unbalanced_mentions,
    "a mention of ordinary words": ordinary_mentions,
    "a mention that cuts a name": cut_mentions,
    "a mention of two names": joined_mentions,
    "a mention in a shape that its type does not have": oddly_shaped_mentions,
    "a name without a label": unlabelled_names,
}
"""The checks by the reason for which they refuse a sentence, in the order in which they are made."""

STYLE_CHECKS = ("unpaired brackets", "repeated words")
"""Checks that are not made where many training sentences have the fault."""
