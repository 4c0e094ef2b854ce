"""Encoders of transformers: vectors of tokens and of texts, and attention between words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from entaug.backends.transformers.base import Batcher, TorchBackend, pad_rows, tokenize_words
from entaug.errors import ParameterError


class TransformersEncoder(TorchBackend):
    """Any model that ``AutoModel`` loads, as a `entaug.backends.protocols.Encoder`."""

    # A text longer than the model takes is encoded in parts.

    auto = transformers.AutoModel

    def _load_model(self) -> Any:
        model = super()._load_model()
        if getattr(model.config, "is_encoder_decoder", False):
            model = model.get_encoder()
        return model

    @property
    def num_special_tokens(self) -> tuple[int, int]:
        return len(self.prefix_ids), len(self.suffix_ids)

    @property
    def num_layers(self) -> int:
        """The number of layers above the embeddings."""
        return int(self.model.config.num_hidden_layers)

    # ---------------------------------------------------------------------------------------------------------- vectors

    def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[NDArray[np.float32]]:
        if layer is not None and not 0 <= layer <= self.num_layers:
            raise ParameterError(f"layer must be between 0 and {self.num_layers} for {self.name}, not {layer!r}")
        parts_of_text = [self._split(row) for row in self.encode(texts, add_special_tokens=True)]
        parts = [part for text_parts in parts_of_text for part in text_parts]
        vectors: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(parts)

        def compute(batch: list[int], width: int) -> None:
            hidden = self._hidden_states([parts[i] for i in batch], width, layer).float().cpu().numpy()
            for i, matrix in zip(batch, hidden, strict=True):
                vectors[i] = matrix[: len(parts[i])].copy()

        self.batcher.run([len(part) for part in parts], compute)
        remaining = iter(vectors)
        return [np.concatenate([next(remaining) for _ in text_parts]) for text_parts in parts_of_text]

    def _split(self, row: list[int]) -> list[list[int]]:
        longest = self.max_length
        return [row[i : i + longest] for i in range(0, max(1, len(row)), longest)]

    def _hidden_states(self, rows: list[list[int]], width: int, layer: int | None) -> torch.Tensor:
        ids, padded_mask = self.pad(rows, width)
        mask = None if all(len(row) == width for row in rows) else padded_mask
        with torch.inference_mode():
            output = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=layer is not None)
        states: torch.Tensor = output[0] if layer is None else output.hidden_states[layer]
        return states

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, int(self.model.config.hidden_size)), np.float32)
        means = np.stack([vectors.mean(axis=0) for vectors in self.token_vectors(texts)])
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        return np.asarray(means / np.maximum(norms, 1e-12), np.float32)

    # ------------------------------------------------------------------------------------------------------- attentions

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[np.float32]]:
        # Words of different parts of a text that is too long do not attend to each other.
        if not 1 <= layers <= self.num_layers:
            raise ParameterError(f"layers must be between 1 and {self.num_layers} for {self.name}, not {layers!r}")
        return compute_attentions(self.model, self.tokenizer, self.max_length, self.batcher, sentences, layers)


def compute_attentions(
    model: Any, tokenizer: Any, max_length: int, batcher: Batcher, sentences: Sequence[Sequence[str]], layers: int
) -> list[NDArray[np.float32]]:
    """Compute attention between words, see `entaug.backends.protocols.Encoder.attentions`."""
    if model.config._attn_implementation != "eager":  # noqa: SLF001
        model.set_attn_implementation("eager")  # the fused kernels do not return attentions
    matrices = [np.zeros((len(words), len(words)), np.float32) for words in sentences]
    # Each part: its sentence, its token ids, and for each token its word or -1.
    parts: list[tuple[int, list[int], list[int]]] = []
    for number, words in enumerate(sentences):
        ids, word_of = tokenize_words(tokenizer, words)
        starts = range(0, max(1, len(ids)), max_length)
        parts += [(number, ids[i : i + max_length], word_of[i : i + max_length]) for i in starts]

    def compute(batch: list[int], width: int) -> None:
        ids, mask = pad_rows([parts[i][1] for i in batch], width, tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            out = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device), output_attentions=True)
        summed = sum(layer.float().sum(dim=1) for layer in out.attentions[-layers:])
        for i, matrix in zip(batch, summed.cpu().numpy(), strict=True):
            number, row, word_of = parts[i]
            of_word = np.array(word_of, np.intp)
            positions = np.flatnonzero(of_word >= 0)  # none in a part with special tokens alone
            words = of_word[positions]
            between_words = matrix[: len(row), : len(row)][np.ix_(positions, positions)]
            np.add.at(matrices[number], np.ix_(words, words), between_words)

    batcher.run([len(ids) for _, ids, _ in parts], compute)
    return matrices
