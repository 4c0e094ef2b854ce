"""The input format of the code of BARTNER for discontinuous mentions: three lines per sentence.

The tokens, separated by spaces; the mentions; an empty line. Mentions are separated by ``|``; each is the first and
last token of each of its spans, and its label: ``0,1 ADR|3,3,6,7 ADR``. The format holds tokens and all kinds of
mentions, nothing else. `BartnerNested` is the format for nested mentions.

Yan et al. (2021), A Unified Generative Framework for Various NER Subtasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.errors import InputError, LossError
from entaug.files.streams import check_characters, read_beginning, read_line_chunks
from entaug.formats.base import ENTITY_FIELDS, BaseFormat, Dialect, FormatCapabilities, ReadReport, character_name
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import (
    as_object,
    numbered_lines,
    parse_json,
    peek_records,
    read_records,
    to_json,
    write_objects,
)
from entaug.formats.text import DOCUMENT, group_by_document
from entaug.formats.token_records import check_tokens, unique_mentions, without

_MENTIONS = re.compile(r"\d+,\d+(?:,\d+,\d+)* [^ |]+(?:\|\d+,\d+(?:,\d+,\d+)* [^ |]+)*")
_MENTIONS_AT_END = re.compile(rf"{_MENTIONS.pattern}$")
_HEAD_SIZE = 1 << 16
_MENTION = "write the first and last token of each span, a space, and the label: 0,1 ADR|3,3,6,7 ADR"
_THREE_LINES = "write three lines a sentence: its tokens, its mentions, an empty one"


class BartnerDialect(Dialect):
    """The only layout of BARTNER's files for discontinuous mentions."""

    description = "BARTNER's lines of tokens and mentions"


class Bartner(BaseFormat):
    """The format of BARTNER for discontinuous mentions; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "bartner"
    title = "BARTNER's lines"
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=False)
    dialect_class = BartnerDialect

    def recognises(self, path: Path) -> bool:
        data = read_beginning(path, _HEAD_SIZE)
        lines = data.decode("utf-8-sig", "replace").replace("\r", "").rstrip("\n").split("\n")
        lines = lines[:-3] if len(data) == _HEAD_SIZE else [*lines, "", ""]  # the last sentence may be incomplete
        sentences = [lines[i : i + 3] for i in range(0, len(lines) - 2, 3)]
        with_mentions = [mentions for _, mentions, _ in sentences if mentions]
        return (
            bool(with_mentions)
            and all(map(_MENTIONS.fullmatch, with_mentions))
            and all(tokens and not blank for tokens, _, blank in sentences)
        )

    def read(
        self, path: Path, dialect: BartnerDialect, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:

        def parse(number: int, lines: list[str]) -> Iterable[Sentence]:
            return _parse(number, lines, reading)

        return read_records(path, _threes(path, start, stop, reading.notes), parse, reading, is_whole=stop is None)

    def dump(self, sentence: Sentence, dialect: BartnerDialect) -> str:
        for token in sentence.tokens:
            if token != token.strip() or re.search("[ \n\r\0\ud800-\udfff]", token):
                raise _loss("token", token, sentence)
        parts = []
        for mention in sentence.mentions:
            if mention.label.split() != [mention.label] or re.search("[|\0\ud800-\udfff]", mention.label):
                raise _loss("label", mention.label, sentence)
            parts.append(",".join(f"{a},{b - 1}" for a, b in mention.spans) + f" {mention.label}")
        return f"{' '.join(sentence.tokens)}\n{'|'.join(parts)}\n\n"

    def lost(self, sentence: Sentence, dialect: BartnerDialect) -> list[str]:
        return super().lost(sentence, dialect) + ["id"] * (sentence.id is not None)


def _loss(what: str, text: str, sentence: Sentence) -> LossError:
    found = re.search("[\0\ud800-\udfff]", text)
    held = character_name(found[0]) if found else f"white space{' or a bar' * (what == 'label')}"
    return LossError(f"{what} {text!r} holds {held}", path=sentence.id, remedy="write JSON lines")


def _threes(path: Path, start: int, stop: int | None, notes: Counter[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of each sentence, with the number of the first; missing lines at the end are empty."""

    def lines() -> Iterator[str]:
        for first, chunk in read_line_chunks(path, start, stop, notes):
            check_characters(chunk, first, path)
            yield from map(str.strip, chunk)

    one = lines()
    for number, three in enumerate(zip_longest(one, one, one)):
        tokens, mentions, blank = (line or "" for line in three)
        if three[2] is not None or tokens or mentions:
            yield 3 * number + 1, [tokens, mentions, blank]
        if blank or (mentions and not tokens):
            return  # the role of a line depends only on its number: nothing after it can be read


def _parse(number: int, lines: list[str], reading: ReadReport) -> Iterator[Sentence]:
    tokens, mentions, blank = lines
    if blank:
        what = "an empty line is expected after the mentions of a sentence"
        raise InputError(what, line=number + 2, remedy=_THREE_LINES)
    if mentions and not tokens:
        raise InputError("mentions follow an empty line of tokens", line=number + 1, remedy=_THREE_LINES)
    if not tokens:
        reading.notes["empty sentence left out"] += 1
        return
    if not mentions and _MENTIONS.fullmatch(tokens):
        raise InputError("a line of mentions where tokens are expected", remedy=_THREE_LINES)
    if not mentions and _MENTIONS_AT_END.search(tokens):
        reading.notes["line of tokens that ends like a line of mentions, read as tokens"] += 1
    found = [(_mention(part), None) for part in mentions.split("|")] if mentions else []
    yield Sentence(tuple(tokens.split(" ")), unique_mentions(found, reading))


