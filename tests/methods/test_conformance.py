"""One suite over every registered method: what its facts say is what it does. A method nobody listed cannot hide."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import random
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE, examples
from entaug import Mention, Sentence
from entaug.backends.compute import use_compute_settings
from entaug.config.params import parameters
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.methods import METHODS
from entaug.methods.base import Augmenter
from entaug.testing import broken_promise
from helpers.faked_methods import corpus_of, make, needs_of
from helpers.strategies import sentences

ALL = pytest.mark.parametrize("name", sorted(METHODS))


def contents(made: Iterable[Sentence]) -> list[tuple[Any, ...]]:
    return [(s.tokens, s.mentions) for s in made]


def by_source(made: Iterable[Sentence]) -> dict[str, list[Sentence]]:
    groups: dict[str, list[Sentence]] = {}
    for s in made:
        groups.setdefault(s.fields["entaug"]["sources"][0], []).append(s)
    return groups


@ALL
def test_declares_itself(name: str) -> None:
    cls = METHODS[name]
    info = cls.info
    assert info.name == name
    assert METHODS[info.long_name] is cls
    assert getattr(entaug.methods, cls.__name__) is cls, "exported"
    assert cls.__name__ in entaug.methods.__all__
    assert info.summary
    assert info.paper
    doc = inspect.getdoc(cls) or ""
    assert "Example:" in doc
    own = [p.name for p in parameters(cls) if p.name not in {p.name for p in parameters(Augmenter)}]
    told = "".join(inspect.getdoc(base) or "" for base in cls.__mro__)
    assert all(f"{field}: " in told for field in own), "every parameter is told about"
    changelog = (EXAMPLE.parent.parent / "CHANGELOG.md").read_text()
    assert f"`{name}`" in changelog


@ALL
def test_constructor_loads_nothing_and_parameters_make_it_again(name: str) -> None:
    gold = corpus_of(name)
    first = make(name, seed=3)
    assert not [field for field in vars(first) if field.endswith("_")]
    again = make(name, **{k: v for k, v in first.get_params().items() if k not in needs_of(name)})
    assert contents(first.fit(gold).augment(gold)) == contents(again.fit(gold).augment(gold))
    assert first.signature == again.signature


@ALL
def test_output_is_new_valid_and_signed(name: str) -> None:
    gold = corpus_of(name)
    augmenter = make(name, copies=3, seed=5).fit(gold)
    made = list(augmenter.augment(gold))
    assert len(made) > len(gold) / 2, "it does something"
    keys = Counter(s.key for s in gold)
    assert max(keys.values()) == 1
    sources = {s.key: s for s in gold}
    assert len({s.id for s in made}) == len(made)
    assert len(set(contents(made))) == len(made)
    for key, group in by_source(made).items():
        assert len(group) <= 3
        for s in group:
            assert (s.tokens, s.mentions) != (sources[key].tokens, sources[key].mentions)
            proof = s.fields["entaug"]
            assert proof["method"] == name
            assert proof["signature"] == augmenter.signature
            assert proof["copy"] in (1, 2, 3)
    tally = augmenter.statistics_
    assert (tally.sources, tally.requested, tally.accepted) == (len(gold), 3 * len(gold), len(made))
    assert tally.accepted + tally.missing.total() == tally.requested


@ALL
@pytest.mark.usefixtures("one_other_process")
def test_keeps_the_rules(name: str) -> None:
    once = hasattr(METHODS[name], "unlabelled")  # takes each sentence of the text once
    entaug.check_plugin(make(name, copies=1 if once else 2), corpus_of(name))


REAL = {
    "wnut17": "wnut17/wnut17train.conll",
    "crossner-politics": "crossner/politics/train.txt",
    "multiconer-de": "multiconer-v1/15000/de_train.conll",
    "genia-nested": "genia/nested-jsonl/dev.jsonl",
    "genia-discontinuous": "genia/discontinuous-jsonl/dev.jsonl",
}


@cache
def first_of(path: Path, with_gaps: bool) -> list[Sentence]:
    sentences = (s for s in entaug.stream(path) if s.mentions)
    if with_gaps:
        sentences = (s for s in sentences if not all(m.is_contiguous for m in s.mentions))
    return list({s.key: s for s in islice(sentences, 30)}.values())


@ALL
@pytest.mark.parametrize("where", sorted(REAL))
def test_on_real_corpora(name: str, where: str, corpora: Path) -> None:
    info = METHODS[name].info
    gold = first_of(corpora / REAL[where], with_gaps=where == "genia-discontinuous")
    possible = [
        s
        for s in gold
        if s.is_flat
        or (info.nested and info.discontinuous)
        or (info.nested and all(m.is_contiguous for m in s.mentions))
    ]
    augmenter = make(name, copies=2, max_attempts=4)
    if not possible:
        with pytest.raises(InputError, match=f"{name} does not support"):
            augmenter.fit(gold)
        return
    with use_compute_settings(any_language=True):  # the fake lexicon is English
        augmenter.fit(gold)
    made = list(augmenter.augment(gold))
    sources = {s.key: s for s in gold}
    assert {broken_promise(info, sources[key], s) for key, group in by_source(made).items() for s in group} <= {None}
    # Fakes know little: the generators' texts rarely hold what was asked for.
    assert len(made) > (0 if "generator" in info.needs else len(possible) / 4)
    labels = {m.label for s in gold for m in s.mentions}
    assert {m.label for s in made for m in s.mentions} <= labels
    refused = {reason for reason in augmenter.statistics_.missing if "which this method does not support" in reason}
    assert bool(refused) == (len(possible) < len(gold)), "what it cannot do it refuses by name"


@ALL
@pytest.mark.parametrize("kind", ["nested", "discontinuous"])
def test_refuses_what_it_cannot_do(name: str, kind: str) -> None:
    if getattr(METHODS[name].info, kind):
        return  # its work on such sentences is checked by all the other tests
    of_kind = {
        "nested": Sentence("the Oslo port".split(), [Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)])], id="kind"),
        "discontinuous": Sentence("left and right arm".split(), [Mention("PART", [(0, 1), (3, 4)])], id="kind"),
    }[kind]
    with pytest.raises(InputError, match=kind):
        make(name).fit([of_kind])
    # Among others it is left out, and counted under a reason that says so.
    gold = [*corpus_of(name), of_kind]
    augmenter = make(name).fit(gold)
    assert "kind" not in by_source(augmenter.augment(gold))
    assert any(kind in reason for reason in augmenter.statistics_.missing)


@ALL
def test_the_order_of_the_corpus_changes_nothing(name: str) -> None:
    gold = corpus_of(name)
    wanted = by_source(make(name, copies=2, seed=11).fit(gold).augment(gold))
    mixed = random.Random(0).sample(gold, len(gold))
    refitted = make(name, copies=2, seed=11).fit(mixed)
    assert by_source(refitted.augment(gold)) == wanted
    # Of two sources that give the same sentence, the first in the file has it.
    assert set(contents(refitted.augment(mixed))) == {content for made in wanted.values() for content in contents(made)}


@ALL
def test_what_draws_nothing_depends_little_on_the_seed(name: str) -> None:
    if not METHODS[name].info.draws:  # but for what it falls back to
        gold = corpus_of(name)
        one, two = (contents(make(name, seed=s).fit(gold).augment(gold)) for s in (1, 2))
        assert sum(a == b for a, b in zip(one, two, strict=True)) > len(one) / 2


@ALL
def test_streams_as_well_as_lists(name: str) -> None:
    path = EXAMPLE / "train.conll"
    held = contents(make(name).fit(entaug.read(path)).augment(entaug.read(path)))
    streamed = contents(make(name).fit(entaug.stream(path)).augment(entaug.stream(path)))
    assert held == streamed


@ALL
def test_bad_parameters_are_refused_before_any_work(name: str) -> None:
    for bad in ({"copies": -1}, {"copies": 0}, {"seed": "x"}, {"max_attempts": 0}, {"p": 1.5}, {"nonsense": 1}):
        if "p" in bad and "p" not in {p.name for p in parameters(METHODS[name])}:
            continue
        with pytest.raises(UnknownNameError if "nonsense" in bad else ParameterError):
            make(name, **bad)
    if METHODS[name].info.needs_fit:
        with pytest.raises(ParameterError, match="fit"):
            list(make(name).augment(corpus_of(name)))
    if METHODS[name].info.needs_mentions:
        with pytest.raises(InputError, match="no mention"):
            make(name).fit([Sentence(["no", "mention"])])


@ALL
def test_draws_anew_each_epoch_on_line(name: str) -> None:
    gold = corpus_of(name)
    if not METHODS[name].info.draws:
        with pytest.raises(ParameterError, match="same sentences in every epoch"):
            entaug.OnlineDataset(gold, make(name).fit(gold))
        return
    if hasattr(METHODS[name], "unlabelled"):
        with pytest.raises(ParameterError, match="none for further epochs"):
            entaug.OnlineDataset(gold, make(name).fit(gold))
        return
    data = entaug.OnlineDataset(gold, make(name).fit(gold))
    assert len(data) == 2 * len(gold)
    assert list(data)[: len(gold)] == gold
    epochs = [contents(data.set_epoch(e)[len(gold) :]) for e in (0, 1, 0)]
    assert epochs[0] == epochs[2]
    changed = sum(a != b for a, b in zip(epochs[0], epochs[1], strict=True))
    assert changed > len(gold) / 4


def kinds(name: str) -> tuple[bool, bool]:
    """Whether a method works on nested and on discontinuous mentions."""
    return METHODS[name].info.nested, METHODS[name].info.discontinuous


@pytest.mark.parametrize(("nested", "discontinuous"), sorted(set(map(kinds, METHODS))))
@settings(max_examples=examples(250))
@given(data=st.data())
def test_any_corpus_gives_valid_sentences(nested: bool, discontinuous: bool, data: st.DataObject) -> None:
    gold = data.draw(st.lists(sentences(flat=not nested, gaps=discontinuous), min_size=2, max_size=5))
    labels = {m.label for s in gold for m in s.mentions}
    for name in (name for name in METHODS if kinds(name) == (nested, discontinuous)):
        try:
            fitted = make(name, copies=2, **({"p": 0.7} if hasattr(METHODS[name], "p") else {})).fit(gold)
        except InputError:
            continue  # nothing in such a corpus that the method needs
        for s in fitted.augment(gold):
            assert s == dataclasses.replace(s), f"{name}: validation holds"
            assert {m.label for m in s.mentions} <= labels, name
            assert len(s.tokens) >= 1, name


@ALL
def test_fitted_methods_can_be_pickled(name: str) -> None:
    """Worker processes that are spawned get a pickled copy."""
    gold = corpus_of(name)
    method = make(name).fit(gold)
    again = pickle.loads(pickle.dumps(method))  # noqa: S301 - our own object
    assert contents(again.augment(gold)) == contents(method.augment(gold))


@pytest.mark.parametrize("name", ["sis", "mr", "lwtr", "crop", "cr"])
def test_only_duplicates_depend_on_the_number_of_copies_and_the_order(name: str) -> None:
    """As docs/reproducibility.md says."""
    gold = corpus_of(name)
    once = contents(make(name, copies=1).fit(gold).augment(gold))
    threefold = list(make(name, copies=3).fit(gold).augment(gold))
    firsts = contents(s for s in threefold if s.provenance and s.provenance.copy == 1)
    different = [content for content in once if content not in firsts]
    assert len(different) <= len(once) / 8
    assert set(different) <= set(contents(threefold))  # each stands there, as a copy of another number or source
    backwards = contents(make(name, copies=1).fit(gold).augment(gold[::-1]))
    assert len(set(once) ^ set(backwards)) <= len(once) / 10
