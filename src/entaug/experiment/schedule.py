"""Which runs there are, and which the patience rule adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from entaug.experiment.data import Cell
from entaug.experiment.plan import PATIENCE, MethodPlan, Plan, TaggerPlan, amounts_by_patience
from entaug.experiment.runs import Run
from entaug.scoring.span_f1 import Scores

__all__ = ["Schedule", "f1_of"]

_PATIENCE = 3  # amounts without a better mean on dev, after which the rule stops


class Schedule:
    """The runs of a plan: those known from the first, and those that the patience rule adds."""

    def __init__(self, plan: Plan, cells: Sequence[Cell]) -> None:
        self.plan = plan
        self.runs: list[Run] = []
        self.leaks = [
            f"{cell.corpus.name}: {n:,} of the {cell.size:,} training sentences stand in {part} too"
            for cell in cells
            for part, n in cell.leaks.items()
            if n
        ]
        self.chosen: set[str] = set()
        self._asked: set[tuple[Any, ...]] = set()
        # Each: the cell and tagger, the method, the amounts not tried yet, and those tried.
        self._patient: list[tuple[Cell, TaggerPlan, MethodPlan, list[float], list[float]]] = []
        for cell in cells:
            for tagger in plan.taggers:
                if cell.corpus.takes(tagger):
                    self._begin(cell, tagger)

    def _begin(self, cell: Cell, tagger: TaggerPlan) -> None:
        self.add(cell, tagger, "gold", 0)
        for method in self.plan.methods:
            if not cell.corpus.takes(method):
                continue
            if method.amounts == PATIENCE:
                first, *others = amounts_by_patience(cell.size)
                self._patient.append((cell, tagger, method, others, [first]))
                self.add(cell, tagger, method.label, first, method)
            else:
                for amount in method.amounts:
                    self.add_with_baselines(cell, tagger, method, float(amount))

    def add_with_baselines(self, cell: Cell, tagger: TaggerPlan, method: MethodPlan, amount: float) -> None:
        """The runs of a method at an amount, and those of the baselines that it is told against."""
        for baseline in ("gold-steps", "duplicate"):
            if baseline in self.plan.baselines:
                self.add(cell, tagger, baseline, amount)
        self.add(cell, tagger, method.label, amount, method)

    def add(self, cell: Cell, tagger: TaggerPlan, arm: str, amount: float, method: MethodPlan | None = None) -> None:
        """The runs of an arm, one a seed; what is there already is not added again."""
        for seed in self.plan.seeds:
            place = (cell.train, tagger.label, arm, amount, seed)
            if place not in self._asked:
                self._asked.add(place)
                run = Run(cell, tagger, arm, amount, seed, method, self.plan.threads, self.plan.output)
                self.runs.append(run)

    def advance(self, records: dict[str, dict[str, Any]]) -> None:
        """Let the patience rule look at what is finished, and add what it asks for."""
        waiting = self._patient
        self._patient = []
        for cell, tagger, method, untried, tried in waiting:
            means = [self._mean_on_dev(cell, tagger, method, amount, records) for amount in tried]
            if means[-1] is None:
                self._patient.append((cell, tagger, method, untried, tried))
                continue
            known = [mean for mean in means if mean is not None]
            best = max(range(len(known)), key=lambda i: (known[i], -i))
            if not untried or len(tried) - 1 - best >= _PATIENCE:
                self.chosen |= {run.key for run in self._of(cell, tagger, method, tried[best])}
                self.add_with_baselines(cell, tagger, method, tried[best])
                continue
            tried.append(untried.pop(0))
            self.add(cell, tagger, method.label, tried[-1], method)
            self._patient.append((cell, tagger, method, untried, tried))

    def _of(self, cell: Cell, tagger: TaggerPlan, method: MethodPlan, amount: float) -> list[Run]:
        wanted = (cell, tagger, method.label, amount)
        return [run for run in self.runs if (run.cell, run.tagger, run.arm, run.amount) == wanted]

    def _mean_on_dev(
        self, cell: Cell, tagger: TaggerPlan, method: MethodPlan, amount: float, records: dict[str, dict[str, Any]]
    ) -> float | None:
        found = [records.get(run.key) for run in self._of(cell, tagger, method, amount)]
        if any(record is None for record in found):
            return None
        return math.fsum(f1_of(record["dev"]) for record in found if record) / len(found)


def f1_of(scores: dict[str, Any]) -> float:
    """The micro-F1 of a record's scores."""
    return Scores.from_dict(scores).micro.f1
