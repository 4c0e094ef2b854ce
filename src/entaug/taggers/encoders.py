"""Bodies of taggers on encoders: trainable networks that compute a vector for each word of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
import transformers

from entaug.backends.models.catalogue import model_path
from entaug.backends.resolve import starter_model
from entaug.backends.transformers.base import (
    find_model,
    load_model,
    load_tokenizer,
    max_input_length,
    model_name,
    pad_rows,
    quiet,
    row_ranges,
    tokenize_words,
)
from entaug.errors import MissingModelError
from entaug.taggers.packing import can_pack, pack_rows, use_packed_attention

__all__ = ["LEARNING_RATE", "Encoder", "EncoderInput", "encoder_folder"]

LEARNING_RATE = 2e-4
"""Default peak learning rate of small encoders."""
_LAYERS, _WIDTH = 6, 384  # of MiniLM, up to which an encoder is small


class EncoderInput(NamedTuple):
    """Sub-words of a sentence."""

    rows: list[list[int]]
    word_indices: list[list[int]]


class Encoder(torch.nn.Module):
    """A pretrained encoder, fine-tuned with the head."""

    # During training the embedding table is reduced to the sub-words that occur (`shrink`): the other rows, most of a
    # small model, would only have gradients of 0. Afterwards the rows are put back.

    def __init__(self, encoder: str, pooling: str = "first", *, frozen: bool = False) -> None:
        super().__init__()
        folder = encoder_folder(encoder)
        self.name = model_name(folder)
        self.pooling = pooling
        self.frozen = frozen
        self.tokenizer = load_tokenizer(folder)
        if not self.tokenizer.is_fast:
            raise MissingModelError(
                "has no fast tokenizer, which assigns sub-words to words",
                path=str(folder),
                remedy="use another encoder",
            )
        self.model = load_model(transformers.AutoModel, folder, dtype=torch.float32)
        self.size = int(self.model.config.hidden_size)
        self.max_length = max_input_length(self.model.config, self.tokenizer)
        self._pad_id = int(self.tokenizer.pad_token_id or 0)
        ids, words = tokenize_words(self.tokenizer, ["a"])
        inner = [i for i, word in enumerate(words) if word >= 0]
        self._prefix, self._suffix = ids[: inner[0]], ids[inner[-1] + 1 :]
        self._full_table: torch.nn.Embedding | None = None
        self._row_of: torch.Tensor | None = None
        self.packs = can_pack(self.model.config)
        if self.packs:
            use_packed_attention(self.model)
        if frozen:
            self.model.requires_grad_(requires_grad=False)

    def train(self, mode: bool = True) -> Self:
        """See `torch.nn.Module.train`; a frozen encoder stays in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.model.eval()
        return self

    def prepare(self, tokens: Sequence[str]) -> EncoderInput:
        """Split a sentence into sub-words, and into rows if it is longer than the model allows."""
        pairs = [pair for pair in zip(*tokenize_words(self.tokenizer, tokens), strict=True) if pair[1] >= 0]
        # Words without sub-words, such as zero-width characters, become the unknown sub-word.
        present = {word for _, word in pairs}
        unknown = self.tokenizer.unk_token_id or 0
        pairs += [(unknown, word) for word in range(len(tokens)) if word not in present]
        pairs.sort(key=lambda pair: pair[1])
        size = self.max_length - len(self._prefix) - len(self._suffix)
        rows, word_indices = [], []
        for start, end in row_ranges([word for _, word in pairs], size):
            part = pairs[start:end]
            rows.append([*self._prefix, *(i for i, _ in part), *self._suffix])
            word_indices.append([*(-1 for _ in self._prefix), *(word for _, word in part), *(-1 for _ in self._suffix)])
        return EncoderInput(rows, word_indices)

    def length(self, prepared: EncoderInput) -> int:
        """The number of sub-words of the longest row of a sentence."""
        return max(map(len, prepared.rows))

    def forward(self, batch: Sequence[EncoderInput]) -> torch.Tensor:
        """Compute word vectors."""
        num_words = max(max(map(max, sentence.word_indices)) for sentence in batch) + 1
        _, states, width = self._encode(batch)
        pool = self._first if self.pooling == "first" else self._max
        return pool(states, list(_word_pieces(batch, num_words, width)), len(batch), num_words)

    def _encode(self, batch: Sequence[EncoderInput]) -> tuple[torch.Tensor, torch.Tensor, int | None]:
        """Encode all rows of a batch."""
        rows = [row for sentence in batch for row in sentence.rows]
        device = self.model.device
        width = None
        if self.packs:
            ids, positions, packing = pack_rows(rows, self.model.config, device)
            inputs = {"position_ids": positions, "packing": packing}
        else:
            width = max(map(len, rows))
            ids, mask = pad_rows(rows, width, self._pad_id)
            inputs = {"attention_mask": mask.to(device)}
        if self._row_of is not None:
            ids = self._row_of[ids]
        ids = ids.to(device)
        return ids.flatten(), self.encoder(input_ids=ids, **inputs)[0].flatten(0, 1).float(), width

    @property
    def encoder(self) -> Any:
        """The part of the model that encodes sentences."""
        return self.model

    @staticmethod
    def _first(
        states: torch.Tensor, word_pieces: Sequence[tuple[int, int]], batch_size: int, num_words: int
    ) -> torch.Tensor:
        # Padding words refer to an additional vector of zeros behind the sub-words.
        index = [len(states)] * (batch_size * num_words)
        for word, piece in word_pieces:
            index[word] = min(index[word], piece)
        extended = torch.cat([states, states.new_zeros(1, states.shape[1])])
        return extended[torch.tensor(index, device=states.device).view(batch_size, num_words)]

    @staticmethod
    def _max(
        states: torch.Tensor, word_pieces: Sequence[tuple[int, int]], batch_size: int, num_words: int
    ) -> torch.Tensor:
        words, pieces = zip(*word_pieces, strict=True)
        vectors = states[torch.tensor(pieces, device=states.device)]
        index = torch.tensor(words, device=states.device)[:, None].expand_as(vectors)
        zeros = states.new_zeros(batch_size * num_words, states.shape[1])
        return zeros.scatter_reduce(0, index, vectors, "amax", include_self=False).view(batch_size, num_words, -1)

    def shrink(self, prepared: Iterable[EncoderInput]) -> None:
        """Reduce the embedding table to the sub-words of some sentences."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:
            return
        if type(table) is not torch.nn.Embedding:
            return
        # Some models derive positions from the padding id, so it and the ids before it keep their numbers.
        ids = {i for sentence in prepared for row in sentence.rows for i in row} | set(range(self._pad_id + 1))
        kept = torch.tensor(sorted(ids))
        rows = table.weight.detach()[kept.to(table.weight.device)].clone()
        # With given weights the module draws no random numbers, so later draws equal those with the full table.
        small = torch.nn.Embedding(
            len(kept), table.embedding_dim, padding_idx=table.padding_idx, _weight=rows, _freeze=self.frozen
        )
        self._row_of = torch.full((table.num_embeddings,), -1)
        self._row_of[kept] = torch.arange(len(kept))
        self._full_table = table
        self.model.set_input_embeddings(small)

    def unshrink(self) -> None:
        """Restore the embedding table, with the trained rows."""
        if self._full_table is None or self._row_of is None:
            return
        small = self.model.get_input_embeddings()
        kept = torch.nonzero(self._row_of >= 0)[:, 0]
        device = self._full_table.weight.device
        with torch.no_grad():
            self._full_table.weight[kept.to(device)] = small.weight.to(device)
        self.model.set_input_embeddings(self._full_table.to(small.weight.device))
        self._full_table = self._row_of = None

    @property
    def default_learning_rate(self) -> float:
        """The peak learning rate if none is given: wider and deeper encoders are trained with smaller steps."""
        width, depth = self.size / _WIDTH, int(self.model.config.num_hidden_layers) / _LAYERS
        return LEARNING_RATE / max(1.0, width**2, width * depth)

    def pretrained(self) -> Iterable[torch.nn.Parameter]:
        """The pretrained parameters, which have a learning rate of their own."""
        parameters: Iterable[torch.nn.Parameter] = self.model.parameters()
        return parameters

    def save(self, folder: Path) -> None:
        """Save the encoder in the format of transformers."""
        with quiet():
            self.model.save_pretrained(folder / "encoder")
            self.tokenizer.save_pretrained(folder / "encoder")


def _word_pieces(batch: Sequence[EncoderInput], num_words: int, width: int | None) -> Iterator[tuple[int, int]]:
    """The index of its word and its own index of each sub-word of a word, with sentences and rows concatenated."""
    # `width` is that of padded rows; None for rows without padding.
    start = 0
    for i, sentence in enumerate(batch):
        for word_indices in sentence.word_indices:
            for column, word in enumerate(word_indices):
                if word >= 0:
                    yield i * num_words + word, start + column
            start += len(word_indices) if width is None else width


def encoder_folder(encoder: str) -> Path:
    """Find the folder of an encoder."""
    model = starter_model("encoder", encoder)
    return model_path(model) if model else find_model(encoder)
