"""The checks of the label guard: each finds one kind of fault in a sentence.

A check is a function of a `Judged` sentence that yields the words of each fault. It never changes the sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from entaug.backends.name_protocols import Recognition
from entaug.data import Mention, Sentence
from entaug.guard.habits import NOT_WORDS, CorpusHabits, has_capital, has_letter, is_beginning, is_shouted
from entaug.guard.knowledge import NameKnowledge
from entaug.words import is_word

__all__ = ["CHECKS", "STYLE_CHECKS", "Judged"]

_BRACKETS = {"(": ")", "[": "]", "{": "}", "«": "»", "“": "”", "-LRB-": "-RRB-", "``": "''"}
_CLOSING = frozenset(_BRACKETS.values())
# What prompts, templates, markup and chat leave behind. Tokens of the corpus are never refused for it.
_MARKS = re.compile(r"[|<>{}\\^~_]+|#{2,}|={2,}|\*{2,}|<[^ ]*>|\[/?[A-Za-z]+\]|&[a-z]+;|[BIESLU]-[A-Za-z_]+|\ufffd")
_PHRASES = (
    ("citation", "needed"),
    ("clarification", "needed"),
    ("as", "an", "ai"),
    ("language", "model"),
    ("here", "is", "the", "sentence"),
    ("here", "is", "a", "sentence"),
)
_MAX_REPEATED = 2  # of a word that is no function word
_PHRASE = 3  # words of a phrase that is not repeated


@dataclass(frozen=True)
class Judged:
    """A sentence that is judged, and what is known about names.

    Args:
        sentence: the sentence.
        habits: what the training sentences tell.
        knowledge: what word lists and models tell.
        recognition: the entities and parts of speech of the sentence; None without a recogniser.
        stop_words: function words, in lower case.
    """

    sentence: Sentence
    habits: CorpusHabits
    knowledge: NameKnowledge
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
        return [m for m in self.mentions if not self.habits.labels_of(self.words(m))[m.label]]

    def words(self, mention: Mention) -> tuple[str, ...]:
        """Return the tokens of a contiguous mention.

        Args:
            mention: the mention.
        """
        return self.tokens[mention.start : mention.end]

    def looks_like_name(self, i: int) -> bool:
        """Whether a token has a capital that only names have at its place.

        Args:
            i: the position of the token.
        """
        return (
            not self.is_shouted
            and self.habits.has_telling_capital(self.tokens, i)
            and self.knowledge.capital_tells(self.tokens[i])
            and not self.is_excused(i)
        )

    def is_excused(self, i: int) -> bool:
        """Whether a token is in an entity of a kind that the corpus does not label.

        Args:
            i: the position of the token.
        """
        return self._excused[i]

    @cached_property
    def _excused(self) -> list[bool]:
        excused = [False] * len(self.tokens)
        for start, end, kind in self.knowledge.all_entities(self.recognition):
            if self.knowledge.is_unlabelled_kind(kind):
                excused[start:end] = [True] * (end - start)
        return excused

    def is_in_entity(self, mention: Mention) -> bool:
        """Whether a recogniser sees an entity that shares a word with a mention.

        Args:
            mention: the mention.
        """
        entities = self.knowledge.all_entities(self.recognition)
        return any(start < mention.end and mention.start < end for start, end, _ in entities)

    def is_ordinary(self, i: int) -> bool:
        """Whether the training sentences have a token outside mentions; at the beginning of a sentence in any case.

        Args:
            i: the position of the token.
        """
        token = self.tokens[i]
        return self.habits.is_ordinary(token) or (
            is_beginning(self.tokens, i) and self.habits.is_ordinary(token.lower())
        )

    def is_function_word(self, token: str) -> bool:
        """Whether a token is a function word, or has no letter or digit.

        Args:
            token: a token. A word in capitals is none: "us" is a function word, "US" is not.
        """
        if not any(map(str.isalnum, token)):
            return True
        return token.lower() in self.stop_words and not (len(token) > 1 and token.isupper())


# ------------------------------------------------------------------------------------------------------------- mentions

Faults = Iterator[tuple[str, ...]]


def unbalanced_mentions(judged: Judged) -> Faults:
    """Find mentions with an unpaired bracket that no mention of the corpus has.

    Args:
        judged: the sentence.

    Yields:
        The words of each mention.
    """
    return (judged.words(m) for m in judged.new_mentions if _is_unbalanced(judged.words(m)))


def _is_unbalanced(words: Sequence[str]) -> bool:
    open_: list[str] = []
    for word in words:
        if word in _BRACKETS:
            open_.append(_BRACKETS[word])
        elif word in _CLOSING and (not open_ or open_.pop() != word):
            return True
    return bool(open_) or words.count('"') % 2 == 1


def ordinary_mentions(judged: Judged) -> Faults:
    """Find mentions of function words, verbs or other ordinary words alone that the corpus does not have.

    Args:
        judged: the sentence.

    Yields:
        The words of each mention.
    """
    return (judged.words(m) for m in judged.new_mentions if _is_ordinary(judged, m))


def _is_ordinary(judged: Judged, mention: Mention) -> bool:
    words, habits, knowledge = judged.words(mention), judged.habits, judged.knowledge
    if all(map(judged.is_function_word, words)):
        return True
    content = [word for word in words if not judged.is_function_word(word)]
    has_name = any(map(knowledge.is_name, content))
    if habits.capital_habit(mention.label) is True and not has_name:
        # A capital alone makes no name of a word that the corpus has in lower case outside mentions.
        if all(habits.is_ordinary(word.lower()) and not habits.word_labels(word) for word in content):
            return True
        [*others, only] = content
        is_common = not others and not only.isupper() and knowledge.is_common_word(only)
        if is_common and knowledge.needs_names(mention.label) and not judged.is_in_entity(mention):
            return True
    return all(habits.is_ordinary(word) and not habits.word_labels(word) for word in content)


def cut_mentions(judged: Judged) -> Faults:
    """Find mentions that are a part of a longer name, or that begin or end with a word that mentions do not.

    Args:
        judged: the sentence.

    Yields:
        The words of each mention.
    """
    for mention in judged.mentions:
        if _overlaps_known(judged, mention) or _has_name_beside(judged, mention):
            yield judged.words(mention)
    for mention in judged.new_mentions:
        if _has_odd_edge(judged, mention) or _is_inside_entity(judged, mention):
            yield judged.words(mention)
    for one, other in pairwise(judged.mentions):
        if one.end == other.start and (one.label, other.label) not in judged.habits.adjacent_labels:
            yield judged.tokens[one.start : other.end]


def _overlaps_known(judged: Judged, mention: Mention) -> bool:
    """Whether a known mention that is not labelled contains or crosses a mention."""
    for start, end in judged.habits.known_spans(judged.tokens):
        is_apart = end <= mention.start or mention.end <= start
        if not is_apart and not any(m.start <= start and end <= m.end for m in judged.mentions):
            return True
    return False


def _has_name_beside(judged: Judged, mention: Mention) -> bool:
    """Whether a word beside a mention with a capital has a capital that only names have."""
    neighbours = [i for i in (mention.start - 1, mention.end) if 0 <= i < len(judged.tokens) and judged.outside[i]]
    return any(map(has_capital, judged.words(mention))) and any(map(judged.looks_like_name, neighbours))


def _has_odd_edge(judged: Judged, mention: Mention) -> bool:
    """Whether a mention begins or ends with a function word or a mark as those of the corpus do not."""
    words, habits = judged.words(mention), judged.habits
    first, last = words[0], words[-1]
    return len(words) > 1 and (
        (judged.is_function_word(first) and not has_capital(first) and not habits.may_begin(first))
        or (judged.is_function_word(last) and not has_capital(last) and not habits.may_end(last))
    )


def _is_inside_entity(judged: Judged, mention: Mention) -> bool:
    """Whether an entity contains a mention and further words with a capital, which are no ordinary words."""
    for start, end, _ in judged.knowledge.entities(judged.recognition):
        if start <= mention.start and mention.end <= end:
            rest = [i for i in range(start, end) if not mention.start <= i < mention.end and judged.outside[i]]
            if any(has_capital(judged.tokens[i]) and not judged.is_ordinary(i) for i in rest):
                return True
    return False


def oddly_shaped_mentions(judged: Judged) -> Faults:
    """Find mentions that the corpus does not have, and that look as mentions of their type do not.

    Args:
        judged: the sentence.

    Yields:
        The words of each mention.
    """
    return (judged.words(m) for m in judged.new_mentions if _is_odd(judged, m))


def _is_odd(judged: Judged, mention: Mention) -> bool:
    words, habits = judged.words(mention), judged.habits
    content = [word for word in words if is_word(word) and not judged.is_function_word(word)]
    labels = [habits.word_labels(word) for word in content]
    cased = [word for word in content if has_letter(word)]
    habit = habits.capital_habit(mention.label) if not judged.is_shouted else None
    return (
        bool(habits.labels_of(words))  # always with other labels
        or bool(habit is True and cased and not has_capital(cased[0]))
        or (habit is False and any(map(has_capital, cased)))
        or (bool(labels) and all(of_word and not of_word[mention.label] for of_word in labels))
        or len({word.casefold() for word in content}) < len(content)  # the same word twice
        or _is_otherwise_recognized(judged, mention)
    )


def _is_otherwise_recognized(judged: Judged, mention: Mention) -> bool:
    """Whether a recogniser sees a part of speech or an entity that mentions of the type are not."""
    if judged.recognition is None:
        return False
    knowledge, last = judged.knowledge, judged.recognition.pos[mention.end - 1]
    return not knowledge.may_end_with(mention.label, last) or any(
        (start, end) == (mention.start, mention.end) and knowledge.contradicts(kind, mention.label)
        for start, end, kind in knowledge.all_entities(judged.recognition)
    )


# ------------------------------------------------------------------------------------------------------ names and words


def unlabelled_names(judged: Judged) -> Faults:
    """Find names outside mentions.

    Args:
        judged: the sentence.

    Yields:
        The words of each name: a known mention, a word with a capital, a word whose usual form has one, or an entity.
    """
    tokens, outside, habits = judged.tokens, judged.outside, judged.habits
    for start, end in habits.known_spans(tokens):
        if all(outside[start:end]):
            yield tokens[start:end]
    for i, token in enumerate(tokens):
        if outside[i] and not judged.is_ordinary(i) and (judged.looks_like_name(i) or _is_known_name(judged, i)):
            yield (token,)
    for start, end, _ in judged.knowledge.entities(judged.recognition):
        words = [i for i in range(start, end) if not judged.is_ordinary(i) and not tokens[i].startswith(NOT_WORDS)]
        is_name = not habits.writes_names_with_capital or any(has_capital(tokens[i]) for i in words)
        if all(outside[start:end]) and words and is_name:
            yield tokens[start:end]


def _is_known_name(judged: Judged, i: int) -> bool:
    """Whether a word list has a token as a name, or the corpus has it as a part of one."""
    token, habits = judged.tokens[i], judged.habits
    if not habits.writes_names_with_capital or token.lower() in judged.stop_words or judged.is_excused(i):
        return False
    return judged.knowledge.is_name(token) or (has_capital(token) and bool(habits.word_labels(token)))


def label_names(judged: Judged) -> Faults:
    """Find names of labels that no training sentence has as a word.

    Args:
        judged: the sentence.

    Yields:
        Each word.
    """
    forms = {part for label in judged.habits.labels for part in (label, *re.split(r"[-_/]", label))}
    abbreviations = {form for form in forms if has_capital(form)}
    forms |= {change(form) for form in forms for change in (str.lower, str.upper, str.capitalize)}
    for token, after in zip(judged.tokens, (*judged.tokens[1:], ""), strict=True):
        is_known = token.casefold() in judged.habits.vocabulary
        if (token in abbreviations and not is_known) or (token in forms and after in (":", "|")):
            yield (token,)


def markup(judged: Judged) -> Faults:
    """Find marks of a prompt, a template, markup or chat that no training sentence has.

    Args:
        judged: the sentence.

    Yields:
        The words of each.
    """
    for token in judged.tokens:
        if _MARKS.fullmatch(token) and token.casefold() not in judged.habits.vocabulary:
            yield (token,)
    lower = tuple(token.lower() for token in judged.tokens)
    for phrase in _PHRASES:
        if any(lower[i : i + len(phrase)] == phrase for i in range(len(lower) - len(phrase) + 1)):
            yield phrase


def repetitions(judged: Judged) -> Faults:
    """Find words and phrases that are repeated as stuck models do.

    Args:
        judged: the sentence.

    Yields:
        The words of each.
    """
    words = [token.casefold() for token in judged.tokens]
    counts = Counter(w for w in words if is_word(w) and len(w) > 1 and w not in judged.stop_words)
    yield from ((word,) for word, count in counts.items() if count > _MAX_REPEATED)
    phrases = Counter(tuple(words[i : i + _PHRASE]) for i in range(len(words) - _PHRASE + 1))
    yield from (phrase for phrase, count in phrases.items() if count > 1 and sum(map(is_word, phrase)) > 1)
    yield from ((a, b) for a, b in pairwise(words) if a == b and is_word(a))


def unpaired_brackets(judged: Judged) -> Faults:
    """Find whether a bracket is opened and not closed, or closed and not opened.

    Args:
        judged: the sentence.

    Yields:
        The brackets of the sentence if one is unpaired.
    """
    brackets = tuple(token for token in judged.tokens if token in _BRACKETS or token in _CLOSING)
    if _is_unbalanced(brackets):
        yield brackets


Check = Callable[[Judged], Faults]

CHECKS: dict[str, Check] = {
    "the name of a label in the text": label_names,
    "traces of a prompt or of markup": markup,
    "unpaired brackets": unpaired_brackets,
    "repeated words": repetitions,
    "a mention with unpaired brackets": unbalanced_mentions,
    "a mention of ordinary words": ordinary_mentions,
    "a mention that cuts a name": cut_mentions,
    "a mention in a shape that its type does not have": oddly_shaped_mentions,
    "a name without a label": unlabelled_names,
}
"""The checks by the reason for which they refuse a sentence, in the order in which they are made."""

STYLE_CHECKS = ("unpaired brackets", "repeated words")
"""Checks that are not made where many training sentences have the fault."""
