"""The rules of the architecture that no linter knows: layers of imports, light start-up, one way to rewrite."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

SRC = ROOT / "src" / "entaug"

# A room imports its own floor and lower ones, without exceptions; docs/architecture.md draws the same.
FLOORS = (
    ("errors", "_version"),
    ("core", "config", "files"),
    ("formats", "backends", "metrics"),
    ("taggers", "teacher", "filters"),
    ("methods",),
    ("study", "report", "serving"),
    ("commands", "testing"),
    ("__init__", "__main__"),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
HEAVY = {"torch", "spacy", "transformers", "nltk", "numpy", "lemminflect", "rich", "sklearn", "stopwordsiso", "usearch"}
HEAVY |= {"httpx", "datasets", "pyarrow", "srsly", "rapidfuzz", "matplotlib", "jinja2", "scipy", "filelock"}
MODULES = sorted(SRC.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room_of(name: str) -> str:
    room = name.partition(".")[0]
    assert room in FLOOR, f"{name} belongs to no room: see docs/architecture.md"
    return room


def imports(path: Path, *, top_only: bool = False) -> set[str]:
    """The modules that a file imports, also inside functions unless `top_only`."""
    names = set()
    tree = ast.parse(path.read_text())
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                is_module = longer.startswith("entaug.") and is_our_module(longer)
                names.add(longer if is_module else node.module)
    return names


def is_our_module(name: str) -> bool:
    path = SRC.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def ours(path: Path) -> set[str]:
    return {name.removeprefix("entaug.") for name in imports(path) if name.startswith("entaug.")}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_room_imports_its_own_floor_and_lower_ones(path: Path) -> None:
    room = room_of(name_of(path))
    above = {name for name in ours(path) if FLOOR[room_of(name)] > FLOOR[room]}
    assert not above, f"{name_of(path)} imports {sorted(above)} from a floor above"


def test_there_is_no_cycle_of_imports_not_even_of_late_ones() -> None:
    graph = {name_of(path): ours(path) & {name_of(p) for p in MODULES} for path in MODULES}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for imported in sorted(graph[name]):
                visit(imported, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_are_imported_by_backends_and_taggers_alone_or_late(path: Path) -> None:
    if not name_of(path).startswith(("backends.", "taggers.")):
        heavy = {i.split(".")[0] for i in imports(path, top_only=True)} & HEAVY
        assert not heavy, f"{name_of(path)} imports {heavy} when it is imported"


def test_only_the_core_builds_rewritten_sentences() -> None:
    # Methods rewrite through edit and reorder. A run (base.py)
    # constructs one to sign it, and augment.py a sample, to ask what a format loses.
    for path in (SRC / "methods").rglob("*.py"):
        if path.name in ("base.py", "augment.py"):
            continue
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert "Sentence" not in calls, path.name


@pytest.mark.parametrize(
    "code", ["import entaug", "import sys; sys.argv = ['entaug', '--help']; import runpy; runpy.run_module('entaug')"]
)
def test_starts_quickly_and_light(code: str) -> None:
    loaded = f"[m for m in {sorted(HEAVY)!r} if m in sys.modules]"
    check = f"import sys, atexit\natexit.register(lambda: print({loaded}, file=sys.stderr))\n{code}"
    best, trials = 9.0, 0
    while best >= 0.5 and trials < 3:
        trials += 1
        before = os.times()
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
        after = os.times()  # processor time: other processes make the wall clock slow
        best = min(best, sum(after[2:4]) - sum(before[2:4]))
        assert done.returncode == 0
        assert done.stderr.strip().endswith("[]"), "a heavy library is loaded at start"
    assert best < 0.5


def test_nothing_of_one_machine_is_in_the_repository() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in files:
        if name.endswith((".py", ".md", ".toml", ".txt", "Makefile")) and name != "tests/test_architecture.py":
            text = (ROOT / name).read_text()
            for bad in ("/wo" + "rk/", "/ro" + "ot/", "/home/"):
                assert bad not in text, f"{name} names {bad}"
