"""PubTator: titles and abstracts with standoff annotations, as of PubTator, BC5CDR, BioRED and MedMentions.

A document is a line ``PMID|t|Title``, a line ``PMID|a|Abstract``, and a line for each mention with tabs between the
PMID, the first character, the one after the last, the words, the label and the identifier of its concept; empty lines
separate documents. Offsets count characters of the title, one separator, and the abstract. If only UTF-16 code units or
bytes agree with the words of the mentions, offsets are converted.

The identifier of a mention, and further columns (the names that make up a composite mention), are fields of it and are
written again. Relations, such as ``PMID CID D003000 D006973``, are kept with an unchanged document. The format has no
tokens: texts are tokenised by the rules of spaCy, and split into sentences. A text that is written is one title and one
abstract: its first line end parts them, and the others become spaces.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from entaug.core.data import Sentence
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import check_characters, encode_text, is_kind, read_line_chunks
from entaug.formats.base import BEFORE, ENTITY_FIELDS, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import DOCUMENT, CharMention, Document, join_sentences, named_documents
from entaug.formats.offsets import Quote, locate_quotes
from entaug.formats.records import read_records
from entaug.formats.segmentation import SegmentationOptions, retokenized, split_document
from entaug.formats.token_records import entity_fields

__all__ = ["PubTator", "PubTatorDialect"]

RELATIONS = "_pubtator"
"""Field of a sentence: the relations of its document, each a list of the columns after the PMID."""
_TEXT_LINE = re.compile(r"([^|\t]*)\|([a-z])\|(.*)")
_WORD = re.compile(r"[^\W\d]")
_NUMBER = re.compile(r"\d{1,9}")
_ID = re.compile(r"[^\s|]+")
_LINE_END = re.compile(r"[\r\n]")
_NOT_IN_COLUMNS = re.compile(r"[\t\r\n\0]")
_NO_IDENTIFIER = "-"
_MOST_COLUMNS = 7  # with the names of a composite mention; more are two lines that were joined
_OF_MENTION = ("identifier", "further")
_REMEDY = "write PMID, start, end, words, label and identifier with tabs between them"


@dataclass(frozen=True)
class PubTatorDialect(SegmentationOptions):
    """Options of splitting documents into sentences; see `entaug.formats.segmentation.SegmentationOptions`."""

    split: Literal["none", "lines", "sentences"] = "sentences"

    def describe(self) -> str:
        """Return a description of the layout."""
        how = {"none": "not cut", "lines": "cut into title and abstract", "sentences": "cut into sentences"}
        return f"PubTator, tokens by the rules for {self.language!r}, texts {how[self.split]}"


@dataclass
class _Lines:
    """The lines of a document: its texts by ``t`` and ``a``, and the others with their numbers."""

    id: str
    texts: dict[str, str]
    others: list[tuple[int, list[str]]] = field(default_factory=list)


class PubTator(BufferedFormat):
    """The format of PubTator; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "pubtator"
    title = "PubTator"
    extensions = (".pubtator",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=True)
    dialect_class = PubTatorDialect

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: whether the first line that is not empty is a title."""
        return is_kind(path, self.name)

    def sentences(self, path: Path, dialect: PubTatorDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat.sentences`, in the order of the file."""

        def parse(_line: int, lines: _Lines | InputError) -> Iterable[Sentence]:
            if isinstance(lines, InputError):
                raise lines
            document = _parse(lines, reading)
            sentences = split_document(document, dialect, reading)
            if not sentences:
                reading.notes["document without a token left out"] += 1
            return sentences

        return read_records(path, _documents(path, reading.notes), parse, reading)

    def as_stored(self, sentence: Sentence, dialect: PubTatorDialect) -> Sentence:
        """See `entaug.formats.base.BaseFormat.as_stored`: tokenised again, and split at the boundaries of mentions."""
        text = join_sentences([sentence])
        mentions = [mention._replace(fields={}) for mention in text.mentions]
        read = retokenized(Document(_LINE_END.sub(" ", text.text), mentions), dialect)
        return sentence if read is None else read.with_(id=sentence.id).with_fields(sentence.fields)

    def check(self, sentence: Sentence, dialect: PubTatorDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        del dialect
        self.check_contiguous(sentence)
        subject = f"sentence {sentence.key}"
        text = join_sentences([sentence])
        if "\0" in text.text or not text.text.strip():
            what = "is white space alone" if not text.text.strip() else "holds a NUL character"
            raise LossError(f"{subject} {what}", remedy="leave it out, or write JSON lines")
        try:
            text.text.encode()
        except UnicodeEncodeError:
            raise LossError(f"{subject} holds half a character (a surrogate)", remedy="correct it") from None
        seen = set()
        for mention in text.mentions:
            label, spans = mention.label, (mention.spans[0][0], mention.spans[-1][1])
            if _NOT_IN_COLUMNS.search(label) or label != label.strip():
                what = f"the label {label!r} holds a tab or a line end, or begins or ends with white space"
                raise LossError(what, path=subject, remedy="rename it, or write JSON lines")
            words = text.text[slice(*spans)]
            start = spans[0] + len(words) - len(words.lstrip())
            if not words.strip() or (label, start, words.strip()) in seen:
                what = "is white space alone" if not words.strip() else "differs from another by white space alone"
                raise LossError(f"a mention {label} of {subject} {what}", remedy="write JSON lines")
            seen.add((label, start, words.strip()))

    def lost(self, sentence: Sentence, dialect: PubTatorDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`; also ids, fields of mentions, and tokens."""
        written = {f"field {name!r}" for name in (BEFORE, DOCUMENT, ENTITY_FIELDS, RELATIONS)}
        lost = [name for name in super().lost(sentence, dialect) if name not in written]
        others = {name for fields in entity_fields(sentence) for name in fields if name not in _OF_MENTION}
        lost += sorted(f"field {name!r} of mentions" for name in others if not name.startswith("_"))
        if sentence.id is not None and DOCUMENT not in sentence.fields and not _ID.fullmatch(sentence.id):
            lost.append("id")
        if self.as_stored(sentence, dialect).tokens != sentence.tokens:
            lost.append("tokens that are not spaCy's")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: PubTatorDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.write`."""
        del dialect
        with atomic_file(path) as out:
            for number, (name, document, is_augmented) in enumerate(named_documents(sentences, _ID.fullmatch, "")):
                text = "\n" * bool(number) + "".join(f"{line}\n" for line in _lines(name, document, is_augmented))
                out.write(encode_text(text))


# ------------------------------------------------------------------------------------------------------------- reading


def _documents(path: Path, notes: Counter[str]) -> Iterator[tuple[int, _Lines | InputError]]:
    """Yield the lines of each document, with the number of its first; lines without a title are errors."""
    begun = 0
    current: _Lines | None = None
    for first, chunk in read_line_chunks(path, notes=notes):
        check_characters(chunk, first, path)
        for number, line in enumerate(chunk, start=first):
            if not line.strip():
                continue
            match = _TEXT_LINE.fullmatch(line)
            if match and match[2] == "t":
                if current is not None:
                    yield begun, current
                begun, current = number, _Lines(match[1].strip(), {"t": match[3]})
            elif current is None:
                what = f"{line[:60]!r} before a title"
                yield number, InputError(what, remedy="begin each document with a line PMID|t|Title")
            elif match and match[2] == "a" and match[1].strip() == current.id and "a" not in current.texts:
                current.texts["a"] = match[3]
            else:
                columns = [line] if match else [column.strip() for column in line.split("\t")]
                current.others.append((number, columns))
    if current is not None:
        yield begun, current


def _parse(lines: _Lines, reading: ReadReport) -> Document:
    """Parse the annotations of a document; an error holds the faults of all its lines."""
    text = "\n".join(lines.texts.values())
    if "\t" in text:
        reading.notes["tab within a title or an abstract, kept as part of its text"] += 1
    quotes: list[Quote] = []
    labels: list[tuple[str, dict[str, Any]]] = []
    relations: list[list[str]] = []
    faults: list[InputError] = []
    for number, columns in lines.others:
        if columns[0] != lines.id or not 4 <= len(columns) <= _MOST_COLUMNS:
            what = f"{' '.join(columns)[:60]!r} is no annotation of the document {lines.id!r}"
            faults.append(InputError(what, line=number, remedy=_REMEDY))
        elif _NUMBER.fullmatch(columns[1]) and _NUMBER.fullmatch(columns[2]):
            if len(columns) < 5 or not columns[4]:
                faults.append(InputError("an annotation without a label", line=number, remedy=_REMEDY))
                continue
            quotes.append(Quote(((int(columns[1]), int(columns[2])),), columns[3], number))
            given = columns[5] if len(columns) > 5 else _NO_IDENTIFIER
            fields: dict[str, Any] = {} if given in ("", _NO_IDENTIFIER) else {"identifier": given}
            labels.append((columns[4], fields | ({"further": columns[6:]} if len(columns) > 6 else {})))
        elif len(columns) < 6 and _WORD.search(columns[1]):
            relations.append(columns[1:])
        else:
            what = f"offsets must be whole numbers, not {columns[1]!r:.40} and {columns[2]!r:.40}"
            faults.append(InputError(what, line=number, remedy=_REMEDY))
    if faults:
        faults[0].others = faults[1:]
        raise faults[0]
    spans = locate_quotes(text, quotes, reading)
    mentions = [CharMention(label, own, fields) for own, (label, fields) in zip(spans, labels, strict=True)]
    kept = {RELATIONS: relations} if relations else {}
    return Document(text, mentions, lines.id or None, kept, mention_lines=[quote.line or 0 for quote in quotes])


# ------------------------------------------------------------------------------------------------------------- writing


def _lines(name: str, document: Document, is_augmented: bool) -> Iterator[str]:
    """Yield the lines of a document; relations do not hold for an augmented one."""
    title, _, abstract = document.text.partition("\n")
    yield f"{name}|t|{_LINE_END.sub(' ', title)}"
    yield f"{name}|a|{_LINE_END.sub(' ', abstract)}"
    for mention in document.mentions:
        start, end = mention.spans[0][0], mention.spans[-1][1]
        words = _NOT_IN_COLUMNS.sub(" ", document.text[start:end])
        identifier, further = mention.fields.get("identifier"), mention.fields.get("further")
        others = [identifier if type(identifier) is str else _NO_IDENTIFIER]
        others += further if type(further) is list else []
        yield "\t".join([name, str(start), str(end), words, mention.label, *map(_column, others)])
    relations = document.fields.get(RELATIONS)
    for relation in relations if type(relations) is list and not is_augmented else ():
        if type(relation) is list:
            yield "\t".join([name, *map(_column, relation)])


def _column(value: object) -> str:
    return _NOT_IN_COLUMNS.sub(" ", str(value))
