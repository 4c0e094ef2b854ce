"""Where tags are not just the cells of one column: several columns for nested mentions, attributes, signs for O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from entaug.data import PLACEHOLDER, Mention, Sentence
from entaug.errors import LossError
from entaug.formats.base import ENTITY_FIELDS
from entaug.formats.conll.lines import ConllDialect
from entaug.tags import InvalidTag, decode_canonical, encode_canonical, flatten

__all__ = ["LEVEL", "carried", "cut_out", "level_tags", "put_in", "read_levels", "told_by_levels"]

LEVEL = "level"
"""Field of a mention: its tag column, where that is not the one that it would be written to."""


# ----------------------------------------------------------------------------------------------------- several columns


def read_levels(
    columns: Sequence[Sequence[str]], scheme: str, repaired: Counter[str] | None, notes: Counter[str]
) -> tuple[list[Mention], list[dict[str, int]]]:
    """The mentions of several tag columns.

    Args:
        columns: the tags, those of outer mentions first.
        scheme: the canonical name of their scheme.
        repaired: see `entaug.tags.decode`.
        notes: what is left out is counted here.

    Returns:
        The mentions in canonical order; and their columns, where these have to be told.

    Raises:
        InvalidTag: tags break the scheme.

    Example:
        >>> read_levels([["B-ORG", "I-ORG"], ["O", "B-LOC"]], "IOB2", None, Counter())[0]
        [Mention(label='ORG', spans=((0, 2),)), Mention(label='LOC', spans=((1, 2),))]
    """
    found: dict[Mention, int] = {}
    for level, tags in enumerate(columns):
        try:
            of_column = decode_canonical(tags, scheme, repaired)
        except InvalidTag as fault:
            raise InvalidTag(fault.index, f"tag column {level + 1}: {fault.message}", fault.remedy) from None
        for mention in of_column:
            if found.setdefault(mention, level) != level:
                notes["mention that stands in two tag columns taken once"] += 1
    mentions = sorted(found, key=lambda m: (m.spans, m.label))
    levels = [found[mention] for mention in mentions]
    if not any(levels) or levels == _levels(mentions):
        return mentions, []
    return mentions, [{LEVEL: level} for level in levels]


def _levels(mentions: Sequence[Mention]) -> list[int]:
    """For each contiguous mention the first column that is free there, outer mentions first: as few as can be."""
    ends: list[int] = []
    levels = [0] * len(mentions)
    for i in sorted(range(len(mentions)), key=lambda i: (mentions[i].start, -mentions[i].end, mentions[i].label)):
        mention = mentions[i]
        level = next((level for level, end in enumerate(ends) if end <= mention.start), len(ends))
        ends[level : level + 1] = [mention.end]
        levels[i] = level
    return levels


def carried(mentions: Sequence[Mention], n: int, overlap: str) -> Sequence[Mention]:
    """The mentions that `n` tag columns hold, where not all have to be held.

    Args:
        mentions: any.
        n: how many columns there are.
        overlap: ``"outermost"`` or ``"innermost"``, see `entaug.tags.flatten`; this is done anew for each column.
    """
    left = [mention for mention in mentions if mention.is_contiguous]
    if len(left) == len(mentions) and max(_levels(left), default=0) < n:
        return mentions
    kept: list[Mention] = []
    for _ in range(n):
        flat = set(flatten(left, overlap))
        kept += flat
        left = [mention for mention in left if mention not in flat]
    return sorted(kept, key=lambda m: (m.spans, m.label))


def level_tags(sentence: Sentence, dialect: ConllDialect) -> list[list[str]]:
    """The tags of a sentence in several columns.

    Raises:
        LossError: more columns would be needed, or a mention has a gap.
    """
    n = len(dialect.tag_columns)
    mentions = sentence.mentions
    if dialect.overlap != "error":
        mentions = tuple(carried(mentions, n, dialect.overlap))
    gap = next((mention for mention in mentions if not mention.is_contiguous), None)
    if gap is not None:
        raise LossError(
            f"a discontinuous mention ({gap.label} {list(gap.spans)}) cannot be written as tags",
            remedy="write JSON lines, or choose what to keep: --overlap outermost or innermost",
        )
    levels = _told(sentence, n) if mentions is sentence.mentions else None
    if levels is None:
        levels = _levels(mentions)
    deep = next((mention for mention, level in zip(mentions, levels, strict=True) if level >= n), None)
    if deep is not None:
        raise LossError(
            f"a nested mention ({deep.label} {list(deep.spans)}) needs tag column {max(levels) + 1} and there are {n}",
            remedy="name more --to-tag-columns, write JSON lines, or choose what to keep: --overlap outermost",
        )
    of_level: list[list[Mention]] = [[] for _ in range(n)]
    for mention, level in zip(mentions, levels, strict=True):
        of_level[level].append(mention)
    return [encode_canonical(len(sentence), some, dialect.scheme) for some in of_level]


def _told(sentence: Sentence, n: int) -> list[int] | None:
    """The columns that the fields of the mentions tell, where they can be written so."""
    extras = sentence.layout.get(ENTITY_FIELDS)
    if not isinstance(extras, list) or len(extras) != len(sentence.mentions):
        return None
    levels = []
    ends = [0] * n
    for mention, extra in zip(sentence.mentions, extras, strict=True):  # in the order of their beginnings
        level = extra.get(LEVEL) if isinstance(extra, dict) else None
        if type(level) is not int or not 0 <= level < n or mention.start < ends[level]:
            return None
        ends[level] = mention.end
        levels.append(level)
    return levels


def told_by_levels(sentence: Sentence, dialect: ConllDialect) -> bool:
    """Whether what is known of each mention is its column, and will be written by its column."""
    extras = sentence.layout.get(ENTITY_FIELDS)
    told = isinstance(extras, list) and all(isinstance(extra, dict) and extra.keys() <= {LEVEL} for extra in extras)
    return told and _told(sentence, len(dialect.tag_columns)) is not None


# ---------------------------------------------------------------------------------------------------------- attributes


def cut_out(cells: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Tags that are attributes in cells, and the cells without them.

    Example:
        >>> cut_out(["name=B-PER|SpaceAfter=No", "_"], "name")
        (['B-PER', 'O'], ['name=|SpaceAfter=No', '_'])
    """
    pattern = re.compile(rf"(^|\|){re.escape(name)}=([^|]*)")
    tags, left = [], []
    for cell in cells:
        found = pattern.search(cell)
        tags.append(found[2] if found else "O")
        left.append(cell[: found.start(2)] + cell[found.end(2) :] if found else cell)
    return tags, left


def put_in(tags: Sequence[str], cells: Sequence[str] | None, name: str) -> list[str]:
    """Tags as attributes in cells: the other way round.

    Example:
        >>> put_in(["B-PER", "O", "I-PER"], ["name=|SpaceAfter=No", "_", "X=1"], "name")
        ['name=B-PER|SpaceAfter=No', '_', 'X=1|name=I-PER']
    """
    if cells is None:
        return [f"{name}={tag}" for tag in tags]
    pattern = re.compile(rf"(^|\|){re.escape(name)}=(?=\||$)")
    put = []
    for tag, cell in zip(tags, cells, strict=True):
        found = pattern.search(cell)
        if found:
            put.append(cell[: found.end()] + tag + cell[found.end() :])
        elif tag == "O":
            put.append(cell)
        else:
            put.append(f"{name}={tag}" if cell in (PLACEHOLDER, "") else f"{cell}|{name}={tag}")
    return put
