"""Shared by all generated pages: Markdown tables, links, and the project's measurements."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import entaug
from entaug.config.params import REQUIRED, parameters

__all__ = [
    "MEASURED",
    "PAGES",
    "ROOMS",
    "ROOT",
    "WITH_TABLES",
    "first_sentence",
    "links_to_pages",
    "options_table",
    "rows_of",
    "table",
]

ROOT = Path(__file__).parents[2]
ROOMS = ["entaug", *(f"entaug.{name}" for name in entaug.__all__ if inspect.ismodule(getattr(entaug, name)))]
"""The modules with public names."""
MEASURED = {
    **{path.stem: path for path in sorted([*ROOT.glob("benchmarks/*.md"), *ROOT.glob("benchmarks/results/*.md")])},
    "atlas": ROOT / "benchmarks/atlas/README.md",
    "papers": ROOT / "benchmarks/papers/README.md",
    **{f"papers-{path.stem}": path for path in sorted(ROOT.glob("benchmarks/papers/[a-z]*.md"))},
}
"""Pages of measurements, by name."""
_OF_THE_SITE = ("changelog.md", "contributing.md", "index.md")  # written by each build
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in _OF_THE_SITE),
]
"""The pages that the repository holds; GitHub shows them as they are."""
WITH_TABLES = [*PAGES, MEASURED["atlas"]]
"""The pages in which generated tables may stand."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def rows_of(markdown: str) -> list[dict[str, str]]:
    """The rows of the first table of a Markdown text, by the names in its head."""
    lines = [line for line in markdown.split("\n\n|", 1)[-1].split("\n\n", 1)[0].splitlines() if "|" in line]
    cells = [[part.strip() for part in line.strip().strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def options_table(cls: type, dashes: str = "", head: str = "option", base: type | None = None) -> str:
    """The parameters of a class: name, default, valid values, and description.

    Args:
        cls: a dataclass.
        dashes: the prefix of a name on the command line; empty for the names in Python.
        head: the heading of the names.
        base: a class whose parameters come last, as all its subclasses have them.
    """
    shared = {parameter.name for parameter in parameters(base)} if base else set()
    rows = []
    for parameter in sorted(parameters(cls), key=lambda parameter: parameter.name in shared):
        default = "" if parameter.default is REQUIRED else f"`{parameter.default!r}`"
        name = dashes + parameter.name.replace("_", "-") if dashes else parameter.name
        rows.append((f"`{name}`", default, parameter.expected, parameter.description))
    return table((head, "default", "values", "meaning"), rows)


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring, without its full stop."""
    return " ".join((text or "").strip().partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def links_to_pages(markdown: str, folder: Path = ROOT) -> str:
    """Turn links to files of the repository into links to pages of the site; those without a page become text.

    Args:
        markdown: a text of the repository.
        folder: the folder that its links start from.
    """

    def linked(match: re.Match[str]) -> str:
        page = _page_of((folder / match[2]).resolve())
        return match[1] if page is None else f"[{match[1]}]({page}{match[3] or ''})"

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|/)([^)#]+)(#[^)]*)?\)", linked, markdown)


def _page_of(file: Path) -> str | None:
    """The page of the site for a file of the repository."""
    for name, measured in MEASURED.items():
        if file == measured:
            return f"/measured/{name}.md"
    if file.suffix == ".md" and file.parent in (ROOT, ROOT / "docs"):
        return {"README.md": "/index.md"}.get(file.name, f"/{file.name.lower()}")
    return None
