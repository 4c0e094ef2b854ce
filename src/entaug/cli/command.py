"""The definition of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Command", "add_jobs_option"]


@dataclass(frozen=True)
class Command:
    """A command of the command-line program.

    Args:
        summary: one line for the list of commands.
        add_options: adds its options to a parser; called with the parser and the program's arguments, on which
            some options depend (``--method``).
        run: runs it with the parsed arguments and returns the exit code.
        description: the text above the options in its help; by default the summary.
        is_resumable: whether an interrupted run is resumed by the same command.
    """

    summary: str
    add_options: Callable[[argparse.ArgumentParser, Sequence[str]], None]
    run: Callable[[argparse.Namespace], int]
    description: str = ""
    is_resumable: bool = False


def add_jobs_option(parser: argparse.ArgumentParser, *, default: int | None = None) -> None:
    """Add ``--jobs``.

    Args:
        parser: the parser.
        default: the number of processes where none is named; None for one for each core, for large files.
    """
    shown = "one for each core, for large files" if default is None else str(default)
    text = f"the number of processes; the result does not depend on it (default: {shown})"
    parser.add_argument("--jobs", type=int, metavar="N", default=default, help=text)
