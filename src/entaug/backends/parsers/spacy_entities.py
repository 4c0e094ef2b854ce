"""Entities and parts of speech by a pipeline of spaCy, over the words of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from entaug.backends.name_protocols import Recognition
from entaug.backends.parsers.spacy import load_pipeline, pipeline_name, words_to_doc
from entaug.errors import MissingModelError

__all__ = ["SpacyEntityRecognizer"]

_EXCLUDED = (
    *("parser", "lemmatizer", "trainable_lemmatizer", "senter", "sentencizer", "entity_linker"),
    *("textcat", "textcat_multilabel", "spancat"),
)
_BATCH = 128


class SpacyEntityRecognizer:
    """An `entaug.backends.name_protocols.EntityRecognizer` of spaCy."""

    def __init__(self, name: str | Path) -> None:
        self._nlp = _load(str(name))
        self.language: str = self._nlp.meta["lang"]
        self.name = pipeline_name(self._nlp)

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        """See `entaug.backends.name_protocols.EntityRecognizer.recognize`."""
        requested = [tuple(sentence) for sentence in sentences]
        todo = sorted(set(requested), key=lambda words: (-len(words), words))
        results: dict[tuple[str, ...], Recognition] = {}
        with self._nlp.memory_zone():
            docs = self._nlp.pipe((words_to_doc(self._nlp, words) for words in todo), batch_size=_BATCH)
            for words, doc in zip(todo, docs, strict=True):
                entities = tuple((entity.start, entity.end, entity.label_) for entity in doc.ents)
                results[words] = Recognition(entities, tuple(token.pos_ or "X" for token in doc))
        return [results[words] for words in requested]


@lru_cache(maxsize=2)
def _load(name: str) -> Any:
    nlp = load_pipeline(name, _EXCLUDED)
    if not any("doc.ents" in nlp.get_pipe_meta(pipe).assigns for pipe in nlp.pipe_names):
        raise MissingModelError(
            "the pipeline has no entity recogniser", path=name, remedy="use one that has, for example en_core_web_sm"
        )
    return nlp
