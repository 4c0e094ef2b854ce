"""Detection: it looks at extension and beginning of a file, and imports one format in the usual case."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import entaug
from entaug import Mention, Sentence
from entaug.formats.files import _SIGNS, _detect_format, _looks_like, find_format, target

ADA = Sentence(["Ada", "left", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], spaces=(" ", " ", ""))
MODULES = {f"entaug.formats.{sign.place.partition(':')[0]}" for sign in _SIGNS.values()}


@pytest.mark.parametrize("name", _SIGNS)
def test_the_signs_of_a_format_are_those_that_it_declares(name: str) -> None:
    found, sign = find_format(name), _SIGNS[name]
    assert sign.extensions.split() == [*found.extensions]
    assert sign.foreign.split() == [*found.foreign_extensions]
    assert sign.is_folder == bool(getattr(found, "folder", False))


@pytest.mark.parametrize("name", _SIGNS)
@pytest.mark.parametrize("size", [1, 3000])
def test_a_file_of_a_format_has_its_sign(tmp_path: Path, name: str, size: int) -> None:
    found = find_format(name)
    path = tmp_path / f"a{next(iter(found.extensions), '') if not _SIGNS[name].is_folder else ''}"
    to = target(path, name)
    to.write([ADA.with_(id=f"s{i}") for i in range(size)])
    if path.is_dir():
        assert _detect_format(path).name == name
        return
    other = Path(shutil.copy(path, tmp_path / "noname"))
    for named in (path, other):
        if named == path or name not in ("brat", "i2b2"):
            assert _looks_like(named)(_SIGNS[name])
            assert _detect_format(named).name == name


@pytest.mark.parametrize(
    ("name", "module"),
    [("a.conll", "conll.format"), ("a.jsonl", "jsonl"), ("a.spacy", "docbin"), ("a.bio", "conll.format")],
)
def test_only_the_format_of_a_file_is_imported(tmp_path: Path, name: str, module: str) -> None:
    path = tmp_path / name
    entaug.write([ADA.with_(id="s1"), ADA], path)
    code = f"import sys, entaug; entaug.read({str(path)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert MODULES.intersection(done.stdout.split()) == {f"entaug.formats.{module}"}
