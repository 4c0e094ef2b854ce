"""Characters and tokens: the spaces between tokens, running text from tokens, and tokens from running text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from entaug.data import Edit, Sentence

__all__ = [
    "CorpusTokenizer",
    "edited_spaces",
    "gapped",
    "in_word",
    "is_unspaced",
    "reordered_spaces",
    "respaced",
    "running_text",
    "spaces_in",
    "spacing",
    "spacing_of_characters",
    "token_of_each",
]

# What brackets and quotes are called in treebanks, and what they look like in print.
_IN_PRINT = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
_CLOSING = frozenset((",", ".", ";", ":", "!", "?", ")", "]", "}", "%", "...", "…", "»", "”", "’", "''"))  # noqa: RUF001
_OPENING = frozenset(("(", "[", "{", "$", "£", "€", "«", "“", "‘", "``", "¿", "¡"))  # noqa: RUF001
# Han with its marks of repetition, and kana.
_UNSPACED = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_CLITIC = re.compile(r"(?i)(?:n['’]t|['’](?:s|re|ve|ll|d|m))")  # noqa: RUF001


def spaces_in(tokens: Sequence[str], text: str) -> tuple[str, ...] | None:
    """The white space that follows each token in a text.

    Args:
        tokens: the tokens, in order.
        text: the text they were taken from.

    Returns:
        One string a token, such that joining tokens and spaces gives exactly the text; None when the tokens are not
        the text's (a token is missing or changed, or there is anything but white space between them).

    Example:
        >>> spaces_in(["Hi", ",", "you"], "Hi,  you")
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


def spacing(tokens: Sequence[str]) -> tuple[str, ...]:
    """The white space after each token as a printer would set it, where the corpus does not say.

    Punctuation is attached to the word it belongs to, clitics to the word before; straight quotes open and close in
    turn. Nothing follows the last token.

    Example:
        >>> spacing(["Do", "n't", "(", "ever", ")", "!"])
        ('', ' ', '', '', '', '')
    """
    spaces = [" "] * len(tokens)
    quoted = {'"': False, "'": False}
    for i, token in enumerate(tokens):
        printed = _IN_PRINT.get(token, token)
        if printed in quoted:
            quoted[printed] = {"``": True, "''": False}.get(token, not quoted[printed])
            if quoted[printed]:
                spaces[i] = ""
            elif i:
                spaces[i - 1] = ""
        elif printed in _OPENING:
            spaces[i] = ""
        elif i and (printed in _CLOSING or _CLITIC.fullmatch(token)):
            spaces[i - 1] = ""
    if spaces:
        spaces[-1] = ""
    return tuple(spaces)


def is_unspaced(token: str) -> bool:
    """Whether a token begins with a character of a script that has no spaces between words: Chinese and Japanese."""
    return _UNSPACED.match(token) is not None


def spacing_of_characters(tokens: Sequence[str]) -> tuple[str, ...]:
    """The white space after each token where a token is a character of such a script: none but between foreign words.

    Example:
        >>> spacing_of_characters(["听", "Louis", "Armstrong", "的", "歌"])
        ('', ' ', '', '', '')
    """
    if max(map(len, tokens)) == 1:
        return ("",) * len(tokens)

    def words(left: str, right: str) -> bool:
        foreign = in_word(left[-1]) and in_word(right[0]) and not is_unspaced(left) and not is_unspaced(right)
        return foreign and len(left) + len(right) > 2

    return (*(" " if words(left, right) else "" for left, right in pairwise(tokens)), "")


def respaced(tokens: Sequence[str], gaps: Sequence[str], doubtful: Iterable[int]) -> tuple[str, ...]:
    """White space after each token, where some tokens have new neighbours.

    Args:
        tokens: the tokens as they stand now.
        gaps: the white space after each, right but for those in doubt.
        doubtful: positions of tokens whose gap stood between others: it stays where a printer would have some there, is
            left out where a printer would have none, and is a space where there was none and must be some.

    Example:
        >>> respaced(["Bell", "Labs", ",", "too", "."], ["", " ", "", "", ""], [0, 1, 2])
        (' ', '', ' ', '', '')
    """
    made = list(gaps)
    doubtful = [i for i in doubtful if 0 <= i < len(tokens) - 1]
    if doubtful:
        print_ = spacing(tokens)
        for i in doubtful:
            if not print_[i]:
                made[i] = ""
            elif not made[i] and not (is_unspaced(tokens[i][-1]) or is_unspaced(tokens[i + 1])):
                made[i] = " "
    return tuple(made)


