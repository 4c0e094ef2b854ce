"""Several methods in one run, their text form, and augmentation in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.errors import ParameterError, UnknownNameError
from entaug.methods import MentionReplacement, ShuffleWithinSegments
from entaug.methods.augment import augment_file
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter, parse_methods

GOLD = [
    Sentence("Ada met Bo in Rome".split(), [Mention("PER", [(0, 1)]), Mention("PER", [(2, 3)])], id="a"),
    Sentence("Cy Dee left old Rome today".split(), [Mention("PER", [(0, 2)])], id="b"),
]

CLASS = r"expected an augmenter, not the class MentionReplacement; create one: MentionReplacement\(\)$"


def settings(augmenter: Augmenter | CombinedAugmenter) -> list[tuple[str, int, int]]:
    return [(one.name, one.copies, one.seed) for one in augmenter.augmenters]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mr", [("mr", 1, 5)]),
        ("mention-replacement", [("mr", 1, 5)]),
        ("mr,sis", [("mr", 1, 5), ("sis", 1, 5)]),
        ("mr + sis", [("mr", 1, 5), ("sis", 1, 5)]),
        ("mr:copies=2,seed=3+sis", [("mr", 2, 3), ("sis", 1, 5)]),
        ("mr:copies=2,sis:seed=1,copies=4", [("mr", 2, 5), ("sis", 4, 1)]),
        ("mr+mr:seed=6", [("mr", 1, 5), ("mr", 1, 6)]),
    ],
)
def test_text_form(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert settings(parse_methods(text, seed=5)) == expected


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: parse_methods(""), ParameterError, "no method is given"),
        (lambda: parse_methods("copies=2"), ParameterError, "does not begin with the name of a method"),
        (lambda: parse_methods("mr+sys"), UnknownNameError, "did you mean 'sis'"),
        (lambda: parse_methods("mr:copys=2"), UnknownNameError, "did you mean 'copies'"),
        (lambda: parse_methods("mr:copies=none"), ParameterError, "copies must be an integer from 1 to 10000"),
        (lambda: parse_methods("mr+sis", inside_mentions=True), UnknownNameError, "parameter of mr: 'inside_mentions'"),
        (lambda: parse_methods("mr+mr"), ParameterError, "mr occurs twice with the same seed"),
        (lambda: entaug.augment(GOLD, MentionReplacement), ParameterError, CLASS),  # type: ignore[arg-type]
        (lambda: entaug.augment(GOLD, [MentionReplacement]), ParameterError, CLASS),  # type: ignore[list-item]
        (lambda: entaug.augment(GOLD, ["mr", 3]), ParameterError, "not 3; create one: entaug.create_augmenter"),  # type: ignore[list-item]
        (lambda: entaug.augment(GOLD, []), ParameterError, "no method is given"),
        (lambda: entaug.augment(GOLD, MentionReplacement(), copies=2), ParameterError, "copies is for methods"),
        (lambda: augment_file("a.conll", "b.conll", MentionReplacement), ParameterError, CLASS),  # type: ignore[arg-type]
        (lambda: list(parse_methods("sis+mr").augment(GOLD)), ParameterError, "mr is not fitted"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_each_method_contributes_what_it_makes_alone() -> None:
    gold = entaug.read(EXAMPLE / "train.conll")
    alone = {name: list(entaug.augment(gold, name, seed=2, copies=2)) for name in ("mr", "lwtr")}
    combined = parse_methods("mr+lwtr", seed=2, copies=2)
    made = list(combined.fit(gold).augment(gold))
    by_method = {name: [s for s in made if s.fields["entaug"]["method"] == name] for name in alone}
    assert by_method["mr"] == alone["mr"]
    # Of a sentence that both make, the first method keeps it.
    contents = {(s.tokens, s.mentions) for s in alone["mr"]}
    assert by_method["lwtr"] == [s for s in alone["lwtr"] if (s.tokens, s.mentions) not in contents]
    assert len({s.id for s in made}) == len(made)
    counts = combined.statistics_
    assert (counts.sources, counts.requested, counts.accepted) == (len(gold), 4 * len(gold), len(made))
    assert counts.accepted + counts.missing.total() == counts.requested


def test_sources_stay_together_and_methods_in_order() -> None:
    made = list(parse_methods("mr:p=1.0+sis:p=1.0", max_attempts=50).fit(GOLD).augment(GOLD))
    assert [s.id for s in made] == ["a/mr-0-1", "a/sis-0-1", "b/mr-0-1", "b/sis-0-1"]


def test_a_file_leaves_its_counts_with_all(tmp_path: Path) -> None:
    combined = parse_methods("mr+sis")
    assert isinstance(combined, CombinedAugmenter)
    summary = augment_file(EXAMPLE / "train.conll", tmp_path / "new.conll", combined)
    assert summary.statistics.accepted
    assert combined.statistics_ is summary.statistics
    assert all(one.statistics_ is summary.statistics for one in combined.augmenters)


def test_augment_in_one_line() -> None:
    expected = list(MentionReplacement(copies=2, seed=1).fit(GOLD).augment(GOLD))
    assert list(entaug.augment(GOLD, "mr", copies=2, seed=1)) == expected
    assert list(entaug.augment(iter(GOLD), MentionReplacement(copies=2, seed=1))) == expected
    assert list(entaug.augment(GOLD, parse_methods("mr", copies=2, seed=1))) == expected
    both = entaug.augment(GOLD, ["mr", ShuffleWithinSegments(p=1.0, copies=3)], seed=1)
    assert {s.fields["entaug"]["method"] for s in both} == {"mr", "sis"}
    combined = CombinedAugmenter([MentionReplacement(seed=1), ShuffleWithinSegments(p=1.0, copies=3, seed=0)])
    assert list(entaug.augment(GOLD, combined)) == list(both)


def test_progress_notes_and_filters_of_all() -> None:
    calls: list[int] = []
    combined = parse_methods("mr+sis", filters="validity")
    assert isinstance(combined, CombinedAugmenter)
    combined.progress = lambda done, total, loss: calls.append(done)
    assert all(augmenter.progress is combined.progress for augmenter in combined.augmenters)
    single = [*GOLD, Sentence(["Oslo"], [Mention("LOC", [(0, 1)])])]
    assert combined.fit(single).notes() == ["type LOC has only one distinct mention ('Oslo'), which mr cannot replace"]
    assert combined.is_fitted
    assert [filter_.name for filter_ in combined.filters_] == ["validity", "validity"]
    assert combined.signature.count("entaug=") == 2
