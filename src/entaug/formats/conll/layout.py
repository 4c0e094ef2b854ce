"""The layout of a CoNLL file, which consists of the options of the format; its lines; its detection from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Literal

from entaug.config.params import Check
from entaug.core.spacing import is_unspaced_script
from entaug.core.tags import (
    WITHOUT_PREFIXES,
    InvalidTag,
    Overlap,
    SchemeDetector,
    decode_canonical,
    describe_scheme,
    have_no_prefixes,
    is_tag,
)
from entaug.errors import InputError, ParameterError
from entaug.files.streams import check_characters, find_in_file, read_line_chunks
from entaug.formats.base import Dialect
from entaug.formats.records import no_sentences

DOCSTART = "-DOCSTART-"
TEXT_COMMENT = "# text = "
PROVENANCE_COMMENT = "# entaug = "
Block = tuple[int, list[str]]
"""The lines between two empty ones, and the number of the first."""
Rows = list[list[str]]
"""The rows of a sentence, each a list of cells."""
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
        scheme: the tag scheme, IO for tags without prefixes.
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
        scheme = describe_scheme(self.scheme)
        return f"CoNLL columns, {separator}, {unit} in column {self.token_column}, tag in {tag}, {scheme}"

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
    has_usual_width = dialect is None or len(cells) == (dialect.num_columns or len(cells))
    if column == -1:
        is_row = len(cells) > 1 and is_tag(cells[-1])
    else:
        is_row = -len(cells) <= column < len(cells) and has_usual_width and is_tag(cells[column])
    has_no_prefix = dialect is not None and dialect.scheme == WITHOUT_PREFIXES  # "#Oslo LOC": any word may be a label
    return not (is_row or (has_no_prefix and has_usual_width and cells[0] != "#"))


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


# ----------------------------------------------------------------------------------------------------------- detection

_SAMPLE_SIZE = 300  # sentences from which the layout is detected
_MAX_SENTENCES = 20_000  # where these have no mention
_TOKEN_COLUMN_NAMES = ("FORM", "TOKEN", "WORD")
_TAG_COLUMN_NAMES = frozenset(("NE", "NER", "NERTAG", "NERTAGS", "ENTITY"))
_TOKEN_PREFIX = re.compile(r"(?i)(?:(?:token|form|word|text|w)[=:]|(?:[a-z]{2,3}(?:-[a-z]+)*|simple):)(?=.)")  # WikiANN
_ATTRIBUTE = re.compile(r"(?:^|\|)([A-Za-z]\w*)=([^|]+)")
_ATTRIBUTE_NAMES = _TAG_COLUMN_NAMES | {"NAME"}
_MENTION_TAG = re.compile(r"(?:^|[\s=])[BIESULM][-_]\w")
_DIGITS = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
# The labels of columns of phrases, which are no mentions.
_PHRASES = frozenset("ADJP ADVP CONJP INTJ LST NC NP PC PNP PP PRT SBAR UCP VC VP".split())  # with those of German
_MIN_CHARACTERS = 10  # fewer tokens do not show whether they are characters or words
_MIN_NUMBERS = 10  # fewer rows do not show whether a column holds numbers of tokens, or of sentences and documents


def detect_dialect(path: Path, dialect: ConllDialect, given: Collection[str]) -> ConllDialect:
    """Detect the layout of a file from its first few hundred sentences, or more where these have no mention."""
    blocks = read_blocks(path)
    sample, dialect = _read_sample(blocks, dialect)
    if not sample:
        raise no_sentences(path)
    if "separator" not in given:
        dialect = replace(dialect, separator=_detect_separator([row for rows in sample for _, row in rows]))
    sentences = [[split_row(row, dialect.delimiter) for _, row in rows] for rows in sample]
    num_columns = Counter(len(row) for rows in sentences for row in rows).most_common(1)[0][0]
    regular = [rows for rows in sentences if all(len(row) == num_columns for row in rows)]
    provenance = find_in_file(path, PROVENANCE_COMMENT.encode())  # augmented sentences come last
    dialect = replace(dialect, num_columns=num_columns, provenance=provenance)
    if len(dialect.column_names) != num_columns or len(set(dialect.column_names)) < num_columns:
        dialect = replace(dialect, column_names=())
    columns = _ColumnDetector(dialect, given, regular or sentences)
    dialect = columns.detect(path, sample[0][0])
    further = (_split_block(block, dialect) for block in blocks)
    sentences = [_words(rows, dialect) for rows in sentences]
    if len(columns.tag_candidates) > 1:
        nested = _NestedColumnDetector(dialect, columns.tag_candidates, sentences)
        while not nested.is_decided and (rows_read := next(further, None)) is not None:
            nested.update(rows_read)
            if any(row[-1] != "O" for row in rows_read):
                sentences.append(rows_read)
        found = nested.tag_columns()
        if len(found) > 1:
            others = tuple(column for column in dialect.other_tag_columns if column not in found)
            dialect = replace(dialect, tag_columns=found, other_tag_columns=others)
    if not {"tag_column", "tag_columns"}.intersection(given):
        unread = tuple(i for i in dialect.other_tag_columns if not _are_phrases(i, sentences))
        dialect = replace(dialect, unread_tag_columns=unread)
    if "characters" not in given:
        dialect = replace(dialect, characters=_are_characters(dialect, sentences[: len(sample)]))
    if "scheme" not in given:
        dialect = replace(dialect, scheme=_detect_scheme(dialect, sentences, further))
    if dialect.scheme == WITHOUT_PREFIXES and _begin_with_heading(sentences, dialect):
        number, row = sample[0][0]
        raise InputError(f"begins with a heading: {row[:100]!r}", path=str(path), line=number, remedy="delete the line")
    return dialect


def _begin_with_heading(sentences: list[Rows], dialect: ConllDialect) -> bool:
    """Whether the first row names the columns, so that its last cell would be read as a label."""
    first, column = sentences[0][0], dialect.tag_column
    num_alike = sum(row[column] == first[column] for rows in sentences for row in rows if column < len(row))
    return num_alike == 1 and first[dialect.token_column].upper().rstrip("S") in _TOKEN_COLUMN_NAMES


def _read_sample(blocks: Iterator[Block], dialect: ConllDialect) -> tuple[list[list[tuple[int, str]]], ConllDialect]:
    """The numbered rows of the first sentences, with a mention if possible; the dialect with what comments tell."""
    sample: list[list[tuple[int, str]]] = []
    ids = texts = has_mention = False
    names: tuple[str, ...] = ()
    for first, lines in blocks:
        rows = []
        for number, line in enumerate(lines, start=first):
            if line.startswith("#"):
                ids = ids or parse_sentence_id(line) is not None
                texts = texts or line.startswith(TEXT_COMMENT)
                names = names or (() if sample else parse_column_names(line))
            if not is_comment(line):
                rows.append((number, line))
        if rows:
            sample.append(rows)
            has_mention = has_mention or any(_MENTION_TAG.search(line) for _, line in rows)
        if len(sample) >= (_SAMPLE_SIZE if has_mention else _MAX_SENTENCES):
            break
    return sample, replace(dialect, column_names=names, ids=ids, texts=texts)


def _split_block(block: Block, dialect: ConllDialect) -> Rows:
    return _words([split_row(line, dialect.delimiter) for line in block[1] if not is_comment(line, dialect)], dialect)


def _words(rows: Rows, dialect: ConllDialect) -> Rows:
    """The rows of words, without those of ranges and empty nodes in a file whose tokens are numbered."""
    if dialect.numbered_from is None or not any(is_range_or_empty_node(row[0]) for row in rows):
        return rows
    return [row for row in rows if not is_range_or_empty_node(row[0])]


def _are_phrases(column: int, sentences: list[Rows]) -> bool:
    """Whether a column holds phrases (chunks), and no mentions of entities."""
    tags = {row[column] for rows in sentences for row in rows if column < len(row)}
    labels = {tag[2:] for tag in tags if tag != "O" and is_tag(tag)}
    return bool(labels) and labels <= _PHRASES


def _detect_separator(rows: Sequence[str]) -> Literal["tab", "space", "runs"]:
    enough = 0.95 * len(rows)  # a faulty row must not change the separator
    if sum("\t" in row for row in rows) >= enough:
        return "tab"
    if sum(" " in row and "  " not in row and row == row.strip() for row in rows) >= enough:
        return "space"
    return "runs"


class _ColumnDetector:
    """Detects the columns of tokens, tags and numbers."""

    def __init__(self, dialect: ConllDialect, given: Collection[str], sentences: list[Rows]) -> None:
        self._dialect, self._given, self._sentences = dialect, given, sentences
        self._num_columns = dialect.num_columns
        is_numbered = "token_column" not in given or dialect.token_column != 0
        self._numbered_from = self._detect_numbering() if is_numbered else None
        if self._numbered_from is not None:
            numbered = replace(dialect, numbered_from=self._numbered_from)
            self._sentences = [words for rows in sentences if (words := _words(rows, numbered))]
        self._rows = [row for rows in self._sentences for row in rows if len(row) == self._num_columns]
        if not self._rows:  # no row of a word has the usual width
            self._rows = [row for rows in sentences for row in rows if len(row) == self._num_columns]
        self._tag_shares = [
            sum(is_tag(row[i].strip()) for row in self._rows) / len(self._rows) for i in range(self._num_columns)
        ]
        self.may_be_nested = "tag_columns" not in given and "tag_column" not in given
        self.tag_candidates: list[int] = []  # those that may hold nested mentions

    def detect(self, path: Path, first_row: tuple[int, str]) -> ConllDialect:
        """Detect the columns."""
        num_columns = self._num_columns
        numbered_from = self._numbered_from
        token = self._dialect.token_column if "token_column" in self._given else None
        if token is None:
            names = [name.upper() for name in self._dialect.column_names]
            token = next((names.index(name) for name in _TOKEN_COLUMN_NAMES if name in names), None)
        tags = self._detect_tag_columns(token, path, first_row)
        for column in (*tags, token or 0):
            if not -num_columns <= column < num_columns or (token or 0) < 0:
                raise ParameterError(f"{path} has {num_columns} columns, counted from 0: there is no such column")
        tags = tuple(column % num_columns for column in tags)
        if token in tags or len(set(tags)) < len(tags):
            column_text = f"column {token}" if token in tags else "a column"
            raise ParameterError(
                f"{column_text} of {path} cannot hold both the token and its tag", remedy="name two different columns"
            )
        if token is None:
            used = {*tags} | ({0} if numbered_from is not None else set())
            unused = [i for i in range(num_columns) if i not in used] or [0]
            token = next((i for i in unused if not self._holds_no_tokens(i)), unused[0])
        elif token == 0:
            numbered_from = None
        prefix = _TOKEN_PREFIX.match(self._rows[0][token]) if len(self._rows) > 1 else None
        if prefix and all(row[token].startswith(prefix[0]) for row in self._rows):
            what, remedy = f"all tokens begin with {prefix[0]!r}", "remove it from the column of the tokens"
            raise InputError(what, path=str(path), line=first_row[0], remedy=remedy)
        only_tags = [share == 1.0 for share in self._tag_shares]
        if self.may_be_nested:
            self.tag_candidates = [i for i in range(token + 1, num_columns) if all(only_tags[i:])]
        return replace(
            self._dialect,
            tag_column=-1 if tags[0] == num_columns - 1 else tags[0],
            tag_columns=tags if len(tags) > 1 else (),
            token_column=token,
            numbered_from=numbered_from,
            # Tags of another annotator, of another kind, or of nested mentions: see `_NestedColumnDetector`.
            other_tag_columns=tuple(
                i for i in range(num_columns) if self._tag_shares[i] >= 0.95 and i not in (*tags, token)
            ),
        )

    def _detect_numbering(self) -> int | None:
        """The first number, where the first column numbers the tokens of nearly all sentences."""
        if self._num_columns < 3:
            return None
        all_numbers = [[row[0] for row in rows] for rows in self._sentences]
        of_words = [[number for number in numbers if not is_range_or_empty_node(number)] for numbers in all_numbers]
        of_words = [numbers for numbers in of_words if numbers]
        enough = 0.9 * len(of_words)
        for first in (1, 0):
            if sum(is_numbering(numbers, first) for numbers in of_words) > enough:
                return first
        numbers = [number for numbers in all_numbers for number in numbers]
        num_fitting = sum(_NUMBER.fullmatch(number) is not None for number in numbers)
        is_long = sum(map(len, of_words)) >= _MIN_NUMBERS
        return 1 if is_long and num_fitting >= 0.95 * len(numbers) else None

    def _holds_no_tokens(self, column: int) -> bool:
        """Whether a column holds the same in all rows of a sentence (the name of its document), numbers, or offsets."""
        columns = [[row[column] for row in rows if column < len(row)] for rows in self._sentences]
        columns = [cells for cells in columns if len(cells) > 1]
        if sum(map(len, columns)) < _MIN_NUMBERS:
            return False
        num_fitting = sum(len({*cells}) == 1 or _do_ascend(cells) for cells in columns)
        return num_fitting >= 0.95 * len(columns)

    def _detect_tag_columns(self, token: int | None, path: Path, first_row: tuple[int, str]) -> tuple[int, ...]:
        """The tag columns; those that are given may be counted from the right."""
        if "tag_columns" in self._given:
            return self._dialect.tag_columns
        if "tag_column" in self._given:
            column = self._dialect.tag_column
            if -self._num_columns <= column < self._num_columns:
                self._detect_attribute(column)
            return (column,)
        for column, name in enumerate(self._dialect.column_names):
            is_named = not _TAG_COLUMN_NAMES.isdisjoint(re.split(r"[^A-Z]+", name.upper()))
            if is_named and (self._tag_shares[column] >= 0.8 or self._detect_attribute(column)):
                self.may_be_nested = False
                return (column,)
        for min_share in (1.0, 0.8):
            columns = [i for i, share in enumerate(self._tag_shares) if share >= min_share and i != token]
            if columns and self._num_columns > 1:
                # Usually the last column; where that holds something else, the first.
                return (self._num_columns - 1 if self._num_columns - 1 in columns else columns[0],)
        for column in range(self._num_columns):
            if column != token and self._detect_attribute(column):
                self.may_be_nested = False
                return (column,)
        for column in reversed(range(self._num_columns)):
            if column != (token or 0) and have_no_prefixes(Counter(row[column].strip() for row in self._rows)):
                return (column,)
        raise InputError(
            f"no column holds tags (first row: {first_row[1][:100]!r})",
            path=str(path),
            line=first_row[0],
            remedy="name it with `tag_column`, counted from 0 (if tags have no prefixes, with `scheme='IO'`), or name "
            "another format with `format`",
        )

    def _detect_attribute(self, column: int) -> bool:
        """Whether cells of a column hold a tag as an attribute; detects the name of the attribute."""
        if self._tag_shares[column] >= 0.8:
            return False
        tags: dict[str, Counter[str]] = {}
        others: Counter[str] = Counter()
        is_list = True
        for row in self._rows:
            cell = row[column]
            is_list = is_list and (cell in ("_", "") or "=" in cell)
            for name, value in _ATTRIBUTE.findall(cell):
                if is_tag(value):
                    tags.setdefault(name, Counter())[value] += 1
                else:
                    others[name] += 1
        if "attribute" in self._given and self._dialect.attribute:
            tags = {name: counts for name, counts in tags.items() if name == self._dialect.attribute}
        for name in sorted(tags, key=lambda name: (name.upper() not in _ATTRIBUTE_NAMES, -tags[name].total())):
            count = tags[name].total()
            has_mentions = count > tags[name]["O"]
            if count >= 0.8 * len(self._rows) or (is_list and has_mentions and count >= 0.95 * (count + others[name])):
                self._dialect = replace(self._dialect, attribute=name)
                return True
        return False


def _do_ascend(cells: Sequence[str]) -> bool:
    """Whether cells are ascending numbers: those of tokens, or of their characters, as of brat's anntoconll.py."""
    return all(_DIGITS.fullmatch(cell) for cell in cells) and all(int(a) < int(b) for a, b in pairwise(cells))


