"""Records of runs: the schema of a line of ``runs.jsonl``, reading, and the records of an experiment on disk.

A record is one tagger trained on one arm with one seed, and its scores. Arms are ``gold`` (the steps of the gold
sentences alone), ``gold-steps`` (gold alone, for as many steps as the other arms of the same ratio), ``duplicate``
(gold repeated), the labels of teachers, and the labels of methods.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, NamedTuple

import orjson
from annotated_types import Interval

from entaug.config.params import Check, construct, parameters, validate
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import atomic_file, output_error
from entaug.metrics.span_f1 import Scores

BASELINES = ("gold", "gold-steps", "duplicate")
"""The arms without a method."""
RECORDS_FILE = "runs.jsonl"
DAMAGED_FILE = "damaged-runs.jsonl"
_OTHERS_FILE = "other-runs.jsonl"
_TIMES_FILE = "times.jsonl"
_REMEDY = "delete the line; the experiment repeats the run"
_BEGINNING = 64  # bytes of a line by which it is recognised: its key is among them
_RATIO = "amount"
"""The key of the ratio in files: it is part of the configurations by which runs are known."""

_OTHER_DEVICE = "; the same run differs by some points of F1 between devices: compare runs of one device only"

LeakCounts = Annotated[
    Mapping[str, int], Check(lambda counts: all(type(n) is int for n in counts.values()), "integers by name")
]
Fold = Annotated[
    Sequence[int],
    Check(lambda fold: len(fold) == 2 and all(type(n) is int for n in fold), "a fold and the number of folds"),
]


class Place(NamedTuple):
    """The place of a run in a plan; no two runs have the same."""

    corpus: str
    size: int
    tagger: str
    arm: str
    ratio: float
    seed: int
    subset_seed: int | None
    fold: tuple[int, int] | None

    @classmethod
    def of(cls, labels: Mapping[str, Any]) -> Place:
        """The place by the labels of a run, or by its record as JSON."""
        fold = labels.get("fold")
        values: dict[str, Any] = {"ratio": labels.get(_RATIO), **labels, "fold": fold and tuple(fold)}
        return cls._make(map(values.get, cls._fields))


@dataclass(frozen=True)
class RunRecord:
    """Result of one run."""

    key: str
    corpus: str
    size: int
    tagger: str
    arm: str
    ratio: Annotated[float, Interval(ge=0, le=100)]
    seed: int
    steps: int
    new: int
    test: Scores
    tests: Mapping[str, Scores] = field(default_factory=dict)
    subset_seed: int | None = None
    fold: Fold | None = None
    leaks: LeakCounts = field(default_factory=dict)
    search: str = "list"
    group: str = ""
    chosen: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)
    dev: Scores | None = None
    new_in_test: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    pooled: tuple[int, ...] = field(default=(), compare=False)  # gold sentences of the folds
    path: str | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        validate(self)

    @property
    def labels(self) -> tuple[object, ...]:
        """The place of the run in a plan."""
        return self.corpus, self.size, self.tagger, self.arm, self.ratio, self.seed, self.subset_seed

    @property
    def asked(self) -> int:
        """The number of new sentences that the ratios stand for; of a cross-validation on average over the folds."""
        arm = self.config.get("arm")
        combined = arm.get("combine") if isinstance(arm, Mapping) else None
        ratios = [part["amount"] for part in combined] if combined else [self.ratio]
        # Whole copies of the gold sentences, and a part of the next one.
        return round(
            fmean(sum(int(r) * n + round((r - int(r)) * n) for r in ratios) for n in self.pooled or (self.size,))
        )

    @property
    def is_teacher(self) -> bool:
        """Whether the run tested a teacher."""
        arm = self.config.get("arm")
        return isinstance(arm, Mapping) and "ensemble" in arm

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        tests = {
            name: {**scores.to_dict(), "test_counts": scores.sentence_counts()} for name, scores in self.tests.items()
        }
        optional = {
            "subset_seed": self.subset_seed,
            "fold": self.fold,
            "tests": tests or None,
            "group": self.group or None,
            "chosen": self.chosen or None,
        }
        return {
            **{name: getattr(self, name) for name in ("key", "corpus", "size", "tagger", "arm")},
            _RATIO: int(self.ratio) if self.ratio == int(self.ratio) else self.ratio,
            "seed": self.seed,
            "leaks": dict(self.leaks),
            "steps": self.steps,
            "sentences": {"gold": self.size, "new": self.new},
            "test_sentences": len(self.test.sentences),
            "dev": self.dev.to_dict() if self.dev else None,
            "test": self.test.to_dict(),
            "test_counts": self.test.sentence_counts(),
            "search": self.search,
            "new_in_test": self.new_in_test,
            "config": dict(self.config),
            "environment": dict(self.environment),
            **{name: value for name, value in optional.items() if value is not None},
        }

    @classmethod
    def from_dict(cls, value: Any, path: str | None = None, line: int | None = None) -> RunRecord:
        """Rebuild a record from the output of `to_dict`."""
        try:
            values = {p.name: value[p.name] for p in parameters(RunRecord) if p.name in value}
            values |= {"ratio": value[_RATIO], "new": value["sentences"]["new"], "path": path, "line": line}
            tests = {"": {**value["test"], "test_counts": value["test_counts"]}, **value.get("tests", {})}
            scores = {name: Scores.from_dict(one, one["test_counts"]) for name, one in tests.items()}
            values |= {"test": scores.pop(""), "tests": scores}
            if values.get("dev") is not None:
                values["dev"] = Scores.from_dict(value["dev"])
            return construct(cls, "a record", values)
        except (LookupError, TypeError):
            message = "a record must be a JSON object with sentences (with a number for new), test and test_counts"
        except (ParameterError, InputError) as error:
            message = error.message
        raise InputError(message, path=path, line=line, remedy=_REMEDY) from None


def several_values(environments: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The values of device, precision and libraries in which the environments of runs differ."""
    known: dict[str, set[str]] = {name: set() for name in ("device", "precision", "torch", "transformers")}
    for environment in environments:
        for name, values in known.items():
            if name in environment:
                value = environment[name]  # several of folds that were joined
                values.update(map(str, value if isinstance(value, list) else [value]))
    return {name: sorted(values) for name, values in known.items() if len(values) > 1}


