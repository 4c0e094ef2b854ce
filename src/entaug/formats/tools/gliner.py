"""Training data of GLiNER: tokens and mentions whose last token is named, as one JSON array or as JSON lines.

A record has ``tokenized_text``, a list of strings, and ``ner``, a list of ``[first token, last token, label]``. What
else GLiNER knows (``ner_labels``, ``ner_negatives``, ``relations`` ...) it reads by name, so that other fields do no
harm. Its own scripts load an array: a file is written as one unless its name says that it has lines (``.jsonl``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entaug.alignment import align_spaces
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_line_chunks
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import BEFORE
from entaug.formats.records import (
    beginnings,
    elements,
    fields_of,
    firsts_of_array,
    is_augmented,
    left_over,
    name_of,
    number_or_name,
    parsed,
    record_in,
    refuse_gaps,
    write_array,
    written,
)

__all__ = ["Gliner", "GlinerDialect"]

_LAYOUTS = ("", "array", "lines")
_LINES = (".jsonl", ".ndjson")
_OF_THE_SOURCE = ("relations",)  # they name mentions by number
_SHAPE = "write [first token, last token, label]"


@dataclass(frozen=True)
class GlinerDialect:
    """How a file of GLiNER is laid out.

    Args:
        layout: ``"array"``, ``"lines"``, or by the name of the file where it is empty.
    """

    layout: str = ""

    def __post_init__(self) -> None:
        if self.layout not in _LAYOUTS:
            raise ParameterError(f"layout must be one of {', '.join(_LAYOUTS[1:])}, not {self.layout!r}")

    def describe(self) -> str:
        """One line for people."""
        return "GLiNER" + {"": "", "array": ", one JSON array", "lines": ", JSON lines"}[self.layout]


class Gliner(BufferedFormat):
    """The format of GLiNER; see `entaug.formats.base.Format` and `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "gliner"
    title = "GLiNER"
    extensions = (".json", ".jsonl", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether the first record has what GLiNER asks for."""
        first = next(firsts_of_array(path, 1) if _is_array(path) else iter(beginnings(path, 1)), None)
        return type(first) is dict and type(first.get("tokenized_text")) is list and type(first.get("ner")) is list

    def dialect(self, **options: Any) -> GlinerDialect:
        """A dialect from options given by hand."""
        return GlinerDialect(**{name: value for name, value in options.items() if value is not None})

    def look(self, path: Path, **options: Any) -> GlinerDialect:
        """Find out whether the file is an array where its name says otherwise."""
        found = self.dialect(**options)
        layout = "array" if _is_array(path) else "lines"
        return found if found.layout or layout == _usual(path) else replace(found, layout=layout)

    def sentences(self, path: Path, dialect: GlinerDialect, reading: Reading) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`; lines are streamed.

        Raises:
            InputError: a record that is no object, a field that is missing or of the wrong kind, a mention that does
                not fit, an id that was there before, no sentence at all.
        """
        del dialect
        seen: dict[str, int] = {}
        empty = True
        lines = not _is_array(path)
        for number, value in _lines(path) if lines else enumerate(elements(path), start=1):
            empty = False
            try:
                sentence = _sentence(record_in(parsed(value) if lines else value), reading)
                twice = sentence.id is not None and reading.repeats(sentence.id, number, seen)
            except InputError as error:
                error.path, error.line = str(path), number if lines else None
                if not lines:
                    error.message = f"record {number}: {error.message}"
                reading.fault(error)
                continue
            reading.line = number
            yield sentence.with_(id=None) if twice else sentence
        if empty:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def check(self, sentence: Sentence, dialect: GlinerDialect) -> None:
        """Raise where a sentence cannot be written.

        Raises:
            LossError: a mention is discontinuous.
        """
        del dialect
        refuse_gaps(sentence, self.title)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: GlinerDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`."""
        records = (_record(sentence) for sentence in sentences)
        if (dialect.layout or _usual(path)) == "array":
            write_array(path, records)
            return
        with atomic_file(path) as out:
            for record in records:
                out.write(record.encode() + b"\n")

    def lost(self, sentence: Sentence, dialect: GlinerDialect) -> list[str]:
        """Columns, what is said of mentions besides, fields whose names are taken, spaces that tokens hide."""
        del dialect
        lost = [f"column {name!r}" for name in sentence.columns]
        lost += ["fields of mentions"] * (ENTITY_FIELDS in sentence.fields)
        lost += [f"field {key!r}" for key in ("tokenized_text", "ner") if key in sentence.fields]
        if sentence.spaces is not None and align_spaces(sentence.tokens, sentence.text) != sentence.spaces:
            lost.append("text")
        return lost


