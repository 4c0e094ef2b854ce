"""Digests of what every method makes of the example corpus: whether a change of the code has changed an output.

    .venv/bin/python benchmarks/golden.py --check                      # all cases: some ten minutes
    .venv/bin/python benchmarks/golden.py --check --fast               # without models: seconds
    .venv/bin/python benchmarks/golden.py --check mr sr-p1             # some cases
    .venv/bin/python benchmarks/golden.py --dump FOLDER                # the sentences themselves, a file a case
    .venv/bin/python benchmarks/golden.py --check --against FOLDER     # what differs, in full, from such a dump
    .venv/bin/python benchmarks/golden.py --write                      # when an output was meant to change

The digests are in `tests/golden/outputs.json`: one for each sentence made, in order, from its id, tokens, mentions and
spaces, and how many were not made or were rejected. Provenance is left out, so names of parameters may change. The same
for files, measures and scores is `benchmarks/golden_files.py`.

What models make depends on floating-point numbers: cases of kind ``models`` are comparable on the same machine with the
same versions of libraries and one thread only. Those of kind ``fast`` are the same everywhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # read by libraries when they are imported
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import json
import platform
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from hashlib import blake2b
from importlib import metadata
from itertools import islice
from typing import Any, NamedTuple

import entaug
from entaug.backends.parsers.projection import ProjectedConstituents
from entaug.backends.protocols import RoundTrip
from entaug.filters import Consistency, Fluency, Leakage, Similarity
from helpers import fakes

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "outputs.json"
LIBRARIES = (
    "torch",
    "transformers",
    "peft",
    "tokenizers",
    "spacy",
    "numpy",
    "pyarrow",
    "datasets",
    "orjson",
)
SEED = 13


# ----------------------------------------------------------------------------------------------------------- the cases


class Case(NamedTuple):
    """One run of a method.

    Args:
        name: of the case.
        method: its name in `entaug.methods.METHODS`.
        corpus: a name that `corpus` knows.
        params: parameters besides copies and seed; one that is a function is called for its value.
        first: how many sentences of the corpus are taken; None for all.
        copies: how many sentences are asked for per sentence.
        kind: ``"fast"``, or ``"models"`` where models are needed.
    """

    name: str
    method: str
    corpus: str
    params: Mapping[str, Any] = {}
    first: int | None = None
    copies: int = 2
    kind: str = "fast"


_SYNONYMS = {
    "new": ["fresh", "brand new"],
    "city": ["town"],
    "week": ["seven days"],
    "report": ["account", "written account"],
    "in": ["inside"],
    "said": ["told us"],
    "museum": ["gallery"],
    "a": ["one"],
    "labs": ["work rooms"],
    "after": ["following"],
}
_THERE = {"the": "o", "in": "em", "new": "novo", "on": "sobre", "said": "disse", "and": "e", "at": "em", "for": "por"}
_BACK = {"o": "that", "em": "inside", "novo": "recent", "sobre": "upon", "disse": "says", "e": "plus", "por": "toward"}
_ALIKE = [["one", "a", "the", "its"], ["new", "old", "good", "in", "on", "and"]]


def _sampling() -> RoundTrip:
    return _trip(can_sample=True)


def _trip(*, can_sample: bool = False) -> RoundTrip:
    forward, backward = (fakes.FakeTranslator(words, can_sample=can_sample) for words in (_THERE, _BACK))
    return RoundTrip(forward, backward)


# What stands for models in the fast cases.
_LEXICON = {"lexicon": lambda: fakes.FakeLexicon(_SYNONYMS), "masked_lm": None, "causal_lm": None}
_FIRST = {"candidates": 1}
_LM = {"masked_lm": fakes.FakeMaskedLM}
_PLAIN: Mapping[str, Any] = {"dependency_parser": None, "masked_lm": None, "causal_lm": None}
_MASKED = {**_LM, **_FIRST, "show_source": False, "dependency_parser": None, "causal_lm": None, "p": 1.0}
_NAMES = {
    **_FIRST,
    "masked_lm": lambda: fakes.FakeMaskedLM(["Bo", "Oslo", "Acme", "Nile", "Quito", "Lima", "bread", "Rome"]),
}
_PARSER = {"dependency_parser": fakes.FakeDependencyParser}
_ANY_PHRASE = {**_FIRST, "same_form": False, "min_similarity": 0}
_PHRASES = {"constituency_parser": fakes.FakeConstituencyParser, **_ANY_PHRASE}
_PROJECTED = {"constituency_parser": lambda: ProjectedConstituents(fakes.FakeDependencyParser()), **_ANY_PHRASE}
_SCORERS = {"causal_lm": fakes.FakeCausalLM, **_LM}
_TOKEN_LM = {"token_lm": fakes.FakeTokenLM}
_GENERATOR = {"generator": fakes.FakeGenerator, **_FIRST}
_INSTRUCT = {"generator": fakes.FakeInstructModel, **_FIRST}
_CASSI = {
    "encoder": fakes.FakeEncoder,
    "scorer": "masked",
    "require_mention": False,
    **_ANY_PHRASE,
    **_SCORERS,
    **_PARSER,
}
_ACLM = {**_GENERATOR, "tagger": fakes.FakeTagger, "encoder": fakes.FakeEncoder}
_TRIP = {"translator": _trip, "whole_sentence": False}
_WHOLE = {
    "translator": _trip,
    "encoder": fakes.FakeEncoder,
    "causal_lm": fakes.FakeCausalLM,
    "dependency_parser": None,
}

_RULES = (
    Case("mr", "mr", "train"),
    Case("mr-paper", "mr", "train", {"donors": "any", "adjust_case": False, "replace_nested": False}),
    Case("mr-nested", "mr", "nested"),
    Case("mr-nearest", "mr", "train", {"donors": "nearest", "encoder": fakes.FakeEncoder}),
    Case("mr-spaced", "mr", "spaced"),
    Case("mr-p1", "mr", "train", {"p": 1.0}),
    Case("mr-p1-nested", "mr", "nested", {"p": 1.0}, copies=4),
    Case("mr-p1-nested-spaced", "mr", "nested-spaced", {"p": 1.0}),
    Case("mr-p0", "mr", "train", {"p": 0.0}, first=20),
    Case("mr-one-attempt", "mr", "train", {"max_attempts": 1}, copies=4),
    Case("lwtr", "lwtr", "train"),
    Case("lwtr-nested", "lwtr", "nested"),
    Case("lwtr-spaced", "lwtr", "spaced"),
    Case("lwtr-p1", "lwtr", "train", {"p": 1.0}),
    Case("lwtr-stop-words", "lwtr", "train", {"stop_words": "en", "p": 0.5}),
    Case("lwtr-stop-words-nested", "lwtr", "nested", {"stop_words": "en"}),
    Case("sis", "sis", "train"),
    Case("sis-nested", "sis", "nested"),
    Case("sis-nested-spaced", "sis", "nested-spaced"),
    Case("sis-p1", "sis", "train", {"p": 1.0}),
    Case("sr-fake", "sr", "train", _LEXICON),
    Case("sr-fake-nested", "sr", "nested", {"p": 1.0, **_LEXICON}),
    Case("sr-fake-spaced", "sr", "spaced", {"p": 1.0, **_LEXICON}),
    Case("sr-fake-outside", "sr", "train", {"p": 0.7, "inside_mentions": False, **_LEXICON}),
    Case("sr-fake-stop-words", "sr", "train", {"stop_words": "en", **_LEXICON}),
)

_WORDNET = (
    Case("sr", "sr", "train", {**_PLAIN}),
    Case("sr-nested", "sr", "nested", {**_PLAIN}),
    Case("sr-spaced", "sr", "spaced", {**_PLAIN}),
    Case("sr-p1", "sr", "train", {**_PLAIN, "p": 1.0}),
    Case("sr-outside", "sr", "train", {**_PLAIN, "p": 1.0, "inside_mentions": False}),
    Case(
        "sr-outside-nested",
        "sr",
        "nested",
        {**_PLAIN, "p": 1.0, "inside_mentions": False},
    ),
    Case("sr-stop-words", "sr", "train", {**_PLAIN, "stop_words": "en"}),
)

_FAKED = (
    Case("lm-fake", "lm", "train", _MASKED),
    Case("lm-fake-nested", "lm", "nested", _MASKED),
    Case("lm-fake-spaced", "lm", "spaced", _MASKED),
    Case("lm-fake-n5", "lm", "train", {"num_replacements": 5, "top_k": 2, **_MASKED}),
    Case("lm-fake-joint", "lm", "train", {"single_pass": True, "min_p": 0, **_MASKED}),
    Case("lm-fake-punctuation", "lm", "train", {"replace_punctuation": True, "stop_words": "en", **_MASKED}),
    Case("lm-fake-plausible", "lm", "train", {"min_p": 0.9, **_MASKED}),
    Case(
        "lm-fake-filtered",
        "lm",
        "train",
        {
            "min_similarity": 0.5,
            "num_replacements": 1,
            "word_vectors": lambda: fakes.FakeWordVectors(_ALIKE),
            **_MASKED,
        },
    ),
    Case("bt-fake", "bt", "train", _TRIP),
    Case("bt-fake-nested", "bt", "nested", _TRIP),
    Case("bt-fake-spaced", "bt", "spaced", {"p": 1.0, **_TRIP}),
    Case("bt-fake-p1", "bt", "train", {"p": 1.0, "min_tokens": 1, **_TRIP}),
    Case("bt-fake-long", "bt", "train", {"min_tokens": 6, **_TRIP}),
    Case("bt-fake-whole", "bt", "train", _WHOLE),
    Case("bt-fake-whole-nested", "bt", "nested", _WHOLE),
    Case("bt-fake-sample", "bt", "train", {**_TRIP, "do_sample": True, "translator": _sampling}),
    Case("bt-fake-sample-whole", "bt", "train", {**_WHOLE, "do_sample": True, "translator": _sampling}),
    Case("bt-fake-two", "bt", "train", {**_TRIP, "translator": lambda: [_trip(), _sampling()], "do_sample": True}),
    Case("crop-fake", "crop", "train", {"drop": "roles", **_PARSER}),
    Case("crop-fake-nested", "crop", "nested", {"drop": "roles", **_PARSER}),
    Case("crop-fake-spaced", "crop", "spaced", {"drop": "roles", **_PARSER}),
    Case("crop-fake-roles", "crop", "train", {"drop": "roles", "min_roles": 2, **_PARSER}),
    Case("rotate-fake", "rotate", "train", _PARSER),
    Case("rotate-fake-nested", "rotate", "nested", _PARSER),
    Case("rotate-fake-spaced", "rotate", "spaced", _PARSER),
    Case("cr-fake", "cr", "train", _PHRASES),
    Case("cr-fake-nested", "cr", "nested", _PHRASES),
    Case("cr-fake-spaced", "cr", "spaced", {"num_replacements": 2, **_PHRASES}),
    Case("cr-fake-n3", "cr", "train", {"num_replacements": 3, **_PHRASES}),
    Case("cr-fake-np", "cr", "train", {"categories": "NP", **_PHRASES}),
    Case("cr-fake-whole", "cr", "train", {"allow_whole_sentence": True, "require_mention": True, **_PHRASES}),
    Case("cr-fake-untidy", "cr", "train", {"normalize_boundaries": False, **_PHRASES}),
    Case("cr-fake-projected", "cr", "train", {"num_replacements": 3, **_PROJECTED}),
    Case("cr-fake-projected-nested", "cr", "nested", {"num_replacements": 3, **_PROJECTED}),
    Case("cassi-fake", "cassi", "train", _CASSI),
    Case("cassi-fake-nested", "cassi", "nested", _CASSI),
    Case("cassi-fake-spaced", "cassi", "spaced", _CASSI),
    Case("cassi-fake-causal", "cassi", "train", {**_CASSI, "scorer": "causal"}),
    Case("cassi-fake-exact", "cassi", "train", {"exact": True, **_CASSI}, first=40),
    Case("cassi-fake-k1", "cassi", "train", {"top_k": 1, "encoder_layer": 1, **_CASSI}, first=40),
    Case("cassi-fake-best", "cassi", "train", {"selection": "best", "pairing": "embedding", **_CASSI}, first=40),
    Case("cassi-fake-random", "cassi", "train", {"selection": "random", "pairing": "random", **_CASSI}, first=40),
    Case("cassi-fake-off-by-one", "cassi", "train", {"pairing": "off-by-one", **_CASSI}, first=40),
    Case(
        "cassi-fake-shortlist",
        "cassi",
        "train",
        {"shortlist_size": 5, "include_punctuation": False, **_CASSI},
        first=40,
    ),
    Case("cassi-fake-paper", "cassi", "train", {**_CASSI, "preset": "paper", "scorer": "causal"}, first=40),
    Case("cassi-fake-paper-nested", "cassi", "nested", {**_CASSI, "preset": "paper", "scorer": "causal"}),
    Case("cassi-fake-authors", "cassi", "train", {**_CASSI, "preset": "authors", "scorer": "causal"}, first=40),
    Case("cassi-fake-cuts", "cassi", "train", {**_CASSI, "split_mentions": True, "scorer": "causal"}, first=40),
    Case("cassi-fake-any-kind", "cassi", "train", {**_CASSI, "same_phrase_type": False, "scorer": "causal"}, first=40),
    Case(
        "cassi-fake-untidy", "cassi", "train", {**_CASSI, "normalize_boundaries": False, "scorer": "causal"}, first=40
    ),
    Case("cassi-fake-long", "cassi", "train", {**_CASSI, "min_tokens": 12, "scorer": "causal"}, first=40),
    Case("melm-fake", "melm", "train", _NAMES),
    Case("melm-fake-nested", "melm", "mixed", _NAMES),
    Case("melm-fake-spaced", "melm", "spaced", _NAMES),
    Case("melm-fake-all", "melm", "train", {"mask_ratio": 1.0, "mask_std": 0.0, "stop_words": None, **_NAMES}),
    Case("melm-fake-ranks", "melm", "train", {"min_rank": 1, "max_rank": 2, **_NAMES}),
    Case("melm-fake-paper", "melm", "train", {"preset": "paper", "filters": "none", **_NAMES}),
    Case("daga-fake", "daga", "train", _TOKEN_LM),
    Case("daga-fake-nested", "daga", "mixed", _TOKEN_LM),
    Case("daga-fake-spaced", "daga", "spaced", _TOKEN_LM),
    Case("daga-fake-keep", "daga", "train", {"unknown_tokens": "keep", "unlisted_mentions": "keep", **_TOKEN_LM}),
    Case("daga-fake-drop", "daga", "train", {"unknown_tokens": "drop", "max_attempts": 60, **_TOKEN_LM}),
    Case("daga-fake-iobes", "daga", "train", {"tag_scheme": "IOBES", "max_new_tokens": 20, **_TOKEN_LM}),
    Case("mulda-fake", "mulda", "train", _GENERATOR),
    Case("mulda-fake-nested", "mulda", "mixed", _GENERATOR),
    Case("mulda-fake-spaced", "mulda", "spaced", _GENERATOR),
    Case("mulda-fake-unlisted", "mulda", "train", {"unlisted_mentions": "keep", "language": "pt", **_GENERATOR}),
    Case("mulda-fake-languages", "mulda", "languages", _GENERATOR),
    Case("mulda-fake-paper", "mulda", "train", {"preset": "paper", **_GENERATOR}),
    Case("rewrite-fake", "rewrite", "train", _INSTRUCT),
    Case("rewrite-fake-nested", "rewrite", "nested", _INSTRUCT),
    Case("entda-instruct", "entda", "train", _INSTRUCT),
    Case("entda-fake", "entda", "train", _GENERATOR),
    Case("entda-fake-nested", "entda", "nested", _GENERATOR),
    Case("entda-fake-spaced", "entda", "spaced", _GENERATOR),
    Case("entda-fake-add", "entda", "train", {"operation": "add", **_GENERATOR}),
    Case("entda-fake-delete", "entda", "train", {"operation": "delete", **_GENERATOR}),
    Case("entda-fake-replace", "entda", "train", {"operation": "replace", **_GENERATOR}),
    Case("entda-fake-replace-nested", "entda", "nested", {"operation": "replace", **_GENERATOR}),
    Case("entda-fake-swap", "entda", "train", {"operation": "swap", **_GENERATOR}),
    Case("entda-fake-none", "entda", "train", {"operation": "none", **_GENERATOR}),
    Case("entda-fake-label", "entda", "train", {"unlisted_mentions": "label", **_GENERATOR}),
    Case("entda-fake-keep", "entda", "train", {"unlisted_mentions": "keep", "max_similarity": 0.5, **_GENERATOR}),
    Case("entda-fake-beams", "entda", "train", {"decoding": "beam_search", "num_beams": 2, **_GENERATOR}, copies=3),
    Case("entda-fake-paper", "entda", "train", {"preset": "paper", "epochs": 1, **_GENERATOR}),
    Case("aclm-fake", "aclm", "train", _ACLM),
    Case("aclm-fake-nested", "aclm", "mixed", _ACLM),
    Case("aclm-fake-spaced", "aclm", "spaced", _ACLM),
    Case("aclm-fake-random", "aclm", "train", {"keywords": "random", "keyword_ratio": 0.5, **_ACLM}),
    Case("aclm-fake-none", "aclm", "train", {"keywords": "none", **_ACLM}),
    Case("aclm-fake-alone", "aclm", "train", {"mixner_probability": 0.0, "max_similarity": 0.8, **_ACLM}),
    Case("aclm-fake-joined", "aclm", "train", {"mixner_probability": 1.0, "num_neighbors": 2, **_ACLM}),
    Case(
        "aclm-fake-hidden", "aclm", "train", {"mask_ratio": 0.9, "num_attention_layers": 2, "stop_words": None, **_ACLM}
    ),
    Case("aclm-fake-paper", "aclm", "train", {"preset": "paper", **_ACLM}),
)

_FLUENT = {"filters": lambda: Fluency(causal_lm=fakes.FakeCausalLM())}
_FILTERED = (
    Case("mr-validity", "mr", "train", {"p": 1.0, "filters": "validity"}),
    Case(
        "mr-validity-nested", "mr", "nested", {"p": 1.0, "filters": "validity:stop_words=none,balanced_brackets=false"}
    ),
    Case("lwtr-validity", "lwtr", "train", {"p": 1.0, "filters": "validity"}),
    Case(
        "crop-validity",
        "crop",
        "train",
        {**_PARSER, "drop": "roles", "filters": "validity:min_length_ratio=0.4,max_length_ratio=1"},
    ),
    Case("sis-duplicates", "sis", "train", {"p": 1.0, "filters": "duplicates"}),
    Case("lwtr-near-duplicates", "lwtr", "train", {"p": 0.1, "filters": "duplicates:threshold=0.8"}, copies=4),
    Case("lwtr-similarity", "lwtr", "train", {"filters": "similarity:min_similarity=0.7,max_similarity=0.9"}),
    Case("lwtr-mentions", "lwtr", "train", {"p": 0.1, "filters": "mentions"}),
    Case("lwtr-mentions-nested", "lwtr", "nested", {"p": 0.1, "filters": "mentions:match_words=false"}),
    Case("crop-mentions", "crop", "train", {**_PARSER, "drop": "roles", "filters": "mentions:match_words=false"}),
    Case("lwtr-leakage", "lwtr", "train", {"filters": lambda: Leakage(held_out=corpus("dev"), threshold=0.3)}),
    Case(
        "lwtr-leakage-run",
        "lwtr",
        "train",
        {"p": 0.7, "filters": lambda: Leakage(held_out=corpus("dev"), ngram_size=2)},
    ),
    Case("lwtr-fluency-fake", "lwtr", "train", {"p": 0.7, **_FLUENT}),
    Case(
        "lwtr-fluency-masked-fake",
        "lwtr",
        "train",
        {
            "filters": lambda: Fluency(
                scorer="masked", masked_lm=fakes.FakeMaskedLM(), margin=None, min_log_likelihood=-5.0
            )
        },
    ),
    Case(
        "lwtr-bertscore-fake",
        "lwtr",
        "train",
        {"filters": lambda: Similarity(metric="bertscore", min_similarity=0.8, encoder=fakes.FakeEncoder())},
    ),
    Case(
        "lwtr-cosine-fake",
        "lwtr",
        "train",
        {"filters": lambda: Similarity(metric="vectors", min_similarity=0.8, encoder=fakes.FakeEncoder())},
    ),
    Case("sis-consistency-fake", "sis", "train", {"filters": lambda: Consistency(tagger=fakes.FakeTagger())}),
    Case("daga-validity-fake", "daga", "train", {**_TOKEN_LM, "filters": "validity+duplicates:threshold=0.9"}),
    Case(
        "lwtr-all-fast",
        "lwtr",
        "train",
        {
            "p": 0.2,
            "max_attempts": 5,
            "filters": "validity+duplicates+similarity:min_similarity=0.6+mentions:match_words=false",
        },
    ),
    Case(
        "mr-all-fake",
        "mr",
        "train",
        {
            "filters": lambda: [
                "validity+duplicates",
                Fluency(causal_lm=fakes.FakeCausalLM()),
                "similarity+mentions:match_words=false",
            ]
        },
    ),
)

_TINY = {"masked_lm": "tiny-bert", **_FIRST}
_TINY_SCORER = {**_TINY, "scorer": "masked", "same_form": False, "min_similarity": 0, "require_mention": False}
_SMALL = {"generator": "smollm2"}
_BRIEF = {"epochs": 8, "batch_size": 4, "max_new_tokens": 64, "max_attempts": 2}
_GIVEN = {"encoder": "minilm", "dependency_parser": "en_core_web_sm", **_TINY}
_MODELS: tuple[Case, ...] = (
    Case("crop", "crop", "train", kind="models"),
    Case("crop-nested", "crop", "nested", kind="models"),
    Case("crop-roles", "crop", "train", {"drop": "roles", "min_roles": 2}, copies=4, kind="models"),
    Case("crop-spaced", "crop", "nested-spaced", kind="models"),
    Case("rotate", "rotate", "train", kind="models"),
    Case("rotate-nested", "rotate", "nested", kind="models"),
    Case("rotate-spaced", "rotate", "spaced", copies=4, kind="models"),
    Case("sr-tagged", "sr", "train", kind="models"),
    Case("cr", "cr", "train", kind="models"),
    Case("cr-nested", "cr", "nested", kind="models"),
    Case("cr-spaced", "cr", "spaced", {"num_replacements": 3}, kind="models"),
    Case("cr-n3", "cr", "train", {"num_replacements": 3}, kind="models"),
    Case("cr-n5-nested", "cr", "nested", {"num_replacements": 5, "normalize_boundaries": False}, kind="models"),
    Case("cr-vp-pp", "cr", "train", {"categories": "VP+PP"}, kind="models"),
    Case("cr-whole", "cr", "train", {"allow_whole_sentence": True}, kind="models"),
    Case("cr-labelled", "cr", "train", {"require_mention": True}, kind="models"),
    Case("cr-untidy", "cr", "train", {"normalize_boundaries": False}, kind="models"),
    Case("cr-first", "cr", "train", {"candidates": 1, "min_similarity": 0, "same_form": False}, kind="models"),
    Case("bt", "bt", "train", kind="models"),
    Case("bt-nested", "bt", "nested", kind="models"),
    Case("bt-segments", "bt", "train", {"whole_sentence": False}, first=40, kind="models"),
    Case("bt-sample", "bt", "train", {"whole_sentence": False, "do_sample": True}, first=40, kind="models"),
    Case("bt-p1-short", "bt", "train", {"whole_sentence": False, "p": 1.0, "min_tokens": 2}, first=40, kind="models"),
    Case("lm", "lm", "train", first=30, kind="models"),
    Case("lm-nested", "lm", "nested", kind="models"),
    Case("lm-joint", "lm", "train", {"single_pass": True, "num_replacements": 5}, first=40, kind="models"),
    Case("lm-filtered", "lm", "train", {"min_similarity": 0.4}, first=30, kind="models"),
    Case("lm-any", "lm", "train", {"min_p": 0, "replace_punctuation": True, "top_k": 3}, first=30, kind="models"),
    Case("lm-tiny", "lm", "spaced", {**_TINY, "show_source": False, "p": 1.0}, kind="models"),
    Case("cassi", "cassi", "train", first=4, copies=1, kind="models"),
    Case("cassi-nested", "cassi", "nested", first=4, copies=1, kind="models"),
    Case("cassi-tiny-exact", "cassi", "nested", {"exact": True, **_TINY_SCORER}, kind="models"),
    Case("cassi-causal", "cassi", "train", {"scorer": "causal"}, first=4, kind="models"),
    Case("cassi-causal-nested", "cassi", "nested", {"scorer": "causal"}, first=6, copies=1, kind="models"),
    Case(
        "cassi-cuts",
        "cassi",
        "train",
        {"split_mentions": True, "same_phrase_type": False, "normalize_boundaries": False, **_TINY_SCORER},
        first=20,
        kind="models",
    ),
    Case("cassi-tiny", "cassi", "train", _TINY_SCORER, first=40, kind="models"),
    Case(
        "cassi-embedding",
        "cassi",
        "train",
        {"pairing": "embedding", "selection": "best", **_TINY_SCORER},
        first=40,
        kind="models",
    ),
    Case(
        "cassi-random",
        "cassi",
        "train",
        {"pairing": "random", "selection": "random", **_TINY_SCORER},
        first=40,
        kind="models",
    ),
    Case(
        "cassi-off-by-one",
        "cassi",
        "train",
        {"pairing": "off-by-one", "top_k": 1, **_TINY_SCORER},
        first=40,
        kind="models",
    ),
    Case(
        "cassi-shortlist",
        "cassi",
        "train",
        {"shortlist_size": 5, "encoder_layer": 3, "include_punctuation": False, **_TINY_SCORER},
        first=40,
        kind="models",
    ),
    Case("melm", "melm", "train", first=16, kind="models"),
    Case("melm-tiny", "melm", "train", {"masked_lm": "tiny-bert"}, kind="models"),
    Case(
        "melm-tiny-all",
        "melm",
        "train",
        {
            "masked_lm": "tiny-bert",
            "mask_ratio": 1.0,
            "mask_std": 0.0,
            "min_rank": 1,
            "max_rank": 10,
            "stop_words": None,
            "train_mask_ratio": 0.3,
            "epochs": 2,
            "learning_rate": 0.001,
        },
        kind="models",
    ),
    Case("daga", "daga", "train", kind="models"),
    Case(
        "daga-keep",
        "daga",
        "train",
        {"unknown_tokens": "keep", "unlisted_mentions": "keep", "epochs": 10},
        kind="models",
    ),
    Case(
        "daga-iobes",
        "daga",
        "train",
        {"tag_scheme": "IOBES", "temperature": 0.8, "epochs": 10, "batch_size": 8, "max_attempts": 4},
        kind="models",
    ),
    Case("mulda", "mulda", "train", first=12, copies=1, kind="models"),
    Case(
        "mulda-unlisted",
        "mulda",
        "languages",
        {"unlisted_mentions": "keep", "top_k": 10, "learning_rate": 0.001, **_BRIEF},
        first=6,
        copies=1,
        kind="models",
    ),
    Case("entda", "entda", "train", first=8, copies=1, kind="models"),
    Case("entda-nested", "entda", "nested", {"epochs": 2}, first=6, copies=1, kind="models"),
    Case(
        "entda-replace",
        "entda",
        "train",
        {"operation": "replace", "epochs": 2, "unlisted_mentions": "label"},
        first=8,
        copies=1,
        kind="models",
    ),
    Case(
        "entda-diverse",
        "entda",
        "train",
        {"decoding": "diverse_beam_search", "unlisted_mentions": "keep", "constrained": False, **_BRIEF},
        first=5,
        copies=1,
        kind="models",
    ),
    Case("aclm", "aclm", "train", first=6, copies=1, kind="models"),
    Case(
        "aclm-alone",
        "aclm",
        "train",
        {"mixner_probability": 0.0, "epochs": 2, "keyword_ratio": 0.5},
        first=5,
        copies=1,
        kind="models",
    ),
    Case(
        "aclm-random",
        "aclm",
        "train",
        {"keywords": "random", "mixner_probability": 1.0, "decoding": "beam_search", "num_beams": 2, **_BRIEF},
        first=5,
        copies=1,
        kind="models",
    ),
    Case("cassi-paper", "cassi", "train", {"preset": "paper", **_GIVEN, "encoder_layer": 4}, first=20, kind="models"),
    Case(
        "cassi-authors", "cassi", "train", {"preset": "authors", **_GIVEN, "encoder_layer": 4}, first=20, kind="models"
    ),
    Case(
        "melm-paper",
        "melm",
        "train",
        {"preset": "paper", "filters": "none", "epochs": 2, "batch_size": 8, **_TINY},
        kind="models",
    ),
    Case(
        "mulda-paper",
        "mulda",
        "train",
        {"preset": "paper", **_SMALL, **_BRIEF, "learning_rate": 0.001, "adapters": True},
        first=6,
        copies=1,
        kind="models",
    ),
    Case(
        "entda-paper",
        "entda",
        "train",
        {"preset": "paper", **_SMALL, **_BRIEF, "learning_rate": 5e-4, "adapters": True},
        first=5,
        copies=1,
        kind="models",
    ),
    Case(
        "aclm-paper",
        "aclm",
        "train",
        {
            "preset": "paper",
            **_SMALL,
            **_BRIEF,
            "learning_rate": 0.001,
            "max_new_tokens": 48,
            "adapters": True,
            "num_beams": 2,
            "tagger": "linear",
            "encoder": "minilm",
        },
        first=5,
        copies=1,
        kind="models",
    ),
    Case(
        "mr-all",
        "mr",
        "train",
        {"filters": "validity+duplicates+fluency+similarity:min_similarity=0.4+mentions:match_words=false+consistency"},
        first=30,
        kind="models",
    ),
    Case("lwtr-fluency", "lwtr", "train", {"filters": "fluency", "max_attempts": 2}, first=20, kind="models"),
    Case(
        "lwtr-fluency-masked",
        "lwtr",
        "train",
        {"filters": "fluency:scorer=masked,margin=1", "max_attempts": 2},
        first=8,
        copies=1,
        kind="models",
    ),
    Case(
        "lwtr-bertscore",
        "lwtr",
        "train",
        {"filters": "similarity:metric=bertscore,min_similarity=0.6", "max_attempts": 3},
        first=40,
        kind="models",
    ),
    Case(
        "lwtr-vectors",
        "lwtr",
        "train",
        {"filters": "similarity:metric=vectors,min_similarity=0.7,max_similarity=0.98", "max_attempts": 3},
        first=60,
        kind="models",
    ),
    Case(
        "sis-consistency",
        "sis",
        "train",
        {"filters": "consistency:min_confidence=0.3", "p": 1.0},
        first=40,
        kind="models",
    ),
)

CASES = (*_RULES, *_WORDNET, *_FAKED, *_FILTERED, *_MODELS)


def corpus(name: str) -> list[entaug.Sentence]:
    """A corpus by its name: a file of the examples, or something made of one.

    ``spaced`` and ``nested-spaced`` know the white space between their tokens; ``overlapping`` has nested mentions and
    none with gaps; ``mixed`` has flat sentences and nested ones; ``languages`` has sentences that say that they are of
    one of two languages.
    """
    if name in _FILES:
        return list(entaug.read(ROOT / "examples" / "corpus" / _FILES[name]))
    if name == "overlapping":
        return [s for s in corpus("nested") if all(mention.is_contiguous for mention in s.mentions)]
    if name == "mixed":
        return [*corpus("train")[:20], *corpus("nested")]
    if name == "languages":
        return [s.with_fields({"language": "en" if i % 3 else "pt"}) for i, s in enumerate(corpus("train"))]
    return [s.with_(spaces=_spaces(s.tokens)) for s in corpus({"spaced": "train", "nested-spaced": "nested"}[name])]


_FILES = {"train": "train.conll", "dev": "dev.conll", "nested": "nested.jsonl"}


def _spaces(tokens: Sequence[str]) -> tuple[str, ...]:
    """A space after each token, but none before punctuation, two after every seventh, and none at the end."""
    found = []
    for i, after in enumerate((*tokens[1:], "")):
        found.append("" if after in {"", ".", ",", ";", ":", "!", "?", "'s", ")"} else "  " if i % 7 == 6 else " ")
    return tuple(found)


# ------------------------------------------------------------------------------------------------------------- running


Record = dict[str, Any]
"""What is kept of a case: two counts, and the digests of the sentences."""


class Outcome(NamedTuple):
    """What a case made.

    Args:
        sentences: all of it.
        missing: how many sentences were not made.
        rejected: how many drafts were rejected.
    """

    sentences: list[entaug.Sentence]
    missing: int
    rejected: int

    def record(self) -> Record:
        """What is kept of it."""
        digests = [digest(sentence) for sentence in self.sentences]
        return {"missing": self.missing, "rejected": self.rejected, "sentences": digests}


def run(case: Case) -> Outcome:
    """Run a case."""
    if case.kind == "models":
        import torch

        torch.set_num_threads(1)
    gold = list(islice(corpus(case.corpus), case.first))
    params = {name: value() if callable(value) else value for name, value in case.params.items()}
    if entaug.methods.METHODS[case.method].info.writes_words:
        params.setdefault("guard", False)  # what it refuses depends on the models of this machine
    method = entaug.create_augmenter(case.method, copies=case.copies, seed=SEED, **params).fit(gold)
    made = list(method.augment(gold))
    tally = method.statistics_
    return Outcome(made, tally.missing.total(), tally.rejected.total())


def plain(sentence: entaug.Sentence) -> dict[str, Any]:
    """A sentence without provenance."""
    mentions = [[mention.label, [list(span) for span in mention.spans]] for mention in sentence.mentions]
    spaces = None if sentence.spaces is None else list(sentence.spaces)
    return {"id": sentence.id, "tokens": list(sentence.tokens), "mentions": mentions, "spaces": spaces}


def digest(sentence: entaug.Sentence) -> str:
    """Sixteen figures that stand for a sentence without its provenance."""
    content = json.dumps(list(plain(sentence).values()), ensure_ascii=True, separators=(",", ":"))
    return blake2b(content.encode(), digest_size=8).hexdigest()


# ----------------------------------------------------------------------------------------------------------- the record


def environment() -> dict[str, Any]:
    """What floating-point numbers depend on."""
    cpu = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = dict(line.split(":", 1) for line in info.read_text().split("\n\n")[0].splitlines() if ":" in line)
        told = {key.strip(): value.strip() for key, value in lines.items()}
        wide = sorted({"avx2", "avx512f", "avx512_bf16", "amx_tile"} & set(told.get("flags", "").split()))
        numbers = f"family {told.get('cpu family')}, model {told.get('model')}"
        cpu = ", ".join([told.get("model name", cpu), numbers, *wide])
    versions = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            versions[library] = "none"
    return {"cpu": cpu, "versions": versions}


def commit() -> str:
    """The last commit that changed the package."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H", "--", "src"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain", "--", "src"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return found + (" with changes" if changed else "")


