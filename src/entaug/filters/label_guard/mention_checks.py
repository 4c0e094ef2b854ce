"""Checks of mentions: each yields the words of the mentions that have one kind of fault."""

from __future__ import annotations

from itertools import pairwise

from entaug.core.data import Mention
from entaug.core.words import is_word
from entaug.filters.label_guard.checked import CheckedSentence, Faults, is_unbalanced
from entaug.filters.label_guard.name_usage import has_capital, has_letter

__all__ = ["cut_mentions", "joined_mentions", "oddly_shaped_mentions", "ordinary_mentions", "unbalanced_mentions"]

_LONGEST_ACRONYM = 5


def unbalanced_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions with an unpaired bracket that no mention of the corpus has."""
    return (judged.words(m) for m in judged.new_mentions if is_unbalanced(judged.words(m)))


def ordinary_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions of function words, verbs or other ordinary words alone that the corpus does not have."""
    return (judged.words(m) for m in judged.new_mentions if _is_ordinary(judged, m))


def _is_ordinary(judged: CheckedSentence, mention: Mention) -> bool:
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


def oddly_shaped_mentions(judged: CheckedSentence) -> Faults:
    """Find mentions that the corpus does not have, and that look as mentions of their type do not."""
    return (judged.words(m) for m in judged.new_mentions if _is_odd(judged, m))


def _is_odd(judged: CheckedSentence, mention: Mention) -> bool:
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
