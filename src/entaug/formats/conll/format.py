"""CoNLL columns: a token a line, an empty line between sentences, tags in one column or several.

Reads tabs, single spaces or runs of both; any column for token and tag; tag-first files; comment lines;
``-DOCSTART-`` lines; CRLF; a byte-order mark; separator lines that hold white space. Other columns are kept. Nested
mentions stand in several tag columns, outermost first, as in GermEval; one column carries flat mentions only. Also
reads CoNLL-U Plus, whose first line names the columns; CoNLL-U with tags among other attributes (``name=B-PER``); and
files with a character of running text a line. How a file is laid out is found in `entaug.formats.conll.layout`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from entaug.alignment import align_spaces
from entaug.data import PLACEHOLDER, Mention, Sentence
from entaug.errors import InputError, LossError, TagError
from entaug.formats.base import ENTITY_FIELDS, BaseFormat, FormatCapabilities, Reading
from entaug.formats.conll.layout import detect_dialect, numbering
from entaug.formats.conll.lines import (
    DOCSTART,
    TEXT,
    ConllDialect,
    blocks,
    fits,
    is_aside,
    names_in,
    sent_id,
    set_asides_apart,
    split,
    what,
)
from entaug.formats.conll.tag_columns import carried, cut_out, level_tags, put_in, read_levels, told_by_levels
from entaug.provenance import Provenance
from entaug.spacing import infer_spaces_of_characters
from entaug.tags import InvalidTag, decode_canonical, flatten, is_tag

__all__ = ["Conll", "ConllDialect"]


class Conll(BaseFormat):
    """The CoNLL column format; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "conll"
    title = "CoNLL columns"
    extensions = (".conll", ".tsv", ".iob2", ".iob", ".bio", ".conllu", ".conllup")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=False, spaces=False)
    dialect_class = ConllDialect

    def recognises(self, path: Path) -> bool:
        """Whether it is a file: nearly anything could be rows of columns, and its faults are best told as such."""
        return not path.is_dir()

    def dialect(self, **options: Any) -> ConllDialect:
        """See `entaug.formats.base.BaseFormat.dialect`."""
        dialect: ConllDialect = super().dialect(**options)
        return replace(dialect, tag_column=dialect.tag_columns[0]) if dialect.tag_columns else dialect

    def look(self, path: Path, **options: Any) -> ConllDialect:
        """See `entaug.formats.base.BaseFormat.look`; raises where no column holds tags."""
        given = {name: value for name, value in options.items() if value is not None}
        return detect_dialect(path, self.dialect(**given), given)

    def read(
        self, path: Path, dialect: ConllDialect, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """The sentences of a file, streamed.

        Raises:
            InputError: ragged columns, an empty token, an id that was there before, no sentence at all; TagError for
                tags.
        """
        seen: dict[str, int] = {}
        lead: list[str] = []
        empty = True
        for first, lines in blocks(path, start, stop):
            if lines[0][0] in "#-" and is_aside(lines[0], dialect):
                number, rows = set_asides_apart(first, lines, lead, dialect)
                if dialect.names:  # what the file begins with is no comment of its first sentence
                    lead = [line for line in lead if names_in(line) != dialect.names]
                if not rows:
                    continue
            else:
                number, rows = first, lines
            sentence: Sentence | None = None
            try:
                sentence = _sentence(rows, dialect, reading, lead)
            except (_RowError, InvalidTag):
                # Not as fast and not as strict: there may be comments between the rows. What is still wrong is a fault.
                sentence = _second_look(str(path), number, rows, dialect, reading, lead)
            except InputError as error:
                error.path, error.line = str(path), number
                reading.fault(error)
            lead = []
            empty = False
            if sentence is not None and sentence.id is not None:
                sentence = _once(sentence, str(path), number, reading, seen)
            if sentence is not None:
                reading.line = number
                yield sentence
        if lead:
            reading.notes["comment after the last sentence left out"] += len(lead)
        if empty and stop is None:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def carried(self, sentence: Sentence, dialect: ConllDialect) -> Sentence:
        """The sentence without the mentions that `overlap` leaves out."""
        if dialect.overlap == "error" or sentence.is_flat:
            return sentence
        n = len(dialect.tag_columns)
        kept = carried(sentence.mentions, n, dialect.overlap) if n else flatten(sentence.mentions, dialect.overlap)
        if len(kept) == len(sentence.mentions):
            return sentence
        layout = {name: value for name, value in sentence.layout.items() if name != ENTITY_FIELDS}
        return sentence.with_(mentions=kept, layout=layout)

    def dump(self, sentence: Sentence, dialect: ConllDialect) -> str:
        """The rows of one sentence, comments before, an empty line after.

        Raises:
            LossError: mentions that tags cannot carry, or a token that holds the separator or a line end.
        """
        try:
            if dialect.tag_columns:
                tags = level_tags(sentence, dialect)
            else:
                tags = [sentence.iob(dialect.scheme, dialect.overlap)]
        except LossError as error:
            error.path = f"sentence {sentence.id or ' '.join(sentence.tokens[:6])}"
            raise
        separator = dialect.delimiter or "\t"
        if dialect.plain and not sentence.columns and dialect.numbered_from is None and dialect.token_column == 0:
            rows = [f"{token}{separator}{tag}" for token, tag in zip(sentence.tokens, tags[0], strict=True)]
            width = 2
        else:
            cells = _cells(sentence, tags, dialect)
            width = len(cells)
            rows = [separator.join(row) for row in zip(*cells, strict=True)]
        body = "\n".join(rows)
        if (
            body.count(separator) != (width - 1) * len(rows)
            or body.count("\n") != len(rows) - 1
            or "\r" in body
            or "\0" in body
        ):
            _refuse_token(sentence, separator)
        if rows[0][0] == "#" or DOCSTART in body:
            _refuse_asides(sentence, rows, dialect)
        comments = _comments(sentence, dialect)
        return f"{comments}{body}\n\n"

    def lost(self, sentence: Sentence, dialect: ConllDialect) -> list[str]:
        """The fields and, where the layout has no place for them, id, text and columns."""
        lost = [
            f"field {name!r}"
            for name, value in sentence.fields.items()
            if not (
                (name == "comments" and isinstance(value, list))
                or (name == "entaug" and dialect.provenance)
                or (name == ENTITY_FIELDS and dialect.tag_columns and told_by_levels(sentence, dialect))
            )
        ]
        if sentence.id is not None or sentence.spaces is not None:
            written = _comments(sentence, dialect)
            if sentence.id is not None and not any(sent_id(line) for line in written.split("\n")):
                lost.append("id")
            if sentence.spaces is not None and TEXT not in written and not _known(sentence, dialect):
                lost.append("text")
        if dialect.names:
            lost += [f"column {name!r}" for name in sentence.columns if name not in dialect.names]
        return lost


def _cells(sentence: Sentence, tags: list[list[str]], dialect: ConllDialect) -> list[Sequence[str]]:
    """All columns of a sentence in the order of the dialect."""
    n = len(sentence)
    special: dict[int, Sequence[str]] = {}
    columns = dict(sentence.columns)
    numbered = dialect.numbered_from is not None and dialect.column_name(0) not in columns
    if dialect.numbered_from is not None and numbered:
        special[0] = [str(i) for i in range(dialect.numbered_from, dialect.numbered_from + n)]
    special[dialect.token_column] = sentence.tokens
    if dialect.token_prefix:
        special[dialect.token_column] = [dialect.token_prefix + token for token in sentence.tokens]
    at = dialect.tag_columns or (dialect.tag_column,)
    if dialect.attribute:
        place = str(at[0]) if at[0] >= 0 else str(dialect.width - 1)
        name = dialect.names[at[0]] if dialect.names else place
        tags = [put_in(tags[0], columns.pop(name, None), dialect.attribute)]
    elif dialect.outside != "O":
        tags = [[dialect.outside if tag == "O" else tag for tag in of_column] for of_column in tags]
    if dialect.names:
        width = len(dialect.names)
        others = [columns.get(name, [PLACEHOLDER] * n) for name in dialect.names]
    else:
        width = len(columns) + len(special) + len(tags)
        others = list(columns.values())
    for column, cells in zip(at, tags, strict=True):
        # The tag column of a narrower sentence than usual is its last one.
        special[column % width if column < width else width - 1] = cells
    if len(special) < 1 + len(tags) + numbered or max(special) >= width:
        tag = " and ".join(map(str, at))
        raise LossError(
            f"a sentence of {width} columns has no place for the token in column {dialect.token_column} "
            f"and the tag in column {tag}",
            path=sentence.id,
            remedy="name columns that there are",
        )
    if dialect.names:
        return [special.get(i, others[i]) for i in range(width)]
    rest = iter(others)
    return [special[i] if i in special else next(rest) for i in range(width)]


def _refuse_token(sentence: Sentence, separator: str) -> None:
    for token in sentence.tokens:
        if separator in token or any(sign in token for sign in "\n\r\0"):
            what = "column separator" if separator in token else "NUL character" if "\0" in token else "line end"
            raise LossError(
                f"token {token!r} holds a {what}",
                path=sentence.id,
                remedy="write JSON lines, or choose another --separator",
            )
    raise LossError(
        "a tag or a further column holds a separator, or what cannot be written",
        path=sentence.id,
        remedy="write JSON lines",
    )


def _refuse_asides(sentence: Sentence, rows: list[str], dialect: ConllDialect) -> None:
    """Refuse rows that would be read as something else."""
    for i, row in enumerate(rows):
        if (i == 0 or row.startswith(DOCSTART)) and is_aside(row, dialect):
            where = " at the start of a sentence" if i == 0 else ""
            raise LossError(
                f"token {sentence.tokens[i]!r}{where} would be read as a comment",
                path=sentence.id,
                remedy="write JSON lines" + (" or use --separator tab" if row.startswith("#") else ""),
            )


def _known(sentence: Sentence, dialect: ConllDialect) -> bool:
    """Whether the spaces of a sentence are those that it is read with."""
    return dialect.characters and sentence.spaces == infer_spaces_of_characters(sentence.tokens)


def _comments(sentence: Sentence, dialect: ConllDialect) -> str:
    text = ""
    own = []
    if dialect.ids and sentence.id is not None:
        own.append(f"# sent_id = {sentence.id}")
    if dialect.texts and sentence.spaces is not None and not _known(sentence, dialect):
        own.append(f"{TEXT}{sentence.text}")
    comments = sentence.layout.get("comments")
    # A field of that name may come from elsewhere, as JSON, and be anything.
    for line in comments if isinstance(comments, list) else ():
        if not isinstance(line, str) or not fits(line, dialect):
            continue
        own = [one for one in own if what(one) != what(line)]
        text += f"{line}\n\n" if line.startswith(DOCSTART) else f"{line}\n"
    text += "".join(f"{line}\n" for line in own if fits(line, dialect))
    if dialect.provenance and sentence.provenance is not None:
        text += f"# entaug = {orjson.dumps(sentence.provenance.to_dict()).decode()}\n"
    return text


# ------------------------------------------------------------------------------------------------------------- reading


class _RowError(Exception):
    """The rows of a sentence do not have the same number of columns, or too few."""


def _sentence(rows: list[str], dialect: ConllDialect, reading: Reading, lead: list[str]) -> Sentence:
    separator = dialect.delimiter
    try:
        if separator:
            columns = list(zip(*[row.split(separator) for row in rows], strict=True))
        else:
            columns = list(zip(*[split(row, None) for row in rows], strict=True))
    except ValueError:
        raise _RowError from None
    width = len(columns)
    tag_column = dialect.tag_column
    if width < 2 or tag_column >= width or dialect.token_column >= width:
        raise _RowError
    tokens = columns[dialect.token_column]
    spaces = infer_spaces_of_characters(tokens) if dialect.characters and "" not in tokens else None
    if not dialect.plain:
        return _special(columns, dialect, reading, lead, spaces)
    tags = columns[tag_column]
    if "" in tokens:
        raise _empty(tokens)
    mentions = decode_canonical(tags, dialect.scheme, reading.repaired if reading.repair else None)
    if width == 2 and not lead:
        return Sentence(tokens, mentions, spaces=spaces)
    others = {
        str(i): values
        for i, values in enumerate(columns)
        if i not in (dialect.token_column, tag_column % width)
        and not (i == 0 and dialect.numbered_from is not None and numbering(values, dialect.numbered_from))
    }
    if not lead:
        return Sentence(tokens, mentions, columns=others, spaces=spaces)
    return _with_comments(Sentence(tokens, mentions, columns=others, spaces=spaces), lead)


def _empty(tokens: Sequence[str]) -> InvalidTag:
    return InvalidTag(tokens.index(""), "the token is empty", "give it one, or delete the line")


def _special(
    columns: list[tuple[str, ...]],
    dialect: ConllDialect,
    reading: Reading,
    lead: list[str],
    spaces: tuple[str, ...] | None,
) -> Sentence:
    """A sentence whose rows are not just a token, a tag and what else there is."""
    width = len(columns)
    at = dialect.tags_at(width)
    fixed = len(dialect.names) or (dialect.width if dialect.attribute else 0)  # where a column is called by its name
    if max(dialect.tag_columns, default=0) >= width or fixed not in (0, width):
        raise _RowError
    tokens = columns[dialect.token_column]
    prefix = dialect.token_prefix
    if prefix:
        odd = next((i for i, token in enumerate(tokens) if not token.startswith(prefix)), None)
        if odd is not None:
            raise InvalidTag(odd, f"no {prefix!r} before the token {tokens[odd]!r}", "mend the line")
        tokens = tuple(token[len(prefix) :] for token in tokens)
    if "" in tokens:
        raise _empty(tokens)
    repaired = reading.repaired if reading.repair else None
    layout: dict[str, Any] = {}
    left: list[str] = []
    mentions: Sequence[Mention]
    if dialect.tag_columns:
        mentions, levels = read_levels([columns[i] for i in at], dialect.scheme, repaired, reading.notes)
        if levels:
            layout[ENTITY_FIELDS] = levels
    else:
        tags: Sequence[str] = columns[at[0]]
        if dialect.attribute:
            tags, left = cut_out(tags, dialect.attribute)
        elif dialect.outside != "O":
            tags = ["O" if tag == dialect.outside else tag for tag in tags]
        mentions = decode_canonical(tags, dialect.scheme, repaired)
    others: dict[str, Sequence[str]] = {}
    for i, values in enumerate(columns):
        if i in at:
            if any(cell != f"{dialect.attribute}=" for cell in left):
                others[dialect.column_name(i)] = tuple(left)
        elif i != dialect.token_column and not (
            i == 0 and dialect.numbered_from is not None and numbering(values, dialect.numbered_from)
        ):
            others[dialect.column_name(i)] = values
    sentence = Sentence(tokens, mentions, columns=others, spaces=spaces, layout=layout)
    return _with_comments(sentence, lead) if lead else sentence


def _with_comments(sentence: Sentence, lead: list[str]) -> Sentence:
    name = None
    spaces = None
    provenance: Provenance | None = None
    kept = []
    for line in lead:
        name = sent_id(line) or name
        if line.startswith(TEXT):
            spaces = align_spaces(sentence.tokens, line[len(TEXT) :])
        if line.startswith("# entaug = "):
            try:
                provenance = Provenance.from_dict(orjson.loads(line[len("# entaug = ") :]))
                continue
            except (orjson.JSONDecodeError, TypeError, ValueError):
                pass
        kept.append(line)
    layout = {**sentence.layout, "comments": kept} if kept else sentence.layout
    spaces = sentence.spaces if spaces is None else spaces
    return sentence.with_(id=name, spaces=spaces, layout=layout, provenance=provenance)


def _once(sentence: Sentence, path: str, number: int, reading: Reading, seen: dict[str, int]) -> Sentence | None:
    """A sentence whose id is its own, or has been dropped; None where that is a fault."""
    try:
        if not reading.repeats(sentence.id, number, seen):
            return sentence
    except InputError as error:
        error.path, error.line = path, number
        reading.fault(error)
        return None
    layout = dict(sentence.layout)
    kept = [line for line in layout.pop("comments") if not sent_id(line)]
    return sentence.with_(id=None, layout={**layout, "comments": kept} if kept else layout)


def _second_look(
    path: str, first: int, lines: list[str], dialect: ConllDialect, reading: Reading, lead: list[str]
) -> Sentence | None:
    """A sentence whose rows did not fit at once: take comments out, then say exactly which line is at fault."""
    numbered = [(first + i, line) for i, line in enumerate(lines)]
    rows = [(number, line) for number, line in numbered if not is_aside(line, dialect)]
    aside = [line for _, line in numbered if is_aside(line, dialect)]
    if not rows:
        return None
    try:
        return _sentence([line for _, line in rows], dialect, reading, [*lead, *aside])
    except InvalidTag as fault:
        line = rows[fault.index][0]
        reading.fault(TagError(fault.message, path=path, line=line, remedy=fault.remedy))
    except _RowError:
        narrow = _narrowed(rows, dialect) if reading.repair else None
        if narrow is None:
            reading.fault(_ragged(path, rows, dialect))
        else:
            reading.repaired["ragged rows, only token and tag kept"] += 1
            return _second_look(path, first, narrow, replace(dialect, separator="tab"), reading, [*lead, *aside])
    except InputError as error:
        error.path, error.line = path, rows[0][0]
        reading.fault(error)
    return None


def _narrowed(rows: list[tuple[int, str]], dialect: ConllDialect) -> list[str] | None:
    """Token and tag of rows that differ in their other columns, where both can be told: the first and the last."""
    if dialect.token_column != 0 or dialect.tag_column != -1 or not dialect.plain:
        return None
    cells = [split(line, dialect.delimiter) for _, line in rows]
    if any(len(row) < 2 or not is_tag(row[-1]) for row in cells):
        return None
    return [f"{row[0]}\t{row[-1]}" for row in cells]


def _ragged(path: str, rows: list[tuple[int, str]], dialect: ConllDialect) -> InputError:
    widths = [len(split(line, dialect.delimiter)) for _, line in rows]
    usual = Counter(widths).most_common(1)[0][0]
    needed = max(2, dialect.token_column + 1, *(column + 1 for column in (dialect.tag_column, *dialect.tag_columns)))
    if dialect.names:
        usual = needed = len(dialect.names)
    for (number, _), width in zip(rows, widths, strict=True):
        if width != usual or width < needed:
            wanted = max(usual, needed)
            return InputError(
                f"{width} column{'s' * (width != 1)} where {wanted} are expected",
                path=path,
                line=number,
                remedy="mend the line, or name the --separator and columns",
            )
    return InputError("rows do not fit", path=path, line=rows[0][0])
