"""The choice among candidates: the best by likelihood and nearness, whatever the batch, and never twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import entaug
from entaug import Mention, Sentence
from entaug.errors import InputError, ParameterError
from entaug.methods.choice import CandidateScorer
from helpers.fakes import FakeEncoder, FakeGenerator

NAMES = ("Ann", "Bo", "Cem", "Dag", "Eve", "Flo", "Gus", "Hal")
VERBS = ("sings", "rests", "reads", "runs", "eats", "waits", "walks", "swims")
GOLD = [Sentence([name, verb], [Mention("PER", [(0, 1)])]) for name, verb in zip(NAMES, VERBS, strict=True)]


class Alphabet:
    """A language model that finds words likelier the earlier they stand in the alphabet."""

    name = "alphabet"

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return [np.array([-float(ord(word[0].lower())) for word in text.split()], np.float32) for text in texts]


def made(candidates: int, **given: Any) -> list[Sentence]:
    scorer = CandidateScorer(nearness=0, causal_lm=Alphabet())
    mr = entaug.create_augmenter("mr", p=1.0, candidates=candidates, choice=scorer, max_attempts=40, **given).fit(GOLD)
    return list(mr.augment(GOLD))


def test_the_likeliest_of_all_is_kept() -> None:
    chosen = made(7)
    assert [s.tokens[0] for s in chosen] == ["Bo", "Ann", "Ann", "Ann", "Ann", "Ann", "Ann", "Ann"]
    assert [s.tokens[1] for s in chosen] == list(VERBS)
    assert {s.provenance.details["candidates"] for s in chosen if s.provenance} == {7}
    assert all(
        s.provenance and "choice=likelihood:nearness=0,causal_lm=alphabet" in s.provenance.signature for s in chosen
    )
    [first] = {s.provenance.details["score"] for s in chosen[1:2] if s.provenance}
    assert first == -(ord("a") + ord("r")) / 2


def test_copies_take_the_best_that_no_other_has() -> None:
    chosen = made(7, copies=3)
    assert [s.tokens[0] for s in chosen[:3]] == ["Bo", "Cem", "Dag"]
    assert len({s.tokens for s in chosen}) == len(chosen)


def test_no_choice_is_the_first_draft() -> None:
    plain = entaug.create_augmenter("mr", p=1.0).fit(GOLD)
    assert [s.tokens for s in plain.augment(GOLD)] == [s.tokens for s in made(1)]
    assert "candidates" not in plain.signature
    assert "choice" not in plain.signature
    assert all(s.provenance and not s.provenance.details for s in made(1))


def test_the_window_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made(4, copies=2)
    monkeypatch.setattr(entaug.methods.MentionReplacement, "window_size", 1)
    assert made(4, copies=2) == whole


@pytest.mark.parametrize("num_candidates", [1, 4])
def test_a_generator_writes_all_candidates_in_one_batch(num_candidates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sentences and rejections as one by one, in fewer calls."""
    sizes: list[int] = []

    class Counting(FakeGenerator):
        def generate(self, inputs: Sequence[str], *args: Any, **options: Any) -> list[list[str]]:
            sizes.append(len(inputs))
            # Every third text is unusable, so that more than one round is needed.
            return [
                texts if seed % 3 else [""]
                for texts, seed in zip(super().generate(inputs, *args, **options), args[1], strict=True)
            ]

    def run() -> tuple[list[Sentence], Any, list[int]]:
        sizes.clear()
        choice = CandidateScorer(nearness=0, causal_lm=Alphabet())
        options = {
            "context_size": 0,
            "operation": "replace",
            "choice": choice,
            "copies": 2,
            "max_attempts": 3,
            "guard": False,
        }
        method = entaug.create_augmenter("entda", generator=Counting(), candidates=num_candidates, **options).fit(GOLD)
        new = list(method.augment(GOLD))
        return new, method.statistics_.rejected, [*sizes]

    new, rejected, together = run()
    monkeypatch.setattr(entaug.methods.EnTDA, "draws_ahead", False)
    assert run()[:2] == (new, rejected)
    assert new
    assert rejected
    one_by_one = [*sizes]
    assert sum(together) == sum(one_by_one)
    assert together == one_by_one if num_candidates == 1 else together[0] == 4 * one_by_one[0]


def test_fewer_candidates_than_asked_are_enough() -> None:
    chosen = made(50)
    assert len(chosen) == len(GOLD)
    assert {s.provenance.details["candidates"] for s in chosen if s.provenance} == {7}


