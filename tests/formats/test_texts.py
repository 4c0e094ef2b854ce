"""Texts with character offsets as sentences, and back: by hand, and for any text."""

from __future__ import annotations

from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import examples
from entaug import Mention, Sentence
from entaug.core.data import split_fields
from entaug.core.edits import Edit
from entaug.core.mentions import Span
from entaug.errors import InputError, ParameterError
from entaug.formats.base import BEFORE, ENTITY_FIELDS, ReadReport
from entaug.formats.text import (
    CharMention,
    Document,
    OffsetOptions,
    SegmentationOptions,
    _cuts,
    _load_pipeline,
    group_by_document,
    join_sentences,
    locate_tokens,
    split_document,
)
from helpers.counting import count_lines

pytest.importorskip("spacy")

_TEXT = "  Ada Byron-King sang.\nIn New York, of e.g. 5 U.S. songs. She left!  \n"
_ACROSS = (_TEXT.index("songs. She"), _TEXT.index(" left!"))
STORY = Document(
    _TEXT,
    [CharMention("PER", ((2, 11),), {"note": "n"}), CharMention("LOC", ((26, 34),)), CharMention("X", (_ACROSS,))],
    "d1",
    {"source": "a book"},
)


def test_texts_are_cut_and_come_back() -> None:
    lines = split_document(
        STORY._replace(mentions=STORY.mentions[:2]), SegmentationOptions(split="lines", misaligned="cut"), ReadReport()
    )
    assert [s.id for s in lines] == ["d1-1", "d1-2"]
    assert lines[0].tokens == ("Ada", "Byron", "-", "King", "sang", ".")
    assert lines[0].mentions == (Mention("PER", [(0, 2)]),)
    assert lines[0].fields["source"] == "a book"
    assert lines[0].fields[ENTITY_FIELDS] == [{"note": "n"}]
    found = split_document(
        STORY._replace(mentions=STORY.mentions[:2]),
        SegmentationOptions(split="sentences", misaligned="cut"),
        ReadReport(),
    )
    assert [s.tokens[0] for s in found] == ["Ada", "In", "She"]
    assert found[1].tokens[5:9] == ("e.g.", "5", "U.S.", "songs")
    for sentences in (lines, found):
        assert join_sentences(sentences).text == STORY.text
        assert join_sentences(sentences)[1:4] == ([*STORY.mentions[:2]], "d1", {"source": "a book"})


def test_no_sentence_begins_within_a_mention() -> None:
    found = split_document(STORY, SegmentationOptions(split="sentences", misaligned="cut"), ReadReport())
    assert [s.tokens[0] for s in found] == ["Ada", "In"]
    assert join_sentences(found).mentions == [*STORY.mentions]
    apart = Document("a b\nc d\ne", [CharMention("X", ((0, 1), (6, 7)))], "d")
    assert [s.tokens for s in split_document(apart, SegmentationOptions(split="lines"), ReadReport())] == [
        ("a", "b", "c", "d"),
        ("e",),
    ]


def test_what_is_misaligned() -> None:
    with pytest.raises(InputError, match=r"mention PER 'Ada Byron' \(2-11\) .* within the token 'Byron-King'") as told:
        split_document(STORY._replace(tokens=STORY.text.split()), SegmentationOptions(), ReadReport())
    assert "`misaligned='cut'`" in str(told.value)
    reading = ReadReport()
    [s] = split_document(STORY._replace(tokens=STORY.text.split()), SegmentationOptions(misaligned="skip"), reading)
    assert [m.label for m in s.mentions] == ["X"], "that of New York, ends within a token too"
    assert any("'Ada Byron' (2-11)" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("text", "span", "remedy"),
    [
        ("李明在北京大学工作", (0, 2), "Chinese and Japanese: pass `language='zh'` for a token each character"),
        ("王さんはトヨタで", (4, 7), "Chinese and Japanese: pass `language='zh'`"),
        ("สมชายอยู่ที่ภูเก็ต", (0, 5), "Thai: pass `language='th'`"),
    ],
)
def test_scripts_without_spaces_have_a_remedy_of_their_own(text: str, span: Span, remedy: str) -> None:
    document = Document(text, [CharMention("X", (span,))])
    with pytest.raises(InputError) as caught:
        split_document(document, OffsetOptions(), ReadReport())
    assert remedy in str(caught.value.remedy)


