"""Low-resource subsets of a corpus, drawn as in the literature.

Subsets keep the order of the corpus, and depend on the seed only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Literal, get_args

from entaug.core.data import Sentence
from entaug.core.rng import Streams
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.files.streams import decode_text, read_bytes

Strategy = Literal["progressive", "first", "fraction", "stratified"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
"""Names of the strategies, see `draw`."""


def draw(strategy: str, corpus: Sequence[Sentence], sizes: Iterable[float], seed: int = 0) -> dict[int, list[Sentence]]:
    """Draw subsets of several sizes."""
    # progressive: random subsets, each a part of the next larger one (CASSI: 100, 250, 500, 750, 1k, 2k, 4k)
    # first: the first sentences (Sutiono and Hahn-Powell 2022: 50, 150, 500)
    # fraction: shares or numbers of the sentences, at random (Hu et al. 2023, EnTDA: 10 %)
    # stratified: each entity type has about the same share of sentences as in the corpus (ACLM: 100, 200, 500, 1000)
    if strategy not in STRATEGIES:
        raise UnknownNameError("strategy of drawing subsets:", strategy, STRATEGIES)
    if strategy == "fraction":
        sizes = [_size_of_share(corpus, size) if type(size) is float else size for size in sizes]
    checked = _check_sizes(corpus, sizes)
    places = list(range(len(corpus)))
    if strategy == "progressive":  # a subset does not depend on which other sizes are drawn
        _stream(seed, strategy).shuffle(places)
    subsets: dict[int, list[int]] = {}
    for n in reversed(checked):
        if strategy == "fraction":
            subsets[n] = _stream(seed, strategy, n).sample(places, n)
        elif strategy == "stratified":  # each is drawn from the next larger one
            subsets[n] = places = sorted(_draw_stratified(corpus, places, n, _stream(seed, strategy, n)))
        else:
            subsets[n] = places[:n]
    return {n: [corpus[i] for i in sorted(subsets[n])] for n in checked}


def _draw_stratified(corpus: Sequence[Sentence], pool: list[int], n: int, rng: Random) -> list[int]:
    """Draw the indices of `n` sentences of the pool."""
    # Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011): the rarest of the remaining types is next; each
    # sentence with it goes to the part that lacks most of it, the subset or the rest. Here parts have exact sizes, so a
    # full part gets no more.
    sentences_of: dict[str, list[int]] = {}
    types: dict[int, set[str]] = {}
    for i in pool:
        types[i] = {mention.label for mention in corpus[i].mentions}
        for label in sorted(types[i]):
            sentences_of.setdefault(label, []).append(i)
    # Part 0 is the subset, part 1 the rest: free places, and sentences of each type that they still need.
    free = [n, len(pool) - n]
    share = n / len(pool)
    needed = {label: [share * len(members), (1 - share) * len(members)] for label, members in sentences_of.items()}
    remaining = {label: len(members) for label, members in sentences_of.items()}
    subset: list[int] = []
    unassigned = set(pool)
    while labels := sorted(label for label, count in remaining.items() if count):
        fewest = min(remaining[label] for label in labels)
        label = rng.choice([label for label in labels if remaining[label] == fewest])
        members = [i for i in sentences_of[label] if i in unassigned]
        rng.shuffle(members)
        for i in members:
            needs = {part: (needed[label][part], free[part]) for part in (0, 1) if free[part]}
            most = max(needs.values())
            part = rng.choice([part for part, need in needs.items() if need == most])
            unassigned.discard(i)
            free[part] -= 1
            if part == 0:
                subset.append(i)
            for other in types[i]:
                needed[other][part] -= 1
                remaining[other] -= 1
    return [*subset, *rng.sample(sorted(unassigned), free[0])]


def select(corpus: Sequence[Sentence], ids: Path, size: int) -> list[Sentence]:
    """Return the sentences of a corpus that a file names by their digests (`Sentence.fingerprint`), one a line."""
    # A digest that is there twice names the next sentence of the same tokens and mentions; lines with # are comments.
    places: dict[str, list[int]] = defaultdict(list)
    for i, sentence in enumerate(corpus):
        places[sentence.fingerprint().hex()].append(i)
    chosen: list[int] = []
    for number, line in enumerate(decode_text(read_bytes(ids), ids).splitlines(), start=1):
        if not (digest := line.partition("#")[0].strip()):
            continue
        if not places.get(digest):
            message = f"the corpus has no sentence {digest!r}, or not as often as it is named"
            remedy = "take the release of the corpus that the ids are of, with the same tokens and mentions"
            raise InputError(message, path=str(ids), line=number, remedy=remedy)
        chosen.append(places[digest].pop(0))
    if len(chosen) != size:
        message = f"names {len(chosen):,} sentences, and the subset has {size:,}"
        raise InputError(message, path=str(ids), remedy="make the size and the number of ids agree")
    return [corpus[i] for i in sorted(chosen)]


def rest(corpus: Iterable[Sentence], *subsets: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences whose tokens are in none of the subsets, from which a test set may be drawn."""
    # All copies of a sentence that is in a subset are excluded, so that no test sentence was seen in training.
    seen = {sentence.tokens for subset in subsets for sentence in subset}
    return [sentence for sentence in corpus if sentence.tokens not in seen]


def _check_sizes(corpus: Sequence[Sentence], sizes: Iterable[float]) -> list[int]:
    """Check sizes, and return them sorted and without duplicates."""
    checked = set()
    for size in sizes:
        if type(size) is not int or size < 1:
            raise ParameterError(
                f"the size of a subset must be an integer of at least 1, not {size!r}",
                remedy="use the strategy fraction for shares" if 0 < size < 1 else None,
            )
        checked.add(size)
    if not checked:
        raise ParameterError("there are no sizes", remedy="give the number of sentences of a subset")
    if max(checked) > len(corpus):
        message = f"a subset of {max(checked):,} sentences is larger than the corpus of {len(corpus):,}"
        raise InputError(message, remedy="use a smaller size")
    return sorted(checked)


def _size_of_share(corpus: Sequence[Sentence], share: float) -> int:
    if not 0 < share <= 1:
        raise ParameterError(f"share must be above 0 and at most 1, not {share!r}", parameter="share")
    n = int(share * len(corpus) + 0.5)
    if n < 1:
        message = f"a share of {share} of {len(corpus):,} sentences is not even one"
        raise InputError(message, remedy="use a larger share")
    return n


def _stream(seed: int, strategy: str, n: int = 0) -> Random:
    return Streams(seed, f"subset-{strategy}").stream(str(n), 1)
