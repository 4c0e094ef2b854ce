"""Filters: each against verdicts worked by hand, and all of them with every method."""

from __future__ import annotations

import importlib
import inspect
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import ROOT, examples
from entaug import Mention, Sentence
from entaug.backends.fakes import FakeMaskedLM, FakeTagger
from entaug.config.params import parameters
from entaug.errors import InputError, InputWarning, ParameterError, UnknownNameError
from entaug.filters import (
    FILTERS,
    Consistency,
    Duplicates,
    Filter,
    Fluency,
    Leakage,
    Mentions,
    Similarity,
    Validity,
    apply_filters,
    create_filters,
)
from entaug.methods import METHODS
from entaug.methods.base import Augmenter
from entaug.methods.mention_replacement import MentionReplacement
from entaug.methods.shuffling import ShuffleWithinSegments
from entaug.methods.token_replacement import LabelWiseTokenReplacement
from helpers.faked_methods import corpus_of, make
from helpers.fakes import FakeCausalLM, FakeEncoder, FakeTokenLM
from helpers.strategies import sentences

PER = [Mention("PER", [(0, 1)])]


def words(text: str, mentions: Sequence[Mention] = ()) -> Sentence:
    return Sentence(text.split(" "), mentions)


def one_by_one(filter_: Filter, made: Sequence[Sentence], source: Sentence | None) -> list[str | None]:
    return [filter_.judge([one], [source])[0] for one in made]


# ---------------------------------------------------------------------------------------------------- each of them


def test_validity_names_each_fault_and_forgives_what_the_source_has() -> None:
    source = words("Ada ( 36 ) wrote of the engine", PER)
    gold = [source, words("the The\u200b band - - Who", [Mention("ORG", [(0, 1)]), Mention("ORG", [(3, 4)])])]
    cases: list[tuple[Sentence, str | None]] = [
        (words("Bo ( 36 ) wrote of the engine", PER), None),
        (words("Bo ( 36 ) wrote of the engine"), "no mention is left"),
        (words("; ( 36 ) wrote", PER), "a mention without words"),
        (words("of ( 36 ) wrote", PER), "a mention consists of stop words"),
        (words("US wrote of this", PER), None),  # "us" is a stop word
        (words("the wrote of this", [Mention("ORG", [(0, 1)])]), None),  # gold has that mention
        (words("- wrote of this", PER), None),  # and that, of another label
        (words("Ada\u200b wrote of this", PER), "an invisible token"),
        (words("Ada saw The\u200b band", PER), None),  # gold has that token
        (Sentence(["Ada", "New York"], PER), "an invisible token"),
        (words("Ada ( 36 wrote of this", PER), "unbalanced brackets or quotes"),
        (words("Ada ) 36 ( wrote of this", PER), "unbalanced brackets or quotes"),
        (words('Ada " 36 " wrote', PER), None),
        (words('Ada " 36 wrote', PER), "unbalanced brackets or quotes"),
        (words("Ada wrote of Of this", PER), "a repeated word"),
        (words("Ada wrote - - this", PER), None),
        (words(" ".join(["Ada", *(str(i) for i in range(24))]), PER), "too long compared with its source"),
        (words(" ".join(["Ada", *(str(i) for i in range(23))]), PER), None),
    ]
    made = [one for one, _ in cases]
    wanted = [reason for _, reason in cases]
    validity = Validity().fit(gold)
    assert validity.judge(made, [source] * len(made)) == wanted
    assert Validity(min_length_ratio=0.5).fit(gold).judge([words("Ada wrote of", PER)], [source]) == [
        "too short compared with its source"
    ]
    # Where the source is no better, it is not held against it; one fault more is.
    odd = words("Ada ( wrote wrote of", PER)
    assert validity.judge([words("Bo ( wrote wrote of", PER), words("Bo ( ( wrote of", PER)], [odd, odd]) == [
        None,
        "unbalanced brackets or quotes",
    ]
    # Without a source only what is wrong by itself counts.
    assert validity.judge([words("nothing here"), words("a ) b")], [None, None]) == [
        None,
        "unbalanced brackets or quotes",
    ]
    lenient = Validity(balanced_brackets=False, allow_repetition=True, max_length_ratio=None, stop_words=None).fit(gold)
    assert [reason for reason in lenient.judge(made, [source] * len(made)) if reason is not None] == [
        "no mention is left",
        "a mention without words",
        "an invisible token",
        "an invisible token",
    ]


