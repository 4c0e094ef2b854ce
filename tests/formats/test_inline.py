"""Mentions marked in running text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError
from entaug.formats.base import ENTITY_FIELDS, ReadReport
from entaug.formats.files import find_format, open_file
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.strategies import TEXT, WORDS, sentences


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, *, repair: bool = False, **options: Any) -> tuple[list[str], ReadReport]:
    reading = ReadReport(repair=repair)
    return [str(sentence) for sentence in open_file(path, "inline", **options).sentences(reading)], reading


LINES = """<PER>Mira Quill</PER> ran .
<ORG>R &amp; D <LOC>Rome</LOC></ORG> , a &lt; b , caf&eacute;
No one .
"""


@pytest.mark.parametrize("name", ["a.txt", "a.sgml", "a", "a.txt.gz"])
def test_tags_in_lines(tmp_path: Path, name: str) -> None:
    import gzip

    path = put(tmp_path, name, gzip.compress(LINES.encode()) if name.endswith(".gz") else LINES)
    assert open_file(path).format.name == "inline"
    corpus = list(entaug.read(path))
    assert [str(s) for s in corpus] == ["[Mira Quill]PER ran .", "[R & D [Rome]LOC]ORG , a < b , café", "No one ."]
    assert all(s.spaces is None for s in corpus)
    out = tmp_path / f"out{path.suffix}"
    entaug.write(corpus, out, like=path)
    data = gzip.decompress(out.read_bytes()) if name.endswith(".gz") else out.read_bytes()
    assert data.decode() == LINES.replace("&eacute;", "é")
    augment_file(path, tmp_path / f"new{path.suffix}", create_augmenter("sis", copies=2))


def test_labels_in_an_attribute_and_other_attributes(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    text = (
        '<ENAMEX TYPE="PERSON">Mira</ENAMEX> ran to <ENAMEX TYPE="LOC" id="3">Rome</ENAMEX>.\n'
        '<TIMEX TYPE="DATE">Today</TIMEX>, she said.\n'
    )
    path = put(tmp_path, "a.txt", text)
    corpus = list(entaug.read(path))
    assert [str(s) for s in corpus] == ["[Mira]PERSON ran to [Rome]LOC .", "[Today]DATE , she said ."]
    assert corpus[0].spaces == (" ", " ", " ", "", "")
    entaug.write(corpus, tmp_path / "b.txt", like=path)
    assert (tmp_path / "b.txt").read_text() == text
    own = Sentence(["Ada"], [Mention("a b", [(0, 1)])])
    with pytest.raises(LossError, match="'a b' is no name of a tag; pass `attribute=TYPE`"):
        entaug.write([own], tmp_path / "c.xml", "inline")
    with pytest.raises(LossError, match="'title' is no name of a tag"):
        entaug.write([own.with_(mentions=[Mention("title", [(0, 1)])])], tmp_path / "c.xml", "inline")
    entaug.write([own], tmp_path / "c.xml", "inline", attribute="TYPE")
    assert (tmp_path / "c.xml").read_text() == '<doc>\n<ENAMEX TYPE="a b">Ada</ENAMEX>\n</doc>\n'
    assert list(entaug.read(tmp_path / "c.xml")) == [own]


def test_a_document_in_a_file(tmp_path: Path) -> None:
    text = (
        '<?xml version="1.0"?>\n<!DOCTYPE DOC SYSTEM "doc.dtd">\n<DOC>\n<TITLE>A <PER>Mira</PER> story</TITLE>\n'
        "<!-- a comment -->\n<p>First .\nBut <LOC>New\nYork</LOC> is big .</p><p>End <PER>Bo</PER></p>\n</DOC>\n"
    )
    path = put(tmp_path, "a.xml", text)
    told, reading = read(path)
    assert told == ["A [Mira]PER story", "First .", "But [New York]LOC is big .", "End [Bo]PER"]
    assert reading.notes == {
        "tags of the structure, which are no mentions: TITLE, p (`structure=NAMES`)": 1,
        "comment left out": 1,
    }
    with pytest.raises(LossError, match=r"inline tags cannot store text \(once\)"):
        entaug.convert(path, tmp_path / "b.xml")
    entaug.convert(path, tmp_path / "b.xml", allow_loss=["text"])
    assert read(tmp_path / "b.xml")[0] == told
    spoilt = put(tmp_path, "c.xml", text.replace("<PER>Bo</PER>", "<PER>Bo</LOC>"))
    with pytest.raises(
        InputError, match=r"c\.xml:8: mismatched tag at character \d+ \(<PER> is open\); close each tag"
    ):
        entaug.read(spoilt)


def test_ids_of_sentences(tmp_path: Path) -> None:
    text = '<s id="x1"><PER>Mira</PER> ran .</s>\n<s>Bo &gt; me .</s>\n<s id="a&quot;b">Bo .</s>\n'
    path = put(tmp_path, "a.txt", text)
    corpus = list(entaug.read(path))
    assert [s.id for s in corpus] == ["x1", None, 'a"b']
    entaug.write(corpus, tmp_path / "b.txt", like=path)
    assert list(entaug.read(tmp_path / "b.txt")) == corpus
    entaug.convert(path, tmp_path / "c.jsonl")
    entaug.convert(tmp_path / "c.jsonl", tmp_path / "d.xml", to_format="inline")
    assert list(entaug.read(tmp_path / "d.xml")) == corpus
    assert open_file(put(tmp_path, "e.txt", LINES)).lost(corpus[0]) == ["id"]
    nested = put(tmp_path, "f.xml", f"<doc>\n<p>{text}</p>\n</doc>\n")
    assert [s.id for s in entaug.read(nested)] == ["x1", None, 'a"b']


def test_mentions_in_brackets_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a.md", "[Ada](PER) sang in [Rome](LOC) .\n")
    assert open_file(path).format.name == "inline"
    with pytest.raises(
        InputError, match=r"a\.md:1: mentions in brackets, as \[Ada\]\(PER\), which are not read; write tags"
    ):
        entaug.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<PER>Mira</PER> ran .\n<PER>Mira ran .\n",
            ":2: mismatched tag at character 18 (<PER> is open); close each tag",
        ),
        ("<PER>Mira</PER> ran .\nMira</PER> ran .\n", ":2: mismatched tag at character 7; close each tag in its line"),
        ("<PER>Mira <LOC>in</PER> a</LOC> .\n", ":1: mismatched tag at character 20 (<LOC> is open)"),
        ("<PER>Mira</PER> ran .\na < b\n", ":2: not well-formed (invalid token) at character 4; close each tag in its"),
        ("<PER>Mira</PER> at AT&T .\n", ":1: '&' stands for no character; write &amp; for &, or pass `repair=True`"),
        ("<PER>Mira</PER> &lol; .\n", ":1: '&lol;' stands for no character"),
        ("<PER>Mira</PER> <b/> .\n", ":1: <b> holds no words; remove it, or let it be a part of the structure"),
        ("<PER>Mira</PER> ran .\n<PER> </PER> .\n", ":2: mention PER (0-1) is white space alone"),
        ("<PER>Mira</PER> ran .\n</_><_>x\n", ":2: junk after document element at character 5"),
        (
            "<PER>Mira</PER> ran .\n<PER>Mir</PER>a ran .\n",
            ":2: mention PER 'Mir' (0-3) begins or ends within the token",
        ),
    ],
)
def test_a_fault_is_one_line_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    pytest.importorskip("spacy")
    with pytest.raises(InputError) as caught:
        entaug.read(put(tmp_path, "a.sgml", text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_repair_reads_ampersands_as_they_stand(tmp_path: Path) -> None:
    path = put(tmp_path, "a.sgml", "<ORG>AT&T</ORG> &lol; &amp; .\n")
    told, reading = read(path, repair=True)
    assert told == ["[AT&T]ORG &lol; & ."]
    assert reading.repaired == {"& that stands for no character read as it is": 2}


@pytest.mark.parametrize("name", ["a.xml", "a.sgml"])
@pytest.mark.parametrize("repair", [True, False])
def test_what_a_file_declares_is_never_read(tmp_path: Path, name: str, repair: bool) -> None:
    secret = put(tmp_path, "secret.txt", "secret")
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    for declared in (f'<!ENTITY x SYSTEM "{secret.as_uri()}">', f'<!ENTITY l0 "lol">{lol}'):
        for entity in ("&x;", "&l9;", "word"):
            text = f"<?xml version='1.0'?>\n<!DOCTYPE doc [{declared}]>\n<doc>\n<PER>Mira</PER> {entity}\n</doc>\n"
            with pytest.raises(InputError, match=r"stands for no character|declarations in the document type"):
                entaug.read(put(tmp_path, name, text), repair=repair)
    outside = "<!DOCTYPE doc SYSTEM 'secret.txt'>\n<doc>\n<PER>Mira</PER> ran\n</doc>\n"
    assert read(put(tmp_path, name, outside))[0] == ["[Mira]PER ran"]
    deep = "<doc>\n" + "<p>" * 100_000 + "<PER>Mira</PER> ran" + "</p>" * 100_000 + "\n</doc>\n"
    assert read(put(tmp_path, "deep.xml", deep))[0] == ["[Mira]PER ran"]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    words = ["a", "b", "c"]
    for sentence, message in (
        (
            Sentence(words, [Mention("X", [(0, 2)]), Mention("Y", [(1, 3)])]),
            "the mention Y 'b c' crosses another; write",
        ),
        (Sentence(words, [Mention("X", [(0, 1), (2, 3)])]), "discontinuous mention"),
        (Sentence(["a b"]), "the token 'a b' holds white space; write JSON lines, or pass `words='rules'`"),
        (Sentence(["a\x01"]), "holds a control character"),
    ):
        with pytest.raises(LossError, match=message):
            entaug.write([sentence], tmp_path / "a.xml", "inline")
    with pytest.raises(LossError, match=r"the id 'x\\x01' holds a control character"):
        entaug.write([Sentence(words, id="x\x01")], tmp_path / "a.xml", "inline", ids=True)
    full = Sentence(words, id="x", spaces=("", " ", ""), columns={"pos": words}, meta={"doc": "d"})
    assert open_file(put(tmp_path, "b.txt", LINES)).lost(full) == ["column 'pos'", "field 'doc'", "id", "text"]


def test_words_between_spaces_are_known_by_their_marks(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    for text, words in (
        ("dr. <PER>Mira</PER> ran im st. nick , so\n", "spaces"),
        ("<PER>Mira</PER> ran and ran\n", "spaces"),
        ("<PER>Mira</PER>, who ran.\n", "rules"),
        ("the <PER>Mira</PER> ran, ran , and ran.\n", "spaces"),
        ("the <PER>Mira</PER> ran , and ran." + " so, she" * 12 + "\n", "rules"),
    ):
        assert vars(open_file(put(tmp_path, "a.sgml", text)).dialect)["words"] == words


def test_other_files_are_not_taken_for_it(tmp_path: Path) -> None:
    rows = put(tmp_path, "a.txt", "<PER>x</PER> B-PER\nran O\n")
    assert open_file(rows).format.name == "conll"
    lines = put(tmp_path, "b", '{"tokens":["<b>x</b> y"],"entities":[{"start":0,"end":1,"type":"X"}]}\n')
    assert open_file(lines).format.name == "jsonl"
    for text in ("<html><b>x</b> y</html>\n", "<collection><b>x</b> y</collection>\n", "no marks at all\n"):
        assert not find_format("inline").recognises(put(tmp_path, "c.txt", text))


@settings(max_examples=examples(200))
@given(
    st.lists(sentences(words=st.one_of(WORDS, TEXT), gaps=False), min_size=1, max_size=4),
    st.sampled_from(["a.xml", "a.sgml", "a.txt"]),
)
def test_sentences_come_back(tmp_path: Path, corpus: list[Sentence], name: str) -> None:
    options: dict[str, Any] = {"words": "spaces"}
    kept = []
    for sentence in corpus:
        try:
            entaug.write([sentence], tmp_path / "one", "inline", **options)
        except LossError:
            continue
        kept.append(sentence)
    if not kept:
        return
    entaug.write(kept, tmp_path / name, "inline", **options)
    options |= {"unit": "line"} if name != "a.xml" else {}
    found = list(entaug.read(tmp_path / name, "inline", **options, root="doc", attribute=""))
    assert [(s.tokens, s.mentions) for s in found] == [(s.tokens, s.mentions) for s in kept]


@settings(max_examples=examples(150))
@given(st.integers(0, 120), st.binary(max_size=4), st.sampled_from([LINES, "[Mira](PER) ran .\n[[a](X) b](Y)\n"]))
def test_nothing_but_clear_errors_whatever_the_bytes(tmp_path: Path, cut: int, byte: bytes, text: str) -> None:
    pytest.importorskip("spacy")
    good = text.encode()
    for name in ("a.xml", "a.txt"):
        path = put(tmp_path, name, good[:cut] + byte + good[cut + 1 :])
        try:
            entaug.read(path, "inline")
        except EntaugError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_a_field_named_as_the_attribute_of_labels_is_a_loss(tmp_path: Path) -> None:
    fields = [{"TYPE": "x", "tid": "t1"}]
    sentence = Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])], layout={ENTITY_FIELDS: fields})
    inline = find_format("inline")
    assert inline.lost(sentence, inline.dialect(attribute="TYPE")) == ["fields of mentions"]
    entaug.write([sentence], tmp_path / "a.xml", "inline", attribute="TYPE", unit="line")
    assert (tmp_path / "a.xml").read_text() == '<ENAMEX TYPE="PER" tid="t1">Ada</ENAMEX> sang\n'
