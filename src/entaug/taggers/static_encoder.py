"""The body of taggers on static word vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from entaug.backends.protocols import WordVectors
from entaug.backends.resolve import resolve
from entaug.taggers.encoders import LEARNING_RATE

__all__ = ["StaticEncoder"]

_MAX_CHARACTERS = 30  # of a longer word the first and the last half of as many


class StaticInput(NamedTuple):
    """Words of a sentence."""

    fixed: torch.Tensor
    characters: list[list[int]]
    words: list[int]


class StaticEncoder(torch.nn.Module):
    """Static word vectors, trained or not, with a convolution over characters (Ma and Hovy 2016)."""

    # A word also has features for whether it has a vector, and for its casing, which most vectors ignore.

    def __init__(
        self,
        vectors: WordVectors | str,
        alphabet: Sequence[str],
        *,
        vocabulary: Sequence[str] = (),
        width: int = 30,
        filters: int = 50,
    ) -> None:
        super().__init__()
        self.vectors: WordVectors = resolve("word_vectors", vectors)
        self.name = self.vectors.name
        self.alphabet = list(alphabet)
        self._character_ids = {character: i + 2 for i, character in enumerate(self.alphabet)}  # 0 pads, 1 is unknown
        self.characters = torch.nn.Embedding(len(self.alphabet) + 2, width, padding_idx=0)
        self.convolution = torch.nn.Conv1d(width, filters, 3, padding=1)
        self.size = self.vectors.size + filters + 4
        self.vocabulary = list(vocabulary)
        self._word_ids = {word: i for i, word in enumerate(self.vocabulary)}
        self.words: torch.nn.Embedding | None = None
        if self.vocabulary:
            rows = torch.from_numpy(np.array(self.vectors.vectors(self.vocabulary), np.float32))
            self.words = torch.nn.Embedding(rows.shape[0], rows.shape[1], _weight=rows)

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
        characters = [[self._character_ids.get(character, 1) for character in token] for token in short]
        return StaticInput(fixed, characters, [self._word_ids.get(token.lower(), -1) for token in tokens])

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
        features = self.convolution(self.characters(ids).transpose(1, 2))
        features = features.masked_fill((ids == 0)[:, None], float("-inf")).amax(2)
        fixed = torch.cat([sentence.fixed for sentence in batch]).to(device)
        if self.words is not None:
            rows = torch.tensor([i for sentence in batch for i in sentence.words], device=device)
            trained = self.words(rows.clamp(min=0))
            size = trained.shape[1]
            chosen = torch.where((rows >= 0)[:, None], trained.float(), fixed[:, :size])
            fixed = torch.cat([chosen, fixed[:, size:]], dim=1)
        vectors = torch.cat([fixed, features.float()], dim=1)
        sentences = torch.split(vectors, [len(sentence.characters) for sentence in batch])
        return torch.nn.utils.rnn.pad_sequence(list(sentences), batch_first=True)

    def shrink(self, prepared: Iterable[StaticInput]) -> None:
        """Do nothing: the table has the words of the training sentences only."""

    def unshrink(self) -> None:
        """Do nothing."""

    default_learning_rate = LEARNING_RATE
    """That of word vectors that are trained."""

    def pretrained(self) -> Iterable[torch.nn.Parameter]:
        """The pretrained parameters: the word vectors, if they are trained."""
        return () if self.words is None else self.words.parameters()

    def save(self, folder: Path) -> None:
        """Do nothing: the configuration names the word vectors, and trained ones are among the weights."""
