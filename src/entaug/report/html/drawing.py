"""Figures of matplotlib as SVG for a page: its colours are classes of the style sheet, its text is text.

A colour is drawn as a stand-in that nothing else has, and the stand-in becomes a class (``ink``, ``muted`` ...), so
light and dark are the style sheet's business. Nothing is left that a strict content policy forbids (style attributes).
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from entaug.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "drawn"]

COLOURS = {name: f"#0000{number:02x}" for number, name in enumerate(("ink", "muted", "line", "gold", "made"), start=1)}
"""The stand-ins by the class that they become; ``series-0`` and so on are those of several series."""
COLOURS |= {f"series-{number}": f"#0001{number:02x}" for number in range(8)}
_CLASSES = {colour: name for name, colour in COLOURS.items()}
_LINK = "{http://www.w3.org/1999/xlink}href"
_ATTRIBUTES = {
    *("fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap"),
    *("stroke-linejoin", "text-anchor", "opacity", "font-size", "font-weight"),
}
_STYLE: Any = {
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["line"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.labelsize": 10,
    "axes.linewidth": 1,
    "font.size": 10,
    "grid.color": COLOURS["line"],
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.labelcolor": COLOURS["ink"],
    "text.color": COLOURS["ink"],
    "text.parse_math": False,
    "xtick.color": COLOURS["line"],
    "ytick.color": COLOURS["line"],
    "xtick.labelcolor": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["ink"],
    "axes.unicode_minus": True,
}


def drawn(draw: Callable[[Axes], None], *, width: float, height: float, name: str, title: str) -> str:
    """One figure as an ``svg`` element.

    Args:
        draw: puts things on the axes, in colours of `COLOURS`.
        width: in inches of 72 points.
        height: likewise.
        name: a word that tells it from the other figures of the page.
        title: what it shows, for those who cannot see it.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    out = io.StringIO()
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # whatever the user's own settings are
        mpl.rcParams.update({**_STYLE, "svg.hashsalt": name})
        warnings.filterwarnings("ignore", "Glyph")  # its own font lacks letters that the browser's have
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # knows how wide words are
        axes = figure.add_subplot()
        axes.set_axisbelow(True)
        draw(axes)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return _plain(out.getvalue(), title)


def _plain(svg: str, title: str) -> str:
    """The figure without prologue, style attributes and what only editors of drawings want."""
    root = ET.fromstring(svg)  # noqa: S314
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML knows what an svg element is
        style = dict(re.findall(r"([\w-]+)\s*:\s*([^;]+)", element.attrib.pop("style", "")))
        if "font" in style:  # of text that is turned or centred
            style["font-size"] = style.pop("font").split("px")[0].split()[-1] + "px"
        if transform := style.pop("transform", None):
            element.set("transform", transform)
        classes = []
        for what in ("fill", "stroke"):
            colour = style.pop(what, None) or element.attrib.pop(what, None)
            if colour in _CLASSES:
                classes.append(f"{what}-{_CLASSES[colour]}")
            elif colour:
                element.set(what, colour)
        for key in sorted(style.keys() & _ATTRIBUTES):
            element.set(key, style[key].strip().removesuffix("px"))
        if classes:
            element.set("class", " ".join(classes))
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {"metadata", "style"}:
                parent.remove(child)
    _, _, wide, high = root.attrib["viewBox"].split()
    root.attrib.pop("version", None)
    root.attrib |= {"width": wide, "height": high, "role": "img", "aria-label": title}
    return ET.tostring(root, encoding="unicode")


def placed(axes: Any, points: list[tuple[float, float, str]]) -> None:
    """Names beside points, each on the side where it covers the least of what is there.

    Args:
        axes: where the points are drawn already, with their limits set.
        points: x, y and name.
    """
    from matplotlib.transforms import Bbox

    figure = axes.figure
    figure.canvas.draw()  # so that places in pixels are known
    renderer = figure.canvas.get_renderer()
    at = [axes.transData.transform((x, y)) for x, y, _ in points]
    taken = [Bbox.from_bounds(x - 8, y - 8, 16, 16) for x, y in at]
    inside = axes.get_window_extent(renderer)
    sides = [(9, 0, "left", "center"), (-9, 0, "right", "center"), (0, 9, "center", "bottom"), (0, -9, "center", "top")]
    sides += [(8, 8, "left", "bottom"), (-8, 8, "right", "bottom"), (8, -8, "left", "top"), (-8, -8, "right", "top")]
    for x, y, name in points:
        best: tuple[float, Any] | None = None
        for dx, dy, ha, va in sides:
            text = axes.annotate(
                name, (x, y), (dx, dy), textcoords="offset points", ha=ha, va=va, fontsize=9, color=COLOURS["ink"]
            )
            box = text.get_window_extent(renderer)
            shared = [Bbox.intersection(box, other) for other in taken]
            cost = sum(one.width * one.height for one in shared if one is not None)
            cost += 3 * max(0.0, box.x1 - inside.x1) * box.height + 3 * max(0.0, inside.x0 - box.x0) * box.height
            if best is None or cost < best[0]:
                if best is not None:
                    best[1].remove()
                best = cost, text
            else:
                text.remove()
        if best is not None:
            taken.append(best[1].get_window_extent(renderer))
