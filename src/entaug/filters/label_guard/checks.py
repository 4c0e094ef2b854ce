"""The checks of the label guard: functions of a `CheckedSentence` that yield the words of each fault of one kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, pairwise

from entaug.backends.protocols import Recognition
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.words import is_word
from entaug.filters.label_guard.names import (
    NOT_WORDS,
    NameEvidence,
    NameUsage,
    has_capital,
    has_letter,
    is_beginning,
    is_shouted,
)

Faults = Iterator[tuple[str, ...]]
"""The words of each fault that a check finds."""

_BRACKETS = {"(": ")", "[": "]", "{": "}", "«": "»", "“": "”", "-LRB-": "-RRB-", "``": "''"}
_CLOSING = frozenset(_BRACKETS.values())
_LONGEST_ACRONYM = 5
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
_MAX_MARKS = 5  # of the same mark one after another
_PHRASE = 3  # words of a phrase that is not repeated


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


def _is_unbalanced(words: Sequence[str]) -> bool:
    """Whether words have an unpaired bracket or quotation mark."""
    open_: list[str] = []
    for word in words:
        if word in _BRACKETS:
            open_.append(_BRACKETS[word])
        elif word in _CLOSING and (not open_ or open_.pop() != word):
            return True
    return bool(open_) or words.count('"') % 2 == 1


# ------------------------------------------------------------------------------------------------------------- mentions


def _new_mentions(is_faulty: Callable[[CheckedSentence, Mention], bool], judged: CheckedSentence) -> Faults:
    """Find the mentions that the corpus does not have and that have a fault."""
    return (judged.words(mention) for mention in judged.new_mentions if is_faulty(judged, mention))


def _has_unpaired_bracket(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention has an unpaired bracket."""
    return _is_unbalanced(judged.words(mention))


