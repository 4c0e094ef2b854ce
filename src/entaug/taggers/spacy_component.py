"""A tagger as a component of a pipeline of spaCy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import filter_spans, minibatch

from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.taggers.base import TrainableTagger, load_tagger

COMPONENT = "entaug_ner"
SPANS = "sc"
"""The key of the span group that nested mentions are written to, spaCy's default."""


@Language.factory(COMPONENT, assigns=["doc.ents", "doc.spans"], default_config={"folder": None})
def create(nlp: Language, name: str, folder: str | None) -> TaggerComponent:
    """Create the component, with the tagger of a folder where one is given."""
    del nlp, name
    return TaggerComponent(None if folder is None else load_tagger(folder))


class TaggerComponent:
    """Sets ``doc.ents``, and all mentions as ``doc.spans["sc"]``; spans of discontinuous mentions are left out."""

    def __init__(self, tagger: TrainableTagger | None = None) -> None:
        self.tagger = tagger

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the tagger knows."""
        return tuple(getattr(self.tagger, "labels_", ()))

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, docs: Iterable[Doc], batch_size: int = 64) -> Iterator[Doc]:
        """Label documents, as long as they are: the tagger reads each as one sentence, or sentence by sentence."""
        if self.tagger is None:
            raise ParameterError(f"the component {COMPONENT} has no tagger", remedy="set folder in its configuration")
        batches: Iterator[list[Doc]] = minibatch(docs, batch_size)  # type: ignore[no-untyped-call]
        for batch in batches:
            parts = [part for doc in batch for part in _parts(doc)]
            sentences = self.tagger.predict([Sentence([token.text for token in part]) for part in parts])
            spans: dict[Doc, list[Span]] = {doc: [] for doc in batch}
            for part, sentence in zip(parts, sentences, strict=True):
                doc = part[0].doc
                spans[doc] += [
                    Span(doc, part[mention.start].i, part[mention.end - 1].i + 1, mention.label)
                    for mention in sentence.mentions
                    if mention.is_contiguous
                ]
            for doc, own in spans.items():
                doc.spans[SPANS] = own
                doc.set_ents(filter_spans(own))
                yield doc

    # ---------------------------------------------------------------------------------------- saving and loading

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        """Save the tagger."""
        if self.tagger is not None:
            self.tagger.save(path)

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> Self:
        """Load the tagger."""
        self.tagger = load_tagger(path)
        return self


def _parts(doc: Doc) -> Iterator[list[Token]]:
    """The words of each sentence of a document, or of the whole where no sentences are known."""
    for part in doc.sents if doc.has_annotation("SENT_START") else [doc]:
        if words := [token for token in part if not token.is_space]:
            yield words
