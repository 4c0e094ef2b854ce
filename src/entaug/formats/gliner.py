"""Training data of GLiNER: tokens, and mentions by first and last token, as a JSON array or as JSON lines.

A record has ``tokenized_text``, a list of strings, and ``ner``, a list of ``[first token, last token, label]``. GLiNER
reads its further fields (``ner_labels``, ``ner_negatives``, ``relations`` ...) by name and ignores other fields.
Its own scripts load an array: a file is written as an array unless its extension is ``.jsonl``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from entaug.config.params import validate
from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import (
    peek_records,
    to_json,
)
from entaug.formats.text import BEFORE
from entaug.formats.text_records import add_other_fields, numeric_id, read_objects, write_objects
from entaug.formats.token_records import pop_id, pop_spaces, unique_mentions, without

_OF_SOURCE = ("relations",)  # they name mentions by number
_MENTION = "write [first token, last token, label]"


@dataclass(frozen=True)
class GlinerDialect:
    """Layout of a file of GLiNER.

    Args:
        layout: ``"array"`` or ``"lines"``; empty to choose it by the extension of the file.
        split_name: the part to read of a file with several, ``{"train": [...], "dev": [...]}``.
    """

    layout: Literal["", "array", "lines"] = ""
    split_name: str | None = None

    def __post_init__(self) -> None:
        validate(self)

    def describe(self) -> str:
        """Return a description of the layout."""
        return "GLiNER" + {"": "", "array": ", one JSON array", "lines": ", JSON lines"}[self.layout]


class Gliner(BufferedFormat):
    """The format of GLiNER; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "gliner"
    title = "GLiNER"
    extensions = (".json", ".jsonl", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)
    dialect_class = GlinerDialect
    reserved_fields = ("tokenized_text", "ner")

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`."""
        # Whether the first record has the fields that GLiNER needs.
        return any(
            type(record) is dict and all(type(record.get(name)) is list for name in self.reserved_fields)
            for record in peek_records(path, 1)[0]
        )

    def detect(self, path: Path, dialect: GlinerDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: an array or lines, if the extension differs."""
        del dialect, options
        layout = "array" if peek_records(path, 1)[1] else "lines"
        return {} if layout == _layout_of(path) else {"layout": layout}

    def sentences(self, path: Path, dialect: GlinerDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`; lines are streamed."""

        def parse(record: dict[str, Any]) -> Iterable[Sentence]:
            return (_parse(record, reading),)

        return read_objects(path, parse, reading, dialect.split_name)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: GlinerDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`."""
        records = (to_json(_record(sentence), sentence.key) for sentence in sentences)
        write_objects(path, records, as_array=(dialect.layout or _layout_of(path)) == "array")

    def lost(self, sentence: Sentence, dialect: GlinerDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`."""
        # Columns, fields of mentions, fields whose names are in use, and white space within tokens.
        lost = super().lost(sentence, dialect) + ["fields of mentions"] * (ENTITY_FIELDS in sentence.fields)
        hides_spaces = sentence.spaces is not None and align_spaces(sentence.tokens, sentence.text) != sentence.spaces
        return lost + ["text"] * hides_spaces


def _layout_of(path: Path) -> str:
    """Return the layout for the extension of a file."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return "lines" if suffixes and suffixes[-1] in (".jsonl", ".ndjson") else "array"


def _parse(record: dict[str, Any], reading: ReadReport) -> Sentence:
    tokens, entities = record.get("tokenized_text"), record.get("ner")
    if type(tokens) is not list:
        raise InputError("no list 'tokenized_text' in the object", remedy="give it a list of strings")
    if type(entities) is not list:
        raise InputError("no list 'ner' in the object", remedy=_MENTION)
    given = [_mention(entity) for entity in entities]
    mentions = tuple(unique_mentions(((mention, None) for mention in given), reading))
    meta = without(record, Gliner.reserved_fields)
    id_, spaces = pop_id(meta), pop_spaces(meta, tokens)
    relations = meta.get("relations")
    if type(relations) is list and tuple(given) != mentions:
        meta["relations"] = [_renumbered(relation, given, mentions) for relation in relations]
    return Sentence(tuple(tokens), mentions, id_, spaces=spaces, **split_fields(meta))


def _mention(entity: Any) -> Mention:
    if type(entity) is not list or len(entity) != 3:
        raise InputError(f"a mention must be [first token, last token, label], not {entity!r:.80}", remedy=_MENTION)
    first, last, label = entity
    if type(first) is not int or type(last) is not int:
        what = f"a mention must begin and end with whole numbers, not {first!r:.40} and {last!r:.40}"
        raise InputError(what, remedy=_MENTION)
    return Mention(label, ((first, last + 1),))


def _renumbered(relation: Any, given: list[Mention], mentions: tuple[Mention, ...]) -> Any:
    """A relation that refers to mentions by number, with their numbers in the order of `mentions`."""
    if type(relation) is not list or not all(type(n) is int and 0 <= n < len(given) for n in relation[:2]):
        return relation
    return [*(mentions.index(given[n]) for n in relation[:2]), *relation[2:]]


def _record(sentence: Sentence) -> dict[str, Any]:
    record: dict[str, Any] = {} if sentence.id is None else {"id": numeric_id(sentence.id)}
    record["tokenized_text"] = sentence.tokens
    record["ner"] = [(mention.start, mention.end - 1, mention.label) for mention in sentence.mentions]
    if sentence.spaces is not None and "text" not in sentence.fields:
        record["text"] = sentence.text
    if BEFORE in sentence.fields:
        record[BEFORE] = sentence.fields[BEFORE]
    add_other_fields(sentence, record, _OF_SOURCE)
    return record
