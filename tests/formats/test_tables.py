"""Tables: CSV, TSV and workbooks, with a token or a sentence in each row."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError, OutputError, TagError
from entaug.formats.base import ReadReport
from entaug.formats.files import open_file
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.command_line import fails
from helpers.strategies import TEXT, sentences

MIRA = Sentence(["Mira", "Quill", "ran"], [Mention("PER", [(0, 2)])])
SHAPES: dict[str, tuple[str, str]] = {
    "first row": ("a.csv", 'Sentence #,Word,POS,Tag\nSentence: 1,Mira,NNP,B-PER\n,"Quill",NNP,I-PER\n,ran,VBD,O\n'),
    "each row": ("a.csv", "sentence_id,words,labels\n0,Mira,B-PER\n0,Quill,I-PER\n0,ran,O\n"),
    "empty rows": ("a.csv", "token,tag\nMira,B-PER\nQuill,I-PER\nran,O\n\nMira,B-PER\nQuill,I-PER\nran,O\n"),
    "cells of empty rows": ("a.csv", "token,tag\nMira,B-PER\nQuill,I-PER\nran,O\n,\nMira,B-PER\nQuill,I-PER\nran,O\n"),
    "tabs": ("a.tsv", "TOKEN\tNER\tsentence_id\nMira\tB-PER\ta\nQuill\tI-PER\ta\nran\tO\ta\n"),
    "semicolons": ("a.csv", "token;tag;sent_id\nMira;B-PER;a\nQuill;I-PER;a\nran;O;a\n"),
    "a mark of Excel": ("a.csv", "\ufefftoken;tag;sent_id\r\nMira;B-PER;a\r\nQuill;I-PER;a\r\nran;O;a\r\n"),
    "IOB1": ("a.csv", "token,tag,sent\nMira,I-PER,1\nQuill,I-PER,1\nran,O,1\n"),
    "no heading": ("a.csv", "Mira,B-PER\nQuill,I-PER\nran,O\n\nMira,B-PER\nQuill,I-PER\nran,O\n"),
    "offsets": ("a.csv", 'text,entities\nMira Quill ran,"[[0, 10, ""PER""]]"\n'),
    "offsets of Python": ("a.csv", "text,label\nMira Quill ran,\"[(0, 10, 'PER')]\"\n"),
    "offsets in an object": ("a.csv", "text,label\nMira Quill ran,\"{'entities': [(0, 10, 'PER')]}\"\n"),
    "offsets of a tool": (
        "a.csv",
        'text,label\nMira Quill ran,"[{""start"":0,""end"":10,""text"":""Mira Quill"",""labels"":[""PER""]}]"\n',
    ),
    "lists": ("a.csv", "tokens,ner_tags\n\"['Mira', 'Quill', 'ran']\",\"['B-PER', 'I-PER', 'O']\"\n"),
    "lists of JSON": ("a.tsv", 'tokens\tner_tags\n["Mira","Quill","ran"]\t["B-PER","I-PER","O"]\n'),
    "strings": ("a.csv", "sentence,tags\nMira Quill ran,B-PER I-PER O\n"),
    "strings beside texts": ("a.csv", "sentence,tags,text\nMira Quill ran,B-PER I-PER O,Mira Quill  ran\n"),
    "a string and a list": ("a.csv", "Sentence #,Sentence,Tag\n1,Mira Quill ran,\"['B-PER', 'I-PER', 'O']\"\n"),
}


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def notes_of(path: Path, **options: Any) -> tuple[list[Sentence], dict[str, int]]:
    reading = ReadReport()
    return list(open_file(path, **options).sentences(reading)), dict(reading.notes)


def test_a_region_of_label_studio_with_two_labels_is_two_mentions(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    region = '"[{""start"":0,""end"":4,""text"":""Mira"",""labels"":[""PER"",""FAN""]}]"'
    [sentence] = entaug.read(put(tmp_path, "a.csv", f"annotation_id,id,label,text\n1,2,{region},Mira ran\n"))
    assert {(mention.label, mention.spans) for mention in sentence.mentions} == {("PER", ((0, 1),)), ("FAN", ((0, 1),))}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_tables(tmp_path: Path, shape: str) -> None:
    if "offsets" in shape:
        pytest.importorskip("spacy")
    path = put(tmp_path, *SHAPES[shape])
    corpus = list(entaug.read(path))
    assert open_file(path).format.name == "table"
    assert {(s.tokens, s.mentions) for s in corpus} == {(MIRA.tokens, MIRA.mentions)}
    assert len(corpus) == (2 if shape in ("empty rows", "cells of empty rows", "no heading") else 1)
    entaug.write(corpus, tmp_path / f"b{path.suffix}", like=path)
    assert list(entaug.read(tmp_path / f"b{path.suffix}")) == corpus
    if shape in ("first row", "each row", "tabs", "semicolons", "strings", "empty rows", "no heading", "IOB1"):
        assert (tmp_path / f"b{path.suffix}").read_text() == path.read_text().replace('"Quill"', "Quill")


def test_further_columns_are_kept_and_new_sentences_have_rows_of_their_own(tmp_path: Path) -> None:
    path = put(tmp_path, *SHAPES["first row"])
    [sentence] = entaug.read(path)
    assert (sentence.id, sentence.columns) == (None, {"POS": ("NNP", "NNP", "VBD")}), "a number is no id"
    entaug.convert(path, tmp_path / "b.jsonl")
    entaug.convert(path, tmp_path / "b.conll")
    augment_file(path, tmp_path / "c.csv", create_augmenter("sis", copies=2))
    made = list(entaug.read(tmp_path / "c.csv"))
    assert made[0].with_(id=None) == sentence
    assert len({s.id for s in made}) == len(made) > 1
    assert (tmp_path / "c.csv").read_text().startswith("Sentence #,Word,POS,Tag\nSentence: 1,Mira,NNP,B-PER\n,Quill,")


@pytest.mark.parametrize(
    ("cells", "ids"),
    [
        (["0", "1", "2"], [None] * 3),
        (["1", "2", "3"], [None] * 3),
        (["2", "3", "4"], ["2", "3", "4"]),
        (["1", "3", "2"], ["1", "3", "2"]),
        (["s1", "s2", "s3"], ["s1", "s2", "s3"]),
        (["01", "02", "03"], ["01", "02", "03"]),
        (["1", "2", "x"], ["1", "2", "x"]),
    ],
)
def test_numbers_are_no_ids_and_ids_are_kept(tmp_path: Path, cells: list[str], ids: list[str | None]) -> None:
    text = "sentence_id,words,labels\n" + "".join(f"{cell},Mira,B-PER\n{cell},ran,O\n" for cell in cells)
    path = put(tmp_path, "a.csv", text)
    corpus = list(entaug.read(path))
    assert [s.id for s in corpus] == ids
    entaug.write(corpus, tmp_path / "b.csv", like=path)
    assert (tmp_path / "b.csv").read_text() == text
    mixed = [MIRA, MIRA.with_(id="2"), MIRA]
    entaug.write(mixed, tmp_path / "c.csv")
    assert [s.id for s in entaug.read(tmp_path / "c.csv", ids=True)] == ["1", "2", "3"]
    assert len({s.id for s in entaug.read(tmp_path / "c.csv", ids=True)}) == 3
    if ids[0] is not None:
        entaug.convert(path, tmp_path / "d.conll")
        assert [s.id for s in entaug.read(tmp_path / "d.conll")] == ids


def test_cells_are_text_and_nothing_else(tmp_path: Path) -> None:
    words = ["NA", "null", "1.0", "=SUM(A1)", "007", '"', "a,b", "c\td", "e\nf", " g ", "TRUE", "1e5", "-", "#N/A"]
    corpus = [Sentence(words, [Mention("X y", [(2, 4)])], columns={"pos": ("1",) * len(words)}, id="0001")]
    for name in ("a.csv", "a.csv.gz", "a.xlsx"):
        if name == "a.xlsx":
            pytest.importorskip("openpyxl")
        entaug.write(corpus, tmp_path / name)
        assert list(entaug.read(tmp_path / name)) == corpus


def test_quotation_marks_that_are_words(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", 'token\ttag\n"\tO\nMira\tB-PER\n"\tO\n\n``\tO\n')
    assert [s.tokens for s in entaug.read(path)] == [('"', "Mira", '"'), ("``",)]
    with pytest.raises(LossError, match="cells are not quoted; pass `quoted=True`"):
        entaug.write([Sentence(["a\tb"])], tmp_path / "b.tsv", like=path)
    for text in ('word,tag\n",O\nMira,B-PER\n",O\n', 'word,tag\n"Mira,O\nran,O\n'):
        path = put(tmp_path, "d.csv", text)
        with pytest.raises(InputError, match=r"`quoted=False`"):
            entaug.read(path)
        assert entaug.read(path, quoted=False)[0].tokens[0][0] == '"'
    quoted = put(tmp_path, "c.tsv", 'token\ttag\n""""\tO\nMira\tB-PER\n')
    assert entaug.read(quoted)[0].tokens == ('"', "Mira")


