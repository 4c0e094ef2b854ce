from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.core.tags import SCHEMES
from entaug.errors import EntaugError, InputError, LossError, OutputError, ParameterError, TagError, UnknownNameError
from entaug.formats.base import ENTITY_FIELDS, NO_MENTION, ReadReport
from entaug.formats.files import open_file, target
from helpers.strategies import TEXT, sentences


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(*sentences_: str) -> str:
    """Rows given as "token/tag token/tag"."""
    return "\n".join("".join(pair.replace("/", "\t") + "\n" for pair in s.split()) for s in sentences_)


ADA = Sentence(["Ada", "left", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])


# ------------------------------------------------------------------------------------------------------- CoNLL layouts


@pytest.mark.parametrize(
    "text",
    [
        "Ada\tB-PER\nleft\tO\nRome\tB-LOC\n",
        "Ada B-PER\nleft O\nRome B-LOC",
        "Ada   B-PER\nleft\t O\nRome \t B-LOC \n",
        "B-PER\tAda\nO\tleft\nB-LOC\tRome\n",
        "\ufeffAda\tB-PER\r\nleft\tO\r\nRome\tB-LOC\r\n\r\n",
        "\n \n\t\nAda\tB-PER\nleft\tO\nRome\tB-LOC\n\t\n\n",
        "Ada\tI-PER\nleft\tO\nRome\tI-LOC\n",
        "Ada\tS-PER\nleft\tO\nRome\tS-LOC\n",
        "Ada\tU-PER\nleft\tO\nRome\tU-LOC\n",
    ],
    ids=["tabs", "spaces", "runs", "tag first", "BOM and CRLF", "white separators", "IOB1", "IOBES", "BILOU"],
)
def test_layouts_are_found_by_looking(tmp_path: Path, text: str) -> None:
    assert list(entaug.read(put(tmp_path, "a.conll", text))) == [ADA]


def test_comments_and_document_marks_are_kept(tmp_path: Path) -> None:
    text = (
        "-DOCSTART- -X- O O\n\n# sent_id = one\n# text = Ada left Rome\n"
        "Ada NNP I-NP I-PER\nleft VBD I-VP O\n# odd place\nRome NNP I-NP I-LOC\n\n#nohash NN I-NP O\n\n"
    )
    path = put(tmp_path, "a.txt", text)
    first, second = entaug.read(path)
    assert (first.tokens, first.mentions, first.id) == (ADA.tokens, ADA.mentions, "one")
    assert first.columns == {"1": ("NNP", "VBD", "NNP"), "2": ("I-NP", "I-VP", "I-NP")}
    assert first.fields["comments"] == [
        "-DOCSTART- -X- O O",
        "# sent_id = one",
        "# text = Ada left Rome",
        "# odd place",
    ]
    assert first.spaces == (" ", " ", "")
    assert second.tokens == ("#nohash",)
    opened = open_file(path)
    to = target(tmp_path / "b.txt", like=opened)
    again = "".join(to.format.dump(s, to.dialect) for s in opened.sentences())
    assert again == text.replace("# odd place\n", "").replace("Ada NNP", "# odd place\nAda NNP")


def test_numbered_rows_as_universal_ner_has_them(tmp_path: Path) -> None:
    text = "# sent_id = s1\n1\tAda\tB-PER\tO\t-\n2\tleft\tO\tO\t-\n3\tRome\tB-LOC\tO\tann\n\n"
    path = put(tmp_path, "a.iob2", text)
    [s] = entaug.read(path)
    assert (s.tokens, s.mentions) == (ADA.tokens, ADA.mentions)
    assert s.columns == {"3": ("O", "O", "O"), "4": ("-", "-", "ann")}
    shorter = s.edit([entaug.Edit(1, 2, ["has", "left"])])
    to = target("x.iob2", like=open_file(path))
    assert to.format.dump(shorter, to.dialect) == (
        "# sent_id = s1\n1\tAda\tB-PER\tO\t-\n2\thas\tO\t_\t_\n3\tleft\tO\t_\t_\n4\tRome\tB-LOC\tO\tann\n\n"
    )


