"""Mentions of any shape as relations between words: a head that fills a grid of word pairs.

W2NER (Li et al. 2022, "Unified Named Entity Recognition as Word-Word Relation Classification", AAAI) knows two kinds of
relation. *Next-neighbouring word* (NNW): the column's word follows the row's within a mention; it lies above the
diagonal. *Tail-head word* with a label (THW-PER): the row's word is the last of such a mention and the column's is the
first; it lies on or below the diagonal. A mention is a path of NNW from a head to a tail that a THW joins.

**What the grid cannot say.** NNW does not tell whose step it is. Contiguous mentions, nested as deep as may be or
partly overlapping, always come back exactly. Discontinuous ones may bring further mentions along, where steps of others
make a second path between a head and a tail: with "a b c" a mention and "a c" another of another label, both words and
both labels fit the pair (c, a), so four mentions come back. Whatever was put in always comes out (up to `PATHS` and
`MOST`), so decoding gives a superset. In the 57,992 mentions of GENIA with its discontinuous ones nothing is lost and
nothing comes along.
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

__all__ = ["MOST", "NNW", "PATHS", "THW", "GridHead", "decode", "relations"]

NNW = "NNW"
"""The relation of a word (row) to the next one (column) of a mention."""
THW = "THW-"
"""The relation of the last word (row) of a mention to its first (column), before the label."""
PATHS = 100
"""How many mentions a pair of tail and head may give."""
MOST = 1000
"""How many mentions a sentence may give."""

BINS = 19
DILATIONS = (1, 2, 3)


# ----------------------------------------------------------------------------------------------- mentions and relations


def relations(sentence: Sentence, labels: Iterable[str]) -> set[tuple[int, int, str]]:
    """The relations between words that a sentence's mentions make.

    Args:
        sentence: with mentions of any shape.
        labels: those that are known.

    Returns:
        (row, column, relation) with `NNW` where row < column and `THW` with the label where row >= column.

    Raises:
        ParameterError: a mention has a label that is not known.

    Example:
        >>> s = Sentence("pain in left arm".split(), [Mention("ADR", [(0, 2), (3, 4)])])
        >>> sorted(relations(s, ["ADR"]))
        [(0, 1, 'NNW'), (1, 3, 'NNW'), (3, 0, 'THW-ADR')]
    """
    known = set(labels)
    found: set[tuple[int, int, str]] = set()
    for mention in sentence.mentions:
        if mention.label not in known:
            raise ParameterError(f"the label {mention.label!r} is not among {', '.join(sorted(known)) or 'none'}")
        found.update((a, b, NNW) for a, b in itertools.pairwise(mention.positions()))
        found.add((mention.end - 1, mention.start, THW + mention.label))
    return found


def decode(
    nnw: Iterable[tuple[int, int]],
    thw: Iterable[tuple[int, int, str]],
    *,
    paths: int = PATHS,
    most: int = MOST,
) -> tuple[Mention, ...]:
    """The mentions that relations stand for: every path from a head to its tail.

    The time is bounded by `most`, whatever the relations. A pair of tail and head without a path gives nothing.

    Args:
        nnw: (word, next word), each before the other.
        thw: (tail, head, label), the likeliest first: what is beyond `most` is left out.
        paths: largest number of mentions for one of `thw`; those of fewest words are taken, then the leftmost.
        most: largest number of mentions in all.

    Returns:
        Mentions in canonical order, none twice.

    Raises:
        ParameterError: a word is not before its next, or a tail is before its head.

    Example:
        >>> [m.spans for m in decode([(0, 1), (1, 2), (1, 3)], [(2, 0, "ADR"), (3, 0, "ADR")])]
        [((0, 2), (3, 4)), ((0, 3),)]
    """
    after: dict[int, list[int]] = defaultdict(list)
    before: dict[int, list[int]] = defaultdict(list)
    for word, following in sorted(set(nnw)):
        if not 0 <= word < following:
            raise ParameterError(f"word {word} cannot have {following} as its next")
        after[word].append(following)
        before[following].append(word)
    ahead: dict[int, dict[int, int]] = {}
    found: list[Mention] = []
    for tail, head, label in dict.fromkeys(thw):
        if not 0 <= head <= tail:
            raise ParameterError(f"a mention cannot begin at {head} and end at {tail}")
        if tail not in ahead:
            ahead[tail] = _steps_to(tail, before)
        room = min(paths, most - len(found))
        first = itertools.islice(_paths(head, tail, after, ahead[tail]), max(0, room))
        found += [Mention(label, ((i, i + 1) for i in path)) for path in first]
    return tuple(sorted(found, key=lambda mention: (mention.spans, mention.label)))


def _steps_to(tail: int, before: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The words that have a path to the tail, and the steps of their shortest."""
    steps = {tail: 0}
    queue = [tail]
    for word in queue:
        for earlier in before.get(word, ()):
            if earlier not in steps:
                steps[earlier] = steps[word] + 1
                queue.append(earlier)
    return steps


