"""UIMA CAS, in JSON or XMI, as INCEpTION exports and imports it: a text with annotations of a type system.

Read are a JSON file, an XMI file with its ``TypeSystem.xml`` beside it, and a zip archive of both, such as an export of
INCEpTION; written are JSON, and for a name in ``.zip`` an archive of XMI with its types. Mentions are the annotations
of one type, ``layer``: named entities, or else the first with a feature ``value``; their label is its ``feature``.
Other features of simple types, such as ``identifier``, are fields of the mentions. Sentences and tokens are those of
DKPro Core in the file, or else found by the rules of spaCy. Annotations of other types are not read, and a note names
them.

A file is one document: what is written becomes one, with a line end between sentences that did not follow each other.
The package ``dkpro-cassis`` reads and writes, and converts offsets, which count UTF-16 code units in a file.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from entaug.config.registry import import_extra
from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.errors import InputError, LossError, OutputError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import FormatCapabilities, ReadReport
from entaug.formats.documents import DocumentFormat, DocumentOptions
from entaug.formats.records import as_object, parse_json
from entaug.formats.text import NOT_IN_XML, CharMention, Document, are_words, join_sentences, locate_tokens

_ENTITIES = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"  # noqa: S105
_SENTENCE = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Sentence"
_META = "de.tudarmstadt.ukp.dkpro.core.api.metadata.type.DocumentMetaData"
_ANNOTATION = "uima.tcas.Annotation"
_STRING = "uima.cas.String"
_NOT_NOTED = (_TOKEN, _SENTENCE, _META, "uima.tcas.DocumentAnnotation")
_TYPES = "typesystem.xml"  # in lower case
_MAX_SIZE = 1 << 30  # bytes, unpacked
_REMEDY = "export it anew, as UIMA CAS JSON or as UIMA CAS XMI with its type system"


@dataclass(frozen=True)
class CasDialect(DocumentOptions):
    """Which annotations are mentions, and how documents become sentences.

    Args:
        layer: the type of the mentions; its full name, or what follows the last full stop there.
        feature: its feature that holds the label.
    """

    layer: str = _ENTITIES
    feature: str = "value"

    def describe(self) -> str:
        return f"UIMA CAS, type {self.layer.rpartition('.')[2]}, label in {self.feature!r}"


class CasFormat(DocumentFormat):
    """The format of UIMA CAS; see `entaug.formats.documents.DocumentFormat` for the methods."""

    name = "cas"
    title = "UIMA CAS"
    extensions = (".json", ".zip", ".xmi")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=True)
    dialect_class = CasDialect
    has_tokens = True
    not_in_text = NOT_IN_XML

    def detect(self, path: Path, dialect: CasDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        if "layer" in options:
            return {}
        try:
            _, cas = next(_read_files(path))
        except (InputError, StopIteration):
            return {}
        types = [one.name for one in _annotation_types(cas)]
        fitting = [
            t.name for t in _annotation_types(cas) if t.get_feature(dialect.feature) and t.name not in _NOT_NOTED
        ]
        return {} if dialect.layer in types or not fitting else {"layer": fitting[0]}

    def files(self, path: Path) -> list[Path]:
        types = _types_beside(path.name, (file.name for file in path.parent.iterdir()))
        return [path] if types is None or not _is_xmi(path) else [path, path.with_name(types)]

    def unit(self, path: Path) -> str:
        return "document"

    def records(self, path: Path, dialect: CasDialect, reading: ReadReport) -> Iterator[tuple[int, Any]]:
        return enumerate(_read_files(path), start=1)

    def parse(self, record: tuple[str, Any], dialect: CasDialect, reading: ReadReport) -> Document:
        return _document(*record, dialect, reading)

    def writes_field(self, name: str, value: Any, dialect: CasDialect) -> bool:
        reserved = ("begin", "end", "sofa", "self", "type", dialect.feature)
        return type(value) is str and value != "" and name.isidentifier() and name[:1] != "_" and name not in reserved

    def writes_id(self, sentence: Sentence) -> bool:
        return False

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: CasDialect) -> None:
        if path.suffix == ".xmi":
            remedy = "name a file in .zip, which holds both, or in .json"
            raise OutputError("XMI cannot be read without its type system", path=str(path), remedy=remedy)
        cas = _to_cas(list(sentences), dialect, self.writes_field)
        with atomic_file(path) as out:
            if path.suffix != ".zip":
                out.write(cas.to_json().encode() + b"\n")
                return
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in (("TypeSystem.xml", cas.typesystem.to_xml()), ("document.xmi", cas.to_xmi())):
                    archive.writestr(zipfile.ZipInfo(name), content)  # of no date, so that equal data give equal bytes


_cassis = partial(import_extra, "cassis", "cas")


# ------------------------------------------------------------------------------------------------------------- reading


def _is_xmi(path: Path) -> bool:
    return read_beginning(path, 512).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _types_beside(name: str, files: Iterable[str]) -> str | None:
    """The type system of an XMI file among the names of files: that in its folder, or else in one above."""
    types = {str(PurePosixPath(file).parent): file for file in files if PurePosixPath(file).name.lower() == _TYPES}
    return next((types[str(folder)] for folder in PurePosixPath(name).parents if str(folder) in types), None)


def _read_files(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the CAS of each document of a file or an archive."""
    if read_beginning(path, 4) == b"PK\x03\x04":
        yield from _read_archive(path)
    elif _is_xmi(path):
        beside = [file.name for file in path.parent.iterdir()]
        yield path.stem, _parse_xmi(path.name, beside, lambda name: read_bytes(path.with_name(name)), path)
    else:
        data = read_bytes(path)
        try:
            as_object(parse_json(data, _REMEDY), _REMEDY)  # the faults that JSON may have, as in other formats
        except InputError as error:
            error.locate(str(path))
            raise
        cassis = _cassis()
        yield path.stem, _parse(lambda: cassis.load_cas_from_json(BytesIO(data)), path)


