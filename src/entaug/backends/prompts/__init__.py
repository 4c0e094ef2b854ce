"""Prompts for instruct models: files that a user may replace.

A prompt is a TOML file with two texts, ``system`` and ``user``. Names in braces stand for what a method fills in, as
``{sentence}``; the comment in each packaged file lists those that it may use.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from entaug.errors import InputError
from entaug.files.streams import decode_text, read_bytes

PLACEHOLDERS: dict[str, dict[str, bool]] = {
    "aclm": {"template": True, "labels": False},
    "entda": {"mentions": True, "labels": False},
    "gal": {"examples": True},
    "label": {"labels": True, "sentence": True, "examples": False},
    "label-check": {"labels": True, "sentence": True, "mention": True, "examples": False},
    "mentions": {"label": True, "examples": False, "number": False},
    "rewrite": {"sentence": True, "mentions": False, "examples": False},
    "style": {"sentence": True, "style": True, "mentions": False, "examples": False},
}
"""The placeholders of each packaged prompt, and whether a prompt must have them."""

PromptFile = str
"""The type of parameters that name the file of a prompt."""

_FOLDER = Path(__file__).parent
_PARTS = ("system", "user")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """A prompt."""

    name: str
    system: str
    user: str

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Replace the placeholders."""

        def replaced(text: str) -> str:
            return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)

        return replaced(self.system), replaced(self.user)

    @cached_property
    def digest(self) -> str:
        """A digest of the texts, for signatures."""
        return hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()[:8]


def prompt_text(name: str) -> str:
    """Return the file of a packaged prompt, to copy and change it."""
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def packaged_prompt(name: str) -> Prompt:
    """Return a packaged prompt."""
    table = tomllib.loads(prompt_text(name))
    return Prompt(name, table["system"].strip(), table["user"].strip())


def read_prompt(path: str | Path, purpose: str) -> Prompt:
    """Read a prompt of the user."""
    path, remedy = Path(path), f"see: entaug list prompts {purpose}"
    text = decode_text(read_bytes(path), path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not a TOML file ({error})", path=str(path), remedy=remedy) from None
    texts = {name: table.get(name, "") for name in _PARTS}
    known = PLACEHOLDERS[purpose]
    used = {match[1] for part in texts.values() for match in _PLACEHOLDER.finditer(str(part))}
    shown = ", ".join(f"{{{name}}}" for name in known)
    problems = [
        (f"has the unknown key {name!r}", rf"""^\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
        for name in table
        if name not in _PARTS
    ]
    if not all(isinstance(part, str) for part in texts.values()) or not texts["user"].strip():
        problems.append(('needs a text named "user"', ""))
    problems += [
        (f"has the unknown placeholder {{{n}}} (there are: {shown})", re.escape(f"{{{n}}}"))
        for n in sorted(used - set(known))
    ]
    problems += [
        (f"lacks the placeholder {{{n}}}", "") for n, is_needed in known.items() if is_needed and n not in used
    ]
    for problem, place in problems:
        lines = enumerate(text.splitlines(), 1)
        line = next((number for number, line in lines if place and re.search(place, line)), None)
        raise InputError(problem, path=str(path), line=line, remedy=remedy)
    return Prompt(path.stem, texts["system"].strip(), texts["user"].strip())


def describe_prompt(path: str | Path) -> str:
    """Describe the file of a prompt by its content, for signatures."""
    path = Path(path)
    return f"{path.stem}@{hashlib.sha256(read_bytes(path)).hexdigest()[:8]}"


def prompt_beside(value: object, folder: Path) -> object:
    """Return the file of a prompt with its path relative to a folder, as plans have it."""
    return str(folder / Path(value).expanduser()) if isinstance(value, str) else value
