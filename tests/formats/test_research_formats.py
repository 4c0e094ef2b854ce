"""The forms of W2NER and BARTNER: by hand, round trips, faults, real corpora, and readers that follow their code."""

from __future__ import annotations

import json
from itertools import pairwise
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
from entaug.errors import InputError, LossError, UnknownNameError
from entaug.formats.base import ENTITY_FIELDS, ReadReport
from entaug.formats.files import open_file, target
from entaug.formats.text import DOCUMENT
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.strategies import TEXT, WORDS, sentences

LABELS = ("PER", "a-b", "é")


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def plain(corpus: Any) -> list[tuple[tuple[str, ...], tuple[Mention, ...]]]:
    return [(s.tokens, s.mentions) for s in corpus]


PAIN = Sentence(
    "muscle pain and swelling in knees".split(), [Mention("ADR", [(0, 2)]), Mention("ADR", [(0, 1), (3, 6)])]
)
CITY = Sentence(["New", "York", "City"], [Mention("ORG", [(0, 3)]), Mention("LOC", [(0, 2)])])
BARE = Sentence(["so", "it", "goes"])


# --------------------------------------------------------------------------------------------------------------- W2NER


def test_w2ner_by_hand(tmp_path: Path) -> None:
    records = [
        {
            "sentence": list(PAIN.tokens),
            "ner": [{"index": [0, 3, 4, 5], "type": "ADR"}, {"index": [0, 1], "type": "ADR"}],
        },
        {"sentence": ["so", "it", "goes"], "ner": [], "word": [[0], [1, 2]], "id": 7},
        {"sentence": list(CITY.tokens), "ner": [{"index": [0, 1, 2], "type": "ORG", "text": "NYC", "start": 3}]},
    ]
    path = put(tmp_path, "train.json", json.dumps(records))
    opened = open_file(path)
    assert (opened.format.name, opened.dialect.describe()) == ("w2ner", "W2NER's JSON array")
    first, second, third = entaug.read(path)
    assert plain([first, second]) == plain([PAIN, BARE])
    assert (second.id, second.fields) == ("7", {"word": [[0], [1, 2]]})
    assert third.fields == {ENTITY_FIELDS: [{"text": "NYC", "start": 3}]}
    out = tmp_path / "again.json"
    entaug.write([first, second, third], out, like=path)
    assert json.loads(out.read_text()) == [records[0], records[1] | {"id": "7"}, records[2]]
    assert len(out.read_text().splitlines()) == 3
    assert list(entaug.read(out)) == [first, second, third]


@settings(max_examples=examples(300))
@given(st.lists(sentences(words=TEXT, labels=LABELS), min_size=1, max_size=4), st.sampled_from([".json", ".json.gz"]))
def test_w2ner_round_trip(tmp_path: Path, corpus: list[Sentence], extension: str) -> None:
    path = tmp_path / f"a{extension}"
    corpus = [
        s.with_(id=f"s{i}", **split_fields({"doc": i, "more": {"x": [1.5, None, 2**70]}})) for i, s in enumerate(corpus)
    ]
    corpus = [s.with_(spaces=None) if any(t != t.strip() for t in s.tokens) else s for s in corpus]
    entaug.write(corpus, path, "w2ner")
    assert open_file(path).format.name == "w2ner"
    assert list(entaug.read(path)) == corpus
    again = tmp_path / f"b{extension}"
    entaug.write(entaug.read(path), again, like=path)
    assert again.read_bytes() == path.read_bytes()


@given(sentences())
def test_w2ner_tells_the_same_grid(tmp_path: Path, sentence: Sentence) -> None:
    """The chains of tokens that the paper makes relations of, read from the file, are the mentions."""
    path = tmp_path / "a.json"
    entaug.write([sentence], path, "w2ner")
    [record] = json.loads(path.read_text())
    assert record["sentence"] == list(sentence.tokens)
    chains = {(tuple(one["index"]), one["type"]) for one in record["ner"]}
    assert all(a < b for index, _ in chains for a, b in pairwise(index))
    assert chains == {(m.positions(), m.label) for m in sentence.mentions}


