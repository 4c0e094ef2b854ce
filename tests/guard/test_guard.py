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
from entaug.augmenters import METHODS, create_augmenter
from entaug.augmenters.combined import parse_methods
from entaug.backends.fakes import FakeEntityRecognizer, FakeMaskedLM, FakeTagger, FakeWordCases
from entaug.errors import MissingModelError, UnknownNameError
from entaug.filters import create_filters
from entaug.guard import LabelGuard
from entaug.guard.checks import CHECKS
from entaug.guard.habits import CorpusHabits, is_beginning, is_shouted
from entaug.guard.knowledge import NameKnowledge
from entaug.relabelling import Relabeller
from entaug.relabelling.relabeller import Relabelled
from strategies import sentences


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
        ("people met [Rome]PER there .", "a mention in a shape that its type does not have"),
        ("people met [banks]PER there .", "a mention in a shape that its type does not have"),
        ("people met [Gil Hey Gil]PER there .", "a mention in a shape that its type does not have"),
        ("LOC : [Rome]LOC | PER : [Bo]PER", "the name of a label in the text"),
        ("people met [Bo]PER | [Rome]LOC", "traces of a prompt or of markup"),
        ("people met [Bo]PER <mask> there", "traces of a prompt or of markup"),
        ("people met [Bo]PER ( citation needed ) .", "traces of a prompt or of markup"),
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
    knowledge = NameKnowledge(habits=CorpusHabits(GOLD), word_cases=FakeWordCases(["English", "USA", "king"]))
    assert knowledge.cased("monday", "today") == "Monday"
    assert knowledge.cased("english", "new") == "English"
    assert knowledge.cased("usa", "Rome") == "USA"
    assert knowledge.cased("king", "Bishop") == "King"
    assert knowledge.cased("King", "bishop") == "King", "a model with capitals decides itself"
    lower = NameKnowledge(habits=CorpusHabits([labelled("we saw [ada]PER")]), word_cases=FakeWordCases(["English"]))
    assert lower.cased("english", "new") == "english", "a corpus in lower case"


def test_lm_offers_no_names_outside_mentions() -> None:
    method = create_augmenter("lm", masked_lm=FakeMaskedLM(["oslo", "bolt", "walked"]), num_replacements=1, copies=3)
    new = list(method.fit(GOLD).augment(GOLD))
    words = {word.lower() for s in new for word, outside in zip(s.tokens, s.outside_mask(), strict=True) if outside}
    assert new
    assert words.isdisjoint({"oslo", "bolt"})


def test_melm_fills_fit_the_type() -> None:
    method = create_augmenter("melm", masked_lm=FakeMaskedLM(["made", "rome", "gil", "court"]), copies=2)
    for sentence in method.fit(GOLD).augment(GOLD):
        for mention in sentence.mentions:
            words = sentence.mention_tokens(mention)
            assert not {"made", "court"} & {word.lower() for word in words}
            assert mention.label == "LOC" or "Rome" not in words


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
        assert [str(s) for s in one.augment(GOLD)] == [str(s) for s in other.augment(GOLD)]


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
