"""Training data of GLiNER: tokens, and mentions by first and last token, as a JSON array or as JSON lines.

A record has ``tokenized_text``, a list of strings, and ``ner``, a list of ``[first token, last token, label]``. GLiNER
reads its further fields (``ner_labels``, ``ner_negatives``, ``relations`` ...) by name and ignores other fields.
Its own scripts load an array: a file is written as an array unless its extension is ``.jsonl``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, Dialect, FormatCapabilities, ReadReport
from entaug.formats.records import array_text, detect_array, to_json, write_objects
from entaug.formats.text_records import numeric_id
from entaug.formats.token_formats import TokenRecords
from entaug.formats.token_records import without


@dataclass(frozen=True)
class GlinerDialect(Dialect):
    """Layout of a file of GLiNER.

    Args:
        array: whether to write one JSON array, or else JSON lines; the default depends on the extension.
        split_name: the part to read of a file with several, ``{"train": [...], "dev": [...]}``.
    """

    array: bool | None = None
    split_name: str | None = None

    def describe(self) -> str:
        return f"GLiNER{array_text(self.array)}"


class Gliner(TokenRecords):
    """The format of GLiNER; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "gliner"
    title = "GLiNER"
    extensions = (".json", ".jsonl", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)
    dialect_class = GlinerDialect
    token_field = "tokenized_text"  # noqa: S105 - no password
    reserved_fields = (token_field, "ner")
    example = 'write {"tokenized_text": [...], "ner": [[first token, last token, label]]}'
    of_source = ("relations",)  # they name mentions by number

    def detect(self, path: Path, dialect: GlinerDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        return detect_array(path)

    def parse_mention(self, value: Any, reading: ReadReport) -> tuple[Mention, dict[str, Any]]:
        if type(value) is not list or len(value) != 3:
            what = f"a mention must be [first token, last token, label], not {value!r:.80}"
            raise InputError(what, remedy=self.example)
        first, last, label = value
        if type(first) is not int or type(last) is not int:
            what = f"a mention must begin and end with whole numbers, not {first!r:.40} and {last!r:.40}"
            raise InputError(what, remedy=self.example)
        return Mention(label, ((first, last + 1),)), {}

    def mention_value(self, mention: Mention, fields: Mapping[str, Any]) -> Any:
        return mention.start, mention.end - 1, mention.label

    def renumbered(self, fields: Mapping[str, Any], given: list[Mention], mentions: list[Mention]) -> dict[str, Any]:
        relations = fields.get("relations")
        if type(relations) is not list or given == mentions:
            return {}

        def with_new_numbers(relation: Any) -> Any:
            if type(relation) is not list or not all(type(n) is int and 0 <= n < len(given) for n in relation[:2]):
                return relation
            return [*(mentions.index(given[n]) for n in relation[:2]), *relation[2:]]

        return {"relations": list(map(with_new_numbers, relations))}

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: GlinerDialect) -> None:
        def record(sentence: Sentence) -> dict[str, Any]:
            id_ = {} if sentence.id is None else {"id": numeric_id(sentence.id)}
            return id_ | without(self.record_of(sentence), ("id",))

        records = (to_json(record(sentence), sentence.key) for sentence in sentences)
        write_objects(path, records, is_array=dialect.array)

    def lost(self, sentence: Sentence, dialect: GlinerDialect) -> list[str]:
        lost = super().lost(sentence, dialect) + ["fields of mentions"] * (ENTITY_FIELDS in sentence.fields)
        hides_spaces = sentence.spaces is not None and align_spaces(sentence.tokens, sentence.text) != sentence.spaces
        return lost + ["text"] * (hides_spaces and "text" not in lost)
