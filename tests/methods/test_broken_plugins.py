"""Plug-ins that cannot be used, and plug-ins whose names are taken: installed by pip, found by their entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import entaug
from conftest import EXAMPLE

ENTRIES = {
    "first": {
        "methods": {
            "absent": "entaug_first_absent:Method",
            "exits": "entaug_first_exits:Method",
            "mr": "entaug_first:Mine",
            "number": "entaug_first:NUMBER",
            "twice": "entaug_first:Twice",
        },
        "filters": {"abstract": "entaug_first:Abstract", "validity": "entaug_first:Mine"},
        "formats": {"abstract-format": "entaug_first:AbstractFormat", "conll": "entaug_first:Mine"},
        "measures": {"odd": "entaug_first:NUMBER", "length": "entaug_first:Mine"},
    },
    "second": {"methods": {"twice": "entaug_second:Mine"}},
}
MODULES = {
    "entaug_first": """
import entaug
from entaug.methods.base import Augmenter, MethodInfo
from entaug.filters import Filter
from entaug.formats.base import BaseFormat

NUMBER = 17

class Mine:
    pass

class Abstract(Filter):
    pass

class AbstractFormat(BaseFormat):
    name = "abstract-format"

class Twice(type(entaug.create_augmenter("sis"))):
    info = MethodInfo("twice", "mention-replacement", "written in the first package", "none")
""",
    "entaug_first_exits": "raise SystemExit('needs\\na licence')",
    "entaug_second": "class Mine: pass",
}


NO_METHOD = "it is not a subclass of Augmenter with the name 'number'"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("plugins")
    for package, groups in ENTRIES.items():
        source = folder / package
        source.mkdir()
        lines = ["[build-system]", 'requires = ["setuptools"]', 'build-backend = "setuptools.build_meta"', "[project]"]
        lines += [f'name = "entaug-{package}"', 'version = "1"']
        for group, entries in groups.items():
            lines += [f'[project.entry-points."entaug.{group}"]', *(f'{n} = "{place}"' for n, place in entries.items())]
        modules = [name for name in MODULES if name.startswith(f"entaug_{package}")]
        (source / "pyproject.toml").write_text("\n".join([*lines, "[tool.setuptools]", f"py-modules = {modules}"]))
        for name in modules:
            (source / f"{name}.py").write_text(MODULES[name])
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    sources = [str(folder / package) for package in ENTRIES]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "site"), *sources]
    subprocess.run(command, check=True)
    ours = str(Path(entaug.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "site"), ours])}


def run(environment: dict[str, str], *arguments: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "entaug", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_methods_are_listed_without_the_broken_ones(environment: dict[str, str]) -> None:
    listed, notes = run(environment, "list", "methods")
    assert entaug.methods.METHODS["mr"].info.summary in listed
    assert "written in the first package" in listed
    assert "absent" not in listed
    cannot, remedy = "of the package entaug-first cannot be used", "update or uninstall that package"
    assert notes.splitlines() == [
        f"note: the method 'absent' {cannot} (ModuleNotFoundError: No module named 'entaug_first_absent'); {remedy}",
        f"note: the method 'exits' {cannot} (SystemExit: needs a licence); {remedy}",
        f"note: the method 'number' {cannot} (TypeError: {NO_METHOD}); {remedy}",
        "note: the method 'mr' of the package entaug-first is not used: entaug has one of that name",
        "note: the method 'twice' of the package entaug-second is not used: entaug-first has one of that name",
    ]
    described, notes = run(environment, "list", "methods", "mention-replacement")
    assert described.startswith("mr, mention-replacement (entaug.methods.MentionReplacement)"), (
        "no plug-in takes our names"
    )
    assert notes == ""
    assert "cannot be used (SystemExit" in run(environment, "list", "methods", "exits", code=2)[1]
    assert "did you mean 'mr'?" in run(environment, "list", "methods", "mrr", code=2)[1]


@pytest.mark.parametrize(
    ("command", "name", "taken"), [("filters", "abstract", "validity"), ("formats", "abstract-format", "conll")]
)
def test_filters_and_formats_are_listed_without_the_broken_ones(
    environment: dict[str, str], command: str, name: str, taken: str
) -> None:
    for options in ((), ("--json",)):
        listed, notes = run(environment, "list", command, *options)
        assert taken in listed
        assert "abstract" not in listed
        kind = command[:-1]
        first, second = notes.splitlines()
        assert first.startswith(f"note: the {kind} '{name}' of the package entaug-first cannot be used (TypeError: ")
        assert (
            second == f"note: the {kind} '{taken}' of the package entaug-first is not used: entaug has one of that name"
        )
    assert "cannot be used" in run(environment, "list", command, name, code=2)[1]


@pytest.mark.slow
def test_everything_else_works(environment: dict[str, str], tmp_path: Path) -> None:
    train, out = str(EXAMPLE / "train.conll"), str(tmp_path / "out.jsonl")
    run(environment, "augment", train, "-m", "mr", "--filter", "duplicates", "-o", out)
    assert "no errors" in "".join(run(environment, "check", out))
    run(environment, "quality", out, "--gold", train, "--no-models", "-o", str(tmp_path / "table.md"))
    run(environment, "report", out, "-o", str(tmp_path / "report.html"))
    assert "new_words" in run(environment, "list", "measures")[0]
    assert "minilm" in run(environment, "list", "models")[0]
