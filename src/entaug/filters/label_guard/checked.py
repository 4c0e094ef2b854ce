"""A sentence that the label guard judges, and what its checks share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from entaug.backends.name_protocols import Recognition
from entaug.core.data import Mention, Sentence
from entaug.core.words import is_word
from entaug.filters.label_guard.name_evidence import NameEvidence
from entaug.filters.label_guard.name_usage import NameUsage, has_capital, is_beginning, is_shouted

__all__ = ["CheckedSentence", "Faults", "is_bracket", "is_unbalanced"]

Faults = Iterator[tuple[str, ...]]
"""The words of each fault that a check finds."""

_BRACKETS = {"(": ")", "[": "]", "{": "}", "«": "»", "“": "”", "-LRB-": "-RRB-", "``": "''"}
_CLOSING = frozenset(_BRACKETS.values())


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence that is judged, and what is known about names."""

    sentence: Sentence
    name_usage: NameUsage
    name_evidence: NameEvidence
    recognition: Recognition | None = None
    stop_words: frozenset[str] = frozenset()

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the sentence."""
        return self.sentence.tokens

    @cached_property
    def outside(self) -> list[bool]:
        """For each token whether it is outside all mentions."""
        return list(self.sentence.outside_mask())

    @cached_property
    def is_shouted(self) -> bool:
        """Whether the sentence is written in capitals throughout."""
        return is_shouted(self.tokens)

    @cached_property
    def mentions(self) -> list[Mention]:
        """The contiguous mentions."""
        return [mention for mention in self.sentence.mentions if mention.is_contiguous]

    @cached_property
    def new_mentions(self) -> list[Mention]:
        """The contiguous mentions that the corpus does not have with this label."""
        return [m for m in self.mentions if not self.name_usage.labels_of(self.words(m))[m.label]]

    def words(self, mention: Mention) -> tuple[str, ...]:
        """Return the tokens of a contiguous mention."""
        return self.tokens[mention.start : mention.end]

    def looks_like_name(self, i: int) -> bool:
        """Whether a token has a capital that only names have at its place."""
        return (
            not self.is_shouted
            and (self.name_usage.has_telling_capital(self.tokens, i) or self._is_rare_proper_noun(i))
            and self.name_evidence.capital_tells(self.tokens[i])
            and not self.is_excused(i)
        )

    def _is_rare_proper_noun(self, i: int) -> bool:
        """Whether a recogniser takes a token with a capital for a proper noun, and no list has it as a word."""
        token = self.tokens[i]
        return (
            self.recognition is not None
            and self.recognition.pos[i] == "PROPN"
            and has_capital(token)
            and is_word(token)
            and not self.is_ordinary(i)
            and self.name_evidence.usual_case(token) is None
        )

    def is_excused(self, i: int) -> bool:
        """Whether a token is in an entity of a kind that the corpus does not label."""
        return self._excused[i]

    @cached_property
    def _excused(self) -> list[bool]:
        excused = [False] * len(self.tokens)
        for start, end, kind in self.name_evidence.all_entities(self.recognition):
            if self.name_evidence.is_unlabelled_kind(kind):
                excused[start:end] = [True] * (end - start)
        return excused

    def is_in_entity(self, mention: Mention) -> bool:
        """Whether a recogniser sees an entity that shares a word with a mention."""
        entities = self.name_evidence.all_entities(self.recognition)
        return any(start < mention.end and mention.start < end for start, end, _ in entities)

    def is_ordinary(self, i: int) -> bool:
        """Whether the training sentences have a token outside mentions; at the beginning of a sentence in any case."""
        token = self.tokens[i]
        return self.name_usage.is_ordinary(token) or (
            is_beginning(self.tokens, i) and self.name_usage.is_ordinary(token.lower())
        )

    def is_function_word(self, token: str) -> bool:
        """Whether a token is a function word, or has no letter or digit."""
        if not any(map(str.isalnum, token)):
            return True
        return token.lower() in self.stop_words and not (len(token) > 1 and token.isupper())


def is_bracket(token: str) -> bool:
    """Whether a token is a bracket, or a quotation mark that opens or closes."""
    return token in _BRACKETS or token in _CLOSING


def is_unbalanced(words: Sequence[str]) -> bool:
    """Whether words have an unpaired bracket or quotation mark."""
    open_: list[str] = []
    for word in words:
        if word in _BRACKETS:
            open_.append(_BRACKETS[word])
        elif word in _CLOSING and (not open_ or open_.pop() != word):
            return True
    return bool(open_) or words.count('"') % 2 == 1