def test_nearness_counts_as_it_is_weighed() -> None:
    source, near, far = (Sentence(text.split()) for text in ("b b b", "b b c", "a a a"))
    groups = [(source, [near, far])]
    without = CandidateScorer(nearness=0, causal_lm=Alphabet()).load().scores(groups)
    vectors = FakeEncoder().sentence_vectors(["b b b", "b b c", "a a a"])
    cosines = vectors[1:] @ vectors[0]
    weighed = CandidateScorer(nearness=3, causal_lm=Alphabet(), encoder=FakeEncoder()).load().scores(groups)
    assert weighed[0] == pytest.approx(
        [score + 3 * cosine for score, cosine in zip(without[0], cosines, strict=True)], abs=1e-3
    )


def test_what_reads_worse_than_its_source_is_refused() -> None:
    source, worse, better = (Sentence(text.split()) for text in ("m m", "m z", "m a"))
    scorer = CandidateScorer(nearness=0, margin=0, causal_lm=Alphabet()).load()
    assert scorer.scores([(source, [worse, better])]) == [[-math.inf, -(ord("m") + ord("a")) / 2]]
    choice = CandidateScorer(nearness=0, margin=0.5, causal_lm=Alphabet())
    mr = entaug.create_augmenter("mr", p=1.0, candidates=7, choice=choice, max_attempts=40).fit(GOLD)
    # None of the other names is as likely as Ann, and Ann may be Bo, one letter later: half a nat a word.
    assert [s.tokens[0] for s in mr.augment(GOLD)] == ["Bo", *["Ann"] * 7]
    refused = entaug.create_augmenter(
        "mr", p=1.0, candidates=7, choice=CandidateScorer(nearness=0, margin=0.4, causal_lm=Alphabet())
    ).fit(GOLD)
    assert [s.tokens[0] for s in refused.augment(GOLD)] == ["Ann"] * 7
    assert refused.statistics_.missing == {"reads worse than its source": 1}


def test_models_of_the_choice_count_as_those_of_the_method() -> None:
    class English(Alphabet):
        languages = frozenset({"en"})

    words = "der Hund und die Katze sind nicht in dem Haus".split()
    german = [Sentence([*words, name], [Mention("PER", [(10, 11)])]) for name in NAMES]
    mr = entaug.create_augmenter("mr", candidates=2, choice=CandidateScorer(nearness=0, causal_lm=English()))
    with pytest.raises(
        InputError, match=r"serves English, and the text looks German.*`choice='likelihood:causal_lm=NAME'`"
    ):
        mr.fit(german)
    assert mr.uses_models
    assert not entaug.create_augmenter("mr").fit(german).uses_models
    assert "causal_lm" in mr.kinds_by_default


def test_another_scorer_is_refused() -> None:
    with pytest.raises(ParameterError, match="there is no scorer 'beauty'; write likelihood"):
        entaug.create_augmenter("mr", choice="beauty")


def test_no_new_sentence_is_a_gold_sentence() -> None:
    gold = [Sentence([name, "sings"], [Mention("PER", [(0, 1)])]) for name in NAMES]
    mr = entaug.create_augmenter("mr", p=1.0).fit(gold)
    assert not list(mr.augment(gold))
    assert mr.statistics_.missing == {"equal to a gold sentence": len(gold)}
    new = list(mr.augment([Sentence(["Ann", "rests"], [Mention("PER", [(0, 1)])])]))
    assert len(new) == 1


def test_on_the_command_line(tmp_path: Path, example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from entaug.commands.main import main

    monkeypatch.setattr(
        "entaug.methods.choice.CandidateScorer.scores", lambda _, groups: [[0.0] * len(c) for _, c in groups]
    )
    monkeypatch.setattr("entaug.methods.choice.CandidateScorer._load", lambda self: None)
    out = tmp_path / "new.jsonl"
    given = ["augment", str(example / "train.conll"), "-m", "mr", "--candidates", "3", "--only-new", "-o", str(out)]
    assert main(given) == 0
    assert '"candidates":3' in out.read_text("utf-8").replace(" ", "")


@pytest.mark.models
def test_the_common_beginning_is_computed_once() -> None:
    from entaug.backends.resolve import resolve

    lm: Any = resolve("causal_lm", "smollm2")
    cities = ("Rome", "New York City", "Ulm")
    for rest in (" last week.", ""):  # without a rest some differ in their last token alone
        texts = [f"The meeting of the committee took place in {city}{rest}" for city in cities]
        for some in (texts, texts[::2]):
            for one, other in zip(lm.token_log_probs(some), lm.log_probs_of_variants(some), strict=True):
                assert one.shape == other.shape
                assert np.abs(one - other).mean() < 0.1
