"""A JSON array of sentences, the objects of which are those of JSON lines; or an object of several such arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.errors import InputError
from entaug.formats.base import ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.jsonl import Jsonl, JsonlDialect, detect_layout
from entaug.formats.records import TOKEN_NAMES, peek_records, read_array, read_records, write_array
from entaug.formats.token_records import parse_record

_LINES = Jsonl()


@dataclass(frozen=True)
class JsonArrayDialect(JsonlDialect):
    """Layout of a JSON array: that of its objects.

    Args:
        split_name: the part to read of a file with several, ``{"train": [...], "dev": [...]}``.
    """

    split_name: str | None = None

    def describe(self) -> str:
        return super().describe().replace("JSON lines", "JSON array", 1)


class JsonArray(BufferedFormat):
    """A JSON array of sentences, the objects of which are those of JSON lines; or an object of several such arrays."""

    name = "json"
    title = "JSON array"
    extensions = (".json",)
    carries = Jsonl.carries
    dialect_class = JsonArrayDialect

    def recognises(self, path: Path) -> bool:
        records, is_array = peek_records(path, 1)
        return is_array and any(type(r) is dict and any(type(r.get(n)) is list for n in TOKEN_NAMES) for r in records)

    def detect(self, path: Path, dialect: JsonArrayDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        try:
            records = [record for _, record in read_array(path, exact=False, split_name=dialect.split_name)]
        except InputError:  # which `read` reports
            return {}
        return detect_layout(records, dialect, options)

    def sentences(self, path: Path, dialect: JsonArrayDialect, reading: ReadReport) -> Iterator[Sentence]:
        def parse(_number: int, record: Any) -> Iterable[Sentence]:
            return (parse_record(record, dialect, reading, is_own=dialect.is_own),)

        array = read_array(path, split_name=dialect.split_name)
        return read_records(path, array, parse, reading, unit="record")

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: JsonArrayDialect) -> None:
        write_array(path, (_LINES.dump(sentence, dialect).encode().rstrip() for sentence in sentences))

    def lost(self, sentence: Sentence, dialect: JsonArrayDialect) -> list[str]:
        return _LINES.lost(sentence, dialect)

    def check(self, sentence: Sentence, dialect: JsonArrayDialect) -> None:
        _LINES.dump(sentence, dialect)
