"""`entaug check`: many errors, and counts of phrases (``--phrases``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends.protocols import Constituent
from entaug.commands.check import CheckSummary
from entaug.commands.main import main
from entaug.errors import InputError
from helpers.command_line import fails
from helpers.fakes import FakeConstituencyParser

TRAIN = EXAMPLE / "train.conll"


class German(FakeConstituencyParser):
    languages = frozenset({"de"})


def test_of_many_errors_the_first_are_printed_and_all_are_counted_by_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(30):
        (tmp_path / f"name-{'x' * i}.txt").write_text("some text here")
        (tmp_path / f"name-{'x' * i}.ann").write_text(f"T1\tPER 0 4\tsoma\nT2 bad{i}\n")
    assert main(["check", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 20
    first, *kinds = printed.err[printed.err.index("60 errors") :].splitlines()[1:]
    assert first == "40 of them, after the first 20, by kind (all: --json, in Python `errors`):"
    assert [kind.split(" such as ")[0] for kind in kinds] == ["      20"] * 2
    assert kinds[0].endswith("correct it, or pass --repair")
    assert main(["check", str(tmp_path), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 60
    many = CheckSummary(input="a", errors=[f"a.conll:1: fault {'x' * i}" for i in range(45)])
    assert [*many.lines()][-1] == "       5 of 5 other kinds"


def test_phrases_are_counted_by_category_with_those_that_hold_a_mention(tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    file.write_text("Ada B-PER\nmet O\nBo B-PER\n\nAda B-PER\nByron I-PER\nsang O\n\nRain O\n")
    summary = entaug.check(file, phrases=FakeConstituencyParser())
    assert summary.phrases is not None
    # By the fake, a sentence, its first word and all other words: "Ada", "Ada" (half a mention) and "Rain".
    assert summary.phrases.phrases == {"S": 3, "NP": 3, "VP": 2}
    assert summary.phrases.with_mention == {"S": 2, "NP": 1, "VP": 1}
    assert entaug.check(file).phrases is None


def test_windows_and_faulty_sentences_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(FakeConstituencyParser):
        def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
            windows.append(len(sentences))
            return super().parse(sentences)

    windows: list[int] = []
    whole = entaug.check(TRAIN, phrases=Counting())
    assert windows == [100]
    monkeypatch.setattr("entaug.commands.check._WINDOW", 7)
    assert entaug.check(TRAIN, phrases=Counting()).phrases == whole.phrases
    assert windows == [100, *[7] * 14, 2]
    broken = tmp_path / "broken.conll"
    broken.write_text(TRAIN.read_text("utf-8").replace("\tB-PER", "\tX-PER", 1), "utf-8")
    summary = entaug.check(broken, phrases=FakeConstituencyParser())
    assert len(summary.errors) == 1
    assert summary.phrases is not None
    assert summary.phrases.phrases["S"] == summary.counts.sentences == 99


def test_a_parser_of_another_language_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"train.conll: .*serves German.*`phrases=NAME`, or pass `use_compute_\w+\(any_l"
    ):
        entaug.check(TRAIN, phrases=German())


def test_an_unknown_parser_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown" in fails(capsys, 2, "check", str(TRAIN), "--phrases", "projectd")


@pytest.mark.models
def test_phrases_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "few.conll")
    entaug.write(list(entaug.read(TRAIN))[:10], file)
    capsys.readouterr()
    assert main(["check", file, "--phrases", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["phrases"]
    assert counts["phrases"]["NP"] > counts["with_mention"]["NP"] > 0
    assert main(["check", file, "--phrases"]) == 0
    assert f"  NP {counts['phrases']['NP']:>27,} {counts['with_mention']['NP']:>9,}\n" in capsys.readouterr().err
