"""Lists, marking, templates, label tokens, filters: each step of EnTDA and ACLM against values worked by hand."""

from __future__ import annotations

import statistics
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.config import Gap
from entaug.backends.fakes import FakeTagger
from entaug.core.alignment import detokenize
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.filters import Consistency, create_filters
from entaug.methods import ACLM, EnTDA, MentionReplacement
from entaug.methods.aclm import Template, mask_keywords, select_keywords
from entaug.methods.base import NO_CANDIDATE, Rejection, Request
from entaug.methods.entda import (
    Listed,
    apply_operation,
    format_mention_list,
    is_whole,
    list_mentions,
    required_phrases,
)
from entaug.methods.shared.generated_text import (
    AMBIGUOUS,
    MISSING,
    UNLISTED,
    KnownMentions,
    MentionGroup,
    group_mentions,
    has_sentence_end,
    join_parts,
    label_tokens,
    match_mentions,
    parse_wrapped,
    wrap_tokens,
)
from entaug.methods.shared.generative import COPIED, NOT_ENDED
from helpers.fakes import FakeEncoder, FakeGenerator
from helpers.strategies import sentences


def one(label: str, words: str) -> MentionGroup:
    tokens = tuple(words.split())
    return MentionGroup((tokens,), ((label, ((0, len(tokens)),)),))


def listed(*groups: MentionGroup) -> list[Listed]:
    return list(map(Listed, groups))


EU, GERMAN, BRITISH, SPANISH = one("ORG", "EU"), one("MISC", "German"), one("MISC", "British"), one("MISC", "Spanish")


# ------------------------------------------------------------------------------------------------- changes of a list


class Fixed(Random):
    """Draws what it is told to."""

    def __init__(self, *draws: int) -> None:
        super().__init__(0)
        self._draws = list(draws)

    def randrange(self, start: int, *_: Any) -> int:
        drawn = self._draws.pop(0)
        assert 0 <= drawn < start
        return drawn


POOLS = {"ORG": [EU], "MISC": [GERMAN, BRITISH, SPANISH]}


@pytest.mark.parametrize(
    ("operation", "draws", "wanted"),
    [
        ("add", (1, 0), [EU, GERMAN, BRITISH, SPANISH]),  # of German's type only Spanish is not in the list
        ("add", (0,), [EU, GERMAN, BRITISH]),  # no other ORG
        ("delete", (2,), [EU, GERMAN]),
        ("replace", (2, 0), [EU, GERMAN, SPANISH]),
        ("replace", (0,), [EU, GERMAN, BRITISH]),
        ("swap", (0, 1), [BRITISH, GERMAN, EU]),  # the second after the first, around the end
        ("swap", (2, 0), [BRITISH, GERMAN, EU]),
        ("none", (0,), [EU, GERMAN, BRITISH]),
    ],
)
def test_operations(operation: str, draws: tuple[int, ...], wanted: list[MentionGroup]) -> None:
    assert apply_operation(operation, listed(EU, GERMAN, BRITISH), POOLS, Fixed(*draws)) == listed(*wanted)


def test_no_operation_leaves_nothing() -> None:
    for operation in ("delete", "swap"):
        assert apply_operation(operation, listed(EU), POOLS, Fixed(0)) == listed(EU)


# "The EU rejected German and Spanish lamb , and the tax ." with two words beside each mention
REJECTED = Sentence(
    "The EU rejected a plan for German and Spanish lamb , and the tax .".split(),
    [Mention("ORG", [(1, 2)]), Mention("MISC", [(6, 7)]), Mention("MISC", [(8, 9)])],
)


def test_words_beside_mentions() -> None:
    items = list_mentions(REJECTED, 2)
    assert items == [
        Listed(EU, ("The",), ("rejected", "a"), is_first=True, is_last=False),
        Listed(GERMAN, ("plan", "for"), ("and",), is_first=False, is_last=False, follows=True),
        Listed(SPANISH, (), ("lamb", ","), is_first=False, is_last=False, follows=True),
    ]
    assert format_mention_list(items) == ("The ORG: EU rejected a plan for MISC: German and MISC: Spanish lamb, |")
    assert required_phrases(items) == [["The EU rejected a plan for German and Spanish lamb,"]]
    fewer = list_mentions(REJECTED, 1)
    assert format_mention_list(fewer) == "The ORG: EU rejected a plan for MISC: German and MISC: Spanish lamb |"
    assert [item.is_last for item in list_mentions(REJECTED, 6)] == [False, False, True]
    assert list_mentions(REJECTED) == listed(EU, GERMAN, SPANISH)
    assert format_mention_list(list_mentions(REJECTED)) == "ORG: EU | MISC: German | MISC: Spanish"
    assert required_phrases(list_mentions(REJECTED)) == [["EU"], ["German"], ["Spanish"]]


