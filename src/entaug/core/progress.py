"""How long-running functions report their progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called with the name of the current stage, the number of finished items and their total, None where unknown."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Ignore the progress: the default of parameters named ``progress``."""
