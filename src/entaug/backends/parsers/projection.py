"""Constituents read off a dependency tree: what serves where no constituency parser can be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from entaug.backends.dependency_trees import SUBJECTS, relation_names, subtree_ranges, trimmed
from entaug.backends.protocols import Constituent, DependencyParser, Parse

__all__ = ["ProjectedConstituents", "project"]

_NOUNS = frozenset({"NOUN", "PROPN", "PRON", "NUM", "SYM"})
_VERBS = frozenset({"VERB", "AUX"})
_HELPERS = frozenset({"aux", "auxpass", "cop"})
_PREDICATES = frozenset({"acomp", "xcomp", "oprd", "ccomp", "root", "conj", "advcl", "appos", "pd", "cvc"})
_POINTS = frozenset(".,:;!?…-–—()[]{}\"'`“”‘’«»")  # noqa: RUF001


class ProjectedConstituents:
    """A `entaug.backends.protocols.ConstituencyParser` that reads NP, VP, PP, ADJP and ADVP off dependency trees.

    A phrase is what stands under its head: for a noun phrase all of it, and the part before what follows the noun; for
    a verb phrase the verb with what follows, its subject left out, and as much again with each auxiliary before it; for
    a prepositional phrase the preposition with its complement, whichever of the two the tree has as the head. It agrees
    with a constituency parser in part only: docs/architecture.md says how far.

    Args:
        parser: whose trees.

    Example:
        >>> from entaug.backends.fakes import FakeDependencyParser
        >>> [tuple(c) for c in ProjectedConstituents(FakeDependencyParser()).parse([["He", "sings", "songs"]])[0]]
        [('VP', 1, 3)]
    """

    def __init__(self, parser: DependencyParser) -> None:
        self._parser = parser
        self.name = f"projected:{parser.name}"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """See `entaug.backends.protocols.ConstituencyParser.parse`."""
        parses = self._parser.parse(sentences)
        return [project(words, parse) for words, parse in zip(sentences, parses, strict=True)]


def project(words: Sequence[str], parse: Parse) -> tuple[Constituent, ...]:
    """The phrases of a sentence, from its dependency tree.

    Args:
        words: its tokens.
        parse: its tree, in the relations of Universal Dependencies or of spaCy's pipelines.

    Example:
        >>> tree = Parse((1, 1, 1, 2), ("nsubj", "ROOT", "prep", "pobj"), ("PRON", "VERB", "ADP", "PROPN"))
        >>> [(c.category, c.start, c.end) for c in project("She lives in Rome".split(), tree)]
        [('NP', 0, 1), ('VP', 1, 4), ('PP', 2, 4), ('NP', 3, 4)]
    """
    found: dict[Constituent, None] = {}
    for category, *span in _Tree(words, parse).phrases():
        start, end = trimmed((span[0], span[1]), words, _POINTS)
        if start < end:
            found[Constituent(category, start, end)] = None
    kept: list[Constituent] = []
    for one in sorted(found, key=lambda c: (c.start - c.end, c.start)):
        if not any(one.start < k.start < one.end < k.end or k.start < one.start < k.end < one.end for k in kept):
            kept.append(one)
    return tuple(sorted(kept, key=lambda c: (c.start, -c.end)))


class _Tree:
    """A tree with what phrases are made from."""

    def __init__(self, words: Sequence[str], parse: Parse) -> None:
        self._words = words
        self._tags = parse.tags
        self._heads = parse.heads
        self._names = relation_names(parse)
        self._ranges = subtree_ranges(parse.heads)
        self._below: list[list[int]] = [[] for _ in words]
        for token, head in enumerate(parse.heads):
            if head != token:
                self._below[head].append(token)

    def phrases(self) -> Iterator[tuple[str, int, int]]:
        for head in range(len(self._words)):
            span = self._ranges[head]
            if span is None:
                continue
            start, end = self._own(head, *span)
            verb = self._first_verb(head)
            if verb is not None:
                yield from self._verb_phrases(head, verb, self._after_subject(head, span[1]))
                if self._tags[head] in _VERBS:
                    continue
                start = verb[-1] + 1  # what is said of the subject stands behind the copula
                start = max(start, *(self._end(c) for c in self._below[head] if c < head and self._is_before(c, start)))
                if start > head:
                    continue
            if self._tags[head] in _NOUNS or (self._tags[head] == "DET" and self._names[head] != "det"):
                yield from self._noun_phrases(head, start, end)
            elif self._tags[head] == "ADJ":
                if end - start > 1 or self._names[head] in _PREDICATES:
                    yield "ADJP", start, end
            elif self._tags[head] == "ADV":
                if self._heads[head] == head or self._tags[self._heads[head]] not in {"ADJ", "ADV", "NUM"}:
                    yield "ADVP", start, end
            elif self._tags[head] in {"ADP", "SCONJ"} and any(c > head for c in self._below[head]):
                yield "PP", start, end

    def _is_before(self, child: int, start: int) -> bool:
        """Whether a child left of a predicate is its subject, or what stands outside the predicate all the same."""
        return child < start or self._names[child] in SUBJECTS

    def _end(self, token: int) -> int:
        span = self._ranges[token]
        return token + 1 if span is None else span[1]

    def _start(self, token: int) -> int:
        span = self._ranges[token]
        return token if span is None else span[0]

    def _own(self, head: int, start: int, end: int) -> tuple[int, int]:
        """A range without the conjunction that joins a head to what stands before it."""
        for child in self._below[head]:
            if child < head and self._names[child] in {"cc", "mark"} and self._start(child) == start:
                start = self._end(child)
        return start, end

    def _first_verb(self, head: int) -> list[int] | None:
        """The auxiliaries before a verb, and the verb; or the copula of what is no verb."""
        helpers = [c for c in self._below[head] if self._names[c] in _HELPERS and c < head]
        if self._tags[head] in _VERBS and self._names[head] not in _HELPERS:
            return [*helpers, head]
        return helpers if any(self._names[c] == "cop" for c in helpers) else None

    def _after_subject(self, head: int, end: int) -> int:
        """Where the verb phrase ends: before a clause with a subject of its own that is joined to it."""
        for child in self._below[head]:
            joined = self._names[child] in {"conj", "parataxis"} and child > head
            if joined and any(self._names[c] in SUBJECTS for c in self._below[child]):
                cuts = [self._start(c) for c in self._below[head] if self._names[c] == "cc" and head < c < child]
                return min([self._start(child), *cuts[-1:]])
        return end

    def _verb_phrases(self, head: int, verbs: list[int], end: int) -> Iterator[tuple[str, int, int]]:
        for verb in verbs:
            yield "VP", verb, end
        inner = self._before_joined(head, end)
        if inner < end:
            yield "VP", verbs[-1], inner

    def _noun_phrases(self, head: int, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        # In Universal Dependencies the preposition stands below its noun.
        cases = [c for c in self._below[head] if self._names[c] == "case" and c < head]
        if cases and self._start(cases[0]) == start:
            yield "PP", start, end
            start = self._end(cases[-1])
        if start > head:
            return
        yield "NP", start, end
        yield "NP", start, self._before_joined(head, end)
        behind = [self._start(c) for c in self._below[head] if c > head and self._names[c] not in {"case", "flat"}]
        yield "NP", start, min([end, *behind])

    def _before_joined(self, head: int, end: int) -> int:
        """Where the first of several parts that are joined by "and" and the like ends."""
        joins = [self._start(c) for c in self._below[head] if c > head and self._names[c] in {"cc", "conj", "preconj"}]
        return min([end, *joins])