@pytest.mark.parametrize(
    ("operation", "draws", "wanted"),
    [
        ("replace", (1, 0), [["The EU rejected a plan for British and Spanish lamb"]]),
        ("delete", (1,), [["The EU rejected", "Spanish lamb"]]),
        ("add", (1, 0), [["The EU rejected a plan for German and Spanish lamb"], ["British"]]),
        ("swap", (1, 0), [["The EU rejected a plan for Spanish and German lamb"]]),
        ("swap", (0, 0), [["The EU rejected a plan for German and Spanish lamb"]]),  # of two types
    ],
)
def test_words_beside_mentions_keep_their_place(operation: str, draws: tuple[int, ...], wanted: Any) -> None:
    assert required_phrases(apply_operation(operation, list_mentions(REJECTED, 1), POOLS, Fixed(*draws))) == wanted


@given(sentences())
def test_a_sentence_has_what_its_own_list_requires(sentence: Sentence) -> None:
    words = Counter(sentence.tokens)
    for item in list_mentions(sentence, 3):
        assert not Counter([*item.before, *item.after]) - words
    kept = [(item.before, item.after) for item in list_mentions(sentence, len(sentence))]
    outside = sum(sentence.outside_mask())
    assert sum(len(before) + len(after) for before, after in kept) <= outside


# ----------------------------------------------------------------------------------------------------------- marking

NESTED = Sentence(
    "the NF-kappa B site binds NF-kappa B".split(),
    [Mention("DNA", [(1, 4)]), Mention("protein", [(1, 3)]), Mention("protein", [(5, 7)])],
)
SHARED = Sentence(
    "severe pain in my left shoulder and neck".split(),
    [Mention("ADR", [(0, 2), (5, 6)]), Mention("ADR", [(0, 2), (7, 8)])],
)


def test_nests_and_how_they_are_listed() -> None:
    site, factor = group_mentions(NESTED)
    assert site == MentionGroup((("NF-kappa", "B", "site"),), (("DNA", ((0, 3),)), ("protein", ((0, 2),))))
    assert (site.label, factor) == ("DNA", one("protein", "NF-kappa B"))
    [pain] = group_mentions(SHARED)
    assert pain == MentionGroup(
        (("severe", "pain"), ("shoulder",), ("neck",)), (("ADR", ((0, 2), (3, 4))), ("ADR", ((0, 2), (2, 3))))
    )
    assert (
        format_mention_list(listed(site, factor)) == "DNA: NF-kappa B site & protein: NF-kappa B | protein: NF-kappa B"
    )
    assert format_mention_list(listed(pain)) == "ADR: severe pain ... neck & ADR: severe pain ... shoulder"


@pytest.mark.parametrize(
    ("text", "items", "wanted"),
    [
        ("the German wing of the EU", [EU, GERMAN], [("ORG", ((5, 6),)), ("MISC", ((1, 2),))]),
        ("the wing of the EU", [EU, GERMAN], MISSING),
        ("the EU is not the EU", [EU], AMBIGUOUS),  # which of them?
        ("the EU is not the EU", [EU, EU], [("ORG", ((1, 2),)), ("ORG", ((5, 6),))]),  # asked for twice, there twice
        ("the EU", [EU, EU], MISSING),
        ("Washington met Washington", [one("PER", "Washington"), one("LOC", "Washington")], AMBIGUOUS),
        # The longer one first: Boston alone is not that within Boston University.
        (
            "Boston University in Boston",
            [one("LOC", "Boston"), one("ORG", "Boston University")],
            [("LOC", ((3, 4),)), ("ORG", ((0, 2),))],
        ),
        ("Boston University", [one("LOC", "Boston"), one("ORG", "Boston University")], MISSING),
        # A capital at the beginning of a sentence is no other word, elsewhere it is.
        ("He left . Neural nets won", [one("ALG", "neural nets")], [("ALG", ((3, 5),))]),
        ("He left Neural nets", [one("ALG", "neural nets")], MISSING),
    ],
)
def test_flat_marking(text: str, items: list[MentionGroup], wanted: Any) -> None:
    found = match_mentions(text.split(), items)
    assert (found if isinstance(found, str) else [(m.label, m.spans) for m in found]) == wanted


def test_nested_marking_with_repeated_words() -> None:
    site, factor = group_mentions(NESTED)
    found = match_mentions("NF-kappa B sees the NF-kappa B site".split(), [site, factor])
    assert found == [Mention("DNA", [(4, 7)]), Mention("protein", [(4, 6)]), Mention("protein", [(0, 2)])]
    assert match_mentions("the NF-kappa B site".split(), [site, factor]) == MISSING
    assert match_mentions("NF-kappa B and NF-kappa B site and NF-kappa B".split(), [site, factor]) == AMBIGUOUS


