"""Heads for flat mentions: they turn word vectors into IOB2 tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torchcrf import CRF

from entaug import tags
from entaug.backends.transformers.training import IGNORED
from entaug.data import Mention, Sentence

__all__ = ["CRFHead", "LinearHead", "run_lstm"]


class TagHead(torch.nn.Module):
    """Base of heads that predict IOB2 tags.

    Args:
        labels: labels of mentions.
        overlap: which of overlapping mentions to learn; see `entaug.tags.flatten`.
    """

    def __init__(self, labels: Sequence[str], overlap: str = "error") -> None:
        super().__init__()
        self.tags = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
        self.overlap = overlap
        self._tag_ids = {tag: i for i, tag in enumerate(self.tags)}

    def targets(self, sentence: Sentence) -> torch.Tensor:
        """The tag ids of a sentence.

        Args:
            sentence: a sentence with mentions.

        Raises:
            LossError: the mentions cannot be written as tags and `overlap` is ``"error"``.
        """
        return torch.tensor([self._tag_ids[tag] for tag in sentence.iob(overlap=self.overlap)], dtype=torch.long)

    def mentions(self, tag_ids: Sequence[int]) -> tuple[Mention, ...]:
        """The mentions of predicted tags; a stray I- tag begins a mention, as in conlleval.

        Args:
            tag_ids: one id per word.
        """
        return tags.decode([self.tags[i] for i in tag_ids], repairs=Counter())


class LinearHead(TagHead):
    """A linear layer that classifies each word independently.

    Args:
        size: size of the word vectors.
        labels: labels of mentions.
        dropout: dropout probability of the word vectors.
        overlap: see `TagHead`.
    """

    def __init__(self, size: int, labels: Sequence[str], *, dropout: float = 0.1, overlap: str = "error") -> None:
        super().__init__(labels, overlap)
        self.dropout = torch.nn.Dropout(dropout)
        self.linear = torch.nn.Linear(size, len(self.tags))

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """The mean cross-entropy over the words of a batch.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
            targets: result of `targets` for each sentence.
        """
        del lengths
        padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=IGNORED)
        scores = self.linear(self.dropout(vectors)).float()
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), padded.flatten().to(scores.device))

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The predicted mentions of each sentence.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
        """
        best = self.linear(vectors).argmax(-1).tolist()
        return [self.mentions(row[:n]) for row, n in zip(best, lengths, strict=True)]

    def log_probs(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> list[float]:
        """The log-probability of the tags of each sentence.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
            targets: result of `targets` for each sentence.
        """
        log_probs = self.linear(vectors).float().log_softmax(-1)
        return [
            float(row[:n].gather(1, tag_ids.to(row.device)[:, None]).sum())
            for row, n, tag_ids in zip(log_probs, lengths, targets, strict=True)
        ]


class CRFHead(TagHead):
    """A bidirectional LSTM and a linear-chain conditional random field (Lample et al. 2016).

    Args:
        size: size of the word vectors.
        labels: labels of mentions.
        hidden: hidden size of the LSTM in each direction.
        dropout: dropout probability before and after the LSTM.
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
        # Transitions that IOB2 does not allow start at a very low score; they never occur, so they stay there.
        with torch.no_grad():
            for new, after in enumerate(self.tags):
                if after[0] == "I":
                    self.crf.start_transitions[new] = -100.0
                    for old, before in enumerate(self.tags):
                        if before[2:] != after[2:]:
                            self.crf.transitions[old, new] = -100.0

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """The mean negative log-likelihood of the tags of a sentence; see `LinearHead.loss`.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
            targets: result of `targets` for each sentence.
        """
        return -self._log_likelihood(vectors, lengths, targets, "mean")

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of the best path of each sentence; see `LinearHead.decode`.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            return [self.mentions(path) for path in self.crf.decode(scores, mask=mask)]

    def log_probs(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> list[float]:
        """The log-probability of the tags of each sentence; see `LinearHead.log_probs`.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
            targets: result of `targets` for each sentence.
        """
        log_probs: list[float] = self._log_likelihood(vectors, lengths, targets, "none").tolist()
        return log_probs

    def _log_likelihood(
        self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor], reduction: str
    ) -> torch.Tensor:
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True).to(scores.device)
            likelihood: torch.Tensor = self.crf(scores, padded, mask=mask, reduction=reduction)
        return likelihood

    def _scores(self, vectors: torch.Tensor, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of tags (sentences, words, tags), and the mask of words (sentences, words)."""
        scores = self.linear(self.dropout(run_lstm(self.lstm, self.dropout(vectors), lengths)))
        mask = torch.arange(vectors.shape[1])[None] < torch.tensor(lengths)[:, None]
        return scores, mask.to(scores.device)


def run_lstm(lstm: torch.nn.LSTM, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Run a bidirectional LSTM over padded sequences, without an influence of the padding.

    Args:
        lstm: the LSTM.
        vectors: word vectors (sentences, words, size).
        lengths: number of words of each sentence.

    Returns:
        The states (sentences, words, 2 * hidden).
    """
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_padded_sequence(vectors, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    return rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]
