"""BioC, in XML or JSON: collections of documents whose passages have annotations, as of BioCreative, PubTator and PMC.

A document has passages, each with an offset and a text or sentences; an annotation has its words, infons such as
``type`` and ``identifier``, and one or more locations: several make a discontinuous mention. The label is the infon
``label``; the other infons and the id are fields of the mention, and are written again. JSON may be a collection, an
array of collections or of documents, an object with such an array, or a document in each line; XML is read without its
DTD.

Each text is read as one document, the passages on lines of their own; texts are tokenised by the rules of spaCy, and
split into the sentences of the file, or else by rules. Offsets count characters; where only UTF-16 code units or bytes
agree with the words of the annotations, they are converted. An unchanged document is written with its passages,
sentences and infons, any other as one passage. Relations, annotations outside of passages, and source, date and key of
a collection are not kept, and a note says so. A file whose name ends in ``.json`` is written as JSON, one in ``.jsonl``
has a document in each line, any other is XML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_file
from entaug.files.streams import open_bytes, read_beginning, read_block
from entaug.formats.base import FormatCapabilities, ReadReport
from entaug.formats.documents import DocumentFormat, DocumentOptions
from entaug.formats.records import (
    as_object,
    as_objects,
    numbered_lines,
    parse_json,
    peek_records,
    read_array,
    to_json,
    write_array,
)
from entaug.formats.text import NOT_IN_XML, CharMention, Document, Quote, locate_quotes, named_documents
from entaug.formats.token_records import without

KEPT = "_bioc"
"""Field of a sentence: the parts of its document (``passages``, ``infons``), and a digest of the text they are of."""
_HEAD_SIZE = 1 << 16
_MANY = {"document", "passage", "sentence", "annotation", "relation", "location", "node"}
_REMEDY = "correct it, or export it anew"
# What is written before, after and between the documents, by extension.
_JSON = {
    ".json": (b'{"source": "", "date": "", "key": "", "infons": {}, "documents": [\n', b"\n]}\n", b",\n"),
    ".jsonl": (b"", b"\n", b"\n"),
}


@dataclass(frozen=True)
class BioCDialect(DocumentOptions):
    """Options of splitting documents into sentences; see `entaug.formats.text.SegmentationOptions`.

    Args:
        label: the infon of an annotation that holds its label.
    """

    label: str = "type"

    lines = "passages"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The format, and where its labels are."""
        return f"BioC, label in {self.label!r}"


class BioC(DocumentFormat):
    """The format of BioC; see `entaug.formats.documents.DocumentFormat` for the methods."""

    name = "bioc"
    title = "BioC"
    extensions = (".xml", ".json", ".jsonl")
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=True)
    dialect_class = BioCDialect
    kept_fields = (KEPT,)
    not_in_text = NOT_IN_XML

    def recognises(self, path: Path) -> bool:
        return super().recognises(path) or any(map(_has_passages, peek_records(path, 1)[0]))

    def unit(self, path: Path) -> str:
        return "" if _is_xml(path) else "document"

    def records(self, path: Path, dialect: BioCDialect, reading: ReadReport) -> Iterable[tuple[int, Any]]:
        return _XmlDocuments(path, reading).read() if _is_xml(path) else _json_documents(path, reading)

    def parse(self, record: Any, dialect: BioCDialect, reading: ReadReport) -> Document:
        return _Reader(dialect, reading).document(as_object(record, _REMEDY))

    def writes_field(self, name: str, value: Any, dialect: BioCDialect) -> bool:
        return type(value) in ((str, int) if name == "id" else (str, int, float)) and name != dialect.label

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BioCDialect) -> None:
        documents = (_record(*named, dialect.label) for named in named_documents(sentences))
        if layout := next((_JSON[suffix] for suffix in path.suffixes if suffix in _JSON), None):
            start, end, separator = layout
            records = (to_json(document, document["id"]) for document in documents)
            write_array(path, records, start=start, end=end, separator=separator)
            return
        with atomic_file(path) as out:
            out.write(
                b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n<collection>\n'
            )
            out.write(b"<source></source>\n<date></date>\n<key></key>\n")
            for document in documents:
                out.write("".join(_to_xml("document", document)).encode())
            out.write(b"</collection>\n")


# ------------------------------------------------------------------------------------------------------ files, records


def _is_xml(path: Path) -> bool:
    head = read_beginning(path, _HEAD_SIZE).lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith((b"<", b"\xff\xfe", b"\xfe\xff"))