def _mention(text: str) -> Mention:
    positions, _, label = text.partition(" ")
    try:
        numbers = [int(position) for position in positions.split(",")]
    except ValueError:
        numbers = []
    if not label or " " in label or not numbers or len(numbers) % 2:
        raise InputError(f"{text!r} is no mention", remedy=_MENTION)
    return Mention(label, tuple(sorted(zip(numbers[::2], [last + 1 for last in numbers[1::2]], strict=True))))


_DOCUMENT = 'write {"sentences": [[...], ...], "ners": [[[first, last, label], ...], ...]}'


class BartnerNestedDialect(Dialect):
    """The only layout of BARTNER's files for nested mentions."""

    description = "BARTNER's JSON lines, a document a line"


class BartnerNested(BufferedFormat):
    """The format of BARTNER for nested mentions; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "bartner-nested"
    title = "BARTNER's JSON lines"
    extensions = (".json", ".jsonl", ".jsonlines")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=False)
    dialect_class = BartnerNestedDialect
    reserved_fields = ("doc_key", "sentences", "ners", ENTITY_FIELDS)

    def recognises(self, path: Path) -> bool:
        records, is_array = peek_records(path, 1)
        first = records[0] if records and not is_array and type(records[0]) is dict else {}
        lists = first.get("sentences"), first.get("ners")
        return all(type(value) is list and set(map(type, value[:1])) <= {list} for value in lists)

    def sentences(self, path: Path, dialect: BartnerNestedDialect, reading: ReadReport) -> Iterator[Sentence]:

        def parse(number: int, line: str) -> Iterator[Sentence]:
            return _sentences(as_object(parse_json(line), _DOCUMENT), number, reading)

        return read_records(path, numbered_lines(path, notes=reading.notes), parse, reading)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BartnerNestedDialect) -> None:

        def documents() -> Iterator[list[Sentence]]:
            for group in group_by_document(sentences):
                is_augmented = any(sentence.provenance is not None for sentence in group)
                if is_augmented or [sentence.id for sentence in group] != _regular_ids(_key_of(group), len(group)):
                    yield from ([sentence] for sentence in group)
                else:
                    yield group

        write_objects(path, (to_json(_record(group), group[0].key) for group in documents()), is_array=False)

    def check(self, sentence: Sentence, dialect: BartnerNestedDialect) -> None:
        self.check_contiguous(sentence, "write the form for discontinuous mentions: `format='bartner'`")


def _sentences(record: dict[str, Any], number: int, reading: ReadReport) -> Iterator[Sentence]:
    """The sentences of a document, which must have as many lists of mentions as sentences."""
    sentences, ners, key = (record.get(name) for name in ("sentences", "ners", "doc_key"))
    if type(sentences) is not list or type(ners) is not list:
        raise InputError("no lists 'sentences' and 'ners' in the object", remedy=_DOCUMENT)
    if len(sentences) != len(ners):
        raise InputError(f"{len(ners)} lists of mentions for {len(sentences)} sentences", remedy=_DOCUMENT)
    if key is not None and type(key) not in (str, int):
        raise InputError(f"'doc_key' must be a string, not {key!r}", remedy="correct it")
    key = None if key is None else str(key)
    fields = without(record, ("doc_key", "sentences", "ners"))
    ids = _regular_ids(key, len(sentences))
    made: Any = fields.get("entaug")
    if type(made) is list and len(made) == len(sentences):
        del fields["entaug"]
    else:
        made = [None] * len(sentences)
    offset = 0
    for i, (words, values) in enumerate(zip(sentences, ners, strict=True)):
        try:
            tokens, mentions = check_tokens(words, "sentences"), _mentions(values, reading)
            if not tokens and not mentions:
                reading.notes["empty sentence left out"] += 1
                continue
            place = {DOCUMENT: [f"#{number}" if key is None else key, offset]} if len(sentences) > 1 else {}
            provenance = {} if made[i] is None else {"entaug": made[i]}
            yield Sentence(tokens, mentions, ids[i], **split_fields(fields | place | provenance))
        except InputError as error:
            error.message = f"sentence {i + 1} of the document: {error.message}"
            raise
        fields = {}
        offset += sum(map(len, tokens)) + len(tokens)


def _regular_ids(key: str | None, n: int) -> list[str | None]:
    """The ids of the sentences of a document."""
    return [key if key is None or n == 1 else f"{key}-{i + 1}" for i in range(n)]


def _mentions(value: Any, reading: ReadReport) -> tuple[Mention, ...]:
    if type(value) is not list:
        raise InputError(f"mentions are a list, not {value!r}", remedy=_DOCUMENT)
    mentions = []
    for entity in value:
        if type(entity) is not list or len(entity) != 3 or any(type(position) is not int for position in entity[:2]):
            raise InputError(f"{entity!r} is no mention", remedy="write [first, last, label]")
        first, last, label = entity
        mentions.append((Mention(label, ((first, last + 1),)), None))
    return tuple(unique_mentions(mentions, reading))


def _key_of(group: list[Sentence]) -> str | None:
    """The key of a document; None without one."""
    origin: Any = group[0].fields.get(DOCUMENT)
    is_named = len(group) > 1 and group[0].id is not None and isinstance(origin, list) and bool(origin)
    return str(origin[0]) if is_named else group[0].id


def _record(group: list[Sentence]) -> dict[str, Any]:
    """The object of a document."""
    key = _key_of(group)
    record: dict[str, Any] = {} if key is None else {"doc_key": key}
    record["sentences"] = [sentence.tokens for sentence in group]
    record["ners"] = [[[m.start, m.end - 1, m.label] for m in sentence.mentions] for sentence in group]
    for sentence in group:
        for name, value in without(sentence.fields, ("doc_key", DOCUMENT, ENTITY_FIELDS)).items():
            record.setdefault(name, [value] if name == "entaug" and len(group) == 1 else value)
    return record
