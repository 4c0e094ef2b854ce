"""Labels that contradict one another: counts by hand, and what holds of all findings."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug import Mention, Sentence
from entaug.core.changes import Change, changed
from entaug.errors import InputError
from entaug.metrics import Finding, find_label_errors
from entaug.metrics.consistency import KINDS, Usage, Usages
from entaug.metrics.span_f1 import ERROR_KINDS

DATA = Path(os.environ.get("ENTAUG_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def labelled(text: str) -> Sentence:
    """A sentence with mentions in brackets: ``the [White House]ORG``."""
    tokens: list[str] = []
    mentions, start = [], 0
    for word in text.split():
        begins, (inner, bracket, label) = word.startswith("["), word.lstrip("[").partition("]")
        start = len(tokens) if begins else start
        tokens.append(inner)
        mentions += [Mention(label, [(start, len(tokens))])] if bracket else []
    return Sentence(tokens, mentions)


def corpus(*texts: str) -> list[Sentence]:
    return [labelled(text) for text in texts]


def found(*texts: str, min_score: float = 0.5) -> list[Finding]:
    return find_label_errors(corpus(*texts), min_score=min_score)


def test_a_mention_that_is_labelled_elsewhere_is_missing() -> None:
    [finding] = found("[machine translation]TASK here", "our [machine translation]TASK", "old machine translation")
    assert (finding.place, finding.kind, finding.suggested) == (2, "missing", Mention("TASK", [(1, 3)]))
    # By hand: 2 places are labelled, 0 are not, and the label itself counts as one place, of which 0.9 trust it.
    assert finding.score == pytest.approx(1 - 0.9 / 3)
    assert finding.support == pytest.approx((0.1 + 2) / 3)
    assert finding.reason == '"machine translation" is labelled TASK 2 times elsewhere, and 0 times unlabelled'


def test_the_last_word_of_a_sentence_counts_once() -> None:
    # "machine" at the end is no place of the longer "machine translation".
    one = found("[machine translation]TASK", "a [machine]TOOL", "my machine", "a machine too")[0]
    assert one.reason == '"machine" is unlabelled 2 times elsewhere, and 0 times labelled TOOL'


def test_words_that_are_mostly_unlabelled_are_a_spurious_mention() -> None:
    [finding] = found("the [party]ORG", *["a party"] * 3)
    assert (finding.place, finding.kind, finding.given) == (0, "spurious", Mention("ORG", [(1, 2)]))
    assert finding.score == pytest.approx(1 - 0.9 / 4)
    evenly = found("the [party]ORG", "a party", "no party", "my [party]ORG")
    assert [round(f.score, 3) for f in evenly] == [0.525] * 4, "each is a contradiction, none is more suspicious"


def test_a_form_with_several_labels() -> None:
    [finding] = found("[Rome]PER sang", *["[Rome]LOC"] * 3)
    assert (finding.kind, finding.suggested) == ("type", Mention("LOC", [(0, 1)]))
    assert finding.reason == '"Rome" is labelled LOC 3 times elsewhere, and 0 times labelled PER'


def test_boundaries_in_the_same_text() -> None:
    findings = found("in [the Hague]LOC", *["in the [Hague]LOC"] * 4)
    assert [(f.place, f.kind, f.suggested) for f in findings] == [(0, "boundary", Mention("LOC", [(2, 3)]))]
    findings = found("a [New York]LOC [Times]ORG b", *["c [New York Times]ORG"] * 3)
    assert Mention("ORG", [(1, 4)]) not in {f.suggested for f in findings}, "it would overlap another mention"


def test_words_at_the_edges_of_other_mentions() -> None:
    texts = [f"a patient with [{name} disease]DIS ." for name in ("Parkinson", "Huntington", "Crohn", "Pompe")]
    [finding] = found("a patient with [Gaucher]DIS disease .", *texts)
    assert (finding.kind, finding.suggested) == ("boundary", Mention("DIS", [(3, 5)]))
    # By hand: 4 mentions end with the word, of none it is the next word; each counts a half.
    assert finding.score == pytest.approx(1 - 0.9 / 3)
    assert finding.reason == "4 mentions of DIS have the edge suggested here, 0 the one given"
    usages = Usages(corpus("a patient with [Gaucher]DIS disease .", *texts))
    change = Change(Mention("DIS", [(3, 4)]), Mention("DIS", [(2, 4)]))
    assert usages.edge(labelled("a patient with [Gaucher]DIS disease ."), change) == Usage(0, 4)


def test_nothing_within_a_larger_mention_is_missing_unless_mentions_are_nested() -> None:
    texts = ["[York]LOC", "old [York]LOC", "the [York Times]ORG"]
    assert [f.kind for f in found(*texts, min_score=0.6)] == []
    sentences = [
        *corpus(*texts),
        Sentence("York Minster".split(), [Mention("FAC", [(0, 2)]), Mention("LOC", [(0, 1)])]),
    ]
    [finding] = find_label_errors(sentences, min_score=0.6)
    assert (finding.place, finding.suggested) == (2, Mention("LOC", [(1, 2)]))


def test_mentions_with_gaps_are_left_alone() -> None:
    gap = Mention("X", [(0, 1), (2, 3)])
    findings = find_label_errors([Sentence("a b c".split(), [gap])] * 3)
    assert {(f.kind, f.given) for f in findings} == {("spurious", gap)}
    assert max(f.score for f in findings) == pytest.approx(0.1)


def test_no_more_than_twenty_places_count() -> None:
    finding = found("the [party]ORG", *["a party"] * 500)[0]
    assert finding.score == pytest.approx(1 - 0.9 / 21)


def test_a_finding_changes_something() -> None:
    assert set(KINDS) == set(ERROR_KINDS)
    one, two = Mention("A", [(0, 1)]), Mention("B", [(0, 2)])
    assert Finding(0, one, two).kind == "type and boundary"
    with pytest.raises(InputError, match="differs from what is annotated"):
        Finding(0, one, one)
    assert changed(Sentence(["a", "b"], [one]), Change(one, two)).mentions == (two,)
    assert changed(Sentence(["a", "b"], [one]), Change(None, one)).mentions == (one,)


WORDS = st.sampled_from(["a", "b", "[a]X", "[a]Y", "[b]X", "[a b]X", "[b a]Y"])


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=8))
def test_what_holds_of_all_findings(texts: list[list[str]]) -> None:
    sentences = corpus(*map(" ".join, texts))
    findings = find_label_errors(sentences)
    assert findings == find_label_errors(sentences)
    assert [f.score for f in findings] == sorted((f.score for f in findings), reverse=True)
    given_ones = [(f.place, f.given) for f in findings if f.given is not None]
    assert len(set(given_ones)) == len(given_ones) == sum(len(s.mentions) for s in sentences)
    for finding in findings:
        sentence = sentences[finding.place]
        assert 0 <= finding.score <= 1
        assert 0 <= finding.support <= finding.score + 1e-9, "what supports the suggestion does not support the label"
        assert finding.given is None or finding.given in sentence.mentions
        new = changed(sentence, Change(finding.given, finding.suggested))
        assert new.is_flat
        assert new.mentions != sentence.mentions
    missing = [(f.place, f.suggested) for f in findings if f.given is None and f.suggested is not None]
    taken = {(place, position) for place, mention in missing for position in mention.positions()}
    assert len(taken) == sum(len(mention.positions()) for _, mention in missing), "they do not overlap"


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=2, max_size=8), st.randoms())
def test_the_order_of_sentences_changes_nothing_but_the_order(texts: list[list[str]], rng: object) -> None:
    sentences = corpus(*map(" ".join, texts))
    order = list(range(len(sentences)))
    rng.shuffle(order)  # type: ignore[attr-defined]

    def scores(given: list[Sentence]) -> list[tuple[str, float]]:
        return sorted((str(given[f.place]), round(f.score, 9)) for f in find_label_errors(given))

    assert scores(sentences) == scores([sentences[i] for i in order])


def test_a_corpus_with_inconsistent_labels() -> None:
    file = DATA / "tdmsci" / "train_1500_v2.conll"
    if not file.exists():
        pytest.skip("needs the shared corpora")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sentences = list(entaug.read(file))
    findings = find_label_errors(sentences, min_score=0.5)
    assert {f.kind for f in findings} >= {"missing", "spurious", "boundary"}
    alone = [s.iob()[i] for s in sentences for i, word in enumerate(s.tokens) if word == "translation"]
    labelled_alone = sum(s.mention_tokens(m) == ("translation",) for s in sentences for m in s.mentions)
    reasons = {f.reason for f in findings if f.reason.startswith('"translation" is')}
    assert reasons == {f'"translation" is unlabelled {alone.count("O")} times elsewhere, and 31 times labelled TASK'}
    assert labelled_alone == 32, "all but the place itself"
