"""Dependency trees, entities and parts of speech by pipelines of spaCy, over the words of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import spacy
from spacy.tokens import Doc

from entaug.backends.protocols import Parse, Recognition
from entaug.core.spacing import infer_spaces
from entaug.errors import MissingModelError, one_line

# Components that contribute nothing to trees, entities and tags. Those that split sentences must be left out:
# a parser draws no arc across a sentence end, and the sentences here are given.
_EXCLUDED = (
    *("lemmatizer", "trainable_lemmatizer", "senter", "sentencizer", "entity_linker"),
    *("textcat", "textcat_multilabel", "spancat"),
)
_BATCH = 128
_PLACEHOLDER = "_"  # for an empty token, which spaCy does not take

Result = TypeVar("Result")


class _Pipeline:
    """A pipeline of spaCy that has a component which assigns what is wanted."""

    # Sentences are not tokenised or split again: a result is over exactly the words given. Spaces between words are
    # inferred, because pipelines are trained on running text.

    def __init__(self, nlp: Any, name: str | Path, assigned: str, component: str) -> None:
        if not any(assigned in nlp.get_pipe_meta(pipe).assigns for pipe in nlp.pipe_names):
            raise MissingModelError(
                f"the pipeline has no {component} (it has: {', '.join(nlp.pipe_names) or 'nothing'})",
                path=str(name),
                remedy="use one that has, for example en_core_web_sm",
            )
        self._nlp = nlp
        self.name = pipeline_name(nlp)

    def _read(self, sentences: Sequence[Sequence[str]], read: Callable[[Doc], Result]) -> list[Result]:
        requested = [tuple(sentence) for sentence in sentences]
        # Longest first: batches of similar length need less padding, and a lack of memory shows at once.
        todo = sorted(set(requested), key=lambda words: (-len(words), words))
        # New words are forgotten after the call; otherwise a long run over many texts would collect them all.
        with self._nlp.memory_zone():
            docs = self._nlp.pipe((words_to_doc(self._nlp, words) for words in todo), batch_size=_BATCH)
            results = dict(zip(todo, map(read, docs), strict=True))
        return [results[words] for words in requested]


class SpacyParser(_Pipeline):
    """A `entaug.backends.protocols.DependencyParser` of spaCy; a tree may have several roots."""

    def __init__(self, name: str | Path) -> None:
        nlp = load_pipeline(name, (*_EXCLUDED, "ner", "entity_ruler", "span_ruler"))
        super().__init__(nlp, name, "token.dep", "parser")
        self.languages = pipeline_languages(self._nlp)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        return self._read(sentences, _tree)


class SpacyEntityRecognizer(_Pipeline):
    """An `entaug.backends.protocols.EntityRecognizer` of spaCy."""

    def __init__(self, name: str | Path) -> None:
        super().__init__(_load_once(str(name), (*_EXCLUDED, "parser")), name, "doc.ents", "entity recogniser")
        self.language: str = self._nlp.meta["lang"]

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        return self._read(sentences, _entities)


def _tree(doc: Any) -> Parse:
    features = tuple(str(token.morph) for token in doc)
    return Parse(
        tuple(token.head.i for token in doc),
        tuple(token.dep_ or "dep" for token in doc),
        tuple(token.pos_ or "X" for token in doc),
        features if any(features) else (),
    )


def _entities(doc: Any) -> Recognition:
    entities = tuple((entity.start, entity.end, entity.label_) for entity in doc.ents)
    return Recognition(entities, tuple(token.pos_ or "X" for token in doc))


def words_to_doc(nlp: Any, words: Sequence[str]) -> Any:
    """Create the document of a sentence, without a tokeniser."""
    spaces = list(map(bool, infer_spaces(words)))
    return Doc(nlp.vocab, words=[word or _PLACEHOLDER for word in words], spaces=spaces)


def pipeline_name(nlp: Any) -> str:
    """Return the name and the version of a pipeline, for provenance."""
    return f"{nlp.meta['lang']}_{nlp.meta['name']}-{nlp.meta['version']}"


def pipeline_languages(nlp: Any) -> frozenset[str] | None:
    """Return the language that a pipeline serves."""
    return None if nlp.meta["lang"] in ("", "xx") else frozenset({nlp.meta["lang"]})


def load_pipeline(name: str | Path, excluded: Sequence[str]) -> Any:
    """Load a pipeline."""
    folder = Path(name)
    if folder.is_dir():
        # An unpacked package has the pipeline in a subfolder.
        inner = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        source: str | Path = next((path for path in inner if (path / "config.cfg").is_file()), folder)
        remedy = "name a folder with a pipeline of spaCy (config.cfg, meta.json ...)"
    elif spacy.util.is_package(str(name)):
        source = str(name)
        remedy = f"install it again: python -m spacy download {name}"
    else:
        ours = " run: entaug models prepare en_core_web_sm, or" if str(name) == "en_core_web_sm" else ""
        raise MissingModelError(
            f"{str(name)!r} is neither a folder nor an installed pipeline of spaCy",
            remedy=f"{ours} run: python -m spacy download {name}".lstrip(),
        )
    try:
        return spacy.load(source, exclude=list(excluded))
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        raise MissingModelError(f"cannot be loaded ({one_line(error)})", path=str(source), remedy=remedy) from None


_load_once = lru_cache(maxsize=2)(load_pipeline)
