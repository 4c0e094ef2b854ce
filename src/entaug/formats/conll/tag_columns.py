"""Tags of more complex layouts: nested mentions in several columns, and tags as attributes among others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from entaug.core.data import PLACEHOLDER, Mention, Sentence
from entaug.core.mentions import sorted_mentions
from entaug.core.tags import InvalidTag, decode_canonical, encode_canonical, flatten
from entaug.errors import LossError
from entaug.formats.base import ENTITY_FIELDS
from entaug.formats.conll.dialect import ConllDialect

__all__ = [
    "LEVEL",
    "are_levels_written",
    "decode_levels",
    "encode_levels",
    "extract_attribute",
    "flatten_to_levels",
    "insert_attribute",
]

LEVEL = "level"
"""Field of a mention: the index of its tag column, where it is not the one that `encode_levels` would choose."""


# ----------------------------------------------------------------------------------------------------- several columns


def decode_levels(
    columns: Sequence[Sequence[str]], scheme: str, repairs: Counter[str] | None, notes: Counter[str]
) -> tuple[list[Mention], list[dict[str, int]]]:
    """Convert the tags of several columns to mentions."""
    level_of: dict[Mention, int] = {}
    for level, tags in enumerate(columns):
        try:
            column_mentions = decode_canonical(tags, scheme, repairs)
        except InvalidTag as error:
            raise InvalidTag(error.index, f"tag column {level + 1}: {error.message}", error.remedy) from None
        for mention in column_mentions:
            if level_of.setdefault(mention, level) != level:
                notes["mention that stands in two tag columns taken once"] += 1
    mentions = sorted_mentions(level_of)
    levels = [level_of[mention] for mention in mentions]
    if not any(levels) or levels == _assign_levels(mentions):
        return mentions, []
    return mentions, [{LEVEL: level} for level in levels]


def _assign_levels(mentions: Sequence[Mention]) -> list[int]:
    """Assign each contiguous mention to the first column that is free there, outer mentions first."""
    ends: list[int] = []
    levels = [0] * len(mentions)
    for i in sorted(range(len(mentions)), key=lambda i: (mentions[i].start, -mentions[i].end, mentions[i].label)):
        mention = mentions[i]
        level = next((level for level, end in enumerate(ends) if end <= mention.start), len(ends))
        ends[level : level + 1] = [mention.end]
        levels[i] = level
    return levels


def flatten_to_levels(mentions: Sequence[Mention], num_levels: int, overlap: str) -> Sequence[Mention]:
    """Reduce mentions to those that some tag columns can hold."""
    remaining = [mention for mention in mentions if mention.is_contiguous]
    if len(remaining) == len(mentions) and max(_assign_levels(remaining), default=0) < num_levels:
        return mentions
    kept: list[Mention] = []
    for _ in range(num_levels):
        flat = set(flatten(remaining, overlap))
        kept += flat
        remaining = [mention for mention in remaining if mention not in flat]
    return sorted_mentions(kept)


def encode_levels(sentence: Sentence, dialect: ConllDialect) -> list[list[str]]:
    """Convert the mentions of a sentence to the tags of several columns."""
    num_levels = len(dialect.tag_columns)
    mentions = sentence.mentions
    if dialect.overlap != "error":
        mentions = tuple(flatten_to_levels(mentions, num_levels, dialect.overlap))
    discontinuous = next((mention for mention in mentions if not mention.is_contiguous), None)
    if discontinuous is not None:
        raise LossError(
            f"a discontinuous mention ({discontinuous.label} {list(discontinuous.spans)}) cannot be written as tags",
            remedy="write JSON lines, or choose what to keep: --overlap outermost or innermost",
        )
    levels = _recorded_levels(sentence, num_levels) if mentions is sentence.mentions else None
    if levels is None:
        levels = _assign_levels(mentions)
    excess = next((mention for mention, level in zip(mentions, levels, strict=True) if level >= num_levels), None)
    if excess is not None:
        raise LossError(
            f"a nested mention ({excess.label} {list(excess.spans)}) needs tag column {max(levels) + 1} "
            f"and there are {num_levels}",
            remedy="name more --to-tag-columns, write JSON lines, or choose what to keep: --overlap outermost",
        )
    by_level: list[list[Mention]] = [[] for _ in range(num_levels)]
    for mention, level in zip(mentions, levels, strict=True):
        by_level[level].append(mention)
    return [encode_canonical(len(sentence), flat, dialect.scheme) for flat in by_level]


def _recorded_levels(sentence: Sentence, num_levels: int) -> list[int] | None:
    """The levels in the fields of the mentions; None where they are not known or do not fit the columns."""
    fields = sentence.layout.get(ENTITY_FIELDS)
    if not isinstance(fields, list) or len(fields) != len(sentence.mentions):
        return None
    levels = []
    ends = [0] * num_levels
    for mention, mention_fields in zip(sentence.mentions, fields, strict=True):  # in the order of their starts
        level = mention_fields.get(LEVEL) if isinstance(mention_fields, dict) else None
        if type(level) is not int or not 0 <= level < num_levels or mention.start < ends[level]:
            return None
        ends[level] = mention.end
        levels.append(level)
    return levels


def are_levels_written(sentence: Sentence, dialect: ConllDialect) -> bool:
    """Return whether the mentions have no further fields but `LEVEL`, and their columns in the file give it."""
    fields = sentence.layout.get(ENTITY_FIELDS)
    if not isinstance(fields, list) or any(not isinstance(f, dict) or f.keys() - {LEVEL} for f in fields):
        return False
    return _recorded_levels(sentence, len(dialect.tag_columns)) is not None


# ---------------------------------------------------------------------------------------------------------- attributes


def extract_attribute(cells: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Extract the tags that are attributes in cells."""
    pattern = re.compile(rf"(^|\|){re.escape(name)}=([^|]*)")
    tags, remainders = [], []
    for cell in cells:
        match = pattern.search(cell)
        tags.append(match[2] if match else "O")
        remainders.append(cell[: match.start(2)] + cell[match.end(2) :] if match else cell)
    return tags, remainders


def insert_attribute(tags: Sequence[str], cells: Sequence[str] | None, name: str) -> list[str]:
    """Insert tags into cells as attributes; the inverse of `extract_attribute`."""
    if cells is None:
        return [f"{name}={tag}" for tag in tags]
    pattern = re.compile(rf"(^|\|){re.escape(name)}=(?=\||$)")
    result = []
    for tag, cell in zip(tags, cells, strict=True):
        match = pattern.search(cell)
        if match:
            result.append(cell[: match.end()] + tag + cell[match.end() :])
        elif tag == "O":
            result.append(cell)
        else:
            result.append(f"{name}={tag}" if cell in (PLACEHOLDER, "") else f"{cell}|{name}={tag}")
    return result
