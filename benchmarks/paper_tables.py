"""Write the papers' tables and the results of their small twins into the pages of `benchmarks/papers`.

    entaug experiment benchmarks/papers/cassi/table-6.small.toml
    python benchmarks/paper_tables.py

The figures of a paper are those of the plan; if the plan has been run, ours stand before them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from entaug.config.params import construct
from entaug.files.atomic import atomic_file
from entaug.metrics.tables import as_markdown
from entaug.report.markdown import report_parts
from entaug.report.plan_tables import plan_tables
from entaug.study.records import read_run_records
from entaug.study.tables import TablePlan

PAPERS = Path(__file__).parent / "papers"
_MARKER = re.compile(r"<!-- (twin|paper): (\S+) -->\n(?:(?:(?!<!-- twin|<!-- paper).)*?<!-- end -->\n)?", re.DOTALL)


def with_results(page: str) -> str:
    """Replace the blocks of a page that hold the tables of papers and the results of twins.

    Args:
        page: the text of the page.
    """
    return _MARKER.sub(lambda match: (_paper if match[1] == "paper" else _twin)(match[2]), page)


def _paper(name: str) -> str:
    records = PAPERS / name / "runs.jsonl"
    results = report_parts(read_run_records([records.parent])).results if records.is_file() else {}
    tables = [
        table for table in tables_of(PAPERS / f"{name}.toml") if results or any(any(r.figures) for r in table.cells)
    ]
    text = as_markdown(plan_tables(tables, results)).strip()
    return "\n".join([f"<!-- paper: {name} -->", "", *([text, ""] if text else []), "<!-- end -->", ""])


def tables_of(plan: Path) -> list[TablePlan]:
    """Read the tables of a plan, whose corpora may be missing.

    Args:
        plan: the plan.
    """
    tables: list[dict[str, Any]] = tomllib.loads(plan.read_text(encoding="utf-8")).get("tables", [])
    lists = [{key: tuple(value) for key, value in table.items() if isinstance(value, list)} for table in tables]
    return [construct(TablePlan, "a table", {**table, **own}) for table, own in zip(tables, lists, strict=True)]


def _twin(twin: str) -> str:
    file = PAPERS / twin / "runs.jsonl"
    lines = [f"<!-- twin: {twin} -->", ""]
    if file.is_file():
        records = read_run_records([file.parent])
        lines += [f"Figures of the twin, `{twin}.toml`:", ""]
        for setting, tables in report_parts(records).tables.items():
            lines += [f"{setting}", "", as_markdown(tables).strip(), ""]
    else:
        lines += ["The twin has not been run yet, except for its smallest form.", ""]
    return "\n".join([*lines, "<!-- end -->", ""])


def main() -> None:
    """Write all pages anew, and print the names of those that change."""
    for path in sorted(PAPERS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := with_results(text)) != text:
            print(path.name)
            with atomic_file(path) as out:
                out.write(new.encode())


if __name__ == "__main__":
    main()
