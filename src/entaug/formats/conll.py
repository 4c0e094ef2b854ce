"""CoNLL columns: a token a line, an empty line between sentences, tags in one column.

Reads tabs, single spaces or runs of both; any column for token and tag; tag-first files; comment lines;
``-DOCSTART-`` lines; CRLF; a byte-order mark; separator lines that hold white space. Other columns are kept.
Carries flat mentions only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from entaug.align import spaces_in
from entaug.data import Sentence
from entaug.errors import InputError, LossError, ParameterError, TagError
from entaug.formats.base import Carries, Reading
from entaug.formats.files import line_chunks
from entaug.tags import Evidence, TagFault, decode_at, encode, flatten, is_tag, scheme_name

__all__ = ["Conll", "ConllDialect"]

_LOOK = 300  # sentences looked at to find a file's layout
_DOCSTART = "-DOCSTART-"
_TEXT = "# text = "
_RUNS = re.compile(r"[ \t]+")
_SEPARATORS = {"tab": "\t", "space": " ", "runs": None}
Block = tuple[int, list[str]]


@dataclass(frozen=True)
class ConllDialect:
    r"""How a CoNLL file is laid out.

    Args:
        separator: ``"\\t"``, ``" "``, or None for any run of tabs and spaces.
        token_column: 0-based.
        tag_column: 0-based; -1 for the last.
        scheme: the tag scheme.
        numbered_from: the first number, where column 0 numbers the tokens of a sentence (it is renumbered on writing).
        ids: whether sentences are named by ``# sent_id = ...`` comments.
        texts: whether their text, with its spaces, stands in ``# text = ...`` comments.
        overlap: what to write of nested and discontinuous mentions: see `entaug.tags.flatten`.
        provenance: whether to write the provenance of augmented sentences as a comment.
        also_tags: other columns that look like tags, for people to know of.
        width: how many columns most rows have; 0 when no file was looked at.
    """

    separator: str | None = "\t"
    token_column: int = 0
    tag_column: int = -1
    scheme: str = "IOB2"
    numbered_from: int | None = None
    ids: bool = False
    texts: bool = False
    overlap: str = "error"
    provenance: bool = False
    also_tags: tuple[int, ...] = field(default=(), compare=False)
    width: int = field(default=0, compare=False)

    def describe(self) -> str:
        """One line for people."""
        separator = {"\t": "tabs", " ": "spaces", None: "runs of tabs and spaces"}[self.separator]
        tag = "the last" if self.tag_column == -1 else str(self.tag_column)
        also = f" (tags in {', '.join(map(str, self.also_tags))} too: --tag-column)" if self.also_tags else ""
        return f"CoNLL columns, {separator}, token in column {self.token_column}, tag in {tag}{also}, {self.scheme}"


def _options(dialect: ConllDialect, given: dict[str, Any]) -> ConllDialect:
    changes = {name: value for name, value in given.items() if value is not None}
    if "separator" in changes:
        if changes["separator"] not in _SEPARATORS:
            raise ParameterError(f"separator must be one of {', '.join(_SEPARATORS)}, not {changes['separator']!r}")
        changes["separator"] = _SEPARATORS[changes["separator"]]
    if "scheme" in changes:
        changes["scheme"] = scheme_name(changes["scheme"])
    return replace(dialect, **changes)


class Conll:
    """The CoNLL column format; see `entaug.formats.base.Format` for the methods."""

    name = "conll"
    title = "CoNLL columns"
    extensions = (".conll", ".tsv", ".iob2", ".iob", ".bio", ".conllu", ".conllup")
    carries = Carries(nested=False, discontinuous=False, columns=True, fields=False, spaces=False)

    def recognises(self, path: Path) -> bool:
        """Whether it is a file: nearly anything could be rows of columns, and its faults are best told as such."""
        return not path.is_dir()

    def dialect(self, **options: Any) -> ConllDialect:
        """A dialect from options given by hand: separator (tab, space, runs), token_column, tag_column, scheme ..."""
        return _options(ConllDialect(), options)

    def look(self, path: Path, **options: Any) -> ConllDialect:
        """Find the layout from the first few hundred sentences (more when these have no mention).

        Raises:
            InputError: no sentence in the file, or no column that holds tags.
        """
        blocks = _blocks(path)
        sample = []
        ids = texts = False
        for block in blocks:
            ids = ids or any(line.startswith("#") and _sent_id(line) for line in block[1])
            texts = texts or any(line.startswith(_TEXT) for line in block[1])
            rows = [(block[0] + i, line) for i, line in enumerate(block[1]) if not _is_aside(line)]
            if rows:
                sample.append(rows)
            if len(sample) >= _LOOK:
                break
        if not sample:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")
        given = _options(ConllDialect(), options)
        separator = given.separator if options.get("separator") else _find_separator(sample)
        split = [[_split(line, separator) for _, line in rows] for rows in sample]
        widths = Counter(len(row) for rows in split for row in rows)
        width = widths.most_common(1)[0][0]
        regular = [rows for rows in split if all(len(row) == width for row in rows)]
        dialect = replace(given, separator=separator)
        dialect = _find_columns(dialect, options, regular or split, width, f"{path}", sample[0][0])
        dialect = replace(dialect, ids=ids, texts=texts, width=width)
        if not options.get("scheme"):
            dialect = replace(dialect, scheme=_find_scheme(dialect, split, blocks))
        return dialect

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
        for first, lines in _blocks(path, start, stop):
            if lines[0][0] in "#-" and _is_aside(lines[0], dialect):
                number, rows = _set_asides_apart(first, lines, lead, dialect)
                if not rows:
                    continue
            else:
                number, rows = first, lines
            sentence: Sentence | None = None
            try:
                sentence = _sentence(rows, dialect, reading, lead)
            except (_RowError, TagFault):
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
        if dialect.overlap == "error" or sentence.flat:
            return sentence
        return sentence.with_(mentions=flatten(sentence.mentions, dialect.overlap))

    def dump(self, sentence: Sentence, dialect: ConllDialect) -> str:
        """The rows of one sentence, comments before, an empty line after.

        Raises:
            LossError: mentions that tags cannot carry, or a token that holds the separator or a line end.
        """
        try:
            tags = encode(sentence, dialect.scheme, dialect.overlap)
        except LossError as error:
            error.path = f"sentence {sentence.id or ' '.join(sentence.tokens[:6])}"
            raise
        separator = dialect.separator or "\t"
        if not sentence.columns and dialect.numbered_from is None and dialect.token_column == 0:
            rows = [f"{token}{separator}{tag}" for token, tag in zip(sentence.tokens, tags, strict=True)]
            width = 2
        else:
            cells = _cells(sentence, tags, dialect)
            width = len(cells)
            rows = [separator.join(row) for row in zip(*cells, strict=True)]
        body = "\n".join(rows)
        if body.count(separator) != (width - 1) * len(rows) or body.count("\n") != len(rows) - 1 or "\r" in body:
            _refuse_token(sentence, separator)
        if rows[0][0] == "#" or _DOCSTART in body:
            _refuse_asides(sentence, rows, dialect)
        comments = _comments(sentence, dialect)
        return f"{comments}{body}\n\n"

    def lost(self, sentence: Sentence, dialect: ConllDialect) -> list[str]:
        """The fields and, where the layout has no comments for them, id and text."""
        lost = [
            f"field {name!r}"
            for name, value in sentence.meta.items()
            if name != "comments" or not isinstance(value, list)
        ]
        if "entaug" in sentence.meta and dialect.provenance:
            lost.remove("field 'entaug'")
        if sentence.id is not None or sentence.spaces is not None:
            written = _comments(sentence, dialect)
            if sentence.id is not None and not any(_sent_id(line) for line in written.split("\n")):
                lost.append("id")
            if sentence.spaces is not None and _TEXT not in written:
                lost.append("text")
        return lost


def _cells(sentence: Sentence, tags: list[str], dialect: ConllDialect) -> list[Sequence[str]]:
    """All columns of a sentence in the order of the dialect."""
    special: dict[int, Sequence[str]] = {}
    if dialect.numbered_from is not None and "0" not in sentence.columns:
        special[0] = [str(i) for i in range(dialect.numbered_from, dialect.numbered_from + len(tags))]
    others = list(sentence.columns.values())
    special[dialect.token_column] = sentence.tokens
    # The tag column of a narrower sentence than usual is its last one.
    width = len(others) + len(special) + 1
    special[dialect.tag_column % width if dialect.tag_column < width else width - 1] = tags
    if len(special) < 2 + (dialect.numbered_from is not None and "0" not in sentence.columns) or max(special) >= width:
        raise LossError(
            f"a sentence of {width} columns has no place for the token in column {dialect.token_column} "
            f"and the tag in column {dialect.tag_column}",
            path=sentence.id,
            remedy="name two columns that there are",
        )
    rest = iter(others)
    return [special[i] if i in special else next(rest) for i in range(width)]


def _refuse_token(sentence: Sentence, separator: str) -> None:
    for token in sentence.tokens:
        if separator in token or "\n" in token or "\r" in token:
            raise LossError(
                f"token {token!r} holds a {'column separator' if separator in token else 'line end'}",
                path=sentence.id,
                remedy="write JSON lines, or choose another --separator",
            )
    raise LossError("a tag or a further column holds a separator", path=sentence.id, remedy="write JSON lines")


def _refuse_asides(sentence: Sentence, rows: list[str], dialect: ConllDialect) -> None:
    """Refuse rows that would be read as something else."""
    for i, row in enumerate(rows):
        if (i == 0 or row.startswith(_DOCSTART)) and _is_aside(row, dialect):
            where = " at the start of a sentence" if i == 0 else ""
            raise LossError(
                f"token {sentence.tokens[i]!r}{where} would be read as a comment",
                path=sentence.id,
                remedy="write JSON lines" + (" or use --separator tab" if row.startswith("#") else ""),
            )


def _comments(sentence: Sentence, dialect: ConllDialect) -> str:
    text = ""
    own = []
    if dialect.ids and sentence.id is not None:
        own.append(f"# sent_id = {sentence.id}")
    if dialect.texts and sentence.spaces is not None:
        own.append(f"{_TEXT}{sentence.text}")
    comments = sentence.meta.get("comments")
    # A field of that name may come from elsewhere, as JSON, and be anything.
    for line in comments if isinstance(comments, list) else ():
        if not isinstance(line, str) or not _fits(line, dialect):
            continue
        own = [one for one in own if _what(one) != _what(line)]
        text += f"{line}\n\n" if line.startswith(_DOCSTART) else f"{line}\n"
    text += "".join(f"{line}\n" for line in own if _fits(line, dialect))
    if dialect.provenance and "entaug" in sentence.meta:
        text += f"# entaug = {orjson.dumps(sentence.meta['entaug']).decode()}\n"
    return text


def _what(line: str) -> str:
    """The name in a comment of name and value."""
    return line.partition("=")[0][1:].strip()


def _fits(line: str, dialect: ConllDialect) -> bool:
    """Whether a line can be written as a comment and will be read as one."""
    return "\n" not in line and "\r" not in line and _is_aside(line, dialect)


# ------------------------------------------------------------------------------------------------------------- reading


class _RowError(Exception):
    """The rows of a sentence do not have the same number of columns, or too few."""


def _blocks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[Block]:
    """Runs of lines that hold something, each with the number of its first line."""
    held: list[str] = []
    held_first = 0
    for first, lines in line_chunks(path, start, stop):
        begin = 0
        breaks = [i for i, line in enumerate(lines) if not line or line.isspace()]
        if _DOCSTART in "\n".join(lines):  # it ends a sentence with or without empty lines around it
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


def _is_document(line: str) -> bool:
    return line.startswith(_DOCSTART) and line[len(_DOCSTART) : len(_DOCSTART) + 1] in ("", " ", "\t")


def _is_aside(line: str, dialect: ConllDialect | None = None) -> bool:
    """Whether a line is a comment or a document mark, and no row of a token that starts with the same sign."""
    if not line.startswith("#"):
        return _is_document(line)
    if "\t" in line or (dialect is not None and dialect.separator == "\t"):
        return "\t" not in line
    if line.startswith((_TEXT, "# sent_id = ")):
        return True
    cells = _split(line, None)
    if dialect is None or dialect.tag_column == -1:
        return len(cells) < 2 or not is_tag(cells[-1])
    fits = -len(cells) <= dialect.tag_column < len(cells) and len(cells) in (dialect.width, dialect.width or len(cells))
    return not (fits and is_tag(cells[dialect.tag_column]))


def _set_asides_apart(first: int, lines: list[str], lead: list[str], dialect: ConllDialect) -> tuple[int, list[str]]:
    """Move the comments at the head of a block into `lead`; what is left are rows."""
    begin = 0
    while begin < len(lines) and _is_aside(lines[begin], dialect):
        lead.append(lines[begin])
        begin += 1
    return first + begin, lines[begin:]


def _split(line: str, separator: str | None) -> list[str]:
    return line.split(separator) if separator else _RUNS.split(line.strip(" \t"))


def _sentence(rows: list[str], dialect: ConllDialect, reading: Reading, lead: list[str]) -> Sentence:
    separator = dialect.separator
    try:
        if separator:
            columns = list(zip(*[row.split(separator) for row in rows], strict=True))
        else:
            columns = list(zip(*[_split(row, None) for row in rows], strict=True))
    except ValueError:
        raise _RowError from None
    width = len(columns)
    tag_column = dialect.tag_column
    if width < 2 or tag_column >= width or dialect.token_column >= width:
        raise _RowError
    tokens = columns[dialect.token_column]
    tags = columns[tag_column]
    if "" in tokens:
        raise TagFault(tokens.index(""), "the token is empty", "give it one, or delete the line")
    mentions = decode_at(tags, dialect.scheme, reading.repaired if reading.repair else None)
    if width == 2 and not lead:
        return Sentence(tokens, mentions)
    others = {
        str(i): values
        for i, values in enumerate(columns)
        if i not in (dialect.token_column, tag_column % width)
        and not (i == 0 and dialect.numbered_from is not None and _is_numbering(values, dialect.numbered_from))
    }
    if not lead:
        return Sentence(tokens, mentions, columns=others)
    return _with_comments(Sentence(tokens, mentions, columns=others), lead)


def _with_comments(sentence: Sentence, lead: list[str]) -> Sentence:
    name = None
    spaces = None
    meta: dict[str, Any] = {}
    kept = []
    for line in lead:
        name = _sent_id(line) or name
        if line.startswith(_TEXT):
            spaces = spaces_in(sentence.tokens, line[len(_TEXT) :])
        if line.startswith("# entaug = "):
            try:
                meta["entaug"] = orjson.loads(line[len("# entaug = ") :])
                continue
            except orjson.JSONDecodeError:
                pass
        kept.append(line)
    if kept:
        meta["comments"] = kept
    return sentence.with_(id=name, meta=meta, spaces=spaces)


def _sent_id(line: str) -> str | None:
    return line.partition("=")[2].strip() or None if line.startswith("#") and _what(line) == "sent_id" else None


def _once(sentence: Sentence, path: str, number: int, reading: Reading, seen: dict[str, int]) -> Sentence | None:
    """A sentence whose id is its own, or has been dropped; None where that is a fault."""
    try:
        if not reading.repeats(sentence.id, number, seen):
            return sentence
    except InputError as error:
        error.path, error.line = path, number
        reading.fault(error)
        return None
    meta = dict(sentence.meta)
    kept = [line for line in meta.pop("comments") if not _sent_id(line)]
    return sentence.with_(id=None, meta={**meta, "comments": kept} if kept else meta)


def _is_numbering(values: Sequence[str], first: int) -> bool:
    return all(value == str(i) for i, value in enumerate(values, start=first))


def _second_look(
    path: str, first: int, lines: list[str], dialect: ConllDialect, reading: Reading, lead: list[str]
) -> Sentence | None:
    """A sentence whose rows did not fit at once: take comments out, then say exactly which line is at fault."""
    numbered = [(first + i, line) for i, line in enumerate(lines)]
    rows = [(number, line) for number, line in numbered if not _is_aside(line, dialect)]
    aside = [line for _, line in numbered if _is_aside(line, dialect)]
    if not rows:
        return None
    try:
        return _sentence([line for _, line in rows], dialect, reading, [*lead, *aside])
    except TagFault as fault:
        line = rows[fault.index][0]
        reading.fault(TagError(fault.message, path=path, line=line, remedy=fault.remedy))
    except _RowError:
        narrow = _narrowed(rows, dialect) if reading.repair else None
        if narrow is None:
            reading.fault(_ragged(path, rows, dialect))
        else:
            reading.repaired["ragged rows, only token and tag kept"] += 1
            return _second_look(path, first, narrow, replace(dialect, separator="\t"), reading, [*lead, *aside])
    except InputError as error:
        error.path, error.line = path, rows[0][0]
        reading.fault(error)
    return None


def _narrowed(rows: list[tuple[int, str]], dialect: ConllDialect) -> list[str] | None:
    """Token and tag of rows that differ in their other columns, where both can be told: the first and the last."""
    if dialect.token_column != 0 or dialect.tag_column != -1:
        return None
    cells = [_split(line, dialect.separator) for _, line in rows]
    if any(len(row) < 2 or not is_tag(row[-1]) for row in cells):
        return None
    return [f"{row[0]}\t{row[-1]}" for row in cells]


def _ragged(path: str, rows: list[tuple[int, str]], dialect: ConllDialect) -> InputError:
    widths = [len(_split(line, dialect.separator)) for _, line in rows]
    usual = Counter(widths).most_common(1)[0][0]
    needed = max(2, dialect.token_column + 1, dialect.tag_column + 1)
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


# ------------------------------------------------------------------------------------------------------------- looking


def _find_separator(sample: list[list[tuple[int, str]]]) -> str | None:
    lines = [line for rows in sample for _, line in rows]
    enough = 0.95 * len(lines)  # a faulty line must not change what the file is
    if sum("\t" in line for line in lines) >= enough:
        return "\t"
    if sum(" " in line and "  " not in line and line == line.strip() for line in lines) >= enough:
        return " "
    return None


def _find_columns(
    dialect: ConllDialect,
    options: dict[str, Any],
    sentences: list[list[list[str]]],
    width: int,
    path: str,
    first_row: tuple[int, str],
) -> ConllDialect:
    cells = [row for rows in sentences for row in rows if len(row) == width]
    share = [sum(is_tag(row[i]) for row in cells) / len(cells) for i in range(width)]
    firsts = [[row[0] for row in rows] for rows in sentences] if width > 2 else []
    numbered_from = next(
        (n for n in (1, 0) if sum(_is_numbering(first, n) for first in firsts) > 0.9 * max(1, len(firsts))), None
    )
    tag, token = options.get("tag_column"), options.get("token_column")
    if tag is None:
        for good in (1.0, 0.8):
            columns = [i for i in range(width) if share[i] >= good and i != token]
            if columns:
                break
        if not columns or width < 2:
            raise InputError(
                f"no column holds tags (first row: {first_row[1]!r})",
                path=path,
                line=first_row[0],
                remedy="name it with --tag-column, counted from 0",
            )
        # Usually the last column. Where that is something else, the first: a second one is another annotator's.
        tag = width - 1 if width - 1 in columns else columns[0]
    if tag == width - 1:
        tag = -1
    if not -width <= tag < width or not 0 <= (token or 0) < width:
        raise ParameterError(f"{path} has {width} columns, counted from 0: there is no such column")
    if token == tag % width:
        raise ParameterError(
            f"column {token} of {path} cannot hold both the token and its tag", remedy="name two different columns"
        )
    if token is None:
        taken = {tag % width} | ({0} if numbered_from is not None else set())
        token = next((i for i in range(width) if i not in taken), 0)
    elif token == 0:
        numbered_from = None
    others = tuple(i for i in range(width) if share[i] == 1.0 and i not in (tag % width, token))
    return replace(dialect, tag_column=tag, token_column=token, numbered_from=numbered_from, also_tags=others)


def _find_scheme(dialect: ConllDialect, sample: list[list[list[str]]], further: Iterator[Block]) -> str:
    evidence = Evidence()
    column = dialect.tag_column

    def add(rows: list[list[str]]) -> None:
        evidence.add(row[column] for row in rows if -len(row) <= column < len(row))

    for rows in sample:
        add(rows)
    # A mention has to be seen: go on through the file until there is one.
    while not evidence.found:
        block = next(further, None)
        if block is None:
            break
        add([_split(line, dialect.separator) for line in block[1] if not _is_aside(line, dialect)])
    return evidence.scheme()
