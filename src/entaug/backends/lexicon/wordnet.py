"""WordNet as a lexicon (Miller 1995; Princeton WordNet, https://wordnet.princeton.edu)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from entaug.backends.protocols import match_case
from entaug.errors import MissingModelError

TABLE = "synonyms.json"
"""The file of the prepared table: for each English word form its synonyms in the same form."""
ANY_SENSE_TABLE = "any-sense.json"
"""The file of the prepared table: the synonyms of each lemma, and the lemmas of each inflected form."""


class WordNet:
    """Synonyms from the table that `entaug.backends.lexicon.wordnet_preparation.prepare_wordnet` compiled."""

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


class WordNetAnySense:
    """Synonyms of all senses and parts of speech, as the reference code of Dai and Adel (2020) takes them."""

    # They are neither inflected nor put into the case of the word.

    language = "en"
    knows_tags = False

    def __init__(self, folder: str | Path) -> None:
        data = read_table(Path(folder, ANY_SENSE_TABLE), "wordnet-any")
        self.name: str = data["name"]
        self._synonyms: dict[str, list[str]] = data["synonyms"]
        self._lemmas: dict[str, list[str]] = data["lemmas"]
        self._cache: dict[str, tuple[tuple[str, ...], ...]] = {}

    def synonyms(self, word: str, tag: str | None = None) -> tuple[tuple[str, ...], ...]:
        """See `entaug.backends.protocols.Lexicon.synonyms`: those of any sense."""
        del tag
        return self.synonyms_of_any_sense(word)

    def synonyms_of_any_sense(self, word: str) -> tuple[tuple[str, ...], ...]:
        """See `entaug.backends.protocols.SenseLexicon.synonyms_of_any_sense`."""
        word = word.lower()
        found = self._cache.get(word)
        if found is None:
            lemmas = {word, *self._lemmas.get(word, ())}
            texts = {text for lemma in lemmas for text in self._synonyms.get(lemma, ())} - {word}
            found = self._cache[word] = tuple(tuple(text.split(" ")) for text in sorted(texts))
        return found


def read_table(file: Path, model: str) -> Any:
    """Read a prepared table."""
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        raise MissingModelError(
            "is missing or damaged", path=str(file), remedy=f"run: entaug models prepare {model}"
        ) from None
