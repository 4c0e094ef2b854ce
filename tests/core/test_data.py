"""The core: every rewriting goes through `edit` and `reorder`, so these hold the labels of every method."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.edits import PLACEHOLDER, Edit
from entaug.core.mentions import Mention
from entaug.errors import EditError, InputError, TagError
from helpers.strategies import edited, sentences

ODD: Any = 1.5
MANY = settings(max_examples=examples(2000))


def runs(positions: list[int]) -> tuple[tuple[int, int], ...]:
    """Positions as maximal ranges."""
    groups = groupby(enumerate(sorted(positions)), key=lambda pair: pair[1] - pair[0])
    ranges = [[place for _, place in group] for _, group in groups]
    return tuple((r[0], r[-1] + 1) for r in ranges)


def reference_edit(
    sentence: Sentence, edits: list[Edit]
) -> tuple[list[str], set[tuple[str, tuple[tuple[int, int], ...]]]]:
    """Edits done the slow way: every token knows where it comes from, a mention is a set of tokens.

    Raises EditError where a mention would be cut.
    """
    # The new sentence as a list of (token, origin): an old position, or the edit that brought it.
    origin: list[tuple[str, object]] = []
    place = 0
    for number, edit in sorted(enumerate(edits), key=lambda pair: (pair[1].start, pair[1].end)):
        origin += [(sentence.tokens[i], i) for i in range(place, edit.start)]
        plain = edit.mentions is None and len(edit.tokens) == edit.end - edit.start
        origin += [(token, edit.start + j if plain else ("edit", number)) for j, token in enumerate(edit.tokens)]
        place = edit.end
    origin += [(sentence.tokens[i], i) for i in range(place, len(sentence))]

    found = set()
    for mention in sentence.mentions:
        owners: set[object] = set(mention.positions())
        gone = False
        for number, edit in enumerate(edits):
            if edit.mentions is None and len(edit.tokens) == edit.end - edit.start:
                continue
            touched = set(range(edit.start, edit.end))
            if touched and touched >= set(range(mention.start, mention.end)):
                gone = True
            elif touched & set(mention.positions()):
                if not any(touched <= set(range(s, e)) for s, e in mention.spans):
                    raise EditError("cut")
                owners -= touched
                owners.add(("edit", number))
            elif not touched and any(s < edit.start < e for s, e in mention.spans):
                owners.add(("edit", number))
        if gone:
            continue
        for s, e in mention.spans:
            inside = {number for number, edit in enumerate(edits) if s <= edit.start and edit.end <= e}
            keeps = [
                o
                for _, o in origin
                if (o in owners and isinstance(o, int) and s <= o < e)
                or (isinstance(o, tuple) and o[1] in inside and o in owners)
            ]
            if not keeps:
                raise EditError("a span would vanish")
        found.add((mention.label, runs([i for i, (_, o) in enumerate(origin) if o in owners])))
    for number, edit in enumerate(edits):
        for mention in edit.mentions or ():
            first = next(i for i, (_, o) in enumerate(origin) if o == ("edit", number))
            found.add((mention.label, tuple((s + first, e + first) for s, e in mention.spans)))
    return [token for token, _ in origin], found


@MANY
@given(edited())
def test_edit_agrees_with_the_slow_reference(case: tuple[Sentence, list[Edit]]) -> None:
    sentence, edits = case
    try:
        tokens, mentions = reference_edit(sentence, edits)
        wanted = None if not tokens else (tokens, mentions)
    except EditError:
        wanted = None
    try:
        got = sentence.edit(edits)
    except (EditError, InputError) as error:
        # Two mentions may come to cover the same tokens with one label: a sentence cannot hold that.
        assert wanted is None or "twice" in str(error)  # noqa: PT017
        return
    assert wanted is not None
    assert list(got.tokens) == wanted[0]
    assert {(m.label, m.spans) for m in got.mentions} == wanted[1]


@MANY
@given(edited())
def test_untouched_mentions_keep_words_and_columns_follow(case: tuple[Sentence, list[Edit]]) -> None:
    sentence, edits = case
    try:
        got = sentence.edit(edits)
    except (EditError, InputError):
        return
    touched = [m for m in sentence.mentions if any(e.start < m.end and e.end > m.start for e in edits)]
    kept = [(m.label, sentence.mention_tokens(m)) for m in sentence.mentions if m not in touched]
    now = [(m.label, got.mention_tokens(m)) for m in got.mentions]
    assert all(now.count(one) >= kept.count(one) for one in kept)
    new_tokens = sum(len(e.tokens) for e in edits)
    for name, values in got.columns.items():
        assert len(values) == len(got)
        assert values.count(PLACEHOLDER) == new_tokens
        assert [v for v in values if v != PLACEHOLDER] == [
            v for i, v in enumerate(sentence.columns[name]) if not any(e.start <= i < e.end for e in edits)
        ]
    if got.spaces is not None:
        assert len(got.spaces) == len(got)


@given(sentences())
def test_no_edits_is_identity(sentence: Sentence) -> None:
    assert sentence.edit([]) is sentence
    assert sentence.reorder(range(len(sentence))) == sentence


@MANY
@given(sentences(), st.data())
def test_reorder_moves_mentions_with_their_tokens(sentence: Sentence, data: st.DataObject) -> None:
    permutation = data.draw(st.permutations(range(len(sentence))))
    try:
        got = sentence.reorder(permutation)
    except EditError:
        # Refused only where some span really would be torn.
        place = {old: new for new, old in enumerate(permutation)}
        assert any(len(runs([place[i] for i in range(s, e)])) > 1 for m in sentence.mentions for s, e in m.spans)
        return
    except InputError as error:
        assert "twice" in str(error)  # noqa: PT017
        return
    assert list(got.tokens) == [sentence.tokens[old] for old in permutation]
    before = sorted((m.label, sorted(m.positions())) for m in sentence.mentions)
    after = sorted((m.label, sorted(permutation[i] for i in m.positions())) for m in got.mentions)
    assert before == after


@given(sentences())
def test_values_pickle_copy_and_hash(sentence: Sentence) -> None:
    again = pickle.loads(pickle.dumps(sentence))  # noqa: S301
    assert again == sentence == copy.deepcopy(sentence)
    assert hash(again) == hash(sentence)
    assert again.fingerprint() == sentence.fingerprint()


@given(sentences())
def test_segments_cover_the_sentence_and_share_their_mentions(sentence: Sentence) -> None:
    segments = sentence.segments()
    assert [i for start, end in segments for i in range(start, end)] == list(range(len(sentence)))
    held = [frozenset(m for m in sentence.mentions if i in m.positions()) for i in range(len(sentence))]
    assert all(len(set(held[start:end])) == 1 for start, end in segments)
    assert sentence.outside_mask() == [not h for h in held]


def test_edit_by_hand() -> None:
    #            0     1     2    3      4    5    6
    tokens = "Ada Byron met New York fans ."
    s = Sentence(
        tokens.split(),
        [Mention("PER", [(0, 2)]), Mention("LOC", [(3, 5)]), Mention("GRP", [(3, 6)])],
        columns={"pos": tuple("abcdefg")},
        spaces=(" ", " ", " ", " ", " ", "", ""),
    )
    grown = s.edit([Edit(4, 5, ["Orleans", "City"])])
    assert [(m.label, grown.mention_tokens(m)) for m in grown.mentions] == [
        ("PER", ("Ada", "Byron")),
        ("LOC", ("New", "Orleans", "City")),
        ("GRP", ("New", "Orleans", "City", "fans")),
    ]
    assert grown.columns["pos"] == ("a", "b", "c", "d", PLACEHOLDER, PLACEHOLDER, "f", "g")
    assert grown.text == "Ada Byron met New Orleans City fans."
    swapped = s.edit([Edit(3, 5, ["Rome"], [Mention("LOC", [(0, 1)])])])
    assert [(m.label, swapped.mention_tokens(m)) for m in swapped.mentions][1:] == [
        ("LOC", ("Rome",)),
        ("GRP", ("Rome", "fans")),
    ]
    gone = s.edit([Edit(0, 3, ["They", "saw"])])
    assert [m.label for m in gone.mentions] == ["LOC", "GRP"]
    before_and_after = s.edit([Edit(0, 0, ["Then"]), Edit(2, 2, ["gladly"])])
    assert before_and_after.mention_tokens(before_and_after.mentions[0]) == ("Ada", "Byron")
    assert before_and_after.text == "Then Ada Byron gladly met New York fans."
    inside = s.edit([Edit(1, 1, ["Lovelace"])])
    assert inside.mention_tokens(inside.mentions[0]) == ("Ada", "Lovelace", "Byron")
    with pytest.raises(EditError, match="cut mention PER"):
        s.edit([Edit(1, 3, ["saw"])])
    with pytest.raises(EditError, match="overlap"):
        s.edit([Edit(1, 3, ["a", "b"]), Edit(2, 4, ["c", "d"])])
    with pytest.raises(EditError, match="leaves the sentence"):
        s.edit([Edit(6, 8, [])])
    with pytest.raises(EditError, match="every token"):
        s.edit([Edit(0, 7, [])])


def test_tags_may_be_of_numpy_or_read_once() -> None:
    wanted = Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])
    assert Sentence.from_iob(np.array(["Ada", "sang"]), np.array(["B-PER", "O"])) == wanted
    assert Sentence.from_iob(["Ada", "sang"], iter(["B-PER", "O"])) == wanted


def test_spans_may_be_of_numpy() -> None:
    mention = Mention("X", np.array([[0, 1], [3, 4]]))
    assert repr(mention) == repr(Mention("X", ((0, 1), (3, 4))))


def test_edit_in_a_gap_keeps_and_joins() -> None:
    s = Sentence("left and right arm".split(), [Mention("BODY", [(0, 1), (3, 4)])])
    longer = s.edit([Edit(1, 3, ["or", "the", "right"])])
    assert longer.mentions[0].spans == ((0, 1), (4, 5))
    joined = s.edit([Edit(1, 3, [])])
    assert joined.mentions[0].spans == ((0, 2),)
    with pytest.raises(EditError, match="part of mention"):
        s.edit([Edit(3, 4, [])])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sentence([]), "at least one token"),
        (lambda: Sentence(["a", ""]), "token 2 is empty"),
        (lambda: Sentence("abc"), "not a string"),
        (lambda: Sentence(["a", ODD]), "must be a string"),
        (lambda: Sentence(["a"], [Mention("X", [(0, 2)])]), "out of range: 1 tokens; let spans count tokens"),
        (lambda: Sentence(["a"], [Mention("X", [(0, 1)])] * 2), "twice"),
        (lambda: Sentence(["a"], columns={"1": ()}), "0 values for 1 tokens"),
        (lambda: Mention("X", [(1, 1)]), "reversed, empty"),
        (lambda: Mention("X", [(2, 1)]), "reversed, empty"),
        (lambda: Mention("X", [(-1, 1)]), "negative"),
        (lambda: Mention("X", [(2, 4), (3, 5)]), "overlaps"),
        (lambda: Mention("X", [(0, ODD)]), "two integers"),
        (lambda: Mention("X", [(True, 2)]), "two integers"),
        (lambda: Mention("X", [ODD]), "pair"),
        (lambda: Mention("X", []), "at least one span"),
        (lambda: Mention("", [(0, 1)]), "non-empty string"),
    ],
)
def test_what_is_not_valid_cannot_be_made(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_touching_spans_are_one() -> None:
    assert Mention("X", [(0, 2), (2, 3)]) == Mention("X", [(0, 3)])
    assert Mention("X", [[0, 2]]).spans == ((0, 2),)


def test_corpus() -> None:
    one = Sentence(["Rome"], [Mention("LOC", [(0, 1)])])
    corpus = Corpus([one, one], "a.conll")
    assert corpus.labels == ("LOC",)
    assert corpus[:1] == Corpus([one])
    assert corpus.mention_counts() == {"LOC": 2}


def test_an_edit_may_say_how_its_tokens_are_spaced() -> None:
    sentence = Sentence("It is .".split(), spaces=(" ", "", ""))
    assert sentence.edit([Edit(1, 2, ("was", "n't"), None, ("",))]).text == "It wasn't."
    assert sentence.edit([Edit(1, 2, ("was", "n't"), None, (" ",))]).text == "It was n't."
    assert sentence.edit([Edit(1, 2, ("was", "n't"))]).text == "It wasn't.", "as in print by default"
    with pytest.raises(EditError, match="2 spaces between 2 tokens"):
        sentence.edit([Edit(1, 2, ("was", "n't"), None, ("", ""))])


def test_a_sentence_from_tags_equals_one_from_mentions() -> None:
    sentence = Sentence.from_iob("Ada Byron left Rome".split(), ["B-PER", "I-PER", "O", "B-LOC"], id="s1")
    assert sentence == Sentence(
        "Ada Byron left Rome".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(3, 4)])], id="s1"
    )
    assert Sentence.from_iob(["Ada", "Byron"], ["B-PER", "L-PER"], "BILOU").iob("IOB1") == ["I-PER", "I-PER"]
    with pytest.raises(InputError, match="1 tags for 2 tokens"):
        Sentence.from_iob(["Ada", "left"], ["O"])
    with pytest.raises(TagError):
        Sentence.from_iob(["Ada", "left"], ["O", "I-PER"])


@pytest.mark.parametrize(
    ("mentions", "shown"),
    [
        ([], "a b c d"),
        ([("X", [(0, 2)]), ("Y", [(3, 4)])], "[a b]X c [d]Y"),
        ([("X", [(0, 4)]), ("Y", [(1, 2)]), ("Z", [(1, 2)])], "[a [[b]Z]Y c d]X"),
        ([("X", [(0, 1), (2, 3)]), ("Y", [(1, 3)])], "[a]X#1 [b [c]X#1]Y d"),
        ([("X", [(0, 2)]), ("Y", [(1, 3)])], "[#1 a [#2 b]X#1 c]Y#2 d"),
    ],
)
def test_a_sentence_prints_with_its_mentions(mentions: list[tuple[str, list[tuple[int, int]]]], shown: str) -> None:
    assert str(Sentence("a b c d".split(), [Mention(label, spans) for label, spans in mentions])) == shown


@given(sentences())
def test_a_dictionary_holds_the_whole_sentence(sentence: Sentence) -> None:
    sentence = sentence.with_(id="s1", meta={"source": {"page": 3}})
    assert Sentence.from_dict(json.loads(json.dumps(sentence.to_dict()))) == sentence


def test_a_dictionary_that_is_no_sentence_is_refused() -> None:
    for data in ({}, {"tokens": ["a"], "labels": []}, {"tokens": ["a"], "mentions": [{"label": "X"}]}):
        with pytest.raises(InputError):
            Sentence.from_dict(data)


def test_characters_of_chinese_are_printed_as_they_are_written() -> None:
    sentence = Sentence([*"我住在北京", "Hilton", "。"], [Mention("LOC", [(3, 5)])])
    assert str(sentence) == "我住在[北京]LOC Hilton。"
    assert str(Sentence([*"王小", "20"], [Mention("PER", [(0, 2)])])) == "[王小]PER 20", (
        "where the label ends can be seen"
    )
    words = Sentence(["我", "住在", "北京"], [Mention("LOC", [(2, 3)])])
    assert str(words) == "我 住在 [北京]LOC", "spaces tell where the words of the corpus are"
