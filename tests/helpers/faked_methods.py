"""Every method with fakes in place of its models."""

from __future__ import annotations

from typing import Any

import entaug
from conftest import EXAMPLE
from entaug import Sentence
from entaug.backends.instruct import ChatRequest
from entaug.backends.protocols import RoundTrip
from entaug.methods import METHODS, create_augmenter
from entaug.methods.base import Augmenter
from entaug.methods.choice import CandidateScorer
from helpers.fakes import (
    FakeCausalLM,
    FakeConstituencyParser,
    FakeDependencyParser,
    FakeEncoder,
    FakeGenerator,
    FakeInstructModel,
    FakeLexicon,
    FakeMaskedLM,
    FakeTagger,
    FakeTokenLM,
    FakeTranslator,
    FakeWordVectors,
)

__all__ = ["corpus_of", "make", "needs_of"]

COMMON = ("the", "of", "in", "and", "to", "a", "for", "is", "was", "ran", "fast", "at", "on", "by", "with", "from")
FAKES: dict[str, Any] = {
    "lexicon": FakeLexicon({w: [f"{w}x", f"{w} more"] for w in COMMON}),
    "masked_lm": FakeMaskedLM(["red", "blue", "green", "near", "far", "runs", "walks", "sleeps"]),
    "encoder": FakeEncoder(),
    "causal_lm": FakeCausalLM(),
    "generator": FakeGenerator(),
    "tagger": FakeTagger(),
    "dependency_parser": FakeDependencyParser(),
    "constituency_parser": FakeConstituencyParser(),
    "token_lm": FakeTokenLM(),
    "word_vectors": FakeWordVectors([]),
    "translator": RoundTrip(FakeTranslator(can_sample=True), FakeTranslator({w: f"{w}y" for w in COMMON})),
}


def backwards(request: ChatRequest) -> str:
    """The last line of the prompt, with its words in the opposite order."""
    *_, last = request.messages[-1].text.splitlines()
    return f"{' '.join(reversed(last.split()))} {request.seed}"


# What a method needs besides backends.
GIVEN: dict[str, dict[str, Any]] = {
    "cassi": {"min_similarity": 0, "require_mention": False},
    "cr": {"min_similarity": 0, "same_form": False},
    "crop": {"drop": "roles"},  # of the trees of the fake; tests/methods/test_fragments.py has real ones
    "gal": {"generator": FakeInstructModel(answer=backwards), "teacher": None},
    "bt": {"whole_sentence": False},  # what fakes write paraphrases nothing
    "lm": {"show_source": False, "dependency_parser": None, "causal_lm": None, "p": 1.0},  # fakes know few words
    "rewrite": {"generator": FakeInstructModel()},
    "selftrain": {
        "unlabelled": [Sentence([*"some words of a text number".split(), str(n)], id=f"s{n}") for n in range(1500)],
        "copies": 1,
    },
}


def needs_of(name: str) -> dict[str, Any]:
    """What a method needs besides the corpus; fakes for its backends."""
    info = METHODS[name].info
    # What fakes write has little to do with names; tests/filters has the label guard.
    unguarded = {"guard": False} if info.writes_words else {}
    has_choice = METHODS[name].candidates > 1
    choice = {"choice": CandidateScorer(causal_lm=FakeCausalLM(), encoder=FAKES["encoder"])} if has_choice else {}
    return {kind: FAKES[kind] for kind in info.needs} | unguarded | choice | GIVEN.get(name, {})


def make(name: str, **params: Any) -> Augmenter:
    """A method with what it needs."""
    return create_augmenter(name, **{**needs_of(name), **params})


FLAT, NESTED = (entaug.read(EXAMPLE / name) for name in ("train.conll", "nested.jsonl"))


def corpus_of(name: str) -> list[Sentence]:
    """What the method can work on: flat sentences, and the others where it says so."""
    info = METHODS[name].info
    return list(FLAT) + [
        s
        for s in NESTED
        if (info.discontinuous or all(m.is_contiguous for m in s.mentions)) and (info.nested or s.is_flat)
    ]
