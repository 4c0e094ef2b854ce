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
from typing import Any

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_file
from entaug.files.streams import encode_text
from entaug.formats.base import FormatCapabilities, ReadReport
from entaug.formats.documents import DocumentFormat, DocumentOptions, checked_lines
from entaug.formats.text import CharMention, Document, Quote, locate_quotes, named_documents, raise_all

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
_REMEDY = "write PMID, start, end, words, label and identifier with tabs between them"


@dataclass(frozen=True)
class PubTatorDialect(DocumentOptions):
    """Options of splitting documents into sentences; see `entaug.formats.text.SegmentationOptions`."""

    title = "PubTator"
    lines = "title and abstract"


@dataclass
class _Lines:
    """The lines of a document: its texts by ``t`` and ``a``, and the others with their numbers."""

    id: str
    texts: dict[str, str]
    others: list[tuple[int, list[str]]] = field(default_factory=list)


class PubTator(DocumentFormat):
    """The format of PubTator; see `entaug.formats.documents.DocumentFormat` for the methods."""

    name = "pubtator"
    title = "PubTator"
    extensions = (".pubtator",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=True)
    dialect_class = PubTatorDialect
    kept_fields = (RELATIONS,)
    not_in_labels = re.compile(r"[\t\r\n\0]|^\s|\s$")

    def records(
        self, path: Path, dialect: PubTatorDialect, reading: ReadReport
    ) -> Iterator[tuple[int, _Lines | InputError]]:
        return _documents(path, reading.notes)

    def parse(self, record: _Lines | InputError, dialect: PubTatorDialect, reading: ReadReport) -> Document:
        if isinstance(record, InputError):
            raise record
        return _parse(record, reading)

    def to_document(self, sentence: Sentence) -> Document:
        document = super().to_document(sentence)
        return document._replace(text=_LINE_END.sub(" ", document.text))

    def writes_field(self, name: str, value: Any, dialect: PubTatorDialect) -> bool:
        return (name == "identifier" and type(value) in (str, int)) or (name == "further" and type(value) is list)

    def writes_id(self, sentence: Sentence) -> bool:
        return _ID.fullmatch(sentence.id or "") is not None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: PubTatorDialect) -> None:
        with atomic_file(path) as out:
            for number, (name, document, is_augmented) in enumerate(named_documents(sentences, _ID.fullmatch, "")):
                text = "\n" * bool(number) + "".join(f"{line}\n" for line in _lines(name, document, is_augmented))
                out.write(encode_text(text))


# ------------------------------------------------------------------------------------------------------------- reading


def _documents(path: Path, notes: Counter[str]) -> Iterator[tuple[int, _Lines | InputError]]:
    """Yield the lines of each document, with the number of its first; lines without a title are errors."""
    begun = 0
    current: _Lines | None = None
    for number, line in checked_lines(path, notes):
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
    raise_all(faults)
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
        others = [str(identifier) if type(identifier) in (str, int) else _NO_IDENTIFIER]
        others += further if type(further) is list else []
        yield "\t".join([name, str(start), str(end), words, mention.label, *map(_column, others)])
    relations = document.fields.get(RELATIONS)
    for relation in relations if type(relations) is list and not is_augmented else ():
        if type(relation) is list:
            yield "\t".join([name, *map(_column, relation)])


def _column(value: object) -> str:
    return _NOT_IN_COLUMNS.sub(" ", str(value))
