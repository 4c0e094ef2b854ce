"""Sentences as one line of text with their labels in it, and back: what generators of labelled text read and write.

Two ways: a label token before and after each token of a mention (MELM, Zhou et al. 2022; ACLM, Ghosh et al. 2023), and
one before it alone (DAGA, Ding et al. 2020; MulDA, Liu et al. 2021). Only flat mentions can be written so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from entaug import tags
from entaug.alignment import detokenize
from entaug.data import Mention, Sentence
from entaug.errors import TagError

__all__ = [
    "BROKEN",
    "goes_on",
    "label_token",
    "label_tokens",
    "linearized",
    "linearized_mentions",
    "read_linearized",
    "read_tagged",
    "tagged",
    "wrapped",
]

BROKEN = "labels that do not match"
_PREFIX_WORDS = {"B": "begin", "I": "inside"}  # what the meaning of a label token starts from besides its label


def label_token(tag: str) -> str:
    """The label token of a tag.

    Example:
        >>> label_token("B-PER")
        '<B-PER>'
    """
    return f"<{tag}>"


def label_tokens(labels: Iterable[str]) -> dict[str, str]:
    """Label tokens in a fixed order, each with the words that its meaning starts from.

    Example:
        >>> label_tokens(["PER", "creative_work"])["<I-creative_work>"]
        'inside creative work'
    """
    return {
        label_token(f"{prefix}-{label}"): f"{word} {re.sub('[-_/ ]+', ' ', label)}"
        for label in sorted(set(labels))
        for prefix, word in _PREFIX_WORDS.items()
    }


def wrapped(sentence: Sentence) -> list[list[str]]:
    """Each token of a flat sentence by itself, or, of a mention, between two label tokens.

    Raises:
        LossError: mentions overlap or are discontinuous.

    Example:
        >>> wrapped(Sentence("Ada sang".split(), [Mention("PER", [(0, 1)])]))
        [['<B-PER>', 'Ada', '<B-PER>'], ['sang']]
    """
    return [
        [token] if tag == "O" else [label_token(tag), token, label_token(tag)]
        for token, tag in zip(sentence.tokens, sentence.iob(), strict=True)
    ]


def linearized(sentence: Sentence) -> list[str]:
    """The tokens of a flat sentence, each of a mention between two label tokens.

    Raises:
        LossError: mentions overlap or are discontinuous.

    Example:
        >>> " ".join(linearized(Sentence("Ada Byron sang".split(), [Mention("PER", [(0, 2)])])))
        '<B-PER> Ada <B-PER> <I-PER> Byron <I-PER> sang'
    """
    return [part for parts in wrapped(sentence) for part in parts]


def linearized_mentions(sentence: Sentence) -> list[list[str]]:
    """What `linearized` makes of each mention of a flat sentence.

    Example:
        >>> [" ".join(parts) for parts in linearized_mentions(Sentence("Ada sang".split(), [Mention("PER", [(0, 1)])]))]
        ['<B-PER> Ada <B-PER>']
    """
    of_each = wrapped(sentence)
    return [[part for parts in of_each[m.start : m.end] for part in parts] for m in sentence.mentions]


def as_text(parts: Sequence[str], own: Iterable[str]) -> str:
    """Tokens and label tokens as running text: what stands between label tokens is spaced as in print.

    Args:
        parts: as `linearized` gives them.
        own: those that are no words: label tokens, and masks.

    Example:
        >>> as_text(["<B-X>", "Rome", "<B-X>", ",", "he", "said", "."], ["<B-X>"])
        '<B-X> Rome <B-X> , he said.'
    """
    apart = set(own)
    found: list[str] = []
    words: list[str] = []
    for part in parts:
        if part in apart:
            if words:
                found.append(detokenize(words))
            found.append(part)
            words = []
        else:
            words.append(part)
    if words:
        found.append(detokenize(words))
    return " ".join(found)


def read_linearized(
    text: str, labels: Iterable[str], tokens_of: Callable[[str], Sequence[str]], own: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """The tokens and mentions of a text with label tokens; None where these do not go together.

    Args:
        text: what was written.
        labels: those there are.
        tokens_of: what makes tokens of text outside of mentions.
        own: tokens of mentions that hold white space.

    Example:
        >>> read_linearized("<B-X> New <B-X> <I-X> York <I-X> is big", ["X"], str.split)
        (('New', 'York', 'is', 'big'), (Mention(label='X', spans=((0, 2),)),))
        >>> read_linearized("<B-X> New <I-X> York is big", ["X"], str.split) is None
        True
    """
    known = label_tokens(labels)
    parts = [part for part in re.split("(" + "|".join(map(re.escape, known)) + ")", text) if part.strip()]
    tokens: list[str] = []
    found: list[str] = []
    place = 0
    while place < len(parts):
        part = parts[place]
        if part not in known:
            new = tokens_of(part)
            tokens += new
            found += ["O"] * len(new)
            place += 1
            continue
        inner: list[str] = []
        if place + 2 < len(parts) and parts[place + 1] not in known:
            word = parts[place + 1].strip()
            inner = [word] if word in own else word.split()
        if len(inner) != 1 or parts[place + 2] != part:
            return None
        tokens += inner
        found.append(part[1:-1])
        place += 3
    try:
        return tuple(tokens), tags.decode(found)
    except TagError:
        return None


def tagged(sentence: Sentence, scheme: str = "IOB2") -> list[str]:
    """The tokens of a flat sentence, the label token of its tag before each of a mention.

    Args:
        sentence: it.
        scheme: see `entaug.tags`.

    Raises:
        LossError: mentions overlap or are discontinuous.

    Example:
        >>> " ".join(tagged(Sentence("Ada Byron sang".split(), [Mention("PER", [(0, 2)])]), "IOBES"))
        '<B-PER> Ada <E-PER> Byron sang'
    """
    found: list[str] = []
    for token, tag in zip(sentence.tokens, sentence.iob(scheme), strict=True):
        found += [token] if tag == "O" else [label_token(tag), token]
    return found


def goes_on(labels: Iterable[str]) -> dict[str, tuple[str, ...] | None]:
    """The label tokens of `tagged` text and, for each inside a mention, those that it goes on with.

    Example:
        >>> goes_on(["X"])
        {'<B-X>': None, '<I-X>': ('<B-X>', '<I-X>')}
    """
    found: dict[str, tuple[str, ...] | None] = {}
    for label in sorted(set(labels)):
        begin, inside = label_token(f"B-{label}"), label_token(f"I-{label}")
        found |= {begin: None, inside: (begin, inside)}
    return found


def read_tagged(
    parts: Sequence[str], known: Collection[str], scheme: str = "IOB2"
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """The tokens and mentions of what `tagged` writes; None where labels do not go together.

    Args:
        parts: tokens and label tokens.
        known: the label tokens there are.
        scheme: of their tags.

    Example:
        >>> read_tagged("<B-X> New <I-X> York is big".split(), ["<B-X>", "<I-X>"])
        (('New', 'York', 'is', 'big'), (Mention(label='X', spans=((0, 2),)),))
        >>> read_tagged("<B-X> <I-X> York".split(), ["<B-X>", "<I-X>"]) is None
        True
    """
    tokens: list[str] = []
    found: list[str] = []
    tag = "O"
    for part in parts:
        if part not in known:
            tokens.append(part)
            found.append(tag)
            tag = "O"
        elif tag != "O":
            return None
        else:
            tag = part[1:-1]
    if tag != "O":
        return None
    try:
        return tuple(tokens), tags.decode(found, scheme)
    except TagError:
        return None
