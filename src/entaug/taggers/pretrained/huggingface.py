"""Token classifiers of transformers as taggers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from numpy.typing import NDArray

from entaug.backends.soft_labels import TagProbabilities, tags_of
from entaug.backends.transformers.base import card_languages, choose_device, load_model, load_tokenizer
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import split_tag
from entaug.errors import MissingModelError
from entaug.taggers.encoders import Encoder, encoder_folder, in_batches
from entaug.taggers.pretrained import PretrainedTagger, ScoredMention


class _TokenClassifier(Encoder):
    """An encoder with scores of tags for vectors: those of the first sub-word of each word."""

    def _load_tokenizer(self, folder: Path) -> Any:
        tokenizer = super()._load_tokenizer(folder)
        if getattr(tokenizer, "add_prefix_space", None) is False:  # byte-level vocabularies need it for single words
            tokenizer = load_tokenizer(folder, add_prefix_space=True)
        return tokenizer

    def _load_model(self, folder: Path) -> Any:
        fault, remedy = "is no trained token classifier", "name a model for NER"
        model = load_model(
            transformers.AutoModelForTokenClassification, folder, dtype="float32", fault=fault, remedy=remedy
        )
        tags = list(model.config.id2label.values())
        if all(tag.startswith("LABEL_") for tag in tags):
            message = f"{fault} (its tags have no names: {', '.join(tags[:3])})"
            raise MissingModelError(message, path=str(folder), remedy=remedy)
        return model


class HuggingFaceTagger(PretrainedTagger):
    """A token classifier of transformers, over the words of the corpus."""

    # The tags of the model may be of any scheme, or labels alone; the first sub-word of a word gives its tag. Its
    # probabilities are those of the model, added up for labels of the model that stand for one of the corpus.

    prefix = "hf"

    def _load(self, model: str) -> None:
        device, self._dtype = choose_device()
        self._model = _TokenClassifier(model).to(device)
        self.name = f"hf:{self._model.name}"
        self.languages = card_languages(encoder_folder(model))
        tags = self._model.model.config.id2label
        self._split_tags = [split_tag(tags[i]) for i in range(len(tags))]

    @property
    def own_labels(self) -> list[str] | None:
        return sorted({label for _, label in self._split_tags if label})

    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        identity = {label: label for label in self.own_labels or ()}
        return [
            [ScoredMention(mention) for mention in probabilities.mentions()]
            for probabilities in self._probabilities(sentences, identity)
        ]

    def _mapped(self, sentences: Sequence[Sentence]) -> list[list[tuple[Mention, float]]]:
        return [[(mention, 1.0) for mention in soft.mentions()] for soft in self.tag_probabilities(sentences)]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        return self._probabilities(list(sentences), dict(self._fitted_map().labels))

    def _probabilities(self, sentences: Sequence[Sentence], labels: dict[str, str]) -> list[TagProbabilities]:
        """The probabilities of IOB2 tags of labels that those of the model stand for; others count as ``"O"``."""
        tags = tags_of(sorted(set(labels.values())))
        columns = [
            tags.index(f"{place}-{labels[label]}") if label in labels else 0 for place, label in self._split_tags
        ]

        def compute(batch: list[Sentence], scores: Any) -> Iterable[TagProbabilities]:
            for sentence, rows in zip(batch, scores.double().softmax(-1).cpu().numpy(), strict=True):
                values = np.zeros((len(sentence), len(tags)))
                np.add.at(values.T, columns, rows[: len(sentence)].T)
                yield TagProbabilities(tags, _starts_mentions(values))

        return in_batches(self._model, sentences, compute, self._dtype)


def _starts_mentions(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move probability from inside to beginning where a word cannot continue a mention of the word before."""
    # In IOB1, and in schemes without prefixes, the tag of the first word of a mention is that of an inner one.
    before = -1
    for row in values:
        by_label = row[1::2] + row[2::2]
        for i in range(len(by_label)):
            if i != before:
                row[1 + 2 * i] += row[2 + 2 * i]
                row[2 + 2 * i] = 0
        best = int(by_label.argmax()) if len(by_label) else -1
        before = best if best >= 0 and by_label[best] > row[0] else -1
    return values
