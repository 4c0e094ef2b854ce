"""Which texts people rate, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from entaug.core.data import Sentence
from entaug.core.rng import Streams
from entaug.errors import ParameterError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.metrics.quality import GOLD
from entaug.report.ratings.scales import Scale

__all__ = ["RatedItem", "sample_items"]

_STREAMS = "rate"  # a name that no method has, so that no method shares these random numbers


@dataclass(frozen=True)
class RatedItem:
    """A unit of rating: a text, or all texts of an original."""

    method: str
    texts: tuple[Sentence, ...]
    original: Sentence | None
    scales: tuple[str, ...]


def sample_items(
    corpus: AugmentedCorpus, scales: Sequence[Scale], *, sample: int, with_gold: bool = False, seed: int = 0
) -> tuple[list[RatedItem], list[str]]:
    """Sample the texts of each method and shuffle them."""
    # Methods get texts of the same originals as far as possible, and of many originals before several of one. Gold
    # sentences are others than these originals as far as possible, because a rater would recognise them. The result
    # depends neither on the order of the files nor on that of their sentences.
    streams = Streams(seed, _STREAMS)

    def rank(sentence: Sentence) -> tuple[float, str]:
        return streams.stream(sentence.key, 0).random(), sentence.fingerprint().hex()

    def place(item: RatedItem) -> tuple[float, str]:
        key = "\0".join([item.method, *(text.fingerprint().hex() for text in item.texts)])
        return streams.stream(key, 1).random(), key

    items: list[RatedItem] = []
    notes: list[str] = []
    for method, pairs in corpus.methods.items():
        groups = [
            sorted(group, key=lambda pair: rank(pair.augmented))
            for group in sorted(_groups(pairs), key=lambda group: rank(group[0].source or group[0].augmented))
        ]
        draw = _draw_groups if scales[0].judges == "group" else _draw_texts
        drawn = list(draw(method, groups, sample, scales, notes))
        if not drawn:
            notes.append(f"{method}: no text can be rated on these scales")
        items += drawn
    if not items:
        message = f"there is no augmented sentence to rate{f' ({notes[0]})' if notes else ''}"
        raise ParameterError(message, remedy="name files that entaug augment wrote, and with --gold what was augmented")
    if with_gold:
        seen = {id(item.original) for item in items}
        ranked = sorted(corpus.gold, key=lambda sentence: (id(sentence) in seen, rank(sentence)))
        items += _gold_items(corpus, ranked[:sample], scales)
    return sorted(items, key=place), notes


def _groups(pairs: Iterable[AugmentedPair]) -> Iterator[list[AugmentedPair]]:
    """The accepted texts of each original; texts without a known original by themselves."""
    groups: dict[object, list[AugmentedPair]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        if pair.rejection is None:
            has_original = pair.source is not None and not pair.provenance.details.get("unconditioned")
            source = pair.source if has_original else None
            known = AugmentedPair(pair.augmented, source)
            groups[id(pair.source) if has_original else (number,)].append(known)
    yield from groups.values()


def _draw_texts(
    method: str, groups: Sequence[Sequence[AugmentedPair]], sample: int, scales: Sequence[Scale], notes: list[str]
) -> Iterator[RatedItem]:
    """The first text of each original, then the second of each, until there are enough; no text twice."""
    of_all = tuple(scale.name for scale in scales if scale.judges == "text")
    of_pairs = tuple(scale.name for scale in scales)
    seen: set[bytes] = set()
    is_alone = False
    for pair in chain.from_iterable(zip_longest(*groups)):
        if pair is None or (fingerprint := pair.augmented.fingerprint()) in seen:
            continue
        asked = of_all if pair.source is None else of_pairs
        is_alone |= asked != of_pairs
        if asked:
            seen.add(fingerprint)
            yield RatedItem(method, (pair.augmented,), pair.source, asked)
        if len(seen) == sample:
            break
    if is_alone:
        notes.append(f"{method}: texts without a known original are not compared with one")


def _draw_groups(
    method: str, groups: Sequence[Sequence[AugmentedPair]], sample: int, scales: Sequence[Scale], notes: list[str]
) -> Iterator[RatedItem]:
    """Originals with all their texts, until there are enough texts; a single text has no diversity."""
    count = single = 0
    for group in groups:
        if len(group) < 2 or group[0].source is None:
            single += 1
        elif count < sample:
            count += len(group)
            texts = tuple(pair.augmented for pair in group)
            yield RatedItem(method, texts, group[0].source, tuple(scale.name for scale in scales))
    if single:
        notes.append(f"{method}: {single:,} texts are the only ones of their original and are not rated")


def _gold_items(corpus: AugmentedCorpus, sentences: Sequence[Sentence], scales: Sequence[Scale]) -> list[RatedItem]:
    asked = tuple(scale.name for scale in scales if scale.judges == "text")
    if not asked:
        message = f"gold sentences cannot be rated on the scale {scales[0].name!r}, which compares texts"
        raise ParameterError(message, remedy="leave gold sentences out, or add a scale such as fluent")
    if not sentences:
        raise ParameterError("there is no gold sentence", remedy="name the file that was augmented with --gold")
    if GOLD in corpus.methods:
        raise ParameterError(f"a method has the name {GOLD!r}", remedy="rename its file, or leave gold sentences out")
    return [RatedItem(GOLD, (sentence,), None, asked) for sentence in sentences]
