"""The ratings that were exported from a page, read by its key; the means of methods, and how far the raters agree."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from entaug.errors import InputError, ParameterError
from entaug.files.json_text import json_text
from entaug.files.streams import decode_text, read_bytes, read_line_chunks
from entaug.metrics.agreement import krippendorff_alpha
from entaug.metrics.quality import markdown_table
from entaug.report.ratings.page import HIGHEST, LOWEST, RatedItem, Scale, check_scales

# ---------------------------------------------------------------------------------------------------------------- files

_VERSION = 1
_KIND = "rating key"
_REMEDY = "export the ratings from the page again"
_KEY_REMEDY = "name the key that entaug rate wrote beside the page"


@dataclass(frozen=True)
class KeyItem:
    """The key of an item of a page: its method, source and sentence."""

    method: str
    scales: tuple[str, ...]
    texts: tuple[str, ...] = ()
    original: str | None = None


@dataclass(frozen=True)
class RatingKey:
    """The key of a page."""

    page: str
    scales: tuple[Scale, ...]
    items: tuple[KeyItem, ...]

    @property
    def methods(self) -> list[str]:
        """The names of the methods in the order of the alphabet, gold sentences first."""
        return sorted({item.method for item in self.items}, key=lambda name: (name != "gold", name))

    @property
    def size(self) -> int:
        """The number of ratings of a rater who left none out."""
        return sum(len(item.scales) for item in self.items)


@dataclass
class Ratings:
    """The ratings of all raters of a page."""

    key: RatingKey
    raters: dict[str, dict[tuple[int, str], int]] = field(default_factory=dict)

    def rows(self) -> Iterator[dict[str, Any]]:
        """List all ratings with what was rated."""
        for rater, ratings in self.raters.items():
            for (number, scale), rating in sorted(ratings.items(), key=lambda entry: entry[0]):
                item = self.key.items[number]
                what = {"method": item.method, "texts": list(item.texts), "original": item.original}
                yield {"rater": rater, "item": number + 1, **what, "scale": scale, "rating": rating}


def _key_of(item: RatedItem) -> KeyItem:
    texts = tuple(text.id if text.id is not None else text.fingerprint().hex() for text in item.texts)
    return KeyItem(item.method, item.scales, texts, None if item.original is None else item.original.key)


def key_text(page: str, scales: Sequence[Scale], items: Iterable[RatedItem], seed: int) -> str:
    """Return the key of a page as JSON."""
    data = {
        "entaug": _KIND,
        "version": _VERSION,
        "page": page,
        "seed": seed,
        "scales": [scale.to_dict() for scale in scales],
        "items": [asdict(_key_of(item)) for item in items],
    }
    return json_text(data, indent=True) + "\n"


def read_key(path: str | Path) -> RatingKey:
    """Read the key of a page."""
    path = Path(path)
    text = decode_text(read_bytes(path), path)
    fault = partial(InputError, path=str(path), remedy=_KEY_REMEDY)
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        data = None
    if not isinstance(data, dict) or data.get("entaug") != _KIND:
        raise fault("is not the key of a page for raters")
    if data.get("version") != _VERSION:
        raise fault(f"has version {data.get('version')!r} of the format, and this entaug reads version {_VERSION}")
    page, scales, items = (data.get(name) for name in ("page", "scales", "items"))
    if not isinstance(page, str) or not isinstance(scales, list) or not isinstance(items, list) or not items:
        raise fault("has no page, no scales or no items")
    try:
        known = check_scales([Scale.from_dict(scale) for scale in scales])
    except ParameterError as error:
        raise fault(error.message) from None
    names = {scale.name for scale in known}
    for number, item in enumerate(items, start=1):
        if not _is_item(item, names):
            raise fault(f"item {number} is damaged")
    return RatingKey(
        page,
        tuple(known),
        tuple(KeyItem(i["method"], tuple(i["scales"]), tuple(i["texts"]), i["original"]) for i in items),
    )


def _is_item(item: Any, scales: set[str]) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("method"), str):
        return False
    asked, texts = item.get("scales"), item.get("texts")
    return (
        isinstance(asked, list)
        and all(isinstance(name, str) and name in scales for name in asked)
        and 0 < len(set(asked)) == len(asked)
        and isinstance(texts, list)
        and all(isinstance(text, str) for text in texts)
        and isinstance(item.get("original", 0), str | None)
    )


def read_ratings(paths: Iterable[str | Path], key: RatingKey) -> Ratings:
    """Read and merge the ratings that raters exported from a page."""
    raters: dict[str, dict[tuple[int, str], int]] = {}
    places: dict[str, str] = {}  # where the ratings of each rater begin, by the name without case
    for path in map(Path, paths):
        rater: str | None = None
        lines: dict[tuple[int, str], int] = {}
        for line, data in _read_objects(path):
            if rater is None or "entaug" in data:
                rater = _read_head(data, key, path, line)
                name = unicodedata.normalize("NFKC", rater).casefold()
                if name in places:
                    message = f"the ratings of {rater!r} are also in {places[name]}"
                    remedy = "give one file for each rater; two raters of the same name need different ones"
                    raise InputError(message, path=str(path), line=line, remedy=remedy)
                places[name] = f"{path}:{line}"
                raters[rater], lines = {}, {}
                continue
            number, scale, rating = _read_rating(data, key, path, line)
            if (number, scale) in lines:
                first = f"first in line {lines[number, scale]}"
                message = f"item {number + 1} is rated twice on the scale {scale!r}; {first}"
                raise InputError(message, path=str(path), line=line, remedy=_REMEDY)
            lines[number, scale] = line
            raters[rater][number, scale] = rating
        if rater is None:
            raise InputError("holds no ratings", path=str(path), remedy=_REMEDY)
    return Ratings(key, {name: raters[name] for name in sorted(raters)})


def _read_objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for first, lines in read_line_chunks(path):
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
            try:
                data = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"is not JSON ({error})", path=str(path), line=number, remedy=_REMEDY) from None
            if not isinstance(data, dict):
                raise InputError("is not a JSON object", path=str(path), line=number, remedy=_REMEDY)
            yield number, data


def _read_head(data: Mapping[str, Any], key: RatingKey, path: Path, line: int) -> str:
    """The name of the rater; an error if the ratings are not of this page."""
    fault = partial(InputError, path=str(path), line=line, remedy=_REMEDY)
    if data.get("entaug") != "ratings":
        raise fault("does not begin a file of ratings")
    if data.get("version") != _VERSION:
        raise fault(f"has version {data.get('version')!r} of the format, and this entaug reads version {_VERSION}")
    if data.get("page") != key.page:
        message = f"has the ratings of another page ({data.get('page')!r:.40}, not {key.page!r})"
        raise fault(message, remedy="name the key of that page, or leave the file out")
    rater = data.get("rater")
    if not isinstance(rater, str) or not rater.strip():
        raise fault("names no rater")
    return rater.strip()


def _read_rating(data: Mapping[str, Any], key: RatingKey, path: Path, line: int) -> tuple[int, str, int]:
    fault = partial(InputError, path=str(path), line=line, remedy=_REMEDY)
    number, scale, rating = data.get("item"), data.get("scale"), data.get("rating")
    if type(number) is not int or not 1 <= number <= len(key.items):
        raise fault(f"the item must be a whole number from 1 to {len(key.items)}, not {number!r:.40}")
    asked = key.items[number - 1].scales
    if not isinstance(scale, str) or scale not in asked:
        raise fault(f"item {number} is not rated on {scale!r:.60}, only on {', '.join(asked)}")
    if type(rating) is not int or not LOWEST <= rating <= HIGHEST:
        raise fault(f"the rating must be a whole number from {LOWEST} to {HIGHEST}, not {rating!r:.40}")
    return number - 1, scale, rating


# -------------------------------------------------------------------------------------------------------------- summary


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
        pairable = [unit for unit in units if len(unit) > 1]
        ordinal, interval = (krippendorff_alpha(units, level) for level in ("ordinal", "interval"))
        agreement[scale.name] = Agreement(ordinal, interval, len(pairable), sum(map(len, pairable)))
        if ordinal is None and any(units):
            why = "all ratings are equal" if pairable else "no text has the ratings of two raters"
            notes.append(f"{scale.name}: {why}, so agreement is undefined")
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
        resampled = sums[rng.integers(len(rated), size=(samples, len(rated)))].sum(1)
        low, high = map(float, np.quantile(resampled[:, 0] / resampled[:, 1], [0.025, 0.975]))
    return MeanRating(float(total / count), low, high, len(rated), int(count), expected - int(count))


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
    tables = [_mean_rows(summary), _agreement_rows(summary), _rater_rows(summary)]
    (head, means), (_, agreement), (raters_head, raters) = tables
    rows = [head, *means, *agreement, [""] * len(head), raters_head, *raters]
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
    parts = ["# Ratings\n", markdown_table(*_mean_rows(summary))]
    parts.append("Mean of all ratings with its 95 % interval from resampled texts.\n")
    parts += ["## Agreement\n", markdown_table(*_agreement_rows(summary))]
    parts.append(
        "Krippendorff's alpha is 1 for perfect agreement and 0 for agreement as by chance. Krippendorff asks for 0.8, "
        "and for 0.667 where conclusions are tentative.\n"
    )
    parts += ["## Raters\n", markdown_table(*_rater_rows(summary))]
    if summary.notes:
        parts.append("".join(f"- {note}\n" for note in summary.notes))
    return "\n".join([*parts, "## Questions\n", *questions]) + "\n"


def _numbered(anchors: Sequence[str]) -> Iterable[tuple[int, str]]:
    return zip((1, HIGHEST), anchors, strict=True) if len(anchors) == 2 else enumerate(anchors, start=1)


Table = tuple[list[str], list[list[str]]]
"""The head and the rows."""


def _mean_rows(summary: RatingSummary) -> Table:
    names = [scale.name for scale in summary.scales]
    return ["", *names], [[method, *(_cell(of[name]) for name in names)] for method, of in summary.methods.items()]


def _cell(mean: MeanRating | None) -> str:
    if mean is None:
        return "-"
    interval = "" if mean.low is None or mean.high is None else f" ({mean.low:.2f} to {mean.high:.2f})"
    return f"{mean.mean:.2f}{interval}"


def _agreement_rows(summary: RatingSummary) -> Table:
    names = [scale.name for scale in summary.scales]
    some = [summary.agreement[name] for name in names]
    return ["", *names], [
        ["alpha, ordinal", *("-" if one.ordinal is None else f"{one.ordinal:.3f}" for one in some)],
        ["alpha, interval", *("-" if one.interval is None else f"{one.interval:.3f}" for one in some)],
        ["rated by two or more", *(f"{one.items:,}" for one in some)],
    ]


def _rater_rows(summary: RatingSummary) -> Table:
    names = [scale.name for scale in summary.scales]
    return ["rater", *names], [
        [rater.name, *("-" if (mean := rater.means[name]) is None else f"{mean:.2f}" for name in names)]
        for rater in summary.raters
    ]
