"""Random streams that depend on what is rewritten, never on when or where.

Every rewriting draws from a stream of its own, derived from (seed, method, sentence key, copy). So the output
is the same whatever the batch size, the number of workers, the order of the file or an interruption, and
no global random state is read or touched.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from random import Random

__all__ = ["Streams", "some_of"]


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
        self._prefix = blake2b(f"{seed}\0{method}\0".encode(), digest_size=16)

    def stream(self, key: str, copy: int) -> Random:
        """A fresh generator for one sentence and one copy.

        Args:
            key: what identifies the sentence (see `Sentence.key`).
            copy: the 1-based number of the copy, or the epoch when drawing on line.

        Returns:
            A `random.Random` that shares no state with any other.
        """
        digest = self._prefix.copy()
        digest.update(f"{copy}\0{key}".encode("utf-8", "surrogatepass"))
        return Random(int.from_bytes(digest.digest(), "little"))


def some_of(rng: Random, n: int, p: float) -> list[int]:
    """Positions among `n` drawn with probability `p` each, given that at least one is drawn.

    Drawing again until something is drawn has the same distribution; this does it in one go, by jumping from
    one drawn position to the next (a geometric distance).

    Args:
        rng: the stream to draw from.
        n: how many positions there are.
        p: the probability of each, in [0, 1].

    Returns:
        Increasing positions; empty only when `n` or `p` is 0.

    Example:
        >>> some_of(Random(1), 5, 1.0)
        [0, 1, 2, 3, 4]
        >>> len(some_of(Random(1), 5, 0.001))
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
        if gap >= n:  # with a tiny p it may be infinite, which is no whole number
            break
        position += 1 + int(gap)
    # Rounding may push the very last value of the first draw to n itself.
    return drawn or [n - 1]
