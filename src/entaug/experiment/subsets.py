"""Low-resource subsets of a corpus, as papers draw them.

Every way keeps the order of the corpus within a subset and depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from entaug.data import Sentence
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.rng import Streams

__all__ = ["DRAWS", "draw", "first", "fraction", "progressive", "rest", "stratified"]


def first(corpus: Sequence[Sentence], n: int) -> list[Sentence]:
    """The first sentences (Sutiono and Hahn-Powell 2022: 50, 150, 500).

    Args:
        corpus: the whole.
        n: how many.

    Raises:
        ParameterError: `n` is below 1.
        InputError: the corpus is smaller than that.

    Example:
        >>> [s.text for s in first([Sentence([word]) for word in "abc"], 2)]
        ['a', 'b']
    """
    _checked(corpus, [n])
    return list(corpus[:n])


def fraction(corpus: Sequence[Sentence], share: float, seed: int = 0) -> list[Sentence]:
    """A share of the sentences, drawn at random (Hu et al. 2023, EnTDA: 10 %).

    Args:
        corpus: the whole.
        share: how large a part, above 0 and at most 1; rounded to whole sentences.
        seed: of the drawing.

    Raises:
        ParameterError: the share cannot be.
        InputError: not even one sentence falls to it.

    Example:
        >>> [s.text for s in fraction([Sentence([word]) for word in "abcdefgh"], 0.25, seed=1)]
        ['d', 'f']
    """
    n = _of_share(corpus, share)
    return _pick(corpus, _stream(seed, "fraction", n).sample(range(len(corpus)), n))


def progressive(corpus: Sequence[Sentence], sizes: Iterable[int], seed: int = 0) -> dict[int, list[Sentence]]:
    """Random subsets, every smaller one drawn from the next larger (CASSI: 100, 250, 500, 750, 1k, 2k, 4k).

    A subset does not depend on which other sizes are asked for.

    Args:
        corpus: the whole.
        sizes: how many sentences each has.
        seed: of the drawing.

    Returns:
        The subsets by size, smallest first.

    Raises:
        ParameterError: a size is below 1, or there is none.
        InputError: the corpus is smaller than a size.

    Example:
        >>> drawn = progressive([Sentence([word]) for word in "abcdef"], [2, 4], seed=1)
        >>> {size: " ".join(s.text for s in subset) for size, subset in drawn.items()}
        {2: 'b d', 4: 'b c d f'}
    """
    # The beginnings of one random order: each is a random part of the next.
    sizes = _checked(corpus, sizes)
    order = list(range(len(corpus)))
    _stream(seed, "progressive").shuffle(order)
    return {n: _pick(corpus, order[:n]) for n in sizes}


def stratified(corpus: Sequence[Sentence], sizes: int | Iterable[int], seed: int = 0) -> dict[int, list[Sentence]]:
    """Subsets in which each entity type has about the share of sentences it has in the whole.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011; ACLM: 100, 200, 500, 1000): of the types still to
    be dealt with, the rarest is next; each sentence that holds it goes to the part that lacks it most, the subset or
    the rest. Here parts have exact sizes, so one that is full gets no more. Every smaller subset is drawn from the
    next larger.

    Args:
        corpus: the whole.
        sizes: how many sentences each has.
        seed: of the drawing.

    Returns:
        The subsets by size, smallest first.

    Raises:
        ParameterError: a size is below 1, or there is none.
        InputError: the corpus is smaller than a size.

    Example:
        >>> from entaug.data import Mention
        >>> corpus = [Sentence([word], [Mention(word, [(0, 1)])]) for word in "aabbaabbaabb"]
        >>> " ".join(s.text for s in stratified(corpus, 6)[6])
        'a a a b b b'
    """
    sizes = _checked(corpus, [sizes] if isinstance(sizes, int) else sizes)
    drawn: dict[int, list[Sentence]] = {}
    pool = list(range(len(corpus)))
    for n in reversed(sizes):
        pool = sorted(_stratum(corpus, pool, n, _stream(seed, "stratified", n)))
        drawn[n] = _pick(corpus, pool)
    return {n: drawn[n] for n in sizes}


def _stratum(corpus: Sequence[Sentence], pool: list[int], n: int, rng: Random) -> list[int]:
    """The positions of `n` sentences of the pool."""
    holding: dict[str, list[int]] = {}
    types: dict[int, set[str]] = {}
    for i in pool:
        types[i] = {mention.label for mention in corpus[i].mentions}
        for label in sorted(types[i]):
            holding.setdefault(label, []).append(i)
    # What each part still lacks, the subset first: sentences, and sentences of each type.
    free = [n, len(pool) - n]
    share = n / len(pool)
    lacks = {label: [share * len(held), (1 - share) * len(held)] for label, held in holding.items()}
    left = {label: len(held) for label, held in holding.items()}
    chosen: list[int] = []
    undone = set(pool)

    def put(i: int, part: int) -> None:
        undone.discard(i)
        free[part] -= 1
        if part == 0:
            chosen.append(i)
        for label in types[i]:
            lacks[label][part] -= 1
            left[label] -= 1

    while True:
        labels = sorted(label for label, count in left.items() if count)
        if not labels:
            break
        fewest = min(left[label] for label in labels)
        label = rng.choice([label for label in labels if left[label] == fewest])
        held = [i for i in holding[label] if i in undone]
        rng.shuffle(held)
        for i in held:
            open_parts = [part for part in (0, 1) if free[part]]
            most = max((lacks[label][part], free[part]) for part in open_parts)
            put(i, rng.choice([part for part in open_parts if (lacks[label][part], free[part]) == most]))
    without = sorted(undone)
    return [*chosen, *rng.sample(without, free[0])]


def rest(corpus: Iterable[Sentence], *subsets: Iterable[Sentence]) -> list[Sentence]:
    """The sentences whose tokens stand in none of the subsets: what a test set may be drawn from.

    A sentence that a corpus holds twice is left out when one of the two is in a subset: a test set should not hold
    what a tagger has learned.

    Example:
        >>> corpus = [Sentence([word]) for word in "abcab"]
        >>> [s.text for s in rest(corpus, first(corpus, 1))]
        ['b', 'c', 'b']
    """
    taken = {sentence.tokens for subset in subsets for sentence in subset}
    return [sentence for sentence in corpus if sentence.tokens not in taken]


# ------------------------------------------------------------------------------------------------------------- by name


def _first_ones(corpus: Sequence[Sentence], sizes: Sequence[float], seed: int) -> dict[int, list[Sentence]]:
    del seed
    return {n: first(corpus, n) for n in _checked(corpus, sizes)}


def _fractions(corpus: Sequence[Sentence], sizes: Sequence[float], seed: int) -> dict[int, list[Sentence]]:
    whole = [_of_share(corpus, size) if 0 < size < 1 else size for size in sizes]
    return {
        n: _pick(corpus, _stream(seed, "fraction", n).sample(range(len(corpus)), n)) for n in _checked(corpus, whole)
    }


def _progressive(corpus: Sequence[Sentence], sizes: Sequence[float], seed: int) -> dict[int, list[Sentence]]:
    return progressive(corpus, _checked(corpus, sizes), seed)


def _stratified(corpus: Sequence[Sentence], sizes: Sequence[float], seed: int) -> dict[int, list[Sentence]]:
    return stratified(corpus, _checked(corpus, sizes), seed)


DRAWS: dict[str, Callable[[Sequence[Sentence], Sequence[float], int], dict[int, list[Sentence]]]] = {
    "progressive": _progressive,
    "first": _first_ones,
    "fraction": _fractions,
    "stratified": _stratified,
}
"""Names of the ways to draw."""


def draw(how: str, corpus: Sequence[Sentence], sizes: Iterable[float], seed: int = 0) -> dict[int, list[Sentence]]:
    """Subsets of several sizes, drawn in the way of that name.

    Args:
        how: a key of `DRAWS`. All but ``"fraction"`` draw every smaller subset from the next larger.
        corpus: the whole.
        sizes: how many sentences each has; for ``"fraction"`` also shares below 1.
        seed: of the drawing; ``"first"`` draws nothing.

    Returns:
        The subsets by number of sentences, smallest first.

    Raises:
        UnknownNameError: there is no such way.
        ParameterError: a size cannot be, or there is none.
        InputError: the corpus is smaller than a size.

    Example:
        >>> list(draw("fraction", [Sentence([word]) for word in "abcdef"], [0.5, 1]))
        [1, 3]
    """
    if how not in DRAWS:
        raise UnknownNameError("way to draw subsets", how, DRAWS)
    return DRAWS[how](corpus, list(sizes), seed)


def _checked(corpus: Sequence[Sentence], sizes: Iterable[float]) -> list[int]:
    """The sizes, smallest first, each once.

    Raises:
        ParameterError: one is no whole number or below 1, or there is none.
        InputError: one is larger than the corpus.
    """
    whole = set()
    for size in sizes:
        if type(size) is not int or size < 1:
            raise ParameterError(
                f"the size of a subset must be a whole number of at least 1, not {size!r}",
                remedy="a share below 1 goes with fraction alone" if 0 < size < 1 else None,
            )
        whole.add(size)
    if not whole:
        raise ParameterError("no size is given", remedy="say how many sentences a subset shall have")
    if max(whole) > len(corpus):
        remedy = "ask for fewer"
        raise InputError(f"{max(whole):,} sentences are asked for, there are {len(corpus):,}", remedy=remedy)
    return sorted(whole)


def _of_share(corpus: Sequence[Sentence], share: float) -> int:
    if not 0 < share <= 1:
        raise ParameterError(f"share must be above 0 and at most 1, not {share!r}")
    n = int(share * len(corpus) + 0.5)
    if n < 1:
        raise InputError(f"a share of {share} of {len(corpus):,} sentences is not even one", remedy="ask for more")
    return n


def _stream(seed: int, how: str, n: int = 0) -> Random:
    return Streams(seed, f"subset-{how}").stream(str(n), 1)


def _pick(corpus: Sequence[Sentence], positions: Iterable[int]) -> list[Sentence]:
    return [corpus[i] for i in sorted(positions)]
