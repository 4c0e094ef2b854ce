"""Comparison of the arms of experiments, within each combination of corpus, size and tagger.

The comparison with ``gold-steps`` is what counts: it trains on gold alone for as many steps, so that no method wins by
training longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from entaug.errors import InputError
from entaug.metrics.significance import Difference, paired_bootstrap
from entaug.study.records import BASELINES, RunRecord, several_values

GOLD, GOLD_STEPS = BASELINES[:2]

_ALIKE = {"train": "subset", "dev": "dev set", "test": "test set", "tagger": "tagger", "threads": "number of threads"}
"""What the configurations of runs that are compared must agree in, and what it is called."""
_RERUN = {"entaug", "computed", "tests"}
"""What may differ where a run replaces an earlier one."""

_Seed = tuple[int | None, int]  # of the draw of the gold sentences, and of the training


def _seed_of(record: RunRecord) -> _Seed:
    return record.subset_seed, record.seed


class Setting(NamedTuple):
    """Corpus, number of gold sentences and tagger: arms are compared within a setting."""

    corpus: str
    size: int
    tagger: str

    def __str__(self) -> str:
        return f"{self.corpus}, {self.size:,}, {self.tagger}"


class Arm(NamedTuple):
    """A baseline or a method, and the number of new sentences per gold sentence."""

    name: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.name} {self.ratio:g}N" if self.ratio else self.name

    @property
    def sort_key(self) -> tuple[int, str, float]:
        """Baselines first, then methods by name and ratio."""
        return BASELINES.index(self.name) if self.name in BASELINES else len(BASELINES), self.name, self.ratio


@dataclass(frozen=True)
class ArmResult:
    """Result of an arm within a setting."""

    arm: Arm
    records: tuple[RunRecord, ...]
    gain_over_gold: float | None
    difference: Difference | None
    baseline: tuple[RunRecord, ...]  # gold alone at equal steps, of the seeds that the difference is over
    notes: tuple[str, ...]
    missing: tuple[_Seed, ...] = ()  # of those that the plan has, or that others have

    @property
    def planned(self) -> int:
        """The number of seeds, those that are missing among them."""
        return len(self.records) + len(self.missing)

    @property
    def lacking(self) -> str:
        """Which seeds are missing, in words."""
        what = f"incomplete: {len(self.records)} of {self.planned} seeds, without {seed_names(self.missing)}"
        return what if self.missing else ""

    @property
    def f1(self) -> float:
        """Mean micro-F1 of the runs."""
        return mean_f1(self.records)

    @property
    def is_searched(self) -> bool:
        """Whether the ratio of this method, or its parameters, are chosen on dev."""
        return any(record.search != "list" for record in self.records)

    @property
    def method(self) -> str:
        """The name of the method: that of the grid if the arm is one of its cells."""
        return next((record.group for record in self.records if record.group), self.arm.name)

    @property
    def is_teacher(self) -> bool:
        """Whether the arm is a teacher itself, which may take several taggers or a larger one to predict with."""
        return any(record.is_teacher for record in self.records)

    @property
    def shares_teachers(self) -> bool:
        """Whether teachers of several seeds have a tagger in common."""
        members = [
            (record.subset_seed, seed) for record in self.records for seed in _teacher_seeds(record.config.get("arm"))
        ]
        return len(members) > len(set(members))

    @property
    def is_chosen(self) -> bool:
        """Whether this ratio was chosen on dev."""
        return any(record.chosen for record in self.records)

    @property
    def row(self) -> tuple[str, float | None]:
        """The row in tables of several settings: the method and its ratio; None for what was chosen on dev."""
        return self.method, None if self.is_searched else self.arm.ratio

    @property
    def shown_difference(self) -> Difference | None:
        """The difference, if summaries show it: of what is searched on dev only what was chosen."""
        return self.difference if self.is_chosen or not self.is_searched else None


def _teacher_seeds(arm: Any) -> set[int]:
    """The seeds of the taggers of the teachers of an arm, by its configuration."""
    parts = arm.get("combine", [arm]) if isinstance(arm, Mapping) else []
    return {seed for part in parts for seed in part.get("teacher", {}).get("seeds", ())}


def compare_arms(
    records: Sequence[RunRecord], samples: int = 1000, planned: Mapping[tuple[object, ...], set[_Seed]] | None = None
) -> dict[Setting, list[ArmResult]]:
    """Compare the arms of each setting; of some it is known which seeds are planned."""
    # Other arms should have all seeds that occur in their files, with each draw of their corpus.
    seeds: dict[str | None, set[int]] = defaultdict(set)
    by_setting: dict[Setting, list[RunRecord]] = defaultdict(list)
    draws: dict[tuple[str | None, str], set[int | None]] = defaultdict(set)
    for record in records:
        seeds[record.path].add(record.seed)
        draws[record.path, record.corpus].add(record.subset_seed)
        by_setting[Setting(record.corpus, record.size, record.tagger)].append(record)
    results = {}
    for setting, some in sorted(by_setting.items()):
        paths = {record.path for record in some}
        expected = {(draw, seed) for path in paths for draw in draws[path, setting.corpus] for seed in seeds[path]}
        seeds_of: dict[Arm, set[_Seed]] = defaultdict(set)
        for record in some:
            arm = Arm(record.arm, record.ratio)
            seeds_of[arm] |= {_seed_of(record), *(planned or {}).get((*setting, *arm), expected)}
        results[setting] = _compare(some, seeds_of, samples)
    return results


def _check(record: RunRecord, known: dict[Any, RunRecord]) -> None:
    """Raise an error if a record cannot stand in one setting with those that are known."""

    def refuse(what: str, other: RunRecord, labels: str, remedy: str) -> None:
        message = f"{what} {other.path}:{other.line} of the same corpus, size and tagger{labels}"
        raise InputError(message, path=record.path, line=record.line, remedy=remedy)

    test, fold = record.test, record.fold and tuple(record.fold)
    first = known.setdefault("test", record)
    is_same = [counts.gold for counts in test.sentences] == [counts.gold for counts in first.test.sentences]
    if not is_same or (test.lengths and first.test.lengths and test.lengths != first.test.lengths):
        refuse("has another test set than", first, "", "report on experiments with different test sets separately")
    for name, title in _ALIKE.items():  # each draw and fold has a subset of its own
        if (value := record.config.get(name)) is not None:
            first = known.setdefault((name, record.subset_seed, fold), record)
            if value != first.config[name]:
                remedy = "report on them separately, or give their corpora or taggers labels of their own"
                refuse(f"is of another {title} than", first, " label", remedy)
    first = known.setdefault((record.arm, record.ratio, _seed_of(record), fold), record)
    shared = (record.config.keys() & first.config.keys()) - _RERUN
    if differing := sorted(name for name in shared if record.config[name] != first.config[name]):
        remedy = "report on them separately, or give their methods labels of their own"
        refuse(f"differs in {', '.join(differing)} from", first, " label, arm, ratio and seed", remedy)


def _compare(records: Sequence[RunRecord], planned: Mapping[Arm, set[_Seed]], samples: int) -> list[ArmResult]:
    """The results of a setting."""
    known: dict[Any, RunRecord] = {}
    arms: dict[Arm, dict[_Seed, RunRecord]] = defaultdict(dict)
    for record in records:
        _check(record, known)
        arms[Arm(record.arm, record.ratio)][_seed_of(record)] = record
    gold = arms.get(Arm(GOLD, 0.0), {})
    results = []
    for arm in sorted(arms, key=lambda arm: arm.sort_key):
        runs = arms[arm]
        notes = []
        is_teacher = any(run.is_teacher for run in runs.values())
        if arm.name not in BASELINES and not is_teacher and not any(run.new for run in runs.values()):
            notes.append("made no new sentence")
        gain = difference = None
        baseline: tuple[RunRecord, ...] = ()
        if arm.name != GOLD and (shared := runs.keys() & gold.keys()):
            gain = fmean(runs[seed].test.micro.f1 - gold[seed].test.micro.f1 for seed in shared)
        if is_teacher:
            notes.append("a teacher, not a tagger of this setting")
        elif arm.name not in (GOLD, GOLD_STEPS):
            # Where the plan fixes the steps, gold alone is gold at equal steps.
            base = {seed: run for seed, run in gold.items() if seed in runs and run.steps == runs[seed].steps}
            base |= arms.get(Arm(GOLD_STEPS, arm.ratio), {})
            difference, baseline, problems = _difference(runs, base, samples)
            # What was tried on dev and not chosen needs no run to compare with.
            not_chosen = all(run.search != "list" and not run.chosen for run in runs.values())
            notes += [] if not_chosen and difference is None else problems
        ordered = tuple(runs[seed] for seed in sorted(runs, key=_seed_order))
        missing = tuple(sorted(planned[arm] - runs.keys(), key=_seed_order))
        results.append(ArmResult(arm, ordered, gain, difference, baseline, tuple(notes), missing))
    return results


def mean_f1(records: Iterable[RunRecord]) -> float:
    """Mean micro-F1 of runs."""
    return fmean(record.test.micro.f1 for record in records)


def seed_names(seeds: Iterable[_Seed]) -> str:
    """The seeds in order, each with that of the draw where there are several."""
    ordered = sorted(seeds, key=_seed_order)
    return ", ".join(f"{seed}" if subset is None else f"{subset}/{seed}" for subset, seed in ordered)


def _seed_order(seed: _Seed) -> tuple[int, int]:
    """By the seed of the subset, which a plan with one subset does not name."""
    return (-1 if seed[0] is None else seed[0]), seed[1]


def _difference(
    runs: Mapping[_Seed, RunRecord], base: Mapping[_Seed, RunRecord], samples: int
) -> tuple[Difference | None, tuple[RunRecord, ...], list[str]]:
    """The difference from ``gold-steps`` over seeds with equal steps, the runs that it is over, and problems."""
    shared = sorted(runs.keys() & base.keys(), key=_seed_order)
    comparable = [seed for seed in shared if runs[seed].steps == base[seed].steps]
    if not comparable:
        problem = "gold-steps took another number of steps" if shared else "no gold-steps run to compare with"
        return None, (), [problem]
    notes = [] if len(comparable) == len(runs) else [f"compared on {len(comparable)} of {len(runs)} seeds"]
    environments = (of[seed].environment for of in (runs, base) for seed in comparable)
    if devices := several_values(environments).get("device"):
        notes.append(f"compared between devices, {' and '.join(devices)}: part of a difference may be theirs")
    sentences = ([of[seed].test.sentences for seed in comparable] for of in (runs, base))
    difference = paired_bootstrap(*sentences, samples=samples, draws=[draw for draw, _ in comparable])
    return difference, tuple(base[seed] for seed in comparable), notes
