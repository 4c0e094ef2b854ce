"""The layout of a table, which consists of the options of the format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from entaug.core.tags import Overlap
from entaug.formats.documents import DOCUMENT
from entaug.formats.segmentation import SegmentationOptions

__all__ = ["SEPARATORS", "Row", "TableDialect", "is_json_field"]

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
Row = tuple[int, list[str]]
"""A row of a table with the number of its line; an empty list where all cells are empty."""


@dataclass(frozen=True)
class TableDialect(SegmentationOptions):
    """Layout of a table.

    Args:
        rows: whether a row is one of the ``"tokens"`` or one of the ``"sentences"``.
        cells: what a row of a sentence holds: ``"offsets"``: a text and a list of [start, end, label]; ``"lists"`` of
            tokens and of tags; ``"strings"`` of as many words as tags.
        words: the name of the column of words; of texts or lists of words where a row is a sentence.
        labels: the name of the column of tags or mentions.
        sentence: the name of the column that tells the sentences apart.
        document: the name of the column of documents, in each of which sentences are numbered anew.
        empty_rows: whether empty rows tell sentences apart, and no column does.
        repeated: whether the cell of the sentence is filled in each row.
        ids: whether these cells are ids; otherwise they number the sentences, and are written anew.
        separator: the separator of the cells; by default a tab in files named .tsv, else a comma.
        quoted: whether cells may be quoted.
        encoding: the encoding of the characters.
        has_heading: whether the first row holds the names of the columns; otherwise they are numbered from 0.
        scheme: the tag scheme.
        names: the names of tags that are numbers, in order, as O,B-PER,I-PER.
        tokens: whether to write the tokens beside a text, so that the same tokens are read back.
        sheet: the sheet of a workbook; by default the first.
        overlap: which nested mentions to write as tags, see `entaug.core.tags.flatten`.
        columns: the names of all columns in order; those of the file that was read.
        number_prefix: the text before the number of a sentence.
        number_from: the first number.
    """

    rows: Literal["tokens", "sentences"] = "tokens"
    cells: Literal["offsets", "lists", "strings"] = "offsets"
    words: str = ""
    labels: str = ""
    sentence: str = ""
    document: str = ""
    empty_rows: bool = False
    repeated: bool = True
    ids: bool = True
    separator: Literal["", "comma", "semicolon", "tab"] = ""
    quoted: bool = True
    encoding: Literal["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"] = "utf-8"
    has_heading: bool = True
    scheme: str = "IOB2"
    names: tuple[str, ...] = ()
    tokens: bool = True
    sheet: str = ""
    overlap: Overlap = "error"
    columns: tuple[str, ...] = field(default=(), compare=False)
    number_prefix: str = field(default="", compare=False)
    number_from: int = field(default=1, compare=False)

    @property
    def is_tagged(self) -> bool:
        """Whether mentions are tags."""
        return self.rows == "tokens" or self.cells != "offsets"

    @property
    def words_column(self) -> str:
        """The name of the column of words."""
        default = "words" if self.rows == "tokens" else {"offsets": "text", "lists": "tokens", "strings": "sentence"}
        return self.words or (default if isinstance(default, str) else default[self.cells])

    @property
    def labels_column(self) -> str:
        """The name of the column of labels."""
        default = "labels" if self.rows == "tokens" else {"offsets": "entities", "lists": "ner_tags", "strings": "tags"}
        return self.labels or (default if isinstance(default, str) else default[self.cells])

    @property
    def sentence_column(self) -> str:
        """The name of the column of ids; empty where there is none."""
        if self.rows == "tokens" and self.empty_rows:
            return ""
        return self.sentence or ("sentence_id" if self.rows == "tokens" else "id")

    @property
    def text_column(self) -> str:
        """The name of a column of texts beside lists or strings of words; empty where there can be none."""
        return "" if self.rows == "tokens" or self.words_column == "text" else "text"

    def describe(self) -> str:
        """Return the layout in words."""
        unit = self.rows.removesuffix("s")
        sentence = f", sentences in {self.sentence_column!r}" if self.rows == "tokens" and not self.empty_rows else ""
        scheme = f", {self.scheme}" if self.is_tagged else ""
        where = f"words in {self.words_column!r}, labels in {self.labels_column!r}"
        separator = f" with {self.separator}s" if self.separator else ""
        return f"table{separator}, one {unit} a row, {where}{sentence}{scheme}"


def is_json_field(name: str) -> bool:
    """Whether a column holds JSON: provenance, and fields of this library."""
    return name in ("entaug", DOCUMENT)
