"""The runs of a plan, and those that follow from choices on dev."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from entaug.errors import InputError, UnknownNameError
from entaug.study.data import DataSplit
from entaug.study.plan import ENSEMBLE, PATIENCE, MethodPlan, Plan, TaggerPlan, patience_ratios
from entaug.study.planned import RunCount
from entaug.study.records import BASELINES, RunRecord
from entaug.study.runs import RunSpec

_PATIENCE = 3  # ratios without a better mean F1 on dev after which the patience rule stops


class _Setting(NamedTuple):
    """A tagger on the subsets of one size of a corpus."""

    splits: Sequence[DataSplit]
    tagger: TaggerPlan


Candidate = tuple[MethodPlan, float]
"""A method and a ratio."""


@dataclass
class _Search:
    """A choice by the mean F1 on dev: of the ratio by the patience rule, or of a cell of a grid."""

    setting: _Setting
    untried: list[Candidate]
    tried: list[tuple[Candidate, list[RunSpec]]] = field(default_factory=list)


@dataclass(frozen=True)
class Selection:
    """The runs that are asked for: of each kind of name, if some are given, those with one of them."""

    names: Mapping[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Sequence[str], plan: Plan) -> Selection:
        """The selection by texts of the form ``corpus=NAME``."""
        arms = [name for name in plan.baselines if name != ENSEMBLE]
        arms += [teacher.label for teacher in plan.teachers if ENSEMBLE in plan.baselines]
        known: dict[str, Sequence[object]] = {
            "corpus": [corpus.name for corpus in plan.corpora],
            "size": [],  # known when the corpora are read
            "tagger": [tagger.label for tagger in plan.taggers],
            "method": [*arms, *(name for m in plan.methods for name in (m.label, m.group) if name)],
            "seed": list(plan.seeds),
        }
        names: dict[str, set[str]] = defaultdict(set)
        for text in texts:
            kind, sign, name = text.partition("=")
            if kind not in known or not sign:
                message = f"the runs of `only` cannot be selected by {text!r}"
                raise InputError(message, remedy=f"write {', '.join(f'{kind}=NAME' for kind in known)}")
            if kind != "size" and name not in map(str, known[kind]):
                raise UnknownNameError(kind, name, map(str, known[kind]))
            names[kind].add(name)
        return cls(names)

    def of_runs(self, runs: Sequence[RunSpec]) -> list[RunSpec]:
        """The runs that are asked for, with the baselines that their methods are compared with."""
        settings = [run for run in runs if all(self._has(kind, name) for kind, name in _setting_of(run).items())]
        if "method" not in self.names:
            return settings
        asked = [run for run in settings if {run.arm, run.method.group if run.method else ""} & self.names["method"]]
        bases = {(run.split.train, run.tagger.label, run.seed, ratio) for run in asked for ratio in (0, run.ratio)}
        keys = {run.key for run in asked}
        for run in settings:
            if run.arm in BASELINES and (run.split.train, run.tagger.label, run.seed, run.ratio) in bases:
                keys.add(run.key)
        return [run for run in settings if run.key in keys]

    def _has(self, kind: str, name: str) -> bool:
        return kind not in self.names or name in self.names[kind]


def _setting_of(run: RunSpec) -> dict[str, str]:
    corpus, size, tagger, seed = run.split.corpus.name, str(run.split.size), run.tagger.label, str(run.seed)
    return {"corpus": corpus, "size": size, "tagger": tagger, "seed": seed}


class Schedule:
    """The runs of a plan: those known from the start, and those that follow from choices on dev."""

    def __init__(
        self,
        plan: Plan,
        splits: Sequence[DataSplit],
        selection: Selection | None = None,
        known: dict[tuple[object, ...], RunSpec] | None = None,
    ) -> None:
        self.plan = plan
        self.selection = selection or Selection()
        self._splits = splits
        self._known: dict[tuple[object, ...], RunSpec] = {} if known is None else known
        self.chosen: set[str] = set()
        self.warnings = [
            f"{split.corpus.name}: {count:,} of the {split.num_gold:,} training sentences stand in {part} too"
            for split in splits
            for part, count in split.leaks.items()
            if count
        ]
        self._runs: dict[tuple[object, ...], RunSpec] = {}
        self._searches: list[_Search] = []
        groups: dict[tuple[str, int], list[DataSplit]] = defaultdict(list)
        for split in splits:
            groups[split.corpus.name, split.size].append(split)
        for group in groups.values():
            for tagger in filter(group[0].corpus.includes, plan.taggers):
                self._add_arms(_Setting(group, tagger.on(group[0].corpus)))
        sizes = {str(split.size) for split in splits}
        for size in sorted(self.selection.names.get("size", set()) - sizes):
            raise UnknownNameError("size", size, sizes)
        if self.runs and not self.selected:
            raise InputError("no run of the plan is what `only` asks for", remedy="leave out one `only`")

    @property
    def runs(self) -> list[RunSpec]:
        """The runs that are known so far."""
        return list(self._runs.values())

    def fresh(self) -> Schedule:
        """The schedule as it was at its start; what it adds for given records is in one order."""
        return Schedule(self.plan, self._splits, self.selection, self._known)

    @property
    def selected(self) -> list[RunSpec]:
        """The runs that are asked for, of those that are known so far."""
        return self.selection.of_runs(self.runs)

    def count(self, records: Mapping[str, RunRecord], runs: Sequence[RunSpec] | None = None) -> RunCount:
        """Count the runs, or some of them, after `advance`; a choice on dev that waits for one may add others."""
        runs = self.runs if runs is None else runs
        waiting = {run.key for search in self._searches for _, tried in search.tried for run in tried}
        done = sum(run.key in records for run in runs)
        return RunCount(done, len(runs), not waiting.isdisjoint(run.key for run in runs))

    def advance(self, records: Mapping[str, RunRecord]) -> None:
        """Make all choices for which the runs are finished, and add the runs that follow."""
        number_of_runs = -1
        while number_of_runs != len(self._runs):
            number_of_runs = len(self._runs)
            self._choose(records)

    def _choose(self, records: Mapping[str, RunRecord]) -> None:
        searches, self._searches = self._searches, []
        for search in searches:
            if any(run.key not in records for _, runs in search.tried for run in runs):
                self._searches.append(search)
                continue
            means = [_mean_dev_f1([records[run.key] for run in runs]) for _, runs in search.tried]
            best = means.index(max(means))
            if search.untried and len(means) - 1 - best < _PATIENCE:
                self._try_next(search)
                self._searches.append(search)
                continue
            candidate, runs = search.tried[best]
            self.chosen |= {run.key for run in runs}
            self._add_with_baselines(search.setting, *candidate)

    def _add_arms(self, setting: _Setting) -> None:
        corpus, size = setting.splits[0].corpus, setting.splits[0].size
        self._add(setting, "gold", 0)
        for teacher in self.plan.teachers if ENSEMBLE in self.plan.baselines else ():
            self._add(setting, teacher.label, 0)
        grids: dict[str, list[Candidate]] = defaultdict(list)
        for method in filter(corpus.includes, self.plan.methods):
            if method.ratios == PATIENCE:
                self._searches.append(_Search(setting, [(method, ratio) for ratio in patience_ratios(size)]))
                self._try_next(self._searches[-1])
            for ratio in sorted(method.ratios) if method.ratios != PATIENCE else ():
                if method.group:
                    grids[method.group].append((method, float(ratio)))
                else:
                    self._add_with_baselines(setting, method, float(ratio))
        for cells in grids.values():
            self._searches.append(_Search(setting, cells))
            while cells:
                self._try_next(self._searches[-1])

    def _try_next(self, search: _Search) -> None:
        method, ratio = search.untried.pop(0)
        search.tried.append(((method, ratio), self._add(search.setting, method.label, ratio, method)))

    def _add_with_baselines(self, setting: _Setting, method: MethodPlan, ratio: float) -> None:
        for baseline in ("gold-steps", "duplicate"):
            if baseline in self.plan.baselines:
                self._add(setting, baseline, ratio)
        self._add(setting, method.label, ratio, method)

    def _add(self, setting: _Setting, arm: str, ratio: float, method: MethodPlan | None = None) -> list[RunSpec]:
        """The runs of an arm, one per subset and seed; added where they are new."""
        plan, tagger = self.plan, setting.tagger
        parts = [method] if method else []
        if method and method.combine:
            parts = [other for other in plan.methods if other.label in method.combine]
        runs = []
        for split in setting.splits:
            for seed in plan.seeds:
                identity = (split.train, tagger.label, arm, ratio, seed)
                if identity not in self._known:
                    own = method and method.on(split.corpus)
                    own_parts = tuple(part.on(split.corpus) for part in parts)
                    known = (plan.threads, plan.output, own_parts, plan.teachers)
                    self._known[identity] = RunSpec(split, tagger, arm, ratio, seed, own, *known)
                runs.append(self._runs.setdefault(identity, self._known[identity]))
        return runs


def _mean_dev_f1(records: Sequence[RunRecord]) -> float:
    """The mean over subsets and seeds."""
    return math.fsum(record.dev.micro.f1 for record in records if record.dev) / len(records)
