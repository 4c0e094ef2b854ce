"""The definition of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Command", "add_jobs_option"]


@dataclass(frozen=True)
class Command:
    """A command of the command-line program."""

    summary: str
    add_options: Callable[[argparse.ArgumentParser, Sequence[str]], None]
    run: Callable[[argparse.Namespace], int]
    description: str = ""
    is_resumable: bool = False


def add_jobs_option(parser: argparse.ArgumentParser, *, default: int | None = None) -> None:
    """Add ``--jobs``."""
    shown = "one for each core, for large files" if default is None else str(default)
    text = f"the number of processes; the result does not depend on it (default: {shown})"
    parser.add_argument("--jobs", type=int, metavar="N", default=default, help=text)
