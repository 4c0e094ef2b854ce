"""What is made of the example corpus is what was made before: see benchmarks/golden.py and golden_files.py."""

from __future__ import annotations

from pathlib import Path

import pytest

import golden
import golden_files

MARKS = {"fast": (), "models": (pytest.mark.models, pytest.mark.slow)}
CASES = [pytest.param(case, id=case.name, marks=MARKS[case.kind]) for case in golden.CASES]
PARTS = [pytest.param(name, marks=MARKS[part.kind]) for name, part in golden_files.PARTS.items()]


@pytest.fixture(scope="session")
def record() -> dict[str, golden.Record]:
    found: dict[str, golden.Record] = golden.recorded()["cases"]
    return found


def test_the_record_has_every_case(record: dict[str, golden.Record]) -> None:
    assert [*record] == [case.name for case in golden.CASES]


@pytest.mark.parametrize("case", CASES)
def test_the_outputs_are_those_of_the_record(case: golden.Case, record: dict[str, golden.Record]) -> None:
    if case.kind == "models" and (why := golden.comparable()):
        pytest.skip(why)
    found = golden.differences(case.name, record.get(case.name), golden.run(case))
    assert not found, "\n".join(found)


def test_the_record_has_every_part() -> None:
    assert [*golden.recorded(golden_files.GOLDEN)["cases"]] == [*golden_files.PARTS]


@pytest.mark.parametrize("name", PARTS)
def test_files_and_numbers_are_those_of_the_record(name: str, tmp_path: Path) -> None:
    if why := golden_files.comparable(name):
        pytest.skip(why)
    known = golden.recorded(golden_files.GOLDEN)["cases"].get(name)
    found = golden_files.differences(known, golden_files.PARTS[name].function(tmp_path))
    assert not found, "\n".join(found)
