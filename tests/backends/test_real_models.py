"""lm, bt and the scores with the real starter models, on real corpora where they are."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import entaug
from conftest import EXAMPLE, corpora_folder
from entaug import Sentence
from entaug.backends.compute import use_compute_settings
from entaug.core.alignment import detokenize

pytestmark = [pytest.mark.models, pytest.mark.slow]

LEAK = re.compile(r"##|▁|Ġ|\[MASK\]|<mask>|<unk>|\s")
CORPORA = ["genia/nested-jsonl/train.jsonl", "genia/discontinuous-jsonl/train.jsonl.gz", "ncbi-disease/train.tsv"]


def some(name: str, count: int) -> list[Sentence]:
    """Sentences of a real corpus; of the example's where the corpora are not there."""
    path = corpora_folder() / name
    if not path.exists():
        return [*list(entaug.read(EXAMPLE / "nested.jsonl"))[:count], *list(entaug.read(EXAMPLE / "train.conll"))[:10]]
    found = [s for s in islice(entaug.stream(path), 3000) if s.mentions and len(s) < 50]
    # Those with nested or discontinuous mentions first: they are what could go wrong.
    return sorted(found, key=lambda s: s.is_flat)[:count]


METHODS: list[dict[str, Any]] = [
    {"name": "lm"},
    {"name": "lm", "single_pass": True, "num_replacements": 5},
    {"name": "lm", "min_similarity": 0.4},
    {"name": "bt"},
    {"name": "bt", "p": 1.0, "whole_sentence": True},
]


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("options", METHODS, ids=repr)
def test_labels_and_text_are_sound(options: dict[str, Any], corpus: str) -> None:
    gold = some(corpus, 60)
    params = {k: v for k, v in options.items() if k != "name"}
    method = entaug.create_augmenter(options["name"], seed=3, **params).fit(gold)
    sources = {s.key: s for s in gold}
    made = list(method.augment(gold))
    assert len(made) >= len(gold) / 4
    for new in made:
        source = sources[new.fields["entaug"]["sources"][0]]
        assert sorted((m.label, new.mention_tokens(m)) for m in new.mentions) == sorted(
            (m.label, source.mention_tokens(m)) for m in source.mentions
        )
        before = set(source.tokens)
        for token in new.tokens:
            assert token in before or not LEAK.search(token), token
            assert token in before or token not in {"'", "’", "`"}, new.tokens  # noqa: RUF001
        if method.info.keeps_length:
            assert len(new) == len(source)
            free = source.outside_mask()
            changed = [i for i, (a, b) in enumerate(zip(new.tokens, source.tokens, strict=True)) if a != b]
            assert 1 <= len(changed) <= params.get("num_replacements", 3)
            assert all(free[i] and new.tokens[i].isalpha() for i in changed)


@pytest.mark.parametrize("name", ["entda", "aclm"])
def test_the_real_generator_writes_around_mentions(name: str) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:30]
    method = entaug.create_augmenter(name, seed=1, copies=2, epochs=2, max_new_tokens=64, max_attempts=2).fit(gold)
    made = list(method.augment(gold))
    assert len(made) >= 10
    words = {(m.label, s.mention_tokens(m)) for s in gold for m in s.mentions}
    for new in made:
        assert new.mentions
        for mention in new.mentions:
            found = new.mention_tokens(mention)
            # At the beginning of a sentence with a capital.
            assert any(
                label == mention.label and tuple(map(str.lower, known)) == tuple(map(str.lower, found))
                for label, known in words
            )
        assert not any(LEAK.search(token) or token.startswith("<B-") for token in new.tokens)


@pytest.mark.parametrize("name", ["melm", "daga"])
def test_real_models_that_have_learned_the_labels(name: str) -> None:
    gold = [s for s in entaug.read(EXAMPLE / "train.conll") if s.mentions][:60]
    method = entaug.create_augmenter(name, seed=1, copies=2, epochs={"melm": 2, "daga": 15}[name]).fit(gold)
    made = list(method.augment(gold))
    assert len(made) >= 60
    words = {token.lower() for s in gold for token in s.tokens}
    sources = {s.key: s for s in gold}
    for new in made:
        assert new.mentions
        assert not any(
            LEAK.search(token) or token.startswith("<") for token in new.tokens if token.lower() not in words
        )
        if name == "melm":
            assert new.mentions == sources[new.fields["entaug"]["sources"][0]].mentions
            assert all(token.isalpha() for token in new.tokens if token.lower() not in words)
        else:
            assert words.issuperset(map(str.lower, new.tokens)), "placeholders are filled"


