"""Linearization: labelled sentences as one line of text with label tokens, and back.

Wrapped text has a label token before and after each token of a mention (MELM, Zhou et al. 2022; ACLM, Ghosh et al.
2023). Tagged text has a label token only before it (DAGA, Ding et al. 2020; MulDA, Liu et al. 2021). Both represent
flat mentions only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from entaug import tags
from entaug.alignment import detokenize
from entaug.data import Mention, Sentence
from entaug.errors import TagError

__all__ = [
    "INVALID_LABELS",
    "join_parts",
    "label_token",
    "label_tokens",
    "label_transitions",
    "parse_tagged",
    "parse_wrapped",
    "split_at_labels",
    "tag_mentions",
    "tag_tokens",
    "unwanted_labels",
    "wrap_mentions",
    "wrap_tokens",
]

INVALID_LABELS = "inconsistent label tokens"
_PREFIX_WORDS = {"B": "begin", "I": "inside"}  # words that, with the label, initialise the embedding of a label token


def label_token(tag: str) -> str:
    """Return the label token of a tag.

    Args:
        tag: a tag, for example ``"B-PER"``.

    Returns:
        The tag in angle brackets.

    Example:
        >>> label_token("B-PER")
        '<B-PER>'
    """
    return f"<{tag}>"


def label_tokens(labels: Iterable[str]) -> dict[str, str]:
    """Return the label tokens of some labels, each with the words from which its embedding is initialised.

    Args:
        labels: the labels of mentions.

    Returns:
        The words by label token, in a fixed order.

    Example:
        >>> label_tokens(["PER", "creative_work"])["<I-creative_work>"]
        'inside creative work'
    """
    return {
        label_token(f"{prefix}-{label}"): f"{word} {re.sub('[-_/ ]+', ' ', label)}"
        for label in sorted(set(labels))
        for prefix, word in _PREFIX_WORDS.items()
    }


def unwanted_labels(gold: Iterable[Sentence], label_texts: Mapping[str, str]) -> list[str]:
    """Return what a generator must not write where label tokens are not allowed.

    It may else write the words from which their embeddings were initialised.

    Args:
        gold: the training sentences.
        label_texts: the label tokens with these words.

    Returns:
        The label tokens, and their words that no training sentence has outside mentions.
    """
    words = {token.lower() for s in gold for token, out in zip(s.tokens, s.outside_mask(), strict=True) if out}
    return [*sorted(label_texts), *sorted({word for text in label_texts.values() for word in text.split()} - words)]


def wrap_tokens(sentence: Sentence) -> list[list[str]]:
    """Wrap the tokens of mentions in label tokens.

    Args:
        sentence: a sentence with flat mentions.

    Returns:
        For each token the parts of the text: itself, or, in a mention, a label token, itself and the label token again.

    Raises:
        LossError: mentions overlap or are discontinuous.

    Example:
        >>> wrap_tokens(Sentence("Ada sang".split(), [Mention("PER", [(0, 1)])]))
        [['<B-PER>', 'Ada', '<B-PER>'], ['sang']]
    """
    return [
        [token] if tag == "O" else [label_token(tag), token, label_token(tag)]
        for token, tag in zip(sentence.tokens, sentence.iob(), strict=True)
    ]


def wrap_mentions(sentence: Sentence) -> list[list[str]]:
    """Return the parts of wrapped text for each mention.

    Args:
        sentence: a sentence with flat mentions.

    Returns:
        For each mention its tokens with their label tokens.

    Example:
        >>> [" ".join(parts) for parts in wrap_mentions(Sentence("Ada sang".split(), [Mention("PER", [(0, 1)])]))]
        ['<B-PER> Ada <B-PER>']
    """
    wrapped = wrap_tokens(sentence)
    return [[part for parts in wrapped[m.start : m.end] for part in parts] for m in sentence.mentions]


def join_parts(parts: Sequence[str], markers: Collection[str]) -> str:
    """Join tokens and markers to running text.

    Args:
        parts: tokens and markers.
        markers: the parts that are not words: label tokens and masks.

    Returns:
        The text; the tokens between markers are detokenized.

    Example:
        >>> join_parts(["<B-X>", "Rome", "<B-X>", ",", "he", "said", "."], ["<B-X>"])
        '<B-X> Rome <B-X> , he said.'
    """
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
    """Split a text before and after each label token.

    Args:
        text: generated text.
        labels: the label tokens.

    Returns:
        The label tokens and the text between them.

    Example:
        >>> split_at_labels("so <B-X> Rome", ["<B-X>"])
        ['so ', '<B-X>', ' Rome']
    """
    parts = re.split("(" + "|".join(map(re.escape, labels)) + ")", text)
    return [part for part in parts if part.strip()]


def parse_wrapped(
    text: str, labels: Iterable[str], tokenize: Callable[[str], Sequence[str]], unsplit: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """Parse text with a label token before and after each token of a mention.

    Args:
        text: generated text.
        labels: the labels of the corpus.
        tokenize: returns the tokens of text outside mentions.
        unsplit: tokens of mentions that contain white space.

    Returns:
        Tokens and mentions; None if the label tokens are inconsistent.

    Example:
        >>> parse_wrapped("<B-X> New <B-X> <I-X> York <I-X> is big", ["X"], str.split)
        (('New', 'York', 'is', 'big'), (Mention(label='X', spans=((0, 2),)),))
        >>> parse_wrapped("<B-X> New <I-X> York is big", ["X"], str.split) is None
        True
    """
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


def tag_tokens(sentence: Sentence, scheme: str = "IOB2") -> list[str]:
    """Put a label token before each token of a mention.

    Args:
        sentence: a sentence with flat mentions.
        scheme: the tag scheme; see `entaug.tags`.

    Returns:
        Tokens and label tokens, in order.

    Raises:
        LossError: mentions overlap or are discontinuous.

    Example:
        >>> " ".join(tag_tokens(Sentence("Ada Byron sang".split(), [Mention("PER", [(0, 2)])]), "IOBES"))
        '<B-PER> Ada <E-PER> Byron sang'
    """
    parts: list[str] = []
    for token, tag in zip(sentence.tokens, sentence.iob(scheme), strict=True):
        parts += [token] if tag == "O" else [label_token(tag), token]
    return parts


def tag_mentions(sentence: Sentence) -> list[list[str]]:
    """Return the parts of tagged text for each mention.

    Args:
        sentence: a sentence with flat mentions.

    Returns:
        For each mention its tokens, each after its label token.

    Example:
        >>> [" ".join(parts) for parts in tag_mentions(Sentence("Ada sang".split(), [Mention("PER", [(0, 1)])]))]
        ['<B-PER> Ada']
    """
    pairs = [(label_token(tag), token) for token, tag in zip(sentence.tokens, sentence.iob(), strict=True)]
    return [[part for pair in pairs[m.start : m.end] for part in pair] for m in sentence.mentions]


def label_transitions(labels: Iterable[str]) -> dict[str, tuple[str, ...] | None]:
    """Return the allowed transitions between label tokens in tagged text.

    Args:
        labels: the labels of the corpus.

    Returns:
        For each label token the label tokens that the previous word may have; None if it begins a mention.

    Example:
        >>> label_transitions(["X"])
        {'<B-X>': None, '<I-X>': ('<B-X>', '<I-X>')}
    """
    transitions: dict[str, tuple[str, ...] | None] = {}
    for label in sorted(set(labels)):
        begin, inside = label_token(f"B-{label}"), label_token(f"I-{label}")
        transitions |= {begin: None, inside: (begin, inside)}
    return transitions


def parse_tagged(
    parts: Sequence[str], labels: Collection[str], scheme: str = "IOB2"
) -> tuple[tuple[str, ...], tuple[Mention, ...]] | None:
    """Parse text with a label token before each token of a mention.

    Args:
        parts: tokens and label tokens.
        labels: the label tokens of the corpus.
        scheme: the tag scheme.

    Returns:
        Tokens and mentions; None if the label tokens are inconsistent.

    Example:
        >>> parse_tagged("<B-X> New <I-X> York is big".split(), ["<B-X>", "<I-X>"])
        (('New', 'York', 'is', 'big'), (Mention(label='X', spans=((0, 2),)),))
        >>> parse_tagged("<B-X> <I-X> York".split(), ["<B-X>", "<I-X>"]) is None
        True
    """
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
