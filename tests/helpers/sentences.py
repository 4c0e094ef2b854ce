"""Sentences as tests write them."""

from __future__ import annotations

from typing import Any

from entaug.core.data import Sentence
from entaug.core.mentions import Mention


def sentence(text: str, *mentions: tuple[str, int, int], **more: Any) -> Sentence:
    """A sentence of words between blanks, with mentions of one span each, written as label, start and end."""
    return Sentence(text.split(), [Mention(label, [(start, end)]) for label, start, end in mentions], **more)
