"""Linearization: labelled sentences as one line of text with label tokens, and back.

Wrapped text has a label token before and after each token of a mention (MELM, Zhou et al. 2022; ACLM, Ghosh et al.
2023). Tagged text has a label token only before it (DAGA, Ding et al. 2020; MulDA, Liu et al. 2021). Both represent
flat mentions only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from entaug.core import tags
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import TagError

INVALID_LABELS = "inconsistent label tokens"
_PREFIX_WORDS = {"B": "begin", "I": "inside"}  # words that, with the label, initialise the embedding of a label token


def label_token(tag: str) -> str:
    """Return the label token of a tag."""
    return f"<{tag}>"


def label_tokens(labels: Iterable[str]) -> dict[str, str]:
    """Return the label tokens of some labels, each with the words from which its embedding is initialised."""
    return {
        label_token(f"{prefix}-{label}"): f"{word} {re.sub('[-_/ ]+', ' ', label)}"
        for label in sorted(set(labels))
        for prefix, word in _PREFIX_WORDS.items()
    }


def unwanted_labels(gold: Iterable[Sentence], label_texts: Mapping[str, str]) -> list[str]:
    """Return what a generator must not write where label tokens are not allowed."""
    # It may else write the words from which their embeddings were initialised.
    words = {token.lower() for s in gold for token, out in zip(s.tokens, s.outside_mask(), strict=True) if out}
    return [*sorted(label_texts), *sorted({word for text in label_texts.values() for word in text.split()} - words)]


def wrap_tokens(sentence: Sentence) -> list[list[str]]:
    """Wrap the tokens of mentions in label tokens."""
    return [[*parts, *parts[:-1]] for parts in tag_tokens(sentence)]


def tag_tokens(sentence: Sentence, scheme: str = "IOB2") -> list[list[str]]:
    """Put a label token before each token of a mention."""
    pairs = zip(sentence.tokens, sentence.iob(scheme), strict=True)
    return [[token] if tag == "O" else [label_token(tag), token] for token, tag in pairs]


def join_parts(parts: Iterable[str], markers: Collection[str]) -> str:
    """Join tokens and markers to running text."""
    texts: list[str] = []
    words: list[str] = []
    for part in parts:
        if part in markers:
            texts += [detokenize(words), part] if words else [part]
            words = []
        else:
            words.append(part)
    return " ".join([*texts, detokenize(words)] if words else texts)


def split_at_labels(text: str, labels: Collection[str]) -> list[str]:
    """Split a text before and after each label token."""
    parts = re.split("(" + "|".join(map(re.escape, labels)) + ")", text)
    return [part for part in parts if part.strip()]


def parse_wrapped(
    text: str, labels: Iterable[str], tokenize: Callable[[str], Sequence[str]], unsplit: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """Parse text with a label token before and after each token of a mention."""
    known = label_tokens(labels)
    parts = split_at_labels(text, known)
    tokens: list[str] = []
    tag_sequence: list[str] = []
    i = 0
    while i < len(parts):
        part = parts[i]
        if part not in known:
            new = tokenize(part)
            tokens += new
            tag_sequence += ["O"] * len(new)
            i += 1
            continue
        inner: list[str] = []
        if i + 2 < len(parts) and parts[i + 1] not in known:
            word = parts[i + 1].strip()
            inner = [word] if word in unsplit else word.split()
        if len(inner) != 1 or parts[i + 2] != part:
            return None
        tokens += inner
        tag_sequence.append(part[1:-1])
        i += 3
    return _decode(tokens, tag_sequence)


def parts_of_mentions(sentence: Sentence, linearized: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the parts of a linearized sentence for each mention."""
    return [[part for parts in linearized[m.start : m.end] for part in parts] for m in sentence.mentions]


def label_transitions(labels: Iterable[str]) -> dict[str, tuple[str, ...] | None]:
    """Return the allowed transitions between label tokens in tagged text."""
    transitions: dict[str, tuple[str, ...] | None] = {}
    for label in sorted(set(labels)):
        begin, inside = label_token(f"B-{label}"), label_token(f"I-{label}")
        transitions |= {begin: None, inside: (begin, inside)}
    return transitions


def parse_tagged(
    parts: Sequence[str], labels: Collection[str], scheme: str = "IOB2"
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """Parse text with a label token before each token of a mention."""
    tokens: list[str] = []
    tag_sequence: list[str] = []
    tag = "O"
    for part in parts:
        if part not in labels:
            tokens.append(part)
            tag_sequence.append(tag)
            tag = "O"
        elif tag != "O":
            return None
        else:
            tag = part[1:-1]
    return _decode(tokens, tag_sequence, scheme) if tag == "O" else None


def _decode(
    tokens: Sequence[str], tag_sequence: Sequence[str], scheme: str = "IOB2"
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    try:
        return tuple(tokens), tags.decode(tag_sequence, scheme)
    except TagError:
        return None
