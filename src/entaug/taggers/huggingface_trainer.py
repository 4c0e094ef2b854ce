"""Soft labels in the ``Trainer`` of transformers: a collator and a loss for token classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from entaug.backends.soft_labels import TagProbabilities
from entaug.backends.transformers.training import IGNORED
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError


@dataclass
class SoftLabelCollator:
    """Collates sentences into batches for token classification, with probabilities of tags as labels."""

    # Sentences with `entaug.backends.soft_labels.TagProbabilities` are learnt softly, others by the tags of their
    # mentions; both may be in one batch. The first sub-word of a word carries its label. Train with
    # `remove_unused_columns=False` and `soft_label_loss`.

    tokenizer: Any
    tags: Sequence[str]
    overlap: str = "error"
    max_length: int | None = None
    _tag_ids: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise ParameterError("a fast tokenizer is wanted, which assigns sub-words to words")
        self.tags = list(self.tags)
        self._tag_ids = {tag: i for i, tag in enumerate(self.tags)}
        if "O" not in self._tag_ids or len(self._tag_ids) < len(self.tags):
            raise ParameterError(f"distinct tags with O among them are wanted, not {', '.join(self.tags)}")

    def __call__(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """Create a batch."""
        batch = self.tokenizer(
            [list(sentence.tokens) for sentence in sentences],
            is_split_into_words=True,
            split_special_tokens=True,
            truncation=True,
            max_length=self.max_length,
            padding=True,
            return_tensors="pt",
        )
        labels = torch.full((*batch["input_ids"].shape, len(self.tags)), float(IGNORED))
        for i, sentence in enumerate(sentences):
            targets = self._targets(sentence)
            previous = None
            for position, word in enumerate(batch.word_ids(i)):
                # A word of weight 0 is ignored.
                if word is not None and word != previous and targets[word].any():
                    labels[i, position] = targets[word]
                previous = word
        return {**batch, "labels": labels}

    def _targets(self, sentence: Sentence) -> Any:
        """The probabilities of tags, multiplied by the weights of the words (words, tags)."""
        try:
            if soft := TagProbabilities.from_sentence(sentence):
                values = soft.aligned(self.tags)
                return torch.from_numpy(values if soft.weights is None else values * soft.weights[:, None])
            tags = sentence.iob(overlap=self.overlap)
        except InputError as error:
            error.path = error.path or f"sentence {sentence.key}"
            raise
        if unknown := sorted(set(tags) - self._tag_ids.keys()):
            message = f"the tag {unknown[0]} is not one of the model"
            raise InputError(message, path=f"sentence {sentence.key}", remedy="add it to tags")
        return torch.eye(len(self.tags))[[self._tag_ids[tag] for tag in tags]]


def soft_label_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> Any:
    """The cross-entropy with probabilities of tags, for ``compute_loss_func`` of the ``Trainer``."""
    # The losses of the words are multiplied by their weights and averaged over all words whose weight is not 0. With
    # gradient accumulation, and on several devices, the average is over all words of the step.
    logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    if logits.shape != labels.shape:
        raise InputError(f"labels of shape {tuple(labels.shape)} for outputs of shape {tuple(logits.shape)}")
    is_learnt = labels != IGNORED
    losses = -(labels.masked_fill(~is_learnt, 0) * logits.float().log_softmax(-1)).sum()
    num_values = is_learnt.sum() if num_items_in_batch is None else num_items_in_batch
    num_words = num_values / labels.shape[-1]
    return losses / (num_words.clamp(min=1) if hasattr(num_words, "clamp") else max(num_words, 1))
