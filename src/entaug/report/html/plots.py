"""The plots of a report: marks in rows over one axis, which the template draws, and their values as a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Literal, NamedTuple

from entaug.core.data import Sentence
from entaug.formats.augmented import AugmentedCorpus
from entaug.metrics.tables import Table
from entaug.report.comparison import GOLD_STEPS, ArmResult, Setting
from entaug.report.html.marks import MethodMark, method_marks
from entaug.study.records import BASELINES

_MAX_LABELS = 14
_LEFT, _WIDTH = 170, 430  # of the axis, in units of the drawing
_MAX_TICKS = 8

Interval = tuple[float, float]


class Mark(NamedTuple):
    """A mark in a row: a bar or a symbol at a value, or a line or box from one value to another."""

    # Colours are "gold", "augmented", and "method method-3" for that with a number.
    kind: Literal["bar", "symbol", "line", "box"]
    colour: str
    start: float
    end: float = 0.0
    symbol: str = ""


class Series(NamedTuple):
    """An entry of the legend."""

    symbol: str
    colour: str
    name: str


@dataclass(frozen=True)
class Plot:
    """A plot with its texts."""

    title: str
    text: str
    axis: str
    limits: Interval
    rows: Sequence[tuple[str, Sequence[Mark]]]
    table: Table
    legend: Sequence[Series] = ()

    def x(self, value: float) -> float:
        """The place of a value in the drawing."""
        low, high = self.limits
        return round(_LEFT + _WIDTH * (min(max(value, low), high) - low) / (high - low), 1)

    @property
    def ticks(self) -> list[float]:
        """The values that the axis names: multiples of 1, 2 or 5 and a power of 10."""
        low, high = self.limits
        power = 10 ** math.floor(math.log10((high - low) / _MAX_TICKS))
        step = next(power * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (power * factor) <= _MAX_TICKS)
        return [round(step * n, 6) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _accepted(corpus: AugmentedCorpus) -> dict[str, list[Sentence]]:
    """The accepted sentences of each method that has any."""
    accepted = {
        name: [pair.augmented for pair in pairs if pair.rejection is None] for name, pairs in corpus.methods.items()
    }
    return {name: sentences for name, sentences in accepted.items() if sentences}


def label_plot(corpus: AugmentedCorpus) -> Plot | None:
    """Plot the shares of labels among the mentions of the gold sentences and of each method."""
    methods = {name: _label_counts(sentences) for name, sentences in _accepted(corpus).items()}
    gold = _label_counts(corpus.gold)
    total = sum(methods.values(), gold)
    if not total or not methods:
        return None
    labels = sorted(total, key=lambda label: (-(gold or total)[label], label))
    shown = labels if len(labels) <= _MAX_LABELS else labels[: _MAX_LABELS - 1]
    # Methods differ in their colour, and in their symbol, which everybody can see.
    signs = method_marks(corpus)
    rows = []
    for label in shown:
        marks = [Mark("bar", "gold", _percent(gold, label))] if gold else []
        for name, counts in methods.items():
            if counts:
                marks.append(Mark("symbol", _colour(signs[name]), _percent(counts, label), symbol=signs[name].symbol))
        rows.append((label, marks))
    rest = f" The {len(shown)} most frequent of {len(labels)} types are shown." if len(shown) < len(labels) else ""
    return Plot(
        "Entity types before and after",
        f"Bars show the share of a type among the mentions of gold sentences, symbols those of methods.{rest}",
        "share of the mentions, %",
        (0.0, 1.05 * max(mark.start for _, marks in rows for mark in marks)),
        rows,
        Table(
            ["type", "gold", *methods],
            [[label, *(_count_and_share(counts, label) for counts in (gold, *methods.values()))] for label in labels],
        ),
        [Series("❙", "gold", "gold"), *(Series(signs[n].symbol, _colour(signs[n]), n) for n in methods)],
    )


def _label_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    return Counter(mention.label for sentence in sentences for mention in sentence.mentions)


def _colour(sign: MethodMark) -> str:
    return f"method method-{sign.colour}"


def _percent(counts: Counter[str], label: str) -> float:
    return 100 * counts[label] / counts.total()


def _count_and_share(counts: Counter[str], label: str) -> str:
    return f"{counts[label]:,} ({_percent(counts, label):.1f} %)" if counts else "-"


def length_plot(corpus: AugmentedCorpus) -> Plot | None:
    """Plot quantiles of the sentence lengths of the gold sentences and of each method."""
    methods = _accepted(corpus)
    if not methods:
        return None
    signs = method_marks(corpus)
    groups = [("gold", corpus.gold)] if corpus.gold else []
    groups += methods.items()
    rows, cells = [], []
    for number, (name, sentences) in enumerate(groups):
        low, first, median, third, high = values = _five_quantiles([len(sentence) for sentence in sentences])
        colour = "gold" if corpus.gold and not number else _colour(signs[name])
        marks = [Mark("line", colour, low, high), Mark("box", colour, first, third), Mark("bar", colour, median)]
        rows.append((name, marks))
        cells.append([name, f"{len(sentences):,}", *(f"{value:g}" for value in values)])
    return Plot(
        "Sentence lengths before and after",
        "Bars are medians, boxes contain the middle half of the sentences, lines nine of ten.",
        "tokens per sentence",
        (0.0, 1.05 * max(mark.end for _, marks in rows for mark in marks)),
        rows,
        Table(["method", "sentences", "5 %", "25 %", "median", "75 %", "95 %"], cells),
    )


def _five_quantiles(values: Sequence[int]) -> tuple[float, ...]:
    """The 5 %, 25 %, 50 %, 75 % and 95 % quantiles."""
    if len(values) < 2:
        return (float(values[0]),) * 5
    twentieths = quantiles(values, n=20, method="inclusive")
    return tuple(twentieths[i] for i in (0, 4, 9, 14, 18))


def f1_plot(setting: Setting, results: Sequence[ArmResult]) -> Plot | None:
    """Plot the F1 of the arms of a setting, with intervals, beside gold alone at equal steps."""
    # Intervals are those of the gain over `gold-steps`, around the F1 of the arm: an interval that does not reach the
    # F1 of `gold-steps` shows a difference.
    base = {result.arm.ratio: 100 * result.f1 for result in results if result.arm.name == GOLD_STEPS}
    rows, cells, intervals = [], [], []
    has_single_seed = False
    for result in results:
        f1, interval, difference = 100 * result.f1, _interval(result, base), result.difference
        ends = "{:.1f} to {:.1f}".format(*interval) if interval else "-"
        if interval and difference and difference.caution:
            ends += f" ({difference.caution})"
        cells.append([str(result.arm), f"{f1:.1f}", ends, difference.verdict if difference else "-"])
        if result.arm.name in BASELINES[:2]:
            continue
        has_single_seed |= difference is not None and difference.seeds == 1
        marks = [Mark("symbol", "augmented", f1, symbol="●")]
        if interval:
            marks.insert(0, Mark("line", "augmented", *interval))
            intervals.append(interval)
        if result.arm.ratio in base:
            marks.append(Mark("bar", "gold", base[result.arm.ratio]))
        rows.append((str(result.arm), marks))
    if not rows:
        return None
    single = " With one seed they do not cover the variance of training: no verdict." if has_single_seed else ""
    return Plot(
        f"F1 on {setting}",
        "Lines are the 95 % interval of the gain over gold alone at equal steps: "
        f"where they do not reach the bar of gold alone, a difference is seen.{single}",
        "micro-F1",
        _limits([mark.start for _, marks in rows for mark in marks if mark.kind != "line"], intervals),
        rows,
        Table(["arm", "F1", "95 % interval", "verdict"], cells),
        [Series("❙", "gold", "gold alone, equal steps")] if base else [],
    )


def _interval(result: ArmResult, base: Mapping[float, float]) -> Interval | None:
    """The interval of the gain, moved to the F1 of the arm, in points."""
    difference = result.difference
    if difference is None or result.arm.ratio not in base:
        return None
    offset = result.f1 - difference.gain
    return 100 * (offset + difference.low), 100 * (offset + difference.high)


def _limits(means: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Limits that show all means, and the intervals as far as these leave room for the means."""
    low, high = min(means), max(means)
    room = max(3.0, 1.5 * (high - low))
    ends = [end for interval in intervals for end in interval]
    bottom, top = max(low - room, min([low, *ends])), min(high + room, max([high, *ends]))
    edge = 0.05 * (top - bottom) + 0.3
    return max(-1.0, bottom - edge), min(101.0, top + edge)
