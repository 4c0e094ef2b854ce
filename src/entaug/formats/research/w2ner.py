"""The form that the code of W2NER reads: one JSON array with an object a sentence.

``sentence`` holds the tokens, and ``ner`` an object a mention with ``index``, the positions of its tokens in order, and
``type``. All other fields are kept, also those of mentions; that code does not look at them. Carries everything.

Li et al. (2022), Unified Named Entity Recognition as Word-Word Relation Classification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from entaug.data import Mention, Sentence, Span
from entaug.errors import InputError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import as_json, parsed
from entaug.formats.token_records import extras_of, fields, kind_of, sentence_of, tokens_of

__all__ = ["W2ner", "W2nerDialect"]

_OWN = frozenset(("sentence", "ner"))
_OF_MENTION = frozenset(("index", "type"))
_OF_PLACES = frozenset(("word",))  # where the words are among Chinese characters: new sentences have others
_FIRST = re.compile(rb"\s*\[\s*\{")
_TOKENS = re.compile(rb'"sentence"\s*:\s*\[\s*["\]]')
_MENTIONS = re.compile(rb'"ner"\s*:\s*\[\s*[{\]]')
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class W2nerDialect:
    """Nothing differs from file to file."""

    def describe(self) -> str:
        """One line for people."""
        return "W2NER's JSON array"


class W2ner(BufferedFormat):
    """The form of W2NER; see `entaug.formats.base.Format` and `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "w2ner"
    title = "W2NER's JSON"
    extensions = (".json",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether it begins as an array of objects with ``sentence`` and ``ner``."""
        found = read_beginning(path).removeprefix(_BOM)
        return all((_FIRST.match(found), _TOKENS.search(found), _MENTIONS.search(found)))

    def dialect(self, **options: Any) -> W2nerDialect:
        """The dialect; there are no options."""
        return W2nerDialect(**options)

    def look(self, path: Path, **options: Any) -> W2nerDialect:
        """The dialect."""
        del path
        return W2nerDialect(**options)

    def sentences(self, path: Path, dialect: W2nerDialect, reading: Reading) -> Iterator[Sentence]:
        """The sentences of a file.

        Raises:
            InputError: no JSON array; an object without tokens, mentions that do not fit, an id that was there before.
        """
        del dialect
        records = _records(path)
        if not records:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")
        seen: dict[str, int] = {}
        for number, record in enumerate(records, start=1):
            records[number - 1] = None  # so that a large file does not lie in memory twice
            try:
                sentence = _sentence(record, reading)
                if sentence is not None and reading.repeats(sentence.id, number, seen):
                    sentence = sentence.with_(id=None)
            except InputError as error:
                error.message, error.path = f"sentence {number}: {error.message}", str(path)
                reading.fault(error)
                continue
            if sentence is not None:
                reading.line = number  # which it is where we wrote the file: a line an object
                yield sentence

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: W2nerDialect) -> None:
        """Write a file, a line an object.

        Raises:
            LossError: a field is no JSON.
        """
        del dialect
        with atomic_file(path) as out:
            before = b"["
            for sentence in sentences:
                out.write(before + as_json(_record(sentence), sentence.key))
                before = b",\n"
            out.write(b"]\n" if before != b"[" else b"[]\n")

    def lost(self, sentence: Sentence, dialect: W2nerDialect) -> list[str]:
        """Fields of others that have the names of tokens and mentions."""
        del dialect
        return [f"field {name!r}" for name in sentence.fields if name in _OWN]


def _records(path: Path) -> list[Any]:
    try:
        records = parsed(read_bytes(path).removeprefix(_BOM), "mend it, or fetch it anew")
    except InputError as error:
        error.path = str(path)
        raise
    if type(records) is not list:
        found = f"{kind_of(records)} where an array of objects is expected"
        raise InputError(found, path=str(path), remedy='write [{"sentence": [...], "ner": [...]}, ...]')
    return records


def _sentence(record: Any, reading: Reading) -> Sentence | None:
    """The sentence of an object; None where it has no token."""
    if type(record) is not dict:
        raise InputError(f"{kind_of(record)} where an object is expected", remedy='write {"sentence": [], "ner": []}')
    tokens = tokens_of(record.get("sentence"), "sentence")
    entities = record.get("ner", [])
    if type(entities) is not list:
        raise InputError("'ner' is not a list", remedy='write [{"index": [0], "type": "X"}]')
    if not tokens and not entities:
        reading.notes["empty sentence left out"] += 1
        return None
    mentions: list[Mention] = []
    extras = []
    known = set()
    for entity in entities:
        mention = _mention(entity, reading)
        if mention in known and reading.repair:
            reading.repaired["mention that was given twice dropped"] += 1
            continue
        known.add(mention)
        mentions.append(mention)
        extras.append({name: value for name, value in entity.items() if name not in _OF_MENTION})
    return sentence_of(record, _OWN, tokens, mentions, extras)


def _mention(entity: Any, reading: Reading) -> Mention:
    remedy = 'write {"index": [0], "type": "X"}'
    if type(entity) is not dict:
        raise InputError(f"a mention must be an object, not {entity!r}", remedy=remedy)
    index, label = entity.get("index"), entity.get("type")
    if type(label) is not str:
        raise InputError(f"a mention without a type: {entity}", remedy=remedy)
    if type(index) is not list or not index or set(map(type, index)) != {int}:
        raise InputError(f"'index' of a mention must be a list of whole numbers, not {index!r}", remedy=remedy)
    if index != (ordered := sorted(set(index))):
        if not reading.repair:
            raise InputError(f"'index' {index} is out of order", remedy="mend it, or pass --repair to put it in order")
        reading.repaired["tokens of a mention put in order"] += 1
    return Mention(label, _runs(ordered))


def _runs(positions: list[int]) -> tuple[Span, ...]:
    """Positions in order as spans."""
    if positions[-1] - positions[0] == len(positions) - 1:
        return ((positions[0], positions[-1] + 1),)
    spans = []
    start = positions[0]
    for position, following in pairwise([*positions, positions[-1] + 2]):
        if following != position + 1:
            spans.append((start, position + 1))
            start = following
    return tuple(spans)


def _record(sentence: Sentence) -> dict[str, Any]:
    """The object of a sentence."""
    extras = extras_of(sentence)
    entities: list[dict[str, Any]] = []
    for i, mention in enumerate(sentence.mentions):
        entity: dict[str, Any] = {"index": mention.positions(), "type": mention.label}
        if extras:
            entity |= {name: value for name, value in extras[i].items() if name not in _OF_MENTION}
        entities.append(entity)
    own = _OWN | _OF_PLACES if sentence.provenance is not None else _OWN
    return {"sentence": sentence.tokens, "ner": entities, **fields(sentence, own)}