def test_the_separator_is_that_of_the_extension(tmp_path: Path) -> None:
    path = put(tmp_path, *SHAPES["each row"])
    entaug.convert(path, tmp_path / "b.tsv")
    assert (tmp_path / "b.tsv").read_text() == path.read_text().replace(",", "\t")
    entaug.write([MIRA], tmp_path / "c.tsv", "table")
    assert (tmp_path / "c.tsv").read_text().startswith("sentence_id\twords\tlabels\n1\tMira\t")
    semicolons = put(tmp_path, *SHAPES["semicolons"])
    entaug.convert(semicolons, tmp_path / "d.csv")
    assert (tmp_path / "d.csv").read_text() == semicolons.read_text()


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.txt"])
def test_columns_without_a_heading_are_conll(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name, "Mira\tB-PER\nran\tO\n\ntoken\tO\ntag\tO\n")
    assert open_file(path).format.name == "conll"
    assert [s.tokens for s in entaug.read(path)] == [("Mira", "ran"), ("token", "tag")]
    path.write_text("token\tO\ntag\tO\n\nMira\tB-PER\n")
    assert [s.tokens for s in entaug.read(path)] == [("token", "tag"), ("Mira",)], "no sentence is a heading"
    path.write_text("token\ttag\nMira\tB-PER\n")
    assert [s.tokens for s in entaug.read(path)] == [("Mira",)], "no heading is a sentence"


