"""The HTML report: one page without references to others, made of a template, a style sheet and scripts."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import accumulate
from random import Random
from typing import Any

from entaug._version import __version__
from entaug.config.registry import import_object
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.methods import METHODS
from entaug.metrics.quality import GOLD, MEASURES, Quality, format_values
from entaug.metrics.tables import Block, shown_width
from entaug.report.html import plots
from entaug.report.html.examples import ScoreColumn, report_data, signature_of
from entaug.report.html.marks import MethodMark, method_marks
from entaug.report.markdown import report_parts
from entaug.study.records import RunRecord

_PACKAGE = "entaug.report.html"
_ROOM = 22  # columns of a name beside a plot


def render_page(template: str, *, styles: Sequence[str], scripts: Sequence[str], **values: Any) -> str:
    """Render a page that needs no other file and no network."""
    style, script = ("\n".join(read_part(name) for name in names) for names in (styles, scripts))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    page: str = (
        template_environment()
        .from_string(read_part(template))
        .render(style=style, script=script, policy=policy, version=__version__, **values)
    )
    return page


def template_environment() -> Any:
    """Return the environment of Jinja in which templates are rendered: text is escaped, unknown names are errors."""
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    options["loader"] = import_object("jinja2:FunctionLoader")(read_part)
    environment = import_object("jinja2:Environment")(undefined=import_object("jinja2:StrictUndefined"), **options)
    environment.filters["figure"] = lambda number: f"{number:,}"
    environment.filters["inline"] = _inline
    environment.filters["short"] = _short
    environment.filters["s"] = lambda number: "" if number == 1 else "s"
    return environment


def _inline(text: str) -> Any:
    """Text with the marks of a `entaug.metrics.tables.Block` as HTML."""
    escaped = str(import_object("markupsafe:escape")(text))
    strong = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return import_object("markupsafe:Markup")(re.sub("`(.+?)`", r"<code>\1</code>", strong))


def _short(name: str) -> str:
    """A name that has room beside a plot, where wide characters take twice as much."""
    if shown_width(name) <= _ROOM:
        return name
    while shown_width(name) >= _ROOM:
        name = name[:-1]
    return f"{name}…"


def read_part(name: str) -> str:
    """Return a template, a style sheet or a script of the package."""
    return files(_PACKAGE).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def render_html_document(title: str, blocks: Sequence[Block], figures: Sequence[plots.Plot] = ()) -> str:
    """Render a document with plots at its end."""
    parts: dict[str, Any] = {"styles": ["page.css"], "scripts": ["theme.js"]}
    return render_page("document.html", **parts, title=title, blocks=blocks, plots=figures)


# ----------------------------------------------------------------------------------------------------------- the report

MAX_EXAMPLES = 20_000
"""Number of augmented sentences that a page shows; of more, a random sample."""

SCRIPTS = ("theme.js", "sentences.js", "feed.js", "edit.js", "review.js", "page.js")


def render_html_report(
    corpus: AugmentedCorpus | None = None,
    records: Sequence[RunRecord] = (),
    *,
    qualities: Sequence[Quality] = (),
    title: str = "Augmented sentences",
    notes: Sequence[str] = (),
    **of_runs: Any,
) -> str:
    """Render a report on augmented sentences and experiments; further options are those of `report_parts`."""
    corpus = corpus or AugmentedCorpus()
    places = _drawn_examples(corpus)
    shown = AugmentedCorpus(
        corpus.gold, {name: [corpus.methods[name][i] for i in chosen] for name, chosen in places.items()}
    )
    signs = method_marks(corpus)
    figures = [plots.label_plot(corpus), plots.length_plot(corpus)]
    remarks = [
        note if quality.name == GOLD else f"{quality.name}: {note}"
        for quality in qualities
        for note in quality.notes
        if note not in corpus.notes
    ]
    return render_page(
        "page.html",
        styles=["page.css"],
        scripts=SCRIPTS,
        title=title,
        data=report_data(shown, _score_columns(qualities, corpus, places)),
        counts=corpus_counts(corpus),
        audit=None,
        methods=[_describe_method(name, pairs, signs[name]) for name, pairs in corpus.methods.items()],
        measures=_measure_rows(qualities),
        names=[(quality.name, signs.get(quality.name)) for quality in qualities],
        plots=[figure for figure in figures if figure is not None],
        experiments=_experiments(records, **of_runs) if records else None,
        notes=list(dict.fromkeys([*notes, *corpus.notes, *notes_on_examples(corpus)])),
        remarks=list(dict.fromkeys(remarks)),
    )


def notes_on_examples(corpus: AugmentedCorpus) -> list[str]:
    """Return what a report on a corpus says about the examples that it does not show; nothing where it shows all."""
    size = sum(map(len, corpus.methods.values()))
    if size <= MAX_EXAMPLES:
        return []
    shown = f"of {size:,} augmented sentences, {MAX_EXAMPLES:,} drawn at random are shown as examples"
    return [f"{shown}; counts, measures and plots are of all"]


def _drawn_examples(corpus: AugmentedCorpus) -> dict[str, Sequence[int]]:
    """The places of the examples that are shown of each method: all, or as many of each where it has as many."""
    left, places = MAX_EXAMPLES, {}
    methods = sorted(corpus.methods.items(), key=lambda item: len(item[1]))
    for number, (name, pairs) in enumerate(methods):
        taken = min(len(pairs), left // (len(methods) - number))
        places[name] = sorted(Random(0).sample(range(len(pairs)), taken))
        left -= taken
    return {name: places[name] for name in corpus.methods}


def _experiments(records: Sequence[RunRecord], **options: Any) -> dict[str, Any]:
    parts = report_parts(records, **options)
    return {
        "summary": parts.summary,
        "settings": [
            {"name": str(setting), "plot": plots.f1_plot(setting, results), "tables": parts.tables[setting]}
            for setting, results in parts.results.items()
        ],
        "notes": parts.notes,
    }


def corpus_counts(corpus: AugmentedCorpus) -> dict[str, int]:
    """The size of a corpus, for the head of a page."""
    pairs = [pair for pairs in corpus.methods.values() for pair in pairs]
    labels = Counter(mention.label for sentence in corpus.gold for mention in sentence.mentions)
    accepted = sum(pair.rejection is None for pair in pairs)
    return {
        "gold": len(corpus.gold),
        "types": len(labels),
        "mentions": labels.total(),
        "accepted": accepted,
        "rejected": len(pairs) - accepted,
    }


def _describe_method(name: str, pairs: Sequence[AugmentedPair], sign: MethodMark) -> dict[str, Any]:
    method, *parameters = (signature_of(pairs) or "").split("|")
    methods = METHODS.usable()
    accepted = [pair for pair in pairs if pair.rejection is None]
    return {
        "name": name,
        "mark": sign,
        "summary": methods[method].info.summary if method in methods else "",
        "parameters": [(key, value) for key, equals, value in (p.partition("=") for p in parameters) if equals],
        "accepted": len(accepted),
        "rejected": Counter(pair.rejection for pair in pairs if pair.rejection is not None).most_common(),
        "sources": len({id(pair.source) for pair in accepted if pair.source is not None}),
    }


def _score_columns(
    qualities: Sequence[Quality], corpus: AugmentedCorpus, places: Mapping[str, Sequence[int]]
) -> list[ScoreColumn]:
    """The measures of the single sentences at some places of each method; rejected sentences have no values."""
    columns: dict[str, dict[str, Sequence[float | None]]] = {}
    for quality in qualities:
        pairs = corpus.methods.get(quality.name, [])
        accepted = list(accumulate((pair.rejection is None for pair in pairs), initial=0))  # how many came before
        for name, values in quality.by_sentence.items():
            if pairs and len(values) == accepted[-1]:
                columns.setdefault(name, {})[quality.name] = [
                    _scale(name, values[accepted[i]]) if pairs[i].rejection is None else None
                    for i in places[quality.name]
                ]
    return [ScoreColumn(name, _title(name), MEASURES[name].explanation, values) for name, values in columns.items()]


def _scale(measure: str, value: float | None) -> float | None:
    """A value in the unit for readers: a share in percent."""
    return value if value is None or MEASURES[measure].unit != "share" else 100 * value


def _title(measure: str) -> str:
    unit = {"share": "%", "score": ""}.get(MEASURES[measure].unit, MEASURES[measure].unit)
    return f"{MEASURES[measure].title}, {unit}" if unit else MEASURES[measure].title


def _measure_rows(qualities: Sequence[Quality]) -> list[dict[str, Any]]:
    """The rows of the table of measures that have a value."""
    return [
        {"title": measure.title, "description": measure.explanation, "cells": format_values(name, qualities)}
        for name, measure in MEASURES.usable().items()
        if any(quality.values.get(name) is not None for quality in qualities)
    ]
