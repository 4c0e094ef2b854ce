"""Dependency trees as values: the ranges of subtrees, and what relations are called.

Subjects and objects have other names in spaCy's pipelines than in Universal Dependencies; here all are known.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from entaug.backends.protocols import Parse
from entaug.data import Span

__all__ = ["OBJECTS", "SUBJECTS", "relation_names", "subtree_ranges", "trimmed", "verbal"]

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
"""Relations of objects and complements in the same."""

_VERBS = frozenset({"VERB", "AUX"})


def relation_names(parse: Parse) -> list[str]:
    """For each token its relation, without subtype and in lower case.

    Example:
        >>> relation_names(Parse((1, 1), ("nsubj:pass", "ROOT"), ("PRON", "VERB")))
        ['nsubj', 'root']
    """
    return [relation.lower().partition(":")[0] for relation in parse.relations]


def verbal(parse: Parse) -> set[int]:
    """The tokens that are verbs or have a copula, as in Universal Dependencies."""
    found = {head for head, name in zip(parse.heads, relation_names(parse), strict=True) if name == "cop"}
    return found | {token for token, tag in enumerate(parse.tags) if tag in _VERBS}


def subtree_ranges(heads: Sequence[int]) -> list[Span | None]:
    """For each token the range of its subtree, or None where that has gaps.

    Args:
        heads: for each token the position of its head; a root is its own head.

    Example:
        >>> subtree_ranges([1, 1, 0])  # the last token belongs to the first, across the root
        [None, (0, 3), (2, 3)]
    """
    n = len(heads)
    first, last, size = list(range(n)), list(range(n)), [1] * n
    # Deepest first: a token's depth is how many heads stand above it.
    depth = [0] * n
    for token in range(n):
        at = token
        while heads[at] != at and depth[token] <= n:
            at = heads[at]
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


def trimmed(span: Span, tokens: Sequence[str], points: Container[str]) -> Span:
    """A range without the tokens at its ends that are made of some characters; it may come out empty.

    Example:
        >>> trimmed((0, 3), ["(", "Rome", "."], "().")
        (1, 2)
    """
    start, end = span
    while start < end and all(c in points for c in tokens[start]):
        start += 1
    while start < end and all(c in points for c in tokens[end - 1]):
        end -= 1
    return start, end
