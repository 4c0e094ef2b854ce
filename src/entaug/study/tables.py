"""Tables that a plan asks for, such as those of a paper: arms as rows, corpora as columns, and published figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from entaug.config.params import validate
from entaug.errors import ParameterError

AVERAGE = "average"
"""The column of the mean over the columns before it, back to the last such column."""
NO_FIGURE = "-"
_MAX = 2**63  # JSON has no larger integers for readers, and neither infinity nor NaN

Figures = tuple[float, ...]
"""The published figures of a cell: none, F1, or F1 and macro-F1."""


class Row(NamedTuple):
    """A row: an arm, and a cell for each column."""

    size: int | None
    arm: str
    figures: tuple[Figures, ...]


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """One table of a plan."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Any, ...]
    tagger: str | None = None
    show: Literal["F1", "ratio", "type", "length"] = "F1"
    corpora: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validate(self)
        message = "type and length are columns, so corpora is needed: those over which figures are averaged"
        if self.is_by_part and not self.corpora:
            raise ParameterError(message, parameter="corpora", remedy='write corpora = ["NAME", ...]')
        if self.corpora and not self.is_by_part:
            message = "corpora are the columns of this table"
            raise ParameterError(message, parameter="corpora", remedy="leave it out")
        for number, row in enumerate(self.rows, start=1):
            if fault := _fault_of(row, len(self.columns)):
                raise ParameterError(f"row {number} {fault}", parameter="rows", remedy=f"correct it: {_ROW}")

    @property
    def is_by_part(self) -> bool:
        """Whether the columns are parts of the test sentences, by type or length, instead of corpora."""
        return self.show in ("type", "length")

    @property
    def cells(self) -> Iterator[Row]:
        """The rows."""
        for row in self.rows:
            size, (arm, *figures) = (row[0], row[1:]) if isinstance(row[0], int) else (None, row)
            yield Row(size, arm, tuple(map(_figures, figures or [NO_FIGURE] * len(self.columns))))

    @property
    def lengths(self) -> list[int]:
        """The last length of each bin but the last; the columns are such as 1-4 and 5+."""
        try:
            return [int(column.partition("-")[2]) for column in self.columns[:-1]]
        except ValueError:
            message = f"lengths must be columns such as 1-4, 5-9 and 10+, not {', '.join(self.columns)}"
            raise ParameterError(message, parameter="columns") from None


_ROW = "a row has a size where corpora have several, an arm, and a figure for each column, or none at all"


def _fault_of(row: Any, width: int) -> str:
    if not isinstance(row, list | tuple) or not row or (len(row) == 1 and type(row[0]) is int):
        return "is not a list with an arm"
    arm, *figures = row[1:] if type(row[0]) is int else row
    if type(row[0]) is int and not 0 < row[0] < _MAX:
        return f"has {row[0]} in place of a size"
    if not isinstance(arm, str):
        return f"has {arm!r} in place of an arm"
    if figures and len(figures) != width:
        return f"has {len(figures)} figures for {width} columns"
    for figure in figures:
        parts = figure if isinstance(figure, list | tuple) and len(figure) == 2 else [figure]
        if figure != NO_FIGURE and not all(type(part) in (int, float) and abs(part) < _MAX for part in parts):
            return f"has {figure!r} in place of a figure, of two for F1 and macro-F1, or of {NO_FIGURE!r}"
    return ""


def _figures(figure: Any) -> Figures:
    if figure == NO_FIGURE:
        return ()
    return tuple(figure) if isinstance(figure, list | tuple) else (figure,)
