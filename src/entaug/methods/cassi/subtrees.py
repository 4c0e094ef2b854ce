"""Exchange of subject and object or complement subtrees between two sentences: the candidates of CASSI (section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from entaug.backends.dependency_trees import (
    OBJECTS,
    SUBJECTS,
    base_relations,
    grammatical_number,
    predicate_words,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import Parse
from entaug.core.data import Sentence, Span
from entaug.methods.shared.span_exchange import DonorTokens, exchange_edit, keeps_mentions_whole

__all__ = [
    "Candidate",
    "Subtrees",
    "exchange_candidates",
    "find_subtrees",
    "j_score",
    "phrase_types",
    "strip_punctuation",
    "with_numbers",
]

_ADPOSITIONS = frozenset({"ADP", "SCONJ", "PART"})  # taggers differ in these: "after", "to", "zu"
_NOMINALS = frozenset({"NOUN", "PROPN", "PRON", "NUM", "DET", "SYM", "X", "INTJ"})
_PUNCTUATION = frozenset(".,:;!?…。，、：；！？")  # noqa: RUF001


class Subtrees(NamedTuple):
    """The token ranges of a sentence that can be exchanged, in order."""

    subjects: tuple[Span, ...]
    objects: tuple[Span, ...]
    types: Mapping[Span, str] = MappingProxyType({})


class Candidate(NamedTuple):
    """One exchange."""

    sentence: Sentence
    frame: int
    role: str
    removed: Span
    inserted: Span

    @property
    def new_span(self) -> Span:
        """The range of the inserted tokens in the new sentence."""
        return self.removed[0], self.removed[0] + self.inserted[1] - self.inserted[0]

    def origins(self) -> list[tuple[int, int]]:
        """Return the origin of each token."""
        frame, start = self.frame, self.removed[0]
        num_after = len(self.sentence) - self.new_span[1]
        return [
            *((frame, i) for i in range(start)),
            *((1 - frame, i) for i in range(*self.inserted)),
            *((frame, i) for i in range(self.removed[1], self.removed[1] + num_after)),
        ]


def find_subtrees(parse: Parse) -> Subtrees:
    """Find the subtrees of subjects of verbs, and of objects and complements of verbs and adpositions."""
    # Subtypes of relations (`nsubj:pass`) count as their main types; a predicate with a copula counts as a verb, as in
    # Universal Dependencies. Subtrees that are not contiguous are left out.
    ranges = subtree_ranges(parse.heads)
    verbs = predicate_words(parse)
    subjects: set[Span] = set()
    objects: set[Span] = set()
    for token, (head, name) in enumerate(zip(parse.heads, base_relations(parse), strict=True)):
        span = ranges[token]
        if head == token or span is None:
            continue
        if name in SUBJECTS and head in verbs:
            subjects.add(span)
        elif name in OBJECTS and (head in verbs or parse.tags[head] in _ADPOSITIONS):
            objects.add(span)
    return Subtrees(tuple(sorted(subjects)), tuple(sorted(objects)))


def phrase_types(parse: Parse) -> dict[Span, str]:
    """Return the phrase type of each subtree."""
    # Replacing a noun by a clause ("I go home to he saw her") is rarely grammatical. The relation distinguishes finite
    # clauses (`ccomp`) from infinitives (`xcomp`) and clauses after prepositions (`pcomp`), which cannot replace each
    # other either.
    verbs, names = predicate_words(parse), base_relations(parse)
    types: dict[Span, str] = {}
    for token, span in enumerate(subtree_ranges(parse.heads)):
        if span is not None:
            is_nominal = token not in verbs and parse.tags[token] in _NOMINALS
            types[span] = "nominal" if is_nominal else names[token]
    return types


def with_numbers(subtrees: Subtrees, parse: Parse) -> Subtrees:
    """Add the grammatical number of subjects to their types, so that verbs agree with what is exchanged."""
    if not parse.features:
        return subtrees
    types = dict(subtrees.types)
    for span in subtrees.subjects:
        types[span] = f"{types.get(span, '')}.{grammatical_number(parse, span)}"
    return subtrees._replace(types=types)


def strip_punctuation(subtrees: Subtrees, tokens: Sequence[str]) -> Subtrees:
    """Remove full stops, commas and similar punctuation at the ends of subtrees, which belong to the sentence."""

    def strip(span: Span) -> Span:
        return strip_tokens(span, tokens, _PUNCTUATION)

    def strip_all(spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(sorted({(start, end) for start, end in map(strip, spans) if start < end}))

    # If two ranges become equal, the type of the larger one is used.
    by_length = sorted(subtrees.types, key=lambda span: span[1] - span[0])
    types = {strip(span): subtrees.types[span] for span in by_length}
    return Subtrees(strip_all(subtrees.subjects), strip_all(subtrees.objects), types)


def exchange_candidates(
    one: Sentence,
    other: Sentence,
    subtrees_of_one: Subtrees,
    subtrees_of_other: Subtrees,
    tokens: DonorTokens | None = None,
    *,
    split_mentions: bool = True,
) -> Iterator[Candidate]:
    """Exchange every subject subtree for every subject subtree and every object subtree for every object subtree."""
    # Subtrees of different phrase types are not exchanged. Each exchange gives two sentences, one in each frame.
    # Mentions move with their subtree. A contiguous mention of a flat sentence that a subtree cuts becomes parts that
    # keep its label (the repair of the paper, only at the boundaries of the exchange). Exchanges that would cut a
    # nested or discontinuous mention are left out.

    def is_allowed(sentence: Sentence, span: Span) -> bool:
        return (split_mentions and sentence.is_flat) or keeps_mentions_whole(sentence, span)

    for role, spans, other_spans in (
        ("subject", subtrees_of_one.subjects, subtrees_of_other.subjects),
        ("object", subtrees_of_one.objects, subtrees_of_other.objects),
    ):
        counterparts = [span for span in other_spans if is_allowed(other, span)]
        for span in (span for span in spans if is_allowed(one, span)):
            for counterpart in counterparts:
                if subtrees_of_one.types.get(span) != subtrees_of_other.types.get(counterpart):
                    continue
                for index, (frame, donor, removed, inserted) in enumerate(
                    ((one, other, span, counterpart), (other, one, counterpart, span))
                ):
                    edit = exchange_edit(frame, donor, removed, inserted, tokens)
                    yield Candidate(frame.split_mentions(removed).edit([edit]), index, role, removed, inserted)


def j_score(candidate: Sequence[str], one: Sequence[str], other: Sequence[str]) -> float:
    """Return the geometric mean of the Jaccard similarities of a candidate with the two sentences it comes from."""
    u, v, c = ({word.lower() for word in words} for words in (one, other, candidate))
    unions = len(u | c) * len(v | c)
    return float((len(u & c) * len(v & c) / unions) ** 0.5) if unions else 0.0