def differing_environments(environments: Iterable[Mapping[str, Any]]) -> list[str]:
    """A note on each of device, precision and libraries in which the environments of runs differ."""
    return [
        f"the records are of {name} {' and '.join(values)}{_OTHER_DEVICE if name == 'device' else ''}"
        for name, values in several_values(environments).items()
    ]


def is_run_record(value: object) -> bool:
    """Whether a JSON value is meant as the record of a run, valid or not."""
    return isinstance(value, dict) and {"arm", "tagger", "key"} <= value.keys()


def read_run_records(paths: Iterable[str | Path]) -> list[RunRecord]:
    """Read the records of one or more experiments.

    Args:
        paths: folders with a ``runs.jsonl``, or such files.

    Returns:
        The records; of several with the same key and labels the last. A run with several test sets gives one record for
        each, with the name of the test set added to that of the corpus; the runs of all folds of a cross-validation
        give one record together. An incomplete last line, left by a killed run, is ignored.

    Raises:
        InputError: a file is missing or has no record, or a record is faulty.

    Example:
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "runs.jsonl")
        >>> _ = file.write_text("")
        >>> read_run_records([file])
        Traceback (most recent call last):
        ...
        entaug.errors.InputError: ...runs.jsonl: holds no record of a run; let the experiment make some first
    """
    records: dict[Any, RunRecord] = {}
    for path in paths:
        for record in _pooled_folds(one for whole, _ in lines_of(path) for one in _by_test(whole)):
            # Arms, methods and corpora may share a run, each under its own labels.
            records.pop((record.key, *record.labels), None)
            records[record.key, *record.labels] = record
    return list(records.values())


def places_of(path: str | Path) -> set[Place]:
    """The places of the runs of a file, or of that of a folder, each fold for itself."""
    return set(map(Place.of, _objects(_content(_file_of(path)))))


def lines_of(path: str | Path, *, allow_incomplete: bool = True) -> list[tuple[RunRecord, dict[str, Any]]]:
    """The records of a file, or of that of a folder, each with the values of its line."""
    file, records = _file_of(path), []
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        remedy = "name the output folder of an experiment that has finished a run"
        if Path(path).is_dir() and isinstance(error, FileNotFoundError):
            raise InputError("holds no record of a run", path=str(path), remedy=remedy) from None
        raise InputError(f"cannot be read ({error.strerror})", path=str(file), remedy=remedy) from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if allow_incomplete and number == len(lines):  # it does not end in a line feed
                continue
            remedy = _REMEDY if allow_incomplete else "take the whole file, or delete the line"
            raise InputError(f"no JSON ({error})", path=str(file), line=number, remedy=remedy) from None
        records.append((RunRecord.from_dict(value, str(file), number), value))
    if not records:
        raise InputError("holds no record of a run", path=str(file), remedy="let the experiment make some first")
    return records


def _file_of(path: str | Path) -> Path:
    return Path(path, RECORDS_FILE) if Path(path).is_dir() else Path(path)


def _by_test(record: RunRecord) -> Iterator[RunRecord]:
    """A record for each test set."""
    if not record.tests:
        yield record
    for name, scores in record.tests.items():
        leaks = {"test": record.leaks.get(f"test {name}", 0)}
        if "dev" in record.leaks:
            leaks["dev"] = record.leaks["dev"]
        yield replace(record, corpus=f"{record.corpus} on {name}", test=scores, tests={}, leaks=leaks)


