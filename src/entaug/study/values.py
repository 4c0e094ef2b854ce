"""The values that keys of a plan may take: labels, seeds, files, and amounts with their meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

from entaug.config.params import Check
from entaug.errors import ParameterError

__all__ = [
    "BASELINES",
    "ENSEMBLE",
    "PATIENCE",
    "Amounts",
    "Baselines",
    "ByCorpus",
    "CorpusName",
    "Grid",
    "InputFile",
    "Label",
    "LanguageCode",
    "Seeds",
    "SubsetSeeds",
    "TestFiles",
    "are_distinct",
    "copies_for",
    "patience_amounts",
]

PATIENCE = "patience"
"""The amounts of a method that are chosen by the patience rule."""
BASELINES = ("gold", "gold-steps", "duplicate")
"""The arms without a method."""
ENSEMBLE = "ensemble"
"""The teacher itself as an arm."""
_MAX_COPIES = 10  # the largest amount that the patience rule tries: CASSI, section 3.2.2
_LARGE = 1000  # sentences from which on the patience rule starts with quarters


def _is_label(value: str) -> bool:
    return bool(value.strip()) and "|" not in value and value.isprintable() and len(value.encode()) <= 100


def _is_corpus_name(value: str) -> bool:
    return _is_label(value) and not re.search(r"[/\\]", value) and not value.startswith(".")


def _are_seeds(value: Collection[object]) -> bool:
    return are_distinct(value, lambda seed: type(seed) is int and abs(seed) < 2**63)


def _are_amounts(value: object) -> bool:
    return value == PATIENCE or (
        isinstance(value, tuple) and are_distinct(value, lambda x: type(x) in (int, float) and 0 < x <= 100)
    )


def are_distinct(values: Collection[object], is_valid: Callable[[Any], bool]) -> bool:
    """Whether values are distinct, valid, and at least one."""
    return bool(values) and all(map(is_valid, values)) and len(set(values)) == len(values)


def _is_corpus(path: Path) -> bool:
    try:
        exists = path.is_file() or path.is_dir()
    except OSError:  # for example a name that is too long
        exists = False
    if not exists:
        raise ParameterError(
            f"there is no file or folder {path}", remedy="paths are relative to the folder of the plan"
        )
    return True


_LABEL = "a text of at most 100 bytes without | and control characters"
Label = Annotated[str, Check(_is_label, _LABEL)]
CorpusName = Annotated[str, Check(_is_corpus_name, f"{_LABEL} that can begin a file name: no slashes, no . in front")]
_SEEDS = "a list of distinct integers below 2^63"
Seeds = Annotated[tuple[int, ...], Check(_are_seeds, _SEEDS)]
Amounts = Annotated[Any, Check(_are_amounts, f'a list of distinct numbers above 0 up to 100, or "{PATIENCE}"')]
LanguageCode = Annotated[str, Check(re.compile(r"[a-z]{2,3}([-_][A-Za-z]+)?").fullmatch, "a code as de or de_DE")]
ByCorpus = Annotated[
    Mapping[str, Any],
    Check(lambda tables: all(isinstance(table, dict) for table in tables.values()), "tables of parameters by corpus"),
]
Grid = Annotated[
    Mapping[str, Any],
    Check(lambda grid: all(isinstance(values, list) and values for values in grid.values()), "lists of values by name"),
]
Baselines = Annotated[
    tuple[str, ...],
    Check(
        lambda value: "gold" in value and set(value) <= {*BASELINES, ENSEMBLE},
        f"a list with gold, out of {', '.join((*BASELINES, ENSEMBLE))}",
    ),
]
InputFile = Annotated[Path, Check(_is_corpus, "an existing file or folder")]
"""A corpus: a file, or the folder of a format of folders."""
TestFiles = Annotated[
    Mapping[str, Path],
    Check(
        lambda files: bool(files) and all(_is_corpus_name(name) and _is_corpus(path) for name, path in files.items()),
        "existing files or folders by name",
    ),
]
SubsetSeeds = Annotated[Any, Check(lambda value: _are_seeds(value if isinstance(value, tuple) else (value,)), _SEEDS)]


def patience_amounts(size: int) -> list[float]:
    """The amounts that the patience rule tries, in order."""
    return [*([0.25, 0.5, 0.75] if size >= _LARGE else []), *map(float, range(1, _MAX_COPIES + 1))]


def copies_for(amount: float, amounts: tuple[float, ...] | str) -> int:
    """The number of copies that are generated at once for an amount, so that amounts share them."""
    if isinstance(amounts, str):
        return next(step for step in (1, 3, 6, _MAX_COPIES) if step >= amount)
    return math.ceil(max(amounts))
