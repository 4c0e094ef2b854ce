"""Documents with annotations beside their text: one file of documents with offsets, or a folder of pairs of files.

A format parses a record of its file as a document, and prints documents; what lies between is here.
"""

from __future__ import annotations

import abc
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.spacing import stripped
from entaug.errors import InputError, LossError
from entaug.files.folders import holds_document, holds_only, is_safe_name, natural_sort_key, unused_name, walk_files
from entaug.files.streams import check_characters, is_kind, read_line_chunks
from entaug.formats.base import BEFORE, ENTITY_FIELDS, NOT_OF_SPACY, ReadReport, character_name
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import read_records
from entaug.formats.text import CHAR_RANGES, DOCUMENT, Document, SegmentationOptions, join_sentences, retokenized
from entaug.formats.text_records import cut_record, layout_text
from entaug.formats.token_records import entity_fields

NOT_IN_TEXT = re.compile("[\0\ud800-\udfff]")
"""A character that no text file has a place for: NUL, and half a character."""


def checked_lines(path: Path, notes: Counter[str] | None = None) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file, also blank ones; characters that no text has are errors."""
    for first, chunk in read_line_chunks(path, notes=notes):
        check_characters(chunk, first, path)
        yield from enumerate(chunk, start=first)


@dataclass(frozen=True)
class DocumentOptions(SegmentationOptions):
    """Options of splitting documents into sentences; see `entaug.formats.text.SegmentationOptions`."""

    split: Literal["none", "lines", "sentences"] = "sentences"

    title: ClassVar[str] = ""
    lines: ClassVar[str] = "lines"

    def describe(self) -> str:
        texts = "not cut" if self.split == "none" else f"cut into {self.lines if self.split == 'lines' else self.split}"
        return f"{self.title}, tokens by the rules for {self.language!r}, texts {texts}"


class StandoffFormat(BufferedFormat):
    """Base class of formats that hold texts with mentions by characters."""

    has_tokens = False
    """Whether files hold tokens; otherwise texts are tokenised anew when they are read."""
    kept_fields: Collection[str] = ()
    """Names of fields of sentences that are written besides those of all documents."""
    not_in_text = NOT_IN_TEXT
    not_in_labels: re.Pattern[str] | None = None

    def to_document(self, sentence: Sentence) -> Document:
        """The document of one sentence, as it is written."""
        return join_sentences([sentence])

    def place(self, text: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """The characters of a mention, as they are compared with those of others."""
        return stripped(text, spans)

    def as_stored(self, sentence: Sentence, dialect: Any) -> Sentence:
        """The sentence, if the format has no tokens, tokenised again and split at the boundaries of mentions."""
        if self.has_tokens:
            return super().as_stored(sentence, dialect)
        text = self.to_document(sentence)
        read = retokenized(Document(text.text, [m._replace(fields={}) for m in text.mentions if m.spans]), dialect)
        return sentence if read is None else read.with_(id=sentence.id).with_fields(sentence.fields)

    def check(self, sentence: Sentence, dialect: Any) -> None:
        """Check characters and labels; and without tokens, that mentions differ by more than white space."""
        if not self.carries.discontinuous:
            self.check_contiguous(sentence)
        document = self.to_document(sentence)
        subject, remedy = f"sentence {sentence.key}", "rename it, or write JSON lines"
        labels = [mention.label for mention in sentence.mentions]
        written_id = sentence.id if sentence.id is not None and self.writes_id(sentence) else ""
        if found := self.not_in_text.search("".join([document.text, *labels, written_id])):
            what = f"{subject} holds {character_name(found[0])}"
            raise LossError(what, remedy="remove it, or write JSON lines")
        for label in labels:
            if self.not_in_labels is not None and (found := self.not_in_labels.search(label)):
                raise LossError(f"the label {label!r} holds {found[0]!r}", path=subject, remedy=remedy)
        if self.has_tokens:
            layout_text(sentence)
            return
        if not document.text.strip():
            raise LossError(f"{subject} is white space alone", remedy="leave it out")
        seen = set()
        for label, spans, _ in document.mentions:
            key = label, self.place(document.text, spans)
            if not key[1] or key in seen:
                what = "differs from another by white space alone" if key[1] else "is white space alone"
                raise LossError(f"a mention {label} of {subject} {what}", remedy="write JSON lines")
            seen.add(key)

    def writes_field(self, name: str, value: Any, dialect: Any) -> bool:
        """Whether a further field of a mention is written."""
        return True

    def writes_id(self, sentence: Sentence) -> bool:
        """Whether the id of a sentence without a document is written."""
        return True

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        """The parts of a sentence that are not written; also ids, fields of mentions, and tokens."""
        written = {f"field {name!r}" for name in (BEFORE, DOCUMENT, ENTITY_FIELDS, *self.kept_fields)}
        lost = [name for name in super().lost(sentence, dialect) if name not in written]
        fields = (pair for own in entity_fields(sentence) for pair in own.items())
        others = {n for n, value in fields if n != CHAR_RANGES and not self.writes_field(n, value, dialect)}
        lost += [f"field {name!r} of mentions" for name in sorted(others)]
        lost += ["id"] * (sentence.id is not None and DOCUMENT not in sentence.fields and not self.writes_id(sentence))
        is_retokenised = not self.has_tokens and self.as_stored(sentence, dialect).tokens != sentence.tokens
        return lost + [NOT_OF_SPACY.format(dialect.language)] * is_retokenised


class DocumentFormat(StandoffFormat):
    """Base class of formats whose files hold documents one after the other."""

    def recognises(self, path: Path) -> bool:
        return is_kind(path, self.name)

    def unit(self, path: Path) -> str | None:
        """The name of a record in messages; see `read_records`."""
        return ""

    @abc.abstractmethod
    def records(self, path: Path, dialect: Any, reading: ReadReport) -> Iterable[tuple[int, Any]]:
        """Yield the records of a file with their numbers."""

    @abc.abstractmethod
    def parse(self, record: Any, dialect: Any, reading: ReadReport) -> Document | None:
        """The document of a record; None for one that is left out."""

    def sentences(self, path: Path, dialect: Any, reading: ReadReport) -> Iterator[Sentence]:
        def parse(_number: int, record: Any) -> Iterable[Sentence]:
            return cut_record(self.parse(record, dialect, reading), dialect, reading)

        yield from read_records(path, self.records(path, dialect, reading), parse, reading, unit=self.unit(path))


class DocumentFolder(BufferedFormat):
    """Base class of formats of folders with two files for each document: a text, and its annotations."""

    folder = True
    names_documents = True
    beside: Collection[str] = ()
    """Extensions of further files that entaug writes beside a document."""

    @abc.abstractmethod
    def read_document(
        self, name: str, annotations: Path, text: Path, dialect: Any, reading: ReadReport
    ) -> Iterable[Sentence]:
        """The sentences of a document."""

    def is_document(self, annotations: Path) -> bool:
        """Whether a file with the extension of annotations holds some."""
        return any(text.is_file() for text in self.texts_of(annotations))

    def texts_of(self, annotations: Path) -> list[Path]:
        """Where the text of some annotations may be."""
        return [annotations.with_suffix(".txt")]

    def recognises(self, path: Path) -> bool:
        annotations = path.with_suffix(self.extensions[0]) if path.suffix == ".txt" else path
        return holds_document(annotations, self.extensions[0], self.is_document)

    def documents(self, path: Path, reading: ReadReport) -> Iterator[tuple[str, Path, Path | None]]:
        """Yield the name of each document in their order, the file of its annotations and that of its text."""
        end = self.extensions[0]
        if path.is_dir():
            walked = {file: name for name, file in walk_files(path, lambda reason: reading.notes.update([reason]))}
        else:
            annotations = path.with_suffix(end)
            walked = {file: file.name for file in (annotations, *self.texts_of(annotations)) if file.is_file()}
            if path.suffix not in (end, ".txt") or annotations not in walked:
                raise InputError(f"no {end} file beside it", path=str(path), remedy="name a pair, or a folder")
        root = path.resolve()

        def is_elsewhere(text: Path) -> bool:
            return not text.parent.resolve().is_relative_to(root)

        texts = {file for file, name in walked.items() if name.endswith(".txt")}
        for file in sorted(walked, key=lambda file: natural_sort_key(walked[file].removesuffix(end))):
            if walked[file].endswith(end):
                texts_of = self.texts_of(file)
                text = next((o for o in texts_of if o in walked or (o.is_file() and is_elsewhere(o))), None)
                texts.discard(text or file)
                yield walked[file].removesuffix(end), file, text
        if texts:
            reading.notes[f"text without annotations (.txt without {end}) left out"] += len(texts)

    def files(self, path: Path) -> list[Path]:
        found: list[Path] = []
        for _, file, text in self.documents(path, ReadReport()):
            beside = (file.with_suffix(extension) for extension in self.beside)
            found += [file, *([text] if text else []), *(other for other in beside if other.is_file())]
        return found

    def sentences(self, path: Path, dialect: Any, reading: ReadReport) -> Iterator[Sentence]:
        seen: set[str] = set()

        def parse(_number: int, document: tuple[str, Path, Path | None]) -> Iterator[Sentence]:
            name, annotations, text = document
            if not is_safe_name(name):
                what = "a file name that is not UTF-8, or holds control characters"
                raise InputError(what, path=ascii(str(annotations)), remedy="rename it")
            if text is None:
                what = f"no {annotations.with_suffix('.txt').name} beside it, or it is a link out of the folder"
                raise InputError(what, path=str(annotations), remedy="put the text there, or remove the file")
            for sentence in self.read_document(name, annotations, text, dialect, reading):
                yield _with_unique_id(sentence, seen)

        return read_records(path, enumerate(self.documents(path, reading)), parse, reading, unit=None)

    def replaceable(self, path: Path) -> bool:
        needed = {self.extensions[0], ".txt"}
        return holds_only(path, (*self.beside, *sorted(needed)), needed)


def _with_unique_id(sentence: Sentence, seen: set[str]) -> Sentence:
    """Return the sentence with a new id if its id is in use: texts ``a`` and ``a-1`` may both have an ``a-1``."""
    id_ = unused_name(sentence.key, seen, "+")
    seen.add(id_)
    if id_ == sentence.key:
        return sentence
    start = len(sentence.fields.get(BEFORE, ""))
    return sentence.with_(id=id_).with_fields({DOCUMENT: [sentence.id, start], **sentence.fields})
