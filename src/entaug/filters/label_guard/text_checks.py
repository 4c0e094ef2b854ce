"""Checks of the words outside mentions: each yields the words of one kind of fault."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, pairwise

from entaug.core.words import is_word
from entaug.filters.label_guard.checked import CheckedSentence, Faults, is_bracket, is_unbalanced
from entaug.filters.label_guard.name_usage import NOT_WORDS, has_capital

__all__ = ["label_names", "markup", "repetitions", "unlabelled_names", "unpaired_brackets"]

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
    brackets = tuple(token for token in judged.tokens if is_bracket(token))
    if is_unbalanced(brackets):
        yield brackets
