"""Heads for flat mentions: they turn word vectors into IOB2 tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torchcrf import CRF

from entaug.backends.transformers.training import IGNORED
from entaug.core import tags
from entaug.core.data import Mention, Sentence
from entaug.core.soft_labels import TagProbabilities, best_valid_tags

__all__ = ["CRFDecoder", "LinearDecoder", "run_lstm"]


class TagTargets(NamedTuple):
    """Training targets of a sentence."""

    values: torch.Tensor
    weights: torch.Tensor | None = None

    @property
    def is_hard(self) -> bool:
        """Whether the targets are tags, each of weight 1."""
        return self.values.ndim == 1 and self.weights is None

    def probabilities(self, num_tags: int) -> torch.Tensor:
        """The targets as probabilities (words, tags)."""
        if self.values.ndim == 2:
            return self.values
        return torch.nn.functional.one_hot(self.values, num_tags).float()

    def word_weights(self) -> torch.Tensor:
        """The weight of each word (words,)."""
        return torch.ones(len(self.values)) if self.weights is None else self.weights


class TagDecoder(torch.nn.Module):
    """Base of heads that predict IOB2 tags."""

    def __init__(self, labels: Sequence[str], overlap: str = "error") -> None:
        super().__init__()
        self.tags = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
        self.overlap = overlap
        self._tag_ids = {tag: i for i, tag in enumerate(self.tags)}

    def tag_ids(self, sentence: Sentence) -> torch.Tensor:
        """The tag ids of a sentence."""
        return torch.tensor([self._tag_ids[tag] for tag in sentence.iob(overlap=self.overlap)], dtype=torch.long)

    def targets(self, sentence: Sentence) -> TagTargets:
        """Targets of a sentence: its tag probabilities if it has some, else the tags of its mentions."""
        soft = TagProbabilities.from_sentence(sentence)
        if soft is None:
            return TagTargets(self.tag_ids(sentence))
        weights = None if soft.weights is None else torch.from_numpy(soft.weights)
        return TagTargets(torch.from_numpy(soft.aligned(self.tags)), weights)

    def mentions(self, tag_ids: Sequence[int]) -> tuple[Mention, ...]:
        """The mentions of predicted tags; a stray I- tag begins a mention, as in conlleval."""
        return tags.decode([self.tags[i] for i in tag_ids], repairs=Counter())


class LinearDecoder(TagDecoder):
    """A linear layer that classifies each word independently."""

    def __init__(self, size: int, labels: Sequence[str], *, dropout: float = 0.1, overlap: str = "error") -> None:
        super().__init__(labels, overlap)
        self.dropout = torch.nn.Dropout(dropout)
        self.linear = torch.nn.Linear(size, len(self.tags))

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[TagTargets]) -> torch.Tensor:
        """The mean cross-entropy over the words of a batch, each with its weight."""
        del lengths
        scores = self.linear(self.dropout(vectors)).float()
        if all(target.is_hard for target in targets):
            ids = [target.values for target in targets]
            padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=IGNORED)
            return torch.nn.functional.cross_entropy(scores.flatten(0, 1), padded.flatten().to(scores.device))
        return _soft_loss(scores.log_softmax(-1), targets, len(self.tags))

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The predicted mentions of each sentence: those of the likeliest valid sequence of tags."""
        log_probs = self.log_marginals(vectors, lengths).cpu().numpy()
        tags = tuple(self.tags)
        return [self.mentions(best_valid_tags(row[:n], tags)) for row, n in zip(log_probs, lengths, strict=True)]

    def log_marginals(self, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """The log-probability of each tag of each word."""
        del lengths
        log_probs: torch.Tensor = self.linear(vectors).float().log_softmax(-1)
        return log_probs

    def log_probs(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> list[float]:
        """The log-probability of the tags of each sentence."""
        log_probs = self.linear(vectors).float().log_softmax(-1)
        return [
            float(row[:n].gather(1, tag_ids.to(row.device)[:, None]).sum())
            for row, n, tag_ids in zip(log_probs, lengths, targets, strict=True)
        ]


class CRFDecoder(TagDecoder):
    """A bidirectional LSTM, or none, and a linear-chain conditional random field (Lample et al. 2016)."""

    def __init__(
        self, size: int, labels: Sequence[str], *, hidden: int = 200, dropout: float = 0.3, overlap: str = "error"
    ) -> None:
        super().__init__(labels, overlap)
        self.dropout = torch.nn.Dropout(dropout)
        self.lstm = torch.nn.LSTM(size, hidden, batch_first=True, bidirectional=True) if hidden else None
        self.linear = torch.nn.Linear(2 * hidden or size, len(self.tags))
        self.crf = CRF(len(self.tags), batch_first=True)
        # Transitions that IOB2 does not allow start at a very low score; they never occur, so they stay there.
        with torch.no_grad():
            for new, after in enumerate(self.tags):
                if after[0] == "I":
                    self.crf.start_transitions[new] = -100.0
                    for old, before in enumerate(self.tags):
                        if before[2:] != after[2:]:
                            self.crf.transitions[old, new] = -100.0

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[TagTargets]) -> torch.Tensor:
        """The mean loss of a sentence."""
        # It is the negative log-likelihood of the tags, and for sentences with tag probabilities the cross-entropy with
        # the marginal probabilities of the CRF, summed over the words (posterior distillation, Wang et al. 2020).
        hard = [i for i, target in enumerate(targets) if target.is_hard]
        soft = [i for i, target in enumerate(targets) if not target.is_hard]
        total = vectors.new_zeros((), dtype=torch.float32)
        if hard:
            some = [lengths[i] for i in hard]
            ids = [targets[i].values for i in hard]
            total = total - self._log_likelihood(vectors[hard][:, : max(some)], some, ids, "sum")
        if soft:
            some = [lengths[i] for i in soft]
            log_marginals = self.log_marginals(vectors[soft][:, : max(some)], some)
            total = total + _soft_loss(log_marginals, [targets[i] for i in soft], len(self.tags), mean=False)
        return total / len(targets)

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of the best path of each sentence; see `LinearDecoder.decode`."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            return [self.mentions(path) for path in self.crf.decode(scores, mask=mask)]

    def log_probs(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> list[float]:
        """The log-probability of the tags of each sentence; see `LinearDecoder.log_probs`."""
        log_probs: list[float] = self._log_likelihood(vectors, lengths, targets, "none").tolist()
        return log_probs

    def log_marginals(self, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """The marginal log-probability of each tag of each word, by the forward-backward algorithm."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            transitions = self.crf.transitions
            forward = [self.crf.start_transitions + scores[:, 0]]
            for i in range(1, scores.shape[1]):
                forward.append(torch.logsumexp(forward[-1][:, :, None] + transitions, dim=1) + scores[:, i])
            backward = [self.crf.end_transitions.expand_as(scores[:, 0])]
            for i in range(scores.shape[1] - 1, 0, -1):
                longer = torch.logsumexp(transitions + (scores[:, i] + backward[-1])[:, None], dim=2)
                # Behind the last word of a sentence there is only the end.
                backward.append(torch.where(mask[:, i, None], longer, self.crf.end_transitions))
            both = torch.stack(forward, dim=1) + torch.stack(backward[::-1], dim=1)
            return both.log_softmax(-1)

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
        words = self.dropout(vectors)
        if self.lstm is not None:
            words = self.dropout(run_lstm(self.lstm, words, lengths))
        scores = self.linear(words)
        mask = torch.arange(vectors.shape[1])[None] < torch.tensor(lengths)[:, None]
        return scores, mask.to(scores.device)


def _soft_loss(log_probs: torch.Tensor, targets: list[TagTargets], num_tags: int, mean: bool = True) -> torch.Tensor:
    """The cross-entropy of targets, weighted by word; its mean or sum."""
    pad = torch.nn.utils.rnn.pad_sequence
    expected = pad([target.probabilities(num_tags) for target in targets], batch_first=True).to(log_probs.device)
    weights = pad([target.word_weights() for target in targets], batch_first=True).to(log_probs.device)
    losses = -(expected * log_probs).sum(-1) * weights
    return losses.sum() / weights.sum().clamp(min=1e-6) if mean else losses.sum()


def run_lstm(lstm: torch.nn.LSTM, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Run a bidirectional LSTM over padded sequences, without an influence of the padding."""
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_padded_sequence(vectors, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    return rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]
