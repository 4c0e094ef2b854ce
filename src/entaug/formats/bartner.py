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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.errors import InputError, LossError
from entaug.files.streams import check_characters, read_beginning, read_line_chunks
from entaug.formats.base import ENTITY_FIELDS, BaseFormat, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import (
    as_object,
    numbered_lines,
    parse_json,
    peek_records,
    read_records,
    to_json,
)
from entaug.formats.text import DOCUMENT, group_by_document
from entaug.formats.text_records import write_objects
from entaug.formats.token_records import check_tokens, unique_mentions, without

_MENTIONS = re.compile(r"\d+,\d+(?:,\d+,\d+)* [^ |]+(?:\|\d+,\d+(?:,\d+,\d+)* [^ |]+)*")
_MENTIONS_AT_END = re.compile(rf"{_MENTIONS.pattern}$")
_HEAD_SIZE = 1 << 16
_NOT_IN_TOKENS = re.compile("[\n\r\0]")
_MENTION = "write the first and last token of each span, a space, and the label: 0,1 ADR|3,3,6,7 ADR"
_THREE_LINES = "write three lines a sentence: its tokens, its mentions, an empty one"


@dataclass(frozen=True)
class BartnerDialect:
    """The only layout of BARTNER's files for discontinuous mentions."""

    def describe(self) -> str:
        """Return a description of the layout."""
        return "BARTNER's lines of tokens and mentions"


