"""Formats whose files are written as a whole; meanwhile sentences are buffered as JSON lines."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.tags import flatten
from entaug.errors import LossError
from entaug.formats.base import BaseFormat, ReadReport, with_mentions


@cache
def _lines() -> BaseFormat:
    """The format of drafts; imported late, as few commands write any."""
    from entaug.formats.jsonl import Jsonl

    return Jsonl()


class BufferedFormat(BaseFormat):
    """Base class of formats whose files are written as a whole.

    When sentences are written one by one, `dump` returns lossless JSON lines, after the checks of the format. Byte
    ranges given to `read` refer to these lines.
    """

    def replaceable(self, path: Path) -> bool:
        """Whether a folder holds only files of this format, so that a new folder may replace it.

        Args:
            path: the folder.
        """
        return False

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
        if stop is None:
            return self.sentences(path, dialect, reading)
        lines = _lines()
        return lines.read(path, lines.dialect(), reading, start, stop)

    def as_stored(self, sentence: Sentence, dialect: Any) -> Sentence:
        # With the mentions that the option `overlap` of the dialect keeps.
        overlap = getattr(dialect, "overlap", "error")
        if overlap == "error" or sentence.is_flat:
            return sentence
        return with_mentions(sentence, flatten(sentence.mentions, overlap))

    def dump(self, sentence: Sentence, dialect: Any) -> str:
        self.check(sentence, dialect)
        lines = _lines()
        return lines.dump(sentence, lines.dialect())
