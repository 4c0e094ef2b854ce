"""The plan of a finished choice, a TOML file from which the choice can be repeated."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from entaug.errors import InputError
from entaug.files.mention_lists import parse_specification
from entaug.study.auto.inputs import file_digest

__all__ = ["PLAN_KEYS", "read_plan_file", "to_plan_text"]

PLAN_KEYS = (
    "train",
    "unlabelled",
    "dev",
    "held_out",
    "drop_held_out",
    "mentions",
    "encoder",
    "teacher_encoder",
    "tagger",
    "recipes",
    "folds",
    "repeats",
    "steps",
    "seed",
    "repair",
    "from_format",
    "read_options",
)
"""The keys of a plan: arguments of `entaug.auto`."""
_DIGESTS = "digests"


def to_plan_text(arguments: Mapping[str, Any], digests: Mapping[str, str], folder: Path, recipe: str) -> str:
    """Write a plan."""
    lines = [f"# To repeat this choice: entaug auto plan.toml -o NEW-FOLDER. It chose: {recipe}"]
    tables: list[tuple[str, Mapping[str, Any]]] = []
    for name in PLAN_KEYS:
        value = arguments.get(name)
        if value is None or (name != "recipes" and (value is False or value in ((), [], {}))):
            continue
        if isinstance(value, Mapping):
            tables.append((name, value))
            continue
        if name in ("train", "dev"):
            value = _relative(value, folder)
        elif name in ("unlabelled", "held_out"):
            value = [_relative(path, folder) for path in value]
        elif name == "mentions":
            value = [_relative_list(specification, folder) for specification in value]
        lines.append(f"{name} = {_to_toml(value)}")
    tables.append((_DIGESTS, {_relative(path, folder): digest for path, digest in digests.items()}))
    for name, table in tables:
        lines += ["", f"[{name}]", *(f"{_to_toml(str(key))} = {_to_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def read_plan_file(path: str | Path) -> dict[str, Any]:
    """Read a plan."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"no TOML ({error})", path=str(path), remedy="name a training file, or a plan") from None
    digests = table.pop(_DIGESTS, {})
    if unknown := sorted(table.keys() - set(PLAN_KEYS)):
        raise InputError(f"unknown key {unknown[0]!r}", path=str(path), remedy=f"there are: {', '.join(PLAN_KEYS)}")
    if not isinstance(table.get("train"), str) or not isinstance(digests, dict):
        raise InputError("names no training file", path=str(path), remedy='add train = "FILE"')
    for name in ("unlabelled", "held_out", "mentions", "recipes"):
        value = table.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"{name} must be a list of strings", path=str(path), remedy="correct the plan")
    for name, digest in digests.items():
        file = path.parent / name
        if not file.exists() or file_digest(file) != digest:
            what = "has changed since the plan was written" if file.exists() else "does not exist"
            raise InputError(
                f"{file} {what}", path=str(path), remedy="restore it, or delete its line to use it as it is"
            )
    for name in ("train", "dev"):
        if name in table:
            table[name] = str(path.parent / table[name])
    for key in ("unlabelled", "held_out", "mentions"):
        table[key] = [str(path.parent / name) for name in table.get(key, ())]
    return table


def _relative_list(specification: str, folder: Path) -> str:
    path, column, label = parse_specification(specification)
    return _relative(path, folder) + (f":{column}" if column else "") + (f"={label}" if label else "")


def _relative(path: str | Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _to_toml(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_to_toml, value))}]"
    # A JSON string is a TOML string, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
