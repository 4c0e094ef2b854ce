"""Output of commands: messages, JSON, progress bars."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from entaug.errors import InputWarning, escape_control_characters
from entaug.files.json_text import json_text

if TYPE_CHECKING:
    from entaug.config.registry import Registry
    from entaug.core.progress import Progress

__all__ = [
    "ExitCode",
    "as_json",
    "print_file_notes",
    "print_json",
    "print_label_counts",
    "print_message",
    "print_problems",
    "print_rejections",
    "print_relabelling",
    "print_warnings",
    "quantity",
    "show_progress",
    "show_training_progress",
    "shown_path",
]

_MAX_NOTES = 20


class ExitCode:
    """Exit codes of the program."""

    OK = 0
    INVALID = 1
    BAD_INPUT = 2
    BAD_OUTPUT = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def print_message(text: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(escape_control_characters(text, keep="\t\n") + "\n")


def print_json(value: Any, *, to_stderr: bool = False) -> None:
    """Print a value as JSON."""
    (sys.stderr if to_stderr else sys.stdout).write(as_json(value))


def as_json(value: Any) -> str:
    """Return the JSON text of a value."""
    return json_text(value, indent=True) + "\n"


def print_problems(registry: Registry[Any]) -> None:
    """Print what is wrong with the plug-ins of a list."""
    for problem in registry.problems():
        print_message(f"note: {problem}")


def quantity(count: int, noun: str) -> str:
    """Return a number with its noun, for example ``"1,200 sentences"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shown_path(path: str) -> str:
    """Return the name of an output for messages."""
    return "standard output" if path == "-" else path


def print_label_counts(counts: Mapping[str, int]) -> None:
    """Print the number of mentions of each type, a line each."""
    for label, count in sorted(counts.items()):
        print_message(f"  {label:<20} {count:>9,}")


def print_file_notes(summary: Any) -> None:
    """Print the repairs, notes and losses of reading and writing a file."""
    for name, count in sorted(summary.repaired.items()):
        print_message(f"repaired: {count:,} ({name})")
    from entaug.formats.base import note_lines

    notes = summary.notes
    if isinstance(notes, Mapping):
        notes = note_lines(notes)
    for note in notes[:_MAX_NOTES]:
        print_message(f"note: {note}")
    if len(notes) > _MAX_NOTES:
        print_message(f"note: {len(notes) - _MAX_NOTES:,} more notes; see --json")
    for name, count in sorted(getattr(summary, "lost", {}).items()):
        times = "once" if count == 1 else f"{count:,} times"
        print_message(f"note: dropped, because the output format cannot store it: {name} ({times})")


@contextlib.contextmanager
def print_warnings() -> Iterator[None]:
    """Print the notes on files that are read within the block, each once."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", InputWarning)
        show = warnings.showwarning

        def print_or_show(message: Warning | str, category: type[Warning], *args: Any, **options: Any) -> None:
            if not issubclass(category, InputWarning):
                show(message, category, *args, **options)
            elif str(message) not in printed:
                printed.add(str(message))
                print_message(f"note: {message}")

        warnings.showwarning = print_or_show
        yield


def print_rejections(rejected: Mapping[str, int]) -> None:
    """Print how many sentences each filter rejected, by reason."""
    from entaug.methods.types import REVIEWED

    by_filter: dict[str, dict[str, int]] = {}
    for text, count in rejected.items():
        name, colon, reason = text.partition(": ")
        if text == REVIEWED.reason:
            name, reason = "review", "rejected in the report"
        elif not colon:
            name, reason = "an earlier run", text
        by_filter.setdefault(name, {})[reason] = count
    for name, reasons in by_filter.items():
        ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        parts = "; ".join(f"{reason}: {count:,}" for reason, count in ordered)
        print_message(f"  rejected by {name}: {sum(reasons.values()):,} ({parts})")


def print_relabelling(relabelled: Mapping[str, int]) -> None:
    """Print how many mentions a teacher changed, by change and label."""
    by_change: dict[str, dict[str, int]] = {}
    for text, count in relabelled.items():
        change, _, label = text.partition(": ")
        by_change.setdefault(change, {})[label] = count
    for change, labels in sorted(by_change.items()):
        ordered = sorted(labels.items(), key=lambda item: (-item[1], item[0]))
        parts = ", ".join(f"{label}: {count:,}" for label, count in ordered)
        print_message(f"  {change} by the teacher: {quantity(sum(labels.values()), 'mention')} ({parts})")


# ------------------------------------------------------------------------------------------------------------- progress


@contextlib.contextmanager
def show_progress(*, quiet: bool = False) -> Iterator[Progress]:
    """Show one bar with rate and remaining time on a terminal; nothing in a pipe."""
    from entaug.core.progress import no_progress

    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.progress import TextColumn

    started: dict[str, float] = {}
    text = TextColumn("{task.completed:,.0f} {task.fields[unit]}, {task.fields[rate]:,.1f}/s")
    with _bar(TextColumn("{task.description:<11}"), text) as bar:
        task = bar.add_task("", total=None, rate=0, unit="")

        def update(stage: str, done: int, total: int | None) -> None:
            name = stage.partition(",")[0]  # "learning, loss 1.23" is one stage
            if name not in started:
                started[name] = time.monotonic()
                unit = "steps" if name == "learning" else "sentences"
                bar.reset(task, total=total, description=stage, rate=0, unit=unit)
            rate = done / max(time.monotonic() - started[name], 1e-3)
            bar.update(task, completed=done, total=total, rate=rate, description=stage)

        yield update


@contextlib.contextmanager
def show_training_progress() -> Iterator[Callable[[int, int, float], None] | None]:
    """Show one bar with the loss and the remaining time on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TextColumn

    text = TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps, loss {task.fields[loss]:.3f}")
    with _bar(TextColumn("training"), text) as bar:
        task = bar.add_task("", total=1, loss=0.0)
        yield lambda done, total, loss: bar.update(task, completed=done, total=total, loss=loss)


def _bar(title: Any, text: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (title, BarColumn(), text, TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
