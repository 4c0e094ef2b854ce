"""Independent random streams for each sentence and copy.

Every draft uses a stream of its own, derived from (seed, method, sentence key, copy). The output is therefore the same
for any batch size, number of workers and order of the file, also after an interruption; global random state is neither
read nor changed.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from random import Random

__all__ = ["Streams", "sample_positions"]


class Streams:
    """The random streams of one method under one seed.

    Args:
        seed: any integer.
        method: the registry name of the method, so that two methods never share a stream.

    Example:
        >>> streams = Streams(13, "mr")
        >>> streams.stream("s1", 1).random() == Streams(13, "mr").stream("s1", 1).random()
        True
        >>> streams.stream("s1", 1).random() == streams.stream("s1", 2).random()
        False
    """

    def __init__(self, seed: int, method: str) -> None:
        self._of = seed, method
        self._prefix = blake2b(f"{seed}\0{method}\0".encode(), digest_size=16)

    def __reduce__(self) -> tuple[type[Streams], tuple[int, str]]:
        """Hash objects cannot be pickled, which worker processes need."""
        return Streams, self._of

    def stream(self, key: str, copy: int) -> Random:
        """Create the generator for one sentence and one copy.

        Args:
            key: the key of the sentence, see `Sentence.key`.
            copy: the number of the copy, from 1, or the epoch of an `OnlineDataset`.

        Returns:
            A `random.Random` that shares no state with any other.
        """
        digest = self._prefix.copy()
        digest.update(f"{copy}\0{key}".encode("utf-8", "surrogatepass"))
        return Random(int.from_bytes(digest.digest(), "little"))


def sample_positions(rng: Random, n: int, p: float) -> list[int]:
    """Sample positions below `n` independently with probability `p`, conditioned on at least one.

    Rejection sampling would have the same distribution; this needs no repetition, as it jumps from one sampled position
    to the next (a geometric distance).

    Args:
        rng: the random stream.
        n: the number of positions.
        p: the probability of each position, in [0, 1].

    Returns:
        Increasing positions; empty only when `n` or `p` is 0.

    Example:
        >>> sample_positions(Random(1), 5, 1.0)
        [0, 1, 2, 3, 4]
        >>> len(sample_positions(Random(1), 5, 0.001))
        1
    """
    if n <= 0 or p <= 0:
        return []
    if p >= 1:
        return list(range(n))
    log_miss = math.log1p(-p)
    # The first position follows the geometric distribution cut off at n: this is the "at least one".
    position = int(math.log1p(rng.random() * math.expm1(n * log_miss)) / log_miss)
    drawn = []
    random, log1p = rng.random, math.log1p
    while position < n:
        drawn.append(position)
        gap = log1p(-random()) / log_miss
        if gap >= n:  # with a tiny p it may be infinite
            break
        position += 1 + int(gap)
    # Rounding may push the very last value of the first draw to n itself.
    return drawn or [n - 1]
