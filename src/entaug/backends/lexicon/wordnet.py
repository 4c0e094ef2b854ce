"""WordNet as a lexicon (Miller 1995; Princeton WordNet, https://wordnet.princeton.edu)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from entaug.backends.protocols import match_case
from entaug.errors import MissingModelError

__all__ = ["TABLE", "WordNet", "read_table"]

TABLE = "synonyms.json"
"""The file of the prepared table: for each English word form its synonyms in the same form."""


class WordNet:
    """Synonyms from the table that `entaug.backends.lexicon.wordnet_files.prepare_wordnet` compiled."""

    # A look-up is one dictionary access and needs no other library.

    language = "en"
    knows_tags = True

    def __init__(self, folder: str | Path) -> None:
        data = read_table(Path(folder, TABLE), "wordnet")
        self.name: str = data["name"]
        self._tables: dict[str | None, dict[str, list[str]]] = {None: data["synonyms"], **data["tagged"]}
        self._cache: dict[tuple[str, str | None], tuple[tuple[str, ...], ...]] = {}

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        """See `entaug.backends.protocols.Lexicon.synonyms`."""
        synonyms = self._cache.get((word, tag))
        if synonyms is None:
            entry = self._tables.get(tag, {}).get(word.lower(), ())
            synonyms = tuple(match_case(synonym.split(" "), word) for synonym in entry)
            self._cache[word, tag] = synonyms
        return synonyms


def read_table(file: Path, model: str) -> Any:
    """Read a prepared table."""
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise MissingModelError(
            "is missing or damaged", path=str(file), remedy=f"run: entaug models prepare {model}"
        ) from None
