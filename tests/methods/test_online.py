"""Online augmentation in the worker processes of a DataLoader."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("torch")

from torch.utils.data import DataLoader

import entaug
from conftest import EXAMPLE
from entaug import OnlineDataset, Sentence, create_augmenter
from entaug.errors import ParameterError
from helpers import tiny
from helpers.fakes import FakeDependencyParser


def first(batch: list[Sentence]) -> list[Sentence]:
    return batch


def dataset() -> OnlineDataset:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    return OnlineDataset(gold, create_augmenter("sis", p=1.0).fit(gold), keep_gold=False)


def tokens(loader: DataLoader[Any]) -> list[tuple[str, ...]]:
    return [sentence.tokens for batch in loader for sentence in batch]


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_that_outlive_an_epoch_notice_the_next(start: str) -> None:
    here, data = dataset(), dataset()
    rows: Any = data  # a map-style dataset without the base class of torch
    loader: DataLoader[Any] = DataLoader(
        rows, batch_size=4, num_workers=1, persistent_workers=True, collate_fn=first, multiprocessing_context=start
    )
    for epoch in (0, 1, 5, 0):
        data.set_epoch(epoch)
        assert tokens(loader) == [sentence.tokens for sentence in here.set_epoch(epoch)]


def test_a_copy_has_an_epoch_of_its_own() -> None:
    data = dataset().set_epoch(3)
    copy = pickle.loads(pickle.dumps(data))  # noqa: S301 - our own object
    assert copy.epoch == 3
    assert list(copy) == list(data)
    data.set_epoch(4)
    assert copy.epoch == 3


def test_the_corpus_has_any_form_in_memory() -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    rows = OnlineDataset([(s.tokens, s.iob()) for s in gold], create_augmenter("sis", p=1.0), keep_gold=False)
    assert [s.tokens for s in rows] == [s.tokens for s in dataset()]
    for stream in (entaug.stream(EXAMPLE / "train.conll"), iter(gold)):
        with pytest.raises(ParameterError, match="the corpus must be in memory"):
            OnlineDataset(stream, create_augmenter("sis"))


@pytest.mark.parametrize("epoch", [-1, 1.0, True, 2**63, None])
def test_epochs_that_are_none_are_refused(epoch: Any) -> None:
    with pytest.raises(ParameterError, match="below 2\\^63"):
        dataset().set_epoch(epoch)


@pytest.mark.parametrize("name", ["crop", "rotate"])
def test_finitely_many_variants_come_again_in_later_epochs(name: str) -> None:
    gold = [Sentence("Ada sings songs of love in Rome .".split())]
    options: dict[str, Any] = {"crop": {"drop": "roles"}, "rotate": {"order": "free"}}[name]
    method = create_augmenter(name, dependency_parser=FakeDependencyParser(), copies=2, **options).fit(gold)
    variants = {one.tokens for one in method.augment(gold)}
    assert len(variants) == 2
    data = OnlineDataset(gold, method, keep_gold=False)
    epochs = [[one.tokens for one in data.set_epoch(epoch)] for epoch in range(20)]
    assert all(one != other and gold[0].tokens not in (one, other) for one, other in epochs)
    assert {tuple(epoch) for epoch in epochs} != {tuple(epochs[0])}


@pytest.mark.parametrize("name", ["lm", "crop", "mr"])
def test_several_threads_may_use_one_augmenter(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    folder = tmp_path_factory.mktemp("model") / "bert"
    params: dict[str, Any] = {
        "lm": {"masked_lm": str(tiny.save(folder, "bert")), "show_source": False},
        "crop": {},
        "mr": {},
    }[name]
    if name == "crop":
        params = {"dependency_parser": FakeDependencyParser()}
    method = create_augmenter(name, **params).fit(gold)
    expected = [sentence.tokens for sentence in method.augment(gold)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: [sentence.tokens for sentence in method.augment(gold)], range(8)))
    assert results == [expected] * 8
