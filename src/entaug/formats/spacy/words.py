"""Conversion between sentences and spaCy's words.

In spaCy a word is followed by one space or by none, and any other white space is a separate word. In a `Sentence` white
space belongs to the token before it. The conversion preserves every character of the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from entaug.core.data import PLACEHOLDER, Mention, Sentence, split_fields
from entaug.errors import InputError
from entaug.formats.base import ReadReport, before_of
from entaug.formats.text import BEFORE
from entaug.formats.token_records import add_entity_fields, entity_fields, unique_mentions

__all__ = [
    "COLUMNS",
    "Tokens",
    "WordMention",
    "Words",
    "create_sentence",
    "has_stale_tree",
    "token_columns",
    "tokens_of",
    "words_of",
]

COLUMNS = ("tag", "pos", "morph", "lemma", "dep", "head", "sent_start")
"""Columns that spaCy has attributes for. ``head`` is the offset from a token to its head, in tokens."""
_TREE = ("dep", "head", "sent_start")
_UPOS = frozenset(
    "ADJ ADP ADV AUX CONJ CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X EOL SPACE".split()
)


class WordMention(NamedTuple):
    """A mention by words."""

    start: int
    end: int
    label: str
    fields: Mapping[str, Any]


# ------------------------------------------------------------------------------------------------- words from sentences


class Words(NamedTuple):
    """A sentence as words."""

    words: Sequence[str]
    flags: Sequence[bool] | None
    positions: Sequence[int]
    mentions: Sequence[WordMention]
    columns: Mapping[str, list[Any]]
    other_columns: Mapping[str, list[str]]

    @property
    def text(self) -> str:
        """The text, with single spaces if the white space is unknown."""
        flags = [True] * len(self.words) if self.flags is None else self.flags
        return "".join(word + " " * flag for word, flag in zip(self.words, flags, strict=True))

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The characters of each word in the text."""
        flags = [True] * len(self.words) if self.flags is None else self.flags
        sizes = (len(word) + flag for word, flag in zip(self.words, flags, strict=True))
        starts = accumulate(sizes, initial=0)
        return [(start, start + len(word)) for start, word in zip(starts, self.words, strict=False)]


def words_of(sentence: Sentence) -> Words:
    """Convert a sentence to words."""
    words, flags, positions = _split_spaces(sentence)
    mentions = [
        WordMention(positions[m.start], positions[m.end - 1] + 1, m.label, fields)
        for m, fields in zip(sentence.mentions, entity_fields(sentence), strict=True)
    ]
    native, other = _split_columns(sentence)
    columns: dict[str, list[Any]] = {}
    for name, values in native.items():
        if name == "head":
            offsets = [positions[i + int(head)] - positions[i] for i, head in enumerate(values)]
            columns[name] = _spread(offsets, positions, len(words), 0)
        else:
            columns[name] = _spread(values, positions, len(words), "")
    return Words(words, flags, positions, mentions, columns, other)


def _split_spaces(sentence: Sentence) -> tuple[Sequence[str], Sequence[bool] | None, Sequence[int]]:
    """The words of a sentence, the flags of spaces after them, and the positions of the tokens."""
    tokens, spaces = sentence.tokens, sentence.spaces
    if spaces is None:
        return tokens, None, range(len(tokens))
    before = before_of(sentence)
    if not before and {*spaces} <= {"", " "}:
        return tokens, [space == " " for space in spaces], range(len(tokens))
    words = [before] if before else []
    flags = [False] * len(words)
    positions = []
    for token, space in zip(tokens, spaces, strict=True):
        positions.append(len(words))
        words.append(token)
        flags.append(space[:1] == " ")
        if rest := space.removeprefix(" "):
            words.append(rest)
            flags.append(False)
    return words, flags, positions


def _spread(values: Sequence[Any], positions: Sequence[int], n: int, filler: Any) -> list[Any]:
    """Convert values of tokens to values of `n` words, with `filler` for white space."""
    spread = [filler] * n
    for position, value in zip(positions, values, strict=True):
        spread[position] = value
    return spread


def has_stale_tree(sentence: Sentence) -> bool:
    """Whether a sentence has columns of a tree that no longer matches it."""
    return sentence.provenance is not None and not sentence.columns.keys().isdisjoint(_TREE)


