"""Shared by the formats of spaCy: their options, and the conversion between sentences and words.

In spaCy a word is followed by one space or by none, and any other white space is a separate word. In a `Sentence` white
space belongs to the token before it. The conversion preserves every character of the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from entaug.core.data import Sentence, split_fields
from entaug.core.edits import PLACEHOLDER
from entaug.core.mentions import Mention
from entaug.core.spacing import infer_spaces
from entaug.core.tags import KEEP_SOME, Overlap
from entaug.errors import InputError
from entaug.formats.base import BEFORE, Dialect, FormatCapabilities, ReadReport, before_of
from entaug.formats.buffered import BufferedFormat
from entaug.formats.token_records import add_entity_fields, entity_fields, unique_mentions

COLUMNS = ("tag", "pos", "morph", "lemma", "dep", "head", "sent_start")
"""Columns that spaCy has attributes for. ``head`` is the offset from a token to its head, in tokens."""
_TREE = frozenset(("dep", "head", "sent_start"))
_UPOS = frozenset(
    "ADJ ADP ADV AUX CONJ CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X EOL SPACE".split()
)


@dataclass(frozen=True)
class SpacyDialect(Dialect):
    """The location of mentions in a file of spaCy.

    Args:
        mentions: where mentions are: ``"ents"``, the entities; ``"spans"``, a group of spans; or ``"auto"``: a group of
            spans where any sentence has nested mentions, else the entities.
        spans_key: the name of the group of spans.
        overlap: the treatment of nested and discontinuous mentions in writing, see `entaug.core.tags.flatten`.
    """

    mentions: Literal["auto", "ents", "spans"] = "auto"
    spans_key: str = "sc"
    overlap: Overlap = "error"

    @property
    def group(self) -> str | None:
        """The group of spans that holds the mentions; None for the entities."""
        return self.spans_key if self.mentions == "spans" else None

    def describe_mentions(self, entities: str, group: str) -> str:
        """Say where the mentions are, given the names of both places."""
        return {"ents": entities, "spans": group, "auto": f"{entities}, {group} where there are nested ones"}[
            self.mentions
        ]


class SpacyFormat(BufferedFormat):
    """Base class of the formats of spaCy; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=True, spaces=True)

    def detect_mentions(
        self, path: Path, groups: Collection[str], has_entities: bool, dialect: SpacyDialect, options: Collection[str]
    ) -> dict[str, Any]:
        """Detect the location of mentions in a file: its groups of spans that hold any, and whether it has entities."""
        key = dialect.spans_key
        only_spans = dialect.mentions == "spans" or (dialect.mentions == "auto" and not has_entities)
        if groups and key not in groups and (only_spans or "spans_key" in options):
            if "spans_key" in options or len(groups) > 1:
                has = f"no group of spans {key!r}, but" if "spans_key" in options else "several groups of spans:"
                names = ", ".join(map(repr, sorted(groups)))
                remedy = "choose one: `mentions='spans'` and `spans_key=NAME`"
                raise InputError(f"has {has} {names}", path=str(path), remedy=remedy)
            [key] = groups
        return {"spans_key": key, "mentions": "spans" if key in groups else "ents" if has_entities else "auto"}

    def check(self, sentence: Sentence, dialect: Any) -> None:
        kept = self.as_stored(sentence, dialect)
        self.check_contiguous(kept, f"write JSON lines, or leave them out: {KEEP_SOME}")
        if dialect.mentions == "ents":
            self.check_flat(kept, f"pass {KEEP_SOME}, or write spans")

    def resolve(self, sentences: Iterable[Sentence], dialect: Any) -> tuple[Iterable[Sentence], Any]:
        """The sentences with the mentions that are written, and the dialect that says where."""
        kept: Iterable[Sentence] = (BufferedFormat.as_stored(self, sentence, dialect) for sentence in sentences)
        if dialect.mentions == "auto":
            kept = list(kept)
            dialect = replace(dialect, mentions="ents" if all(sentence.is_flat for sentence in kept) else "spans")
        return kept, dialect


class WordMention(NamedTuple):
    """A mention by words."""

    start: int
    end: int
    label: str
    fields: Mapping[str, Any]


# ------------------------------------------------------------------------------------------------- words from sentences


