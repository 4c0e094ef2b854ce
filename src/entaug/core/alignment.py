"""Alignment of tokens with text: text from tokens, tokens from text, and white space and sub-words by token."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from entaug.core.spacing import CLITIC, PRINTED_FORMS, by_character, infer_spaces, is_unspaced_script, is_word_character
from entaug.core.words import is_word

_MAY_BE_KEPT = ",;:!?)]।॥،؛؟۔，。、；：！？）」』"  # noqa: RUF001  (marks that some corpora do not split off)
_MIN_CHARACTERS = 0.9  # of the tokens of scripts without spaces, where a corpus is divided into characters


def align_spaces(tokens: Sequence[str], text: str) -> tuple[str, ...] | None:
    """Find the white space after each token in a text."""
    spaces = []
    offset = 0
    for i, token in enumerate(tokens):
        if not text.startswith(token, offset):
            return None
        offset += len(token)
        following = text.find(tokens[i + 1], offset) if i + 1 < len(tokens) else len(text)
        gap = text[offset:following] if following >= 0 else "?"
        if gap and not gap.isspace():
            return None
        spaces.append(gap)
        offset = following
    return tuple(spaces)


def detokenize(tokens: Sequence[str], spaces: Sequence[str] | None = None) -> str:
    """Return tokens as running text for a language model, spaced as in print."""
    spaces = infer_spaces(tokens) if spaces is None else spaces
    return "".join(PRINTED_FORMS.get(token, token) + space for token, space in zip(tokens, spaces, strict=True)).strip()


def align_subwords(pieces: Sequence[tuple[int, int]], tokens: Sequence[str], spaces: Sequence[str] | None) -> list[int]:
    """Map the sub-words of the running text of a sentence to its tokens."""
    spaces = infer_spaces(tokens) if spaces is None else spaces
    lengths = (len(PRINTED_FORMS.get(token, token)) + len(space) for token, space in zip(tokens, spaces, strict=True))
    ends = list(accumulate(lengths))
    return [min(bisect_left(ends, end), len(ends) - 1) for _, end in pieces]


def detokenize_with_gaps(
    tokens: Sequence[str], gaps: Iterable[int], spaces: Sequence[str] | None = None
) -> list[str | None]:
    """Return running text with gaps for some tokens, the input of `entaug.backends.protocols.MaskedLM.fill`."""
    spaces = infer_spaces(tokens) if spaces is None else spaces
    gap_positions = set(gaps)
    parts: list[str | None] = []
    text = ""
    for i, (token, space) in enumerate(zip(tokens, spaces, strict=True)):
        if i in gap_positions:
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
    """Tokeniser of running text that follows the conventions of a corpus."""

    # Text is split at white space. A piece that is a token of the corpus is kept; from any other piece, punctuation at
    # its ends and clitics are split off. A character inside a word (hyphen, apostrophe, slash, full stop) splits the
    # word if it is more often a token of its own between words of the corpus than a part of a word. Text of scripts
    # without spaces (Chinese, Japanese) is split into characters if the corpus is. If the corpus is divided into words
    # there, text is not: see `divides_unspaced_text`.

    _INNER = "-/'’."  # noqa: RUF001

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self._known: set[str] = set()
        self._vocabulary: set[str] = set()
        # How often a character is inside a token, a token between two words, at the end or start of a token, a token.
        inside: Counter[str] = Counter()
        between: Counter[str] = Counter()
        ends: Counter[str] = Counter()
        starts: Counter[str] = Counter()
        single: Counter[str] = Counter()
        clitics = contractions = 0
        num_tokens = num_characters = num_words = 0  # characters and words of scripts without spaces
        for tokens in sentences:
            num_tokens += len(tokens)
            unspaced = [len(token) > 1 for token in tokens if is_unspaced_script(token)]
            num_words += sum(unspaced)
            num_characters += len(unspaced) - sum(unspaced)
            self._known.update(token for token in tokens if len(token) > 1)
            self._vocabulary.update(map(str.lower, tokens))
            for i, token in enumerate(tokens):
                if len(token) == 1:
                    single[token] += 1
                    if (
                        0 < i < len(tokens) - 1
                        and is_word_character(tokens[i - 1][-1])
                        and is_word_character(tokens[i + 1][0])
                    ):
                        between[token] += 1
                    continue
                inner = token[1:-1]
                if not inner.isalnum():
                    inside.update({mark for mark in self._INNER if mark in inner})
                if token[-1] in _MAY_BE_KEPT and is_word_character(token[0]):
                    ends[token[-1]] += 1
                if token[0] in "([" and is_word_character(token[-1]):
                    starts[token[0]] += 1
                if CLITIC.fullmatch(token):
                    clitics += 1
                elif len(token) > 2 and CLITIC.search(token) and token[0].isalpha():
                    contractions += 1
            if tokens and len(tokens[-1]) > 1 and tokens[-1][-1] == "." and tokens[-1][0].isalpha():
                ends["."] += 1
        self._splits_characters = num_characters > _MIN_CHARACTERS * (num_characters + num_words)
        self.divides_unspaced_text = not self._splits_characters and num_characters + num_words > num_tokens / 2
        marks = "".join(mark for mark in self._INNER if between[mark] > inside[mark] and mark != ".")
        # Not at a mark at an end, which is part of a number ("-5/6", "'90s-style"), nor at one beside another.
        of_marks = re.escape(marks)
        self._inner = re.compile(f"(?<=[^{of_marks}])([{of_marks}])(?=[^{of_marks}])") if marks else None
        self._keeps_at_end = {mark for mark, count in ends.items() if count > single[mark]}
        self._keeps_at_start = {mark for mark, count in starts.items() if count > single[mark]}
        # Contractions: "do n't", or "don't".
        self._splits_clitics = clitics >= contractions

    def is_known(self, word: str) -> bool:
        """Whether a word occurs in the corpus, in any casing."""
        return word.lower() in self._vocabulary

    def __call__(self, text: str) -> list[str]:
        """Tokenise a text."""
        pieces: Iterable[str] = text.split()
        if self._splits_characters:
            pieces = (part for piece in pieces for part in ([piece] if piece in self._known else by_character(piece)))
        return [token for piece in pieces for token in self._split(piece)]

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
                if piece == "..." or CLITIC.fullmatch(piece):
                    break
                front.append("..." if piece.startswith("...") else first)
                piece = piece[len(front[-1]) :]
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
        middle = [piece] if piece in self._known else self._split_inside(piece)
        return [*front, *middle, *reversed(back)]

    def _split_inside(self, piece: str) -> list[str]:
        if self._splits_clitics:
            clitic = CLITIC.search(piece)
            if clitic and clitic.end() == len(piece) and clitic.start() > 0:
                return [*self._split(piece[: clitic.start()]), piece[clitic.start() :]]
        return self._inner.split(piece) if self._inner else [piece]


def _initials(piece: str) -> bool:
    """Whether the final full stop is part of the word, as in ``U.S.`` or ``J.``."""
    parts = piece[:-1].split(".")
    return piece.endswith(".") and all(is_word(part) and sum(map(str.isalpha, part)) == 1 for part in parts)
