"""Records of experiment runs, read from ``runs.jsonl``.

A record is one line of JSON: one tagger trained on one arm with one seed, and its scores. Arms are ``gold`` (the epochs
of the plan on the gold sentences alone), ``gold-steps`` (gold alone, for as many steps as the other arms of the same
amount), ``duplicate`` (gold repeated) and the labels of methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from entaug.errors import InputError
from entaug.scoring.span_f1 import Scores

__all__ = ["RunRecord", "is_run_record", "read_run_records"]

_REMEDY = "delete the line; the experiment repeats the run"


@dataclass(frozen=True)
class RunRecord:
    """Result of one run.

    Args:
        key: identifier of the configuration.
        corpus: name of the corpus.
        size: number of gold sentences in the subset.
        tagger: label of the tagger.
        arm: ``"gold"``, ``"gold-steps"``, ``"duplicate"`` or the label of a method.
        amount: number of new sentences per gold sentence.
        seed: seed of the run.
        steps: number of optimizer steps.
        new: number of new sentences.
        test: scores on the test set, with counts by sentence.
        leaks: number of training sentences that are in ``dev`` and in ``test``.
        search: ``"patience"`` where the amount is chosen on dev, else ``"list"``.
        chosen: whether this amount was chosen.
        environment: versions and device of the computation.
        path: the file of the record.
        line: the line in the file.
    """

    key: str
    corpus: str
    size: int
    tagger: str
    arm: str
    amount: float
    seed: int
    steps: int
    new: int
    test: Scores
    leaks: Mapping[str, int] = field(default_factory=dict)
    search: str = "list"
    chosen: bool = False
    environment: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None
    line: int | None = None


_REQUIRED: dict[str, tuple[type, ...]] = {
    "key": (str,),
    "corpus": (str,),
    "size": (int,),
    "tagger": (str,),
    "arm": (str,),
    "amount": (int, float),
    "seed": (int,),
    "steps": (int,),
    "sentences": (dict,),
    "test": (dict,),
    "test_counts": (dict,),
}
_OPTIONAL: dict[str, tuple[type, ...]] = {
    "leaks": (dict,),
    "search": (str,),
    "chosen": (bool,),
    "environment": (dict,),
}


def read_run_records(paths: Iterable[str | Path]) -> list[RunRecord]:
    """Read the records of one or more experiments.

    Args:
        paths: folders with a ``runs.jsonl``, or such files.

    Returns:
        The records; of several with the same key and labels the last. An incomplete last line, left by a killed run,
        is ignored.

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
        file = Path(path, "runs.jsonl") if Path(path).is_dir() else Path(path)
        try:
            lines = file.read_bytes().split(b"\n")
        except OSError as error:
            remedy = "name the output folder of an experiment"
            raise InputError(f"cannot be read ({error.strerror})", path=str(file), remedy=remedy) from None
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                if number == len(lines):  # incomplete: it does not end in a line feed
                    continue
                raise InputError(f"no JSON ({error})", path=str(file), line=number, remedy=_REMEDY) from None
            record = _record(value, str(file), number)
            # Arms, methods and corpora may share a run, each under its own labels.
            labels = (record.key, record.corpus, record.size, record.tagger, record.arm, record.amount, record.seed)
            records.pop(labels, None)
            records[labels] = record
        if not any(record.path == str(file) for record in records.values()):
            raise InputError("holds no record of a run", path=str(file), remedy="let the experiment make some first")
    return list(records.values())


def is_run_record(value: object) -> bool:
    """Whether a JSON value is meant as the record of a run, valid or not.

    Args:
        value: a parsed line of JSON.
    """
    return isinstance(value, dict) and {"arm", "tagger", "key"} <= value.keys()


def _record(value: Any, path: str, line: int) -> RunRecord:
    def fault(what: str) -> InputError:
        return InputError(what, path=path, line=line, remedy=_REMEDY)

    if not isinstance(value, dict):
        raise fault("a record must be a JSON object")
    for name, types in (_REQUIRED | _OPTIONAL).items():
        if name not in value and name in _OPTIONAL:
            continue
        if not isinstance(value.get(name), types) or (isinstance(value.get(name), bool) and bool not in types):
            expected = " or ".join(kind.__name__ for kind in types)
            raise fault(f"{name} is {'missing' if name not in value else f'no {expected}'}")
    if type(value["sentences"].get("new")) is not int:
        raise fault("sentences has no number for new")
    if any(type(count) is not int for count in value.get("leaks", {}).values()):
        raise fault("leaks must hold numbers")
    try:
        test = Scores.from_dict(value["test"], value["test_counts"])
    except InputError as error:
        raise fault(f"test: {error.message}") from None
    names = ("key", "corpus", "size", "tagger", "arm", "seed", "steps", *(_OPTIONAL.keys() & value.keys()))
    plain = {name: value[name] for name in names}
    return RunRecord(
        **plain, amount=float(value["amount"]), new=value["sentences"]["new"], test=test, path=path, line=line
    )
