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
_CONJUNCTS = frozenset({"conj", "cj"})


def base_relations(parse: Parse) -> list[str]:
    """The relation of each word, without subtype and in lower case."""
    return [relation.lower().partition(":")[0] for relation in parse.relations]


def predicate_words(parse: Parse) -> set[int]:
    """The words that are verbs, or predicates with a copula as in Universal Dependencies."""
    with_copula = {head for head, name in zip(parse.heads, base_relations(parse), strict=True) if name == "cop"}
    return with_copula | {token for token, tag in enumerate(parse.tags) if tag in _VERBS}


def children_of(heads: Sequence[int]) -> list[list[int]]:
    """Return for each token those whose head it is, in order."""
    children: list[list[int]] = [[] for _ in heads]
    for token, head in enumerate(heads):
        if head != token:
            children[head].append(token)
    return children


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
    # What agrees with the rest of a sentence, and what the rest refers to: the role of the phrase, its number or the
    # form of its verb, its preposition, what follows its head outside of it, and its pronouns.
    start, end = span
    head = head_of(parse, span)
    names = base_relations(parse)
    parts = [_role(names[head])]
    if category == "NP":
        parts += [grammatical_number(parse, span), parse.tags[head], _gender_of_references(parse, span)]
        above = parse.heads[head]
        parts.append(words[above].lower() if parse.tags[above] == "ADP" else "")
        parts.append("joined" if any(names[i] in _CONJUNCTS and parse.heads[i] == head for i in range(*span)) else "")
        parts.append("poss" if parse.tags[end - 1] == "PART" else "")
        parts.append("det" if parse.tags[start] == "DET" and end - start > 1 else "")
    elif category == "VP":
        verb = next((i for i in range(start, end) if parse.tags[i] in _VERBS), start)
        # With "to" or an adverb before it, it stands in other places.
        parts += [_features(parse, verb, _OF_VERBS), "" if verb == start else parse.tags[start]]
        below = {names[i] for i, of in enumerate(parse.heads) if of == head}
        parts.append("passive" if _PASSIVE & below else "")
        if names[head] in _CLAUSES_OF_NOUNS:  # the noun may be its object
            parts.append("object" if OBJECTS & below else "")
    elif category == "PP":
        parts += [words[start].lower(), parse.tags[parse.heads[head]]]
        parts += sorted({names[i] for i in range(start, end) if parse.heads[i] == head and names[i] in OBJECTS})
    else:
        parts.append(parse.tags[head])
    parts.append(
        "open" if any(of == head and i >= end and names[i] != "punct" for i, of in enumerate(parse.heads)) else ""
    )
    parts += _pronouns(words, parse, span)
    parts.append("clitic" if words[start][:1] in _APOSTROPHES else "")
    return "+".join(filter(None, parts))


_OF_VERBS = ("VerbForm", "VerbType", "Tense", "Aspect", "Number", "Person")
_PASSIVE = frozenset({"auxpass", "nsubjpass"})
_CLAUSES_OF_NOUNS = frozenset({"relcl", "acl", "rc"})
_APOSTROPHES = frozenset("'’")  # noqa: RUF001


def _role(relation: str) -> str:
    """The role of a phrase: subject, object, or the relation."""
    return "subject" if relation in SUBJECTS else "object" if relation in {"dobj", "obj", "oa", "pobj"} else relation


def _pronouns(words: Sequence[str], parse: Parse, span: Span) -> list[str]:
    """The pronouns and demonstratives in a range, most of which refer to something outside of it."""
    referring = (i for i in range(*span) if parse.tags[i] == "PRON" or _features(parse, i, ("PronType",)) == "Dem")
    return sorted({words[i].lower() for i in referring})


def _gender_of_references(parse: Parse, span: Span) -> str:
    """The genders of singular pronouns after a range, which may refer to it."""
    after = {_features(parse, i, ("Gender",)) for i in range(span[1], len(parse.heads)) if parse.tags[i] == "PRON"}
    return "".join(sorted(after & {"Masc", "Fem"}))


def head_of(parse: Parse, span: Span) -> int:
    """The first word of a range whose head is outside of it, or which is a root."""
    start, end = span
    return next((i for i in range(start, end) if parse.heads[i] == i or not start <= parse.heads[i] < end), start)


def content_heads(parse: Parse, category: str, span: Span) -> tuple[int, ...]:
    """The words that say what a phrase is: its head, of a prepositional phrase the heads of what follows."""
    head = head_of(parse, span)
    if category != "PP":
        return (head,)
    names = base_relations(parse)
    objects = [i for i in range(*span) if parse.heads[i] == head and i != head and names[i] in OBJECTS]
    return tuple(objects) or (head,)


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
