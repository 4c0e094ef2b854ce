"""The label guard: each check with fakes, what it never does, and how runs use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE, examples
from entaug import Mention, Sentence
from entaug.backends.fakes import FakeMaskedLM, FakeTagger
from entaug.backends.protocols import Recognition, RoundTrip
from entaug.errors import MissingModelError, UnknownNameError
from entaug.filters import create_filters
from entaug.filters.label_guard import CHECKS, LabelGuard, NameEvidence, UncasedNames, is_beginning, is_shouted
from entaug.methods import METHODS, create_augmenter
from entaug.methods.base import Augmenter
from entaug.methods.combined import parse_methods
from entaug.teacher import Relabeller
from entaug.teacher.relabel import Relabelled
from helpers.fakes import FakeEntityRecognizer, FakeLexicon, FakeTranslator, FakeWordCases
from helpers.strategies import sentences


def labelled(text: str) -> Sentence:
    """A sentence from ``[New York]LOC is big``."""
    tokens: list[str] = []
    tags: list[str] = []
    inside = False
    for part in text.split():
        opens = part.startswith("[") and len(part) > 1
        word, bracket, label = (part[1:] if opens else part).partition("]")
        tokens.append(word)
        tags.append("O" if not (opens or inside) else "B" if opens else "I")
        inside = (opens or inside) and not bracket
        if bracket:
            start = max(i for i, tag in enumerate(tags) if tag == "B")
            tags[start:] = [f"{tag}-{label}" for tag in tags[start:]]
    return Sentence.from_iob(tokens, tags)


GOLD = [
    labelled(text)
    for text in (
        "the minister met [Ada Byron]PER in [Rome]LOC on Monday .",
        "later [Bo]PER flew from [Oslo]LOC to [New York]LOC .",
        "a court in [Kiel]LOC told [Acme Inc]ORG to pay [Cy Dee]PER .",
        "workers of [Bolt]ORG and [Nord Oil]ORG said they would strike .",
        "she said it was made by people in [Bonn]LOC .",
        "we saw [Eve]PER and [Dan]PER there , and [Fay]PER .",
        "he left [Zeta Bank]ORG for [Omega]ORG in [Ulm]LOC ( and came back ) .",
    )
]
NONE: dict[str, Any] = {"word_cases": None, "entity_recognizer": None}


def reason(text: str | Sentence, source: str | None = None, gold: list[Sentence] = GOLD, **sources: Any) -> str | None:
    guard = LabelGuard(**{**NONE, **sources}).fit(gold)
    sentence = labelled(text) if isinstance(text, str) else text
    return guard.judge([sentence], [labelled(source) if source else None])[0]


CLEAN = "a court told [Bo]PER to pay [Ada Byron]PER in [Rome]LOC ."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLEAN, None),
        ("a court in [Paris]LOC told [Gil Hey]PER to pay .", None),  # new names with labels
        ("The minister met [Ada Byron]PER on Monday .", None),  # a capital at the beginning; an ordinary one
        ("a court in Sarajevo told [Bo]PER to pay .", "a name without a label"),
        ("a court in Oslo told [Bo]PER to pay .", "a name without a label"),
        ("a court in oslo told [Bo]PER to pay .", "a name without a label"),
        ("New York told [Bo]PER to pay .", "a name without a label"),
        ("people said [was]ORG and left .", "a mention of ordinary words"),
        ("people said [made]ORG and left .", "a mention of ordinary words"),
        ("people of [Made]ORG left .", "a mention of ordinary words"),
        ("people of [the]ORG left .", "a mention of ordinary words"),
        ("people of [Hansa]ORG Group left .", "a mention that cuts a name"),
        ("people of [Nord]ORG Oil left .", "a mention that cuts a name"),
        ("people of [York]ORG and [of Rome]LOC left .", "a mention that cuts a name"),
        ("people met [Gil]PER [Hey]PER there .", "a mention that cuts a name"),
        ("people met [Gil ( Hey]PER and ) left .", "a mention with unpaired brackets"),
        ("people met [Bo]PER ( and left .", "unpaired brackets"),
        ("people met [Ada Byron Bo]PER there .", "a mention of two names"),
        ("people met [Rome]PER there .", "a mention in a shape that its type does not have"),
        ("people met [banks]PER there .", "a mention in a shape that its type does not have"),
        ("people met [Gil Hey Gil]PER there .", "a mention in a shape that its type does not have"),
        ("LOC : [Rome]LOC | PER : [Bo]PER", "the name of a label in the text"),
        ("people met [Bo]PER | [Rome]LOC", "traces of a prompt or of markup"),
        ("people met [Bo]PER <mask> there", "traces of a prompt or of markup"),
        ("people met [Bo]PER ( citation needed ) .", "traces of a prompt or of markup"),
        ("people met [Bo]PER there B-PER", "traces of a prompt or of markup"),
        ("E-mail told [Bo]PER to pay .", None),
        ("people met [Bo]PER there there .", "repeated words"),
        ("banks , banks , old banks met [Bo]PER .", "repeated words"),
        ("they left it , and they left it , with [Bo]PER .", "repeated words"),
    ],
)
def test_each_check(text: str, expected: str | None) -> None:
    assert reason(text) == expected


def test_each_reason_is_listed_and_tested() -> None:
    assert LabelGuard.reasons == tuple(CHECKS)


def test_faults_of_the_source_are_not_counted() -> None:
    source = "people met [Bo]PER in Sarajevo ."
    assert reason("people saw [Bo]PER in Sarajevo .") == "a name without a label"
    assert reason("people saw [Bo]PER in Sarajevo .", source) is None
    assert reason("people saw [Bo]PER in Sarajevo , Bosnia .", source) == "a name without a label"


def test_a_word_list_tells_names_in_lower_case_and_at_the_beginning() -> None:
    cases = FakeWordCases(["Sarajevo", "court"])
    for text in ("people left sarajevo with [Bo]PER .", "Sarajevo and [Bo]PER left ."):
        assert reason(text) is None
        assert reason(text, word_cases=cases) == "a name without a label"
    assert reason("people met [Court]PER there .", word_cases=cases) == "a mention of ordinary words"


def test_a_recogniser_counts_as_far_as_the_corpus_agrees() -> None:
    kinds = dict.fromkeys(("Rome", "Oslo", "Kiel", "Bonn", "Ulm", "York", "Sarajevo"), "PLACE")
    days = dict.fromkeys(("Monday", "Tuesday", "Sunday"), "DAY")
    recognizer = FakeEntityRecognizer({**kinds, **days}, {"strange": "ADJ"})
    gold = [*GOLD, labelled("on Monday , on Tuesday or on Sunday [Bo]PER left .")]
    assert reason("Sarajevo and [Bo]PER left .", gold=gold) is None
    assert reason("Sarajevo and [Bo]PER left .", gold=gold, entity_recognizer=recognizer) == "a name without a label"
    shape = "a mention in a shape that its type does not have"
    assert reason("on [Friday]PER we left .", gold=gold) is None
    friday = FakeEntityRecognizer({**kinds, **days, "Friday": "DAY"})
    assert reason("on [Friday]PER we left .", gold=gold, entity_recognizer=friday) == shape
    assert reason("people met [Strange]PER there .", entity_recognizer=FakeEntityRecognizer({}, {"Strange": "ADJ"}))


def test_a_capital_tells_nothing_where_the_corpus_uses_it_for_other_words() -> None:
    german = [labelled(f"die {noun} und das {other} von [Kiel]LOC") for noun, other in pairwise(WORDS)]
    assert reason("die Bahn von [Kiel]LOC", gold=german) is None
    assert reason("die Bahn von Kiel", gold=german) == "a name without a label"


WORDS = ["Haus", "Auto", "Tor", "Feld", "Buch", "Rad", "Tal", "Licht", "Dorf"]


@pytest.mark.parametrize(
    ("gold", "good", "bad"),
    [
        ("राम [दिल्ली]LOC में रहता है", "सीता [दिल्ली]LOC में रहता है", "सीता दिल्ली में रहता है"),
        ("他 在 [北 京]LOC 学 习", "她 在 [北 京]LOC 学 习", "她 在 北 京 学 习"),
        ("او در [تهران]LOC است", "علی در [تهران]LOC است", "علی در تهران است"),
        ("он живёт в [Москве]LOC", "она живёт в [Москве]LOC", "она живёт в Москве"),
    ],
)
def test_scripts_with_and_without_case(gold: str, good: str, bad: str) -> None:
    corpus = [labelled(gold)]
    assert reason(good, gold=corpus) is None
    assert reason(bad, gold=corpus) == "a name without a label"


def test_headlines_in_capitals_have_no_telling_capitals() -> None:
    assert is_shouted("MINISTER OF STATE LEAVES".split())
    assert reason("MINISTER AND COURT LEFT [ROME]LOC") is None


def test_beginnings() -> None:
    tokens = 'he said : " So " ( yes ) . Then @bo Hi'.split()
    found = [token for i, token in enumerate(tokens) if is_beginning(tokens, i)]
    assert found == ["he", '"', "So", "(", "yes", "Then", "Hi"]


def test_nested_and_discontinuous_mentions_are_judged() -> None:
    for sentence in entaug.read(EXAMPLE / "nested.jsonl"):
        assert reason(sentence, gold=[sentence]) is None


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(sentences(), min_size=1, max_size=4), sentences())
def test_never_changes_a_sentence_and_depends_on_nothing_else(gold: list[Sentence], new: Sentence) -> None:
    guard = LabelGuard(**NONE).fit(gold)
    before = (new.tokens, new.mentions)
    alone = guard.judge([new], [None])
    assert alone == guard.judge([new], [None])
    assert guard.judge([new, *gold], [None] * (len(gold) + 1))[:1] == alone
    assert (new.tokens, new.mentions) == before
    assert alone[0] is None or alone[0] in LabelGuard.reasons
    assert guard.judge([new], [new]) == [None], "faults of the source are not counted"
    assert LabelGuard(**NONE).fit(gold[::-1]).judge([new], [None]) == alone, "the order of the corpus changes nothing"


# --------------------------------------------------------------------------------------------------------------- casing


def test_fills_are_put_into_the_case_of_the_corpus_then_of_the_list() -> None:
    name_evidence = NameEvidence(GOLD, FakeWordCases(["English", "USA", "king"]))
    assert name_evidence.cased("monday", "today") == "Monday"
    assert name_evidence.cased("english", "new") == "English"
    assert name_evidence.cased("usa", "Rome") == "USA"
    assert name_evidence.cased("king", "Bishop") == "King"
    assert name_evidence.cased("King", "bishop") == "King", "a model with capitals decides itself"
    lower = NameEvidence([labelled("we saw [ada]PER")], FakeWordCases(["English"]))
    assert lower.cased("english", "new") == "english", "a corpus in lower case"


def test_lm_offers_no_names_outside_mentions() -> None:
    method = create_augmenter(
        "lm", masked_lm=FakeMaskedLM(["oslo", "bolt", "walked"]), num_replacements=1, copies=3, show_source=False
    )
    new = list(method.fit(GOLD).augment(GOLD))
    words = {word.lower() for s in new for word, outside in zip(s.tokens, s.outside_mask(), strict=True) if outside}
    assert new
    assert words.isdisjoint({"oslo", "bolt"})


def test_melm_fills_fit_the_type() -> None:
    method = create_augmenter("melm", candidates=1, masked_lm=FakeMaskedLM(["made", "rome", "gil", "court"]), copies=2)
    new = list(method.fit(GOLD).augment(GOLD))
    assert any(sentence.mentions for sentence in new)
    for sentence in new:
        for mention in sentence.mentions:
            words = sentence.mention_tokens(mention)
            assert not {"made", "court"} & {word.lower() for word in words}
            assert mention.label == "LOC" or "Rome" not in words


# ------------------------------------------------------------------------------------------------------- whole mentions

SICK = [
    labelled(text)
    for text in (
        "the girl has [retinal dystrophy]ILL and no [asthma]ILL .",
        "they saw [muscular dystrophy]ILL , [lung cancer]ILL and [diabetes]ILL in two boys .",
        "a man had [brain disease]ILL and then [Norrie disease]ILL at home .",
        "a case of [loss of skin colour]ILL was seen by [Ada Byron]PER .",
        "the sister of [Cy Dee]PER had [Tay - Sachs disease]ILL too .",
    )
]


@pytest.mark.parametrize(
    ("mention", "new", "label", "expected"),
    [
        ("lung cancer", "brain", "ILL", True),  # a modifier for another
        ("brain disease", "asthma", "ILL", False),  # a whole name is no modifier
        ("lung cancer", "dystrophy", "ILL", False),  # nor is a head
        ("muscular dystrophy", "skin", "ILL", False),  # an adjective, by the recogniser a noun is none
        ("asthma", "dystrophy", "ILL", False),  # a head is no name by itself
        ("asthma", "chest", "ILL", False),  # unknown, and no name
        ("asthma", "diabetes", "ILL", True),
        ("Tay - Sachs disease", "Gaucher", "ILL", True),  # a name for a name
        ("Tay - Sachs disease", "lung", "ILL", False),
        ("loss of skin colour", "from", "ILL", False),  # function words stay
        ("Ada Byron", "Gil", "PER", True),
        ("Ada Byron", "chest", "PER", False),
        ("Ada Byron", "Dee", "PER", False),  # a last name
    ],
)
def test_a_changed_mention_is_one_of_its_type_as_a_whole(mention: str, new: str, label: str, expected: bool) -> None:
    recognizer = FakeEntityRecognizer({}, {"retinal": "ADJ", "muscular": "ADJ"})
    cases = FakeWordCases(
        ["Tay", "Sachs", "Norrie", "Gaucher", "Ada", "Gil", "Dee", "chest", "lung", "from", "dystrophy", "asthma"]
    )
    guard = LabelGuard(word_cases=cases, entity_recognizer=recognizer).fit(SICK)
    words = mention.split()
    i = words.index("of") if new == "from" else 0
    assert guard.name_evidence.keeps_type(words, i, new, label) is expected


def test_heads_are_replaced_by_heads() -> None:
    keeps = LabelGuard(**NONE).fit(SICK).name_evidence.keeps_type
    assert [keeps(["lung", "cancer"], 1, new, "ILL") for new in ("disease", "dystrophy", "lung", "asthma", "home")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_two_known_names_are_no_mention_unless_the_type_has_such() -> None:
    text = "people with [asthma lung cancer]ILL left ."
    assert reason(text, gold=SICK) == "a mention of two names"
    recognizer = _Wide("asthma lung cancer")
    assert reason(text, gold=SICK, entity_recognizer=recognizer) is None, "a recogniser has it as one"
    double = [labelled(f"we saw [{one}]PER and [{two}]PER , [{one} {two}]PER") for one, two in pairwise(WORDS)]
    assert reason("we saw [Haus Tor]PER and", gold=double) is None
    single = [sentence for sentence in double if "Haus" in sentence.tokens] + [
        labelled(f"we saw [Tor]PER and [{one} Hey]PER") for one in WORDS
    ]
    assert reason("we saw [Haus Tor]PER and", gold=single) == "a mention of two names"


def test_what_a_recogniser_sees_in_the_source_as_well_is_no_fault() -> None:
    names = dict.fromkeys(["Ada Byron", "Bo", "Cy Dee", "Eve", "Dan", "Fay", "Sarajevo"], "PERSON")
    text, recognizer = "Sarajevo and [Bo]PER left .", FakeEntityRecognizer(names)
    assert reason(text, "Sarajevo and [Bo]PER came .", entity_recognizer=recognizer) is None
    assert reason(text, "[Eve]PER and [Bo]PER left .", entity_recognizer=recognizer) == "a name without a label"


class _Wide(FakeEntityRecognizer):
    """A recogniser of one entity of several words."""

    def __init__(self, entity: str) -> None:
        super().__init__({})
        self._words = entity.split()

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        found = []
        for words in sentences:
            starts = [i for i in range(len(words)) if list(words[i : i + len(self._words)]) == self._words]
            spans = tuple((i, i + len(self._words), "ILL") for i in starts)
            found.append(Recognition(spans, ("NOUN",) * len(words)))
        return found


class _Asked(FakeMaskedLM):
    """A model that notes how it is asked to fill."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.asked: list[int] = []  # texts of each call

    def fit(self, *args: Any, **more: Any) -> Self:
        return self

    def fill(self, texts: Any, top_k: int, *, first_only: bool = False) -> Any:
        self.asked.append(len(texts))
        return super().fill(texts, top_k, first_only=first_only)


