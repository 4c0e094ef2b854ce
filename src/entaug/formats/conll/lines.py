"""CoNLL columns, line by line: what a layout says, which lines belong together, which are comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from entaug.files.streams import check_no_nul, read_line_chunks
from entaug.params import Check, validate
from entaug.tags import Overlap, is_tag

__all__ = [
    "DOCSTART",
    "TEXT",
    "Block",
    "ConllDialect",
    "blocks",
    "fits",
    "is_aside",
    "names_in",
    "sent_id",
    "set_asides_apart",
    "split",
    "what",
]

DOCSTART = "-DOCSTART-"
TEXT = "# text = "
_RUNS = re.compile(r"[ \t]+")
Block = tuple[int, list[str]]
"""Lines that belong together, and the number of the first."""
_DELIMITERS = {"tab": "\t", "space": " ", "runs": None}


def _are_distinct(columns: Sequence[object]) -> bool:
    return len(set(columns)) == len(columns) and all(type(column) is int for column in columns)


@dataclass(frozen=True)
class ConllDialect:
    """Layout of a CoNLL file.

    Args:
        separator: the separator of columns: ``"tab"``, ``"space"``, or ``"runs"`` of tabs and spaces.
        token_column: the column of the tokens, from 0.
        tag_column: the column of the tags, from 0; -1 for the last.
        scheme: the tag scheme.
        numbered_from: the first number where column 0 numbers the tokens of a sentence, which is done anew on writing.
        ids: whether ``# sent_id = ...`` comments hold the ids of sentences.
        texts: whether ``# text = ...`` comments hold the text of sentences with its white space.
        overlap: which nested and discontinuous mentions to write, see `entaug.tags.flatten`; where there are several
            tag columns, which of those that need more columns.
        provenance: whether to write the provenance of augmented sentences as a comment.
        tag_columns: the columns of nested mentions, outermost first, as 1,2; they override `tag_column`.
        names: the names of all columns, where the file begins with ``# global.columns = ...``.
        attribute: the name under which the tag column holds tags beside other attributes, as in
            ``name=B-PER|SpaceAfter=No``.
        outside: what the tag column has for O.
        token_prefix: what precedes each token in its column, as ``token=``.
        characters: whether a token is a character of a script without spaces.
        also_tags: further columns that look like tags; for information.
        width: the number of columns of most rows; 0 where no file was read.
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
    names: tuple[str, ...] = ()
    attribute: str = ""
    outside: str = "O"
    token_prefix: str = ""
    characters: bool = False
    also_tags: tuple[int, ...] = field(default=(), compare=False)
    width: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        validate(self)
        object.__setattr__(self, "tag_columns", tuple(self.tag_columns))

    @property
    def delimiter(self) -> str | None:
        """The string between two columns; None for any run of tabs and spaces."""
        return _DELIMITERS[self.separator]

    def describe(self) -> str:
        """Return the layout in words."""
        separator = {"tab": "tabs", "space": "spaces", "runs": "runs of tabs and spaces"}[self.separator]
        tag = "the last" if self.tag_column == -1 else str(self.tag_column)
        if self.tag_columns:
            tag = f"{' and '.join(map(str, self.tag_columns))}, outermost first"
        elif self.attribute:
            tag += f" after {self.attribute}="
        also = f" (tags in {', '.join(map(str, self.also_tags))} too: --tag-column)" if self.also_tags else ""
        unit = "character" if self.characters else "token"
        return f"CoNLL columns, {separator}, {unit} in column {self.token_column}, tag in {tag}{also}, {self.scheme}"

    @property
    def plain(self) -> bool:
        """Whether a row is a token, a tag and what else there is, and nothing has to be taken apart."""
        special = self.tag_columns or self.attribute or self.names or self.token_prefix
        return not special and self.outside == "O"

    @property
    def heading(self) -> str:
        """What a file of this layout begins with."""
        return f"# global.columns = {' '.join(self.names)}\n" if self.names else ""

    def column_name(self, column: int) -> str:
        """What a sentence calls one of its further columns."""
        return self.names[column] if self.names else str(column)

    def tags_at(self, width: int) -> tuple[int, ...]:
        """The tag columns of rows of so many columns."""
        return tuple(column % width for column in self.tag_columns or (self.tag_column,))


def blocks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[Block]:
    """Runs of lines that hold something, each with the number of its first line."""
    held: list[str] = []
    held_first = 0
    for first, lines in read_line_chunks(path, start, stop):
        begin = 0
        breaks = [i for i, line in enumerate(lines) if not line or line.isspace()]
        joined = "\n".join(lines)
        if "\0" in joined:
            check_no_nul(lines, first, path)
        if DOCSTART in joined:  # it ends a sentence with or without empty lines around it
            breaks = sorted(breaks + [i for i, line in enumerate(lines) if _is_document(line)])
        for blank in breaks:
            if held:
                yield held_first, held + lines[begin:blank]
                held = []
            elif blank > begin:
                yield first + begin, lines[begin:blank]
            if lines[blank] and _is_document(lines[blank]):
                yield first + blank, [lines[blank]]
            begin = blank + 1
        if begin < len(lines):
            if not held:
                held_first = first + begin
            held = held + lines[begin:]
    if held:
        yield held_first, held


def split(line: str, separator: str | None) -> list[str]:
    """The cells of a row."""
    return line.split(separator) if separator else _RUNS.split(line.strip(" \t"))


# ------------------------------------------------------------------------------------------------------------ comments


def _is_document(line: str) -> bool:
    return line.startswith(DOCSTART) and line[len(DOCSTART) : len(DOCSTART) + 1] in ("", " ", "\t")


def is_aside(line: str, dialect: ConllDialect | None = None) -> bool:
    """Whether a line is a comment or a document mark, and no row of a token that starts with the same sign."""
    if not line.startswith("#"):
        return _is_document(line)
    if "\t" in line:
        # GermEval tells a sentence's source so. A row has more columns, or a tag in the second of two.
        source = line[1] == "\t" and line.count("\t") == 1 and not is_tag(line[2:])
        return source and (dialect is None or dialect.width != 2)
    if dialect is not None and dialect.separator == "tab":
        return True
    if line.startswith((TEXT, "# sent_id = ")):
        return True
    cells = split(line, None)
    if dialect is None or dialect.tag_column == -1:
        return len(cells) < 2 or not is_tag(cells[-1])
    fitting = -len(cells) <= dialect.tag_column < len(cells) and len(cells) in (
        dialect.width,
        dialect.width or len(cells),
    )
    return not (fitting and is_tag(cells[dialect.tag_column]))


def set_asides_apart(first: int, lines: list[str], lead: list[str], dialect: ConllDialect) -> Block:
    """Move the comments at the head of a block into `lead`; what is left are rows."""
    begin = 0
    while begin < len(lines) and is_aside(lines[begin], dialect):
        lead.append(lines[begin])
        begin += 1
    return first + begin, lines[begin:]


def fits(line: str, dialect: ConllDialect) -> bool:
    """Whether a line can be written as a comment and will be read as one."""
    return not any(sign in line for sign in "\n\r\0") and is_aside(line, dialect)


def what(line: str) -> str:
    """The name in a comment of name and value."""
    return line.partition("=")[0][1:].strip()


def names_in(line: str) -> tuple[str, ...]:
    """The names of the columns, where a comment tells them."""
    return tuple(line.partition("=")[2].split()) if what(line) == "global.columns" else ()


def sent_id(line: str) -> str | None:
    """The id of a sentence, where a comment tells it."""
    return line.partition("=")[2].strip() or None if line.startswith("#") and what(line) == "sent_id" else None