FAULTS: dict[str, tuple[str, str, str]] = {
    "unknown names": (
        "a.csv",
        "mot,valeur\nMira,x\n",
        ":1: no column of labels is known: it has 'mot', 'valeur'; name",
    ),
    "no words": (
        "a.csv",
        "mot,pos,tag\nMira,NN,B-PER\n",
        ":1: no column of words is known: it has 'mot', 'pos', 'tag'; ",
    ),
    "no tags": ("a.csv", "word,tag\nMira,Person\n", "'tag' holds neither tags nor lists of mentions (first: 'Person')"),
    "numbers": ("a.csv", "tokens,ner_tags\n\"['a']\",[1]\n", ":2: the numbers in 'ner_tags' have no names; give them"),
    "heading alone": ("a.csv", "sentence,word,tag\n", ":1: no sentence in it; give a file with labelled sentences"),
    "no heading": ("a.csv", "1,Mira,B-PER\n2,ran,O\n", ":1: no heading, and several columns: it has '0', '1', '2'"),
    "empty token": ("a.csv", "word,tag\nMira,B-PER\n,O\n", ":3: the token is empty"),
    "narrow": ("a.csv", "word,pos,tag\nMira,NN,B-PER\nran,O\n", ":3: 2 cells where the table has 3 columns"),
    "wide": ("a.csv", "word,tag\nMira,B-PER\n" + "x,O\n" * 9 + "a,b,O\n", ":12: 3 cells where the table has 2 columns"),
    "tag": ("a.csv", "word,tag\n" + "a,O\n" * 9 + "\nb,I-X\nMira,B-PER\n", ":12: I-X at the start of the sentence"),
    "twice": ("a.csv", "word,tag,word\nMira,O,x\n", ":1: two columns 'word'"),
    "id": ("a.csv", "sent_id,word,tag\na,b,O\nc,d,B-X\na,e,O\n", ":4: id 'a' is that of line 2 too"),
    "no sentence": (
        "a.csv",
        "sent_id,word,tag\n" + "a,b,B-X\n" * 2000 + ",c,O\n",
        "no sentence in the column 'sent_id'",
    ),
    "undivided": ("a.csv", "word,tag\n" + "b,B-X\n" * 1001, ":2: nothing divides its first 1,000 rows into sentences"),
    "open": ("a.csv", 'word,tag\n"Mira,O\n' + "b,B-X\n" * 9, "no row of a table (unexpected end of data)"),
    "latin-1": ("a.csv", "word,tag\ncafé,O\nb,B-X\n", ":2: not UTF-8 (byte 0xe9); pass `encoding='cp1252'`"),
    "NUL": ("a.csv", "word,tag\na\0b,O\nb,B-X\n", ":2: holds a NUL character"),
    "a NumPy list": ("a.csv", "tokens,tags\n\"['a' 'b']\",\"['B-X' 'O']\"\n", "'tags' holds neither tags nor lists"),
    "lengths": ("a.csv", "sentence,tags\nMira ran,B-PER O\nran on,O\n", ":3: 1 tags for 2 tokens"),
    "a list": (
        "a.csv",
        'text,entities\nMira,"[[0, 4, \'PER\']]"\nBo,"[[0, 2]]"\n',
        ":3: a mention must be [start, end, ",
    ),
    "outside": (
        "a.csv",
        "text,entities\nMira,\"[[0, 9, 'PER']]\"\n",
        ":2: mention PER (0-9) is empty or outside the text",
    ),
    "empty": ("a.csv", "\n", "no sentence in it"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_names_it(tmp_path: Path, fault: str) -> None:
    pytest.importorskip("spacy")
    name, content, message = FAULTS[fault]
    path = put(tmp_path, name, content.encode("latin-1" if fault == "latin-1" else "utf-8"))
    with pytest.raises(InputError) as caught:
        entaug.read(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:" if ":" in message[:1] else str(path))
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_faults_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "a.csv", "mot,valeur,phrase\nMira,B-PER,1\nran,O,2\n")
    assert "--layout words=NAME" in fails(capsys, 2, "convert", str(path), str(tmp_path / "b.jsonl"))
    layout = ["--layout", "words=mot", "--layout", "sentence=phrase"]
    assert main(["convert", str(path), str(tmp_path / "b.jsonl"), *layout]) == 0
    assert [s.tokens for s in entaug.read(tmp_path / "b.jsonl")] == [("Mira",), ("ran",)]
    capsys.readouterr()
    assert "no column 'x'; name another: --layout words=NAME; it has 'mot'" in fails(
        capsys, 2, "convert", str(path), str(tmp_path / "c.jsonl"), "--layout", "words=x"
    )
    numbered = put(tmp_path, "c.csv", "1,Mira,B-PER\n2,ran,O\n")
    assert entaug.read(numbered, words="1")[0].tokens == ("Mira", "ran")
    numbers = put(tmp_path, "d.csv", 'tokens,ner_tags\n"[""Mira"",""ran""]","[1, 0]"\n')
    assert str(entaug.read(numbers, names=("O", "B-PER"))[0]) == "[Mira]PER ran"
    for encoding, word in (("gb18030", "北京"), ("cp932", "東京"), ("cp1251", "Москва"), ("cp1256", "القاهرة")):
        other = put(tmp_path, f"{encoding}.csv", f"word,tag\n{word},B-X\n".encode(encoding))
        with pytest.raises(InputError, match=r":2: not UTF-8 .*; pass its own encoding, such as `encoding='gb18030'`"):
            entaug.read(other)
        assert entaug.read(other, encoding=encoding)[0].tokens == (word,)
    latin = put(tmp_path, "e.csv", "word,tag\ncafé,B-X\n".encode("latin-1"))
    assert entaug.read(latin, encoding="latin-1")[0].tokens == ("café",)
    with pytest.raises(LossError, match=r"'東' is no character of latin-1; pass `encoding='utf-8'`"):
        entaug.write([Sentence(["東"])], tmp_path / "f.csv", encoding="latin-1")
    assert not (tmp_path / "f.csv").exists()


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ("词", {"encoding": "latin-1"}, "'词' is no character of latin-1; pass `encoding='utf-8'`"),
        ("a,b", {"quoted": False}, "'a,b' holds a separator .* pass `quoted=True`"),
    ],
)
def test_headings_are_checked_like_cells(tmp_path: Path, column: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LossError, match=message):
        entaug.write([Sentence(["Ada"], columns={column: ("x",)})], tmp_path / "a.csv", **options)
    assert not (tmp_path / "a.csv").exists()


