"""Functions of dependency trees: subtrees, relations, verbs.

Relations are those of spaCy's pipelines and of Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from entaug.backends.protocols import Parse
from entaug.data import Span

__all__ = ["OBJECTS", "SUBJECTS", "base_relations", "predicate_words", "strip_tokens", "subtree_ranges"]

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


def base_relations(parse: Parse) -> list[str]:
    """The relation of each word, without subtype and in lower case.

    Args:
        parse: the tree.

    Returns:
        A relation for each word.

    Example:
        >>> base_relations(Parse((1, 1), ("nsubj:pass", "ROOT"), ("PRON", "VERB")))
        ['nsubj', 'root']
    """
    return [relation.lower().partition(":")[0] for relation in parse.relations]


def predicate_words(parse: Parse) -> set[int]:
    """The words that are verbs, or predicates with a copula as in Universal Dependencies.

    Args:
        parse: the tree.

    Returns:
        Their positions.
    """
    with_copula = {head for head, name in zip(parse.heads, base_relations(parse), strict=True) if name == "cop"}
    return with_copula | {token for token, tag in enumerate(parse.tags) if tag in _VERBS}


def subtree_ranges(heads: Sequence[int]) -> list[Span | None]:
    """The range of the subtree of each word.

    Args:
        heads: for each word the position of its head; a root is its own head.

    Returns:
        For each word a half-open range, or None if the subtree has gaps.

    Example:
        >>> subtree_ranges([1, 1, 0])  # the last word depends on the first, across the root
        [None, (0, 3), (2, 3)]
    """
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


def strip_tokens(span: Span, tokens: Sequence[str], characters: Container[str]) -> Span:
    """A range without the tokens at its ends that consist of some characters.

    Args:
        span: the half-open range.
        tokens: the tokens of the sentence.
        characters: the characters, for example punctuation.

    Returns:
        The smaller range, which may be empty.

    Example:
        >>> strip_tokens((0, 3), ["(", "Rome", "."], "().")
        (1, 2)
    """
    start, end = span
    while start < end and all(c in characters for c in tokens[start]):
        start += 1
    while start < end and all(c in characters for c in tokens[end - 1]):
        end -= 1
    return start, end
