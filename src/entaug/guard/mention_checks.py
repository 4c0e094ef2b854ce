"""Checks of mentions: each yields the words of the mentions that have one kind of fault."""

from __future__ import annotations

from itertools import pairwise

from entaug.data import Mention
from entaug.guard.habits import has_capital, has_letter
from entaug.guard.judged import Faults, Judged, is_unbalanced
from entaug.words import is_word

__all__ = ["cut_mentions", "joined_mentions", "oddly_shaped_mentions", "ordinary_mentions", "unbalanced_mentions"]

_LONGEST_ACRONYM = 5


def unbalanced_mentions(judged: Judged) -> Faults:
    """Find mentions with an unpaired bracket that no mention of the corpus has."""
    return (judged.words(m) for m in judged.new_mentions if is_unbalanced(judged.words(m)))


def ordinary_mentions(judged: Judged) -> Faults:
    """Find mentions of function words, verbs or other ordinary words alone that the corpus does not have."""
    return (judged.words(m) for m in judged.new_mentions if _is_ordinary(judged, m))


def _is_ordinary(judged: Judged, mention: Mention) -> bool:
    words, habits, knowledge = judged.words(mention), judged.habits, judged.knowledge
    if all(map(judged.is_function_word, words)):
        return True
    content = [word for word in words if not judged.is_function_word(word)]
    if not any(map(knowledge.is_name, content)):
        # A capital alone makes no name of a word that the corpus has in lower case outside mentions.
        is_seen = all(habits.is_ordinary(word.lower()) and not habits.word_labels(word) for word in content)
        if is_seen and habits.capital_habit(mention.label) is True:
            return True
        is_common = all(knowledge.is_common_word(word) and not _may_be_acronym(word) for word in content)
        if is_common and knowledge.needs_names(mention.label) and not judged.is_in_entity(mention):
            return True
    return all(habits.is_ordinary(word) and not habits.word_labels(word) for word in content)


def _may_be_acronym(word: str) -> bool:
    return word.isupper() and 1 < len(word) <= _LONGEST_ACRONYM


def cut_mentions(judged: Judged) -> Faults:
    """Find mentions that are a part of a longer name, or that begin or end with a word that mentions do not."""
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


def joined_mentions(judged: Judged) -> Faults:
    """Find mentions of two known names that neither the corpus nor a recogniser has as one."""
    entities = {(start, end) for start, end, _ in judged.knowledge.all_entities(judged.recognition)}
    for m in judged.new_mentions:
        if (m.start, m.end) not in entities and judged.habits.is_two_names(judged.words(m), m.label):
            yield judged.words(m)


def oddly_shaped_mentions(judged: Judged) -> Faults:
    """Find mentions that the corpus does not have, and that look as mentions of their type do not."""
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
    if not knowledge.may_end_with(mention.label, last):
        return True
    return knowledge.is_likelier_other(judged.words(mention), mention.label) or any(
        (start, end) == (mention.start, mention.end) and knowledge.contradicts(kind, mention.label)
        for start, end, kind in knowledge.all_entities(judged.recognition)
    )