class Words(NamedTuple):
    """A sentence as words; flags say which are followed by a space, None where it is unknown."""

    words: Sequence[str]
    flags: Sequence[bool] | None
    positions: Sequence[int]  # of the tokens
    mentions: Sequence[WordMention]
    columns: Mapping[str, list[Any]]  # that spaCy preserves
    other_columns: Mapping[str, list[str]]

    @property
    def text(self) -> str:
        """The text, with single spaces if the white space is unknown."""
        return "".join(word + " " * flag for word, flag in self._flagged())

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The characters of each word in the text."""
        starts = accumulate((len(word) + flag for word, flag in self._flagged()), initial=0)
        return [(start, start + len(word)) for start, word in zip(starts, self.words, strict=False)]

    def _flagged(self) -> Iterable[tuple[str, bool]]:
        return zip(self.words, [True] * len(self.words) if self.flags is None else self.flags, strict=True)


def printed_words(sentence: Sentence) -> Words:
    """Convert a sentence to words; white space that is unknown is inferred as in printed text."""
    return words_of(sentence if sentence.spaces is not None else sentence.with_(spaces=infer_spaces(sentence.tokens)))


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
        of_words: list[Any] = [0 if name == "head" else ""] * len(words)  # also of white space
        for i, (position, value) in enumerate(zip(positions, values, strict=True)):
            of_words[position] = positions[i + int(value)] - position if name == "head" else value
        columns[name] = of_words
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


def has_stale_tree(sentence: Sentence) -> bool:
    """Whether a sentence has columns of a tree that no longer matches it."""
    return sentence.provenance is not None and not sentence.columns.keys().isdisjoint(_TREE)


def _split_columns(sentence: Sentence) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The columns that spaCy preserves ("" for a missing value), and the others, without a stale tree."""
    fresh = {n: list(v) for n, v in sentence.columns.items() if n not in _TREE or sentence.provenance is None}
    native = {name for name, values in fresh.items() if name in COLUMNS and _is_native(name, values)}
    if not {"dep", "head"} <= native:  # spaCy has both columns or neither
        native -= {"dep", "head"}
    kept = {name: ["" if value == PLACEHOLDER else value for value in fresh[name]] for name in fresh if name in native}
    return kept, {name: values for name, values in fresh.items() if name not in native}


def _is_native(name: str, values: Sequence[str]) -> bool:
    """Whether spaCy preserves a column."""
    known = {value for value in values if value != PLACEHOLDER}
    if not known or "" in known:
        return False
    match name:
        case "pos":
            return known <= _UPOS
        case "morph":
            return all(map(_is_morph, known))
        case "head":
            return PLACEHOLDER not in values and all(_is_head(value, i, len(values)) for i, value in enumerate(values))
        case "sent_start":
            return "1" in values[1:] and known <= {"1", "-1"}
    return True


def _is_morph(value: str) -> bool:
    """Whether a value consists of features in spaCy's order."""
    pairs = [feature.split("=") for feature in value.split("|")]
    is_plain = all(len(pair) == 2 and all(part.isascii() and part.isalnum() for part in pair) for pair in pairs)
    return is_plain and all(a[0].lower() < b[0].lower() for a, b in pairwise(pairs))


def _is_head(value: str, position: int, n: int) -> bool:
    digits = value.removeprefix("-")
    is_integer = digits.isdecimal() and len(digits) < 10 and str(int(value)) == value
    return is_integer and 0 <= position + int(value) < n


# ------------------------------------------------------------------------------------------------- sentences from words


class Tokens(NamedTuple):
    """Tokens from words; `counts` is the number of tokens before each word and at the end."""

    tokens: tuple[str, ...]
    spaces: tuple[str, ...] | None
    before: str
    counts: Sequence[int]
    positions: Sequence[int]  # of the tokens among the words


def tokens_of(words: Sequence[str], flags: Sequence[bool] | None, kept: Collection[int] = ()) -> Tokens:
    """Convert words to tokens; `kept` are the positions of white space that is a token."""
    if flags is None or not any(map(str.isspace, words)):
        spaces = None if flags is None else tuple([" " if flag else "" for flag in flags])
        return Tokens(tuple(words), spaces, "", range(len(words) + 1), range(len(words)))
    positions = [i for i, word in enumerate(words) if i in kept or not word.isspace()]
    spaces_after = [""] * (len(positions) + 1)
    are_tokens = set(positions)
    counts = [0, *accumulate(int(i in are_tokens) for i in range(len(words)))]
    for i, (word, flag) in enumerate(zip(words, flags, strict=True)):
        spaces_after[counts[i + 1]] += ("" if i in are_tokens else word) + (" " if flag else "")
    tokens = tuple(words[i] for i in positions)
    return Tokens(tokens, tuple(spaces_after[1:]), spaces_after[0], counts, positions)


def token_columns(columns: Mapping[str, Sequence[str]], tokens: Tokens) -> dict[str, tuple[str, ...]]:
    """Convert columns of words to columns of tokens."""
    converted = {}
    for name, values in columns.items():
        if name == "head":
            heads = [i + int(values[i]) for i in tokens.positions]
            if outside := [i for i, head in zip(tokens.positions, heads, strict=True) if not 0 <= head < len(values)]:
                raise InputError(f"the head of token {outside[0] + 1} is outside", remedy="parse the text anew")
            pairs = zip(tokens.positions, heads, strict=True)
            converted[name] = tuple(str(tokens.counts[head] - tokens.counts[i]) for i, head in pairs)
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