def _paths(
    head: int, tail: int, after: Mapping[int, Sequence[int]], ahead: Mapping[int, int]
) -> Iterator[tuple[int, ...]]:
    """All paths, the shortest first, then the leftmost.

    What is taken from the heap always begins a path of the length that is due, and among such the leftmost and so the
    most complete: no more is looked at than the paths that are asked for and the words beside them.
    """
    heap: list[tuple[int, tuple[int, ...]]] = [(ahead[head], (head,))] if head in ahead else []
    while heap:
        path = heapq.heappop(heap)[1]
        last = path[-1]
        if last == tail:
            yield path
            continue
        done = len(path)
        for word in after.get(last, ()):
            if word in ahead:
                heapq.heappush(heap, (done + ahead[word], (*path, word)))


# ------------------------------------------------------------------------------------------------------------- the head


class GridHead(torch.nn.Module):
    """Word vectors to mentions of any shape, by the network of W2NER (Li et al. 2022).

    A bidirectional LSTM; conditional layer normalisation, where the row's word scales and shifts the column's; reduced
    to few channels, with distance and region of each pair; three dilated convolutions one after the other; and the sum
    of what an MLP makes of all three and a biaffine classifier makes of the words. The paper puts embeddings of
    distance and region beside a pair's vector, before a linear layer; adding them behind it can express the same.

    Each relation has a sigmoid of its own, where the paper has a softmax over all. So a cell may carry two labels, as
    gold annotation does (the same span with two types: 31 mentions in GENIA would be lost by a softmax). Above the
    diagonal only NNW is asked for and below only THW, so nothing is learned about what cannot be. The loss is binary
    cross-entropy, and scores begin at the logit of `prior` (Lin et al. 2017, "Focal Loss for Dense Object Detection"),
    as one cell in some hundred holds a relation.

    Relations count `weight` times what their absence does, and each convolution adds to what it was given, which the
    paper does not do: with a few steps both help.

    Time and memory grow with the square of the longest sentence: with the defaults one of 200 words takes 380 MB when
    learning and 180 MB when decoding, so batches of long ones should be small. `decode` goes by parts of `CELLS`.

    Args:
        size: of the word vectors.
        labels: of mentions, each once.
        hidden: of the LSTM, each direction; 0 for none.
        channels: of the grid.
        biaffine: size of the vectors of rows and columns in the biaffine classifier.
        dropout: on the word vectors, after the LSTM and before each classifier; on the grid, of whole channels.
        prior: the share of cells that hold a relation, to begin with.
        weight: how much more a relation counts in the loss than the absence of one.

    Raises:
        ParameterError: a label twice, or a number that cannot be.

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
    """Cells of the grid that `decode` looks at together."""

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
            raise ParameterError(f"the labels {', '.join(labels)} are not each given once")
        for name, value, least in (
            ("size", size, 1),
            ("hidden", hidden, 0),
            ("channels", channels, 1),
            ("biaffine", biaffine, 1),
        ):
            if value < least:
                raise ParameterError(f"{name} must be at least {least}, not {value!r}")
        if not 0 <= dropout < 1 or not 0 < prior < 1:
            raise ParameterError(f"dropout and prior must be shares of one, not {dropout!r} and {prior!r}")
        if not 0 < weight < math.inf:
            raise ParameterError(f"weight must be above 0, not {weight!r}")
        self.labels = list(labels)
        self.weight = weight
        self._number = {NNW: 0, **{THW + label: i for i, label in enumerate(labels, 1)}}
        many = len(self._number)
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
            torch.nn.Linear(channels, many, bias=False),
        )
        self.of_rows = torch.nn.Sequential(torch.nn.Linear(wide, biaffine), torch.nn.GELU())
        self.of_columns = torch.nn.Sequential(torch.nn.Linear(wide, biaffine), torch.nn.GELU())
        self.pairs = torch.nn.Parameter(torch.empty(many, biaffine, biaffine))
        self.single_rows = torch.nn.Linear(biaffine, many, bias=False)
        self.single_columns = torch.nn.Linear(biaffine, many, bias=False)
        self.bias = torch.nn.Parameter(torch.full((many,), math.log(prior / (1 - prior))))
        torch.nn.init.ones_(self.scale.bias)
        torch.nn.init.zeros_(self.shift.bias)
        torch.nn.init.normal_(self.distance.weight, std=0.1)
        torch.nn.init.normal_(self.region.weight, std=0.1)
        torch.nn.init.normal_(self.pairs, std=1 / biaffine)

    def targets(self, sentence: Sentence) -> torch.Tensor:
        """The relations of a sentence.

        Returns:
            Whole numbers (relations, 3): row, column, and 0 for NNW or i for THW with the i-th label, from 1.

        Raises:
            ParameterError: a mention has a label that the head does not know.
        """
        found = sorted((row, column, self._number[name]) for row, column, name in relations(sentence, self.labels))
        return torch.tensor(found, dtype=torch.long).view(-1, 3)

    def loss(self, vectors: torch.Tensor, lengths: list[int], targets: list[torch.Tensor]) -> torch.Tensor:
        """Binary cross-entropy of all relations that can be: their sum, divided by the words of the batch.

        A mean over cells would make a mention count less the longer its sentence is.

        Args:
            vectors: (sentences, words, size).
            lengths: words of each sentence.
            targets: of each sentence, see `targets`.

        Returns:
            A scalar, in fp32.
        """
        scores = self.scores(vectors, lengths)
        gold = torch.zeros_like(scores)
        numbers = torch.repeat_interleave(torch.arange(len(targets)), torch.tensor([len(rows) for rows in targets]))
        rows, columns, names = torch.cat([rows.cpu() for rows in targets]).unbind(1)
        gold[numbers, rows, columns, names] = 1.0
        possible = self._possible(lengths, scores)
        each = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, gold, reduction="none", pos_weight=scores.new_tensor(self.weight)
        )
        return each.masked_fill(~possible, 0.0).sum() / sum(lengths)

    def decode(self, vectors: torch.Tensor, lengths: list[int]) -> list[tuple[Mention, ...]]:
        """The mentions of each sentence: those of all relations likelier than not; see `entaug.taggers.grid.decode`.

        Args:
            vectors: (sentences, words, size).
            lengths: words of each sentence.
        """
        together = max(1, self.CELLS // max(1, max(lengths, default=1) ** 2))
        found = []
        for first in range(0, len(lengths), together):
            part = lengths[first : first + together]
            with torch.no_grad():
                scores = self.scores(vectors[first : first + together], part)
                scores = scores.masked_fill(~self._possible(part, scores), -1.0).cpu()
            found += [self._mentions(grid) for grid in scores]
        return found

    def _mentions(self, grid: torch.Tensor) -> tuple[Mention, ...]:
        cells = torch.nonzero(grid > 0)
        likeliest = torch.argsort(grid[tuple(cells.T)], descending=True, stable=True)
        nnw, thw = [], []
        for row, column, name in cells[likeliest].tolist():
            if name:
                thw.append((row, column, self.labels[name - 1]))
            else:
                nnw.append((row, column))
        return decode(nnw, thw)

    def _possible(self, lengths: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        """Which relations a cell can hold: (sentences, words, words, relations)."""
        real = _real(lengths, scores)
        upper = torch.ones(scores.shape[1:3], dtype=torch.bool, device=scores.device).triu(1)
        is_nnw = torch.arange(scores.shape[3], device=scores.device) == 0
        return (real[:, :, None] & real[:, None, :])[..., None] & (upper[..., None] == is_nnw)

    def scores(self, vectors: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        """Logits of the relations; what is beyond a sentence's words means nothing, and changes nothing.

        Args:
            vectors: (sentences, words, size).
            lengths: words of each sentence.

        Returns:
            (sentences, words, words, relations) in fp32, rows before columns; words of the longest sentence.
        """
        words = self.dropout(vectors[:, : max(lengths)])
        if self.lstm is not None:
            words = self.dropout(run_lstm(self.lstm, words, lengths))
        of_grid = self.of_grid(self._grid(words, _real(lengths, words)))
        # Sums of products of two vectors lose too much in bf16.
        with torch.autocast(words.device.type, enabled=False):
            words = words.float()
            rows, columns = self.dropout(self.of_rows(words)), self.dropout(self.of_columns(words))
            of_pairs = torch.einsum("brx,kxy,bcy->brck", rows, self.pairs, columns)
            single = self.single_rows(rows)[:, :, None] + self.single_columns(columns)[:, None]
            scores: torch.Tensor = of_pairs + single + of_grid.float() + self.bias
        return scores

    def _grid(self, words: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """The pairs after each convolution: (sentences, words, words, convolutions * channels)."""
        normal = torch.nn.functional.layer_norm(words, words.shape[-1:])
        pairs = self.scale(words)[:, :, None] * normal[:, None] + self.shift(words)[:, :, None]
        place = torch.arange(words.shape[1], device=words.device)
        apart = place[None] - place[:, None]
        where = self.distance(_bins(apart)) + self.region((apart > 0).long())
        grid = torch.nn.functional.gelu(self.reduce(pairs) + where)
        # Zeros beyond the sentence, as a convolution sees beyond the grid: so padding changes nothing.
        mask = (real[:, None, :, None] & real[:, None, None, :]).to(grid.dtype)
        grid = self.dropout_of_grid(grid.permute(0, 3, 1, 2)) * mask
        levels = []
        for convolution in self.convolutions:
            grid = (grid + torch.nn.functional.gelu(convolution(grid))) * mask
            levels.append(grid)
        dropped: torch.Tensor = self.dropout_of_grid(torch.cat(levels, dim=1))
        return dropped.permute(0, 2, 3, 1)


def _real(lengths: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Which words there are: (sentences, words)."""
    return torch.arange(like.shape[1], device=like.device)[None] < torch.tensor(lengths, device=like.device)[:, None]


def _bins(apart: torch.Tensor) -> torch.Tensor:
    """Distances in 19 bins (a twentieth of the paper is for padding): none, and by powers of two to either side.

    Example:
        >>> _bins(torch.tensor([-300, -3, -2, -1, 0, 1, 2, 4, 1000])).tolist()
        [0, 7, 7, 8, 9, 10, 11, 12, 18]
    """
    half = BINS // 2
    edges = 2 ** torch.arange(half, device=apart.device)
    return half + apart.sign() * torch.bucketize(apart.abs(), edges, right=True)