def test_numbers_from_zero_and_odd_ones(tmp_path: Path) -> None:
    zero = put(tmp_path, "a.conll", "0\tAda\tB-PER\n1\tleft\tO\n2\tRome\tB-LOC\n\n")
    assert list(entaug.read(zero)) == [ADA]
    # A sentence whose numbers are others keeps them.
    text = "".join(f"{i}\tx\tO\n\n" for i in [1] * 20) + "3\tde\tO\n7\tel\tO\n\n"
    path = put(tmp_path, "b.conllu", text)
    reading = ReadReport()
    *_, odd = open_file(path).sentences(reading)
    assert odd.columns == {"0": ("3", "7")}
    assert reading.notes == {"sentence whose token numbers do not count up: they are kept": 1, NO_MENTION: 1}
    to = target("c.conllu", like=open_file(path))
    assert "".join(to.format.dump(s, to.dialect) for s in entaug.read(path)) == text


def test_columns_by_hand_and_content_without_extension(tmp_path: Path) -> None:
    path = put(tmp_path, "nested", "x\tAda\tB-PER\tO\nx\tleft\tO\tB-ACT\n")
    assert entaug.read(path, token_column=1, tag_column=2).labels == ("PER",)
    assert entaug.read(path, token_column=1, tag_column=3).labels == ("ACT",)
    assert entaug.read(path, token_column=1).labels == ("ACT",)
    with pytest.raises(ParameterError, match="no such column"):
        entaug.read(path, tag_column=7)
    with pytest.raises(UnknownNameError, match="unknown option of the conll format: 'colour'"):
        entaug.read(path, colour=3)
    for tag in (2, -2):
        with pytest.raises(ParameterError, match="cannot hold both the token and its tag; name two different"):
            entaug.read(path, token_column=2, tag_column=tag)
    assert entaug.read(path, token_column=3).labels == ("PER",), "the token's column is not taken for the tags"
    layouts: list[dict[str, Any]] = [{"token_column": 3}, {"token_column": 1}]
    for layout in layouts:
        with pytest.raises(LossError, match="has no place for the token"):
            entaug.write([ADA], tmp_path / "x.conll", **layout)


def test_a_tab_file_may_have_spaces_inside_tokens(tmp_path: Path) -> None:
    [s] = entaug.read(put(tmp_path, "a.tsv", "New York\tB-LOC\n\xa0\tO\n#tag\tO\n"))
    assert s.tokens == ("New York", "\xa0", "#tag")


