"""The recipes that ``entaug auto`` chooses from: which sentences are added, with which labels, in which order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from entaug.errors import ParameterError, UnknownNameError
from entaug.methods import METHODS

__all__ = ["GOLD", "RECIPES", "TEACHER", "Recipe", "applicable_recipes", "find_recipe"]

GOLD = "gold"
"""The name of training on the gold sentences alone."""
TEACHER = "teacher"
"""The name of training a teacher with another encoder on the gold sentences."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way to train with more than the gold sentences."""

    name: str
    prior_gain: float
    prior_gain_larger: float | None = None
    method: str | None = None
    unlabelled: bool = False
    soft: bool = False
    schedule: Literal["mixed", "staged"] = "staged"
    copies: int = 5
    cost: float = 1.0
    replaces_text: bool = False

    def prior(self, *, is_teacher_larger: bool) -> float:
        """Return the prior gain."""
        larger = self.prior_gain_larger if is_teacher_larger else None
        return self.prior_gain if larger is None else larger

    @property
    def has_teacher(self) -> bool:
        """Whether sentences are labelled by a teacher."""
        return self.unlabelled or self.soft

    @property
    def summary(self) -> str:
        """A description in one line."""
        parts = ["unlabelled sentences"] if self.unlabelled else []
        parts += [f"sentences of {self.method}"] if self.method else []
        if self.soft:
            labels = "soft labels of a teacher"
        else:
            labels = "predicted labels" if self.unlabelled else "the labels of the method"
        order = "first, then gold alone" if self.schedule == "staged" else "mixed with gold in each batch"
        return f"{' and '.join(parts)} with {labels}, {order}"


# In the order in which a small budget tries them. Prior gains are means of the ten settings of
# benchmarks/results/gains.md, rounded down to half a point: "self" with a larger teacher (+6.6), "self" and "self-hard"
# (+3.0, +2.2) over three seeds, "gal" with a larger teacher and "mr" with one seed (+4.3, -0.6), "mr-soft" with one in
# two settings (+0.1). The others are not in that study; their values are guesses from the most similar ones. They
# matter where the measurement is noisy, or missing.
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="self", prior_gain=3.0, prior_gain_larger=6.5, unlabelled=True, soft=True),
        Recipe(name="self-hard", prior_gain=2.0, unlabelled=True),
        Recipe(name="self+mr", prior_gain=2.0, unlabelled=True, method="mr", soft=True),
        Recipe(name="self-mixed", prior_gain=1.5, unlabelled=True, soft=True, schedule="mixed"),
        Recipe(
            name="gal",
            prior_gain=1.5,
            prior_gain_larger=4.0,
            method="gal",
            soft=True,
            copies=10,
            cost=6,
            replaces_text=True,
        ),
        Recipe(name="mr-soft", prior_gain=0.0, method="mr", soft=True),
        Recipe(name="lm", prior_gain=0.0, method="lm"),
        Recipe(name="mr-soft-mixed", prior_gain=0.0, method="mr", soft=True, schedule="mixed"),
        Recipe(name="sis", prior_gain=0.0, method="sis"),
        Recipe(name="mr", prior_gain=-1.0, method="mr"),
        Recipe(name="mr-mixed", prior_gain=-1.0, method="mr", schedule="mixed"),
    )
}
"""The recipes by name, in the order in which a small budget tries them."""


def find_recipe(name: str) -> Recipe:
    """Return the recipe of a name."""
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, RECIPES)
    return RECIPES[name]


def applicable_recipes(
    names: Sequence[str] | None,
    *,
    has_unlabelled: bool,
    has_probabilities: bool,
    shapes: Collection[str] = (),
    available: Collection[str] | None = None,
) -> tuple[list[Recipe], list[str]]:
    """Return the recipes that can be tried on a corpus."""
    if names is None:
        wanted = {recipe.name for recipe in RECIPES.values() if not (recipe.replaces_text and has_unlabelled)}
    else:
        wanted = {find_recipe(name).name for name in names}
    recipes, notes = [], []
    for recipe in RECIPES.values():
        if recipe.name not in wanted:
            continue
        reason, is_notable = _obstacle(recipe, has_unlabelled, has_probabilities, shapes, available)
        if not reason and names is None and recipe.name == "self-hard" and has_probabilities:
            continue  # soft labels take its place
        if not reason:
            recipes.append(recipe)
        elif names is not None or is_notable:
            notes.append(f"the recipe {recipe.name} is not tried: {reason}")
    if names and not recipes:
        raise ParameterError(f"none of the recipes can be tried ({'; '.join(notes)})", parameter="recipes")
    return recipes, notes


def _obstacle(
    recipe: Recipe,
    has_unlabelled: bool,
    has_probabilities: bool,
    shapes: Collection[str],
    available: Collection[str] | None,
) -> tuple[str, bool]:
    """Why a recipe cannot be tried, and whether the user should hear of it; empty if it can."""
    if recipe.unlabelled and not has_unlabelled:
        return "it needs unlabelled text", False
    if recipe.soft and not has_probabilities:
        return "its soft labels need a tagger that gives probabilities", False
    if recipe.method:
        info: Any = METHODS[recipe.method].info
        if missing := [shape for shape in shapes if not getattr(info, shape)]:
            return f"{recipe.method} does not support {' or '.join(missing)} mentions", True
        if available is not None and recipe.method not in available:
            return (
                f"no model of {recipe.method} for this corpus is on this machine (entaug list methods {recipe.method})",
                True,
            )
    return "", False
