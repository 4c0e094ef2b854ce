"""What users get: the wheel, outside the checkout, in the README and in ``spacy train``."""

from __future__ import annotations

import configparser
import csv
import filecmp
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE, ROOT
from entaug.methods import METHODS

pytest.importorskip("hatchling")


def build_and_install(folder: Path) -> Path:
    """Build the wheel, install it without its dependencies, and return the folder for PYTHONPATH."""
    _python("hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    [wheel] = folder.glob("*.whl")
    site = folder / "site"
    _python("pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel), cwd=folder)
    return site


def _python(module: str, *arguments: str, cwd: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def run(site: Path, cwd: Path, *command: str, models: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command of Python with the installed wheel: ``-m``, ``-c`` or a program of the wheel."""
    arguments = [str(site / "bin" / command[0]), *command[1:]] if command[0] == "entaug" else list(command)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ENTAUG")}
    # The packages of the environment come after the wheel, also after an installed entaug of the checkout.
    paths = [str(site), sysconfig.get_path("purelib")]
    environment |= {"PYTHONPATH": os.pathsep.join(paths)}
    if not models:  # those that this machine has prepared
        environment["XDG_CACHE_HOME"] = str(site.parent / "cache")
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_and_install(tmp_path_factory.mktemp("wheel"))


# -------------------------------------------------------------------------------------------------------------- README


def test_the_readme_runs_outside_the_checkout(site: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for kind, block in blocks if not kind for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines]
    assert [command[:2] for command in commands] == [["entaug", name] for name in ("example", "augment", "report")]
    for command in commands:
        finished = run(site, tmp_path, *command)
        assert finished.returncode == 0, finished.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bigger.jsonl", "examples", "report.html"]
    [code] = [block for kind, block in blocks if kind == "python"]
    [output] = [block for kind, block in blocks if kind == "text"]
    finished = run(site, tmp_path, "-c", code)
    assert finished.stdout == output, finished.stderr


def test_the_examples_are_those_of_the_checkout(site: Path, tmp_path: Path) -> None:
    assert run(site, tmp_path, "entaug", "example", "-o", "new").returncode == 0
    written = {path.relative_to(tmp_path / "new") for path in (tmp_path / "new").rglob("*") if path.is_file()}
    names = sorted(map(str, written))
    assert {Path("corpus/train.conll"), Path("lists/people.txt"), Path("plan.toml")} < written
    assert filecmp.cmpfiles(ROOT / "examples", tmp_path / "new", names, shallow=False)[0] == names
    code = "import entaug; print(entaug.__file__, *map(len, map(entaug.example, ('train', 'dev', 'test', 'nested'))))"
    assert run(site, tmp_path, "-c", code).stdout == f"{site / 'entaug' / '__init__.py'} 100 25 25 22\n"
    checked = run(site, tmp_path, "entaug", "experiment", "new/plan.toml", "--check")
    assert checked.returncode == 0, checked.stderr


# --------------------------------------------------------------------------------------------------------- spacy train


# Commands in one process, as each start of spaCy takes seconds.
SPACY = """
import json, sys
from spacy import registry
from spacy.cli import app
from typer.main import get_command

assert "entaug" not in sys.modules
print(*registry.augmenters.get_all())
for program, *arguments in json.loads(sys.argv[1]):
    if program == "spacy":
        get_command(app)(arguments, standalone_mode=False)
    else:
        from entaug.commands.main import main

        assert main(arguments) == 0
"""


def with_spacy(site: Path, folder: Path, *commands: Sequence[str]) -> str:
    """Run commands, and return what they print below the names of all augmenters."""
    finished = run(site, folder, "-c", SPACY, json.dumps(commands))
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def prepared(site: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with what docs/trainers.md says to run first, and what that printed."""
    pytest.importorskip("spacy")
    folder = tmp_path_factory.mktemp("spacy")
    converts = (("entaug", "convert", str(EXAMPLE / f"{name}.conll"), f"{name}.spacy") for name in ("train", "dev"))
    init = ("spacy", "init", "config", "config.cfg", "--lang", "en", "--pipeline", "ner")
    printed = with_spacy(site, folder, *converts, init)
    config = configparser.RawConfigParser()
    config.optionxform = str  # type: ignore[assignment,method-assign]
    config.read(folder / "config.cfg")
    config.remove_option("corpora.train", "augmenter")
    page = (ROOT / "docs" / "trainers.md").read_text("utf-8")
    config.read_string(page.partition("```ini\n")[2].partition("```")[0])
    with (folder / "augmented.cfg").open("w") as file:
        config.write(file)
    return folder, printed


def test_spacy_train_learns_from_new_sentences(site: Path, prepared: tuple[Path, str]) -> None:
    folder, _ = prepared
    train = ("spacy", "train", "augmented.cfg", "--paths.train", "train.spacy", "--paths.dev", "dev.spacy")
    limits = ("--training.max_steps", "80", "--training.eval_frequency", "20")
    outputs = {"model": "2", "streamed": "-1"}
    epochs = (("--output", output, "--training.max_epochs", number) for output, number in outputs.items())
    with_spacy(site, folder, *((*train, *limits, *own) for own in epochs))
    import spacy
    from spacy.training import Corpus

    for output in outputs:
        nlp = spacy.load(folder / output / "model-last")
        recognizer: Any = nlp.get_pipe("ner")
        assert set(recognizer.labels) == {"EVENT", "LOC", "ORG", "PER", "PRODUCT"}
        assert nlp.config["corpora"]["train"]["augmenter"]["@augmenters"] == "entaug.mr.v1"
        examples = list(Corpus(folder / "dev.spacy")(nlp))
        assert nlp.evaluate(examples)["ents_f"] > 0.1


def test_spacy_train_names_a_mistake(site: Path, prepared: tuple[Path, str]) -> None:
    paths = ("--paths.train", "train.spacy", "--paths.dev", "dev.spacy")
    mistaken = ("augmented.cfg", *paths, "--corpora.train.augmenter.p", "3")
    finished = run(site, prepared[0], "-m", "spacy", "train", *mistaken)
    assert finished.returncode == 1
    assert "entaug.mr.v1 -> p\tp must be a number from 0 to 1, not 3" in finished.stdout
    assert "Traceback" not in finished.stdout + finished.stderr


def test_spacy_finds_all_methods_without_an_import_of_entaug(prepared: tuple[Path, str]) -> None:
    _, printed = prepared
    assert {*printed.splitlines()[0].split()} >= {f"entaug.{name}.v1" for name in METHODS._built_in}


# ------------------------------------------------------------------------------------------------ from a CSV to a model


@pytest.mark.models
def test_six_commands_from_a_csv_to_a_pipeline_of_transformers(site: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "start.md").read_text("utf-8").partition("## From a CSV file to `transformers`")[2]
    table, commands, code = re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:3]
    lines = [shlex.split(line, comments=True) for line in commands.splitlines()]
    assert [line[:2] for line in lines[:2]] == [["pip", "install"], ["entaug", "models"]]
    assert len(lines) == 6
    with (tmp_path / "notes.csv").open("w", newline="") as file:  # as the page shows it, with more sentences
        rows = csv.writer(file)
        rows.writerow(table.splitlines()[0].split(","))
        for number, sentence in enumerate(entaug.read(EXAMPLE / "train.conll"), 1):
            rows.writerows([number, *pair] for pair in zip(sentence.tokens, sentence.iob(), strict=True))
    assert (tmp_path / "notes.csv").read_text().splitlines()[0] == table.splitlines()[0]
    for line in lines[2:]:
        steps = ["--steps", "120"] if line[1] == "train" else []  # a few, to be quick
        finished = run(site, tmp_path, *line, *steps, models=True)
        assert finished.returncode == 0, finished.stderr
    finished = run(site, tmp_path, "-c", code, models=True)
    assert finished.returncode == 0, finished.stderr
    assert "LOC Lisbon" in finished.stdout.splitlines()
