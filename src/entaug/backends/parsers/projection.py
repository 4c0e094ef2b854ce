"""Constituents projected from a dependency tree, for use without a constituency parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from entaug.backends.dependency_trees import (
    SUBJECTS,
    base_relations,
    children_of,
    content_heads,
    phrase_form,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import Constituent, DependencyParser, Parse
from entaug.backends.resolve import resolve

_NOUNS = frozenset({"NOUN", "PROPN", "PRON", "NUM", "SYM"})
_VERBS = frozenset({"VERB", "AUX"})
_AUXILIARIES = frozenset({"aux", "auxpass", "cop"})
_PREDICATES = frozenset({"acomp", "xcomp", "oprd", "ccomp", "root", "conj", "advcl", "appos", "pd", "cvc"})
_PUNCTUATION = frozenset(".,:;!?…-–—()[]{}\"'`“”‘’«»")  # noqa: RUF001


class ProjectedConstituents:
    """A `ConstituencyParser` that projects NP, VP, PP, ADJP and ADVP from dependency trees."""

    # A phrase is the subtree of its head: for a noun phrase all of it, and the part before what follows the noun; for a
    # verb phrase the verb with what follows, without its subject, and the same with each auxiliary before it; for a
    # prepositional phrase the preposition with its complement, whichever of the two is the head in the tree. It agrees
    # with a constituency parser only in part: docs/architecture.md has the numbers.

    def __init__(self, parser: DependencyParser | str = "en_core_web_sm") -> None:
        self._parser: DependencyParser = resolve("dependency_parser", parser)
        self.name = f"projected:{self._parser.name}"
        self.languages: frozenset[str] | None = getattr(self._parser, "languages", None)

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        parses = self._parser.parse(sentences)
        return [project_constituents(words, parse) for words, parse in zip(sentences, parses, strict=True)]


def project_constituents(words: Sequence[str], parse: Parse) -> tuple[Constituent, ...]:
    """Project the phrases of a sentence from its dependency tree."""
    candidates: dict[Constituent, None] = {}
    for category, *span in _Tree(words, parse).phrases():
        start, end = strip_tokens((span[0], span[1]), words, _PUNCTUATION)
        if start < end:
            candidates[Constituent(category, start, end)] = None
    kept: list[Constituent] = []
    for new in sorted(candidates, key=lambda c: (c.start - c.end, c.start)):
        if not any(new.start < k.start < new.end < k.end or k.start < new.start < k.end < new.end for k in kept):
            kept.append(new)
    if parse.features:
        kept = [
            c._replace(
                form=phrase_form(words, parse, c.category, (c.start, c.end)),
                heads=content_heads(parse, c.category, (c.start, c.end)),
            )
            for c in kept
        ]
    return tuple(sorted(kept, key=lambda c: (c.start, -c.end)))


class _Tree:
    """A dependency tree with its children and subtrees."""

    def __init__(self, words: Sequence[str], parse: Parse) -> None:
        self._words = words
        self._tags = parse.tags
        self._heads = parse.heads
        self._relations = base_relations(parse)
        self._ranges = subtree_ranges(parse.heads)
        self._children = children_of(parse.heads)

    def phrases(self) -> Iterator[tuple[str, int, int]]:
        """Candidate phrases: category, start and end."""
        for head in range(len(self._words)):
            span = self._ranges[head]
            if span is None:
                continue
            start, end = self._without_conjunction(head, *span)
            verbs = self._verb_group(head)
            if verbs is not None:
                yield from self._verb_phrases(head, verbs, self._verb_phrase_end(head, span[1]))
                if self._tags[head] in _VERBS:
                    continue
                start = verbs[-1] + 1  # the predicate follows the copula
                start = max(
                    start, *(self._end(c) for c in self._children[head] if c < head and self._is_before(c, start))
                )
                if start > head:
                    continue
            if self._tags[head] in _NOUNS or (self._tags[head] == "DET" and self._relations[head] != "det"):
                yield from self._noun_phrases(head, start, end)
            elif self._tags[head] == "ADJ":
                if end - start > 1 or self._relations[head] in _PREDICATES:
                    yield "ADJP", start, end
            elif self._tags[head] == "ADV":
                if self._heads[head] == head or self._tags[self._heads[head]] not in {"ADJ", "ADV", "NUM"}:
                    yield "ADVP", start, end
            elif self._tags[head] in {"ADP", "SCONJ"} and any(c > head for c in self._children[head]):
                yield "PP", start, end

    def _is_before(self, child: int, start: int) -> bool:
        """Whether a child left of a predicate is its subject, or outside the predicate for another reason."""
        return child < start or self._relations[child] in SUBJECTS

    def _end(self, token: int) -> int:
        span = self._ranges[token]
        return token + 1 if span is None else span[1]

    def _start(self, token: int) -> int:
        span = self._ranges[token]
        return token if span is None else span[0]

    def _without_conjunction(self, head: int, start: int, end: int) -> tuple[int, int]:
        """A range without the conjunction that joins its head to what precedes it."""
        for child in self._children[head]:
            if child < head and self._relations[child] in {"cc", "mark"} and self._start(child) == start:
                start = self._end(child)
        return start, end

    def _verb_group(self, head: int) -> list[int] | None:
        """The auxiliaries of a verb and the verb; for another predicate with a copula its auxiliaries; else None."""
        auxiliaries = [c for c in self._children[head] if self._relations[c] in _AUXILIARIES and c < head]
        if self._tags[head] in _VERBS and self._relations[head] not in _AUXILIARIES:
            return [*auxiliaries, head]
        return auxiliaries if any(self._relations[c] == "cop" for c in auxiliaries) else None

    def _verb_phrase_end(self, head: int, end: int) -> int:
        """The end of a verb phrase: before a coordinated clause that has its own subject."""
        for child in self._children[head]:
            joined = self._relations[child] in {"conj", "parataxis"} and child > head
            if joined and any(self._relations[c] in SUBJECTS for c in self._children[child]):
                cuts = [self._start(c) for c in self._children[head] if self._relations[c] == "cc" and head < c < child]
                return min([self._start(child), *cuts[-1:]])
        return end

    def _verb_phrases(self, head: int, verbs: list[int], end: int) -> Iterator[tuple[str, int, int]]:
        for verb in verbs:
            yield "VP", verb, end
        inner = self._first_conjunct_end(head, end)
        if inner < end:
            yield "VP", verbs[-1], inner

    def _noun_phrases(self, head: int, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        # In Universal Dependencies the preposition stands below its noun.
        cases = [c for c in self._children[head] if self._relations[c] == "case" and c < head]
        if cases and self._start(cases[0]) == start:
            yield "PP", start, end
            start = self._end(cases[-1])
        if start > head:
            return
        yield "NP", start, end
        yield "NP", start, self._first_conjunct_end(head, end)
        behind = [
            self._start(c) for c in self._children[head] if c > head and self._relations[c] not in {"case", "flat"}
        ]
        yield "NP", start, min([end, *behind])

    def _first_conjunct_end(self, head: int, end: int) -> int:
        """The end of the first conjunct of a coordination."""
        joins = [
            self._start(c) for c in self._children[head] if c > head and self._relations[c] in {"cc", "conj", "preconj"}
        ]
        return min([end, *joins])
