"""Subtrees and their exchange, against hand-worked cases and a slow reference on tags."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entaug.backends.protocols import Parse
from entaug.core import tags
from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span
from entaug.methods.cassi import Subtrees, exchange_candidates, find_subtrees, j_score, phrase_types, strip_punctuation
from helpers.strategies import sentences


def parse_of(text: str) -> tuple[tuple[str, ...], Parse]:
    """A parse written as ``word/TAG/relation/head`` with heads counted from 0."""
    rows = [part.rsplit("/", 3) for part in text.split()]
    words, pos, relations, heads = zip(*rows, strict=True)
    return words, Parse(tuple(map(int, heads)), relations, pos)


ENGLISH = (
    "The/DET/det/1 mayor/NOUN/nsubj/2 visited/VERB/ROOT/2 "
    "the/DET/det/4 port/NOUN/dobj/2 of/ADP/prep/4 Oslo/PROPN/pobj/5"
)
GERMAN = "Heute/ADV/mo/1 besucht/VERB/ROOT/1 Angela/PROPN/pnc/3 Merkel/PROPN/sb/1 den/DET/nk/5 Hafen/NOUN/oa/1"
UD = "Ana/PROPN/nsubj:pass/2 was/AUX/aux:pass/2 seen/VERB/ROOT/2 in/ADP/case/4 Zagreb/PROPN/obl/2"


@pytest.mark.parametrize(
    ("text", "subjects", "objects"),
    [
        (ENGLISH, ((0, 2),), ((3, 7), (6, 7))),
        (GERMAN, ((2, 4),), ((4, 6),)),
        (UD, ((0, 1),), ()),
        ("#monday/NOUN/ROOT/0 :)/PUNCT/punct/0", (), ()),
        # Universal Dependencies: subtypes, and the subject of what has a copula.
        ("Ana/PROPN/nsubj:outer/3 is/AUX/cop/3 a/DET/det/3 doctor/NOUN/ROOT/3", ((0, 1),), ()),
        ("he/PRON/nsubj:caus/1 had/VERB/ROOT/1 it/PRON/obj:lvc/1", ((0, 1),), ((2, 3),)),
        # The subject of a noun is none (its head is no verb).
        ("cats/NOUN/nsubj/1 friends/NOUN/ROOT/1", (), ()),
        # "What" belongs to "see" over a gap: the tree of "said" is whole, that of "see" is not one run.
        ("What/PRON/dobj/4 did/AUX/aux/2 say/VERB/ROOT/2 Ana/PROPN/nsubj/2 see/VERB/ccomp/2", ((3, 4),), ((0, 1),)),
    ],
)
def test_subtrees(text: str, subjects: tuple[Span, ...], objects: tuple[Span, ...]) -> None:
    assert find_subtrees(parse_of(text)[1]) == Subtrees(subjects, objects)


def test_exchanges_by_hand() -> None:
    words, parse = parse_of(ENGLISH)
    one = Sentence(words, [Mention("LOC", [(3, 7)])], id="u")
    other = Sentence("Ada Byron wrote notes".split(), [Mention("PER", [(0, 2)])], id="v")
    found = list(exchange_candidates(one, other, find_subtrees(parse), Subtrees(((0, 2), (1, 2)), ((3, 4),))))
    told = [(c.role, c.frame, " ".join(c.sentence.tokens), c.sentence.mentions) for c in found]
    loc, per = "LOC", "PER"
    assert told == [
        ("subject", 0, "Ada Byron visited the port of Oslo", (Mention(per, [(0, 2)]), Mention(loc, [(3, 7)]))),
        ("subject", 1, "The mayor wrote notes", ()),
        # A parse that takes the last name alone: it opens a mention there, and the first name keeps its label.
        ("subject", 0, "Byron visited the port of Oslo", (Mention(per, [(0, 1)]), Mention(loc, [(2, 6)]))),
        ("subject", 1, "Ada The mayor wrote notes", (Mention(per, [(0, 1)]),)),
        ("object", 0, "The mayor visited notes", ()),
        ("object", 1, "Ada Byron wrote the port of Oslo", (Mention(per, [(0, 2)]), Mention(loc, [(3, 7)]))),
        ("object", 0, "The mayor visited the port of notes", (Mention(loc, [(3, 6)]),)),
        ("object", 1, "Ada Byron wrote Oslo", (Mention(per, [(0, 2)]), Mention(loc, [(3, 4)]))),
    ]
    assert [(c.sentence.id, c.removed, c.inserted) for c in found[:2]] == [("u", (0, 2), (0, 2)), ("v", (0, 2), (0, 2))]


def test_only_subtrees_of_a_kind_are_exchanged() -> None:
    words, parse = parse_of(
        "Ana/PROPN/nsubj/1 wants/VERB/ROOT/1 to/PART/aux/3 see/VERB/xcomp/1 Rome/PROPN/dobj/3 ./PUNCT/punct/1"
    )
    assert {span: kind for span, kind in phrase_types(parse).items() if span[1] - span[0] < 6} == {
        (0, 1): "nominal",
        (2, 3): "aux",
        (2, 5): "xcomp",
        (4, 5): "nominal",
        (5, 6): "punct",
    }
    one = find_subtrees(parse)._replace(types=phrase_types(parse))
    others, of_other = parse_of("Bo/PROPN/nsubj/1 likes/VERB/ROOT/1 bread/NOUN/dobj/1")
    two = find_subtrees(of_other)._replace(types=phrase_types(of_other))
    made = [" ".join(c.sentence.tokens) for c in exchange_candidates(Sentence(words), Sentence(others), one, two)]
    assert made == [
        "Bo wants to see Rome .",
        "Ana likes bread",
        "Ana wants to see bread .",  # and never "Ana wants bread", nor "Bo likes to see Rome"
        "Bo likes Rome",
    ]
    # A noun with a copula is a clause (Universal Dependencies).
    _, said = parse_of("I/PRON/nsubj/1 know/VERB/ROOT/1 she/PRON/nsubj/4 is/AUX/cop/4 queen/NOUN/ccomp/1")
    assert phrase_types(said)[2, 5] == "ccomp"
    # Full stops that stay behind do not change the kind.
    assert strip_punctuation(Subtrees((), ((0, 2),), {(0, 2): "pcomp", (0, 1): "nominal"}), ["so", "."]).types == {
        (0, 1): "pcomp"
    }


def test_nested_and_discontinuous_mentions_are_never_cut() -> None:
    nested = Sentence("the Oslo port and city hall".split(), [Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)])])
    plain = Sentence("it burns".split())
    assert not list(
        exchange_candidates(nested, plain, Subtrees((), ((1, 2),)), Subtrees((), ((0, 1),)))
    )  # would cut FAC
    [into, out] = exchange_candidates(nested, plain, Subtrees((), ((0, 3),)), Subtrees((), ((0, 1),)))
    assert (into.sentence.tokens, into.sentence.mentions) == (("it", "and", "city", "hall"), ())
    assert out.sentence.mentions == (Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)]))
    gap = Sentence("left and right arm hurt".split(), [Mention("PART", [(0, 1), (3, 4)])])
    assert not list(exchange_candidates(gap, plain, Subtrees(((3, 4),), ()), Subtrees(((0, 1),), ())))
    [within, _] = exchange_candidates(gap, plain, Subtrees(((1, 3),), ()), Subtrees(((0, 1),), ()))
    assert within.sentence.mentions == (Mention("PART", [(0, 1), (2, 3)]),)  # the gap alone changed


def test_a_graft_keeps_the_spacing_it_had() -> None:
    said = "Bo saw John 's ( red ) cat".split()
    one = Sentence(said, spaces=(" ", " ", "", " ", "", "", " ", ""))
    other = Sentence("Ada praised it .".split(), spaces=(" ", " ", "", ""))
    [into, out] = exchange_candidates(one, other, Subtrees((), ((2, 7),)), Subtrees((), ((2, 3),)))
    assert into.sentence.text == "Bo saw it cat"
    assert out.sentence.text == "Ada praised John's (red)."
    plain = Sentence(said)
    [_, out] = exchange_candidates(plain, other, Subtrees((), ((2, 7),)), Subtrees((), ((2, 3),)))
    assert out.sentence.text == "Ada praised John's (red)."


def test_points_stay_where_they_are() -> None:
    words = "today , at 1 pm . he ... :)".split()
    found = strip_punctuation(Subtrees(((0, 2), (0, 1)), ((1, 6), (5, 6), (7, 9))), words)
    assert found == Subtrees(((0, 1),), ((2, 5), (8, 9)))


def spans(n: int) -> st.SearchStrategy[tuple[Span, ...]]:
    pair = st.tuples(st.integers(0, n - 1), st.integers(1, n)).map(lambda p: (p[0], max(p[1], p[0] + 1)))
    return st.lists(pair, max_size=2).map(tuple)


@given(st.data(), sentences(), sentences())
def test_any_exchange_agrees_with_splicing_tags(data: st.DataObject, one: Sentence, other: Sentence) -> None:
    of_one = Subtrees(data.draw(spans(len(one))), data.draw(spans(len(one))))
    of_other = Subtrees(data.draw(spans(len(other))), data.draw(spans(len(other))))
    for candidate in exchange_candidates(one, other, of_one, of_other):
        keeps, gives = (other, one) if candidate.frame else (one, other)
        (start, end), (a, b) = candidate.removed, candidate.inserted
        tokens = [*keeps.tokens[:start], *gives.tokens[a:b], *keeps.tokens[end:]]
        assert list(candidate.sentence.tokens) == tokens
        if keeps.is_flat and gives.is_flat:
            row = [*keeps.iob()[:start], *gives.iob()[a:b], *keeps.iob()[end:]]
            for joint in (start, start + b - a):
                if joint < len(row) and row[joint].startswith("I-"):
                    row[joint] = "B" + row[joint][1:]
            assert candidate.sentence.mentions == tags.decode(row)
        else:
            whole = Counter(m.label for m in keeps.mentions if keeps.is_flat or not (start <= m.start and m.end <= end))
            assert keeps.is_flat or not whole - Counter(m.label for m in candidate.sentence.mentions)


@given(st.data(), st.integers(1, 12))
def test_any_heads_give_subtrees_that_are_runs(data: st.DataObject, n: int) -> None:
    heads = tuple(data.draw(st.integers(0, n - 1)) for _ in range(n))  # not even trees
    relations = tuple(data.draw(st.sampled_from(["nsubj", "dobj", "det"])) for _ in range(n))
    found = find_subtrees(Parse(heads, relations, ("VERB",) * n))
    for start, end in (*found.subjects, *found.objects):
        assert 0 <= start < end <= n


def test_j_score_by_hand() -> None:
    # |U n C| = 2 of 4 words, |V n C| = 1 of 4: the root of 2/4 * 1/4.
    assert j_score("a b c".split(), "A b d".split(), "c d".split()) == pytest.approx((2 / 4 * 1 / 4) ** 0.5)
    assert j_score(["x"], ["y"], ["x"]) == 0.0
    assert j_score(["x"], ["x"], ["X"]) == 1.0


def test_cut() -> None:
    whole = Sentence("a b c d".split(), [Mention("X", [(0, 4)]), Mention("Y", [(1, 2), (3, 4)])])
    assert whole.split_mentions([]) is whole
    assert whole.split_mentions([0, 4]) is whole
    assert set(whole.split_mentions([2]).mentions) == {
        Mention("X", [(0, 2)]),
        Mention("X", [(2, 4)]),
        Mention("Y", [(1, 2), (3, 4)]),
    }
    twins = Sentence("a b c".split(), [Mention("X", [(0, 3)]), Mention("X", [(1, 3)])])
    assert twins.split_mentions([1]).mentions == (Mention("X", [(0, 1)]), Mention("X", [(1, 3)]))
