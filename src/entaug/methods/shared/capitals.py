"""Capitals: how a corpus and the mentions of a list use them, and mentions in the capitals of a place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from entaug.core.data import Sentence

Style = Literal["lower", "upper", "title", "sentence", "mixed"]
"""Capitals of the mentions of a list or a type: ``"title"`` begins each word with one, ``"sentence"`` the first word;
``"mixed"`` is any other use, where capitals belong to the words."""

_SAMPLE = 2000  # entries of a list that tell its style
_MOST = 0.9
_NEARLY_ALL = 0.995
_CLEARLY_NOT = 0.3
_ENOUGH = 5  # mentions of a type that tell its style
_POSSESSIVES = ("'s", "’s")  # noqa: RUF001


def style_of(texts: Sequence[str]) -> Style:
    """Return the style of the entries of a list; those of a long list are sampled."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    cased = [text for text in sample if text.lower() != text.upper()]
    if not cased:
        return "mixed"
    n = _MOST * len(cased)
    if sum(text.islower() for text in cased) >= n:
        return "lower"
    if sum(text.isupper() for text in cased) >= n:
        return "upper"
    if sum(_first_is_upper(text) for text in cased) < n:
        return "mixed"
    later = [word for text in cased for word in text.split()[1:] if len(word) > 3 and word.lower() != word.upper()]
    return "sentence" if later and sum(word.islower() for word in later) >= len(later) / 2 else "title"