def test_melm_makes_mentions_of_several_words_only_if_they_are_known() -> None:
    words = ["brain", "lung", "disease", "cancer", "dystrophy"]
    options: dict[str, Any] = {"candidates": 1, "copies": 5, "min_rank": 1, "mask_ratio": 1.0}
    method = create_augmenter("melm", masked_lm=_Asked(words), **options).fit(SICK)
    made = {tuple(map(str.lower, s.mention_tokens(m))) for s in method.augment(SICK) for m in s.mentions}
    assert ("lung", "cancer") in made
    assert {m for m in made if len(m) > 1} <= {
        tuple(map(str.lower, s.mention_tokens(m))) for s in SICK for m in s.mentions
    }
    assert method.statistics_.rejected["a changed mention is not known to be one of its type"]


def test_a_mention_that_melm_cannot_change_well_keeps_its_words_and_the_others_are_changed() -> None:
    options: dict[str, Any] = {"candidates": 1, "min_rank": 1, "mask_ratio": 1.0, "mask_std": 0.0}
    method = create_augmenter("melm", masked_lm=_Asked(["brain", "asthma", "cancer"]), **options).fit(SICK)
    [new] = method.augment(SICK[1:2])
    assert [" ".join(new.mention_tokens(m)) for m in new.mentions] == ["muscular dystrophy", "lung cancer", "asthma"]


