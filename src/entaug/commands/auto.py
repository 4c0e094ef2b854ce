"""``entaug auto``: find out which augmentation helps on a corpus, and train with it."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, FORCE, JSON, READING, read_options, split_names
from entaug.commands.output import print_message, print_note, quantity
from entaug.study.auto import auto
from entaug.study.auto_files import AutoSummary, read_plan_file
from entaug.study.engine import StudyProgress


def _from_plan(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that the plan of an earlier result says, and options do not."""
    if not args.train.endswith(".toml"):
        return {}
    reading = read_options(args)
    given = vars(args).keys() - {"train", *reading} | {name for name, value in reading.items() if value}
    return {name: value for name, value in read_plan_file(args.train).items() if name not in given}


def _show(_: argparse.Namespace, summary: AutoSummary) -> None:
    for note in summary.notes:
        print_note(note)
    for line in summary.lines():
        print_message(line)
    sentences = f"{quantity(summary.sentences, 'gold sentence')}, {summary.augmented:,} added"
    files = "tagger, report.html, plan.toml"
    print_message(f"wrote {summary.output}: {sentences}; {files} ({summary.seconds / 60:.1f} minutes)")


def _record(summary: AutoSummary) -> dict[str, Any]:
    return {"output": summary.output, **summary.to_dict(), "seconds": round(summary.seconds, 1)}


@contextlib.contextmanager
def _live_progress(*, quiet: bool) -> Iterator[Callable[[StudyProgress], None]]:
    """Show the phase and the time left of the whole: one line on a terminal, a line for each phase in a pipe."""
    del quiet
    phase = ""
    is_estimated = False
    with contextlib.ExitStack() as stack:
        live: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            live = stack.enter_context(Live(console=console, refresh_per_second=2, transient=True))

        def update(state: StudyProgress) -> None:
            nonlocal phase, is_estimated
            if live is not None:
                live.update(f"{state.phase}: {_describe(state)}")
            elif state.phase != phase:
                phase = state.phase
                print_message(f"{phase}: {_describe(state)}")
            if state.seconds_in_all is not None and not is_estimated:
                is_estimated = True
                estimate = f"this will take about {_minutes(state.seconds_in_all)} in all, for {state.steps:,} steps"
                (live.console.print if live is not None else print_message)(estimate)

        yield update


def _describe(state: StudyProgress) -> str:
    left = f", about {_minutes(state.seconds_left)} left" if state.seconds_left else ""
    return f"{state.steps_done:,} of {state.steps:,} steps{left}"


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


COMMAND = Command(
    auto,
    "Measure by cross-validation which recipe of augmentation raises F1 over gold alone, and train a\n"
    "tagger with the best one; with gold alone where no gain is credible. No gain is measured on test sentences.\n"
    "TRAIN may be the plan.toml of an earlier result, to repeat it. Run it again after an interruption: finished\n"
    "trainings are not repeated.",
    {
        "output": {"required": True, "metavar": "FOLDER"},
        "recipes": {"action": "store", "nargs": None, "type": split_names, "metavar": "NAMES"},
        "budget": {"metavar": "MINUTES"},
        "unlabelled": {"metavar": "FILE"},
        "held_out": {"metavar": "FILE"},
        "dev": {"metavar": "FILE"},
        "mentions": {"metavar": "FILE=LABEL"},
    },
    (FORCE, JSON, READING, COMPUTING),
    values=_from_plan,
    show=_show,
    record=_record,
    progress=_live_progress,
    is_resumable=True,
)
