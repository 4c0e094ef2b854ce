"""The runs of a plan, and those that follow from choices on dev."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from entaug.study.data import DataSplit
from entaug.study.plan import ENSEMBLE, PATIENCE, MethodPlan, Plan, TaggerPlan, patience_ratios
from entaug.study.records import RunRecord
from entaug.study.runs import RunSpec

__all__ = ["Schedule"]

_PATIENCE = 3  # ratios without a better mean F1 on dev after which the patience rule stops


Candidate = tuple[MethodPlan, float]
"""A method and a ratio."""


@dataclass
class _Search:
    """A choice by the mean F1 on dev: of the ratio by the patience rule, or of a cell of a grid."""

    splits: tuple[DataSplit, ...]
    tagger: TaggerPlan
    untried: list[Candidate]
    tried: list[Candidate]


class Schedule:
    """The runs of a plan: those known from the start, and those that follow from choices on dev."""

    def __init__(self, plan: Plan, splits: Sequence[DataSplit]) -> None:
        self.plan = plan
        self.runs: list[RunSpec] = []
        self.chosen: set[str] = set()
        self.warnings = [
            f"{split.corpus.name}: {count:,} of the {split.size:,} training sentences stand in {part} too"
            for split in splits
            for part, count in split.leaks.items()
            if count
        ]
        self._known: set[tuple[object, ...]] = set()
        self._searches: list[_Search] = []
        groups: dict[tuple[str, int], list[DataSplit]] = defaultdict(list)
        for split in splits:
            groups[split.corpus.name, split.size].append(split)
        for group in groups.values():
            for tagger in plan.taggers:
                if group[0].corpus.includes(tagger):
                    self._add_arms(tuple(group), tagger)

    def advance(self, records: Mapping[str, RunRecord]) -> None:
        """Make the choices for which the runs are finished, and add the runs that follow."""
        searches, self._searches = self._searches, []
        for search in searches:
            means = [self._mean_dev_f1(search, candidate, records) for candidate in search.tried]
            finished = [mean for mean in means if mean is not None]
            if len(finished) < len(means):
                self._searches.append(search)
                continue
            best = finished.index(max(finished))
            if not search.untried or len(search.tried) - 1 - best >= _PATIENCE:
                method, ratio = search.tried[best]
                self.chosen |= {run.key for run in self._runs_of(search, (method, ratio))}
                self._add_with_baselines(search.splits, search.tagger, method, ratio)
                continue
            method, ratio = search.untried.pop(0)
            search.tried.append((method, ratio))
            self._add(search.splits, search.tagger, method.label, ratio, method)
            self._searches.append(search)

    def _add_arms(self, splits: Sequence[DataSplit], tagger: TaggerPlan) -> None:
        self._add(splits, tagger, "gold", 0)
        if ENSEMBLE in self.plan.baselines:
            for teacher in self.plan.teachers:
                self._add(splits, tagger, teacher.label, 0)
        grids: dict[str, list[Candidate]] = defaultdict(list)
        for method in filter(splits[0].corpus.includes, self.plan.methods):
            if method.group:
                grids[method.group] += [(method, float(ratio)) for ratio in sorted(method.ratios)]
            elif method.ratios == PATIENCE:
                first, *others = [(method, ratio) for ratio in patience_ratios(splits[0].size)]
                self._start_search(_Search(tuple(splits), tagger, others, [first]))
            else:
                for ratio in sorted(method.ratios):
                    self._add_with_baselines(splits, tagger, method, float(ratio))
        for cells in grids.values():
            self._start_search(_Search(tuple(splits), tagger, [], cells))

    def _start_search(self, search: _Search) -> None:
        self._searches.append(search)
        for method, ratio in search.tried:
            self._add(search.splits, search.tagger, method.label, ratio, method)

    def _add_with_baselines(
        self, splits: Sequence[DataSplit], tagger: TaggerPlan, method: MethodPlan, ratio: float
    ) -> None:
        for baseline in ("gold-steps", "duplicate"):
            if baseline in self.plan.baselines:
                self._add(splits, tagger, baseline, ratio)
        self._add(splits, tagger, method.label, ratio, method)

    def _add(
        self,
        splits: Sequence[DataSplit],
        tagger: TaggerPlan,
        arm: str,
        ratio: float,
        method: MethodPlan | None = None,
    ) -> None:
        """Add one run per subset and seed, unless it is there."""
        plan = self.plan
        labels = method.combine if method and method.combine else ()
        parts = tuple(other for other in plan.methods if other.label in labels) or ((method,) if method else ())
        for split in splits:
            for seed in plan.seeds:
                identity = (split.train, tagger.label, arm, ratio, seed)
                if identity not in self._known:
                    self._known.add(identity)
                    own = method and method.on(split.corpus)
                    own_parts = tuple(part.on(split.corpus) for part in parts)
                    self.runs.append(
                        RunSpec(
                            split, tagger, arm, ratio, seed, own, plan.threads, plan.output, own_parts, plan.teachers
                        )
                    )

    def _runs_of(self, search: _Search, candidate: Candidate) -> list[RunSpec]:
        method, ratio = candidate
        wanted = [(split.train, search.tagger, method.label, ratio) for split in search.splits]
        return [run for run in self.runs if (run.split.train, run.tagger, run.arm, run.ratio) in wanted]

    def _mean_dev_f1(self, search: _Search, candidate: Candidate, records: Mapping[str, RunRecord]) -> float | None:
        """The mean over subsets and seeds; None until all runs are finished."""
        runs = self._runs_of(search, candidate)
        scores = [records[run.key].dev for run in runs if run.key in records]
        if len(scores) < len(runs):
            return None
        return math.fsum(dev.micro.f1 for dev in scores if dev) / len(runs)
