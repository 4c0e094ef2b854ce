"""Token classifiers of transformers as taggers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from entaug.backends.soft_labels import TagProbabilities, tags_of
from entaug.backends.transformers.base import (
    TorchBackend,
    load_model,
    load_tokenizer,
    tokenize_words,
)
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import split_tag
from entaug.errors import MissingModelError
from entaug.taggers.encoders import split_rows
from entaug.taggers.pretrained import PretrainedTagger, ScoredMention


class _TokenClassifier(TorchBackend):
    """The model: scores of tags for the first sub-word of each word."""

    auto = transformers.AutoModelForTokenClassification

    def _load_tokenizer(self) -> Any:
        tokenizer = super()._load_tokenizer()
        if getattr(tokenizer, "add_prefix_space", None) is False:  # byte-level vocabularies need it for single words
            tokenizer = load_tokenizer(self.folder, add_prefix_space=True)
        if not tokenizer.is_fast:
            raise MissingModelError(
                "has no fast tokenizer, which says where words begin", path=str(self.folder), remedy="use another model"
            )
        return tokenizer

    def _load_model(self) -> Any:
        fault, remedy = "is no trained token classifier", "name a model for NER"
        model = load_model(self.auto, self.folder, dtype=self.dtype, fault=fault, remedy=remedy)
        tags = list(model.config.id2label.values())
        if all(tag.startswith("LABEL_") for tag in tags):
            message = f"{fault} (its tags have no names: {', '.join(tags[:3])})"
            raise MissingModelError(message, path=str(self.folder), remedy=remedy)
        return model

    def tag_scores(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """The probabilities of the tags of the model (words, tags); a word without sub-words has zeros."""
        size = int(self.model.config.num_labels)
        results = [np.zeros((len(words), size)) for words in sentences]
        parts: list[tuple[int, list[int], dict[int, int]]] = []  # sentence, token ids, and by word its first sub-word
        for number, words in enumerate(sentences):
            pairs = [pair for pair in zip(*tokenize_words(self.tokenizer, words), strict=True) if pair[1] >= 0]
            seen: set[int] = set()
            for ids, word_of in zip(*split_rows(pairs, self.prefix_ids, self.suffix_ids, self.max_length), strict=True):
                backwards = reversed(list(enumerate(word_of)))
                firsts = {word: position for position, word in backwards if word >= 0 and word not in seen}
                seen.update(firsts)
                parts.append((number, ids, firsts))

        def compute(batch: list[int], width: int) -> None:
            ids, mask = self.pad([parts[i][1] for i in batch], width)
            with torch.inference_mode():
                logits = self.model(input_ids=ids, attention_mask=mask).logits
            probabilities = logits.double().softmax(-1).cpu().numpy()
            for i, rows in zip(batch, probabilities, strict=True):
                number, _, firsts = parts[i]
                results[number][list(firsts)] = rows[list(firsts.values())]

        self.batcher.run([len(ids) for _, ids, _ in parts], compute)
        return results


class HuggingFaceTagger(PretrainedTagger):
    """A token classifier of transformers, over the words of the corpus."""

    # The tags of the model may be of any scheme, or labels alone; the first sub-word of a word gives its tag. Its
    # probabilities are those of the model, added up for labels of the model that stand for one of the corpus.

    prefix = "hf"

    def _load(self, model: str) -> None:
        self._model = _TokenClassifier(model)
        self.name = f"hf:{self._model.name}"
        self.languages = self._model.languages
        tags = self._model.model.config.id2label
        self._split_tags = [split_tag(tags[i]) for i in range(len(tags))]

    @property
    def own_labels(self) -> list[str] | None:
        """See `PretrainedTagger.own_labels`."""
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
        """See `entaug.backends.protocols.Tagger.tag_probabilities`: those of the model."""
        return self._probabilities(list(sentences), dict(self._fitted_map().labels))

    def _probabilities(self, sentences: Sequence[Sentence], labels: dict[str, str]) -> list[TagProbabilities]:
        """The probabilities of IOB2 tags of labels that those of the model stand for; others count as ``"O"``."""
        tags = tags_of(sorted(set(labels.values())))
        columns = np.zeros(len(self._split_tags), np.intp)
        for i, (place, label) in enumerate(self._split_tags):
            if label in labels:
                columns[i] = tags.index(f"{place}-{labels[label]}")
        results = []
        for scores in self._model.tag_scores([sentence.tokens for sentence in sentences]):
            values = np.zeros((len(scores), len(tags)))
            for i, column in enumerate(columns):
                values[:, column] += scores[:, i]
            values[values.sum(axis=1) == 0, 0] = 1  # a word that has no sub-word
            results.append(TagProbabilities(tags, _starts_mentions(values)))
        return results


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
