r"""WebAnno TSV 3, as INCEpTION and WebAnno export and import it: tokens with the annotations of one or more layers.

The heading names the layers and their features, ``#T_SP=...NamedEntity|identifier|value``; each feature has a column. A
sentence has its text (``#Text=``), perhaps an id (``#Sentence.id=``), and a row for each token: its number, its first
and last character in the document, the token, and the values. ``_`` stands for no annotation and ``*`` for one without
a value; ``PER[1]`` in several rows is one mention, ``PER[1]|ORG[2]`` are two of one token. A row ``1-1.1`` is a part of
the token ``1-1``, and an error.

Mentions are the annotations of one layer, ``layer``: that of named entities, or else the first with a feature
``value``, or else the first; their label is ``feature``, or the name of a layer that has none. Other features of the
layer, such as ``identifier``, are fields of the mentions. Other layers, relations and chains are not read, and a note
names them. Offsets are counted anew in writing, in UTF-16 code units and with one character between sentences, as in
WebAnno.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import encode_text, read_beginning
from entaug.formats.base import FormatCapabilities, ReadReport
from entaug.formats.documents import DocumentFormat, checked_lines
from entaug.formats.text import CharMention, Document, SegmentationOptions, counter, locate_tokens
from entaug.formats.text_records import layout_text
from entaug.formats.token_records import entity_fields

_FORMAT = "#FORMAT=WebAnno TSV 3"
_TEXT, _SENTENCE_ID = "#Text=", "#Sentence.id="
_HEAD_SIZE = 1 << 16
_ENTITIES = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
_LAYER = re.compile(r"#T_(SP|RL|CH)=([^|]+)((?:\|.*)?)")
_NUMBER = re.compile(r"\d{1,9}-\d{1,9}(\.\d{1,9})?")
_OFFSETS = re.compile(r"(\d{1,9})-(\d{1,9})")
_BAR = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_SLOT = "ROLE_"
_ANNOTATION_ID = re.compile(r"(?<!\\)((?:\\\\)*)\[(\d{1,9})\]$")
_ESCAPED = re.compile(r"\\(->|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}
_TO_CONTROLS = {"\\": "\\\\", **{control: f"\\{letter}" for letter, control in _CONTROLS.items()}}
_IN_TEXT = str.maketrans(_TO_CONTROLS)
_RESERVED = re.compile(r"->|[\\\[\]|_;*\t\n\r\f\b]")
_REMEDY = "export it anew from WebAnno or INCEpTION"


class _Layer(NamedTuple):
    """A layer of a file: its kind (``SP``: spans), its name, the columns of its features and how many it has in all."""

    kind: str
    name: str
    features: Mapping[str, int]
    column: int
    width: int

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class WebAnnoDialect(SegmentationOptions):
    """Layout of a file of WebAnno TSV.

    Args:
        layer: the layer of the mentions; its full name, or what follows the last full stop there.
        feature: its feature that holds the label; empty where the layer has none and its name is the label.
        features: all its features, with ``|`` between them, as they are written.
    """

    layer: str = _ENTITIES
    feature: str = "value"
    features: str = "identifier|value"

    def describe(self) -> str:
        label = f"label in {self.feature!r}" if self.feature else "its name is the label"
        return f"WebAnno TSV 3, layer {self.layer.rpartition('.')[2]}, {label}"


@dataclass
class _Rows:
    """A sentence of a file: its text, id and rows with their numbers."""

    text: list[str] = field(default_factory=list)
    id: str | None = None
    rows: list[tuple[int, list[str]]] = field(default_factory=list)


@dataclass
class _Annotation:
    """An annotation of the layer: the values of its features, its characters so far, and its line."""

    values: dict[str, str]
    span: Span
    line: int


class WebAnno(DocumentFormat):
    """WebAnno TSV 3; see `entaug.formats.documents.DocumentFormat` for the methods."""

    name = "webanno"
    title = "WebAnno TSV"
    extensions = (".tsv",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=False, spaces=True)
    dialect_class = WebAnnoDialect
    has_tokens = True

    def detect(self, path: Path, dialect: WebAnnoDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        layer = _choose_layer(_layers(_heading(path)), dialect.layer if "layer" in options else "")
        if layer is None:
            return {}
        feature = "value" if "value" in layer.features else next(iter(layer.features), "")
        return {"layer": layer.name, "feature": feature, "features": "|".join(layer.features)}

    def records(self, path: Path, dialect: WebAnnoDialect, reading: ReadReport) -> Iterator[tuple[int, Any]]:
        try:
            parser = _Parser(_heading(path), dialect, reading)
        except InputError as error:
            error.locate(str(path))
            raise
        for number, rows in _read_rows(path, reading.notes):
            yield number, (parser, number, rows)

    def parse(
        self, record: tuple[_Parser, int, _Rows], dialect: WebAnnoDialect, reading: ReadReport
    ) -> Document | None:
        parser, number, rows = record
        return parser.parse(number, rows)

    def check(self, sentence: Sentence, dialect: WebAnnoDialect) -> None:
        super().check(sentence, dialect)
        short_name = dialect.layer.rpartition(".")[2]
        for mention in sentence.mentions:
            if not dialect.feature and mention.label != short_name:
                what = f"the layer {short_name} has no feature for the label {mention.label!r}"
                remedy = "pass `features='value'` and `feature='value'`"
                raise LossError(what, path=f"sentence {sentence.key}", remedy=remedy)

    def writes_field(self, name: str, value: Any, dialect: WebAnnoDialect) -> bool:
        return type(value) is str and name != dialect.feature and name in dialect.features.split("|")

    def writes_id(self, sentence: Sentence) -> bool:
        id_ = sentence.id or ""
        return id_ == id_.strip() != "" and not re.search("[\r\n\0]", id_)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: WebAnnoDialect) -> None:
        ids = count(1)
        offset = 0
        with atomic_file(path) as out:
            heading = "|".join([f"#T_SP={dialect.layer}", *dialect.features.split("|")]).rstrip("|")
            out.write(f"{_FORMAT}.3\n{heading}\n\n".encode())
            for number, sentence in enumerate(sentences, start=1):
                text, rows = _rows(sentence, number, offset, dialect, ids)
                offset += counter(text, "utf16")(len(text)) + 1
                named = [f"{_SENTENCE_ID}{sentence.id}"] * self.writes_id(sentence)
                texts = [f"{_TEXT}{line.translate(_IN_TEXT)}" for line in text.split("\n")]
                out.write(encode_text("".join(f"{line}\n" for line in ("", *named, *texts, *rows))))


# ------------------------------------------------------------------------------------------------------------- reading


def _heading(path: Path) -> list[str]:
    return read_beginning(path, _HEAD_SIZE).decode("utf-8-sig", "replace").splitlines()


def _layers(heading: Iterable[str]) -> list[_Layer]:
    """The layers that a heading names; each feature has a column, a slot has two, a layer without features has one."""
    layers = []
    column = 3
    for line in heading:
        if match := _LAYER.fullmatch(line.strip()):
            names = match[3].split("|")[1:]
            slots = {i + beside for i, name in enumerate(names) if name.startswith(_SLOT) for beside in (0, 1)}
            features = {name: i for i, name in enumerate(names, start=column) if name and i - column not in slots}
            layers.append(_Layer(match[1], match[2], features, column, max(1, len(names))))
            column += layers[-1].width
    return layers


def _choose_layer(layers: Sequence[_Layer], name: str = "") -> _Layer | None:
    """The layer of a name, or else that of named entities, or the first with a feature ``value``, or the first."""
    spans = [layer for layer in layers if layer.kind == "SP"]
    if name:
        return next((layer for layer in spans if name in (layer.name, layer.short_name)), None)
    entities = [layer for layer in spans if layer.short_name == "NamedEntity"]
    return next(iter([*entities, *(layer for layer in spans if "value" in layer.features), *spans]), None)


def _read_rows(path: Path, notes: Counter[str]) -> Iterator[tuple[int, _Rows]]:
    """Yield the rows of each sentence with the number of its first line."""
    current, begun = _Rows(), 0
    for number, line in checked_lines(path, notes):
        is_over = current.rows and line.startswith((_TEXT, _SENTENCE_ID))
        if is_over or (not line.strip() and (current.rows or current.text)):
            yield begun, current
            current = _Rows()
        if not (current.rows or current.text):
            begun = number
        if line.startswith(_TEXT):
            current.text.append(_unescape(line[len(_TEXT) :]))
        elif line.startswith(_SENTENCE_ID):
            current.id = line[len(_SENTENCE_ID) :]
        elif line.strip() and not line.startswith("#"):
            current.rows.append((number, line.split("\t")))
    if current.rows or current.text:
        yield begun, current


class _Parser:
    """Parses the sentences of a file."""

    def __init__(self, heading: Sequence[str], dialect: WebAnnoDialect, reading: ReadReport) -> None:
        layers = _layers(heading)
        layer = _choose_layer(layers, dialect.layer)
        if layer is None or (dialect.feature and dialect.feature not in layer.features):
            names = [own.short_name for own in layers if own.kind == "SP"] if layer is None else layer.features
            what = f"layer {dialect.layer!r}" if layer is None else f"feature {dialect.feature!r} of {layer.short_name}"
            option = "layer" if layer is None else "feature"
            remedy = f"name one with `{option}=NAME`: {', '.join(names) or 'it has none'}"
            raise InputError(f"no {what} in the heading", remedy=remedy)
        self._layer, self._dialect, self._reading = layer, dialect, reading
        self._sentence_of: dict[str, int] = {}  # of each annotation with an id
        if len(layer.features) < layer.width and layer.features:
            reading.notes[f"slots of the layer {layer.short_name} not read"] += 1
        for other in layers:
            if other is not layer:
                what = {"SP": "layer", "RL": "relations", "CH": "chains"}[other.kind]
                choose = "; another layer is read with `layer=NAME`" if other.kind == "SP" else ""
                reading.notes[f"{what} {other.short_name} of the file not read{choose}"] += 1

    def parse(self, number: int, rows: _Rows) -> Document | None:
        """The sentence of some rows; its first line has this number."""
        if not rows.rows:
            if any(line.strip() for line in rows.text):
                raise InputError("a text without a token", line=number, remedy=_REMEDY)
            return None
        tokens: list[str] = []
        offsets: list[Span] = []
        parts: list[tuple[int, list[str]]] = []  # line and cells of each token
        for line, columns in rows.rows:
            match, place = _NUMBER.fullmatch(columns[0]), _OFFSETS.fullmatch(columns[1] if len(columns) > 1 else "")
            if match is None or place is None or len(columns) < self._layer.column + self._layer.width:
                what = f"{' '.join(columns)[:60]!r} is no token with the columns that the heading names"
                raise InputError(what, line=line, remedy=_REMEDY)
            if match[1] is not None:
                what, remedy = f"{columns[0]} is a part of a token", "export UIMA CAS JSON, which has characters"
                raise InputError(what, line=line, remedy=remedy)
            tokens.append(_unescape(columns[2]))
            offsets.append((int(place[1]), int(place[2])))
            cells = [columns[i] for i in self._layer.features.values()] or [columns[self._layer.column]]
            parts.append((line, cells))
        if "" in tokens:
            raise InputError("a token without a character", line=number, remedy=_REMEDY)
        text, spans = self._locate(tokens, offsets, "\n".join(rows.text))
        mentions, lines = [], []
        for annotation in self._annotations(number, spans, parts):
            label = (
                annotation.values.pop(self._dialect.feature, "") if self._dialect.feature else self._layer.short_name
            )
            if not label:
                self._reading.notes[f"annotation without a {self._dialect.feature} left out"] += 1
                continue
            mentions.append(CharMention(label, (annotation.span,), annotation.values))
            lines.append(annotation.line)
        return Document(text, mentions, rows.id, {}, tokens, (0,), lines, spans)

    def _locate(self, tokens: Sequence[str], offsets: Sequence[Span], text: str) -> tuple[str, list[Span]]:
        """The text and the characters of each token; a text that is not that of the tokens is made of these."""
        spans = locate_tokens(tokens, text)
        if spans is not None:
            return text, spans
        self._reading.notes["text that is not that of its tokens: made of these"] += 1
        spans, made, last = [], "", offsets[0][0]
        for token, (start, end) in zip(tokens, offsets, strict=True):
            made += " " * min(max(0, start - last), 1)
            spans.append((len(made), len(made) + len(token)))
            made, last = made + token, end
        return made, spans

    def _annotations(
        self, number: int, spans: Sequence[Span], parts: Sequence[tuple[int, list[str]]]
    ) -> Iterable[_Annotation]:
        """The annotations of a sentence."""
        found: dict[tuple[str, int, int], _Annotation] = {}
        for span, (line, cells) in zip(spans, parts, strict=True):
            stacks = [_BAR.sub("\\1\n", cell).split("\n") for cell in cells]
            if len(set(map(len, stacks))) > 1:
                what = "the columns of a token have different numbers of annotations"
                raise InputError(what, line=line, remedy=_REMEDY)
            for position, values in enumerate(zip(*stacks, strict=True)):
                ids = [match[2] for value in values if (match := _ANNOTATION_ID.search(value))]
                plain = [_ANNOTATION_ID.sub(r"\1", value) for value in values]
                if set(plain) <= {"_", ""}:
                    continue
                key = (ids[0], 0, 0) if ids else ("", line, position)
                if key in found:
                    found[key].span = (found[key].span[0], span[1])
                    continue
                if ids and self._sentence_of.setdefault(ids[0], number) != number:
                    what = "annotation that goes on in the next sentence read as one in each"
                    self._reading.notes[what] += 1
                named = dict(zip(self._layer.features, plain, strict=False))
                held = {name: _unescape(value) for name, value in named.items() if value not in ("*", "_", "")}
                found[key] = _Annotation(held, span, line)
        return found.values()


def _unescape(value: str) -> str:
    return _ESCAPED.sub(lambda match: _CONTROLS.get(match[1], match[1]), value)


# ------------------------------------------------------------------------------------------------------------- writing


def _rows(
    sentence: Sentence, number: int, offset: int, dialect: WebAnnoDialect, ids: Iterator[int]
) -> tuple[str, list[str]]:
    """The text of a sentence that begins at an offset of its document, and a row for each of its tokens."""
    text, spans = layout_text(sentence)
    features = dialect.features.split("|")
    cells: list[list[list[str]]] = [[[] for _ in features] for _ in spans]
    depth = [0] * len(spans)
    for mention in sentence.mentions:
        for i in range(mention.start, mention.end):
            depth[i] += 1
    for mention, fields in zip(sentence.mentions, entity_fields(sentence), strict=True):
        places = range(mention.start, mention.end)
        mark = f"[{next(ids)}]" if len(places) > 1 or depth[mention.start] > 1 else ""
        for i in places:
            for cell, name in zip(cells[i], features, strict=True):
                value = mention.label if name and name == dialect.feature else fields.get(name)
                cell.append((_escape(value) if type(value) is str and value else "*") + mark)
    rows, units = [], counter(text, "utf16")
    for i, (start, end) in enumerate(spans, start=1):
        place = f"{offset + units(start)}-{offset + units(end)}"
        values = ["|".join(cell) or "_" for cell in cells[i - 1]]
        rows.append("\t".join([f"{number}-{i}", place, text[start:end].translate(_IN_TEXT), *values, ""]))
    return text, rows


def _escape(value: str) -> str:
    return _RESERVED.sub(lambda match: _TO_CONTROLS.get(match[0], f"\\{match[0]}"), value)