def test_what_is_assumed_is_noted(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    one = put(tmp_path, "a.csv", "word,tag\nMira,B-PER\nran,O\n")
    assert notes_of(one)[1] == {
        "neither empty rows nor a column (`sentence=NAME`) divide the table: it is one sentence": 1
    }
    empty = put(tmp_path, "b.csv", 'text,entities\nMira,"[[0,4,""PER""]]"\nBo,\n" ",[]\n')
    assert notes_of(empty)[1] == {
        "empty cell in the column 'entities', read as a text without mentions": 1,
        "text of white space alone left out": 1,
    }


def test_documents_number_their_sentences_anew(tmp_path: Path) -> None:
    text = "doc_id,sentence_id,word,tag\na,1,Mira,B-PER\nb,1,ran,O\nb,2,on,O\n"
    path = put(tmp_path, "a.csv", text)
    corpus = list(entaug.read(path))
    assert [(s.id, s.tokens) for s in corpus] == [("a:1", ("Mira",)), ("b:1", ("ran",)), ("b:2", ("on",))]
    entaug.write(corpus, tmp_path / "b.csv", like=path)
    assert (tmp_path / "b.csv").read_text() == text


def test_a_row_of_a_sentence_carries_nested_mentions_fields_and_provenance(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    nested = Sentence(
        ["New", "York", "City", "."],
        [Mention("ORG", [(0, 3)]), Mention("LOC", [(0, 2)])],
        id="x",
        spaces=(" ", " ", "", ""),
        meta={"source": "web, 3"},
        columns={"pos": ("A", "B", "C", "D")},
    )
    with pytest.raises(LossError, match=r"nested mention .* a row is a sentence \(`rows='sentences'`\)"):
        entaug.write([nested], tmp_path / "a.csv")
    for name in ("a.csv", "a.tsv"):
        entaug.write([nested, MIRA], tmp_path / name, "table", rows="sentences")
        back = list(entaug.read(tmp_path / name))
        assert back[0] == nested
        assert (back[1].tokens, back[1].mentions, back[1].id) == (MIRA.tokens, MIRA.mentions, None)
    augment_file(tmp_path / "a.csv", tmp_path / "b.csv", create_augmenter("sis", copies=3))
    assert [s for s in entaug.read(tmp_path / "b.csv") if s.provenance is not None]
    source = put(tmp_path, "c.jsonl", b'{"tokens":["a"],"entities":[],"n":1.5}\n')
    with pytest.raises(LossError, match=r"cannot store .*field 'n'.*pass `allow_loss=\['field'\]"):
        entaug.convert(source, tmp_path / "c.csv", write_options={"rows": "sentences"})


def test_losses_of_rows_of_tokens_are_named(tmp_path: Path) -> None:
    line = b'{"id":"s","text":"a  b","tokens":["a","b"],"entities":[],"doc":"d","columns":{"words":["x","y"]}}\n'
    path = put(tmp_path, "a.jsonl", line)
    with pytest.raises(
        LossError,
        match=r"cannot store column 'words' .*, field 'doc' .*, text .*=\['column', 'field', 'text'\]",
    ):
        entaug.convert(path, tmp_path / "b.csv")
    empty = put(tmp_path, *SHAPES["empty rows"])
    to = open_file(empty)
    assert to.lost(Sentence(["a"], id="x")) == ["id"]


@settings(max_examples=examples(200))
@given(st.lists(sentences(words=TEXT, flat=True, labels=("a b", "é")), min_size=1, max_size=4), st.data())
def test_rows_of_tokens_come_back(tmp_path: Path, corpus: list[Sentence], data: st.DataObject) -> None:
    corpus = [s.with_(spaces=None, id=f"s{i}") for i, s in enumerate(corpus)]
    name = data.draw(st.sampled_from(["a.csv", "a.tsv", "a.xlsx"]))
    scheme = data.draw(st.sampled_from(["IOB2", "BILOU"]))
    if name == "a.xlsx":
        pytest.importorskip("openpyxl")
    options: dict[str, Any] = {"scheme": scheme, "repeated": data.draw(st.booleans())}
    try:
        entaug.write(corpus, tmp_path / name, "table", **options)
    except LossError as error:
        assert "NUL" in str(error) or name == "a.xlsx"  # noqa: PT017
        return
    assert list(entaug.read(tmp_path / name, "table", **options)) == corpus


@settings(max_examples=examples(200))
@given(st.lists(sentences(words=TEXT, gaps=False, labels=("a b", "é")), min_size=1, max_size=4), st.data())
def test_rows_of_sentences_come_back(tmp_path: Path, corpus: list[Sentence], data: st.DataObject) -> None:
    pytest.importorskip("spacy")
    cells = data.draw(st.sampled_from(["offsets", "lists"]))
    kept = []
    for i, given_ in enumerate(corpus):
        sentence = given_.with_(id=f"s{i}", mentions=given_.mentions if cells == "offsets" else ())
        try:
            entaug.write([sentence], tmp_path / "one.csv", "table", rows="sentences", cells=cells)
        except LossError:
            continue
        kept.append(sentence)
    if kept:
        entaug.write(kept, tmp_path / "a.csv", "table", rows="sentences", cells=cells)
        back = list(
            entaug.read(
                tmp_path / "a.csv",
                rows="sentences",
                labels="entities" if cells == "offsets" else "ner_tags",
                cells=cells,
            )
        )
        assert [(s.tokens, s.mentions, s.id, s.columns) for s in back] == [
            (s.tokens, s.mentions, s.id, s.columns) for s in kept
        ]


@settings(max_examples=examples(150))
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 200), st.binary(max_size=3))
def test_nothing_but_clear_errors_whatever_the_bytes(tmp_path: Path, shape: str, cut: int, byte: bytes) -> None:
    pytest.importorskip("spacy")
    name, content = SHAPES[shape]
    good = content.encode()
    path = put(tmp_path, name, good[:cut] + byte + good[cut + 1 :])
    try:
        entaug.read(path, "table")
        entaug.read(path)
    except EntaugError as error:
        assert "\n" not in str(error)  # noqa: PT017


