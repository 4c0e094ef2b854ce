"""A short slice of every part of the harness, always with the same seeds; more by hand: ``python -m tests.chaos``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from chaos.harness import PARTS, opened_tools, run_part
from chaos.kills import SCENARIOS, tried
from chaos.tools import Tools

pytestmark = pytest.mark.slow

# Trials that together take about a minute; those with models are kept for runs by hand.
SLICE = {"sentences": 8, "disks": 8, "names": 12, "bombs": 8}


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with opened_tools() as made:
        yield made


@pytest.mark.parametrize("part", SLICE)
def test_a_slice_finds_no_fault(tools: Tools, part: str) -> None:
    result = run_part(part, tools, seed=0, trials=SLICE[part])
    assert result.faults == []
    assert result.counts["trials"] == SLICE[part]


@pytest.mark.parametrize("name", ["augment sis", "augment lwtr", "convert to docbin", "filter", "report"])
def test_a_killed_command_ends_with_the_same_bytes(tools: Tools, tmp_path: Path, name: str) -> None:
    [scenario] = [s for s in SCENARIOS if s.name == name]
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert tried(scenario, Random(seed), folder, tools)["signals"]


@pytest.mark.parametrize("name", ["augment entda", "augment mulda"])
def test_a_killed_training_of_a_generator_ends_with_the_same_bytes(tools: Tools, tmp_path: Path, name: str) -> None:
    [scenario] = [s for s in SCENARIOS if s.name == name]
    assert tried(scenario, Random(1), tmp_path, tools)["SIGKILL that ended it"]


def test_edited_notes_of_interrupted_runs(tools: Tools, tmp_path: Path) -> None:
    from chaos.tampering import interrupted

    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert interrupted(Random(seed), folder, tools).total() == 1


def test_a_trial_can_be_repeated_and_a_fault_is_told(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    def trial(rng: Random, folder: Path, tools: Tools) -> dict[str, int]:
        drawn.append(rng.random())
        raise ValueError("odd")

    monkeypatch.setitem(PARTS, "bombs", (1.0, trial))
    said: list[str] = []
    result = run_part("bombs", tools, seed=5, trials=2, say=said.append)
    assert result.faults == [(5, "ValueError: odd"), (6, "ValueError: odd")]
    assert "python -m tests.chaos --only bombs --seed 6 --trials 1" in said[1]
    run_part("bombs", tools, seed=6, trials=1, say=said.append)
    assert drawn[1] == drawn[2] != drawn[0]
