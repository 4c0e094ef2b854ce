"""Mentions of any shape as a sequence of pointers and labels, and what may follow in such a sequence.

The sequences are those of Yan et al. (2021, "A Unified Generative Framework for Various NER Subtasks", ACL): each
mention is written as positions of sub-words of the sentence, then its label; mentions come one after another, in the
order of their first words, then of their last ones. A mention is represented in one of three ways: ``"word"``, by the
first sub-word of each of its words; ``"bpe"``, by all its sub-words; ``"span"``, by the first and the last sub-word of
each of its spans.

`MentionReader` reads a sequence and says at each step which pointers and labels can follow, so that every sequence that
keeps to it is a list of mentions. Each mention has exactly one sequence in each representation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from entaug.core.data import Mention
from entaug.core.mentions import Span
from entaug.errors import InputError

__all__ = ["MentionReader", "Options", "Representation", "delinearize", "linearize", "most_items", "target_order"]

Representation = Literal["word", "bpe", "span"]


def target_order(mentions: Iterable[Mention]) -> list[Mention]:
    """Sort mentions by their first words, then by their last ones, as the paper does."""
    return sorted(mentions, key=lambda mention: (mention.start, mention.end, mention.spans, mention.label))


def linearize(
    mentions: Iterable[Mention], word_pieces: Sequence[Sequence[int]], representation: Representation
) -> list[int | str]:
    """Write mentions as a sequence of pointers and labels."""
    items: list[int | str] = []
    for mention in target_order(mentions):
        if representation == "span":
            for start, end in mention.spans:
                items += [word_pieces[start][0], word_pieces[end - 1][-1]]
        else:
            for word in mention.positions():
                items += word_pieces[word] if representation == "bpe" else word_pieces[word][:1]
        items.append(mention.label)
    return items


def delinearize(
    items: Iterable[int | str], word_pieces: Sequence[Sequence[int]], representation: Representation
) -> list[Mention]:
    """Read a sequence of pointers and labels; the inverse of `linearize`."""
    reader = MentionReader(word_pieces, representation)
    for item in items:
        options = reader.options()
        if not (options.label if isinstance(item, str) else item in options.pieces):
            raise InputError(f"{item!r} cannot follow here in a sequence of mentions")
        reader.read(item)
    if not reader.options().end:
        raise InputError("the last mention of the sequence has no label")
    return list(dict.fromkeys(reader.mentions))


def most_items(num_pieces: int) -> int:
    """The number of items after which a sequence is broken off, so that it ends whatever a model predicts."""
    # The paper allows 10 + 0.5 n to 50 + 1.1 n by corpus, for n sub-words.
    return 16 + 2 * num_pieces


class Options(NamedTuple):
    """Valid next items of a sequence."""

    pieces: Sequence[int]
    label: bool
    end: bool


class MentionReader:
    """Reads a sequence of pointers and labels step by step."""

    # Within a mention words come in their order, and those of a span without gaps where the representation lists its
    # ends. A mention does not begin before the mention that precedes it.

    def __init__(self, word_pieces: Sequence[Sequence[int]], representation: Representation) -> None:
        self.mentions: list[Mention] = []
        self._representation = representation
        self._word_pieces = word_pieces
        self._first = [pieces[0] for pieces in word_pieces]
        self._last = [pieces[-1] for pieces in word_pieces]
        self._word_of = {piece: word for word, pieces in enumerate(word_pieces) for piece in pieces}
        self._spans: list[Span] = []  # of the mention that was begun
        self._span_start: int | None = None  # first word of a span whose end is missing
        self._rest: Sequence[int] = ()  # sub-words of the last word that are missing
        self._least = 0  # the first word that the next mention may begin with

    def options(self) -> Options:
        """Determine what may follow."""
        if self._rest:
            return Options(list(self._rest[:1]), label=False, end=False)
        if self._span_start is not None:
            return Options(self._last[self._span_start :], label=False, end=False)
        if not self._spans:
            return Options(self._first[self._least :], label=False, end=True)
        # A span that began right behind another one would be part of it.
        gap = 1 if self._representation == "span" else 0
        return Options(self._first[self._spans[-1][1] + gap :], label=True, end=False)

    def read(self, item: int | str) -> None:
        """Read the next item of the sequence."""
        if isinstance(item, str):
            mention = Mention(item, self._spans)
            self.mentions.append(mention)
            self._least, self._spans = mention.start, []
        elif self._rest:
            self._rest = self._rest[1:]
        elif self._representation != "span":
            word = self._word_of[item]
            self._spans.append((word, word + 1))
            if self._representation == "bpe":
                self._rest = self._word_pieces[word][1:]
        elif self._span_start is None:
            self._span_start = self._word_of[item]
        else:
            self._spans.append((self._span_start, self._word_of[item] + 1))
            self._span_start = None
