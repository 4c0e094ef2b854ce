"""Progress of a choice of a recipe: the phase, the number of optimizer steps and the time left, of the whole choice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from entaug.backends.config import TrainingProgress

__all__ = ["OVERHEAD", "STUDENT", "TEACHER_ENCODER", "AutoProgress", "ProgressCallback", "Tracker"]

OVERHEAD = 1.25  # augmenting, labelling and predicting, as a share of the time for training
STUDENT, TEACHER_ENCODER = "encoder", "teacher encoder"
_FIRST_STEPS = 5  # after the first, which is slower: as many give an estimate
_clock = time.monotonic


@dataclass(frozen=True)
class AutoProgress:
    """Progress of a choice."""

    phase: str
    done: int
    total: int
    trainings: int
    seconds_left: float | None
    seconds_in_all: float | None = None


ProgressCallback = Callable[[AutoProgress], None]
"""Called during each training."""


class Tracker:
    """Counts optimizer steps and estimates the time left, from the seconds that a step takes with each encoder."""

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback
        self._start = _clock()
        self._done = self._trainings = 0  # of finished trainings, those of an earlier call too
        self._current = self._current_total = 0
        self._encoder = STUDENT
        self._phase = ""
        self._left: Counter[str] | None = None  # steps of trainings that have not begun; None as long as unknown
        self._extra = 0.0
        self._paces: dict[str, float] = {}
        self._in_all: float | None = None

    def plan(self, steps: Mapping[str, int], extra: float = 0.0) -> None:
        """Set what is left: the steps with each encoder, and other work, in steps with that of the students."""
        self._left = Counter(steps)
        self._extra = extra

    def set_pace(self, encoder: str, seconds: float) -> None:
        """Set how many seconds a step takes, where it has been measured."""
        self._paces[encoder] = seconds

    def skip(self, steps: int, encoder: str = STUDENT, extra: float = 0.0) -> None:
        """Note steps that an earlier call has done."""
        self._take(steps, encoder, extra)
        self._done += steps

    def start(self, phase: str, steps: int, encoder: str = STUDENT, extra: float = 0.0) -> TrainingProgress:
        """Begin a training or another phase."""
        self._trainings += self._current > 0
        self._done += self._current
        self._take(steps, encoder, extra)
        self._phase, self._encoder = phase, encoder
        self._current, self._current_total = 0, steps
        first: tuple[int, float] | None = None
        begun = _clock()
        self._report()

        def update(done: int, total: int, loss: float) -> None:
            nonlocal first
            del total, loss
            self._current = done
            now = _clock()
            if first is None:
                first = done, now
            elif done >= first[0] + _FIRST_STEPS:
                self.set_pace(encoder, (now - first[1]) / (done - first[0]))
            if done >= steps and encoder not in self._paces:  # too few calls for a better measure
                self.set_pace(encoder, (now - begun) / done)
            self._report()

        return update

    def _take(self, steps: int, encoder: str, extra: float) -> None:
        if self._left is not None:
            self._left[encoder] = max(0, self._left[encoder] - steps)
            self._extra = max(0.0, self._extra - extra)

    def _seconds_left(self) -> float | None:
        student = self._paces.get(STUDENT)
        if self._left is None or student is None:
            return None
        left = self._left + Counter({self._encoder: max(0, self._current_total - self._current)})
        seconds = sum(steps * self._paces.get(encoder, student) for encoder, steps in left.items())
        return OVERHEAD * seconds + self._extra * student

    def _report(self) -> None:
        done = self._done + self._current
        total = self._done + max(self._current, self._current_total) + (self._left.total() if self._left else 0)
        left = self._seconds_left()
        if self._in_all is None and left is not None:
            self._in_all = _clock() - self._start + left
        self._callback(AutoProgress(self._phase, done, total, self._trainings, left, self._in_all))