def test_a_hash_as_token_where_the_tag_is_not_last(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", "# a comment\n# O NN\n1 O CD\n\nAda B-PER NNP\nleft O VBD\n# O no row\n\n")
    first, second = entaug.read(path)
    assert first.tokens == ("#", "1")
    assert (second.tokens, second.fields["comments"]) == (("Ada", "left"), ["# O no row"])
    opened = open_file(path)
    text = "".join(opened.format.dump(s, opened.dialect) for s in opened.sentences())
    assert text == "# a comment\n# O NN\n1 O CD\n\n# O no row\nAda B-PER NNP\nleft O VBD\n\n"


@pytest.mark.parametrize("mark", ["-DOCSTART-\tO", "-DOCSTART-"])
def test_a_document_mark_needs_no_empty_lines(tmp_path: Path, mark: str) -> None:
    ada = table("Ada/B-PER left/O Rome/B-LOC")
    path = put(tmp_path, "a.conll", f"{mark}\n{ada}{mark}\n{ada}\n{ada}{mark}\n")
    corpus = list(entaug.read(path))
    assert [(s.tokens, s.mentions) for s in corpus] == [(ADA.tokens, ADA.mentions)] * 3
    assert [s.fields.get("comments") for s in corpus] == [[mark], [mark], None]
    path = put(tmp_path, "b.conll", f"{ada}{mark}\n{ada}\nBo\tI-PER\n")
    with pytest.raises(TagError, match=r"b\.conll:9: I-PER"):
        entaug.read(path, scheme="IOB2")


def test_the_scheme_is_not_told_by_comments(tmp_path: Path) -> None:
    plain = table(*["so/O it/O goes/O"] * 400)
    path = put(tmp_path, "a.conll", (plain + "\n# a comment\nso O\n\n").replace("\t", " ") + "Ada S-PER\nleft O\n")
    assert open_file(path).dialect.describe().endswith("IOBES")


def test_ids_and_texts_pass_between_formats(tmp_path: Path) -> None:
    sources: list[dict[str, Any]] = [
        {"id": "one", "text": "Ada  left Rome", "tokens": list(ADA.tokens), "entities": []},
        {"id": "two", "text": "a\nb", "tokens": ["a", "b"], "entities": [{"start": 0, "end": 1, "type": "X"}]},
        {"text": "a O", "tokens": ["a", "O"], "entities": []},
    ]
    path = put(tmp_path, "a.jsonl", b"\n".join(map(orjson.dumps, sources)))
    for separator in ("tab", "space"):
        out = tmp_path / f"{separator}.conll"
        with pytest.raises(LossError, match=r"cannot store text \(once\); pass `allow_loss=\['text'\]"):
            entaug.convert(path, out, write_options={"separator": separator})
        assert not out.exists()
        summary = entaug.convert(path, out, write_options={"separator": separator}, allow_loss=["text"])
        assert summary.lost == {"text": 1}
        assert [(s.id, s.spaces) for s in entaug.read(out)] == [
            ("one", ("  ", " ", "")),
            ("two", None),
            (None, (" ", "")),
        ]
    back = tmp_path / "back.jsonl"
    entaug.convert(out, back)
    assert [orjson.loads(line).get("id") for line in back.read_bytes().splitlines()] == ["one", "two", None]
    # Where the beginning shows no ids, there are no comments, and it is said.
    path = put(tmp_path, "b.jsonl", b"\n".join(map(orjson.dumps, [sources[1] | {"id": None, "text": None}, *sources])))
    assert entaug.convert(path, tmp_path / "b.conll", allow_loss=["all"]).lost == {"id": 2, "text": 3}
    assert "#" not in (tmp_path / "b.conll").read_text()


@settings(max_examples=examples(300))
@given(st.lists(sentences(words=TEXT, flat=True), min_size=1, max_size=4), st.sampled_from(SCHEMES))
def test_conll_round_trip(tmp_path: Path, corpus: list[Sentence], scheme: str) -> None:
    path = tmp_path / "a.conll"
    # Columns do not carry the white space between tokens.
    corpus = [s.with_(spaces=None) for s in corpus]
    try:
        entaug.write(corpus, path, scheme=scheme)
    except LossError as error:
        assert "token" in str(error)  # noqa: PT017
        assert any({*t} & {*"\n\t\r\0"} or t.startswith(("#", "-DOCSTART-")) for s in corpus for t in s.tokens)
        return
    by_hand: dict[str, Any] = {"separator": "tab", "token_column": 0, "tag_column": -1}
    if any(s.columns for s in corpus):  # all rows of a file have the same columns
        corpus = [s.with_(columns={"1": ("_",) * len(s), **s.columns}) for s in corpus]
    assert list(entaug.read(path, scheme=scheme, **by_hand)) == corpus
    if any(s.mentions for s in corpus):
        assert list(open_file(path, **by_hand).sentences()) == corpus, "the scheme is found by looking"


@settings(max_examples=examples(300))
@given(
    st.lists(sentences(words=TEXT, labels=("a b", "é")), min_size=1, max_size=4),
    st.sampled_from([".jsonl", ".jsonl.gz"]),
)
def test_jsonl_round_trip(tmp_path: Path, corpus: list[Sentence], extension: str) -> None:
    path = tmp_path / f"a{extension}"
    corpus = [s.with_(id=f"s{i}", **split_fields({"doc": i, "more": {"x": [1.5, None]}})) for i, s in enumerate(corpus)]
    # A text does not tell the white space of a token from that between tokens.
    corpus = [s.with_(spaces=None) if any(t != t.strip() for t in s.tokens) else s for s in corpus]
    entaug.write(corpus, path)
    assert list(entaug.read(path)) == corpus
    assert list(entaug.stream(path)) == corpus


def test_jsonl_styles_and_extra_fields(tmp_path: Path) -> None:
    lines = [
        {
            "id": 7,
            "tokens": ["a", "b", "c"],
            "entities": [{"start": 0, "end": 1, "type": "X", "note": "n"}],
            "doc": "d",
        },
        {"tokens": ["a", "b", "c"], "entities": [{"spans": [[0, 1], [2, 3]], "label": "Y"}], "text": "a  b c"},
        {"tokens": ["a"], "text": "something else"},
    ]
    path = put(tmp_path, "a.jsonl", b"\n".join(map(orjson.dumps, lines)))
    one, two, three = entaug.read(path)
    assert one.id == "7"
    assert one.fields["doc"] == "d"
    assert two.spaces == ("  ", " ", "")
    assert two.mentions == (Mention("Y", [(0, 1), (2, 3)]),)
    assert three.fields == {"text": "something else"}
    out = tmp_path / "b.jsonl"
    entaug.write([one, two, three], out)
    written = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert written[0]["entities"] == [{"start": 0, "end": 1, "type": "X", "note": "n"}]
    assert written[1]["entities"] == [{"spans": [[0, 1], [2, 3]], "type": "Y"}]
    assert written[1]["text"] == "a  b c"
    with pytest.raises(LossError, match="discontinuous"):
        entaug.write([two], out, entities="offsets")
    assert [orjson.loads(line) for line in out.read_bytes().splitlines()] == written, "a failed write changes nothing"


def test_fields_of_an_entity_never_replace_its_label_or_place(tmp_path: Path) -> None:
    lines = [
        '{"tokens":["a","b"],"entities":[{"start":0,"end":1,"label":"X"}]}',
        '{"tokens":["a","b"],"entities":[{"start":0,"end":1,"type":"Y","label":"Z","note":1}]}',
    ]
    path = put(tmp_path, "a.jsonl", "\n".join(lines))
    for style in ("mixed", "spans"):
        entaug.write(entaug.read(path), tmp_path / "b.jsonl", like=path, entities=style)
        assert list(entaug.read(tmp_path / "b.jsonl")) == list(entaug.read(path))
    assert [
        json.loads(line)["entities"][0].get("label") for line in (tmp_path / "b.jsonl").read_text().splitlines()
    ] == ["X", "Z"]
    spoilt = Sentence(
        ["a"], [Mention("X", [(0, 1)])], **split_fields({"_entity_fields": [{"start": 9, "type": "no", "n": 1}]})
    )
    entaug.write([spoilt, spoilt.with_fields({"_entity_fields": 7, "tokens": 7})], tmp_path / "b.jsonl")
    record = {"tokens": ["a"], "entities": [{"start": 0, "end": 1, "type": "X"}]}
    assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == [
        {**record, "_entity_fields": [{"start": 9, "type": "no", "n": 1}]},
        {**record, "_entity_fields": 7},
    ]


def test_jsonl_keeps_whatever_else_there_is(tmp_path: Path) -> None:
    lines = [
        '{"tokens":["a","b"],"entities":[],"columns":3,"comments":"abc"}',
        '{"tokens":["a"],"entities":[],"columns":{"pos":["x","y"]},"n":123456789012345678901234567890}',
        '{"tokens":["a"],"entities":[{"spans":[[0,1]],"type":"X"}],"entity_fields":7,"entaug":[1]}',
    ]
    path = put(tmp_path, "a.jsonl", "\n".join(lines) + "\n")
    corpus = list(entaug.read(path))
    entaug.write(corpus, tmp_path / "b.jsonl", entities="spans")
    for before, after in zip(lines, (tmp_path / "b.jsonl").read_text().splitlines(), strict=True):
        assert json.loads(before) == json.loads(after)
    with pytest.raises(LossError, match="cannot be written as JSON"):
        entaug.write([corpus[0].with_fields({"x": object()})], tmp_path / "c.jsonl")


def test_gzip_is_read_and_written_without_a_time_stamp(tmp_path: Path) -> None:
    a, b = tmp_path / "a.conll.gz", tmp_path / "b.conll.gz"
    entaug.write([ADA], a)
    entaug.write([ADA], b)
    assert a.read_bytes() == b.read_bytes()
    assert gzip.decompress(a.read_bytes()) == b"Ada\tB-PER\nleft\tO\nRome\tB-LOC\n\n"
    assert list(entaug.read(a)) == [ADA]


def test_large_files_are_read_in_pieces(tmp_path: Path) -> None:
    rows = table("Ada/B-PER left/O Rome/B-LOC")
    path = put(tmp_path, "a.conll", (rows + "\n") * 100_000)
    assert sum(s == ADA for s in entaug.stream(path)) == 100_000


# ----------------------------------------------------------------------------------------------------------- bad input

FAULTY: dict[str, tuple[str, str | bytes, int | None, str]] = {
    "ragged": ("a.conll", "Ada\tB-PER\nleft\nRome\tB-LOC\n", 2, "1 column where 2 are expected"),
    "mostly narrow": ("a.conll", "A\tO\n\n" * 40 + "Bo\tO\nleft _ O\nnow _ O\n", 82, "1 column where 2 are expected"),
    "too many": ("a.conll", "Ada\tB-PER\nleft\tx\tO\nRome\tB-LOC\n", 2, "3 columns where 2 are expected"),
    "unknown tag": ("a.conll", table("Ada/B-PER left/O " * 4) + "x\tQ-PER\n", 9, "unknown tag 'Q-PER'"),
    "I- alone": ("a.conll", table("Ada/B-PER left/O", "Rome/I-LOC"), 4, "I-LOC at the start of the sentence"),
    "I- of another": ("a.conll", table("Ada/B-PER Rome/I-LOC"), 2, "I-LOC after B-PER"),
    "no tags": ("a.conll", "Ada\tNNP\nleft\tVBD\n", 1, "no column holds tags"),
    "one column": ("a.conll", "Ada\nleft\n", 1, "no column holds tags"),
    "empty token": ("a.conll", "Ada\tB-PER\n\tO\n", 2, "the token is empty"),
    "mixed schemes": ("a.conll", table("a/I-X", "b/I-X", "c/O d/B-X"), 6, "B-X where IOB1 has I-X"),
    "same sent_id": ("a.conll", "# sent_id = x\na\tB-X\n\n# sent_id = x\nb\tO\n", 5, "id 'x' is that of line 2 too"),
    "empty": ("a.conll", "", None, "no sentence in it"),
    "blank": ("a.jsonl", "\n \n", None, "no sentence in it"),
    "not UTF-8": ("a.conll", b"Ada\tO\nJos\xe9\tO\n", 2, "not UTF-8 (byte 0xe9)"),
    "Latin letters": ("a.conll", b"Ada\tO\nJos\xe9\tO\n", 2, "iconv -f CP1252 -t UTF-8; CP1250 in place of CP1252"),
    **{
        encoding: ("a.conll", f"Ada\tO\n{word}\tO\n".encode(encoding), 2, "with its own ENCODING, such as GB18030")
        for encoding, word in (
            ("gb18030", "北京"),
            ("big5", "北京"),
            ("cp932", "トヨタは"),
            ("cp949", "서울"),
            ("cp1251", "Москва"),
            ("koi8-r", "Москва"),
            ("cp1253", "Αθήνα"),
            ("cp1255", "ירושלים"),
            ("cp1256", "القاهرة"),
        )
    },
    "UTF-16": ("a.conll", "Ada\tO\n".encode("utf-16"), 1, "UTF-16"),
    "old Mac": ("a.conll", "Ada\tO\rleft\tO\r", 1, "lone carriage returns"),
    "broken gzip": ("a.conll.gz", b"not gzip", None, "broken gzip"),
    "cut gzip": ("a.conll.gz", gzip.compress(b"Ada\tO\n" * 9999)[:-20], None, "broken gzip"),
    "out of range": (
        "a.jsonl",
        '{"tokens":["a"]}\n{"tokens":["a"],"entities":[{"start":0,"end":2,"type":"X"}]}',
        2,
        "out of range: 1 tokens",
    ),
    "reversed": ("a.jsonl", '{"tokens":["a","b"],"entities":[{"start":1,"end":0,"type":"X"}]}', 1, "reversed"),
    "spans reversed": (
        "a.jsonl",
        '{"tokens":["a","b","c"],"entities":[{"spans":[[2,3],[0,1]],"type":"X"}]}',
        1,
        "precedes",
    ),
    "not whole": ("a.jsonl", '{"tokens":["a"],"entities":[{"start":0,"end":1.0,"type":"X"}]}', 1, "two integers"),
    "no end": ("a.jsonl", '{"tokens":["a"],"entities":[{"start":0,"type":"X"}]}', 1, "without start and end"),
    "no type": ("a.jsonl", '{"tokens":["a"],"entities":[{"start":0,"end":1}]}', 1, "without a type"),
    "twice": (
        "a.jsonl",
        '{"tokens":["a"],"entities":[{"start":0,"end":1,"type":"X"},{"start":0,"end":1,"type":"X"}]}',
        1,
        "twice",
    ),
    "not an object": ("a.jsonl", '{"tokens":["a"]}\n["a"]\n', 2, "an array where an object is expected"),
    "number": ("a.jsonl", "3\n", 1, "a number where an object is expected"),
    "not JSON": ("a.jsonl", '{"tokens":["a"]}\n{"tokens":\n', 2, "not JSON"),
    "deep": ("a.jsonl", f'{{"tokens":["a"],"id":"x","y":{"[" * 1010}{"1" * 19}{"]" * 1010}}}', 1, "nested too deep"),
    "no tokens": ("a.jsonl", '{"text":"a"}\n', 1, "no list 'tokens'"),
    "token not string": ("a.jsonl", '{"tokens":["a",1]}\n', 1, "must be a string, not 1"),
    "no token": ("a.jsonl", '{"tokens":[]}\n', 1, "at least one token"),
    "same id": ("a.jsonl", '{"id":"x","tokens":["a"]}\n{"id":"x","tokens":["b"]}\n', 2, "id 'x' is that of line 1 too"),
}


@pytest.mark.parametrize("case", FAULTY)
def test_each_fault_is_one_line_with_file_line_and_remedy(tmp_path: Path, case: str) -> None:
    name, content, line, message = FAULTY[case]
    path = put(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        entaug.read(path)
    text = str(caught.value)
    assert message in text
    assert text.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert "\n" not in text
    if case not in ("out of range", "reversed", "spans reversed", "not whole", "twice", "token not string", "no token"):
        assert caught.value.remedy


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; check the path"):
        entaug.read(tmp_path / "none.conll")
    with pytest.raises(InputError, match="is a directory"):
        entaug.read(tmp_path)
    with pytest.raises(OutputError, match="make the folder first"):
        entaug.write([ADA], tmp_path / "none" / "a.conll")


def test_repair_mends_and_counts(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", table("Ada/B-PER left/O Rome/I-LOC", "Bo/I-PER"))
    opened = open_file(path, scheme="IOB2")
    reading = ReadReport(repair=True)
    assert [len(s.mentions) for s in opened.sentences(reading)] == [2, 1]
    assert reading.repaired == {"I- that continues no mention": 2}


@pytest.mark.parametrize("name", ["a.conll", "a.jsonl"])
def test_repair_drops_repeated_ids(tmp_path: Path, name: str) -> None:
    rows = "# sent_id = x\na\tB-X\n\n# sent_id = x\nb\tO\n\n"
    content = rows if name == "a.conll" else '{"id":"x","tokens":["a"]}\n{"id":"x","tokens":["b"]}\n'
    opened = open_file(put(tmp_path, name, content))
    reading = ReadReport(repair=True)
    corpus = list(opened.sentences(reading))
    assert [s.id for s in corpus] == ["x", None]
    assert reading.repaired == {"id of another sentence dropped": 1}
    assert opened.format.dump(corpus[1], opened.dialect).count("x") == 0


def test_a_broken_sentence_can_be_left_out(tmp_path: Path) -> None:
    path = put(tmp_path, "a.conll", table("Ada/B-PER left/O Rome/B-LOC", "Bo/I-PER", "Ada/B-PER left/O Rome/B-LOC"))
    faults: list[InputError] = []
    assert list(open_file(path).sentences(ReadReport(on_fault=faults.append))) == [ADA, ADA]
    assert [type(f) for f in faults] == [TagError]
    assert faults[0].line == 5


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (Sentence(["a\tb"]), "holds a column separator"),
        (Sentence(["a\nb"]), "holds a line end"),
        (Sentence(["a\r"]), "holds a line end"),
        (Sentence(["\ud800"]), "holds half a character"),
        (Sentence(["a"], [Mention("\ud800", [(0, 1)])]), "holds half a character"),
        (Sentence(["-DOCSTART-"]), "read as a comment"),
        (Sentence(["a", "-DOCSTART-"]), "read as a comment"),
        (Sentence(["a"], [Mention("X", [(0, 1)]), Mention("Y", [(0, 1)])]), "nested"),
    ],
)
def test_what_columns_cannot_carry_is_refused(tmp_path: Path, sentence: Sentence, message: str) -> None:
    with pytest.raises(LossError, match=message):
        entaug.write([sentence], tmp_path / "a.conll")
    assert not list(tmp_path.iterdir())


def test_errors_survive_pickling() -> None:
    import pickle

    error = InputError("wrong", path="a", line=3, remedy="mend it")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
    assert isinstance(error, EntaugError)


def test_white_space_at_the_edges_of_a_text(tmp_path: Path) -> None:
    line = b'{"text":"  Ada \\t sang ","tokens":["Ada","sang"],"entities":[]}\n'
    path = put(tmp_path, "a.jsonl", line)
    [s] = entaug.read(path)
    assert (s.spaces, s.text) == ((" \t ", " "), "Ada \t sang ")
    entaug.write([s], tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == line
    [own] = entaug.read(put(tmp_path, "c.jsonl", b'{"text":" a b","tokens":[" a","b"],"_before":1,"entities":[]}\n'))
    assert own.spaces == (" ", "")
    assert own.fields == {"_before": 1}


def test_what_is_no_text_is_told_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is gzip, not JSON lines; let its name end in \.gz"):
        entaug.read(put(tmp_path, "a.jsonl", gzip.compress(b"{}")))
    with pytest.raises(InputError, match="no sentence in it"):
        entaug.check(put(tmp_path, "empty.jsonl", b""), progress=lambda *_: None)


def test_losses_are_of_known_kinds(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", b'{"tokens":["a"],"entities":[],"source":"s"}\n')
    with pytest.raises(ParameterError, match="unknown kind of content: 'quux'; choose from id, text"):
        entaug.convert(path, tmp_path / "b.conll", allow_loss=["quux"])
    with pytest.raises(LossError, match=r"cannot store field 'source' \(once\); pass `allow_loss=\['field'\]` to drop"):
        entaug.convert(path, tmp_path / "b.conll")
    (tmp_path / "in").mkdir()
    folder = tmp_path / "brat"
    entaug.write(entaug.read(path), folder, "brat")
    with pytest.raises(OutputError, match="is inside an input; inputs are never overwritten; name"):
        entaug.convert(folder, folder / "c.jsonl")


@pytest.mark.parametrize("field", ["type", "label", "start", "end", "spans", "entity"])
@pytest.mark.parametrize("label", ["type", "label", "entity"])
@pytest.mark.parametrize("name", ["jsonl", "json"])
def test_json_keeps_fields_of_mentions_whatever_their_names(tmp_path: Path, name: str, field: str, label: str) -> None:
    fields = [{field: "DATE", "tid": "t1"}, {}]
    mentions = [Mention("TIMEX3", [(0, 1)]), Mention("PER", [(1, 2)])]
    sentence = Sentence(["Monday", "Ada"], mentions, layout={ENTITY_FIELDS: fields})
    entaug.write([sentence], tmp_path / "a.json", name, label=label)
    assert list(entaug.read(tmp_path / "a.json", name)) == [sentence]


def test_an_attribute_named_type_comes_through_json_lines(tmp_path: Path) -> None:
    path = put(tmp_path, "a.xml", '<PER>Ada</PER> came <TIMEX3 tid="t1" type="DATE">Monday</TIMEX3>\n')
    entaug.write(entaug.read(path, "inline", attribute=""), tmp_path / "b.jsonl")
    [sentence] = entaug.read(tmp_path / "b.jsonl")
    assert str(sentence) == "[Ada]PER came [Monday]TIMEX3"
    assert sentence.layout == {ENTITY_FIELDS: [{}, {"tid": "t1", "type": "DATE"}]}


@pytest.mark.parametrize("text", ["A headline", "Ada  sang", 5])
@pytest.mark.parametrize("name", ["jsonl", "json", "parquet"])
def test_a_field_named_text_is_kept_beside_white_space(tmp_path: Path, name: str, text: Any) -> None:
    sentence = Sentence(["Ada", "sang"], spaces=["  ", ""], meta={"_before": " "}, layout={"text": text})
    entaug.write([sentence], tmp_path / f"a.{name}", name)
    assert list(entaug.read(tmp_path / f"a.{name}", name)) == [sentence]


@pytest.mark.parametrize("spaces", [["x", ""], [" "], [1, ""], "  ", None])
def test_a_field_that_is_no_white_space_of_tokens_stays_a_field(tmp_path: Path, spaces: Any) -> None:
    record = {"text": "Ada  sang", "tokens": ["Ada", "sang"], "entities": [], "_spaces": spaces}
    [sentence] = entaug.read(put(tmp_path, "a.jsonl", json.dumps(record) + "\n"))
    assert (sentence.spaces, sentence.fields) == (("  ", ""), {"_spaces": spaces})


@pytest.mark.parametrize("name", ["entities", "tokens"])
def test_a_column_of_strings_may_have_the_name_of_labels_or_tokens(tmp_path: Path, name: str) -> None:
    tokens = "tokens" if name == "entities" else "words"
    record = {tokens: ["Ada", "sang"], "ner_tags": ["B-PER", "O"], name: ["person", "none"]}
    options: dict[str, Any] = {} if name == "entities" else {"token_field": "words"}
    path = put(tmp_path, "a.jsonl", json.dumps(record) + "\n")
    [sentence] = entaug.read(path, **options)
    assert (str(sentence), dict(sentence.columns)) == ("[Ada]PER sang", {name: ("person", "none")})
    entaug.write([sentence], tmp_path / "b.jsonl", like=path, **options)
    assert list(entaug.read(tmp_path / "b.jsonl", **options)) == [sentence]
