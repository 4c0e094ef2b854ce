"""Pipelines of spaCy as taggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc

from entaug.backends.models.catalogue import MODELS, model_path
from entaug.backends.parsers.spacy import load_pipeline, pipeline_languages, pipeline_name
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.spacing import infer_spaces
from entaug.errors import MissingModelError
from entaug.taggers.pretrained import PretrainedTagger, ScoredMention

_EXCLUDED = ("lemmatizer", "trainable_lemmatizer", "parser", "senter", "textcat", "textcat_multilabel", "entity_linker")


class SpacyTagger(PretrainedTagger):
    """The named-entity recogniser of a pipeline of spaCy, over the words of the corpus."""

    # spaCy gives no probabilities. The confidence of a mention is the share of mentions of its label that were right on
    # gold sentences.

    prefix = "spacy"

    def _load(self, model: str) -> None:
        source = model_path(model) if model in MODELS and MODELS[model].kind == "dependency_parser" else model
        self._nlp: Any = load_pipeline(source, _EXCLUDED)
        self.name = f"spacy:{pipeline_name(self._nlp)}"
        self.languages = pipeline_languages(self._nlp)
        if not self._entity_pipes:
            raise MissingModelError(
                f"the pipeline predicts no entities (it has: {', '.join(self._nlp.pipe_names) or 'nothing'})",
                path=str(source),
                remedy="use one that has ner, for example en_core_web_sm",
            )

    @property
    def _entity_pipes(self) -> list[str]:
        return [name for name in self._nlp.pipe_names if "doc.ents" in self._nlp.get_pipe_meta(name).assigns]

    @property
    def own_labels(self) -> list[str] | None:
        return sorted(
            {label for name in self._entity_pipes for label in getattr(self._nlp.get_pipe(name), "labels", ())}
        )

    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        results = []
        with self._nlp.memory_zone():
            for sentence in sentences:  # one at a time: what a model rounds must not depend on the others
                spaces = sentence.spaces or infer_spaces(sentence.tokens)
                doc = self._nlp(Doc(self._nlp.vocab, words=list(sentence.tokens), spaces=list(map(bool, spaces))))
                results.append([ScoredMention(Mention(ent.label_, [(ent.start, ent.end)])) for ent in doc.ents])
        return results
