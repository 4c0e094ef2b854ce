"""Formats whose files are written at once; while such a file grows, JSON lines stand for it."""

from __future__ import annotations

import abc
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from entaug.data import Sentence
from entaug.errors import OutputError
from entaug.files.atomic import follow_link, output_error
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, Reading
from entaug.formats.jsonl import Jsonl, JsonlDialect
from entaug.tags import flatten

__all__ = ["BufferedFormat", "check_folder", "finish_buffered", "flattened", "write_buffered"]

_LINES = Jsonl()


class BufferedFormat(abc.ABC):
    """Base of the formats whose files are written at once; a `entaug.formats.base.Format`.

    Where sentences are written one by one, `dump` gives JSON lines, which carry everything; what the format refuses is
    refused there. A byte range to `read` is one of these lines.
    """

    name: str
    title: str
    extensions: tuple[str, ...] = ()
    carries: FormatCapabilities
    folder: bool = False
    """Whether it is a folder that is read and written."""

    @abc.abstractmethod
    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.Format`; the path may be a folder."""

    def replaceable(self, path: Path) -> bool:
        """Whether a folder holds nothing but what this format writes, so that a new one may take its place."""
        del path
        return False

    @abc.abstractmethod
    def dialect(self, **options: Any) -> Any:
        """See `entaug.formats.base.Format`."""

    @abc.abstractmethod
    def look(self, path: Path, **options: Any) -> Any:
        """See `entaug.formats.base.Format`."""

    def files(self, path: Path) -> list[Path]:
        """The files that are read: what must not have changed where a run that was stopped goes on."""
        return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]

    @abc.abstractmethod
    def sentences(self, path: Path, dialect: Any, reading: Reading) -> Iterator[Sentence]:
        """The sentences of a file, or of a folder."""

    @abc.abstractmethod
    def write(self, sentences: Iterable[Sentence], path: Path, dialect: Any) -> None:
        """Write a file, or a folder, that is not there yet: the caller moves it into place when it is complete."""

    def check(self, sentence: Sentence, dialect: Any) -> None:
        """Raise where a sentence cannot be written.

        Raises:
            LossError: the format has no place for what it holds.
        """
        del sentence, dialect

    def read(
        self, path: Path, dialect: Any, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """See `entaug.formats.base.Format`."""
        if stop is not None:
            return _LINES.read(path, JsonlDialect(), reading, start, stop)
        return self.sentences(path, dialect, reading)

    def carried(self, sentence: Sentence, dialect: Any) -> Sentence:
        """See `entaug.formats.base.Format`."""
        del dialect
        return sentence

    def dump(self, sentence: Sentence, dialect: Any) -> str:
        """See `entaug.formats.base.Format`."""
        self.check(sentence, dialect)
        return _LINES.dump(sentence, JsonlDialect())

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        """See `entaug.formats.base.Format`."""
        del sentence, dialect
        return []


def flattened(sentence: Sentence, overlap: str) -> Sentence:
    """A sentence with the mentions that `entaug.tags.flatten` keeps, and what is said of these."""
    mentions = flatten(sentence.mentions, overlap)
    said = sentence.meta.get(ENTITY_FIELDS)
    if not (isinstance(said, list) and len(said) == len(sentence.mentions)):
        return sentence.with_(mentions=tuple(mentions))
    of = dict(zip(sentence.mentions, said, strict=True))
    return sentence.with_(mentions=tuple(mentions), meta={**sentence.meta, ENTITY_FIELDS: [of[m] for m in mentions]})


def finish_buffered(format_: BufferedFormat, dialect: Any, lines: Path, target: Path, *, force: bool = False) -> None:
    """Write what `BufferedFormat.dump` gave for each sentence as the file that was meant."""
    sentences = format_.read(lines, dialect, Reading(), 0, lines.stat().st_size)
    write_buffered(format_, dialect, sentences, target, force=force)


def check_folder(format_: BufferedFormat, path: Path, *, force: bool) -> None:
    """Raise where a folder is in the way of one that is to be written.

    Raises:
        OutputError: it holds something, and `force` is not given or it is not what the format writes.
    """
    if not any(path.iterdir()):
        return
    if not force:
        remedy = f"name a new or empty one, or pass --force to replace what was written as {format_.title} before"
        raise OutputError("is a folder that holds something", path=str(path), remedy=remedy)
    if not format_.replaceable(path):
        what = f"is a folder that holds more than {format_.title}, and is not replaced"
        raise OutputError(what, path=str(path), remedy="name a new or empty one")


def write_buffered(
    format_: BufferedFormat, dialect: Any, sentences: Iterable[Sentence], target: Path, *, force: bool = False
) -> int:
    """Write a file or folder that is at its place only when it is complete.

    Args:
        format_: the format.
        dialect: how it is laid out.
        sentences: what to write.
        target: the file or folder.
        force: whether to replace a folder that the format wrote; see `BufferedFormat.replaceable`. It is moved aside when the
            new one is complete, and deleted when that is in its place.

    Returns:
        How many sentences were written.

    Raises:
        LossError: the format cannot carry a sentence.
        OutputError: it cannot be written; a folder holds something already.
    """
    count = 0

    def counted() -> Iterator[Sentence]:
        nonlocal count
        for sentence in sentences:
            format_.check(sentence, dialect)
            count += 1
            yield sentence

    real = follow_link(target)
    try:
        if real.is_dir() != format_.folder and real.exists():
            what = "is a folder, and a file is to be written" if real.is_dir() else "is a file, not a folder"
            raise OutputError(what, path=str(target), remedy="name another")
        if format_.folder and real.exists():
            check_folder(format_, real, force=force)
        with tempfile.TemporaryDirectory(prefix=f".{real.name}.{os.getpid()}.", dir=real.parent) as beside:
            made = Path(beside, real.name)
            format_.write(counted(), made, dialect)
            if not format_.folder:
                if made.exists():
                    made.replace(real)
            elif made.exists():
                _put_in_place(format_, made, real, Path(beside, "replaced"), force=force)
    except OSError as error:
        raise output_error(target, error) from None
    return count


def _put_in_place(format_: BufferedFormat, made: Path, real: Path, aside: Path, *, force: bool) -> None:
    """Move a folder to its place; what is there goes aside, and comes back where that fails."""
    there = real.exists()
    if there:
        check_folder(format_, real, force=force)  # once more: writing may have taken long
        real.rename(aside)
    try:
        made.rename(real)
    except OSError:
        if there:
            aside.rename(real)
        raise
