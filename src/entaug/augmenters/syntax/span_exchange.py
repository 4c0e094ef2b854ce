"""Ranges of one sentence put in the place of ranges of another, with their mentions: what CASSI and CR share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from entaug.data import Edit, Mention, Sentence, Span
from entaug.spacing import infer_spaces, is_word_character

__all__ = ["Casing", "Words", "capital", "closes", "graft", "holds_whole"]

_ENDS = frozenset(".!?…")
_OPENS = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}  # for each bracket the one that opens it

Words = Callable[[Sentence, Sentence, Span, Span], Sequence[str]]
"""Given the sentence that keeps its frame, the one that gives, and the two ranges: the words that come in."""


def graft(keeps: Sentence, gives: Sentence, out: Span, into: Span, words: Words | None = None) -> Edit:
    """The edit that puts a range of one sentence in the place of a range of another.

    Mentions that lie wholly in the range come along; contiguous ones that it cuts come as what is left of them.

    Args:
        keeps: the sentence that keeps its frame.
        gives: the one that the words come from.
        out: the range that goes.
        into: the range that comes.
        words: what words come in, as many as stand there; by default those.

    Example:
        >>> gives = Sentence("He saw Rome".split(), [Mention("LOC", [(2, 3)])])
        >>> frame = Sentence("She left him".split())
        >>> made = frame.edit([graft(frame, gives, (1, 3), (1, 3))])
        >>> made.tokens, made.mentions
        (('She', 'saw', 'Rome'), (Mention(label='LOC', spans=((2, 3),)),))
    """
    inside = [m for m in gives.split_mentions(into).mentions if into[0] <= m.start and m.end <= into[1]]
    brought = [Mention(m.label, [(a - into[0], b - into[0]) for a, b in m.spans]) for m in inside]
    new = words(keeps, gives, out, into) if words else gives.tokens[into[0] : into[1]]
    spaces = None
    if keeps.spaces is not None:  # only then does anybody ask how the graft is spaced
        spaces = (infer_spaces(gives.tokens) if gives.spaces is None else gives.spaces)[into[0] : into[1] - 1]
    return Edit(*out, tuple(new), brought, spaces)


def holds_whole(sentence: Sentence, span: Span) -> bool:
    """Whether a range holds, or leaves alone, every mention.

    Example:
        >>> split = Sentence("a b c".split(), [Mention("X", [(0, 1), (2, 3)])])
        >>> holds_whole(split, (0, 3)), holds_whole(split, (1, 2)), holds_whole(split, (0, 2))
        (True, True, False)
    """
    start, end = span
    for mention in sentence.mentions:
        inside = start <= mention.start and mention.end <= end
        touched = any(a < end and start < b for a, b in mention.spans)
        if touched and not inside:
            return False
    return True


def closes(tokens: Sequence[str], source: Sequence[str] = ()) -> bool:
    """Whether every bracket of some tokens is closed again, unless it was not so in their source.

    Example:
        >>> closes("a ( b ) c".split()), closes("( b".split()), closes("( b".split(), "a ( b".split())
        (True, False, True)
    """
    open_: list[str] = []
    for token in tokens:
        if token in _OPENS.values():
            open_.append(token)
        elif token in _OPENS and (not open_ or open_.pop() != _OPENS[token]):
            open_.append(token)
            break
    return not open_ or (bool(source) and not closes(source))


class Casing:
    """Words that come to the beginning of a sentence, or leave it, change to the case usual there.

    Args:
        gold: the corpus; words that stand in lower case more often than not are known from it.
        is_name: whether the word at a place of a sentence is a name by its part of speech, where that is known.
    """

    def __init__(self, gold: Iterable[Sentence], is_name: Callable[[Sentence, int], bool] | None = None) -> None:
        within = Counter(token for s in gold for i, token in enumerate(s.tokens) if not _begins(s, i))
        self._common = {word for word, count in within.items() if word.islower() and count > within[capital(word)]}
        self._is_name = is_name

    def words(self, keeps: Sentence, gives: Sentence, out: Span, into: Span) -> Sequence[str]:
        """See `Words`."""
        words = list(gives.tokens[into[0] : into[1]])
        place = next((i for i, word in enumerate(words) if is_word_character(word[0])), None)
        named = {i for mention in gives.mentions for a, b in mention.spans for i in range(a, b)}
        if place is None or into[0] + place in named:
            return words
        first = words[place]
        begins, began = _begins(keeps, out[0]), _begins(gives, into[0] + place)
        if begins and not began and _capitalised(keeps, out) and first.isalpha() and first.islower():
            words[place] = capital(first)
        elif began and not begins and first == capital(first.lower()) and first.lower() in self._common:
            # In the corpus it stands in lower case: the capital was that of the beginning. Names and "I" keep theirs.
            is_name = self._is_name is not None and self._is_name(gives, into[0] + place)
            words[place] = first if is_name else first.lower()
        return words


def capital(word: str) -> str:
    """A word with a capital first letter; as it is where that would be two letters, as of the German sharp s."""
    first = word[:1].upper()
    return first + word[1:] if len(first) == 1 else word


def _begins(sentence: Sentence, place: int) -> bool:
    """Whether a place begins a sentence: no word stands before it, or what ends one."""
    for token in reversed(sentence.tokens[:place]):
        if any(map(is_word_character, token)):
            return False
        if _ENDS.issuperset(token):
            return True
    return True


def _capitalised(sentence: Sentence, span: Span) -> bool:
    """Whether the first word of a range has a capital."""
    words = (word for word in sentence.tokens[span[0] : span[1]] if is_word_character(word[0]))
    return next(words, "")[:1].isupper()
