"""What a sentence can do without, and where its parts may stand: adjuncts and coordinations in a dependency tree.

Relations are those of spaCy's pipelines and of Universal Dependencies. Rules that name words are rules of English; the
words are of closed classes: prepositions, conjunctions, connectives, names of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from entaug.backends.dependency_trees import (
    OBJECTS,
    SUBJECTS,
    base_relations,
    children_of,
    grammatical_number,
    predicate_words,
    strip_tokens,
    subtree_ranges,
)
from entaug.backends.protocols import Parse
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span
from entaug.core.spacing import is_word_character

_SEPARATORS = frozenset(".,:;!?…-–—")  # noqa: RUF001
_FULL_STOPS = frozenset((".", "!", "…", "..."))
_ENDS = _FULL_STOPS | {"?", ";", ":"}
_BRACKETS = {"(": ")", "[": "]", "-LRB-": "-RRB-"}
_QUOTES = frozenset(('"', "``", "''", "“", "”", "'", "‘", "’", "«", "»"))  # noqa: RUF001
_JOINERS = frozenset(("-", "/"))
_PARTS_OF_WORDS = frozenset((*_JOINERS, *_BRACKETS, *_BRACKETS.values()))
_ENUMERATOR = re.compile(r"(?:[A-Za-z]|[ivx]+|\d+)\b")

_SUBJECTS = SUBJECTS | {"expl"}
_AUXILIARIES = frozenset({"aux", "auxpass", "cop"})
_CONJUNCTS = frozenset({"conj", "cj"})
_CONJUNCTIONS = frozenset({"cc", "cd"})
_RELATIVE_CLAUSES = frozenset({"relcl", "acl", "rc"})
_APPOSITIONS = frozenset({"appos", "app"})
_PREPOSITIONAL = frozenset({"prep", "obl", "agent"})
_ADVERBIALS = frozenset({"advmod", "npadvmod", "advcl", "prep", "obl", "parataxis", "intj", "discourse"})
_COMPLEMENTS = (OBJECTS | {"attr", "dative", "prep", "obl", "agent", "csubj"}) - {"pobj", "pcomp"}
_CLAUSES = frozenset({"advcl", "ccomp", "parataxis", "relcl", "acl", "xcomp", "csubj"})
_PARTS_OF_NOUNS = frozenset({"det", "amod", "compound", "nmod", "nummod", "poss", "prep", "case", "flat", "predet"})
_NOUNS = frozenset({"NOUN", "PROPN"})
_OF_NOUNS = frozenset({"pobj", "dobj", "nsubj", "nsubjpass"})
_BESIDE_NAMES = _NOUNS | {"DET", "ADJ", "NUM"}
_VERBS = frozenset({"VERB", "AUX"})

_COORDINATORS = frozenset(("and", "but", "or"))
_FIRST_COORDINATORS = frozenset(("either", "both", "neither"))
_SUBORDINATORS = frozenset("although though because while whilst whereas after before when since".split())
_ADJUNCT_PREPOSITIONS = frozenset(
    "during after before since until despite throughout according following because amid unlike notwithstanding".split()
)
_TIME_PREPOSITIONS = _ADJUNCT_PREPOSITIONS | frozenset("in on at from by within between around over for".split())
_TIME_DETERMINERS = frozenset("last this next that each every".split())
_BOUND_PREPOSITIONS = frozenset("than from as to of".split())  # of complements
_MONTHS = "january february march april may june july august september october november december"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_UNITS = "year month week day decade century morning afternoon evening night summer winter spring autumn season weekend"
_TIMES = frozenset(f"{_MONTHS} {_WEEKDAYS} {_UNITS} {_UNITS.replace(' ', 's ')}s centuries".split())
_YEAR = re.compile(r"(?:1\d|20)\d\d(?:s|'s)?")
_RELATIVE_PRONOUNS = frozenset("which who whom whose where when that".split())
_CONNECTIVES = frozenset("however therefore nevertheless nonetheless moreover furthermore consequently".split())
_REFERRING = frozenset("then same such latter former other others second".split())  # to what stands before
_ARTICLES = frozenset(("the", "a", "an"))
_ORDERED = _REFERRING | frozenset("respectively more etc later vice".split())

_MAX_DISTANCE = 20  # tokens of a clause that moves, or over which one moves back
_MAX_PHRASE = 10  # tokens of a phrase that changes places with one of time
_MAX_PLACE = 6  # tokens of a phrase of place that moves to the beginning
_MAX_TIME = 4  # tokens of that


def has_final_mark(tokens: Sequence[str]) -> bool:
    """Return whether a sentence ends with a full stop or the like."""
    return not _ENDS.isdisjoint(tokens[_end_of_words(tokens) :])


def _end_of_words(tokens: Sequence[str]) -> int:
    """The end of a sentence without its final punctuation."""
    end = len(tokens)
    while end and (tokens[end - 1] in _ENDS or tokens[end - 1] in _QUOTES):
        end -= 1
    return end


class _Statement:
    """A sentence with its tree: one finite clause, whose subject comes first in English."""

    def __init__(self, sentence: Sentence, parse: Parse, *, is_english: bool) -> None:
        tokens = sentence.tokens
        self.is_english = is_english
        self.tokens = tokens
        self.lower = [token.lower() for token in tokens]
        self.is_outside = sentence.outside_mask()
        self.parse = parse
        self.tags = parse.tags
        self.heads = parse.heads
        self.names = base_relations(parse)
        self.verbs = predicate_words(parse)
        self.end = _end_of_words(tokens)
        self._ranges = subtree_ranges(parse.heads)
        self._children = children_of(parse.heads)
        roots = [i for i, head in enumerate(parse.heads) if head == i and not _SEPARATORS.issuperset(tokens[i])]
        self.root = roots[0] if roots else 0
        subjects = self.children(self.root, _SUBJECTS)
        self.subject = subjects[0] if subjects else None
        self.is_valid = len(roots) == 1 and self.root in self.verbs and self._is_statement()

    def _is_statement(self) -> bool:
        if self.subject is None or "?" in self.tokens or not self._is_one_sentence():
            return False
        before = (self._ranges[self.subject] or (0, 0))[0] - 1
        if before >= 0 and self.names[before] == "prep" and not self._children[before]:
            return False  # what is taken for the subject belongs to it
        group = [self.root, *self.children(self.root, _AUXILIARIES)]
        finite = [v for v in group if not self.parse.features or "VerbForm=Fin" in self.parse.features[v]]
        if not finite:
            return False
        return not self.is_english or (self.subject < min(group) and self._agrees(self.subject, finite[0]))

    def _is_one_sentence(self) -> bool:
        """Whether no full stop stands within, but before digits, and there is no heading in capitals."""
        stops = (i for i in range(self.end - 1) if self.tokens[i] in _FULL_STOPS)
        is_capitals = [word.isupper() and len(word) > 2 for word in self.tokens[:2]]
        is_heading = is_capitals[0] and (
            all(is_capitals) or (self.tokens[1][:1].isupper() and self.tags[1] in {"DET", "PRON", "ADP"})
        )
        return not is_heading and all(self.tokens[i + 1][:1].isdigit() for i in stops)

    def _agrees(self, subject: int, verb: int) -> bool:
        """Whether a verb in the present agrees with its subject; if not, the tree is wrong."""
        span = self.core(subject)
        features = self.parse.features[verb] if self.parse.features else ""
        if span is None or self.tags[subject] not in _NOUNS or "Tense=Pres" not in features:
            return True
        return self.tags[verb] != "VERB" or grammatical_number(self.parse, span) != "Sing" or "Person=3" in features

    def children(self, token: int, names: frozenset[str] | set[str] | None = None) -> list[int]:
        """The children of a word, those of some relations."""
        children = self._children[token]
        return children if names is None else [c for c in children if self.names[c] in names]

    def subtree(self, token: int) -> Span | None:
        """The range of a subtree, if it has no gap."""
        return self._ranges[token]

    def core(self, token: int) -> Span | None:
        """The range of a subtree without punctuation at its ends."""
        span = self._ranges[token]
        start, end = (0, 0) if span is None else strip_tokens(span, self.tokens, _SEPARATORS)
        return (start, end) if start < end and not self.cuts_word(start, end) else None

    def cuts_word(self, start: int, end: int) -> bool:
        """Whether a range begins or ends within what is one word or number in print."""
        before = self.tokens[start - 1] if start else ""
        after = self.tokens[end] if end < self.end else ""
        return before in _JOINERS or after in _JOINERS or after in _FULL_STOPS

    def is_closed(self, start: int, end: int) -> bool:
        """Whether a range has both or none of its brackets and quotes."""
        words = self.tokens[start:end]
        brackets = all(words.count(opening) == words.count(closing) for opening, closing in _BRACKETS.items())
        return brackets and sum(word in _QUOTES for word in words) % 2 == 0

    def begins_clause(self, position: int) -> bool:
        """Whether a word begins a clause that a comma stands before."""
        if position >= self.end:
            return False
        if self.lower[position] == "that" and self.names[self.heads[position]] == "ccomp":
            return False  # the object of the verb
        is_clause = self.names[position] in _RELATIVE_CLAUSES | {"advcl"}
        return is_clause or self.tags[position] in {"CCONJ", "SCONJ"} or self.lower[position] in _RELATIVE_PRONOUNS

    def closes_opening(self, end: int) -> bool:
        """Whether an adverbial before the subject ends here, whose comma follows."""
        opening = [c for c in self.children(self.root, _ADVERBIALS) if self.subject is not None and c < self.subject]
        return any(span is not None and span[1] == end for span in map(self.core, opening))

    def is_negated(self, verb: int) -> bool:
        """Whether a verb is negated or restricted, so that an adjunct may bear the sense."""
        return any(self.names[c] == "neg" or self.lower[c] in {"not", "never", "only"} for c in self._children[verb])

    def has_complement(self, verb: int, without: Span) -> bool:
        """Whether a complement or phrase follows a verb, apart from a range."""
        # Behind "is" a phrase may be the predicate itself.
        names = _COMPLEMENTS - _PREPOSITIONAL if self.tags[verb] == "AUX" else _COMPLEMENTS
        following = (c for c in self.children(verb, names) if c > verb)
        return any(not without[0] <= c < without[1] for c in following)

    def is_time(self, token: int) -> bool:
        """Whether a word is a year, a month, a day or a unit of time."""
        return self.lower[token] in _TIMES or _YEAR.fullmatch(self.lower[token]) is not None

    def nouns(self, phrase: int) -> list[int]:
        """The nouns of a prepositional phrase; in Universal Dependencies its head."""
        return [phrase] if self.names[phrase] == "obl" else self.children(phrase, {"pobj"})

    def is_temporal(self, phrase: int) -> bool:
        """Whether a phrase is one of time: "in May", "last week"."""
        span = self.core(phrase)
        if span is None:
            return False
        if self.names[phrase] == "npadvmod":
            return self.lower[span[0]] in _TIME_DETERMINERS and self.is_time(phrase)
        return self.lower[span[0]] in _TIME_PREPOSITIONS and any(map(self.is_time, self.nouns(phrase)))


# ---------------------------------------------------------------------------------------------------------------- crop


def droppable_parts(sentence: Sentence, parse: Parse, *, is_english: bool) -> list[tuple[Span, ...]] | None:
    """Return the parts that a sentence can do without; None if it is no plain statement."""
    # A part is one or more ranges with their punctuation: an adjunct or parenthesis, the second of two coordinated
    # clauses, or all brackets together. Without English rules those are used that hold in most languages.
    statement = _Statement(sentence, parse, is_english=is_english)
    if not statement.is_valid:
        return None
    spans = {*_adjuncts(statement), *_last_clauses(statement)}
    brackets = tuple(_brackets(statement))
    return [*([brackets] if brackets else []), *((span,) for span in sorted(spans) if statement.is_closed(*span))]


def _brackets(s: _Statement) -> Iterator[Span]:
    """Yield outer brackets, apart from enumerators "(a)" and from those that are parts of words and mentions."""
    opened: list[int] = []
    for i, token in enumerate(s.tokens):
        if token in _BRACKETS:
            opened.append(i)
        elif opened and token == _BRACKETS[s.tokens[opened[-1]]]:
            start = opened.pop()
            around = {*s.tokens[max(0, start - 1) : start], *s.tokens[i + 1 : i + 2]}
            is_mark = i - start == 1 or (i - start == 2 and _ENUMERATOR.fullmatch(s.tokens[start + 1]))
            is_part = not around.isdisjoint(_PARTS_OF_WORDS) or any(map(_ENUMERATOR.match, s.tokens[i + 1 : i + 2]))
            if start and not opened and not is_mark and not is_part and s.is_outside[start]:
                yield start, i + 1


def _adjuncts(s: _Statement) -> Iterator[Span]:
    for token, name in enumerate(s.names):
        span, head = s.core(token), s.heads[token]
        if span is None or head == token:
            continue
        start, end = span
        is_last = end >= s.end or s.tokens[end] in {";", ")", "]"}
        if s.tokens[end : end + 1] == (",",) and not start:
            if name in _ADVERBIALS and head == s.root and s.tags[end + 1 : end + 2] != ("CCONJ",):
                yield 0, end + 1
        elif start and s.tokens[start - 1] == ",":
            if not s.is_closed(0, start):  # within brackets or quotes
                continue
            if is_last and _is_parenthetical(s, token, span):
                yield start - 1, end
            elif s.tokens[end : end + 1] == (",",) and _is_parenthetical(s, token, span) and not _is_joint(s, end):
                # The comma before another clause stays, and that behind the opening of a sentence.
                yield start - 1, end + (not (s.begins_clause(end + 1) or s.closes_opening(end)))
        elif head in s.verbs and head < start and _is_free(s, token, span):
            yield span


def _is_joint(s: _Statement, comma: int) -> bool:
    """Whether what stands behind a comma needs the words before it: another clause, or members of an enumeration."""
    begin = comma + 1  # "they rose, however, others fell"; "using English as source, and German as target"
    if s.tags[begin : begin + 1] == ("CCONJ",):
        return not any(verb > begin for verb in s.verbs)
    subjects = (s.core(i) for i in range(begin, s.end) if s.names[i] in SUBJECTS)
    return not s.closes_opening(comma) and any(span is not None and span[0] == begin for span in subjects)


def _is_parenthetical(s: _Statement, token: int, span: Span) -> bool:
    """Whether a subtree between commas is an addition to what stands before it, and no member of an enumeration."""
    name, head = s.names[token], s.heads[token]
    if head > token:
        return False
    if name in _RELATIVE_CLAUSES:
        first = s.lower[span[0] : span[0] + 3]  # "which", "of which", "some of which"
        return not s.is_english or not _RELATIVE_PRONOUNS.isdisjoint(first) or s.tags[span[0]] == "VERB"
    if name == "advcl":
        return head in s.verbs
    # Commas divide the members of a coordination as well.
    is_member = any(s.names[i] in _CONJUNCTS for i in (*range(*span), *s.children(head)))
    if name in _APPOSITIONS:
        is_only = len(s.children(head, _APPOSITIONS)) == 1 and not is_member
        return is_only and {s.tags[token], s.tags[head]} <= _NOUNS
    is_adverbial = name in {"prep", "obl", "advmod", "discourse"} or (name == "npadvmod" and not is_member)
    # Behind a noun it ends the phrase.
    following = s.tags[span[1] + 1 : span[1] + 2] if s.tokens[span[1] : span[1] + 1] == (",",) else ()
    is_at_end = head in s.verbs or all(tag in _VERBS | {"ADV", "PUNCT"} for tag in following)
    return is_adverbial and s.names[head] != "amod" and is_at_end


def _is_free(s: _Statement, token: int, span: Span) -> bool:
    """Whether a clause or phrase behind its verb, without commas, is an adjunct."""
    name, head, first = s.names[token], s.heads[token], s.lower[span[0]]
    following = s.lower[span[1] : span[1] + 1]
    if not s.has_complement(head, span) or s.is_negated(head) or following in (["than"], ["as"], [":"]):
        return False
    if (first, following) == ("from", ["to"]):
        return False
    if not s.is_english:
        # Universal Dependencies have "obl:arg" for what a verb demands.
        return s.parse.relations[token].lower() in {"obl", "advcl"} and bool(s.children(head, {"obj", "dobj"}))
    if name == "advcl":
        return span[1] == s.end and first in _SUBORDINATORS
    return s.is_temporal(token) or (name in _PREPOSITIONAL and first in _ADJUNCT_PREPOSITIONS)


def _last_clauses(s: _Statement) -> Iterator[Span]:
    """Yield the second of two coordinated clauses or verb phrases, with its conjunction."""
    for token in s.verbs:
        span, head = s.core(token), s.heads[token]
        if s.names[token] not in _CONJUNCTS or span is None or not head < span[0] or head not in s.verbs:
            continue
        if s.names[head] in _OF_NOUNS:  # a clause without its pronoun: "the role monocytes play"
            continue
        start, end = span
        # In Universal Dependencies the conjunction is a child of the second verb, elsewhere one of the first.
        coordinator = start if s.names[start] in _CONJUNCTIONS else start - 1
        is_last = end >= s.end or s.tokens[end] in {";", ")", "]"}
        is_pair = not _FIRST_COORDINATORS.isdisjoint(s.lower[:coordinator])
        if s.is_english:
            is_joined = s.lower[coordinator] in _COORDINATORS
        else:
            is_joined = s.names[coordinator] in _CONJUNCTIONS or s.tokens[coordinator] == ","
        if not is_last or is_pair or not is_joined:
            continue
        # What stands behind the second verb may belong to the first as well ("cloned and sequenced the gene").
        is_whole = bool(s.children(token, _SUBJECTS)) or any(
            head < c < coordinator for c in s.children(head, _COMPLEMENTS)
        )
        earlier = [c for c in s.children(head, {"ccomp"}) if c < head]
        is_series = s.names[head] in _CONJUNCTS or len(s.children(head, _CONJUNCTS)) > 1 or earlier
        if is_whole and not is_series:
            yield coordinator - (s.tokens[coordinator - 1] == ","), end


# -------------------------------------------------------------------------------------------------------------- rotate


class Order(NamedTuple):
    """A new order of the tokens of a sentence: their positions, before which of them a comma is new, and which go."""

    positions: tuple[int, ...]
    commas_before: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()


def english_orders(sentence: Sentence, parse: Parse) -> list[Order] | None:
    """Return the orders of a sentence that English grammar allows; None without one if it is no plain statement."""
    statement = _Statement(sentence, parse, is_english=True)
    of_names = list(_exchanged_names(statement, sentence.mentions))
    if not statement.is_valid:
        return of_names or None
    rules = (_fronted, _moved_back, _moved_connectives, _equated, _exchanged_phrases, _exchanged_conjuncts)
    return [*(order for rule in rules for order in rule(statement)), *of_names]


def _fronted(s: _Statement) -> Iterator[Order]:
    """Move an adjunct from the end of the sentence to its beginning."""
    first = next(c for c in (*s.children(s.root), s.root) if s.names[c] != "punct")
    begins = is_word_character(s.tokens[0][0]) and first == s.subject
    if not begins or s.children(s.root, _CONJUNCTS | {"parataxis", "ccomp"}):
        return
    n = len(s.tokens)
    for token in s.children(s.root):
        span = s.core(token)
        if span is None or span[0] <= s.root or span[1] != s.end or not _can_lead(s, token, span):
            continue
        start, end = span
        comma = start - (s.tokens[start - 1] == ",")  # goes
        positions = (*range(start, end), *range(start), *range(end, n))
        yield Order(positions, frozenset({0}), frozenset(range(comma, start)))


def _can_lead(s: _Statement, token: int, span: Span) -> bool:
    """Whether a clause or phrase at the end of the sentence can stand at its beginning."""
    name, first = s.names[token], s.lower[span[0]]
    if span[1] - span[0] > _MAX_DISTANCE or not s.is_closed(*span) or not s.has_complement(s.root, span):
        return False
    if s.is_negated(s.root) and not s.is_temporal(token):
        return False
    if name == "advcl":
        is_clause = first in _SUBORDINATORS and bool(s.children(token, SUBJECTS))
        is_purpose = first == "to" and all(s.children(verb, {"dobj", "obj"}) for verb in (s.root, token))
        return (is_clause or is_purpose) and not _is_bound(s, token, span)
    if name not in _PREPOSITIONAL | {"npadvmod"} or s.children(token, {"conj", "cc"}):
        return False
    # "moved there for two years" is how long he stayed, "from 0.9 in 1997 to 2.8 in 1998" are two times.
    if s.is_temporal(token) and (first == "for" or any(map(s.is_time, range(s.root, span[0])))):
        return False
    is_place = first in {"in", "at"} and bool(s.children(s.root, {"dobj", "obj"})) and _is_definite(s, token)
    is_short = span[1] - span[0] <= _MAX_PLACE and s.lower[span[0] - 1] not in {"that", "those"}
    return (is_place and is_short) or _is_adjunct(s, token, first)


def _is_adjunct(s: _Statement, phrase: int, first: str) -> bool:
    """Whether a phrase of the root verb is an adjunct: one of time, or of means ("by heating it")."""
    if s.names[phrase] in _PREPOSITIONAL and first in _ADJUNCT_PREPOSITIONS:
        return True
    gerunds = [c for c in s.children(phrase, {"pcomp"}) if s.is_outside[c]]  # in a mention it is a part of a noun
    is_means = first == "by" and bool(s.children(s.root, {"dobj", "obj"}) and gerunds)
    return is_means or s.is_temporal(phrase)


def _is_bound(s: _Statement, clause: int, span: Span) -> bool:
    """Whether a clause must keep its place: a pronoun would stand for something else, or it refers back."""
    is_elliptic = s.tags[clause] == "AUX" and not s.has_complement(clause, (clause, clause))  # "whereas Bo does not"
    if is_elliptic or not _REFERRING.isdisjoint(s.lower[slice(*span)]):
        return True
    main = s.subject
    for other in s.children(clause, SUBJECTS):
        if main is None or {s.tags[main], s.tags[other]} <= {"PRON"}:
            continue
        if s.tags[main] == "PRON" and s.tags[other] in _NOUNS:
            return True
        main_range = s.core(main)
        if s.tags[other] == "PRON" and main_range is not None and s.parse.features:
            number = grammatical_number(s.parse, main_range)
            return "Person=3" in s.parse.features[other] and f"Number={number}" not in s.parse.features[other]
    return False


def _is_definite(s: _Statement, phrase: int) -> bool:
    """Whether the noun of a prepositional phrase has a determiner or is a name; if not, it may be an idiom."""
    return any(
        s.tags[noun] == "PROPN" or any(s.tags[c] in {"DET", "NUM"} for c in s.children(noun))
        for noun in s.nouns(phrase)
    )


def _moved_back(s: _Statement) -> Iterator[Order]:
    """Move an adjunct from the beginning of the sentence to its end, where it can belong to nothing else."""
    for token in s.children(s.root):
        span = s.core(token)
        if span is None or span[0] or span[1] >= s.root or s.tokens[span[1]] != ",":
            continue
        comma = span[1]
        rest = range(comma + 1, s.end)
        is_plain = all(s.names[i] not in _CLAUSES | _CONJUNCTS or s.tags[i] not in _VERBS for i in rest)
        if (
            is_plain
            and "," not in s.tokens[comma + 1 : s.end]
            and len(rest) <= _MAX_DISTANCE
            and _can_follow(s, token, span)
        ):
            yield Order((*rest, *range(comma + 1), *range(s.end, len(s.tokens))), removed=frozenset({comma}))


def _can_follow(s: _Statement, token: int, span: Span) -> bool:
    """Whether a clause or phrase at the beginning of the sentence can stand at its end."""
    name, first = s.names[token], s.lower[0]
    if name == "advcl":
        is_clause = first in _SUBORDINATORS | {"to", "using"} and s.has_complement(s.root, span)
        return is_clause and not _is_bound(s, token, span)
    if name not in _PREPOSITIONAL | {"npadvmod"}:
        return False
    if s.is_temporal(token) or (first == "by" and _is_adjunct(s, token, first)):
        return True
    behind = [c for c in s.children(s.root, _PREPOSITIONAL) if c > s.root]
    return first in _ADJUNCT_PREPOSITIONS | {"in", "at"} and _is_definite(s, token) and len(behind) < 2


def _moved_connectives(s: _Statement) -> Iterator[Order]:
    """Move "however" and the like from the beginning behind a subject that is no pronoun, or back."""
    span = None if s.subject is None or s.tags[s.subject] not in _NOUNS else s.core(s.subject)
    if span is None or span[1] > s.root or not s.is_closed(*span) or "," in s.tokens[slice(*span)]:
        return
    start, end = span
    n = len(s.tokens)
    if start == 2 and s.lower[0] in _CONNECTIVES and s.tokens[1] == "," and s.tags[end] in _VERBS | {"ADV"}:
        yield Order((*range(start, end), 0, 1, *range(end, n)), frozenset({0}))
    elif not start and s.tokens[end : end + 3 : 2] == (",", ",") and s.lower[end + 1] in _CONNECTIVES:
        yield Order((end + 1, end + 2, *range(end + 1), *range(end + 3, n)), removed=frozenset({end}))


def _equated(s: _Statement) -> Iterator[Order]:
    """Exchange the subject and the predicate of "NAME is the ..."."""
    predicate = next(iter(s.children(s.root, {"attr"})), None)
    if s.subject is None or predicate is None or s.lower[s.root] not in {"is", "was"}:
        return
    one, other = s.core(s.subject), s.core(predicate)
    if one != (0, s.root) or other != (s.root + 1, s.end) or not s.is_closed(*other):
        return
    if s.tags[s.subject] == "PROPN" and s.lower[other[0]] == "the" and s.tags[predicate] == "NOUN":
        yield _exchange(s, one, other)


def _exchanged_phrases(s: _Statement) -> Iterator[Order]:
    """Exchange two phrases of a verb that stand side by side: of time and another, or of the doer and the place."""
    for verb in sorted(s.verbs):
        phrases = [c for c in s.children(verb, _PREPOSITIONAL) if c > verb]
        if not s.children(verb, {"dobj", "obj", "auxpass"}) or any(s.lower[c] == "from" for c in phrases):
            continue
        for left, right in pairwise(phrases):
            one, other = s.core(left), s.core(right)
            if one is None or other is None or one[1] != other[0] or _has_addition(s, other[1]):
                continue
            is_simple = all(
                s.is_closed(*span)
                and span[1] - span[0] <= (_MAX_TIME if s.is_temporal(phrase) else _MAX_PHRASE)
                and s.nouns(phrase)
                and not any(s.tags[i] in _VERBS for i in range(*span))
                for phrase, span in ((left, one), (right, other))
            )
            if is_simple and _are_exchangeable(s, left, right):
                yield _exchange(s, one, other)


def _are_exchangeable(s: _Statement, left: int, right: int) -> bool:
    """Whether two phrases change places: a time does not stand before a complement, but may stand behind one."""
    first, second = s.lower[left], s.lower[right]
    if s.is_temporal(left) != s.is_temporal(right):
        return second not in _BOUND_PREPOSITIONS if s.is_temporal(left) else first in {"in", "at", "by"}
    is_passive = "agent" in (s.names[left], s.names[right])
    return is_passive and not s.is_temporal(left) and not {first, second}.isdisjoint({"in", "at"})


def _has_addition(s: _Statement, end: int) -> bool:
    """Whether a bracket, an apposition, a clause or a noun follows, which may belong to what stands last."""
    return end < s.end and (s.tokens[end] in {",", *_BRACKETS} or s.tags[end] in _NOUNS)


def _exchange(s: _Statement, one: Span, other: Span) -> Order:
    between = range(one[1], other[0])
    return Order((*range(one[0]), *range(*other), *between, *range(*one), *range(other[1], len(s.tokens))))


def _exchanged_conjuncts(s: _Statement) -> Iterator[Order]:
    """Exchange the last member of a coordination of nouns and another one."""
    if not _ORDERED.isdisjoint(s.lower):
        return
    for token, name in enumerate(s.names):
        if name not in _CONJUNCTS and s.tags[token] in _NOUNS:
            members = _exchangeable_members(s, token)
            for member in members[:-1]:
                yield _exchange(s, member, members[-1])


def _exchanged_names(s: _Statement, mentions: Sequence[Mention]) -> Iterator[Order]:
    """Exchange two mentions of a type that "and" joins; labels tell where they begin and end, whatever the tree."""
    if not _ORDERED.isdisjoint(s.lower):
        return
    for one, other in pairwise(mentions):
        (start, end), (begin, last) = (one.start, one.end), (other.start, other.end)
        is_joined = one.label == other.label and s.lower[end:begin] == ["and"]
        if not (is_joined and one.is_contiguous and other.is_contiguous):
            continue
        words = (*s.tokens[start:end], *s.tokens[begin:last])
        is_plain = not any(any(map(str.isdigit, word)) or word.lower() in _ARTICLES for word in words)
        if is_plain and s.is_closed(start, last) and _stands_alone(s, start, last):
            yield _exchange(s, (start, end), (begin, last))


def _stands_alone(s: _Statement, start: int, end: int) -> bool:
    """Whether nothing beside two joined names belongs to one of them: an article, an attribute, a title."""
    before, after = s.tags[max(0, start - 1) : start], s.tags[end : end + 1]
    is_apart = not s.cuts_word(start, end) and s.lower[end : end + 1] not in (["of"], [","], ["("], ["["])
    is_apart &= not (_VERBS.issuperset(before or ".") and _VERBS.issuperset(after or "."))  # of two clauses
    return is_apart and _BESIDE_NAMES.isdisjoint(before) and (_BESIDE_NAMES - {"DET"}).isdisjoint(after)


def _exchangeable_members(s: _Statement, first: int) -> list[Span]:
    """The members of a coordination of nouns that may change places; fewer than two if they may not."""
    members = [first]
    for member in members:
        members += s.children(member, _CONJUNCTS)
    members.sort()
    spans = [span for member in members if (span := _own_range(s, member)) is not None]
    if not 1 < len(members) == len(spans) or any(s.tags[m] not in _NOUNS for m in members):
        return []
    # Two names that are no mentions may be one name.
    if any(s.tags[m] == "PROPN" and s.is_outside[m] for m in members):
        return []
    is_clear = _is_enumeration(s, spans) and _is_apart(s, first, spans)
    return _with_own_modifiers(s, members, spans) if is_clear else []


def _is_enumeration(s: _Statement, spans: Sequence[Span]) -> bool:
    """Whether nothing but commas and a conjunction stands between members, and these can stand in any order."""
    *inner, last = [s.lower[one[1] : other[0]] for one, other in pairwise(spans)]
    is_plain = all(words == [","] for words in inner) and last in (["and"], ["or"], [",", "and"], [",", "or"])
    if not is_plain or (not inner and last[0] == ","):  # rather clauses than nouns
        return False
    is_part = any(start and s.tokens[start - 1] in _BRACKETS.values() for start, _ in spans)
    return not is_part and not any(s.tags[i] == "PRON" or s.is_time(i) for span in spans for i in range(*span))


def _own_range(s: _Statement, member: int) -> Span | None:
    """The range of a member of a coordination without the others."""
    own = [member]
    for child in s.children(member):
        if s.names[child] in _CONJUNCTS | {"cc", "cd", "punct", "preconj"} or s.lower[child] in _FIRST_COORDINATORS:
            continue
        span = s.subtree(child)
        if span is None or s.names[child] not in _PARTS_OF_NOUNS:
            return None
        own += range(*span)
    start, end = min(own), max(own) + 1
    is_whole = len(set(own)) == end - start and s.is_closed(start, end) and not s.cuts_word(start, end)
    is_whole &= s.tags[end - 1] != "CCONJ"
    return (start, end) if is_whole else None


def _is_apart(s: _Statement, first: int, spans: Sequence[Span]) -> bool:
    """Whether what surrounds a coordination belongs to no member alone, and shows that the tree is right."""
    name, end, ancestors = s.names[first], spans[-1][1], [s.heads[first]]
    while s.heads[ancestors[-1]] != ancestors[-1]:
        ancestors.append(s.heads[ancestors[-1]])
    is_name = all(any(not s.is_outside[i] for i in range(*span)) for span in spans)
    if name in {"compound", "nmod", "amod"}:  # "a beta blocker or enzyme inhibitor": the tree is often wrong
        is_apart = is_name and end == s.heads[first] and all(last - start == 1 for start, last in spans)
    else:
        # In "between the expression of X and Y" the members are the expression and Y; within another phrase only single
        # nouns and those with articles of their own are surely members.
        is_within = len(ancestors) > 1 and s.tags[ancestors[1]] in _NOUNS
        is_plain = is_name or all(last - start == 1 or s.tags[start] == "DET" for start, last in spans)
        is_apart = all(s.lower[a] != "between" for a in ancestors[1:]) and (is_plain or not is_within)
    if name in SUBJECTS and s.lower[spans[-1][0] - 1] == "or":  # the verb agrees with the last
        return False
    if end >= s.end or end == s.heads[first] or not is_apart:
        return is_apart
    if s.tokens[end] in _BRACKETS or s.begins_clause(end + (s.tokens[end] == ",")):
        return False
    if s.lower[end] == "of" or s.tags[end] in _NOUNS or (s.tags[end] == "ADP" and not is_name):
        return False
    return s.tags[end] not in _VERBS or name in SUBJECTS or any(s.names[ancestor] in SUBJECTS for ancestor in ancestors)


def _with_own_modifiers(s: _Statement, members: Sequence[int], spans: Sequence[Span]) -> list[Span]:
    """The ranges that may change places, if what stands before and behind each member belongs to it alone."""
    is_name = all(s.tags[member] == "PROPN" for member in members)
    determined = [s.names[start] in {"det", "poss"} or s.tags[start] == "DET" for start, _ in spans]
    pairs = list(zip(members, spans, strict=True))
    if determined[0] and not any(determined[1:]):
        # "the West Bank, Israel and Jordan": an article of its own; "the lungs and liver": one for both.
        (member, (start, end)), *others = pairs
        if is_name:
            pairs = others
        elif start + 1 == member and s.lower[start] not in {"a", "an"}:
            pairs = [(member, (start + 1, end)), *others]
        else:
            return []
        if not is_name and any(last - begin > 1 for _, (begin, last) in pairs):
            return []
    elif any(determined) and not all(determined):
        return []
    if not is_name and not all(determined):
        if len({start == member for member, (start, _) in pairs}) > 1:
            return []
        if s.parse.features and len({"Number=Plur" in s.parse.features[member] for member in members}) > 1:
            return []
    # What follows the last belongs to it alone if the others have the like: "the head of X and the head of Y".
    tails = {(*s.lower[member + 1 : end], "")[0] for member, (_, end) in pairs}
    articles = {s.lower[start] if s.tags[start] == "DET" else "" for _, (start, _) in pairs}
    return [span for _, span in pairs] if tails == {""} or len(tails) == len(articles) == 1 else []
