"""The Sphinx extension of the documentation: generates pages from the package, and resolves names and links."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import name_links
from command_pages import command_pages
from entaug.files.atomic import atomic_file
from entaug.filters import Filter
from entaug.methods import Augmenter
from method_pages import first_example, method_pages
from page_text import ROOT, links_to_pages
from reference_pages import api_pages, format_pages, measured_pages, registry_pages

__all__ = ["GENERATED", "setup"]

GENERATED = ("commands", "filters", "formats", "measured", "measures", "methods", "reference")
"""Folders that contain generated pages only; Git ignores them."""
_PARTS: tuple[Callable[[], dict[str, str]], ...] = (
    command_pages,
    method_pages,
    format_pages,
    registry_pages,
    measured_pages,
    api_pages,
    lambda: {
        "index.md": (ROOT / "docs/_ext/index.md").read_text("utf-8").replace("<!-- example -->", first_example()),
        **{
            f"{name.lower()}.md": links_to_pages((ROOT / f"{name}.md").read_text("utf-8"))
            for name in ("CHANGELOG", "CONTRIBUTING")
        },
    },
)


def write_pages(app: Sphinx) -> None:
    """Write the generated pages that changed, and remove those that are no longer generated."""
    folder_of_docs = Path(app.srcdir)
    pages = {folder_of_docs / name: text.rstrip() + "\n" for part in _PARTS for name, text in part().items()}
    for folder in GENERATED:
        for stale in set((folder_of_docs / folder).rglob("*.md")) - set(pages):
            stale.unlink(missing_ok=True)
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text("utf-8") != text:
            with atomic_file(path) as out:  # another build may be reading it
                out.write(text.encode())


def rewrite_links(app: Sphinx, docname: str, content: list[str]) -> None:
    """Make links to files of the repository, which GitHub follows, lead to pages of the site."""
    if "/" not in docname:
        content[0] = links_to_pages(content[0], Path(app.srcdir))


def remove_arguments(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Remove the Args of methods and filters from their docstrings: the page has a table of them with defaults."""
    del app, name, options
    if what == "class" and issubclass(obj, Augmenter | Filter) and obj not in (Augmenter, Filter):
        text = re.sub(r"^Args:\n(?:[ \t]+.*\n|\n(?=[ \t]))*", "", "\n".join([*lines, ""]), flags=re.MULTILINE)
        lines[:] = text.split("\n")


def remove_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Remove the signatures of methods and filters for the same reason, and write default factories as ``...``."""
    del app, name, options
    if what == "class" and issubclass(obj, Augmenter | Filter):
        return "", None
    return (signature.replace("<factory>", "..."), returns) if signature else None


def skip_tuple_fields(app: Sphinx, what: str, name: str, obj: Any, *_: object) -> bool | None:
    """Skip the fields of named tuples, whose docstrings say nothing but their number; the Args describe them."""
    del app, what, name
    return True if type(obj).__name__ == "_tuplegetter" else None


def protect_from_napoleon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from reading the text before a colon in the docstring of a property as its type."""
    del app, name, obj, options
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def setup(app: Sphinx) -> dict[str, object]:
    """Register the handlers of this extension."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", rewrite_links)
    app.connect("autodoc-process-docstring", remove_arguments, priority=100)  # before napoleon rewrites sections
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("autodoc-process-signature", remove_signature)
    app.connect("autodoc-process-docstring", protect_from_napoleon, priority=100)
    app.add_post_transform(name_links.NameTransform)
    app.connect("missing-reference", name_links.resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
