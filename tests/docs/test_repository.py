"""What the repository says to other programs: citation, CI, pre-commit and the forms of issues."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE, ROOT

yaml = pytest.importorskip("yaml")

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FILES = [ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.yml"), *ROOT.glob(".pre-commit-*.yaml")]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def test_there_are_such_files() -> None:
    assert len(FILES) == 7
    assert len(FORMS) == 3
    for path in FILES:  # no registry, no address of a machine or a person
        assert not re.search(r"://|@[\w-]+\.\w|\bssh\b", path.read_text("utf-8")), path.name


def test_the_citation_is_that_of_the_readme() -> None:
    citation, readme = load(ROOT / "CITATION.cff"), (ROOT / "README.md").read_text("utf-8")
    assert citation["version"] == entaug.__version__
    assert f"title = {{{citation['title']}}}" in readme
    assert [author["name"] for author in citation["authors"]] == re.findall(r"author = {{(.*?)}}", readme)
    assert f"license = {{{citation['license']}}}" in readme


def test_the_workflow_calls_the_script_that_a_person_calls() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "ci.yml")
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert commands == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert workflow["permissions"] == {"contents": "read"}


def test_the_hooks_of_this_repository_are_targets_of_make() -> None:
    [local] = load(ROOT / ".pre-commit-config.yaml")["repos"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for hook in local["hooks"]:
        assert re.search(rf"(?m)^{hook['entry'].removeprefix('make ')}:", makefile)


@pytest.mark.parametrize(("names", "code"), [(["good 1.conll"], 0), (["bad.conll", "good 1.conll"], 1)])
def test_the_hook_for_others_checks_every_file(tmp_path: Path, names: list[str], code: int) -> None:
    [hook] = load(ROOT / ".pre-commit-hooks.yaml")
    assert re.search(hook["files"], "corpora/train.conll")
    assert not re.search(hook["files"], "train.py")
    (tmp_path / "good 1.conll").write_bytes((EXAMPLE / "dev.conll").read_bytes())
    (tmp_path / "bad.conll").write_text("Ada\tB-PER\nsings\tO\n\nBo\tI-PER\n")
    program = tmp_path / "bin" / "entaug"  # that pre-commit installs
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m entaug "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    finished = subprocess.run(
        [*shlex.split(hook["entry"]), *names],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == code, finished.stderr
    assert ("bad.conll:4: " in finished.stdout + finished.stderr) == bool(code)
    assert "25 valid sentences" in finished.stderr  # also after a bad one


@pytest.mark.parametrize("path", [form for form in FORMS if form.stem != "config"], ids=lambda path: path.stem)
def test_a_form_is_one(path: Path) -> None:
    form = load(path)
    assert {"name", "description", "body"} <= form.keys()
    fields = [item for item in form["body"] if item["type"] != "markdown"]
    assert {item["type"] for item in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(item["attributes"]["label"] for item in fields)
    ids = [item["id"] for item in fields]
    assert len(set(ids)) == len(ids)
    assert any(item.get("validations", {}).get("required") for item in fields)
