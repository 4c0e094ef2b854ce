"""The records of an experiment on disk, whatever moment it is killed at."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from entaug.errors import EntaugError
from entaug.experiment.runs import Run
from entaug.files.atomic import atomic_file
from entaug.scoring.span_f1 import Scores

__all__ = ["RECORDS", "Records"]

RECORDS = "runs.jsonl"
OTHERS = "other-runs.jsonl"
TIMES = "times.jsonl"


class Records:
    """The records of an experiment on disk: appended one by one, put in order at the end.

    Args:
        folder: of the experiment.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, dict[str, Any]] = {}
        for name in (OTHERS, RECORDS):
            for record in _lines(folder / name):
                self.found[record["key"]] = record
        self._torn = _torn(folder / RECORDS)

    def append(self, record: dict[str, Any], seconds: float) -> None:
        """Keep a record, for good once this returns."""
        self.found[record["key"]] = record
        for name, line in ((TIMES, {"key": record["key"], "seconds": round(seconds, 2)}), (RECORDS, record)):
            with (self.folder / name).open("ab") as stream:
                if name == RECORDS and self._torn:  # a killed run left half a line
                    stream.write(b"\n")
                    self._torn = False
                stream.write(_line(line))
                stream.flush()
                os.fsync(stream.fileno())

    def settle(self, runs: Sequence[Run], chosen: set[str]) -> None:
        """Put the records of these runs in their order under their labels, and those of other plans aside."""
        keys = {run.key for run in runs}
        ordered = []
        for run in runs:
            record = self.found.get(run.key)
            if record is not None:
                renamed = {**record, **run.labels()}
                renamed.pop("chosen", None)
                if run.key in chosen:
                    renamed["chosen"] = True
                ordered.append(renamed)
        others = [record for key, record in sorted(self.found.items()) if key not in keys]
        for name, records in ((OTHERS, others), (RECORDS, ordered)):
            if records or (self.folder / name).exists():
                with atomic_file(self.folder / name) as stream:
                    stream.writelines(map(_line, records))
        self._torn = False


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Whole records of a file; half a line, which a kill can leave, and what is no record are passed over."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and isinstance(record.get("key"), str) and _scored(record):
                yield record


def _scored(record: dict[str, Any]) -> bool:
    """Whether a record has its scores; one that has lost them counts for nothing, and its run is made again."""
    try:
        Scores.from_dict(record["test"])
        return record["dev"] is None or bool(Scores.from_dict(record["dev"]))
    except (EntaugError, KeyError):
        return False


def _torn(path: Path) -> bool:
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"
