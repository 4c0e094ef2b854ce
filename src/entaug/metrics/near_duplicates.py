"""Similarity of sentences by tokens, and near-duplicates.

The similarity of two sentences is 2 L / (m + n): m and n are their numbers of tokens, and L is the length of the
longest common subsequence of their tokens, ignoring case. This is the normalised indel similarity: 1 minus the share of
tokens to be inserted and deleted to turn one sentence into the other. It is 1 for equal tokens and 0 if no token is
shared.

Near-duplicates are found with an inverted index of n-grams of tokens and prefix filtering, as in joins of similar sets
(Chaudhuri et al. 2006, "A Primitive Operator for Similarity Joins in Data Cleaning"; Bayardo et al. 2007, "Scaling Up
All Pairs Similarity Search"). Two near-duplicates share a certain number of n-grams. Where all n-grams have one order,
the rarest first, one of those shared is therefore among the first few of both sentences. Only sentences with such an
n-gram are compared, and none is missed.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from entaug.core.data import Sentence
from entaug.core.words import folded
from entaug.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int], np.dtype[Any]]


_ROW_BITS = 14  # the logarithm to base 2 of the number of sentences whose n-grams are in memory at once
_UNKNOWN = 0  # the id of tokens that are not in an index
_ROUNDING = 1e-9  # equal similarities may differ by as much
_SLACK = 1e-4  # rapidfuzz drops some pairs exactly at its cutoff, for example at 4/5
_MARGIN = 1e-6  # bounds are loosened by as much: rounding may cost time, but never a near-duplicate
_GRAM_SIZES = ((0.85, 3), (0.7, 2), (0.0, 1))  # from which threshold; longer n-grams are rarer, but more are kept
_TOKENS = 1 << 18  # tokens whose n-grams are in memory at once
_PAIRS = 1 << 17  # pairs of sentences in memory at once
_FIRST = 16  # sentences with an n-gram that are compared before those with the next one
_COUNT_BITS = 18  # counts of n-grams are cut off there
_MAX_COUNTERS = 1 << 24  # n-grams that share a counter only look more frequent than they are


def similarity(a: Sentence, b: Sentence) -> float:
    """Compute the similarity of two sentences; the head of the module defines it."""
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity([*map(folded, a.tokens)], [*map(folded, b.tokens)])


class TokenRows:
    """Sentences as rows of token ids."""

    def __init__(self, sentences: Iterable[Sentence], token_id: Callable[[str], int]) -> None:
        import numpy as np

        self._flat = array("I")
        ends = array("q", [0])
        for sentence in sentences:
            self._flat.extend(map(token_id, sentence.tokens))
            ends.append(len(self._flat))
        self._ends = np.array(ends)
        self.lengths: Numbers = np.diff(self._ends)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lengths)

    def __getitem__(self, row: int) -> array[int]:
        """Return the token ids of a row."""
        return self._flat[self._ends[row] : self._ends[row + 1]]

    def hashes(self) -> Numbers:
        """A hash of each row in 64 bits."""
        import numpy as np

        flat = np.frombuffer(self._flat, np.uint32) if self._flat else np.zeros(0, np.uint32)
        hashes = np.zeros(len(self), np.uint64)
        for start in range(0, len(self), 1 << _ROW_BITS):
            starts, ends = self._ends[start : start + (1 << _ROW_BITS)], self._ends[start + 1 :][: 1 << _ROW_BITS]
            begin = starts[0]
            positions = np.arange(begin, ends[-1]) - np.repeat(starts[: len(ends)], ends - starts[: len(ends)])
            mixed = _mix((positions.astype(np.uint64) << np.uint64(32)) | flat[begin : ends[-1]])
            hashes[start : start + len(ends)] = np.add.reduceat(mixed, starts[: len(ends)] - begin)
        return hashes

    def grams(self, numbers: Numbers, size: int) -> tuple[Numbers, Numbers]:
        """The n-grams of rows, with marks before and after each."""
        import numpy as np

        flat = np.frombuffer(self._flat, np.uint32)
        lengths = self.lengths[numbers]
        padded = lengths + 2 * (size - 1)
        padded_starts = np.cumsum(padded) - padded
        tokens = np.full(int(padded.sum()), 0xFFFFFFFF, np.uint64)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        tokens[np.repeat(padded_starts + size - 1, lengths) + within] = flat[
            np.repeat(self._ends[numbers], lengths) + within
        ]
        hashes = _mix(tokens)
        for shift in range(1, size):
            hashes = _mix(hashes[:-1] + tokens[shift:])
        counts = lengths + size - 1
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.repeat(padded_starts, counts) + within
        return np.repeat(np.arange(len(numbers)), counts), hashes[starts] >> np.uint64(32)


def _mix(values: Numbers) -> Numbers:
    """Numbers whose bits depend on all bits of others (the finaliser of SplitMix64)."""
    import numpy as np

    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class NearDuplicateIndex:
    """Sentences among which near-duplicates of others are looked up, without comparing every pair."""

    # The result is that of comparing every pair. From a threshold of 0.7 on, the time for text grows in proportion to
    # the number of sentences, or a little faster; below, many sentences are compared.

    def __init__(self, sentences: Iterable[Sentence], *, min_similarity: float) -> None:
        if not 0 <= min_similarity <= 1:
            raise ParameterError(f"min_similarity must be between 0 and 1, not {min_similarity!r}")
        import numpy as np

        self._least = min_similarity - _ROUNDING
        self._gram_size = next(size for least, size in _GRAM_SIZES if min_similarity >= least)
        ids: dict[str, int] = {}
        self._rows = TokenRows(sentences, lambda token: ids.setdefault(folded(token), len(ids) + 1))
        self._token_ids = ids
        self._compared = 0  # pairs, for tests
        hashes = self._rows.hashes()
        self._hashes, self._firsts = np.unique(hashes, return_index=True)
        # Of equal sentences only the first is listed.
        is_listed = np.zeros(len(hashes), bool)
        is_listed[self._firsts] = True
        repeats = np.flatnonzero(~is_listed)
        same = self._firsts[np.searchsorted(self._hashes, hashes[repeats])]
        for row, first in zip(repeats.tolist(), same.tolist(), strict=True):
            is_listed[row] = self._rows[row] != self._rows[first]  # two sentences may have one hash
        self._is_repeat = ~is_listed
        # Sorted by length, those of similar lengths are neighbours in the list of each n-gram.
        listed = np.flatnonzero(is_listed)
        self._listed = listed[np.argsort(self._rows.lengths[listed], kind="stable")]
        self._listed_lengths = self._rows.lengths[self._listed]
        self._entries = self._make_entries() if self._least > 0 else np.zeros(0, np.uint64)

    def contains(self, sentences: Iterable[Sentence], progress: Callable[[int, int], None] | None = None) -> list[bool]:
        """Return for each sentence whether the index has a near-duplicate of it, or the sentence itself."""
        import numpy as np

        queries = TokenRows(sentences, lambda token: self._token_ids.get(folded(token), _UNKNOWN))
        found = np.zeros(len(queries), bool)
        if self._least <= 0 or not len(self._rows):
            found[:] = len(self._rows) > 0
            return found.tolist()
        hashes = queries.hashes()
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        equal = np.flatnonzero(self._hashes[places] == hashes)
        for row, first in zip(equal.tolist(), self._firsts[places[equal]].tolist(), strict=True):
            found[row] = queries[row] == self._rows[first]
        self._search(queries, np.flatnonzero(~found), found, False, progress)
        return found.tolist()

    def repeats(self, progress: Callable[[int, int], None] | None = None) -> list[bool]:
        """Return for each sentence of the index whether an earlier one is a near-duplicate of it."""
        import numpy as np

        found = self._is_repeat.copy()
        if self._least <= 0:
            found[1:] = True
            return found.tolist()
        self._search(self._rows, np.sort(self._listed), found, True, progress)
        return found.tolist()

    def _make_entries(self) -> Numbers:
        """The lists of all n-grams: the hash of the n-gram above the place of the sentence in `_listed`, sorted."""
        import numpy as np

        # At least twice as many counters as n-grams keep most of them apart.
        total = int((self._listed_lengths + self._gram_size - 1).sum())
        counters = min(_MAX_COUNTERS, 1 << max(8, (2 * total).bit_length()))
        self._counts = np.zeros(counters, np.uint32)
        for part in self._parts(self._rows, self._listed):
            _, hashes = self._rows.grams(self._listed[part], self._gram_size)
            np.add.at(self._counts, hashes & np.uint32(counters - 1), np.uint32(1))
        entries = array("Q")  # grows in place, where joining arrays takes their memory twice
        for part in self._parts(self._rows, self._listed):
            places, hashes = self._prefixes(self._rows, self._listed[part])
            entries.frombytes(((hashes << np.uint64(32)) | (places + part.start).astype(np.uint64)).tobytes())
        if not entries:
            return np.zeros(0, np.uint64)
        joined = np.frombuffer(entries, np.uint64)
        joined.sort()
        return joined

    @staticmethod
    def _parts(rows: TokenRows, numbers: Numbers) -> Iterator[slice]:
        """Slices of sentences whose n-grams are in memory at once."""
        import numpy as np

        ends = np.cumsum(rows.lengths[numbers])
        start = 0
        while start < len(numbers):
            before = int(ends[start - 1]) if start else 0
            end = int(np.searchsorted(ends, before + _TOKENS, "right"))
            end = max(start + 1, min(end, start + (1 << _ROW_BITS)))
            yield slice(start, end)
            start = end

    def _lengths_of_near(self, lengths: Numbers) -> tuple[Numbers, Numbers]:
        """The smallest and the largest length of near-duplicates of sentences of some lengths."""
        import numpy as np

        # The common subsequence is at most as long as the shorter sentence.
        ratio = self._least / (2 - self._least)
        lowest = np.maximum(1, np.ceil(lengths * ratio - _MARGIN))
        return lowest.astype(np.int64), np.floor(lengths / ratio + _MARGIN).astype(np.int64)

    def _prefixes(self, rows: TokenRows, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """The first n-grams of sentences, one of which any near-duplicate shares."""
        # Let L be the length of the common subsequence, and s the sum of both lengths. Both sentences, with k - 1 marks
        # at either end, have L + k - 1 runs of k neighbours in the subsequence with the marks. Each of the s - 2 L
        # other tokens interrupts at most k - 1 of these, all others are common n-grams: at least L + k - 1 - (k - 1) (s
        # - 2 L). So it suffices to keep one n-gram more than the sentence has besides so many.
        import numpy as np

        size = self._gram_size
        places, hashes = rows.grams(numbers, size)
        counts = np.minimum(self._counts[hashes & np.uint32(len(self._counts) - 1)], (1 << _COUNT_BITS) - 1)
        keys = (places.astype(np.uint64) << np.uint64(64 - _ROW_BITS)) | (counts.astype(np.uint64) << np.uint64(32))
        keys |= hashes
        keys.sort()
        lengths = rows.lengths[numbers]
        # The bound is linear in s, so one end of the range of lengths has the smallest.
        bounds = []
        for other in self._lengths_of_near(lengths):
            total = lengths + other
            common = self._least * total / 2
            bounds.append(common + (size - 1) - (size - 1) * (total - 2 * common))
        shared = np.maximum(1, np.ceil(np.minimum(*bounds) - _MARGIN)).astype(np.int64)
        number_of_grams = lengths + size - 1
        last = np.cumsum(number_of_grams) - np.minimum(shared, number_of_grams)
        # An n-gram that occurs several times counts as often; where the last one kept does, all of it is kept.
        is_kept = keys <= np.repeat(keys[last], number_of_grams)
        is_kept[1:] &= keys[1:] != keys[:-1]
        keys = keys[is_kept]
        return (keys >> np.uint64(64 - _ROW_BITS)).astype(np.int64), keys & np.uint64(0xFFFFFFFF)

    def _search(
        self,
        queries: TokenRows,
        numbers: Numbers,
        found: Numbers,
        only_earlier: bool,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Set in `found` which of some sentences have a near-duplicate in the index."""
        import numpy as np

        for part in self._parts(queries, numbers):
            asked = numbers[part]
            places, hashes = self._prefixes(queries, asked)
            shortest, longest = self._lengths_of_near(queries.lengths[asked])
            first = np.searchsorted(self._listed_lengths, shortest, "left").astype(np.uint64)
            end = np.searchsorted(self._listed_lengths, longest, "right").astype(np.uint64)
            lists = hashes << np.uint64(32)
            starts = np.searchsorted(self._entries, lists | first[places])
            ends = np.searchsorted(self._entries, lists | end[places])
            rows = asked[places]
            step = _FIRST
            while len(rows):
                # Most near-duplicates are among the first, so few sentences are left for the next round.
                is_open = ~found[rows] & (starts < ends)
                rows, starts, ends = rows[is_open], starts[is_open], ends[is_open]
                taken = np.minimum(ends - starts, step)
                groups = np.cumsum(taken) // _PAIRS
                for group in np.unique(groups):
                    now = np.flatnonzero((groups == group) & ~found[rows])
                    self._compare(queries, rows[now], starts[now], taken[now], found, only_earlier)
                starts = starts + taken
                step = min(4 * step, _PAIRS)
            if progress is not None:
                progress(part.stop, len(numbers))

    def _compare(
        self, queries: TokenRows, rows: Numbers, starts: Numbers, counts: Numbers, found: Numbers, only_earlier: bool
    ) -> None:
        """Compare sentences with those of runs of entries, and set in `found` which have a near-duplicate there."""
        import numpy as np
        from rapidfuzz.distance import Indel
        from rapidfuzz.process import cpdist

        offsets = np.cumsum(counts) - counts
        positions = np.repeat(starts - offsets, counts) + np.arange(int(counts.sum()))
        others = self._listed[(self._entries[positions] & np.uint64(0xFFFFFFFF)).astype(np.int64)]
        rows = np.repeat(rows, counts)
        if only_earlier:
            is_earlier = others < rows
            rows, others = rows[is_earlier], others[is_earlier]
        pairs = np.unique((rows.astype(np.uint64) << np.uint64(32)) | others.astype(np.uint64))
        if not len(pairs):
            return
        rows, others = (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
        self._compared += len(pairs)
        one = {row: queries[row] for row in np.unique(rows).tolist()}
        other = {row: self._rows[row] for row in np.unique(others).tolist()}
        scores = cpdist(
            [one[row] for row in rows.tolist()],
            [other[row] for row in others.tolist()],
            scorer=Indel.normalized_similarity,
            score_cutoff=max(0.0, self._least - _SLACK),
            dtype=np.float64,
        )
        found[rows[scores >= self._least]] = True


def select_distinct(sentences: Iterable[Sentence], number: int, *, max_similarity: float) -> list[int]:
    """Select the first sentences of which no two are near-duplicates."""
    chosen: list[Sentence] = []
    indices: list[int] = []
    for i, sentence in enumerate(sentences):
        if len(chosen) == number:
            break
        if all(similarity(sentence, other) <= max_similarity for other in chosen):
            chosen.append(sentence)
            indices.append(i)
    return indices
