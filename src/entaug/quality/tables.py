"""What was measured as tables: a measure a row, a method a column, gold first."""

from __future__ import annotations

from collections.abc import Sequence

from entaug.quality import MEASURES, Quality

__all__ = ["glossary", "markdown", "table"]

_BACKENDS = {"causal_lm": "a causal LM", "masked_lm": "a masked LM", "encoder": "an encoder"}
_UNITS = {"": "", "share": "a share; ", "score": "a score; "}


def table(found: Sequence[Quality]) -> str:
    """As aligned columns, for a terminal or a pipe.

    Example:
        >>> print(table([Quality("mr", 2, {"new_words": 0.25, "length": 12.0})]), end="")
                      mr
        sentences      2
        New words  25.0%
        Length      12.0
    """
    rows = _rows(found)
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            [f"{row[0]:<{wide[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], wide[1:], strict=True))]
        )
        for row in rows
    ]
    return "".join(f"{line}\n" for line in [*lines, *_notes(found, "note: ")])


def markdown(found: Sequence[Quality]) -> str:
    """As Markdown, with what each measure means below.

    Example:
        >>> print(markdown([Quality("mr", 2, {"new_words": 0.25})]).split("##")[0], end="")
        # Quality of augmented sentences
        <BLANKLINE>
        |  | mr |
        |---|---:|
        | sentences | 2 |
        | New words | 25.0% |
        <BLANKLINE>
    """
    head, *rows = [[cell.replace("|", "\\|") for cell in row] for row in _rows(found)]
    lines = ["# Quality of augmented sentences", "", f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    if notes := _notes(found, "- "):
        lines += ["", *notes]
    lines += ["", "## What they mean", ""]
    for name in _names(found):
        measure = MEASURES[name]
        lines.append(f"- {measure.title} (`{name}`): {measure.meaning}. More: {measure.higher}.")
    return "\n".join(lines) + "\n"


def glossary() -> str:
    """What there is to measure, and what each means.

    Example:
        >>> print(glossary().splitlines()[0])
        perplexity                Perplexity: of a causal language model, by sub-words
    """
    lines = []
    for name, (title, meaning, unit, higher, needs, _) in MEASURES.items():
        lines.append(f"{name:<25} {title}: {meaning}")
        asks = f"needs {_BACKENDS[needs]}" if needs else "needs no model"
        lines.append(f"{'':<25} {_UNITS.get(unit, f'in {unit}; ')}more: {higher}; {asks}")
    return "\n".join(lines) + "\n"


def _names(found: Sequence[Quality]) -> list[str]:
    return [name for name in MEASURES if any(name in one.values for one in found)]


def _rows(found: Sequence[Quality]) -> list[list[str]]:
    rows = [["", *(one.name for one in found)], ["sentences", *(f"{one.sentences:,}" for one in found)]]
    rows += [[MEASURES[name].title, *(_cell(name, one.values.get(name)) for one in found)] for name in _names(found)]
    return rows


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if MEASURES[name].unit == "share":
        return f"{value:.1%}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}" if MEASURES[name].unit == "score" else f"{value:.2f}"


def _notes(found: Sequence[Quality], before: str) -> list[str]:
    named = [(f"{one.name}: " if one.name and one.name != "gold" else "", one.notes) for one in found]
    return [f"{before}{name}{note}" for name, notes in named for note in notes]
