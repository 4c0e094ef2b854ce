"""The texts and concepts of i2b2: the published form, round trips, faults with their lines, and augmentation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, LossError, OutputError
from entaug.formats.base import ReadReport
from entaug.formats.files import open_file
from entaug.methods.augment import augment_file
from helpers.strategies import sentences

TEXT = "Admission Date :\n\nThe patient had  Chest Pain and a CT of the chest .\n"
CONCEPTS = 'c="chest pain" 3:3 3:4||t="problem"\nc="a ct of the chest" 3:6 3:10||t="test"\n'
SECOND = Sentence(
    "The patient had Chest Pain and a CT of the chest .".split(),
    [Mention("problem", [(3, 5)]), Mention("test", [(6, 11)])],
)


def put(folder: Path, text: str = TEXT, concepts: str = CONCEPTS, name: str = "record-13") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(text)
    (folder / f"{name}.con").write_text(concepts)
    return folder


def test_a_pair_of_files_and_the_folders_of_the_corpus(tmp_path: Path) -> None:
    pair = put(tmp_path / "pairs")
    for path in (pair, pair / "record-13.con"):
        opened = open_file(path)
        assert (opened.format.name, opened.dialect.describe()) == ("i2b2", "i2b2 texts and concepts")
        first, second = entaug.read(path)
        assert (first.id, first.tokens, first.mentions) == ("record-13:1", ("Admission", "Date", ":"), ())
        assert (second.id, second.tokens, second.mentions) == ("record-13:3", SECOND.tokens, SECOND.mentions)
    corpus = tmp_path / "corpus"
    for hospital, number in (("partners", 2), ("beth", 13), ("beth", 2)):
        for kind, extension, content in (("txt", "txt", TEXT), ("concept", "con", CONCEPTS), ("rel", "rel", "r\n")):
            (corpus / hospital / kind).mkdir(parents=True, exist_ok=True)
            (corpus / hospital / kind / f"record-{number}.{extension}").write_text(content)
    names = ["beth/record-2:1", "beth/record-2:3", "beth/record-13:1"]
    assert [sentence.id for sentence in entaug.read(corpus)][:3] == names
    assert len(open_file(corpus).source_files()) == 6, "relations are not read"


@pytest.mark.parametrize(("concepts", "texts"), [("concept", "txt"), ("reports/concepts", "test_data")])
def test_a_path_within_the_folder_of_concepts_finds_its_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concepts: str, texts: str
) -> None:
    put(tmp_path / concepts)
    (tmp_path / texts).mkdir()
    shutil.move(tmp_path / concepts / "record-13.txt", tmp_path / texts)
    (tmp_path / concepts / "beth").mkdir()
    gold = list(entaug.read(tmp_path / concepts))
    for folder, paths in ((".", (concepts,)), (concepts, (".", "record-13.con", "./record-13.con"))):
        monkeypatch.chdir(tmp_path / folder)
        for path in paths:
            assert list(entaug.read(path)) == gold, path
    monkeypatch.chdir(tmp_path / concepts / "beth")
    assert list(entaug.read("..")) == gold


def test_an_unchanged_document_keeps_its_lines(tmp_path: Path) -> None:
    gold = entaug.read(put(tmp_path / "in"))
    entaug.write(gold, tmp_path / "out", "i2b2")
    assert (tmp_path / "out/record-13.con").read_text() == CONCEPTS
    assert (tmp_path / "out/record-13.txt").read_text() == TEXT.replace("  ", " ")
    assert list(entaug.read(tmp_path / "out")) == list(gold)


@settings(max_examples=examples(200))
@given(st.lists(sentences(), min_size=1, max_size=4))
def test_round_trip(tmp_path: Path, corpus: list[Sentence]) -> None:
    for name in ("a", "b"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    corpus = [s.with_(mentions=[m for m in s.mentions if m.is_contiguous], spaces=None, id=None) for s in corpus]
    entaug.write(corpus, tmp_path / "a", "i2b2")
    back = entaug.read(tmp_path / "a")
    assert [(s.tokens, s.mentions) for s in back] == [(s.tokens, s.mentions) for s in corpus]
    entaug.write(back, tmp_path / "b", "i2b2")
    assert list(entaug.read(tmp_path / "b")) == list(back)


def test_augmented_sentences_are_written_to_new_documents(tmp_path: Path) -> None:
    put(tmp_path / "in", "He had Asthma .\nShe has no flu .\n", 'c="asthma" 1:2 1:2||t="x"\nc="flu" 2:3 2:3||t="x"\n')
    summary = augment_file(tmp_path / "in", tmp_path / "out", entaug.create_augmenter("mr", p=1.0, copies=1))
    assert summary.statistics.accepted == 2
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "record-13+mr-1.con",
        "record-13+mr-1.txt",
        "record-13.con",
        "record-13.txt",
    ]
    assert [s.text for s in entaug.read(tmp_path / "out/record-13+mr-1.con")] == ["He had flu .", "She has no Asthma ."]
    augment_file(tmp_path / "in", tmp_path / "out", entaug.create_augmenter("mr", p=1.0), force=True)
    (tmp_path / "out/notes.md").write_text("mine")
    with pytest.raises(OutputError, match="holds more than i2b2 concepts, and is not replaced"):
        augment_file(tmp_path / "in", tmp_path / "out", entaug.create_augmenter("mr", p=1.0), force=True)


FAULTS = {
    "no mention": ('c="chest pain" 3:3||t="problem"', "is no mention; write c="),
    "line": ('c="chest pain" 9:3 9:4||t="problem"', "tokens 3 to 4 of line 9, which has 0"),
    "line zero": ('c="chest pain" 0:3 0:4||t="problem"', "tokens 3 to 4 of line 0, which has 0"),
    "tokens": ('c="chest pain" 3:3 3:12||t="problem"', "tokens 3 to 12 of line 3, which has 12"),
    "order": ('c="chest pain" 3:4 3:3||t="problem"', "tokens 4 to 3 of line 3"),
    "words": ('c="chest" 3:3 3:4||t="problem"', "says 'chest', but at 3:3 the text has 'Chest Pain'"),
    "lines": ('c="date : the" 1:1 3:0||t="problem"', "begins in line 1 and ends in line 3"),
    "number": ('c="x" ' + "9" * 5000 + ':0 1:0||t="problem"', "is no mention"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named_with_file_and_line(tmp_path: Path, name: str) -> None:
    line, message = FAULTS[name]
    put(tmp_path / "in", concepts=f"{CONCEPTS}\n{line}\n")
    with pytest.raises(InputError) as caught:
        entaug.read(tmp_path / "in", "i2b2")
    assert f"{tmp_path}/in/record-13.con:4: " in str(caught.value)
    assert message in str(caught.value)
    faults: list[InputError] = []
    reading = ReadReport(on_fault=faults.append)
    assert len(list(open_file(tmp_path / "in").sentences(reading))) == 2, "the other mentions are read"
    assert len(faults) == 1


def test_repairs_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "in", concepts=f"{FAULTS['words'][0]}\n{FAULTS['lines'][0]}\n")
    reading = ReadReport(repair=True)
    [_, second] = open_file(tmp_path / "in").sentences(reading)
    assert second.mentions == SECOND.mentions[:1]
    assert dict(reading.repaired) == {
        "words of a mention replaced by those of the text": 1,
        "mention across a line end left out": 1,
    }


def test_files_without_their_text_and_empty_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = put(tmp_path / "in")
    (folder / "b.con").write_text(CONCEPTS)
    with pytest.raises(InputError, match=r"b\.con: no b\.txt beside it, or"):
        entaug.read(folder)
    (folder / "b.txt").write_text("\n")
    with pytest.raises(InputError, match="of line 3, which has 0"):
        entaug.read(folder)
    (folder / "b.con").write_text("")
    assert len(entaug.read(folder)) == 2
    assert main(["check", str(folder)]) == 0
    assert "i2b2 texts and concepts" in capsys.readouterr().err


def test_what_the_format_cannot_store(tmp_path: Path) -> None:
    for bad, message in (
        (Sentence(["a b"]), "holds white space"),
        (Sentence(["a\0b"]), "holds a NUL character"),
        (Sentence(["\ufeffa"]), r"holds the character '\\ufeff'"),
        (Sentence(["a\ud800"]), r"holds the character '\\ud800'"),
        (Sentence(["a"], [Mention('x"y', [(0, 1)])]), "holds a quotation mark or a line end"),
        (Sentence(["a", "b", "c"], [Mention("x", [(0, 1), (2, 3)])]), "discontinuous"),
    ):
        with pytest.raises(LossError, match=message):
            entaug.write([bad], tmp_path / "out", "i2b2")
    entaug.write([Sentence(["a"], id="x")], tmp_path / "x.jsonl")
    with pytest.raises(LossError, match="cannot store id"):
        entaug.convert(tmp_path / "x.jsonl", tmp_path / "out", to_format="i2b2")
    assert not (tmp_path / "out").exists()


def test_a_concept_that_is_given_twice_is_named_by_its_line(tmp_path: Path) -> None:
    twice = CONCEPTS + CONCEPTS.splitlines()[0] + "\n"
    path = put(tmp_path, concepts=twice)
    with pytest.raises(InputError, match=r"record-13\.con:3: mention problem .* is given twice"):
        entaug.read(path)
    reading = ReadReport(repair=True)
    assert list(open_file(path).sentences(reading))[1].mentions == SECOND.mentions
    assert reading.repaired == {"mention that was given twice dropped": 1}
