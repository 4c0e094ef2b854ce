"""Lines of CoNLL files: blocks of rows, cells of rows, comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from entaug.core.tags import is_tag
from entaug.files.streams import check_characters, read_line_chunks
from entaug.formats.conll.dialect import ConllDialect

__all__ = [
    "DOCSTART",
    "PROVENANCE_COMMENT",
    "TEXT_COMMENT",
    "Block",
    "comment_name",
    "is_comment",
    "is_numbering",
    "is_range_or_empty_node",
    "is_writable_comment",
    "last_break",
    "parse_column_names",
    "parse_sentence_id",
    "read_blocks",
    "split_comments",
    "split_row",
]

DOCSTART = "-DOCSTART-"
TEXT_COMMENT = "# text = "
PROVENANCE_COMMENT = "# entaug = "
Block = tuple[int, list[str]]
"""The lines between two empty ones, and the number of the first."""
_BOM = b"\xef\xbb\xbf"
_RUNS = re.compile(r"[ \t]+")
_QUOTED = re.compile(r'(?m)(?:^|(?<=[ \t]))"((?:[^"\s]|"")*+)"(?=[ \t]|$)')  # a cell as CSV has it
_RANGE_OR_EMPTY_NODE = re.compile(r"[0-9]{1,9}[-.][0-9]{1,9}")


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
            if not pending:
                pending_first = first + begin
            pending = pending + lines[begin:]
    if pending:
        yield pending_first, pending


def last_break(data: bytes) -> int:
    """Return where lines can be cut so that all sentences and their comments are whole."""
    end = len(data)
    while True:
        at = max(data.rfind(b"\n\n", 0, end), data.rfind(b"\n\r\n", 0, end))
        if at < 0:
            return 0
        line = data[data.rfind(b"\n", 0, at) + 1 : at].removeprefix(_BOM)
        if line.strip() and not line.startswith((b"#", DOCSTART.encode())):
            return at + (2 if data[at + 1 : at + 2] == b"\n" else 3)
        end = at + 1


def split_row(row: str, delimiter: str | None) -> list[str]:
    """Split a row into cells."""
    return row.split(delimiter) if delimiter else _RUNS.split(row.strip(" \t"))


def is_numbering(cells: Sequence[str], first: int) -> bool:
    """Return whether a column numbers the tokens of a sentence."""
    return all(cell == str(i) for i, cell in enumerate(cells, start=first))


def is_range_or_empty_node(number: str) -> bool:
    """Whether the number of a row is that of no word in CoNLL-U: ``3-4`` of several words, ``1.1`` of an empty node."""
    return _RANGE_OR_EMPTY_NODE.fullmatch(number) is not None


# ------------------------------------------------------------------------------------------------------------ comments


def _is_docstart(line: str) -> bool:
    return line.startswith(DOCSTART) and line[len(DOCSTART) : len(DOCSTART) + 1] in ("", " ", "\t")


def is_comment(line: str, dialect: ConllDialect | None = None) -> bool:
    """Return whether a line is a comment or ``-DOCSTART-`` line, and not the row of a token that begins with ``#``."""
    if not line.startswith("#"):
        return _is_docstart(line)
    if "\t" in line:
        # GermEval has the source of a sentence in such a comment. A row has more columns, or a tag in the second.
        is_source = line[1] == "\t" and line.count("\t") == 1 and not is_tag(line[2:])
        return is_source and (dialect is None or dialect.num_columns != 2)
    if dialect is not None and dialect.separator == "tab":
        return True
    if line.startswith((TEXT_COMMENT, "# sent_id = ")):
        return True
    cells = split_row(line, None)
    if dialect is None or dialect.tag_column == -1:
        return len(cells) < 2 or not is_tag(cells[-1])
    has_tag_column = -len(cells) <= dialect.tag_column < len(cells)
    has_usual_width = len(cells) == (dialect.num_columns or len(cells))
    return not (has_tag_column and has_usual_width and is_tag(cells[dialect.tag_column]))


def split_comments(block: Block, dialect: ConllDialect) -> tuple[list[str], Block]:
    """Split a block into the comments at its beginning and the rest."""
    first, lines = block
    begin = 0
    while begin < len(lines) and is_comment(lines[begin], dialect):
        begin += 1
    return lines[:begin], (first + begin, lines[begin:])


def is_writable_comment(line: str, dialect: ConllDialect) -> bool:
    """Return whether a line will be read as a comment where it is written as one."""
    return not any(character in line for character in "\n\r\0") and is_comment(line, dialect)


def comment_name(line: str) -> str:
    """Return the name in a comment ``# name = value``."""
    return line.partition("=")[0][1:].strip()


def parse_column_names(line: str) -> tuple[str, ...]:
    """Return the names of columns in a comment ``# global.columns = ...``."""
    return tuple(line.partition("=")[2].split()) if comment_name(line) == "global.columns" else ()


def parse_sentence_id(line: str) -> str | None:
    """Return the id in a comment ``# sent_id = ...``."""
    is_id = line.startswith("#") and comment_name(line) == "sent_id"
    return line.partition("=")[2].strip() or None if is_id else None
