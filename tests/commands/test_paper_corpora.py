"""``entaug data``: the corpora of the papers by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import entaug
from conftest import ROOT
from entaug import Sentence
from entaug.commands.data import data
from entaug.commands.main import main
from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.formats.releases import READERS
from entaug.study.corpora import PARTS, Prepared, _listed, paper_corpora

ROWS = "Ada B-PER\nsang O\n\nBo B-PER\n\n"


def test_the_plans_read_what_is_written() -> None:
    written = {f"../data/{one.folder}/{part}.jsonl" for one in paper_corpora().values() for part in PARTS}
    named = {
        file
        for plan in (ROOT / "benchmarks" / "papers").glob("*/*.toml")
        for file in re.findall(r'"(\.\./data/[^"]+)"', plan.read_text("utf-8"))
    }
    assert named
    assert named <= written
    assert all(one.reader in {*READERS, "brat", "i2b2", ""} for one in paper_corpora().values())


def test_corpora_are_listed_and_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data"]) == 0
    said = capsys.readouterr().out
    assert "conll-en             CoNLL 2003, English (CASSI, EnTDA, ACLM)" in said
    assert all(text in said for one in paper_corpora().values() for text in (one.licence, one.address))
    assert main(["data", "ace2005"]) == 0
    said = capsys.readouterr().out
    assert "LDC2006T06" in said
    assert "LDC user agreement" in said
    assert "train 7,606, dev 1,002, test 1,089 (published)" in said
    assert "NAME.apf.xml with NAME.sgm (reader ace)" in said
    assert "80:10:10, at random without lists" in said
    assert main(["data", "reldi-hr"]) == 0
    assert "one file: ReLDI-hr.conllu of version 2.1, http://hdl.handle.net/11356/1241; not the .vert of 2.0\n" in (
        capsys.readouterr().out
    )
    assert main(["data", "mascip"]) == 0
    assert "ner-train-fnames.txt, ner-dev-fnames.txt" in capsys.readouterr().out
    assert main(["data", "bc2gm"]) == 0
    said = capsys.readouterr().out
    assert "cambridgeltl/MTL-Bioinformatics-2016" in said
    assert "train 12,574, dev 2,519, test 5,038 (known here)" in said
    assert all(known in said for known in paper_corpora()["bc2gm"].sums)
    with pytest.raises(UnknownNameError, match="did you mean 'wnut17'"):
        data("wnut71")


def test_files_of_a_corpus_become_parts(tmp_path: Path) -> None:
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (tmp_path / "ner").mkdir(exist_ok=True)
        (tmp_path / "ner" / name).write_text(ROWS)
    done = data("conll-en", tmp_path / "out", source=tmp_path / "ner")
    assert done.sentences == {"train": 2, "dev": 2, "test": 2}
    assert "train has 2 sentences; published are 14,041" in done.notes
    assert [s.mentions[0].label for s in entaug.read(tmp_path / "out" / "dev.jsonl")] == ["PER", "PER"]
    page = (tmp_path / "out" / "SOURCE.md").read_text()
    assert "clips.uantwerpen.be" in page
    assert str(tmp_path) not in page
    (tmp_path / "ner" / "eng.testb").unlink()
    with pytest.raises(InputError, match=r"no eng\.testb or test\.txt for test"):
        data("conll-en", tmp_path / "more", source=tmp_path / "ner")
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize(("name", "known"), [("wnut17", 3), ("uner-en-ewt", 2)])
def test_another_file_than_the_known_one_is_noted(name: str, known: int, tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / getattr(paper_corpora()[name], part)[0]).write_text(ROWS)
    done = data(name, tmp_path / "out", source=tmp_path)
    assert sum("is not the file that was known here (SHA-256" in note for note in done.notes) == known


def test_ontonotes_is_read_after_its_conversion(tmp_path: Path) -> None:
    for part in ("train", "development", "test"):
        (tmp_path / part).mkdir()  # with the skeletons of the columns, from which the files were made
        (tmp_path / f"onto.{part}.ner").write_text("Ada\tNNP\t(NP*)\tB-PERSON\nsang\tVBD\t(VP*)\tO\n\n")
    assert data("ontonotes", tmp_path / "out", source=tmp_path).sentences == {"train": 1, "dev": 1, "test": 1}
    (tmp_path / "onto5").mkdir()
    with pytest.raises(InputError, match=r"no onto\.train\.ner or train for train; .*make from LDC2013T19"):
        data("ontonotes", tmp_path / "more", source=tmp_path / "onto5")


def test_the_test_documents_of_i2b2_are_in_a_folder_of_their_own(tmp_path: Path) -> None:
    train = tmp_path / "concept_assertion_relation_training_data" / "beth"
    test, texts = tmp_path / "reference_standard_for_test_data", tmp_path / "test_data"
    for folder in (train / "txt", train / "concept", test / "concepts", texts):
        folder.mkdir(parents=True)
    for text, concepts in ((train / "txt", train / "concept"), (texts, test / "concepts")):
        (text / "1.txt").write_text("No fever .\n")
        (concepts / "1.con").write_text('c="fever" 1:1 1:1||t="problem"\n')
    assert data("i2b2-2010", tmp_path / "out", source=tmp_path).sentences == {"train": 1, "test": 1}
    [sentence] = entaug.read(tmp_path / "out" / "test.jsonl")
    assert (sentence.id, str(sentence)) == ("1:1", "No [fever]problem .")
    (texts / "1.txt").unlink()
    with pytest.raises(InputError, match=r"concepts.1\.con: no 1\.txt beside it, .*put the text there"):
        data("i2b2-2010", tmp_path / "more", source=tmp_path)


def test_places_in_words_are_no_part_of_the_characters_of_weibo(tmp_path: Path) -> None:
    for part in PARTS:
        rows = "王0\tB-PER.NAM\n小1\tI-PER.NAM\n20\tO\n\n"
        (tmp_path / f"weiboNER_2nd_conll.{part}").write_text(rows, "utf-8")
    data("weibo", tmp_path / "out", source=tmp_path)
    assert [str(s) for s in entaug.read(tmp_path / "out" / "dev.jsonl")] == ["[王小]PER.NAM 2"]


def test_lists_of_documents_or_shares_divide_a_corpus(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    for number in range(10):
        (tmp_path / "cadec" / "text").mkdir(parents=True, exist_ok=True)
        (tmp_path / "cadec" / "original").mkdir(exist_ok=True)
        (tmp_path / "cadec" / "text" / f"D.{number}.txt").write_text(f"pain {number}")
        (tmp_path / "cadec" / "original" / f"D.{number}.ann").write_text("T1\tADR 0 4\tpain\n")
    drawn = data("cadec", tmp_path / "drawn", source=tmp_path / "cadec")
    assert drawn.sentences == {"train": 7, "dev": 1, "test": 2}
    assert any(note.startswith("divided at random (70:15:15)") for note in drawn.notes)
    again = data("cadec", tmp_path / "again", source=tmp_path / "cadec")
    assert again.sentences == drawn.sentences
    assert (tmp_path / "again" / "train.jsonl").read_bytes() == (tmp_path / "drawn" / "train.jsonl").read_bytes()
    lists = tmp_path / "lists"
    lists.mkdir()
    for part, names in (("train", "D.3 D.1"), ("dev", "D.2"), ("test", "D.9\n")):
        (lists / f"{part}.txt").write_text(names.replace(" ", "\n"))
    done = data("cadec", tmp_path / "listed", source=tmp_path / "cadec", lists=lists)
    assert done.sentences == {"train": 2, "dev": 1, "test": 1}
    assert done.notes[0] == "6 of 10 documents are in no list and left out"
    assert [s.tokens[1] for s in entaug.read(tmp_path / "listed" / "train.jsonl")] == ["3", "1"]
    (lists / "dev.txt").write_text("D.77")
    with pytest.raises(InputError, match=r"dev\.txt:1: no document D\.77"):
        data("cadec", tmp_path / "wrong", source=tmp_path / "cadec", lists=lists)


def test_a_document_of_the_name_of_another_is_not_left_out_in_silence(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("D.1")
    documents = {f"{folder}/D.1.txt": [Sentence([folder])] for folder in ("one", "two")}
    done = Prepared()
    assert len(_listed(documents, {"train": tmp_path / "train.txt"}, done)["train"]) == 1
    assert done.notes[-1] == "1 of 2 documents are in no list and left out"


def test_genia_is_divided_in_its_order_as_in_the_paper(tmp_path: Path) -> None:
    sentences = "".join(f"<sentence>w{number}</sentence>" for number in range(18_546))
    (tmp_path / "GENIAcorpus3.02.xml").write_text(f"<set><article>{sentences}</article></set>")
    done = data("genia", tmp_path / "out", source=tmp_path)
    assert (done.sentences, done.notes) == ({"train": 15_023, "dev": 1_669, "test": 1_854}, [])


def test_the_article_that_genia_has_twice_is_kept(tmp_path: Path) -> None:
    article = "<article><articleinfo><bibliomisc>MEDLINE:1</bibliomisc></articleinfo><sentence>a b</sentence></article>"
    (tmp_path / "GENIAcorpus3.02.xml").write_text(f"<set>{article}{article}</set>")
    assert data("genia", tmp_path / "out", source=tmp_path).sentences == {"train": 2, "dev": 0, "test": 0}
    assert [s.id for s in entaug.read(tmp_path / "out" / "train.jsonl")] == ["1:1", "1+2:1"]


def test_documents_of_one_name_are_noted(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    for stage in ("fp1", "fp2"):
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "n.sgm").write_text(f"<DOC><TEXT>{stage}</TEXT></DOC>")
        (tmp_path / stage / "n.apf.xml").write_text("<source_file/>")
    done = data("ace2005", tmp_path / "out", source=tmp_path)
    assert done.notes[0] == "1 documents have the name of a later one, which is taken in their place"
    assert [s.tokens for s in entaug.read(tmp_path / "out" / "train.jsonl")] == [("fp2",)]


def test_sentences_that_a_corpus_has_twice_are_kept(tmp_path: Path) -> None:
    rows = [f"Ana\tB-PER\nide{number}\tO\n" for number in range(8)]
    (tmp_path / "hr.conll").write_text("\n".join([*rows, *rows[:2]]))
    done = data("reldi-hr", tmp_path / "out", source=tmp_path / "hr.conll")
    assert sum(done.sentences.values()) == 10


def share13(folder: Path) -> Path:
    """Four documents as the corpus is distributed."""
    folder.mkdir()
    for number in range(4):
        (folder / f"d{number}.text").write_text(f"pain {number}")
        (folder / f"d{number}.pipe").write_text(f"d{number}.text||Disease_Disorder||C1||0||4\n")
    return folder


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({}, r"lists: no lists of documents \(train\.txt, dev\.txt, test\.txt\); name their folder"),
        ({"train": "d0\n\nd1\n", "test": "\nd9\n"}, r"test\.txt:2: no document d9"),
        ({"train": "d0\n\nd1\n", "test": "d2\n\nd1\n"}, r"test\.txt:3: d1 is in the list train\.txt already"),
        ({"train": "d0\n", "test": "\n"}, r"test\.txt: names no document"),
        ({"train": "d0\n", "test": "d\udce9\n"}, r"test\.txt:1: not UTF-8"),
    ],
)
def test_lists_that_divide_nothing_are_refused(lists: dict[str, str], message: str, tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    source, folder = share13(tmp_path / "share"), tmp_path / "lists"
    for part, text in lists.items():
        folder.mkdir(exist_ok=True)
        (folder / f"{part}.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=message):  # not a division at random
        data("share13", tmp_path / "out", source=source, lists=folder)
    with pytest.raises(InputError, match=r"no lists of documents .*`lists` \(the official test documents as test"):
        data("share13", tmp_path / "out", source=source)
    assert not (tmp_path / "out").exists()


def test_what_lists_leave_out_is_noted(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    source = folder = share13(tmp_path / "share")
    for name in ("README.txt", "LICENSE.txt"):  # pages about the corpus, of each of its folders, are no documents
        (source / "more").mkdir(exist_ok=True)
        (source / name).write_text("ShARe")
        (source / "more" / name).write_text("ShARe, more")
    (folder / "train.txt").write_text("d0\nd1\n")
    (folder / "test.txt").write_text("d3\n")
    done = data("share13", tmp_path / "out", source=source, lists=folder)
    assert done.sentences == {"train": 2, "test": 1}
    assert done.notes == [
        "no list for dev, which is not written",
        "1 of 4 documents are in no list and left out",
        "train has 2 sentences; published are 8,508",
        "test has 1 sentences; published are 9,009",
    ]


def test_texts_that_are_not_in_utf_8_are_named(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    source = share13(tmp_path / "share")
    (tmp_path / "train.txt").write_text("d0\n")
    (source / "d2.text").write_bytes(b"pain \xe9")
    with pytest.raises(InputError, match=r"d2\.text:1: not UTF-8 \(byte 0xe9\); convert it first"):
        data("share13", tmp_path / "out", source=source, lists=tmp_path)


def test_of_several_files_of_a_name_the_known_one_is_read(corpora: Path, tmp_path: Path) -> None:
    done = data("crossner-music", tmp_path / "out", source=corpora / "crossner")
    assert (done.sentences, done.notes) == ({"train": 100, "dev": 380, "test": 465}, [])


def test_several_files_of_a_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for part in PARTS:
            (tmp_path / folder / f"{part}.txt").write_text(ROWS)
    with pytest.raises(InputError, match=r"several of the name train\.txt, such as .*a/train\.txt and .*b/train\.txt"):
        data("conll-en", tmp_path / "out", source=tmp_path)
    assert data("conll-en", tmp_path / "out", source=tmp_path / "b").sentences["train"] == 2


def test_arguments_that_would_have_no_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no output is named; name the new folder with -o"):
        data("conll-en", source=tmp_path)
    with pytest.raises(ParameterError, match="no corpus is named"):
        data(output=tmp_path / "out", source=tmp_path)
    with pytest.raises(ParameterError, match=r"lists divide documents.*leave out `lists`"):
        data("conll-en", tmp_path / "out", source=tmp_path, lists=tmp_path)


def test_a_dataset_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "hub").mkdir()
    with pytest.raises(InputError, match=r"the dataset '.*hub' cannot be loaded \(.+\); check the name"):
        data("conll-en", tmp_path / "out", hub=str(tmp_path / "hub"))


def test_a_dataset_of_the_hub_is_read_from_a_folder(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]]}
    for part in ("train", "validation", "test"):
        (tmp_path / "hub").mkdir(exist_ok=True)
        datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "hub" / f"{part}.parquet")
    done = data("conll-en", tmp_path / "out", hub=str(tmp_path / "hub"))
    assert done.sentences == {"train": 1, "dev": 1, "test": 1}


def test_nothing_is_fetched_without_being_asked(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"one source is wanted.*clips.uantwerpen.be.*`source`"):
        data("conll-en", tmp_path / "out")
    with pytest.raises(ParameterError, match="no dataset of the hub is known for ace2005"):
        data("ace2005", tmp_path / "out", hub="known")


@pytest.mark.parametrize(
    "name", ["wnut17", "tdmsci", "crossner-music", "ncbi-disease", "bc2gm", "uner-hr-set", "uner-da-ddt"]
)
def test_real_corpora_have_the_known_sums_and_numbers(name: str, corpora: Path, tmp_path: Path) -> None:
    folder = corpora / name if (corpora / name).exists() else corpora / name.partition("-")[0]
    done = data(name, tmp_path / "out", source=folder)
    assert not [note for note in done.notes if "known here" in note or "published" in note]
    assert done.sentences["train"] == paper_corpora()[name].sentences[0]
