"""Dependency parsing by a pipeline of spaCy, over the words of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc

from entaug.backends.protocols import Parse
from entaug.core.spacing import infer_spaces
from entaug.errors import MissingModelError

__all__ = ["SpacyParser", "load_pipeline", "pipeline_languages", "pipeline_name", "words_to_doc"]

# Components that contribute nothing to trees and parts of speech. Those that split sentences must be left out: a parser
# draws no arc across a sentence end, and the sentences here are given.
_EXCLUDED = (
    *("ner", "lemmatizer", "trainable_lemmatizer", "senter", "sentencizer", "entity_ruler", "span_ruler"),
    *("entity_linker", "textcat", "textcat_multilabel", "spancat"),
)
_BATCH = 128
_PLACEHOLDER = "_"  # for an empty token, which spaCy does not take


class SpacyParser:
    """A `entaug.backends.protocols.DependencyParser` of spaCy."""

    # Sentences are not tokenised or split again: a tree is over exactly the words given. It may have several roots.
    # Spaces between words are inferred, because pipelines are trained on running text.

    def __init__(self, name: str | Path) -> None:
        self._nlp = load_pipeline(name, _EXCLUDED)
        if not any("token.dep" in self._nlp.get_pipe_meta(pipe).assigns for pipe in self._nlp.pipe_names):
            raise MissingModelError(
                f"the pipeline has no parser (it has: {', '.join(self._nlp.pipe_names) or 'nothing'})",
                path=str(name),
                remedy="use one that has, for example en_core_web_sm",
            )
        self.name = pipeline_name(self._nlp)
        self.languages = pipeline_languages(self._nlp)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        """See `entaug.backends.protocols.DependencyParser.parse`."""
        requested = [tuple(sentence) for sentence in sentences]
        # Longest first: batches of similar length need less padding, and a lack of memory shows at once.
        todo = sorted(set(requested), key=lambda words: (-len(words), words))
        parses: dict[tuple[str, ...], Parse] = {}
        # New words are forgotten after the call; otherwise a long run over many texts would collect them all.
        with self._nlp.memory_zone():
            docs = self._nlp.pipe((words_to_doc(self._nlp, words) for words in todo), batch_size=_BATCH)
            for words, doc in zip(todo, docs, strict=True):
                features = tuple(str(token.morph) for token in doc)
                parses[words] = Parse(
                    tuple(token.head.i for token in doc),
                    tuple(token.dep_ or "dep" for token in doc),
                    tuple(token.pos_ or "X" for token in doc),
                    features if any(features) else (),
                )
        return [parses[words] for words in requested]


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
        folder = next((path for path in inner if (path / "config.cfg").is_file()), folder)
        source: str | Path = folder
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
        nlp = spacy.load(source, exclude=list(excluded))
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MissingModelError(f"cannot be loaded ({reason})", path=str(source), remedy=remedy) from None
    return nlp
