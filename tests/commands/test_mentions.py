"""New mentions by an instruct model: what is accepted, and what the command writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import entaug
from entaug import Mention, Sentence
from entaug.backends.instruct import INCOMPLETE, Answer
from entaug.backends.prompts import packaged_prompt
from entaug.commands.main import main
from entaug.errors import EntaugError, ParameterError, UnknownNameError
from entaug.methods.shared import new_mentions as reasons
from entaug.methods.shared.new_mentions import write_mentions
from helpers.fakes import FakeGenerator, FakeInstructModel
from helpers.scripted_server import Reply, serving

GOLD = [
    Sentence("Ada Moss left The Hague today".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(3, 5)])]),
    Sentence("Bo van Dyck met the Mayor in Oslo".split(), [Mention("PER", [(0, 3)]), Mention("LOC", [(7, 8)])]),
]
HELD_OUT = [Sentence("Eve Stone spoke".split(), [Mention("PER", [(0, 2)])])]


def written(lines: str | Answer, number: int = 9, **options: Any) -> reasons.NewMentions:
    model = FakeInstructModel(answer=lambda _: lines)
    return write_mentions(model, packaged_prompt("mentions"), GOLD, "PER", number, rounds=1, **options)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Ines Quark", "Ines Quark"),
        ("1. Ines Quark", "Ines Quark"),
        ("- “Ines Quark”", "Ines Quark"),
        ("Jean-Luc O'Neil", "Jean-Luc O'Neil"),
        ("Ines  Quark Jr.", "Ines Quark Jr."),
    ],
)
def test_names_are_accepted_without_what_stands_around_them(line: str, text: str) -> None:
    assert written(f"Here are some:\n{line}\n\n").texts == [text]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Further names:", reasons.NO_NAME),
        ("Is this enough?", reasons.NO_NAME),
        ("...", reasons.NO_NAME),
        ("PER | Ines", reasons.NO_NAME),
        ("ADA MOSS", reasons.KNOWN),
        ("hague", reasons.KNOWN),
        ("Eve Stone", reasons.HELD_OUT),
        ("Ines Quark of the Old Mill", reasons.LONGER),
        ("Инес Кварк", reasons.OTHER_SCRIPT),
        ("somebody else", reasons.OTHER_SHAPE),
        ("the Mayor", reasons.ORDINARY),
    ],
)
def test_lines_that_are_no_new_mentions_are_counted(line: str, reason: str) -> None:
    new = written(line, held_out=HELD_OUT)
    assert (new.texts, new.rejected) == ([], {reason: 1})


def test_a_mention_is_written_once_whatever_its_form() -> None:
    new = written("Ines Quark\nINES QUARK\nInes  Quark")
    assert (new.texts, new.rejected) == (["Ines Quark"], {reasons.REPEATED: 2})


def test_answers_that_broke_off_lose_their_last_line() -> None:
    assert written(Answer("Ines Quark\nOtto Ze", INCOMPLETE)).texts == ["Ines Quark"]
    assert written(Answer("", "the server failed (500)")).failed == {"the server failed (500)": 1}


def test_missing_ones_are_asked_for_again_with_other_examples() -> None:
    model = FakeInstructModel(answer=lambda request: f"Ines {chr(65 + request.seed % 26)}uark")
    new = write_mentions(model, packaged_prompt("mentions"), GOLD, "PER", 25, rounds=4)
    assert len(model.requests) > 4
    assert len(set(model.requests)) == len(model.requests)
    assert len(new.texts) == len(set(new.texts)) <= 25


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    entaug.write(GOLD, "train.conll")
    entaug.write(HELD_OUT, "dev.conll")
    return tmp_path


def test_the_list_of_the_command_is_one_for_mr(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("httpx")
    with serving(lambda body, before: Reply("Ines Quark\nEve Stone\nOtto Zeh\nBergen")) as server:
        command = ["mentions", "train.conll", "--generator", f"{server.url}#tiny", "--number", "2", "-o", "new.jsonl"]
        assert main([*command, "--label", "PER", "--held-out", "dev.conll"]) == 0
        assert "line not accepted: 1 (a mention of a held-out sentence)" in capsys.readouterr().err
        assert main([*command, "--label", "PER"]) == 3, "an output that exists is kept"
        assert main([*command, "--label", "PER", "--force", "--json", "--seed", "2"]) == 0
        assert json.loads(capsys.readouterr().out)["usage"]["output_tokens"] > 0
        twice = ["--label", "PER", "--label", "PER"]
        assert main([*command, *twice, "--force", "--held-out", "dev.conll"]) == 0
        assert main([*command, "--label", "PRE", "--force"]) == 2
        assert "did you mean 'PER'?" in capsys.readouterr().err
    records = [json.loads(line) for line in Path("new.jsonl").read_text().splitlines()]
    assert records == [{"mention": text, "label": "PER"} for text in ("Ines Quark", "Otto Zeh")]
    options = ["--mentions", "new.jsonl", "--list-share", "1", "--p", "1", "--only-new", "-o", "new.conll"]
    assert main(["augment", "train.conll", "-m", "mr", *options]) == 0
    persons = {" ".join(s.mention_tokens(m)) for s in entaug.read("new.conll") for m in s.mentions if m.label == "PER"}
    assert persons <= {"Ines Quark", "Otto Zeh"}


def test_faults_of_the_command(train: Path) -> None:
    with pytest.raises(EntaugError, match=r"no new mention was accepted \(most often: a mention of the corpus\)"):
        entaug.mentions("train.conll", "new.jsonl", FakeInstructModel(answer=lambda _: "Ada Moss"), labels=["PER"])
    assert not Path("new.jsonl").exists()
    with pytest.raises(ParameterError, match="is a model to fine-tune"):
        entaug.mentions("train.conll", "new.jsonl", FakeGenerator())  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="'ORG'"):
        entaug.mentions("train.conll", "new.jsonl", FakeInstructModel(), labels=["ORG"])
