"""The plots of a report, each with its values as a table, drawn with matplotlib as SVG elements of a page."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from entaug.core.data import Sentence
from entaug.errors import MissingExtraError
from entaug.formats.augmented import AugmentedCorpus
from entaug.metrics.quality import GOLD
from entaug.metrics.tables import Table
from entaug.report.comparison import BASELINES, GOLD_STEPS, ArmResult, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# ------------------------------------------------------------------------------------------------------------------ SVG

COLOURS = {name: f"#0001{number:02x}" for number, name in enumerate(("ink", "muted", "line", "gold", "augmented"))}
"""Placeholder colours by class name."""
_CLASSES = {colour: name for name, colour in COLOURS.items()}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that labels may hold, and XML not
_LINK = "{http://www.w3.org/1999/xlink}href"
_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["line"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.linewidth": 1,
    "grid.color": COLOURS["line"],
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.labelcolor": COLOURS["ink"],
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["line"],
    "ytick.color": COLOURS["line"],
    "xtick.labelcolor": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["ink"],
}


@contextlib.contextmanager
def figure(width: float, height: float, salt: str, style: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """The axes of a figure that does not depend on the settings of the user; text stays text."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        parameters: Any = {"svg.fonttype": "none", "text.parse_math": False, **(style or {}), "svg.hashsalt": salt}
        mpl.rcParams.update(parameters)
        warnings.filterwarnings("ignore", "Glyph")  # letters that matplotlib's font lacks
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)  # measures text
        yield drawn.add_subplot()


def draw_svg(draw: Callable[[Axes], None], *, width: float, height: float, name: str, title: str) -> str:
    """Draw a figure as an ``svg`` element."""
    stream = io.StringIO()
    with figure(width, height, name, _STYLE) as axes:
        draw(axes)
        axes.tick_params(which="both", length=0)
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        axes.figure.savefig(stream, format="svg", transparent=True, metadata=metadata)
    return _convert(stream.getvalue(), title)


def _convert(svg: str, title: str) -> str:
    """The figure as an element of HTML: placeholder colours as classes, styles as attributes, no metadata."""
    root = ET.fromstring(_NOT_XML.sub("\ufffd", svg))  # noqa: S314
    for element in list(root.iter()):
        for child in list(element):
            if child.tag.endswith(("}metadata", "}style")):
                element.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        style = dict(re.findall(r"([\w-]+)\s*:\s*([^;]+)", element.attrib.pop("style", "")))
        if "font" in style:  # of rotated or centred text
            style["font-size"] = style.pop("font").split("px")[0].split()[-1] + "px"
        style.pop("font-family", None)  # that of the page
        classes = []
        for kind in ("fill", "stroke"):
            colour = style.pop(kind, None) or element.attrib.pop(kind, None)
            if colour in _CLASSES:
                classes.append(f"{kind}-{_CLASSES[colour]}")
            elif colour:
                element.set(kind, colour)
        for key, value in sorted(style.items()):
            element.set(key, value.strip().removesuffix("px"))
        if classes:
            element.set("class", " ".join(classes))
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.pop("version", None)
    root.attrib |= {"width": width, "height": height, "role": "img", "aria-label": title}
    return ET.tostring(root, encoding="unicode")


# ---------------------------------------------------------------------------------------------------------------- plots

_MAX_LABELS = 14
_MARKERS = "os^Dxv+P<>dphX"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Plot:
    """A plot with its texts."""

    title: str
    text: str
    svg: str
    table: Table


def _accepted(corpus: AugmentedCorpus) -> dict[str, list[Sentence]]:
    """The accepted sentences of each method that has any."""
    accepted = {
        name: [pair.augmented for pair in pairs if pair.rejection is None] for name, pairs in corpus.methods.items()
    }
    return {name: sentences for name, sentences in accepted.items() if sentences}


def _styles(methods: Collection[str]) -> Iterator[dict[str, Any]]:
    """How the points of each method are drawn: methods differ in their marker, which everybody can see."""
    for number, name in enumerate(methods):
        is_told = len(methods) <= len(_MARKERS)  # too many methods cannot be told apart
        marker = _MARKERS[number] if is_told else "o"
        label = name if is_told else None if number else "a method"
        edge = {"mew": 2} if marker in "x+" else {"alpha": 0.65, "mew": 0}
        yield {"marker": marker, "ls": "", "ms": 7, "color": COLOURS["augmented"], "label": label, **edge}