def test_what_a_language_needs_is_told() -> None:
    for language, needs in (("ja", "sudachipy"), ("ko", "mecab-ko"), ("th", "pythainlp"), ("vi", "pyvi")):
        try:
            split_document(Document("a"), SegmentationOptions(language=language), ReadReport())
        except ParameterError as error:
            assert "need another library" in str(error)  # noqa: PT017 - where it is installed, there is no error
            assert needs in str(error.remedy)  # noqa: PT017
    with pytest.raises(ParameterError, match="spaCy has no rules for the language 'tlh'"):
        split_document(Document("a"), SegmentationOptions(language="tlh"), ReadReport())


@pytest.mark.parametrize(
    ("span", "message"),
    [((3, 3), "is empty or outside"), ((-1, 2), "outside"), ((0, 99), "outside"), ((3, 4), "white space alone")],
)
def test_places_that_cannot_be(span: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        split_document(Document("Ada sang", [CharMention("X", (span,))]), SegmentationOptions(), ReadReport())


def test_tokens_may_begin_and_end_with_white_space() -> None:
    text = Document(" a b  ", [CharMention("X", ((0, 2),)), CharMention("Y", ((3, 5),))], tokens=[" a", "b "])
    for split in ("none", "lines"):
        reading = ReadReport()
        [s] = split_document(text, SegmentationOptions(split=split), reading)
        assert (s.tokens, s.spaces) == ((" a", "b "), (" ", " "))
        assert s.mentions == (Mention("X", [(0, 1)]), Mention("Y", [(1, 2)]))
        assert not reading.notes
    assert locate_tokens(["a", "b"], "a, b") is None
    assert locate_tokens([], "") is None
    [s] = split_document(
        text._replace(tokens=None, token_spans=[(1, 2), (3, 4)], mentions=()), SegmentationOptions(), ReadReport()
    )
    assert (s.tokens, s.fields, s.spaces) == (("a", "b"), {BEFORE: " "}, (" ", "  "))


def test_white_space_at_edges_is_left_out_and_counted() -> None:
    reading = ReadReport()
    [s] = split_document(Document("Ada sang", [CharMention("X", ((0, 4),))]), SegmentationOptions(), reading)
    assert s.mentions == (Mention("X", [(0, 1)]),)
    assert reading.notes.total() == 1


def test_what_is_given_twice() -> None:
    twice = Document("Ada", [CharMention("X", ((0, 3),)), CharMention("X", ((0, 3),))])
    with pytest.raises(InputError, match="given twice"):
        split_document(twice, SegmentationOptions(), ReadReport())
    reading = ReadReport(repair=True)
    assert len(split_document(twice, SegmentationOptions(), reading)[0].mentions) == 1
    assert reading.repaired.total() == 1


def test_nothing_but_white_space_is_no_sentence() -> None:
    assert split_document(Document(" \n\t"), SegmentationOptions(), ReadReport()) == []
    with pytest.raises(ParameterError, match="no rules for the language 'qq'"):
        split_document(Document("x"), SegmentationOptions("qq"), ReadReport())
    with pytest.raises(ParameterError, match="split must be one of"):
        SegmentationOptions(split="words")  # type: ignore[arg-type]


def test_new_words_are_spaced_as_in_print_and_new_texts_are_their_own() -> None:
    sentences = split_document(
        Document("Ada sang. She left.", id="d"), SegmentationOptions(split="sentences"), ReadReport()
    )
    new = [
        s.edit([Edit(0, 1, ["Bo", "Li"])]).with_(
            id=f"n{i}", **split_fields({**s.fields, "entaug": {"method": "x", "copy": 1}})
        )
        for i, s in enumerate(sentences)
    ]
    texts = [join_sentences(group) for group in group_by_document([*sentences, *new])]
    assert [t.text for t in texts] == ["Ada sang. She left.", "Bo Li sang. Bo Li left."]
    bare = [Sentence(["Oh", "(", "no", ")", "."]), Sentence(["Well", "!"])]
    assert [join_sentences(group).text for group in group_by_document(bare)] == ["Oh (no).", "Well!"]


PIECES = st.sampled_from(
    ["Ada", " ", "\n", "é", "e\u0301", "👩‍🔬", "ﷺ", "\u200b", "\xa0", ".", "don't", "-", "東京", "\t"]
)


@st.composite
def texts(draw: Any) -> Document:
    pieces = draw(st.lists(PIECES, min_size=1, max_size=20))
    text = "".join(pieces)
    edges = sorted({sum(map(len, pieces[:i])) for i in range(len(pieces) + 1)})
    found = {}
    for label in "XYZ"[: draw(st.integers(0, 3))]:
        places = sorted(draw(st.sets(st.sampled_from(edges), min_size=2, max_size=4)))
        spans = tuple(pairwise(places)) if len(places) == 2 else ((places[0], places[1]), (places[-2], places[-1]))
        if len(places) == 3:
            spans = ((places[0], places[2]),)
        if all(text[a:b] == text[a:b].strip() != "" for a, b in spans) and all(
            b < a for (_, b), (a, _) in pairwise(spans)
        ):
            found[label, spans] = CharMention(label, spans)
    return Document(text, list(found.values()), "d")


@given(texts(), st.sampled_from(["none", "lines", "sentences"]))
@settings(max_examples=examples(200), deadline=None)
def test_any_text_comes_back(text: Document, split: Any) -> None:
    sentences = split_document(text, SegmentationOptions(split=split, misaligned="cut"), ReadReport())
    assert bool(sentences) == bool(text.text.strip())
    if sentences:
        [group] = group_by_document(sentences)
        again = join_sentences(group)
        assert (again.text, again.id) == (text.text, "d")
        key = lambda m: (m.label, m.spans)  # noqa: E731
        assert sorted(again.mentions, key=key) == sorted(text.mentions, key=key)


def test_sentences_begin_where_the_file_says() -> None:
    text = Document("  Ada sang. She left.\nOh", [CharMention("X", ((6, 15),))], "d")
    found = split_document(text._replace(sentence_starts=(2, 12, 16)), SegmentationOptions(split="lines"), ReadReport())
    assert [s.text for s in found] == ["Ada sang. She ", "left.\nOh"], "not within a mention, and nowhere else"
    assert [
        s.text
        for s in split_document(text._replace(sentence_starts=()), SegmentationOptions(split="lines"), ReadReport())
    ] == [text.text.strip()]
    assert (
        len(split_document(text._replace(sentence_starts=(99,), mentions=()), SegmentationOptions(), ReadReport())) == 1
    )


@pytest.mark.parametrize("span", [(0, 99), (3, 4), (0, 2), (0, 3)])
def test_errors_name_the_line_of_a_mention(span: tuple[int, int]) -> None:
    mentions = [CharMention("X", ((0, 3),)), CharMention("X", (span,))]
    with pytest.raises(InputError) as told:
        split_document(Document("Ada sang", mentions, mention_lines=[7, 9]), SegmentationOptions(), ReadReport())
    assert told.value.line == 9


def test_a_text_of_many_sentences_takes_work_by_its_length() -> None:
    def work(n: int) -> None:
        text = Document("Ada sang.\n" * n, [CharMention("X", ((10 * i, 10 * i + 3),)) for i in range(n)])
        assert sum(len(s.mentions) for s in split_document(text, SegmentationOptions(split="lines"), ReadReport())) == n

    work(100)
    assert count_lines(lambda: work(800)) < 9 * count_lines(lambda: work(100))


TRICKY = "Ada x:) ) :) a.m. 10km U.S. sang. ! \" (Bo ?) don't e.g. !” »Bo« -- ] !]".split()
SPOKEN = st.lists(st.sampled_from([*TRICKY, "\n", ""]), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=examples(300))
@given(SPOKEN)
def test_tokens_and_sentences_are_those_of_spacy_as_it_comes(text: str) -> None:
    # spaCy is asked for less here than it would find out by itself: that must not change what it finds.
    import spacy

    nlp: Any = _as_it_comes()
    doc = nlp(text)
    wanted = [[token.text for token in sentence if not token.is_space] for sentence in doc.sents]
    flat = [word for words in wanted for word in words]
    assert nlp.vocab.lex_attr_getters.keys() > _load_pipeline("en")[0].vocab.lex_attr_getters.keys()
    assert [
        word for s in split_document(Document(text), SegmentationOptions(), ReadReport()) for word in s.tokens
    ] == flat
    # White space is no token of ours, so the finder of sentences is shown the words alone.
    words = [token.text for token in doc if not token.is_space]
    shown = nlp.get_pipe("sentencizer")(spacy.tokens.Doc(nlp.vocab, words=words))
    theirs = {sentence.start for sentence in shown.sents}
    sentences = split_document(Document(text.replace("\n", " ")), SegmentationOptions(split="sentences"), ReadReport())
    ours = set(accumulate(len(s) for s in sentences[:-1]))
    # Marks before the first word, as an opening bracket, belong to its sentence and not to the one before.
    assert len(ours) == len(theirs - {0})
    for mine, other in zip(sorted(ours), sorted(theirs - {0}), strict=True):
        assert all(not any(map(str.isalnum, word)) for word in words[mine:other])


@cache
def _as_it_comes() -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    return nlp


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "He left.| “We stay,” she said.| (She stayed.)| 'Oh.'| [3] The end of \"that.\"| 2 more.|"),
        ("en", "Smith et al., 2010 saw it!| p53 is a gene.| “Who?”, he said.|"),
        ("de", "Er kam nicht.| „Wir zahlen nicht“, sagte er.| »Nein.«| („Oh.“)| §§ 1 ff. BGB gelten.|"),
        ("de", "Nach Art. 3 GG i.V.m. § 4 VwGO, vgl. Rn. 12 ff. und BGBl. I S. 5, m.w.N. und st. Rspr. des BGH.| Ja.|"),
        ("de", "Die Stadt Neustadt a. d. Weinstr. klagt in der Hauptstr. 5 auf diese Art.| Der Weg ist frei.|"),
        ("fr", "Selon l'art. premier, M. Dupont part.| Il vient.|"),
        ("tr", "Dr. Kaya 3. katta, vb. odada.| Sonra gitti.|"),
        ("tr", "akçaarmut bir köydür.| sonra gitti.|"),  # no capitals at all
        ("el", "Πού βρίσκεται η Αθήνα;| Στην Ελλάδα.|"),
        ("zh", "他问：“你好吗？”|然后他离开了。|公司（腾讯）在深圳！|"),  # noqa: RUF001
        ("zh", "「トヨタは大きい。」と彼は言った。|京都へ行った？|"),  # noqa: RUF001
        ("hi", "वे मुंबई गए।| क्या वे पुणे गए?|"),
        ("ar", "هل سافر؟| نعم، سافر.|"),
    ],
)
def test_sentences_end_neither_at_abbreviations_nor_after_opening_marks(language: str, text: str) -> None:
    options = SegmentationOptions(language=language, split="sentences")
    found = split_document(Document(text.replace("|", "")), options, ReadReport())
    assert [sentence.text.strip() for sentence in found] == [part.strip() for part in text.split("|")[:-1]]


def tokens_of_spacy(text: str) -> list[str]:
    return [token.text for token in _load_pipeline("en")[0].make_doc(text) if not token.is_space]


def tokens_of(text: str) -> list[str]:
    [sentence] = split_document(Document(text, []), SegmentationOptions(), ReadReport())
    return list(sentence.tokens)


@pytest.mark.parametrize("marks", ["=", "!?(),;", '"', "€", "😀"])
@pytest.mark.parametrize("frame", ["{}", "left {} Rome", "{}now {}", "so{}"])
def test_long_runs_of_marks_are_cut(marks: str, frame: str) -> None:
    """spaCy searches all of a run for each mark that it splits off it: 5,000 took up to 25 seconds."""
    text = frame.format(*[(marks * 700)[:700]] * 2)
    bounds = [0, *_cuts(text), len(text)]
    assert max(end - start for start, end in pairwise(bounds)) <= 2 * 256 + len(frame)


def test_words_around_long_runs_are_those_of_spacy() -> None:
    pytest.importorskip("spacy")
    assert tokens_of(f"left {'=' * 700} Rome") == tokens_of_spacy(f"left {'=' * 700} Rome")
    assert list(_cuts(f"so{'!' * 700}now")) == []
