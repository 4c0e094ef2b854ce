"""Mentions of any shape as relations between words: a head that fills a grid of word pairs.

W2NER (Li et al. 2022, "Unified Named Entity Recognition as Word-Word Relation Classification", AAAI) uses two kinds of
relation. *Next-neighbouring word* (NNW): within a mention, the word of the column follows the word of the row; these
cells lie above the diagonal. *Tail-head word* with a label (THW): the word of the row is the last of a mention with
this label, the word of the column the first; these cells lie on or below the diagonal. A mention is a path of NNW
relations from a head to a tail that a THW relation joins.

**Limits.** An NNW relation does not say to which mention it belongs. Contiguous mentions, nested or overlapping, are
always decoded exactly. Discontinuous ones may yield additional mentions, if relations of others form a second path
between a head and a tail: with "a b c" as a mention and "a c" as another of another label, both paths and both labels
fit the pair (c, a), so four mentions are decoded. All gold mentions are decoded (up to the limits of `decode`), so the
result is a superset. For the 57,992 mentions of GENIA with its discontinuous ones the result is exact.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch

from entaug.data import Mention, Sentence
from entaug.errors import ParameterError
from entaug.taggers.heads import run_lstm

__all__ = ["MAX_MENTIONS", "MAX_PATHS", "NNW", "THW", "GridHead", "decode", "relations"]

NNW = "NNW"
"""Relation of a word (row) to the next word (column) of a mention."""
THW = "THW-"
"""Relation of the last word (row) of a mention to its first (column); the label follows."""
MAX_PATHS = 100
"""Largest number of mentions of a pair of tail and head."""
MAX_MENTIONS = 1000
"""Largest number of mentions of a sentence."""

BINS = 19
DILATIONS = (1, 2, 3)


# ----------------------------------------------------------------------------------------------- mentions and relations


def relations(sentence: Sentence, labels: Iterable[str]) -> set[tuple[int, int, str]]:
    """Convert the mentions of a sentence to relations between words.

    Args:
        sentence: a sentence with mentions of any shape.
        labels: the known labels.

    Returns:
        Triples (row, column, relation): `NNW` with row < column, and `THW` with a label and row >= column.

    Raises:
        ParameterError: a label is unknown.

    Example:
        >>> s = Sentence("pain in left arm".split(), [Mention("ADR", [(0, 2), (3, 4)])])
        >>> sorted(relations(s, ["ADR"]))
        [(0, 1, 'NNW'), (1, 3, 'NNW'), (3, 0, 'THW-ADR')]
    """
    known = set(labels)
    triples: set[tuple[int, int, str]] = set()
    for mention in sentence.mentions:
        if mention.label not in known:
            raise ParameterError(f"the label {mention.label!r} is not among {', '.join(sorted(known)) or 'none'}")
        triples.update((a, b, NNW) for a, b in itertools.pairwise(mention.positions()))
        triples.add((mention.end - 1, mention.start, THW + mention.label))
    return triples


def decode(
    nnw: Iterable[tuple[int, int]],
    thw: Iterable[tuple[int, int, str]],
    *,
    max_paths: int = MAX_PATHS,
    max_mentions: int = MAX_MENTIONS,
) -> tuple[Mention, ...]:
    """Convert relations to mentions: every path from a head to its tail.

    The running time is bounded by `max_mentions`, whatever the relations.

    Args:
        nnw: pairs (word, next word).
        thw: triples (tail, head, label), most probable first: those beyond `max_mentions` are dropped.
        max_paths: largest number of mentions per element of `thw`; those with the fewest words come first, then the
            leftmost.
        max_mentions: largest number of mentions in total.

    Returns:
        The mentions in canonical order.

    Raises:
        ParameterError: a word does not precede its next word, or a tail precedes its head.

    Example:
        >>> [m.spans for m in decode([(0, 1), (1, 2), (1, 3)], [(2, 0, "ADR"), (3, 0, "ADR")])]
        [((0, 2), (3, 4)), ((0, 3),)]
    """
    successors: dict[int, list[int]] = defaultdict(list)
    predecessors: dict[int, list[int]] = defaultdict(list)
    for word, following in sorted(set(nnw)):
        if not 0 <= word < following:
            raise ParameterError(f"word {word} cannot have {following} as its next")
        successors[word].append(following)
        predecessors[following].append(word)
    distances: dict[int, dict[int, int]] = {}
    mentions: list[Mention] = []
    for tail, head, label in dict.fromkeys(thw):
        if not 0 <= head <= tail:
            raise ParameterError(f"a mention cannot begin at {head} and end at {tail}")
        if tail not in distances:
            distances[tail] = _distances_to(tail, predecessors)
        limit = max(0, min(max_paths, max_mentions - len(mentions)))
        paths = itertools.islice(_paths(head, tail, successors, distances[tail]), limit)
        mentions += [Mention(label, ((i, i + 1) for i in path)) for path in paths]
    return tuple(sorted(mentions, key=lambda mention: (mention.spans, mention.label)))


def _distances_to(tail: int, predecessors: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The words that have a path to the tail, with the length of the shortest."""
    distances = {tail: 0}
    queue = [tail]
    for word in queue:
        for earlier in predecessors.get(word, ()):
            if earlier not in distances:
                distances[earlier] = distances[word] + 1
                queue.append(earlier)
    return distances