def _read_archive(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the CAS of each XMI file of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > _MAX_SIZE:
                raise InputError(f"holds more than {_MAX_SIZE >> 20:,} MiB", path=str(path), remedy="unpack it")
            files = archive.namelist()
            names = sorted(name for name in files if name.endswith(".xmi"))
            for name in names:
                yield PurePosixPath(name).stem, _parse_xmi(name, files, archive.read, path)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InputError(f"not a zip archive that can be read ({error})", path=str(path), remedy=_REMEDY) from None
    if not names:
        raise InputError("no XMI file in it", path=str(path), remedy=f"unpack it, if it is no UIMA CAS, or {_REMEDY}")


def _parse_xmi(name: str, files: Iterable[str], read: Callable[[str], bytes], path: Path) -> Any:
    """The CAS of an XMI file; its type system is one of the files that are named."""
    types_name = _types_beside(name, files)
    if types_name is None:
        remedy = "put TypeSystem.xml beside it, or name the archive that holds both"
        raise InputError(f"{name} without its type system", path=str(path), remedy=remedy)
    data, types, cassis = read(name), read(types_name), _cassis()
    if b"<!ENTITY" in data or b"<!ENTITY" in types:
        raise InputError("XML that declares entities", path=str(path), remedy=_REMEDY)

    def load() -> Any:
        return cassis.load_cas_from_xmi(BytesIO(data), cassis.load_typesystem(BytesIO(types)), lenient=True)

    return _parse(load, path)


def _parse(load: Callable[[], Any], path: Path) -> Any:
    """The result of a function of the library; whatever it raises is the fault of the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # types that the type system does not have
            return load()
    except Exception as error:  # noqa: BLE001
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(f"not a CAS that can be read ({reason})", path=str(path), remedy=_REMEDY) from None


def _annotation_types(cas: Any) -> list[Any]:
    """The types of the annotations in a CAS, by name."""
    types = {one.type.name: one.type for one in cas.select_all_annotations()}
    return [types[name] for name in sorted(types)]


def _document(name: str, cas: Any, dialect: CasDialect, reading: ReadReport) -> Document:
    """The document of a CAS."""
    text = cas.sofa_string
    if type(text) is not str:
        raise InputError("a CAS without a text", remedy=_REMEDY)
    if len(cas.views) > 1:
        reading.notes["view of a CAS but the first not read"] += len(cas.views) - 1
    types = _annotation_types(cas)
    names = [one.name for one in types]
    layer = next((n for n in names if dialect.layer in (n, n.rpartition(".")[2])), None)
    known = {one.name for one in cas.typesystem.get_types()}
    if layer is None and not any(dialect.layer in (n, n.rpartition(".")[2]) for n in known):
        remedy = f"name one with `layer=NAME`: {', '.join(n for n in names if n not in _NOT_NOTED) or 'none'}"
        raise InputError(f"no annotation of the type {dialect.layer!r}", remedy=remedy)
    for other in names:
        if other not in (layer, *_NOT_NOTED):
            short = other.rpartition(".")[2]
            reading.notes[f"type {short} of a CAS not read; another type is read with `layer=NAME`"] += 1
    mentions = []
    for one in _annotations(cas, names, layer or ""):
        fields = {f.name: one.get(f.name) for f in one.type.all_features if f.name not in ("begin", "end", "sofa")}
        label = fields.pop(dialect.feature, None)
        if type(label) is not str or not label or one.begin == one.end:
            what = "without a character" if one.begin == one.end else f"without a {dialect.feature}"
            reading.notes[f"annotation {what} left out"] += 1
            continue
        kept = {n: value for n, value in fields.items() if type(value) in (str, int, float, bool) and value != ""}
        mentions.append(CharMention(label, ((one.begin, one.end),), kept))
    metas = cas.select(_META) if _META in names else []
    id_ = next((own for meta in metas if (own := meta.get("documentId"))), None) or name
    starts = [begin for begin, _ in _spans(cas, names, _SENTENCE)] if dialect.split == "sentences" else []
    tokens = _spans(cas, names, _TOKEN)
    if not (tokens and are_words(tokens, text)):
        if tokens:
            reading.notes["tokens that leave out part of the text, or overlap: tokenised anew"] += 1
        tokens = []
    return Document(text, mentions, id_, sentence_starts=starts or None, token_spans=tokens or None)


def _spans(cas: Any, names: Iterable[str], type_name: str) -> list[Span]:
    """The characters of the annotations of a type, in order."""
    return sorted({(one.begin, one.end) for one in _annotations(cas, names, type_name)})


def _annotations(cas: Any, names: Iterable[str], type_name: str) -> Iterator[Any]:
    """Yield the annotations of a type, of which the library does not check the offsets."""
    for one in cas.select(type_name) if type_name in names else ():
        if type(one.begin) is not int or type(one.end) is not int:
            what = f"offsets must be whole numbers, not {one.begin!r:.40} and {one.end!r:.40}"
            raise InputError(what, remedy=_REMEDY)
        yield one


# ------------------------------------------------------------------------------------------------------------- writing


def _to_cas(sentences: list[Sentence], dialect: CasDialect, is_feature: Callable[[str, Any, CasDialect], bool]) -> Any:
    """The CAS of some sentences."""
    cassis = _cassis()
    document = join_sentences(sentences)
    tokens = locate_tokens(document.tokens or (), document.text)
    if tokens is None:
        what = "the white space in tokens cannot be told from that between them in a text"
        raise LossError(what, remedy="write JSON lines or CoNLL")
    features = {name for m in document.mentions for name, value in m.fields.items() if is_feature(name, value, dialect)}
    types = cassis.TypeSystem(add_document_annotation_type=True)
    made: dict[str, Any] = {name: types.create_type(name, _ANNOTATION) for name in (_SENTENCE, _TOKEN, dialect.layer)}
    for name in sorted({dialect.feature, *features}):
        types.create_feature(made[dialect.layer], name, _STRING)
    cas = cassis.Cas(types)
    cas.sofa_string = document.text
    cas.sofa_mime = "text/plain"
    first = 0
    for sentence in sentences:
        last = first + len(sentence.tokens)
        cas.add(made[_SENTENCE](begin=tokens[first][0], end=tokens[last - 1][1]))
        first = last
    for begin, end in tokens:
        cas.add(made[_TOKEN](begin=begin, end=end))
    for mention in document.mentions:
        own = {name: value for name, value in mention.fields.items() if name in features and type(value) is str}
        span = {"begin": mention.spans[0][0], "end": mention.spans[-1][1]}
        cas.add(made[dialect.layer](**span, **{dialect.feature: mention.label}, **own))
    return cas
