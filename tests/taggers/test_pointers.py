"""Mentions as sequences of pointers and labels: by hand, the numbers of the paper, round trips, what may follow."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.taggers.seq2seq import MentionReader, Representation, linearize, most_items, target_order
from helpers.strategies import LABELS, sentences

REPRESENTATIONS: tuple[Representation, ...] = ("word", "bpe", "span")
Spans = list[tuple[int, int]]


def delinearize(
    items: Iterable[int | str], word_pieces: Sequence[Sequence[int]], representation: Representation
) -> list[Mention]:
    """Read a sequence of pointers and labels; the inverse of `linearize`."""
    reader = MentionReader(word_pieces, representation)
    for item in items:
        options = reader.options()
        assert options.label if isinstance(item, str) else item in options.pieces, f"{item!r} cannot follow here"
        reader.read(item)
    assert reader.options().end, "the last mention has no label"
    return list(dict.fromkeys(reader.mentions))


def mentions(*given: tuple[str, Spans]) -> list[Mention]:
    return [Mention(label, spans) for label, spans in given]


def whole_words(number: int) -> list[list[int]]:
    """Words of one sub-word each, behind the start of the sentence, whose position is 0."""
    return [[i] for i in range(1, number + 1)]


def reference_numbers(items: list[int | str], labels: list[str]) -> list[int]:
    """The numbers of the reference's code: 0 begins and 1 ends, then the labels, then the sub-words from ``<s>`` on."""
    numbers = [labels.index(one) + 2 if isinstance(one, str) else one + len(labels) + 2 for one in items]
    return [0, *numbers, 1]


# --------------------------------------------------------------------------------------------------- the published form


def test_the_numbers_of_figure_2() -> None:
    # Six words have the pointers 1 to 6, and the first label, <dis>, is 7.
    words = "have much muscle pain and fatigue".split()
    gold = mentions(("dis", [(2, 3), (5, 6)]), ("dis", [(2, 4)]))
    items = linearize(gold, whole_words(len(words)), "word")
    assert [7 if one == "dis" else one for one in items] == [3, 4, 7, 3, 6, 7]
    spans = linearize(gold, whole_words(len(words)), "span")
    assert [7 if one == "dis" else one for one in spans] == [3, 4, 7, 3, 3, 6, 6, 7]


def test_the_shapes_of_the_readme() -> None:
    # The reference prints the shapes of the first sentences of CoNLL 2003 in the form "word": 8 numbers for 11 tokens.
    words = "EU rejects German call to boycott British lamb .".split()
    labels = ["loc", "per", "org", "misc"]
    gold = mentions(("org", [(0, 1)]), ("misc", [(2, 3)]), ("misc", [(6, 7)]))
    numbers = reference_numbers(linearize(gold, whole_words(len(words)), "word"), labels)
    assert numbers == [0, 7, 4, 9, 5, 13, 5, 1]
    assert (len(numbers), len(words) + 2) == (8, 11)


def test_examples_of_the_readme() -> None:
    # "Abdominal cramps , flatulence , gas , bloating ." with the mentions 0,1|3,3|7,7|5,5: they are sorted.
    gold = mentions(("adr", [(0, 2)]), ("adr", [(3, 4)]), ("adr", [(7, 8)]), ("adr", [(5, 6)]))
    numbers = reference_numbers(linearize(gold, whole_words(9), "word"), ["adr"])
    assert numbers == [0, 4, 5, 2, 7, 2, 9, 2, 11, 2, 1]
    # [[0, 1, 5, 7], [2, 3, 5, 7]]: discontinuous ones, with exclusive ends.
    gold = mentions(("adr", [(2, 3), (5, 7)]), ("adr", [(0, 1), (5, 7)]))
    assert linearize(gold, whole_words(7), "span") == [1, 1, 6, 7, "adr", 3, 3, 6, 7, "adr"]
    # The first sentence of GENIA there: 16,16|4,8|24,26|19,20.
    gold = mentions(*(("DNA", [span]) for span in [(16, 17), (4, 9), (24, 27), (19, 21)]))
    assert linearize(gold, whole_words(37), "span") == [5, 9, "DNA", 17, 17, "DNA", 20, 21, "DNA", 25, 27, "DNA"]


def test_sub_words_by_hand() -> None:
    # <s> AL - AIN , United Arab Emirates 1996 - 12 - 06 </s>
    pieces = [[1, 2, 3], [4], [5], [6], [7], [8, 9, 10, 11, 12]]
    gold = mentions(("LOC", [(0, 1)]), ("LOC", [(2, 5)]), ("DATE", [(5, 6)]))
    assert linearize(gold, pieces, "word") == [1, "LOC", 5, 6, 7, "LOC", 8, "DATE"]
    assert linearize(gold, pieces, "bpe") == [1, 2, 3, "LOC", 5, 6, 7, "LOC", 8, 9, 10, 11, 12, "DATE"]
    assert linearize(gold, pieces, "span") == [1, 3, "LOC", 5, 7, "LOC", 8, 12, "DATE"]