def test_discontinuous_marking_with_repeated_words() -> None:
    [pain] = group_mentions(SHARED)
    found = match_mentions("I had severe pain in shoulder , back and neck".split(), [pain])
    assert found == [Mention("ADR", [(2, 4), (9, 10)]), Mention("ADR", [(2, 4), (5, 6)])]
    # Parts that have come together are one.
    assert match_mentions("severe pain shoulder and neck".split(), [pain]) == [
        Mention("ADR", [(0, 2), (4, 5)]),
        Mention("ADR", [(0, 3)]),
    ]
    assert match_mentions("neck and shoulder with severe pain".split(), [pain]) == MISSING, "the order is another"
    assert match_mentions("severe pain in neck , shoulder and neck".split(), [pain]) == AMBIGUOUS, "which neck?"


def test_known_mentions_may_not_stand_unmarked() -> None:
    gold = [
        Sentence("the EU fell".split(), [Mention("ORG", [(1, 2)])]),
        Sentence("May sang in May".split(), [Mention("PER", [(0, 1)])]),
        Sentence("in May it rains".split()),
    ]
    known = KnownMentions(gold)
    assert match_mentions("German EU".split(), [GERMAN], known) == UNLISTED
    # "May" is mostly no mention.
    assert match_mentions("German May".split(), [GERMAN], known) == [Mention("MISC", [(0, 1)])]
    # They can be labelled, where the corpus is of one mind.
    assert match_mentions("German EU".split(), [GERMAN], known, label=True) == [
        Mention("ORG", [(1, 2)]),
        Mention("MISC", [(0, 1)]),
    ]
    both = KnownMentions([*gold, Sentence("an EU wine".split(), [Mention("MISC", [(1, 2)])])])
    assert match_mentions("German EU".split(), [GERMAN], both, label=True) == UNLISTED
    # What stands within a listed mention belongs to it.
    assert isinstance(match_mentions("the EU wing".split(), [one("ORG", "EU wing")], known), list)


def test_known_mentions_with_a_capital_and_inside_of_others() -> None:
    gold = [
        Sentence("we train neural networks".split(), [Mention("ALG", [(2, 4)])]),
        Sentence("Rome and Boston".split(), [Mention("LOC", [(0, 1)]), Mention("LOC", [(2, 3)])]),
        Sentence("Boston University".split(), [Mention("ORG", [(0, 2)])]),
        Sentence("at Boston University".split(), [Mention("ORG", [(1, 3)])]),
    ]
    known = KnownMentions(gold)
    assert {"neural networks", "Neural networks", "Boston"} <= set(known.texts())
    rome = MentionGroup((("Rome",),), (("LOC", ((0, 1),)),))
    assert match_mentions("Neural networks help Rome".split(), [rome], known) == UNLISTED
    assert match_mentions("Rome helps . Neural networks too".split(), [rome], known) == UNLISTED
    assert match_mentions("Rome helps Neural networks".split(), [rome], known) == [Mention("LOC", [(0, 1)])], (
        "another name"
    )
    assert match_mentions("Rome beats Boston".split(), [rome], known) == UNLISTED, (
        "inside of a longer one it is not outside"
    )
    labelled = match_mentions("Neural networks help Rome".split(), [rome], known, label=True)
    assert not isinstance(labelled, str)
    assert set(labelled) == {Mention("ALG", [(0, 2)]), Mention("LOC", [(3, 4)])}


def test_what_could_be_meant_in_two_ways_is_refused() -> None:
    boston, university = (
        MentionGroup(((*words,),), (("X", ((0, len(words)),)),)) for words in (["Boston"], ["Boston", "University"])
    )
    assert match_mentions("Boston University and Boston University".split(), [boston, university]) == AMBIGUOUS
    assert isinstance(match_mentions("Boston and Boston University".split(), [boston, university]), list)
    arm, leg = (MentionGroup((("pain",), (part,)), (("SYM", ((0, 2),)),)) for part in ("arm", "leg"))
    for items in ([arm, leg], [leg, arm]):
        assert match_mentions("pain in back and pain in leg and arm".split(), items) == AMBIGUOUS
    apple, firm = (
        MentionGroup(((word,),), ((label, ((0, 1),)),)) for word, label in (("apple", "FOOD"), ("Apple", "ORG"))
    )
    assert match_mentions("Apple ate Apple".split(), [apple, firm]) == AMBIGUOUS
    assert isinstance(match_mentions("Apple ate an apple".split(), [apple, firm]), str), (
        "refused, if not for the same reason"
    )


def test_twins_that_are_one_object_have_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = [Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])])]
    made = []
    for window, corpus in ((64, [gold[0], gold[0]]), (1, [gold[0], gold[0]]), (64, [gold[0], gold[0].with_fields({})])):
        monkeypatch.setattr(EnTDA, "window_size", window)
        method = EnTDA(
            candidates=1, generator=FakeGenerator([str(i) for i in range(50)]), copies=2, max_similarity=1.0
        ).fit(gold)
        made.append([(s.tokens, s.id) for s in method.augment(corpus)])
    assert made[0] == made[1] == made[2]


