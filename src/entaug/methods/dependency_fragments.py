"""Crop and rotate: sentences shortened or reordered by their dependency trees (Şahin and Steedman 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, permutations
from math import factorial
from random import Random
from typing import ClassVar, Literal, NamedTuple

from entaug.backends.dependency_trees import (
    OBJECTS,
    SUBJECTS,
    base_relations,
    predicate_words,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import DependencyParser, Parse
from entaug.config.params import PositiveInt
from entaug.config.presets import ONLY_IF_SET, read_presets
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Span
from entaug.core.rng import Streams
from entaug.errors import EditError
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.span_exchange import has_balanced_brackets

# Relations of words that belong to their verb and move with it. In Universal Dependencies the predicate is the root and
# the copula its child; in other schemes "is" is the root, which is incomplete without its predicate.
_PREDICATES = frozenset({"attr", "acomp", "oprd", "pd"})
_VERB_PARTS = _PREDICATES | {"aux", "auxpass", "cop", "neg", "prt", "compound", "expl", "svp", "mark"}
_ROLES = (SUBJECTS | OBJECTS | {"dative", "da"}) - _PREDICATES
_MOVABLE = _ROLES | {"obl", "prep", "agent", "advmod", "npadvmod", "advcl", "mo"}
_PUNCTUATION = frozenset(".,:;!?…-–—")  # noqa: RUF001
_MAX_PERMUTED = 5  # parts of which all permutations or combinations are enumerated; of more they are sampled

_NO_ROOT_VERB = Rejection("the root is not a verb with subjects or objects", final=True)
_NO_VARIANT = Rejection("no other variant that keeps all mentions whole", final=True)


class _Clause(NamedTuple):
    """The root verb of a sentence and its subtrees."""

    core: frozenset[int]
    roles: tuple[Span, ...]
    movable: tuple[Span, ...]


def _parse_clause(sentence: Sentence, parse: Parse) -> _Clause | None:
    """Return the parts of a sentence; None unless its only root is a verb."""
    roots = [i for i, head in enumerate(parse.heads) if head == i and not _PUNCTUATION.issuperset(sentence.tokens[i])]
    if len(roots) != 1 or roots[0] not in predicate_words(parse):
        return None
    root, names, ranges = roots[0], base_relations(parse), subtree_ranges(parse.heads)
    core = {root}
    roles: list[Span] = []
    movable: list[Span] = []
    for child, head in enumerate(parse.heads):
        span = ranges[child]
        if head != root or child == root or span is None or _PUNCTUATION.issuperset(sentence.tokens[child]):
            continue
        if names[child] in _VERB_PARTS:
            core.update(range(*span))
            continue
        start, end = strip_tokens(span, sentence.tokens, _PUNCTUATION)
        if names[child] in _ROLES:
            roles.append((start, end))
        if names[child] in _MOVABLE:
            movable.append((start, end))
    return _Clause(frozenset(core), tuple(sorted(roles)), tuple(sorted(movable)))


@dataclass(kw_only=True, eq=False)
class _VariantAugmenter(Augmenter):
    """Base class of methods with finitely many variants per sentence: each copy takes the next in a random order."""

    dependency_parser: DependencyParser | str = "en_core_web_sm"
    preset: Literal["starter", "paper"] = field(default="starter", metadata=ONLY_IF_SET)
    dependency_parser_: DependencyParser = field(init=False, repr=False)

    def _variants(self, sentence: Sentence, clause: _Clause) -> Iterator[Sentence]:
        raise NotImplementedError

    def _stream(self, sentence: Sentence, number: int) -> Random:
        """Return a random stream of a sentence, the same for all its copies."""
        return Streams(self.seed, f"{self.name} ways").stream(sentence.key, number)

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        parses = self.dependency_parser_.parse([request.sentence.tokens for request in requests])
        return [self._variant(request, parse) for request, parse in zip(requests, parses, strict=True)]

    def _variant(self, request: Request, parse: Parse) -> Sentence | Rejection:
        clause = _parse_clause(request.sentence, parse)
        if clause is None or not clause.roles:
            return _NO_ROOT_VERB
        variants = list(dict.fromkeys(self._variants(request.sentence, clause)))
        self._stream(request.sentence, 0).shuffle(variants)
        index = request.copy - 1 + request.attempt * self.copies
        return variants[index] if index < len(variants) else _NO_VARIANT


@dataclass(kw_only=True, eq=False)
class Crop(_VariantAugmenter):
    """Shorten a sentence to its verb and some of its subjects and objects.

    The root verb is kept with its auxiliaries, negation and particles, and with one or more, but not all, of its
    subject, object and complement subtrees. Every such combination is one variant. The final punctuation is kept. A
    mention is kept or dropped as a whole; combinations that would cut a mention are left out.

    Args:
        min_roles: the minimum number of subjects, objects and complements to keep.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods crop``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeDependencyParser  # tests/helpers of entaug
        >>> gold = [Sentence("Ada sings songs .".split(), [Mention("PER", [(0, 1)])])]
        >>> method = Crop(copies=2, dependency_parser=FakeDependencyParser())
        >>> sorted(" ".join(s.tokens) for s in method.augment(gold))
        ['Ada sings .', 'sings songs .']
    """

    min_roles: PositiveInt = 1

    presets = read_presets("crop")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="crop",
        long_name="dependency-cropping",
        summary="sentences shortened to the verb and some of its subjects and objects",
        paper="Şahin and Steedman 2018, Data Augmentation via Dependency Tree Morphing for Low-Resource Languages",
        keeps_order=True,
        keeps_mentions=False,
        needs=("dependency_parser",),
        cost="parsing: hundreds of sentences per second",
    )

    def _variants(self, sentence: Sentence, clause: _Clause) -> Iterator[Sentence]:
        n = len(sentence)
        final = {n - 1} if _PUNCTUATION.issuperset(sentence.tokens[-1]) else set()
        for spans in self._combinations(sentence, clause.roles):
            kept = clause.core | final | {i for span in spans for i in range(*span)}
            cropped = _keep_tokens(sentence, kept) if len(kept) < n else None
            if cropped is not None and has_balanced_brackets(cropped.tokens, sentence.tokens):
                yield cropped

    def _combinations(self, sentence: Sentence, roles: Sequence[Span]) -> Iterator[tuple[Span, ...]]:
        counts = range(self.min_roles, len(roles) + 1)
        if len(roles) <= _MAX_PERMUTED:
            return (spans for count in counts for spans in combinations(roles, count))
        rng = self._stream(sentence, 1)
        draws = range(factorial(_MAX_PERMUTED) if counts else 0)
        return iter(dict.fromkeys(tuple(sorted(rng.sample(roles, rng.choice(counts)))) for _ in draws))


@dataclass(kw_only=True, eq=False)
class Rotate(_VariantAugmenter):
    """Reorder the subtrees of the verb: subjects, objects, prepositional phrases, adverbs.

    Every order of these subtrees around the root verb is one variant; all other tokens keep their positions. Mentions
    move with their subtree; orders that would split a mention, or change the order of its words, are left out.
    Languages with free word order benefit most.

    Args:
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods rotate``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeDependencyParser  # tests/helpers of entaug
        >>> gold = [Sentence("Ada sings songs .".split(), [Mention("PER", [(0, 1)])])]
        >>> [" ".join(s.tokens) for s in Rotate(dependency_parser=FakeDependencyParser()).augment(gold)]
        ['songs sings Ada .']
    """

    presets = read_presets("rotate")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="rotate",
        long_name="dependency-rotation",
        summary="subjects, objects and other parts of a sentence reordered around the verb",
        paper="Şahin and Steedman 2018, Data Augmentation via Dependency Tree Morphing for Low-Resource Languages",
        keeps_length=True,
        keeps_words=True,
        keeps_mention_words=True,
        needs=("dependency_parser",),
        cost="parsing: hundreds of sentences per second",
    )

    def _variants(self, sentence: Sentence, clause: _Clause) -> Iterator[Sentence]:
        blocks = _disjoint(clause.movable)
        orders: Iterator[tuple[int, ...]] = permutations(range(len(blocks)))
        if len(blocks) > _MAX_PERMUTED:
            rng = self._stream(sentence, 1)
            drawn = (tuple(rng.sample(range(len(blocks)), len(blocks))) for _ in range(factorial(_MAX_PERMUTED)))
            orders = iter(dict.fromkeys(drawn))
        for order in orders:
            if list(order) == sorted(order):
                continue
            permutation: list[int] = []
            done = 0
            for (start, end), block in zip(blocks, order, strict=True):
                permutation += [*range(done, start), *range(*blocks[block])]
                done = end
            permutation += range(done, len(sentence))
            new_position = {old: new for new, old in enumerate(permutation)}
            mentions = ([new_position[i] for i in mention.positions()] for mention in sentence.mentions)
            if any(positions != sorted(positions) for positions in mentions):
                continue  # reordered words would be another mention
            try:
                rotated = sentence.reorder(permutation)
            except EditError:  # it would split a mention
                continue
            if has_balanced_brackets(rotated.tokens, sentence.tokens):
                yield rotated


def _disjoint(spans: Sequence[Span]) -> list[Span]:
    """Remove ranges that are empty or overlap an earlier range."""
    disjoint: list[Span] = []
    for start, end in spans:
        if start < end and (not disjoint or start >= disjoint[-1][1]):
            disjoint.append((start, end))
    return disjoint


def _keep_tokens(sentence: Sentence, kept: set[int] | frozenset[int]) -> Sentence | None:
    """Keep some tokens of a sentence; return None if that would cut a mention."""
    mentions = []
    for mention in sentence.mentions:
        num_kept = sum(i in kept for i in mention.positions())
        if num_kept == len(mention.positions()):
            mentions.append(mention)
        elif num_kept:
            return None
    # Dropped mentions are removed first, because removing a discontinuous one part by part would cut it.
    remaining = sentence if len(mentions) == len(sentence.mentions) else sentence.with_(mentions=tuple(mentions))
    runs = groupby(range(len(sentence)), key=lambda i: i in kept)
    dropped = [list(run) for is_kept, run in runs if not is_kept]
    return remaining.edit([Edit(run[0], run[-1] + 1, ()) for run in dropped])
