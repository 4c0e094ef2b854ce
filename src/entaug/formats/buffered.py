"""Formats whose files are written as a whole; meanwhile sentences are buffered as JSON lines."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.tags import flatten
from entaug.errors import LossError, OutputError
from entaug.files.atomic import atomic_path, follow_link
from entaug.formats.base import ENTITY_FIELDS, BaseFormat, ReadReport


@cache
def _lines() -> BaseFormat:
    """The format of drafts; imported late, as few commands write any."""
    from entaug.formats.jsonl import Jsonl

    return Jsonl()


class BufferedFormat(BaseFormat):
    """Base class of formats whose files are written as a whole.

    When sentences are written one by one, `dump` returns lossless JSON lines, after the checks of the format. Byte
    ranges given to `read` refer to these lines.

    Attributes:
        folder: whether the format reads and writes a folder.
    """

    folder: bool = False

    def replaceable(self, path: Path) -> bool:
        """Whether a folder holds only files of this format, so that a new folder may replace it.

        Args:
            path: the folder.
        """
        del path
        return False

    def files(self, path: Path) -> list[Path]:
        """Return the files that are read, which must not change between a run and its continuation.

        Args:
            path: the file, or a folder.
        """
        return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]

    @abc.abstractmethod
    def sentences(self, path: Path, dialect: Any, reading: ReadReport) -> Iterator[Sentence]:
        """Return the sentences of a file or folder.

        Args:
            path: the file, or a folder.
            dialect: its dialect.
            reading: how to read.

        Raises:
            InputError: it is invalid, or holds no sentence.
        """

    @abc.abstractmethod
    def write(self, sentences: Iterable[Sentence], path: Path, dialect: Any) -> None:
        """Write a file or folder that does not exist yet; the caller moves it into place when it is complete.

        Args:
            sentences: the sentences; each has passed `check`.
            path: the file, or a folder.
            dialect: the dialect to write.

        Raises:
            LossError: the format cannot represent a sentence.
            OutputError: the file cannot be written.
        """

    def check(self, sentence: Sentence, dialect: Any) -> None:
        """Check that a sentence can be written; by default, that the format supports its discontinuous mentions.

        Args:
            sentence: the sentence.
            dialect: the dialect to write.

        Raises:
            LossError: the format cannot represent it.
        """
        if not self.carries.discontinuous:
            self.check_contiguous(self.as_stored(sentence, dialect))

    def check_flat(self, sentence: Sentence, remedy: str) -> None:
        """Check that a sentence has neither nested nor discontinuous mentions.

        Args:
            sentence: the sentence.
            remedy: the remedy in the error.

        Raises:
            LossError: it has any.
        """
        try:
            flatten(sentence.mentions, "error")
        except LossError as error:
            error.path, error.remedy = f"sentence {sentence.key}", remedy
            raise

    def read(
        self, path: Path, dialect: Any, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """See `entaug.formats.base.BaseFormat`."""
        if stop is None:
            return self.sentences(path, dialect, reading)
        lines = _lines()
        return lines.read(path, lines.dialect(), reading, start, stop)

    def as_stored(self, sentence: Sentence, dialect: Any) -> Sentence:
        """Return the sentence with the mentions that the option `overlap` of the dialect keeps.

        Args:
            sentence: the sentence.
            dialect: the dialect to write.
        """
        overlap = getattr(dialect, "overlap", "error")
        return sentence if overlap == "error" or sentence.is_flat else flattened(sentence, overlap)

    def dump(self, sentence: Sentence, dialect: Any) -> str:
        """See `entaug.formats.base.BaseFormat`."""
        self.check(sentence, dialect)
        lines = _lines()
        return lines.dump(sentence, lines.dialect())


def flattened(sentence: Sentence, overlap: str) -> Sentence:
    """Return the sentence with the mentions that `entaug.core.tags.flatten` keeps, and their further fields."""
    mentions = flatten(sentence.mentions, overlap)
    said = sentence.layout.get(ENTITY_FIELDS)
    if not (isinstance(said, list) and len(said) == len(sentence.mentions)):
        return sentence.with_(mentions=tuple(mentions))
    of = dict(zip(sentence.mentions, said, strict=True))
    return sentence.with_(
        mentions=tuple(mentions), layout={**sentence.layout, ENTITY_FIELDS: [of[m] for m in mentions]}
    )


def check_replaceable(format_: BufferedFormat, folder: Path, *, force: bool) -> None:
    """Check that a folder may be replaced by a new one of the same format."""
    if not any(folder.iterdir()):
        return
    if not force:
        remedy = f"name a new or empty one, or pass --force to replace what was written as {format_.title} before"
        raise OutputError("is a folder that holds something", path=str(folder), remedy=remedy)
    if not format_.replaceable(folder):
        message = f"is a folder that holds more than {format_.title}, and is not replaced"
        raise OutputError(message, path=str(folder), remedy="name a new or empty one")


def write_buffered(
    format_: BufferedFormat, dialect: Any, sentences: Iterable[Sentence], target: Path, *, force: bool = False
) -> int:
    """Write a file or folder atomically."""
    count = 0

    def checked() -> Iterator[Sentence]:
        nonlocal count
        for sentence in sentences:
            format_.check(sentence, dialect)
            count += 1
            yield sentence

    def check_existing(folder: Path) -> None:
        check_replaceable(format_, folder, force=force)

    existing = follow_link(target)
    if existing.exists() and existing.is_dir() != format_.folder:
        message = "is a folder, and a file is to be written" if existing.is_dir() else "is a file, not a folder"
        raise OutputError(message, path=str(target), remedy="name another")
    if existing.is_dir():
        check_existing(existing)
    with atomic_path(target, before_replacing=check_existing) as new:
        format_.write(checked(), new, dialect)
    return count
