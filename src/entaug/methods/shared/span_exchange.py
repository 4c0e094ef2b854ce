"""Exchange of token ranges between sentences with their mentions, shared by CASSI and CR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from entaug.backends.protocols import Encoder
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention, Span
from entaug.core.spacing import infer_spaces, is_word_character, without_line_ends
from entaug.core.words import BRACKETS, is_unbalanced, is_word
from entaug.methods.shared.text_vectors import TextVectors

_SENTENCE_ENDS = frozenset(".!?…")
_DIGITS = 3  # of a similarity: kernels may round further ones differently for other batches

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
        known = infer_spaces(donor.tokens) if donor.spaces is None else without_line_ends(donor.spaces)
        spaces = known[start : end - 1]
    return Edit(*removed, tuple(new), mentions, spaces)


def keeps_mentions_whole(sentence: Sentence, span: Span) -> bool:
    """Return whether each mention is entirely inside or outside a range."""
    start, end = span
    for mention in sentence.mentions:
        is_inside = start <= mention.start and mention.end <= end
        if not is_inside and any(a < end and start < b for a, b in mention.spans):
            return False
    return True


def labels_within(sentence: Sentence, span: Span) -> str:
    """Return the labels of the mentions in a range, in their order."""
    return "+".join(mention.label for mention in sentence.mentions if span[0] <= mention.start < span[1])


def unnamed_words(sentence: Sentence, positions: Iterable[int]) -> str:
    """Return the words at some positions that are no parts of mentions, which have no label that says what they are."""
    outside = sentence.outside_mask()
    return "+".join(sentence.tokens[i].lower() for i in positions if outside[i])


def is_alike(frame: Sentence, removed: Span, donor: Sentence, inserted: Span) -> bool:
    """Return whether a range can be exchanged for another one without repeating or contradicting what stands around."""
    # Neither is much longer, neither is an abbreviation or has one (`X ( Y )`), no removed mention stands in the frame
    # again, and no inserted one already.
    shorter, longer = sorted((removed[1] - removed[0], inserted[1] - inserted[0]))
    if longer > 2 * shorter + 2:
        return False
    if _is_by_brackets(frame.tokens, removed) or _is_by_brackets(donor.tokens, inserted):
        return False
    (start, end), (first, last) = inserted, removed
    known = {_words_of(frame, mention) for mention in frame.mentions}
    removed_ones = [m for m in frame.mentions if first <= m.start and m.end <= last]
    others = {_words_of(frame, m) for m in frame.mentions if m not in removed_ones}
    if any(_words_of(frame, mention) in others for mention in removed_ones):
        return False
    return not any(_words_of(donor, m) in known for m in donor.mentions if start <= m.start and m.end <= end)


def _is_by_brackets(tokens: Sequence[str], span: Span) -> bool:
    """Whether a range stands in brackets, or directly before them."""
    start, end = span
    closing = set(BRACKETS.values())
    unclosed = sum(token in BRACKETS for token in tokens[:start]) - sum(token in closing for token in tokens[:start])
    return unclosed > 0 or (end < len(tokens) and tokens[end] in BRACKETS)


def _words_of(sentence: Sentence, mention: Mention) -> tuple[str, ...]:
    return tuple(sentence.tokens[i].lower() for span in mention.spans for i in range(*span))


class SpanSimilarity:
    """Cosine similarity of ranges of tokens, each encoded as a text of its own."""

    def __init__(self, encoder: Encoder) -> None:
        self._vectors = TextVectors(encoder)

    def prepare(self, spans: Iterable[tuple[Sentence, Span]]) -> None:
        """Encode ranges in one call, which takes less time than many."""
        self._vectors.of([detokenize(sentence.tokens[slice(*span)]) for sentence, span in spans])

    def of(self, one: tuple[Sentence, Span], others: Sequence[tuple[Sentence, Span]]) -> list[float]:
        """Return the similarity of a range with each of some others."""
        texts = [detokenize(sentence.tokens[slice(*span)]) for sentence, span in (one, *others)]
        first, *vectors = self._vectors.of(texts)
        return [round(float(vector @ first), _DIGITS) for vector in vectors]


def has_balanced_brackets(tokens: Sequence[str], source: Sequence[str] = ()) -> bool:
    """Return whether all brackets and quotation marks are balanced, or those of the source are not."""
    return not is_unbalanced(tokens) or (bool(source) and is_unbalanced(source))


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
        if first is None:
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
