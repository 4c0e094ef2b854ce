"""What the documents say is so: the methods' table, the worked example, the commands and the Python of the README."""

from __future__ import annotations

import dataclasses
import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import entaug
from conftest import ROOT
from entaug.augmenters import METHODS
from entaug.cli.main import main
from entaug.cli.methods import describe_needs


def methods_table() -> str:
    rows = ["| name | what it does | nested | discontinuous | needs |", "|---|---|---|---|---|"]
    for name in METHODS:
        info = METHODS[name].info
        kinds = ["yes" if works else "no" for works in (info.nested, info.discontinuous)]
        rows.append(f"| `{name}` | {info.summary} | {' | '.join(kinds)} | {describe_needs(info)} |")
    return "\n".join(rows)


def test_the_table_of_methods_is_made_from_their_facts() -> None:
    readme = (ROOT / "README.md").read_text()
    found = re.search(r"<!-- methods:.*?-->\n(.*?)\n<!-- end -->", readme, re.DOTALL)
    assert found
    assert found[1] == methods_table(), f"put this into README.md:\n{methods_table()}"


def example(part: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(rf"<!-- example: {part} -->\n```python\n(.*?)```\n<!-- end -->", text, re.DOTALL)
    assert found
    return found[1]


def test_the_worked_example_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class and test of CONTRIBUTING.md run as they stand, the doctest too, and pass the conformance suite."""
    module = ModuleType("entaug_example")
    module.__dict__["__name__"] = "entaug_example"
    monkeypatch.setitem(sys.modules, "entaug_example", module)
    monkeypatch.setitem(sys.modules, "entaug.augmenters.deletion", module)
    exec(compile(example("class"), "CONTRIBUTING.md", "exec"), module.__dict__)  # noqa: S102
    exec(compile(example("test"), "CONTRIBUTING.md", "exec"), module.__dict__)  # noqa: S102
    tests = [name for name in vars(module) if name.startswith("test_")]
    assert tests
    for name in tests:
        vars(module)[name]()
    cls: Any = vars(module)["WordDropout"]
    for case in doctest.DocTestFinder().find(cls, "WordDropout", globs=vars(module)):
        assert doctest.DocTestRunner().run(case).failed == 0

    monkeypatch.setitem(METHODS._built_in, "wd", "entaug_example:WordDropout")
    import test_conformance as suite

    assert dataclasses.is_dataclass(cls)
    suite.test_constructor_loads_nothing_and_parameters_make_it_again("wd")
    suite.test_output_is_new_valid_and_signed("wd")
    suite.test_keeps_what_it_says_it_keeps("wd")
    suite.test_neither_batches_nor_order_nor_company_change_what_is_made("wd", monkeypatch)
    suite.test_bad_parameters_are_refused_before_any_work("wd")
    suite.test_draws_anew_each_epoch_on_line("wd")


def test_the_python_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("examples/", f"{ROOT}/examples/"), "README.md", "exec"), {})  # noqa: S102
    assert len(entaug.read("bigger.conll")) > 300


def test_the_example_plan_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "examples" / "corpus", tmp_path / "corpus")
    shutil.copy(ROOT / "examples" / "plan.toml", tmp_path)
    assert main(["experiment", str(tmp_path / "plan.toml"), "--check"]) == 0
    assert "good; 15 runs" in capsys.readouterr().err


def test_every_option_the_readme_names_exists(capsys: pytest.CaptureFixture[str]) -> None:
    known = ""
    commands = [
        *(
            [name]
            for name in (
                "check",
                "convert",
                "evaluate",
                "experiment",
                "filter",
                "filters",
                "methods",
                "models",
                "quality",
                "report",
                "subset",
                "train",
            )
        ),
        *(["augment", "--method", name] for name in METHODS),
    ]
    for command in commands:
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        known += capsys.readouterr().out
    named = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "README.md").read_text()))
    assert named
    assert all(re.search(rf"{option}\b", known) for option in named)


def test_the_demo_shows_sentences_before_and_after(tmp_path: Path) -> None:
    assert tmp_path
    try:
        entaug.create_augmenter("sr").load()
    except entaug.EntaugError as error:
        pytest.skip(str(error))
    done = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, check=True)
    for name in METHODS:
        assert f"--method {name}" in done.stdout
    shown = [re.findall(rf"^  {side} ", done.stdout, re.MULTILINE) for side in ("before", "after")]
    assert len(shown[0]) == len(shown[1]) >= 12
    page = re.findall(r"^open in a browser: (.*)$", done.stdout, re.MULTILINE)
    assert "What the demo made" in Path(page[0]).read_text(encoding="utf-8")
