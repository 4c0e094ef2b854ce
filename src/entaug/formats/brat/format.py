"""The standoff format of brat: a folder with a text ``NAME.txt`` and its annotations ``NAME.ann`` for each document.

Folders may be nested; the id of a document is its path without the extension. Offsets count the characters of the file,
including a byte-order mark and both characters of CRLF, as in brat. If another way of counting, such as UTF-16 units,
matches the texts of more mentions, it is used for reading and writing.

All lines are kept with the sentences: mentions with id and line number, other lines (relations, events, attributes,
normalisations, notes, equivalences) with the first sentence that they refer to. They are written back unchanged if
their sentences are unchanged and everything that they refer to is present. An unchanged document is therefore written
back byte for byte, except for empty lines, a byte-order mark and mixed line ends in the ``.ann``, and for mentions
without text or across line ends, which are written as brat writes them.

Each augmented sentence becomes a separate document; the file ``NAME.entaug.json`` holds its sentence offsets and
provenance. brat ignores this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from entaug.core.data import Sentence
from entaug.errors import InputError, LossError
from entaug.files.folders import (
    holds_document,
    holds_only,
    is_safe_name,
    natural_sort_key,
    safe_file_name,
    walk_files,
    write_documents,
)
from entaug.formats.base import ENTITY_FIELDS, KEPT, FormatCapabilities, ReadReport
from entaug.formats.brat.documents import (
    PROVENANCE_SUFFIX,
    document_files,
    group_documents,
    kept_fields,
    provenance_file,
    read_document,
    without_foreign_fields,
)
from entaug.formats.brat.standoff import merge_ranges, to_ranges
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import BEFORE, DOCUMENT, Document, join_sentences
from entaug.formats.records import read_records
from entaug.formats.segmentation import SegmentationOptions, retokenized

__all__ = ["Brat", "BratDialect"]


@dataclass(frozen=True)
class BratDialect(SegmentationOptions):
    """Options of splitting documents into sentences; see `entaug.formats.segmentation.SegmentationOptions`."""

    split: Literal["none", "lines", "sentences"] = "sentences"

    def describe(self) -> str:
        """Return a description of the layout."""
        how = {"none": "not cut", "lines": "cut at line ends", "sentences": "cut into sentences"}
        return f"brat standoff, tokens by the rules for {self.language!r}, texts {how[self.split]}"


class Brat(BufferedFormat):
    """The format of brat; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "brat"
    title = "brat standoff"
    extensions = (".ann",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=True)
    folder = True
    dialect_class = BratDialect
    names_documents = True

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: a text with its annotations, or a folder that holds one."""
        annotations = path.with_suffix(".ann") if path.suffix == ".txt" else path
        return holds_document(annotations, ".ann", lambda file: file.with_suffix(".txt").is_file())

    def files(self, path: Path) -> list[Path]:
        """See `entaug.formats.buffered.BufferedFormat.files`."""
        annotations = [file for _, file in _pairs(path, ReadReport()) if isinstance(file, Path)]
        provenance = (provenance_file(file) for file in annotations)
        texts = (file.with_suffix(".txt") for file in annotations)
        return [*annotations, *texts, *(file for file in provenance if file.is_file())]

    def sentences(self, path: Path, dialect: BratDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat.sentences`; documents are in the order of their names."""
        seen: set[str | None] = set()

        def parse(_number: int, pair: tuple[str, Path | InputError]) -> Iterator[Sentence]:
            name, annotations = pair
            if isinstance(annotations, InputError):
                raise annotations
            for sentence in read_document(name, annotations, dialect, reading):
                yield _with_unique_id(sentence, name, seen)

        return read_records(path, enumerate(_pairs(path, reading)), parse, reading, unit=None)

    def replaceable(self, path: Path) -> bool:
        """See `entaug.formats.buffered.BufferedFormat.replaceable`: pairs of files, and what is written beside them."""
        return holds_only(path, (PROVENANCE_SUFFIX, ".ann", ".txt"), {".ann", ".txt"})

    def as_stored(self, sentence: Sentence, dialect: BratDialect) -> Sentence:
        """See `entaug.formats.base.BaseFormat.as_stored`: tokenized again, and split at the boundaries of mentions."""
        text = join_sentences([without_foreign_fields(sentence)])
        mentions = [m._replace(spans=to_ranges(text.text, m.spans), fields={}) for m in text.mentions]
        read = retokenized(Document(text.text, [m for m in mentions if m.spans]), dialect)
        return sentence if read is None else read.with_(id=sentence.id).with_fields(sentence.fields)

    def check(self, sentence: Sentence, dialect: BratDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`: rejects texts and mentions that brat cannot read."""
        del dialect
        subject = f"sentence {sentence.key}"
        text = join_sentences([without_foreign_fields(sentence)])
        if not text.text.strip():
            raise LossError(f"{subject} is white space alone", remedy="leave it out")
        try:
            (text.text + "".join(mention.label for mention in sentence.mentions)).encode()
        except UnicodeEncodeError:
            raise LossError(f"{subject} holds half a character (a surrogate)", remedy="correct it") from None
        seen = set()
        for label, spans, _ in text.mentions:
            if label.split() != [label]:
                raise LossError(f"the label {label!r} holds white space", remedy="rename it, or write jsonl")
            ranges = merge_ranges(text.text, to_ranges(text.text, spans))
            if not ranges:
                raise LossError(f"a mention {label} of {subject} is white space alone", remedy="write jsonl")
            if (label, ranges) in seen:
                what = f"two mentions {label} of {subject} differ by white space alone"
                raise LossError(what, remedy="write jsonl")
            seen.add((label, ranges))

    def lost(self, sentence: Sentence, dialect: BratDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`; also lines of changed sentences, ids, and tokens."""
        written = {BEFORE, DOCUMENT, ENTITY_FIELDS, KEPT, "entaug"}
        lost = [f"column {name!r}" for name in sentence.columns]
        lost += [f"field {name!r}" for name in sentence.fields if name not in written]
        if kept_fields(sentence) is None:
            if KEPT in sentence.fields:
                lost.append("ids of mentions and lines that refer to them, of a sentence that has changed")
            elif ENTITY_FIELDS in sentence.fields:
                lost.append("fields of mentions")
        if sentence.id is not None and DOCUMENT not in sentence.fields and safe_file_name(sentence.id) != sentence.id:
            lost.append("id")
        if self.as_stored(sentence, dialect).tokens != sentence.tokens:
            lost.append("tokens that are not spaCy's")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BratDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.write`."""
        del dialect
        write_documents((document_files(g, n) for n, g in enumerate(group_documents(sentences), start=1)), path)


def _pairs(path: Path, reading: ReadReport) -> Iterator[tuple[str, Path | InputError]]:
    """Yield the name of each document with its ``.ann``, or with the error if a file of the pair is missing."""
    if path.is_dir():
        walked = walk_files(path, lambda reason: reading.notes.update([reason]))
        files = {name: file for name, file in walked if name.endswith((".ann", ".txt"))}
    elif path.suffix in (".ann", ".txt"):
        files = {file.name: file for file in (path.with_suffix(end) for end in (".ann", ".txt")) if file.is_file()}
        if path.with_suffix(".ann").name not in files:
            raise InputError("no .ann file beside it", path=str(path), remedy="name a pair, or a folder")
    else:
        raise InputError("is no .ann and no .txt file", path=str(path), remedy="name one, or a folder of both")
    for name in sorted(files, key=lambda name: natural_sort_key(name[:-4])):
        stem, ending = name[:-4], name[-4:]
        if ending == ".txt":
            if f"{stem}.ann" not in files:
                reading.notes["text without annotations (.txt without .ann) left out"] += 1
        elif f"{stem}.txt" not in files:
            text = files[name].with_suffix(".txt")
            what, remedy = f"no {text.name} beside it", "put the text there that it refers to, or remove it"
            if text.is_symlink() or text.exists():
                what = f"the {text.name} beside it is no regular file, or a link out of the folder"
                remedy = "put a copy of the text there, or remove both"
            yield stem, InputError(what, path=str(files[name]), remedy=remedy)
        elif not is_safe_name(stem):
            what = "a file name that is not UTF-8, or holds control characters"
            yield stem, InputError(what, path=ascii(str(files[name])), remedy="rename it")
        else:
            yield stem, files[name]


def _with_unique_id(sentence: Sentence, document: str, seen: set[str | None]) -> Sentence:
    """Return the sentence with a new id if its id is in use: texts ``a`` and ``a-1`` may both have an ``a-1``."""
    id_, number = sentence.id, 1
    while id_ in seen:
        number += 1
        id_ = f"{sentence.id}+{number}"
    seen.add(id_)
    if number == 1:
        return sentence
    start = len(sentence.fields.get(BEFORE, ""))
    return sentence.with_(id=id_).with_fields({DOCUMENT: [document, start], **sentence.fields})