def _add_legend(axes: Axes, methods: Collection[str]) -> None:
    axes.figure.legend(loc="outside lower center", ncols=min(6, 1 + len(methods)))


def label_plot(corpus: AugmentedCorpus) -> Plot | None:
    """Plot the shares of labels among the mentions of the gold sentences and of each method."""
    methods = {name: _label_counts(sentences) for name, sentences in _accepted(corpus).items()}
    gold = _label_counts(corpus.gold)
    total = sum(methods.values(), gold)
    if not total or not methods:
        return None
    labels = sorted(total, key=lambda label: (label not in gold, -gold[label], label))
    if not gold:
        labels.sort(key=lambda label: -total[label])
    shown = labels if len(labels) <= _MAX_LABELS else labels[: _MAX_LABELS - 1]

    def draw(axes: Axes) -> None:
        rows = range(len(shown))
        if gold:
            shares = [_percent(gold, label) for label in shown]
            axes.plot(shares, rows, "|", ms=17, mew=2.5, color=COLOURS["gold"], label="gold")
        for counts, style in zip(methods.values(), _styles(methods), strict=True):
            shares = [_percent(counts, label) for label in shown] if counts else []
            axes.plot(shares, rows[: len(shares)], **style)
        _set_rows(axes, shown)
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        axes.set_xlabel("share of the mentions, %")
        _add_legend(axes, methods)

    title = "Entity types before and after"
    rest = f" The {len(shown)} most frequent of {len(labels)} types are shown." if len(shown) < len(labels) else ""
    return Plot(
        title,
        f"Bars show the share of a type among the mentions of gold sentences, other markers those of methods.{rest}",
        draw_svg(draw, width=6.2, height=1.1 + 0.3 * len(shown), name="types", title=title),
        Table(
            ["type", "gold", *methods],
            [[label, *(_count_and_share(counts, label) for counts in (gold, *methods.values()))] for label in labels],
        ),
    )


def _label_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    return Counter(mention.label for sentence in sentences for mention in sentence.mentions)


def _percent(counts: Counter[str], label: str) -> float:
    return 100 * counts[label] / counts.total()


def _count_and_share(counts: Counter[str], label: str) -> str:
    return f"{counts[label]:,} ({_percent(counts, label):.1f} %)" if counts else "-"


