"""What the ratings say: the mean of each method on each scale, and how far the raters agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from entaug.errors import ParameterError
from entaug.metrics.agreement import krippendorff_alpha
from entaug.metrics.quality import markdown_table
from entaug.report.ratings.files import Ratings
from entaug.report.ratings.scales import HIGHEST, Scale

__all__ = [
    "Agreement",
    "MeanRating",
    "RaterCount",
    "RatingSummary",
    "ratings_markdown",
    "ratings_table",
    "summarize_ratings",
]

_CHUNK = 256  # resamples computed at once, which bounds the memory


@dataclass(frozen=True)
class MeanRating:
    """The mean rating of a method on a scale."""

    mean: float
    low: float | None
    high: float | None
    items: int
    ratings: int
    missing: int


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters on a scale."""

    ordinal: float | None
    interval: float | None
    items: int
    ratings: int


@dataclass(frozen=True)
class RaterCount:
    """The number of items that a rater has rated."""

    name: str
    ratings: int
    missing: int
    means: Mapping[str, float | None]


@dataclass(frozen=True)
class RatingSummary:
    """Summary of the ratings of a page."""

    page: str
    scales: tuple[Scale, ...]
    methods: Mapping[str, Mapping[str, MeanRating | None]]
    agreement: Mapping[str, Agreement]
    raters: tuple[RaterCount, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary that can be written as JSON."""
        return asdict(self)


def summarize_ratings(ratings: Ratings, *, samples: int = 1000, seed: int = 0) -> RatingSummary:
    """Compute the mean rating of each method and the agreement of the raters."""
    # A mean is that of all ratings that were given, and its interval the quantiles of the means of resampled items with
    # all their ratings: it covers the choice of texts, not that of raters.
    if samples < 1:
        raise ParameterError(f"samples must be at least 1, not {samples}", parameter="samples")
    key = ratings.key
    methods: dict[str, dict[str, MeanRating | None]] = {}
    for method in key.methods:
        methods[method] = {}
        for scale in key.scales:
            numbers = [n for n, i in enumerate(key.items) if i.method == method and scale.name in i.scales]
            units = [_unit(ratings, number, scale.name) for number in numbers]
            expected = len(units) * len(ratings.raters)
            methods[method][scale.name] = _mean_rating(units, expected, samples, seed)
    agreement, notes = {}, []
    for scale in key.scales:
        units = [_unit(ratings, n, scale.name) for n, item in enumerate(key.items) if scale.name in item.scales]
        agreement[scale.name] = _agreement(units)
        if note := _note_on_agreement(scale.name, agreement[scale.name], units):
            notes.append(note)
    if len(ratings.raters) == 1:
        notes = ["one rater: agreement needs the files of two or more"]
    raters = tuple(_count(ratings, name) for name in ratings.raters)
    notes += [f"{r.name} left out {r.missing:,} of {key.size:,} ratings" for r in raters if r.missing]
    return RatingSummary(key.page, key.scales, methods, agreement, raters, tuple(notes))


def _unit(ratings: Ratings, number: int, scale: str) -> list[int]:
    """The ratings of an item on a scale."""
    return [given[number, scale] for given in ratings.raters.values() if (number, scale) in given]


def _mean_rating(units: Iterable[Sequence[int]], expected: int, samples: int, seed: int) -> MeanRating | None:
    import numpy as np

    rated = [unit for unit in units if unit]
    if not rated:
        return None
    sums = np.array([(sum(unit), len(unit)) for unit in rated], dtype=np.float64)
    total, count = sums.sum(0)
    low = high = None
    if len(rated) > 1:
        rng = np.random.default_rng(seed)
        means = np.empty(samples)
        for start in range(0, samples, _CHUNK):
            drawn = rng.integers(len(rated), size=(min(_CHUNK, samples - start), len(rated)))
            resampled = sums[drawn].sum(1)
            means[start : start + len(drawn)] = resampled[:, 0] / resampled[:, 1]
        low, high = map(float, np.quantile(means, [0.025, 0.975]))
    return MeanRating(float(total / count), low, high, len(rated), int(count), expected - int(count))


def _agreement(units: Sequence[Sequence[int]]) -> Agreement:
    pairable = [unit for unit in units if len(unit) > 1]
    return Agreement(
        krippendorff_alpha(units, "ordinal"),
        krippendorff_alpha(units, "interval"),
        len(pairable),
        sum(map(len, pairable)),
    )


def _note_on_agreement(scale: str, agreement: Agreement, units: Iterable[Sequence[int]]) -> str | None:
    if agreement.ordinal is not None or not any(units):
        return None
    if not agreement.items:
        return f"{scale}: no text has the ratings of two raters, so agreement is undefined"
    return f"{scale}: all ratings are equal, so agreement is undefined"


def _count(ratings: Ratings, name: str) -> RaterCount:
    given = ratings.raters[name]
    of_scale = {
        scale.name: [rating for (_, of), rating in given.items() if of == scale.name] for scale in ratings.key.scales
    }
    means = {scale: sum(values) / len(values) if values else None for scale, values in of_scale.items()}
    return RaterCount(name, len(given), ratings.key.size - len(given), means)


# --------------------------------------------------------------------------------------------------------------- tables


def ratings_table(summary: RatingSummary) -> str:
    """Format ratings as aligned columns for a terminal."""
    rows = [
        *_mean_rows(summary),
        *_agreement_rows(summary)[1:],
        [""] * (len(summary.scales) + 1),
        *_rater_rows(summary),
    ]
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in [*lines, *(f"note: {note}" for note in summary.notes)])


def ratings_markdown(summary: RatingSummary) -> str:
    """Format ratings as a Markdown document with the questions that were asked."""
    questions = [
        f"- **{scale.name}**: {scale.question} "
        + "; ".join(f"{number} {anchor}" for number, anchor in _numbered(scale.anchors))
        for scale in summary.scales
    ]
    parts = ["# Ratings\n", _markdown(_mean_rows(summary))]
    parts.append("Mean of all ratings with its 95 % interval from resampled texts.\n")
    parts += ["## Agreement\n", _markdown(_agreement_rows(summary))]
    parts.append(
        "Krippendorff's alpha is 1 for perfect agreement and 0 for agreement as by chance. Krippendorff asks for 0.8, "
        "and for 0.667 where conclusions are tentative.\n"
    )
    parts += ["## Raters\n", _markdown(_rater_rows(summary))]
    if summary.notes:
        parts.append("".join(f"- {note}\n" for note in summary.notes))
    return "\n".join([*parts, "## Questions\n", *questions]) + "\n"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(rows[0], rows[1:])


def _numbered(anchors: Sequence[str]) -> Iterable[tuple[int, str]]:
    return zip((1, HIGHEST), anchors, strict=True) if len(anchors) == 2 else enumerate(anchors, start=1)


def _mean_rows(summary: RatingSummary) -> list[list[str]]:
    names = [scale.name for scale in summary.scales]
    return [["", *names], *([method, *(_cell(of[name]) for name in names)] for method, of in summary.methods.items())]


def _cell(mean: MeanRating | None) -> str:
    if mean is None:
        return "-"
    interval = "" if mean.low is None or mean.high is None else f" ({mean.low:.2f} to {mean.high:.2f})"
    return f"{mean.mean:.2f}{interval}"


def _agreement_rows(summary: RatingSummary) -> list[list[str]]:
    names = [scale.name for scale in summary.scales]
    some = [summary.agreement[name] for name in names]
    return [
        ["", *names],
        ["alpha, ordinal", *("-" if one.ordinal is None else f"{one.ordinal:.3f}" for one in some)],
        ["alpha, interval", *("-" if one.interval is None else f"{one.interval:.3f}" for one in some)],
        ["rated by two or more", *(f"{one.items:,}" for one in some)],
    ]


def _rater_rows(summary: RatingSummary) -> list[list[str]]:
    names = [scale.name for scale in summary.scales]
    return [
        ["rater", *names],
        *(
            [rater.name, *("-" if (mean := rater.means[name]) is None else f"{mean:.2f}" for name in names)]
            for rater in summary.raters
        ),
    ]
