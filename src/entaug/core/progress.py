"""How long-running functions report their progress."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from html import escape
from importlib import import_module
from typing import Any

_SECONDS_SHOWN = 0.2  # at least, of each state in a notebook

Progress = Callable[[str, int, int | None], None]
"""Called with the name of the current stage, the number of finished items and their total, None where unknown."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Ignore the progress: the default of parameters named ``progress``."""


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def notebook_line() -> Iterator[Callable[..., None]]:
    """Show a line below the cell of a notebook, with a bar where a share is given, until the work is done."""
    notebook: Any = import_module("IPython.display")
    shown = notebook.display(notebook.HTML(""), display_id=True)
    last = 0.0

    def update(text: str, share: float | None = None) -> None:
        nonlocal last
        if (now := time.monotonic()) - last > _SECONDS_SHOWN:
            last = now
            bar = "" if share is None else f'<progress value="{share:.3f}"></progress> '
            shown.update(notebook.HTML(f"{bar}{escape(text)}"))

    try:
        yield update
    finally:
        shown.update(notebook.HTML(""))


@contextlib.contextmanager
def show_progress(*, quiet: bool = False) -> Iterator[Progress]:
    """Show one bar with rate and remaining time on a terminal or in a notebook; nothing in a pipe."""
    if in_notebook() and not quiet:
        with notebook_line() as show:
            yield lambda stage, done, total: show(f"{stage}: {done:,}", done / total if total else None)
        return
    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    started: dict[str, float] = {}
    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}, {task.fields[rate]:,.1f}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate=0, unit="")

        def update(stage: str, done: int, total: int | None) -> None:
            name = stage.partition(",")[0]  # "training, loss 1.23" is one stage
            if name not in started:
                started[name] = time.monotonic()
                unit = "steps" if name.startswith(("learning", "training", "fold")) else "sentences"
                bar.reset(task, total=total, description=stage, rate=0, unit=unit)
            rate = done / max(time.monotonic() - started[name], 1e-3)
            bar.update(task, completed=done, total=total, rate=rate, description=stage)

        yield update


def shown_time(seconds: float) -> str:
    """Return a time in minutes, or in hours if it is long."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes:,} min" if minutes < 120 else f"{minutes / 60:,.0f} h"
