"""Files of ratings: the key of a page, and what its raters exported."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from entaug.errors import InputError, ParameterError
from entaug.files.json_text import json_text
from entaug.files.streams import decode_text, read_bytes, read_line_chunks
from entaug.report.ratings.sampling import RatedItem
from entaug.report.ratings.scales import HIGHEST, LOWEST, Scale, check_scales

__all__ = ["KeyItem", "RatingKey", "Ratings", "key_text", "read_key", "read_ratings"]

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
                yield {
                    "rater": rater,
                    "item": number + 1,
                    "method": item.method,
                    "texts": list(item.texts),
                    "original": item.original,
                    "scale": scale,
                    "rating": rating,
                }


def key_text(page: str, scales: Sequence[Scale], items: Iterable[RatedItem], seed: int) -> str:
    """Return the key of a page as JSON."""
    data = {
        "entaug": _KIND,
        "version": _VERSION,
        "page": page,
        "seed": seed,
        "scales": [scale.to_dict() for scale in scales],
        "items": [
            {
                "method": item.method,
                "scales": list(item.scales),
                "texts": [text.id if text.id is not None else text.fingerprint().hex() for text in item.texts],
                "original": item.original.key if item.original is not None else None,
            }
            for item in items
        ],
    }
    return json_text(data, indent=True) + "\n"


def read_key(path: str | Path) -> RatingKey:
    """Read the key of a page."""
    path = Path(path)
    text = decode_text(read_bytes(path), path)

    def fault(message: str) -> InputError:
        return InputError(message, path=str(path), remedy=_KEY_REMEDY)

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
                message = (
                    f"item {number + 1} is rated twice on the scale {scale!r}; first in line {lines[number, scale]}"
                )
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

    def fault(message: str, remedy: str = _REMEDY) -> InputError:
        return InputError(message, path=str(path), line=line, remedy=remedy)

    if data.get("entaug") != "ratings":
        raise fault("does not begin a file of ratings")
    if data.get("version") != _VERSION:
        raise fault(f"has version {data.get('version')!r} of the format, and this entaug reads version {_VERSION}")
    if data.get("page") != key.page:
        message = f"has the ratings of another page ({data.get('page')!r:.40}, not {key.page!r})"
        raise fault(message, "name the key of that page, or leave the file out")
    rater = data.get("rater")
    if not isinstance(rater, str) or not rater.strip():
        raise fault("names no rater")
    return rater.strip()


def _read_rating(data: Mapping[str, Any], key: RatingKey, path: Path, line: int) -> tuple[int, str, int]:
    def fault(message: str) -> InputError:
        return InputError(message, path=str(path), line=line, remedy=_REMEDY)

    number, scale, rating = data.get("item"), data.get("scale"), data.get("rating")
    if type(number) is not int or not 1 <= number <= len(key.items):
        raise fault(f"the item must be a whole number from 1 to {len(key.items)}, not {number!r:.40}")
    asked = key.items[number - 1].scales
    if not isinstance(scale, str) or scale not in asked:
        raise fault(f"item {number} is not rated on {scale!r:.60}, only on {', '.join(asked)}")
    if type(rating) is not int or not LOWEST <= rating <= HIGHEST:
        raise fault(f"the rating must be a whole number from {LOWEST} to {HIGHEST}, not {rating!r:.40}")
    return number - 1, scale, rating
