"""`entaug example` and `entaug.example`; tests/commands/test_installed.py has those of a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

import entaug
from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.errors import UnknownNameError


@pytest.mark.parametrize("part", ["train", "dev", "test", "nested"])
def test_a_part_is_what_its_file_holds(part: str) -> None:
    [file] = EXAMPLE.glob(f"{part}.*")
    assert entaug.example(part) == entaug.read(file)


def test_another_part_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown part of the example corpus 'trian'; did you mean 'train'"):
        entaug.example("trian")


def test_the_command_writes_a_folder_once_and_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example"]) == 0
    *_, last = capsys.readouterr().err.splitlines()
    assert main(last.removeprefix("next: entaug ").split()) == 0
    capsys.readouterr()
    (tmp_path / "examples" / "mine.txt").touch()
    assert main(["example"]) == 3
    assert capsys.readouterr().err == "entaug: error: examples: is there already; name a folder that is new or empty\n"
    assert (tmp_path / "examples" / "mine.txt").exists()


def test_the_current_folder_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example", "-o", "."]) == 3
    assert capsys.readouterr().err == "entaug: error: .: is the current folder; name a new one in it\n"