def _has_passages(value: Any) -> bool:
    """Whether a JSON value is a document of BioC, or holds some."""
    documents = value.get("documents", [value]) if type(value) is dict else []
    first = documents[:1] if type(documents) is list else []
    return any(type(one) is dict and type(one.get("passages")) is list for one in first)


def _note_collection(fields: Mapping[str, Any], reading: ReadReport) -> None:
    """Note what a collection says of itself."""
    for name in ("source", "date", "key", "infons"):
        if fields.get(name):
            reading.notes[f"{name} of a BioC collection not kept"] += 1


def _json_documents(path: Path, reading: ReadReport) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a JSON file with their numbers."""
    records, is_array = peek_records(path, 2)
    are_lines = len(records) > 1 and not is_array
    values: Iterable[tuple[int, Any]] = numbered_lines(path, notes=reading.notes) if are_lines else read_array(path)
    number = 0
    for line, value in values:
        try:
            collection = as_object(parse_json(value) if are_lines else value, _REMEDY)
            documents = as_objects(collection.get("documents", [collection]), "documents", _REMEDY)
        except InputError as error:
            error.locate(str(path), line if are_lines else None)
            raise
        if "documents" in collection:
            _note_collection(collection, reading)
        for document in documents:
            number += 1
            yield number, document


@dataclass
class _Element:
    """An element of XML that is being read, as the object that JSON has for it."""

    tag: str
    line: int
    fields: dict[str, Any]
    text: list[str] = field(default_factory=list)
    key: str = ""


class _XmlDocuments:
    """Reads the documents of an XML file as the objects that JSON has for them, with their lines."""

    def __init__(self, path: Path, reading: ReadReport) -> None:
        self._path, self._reading = path, reading
        self._open: list[_Element] = []
        self._done: list[tuple[int, Any]] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity

    def read(self) -> Iterator[tuple[int, Any]]:
        """Yield the documents."""
        with open_bytes(self._path) as stream:
            while True:
                block = read_block(stream, self._path)
                try:
                    self._parser.Parse(block, not block)
                except expat.ExpatError as error:
                    what = f"not XML that can be read ({expat.ErrorString(error.code)})"
                    raise InputError(what, path=str(self._path), line=error.lineno, remedy=_REMEDY) from None
                except (LookupError, ValueError) as error:  # an encoding that Python does not know, or of several bytes
                    what = f"not XML that can be read ({error})"
                    raise InputError(what, path=str(self._path), line=1, remedy="save it in UTF-8") from None
                yield from self._done
                self._done.clear()
                if not block:
                    return

    def _refuse_entity(self, name: str, *_: Any) -> None:
        what = f"the entity &{name}; is defined by the file, or nowhere"
        line = self._parser.CurrentLineNumber
        raise InputError(what, path=str(self._path), line=line, remedy="put the characters that it stands for")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if not self._open and tag != "collection":
            what = f"the first element is <{tag}>, and not <collection> as in BioC"
            raise InputError(what, path=str(self._path), line=line, remedy="check that it is the right file")
        self._open.append(_Element(tag, line, {}, key=attributes.pop("key", "")))
        self._open[-1].fields.update(attributes)

    def _add_text(self, text: str) -> None:
        self._open[-1].text.append(text)

    def _end(self, tag: str) -> None:
        element = self._open.pop()
        if not self._open:
            _note_collection(element.fields, self._reading)
            return
        parent = self._open[-1].fields
        if tag == "document":
            self._done.append((element.line, element.fields))
        elif tag == "infon":
            infons = parent.setdefault("infons", {})
            if element.key in infons:
                self._reading.notes["infon of BioC replaced by a later one of the same key"] += 1
            infons[element.key] = "".join(element.text)
        elif tag in _MANY:
            parent.setdefault(f"{tag}s", []).append({"line": element.line, **element.fields})
        else:
            parent[tag] = "".join(element.text)


# ------------------------------------------------------------------------------------------------------------- reading


class _Reader:
    """Reads a document from its object."""

    def __init__(self, dialect: BioCDialect, reading: ReadReport) -> None:
        self._label, self._reading = dialect.label, reading
        self._by_sentences = dialect.split == "sentences"
        self._text = ""
        self._mentions: list[CharMention] = []
        self._lines: list[int | None] = []
        self._starts: list[int] = []  # of passages and sentences
        self._has_sentences = False

    def document(self, record: Mapping[str, Any]) -> Document:
        """The document, with its parts as a field."""
        passages = []
        for number, passage in enumerate(as_objects(record.get("passages", []), "passages", _REMEDY)):
            self._text += "\n" * bool(number)
            passages.append(self._passage(passage))
        if outside := self._annotations(record):
            self._reading.notes["annotation of BioC outside of passages left out"] += len(outside)
        id_ = record.get("id")
        others = without(record, ("id", "line", "passages", "annotations", "relations"))
        return Document(
            self._text,
            self._mentions,
            str(id_) if type(id_) in (str, int) and id_ != "" else None,
            {KEPT: {"of": _digest(self._text), "passages": passages, **others}},
            sentence_starts=self._starts if self._has_sentences and self._by_sentences else None,
            mention_lines=self._lines,
        )

    def _passage(self, passage: Mapping[str, Any]) -> dict[str, Any]:
        """Add a passage; return what is kept of it."""
        begin, offset = len(self._text), _integer(passage, "offset")
        kept: dict[str, Any] = {"offset": offset, "infons": _object(passage, "infons")}
        parts = as_objects(passage.get("sentences", []), "sentences", _REMEDY)
        own = _string(passage, "text")
        self._starts.append(begin)
        self._text += own or ""
        annotations = self._annotations(passage)
        for part in parts:
            if own:
                annotations += self._annotations(part)
                continue
            gap = _integer(part, "offset") - offset - (len(self._text) - begin)
            self._text += " " * (gap if 0 <= gap <= 1 << 16 and len(self._text) > begin else len(self._text) > begin)
            start = len(self._text)
            self._text += _string(part, "text") or ""
            self._starts.append(start)
            self._has_sentences = True
            place = [_integer(part, "offset"), start - begin, len(self._text) - start]
            kept.setdefault("sentences", []).append([*place, _object(part, "infons")])
            self._add(self._annotations(part), place[0], start)
        kept["length"] = len(self._text) - begin
        self._add(annotations, offset, begin)
        return kept

    def _annotations(self, part: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The annotations of a document, passage or sentence; its relations are counted."""
        if relations := as_objects(part.get("relations", []), "relations", _REMEDY):
            self._reading.notes["relation of BioC not kept"] += len(relations)
        return [*as_objects(part.get("annotations", []), "annotations", _REMEDY)]

    def _add(self, annotations: Sequence[dict[str, Any]], offset: int, start: int) -> None:
        """Add annotations of the text that begins at an offset of the file, and here at `start`."""
        quotes: list[Quote] = []
        labels: list[tuple[str, dict[str, Any]]] = []
        for annotation in annotations:
            infons = _object(annotation, "infons")
            label, given = infons.pop(self._label, None), annotation.get("line")
            line = given if type(given) is int else None
            locations = as_objects(annotation.get("locations", []), "locations", _REMEDY)
            spans = [(first := _integer(one, "offset"), first + _integer(one, "length")) for one in locations]
            if type(label) is not str or not label or not spans:
                what = f"without an infon {self._label}" if spans else "without a location"
                self._reading.notes[f"annotation {what} left out"] += 1
                continue
            own = tuple((first - offset, last - offset) for first, last in sorted(spans))
            quotes.append(Quote(own, _string(annotation, "text"), line))
            id_ = annotation.get("id")
            has_id = type(id_) is str and id_ != ""
            if has_id and "id" in infons:
                self._reading.notes["infon id left out beside the id of its annotation"] += 1
            labels.append((label, infons | ({"id": id_} if has_id else {})))
            self._lines.append(line)
        placed = locate_quotes(self._text[start:], quotes, self._reading)
        for spans_, (label, fields) in zip(placed, labels, strict=True):
            moved = tuple((first + start, last + start) for first, last in spans_)
            self._mentions.append(CharMention(label, moved, fields))


