"""Entities and parts of speech by a pipeline of spaCy, over the words of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc

from entaug.backends.name_protocols import Recognition
from entaug.errors import MissingModelError
from entaug.spacing import infer_spaces

__all__ = ["SpacyEntityRecognizer"]

_EXCLUDED = (
    *("parser", "lemmatizer", "trainable_lemmatizer", "senter", "sentencizer", "entity_linker"),
    *("textcat", "textcat_multilabel", "spancat"),
)
_BATCH = 128
_PLACEHOLDER = "_"  # for an empty token, which spaCy does not take


class SpacyEntityRecognizer:
    """An `entaug.backends.name_protocols.EntityRecognizer` of spaCy.

    Args:
        name: a folder with a pipeline, or the name of an installed one.

    Raises:
        MissingModelError: there is no such pipeline, or it has no entity recogniser.
    """

    def __init__(self, name: str | Path) -> None:
        self._nlp = _load(str(name))
        meta = self._nlp.meta
        self.language: str = meta["lang"]
        self.name = f"{meta['lang']}_{meta['name']}-{meta['version']}"

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        """See `entaug.backends.name_protocols.EntityRecognizer.recognize`."""
        requested = [tuple(sentence) for sentence in sentences]
        todo = sorted(set(requested), key=lambda words: (-len(words), words))
        results: dict[tuple[str, ...], Recognition] = {}
        with self._nlp.memory_zone():
            docs = self._nlp.pipe((self._doc(words) for words in todo), batch_size=_BATCH)
            for words, doc in zip(todo, docs, strict=True):
                entities = tuple((entity.start, entity.end, entity.label_) for entity in doc.ents)
                results[words] = Recognition(entities, tuple(token.pos_ or "X" for token in doc))
        return [results[words] for words in requested]

    def _doc(self, words: tuple[str, ...]) -> Any:
        spaces = list(map(bool, infer_spaces(words)))
        return Doc(self._nlp.vocab, words=[word or _PLACEHOLDER for word in words], spaces=spaces)


@lru_cache(maxsize=2)
def _load(name: str) -> Any:
    folder = Path(name)
    if not folder.is_dir() and not spacy.util.is_package(name):
        raise MissingModelError(
            f"{name!r} is neither a folder nor an installed pipeline of spaCy",
            remedy=f"run: python -m spacy download {name}",
        )
    try:
        nlp = spacy.load(folder if folder.is_dir() else name, exclude=list(_EXCLUDED))
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MissingModelError(f"cannot be loaded ({reason})", path=name, remedy="name another pipeline") from None
    if not any("doc.ents" in nlp.get_pipe_meta(pipe).assigns for pipe in nlp.pipe_names):
        raise MissingModelError(
            "the pipeline has no entity recogniser", path=name, remedy="use one that has, for example en_core_web_sm"
        )
    return nlp
