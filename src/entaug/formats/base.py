"""What a format is: something that reads sentences from a file and writes them to text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from entaug.data import Sentence
from entaug.errors import InputError

__all__ = ["BEFORE", "ENTITY_FIELDS", "Dialect", "Format", "FormatCapabilities", "Reading", "are_columns", "before_of"]

BEFORE = "_before"
"""Field of a sentence: the white space before its first token, where there is any."""
ENTITY_FIELDS = "_entity_fields"
"""Field of a sentence: what its file says of each mention besides label and place, in the order of the mentions."""


def before_of(sentence: Sentence) -> str:
    """The white space before the first token; a field of that name that holds anything else is somebody else's."""
    found = sentence.meta.get(BEFORE)
    return found if isinstance(found, str) and found.isspace() else ""


def are_columns(value: object, n: int) -> TypeGuard[dict[str, list[str]]]:
    """Whether a field named columns is what formats write of a sentence of n tokens; else it is somebody else's."""
    return type(value) is dict and all(
        type(values) is list and len(values) == n and all(type(v) is str for v in values) for values in value.values()
    )


@dataclass(frozen=True)
class FormatCapabilities:
    """What a format can hold besides tokens and flat mentions."""

    nested: bool
    discontinuous: bool
    columns: bool
    fields: bool
    spaces: bool


class Dialect(Protocol):
    """How one file of a format is laid out; a frozen dataclass, so that it can be printed and compared."""

    def describe(self) -> str:
        """One line for people, for example ``"CoNLL, tabs, token in column 1, tag in 2, IOB2"``."""
        ...


@dataclass
class Reading:
    """How to read, and what was met on the way.

    Args:
        repair: mend broken tag sequences and drop repeated ids (counted in ``repaired``) where the default is to raise.
        on_fault: called with each fault; the sentence is then left out. By default a fault is raised.
    """

    repair: bool = False
    on_fault: Callable[[InputError], None] | None = None

    def __post_init__(self) -> None:
        self.repaired: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.line = 0  # where the latest sentence begins

    def repeats(self, name: str | None, line: int, seen: dict[str, int]) -> bool:
        """Whether an id was there before and has to be dropped; by default that is a fault.

        Args:
            name: the id of a sentence.
            line: where it stands.
            seen: the ids before it, each with its line; this one is added.
        """
        if name is None or seen.setdefault(name, line) == line:
            return False
        if not self.repair:
            remedy = "give each sentence an id of its own, or pass --repair to drop this one"
            raise InputError(f"id {name!r} is that of line {seen[name]} too", remedy=remedy)
        self.repaired["id of another sentence dropped"] += 1
        return True

    def fault(self, error: InputError) -> None:
        """Raise the error, or hand it on with those beside it."""
        if self.on_fault is None:
            raise error
        beside, error.also = error.also, ()
        for one in (error, *beside):
            self.on_fault(one)


class Format(Protocol):
    """A format. Instances hold no state: what differs from file to file is in the dialect.

    Those whose files are written at once (folders, binary files, one JSON document) are `entaug.formats.buffered.BufferedFormat`.
    """

    name: str
    title: str
    extensions: tuple[str, ...]
    carries: FormatCapabilities

    def recognises(self, path: Path) -> bool:
        """Whether a file looks like one of this format and of no other; no error, whatever is in it."""
        ...

    def dialect(self, **options: Any) -> Any:
        """A dialect from options given by hand, defaults elsewhere: for writing what was not read."""
        ...

    def look(self, path: Path, **options: Any) -> Any:
        """The dialect of a file, found by looking at its beginning; options given by hand win."""
        ...

    def read(
        self, path: Path, dialect: Any, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """The sentences of a file (of a byte range of it)."""
        ...

    def carried(self, sentence: Sentence, dialect: Any) -> Sentence:
        """The sentence with those mentions that the dialect keeps: what will be read where it was written."""
        ...

    def dump(self, sentence: Sentence, dialect: Any) -> str:
        """The text of one sentence, ready to be appended to a file."""
        ...

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        """What a sentence holds besides tokens and mentions and its text does not: words for people."""
        ...
