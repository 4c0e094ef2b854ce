"""The promises of SECURITY.md name tests that exist, and that `make test` runs."""

from __future__ import annotations

import ast
import re

import pytest

from conftest import ROOT

HASHED = (ROOT / "constraints-hashed.txt").read_text("utf-8")
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.+?) \|$", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)


def test_there_are_promises() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[promise[:40] for promise, _ in ROWS])
def test_each_promise_names_its_tests(promise: str, tests: str) -> None:
    assert promise.endswith(".")
    named = re.findall(r"`([^`:]+)::(\w+)`", tests)
    assert named
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        assert functions, f"{file} has no {name}"
        assert not any("slow" in ast.unparse(mark) for node in functions for mark in node.decorator_list)


def test_packages_for_development_have_sums() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())
    hashed = re.findall(r"^([\w.-]+)==(\S+) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", HASHED, re.MULTILINE)
    versions = {name: version for name, version, _ in hashed}
    assert HASHED.count("==") == len(versions)
    expected = {name.lower().replace("_", "-"): version for name, version in pins.items() if name != "torch"}
    assert versions == expected, "run: make hashes"