def _set_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows of a horizontal plot, the first at the top."""
    axes.set_yticks(range(len(names)), [name if len(name) <= 24 else f"{name[:23]}…" for name in names])
    axes.set_ylim(max(1, len(names)) - 0.4, -0.6)
    axes.grid(axis="x")


def length_plot(corpus: AugmentedCorpus) -> Plot | None:
    """Plot quantiles of the sentence lengths of the gold sentences and of each method."""
    methods = _accepted(corpus)
    if not methods:
        return None
    groups = [("gold", corpus.gold)] if corpus.gold else []
    groups += methods.items()
    rows = [(name, len(sentences), _five_quantiles([len(s) for s in sentences])) for name, sentences in groups]

    def draw(axes: Axes) -> None:
        for row, (_, _, (low, first, median, third, high)) in enumerate(rows):
            colour = COLOURS["gold" if corpus.gold and not row else "augmented"]
            axes.plot([low, high], [row, row], "-", lw=1.4, color=colour, solid_capstyle="round")
            axes.barh(row, third - first, left=first, height=0.5, color=colour, alpha=0.35, lw=0)
            axes.plot([median, median], [row - 0.25, row + 0.25], "-", lw=2.5, color=colour, solid_capstyle="butt")
        _set_rows(axes, [name for name, _, _ in rows])
        axes.set_xlim(left=0)
        axes.set_xlabel("tokens per sentence")

    title = "Sentence lengths before and after"
    return Plot(
        title,
        "Thick strokes are medians, boxes contain the middle half of the sentences, lines nine of ten.",
        draw_svg(draw, width=6.2, height=0.9 + 0.34 * len(rows), name="lengths", title=title),
        Table(
            ["method", "sentences", "5 %", "25 %", "median", "75 %", "95 %"],
            [[name, f"{count:,}", *(f"{value:g}" for value in values)] for name, count, values in rows],
        ),
    )


def _five_quantiles(values: Sequence[int]) -> tuple[float, ...]:
    """The 5 %, 25 %, 50 %, 75 % and 95 % quantiles."""
    if len(values) < 2:
        return (float(values[0]),) * 5
    twentieths = quantiles(values, n=20, method="inclusive")
    return tuple(twentieths[i] for i in (0, 4, 9, 14, 18))


def scatter_plot(
    points: Mapping[str, tuple[float | None, float | None]], x_label: str, y_label: str, title: str
) -> Plot | None:
    """Plot two measures of each method against each other."""
    known = {name: (x, y) for name, (x, y) in points.items() if x is not None and y is not None}
    if not known:
        return None
    methods = [name for name in known if name != GOLD]

    def draw(axes: Axes) -> None:
        xs = [x for x, _ in known.values()]
        if min(xs) > 0 and max(xs) > 8 * min(xs):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:,.0f}")
        if GOLD in known:
            axes.plot(*known[GOLD], "*", ms=15, mew=0, color=COLOURS["gold"], label="gold")
        for name, style in zip(methods, _styles(methods), strict=True):
            axes.plot(*known[name], **style)
        axes.margins(0.18)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.grid()
        _add_legend(axes, methods)

    return Plot(
        title,
        "The star stands for the gold sentences. Fluent and diverse methods are at the top left.",
        draw_svg(draw, width=6.2, height=4.0, name="spread", title=title),
        Table(["method", x_label, y_label], [[name, f"{x:,.1f}", f"{y:,.3g}"] for name, (x, y) in known.items()]),
    )


def f1_plot(setting: Setting, results: Sequence[ArmResult], number: int = 0) -> Plot | None:
    """Plot the F1 of the arms of a setting, with intervals, beside gold alone at equal steps."""
    # Intervals are those of the gain over `gold-steps`, around the F1 of the arm: an interval that does not reach the
    # F1 of `gold-steps` shows a difference.
    base = {result.arm.ratio: 100 * result.f1 for result in results if result.arm.name == GOLD_STEPS}
    shown = [result for result in results if result.arm.name not in BASELINES[:2]]
    if not (shown or base):
        return None
    has_single_seed = any(result.difference is not None and result.difference.seeds == 1 for result in shown)
    title = f"F1 on {setting}"
    limits = _limits([*(100 * result.f1 for result in shown), *base.values()], [_interval(r, base) for r in shown])

    def draw(axes: Axes) -> None:
        bars = [(base[result.arm.ratio], row) for row, result in enumerate(shown) if result.arm.ratio in base]
        for row, result in enumerate(shown):
            if interval := _interval(result, base):
                axes.plot(interval, [row, row], "-", lw=1.6, color=COLOURS["augmented"])
            axes.plot([100 * result.f1], [row], "o", ms=7, mew=0, color=COLOURS["augmented"])
        if bars:
            label = "gold alone, equal steps"
            axes.plot(*zip(*bars, strict=True), "|", ms=17, mew=2.5, color=COLOURS["gold"], label=label)
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, handlelength=1.2)
        _set_rows(axes, [str(result.arm) for result in shown])
        axes.set_xlim(*limits)
        axes.set_xlabel("micro-F1")

    rows = []
    for result in results:
        interval, difference = _interval(result, base), result.difference
        ends = "{:.1f} to {:.1f}".format(*interval) if interval else "-"
        if interval and difference and difference.caution:
            ends += f" ({difference.caution})"
        rows.append([str(result.arm), f"{100 * result.f1:.1f}", ends, difference.verdict if difference else "-"])
    return Plot(
        title,
        "Whiskers are the 95 % interval of the gain over gold alone at equal steps: "
        "where they do not reach the bar of gold alone, a difference is seen."
        + (" With one seed they do not cover the variance of training: no verdict." if has_single_seed else ""),
        draw_svg(draw, width=5.6, height=1.1 + 0.32 * max(1, len(shown)), name=f"ratios-{number}", title=title),
        Table(["arm", "F1", "95 % interval", "verdict"], rows),
    )


def _interval(result: ArmResult, base: Mapping[float, float]) -> Interval | None:
    """The interval of the gain, moved to the F1 of the arm, in points."""
    difference = result.difference
    if difference is None or result.arm.ratio not in base:
        return None
    offset = result.f1 - difference.gain
    return 100 * (offset + difference.low), 100 * (offset + difference.high)


def _limits(means: Sequence[float], intervals: Sequence[Interval | None]) -> Interval:
    """Limits that show all means, and the intervals as far as these leave room for the means."""
    low, high = min(means), max(means)
    room = max(3.0, 1.5 * (high - low))
    ends = [end for interval in intervals if interval for end in interval]
    bottom, top = max(low - room, min([low, *ends])), min(high + room, max([high, *ends]))
    edge = 0.05 * (top - bottom) + 0.3
    return max(-1.0, bottom - edge), min(101.0, top + edge)
