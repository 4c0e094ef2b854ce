"""Bodies of taggers: what turns the words of sentences into vectors, and learns with the head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from entaug.backends.protocols import WordVectors
from entaug.backends.resolve import BACKENDS, resolve
from entaug.backends.transformers.base import by_word, content_name, find, load, max_length, padded, quiet
from entaug.errors import MissingModelError
from entaug.models import catalogue as models

__all__ = ["EncoderBody", "StaticBody", "encoder_folder"]


class Pieces(NamedTuple):
    """A sentence as an encoder takes it.

    Args:
        rows: its sub-words with special ones; more than one row where the model cannot take them at once.
        owners: for each row the word of each sub-word, or -1.
    """

    rows: list[list[int]]
    owners: list[list[int]]


class EncoderBody(torch.nn.Module):
    """A pretrained encoder of transformers, learning with the head.

    While it learns, the embeddings hold the rows of sub-words that occur and no others: the rest of the table, most of
    a small model, would have gradients of nothing but zeros. Afterwards the rows are put back.

    Args:
        encoder: an alias of the starter set, a folder, or a name on the hub.
        pool: how sub-words make a word: ``"first"``, or ``"max"`` of all.
    """

    def __init__(self, encoder: str, pool: str = "first") -> None:
        super().__init__()
        folder = encoder_folder(encoder)
        self.name = content_name(folder)
        self.pool = pool
        self.tokenizer = load(transformers.AutoTokenizer, folder)
        if not self.tokenizer.is_fast:
            raise MissingModelError(
                "has no fast tokenizer, so its sub-words cannot be told to words",
                path=str(folder),
                remedy="use another",
            )
        self.model = load(transformers.AutoModel, folder, dtype=torch.float32)
        self.size = int(self.model.config.hidden_size)
        self.limit = max_length(self.model.config, self.tokenizer)
        self._unknown = self.tokenizer.unk_token_id or 0
        self._before, self._after = self._around()
        self._whole: torch.nn.Embedding | None = None
        self._place: torch.Tensor | None = None

    def prepare(self, tokens: Sequence[str]) -> Pieces:
        """Cut a sentence into sub-words, and into rows where it is longer than the model takes."""
        ids, owners = by_word(self.tokenizer, tokens)
        inner = [(i, owner) for i, owner in zip(ids, owners, strict=True) if owner >= 0]
        if len({owner for _, owner in inner}) < len(tokens):
            inner = self._with_unknown(inner, len(tokens))
        before, after = self._before, self._after
        most = self.limit - len(before) - len(after)
        rows, whose, start = [], [], 0
        while start < len(inner):
            end = min(start + most, len(inner))
            # A word goes whole into one row where it fits into one at all.
            while start < end < len(inner) and inner[end][1] == inner[end - 1][1] and inner[end][1] != inner[start][1]:
                end -= 1
            part = inner[start:end]
            rows.append([*before, *(i for i, _ in part), *after])
            whose.append([*(-1 for _ in before), *(owner for _, owner in part), *(-1 for _ in after)])
            start = end
        return Pieces(rows, whose)

    def _with_unknown(self, inner: list[tuple[int, int]], words: int) -> list[tuple[int, int]]:
        """Words that the tokenizer makes nothing of, such as zero-width characters, become one unknown sub-word."""
        there = {owner for _, owner in inner}
        missing = [(self._unknown, word) for word in range(words) if word not in there]
        return sorted([*inner, *missing], key=lambda pair: pair[1])

    def _around(self) -> tuple[list[int], list[int]]:
        """The special ids before and after a sentence."""
        ids, owners = by_word(self.tokenizer, ["a"])
        inner = [i for i, owner in enumerate(owners) if owner >= 0]
        return ids[: inner[0]], ids[inner[-1] + 1 :]

    def lengths(self, prepared: Pieces) -> int:
        """Sub-words of a sentence, by which it is put with others."""
        return max(map(len, prepared.rows))

    def forward(self, batch: Sequence[Pieces]) -> torch.Tensor:
        """Vectors of words: (sentences, words, size), zeros where a sentence is shorter."""
        rows = [row for pieces in batch for row in pieces.rows]
        ids, mask = padded(rows, max(map(len, rows)), self._pad())
        if self._place is not None:
            ids = self._place[ids]
        device = self.model.device
        states = self.model(input_ids=ids.to(device), attention_mask=mask.to(device))[0]
        words = max(max(map(max, pieces.owners)) for pieces in batch) + 1
        return self._first(states, batch, words) if self.pool == "first" else self._max(states, batch, words)

    def _first(self, states: torch.Tensor, batch: Sequence[Pieces], words: int) -> torch.Tensor:
        width = states.shape[1]
        # One more place than there are sub-words: zeros, for words that a sentence does not have.
        nowhere = states.shape[0] * width
        index = [nowhere] * (len(batch) * words)
        for word, piece in _places(batch, words, width):
            index[word] = min(index[word], piece)
        flat = torch.cat([states.flatten(0, 1), states.new_zeros(1, states.shape[2])])
        return flat[torch.tensor(index, device=states.device).view(len(batch), words)]

    def _max(self, states: torch.Tensor, batch: Sequence[Pieces], words: int) -> torch.Tensor:
        target, source = zip(*_places(batch, words, states.shape[1]), strict=True)
        taken = states.flatten(0, 1)[torch.tensor(source, device=states.device)]
        place = torch.tensor(target, device=states.device)[:, None].expand_as(taken)
        empty = states.new_zeros(len(batch) * words, states.shape[2])
        return empty.scatter_reduce(0, place, taken, "amax", include_self=False).view(len(batch), words, -1)

    def _pad(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    def shrink(self, prepared: Iterable[Pieces]) -> None:
        """Keep the embeddings of these sentences' sub-words alone."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:
            return
        if type(table) is not torch.nn.Embedding:
            return
        # Some models tell positions by where the padding id is, so that one and those before it keep their number.
        ids = {i for pieces in prepared for row in pieces.rows for i in row} | set(range(self._pad() + 1))
        kept = torch.tensor(sorted(ids))
        rows = table.weight.detach()[kept.to(table.weight.device)].clone()
        # Given its rows it draws none, so what is random afterwards is the same as with the whole table.
        small = torch.nn.Embedding(
            len(kept), table.embedding_dim, padding_idx=table.padding_idx, _weight=rows, _freeze=False
        )
        self._place = torch.full((table.num_embeddings,), -1)
        self._place[kept] = torch.arange(len(kept))
        self._whole = table
        self.model.set_input_embeddings(small)

    def unshrink(self) -> None:
        """Put the embeddings back among those that were left out."""
        if self._whole is None or self._place is None:
            return
        small = self.model.get_input_embeddings()
        kept = torch.nonzero(self._place >= 0)[:, 0]
        with torch.no_grad():
            self._whole.weight[kept.to(self._whole.weight.device)] = small.weight.to(self._whole.weight.device)
        self.model.set_input_embeddings(self._whole.to(small.weight.device))
        self._whole = self._place = None

    def pretrained(self) -> Iterable[torch.nn.Parameter]:
        """What learns at the lower rate."""
        parameters: Iterable[torch.nn.Parameter] = self.model.parameters()
        return parameters

    def save(self, folder: Path) -> None:
        """Write the encoder as transformers does, so that any encoder backend reads it."""
        with quiet():
            self.model.save_pretrained(folder / "encoder")
            self.tokenizer.save_pretrained(folder / "encoder")


