"""Kinds of sentences: running prose, headlines, and rows of tables, told apart by a sentence and its corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from entaug.core.data import Sentence
from entaug.methods.shared.donors import CorpusCapitals, frequent_words, is_in_capitals
from entaug.methods.types import Rejection

SentenceKind = Literal["prose", "headline", "table"]
"""``"table"`` includes score lines, datelines and bylines: lines of names, figures and marks."""

NOT_PROSE = Rejection("a headline or a table row, which is left alone", final=True)

_FIGURES = 1 / 2  # the share of figures among words and figures in a table
_FIGURES_WITHOUT_FREQUENT_WORDS = 1 / 3
_LONG = 4  # letters of words that a title writes with a capital
_CAPITALS = 0.6  # the share of these with a capital in a title
_MIN_CAPITALS = 2
_RARE = 0.3  # a corpus that writes at most this share of words with a capital has no capitals for common nouns


class SentenceKinds:
    """Recognises headlines and table rows of a corpus, in any script."""

    # A headline is written in capitals, or has capitals on words that the corpus writes in lower case. In a corpus
    # without lower case, and in scripts without case, no headline is recognised; nor are capitals of nouns taken for it
    # in a language that has them. A table row has no words outside its mentions, or consists of figures to a large
    # part; fewer are enough where none of the most frequent words of the corpus is among its words.

    def __init__(self, corpus: Iterable[Sentence]) -> None:
        capitals = CorpusCapitals()
        outside: Counter[str] = Counter()
        for sentence in corpus:
            capitals.add(sentence)
            if is_in_capitals(sentence.tokens):
                continue
            outside.update(
                token
                for i, (token, is_outside) in enumerate(zip(sentence.tokens, sentence.outside_mask(), strict=True))
                if is_outside and i and token[0].isalpha()
            )
        self._capitals = capitals
        self.has_case = capitals.whole == "mixed"
        self._counts = outside
        lower: Counter[str] = Counter()
        for word, count in outside.items():
            lower[word.lower()] += count
        self._frequent = frequent_words(lower)
        long = [word for word in outside if len(word) >= _LONG and word.lower() != word.upper()]
        with_capital = sum(outside[word] for word in long if word[0].isupper())
        self._capitals_are_rare = with_capital <= _RARE * sum(outside[word] for word in long)

    def kind(self, sentence: Sentence) -> SentenceKind:
        """Return the kind of a sentence."""
        tokens = sentence.tokens
        outside = sentence.outside_mask()
        words = [(i, token) for i, token in enumerate(tokens) if outside[i] and any(map(str.isalpha, token))]
        if not words:
            return "table"
        figures = sum(any(map(str.isdecimal, token)) for token in tokens)
        n = sum(any(map(str.isalnum, token)) for token in tokens)
        is_without = all(word.lower() not in self._frequent for _, word in words)
        if figures >= (_FIGURES_WITHOUT_FREQUENT_WORDS if is_without else _FIGURES) * n:
            return "table"
        if not self.has_case:
            return "prose"
        return "headline" if is_in_capitals(tokens) or self._is_title(words) else "prose"

    def within_sentence(self, sentence: Sentence, position: int) -> str | None:
        """Return the first word of a sentence as the corpus writes it within sentences; None if it does not tell."""
        word = sentence.tokens[position]
        lower = word.lower()
        for mention in sentence.mentions:
            if mention.start == position:
                return self._capitals.within_sentence(sentence.mention_tokens(mention), mention.label)[0]
        if self._counts[lower] != self._counts[word]:
            return lower if self._counts[lower] > self._counts[word] else word
        return None

    def _is_title(self, words: list[tuple[int, str]]) -> bool:
        """Whether most of the longer words have a capital that the corpus does not give them."""
        with_capital = without = 0
        for i, word in words:
            if not i or len(word) < _LONG or word.isupper() or word.lower() == word.upper():
                continue
            if not word[0].isupper():
                without += 1
            elif self._is_common(word):
                with_capital += 1
        return with_capital >= _MIN_CAPITALS and with_capital >= _CAPITALS * (with_capital + without)

    def _is_common(self, word: str) -> bool:
        lower, own = self._counts[word.lower()], self._counts[word]
        # A word that is always seen with a capital, or never seen, tells something only where capitals are rare.
        return lower > own or (self._capitals_are_rare and lower + own < _MIN_CAPITALS)
