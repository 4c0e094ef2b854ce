"""Mentions of any shape as relations between words, and the probabilities of relations: soft labels for them.

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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entaug.backends.soft_labels import LEAST, SoftLabels, to_float32, word_weights
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError

NNW = "NNW"
"""Relation of a word (row) to the next word (column) of a mention."""
THW = "THW-"
"""Relation of the last word (row) of a mention to its first (column); the label follows."""
MAX_PATHS = 100
"""Largest number of mentions of a pair of tail and head."""
MAX_MENTIONS = 1000
"""Largest number of mentions of a sentence."""


def relations(sentence: Sentence) -> set[tuple[int, int, str]]:
    """Convert the mentions of a sentence to relations between words."""
    triples: set[tuple[int, int, str]] = set()
    for mention in sentence.mentions:
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
    """Convert relations to mentions: every path from a head to its tail; words follow one another in their order."""
    # The running time is bounded by `max_mentions`, whatever the relations.
    successors: dict[int, list[int]] = defaultdict(list)
    predecessors: dict[int, list[int]] = defaultdict(list)
    for word, following in sorted(set(nnw)):
        successors[word].append(following)
        predecessors[following].append(word)
    distances: dict[int, dict[int, int]] = {}
    mentions: list[Mention] = []
    for tail, head, label in dict.fromkeys(thw):
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
    """All paths, shortest first, then leftmost."""
    # The heap is sorted by the total length of the shortest completion, so only prefixes of requested paths and their
    # direct successors are visited.
    heap: list[tuple[int, tuple[int, ...]]] = [(distances[head], (head,))] if head in distances else []
    while heap:
        path = heapq.heappop(heap)[1]
        if path[-1] == tail:
            yield path
            continue
        for word in successors.get(path[-1], ()):
            if word in distances:
                heapq.heappush(heap, (len(path) + distances[word], (*path, word)))


# ------------------------------------------------------------------------------------------------------- probabilities


@dataclass(frozen=True, eq=False)
class RelationProbabilities(SoftLabels):
    """The probabilities of relations between the words of a sentence, where they are not about 0."""

    # They are for mentions of any shape what `TagProbabilities` are for flat ones. A relation is independent of the
    # others: the probabilities do not sum to 1.

    field = "relation_probabilities"

    names: tuple[str, ...]
    num_words: int
    cells: NDArray[np.int64]
    values: NDArray[np.float32]
    weights: NDArray[np.float32] | None = None

    def __init__(
        self,
        names: Sequence[str],
        num_words: int,
        cells: ArrayLike,
        values: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> None:
        names = tuple(names)
        are_names = all(name == NNW or str(name).startswith(THW) for name in names)
        if not are_names or NNW not in names or len(set(names)) < len(names):
            shown = ", ".join(map(str, names))
            raise InputError(f"relations must be distinct, {NNW} and {THW} with labels, not {shown}")
        triples, numbers = np.asarray(cells, np.int64).reshape(-1, 3), to_float32(values)
        if numbers.shape != (len(triples),) or not ((numbers >= 0) & (numbers <= 1)).all():
            raise InputError(f"{len(triples)} relations need as many probabilities from 0 to 1")
        rows, columns, ids = triples.T
        if num_words < 1 or (triples < 0).any() or (triples >= [num_words, num_words, len(names)]).any():
            raise InputError(f"there are relations outside the {num_words} words or {len(names)} kinds")
        is_nnw = np.array([name == NNW for name in names])[ids]
        if ((rows < columns) != is_nnw).any() or len(np.unique(triples, axis=0)) < len(triples):
            raise InputError(f"a relation stands once, {NNW} above the diagonal and {THW} on or below it")
        for name, value in (("names", names), ("num_words", num_words), ("cells", triples), ("values", numbers)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "weights", None if weights is None else word_weights(weights, num_words))

    def __len__(self) -> int:
        """Return the number of words."""
        return self.num_words

    @property
    def confidences(self) -> NDArray[np.float32]:
        certainty = np.maximum(self.values, 1 - self.values)
        confidences = np.ones(self.num_words, np.float32)
        for words in self.cells[:, :2].T:
            np.minimum.at(confidences, words, certainty)
        return confidences

    def mentions(self) -> tuple[Mention, ...]:
        """The mentions of the relations with a probability above 0.5; see `decode`."""
        likeliest_first = np.argsort(-self.values, kind="stable")
        nnw, thw = [], []
        for i in likeliest_first[self.values[likeliest_first] > 0.5]:
            row, column, kind = self.cells[i].tolist()
            if self.names[kind] == NNW:
                nnw.append((row, column))
            else:
                thw.append((row, column, self.names[kind].removeprefix(THW)))
        return decode(nnw, thw)

    def aligned(self, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The probabilities for another list of relations."""
        position = {name: i for i, name in enumerate(names)}
        ids = np.array([position.get(name, -1) for name in self.names])[self.cells[:, 2]]
        cells = np.column_stack([self.cells[:, :2], ids])[ids >= 0]
        return cells, self.values[ids >= 0]

    @classmethod
    def mean(cls, several: Sequence[RelationProbabilities]) -> Self:
        """The mean of the probabilities of several taggers for one sentence."""
        names = [NNW, *sorted({name for one in several for name in one.names} - {NNW})]
        sums: dict[tuple[int, ...], float] = defaultdict(float)
        for one in several:
            for cell, value in zip(*one.aligned(names), strict=True):
                sums[tuple(cell.tolist())] += float(value) / len(several)
        return cls(names, several[0].num_words, sorted(sums), [min(1.0, sums[cell]) for cell in sorted(sums)])

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Self:
        cells = [list(map(index, cell)) for cell in zip(data["rows"], data["columns"], data["ids"], strict=True)]
        return cls(data["relations"], index(data["words"]), cells, data["values"], data.get("weights"))

    def to_dict(self) -> dict[str, Any]:
        kept = self.values >= LEAST
        columns = dict(zip(("rows", "columns", "ids"), self.cells[kept].T.tolist(), strict=True))
        values = [round(float(value), 4) for value in self.values[kept]]
        data: dict[str, Any] = {"relations": list(self.names), "words": self.num_words, **columns, "values": values}
        if self.weights is not None:
            data["weights"] = [round(float(weight), 4) for weight in self.weights]
        return data