W2NER_FAULTS: dict[str, tuple[str | bytes, str]] = {
    "not JSON": ('[{"sentence": ["a"], "ner": [', "not JSON"),
    "deep": ("[" * 5000, "not JSON"),
    "not UTF-8": (b'[{"sentence": ["\xe9"], "ner": []}]', "not UTF-8"),
    "surrogate": ('[{"sentence": ["\\ud800"], "ner": []}]', "not JSON"),
    "number": ('[{"sentence": ["a"]}, 3]', "sentence 2: a number where an object is expected"),
    "truth": ('[{"sentence": ["a"]}, true]', "sentence 2: a truth value where an object is expected"),
    "no tokens": ('[{"tokens": ["a"], "ner": []}]', "no list 'sentence' of tokens"),
    "odd token": ('[{"sentence": ["a", 1], "ner": []}]', "a token in 'sentence' must be a string, not 1"),
    "empty token": ('[{"sentence": ["a", ""], "ner": []}]', "sentence 1: token 2 is empty"),
    "no token": ('[{"sentence": [], "ner": [{"index": [0], "type": "X"}]}]', "at least one token"),
    "ner": ('[{"sentence": ["a"], "ner": {}}]', "'ner' is not a list"),
    "mention": ('[{"sentence": ["a"], "ner": [[0, 1, "X"]]}]', "a mention must be an object"),
    "no type": ('[{"sentence": ["a"], "ner": [{"index": [0]}]}]', "a mention without a type"),
    "empty type": ('[{"sentence": ["a"], "ner": [{"index": [0], "type": ""}]}]', "non-empty string"),
    "no index": ('[{"sentence": ["a"], "ner": [{"type": "X"}]}]', "a list of whole numbers, not None"),
    "empty index": ('[{"sentence": ["a"], "ner": [{"index": [], "type": "X"}]}]', "a list of whole numbers, not []"),
    "bool": ('[{"sentence": ["a"], "ner": [{"index": [false], "type": "X"}]}]', "a list of whole numbers"),
    "float": ('[{"sentence": ["a"], "ner": [{"index": [0.0], "type": "X"}]}]', "a list of whole numbers"),
    "negative": ('[{"sentence": ["a", "b"], "ner": [{"index": [-1, 1], "type": "X"}]}]', "negative"),
    "huge": (f'[{{"sentence": ["a"], "ner": [{{"index": [{10**30}], "type": "X"}}]}}]', "out of range: 1 tokens"),
    "order": ('[{"sentence": ["a", "b"], "ner": [{"index": [1, 0], "type": "X"}]}]', "out of order"),
    "twice": ('[{"sentence": ["a"], "ner": [{"index": [0], "type": "X"}, {"index": [0], "type": "X"}]}]', "twice"),
    "id": ('[{"sentence": ["a"], "ner": [], "id": [1]}]', "'id' must be a string"),
    "same id": ('[{"sentence": ["a"], "id": "x"}, {"sentence": ["a"], "id": "x"}]', "sentence 2: id 'x' is that of"),
    "nothing": ("[]", "no sentence in it"),
    "empty": ("", "no sentence in it"),
}


@pytest.mark.parametrize("case", W2NER_FAULTS)
def test_w2ner_faults(tmp_path: Path, case: str) -> None:
    content, message = W2NER_FAULTS[case]
    path = put(tmp_path, "a.json", content)
    with pytest.raises(InputError) as caught:
        entaug.read(path, "w2ner")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_w2ner_goes_on_after_a_fault_and_repairs(tmp_path: Path) -> None:
    good = {"sentence": ["a", "b", "c"], "ner": [{"index": [0], "type": "X"}]}
    bad = {"sentence": ["a", "b", "c"], "ner": [{"index": [2, 0], "type": "X"}, {"index": [0, 2], "type": "X"}]}
    path = put(tmp_path, "a.json", json.dumps([good, bad, {"sentence": [], "ner": []}, good]))
    faults: list[InputError] = []
    reading = ReadReport(on_fault=faults.append)
    assert len(list(open_file(path).sentences(reading))) == 2
    assert len(faults) == 1
    assert reading.notes == {"empty sentence left out": 1}
    reading = ReadReport(repair=True)
    mended = list(open_file(path).sentences(reading))[1]
    assert mended.mentions == (Mention("X", [(0, 1), (2, 3)]),)
    assert reading.repaired == {"tokens of a mention put in order": 1, "mention that was given twice dropped": 1}


