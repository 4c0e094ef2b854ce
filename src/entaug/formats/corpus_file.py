"""Files with their format and layout: uniform reading and writing of all formats."""

from __future__ import annotations

import contextlib
import errno
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import BinaryIO

from entaug.core.data import Provenance, Sentence
from entaug.errors import EntaugError, LossError, OutputError
from entaug.files.atomic import atomic_file, atomic_path, move_file, open_output, output_error
from entaug.files.checkpoints import CheckpointedWriter, DirectWriter, RunWriter
from entaug.files.streams import encode_text, is_special, is_stdout
from entaug.formats.base import NO_MENTION, BaseFormat, Dialect, ReadReport
from entaug.formats.bookkeeping import BOOKKEEPING, without_bookkeeping
from entaug.formats.buffered import BufferedFormat
from entaug.formats.text import DOCUMENT

_SAMPLE_SIZE = 100  # sentences that a layout is prepared for


def _noting_no_mention(sentences: Iterator[Sentence], reading: ReadReport) -> Iterator[Sentence]:
    """Yield the sentences of a file, and note at its end that none has a mention."""
    is_empty = True
    for sentence in sentences:
        is_empty = False
        yield sentence
        if sentence.mentions:
            yield from sentences
            return
    if not is_empty:
        reading.notes[NO_MENTION] = 1


class SentenceWriter:
    """Appends sentences to a stream."""

    def __init__(self, file: CorpusFile, stream: BinaryIO) -> None:
        self._file = file
        self._stream = stream
        self.count = 0

    def write(self, sentence: Sentence) -> None:
        """Append a sentence."""
        self.write_text(self._file.encode(sentence))

    def write_text(self, text: str, count: int = 1) -> None:
        """Append sentences that are encoded already."""
        if count:
            self._stream.write(encode_text(text if self.count else self._file.heading + text))
            self.count += count


