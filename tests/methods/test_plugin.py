"""A method of another package: installed by pip, found by its entry point."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import entaug
from conftest import EXAMPLE, ROOT


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that sees the example plug-in, installed without the network."""
    folder = tmp_path_factory.mktemp("plugin")
    copy = shutil.copytree(ROOT / "examples" / "plugin", folder / "source")  # a build writes beside its source
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "site"), str(copy)]
    subprocess.run(command, check=True, timeout=600)
    source = str(Path(entaug.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "site"), source])}


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_on_the_command_line(environment: dict[str, str], tmp_path: Path) -> None:
    assert "words of mentions in lower case" in run(environment, "-m", "entaug", "list", "methods")
    assert "p = 0.5: the probability" in run(environment, "-m", "entaug", "list", "methods", "lowercase")
    output = tmp_path / "new.jsonl"
    train = str(EXAMPLE / "train.conll")
    run(environment, "-m", "entaug", "augment", train, "-m", "lowercase", "--p", "1", "--only-new", "-o", str(output))
    sources = {s.key: s for s in entaug.read(train)}
    made = entaug.read(output)
    assert len(made) > len(sources) / 2
    for sentence in made:
        source = sources[sentence.fields["entaug"]["sources"][0]]
        assert sentence.iob() == source.iob()
        outside = source.outside_mask()
        assert sentence.tokens == tuple(t if o else t.lower() for t, o in zip(source.tokens, outside, strict=True))


def test_its_own_tests(environment: dict[str, str]) -> None:
    tests = str(ROOT / "examples" / "plugin" / "tests")
    assert "2 passed" in run(environment, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", tests)


def test_in_the_training_of_spacy(environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    entaug.write(entaug.read(EXAMPLE / "train.conll"), tmp_path / "train.spacy")
    code = f"""
import spacy
create = spacy.registry.augmenters.get("entaug.lowercase.v1")
corpus = spacy.training.Corpus({str(tmp_path / "train.spacy")!r}, augmenter=create(train={str(tmp_path)!r}, p=1.0))
_, new, *_ = corpus(spacy.blank("en"))
print(new.reference.ents)
"""
    assert run(environment, "-c", code) == "(ana duarte, helio labs, lisbon)\n"


def test_in_python(environment: dict[str, str]) -> None:
    code = """
import entaug
ada = entaug.Sentence(["Ada", "sings"], [entaug.Mention("PER", [(0, 1)])])
for method in (entaug.create_augmenter("lowercase-mentions", p=1.0), entaug.methods.parse_methods("lowercase:p=1")):
    print(*[" ".join(sentence.tokens) for sentence in method.augment([ada])])
print(len(entaug.augment([ada] * 2, "sis,lowercase")), "lowercase" in entaug.methods.METHODS)
"""
    assert run(environment, "-c", code).splitlines() == ["ada sings", "ada sings", "1 True"]