def test_duplicates_look_at_words_alone_and_near_ones_on_demand() -> None:
    gold = [words("Ada left Rome at nine", PER), words("Bo slept all day long")]
    made = [
        words("ada left rome at nine"),
        words("Bo slept all day LONG"),
        words("Ada left Oslo at nine", PER),  # 4 of 5 tokens: 2 * 4 / 10
        words("Bo slept all night long", PER),
        words("Cy reads"),
    ]
    exact = ["duplicate of its source", "duplicate of another gold sentence"]
    assert Duplicates().fit(gold).judge(made, [gold[0]] * 5) == [*exact, None, None, None]
    near = ["near-duplicate of its source", "near-duplicate of another gold sentence", None]
    assert Duplicates(threshold=0.8).fit(gold).judge(made, [gold[0]] * 5) == [*exact, *near]
    assert Duplicates(threshold=0.81).fit(gold).judge(made, [gold[0]] * 5) == [*exact, None, None, None]
    # What was made of nothing has no source to read as.
    assert Duplicates().fit(gold).judge(made[:1], [None]) == ["duplicate of another gold sentence"]
    with pytest.raises(InputError, match="no gold sentences for the duplicates filter"):
        Duplicates().fit([])


class Counted(FakeCausalLM):
    """Finds the word "bad" unlikely (-4), all others at -1; counts what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def token_log_probs(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return [np.array([-4.0 if "bad" in word else -1.0 for word in text.split()], np.float32) for text in texts]


def test_fluency_is_nats_a_word_below_the_source_or_in_all() -> None:
    lm = Counted()
    source = words("a good day .")  # "a good day.": three sub-words of -1, and three words
    made = [words("a bad day ."), words("a bad bad ."), words("a good good good day .")]  # -6/3, -9/3, -5/5
    fluency = Fluency(causal_lm=lm, margin=1.0).fit([source])
    assert fluency.judge(made, [source] * 3) == [None, "less fluent than its source", None]
    assert lm.asked.count("a good day.") == 1, "a source is scored once"
    fluency.judge(made, [source] * 3)
    assert lm.asked.count("a good day.") == 1
    both = Fluency(causal_lm=lm, margin=0.9, min_log_likelihood=-2.5).fit([source])
    assert both.judge(made, [source] * 3) == ["less fluent than its source", "reads badly", None]
    alone = Fluency(causal_lm=lm, margin=None, min_log_likelihood=-2.5).fit([])
    assert alone.judge(made, [None] * 3) == [None, "reads badly", None]
    assert (fluency.needs_source, alone.needs_source) == (True, False)
    with pytest.raises(InputError, match="a sentence has no source, which the filter fluency needs"):
        fluency.judge(made, [source, None, source])


def test_fluency_by_a_masked_model() -> None:
    lm = FakeMaskedLM(["red"])
    source, made = words("a red car"), words("a blue car")
    gap = float(np.diff(entaug.metrics.pseudo_log_likelihood([made, source], lm, per_word=True))[0])
    assert gap != 0
    judged = [
        Fluency(scorer="masked", masked_lm=lm, margin=m).fit([]).judge([made], [source])[0]
        for m in (gap + 0.01, gap - 0.01)
    ]
    assert judged == [None, "less fluent than its source"]


def test_similarity_is_a_band() -> None:
    source = words("a b c d")
    made = [words("a b c x"), words("a x y z"), words("A b c d")]  # 0.75, 0.25, 1
    band = Similarity(min_similarity=0.5, max_similarity=0.9).fit([])
    assert band.judge(made, [source] * 3) == [None, "too different from its source", "too similar to its source"]
    assert Similarity(min_similarity=None, max_similarity=0.75).fit([]).judge(made, [source] * 3) == [
        None,
        None,
        "too similar to its source",
    ]


@pytest.mark.parametrize("by", ["bertscore", "vectors"])
def test_similarity_by_an_encoder(by: Literal["bertscore", "vectors"]) -> None:
    encoder = FakeEncoder()
    source, same, other = words("a red car"), words("a red car"), words("x y")
    if by == "bertscore":
        value = float(entaug.metrics.pairwise_bertscore([source, other], encoder)[0, 1])
    else:
        a, b = encoder.sentence_vectors(["a red car", "x y"])
        value = float(a @ b)
    high = Similarity(metric=by, encoder=encoder, min_similarity=None, max_similarity=0.999).fit([])
    assert high.judge([same, other], [source] * 2) == ["too similar to its source", None]
    for low, wanted in (
        (max(0.0, value - 0.01), None),
        (min(1.0, max(0.0, value) + 0.01), "too different from its source"),
    ):
        if low > 0 or wanted:
            assert Similarity(metric=by, encoder=encoder, min_similarity=low).fit([]).judge([other], [source]) == [
                wanted
            ]


def test_mentions_by_words_and_by_label() -> None:
    source = words("Ada met Ada in New York", [*PER, Mention("PER", [(2, 3)]), Mention("LOC", [(4, 6)])])
    made = [
        words(
            "In new york ada met Ada", [Mention("LOC", [(1, 3)]), Mention("PER", [(3, 4)]), Mention("PER", [(5, 6)])]
        ),
        words("Ada in New York", [*PER, Mention("LOC", [(2, 4)])]),  # one Ada only
        words("Bo met Cy in Oslo", [*PER, Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])]),
        words("Ada met Ada in New York", [*PER, Mention("PER", [(2, 3)]), Mention("ORG", [(4, 6)])]),
    ]
    gone = "a mention of its source is missing"
    assert Mentions().fit([]).judge(made, [source] * 4) == [None, gone, gone, gone]
    assert Mentions(match_words=False).fit([]).judge(made, [source] * 4) == [None, gone, None, gone]
    # Gaps count by their words, and nested mentions each.
    gaps = words("left and right arm", [Mention("PART", [(0, 1), (3, 4)]), Mention("PART", [(2, 4)])])
    assert Mentions().fit([]).judge(
        [words("left arm and right arm", [Mention("PART", [(0, 2)]), Mention("PART", [(3, 5)])])], [gaps]
    ) == [None]


def test_leakage_by_equality_nearness_and_runs() -> None:
    held = [words("Ada left Rome at nine")]
    gold = [words("Bo left Rome yesterday")]
    made = [
        words("ada LEFT rome at nine"),
        words("Ada left Oslo at nine"),  # 0.8
        words("Cy went Rome at nine or ten"),  # "rome at nine"
        words("Bo left Rome too"),  # "left rome" is in gold
        words("nothing of it"),
    ]
    exact, near, run = ("duplicate of a held-out sentence", "near-duplicate of a held-out sentence", "shares an n-gram")
    run += " with a held-out sentence"
    none = [None] * 5
    assert Leakage(held_out=held, threshold=None).fit(gold).judge(made, none) == [exact, None, None, None, None]
    assert Leakage(held_out=held, threshold=0.8).fit(gold).judge(made, none) == [exact, near, None, None, None]
    assert Leakage(held_out=held, threshold=None, ngram_size=3).fit(gold).judge(made, none) == [
        exact,
        None,
        run,
        None,
        None,
    ]
    assert Leakage(held_out=held, threshold=None, ngram_size=2).fit(gold).judge(made, none) == [
        exact,
        run,
        run,
        None,
        None,
    ]
    assert Leakage(held_out=held, threshold=None, ngram_size=2).fit([]).judge(made, none)[3] == run
    assert Leakage(held_out=[]).fit([]).judge(made, none) == none


def test_leakage_is_found_in_any_form_of_unicode() -> None:
    text = "Jürgen Müller wohnt in Köln ."
    gold, held_out = ([Sentence(unicodedata.normalize(form, text).split())] for form in ("NFC", "NFD"))
    for threshold in (None, 0.9):
        leakage = Leakage(held_out=held_out, threshold=threshold).fit([Sentence(["x"])])
        assert leakage.judge(gold, [None]) != [None]


def test_leakage_of_training_sentences_is_noted() -> None:
    gold = [words("Ada left"), words("Bo stays"), words("ada LEFT", PER)]
    note = r"2 of 3 training sentences are held-out sentences too, one is 'Ada left': remove them from one of the two"
    with pytest.warns(InputWarning, match=note):
        Leakage(held_out=[words("Ada left")]).fit(gold)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Leakage(held_out=[words("Ada left now")]).fit(gold)


def test_leakage_is_signed_by_content() -> None:
    held = [words("Ada left"), words("Bo left")]
    one = Leakage(held_out=held)
    assert one.signature == Leakage(held_out=[*reversed(held), words("ada Left", PER)]).signature
    assert one.signature != Leakage(held_out=held[:1]).signature
    assert one.signature.startswith("leakage:held_out=")


# --------------------------------------------------------------------------------------------------- all of them alike

MADE: dict[str, Any] = {
    "guard": FILTERS["guard"],
    "validity": Validity,
    "duplicates": lambda: Duplicates(threshold=0.8),
    "fluency": lambda: Fluency(causal_lm=FakeCausalLM(), margin=1.0),
    "similarity": lambda: Similarity(min_similarity=0.3, max_similarity=0.95),
    "mentions": lambda: Mentions(match_words=False),
    "consistency": lambda: Consistency(tagger=FakeTagger(), min_confidence=0.0),
    "leakage": lambda: Leakage(
        held_out=[words("the of in and to"), words("Ada ran fast .")], threshold=0.5, ngram_size=3
    ),
}
ALL = pytest.mark.parametrize("name", sorted(FILTERS))


@ALL
def test_declares_itself(name: str) -> None:
    cls = FILTERS[name]
    assert cls.name == name
    assert MADE[name]().name == name
    assert cls.summary
    assert cls.reasons
    assert hasattr(importlib.import_module(cls.__module__), cls.__name__)
    doc = inspect.getdoc(cls) or ""
    assert "Example:" in doc
    assert all(f"{field.name}: " in doc for field in parameters(cls))
    guide = (ROOT / "docs" / "guide.md").read_text()
    assert f"`{name}`" in guide


@ALL
@pytest.mark.usefixtures("one_other_process")
def test_keeps_the_rules(name: str) -> None:
    without_models = {"word_cases": None, "entity_recognizer": None} if name == "guard" else {}
    entaug.check_plugin(MADE[name](**without_models))


@settings(max_examples=examples(60))
@given(data=st.data())
def test_a_verdict_depends_on_the_sentence_and_its_source_alone(data: st.DataObject) -> None:
    gold = data.draw(st.lists(sentences(), min_size=1, max_size=4))
    made = data.draw(st.lists(sentences(), max_size=5))
    sources = [data.draw(st.sampled_from(gold)) for _ in made]
    if not any(s.mentions for s in gold):
        gold = [*gold, words("Ada", PER)]
    for name, cls in MADE.items():
        filter_ = cls().fit(gold)
        together = filter_.judge(made, sources)
        assert len(together) == len(made), name
        assert set(together) <= {None, *FILTERS[name].reasons}
        alone = [filter_.judge([one], [source])[0] for one, source in zip(made, sources, strict=True)]
        assert together == alone, name
        assert filter_.judge(made[::-1], sources[::-1])[::-1] == together, name
        other = cls().fit(gold[::-1])
        assert other.judge(made, sources) == together, f"{name}: nor on the order of gold"


@ALL
@pytest.mark.parametrize("by", sorted(METHODS))
def test_each_filter_with_each_method(name: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = corpus_of(by)[::3]
    if METHODS[by].info.unconditioned and MADE[name]().needs_source:
        with pytest.raises(
            ParameterError, match=f"{by} generates sentences without a source, which the filter {name} needs"
        ):
            make(by, filters=MADE[name]())
        return
    augmenter: Augmenter = make(by, seed=2, max_attempts=3, filters=MADE[name]())
    made = list(augmenter.fit(gold).augment(gold))
    tally = augmenter.statistics_
    assert tally.accepted + tally.missing.total() == tally.requested == len(gold)
    told = {reason.removeprefix(f"{name}: ") for reason in tally.rejected if reason.startswith(f"{name}: ")}
    assert told <= set(FILTERS[name].reasons)
    assert f"filters={name}" in augmenter.signature
    sources = {s.key: s for s in gold}
    known = [None if METHODS[by].info.unconditioned else sources[s.fields["entaug"]["sources"][0]] for s in made]
    assert augmenter.filters_[0].judge(made, known) == [None] * len(made), "what is kept is good"
    monkeypatch.setattr(type(augmenter), "window_size", 5)
    assert list(augmenter.augment(gold)) == made


def test_what_writes_from_nothing_has_no_source_that_it_could_be_judged_by() -> None:
    gold = [words("Ada sings", PER), words("Rome sings", [Mention("LOC", [(0, 1)])])]
    seen: list[Sentence | None] = []

    class Watching(Validity):
        def _judge(self, made: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
            seen.extend(sources)
            return super()._judge(made, sources)

    daga = entaug.methods.DAGA(
        guard=False,
        token_lm=FakeTokenLM(),
        unknown_tokens="keep",
        unlisted_mentions="keep",
        max_attempts=20,
        filters=Watching(),
    )
    assert list(daga.fit(gold).augment(gold))
    assert seen
    assert set(seen) == {None}
    MentionReplacement(p=1.0, filters=Watching()).fit([*gold, words("Bo sings", PER)])
    seen.clear()
    shuffled = ShuffleWithinSegments(p=1.0, filters=Watching()).fit(gold)
    assert not list(shuffled.augment(gold))  # nothing to shuffle, so nothing to judge
    assert not seen


def test_filters_go_in_order_and_the_first_that_refuses_is_counted() -> None:
    source = words("Ada left ( Rome )", PER)
    made = [words("ada left ( rome )", PER), words("Ada left ( Rome", PER), words("Bo left", PER)]
    filters = [one.fit([source]) for one in create_filters("duplicates+validity+mentions")]
    assert apply_filters(filters, made, [source] * 3) == [
        "duplicates: duplicate of its source",
        "validity: unbalanced brackets or quotes",
        "mentions: a mention of its source is missing",
    ]
    turned = [filters[2], filters[0], filters[1]]
    assert apply_filters(turned, made[2:], [source]) == ["mentions: a mention of its source is missing"]


def test_refused_drafts_are_asked_for_again_until_one_is_good() -> None:
    gold = [words("Ada saw Bo", [*PER, Mention("PER", [(2, 3)])]), words("Cy ran", PER), words("Di sat", PER)]
    free = MentionReplacement(p=0.5, copies=6, seed=1).fit(gold)
    changes = [sum(a != b for a, b in zip(s.tokens, gold[0].tokens, strict=True)) for s in free.augment(gold[:1])]
    assert 2 in changes
    free.filters = Similarity(min_similarity=0.6)  # of three tokens two must stay
    kept = list(free.fit(gold).augment(gold[:1]))
    assert kept
    assert all(sum(a == b for a, b in zip(s.tokens, gold[0].tokens, strict=True)) == 2 for s in kept)
    assert free.statistics_.rejected["similarity: too different from its source"] > 0


def test_online_sentences_are_filtered_too() -> None:
    gold = [words("Ada ( b ) c d e f", PER), words("Bo [ h ] i j k l", PER)]
    plain = entaug.OnlineDataset(gold, LabelWiseTokenReplacement(p=0.5).fit(gold), keep_gold=False)
    picky = LabelWiseTokenReplacement(p=0.5, max_attempts=50, filters="validity").fit(gold)
    filtered = entaug.OnlineDataset(gold, picky, keep_gold=False)

    def unpaired(data: entaug.OnlineDataset) -> int:
        made = [s for epoch in range(10) for s in data.set_epoch(epoch)]
        return sum(
            s.tokens.count("(") != s.tokens.count(")") or s.tokens.count("[") != s.tokens.count("]") for s in made
        )

    assert unpaired(plain) > 0
    assert unpaired(filtered) == 0


# ------------------------------------------------------------------------------------------------------ by name


def test_by_name_with_parameters_of_every_kind() -> None:
    found = create_filters(
        [
            "validity:balanced_brackets=false,min_length_ratio=none,max_length_ratio=2",
            "mentions + duplicates:threshold=0.9",
        ]
    )
    assert [one.spec for one in found] == [
        "validity:max_length_ratio=2.0,balanced_brackets=false,allow_repetition=false,stop_words=en",
        "mentions:match_words=true",
        "duplicates:threshold=0.9",
    ]
    assert [one.spec for one in create_filters("+".join(one.spec for one in found))] == [
        "validity:min_length_ratio=0.1,max_length_ratio=2.0,balanced_brackets=false,allow_repetition=false,stop_words=en",
        *(one.spec for one in found[1:]),
    ]
    [leakage] = create_filters("leakage:ngram_size=5,threshold=none", [words("a b")])
    assert isinstance(leakage, Leakage)
    assert (leakage.ngram_size, leakage.threshold) == (5, None)
    assert create_filters("none") == []


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("fluent", UnknownNameError, "fluency"),
        ("fluency:margins=1", UnknownNameError, "did you mean 'margin'"),
        ("fluency:margin=much", ParameterError, "a number, or none, not 'much'"),
        ("fluency:margin=none", ParameterError, "neither margin nor min_log_likelihood"),
        ("fluency:scorer=both", ParameterError, "one of 'causal', 'masked'"),
        (
            "similarity:min_similarity=0.9,max_similarity=0.1",
            ParameterError,
            "min_similarity must not be above max_similarity",
        ),
        ("similarity:metric=sound", ParameterError, "'tokens', 'bertscore', 'vectors'"),
        ("validity:balanced_brackets=perhaps", ParameterError, "must be true or false"),
        ("validity:max_length_ratio=-1", ParameterError, "at least 0"),
        ("validity:stop_words=xx-nowhere", ParameterError, "no stop words"),
        ("duplicates:threshold=2", ParameterError, "from 0 to 1"),
        ("mentions:match_words=some", ParameterError, "true or false"),
        ("leakage", ParameterError, "with `held_out`"),
        ("leakage:held_out=test.conll", ParameterError, "held_out must be sentences .*--held-out FILE"),
        ("leakage:ngram_size=1.5", ParameterError, "an integer of at least 1, or none, not '1.5'"),
    ],
)
def test_what_cannot_be_is_one_clear_line(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        MentionReplacement(filters=text).load()


def test_a_filter_must_have_seen_gold() -> None:
    with pytest.raises(ParameterError, match="is not fitted"):
        Validity().judge([words("a")], [None])
    with pytest.raises(ParameterError, match="2 sources for 1 sentences"):
        Validity().fit([]).judge([words("a")], [None, None])


@pytest.mark.models
def test_the_real_model_tells_salad_from_a_sentence() -> None:
    source = words("The cat sat on the mat because it was warm .")
    made = [
        words("The dog sat on the mat because it was warm ."),
        words("Mat the because sat it on warm The was cat ."),
    ]
    for scorer in ("causal", "masked"):
        fluency = Fluency(scorer=scorer).fit([source])
        assert fluency.judge(made, [source] * 2) == [None, "less fluent than its source"]
        assert "@" in fluency.signature, "which model it is stands in provenance"
