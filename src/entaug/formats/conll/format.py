"""CoNLL columns: one token a line, an empty line after each sentence, tags in one column or several.

Columns are separated by tabs, single spaces or runs of both; token and tag may be in any column. Comments,
``-DOCSTART-`` lines, further columns, CRLF, byte-order marks and separator lines of white space are read. All rows have
the same columns. Nested mentions need several tag columns, outermost first, as in GermEval; one column represents flat
mentions only. Further variants: CoNLL-U Plus, whose first line names the columns; CoNLL-U with tags among other
attributes (``name=B-PER``), whose words are the rows with integer numbers, not ranges (``3-4``) and empty nodes
(``1.1``); and files with one character of running text a line. `entaug.formats.conll.detection` detects the layout of
a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.tags import flatten
from entaug.errors import ParameterError
from entaug.formats.base import ENTITY_FIELDS, BaseFormat, FormatCapabilities, ReadReport
from entaug.formats.conll.detection import detect_dialect
from entaug.formats.conll.dialect import ConllDialect
from entaug.formats.conll.lines import last_break
from entaug.formats.conll.reader import ConllReader
from entaug.formats.conll.tag_columns import flatten_to_levels
from entaug.formats.conll.writer import find_losses, format_sentence

__all__ = ["Conll"]

_ARRANGEMENT = frozenset(("token_column", "tag_column", "tag_columns", "numbered_from", "attribute"))


class Conll(BaseFormat):
    """The CoNLL column format; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "conll"
    title = "CoNLL columns"
    extensions = (".conll", ".tsv", ".iob2", ".iob", ".bio", ".conllu", ".conllup")
    foreign_extensions = (".csv",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=False, spaces=False)
    dialect_class = ConllDialect
    is_divisible = True

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: any file, because nearly any text could be rows."""
        return not path.is_dir()

    def dialect(self, **options: Any) -> ConllDialect:
        """See `entaug.formats.base.BaseFormat.dialect`; `tag_columns` may be left out but not be empty."""
        if options.get("tag_columns") == []:
            raise ParameterError("tag_columns must be different columns, outermost first, as 1,2, not []")
        dialect: ConllDialect = super().dialect(**options)
        return dialect

    def detect_dialect(self, path: Path, **options: Any) -> ConllDialect:
        """See `entaug.formats.base.BaseFormat.detect_dialect`; raises InputError where no column holds tags."""
        given = {name: value for name, value in options.items() if value is not None}
        return detect_dialect(path, self.dialect(**given), given)

    def read(
        self, path: Path, dialect: ConllDialect, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """See `entaug.formats.base.BaseFormat.read`."""
        return ConllReader(path, dialect, reading).sentences(start, stop)

    def last_break(self, data: bytes) -> int:
        """See `entaug.formats.base.BaseFormat.last_break`: after an empty line that ends the rows of a sentence."""
        return last_break(data)

    def as_stored(self, sentence: Sentence, dialect: ConllDialect) -> Sentence:
        """See `entaug.formats.base.BaseFormat.as_stored`; without the mentions that the option `overlap` excludes."""
        if dialect.overlap == "error" or sentence.is_flat:
            return sentence
        num_levels = len(dialect.tag_columns)
        if num_levels:
            kept = flatten_to_levels(sentence.mentions, num_levels, dialect.overlap)
        else:
            kept = flatten(sentence.mentions, dialect.overlap)
        if len(kept) == len(sentence.mentions):
            return sentence
        layout = {name: value for name, value in sentence.layout.items() if name != ENTITY_FIELDS}
        return sentence.with_(mentions=kept, layout=layout)

    def prepared(self, dialect: ConllDialect, sample: Iterable[Sentence], given: Collection[str] = ()) -> ConllDialect:
        """See `entaug.formats.base.BaseFormat.prepared`: all rows have the further columns of the sample."""
        if dialect.column_names or (dialect.num_columns and _ARRANGEMENT.isdisjoint(given)):
            return dialect
        tags = dialect.tag_columns or (dialect.tag_column,)
        names = dict.fromkeys(name for sentence in sample for name in sentence.columns)
        if dialect.numbered_from is not None:
            names.pop("0", None)
        width = len(names) + len(tags) + len({dialect.token_column, *(() if dialect.numbered_from is None else (0,))})
        return replace(dialect, num_columns=width, further_columns=tuple(names))

    def dump(self, sentence: Sentence, dialect: ConllDialect) -> str:
        """See `entaug.formats.base.BaseFormat.dump`."""
        return format_sentence(sentence, dialect)

    def lost(self, sentence: Sentence, dialect: ConllDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`."""
        return find_losses(sentence, dialect)