def test_w2ner_keeps_provenance_and_leaves_stale_places_out(tmp_path: Path) -> None:
    made = PAIN.with_(id="p", **split_fields({"entaug": {"method": "mr"}, "word": [[0, 1]], "doc": 3, "ner": 1}))
    path = tmp_path / "a.json"
    entaug.write([made], path, "w2ner")
    [back] = entaug.read(path)
    assert back.fields == {"entaug": {"method": "mr"}, "doc": 3}
    found = target(path, "w2ner")
    assert found.format.lost(made, found.dialect) == ["field 'ner'"]
    with pytest.raises(LossError, match="cannot be written as JSON"):
        entaug.write([PAIN.with_fields({"x": object()})], path, "w2ner")
    with pytest.raises(LossError, match="cannot be written as JSON"):
        entaug.write([Sentence(["\ud800"])], path, "w2ner")
    assert list(entaug.read(path)) == [back], "a failed write changes nothing"


# ------------------------------------------------------------------------------------- BARTNER, for discontinuous ones


def test_bartner_by_hand(tmp_path: Path) -> None:
    text = (
        "muscle pain and swelling in knees\n0,0,3,5 ADR|0,1 ADR\n\nso it goes\n\n\nNew York City\n0,1 LOC|0,2 ORG\n\n"
    )
    path = put(tmp_path, "train.txt", text)
    opened = open_file(path)
    assert (opened.format.name, opened.dialect.describe()) == ("bartner", "BARTNER's lines of tokens and mentions")
    corpus = list(entaug.read(path))
    assert plain(corpus) == plain([PAIN, BARE, CITY])
    entaug.write(corpus, tmp_path / "b.txt", like=path)
    assert (tmp_path / "b.txt").read_text() == text
    # Neither the empty line at the end nor line ends nor a mark at the beginning matter.
    odd = put(tmp_path, "odd", "\ufeff" + text.replace("\n", "\r\n").rstrip())
    assert open_file(odd).format.name == "bartner"
    assert list(entaug.read(odd)) == corpus


def by_the_readme(text: str) -> list[tuple[list[str], set[tuple[str, tuple[int, ...]]]]]:
    """A reader that follows what BARTNER says of its data, and nothing of ours."""
    lines = text.split("\n")
    found = []
    for i in range(0, len(lines) - 2, 3):
        mentions = set()
        for part in filter(None, lines[i + 1].split("|")):
            places, label = part.split(" ")
            ends = [int(place) for place in places.split(",")]
            positions = [p for a, b in zip(ends[::2], ends[1::2], strict=True) for p in range(a, b + 1)]
            mentions.add((label, tuple(positions)))
        found.append((lines[i].strip().split(" "), mentions))
    return found


@settings(max_examples=examples(300))
@given(st.lists(sentences(words=TEXT | WORDS, labels=LABELS), min_size=1, max_size=4))
def test_bartner_round_trip(tmp_path: Path, corpus: list[Sentence]) -> None:
    path = tmp_path / "a.txt"
    try:
        entaug.write(corpus, path, "bartner")
    except LossError as error:
        tokens = [t for s in corpus for t in s.tokens]
        if "holds a NUL character" in str(error):
            assert any("\0" in t for t in tokens)
        else:
            assert "holds white space" in str(error)  # noqa: PT017
            assert any(t != t.strip() or set(t) & set(" \n\r") for t in tokens)
        return
    assert plain(entaug.read(path, "bartner")) == plain(corpus)
    if any(s.mentions for s in corpus):
        assert open_file(path).format.name == "bartner"
    text = path.read_bytes().decode("utf-8-sig")
    assert by_the_readme(text) == [(list(s.tokens), {(m.label, m.positions()) for m in s.mentions}) for s in corpus]


