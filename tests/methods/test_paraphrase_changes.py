"""Changes that a paraphrase makes to a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entaug.methods.shared.paraphrase_changes import Change, independent_changes


def found(old: str, new: str, kept: tuple[int, ...] = (), language: str = "en") -> list[str]:
    """The sentences that each change alone gives."""
    tokens = old.split()
    return [" ".join(made(tokens, change)) for change in independent_changes(tokens, new.split(), kept, language)]


def made(tokens: list[str], change: Change) -> list[str]:
    new = list(tokens)
    for start, end, words in reversed(change):
        new[start:end] = words
    return new


def test_each_difference_is_a_change() -> None:
    assert found("the tall tower stands near rivers", "the high tower stands by rivers") == [
        "the high tower stands near rivers",
        "the tall tower stands by rivers",
    ]
    assert found("It rains in Rome", "It rains in Rome") == []


def test_what_has_moved_is_one_change() -> None:
    assert found("He met Reuters reporters today", "He met reporters from Reuters today", (2,)) == [
        "He met reporters from Reuters today"
    ]
    # Kept tokens that the paraphrase has once are where they are there.
    assert found("We see mutations of APC", "We see APC mutations", (4,)) == ["We see APC mutations"]
    # A word of the same stem counts as moved.
    moved = "They saw spasms of speculation today"
    assert found("They saw speculative spasms today", moved) == [moved]
    # Where another word takes the place, who is what may have changed.
    assert found("We met Rome church settlers from Oslo", "We met settlers from the Rome church of Oslo", (2, 6)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We saw Oslo today", "We saw Rome today"),  # a kept token
        ("We saw great Oslo today", "We saw Oslo today"),  # a word is lost
        ("We saw Oslo today", "We saw lovely Oslo today"),  # a word is new
        ("We saw Oslo today", "They saw Oslo today"),  # a pronoun
        ("We can see Oslo now", "We never see Oslo now"),  # negation
        ("We saw Oslo 3 times", "We saw Oslo 4 times"),  # a figure
        ("We saw Oslo , smiling", "We saw Oslo and smiled"),  # punctuation
        ("We saw Oslo with Ada", "We saw Oslo with Bo"),  # a name
        ("We saw Oslo with friends", "We saw Oslo with Friends there"),  # a new capital
        ("We saw Oslo 's colours", "We saw Oslo 's colors"),  # spelling
        ("We saw Oslo at ages 50", "We saw Oslo at age 50"),  # another form
        ("We saw Oslo in a common town", "We saw Oslo in the town"),  # only an article stands for a word
        ("We saw Oslo as co - owners", "We saw Oslo as co - proprietors"),  # a part of a compound
        ("We saw Oslo towns burn", "We saw Oslo burn towns"),  # another order
        ("We saw Oslo on Monday", "We saw Oslo and it on Monday"),
        ("We visited Oslo briefly", "We visited Oslo in it"),  # nothing stands for a word
    ],
)
def test_what_is_left_out(old: str, new: str) -> None:
    assert found(old, new, kept=(2,)) == []


def test_other_forms_of_negation_are_the_same() -> None:
    assert found("We do n't visit parks", "We do not enjoy parks") == ["We do n't enjoy parks"]


def test_nothing_is_inserted_into_kept_tokens() -> None:
    assert found("They toured New York slowly", "They visited New lovely York slowly", kept=(2, 3)) == [
        "They visited New York slowly"
    ]


def test_the_first_word_has_the_case_of_the_sentence() -> None:
    assert found("Rapidly it rained", "quickly it rained") == ["Quickly it rained"]
    assert found("rapidly it rained", "Quickly it rained") == ["quickly it rained"]
    assert found("Expression of FMRP rises", "Levels of FMRP rise") == ["Levels of FMRP rises"]
    # A first word that comes to stand behind another one loses its capital.
    moved = "The rapid growth in cells"
    assert found("Growth rapid in cells", moved) == [moved]
    assert found("Library maps show lakes", "The maps of the library show lakes", kept=(0,)) == []


def test_without_a_known_language_every_word_counts() -> None:
    assert found("wir sehen in Rom", "wir sehen nach Rom", language="de") == ["wir sehen nach Rom"]
    assert independent_changes("a b c".split(), "a d c".split(), (), None) == [((1, 2, ("d",)),)]


WORDS = "the a of lovely big City city rains , 3 Ada not it runs running -".split()
words = st.lists(st.sampled_from(WORDS), max_size=9)


@given(words.filter(bool), words, st.sets(st.integers(0, 8)))
def test_a_change_keeps_what_it_must(tokens: list[str], paraphrase: list[str], kept: set[int]) -> None:
    kept = {i for i in kept if i < len(tokens)}
    for change in independent_changes(tokens, paraphrase, kept, "en"):
        ends = [0]
        for start, end, _ in change:
            assert ends[-1] <= start <= end <= len(tokens)
            assert kept.isdisjoint(range(start, end))
            ends.append(end)
        new = made(tokens, change)
        assert new != tokens
        for marks in ("3", ",", "-", "not", "it"):
            assert new.count(marks) == tokens.count(marks)
