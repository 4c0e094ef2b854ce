"""The result of a choice of a recipe: as plain values, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from entaug.study.auto.catalogue import GOLD
from entaug.study.auto.search_size import SearchSize
from entaug.study.auto.selection import LEAST_GAIN, RISK, TOLERATED_LOSS, Gain

__all__ = ["AutoSummary"]


@dataclass
class AutoSummary:
    """Result of `entaug.auto`."""

    input: str
    output: str
    sentences: int
    augmented: int = 0
    recipe: str = GOLD
    design: SearchSize = field(default_factory=lambda: SearchSize(1, 0, 1))
    measured_on: str = "cross-validation"
    steps: int = 0
    gold_f1: float | None = None
    teacher_f1: float | None = None
    gains: Sequence[Gain] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def chosen(self) -> Gain | None:
        """The gain of the chosen recipe; None for gold alone."""
        return next((gain for gain in self.gains if gain.recipe == self.recipe), None)

    @property
    def how(self) -> str:
        """The way in which gains were measured."""
        if self.measured_on == "nothing":
            return "on other corpora; nothing was measured on this one"
        if self.measured_on == "dev":
            return f"on the dev sentences with {_times(self.design.repeats, 'seed')}"
        again = f", repeated {self.design.repeats} times" if self.design.repeats > 1 else ""
        return f"by {self.design.folds}-fold cross-validation{again}"

    def lines(self) -> list[str]:
        """Return what to expect, in plain words."""
        if not self.gains:
            return ["nothing was measured: the tagger is trained on gold alone"]
        if self.gold_f1 is None:
            lines = ["nothing was measured: gains to expect are those on other corpora"]
        else:
            lines = [f"gold alone: F1 {self.gold_f1:.1f}, measured {self.how}"]
        if self.teacher_f1 is not None:
            lines.append(f"the teacher, with its own encoder: F1 {self.teacher_f1:.1f}")
        lines += [
            f"  {gain.recipe:<14} expect {gain.expected:+.1f} ({gain.low:.1f} to {gain.high:.1f}){_measured(gain)}"
            for gain in sorted(self.gains, key=lambda gain: -gain.expected)
        ]
        if (chosen := self.chosen) is not None:
            gain = f"{chosen.expected:+.1f} F1 ({chosen.low:.1f} to {chosen.high:.1f})"
            lines.append(f"chosen: {chosen.recipe}; expect {gain} over gold alone, measured {self.how}")
        else:
            lines.append(
                "chosen: gold alone; no recipe shows a gain that is credible (an expected gain of at least "
                f"{LEAST_GAIN:g}, and at most {100 * RISK:g} % likely to lose more than {TOLERATED_LOSS:g} point)"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON; without the duration and the folder of the output."""
        chosen = self.chosen
        return {
            "input": self.input,
            "sentences": self.sentences,
            "recipe": self.recipe,
            "augmented": self.augmented,
            "steps": self.steps,
            "expected_gain": None if chosen is None else chosen.expected,
            "interval": None if chosen is None else [chosen.low, chosen.high],
            "measured": {
                "on": self.measured_on,
                **self.design.to_dict(),
                "gold_f1": self.gold_f1,
                "teacher_f1": self.teacher_f1,
            },
            "gains": [asdict(gain) for gain in self.gains],
            "files": dict(self.files),
            "notes": self.notes,
            "text": self.lines(),
        }


def _measured(gain: Gain) -> str:
    if gain.measured is None:
        return ""
    return f"; measured {gain.measured:+.1f} with a standard error of {gain.standard_error:.1f}"


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