def test_lists_and_texts_are_spaced_alike() -> None:
    joined = Sentence("NF - kappaB binds".split(), [Mention("P", [(0, 3)])], spaces=("", "", " ", ""))
    method = EnTDA(candidates=1, context_size=0, generator=FakeGenerator()).fit([joined])
    assert isinstance(method.trained_, FakeGenerator)
    [(asked, said)] = method.trained_.learned
    assert said.startswith(asked.removeprefix("P: "))


@given(sentences())
def test_every_sentence_is_marked_from_its_own_list_or_refused(sentence: Sentence) -> None:
    found = match_mentions(sentence.tokens, group_mentions(sentence))
    if not isinstance(found, str):
        # Where words repeat, another occurrence may be meant; the words and labels are those listed.
        assert Counter((m.label, sentence.mention_tokens(m)) for m in found) == Counter(
            (m.label, sentence.mention_tokens(m)) for m in sentence.mentions
        )


@given(sentences(), st.integers(1, 3))
def test_a_list_with_all_words_of_a_sentence_is_its_text(sentence: Sentence, context_size: int) -> None:
    items = list_mentions(sentence, context_size)
    if items and is_whole(items):
        assert [required_phrases(items)[0][0]] == [detokenize(sentence.tokens)]


def test_parts_of_a_discontinuous_mention_stay_apart() -> None:
    severe = [Mention("ADR", [(0, 1), (3, 4)])]
    sold = Sentence("severe pain in chest Lipitor and more".split(), [*severe, Mention("DRUG", [(4, 5)])])
    assert required_phrases(list_mentions(sold, 1)) == [["severe", "chest Lipitor and"]]
    # Where it is replaced, the list looks like that of a whole sentence.
    pain = Sentence("severe pain in chest".split(), severe)
    pools = {"ADR": [MentionGroup((("headache",),), (("ADR", ((0, 1),)),))]}
    changed = apply_operation("replace", list_mentions(pain, 1), pools, Random(0))
    assert is_whole(changed)
    method = EnTDA(context_size=1, generator=FakeGenerator()).fit([pain])
    plan = method._plan(Request(pain, Random(0)))
    assert not isinstance(plan, Rejection)
    assert not method._is_given(plan._replace(basis=changed))


def test_a_text_that_its_list_has_already_is_not_generated() -> None:
    gold = [
        Sentence("Bo knows Rome well".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
        Sentence("Ada left Oslo in late spring".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
    ]
    asked: list[str] = []

    class Counted(FakeGenerator):
        def generate(self, inputs: Any, *rest: Any) -> list[list[str]]:
            asked.extend(inputs)
            return super().generate(inputs, *rest)

    method = EnTDA(candidates=1, context_size=2, generator=Counted(), guard=False, max_attempts=1).fit(gold)
    whole, other = list(method.augment(gold))
    assert " ".join(whole.tokens) in ("Ada knows Rome well", "Bo knows Oslo well")
    assert [text.endswith("in late |") for text in asked] == [True]
    assert "|" in method._unwanted
    marked = EnTDA(generator=FakeGenerator()).fit([*gold, Sentence("a | b".split())])
    assert "|" not in marked._unwanted
    assert len(other.tokens) > len(gold[1])


def test_a_sentence_whose_words_do_not_repeat_is_marked_exactly() -> None:
    for sentence in entaug.read(EXAMPLE / "nested.jsonl"):
        if len(set(sentence.tokens)) == len(sentence.tokens):
            assert set(match_mentions(sentence.tokens, group_mentions(sentence))) == set(sentence.mentions)


# ------------------------------------------------------------------------------------------------------------- entda


def test_entda_by_hand() -> None:
    gold = [
        Sentence("Ada sings loud".split(), [Mention("PER", [(0, 1)])], id="a"),
        Sentence("Bo knows Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id="b"),
        Sentence("it rains".split(), id="c"),
    ]

    class Written(FakeGenerator):
        def generate(self, inputs: Any, *_: Any) -> list[list[str]]:
            texts = {
                "PER: Bo": ["Bo knows Rome", "Bo sleeps.", "Ada sleeps, Bo too"]  # known by heart; good; Ada unlisted
            }
            return [texts[text] for text in inputs]

    method = EnTDA(
        candidates=1, operation="replace", context_size=0, generator=Written(), copies=3, num_beams=3, max_attempts=1
    ).fit(gold)
    assert isinstance(method.trained_, FakeGenerator)
    assert sorted(method.trained_.learned) == [("PER: Ada", "Ada sings loud"), ("PER: Bo | LOC: Rome", "Bo knows Rome")]
    made = [(s.id, " ".join(s.tokens), s.iob()) for s in method.augment(gold[:1])]
    assert made == [("a/entda-0-1", "Bo sleeps .", ["B-PER", "O", "O"])]
    assert method.statistics_.missing == {"a copy of a training sentence": 1, UNLISTED: 1}
    assert not list(method.augment(gold[2:]))
    assert method.statistics_.missing == {NO_CANDIDATE.reason: 3}
    [told] = [s.fields["entaug"] for s in method.augment(gold[:1])]
    assert (told["list"], told["beam"]) == ("PER: Bo", 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "shuffle"},
        {"decoding": "greedy"},
        {"num_beams": 0},
        {"diversity_penalty": -1},
        {"unlisted_mentions": "guess"},
        {"constrained": 1},
        {"preset": "mine"},
        {"epochs": 0},
        {"learning_rate": 2},
        {"max_new_tokens": 0},
    ],
)
def test_entda_refuses_impossible_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        EnTDA(**wrong)


def test_presets_differ_by_names_and_numbers() -> None:
    paper = EnTDA(preset="paper")
    assert (paper.generator, paper.epochs, paper.batch_size) == ("google-t5/t5-base", 3, 5)
    assert ACLM(preset="paper", epochs=2).epochs == 2


# ----------------------------------------------------------------------------------------------------- label tokens

FLAT = Sentence("Ada Byron , of London , sang .".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(4, 5)])])


