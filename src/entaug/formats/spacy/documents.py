"""What spaCy makes of a sentence: words with a flag for the space after each, and annotation of tokens.

spaCy knows one space or none after a word. Any other white space is a word of its own there; here it belongs to the
token before it. So a text that went through spaCy comes back to the character.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from entaug.data import PLACEHOLDER, Sentence
from entaug.errors import InputError
from entaug.formats.base import before_of

__all__ = ["COLUMNS", "Annotation", "Tokens", "Words", "annotation_of", "columns_of", "spread", "tokens_of", "words_of"]

COLUMNS = ("tag", "pos", "morph", "lemma", "dep", "head", "sent_start")
"""Columns that spaCy has a place for. ``head`` is how many tokens further right (left: below 0) a token's head is."""
_TREE = ("dep", "head", "sent_start")
_UPOS = frozenset(
    "ADJ ADP ADV AUX CONJ CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X EOL SPACE".split()
)


class Words(NamedTuple):
    """A sentence as spaCy's words.

    Args:
        words: the tokens, and between them the white space that is more than one space.
        flags: whether a space follows each; None where nothing is known.
        places: where each token is among the words.
    """

    words: Sequence[str]
    flags: Sequence[bool] | None
    places: Sequence[int]


def words_of(sentence: Sentence) -> Words:
    r"""The words of a sentence.

    Example:
        >>> words_of(Sentence(["a", "b"], spaces=["  ", "\n"]))
        Words(words=['a', ' ', 'b', '\n'], flags=[True, False, False, False], places=[0, 2])
    """
    tokens, spaces = sentence.tokens, sentence.spaces
    if spaces is None:
        return Words(tokens, None, range(len(tokens)))
    before = before_of(sentence)
    if not before and {*spaces} <= {"", " "}:
        return Words(tokens, [space == " " for space in spaces], range(len(tokens)))
    words = [before] if before else []
    flags = [False] * len(words)
    places = []
    for token, space in zip(tokens, spaces, strict=True):
        places.append(len(words))
        words.append(token)
        flags.append(space[:1] == " ")
        rest = space[1:] if space[:1] == " " else space
        if rest:
            words.append(rest)
            flags.append(False)
    return Words(words, flags, places)


class Tokens(NamedTuple):
    """Tokens from spaCy's words.

    Args:
        tokens: the words that are not white space alone.
        spaces: the white space after each; None where nothing is known.
        before: the white space before the first.
        counts: for each word, and for the end, how many tokens stand before it.
        real: the places of the tokens among the words.
    """

    tokens: tuple[str, ...]
    spaces: tuple[str, ...] | None
    before: str
    counts: Sequence[int]
    real: Sequence[int]


def tokens_of(words: Sequence[str], flags: Sequence[bool] | None, kept: Collection[int] = ()) -> Tokens:
    r"""The tokens of words.

    Args:
        words: the words.
        flags: whether a space follows each, where that is known; only then is white space no token.
        kept: the places of white space that is a token nevertheless.

    Example:
        >>> tokens_of(["a", " ", "b", "\n"], [True, False, False, False])[:3]
        (('a', 'b'), ('  ', '\n'), '')
    """
    everything = range(len(words))
    if flags is None:
        return Tokens(tuple(words), None, "", range(len(words) + 1), everything)
    if not any(map(str.isspace, words)):
        spaces = tuple([" " if flag else "" for flag in flags])
        return Tokens(tuple(words), spaces, "", range(len(words) + 1), everything)
    real = [i for i in everything if i in kept or not words[i].isspace()]
    whites = [""] * (len(real) + 1)
    are_real = set(real)
    counts = [0, *accumulate(int(i in are_real) for i in everything)]
    for i, (word, flag) in enumerate(zip(words, flags, strict=True)):
        whites[counts[i + 1]] += ("" if i in are_real else word) + (" " if flag else "")
    return Tokens(tuple(words[i] for i in real), tuple(whites[1:]), whites[0], counts, real)


def spread(words: Words, values: Sequence[Any], filler: Any) -> list[Any]:
    """Values of tokens as values of words: those of the white space are `filler`."""
    if len(words.words) == len(values):
        return list(values)
    found = [filler] * len(words.words)
    for place, value in zip(words.places, values, strict=True):
        found[place] = value
    return found


class Annotation(NamedTuple):
    """The columns of a sentence, told apart.

    Args:
        native: those that spaCy has a place for and would give back; "" stands for what is missing.
        rest: the others.
        stale: those that say nothing any more, as the sentence was changed.
    """

    native: dict[str, list[str]]
    rest: dict[str, list[str]]
    stale: list[str]


def annotation_of(sentence: Sentence) -> Annotation:
    """The columns of a sentence as spaCy may hold them.

    A tree does not survive that words come and go: of augmented sentences it is left out.
    """
    native: dict[str, list[str]] = {}
    rest: dict[str, list[str]] = {}
    stale = []
    for name, values in sentence.columns.items():
        if name in _TREE and sentence.provenance is not None:
            stale.append(name)
        elif name in COLUMNS and _fits(name, values):
            native[name] = ["" if value == PLACEHOLDER else value for value in values]
        else:
            rest[name] = list(values)
    if ("dep" in native) != ("head" in native):  # spaCy has both or none
        name = "dep" if "dep" in native else "head"
        del native[name]
        rest[name] = list(sentence.columns[name])
    return Annotation(native, rest, stale)


def _fits(name: str, values: Sequence[str]) -> bool:
    """Whether spaCy gives a column back as it is."""
    known = {value for value in values if value != PLACEHOLDER}
    if not known or "" in known:
        return False
    if name == "pos":
        return known <= _UPOS
    if name == "morph":
        return all(map(_is_morph, known))
    if name == "head":
        return PLACEHOLDER not in values and all(_is_head(value, i, len(values)) for i, value in enumerate(values))
    if name == "sent_start":
        return "1" in values[1:] and known <= {"1", "-1"}
    return True


def _is_morph(value: str) -> bool:
    """Whether these are features in the order that spaCy sorts them in."""
    pairs = [feature.split("=") for feature in value.split("|")]
    names = [pair[0] for pair in pairs]
    plain = all(len(pair) == 2 and all(part.isascii() and part.isalnum() for part in pair) for pair in pairs)
    return plain and all(a.lower() < b.lower() for a, b in pairwise(names))


def _is_head(value: str, place: int, n: int) -> bool:
    digits = value.removeprefix("-")
    return digits.isdecimal() and len(digits) < 10 and str(int(value)) == value and 0 <= place + int(value) < n


def columns_of(found: Mapping[str, Sequence[str]], tokens: Tokens) -> dict[str, tuple[str, ...]]:
    """Annotation of words as columns of tokens; what is empty everywhere is left out.

    Args:
        found: values by column, one a word; "" where one is missing; ``head`` counts in words.
        tokens: the tokens of these words.

    Raises:
        InputError: a head outside.
    """
    columns = {}
    for name, values in found.items():
        if name == "head":
            heads = []
            for i in tokens.real:
                head = i + int(values[i])
                if not 0 <= head < len(values):
                    raise InputError(f"the head of token {i + 1} is outside", remedy="parse the text anew")
                heads.append(str(tokens.counts[head] - tokens.counts[i]))
            columns[name] = tuple(heads)
        elif name == "sent_start" and "1" not in values[1:]:
            continue
        elif any(values[i] for i in tokens.real):
            columns[name] = tuple(values[i] or PLACEHOLDER for i in tokens.real)
    return columns
