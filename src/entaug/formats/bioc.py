"""BioC, in XML or JSON: collections of documents whose passages have annotations, as of BioCreative, PubTator and PMC.

A document has passages, each with an offset and a text or sentences; an annotation has its words, infons such as
``type`` and ``identifier``, and one or more locations: several make a discontinuous mention. The label is the infon
``label``; the other infons and the id are fields of the mention, and are written again. JSON may be a collection, an
array of collections or of documents, an object with such an array, or a document in each line; XML is read without its
DTD.

Each text is read as one document, the passages on lines of their own; texts are tokenised by the rules of spaCy, and
split into the sentences of the file, or else by rules. Offsets count characters; where only UTF-16 code units or bytes
agree with the words of the annotations, they are converted. An unchanged document is written with its passages,
sentences and infons, any other as one passage. Relations, and source, date and key of a collection, are not kept, and a
note says so. A file whose name ends in ``.json`` is written as JSON, one in ``.jsonl`` has a document in each line, any
other is XML.

This is one file because XML is read and written through the objects that JSON has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_file
from entaug.files.streams import is_kind, open_bytes, read_beginning, read_block
from entaug.formats.base import FormatCapabilities, ReadReport
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
from entaug.formats.text import (
    NOT_IN_XML,
    CharMention,
    Document,
    Quote,
    SegmentationOptions,
    locate_quotes,
    named_documents,
)
from entaug.formats.text_records import DocumentFormat, check_characters_of, check_mentions, stripped
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
class BioCDialect(SegmentationOptions):
    """Options of splitting documents into sentences; see `entaug.formats.text.SegmentationOptions`.

    Args:
        split: ``"none"``: a text is one sentence; ``"lines"``: each passage is one; ``"sentences"``: those of the file,
            or else detected ones.
        label: the infon of an annotation that holds its label.
    """

    split: Literal["none", "lines", "sentences"] = "sentences"
    label: str = "type"

    def describe(self) -> str:
        """Return a description of the layout."""
        how = {"none": "not cut", "lines": "cut into passages", "sentences": "cut into sentences"}
        return f"BioC, label in {self.label!r}, tokens by the rules for {self.language!r}, texts {how[self.split]}"


class BioC(DocumentFormat):
    """The format of BioC; see `entaug.formats.text_records.DocumentFormat` for the methods."""

    name = "bioc"
    title = "BioC"
    extensions = (".xml", ".json", ".jsonl")
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=True)
    dialect_class = BioCDialect
    has_tokens = False
    kept_fields = (KEPT,)

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: XML of a collection, or JSON with documents or passages."""
        if is_kind(path, self.name):
            return True
        records, _ = peek_records(path, 1)
        return any(_has_passages(record) for record in records)

    def unit(self, path: Path) -> str:
        """See `entaug.formats.text_records.DocumentFormat.unit`."""
        return "" if _is_xml(path) else "document"

    def records(self, path: Path, dialect: BioCDialect, reading: ReadReport) -> Iterable[tuple[int, Any]]:
        """See `entaug.formats.text_records.DocumentFormat.records`."""
        del dialect
        return _XmlDocuments(path, reading).read() if _is_xml(path) else _json_documents(path, reading)

    def parse(self, record: Any, dialect: BioCDialect, reading: ReadReport) -> Document:
        """See `entaug.formats.text_records.DocumentFormat.parse`."""
        return _Reader(as_object(record, _REMEDY), dialect, reading).document()

    def check(self, sentence: Sentence, dialect: BioCDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        del dialect
        document = self.to_document(sentence)
        held = "".join([document.text, sentence.id or "", *(mention.label for mention in sentence.mentions)])
        check_characters_of(sentence, held, NOT_IN_XML)
        check_mentions(sentence, document, stripped)

    def writes_field(self, name: str, value: Any, dialect: BioCDialect) -> bool:
        """See `entaug.formats.text_records.DocumentFormat.writes_field`: what infons can hold, and the id."""
        del dialect
        return name == "id" or type(value) in (str, int, float)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BioCDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.write`."""
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
    if type(value) is not dict:
        return False
    documents = value.get("documents", [value, *_listed(value)])
    first = documents[0] if type(documents) is list and documents else None
    second = documents[1] if type(documents) is list and len(documents) > 1 else None
    return any(type(one) is dict and type(one.get("passages")) is list for one in (first, second))


def _listed(value: Mapping[str, Any]) -> list[Any]:
    """The documents of an object that holds nothing else, as PubTator exports them."""
    only = next(iter(value.values()), None) if len(value) == 1 else None
    return only if type(only) is list else []


def _note_collection(fields: Mapping[str, Any], reading: ReadReport) -> None:
    """Note what a collection says of itself."""
    for name in ("source", "date", "key", "infons"):
        if fields.get(name):
            reading.notes[f"{name} of a BioC collection not kept"] += 1


def _json_documents(path: Path, reading: ReadReport) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a JSON file with their numbers."""
    records, is_array = peek_records(path, 2)
    if len(records) > 1 and not is_array:
        values: Iterable[Any] = (parse_json(line) for _, line in numbered_lines(path))
    else:
        values = (value for _, value in read_array(path))
    number = 0
    for value in values:
        collection = as_object(value, _REMEDY)
        documents = collection.get("documents", _listed(collection) or [collection])
        if "documents" in collection:
            _note_collection(collection, reading)
        for document in as_objects(documents, "documents", _REMEDY):
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
            parent.setdefault("infons", {})[element.key] = "".join(element.text)
        elif tag in _MANY:
            parent.setdefault(f"{tag}s", []).append({"line": element.line, **element.fields})
        else:
            parent[tag] = "".join(element.text)


# ------------------------------------------------------------------------------------------------------------- reading


class _Reader:
    """Reads a document from its object."""

    def __init__(self, record: Mapping[str, Any], dialect: BioCDialect, reading: ReadReport) -> None:
        self._record, self._dialect, self._reading = record, dialect, reading
        self._text = ""
        self._mentions: list[CharMention] = []
        self._lines: list[int] = []
        self._places: list[tuple[int, int, int]] = []  # of each passage: its offset, where it begins here, its length
        self._starts: list[int] = []
        self._has_sentences = False

    def document(self) -> Document:
        """The document, with its parts as a field."""
        record = self._record
        passages = []
        for number, passage in enumerate(as_objects(record.get("passages", []), "passages", _REMEDY)):
            self._text += "\n" * bool(number)
            passages.append(self._passage(passage))
        for annotation in self._annotations(record):
            self._add([annotation], None)
        id_ = record.get("id")
        kept: dict[str, Any] = {"of": _digest(self._text), "passages": passages}
        kept |= {
            name: value for name, value in record.items() if name not in ("id", "passages", "annotations", "relations")
        }
        kept.pop("line", None)
        starts = self._starts if self._has_sentences and self._dialect.split == "sentences" else None
        name = str(id_) if type(id_) in (str, int) and id_ != "" else None
        return Document(
            self._text, self._mentions, name, {KEPT: kept}, sentence_starts=starts, mention_lines=self._lines or None
        )

    def _passage(self, passage: Mapping[str, Any]) -> dict[str, Any]:
        """Add a passage; return what is kept of it."""
        begin, offset = len(self._text), _integer(passage, "offset")
        kept: dict[str, Any] = {"offset": offset, "infons": _object(passage, "infons")}
        parts = as_objects(passage.get("sentences", []), "sentences", _REMEDY)
        own = _string(passage, "text")
        self._starts.append(begin)
        if own is not None and (own or not parts):
            self._text += own
        for part in parts if not own else ():
            gap = _integer(part, "offset") - offset - (len(self._text) - begin)
            self._text += " " * (gap if 0 <= gap <= 1 << 16 and len(self._text) > begin else len(self._text) > begin)
            start = len(self._text)
            self._text += _string(part, "text") or ""
            self._starts.append(start)
            self._has_sentences = True
            place = (_integer(part, "offset"), start, len(self._text) - start)
            kept.setdefault("sentences", []).append([place[0], start - begin, place[2], _object(part, "infons")])
            self._add(self._annotations(part), place)
        kept["length"] = len(self._text) - begin
        place = (offset, begin, kept["length"])
        self._places.append(place)
        for part in parts if own else ():
            self._add(self._annotations(part), place)
        self._add(self._annotations(passage), place)
        return kept

    def _annotations(self, part: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The annotations of a document, passage or sentence; its relations are counted."""
        if relations := as_objects(part.get("relations", []), "relations", _REMEDY):
            self._reading.notes["relation of BioC not kept"] += len(relations)
        return as_objects(part.get("annotations", []), "annotations", _REMEDY)

    def _add(self, annotations: Sequence[dict[str, Any]], place: tuple[int, int, int] | None) -> None:
        """Add annotations of a text at a place, or of whichever passage their first location is in."""
        quotes: list[Quote] = []
        labels: list[tuple[str, dict[str, Any]]] = []
        for annotation in annotations:
            infons = _object(annotation, "infons")
            label, line = infons.pop(self._dialect.label, None), annotation.get("line")
            locations = as_objects(annotation.get("locations", []), "locations", _REMEDY)
            spans = [(start := _integer(one, "offset"), start + _integer(one, "length")) for one in locations]
            if place is None:
                fitting = (own for own in self._places if spans and own[0] <= spans[0][0] < own[0] + own[2])
                place = next(fitting, (0, 0, len(self._text)))
            if type(label) is not str or not label or not spans:
                what = f"without an infon {self._dialect.label}" if spans else "without a location"
                self._reading.notes[f"annotation {what} left out"] += 1
                continue
            own = tuple((start - place[0], end - place[0]) for start, end in sorted(spans))
            quotes.append(Quote(own, _string(annotation, "text"), line))
            id_ = annotation.get("id")
            labels.append((label, infons | ({"id": id_} if type(id_) is str and id_ else {})))
        if place is None or not quotes:
            return
        text = self._text[place[1] : place[1] + place[2]]
        for spans_, (label, fields), quote in zip(
            locate_quotes(text, quotes, self._reading), labels, quotes, strict=True
        ):
            moved = tuple((start + place[1], end + place[1]) for start, end in spans_)
            self._mentions.append(CharMention(label, moved, fields))
            self._lines += [quote.line] if quote.line is not None else []


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


def _infons(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a mention that infons can hold."""
    return {name: value for name, value in fields.items() if type(value) in (str, int, float) and name != "id"}


def _record(name: str, document: Document, is_augmented: bool, label: str) -> dict[str, Any]:
    """The object of a document, with the parts that its text was read with."""
    kept = document.fields.get(KEPT)
    known: Mapping[str, Any] = {} if is_augmented or type(kept) is not dict else kept
    text = document.text
    passages = _kept_passages(known, text) or [{"offset": 0, "infons": {}, "length": len(text)}]
    ids = {own for mention in document.mentions if type(own := mention.fields.get("id")) is str}
    free = (f"T{number}" for number in range(1, len(ids) + len(document.mentions) + 1) if f"T{number}" not in ids)
    used: set[str] = set()
    parts: list[tuple[int, int, dict[str, Any]]] = []  # where each text begins here, its length, its object
    made = []
    begin = 0
    for passage in passages:
        part = {"offset": passage["offset"], "infons": passage["infons"]}
        made.append(part)
        sentences = passage.get("sentences", [])
        for offset, start, length, infons in sentences:
            own = {"offset": offset, "infons": infons, "text": text[begin + start : begin + start + length]}
            part.setdefault("sentences", []).append(own)
            parts.append((begin + start, length, own))
        if not sentences:
            part["text"] = text[begin : begin + passage["length"]]
            parts.append((begin, passage["length"], part))
        begin += passage["length"] + 1
    for mention in document.mentions:
        first, last = mention.spans[0][0], mention.spans[-1][1]
        holding = (own for own in parts if own[0] <= first and last <= own[0] + own[1])
        start, _, part = next(holding, min(parts, key=lambda own: (own[0] > first, -own[0])))
        wanted = mention.fields.get("id")
        id_ = wanted if type(wanted) is str and wanted not in used else next(free)
        used.add(id_)
        locations = [{"offset": a - start + part["offset"], "length": b - a} for a, b in mention.spans]
        words = " ".join(text[a:b] for a, b in mention.spans)
        infons = {label: mention.label, **without(_infons(mention.fields), (label,))}
        annotation = {"id": id_, "infons": infons, "text": words, "locations": locations}
        part.setdefault("annotations", []).append(annotation)
    others = without(known, ("of", "passages", "infons"))
    return {
        "id": name,
        "infons": known.get("infons", {}),
        **others,
        "passages": list(map(_complete, made)),
        "relations": [],
    }


def _complete(part: dict[str, Any]) -> dict[str, Any]:
    """A passage with all the parts that readers of JSON ask for."""
    sentences = [
        {**own, "annotations": own.get("annotations", []), "relations": []} for own in part.get("sentences", [])
    ]
    text = {"text": part["text"]} if "text" in part else {}
    return {
        "offset": part["offset"],
        "infons": part["infons"],
        **text,
        "sentences": sentences,
        "annotations": part.get("annotations", []),
        "relations": [],
    }


def _kept_passages(kept: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    """The passages of a document, if they are those of its text; the field may come from any file."""
    passages = kept.get("passages")
    if kept.get("of") != _digest(text) or type(passages) is not list or type(kept.get("infons", {})) is not dict:
        return []
    try:
        for passage in passages:
            numbers = [passage["offset"], passage["length"]]
            infons = [passage["infons"]]
            for offset, start, length, own in passage.get("sentences", []):
                numbers += [offset, start, length]
                infons.append(own)
            if {*map(type, numbers)} != {int} or min(numbers) < 0 or {*map(type, infons)} != {dict}:
                return []
    except (TypeError, ValueError, LookupError, AttributeError):
        return []
    return passages if sum(passage["length"] + 1 for passage in passages) == len(text) + 1 else []


def _to_xml(tag: str, value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an element; of a document without what only JSON has a place for."""
    attributes = {name: value[name] for name in ("id",) if tag == "annotation"}
    if tag == "location":
        yield f'<location offset="{value["offset"]}" length="{value["length"]}"/>\n'
        return
    yield f"<{tag}{''.join(f' {name}={quoteattr(_xml_text(own))}' for name, own in attributes.items())}>\n"
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
