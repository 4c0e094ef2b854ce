"""WordNet as a lexicon (Miller 1995; Princeton WordNet, https://wordnet.princeton.edu).

`entaug.backends.lexicon.wordnet_preparation` compiles the tables, and says which synonyms they hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from entaug.backends.protocols import match_case
from entaug.errors import MissingModelError

TABLE = "synonyms.json"
"""The file of a prepared table."""


class WordNet:
    """For each English word form its synonyms in the same form."""

    language = "en"
    knows_tags = True

    def __init__(self, folder: str | Path) -> None:
        data = _read_table(folder, "wordnet")
        self.name: str = data["name"]
        self._tables: dict[str | None, dict[str, list[str]]] = {None: data["synonyms"], **data["tagged"]}
        self._senses: dict[str, dict[str, list[str]]] = data["senses"]

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        entry = self._tables.get(tag, {}).get(word.lower(), ())
        return tuple(match_case(synonym.split(" "), word) for synonym in entry)

    def synonyms_of_senses(self, word: str, tag: str) -> tuple[tuple[str, ...], ...]:
        entry = self._senses.get(tag, {}).get(word.lower(), ())
        return tuple(match_case(synonym.split(" "), word) for synonym in entry)


class WordNetAnySense:
    """Synonyms of all senses and parts of speech, as the reference code of Dai and Adel (2020) takes them."""

    # They are neither inflected nor put into the case of the word.

    language = "en"
    knows_tags = False

    def __init__(self, folder: str | Path) -> None:
        data = _read_table(folder, "wordnet-any")
        self.name: str = data["name"]
        self._synonyms: dict[str, list[str]] = data["synonyms"]
        self._lemmas: dict[str, list[str]] = data["lemmas"]

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        return self.synonyms_of_any_sense(word)

    def synonyms_of_any_sense(self, word: str) -> tuple[tuple[str, ...], ...]:
        word = word.lower()
        lemmas = {word, *self._lemmas.get(word, ())}
        texts = {text for lemma in lemmas for text in self._synonyms.get(lemma, ())} - {word}
        return tuple(tuple(text.split(" ")) for text in sorted(texts))


def _read_table(folder: str | Path, model: str) -> Any:
    file = Path(folder, TABLE)
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        remedy = f"run: entaug models prepare {model}"
        raise MissingModelError("is missing or damaged", path=str(file), remedy=remedy) from None
