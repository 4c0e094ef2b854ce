"""Tables with a heading: CSV, TSV and Excel workbooks (``.xlsx``), with a token or a sentence in each row.

One token a row: columns of words, of tags and of sentences, as ``sentence_id,words,labels``. The cell of the sentence
is filled in each row, or in the first one of a sentence only (``Sentence #,Word,POS,Tag``); without such a column, an
empty row divides two sentences. The cell is the id of the sentence, unless it only numbers it; sentences without an id
are numbered when they are written. Other columns become columns of the sentence. Nested mentions have no place in such
a table.

One sentence a row: ``text,entities`` with a list of ``[start, end, label]`` by characters, where mentions may nest,
and fields, provenance and the white space of the text are kept; ``tokens,ner_tags`` with a list of each; or
``sentence,tags`` with as many words as tags, separated by spaces. Lists are JSON or as Python prints them. Other
columns become fields, or columns where they hold a list of one value a token.

Cells stay text: ``NA``, ``1.0``, ``007`` and ``=A1`` mean nothing else. Names of columns are compared without case;
options name those that are not known. Tags may also stand in a file without a heading that has two columns.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.tags import is_tag
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import no_sentences, read_records
from entaug.formats.tables.cells import (
    beginning_of,
    check_cell,
    detect_characters,
    extension_of,
    first_row,
    quoted_row,
    read_rows,
    separator_of,
)
from entaug.formats.tables.detection import (
    LABEL_NAMES,
    WORD_NAMES,
    detect_columns,
    detect_numbers,
    detect_scheme,
    normal_name,
)
from entaug.formats.tables.dialect import SEPARATORS, Row, TableDialect, is_json_field
from entaug.formats.tables.reader import check_widths, parse_sentence, parse_tokens, single_rows, token_groups
from entaug.formats.tables.workbook import is_workbook, write_workbook
from entaug.formats.tables.writer import Places, rows_of

__all__ = ["Table"]

_SAMPLE = 2000  # rows from which the layout is detected


class Table(BufferedFormat):
    """The format of tables; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "table"
    title = "a table (CSV, TSV, Excel)"
    extensions = (".csv", ".tsv", ".xlsx")
    # Fields and white space have a place only where a row is a sentence; see `lost`.
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=False, spaces=False)
    dialect_class = TableDialect

    def recognises(self, path: Path) -> bool:
        """See `BaseFormat.recognises`: a workbook, or a first row that names columns of words and labels."""
        if path.is_dir():
            return False
        if is_workbook(path):
            return True
        encoding, text = beginning_of(path)
        separator, cells = first_row(text)
        if not encoding or len(cells) < 2:
            return False
        if any(is_tag(cell.strip()) for cell in cells):
            return separator != "tab" and extension_of(path) == ".csv"
        names = set(map(normal_name, cells))
        has_known = not names.isdisjoint(LABEL_NAMES) and not names.isdisjoint(WORD_NAMES)
        # What else could a file of this name be? As a table, its error names the columns.
        return has_known or (separator != "tab" and extension_of(path) == ".csv")

    def detect(self, path: Path, dialect: TableDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `BaseFormat.detect`; raises InputError where the columns are not known."""
        detected: dict[str, Any] = {}
        if not is_workbook(path):
            detected = detect_characters(path, dialect, options)
            dialect = replace(dialect, **detected)
        rows = [row for row in islice(read_rows(path, dialect), _SAMPLE) if row[1]]
        if not rows:
            raise no_sentences(path)
        try:
            detected |= detect_columns(rows, dialect, options)
        except InputError as error:
            error.locate(str(path), rows[0][0])
            raise
        dialect = replace(dialect, **detected)
        return detected | detect_numbers(path, dialect) | detect_scheme(path, dialect, options)

    def detect_dialect(self, path: Path, **options: Any) -> TableDialect:
        """See `BaseFormat.detect_dialect`; names of columns may be given in any case."""
        dialect: TableDialect = super().detect_dialect(path, **options)
        names = {normal_name(name): name for name in reversed(dialect.columns)} | {
            name: name for name in dialect.columns
        }
        given = {option: getattr(dialect, option) for option in ("words", "labels", "sentence", "document")}
        return replace(dialect, **{o: names.get(name, names.get(normal_name(name), name)) for o, name in given.items()})

    def sentences(self, path: Path, dialect: TableDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`."""
        rows = read_rows(path, dialect, reading)
        if dialect.has_heading:
            next(row for row in rows if row[1])
        groups = token_groups(rows, dialect, reading, path) if dialect.rows == "tokens" else single_rows(rows)

        def parse(_number: int, group: list[Row]) -> Iterable[Sentence]:
            check_widths(group, dialect)
            if dialect.rows == "tokens":
                return (parse_tokens(group, dialect, reading),)
            return parse_sentence(dict(zip(dialect.columns, group[0][1], strict=True)), dialect, reading)

        return read_records(path, ((group[0][0], group) for group in groups), parse, reading)

    def check(self, sentence: Sentence, dialect: TableDialect) -> None:
        """See `BufferedFormat.check`; raises LossError."""
        super().check(sentence, dialect)
        as_stored = self.as_stored(sentence, dialect)
        if dialect.is_tagged:
            tables = "where a row is a sentence (--to-layout rows=sentences)"
            self.check_flat(as_stored, f"write JSON lines, or a table {tables}, or keep some with overlap=outermost")
        subject = f"sentence {sentence.key}"
        if dialect.rows == "sentences" and dialect.cells == "strings":
            for text in (*sentence.tokens, *(mention.label for mention in as_stored.mentions)):
                if text.split() != [text]:
                    raise LossError(f"{text!r} holds white space", path=subject, remedy="write cells=lists or offsets")
        for row in rows_of(as_stored, dialect, Places([as_stored], dialect)):
            for cell in row:
                check_cell(cell, dialect, subject)

    def lost(self, sentence: Sentence, dialect: TableDialect) -> list[str]:
        """See `BaseFormat.lost`; fields where a row is a token, and what a column has no place for."""
        taken = {dialect.words_column, dialect.labels_column, dialect.sentence_column}
        if not dialect.has_heading:
            taken |= sentence.columns.keys() - set(dialect.columns)
        lost = [f"column {name!r}" for name in sentence.columns if name in taken]
        lost += ["id"] * (sentence.id is not None and not dialect.sentence_column)
        lost += ["fields of mentions"] * any(sentence.fields.get(ENTITY_FIELDS) or ())
        if dialect.rows == "tokens":
            lost += [f"field {name!r}" for name in sentence.fields if name != ENTITY_FIELDS]
            return lost + ["text"] * (sentence.spaces is not None)
        if dialect.cells != "offsets":
            lost += ["text"] * (sentence.spaces is not None and not dialect.text_column)
        taken |= {*sentence.columns, "tokens" if dialect.cells == "offsets" and dialect.tokens else ""}
        for name, value in sentence.fields.items():
            if name in taken or not (isinstance(value, str) or is_json_field(name)):
                lost.append(f"field {name!r}")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: TableDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`."""
        kept = [self.as_stored(sentence, dialect) for sentence in sentences]
        places = Places(kept, dialect)
        heading = [list(places.names)] if dialect.has_heading else []
        rows = chain(heading, chain.from_iterable(rows_of(sentence, dialect, places) for sentence in kept))
        if extension_of(path) == ".xlsx":
            write_workbook(path, rows, dialect.sheet)
            return
        delimiter = SEPARATORS[dialect.separator or separator_of(path)]
        with atomic_file(path) as out:
            text = io.TextIOWrapper(out, encoding=dialect.encoding, newline="")
            for row in rows:
                text.write((quoted_row(row, delimiter) if dialect.quoted else delimiter.join(row)) + "\n")
            text.flush()
            text.detach()
