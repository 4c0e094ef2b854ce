"""The comparison of two runs of the speed benchmarks, and the whole command in its short form."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import suite
from conftest import EXAMPLE
from records import Measurement, Part, compared, page, reference

SUITE = EXAMPLE.parent.parent / "benchmarks" / "suite.py"


def part(*measurements: Measurement, python: float = 100, **values: Any) -> Part:
    known: dict[str, Any] = {"quick": False, "date": "2026-01-01", "machine": "one core", "versions": {"Python": "3"}}
    rates = {"python": python, "numpy": 10.0}
    return Part(**{**known, "rates": rates, "measurements": list(measurements), **values})


def worse(old: Part, new: Part) -> list[tuple[str, float]]:
    changes, left_out = compared({"a": old}, {"a": new})
    assert not left_out
    return [(change.name, round(change.times, 3)) for change in changes if change.is_worse]


RATE = Measurement(what="x", value=1000)
SECONDS = Measurement(what="x", value=2, unit="s")
PEAK = Measurement(what="x", value=50, unit="MB")
BESIDE = Measurement(what="x", value=1000, peer=500)


@pytest.mark.parametrize(
    ("old", "new", "python", "expected"),
    [
        # By hand: of rates, the new quotient with the fixed work over the old one.
        (RATE, replace(RATE, value=910), 100, []),
        (RATE, replace(RATE, value=890), 100, [("a: x", 0.89)]),
        (RATE, replace(RATE, value=500), 50, []),  # half as fast on a machine that is half as fast
        (RATE, RATE, 200, [("a: x", 0.5)]),  # as fast on one that is twice as fast
        (SECONDS, replace(SECONDS, value=4), 50, []),
        (SECONDS, replace(SECONDS, value=4), 100, [("a: x", 0.5)]),
        (SECONDS, replace(SECONDS, value=1), 100, []),
        (PEAK, replace(PEAK, value=100), 50, [("a: x", 0.5)]),  # a megabyte is a megabyte on every machine
        # Beside a peer the fixed work does not count.
        (BESIDE, replace(BESIDE, value=500, peer=250), 100, []),
        (BESIDE, replace(BESIDE, peer=800), 100, [("a: x", 0.625)]),
    ],
)
def test_what_became_worse(old: Measurement, new: Measurement, python: float, expected: list[Any]) -> None:
    assert worse(part(old), part(new, python=python)) == expected


def test_what_cannot_be_compared_is_told() -> None:
    beside, remark = replace(BESIDE, what="y"), Measurement(what="agreement", note="1e-7")
    old = {"a": part(RATE, beside, SECONDS, remark), "c": part(RATE)}
    changes, left_out = compared(old, {"a": part(replace(RATE, on="other"), replace(beside, peer=None)), "b": part()})
    assert not changes
    assert len(left_out) == 3
    assert all(any(text in line for line in left_out) for text in ("on other data", "without the peer", "b: not in"))
    _, left_out = compared({"a": part(RATE)}, {"a": part(RATE, quick=True)})
    assert left_out == ["a: one of the two runs is in the short form"]
    _, left_out = compared({"a": part(RATE, beside)}, {"a": part(RATE)})
    assert left_out == ["a: y: not in the new run"]


def test_the_comparison_fails_if_anything_is_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("old", 1000), ("new", 800)):
        values = {"a": part(replace(RATE, value=value)).to_dict()}
        (tmp_path / name).write_text(json.dumps(values), encoding="utf-8")
    paths = {name: tmp_path / name for name in ("old", "new")}
    assert suite.read(paths["old"]) == {"a": part(RATE)}
    assert suite.compare(Namespace(**paths)) == 1
    assert "slower: a: x: 0.80 times as good (1,000/s, now 800/s)" in capsys.readouterr().out
    assert suite.compare(Namespace(old=paths["old"], new=paths["old"])) == 0


def test_the_fixed_work_has_rates() -> None:
    assert all(rate > 1 for rate in reference(0.01).values())


def test_the_record_is_that_of_the_page() -> None:
    parts = suite.read(SUITE.with_name("speed.json"))
    assert page(parts, {name: one.title for name, one in suite.PARTS.items()}) == SUITE.with_name("speed.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_the_whole_command_in_its_short_form(tmp_path: Path) -> None:
    record, text = tmp_path / "speed.json", tmp_path / "speed.md"
    # Without the environment of the peers; the parts that are nothing without them are left out.
    command: list[str | Path] = [
        sys.executable,
        SUITE,
        "run",
        "--quick",
        "--only",
        "rules,start,large,pll",
        "--peers",
        "nowhere",
    ]
    done = subprocess.run([*command, "--json", record, "--page", text], check=True, capture_output=True, text=True)
    assert "pll: left out" in done.stderr
    parts = suite.read(record)
    assert [*parts] == ["rules", "start", "large"]
    assert all(one.value and one.value > 0 for found in parts.values() for one in found.measurements)
    assert "| `mr` |" in text.read_text(encoding="utf-8")
    same = subprocess.run(
        [sys.executable, SUITE, "compare", record, record], check=True, capture_output=True, text=True
    )
    assert "0 worse" in same.stdout
