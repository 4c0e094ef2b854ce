"""Rules of the house that no linter knows: who may import whom, quick start, one way to rewrite."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT

SRC = ROOT / "src" / "entaug"
LOW = {"errors", "rng", "locks", "_version"}
CORE = LOW | {"data"}
TEXT = CORE | {"tags", "align", "linearize"}
# Module (or package) -> what of ours it may import. The longest name that fits rules.
MAY: dict[str, set[str]] = {
    "errors": set(),
    "rng": set(),
    "locks": set(),
    "_version": set(),
    "data": LOW | {"tags", "align"},  # only inside methods: Sentence.iob, a view, and the spaces of rewritten text
    "tags": CORE,
    "align": CORE,
    "marking": TEXT,
    "linearize": CORE | {"tags", "align"},
    "formats": TEXT | {"formats"},
    "backends.protocols": TEXT,
    "backends.fakes": TEXT | {"backends.protocols"},
    "backends.resolve": LOW | {"backends", "backends.protocols", "models"},
    "backends.wordnet": LOW | {"backends.protocols", "backends.wordnet_table", "models"},
    "backends": TEXT | {"backends", "models", "dependencies"},
    "dependencies": CORE | {"backends.protocols"},
    "models": LOW,
    "filters": TEXT | {"filters", "backends.protocols", "backends.resolve"},
    "filters.models": TEXT
    | {"filters.base", "backends.protocols", "backends.resolve", "likelihood", "near_duplicates", "similarity"},
    "filters.texts": TEXT | {"filters.base", "augmenters.stopwords", "near_duplicates"},
    "augmenters.base": TEXT | {"filters", "augmenters.run"},
    "augmenters": TEXT | {"augmenters", "backends.protocols", "backends.resolve", "dependencies"},
    "augmenters.aclm": TEXT | {"augmenters", "backends.protocols", "backends.resolve", "marking"},
    "augmenters.daga": TEXT | {"augmenters", "backends.protocols", "backends.resolve", "marking"},
    "augmenters.entda": TEXT | {"augmenters", "backends.protocols", "marking"},
    "augmenters.pairing": TEXT | {"backends.protocols", "backends.resolve", "similarity"},
    "augmenters.constituency": TEXT | {"augmenters", "backends.protocols", "backends.resolve", "contests"},
    "augmenters.cassi": TEXT | {"augmenters", "backends.protocols", "backends.resolve", "contests"},
    "contests": LOW | {"backends.protocols"},
    "likelihood": TEXT | {"backends.protocols", "backends.resolve", "contests"},
    "similarity": TEXT | {"backends.protocols", "backends.resolve"},
    "registry": LOW | {"augmenters"},
    "sinks": TEXT | {"formats", "augmenters"},
    "near_duplicates": CORE,
    "scoring": CORE,
    "subsets": CORE,
    "report": LOW | {"scoring"},
    "review": LOW,
    "pairs": CORE | {"formats"},
    "filework": CORE | {"formats", "sinks"},
    "quality": TEXT
    | {
        "quality",
        "backends.protocols",
        "backends.resolve",
        "contests",
        "likelihood",
        "similarity",
        "near_duplicates",
        "pairs",
    },
    "evaluation": TEXT | {"formats", "sinks", "filework", "scoring", "subsets", "taggers.base"},
    "page": CORE | {"page", "pairs", "quality", "report", "registry", "evaluation", "filework", "formats"},
    "page.changes": CORE | {"pairs"},
    "page.data": CORE | {"page", "pairs"},
    "page.drawing": LOW,
    "page.plots": CORE | {"page", "pairs", "report"},
    "commands": {"*"},
    "filter_commands": {"*"},
    "options": {"*"},
    "filtering": TEXT | {"augmenters.run", "formats", "filters", "filework", "jobs", "pairs", "review", "sinks"},
    "jobs": TEXT | {"formats", "augmenters", "registry", "sinks", "filework", "review"},
    "taggers.base": TEXT,
    "taggers": TEXT | {"taggers", "backends", "models", "scoring"},
    "experiment.plan": TEXT | {"augmenters", "registry", "subsets", "taggers.base"},
    "experiment": {"*"},
    "cli": {"*"},
    "__init__": {"*"},
    "__main__": {"*"},
}
HEAVY = {"torch", "spacy", "transformers", "nltk", "numpy", "lemminflect", "rich", "sklearn", "stopwordsiso", "usearch"}
HEAVY |= {"datasets", "pyarrow", "srsly", "rapidfuzz", "matplotlib", "jinja2", "markdown_it"}
MODULES = sorted(SRC.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def rule_for(name: str) -> set[str]:
    while name not in MAY and "." in name:
        name = name.rpartition(".")[0]
    assert name in MAY, f"no import rule for {name}: add it to docs/architecture.md and here"
    return MAY[name]


def imports(path: Path, *, top_only: bool = False) -> set[str]:
    found = set()
    tree = ast.parse(path.read_text())
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "entaug":
                found |= {f"entaug.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_obey_the_rule(path: Path) -> None:
    allowed = rule_for(name_of(path))
    for imported in imports(path):
        if not imported.startswith("entaug.") or "*" in allowed:
            continue
        ours = imported.removeprefix("entaug.")
        fits = any(ours == one or ours.startswith(one + ".") for one in allowed)
        assert fits, f"{name_of(path)} imports {ours}; it may import {sorted(allowed)}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_are_imported_by_backends_alone_and_late(path: Path) -> None:
    if not name_of(path).startswith(("backends.", "taggers.")):
        heavy = {i.split(".")[0] for i in imports(path, top_only=True)} & HEAVY
        assert not heavy, f"{name_of(path)} imports {heavy} when it is imported"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_stay_readable_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


def test_only_the_core_builds_rewritten_sentences() -> None:
    # Methods rewrite through edit and reorder. A run alone makes a Sentence, to sign one that is already rewritten.
    for path in (SRC / "augmenters").glob("*.py"):
        if path.name == "run.py":
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
    best = 9.0
    for _ in range(3):
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
        best = min(best, time.perf_counter() - begun)
        assert done.returncode == 0
        assert done.stderr.strip().endswith("[]"), "a heavy library is loaded at start"
    assert best < 0.5


def test_nothing_of_one_machine_is_in_the_repository() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in files:
        if name.endswith((".py", ".md", ".toml", ".txt", "Makefile")) and name != "tests/test_house.py":
            text = (ROOT / name).read_text()
            for bad in ("/wo" + "rk/", "/ro" + "ot/", "/home/"):
                assert bad not in text, f"{name} names {bad}"
