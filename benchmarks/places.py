"""Where the repository and the real corpora are, and where in a page the tables of a script stand."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("ENTAUG_DATA", ROOT.parent / "shared" / "data"))
_MARK = "<!-- tables -->"  # in a page: what follows is written by its script


def write_tables(page: Path, tables: str) -> None:
    """Replace what stands below the mark in a page, and keep the text above it."""
    notes = page.read_text("utf-8").partition(_MARK)[0] if page.exists() else ""
    page.write_text(f"{notes}{_MARK}\n\n{tables}", "utf-8")
