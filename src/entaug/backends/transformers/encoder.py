"""Encoders of transformers: vectors of sub-words and of texts, and attentions between words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entaug.backends.transformers.base import Batcher, TorchBackend, by_word, padded, torch, transformers
from entaug.errors import ParameterError

__all__ = ["TransformersEncoder", "attentions_of"]


class _ReachedError(Exception):
    """The wanted layer is computed; those above are not needed."""

    def __init__(self, hidden: torch.Tensor) -> None:
        super().__init__()
        self.hidden = hidden


class TransformersEncoder(TorchBackend):
    """Any model that ``AutoModel`` loads, as a `entaug.backends.protocols.Encoder`.

    A text longer than the model can take is encoded in parts of that length (`shortened` counts such texts).

    Args:
        name: a folder or a name on the hub.
        device: see `entaug.backends.transformers.base.choose`.
        precision: see `entaug.backends.transformers.base.choose`.
        budget: sub-words of a batch; by default by device.

    Raises:
        MissingModelError: there is no such model.
    """

    auto = transformers.AutoModel

    def _load_model(self) -> Any:
        model = super()._load_model()
        if getattr(model.config, "is_encoder_decoder", False):
            model = model.get_encoder()
        return model

    @property
    def around(self) -> tuple[int, int]:
        """See `entaug.backends.protocols.Encoder.around`."""
        return len(self.before), len(self.after)

    @property
    def layers(self) -> int:
        """How many layers the model has above the embeddings."""
        return int(self.model.config.num_hidden_layers)

    # ---------------------------------------------------------------------------------------------------------- vectors

    def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[NDArray[np.float32]]:
        """See `entaug.backends.protocols.Encoder.token_vectors`.

        Raises:
            ParameterError: the model has no such layer.
        """
        if layer is not None and not 0 <= layer <= self.layers:
            raise ParameterError(f"layer must be between 0 and {self.layers} for {self.name}, not {layer!r}")
        rows = self.encode(texts, special=True)
        parts = [part for row in rows for part in self._parts(row)]
        vectors: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(parts)

        def compute(batch: list[int], width: int) -> None:
            hidden = self._hidden([parts[i] for i in batch], width, layer).float().cpu().numpy()
            for i, matrix in zip(batch, hidden, strict=True):
                vectors[i] = matrix[: len(parts[i])].copy()

        self.batcher.run([len(part) for part in parts], compute)
        joined, place = [], 0
        for row in rows:
            count = len(self._parts(row))
            joined.append(vectors[place] if count == 1 else np.concatenate(vectors[place : place + count]))
            self.shortened += count > 1
            place += count
        return joined

    def _parts(self, row: list[int]) -> list[list[int]]:
        longest = self.max_length
        return [row[i : i + longest] for i in range(0, max(1, len(row)), longest)]

    def _hidden(self, rows: list[list[int]], width: int, layer: int | None) -> torch.Tensor:
        ids, mask = self.padded(rows, width)
        given = None if all(len(row) == width for row in rows) else mask
        with torch.inference_mode():
            if layer is None or layer == self.layers:
                last: torch.Tensor = self.model(input_ids=ids, attention_mask=given)[0]
                return last
            stack = self._stack()
            if layer == 0 or stack is None:
                states = self.model(input_ids=ids, attention_mask=given, output_hidden_states=True).hidden_states
                state: torch.Tensor = states[layer]
                return state
            # Stop there: what is above the wanted layer would be computed for nothing.
            hook = stack[layer - 1].register_forward_hook(_stop)
            try:
                self.model(input_ids=ids, attention_mask=given)
            except _ReachedError as reached:
                return reached.hidden
            finally:
                hook.remove()
        raise AssertionError("the layer was not computed")

    def _stack(self) -> torch.nn.ModuleList | None:
        stacks = (m for m in self.model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == self.layers)
        return next(stacks, None)

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `entaug.backends.protocols.Encoder.sentence_vectors`: the mean over sub-words, special ones included."""
        if not texts:
            return np.zeros((0, int(self.model.config.hidden_size)), np.float32)
        means = np.stack([vectors.mean(axis=0) for vectors in self.token_vectors(texts)])
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        return np.asarray(means / np.maximum(norms, 1e-12), np.float32)

    # ------------------------------------------------------------------------------------------------------- attentions

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[np.float32]]:
        """See `entaug.backends.protocols.Encoder.attentions`.

        Words of different parts of a text that is too long do not attend to each other.

        Raises:
            ParameterError: fewer than one layer, or more than the model has.
        """
        if not 1 <= layers <= self.layers:
            raise ParameterError(f"layers must be between 1 and {self.layers} for {self.name}, not {layers!r}")
        found, parts = attentions_of(self.model, self.tokenizer, self.max_length, self.batcher, sentences, layers)
        self.shortened += parts
        return found


def attentions_of(
    model: Any, tokenizer: Any, longest: int, batcher: Batcher, sentences: Sequence[Sequence[str]], layers: int
) -> tuple[list[NDArray[np.float32]], int]:
    """What words attend to, as `entaug.backends.protocols.Encoder.attentions` gives it.

    Args:
        model: an encoder.
        tokenizer: its tokenizer.
        longest: how many sub-words it takes at once.
        batcher: makes batches.
        sentences: tokens of each sentence.
        layers: how many of the last layers to sum over.

    Returns:
        The arrays, and how many sentences were longer than the model takes.
    """
    if model.config._attn_implementation != "eager":  # noqa: SLF001
        model.set_attn_implementation("eager")  # the fused kernels do not give attentions away
    found = [np.zeros((len(words), len(words)), np.float32) for words in sentences]
    # Each part: its sentence, its sub-words, and for each sub-word its word or -1.
    parts: list[tuple[int, list[int], list[int]]] = []
    long = 0
    for number, words in enumerate(sentences):
        ids, owners = by_word(tokenizer, words)
        starts = range(0, max(1, len(ids)), longest)
        long += len(starts) > 1
        parts += [(number, ids[i : i + longest], owners[i : i + longest]) for i in starts]

    def compute(batch: list[int], width: int) -> None:
        ids, mask = padded([parts[i][1] for i in batch], width, tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            out = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device), output_attentions=True)
        summed = sum(layer.float().sum(dim=1) for layer in out.attentions[-layers:])
        for i, matrix in zip(batch, summed.cpu().numpy(), strict=True):
            number, row, owners = parts[i]
            held = [at for at, owner in enumerate(owners) if owner >= 0]
            words = np.array([owners[at] for at in held])
            inner = matrix[: len(row), : len(row)][np.ix_(held, held)]
            np.add.at(found[number], np.ix_(words, words), inner)

    batcher.run([len(ids) for _, ids, _ in parts], compute)
    return found, long


def _stop(_module: Any, _inputs: Any, output: Any) -> None:
    raise _ReachedError(output[0] if isinstance(output, tuple) else output)
