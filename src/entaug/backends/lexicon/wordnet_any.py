"""Synonyms of all senses and parts of speech in WordNet, as the reference code of Dai and Adel (2020) takes them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from entaug.backends.lexicon.wordnet import read_table
from entaug.backends.lexicon.wordnet_table import Database

__all__ = ["ANY_SENSE_TABLE", "WordNetAnySense", "compile_any_sense_table"]

ANY_SENSE_TABLE = "any-sense.json"
"""The file of the prepared table: the synonyms of each lemma, and the lemmas of each inflected form."""


class WordNetAnySense:
    """Synonyms of any sense, from the table that `entaug.backends.lexicon.wordnet_files.prepare_any_sense` compiled."""

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
        """See `entaug.backends.extended_protocols.SenseLexicon.synonyms_of_any_sense`."""
        word = word.lower()
        found = self._cache.get(word)
        if found is None:
            lemmas = {word, *self._lemmas.get(word, ())}
            texts = {text for lemma in lemmas for text in self._synonyms.get(lemma, ())} - {word}
            found = self._cache[word] = tuple(tuple(text.split(" ")) for text in sorted(texts))
        return found


def compile_any_sense_table(data: Database) -> dict[str, dict[str, list[str]]]:
    """From WordNet's files the words of all synsets of each lemma, and the lemmas of each inflected form."""
    synonyms: dict[str, list[str]] = {}
    for lemma, readings in sorted(data.of_lemma.items()):
        words = {word.lower() for _, pos, offset, _ in readings for word in data.synsets[pos, offset].words}
        if others := sorted(word.replace("_", " ") for word in words - {lemma}):
            synonyms[lemma] = others
    lemmas: defaultdict[str, list[str]] = defaultdict(list)
    for form, analyses in sorted(data.analyses.items()):
        lemmas[form] += sorted({lemma for lemma, _, _ in analyses if lemma != form and lemma in synonyms})
    return {"synonyms": synonyms, "lemmas": {form: of_form for form, of_form in lemmas.items() if of_form}}
