"""The ratings that were exported from a page, read by its key; the means of methods, and how far the raters agree."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import orjson

from entaug.config.params import construct, validate, with_tuples
from entaug.errors import EntaugError, InputError, ParameterError, one_line
from entaug.files.json_text import json_text
from entaug.files.streams import decode_text, read_bytes, read_line_chunks
from entaug.metrics.agreement import krippendorff_alpha
from entaug.metrics.tables import Block, Heading, Table, as_markdown
from entaug.report.ratings.page import HIGHEST, LOWEST, RatedItem, Scale, check_scales

# ---------------------------------------------------------------------------------------------------------------- files

_VERSION = 1
_KIND = "rating key"
_REMEDY = "export the ratings from the page again"
_KEY_REMEDY = "name the key that entaug rate wrote beside the page"


@dataclass(frozen=True)
class KeyItem:
    """The key of an item of a page: its method, its sentences and their source."""

    method: str
    scales: tuple[str, ...]
    texts: tuple[str, ...] = ()
    original: str | None = None

    def __post_init__(self) -> None:
        validate(self)


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
    try:
        scales = tuple(check_scales([Scale.from_dict(scale) for scale in data["scales"]]))
        items = [construct(KeyItem, "an item", with_tuples(item)) for item in data["items"]]
        return RatingKey(data["page"], scales, tuple(items))
    except (AttributeError, EntaugError, KeyError, TypeError) as error:
        raise fault(f"is damaged ({one_line(error)})") from None


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
    if samples < 1:
        raise ParameterError(f"samples must be at least 1, not {samples}", parameter="samples")
    key, given = ratings.key, ratings.raters

    def units(scale: str, methods: Sequence[str]) -> list[list[int]]:
        """The ratings of each item on a scale."""
        numbers = [n for n, item in enumerate(key.items) if scale in item.scales and item.method in methods]
        return [[of[number, scale] for of in given.values() if (number, scale) in of] for number in numbers]

    names = [scale.name for scale in key.scales]
    methods = {
        method: {name: _mean_rating(units(name, [method]), len(given), samples, seed) for name in names}
        for method in key.methods
    }
    agreement, notes = {}, []
    for name in names:
        of_scale = units(name, key.methods)
        pairable = [unit for unit in of_scale if len(unit) > 1]
        ordinal, interval = (krippendorff_alpha(of_scale, level) for level in ("ordinal", "interval"))
        agreement[name] = Agreement(ordinal, interval, len(pairable), sum(map(len, pairable)))
        if ordinal is None and any(of_scale):
            why = "all ratings are equal" if pairable else "no text has the ratings of two raters"
            notes.append(f"{name}: {why}, so agreement is undefined")
    if len(given) == 1:
        notes = ["one rater: agreement needs the files of two or more"]
    raters = []
    for rater, own in given.items():
        values = {name: [rating for (_, scale), rating in own.items() if scale == name] for name in names}
        means = {name: fmean(some) if some else None for name, some in values.items()}
        raters.append(RaterCount(rater, len(own), key.size - len(own), means))
        if len(own) < key.size:
            notes.append(f"{rater} left out {key.size - len(own):,} of {key.size:,} ratings")
    return RatingSummary(key.page, key.scales, methods, agreement, tuple(raters), tuple(notes))


def _mean_rating(units: Sequence[Sequence[int]], num_raters: int, samples: int, seed: int) -> MeanRating | None:
    # A mean is that of all ratings that were given, and its interval the quantiles of the means of resampled items with
    # all their ratings: it covers the choice of texts, not that of raters.
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
    return MeanRating(float(total / count), low, high, len(rated), int(count), len(units) * num_raters - int(count))


# --------------------------------------------------------------------------------------------------------------- tables


def ratings_table(summary: RatingSummary) -> str:
    """Format ratings as aligned columns for a terminal."""
    means, agreement, raters = _tables(summary)
    rows = [*means.rows, *agreement.rows, [""] * len(means.head), raters.head, *raters.rows]
    return Table(means.head, rows).as_text() + "".join(f"note: {note}\n" for note in summary.notes)


def ratings_markdown(summary: RatingSummary) -> str:
    """Format ratings as a Markdown document with the questions that were asked."""
    means, agreement, raters = _tables(summary)
    questions = []
    for scale in summary.scales:
        values = (LOWEST, HIGHEST) if len(scale.anchors) == 2 else range(LOWEST, HIGHEST + 1)
        anchors = (f"{value} {anchor}" for value, anchor in zip(values, scale.anchors, strict=True))
        questions.append(f"**{scale.name}**: {scale.question} {'; '.join(anchors)}")
    blocks: list[Block] = [
        Heading("Ratings", 1),
        means,
        "Mean of all ratings with its 95 % interval from resampled texts.",
        Heading("Agreement"),
        agreement,
        _ALPHA,
        Heading("Raters"),
        raters,
        list(summary.notes),
        Heading("Questions"),
        questions,
    ]
    return as_markdown(filter(None, blocks))


_ALPHA = (
    "Krippendorff's alpha is 1 for perfect agreement and 0 for agreement as by chance. Krippendorff asks for 0.8, "
    "and for 0.667 where conclusions are tentative."
)


def _tables(summary: RatingSummary) -> tuple[Table, Table, Table]:
    """The means of the methods, the agreement, and the means of the raters."""
    names = [scale.name for scale in summary.scales]
    some = [summary.agreement[name] for name in names]
    agreement = [
        ["alpha, ordinal", *("-" if one.ordinal is None else f"{one.ordinal:.3f}" for one in some)],
        ["alpha, interval", *("-" if one.interval is None else f"{one.interval:.3f}" for one in some)],
        ["rated by two or more", *(f"{one.items:,}" for one in some)],
    ]
    means = [[method, *(_cell(of[name]) for name in names)] for method, of in summary.methods.items()]
    raters = [[rater.name, *(_number(rater.means[name]) for name in names)] for rater in summary.raters]
    return Table(["", *names], means), Table(["", *names], agreement), Table(["rater", *names], raters)


def _cell(mean: MeanRating | None) -> str:
    if mean is None:
        return "-"
    interval = "" if mean.low is None else f" ({mean.low:.2f} to {mean.high:.2f})"
    return f"{mean.mean:.2f}{interval}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
