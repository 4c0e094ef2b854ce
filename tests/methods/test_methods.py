"""Each method against a case worked out by hand, and against its definition over many draws."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from conftest import examples
from entaug import Mention, Sentence
from entaug.core.data import split_fields
from entaug.core.edits import Edit
from entaug.core.rng import Streams
from entaug.core.words import stop_words
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.methods import (
    LabelWiseTokenReplacement,
    MentionReplacement,
    ShuffleWithinSegments,
    SynonymReplacement,
    create_augmenter,
)
from entaug.methods.base import Augmenter, Request
from helpers.fakes import FakeLexicon
from helpers.sentences import sentence
from helpers.strategies import sentences

GOLD = [
    sentence("Ada met Bo in Rome", ("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5)),
    sentence("Cy Dee left New York today", ("PER", 0, 2), ("LOC", 3, 5)),
]


def draws(augmenter: Augmenter, source: Sentence, n: int = 4000) -> Counter[tuple[str, ...]]:
    """What many independent draws give."""
    augmenter.copies, augmenter.max_attempts = 1, 1
    streams = Streams(augmenter.seed, augmenter.name)
    augmenter.check_ready()
    counts: Counter[tuple[str, ...]] = Counter()
    for i in range(n):
        [result] = augmenter.draft([Request(source, streams.stream(str(i), 1))])
        assert isinstance(result, Sentence)
        counts[result.tokens] += 1
    return counts


# ---------------------------------------------------------------------------------------------------------------- lwtr


def test_lwtr_draws_tokens_of_the_same_tag_by_frequency() -> None:
    gold = [sentence("a a a b Ada", ("PER", 4, 5)), sentence("b Bo Ek", ("PER", 1, 3))]
    lwtr = LabelWiseTokenReplacement(p=1.0).fit(gold)
    # By hand: O has a three times and b twice; B-PER Ada and Bo once each; I-PER Ek alone.
    assert lwtr.pools_ == {"O": (["a", "b"], [3, 5]), "B-PER": (["Ada", "Bo"], [1, 2]), "I-PER": (["Ek"], [1])}
    seen = draws(lwtr, gold[1])
    assert {tokens[2] for tokens in seen} == {"Ek"}
    first = Counter(dict.fromkeys("ab", 0))
    second: Counter[str] = Counter()
    for tokens, count in seen.items():
        first[tokens[0]] += count
        second[tokens[1]] += count
    assert abs(first["a"] / 4000 - 3 / 5) < 0.03
    assert abs(second["Ada"] / 4000 - 1 / 2) < 0.03


def test_lwtr_keeps_nested_tokens_to_their_own_set_of_tags() -> None:
    gold = [
        Sentence(["x", "y"], [Mention("A", [(0, 2)]), Mention("B", [(1, 2)])]),
        Sentence(["u", "v"], [Mention("A", [(0, 2)]), Mention("B", [(1, 2)])]),
        Sentence(["p", "q"], [Mention("A", [(0, 2)])]),
    ]
    seen = draws(LabelWiseTokenReplacement(p=1.0).fit(gold), gold[0])
    assert {tokens[1] for tokens in seen} == {"y", "v"}, "q is I-A alone, not I-A and B-B"
    assert {tokens[0] for tokens in seen} == {"x", "u", "p"}


def test_lwtr_leaves_stop_words_alone_when_asked() -> None:
    gold = [sentence("the cat sat"), sentence("a dog ran")]
    seen = draws(LabelWiseTokenReplacement(p=1.0, stop_words="en").fit(gold), gold[0])
    assert {tokens[0] for tokens in seen} == {"the"}
    assert {tokens[1] for tokens in seen} == {"cat", "sat", "dog"}, "stop words do not replace others either"


def test_stop_words_from_a_file_and_for_no_language(tmp_path: object) -> None:
    path = tmp_path / "words"  # type: ignore[operator]
    path.write_text("The\n\nOf\n")
    assert stop_words(str(path)) == {"the", "of"}
    assert stop_words(None) == frozenset()
    with pytest.raises(ParameterError, match="no stop words for 'xx'"):
        create_augmenter("lwtr", stop_words="xx")


# ------------------------------------------------------------------------------------------------------------------ mr


def test_mr_draws_each_other_mention_alike_and_never_itself() -> None:
    mr = MentionReplacement(p=1.0).fit(GOLD)
    assert mr.pools_ == {"PER": [("Ada",), ("Bo",), ("Cy", "Dee")], "LOC": [("New", "York"), ("Rome",)]}
    seen = draws(mr, GOLD[1])
    # PER: Ada or Bo; LOC: Rome only. So two outcomes, alike.
    assert set(seen) == {("Ada", "left", "Rome", "today"), ("Bo", "left", "Rome", "today")}
    assert abs(seen["Ada", "left", "Rome", "today"] / 4000 - 1 / 2) < 0.03


def test_mr_keeps_types_and_bounds() -> None:
    for new in MentionReplacement(p=1.0, copies=5).fit(GOLD).augment(GOLD):
        assert [m.label for m in new.mentions] in (["PER", "PER", "LOC"], ["PER", "LOC"])
        assert all(
            (" ".join(new.mention_tokens(m)) in {"Ada", "Bo", "Cy Dee", "Rome", "New York"}) for m in new.mentions
        )


def test_mr_replaces_only_mentions_that_stand_alone() -> None:
    nested = Sentence(
        "Bank of Oslo and Rome left".split(),
        [Mention("ORG", [(0, 3)]), Mention("LOC", [(2, 3)]), Mention("LOC", [(4, 5)]), Mention("X", [(3, 4), (5, 6)])],
    )
    mr = MentionReplacement(p=1.0).fit([*GOLD, nested])
    # A mention that holds another is no donor: its words would lose the inner label elsewhere.
    assert ("Bank", "of", "Oslo") not in mr.pools_.get("ORG", [])
    assert ("Oslo",) in mr.pools_["LOC"]
    assert {tokens[:4] for tokens in draws(mr, nested)} == {("Bank", "of", "Oslo", "and")}
    # Oslo is in the sentence already.
    assert {tokens[4] for tokens in draws(mr, nested)} == {"New"}


def test_mr_has_the_stated_share_of_mentions_replaced() -> None:
    seen = draws(MentionReplacement(p=0.3).fit(GOLD), GOLD[0], 6000)
    first_changed = sum(n for tokens, n in seen.items() if tokens[0] != "Ada")
    # Three mentions at 0.3 each, given that at least one is replaced: 0.3 / (1 - 0.7 ** 3).
    assert abs(first_changed / 6000 - 0.3 / (1 - 0.7**3)) < 0.03


def test_mr_says_which_types_it_cannot_replace() -> None:
    gold = [*GOLD, sentence("the Olympics", ("EVENT", 1, 2))]
    mr = MentionReplacement(p=1.0).fit(gold)
    assert mr.notes() == ["type EVENT has only one distinct mention ('Olympics'), which mr cannot replace"]
    assert len(list(mr.augment(gold))) == 2
    assert mr.statistics_.missing == {"no mention that can be replaced": 1}


def test_mr_says_that_mentions_with_others_inside_are_replaced() -> None:
    nested = [sentence(f"nach § {n} BGB und § 5 {n}", ("REF", 1, 4), ("LAW", 3, 4), ("REF", 5, 7)) for n in (1, 2)]
    mr = MentionReplacement(p=1.0).fit(nested)
    assert mr.notes() == [
        "type LAW has only one distinct mention ('BGB'), which mr cannot replace",
        "type REF has only one distinct mention that holds no other ('§ 5'), which mr cannot replace",
    ]
    assert len(list(mr.augment(nested))) == 2


def test_line_ends_within_a_mention_stay_on_their_line() -> None:
    wrapped = sentence("joint pain came", ("DIS", 0, 2)).with_(spaces=("\r\n ", " ", ""))
    other = sentence("he had severe cough today", ("DIS", 2, 4)).with_(spaces=(" ", " ", "\u00a0", " ", ""))
    new = list(
        MentionReplacement(p=1.0, donors="any", adjust_case=False).fit([wrapped, other]).augment([wrapped, other])
    )
    assert [s.text for s in new] == ["severe\u00a0cough came", "he had joint pain today"]


def test_mr_refuses_a_corpus_it_can_do_nothing_with() -> None:
    with pytest.raises(InputError, match="the corpus has no mentions, which mr needs"):
        MentionReplacement().fit([sentence("just words")])
    with pytest.raises(InputError, match="every type has only one distinct mention"):
        MentionReplacement().fit([sentence("Ada left", ("PER", 0, 1)), sentence("Ada came", ("PER", 0, 1))])


# ----------------------------------------------------------------------------------------------------------------- sis


def test_sis_permutes_within_segments_only() -> None:
    source = sentence("a b Ada Byron c d", ("PER", 2, 4))
    seen = draws(ShuffleWithinSegments(p=1.0), source, 4000)
    # By hand: each of three segments has two orders, so eight outcomes, the source among them, alike.
    assert len(seen) == 8
    assert all({*t[:2]} == {"a", "b"} and {*t[2:4]} == {"Ada", "Byron"} and {*t[4:]} == {"c", "d"} for t in seen)
    assert max(seen.values()) - min(seen.values()) < 160


def test_sis_keeps_adjacent_mentions_apart() -> None:
    source = sentence("Ada Byron Cy Dee", ("PER", 0, 2), ("PER", 2, 4))
    for tokens in draws(ShuffleWithinSegments(p=1.0), source, 200):
        assert set(tokens[:2]) == {"Ada", "Byron"}


def test_sis_stops_at_every_boundary_of_nested_and_discontinuous_mentions() -> None:
    source = Sentence("l and r upper arm hurt badly".split(), [Mention("B", [(0, 1), (3, 5)]), Mention("B", [(2, 5)])])
    for tokens in draws(ShuffleWithinSegments(p=1.0), source, 200):
        assert tokens[:3] == ("l", "and", "r")
        assert set(tokens[3:5]) == {"upper", "arm"}


# ------------------------------------------------------------------------------------------------------------------ sr

LEXICON = FakeLexicon({"film": ["movie", "motion picture"], "fine": ["good"], "big": ["great", "enormous"]})


def test_sr_makes_the_mention_longer_with_a_longer_synonym() -> None:
    source = sentence("one fine film award", ("WORK", 2, 3), ("AWARD", 2, 4))
    sr = SynonymReplacement(p=1.0, lexicon=LEXICON)
    assert set(draws(sr, source, 100)) == {
        ("one", "good", "movie", "award"),
        ("one", "good", "motion", "picture", "award"),
    }
    for new in SynonymReplacement(p=1.0, lexicon=LEXICON, copies=4).augment([source]):
        assert [m.label for m in new.mentions] == ["WORK", "AWARD"]
        assert [len(new.mention_tokens(m)) for m in new.mentions] == [len(new) - 3, len(new) - 2]


def test_sr_takes_capitals_for_names_but_not_at_the_start() -> None:
    source = sentence("Film fans of Fine Film say FILM", ("ORG", 3, 5))
    sr = SynonymReplacement(p=1.0, lexicon=LEXICON)
    assert {t[-6:] for t in draws(sr, source, 50)} == {("fans", "of", "Fine", "Film", "say", "FILM")}
    assert {t[0] for t in draws(sr, source, 50)} == {"Movie", "Motion"}
    named = sentence("Film left", ("ORG", 0, 1))
    assert list(sr.augment([named])) == []


def test_sr_minds_articles_and_stop_words_and_can_spare_mentions() -> None:
    source = sentence("a big film", ("WORK", 2, 3))
    sr = SynonymReplacement(p=1.0, lexicon=LEXICON, inside_mentions=False)
    assert set(draws(sr, source, 100)) == {("a", "great", "film")}, "not 'a enormous'"
    assert "big" in stop_words("en")
    with_stop = SynonymReplacement(p=1.0, lexicon=FakeLexicon({"big": ["great"]}), stop_words="en")
    assert list(with_stop.augment([source])) == []
    assert with_stop.statistics_.missing.total() == 1


# --------------------------------------------------------------------------------------------------- the base, by hand


def test_equal_and_repeated_drafts_are_dropped_counted_and_asked_for_again() -> None:
    # "a b" has one other order: the second copy can only repeat it.
    sis = ShuffleWithinSegments(p=1.0, copies=2, max_attempts=50)
    [new] = sis.augment([sentence("a b")])
    assert new.tokens == ("b", "a")
    tally = sis.statistics_
    assert (tally.sources, tally.requested, tally.accepted, tally.missing.total()) == (1, 2, 1, 1)
    assert set(tally.rejected) == {"equal to its source", "made before"}


def test_equal_sources_get_different_sentences() -> None:
    source = sentence("a b c d e f g h")
    made = list(ShuffleWithinSegments(p=1.0).augment([source, source, source]))
    assert len({s.tokens for s in made}) == len({s.id for s in made}) == 3


def test_what_another_source_gave_is_not_given_again() -> None:
    gold = [sentence("a b"), sentence("b a")]
    sis = ShuffleWithinSegments(p=1.0, max_attempts=50)
    assert {s.tokens for s in sis.augment([gold[0], gold[0], gold[1]])} == {("b", "a"), ("a", "b")}
    assert sis.statistics_.missing == {"made before": 1}


def test_provenance() -> None:
    source = Sentence(["a", "b"], id="s1", **split_fields({"doc": "d", "comments": ["# text = a b"], "text": "a b!"}))
    [new] = ShuffleWithinSegments(p=1.0, seed=4, max_attempts=50).augment([source])
    assert new.id == "s1/sis-4-1"
    assert new.fields == {
        "doc": "d",
        "entaug": {
            "method": "sis",
            "signature": "sis|copies=1|seed=4|max_attempts=50|filters=None|p=1.0|entaug=0.2.0",
            "sources": ["s1"],
            "copy": 1,
        },
    }


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"p": 1.5}, "p must be a number from 0 to 1, not 1.5"),
        ({"p": -0.1}, "p must be a number from 0 to 1"),
        ({"p": float("nan")}, "p must be a number from 0 to 1"),
        ({"p": "much"}, "p must be a number from 0 to 1"),
        ({"copies": -1}, "copies must be an integer from 1 to 10000, not -1"),
        ({"copies": 10_001}, "copies must be an integer from 1 to 10000"),
        ({"copies": 0}, "copies must be"),
        ({"seed": 0.5}, "seed must be an integer"),
        ({"max_attempts": 0}, "max_attempts must be"),
    ],
)
def test_parameters_that_cannot_be(params: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        create_augmenter("mr", **params)


def test_unknown_methods_and_unfitted_ones() -> None:
    with pytest.raises(UnknownNameError, match="unknown parameter of mr: 'copy'; did you mean 'copies'"):
        create_augmenter("mr", copy=2)
    with pytest.raises(UnknownNameError, match="did you mean 'lwtr'"):
        create_augmenter("lwrt")
    with pytest.raises(ParameterError, match=r"call fit\(corpus\) first"):
        list(MentionReplacement().augment(GOLD))
    assert create_augmenter("shuffle-within-segments").info.name == "sis"


@settings(max_examples=examples(300))
@given(sentences(), sentences(), sentences())
def test_the_rules_never_fail_on_any_sentence(a: Sentence, b: Sentence, c: Sentence) -> None:
    corpus = [a, b, c]
    for augmenter in (LabelWiseTokenReplacement(p=0.5, copies=2), ShuffleWithinSegments(p=0.5, copies=2)):
        for new in augmenter.fit(corpus).augment(corpus):
            assert len(new.mentions) in {len(s.mentions) for s in corpus}


def test_words_that_come_in_are_spaced_as_where_they_come_from() -> None:
    one = Sentence(
        "The freeze - dried powder".split(), [Mention("X", [(1, 4)])], id="one", spaces=(" ", "", "", " ", "")
    )
    other = Sentence("The gel , too".split(), [Mention("X", [(1, 2)])], id="other", spaces=(" ", "", " ", ""))
    made = {
        s.fields["entaug"]["sources"][0]: s.text for s in MentionReplacement().fit([one, other]).augment([one, other])
    }
    assert made == {"one": "The gel powder", "other": "The freeze-dried, too"}
    # As many words as there were stand as these did.
    assert one.edit([Edit(1, 4, ("half", "-", "done"))]).text == "The half-done powder"


def test_new_neighbours_are_spaced_as_in_print() -> None:
    text = 'X.Y. Feng, H. Zhang; "12kg" (99.5%), ok.'
    tokens = ["X.Y.", "Feng", ",", "H.", "Zhang", ";", '"', "12", "kg", '"', "(", "99.5", "%", ")", ",", "ok", "."]
    spaces = (" ", "", " ", " ", "", " ", "", "", "", " ", "", "", "", "", " ", "", "")
    sentence = Sentence(tokens, spaces=spaces)
    assert sentence.text == text

    def put(place: int, *words: str) -> str:
        return sentence.edit([Edit(place, place + 1, words)]).text

    assert put(2, "and") == 'X.Y. Feng and H. Zhang; "12kg" (99.5%), ok.'
    assert put(8, "g") == 'X.Y. Feng, H. Zhang; "12g" (99.5%), ok.', "what was glued stays so"
    assert put(12, "parts", "in", "all") == 'X.Y. Feng, H. Zhang; "12kg" (99.5 parts in all), ok.'
    assert put(15, ".") == 'X.Y. Feng, H. Zhang; "12kg" (99.5%),..'
    assert put(16, "then", "!") == 'X.Y. Feng, H. Zhang; "12kg" (99.5%), ok then!'
    turned = Sentence(["He", "left", ",", "she", "said", "."], spaces=(" ", "", " ", " ", "", "")).reorder(
        [3, 4, 2, 0, 1, 5]
    )
    assert turned.text == "she said, He left."
    assert Sentence(["中", "国", "。"], spaces=("", "", "")).edit([Edit(2, 3, ("人",))]).text == "中国人"