# The starter preset of cr exchanges phrases that agree in form, length, meaning and head; the paper's any of a label.
_PAPER = {"preset": "paper", "constituency_parser": "projected"}


@pytest.mark.parametrize(
    ("name", "least", "parameters"), [("cr", 60, _PAPER), ("cr", 40, {}), ("crop", 20, {}), ("rotate", 5, {})]
)
def test_real_trees(name: str, least: int, parameters: dict[str, Any]) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:60]
    made = list(entaug.create_augmenter(name, seed=1, copies=2, **parameters).fit(gold).augment(gold))
    assert len(made) > least
    words = {(m.label, s.mention_tokens(m)) for s in gold for m in s.mentions}
    assert {(m.label, s.mention_tokens(m)) for s in made for m in s.mentions} <= words, (
        "mentions whole, with their labels"
    )


@pytest.mark.parametrize("name", ["lm", "bt"])
def test_the_same_whatever_the_batches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:40]
    with use_compute_settings(precision="fp32"):  # in bf16 some processors round a row differently in other batches
        method = entaug.create_augmenter(name, copies=2, seed=1).fit(gold)
    wanted = [s.tokens for s in method.augment(gold)]
    for window in (3, 1000):
        monkeypatch.setattr(type(method), "window_size", window)
        assert [s.tokens for s in method.augment(gold)] == wanted


def test_the_masked_lm_of_our_own_knows_english() -> None:
    from entaug.backends.resolve import resolve

    lm = resolve("masked_lm", "mpnet-mlm")
    asked = [
        (["The patients were treated with ", None, " for two weeks."], {"antibiotics", "chemotherapy", "steroids"}),
        (["He ", None, " to the store to buy some milk."], {"went", "goes", "walked", "came", "ran"}),
        (["The president of the United ", None, " gave a speech."], {"states"}),
        (["She plays the ", None, " in an orchestra."], {"violin", "piano", "flute", "cello"}),
    ]
    found = lm.fill([text for text, _ in asked], 5)
    right = sum(
        bool(wanted & {word for word, _ in candidates}) for (_, wanted), [candidates] in zip(asked, found, strict=True)
    )
    assert right >= 3, found


def test_likelihood_prefers_sentences_to_scrambled_ones() -> None:
    gold = [s for s in entaug.read(EXAMPLE / "train.conll") if len(s) > 8][:12]
    scrambled = list(entaug.methods.ShuffleWithinSegments(p=1.0).augment(gold))
    assert len(scrambled) == len(gold)
    good, bad = entaug.metrics.pseudo_log_likelihood(gold), entaug.metrics.pseudo_log_likelihood(scrambled)
    assert (good > bad).mean() > 0.9


def test_bertscore_finds_the_sentence_said_otherwise() -> None:
    texts = [
        "The company opened a new office in Paris.",
        "Doctors found that the drug lowers blood pressure.",
        "A new branch was opened by the firm in the French capital.",
        "The medicine was shown to reduce hypertension.",
    ]
    scores = entaug.metrics.pairwise_bertscore(texts)
    np.fill_diagonal(scores, -1)
    assert scores.argmax(axis=1).tolist() == [2, 3, 0, 1]


def test_a_very_long_sentence_needs_little_memory() -> None:
    import resource

    tokens = [word for s in entaug.read(EXAMPLE / "train.conll") for word in s.tokens][:250]
    long = Sentence(tokens)
    entaug.metrics.pseudo_log_likelihood(["A short one."])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [score] = entaug.metrics.pseudo_log_likelihood([long])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert score < -100
    assert detokenize(tokens)
    assert grown < 1500, f"{grown:.0f} MB"


def test_the_command_line_takes_a_folder(tmp_path: Path) -> None:
    from entaug.backends.models import catalogue as models
    from entaug.commands.main import main

    out = tmp_path / "out.conll"
    # By default fills must suit their place, which few of so small a model do.
    folder = str(models.model_path("tiny-bert"))
    command = ["augment", str(EXAMPLE / "train.conll"), "-m", "lm", "--preset", "paper", "--masked-lm", folder]
    assert main([*command, "-o", str(out), "--num-replacements", "1"]) == 0
    assert len(entaug.read(out)) > 160
