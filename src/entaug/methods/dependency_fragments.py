"""Crop and rotate: sentences shortened or reordered by their dependency trees (Şahin and Steedman 2018)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, groupby, pairwise, permutations
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
from entaug.core.spacing import is_word_character
from entaug.core.words import is_word
from entaug.errors import EditError
from entaug.methods.base import Augmenter, MethodInfo, Rejection, Request
from entaug.methods.shared.clauses import droppable_parts, english_orders, has_final_mark
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds
from entaug.methods.shared.span_exchange import capitalize, has_balanced_brackets

# Relations of words that belong to their verb and move with it. In Universal Dependencies the predicate is the root and
# the copula its child; in other schemes "is" is the root, which is incomplete without its predicate.
_PREDICATES = frozenset({"attr", "acomp", "oprd", "pd"})
_VERB_PARTS = _PREDICATES | {"aux", "auxpass", "cop", "neg", "prt", "compound", "expl", "svp", "mark"}
_ROLES = (SUBJECTS | OBJECTS | {"dative", "da"}) - _PREDICATES
_MOVABLE = _ROLES | {"obl", "prep", "agent", "advmod", "npadvmod", "advcl", "mo"}
_PUNCTUATION = frozenset(".,:;!?…-–—")  # noqa: RUF001
_OPENING, _CLOSING = _PUNCTUATION | frozenset("([{"), _PUNCTUATION | frozenset(")]}")
_FUNCTION_WORDS = frozenset({"DET", "PRON", "ADP", "ADV", "SCONJ", "CCONJ", "AUX", "PART", "NUM"})
_MAX_PERMUTED = 5  # parts of which all permutations or combinations are enumerated; of more they are sampled

_NO_ROOT_VERB = Rejection("the root is not a verb with subjects or objects", final=True)
_NO_STATEMENT = Rejection("not one statement with a subject and a finite verb", final=True)
_NO_VARIANT = Rejection("no other variant that keeps all mentions whole", final=True)
_NO_MENTION = Rejection("no variant that keeps a mention", final=True)


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

    @property
    def _is_literal(self) -> bool:
        """Whether variants are those of the paper, whatever the grammar."""
        raise NotImplementedError

    def _variants(self, sentence: Sentence, parse: Parse) -> list[Sentence] | Rejection:
        """Return the variants that grammar allows, or why there are none."""
        raise NotImplementedError

    def _literal_variants(self, sentence: Sentence, clause: _Clause) -> Iterator[Sentence]:
        """Yield the variants of the paper."""
        raise NotImplementedError

    @property
    def _is_english(self) -> bool:
        return getattr(self.dependency_parser_, "languages", None) == frozenset({"en"})

    def _load(self) -> None:
        super()._load()
        self._kinds = SentenceKinds(())  # of a corpus that is not known
        self._needs_final_mark = False

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        if self._is_literal:
            return
        counts = Counter[bool]()

        def observed() -> Iterator[Sentence]:
            for sentence in corpus:
                counts[has_final_mark(sentence.tokens)] += 1
                yield sentence

        self._kinds = SentenceKinds(observed())
        self._needs_final_mark = counts[True] > counts[False]

    def _stream(self, sentence: Sentence, number: int) -> Random:
        """Return a random stream of a sentence, the same for all its copies."""
        return Streams(self.seed, f"{self.name} ways").stream(sentence.key, number)

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        parses = self.dependency_parser_.parse([request.sentence.tokens for request in requests])
        return [self._variant(request, parse) for request, parse in zip(requests, parses, strict=True)]

    def _variant(self, request: Request, parse: Parse) -> Sentence | Rejection:
        sentence = request.sentence
        made: Iterable[Sentence] | Rejection
        if not self._is_literal:
            made = self._variants(sentence, parse) if self._is_prose(sentence) else NOT_PROSE
        else:
            clause = _parse_clause(sentence, parse)
            made = self._literal_variants(sentence, clause) if clause and clause.roles else _NO_ROOT_VERB
        if isinstance(made, Rejection):
            return made
        variants = list(dict.fromkeys(made))
        self._stream(sentence, 0).shuffle(variants)
        # Online augmentation numbers copies on from epoch to epoch; each epoch begins with another variant.
        epoch, copy = divmod(request.copy - 1, self.copies)
        index = copy + request.attempt * self.copies
        return variants[(index + epoch * self.copies) % len(variants)] if index < len(variants) else _NO_VARIANT

    def _is_prose(self, sentence: Sentence) -> bool:
        is_whole = not self._needs_final_mark or has_final_mark(sentence.tokens)
        return is_whole and self._kinds.kind(sentence) == "prose"

    def _begins_with_capital(self, sentence: Sentence, began: int) -> bool:
        """Whether the sentence begins with a capital, or would if it did not begin with a figure or symbol."""
        word = sentence.tokens[began]
        return word[0].isupper() or (self._kinds.has_case and not is_word(word, hyphens=True))

    def _with_capitals(self, source: Sentence, parse: Parse, new: Sentence, origins: Sequence[int]) -> Sentence | None:
        """Adapt the case of the word that begins the sentence now, and of the one that did; None if it is not known."""
        # `origins` has the position in the source of each token of the new sentence; -1 for a new one.
        began, begins = _first_word(source.tokens), _first_word(new.tokens)
        if began is None or begins is None or origins[begins] == began or not self._begins_with_capital(source, began):
            return new
        edits = []
        if new.tokens[begins].islower() and is_word(new.tokens[begins], hyphens=True):
            edits.append(Edit(begins, begins + 1, (capitalize(new.tokens[begins]),)))
        word = source.tokens[began]
        if began in origins and word == capitalize(word.lower()) and word != "I":
            is_function_word = parse.tags[began] in _FUNCTION_WORDS and source.outside_mask()[began]
            inner = word.lower() if is_function_word else self._kinds.within_sentence(source, began)
            if inner is None and self._is_english:
                return None
            at = origins.index(began)
            edits.append(Edit(at, at + 1, (inner or word,)))
        return new.edit(sorted(edits))


@dataclass(kw_only=True, eq=False)
class Crop(_VariantAugmenter):
    """Shorten a sentence: drop what it can do without.

    Dropped are one or two of: clauses and phrases set off by commas (relative clauses, appositions, adverbials at the
    beginning), adverbial clauses and, in English, phrases of time at the end, the second of two coordinated clauses,
    and all brackets. What the verb needs is kept: subject, objects, complements, particles. At least one mention is
    kept where the source has one; a mention is kept or dropped as a whole. Questions, headlines, rows of tables and
    what has no finite verb with a subject are left alone.

    The paper keeps the root verb with its auxiliaries, negation and particles, and one or more, but not all, of its
    subject, object and complement subtrees (``drop="roles"``); few of these are sentences.

    Args:
        drop: what is dropped: ``"adjuncts"``, what the sentence can do without; or ``"roles"``, all but some subjects,
            objects and complements, as in the paper.
        min_roles: the minimum number of subjects, objects and complements to keep, with ``drop="roles"``.
        dependency_parser: a `DependencyParser`, the name of a spaCy pipeline, or a CoNLL-U file.
        preset: ``"starter"``; or ``"paper"``, which sets what the paper says (``entaug list methods crop``)
            unless it is given.

    Example:
        >>> from entaug import Mention
        >>> from helpers.fakes import FakeDependencyParser  # tests/helpers of entaug
        >>> gold = [Sentence("Ada sings songs of love in Rome .".split(), [Mention("PER", [(0, 1)])])]
        >>> [" ".join(s.tokens) for s in Crop(dependency_parser=FakeDependencyParser()).augment(gold)]
        ['Ada sings songs of love .']
    """

    drop: Literal["adjuncts", "roles"] = "adjuncts"
    min_roles: PositiveInt = 1

    presets = read_presets("crop")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="crop",
        long_name="dependency-cropping",
        summary="sentences shortened by what they can do without: adjuncts, brackets, second clauses",
        paper="Şahin and Steedman 2018, Data Augmentation via Dependency Tree Morphing for Low-Resource Languages",
        keeps_order=True,
        keeps_mentions=False,
        needs=("dependency_parser",),
        cost="parsing: hundreds of sentences per second",
    )

    @property
    def _is_literal(self) -> bool:
        return self.drop == "roles"

    def _variants(self, sentence: Sentence, parse: Parse) -> list[Sentence] | Rejection:
        parts = droppable_parts(sentence, parse, is_english=self._is_english)
        if parts is None:
            return _NO_STATEMENT
        variants = []
        loses_all = False
        for dropped in _choices(parts):
            kept = set(range(len(sentence))).difference(*(range(*span) for span in dropped))
            cropped = _keep_tokens(sentence, kept)
            if cropped is None or _has_new_joins(cropped.tokens, sentence.tokens):
                continue
            if sentence.mentions and not cropped.mentions:
                loses_all = True
            elif (adapted := self._with_capitals(sentence, parse, cropped, sorted(kept))) is not None:
                variants.append(adapted)
        return _NO_MENTION if loses_all and not variants else variants

    def _literal_variants(self, sentence: Sentence, clause: _Clause) -> Iterator[Sentence]:
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
    """Reorder the parts of a sentence as far as its grammar allows.

    In English the order is mostly fixed. An adjunct (of time or means, an adverbial clause) moves from the end to the
    beginning, with a comma, or back; "however" and the like move behind the subject or back; a name and its definition
    ("Ada is the first") change places, and so do phrases of time, place and doer, and members of a coordination of
    nouns. Each variant has one such change; the case of the first word is adapted. Questions, headlines, rows of tables
    and what has no finite verb with a subject are left alone.

    In other languages, and in the paper, every order of the subtrees of the root verb (subjects, objects, prepositional
    phrases, adverbs) is one variant; all other tokens keep their positions. Languages with free word order benefit
    most. Mentions move with their subtree; orders that would split a mention, or change the order of its words, are
    left out.

    Args:
        order: which orders: ``"fixed"``, those of English; ``"free"``, all; ``"auto"``: fixed where the parser is
            an English one.
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

    order: Literal["auto", "fixed", "free"] = "auto"

    presets = read_presets("rotate")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="rotate",
        long_name="dependency-rotation",
        summary="parts of a sentence reordered as far as grammar allows",
        paper="Şahin and Steedman 2018, Data Augmentation via Dependency Tree Morphing for Low-Resource Languages",
        needs=("dependency_parser",),
        cost="parsing: hundreds of sentences per second",
    )

    @property
    def _is_literal(self) -> bool:
        return self.order == "free" or (self.order == "auto" and not self._is_english)

    def _variants(self, sentence: Sentence, parse: Parse) -> list[Sentence] | Rejection:
        orders = english_orders(sentence, parse)
        if orders is None:
            return _NO_STATEMENT
        variants = []
        for positions, commas_before, removed in orders:
            rotated = _reorder(sentence, positions)
            if rotated is None:
                continue
            origins: list[int] = []
            edits = []
            for new, old in enumerate(positions):
                if old in commas_before:
                    edits.append(Edit(new, new, (",",)))
                    origins.append(-1)
                if old in removed:
                    edits.append(Edit(new, new + 1, ()))
                else:
                    origins.append(old)
            adapted = self._with_capitals(sentence, parse, rotated.edit(edits), origins)
            if adapted is not None:
                variants.append(adapted)
        return variants

    def _literal_variants(self, sentence: Sentence, clause: _Clause) -> Iterator[Sentence]:
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
            rotated = _reorder(sentence, permutation)
            if rotated is not None:
                yield rotated


