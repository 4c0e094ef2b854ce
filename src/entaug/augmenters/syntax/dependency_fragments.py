"""Crop and rotate: sentences cut short, and turned around, by their dependency trees (Şahin and Steedman 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, permutations
from math import factorial
from random import Random
from typing import ClassVar, NamedTuple

from entaug.augmenters.base import Augmenter, MethodInfo, Rejection, Request
from entaug.augmenters.syntax.span_exchange import closes
from entaug.backends.dependency_trees import (
    OBJECTS,
    SUBJECTS,
    base_relations,
    predicate_words,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import DependencyParser, Parse
from entaug.data import Edit, Sentence, Span
from entaug.errors import EditError
from entaug.params import PositiveInt
from entaug.rng import Streams

__all__ = ["Crop", "Rotate"]

# What belongs to its verb and goes wherever that goes. Where Universal Dependencies has the predicate at the root and
# the copula as its child, other schemes have "is" at the root: there it means nothing without its predicate.
_PREDICATES = frozenset({"attr", "acomp", "oprd", "pd"})
_WITH_THE_VERB = _PREDICATES | {"aux", "auxpass", "cop", "neg", "prt", "compound", "expl", "svp", "mark"}
_ROLES = (SUBJECTS | OBJECTS | {"dative", "da"}) - _PREDICATES
_MOVABLE = _ROLES | {"obl", "prep", "agent", "advmod", "npadvmod", "advcl", "mo"}
_POINTS = frozenset(".,:;!?…-–—")  # noqa: RUF001
_MANY = 5  # more parts than these are not all permuted: a sample is as good

_NO_TREE = Rejection("no verb at its root with subjects or objects", final=True)
_NONE_LEFT = Rejection("every way to do it was used, or would cut a mention", final=True)


class _Parts(NamedTuple):
    """A sentence as its root verb and what hangs on it.

    Args:
        core: positions of the verb and what belongs to it.
        roles: ranges of its subjects, objects and complements, in order.
        movable: ranges of all that can change places, in order.
    """

    core: frozenset[int]
    roles: tuple[Span, ...]
    movable: tuple[Span, ...]


def _parts(sentence: Sentence, parse: Parse) -> _Parts | None:
    """The parts of a sentence; None where no verb is its one root."""
    roots = [i for i, head in enumerate(parse.heads) if head == i and not _POINTS.issuperset(sentence.tokens[i])]
    if len(roots) != 1 or roots[0] not in predicate_words(parse):
        return None
    root, names, ranges = roots[0], base_relations(parse), subtree_ranges(parse.heads)
    core = {root}
    roles: list[Span] = []
    movable: list[Span] = []
    for child, head in enumerate(parse.heads):
        span = ranges[child]
        if head != root or child == root or span is None or _POINTS.issuperset(sentence.tokens[child]):
            continue
        if names[child] in _WITH_THE_VERB:
            core.update(range(*span))
            continue
        start, end = strip_tokens(span, sentence.tokens, _POINTS)
        if names[child] in _ROLES:
            roles.append((start, end))
        if names[child] in _MOVABLE:
            movable.append((start, end))
    return _Parts(frozenset(core), tuple(sorted(roles)), tuple(sorted(movable)))


@dataclass(kw_only=True, eq=False)
class _ByTree(Augmenter):
    """What both share: every way to do it is known beforehand, and copies take one each in an order of their own."""

    dependency_parser: DependencyParser | str = "en_core_web_sm"
    dependency_parser_: DependencyParser = field(init=False, repr=False)

    def _ways(self, sentence: Sentence, parts: _Parts) -> Iterator[Sentence]:
        raise NotImplementedError

    def _stream(self, sentence: Sentence, number: int) -> Random:
        """A random stream of a sentence, the same for all its copies."""
        return Streams(self.seed, f"{self.info.name} ways").stream(sentence.key, number)

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        parses = self.dependency_parser_.parse([one.sentence.tokens for one in asked])
        return [self._one(one, parse) for one, parse in zip(asked, parses, strict=True)]

    def _one(self, asked: Request, parse: Parse) -> Sentence | Rejection:
        parts = _parts(asked.sentence, parse)
        if parts is None or not parts.roles:
            return _NO_TREE
        ways = list(dict.fromkeys(self._ways(asked.sentence, parts)))
        if not ways:
            return _NONE_LEFT
        # All copies go through the same shuffled ways, so that none is made twice.
        self._stream(asked.sentence, 0).shuffle(ways)
        place = asked.copy - 1 + asked.attempt * self.copies
        return ways[place] if place < len(ways) else _NONE_LEFT


@dataclass(kw_only=True, eq=False)
class Crop(_ByTree):
    """Cut a sentence down to its verb and some of its subjects and objects.

    The root verb stays with its auxiliaries, negation and particles, and with one or more of its subject, object and
    complement subtrees, but not all that the sentence has: every such choice is one way. What ends the sentence stays.
    A mention is kept or dropped whole; a choice that would cut one is none.

    Args:
        min_roles: the minimum number of subjects, objects and complements to keep.
        dependency_parser: a `DependencyParser`, or the name of one: spaCy's pipelines, or a file in CoNLL-U format.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeDependencyParser
        >>> gold = [Sentence("Ada sings songs .".split(), [Mention("PER", [(0, 1)])])]
        >>> method = Crop(copies=2, dependency_parser=FakeDependencyParser())
        >>> sorted(" ".join(s.tokens) for s in method.augment(gold))
        ['Ada sings .', 'sings songs .']
    """

    min_roles: PositiveInt = 1

    info: ClassVar[MethodInfo] = MethodInfo(
        name="crop",
        long_name="dependency-cropping",
        summary="sentences cut down to the verb and some of its subjects and objects",
        paper="Şahin and Steedman 2018, Data Augmentation via Dependency Tree Morphing for Low-Resource Languages",
        keeps_order=True,
        keeps_mentions=False,
        needs=("dependency_parser",),
        cost="parsing: hundreds of sentences a second",
    )

    def _ways(self, sentence: Sentence, parts: _Parts) -> Iterator[Sentence]:
        n = len(sentence)
        last = {n - 1} if _POINTS.issuperset(sentence.tokens[-1]) else set()
        for some in self._choices(sentence, parts.roles):
            kept = parts.core | last | {i for span in some for i in range(*span)}
            made = _kept(sentence, kept) if len(kept) < n else None
            if made is not None and closes(made.tokens, sentence.tokens):
                yield made

    def _choices(self, sentence: Sentence, roles: Sequence[Span]) -> Iterator[tuple[Span, ...]]:
        counts = range(self.min_roles, len(roles) + 1)
        if len(roles) <= _MANY:
            return (some for count in counts for some in combinations(roles, count))
        rng = self._stream(sentence, 1)
        drawn = (tuple(sorted(rng.sample(roles, rng.choice(counts)))) for _ in range(factorial(_MANY)) if counts)
        return iter(dict.fromkeys(drawn))


@dataclass(kw_only=True, eq=False)
class Rotate(_ByTree):
    """Let what hangs on the verb change places: subjects, objects, prepositional phrases, adverbs.

    Every order of these subtrees around the root verb is one way; all else stays where it is. Mentions move with their
    subtree; an order that would tear one apart, or turn it around, is none. Languages with free word order gain most
    from it.

    Args:
        dependency_parser: a `DependencyParser`, or the name of one: spaCy's pipelines, or a file in CoNLL-U format.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeDependencyParser
        >>> gold = [Sentence("Ada sings songs .".split(), [Mention("PER", [(0, 1)])])]
        >>> [" ".join(s.tokens) for s in Rotate(dependency_parser=FakeDependencyParser()).augment(gold)]
        ['songs sings Ada .']
    """

    info: ClassVar[MethodInfo] = MethodInfo(
        name="rotate",
        long_name="dependency-rotation",
        summary="subjects, objects and other parts of a sentence in another order around the verb",
        paper="Şahin and Steedman 2018, Data Augmentation via Dependency Tree Morphing for Low-Resource Languages",
        keeps_length=True,
        keeps_words=True,
        keeps_mention_words=True,
        needs=("dependency_parser",),
        cost="parsing: hundreds of sentences a second",
    )

    def _ways(self, sentence: Sentence, parts: _Parts) -> Iterator[Sentence]:
        blocks = _apart(parts.movable)
        orders: Iterator[tuple[int, ...]] = permutations(range(len(blocks)))
        if len(blocks) > _MANY:
            rng = self._stream(sentence, 1)
            some = (tuple(rng.sample(range(len(blocks)), len(blocks))) for _ in range(factorial(_MANY)))
            orders = iter(dict.fromkeys(some))
        for order in orders:
            if list(order) == sorted(order):
                continue
            permutation: list[int] = []
            done = 0
            for (start, end), which in zip(blocks, order, strict=True):
                permutation += [*range(done, start), *range(*blocks[which])]
                done = end
            permutation += range(done, len(sentence))
            place = {old: new for new, old in enumerate(permutation)}
            of_each = ([place[i] for i in mention.positions()] for mention in sentence.mentions)
            if any(places != sorted(places) for places in of_each):
                continue  # its words in another order are another mention
            try:
                made = sentence.reorder(permutation)
            except EditError:  # it would tear a mention apart
                continue
            if closes(made.tokens, sentence.tokens):
                yield made


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Ranges that do not overlap, in order."""
    found: list[Span] = []
    for start, end in spans:
        if start < end and (not found or start >= found[-1][1]):
            found.append((start, end))
    return found


def _kept(sentence: Sentence, kept: set[int] | frozenset[int]) -> Sentence | None:
    """A sentence with some tokens alone; None where that would cut a mention."""
    stays = []
    for mention in sentence.mentions:
        inside = sum(i in kept for i in mention.positions())
        if inside == len(mention.positions()):
            stays.append(mention)
        elif inside:
            return None
    # One in parts that goes would go part by part, which an edit takes for cutting it.
    without = sentence if len(stays) == len(sentence.mentions) else sentence.with_(mentions=tuple(stays))
    runs = groupby(range(len(sentence)), key=lambda i: i in kept)
    gone = [list(run) for is_kept, run in runs if not is_kept]
    return without.edit([Edit(run[0], run[-1] + 1, ()) for run in gone])
