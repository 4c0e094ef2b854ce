"""brat standoff: by hand, by chance, on a real corpus, and by a checker of its own."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_texts import texts

import entaug
from conftest import examples
from entaug import Mention, Sentence
from entaug.core.data import split_fields
from entaug.core.edits import Edit
from entaug.core.progress import no_progress
from entaug.errors import InputError, LossError, OutputError
from entaug.formats.base import ENTITY_FIELDS, KEPT, ReadReport
from entaug.formats.brat import Brat, BratDialect
from entaug.formats.file_job import FileJob
from entaug.formats.files import open_file, target
from entaug.methods import create_augmenter
from entaug.methods.augment import Augmentation, augment_file
from helpers.brat_grammar import faults, faults_of_folder
from helpers.marks import first_fast
from helpers.strategies import TEXT, sentences

pytest.importorskip("spacy")

STORY = "Ada Byron met Charles Babbage.\nThey left London and Paris, the two capitals. It rained.\n"
LINES = [
    "T2\tPER 14 29\tCharles Babbage",
    "T1\tPER 0 9\tAda Byron",
    "R1\tKnows Arg1:T1 Arg2:T2\t",
    "T3\tTRAVEL 36 40\tleft",
    "E1\tTRAVEL:T3 Who:T1 From:T4 ",
    "T4\tLOC 41 47\tLondon",
    "T5\tLOC 52 57\tParis",
    "T6\tCAPITALS 41 47;52 57\tLondon Paris",
    "A1\tNegated E1",
    "A2\tSure E1 much",
    "N1\tReference T4 Wikidata:Q84\tLondon",
    "#1\tAnnotatorNotes T4\tA note, with any words",
    "*\tAlias T4 T6",
]
ANN = "".join(f"{line}\n" for line in LINES)
ALIGNED: dict[str, Any] = {"misaligned": "cut"}


def put(folder: Path, **documents: tuple[str | bytes, str | bytes]) -> Path:
    """A folder of documents, each a text and its annotations."""
    for name, pair in documents.items():
        for ending, content in zip((".txt", ".ann"), pair, strict=True):
            path = folder / f"{name}{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def read(path: Path, *, repair: bool = False, **options: Any) -> tuple[list[Sentence], ReadReport]:
    reading = ReadReport(repair=repair)
    return list(open_file(path, "brat", **options).sentences(reading)), reading


def again(folder: Path, out: Path, **options: Any) -> list[Sentence]:
    """Read, write, read: the sentences must be equal; what was written obeys the grammar."""
    corpus, _ = read(folder, **options)
    entaug.write(corpus, out, "brat")
    back, reading = read(out, **options)
    assert back == corpus
    assert not reading.repaired
    assert not faults_of_folder(out)
    return corpus


# ------------------------------------------------------------------------------------------------------------- by hand


def test_all_kinds_of_lines_come_back_to_the_byte(tmp_path: Path) -> None:
    assert not list(faults(STORY, ANN)), "the checker is right"
    folder = put(tmp_path / "in", doc=(STORY, ANN))
    corpus = again(folder, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(folder)
    assert [s.id for s in corpus] == ["doc-1", "doc-2", "doc-3"]
    first, second, third = corpus
    assert [(m.label, first.mention_tokens(m)) for m in first.mentions] == [
        ("PER", ("Ada", "Byron")),
        ("PER", ("Charles", "Babbage")),
    ]
    assert Mention("CAPITALS", [(2, 3), (4, 5)]) in second.mentions
    assert first.fields[ENTITY_FIELDS] == [{"id": "T1", "line": 2}, {"id": "T2", "line": 1}]
    assert [raw[:2] for _, raw in first.fields[KEPT]["lines"]] == ["R1", "E1", "A1", "A2"]
    assert [raw[:2] for _, raw in second.fields[KEPT]["lines"]] == ["N1", "#1", "*\t"]
    assert "lines" not in third.fields[KEPT]
    assert not any(Brat().lost(s, BratDialect()) for s in corpus)


def test_lines_survive_json_lines_and_are_dropped_with_what_they_speak_of(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", doc=(STORY, ANN))
    corpus, _ = read(folder)
    entaug.write(corpus, tmp_path / "a.jsonl")
    entaug.write(entaug.read(tmp_path / "a.jsonl"), tmp_path / "json", "brat")
    assert contents(tmp_path / "json") == contents(folder)

    entaug.write(corpus[:1], tmp_path / "first", "brat")
    assert (tmp_path / "first/doc.ann").read_text().splitlines() == LINES[:3]
    entaug.write(corpus[1:], tmp_path / "last", "brat")
    kept = (tmp_path / "last/doc.ann").read_text().splitlines()
    assert [line[:2] for line in kept] == ["T3", "T4", "T5", "T6", "N1", "#1", "*\t"]
    assert not faults_of_folder(tmp_path / "first") + faults_of_folder(tmp_path / "last")

    changed = corpus[1].edit([Edit(2, 3, ["Rome"])])
    assert any("has changed" in words for words in Brat().lost(changed, BratDialect()))
    entaug.write([corpus[0], changed, corpus[2]], tmp_path / "changed", "brat")
    lines = (tmp_path / "changed/doc.ann").read_text().splitlines()
    assert lines[:3] == LINES[:3]
    assert sorted(line[:2] for line in lines[3:]) == ["T5", "T6", "T7", "T8"], "no id that E1 spoke of"
    assert not faults_of_folder(tmp_path / "changed")
    assert (tmp_path / "changed/doc.txt").read_text() == STORY.replace("London", "Rome")


def test_events_that_refer_to_each_other(tmp_path: Path) -> None:
    text = "a caused b.\nc ."
    ann = "E2\tX:T2 By:E1\nE1\tX:T1 Of:E2\nT1\tX 0 1\ta\nT2\tX 12 13\tc\nR1\tY Arg1:E1 Arg2:E2\n"
    folder = put(tmp_path / "in", d=(text, ann))
    corpus = again(folder, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(folder)
    entaug.write(corpus[:1], tmp_path / "first", "brat")
    assert (tmp_path / "first/d.ann").read_text() == "T1\tX 0 1\ta\n"


@pytest.mark.parametrize(
    ("text", "ann"),
    [
        ("\n\n  Ada sang.  \n\n", "T1\tPER 4 7\tAda\n"),
        ("Ada sang.\r\nOh.\r\n", "T1\tPER 0 3\tAda\nT2\tX 11 13\tOh\n"),
        ("Ada sang.", "T1\tPER 0 3\tAda\nT2\tPER 0 3\tAda\nE1\tPER:T2\n"),
        ("New\nYork.", "T1\tLOC 0 3;4 8\tNew York\n"),
        ("New York.", "T1\tLOC 0 3;4 8\tNew York\nT2\tX 0 2;2 3\tNe w\n"),
        ("👩‍🔬 e\u0301 ﷺ. \u200bx", "T1\tX 0 3\t👩‍🔬\nT2\tX 4 6\te\u0301\nT3\tX 7 8\tﷺ\n"),
        ("Ada sang.", ""),
        ("Ada sang.", "#1\tSTATUS *\tdone\n"),
    ],
)
def test_documents_as_brat_writes_them_come_back_to_the_byte(tmp_path: Path, text: str, ann: str) -> None:
    folder = put(tmp_path / "in", d=(text, ann))
    corpus, _ = read(folder, **ALIGNED)
    entaug.write(corpus, tmp_path / "out", "brat")
    assert read(tmp_path / "out", **ALIGNED)[0] == corpus
    assert contents(tmp_path / "out") == contents(folder)


@pytest.mark.parametrize(
    ("text", "ann", "written"),
    [
        ("Ada sang.", "\nT1\tPER 0 3\tAda\n \n", "T1\tPER 0 3\tAda\n"),
        ("Ada sang.", "T1\tPER 0 3\n", "T1\tPER 0 3\tAda\n"),
        ("Ada sang.", "T1\tPER 0 3;4 8\tAdasang\n", "T1\tPER 0 3;4 8\tAda sang\n"),
        ("New \n York.", "T1\tLOC 0 10\tNew   York\n", "T1\tLOC 0 3;6 10\tNew York\n"),
        ("New\u2028York.", "T1\tLOC 0 8\tNew\u2028York\n", "T1\tLOC 0 3;4 8\tNew York\n"),
        ("Ada sang.", "\ufeffT1\tPER 0 3\tAda\n", "T1\tPER 0 3\tAda\n"),
        ("Ada sang.", "T1\tPER 0 3\tAda", "T1\tPER 0 3\tAda\n"),
        ("Ada sang.", "T1\tPER 0 3\tAda\r\nA1\tX T1\r\n", "T1\tPER 0 3\tAda\nA1\tX T1\n"),
        ("Ada sang.", "T7\tPER 4 8;0 3\tsang Ada\n", "T7\tPER 0 3;4 8\tAda sang\n"),
        ("Ada sang.", "T3\tX 0 3\tAda \tsaid by me\n", "T3\tX 0 3\tAda\n"),
        ("Ada sang.", "T01\tPER 00 04\tAda \n", "T01\tPER 0 3\tAda\n"),
    ],
)
def test_what_brat_would_not_have_gets_its_form(tmp_path: Path, text: str, ann: str, written: str) -> None:
    corpus = again(put(tmp_path / "in", d=(text, ann)), tmp_path / "out", split="none")
    assert sum(len(s.mentions) for s in corpus) == 1
    assert contents(tmp_path / "out") == {"d.ann": written.encode(), "d.txt": text.encode()}


@pytest.mark.parametrize(
    ("text", "ann", "units"),
    [
        ("Ada sang.\r\nOh.\r\n", "T1\tPER 0 3\tAda\nT2\tX 10 12\tOh\n", 0),
        ("\ufeffAda sang.", "T1\tPER 1 4\tAda\n", 0),
        ("\ufeffAda sang.", "T1\tPER 0 3\tAda\n", 0),
        ("\ufeffAda sang.\r\nOh.\r\n", "T1\tPER 1 4\tAda\nT2\tX 12 14\tOh\n", 0),
        ("\ufeffAda sang.\r\nOh.\r\n", "T1\tPER 0 3\tAda\nT2\tX 10 12\tOh\n", 0),
        ("\ufeffAda sang.\r\nOh.\n", "T1\tPER 0 3\tAda\nT2\tX 11 13\tOh\n", 0),
        ("\ufeff😀 Ada sang.\r\nOh.\n", "T1\tPER 4 7\tAda\nT2\tX 15 17\tOh\n", 1),
        ("😀 Ada sang.\r\nOh.\r\n", "T1\tPER 3 6\tAda\nT2\tX 13 15\tOh\n", 1),
    ],
)
def test_words_tell_what_offsets_count(tmp_path: Path, text: str, ann: str, units: int) -> None:
    corpus, reading = read(put(tmp_path / "in", d=(text, ann)), **ALIGNED)
    assert [s.mention_tokens(m) for s in corpus for m in s.mentions] == [("Ada",), ("Oh",)][: ann.count("\n")]
    assert sum(reading.notes.values()) == units
    assert not any(token.startswith("\ufeff") for s in corpus for token in s.tokens)
    entaug.write(corpus, tmp_path / "out", "brat")
    assert read(tmp_path / "out", **ALIGNED)[0] == corpus


def test_folders_in_folders_and_what_else_lies_there(tmp_path: Path) -> None:
    pair = ("Ada sang.", "T1\tPER 0 3\tAda\n")
    folder = put(tmp_path / "in", **{"d10": pair, "d9": pair, "sub/a.b": pair, "sub/deep/x": pair, ".hidden/h": pair})
    for name in ("annotation.conf", "sub/visual.conf", "README.md", ".stats_cache", "d9.json"):
        (folder / name).write_bytes(b"\xff not read")
    (folder / "notes.txt").write_text("no annotations")
    (tmp_path / "away").mkdir()
    put(tmp_path / "away", o=pair)
    (folder / "loop").symlink_to(folder)
    (folder / "sub/up").symlink_to("..")
    (folder / "away").symlink_to(tmp_path / "away")
    (folder / "o.txt").symlink_to(tmp_path / "away/o.txt")
    (folder / "o.ann").symlink_to(tmp_path / "away/o.ann")
    (folder / "self").symlink_to("self")
    (folder / "link.txt").symlink_to("d9.txt")
    (folder / "link.ann").symlink_to("d9.ann")
    os.mkfifo(folder / "pipe.txt")
    os.mkfifo(folder / "pipe.ann")
    corpus, reading = read(folder)
    assert [s.id for s in corpus] == ["d9", "d10", "link", "sub/a.b", "sub/deep/x"]
    assert reading.notes["text without annotations (.txt without .ann) left out"] == 1
    assert reading.notes["link to a folder, or out of the folder, not followed"] == 5
    entaug.write(corpus, tmp_path / "out", "brat")
    assert sorted(contents(tmp_path / "out")) == sorted(
        f"{name}{end}" for name in ("d9", "d10", "link", "sub/a.b", "sub/deep/x") for end in (".ann", ".txt")
    )
    assert open_file(folder).format.name == "brat"


def test_what_vanishes_while_a_folder_is_walked_is_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = ("Ada sang.", "T1\tPER 0 3\tAda\n")
    folder = put(tmp_path / "in", **{"d": pair, "sub/x": pair})
    (folder / "link.ann").symlink_to("d.ann")

    def losing(function: Any, name: str) -> Any:
        def call(path: Any, **options: Any) -> Any:
            if Path(path).name == name:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            return function(path, **options)

        return call

    monkeypatch.setattr("os.scandir", losing(os.scandir, "sub"))
    monkeypatch.setattr("os.path.realpath", losing(os.path.realpath, "link.ann"))
    corpus, reading = read(folder)
    assert [s.id for s in corpus] == ["d"]
    assert reading.notes["folder that vanished while the one around it was read: left out"] == 1
    assert reading.notes["link to a folder, or out of the folder, not followed"] == 1
    monkeypatch.setattr("os.scandir", losing(os.scandir, "in"))
    with pytest.raises(InputError, match=r"in: cannot be read \(No such file or directory\)"):
        read(folder)


def test_one_document_by_either_of_its_names(tmp_path: Path) -> None:
    folder = put(tmp_path, doc=(STORY, ANN))
    whole, _ = read(folder)
    for name in ("doc.txt", "doc.ann"):
        opened = open_file(folder / name)
        assert opened.format.name == "brat"
        assert list(opened.sentences()) == whole
    assert not Brat().recognises(put(tmp_path / "other", doc=("", "")) / "doc.md")
    (tmp_path / "rows.txt").write_text("Ada\tB-PER\n")
    assert open_file(tmp_path / "rows.txt").format.name == "conll"
    with pytest.raises(InputError, match=r"no \.ann file beside it"):
        read(tmp_path / "rows.txt")
    (tmp_path / "rows.md").write_text("x")
    with pytest.raises(InputError, match=r"no \.ann file beside it"):
        read(tmp_path / "rows.md")
    with pytest.raises(
        OutputError, match="is the name of a file, and brat standoff is written as a folder; name a folder"
    ):
        entaug.write(whole, tmp_path / "new.ann")


def test_a_file_name_decides_and_may_be_anything(tmp_path: Path) -> None:
    made = [
        Sentence(["Ada"], id=name) for name in ["a/b", "../x", "/etc/x", ".h", "x\ny", "", "é" * 200, "a/b", "\ud800"]
    ]
    made += [Sentence(["Bo"]), Sentence(["Cy"])]
    entaug.write(made, tmp_path / "out", "brat")
    names = sorted(name[:-4] for name in contents(tmp_path / "out") if name.endswith(".txt"))
    long = f"{'é' * 40}-"
    assert [name for name in names if not name.startswith(long)] == sorted(
        ["a/b", "%2E./x", "%/etc/x", "%2Eh", "x%0Ay", "%", "a/b+2", "%D800", "000010", "000011"]
    )
    assert len(names) == 11
    assert not faults_of_folder(tmp_path / "out")
    assert [bool(Brat().lost(s, BratDialect())) for s in made] == [False, *[True] * 6, False, True, False, False]
    with pytest.raises(OutputError, match="is in the way of another"):
        entaug.write([Sentence(["a"], id="a"), Sentence(["b"], id="a.txt/b")], tmp_path / "bad", "brat")
    assert not (tmp_path / "bad").exists()


def test_sentences_of_documents_never_share_an_id(tmp_path: Path) -> None:
    two = ("Ada sang. Bo left.", "T1\tX 0 3\tAda\n")
    folder = put(tmp_path / "in", **{"a": ("One two. Three.", ""), "a-1": ("Four.", ""), "a-2": two, "a-2-1": two})
    corpus = again(folder, tmp_path / "out")
    assert len({s.id for s in corpus}) == len(corpus) == 7
    assert contents(tmp_path / "out") == contents(folder)


def test_order_of_sentences_and_two_documents_of_one_name(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", doc=(STORY, ANN))
    corpus, _ = read(folder)
    entaug.write(corpus[::-1], tmp_path / "back", "brat")
    assert contents(tmp_path / "back") == contents(folder)
    entaug.write([*corpus, *corpus[:2]], tmp_path / "both", "brat")
    assert len(read(tmp_path / "both")[0]) == 5
    assert not faults_of_folder(tmp_path / "both")


def test_fields_of_others_do_no_harm(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", doc=(STORY, ANN))
    first = read(folder)[0][0]
    kept, extras = first.fields[KEPT], first.fields[ENTITY_FIELDS]
    assert kept["lines"]
    odd: list[dict[str, Any]] = [
        {KEPT: 7},
        {KEPT: {"of": kept["of"], "lines": 7}},
        {KEPT: {"of": kept["of"], "lines": [[1, "R9\tX Arg1:T1 Arg2:T77"], [2, "??"], [3, "A1\tX T1\nT9\tX 0 1\tA"]]}},
        {KEPT: {"of": "no", "lines": [[1, "A1\tX T1"]]}},
        {ENTITY_FIELDS: 7},
        {ENTITY_FIELDS: [{**extras[0], "id": "T1\nT2"}, extras[1]]},
        {"_document": 5, "_before": "nonsense"},
        {"_document": ["d", "x"]},
    ]
    for i, fields in enumerate(odd):
        entaug.write([first.with_fields({**first.fields, **fields})], tmp_path / f"{i}", "brat")
        assert not faults_of_folder(tmp_path / f"{i}")
        [back] = read(tmp_path / f"{i}")[0]
        assert (back.tokens, back.mentions) == (first.tokens, first.mentions)
    with pytest.raises(LossError, match="cannot be written as JSON"):
        entaug.write([first.with_fields({"entaug": object()})], tmp_path / "x", "brat")


# ---------------------------------------------------------------------------------------------------------- provenance


def test_augmented_sentences_become_documents_with_their_provenance(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", doc=(STORY, ANN), one=("Ada saw Rome.", "T1\tPER 0 3\tAda\nT2\tLOC 8 12\tRome\n"))
    out = tmp_path / "out"
    augment_file(folder, out, create_augmenter("mr", copies=2))
    found = contents(out)
    assert {name: content for name, content in found.items() if name in contents(folder)} == contents(folder)
    assert {name.partition("+")[2] for name in found} == {
        "",
        *(f"mr-0-{copy}{end}" for copy in (1, 2) for end in (".txt", ".ann", ".entaug.json")),
    }
    assert not faults_of_folder(out)
    corpus = again(out, tmp_path / "again")
    assert contents(tmp_path / "again") == found
    made = [s for s in corpus if s.provenance is not None]
    assert len(made) == sum(len(json.loads(c)["sentences"]) for n, c in found.items() if n.endswith(".json"))
    gold = {s.id: s for s in corpus if s.provenance is None}
    for s in made:
        assert s.fields["entaug"]["method"] == "mr"
        assert len(gold[s.fields["entaug"]["sources"][0]].mentions) == len(s.mentions)
    # And once more on top of that: what was made before stays, and what is new has names of its own.
    augment_file(out, tmp_path / "more", create_augmenter("mr", seed=1))
    more = contents(tmp_path / "more")
    assert found.items() <= more.items()
    assert len(more) > len(found)
    assert not faults_of_folder(tmp_path / "more")


def test_augmented_sentences_come_back_as_many_as_they_were(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", d=("Ada sang a song.  He left", "T1\tPER 0 3\tAda\n"))
    gold, _ = read(folder)
    made = [
        s.edit([Edit(1, 2, ["was.", "Then", "she", "sang"])]).with_(
            id=f"{s.id}/x-0-1", **split_fields({**s.fields, "entaug": {"method": "x", "copy": 1, "n": i}})
        )
        for i, s in enumerate(gold)
    ]
    entaug.write([*gold, *made], tmp_path / "out", "brat")
    back, _ = read(tmp_path / "out")
    assert [s.fields["entaug"]["n"] for s in back if s.provenance is not None] == [0, 1]
    assert [s.text.strip() for s in back[2:]] == [s.text.strip() for s in made]
    beside = tmp_path / "out/d+x-0-1.entaug.json"
    for content in (
        b"[]",
        b"{",
        b"\xff",
        b'{"sentences":[{"start":true,"entaug":1}]}',
        b"[" * 100_000,
        b'{"sentences":7}',
    ):
        beside.write_bytes(content)
        with pytest.raises(InputError, match=r"entaug\.json:?\d*: (is not what entaug writes|not UTF-8)"):
            read(tmp_path / "out")
    beside.write_bytes(b'{"sentences":[{"start":5,"entaug":1},{"start":999999999999999999999,"entaug":2}]}')
    assert {s.fields.get("entaug") for s in read(tmp_path / "out")[0]} == {None, 1}
    beside.write_bytes(b'{"sentences":[]}')
    assert not any(s.provenance is not None for s in read(tmp_path / "out")[0])


# --------------------------------------------------------------------------------------------------------------- faults

FAULTY: dict[str, tuple[str, int, str, int]] = {
    # annotations, line, message, mentions with --repair
    "no tab": ("T1 PER 0 3 Ada\n", 1, "no line of brat's standoff format", 0),
    "no offsets": ("T1\tPER\tAda\n", 1, "no line of brat's", 0),
    "one offset": ("T1\tPER 0\tAda\n", 1, "no line of brat's", 0),
    "negative": ("T1\tPER -1 3\tAda\n", 1, "no line of brat's", 0),
    "huge": (f"T1\tPER 0 {'9' * 5000}\tAda\n", 1, "no line of brat's", 0),
    "other text": ("#1\tX T1\ty\nT1\tPER 0 3\tsang\n", 2, "T1 says 'sang', but at 0 3 the text has 'Ada'", 1),
    "other text, not there": ("T1\tPER 0 3\tBo\n", 1, "T1 says 'Bo', but", 1),
    "longer text": ("T1\tPER 0 3\tAdam\n", 1, "T1 says 'Adam'", 1),
    "outside": ("T1\tPER 0 99\tAda\n", 1, "T1 (0 99) is empty, or outside the text of 9 characters", 1),
    "outside, not there": ("T1\tPER 90 99\tBo\nA1\tX T1\n", 1, "outside the text", 0),
    "reversed": ("T1\tPER 3 0\tAda\n", 1, "is empty, or outside", 1),
    "empty": ("T1\tPER 3 3\t\n", 1, "is empty, or outside", 0),
    "white space": ("T1\tPER 3 4\t \n", 1, "is white space alone", 0),
    "overlap": ("T1\tPER 0 3;2 8\tAda a sang\n", 1, "has ranges that overlap", 0),
    "id twice": ("T1\tPER 0 3\tAda\nT1\tX 4 8\tsang\n", 2, "id T1 is that of line 1 too", 2),
    "id twice, others": ("T1\tPER 0 3\tAda\nA1\tX T1\nA1\tY T1\n", 3, "id A1 is that of line 2 too", 1),
    "unknown kind": ("X1\tfoo T1\n", 1, "no line of brat's", 0),
    "no id": ("#\tnote\n", 1, "no line of brat's", 0),
    "relation": ("T1\tPER 0 3\tAda\nR1\tX Arg1:T1\n", 2, "no line of brat's", 1),
    "event": ("T1\tPER 0 3\tAda\nE1\tX\n", 2, "no line of brat's", 1),
    "equivalence": ("T1\tPER 0 3\tAda\n*\tX T1\n", 2, "no line of brat's", 1),
    "normalisation": ("T1\tPER 0 3\tAda\nN1\tX T1\n", 2, "no line of brat's", 1),
    "attribute": ("A1\tX\n", 1, "no line of brat's", 0),
    "reference": ("T1\tPER 0 3\tAda\nR1\tX Arg1:T1 Arg2:T9\n", 2, "R1 refers to T9, which is not there", 1),
}


@pytest.mark.parametrize("case", FAULTY)
def test_faults_name_file_and_line_and_are_mended(tmp_path: Path, case: str) -> None:
    ann, line, message, mentions = FAULTY[case]
    folder = put(tmp_path / "in", bad=("Ada sang.", ann), good=("Bo left.", ""))
    with pytest.raises(InputError) as caught:
        read(folder)
    assert str(caught.value).startswith(f"{folder / 'bad.ann'}:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    faults: list[InputError] = []
    assert [s.id for s in open_file(folder).sentences(ReadReport(on_fault=faults.append))] == ["good"]
    assert faults
    corpus, reading = read(folder, repair=True)
    assert reading.repaired.total() == 1
    assert [s.id for s in corpus] == ["bad", "good"]
    assert len(corpus[0].mentions) == mentions
    entaug.write(corpus, tmp_path / "out", "brat")
    assert not faults_of_folder(tmp_path / "out")
    assert read(tmp_path / "out")[0] == corpus or "twice" in case


def test_repair_finds_the_text_that_is_meant(tmp_path: Path) -> None:
    text = "Ada met Bo. Ada left. Ada."
    folder = put(tmp_path, d=(text, "T1\tPER 14 17\tAda\nT2\tPER 7 9\tBo\nT3\tPER 99 102\tAda\n"))
    corpus, reading = read(folder, repair=True, split="none")
    assert [m.spans for m in corpus[0].mentions] == [((2, 3),), ((4, 5),), ((7, 8),)]
    assert reading.repaired == {"mention moved to where its text is": 3}


def test_faults_of_files_and_folders(tmp_path: Path) -> None:
    cases: list[tuple[str, str | bytes, str | bytes, str]] = [
        ("utf8", b"Jos\xe9", "", r"utf8\.txt:1: not UTF-8"),
        ("utf8a", "x", b"T1\tX 0 1\t\xe9\n", r"utf8a\.ann:1: not UTF-8"),
        ("utf16", "x".encode("utf-16"), "", "UTF-16"),
        ("mac", "a b", "T1\tX 0 1\ta\rT2\tX 2 3\tb\r", r"mac\.ann:1: lines end with lone carriage returns"),
        ("odd", "Babbage's", "A1\tX T1\nT1\tX 0 4\tBabb\n", r"odd\.ann:2: mention X 'Babb' .* `misaligned='cut'`"),
        ("twice", "a  b", "T1\tX 0 4\ta  b\nT2\tX 0 1;3 4\ta b\n", r"twice\.ann:2: .* given twice"),
    ]
    for name, text, ann, message in cases:
        with pytest.raises(InputError, match=message):
            read(put(tmp_path / name, **{name: (text, ann)}))
    alone = put(tmp_path / "alone", d=("x", ""), e=("y", ""))
    (alone / "d.txt").unlink()
    with pytest.raises(InputError, match=r"d\.ann: no d\.txt beside it, or it is a link .*; put the text there"):
        read(alone)
    assert entaug.check(alone, from_format="brat").counts.sentences == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no sentence in it"):
        read(tmp_path / "empty")
    with pytest.raises(InputError, match="is a directory of no known format"):
        entaug.read(tmp_path / "empty")
    blank = put(tmp_path / "blank", d=("", ""), e=(" \n", "\n"))
    with pytest.raises(InputError, match="no sentence in it"):
        read(blank)
    full, reading = read(put(blank, f=("x", "")))
    assert len(full) == 1
    assert reading.notes["document without a token left out"] == 2
    (blank / "g.txt").symlink_to("g.txt")
    (blank / "g.ann").write_text("")
    with pytest.raises(InputError, match=r"g\.txt: cannot be read|no g\.txt"):
        read(blank)
    (blank / "g.ann").unlink()
    bad = os.fsencode(blank) + b"/\xff"
    for ending in (b".txt", b".ann"):
        Path(os.fsdecode(bad + ending)).write_text("")
    with pytest.raises(InputError, match="a file name that is not UTF-8"):
        read(blank)


def test_check_names_every_faulty_document(tmp_path: Path) -> None:
    bad = ("Ada sang.", "T1\tPER 0 3\tBo\nT2\n")
    summary = entaug.check(put(tmp_path, a=bad, b=bad, c=(STORY, ANN)))
    assert len(summary.errors) == 4
    assert summary.counts.sentences == 3


@given(ann=st.binary(max_size=60), text=st.binary(max_size=20))
@settings(max_examples=examples(150))
def test_no_bytes_raise_anything_else(tmp_path: Path, ann: bytes, text: bytes) -> None:
    folder = put(tmp_path, d=(text, ann))
    for repair in (False, True):
        try:
            read(folder, repair=repair, **ALIGNED)
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017


WORDS = st.sampled_from(
    [
        "T1",
        "R1",
        "E1",
        "#1",
        "*",
        "\t",
        "\t",
        " ",
        " ",
        "\n",
        "\r\n",
        "X",
        ":",
        ";",
        "0 1",
        "0 3",
        "2 9",
        "Ada",
        "T",
        "",
        "é",
    ]
)


@given(st.lists(WORDS, max_size=25))
@settings(max_examples=examples(300))
def test_no_lines_raise_anything_else(tmp_path: Path, words: list[str]) -> None:
    folder = put(tmp_path / "in", d=("Ada sang.\n", "".join(words)))
    try:
        corpus, _ = read(folder, repair=True, **ALIGNED)
    except InputError:
        return
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    entaug.write(corpus, tmp_path / "out", "brat")
    assert not [
        fault for fault in faults_of_folder(tmp_path / "out") if "trigger" not in fault and ": id " not in fault
    ]


# ----------------------------------------------------------------------------------------------------------- properties


@given(texts(), st.sampled_from(["none", "lines", "sentences"]), st.booleans(), st.booleans())
@settings(max_examples=examples(200))
def test_any_document_comes_back(tmp_path: Path, text: Any, split: str, crlf: bool, mark: bool) -> None:
    """Documents as brat writes them: offsets count every character."""
    body = ("\ufeff" if mark else "") + (text.text.replace("\n", "\r\n") if crlf else text.text)
    place = [0]
    for char in text.text:
        place.append(place[-1] + (2 if crlf and char == "\n" else 1))
    lines = []
    for i, mention in enumerate(text.mentions, start=1):
        pieces = [
            (mark + place[a + at], mark + place[a + at + len(line)])
            for a, b in mention.spans
            for at, line in _lines(text.text[a:b])
        ]
        said = " ".join(body[a:b] for a, b in pieces)
        lines.append(f"T{i}\t{mention.label} {';'.join(f'{a} {b}' for a, b in pieces)}\t{said}\n")
    assert not list(faults(body, "".join(lines)))
    written = body.removeprefix("\ufeff")
    for name in ("in", "out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    folder = put(tmp_path / "in", d=(body, "".join(lines)))
    if not body.removeprefix("\ufeff").strip():
        return
    corpus = again(folder, tmp_path / "out", split=split, **ALIGNED)
    assert contents(tmp_path / "out")["d.txt"] == written.encode()
    if not mark:
        assert contents(tmp_path / "out") == contents(folder)
    assert sum(len(s.mentions) for s in corpus) == len(text.mentions)


def _lines(piece: str) -> list[tuple[int, str]]:
    """The lines of a mention without white space around, and where each begins."""
    found, place = [], 0
    for line in piece.split("\n"):
        if line.strip():
            found.append((place + len(line) - len(line.lstrip()), line.strip()))
        place += len(line) + 1
    return found


@given(st.lists(sentences(words=TEXT), min_size=1, max_size=4))
@settings(max_examples=examples(200))
def test_any_sentence_is_refused_or_carried(tmp_path: Path, corpus: list[Sentence]) -> None:
    out = tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)
    try:
        entaug.write(corpus, out, "brat")
    except LossError as error:
        assert error.remedy  # noqa: PT017
        return
    assert not faults_of_folder(out)
    dialect = BratDialect(split="none", misaligned="cut")
    back, reading = read(out, split="none", misaligned="cut")
    wanted = [Brat().as_stored(s, dialect) for s in corpus]
    assert [(s.tokens, s.mentions) for s in back] == [(s.tokens, s.mentions) for s in wanted]
    assert not reading.repaired
    for s, t in zip(corpus, back, strict=True):
        assert sorted(m.label for m in s.mentions) == sorted(m.label for m in t.mentions)
    assert again(out, tmp_path / f"{time.monotonic_ns()}", split="none", misaligned="cut") == back


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (Sentence([" "]), "white space alone"),
        (Sentence(["a", "\n"], [Mention("X", [(1, 2)])]), "a mention X .* is white space alone"),
        (
            Sentence(["a", "\n"], [Mention("X", [(0, 1)]), Mention("X", [(0, 2)])]),
            "differs from another by white space alone",
        ),
        (
            Sentence(["a", " ", "b"], [Mention("X", [(0, 3)]), Mention("X", [(0, 1), (2, 3)])]),
            "differs from another by white",
        ),
        (Sentence(["a"], [Mention("X Y", [(0, 1)])]), "the label 'X Y' holds ' '"),
        (Sentence(["\ud800"]), "surrogate"),
        (Sentence(["\ufeffAda"]), r"holds the character '\\ufeff'"),
        (Sentence(["a"], [Mention("\ud800", [(0, 1)])]), "surrogate"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, sentence: Sentence, message: str) -> None:
    with pytest.raises(LossError, match=message):
        entaug.write([sentence], tmp_path / "out", "brat")
    assert not (tmp_path / "out").exists()


def test_words_for_what_is_lost() -> None:
    sentence = Sentence(
        ["can't"],
        [Mention("X", [(0, 1)])],
        columns={"pos": ("V",)},
        **split_fields({"a": 1, ENTITY_FIELDS: [{"n": 1}]}),
    )
    assert Brat().lost(sentence, Brat().dialect(language="en")) == [
        "column 'pos'",
        "field 'a'",
        "tokens that are not spaCy's for 'en'",
        "fields of mentions",
    ]


def test_options_and_jobs(tmp_path: Path) -> None:
    folder = put(tmp_path / "in", **{"sub/doc": (STORY, ANN)})
    assert len(read(folder, split="none")[0]) == 1
    assert len(read(folder, split="lines")[0]) == 2
    assert target(tmp_path / "new", like=open_file(folder, language="de")).dialect == BratDialect(language="de")
    summary = entaug.convert(folder, tmp_path / "a.jsonl")
    assert not summary.lost
    assert not entaug.convert(tmp_path / "a.jsonl", tmp_path / "b", to_format="brat").lost
    assert contents(tmp_path / "b") == contents(folder)
    with pytest.raises(OutputError, match="is the name of a file"):
        augment_file(folder, tmp_path / "x.ann", create_augmenter("mr"))
    # A run that goes on must know of every file that is read, those below and the text of one document too.
    opened, one = open_file(folder), open_file(folder / "sub/doc.ann")

    def keys() -> list[str]:
        found = []
        for path in (opened.path, one.path):
            job = FileJob(path, path.with_name("out.jsonl"))
            with Augmentation.open(job, create_augmenter("mr"), None, 1, "local", None, no_progress) as run:
                found.append(run.key())
        return found

    before = keys()
    (folder / "sub/doc.txt").write_text(STORY + "x")
    assert not set(before) & set(keys())


# -------------------------------------------------------------------------------------------------------- a real corpus

SPLITS = {"train": (200, 18_896), "dev": (15, 1_190), "test": (15, 1_259)}


@pytest.mark.corpora
def test_mascip_comes_back_to_the_byte(corpora: Path, tmp_path: Path) -> None:
    folder = corpora / "mascip/data"
    corpus, reading = read(folder, **ALIGNED)
    entaug.write(corpus, tmp_path / "out", "brat")
    assert contents(tmp_path / "out") == contents(folder)
    assert read(tmp_path / "out", **ALIGNED)[0] == corpus
    assert not faults_of_folder(tmp_path / "out")
    assert not reading.notes + reading.repaired
    by_document: dict[str, int] = {}
    for s in corpus:
        name = s.fields["_document"][0]
        by_document[name] = by_document.get(name, 0) + len(s.mentions)
    for split, (documents, mentions) in SPLITS.items():
        names = (corpora / f"mascip/ner-{split}-fnames.txt").read_text().split()
        assert (len(names), sum(by_document[name] for name in names)) == (documents, mentions)


@pytest.mark.corpora
def test_mascip_has_mentions_within_tokens(corpora: Path) -> None:
    folder = corpora / "mascip"
    with pytest.raises(InputError, match=r"\.ann:\d+: mention .* begins or ends within the token"):
        read(folder)
    corpus, reading = read(folder, misaligned="skip")
    assert sum(n for note, n in reading.notes.items() if note.startswith("left out: mention")) == 947
    assert sum(len(s.mentions) for s in corpus) == 21_345 - 947
    assert {s.id.split("/")[0] for s in corpus if s.id} == {"data"}


@pytest.mark.corpora
@pytest.mark.parametrize("method", first_fast(["mr", "sis"]))
def test_mascip_augmented(corpora: Path, tmp_path: Path, method: str) -> None:
    summary = augment_file(corpora / "mascip/data", tmp_path / "out", create_augmenter(method), read_options=ALIGNED)
    assert not faults_of_folder(tmp_path / "out")
    corpus, _ = read(tmp_path / "out", **ALIGNED)
    assert len(corpus) == summary.before.sentences + summary.statistics.accepted
    assert sum(len(s.mentions) for s in corpus) == summary.after.mentions.total()
    assert sum(s.provenance is not None for s in corpus) == summary.statistics.accepted


@pytest.mark.corpora
@pytest.mark.parametrize(
    "name", ["genia/discontinuous-jsonl/dev.jsonl", "genia/nested-jsonl/dev.jsonl", "wnut17/emerging.dev.conll"]
)
def test_other_corpora_as_brat(corpora: Path, tmp_path: Path, name: str) -> None:
    corpus = list(entaug.read(corpora / name))
    entaug.write(corpus, tmp_path / "out", "brat")
    assert not faults_of_folder(tmp_path / "out")
    back, _ = read(tmp_path / "out", split="none", **ALIGNED)
    assert len(back) == len(corpus)
    assert sum(len(s.mentions) for s in back) == sum(len(s.mentions) for s in corpus)
