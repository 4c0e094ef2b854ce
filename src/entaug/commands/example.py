"""``entaug example``: write the example corpus, lists of names and a plan, to try the commands on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from entaug.commands.command import Command, Summary
from entaug.core.corpus import Corpus
from entaug.errors import UnknownNameError
from entaug.files.atomic import atomic_folder
from entaug.formats import read

_PARTS = {"train": "train.conll", "dev": "dev.conll", "test": "test.conll", "nested": "nested.jsonl"}
_FILES = ("corpus", "lists", "plan.toml")  # that a wheel carries, see pyproject.toml


def _examples() -> Path:
    """The folder of the examples: in the installed package, or in the checkout."""
    packaged = Path(__file__).parents[1] / "examples"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "examples"


def example(part: str = "train") -> Corpus:
    """Return a part of the example corpus: English sentences of invented news, written for entaug.

    Args:
        part: ``"train"`` (100 sentences), ``"dev"`` (25), ``"test"`` (25), or ``"nested"`` (22 others, with nested and
            discontinuous mentions).

    Returns:
        The sentences.

    Raises:
        UnknownNameError: there is no such part.

    Example:
        >>> corpus = example()
        >>> len(corpus), corpus.labels
        (100, ('EVENT', 'LOC', 'ORG', 'PER', 'PRODUCT'))
    """
    if part not in _PARTS:
        raise UnknownNameError("part of the example corpus", part, _PARTS)
    return read(_examples() / "corpus" / _PARTS[part])


@dataclass
class _Written(Summary):
    """Result of the command."""

    output: str
    files: list[str]

    def lines(self) -> Iterator[str]:
        yield from (f"wrote {file}" for file in self.files)
        train = next(file for file in self.files if file.endswith(_PARTS["train"]))
        yield f"next: entaug augment {train} -m mr -o bigger.conll"


def _write(output: str | Path = "examples") -> _Written:
    """Write the example corpus, lists of names and an experiment plan, so that the commands of the documentation run.

    Args:
        output: the folder to write; new or empty.
    """
    folder = Path(output)
    with atomic_folder(folder) as new:
        for name in _FILES:
            source = _examples() / name
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, new / name)
        files = sorted(file.relative_to(new) for file in new.rglob("*") if file.is_file())
    return _Written(str(output), [str(folder / file) for file in files])


COMMAND = Command(_write, {"output": {"metavar": "FOLDER", "default": "examples"}})
