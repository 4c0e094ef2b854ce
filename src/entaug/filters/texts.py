"""Filters that look at words alone: well formed, new, mentions still there, nothing held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters.base import Filter, check_share, is_number
from entaug.scoring.near_duplicates import find_near_duplicates, similarity
from entaug.stopwords import stop_words

__all__ = ["Duplicates", "Leakage", "Mentions", "Validity"]

_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("-LRB-", "-RRB-"), ("``", "''"), ("“", "”"), ("«", "»"))

_NO_MENTION = "no mention left"
_NO_WORD = "a mention without a word"
_STOP_WORDS = "a mention of stop words alone"
_ODD_TOKEN = "a token that cannot be seen"  # noqa: S105
_UNBALANCED = "brackets or quotes that do not pair"
_REPEATED = "a word twice in a row"
_SHORT = "too short beside its source"
_LONG = "too long beside its source"


@dataclass(kw_only=True, eq=False)
class Validity(Filter):
    """Keep what is well formed, as far as its source and the gold sentences are.

    Nothing is held against a sentence that its source has too, nor a mention or token that the gold sentences have.

    Args:
        shortest: how many tokens it must have at least, as a share of its source's; none for any.
        longest: how many it may have at most, as a multiple of its source's; none for any.
        balanced: whether brackets and quotes must pair.
        repeated: whether a word may stand twice in a row.
        stop_words: a mention must not be made of these alone: a language's code, a file, or none; see
            `entaug.stopwords.stop_words`.

    Example:
        >>> gold = Sentence("Ada ( 36 ) left".split())
        >>> made = [Sentence("Bo ( 36 ) left".split()), Sentence("Ada ( 36 ( left".split())]
        >>> Validity().fit([gold]).judge(made, [gold, gold])
        [None, 'brackets or quotes that do not pair']
    """

    filter_name = "validity"
    summary = "well formed, as far as its source is: mentions of words, brackets in pairs, no absurd length"
    reasons = (_NO_MENTION, _NO_WORD, _STOP_WORDS, _ODD_TOKEN, _UNBALANCED, _REPEATED, _SHORT, _LONG)

    shortest: float | None = 0.1
    longest: float | None = 3.0
    balanced: bool = True
    repeated: bool = False
    stop_words: str | None = "en"

    def _check(self) -> None:
        for name in ("shortest", "longest"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value >= 0):
                raise ParameterError(f"{name} must be a number of at least 0, or none, not {value!r}")
        for name in ("balanced", "repeated"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} must be true or false, not {getattr(self, name)!r}")

    def _load(self) -> None:
        self._stop_words = stop_words(self.stop_words)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        self._odd = {token for sentence in gold for token in sentence.tokens if _is_odd(token)}
        self._mentions = {_lowered(sentence.mention_tokens(m)) for sentence in gold for m in sentence.mentions}

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        return [next(self._faults(*pair), None) for pair in zip(made, sources, strict=True)]

    def _faults(self, made: Sentence, source: Sentence | None) -> Iterator[str]:
        """What is wrong with a sentence, the worst first."""
        if source is not None and source.mentions and not made.mentions:
            yield _NO_MENTION
        new = [words for m in made.mentions if _lowered(words := made.mention_tokens(m)) not in self._mentions]
        if any(not any(map(_is_word, words)) for words in new):
            yield _NO_WORD
        # As it is written: "US" and "Who" are names where "us" and "who" are none.
        if any(all(token in self._stop_words or not _is_word(token) for token in words) for words in new):
            yield _STOP_WORDS
        if any(_is_odd(token) and token not in self._odd for token in made.tokens):
            yield _ODD_TOKEN
        if self.balanced and _unpaired(made.tokens) > (_unpaired(source.tokens) if source is not None else 0):
            yield _UNBALANCED
        if not self.repeated and _twice(made.tokens) - (_twice(source.tokens) if source is not None else Counter()):
            yield _REPEATED
        if source is not None:
            if self.shortest is not None and len(made) < self.shortest * len(source):
                yield _SHORT
            if self.longest is not None and len(made) > self.longest * len(source):
                yield _LONG


def _lowered(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple(token.casefold() for token in tokens)


def _is_word(token: str) -> bool:
    return any(c.isalnum() for c in token)


def _is_odd(token: str) -> bool:
    """Whether a token holds white space, control characters or what stands for a broken character."""
    return not token.isprintable() or " " in token or "\ufffd" in token


def _unpaired(tokens: Sequence[str]) -> int:
    """How many brackets and quotes have no partner; one that closes before any has opened has none."""
    count = tokens.count('"') % 2
    for opening, closing in _BRACKETS:
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


def _twice(tokens: Sequence[str]) -> Counter[str]:
    """Words that are followed by themselves."""
    return Counter(a for a, b in pairwise(token.casefold() for token in tokens) if a == b and _is_word(a))


_AS_SOURCE = "reads as its source"
_AS_GOLD = "reads as another gold sentence"
_NEAR_SOURCE = "nearly reads as its source"
_NEAR_GOLD = "nearly reads as another gold sentence"


@dataclass(kw_only=True, eq=False)
class Duplicates(Filter):
    """Keep what reads otherwise than its source and all gold sentences, whatever its mentions and its capitals.

    A method drops what is equal to its source or was made before by itself; this drops what a reader would call the
    same. It does not compare with what was made before: that would let company and order decide.

    Args:
        least: the similarity from which two sentences are nearly the same (see `entaug.scoring.near_duplicates`); none where only
            equal ones count.

    Example:
        >>> gold = [Sentence("Ada left Rome .".split()), Sentence("Bo left Rome .".split())]
        >>> made = [Sentence(text.split()) for text in ("ada left Rome .", "Bo left Rome .", "Cy left Rome .")]
        >>> Duplicates().fit(gold).judge(made, [gold[0]] * 3)
        ['reads as its source', 'reads as another gold sentence', None]
    """

    filter_name = "duplicates"
    summary = "reads otherwise than its source and all gold sentences"
    reasons = (_AS_SOURCE, _AS_GOLD, _NEAR_SOURCE, _NEAR_GOLD)

    least: float | None = None

    def _check(self) -> None:
        check_share("least", self.least)

    def _fit(self, gold: Sequence[Sentence]) -> None:
        if not gold:
            raise InputError(
                "no gold sentences for the duplicates filter", remedy="name the gold file, or leave it out"
            )
        self._gold = {_lowered(sentence.tokens): sentence for sentence in gold}

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        homes = [_lowered(source.tokens) if source is not None else None for source in sources]
        read = [_lowered(sentence.tokens) for sentence in made]
        found = [
            _AS_SOURCE if own == home else _AS_GOLD if own in self._gold else None
            for own, home in zip(read, homes, strict=True)
        ]
        left = [i for i, reason in enumerate(found) if reason is None]
        if self.least is not None and left:
            near = find_near_duplicates([made[i] for i in left], list(self._gold.values()), min_similarity=self.least)
            for i, neighbour in zip(left, near, strict=True):
                source = sources[i]
                if source is not None and similarity(made[i], source) >= self.least:
                    found[i] = _NEAR_SOURCE
                elif neighbour is not None:
                    found[i] = _NEAR_GOLD
        return found


_GONE = "a mention of its source is gone"


@dataclass(kw_only=True, eq=False)
class Mentions(Filter):
    """Keep what still has all mentions of its source.

    Args:
        words: whether they must have the same words, but for capitals; else as many of each label are enough.

    Example:
        >>> from entaug import Mention
        >>> gold = Sentence("Ada left".split(), [Mention("PER", [(0, 1)])])
        >>> bo = Sentence("Bo left".split(), [Mention("PER", [(0, 1)])])
        >>> [Mentions(words=w).fit([gold]).judge([bo], [gold]) for w in (True, False)]
        [['a mention of its source is gone'], [None]]
    """

    filter_name = "mentions"
    summary = "all mentions of its source are still there"
    reasons = (_GONE,)

    words: bool = True

    @property
    def needs_source(self) -> bool:
        """See `Filter.needs_source`."""
        return True

    def _check(self) -> None:
        if not isinstance(self.words, bool):
            raise ParameterError(f"words must be true or false, not {self.words!r}")

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        return [
            _GONE if source is not None and self._mentions(source) - self._mentions(one) else None
            for one, source in zip(made, sources, strict=True)
        ]

    def _mentions(self, sentence: Sentence) -> Counter[tuple[str, str]]:
        return Counter(
            (m.label, "\0".join(sentence.mention_tokens(m)).casefold() if self.words else "") for m in sentence.mentions
        )


_HELD_OUT = "reads as a held-out sentence"
_NEAR_HELD_OUT = "nearly reads as a held-out sentence"
_RUN = "shares a run of words with a held-out sentence"


@dataclass(kw_only=True, eq=False)
class Leakage(Filter):
    """Keep what is not in dev or test, nor nearly: what a generator or a chance exchange could bring in.

    Args:
        held_out: the sentences of dev and test; their mentions are not looked at.
        least: the similarity from which two sentences are nearly the same (see `entaug.scoring.near_duplicates`); none where only
            equal ones count.
        run: how many tokens in a row a sentence must not share with one held out, unless a gold sentence has them too;
            none for any number.

    Example:
        >>> test = [Sentence("Ada left Rome .".split())]
        >>> made = [Sentence(text.split()) for text in ("ada left rome .", "Bo stays .")]
        >>> Leakage(held_out=test).fit([]).judge(made, [None, None])
        ['reads as a held-out sentence', None]
    """

    filter_name = "leakage"
    summary = "not a sentence of dev or test, nor nearly one"
    reasons = (_HELD_OUT, _NEAR_HELD_OUT, _RUN)

    held_out: Sequence[Sentence] | None = field(default=None, metadata={"given": "--held-out FILE"})
    least: float | None = 0.9
    run: int | None = None

    def _check(self) -> None:
        if self.held_out is None:
            raise ParameterError(
                "the leakage filter has nothing to compare with",
                remedy="name dev and test files with --held-out, or give Leakage(held_out=sentences)",
            )
        check_share("least", self.least)
        if self.run is not None and (type(self.run) is not int or self.run < 1):
            raise ParameterError(f"run must be a whole number of at least 1, or none, not {self.run!r}")

    def _load(self) -> None:
        self._held_out = {_lowered(sentence.tokens): sentence for sentence in self.held_out or ()}

    def _plain(self, name: str, value: Any) -> str:
        if name != "held_out":
            return super()._plain(name, value)
        # By content, and where a file lies or how it is sorted is no part of that.
        digest = blake2b(digest_size=8)
        for words in sorted({_lowered(sentence.tokens) for sentence in value}):
            digest.update(("\0".join(words) + "\1").encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def _fit(self, gold: Sequence[Sentence]) -> None:
        self._runs = self._runs_of(self._held_out) - self._runs_of(_lowered(sentence.tokens) for sentence in gold)

    def _runs_of(self, texts: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        n = self.run
        return {words[i : i + n] for words in texts for i in range(len(words) - n + 1)} if n is not None else set()

    def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        del sources
        read = [_lowered(sentence.tokens) for sentence in made]
        found = [_HELD_OUT if own in self._held_out else None for own in read]
        if self.least is not None:
            near = find_near_duplicates(made, list(self._held_out.values()), min_similarity=self.least)
            found = [reason or (_NEAR_HELD_OUT if one else None) for reason, one in zip(found, near, strict=True)]
        return [
            reason or (_RUN if self._runs_of([own]) & self._runs else None)
            for reason, own in zip(found, read, strict=True)
        ]
