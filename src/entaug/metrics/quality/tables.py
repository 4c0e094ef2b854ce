"""Tables of measured quality: a row per measure, a column per method, gold first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from entaug.metrics.quality import GOLD, MEASURES, Quality

__all__ = ["list_measures", "markdown_table", "quality_markdown", "quality_table"]

_BACKENDS = {"causal_lm": "a causal LM", "masked_lm": "a masked LM", "encoder": "an encoder"}


def quality_table(qualities: Sequence[Quality]) -> str:
    """Format qualities as aligned columns for a terminal."""
    rows = _rows(qualities)
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]
    return "".join(f"{line}\n" for line in [*lines, *_notes(qualities, "note: ")])


def quality_markdown(qualities: Sequence[Quality]) -> str:
    """Format qualities as a Markdown document with the definitions of the measures."""
    head, *rows = _rows(qualities)
    parts = ["# Quality of augmented sentences\n", markdown_table(head, rows)]
    if notes := _notes(qualities, "- "):
        parts.append("".join(f"{note}\n" for note in notes))
    parts.append("## Definitions\n")
    parts += [f"- {MEASURES[name].title} (`{name}`): {MEASURES[name].explanation}" for name in _measured(qualities)]
    return "\n".join(parts) + "\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table in Markdown, all columns but the first aligned to the right."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    return line(head) + line(["---", *["---:"] * (len(head) - 1)]) + "".join(map(line, rows))


def list_measures() -> str:
    """The names of all measures with their descriptions, two lines each."""
    lines = []
    for name, measure in MEASURES.usable().items():
        facts = [f"unit: {measure.unit}"] if measure.unit else []
        facts += [f"higher: {measure.higher}"] if measure.higher != "neutral" else []
        facts.append(f"needs {_BACKENDS.get(measure.needs, measure.needs)}" if measure.needs else "needs no model")
        lines += [f"{name:<25} {measure.title}: {measure.description}", f"{'':<25} {'; '.join(facts)}"]
    return "\n".join(lines) + "\n"


def _measured(qualities: Sequence[Quality]) -> list[str]:
    return [name for name in MEASURES.usable() if any(name in quality.values for quality in qualities)]


def _rows(qualities: Sequence[Quality]) -> list[list[str]]:
    return [
        ["", *(quality.name for quality in qualities)],
        ["sentences", *(f"{quality.sentences:,}" for quality in qualities)],
        *(
            [MEASURES[name].title, *(_format(name, quality.values.get(name)) for quality in qualities)]
            for name in _measured(qualities)
        ),
    ]


def _format(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    unit = MEASURES[name].unit
    if unit == "share":
        return f"{value:.1%}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3 if unit == "score" else 2
    return f"{value:,.{digits}f}"


def _notes(qualities: Sequence[Quality], bullet: str) -> list[str]:
    return [
        f"{bullet}{f'{quality.name}: ' if quality.name not in ('', GOLD) else ''}{note}"
        for quality in qualities
        for note in quality.notes
    ]
