"""Taggers of flat mentions: they give each word an IOB2 tag, by a linear layer or a conditional random field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torchcrf import CRF

from entaug.backends.resolve import resolve
from entaug.backends.soft_labels import TagProbabilities, best_valid_tags, tags_of
from entaug.backends.transformers.training import IGNORED
from entaug.config.params import NonNegativeInt
from entaug.core import tags
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import Overlap
from entaug.errors import InputError
from entaug.taggers.encoders import Characters, StaticEncoder
from entaug.taggers.neural import Dropout, EncoderTagger, ModelName, NeuralTagger, word_mask

_pad = torch.nn.utils.rnn.pad_sequence


class TagTargets(NamedTuple):
    """Training targets of a sentence: tag ids (words,) or probabilities (words, tags), and weights of words."""

    values: torch.Tensor
    weights: torch.Tensor | None = None

    @property
    def is_hard(self) -> bool:
        """Whether the targets are tags, each of weight 1."""
        return self.values.ndim == 1 and self.weights is None


class TagDecoder(torch.nn.Module):
    """Base of decoders that predict IOB2 tags."""

    only_flat = True
    """Whether nested and discontinuous mentions cannot be expressed."""

    def __init__(self, labels: Sequence[str], options: LinearTagger | _CRFTagger) -> None:
        super().__init__()
        self.tags = tags_of(labels)
        self.overlap = options.overlap
        self.dropout = torch.nn.Dropout(options.dropout)
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

    def soft_losses(self, log_probs: torch.Tensor, targets: list[TagTargets]) -> tuple[torch.Tensor, torch.Tensor]:
        """The cross-entropy of the targets, and the weight, of each word (sentences, words)."""
        num_tags = len(self.tags)
        one_hot = torch.nn.functional.one_hot
        rows = [t.values if t.values.ndim == 2 else one_hot(t.values, num_tags).float() for t in targets]
        weights = _pad([torch.ones(len(t.values)) if t.weights is None else t.weights for t in targets], True)
        weights = weights.to(log_probs.device)
        return -(_pad(rows, True).to(log_probs.device) * log_probs).sum(-1) * weights, weights


class LinearDecoder(TagDecoder):
    """A linear layer that classifies each word independently."""

    def __init__(self, size: int, labels: Sequence[str], options: LinearTagger) -> None:
        super().__init__(labels, options)
        self.linear = torch.nn.Linear(size, len(self.tags))

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[TagTargets]) -> torch.Tensor:
        """The mean cross-entropy over the words of a batch, each with its weight."""
        scores = self.linear(self.dropout(vectors)).float()
        if all(target.is_hard for target in targets):
            padded = _pad([target.values for target in targets], True, padding_value=IGNORED).to(scores.device)
            return torch.nn.functional.cross_entropy(scores.flatten(0, 1), padded.flatten())
        losses, weights = self.soft_losses(scores.log_softmax(-1), targets)
        return losses.sum() / weights.sum().clamp(min=1e-6)

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The predicted mentions of each sentence: those of the likeliest valid sequence of tags."""
        log_probs = self.log_marginals(vectors, lengths).cpu().numpy()
        tags = tuple(self.tags)
        return [self.mentions(best_valid_tags(row[:n], tags)) for row, n in zip(log_probs, lengths, strict=True)]

    def log_marginals(self, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """The log-probability of each tag of each word."""
        log_probs: torch.Tensor = self.linear(vectors).float().log_softmax(-1)
        return log_probs

    def log_probs(self, vectors: torch.Tensor, batch: list[Sentence]) -> list[tuple[float, int]]:
        """The log-probability of the tags of each sentence, and their number."""
        rows = zip(self.log_marginals(vectors, []), map(self.tag_ids, batch), strict=True)
        return [(float(row[: len(ids)].gather(1, ids.to(row.device)[:, None]).sum()), len(ids)) for row, ids in rows]


class CRFDecoder(TagDecoder):
    """A bidirectional LSTM, or none, and a linear-chain conditional random field (Lample et al. 2016)."""

    def __init__(self, size: int, labels: Sequence[str], options: _CRFTagger) -> None:
        super().__init__(labels, options)
        hidden = options.hidden
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
        total = vectors.new_zeros((), dtype=torch.float32)
        for is_hard in (True, False):
            chosen = [i for i, target in enumerate(targets) if target.is_hard is is_hard]
            if not chosen:
                continue
            some, own = [lengths[i] for i in chosen], [targets[i] for i in chosen]
            part = vectors[chosen][:, : max(some)]
            if is_hard:
                total = total - self._log_likelihood(part, some, [target.values for target in own]).sum()
            else:
                total = total + self.soft_losses(self.log_marginals(part, some), own)[0].sum()
        return total / len(targets)

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of the best path of each sentence; see `LinearDecoder.decode`."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            return [self.mentions(path) for path in self.crf.decode(scores, mask=mask)]

    def log_probs(self, vectors: torch.Tensor, batch: list[Sentence]) -> list[tuple[float, int]]:
        """The log-probability of the tags of each sentence, and their number."""
        lengths = list(map(len, batch))
        log_probs = self._log_likelihood(vectors, lengths, [self.tag_ids(sentence) for sentence in batch])
        return list(zip(log_probs.tolist(), lengths, strict=True))

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

    def _log_likelihood(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """The log-likelihood of the tags of each sentence."""
        with torch.autocast(vectors.device.type, enabled=False):
            scores, mask = self._scores(vectors.float(), lengths)
            likelihood: torch.Tensor = self.crf(scores, _pad(targets, True).to(scores.device), mask, reduction="none")
        return likelihood

    def _scores(self, vectors: torch.Tensor, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of tags (sentences, words, tags), and the mask of words (sentences, words)."""
        words = self.dropout(vectors)
        if self.lstm is not None:
            words = self.dropout(run_lstm(self.lstm, words, lengths))
        return self.linear(words), word_mask(lengths, words)


def run_lstm(lstm: torch.nn.LSTM, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Run a bidirectional LSTM over padded sequences, without an influence of the padding."""
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_padded_sequence(vectors, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    return rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])[0]


@dataclass(kw_only=True, eq=False)
class LinearTagger(EncoderTagger):
    """Fine-tuned encoder with a linear layer over the first sub-word of each word (Devlin et al. 2019).

    Args:
        dropout: dropout probability of the word vectors.
        overlap: which of overlapping or discontinuous mentions to learn: ``"error"`` raises, see
            `entaug.core.tags.flatten`.
    """

    name = "linear"
    decoder_class = LinearDecoder

    dropout: Dropout = 0.1
    overlap: Overlap = "error"


@dataclass(kw_only=True, eq=False)
class _CRFTagger(NeuralTagger):
    """Base of taggers with a bidirectional LSTM and a conditional random field.

    Args:
        hidden: hidden size of the LSTM in each direction; 0 for no LSTM, a CRF over the word vectors alone.
        dropout: dropout probability before and after the LSTM.
        overlap: which of overlapping or discontinuous mentions to learn: ``"error"`` raises, see
            `entaug.core.tags.flatten`.
    """

    decoder_class = CRFDecoder

    hidden: NonNegativeInt = 200
    dropout: Dropout = 0.3
    overlap: Overlap = "error"


@dataclass(kw_only=True, eq=False)
class BiLSTMCRFTagger(_CRFTagger, EncoderTagger):
    """Fine-tuned encoder with a bidirectional LSTM and a CRF: the tagger of CASSI (there with mBERT)."""

    name = "bilstm-crf"


@dataclass(kw_only=True, eq=False)
class StaticBiLSTMCRFTagger(_CRFTagger):
    """Static word vectors, characters, LSTM and CRF: the tagger of the backtranslation paper (there with GloVe).

    Args:
        vectors: an alias of the starter set, or a folder or file of word vectors.
        characters: how the characters of a word are read: ``"convolution"`` (Ma and Hovy 2016), or ``"lstm"`` (Lample
            et al. 2016, whose tagger the paper uses; there with ``hidden=100, dropout=0.5``).
    """

    name = "static-bilstm-crf"

    vectors: ModelName = "glove"
    characters: Characters = "convolution"

    def check_requirements(self) -> None:
        super().check_requirements()
        resolve("word_vectors", self.vectors)

    def build_encoder(self, sentences: Sequence[Sentence]) -> StaticEncoder:
        characters = {character for sentence in sentences for token in sentence.tokens for character in token}
        return StaticEncoder(self.vectors, sorted(characters), self.characters)

    def restore_encoder(self, folder: Path, config: dict[str, Any]) -> StaticEncoder:
        encoder = StaticEncoder(self.vectors, config["alphabet"], self.characters)
        if encoder.name != config["encoder"]:
            raise InputError(
                f"was trained with the word vectors {config['encoder']}, but {self.vectors} is {encoder.name}",
                path=str(folder),
                remedy="train the tagger again",
            )
        return encoder
