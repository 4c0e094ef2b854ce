"""What a format is: something that reads sentences from a file and writes them to text."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from entaug.data import Sentence
from entaug.errors import InputError, LossError
from entaug.tags import canonical_scheme

__all__ = [
    "BEFORE",
    "ENTITY_FIELDS",
    "BaseFormat",
    "Dialect",
    "Format",
    "FormatCapabilities",
    "Reading",
    "are_columns",
    "before_of",
]

BEFORE = "_before"
"""Field of a sentence: the white space before its first token, where there is any."""
ENTITY_FIELDS = "_entity_fields"
"""Field of a sentence: what its file says of each mention besides label and place, in the order of the mentions."""


def before_of(sentence: Sentence) -> str:
    """The white space before the first token; a field of that name that holds anything else is somebody else's."""
    found = sentence.fields.get(BEFORE)
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

    Those whose files are written at once (folders, binary files, one JSON document) are
    `entaug.formats.buffered.BufferedFormat`.
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


class BaseFormat(abc.ABC):
    """Base of formats: creates and completes dialects, and names what a format does not hold; see `Format`.

    Attributes:
        dialect_class: the class of the dialects, a dataclass whose fields are the options of the format.
        reserved_fields: names of fields of sentences that the format uses itself and does not write.
    """

    name: str
    title: str
    extensions: tuple[str, ...] = ()
    carries: FormatCapabilities
    dialect_class: type[Any]
    reserved_fields: Collection[str] = ()

    @abc.abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a file looks like one of this format and of no other; faults are not raised.

        Args:
            path: the file, or a folder.
        """

    def dialect(self, **options: Any) -> Any:
        """Create a dialect.

        Args:
            options: the fields of the dialect; None stands for the default.

        Returns:
            The dialect.

        Raises:
            ParameterError: an option has an invalid value.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if "scheme" in given:
            given["scheme"] = canonical_scheme(given["scheme"])
        return self.dialect_class(**given)

    def detect(self, path: Path, dialect: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Detect options of a file from its contents; faults of the file are left for reading to report.

        Args:
            path: the file, or a folder.
            dialect: the dialect made from the options that are given.
            options: the options that are given, by name.

        Returns:
            Fields of the dialect by name; those that are given are ignored.
        """
        del path, dialect, options
        return {}

    def look(self, path: Path, **options: Any) -> Any:
        """Determine the dialect of a file.

        Args:
            path: the file, or a folder.
            options: options that are given; None or ``"auto"`` for those to detect.

        Returns:
            The dialect.

        Raises:
            ParameterError: an option has an invalid value.
        """
        given = {name: value for name, value in options.items() if value is not None}
        dialect = self.dialect(**given)
        detected = self.detect(path, dialect, given)
        return replace(dialect, **{n: value for n, value in detected.items() if given.get(n, "auto") == "auto"})

    def carried(self, sentence: Sentence, dialect: Any) -> Sentence:
        """The sentence as it will be read where it was written; by default unchanged.

        Args:
            sentence: the sentence.
            dialect: the dialect that it is written in.
        """
        del dialect
        return sentence

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        """Name the parts of a sentence that are not written.

        Args:
            sentence: the sentence.
            dialect: the dialect that it is written in.

        Returns:
            Columns, fields, and ``"text"`` for white space, for people to read.
        """
        del dialect
        lost = [] if self.carries.columns else [f"column {name!r}" for name in sentence.columns]
        kept = self.carries.fields
        lost += [f"field {name!r}" for name in sentence.fields if name in self.reserved_fields or not kept]
        return lost + ["text"] * (not self.carries.spaces and sentence.spaces is not None)

    def check_contiguous(self, sentence: Sentence, remedy: str = "write JSON lines or brat") -> None:
        """Check that a sentence has no discontinuous mention.

        Args:
            sentence: the sentence.
            remedy: what to do where it has one, for the error.

        Raises:
            LossError: it has one.
        """
        for mention in sentence.mentions:
            if len(mention.spans) > 1:
                raise LossError(
                    f"discontinuous mention ({mention.label} {list(mention.spans)}) has no single start and end, "
                    f"and {self.title} has no others",
                    path=f"sentence {sentence.key}",
                    remedy=remedy,
                )
