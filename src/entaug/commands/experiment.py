"""``entaug experiment``: measure the effect of augmentation on taggers."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from entaug.study.engine import StudyProgress

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("plan", help="the plan of the experiment, a TOML file: see docs/experiments.md")
    parser.add_argument(
        "--jobs", type=int, help="the number of parallel runs (default: depends on cores and threads, at most 4)"
    )
    parser.add_argument("--check", action="store_true", help="check the plan and count its runs, without running them")
    parser.add_argument(
        "--smoke-test",
        action="store_true",
        help="run every arm once on a few sentences, without keeping anything: finds faults before a long computation",
    )
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.study.engine import run_experiment, smoke_test
    from entaug.study.reading import read_plan

    if args.jobs is not None and args.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, not {args.jobs}")
    plan = read_plan(args.plan)
    if args.check:
        state = run_experiment(plan, check_only=True, report=_print_note)
        _print_leaks(state)
        runs, steps = output.quantity(state.runs, "run"), output.quantity(state.steps, "step")
        output.print_message(f"{args.plan}: valid; {runs} with {steps} in total")
        return output.ExitCode.OK
    if args.smoke_test:
        with _live_table() as watch:
            state = smoke_test(plan, progress=watch)
        output.print_message(
            f"{args.plan}: all of {output.quantity(state.runs_done, 'run')} finished; their scores mean nothing"
        )
        return output.ExitCode.OK
    with _live_table() as watch:
        message = f"waiting: another process is running {plan.output}"
        state = run_experiment(
            plan,
            jobs=args.jobs,
            progress=watch,
            on_wait=lambda: output.print_message(message),
            report=_print_note,
        )
    _print_leaks(state)
    output.print_message(
        f"{output.quantity(state.runs_done, 'run')} done, {state.previously_done:,} of them before: {plan.output}"
    )
    output.print_message(f"see: entaug report {plan.output}")
    return output.ExitCode.OK


def _print_note(note: str) -> None:
    output.print_message(f"note: {note}")


def _print_leaks(state: StudyProgress) -> None:
    for warning in state.warnings:
        output.print_message(f"leak: {warning}")


@contextlib.contextmanager
def _live_table() -> Iterator[Callable[[StudyProgress], None]]:
    """Show a live table on a terminal, and a line for each finished run in a pipe."""
    if not sys.stderr.isatty():
        finished = 0

        def print_line(state: StudyProgress) -> None:
            nonlocal finished
            if state.runs_done > finished:
                finished = state.runs_done
                output.print_message(f"{state.runs_done} of {state.runs} runs{_remaining(state)}")

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
    "measure the effect of augmentation on taggers",
    _add_options,
    _run,
    description="Execute the runs of a plan: corpora x subset sizes x methods x amounts x taggers x seeds.\n"
    "Run it again after an interruption: finished runs are not repeated.",
    is_resumable=True,
)