BARTNER_FAULTS: dict[str, tuple[str | bytes, int | None, str]] = {
    "no mention": ("a b\nX\n\n", 1, "'X' is no mention"),
    "no label": ("a b\n0,1\n\n", 1, "'0,1' is no mention"),
    "odd": ("a b\n0,1,1 X\n\n", 1, "'0,1,1 X' is no mention"),
    "two words": ("a b\n0,1 X Y\n\n", 1, "is no mention"),
    "letters": ("a b\n0,x X\n\n", 1, "is no mention"),
    "long": (f"a b\n0,{'9' * 5000} X\n\n", 1, "is no mention"),
    "empty part": ("a b\n0,0 X|\n\n", 1, "'' is no mention"),
    "beyond": ("a b\n\n\na b\n0,2 X\n\n", 4, "out of range: 2 tokens"),
    "negative": ("a b\n-1,0 X\n\n", 1, "negative"),
    "reversed": ("a b\n1,0 X\n\n", 1, "reversed"),
    "overlap": ("a b c\n0,1,1,2 X\n\n", 1, "overlaps"),
    "twice": ("a b c\n0,1 X|0,1 X\n\n", 1, "twice"),
    "empty token": ("a  b\n0,0 X\n\n", 1, "token 2 is empty"),
    "out of step": ("a b\n0,0 X\n\na b\n0,0 X\na b\n", 6, "an empty line is expected"),
    "no line": ("a b\n0,0 X\n\n\n0,0 X\n\n", 5, "mentions follow an empty line of tokens"),
    "empty": ("", None, "no sentence in it"),
    "blank": ("\n\n\n\n\n\n", None, "no sentence in it"),
    "not UTF-8": (b"Jos\xe9\n0,0 X\n\n", 1, "not UTF-8"),
}


@pytest.mark.parametrize("case", BARTNER_FAULTS)
def test_bartner_faults(tmp_path: Path, case: str) -> None:
    content, line, message = BARTNER_FAULTS[case]
    path = put(tmp_path, "a.txt", content)
    with pytest.raises(InputError) as caught:
        entaug.read(path, "bartner")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert "\n" not in str(caught.value)


def test_bartner_goes_on_after_a_fault_but_not_out_of_step(tmp_path: Path) -> None:
    path = put(tmp_path, "a.txt", "a b\n0,9 X\n\na b\n0,0 X|0,0 X\n\n\n\n\nc\n\n\nx\n0,0 X\ny\nz\n\n\n")
    faults: list[InputError] = []
    reading = ReadReport(repair=True, on_fault=faults.append)
    found = list(open_file(path, "bartner").sentences(reading))
    assert [s.tokens for s in found] == [("a", "b"), ("c",)]
    assert [f.line for f in faults] == [1, 15]
    assert reading.repaired == {"mention that was given twice dropped": 1}
    assert reading.notes == {"empty sentence left out": 1}


def test_bartner_says_what_it_has_no_place_for(tmp_path: Path) -> None:
    to = target(tmp_path / "a", "bartner")
    full = PAIN.with_(id="x", **split_fields({"entaug": {}}), columns={"1": ("_",) * 6}, spaces=("",) * 6)
    assert to.format.lost(full, to.dialect) == ["column '1'", "field 'entaug'", "text", "id"]
    for label in ("a b", "a|b", "a\n", "\u2003"):
        with pytest.raises(LossError, match=r"label .* holds white space or a bar"):
            to.format.dump(Sentence(["a"], [Mention(label, [(0, 1)])]), to.dialect)
    for sentence in (Sentence(["\ud800"]), Sentence(["a"], [Mention("\ud800", [(0, 1)])])):
        with pytest.raises(LossError, match="holds half a character"):
            to.format.dump(sentence, to.dialect)
    with pytest.raises(UnknownNameError, match="unknown option of the bartner format: 'scheme'; there are none"):
        target(tmp_path / "a", "bartner", scheme="IOB2")


