"""The Sphinx extension of these pages: makes those that come from code, and settles what names and links mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import name_links
from command_pages import command_pages
from entaug import Augmenter
from entaug.files.atomic import atomic_file
from entaug.filters import Filter
from method_pages import choosing_tables, first_example, method_pages
from page_text import repository_links_to_pages
from reference_pages import api_pages, format_pages, measured_pages, models_table, registry_pages

__all__ = ["MADE", "setup"]

MADE = ("_made", "commands", "filters", "formats", "measured", "measures", "methods", "reference")
"""Folders that hold nothing but what is made here; Git ignores them."""
_PARTS: tuple[Callable[[], dict[str, str]], ...] = (
    choosing_tables,
    command_pages,
    method_pages,
    format_pages,
    registry_pages,
    measured_pages,
    api_pages,
    lambda: {"_made/first.md": first_example(), "_made/models.md": models_table(), "_made/contents.md": contents()},
)


def contents() -> str:
    """The part of the contents that depends on which registries there are."""
    folders = dict.fromkeys(name.partition("/")[0] for name in registry_pages())
    entries = ["methods/index", *(f"{folder}/index" for folder in folders), "formats", "models"]
    return "\n".join(["```{toctree}", ":hidden:", ":caption: What there is", "", *entries, "```"])


def make_pages(app: Sphinx) -> None:
    """Write the made pages where their text is another, and remove those that are made no more."""
    home_folder = Path(app.srcdir)
    pages = {home_folder / name: text.rstrip() + "\n" for part in _PARTS for name, text in part().items()}
    for folder in MADE:
        for stale in set((home_folder / folder).rglob("*.md")) - set(pages):
            stale.unlink(missing_ok=True)
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text("utf-8") != text:
            with atomic_file(path) as out:  # another build may read it at this moment
                out.write(text.encode())


def link_home(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
    """Let links in what is included from elsewhere in the repository lead to pages."""
    del app, path, docname
    content[0] = repository_links_to_pages(content[0])


def without_arguments(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Leave the Args of methods and filters out of their docstrings: a table on the page has them with defaults."""
    del app, name, options
    if what == "class" and issubclass(obj, Augmenter | Filter) and obj not in (Augmenter, Filter):
        text = re.sub(r"^Args:\n(?:[ \t]+.*\n|\n(?=[ \t]))*", "", "\n".join([*lines, ""]), flags=re.MULTILINE)
        lines[:] = text.split("\n")


def without_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """The same of their signatures, which would be lists of these parameters; a made default is no Python to others."""
    del app, name, options
    if what == "class" and issubclass(obj, Augmenter | Filter):
        return "", None
    return (signature.replace("<factory>", "..."), returns) if signature else None


def not_numbered(app: Sphinx, what: str, name: str, obj: Any, *_: object) -> bool | None:
    """Leave out the fields of named tuples: Python's docstrings only count them, and the Args tell what they are."""
    del app, what, name
    return True if type(obj).__name__ == "_tuplegetter" else None


def not_a_type(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from taking what stands before a colon in the docstring of a property for its type."""
    del app, name, obj, options
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def setup(app: Sphinx) -> dict[str, object]:
    """Add what is ours to a build."""
    app.connect("builder-inited", make_pages)
    app.connect("include-read", link_home)
    app.connect("autodoc-process-docstring", without_arguments, priority=100)  # before napoleon rewrites sections
    app.connect("autodoc-skip-member", not_numbered)
    app.connect("autodoc-process-signature", without_signature)
    app.connect("autodoc-process-docstring", not_a_type, priority=100)
    app.add_post_transform(name_links.Names)
    app.connect("missing-reference", name_links.resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
