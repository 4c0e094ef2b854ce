"""The runs of a plan, and those that the patience rule adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from entaug.experiment.data import DataSplit
from entaug.experiment.plan import ENSEMBLE, PATIENCE, MethodPlan, Plan, TaggerPlan, patience_amounts
from entaug.experiment.records import RunRecord
from entaug.experiment.specification import RunSpec

__all__ = ["Schedule"]

_PATIENCE = 3  # amounts without a better mean F1 on dev after which the patience rule stops


@dataclass
class _Search:
    """A search for the best amount by the patience rule."""

    split: DataSplit
    tagger: TaggerPlan
    method: MethodPlan
    untried: list[float]
    tried: list[float]


class Schedule:
    """The runs of a plan: those known from the start, and those that the patience rule adds.

    Args:
        plan: the plan.
        splits: its data.

    Attributes:
        runs: the runs so far, in the order of the records.
        chosen: keys of the runs of amounts that the patience rule has chosen.
        warnings: messages about training sentences that are in dev or test too.
    """

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
        for split in splits:
            for tagger in plan.taggers:
                if split.corpus.includes(tagger):
                    self._add_arms(split, tagger)

    def advance(self, records: Mapping[str, RunRecord]) -> None:
        """Apply the patience rule to the finished runs, and add the runs that follow.

        Args:
            records: the records so far, by key.
        """
        searches, self._searches = self._searches, []
        for search in searches:
            means = [self._mean_dev_f1(search, amount, records) for amount in search.tried]
            if means[-1] is None:
                self._searches.append(search)
                continue
            finished = [mean for mean in means if mean is not None]
            best = finished.index(max(finished))
            if not search.untried or len(search.tried) - 1 - best >= _PATIENCE:
                amount = search.tried[best]
                self.chosen |= {run.key for run in self._runs_of(search, amount)}
                self._add_with_baselines(search.split, search.tagger, search.method, amount)
                continue
            search.tried.append(search.untried.pop(0))
            self._add(search.split, search.tagger, search.method.label, search.tried[-1], search.method)
            self._searches.append(search)

    def _add_arms(self, split: DataSplit, tagger: TaggerPlan) -> None:
        self._add(split, tagger, "gold", 0)
        if ENSEMBLE in self.plan.baselines:
            for teacher in self.plan.teachers:
                self._add(split, tagger, teacher.label, 0)
        for method in filter(split.corpus.includes, self.plan.methods):
            if method.amounts == PATIENCE:
                first, *others = patience_amounts(split.size)
                self._searches.append(_Search(split, tagger, method, others, [first]))
                self._add(split, tagger, method.label, first, method)
            else:
                for amount in sorted(method.amounts):
                    self._add_with_baselines(split, tagger, method, float(amount))

    def _add_with_baselines(self, split: DataSplit, tagger: TaggerPlan, method: MethodPlan, amount: float) -> None:
        for baseline in ("gold-steps", "duplicate"):
            if baseline in self.plan.baselines:
                self._add(split, tagger, baseline, amount)
        self._add(split, tagger, method.label, amount, method)

    def _add(
        self, split: DataSplit, tagger: TaggerPlan, arm: str, amount: float, method: MethodPlan | None = None
    ) -> None:
        """Add one run per seed, unless it is there."""
        for seed in self.plan.seeds:
            identity = (split.train, tagger.label, arm, amount, seed)
            if identity not in self._known:
                self._known.add(identity)
                plan = self.plan
                labels = method.combine if method and method.combine else ()
                parts = tuple(other for other in plan.methods if other.label in labels) or ((method,) if method else ())
                self.runs.append(
                    RunSpec(split, tagger, arm, amount, seed, method, plan.threads, plan.output, parts, plan.teachers)
                )

    def _runs_of(self, search: _Search, amount: float) -> list[RunSpec]:
        wanted = (search.split, search.tagger, search.method.label, amount)
        return [run for run in self.runs if (run.split, run.tagger, run.arm, run.amount) == wanted]

    def _mean_dev_f1(self, search: _Search, amount: float, records: Mapping[str, RunRecord]) -> float | None:
        """The mean over seeds; None until all runs are finished."""
        runs = self._runs_of(search, amount)
        scores = [records[run.key].dev for run in runs if run.key in records]
        if len(scores) < len(runs):
            return None
        return math.fsum(dev.micro.f1 for dev in scores if dev) / len(runs)
