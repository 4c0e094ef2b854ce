"""Line numbers of the tables and keys of a TOML file, which ``tomllib`` does not report."""

from __future__ import annotations

import re

__all__ = ["Position", "TomlLines"]

Position = tuple[str, int, str]
"""Name of a table, or "" for the top level; its number among the tables of that name; a key, or ""."""


class TomlLines:
    """Line numbers of tables and keys."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Position, int] = {}
        counts: dict[str, int] = {}
        table, number = "", 0
        for line, content in enumerate(text.split("\n"), start=1):
            if header := re.match(r"\s*\[\[?([\s\w.\-\"']+)\]", content):
                table = re.sub(r"[\s\"']", "", header[1])
                number = counts.get(table, 0)
                counts[table] = number + 1
                self._lines.setdefault((table, number, ""), line)
                parent, _, child = table.rpartition(".")
                if parent:  # [corpora.options] belongs to the last of [[corpora]]
                    self._lines.setdefault((parent, max(0, counts.get(parent, 0) - 1), child), line)
            elif key := re.match(r"\s*[\"']?([\w\-]+)[\"']?\s*(?:=|\.\s*[\"']?([\w\-]+))", content):
                self._lines.setdefault((table, number, key[1]), line)
                if key[2] and not table:  # training.epochs = 3
                    self._lines.setdefault((key[1], 0, key[2]), line)

    def line_of(self, table: str, number: int, key: str) -> int | None:
        """The line of a key; else of its table; else of the key that holds the table, as in ``corpora = [{...}]``."""
        positions: list[Position] = [(table, number, key), (table, number, ""), ("", 0, table)]
        return next((self._lines[position] for position in positions if position in self._lines), None)
