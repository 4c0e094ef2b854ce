"""The generated tables within the pages and the README, which stand there whole, so that GitHub shows them too.

    python docs/_ext/page_tables.py            # writes every table anew; a test says when that is due
    python docs/_ext/page_tables.py --check    # prints what is outdated

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from difflib import unified_diff

from atlas_pages import atlas_table, corpora_table, twins_table
from method_pages import choosing_tables, durations_table, readme_table
from page_text import WITH_TABLES
from preset_pages import preset_tables
from reference_pages import formats_table, models_table, recipes_table

__all__ = ["TABLES", "filled"]

TABLES: dict[str, Callable[[], str]] = {
    "methods": readme_table,
    "facts": lambda: choosing_tables()["facts"],
    "costs": lambda: choosing_tables()["costs"],
    "gains": lambda: choosing_tables()["gains"],
    "durations": durations_table,
    "atlas": atlas_table,
    "corpora": corpora_table,
    "formats": formats_table,
    "models": models_table,
    "presets": preset_tables,
    "recipes": recipes_table,
    "twins": twins_table,
}
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """The text of a page with its tables as they should be."""
    return _TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]().strip()}\n{match[3]}", text)


def main() -> None:
    """Write the pages, or compare them."""
    differing: list[str] = []
    for page in WITH_TABLES:
        before = page.read_text("utf-8")
        after = filled(before)
        if "--check" in sys.argv:
            differing += unified_diff(before.splitlines(), after.splitlines(), page.name, n=0, lineterm="")
        elif before != after:
            page.write_text(after, "utf-8")
    sys.exit("\n".join(differing) or None)


if __name__ == "__main__":
    main()
