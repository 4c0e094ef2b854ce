"""Alignment of tokens with text: text from tokens, tokens from text, and white space and sub-words by token."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from entaug.spacing import CLITIC, PRINTED_FORMS, infer_spaces, is_word_character

__all__ = ["CorpusTokenizer", "align_spaces", "align_subwords", "detokenize", "detokenize_with_gaps"]


def align_spaces(tokens: Sequence[str], text: str) -> tuple[str, ...] | None:
    """The white space that follows each token in a text.

    Args:
        tokens: the tokens, in order.
        text: the text they were taken from.

    Returns:
        One string a token, such that joining tokens and spaces gives exactly the text; None when the tokens are not
        the text's (a token is missing or changed, or there is anything but white space between them).

    Example:
        >>> align_spaces(["Hi", ",", "you"], "Hi,  you")
        ('', '  ', '')
    """
    spaces = []
    place = 0
    for i, token in enumerate(tokens):
        if not text.startswith(token, place):
            return None
        place += len(token)
        following = text.find(tokens[i + 1], place) if i + 1 < len(tokens) else len(text)
        gap = text[place:following] if following >= 0 else "?"
        if gap and not gap.isspace():
            return None
        spaces.append(gap)
        place = following
    return tuple(spaces)


def detokenize(tokens: Sequence[str], spaces: Sequence[str] | None = None) -> str:
    """Tokens as text for a language model, spaced as in print.

    Args:
        tokens: the tokens.
        spaces: the white space after each, where it is known.

    Example:
        >>> detokenize("He said , `` No . ''".split())
        'He said, "No."'
    """
    spaces = infer_spaces(tokens) if spaces is None else spaces
    return "".join(PRINTED_FORMS.get(token, token) + space for token, space in zip(tokens, spaces, strict=True)).strip()


def align_subwords(pieces: Sequence[tuple[int, int]], tokens: Sequence[str], spaces: Sequence[str] | None) -> list[int]:
    """Which token each sub-word of the running text of a sentence belongs to.

    Args:
        pieces: where each sub-word begins and ends in the running text, in order.
        tokens: the tokens.
        spaces: the white space after each, where it is known.

    Returns:
        For each sub-word the position of the token that its last character stands in.

    Example:
        >>> align_subwords([(0, 3), (3, 6), (6, 7)], ["Nonsen", "!"], None)
        [0, 0, 1]
    """
    spaces = infer_spaces(tokens) if spaces is None else spaces
    lengths = (len(PRINTED_FORMS.get(token, token)) + len(space) for token, space in zip(tokens, spaces, strict=True))
    ends = list(accumulate(lengths))
    return [min(bisect_left(ends, end), len(ends) - 1) for _, end in pieces]


def detokenize_with_gaps(
    tokens: Sequence[str], gaps: Iterable[int], spaces: Sequence[str] | None = None
) -> list[str | None]:
    """Running text with some tokens left out, as `entaug.backends.protocols.MaskedLM.fill` takes it.

    Args:
        tokens: the tokens.
        gaps: the positions of those left out.
        spaces: the white space after each token, where it is known.

    Example:
        >>> detokenize_with_gaps(["It", "is", "late", "."], [2])
        ['It is ', None, '.']
    """
    spaces = infer_spaces(tokens) if spaces is None else spaces
    left_out = set(gaps)
    parts: list[str | None] = []
    text = ""
    for i, (token, space) in enumerate(zip(tokens, spaces, strict=True)):
        if i in left_out:
            if text:
                parts.append(text)
            parts.append(None)
            text = space
        else:
            text += PRINTED_FORMS.get(token, token) + space
    if text:
        parts.append(text)
    return parts


class CorpusTokenizer:
    """Tokenises running text as a corpus is tokenised, by the corpus's own habits.

    Text is cut at white space; a piece that the corpus knows as a token stays whole; of any other, punctuation at its
    ends and clitics are split off. A mark within a word (a hyphen, an apostrophe, a slash, a full stop) splits it where
    the corpus more often has the mark as a token of its own between words than within a word.

    Args:
        sentences: tokens of each sentence of the corpus.

    Example:
        >>> ours = CorpusTokenizer([["It", "is", "n't", "a", "well-known", "song", "."]])
        >>> ours("This isn't a well-made song, he said.")
        ['This', 'is', "n't", 'a', 'well-made', 'song', ',', 'he', 'said', '.']
        >>> theirs = CorpusTokenizer([["It", "isn't", "a", "well", "-", "known", "song."]])
        >>> theirs("This isn't a well-made song.")
        ['This', "isn't", 'a', 'well', '-', 'made', 'song.']
    """

    _INNER = "-/'’."  # noqa: RUF001

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self._known: set[str] = set()
        self._vocabulary: set[str] = set()
        within: Counter[str] = Counter()
        alone: Counter[str] = Counter()
        ends: Counter[str] = Counter()
        starts: Counter[str] = Counter()
        standing: Counter[str] = Counter()
        clitics = contractions = 0
        for tokens in sentences:
            self._known.update(token for token in tokens if len(token) > 1)
            self._vocabulary.update(map(str.lower, tokens))
            for i, token in enumerate(tokens):
                if len(token) == 1:
                    standing[token] += 1
                    if 0 < i < len(tokens) - 1 and tokens[i - 1][-1].isalnum() and tokens[i + 1][0].isalnum():
                        alone[token] += 1
                    continue
                inner = token[1:-1]
                if not inner.isalnum():
                    within.update({mark for mark in self._INNER if mark in inner})
                if token[-1] in ",;:!?)]" and is_word_character(token[0]):
                    ends[token[-1]] += 1
                if token[0] in "([" and is_word_character(token[-1]):
                    starts[token[0]] += 1
                if CLITIC.fullmatch(token):
                    clitics += 1
                elif len(token) > 2 and CLITIC.search(token) and token[0].isalpha():
                    contractions += 1
            if tokens and len(tokens[-1]) > 1 and tokens[-1][-1] == "." and tokens[-1][0].isalpha():
                ends["."] += 1
        self._splits_inside = {mark for mark in self._INNER if alone[mark] > within[mark] and mark != "."}
        self._keeps_at_end = {mark for mark, count in ends.items() if count > standing[mark]}
        self._keeps_at_start = {mark for mark, count in starts.items() if count > standing[mark]}
        # The joints of contractions as the corpus has them: "do n't", or "don't".
        self._splits_clitics = clitics >= contractions and clitics > 0
        if not clitics and not contractions:
            self._splits_clitics = True

    def knows(self, word: str) -> bool:
        """Whether the corpus has a word, in any casing."""
        return word.lower() in self._vocabulary

    def __call__(self, text: str) -> list[str]:
        """The tokens of a text."""
        return [token for piece in text.split() for token in self._split(piece)]

    def _split(self, piece: str) -> list[str]:
        front: list[str] = []
        back: list[str] = []
        while len(piece) > 1 and piece not in self._known:
            first = piece[0]
            if not (
                is_word_character(first)
                or first in "@#&_$"
                or first in self._keeps_at_start
                or (first in "-+.'’" and piece[1].isdigit())  # noqa: RUF001
            ):
                if piece.startswith("...") and piece != "...":
                    front.append("...")
                    piece = piece[3:]
                    continue
                if piece == "...":
                    break
                clitic = CLITIC.fullmatch(piece)
                if clitic:
                    break
                front.append(piece[0])
                piece = piece[1:]
                continue
            last = piece[-1]
            if piece.endswith("...") and len(piece) > 3:
                back.append("...")
                piece = piece[:-3]
            elif (
                not is_word_character(last)
                and last not in self._keeps_at_end
                and last not in "+*_"
                and not _initials(piece)
            ):
                back.append(last)
                piece = piece[:-1]
            else:
                break
        middle = [piece] if piece else []
        if piece and piece not in self._known and len(piece) > 1:
            middle = self._split_inside(piece)
        return [*front, *middle, *reversed(back)]

    def _split_inside(self, piece: str) -> list[str]:
        if self._splits_clitics:
            clitic = CLITIC.search(piece)
            if clitic and clitic.end() == len(piece) and clitic.start() > 0:
                return [*self._split(piece[: clitic.start()]), piece[clitic.start() :]]
        for mark in self._splits_inside:
            if mark in piece[1:-1]:
                parts = re.split(f"({re.escape(mark)})", piece)
                if all(parts):
                    return parts
        return [piece]


def _initials(piece: str) -> bool:
    """Whether a full stop at the end belongs to the word: ``U.S.``, ``J.``."""
    return bool(re.fullmatch(r"(?:[^\W\d_]\.)+", piece))
