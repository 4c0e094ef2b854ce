"""Write the results of the small twins of the papers' tables into the pages of `benchmarks/papers`.

    entaug experiment benchmarks/papers/cassi/table-6.small.toml
    python benchmarks/paper_tables.py

With ``--check`` nothing is written, and the exit code says whether the pages are up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from entaug.files.atomic import atomic_file
from entaug.metrics.tables import as_markdown
from entaug.report.markdown import report_parts
from entaug.study.records import read_run_records

PAPERS = Path(__file__).parent / "papers"
_MARKER = re.compile(r"<!-- twin: (\S+) -->\n(?:(?!<!-- twin).)*?<!-- end -->\n|<!-- twin: (\S+) -->\n", re.DOTALL)


def with_results(page: str) -> str:
    """Replace the blocks of a page that hold the results of twins.

    Args:
        page: the text of the page.
    """
    return _MARKER.sub(lambda match: _block(match[1] or match[2]), page)


def _block(twin: str) -> str:
    records = PAPERS / twin / "runs.jsonl"
    lines = [f"<!-- twin: {twin} -->", ""]
    if records.is_file():
        lines += [f"Figures of the twin, `{twin}.toml`:", ""]
        for setting, tables in report_parts(read_run_records([records.parent])).tables.items():
            lines += [f"{setting}", "", as_markdown(tables).strip(), ""]
    else:
        lines += ["The twin has not been run yet, except for its smallest form.", ""]
    return "\n".join([*lines, "<!-- end -->", ""])


def main() -> int:
    """Write or check all pages.

    Returns:
        The exit code.
    """
    stale = []
    for path in sorted(PAPERS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if with_results(text) != text:
            stale.append(path)
            if "--check" not in sys.argv:
                with atomic_file(path) as out:
                    out.write(with_results(text).encode())
    print(*(path.name for path in stale))
    return int("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