@pytest.mark.parametrize(("guard", "calls"), [(None, 2), (False, 1)])
def test_melm_fills_mentions_word_by_word_with_the_guard_and_at_once_as_the_paper_does(
    guard: bool | None, calls: int
) -> None:
    model = _Asked(["brain", "lung", "disease", "cancer"])
    options: dict[str, Any] = {"candidates": 1, "max_attempts": 1, "mask_ratio": 1.0, "mask_std": 0.0}
    gold = SICK[:3]  # mentions of one and two words
    list(create_augmenter("melm", masked_lm=model, guard=guard, **options).fit(gold).augment(gold))
    assert model.asked == [len(gold)] * calls  # all mentions at the same time
    assert METHODS["melm"].presets["paper"]["guard"] is False


# ---------------------------------------------------------------------------------------------------------------- notes


def notes_of(gold: list[Sentence] = GOLD, **sources: Any) -> list[str]:
    return LabelGuard(**sources).fit(gold).model_notes()


def test_a_missing_source_is_a_note_that_says_what_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    cases, recognizer = notes_of()
    assert cases.startswith("the label guard does not find names without a capital of their own")
    assert cases.endswith("the list of words smollm2 cannot be used; run: entaug models prepare smollm2")
    assert "names that no capital tells" in recognizer
    assert recognizer.endswith("; run: entaug models prepare en_core_web_sm")
    assert notes_of(word_cases=None) == [recognizer]
    assert notes_of(**NONE) == [], "without them as was asked"
    options = {"masked_lm": FakeMaskedLM(["x"]), "dependency_parser": None, "causal_lm": None}
    assert create_augmenter("lm", **options).fit(GOLD).notes() == [cases, recognizer]
    assert create_augmenter("lm", **options, guard=False).fit(GOLD).notes() == []
    assert parse_methods("mr:guard=true+lwtr:guard=true").fit(GOLD).notes()[:2] == [cases, recognizer]
    train, new = tmp_path / "train.jsonl", tmp_path / "new.jsonl"
    entaug.write(GOLD, train)
    summary = entaug.augment_file(train, new, create_augmenter("mr", guard=True))
    assert {cases, recognizer} <= {*summary.notes}
    assert {cases, recognizer} <= {*entaug.filter(new, tmp_path / "kept.jsonl", "guard").notes}