def _integer(part: Mapping[str, Any], name: str) -> int:
    """A number of JSON, or the text of one."""
    value = part.get(name)
    if type(value) is str and re.fullmatch(r"\s*\d{1,15}\s*", value):
        return int(value)
    if type(value) is not int:
        raise InputError(f"no whole number {name!r}", line=part.get("line"), remedy=_REMEDY)
    return value


def _string(part: Mapping[str, Any], name: str) -> str | None:
    value = part.get(name)
    if value is not None and type(value) is not str:
        raise InputError(f"{name!r} is no string", line=part.get("line"), remedy=_REMEDY)
    return value


def _object(part: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(as_object({} if part.get(name) is None else part[name], f"let {name!r} be an object"))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


# ------------------------------------------------------------------------------------------------------------- writing


def _record(name: str, document: Document, is_augmented: bool, label: str) -> dict[str, Any]:
    """The object of a document, with the parts that its text was read with."""
    text, kept = document.text, document.fields.get(KEPT)
    is_known = not is_augmented and type(kept) is dict and kept.get("of") == _digest(text)
    known: dict[str, Any] = kept if is_known and kept else {}
    try:
        infons = dict(known.get("infons", {}))
        passages, parts = _passages(known["passages"], text)
    except (TypeError, ValueError, LookupError, AttributeError):  # an unknown document, or one edited in JSON lines
        known, infons = {}, {}
        passages, parts = _passages([{"offset": 0, "infons": {}, "length": len(text)}], text)
    ids = {own for mention in document.mentions if type(own := _id_of(mention)) is str}
    free = (f"T{number}" for number in range(1, len(ids) + len(document.mentions) + 1) if f"T{number}" not in ids)
    used: set[str] = set()
    for mention in document.mentions:
        first, last = mention.spans[0][0], mention.spans[-1][1]
        holding = (own for own in parts if own[0] <= first and last <= own[0] + own[1])
        start, _, part = next(holding, min(parts, key=lambda own: (own[0] > first, -own[0])))
        wanted = _id_of(mention)
        id_ = wanted if wanted is not None and wanted not in used else next(free)
        used.add(id_)
        further = {n: v for n, v in mention.fields.items() if type(v) in (str, int, float) and n not in ("id", label)}
        annotation = {
            "id": id_,
            "infons": {label: mention.label, **further},
            "text": " ".join(text[a:b] for a, b in mention.spans),
            "locations": [{"offset": a - start + part["offset"], "length": b - a} for a, b in mention.spans],
        }
        part["annotations"].append(annotation)
    others = without(known, ("of", "passages", "infons"))
    return {"id": name, "infons": infons, **others, "passages": passages, "relations": []}


def _id_of(mention: CharMention) -> str | None:
    """The id of an annotation as it is written."""
    own = mention.fields.get("id")
    return str(own) if type(own) in (str, int) and own != "" else None


def _passages(kept: list[Any], text: str) -> tuple[list[dict[str, Any]], list[tuple[int, int, dict[str, Any]]]]:
    """The passages of a text; where each part of it begins, its length and its object."""
    passages = []
    parts: list[tuple[int, int, dict[str, Any]]] = []
    begin = 0
    for passage in kept:
        length, sentences = passage["length"], passage.get("sentences", [])
        inner = [_part(own[0], own[3], text[begin + own[1] :][: own[2]]) for own in sentences]
        passages.append(_part(passage["offset"], passage["infons"], None if inner else text[begin:][:length], inner))
        parts += [(begin + own[1], own[2], part) for own, part in zip(sentences, inner, strict=True)]
        parts += [] if inner else [(begin, length, passages[-1])]
        begin += length + 1
    if begin != len(text) + 1:
        raise ValueError(begin)
    return passages, parts


def _part(offset: int, infons: Mapping[str, Any], text: str | None, sentences: Any = None) -> dict[str, Any]:
    """A passage or sentence, with all that readers of JSON ask for."""
    part: dict[str, Any] = {"offset": int(offset), "infons": dict(infons)}
    if text is not None:
        part["text"] = text
    if sentences is not None:
        part["sentences"] = sentences
    return part | {"annotations": [], "relations": []}


def _to_xml(tag: str, value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an element; of a document without what only JSON has a place for."""
    if tag == "location":
        yield f'<location offset="{value["offset"]}" length="{value["length"]}"/>\n'
        return
    yield f"<annotation id={quoteattr(_xml_text(value['id']))}>\n" if tag == "annotation" else f"<{tag}>\n"
    if tag == "document":
        yield f"<id>{escape(_xml_text(value['id']))}</id>\n"
    for name, own in value.get("infons", {}).items():
        yield f"<infon key={quoteattr(_xml_text(name))}>{_escape(own)}</infon>\n"
    if "offset" in value:
        yield f"<offset>{value['offset']}</offset>\n"
    for location in value.get("locations", ()):
        yield from _to_xml("location", location)
    if "text" in value:
        yield f"<text>{_escape(value['text'])}</text>\n"
    for inner in ("passage", "sentence", "annotation"):
        for own in value.get(f"{inner}s", ()):
            yield from _to_xml(inner, own)
    yield f"</{tag}>\n"


def _xml_text(value: object) -> str:
    return NOT_IN_XML.sub("\ufffd", str(value))


def _escape(value: object) -> str:
    return escape(_xml_text(value), {"\r": "&#13;"})
