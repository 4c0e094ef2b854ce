"""Exchange of subject and object or complement subtrees between two sentences: the candidates of CASSI.

"CASSI: Contextual and Semantic Structure-based Interpolation Augmentation for Low-Resource NER", section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from entaug.augmenters.syntax.span_exchange import Words, graft, holds_whole
from entaug.backends.dependency_trees import (
    OBJECTS,
    SUBJECTS,
    base_relations,
    predicate_words,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import Parse
from entaug.data import Sentence, Span

__all__ = [
    "Candidate",
    "Subtrees",
    "exchanges",
    "j_score",
    "kinds",
    "subtrees",
    "without_points",
]

_ADPOSITIONS = frozenset({"ADP", "SCONJ", "PART"})  # how taggers tell them apart differs: "after", "to", "zu"
_NOMINALS = frozenset({"NOUN", "PROPN", "PRON", "NUM", "DET", "SYM", "X", "INTJ"})
_POINTS = frozenset(".,:;!?…。，、：；！？")  # noqa: RUF001


class Subtrees(NamedTuple):
    """The ranges of a sentence that can be exchanged, in order.

    Args:
        subjects: those of subjects.
        objects: those of objects and complements.
        kinds: for each range what kind of phrase it is, where only phrases of a kind are to be exchanged; see `kinds`.
    """

    subjects: tuple[Span, ...]
    objects: tuple[Span, ...]
    kinds: Mapping[Span, str] = MappingProxyType({})


class Candidate(NamedTuple):
    """One exchange.

    Args:
        sentence: what came of it, with id, meta and columns of the sentence that kept its frame.
        frame: 0 where the first sentence kept its frame, 1 where the second did.
        role: ``"subject"`` or ``"object"``.
        out: the range of the frame that went.
        into: the range of the other sentence that came.
    """

    sentence: Sentence
    frame: int
    role: str
    out: Span
    into: Span

    @property
    def graft(self) -> Span:
        """The range of the new sentence that came."""
        return self.out[0], self.out[0] + self.into[1] - self.into[0]

    def origins(self) -> list[tuple[int, int]]:
        """For each token which of the two sentences it comes from, and its position there."""
        frame, start = self.frame, self.out[0]
        rest = len(self.sentence) - self.graft[1]
        return [
            *((frame, i) for i in range(start)),
            *((1 - frame, i) for i in range(*self.into)),
            *((frame, i) for i in range(self.out[1], self.out[1] + rest)),
        ]


def subtrees(parse: Parse) -> Subtrees:
    """The subtrees of subjects of verbs, and of objects and complements of verbs and adpositions.

    Subtypes of relations (``nsubj:pass``) count as what they are subtypes of; whatever has a copula counts as a verb,
    as in Universal Dependencies. A subtree that is not one run of tokens is left out.

    Example:
        >>> parse = Parse((1, 1, 3, 1), ("nsubj", "ROOT", "compound", "dobj"), ("PROPN", "VERB", "NOUN", "NOUN"))
        >>> subtrees(parse)[:2]  # Ada wrote test code
        (((0, 1),), ((2, 4),))
    """
    ranges = subtree_ranges(parse.heads)
    verbs = predicate_words(parse)
    found: tuple[list[Span], list[Span]] = ([], [])
    for token, (head, name) in enumerate(zip(parse.heads, base_relations(parse), strict=True)):
        span = ranges[token]
        if head == token or span is None:
            continue
        if name in SUBJECTS and head in verbs:
            found[0].append(span)
        elif name in OBJECTS and (head in verbs or parse.tags[head] in _ADPOSITIONS):
            found[1].append(span)
    subjects, objects = (tuple(sorted(set(spans))) for spans in found)
    return Subtrees(subjects, objects)


def kinds(parse: Parse) -> dict[Span, str]:
    """What kind of phrase each subtree is: ``"nominal"``, or the relation of a clause or an adjective to its head.

    A clause in the place of a noun ("I go home to he saw her") is rarely English. The relation tells finite clauses
    (``ccomp``) from infinitives (``xcomp``) and those after prepositions (``pcomp``), which do not fit each other's
    places either.

    Example:
        >>> parse = Parse((1, 1, 3, 1), ("nsubj", "ROOT", "aux", "xcomp"), ("PROPN", "VERB", "PART", "VERB"))
        >>> kinds(parse)[2, 4]  # Ada wants to code
        'xcomp'
    """
    verbs, names = predicate_words(parse), base_relations(parse)
    found: dict[Span, str] = {}
    for token, span in enumerate(subtree_ranges(parse.heads)):
        if span is not None:
            nominal = token not in verbs and parse.tags[token] in _NOMINALS
            found[span] = "nominal" if nominal else names[token]
    return found


def without_points(found: Subtrees, tokens: Sequence[str]) -> Subtrees:
    """The same ranges without the full stops, commas and the like at their ends: these belong to what is around.

    Example:
        >>> without_points(Subtrees(((0, 2),), ((3, 4),)), ["He", ",", "saw", "."])[:2]
        (((0, 1),), ())
    """

    def inner(span: Span) -> Span:
        return strip_tokens(span, tokens, _POINTS)

    subjects, objects = (
        tuple(sorted({(a, b) for a, b in map(inner, spans) if a < b})) for spans in (found.subjects, found.objects)
    )
    # Where two ranges become one, the kind is that of the larger.
    by_length = sorted(found.kinds, key=lambda span: span[1] - span[0])
    return Subtrees(subjects, objects, {inner(span): found.kinds[span] for span in by_length})


def exchanges(
    one: Sentence,
    other: Sentence,
    of_one: Subtrees,
    of_other: Subtrees,
    words: Words | None = None,
    *,
    cuts: bool = True,
) -> Iterator[Candidate]:
    """Every exchange of a subject subtree for a subject subtree and of an object subtree for an object subtree.

    Subtrees whose kinds are known and differ are not exchanged. Each exchange gives two sentences, one in each frame.
    Mentions travel with their subtree. A contiguous mention of a flat sentence that a subtree cuts becomes parts that
    keep its label (the paper's repair, at the joints alone); an exchange that would cut a nested or discontinuous
    mention is left out.

    Args:
        one: the first sentence.
        other: the second.
        of_one: what can be exchanged in the first.
        of_other: what can be exchanged in the second.
        words: given the sentence that keeps its frame, the one that gives, and the two ranges, the words that come in;
            by default those that stand there.
        cuts: whether a subtree may cut a contiguous mention of a flat sentence.
    """

    def may(sentence: Sentence, span: Span) -> bool:
        return (cuts and sentence.is_flat) or holds_whole(sentence, span)

    for role, spans, others in (
        ("subject", of_one.subjects, of_other.subjects),
        ("object", of_one.objects, of_other.objects),
    ):
        counterparts = [span for span in others if may(other, span)]
        for span in (span for span in spans if may(one, span)):
            for counterpart in counterparts:
                if of_one.kinds.get(span) != of_other.kinds.get(counterpart):
                    continue
                for frame, (keeps, gives, out, into) in enumerate(
                    ((one, other, span, counterpart), (other, one, counterpart, span))
                ):
                    made = keeps.split_mentions(out).edit([graft(keeps, gives, out, into, words)])
                    yield Candidate(made, frame, role, out, into)


def j_score(candidate: Sequence[str], one: Sequence[str], other: Sequence[str]) -> float:
    """The geometric mean of the Jaccard similarities of a candidate with the two sentences it came from.

    Over sets of lower-cased words, as the paper's formula is written.

    Example:
        >>> j_score("a b c".split(), "A b".split(), "c d".split())
        0.408248290463863
    """
    sets = [{word.lower() for word in words} for words in (one, other, candidate)]
    u, v, c = sets
    whole = len(u | c) * len(v | c)
    return float((len(u & c) * len(v & c) / whole) ** 0.5) if whole else 0.0
