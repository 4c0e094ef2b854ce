"""``entaug experiment``: measure the effect of augmentation on taggers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from entaug.commands.command import Command, Summary
from entaug.commands.options import COMPUTING
from entaug.commands.output import print_message, quantity, show_study
from entaug.config.params import PositiveInt
from entaug.study import engine
from entaug.study.plan import read_plan


@dataclass
class ExperimentSummary(Summary):
    """Result of `experiment`."""

    plan: str
    output: str
    state: engine.StudyProgress
    kind: str

    def lines(self) -> Iterator[str]:
        """Return what was done, for the user."""
        state = self.state
        if self.kind == "smoke test":
            yield f"{self.plan}: all of {quantity(state.runs_done, 'run')} finished; their scores mean nothing"
            return
        yield from (f"leak: {warning}" for warning in state.warnings)
        if self.kind == "check":
            yield f"{self.plan}: valid; {quantity(state.runs, 'run')} with {state.steps:,} steps in total"
        else:
            yield f"{quantity(state.runs_done, 'run')} done, {state.previously_done:,} of them before: {self.output}"
            yield f"see: entaug report {self.output}"


def experiment(
    plan: str | Path,
    *,
    jobs: PositiveInt | None = None,
    check: bool = False,
    smoke_test: bool = False,
    progress: Callable[[engine.StudyProgress], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> ExperimentSummary:
    """Execute the runs of a plan: corpora x subset sizes x methods x ratios x taggers x seeds.

    Run it again after an interruption: finished runs are not repeated.

    Args:
        plan: the plan of the experiment, a TOML file: see docs/experiments.md.
        jobs: the number of parallel runs; by default as cores and threads allow, at most 4.
        check: check the plan and count its runs, without running them.
        smoke_test: run every arm once on a few sentences, without keeping anything: finds faults before a long
            computation.
        progress: called after each run.
        report: called with notes.
    """
    read = read_plan(plan)
    if smoke_test:
        state = engine.smoke_test(read, progress=progress)
    else:
        message = f"waiting: another process is running {read.output}"
        calls = {"progress": progress, "report": report, "on_wait": lambda: print_message(message)}
        state = engine.run_experiment(read, jobs=jobs, check_only=check, **calls)
    kind = "smoke test" if smoke_test else "check" if check else "runs"
    return ExperimentSummary(str(plan), str(read.output), state, kind)


COMMAND = Command(experiment, shared=(COMPUTING,), progress=show_study, is_resumable=True)
