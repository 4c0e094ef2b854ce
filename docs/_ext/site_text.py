"""What all made pages share: Markdown tables, the README's parts, and the project's own measurements."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from entaug.params import argument_descriptions

__all__ = ["MEASURED", "ROOT", "cell", "first_sentence", "home", "options_table", "readme", "rows_of", "table"]

ROOT = Path(__file__).parents[2]
MEASURED = {
    "speed" if path.name == "results.md" else path.stem: path
    for path in sorted([*ROOT.glob("benchmarks/*.md"), *ROOT.glob("benchmarks/results/*.md")])
}
"""Pages of measurements, by name."""


@cache
def readme() -> str:
    """The README."""
    return (ROOT / "README.md").read_text("utf-8")


def cell(text: object) -> str:
    """Text for a cell of a table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines) + "\n"


def rows_of(markdown: str) -> list[dict[str, str]]:
    """The rows of the first table of a Markdown text, by the names in its head."""
    lines = [line for line in markdown.split("\n\n|", 1)[-1].split("\n\n", 1)[0].splitlines() if "|" in line]
    cells = [[part.strip() for part in line.strip().strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def options_table(cls: type, dashes: str = "", head: str = "option", base: type | None = None) -> str:
    """The fields of a dataclass: name, default, and what its docstring says of each.

    Args:
        cls: the dataclass.
        dashes: what is put before a name on the command line, where it is not said as in Python.
        head: what the names are.
        base: a class whose fields come last, as all its subclasses have them.
    """
    told = argument_descriptions(cls)
    shared = {field.name for field in dataclasses.fields(base)} if base else set()
    rows = []
    for field in sorted(dataclasses.fields(cls), key=lambda field: field.name in shared):
        if field.init:
            usual = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
            option = dashes + field.name.replace("_", "-") if dashes else field.name
            rows.append((f"`{option}`", usual, told.get(field.name, "")))
    return table((head, "default", "what"), rows)


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, without its full stop."""
    return " ".join((text or "").strip().partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def home(markdown: str) -> str:
    """Links to files of the repository turned into links to their pages."""
    return re.sub(r"\]\((?!https?:|#|/)([^)#]+)(#[^)]*)?\)", lambda m: f"]({_page(m[1])}{m[2] or ''})", markdown)


def _page(path: str) -> str:
    if path in ("CONTRIBUTING.md", "CHANGELOG.md", "README.md"):
        return {"README.md": "/index.md"}.get(path, f"/{path.lower()}")
    for name, file in MEASURED.items():
        if file == ROOT / path:
            return f"/measured/{name}.md"
    return "/" + path.removeprefix("docs/")
