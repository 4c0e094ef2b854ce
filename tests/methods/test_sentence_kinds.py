"""Headlines and rows of tables: recognised, and left alone by the methods that exchange phrases and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entaug import Sentence
from entaug.backends.dependency_trees import content_heads, grammatical_number, head_of, phrase_form
from entaug.backends.protocols import Constituent, Parse
from entaug.methods import CASSI, ConstituencyReplacement
from entaug.methods.cassi import Subtrees, with_forms
from entaug.methods.shared.donors import frequent_words
from entaug.methods.shared.prose_detection import NOT_PROSE, SentenceKinds
from entaug.methods.types import RunStatistics
from helpers.fakes import FakeConstituencyParser, FakeDependencyParser, FakeEncoder, FakeMaskedLM
from helpers.sentences import sentence
from helpers.strategies import sentences

ENGLISH = [
    "The rebels have taken the city after a siege of ten days .",
    "Officials said that the market fell in the morning and rose again .",
    "A former minister resigned over the report , and the party is in trouble .",
    "It is not clear whether the two sides will meet in Geneva .",
]
GERMAN = [
    "Die Stadt hat nach einer langen Belagerung ihre Tore wieder geöffnet .",
    "Der Minister trat wegen des Berichts zurück , und die Partei hat Ärger .",
    "In der Nacht fiel auf den Bergen der erste Schnee , und die Straßen sind glatt .",
]


def kinds_of(corpus: Sequence[str], *texts: str) -> list[str]:
    kinds = SentenceKinds(map(sentence, corpus))
    return [kinds.kind(sentence(text)) for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, "prose") for text in ENGLISH),
        ("CRICKET - ESSEX POISED FOR VICTORY", "headline"),
        ("Rebels Taken City After Siege", "headline"),
        ("Officials Meet as Market Fell", "headline"),
        ("Leeds 3 Hull 1", "table"),
        ("1. Ajax 10 7 2 1 24 8 23", "table"),
        ("LONDON 1996-08-30", "table"),
        ("6-2 , 6-3 , 7-5", "table"),
        ("- - -", "table"),
        ("In 1996 the market fell by 12 % to 4,120 points .", "prose"),
        ("Geneva is in trouble", "prose"),
        ("siege of the city", "prose"),
        ("The BBC said that NATO will meet .", "prose"),
    ],
)
def test_english(text: str, expected: str) -> None:
    assert kinds_of(ENGLISH, text) == [expected]


def test_names_alone_are_no_prose() -> None:
    kinds = SentenceKinds(map(sentence, ENGLISH))
    assert kinds.kind(sentence("V. K. Choudhry ( AFP ) -", ("PER", 0, 3), ("ORG", 4, 5))) == "table"
    assert kinds.kind(sentence("Choudhry won", ("PER", 0, 1))) == "prose"


def test_capitals_of_german_nouns_are_no_headline() -> None:
    assert kinds_of(GERMAN, *GERMAN) == ["prose"] * 3
    assert kinds_of(GERMAN, "Schnee auf den Straßen der Stadt", "MINISTER TRAT IN DER NACHT ZURÜCK") == [
        "prose",
        "headline",
    ]


@pytest.mark.parametrize(
    ("corpus", "prose", "table"),
    [
        (["他 在 北京 的 大学 学习 。", "我 在 上海 的 公司 工作 。"], "她 在 东京 的 学校", "北京 3 上海 1"),
        (["वह दिल्ली में है ।", "यह मुंबई में है और वह रोम में है ।"], "राम दिल्ली में है", "दिल्ली 3 मुंबई 1"),
        (["हम ३ साल से दिल्ली में है ।"], "वह ३ साल से है", "दिल्ली ३ मुंबई १"),
        (["the market fell in the morning", "the city is in the north"], "the market is in trouble", "leeds 3 hull 1"),
        (["THE MARKET FELL IN THE MORNING", "THE CITY IS IN THE NORTH"], "THE MARKET IS IN THE CITY", "LEEDS 3 HULL 1"),
    ],
)
def test_scripts_and_corpora_without_case_have_tables_but_no_headlines(
    corpus: list[str], prose: str, table: str
) -> None:
    assert kinds_of(corpus, prose, table) == ["prose", "table"]


@settings(max_examples=100, deadline=None)
@given(st.lists(sentences(), max_size=4), sentences())
def test_any_sentence_has_a_kind_that_depends_on_the_content_of_the_corpus_alone(
    corpus: list[Sentence], new: Sentence
) -> None:
    kind = SentenceKinds(corpus).kind(new)
    assert kind in ("prose", "headline", "table")
    assert SentenceKinds(corpus[::-1]).kind(new) == kind


def test_frequent_words_are_half_of_the_running_words() -> None:
    assert frequent_words(Counter()) == set()
    assert frequent_words(Counter("a a a b c d".split())) == {"a"}
    assert frequent_words(Counter("b b a a c d".split())) == {"a", "b"}, "equal counts in the order of the alphabet"


# ------------------------------------------------------------------------------------------------------ left alone

FIRST: dict[str, Any] = {"candidates": 1, "min_similarity": 0}
"""The first new sentence is taken, without models."""

GOLD = [
    sentence("Ada sings in the old town", ("PER", 0, 1)),
    sentence("Bo knows tales of the town", ("PER", 0, 1)),
    sentence("Cy sees the sea in the rain", ("PER", 0, 1)),
    sentence("OSLO MARKET FELL AGAIN", ("LOC", 0, 1)),
    sentence("Leeds 3 Hull 1", ("ORG", 0, 1), ("ORG", 2, 3)),
]


def test_cr_leaves_them_alone_and_takes_nothing_from_them() -> None:
    cr = ConstituencyReplacement(constituency_parser=FakeConstituencyParser(), copies=3, **FIRST).fit(GOLD)
    new = [" ".join(one.tokens) for one in cr.augment(GOLD)]
    assert new
    assert not any("OSLO" in text or "Leeds" in text or "MARKET" in text for text in new)
    assert missing(cr)[NOT_PROSE.reason] == 6
    paper = ConstituencyReplacement(
        constituency_parser=FakeConstituencyParser(), copies=9, skip_headlines=False, same_form=False, **FIRST
    )
    texts = [" ".join(one.tokens) for one in paper.fit(GOLD).augment(GOLD)]
    assert any(text.startswith(("OSLO", "Leeds")) for text in texts)


def test_cassi_leaves_them_alone_and_pairs_nothing_with_them() -> None:
    def method(**params: Any) -> CASSI:
        fakes: dict[str, Any] = {"encoder": FakeEncoder(), "masked_lm": FakeMaskedLM()}
        fakes["dependency_parser"] = FakeDependencyParser()
        return CASSI(copies=2, scorer="masked", same_form=False, require_mention=False, **FIRST, **fakes, **params).fit(
            GOLD
        )

    cassi = method()
    new = [" ".join(one.tokens) for one in cassi.augment(GOLD)]
    assert new
    assert not any("OSLO" in text or "Leeds" in text for text in new)
    assert missing(cassi)[NOT_PROSE.reason] == 4
    paper = method(skip_headlines=False)
    list(paper.augment(GOLD))
    assert NOT_PROSE.reason not in missing(paper)


def missing(method: Any) -> Any:
    statistics: RunStatistics = method.statistics_
    return statistics.missing


# ------------------------------------------------------------------------------------------------------- agreement


def tree(*rows: str) -> Parse:
    """A tree from rows of tag/relation/head/features."""
    parts = [row.split("/") for row in rows]
    return Parse(
        tuple(int(p[2]) for p in parts),
        tuple(p[1] for p in parts),
        tuple(p[0] for p in parts),
        tuple(p[3] for p in parts),
    )


def test_number_of_noun_phrases() -> None:
    plural = tree("DET/det/1/", "NOUN/nsubj/2/Number=Plur", "VERB/ROOT/2/Tense=Past|VerbForm=Fin")
    assert head_of(plural, (0, 2)) == 1
    assert grammatical_number(plural, (0, 2)) == "Plur"
    joined = tree("PROPN/nsubj/3/Number=Sing", "CCONJ/cc/0/", "PROPN/conj/0/Number=Sing", "VERB/ROOT/3/VerbForm=Fin")
    assert grammatical_number(joined, (0, 3)) == "Plur", "Ada and Bo"
    assert grammatical_number(joined, (0, 1)) == "Sing"
    assert grammatical_number(joined._replace(features=()), (0, 1)) == "", "unknown"


def test_forms_of_phrases() -> None:
    words = "to see the songs of him".split()
    parse = tree(
        "PART/aux/1/",
        "VERB/ROOT/1/VerbForm=Inf",
        "DET/det/3/",
        "NOUN/obj/1/Number=Plur",
        "ADP/prep/3/",
        "PRON/pobj/4/Number=Sing|Case=Acc|PronType=Prs",
    )
    assert phrase_form(words, parse, "NP", (2, 6)) == "object+Plur+NOUN+det+him"
    assert phrase_form(words, parse, "NP", (2, 4)) == "object+Plur+NOUN+det+open", "of him follows"
    assert phrase_form(words, parse, "NP", (5, 6)) == "object+Sing+PRON+of+him"
    assert phrase_form(words, parse, "PP", (4, 6)) == "prep+of+NOUN+pobj+him"
    assert phrase_form(words, parse, "VP", (1, 6)) == "root+Inf+him"
    assert phrase_form(words, parse, "VP", (0, 6)) == "root+Inf+PART+him"
    assert phrase_form(words, parse, "ADVP", (0, 1)) == "aux+PART"
    she = tree(
        "PROPN/nsubjpass/2/Number=Sing", "AUX/auxpass/2/VerbForm=Fin", "VERB/ROOT/2/VerbForm=Part",
        "SCONJ/mark/5/", "PRON/nsubj/5/Gender=Fem|PronType=Prs", "VERB/advcl/2/VerbForm=Fin",
    )  # fmt: skip
    words_of_she = "Ada was paid when she sang".split()
    assert phrase_form(words_of_she, she, "NP", (0, 1)) == "subject+Sing+PROPN+Fem", "whom she refers to"
    assert phrase_form(words_of_she, she, "VP", (2, 6)) == "root+Part+passive+she"
    which = tree("NOUN/pobj/0/", "PRON/dobj/3/PronType=Rel", "PRON/nsubj/3/PronType=Prs", "VERB/relcl/0/VerbForm=Fin")
    assert phrase_form("song which we sang".split(), which, "VP", (3, 4)) == "relcl+Fin+object", "without its object"
    clitic = tree("PROPN/nsubj/1/", "VERB/ROOT/1/VerbForm=Fin")
    assert phrase_form(["Ada", "'s"], clitic, "VP", (1, 2)) == "root+Fin+clitic"
    genitive = tree("PROPN/poss/2/Number=Sing", "PART/case/0/", "NOUN/ROOT/2/Number=Sing")
    assert phrase_form(["Ada", "'s", "song"], genitive, "NP", (0, 2)) == "poss+Sing+PROPN+poss"


def test_content_heads_of_phrases() -> None:
    # "waits for the end of it"
    parse = tree("VERB/ROOT/0/", "ADP/prep/0/", "DET/det/3/", "NOUN/pobj/1/", "ADP/prep/3/", "PRON/pobj/4/")
    assert content_heads(parse, "VP", (0, 6)) == (0,)
    assert content_heads(parse, "NP", (2, 6)) == (3,)
    assert content_heads(parse, "PP", (1, 6)) == (3,), "the noun tells more than the preposition"
    assert content_heads(parse, "PP", (1, 2)) == (1,)


class Forms:
    """A parser for which the first word is a noun phrase: plural if it ends in s."""

    name = "forms"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        return [(Constituent("NP", 0, 1, "Plur" if words[0].endswith("s") else "Sing"),) for words in sentences]


def test_cr_replaces_phrases_by_those_that_agree() -> None:
    names = ("Dane", "Pole", "Turk", "Danes", "Poles", "Turks")
    places = ("sea", "lake", "bay", "fair", "hill", "town")
    gold = [sentence(f"{name} came to the {place}", ("X", 0, 1)) for name, place in zip(names, places, strict=True)]
    made = ConstituencyReplacement(constituency_parser=Forms(), copies=2, **FIRST).fit(gold).augment(gold)
    assert list(made)
    for source, new in ((s, n) for s in gold for n in _of(gold, s, same_form=True)):
        assert source.tokens[0].endswith("s") == new.tokens[0].endswith("s")
    assert any(s.tokens[0][-1] != n.tokens[0][-1] for s in gold for n in _of(gold, s, same_form=False))


def _of(gold: list[Sentence], source: Sentence, **params: Any) -> list[Sentence]:
    cr = ConstituencyReplacement(constituency_parser=Forms(), copies=5, **FIRST, **params).fit(gold)
    return list(cr.augment([source]))


class Heads:
    """A parser for which the first three words are a noun phrase whose head is the first."""

    name = "heads"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        return [(Constituent("NP", 0, 3, "Sing", heads=(0,)),) for _ in sentences]


def test_cr_keeps_heads_outside_of_mentions() -> None:
    gold = [
        sentence(f"{text} here", ("X", 2, 3))
        for text in ("levels of Zur rose", "levels of Xan fell", "all of Yem left")
    ]
    made = ConstituencyReplacement(constituency_parser=Heads(), copies=5, **FIRST).fit(gold).augment(gold)
    assert {" ".join(new.tokens) for new in made} == {"levels of Xan rose here", "levels of Zur fell here"}
    named = [sentence(f"{text} here", ("X", 0, 3)) for text in ("House of Zur rose", "Bank of Xan fell")]
    made = ConstituencyReplacement(constituency_parser=Heads(), copies=5, **FIRST).fit(named).augment(named)
    assert {" ".join(new.tokens) for new in made} == {"Bank of Xan rose here", "House of Zur fell here"}


class Numbers:
    """A parser for which the first word is the subject of the second, and plural if it ends in s."""

    name = "numbers"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        return [
            Parse(
                (1,) * len(words),
                ("nsubj", "ROOT", *["punct"] * (len(words) - 2)),
                ("NOUN", "VERB", *["PUNCT"] * (len(words) - 2)),
                ("Number=Plur" if words[0].endswith("s") else "Number=Sing", *[""] * (len(words) - 1)),
            )
            for words in sentences
        ]


def test_cassi_exchanges_subjects_of_the_same_form() -> None:
    texts = ("Dane comes soon", "Pole goes home", "Danes come soon", "Poles go home")
    gold = [sentence(text, ("X", 0, 1)) for text in texts]

    def made(**params: Any) -> set[str]:
        fakes: dict[str, Any] = {"encoder": FakeEncoder(), "masked_lm": FakeMaskedLM(), "dependency_parser": Numbers()}
        return {
            " ".join(one.tokens)
            for one in CASSI(copies=3, scorer="masked", **FIRST, **fakes, **params).fit(gold).augment(gold)
        }

    agreeing = {"Pole comes soon", "Dane goes home", "Poles come soon", "Danes go home"}
    assert made() <= agreeing
    assert made()
    assert not made(same_form=False) <= agreeing


def test_heads_outside_of_mentions_agree() -> None:
    parse = tree("NOUN/nsubj/3/", "ADP/prep/0/", "PROPN/pobj/1/", "VERB/ROOT/3/VerbForm=Fin")

    def kind(text: str, *mentions: tuple[str, int, int]) -> str:
        return with_forms(Subtrees(((0, 3),), ()), sentence(text, *mentions), parse).types[0, 3]

    assert kind("friends of Ada sing", ("PER", 2, 3)) == kind("Friends of Bo sleep", ("PER", 2, 3))
    assert kind("friends of Ada sing", ("PER", 2, 3)) != kind("songs of Bo end", ("PER", 2, 3))
    assert kind("friends of Ada sing", ("PER", 0, 3)) == kind("songs of Bo end", ("PER", 0, 3)), "both are persons"
