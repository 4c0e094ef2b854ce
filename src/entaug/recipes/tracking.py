"""Progress of a choice of a recipe: the phase, the number of optimizer steps and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from entaug.backends.config import TrainingProgress

__all__ = ["AutoProgress", "ProgressCallback", "Tracker"]


@dataclass(frozen=True)
class AutoProgress:
    """Progress of a choice.

    Args:
        phase: what is being done.
        done: number of finished optimizer steps.
        total: number of all steps, as far as it is known.
        trainings: number of finished trainings.
        seconds_left: estimated time for the rest; None as long as there is no estimate.
    """

    phase: str
    done: int
    total: int
    trainings: int
    seconds_left: float | None


ProgressCallback = Callable[[AutoProgress], None]
"""Called during each training."""


class Tracker:
    """Counts optimizer steps and estimates the time left.

    Args:
        callback: called during each training.
    """

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback
        self._start = time.monotonic()
        self._done = self._skipped = self._total = self._trainings = self._current = 0
        self._phase = ""

    def expect(self, steps: int) -> None:
        """Add steps to the total.

        Args:
            steps: their number.
        """
        self._total += steps

    def skip(self, steps: int) -> None:
        """Note steps that an earlier call has done.

        Args:
            steps: their number.
        """
        self._skipped += steps

    def start(self, phase: str, steps: int) -> TrainingProgress:
        """Begin a training or another phase.

        Args:
            phase: what is done.
            steps: number of its steps.

        Returns:
            The callback for the steps.
        """
        self._trainings += self._current > 0
        self._total = max(self._total, self._done + self._current + self._skipped + steps)
        self._done += self._current
        self._phase, self._current = phase, 0
        self._report()

        def update(done: int, total: int, loss: float) -> None:
            del total, loss
            self._current = done
            self._report()

        return update

    def _report(self) -> None:
        done = self._done + self._current
        total = max(self._total, done + self._skipped)
        left = None
        if done and self._total:
            left = (time.monotonic() - self._start) / done * (total - done - self._skipped)
        self._callback(AutoProgress(self._phase, done + self._skipped, total, self._trainings, left))