def _pooled_folds(records: Iterable[RunRecord]) -> Iterator[RunRecord]:
    """The records, those of all folds as one; what has not finished all of its folds is missing."""
    folds: dict[Any, dict[int, RunRecord]] = defaultdict(dict)
    for record in records:
        if record.fold is None:
            yield record
        else:
            number, count = record.fold
            folds[record.labels, count][number] = record
    for (*_, count), by_number in folds.items():
        some = [by_number[number] for number in sorted(by_number)]
        if len(some) == count:
            dev = [record.dev for record in some if record.dev]
            yield replace(
                some[0],
                fold=None,
                pooled=tuple(record.size - len(record.test.sentences) for record in some),
                test=reduce(Scores.__add__, (record.test for record in some)),
                dev=reduce(Scores.__add__, dev) if dev else None,
                new=round(fmean(record.new for record in some)),
                new_in_test=sum(record.new_in_test for record in some),
                leaks=reduce(operator.or_, (Counter(record.leaks) for record in some)),  # the maximum of each
                environment={**some[0].environment, **several_values(record.environment for record in some)},
            )


class RecordStore:
    """The records of a study on disk: appended one by one, and sorted."""

    # Damaged lines are put aside by `sort`, and their runs repeated. Several processes may share the records, if they
    # hold the lock of `RECORDS_FILE` while they append or sort.

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: dict[str, RunRecord] = {}
        self.damaged: set[bytes] = set()  # lines that are no records
        self._last = (0, b"")  # the last line of the file of records that was read: its place and its beginning
        self._add(_content(folder / _OTHERS_FILE))
        self.refresh()
        times = ((v.get("key"), v.get("seconds")) for v in _objects(_content(folder / _TIMES_FILE)))
        self.seconds = {key: float(s) for key, s in times if isinstance(key, str) and isinstance(s, int | float)}

    def refresh(self) -> None:
        """Read the records that other processes have written meanwhile."""
        path = self.folder / RECORDS_FILE
        if not path.exists():
            return
        start, beginning = self._last
        with path.open("rb") as stream:
            stream.seek(start)
            lines = stream.read()
            if not lines.startswith(beginning):  # sorted meanwhile
                start = stream.seek(0)
                lines = stream.read()
        self._add(lines)
        end = lines.rfind(b"\n")
        if end >= 0:
            last = lines.rfind(b"\n", 0, end) + 1
            self._last = start + last, lines[last : min(end, last + _BEGINNING)]

    def _add(self, lines: bytes) -> None:
        for line in lines.splitlines(keepends=True):
            try:
                record = RunRecord.from_dict(orjson.loads(line))
                self.records[record.key] = record
            except (ValueError, InputError):
                if line.strip() and line.endswith((b"\n", b"\r")):  # not half a line that is being written
                    self.damaged.add(line)

    def append(self, record: RunRecord, seconds: float) -> None:
        """Write a record; it is on disk when this returns."""
        self.records[record.key] = record
        self.seconds[record.key] = round(seconds, 2)
        time = {"key": record.key, "seconds": self.seconds[record.key]}
        for name, value in ((_TIMES_FILE, time), (RECORDS_FILE, record.to_dict())):
            _append_line(self.folder / name, _to_line(value))

    def sort(self, labels: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Write the records of an experiment in its order and under its labels; move all others to other files."""
        known = {**self.records}
        self._add(_content(self.folder / _OTHERS_FILE))  # a process with another plan may have moved some there
        self.records |= known
        ordered = [replace(self.records[key], **fields) for key, fields in labels if key in self.records]
        keys = {key for key, _ in labels}
        others = [record for key, record in sorted(self.records.items()) if key not in keys]
        if damaged := self.damaged.difference(_content(self.folder / DAMAGED_FILE).splitlines(keepends=True)):
            _append_line(self.folder / DAMAGED_FILE, b"".join(sorted(damaged)))
        files = [(RECORDS_FILE, ordered)]
        if others or (self.folder / _OTHERS_FILE).exists():  # at no moment is a record in neither file
            files = [(_OTHERS_FILE, others + ordered), *files, (_OTHERS_FILE, others)]
        for name, records in files:
            if records or (self.folder / name).exists():
                with atomic_file(self.folder / name) as stream:
                    stream.writelines(_to_line(record.to_dict()) for record in records)


def _append_line(path: Path, line: bytes) -> None:
    try:
        with path.open("ab+") as stream:
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                if stream.read() != b"\n":  # a killed run left half a line
                    stream.write(b"\n")
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise output_error(path, error) from None


def _to_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        with contextlib.suppress(ValueError):
            value = orjson.loads(line)
            if isinstance(value, dict):
                yield value
