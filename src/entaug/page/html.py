"""The parts of a page put together: one file that needs nothing else."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from entaug._version import __version__
from entaug.errors import MissingExtraError
from entaug.page import plots
from entaug.page.data import Column, Measured, shown, signature_of
from entaug.pairs import Made, Pair
from entaug.report import Parts, cell_name

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["GOLD", "Meaning", "assembled"]

GOLD = "gold"
"""The name under which the gold sentences are measured."""
_SCRIPTS = ("sentences.js", "feed.js", "review.js", "page.js")
_ACROSS, _UP = "perplexity", ("diversity", "distinct_1", "distinct", "new_words", "ttr")


class Meaning(Protocol):
    """What the page needs to know of a measure; those of `entaug.quality.MEASURES` do."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def meaning(self) -> str:
        """What it says, in a sentence or two."""

    @property
    def unit(self) -> str:
        """What it is counted in; empty for a bare number."""


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
    made: Made,
    parts: Parts | None,
    qualities: Sequence[Measured],
    meanings: Mapping[str, Meaning],
    *,
    title: str,
    notes: Sequence[str] = (),
    summaries: Mapping[str, str] | None = None,
) -> str:
    """The whole page.

    Args:
        made: gold and augmented sentences.
        parts: the report on the records of experiments, if there are any.
        qualities: what was measured, by the names of `made.methods`, and under `GOLD` of the gold sentences.
        meanings: of the measures.
        title: of the page.
        notes: what a reader should know.
        summaries: what each registered method does, by its registry name.

    Raises:
        MissingExtraError: a library that the page needs is not installed.
    """
    data = shown(made, _columns(qualities, meanings, made))
    style = _text("page.css")
    script = "\n".join(_text(name) for name in _SCRIPTS)
    cells = []
    for number, (cell, rows) in enumerate(parts.cells.items() if parts else ()):
        table = _markdown(parts.tables[cell]) if parts else ""
        cells.append({"name": cell_name(cell), "plot": plots.amounts(cell, rows, number), "table": table})
    figures = [_spread(qualities, meanings), plots.types(made), plots.lengths(made)]
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
            measures=_measures(qualities, meanings),
            names=[quality.name for quality in qualities],
            plots=[figure for figure in figures if figure is not None],
            experiments=parts
            and {
                "summary": _markdown("\n".join(parts.summary)),
                "cells": cells,
                "notes": _markdown("\n".join(parts.notes)),
            },
            notes=[*notes, *made.notes, *(f"{q.name}: {note}" for q in qualities for note in q.notes)],
        )
    )


def _text(name: str) -> str:
    return files("entaug.page").joinpath(name).read_text("utf-8")


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
    scrolls = '<div class="wide" tabindex="0" role="region" aria-label="table of records">\n<table class="records">'
    return html.replace('<table class="records">', scrolls).replace("</table>", "</table></div>")


def _counts(made: Made) -> dict[str, Any]:
    every = [pair for pairs in made.methods.values() for pair in pairs]
    kept = [pair for pair in every if pair.rejected is None]
    return {
        "gold": len(made.gold),
        "types": len({m.label for sentence in made.gold for m in sentence.mentions}),
        "mentions": sum(len(sentence.mentions) for sentence in made.gold),
        "kept": len(kept),
        "refused": len(every) - len(kept),
    }


def _method(name: str, pairs: Sequence[Pair], summaries: Mapping[str, str]) -> _Method:
    signature = signature_of(pairs)
    first, *rest = (signature or "").split("|")
    parameters = tuple((key, value) for key, equals, value in (part.partition("=") for part in rest) if equals)
    refused = Counter(pair.rejected for pair in pairs if pair.rejected is not None)
    kept = [pair for pair in pairs if pair.rejected is None]
    return _Method(
        name,
        summaries.get(first, ""),
        parameters,
        len(kept),
        tuple(refused.most_common()),
        len({id(pair.source) for pair in kept if pair.source is not None}),
    )


def _columns(qualities: Sequence[Measured], meanings: Mapping[str, Meaning], made: Made) -> list[Column]:
    """The measures that sentences have one by one; drafts that were refused have none."""
    found: dict[str, dict[str, Sequence[float | None]]] = {}
    for quality in qualities:
        pairs = made.methods.get(quality.name, [])
        for measure, values in quality.by_sentence.items():
            if len(values) == sum(pair.rejected is None for pair in pairs) and pairs:
                left = iter(values)
                found.setdefault(measure, {})[quality.name] = [
                    next(left) if pair.rejected is None else None for pair in pairs
                ]
    return [
        Column(measure, _title(measure, meanings), meanings[measure].meaning if measure in meanings else "", values)
        for measure, values in found.items()
    ]


def _title(measure: str, meanings: Mapping[str, Meaning]) -> str:
    if measure not in meanings:
        return measure.replace("_", " ")
    unit = meanings[measure].unit
    return f"{meanings[measure].title}, {unit}" if unit else meanings[measure].title


def _measures(qualities: Sequence[Measured], meanings: Mapping[str, Meaning]) -> list[dict[str, Any]]:
    """The rows of the table of measures that have a figure somewhere."""
    rows = []
    for measure in dict.fromkeys(name for quality in qualities for name in quality.values):
        values = [quality.values.get(measure) for quality in qualities]
        if any(value is not None for value in values):
            meaning = meanings[measure].meaning if measure in meanings else ""
            rows.append(
                {
                    "name": measure,
                    "title": _title(measure, meanings),
                    "meaning": meaning,
                    "values": [_in_words(value) for value in values],
                }
            )
    return rows


def _in_words(value: float | None) -> str:
    """A figure with as many places as a reader wants.

    Example:
        >>> _in_words(1234.5), _in_words(53.21), _in_words(1.234), _in_words(0.0123), _in_words(None)
        ('1,234', '53.2', '1.23', '0.012', '-')
    """
    if value is None:
        return "-"
    size = abs(value)
    places = 0 if size >= 1000 or value == int(value) else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{places}f}"


def _spread(qualities: Sequence[Measured], meanings: Mapping[str, Meaning]) -> plots.Plot | None:
    """Diversity against perplexity, of the first measure of diversity that there is."""
    for measure in _UP:
        points = {q.name: (q.values.get(_ACROSS), q.values.get(measure)) for q in qualities}
        if any(x is not None and y is not None for x, y in points.values()):
            return plots.spread(points, _title(_ACROSS, meanings), _title(measure, meanings))
    return None
