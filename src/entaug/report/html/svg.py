"""Figures of matplotlib as SVG elements of a page.

Colours are placeholders that no figure uses otherwise; they become classes (``fill-ink``, ``stroke-gold`` ...), so that
the style sheet decides on light and dark colours. Style attributes, which the content policy forbids, become other
attributes. Text stays text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from entaug.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "add_labels", "draw_svg"]

_NAMES = ("ink", "muted", "line", "gold", "augmented", *(f"series-{number}" for number in range(8)))
COLOURS = {name: f"#0001{number:02x}" for number, name in enumerate(_NAMES)}
"""Placeholder colours by class name; ``series-0`` to ``series-7`` are for several series."""
_CLASSES = {colour: name for name, colour in COLOURS.items()}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that labels may hold, and XML not
_LINK = "{http://www.w3.org/1999/xlink}href"
_ATTRIBUTES = {
    *("fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap"),
    *("stroke-linejoin", "text-anchor", "opacity", "font-size", "font-weight"),
}
_STYLE: Any = {
    "svg.fonttype": "none",
    "axes.axisbelow": True,
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


def draw_svg(draw: Callable[[Axes], None], *, width: float, height: float, name: str, title: str) -> str:
    """Draw a figure as an ``svg`` element."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    stream = io.StringIO()
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # independent of the user's settings
        mpl.rcParams.update({**_STYLE, "svg.hashsalt": name})
        warnings.filterwarnings("ignore", "Glyph")  # browsers have letters that matplotlib's font lacks
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # measures text
        axes = figure.add_subplot()
        draw(axes)
        axes.tick_params(which="both", length=0)
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=metadata)
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
        if transform := style.pop("transform", None):
            element.set("transform", transform)
        classes = []
        for kind in ("fill", "stroke"):
            colour = style.pop(kind, None) or element.attrib.pop(kind, None)
            if colour in _CLASSES:
                classes.append(f"{kind}-{_CLASSES[colour]}")
            elif colour:
                element.set(kind, colour)
        for key in sorted(style.keys() & _ATTRIBUTES):
            element.set(key, style[key].strip().removesuffix("px"))
        if classes:
            element.set("class", " ".join(classes))
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.pop("version", None)
    root.attrib |= {"width": width, "height": height, "role": "img", "aria-label": title}
    return ET.tostring(root, encoding="unicode")


def add_labels(axes: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Add labels beside points, each on the side where it overlaps least with points and other labels."""
    from matplotlib.transforms import Bbox

    axes.figure.canvas.draw()  # fixes positions in pixels
    renderer = axes.figure.canvas.get_renderer()
    inside = axes.get_window_extent(renderer)
    taken = [Bbox.from_bounds(x - 8, y - 8, 16, 16) for x, y in axes.transData.transform([p[:2] for p in points])]

    def annotate(point: tuple[float, float, str], dx: int, dy: int) -> Any:
        *position, label = point
        style = {
            "ha": "center" if dx == 0 else "left" if dx > 0 else "right",
            "va": "center" if dy == 0 else "bottom" if dy > 0 else "top",
            "fontsize": 9,
            "color": COLOURS["ink"],
        }
        return axes.annotate(label, position, (dx, dy), textcoords="offset points", **style)

    def cost(box: Any) -> float:
        overlaps = [Bbox.intersection(box, other) for other in taken]
        overlap = sum(shared.width * shared.height for shared in overlaps if shared is not None)
        outside = max(0.0, box.x1 - inside.x1) + max(0.0, inside.x0 - box.x0)
        return float(overlap + 3 * outside * box.height)

    offsets = [(9, 0), (-9, 0), (0, 9), (0, -9), (8, 8), (-8, 8), (8, -8), (-8, -8)]
    for point in points:
        costs = []
        for dx, dy in offsets:
            text = annotate(point, dx, dy)
            costs.append(cost(text.get_window_extent(renderer)))
            text.remove()
        text = annotate(point, *offsets[costs.index(min(costs))])
        taken.append(text.get_window_extent(renderer))