def test_a_language_without_sources_is_a_note() -> None:
    german = [labelled(f"der Hund und die Katze sind nicht in dem Haus von [{name}]PER") for name in ("Ada", "Bo")] * 9
    words, entities = notes_of(german)
    assert words.startswith("the label guard does not find names without a capital of their own")
    assert words.endswith("because there is no list of words for German; name one: `filters='guard:word_cases=NAME'`")
    assert entities.endswith(
        "because there is no recogniser for German; name one: `filters='guard:entity_recognizer=NAME'`"
    )
    assert notes_of(german, word_cases=None) == [entities]


def test_types_that_the_recogniser_does_not_know_are_a_note() -> None:
    recognizer = FakeEntityRecognizer({"Rome": "PLACE", "Oslo": "PLACE", "Kiel": "PLACE", "Bo": "PLACE"})
    [note] = notes_of(word_cases=None, entity_recognizer=recognizer)
    assert note == (
        "the recogniser of the label guard, fake, knows little of the types ORG (finds 0 of 5 mentions), "
        "PER (finds 1 of 6 mentions): "
        "it misses such names without a label"
    )
    knows = FakeEntityRecognizer(
        dict.fromkeys({word for s in GOLD for m in s.mentions for word in s.mention_tokens(m)}, "N")
    )
    assert notes_of(word_cases=None, entity_recognizer=knows) == []


