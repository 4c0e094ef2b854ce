"""Records of others: checked against a plan and the corpora of this machine, and added to the records of a study."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.errors import EntaugError, InputError, UnknownNameError
from entaug.files.locks import lock
from entaug.formats import read
from entaug.metrics.span_f1 import ERROR_KINDS, PARTS, MatchCounts, Scores, mention_forms, score
from entaug.study.data import prepare_splits, short_hash
from entaug.study.engine import sort_records
from entaug.study.plan import Plan
from entaug.study.planned import RunCount
from entaug.study.records import RECORDS_FILE, Place, RecordStore, RunRecord, differing_environments, lines_of
from entaug.study.runs import RunSpec
from entaug.study.schedule import Schedule

_TOLERANCE = 0.02
"""The difference in F1 of one run on two machines above which it is reported: more than other processors explain."""
_SAME_CORPUS = "take the release of the corpus, and the subset_ids, that the plan names"
_REMEDIES = {
    **dict.fromkeys(("train", "dev", "test", "tests"), _SAME_CORPUS),
    "computed": "run the plan without `device` and `precision`: the environment of a record names them",
    "entaug": "run the plan with the version of this installation",
}
ENVIRONMENT = ("python", "torch", "transformers", "device", "precision")
"""The keys of `current_environment`."""
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu) \(.+\)")
_DAMAGED = "hand in the line as the experiment wrote it"


@dataclass(frozen=True)
class MergedRecords:
    """Counts of merged records, and notes."""

    added: int
    known: int
    plan: RunCount
    notes: tuple[str, ...]


def merge_records(plan: Plan, paths: Iterable[str | Path], *, check_only: bool = False) -> MergedRecords:
    """Add records of other machines to those of a plan; of one that does not fit, none is added."""
    lines = [line for path in paths for line in lines_of(path, allow_incomplete=False)]
    others = [record for record, _ in lines]
    schedule = Schedule(plan, prepare_splits(plan))
    store = RecordStore(plan.output)
    own = set(store.records)
    for record in others:
        store.records.setdefault(record.key, record)  # the first is kept
    schedule.advance(store.records)  # what dev chose is among them
    _Check(schedule).all(lines)
    notes = [note for record in others if (note := _deviation(store.records[record.key], record))]
    notes += differing_environments(record.environment for record in store.records.values())
    added = store.records.keys() - own
    if check_only:
        count = schedule.count(store.records)
    else:
        plan.output.mkdir(parents=True, exist_ok=True)
        with lock(plan.output / RECORDS_FILE):
            count = sort_records(schedule, store)  # with what others finished meanwhile
    known = len({record.key for record in others}) - len(added)
    return MergedRecords(len(added), known, count, tuple(dict.fromkeys(notes)))


def _name(item: RunSpec | RunRecord) -> str:
    corpus, size, tagger, arm, ratio, seed, *_ = _place(item)
    return f"{corpus}, {size}, {tagger}, {arm} {ratio:g}N, seed {seed}"


def _deviation(known: RunRecord, other: RunRecord) -> str:
    """A note on a run whose result on another machine is farther from ours than the machines explain."""
    ours, theirs = known.test.micro.f1, other.test.micro.f1
    if abs(ours - theirs) <= _TOLERANCE:
        return ""
    there = f"{other.path}:{other.line}"
    return f"{_name(known)}: F1 {100 * theirs:.1f} in {there}, {100 * ours:.1f} before, which is kept"


class _Check:
    """The check of records against the runs of a plan."""

    def __init__(self, schedule: Schedule) -> None:
        self.runs: dict[str, list[RunSpec]] = {}  # gold trained for more steps is one run under several labels
        for run in schedule.runs:
            self.runs.setdefault(run.key, []).append(run)
        self._gold: dict[Path, Scores] = {}  # of gold mentions with themselves
        self._forms: dict[Path, Counter[tuple[str, str]]] = {}  # which mentions of a test set are seen

    def all(self, lines: Iterable[tuple[RunRecord, dict[str, Any]]]) -> None:
        """Raise the error of the first record that is none of the plan, or not as an experiment writes it."""
        for record, value in lines:
            try:
                self.check(record)
                _check_line(record, value)
            except EntaugError as error:
                error.path, error.line = record.path, record.line
                raise

    def check(self, record: RunRecord) -> None:
        if short_hash(record.config) != record.key:
            raise InputError(f"the key {record.key} is not that of its configuration", remedy=_DAMAGED)
        runs = self.runs.get(record.key) or self.others(record)
        places = [_place(run) for run in runs]
        if _place(record) not in places:
            message = f"its configuration is that of {_name(runs[0])}, but it says it is {_name(record)}"
            raise InputError(message, remedy=_DAMAGED)
        if fault := next(self.faults(record, runs[0]), None):
            raise InputError(fault, remedy=_DAMAGED)

    def others(self, record: RunRecord) -> Sequence[RunSpec]:
        """Raise the error of a record that is no run of the plan: in which name, or in which setting, it differs."""
        left = [run for runs in self.runs.values() for run in runs]
        place = _place(record)
        for i, (name, value) in enumerate(zip(Place._fields, place, strict=True)):
            if not (same := [run for run in left if _place(run)[i] == value]):
                known = dict.fromkeys(str(_place(run)[i]) for run in left)
                where = f" of {', '.join(map(str, place[:i]))}" if i else ""
                raise UnknownNameError(f"{name}{where}:", str(value), known)
            left = same
        ours = left[0].config()
        names = [name for name in {**ours, **record.config} if not _equal(ours.get(name), record.config.get(name))]
        told = "; ".join(f"{name} {_differing(record.config.get(name), ours.get(name))}" for name in names)
        message = f"{_name(left[0])} is another run than in the plan: {told}"
        raise InputError(message, remedy=_REMEDIES.get(names[-1] if names else "", "run the same plan"))

    def faults(self, record: RunRecord, run: RunSpec) -> Iterator[str]:
        """The numbers of a record that no run of this configuration could have."""
        if record.steps != run.steps:
            yield f"steps is {record.steps}, and the run has {run.steps}"
        most = _most_sentences(run)
        if not 0 <= record.new <= most:
            yield f"new is {record.new}, and the ratio asks for {most}"
        if not 0 <= record.new_in_test <= record.new:
            yield f"new_in_test is {record.new_in_test}, of {record.new} new sentences"
        named = dict(record.tests) if run.split.tests else {"": record.test}
        if named.keys() != run.split.test_files.keys():
            yield f"its tests are {', '.join(named)}, and those of the run {', '.join(run.split.test_files)}"
            return
        for name, path in run.split.test_files.items():
            yield from self.faults_of_scores(f"test {name}".strip(), named[name], path, run.split.train)
        if (record.dev is None) != (run.split.dev is None):
            yield "dev is missing" if record.dev is None else "dev has scores, and the run has no dev set"
        elif record.dev and run.split.dev:
            yield from self.faults_of_scores("dev", record.dev, run.split.dev, run.split.train, has_sentences=False)

    def faults_of_scores(
        self, name: str, scores: Scores, path: Path, train: Path, *, has_sentences: bool = True
    ) -> Iterator[str]:
        """The counts that no prediction of the sentences of a file could have."""
        if path not in self._gold:
            sentences = list(read(path))
            self._gold[path], self._forms[path] = score(sentences, sentences), mention_forms(sentences)
        gold = self._gold[path]
        parts = [part for part in PARTS if part != "by_novelty" or scores.by_novelty]  # the first records have none
        counts = [*scores.sentences, *(one for part in parts for one in getattr(scores, part).values())]
        if any(count.correct > min(count.predicted, count.gold) for count in counts):
            yield f"{name} has impossible counts: correct must be from 0 to predicted and gold"
            return
        if any(sum(getattr(scores, part).values(), MatchCounts()) != scores.micro for part in parts):
            yield f"{name} has parts whose counts do not add up to those of the types"
        for part in parts:
            here = self.novelty(path, train) if part == "by_novelty" else _gold_of(gold, part)
            if _gold_of(scores, part) != here:
                yield f"{name} has other gold mentions in {part} than the corpus here"
        if has_sentences and _gold_by_sentence(scores) != _gold_by_sentence(gold):
            yield f"{name} has other sentences than the corpus here"
        if scores.errors and not _errors_add_up(scores):
            yield f"{name} has errors that do not add up to the mentions that are wrong"

    def novelty(self, path: Path, train: Path) -> Mapping[str, int]:
        """The numbers of gold mentions of a file that were seen in the training sentences, and not."""
        if train not in self._forms:
            self._forms[train] = mention_forms(read(train))
        numbers: Counter[str] = Counter()
        for form, number in self._forms[path].items():
            numbers["seen" if form in self._forms[train] else "unseen"] += number
        return numbers


def _check_line(record: RunRecord, value: dict[str, Any]) -> None:
    """Raise an error if an experiment would not write this line: a key, a derived number or the environment differs."""
    for scores in (value["test"], value.get("dev"), *value.get("tests", {}).values()):
        if scores:  # these were not in the first records
            scores.update({"by_novelty": {}, "errors": {}, **scores})
    written, environment = record.to_dict(), record.environment
    if value != written:
        fault = f"the line is not as an experiment writes it: {_differing(value, written)}"
        raise InputError(fault, remedy=_DAMAGED)
    if environment.keys() != set(ENVIRONMENT) or not all(isinstance(one, str) and one for one in environment.values()):
        raise InputError(f"environment must have texts for {', '.join(ENVIRONMENT)} and no others", remedy=_DAMAGED)
    if not _DEVICE.fullmatch(environment["device"]):
        raise InputError(f"device is {environment['device']!r}, not such as 'cpu (x86_64)'", remedy=_DAMAGED)


def _gold_of(scores: Scores, part: str) -> dict[str, int]:
    """The numbers of gold mentions of a part of the scores; no key without one."""
    return {key: counts.gold for key, counts in getattr(scores, part).items() if counts.gold}


def _errors_add_up(scores: Scores) -> bool:
    """Whether each gold and each predicted mention that is not correct has one error."""
    errors, micro = scores.errors, scores.micro
    paired = errors.get("type", 0) + errors.get("boundary", 0) + errors.get("type and boundary", 0)
    found = (paired + errors.get("missing", 0), paired + errors.get("spurious", 0))
    return errors.keys() == {*ERROR_KINDS} and found == (micro.gold - micro.correct, micro.predicted - micro.correct)


def _gold_by_sentence(scores: Scores) -> list[tuple[int, int]]:
    """The number of gold mentions of each sentence, and its length."""
    return [*zip((counts.gold for counts in scores.sentences), scores.lengths, strict=False)]


def _most_sentences(run: RunSpec) -> int:
    if run.own_teacher or run.arm in ("gold", "gold-steps"):
        return 0
    ratios = map(run.ratio_of, run.parts) if run.method and run.method.combine else [run.ratio]
    return sum(math.ceil(ratio * run.split.num_gold) for ratio in ratios)


def _place(item: RunSpec | RunRecord) -> Place:
    return Place.of(item.labels() if isinstance(item, RunSpec) else vars(item))


def _equal(ours: Any, theirs: Any) -> bool:
    return short_hash(ours) == short_hash(theirs)


def _differing(theirs: Any, ours: Any) -> str:
    """Two values, of tables the first entry that differs."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for name in {**ours, **theirs}:
            if (name in theirs) != (name in ours) and theirs.get(name) is ours.get(name):
                return f"{name}, which is none"  # null where nothing is written
            if not _equal(theirs.get(name), ours.get(name)):
                return f"{name} {_differing(theirs.get(name), ours.get(name))}"
    return f"{str(theirs)[:60]} instead of {str(ours)[:60]}"
