"""How a CoNLL file is laid out: found by looking at its beginning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from entaug.errors import InputError, ParameterError
from entaug.formats.conll.lines import TEXT, Block, ConllDialect, blocks, is_aside, names_in, sent_id, split
from entaug.formats.conll.tag_columns import cut_out
from entaug.spacing import is_unspaced_script
from entaug.tags import InvalidTag, SchemeDetector, decode_canonical, is_tag

__all__ = ["detect_dialect", "numbering"]

_LOOK = 300  # sentences looked at to find a file's layout
_TOKEN_NAMES = ("FORM", "TOKEN", "WORD")
_TAG_NAMES = frozenset(("NE", "NER", "NERTAG", "NERTAGS", "ENTITY"))
_PREFIX = re.compile(r"(?i)(?:token|form|word|text|w)[=:](?=.)")
_ATTRIBUTE = re.compile(r"(?:^|\|)([A-Za-z]\w*)=([^|]+)")
_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])|\s*[\[{]\s*$")
_CSV = re.compile(r"[,;]")
_SIGNS = ("_", "*", "-")  # what files have for O where an unnamed thing has a sign
_FEW = 10  # tokens that are too few to tell characters from words
Rows = list[list[str]]


def detect_dialect(path: Path, dialect: ConllDialect, given: Collection[str]) -> ConllDialect:
    """Detect the layout of a file from its first few hundred sentences, or more where these have no mention.

    Args:
        path: the file.
        dialect: the dialect made from the options that are given.
        given: the names of these options, which are not detected.

    Returns:
        The complete dialect.

    Raises:
        InputError: no sentence in the file, or no column that holds tags.
    """
    stream = blocks(path)
    sample: list[list[tuple[int, str]]] = []
    ids = texts = False
    names: tuple[str, ...] = ()
    for block in stream:
        for line in block[1]:
            if line.startswith("#"):
                ids = ids or sent_id(line) is not None
                texts = texts or line.startswith(TEXT)
                names = names or names_in(line) if not sample else names
        rows = [(block[0] + i, line) for i, line in enumerate(block[1]) if not is_aside(line)]
        if rows:
            sample.append(rows)
        if len(sample) >= _LOOK:
            break
    if not sample:
        raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")
    if "separator" not in given:
        dialect = replace(dialect, separator=_detect_separator(sample))
    cells = [[split(line, dialect.delimiter) for _, line in rows] for rows in sample]
    widths = Counter(len(row) for rows in cells for row in rows)
    width = widths.most_common(1)[0][0]
    regular = [rows for rows in cells if all(len(row) == width for row in rows)]
    if len(names) != width or len(set(names)) < width:
        names = ()
    dialect = replace(dialect, names=names, ids=ids, texts=texts, width=width)
    columns = _Columns(dialect, given, regular or cells)
    dialect = columns.find(str(path), sample[0][0])
    further = (_rest(block, dialect) for block in stream)
    levels = _Levels(dialect, columns.run, cells) if columns.free else None
    while levels and not levels.told:
        rows_further = next(further, None)
        if rows_further is None:
            break
        levels.add(rows_further)
    if levels and len(found := levels.find()) > 1:
        also = tuple(column for column in dialect.also_tags if column not in found)
        dialect = replace(dialect, tag_column=found[0], tag_columns=found, also_tags=also)
    if "scheme" not in given:
        seen = levels.seen if levels else []
        dialect = replace(dialect, scheme=_find_scheme(dialect, [*cells, *seen], further))
    if "characters" not in given:
        dialect = replace(dialect, characters=_of_characters(dialect, cells))
    return dialect


def _rest(block: Block, dialect: ConllDialect) -> Rows:
    return [split(line, dialect.delimiter) for line in block[1] if not is_aside(line, dialect)]


def _detect_separator(sample: list[list[tuple[int, str]]]) -> Literal["tab", "space", "runs"]:
    lines = [line for rows in sample for _, line in rows]
    enough = 0.95 * len(lines)  # a faulty line must not change what the file is
    if sum("\t" in line for line in lines) >= enough:
        return "tab"
    if sum(" " in line and "  " not in line and line == line.strip() for line in lines) >= enough:
        return "space"
    return "runs"


def numbering(values: Sequence[str], first: int) -> bool:
    """Whether a column numbers the tokens."""
    return all(value == str(i) for i, value in enumerate(values, start=first))


class _Columns:
    """Which columns hold tokens, tags and numbers.

    Args:
        dialect: what is known of it.
        given: what was given by hand.
        sentences: their cells.

    Attributes:
        free: whether the tag column was found by looking alone.
        run: the last columns, as far as each holds tags in all its cells.
    """

    def __init__(self, dialect: ConllDialect, given: Collection[str], sentences: list[Rows]) -> None:
        self._dialect, self._given, self._sentences = dialect, given, sentences
        self._width = width = dialect.width
        self._cells = [row for rows in sentences for row in rows if len(row) == width]
        self._share = [sum(is_tag(row[i]) for row in self._cells) / len(self._cells) for i in range(width)]
        self.free = "tag_columns" not in given and "tag_column" not in given
        self.run: list[int] = []

    def find(self, path: str, first_row: tuple[int, str]) -> ConllDialect:
        """The dialect with its columns."""
        width, share = self._width, self._share
        firsts = [[row[0] for row in rows] for rows in self._sentences] if width > 2 else []
        enough = 0.9 * max(1, len(firsts))
        numbered_from = next((n for n in (1, 0) if sum(numbering(f, n) for f in firsts) > enough), None)
        token = self._dialect.token_column if "token_column" in self._given else None
        names = [name.upper() for name in self._dialect.names]
        if token is None:
            token = next((names.index(name) for name in _TOKEN_NAMES if name in names), None)
        tags = self._tags(token, path, first_row)
        for column in (*tags, token or 0):
            if not -width <= column < width or (token or 0) < 0:
                raise ParameterError(f"{path} has {width} columns, counted from 0: there is no such column")
        tags = tuple(column % width for column in tags)
        if token in tags or len(set(tags)) < len(tags):
            what = f"column {token}" if token in tags else "a column"
            raise ParameterError(
                f"{what} of {path} cannot hold both the token and its tag", remedy="name two different columns"
            )
        if token is None:
            taken = {*tags} | ({0} if numbered_from is not None else set())
            token = next((i for i in range(width) if i not in taken), 0)
        elif token == 0:
            numbered_from = None
        # A second column is another annotator's, or of something else, or of nested mentions: see `_Levels`.
        also = tuple(i for i in range(width) if share[i] == 1.0 and i not in (*tags, token))
        if self.free:
            self.run = [i for i in range(token + 1, width) if all(share[j] == 1.0 for j in range(i, width))]
        return replace(
            self._dialect,
            tag_column=-1 if tags[0] == width - 1 else tags[0],
            tag_columns=tags if len(tags) > 1 else (),
            token_column=token,
            numbered_from=numbered_from,
            also_tags=also,
            token_prefix=self._prefix(token),
        )

    def _tags(self, token: int | None, path: str, first_row: tuple[int, str]) -> tuple[int, ...]:
        """The tag columns, not yet counted from the left."""
        if "tag_columns" in self._given:
            return self._dialect.tag_columns
        if "tag_column" in self._given:
            column = self._dialect.tag_column
            if -self._width <= column < self._width:
                self._attribute(column)
            return (column,)
        for column, name in enumerate(self._dialect.names):
            if _TAG_NAMES.intersection(re.split(r"[^A-Z]+", name.upper())) and self._named(column):
                self.free = False
                return (column,)
        for good in (1.0, 0.8):
            columns = [i for i in range(self._width) if self._share[i] >= good and i != token]
            if columns and self._width > 1:
                # Usually the last column. Where that is something else, the first.
                return (self._width - 1 if self._width - 1 in columns else columns[0],)
        for column in range(self._width):
            if column != token and self._attribute(column):
                self.free = False
                return (column,)
        raise InputError(
            f"no column holds tags (first row: {first_row[1][:100]!r})",
            path=path,
            line=first_row[0],
            remedy=self._remedy(first_row[1]),
        )

    def _remedy(self, first: str) -> str:
        """What to do about a file in which no column holds tags."""
        if _JSON.match(first):
            return "it looks like JSON: let its name end in .json, or name its format with --from"
        rows = [" ".join(row) for row in self._cells]
        if sum(_CSV.search(row) is not None and is_tag(_CSV.split(row)[-1].strip()) for row in rows) >= len(rows) / 2:
            return "put tabs between columns, not commas; no heading, and an empty line between sentences"
        return "name it with --tag-column, counted from 0"

    def _named(self, column: int) -> bool:
        """Whether a column that is named for tags holds some; finds its sign for O."""
        if self._share[column] >= 0.8 or self._attribute(column):
            return True
        values = Counter(row[column] for row in self._cells)
        tags = sum(count for value, count in values.items() if is_tag(value))
        for sign in _SIGNS:
            if values[sign] and not values["O"] and values[sign] + tags >= 0.95 * len(self._cells):
                self._dialect = replace(self._dialect, outside=sign)
                return True
        return False

    def _attribute(self, column: int) -> bool:
        """Whether nearly all cells of a column hold a tag as an attribute; finds its name."""
        if self._share[column] >= 0.8:
            return False
        found: Counter[str] = Counter()
        for row in self._cells:
            found.update(key for key, value in _ATTRIBUTE.findall(row[column]) if is_tag(value))
        if "attribute" in self._given and self._dialect.attribute:
            found = Counter({self._dialect.attribute: found[self._dialect.attribute]})
        for name, count in found.most_common(1):
            if count >= 0.8 * len(self._cells):
                self._dialect = replace(self._dialect, attribute=name)
                return True
        return False

    def _prefix(self, token: int) -> str:
        """What stands before every token."""
        if "token_prefix" in self._given:
            return self._dialect.token_prefix
        found = _PREFIX.match(self._cells[0][token]) if len(self._cells) > 1 else None
        if found and all(row[token].startswith(found[0]) for row in self._cells):
            return found[0]
        return ""


class _Levels:
    """Finds tag columns of nested mentions: outer ones in one column, those inside them in the next.

    The last columns are taken so where they hold tags in every cell and, column by column, what the next one marks

    - lies inside mentions of the one before (nearly always: real files have faults),
    - has labels that are there or before too (a column of phrases and one of names have none in common),
    - is far less, or mostly shorter (the tags of another annotator or of a tagger, and finer types of the same
      mentions, are as many and as long).

    Args:
        dialect: what is known of the layout.
        columns: the last columns that hold tags in every cell.
        sample: cells of sentences.
    """

    def __init__(self, dialect: ConllDialect, columns: list[int], sample: list[Rows]) -> None:
        self._columns = columns
        evidence = SchemeDetector()
        for rows in sample:
            for column in columns:
                evidence.update(row[column] for row in rows if column < len(row))
        self._scheme = evidence.scheme() if evidence.has_mentions else dialect.scheme
        self._pairs = list(pairwise(columns))
        self._count: dict[int, Counter[str]] = {column: Counter() for column in columns}
        self._inside: Counter[int] = Counter()
        self._shorter: Counter[int] = Counter()
        self.seen: list[Rows] = []
        for rows in sample:
            self._look_at(rows)

    @property
    def told(self) -> bool:
        """Whether the last column has shown what it marks."""
        return len(self._columns) < 2 or bool(self._count[self._columns[-1]])

    def add(self, rows: Rows) -> None:
        """Look at one more sentence."""
        if rows and any(row[-1] != "O" for row in rows):
            self.seen.append(rows)
        self._look_at(rows)

    def _look_at(self, rows: Rows) -> None:
        if len(self._columns) < 2 or any(len(row) <= self._columns[-1] for row in rows):
            return
        try:
            mentions = {
                column: decode_canonical([row[column] for row in rows], self._scheme, Counter())
                for column in self._columns
            }
        except InvalidTag:
            return
        for column, found in mentions.items():
            self._count[column].update(mention.label for mention in found)
        for outer, inner in self._pairs:
            for i in mentions[inner]:
                around = next((o for o in mentions[outer] if o.start <= i.start and i.end <= o.end), None)
                self._inside[inner] += around is not None
                self._shorter[inner] += around is not None and around.spans != i.spans

    def find(self) -> tuple[int, ...]:
        """The tag columns; one alone, or none, where nothing is nested."""
        found = self._columns[-1:]
        for outer, inner in reversed(self._pairs):
            if not self._nested(outer, inner):
                break
            found = [outer, *found]
        return tuple(found)

    def _nested(self, outer: int, inner: int) -> bool:
        count = self._count[inner].total()
        stems = tuple(label for column in self._columns if column <= outer for label in self._count[column])
        # An inner label may be an outer one's with something more: LOCderiv where there is LOC.
        shared = sum(n for label, n in self._count[inner].items() if label.startswith(stems))
        other = count <= self._count[outer].total() / 2 or self._shorter[inner] >= count / 2
        return count > 0 and other and self._inside[inner] >= 0.8 * count and shared >= 0.8 * count


def _find_scheme(dialect: ConllDialect, sample: list[Rows], further: Iterator[Rows]) -> str:
    evidence = SchemeDetector()
    column = dialect.tag_column

    def add(rows: Rows) -> None:
        cells = [row[column] for row in rows if -len(row) <= column < len(row)]
        if dialect.attribute:
            cells = cut_out(cells, dialect.attribute)[0]
        evidence.update("O" if cell == dialect.outside else cell for cell in cells)

    for rows in sample:
        add(rows)
    # A mention has to be seen: go on through the file until there is one.
    while not evidence.is_decided:
        rows_further = next(further, None)
        if rows_further is None:
            break
        add(rows_further)
    return evidence.scheme()


def _of_characters(dialect: ConllDialect, sample: list[Rows]) -> bool:
    """Whether nearly all tokens are one character, and most of scripts that have no spaces: Chinese and Japanese."""
    tokens = [row[dialect.token_column] for rows in sample for row in rows if dialect.token_column < len(row)]
    single = [token for token in tokens if len(token) == 1]
    enough = len(tokens) >= _FEW and len(single) >= 0.95 * len(tokens)
    return enough and sum(map(is_unspaced_script, single)) >= 0.5 * len(tokens)