def recorded(path: Path = GOLDEN) -> dict[str, Any]:
    """The record, empty where there is none."""
    if not path.is_file():
        return {"cases": {}}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def comparable(path: Path = GOLDEN) -> str | None:
    """Why what models make here cannot be compared with the record; None where it can."""
    known, here = recorded(path), environment()
    if known.get("cpu") != here["cpu"]:
        return f"recorded on another machine: {known.get('cpu')}, this is {here['cpu']}"
    versions = known.get("versions", {})
    others = [f"{name} {versions.get(name)}" for name, one in here["versions"].items() if versions.get(name) != one]
    return f"recorded with other versions: {', '.join(others)}" if others else None


def stamped(record: Mapping[str, Any], written: Iterable[str], dependent: Iterable[str]) -> dict[str, Any]:
    """A record with this environment; if it is another one, all that depends on it must be written."""
    here = environment()
    left = (record["cases"].keys() & set(dependent)).difference(written)
    if left and any(record.get(name) != value for name, value in here.items()):
        sys.exit(f"recorded on another machine or with other versions: write these too: {', '.join(sorted(left))}")
    return {**record, **here, "commit": commit(), "cases": record["cases"]}


def store(record: Mapping[str, Any], order: Sequence[str], path: Path = GOLDEN) -> None:
    """Write a record, one case a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {name: value for name, value in record.items() if name != "cases"}
    cases = record["cases"]
    lines = [f"  {json.dumps(name)}: {json.dumps(cases[name])}" for name in order if name in cases]
    text = json.dumps(head, indent=1)[:-2] + ',\n "cases": {\n' + ",\n".join(lines) + "\n }\n}\n"
    path.write_text(text)


def differences(name: str, old: Record | None, new: Outcome, against: Path | None = None, most: int = 5) -> list[str]:
    """What differs between the record of a case and what it made now, in lines to be read.

    Args:
        name: of the case.
        old: what is recorded of it.
        new: what it made.
        against: a folder that `--dump` wrote, to show the old sentences.
        most: so many places are shown.
    """
    if old is None:
        return ["is not recorded"]
    now = new.record()
    found = [f"{what}: {old[what]} -> {now[what]}" for what in ("missing", "rejected") if old[what] != now[what]]
    before: Sequence[str] = old["sentences"]
    file = None if against is None else against / f"{name}.jsonl"
    texts = file.read_text().splitlines() if file is not None and file.is_file() else []
    places = 0
    for what, a, b, c, d in SequenceMatcher(None, before, now["sentences"], autojunk=False).get_opcodes():
        if what == "equal":
            continue
        places += max(b - a, d - c)
        if places > most:
            continue
        found += [f"- {i}: {texts[i] if i < len(texts) else before[i]}" for i in range(a, b)]
        found += [f"+ {i}: {json.dumps(plain(new.sentences[i]), ensure_ascii=False)}" for i in range(c, d)]
    if places > most:
        found.append(f"{places} sentences differ in all, of {len(before)}")
    return found


# --------------------------------------------------------------------------------------------------------- command line


def _dump(folder: Path, name: str, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(plain(sentence), ensure_ascii=False) + "\n" for sentence in outcome.sentences]
    (folder / f"{name}.jsonl").write_text("".join(lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all by default")
    parser.add_argument("--write", action="store_true", help="record what is made; other cases stay as they are")
    parser.add_argument("--check", action="store_true", help="compare what is made with the record")
    parser.add_argument("--dump", type=Path, metavar="FOLDER", help="write the sentences as JSON lines")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="a dump to show the old sentences from")
    parser.add_argument("--fast", action="store_true", help="only the cases without models")
    parser.add_argument("--models", action="store_true", help="only the cases with models")
    parser.add_argument("--reverse", action="store_true", help="the last case first: the order must not matter")
    parser.add_argument("--list", action="store_true", help="name the cases")
    return parser


def _chosen(args: argparse.Namespace) -> list[Case]:
    names = {case.name for case in CASES}
    if unknown := [name for name in args.cases if name not in names]:
        sys.exit(f"no such case: {', '.join(unknown)}")
    chosen = [case for case in CASES if not args.cases or case.name in args.cases]
    if args.fast or args.models:
        chosen = [case for case in chosen if (case.kind == "models") == args.models]
    return chosen[::-1] if args.reverse else chosen


def main() -> int:
    """Run some cases, and compare or record what they make."""
    args = _parser().parse_args()
    chosen = _chosen(args)
    if args.list:
        for case in chosen:
            print(f"{case.kind:8} {case.name}")
        return 0
    if not (args.write or args.check or args.dump):
        sys.exit("nothing to do: give --check, --write or --dump")
    print(f"entaug {entaug.__version__} of {Path(entaug.__file__).parent}", flush=True)
    record = recorded()
    if args.check and any(case.kind == "models" for case in chosen) and (why := comparable()):
        print(f"what models make may differ for no fault of the code: {why}")
    if args.write and any(case.kind == "models" for case in chosen):  # fast cases are the same everywhere
        record = stamped(record, [case.name for case in chosen], [case.name for case in CASES if case.kind == "models"])
    faulty = 0
    total = time.monotonic()
    for case in chosen:
        begun = time.monotonic()
        outcome = run(case)
        seconds = time.monotonic() - begun
        told = f"{seconds:7.1f} s  {case.name}: {len(outcome.sentences)} made, {outcome.missing} missing"
        if args.dump:
            _dump(args.dump, case.name, outcome)
        if args.check:
            found = differences(case.name, record["cases"].get(case.name), outcome, args.against)
            faulty += bool(found)
            told += "".join(f"\n      {line}" for line in found or ["the same"]) if found else ", the same"
        print(told, flush=True)
        if args.write:
            record["cases"][case.name] = outcome.record()
            store(record, [one.name for one in CASES])
    print(f"{time.monotonic() - total:7.1f} s  in all, {len(chosen)} cases")
    if args.check:
        print(f"{faulty} cases differ" if faulty else "nothing differs")
    return int(bool(faulty))


if __name__ == "__main__":
    sys.exit(main())
