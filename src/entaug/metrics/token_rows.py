"""Sentences as rows of token ids, with hashes of whole rows and of n-grams."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from entaug.core.data import Sentence

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int], np.dtype[Any]]

__all__ = ["ROW_BITS", "UNKNOWN", "TokenIds", "TokenRows"]

ROW_BITS = 14
"""The logarithm to base 2 of the number of sentences whose n-grams are in memory at once."""
UNKNOWN = 0
"""The id of tokens that are not in an index."""


class TokenIds(dict[str, int]):
    """Ids of tokens, above 0; tokens that differ in nothing but case have the same."""

    def __init__(self) -> None:
        self._folded: dict[str, int] = {}

    def __missing__(self, token: str) -> int:
        """Give an id to a new token."""
        number = self[token] = self._folded.setdefault(token.casefold(), len(self._folded) + 1)
        return number

    def find(self, token: str) -> int:
        """Return the id of a token, or `UNKNOWN`."""
        return self.get(token) or self._folded.get(token.casefold(), UNKNOWN)


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
        for start in range(0, len(self), 1 << ROW_BITS):
            starts, ends = self._ends[start : start + (1 << ROW_BITS)], self._ends[start + 1 :][: 1 << ROW_BITS]
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
