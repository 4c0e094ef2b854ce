"""Heads that find flat mentions: they turn word vectors into IOB2 tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torchcrf import CRF

from entaug import tags
from entaug.data import Mention, Sentence

__all__ = ["CRFHead", "LinearHead", "run_lstm"]

IGNORED = -100


class TagHead(torch.nn.Module):
    """What heads over IOB2 tags share.

    Args:
        labels: of mentions.
        overlap: which mentions to learn where they overlap; see `entaug.tags.flatten`.
    """

    def __init__(self, labels: Sequence[str], overlap: str = "error") -> None:
        super().__init__()
        self.tags = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
        self.overlap = overlap
        self._number = {tag: i for i, tag in enumerate(self.tags)}

    def targets(self, sentence: Sentence) -> torch.Tensor:
        """The numbers of a sentence's tags.

        Raises:
            LossError: mentions that tags cannot carry, where `overlap` is ``"error"``.
        """
        return torch.tensor([self._number[tag] for tag in sentence.iob(overlap=self.overlap)], dtype=torch.long)

    def mentions(self, numbers: Sequence[int]) -> tuple[Mention, ...]:
        """The mentions that predicted tags stand for; a stray I- opens a mention, as conlleval reads it."""
        return tags.decode([self.tags[i] for i in numbers], repairs=Counter())


class LinearHead(TagHead):
    """One linear layer, each tag by itself.

    Args:
        size: of the word vectors.
        labels: of mentions.
        dropout: on the word vectors.
        overlap: see `TagHead`.
    """

    def __init__(self, size: int, labels: Sequence[str], *, dropout: float = 0.1, overlap: str = "error") -> None:
        super().__init__(labels, overlap)
        self.dropout = torch.nn.Dropout(dropout)
        self.linear = torch.nn.Linear(size, len(self.tags))

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """Mean cross-entropy over the words of the batch.

        Args:
            vectors: (sentences, words, size).
            lengths: words of each sentence.
            targets: of each sentence.
        """
        del lengths
        padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=IGNORED)
        scores = self.linear(self.dropout(vectors)).float()
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), padded.flatten().to(scores.device))

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of each sentence."""
        best = self.linear(vectors).argmax(-1).tolist()
        return [self.mentions(row[:n]) for row, n in zip(best, lengths, strict=True)]

    def log_probs(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> list[float]:
        """For each sentence the log-probability of its tags; see `loss`."""
        all_ = self.linear(vectors).float().log_softmax(-1)
        return [
            float(row[:n].gather(1, wanted.to(row.device)[:, None]).sum())
            for row, n, wanted in zip(all_, lengths, targets, strict=True)
        ]


class CRFHead(TagHead):
    """A bidirectional LSTM and a linear-chain conditional random field (Lample et al. 2016).

    Args:
        size: of the word vectors.
        labels: of mentions.
        hidden: of the LSTM, each direction.
        dropout: before and after the LSTM.
        overlap: see `TagHead`.
    """

    def __init__(
        self, size: int, labels: Sequence[str], *, hidden: int = 200, dropout: float = 0.3, overlap: str = "error"
    ) -> None:
        super().__init__(labels, overlap)
        self.dropout = torch.nn.Dropout(dropout)
        self.lstm = torch.nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
        self.linear = torch.nn.Linear(2 * hidden, len(self.tags))
        self.crf = CRF(len(self.tags), batch_first=True)
        # Transitions that the scheme does not allow begin far down, and never being seen they stay there.
        with torch.no_grad():
            for new, after in enumerate(self.tags):
                if after[0] == "I":
                    self.crf.start_transitions[new] = -100.0
                    for old, before in enumerate(self.tags):
                        if before[2:] != after[2:]:
                            self.crf.transitions[old, new] = -100.0

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """Mean negative log-likelihood of a sentence's tags, over the batch; see `LinearHead.loss`."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True).to(scores.device)
            likelihood: torch.Tensor = self.crf(scores, padded, mask=mask, reduction="mean")
        return -likelihood

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of each sentence, from its best path."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            return [self.mentions(path) for path in self.crf.decode(scores, mask=mask)]

    def log_probs(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> list[float]:
        """For each sentence the log-probability of its tags; see `LinearHead.loss`."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True).to(scores.device)
            found: list[float] = self.crf(scores, padded, mask=mask, reduction="none").tolist()
        return found

    def _scores(self, vectors: torch.Tensor, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.linear(self.dropout(run_lstm(self.lstm, self.dropout(vectors), lengths)))
        mask = torch.arange(vectors.shape[1])[None] < torch.tensor(lengths)[:, None]
        return scores, mask.to(scores.device)


def run_lstm(lstm: torch.nn.LSTM, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """A bidirectional LSTM over padded sequences, which the padding does not change."""
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_padded_sequence(vectors, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    return rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]