def edited_spaces(sentence: Sentence, tokens: Sequence[str], edits: Sequence[Edit]) -> tuple[str, ...]:
    """The white space after each token of an edited sentence that knows its own; see `entaug.data.Edit`.

    Args:
        sentence: as it was.
        tokens: those that it has now.
        edits: in order.
    """
    old = sentence.spaces or ()
    spaces: list[str] = []
    doubtful: list[int] = []  # what stands beside a new word of another kind than the word that stood there
    done = 0
    for edit in edits:
        spaces += old[done : edit.start]
        if edit.tokens:
            # A replacement keeps what stood after the last replaced token; an insertion is set off by a space.
            between, first = edit.spaces, len(spaces)
            replaced = sentence.tokens[edit.start : edit.end]
            if between is None and len(edit.tokens) == len(replaced):
                between = old[edit.start : edit.end - 1]
                joints = zip(pairwise(edit.tokens), pairwise(replaced), strict=True)
                doubtful += [first + i for i, (new, was) in enumerate(joints) if _joint(*new) != _joint(*was)]
            elif between is None:
                between = [" "] * (len(edit.tokens) - 1)
                doubtful += range(first, first + len(between))
            if not replaced or _kind(edit.tokens[0][0]) != _kind(replaced[0][0]):
                doubtful.append(first - 1)
            spaces += [*between, old[edit.end - 1] if replaced else " "]
            if not replaced or _kind(edit.tokens[-1][-1]) != _kind(replaced[-1][-1]):
                doubtful.append(len(spaces) - 1)
        elif spaces and edit.end > edit.start and not spaces[-1]:
            spaces[-1] = old[edit.end - 1]  # a deletion leaves one of the two gaps that met
            doubtful.append(len(spaces) - 1)
        done = edit.end
    return respaced(tokens, (*spaces, *old[done:]), doubtful)


def reordered_spaces(sentence: Sentence, permutation: Sequence[int]) -> tuple[str, ...]:
    """The white space after each token of a sentence that knows its own, in another order.

    Args:
        sentence: as it was.
        permutation: for each place the position that its token had.
    """
    old = sentence.spaces or ()
    new = [i for i, (left, right) in enumerate(pairwise(permutation)) if right != left + 1]
    spaces = [old[left] if right == left + 1 else " " for left, right in pairwise(permutation)]
    return respaced([sentence.tokens[i] for i in permutation], (*spaces, old[-1]), new)


def _kind(character: str) -> str:
    """What matters of a character for the white space beside it: that it is of a word, or which mark it is."""
    return "" if in_word(character) else character


def _joint(left: str, right: str) -> tuple[str, str]:
    """What matters of two tokens for the white space between them."""
    return _kind(left[-1]), _kind(right[0])


def in_word(character: str) -> bool:
    """Whether a character belongs to words: letters, digits, and the marks that some scripts write vowels with."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def running_text(tokens: Sequence[str], spaces: Sequence[str] | None = None) -> str:
    """Tokens as text for a language model, spaced as in print.

    Args:
        tokens: the tokens.
        spaces: the white space after each, where it is known.

    Example:
        >>> running_text("He said , `` No . ''".split())
        'He said, "No."'
    """
    spaces = spacing(tokens) if spaces is None else spaces
    return "".join(_IN_PRINT.get(token, token) + space for token, space in zip(tokens, spaces, strict=True)).strip()


def token_of_each(pieces: Sequence[tuple[int, int]], tokens: Sequence[str], spaces: Sequence[str] | None) -> list[int]:
    """Which token each sub-word of the running text of a sentence belongs to.

    Args:
        pieces: where each sub-word begins and ends in the running text, in order.
        tokens: the tokens.
        spaces: the white space after each, where it is known.

    Returns:
        For each sub-word the position of the token that its last character stands in.

    Example:
        >>> token_of_each([(0, 3), (3, 6), (6, 7)], ["Nonsen", "!"], None)
        [0, 0, 1]
    """
    spaces = spacing(tokens) if spaces is None else spaces
    lengths = (len(_IN_PRINT.get(token, token)) + len(space) for token, space in zip(tokens, spaces, strict=True))
    ends = list(accumulate(lengths))
    return [min(bisect_left(ends, end), len(ends) - 1) for _, end in pieces]


def gapped(tokens: Sequence[str], gaps: Iterable[int], spaces: Sequence[str] | None = None) -> list[str | None]:
    """Running text with some tokens left out, as `entaug.backends.protocols.MaskedLM.fill` takes it.

    Args:
        tokens: the tokens.
        gaps: the positions of those left out.
        spaces: the white space after each token, where it is known.

    Example:
        >>> gapped(["It", "is", "late", "."], [2])
        ['It is ', None, '.']
    """
    spaces = spacing(tokens) if spaces is None else spaces
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
            text += _IN_PRINT.get(token, token) + space
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
                if token[-1] in ",;:!?)]" and in_word(token[0]):
                    ends[token[-1]] += 1
                if token[0] in "([" and in_word(token[-1]):
                    starts[token[0]] += 1
                if _CLITIC.fullmatch(token):
                    clitics += 1
                elif len(token) > 2 and _CLITIC.search(token) and token[0].isalpha():
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
                in_word(first)
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
                clitic = _CLITIC.fullmatch(piece)
                if clitic:
                    break
                front.append(piece[0])
                piece = piece[1:]
                continue
            last = piece[-1]
            if piece.endswith("...") and len(piece) > 3:
                back.append("...")
                piece = piece[:-3]
            elif not in_word(last) and last not in self._keeps_at_end and last not in "+*_" and not _initials(piece):
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
            clitic = _CLITIC.search(piece)
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
