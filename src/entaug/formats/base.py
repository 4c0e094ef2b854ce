"""Base class of annotation formats, and the state of reading."""

from __future__ import annotations

import abc
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeGuard

from entaug.config.params import validate
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import canonical_scheme
from entaug.errors import InputError, InputWarning, LossError

BEFORE = "_before"
"""Field of a sentence: the white space before its first token, if any."""
ENTITY_FIELDS = "_entity_fields"
"""Field of a sentence: the further fields of each mention in its file, a list in the order of the mentions."""
KEPT = "_brat"
"""Field of a sentence from brat: a digest of its content (``of``), lines that are not mentions, layout of its files."""
LEVEL = "level"
"""Field of a mention: the index of its tag column in CoNLL, where it is not the one that would be chosen."""
NO_LABELS = "a sentence or text without any labels given was read as one that has no mentions"
"""Note about a sentence of which is not said whether it has mentions."""
NOT_OF_SPACY = "tokens that are not spaCy's for {!r}"
"""What formats without tokens lose, with the code of the language whose rules cut the text."""
NO_MENTION = "no sentence has a mention: check that its labels were read"
"""Note about a file whose sentences have no mention."""


def before_of(sentence: Sentence) -> str:
    """Return the white space before the first token of a sentence."""
    before = sentence.meta.get(BEFORE)
    return before if isinstance(before, str) and before.isspace() else ""


def with_mentions(sentence: Sentence, mentions: Iterable[Mention]) -> Sentence:
    """Return a sentence with other mentions, of which those that stay keep their further fields."""
    new, said = sentence.with_(mentions=tuple(mentions)), sentence.layout.get(ENTITY_FIELDS)
    if not (isinstance(said, list) and len(said) == len(sentence.mentions)):
        return new
    of = dict(zip(sentence.mentions, said, strict=True))
    return new.with_(layout={**sentence.layout, ENTITY_FIELDS: [of.get(mention, {}) for mention in new.mentions]})


def note_lines(notes: Mapping[str, int]) -> list[str]:
    """Return notes with their numbers, as lines for the user."""
    return [f"{note} ({count:,} times)" if count > 1 else note for note, count in sorted(notes.items())]


def warn_of_notes(notes: Iterable[str], source: str, stacklevel: int = 3) -> None:
    """Warn of each note on a file that was read; the program prints these warnings as notes."""
    for note in notes:
        warnings.warn(f"{source}: {note}", InputWarning, stacklevel=stacklevel + 1)


def check_label_edges(sentence: Sentence) -> None:
    """Raise LossError for a label with white space at its edge, which readers of cells take off."""
    if padded := next((m.label for m in sentence.mentions if m.label != m.label.strip()), None):
        what = f"the label {padded!r} has white space at its edge, which would not be read"
        raise LossError(what, path=sentence.id, remedy="rename it, or write JSON lines")


def character_name(character: str) -> str:
    """Return the name of a character that a format has no place for."""
    if "\ud800" <= character <= "\udfff":
        return "half a character (a surrogate)"
    names = {"\0": "a NUL character", "\n": "a line end", "\r": "a line end"}
    return names.get(character, f"the character {character!r}")


def are_columns(value: object, n: int) -> TypeGuard[dict[str, list[str]]]:
    """Return whether a field named ``columns`` holds the further columns of a sentence."""
    return type(value) is dict and all(
        type(values) is list and len(values) == n and all(type(v) is str for v in values) for values in value.values()
    )


@dataclass(frozen=True)
class FormatCapabilities:
    """The features that a format can represent besides tokens and flat mentions.

    Args:
        nested: whether mentions may overlap.
        discontinuous: whether mentions may have gaps.
        columns: whether tokens may have further columns.
        fields: whether sentences may have further fields.
        spaces: whether the white space between tokens is kept.
    """

    nested: bool
    discontinuous: bool
    columns: bool
    fields: bool
    spaces: bool


@dataclass(frozen=True)
class Dialect:
    """Base class of the layout of a file of one format; the fields are the options of the format."""

    description: ClassVar[str] = ""
    """That of a format whose files have but one layout."""

    def __post_init__(self) -> None:
        validate(self)

    def describe(self) -> str:
        """Return a description of the layout, for example ``"CoNLL, tabs, token in column 1, tag in 2, IOB2"``."""
        return self.description


@dataclass
class ReadReport:
    """Options and results of reading a file.

    Args:
        repair: whether to repair invalid tag sequences and drop duplicate ids instead of raising.
        on_fault: called with each error in the file, and the invalid sentence is skipped; None to raise the error.

    Attributes:
        repaired: the number of repairs, by description.
        notes: the number of notes for the user, by description.
        line: the first line of the latest sentence.
    """

    repair: bool = False
    on_fault: Callable[[InputError], None] | None = None

    def __post_init__(self) -> None:
        self.repaired: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.line = 0

    def lines(self) -> list[str]:
        """Return the repairs and the notes, as lines for the user."""
        return note_lines({**{f"repaired: {what}": count for what, count in self.repaired.items()}, **self.notes})

    def fault(self, error: InputError) -> None:
        """Raise an error, or report it and its further errors to `on_fault`.

        Args:
            error: the error.

        Raises:
            InputError: there is no `on_fault`.
        """
        if self.on_fault is None:
            raise error
        others, error.others = error.others, ()
        for fault in (error, *others):
            self.on_fault(fault)