def _reorder(sentence: Sentence, permutation: Sequence[int]) -> Sentence | None:
    """Reorder a sentence; None if that would split a mention, change the order of its words, or part brackets."""
    new_position = {old: new for new, old in enumerate(permutation)}
    mentions = ([new_position[i] for i in mention.positions()] for mention in sentence.mentions)
    if any(positions != sorted(positions) for positions in mentions):
        return None
    try:
        rotated = sentence.reorder(permutation)
    except EditError:  # it would split a mention
        return None
    return rotated if has_balanced_brackets(rotated.tokens, sentence.tokens) else None


def _first_word(tokens: Sequence[str]) -> int | None:
    """The position of the first token that begins with a letter or a digit."""
    return next((i for i, token in enumerate(tokens) if is_word_character(token[0])), None)


def _choices(parts: Sequence[tuple[Span, ...]]) -> Iterator[tuple[Span, ...]]:
    """Yield the ranges to drop: those of one part, or of two that lie apart."""
    for count in (1, 2):
        for chosen in combinations(parts, count):
            spans = tuple(sorted(chain.from_iterable(chosen)))
            if all(one[1] <= other[0] for one, other in pairwise(spans)):
                yield spans


def _has_new_joins(tokens: Sequence[str], source: Sequence[str]) -> bool:
    """Whether marks of punctuation stand side by side, or at the beginning, that did not in the source."""
    joins = set(pairwise(("", *tokens))) - set(pairwise(("", *source)))
    return any(_OPENING.issuperset(one) and _CLOSING.issuperset(other) for one, other in joins)


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
