"""Soft labels in the ``Trainer`` of transformers: a collator and a loss for token classification."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.formats.parquet import JSON_COLUMN

_IGNORED = -100  # what the Trainer does not count as something to learn


@dataclass
class SoftLabelCollator:
    """Collates sentences into batches for token classification, with probabilities of tags as labels."""

    # Sentences with `entaug.backends.soft_labels.TagProbabilities` are learnt softly, others by the tags of their
    # mentions; both may be in one batch. The first sub-word of a word carries its label. Train with
    # `remove_unused_columns=False` and `soft_label_loss`.

    tokenizer: Any
    tags: Sequence[str]
    tag_names: Sequence[str] | None = None
    token_column: str = "tokens"  # noqa: S105 - no password
    tag_column: str = "ner_tags"
    overlap: str = "error"
    max_length: int | None = None
    pad_to_multiple_of: int | None = None
    _tag_ids: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise ParameterError("a fast tokenizer is wanted, which assigns sub-words to words")
        self.tags = list(self.tags)
        self._tag_ids = {tag: i for i, tag in enumerate(self.tags)}
        if "O" not in self._tag_ids or len(self._tag_ids) < len(self.tags):
            raise ParameterError(f"distinct tags with O among them are wanted, not {', '.join(self.tags)}")

    def __call__(self, examples: Sequence[Sentence | Mapping[str, Any]]) -> dict[str, Any]:
        """Create a batch."""
        items = [
            self._sentence(example) if isinstance(example, Sentence) else self._row(example) for example in examples
        ]
        batch = self.tokenizer(
            [list(tokens) for tokens, _ in items],
            is_split_into_words=True,
            split_special_tokens=True,
            truncation=True,
            max_length=self.max_length,
            padding=True,
            pad_to_multiple_of=self.pad_to_multiple_of,
            return_tensors="pt",
        )
        labels = torch.full((*batch["input_ids"].shape, len(self.tags)), float(_IGNORED))
        for i, (_, targets) in enumerate(items):
            previous = None
            for position, word in enumerate(batch.word_ids(i)):
                # A word of weight 0 is ignored.
                if word is not None and word != previous and targets[word].any():
                    labels[i, position] = targets[word]
                previous = word
        return {**batch, "labels": labels}

    def _sentence(self, sentence: Sentence) -> tuple[Sequence[str], Any]:
        """The words of a sentence, and what they teach (words, tags)."""
        try:
            soft = TagProbabilities.from_sentence(sentence)
            tags = sentence.iob(overlap=self.overlap) if soft is None else []
            return sentence.tokens, self._targets(soft, tags)
        except InputError as error:
            error.path = error.path or f"sentence {sentence.key}"
            raise

    def _row(self, row: Mapping[str, Any]) -> tuple[Sequence[str], Any]:
        """The words of a row of a dataset, and what they teach."""
        if self.token_column not in row:
            remedy = "pass remove_unused_columns=False to TrainingArguments, or token_column to the collator"
            raise InputError(f"a row has no column {self.token_column!r}, only {', '.join(row)}", remedy=remedy)
        tokens = row[self.token_column]
        data = row.get(TagProbabilities.field) or json.loads(row.get(JSON_COLUMN) or "{}").get(TagProbabilities.field)
        soft = None if data is None else TagProbabilities.from_dict(data)
        numbers = row.get(self.tag_column)
        if soft is None and numbers is None:
            remedy = "name it: tag_column; or read the dataset with entaug.from_datasets"
            raise InputError(f"a row has no column {self.tag_column!r}", remedy=remedy)
        names = self.tags if self.tag_names is None else self.tag_names
        if wrong := [tag for tag in numbers or () if not isinstance(tag, str) and not 0 <= tag < len(names)]:
            raise InputError(f"a row has the tag {wrong[0]}, and there are {len(names)} tags", remedy="pass tag_names")
        tags = [tag if isinstance(tag, str) else names[tag] for tag in numbers or ()]
        if len(tokens) != (len(tags) if soft is None else len(soft.values)):
            raise InputError(f"a row has {len(tokens)} tokens and another number of tags: {' '.join(tokens)[:60]}")
        return tokens, self._targets(soft, tags)

    def _targets(self, soft: TagProbabilities | None, tags: Sequence[str]) -> Any:
        """The probabilities of tags, multiplied by the weights of the words (words, tags)."""
        if soft is not None:
            values = soft.aligned(self.tags)
            return torch.from_numpy(values if soft.weights is None else values * soft.weights[:, None])
        if unknown := sorted(set(tags) - self._tag_ids.keys()):
            raise InputError(f"the tag {unknown[0]} is not one of the model", remedy="add it to tags")
        return torch.eye(len(self.tags))[[self._tag_ids[tag] for tag in tags]]


def soft_label_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> Any:
    """The cross-entropy with probabilities of tags, for ``compute_loss_func`` of the ``Trainer``."""
    # The losses of the words are multiplied by their weights and averaged over all words whose weight is not 0. With
    # gradient accumulation, and on several devices, the average is over all words of the step.
    logits = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    if logits.shape != labels.shape:
        raise InputError(f"labels of shape {tuple(labels.shape)} for outputs of shape {tuple(logits.shape)}")
    is_learnt = labels != _IGNORED
    losses = -(labels.masked_fill(~is_learnt, 0) * logits.float().log_softmax(-1)).sum()
    num_values = is_learnt.sum() if num_items_in_batch is None else num_items_in_batch
    num_words = num_values / labels.shape[-1]
    return losses / (num_words.clamp(min=1) if hasattr(num_words, "clamp") else max(num_words, 1))
