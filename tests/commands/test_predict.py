"""``entaug predict``: from text to labelled sentences, by a tagger whose predictions are known, and by a real one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

import entaug
from conftest import EXAMPLE
from entaug import Sentence, read_unlabelled
from entaug.backends.models.catalogue import model_path
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands import predict as workflow
from entaug.commands.main import main
from entaug.errors import InputError, LossError, OutputError, ParameterError
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger
from helpers.fakes import FakeTagger

GOLD = [
    Sentence.from_iob("Ada left Rome .".split(), ["B-PER", "O", "B-LOC", "O"]),
    Sentence.from_iob("In the well-known Rome-based bank .".split(), ["O", "O", "O", "B-ORG", "I-ORG", "O"]),
]
TEXT = "Nobody spoke. Ada left Rome. Ada left Rome.\nIn the well-known Rome-based bank.\n"


class WithoutProbabilities(FakeTagger):
    """A tagger that predicts mentions only."""

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        raise ParameterError("no probabilities")


@pytest.fixture
def tagger() -> FakeTagger:
    return FakeTagger().fit(GOLD)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "news.txt").write_text(TEXT)
    entaug.write(GOLD, tmp_path / "train.conll")
    return tmp_path / "news.txt"


def test_all_sentences_in_the_order_of_the_text(text: Path, tagger: FakeTagger) -> None:
    out = text.with_name("out.jsonl")
    summary = entaug.predict(tagger, text, out, train=text.with_name("train.conll"))
    labelled = list(entaug.read(out))
    assert [str(sentence) for sentence in labelled] == [
        "Nobody spoke .",
        "[Ada]PER left [Rome]LOC .",
        "[Ada]PER left [Rome]LOC .",
        "In the well-known [Rome-based bank]ORG .",
    ]
    assert [s.id for s in labelled] == ["news.txt:1", "news.txt:1.2", "news.txt:1.3", "news.txt:2"]
    assert all(s.provenance is None and TagProbabilities.from_sentence(s) is None for s in labelled)
    # By hand: the tag that is predicted has 1 + 0.1 / 7 of 1.1, seven tags there are.
    assert [s.meta["confidence"] for s in labelled] == [pytest.approx((1 + 0.1 / 7) / 1.1, abs=1e-4)] * 4
    assert (summary.sentences, summary.tokens) == (4, 17)
    assert list(summary.notes) == ["plain text was read as running text"]
    assert summary.mentions == {"PER": 2, "LOC": 2, "ORG": 1}
    assert summary.confidence == labelled[0].meta["confidence"]


def test_dropped_fields_are_told(text: Path, tagger: FakeTagger) -> None:
    records = text.with_name("news.jsonl")
    records.write_text('{"text": "Ada left.", "id": "a", "date": "May", "spans": []}\n' * 2)
    entaug.write([GOLD[0].with_(meta={"source": "radio"})], text.with_name("gold.jsonl"))
    summary = entaug.predict(tagger, [records, text.with_name("gold.jsonl")], out := text.with_name("out.jsonl"))
    assert "ids and words were read, not the fields 'date', 'source': join them by the ids" in summary.notes
    assert [s.id for s in entaug.read(out)][:2] == ["a", "a.2"]


def test_probabilities(text: Path, tagger: FakeTagger) -> None:
    out = text.with_name("out.jsonl")
    entaug.predict(tagger, text, out, probabilities=True)
    soft = [TagProbabilities.from_sentence(sentence) for sentence in entaug.read(out)]
    assert all(one is not None for one in soft)
    assert soft[1] is not None
    assert soft[1].best_tags() == ["B-PER", "O", "B-LOC", "O"]


def test_without_a_training_file_spacy_tokenises_and_a_note_says_so(text: Path, tagger: FakeTagger) -> None:
    out = text.with_name("out.conll")
    [_, note] = entaug.predict(tagger, text, out).notes
    assert "rules of spaCy for English; if your training" in note
    assert "name them as `train`" in note
    assert "well\tO\n-\tO\nknown\tO\n" in out.read_text()


@pytest.mark.parametrize("words", ["他在北京大学工作，我也是。", "「トヨタは大きい。」と彼は言った。"])  # noqa: RUF001
def test_text_without_spaces_is_divided_into_characters(tmp_path: Path, tagger: FakeTagger, words: str) -> None:
    (tmp_path / "a.txt").write_text(f"{words}\n" * 2, "utf-8")
    entaug.predict(tagger, tmp_path / "a.txt", out := tmp_path / "out.jsonl")
    assert [sentence.tokens for sentence in entaug.read(out)] == [tuple(words)] * 2


def test_a_labelled_file_keeps_its_tokens_and_not_its_labels(text: Path, tagger: FakeTagger) -> None:
    other = [Sentence.from_iob("Ada left Rome .".split(), ["O", "B-X", "O", "O"]), Sentence(["a."])]
    entaug.write(other, text.with_name("test.conll"))
    files = [text.with_name("test.conll"), text.with_name("train.conll")]
    summary = entaug.predict(tagger, files, text.with_name("out.conll"))
    assert not summary.notes, "nothing had to be tokenised"
    assert [s.mentions for s in entaug.read(text.with_name("out.conll"))] == [
        sentence.mentions for sentence in (GOLD[0], other[1], *GOLD)
    ]


def test_a_tagger_without_probabilities(text: Path) -> None:
    out = text.with_name("out.jsonl")
    entaug.predict(WithoutProbabilities().fit(GOLD), text, out, train=text.with_name("train.conll"))
    assert [s.meta["confidence"] for s in entaug.read(out)] == [1.0] * 4


def test_the_windows_do_not_matter(text: Path, tagger: FakeTagger, monkeypatch: pytest.MonkeyPatch) -> None:
    entaug.predict(tagger, text, text.with_name("whole.jsonl"))
    monkeypatch.setattr(workflow, "_WINDOW", 3)
    entaug.predict(tagger, text, text.with_name("parts.jsonl"))
    assert text.with_name("whole.jsonl").read_bytes() == text.with_name("parts.jsonl").read_bytes()


@pytest.mark.parametrize(("to_format", "name"), [("label-studio", "t.json"), ("doccano", "t.jsonl"), ("brat", "t")])
def test_annotation_tools(text: Path, tagger: FakeTagger, to_format: str, name: str) -> None:
    out = text.with_name(name)
    entaug.predict(tagger, text, out, train=text.with_name("train.conll"), to_format=to_format)
    options: dict[str, Any] = {"annotations": "predictions"} if to_format == "label-studio" else {}
    assert sum(len(s.mentions) for s in entaug.read(out, format=to_format, **options)) == 5
    if to_format == "label-studio":
        tasks = orjson.loads(out.read_bytes())
        assert [task["annotations"] for task in tasks] == [[]] * 4
        assert len({task["id"] for task in tasks}) == 4
        assert all(task["predictions"][0]["score"] == task["data"]["confidence"] > 0 for task in tasks)


def test_errors(text: Path, tagger: FakeTagger) -> None:
    out = text.with_name("out.jsonl")
    with pytest.raises(OutputError, match=r"news\.txt: is an input"):
        entaug.predict(tagger, text, text, force=True)
    with pytest.raises(OutputError, match="is an input"):
        entaug.predict(tagger, text, text.with_name("train.conll"), train=text.with_name("train.conll"), force=True)
    with pytest.raises(InputError, match=r"gone\.txt: no such file"):
        entaug.predict(tagger, [text, text.with_name("gone.txt")], out)
    with pytest.raises(InputError, match=r'no such file; check the path, or in Python give text itself as \[\{"text"'):
        entaug.predict(tagger, ["Ada left Rome."])
    assert len(entaug.predict(tagger, [{"text": "Ada left Rome."}])) == 1
    with pytest.raises(ParameterError, match="no text is given"):
        entaug.predict(tagger, [], out)
    with pytest.raises(ParameterError, match=r"labels of spacy:en_core_web_sm must be mapped to yours; .*`train`"):
        entaug.predict("spacy:en_core_web_sm", text, out)
    with pytest.raises(ParameterError, match="the tagger linear is not trained; run: entaug train"):
        entaug.predict("linear", text, out)
    with pytest.raises(InputError, match="holds no tagger"):
        entaug.predict(EXAMPLE, text, out)
    with pytest.raises(InputError, match="no such folder"):
        entaug.predict(f"{text.parent}/tagger", text, out)
    with pytest.raises(ParameterError, match="a text is named twice"):
        entaug.predict(tagger, [text, text], out)
    with pytest.raises(LossError, match="cannot store probabilities of tags; write JSON lines"):
        entaug.predict(tagger, text, text.with_name("out.conll"), probabilities=True)
    with pytest.raises(OutputError, match="is inside an input"):
        entaug.predict(text.parent, text, out)
    assert not out.exists()
    assert not list(text.parent.glob("*.partial*"))


def test_sentences_of_one_line_have_ids_of_their_own(text: Path) -> None:
    sentences = read_unlabelled([text], [Sentence(["Bo"])])
    assert [sentence.id for sentence in sentences] == ["news.txt:1", "news.txt:1.2", "news.txt:2"]


# --------------------------------------------------------------------------------------------------------- command line


@pytest.mark.models
@pytest.mark.parametrize("name", ["linear", "w2ner"])
def test_the_command_predicts_what_evaluate_scores(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = EXAMPLE / ("train.conll" if name == "linear" else "nested.jsonl")
    test = EXAMPLE / ("test.conll" if name == "linear" else "nested.jsonl")
    gold = list(entaug.read(corpus))
    options = {"encoder": str(model_path("tiny-bert"))}
    create_tagger(name, **options).fit(gold, config=TaggerTrainingConfig(steps=60, learning_rate=1e-3)).save(
        tmp_path / "tagger"
    )
    out = tmp_path / "out.jsonl"
    assert main(["predict", str(tmp_path / "tagger"), str(test), "-o", str(out), "--probabilities"]) == 0
    printed = capsys.readouterr().err
    labelled = list(entaug.read(out))
    assert f"{len(labelled)} sentences" in printed
    assert f"wrote {out}" in printed
    sentences = list(entaug.read(test))
    expected = load_tagger(tmp_path / "tagger").predict(sentences)
    assert [s.mentions for s in labelled] == [s.mentions for s in expected]
    assert any(s.mentions for s in labelled)
    assert all(0 < s.meta["confidence"] <= 1 for s in labelled)
    field = "tag_probabilities" if name == "linear" else "relation_probabilities"
    assert all(field in s.layout for s in labelled)


ODD_NAMES = ["b\udcff.txt", "b\udcff.jsonl", "b\udcff.conll", "caf\udce9/b.txt", "a\nb.txt", "a\x1b[31m.txt", "é'.txt"]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("out", ["o\udcff.jsonl", "o.parquet", "o.conll"])
def test_names_of_files_need_not_be_utf8(
    name: str,
    out: str,
    tmp_path: Path,
    tagger: FakeTagger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = {".jsonl": '{"text": "Ada left Rome."}\n', ".conll": "Ada O\nleft O\nRome O\n. O\n\n"}
    monkeypatch.chdir(tmp_path)
    try:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text.get(Path(name).suffix, "Ada left Rome.\n"))
        Path(out).touch()
    except OSError:
        pytest.skip("the file system takes other names only")
    monkeypatch.setattr(workflow, "load_trained_tagger", lambda *_: tagger)
    inputs = [name, str(Path(name).parent)] if "/" in name else [name]
    for given in inputs:
        assert main(["predict", "tagger", given, "-o", out, "--force", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["input"] == [given]
        assert main(["predict", "tagger", given, "-o", out, "--force"]) == 0
        assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())
        [sentence] = entaug.read(out)
        assert str(sentence).startswith("[Ada]PER left [Rome]LOC")
        assert sentence.id is None or sentence.id.isprintable()


@pytest.mark.models
def test_a_model_of_another_library(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, out = EXAMPLE / "train.conll", text.with_name("out.jsonl")
    command = ["predict", "spacy:en_core_web_sm", str(text), "--train", str(train), "-o", str(out), "--json"]
    assert main(command) == 0
    summary = orjson.loads(capsys.readouterr().out)
    assert summary["sentences"] == 4
    assert "measured labels" in next(iter(summary["notes"]))
    assert {m.label for s in entaug.read(out) for m in s.mentions} <= {"PER", "LOC", "ORG", "EVENT", "PRODUCT"}
