"""The parts of a page put together: one file that needs nothing else."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from entaug._version import __version__
from entaug.augmented import AugmentedCorpus, AugmentedPair
from entaug.errors import MissingExtraError
from entaug.quality import MEASURES, Quality
from entaug.report.comparison import Parts, cell_name
from entaug.report.html import plots
from entaug.report.html.data import Column, shown, signature_of

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["assembled"]

_SCRIPTS = ("sentences.js", "feed.js", "review.js", "page.js")
_GOLD = "gold"  # the name under which the gold sentences are measured
_ACROSS, _UP = "perplexity", "new_words"


@dataclass(frozen=True)
class _Method:
    """What the overview says of a method."""

    name: str
    summary: str
    parameters: tuple[tuple[str, str], ...]
    kept: int
    refused: tuple[tuple[str, int], ...]
    of: int


def assembled(
    made: AugmentedCorpus,
    parts: Parts | None,
    qualities: Sequence[Quality],
    *,
    title: str,
    notes: Sequence[str] = (),
    summaries: Mapping[str, str] | None = None,
) -> str:
    """The whole page.

    Args:
        made: gold and augmented sentences.
        parts: the report on the records of experiments, if there are any.
        qualities: what was measured, by the names of `made.methods`, and as ``"gold"`` of the gold sentences.
        title: of the page.
        notes: what a reader should know.
        summaries: what each registered method does, by its registry name.

    Raises:
        MissingExtraError: a library that the page needs is not installed.
    """
    data = shown(made, _columns(qualities, made))
    style = _text("page.css")
    script = "\n".join(_text(name) for name in _SCRIPTS)
    cells = []
    for number, (cell, rows) in enumerate(parts.cells.items() if parts else ()):
        table = _markdown(parts.tables[cell]) if parts else ""
        cells.append({"name": cell_name(cell), "plot": plots.amounts(cell, rows, number), "table": table})
    figures = [_spread(qualities), plots.types(made), plots.lengths(made)]
    return (
        _environment()
        .from_string(_text("page.html"))
        .render(
            title=title,
            version=__version__,
            style=style,
            script=script,
            policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'",
            data=data,
            made=made,
            counts=_counts(made),
            methods=[_method(name, pairs, summaries or {}) for name, pairs in made.methods.items()],
            measures=_measures(qualities),
            names=[quality.name for quality in qualities],
            plots=[figure for figure in figures if figure is not None],
            experiments=parts
            and {
                "summary": _markdown("\n".join(parts.summary)),
                "cells": cells,
                "notes": _markdown("\n".join(parts.notes)),
            },
            notes=list(dict.fromkeys([*notes, *made.notes])),
            remarks=_remarks(made, qualities),
        )
    )


def _text(name: str) -> str:
    return files("entaug.report.html").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _environment() -> Environment:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report") from None
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["figure"] = lambda number: f"{number:,}"
    return made


def _markdown(text: str) -> str:
    """Markdown as HTML, below the headings of the page and without style attributes, which its policy forbids."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise MissingExtraError("markdown-it-py", "report") from None
    engine = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = engine.parse(text)
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 1)}"
        if "style" in token.attrs:
            token.attrs = {"class": "figure"}
        if token.type == "table_open":  # wide ones scroll by themselves, with the keyboard too
            token.attrs = {"class": "records"}
    html: str = engine.renderer.render(tokens, engine.options, {})
    scrolls = '<div class="wide" tabindex="0" role="group" aria-label="table of records">\n<table class="records">'
    return html.replace('<table class="records">', scrolls).replace("</table>", "</table></div>")


def _counts(made: AugmentedCorpus) -> dict[str, Any]:
    every = [pair for pairs in made.methods.values() for pair in pairs]
    kept = [pair for pair in every if pair.rejection is None]
    return {
        "gold": len(made.gold),
        "types": len({m.label for sentence in made.gold for m in sentence.mentions}),
        "mentions": sum(len(sentence.mentions) for sentence in made.gold),
        "kept": len(kept),
        "refused": len(every) - len(kept),
    }


