"""Count the code lines of the package: lines with code, without blank lines, comments and docstrings.

    python benchmarks/count_lines.py [FOLDER ...]

Prints one column for each folder (default: ``src/entaug``), for example a checkout before a change and one after it.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def docstring_lines(tree: ast.AST) -> set[int]:
    """The lines of all docstrings.

    Args:
        tree: a parsed module.
    """
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(source: str) -> int:
    """The number of code lines of a module.

    Args:
        source: the text of the module.
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


def count(folder: Path) -> Counter[str]:
    """The code lines of each package directly below a folder; modules beside them are ``(root)``.

    Args:
        folder: the folder of a package.
    """
    counts: Counter[str] = Counter()
    for path in [*folder.rglob("*.py"), *folder.rglob("*.pyi")]:
        parts = path.relative_to(folder).parts
        counts[parts[0] if len(parts) > 1 else "(root)"] += code_lines(path.read_text("utf-8"))
    return counts


def main(folders: list[str]) -> None:
    """Print the table.

    Args:
        folders: one column each.
    """
    columns = [count(Path(folder)) for folder in folders or ["src/entaug"]]
    for name in sorted(set().union(*columns)):
        print(f"{name:<12}", *(f"{column[name]:>8,}" for column in columns))
    print(f"{'total':<12}", *(f"{column.total():>8,}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