class Bartner(BaseFormat):
    """The format of BARTNER for discontinuous mentions; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "bartner"
    title = "BARTNER's lines"
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=False)
    dialect_class = BartnerDialect

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`."""
        # Whether it begins with sentences of three lines, at least one of them with mentions.
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
        """See `entaug.formats.base.BaseFormat.read`: the sentences of a file, streamed."""
        del dialect

        def parse(number: int, lines: list[str]) -> Iterable[Sentence]:
            return _parse(number, lines, reading)

        return read_records(path, _read_threes(path, start, stop, reading.notes), parse, reading, is_whole=stop is None)

    def dump(self, sentence: Sentence, dialect: BartnerDialect) -> str:
        """See `entaug.formats.base.BaseFormat.dump`: the sentence as three lines."""
        del dialect
        line = " ".join(sentence.tokens)
        if line.count(" ") != len(sentence) - 1 or _NOT_IN_TOKENS.search(line) or line != line.strip():
            token = next(t for t in sentence.tokens if " " in t or _NOT_IN_TOKENS.search(t) or t != t.strip())
            raise _loss("token", token, sentence)
        parts = []
        for mention in sentence.mentions:
            if mention.label.split() != [mention.label] or "|" in mention.label or "\0" in mention.label:
                raise _loss("label", mention.label, sentence)
            parts.append(",".join(f"{a},{b - 1}" for a, b in mention.spans) + f" {mention.label}")
        return f"{line}\n{'|'.join(parts)}\n\n"

    def lost(self, sentence: Sentence, dialect: BartnerDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`: all but tokens and mentions."""
        return super().lost(sentence, dialect) + ["id"] * (sentence.id is not None)


def _loss(what: str, text: str, sentence: Sentence) -> LossError:
    held = "a NUL character" if "\0" in text else f"white space{' or a bar' * (what == 'label')}"
    return LossError(f"{what} {text!r} holds {held}", path=sentence.id, remedy="write JSON lines")


def _read_threes(path: Path, start: int, stop: int | None, notes: Counter[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each sentence, with the number of the first; missing lines at the end are empty."""
    # The role of a line depends only on its number: after a missing or additional line nothing can be read.
    pending: list[str] = []
    number = 1
    for first, lines in read_line_chunks(path, start, stop, notes):
        check_characters(lines, first, path)
        pending += lines
        complete = len(pending) // 3 * 3
        for i in range(0, complete, 3):
            yield number + i, pending[i : i + 3]
            if _step_fault(number + i, pending[i : i + 3]):
                return
        number += complete
        del pending[:complete]
    if any(line.strip() for line in pending):
        yield number, [*pending, "", ""][:3]


def _step_fault(number: int, lines: list[str]) -> InputError | None:
    """Return an error if three lines do not belong to one sentence."""
    tokens, mentions, blank = map(str.strip, lines)
    if blank:
        what = "an empty line is expected after the mentions of a sentence"
        return InputError(what, line=number + 2, remedy=_THREE_LINES)
    if mentions and not tokens:
        return InputError("mentions follow an empty line of tokens", line=number + 1, remedy=_THREE_LINES)
    return None


def _parse(number: int, lines: list[str], reading: ReadReport) -> Iterator[Sentence]:
    if fault := _step_fault(number, lines):
        raise fault
    tokens, mentions = lines[0].strip(), lines[1].strip()
    if not tokens:
        reading.notes["empty sentence left out"] += 1
        return
    if not mentions:
        _check_unlabelled(tokens, reading)
    found = [(_mention(part), None) for part in mentions.split("|")] if mentions else []
    yield Sentence(tuple(tokens.split(" ")), unique_mentions(found, reading))


def _check_unlabelled(tokens: str, reading: ReadReport) -> None:
    """Tell lines without mentions from lines of mentions that are where tokens are expected."""
    if _MENTIONS.fullmatch(tokens):
        raise InputError("a line of mentions where tokens are expected", remedy=_THREE_LINES)
    if _MENTIONS_AT_END.search(tokens):
        reading.notes["line of tokens that ends like a line of mentions, read as tokens"] += 1


def _mention(text: str) -> Mention:
    positions, _, label = text.partition(" ")
    try:
        numbers = [int(position) for position in positions.split(",")]
    except ValueError:
        numbers = []
    if not label or " " in label or not numbers or len(numbers) % 2:
        raise InputError(f"{text!r} is no mention", remedy=_MENTION)
    return Mention(label, tuple(sorted(zip(numbers[::2], [last + 1 for last in numbers[1::2]], strict=True))))


_OWN = ("doc_key", "sentences", "ners", "ids", "entaug")
_DOCUMENT = 'write {"sentences": [[...], ...], "ners": [[[first, last, label], ...], ...]}'


@dataclass(frozen=True)
class BartnerNestedDialect:
    """The only layout of BARTNER's files for nested mentions."""

    def describe(self) -> str:
        """Return a description of the layout."""
        return "BARTNER's JSON lines, a document a line"


class BartnerNested(BufferedFormat):
    """The format of BARTNER for nested mentions; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "bartner-nested"
    title = "BARTNER's JSON lines"
    extensions = (".json", ".jsonl", ".jsonlines")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=False)
    dialect_class = BartnerNestedDialect
    reserved_fields = ("doc_key", "sentences", "ners", "ids", ENTITY_FIELDS)

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`."""
        # Whether the first record is an object with `sentences` and `ners`, both lists of lists.
        records, is_array = peek_records(path, 1)
        first = records[0] if records and not is_array and type(records[0]) is dict else {}
        lists = first.get("sentences"), first.get("ners")
        return all(type(value) is list and set(map(type, value[:1])) <= {list} for value in lists)

    def sentences(self, path: Path, dialect: BartnerNestedDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`."""
        del dialect
        count = 0

        def parse(number: int, line: str) -> Iterator[Sentence]:
            nonlocal count
            count += 1
            record = _document(line)
            for result in _sentences(record, f"#{count}", reading):
                if isinstance(result, Sentence):
                    yield result
                else:
                    result.locate(str(path), number)
                    reading.fault(result)

        return read_records(path, numbered_lines(path, notes=reading.notes), parse, reading)

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BartnerNestedDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`; each document is one line."""
        del dialect
        records = (to_json(_record(document), document[0].key) for document in group_by_document(sentences))
        write_objects(path, records)

    def check(self, sentence: Sentence, dialect: BartnerNestedDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`: no mention may be discontinuous."""
        del dialect
        self.check_contiguous(sentence, "write the form for discontinuous mentions: --to bartner")


def _document(line: str) -> dict[str, Any]:
    """Parse the object of a document, which must have as many lists of mentions as sentences."""
    record = as_object(parse_json(line), _DOCUMENT)
    sentences, ners, key = record.get("sentences"), record.get("ners"), record.get("doc_key")
    if type(sentences) is not list or type(ners) is not list:
        raise InputError("no lists 'sentences' and 'ners' in the object", remedy=_DOCUMENT)
    if len(sentences) != len(ners):
        raise InputError(f"{len(ners)} lists of mentions for {len(sentences)} sentences", remedy=_DOCUMENT)
    if key is not None and type(key) not in (str, int):
        raise InputError(f"'doc_key' must be a string, not {key!r}", remedy="correct it")
    return record


def _sentences(record: dict[str, Any], unnamed: str, reading: ReadReport) -> Iterator[Sentence | InputError]:
    """Yield the sentences of a document, or their errors; `unnamed` is the name of a document without a key."""
    n = len(record["sentences"])
    key = None if record.get("doc_key") is None else str(record["doc_key"])
    ids, provenance = _written_ids(record, n), _written_provenance(record, n)
    # A field of these names that holds anything else is a field of the document.
    foreign = {name for name, value in (("ids", ids), ("entaug", provenance)) if value is None}
    fields = without(record, {*_OWN} - foreign)
    ids, provenance = ids or _regular_ids(key, n), provenance or [None] * n
    offset = 0
    for i, (tokens, mentions) in enumerate(zip(record["sentences"], record["ners"], strict=True)):
        try:
            tokens, found = check_tokens(tokens, "sentences"), _mentions(mentions, reading)  # noqa: PLW2901
            if not tokens and not found:
                reading.notes["empty sentence left out"] += 1
                continue
            meta = dict(fields)
            if n > 1:
                meta[DOCUMENT] = [unnamed if key is None else key, offset]
            if provenance[i] is not None:
                meta["entaug"] = provenance[i]
            sentence = Sentence(tokens, found, ids[i], **split_fields(meta))
        except InputError as error:
            error.message = f"sentence {i + 1} of the document: {error.message}"
            yield error
            continue
        fields = {}
        offset += sum(map(len, tokens)) + len(tokens)
        yield sentence


def _written_ids(record: dict[str, Any], n: int) -> list[str | None] | None:
    """Return the ids of the sentences of a document, if `_record` wrote them."""
    ids = record.get("ids")
    if type(ids) is not list or len(ids) != n or set(map(type, ids)) - {str, type(None)}:
        return None
    named = [id_ for id_ in ids if id_ is not None]
    return ids if len(set(named)) == len(named) else None


def _written_provenance(record: dict[str, Any], n: int) -> list[Any] | None:
    """Return the provenance of the sentences of a document, if `_record` wrote it."""
    provenance = record.get("entaug")
    return provenance if type(provenance) is list and len(provenance) == n else None


def _regular_ids(key: str | None, n: int) -> list[str | None]:
    """Return the default ids of the sentences of a document."""
    return [key if key is None or n == 1 else f"{key}-{i + 1}" for i in range(n)]


def _mentions(value: Any, reading: ReadReport) -> tuple[Mention, ...]:
    if type(value) is not list:
        raise InputError(f"mentions are a list, not {value!r}", remedy="write [[first, last, label], ...]")
    mentions = []
    for entity in value:
        if type(entity) is not list or len(entity) != 3 or any(type(position) is not int for position in entity[:2]):
            raise InputError(f"{entity!r} is no mention", remedy="write [first, last, label]")
        first, last, label = entity
        mentions.append((Mention(label, ((first, last + 1),)), None))
    return tuple(unique_mentions(mentions, reading))


def _record(document: list[Sentence]) -> dict[str, Any]:
    """The object of a document."""
    origin = document[0].fields.get(DOCUMENT)
    key = origin[0] if isinstance(origin, list) and origin and len(document) > 1 else document[0].id
    ids = [sentence.id for sentence in document]
    if not any(ids):
        key = None
    record: dict[str, Any] = {} if key is None else {"doc_key": key}
    record["sentences"] = [sentence.tokens for sentence in document]
    record["ners"] = [[[m.start, m.end - 1, m.label] for m in sentence.mentions] for sentence in document]
    for sentence in document:
        for name, value in without(sentence.fields, (*_OWN, DOCUMENT, ENTITY_FIELDS)).items():
            record.setdefault(name, value)
    if ids != _regular_ids(key, len(document)):
        record["ids"] = ids
    provenance = [sentence.fields.get("entaug") for sentence in document]
    if any(value is not None for value in provenance):
        record["entaug"] = provenance
    return record
