"""What every method makes of the example corpus is what it has made before: see benchmarks/golden.py."""

from __future__ import annotations

import pytest

import golden

CASES = [
    pytest.param(case, id=case.name, marks=() if case.kind == "fast" else pytest.mark.models) for case in golden.CASES
]


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
