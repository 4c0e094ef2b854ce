"""The scales on which people rate augmented sentences: packaged ones, and those of a file of the user."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from entaug.errors import InputError, ParameterError, UnknownNameError
from entaug.files.streams import decode_text, read_bytes

__all__ = [
    "DEFAULT_SCALES",
    "HIGHEST",
    "LOWEST",
    "Judges",
    "Scale",
    "check_scales",
    "packaged_scales",
    "packaged_scales_text",
    "read_scales",
]

LOWEST, HIGHEST = 1, 5
"""The range of a rating."""
DEFAULT_SCALES = ("fluent", "right", "diverse")
"""The scales of a page by default."""

Judges = Literal["text", "pair", "group"]
"""What a rating judges: a text by itself, a text and its original, or all texts of an original together."""

_REMEDY = "see: entaug list scales"


@dataclass(frozen=True)
class Scale:
    """A scale from 1 to 5."""

    name: str
    question: str
    anchors: tuple[str, ...]
    judges: Judges = "text"

    def __post_init__(self) -> None:
        for what, text, longest in (("name", self.name, 40), ("question", self.question, 500)):
            if not isinstance(text, str) or not text.strip() or len(text) > longest or not text.isprintable():
                message = f"the {what} of a scale must be one line of 1 to {longest} characters, not {text!r:.60}"
                raise ParameterError(message, parameter=what)
        is_text = all(isinstance(anchor, str) and anchor.strip() and anchor.isprintable() for anchor in self.anchors)
        if len(self.anchors) not in (2, HIGHEST) or not is_text:
            message = f"the anchors of the scale {self.name!r} must be 2 or {HIGHEST} texts of one line"
            raise ParameterError(message, parameter="anchors", remedy="give those of 1 and 5, or of each rating")
        if self.judges not in get_args(Judges):
            message = f"the scale {self.name!r} judges {self.judges!r}"
            raise ParameterError(message, parameter="judges", remedy=f"choose from {', '.join(get_args(Judges))}")

    def to_dict(self) -> dict[str, Any]:
        """Return the scale as a dictionary that can be written as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Scale:
        """Create a scale from a dictionary, as files hold it."""
        known = {"name", "question", "anchors", "judges"}
        if not isinstance(data, dict) or not {"name", "question", "anchors"} <= set(data) <= known:
            remedy = "give question, anchors and, if it is not a text by itself, judges"
            raise ParameterError(f"not a scale: {data!r:.60}", remedy=remedy)
        if not isinstance(data["anchors"], list | tuple):
            raise ParameterError(f"the anchors of the scale {data['name']!r} must be a list of texts")
        return cls(**{**data, "anchors": tuple(data["anchors"])})


def packaged_scales_text() -> str:
    """Return the file of the packaged scales, a model for files of users."""
    return files("entaug.report.ratings").joinpath("scales.toml").read_text("utf-8")


def packaged_scales() -> dict[str, Scale]:
    """Return the packaged scales by name."""
    table = tomllib.loads(packaged_scales_text())
    return {name: Scale.from_dict({"name": name, **keys}) for name, keys in table.items()}


def read_scales(value: str | Path) -> list[Scale]:
    """Return the scales that an option names."""
    if not str(value).endswith(".toml"):
        packaged = packaged_scales()
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        for name in names:
            if name not in packaged:
                raise UnknownNameError("scale", name, packaged)
        return check_scales([packaged[name] for name in names])
    path = Path(value)
    text = decode_text(read_bytes(path), path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not a TOML file ({error})", path=str(path), remedy=_REMEDY) from None
    scales = []
    for name, keys in table.items():
        try:
            scales.append(Scale.from_dict({**keys, "name": name} if isinstance(keys, dict) else keys))
        except ParameterError as error:
            raise InputError(error.message, path=str(path), line=_line(text, name), remedy=error.remedy) from None
    try:
        return check_scales(scales)
    except ParameterError as error:
        raise InputError(error.message, path=str(path), remedy=error.remedy) from None


def check_scales(scales: Sequence[Scale]) -> list[Scale]:
    """Check that scales can stand on one page."""
    if not scales:
        raise ParameterError("no scale is given", remedy=_REMEDY)
    names = [scale.name for scale in scales]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f"the scale {twice!r} is given twice", remedy="give it once")
    groups = [scale.name for scale in scales if scale.judges == "group"]
    if groups and len(groups) < len(scales):
        other = next(scale.name for scale in scales if scale.judges != "group")
        message = f"the scale {groups[0]!r} judges groups of texts, and {other!r} single texts"
        raise ParameterError(message, remedy="write two pages")
    return list(scales)


def _line(text: str, name: str) -> int | None:
    """The line of the table of a scale; None if it is not plain to see."""
    pattern = re.compile(rf"""^\s*\[?\s*["']?{re.escape(name)}["']?\s*[\]=]""", re.MULTILINE)
    match = pattern.search(text)
    return text.count("\n", 0, match.end()) + 1 if match else None
