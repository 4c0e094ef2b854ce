"""The plots of a page, each with a table of the same figures for those who would rather read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from entaug.augmented import AugmentedCorpus
from entaug.data import Sentence
from entaug.report.comparison import Cell, Row, cell_name, group_name
from entaug.report.html.drawing import COLOURS, drawn, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plot", "amounts", "lengths", "spread", "types"]

_MOST_TYPES = 14
_MARKS = "osD^vPX*"


@dataclass(frozen=True)
class Plot:
    """A figure with its words.

    Args:
        title: what it is of.
        text: how to read it.
        svg: the figure.
        head: the names of the columns of its table.
        rows: the figures in words.
    """

    title: str
    text: str
    svg: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_SHAPES = "os^Dxv+P*"


def _kept(made: AugmentedCorpus) -> dict[str, list[Sentence]]:
    """What each method made that was kept."""
    found = {name: [p.augmented for p in pairs if p.rejection is None] for name, pairs in made.methods.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def types(made: AugmentedCorpus) -> Plot | None:
    """How often each entity type is mentioned, in the gold sentences and in what methods made."""
    groups = {name: _mentions(sentences) for name, sentences in _kept(made).items()}
    gold = _mentions(made.gold)
    total = sum((gold, *groups.values()), Counter())
    if not total or not groups:
        return None
    order = [label for label, _ in sorted((gold or total).items(), key=lambda item: (-item[1], item[0]))]
    order += sorted(total.keys() - set(order))
    shown = order if len(order) <= _MOST_TYPES else order[: _MOST_TYPES - 1]

    def share(counts: Counter[str], label: str) -> float:
        return 100 * counts[label] / counts.total() if counts else 0.0

    def draw(axes: Axes) -> None:
        rows = range(len(shown))
        if gold:
            xs = [share(gold, label) for label in shown]
            axes.plot(xs, rows, "|", ms=17, mew=2.5, color=COLOURS["gold"], label="gold")
        # Methods are told apart by shape, which needs no eye for colours; where there are too many they are not.
        for (name, counts), shape in zip(groups.items(), _SHAPES if apart else "o" * len(groups), strict=False):
            xs = [share(counts, label) for label in shown] if counts else []
            told = name if apart else "a method" if name == next(iter(groups)) else None
            drawn_as = {"ms": 7, "alpha": 0.65, "mew": 0} if shape not in "x+" else {"ms": 7, "mew": 2}
            axes.plot(xs, rows[: len(xs)], shape, color=COLOURS["made"], label=told, **drawn_as)
        axes.set_yticks(range(len(shown)), [_short(label) for label in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        axes.set_xlabel("share of the mentions, %")
        axes.grid(axis="x")
        axes.tick_params(length=0)
        axes.figure.legend(loc="outside lower center", ncols=min(6, 1 + len(groups)))

    apart = len(groups) <= len(_SHAPES)
    title = "Entity types before and after"
    rest = f" The {len(shown)} most frequent of {len(order)} types are drawn." if len(shown) < len(order) else ""
    return Plot(
        title,
        f"A bar marks the share of the mentions that a type has in gold sentences, the others those of methods.{rest}",
        drawn(draw, width=6.2, height=1.1 + 0.3 * len(shown), name="types", title=title),
        ("type", "gold", *groups),
        tuple(
            (label, _share_in_words(gold, label), *(_share_in_words(counts, label) for counts in groups.values()))
            for label in order
        ),
    )


def _mentions(sentences: Sequence[Sentence]) -> Counter[str]:
    return Counter(mention.label for sentence in sentences for mention in sentence.mentions)


def _share_in_words(counts: Counter[str], label: str) -> str:
    return f"{counts[label]:,} ({100 * counts[label] / counts.total():.1f} %)" if counts else "-"


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def lengths(made: AugmentedCorpus) -> Plot | None:
    """How long the sentences are, before and after."""
    groups = {"gold": list(made.gold)} if made.gold else {}
    groups |= _kept(made)
    if not groups or not _kept(made):
        return None
    told = {name: _five([len(sentence) for sentence in sentences]) for name, sentences in groups.items()}

    def draw(axes: Axes) -> None:
        for row, (name, (low, first, middle, third, high)) in enumerate(told.items()):
            colour = COLOURS["gold" if name == "gold" and made.gold else "made"]
            axes.plot([low, high], [row, row], "-", lw=1.4, color=colour, solid_capstyle="round")
            axes.barh(row, third - first, left=first, height=0.5, color=colour, alpha=0.35, lw=0)
            axes.plot([middle, middle], [row - 0.25, row + 0.25], "-", lw=2.5, color=colour, solid_capstyle="butt")
        axes.set_yticks(range(len(told)), [_short(name) for name in told])
        axes.set_ylim(len(told) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("tokens of a sentence")
        axes.grid(axis="x")
        axes.tick_params(length=0)

    title = "Sentence lengths before and after"
    return Plot(
        title,
        "The thick stroke is the median, the box holds the middle half of the sentences, the line nine of ten.",
        drawn(draw, width=6.2, height=0.9 + 0.34 * len(told), name="lengths", title=title),
        ("of", "sentences", "5 %", "25 %", "median", "75 %", "95 %"),
        tuple((name, f"{len(groups[name]):,}", *(f"{value:g}" for value in five)) for name, five in told.items()),
    )


def _five(values: Sequence[int]) -> tuple[float, float, float, float, float]:
    """The 5 %, 25 %, 50 %, 75 % and 95 % quantiles."""
    if len(values) < 2:
        return (float(values[0]),) * 5
    twentieths = quantiles(values, n=20, method="inclusive")
    return twentieths[0], twentieths[4], twentieths[9], twentieths[14], twentieths[18]


def spread(points: Mapping[str, tuple[float | None, float | None]], across: str, up: str, title: str) -> Plot | None:
    """Two measures of each method against one another.

    Args:
        points: by name, ``"gold"`` too, what lies across and what lies up.
        across: the name of the first measure.
        up: that of the second.
        title: of the plot.
    """
    there = [(x, y, name) for name, (x, y) in points.items() if x is not None and y is not None]
    if not there:
        return None

    def draw(axes: Axes) -> None:
        if min(x for x, _, _ in there) > 0 and max(x for x, _, _ in there) > 8 * min(x for x, _, _ in there):
            from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        for x, y, name in there:
            gold = name == "gold"
            axes.plot(
                [x], [y], "*" if gold else "o", ms=15 if gold else 8, mew=0, color=COLOURS["gold" if gold else "made"]
            )
        axes.margins(0.18)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid()
        axes.tick_params(which="both", length=0)
        placed(axes, there)

    return Plot(
        title,
        "A dot is a method, the star the gold sentences. Fluent and diverse at once is up on the left.",
        drawn(draw, width=6.2, height=4.0, name="spread", title=title),
        ("of", across, up),
        tuple((name, f"{x:,.1f}", f"{y:,.3g}") for x, y, name in there),
    )


def amounts(cell: Cell, rows: Sequence[Row], number: int = 0) -> Plot | None:
    """F1 against the amount of new sentences, with intervals, within a cell.

    The interval of a gain over gold alone at equal steps is drawn around where the F1 of gold alone lies: where it does
    not reach the line of gold alone, a difference is seen.

    Args:
        cell: corpus, size and tagger.
        rows: its compared groups.
        number: which of the page's it is.
    """
    base = {row.group[1]: row.f1 for row in rows if row.group[0] == "gold-steps"}
    arms: dict[str, list[Row]] = {}
    for row in rows:
        if row.group[0] not in ("gold", "gold-steps"):
            arms.setdefault(row.group[0], []).append(row)
    if not (arms or base):
        return None
    several = len({row.group[1] for of in arms.values() for row in of}) > 1
    title = f"F1 on {cell_name(cell)}"

    def draw(axes: Axes) -> None:
        (_lines if several else _forest)(axes, arms, base)
        axes.tick_params(length=0)

    named = [(group_name(row.group), row, _whisker(row, base)) for row in rows]
    return Plot(
        title,
        "Whiskers are the 95 % interval of the gain over gold alone at equal steps: "
        "where they do not reach the line of gold alone, a difference is seen.",
        drawn(
            draw,
            width=5.6,
            height=3.6 if several else 1.1 + 0.32 * max(1, len(arms)),
            name=f"amounts-{number}",
            title=title,
        ),
        ("arm", "F1", "95 % interval", "verdict"),
        tuple(
            (
                name,
                f"{100 * row.f1:.1f}",
                f"{whisker[0]:.1f} to {whisker[1]:.1f}" if whisker else "-",
                row.over_steps.verdict if row.over_steps else "-",
            )
            for name, row, whisker in named
        ),
    )


def _whisker(row: Row, base: Mapping[float, float]) -> tuple[float, float] | None:
    found = row.over_steps
    if found is None or row.group[1] not in base:
        return None
    # Around its own F1, which is that of gold alone and the gain where both have all seeds.
    return 100 * (row.f1 - found.gain + found.low), 100 * (row.f1 - found.gain + found.high)


def _forest(axes: Axes, arms: Mapping[str, list[Row]], base: Mapping[float, float]) -> None:
    """A row for each arm, where there is one amount."""
    for f1 in base.values():
        axes.axvline(100 * f1, color=COLOURS["gold"], lw=2, label="gold alone, equal steps")
    middles = [100 * row.f1 for of in arms.values() for row in of] + [100 * f1 for f1 in base.values()]
    for place, of in enumerate(arms.values()):
        for row in of:
            if whisker := _whisker(row, base):
                axes.plot(whisker, [place, place], "-", lw=1.6, color=COLOURS["made"])
            axes.plot([100 * row.f1], [place], "o", ms=7, mew=0, color=COLOURS["made"])
    axes.set_yticks(range(len(arms)), [_short(arm) for arm in arms])
    axes.set_ylim(max(1, len(arms)) - 0.4, -0.6)
    axes.set_xlim(*_around(middles, [_whisker(row, base) for of in arms.values() for row in of]))
    axes.set_xlabel("micro-F1")
    axes.grid(axis="x")
    if base:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, handlelength=1.2)


def _lines(axes: Axes, arms: Mapping[str, list[Row]], base: Mapping[float, float]) -> None:
    """A line for each arm over its amounts."""
    if base:
        xs = sorted(base)
        axes.plot(
            xs,
            [100 * base[x] for x in xs],
            "-",
            marker="_",
            lw=2,
            color=COLOURS["gold"],
            label="gold alone, equal steps",
        )
    whiskers: list[tuple[float, float] | None] = []
    for number, (arm, of) in enumerate(arms.items()):
        colour = COLOURS[f"series-{number % 8}"]
        of = sorted(of, key=lambda row: row.group[1])  # noqa: PLW2901
        aside = 1 + 0.012 * (number - (len(arms) - 1) / 2)  # so that whiskers do not cover one another
        xs = [row.group[1] * aside for row in of]
        axes.plot(xs, [100 * r.f1 for r in of], "-", marker=_MARKS[number % 8], ms=6, lw=1.3, color=colour, label=arm)
        for x, row in zip(xs, of, strict=True):
            whiskers.append(_whisker(row, base))
            if whisker := whiskers[-1]:
                axes.plot([x, x], whisker, "-", lw=1.1, color=colour, alpha=0.7)
    middles = [100 * row.f1 for of in arms.values() for row in of] + [100 * f1 for f1 in base.values()]
    axes.set_ylim(*_around(middles, whiskers))
    xs = sorted({row.group[1] for of in arms.values() for row in of})
    if len(xs) <= 12:
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.set_xlabel("new sentences for each gold one")
    axes.set_ylabel("micro-F1")
    axes.grid(axis="y")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def _around(middles: Sequence[float], whiskers: Sequence[Any]) -> tuple[float, float]:
    """Limits that show all means and the whiskers, unless those of a few seeds would leave no room for the means."""
    low, high = min(middles), max(middles)
    room = max(3.0, 1.5 * (high - low))
    ends = [end for whisker in whiskers if whisker for end in whisker]
    bottom, top = max(low - room, min([low, *ends])), min(high + room, max([high, *ends]))
    edge = 0.05 * (top - bottom) + 0.3
    return max(-1.0, bottom - edge), min(101.0, top + edge)