def test_bartner_reads_ranges_and_large_files(tmp_path: Path) -> None:
    to = target(tmp_path / "a", "bartner")
    text = to.format.dump(PAIN, to.dialect) + to.format.dump(BARE, to.dialect)
    path = put(tmp_path, "a.txt", text * 40_000)
    found = list(entaug.stream(path))
    assert plain(found) == plain([PAIN, BARE]) * 40_000
    some = to.format.read(path, to.dialect, ReadReport(), len(text), 3 * len(text))
    assert plain(some) == plain([PAIN, BARE, PAIN, BARE])


@pytest.mark.parametrize(
    "content",
    [
        "a O\nb B-X\n\n",
        "a\tO\n\n\n",
        "",
        "a b\n\n\n",
        "so\n0,0 X\nit\n",
        '{"tokens": ["a"]}\n\n\n',
        "a\n0 X\n\n",
        "\x00",
    ],
)
def test_other_files_are_not_bartners(tmp_path: Path, content: str) -> None:
    path = put(tmp_path, "a", content)
    for name in ("bartner", "bartner-nested", "w2ner"):
        assert not target(path, name).format.recognises(path)
        assert not target(path, name).format.recognises(tmp_path / "none")
        assert not target(path, name).format.recognises(tmp_path)


# -------------------------------------------------------------------------------------------- BARTNER, for nested ones


def test_bartner_nested_by_hand(tmp_path: Path) -> None:
    documents = [
        {
            "doc_key": "d",
            "sentences": [list(CITY.tokens), list(BARE.tokens)],
            "ners": [[[0, 1, "LOC"], [0, 2, "ORG"]], []],
            "clusters": [[1]],
        },
        {"sentences": [["a"]], "ners": [[[0, 0, "X"]]]},
        {"sentences": [["a"], ["b"]], "ners": [[], []], "ids": "of somebody else", "entaug": 3},
    ]
    path = put(tmp_path, "train.jsonl", b"\n".join(map(orjson.dumps, documents)))
    opened = open_file(path)
    assert (opened.format.name, opened.dialect.describe()) == (
        "bartner-nested",
        "BARTNER's JSON lines, a document a line",
    )
    corpus = list(entaug.read(path))
    assert plain(corpus[:2]) == plain([CITY, BARE])
    assert [s.id for s in corpus] == ["d-1", "d-2", None, None, None]
    assert corpus[0].fields == {"clusters": [[1]], DOCUMENT: ["d", 0]}
    assert corpus[2].fields == {}
    assert corpus[3].fields == {"ids": "of somebody else", "entaug": 3, DOCUMENT: ["#3", 0]}
    entaug.write(corpus[:3], tmp_path / "b.jsonl", like=path)
    assert [orjson.loads(line) for line in (tmp_path / "b.jsonl").read_bytes().splitlines()] == documents[:2]
    assert list(entaug.read(tmp_path / "b.jsonl")) == corpus[:3]


@settings(max_examples=examples(200))
@given(st.lists(sentences(words=TEXT, gaps=False, labels=LABELS), min_size=1, max_size=6), st.data())
def test_bartner_nested_round_trip(tmp_path: Path, corpus: list[Sentence], data: st.DataObject) -> None:
    path = tmp_path / "a.jsonl"
    corpus = [s.with_(columns={}, spaces=None, id=None) for s in corpus]
    if data.draw(st.booleans()):
        corpus = [s.with_(id=f"s{i}", meta={"doc": i}) for i, s in enumerate(corpus)]
    entaug.write(corpus, path, "bartner-nested")
    assert open_file(path).format.name == "bartner-nested"
    assert list(entaug.read(path)) == corpus
    # As documents of several sentences each.
    rows = [{"sentences": [s.tokens], "ners": [[[m.start, m.end - 1, m.label] for m in s.mentions]]} for s in corpus]
    merged: list[dict[str, Any]] = []
    for row in rows:
        joins, named = data.draw(st.tuples(st.booleans(), st.booleans()))
        if merged and joins:
            merged[-1]["sentences"] += row["sentences"]
            merged[-1]["ners"] += row["ners"]
        else:
            merged.append(row | {"n": len(merged)} | ({"doc_key": f"k{len(merged)}"} if named else {}))
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in merged))
    read = list(entaug.read(path, "bartner-nested"))
    assert plain(read) == plain(corpus)
    entaug.write(read, tmp_path / "b.jsonl", "bartner-nested")
    assert list(entaug.read(tmp_path / "b.jsonl", "bartner-nested")) == read
    again = [orjson.loads(line) for line in (tmp_path / "b.jsonl").read_bytes().splitlines()]
    assert [{**one, "ners": [sorted(n) for n in one["ners"]]} for one in again] == [
        orjson.loads(orjson.dumps({**one, "ners": [sorted(n) for n in one["ners"]]})) for one in merged
    ]


