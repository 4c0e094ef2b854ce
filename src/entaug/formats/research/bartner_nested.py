"""The input format of the code of BARTNER for nested mentions: one JSON object per document and line.

``sentences`` holds the tokens of each sentence, and ``ners`` a list of mentions for each, ``[first token, last token,
label]``; ``doc_key`` names the document. Its other fields are kept with its first sentence. Ids of sentences that do
not follow from the name of the document, and provenance, are written to ``ids`` and ``entaug``, a value per sentence;
that code reads neither.

Yan et al. (2021), A Unified Generative Framework for Various NER Subtasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.core.data import Mention, Sentence, split_fields
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import DOCUMENT, group_by_document
from entaug.formats.records import (
    as_object,
    numbered_lines,
    parse_json,
    peek_records,
    read_records,
    to_json,
    write_array,
)
from entaug.formats.token_records import check_tokens, unique_mentions, without

__all__ = ["BartnerNested", "BartnerNestedDialect"]

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
        write_array(path, records, start=b"", separator=b"\n", end=b"\n")

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
