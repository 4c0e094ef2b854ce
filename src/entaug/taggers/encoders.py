"""Encoders of taggers: trainable networks that compute a vector for each word of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import torch
import transformers

from entaug.backends.models.catalogue import model_path
from entaug.backends.protocols import WordVectors
from entaug.backends.resolve import resolve, starter_model
from entaug.backends.transformers.base import (
    Batcher,
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
from entaug.core.data import Sentence
from entaug.errors import MissingModelError, ParameterError

Result = TypeVar("Result")

_LEARNING_RATE = 2e-4  # the default peak learning rate of small encoders
_LAYERS, _WIDTH = 6, 384  # of MiniLM, up to which an encoder is small
_CHARACTER_FEATURES = 50
_SUB_WORDS = 4096  # of a batch in which no weights are trained
_MAX_CHARACTERS = 30  # of a longer word the first and the last half of as many


class EncoderInput(NamedTuple):
    """Sub-words of a sentence."""

    rows: list[list[int]]
    word_indices: list[list[int]]


def split_rows(
    pairs: Sequence[tuple[int, int]], prefix: Sequence[int], suffix: Sequence[int], max_length: int
) -> EncoderInput:
    """Divide the sub-words of a sentence, each with its word, into rows that a model can take."""
    rows, word_indices = [], []
    for start, end in row_ranges([word for _, word in pairs], max(1, max_length - len(prefix) - len(suffix))):
        part = pairs[start:end]
        rows.append([*prefix, *(i for i, _ in part), *suffix])
        word_indices.append([*(-1 for _ in prefix), *(word for _, word in part), *(-1 for _ in suffix)])
    return EncoderInput(rows, word_indices)


class Encoder(torch.nn.Module):
    """A pretrained encoder, fine-tuned with the decoder."""

    # During training the embedding table is reduced to the sub-words that occur (`shrink`): the other rows, most of a
    # small model, would only have gradients of 0. Afterwards the rows are put back. What layers that are not trained
    # compute is kept meanwhile.

    def __init__(
        self, encoder: str, pooling: Literal["first", "max"] = "first", *, trained_layers: int | None = None
    ) -> None:
        super().__init__()
        folder = encoder_folder(encoder)
        self.name = model_name(folder)
        self.pooling = pooling
        self.tokenizer = self._load_tokenizer(folder)
        if not self.tokenizer.is_fast:
            raise MissingModelError(
                "has no fast tokenizer, which assigns sub-words to words",
                path=str(folder),
                remedy="use another encoder",
            )
        self.model = self._load_model(folder)
        self.size = int(self.model.config.hidden_size)
        self.max_length = max_input_length(self.model.config, self.tokenizer)
        self._pad_id = int(self.tokenizer.pad_token_id or 0)
        ids, words = tokenize_words(self.tokenizer, ["a"])
        inner = [i for i, word in enumerate(words) if word >= 0]
        self._prefix, self._suffix = ids[: inner[0]], ids[inner[-1] + 1 :]
        self._full_table: torch.nn.Embedding | None = None
        self._row_of: torch.Tensor | None = None
        self._lower = None if trained_layers is None else LowerLayers(self.encoder, trained_layers, self.name)
        if self._lower is not None:
            self.model.requires_grad_(requires_grad=False)
            for layer in self._lower.upper:
                layer.requires_grad_(requires_grad=True)

    def train(self, mode: bool = True) -> Self:
        """Set the mode; what is not trained stays in that of evaluation."""
        super().train(mode)
        if self._lower is not None:
            self.model.eval()
            for layer in self._lower.upper:
                layer.train(mode)
        return self

    def _load_tokenizer(self, folder: Path) -> Any:
        return load_tokenizer(folder)

    def _load_model(self, folder: Path) -> Any:
        return load_model(transformers.AutoModel, folder, dtype=torch.float32)

    def prepare(self, tokens: Sequence[str]) -> EncoderInput:
        """Split a sentence into sub-words, and into rows if it is longer than the model allows."""
        pairs = [pair for pair in zip(*tokenize_words(self.tokenizer, tokens), strict=True) if pair[1] >= 0]
        # Words without sub-words, such as zero-width characters, become the unknown sub-word.
        present = {word for _, word in pairs}
        unknown = self.tokenizer.unk_token_id or 0
        pairs += [(unknown, word) for word in range(len(tokens)) if word not in present]
        pairs.sort(key=lambda pair: pair[1])
        return split_rows(pairs, self._prefix, self._suffix, self.max_length)

    def length(self, prepared: EncoderInput) -> int:
        """The number of sub-words of the longest row of a sentence."""
        return max(map(len, prepared.rows))

    def forward(self, batch: Sequence[EncoderInput]) -> torch.Tensor:
        """Compute word vectors (sentences, words, size); those of padding are 0."""
        ids, states = self._encode(batch)
        num_words = max(max(map(max, sentence.word_indices)) for sentence in batch) + 1
        words: list[int] = []  # with the words of all sentences in one row, that of each of these sub-words
        pieces: list[int] = []
        row = 0
        for i, sentence in enumerate(batch):
            previous = -1
            for word_indices in sentence.word_indices:
                for column, word in enumerate(word_indices):
                    if word >= 0 and (self.pooling == "max" or word != previous):
                        words.append(i * num_words + word)
                        pieces.append(row * ids.shape[1] + column)
                        previous = word
                row += 1
        vectors = states.flatten(0, 1)[torch.tensor(pieces, device=states.device)]
        index = torch.tensor(words, device=states.device)
        pooled = vectors.new_zeros(len(batch) * num_words, vectors.shape[1])
        if self.pooling == "max":
            pooled = pooled.scatter_reduce(0, index[:, None].expand_as(vectors), vectors, "amax", include_self=False)
        else:
            pooled = pooled.index_copy(0, index, vectors)
        return pooled.view(len(batch), num_words, -1)

    def _encode(self, batch: Sequence[EncoderInput]) -> tuple[torch.Tensor, torch.Tensor]:
        """The ids (rows, sub-words) of all rows of a batch, and their vectors (rows, sub-words, size)."""
        rows = list(chain.from_iterable(sentence.rows for sentence in batch))
        # The width is that of batches of prediction, so that no vector depends on the others there.
        width = min(self.max_length, -(-max(map(len, rows)) // 8) * 8)
        ids, mask = pad_rows(rows, width, self._pad_id)
        if self._row_of is not None:
            ids = self._row_of[ids]
        ids = ids.to(self.model.device)
        mask = mask.to(ids.device)
        if self._lower is not None and torch.is_grad_enabled():  # in training
            return ids, self._lower.run(self.encoder, rows, ids, mask).float()
        return ids, self.encoder(input_ids=ids, attention_mask=mask)[0].float()

    @property
    def encoder(self) -> Any:
        """The part of the model that encodes sentences."""
        return self.model

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
            len(kept),
            table.embedding_dim,
            padding_idx=table.padding_idx,
            _weight=rows,
            _freeze=not table.weight.requires_grad,
        )
        self._row_of = torch.full((table.num_embeddings,), -1)
        self._row_of[kept] = torch.arange(len(kept))
        self._full_table = table
        self.model.set_input_embeddings(small)

    def unshrink(self) -> None:
        """Restore the embedding table, with the trained rows."""
        if self._lower is not None:
            self._lower.clear()
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
        return _LEARNING_RATE / max(1.0, width**2, width * depth)

    def pretrained(self) -> Iterable[torch.nn.Parameter]:
        """The pretrained parameters, which have a learning rate of their own."""
        parameters: Iterable[torch.nn.Parameter] = self.model.parameters()
        return parameters

    def save(self, folder: Path) -> None:
        """Save the encoder in the format of transformers."""
        with quiet():
            self.model.save_pretrained(folder / "encoder")
            self.tokenizer.save_pretrained(folder / "encoder")


class LowerLayers:
    """The lower layers of an encoder, which are not trained: their output for each row is computed once."""

    # The model runs as it is, but with its upper layers alone, and a hook gives the first of them the kept vectors. On
    # the first batch the result is compared with that of the whole model: a model that this does not divide is run
    # whole. Beyond `LIMIT` bytes nothing more is kept.

    LIMIT = 1 << 30

    def __init__(self, model: Any, trained: int, name: str) -> None:
        number = int(model.config.num_hidden_layers)
        if trained > number:
            raise ParameterError(f"{name} has {number} layers, not {trained}", parameter="trained_layers")
        lists: Iterator[tuple[Any, str]] = (
            (parent, attribute)
            for parent in model.modules()
            for attribute, child in parent.named_children()
            if isinstance(child, torch.nn.ModuleList) and len(child) == number
        )
        self._parent: Any
        self._parent, self._attribute = next(lists, (None, ""))
        if trained and self._parent is None:
            raise ParameterError(
                f"{name} has no list of layers", parameter="trained_layers", remedy="train all layers, or none"
            )
        self._layers: list[Any] = [*getattr(self._parent, self._attribute)] if trained else []
        self._first = number - trained
        self._is_divisible: bool | None = None
        self.clear()

    @property
    def upper(self) -> Sequence[Any]:
        """The layers that are trained."""
        return self._layers[self._first :]

    def clear(self) -> None:
        """Forget what was computed."""
        self._kept: dict[tuple[int, ...], torch.Tensor] = {}
        self._bytes = 0

    def run(self, model: Any, rows: Sequence[list[int]], ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the output of the model for padded rows; gradients reach the upper layers."""
        if self._is_divisible is None:
            self._is_divisible = self._divides(model, ids, mask)
        if not self._is_divisible:
            states: torch.Tensor = model(input_ids=ids, attention_mask=mask)[0]
            return states
        keys = list(map(tuple, rows))
        new = [i for i, key in enumerate(keys) if key not in self._kept]
        computed = dict(zip(new, self._lower_states(model, ids[new], mask[new]), strict=True)) if new else {}
        parts = [computed[i][: len(key)] if i in computed else self._kept[key] for i, key in enumerate(keys)]
        for i in computed:
            if self._bytes + parts[i].nbytes <= self.LIMIT and keys[i] not in self._kept:
                self._kept[keys[i]] = parts[i].clone()
                self._bytes += parts[i].nbytes
        lower = parts[0].new_zeros(*ids.shape, parts[0].shape[-1])
        for i, part in enumerate(parts):
            lower[i, : len(part)] = part
        return self._upper_states(model, ids, mask, lower)

    def _divides(self, model: Any, ids: torch.Tensor, mask: torch.Tensor) -> bool:
        """Whether the output of the model is that of its two parts."""
        if not self._layers:
            return True
        with torch.no_grad(), self._evaluating():
            whole = model(input_ids=ids, attention_mask=mask)[0]
            parts = self._upper_states(model, ids, mask, self._lower_states(model, ids, mask))
        return torch.allclose(whole[mask.bool()].float(), parts[mask.bool()].float(), atol=0.05)

    def _lower_states(self, model: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the input of the first upper layer; the output of the model if no layer is trained."""
        states: list[torch.Tensor] = []

        def keep(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            states.append(args[0] if args else kwargs["hidden_states"])

        with torch.no_grad(), self._evaluating():  # no dropout: the first upper layer runs too
            if not self._layers:
                output: torch.Tensor = model(input_ids=ids, attention_mask=mask)[0]
                return output
            self._run_layers(model, ids, mask, self._layers[: self._first + 1], keep)
        return states[0]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Set the upper layers to the mode of evaluation for a while; the others are in that mode."""
        modes = [layer.training for layer in self.upper]
        for layer in self.upper:
            layer.eval()
        try:
            yield
        finally:
            for layer, mode in zip(self.upper, modes, strict=True):
                layer.train(mode)

    def _upper_states(self, model: Any, ids: torch.Tensor, mask: torch.Tensor, lower: torch.Tensor) -> torch.Tensor:
        """Compute the output of the model from the input of the first upper layer."""

        def exchange(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return ((lower, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": lower})

        return self._run_layers(model, ids, mask, self.upper, exchange) if self._layers else lower

    def _run_layers(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, layers: Sequence[Any], hook: Callable[..., Any]
    ) -> torch.Tensor:
        """Run a model that has but some of its layers, with a hook before the first that is trained."""
        whole = getattr(self._parent, self._attribute)
        handle = self.upper[0].register_forward_pre_hook(hook, with_kwargs=True)
        setattr(self._parent, self._attribute, torch.nn.ModuleList(layers))
        try:
            output: torch.Tensor = model(input_ids=ids, attention_mask=mask)[0]
        finally:
            setattr(self._parent, self._attribute, whole)
            handle.remove()
        return output


class StaticInput(NamedTuple):
    """Words of a sentence."""

    fixed: torch.Tensor
    characters: list[list[int]]


Characters = Literal["convolution", "lstm"]


class StaticEncoder(torch.nn.Module):
    """Static word vectors with a convolution over characters (Ma and Hovy 2016), or an LSTM (Lample et al. 2016)."""

    # A word also has features for whether it has a vector, and for its casing, which most vectors ignore.

    default_learning_rate = _LEARNING_RATE

    def __init__(
        self, vectors: WordVectors | str, alphabet: Sequence[str], characters: Characters = "convolution"
    ) -> None:
        super().__init__()
        self.vectors: WordVectors = resolve("word_vectors", vectors)
        self.name = self.vectors.name
        self.alphabet = list(alphabet)
        self._character_ids = {character: i + 2 for i, character in enumerate(self.alphabet)}  # 0 pads, 1 is unknown
        width = {"convolution": 30, "lstm": 25}[characters]
        self.characters = torch.nn.Embedding(len(self.alphabet) + 2, width, padding_idx=0)
        self.lstm: torch.nn.LSTM | None = None
        if characters == "lstm":
            self.lstm = torch.nn.LSTM(width, _CHARACTER_FEATURES // 2, batch_first=True, bidirectional=True)
        else:
            self.convolution = torch.nn.Conv1d(width, _CHARACTER_FEATURES, 3, padding=1)
        self.size = self.vectors.size + _CHARACTER_FEATURES + 4

    def prepare(self, tokens: Sequence[str]) -> StaticInput:
        """Look up the fixed features and the characters of words."""
        vectors = self.vectors.vectors(tokens)
        flags = [
            [bool(v.any()), t.isupper(), t[:1].isupper(), any(map(str.isdigit, t))]
            for t, v in zip(tokens, vectors, strict=True)
        ]
        fixed = torch.from_numpy(np.concatenate([vectors, np.array(flags, np.float32)], axis=1))
        half = _MAX_CHARACTERS // 2
        short = [token if len(token) <= _MAX_CHARACTERS else token[:half] + token[-half:] for token in tokens]
        return StaticInput(fixed, [[self._character_ids.get(character, 1) for character in token] for token in short])

    def length(self, prepared: StaticInput) -> int:
        """The number of words of a sentence."""
        return len(prepared.characters)

    def forward(self, batch: Sequence[StaticInput]) -> torch.Tensor:
        """Compute word vectors."""
        device = self.characters.weight.device
        words = [word for sentence in batch for word in sentence.characters]
        # One width for all words, so that the features of a word do not depend on the rest of the batch.
        ids = torch.zeros((len(words), _MAX_CHARACTERS), dtype=torch.long)
        for i, word in enumerate(words):
            ids[i, : len(word)] = torch.tensor(word)
        ids = ids.to(device)
        if self.lstm is not None:
            lengths = torch.tensor(list(map(len, words)))
            packed = torch.nn.utils.rnn.pack_padded_sequence(
                self.characters(ids), lengths, batch_first=True, enforce_sorted=False
            )
            features = torch.cat(list(self.lstm(packed)[1][0]), dim=1)  # the last state of each direction
        else:
            features = self.convolution(self.characters(ids).transpose(1, 2))
            features = features.masked_fill((ids == 0)[:, None], float("-inf")).amax(2)
        fixed = torch.cat([sentence.fixed for sentence in batch]).to(device)
        vectors = torch.cat([fixed, features.float()], dim=1)
        sentences = torch.split(vectors, [len(sentence.characters) for sentence in batch])
        return torch.nn.utils.rnn.pad_sequence(list(sentences), batch_first=True)

    def shrink(self, prepared: Iterable[StaticInput]) -> None:
        """Do nothing: word vectors are not trained."""

    def unshrink(self) -> None:
        """Do nothing."""

    def pretrained(self) -> Iterable[torch.nn.Parameter]:
        """The pretrained parameters: none."""
        return ()

    def save(self, folder: Path) -> None:
        """Do nothing: the configuration names the word vectors."""


def in_batches(
    encoder: Encoder | StaticEncoder,
    sentences: Sequence[Sentence],
    compute: Callable[[list[Sentence], Any], Iterable[Result]],
    dtype: torch.dtype,
) -> list[Result]:
    """A result for each sentence; `compute` gets the sentences of a batch and their vectors."""
    prepared: list[Any] = [encoder.prepare(sentence.tokens) for sentence in sentences]
    results: dict[int, Result] = {}

    def compute_batch(batch: list[int], _: int) -> None:
        vectors = encoder([prepared[i] for i in batch])
        results.update(zip(batch, compute([sentences[i] for i in batch], vectors), strict=True))

    encoder.eval()
    device = next(encoder.parameters()).device.type
    with torch.inference_mode(), torch.autocast(device, dtype=dtype, enabled=dtype is not torch.float32):
        Batcher(_SUB_WORDS).run([encoder.length(one) for one in prepared], compute_batch)
    return [results[i] for i in range(len(sentences))]


def encoder_folder(encoder: str) -> Path:
    """Find the folder of an encoder."""
    model = starter_model("encoder", encoder)
    return model_path(model) if model else find_model(encoder)
