"""The folder in which a choice of a recipe keeps what is finished, so that an interrupted one is resumed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from entaug.core.data import Mention, Sentence
from entaug.errors import OutputError
from entaug.files.atomic import atomic_file, output_error
from entaug.files.checkpoints import partial_paths
from entaug.formats import read, write

__all__ = ["TrainingKey", "Workspace"]

_RUN_FILE, _TRAININGS_FILE = "run.json", "trainings.jsonl"


@dataclass(frozen=True, order=True)
class TrainingKey:
    """Which training of a choice."""

    repeat: int
    fold: int
    recipe: str
    member: int = 0


class Workspace:
    """Finished work of a choice, in the folder ``OUT.partial``."""

    def __init__(self, output: Path, key: str, *, force: bool) -> None:
        self.folder = self.folder_for(output)
        self.predictions: dict[TrainingKey, list[tuple[Mention, ...]]] = {}
        try:
            self._open(key, force=force)
        except OSError as error:
            raise output_error(self.folder, error) from None
        self._read_trainings()

    @staticmethod
    def folder_for(output: Path) -> Path:
        """The folder of the choice with an output."""
        return partial_paths(output)[0]

    def _open(self, key: str, *, force: bool) -> None:
        if self.folder.exists() and (found := self.note("run")) != {"key": key}:
            is_ours = found is not None and "key" in found
            is_empty = self.folder.is_dir() and not any(self.folder.iterdir())
            if not force and not is_empty:
                what = "was left by an interrupted run with other input or options"
                raise OutputError(
                    what if is_ours else "exists and does not belong to a run",
                    path=str(self.folder),
                    remedy="repeat that run, or pass --force to drop it" if is_ours else "move it away",
                )
            if not is_ours and not is_empty:
                raise OutputError("exists and does not belong to a run", path=str(self.folder), remedy="move it away")
            shutil.rmtree(self.folder)
        self.folder.mkdir(exist_ok=True)
        self.write_note("run", {"key": key})

    def _read_trainings(self) -> None:
        path = self.folder / _TRAININGS_FILE
        content = path.read_bytes() if path.exists() else b""
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:  # a killed run left half a line
            os.truncate(path, len(complete))
        for line in complete.splitlines():
            value = orjson.loads(line)
            key = TrainingKey(value["repeat"], value["fold"], value["recipe"], value["member"])
            self.predictions[key] = [_to_mentions(mentions) for mentions in value["mentions"]]

    def add(self, key: TrainingKey, predicted: Iterable[Sentence]) -> None:
        """Keep the predictions of a training; they are on disk when this returns."""
        self.predictions[key] = [sentence.mentions for sentence in predicted]
        value = {
            "repeat": key.repeat,
            "fold": key.fold,
            "recipe": key.recipe,
            "member": key.member,
            "mentions": [
                [[mention.label, [list(span) for span in mention.spans]] for mention in mentions]
                for mentions in self.predictions[key]
            ],
        }
        with (self.folder / _TRAININGS_FILE).open("ab") as stream:
            stream.write(orjson.dumps(value) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def note(self, name: str) -> dict[str, Any] | None:
        """Read a note."""
        try:
            value = orjson.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None
        return value if isinstance(value, dict) else None

    def write_note(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a note."""
        with atomic_file(self.folder / f"{name}.json") as out:
            out.write(orjson.dumps(dict(value)))

    def sentences(self, name: str, make: Callable[[], Sequence[Sentence]]) -> list[Sentence]:
        """Return sentences that are made once and then read."""
        # They are always read back from the file, so that a resumed run works with the same values.
        path = self.folder / f"{name}.jsonl"
        if not path.exists():
            write(make(), path)
        return list(read(path)) if path.stat().st_size else []

    def drop(self, *names: str) -> None:
        """Delete files of sentences that are no longer needed."""
        for name in names:
            (self.folder / f"{name}.jsonl").unlink(missing_ok=True)


def _to_mentions(value: Any) -> tuple[Mention, ...]:
    return tuple(Mention(label, [tuple(span) for span in spans]) for label, spans in value)
