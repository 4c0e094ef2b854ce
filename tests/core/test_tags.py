from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("seqeval")

from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

from conftest import examples
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import SCHEMES, SchemeDetector, decode, encode, flatten, is_tag, position_tags
from entaug.errors import LossError, TagError, UnknownNameError
from helpers.strategies import sentences

SEQEVAL = {"IOB1": IOB1, "IOB2": IOB2, "IOBES": IOBES, "BILOU": BILOU, "BMES": IOBES}  # which has I for M


def by_seqeval(tags: list[str], scheme: str) -> list[tuple[str, int, int]]:
    """The entities that seqeval's strict mode sees."""
    if scheme == "BMES":
        tags = [f"I{tag[1:]}" if tag.startswith("M-") else tag for tag in tags]
    [found] = Entities([tags], SEQEVAL[scheme]).entities
    return [(e.tag, e.start, e.end) for e in found]


def plain(mentions: tuple[Mention, ...]) -> list[tuple[str, int, int]]:
    return [(m.label, m.start, m.end) for m in mentions]


@settings(max_examples=examples(1000))
@given(sentences(flat=True), st.sampled_from(SCHEMES))
def test_encode_then_decode_gives_the_mentions_and_seqeval_agrees(sentence: Sentence, scheme: str) -> None:
    tags = sentence.iob(scheme)
    assert decode(tags, scheme) == sentence.mentions
    assert by_seqeval(tags, scheme) == plain(sentence.mentions)


@settings(max_examples=examples(1000))
@given(
    st.lists(
        st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "L-X", "U-X", "B-Y", "I-Y", "E-Y", "L-Y", "M-X", "M-Y"]),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(SCHEMES),
)
def test_decode_accepts_just_what_encode_writes(tags: list[str], scheme: str) -> None:
    try:
        mentions = decode(tags, scheme)
    except TagError:
        # refused: then no sentence is written so
        repaired: Counter[str] = Counter()
        try:
            mentions = decode(tags, scheme, repaired)
        except TagError:
            return  # a letter that the scheme does not have
        assert repaired.total() >= 1
        assert encode(len(tags), mentions, scheme) != tags
        return
    assert encode(len(tags), mentions, scheme) == tags


@given(sentences(flat=True))
def test_tags_without_prefixes_give_the_mentions_or_are_refused(sentence: Sentence) -> None:
    pairs = zip(sentence.mentions, sentence.mentions[1:], strict=False)
    if any(is_tag(m.label) for m in sentence.mentions) or any(
        a.end == b.start and a.label == b.label for a, b in pairs
    ):
        with pytest.raises(LossError, match="would be read as"):
            sentence.iob("IO")
        return
    tags = sentence.iob("io")
    assert tags == [tag[2:] or "O" for tag in sentence.iob()]
    assert decode(tags, "IO") == sentence.mentions


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O PER PER O O LOC O", "IO"),
        ("O person-actor O O art-film O", "IO"),
        ("O O O PER", "IOB2"),  # one word: it may be a fault
        ("PER PER O LOC", "IOB2"),  # few O: parts of speech, or a scheme that must be named
        ("O O O B_PER I_PER O", "IOB2"),
        ("O O O PER-B PER-I O", "IOB2"),
        ("O O O b-per i-per O", "IOB2"),
        ("O O O B I O", "IOB2"),
        ("O O O (PER* *) O", "IOB2"),
        ("O O O _ _ O", "IOB2"),
        ("O O O PER LOC O B-PER", "IOB2"),
    ],
)
def test_tags_without_prefixes_are_detected(tags: str, scheme: str) -> None:
    detector = SchemeDetector()
    detector.update(tags.split())
    assert (detector.scheme() == "IO") == (scheme == "IO")


def test_a_prefix_is_no_label_of_tags_without_prefixes() -> None:
    with pytest.raises(TagError, match=r"token 2: unknown tag 'B-X'.*scheme"):
        decode(["O", "B-X"], "IO")


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1, max_size=8))
def test_repair_reads_as_conlleval_does(tags: list[str]) -> None:
    repaired = decode(tags, "IOB2", Counter())
    assert plain(repaired) == [(label, start, end + 1) for label, start, end in get_entities(tags)]


def test_schemes_by_hand() -> None:
    s = Sentence(list("abcdef"), [Mention("X", [(0, 3)]), Mention("X", [(3, 4)]), Mention("Y", [(5, 6)])])
    assert s.iob("IOB1") == ["I-X", "I-X", "I-X", "B-X", "O", "I-Y"]
    assert s.iob("IOB2") == ["B-X", "I-X", "I-X", "B-X", "O", "B-Y"]
    assert s.iob("IOBES") == ["B-X", "I-X", "E-X", "S-X", "O", "S-Y"]
    assert s.iob("bilou") == ["B-X", "I-X", "L-X", "U-X", "O", "U-Y"]
    assert s.iob("bmeos") == ["B-X", "M-X", "E-X", "S-X", "O", "S-Y"]
    assert decode(["B-X", "M-X", "M-X", "E-X", "S-X", "O", "B-Y", "E-Y"], "BMES") == (
        Mention("X", [(0, 4)]),
        Mention("X", [(4, 5)]),
        Mention("Y", [(6, 8)]),
    )


