"""Independent random streams for each sentence and copy.

Every draft uses a stream of its own, derived from (seed, method, sentence key, copy). The output is therefore the same
for any batch size, number of workers and order of the file, also after an interruption; global random state is neither
read nor changed.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from random import Random


class Streams:
    """The random streams of one method under one seed."""

    def __init__(self, seed: int, method: str) -> None:
        self._of = seed, method
        self._prefix = blake2b(f"{seed}\0{method}\0".encode(), digest_size=16)

    def __reduce__(self) -> tuple[type[Streams], tuple[int, str]]:
        """Hash objects cannot be pickled, which worker processes need."""
        return Streams, self._of

    def stream(self, key: str, copy: int) -> Random:
        """Create the generator for one sentence and one copy."""
        digest = self._prefix.copy()
        digest.update(f"{copy}\0{key}".encode("utf-8", "surrogatepass"))
        return Random(int.from_bytes(digest.digest(), "little"))


def sample_positions(rng: Random, n: int, p: float) -> list[int]:
    """Sample positions below `n` independently with probability `p`, conditioned on at least one."""
    # Rejection sampling would have the same distribution; this needs no repetition, as it jumps from one sampled
    # position to the next (a geometric distance).
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
