"""CoNLL columns: one token a line, an empty line after each sentence, tags in one column or several.

Columns are separated by tabs, single spaces or runs of both; token and tag may be in any column. Comments,
``-DOCSTART-`` lines, further columns, CRLF, byte-order marks and separator lines of white space are read. All rows have
the same columns. Nested mentions need several tag columns, outermost first, as in GermEval; one column represents flat
mentions only. Further variants: CoNLL-U Plus, whose first line names the columns; CoNLL-U with tags among other
attributes (``name=B-PER``), whose words are the rows with integer numbers, not ranges (``3-4``) and empty nodes
(``1.1``); and files with one character of running text a line. `entaug.formats.conll.layout` detects the layout of
a file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import ne
from pathlib import Path
from sys import intern
from typing import Any

import orjson

from entaug.core.alignment import align_spaces
from entaug.core.data import Provenance, Sentence
from entaug.core.edits import PLACEHOLDER
from entaug.core.mentions import Mention, sorted_mentions
from entaug.core.spacing import infer_spaces_of_characters
from entaug.core.tags import KEEP_SOME, InvalidTag, decode_canonical, encode_canonical, flatten, is_tag
from entaug.errors import InputError, LossError, TagError
from entaug.formats.base import (
    ENTITY_FIELDS,
    LEVEL,
    BaseFormat,
    FormatCapabilities,
    ReadReport,
    character_name,
    check_label_edges,
)
from entaug.formats.conll.layout import (
    DOCSTART,
    PROVENANCE_COMMENT,
    TEXT_COMMENT,
    ConllDialect,
    comment_name,
    detect_dialect,
    extract_attribute,
    is_comment,
    is_numbering,
    is_range_or_empty_node,
    parse_column_names,
    parse_sentence_id,
    read_blocks,
    split_row,
)
from entaug.formats.records import read_records
from entaug.formats.token_records import entity_fields

EXTRA_ROWS = "_conllu_rows"
"""Field of a sentence: its rows that are no words (ranges, empty nodes), each with the index of the word behind it."""
_HALVES = re.compile("[\ud800-\udfff]")
_NOT_IN_LINES = re.compile("[\n\r\0\ud800-\udfff]")
_ARRANGEMENT = frozenset(("token_column", "tag_column", "tag_columns", "numbered_from", "attribute"))


class Conll(BaseFormat):
    """The CoNLL column format; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "conll"
    title = "CoNLL columns"
    extensions = (".conll", ".tsv", ".iob2", ".iob", ".bio", ".conllu", ".conllup")
    foreign_extensions = (".csv",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=False, spaces=False)
    dialect_class = ConllDialect

    def recognises(self, path: Path) -> bool:
        return not path.is_dir()

    def detect_dialect(self, path: Path, **options: Any) -> ConllDialect:
        given = {name: value for name, value in options.items() if value is not None}
        return detect_dialect(path, self.dialect(**given), given)

    def read(
        self, path: Path, dialect: ConllDialect, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        return _Reader(path, dialect, reading).sentences(start, stop)

    def as_stored(self, sentence: Sentence, dialect: ConllDialect) -> Sentence:
        if dialect.overlap == "error" or sentence.is_flat:
            return sentence
        kept = _flatten_to_levels(sentence.mentions, len(dialect.tag_columns) or 1, dialect.overlap)
        if len(kept) == len(sentence.mentions):
            return sentence
        layout = {name: value for name, value in sentence.layout.items() if name != ENTITY_FIELDS}
        return sentence.with_(mentions=kept, layout=layout)

    def prepared(self, dialect: ConllDialect, sample: Iterable[Sentence], given: Collection[str] = ()) -> ConllDialect:
        if dialect.column_names or (dialect.num_columns and _ARRANGEMENT.isdisjoint(given)):
            return dialect
        names = dict.fromkeys(name for sentence in sample for name in sentence.columns)
        if dialect.numbered_from is not None:
            names.pop("0", None)
        width = len(names) + (len(dialect.tag_columns) or 1)
        width += len({dialect.token_column, *(() if dialect.numbered_from is None else (0,))})
        return replace(dialect, num_columns=width, further_columns=tuple(names))

    def dump(self, sentence: Sentence, dialect: ConllDialect) -> str:
        return _format_sentence(sentence, dialect)

    def lost(self, sentence: Sentence, dialect: ConllDialect) -> list[str]:
        lost = [
            f"field {name!r}"
            for name, value in sentence.fields.items()
            if not (
                (name == "comments" and isinstance(value, list))
                or (name == EXTRA_ROWS and _extra_rows(sentence, dialect))
                or (name == "entaug" and dialect.provenance)
                or (name == ENTITY_FIELDS and dialect.tag_columns and _are_levels_written(sentence, dialect))
            )
        ]
        if sentence.id is not None or sentence.spaces is not None:
            comments = _format_comments(sentence, dialect)
            if sentence.id is not None and not any(map(parse_sentence_id, comments.split("\n"))):
                lost.append("id")
            if _needs_text(sentence, dialect) and TEXT_COMMENT not in comments:
                lost.append("text")
        if sentence.columns and (width := dialect.num_columns or len(dialect.column_names)):
            used = {dialect.token_column, *(() if dialect.attribute else dialect.tag_indices(width))}
            known = [dialect.column_name(i) for i in range(width) if i not in used]
            if dialect.further_columns:
                known = [*dialect.further_columns, *(known[:1] if dialect.numbered_from is not None else ())]
            lost += [f"column {name!r}" for name in sentence.columns if name not in known]
        return lost


# ------------------------------------------------------------------------------------------------------------- reading


class _RaggedRows(Exception):  # noqa: N818 - internal: converted to an InputError with a line
    """The rows of a sentence have different numbers of columns, or too few."""


class _Reader:
    """Reads the sentences of a file."""

    def __init__(self, path: Path, dialect: ConllDialect, reading: ReadReport) -> None:
        self._path = path
        self._dialect = dialect
        self._reading = reading
        self._repairs = reading.repaired if reading.repair else None
        self._further: dict[tuple[int, bool], list[tuple[int, str]]] = {}
        # Attributes of the dialect that are needed for every sentence.
        self._delimiter = dialect.delimiter
        self._min_columns = max(
            2, dialect.token_column + 1, dialect.tag_column + 1, *(c + 1 for c in dialect.tag_columns)
        )
        # With fewer or more columns in some sentences, words or tags would be taken from the wrong ones.
        self._num_columns = dialect.num_columns or len(dialect.column_names)
        self._unread = {i: _describe_unread(i, dialect) for i in dialect.unread_tag_columns}

    def sentences(self, start: int = 0, stop: int | None = None) -> Iterator[Sentence]:
        """Read the sentences."""
        records = self._blocks(start, stop)
        return read_records(self._path, records, self._parse_block, self._reading, is_whole=stop is None)

    def _blocks(self, start: int, stop: int | None) -> Iterator[tuple[int, tuple[list[str], Sequence[int], list[str]]]]:
        """Yield the first line of each sentence with its rows, the numbers of their lines, and its comments."""
        names, notes = self._dialect.column_names, self._reading.notes
        comments: list[str] = []
        for first, lines in read_blocks(self._path, start, stop, notes):
            marked = [i for i, line in enumerate(lines) if line[0] in "#-" and is_comment(line, self._dialect)]
            rows = lines
            numbers: Sequence[int] = range(first, first + len(lines))
            if marked:
                # The heading of the file is no comment of its first sentence.
                comments += [lines[i] for i in marked if not names or parse_column_names(lines[i]) != names]
                places = sorted({*range(len(lines))}.difference(marked))
                rows, numbers = [lines[i] for i in places], [first + i for i in places]
            if not rows:
                continue
            if moved := sum(first + i > numbers[0] for i in marked):
                notes["line with # between the rows of a sentence taken as a comment"] += moved
            yield numbers[0], (rows, numbers, comments)
            comments = []
        if comments:
            notes["comment after the last sentence left out"] += len(comments)

    def _parse_block(self, _first: int, block: tuple[list[str], Sequence[int], list[str]]) -> list[Sentence]:
        rows, numbers, comments = block
        try:
            return [self._parse_rows(rows, comments)]
        except InvalidTag as invalid:
            line = numbers[invalid.index]
            raise TagError(invalid.message, path=str(self._path), line=line, remedy=invalid.remedy) from None
        except _RaggedRows:
            cells = [split_row(row, self._delimiter) for row in rows]
            spaced = [split_row(row, None) if len(c) == 1 else c for row, c in zip(rows, cells, strict=True)]
            dialect = self._dialect
            is_usual = dialect.token_column == 0 and dialect.tag_column == -1 and dialect.is_simple
            is_repairable = is_usual and all(len(c) > 1 and is_tag(c[-1]) for c in spaced)
            if self._reading.repair and is_repairable:
                return self._without_further_columns(spaced, numbers, comments)
            raise self._ragged_rows_error(list(map(len, cells)), numbers, is_repairable=is_repairable) from None

    def _parse_rows(self, rows: list[str], comments: list[str]) -> Sentence:
        dialect, delimiter = self._dialect, self._delimiter
        try:
            if delimiter:
                columns = list(zip(*[row.split(delimiter) for row in rows], strict=True))
            else:
                columns = list(zip(*[split_row(row, None) for row in rows], strict=True))
        except ValueError:
            raise _RaggedRows from None
        width = len(columns)
        if width < self._min_columns or self._num_columns not in (0, width):
            raise _RaggedRows
        if dialect.numbered_from is None or is_numbering(columns[0], dialect.numbered_from):
            return self._parse_columns(columns, comments, {}, keeps_numbers=False)
        places = [i for i, number in enumerate(columns[0]) if not is_range_or_empty_node(number)]
        if not places:
            raise InvalidTag(0, "no row of the sentence is a word", "add its words, or delete the lines")
        extra = [(bisect_left(places, i), row) for i, row in enumerate(rows) if is_range_or_empty_node(columns[0][i])]
        words = [tuple([column[i] for i in places]) for column in columns]
        keeps_numbers = not is_numbering(words[0], dialect.numbered_from)
        layout = {EXTRA_ROWS: [[place, row] for place, row in extra]} if extra else {}
        try:
            sentence = self._parse_columns(words, comments, layout, keeps_numbers=keeps_numbers)
        except InvalidTag as error:
            error.index = places[error.index]
            raise
        self._note_extra_rows([split_row(row, delimiter) for _, row in extra])
        if keeps_numbers:
            self._reading.notes["sentence whose token numbers do not count up: they are kept"] += 1
        return sentence

    def _note_extra_rows(self, rows: list[list[str]]) -> None:
        """Note rows that are no words, and the tags in them."""
        notes, dialect = self._reading.notes, self._dialect
        for row in rows:
            kind = "a range of words" if "-" in row[0] else "an empty node"
            notes[f"CoNLL-U row of {kind} is no token; kept where the sentence stays the same"] += 1
            tags = [row[i] for i in dialect.tag_indices(len(row))]
            if dialect.attribute:
                tags, _ = extract_attribute(tags, dialect.attribute)
            if any(is_tag(tag) and tag != "O" for tag in tags):
                notes[f"tag of {kind} not read"] += 1

    def _parse_columns(
        self, columns: list[tuple[str, ...]], comments: Sequence[str], layout: dict[str, Any], *, keeps_numbers: bool
    ) -> Sentence:
        """The sentence whose words have these columns."""
        dialect = self._dialect
        width = len(columns)
        tokens: tuple[str, ...] = columns[dialect.token_column]
        if "" in tokens:
            raise InvalidTag(tokens.index(""), "the token is empty", "give it one, or delete the line")
        tokens = tuple(map(intern, tokens))  # equal tokens of a corpus in memory are one string
        spaces = infer_spaces_of_characters(tokens) if dialect.characters else None
        has_attributes = False
        mentions, levels, attributes = self._parse_tags(columns)
        if levels:
            layout[ENTITY_FIELDS] = levels
        if any(cell != f"{dialect.attribute}=" for cell in attributes):
            columns[dialect.tag_column] = tuple(attributes)
            has_attributes = True
        if self._unread:
            self._note_unread(columns, mentions)
        if width == 2 and not comments and not layout and not has_attributes:
            return Sentence(tokens, mentions, spaces=spaces)
        further = {name: columns[i] for i, name in self._further_columns(width, has_attributes)}
        if dialect.numbered_from is not None and not keeps_numbers:
            further.pop(dialect.column_name(0), None)
        if not comments and not layout:
            return Sentence(tokens, mentions, columns=further, spaces=spaces)
        id_, text, provenance, kept = _parse_comments(comments)
        text_spaces = None if text is None else align_spaces(tokens, text)
        if text is not None and text_spaces is None:
            surfaces = _surfaces(tokens, layout.get(EXTRA_ROWS, ()), dialect)
            if surfaces == tokens or align_spaces(surfaces, text) is None:
                self._reading.notes["comment with a text of other tokens: its white space is not read"] += 1
        if kept:
            layout["comments"] = kept
        spaces = spaces if text_spaces is None else text_spaces
        return Sentence(tokens, mentions, id_, columns=further, spaces=spaces, layout=layout, provenance=provenance)

    def _further_columns(self, num_columns: int, has_attributes: bool) -> list[tuple[int, str]]:
        """The indices and names of the columns besides token and tag; of the tag column too if it has attributes."""
        key = num_columns, has_attributes
        if key not in self._further:
            used = {self._dialect.token_column, *(() if has_attributes else self._dialect.tag_indices(num_columns))}
            self._further[key] = [(i, self._dialect.column_name(i)) for i in range(num_columns) if i not in used]
        return self._further[key]

    def _parse_tags(
        self, columns: Sequence[Sequence[str]]
    ) -> tuple[Sequence[Mention], list[dict[str, int]], Sequence[str]]:
        """The mentions of rows, their levels, and the cells of the tag column without the tags."""
        dialect = self._dialect
        if dialect.tag_columns:
            tag_columns = {i: self._stripped(columns[i]) for i in dialect.tag_indices(len(columns))}
            return *_decode_levels(tag_columns, dialect.scheme, self._repairs, self._reading.notes), ()
        tags = columns[dialect.tag_column]
        attributes: Sequence[str] = ()
        if dialect.attribute:
            tags, attributes = extract_attribute(tags, dialect.attribute)
        return decode_canonical(self._stripped(tags), dialect.scheme, self._repairs), [], attributes

    def _stripped(self, tags: Sequence[str]) -> Sequence[str]:
        """Tags without white space around them, which would become part of the label."""
        if len("".join(tags).split()) == 1:  # as nearly always
            return tags
        stripped = [tag.strip() for tag in tags]
        if num_changed := sum(map(ne, tags, stripped)):
            self._reading.notes["white space around a tag left out"] += num_changed
        return stripped

    def _note_unread(self, columns: Sequence[Sequence[str]], mentions: Sequence[Mention]) -> None:
        """Note mentions in columns that look like tags and are not read."""
        for column, what in self._unread.items():
            tags = columns[column]
            if tags.count("O") == len(tags):
                continue
            try:
                num_unread = len({*decode_canonical(tags, self._dialect.scheme, Counter())}.difference(mentions))
            except InvalidTag:  # of another scheme
                num_unread = sum(is_tag(tag) and tag[0] in "BSU" for tag in tags)
            if num_unread:
                self._reading.notes[what] += num_unread

    def _without_further_columns(
        self, cells: list[list[str]], numbers: Sequence[int], comments: list[str]
    ) -> list[Sentence]:
        """Parse the first and the last cell of each row."""
        self._reading.repaired["ragged rows, only token and tag kept"] += 1
        narrow = replace(self._dialect, separator="tab", num_columns=2, numbered_from=None, unread_tag_columns=())
        reader = _Reader(self._path, narrow, self._reading)
        return reader._parse_block(numbers[0], ([f"{row[0]}\t{row[-1]}" for row in cells], numbers, comments))

    def _ragged_rows_error(self, widths: list[int], numbers: Sequence[int], *, is_repairable: bool) -> InputError:
        """The error for the first row whose number of columns is not that of most."""
        expected = max(self._num_columns or Counter(widths).most_common(1)[0][0], self._min_columns)
        places = list(zip(widths, numbers, strict=True))
        width, line = next((place for place in places if place[0] != expected), places[0])
        what = f"{width} column{'s' * (width != 1)} where {expected} are expected"
        remedy = "correct the line, or name the `separator` and columns"
        remedy += ", or pass `repair=True` to keep only token and tag" * is_repairable
        return InputError(what, path=str(self._path), line=line, remedy=remedy)


def _describe_unread(column: int, dialect: ConllDialect) -> str:
    """The note on the mentions of a further column."""
    used = dialect.tag_indices(dialect.num_columns)
    every = ",".join(map(str, sorted({*used, *dialect.unread_tag_columns})))
    return (
        f"mention in column {column} not read, tags are in column {' and '.join(map(str, used))} "
        f"(nested mentions of all: `tag_columns='{every}'`; of this column alone: `tag_column={column}`)"
    )


def _surfaces(tokens: tuple[str, ...], extra: Sequence[tuple[int, str]], dialect: ConllDialect) -> tuple[str, ...]:
    """The words as the text has them: those of a range as one."""
    surfaces = [*tokens]
    for place, row in reversed(extra):
        cells = split_row(row, dialect.delimiter)
        first, dash, last = cells[0].partition("-")
        if dash:
            surfaces[place : place + int(last) - int(first) + 1] = [cells[dialect.token_column]]
    return tuple(surfaces)


def _parse_comments(comments: Sequence[str]) -> tuple[str | None, str | None, Provenance | None, list[str]]:
    """The id, text and provenance in the comments of a sentence, and the comments except provenance."""
    id_ = text = provenance = None
    kept = []
    for line in comments:
        id_ = parse_sentence_id(line) or id_
        if line.startswith(TEXT_COMMENT):
            text = line[len(TEXT_COMMENT) :]
        if line.startswith(PROVENANCE_COMMENT):
            try:
                provenance = Provenance.from_dict(orjson.loads(line[len(PROVENANCE_COMMENT) :]))
                continue
            except (orjson.JSONDecodeError, TypeError, ValueError, AttributeError):
                pass  # a comment of another program
        kept.append(line)
    return id_, text, provenance, kept


# ------------------------------------------------------------------------------------ nested mentions: several columns


def _decode_levels(
    columns: Mapping[int, Sequence[str]], scheme: str, repairs: Counter[str] | None, notes: Counter[str]
) -> tuple[list[Mention], list[dict[str, int]]]:
    """The mentions of the tags of several columns, and the levels where `_assign_levels` would choose others."""
    level_of: dict[Mention, int] = {}
    for level, (column, tags) in enumerate(columns.items()):
        try:
            column_mentions = decode_canonical(tags, scheme, repairs)
        except InvalidTag as error:
            raise InvalidTag(error.index, f"column {column}: {error.message}", error.remedy) from None
        for mention in column_mentions:
            if level_of.setdefault(mention, level) != level:
                notes["mention that stands in two tag columns taken once"] += 1
    mentions = sorted_mentions(level_of)
    levels = [level_of[mention] for mention in mentions]
    is_usual = not any(levels) or levels == _assign_levels(mentions)
    return mentions, [] if is_usual else [{LEVEL: level} for level in levels]


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


def _flatten_to_levels(mentions: Sequence[Mention], num_levels: int, overlap: str) -> Sequence[Mention]:
    """Reduce mentions to those that some tag columns can hold."""
    if num_levels == 1:
        return flatten(mentions, overlap)
    remaining = [mention for mention in mentions if mention.is_contiguous]
    if len(remaining) == len(mentions) and max(_assign_levels(remaining), default=0) < num_levels:
        return mentions
    kept: list[Mention] = []
    for _ in range(num_levels):
        flat = set(flatten(remaining, overlap))
        kept += flat
        remaining = [mention for mention in remaining if mention not in flat]
    return sorted_mentions(kept)


def _encode_levels(sentence: Sentence, dialect: ConllDialect) -> list[list[str]]:
    """Convert the mentions of a sentence to the tags of several columns."""
    num_levels = len(dialect.tag_columns)
    mentions = sentence.mentions
    if dialect.overlap != "error":
        mentions = tuple(_flatten_to_levels(mentions, num_levels, dialect.overlap))
    discontinuous = next((mention for mention in mentions if not mention.is_contiguous), None)
    if discontinuous is not None:
        raise LossError(
            f"a discontinuous mention ({discontinuous.label} {list(discontinuous.spans)}) cannot be written as tags",
            remedy=f"write JSON lines, or choose what to keep: {KEEP_SOME}",
        )
    levels = _recorded_levels(sentence, num_levels) if mentions is sentence.mentions else None
    levels = _assign_levels(mentions) if levels is None else levels
    by_level: list[list[Mention]] = [[] for _ in range(num_levels)]
    for mention, level in zip(mentions, levels, strict=True):
        if level >= num_levels:
            raise LossError(
                f"a nested mention ({mention.label} {list(mention.spans)}) needs tag column {max(levels) + 1} "
                f"and there are {num_levels}",
                remedy="name more `tag_columns`, write JSON lines, or choose what to keep: `overlap='outermost'`",
            )
        by_level[level].append(mention)
    return [encode_canonical(len(sentence), flat, dialect.scheme) for flat in by_level]


def _recorded_levels(sentence: Sentence, num_levels: int) -> list[int] | None:
    """The levels in the fields of the mentions; None where they are not known or do not fit the columns."""
    levels = []
    ends = [0] * num_levels
    for mention, fields in zip(sentence.mentions, entity_fields(sentence), strict=True):  # in the order of their starts
        level = fields.get(LEVEL)
        if type(level) is not int or not 0 <= level < num_levels or mention.start < ends[level]:
            return None
        ends[level] = mention.end
        levels.append(level)
    return levels


def _are_levels_written(sentence: Sentence, dialect: ConllDialect) -> bool:
    """Whether the mentions have no further fields but `LEVEL`, and their columns in the file give it."""
    has_others = any(fields.keys() - {LEVEL} for fields in entity_fields(sentence))
    return not has_others and _recorded_levels(sentence, len(dialect.tag_columns)) is not None


# ------------------------------------------------------------------------------------------------------------- writing


def _format_sentence(sentence: Sentence, dialect: ConllDialect) -> str:
    check_label_edges(sentence)
    try:
        if dialect.tag_columns:
            tags = _encode_levels(sentence, dialect)
        else:
            tags = [sentence.iob(dialect.scheme, dialect.overlap)]
    except LossError as error:
        error.path = f"sentence {sentence.id or ' '.join(sentence.tokens[:6])}"
        raise
    delimiter = dialect.delimiter or "\t"
    is_plain = dialect.is_simple and not sentence.columns and dialect.num_columns in (0, 2)
    if is_plain and dialect.numbered_from is None and dialect.token_column == 0 and dialect.tag_column in (1, -1):
        rows = list(map(delimiter.join, zip(sentence.tokens, tags[0], strict=True)))
        width = 2
    else:
        columns = _arrange_columns(sentence, tags, dialect)
        width = len(columns)
        rows = [delimiter.join(cells) for cells in zip(*columns, strict=True)]
    body = "\n".join(rows)
    is_clean = body.count(delimiter) == (width - 1) * len(rows) and body.count("\n") == len(rows) - 1
    is_clean = is_clean and "\r" not in body and "\0" not in body and (body.isascii() or not _HALVES.search(body))
    if not is_clean or rows[0][0] == "#" or DOCSTART in body:
        _check_rows(sentence, rows, delimiter * (width - 1), dialect)
    if EXTRA_ROWS in sentence.layout and (extra := _extra_rows(sentence, dialect)):
        for place, row in reversed(extra):
            rows.insert(place, row)
        body = "\n".join(rows)
    return f"{_format_comments(sentence, dialect)}{body}\n\n"


def _arrange_columns(sentence: Sentence, tag_columns: list[list[str]], dialect: ConllDialect) -> list[Sequence[str]]:
    """All columns of a sentence, in the order of the file."""
    n = len(sentence)
    further = dict(sentence.columns)
    by_index: dict[int, Sequence[str]] = {}
    if dialect.numbered_from is not None:
        numbers = [str(i) for i in range(dialect.numbered_from, dialect.numbered_from + n)]
        by_index[0] = further.pop(dialect.column_name(0), numbers)
    by_index[dialect.token_column] = sentence.tokens
    indices = dialect.tag_columns or (dialect.tag_column,)
    if dialect.attribute:
        if barred := next((tag for tag in tag_columns[0] if "|" in tag), None):
            what = f"the tag {barred!r} holds a bar, which stands between attributes"
            raise LossError(what, path=sentence.id, remedy="rename its label, or write JSON lines")
        name = dialect.column_name(indices[0] if indices[0] >= 0 else dialect.num_columns - 1)
        tag_columns = [_insert_attribute(tag_columns[0], further.pop(name, None), dialect.attribute)]
    width = dialect.num_columns or len(dialect.column_names) or len(further) + len(by_index) + len(tag_columns)
    for index, cells in zip(indices, tag_columns, strict=True):
        # In a sentence with fewer columns than the tag column needs it is the last.
        by_index[index % width if index < width else width - 1] = cells
    if len(by_index) < 1 + len(tag_columns) + (dialect.numbered_from is not None) or max(by_index) >= width:
        raise LossError(
            f"a sentence of {width} columns has no place for the token in column {dialect.token_column} "
            f"and the tag in column {' and '.join(map(str, indices))}",
            path=sentence.id,
            remedy="name columns that exist",
        )
    unused = [i for i in range(width) if i not in by_index]
    names: Iterable[str] = further  # each sentence may have its own
    if dialect.further_columns:
        names = dialect.further_columns
    elif dialect.column_names or dialect.num_columns:
        names = map(dialect.column_name, unused)
    placeholders = [PLACEHOLDER] * n
    by_index |= {i: further.get(name, placeholders) for i, name in zip(unused, names, strict=True)}
    return [by_index[i] for i in range(width)]


def _insert_attribute(tags: Sequence[str], cells: Sequence[str] | None, name: str) -> list[str]:
    """Insert tags into cells as attributes; the inverse of `extract_attribute`."""
    if cells is None:
        return [f"{name}={tag}" for tag in tags]
    pattern = re.compile(rf"(^|\|){re.escape(name)}=(?=\||$)")
    result = []
    for tag, cell in zip(tags, cells, strict=True):
        if match := pattern.search(cell):
            result.append(cell[: match.end()] + tag + cell[match.end() :])
        elif tag == "O":
            result.append(cell)
        else:
            result.append(f"{name}={tag}" if cell in (PLACEHOLDER, "") else f"{cell}|{name}={tag}")
    return result


def _extra_rows(sentence: Sentence, dialect: ConllDialect) -> list[tuple[int, str]]:
    """The rows of ranges and empty nodes, each with its place among the words; none where they do not fit."""
    found = sentence.layout.get(EXTRA_ROWS)
    delimiter = dialect.delimiter or "\t"
    if dialect.numbered_from is None or not isinstance(found, list):
        return []
    rows: list[tuple[int, str]] = []
    for item in found:  # in JSON the field may hold anything
        if not (isinstance(item, (list, tuple)) and len(item) == 2 and type(item[0]) is int and type(item[1]) is str):
            return []
        place, row = item
        is_row = row.count(delimiter) == dialect.num_columns - 1 and not _NOT_IN_LINES.search(row)
        is_placed = (rows[-1][0] if rows else 0) <= place <= len(sentence)
        if not (is_row and is_placed and is_range_or_empty_node(row.partition(delimiter)[0])):
            return []
        rows.append((place, row))
    return rows


def _check_rows(sentence: Sentence, rows: list[str], separators: str, dialect: ConllDialect) -> None:
    """Check that each row would be read with the same cells, and none as a comment."""
    for i, (token, row) in enumerate(zip(sentence.tokens, rows, strict=True)):
        found = _NOT_IN_LINES.search(row)
        if row.count(separators[0]) != len(separators) or found:
            is_in_token = separators[0] in token or _NOT_IN_LINES.search(token)
            subject = "token" if is_in_token else "a tag or a further column of token"
            what = character_name(found[0]) if found else "a column separator"
            remedy = "write JSON lines, or choose another `separator`"
            raise LossError(f"{subject} {token!r} holds {what}", path=sentence.id, remedy=remedy)
        if (i == 0 or row.startswith(DOCSTART)) and is_comment(row, dialect):
            what = f"token {token!r}{' at the start of a sentence' * (i == 0)} would be read as a comment"
            remedy = "write JSON lines" + " or use `separator='tab'`" * row.startswith("#")
            raise LossError(what, path=sentence.id, remedy=remedy)


def _needs_text(sentence: Sentence, dialect: ConllDialect) -> bool:
    """Whether the white space of a sentence is known, and can be read only from a comment."""
    if sentence.spaces is None:
        return False
    return not (dialect.characters and sentence.spaces == infer_spaces_of_characters(sentence.tokens))


def _format_comments(sentence: Sentence, dialect: ConllDialect) -> str:
    def is_writable(line: object) -> bool:
        """Whether it will be read as a comment; in JSON the field of this name may hold anything."""
        return isinstance(line, str) and not _NOT_IN_LINES.search(line) and is_comment(line, dialect)

    generated = []
    if dialect.ids and sentence.id is not None:
        generated.append(f"# sent_id = {sentence.id}")
    if dialect.texts and _needs_text(sentence, dialect):
        generated.append(f"{TEXT_COMMENT}{sentence.text}")
    comments = sentence.layout.get("comments")
    if not (generated or comments or sentence.provenance):
        return ""
    kept = list(filter(is_writable, comments if isinstance(comments, list) else ()))
    kept = [line for line in kept if sentence.id is not None or not parse_sentence_id(line)]
    said = set(map(comment_name, kept))
    text = "".join(f"{line}\n\n" if line.startswith(DOCSTART) else f"{line}\n" for line in kept)
    text += "".join(f"{line}\n" for line in generated if comment_name(line) not in said and is_writable(line))
    if dialect.provenance and sentence.provenance is not None:
        text += f"{PROVENANCE_COMMENT}{orjson.dumps(sentence.provenance.to_dict()).decode()}\n"
    return text