def linearized(sentence: Sentence) -> list[str]:
    return [part for parts in wrap_tokens(sentence) for part in parts]


def test_linearized_and_back() -> None:
    parts = linearized(FLAT)
    text = join_parts(parts, label_tokens(["PER", "LOC"]))
    assert text == "<B-PER> Ada <B-PER> <I-PER> Byron <I-PER> , of <B-LOC> London <B-LOC> , sang."
    read = parse_wrapped(text, ["PER", "LOC"], lambda t: t.replace(".", " .").split())
    assert read == (FLAT.tokens, FLAT.mentions)
    # Adjacent mentions of one type stay two.
    two = Sentence(["Ada", "Bo"], [Mention("PER", [(0, 1)]), Mention("PER", [(1, 2)])])
    assert parse_wrapped(" ".join(linearized(two)), ["PER"], str.split) == (two.tokens, two.mentions)


@pytest.mark.parametrize(
    "text",
    [
        "<B-PER> Ada",
        "<B-PER> Ada <I-PER> sang",
        "<B-PER> <B-PER>",
        "<B-PER> Ada Byron <B-PER>",
        "<I-PER> Ada <I-PER>",
        "Ada <B-PER>",
        "<B-PER> Ada <B-PER> <I-LOC> x <I-LOC>",
    ],
)
def test_label_tokens_that_do_not_go_together(text: str) -> None:
    assert parse_wrapped(text, ["PER", "LOC"], str.split) is None


def test_label_tokens_are_in_a_fixed_order_and_start_from_words() -> None:
    assert label_tokens({"creative-work", "PER"}) == {
        "<B-PER>": "begin PER",
        "<I-PER>": "inside PER",
        "<B-creative-work>": "begin creative work",
        "<I-creative-work>": "inside creative work",
    }


# --------------------------------------------------------------------------------------------------------- templates


def test_keywords_by_hand() -> None:
    # "the old band Suede London split up": GRP is Suede London, LOC is nothing; words of the mention are summed.
    sentence = Sentence("the old band Suede London split up".split(), [Mention("GRP", [(3, 5)])])
    weights = np.zeros((7, 7))
    weights[3] = [0.9, 0.1, 0.3, 0, 9, 0.2, 0]
    weights[4] = [0.0, 0.3, 0.0, 9, 0, 0.2, 0]
    # Sums over the mention: the .9, old .4, band .3, split .4, up 0; "the" and "up" are stop words.
    able = [1, 2, 5]
    assert select_keywords(sentence, weights.tolist(), 2, able) == (1, 5)
    assert select_keywords(sentence, weights.tolist(), 3, able) == (1, 2, 5)
    # Two mentions: the union of what each attends to.
    two = sentence.with_(mentions=(Mention("GRP", [(3, 4)]), Mention("LOC", [(4, 5)])))
    assert select_keywords(two, weights.tolist(), 1, able) == (1, 2)


def test_templates_merge_masks_and_mixner_joins_them() -> None:
    first = Template(Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])]), (1, 5))
    assert first.parts() == ["<mask>", "band", "<B-GRP>", "Suede", "<B-GRP>", "<mask>", "May"]
    assert first.parts(hidden=[1, 5]) == ["<mask>", "<B-GRP>", "Suede", "<B-GRP>", "<mask>"]
    second = Template(Sentence("in Rome it rained".split(), [Mention("LOC", [(1, 2)])]), ())

    class All(Random):
        def gauss(self, *_: Any) -> float:
            return 1.0

    assert " ".join(mask_keywords([first, second], All(0), 0.5)) == (
        "<mask> <B-GRP> Suede <B-GRP> <mask> <B-LOC> Rome <B-LOC> <mask>"
    )


