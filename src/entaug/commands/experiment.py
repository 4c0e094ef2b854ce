"""``entaug experiment``: measure the effect of augmentation on taggers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from entaug.commands.command import Command, Summary
from entaug.commands.options import COMPUTING
from entaug.commands.output import print_message
from entaug.config.params import PositiveInt
from entaug.core.progress import shown_time
from entaug.errors import ParameterError
from entaug.metrics.tables import quantity
from entaug.study.engine import StudyProgress, run_experiment, show_study
from entaug.study.merge import MergedRecords, merge_records
from entaug.study.plan import read_plan


@dataclass
class ExperimentSummary(Summary):
    """Result of `experiment`."""

    plan: str
    output: str
    state: StudyProgress
    is_check: bool
    is_sentences: bool = False

    def lines(self) -> Iterator[str]:
        state = self.state
        if self.is_sentences:
            files = f"{quantity(state.runs, 'file')} of sentences, {state.previously_done:,} of them before"
            yield f"{self.plan}: valid; {files}" if self.is_check else f"{files}: {self.output}/augmented"
            return
        yield from (f"leak: {warning}" for warning in state.warnings)
        if self.is_check:
            least = "at least " if state.at_least else ""
            yield f"{self.plan}: valid; {least}{quantity(state.runs, 'run')} with {state.steps:,} steps in total"
            if state.runs_done:
                yield f"{quantity(state.runs_done, 'run')} done"
            if state.plan and state.plan.planned != state.runs:
                yield f"{state.plan} are done"
            if state.seconds_left:
                time = f"about {shown_time(state.seconds_left)} of training and testing"
                yield f"{time}; what methods make takes time besides"
        else:
            others = f", {state.by_others:,} by other processes" if state.by_others else ""
            done = f"{quantity(state.runs_done, 'run')} done, {state.previously_done:,} of them before{others}"
            yield f"{done}: {self.output}"
            if state.plan and not state.plan.is_complete:
                yield f"{state.plan} are done"
            yield f"see: entaug report {self.output}"


@dataclass
class MergeSummary(Summary):
    """Result of `experiment` with records of others."""

    plan: str
    output: str
    merged: MergedRecords
    is_check: bool

    def lines(self) -> Iterator[str]:
        yield from (f"note: {note}" for note in self.merged.notes)
        done = "valid" if self.is_check else f"merged into {self.output}"
        yield f"{done}: {quantity(self.merged.added, 'new record')}, {self.merged.known:,} known before"
        yield f"with them {self.merged.plan} are done"


def experiment(
    plan: str | Path,
    *,
    jobs: PositiveInt | None = None,
    only: Sequence[str] = (),
    check: bool = False,
    sentences_only: bool = False,
    merge: Sequence[str | Path] = (),
    progress: Callable[[StudyProgress], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> ExperimentSummary | MergeSummary:
    """Execute the runs of a plan: corpora x subset sizes x methods x ratios x taggers x seeds.

    Run it again after an interruption: finished runs are not repeated. Run it several times at once, for example one
    process for each GPU, to share the runs.

    Args:
        plan: the plan of the experiment, a TOML file: see docs/experiments.md.
        jobs: the number of parallel runs; by default as cores and threads allow, at most 4.
        only: the runs to execute, such as ``corpus=conll-en``, ``size=100``, ``tagger=linear``, ``method=cassi`` or
            ``seed=1``: of each kind those that are named.
        check: check the plan, count its runs and estimate their time, without running them; with `merge` check the
            records, without adding them.
        sentences_only: make the sentences of the methods and train nothing: runs need no models of a method whose
            sentences are there, for example on a machine with a GPU and no network.
        merge: records of other machines, files such as ``runs.jsonl`` or their folders: check that they are runs of the
            plan on the same sentences, and add them to its records, in place of running anything.
        progress: called after each run.
        report: called with notes.
    """
    if merge and (jobs or only or sentences_only):
        message = "with merge nothing is run, so jobs, only and sentences-only have no effect"
        raise ParameterError(message, remedy="leave them out")
    read = read_plan(plan)
    if merge:
        return MergeSummary(str(plan), str(read.output), merge_records(read, merge, check_only=check), check)

    def wait() -> None:
        print_message(f"waiting: another process is running {read.output}")

    options = {"check_only": check, "sentences_only": sentences_only}
    state = run_experiment(read, jobs=jobs, only=only, progress=progress, report=report, on_wait=wait, **options)
    return ExperimentSummary(str(plan), str(read.output), state, check, sentences_only)


COMMAND = Command(experiment, shared=(COMPUTING,), progress=show_study, is_resumable=True)