def _is_ordinary(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention consists of function words, verbs or other ordinary words alone."""
    words, name_usage, name_evidence = judged.words(mention), judged.name_usage, judged.name_evidence
    if all(map(judged.is_function_word, words)):
        return True
    content = [word for word in words if not judged.is_function_word(word)]
    if not any(map(name_evidence.is_name, content)):
        # A capital alone makes no name of a word that the corpus has in lower case outside mentions.
        is_seen = all(name_usage.is_ordinary(word.lower()) and not name_usage.word_labels(word) for word in content)
        if is_seen and name_usage.capitalisation(mention.label) is True:
            return True
        is_common = all(name_evidence.is_common_word(word) and not _may_be_acronym(word) for word in content)
        if is_common and name_evidence.needs_names(mention.label) and not judged.is_in_entity(mention):
            return True
    return all(name_usage.is_ordinary(word) and not name_usage.word_labels(word) for word in content)


def _may_be_acronym(word: str) -> bool:
    return word.isupper() and 1 < len(word) <= _LONGEST_ACRONYM


def cut_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions that are a part of a longer name, or that begin or end with a word that mentions do not."""
    for mention in judged.mentions:
        if _overlaps_known(judged, mention) or _has_name_beside(judged, mention):
            yield judged.words(mention)
    for mention in judged.new_mentions:
        if _has_odd_edge(judged, mention) or _is_inside_entity(judged, mention):
            yield judged.words(mention)
    for one, other in pairwise(judged.mentions):
        if one.end == other.start and (one.label, other.label) not in judged.name_usage.adjacent_labels:
            yield judged.tokens[one.start : other.end]


def _overlaps_known(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a known mention that is not labelled contains or crosses a mention."""
    for start, end in judged.name_usage.known_spans(judged.tokens):
        is_apart = end <= mention.start or mention.end <= start
        if not is_apart and not any(m.start <= start and end <= m.end for m in judged.mentions):
            return True
    return False


def _has_name_beside(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a word beside a mention with a capital has a capital that only names have."""
    neighbours = [i for i in (mention.start - 1, mention.end) if 0 <= i < len(judged.tokens) and judged.outside[i]]
    return any(map(has_capital, judged.words(mention))) and any(map(judged.looks_like_name, neighbours))


def _has_odd_edge(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention begins or ends with a function word or a mark as those of the corpus do not."""
    words, name_usage = judged.words(mention), judged.name_usage
    first, last = words[0], words[-1]
    return len(words) > 1 and (
        (judged.is_function_word(first) and not has_capital(first) and not name_usage.may_begin(first))
        or (judged.is_function_word(last) and not has_capital(last) and not name_usage.may_end(last))
    )


def _is_inside_entity(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether an entity contains a mention and further words with a capital, which are no ordinary words."""
    for start, end, _ in judged.name_evidence.entities(judged.recognition):
        if start <= mention.start and mention.end <= end:
            rest = [i for i in range(start, end) if not mention.start <= i < mention.end and judged.outside[i]]
            if any(has_capital(judged.tokens[i]) and not judged.is_ordinary(i) for i in rest):
                return True
    return False


def joined_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions of two known names that neither the corpus nor a recogniser has as one."""
    entities = {(start, end) for start, end, _ in judged.name_evidence.all_entities(judged.recognition)}
    for m in judged.new_mentions:
        if (m.start, m.end) not in entities and judged.name_usage.is_two_names(judged.words(m), m.label):
            yield judged.words(m)


def _is_odd(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a mention looks as mentions of its type do not."""
    words, name_usage = judged.words(mention), judged.name_usage
    content = [word for word in words if is_word(word) and not judged.is_function_word(word)]
    labels = [name_usage.word_labels(word) for word in content]
    cased = [word for word in content if has_letter(word)]
    habit = name_usage.capitalisation(mention.label) if not judged.is_shouted else None
    return (
        bool(name_usage.labels_of(words))  # always with other labels
        or bool(habit is True and cased and not has_capital(cased[0]))
        or (habit is False and any(map(has_capital, cased)))
        or (bool(labels) and all(of_word and not of_word[mention.label] for of_word in labels))
        or len({word.casefold() for word in content}) < len(content)  # the same word twice
        or _is_otherwise_recognized(judged, mention)
    )


def _is_otherwise_recognized(judged: CheckedSentence, mention: Mention) -> bool:
    """Whether a recogniser sees a part of speech or an entity that mentions of the type are not."""
    if judged.recognition is None:
        return False
    name_evidence, last = judged.name_evidence, judged.recognition.pos[mention.end - 1]
    if not name_evidence.may_end_with(mention.label, last):
        return True
    return name_evidence.is_likelier_other(judged.words(mention), mention.label) or any(
        (start, end) == (mention.start, mention.end) and name_evidence.contradicts(kind, mention.label)
        for start, end, kind in name_evidence.all_entities(judged.recognition)
    )


# ----------------------------------------------------------------------------------------------- words outside mentions


def unlabelled_names(judged: CheckedSentence) -> Faults:
    """Find names outside mentions."""
    tokens, outside, name_usage = judged.tokens, judged.outside, judged.name_usage
    for start, end in name_usage.known_spans(tokens):
        if all(outside[start:end]):
            yield tokens[start:end]
    for i, token in enumerate(tokens):
        if outside[i] and not judged.is_ordinary(i) and (judged.looks_like_name(i) or _is_known_name(judged, i)):
            yield (token,)
    for start, end, _ in judged.name_evidence.entities(judged.recognition):
        words = [i for i in range(start, end) if not judged.is_ordinary(i) and not tokens[i].startswith(NOT_WORDS)]
        is_name = not name_usage.writes_names_with_capital or any(has_capital(tokens[i]) for i in words)
        if all(outside[start:end]) and words and is_name:
            yield tokens[start:end]


def _is_known_name(judged: CheckedSentence, i: int) -> bool:
    """Whether a word list has a token as a name, or the corpus has it as a part of one."""
    token, name_usage = judged.tokens[i], judged.name_usage
    if not name_usage.lists_tell_names or token.lower() in judged.stop_words or judged.is_excused(i):
        return False
    return judged.name_evidence.is_name(token) or (has_capital(token) and bool(name_usage.word_labels(token)))


def label_names(judged: CheckedSentence) -> Faults:
    """Find names of labels that no training sentence has as a word."""
    forms = {part for label in judged.name_usage.labels for part in (label, *re.split(r"[-_/]", label))}
    abbreviations = {form for form in forms if has_capital(form)}
    forms |= {change(form) for form in forms for change in (str.lower, str.upper, str.capitalize)}
    for token, after in zip(judged.tokens, (*judged.tokens[1:], ""), strict=True):
        is_known = token.casefold() in judged.name_usage.vocabulary
        if (token in abbreviations and not is_known) or (token in forms and after in (":", "|")):
            yield (token,)


def markup(judged: CheckedSentence) -> Faults:
    """Find marks of a prompt, a template, markup or chat that no training sentence has."""
    for token in judged.tokens:
        if _MARKS.fullmatch(token) and token.casefold() not in judged.name_usage.vocabulary:
            yield (token,)
    lower = tuple(token.lower() for token in judged.tokens)
    for phrase in _PHRASES:
        if any(lower[i : i + len(phrase)] == phrase for i in range(len(lower) - len(phrase) + 1)):
            yield phrase


def repetitions(judged: CheckedSentence) -> Faults:
    """Find words, phrases and marks that are repeated as stuck models do."""
    words = [token.casefold() for token in judged.tokens]
    counts = Counter(w for w in words if is_word(w) and len(w) > 1 and w not in judged.stop_words)
    yield from ((word,) for word, count in counts.items() if count > _MAX_REPEATED)
    phrases = Counter(tuple(words[i : i + _PHRASE]) for i in range(len(words) - _PHRASE + 1))
    yield from (phrase for phrase, count in phrases.items() if count > 1 and sum(map(is_word, phrase)) > 1)
    yield from ((a, b) for a, b in pairwise(words) if a == b and is_word(a))
    for mark, run in groupby(words):
        if not is_word(mark) and sum(1 for _ in run) > _MAX_MARKS:
            yield (mark,)


def unpaired_brackets(judged: CheckedSentence) -> Faults:
    """Find whether a bracket is opened and not closed, or closed and not opened."""
    brackets = tuple(token for token in judged.tokens if token in _BRACKETS or token in _CLOSING)
    if _is_unbalanced(brackets):
        yield brackets


CHECKS: dict[str, Callable[[CheckedSentence], Faults]] = {
    "the name of a label in the text": label_names,
    "traces of a prompt or of markup": markup,
    "unpaired brackets": unpaired_brackets,
    "repeated words": repetitions,
    "a mention with unpaired brackets": partial(_new_mentions, _has_unpaired_bracket),
    "a mention of ordinary words": partial(_new_mentions, _is_ordinary),
    "a mention that cuts a name": cut_mentions,
    "a mention of two names": joined_mentions,
    "a mention in a shape that its type does not have": partial(_new_mentions, _is_odd),
    "a name without a label": unlabelled_names,
}
"""The checks by the reason for which they refuse a sentence, in the order in which they are made."""

STYLE_CHECKS = ("unpaired brackets", "repeated words")
"""Checks that are not made where many training sentences have the fault."""
