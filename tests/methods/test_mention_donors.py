"""Which mentions `mr` inserts: donors of the shape of the place, in its capitals, none twice, nested ones whole."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from entaug import Mention, Sentence
from entaug.core.edits import Edit
from entaug.errors import InputError
from entaug.methods import MentionReplacement
from entaug.methods.base import Rejection
from entaug.methods.shared import text_vectors
from entaug.methods.shared.donors import (
    CorpusCapitals,
    MentionShapes,
    TrainingDonors,
    capitals_of,
    content_key,
    is_in_capitals,
    match_casing,
    replaceable_mentions,
    self_contained_mentions,
)
from helpers.counting import count_lines
from helpers.fakes import FakeEncoder
from helpers.sentences import sentence
from helpers.strategies import sentences

CITIES = ("Rome", "Oslo", "Bonn", "Ulm", "Kiel")
# Half of the words are as frequent as function words are.
NOUNS = ("troops", "banks", "films", "ships", "teams", "towns", "books", "roads")


def inserted(gold: list[Sentence], source: Sentence, **params: Any) -> set[str]:
    """The first mentions of what `mr` makes of a sentence at the first attempt."""
    mr = MentionReplacement(p=1.0, **params).fit([*gold, source])
    drafts = (mr._rewrite(source, Random(seed)) for seed in range(80))
    return {" ".join(new.mention_tokens(new.mentions[0])) for new in drafts if isinstance(new, Sentence)}


# --------------------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("New York", "title"),
        ("the Hague", "mixed"),
        ("NATO", "upper"),
        ("A", "title"),
        ("lung cancer", "lower"),
        ("iPhone 4", "mixed"),
        ("'s Hertogenbosch", "mixed"),
        ("11", "none"),
        ("罗 马", "none"),
        ("मुंबई", "none"),
        ("Москва", "title"),
        ("МОСКВА", "upper"),  # noqa: RUF001
    ],
)
def test_capitals_of_mentions(text: str, expected: str) -> None:
    assert capitals_of(text.split()) == expected


def demonyms() -> list[Sentence]:
    """Adjectives of one type before many nouns, and names of events that end in other ways."""
    gold = []
    for i, word in enumerate(("German", "Roman", "Cuban", "Texan", "Greek", "Czech", "Polish", "Danish", "Irish")):
        gold += [sentence(f"the {word} {noun} of the year in the world", ("MISC", 1, 2)) for noun in NOUNS[i % 5 :]]
    for word in ("Olympics", "Cup", "Derby", "Tour", "Open"):
        gold += [
            sentence(f"in the {word} .", ("MISC", 2, 3)),
            sentence(f"it is the {word} ,", ("MISC", 3, 4)),
            sentence(f"the {word} in the world", ("MISC", 1, 2)),
        ]
    return gold


def test_adjectives_and_nouns_are_told_by_suffix() -> None:
    shapes = MentionShapes()
    for one in demonyms():
        shapes.add(one)
    assert shapes.shape("MISC", ("Mexican",)).is_modifier, "by its suffix"
    assert not shapes.shape("MISC", ("World", "Cup")).is_modifier
    assert not shapes.shape("LOC", ("Mexican",)).is_modifier, "another type"
    source = sentence("before the Olympics in the year", ("MISC", 2, 3))
    assert inserted(demonyms(), source) == {"Cup", "Derby", "Tour", "Open"}
    source = sentence("the Greek ships of the world", ("MISC", 1, 2))
    adjectives = {"German", "Roman", "Cuban", "Texan", "Czech", "Polish", "Danish", "Irish"}
    assert inserted(demonyms(), source) <= adjectives
    assert not inserted(demonyms(), source, donors="any") <= adjectives


def test_number_is_told_by_the_ending() -> None:
    words = ("German", "Dane", "Swede", "Pole", "Turk", "Greek")
    gold = [sentence(f"one {word} met two {word}s there", ("X", 1, 2), ("X", 4, 5)) for word in words]
    found = inserted(gold, sentence("two Danes came", ("X", 1, 2)))
    assert found <= {"Germans", "Swedes", "Poles", "Turks", "Greeks"}
    found = inserted(gold, sentence("one Dane came", ("X", 1, 2)))
    assert found <= {"German", "Swede", "Pole", "Turk", "Greek"}


def test_user_names_and_hashtags_stand_for_their_like() -> None:
    gold = [sentence(f"with {name}", ("X", 1, 2)) for name in (*CITIES, "@ada", "@bo", "#rome", "#oslo")]
    assert inserted(gold, sentence("met @cy", ("X", 1, 2))) == {"@ada", "@bo"}
    assert inserted(gold, sentence("met #ulm", ("X", 1, 2))) == {"#rome", "#oslo"}
    assert inserted(gold, sentence("met Nice", ("X", 1, 2))) == {*CITIES}


def test_figures_and_articles_belong_to_the_shape() -> None:
    gold = [sentence(f"I saw {name}", ("X", 2, 4)) for name in ("Apollo 11", "Boeing 747", "Area 51", "Route 66")]
    gold += [sentence(f"I saw {name}", ("X", 2, 3)) for name in CITIES]
    gold += [sentence(f"I saw the {name}", ("X", 3, 4)) for name in ("Hague", "Bronx", "Alps", "Nile")]
    assert inserted(gold, sentence("see Route 66", ("X", 1, 3))) == {"Apollo 11", "Boeing 747", "Area 51"}
    assert inserted(gold, sentence("see Rome", ("X", 1, 2))) == {"Oslo", "Bonn", "Ulm", "Kiel"}
    assert inserted(gold, sentence("see the Nile", ("X", 2, 3))) == {"Hague", "Bronx", "Alps"}


def test_few_donors_of_a_shape_widen_it() -> None:
    gold = [sentence(f"in {name}", ("X", 1, 2)) for name in (*CITIES, "flu")]
    # No other mention is in lower case.
    assert len(inserted(gold, sentence("has gout", ("X", 1, 2)))) == 6
    # And more copies than donors of the shape take others at last.
    gold += [sentence(f"in {name}", ("X", 1, 2)) for name in ("NATO", "EU", "UN")]
    assert inserted(gold, gold[0]) == {*CITIES} - {"Rome"}
    mr = MentionReplacement(p=1.0, copies=8, max_attempts=99).fit(gold)
    assert len(list(mr.augment([sentence("near Rome", ("X", 1, 2))]))) == 8


# -------------------------------------------------------------------------------------------------------------- context


def test_donors_stood_between_the_same_words() -> None:
    gold = [sentence(f"we sleep near {name} or near it", ("X", 3, 4)) for name in ("Rome", "Oslo", "Bonn", "Ulm")]
    gold += [sentence(f"we met {name} or him", ("X", 2, 3)) for name in ("Ada", "Bo", "Cy", "Di")]
    assert inserted(gold, sentence("go near Kiel or home", ("X", 2, 3))) == {"Rome", "Oslo", "Bonn", "Ulm"}
    assert len(inserted(gold, sentence("( Kiel", ("X", 1, 2)))) == 8, "no donor stood after this word"
    assert inserted(gold, sentence("go near Kiel or home", ("X", 2, 3)), donors="any") > {"Rome", "Ada"}


def test_no_donor_repeats_the_word_beside_it() -> None:
    gold = [sentence(f"it is {name}", ("X", 2, 2 + len(name.split()))) for name in ("close by", "by car", "by sea")]
    assert inserted(gold, sentence("it is near by car", ("X", 3, 5))) == {"close by", "by sea"}
    assert inserted(gold, sentence("we go by rail", ("X", 3, 4))) == {"close by"}
    assert inserted(gold, sentence("it is near by train", ("X", 2, 3))) == {"by car", "by sea"}


def test_english_articles_fit() -> None:
    names = ("owl", "eagle", "auk", "hawk", "kite", "tern")
    gold = [sentence(f"the {name} is an ant and a bee or a fly", ("X", 1, 2)) for name in names]
    assert inserted(gold, sentence("it is an ibis", ("X", 3, 4))) == {"owl", "eagle", "auk"}
    assert inserted(gold, sentence("it is a robin", ("X", 3, 4))) == {"hawk", "kite", "tern"}
    gold = [sentence(f"a to je {name} a ne on", ("X", 3, 4)) for name in names]
    gold += [sentence("pjesme The Owl i An Ear")]
    assert len(inserted(gold, sentence("ona a ibis", ("X", 2, 3)))) == 6, "in Croatian it is a conjunction"
    gold = [sentence(f"am Rhein sah er {name} an", ("X", 4, 5)) for name in names]
    assert len(inserted(gold, sentence("er kommt an Rhein", ("X", 3, 4)))) == 6, "in German it is no article"


@pytest.mark.parametrize(
    ("masculine", "feminine", "place", "fits"),
    [
        ("er kam vom {} und zum {}", "er kam zur {} und in die {}", "er blieb im Alt nicht", "masculine"),
        ("er kam vom {} und zum {}", "er kam zur {} und in die {}", "er sah eine Alt dort", "feminine"),
        ("vino del {} y el {}", "vino a la {} y la {}", "vio un Alt ayer", "masculine"),
        ("vino del {} y el {}", "vino a la {} y la {}", "vio una Alt ayer", "feminine"),
        ("on vient du {} et au {}", "on voit la {} et une {}", "voici le Alt enfin", "masculine"),
        ("viene dal {} nel {}", "viene dalla {} nella {}", "vede una Alt qui", "feminine"),
    ],
)
def test_articles_agree(masculine: str, feminine: str, place: str, fits: str) -> None:
    """Also those that no donor stood after, and prepositions that are one word with them."""
    names = {"masculine": ("Ber", "Cor", "Dor", "Fer"), "feminine": ("Gar", "Har", "Jar", "Kar")}
    gold = []
    for text, (a, b, c, d) in zip((masculine, feminine), names.values(), strict=True):
        for one, two in ((a, b), (c, d)):
            words = text.format(one, two).split()
            gold.append(sentence(" ".join(words), *[("X", i, i + 1) for i, w in enumerate(words) if w in (one, two)]))
    source = sentence(place, ("X", place.split().index("Alt"), place.split().index("Alt") + 1))
    assert inserted(gold, source) == {*names[fits]}
    assert len(inserted(gold, source, donors="any")) == 8


def test_english_articles_are_alike() -> None:
    gold = [sentence(f"he saw the {name} of a town in the west", ("X", 3, 4)) for name in CITIES]
    gold += [sentence(f"he saw a {name} of the town in the west", ("X", 3, 4)) for name in ("Nile", "Po")]
    assert inserted(gold, sentence("he saw a Bonn of the town", ("X", 3, 4))) == {*CITIES, "Nile", "Po"} - {"Bonn"}


def test_inflected_words_keep_their_endings() -> None:
    stems = ("Zagreb", "Osijek", "Karlov", "Dubrov", "Varaž", "Vinkov")
    gold = [sentence(f"put iz {stem}a {i}", ("X", 2, 3)) for i, stem in enumerate(stems)]
    gold += [sentence(f"grad {stem}u {i} vidi", ("X", 1, 2)) for i, stem in enumerate(stems)]
    genitives = {f"{stem}a" for stem in stems}
    assert inserted(gold, sentence("oko Bosne ili Splita tamo", ("X", 3, 4))) == genitives
    # The first word of a name counts, too: the other one may be an attribute.
    gold += [sentence(f"to kaže {stem}{e} {stem}ova", ("X", 2, 4)) for e in "au" for stem in stems]
    found = inserted(gold, sentence("to zna Kopra Nova", ("X", 2, 4)))
    assert found == {f"{stem}a {stem}ova" for stem in stems}
    # Where the first letters of words differ as often, it is chance.
    gold += [sentence(f"{letter}{stem[1:]}a i {letter}{stem[1:]}u") for letter in "ptk" for stem in stems]
    assert inserted(gold, sentence("oko Bosne ili Splita tamo", ("X", 3, 4))) > genitives


def test_equal_mentions_are_replaced_alike() -> None:
    gold = [sentence(f"in {name}", ("X", 1, 2)) for name in CITIES]
    source = sentence("Rome is near Ulm but Rome is old", ("X", 0, 1), ("X", 3, 4), ("X", 5, 6))
    for seed in range(20):
        new = MentionReplacement(p=0.5).fit(gold)._rewrite(source, Random(seed))
        assert isinstance(new, Sentence)
        assert new.tokens[0] == new.tokens[5] != new.tokens[3]


def test_abbreviations_are_replaced_with_what_they_abbreviate() -> None:
    names = ("Angelman syndrome ( AS )", "Canavan disease ( CD )", "Wilson disease ( WD )")
    gold = [sentence(f"{name} is rare", ("X", 0, 2), ("X", 3, 4)) for name in names]
    gold += [sentence(f"in {name}", ("X", 1, 2)) for name in CITIES]
    source = sentence("AS or Angelman syndrome ( AS ) is rare", ("X", 0, 1), ("X", 2, 4), ("X", 5, 6))
    mr = MentionReplacement(p=1.0).fit(gold)
    drafts = (mr._rewrite(source, Random(seed)) for seed in range(40))
    assert {" ".join(new.tokens) for new in drafts if isinstance(new, Sentence)} == {
        "CD or Canavan disease ( CD ) is rare",
        "WD or Wilson disease ( WD ) is rare",
    }
    # Without a label it would be left behind; and so it is if no other mention has an abbreviation.
    unlabelled = sentence("Angelman syndrome ( AS ) is rare", ("X", 0, 2))
    assert isinstance(MentionReplacement().fit(gold)._rewrite(unlabelled, Random(1)), Rejection)
    alone = MentionReplacement(p=1.0).fit(gold[2:])
    assert list(alone.augment(gold[2:3])) == []
    assert len(list(MentionReplacement(p=1.0, donors="any").fit(gold).augment([unlabelled]))) == 1


# --------------------------------------------------------------------------------------------------------------- sense


def clubs_and_papers() -> list[Sentence]:
    """Mentions of one label in two kinds of sentences."""
    clubs, papers = ("Ajax", "Celtic", "Porto", "Roma"), ("Figaro", "Times", "Welt", "Tribune")
    gold = [sentence(f"we saw {name} win the cup match {i}", ("ORG", 2, 3)) for i, name in enumerate(clubs)]
    return gold + [sentence(f"we read {name} print the news page {i}", ("ORG", 2, 3)) for i, name in enumerate(papers)]


def test_nearest_donors_stood_in_like_sentences() -> None:
    gold, encoder = clubs_and_papers(), FakeEncoder(64)
    source = sentence("we saw Genoa win the last cup match", ("ORG", 2, 3))
    found = inserted(gold, source, donors="nearest", encoder=encoder)
    assert len(found) > 1
    assert found <= {"Ajax", "Celtic", "Porto", "Roma"} < inserted(gold, source)
    far = sentence("it rains in Genoa", ("ORG", 3, 4))
    assert inserted(gold, far, donors="nearest", encoder=encoder, min_similarity=0.6) == {"Genoa"}, "none is near"


def test_nearest_abbreviations() -> None:
    rare = ("Angelman syndrome ( AS )", "Sly syndrome ( SS )")
    clubs = ("Ajax Amsterdam ( AA )", "Real Club ( RC )")
    gold = [sentence(f"{name} is a rare disease {i}", ("X", 0, 2), ("X", 3, 4)) for i, name in enumerate(rare)]
    gold += [sentence(f"{name} plays in our town {i}", ("X", 0, 2), ("X", 3, 4)) for i, name in enumerate(clubs)]
    new = MentionReplacement(p=1.0, donors="nearest", encoder=FakeEncoder(64), copies=1).fit(gold).augment(gold)
    assert [" ".join(s.tokens[:2]) for s in new] == ["Sly syndrome", "Angelman syndrome", "Real Club", "Ajax Amsterdam"]


def test_nearest_donors_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> list[Sentence]:
        return list(MentionReplacement(donors="nearest", encoder=FakeEncoder(64), copies=3).fit(gold).augment(gold))

    gold = clubs_and_papers()
    whole = made()
    assert whole
    monkeypatch.setattr(MentionReplacement, "window_size", 1)
    monkeypatch.setattr(text_vectors, "_MAX_VECTORS", 3)
    assert made() == whole


# ------------------------------------------------------------------------------------------------------------- capitals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CRICKET - ESSEX POISED", True),
        ("ЗЕНИТ - СПАРТАК", True),
        ("NATO met the EU", False),
        ("Rebels Take City", False),
        ("1 - 0", False),
        ("罗马 在 意大利", False),
        ("OK", False),
    ],
)
def test_sentences_in_capitals(text: str, expected: bool) -> None:
    assert is_in_capitals(text.split()) is expected


def test_donors_take_the_capitals_of_the_place() -> None:
    gold = [sentence(f"we were in {name} again", ("X", 3, 4)) for name in CITIES]
    headline = sentence("CRICKET - ESSEX POISED FOR VICTORY", ("X", 2, 3))
    assert inserted(gold, headline) == {name.upper() for name in CITIES}
    assert inserted(gold, headline, adjust_case=False) == set(CITIES)
    # A name from a headline is not brought into prose while there are others.
    assert inserted([*gold, headline], sentence("in Oslo", ("X", 1, 2))) == {*CITIES} - {"Oslo"}
    # Nor are capitals brought into a text without any.
    assert inserted(gold, sentence("i am in essex now", ("X", 3, 4))) == {name.lower() for name in CITIES}
    assert inserted(gold, sentence("i am in essex now", ("X", 3, 4)), adjust_case=False) == set(CITIES)


def test_the_first_word_of_a_sentence_loses_its_capital_within_one() -> None:
    gold = [sentence(f"he has {name} again", ("X", 2, 3)) for name in ("gout", "flu", "acne", "asthma")]
    gold += [sentence("Breast cancer is rare", ("X", 0, 2)), sentence("a breast , a cancer")]
    source = sentence("she had flu", ("X", 2, 3))
    assert "breast cancer" not in inserted(gold, source), "three others are one word as well"
    source = sentence("she had lung cancer", ("X", 2, 4))
    assert "breast cancer" in inserted(gold, source)
    assert "Breast cancer" not in inserted(gold, source)
    assert "Breast cancer" in inserted(gold, source, donors="any", adjust_case=False)
    first = sentence("Gout is rare", ("X", 0, 1))
    assert inserted(gold, first) == {"Flu", "Acne", "Asthma", "Breast cancer"}


@pytest.mark.parametrize("words", ["p53", "cdc2 kinase", "β2-microglobulin", "β-globin", "β\u2011actin", "β - Catenin"])
def test_symbols_stay_small_at_the_beginning_of_a_sentence(words: str) -> None:
    assert match_casing(tuple(words.split()), ["Flu", "is", "new"], 0, 1) == tuple(words.split())


@pytest.mark.parametrize("words", ["interleukin-2", "alpha globin", "η Apple", "αντι-nato", "c-fos"])
def test_other_words_get_a_capital_there(words: str) -> None:
    assert match_casing(tuple(words.split()), ["Flu", "is", "new"], 0, 1)[0][0] == words[0].upper()


def test_a_genitive_of_danish_is_replaced_by_one() -> None:
    names = "Danmark Norge Finland Chile Island Irland".split()
    genitives, others = [*(name + "s" for name in names[:4]), "Svendborgs"], [*names, "Randers"]
    # Each ends in a word of its own, so that none with another name is a gold sentence.
    gold = [sentence(f"I {name} hovedstad bor {name.upper()}", ("LOC", 1, 2)) for name in genitives]
    gold += [sentence(f"Han bor i {name} , {name.upper()}", ("LOC", 3, 4)) for name in others]
    mr = MentionReplacement(p=1.0, copies=2).fit(gold)
    for source in gold:
        new = {made.tokens[made.mentions[0].start] for made in mr.augment([source])}
        assert len(new) == 2
        assert new <= {*(genitives if source.mentions[0].start == 1 else others)}


def test_lower_case_leaves_capitals_inside_words() -> None:
    assert match_casing(("iPhone",), "my phone is new".split(), 1, 2, lower=True) == ("iPhone",)
    assert match_casing(("HIV",), "my flu is new".split(), 1, 2, lower=True) == ("HIV",)
    assert match_casing(("New", "York"), "my town is new".split(), 1, 2, lower=True) == ("new", "york")
    assert match_casing(("New", "York"), "My town is new".split(), 1, 2, lower=True) == ("New", "York")


def test_within_sentence_keeps_names() -> None:
    capitals = CorpusCapitals()
    for one in ("Mark will mark it", "I saw Mark", "it will be so"):
        capitals.add(Sentence(one.split()))
    assert capitals.within_sentence(("Mark",), "PER") == ("Mark",)
    assert capitals.within_sentence(("Will",), "PER") == ("will",)


# --------------------------------------------------------------------------------------------------------- enumerations


def test_no_mention_twice_in_an_enumeration() -> None:
    gold = [sentence(f"{name} won", ("X", 0, 1)) for name in CITIES]
    source = sentence("Rome , Oslo and Bonn lost", ("X", 0, 1), ("X", 2, 3), ("X", 4, 5))
    mr = MentionReplacement(p=1.0, copies=30).fit([*gold, source])
    for new in mr.augment([source]):
        names = [new.mention_tokens(m) for m in new.mentions]
        assert len(set(names)) == 3, new
    repeated = MentionReplacement(p=1.0, copies=30, donors="any").fit([*gold, source]).augment([source])
    assert any(len({new.mention_tokens(m) for m in new.mentions}) < 3 for new in repeated)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.permutations([*CITIES, "the Hague", "OSLO", "rome", "USA"]).map(lambda p: p[:4]), min_size=2, max_size=6
    ),
    st.sampled_from([0.3, 1.0]),
)
def test_enumerations_never_repeat_a_mention(rows: list[list[str]], p: float) -> None:
    gold = []
    for i, row in enumerate(rows):
        tokens: list[str] = []
        mentions = []
        for name in row:
            mentions.append(Mention("X", [(len(tokens), len(tokens) + len(name.split()))]))
            tokens += [*name.split(), ","]
        gold.append(Sentence(tokens, mentions, id=str(i)))
    mr = MentionReplacement(p=p, copies=3).fit(gold)
    for new in mr.augment(gold):
        source = gold[int(new.provenance.sources[0])]  # type: ignore[union-attr]
        before = Counter(content_key(source.mention_tokens(m)) for m in source.mentions)
        after = Counter(content_key(new.mention_tokens(m)) for m in new.mentions)
        # A mention may be there twice only where the source had it twice ("Rome , rome ,").
        assert all(n <= max(1, before[key]) for key, n in after.items())
        assert len(new.mentions) == len(source.mentions)


# --------------------------------------------------------------------------------------------------------------- nested


def bank(city: str) -> Sentence:
    return sentence(f"the Bank of {city} said", ("ORG", 1, 4), ("LOC", 3, 4))


def test_nested_mentions_are_replaced_whole() -> None:
    gold = [bank("Rome"), bank("Oslo"), sentence("the Bonn Stock Exchange fell", ("ORG", 1, 4), ("LOC", 1, 2))]
    mr = MentionReplacement(p=1.0, copies=5).fit(gold)
    [source] = [bank("Rome").edit([Edit(4, 5, ["fell"])])]
    new = {str(one) for one in mr.augment([source])}
    assert new == {"the [Bank of [Oslo]LOC]ORG fell"}, "LOC comes before ORG in the other: another structure"
    plain = MentionReplacement(p=1.0, replace_nested=False).fit([*gold, sentence("in Ulm", ("LOC", 1, 2))])
    assert not list(plain.augment(gold[:1]))


def test_places_and_structures() -> None:
    same = Sentence("a b c".split(), [Mention("X", [(0, 2)]), Mention("Y", [(0, 2)])])
    [place] = replaceable_mentions(same, nested=True)
    assert (place.mention.label, [m.label for m in place.inner], place.structure) == ("X", ["Y"], ("X", ("X", "Y")))
    other_order = Sentence(same.tokens, same.mentions[::-1])
    assert [p.structure for p in replaceable_mentions(other_order, nested=True)] == [place.structure]
    assert [p.structure for p, _ in self_contained_mentions(other_order)] == [place.structure]
    crossing = Sentence("a b c".split(), [Mention("X", [(0, 2)]), Mention("Y", [(1, 3)])])
    assert replaceable_mentions(crossing, nested=True) == []
    gap = Sentence("a b c".split(), [Mention("X", [(0, 1), (2, 3)]), Mention("Y", [(1, 2)])])
    assert [p.mention.label for p in replaceable_mentions(gap, nested=False)] == ["Y"]
    inside = Sentence("a b c".split(), [Mention("X", [(0, 1), (2, 3)]), Mention("Y", [(0, 3)])])
    [place] = replaceable_mentions(inside, nested=True)
    assert place.mention.label == "Y"


@settings(max_examples=150, deadline=None)
@given(st.lists(sentences(), min_size=2, max_size=5), st.booleans())
@example([sentence("the the", ("LOC", 0, 1), ("ORG", 0, 2)), sentence("a the", ("LOC", 0, 1), ("ORG", 0, 1))], True)
def test_whatever_is_replaced_keeps_its_labels(gold: list[Sentence], nested: bool) -> None:
    gold = [one.with_(id=f"s{i}") for i, one in enumerate(gold)]
    mr = MentionReplacement(p=1.0, copies=2, replace_nested=nested)
    try:
        mr.fit(gold)
    except InputError:
        return
    new = list(mr.augment(gold))
    structures = {p.structure: 0 for one in gold for p in replaceable_mentions(one, nested=True)}
    for one in new:
        source = next(s for s in gold if s.id == one.provenance.sources[0])  # type: ignore[union-attr]
        assert [m.label for m in one.mentions] == [m.label for m in source.mentions]
        assert len(one.mentions) == len(source.mentions)
        before = [p.structure for p in replaceable_mentions(source, nested=True)]
        assert [p.structure for p in replaceable_mentions(one, nested=True)] == before
        assert structures.keys() >= set(before)
    again = MentionReplacement(p=1.0, copies=2, replace_nested=nested).fit(gold[::-1]).augment(gold)
    assert [(s.tokens, s.mentions) for s in again] == [(s.tokens, s.mentions) for s in new], "the order is of no matter"


def test_donors_are_learned_while_sentences_pass() -> None:
    donors = TrainingDonors(by_shape=True)
    gold = [sentence(f"in {name}", ("X", 1, 2)) for name in CITIES]
    assert list(donors.observe(gold)) == gold
    [place] = replaceable_mentions(gold[0], nested=True)
    assert donors.size(place) == 5
    assert donors.pools == {"X": [("Bonn",), ("Kiel",), ("Oslo",), ("Rome",), ("Ulm",)]}
    avoided = {content_key([name]) for name in CITIES}
    assert donors.draw(gold[0], place, avoided, Random(0)) is None


@pytest.mark.parametrize(
    ("names", "frame"),
    [
        (("北京", "东京", "罗马", "巴黎", "柏林"), "他 在 {} 工作 。"),
        (("दिल्ली", "मुंबई", "रोम", "पेरिस", "लंदन"), "वह {} में है ।"),
        (("تهران", "رم", "پاریس", "لندن", "برلین"), "او در {} است ."),
    ],
)
def test_scripts_without_case(names: tuple[str, ...], frame: str) -> None:
    start = frame.split().index("{}")
    gold = [sentence(frame.format(name), ("LOC", start, start + 1)) for name in names]
    for source in gold:
        [own] = source.mention_tokens(source.mentions[0])
        assert inserted(gold, source) == {*names} - {own}


def self_contained_by_pairs(one: Sentence) -> list[tuple[Mention, list[Mention], bool]]:
    """The definition of `self_contained_mentions`, with each pair of mentions compared by its positions."""
    positions = [set(mention.positions()) for mention in one.mentions]
    found = []
    for i, mention in enumerate(one.mentions):
        if not mention.is_contiguous:
            continue
        overlapping = [j for j, other in enumerate(positions) if j != i and positions[i] & other]
        inner = [j for j in overlapping if positions[j] <= positions[i]]
        is_cut = any(j not in inner and not positions[i] < positions[j] for j in overlapping)
        is_first = not any(one.mentions[j].label < mention.label and positions[j] == positions[i] for j in inner)
        if is_first and not is_cut:
            found.append((mention, [one.mentions[j] for j in inner], len(inner) == len(overlapping)))
    return found


def test_self_contained_mentions_are_those_of_all_pairs() -> None:
    rng = Random(5)
    kinds = Counter[tuple[bool, bool]]()
    for _ in range(1500):
        length = rng.randint(3, 9)
        mentions = set()
        for _ in range(rng.randint(2, 6)):
            covered = sorted(rng.sample(range(length), rng.choice([1, 2, 3]))) if rng.random() < 0.3 else None
            start = rng.randrange(length)
            spans = [(start, rng.randint(start + 1, length))] if covered is None else [(p, p + 1) for p in covered]
            mentions.add(Mention(rng.choice("XY"), spans))
        one = Sentence(["w"] * length, mentions)
        found = [(place.mention, list(place.inner), outermost) for place, outermost in self_contained_mentions(one)]
        assert found == self_contained_by_pairs(one)
        kinds.update((bool(inner), outermost) for _, inner, outermost in found)
    assert min(kinds[pair] for pair in ((True, True), (True, False), (False, True), (False, False))) > 50


def test_draws_of_rare_donors_are_uniform_and_never_avoided() -> None:
    """Where draws fail, those left are listed; the list follows what is avoided later."""
    gold = [sentence(f"in {name}", ("X", 1, 2)) for name in CITIES]
    donors = TrainingDonors(by_shape=True)
    donors.fit(gold)
    [place] = replaceable_mentions(gold[0], nested=True)
    own = gold[0].mention_tokens(place.mention)[0]
    for seed in range(50):
        rng = Random(seed)
        avoided = {content_key([own])}
        drawn = []
        while (donor := donors.draw(gold[0], place, avoided, rng)) is not None:
            drawn.append(donor.words[0])
            avoided.add(donor.key)
        assert sorted([own, *drawn]) == sorted(CITIES)


def test_a_mention_that_holds_a_hundred_others_is_moved_and_one_that_holds_more_is_not() -> None:
    for inner, expected in ((100, [100]), (101, [])):
        words = [f"w{i}" for i in range(inner + 1)]
        mentions = [("X", 0, inner + 1), *[("Y", i, i + 1) for i in range(inner)]]
        places = replaceable_mentions(sentence(" ".join(words), *mentions), nested=True)
        assert [len(place.inner) for place in places] == expected


def flat_sentence(n: int) -> Sentence:
    return Sentence(
        [w for i in range(n) for w in ("in", f"City{i}")], [Mention("X", [(k, k + 1)]) for k in range(1, 2 * n, 2)]
    )


def test_work_grows_with_the_mentions_of_a_sentence_and_not_with_their_square() -> None:
    def run(size: int) -> int:
        gold = [flat_sentence(size), *[sentence(f"in {name}", ("X", 1, 2)) for name in CITIES]]
        return count_lines(lambda: MentionReplacement(p=0.5).fit(gold).augment(gold))

    few, many = run(400), run(3200)
    assert many < 12 * few, "eight times as many mentions: 64 times as long were it quadratic"