# ----------------------------------------------------------------------------------------------------------- workbooks


def test_workbooks(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from datetime import date

    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    page = book.active
    for row in (["word", "tag", "when"], ["Mira", "B-PER", date(2020, 1, 2)], [1984, "O", True], [], [1.5, "O", None]):
        page.append(row)
    book.create_sheet("notes")
    more = book.create_sheet("more")
    more.append(["word", "tag"])
    more.append(["=A1", "B-X"])
    book.save(path)
    corpus, notes = notes_of(path)
    assert [s.tokens for s in corpus] == [("Mira", "1984"), ("1.5",)]
    assert corpus[0].columns == {"when": ("2020-01-02 00:00:00", "TRUE")}
    assert notes == {
        "sheets left out: 'notes', 'more' (`sheet=NAME`)": 1,
        "cell with a date or time read as text": 1,
    }
    with pytest.raises(InputError, match=r"a\.xlsx:2: a formula: '=A1'; replace formulas by their values"):
        entaug.read(path, sheet="more")
    with pytest.raises(InputError, match=r"no sheet 'x'; it has 'Sheet', 'notes', 'more'"):
        entaug.read(path, sheet="x")
    with pytest.raises(InputError, match="no sentence in it"):
        entaug.read(path, sheet="notes")
    entaug.write(corpus, tmp_path / "b.xlsx", like=path)
    entaug.write(corpus, tmp_path / "c.xlsx", like=path)
    assert (tmp_path / "b.xlsx").read_bytes() == (tmp_path / "c.xlsx").read_bytes(), "no time of writing is in it"
    assert list(entaug.read(tmp_path / "b.xlsx")) == corpus


def test_what_is_no_workbook(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    with pytest.raises(InputError, match=r"no workbook that can be read .*save it as \.xlsx or \.csv again"):
        entaug.read(put(tmp_path, "a.xlsx", b"Mira\tB-PER\n"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<a/>")
    with pytest.raises(InputError, match="no workbook that can be read"):
        entaug.read(put(tmp_path, "b.xlsx", packed.getvalue()))
    entaug.write([MIRA], tmp_path / "c.xlsx")
    good = (tmp_path / "c.xlsx").read_bytes()
    with pytest.raises(InputError):
        entaug.read(put(tmp_path, "d.xlsx", good[: len(good) // 2]))
    with pytest.raises(LossError, match=r"^'a\\x01' holds a control character for a workbook; write"):
        entaug.write([Sentence(["a\x01"])], tmp_path / "e.xlsx")
    with pytest.raises(OutputError, match="no name of a sheet"):
        entaug.write([MIRA], tmp_path / "e.xlsx", sheet="a/b")
    assert not (tmp_path / "e.xlsx").exists()


# --------------------------------------------------------------------------------------------------- names of outputs


def test_an_extension_gives_its_format_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "a.jsonl", b'{"tokens":["Mira","ran"],"entities":[{"start":0,"end":1,"type":"PER"}]}\n')
    assert main(["convert", str(path), str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "b.csv").read_text() == "sentence_id,words,labels\n1,Mira,B-PER\n1,ran,O\n"
    capsys.readouterr()
    told = fails(capsys, 3, "convert", str(path), str(tmp_path / "b.tabular"))
    assert (
        "no format has the extension '.tabular'; pass --to jsonl to write it as the input, or let its name end" in told
    )
    assert not (tmp_path / "b.tabular").exists()
    assert main(["convert", str(path), str(tmp_path / "b.tabular"), "--to", "jsonl"]) == 0
    assert main(["convert", str(path), str(tmp_path / "b.conll")]) == 0
    assert main(["convert", str(tmp_path / "b.tabular"), str(tmp_path / "c.tabular")]) == 0, "the name of the input"
    assert main(["convert", str(tmp_path / "b.conll"), str(tmp_path / "c.anything")]) == 0, "columns have any name"
    assert main(["convert", str(path), str(tmp_path / "without")]) == 0
    assert (tmp_path / "without").read_bytes() == path.read_bytes()
    zipped = tmp_path / "d.csv.gz"
    assert main(["convert", str(path), str(zipped)]) == 0
    assert gzip.decompress(zipped.read_bytes()) == (tmp_path / "b.csv").read_bytes()
    with pytest.raises(TagError):
        entaug.read(put(tmp_path, "e.csv", "word,tag\n" + "a,O\n" * 9 + "b,I-X\nc,B-X\n"), scheme="IOB2")


def test_columns_under_the_name_of_a_table_stay_columns(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "Mira\tB-PER\nran\tO\nfar\tO\n")
    augment_file(path, tmp_path / "b.csv", create_augmenter("sis"))
    assert (tmp_path / "b.csv").read_text().startswith("Mira\tB-PER\nran\tO\nfar\tO\n")
    entaug.convert(put(tmp_path, "c.conll", "Mira\tB-PER\nran\tO\n"), tmp_path / "d.csv")
    assert (tmp_path / "d.csv").read_text().startswith("sentence_id,words,labels\n1,Mira,B-PER\n")
