"""``entaug suggest`` and ``augment --unlabelled``: from files to files, with a teacher whose opinions are known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

import entaug
from conftest import EXAMPLE
from entaug import Sentence, read_unlabelled
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.main import main
from entaug.core.corpus import UnlabelledText
from entaug.errors import InputError, OutputError, ParameterError
from entaug.teacher.label import PseudoLabelled, most_informative
from entaug.teacher.train import TeacherParameters
from helpers.fakes import FakeTagger

TAGS = ("O", "B-PER", "I-PER")
GOLD = [Sentence.from_iob("Ada left Rome .".split(), ["B-PER", "O", "O", "O"])]
TEXT = UnlabelledText(
    [
        Sentence("maybe Bo left town .".split(), id="t:1"),
        Sentence("maybe Bo left Rome .".split(), id="t:2"),
        Sentence("perhaps this is quite another one .".split(), id="t:3"),
        Sentence("surely nothing happened there .".split(), id="t:4"),
        Sentence(["maybe"], id="t:5"),
    ],
    notes=["a remark"],
)


class Unsure(FakeTagger):
    """A teacher that is unsure of sentences that begin with certain words, and labels the word Bo."""

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        results = []
        for sentence in sentences:
            p = {"maybe": 0.5, "perhaps": 0.7}.get(sentence.tokens[0], 1.0)
            rows = [[p, (1 - p) / 2, (1 - p) / 2] for _ in sentence.tokens]
            rows = [[0.1, 0.9, 0.0] if word == "Bo" else row for word, row in zip(sentence.tokens, rows, strict=True)]
            results.append(TagProbabilities(TAGS, rows))
        return results


@pytest.fixture
def train(tmp_path: Path) -> Path:
    entaug.write(GOLD, tmp_path / "train.conll")
    return tmp_path / "train.conll"


def suggested(train: Path, name: str = "out.jsonl", **options: Any) -> list[Sentence]:
    out = train.with_name(name)
    entaug.suggest(train, TEXT, out, teacher=TeacherParameters(tagger=Unsure()), force=True, **options)
    return list(entaug.read(out))


def test_the_least_sure_first_and_no_two_alike(train: Path) -> None:
    new = suggested(train, number=2)
    # t:1 and t:2 share four of five tokens; which of them is taken depends on the seed.
    assert {new[0].id} <= {"t:1", "t:2"}
    assert new[1].id == "t:3"
    assert str(new[0]).startswith("maybe [Bo]PER left")
    # By hand: the fifth root of 0.5 ^ 4 * 0.9.
    assert new[0].meta["suggestion"] == {"rank": 1, "score": 0.4376, "confidence": 0.5624}
    assert new[0].provenance is None, "it will be a gold sentence"
    assert TagProbabilities.from_sentence(new[0]) is not None
    alike = [PseudoLabelled(Sentence("the very same words again".split(), id=str(i)), 0.5) for i in range(3)]
    assert [len(most_informative(alike, number, strategy="random")[0]) for number in (1, 9)] == [1, 1]
    assert [most_informative(alike, number, strategy="random")[1] for number in (1, 9)] == [0, 2], "passed over"
    everything = suggested(train, max_similarity=1.0, min_tokens=1)
    assert len(everything) == 5
    assert {s.id for s in everything[:3]} == {"t:1", "t:2", "t:5"}


def test_two_characters_of_chinese_count_as_one_token() -> None:
    texts = [PseudoLabelled(Sentence(list(text)), 0.5) for text in ("北京。", "你好吗。", "我住在北京。")]
    assert [one.sentence.tokens[0] for one, _ in most_informative(texts, 3, strategy="random")[0]] == ["我"]


def test_strategies(train: Path) -> None:
    for strategy in ("entropy", "margin"):
        assert suggested(train, number=1, strategy=strategy)[0].id in ("t:1", "t:2")
    drawn = {suggested(train, number=1, strategy="random", seed=seed)[0].id for seed in range(8)}
    assert len(drawn) > 2
    assert suggested(train, strategy="random", seed=3) == suggested(train, strategy="random", seed=3)


@pytest.mark.parametrize("to_format", ["label-studio", "doccano", "prodigy"])
def test_annotation_tools(train: Path, to_format: str) -> None:
    is_studio = to_format == "label-studio"
    out = train.with_name("tasks.json" if is_studio else "tasks.jsonl")
    entaug.suggest(train, TEXT, out, teacher=TeacherParameters(tagger=Unsure()), to_format=to_format)
    options: dict[str, Any] = {"annotations": "predictions"} if is_studio else {}
    new = list(entaug.read(out, format=to_format, **options))
    assert len(new) == 3
    assert str(new[0]).startswith("maybe [Bo]PER left")
    text = out.read_text()
    if is_studio:
        task = orjson.loads(text)[0]
        assert task["annotations"] == []
        assert [region["value"]["text"] for region in task["predictions"][0]["result"]] == ["Bo"]
        assert task["predictions"][0]["score"] == task["data"]["suggestion"]["confidence"]
    assert "tag_probabilities" not in text
    assert '"rank"' in text


def test_conll_and_counts(train: Path) -> None:
    teacher = TeacherParameters(tagger=Unsure())
    summary = entaug.suggest(train, TEXT, train.with_name("out.conll"), number=2, teacher=teacher)
    assert (summary.gold, summary.text, summary.suggested, summary.skipped) == (1, 5, 2, 1)
    assert summary.mentions == {"PER": 1}
    assert list(summary.notes) == ["a remark"]
    assert summary.lost == {"field 'suggestion'": 2, "id": 2}
    assert [s.mentions for s in entaug.read(train.with_name("out.conll"))][1] == ()


def test_refusals(train: Path) -> None:
    teacher = TeacherParameters(tagger=Unsure())
    with pytest.raises(ParameterError, match="number must be an integer of at least 1"):
        entaug.suggest(train, TEXT, train.with_name("o.jsonl"), number=0, teacher=teacher)
    strategy: Any = "luck"
    with pytest.raises(ParameterError, match="strategy must be"):
        entaug.suggest(train, TEXT, train.with_name("o.jsonl"), strategy=strategy, teacher=teacher)
    with pytest.raises(OutputError, match="is an input"):
        entaug.suggest(train, TEXT, train, teacher=teacher)
    with pytest.raises(InputError, match="no sentence of the text has 9 tokens"):
        entaug.suggest(train, TEXT, train.with_name("o.jsonl"), min_tokens=9, teacher=teacher)
    entaug.write([Sentence(["no", "mention"])], train, format="conll")
    with pytest.raises(InputError, match="has no mentions to learn from"):
        entaug.suggest(train, TEXT, train.with_name("o.jsonl"), teacher=teacher)


# --------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def fake_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TeacherParameters, "create_teacher", lambda *_: _fake_teacher())


def _fake_teacher() -> Any:
    from entaug.teacher.train import Teacher

    return Teacher(Unsure())


@pytest.mark.usefixtures("fake_ensemble")
def test_the_command_suggests(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = train.with_name("news.txt")
    text.write_text("Maybe Bo left town.\nNothing happened there, it seems.\n")
    out = train.with_name("tasks.json")
    assert main(["suggest", str(train), "--unlabelled", str(text), "-o", str(out), "--to", "label-studio"]) == 0
    assert "2 of 2 sentences suggested" in capsys.readouterr().err
    assert {task["id"] for task in orjson.loads(out.read_bytes())} == {"news.txt:1", "news.txt:2"}
    with pytest.raises(SystemExit):
        main(["suggest", str(train), "-o", str(out), "--force"])
    assert "required: --unlabelled" in capsys.readouterr().err


@pytest.mark.usefixtures("fake_ensemble")
def test_augment_with_unlabelled_text(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, out = train.with_name("news.txt"), train.with_name("out.jsonl")
    text.write_text("Maybe Bo left town.\nAda left Rome.\nMaybe Bo left town.\n")
    held_out = train.with_name("test.conll")
    entaug.write([Sentence("maybe Bo left town .".split())], held_out)
    command = ["augment", str(train), "-m", "selftrain", "-o", str(out), "--unlabelled", str(text)]
    assert main([*command, "--held-out", str(held_out)]) == 2
    assert "test.conll: 1 sentence of the unlabelled text stands in this held-out file" in capsys.readouterr().err
    assert main(["augment", "-", *command[2:]]) == 2
    assert "cannot be standard input" in capsys.readouterr().err
    assert main(command[:-2]) == 2
    assert "selftrain needs unlabelled text; name files as --unlabelled" in capsys.readouterr().err
    assert main(["augment", str(train), "-m", "mr", "--unlabelled", str(text), "-o", str(out)]) == 2
    assert "unknown parameter of mr: 'unlabelled'" in capsys.readouterr().err
    assert main([*command, "-m", "sis:p=1,selftrain:min_confidence=1.0"]) == 0
    assert "selftrain" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    told = capsys.readouterr().err
    assert "1 sentence of the unlabelled text is a duplicate" in told
    assert "1 sentence of the unlabelled text is a training sentence" in told
    assert "1 gold sentence in, 1 new, 2 written" in told
    [_, new] = entaug.read(out)
    assert str(new) == "Maybe [Bo]PER left town ."
    assert new.provenance is not None
    assert new.provenance.details["text"] == "news.txt:1"
    assert TagProbabilities.from_sentence(new) is not None


@pytest.mark.usefixtures("fake_ensemble")
def test_a_killed_run_and_another_text(train: Path) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:20]
    entaug.write(gold, train)
    text = read_unlabelled([EXAMPLE / "dev.conll"], gold)
    whole = entaug.methods.SelfTraining(unlabelled=text, tagger=Unsure())
    other = entaug.methods.SelfTraining(unlabelled=text[1:], tagger=Unsure())
    assert whole.load().signature != other.load().signature, "a run is resumed with the same text only"
    entaug.augment_file(train, train.with_name("a.jsonl"), whole)
    entaug.augment_file(
        train, train.with_name("b.jsonl"), entaug.methods.SelfTraining(unlabelled=text[::-1], tagger=Unsure())
    )
    assert train.with_name("a.jsonl").read_bytes() == train.with_name("b.jsonl").read_bytes()