def _places(batch: Sequence[Pieces], words: int, width: int) -> Iterator[tuple[int, int]]:
    """For each sub-word of a word, in order: the number of its word and its own, sentences and rows laid end to end."""
    row = 0
    for i, pieces in enumerate(batch):
        for owners in pieces.owners:
            for at, owner in enumerate(owners):
                if owner >= 0:
                    yield i * words + owner, row * width + at
            row += 1


class StaticBody(torch.nn.Module):
    """Static word vectors, left as they are, and a convolution over the characters (Ma and Hovy 2016).

    Args:
        vectors: word vectors, or what `entaug.backends.resolve.resolve` makes them from.
        alphabet: the characters it knows.
        width: of the vector of a character.
        filters: how many features the characters of a word give.
    """

    def __init__(
        self, vectors: WordVectors | str, alphabet: Sequence[str], *, width: int = 30, filters: int = 50
    ) -> None:
        super().__init__()
        self.vectors: WordVectors = resolve("word_vectors", vectors)
        self.name = self.vectors.name
        self.alphabet = list(alphabet)
        self._number = {character: i + 2 for i, character in enumerate(self.alphabet)}
        self.characters = torch.nn.Embedding(len(self.alphabet) + 2, width, padding_idx=0)
        self.convolution = torch.nn.Conv1d(width, filters, 3, padding=1)
        # A word is also told by whether it has a vector, and by its casing, which most vectors do not know.
        self.size = self.vectors.size + filters + 4

    def prepare(self, tokens: Sequence[str]) -> tuple[torch.Tensor, list[list[int]]]:
        """The fixed features of the words, and the numbers of their characters (the first and last 15 of long ones)."""
        found = self.vectors.vectors(tokens)
        shape = [
            [bool(v.any()), t.isupper(), t[:1].isupper(), any(map(str.isdigit, t))]
            for t, v in zip(tokens, found, strict=True)
        ]
        fixed = torch.from_numpy(np.concatenate([found, np.array(shape, np.float32)], axis=1))
        short = [token if len(token) <= 30 else token[:15] + token[-15:] for token in tokens]
        return fixed, [[self._number.get(character, 1) for character in token] for token in short]

    def lengths(self, prepared: tuple[torch.Tensor, list[list[int]]]) -> int:
        """Words of a sentence."""
        return len(prepared[1])

    def forward(self, batch: Sequence[tuple[torch.Tensor, list[list[int]]]]) -> torch.Tensor:
        """Vectors of words: (sentences, words, size), zeros where a sentence is shorter."""
        device = self.characters.weight.device
        spelled = [word for _, words in batch for word in words]
        # One width for all words, so that a word's features do not depend on the others of its batch.
        numbers = torch.zeros((len(spelled), 30), dtype=torch.long)
        for i, word in enumerate(spelled):
            numbers[i, : len(word)] = torch.tensor(word)
        numbers = numbers.to(device)
        features = self.convolution(self.characters(numbers).transpose(1, 2))
        features = features.masked_fill((numbers == 0)[:, None], float("-inf")).amax(2)
        fixed = torch.cat([f for f, _ in batch]).to(device)
        whole = torch.cat([fixed, features.float()], dim=1)
        sentences = torch.split(whole, [len(words) for _, words in batch])
        return torch.nn.utils.rnn.pad_sequence(list(sentences), batch_first=True)

    def shrink(self, prepared: Iterable[Any]) -> None:
        """Nothing to do: the word vectors do not learn."""

    def unshrink(self) -> None:
        """Nothing to do."""

    def pretrained(self) -> Iterable[torch.nn.Parameter]:
        """Nothing here was trained before."""
        return ()

    def save(self, folder: Path) -> None:
        """Nothing to write besides the weights: the word vectors are named in the configuration."""


def encoder_folder(encoder: str) -> Path:
    """The folder of an encoder: an alias of the starter set, a folder, or a name on the hub."""
    _, asset = BACKENDS["encoder"].aliases.get(encoder, ("", None))
    return models.path(asset) if asset else find(encoder)
