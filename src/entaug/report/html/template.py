"""What pages have in common: their templates, style sheets and scripts, and the policy that allows nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from entaug._version import __version__
from entaug.config.registry import import_object

__all__ = ["read_part", "render_page", "template_environment"]

_PACKAGE = "entaug.report.html"


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
    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = import_object("jinja2:Environment")(undefined=import_object("jinja2:StrictUndefined"), **options)
    environment.filters["figure"] = lambda number: f"{number:,}"
    environment.filters["s"] = lambda number: "" if number == 1 else "s"
    return environment


def read_part(name: str) -> str:
    """Return a template, a style sheet or a script of the package."""
    return files(_PACKAGE).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