class BaseFormat(abc.ABC):
    """Base class of formats.

    Formats have no state; the differences between files are in the dialect. Formats whose files cannot be written
    sentence by sentence (folders, binary files, one JSON document) derive from
    `entaug.formats.buffered.BufferedFormat`.

    Attributes:
        name: the name of the format, as in `entaug.formats.FORMATS`.
        title: its name in messages.
        extensions: the extensions of its files, with a full stop.
        foreign_extensions: further extensions that files may have which are read, but not written.
        carries: what it can represent.
        dialect_class: the class of the dialects, a dataclass whose fields are the options of the format.
        reserved_fields: names of fields of sentences that the format uses itself and does not write.
        names_documents: whether ids of sentences are names of documents, so that gold sentences get none.
        folder: whether the format reads and writes a folder.
    """

    name: str
    title: str
    extensions: tuple[str, ...] = ()
    foreign_extensions: tuple[str, ...] = ()
    carries: FormatCapabilities
    dialect_class: type[Any]
    reserved_fields: Collection[str] = ()
    names_documents: bool = False
    folder: bool = False

    @abc.abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a file looks like this format and no other; no errors are raised.

        Args:
            path: the file, or a folder.
        """

    def files(self, path: Path) -> list[Path]:
        """Return the files that are read, which must not change between a run and its continuation.

        Args:
            path: the file, or a folder.
        """
        return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]

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
        if isinstance(names := given.get("names"), str):
            given["names"] = tuple(name.strip() for name in names.split(","))
        return self.dialect_class(**given)

    def detect(self, path: Path, dialect: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Detect options of a file from its contents; errors in the file are reported only by `read`.

        Args:
            path: the file, or a folder.
            dialect: the dialect made from the options that are given.
            options: the options that are given, by name.

        Returns:
            Fields of the dialect by name; given options take precedence.
        """
        return {}

    def detect_dialect(self, path: Path, **options: Any) -> Any:
        """Determine the dialect of a file.

        Args:
            path: the file, or a folder.
            options: given options; options that are None or ``"auto"`` are detected.

        Returns:
            The dialect.

        Raises:
            ParameterError: an option has an invalid value.
        """
        given = {name: value for name, value in options.items() if value is not None}
        dialect = self.dialect(**given)
        detected = self.detect(path, dialect, given)
        return replace(dialect, **{n: value for n, value in detected.items() if given.get(n, "auto") == "auto"})

    @abc.abstractmethod
    def read(
        self, path: Path, dialect: Any, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """Read the sentences of a file.

        Args:
            path: the file, or a folder.
            dialect: its dialect.
            reading: how to read; collects counts and notes.
            start: the byte to start from, at the beginning of a sentence.
            stop: the byte to stop at; None for the end of the file.

        Yields:
            The sentences.

        Raises:
            InputError: the file is invalid, or holds no sentence.
        """

    def prepared(self, dialect: Any, sample: Iterable[Sentence], given: Collection[str] = ()) -> Any:
        """Return the dialect to write sentences in, with what depends on them; by default unchanged.

        Args:
            dialect: the dialect as far as it is known.
            sample: the first of the sentences.
            given: the names of the options that are given; the others may be those of a file that was read.
        """
        return dialect

    @abc.abstractmethod
    def dump(self, sentence: Sentence, dialect: Any) -> str:
        """Return the text of a sentence, ready to be appended to a file.

        Args:
            sentence: the sentence.
            dialect: the dialect to write.

        Raises:
            LossError: the format cannot represent the sentence.
        """

    def as_stored(self, sentence: Sentence, dialect: Any) -> Sentence:
        """Return the sentence as it would be read back; by default unchanged.

        Args:
            sentence: the sentence.
            dialect: the dialect that it is written in.
        """
        return sentence

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        """Name the parts of a sentence that are not written.

        Args:
            sentence: the sentence.
            dialect: the dialect that it is written in.

        Returns:
            Descriptions of columns and fields, and ``"text"`` for white space.
        """
        lost = [] if self.carries.columns else [f"column {name!r}" for name in sentence.columns]
        kept = self.carries.fields
        lost += [f"field {name!r}" for name in sentence.fields if name in self.reserved_fields or not kept]
        return lost + ["text"] * (not self.carries.spaces and sentence.spaces is not None)

    def check_contiguous(self, sentence: Sentence, remedy: str = "write JSON lines or brat") -> None:
        """Check that a sentence has no discontinuous mention.

        Args:
            sentence: the sentence.
            remedy: the remedy in the error.

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
