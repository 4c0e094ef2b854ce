"""Names in text without capitals, which methods that replace words must leave alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from entaug.backends.name_protocols import EntityRecognizer, Recognition, WordCases
from entaug.core.data import Sentence
from entaug.core.words import is_word
from entaug.filters.label_guard.name_usage import HARDLY_ANY, has_capital

__all__ = ["TruecasedRecognizer", "UncasedNames"]

_CACHE_SIZE = 100_000
_DECIDED = 2000  # words after which a corpus with capitals is not counted any further


class TruecasedRecognizer:
    """A recogniser of a corpus without capitals: words that usually have one are given to it with one."""

    def __init__(self, recognizer: EntityRecognizer, word_cases: WordCases) -> None:
        self._recognizer, self._word_cases = recognizer, word_cases
        self.name, self.language = recognizer.name, recognizer.language

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        """See `entaug.backends.name_protocols.EntityRecognizer.recognize`."""
        return self._recognizer.recognize([[self._truecased(word) for word in words] for words in sentences])

    def _truecased(self, word: str) -> str:
        usual = self._word_cases.usual_case(word)
        return usual if usual is not None and has_capital(usual) else word


class UncasedNames:
    """The places of names in sentences of a corpus without capitals; with capitals there is nothing to find."""

    def __init__(
        self,
        corpus: Iterable[Sentence] = (),
        word_cases: WordCases | None = None,
        recognizer: EntityRecognizer | None = None,
        stop_words: frozenset[str] = frozenset(),
    ) -> None:
        self._recognizer, self._stop_words = recognizer, stop_words
        self.use_list(word_cases)
        self._inside: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._mentions: set[tuple[str, ...]] = set()
        self._total = self._capitals = 0
        self._places: dict[tuple[str, ...], frozenset[int]] = {}
        for sentence in corpus:
            self.add(sentence)

    def use_list(self, word_cases: WordCases | None) -> None:
        """Use a list of words."""
        self._word_cases = word_cases
        self.list_name = word_cases.name if word_cases is not None else None

    def add(self, sentence: Sentence) -> None:
        """Count a sentence of the corpus."""
        if self._total >= _DECIDED and not self.is_needed:
            return
        for token, is_outside in zip(sentence.tokens, sentence.outside_mask(), strict=True):
            if is_word(token):
                self._total += 1
                self._capitals += has_capital(token)
                (self._outside if is_outside else self._inside)[token.casefold()] += 1
        for mention in sentence.mentions:
            words = tuple(word.casefold() for word in sentence.mention_tokens(mention))
            if mention.is_contiguous and not self._stop_words.issuperset(words):
                self._mentions.add(words)

    @property
    def is_needed(self) -> bool:
        """Whether the corpus has no capitals, in lower case or in a script without case."""
        return self._capitals < HARDLY_ANY * self._total

    def places(self, sentences: Sequence[Sentence]) -> list[frozenset[int]]:
        """Return for each sentence the positions of the words of names, in mentions and outside."""
        if not self.is_needed:
            return [frozenset()] * len(sentences)
        if len(self._places) > _CACHE_SIZE:
            self._places.clear()
        new = list(dict.fromkeys(s.tokens for s in sentences if s.tokens not in self._places))
        found = self._recognizer.recognize(new) if self._recognizer and new else [None] * len(new)
        for tokens, recognition in zip(new, found, strict=True):
            self._places[tokens] = frozenset(self._of_sentence(tokens, recognition))
        return [self._places[sentence.tokens] for sentence in sentences]

    def _of_sentence(self, tokens: Sequence[str], recognition: Recognition | None) -> set[int]:
        words = [token.casefold() for token in tokens]
        places = {i for i, word in enumerate(words) if self._is_name(word)}
        spans = [(start, end) for start, end, _ in (recognition.entities if recognition else ())]
        places.update(i for start, end in spans if not places.isdisjoint(range(start, end)) for i in range(start, end))
        for start, word in enumerate(words):
            for mention in self._by_first.get(word, ()):
                if tuple(words[start : start + len(mention)]) == mention:
                    places.update(range(start, start + len(mention)))
        return places

    def _is_name(self, word: str) -> bool:
        if word in self._names:
            return True
        usual = self._word_cases.usual_case(word) if self._word_cases and is_word(word) else None
        return usual is not None and len(word) > 1 and has_capital(usual) and word not in self._stop_words

    @cached_property
    def _names(self) -> set[str]:
        return {word for word, n in self._inside.items() if n > self._outside[word] and word not in self._stop_words}

    @cached_property
    def _by_first(self) -> Mapping[str, Sequence[tuple[str, ...]]]:
        by_first: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        for words in sorted(self._mentions):
            by_first[words[0]].append(words)
        return by_first
