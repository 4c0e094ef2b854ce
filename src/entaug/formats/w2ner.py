"""The input format of the code of W2NER: one JSON array with an object per sentence.

``sentence`` holds the tokens, and ``ner`` an object per mention with ``index``, the positions of its tokens in order,
and ``type``. All other fields are kept, also those of mentions; that code does not read them.

Li et al. (2022), Unified Named Entity Recognition as Word-Word Relation Classification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.formats.base import Dialect, FormatCapabilities, ReadReport
from entaug.formats.records import to_json, write_array
from entaug.formats.token_formats import TokenRecords
from entaug.formats.token_records import without

_OF_MENTION = ("index", "type")
_MENTION = 'write {"index": [0], "type": "X"}'


class W2nerDialect(Dialect):
    """The only layout of W2NER's files."""

    description = "W2NER's JSON array"


class W2ner(TokenRecords):
    """The format of W2NER; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "w2ner"
    title = "W2NER's JSON"
    extensions = (".json",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    dialect_class = W2nerDialect
    token_field = "sentence"  # noqa: S105 - no password
    reserved_fields = (token_field, "ner")
    unit = "sentence"
    example = 'write {"sentence": [], "ner": [{"index": [0], "type": "X"}]}'
    of_source = ("word",)  # the words among Chinese characters

    def parse_mention(self, value: Any, reading: ReadReport) -> tuple[Mention, dict[str, Any]]:
        if type(value) is not dict:
            raise InputError(f"a mention must be an object, not {value!r}", remedy=_MENTION)
        index, label = value.get("index"), value.get("type")
        if type(label) is not str:
            raise InputError(f"a mention without a type: {value}", remedy=_MENTION)
        if type(index) is not list or not index or set(map(type, index)) != {int}:
            raise InputError(f"'index' of a mention must be a list of whole numbers, not {index!r}", remedy=_MENTION)
        positions = sorted(set(index))
        if index != positions:
            if not reading.repair:
                what = f"'index' {index} is out of order"
                raise InputError(what, remedy="correct it, or pass `repair=True` to put it in order")
            reading.repaired["tokens of a mention put in order"] += 1
        return Mention(label, [(i, i + 1) for i in positions]), without(value, _OF_MENTION)

    def mention_value(self, mention: Mention, fields: Mapping[str, Any]) -> Any:
        return {"index": mention.positions(), "type": mention.label} | without(fields, _OF_MENTION)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: W2nerDialect) -> None:
        records = (to_json(self.record_of(sentence), sentence.key) for sentence in sentences)
        write_array(path, records, start=b"[", end=b"]\n")