def test_mentions_are_sorted_by_their_first_and_last_words() -> None:
    long_gap, nested, same = mentions(("A", [(0, 1), (4, 5)]), ("A", [(0, 3)]), ("B", [(0, 3)]))
    assert target_order([long_gap, same, nested]) == [nested, same, long_gap]


# ---------------------------------------------------------------------------------------------------------- round trips


@st.composite
def pieces_of(draw: Any, number: int) -> list[list[int]]:
    """Positions of the sub-words of words, with special tokens before, behind and sometimes within them."""
    position, pieces = 1, []
    for _ in range(number):
        own = []
        for _ in range(draw(st.integers(1, 3))):
            position += draw(st.sampled_from([0, 0, 0, 2]))  # a sentence in several rows
            own.append(position)
            position += 1
        pieces.append(own)
    return pieces


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@given(st.data())
def test_mentions_of_any_shape_come_back(representation: Representation, data: st.DataObject) -> None:
    gold = data.draw(sentences())
    pieces = data.draw(pieces_of(len(gold)))
    items = linearize(gold.mentions, pieces, representation)
    assert delinearize(items, pieces, representation) == target_order(gold.mentions)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@given(st.data())
def test_whatever_may_follow_is_mentions(representation: Representation, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 8))
    pieces = data.draw(pieces_of(number))
    reader = MentionReader(pieces, representation)
    items: list[int | str] = []
    for _ in range(data.draw(st.integers(0, 30))):
        options = reader.options()
        choices: list[int | str] = [*options.pieces, *(LABELS if options.label else ())]
        assert choices or options.end  # there is always a way on
        if not choices:
            break
        items.append(data.draw(st.sampled_from(choices)))
        reader.read(items[-1])
    while not reader.options().end:
        options = reader.options()
        items.append(LABELS[0] if options.label else options.pieces[0])
        reader.read(items[-1])
    # Valid mentions of the sentence, and by the rules of the reference's own metric.
    read = delinearize(items, pieces, representation)
    assert set(Sentence(["w"] * number, read).mentions) == set(read)
    for is_label, group in itertools.groupby(items, key=lambda item: isinstance(item, str)):
        if not is_label:
            own: list[Any] = list(group)
            if representation == "span":
                assert len(own) % 2 == 0
                assert own == sorted(own)
            else:
                assert own == sorted(set(own))
    # Each mention has one sequence alone.
    if len(read) == len(reader.mentions) and read == target_order(read):
        assert linearize(read, pieces, representation) == items


def test_what_is_no_sequence_of_mentions_is_refused() -> None:
    pieces = [[1], [2, 3], [4]]
    faults: list[tuple[Representation, list[Any]]] = [
        ("word", ["A"]),  # nothing has the label
        ("word", [2, 1, "A"]),
        ("word", [1, 1, "A"]),
        ("word", [3, "A"]),  # not the first sub-word
        ("word", [9, "A"]),
        ("word", [4, "A", 1, "A"]),  # out of order
        ("bpe", [2, "A"]),  # half a word
        ("bpe", [2, 4, "A"]),
        ("span", [1, "A"]),  # without its end
        ("span", [2, 2, "A"]),  # ends within a word
        ("span", [4, 3, "A"]),
        ("span", [1, 1, 2, 3, "A"]),  # the two spans are one
    ]
    for representation, items in faults:
        with pytest.raises(AssertionError, match="cannot follow here"):
            delinearize(items, pieces, representation)
    with pytest.raises(AssertionError, match="no label"):
        delinearize([1], pieces, "word")
    assert delinearize([1, "A", 1, "A"], pieces, "word") == mentions(("A", [(0, 1)]))


@pytest.mark.corpora
@pytest.mark.parametrize("kind", ["nested", "discontinuous"])
def test_all_of_genia_survives(corpora: Path, kind: str) -> None:
    number = 0
    for sentence in entaug.stream(corpora / "genia" / f"{kind}-jsonl" / "test.jsonl"):
        pieces = whole_words(len(sentence))
        for representation in REPRESENTATIONS:
            items = linearize(sentence.mentions, pieces, representation)
            assert set(delinearize(items, pieces, representation)) == set(sentence.mentions)
            assert len(items) < most_items(len(sentence))
        number += len(sentence.mentions)
    assert number > 5000
