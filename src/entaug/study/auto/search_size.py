"""How many folds, recipes and repetitions a choice takes, and what fits a budget of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["FINALISTS", "TEACHER_SIZE", "SearchSize", "designs", "largest_affordable"]

TEACHER_SIZE = 3
"""Number of gold-only taggers of a fold: the baseline, and together the teacher."""
FINALISTS = 3
"""Number of recipes that are measured again in further repetitions."""
_STAGES: tuple[tuple[int, int | None, int], ...] = (
    (3, 1, 1),
    (3, 2, 1),
    (5, 2, 1),
    (5, 3, 1),
    (5, None, 1),
    (5, None, 2),
)
_DEV_STAGES: tuple[tuple[int, int | None, int], ...] = (
    (1, 1, 1),
    (1, 2, 1),
    (1, 3, 1),
    (1, None, 1),
    (1, None, 2),
    (1, None, 3),
)


@dataclass(frozen=True)
class SearchSize:
    """The size of a choice."""

    folds: int
    recipes: int
    repeats: int

    def num_trainings(self, costs: Sequence[float], teacher: float = 0.0) -> float:
        """The number of trainings on parts of the training sentences."""
        if not self.recipes:
            return 0
        base = TEACHER_SIZE + teacher
        tried = costs[: self.recipes]
        further = base + sum(sorted(tried)[-FINALISTS:])  # at most
        return self.folds * (base + sum(tried) + (self.repeats - 1) * further)

    @property
    def is_measured(self) -> bool:
        """Whether gains are measured at all."""
        return bool(self.folds and self.recipes)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return asdict(self)


def designs(num_recipes: int, *, has_dev: bool) -> list[SearchSize]:
    """The designs from the smallest to the largest."""
    result: list[SearchSize] = []
    for folds, recipes, repeats in _DEV_STAGES if has_dev else _STAGES:
        design = SearchSize(folds, min(recipes or num_recipes, num_recipes), repeats)
        if design not in result:
            result.append(design)
    return result if num_recipes else [SearchSize(1 if has_dev else 3, 0, 1)]


def largest_affordable(
    candidates: Sequence[SearchSize], num_trainings: float, costs: Sequence[float], teacher: float = 0.0
) -> SearchSize | None:
    """The largest design with at most so many trainings."""
    affordable = (design for design in reversed(candidates) if design.num_trainings(costs, teacher) <= num_trainings)
    return next(affordable, None)