def _paths(
    head: int, tail: int, successors: Mapping[int, Sequence[int]], distances: Mapping[int, int]
) -> Iterator[tuple[int, ...]]:
    """All paths, shortest first, then leftmost.

    The heap is sorted by the total length of the shortest completion, so only prefixes of requested paths and their
    direct successors are visited.
    """
    heap: list[tuple[int, tuple[int, ...]]] = [(distances[head], (head,))] if head in distances else []
    while heap:
        path = heapq.heappop(heap)[1]
        if path[-1] == tail:
            yield path
            continue
        for word in successors.get(path[-1], ()):
            if word in distances:
                heapq.heappush(heap, (len(path) + distances[word], (*path, word)))


# ------------------------------------------------------------------------------------------------------------- the head


class GridHead(torch.nn.Module):
    """Head for mentions of any shape, with the network of W2NER (Li et al. 2022).

    A bidirectional LSTM; conditional layer normalisation, where the word of the row scales and shifts that of the
    column; projection to few channels, with embeddings of distance and region of the pair; three dilated convolutions
    in sequence; and the sum of an MLP over their outputs and a biaffine classifier over the words. In the paper the
    embeddings are concatenated before a linear layer; adding them after it can express the same.

    Differences from the paper: each relation has a sigmoid instead of a softmax over all, so that a cell may hold two
    labels, as gold annotation does (31 mentions of GENIA). Only relations that a cell can hold have a loss: NNW above
    the diagonal, THW elsewhere. The loss is binary cross-entropy, with biases that start at the logit of `prior`
    (Lin et al. 2017, "Focal Loss for Dense Object Detection"). Existing relations have the weight `weight`, and the
    convolutions have residual connections, which helps in short trainings.

    Time and memory grow with the square of the longest sentence: with the defaults a sentence of 200 words takes 380 MB
    in training and 180 MB in decoding.

    Args:
        size: size of the word vectors.
        labels: labels of mentions, without duplicates.
        hidden: hidden size of the LSTM in each direction; 0 for no LSTM.
        channels: number of channels of the grid.
        biaffine: size of the row and column vectors of the biaffine classifier.
        dropout: dropout probability of the word vectors, after the LSTM, before each classifier, and of whole channels
            of the grid.
        prior: initial probability of a relation.
        weight: weight of existing relations in the loss, relative to that of absent ones.

    Raises:
        ParameterError: a label occurs twice, or a number is out of range.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> head = GridHead(8, ["ADR"], hidden=4, channels=4, biaffine=4).eval()
        >>> s = Sentence("pain in left arm".split(), [Mention("ADR", [(0, 2), (3, 4)])])
        >>> head.targets(s).tolist()
        [[0, 1, 0], [1, 3, 0], [3, 0, 1]]
        >>> head.loss(torch.zeros(1, 4, 8), [4], [head.targets(s)]).shape
        torch.Size([])
        >>> head.decode(torch.zeros(1, 4, 8), [4])
        [()]
    """

    CELLS = 1 << 16
    """Number of cells of the grid that `decode` computes at once."""

    def __init__(
        self,
        size: int,
        labels: Sequence[str],
        *,
        hidden: int = 192,
        channels: int = 64,
        biaffine: int = 128,
        dropout: float = 0.3,
        prior: float = 0.01,
        weight: float = 3.0,
    ) -> None:
        super().__init__()
        if len(set(labels)) < len(labels):
            raise ParameterError(f"labels must not be given twice: {', '.join(labels)}")
        valid = {
            "size": size >= 1,
            "hidden": hidden >= 0,
            "channels": channels >= 1,
            "biaffine": biaffine >= 1,
            "dropout": 0 <= dropout < 1,
            "prior": 0 < prior < 1,
            "weight": 0 < weight < math.inf,
        }
        for name, in_range in valid.items():
            if not in_range:
                raise ParameterError(f"{name} is out of range", parameter=name)
        self.labels = list(labels)
        self.weight = weight
        self._relation_ids = {NNW: 0, **{THW + label: i for i, label in enumerate(labels, 1)}}
        num_relations = len(self._relation_ids)
        self.dropout = torch.nn.Dropout(dropout)
        self.dropout_of_grid = torch.nn.Dropout2d(dropout)
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
            torch.nn.GELU(),
            torch.nn.Linear(channels, num_relations, bias=False),
        )
        self.of_rows = torch.nn.Sequential(torch.nn.Linear(wide, biaffine), torch.nn.GELU())
        self.of_columns = torch.nn.Sequential(torch.nn.Linear(wide, biaffine), torch.nn.GELU())
        self.pairs = torch.nn.Parameter(torch.empty(num_relations, biaffine, biaffine))
        self.single_rows = torch.nn.Linear(biaffine, num_relations, bias=False)
        self.single_columns = torch.nn.Linear(biaffine, num_relations, bias=False)
        self.bias = torch.nn.Parameter(torch.full((num_relations,), math.log(prior / (1 - prior))))
        torch.nn.init.ones_(self.scale.bias)
        torch.nn.init.zeros_(self.shift.bias)
        torch.nn.init.normal_(self.distance.weight, std=0.1)
        torch.nn.init.normal_(self.region.weight, std=0.1)
        torch.nn.init.normal_(self.pairs, std=1 / biaffine)

    def targets(self, sentence: Sentence) -> torch.Tensor:
        """Convert the mentions of a sentence to relations.

        Args:
            sentence: a sentence with mentions.

        Returns:
            Integers (relations, 3): row, column, and 0 for NNW or i for THW with the i-th label, from 1.

        Raises:
            ParameterError: a label is unknown.
        """
        triples = sorted(
            (row, column, self._relation_ids[name]) for row, column, name in relations(sentence, self.labels)
        )
        return torch.tensor(triples, dtype=torch.long).view(-1, 3)

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """The binary cross-entropy of all possible relations: their sum, divided by the number of words of the batch.

        A mean over cells would weigh mentions of long sentences less.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
            targets: result of `targets` for each sentence.
        """
        scores = self.scores(vectors, lengths)
        gold = torch.zeros_like(scores)
        sentences = torch.repeat_interleave(torch.arange(len(targets)), torch.tensor(list(map(len, targets))))
        rows, columns, relation_ids = torch.cat([triples.cpu() for triples in targets]).unbind(1)
        gold[sentences, rows, columns, relation_ids] = 1.0
        possible = self._possible(lengths, scores)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, gold, reduction="none", pos_weight=scores.new_tensor(self.weight)
        )
        return losses.masked_fill(~possible, 0.0).sum() / sum(lengths)

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of each sentence, from the relations with a probability above 0.5; see `decode`.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.
        """
        size = max(1, self.CELLS // max(1, max(lengths, default=1) ** 2))
        mentions = []
        for start in range(0, len(lengths), size):
            part = lengths[start : start + size]
            with torch.no_grad():
                scores = self.scores(vectors[start : start + size], part)
                scores = scores.masked_fill(~self._possible(part, scores), -1.0).cpu()
            mentions += [self._mentions(grid) for grid in scores]
        return mentions

    def _mentions(self, grid: torch.Tensor) -> tuple[Mention, ...]:
        cells = torch.nonzero(grid > 0)
        most_probable_first = torch.argsort(grid[tuple(cells.T)], descending=True, stable=True)
        nnw, thw = [], []
        for row, column, relation_id in cells[most_probable_first].tolist():
            if relation_id:
                thw.append((row, column, self.labels[relation_id - 1]))
            else:
                nnw.append((row, column))
        return decode(nnw, thw)

    def _possible(self, lengths: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        """Mask of the relations that a cell can hold (sentences, words, words, relations)."""
        mask = _word_mask(lengths, scores)
        upper = torch.ones(scores.shape[1:3], dtype=torch.bool, device=scores.device).triu(1)
        is_nnw = torch.arange(scores.shape[3], device=scores.device) == 0
        return (mask[:, :, None] & mask[:, None, :])[..., None] & (upper[..., None] == is_nnw)

    def scores(self, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Compute the logits of the relations; padding has no influence.

        Args:
            vectors: word vectors (sentences, words, size).
            lengths: number of words of each sentence.

        Returns:
            Logits (sentences, rows, columns, relations) in fp32, for as many rows and columns as the longest sentence
            has words; those of padding have no meaning.
        """
        words = self.dropout(vectors[:, : max(lengths)])
        if self.lstm is not None:
            words = self.dropout(run_lstm(self.lstm, words, lengths))
        of_grid = self.of_grid(self._grid(words, _word_mask(lengths, words)))
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
        grid = torch.nn.functional.gelu(self.reduce(pairs) + embedded)
        # Padding is 0, as is what a convolution reads outside the grid, so it has no influence.
        mask = (word_mask[:, None, :, None] & word_mask[:, None, None, :]).to(grid.dtype)
        grid = self.dropout_of_grid(grid.permute(0, 3, 1, 2)) * mask
        levels = []
        for convolution in self.convolutions:
            grid = (grid + torch.nn.functional.gelu(convolution(grid))) * mask
            levels.append(grid)
        dropped: torch.Tensor = self.dropout_of_grid(torch.cat(levels, dim=1))
        return dropped.permute(0, 2, 3, 1)


def _word_mask(lengths: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Mask of the words (sentences, words), False for padding."""
    return torch.arange(like.shape[1], device=like.device)[None] < torch.tensor(lengths, device=like.device)[:, None]


def _distance_bins(offsets: torch.Tensor) -> torch.Tensor:
    """Bins of distances: 9 is none, the others are powers of two to either side (W2NER has one more, for padding).

    Example:
        >>> _distance_bins(torch.tensor([-300, -3, -2, -1, 0, 1, 2, 4, 1000])).tolist()
        [0, 7, 7, 8, 9, 10, 11, 12, 18]
    """
    half = BINS // 2
    edges = 2 ** torch.arange(half, device=offsets.device)
    return half + offsets.sign() * torch.bucketize(offsets.abs(), edges, right=True)
