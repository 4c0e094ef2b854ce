"""JSON text of any value, also of names of files that are not UTF-8, and files with an object."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any


def json_text(value: Any, *, indent: bool = False) -> str:
    """Return the JSON text of a value."""
    import orjson

    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0).decode()
    except TypeError as error:
        if "surrogates" not in str(error):
            raise
        separators = None if indent else (",", ":")
        return json.dumps(value, default=_plain, indent=2 if indent else None, separators=separators)


def read_object(path: Path) -> dict[str, Any] | None:
    """Read a file with a JSON object; None where there is none."""
    import orjson

    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return value if isinstance(value, dict) else None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value) if not f.name.startswith("_")}  # as orjson does
    raise TypeError(f"a {type(value).__name__} has no JSON form")