def _method(name: str, pairs: Sequence[AugmentedPair], summaries: Mapping[str, str]) -> _Method:
    signature = signature_of(pairs)
    first, *rest = (signature or "").split("|")
    parameters = tuple((key, value) for key, equals, value in (part.partition("=") for part in rest) if equals)
    refused = Counter(pair.rejection for pair in pairs if pair.rejection is not None)
    kept = [pair for pair in pairs if pair.rejection is None]
    return _Method(
        name,
        summaries.get(first, ""),
        parameters,
        len(kept),
        tuple(refused.most_common()),
        len({id(pair.source) for pair in kept if pair.source is not None}),
    )


def _remarks(made: AugmentedCorpus, qualities: Sequence[Quality]) -> list[str]:
    """What to know of the measures, each once; those that come with the gold sentences speak of the whole."""
    found = [
        note if quality.name == _GOLD else f"{quality.name}: {note}"
        for quality in qualities
        for note in quality.notes
        if note not in made.notes
    ]
    return list(dict.fromkeys(found))


def _columns(qualities: Sequence[Quality], made: AugmentedCorpus) -> list[Column]:
    """The measures that sentences have one by one; drafts that were refused have none."""
    found: dict[str, dict[str, Sequence[float | None]]] = {}
    for quality in qualities:
        pairs = made.methods.get(quality.name, [])
        for measure, values in quality.by_sentence.items():
            if pairs and len(values) == sum(pair.rejection is None for pair in pairs):
                left = iter(values)
                found.setdefault(measure, {})[quality.name] = [
                    _shown(measure, next(left)) if pair.rejection is None else None for pair in pairs
                ]
    return [Column(measure, _title(measure), _meaning(measure), values) for measure, values in found.items()]


def _shown(measure: str, value: float | None) -> float | None:
    """A figure in the unit that people read it in: a share in percent."""
    return value if value is None or MEASURES[measure].unit != "share" else 100 * value


def _title(measure: str) -> str:
    unit = {"share": "%", "score": ""}.get(MEASURES[measure].unit, MEASURES[measure].unit)
    return f"{MEASURES[measure].title}, {unit}" if unit else MEASURES[measure].title


def _meaning(measure: str) -> str:
    return MEASURES[measure].explanation


def _measures(qualities: Sequence[Quality]) -> list[dict[str, Any]]:
    """The rows of the table of measures that have a figure somewhere."""
    rows = []
    for measure in MEASURES:
        values = [quality.values.get(measure) for quality in qualities]
        if any(value is not None for value in values):
            words = _in_words([_shown(measure, value) for value in values])
            rows.append({"title": _title(measure), "meaning": _meaning(measure), "values": words})
    return rows


def _in_words(values: Sequence[float | None]) -> list[str]:
    """The figures of a row with as many places as a reader wants, the same for all.

    Example:
        >>> _in_words([1234.5, 50.0, None]), _in_words([53.21, 6.0]), _in_words([0.0123, 0.0])
        (['1,234', '50', '-'], ['53.2', '6.0'], ['0.012', '0.000'])
    """
    most = max((abs(value) for value in values if value is not None), default=0.0)
    places = 0 if most >= 1000 or not most else 1 if most >= 10 else 2 if most >= 1 else 3
    return ["-" if value is None else f"{value:,.{places}f}" for value in values]


def _spread(qualities: Sequence[Quality]) -> plots.Plot | None:
    """Diversity against perplexity; of gold sentences no word is new, by definition."""
    points = {}
    for quality in qualities:
        new = 0.0 if quality.name == _GOLD else quality.values.get(_UP)
        points[quality.name] = quality.values.get(_ACROSS), _shown(_UP, new)
    title = f"{MEASURES[_UP].title} against {MEASURES[_ACROSS].title.lower()}"
    return plots.spread(points, _title(_ACROSS).lower(), _title(_UP).lower(), title) if len(points) > 1 else None