class CorpusCapitals:
    """Use of capitals in a corpus: overall, in the mentions of each type, and by word."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._initial: Counter[str] = Counter()  # the first tokens of sentences
        self._mentions: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._small: set[str] = set()  # lower-case words within mentions

    def add(self, sentence: Sentence) -> None:
        """Learn from a sentence."""
        # Whole sentences are counted here, and each distinct token is looked at once, in `whole`.
        self._tokens.update(sentence.tokens)
        self._initial[sentence.tokens[0]] += 1
        for mention in sentence.mentions:
            words = sentence.mention_tokens(mention)
            self._small.update(word for word in words[1:] if word.islower())
            if mention.start and any(word.lower() != word.upper() for word in words):
                counts = self._mentions[mention.label]
                is_title = _first_is_upper(words[0])
                counts["all"] += 1
                counts["title" if is_title else "lower"] += 1
                counts["upper"] += is_title and all(w.isupper() or w.lower() == w.upper() for w in words)

    @cached_property
    def whole(self) -> Style:
        """The style of the corpus: ``"lower"`` and ``"upper"`` where it has no other letters, else ``"mixed"``."""
        running: Counter[str] = Counter()
        for token, count in self._tokens.items():
            running[_case_of(token)] += count
        n = _NEARLY_ALL * (running.total() - running["none"])
        if n and running["lower"] >= n:
            return "lower"
        return "upper" if n and running["upper"] >= n else "mixed"

    def of_type(self, label: str) -> Style:
        """The style of the mentions of a type: lower, upper, title or mixed."""
        counts: Mapping[str, int] = self._mentions.get(label, {})
        n = counts.get("all", 0)
        if n < _ENOUGH:
            return "mixed"
        if counts["upper"] >= _MOST * n:
            return "upper"
        if counts["title"] >= _MOST * n:
            return "title"
        return "lower" if counts["lower"] >= _MOST * n else "mixed"

    def adapt(self, text: str, style: Style, label: str) -> str:
        """Return a mention of a list in the capitals in which the corpus writes its type."""
        # Capitals that belong to the words are left alone: those of a list of mixed style, and of words that the corpus
        # writes so.
        whole, habit = self.whole, self.of_type(label)
        if whole != "mixed":
            return text.lower() if whole == "lower" else text.upper()
        if style in ("mixed", habit):
            return text
        if habit == "upper":
            return text.upper()
        words = text.split(" ")
        if habit == "title":
            if style in ("lower", "upper"):
                words = [self._capitalized(word, is_first=not i) for i, word in enumerate(words)]
        elif style == "upper":
            if habit == "lower":
                words = [word if self._is_acronym(word) else word.lower() for word in words]
        elif style != "lower":
            last = 1 if style == "sentence" else len(words)
            words[:last] = [self._without_capital(word, habit) for word in words[:last]]
        return " ".join(words)

    def within_sentence(self, words: tuple[str, ...], label: str) -> tuple[str, ...]:
        """Return a mention from the beginning of a sentence as the corpus writes it within sentences."""
        return (self._without_capital(words[0], self.of_type(label)), *words[1:])

    def _is_acronym(self, word: str) -> bool:
        return _case_of(word) == "upper" and word in self._tokens

    def _capitalized(self, word: str, *, is_first: bool) -> str:
        if self._is_acronym(word):
            return word
        lower = word.lower()
        if lower in self._small and not is_first:
            return lower
        return "-".join(part[:1].upper() + part[1:] for part in lower.split("-"))

    def _without_capital(self, word: str, habit: Style) -> str:
        lower = word.lower()
        if word[1:] != lower[1:] or len(word) < 2 or word.endswith(_POSSESSIVES):
            return word
        if _case_of(word) == "capital" and self._tokens[word] > self._initial[word]:  # also within sentences
            return word
        return lower if habit == "lower" or (lower.islower() and lower in self._tokens) else word


def _case_of(token: str) -> Literal["lower", "upper", "capital", "none"]:
    if token.islower():
        return "lower"
    if token.isupper() and len(token) > 1:
        return "upper"
    return "capital" if _first_is_upper(token) else "none"


def capitals_of(words: Sequence[str]) -> str:
    """Return how a mention uses capitals."""
    text = " ".join(words)
    if text.islower():
        return "lower"
    if text.isupper():
        return "upper" if sum(map(str.isalpha, text)) > 1 else "title"
    if text.lower() == text.upper():
        return "none"
    return "title" if next(filter(str.isalpha, text), "").isupper() else "mixed"


def is_in_capitals(tokens: Sequence[str], start: int = 0, end: int = 0) -> bool:
    """Return whether a sentence is written in capitals, apart from a range."""
    totals = _totals(tuple(tokens))
    if totals.lower > _CLEARLY_NOT * len(tokens):  # nearly all sentences; quick
        return False
    left_out = [token for token in tokens[start:end] if _is_cased_word(token)]
    cased = totals.cased - len(left_out)
    return cased > 1 and totals.upper - sum(map(str.isupper, left_out)) >= _MOST * cased


class _Totals(NamedTuple):
    """Counts of a sentence, from which those without a mention follow."""

    lower: int
    cased: int
    upper: int
    is_lower: bool
    first: int


@lru_cache(maxsize=1)  # the mentions of a sentence are looked at one after the other
def _totals(tokens: tuple[str, ...]) -> _Totals:
    cased = [token for token in tokens if _is_cased_word(token)]
    words = (i for i, token in enumerate(tokens) if any(map(str.isalnum, token)))
    return _Totals(
        sum(map(str.islower, tokens)),
        len(cased),
        sum(map(str.isupper, cased)),
        " ".join(tokens).islower(),
        next(words, len(tokens)),
    )


def _is_cased_word(token: str) -> bool:
    return len(token) > 1 and token.lower() != token.upper()


def match_casing(
    words: tuple[str, ...], tokens: Sequence[str], start: int, end: int, *, lower: bool = False
) -> tuple[str, ...]:
    """Return a mention in the capitals of the place where it is inserted."""
    if tokens[start].isupper():
        if is_in_capitals(tokens, start, end):
            return tuple([word.upper() for word in words])
    elif lower and tokens[start].islower() and len(tokens) - end + start > 1 and _totals(tuple(tokens)).is_lower:
        return tuple([word.lower() if word.istitle() else word for word in words])
    if _first_is_upper(tokens[start]) and words[0].islower() and start <= _totals(tuple(tokens)).first:
        return (words[0][:1].upper() + words[0][1:], *words[1:])
    return words


def _first_is_upper(text: str) -> bool:
    return text[:1].isupper()
