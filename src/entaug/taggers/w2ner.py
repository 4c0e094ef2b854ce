"""The tagger W2NER, for mentions of any shape: it fills a grid of word pairs with relations (Li et al. 2022).

See `entaug.taggers.relations` for the relations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch

from entaug.backends.soft_labels import TagProbabilities
from entaug.config.params import NonNegativeInt, PositiveFloat, PositiveInt
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.taggers.flat import run_lstm
from entaug.taggers.neural import Dropout, EncoderTagger, word_mask
from entaug.taggers.relations import NNW, THW, RelationProbabilities, relations

BINS = 19
DILATIONS = (1, 2, 3)
# Exact GELU of large negative numbers is denormal, with which Intel processors compute many times more slowly, and
# trainings became slower and slower. This form is 0 there.
_GELU = torch.nn.GELU(approximate="tanh")
_IMPOSSIBLE = -1e4  # a logit; minus infinity times a probability of 0 would not be a number


class GridTargets(NamedTuple):
    """Training targets of a sentence."""

    cells: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor | None = None


class GridDecoder(torch.nn.Module):
    """Decoder for mentions of any shape, with the network of W2NER (Li et al. 2022)."""

    # A bidirectional LSTM; conditional layer normalisation, where the word of the row scales and shifts that of the
    # column; projection to few channels, with embeddings of distance and region of the pair; three dilated convolutions
    # in sequence; and the sum of an MLP over their outputs and a biaffine classifier over the words. In the paper the
    # embeddings are concatenated before a linear layer; adding them after it can express the same. Differences from the
    # paper: each relation has a sigmoid instead of a softmax over all, so that a cell may hold two labels, as gold
    # annotation does (31 mentions of GENIA). Only relations that a cell can hold have a loss: NNW above the diagonal,
    # THW elsewhere. The loss is binary cross-entropy, with biases that start at the logit of `prior` (Lin et al. 2017,
    # "Focal Loss for Dense Object Detection"). Existing relations have the weight `weight`, and the convolutions have
    # residual connections, which helps in short trainings. With `activation="softmax"`, `weight=1` and `residual=False`
    # the loss is that of the paper: the mean cross-entropy of all cells; of the relations only those that a cell can
    # hold are possible. The network then differs from the authors' code in the convolutions, which there have a filter
    # for each channel (and a fourth dilation for GENIA), and in the size of the MLP, which is `channels` here and
    # `ffnn_hid_size` there. Time and memory grow with the square of the longest sentence: with the defaults a sentence
    # of 200 words takes 380 MB in training and 180 MB in decoding.

    CELLS = 1 << 16
    """Number of cells of the grid that `probabilities` computes at once."""
    LEAST = 0.001
    """Smaller probabilities are left out."""

    def __init__(self, size: int, labels: Sequence[str], options: W2NERTagger, prior: float = 0.01) -> None:
        super().__init__()
        hidden, channels, biaffine = options.hidden, options.channels, options.biaffine
        self.weight, self.residual, self.activation = options.weight, options.residual, options.activation
        self.relations = [NNW, *(THW + label for label in labels)]
        num_relations = len(self.relations)
        self.dropout = torch.nn.Dropout(options.dropout)
        self.dropout_of_grid = torch.nn.Dropout2d(options.dropout)
        self.lstm = torch.nn.LSTM(size, hidden, batch_first=True, bidirectional=True) if hidden else None
        wide = 2 * hidden or size
        self.scale = torch.nn.Linear(wide, wide)
        self.shift = torch.nn.Linear(wide, wide)
        self.reduce = torch.nn.Linear(wide, channels)
        self.distance = torch.nn.Embedding(BINS, channels)
        self.region = torch.nn.Embedding(2, channels)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation) for dilation in DILATIONS
        )
        self.of_grid = torch.nn.Sequential(
            torch.nn.Linear(len(DILATIONS) * channels, channels),
            _GELU,
            torch.nn.Linear(channels, num_relations, bias=False),
        )
        self.of_rows = torch.nn.Sequential(torch.nn.Linear(wide, biaffine), _GELU)
        self.of_columns = torch.nn.Sequential(torch.nn.Linear(wide, biaffine), _GELU)
        self.pairs = torch.nn.Parameter(torch.empty(num_relations, biaffine, biaffine))
        self.single_rows = torch.nn.Linear(biaffine, num_relations, bias=False)
        self.single_columns = torch.nn.Linear(biaffine, num_relations, bias=False)
        self.bias = torch.nn.Parameter(torch.full((num_relations,), math.log(prior / (1 - prior))))
        torch.nn.init.ones_(self.scale.bias)
        torch.nn.init.zeros_(self.shift.bias)
        torch.nn.init.normal_(self.distance.weight, std=0.1)
        torch.nn.init.normal_(self.region.weight, std=0.1)
        torch.nn.init.normal_(self.pairs, std=1 / biaffine)

    def targets(self, sentence: Sentence) -> GridTargets:
        """Targets of a sentence: its relation probabilities if it has some, else the relations of its mentions."""
        soft = RelationProbabilities.from_sentence(sentence)
        if soft is None:
            ids = {name: i for i, name in enumerate(self.relations)}
            triples = sorted((row, column, ids[name]) for row, column, name in relations(sentence))
            cells = torch.tensor(triples, dtype=torch.long).view(-1, 3)
            values = torch.ones(len(triples))
        else:
            cells, values = map(torch.from_numpy, soft.aligned(self.relations))
        weighted = soft or TagProbabilities.from_sentence(sentence)
        weights = None if weighted is None or weighted.weights is None else torch.from_numpy(weighted.weights)
        return GridTargets(cells, values, weights)

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[GridTargets]) -> torch.Tensor:
        """The cross-entropy of the relations."""
        # With a sigmoid it is the binary cross-entropy of all possible relations: their sum, divided by the number of
        # words of the batch; a mean over cells would weigh mentions of long sentences less. With a softmax it is the
        # mean over cells. The weight of a relation rises with its expected probability, from 1 to `weight`, so that the
        # loss is smallest where both probabilities are equal.
        scores = self.scores(vectors, lengths)
        expected = torch.zeros_like(scores)
        sentences = torch.repeat_interleave(torch.arange(len(targets)), torch.tensor([len(t.cells) for t in targets]))
        rows, columns, relation_ids = torch.cat([target.cells for target in targets]).unbind(1)
        expected[sentences, rows, columns, relation_ids] = torch.cat([t.values for t in targets]).to(expected)
        possible = self._possible(lengths, scores)
        count: float
        if self.activation == "softmax":
            losses = self._softmax_losses(scores, expected, possible)
            count = sum(n * n for n in lengths)
        else:
            losses = torch.nn.functional.binary_cross_entropy_with_logits(
                scores, expected, weight=1 + (self.weight - 1) * expected, reduction="none"
            )
            losses = losses.masked_fill(~possible, 0.0)
            count = sum(lengths)
        if all(target.weights is None for target in targets):
            return losses.sum() / count
        weights = torch.zeros(scores.shape[:2])
        for i, (n, target) in enumerate(zip(lengths, targets, strict=True)):
            weights[i, :n] = 1.0 if target.weights is None else target.weights
        weights = weights.to(losses)
        of_cells = weights[:, :, None] * weights[:, None]
        total = of_cells.sum() if self.activation == "softmax" else weights.sum()
        return (losses * of_cells[..., None]).sum() / total.clamp(min=1e-6)

    def _softmax_losses(self, scores: torch.Tensor, expected: torch.Tensor, possible: torch.Tensor) -> torch.Tensor:
        """The cross-entropy of each cell and class (sentences, words, words, relations + 1), 0 for padding."""
        expected = expected * possible
        # Two labels of one cell share it.
        expected = expected / expected.sum(-1, keepdim=True).clamp(min=1.0)
        none = 1 - expected.sum(-1, keepdim=True)
        log_probs = _with_none(scores, possible).log_softmax(-1)
        losses = -torch.cat([none, self.weight * expected], -1) * log_probs
        return losses.masked_fill(~possible.any(-1, keepdim=True), 0.0)

    def _probabilities(self, scores: torch.Tensor, possible: torch.Tensor) -> torch.Tensor:
        if self.activation == "softmax":
            return (_with_none(scores, possible).softmax(-1)[..., 1:]).masked_fill(~possible, 0.0)
        return scores.sigmoid().masked_fill(~possible, 0.0)

    def probabilities(self, vectors: torch.Tensor, lengths: list[int]) -> Iterator[RelationProbabilities]:
        """Compute the probabilities of the relations of each sentence."""
        size = max(1, self.CELLS // max(1, max(lengths, default=1) ** 2))
        for start in range(0, len(lengths), size):
            part = lengths[start : start + size]
            with torch.no_grad():
                scores = self.scores(vectors[start : start + size], part)
                grids = self._probabilities(scores, self._possible(part, scores)).cpu()
            for grid, n in zip(grids, part, strict=True):
                cells = torch.nonzero(grid >= self.LEAST)
                yield RelationProbabilities(self.relations, n, cells.numpy(), grid[tuple(cells.T)].numpy())

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of each sentence, from the relations with a probability above 0.5."""
        return [probabilities.mentions() for probabilities in self.probabilities(vectors, lengths)]

    def _possible(self, lengths: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        """Mask of the relations that a cell can hold (sentences, words, words, relations)."""
        mask = word_mask(lengths, scores)
        upper = torch.ones(scores.shape[1:3], dtype=torch.bool, device=scores.device).triu(1)
        is_nnw = torch.arange(scores.shape[3], device=scores.device) == 0
        return (mask[:, :, None] & mask[:, None, :])[..., None] & (upper[..., None] == is_nnw)

    def scores(self, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Compute the logits of the relations; padding has no influence."""
        words = self.dropout(vectors[:, : max(lengths)])
        if self.lstm is not None:
            words = self.dropout(run_lstm(self.lstm, words, lengths))
        of_grid = self.of_grid(self._grid(words, word_mask(lengths, words)))
        # Sums of products of two vectors are too imprecise in bf16.
        with torch.autocast(words.device.type, enabled=False):
            words = words.float()
            rows, columns = self.dropout(self.of_rows(words)), self.dropout(self.of_columns(words))
            of_pairs = torch.einsum("brx,kxy,bcy->brck", rows, self.pairs, columns)
            single = self.single_rows(rows)[:, :, None] + self.single_columns(columns)[:, None]
            scores: torch.Tensor = of_pairs + single + of_grid.float() + self.bias
        return scores

    def _grid(self, words: torch.Tensor, word_mask: torch.Tensor) -> torch.Tensor:
        """The outputs of all convolutions (sentences, words, words, convolutions * channels)."""
        normal = torch.nn.functional.layer_norm(words, words.shape[-1:])
        pairs = self.scale(words)[:, :, None] * normal[:, None] + self.shift(words)[:, :, None]
        positions = torch.arange(words.shape[1], device=words.device)
        offsets = positions[None] - positions[:, None]
        embedded = self.distance(_distance_bins(offsets)) + self.region((offsets > 0).long())
        grid = _GELU(self.reduce(pairs) + embedded)
        # Padding is 0, as is what a convolution reads outside the grid, so it has no influence.
        mask = (word_mask[:, None, :, None] & word_mask[:, None, None, :]).to(grid.dtype)
        grid = self.dropout_of_grid(grid.permute(0, 3, 1, 2)) * mask
        levels = []
        for convolution in self.convolutions:
            convolved = _GELU(convolution(grid))
            grid = (grid + convolved if self.residual else convolved) * mask
            levels.append(grid)
        dropped: torch.Tensor = self.dropout_of_grid(torch.cat(levels, dim=1))
        return dropped.permute(0, 2, 3, 1)


def _with_none(scores: torch.Tensor, possible: torch.Tensor) -> torch.Tensor:
    """Logits of no relation, which is 0, and of the possible relations."""
    return torch.cat([torch.zeros_like(scores[..., :1]), scores.masked_fill(~possible, _IMPOSSIBLE)], -1)


def _distance_bins(offsets: torch.Tensor) -> torch.Tensor:
    """Bins of distances: 9 is none, the others are powers of two to either side (W2NER has one more, for padding)."""
    half = BINS // 2
    edges = 2 ** torch.arange(half, device=offsets.device)
    return half + offsets.sign() * torch.bucketize(offsets.abs(), edges, right=True)


@dataclass(kw_only=True, eq=False)
class W2NERTagger(EncoderTagger):
    """Fine-tuned encoder with a grid of word pairs, for mentions of any shape (W2NER, Li et al. 2022).

    Its soft labels are probabilities of relations between words, see
    `entaug.taggers.relations.RelationProbabilities`. Of tag probabilities it uses the weights of words alone, and
    learns the mentions.

    The defaults differ from the paper: see `GridDecoder`. The form nearest to its own, for its base models, is
    ``activation="softmax", residual=False, weight=1, hidden=256, channels=96, biaffine=512, dropout=0.5``.

    Args:
        hidden: hidden size of the LSTM in each direction; 0 for no LSTM.
        channels: number of channels of the grid of word pairs.
        biaffine: size of the vectors of the biaffine classifier.
        dropout: dropout probability of the decoder.
        weight: weight of existing relations in the loss, relative to that of absent ones; above 1 for more recall.
        residual: whether the convolutions have residual connections.
        activation: ``"sigmoid"`` for a probability of each relation by itself, so that two mentions of the same words
            may have different labels; ``"softmax"`` for one relation, or none, of each pair of words, as in the paper.
    """

    name = "w2ner"
    decoder_class = GridDecoder
    pooling: ClassVar[Literal["first", "max"]] = "max"

    hidden: NonNegativeInt = 192
    channels: PositiveInt = 64
    biaffine: PositiveInt = 128
    dropout: Dropout = 0.3
    weight: PositiveFloat = 3.0
    residual: bool = True
    activation: Literal["sigmoid", "softmax"] = "sigmoid"

    def relation_probabilities(self, sentences: Iterable[Sentence]) -> list[RelationProbabilities]:
        """Compute the probabilities of relations between words, from which the mentions are decoded."""
        return self._in_batches(
            list(sentences), lambda batch, vectors: self._decoder.probabilities(vectors, list(map(len, batch)))
        )