def _usual(path: Path) -> str:
    """The layout that a file's name speaks for."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return "lines" if suffixes and suffixes[-1] in _LINES else "array"


def _is_array(path: Path) -> bool:
    return read_beginning(path, 1 << 10).decode("utf-8-sig", "replace").lstrip().startswith("[")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for first, lines in read_line_chunks(path):
        for number, line in enumerate(lines, start=first):
            if line and not line.isspace():
                yield number, line


def _sentence(record: dict[str, Any], reading: Reading) -> Sentence:
    tokens, places = record.get("tokenized_text"), record.get("ner")
    if type(tokens) is not list:
        raise InputError("no list 'tokenized_text' in the object", remedy="give it a list of strings")
    if type(places) is not list:
        raise InputError("no list 'ner' in the object", remedy=_SHAPE)
    mentions: dict[Mention, None] = {}
    given = []
    for place in places:
        if type(place) is not list or len(place) != 3:
            raise InputError(f"a mention must be [first token, last token, label], not {place!r:.80}", remedy=_SHAPE)
        first, last, label = place
        if type(first) is not int or type(last) is not int:
            what = f"a mention must begin and end with whole numbers, not {first!r:.40} and {last!r:.40}"
            raise InputError(what, remedy=_SHAPE)
        mention = Mention(label, ((first, last + 1),))
        given.append(mention)
        if mention in mentions:
            if not reading.repair:
                raise InputError(f"mention {place} is given twice", remedy="remove one, or pass --repair")
            reading.repaired["mention that was given twice dropped"] += 1
        mentions[mention] = None
    meta = fields_of(record, ("tokenized_text", "ner"))
    spaces = None
    if type(meta.get("text")) is str and all(type(token) is str for token in tokens):
        spaces = align_spaces(tokens, meta["text"])
        if spaces is not None:
            del meta["text"]
    sentence = Sentence(tuple(tokens), tuple(mentions), name_of(record), spaces=spaces, **split_fields(meta))
    if type(meta.get("relations")) is list and tuple(given) != sentence.mentions:
        meta["relations"] = [_renumbered(relation, given, sentence.mentions) for relation in meta["relations"]]
    return sentence


def _renumbered(relation: Any, given: list[Mention], mentions: tuple[Mention, ...]) -> Any:
    """A relation between mentions that are told by their numbers, in the order that they are written in."""
    if type(relation) is not list or not all(type(n) is int and 0 <= n < len(given) for n in relation[:2]):
        return relation
    return [*(mentions.index(given[n]) for n in relation[:2]), *relation[2:]]


def _record(sentence: Sentence) -> str:
    record: dict[str, Any] = {} if sentence.id is None else {"id": number_or_name(sentence.id)}
    record["tokenized_text"] = sentence.tokens
    record["ner"] = [(mention.start, mention.end - 1, mention.label) for mention in sentence.mentions]
    if sentence.spaces is not None and "text" not in sentence.fields:
        record["text"] = sentence.text
    if BEFORE in sentence.fields:
        record[BEFORE] = sentence.fields[BEFORE]
    left_over(sentence, record, _OF_THE_SOURCE if is_augmented(sentence) else ())
    return written(record, sentence.key)
