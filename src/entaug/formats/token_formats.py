"""Base class of JSON formats whose records have a list of tokens, and one of mentions by the numbers of tokens."""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.errors import InputError
from entaug.formats.base import BEFORE, ENTITY_FIELDS, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import NO_CHOICE, as_object, peek_records, read_given
from entaug.formats.token_records import (
    add_other_fields,
    check_tokens,
    entity_fields,
    note_no_labels,
    pop_columns,
    pop_id,
    pop_spaces,
    unique_mentions,
    without,
)


class TokenRecords(BufferedFormat):
    """Base class of JSON formats whose records have a list of tokens, and one of mentions by the numbers of tokens."""

    token_field: str
    unit = "record"
    example: str
    of_source: Collection[str] = ()
    """Names of fields that hold for the tokens of the source, and are not written for augmented sentences."""

    @abc.abstractmethod
    def parse_mention(self, value: Any, reading: ReadReport) -> tuple[Mention, dict[str, Any]]:
        """A mention, and its further fields."""

    @abc.abstractmethod
    def mention_value(self, mention: Mention, fields: Mapping[str, Any]) -> Any:
        """The value of a mention that is written."""

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        # A field with another text is written in place of the words and their white space.
        is_other = sentence.spaces is not None and sentence.fields.get("text", sentence.text) != sentence.text
        return super().lost(sentence, dialect) + ["text"] * is_other

    def recognises(self, path: Path) -> bool:
        records, _ = peek_records(path, 1)
        first = records[0] if records and type(records[0]) is dict else {}
        tokens, mentions = first.get(self.token_field), first.get("ner")
        return type(tokens) is list and type(mentions) is list and set(map(type, tokens[:1])) <= {str}

    def sentences(self, path: Path, dialect: Any, reading: ReadReport) -> Iterator[Sentence]:
        def parse(_number: int, record: Any) -> Iterator[Sentence]:
            return self._parse(as_object(record, self.example), reading)

        return read_given(path, parse, reading, getattr(dialect, "split_name", NO_CHOICE), self.unit)

    def _parse(self, record: dict[str, Any], reading: ReadReport) -> Iterator[Sentence]:
        tokens, values = check_tokens(record.get(self.token_field), self.token_field), record.get("ner", [])
        if type(values) is not list:
            raise InputError("'ner' is not a list", remedy=self.example)
        if not tokens and not values:
            reading.notes["empty sentence left out"] += 1
            return
        if "ner" not in record:
            note_no_labels(record, reading, "as 'ner'")
        given = [self.parse_mention(value, reading) for value in values]
        mentions = unique_mentions(given, reading)
        meta = without(record, (self.token_field, "ner"))
        id_ = pop_id(meta, is_checked=True)
        if any(mentions.values()):
            meta[ENTITY_FIELDS] = list(mentions.values())
        columns, spaces = pop_columns(meta, len(tokens)), pop_spaces(meta, tokens)
        meta |= self.renumbered(meta, [mention for mention, _ in given], list(mentions))
        yield Sentence(tokens, mentions, id_, columns=columns, spaces=spaces, **split_fields(meta))

    def renumbered(self, fields: Mapping[str, Any], given: list[Mention], mentions: list[Mention]) -> dict[str, Any]:
        """The fields that refer to mentions by number, with the numbers of the sorted ones."""
        return {}

    def record_of(self, sentence: Sentence) -> dict[str, Any]:
        """The record of a sentence."""
        record: dict[str, Any] = {self.token_field: sentence.tokens}
        fields = entity_fields(sentence)
        record["ner"] = [self.mention_value(m, own) for m, own in zip(sentence.mentions, fields, strict=True)]
        if sentence.id is not None:
            record["id"] = sentence.id
        if sentence.spaces is not None and "text" not in sentence.fields:
            record["text"] = sentence.text
        if sentence.columns:
            record["columns"] = dict(sentence.columns)
        if BEFORE in sentence.fields:
            record[BEFORE] = sentence.fields[BEFORE]
        add_other_fields(sentence, record, self.of_source, (self.token_field, "ner"))
        return record