def test_adjacent_mentions_of_one_type_stay_two() -> None:
    assert len(decode(["B-X", "B-X", "I-X"])) == 2


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        (["O", "I-X"], "IOB2", "token 2: I-X after O: there is no X mention"),
        (["I-X"], "IOB2", "I-X at the start of the sentence"),
        (["B-Y", "I-X"], "IOB2", "no X mention"),
        (["B-X", "E-X"], "IOB2", "unknown tag 'E-X'"),
        (["NNP"], "IOB2", "unknown tag 'NNP'"),
        (["Tag"], "IOB2", "or remove a heading"),
        (["B"], "IOB2", "unknown tag 'B'"),
        (["B-"], "IOB2", "unknown tag 'B-'"),
        (["o"], "IOB2", "unknown tag 'o'"),
        ([""], "IOB2", "unknown tag ''"),
        (["O", "B-X"], "IOB1", "token 2: B-X where IOB1 has I-X"),
        (["B-X", "O"], "IOBES", "O where I-X or E-X must follow"),
        (["B-X"], "IOBES", "ends inside a X mention"),
        (["E-X"], "IOBES", "no X mention"),
        (["L-X"], "BILOU", "no X mention"),
        (["B-X", "O"], "BMES", "O where M-X or E-X must follow"),
        (["M-X", "E-X"], "BMES", "M-X: there is no X mention to continue"),
        (["B-X", "I-X"], "BMES", "unknown tag 'I-X'"),
        (["B-X", "M-X"], "IOBES", "unknown tag 'M-X'"),
    ],
)
def test_faults_are_named(tags: list[str], scheme: str, message: str) -> None:
    with pytest.raises(TagError) as caught:
        decode(tags, scheme)
    assert message in str(caught.value)


def test_unknown_scheme_suggests() -> None:
    with pytest.raises(UnknownNameError, match="unknown tag scheme 'IOB3'; did you mean"):
        decode(["O"], "IOB3")


def test_nested_cannot_be_tags_unless_told_what_to_keep() -> None:
    outer, inner, gap = Mention("O", [(0, 3)]), Mention("I", [(1, 2)]), Mention("G", [(3, 4), (5, 6)])
    s = Sentence(list("abcdef"), [outer, inner, gap])
    with pytest.raises(LossError, match="nested"):
        s.iob()
    with pytest.raises(LossError, match="discontinuous"):
        Sentence(list("abcdef"), [gap]).iob()
    assert s.iob(overlap="outermost") == ["B-O", "I-O", "I-O", "O", "O", "O"]
    assert s.iob(overlap="innermost") == ["O", "B-I", "O", "O", "O", "O"]
    assert flatten([outer, gap], "outermost") == [outer]


def test_position_tags_hold_all_mentions_of_a_token() -> None:
    s = Sentence(list("abcd"), [Mention("X", [(0, 1), (2, 3)]), Mention("Y", [(2, 4)])])
    assert position_tags(len(s), s.mentions) == ["B-X", "O", "B-Y|I-X", "I-Y"]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "I-X", "I-X", "O"], "IOB1"),
        (["O", "B-X", "O"], "IOB2"),
        (["B-X", "I-X", "O", "B-Y", "I-X"], "IOB2"),
        (["O", "S-X"], "IOBES"),
        (["B-X", "E-X"], "IOBES"),
        (["B-X", "L-X"], "BILOU"),
        (["U-X"], "BILOU"),
        (["B-X", "M-X", "E-X"], "BMES"),
        (["S-X", "O", "B-Y", "M-Y", "M-Y", "E-Y"], "BMES"),
        (["O", "O"], "IOB2"),
    ],
)
def test_scheme_is_found_by_looking(tags: list[str], scheme: str) -> None:
    evidence = SchemeDetector()
    evidence.update(tags)
    assert evidence.scheme() == scheme


def test_iobes_and_bmes_are_told_apart_by_longer_mentions() -> None:
    evidence = SchemeDetector()
    assert not evidence.is_decided
    evidence.update(["S-X", "B-X", "E-X"])
    assert (evidence.has_mentions, evidence.is_decided, evidence.scheme()) == (True, False, "IOBES")
    evidence.update(["B-X", "M-X", "E-X"])
    assert (evidence.is_decided, evidence.scheme()) == (True, "BMES")


def test_is_tag() -> None:
    found = [is_tag(t) for t in ["O", "B-x", "I-a-b", "M-x", "B-", "B", "NN", "-", "", "o"]]
    assert found == [True] * 4 + [False] * 6
