"""Functions of dependency trees: subtrees, relations, verbs.

Relations are those of spaCy's pipelines and of Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from entaug.backends.protocols import Parse
from entaug.core.mentions import Span

SUBJECTS = frozenset(
    {
        *("nsubj", "nsubjpass", "csubj", "csubjpass"),  # spaCy's English and Chinese, and Universal Dependencies
        *("sb", "sbp", "sp"),  # spaCy's German
    }
)
"""Relations of subjects in the label sets of spaCy's pipelines and of Universal Dependencies, without subtypes."""

OBJECTS = frozenset(
    {
        *("dobj", "obj", "iobj", "pobj", "pcomp", "acomp", "ccomp", "xcomp", "oprd"),
        *("oa", "oc", "og", "op"),  # spaCy's German
    }
)
"""Relations of objects and complements in the same label sets."""

_VERBS = frozenset({"VERB", "AUX"})
_MODIFIERS = frozenset({"compound", "amod", "nmod", "nummod", "flat", "nk", "pnc"})
_CONJUNCTS = frozenset({"conj", "cj"})


def base_relations(parse: Parse) -> list[str]:
    """The relation of each word, without subtype and in lower case."""
    return [relation.lower().partition(":")[0] for relation in parse.relations]


def predicate_words(parse: Parse) -> set[int]:
    """The words that are verbs, or predicates with a copula as in Universal Dependencies."""
    with_copula = {head for head, name in zip(parse.heads, base_relations(parse), strict=True) if name == "cop"}
    return with_copula | {token for token, tag in enumerate(parse.tags) if tag in _VERBS}


def subtree_ranges(heads: Sequence[int]) -> list[Span | None]:
    """The range of the subtree of each word."""
    n = len(heads)
    first, last, size = list(range(n)), list(range(n)), [1] * n
    # The depth of a word is the number of its ancestors; the deepest words come first.
    depth = [0] * n
    for token in range(n):
        ancestor = token
        while heads[ancestor] != ancestor and depth[token] <= n:
            ancestor = heads[ancestor]
            depth[token] += 1
    for token in sorted(range(n), key=lambda token: -depth[token]):
        head = heads[token]
        if head != token:
            first[head] = min(first[head], first[token])
            last[head] = max(last[head], last[token])
            size[head] += size[token]
    return [
        (first[token], last[token] + 1) if last[token] + 1 - first[token] == size[token] else None for token in range(n)
    ]


def grammatical_number(parse: Parse, span: Span) -> str:
    """The grammatical number of a noun phrase."""
    head = head_of(parse, span)
    names = base_relations(parse)
    if any(parse.heads[i] == head and names[i] in _CONJUNCTS for i in range(head + 1, span[1])):
        return "Plur"
    return _features(parse, head, ("Number",))


def phrase_form(words: Sequence[str], parse: Parse, category: str, span: Span) -> str:
    """The form of a phrase, for `entaug.backends.protocols.Constituent`."""
    start, end = span
    if category == "NP":
        head = head_of(parse, span)
        place = "+poss" if parse.tags[end - 1] == "PART" else ""
        place += "+mod" if base_relations(parse)[head] in _MODIFIERS else ""
        determiner = "+det" if parse.tags[start] == "DET" and end - start > 1 else ""
        return f"{grammatical_number(parse, span)}{place}/{parse.tags[head]}{determiner}"
    if category == "VP":
        verb = next((i for i in range(start, end) if parse.tags[i] in _VERBS), start)
        # With "to" or an adverb before it, it stands in other places.
        return _features(parse, verb, ("VerbForm", "VerbType", "Tense", "Aspect", "Number", "Person")) + (
            "" if verb == start else f"+{parse.tags[start]}"
        )
    return f"/{words[start].lower()}" if category == "PP" else ""


def head_of(parse: Parse, span: Span) -> int:
    """The first word of a range whose head is outside of it, or which is a root."""
    start, end = span
    return next((i for i in range(start, end) if parse.heads[i] == i or not start <= parse.heads[i] < end), start)


def _features(parse: Parse, word: int, names: Sequence[str]) -> str:
    """The values of some morphological features of a word."""
    if not parse.features:
        return ""
    values = dict(item.partition("=")[::2] for item in parse.features[word].split("|"))
    return ".".join(values[name] for name in names if name in values)


def strip_tokens(span: Span, tokens: Sequence[str], characters: Container[str]) -> Span:
    """A range without the tokens at its ends that consist of some characters."""
    start, end = span
    while start < end and all(c in characters for c in tokens[start]):
        start += 1
    while start < end and all(c in characters for c in tokens[end - 1]):
        end -= 1
    return start, end
