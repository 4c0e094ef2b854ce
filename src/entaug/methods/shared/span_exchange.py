"""Exchange of token ranges between sentences with their mentions, shared by CASSI and CR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Span
from entaug.core.spacing import infer_spaces, is_word_character
from entaug.core.words import is_word
from entaug.metrics.likelihood import CandidateSet, count_words

_SENTENCE_ENDS = frozenset(".!?…")
_OPENING = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}

DonorTokens = Callable[[Sentence, Sentence, Span, Span], Sequence[str]]
"""Function of the frame, the donor, the removed and the inserted range; returns the tokens to insert."""


def exchange_edit(
    frame: Sentence, donor: Sentence, removed: Span, inserted: Span, tokens: DonorTokens | None = None
) -> Edit:
    """Return the edit that replaces a range of one sentence by a range of another."""
    # Mentions within the inserted range are included; of contiguous mentions that it cuts the part in the range.
    start, end = inserted
    mentions = [m.shift(-start) for m in donor.split_mentions(inserted).mentions if start <= m.start and m.end <= end]
    new = tokens(frame, donor, removed, inserted) if tokens else donor.tokens[start:end]
    spaces = None
    if frame.spaces is not None:  # otherwise the spacing of the new sentence is unknown
        spaces = (infer_spaces(donor.tokens) if donor.spaces is None else donor.spaces)[start : end - 1]
    return Edit(*removed, tuple(new), mentions, spaces)


def keeps_mentions_whole(sentence: Sentence, span: Span) -> bool:
    """Return whether each mention is entirely inside or outside a range."""
    start, end = span
    for mention in sentence.mentions:
        is_inside = start <= mention.start and mention.end <= end
        if not is_inside and any(a < end and start < b for a, b in mention.spans):
            return False
    return True


def has_balanced_brackets(tokens: Sequence[str], source: Sequence[str] = ()) -> bool:
    """Return whether all brackets are balanced."""
    unclosed: list[str] = []
    for token in tokens:
        if token in _OPENING.values():
            unclosed.append(token)
        elif token in _OPENING and (not unclosed or unclosed.pop() != _OPENING[token]):
            unclosed.append(token)
            break
    return not unclosed or (bool(source) and not has_balanced_brackets(source))


class CaseAdjuster:
    """Adjusts the case of words that move to or from the beginning of a sentence."""

    def __init__(self, gold: Iterable[Sentence], is_name: Callable[[Sentence, int], bool] | None = None) -> None:
        counts = Counter(token for s in gold for i, token in enumerate(s.tokens) if not _begins_sentence(s, i))
        self._common = {word for word, count in counts.items() if word.islower() and count > counts[capitalize(word)]}
        self._is_name = is_name

    def tokens(self, frame: Sentence, donor: Sentence, removed: Span, inserted: Span) -> Sequence[str]:
        """Return the inserted tokens with the case for their new position."""
        tokens = list(donor.tokens[inserted[0] : inserted[1]])
        first = next((i for i, token in enumerate(tokens) if is_word_character(token[0])), None)
        if first is None or not donor.outside_mask()[inserted[0] + first]:
            return tokens
        word, position = tokens[first], inserted[0] + first
        begins, began = _begins_sentence(frame, removed[0]), _begins_sentence(donor, position)
        if begins and not began and _is_capitalized(frame, removed) and is_word(word) and word.islower():
            tokens[first] = capitalize(word)
        elif began and not begins and word == capitalize(word.lower()) and word.lower() in self._common:
            # The corpus has the word in lower case, so it was capitalised as the first word. Names and "I" stay
            # capitalised.
            is_name = self._is_name is not None and self._is_name(donor, position)
            tokens[first] = word if is_name else word.lower()
        return tokens


def capitalize(word: str) -> str:
    """Capitalise the first letter of a word."""
    first = word[:1].upper()
    return first + word[1:] if len(first) == 1 else word


def _begins_sentence(sentence: Sentence, position: int) -> bool:
    """Whether a position is the first word of the text or of a sentence."""
    for token in reversed(sentence.tokens[:position]):
        if any(map(is_word_character, token)):
            return False
        if _SENTENCE_ENDS.issuperset(token):
            return True
    return True


def _is_capitalized(sentence: Sentence, span: Span) -> bool:
    """Whether the first word of a range is capitalised."""
    words = (word for word in sentence.tokens[span[0] : span[1]] if is_word_character(word[0]))
    return next(words, "")[:1].isupper()


def as_candidate_set(sentences: Sequence[Sentence], preferences: Sequence[float] | None = None) -> CandidateSet:
    """Return new sentences as candidates for the selection by a language model."""
    texts = [detokenize(s.tokens, s.spaces) for s in sentences]
    return CandidateSet(texts, [count_words(s.tokens) for s in sentences], preferences)
