"""Shapes of mentions: capitals, figures, adjective or noun, and number, learned from a corpus in any language."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from entaug.core.data import Sentence
from entaug.methods.shared.capitals import capitals_of

__all__ = ["ARTICLES", "ARTICLE_FAMILIES", "MentionShapes", "Shape", "frequent_words"]

ARTICLE_FAMILIES = (
    frozenset(("the", "a", "an")),
    frozenset(("der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines")),
    frozenset(("de", "het", "een")),
    frozenset(("le", "la", "les", "un", "une")),
    frozenset(("el", "la", "los", "las", "un", "una")),
    frozenset(("il", "lo", "la", "gli", "le", "un", "una")),
)
"""Articles, by language."""

ARTICLES = frozenset().union(*ARTICLE_FAMILIES)
"""All of them."""

_COVERED = 0.5  # the share of the running words that function words make up
_SUFFIX = 2  # letters of a suffix
_MIN_STEM = 3
_MIN_PAIRS = 5  # pairs of words that show an ending
_NEARLY_AS_OFTEN = 0.5  # an ending has at least this share of the pairs of the most frequent one
_MODIFIES = 2 / 3  # share of the uses as a modifier from which a word counts as an adjective
_MIN_SUFFIXES = 3
_DEPENDS = 2.0  # chi-square per degree of freedom from which the use depends on the suffix


class Shape(NamedTuple):
    """Surface features of a mention: case, digits, length."""

    capitals: str
    has_digits: bool
    has_article: bool
    is_modifier: bool
    ending: str


class MentionShapes:
    """Learns which suffixes and endings are of importance in a corpus, and returns the shape of mentions."""

    # Nothing is known of any language but a few articles. A suffix is that of an adjective if mentions that end so
    # mostly stand before a word that is not one of the frequent words of the corpus; this is asked only for types in
    # which it depends on the suffix. An ending is one with which the corpus often has the same word, as the plural in
    # English.

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._tokens_outside: Counter[str] = Counter()  # outside all mentions
        self._words: Counter[str] = Counter()  # the words among the tokens, in lower case; once decided
        self._contexts: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)  # last word and the next one
        self._modifiers: dict[str, set[str]] | None = None  # for each type the suffixes of adjectives
        self._endings: tuple[str, ...] = ()

    def add(self, sentence: Sentence) -> None:
        """Learn from a sentence."""
        # Whole sentences are counted here, and each distinct token is looked at once, in `_decide`.
        self._modifiers = None
        tokens = sentence.tokens
        self._tokens.update(tokens)
        self._tokens_outside.update(compress(tokens, sentence.outside_mask()))
        for mention in sentence.mentions:
            if mention.is_contiguous:
                after = tokens[mention.end].lower() if mention.end < len(tokens) else ""
                self._contexts[mention.label].add((tokens[mention.end - 1].lower(), after))

    def shape(self, label: str, words: Sequence[str], before: str = "") -> Shape:
        """Return the shape of a mention."""
        if self._modifiers is None:
            self._decide()
        assert self._modifiers is not None
        last = words[-1].lower()
        return Shape(
            capitals_of(words),
            any(character.isdigit() for word in words for character in word),
            before.lower() in ARTICLES,
            last[-_SUFFIX:] in self._modifiers.get(label, ()),
            next((e for e in self._endings if last.endswith(e) and last[: -len(e)] in self._words), ""),
        )

    def _decide(self) -> None:
        self._words = _lower_case_words(self._tokens)
        function_words = frequent_words(_lower_case_words(self._tokens_outside))
        self._modifiers = {
            label: _modifying_suffixes(contexts, function_words) for label, contexts in self._contexts.items()
        }
        pairs = Counter(
            word[-n:]
            for word in self._words
            for n in (1, 2)
            if len(word) >= _MIN_STEM + n and word[:-n] in self._words and word.isalpha()
        )
        most = max(pairs.values(), default=0)
        enough = max(_MIN_PAIRS, _NEARLY_AS_OFTEN * most)
        self._endings = tuple(sorted((e for e, n in pairs.items() if n >= enough), key=lambda e: (-len(e), e)))


def _lower_case_words(tokens: Counter[str]) -> Counter[str]:
    """Return the counts of the words among tokens, in lower case."""
    words: Counter[str] = Counter()
    for token, count in tokens.items():
        word = token.lower()
        if word[0].isalpha():
            words[word] += count
    return words


def frequent_words(counts: Counter[str]) -> set[str]:
    """Return the most frequent words that together make up half of the running words; function words, for the most."""
    rest = _COVERED * counts.total()
    words = set()
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if rest <= 0:
            break
        words.add(word)
        rest -= count
    return words


def _modifying_suffixes(contexts: set[tuple[str, str]], function_words: set[str]) -> set[str]:
    """The suffixes of the mentions of a type that mostly stand before a word that is no function word."""
    uses: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for last, after in contexts:
        of_suffix = uses[last[-_SUFFIX:]]
        of_suffix[0] += 1
        of_suffix[1] += bool(after) and after[0].isalpha() and after not in function_words
    total = sum(n for n, _ in uses.values())
    rate = sum(k for _, k in uses.values()) / total if total else 0.0
    repeated = [(n, k) for n, k in uses.values() if n > 1]
    if len(repeated) < _MIN_SUFFIXES or not 0 < rate < 1:
        return set()
    chi_square = sum((k - n * rate) ** 2 / (n * rate * (1 - rate)) for n, k in repeated)
    if chi_square < _DEPENDS * (len(repeated) - 1):
        return set()
    return {suffix for suffix, (n, k) in uses.items() if k >= _MODIFIES * n}