class _NestedColumnDetector:
    """Detects tag columns of nested mentions: outer mentions in one column, those inside them in the next."""

    # The last columns are such where all their cells are tags and, column by column, the mentions of the next column -
    # lie inside mentions of the one before (nearly always: real files have faults), - have labels of the columns before
    # (columns of phrases and of names have none in common), - are far fewer, or mostly shorter (tags of another
    # annotator or a tagger, and finer types of the same mentions, are as many and as long).

    def __init__(self, dialect: ConllDialect, columns: list[int], sample: list[Rows]) -> None:
        self._columns = columns
        detector = SchemeDetector()
        for rows in sample:
            for column in columns:
                detector.update(row[column] for row in rows if column < len(row))
        self._scheme = detector.scheme() if detector.has_mentions else dialect.scheme
        self._labels: dict[int, Counter[str]] = {column: Counter() for column in columns}
        self._num_inside: Counter[int] = Counter()
        self._num_shorter: Counter[int] = Counter()
        for rows in sample:
            self.update(rows)

    @property
    def is_decided(self) -> bool:
        """Whether the last column has shown mentions."""
        return bool(self._labels[self._columns[-1]])

    def update(self, rows: Rows) -> None:
        """Add the mentions of a sentence."""
        if any(len(row) <= self._columns[-1] for row in rows):
            return
        try:
            levels = [decode_canonical([row[c] for row in rows], self._scheme, Counter()) for c in self._columns]
        except InvalidTag:
            return
        for column, mentions in zip(self._columns, levels, strict=True):
            self._labels[column].update(mention.label for mention in mentions)
        for (outer_mentions, mentions), column in zip(pairwise(levels), self._columns[1:], strict=True):
            for inner in mentions:
                around = (o for o in outer_mentions if o.start <= inner.start and inner.end <= o.end)
                if (outer := next(around, None)) is not None:
                    self._num_inside[column] += 1
                    self._num_shorter[column] += outer.spans != inner.spans

    def tag_columns(self) -> tuple[int, ...]:
        """The tag columns, outermost first; one or none where no mentions are nested."""
        filled = [column for column in self._columns if self._labels[column]]
        last = self._columns.index(filled[-1]) if filled else 0
        first = last
        while first > 0 and self._is_nested(self._columns[first - 1], self._columns[first]):
            first -= 1
        return tuple(self._columns[first:] if first < last else self._columns[-1:])

    def _is_nested(self, outer: int, inner: int) -> bool:
        count = self._labels[inner].total()
        outer_labels = tuple(label for column in self._columns if column <= outer for label in self._labels[column])
        # An inner label may extend an outer one: LOCderiv beside LOC.
        num_known = sum(n for label, n in self._labels[inner].items() if label.startswith(outer_labels))
        is_different = count <= self._labels[outer].total() / 2 or self._num_shorter[inner] >= count / 2
        return count > 0 and is_different and self._num_inside[inner] >= 0.8 * count and num_known >= 0.8 * count