NESTED_FAULTS = {
    "array": ("[1]", "an array where an object is expected"),
    "not JSON": ('{"sentences"', "not JSON"),
    "no ners": ('{"sentences": [["a"]]}', "no lists 'sentences' and 'ners'"),
    "lengths": ('{"sentences": [["a"]], "ners": []}', "0 lists of mentions for 1 sentences"),
    "key": ('{"doc_key": [], "sentences": [["a"]], "ners": [[]]}', "'doc_key' must be a string"),
    "tokens": ('{"sentences": ["a"], "ners": [[]]}', "sentence 1 of the document: no list 'sentences' of tokens"),
    "token": ('{"sentences": [[null]], "ners": [[]]}', "must be a string, not None"),
    "empty token": ('{"sentences": [[""]], "ners": [[]]}', "token 1 is empty"),
    "mentions": ('{"sentences": [["a"]], "ners": [{}]}', "mentions are a list"),
    "mention": ('{"sentences": [["a"]], "ners": [[[0, 0]]]}', "[0, 0] is no mention"),
    "bool": ('{"sentences": [["a"]], "ners": [[[false, 0, "X"]]]}', "is no mention"),
    "label": ('{"sentences": [["a"]], "ners": [[[0, 0, 3]]]}', "non-empty string, not 3"),
    "beyond": ('{"sentences": [["a"], ["b"]], "ners": [[], [[0, 1, "X"]]]}', "sentence 2 of the document: span"),
    "negative": ('{"sentences": [["a"]], "ners": [[[-1, 0, "X"]]]}', "negative"),
    "reversed": ('{"sentences": [["a", "b"]], "ners": [[[1, 0, "X"]]]}', "reversed"),
    "no token": ('{"sentences": [[]], "ners": [[[0, 0, "X"]]]}', "at least one token"),
    "twice": ('{"sentences": [["a"]], "ners": [[[0, 0, "X"], [0, 0, "X"]]]}', "twice"),
    "same key": ('{"doc_key": "x", "sentences": [["c"]], "ners": [[]]}', "id 'x' is that of line 1 too"),
}


