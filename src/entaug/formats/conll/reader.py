"""Reading sentences from the rows of CoNLL files."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import ne
from pathlib import Path
from sys import intern
from typing import Any

import orjson

from entaug.core.alignment import align_spaces
from entaug.core.data import Mention, Sentence
from entaug.core.provenance import Provenance
from entaug.core.spacing import infer_spaces_of_characters
from entaug.core.tags import InvalidTag, decode_canonical, is_tag
from entaug.errors import InputError, TagError
from entaug.formats.base import ENTITY_FIELDS, ReadReport
from entaug.formats.conll.dialect import ConllDialect
from entaug.formats.conll.lines import (
    PROVENANCE_COMMENT,
    TEXT_COMMENT,
    is_comment,
    is_numbering,
    is_range_or_empty_node,
    parse_column_names,
    parse_sentence_id,
    read_blocks,
    split_comments,
    split_row,
)
from entaug.formats.conll.tag_columns import decode_levels, extract_attribute
from entaug.formats.records import no_sentences

__all__ = ["EXTRA_ROWS", "ConllReader"]

EXTRA_ROWS = "_conllu_rows"
"""Field of a sentence: its rows that are no words (ranges, empty nodes), each with the index of the word behind it."""


class _RaggedRows(Exception):  # noqa: N818 - internal: converted to an InputError with a line
    """The rows of a sentence have different numbers of columns, or too few."""


class ConllReader:
    """Reads the sentences of a file."""

    def __init__(self, path: Path, dialect: ConllDialect, reading: ReadReport) -> None:
        self._path = path
        self._dialect = dialect
        self._reading = reading
        self._repairs = reading.repaired if reading.repair else None
        self._lines_of_ids: dict[str, int] = {}
        self._further: dict[tuple[int, bool], list[tuple[int, str]]] = {}
        # Attributes of the dialect that are needed for every sentence.
        self._delimiter = dialect.delimiter
        self._is_simple = dialect.is_simple
        last_column = max(dialect.token_column, dialect.tag_column, *dialect.tag_columns)
        self._min_columns = max(2, last_column + 1)
        # With fewer or more columns in some sentences, words or tags would be taken from the wrong ones.
        self._num_columns = dialect.num_columns or len(dialect.column_names)
        self._unread = {i: _describe_unread(i, dialect) for i in dialect.unread_tag_columns}

    def sentences(self, start: int = 0, stop: int | None = None) -> Iterator[Sentence]:
        """Read the sentences."""
        dialect, reading = self._dialect, self._reading
        comments: list[str] = []
        is_empty = True
        for block in read_blocks(self._path, start, stop, reading.notes):
            first, rows = block
            if rows[0][0] in "#-" and is_comment(rows[0], dialect):
                leading, (first, rows) = split_comments(block, dialect)
                comments += leading
                if dialect.column_names:  # the heading of the file is no comment of its first sentence
                    comments = [line for line in comments if parse_column_names(line) != dialect.column_names]
                if not rows:
                    continue
            sentence = self._parse_block(first, rows, comments)
            comments = []
            is_empty = False
            if sentence is not None:
                reading.line = first
                yield sentence
        if comments:
            reading.notes["comment after the last sentence left out"] += len(comments)
        if is_empty and stop is None:
            raise no_sentences(self._path)

    def _parse_block(self, first: int, rows: list[str], comments: list[str]) -> Sentence | None:
        """Parse a block; None where it holds no rows, or a fault that has been reported."""
        sentence: Sentence | None
        try:
            try:
                sentence = self._parse_rows(rows, comments)
            except (_RaggedRows, InvalidTag):  # a fault, unless there are comments among the rows
                sentence = self._parse_carefully(first, rows, comments)
            if sentence is None or sentence.id is None:
                return sentence
            return _without_id(sentence) if self._reading.repeats(sentence.id, first, self._lines_of_ids) else sentence
        except InputError as error:
            error.locate(str(self._path), first)
            self._reading.fault(error)
            return None

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
        extra = [(bisect_left(places, i), rows[i]) for i in range(len(rows)) if i not in {*places}]
        words = [tuple([column[i] for i in places]) for column in columns]
        try:
            keeps_numbers = not is_numbering(words[0], dialect.numbered_from)
            layout = {EXTRA_ROWS: [[place, row] for place, row in extra]} if extra else {}
            sentence = self._parse_columns(words, comments, layout, keeps_numbers=keeps_numbers)
        except InvalidTag as error:
            error.index = places[error.index]
            raise
        if extra:
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
        if dialect.token_prefix:
            tokens = _remove_prefix(tokens, dialect.token_prefix)
        if "" in tokens:
            raise InvalidTag(tokens.index(""), "the token is empty", "give it one, or delete the line")
        tokens = tuple(map(intern, tokens))  # equal tokens of a corpus in memory are one string
        spaces = infer_spaces_of_characters(tokens) if dialect.characters else None
        has_attributes = False
        mentions: Sequence[Mention]
        if self._is_simple:
            mentions = decode_canonical(self._stripped(columns[dialect.tag_column]), dialect.scheme, self._repairs)
        else:
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
        return Sentence(
            tokens,
            mentions,
            id_,
            columns=further,
            spaces=spaces if text_spaces is None else text_spaces,
            layout=layout,
            provenance=provenance,
        )

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
            tag_columns = [self._stripped(columns[i]) for i in dialect.tag_indices(len(columns))]
            return *decode_levels(tag_columns, dialect.scheme, self._repairs, self._reading.notes), ()
        tags = columns[dialect.tag_column]
        attributes: Sequence[str] = ()
        if dialect.attribute:
            tags, attributes = extract_attribute(tags, dialect.attribute)
        elif dialect.outside_tag != "O":
            tags = ["O" if tag == dialect.outside_tag else tag for tag in tags]
        return decode_canonical(self._stripped(tags), dialect.scheme, self._repairs), [], attributes

    def _stripped(self, tags: Sequence[str]) -> Sequence[str]:
        """Tags without white space around them, which would become part of the label."""
        if len("".join(tags).split()) == 1:  # as nearly always
            return tags
        stripped = [tag.strip() for tag in tags]
        num_changed = sum(map(ne, tags, stripped))
        if num_changed:
            self._reading.notes["white space around a tag left out"] += num_changed
        return stripped

    def _note_unread(self, columns: Sequence[Sequence[str]], mentions: Sequence[Mention]) -> None:
        """Note mentions in columns that look like tags and are not read."""
        for column, what in self._unread.items():
            tags = columns[column]
            if tags.count("O") == len(tags):
                continue
            try:
                found = {*decode_canonical(tags, self._dialect.scheme, Counter())}
            except InvalidTag:  # of another scheme
                self._reading.notes[what] += sum(is_tag(tag) and tag[0] in "BSU" for tag in tags)
                continue
            if num_unread := len(found.difference(mentions)):
                self._reading.notes[what] += num_unread

    # --------------------------------------------------------------------------------------------------------- faults

    def _parse_carefully(self, first: int, lines: list[str], comments: list[str]) -> Sentence | None:
        """Parse a block that is faulty or has comments among its rows; an error names the line."""
        rows: list[tuple[int, str]] = []
        num_leading = len(comments)
        comments = [*comments]
        for number, line in enumerate(lines, start=first):
            if is_comment(line, self._dialect):
                comments.append(line)
            else:
                rows.append((number, line))
        if not rows:
            return None
        try:
            sentence = self._parse_rows([row for _, row in rows], comments)
        except InvalidTag as error:
            line_number = rows[error.index][0]
            raise TagError(error.message, path=str(self._path), line=line_number, remedy=error.remedy) from None
        except _RaggedRows:
            narrow_rows = self._narrow_rows(rows) if self._reading.repair else None
            if narrow_rows is None:
                raise self._ragged_rows_error(rows) from None
        except InputError as error:
            error.locate(str(self._path), rows[0][0])
            raise
        else:
            if len(comments) > num_leading:
                moved = "line with # between the rows of a sentence taken as a comment"
                self._reading.notes[moved] += len(comments) - num_leading
            return sentence
        self._reading.repaired["ragged rows, only token and tag kept"] += 1
        narrow = replace(self._dialect, separator="tab", num_columns=2, numbered_from=None, unread_tag_columns=())
        narrow_reader = ConllReader(self._path, narrow, self._reading)
        return narrow_reader._parse_carefully(first, narrow_rows, comments)

    def _narrow_rows(self, rows: list[tuple[int, str]]) -> list[str] | None:
        """Rows with token and tag only, where these are the first and the last cell; None where they are not."""
        if self._dialect.token_column != 0 or self._dialect.tag_column != -1 or not self._is_simple:
            return None
        cells = [split_row(row, self._delimiter) for _, row in rows]
        if any(len(row) < 2 or not is_tag(row[-1]) for row in cells):
            return None
        return [f"{row[0]}\t{row[-1]}" for row in cells]

    def _ragged_rows_error(self, rows: list[tuple[int, str]]) -> InputError:
        """The error for the first row whose number of columns is not that of most."""
        widths = [len(split_row(row, self._delimiter)) for _, row in rows]
        expected = max(Counter(widths).most_common(1)[0][0], self._min_columns)
        expected = self._num_columns or expected
        is_repairable = self._dialect.token_column == 0 and self._dialect.tag_column == -1 and self._is_simple
        for (number, _), width in zip(rows, widths, strict=True):
            if width != expected:
                return InputError(
                    f"{width} column{'s' * (width != 1)} where {expected} are expected",
                    path=str(self._path),
                    line=number,
                    remedy="correct the line, or name the --separator and columns"
                    + (", or pass --repair to keep only token and tag" if is_repairable else ""),
                )
        return InputError("rows do not fit the layout of the file", path=str(self._path), line=rows[0][0])


def _describe_unread(column: int, dialect: ConllDialect) -> str:
    """The note on the mentions of a further column."""
    used = dialect.tag_indices(dialect.num_columns)
    every = ",".join(map(str, sorted({*used, *dialect.unread_tag_columns})))
    tags = " and ".join(map(str, used))
    return (
        f"mention in column {column} not read, tags are in column {tags} "
        f"(nested mentions of all: --tag-columns {every}; of this column alone: --tag-column {column})"
    )


def _remove_prefix(tokens: Sequence[str], prefix: str) -> tuple[str, ...]:
    for i, token in enumerate(tokens):
        if not token.startswith(prefix):
            raise InvalidTag(i, f"no {prefix!r} before the token {token!r}", "correct the line")
    return tuple([token[len(prefix) :] for token in tokens])


def _surfaces(tokens: tuple[str, ...], extra: Sequence[tuple[int, str]], dialect: ConllDialect) -> tuple[str, ...]:
    """The words as the text has them: those of a range as one."""
    surfaces = [*tokens]
    for place, row in reversed(extra):
        cells = split_row(row, dialect.delimiter)
        first, dash, last = cells[0].partition("-")
        if dash:
            surfaces[place : place + int(last) - int(first) + 1] = [cells[dialect.token_column]]
    return tuple(surfaces)


def _parse_comments(
    comments: Sequence[str],
) -> tuple[str | None, str | None, Provenance | None, list[str]]:
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
            except (orjson.JSONDecodeError, TypeError, ValueError):
                pass  # a comment of another program
        kept.append(line)
    return id_, text, provenance, kept


def _without_id(sentence: Sentence) -> Sentence:
    layout = dict(sentence.layout)
    comments = [line for line in layout.pop("comments") if not parse_sentence_id(line)]
    return sentence.with_(id=None, layout={**layout, "comments": comments} if comments else layout)
