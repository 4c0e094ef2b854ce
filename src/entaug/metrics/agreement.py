"""Agreement of raters: Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from entaug.errors import ParameterError

Level = Literal["nominal", "ordinal", "interval"]
"""What the differences of two ratings mean: only whether they are equal, how many ratings lie between them, or their
distance."""


def krippendorff_alpha(units: Iterable[Iterable[float | None]], level: Level = "ordinal") -> float | None:
    """Compute Krippendorff's alpha, the agreement of any number of raters with or without missing ratings.

    It is 1 for perfect agreement, 0 for agreement as by chance, and negative for systematic disagreement.

    Args:
        units: the ratings of each rated unit, in any order; None is a missing rating.
        level: the level of measurement.

    Returns:
        Alpha; None where it is undefined, because no unit has two ratings or all ratings of such units are equal.

    Raises:
        ParameterError: there is no such level, or a rating is not a finite number.

    Reference:
        Klaus Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, https://repository.upenn.edu/asc_papers/43

    Example:
        >>> round(krippendorff_alpha([[1, 1], [2, 2], [5, 4]]), 3)
        0.949
        >>> krippendorff_alpha([[1, 1, None], [3], [1, 1]]) is None
        True
    """
    import numpy as np

    if level not in get_args(Level):
        remedy = f"choose from {', '.join(get_args(Level))}"
        raise ParameterError(f"unknown level of measurement: {level!r}", parameter="level", remedy=remedy)
    given = [[rating for rating in unit if rating is not None] for unit in units]
    pairable = [np.array(unit, dtype=np.float64) for unit in given if len(unit) > 1]
    if not pairable:
        return None
    values, positions = np.unique(np.concatenate(pairable), return_inverse=True)
    if not np.isfinite(values).all():
        raise ParameterError("ratings must be finite numbers", remedy="use None for a missing rating")
    # How often each unit has each value, and from these how often each two values stand in one unit.
    numbers = np.repeat(np.arange(len(pairable)), [len(unit) for unit in pairable])
    counts = np.zeros((len(pairable), len(values)))
    np.add.at(counts, (numbers, positions.ravel()), 1)
    weights = 1 / (counts.sum(1) - 1)
    coincidences = (counts * weights[:, None]).T @ counts - np.diag(weights @ counts)
    totals = counts.sum(0)
    if level == "nominal":
        distances = 1 - np.eye(len(values))
    else:  # ordinal: the number of ratings from the middle of one value to the middle of another
        places = values if level == "interval" else np.cumsum(totals) - totals / 2
        distances = (places[:, None] - places) ** 2
    expected = totals @ distances @ totals
    if not expected:
        return None
    return float(1 - (totals.sum() - 1) * (coincidences * distances).sum() / expected)