def _split_columns(sentence: Sentence) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the columns that spaCy preserves ("" for a missing value), and the others, without a stale tree."""
    native: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    for name, values in sentence.columns.items():
        if name in _TREE and sentence.provenance is not None:
            continue
        if name in COLUMNS and _is_native(name, values):
            native[name] = ["" if value == PLACEHOLDER else value for value in values]
        else:
            other[name] = list(values)
    if ("dep" in native) != ("head" in native):  # spaCy has both columns or neither
        name = "dep" if "dep" in native else "head"
        del native[name]
        other[name] = list(sentence.columns[name])
    return native, other


def _is_native(name: str, values: Sequence[str]) -> bool:
    """Whether spaCy preserves a column."""
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
    """Whether a value consists of features in spaCy's order."""
    pairs = [feature.split("=") for feature in value.split("|")]
    names = [pair[0] for pair in pairs]
    is_plain = all(len(pair) == 2 and all(part.isascii() and part.isalnum() for part in pair) for pair in pairs)
    return is_plain and all(a.lower() < b.lower() for a, b in pairwise(names))


def _is_head(value: str, position: int, n: int) -> bool:
    digits = value.removeprefix("-")
    is_integer = digits.isdecimal() and len(digits) < 10 and str(int(value)) == value
    return is_integer and 0 <= position + int(value) < n


# ------------------------------------------------------------------------------------------------- sentences from words


class Tokens(NamedTuple):
    """Tokens from words."""

    tokens: tuple[str, ...]
    spaces: tuple[str, ...] | None
    before: str
    counts: Sequence[int]
    positions: Sequence[int]


def tokens_of(words: Sequence[str], flags: Sequence[bool] | None, kept: Collection[int] = ()) -> Tokens:
    """Convert words to tokens."""
    everything = range(len(words))
    if flags is None or not any(map(str.isspace, words)):
        spaces = None if flags is None else tuple([" " if flag else "" for flag in flags])
        return Tokens(tuple(words), spaces, "", range(len(words) + 1), everything)
    positions = [i for i in everything if i in kept or not words[i].isspace()]
    spaces_after = [""] * (len(positions) + 1)
    are_tokens = set(positions)
    counts = [0, *accumulate(int(i in are_tokens) for i in everything)]
    for i, (word, flag) in enumerate(zip(words, flags, strict=True)):
        spaces_after[counts[i + 1]] += ("" if i in are_tokens else word) + (" " if flag else "")
    tokens = tuple(words[i] for i in positions)
    return Tokens(tokens, tuple(spaces_after[1:]), spaces_after[0], counts, positions)


def token_columns(columns: Mapping[str, Sequence[str]], tokens: Tokens) -> dict[str, tuple[str, ...]]:
    """Convert columns of words to columns of tokens."""
    converted = {}
    for name, values in columns.items():
        if name == "head":
            heads = []
            for i in tokens.positions:
                head = i + int(values[i])
                if not 0 <= head < len(values):
                    raise InputError(f"the head of token {i + 1} is outside", remedy="parse the text anew")
                heads.append(str(tokens.counts[head] - tokens.counts[i]))
            converted[name] = tuple(heads)
        elif name == "sent_start" and "1" not in values[1:]:
            continue
        elif any(values[i] for i in tokens.positions):
            converted[name] = tuple(values[i] or PLACEHOLDER for i in tokens.positions)
    return converted


def create_sentence(
    tokens: Tokens,
    mentions: Iterable[WordMention],
    columns: Mapping[str, Sequence[str]],
    meta: dict[str, Any],
    id_: str | None,
    reading: ReadReport,
) -> Sentence:
    """Create a sentence from words."""
    placed = []
    for start, end, label, fields in mentions:
        span = (tokens.counts[start], tokens.counts[end])
        if span[0] == span[1]:
            reading.notes["mention of white space alone left out"] += 1
        else:
            placed.append((Mention(label, (span,)), dict(fields)))
    unique = unique_mentions(placed, reading)
    if tokens.before:
        meta[BEFORE] = tokens.before
    add_entity_fields(meta, unique.values())
    return Sentence(tokens.tokens, unique, id_, columns=columns, spaces=tokens.spaces, **split_fields(meta))