def test_dynamic_masking_hides_half_of_the_keywords_give_or_take_one() -> None:
    words = [f"w{i}" for i in range(20)]
    template = Template(Sentence([*words, "X"], [Mention("L", [(20, 21)])]), tuple(range(0, 20, 2)))
    rng = Random(7)
    shown = [sum(p.startswith("w") for p in mask_keywords([template], rng, 0.5)) for _ in range(4000)]
    assert statistics.mean(shown) == pytest.approx(5, abs=0.06)
    # A normal draw of one keyword's spread, rounded: variance 1 + 1/12.
    assert statistics.pstdev(shown) == pytest.approx((13 / 12) ** 0.5, rel=0.05)
    shown = [sum(p.startswith("w") for p in mask_keywords([template], rng, 0)) for _ in range(100)]
    assert set(shown) == {10}  # without a mean none are masked
    shown = [sum(p.startswith("w") for p in mask_keywords([template], rng, 0.1, 15)) for _ in range(100)]
    assert set(shown) == {5}, "15 words are masked, ten of which are no keywords"


# -------------------------------------------------------------------------------------------------------------- aclm


def gold_bands() -> list[Sentence]:
    return [
        Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])], id="a"),
        Sentence(
            "the group Pulp played in Leeds".split(), [Mention("GRP", [(2, 3)]), Mention("LOC", [(5, 6)])], id="b"
        ),
    ]


class Answers(FakeGenerator):
    """Says what it is told to."""

    said: tuple[str, ...] = ()

    def generate(self, inputs: Any, *_: Any) -> list[list[str]]:
        return [[self.said[0]] for _ in inputs]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("a star <B-GRP> Suede <B-GRP> was born.", "a star Suede was born ."),
        ("a star <B-GRP> Suede was born", "inconsistent label tokens"),
        ("a star was born", "a mention of the template is missing or changed"),
        ("a <B-GRP> suede <B-GRP>", "a mention of the template is missing or changed"),
        ("<B-LOC> Suede <B-LOC>", "a mention of the template is missing or changed"),
        ("<B-GRP> Suede <B-GRP> and <B-GRP> Oasis <B-GRP>", "a mention that is not in the template"),
        ("<B-GRP> Suede <B-GRP> and Pulp", UNLISTED),
        ("the band <B-GRP> Suede <B-GRP> split in June", "too similar to its source"),
        ("", "no text was completed within the limits of the model and of max_new_tokens"),
    ],
)
def test_what_aclm_keeps(said: str, outcome: str) -> None:
    class Said(Answers):
        pass

    Said.said = (said,)
    gold = gold_bands()
    method = ACLM(
        candidates=1,
        keep_function_words=False,
        generator=Said(),
        tagger=FakeTagger(),
        encoder=FakeEncoder(),
        mixner_probability=0.0,
        max_similarity=0.8,
        max_attempts=1,
    )
    made = list(method.fit(gold).augment(gold[:1]))
    if made:
        assert (" ".join(made[0].tokens), made[0].iob()[2]) == (outcome, "B-GRP")
        assert "<B-GRP> Suede <B-GRP>" in made[0].fields["entaug"]["template"]
    else:
        assert method.statistics_.missing == {outcome: 1}


def test_aclm_requires_the_parts_of_its_template_in_their_order() -> None:
    gold = gold_bands()
    method = ACLM(
        candidates=1,
        generator=FakeGenerator(),
        tagger=FakeTagger(),
        encoder=FakeEncoder(),
        keep_function_words=False,
        mask_ratio=0.0,
        mixner_probability=0.0,
    ).fit(gold)
    shown = Template(gold[1], (1, 3))  # group, played
    method.templates_ = {gold[1].fingerprint(): shown}

    class NothingHidden(Random):
        def gauss(self, *_: Any) -> float:
            return 0.0

    plan = method._plan(Request(gold[1], NothingHidden(0)))
    assert not isinstance(plan, Rejection)
    assert plan.text == "<mask> group <B-GRP> Pulp <B-GRP> played <mask> <B-LOC> Leeds <B-LOC>"
    assert plan.required == [["group <B-GRP> Pulp <B-GRP> played", "<B-LOC> Leeds <B-LOC>"]]


