"""What a command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """A command of the program.

    Args:
        summary: what it does, one line.
        add_options: adds its options to a parser; called with the parser and the arguments of the program, of which
            some options depend (``--method``).
        run: carries it out with the parsed arguments and returns the exit code.
        description: the text above its options; by default the summary.
        is_resumable: whether an interrupted run is resumed by the same command.
    """

    summary: str
    add_options: Callable[[argparse.ArgumentParser, Sequence[str]], None]
    run: Callable[[argparse.Namespace], int]
    description: str = ""
    is_resumable: bool = False
