"""A language model of one LSTM layer that learns from nothing: what DAGA writes with (Ding et al. 2020)."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.transformers.base import choose, torch
from entaug.backends.transformers.training import IGNORED, Row, fine_tune, read_weights, save_weights
from entaug.errors import InputError, ParameterError

__all__ = ["LstmLM"]

_PAD, _BEGIN, _END = 0, 1, 2
_SPECIAL = 3
_RATE = 2e-3
_ROWS = 64  # drawn at a time
_CONFIG, _LEARNED = "lstm.json", "learned.safetensors"


class _Network(torch.nn.Module):
    """Embeddings, an LSTM layer, and a layer that gives the logits of the next token."""

    def __init__(self, words: int, embedding: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, embedding, padding_idx=_PAD)
        self.lstm = torch.nn.LSTM(embedding, hidden, batch_first=True)
        self.dropout = torch.nn.Dropout(dropout)
        self.out = torch.nn.Linear(hidden, words)

    def step(self, ids: Any, state: Any = None) -> tuple[Any, Any]:
        """Logits behind each token, and the state of the layer."""
        seen, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.out(self.dropout(seen)), state

    def forward(self, ids: Any, labels: Any) -> Any:
        """What `entaug.backends.transformers.training.fine_tune` asks of a model."""
        logits, _ = self.step(ids)
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED)
        return SimpleNamespace(loss=loss)


class LstmLM:
    """A `entaug.backends.protocols.TokenLM` of one LSTM layer, of the size of the paper.

    Args:
        embedding: numbers a token.
        hidden: numbers of the layer's state.
        dropout: before and behind the layer.
        device: see `entaug.backends.transformers.base.choose`.
    """

    def __init__(
        self, embedding: int = 300, hidden: int = 512, dropout: float = 0.5, *, device: str | None = None
    ) -> None:
        self.embedding, self.hidden, self.dropout = embedding, hidden, dropout
        self.device, _ = choose(device)
        self.name = f"lstm-{embedding}-{hidden}-{dropout}"
        self.losses: list[tuple[float, float | None]] = []
        """Of each epoch: the mean loss of a token, and the same on the sequences held out."""
        self.kept: int | None = None
        """The epoch whose weights were kept, from 1."""
        self._words: list[str] = []
        self._learned: dict[str, Any] = {}
        self._network: Any = None

    def fit(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig = TrainingConfig(epochs=40, batch_size=16, patience=3),  # noqa: B008 (immutable)
        *,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        """See `entaug.backends.protocols.TokenLM.fit`.

        Raises:
            InputError: there is nothing to learn from.
        """
        made = copy.copy(self)
        made.learn(rows, config, folder, progress)
        return made

    def learn(
        self,
        rows: Sequence[Sequence[str]],
        config: TrainingConfig,
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> None:
        """What `fit` does, to this very one."""
        self._words = sorted({token for row in rows for token in row})
        number = {word: i for i, word in enumerate(self._words, start=_SPECIAL)}
        data: list[Row] = []
        for row in rows:
            ids = [number[token] for token in row]
            data.append(([_BEGIN, *ids], [*ids, _END]))
        network = self._new(config.seed)

        def batch(some: Sequence[Row]) -> dict[str, Any]:
            width = max(len(ids) for ids, _ in some)
            ids = torch.full((len(some), width), _PAD)
            labels = torch.full((len(some), width), IGNORED)
            for i, (row, said) in enumerate(some):
                ids[i, : len(row)] = torch.tensor(row)
                labels[i, : len(said)] = torch.tensor(said)
            return {"ids": ids.to(self.device), "labels": labels.to(self.device)}

        result = fine_tune(
            network,
            lambda _: data,
            fits=lambda row: len(row[0]) > 1,
            collate=batch,
            config=config,
            learning_rate=config.learning_rate or _RATE,
            dtype=torch.float32,
            checkpoint_dir=folder,
            progress=progress,
        )
        self._learned, self.losses, self.kept = result.weights, result.losses, result.best_epoch
        self._take_up()

    def _new(self, seed: int = 0) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = _Network(len(self._words) + _SPECIAL, self.embedding, self.hidden, self.dropout)
        return network.to(self.device)

    def _take_up(self) -> None:
        network = self._new()
        network.load_state_dict(self._learned)
        # In double precision what else is drawn beside a row makes no difference to which token is.
        self._network = network.double().eval()

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        """See `entaug.backends.protocols.TokenLM.sample`.

        Raises:
            ParameterError: it has learned nothing.
        """
        if self._network is None:
            raise ParameterError("this language model has learned nothing", remedy="fit it")
        return [
            row
            for start in range(0, len(seeds), _ROWS)
            for row in self._drawn(seeds[start : start + _ROWS], max_new_tokens, temperature)
        ]

    def _drawn(self, seeds: Sequence[int], max_new_tokens: int, temperature: float) -> list[tuple[str, ...] | None]:
        streams = [np.random.Generator(np.random.Philox(seed)) for seed in seeds]
        rows: list[list[int]] = [[] for _ in seeds]
        ended = [False] * len(seeds)
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
                    if not ended[i] and token != _END:
                        rows[i].append(token)
                    ended[i] = ended[i] or token == _END
                if all(ended):
                    break
                ids = torch.tensor(drawn, device=self.device)[:, None]
        return [
            tuple(self._words[id_ - _SPECIAL] for id_ in row) if end and len(row) <= max_new_tokens else None
            for row, end in zip(rows, ended, strict=True)
        ]

    # ----------------------------------------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path) -> None:
        """See `entaug.backends.protocols.TokenLM.save`.

        Raises:
            OutputError: the folder holds something already, or cannot be written.
            ParameterError: it has learned nothing.
        """
        folder = Path(folder)
        if not self._learned:
            raise ParameterError("this language model has learned nothing", remedy="fit it")
        config = {"name": self.name, "words": self._words, "losses": self.losses, "kept": self.kept}
        save_weights(folder, _LEARNED, self._learned, _CONFIG, config)

    def restore(self, folder: str | Path) -> Self:
        """See `entaug.backends.protocols.TokenLM.restore`.

        Raises:
            InputError: there is no language model, it is damaged, or of another size.
        """
        made = copy.copy(self)
        made.read(Path(folder))
        return made

    def read(self, folder: Path) -> None:
        """What `restore` does, to this very one."""
        remedy = "name a folder that it was saved to, or let it learn again"
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            name, self._words, self.kept = str(config["name"]), list(map(str, config["words"])), int(config["kept"])
            self.losses = [(mean, outside) for mean, outside in config["losses"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"holds no language model ({error})", path=str(folder), remedy=remedy) from None
        if name != self.name:
            raise InputError(f"is {name}, and this is {self.name}", path=str(folder), remedy=remedy)
        self._learned = read_weights(folder / _LEARNED)
        try:
            self._take_up()
        except RuntimeError:
            raise InputError("what was learned does not fit the model", path=str(folder), remedy=remedy) from None