def test_templates_with_function_words() -> None:
    gold = [Sentence("Bands of the town Suede played in Leeds .".split(), [Mention("GRP", [(4, 5)])])]
    backends: Any = {"generator": FakeGenerator(), "tagger": FakeTagger(), "encoder": FakeEncoder()}
    method = ACLM(candidates=1, **backends, keyword_ratio=0.0, guard=False).fit(gold)
    plan = method._plan(Request(gold[0], Random(0)))
    assert not isinstance(plan, Rejection)
    assert plan.text == "Bands of the <mask> <B-GRP> Suede <B-GRP> <mask> in <mask> ."
    gaps = [Gap(2, ("town",)), Gap(2, ("played",)), Gap(2, ("Leeds",))]  # other words, and one more than were masked
    assert plan.required == [["Bands of the", gaps[0], "<B-GRP> Suede <B-GRP>", gaps[1], "in", gaps[2], "."]]
    assert isinstance(method._read(plan, "Bands of the old and new <B-GRP> Suede <B-GRP> met in June."), Sentence)
    longer = method._read(plan, "Bands of the old and new city <B-GRP> Suede <B-GRP> met again in June.")
    assert longer == Rejection("longer or shorter than its template allows")
    assert method._decoding()["begins_with_required"]
    method = ACLM(candidates=1, **backends, keyword_ratio=0.0, keep_function_words=False).fit(gold)
    assert method._join(method.templates_[gold[0].fingerprint()].parts()) == "<mask> <B-GRP> Suede <B-GRP> <mask>"


@pytest.mark.parametrize(
    ("tokens", "wanted"), [("It rains .", True), ('He said " No ! "', True), ("It rains ,", False), ("", False)]
)
def test_ends_of_sentences(tokens: str, wanted: bool) -> None:
    assert has_sentence_end(tokens.split()) is wanted


def test_a_text_ends_as_its_source_does() -> None:
    gold = [Sentence("we met Suede twice .".split(), [Mention("GRP", [(2, 3)])])]
    backends: Any = {"generator": FakeGenerator(), "tagger": FakeTagger(), "encoder": FakeEncoder()}

    def read(text: str, **options: Any) -> Sentence | Rejection:
        method = ACLM(candidates=1, **backends, max_similarity=1.0, guard=False, **options).fit(gold)
        plan = method._plan(Request(gold[0], Random(0)))
        assert not isinstance(plan, Rejection)
        return method._read(plan, text)

    assert isinstance(read("they saw <B-GRP> Suede <B-GRP>."), Sentence)
    assert read("they saw <B-GRP> Suede <B-GRP> and") == NOT_ENDED
    assert isinstance(read("they saw <B-GRP> Suede <B-GRP> and", constrained=False), Sentence)


def test_aclm_gives_no_other_sentence_of_the_corpus_and_keeps_odd_tokens() -> None:
    one = Sentence(["the", "band", "Suede", "split", "in", "May"], [Mention("GRP", [(2, 3)])], id="a")
    other = Sentence(["all", "of", "Suede", "left"], [Mention("GRP", [(2, 3)])], id="b")
    odd = Sentence(["see", "New York", "-LRB-", "2"], [Mention("LOC", [(1, 3)])], id="c")

    def said(text: str, source: Sentence) -> Sentence | Rejection:
        method = ACLM(
            candidates=1,
            keywords="none",
            mixner_probability=0.0,
            generator=FakeGenerator(),
            tagger=FakeTagger(),
            encoder=FakeEncoder(),
        )
        method.fit([one, other, odd])
        monkey = FakeGenerator()
        monkey.generate = lambda inputs, *_: [[text]] * len(inputs)  # type: ignore[method-assign]
        method.trained_ = monkey
        [made] = method._rewrite_batch([Request(source, Random(0))])
        return made

    assert said("all of <B-GRP> Suede <B-GRP> left", one) == COPIED
    made = said("we love <B-LOC> New York <B-LOC> <I-LOC> ( <I-LOC> more", odd)
    assert isinstance(made, Sentence)
    assert made.tokens == ("we", "love", "New York", "-LRB-", "more")
    assert made.mentions == (Mention("LOC", [(2, 4)]),)


def test_aclm_says_that_it_can_carry_nothing_of_a_corpus() -> None:
    nested = Sentence("the Oslo port".split(), [Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)])])

    class Strict(FakeTagger):
        def fit(self, train: Any, **options: Any) -> Any:
            if not any(s.mentions for s in train):
                raise InputError("no mentions to learn from")
            return super().fit(train)

    method = ACLM(candidates=1, generator=FakeGenerator(), tagger=Strict(), encoder=FakeEncoder())
    with pytest.raises(InputError, match=r"every sentence with mentions has nested.*aclm does not support"):
        method.fit([nested, Sentence(["no", "mention"])])


def test_a_filter_that_is_new_has_not_seen_the_corpus() -> None:
    gold = [Sentence("Ada sings".split(), [Mention("PER", [(0, 1)])])]
    method = EnTDA(candidates=1, generator=FakeGenerator(), filters=Consistency(tagger=FakeTagger())).fit(gold)
    method.copies = 2
    list(method.augment(gold))  # the filter is the same
    method.filters = Consistency(tagger=FakeTagger())
    with pytest.raises(ParameterError, match="is not fitted"):
        list(method.augment(gold))