@pytest.mark.parametrize("case", NESTED_FAULTS)
def test_bartner_nested_faults(tmp_path: Path, case: str) -> None:
    content, message = NESTED_FAULTS[case]
    good = '{"doc_key": "x", "sentences": [["a"]], "ners": [[[0, 0, "X"]]]}\n'
    path = put(tmp_path, "a.jsonl", f"{good}\n{content}\n{good.replace('x', 'y')}")
    with pytest.raises(InputError) as caught:
        entaug.read(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert "\n" not in str(caught.value)
    faults: list[InputError] = []
    assert len(list(open_file(path).sentences(ReadReport(on_fault=faults.append)))) >= 2
    assert len(faults) == 1


def test_bartner_nested_repairs_and_empties(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        "a.jsonl",
        '{"doc_key": "x", "sentences": [["a"], [], ["b"]], "ners": [[[0, 0, "X"], [0, 0, "X"]], [], []]}\n'
        '{"doc_key": "x-1", "sentences": [["c"]], "ners": [[]]}\n',
    )
    reading = ReadReport(repair=True)
    found = list(open_file(path).sentences(reading))
    assert [s.id for s in found] == ["x-1", "x-3", None]
    assert reading.repaired == {"mention that was given twice dropped": 1, "id of another sentence dropped": 1}
    assert reading.notes == {"empty sentence left out": 1}
    entaug.write(found, tmp_path / "b.jsonl", like=path)
    again = list(entaug.read(tmp_path / "b.jsonl"))
    assert [(s.tokens, s.mentions, s.id) for s in again] == [(s.tokens, s.mentions, s.id) for s in found]
    with pytest.raises(InputError, match="no sentence in it"):
        entaug.read(put(tmp_path, "c.jsonl", "\n"), "bartner-nested")


def test_bartner_nested_refuses_gaps_and_names_losses(tmp_path: Path) -> None:
    with pytest.raises(LossError, match=r"discontinuous mention .*; write the form for discontinuous"):
        entaug.write([PAIN], tmp_path / "a.jsonl", "bartner-nested")
    to = target(tmp_path / "a", "bartner-nested")
    full = CITY.with_(
        id="x", **split_fields({"ners": 1, ENTITY_FIELDS: []}), columns={"1": ("_",) * 3}, spaces=("",) * 3
    )
    assert to.format.lost(full, to.dialect) == ["column '1'", "field 'ners'", f"field '{ENTITY_FIELDS}'", "text"]


# ---------------------------------------------------------------------------------------------- augmented, and corpora


@pytest.mark.parametrize("name", ["w2ner", "bartner", "bartner-nested"])
def test_files_are_augmented(tmp_path: Path, name: str) -> None:
    gold = [CITY.with_(id="d-1"), BARE.with_(id="d-2"), Sentence("Ada left Rome".split(), [], "d-3")]
    gold[2] = gold[2].with_(mentions=(Mention("LOC", [(2, 3)]),))
    if name == "bartner-nested":
        gold = [s.with_fields({DOCUMENT: ["d", i]}) for i, s in enumerate(gold)]
    path = tmp_path / "gold"
    entaug.write(gold, path, name)
    out = tmp_path / "out"
    summary = augment_file(path, out, create_augmenter("mr", seed=1, copies=2))
    both = list(entaug.read(out))
    assert plain(both[:3]) == plain(gold)
    assert len(both) == 3 + summary.statistics.accepted > 3
    assert open_file(out).format.name == name
    if name != "bartner":
        assert all(s.fields["entaug"]["method"] == "mr" for s in both[3:])
        assert [s.id for s in both] == ["d-1", "d-2", "d-3", *(s.id for s in both[3:])]
        assert len({s.id for s in both}) == len(both)
    entaug.write(both, tmp_path / "again", like=out)
    assert (tmp_path / "again").read_bytes() == out.read_bytes()


@pytest.mark.corpora
@pytest.mark.parametrize("kind", ["nested-jsonl", "discontinuous-jsonl"])
@pytest.mark.parametrize("name", ["w2ner", "bartner", "bartner-nested"])
def test_genia_comes_back(corpora: Path, tmp_path: Path, kind: str, name: str) -> None:
    if (kind, name) == ("discontinuous-jsonl", "bartner-nested"):
        pytest.skip("it has no place for gaps")
    source = corpora / "genia" / kind / "test.jsonl"
    gold = list(entaug.read(source))
    out = tmp_path / "a.out"
    if name == "bartner":
        gold = [s for s in gold if not any(" " in t for t in s.tokens)]
        entaug.write(gold, out, name)
    else:
        entaug.convert(source, out, to_format=name)
    assert open_file(out).format.name == name
    back = list(entaug.read(out))
    assert plain(back) == plain(gold)
    if name == "w2ner":
        assert back == gold
    entaug.write(back, tmp_path / "b.out", like=out)
    assert (tmp_path / "b.out").read_bytes() == out.read_bytes()
    entaug.write(back, tmp_path / "c.jsonl")
    assert plain(entaug.read(tmp_path / "c.jsonl")) == plain(gold)
