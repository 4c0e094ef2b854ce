"""Parts of files: what several processes can read at the same time, each for itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from entaug.core.data import Sentence
from entaug.files.streams import open_bytes, read_block
from entaug.formats.base import ReadReport
from entaug.formats.corpus_file import CorpusFile

__all__ = ["Part", "parts_of"]

_PART_SENTENCES = 1000  # of formats that are read in one piece


@dataclass(frozen=True)
class Part:
    """A part of the sentences of a file."""

    start: int = 0
    stop: int = 0
    content: bytes | None = None
    held: tuple[Sentence, ...] | None = None

    def sentences(self, file: CorpusFile, reading: ReadReport) -> Iterator[Sentence]:
        """Read the sentences; errors name no line of the file, as the lines before are not known."""
        if self.held is not None:
            yield from self.held
        elif self.content is None:
            yield from file.format.read(file.path, file.dialect, reading, self.start, self.stop)
        else:
            with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
                copy = Path(folder, "part")
                # Only at the start of a file is a byte-order mark no text.
                before = b"\n" if self.start else b""
                copy.write_bytes(before + self.content)
                stop = len(before) + len(self.content)
                yield from file.format.read(copy, file.dialect, reading, len(before), stop)


def parts_of(file: CorpusFile, reading: ReadReport, size: int) -> Iterator[Part]:
    """Divide a file between sentences."""
    if not file.format.is_divisible:
        sentences = file.sentences(reading)
        while held := tuple(islice(sentences, _PART_SENTENCES)):
            yield Part(held=held)
        return
    is_compressed = file.path.suffix == ".gz"
    start, rest, wanted = 0, b"", size
    with open_bytes(file.path) as stream:
        while block := read_block(stream, file.path, wanted):
            data = rest + block
            end = file.format.last_break(data)
            if end:
                yield Part(start, start + end, data[:end] if is_compressed else None)
            start, rest = start + end, data[end:]
            # Doubled, so that a long sentence is not looked through again and again.
            wanted = size if end else 2 * wanted
    if rest:
        yield Part(start, start + len(rest), rest if is_compressed else None)