def test_mixner_names_both_sources() -> None:
    class Said(Answers):
        said = ("<B-GRP> Suede <B-GRP> met <B-GRP> Pulp <B-GRP> in <B-LOC> Leeds <B-LOC>",)

    gold = gold_bands()
    method = ACLM(
        candidates=1,
        generator=Said(),
        tagger=FakeTagger(),
        encoder=FakeEncoder(),
        mixner_probability=1.0,
        keywords="random",
        keep_function_words=False,
    )
    [made] = method.fit(gold).augment(gold[:1])
    assert made.fields["entaug"]["sources"] == ["a", "b"]
    assert [(m.label, made.mention_tokens(m)) for m in made.mentions] == [
        ("GRP", ("Suede",)),
        ("GRP", ("Pulp",)),
        ("LOC", ("Leeds",)),
    ]


def test_aclm_wants_attentions_and_sees_label_tokens_in_the_text() -> None:
    class Blind:
        name = "blind"

        def fit(self, train: Any, **options: Any) -> Any:
            return self

        def predict(self, sentences: Any) -> Any:
            return sentences

        confidences = tag_probabilities = predict

    with pytest.raises(ParameterError, match="has no attentions"):
        ACLM(candidates=1, generator=FakeGenerator(), tagger=Blind(), encoder=FakeEncoder()).fit(gold_bands())
    odd = Sentence(["<mask>", "Suede"], [Mention("GRP", [(1, 2)])], id="odd")
    method = ACLM(candidates=1, generator=FakeGenerator(), tagger=FakeTagger(), encoder=FakeEncoder()).fit(
        [*gold_bands(), odd]
    )
    assert not list(method.augment([odd]))
    assert method.statistics_.missing == {"its words look like label tokens": 1}
    assert not list(method.augment([FLAT]))
    assert method.statistics_.missing == {"not a sentence of the fitted corpus": 1}


# ----------------------------------------------------------------------------------------------------------- filters


def test_a_filter_asks_again_and_is_counted() -> None:
    pytest.importorskip("torch")  # the default tagger
    gold = [
        Sentence(["Ada", "sings"], [Mention("PER", [(0, 1)])], id="a"),
        Sentence(["Bo", "rests"], [Mention("PER", [(0, 1)])], id="b"),
        Sentence(["Cy", "reads"], [Mention("PER", [(0, 1)])], id="c"),
    ]
    assert {s.tokens[0] for s in MentionReplacement(p=1.0).fit(gold).augment(gold)} == {"Ada", "Cy"}

    class Picky(FakeTagger):
        def predict(self, sentences: Any) -> list[Sentence]:
            return [s if s.tokens[0] == "Cy" else s.with_(mentions=()) for s in sentences]

    method = MentionReplacement(p=1.0, filters=Consistency(tagger=Picky())).fit(gold)
    made = list(method.augment(gold))
    assert {s.tokens for s in made} == {("Cy", "sings"), ("Cy", "rests")}
    assert method.statistics_.missing["consistency: the tagger predicts other mentions"] >= 1
    assert "filters=consistency:tagger=fake" in method.signature
    with pytest.raises(ParameterError, match="is not fitted"):
        list(MentionReplacement(filters="consistency").augment(gold))
    with pytest.raises(InputError, match="no mentions, which the consistency filter needs"):
        MentionReplacement(filters=Consistency(tagger=Picky())).fit([Sentence(["a"])])


def test_a_filter_with_confidence() -> None:
    gold = [Sentence(["Ada", "sings"], [Mention("PER", [(0, 1)])])]
    sure = Consistency(tagger=FakeTagger(), min_confidence=0.5)
    sure.fit(gold)
    bo = Sentence(["Bo", "sings"], [Mention("PER", [(0, 1)])])
    assert sure.judge([gold[0], bo], [gold[0], None]) == [None, "the tagger predicts other mentions"]


def test_filters_by_name() -> None:
    [one_] = create_filters("consistency:min_confidence=0.25")
    assert (one_.spec, create_filters(None)) == ("consistency:tagger=linear,min_confidence=0.25", [])
    assert len(create_filters(["consistency", one_])) == 2
    with pytest.raises(UnknownNameError, match="consistency"):
        create_filters("consistensy")
    with pytest.raises(UnknownNameError, match="did you mean 'min_confidence'"):
        create_filters("consistency:min_confidense=1")
    with pytest.raises(ParameterError, match="a number from 0 to 1"):
        create_filters("consistency:min_confidence=high")
    with pytest.raises(ParameterError, match="from 0 to 1"):
        create_filters("consistency:min_confidence=2")
