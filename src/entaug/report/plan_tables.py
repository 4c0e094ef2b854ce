"""The tables that plans ask for: our figures, and in brackets the published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from entaug.metrics.span_f1 import MatchCounts, Scores
from entaug.metrics.tables import Block, Table
from entaug.report.comparison import ArmResult, Setting
from entaug.study.tables import AVERAGE, Figures, Row, TablePlan

_ROUNDED = 1.01  # of the last digit: the most by which the rounding of a mean and of its cells makes them differ
_NONE = "-"


def plan_tables(tables: Sequence[TablePlan], results: Mapping[Setting, Sequence[ArmResult]]) -> list[Block]:
    """The tables, each with its title, and below it the published averages that their own cells contradict."""
    # Without results they show the published figures alone.
    blocks: list[Block] = []
    for plan in tables:
        for table in _by_tagger(plan, results):
            rows = [_Cells(table, row, results).texts for row in table.cells]
            has_sizes = any(row.size is not None for row in table.cells)
            head = [*(["gold sentences"] if has_sizes else []), "arm", *table.columns]
            blocks += [f"**{table.title}**", Table(head, [row if has_sizes else row[1:] for row in rows])]
        if wrong := misprints(plan):
            blocks.append(wrong)
    return blocks


def _by_tagger(table: TablePlan, results: Mapping[Setting, Sequence[ArmResult]]) -> list[TablePlan]:
    """The table, or one for each tagger if it names none and results of several plans have others."""
    corpora = {*table.corpora, *table.columns}
    taggers = sorted({setting.tagger for setting in results if setting.corpus in corpora})
    if table.tagger is not None or len(taggers) < 2:
        return [table]
    return [replace(table, tagger=tagger, title=f"{table.title}, {tagger}") for tagger in taggers]


def misprints(table: TablePlan) -> list[str]:
    """The published averages that differ from the mean of their published cells, as sentences."""
    found = []
    printed_figures = (figure for row in table.cells for figures in row.figures for figure in figures)
    decimals = max((len(str(figure).partition(".")[2]) for figure in printed_figures), default=0)
    for row in table.cells:
        for column in _averages(table):
            printed, cells = row.figures[column.place], [row.figures[place] for place in column.over]
            mean = _mean(cells)
            if mean and any(abs(a - b) > _ROUNDED / 10**decimals for a, b in zip(printed, mean, strict=False)):
                size = "" if row.size is None else f"{row.size:,}, "
                message = f"{size}{row.arm}: the published average of {_text(printed)} is not the mean of its cells"
                found.append(f"{message}, {_text(mean)}.")
    return found


class _Average(NamedTuple):
    """A column of averages, and the columns that it is over."""

    place: int
    over: range


def _averages(table: TablePlan) -> list[_Average]:
    places = [place for place, column in enumerate(table.columns) if column == AVERAGE]
    return [_Average(end, range(start, end)) for start, end in zip([0, *(p + 1 for p in places)], places, strict=False)]


def _mean(cells: Sequence[Figures]) -> Figures:
    """The means of the figures; none where a cell has none, because it could not be compared with others."""
    if not cells or not all(cells):
        return ()
    return tuple(map(fmean, zip(*cells, strict=False)))


def _text(figures: Figures) -> str:
    return " / ".join(f"{figure:.2f}" for figure in figures) if figures else _NONE


class _Cells:
    """The cells of a row."""

    def __init__(self, table: TablePlan, row: Row, results: Mapping[Setting, Sequence[ArmResult]]) -> None:
        self.table = table
        self.row = row
        self.results = results
        self.num_figures = max((len(figures) for one in table.cells for figures in one.figures), default=0) or 1

    @property
    def texts(self) -> list[str]:
        ours = [() if column == AVERAGE else self._ours(column) for column in self.table.columns]
        for average in _averages(self.table):
            ours[average.place] = _mean([ours[place] for place in average.over])
        size = "" if self.row.size is None else f"{self.row.size:,}"
        write = _amount if self.table.show == "ratio" else _text
        cells = []
        for own, published in zip(ours, self.row.figures, strict=True):
            if not self.results:
                cells.append(write(published))
            else:
                cells.append(f"{write(own)} ({write(published)})" if published else write(own))
        return [size, self.row.arm, *cells]

    def _ours(self, column: str) -> Figures:
        if not self.table.is_by_part:
            return _mean([self._figures(result) for result in self._some(column)])
        by_corpus = [self._some(corpus) for corpus in self.table.corpora]
        if not all(by_corpus):
            return ()
        # A corpus without a mention of the part has no F1 of it.
        means = [_mean([f for f in (self._of_part(one, column) for one in some) if f]) for some in by_corpus]
        return _mean([mean for mean in means if mean])

    def _some(self, corpus: str) -> list[ArmResult]:
        return [
            result
            for setting, arms in self.results.items()
            if setting.corpus == corpus and self.table.tagger in (None, setting.tagger)
            if self.row.size in (None, setting.size)
            for result in arms
            if self._is_arm(result)
        ]

    def _is_arm(self, result: ArmResult) -> bool:
        """Whether the row is of this arm: by its name, or by name and ratio, which takes in all cells of a grid."""
        if self.row.arm == f"{result.method} {result.arm.ratio:g}N":
            return True
        return self.row.arm == result.method and (result.is_chosen or not result.is_searched)

    def _figures(self, result: ArmResult) -> Figures:
        if self.table.show == "ratio":
            return (result.arm.ratio,)
        return (100 * result.f1, 100 * fmean(record.test.macro for record in result.records))[: self.num_figures]

    def _of_part(self, result: ArmResult, part: str) -> Figures:
        parts = [_parts_of(self.table, record.test).get(part) for record in result.records]
        known = [100 * counts.f1 for counts in parts if counts and counts.gold]
        return (fmean(known),) if known else ()


def _parts_of(table: TablePlan, scores: Scores) -> Mapping[str, MatchCounts]:
    return scores.by_type if table.show == "type" else scores.length_counts(table.lengths)


def _amount(ratios: Figures) -> str:
    return f"{math.fsum(ratios):.4g}N" if ratios else _NONE