def _detect_scheme(dialect: ConllDialect, sample: list[Rows], further: Iterator[Rows]) -> str:
    """Detect the tag scheme from the sample, and from further sentences until there is a mention that shows it."""
    detector = SchemeDetector()
    column = dialect.tag_column
    for i, rows in enumerate(chain(sample, further)):
        if i >= len(sample) and detector.is_decided:
            break
        cells = [row[column].strip() for row in rows if -len(row) <= column < len(row)]
        if dialect.attribute:
            cells = extract_attribute(cells, dialect.attribute)[0]
        detector.update(cells)
    return detector.scheme()


def _are_characters(dialect: ConllDialect, sample: list[Rows]) -> bool:
    """Whether nearly all tokens are single characters, most of them of scripts without spaces (Chinese, Japanese)."""
    tokens = [row[dialect.token_column] for rows in sample for row in rows if dialect.token_column < len(row)]
    single = [token for token in tokens if len(token) == 1]
    if len(tokens) < _MIN_CHARACTERS or len(single) < 0.95 * len(tokens):
        return False
    return sum(map(is_unspaced_script, single)) >= 0.5 * len(tokens)


def extract_attribute(cells: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """The tags that are attributes in cells, and the cells without them."""
    pattern = re.compile(rf"(^|\|){re.escape(name)}=([^|]*)")
    tags, remainders = [], []
    for cell in cells:
        match = pattern.search(cell)
        tags.append(match[2] if match else "O")
        remainders.append(cell[: match.start(2)] + cell[match.end(2) :] if match else cell)
    return tags, remainders
