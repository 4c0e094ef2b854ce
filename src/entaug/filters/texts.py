"""Filters that need no model: validity, duplicates, mentions of the source, leakage from held-out data."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal

from entaug.config.params import NonNegativeFloat, PositiveInt, Probability
from entaug.core.data import Sentence
from entaug.core.words import BRACKETS, StopWords, folded, stop_words
from entaug.errors import InputError, InputWarning, ParameterError
from entaug.filters.base import Filter, HeldOut, content_digest
from entaug.metrics.near_duplicates import NearDuplicateIndex, similarity

_NO_MENTION = "no mention is left"
_NO_WORD = "a mention without words"
_STOP_WORDS = "a mention consists of stop words"
_ODD_TOKEN = "an invisible token"  # noqa: S105
_UNBALANCED = "unbalanced brackets or quotes"
_REPEATED = "a repeated word"
_SHORT = "too short compared with its source"
_LONG = "too long compared with its source"


@dataclass(kw_only=True, eq=False)
class Validity(Filter):
    """Keep sentences that are at least as well formed as their source.

    Defects that the source also has are ignored, and so are mentions and tokens that occur in the training sentences.

    Args:
        min_length_ratio: the minimum number of tokens, as a share of the source's; none for no limit.
        max_length_ratio: the maximum number of tokens, as a multiple of the source's; none for no limit.
        balanced_brackets: whether brackets and quotes must be balanced.
        allow_repetition: whether a word may occur twice in a row.
        stop_words: a mention must not consist only of these: a language code, a file, or none; see
            `entaug.core.words.stop_words`.

    Example:
        >>> gold = Sentence("Ada ( 36 ) left".split())
        >>> new = [Sentence("Bo ( 36 ) left".split()), Sentence("Ada ( 36 ( left".split())]
        >>> Validity().fit([gold]).judge(new, [gold, gold])
        [None, 'unbalanced brackets or quotes']
    """

    name = "validity"
    summary = "well formed: mentions contain words, brackets are balanced, the length is plausible"
    reasons = (_NO_MENTION, _NO_WORD, _STOP_WORDS, _ODD_TOKEN, _UNBALANCED, _REPEATED, _SHORT, _LONG)

    min_length_ratio: NonNegativeFloat | None = 0.1
    max_length_ratio: NonNegativeFloat | None = 3.0
    balanced_brackets: bool = True
    allow_repetition: bool = False
    stop_words: StopWords | None = "en"

    def _fit(self, gold: Sequence[Sentence]) -> None:
        self._odd_tokens = {token for sentence in gold for token in sentence.tokens if _is_odd(token)}
        self._mentions = {_lowered(sentence.mention_tokens(m)) for sentence in gold for m in sentence.mentions}

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        return [next(self._defects(*pair), None) for pair in zip(sentences, sources, strict=True)]

    def _defects(self, sentence: Sentence, source: Sentence | None) -> Iterator[str]:
        """Yield the defects of a sentence, the worst first."""
        stop = stop_words(self.stop_words)
        if source is not None and source.mentions and not sentence.mentions:
            yield _NO_MENTION
        new = [words for m in sentence.mentions if _lowered(words := sentence.mention_tokens(m)) not in self._mentions]
        if any(not any(map(_is_word, words)) for words in new):
            yield _NO_WORD
        # Case matters: "US" and "Who" are names, "us" and "who" are not.
        if any(all(token in stop or not _is_word(token) for token in words) for words in new):
            yield _STOP_WORDS
        if any(_is_odd(token) and token not in self._odd_tokens for token in sentence.tokens):
            yield _ODD_TOKEN
        source_tokens = source.tokens if source is not None else ()
        if self.balanced_brackets and _count_unpaired(sentence.tokens) > _count_unpaired(source_tokens):
            yield _UNBALANCED
        if not self.allow_repetition and _repeated_words(sentence.tokens) - _repeated_words(source_tokens):
            yield _REPEATED
        if source is not None:
            if self.min_length_ratio is not None and len(sentence) < self.min_length_ratio * len(source):
                yield _SHORT
            if self.max_length_ratio is not None and len(sentence) > self.max_length_ratio * len(source):
                yield _LONG


def _lowered(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(folded, tokens))


def _digest(sentence: Sentence) -> bytes:
    """A digest that is equal for sentences with the same words, ignoring case; it takes a tenth of their memory."""
    words = "\0".join(_lowered(sentence.tokens))
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_word(token: str) -> bool:
    return any(c.isalnum() for c in token)


def _is_odd(token: str) -> bool:
    """Whether a token contains white space, control characters or the replacement character."""
    return not token.isprintable() or " " in token or "\ufffd" in token


def _count_unpaired(tokens: Sequence[str]) -> int:
    """Count unmatched brackets and quotes; a closing bracket before any opening one is unmatched."""
    count = tokens.count('"') % 2
    for opening, closing in BRACKETS.items():
        open_ = 0
        for token in tokens:
            if token == opening:
                open_ += 1
            elif token == closing:
                if open_:
                    open_ -= 1
                else:
                    count += 1
        count += open_
    return count


def _repeated_words(tokens: Sequence[str]) -> Counter[str]:
    """Count the words that are directly followed by themselves."""
    return Counter(a for a, b in pairwise(token.casefold() for token in tokens) if a == b and _is_word(a))


class _KnownSentences:
    """Sentences of which there must be no duplicates, nor near-duplicates with a threshold."""

    def __init__(self, sentences: Sequence[Sentence], threshold: float | None) -> None:
        self._digests = set(map(_digest, sentences))
        self._near = None if threshold is None else NearDuplicateIndex(sentences, min_similarity=threshold)

    def holds(self, sentence: Sentence) -> bool:
        """Whether a sentence is equal to one of those known, but for case."""
        return _digest(sentence) in self._digests

    def find(self, sentences: Sequence[Sentence]) -> list[Literal["equal", "near", ""]]:
        """Return for each sentence whether one of those known is equal, or near."""
        near = [False] * len(sentences) if self._near is None else self._near.contains(sentences)
        return [
            "equal" if self.holds(sentence) else "near" if is_near else ""
            for sentence, is_near in zip(sentences, near, strict=True)
        ]


_AS_SOURCE = "duplicate of its source"
_AS_GOLD = "duplicate of another gold sentence"
_NEAR_SOURCE = "near-duplicate of its source"
_NEAR_GOLD = "near-duplicate of another gold sentence"


@dataclass(kw_only=True, eq=False)
class Duplicates(Filter):
    """Keep sentences that differ from their source and all training sentences in more than labels and case.

    The methods themselves reject sentences that are equal to the source or to an earlier output; this filter also
    rejects sentences with the same words. It does not compare augmented sentences with each other, because the result
    would then depend on their order.

    Args:
        threshold: sentences of this similarity or more are near-duplicates (see `entaug.metrics.near_duplicates`); none
            to reject equal sentences only.

    Example:
        >>> gold = [Sentence("Ada left Rome .".split()), Sentence("Bo left Rome .".split())]
        >>> new = [Sentence(text.split()) for text in ("ada left Rome .", "Bo left Rome .", "Cy left Rome .")]
        >>> Duplicates().fit(gold).judge(new, [gold[0]] * 3)
        ['duplicate of its source', 'duplicate of another gold sentence', None]
    """

    name = "duplicates"
    summary = "no duplicate of its source or of a gold sentence"
    reasons = (_AS_SOURCE, _AS_GOLD, _NEAR_SOURCE, _NEAR_GOLD)

    threshold: Probability | None = None

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if not gold:
            raise InputError(
                "no gold sentences for the duplicates filter", remedy="name the gold file, or remove the filter"
            )
        self._gold = _KnownSentences(gold, self.threshold)

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        found = self._gold.find(sentences)
        return [self._reason(*triple) for triple in zip(sentences, sources, found, strict=True)]

    def _reason(self, sentence: Sentence, source: Sentence | None, found: str) -> str | None:
        if source is not None and _digest(sentence) == _digest(source):
            return _AS_SOURCE
        if found == "equal":
            return _AS_GOLD
        if source is not None and self.threshold is not None and similarity(sentence, source) >= self.threshold:
            return _NEAR_SOURCE
        return _NEAR_GOLD if found else None


_MENTION_LOST = "a mention of its source is missing"


@dataclass(kw_only=True, eq=False)
class Mentions(Filter):
    """Keep sentences that contain all mentions of their source.

    Args:
        match_words: whether the mentions must have the same words, ignoring case; otherwise it is enough that each
            label has the same number of mentions.

    Example:
        >>> from entaug import Mention
        >>> gold = Sentence("Ada left".split(), [Mention("PER", [(0, 1)])])
        >>> bo = Sentence("Bo left".split(), [Mention("PER", [(0, 1)])])
        >>> [Mentions(match_words=match).fit([gold]).judge([bo], [gold]) for match in (True, False)]
        [['a mention of its source is missing'], [None]]
    """

    name = "mentions"
    summary = "contains all mentions of its source"
    reasons = (_MENTION_LOST,)

    match_words: bool = True

    @property
    def needs_source(self) -> bool:
        return True

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        return [
            _MENTION_LOST if source is not None and self._mentions(source) - self._mentions(sentence) else None
            for sentence, source in zip(sentences, sources, strict=True)
        ]

    def _mentions(self, sentence: Sentence) -> Counter[tuple[str, str]]:
        return Counter(
            (m.label, "\0".join(sentence.mention_tokens(m)).casefold() if self.match_words else "")
            for m in sentence.mentions
        )


_HELD_OUT = "duplicate of a held-out sentence"
_NEAR_HELD_OUT = "near-duplicate of a held-out sentence"
_SHARED_NGRAM = "shares an n-gram with a held-out sentence"


@dataclass(kw_only=True, eq=False)
class Leakage(Filter):
    """Keep sentences that are neither duplicates nor near-duplicates of dev or test sentences.

    Generators and exchanges of phrases can produce such sentences by chance. Training sentences that are held-out ones
    too are kept; an `entaug.errors.InputWarning` counts them.

    Args:
        held_out: the dev and test sentences; their mentions are not used.
        threshold: sentences of this similarity or more are near-duplicates (see `entaug.metrics.near_duplicates`); none
            to reject equal sentences only.
        ngram_size: also reject sentences that share an n-gram of this many tokens with a held-out sentence, unless a
            training sentence contains it too; none for no such check.

    Example:
        >>> test = [Sentence("Ada left Rome .".split())]
        >>> new = [Sentence(text.split()) for text in ("ada left rome .", "Bo stays .")]
        >>> Leakage(held_out=test).fit([]).judge(new, [None, None])
        ['duplicate of a held-out sentence', None]
    """

    name = "leakage"
    summary = "no duplicate or near-duplicate of a dev or test sentence"
    reasons = (_HELD_OUT, _NEAR_HELD_OUT, _SHARED_NGRAM)

    held_out: HeldOut | None = field(default=None, metadata={"given": "--held-out FILE"})
    threshold: Probability | None = 0.9
    ngram_size: PositiveInt | None = None

    def _check(self) -> None:
        if self.held_out is None:
            raise ParameterError(
                "the leakage filter has no held-out sentences",
                remedy="name dev and test files with `held_out`, or give entaug.filters.Leakage(held_out=sentences)",
            )

    def _load(self) -> None:
        self._held_out = _KnownSentences(list(self.held_out or ()), self.threshold)

    def _plain(self, name: str, value: Any) -> Any:
        if name == "held_out":
            return content_digest(_lowered(sentence.tokens) for sentence in value)
        return super()._plain(name, value)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if shared := [sentence for sentence in gold if self._held_out.holds(sentence)]:
            counts = f"{len(shared):,} of {len(gold):,} training sentences are held-out sentences too"
            message = f"{counts}, one is {' '.join(shared[0].tokens)[:60]!r}: remove them from one of the two"
            warnings.warn(message, InputWarning, stacklevel=2)
        self._held_out_ngrams = self._ngrams(self.held_out or ()) - self._ngrams(gold)

    def _ngrams(self, sentences: Iterable[Sentence]) -> set[tuple[str, ...]]:
        n = self.ngram_size
        if n is None:
            return set()
        texts = (_lowered(sentence.tokens) for sentence in sentences)
        return {words[i : i + n] for words in texts for i in range(len(words) - n + 1)}

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        reasons = {"equal": _HELD_OUT, "near": _NEAR_HELD_OUT}
        return [
            reasons.get(found) or (_SHARED_NGRAM if self._ngrams([sentence]) & self._held_out_ngrams else None)
            for sentence, found in zip(sentences, self._held_out.find(sentences), strict=True)
        ]
