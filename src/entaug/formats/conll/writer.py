"""Writing sentences as rows of CoNLL columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import orjson

from entaug.core.data import PLACEHOLDER, Sentence
from entaug.core.spacing import infer_spaces_of_characters
from entaug.errors import LossError
from entaug.formats.base import ENTITY_FIELDS
from entaug.formats.conll.dialect import ConllDialect
from entaug.formats.conll.lines import (
    DOCSTART,
    PROVENANCE_COMMENT,
    TEXT_COMMENT,
    comment_name,
    is_comment,
    is_range_or_empty_node,
    is_writable_comment,
    parse_sentence_id,
)
from entaug.formats.conll.reader import EXTRA_ROWS
from entaug.formats.conll.tag_columns import are_levels_written, encode_levels, insert_attribute

__all__ = ["find_losses", "format_sentence"]


def format_sentence(sentence: Sentence, dialect: ConllDialect) -> str:
    """Format a sentence as comments, rows and an empty line."""
    try:
        if dialect.tag_columns:
            tags = encode_levels(sentence, dialect)
        else:
            tags = [sentence.iob(dialect.scheme, dialect.overlap)]
    except LossError as error:
        error.path = f"sentence {sentence.id or ' '.join(sentence.tokens[:6])}"
        raise
    delimiter = dialect.delimiter or "\t"
    is_plain = dialect.is_simple and not sentence.columns and dialect.num_columns in (0, 2)
    if is_plain and dialect.numbered_from is None and dialect.token_column == 0 and dialect.tag_column in (1, -1):
        rows = [f"{token}{delimiter}{tag}" for token, tag in zip(sentence.tokens, tags[0], strict=True)]
        width = 2
    else:
        columns = _arrange_columns(sentence, tags, dialect)
        width = len(columns)
        rows = [delimiter.join(cells) for cells in zip(*columns, strict=True)]
    body = "\n".join(rows)
    if (
        body.count(delimiter) != (width - 1) * len(rows)
        or body.count("\n") != len(rows) - 1
        or "\r" in body
        or "\0" in body
    ):
        _raise_for_characters(sentence, delimiter)
    if rows[0][0] == "#" or DOCSTART in body:
        _check_no_comment(sentence, rows, dialect)
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
    is_numbered = dialect.numbered_from is not None
    if dialect.numbered_from is not None:
        numbers = [str(i) for i in range(dialect.numbered_from, dialect.numbered_from + n)]
        by_index[0] = further.pop(dialect.column_name(0), numbers)
    by_index[dialect.token_column] = sentence.tokens
    if dialect.token_prefix:
        by_index[dialect.token_column] = [dialect.token_prefix + token for token in sentence.tokens]
    indices = dialect.tag_columns or (dialect.tag_column,)
    if dialect.attribute:
        name = dialect.column_name(indices[0] if indices[0] >= 0 else dialect.num_columns - 1)
        tag_columns = [insert_attribute(tag_columns[0], further.pop(name, None), dialect.attribute)]
    elif dialect.outside_tag != "O":
        tag_columns = [[dialect.outside_tag if tag == "O" else tag for tag in tags] for tags in tag_columns]
    width = dialect.num_columns or len(dialect.column_names) or len(further) + len(by_index) + len(tag_columns)
    for index, cells in zip(indices, tag_columns, strict=True):
        # In a sentence with fewer columns than the tag column needs it is the last.
        by_index[index % width if index < width else width - 1] = cells
    if len(by_index) < 1 + len(tag_columns) + is_numbered or max(by_index) >= width:
        raise LossError(
            f"a sentence of {width} columns has no place for the token in column {dialect.token_column} "
            f"and the tag in column {' and '.join(map(str, indices))}",
            path=sentence.id,
            remedy="name columns that exist",
        )
    unused = [i for i in range(width) if i not in by_index]
    names = _names_of_further(dialect, unused)
    placeholders = [PLACEHOLDER] * n
    for i, name in zip(unused, further if names is None else names, strict=True):
        by_index[i] = further.get(name, placeholders)
    return [by_index[i] for i in range(width)]


def _names_of_further(dialect: ConllDialect, unused: Sequence[int]) -> Sequence[str] | None:
    """The names of the columns of a file besides token and tags; None where each sentence may have its own."""
    if dialect.further_columns:
        return dialect.further_columns
    return [dialect.column_name(i) for i in unused] if dialect.column_names or dialect.num_columns else None


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
        is_row = row.count(delimiter) == dialect.num_columns - 1 and not any(c in row for c in "\n\r\0")
        is_placed = (rows[-1][0] if rows else 0) <= place <= len(sentence)
        if not (is_row and is_placed and is_range_or_empty_node(row.partition(delimiter)[0])):
            return []
        rows.append((place, row))
    return rows


def _raise_for_characters(sentence: Sentence, delimiter: str) -> NoReturn:
    """Raise the error for a character that cannot be written in a cell."""
    for token in sentence.tokens:
        if delimiter in token or any(character in token for character in "\n\r\0"):
            kind = "column separator" if delimiter in token else "NUL character" if "\0" in token else "line end"
            raise LossError(
                f"token {token!r} holds a {kind}",
                path=sentence.id,
                remedy="write JSON lines, or choose another --separator",
            )
    raise LossError(
        "a tag or a further column holds a column separator, a line end or a NUL character",
        path=sentence.id,
        remedy="write JSON lines",
    )


def _check_no_comment(sentence: Sentence, rows: list[str], dialect: ConllDialect) -> None:
    """Check that no row would be read as a comment."""
    for i, row in enumerate(rows):
        if (i == 0 or row.startswith(DOCSTART)) and is_comment(row, dialect):
            where = " at the start of a sentence" if i == 0 else ""
            raise LossError(
                f"token {sentence.tokens[i]!r}{where} would be read as a comment",
                path=sentence.id,
                remedy="write JSON lines" + (" or use --separator tab" if row.startswith("#") else ""),
            )


def _needs_text(sentence: Sentence, dialect: ConllDialect) -> bool:
    """Whether the white space of a sentence is known, and can be read only from a comment."""
    if sentence.spaces is None:
        return False
    return not (dialect.characters and sentence.spaces == infer_spaces_of_characters(sentence.tokens))


def _format_comments(sentence: Sentence, dialect: ConllDialect) -> str:
    text = ""
    generated = []
    if dialect.ids and sentence.id is not None:
        generated.append(f"# sent_id = {sentence.id}")
    if dialect.texts and _needs_text(sentence, dialect):
        generated.append(f"{TEXT_COMMENT}{sentence.text}")
    comments = sentence.layout.get("comments")
    # In JSON the field of this name may hold anything.
    for line in comments if isinstance(comments, list) else ():
        if not isinstance(line, str) or not is_writable_comment(line, dialect):
            continue
        generated = [comment for comment in generated if comment_name(comment) != comment_name(line)]
        text += f"{line}\n\n" if line.startswith(DOCSTART) else f"{line}\n"
    text += "".join(f"{line}\n" for line in generated if is_writable_comment(line, dialect))
    if dialect.provenance and sentence.provenance is not None:
        text += f"{PROVENANCE_COMMENT}{orjson.dumps(sentence.provenance.to_dict()).decode()}\n"
    return text


def find_losses(sentence: Sentence, dialect: ConllDialect) -> list[str]:
    """Name the parts of a sentence that `format_sentence` leaves out."""
    lost = [
        f"field {name!r}"
        for name, value in sentence.fields.items()
        if not (
            (name == "comments" and isinstance(value, list))
            or (name == EXTRA_ROWS and _extra_rows(sentence, dialect))
            or (name == "entaug" and dialect.provenance)
            or (name == ENTITY_FIELDS and dialect.tag_columns and are_levels_written(sentence, dialect))
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