# ----------------------------------------------------------------------------------------------------- without capitals

QUERIES = [
    labelled(text)
    for text in (
        "find me a [golden corral]PLACE near here",
        "is the golden corral open at noon",
        "show me cheap food in [oslo]PLACE",
        "a golden sun and a good meal please",
        "is there a good [spoon]PLACE coffee shop in town",
    )
]


def test_names_in_text_without_capitals_are_found() -> None:
    cases = FakeWordCases(["Rome", "good"])
    [plain] = UncasedNames(QUERIES).places([labelled("the golden corral and the golden spoon in rome are good")])
    assert plain == {1, 2, 6}
    names = UncasedNames(QUERIES, cases, _Wide("in rome"))
    [found] = names.places([labelled("the golden corral and the golden spoon in rome are good")])
    assert found == {1, 2, 6, 7, 8}
    assert UncasedNames(GOLD, cases).places([labelled("she met rome")]) == [frozenset()], "capitals tell it"
    [again] = names.places([labelled("the golden corral and the golden spoon in oslo are good")])
    assert again == {1, 2, 6, 8}
    hindi = UncasedNames([labelled("राम [दिल्ली]LOC में रहता है")])
    assert hindi.places([labelled("सीता दिल्ली में")]) == [{1}]


def replacing_all(masked_lm: FakeMaskedLM) -> Augmenter:
    """LM for a fake that knows no word of the corpus."""
    options: dict[str, Any] = {"num_replacements": 5, "p": 1.0, "stop_words": None, "dependency_parser": None}
    return create_augmenter("lm", masked_lm=masked_lm, copies=4, show_source=False, **options)


