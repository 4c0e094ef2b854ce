"""The layout of a CoNLL file, which consists of the options of the format; its lines: blocks, cells, comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from entaug.config.params import Check
from entaug.core.tags import Overlap, is_tag
from entaug.files.streams import check_characters, read_line_chunks
from entaug.formats.base import Dialect

DOCSTART = "-DOCSTART-"
TEXT_COMMENT = "# text = "
PROVENANCE_COMMENT = "# entaug = "
Block = tuple[int, list[str]]
"""The lines between two empty ones, and the number of the first."""
_DELIMITERS = {"tab": "\t", "space": " ", "runs": None}
_SEPARATOR_NAMES = {"tab": "tabs", "space": "spaces", "runs": "runs of tabs and spaces"}
_RUNS = re.compile(r"[ \t]+")
_QUOTED = re.compile(r'(?m)(?:^|(?<=[ \t]))"((?:[^"\s]|"")*+)"(?=[ \t]|$)')  # a cell as CSV has it
_RANGE_OR_EMPTY_NODE = re.compile(r"[0-9]{1,9}[-.][0-9]{1,9}")


def _are_distinct(columns: Sequence[object]) -> bool:
    return columns == () or (0 < len(set(columns)) == len(columns) and all(type(column) is int for column in columns))


@dataclass(frozen=True)
class ConllDialect(Dialect):
    """Layout of a CoNLL file.

    Args:
        separator: the separator of columns: ``"tab"``, ``"space"``, or ``"runs"`` of tabs and spaces.
        token_column: the column of the tokens, from 0.
        tag_column: the column of the tags, from 0; -1 for the last.
        scheme: the tag scheme.
        numbered_from: the first number where column 0 numbers the tokens of a sentence; numbers are not kept but
            written anew.
        ids: whether ``# sent_id = ...`` comments hold the ids of sentences.
        texts: whether ``# text = ...`` comments hold the text of sentences with its white space.
        overlap: which nested and discontinuous mentions to write, see `entaug.core.tags.flatten`; where there are
            several tag columns, which of those that need more columns.
        provenance: whether to write the provenance of augmented sentences as a comment.
        tag_columns: the columns of nested mentions, outermost first, as 1,2; they override `tag_column`.
        column_names: the names of all columns, where the file begins with ``# global.columns = ...``.
        attribute: the name under which the tag column holds tags beside other attributes, as in
            ``name=B-PER|SpaceAfter=No``.
        characters: whether a token is a character of a script without spaces.
        other_tag_columns: further columns that look like tags; for information.
        unread_tag_columns: those of them whose mentions the user is told of.
        num_columns: the number of columns of all rows; 0 where it is not known.
        further_columns: the names of the columns to write besides token and tag, where these are not their numbers.
    """

    separator: Literal["tab", "space", "runs"] = "tab"
    token_column: int = 0
    tag_column: int = -1
    scheme: str = "IOB2"
    numbered_from: int | None = None
    ids: bool = False
    texts: bool = False
    overlap: Overlap = "error"
    provenance: bool = False
    tag_columns: Annotated[tuple[int, ...], Check(_are_distinct, "different columns, outermost first, as 1,2")] = ()
    column_names: tuple[str, ...] = ()
    attribute: str = ""
    characters: bool = False
    other_tag_columns: tuple[int, ...] = field(default=(), compare=False)
    unread_tag_columns: tuple[int, ...] = field(default=(), compare=False)
    num_columns: int = field(default=0, compare=False)
    further_columns: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tag_columns", tuple(self.tag_columns))
        if self.tag_columns:
            object.__setattr__(self, "tag_column", self.tag_columns[0])

    @property
    def delimiter(self) -> str | None:
        """The string between two columns; None for any run of tabs and spaces."""
        return _DELIMITERS[self.separator]

    @property
    def is_simple(self) -> bool:
        """Whether tokens and tags are the cells of one column each, as they are."""
        return not (self.tag_columns or self.attribute or self.column_names)

    @property
    def heading(self) -> str:
        """The line that a file of this layout begins with, if any."""
        return f"# global.columns = {' '.join(self.column_names)}\n" if self.column_names else ""

    def describe(self) -> str:
        tag = "the last" if self.tag_column == -1 else str(self.tag_column)
        if self.tag_columns:
            tag = f"{' and '.join(map(str, self.tag_columns))}, outermost first"
        elif self.attribute:
            tag += f" after {self.attribute}="
        if self.other_tag_columns:
            tag += f" (tags in {', '.join(map(str, self.other_tag_columns))} too: `tag_column`)"
        unit = "character" if self.characters else "token"
        separator = _SEPARATOR_NAMES[self.separator]
        return f"CoNLL columns, {separator}, {unit} in column {self.token_column}, tag in {tag}, {self.scheme}"

    def column_name(self, column: int) -> str:
        """Return the name of a further column in the `columns` of a sentence."""
        return self.column_names[column] if self.column_names else str(column)

    def tag_indices(self, num_columns: int) -> tuple[int, ...]:
        """Return the tag columns, counted from the left."""
        return tuple(column % num_columns for column in self.tag_columns or (self.tag_column,))


# ------------------------------------------------------------------------------------------------------ blocks and rows


def read_blocks(
    path: Path, start: int = 0, stop: int | None = None, notes: Counter[str] | None = None
) -> Iterator[Block]:
    """The blocks of a file, see `read_line_chunks`; a ``-DOCSTART-`` line is a block of its own."""
    pending: list[str] = []  # lines of a block that continues in the next chunk
    pending_first = 0
    for first, lines in read_line_chunks(path, start, stop, notes):
        begin = 0
        breaks = [i for i, line in enumerate(lines) if not line or line.isspace()]
        text = "\n".join(lines)
        if "\0" in text or "\r" in text:
            check_characters(lines, first, path)
        if notes is not None and '""' in text and (num := sum('""' in cell for cell in _QUOTED.findall(text))):
            notes["cell in quotation marks as in CSV kept as it stands"] += num
        if DOCSTART in text:  # ends a sentence with or without empty lines around it
            breaks = sorted(breaks + [i for i, line in enumerate(lines) if _is_docstart(line)])
        for end in breaks:
            if pending:
                yield pending_first, pending + lines[begin:end]
                pending = []
            elif end > begin:
                yield first + begin, lines[begin:end]
            if lines[end] and _is_docstart(lines[end]):
                yield first + end, [lines[end]]
            begin = end + 1
        if begin < len(lines):
            pending_first = pending_first if pending else first + begin
            pending += lines[begin:]
    if pending:
        yield pending_first, pending


def split_row(row: str, delimiter: str | None) -> list[str]:
    """Split a row into cells."""
    return row.split(delimiter) if delimiter else _RUNS.split(row.strip(" \t"))


def is_numbering(cells: Sequence[str], first: int) -> bool:
    """Whether a column numbers the tokens of a sentence."""
    return all(cell == str(i) for i, cell in enumerate(cells, start=first))


def is_range_or_empty_node(number: str) -> bool:
    """Whether the number of a row is that of no word in CoNLL-U: ``3-4`` of several words, ``1.1`` of an empty node."""
    return _RANGE_OR_EMPTY_NODE.fullmatch(number) is not None


# ------------------------------------------------------------------------------------------------------------ comments


def _is_docstart(line: str) -> bool:
    return line.startswith(DOCSTART) and line[len(DOCSTART) : len(DOCSTART) + 1] in ("", " ", "\t")


def is_comment(line: str, dialect: ConllDialect | None = None) -> bool:
    """Whether a line is a comment or ``-DOCSTART-`` line, and not the row of a token that begins with ``#``."""
    if not line.startswith("#"):
        return _is_docstart(line)
    if "\t" in line:
        # MultiCoNER has the id and the domain of a sentence in such a comment, which a row ends with a tag instead.
        if line.startswith("# ") and not is_tag(line.rpartition("\t")[2]):
            return True
        # GermEval has the source of a sentence in one. A row has more columns, or a tag in the second.
        is_source = line[1] == "\t" and line.count("\t") == 1 and not is_tag(line[2:])
        return is_source and (dialect is None or dialect.num_columns != 2)
    if (dialect is not None and dialect.separator == "tab") or line.startswith((TEXT_COMMENT, "# sent_id = ")):
        return True
    cells = split_row(line, None)
    column = -1 if dialect is None else dialect.tag_column
    if column == -1:
        return len(cells) < 2 or not is_tag(cells[-1])
    has_usual_width = dialect is None or len(cells) == (dialect.num_columns or len(cells))
    return not (-len(cells) <= column < len(cells) and has_usual_width and is_tag(cells[column]))


def comment_name(line: str) -> str:
    """The name in a comment ``# name = value``."""
    return line.partition("=")[0][1:].strip()


def parse_column_names(line: str) -> tuple[str, ...]:
    """The names of columns in a comment ``# global.columns = ...``."""
    return tuple(line.partition("=")[2].split()) if comment_name(line) == "global.columns" else ()


def parse_sentence_id(line: str) -> str | None:
    """The id in a comment ``# sent_id = ...``."""
    is_id = line.startswith("#") and comment_name(line) == "sent_id"
    return line.partition("=")[2].strip() or None if is_id else None
