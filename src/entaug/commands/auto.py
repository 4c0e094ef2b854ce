"""``entaug auto``: find out which augmentation helps on a corpus, and train with it."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.commands import options, output
from entaug.commands.command import Command

if TYPE_CHECKING:
    from entaug.study.auto_files import AutoSummary
    from entaug.study.engine import StudyProgress

__all__ = ["COMMAND"]

_REPEATED = ("unlabelled", "held_out", "mentions")
_GIVEN = (
    "dev",
    "drop_held_out",
    "encoder",
    "teacher_encoder",
    "tagger",
    "budget",
    "recipes",
    "folds",
    "repeats",
    "steps",
    "seed",
)


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument(
        "train", help="the gold training sentences; or the plan.toml of an earlier result, to repeat it"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="a new or empty folder for the result")
    for option, what in (
        ("unlabelled", "files of further text of the same kind; labels in them are ignored"),
        ("held-out", "test files: unlabelled text must share no sentence with them, and lists are used without theirs"),
        ("mentions", "lists of mentions for mr, as its option --mentions takes them"),
    ):
        metavar = "FILE=LABEL" if option == "mentions" else "FILE"
        parser.add_argument(
            f"--{option}", nargs="+", action="extend", default=argparse.SUPPRESS, metavar=metavar, help=what
        )
    for option, type_, metavar, what in (
        ("dev", str, "FILE", "labelled sentences to measure gains on, in place of cross-validation"),
        ("encoder", str, "NAME", "the pretrained encoder: an alias, a folder or a name on the hub (default: minilm)"),
        ("teacher-encoder", str, "NAME", "an encoder for the teacher, for example a larger one (default: --encoder)"),
        ("tagger", str, "NAME", "the tagger (default: linear, or w2ner for nested and discontinuous mentions)"),
        ("budget", float, "MINUTES", "the time that the command may take (default: as long as all recipes take)"),
        (
            "recipes",
            options.split_names,
            "NAMES",
            "the recipes to try, joined by commas (default: all that apply; gal only without --unlabelled)",
        ),
        ("folds", int, "N", "number of folds (default: 5, or what the budget allows; 0: measure nothing)"),
        ("repeats", int, "N", "number of repetitions (default: 2, with --dev 3, or what the budget allows)"),
        ("steps", int, "N", "optimizer steps of each training (default: 50 sqrt(n) for n sentences, at least 300)"),
        ("seed", int, "N", "the random seed (default: 0)"),
    ):
        parser.add_argument(f"--{option}", type=type_, default=argparse.SUPPRESS, metavar=metavar, help=what)
    parser.add_argument(
        "--drop-held-out",
        action="store_true",
        default=argparse.SUPPRESS,
        help="leave unlabelled sentences that are in --dev or --held-out out instead of stopping",
    )
    parser.add_argument("--force", action="store_true", help="drop what an interrupted run with other options left")
    options.add_json_option(parser)
    options.add_read_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.study.auto import auto
    from entaug.study.auto_files import read_plan_file

    given: dict[str, Any] = {name: getattr(args, name) for name in (*_REPEATED, *_GIVEN) if hasattr(args, name)}
    reading = options.read_options(args)
    reading["read_options"] = {name: value for name, value in reading["read_options"].items() if value is not None}
    given |= {name: value for name, value in reading.items() if value}
    if args.train.endswith(".toml"):
        given = {**read_plan_file(args.train), **given}
    else:
        given["train"] = args.train
    message = f"waiting: another process works on {args.output}"
    with _live_progress() as progress:
        summary = auto(
            given.pop("train"),
            args.output,
            **given,
            force=args.force,
            progress=progress,
            on_wait=lambda: output.print_message(message),
        )
    if args.json:
        output.print_json({"output": summary.output, **summary.to_dict(), "seconds": round(summary.seconds, 1)})
    else:
        _print_summary(summary)
    return output.ExitCode.OK


def _print_summary(summary: AutoSummary) -> None:
    for note in summary.notes:
        output.print_message(f"note: {note}")
    for line in summary.lines():
        output.print_message(line)
    sentences = f"{output.quantity(summary.sentences, 'gold sentence')}, {summary.augmented:,} added"
    output.print_message(
        f"wrote {summary.output}: {sentences}; tagger, report.html, plan.toml ({summary.seconds / 60:.1f} minutes)"
    )


@contextlib.contextmanager
def _live_progress() -> Iterator[Callable[[StudyProgress], None]]:
    """Show the phase and the time left of the whole: one line on a terminal, a line for each phase in a pipe."""
    if not sys.stderr.isatty():
        phase = ""
        is_estimated = False

        def print_lines(state: StudyProgress) -> None:
            nonlocal phase, is_estimated
            if state.phase != phase:
                phase = state.phase
                output.print_message(f"{phase}: {_describe(state)}")
            if state.seconds_in_all is not None and not is_estimated:
                is_estimated = True
                output.print_message(_estimate(state))

        yield print_lines
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=2, transient=True) as live:
        is_estimated = False

        def update(state: StudyProgress) -> None:
            nonlocal is_estimated
            if state.seconds_in_all is not None and not is_estimated:
                is_estimated = True
                live.console.print(_estimate(state))
            live.update(f"{state.phase}: {_describe(state)}")

        yield update


def _estimate(state: StudyProgress) -> str:
    return f"this will take about {_minutes(state.seconds_in_all or 0)} in all, for {state.steps:,} steps"


def _describe(state: StudyProgress) -> str:
    left = f", about {_minutes(state.seconds_left)} left" if state.seconds_left else ""
    return f"{state.steps_done:,} of {state.steps:,} steps{left}"


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


COMMAND = Command(
    "find out which augmentation helps on a corpus, and train with it",
    _add_options,
    _run,
    description="Measure by cross-validation which recipe of augmentation raises F1 over gold alone, and train a\n"
    "tagger with the best one; with gold alone where no gain is credible. No gain is measured on test sentences.\n"
    "Run it again after an interruption: finished trainings are not repeated.",
    is_resumable=True,
)
