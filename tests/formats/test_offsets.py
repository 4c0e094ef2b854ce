"""What the offsets of a file count: decided over the whole file, said, and kept in writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.errors import InputError, LossError
from entaug.formats.base import ReadReport
from entaug.formats.files import open_file
from entaug.formats.text import UnitDetector, characters_of, counter
from helpers.strategies import sentences

pytest.importorskip("spacy")

# The letters are single words: a range fits words wherever it is, and only the names in the second text tell.
LETTERS = "😀😀 A B C D visited Rome"
NAMES = "😀👍🏽 Öttl met Mira in Köln 🎉 and Rome"
UNITS = ("utf16", "graphemes", "bytes")
COUNT: dict[str, Callable[[str], int]] = {
    "characters": len,
    "utf16": lambda text: len(text.encode("utf-16-le")) // 2,
    "bytes": lambda text: len(text.encode()),
    "graphemes": lambda text: len(text) - text.count("🏽") - text.count("\r\n") - text.count("\u0301"),
}


def given_ranges(text: str, words: Sequence[str], unit: str) -> list[list[Any]]:
    """The offsets of words as a tool that counts a unit writes them, with their label."""
    count = COUNT[unit]
    places = [(text.index(word), text.index(word) + len(word)) for word in words]
    return [[count(text[:start]), count(text[:end]), "X"] for start, end in places]


def doccano(text: str, ranges: Sequence[Any]) -> dict[str, Any]:
    return {"text": text, "label": ranges}


def prodigy(text: str, ranges: Sequence[Any]) -> dict[str, Any]:
    return {"text": text, "spans": [{"start": a, "end": b, "label": label} for a, b, label in ranges]}


def spacy_tuple(text: str, ranges: Sequence[Any]) -> list[Any]:
    return [text, {"entities": ranges}]


RECORDS: dict[str, Callable[[str, Sequence[Any]], Any]] = {
    "doccano": doccano,
    "prodigy": prodigy,
    "spacy-json": spacy_tuple,
}


def put(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> tuple[list[list[str]], list[str]]:
    """The words of the mentions of each sentence, and the notes."""
    reading = ReadReport()
    found = list(open_file(path, **options).sentences(reading))
    return [["".join(s.mention_tokens(m)) for m in s.mentions] for s in found], list(reading.notes)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", RECORDS)
def test_the_whole_file_decides(tmp_path: Path, name: str, unit: str) -> None:
    """A record that fits two units is read in that of the others, and the note counts the evidence."""
    words = ["Öttl", "Mira", "Köln", "Rome"]
    texts = [(LETTERS, ["B"]), (NAMES, words), ("Mira met Otto", ["Mira"])]
    path = put(tmp_path / "a.jsonl", *(RECORDS[name](t, given_ranges(t, w, unit)) for t, w in texts))
    if unit == "graphemes":
        texts = [(LETTERS.replace("😀😀", "👍🏽👍🏽"), ["B"]), *texts[1:]]
        put(path, *(RECORDS[name](t, given_ranges(t, w, unit)) for t, w in texts))
    found, [note] = read(path)
    assert open_file(path).format.name == name
    assert found == [w for _, w in texts]
    titles = {"utf16": "UTF-16 units", "graphemes": "grapheme clusters", "bytes": "bytes of UTF-8"}
    assert note.startswith(f"offsets count {titles[unit]}: of 5 ranges where that matters, 5 fit words as")
    assert note.endswith("as characters; to change it: `offsets='characters'`")
    if (name, unit) == ("prodigy", "graphemes"):  # the tokens of spaCy, which are written too, divide clusters
        with pytest.raises(LossError, match="within a grapheme cluster"):
            entaug.write(entaug.read(path), tmp_path / "b.jsonl", like=path)
        return
    # The same unit is written again, and a new file counts characters.
    entaug.write(entaug.read(path), tmp_path / "b.jsonl", like=path)
    assert read(tmp_path / "b.jsonl", offsets=unit)[0] == found
    assert read(tmp_path / "b.jsonl")[0] == found
    entaug.write(entaug.read(path), tmp_path / "c.jsonl", name)
    assert read(tmp_path / "c.jsonl", format=name, offsets="characters")[0] == found


@pytest.mark.parametrize("name", RECORDS)
def test_characters_need_no_note(tmp_path: Path, name: str) -> None:
    ranges = given_ranges(NAMES, ["Öttl", "Mira", "Rome"], "characters")
    path = put(tmp_path / "a.jsonl", RECORDS[name](NAMES, ranges))
    assert read(path) == ([["Öttl", "Mira", "Rome"]], [])


@pytest.mark.parametrize("name", RECORDS)
def test_an_ambiguous_unit_is_said(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / "a.jsonl", RECORDS[name](LETTERS, [[7, 8, "PER"]]))
    found, [note] = read(path)
    assert found == [["C"]]
    assert note == (
        "offsets may count UTF-16 units and were read as characters: of 1 range where that matters, 1 fit words as "
        "UTF-16 units and 1 as characters; to change it: `offsets='utf16'`"
    )
    assert read(path, offsets="utf16") == ([["B"]], [])
    assert read(path, offsets="characters") == ([["C"]], [])


def test_a_minority_of_another_unit_is_said(tmp_path: Path) -> None:
    most = given_ranges(NAMES, ["Öttl", "Mira", "Rome"], "characters")
    path = put(tmp_path / "a.jsonl", doccano(NAMES, most), doccano(NAMES, given_ranges(NAMES, ["Köln"], "utf16")))
    reading = ReadReport()
    with pytest.raises(InputError, match="Köln'") as caught:
        list(open_file(path).sentences(reading))
    assert caught.value.remedy == (
        "as UTF-16 units it is 'Köln': if all offsets count these, pass `offsets='utf16'`; "
        "`misaligned='skip'` leaves it out"
    )
    [note] = (note for note in reading.notes if note.startswith("offsets"))
    assert note == (
        "offsets count characters: of 4 ranges where that matters, 1 fit words as UTF-16 units and 3 as characters; "
        "to change it: `offsets='utf16'`"
    )


@pytest.mark.parametrize(
    ("offsets", "other", "words"),
    [("characters", "utf16", ["Köln", "Rome"]), ("utf16", "characters", ["Köln", "Mira"])],
)
def test_the_remedy_names_the_unit_before_it_cuts_words(
    tmp_path: Path, offsets: str, other: str, words: list[str]
) -> None:
    """Also where offsets lead out of the text; where no unit is to blame, the remedy is to cut."""
    for word in words:
        path = put(tmp_path / "a.jsonl", doccano(NAMES, given_ranges(NAMES, [word], other)))
        with pytest.raises(InputError) as caught:
            list(open_file(path, offsets=offsets).sentences())
        assert f"it is '{word}': if all offsets count these, pass `offsets='{other}'`;" in str(caught.value)
        assert "cut" not in str(caught.value)
    start, end, label = given_ranges(NAMES, ["ira"], offsets)[0]
    path = put(tmp_path / "b.jsonl", doccano(NAMES, [[start, end, label]]))
    with pytest.raises(InputError, match="pass `misaligned='cut'`"):
        list(open_file(path, offsets=offsets).sentences())


def test_one_mention_in_bytes_is_too_little_to_decide(tmp_path: Path) -> None:
    """But the error says what it may be, and what to do if it is not."""
    path = put(tmp_path / "a.jsonl", doccano("Bärbel met Mira", given_ranges("Bärbel met Mira", ["met"], "bytes")))
    with pytest.raises(InputError) as caught:
        list(open_file(path).sentences())
    assert caught.value.remedy == (
        "as bytes of UTF-8 it is 'met': if all offsets count these, pass `offsets='bytes'`; `misaligned='skip'` "
        "leaves it out, cut cuts the token"
    )


def test_an_offset_within_a_character(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", doccano(NAMES, [[1, 4, "X"], [0, 99, "Y"]]))
    with pytest.raises(InputError, match=r"mention X \(1-4\) is outside the text or divides a character") as caught:
        list(open_file(path, offsets="utf16").sentences())
    assert len(caught.value.others) == 1
    [s] = entaug.read(
        put(tmp_path / "b.jsonl", doccano("e\u0301 A", [[0, 1, "X"]])), offsets="characters", misaligned="cut"
    )
    with pytest.raises(LossError, match="within a grapheme cluster"):
        entaug.write([s], tmp_path / "c.jsonl", "doccano", offsets="graphemes")


def test_line_ends_are_one_grapheme(tmp_path: Path) -> None:
    """In ASCII, too: CRLF is one cluster."""
    text = "Anna left.\r\nOtto came to Berlin."
    path = put(tmp_path / "a.jsonl", doccano(text, given_ranges(text, ["Otto", "Berlin"], "graphemes")))
    found, [note] = read(path)
    assert found == [["Otto", "Berlin"]]
    assert "grapheme clusters" in note


def test_scripts_without_spaces_are_no_evidence_of_bytes(tmp_path: Path) -> None:
    text = "他在北京大学学习"
    path = put(tmp_path / "a.jsonl", *[doccano(text, given_ranges(text, ["北京"], "characters"))] * 3)
    assert read(path, misaligned="cut") == ([["北京"]] * 3, [])


def test_prodigy_tokens_tell_the_unit(tmp_path: Path) -> None:
    """Its tokens have texts and offsets; the record comes back byte for byte."""
    words = NAMES.split()
    tokens = [
        {"text": word, "start": start, "end": end, "id": i, "ws": i + 1 < len(words)}
        for i, (word, (start, end, _)) in enumerate(zip(words, given_ranges(NAMES, words, "utf16"), strict=True))
    ]
    span = {"start": tokens[3]["start"], "end": tokens[3]["end"], "token_start": 3, "token_end": 3, "label": "PER"}
    record = {"text": NAMES, "tokens": tokens, "spans": [span], "_input_hash": 5}
    path = tmp_path / "a.jsonl"
    path.write_bytes(orjson.dumps(record) + b"\n")
    found, [note] = read(path)
    assert found == [["Mira"]]
    assert note.startswith(f"offsets count UTF-16 units: of {len(words)} ranges")
    entaug.write(entaug.read(path), tmp_path / "b.jsonl", like=path)
    assert (tmp_path / "b.jsonl").read_bytes() == path.read_bytes()


def test_words_of_tuples_tell_the_unit(tmp_path: Path) -> None:
    """Where a file gives its tokens, their edges count, not those of words."""
    tokens = ["😀", "Öttl", "met", "Mi", "ra"]
    record = [
        "😀 Öttl met Mira",
        {"entities": [[11, 13, "X"]], "words": tokens, "spaces": [True, True, True, False, False]},
    ]
    assert read(put(tmp_path / "a.jsonl", record)) == ([["Mi"]], [])


def test_brat_counts_utf16(tmp_path: Path) -> None:
    """The texts of mentions decide for each document, which comes back byte for byte."""
    folder = tmp_path / "a"
    folder.mkdir()
    ranges = given_ranges(NAMES, ["Öttl", "Mira", "Rome"], "utf16")
    lines = [
        f"T{i}\tPER {a} {b}\t{w}\n"
        for i, ((a, b, _), w) in enumerate(zip(ranges, ["Öttl", "Mira", "Rome"], strict=True), 1)
    ]
    (folder / "1.txt").write_text(NAMES + "\n", encoding="utf-8")
    (folder / "1.ann").write_text("".join(lines) + "R1\tknows Arg1:T1 Arg2:T2\n", encoding="utf-8")
    found, [note] = read(folder)
    assert found == [["Öttl", "Mira", "Rome"]]
    assert note == "document whose offsets count UTF-16 units, as the texts of its mentions tell"
    entaug.write(entaug.read(folder), tmp_path / "b", "brat")
    for name in ("1.txt", "1.ann"):
        assert (tmp_path / "b" / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("unit", ["characters", *UNITS])
@settings(max_examples=examples(40))
@given(st.text(alphabet="a é😀🏽\r\n\u0301👍", max_size=20))
def test_units_count_what_they_say(unit: str, text: str) -> None:
    """Each offset leads to its character and back; the end of a text is its length in the unit."""
    known = characters_of(text, unit)
    places = {i: i for i in range(len(text) + 1)} if known is None else known
    count = counter(text, unit)
    assert {count(character): character for character in places.values()} == places
    if unit != "graphemes":
        assert {COUNT[unit](text[:i]): i for i in range(len(text) + 1)} == places


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", RECORDS)
@settings(max_examples=examples(15))
@given(gold=st.lists(sentences(gaps=False), min_size=1, max_size=3))
def test_any_sentence_comes_back_in_a_unit(tmp_path_factory: Any, name: str, unit: str, gold: Any) -> None:
    folder = tmp_path_factory.mktemp("unit")
    options = {"form": "tuples"} if name == "spacy-json" else {}
    try:
        entaug.write(gold, folder / "a.jsonl", name, offsets=unit, **options)
    except LossError:
        return
    found = list(entaug.read(folder / "a.jsonl", name, offsets=unit))
    entaug.write(gold, folder / "b.jsonl", name, offsets="characters", **options)
    wanted = list(entaug.read(folder / "b.jsonl", name, offsets="characters"))
    assert [(s.tokens, s.mentions) for s in found] == [(s.tokens, s.mentions) for s in wanted]


def test_evidence_of_invalid_ranges() -> None:
    detector = UnitDetector()
    detector.add(NAMES, [(None, 3, None), (-5, 900, None), (3, "4", None), (9, 2, "x")])
    assert detector.decide()["offsets"] == "characters"