@dataclass(frozen=True)
class CorpusFile:
    """A file to read or to write: its path, format and layout."""

    path: Path
    format: BaseFormat
    dialect: Dialect

    @property
    def heading(self) -> str:
        """The text at the beginning of a file of this layout, before its first sentence."""
        return getattr(self.dialect, "heading", "")

    # --------------------------------------------------------------------------------------------------------- reading

    def sentences(self, reading: ReadReport | None = None) -> Iterator[Sentence]:
        """Return the sentences, read lazily."""
        reading = reading or ReadReport()
        return _noting_no_mention(self.format.read(self.path, self.dialect, reading), reading)

    def beginning(self) -> Iterator[Sentence]:
        """The first sentences, without those that have errors, which are reported when the file is read."""
        reading = ReadReport(repair=True, on_fault=lambda _: None)
        with contextlib.suppress(EntaugError, OSError):
            yield from islice(self.sentences(reading), _SAMPLE_SIZE)

    def source_files(self) -> list[Path]:
        """Return the files that are read; several if the format is a folder."""
        return self.format.files(self.path)

    @property
    def size(self) -> int:
        """The size of these files in bytes; a link that leads nowhere counts nothing, and is an error in reading."""
        return sum(file.stat().st_size for file in self.source_files() if file.exists())

    # --------------------------------------------------------------------------------------------------------- writing

    def as_stored(self, sentence: Sentence) -> Sentence:
        """Return a sentence as it would be read back after writing."""
        return self.format.as_stored(sentence, self.dialect)

    def encode(self, sentence: Sentence) -> str:
        """Return the text of a sentence, ready to be appended to a file."""
        return self.format.dump(sentence, self.dialect)

    def lost(self, sentence: Sentence) -> list[str]:
        """Return descriptions of the parts of a sentence that its text does not represent."""
        lost = self.format.lost(sentence, self.dialect)
        if not lost or (of_user := without_bookkeeping(sentence)) is sentence:
            return lost
        content = set(self.format.lost(of_user, self.dialect))
        return [name if name in content else BOOKKEEPING + name for name in lost]

    @property
    def keeps_keys(self) -> bool:
        """Whether augmented sentences name their sources, and gold ones have a place for the ids named."""
        new = Sentence(["a"], id="a", provenance=Provenance("a"))
        return not (self.format.names_documents or self.format.lost(new, self.dialect))

    def check_target(self, *, force: bool) -> None:
        """Check that the path is of the kind that the format is written as, before any work."""
        path, title, folder = self.path, self.format.title, self.format.folder
        if isinstance(self.format, BufferedFormat) and (is_stdout(path) or is_special(path)):
            remedy = f"name a {'folder' if folder else 'file'} to write to"
            raise OutputError(f"{title} cannot be written to a stream", remedy=remedy)
        if folder and path.is_file():
            raise OutputError("is a file, and a folder is to be written", path=str(path), remedy="name another")
        if not folder and path.is_dir():
            raise OutputError("is a directory", path=str(path), remedy="name a file in it")
        if folder and path.is_dir():
            self._check_replaceable(path, force=force)

    def _check_replaceable(self, folder: Path, *, force: bool) -> None:
        """Check that a folder may be replaced by a new one of the same format."""
        if not any(folder.iterdir()):
            return
        title = self.format.title
        if not force:
            remedy = f"name a new or empty one, or pass `force=True` to replace what was written as {title} before"
            raise OutputError("is a folder that holds something", path=str(folder), remedy=remedy)
        if not (isinstance(self.format, BufferedFormat) and self.format.replaceable(folder)):
            message = f"is a folder that holds more than {title}, and is not replaced"
            raise OutputError(message, path=str(folder), remedy="name a new or empty one")

    @contextlib.contextmanager
    def writer(self, *, force: bool = False) -> Iterator[SentenceWriter]:
        """Write sentences one by one; the file or folder is moved into place when the block ends without an error."""
        if not isinstance(self.format, BufferedFormat):
            with open_output(self.path) as stream:
                yield SentenceWriter(self, stream)
            return
        with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
            draft = Path(folder, "draft.jsonl")
            try:
                with draft.open("wb") as stream:
                    yield SentenceWriter(self, stream)
            except OSError as error:
                if error.filename is not None:
                    raise
                if error.errno != errno.ENOSPC:
                    raise output_error(self.path, error) from None  # of the draft; nobody knows its name
                # The folder of the draft is full, not that of the output.
                what = f"a draft of the output cannot be written ({error.strerror})"
                remedy = "free some space there, or let TMPDIR name a folder with more"
                raise OutputError(what, path=str(Path(folder).parent), remedy=remedy) from None
            self.finish(draft, force=force)

    @contextlib.contextmanager
    def open_run(self, key: str, *, force: bool = False, rejected: Path | None = None) -> Iterator[RunWriter]:
        """Open the output of a run, with a file of rejected sentences or without."""
        with contextlib.ExitStack() as stack:
            if is_stdout(self.path) or is_special(self.path):
                stream = sys.stdout.buffer if is_stdout(self.path) else stack.enter_context(atomic_file(self.path))
                writer: RunWriter = DirectWriter(stream, self.heading, rejected)
            else:
                writer = CheckpointedWriter(
                    self.path,
                    f"{key} {rejected}",  # with another file of rejected sentences it is another run
                    force=force,
                    heading=self.heading,
                    rejected=rejected,
                    finish=partial(self.finish, force=force),
                )
            yield stack.enter_context(writer)

    def write(self, sentences: Iterable[Sentence], *, force: bool = False) -> int:
        """Write all sentences."""
        if isinstance(self.format, BufferedFormat):
            return self._write_whole(self.format, self._with_own_ids(sentences), force=force)
        rest = iter(sentences)
        sample = list(rest if isinstance(sentences, Sequence) else islice(rest, _SAMPLE_SIZE))
        file = replace(self, dialect=self.format.prepared(self.dialect, sample))
        with file.writer() as writer:
            for sentence in self._with_own_ids(chain(sample, rest)):
                writer.write(sentence)
        return writer.count

    def _with_own_ids(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield sentences; an error at the second one of an id that is written, as no file with it is read."""
        ids: set[str | None] = set()
        for sentence in sentences:
            # Sentences that are parts of documents are joined again, or named by the format.
            is_repeated = sentence.id is not None and sentence.id in ids and DOCUMENT not in sentence.meta
            if is_repeated and not self.format.names_documents and self.as_stored(sentence).id == sentence.id:
                remedy = "give each an id of its own, or none: sentence.with_(id=None)"
                raise LossError(f"two sentences have the id {sentence.id!r}", path=str(self.path), remedy=remedy)
            ids.add(sentence.id)
            yield sentence

    def _write_whole(self, format_: BufferedFormat, sentences: Iterable[Sentence], *, force: bool) -> int:
        """Write a file or folder that is written as a whole; it is moved into place when it is complete."""
        numbers = count()

        def checked() -> Iterator[Sentence]:
            for sentence in sentences:
                format_.check(sentence, self.dialect)
                next(numbers)
                yield sentence

        self.check_target(force=force)
        with atomic_path(self.path, lambda folder: self._check_replaceable(folder, force=force)) as new:
            format_.write(checked(), new, self.dialect)
        return next(numbers)

    def read_draft(self, draft: Path, start: int = 0, stop: int | None = None) -> Iterator[Sentence]:
        """Return the sentences of a draft, as they will be read from the finished file."""
        return self.format.read(
            draft, self.dialect, ReadReport(), start, draft.stat().st_size if stop is None else stop
        )

    def finish(self, draft: Path, *, force: bool = False) -> None:
        """Create the file or folder from a draft, which holds the heading and the text of each sentence."""
        if isinstance(self.format, BufferedFormat):
            self.write(self.read_draft(draft), force=force)
        else:
            move_file(draft, self.path)