def test_lm_leaves_names_alone_that_the_corpus_writes_without_capitals() -> None:
    method = replacing_all(FakeMaskedLM([f"w{chr(n)}" for n in range(97, 120)]))
    new = list(method.fit(QUERIES).augment(QUERIES[1:2]))
    assert new
    assert all(sentence.tokens[2:4] == ("golden", "corral") for sentence in new)


def test_lm_offers_no_names_without_capitals() -> None:
    method = replacing_all(FakeMaskedLM(["paris", "bright"]))
    method.load().filters_[0].word_cases = method.filters_[0].word_cases_ = FakeWordCases(["Paris"])  # type: ignore[attr-defined]
    new = list(method.fit(QUERIES).augment(QUERIES))
    assert new
    assert not any("paris" in sentence.tokens for sentence in new)


@pytest.mark.parametrize("whole", [False, True])
def test_bt_translates_around_names_without_capitals(whole: bool) -> None:
    trip = RoundTrip(
        FakeTranslator(), FakeTranslator({"golden": "gilt", "corral": "pen", "open": "wide", "noon": "midday"})
    )
    method = create_augmenter(
        "bt", translator=trip, p=1.0, min_tokens=2, whole_sentence=whole, check_translations=not whole
    )
    [new] = method.fit(QUERIES).augment(QUERIES[1:2])
    assert new.tokens == ("is", "the", "golden", "corral", "wide", "at", "midday")


