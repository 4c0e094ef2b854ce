"""TOML files whose errors name the file and the line, also those that are found after reading."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from entaug.errors import EntaugError, InputError, ParameterError
from entaug.files.streams import decode_text, read_bytes


def read_toml(path: Path, remedy: str) -> tuple[dict[str, Any], TomlLines]:
    """Read a file, and the lines of its keys."""
    text = decode_text(read_bytes(path), path).removeprefix("\ufeff")
    try:
        return tomllib.loads(text), TomlLines(text, path)
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"at line (\d+)", str(error))
        line = int(position[1]) if position else None
        raise InputError(f"is not TOML ({error})", path=str(path), line=line, remedy=remedy) from None
    except RecursionError:
        raise InputError("is nested too deeply", path=str(path), remedy=remedy) from None


class TomlLines:
    """Line numbers of the tables and keys of a TOML file, which ``tomllib`` does not report."""

    def __init__(self, text: str = "", path: Path = Path()) -> None:
        self.path = path
        self._lines: dict[tuple[str, int, str], int] = {}  # by name of a table, its number, and a key or ""
        counts: dict[str, int] = {}
        table, number = "", 0
        for line, content in enumerate(text.split("\n"), start=1):
            if header := re.match(r"\s*\[\[?([^\[\],]+)\]\]?\s*(?:#.*)?$", content):
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
        positions = [(table, number, key), (table, number, ""), ("", 0, table)]
        return next((self._lines[position] for position in positions if position in self._lines), None)

    @contextlib.contextmanager
    def at(self, table: str, number: int = 0, values: Collection[str] = (), key: str | None = None) -> Iterator[None]:
        """Give errors of the block, which is about a table with some values, the place of the key that is at fault."""
        try:
            yield
        except EntaugError as error:
            if error.path is None:
                error.path = str(self.path)
                error.line = self.line_of(table, number, _key_of_error(error, values) if key is None else key)
                error.remedy = error.remedy or "correct it"
            raise


def _key_of_error(error: EntaugError, table: Collection[str]) -> str:
    """The key of a table that an error is about, or ""."""
    if isinstance(error, ParameterError) and error.parameter is not None:
        return error.parameter
    texts = {key: repr(value) for key, value in (table.items() if isinstance(table, Mapping) else ())}
    keys = [key for key in table if repr(key) in error.message or texts.get(key, '"') in error.message]
    return next(iter(keys or [key for key in table if re.search(rf"\b{re.escape(key)}\b", error.message)]), "")
