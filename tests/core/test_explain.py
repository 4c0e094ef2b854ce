"""Provenance in words, with expectations worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.core.data import Provenance
from entaug.core.explain import Origins, explain
from entaug.formats.augmented import AugmentedPair
from entaug.methods import METHODS
from helpers.sentences import sentence


def made(text: str, /, *mentions: tuple[str, int, int], method: str = "mr", **details: Any) -> Sentence:
    sources = details.pop("sources", ("g1",))
    signature = details.pop("signature", "")
    return sentence(text, *mentions, provenance=Provenance(method, signature, sources, 1, details))


GOLD = sentence("Ada met Bo in London .", ("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5), id="g1")
LABELS = (("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5))


def test_a_mention_in_place_of_another_and_where_it_is_from() -> None:
    others = [sentence("we like paris", ("LOC", 2, 3)), sentence("Paris", ("ORG", 0, 1), id="g3"), GOLD]
    new = made("Ada met Bo in Paris .", *LABELS, signature="mr|p=0.3|seed=3|entaug=0.1")
    assert explain(new, GOLD, origins=Origins([GOLD, *others])) == (
        "mr: 'Paris' (LOC) in place of 'London', as in sentence 2; from sentence g1; seed 3"
    )
    assert explain(new, GOLD) == "mr: 'Paris' (LOC) in place of 'London'; from sentence g1; seed 3"
    more = Origins([sentence("Paris", ("LOC", 0, 1), id=f"p{i}") for i in range(3)])
    assert "'London', as in sentence p0 and 2 more; from" in explain(new, GOLD, origins=more)
    listed = made("Ada met Bo in Paris .", *LABELS, lists=[{"mention": "Paris", "list": "towns"}])
    assert explain(listed, GOLD, origins=more).startswith("mr: 'Paris' (LOC) in place of 'London', from the list towns")
    # A mention that is longer or discontinuous is told as a whole, and words beside it by themselves.
    gaps = Sentence("a x b y".split(), [Mention("X", [(0, 1), (2, 3)])], id="g1")
    changed = Sentence("c x b z".split(), gaps.mentions, provenance=Provenance("mr", "", ("g1",)))
    assert explain(changed, gaps) == "mr: 'c b' (X) in place of 'a b'; 'z' in place of 'y'; from sentence g1"


def test_words_that_came_went_and_moved() -> None:
    def told(text: str, source: str = "a b c d e f g h") -> str:
        return explain(made(text, method="lwtr"), sentence(source)).removesuffix("; from sentence g1")

    assert told("a x c d e f g h") == "lwtr: 'x' in place of 'b'"
    assert told("a c d e f g h new") == "lwtr: 'b' left out; 'new' added"
    assert told("h g f e d c b A") == "lwtr: the words of its source in another order"
    assert told("1 2 3 4 5 6 7 8") == "lwtr: written anew"
    assert told("1 b 2 d 3 f 4 h 5") == (
        "lwtr: '1' in place of 'a'; '2' in place of 'c'; '3' in place of 'e'; 2 more changes"
    )
    assert told("a b c d e f g h") == "lwtr: from sentence g1".removesuffix("; from sentence g1")
    long = " ".join(f"word{i}" for i in range(40))
    assert len(told(f"a {long}", f"a b {long[:0]}")) < 120


def test_the_same_words_with_other_labels() -> None:
    new = made("Ada met Bo in London .", ("PER", 0, 1), method="x")
    assert explain(new, GOLD) == "x: the words of its source with other labels; from sentence g1"


def test_exchanges_are_told_by_their_provenance() -> None:
    keeps, gives = sentence("the very old car stopped", id="k"), sentence("a car of my aunt hid", id="g")
    details = {"role": "subject", "out": [2, 4], "into": [1, 5]}
    for frame, source, other in ((0, keeps, gives), (1, gives, keeps)):
        keys = (source.id, other.id)
        new = made("the very car of my aunt stopped", method="cassi", frame=frame, sources=keys, **details)
        assert explain(new, source, (other,)) == (
            "cassi: 'car of my aunt' (subject) of sentence g in place of 'old car'; "
            f"from sentence {source.id} with sentence {other.id}"
        )
    grafts = [
        {"category": "NP", "out": [4, 5], "from": "g", "into": [0, 2]},
        {"category": "PP", "out": [0, 1], "from": "gone", "into": [0, 2]},
    ]
    new = made("a b c d e", method="cr", sources=("k", "g"), grafts=grafts)
    assert explain(new, keeps, (gives,)) == (
        "cr: 'a car' (NP) of sentence g in place of 'stopped'; words (PP) of sentence gone in place of 'the'; "
        "from sentence k with sentence g"
    )
    for damaged in (["?"], [{"from": "g"}], [{"from": "g", "out": 1, "into": [0]}]):
        faulty = made("the very old car hid", method="cr", sources=("k", "g"), grafts=damaged)
        assert explain(faulty, keeps, (gives,)).startswith("cr: 'hid' in place of 'stopped'; from sentence k")


def test_what_methods_recorded_is_told() -> None:
    free = made("Cy slept", ("PER", 0, 1), method="daga", unconditioned=True, confidence=0.9, text="t:3")
    assert explain(free, GOLD) == (
        "daga: written without a source; the tagger is sure to 0.9; of the text t:3; at the place of sentence g1"
    )
    scored = made("Ada met Bo in London .", *LABELS, candidates=4, score=-2.5, fallback="mr", odd={"a": [1]}, none=None)
    assert explain(scored, GOLD) == (
        'mr: the best of 4 candidates; score -2.5; by mr, as no exchange was possible; odd {"a": [1]}; from sentence g1'
    )
    assert "score" not in explain(scored, GOLD, without={"score"})
    teacher = {"disagreement": 0.9, "added": [{"label": "LOC", "spans": [[4, 5]], "probability": 0.9}, {"label": 3}]}
    reviewer = [
        {"given": {"label": "PER", "text": "Bo"}, "suggested": {"label": "ORG", "text": "met Bo"}},
        {"given": None, "suggested": {"label": "LOC", "text": "London"}},
        {"given": {"label": "LOC", "text": "Ada"}, "suggested": None},
        {"given": None, "suggested": None},
        "odd",
    ]
    new = made("Ada met Bo in London .", *LABELS, relabelled=teacher, corrected=reviewer)
    assert explain(new, GOLD) == (
        "mr: 'London' LOC added by the teacher; corrected in review: 'Bo' PER is 'met Bo' ORG; "
        "corrected in review: 'London' LOC added; corrected in review: 'Ada' LOC removed; from sentence g1"
    )


def test_sentences_are_named_by_id_or_number() -> None:
    plain = sentence("a b")
    origins = Origins([GOLD, plain, plain])
    assert origins.name("g1") == "sentence g1"
    assert origins.name(plain.key) == "sentence 2"
    assert origins.name(f"{plain.key}-2") == "sentence 3"
    assert origins.name("00" * 8) == "a sentence without an id"
    # Where a format has given it an id since it was named by its content.
    assert origins.name(GOLD.fingerprint().hex()) == "sentence 1"
    new = made("a c", sources=("g1", "a", "b", "c", "d", "e", "f"))
    assert explain(new, plain).endswith("from sentence g1 with sentence a, sentence b, sentence c and 3 more")


@pytest.mark.parametrize("name", ["mr", "lwtr", "sis"])
def test_every_sentence_of_the_example_is_explained(name: str) -> None:
    gold = [*entaug.read(EXAMPLE / "train.conll"), *entaug.read(EXAMPLE / "nested.jsonl")]
    origins, by_key = Origins(gold), {one.key: one for one in gold}
    assert name in METHODS
    for new in entaug.create_augmenter(name, seed=3).fit(gold).augment(gold):
        assert new.provenance is not None
        source = by_key[new.provenance.sources[0]]
        text = explain(new, source, origins=origins)
        assert text.startswith(f"{name}: ")
        assert text.endswith(f"; from {origins.name(new.provenance.sources[0])}; seed 3")
        assert len(text) < 600
        if name == "mr":  # the words of new mentions, and that each is in the corpus
            old, now = source.mentions, new.mentions
            pairs = zip(old, now, strict=True)
            changed = [(a, b) for a, b in pairs if source.mention_tokens(a) != new.mention_tokens(b)]
            assert changed
            assert text.count("in place of") == min(len(changed), 3 if len(changed) > 4 else 4)
            assert text.count(", as in ") == text.count("in place of")


def test_nothing_is_said_of_what_is_unknown() -> None:
    assert explain(GOLD) == ""
    assert explain(sentence("a", provenance=Provenance("mr"))) == "mr"
    assert explain(sentence("a"), sentence("b")) == "unknown method: 'a' in place of 'b'"


def test_notebooks_say_how() -> None:
    html = AugmentedPair(made("Ada met Bo in <Paris> .", *LABELS), GOLD)._repr_html_()
    assert "<dt>how</dt><dd>mr: &#x27;&lt;Paris&gt;&#x27; (LOC) in place of &#x27;London&#x27;; from" in html
    assert "<dt>how</dt>" not in AugmentedPair(GOLD, GOLD)._repr_html_()
