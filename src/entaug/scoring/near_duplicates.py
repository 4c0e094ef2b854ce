"""How near sentences are by their tokens, and which are near-duplicates.

The similarity of two sentences is 2 L / (m + n): m and n are their numbers of tokens, and L is the length of the
longest common subsequence of their tokens without regard to case. This is the normalised indel similarity: 1 less the
insertions and deletions that turn one into the other, divided by all tokens. It is 1 for equal tokens and 0 where none
is shared; in sentences of one length a replaced token costs its share, and words in another order count only as far as
they keep it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from entaug.data import Sentence
from entaug.errors import ParameterError

__all__ = ["nearest", "similarity"]

_CELLS = 1 << 21  # similarities held at a time
_ROUNDING = 1e-9  # 2/3 has more than one spelling
_SLACK = 1e-4  # rapidfuzz drops some pairs that lie exactly on its cutoff, 4/5 for one


def similarity(a: Sentence, b: Sentence) -> float:
    """How near two sentences are, from 0 to 1; see the head of the module.

    Example:
        >>> similarity(Sentence("Ada left Rome".split()), Sentence("ada left London".split()))
        0.6666666666666667
    """
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity([t.casefold() for t in a.tokens], [t.casefold() for t in b.tokens])


def nearest(
    sentences: Sequence[Sentence],
    others: Sequence[Sentence] | None = None,
    *,
    least: float,
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[int, float] | None]:
    """The nearest of other sentences for each.

    Every pair is compared, which takes about 30 nanoseconds for sentences of ordinary length: tokens are numbers here,
    and what lengths alone put below `least` is not looked at.

    Args:
        sentences: for which a neighbour is wanted.
        others: among which. None for those *before* each in `sentences`: so of sentences that are near one another the
            first has no neighbour.
        least: the smallest similarity that counts, from 0 to 1.
        progress: told how many sentences are done, and of how many.

    Returns:
        For each sentence the position of its nearest other and their similarity, of equally near ones the first; None
        where none is as near as `least`.

    Raises:
        ParameterError: `least` lies outside.

    Example:
        >>> texts = [Sentence(text.split()) for text in ("a b c d", "A b c e", "x y")]
        >>> nearest(texts, least=0.7)
        [None, (0, 0.75), None]
        >>> nearest(texts[2:], texts, least=0.7)
        [(2, 1.0)]
    """
    if not 0 <= least <= 1:
        raise ParameterError(f"least must be between 0 and 1, not {least!r}")
    import numpy as np
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    numbers: dict[str, int] = {}

    def numbered(some: Sequence[Sentence]) -> list[array[int]]:
        rows = ([t.casefold() for t in sentence.tokens] for sentence in some)
        return [array("I", [numbers.setdefault(token, len(numbers)) for token in row]) for row in rows]

    rows = numbered(sentences)
    columns = rows if others is None else numbered(others)
    found: list[tuple[int, float] | None] = [None] * len(rows)
    if not columns:
        return found
    border = least - _ROUNDING
    step = max(1, _CELLS // len(columns))
    for start in range(0, len(rows), step):
        end = min(start + step, len(rows))
        choices = columns[:end] if others is None else columns
        scores = cdist(
            rows[start:end],
            choices,
            scorer=Indel.normalized_similarity,
            score_cutoff=max(0.0, least - _SLACK),
            dtype=np.float64,
        )
        if others is None:  # a sentence is compared with earlier ones alone
            scores[np.arange(len(choices)) >= np.arange(start, end)[:, None]] = -1
        # What lies far below is given as 0; argmax takes the first of equals.
        for row, (place, score) in enumerate(zip(scores.argmax(1).tolist(), scores.max(1).tolist(), strict=True)):
            if score >= border:
                found[start + row] = (place, score)
        if progress is not None:
            progress(end, len(rows))
    return found
