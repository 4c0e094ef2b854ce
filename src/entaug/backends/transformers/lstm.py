"""A language model of one LSTM layer that is trained from scratch: the model of DAGA (Ding et al. 2020)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.transformers.base import choose_device
from entaug.backends.transformers.training import IGNORED, Row, TrainableModel
from entaug.errors import ParameterError

_PAD, _BEGIN, _END = 0, 1, 2
_NUM_SPECIAL = 3
_LEARNING_RATE = 2e-3
_BATCH = 64  # sequences drawn at a time


class _Network(torch.nn.Module):
    """Embeddings, an LSTM layer, and a linear layer for the logits of the next token."""

    def __init__(self, vocabulary_size: int, embedding: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary_size, embedding, padding_idx=_PAD)
        self.lstm = torch.nn.LSTM(embedding, hidden, batch_first=True)
        self.dropout = torch.nn.Dropout(dropout)
        self.out = torch.nn.Linear(hidden, vocabulary_size)

    def step(self, ids: Any, state: Any = None) -> tuple[Any, Any]:
        """The logits after each token, and the state of the layer."""
        hidden, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.out(self.dropout(hidden)), state

    def forward(self, ids: Any, labels: Any) -> Any:
        """The loss."""
        logits, _ = self.step(ids)
        return torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED)


class LSTMTokenLM(TrainableModel):
    """A `entaug.backends.protocols.TokenLM` of one LSTM layer, by default of the size in the paper."""

    saved = ("vocabulary",)

    def __init__(
        self, embedding: int = 300, hidden: int = 512, dropout: float = 0.5, *, device: str | None = None
    ) -> None:
        super().__init__()
        self.embedding, self.hidden, self.dropout = embedding, hidden, dropout
        self.device, _ = choose_device(device)
        self.name = f"lstm-{embedding}-{hidden}-{dropout}"
        self.vocabulary: list[str] = []
        self._network: Any = None

    @property
    def _origin(self) -> str:
        return self.name

    def fit(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig = TrainingConfig(epochs=40, batch_size=16, patience=3),  # noqa: B008 (immutable)
        *,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        self = copy.copy(self)  # noqa: PLW0642
        self.vocabulary = sorted({token for row in rows for token in row})
        id_of = {token: i for i, token in enumerate(self.vocabulary, start=_NUM_SPECIAL)}
        numbered: list[Row] = []
        for row in rows:
            ids = [id_of[token] for token in row]
            numbered.append(([_BEGIN, *ids], [*ids, _END]))
        self._network = self._new_network(config.seed)
        self._fine_tune(
            self._network,
            lambda _: numbered,
            config,
            learning_rate=config.learning_rate or _LEARNING_RATE,
            dtype=torch.float32,
            checkpoint_dir=checkpoint_dir,
            progress=progress,
        )
        self._use_weights()
        return self

    def _fits(self, row: Row) -> bool:
        return len(row[0]) > 1

    def _loss(self, rows: Sequence[Row]) -> Any:
        columns = zip(*rows, strict=True)
        ids, labels = (
            pad_sequence([torch.tensor(row) for row in column], batch_first=True, padding_value=padding)
            for column, padding in zip(columns, (_PAD, IGNORED), strict=True)
        )
        return self._network(ids.to(self.device), labels.to(self.device))

    def _new_network(self, seed: int = 0) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = _Network(len(self.vocabulary) + _NUM_SPECIAL, self.embedding, self.hidden, self.dropout)
        return network.to(self.device)

    def _use_weights(self) -> None:
        network = self._new_network()
        network.load_state_dict(self._weights)
        # In double precision the other sequences of a batch make no difference to which token is drawn.
        self._network = network.double().eval()

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        if self._network is None:
            raise ParameterError("the language model is not trained", remedy="fit it")
        return [
            sequence
            for start in range(0, len(seeds), _BATCH)
            for sequence in self._draw(seeds[start : start + _BATCH], max_new_tokens, temperature)
        ]

    def _draw(self, seeds: Sequence[int], max_new_tokens: int, temperature: float) -> list[tuple[str, ...] | None]:
        streams = [np.random.Generator(np.random.Philox(seed)) for seed in seeds]
        rows: list[list[int]] = [[] for _ in seeds]
        has_ended = [False] * len(seeds)
        ids = torch.full((len(seeds), 1), _BEGIN, device=self.device)
        state = None
        with torch.inference_mode():
            for _ in range(max_new_tokens + 1):
                logits, state = self._network.step(ids, state)
                scores = logits[:, 0].cpu().numpy() / temperature
                scores[:, [_PAD, _BEGIN]] = -np.inf
                # The largest of log-probabilities with independent Gumbel noise added is an exact draw.
                drawn = [int((row + s.gumbel(size=len(row))).argmax()) for row, s in zip(scores, streams, strict=True)]
                for i, token in enumerate(drawn):
                    if not has_ended[i] and token != _END:
                        rows[i].append(token)
                    has_ended[i] = has_ended[i] or token == _END
                if all(has_ended):
                    break
                ids = torch.tensor(drawn, device=self.device)[:, None]
        return [
            tuple(self.vocabulary[id_ - _NUM_SPECIAL] for id_ in row) if ended and len(row) <= max_new_tokens else None
            for row, ended in zip(rows, has_ended, strict=True)
        ]