def test_sr_leaves_names_alone_that_the_corpus_writes_without_capitals(tmp_path: Path) -> None:
    lexicon = FakeLexicon({"golden": ["gilt"], "spoon": ["scoop"], "good": ["fine"], "oslo": ["kristiania"]})
    method = create_augmenter("sr", lexicon=lexicon, dependency_parser=None, p=1.0, copies=2).fit(QUERIES)
    new = [str(sentence) for sentence in method.augment(QUERIES)]
    assert new == ["a gilt sun and a fine meal please", "is there a fine [spoon]PLACE coffee shop in town"]
    assert "the corpus has no capitals" in method.notes()[-1]
    cased = create_augmenter("sr", lexicon=lexicon, dependency_parser=None, p=1.0).fit(GOLD)
    assert not cased.notes()


# ----------------------------------------------------------------------------------------------------------------- runs


class _Faulty:
    """Drafts that alternate between a sentence with an unlabelled name and one without."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, requests: Any) -> list[Sentence]:
        self.calls += 1
        texts = ("a court in Sarajevo told [Bo]PER to pay .", "a court in [Sarajevo]LOC told [Bo]PER to pay .")
        return [labelled(texts[request.attempt % 2]) for request in requests]


def run(**params: Any) -> tuple[Any, list[Sentence]]:
    method = create_augmenter("lm", masked_lm=FakeMaskedLM(["x"]), **params).fit(GOLD)
    method.draft = _Faulty()  # type: ignore[method-assign]
    return method, list(method.augment(GOLD[:1]))


def test_a_refused_draft_is_counted_and_redrawn() -> None:
    method, [new] = run()
    assert new.mentions[0].label == "LOC"
    assert method.statistics_.rejected == {"guard: a name without a label": 1}
    assert method.statistics_.accepted == 1
    assert "filters=guard" in method.signature


def test_no_guard_keeps_it() -> None:
    method, [new] = run(guard=False)
    assert len(new.mentions) == 1
    assert not method.statistics_.rejected
    assert "guard" not in method.signature


class _Teacher(Relabeller):
    """A teacher that labels one word."""

    def fit(self, gold: Iterable[Sentence]) -> Self:
        return self

    def relabel(self, sentences: Sequence[Sentence]) -> list[Relabelled]:
        results = []
        for sentence in sentences:
            at = sentence.tokens.index("Sarajevo")
            results.append(Relabelled(sentence.with_(mentions={*sentence.mentions, Mention("LOC", [(at, at + 1)])})))
        return results


def test_a_teacher_labels_the_name_before_the_guard_looks() -> None:
    method, [new] = run(teacher=_Teacher(tagger=FakeTagger()))
    assert str(new) == "a court in [Sarajevo]LOC told [Bo]PER to pay ."
    assert not method.statistics_.rejected


def test_it_is_on_where_a_model_chooses_words_alone() -> None:
    on = {name for name in METHODS if METHODS[name].info.writes_words}
    assert on == {"lm", "bt", "melm", "entda", "aclm", "daga", "mulda", "rewrite"}
    plain = create_augmenter("mr", seed=1).fit(GOLD)
    assert not plain.filters_
    assert "guard" not in plain.signature
    guarded = create_augmenter("mr", seed=1, guard=True).fit(GOLD)
    assert [filter_.name for filter_ in guarded.filters_] == ["guard"]


def test_the_shares_of_wrong_labels_are_those_of_the_benchmark() -> None:
    text = (EXAMPLE.parent.parent / "benchmarks" / "results" / "label-safety.md").read_text("utf-8")
    counted: dict[str, tuple[int, int]] = {}
    first, second = text.split("## Second count")
    for part, pattern in ((first, r" [^|]*\| (\d+) of (\d+) \|"), (second, r" (\d+) of (\d+) \| [^|]*\|")):
        of_part: dict[str, tuple[int, int]] = {}
        for name, wrong, read in re.findall(rf"^\| `(\w+)` \| \w+ \|{pattern}", part, re.MULTILINE):
            before = of_part.get(name, (0, 0))
            of_part[name] = before[0] + int(wrong), before[1] + int(read)
        counted |= of_part  # the later count of a method takes the place of the first
    assert counted == {name: METHODS[name].info.wrong_labels for name in METHODS if METHODS[name].info.wrong_labels}


def test_methods_without_a_model_have_the_same_bytes() -> None:
    for name in ("mr", "sis", "lwtr"):
        one, other = (create_augmenter(name, guard=guard, seed=2).fit(GOLD) for guard in (None, False))
        assert one.signature == other.signature
        made = [str(s) for s in one.augment(GOLD)]
        assert made == [str(s) for s in other.augment(GOLD)]
        assert made


def test_text_form_and_names() -> None:
    [guard] = create_filters("guard:word_cases=none,entity_recognizer=none")
    assert guard.spec == "guard"
    assert parse_methods("lm:guard=false").guard is False  # type: ignore[union-attr]
    with pytest.raises(UnknownNameError):
        LabelGuard(word_cases="nonsense")


def test_a_vocabulary_without_frequencies_is_an_error(tmp_path: Path) -> None:
    from entaug.backends.lexicon.tokenizer_cases import TokenizerWordCases

    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordPiece", "vocab": {"a": 0}}}')
    with pytest.raises(MissingModelError, match="no list of words by frequency"):
        TokenizerWordCases(tmp_path)
    with pytest.raises(MissingModelError, match="missing or damaged"):
        TokenizerWordCases(tmp_path / "nowhere")


def test_the_vocabulary_of_a_tokenizer_as_a_list_of_words(tmp_path: Path) -> None:
    from entaug.backends.lexicon.tokenizer_cases import TokenizerWordCases

    vocabulary = '{"\\u0120John": 10, "\\u0120john": 900, "\\u0120house": 20, "\\u0120House": 90, "\\u0120NATO": 99}'
    (tmp_path / "tokenizer.json").write_text(f'{{"model": {{"type": "BPE", "vocab": {vocabulary}}}}}')
    cases = TokenizerWordCases(tmp_path)
    assert [cases.usual_case(word) for word in ("john", "House", "nato", "xyz")] == ["John", "house", "NATO", None]


@pytest.mark.models
def test_starter_models_tell_names() -> None:
    guard = LabelGuard().fit(GOLD)
    assert guard.word_cases_ is not None
    assert guard.entity_recognizer_ is not None
    texts = ("people left bosnia with [Bo]PER .", CLEAN)
    assert guard.judge(list(map(labelled, texts)), [None, None]) == ["a name without a label", None]


@pytest.mark.models
def test_starter_models_tell_names_without_capitals() -> None:
    guard = LabelGuard().fit(QUERIES)
    [places] = guard.uncased_names.places([labelled("show me hotels in london and a good museum in new york")])
    assert {4, 10, 11} <= places
    assert not {0, 1, 2, 3, 5, 6, 7, 9} & places
    assert guard.judge([labelled("show me cheap food in london")], [QUERIES[2]]) == ["a name without a label"]


@pytest.mark.models
def test_the_starter_recogniser_says_that_it_does_not_know_diseases() -> None:
    ill = [labelled(f"the child has a severe [{name} dystrophy]ILL and is ill") for name in ("retinal", "muscular") * 3]
    [note] = LabelGuard().fit(ill).model_notes()
    assert "knows little of the type ILL (finds 0 of 6 mentions)" in note
