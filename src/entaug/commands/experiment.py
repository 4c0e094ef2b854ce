"""``entaug experiment``: measure the effect of augmentation on taggers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.commands.command import Command, Summary
from entaug.commands.options import COMPUTING
from entaug.commands.output import print_message, quantity
from entaug.errors import ParameterError
from entaug.study.engine import StudyProgress, run_experiment
from entaug.study.engine import smoke_test as run_smoke_test
from entaug.study.reading import read_plan


@dataclass
class ExperimentSummary(Summary):
    """Result of `experiment`."""

    plan: str
    output: str
    state: StudyProgress
    kind: str

    def lines(self) -> Iterator[str]:
        """Return what was done, for the user."""
        if self.kind == "smoke test":
            yield f"{self.plan}: all of {quantity(self.state.runs_done, 'run')} finished; their scores mean nothing"
            return
        yield from (f"leak: {warning}" for warning in self.state.warnings)
        if self.kind == "check":
            runs, steps = quantity(self.state.runs, "run"), quantity(self.state.steps, "step")
            yield f"{self.plan}: valid; {runs} with {steps} in total"
        else:
            done = quantity(self.state.runs_done, "run")
            yield f"{done} done, {self.state.previously_done:,} of them before: {self.output}"
            yield f"see: entaug report {self.output}"


def experiment(
    plan: str | Path,
    *,
    jobs: int | None = None,
    check: bool = False,
    smoke_test: bool = False,
    progress: Callable[[StudyProgress], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> ExperimentSummary:
    """Execute the runs of a plan.

    Args:
        plan: the plan of the experiment, a TOML file: see docs/experiments.md.
        jobs: the number of parallel runs; by default as cores and threads allow, at most 4.
        check: check the plan and count its runs, without running them.
        smoke_test: run every arm once on a few sentences, without keeping anything: finds faults before a long
            computation.
        progress: called after each run.
        report: called with notes.
    """
    if jobs is not None and jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, not {jobs}")
    read = read_plan(plan)
    if check:
        state = run_experiment(read, check_only=True, report=report)
    elif smoke_test:
        state = run_smoke_test(read, progress=progress)
    else:
        message = f"waiting: another process is running {read.output}"
        state = run_experiment(
            read, jobs=jobs, progress=progress, on_wait=lambda: print_message(message), report=report
        )
    kind = "check" if check else "smoke test" if smoke_test else "runs"
    return ExperimentSummary(str(plan), str(read.output), state, kind)


@contextlib.contextmanager
def _live_table(*, quiet: bool) -> Iterator[Callable[[StudyProgress], None]]:
    """Show a live table on a terminal, and a line for each finished run in a pipe."""
    del quiet
    if not sys.stderr.isatty():
        finished = 0

        def print_line(state: StudyProgress) -> None:
            nonlocal finished
            if state.runs_done > finished:
                finished = state.runs_done
                print_message(f"{state.runs_done} of {state.runs} runs{_remaining(state)}")

        yield print_line
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=2) as live:
        yield lambda state: live.update(_table(state))


def _remaining(state: StudyProgress) -> str:
    if state.seconds_left is None or state.runs_done == state.runs:
        return ""
    minutes, seconds = divmod(round(state.seconds_left), 60)
    return f", about {minutes // 60}:{minutes % 60:02}:{seconds:02} left"


def _table(state: StudyProgress) -> Any:
    from rich.table import Table

    caption = f"{state.runs_done} of {state.runs} runs{_remaining(state)}"
    table = Table("corpus", "size", "tagger", "runs", "gold F1", caption=caption)
    for (corpus, size, tagger), row in state.settings.items():
        means = {arm: sum(scores) / len(scores) for arm, scores in row.test_f1.items()}
        gold = next((f"{100 * mean:.1f}" for (arm, _), mean in means.items() if arm == "gold"), "")
        table.add_row(corpus, f"{size:,}", tagger, f"{row.done} of {row.total}", gold)
    return table


COMMAND = Command(
    experiment,
    "Execute the runs of a plan: corpora x subset sizes x methods x ratios x taggers x seeds.\n"
    "Run it again after an interruption: finished runs are not repeated.",
    {"jobs": {"metavar": "N"}},
    (COMPUTING,),
    progress=_live_table,
    is_resumable=True,
)
