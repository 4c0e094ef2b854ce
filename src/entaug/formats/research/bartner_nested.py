"""The form that the code of BARTNER reads for nested mentions: a JSON object a line, a document.

``sentences`` holds the tokens of each sentence, and ``ners`` a list of mentions for each, ``[first token, last token,
label]``; ``doc_key`` names the document. Its other fields are kept, with its first sentence. Ids of sentences that
the name of the document does not give, and what augmented sentences were made by, stand in ``ids`` and ``entaug``, a
value a sentence; that code looks at neither.

Yan et al. (2021), A Unified GenerativeAugmenter Framework for Various NER Subtasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_line_chunks
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import DOCUMENT, documents
from entaug.formats.records import as_json, nothing_in_it, parsed
from entaug.formats.token_records import kind_of, tokens_of

__all__ = ["BartnerNested", "BartnerNestedDialect"]

_OWN = frozenset(("doc_key", "sentences", "ners", "ids", "entaug"))
_NOT_WRITTEN = frozenset((DOCUMENT, ENTITY_FIELDS))
_SENTENCES = re.compile(rb'"sentences"\s*:\s*\[\s*[\[\]]')
_NERS = re.compile(rb'"ners"\s*:\s*\[\s*[\[\]]')
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class BartnerNestedDialect:
    """Nothing differs from file to file."""

    def describe(self) -> str:
        """One line for people."""
        return "BARTNER's JSON lines, a document a line"


class BartnerNested(BufferedFormat):
    """The form of BARTNER for nested mentions; see `entaug.formats.base.Format` and `BufferedFormat` for the methods."""

    name = "bartner-nested"
    title = "BARTNER's JSON lines"
    extensions = (".json", ".jsonl", ".jsonlines")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=False)

    def recognises(self, path: Path) -> bool:
        """Whether the first line is an object with ``sentences`` and ``ners``."""
        line = read_beginning(path, 1 << 20).removeprefix(_BOM).lstrip().partition(b"\n")[0]
        return line.startswith(b"{") and all((_SENTENCES.search(line), _NERS.search(line)))

    def dialect(self, **options: Any) -> BartnerNestedDialect:
        """The dialect; there are no options."""
        return BartnerNestedDialect(**options)

    def look(self, path: Path, **options: Any) -> BartnerNestedDialect:
        """The dialect."""
        del path
        return self.dialect(**options)

    def sentences(self, path: Path, dialect: BartnerNestedDialect, reading: Reading) -> Iterator[Sentence]:
        """The sentences of a file.

        Raises:
            InputError: a line that is not a JSON object, a document without sentences and as many lists of mentions,
                mentions that do not fit, an id that was there before, no sentence at all.
        """
        del dialect
        seen: dict[str, int] = {}
        count = 0
        for first, lines in read_line_chunks(path):
            for number, line in enumerate(lines, start=first):
                if not line or line.isspace():
                    continue
                count += 1
                for sentence in _of_document(line, number, count, str(path), reading):
                    named = _once(sentence, number, str(path), reading, seen)
                    if named is not None:
                        reading.line = number
                        yield named
        if not count:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BartnerNestedDialect) -> None:
        """Write a file, a line a document.

        Raises:
            LossError: a field is no JSON.
        """
        del dialect
        with atomic_file(path) as out:
            for document in documents(sentences):
                out.write(as_json(_record(document), document[0].key) + b"\n")

    def check(self, sentence: Sentence, dialect: BartnerNestedDialect) -> None:
        """Raise where a sentence cannot be written.

        Raises:
            LossError: a mention has a gap.
        """
        del dialect
        for mention in sentence.mentions:
            if not mention.is_contiguous:
                raise LossError(
                    f"discontinuous mention ({mention.label} {list(mention.spans)}) has no single first and last token",
                    path=sentence.id,
                    remedy="write the form for discontinuous mentions: --to bartner",
                )

    def lost(self, sentence: Sentence, dialect: BartnerNestedDialect) -> list[str]:
        """Columns, spaces, and what is known of single mentions."""
        del dialect
        lost = [f"column {name!r}" for name in sentence.columns] + ["text"] * (sentence.spaces is not None)
        no_place = (_OWN - {"entaug"}) | {ENTITY_FIELDS}
        return lost + [f"field {name!r}" for name in sentence.fields if name in no_place]


def _of_document(line: str, number: int, count: int, path: str, reading: Reading) -> Iterator[Sentence]:
    """The sentences of a line.

    Args:
        line: the line.
        number: its number.
        count: which document it is.
        path: the file.
        reading: see there.
    """
    try:
        record = _checked(line)
    except InputError as error:
        error.path, error.line = path, number
        reading.fault(error)
        return
    n = len(record["sentences"])
    key = record.get("doc_key")
    ids = _ids(record, n) or _regular_ids(None if key is None else str(key), n)
    made = _made(record, n) or [None] * n
    # What was not written by us stays a field of the document.
    ours = _OWN - {name for name, found in (("ids", _ids), ("entaug", _made)) if found(record, n) is None}
    rest = {name: value for name, value in record.items() if name not in ours}
    begin = 0
    for i in range(n):
        try:
            tokens = tokens_of(record["sentences"][i], "sentences")
            mentions = _ners(record["ners"][i], reading)
            if not tokens and not mentions:
                reading.notes["empty sentence left out"] += 1
                continue
            meta = dict(rest)
            if n > 1:
                meta[DOCUMENT] = [f"#{count}" if key is None else str(key), begin]
            if made[i] is not None:
                meta["entaug"] = made[i]
            sentence = Sentence(tokens, mentions, ids[i], **split_fields(meta))
        except InputError as error:
            error.message = f"sentence {i + 1} of the document: {error.message}"
            error.path, error.line = path, number
            reading.fault(error)
            continue
        rest = {}
        begin += sum(map(len, tokens)) + len(tokens)
        yield sentence


def _checked(line: str) -> dict[str, Any]:
    """The object of a document, with as many lists of mentions as sentences."""
    record = parsed(line)
    if record == [] and type(record) is list:
        raise nothing_in_it()
    remedy = 'write {"sentences": [[...], ...], "ners": [[[first, last, label], ...], ...]}'
    if type(record) is not dict:
        raise InputError(f"{kind_of(record)} where an object is expected", remedy=remedy)
    sentences, ners, key = record.get("sentences"), record.get("ners"), record.get("doc_key")
    if type(sentences) is not list or type(ners) is not list:
        raise InputError("no lists 'sentences' and 'ners' in the object", remedy=remedy)
    if len(sentences) != len(ners):
        raise InputError(f"{len(ners)} lists of mentions for {len(sentences)} sentences", remedy=remedy)
    if key is not None and type(key) not in (str, int):
        raise InputError(f"'doc_key' must be a string, not {key!r}", remedy="mend it")
    return record


def _ids(record: dict[str, Any], n: int) -> list[str | None] | None:
    """The ids of the sentences of a document, where we wrote them."""
    ids = record.get("ids")
    if type(ids) is not list or len(ids) != n or set(map(type, ids)) - {str, type(None)}:
        return None
    named = [one for one in ids if one is not None]
    return ids if len(set(named)) == len(named) else None


def _made(record: dict[str, Any], n: int) -> list[Any] | None:
    """What the sentences of a document were made by, where we wrote it."""
    made = record.get("entaug")
    return made if type(made) is list and len(made) == n else None


def _regular_ids(key: str | None, n: int) -> list[str | None]:
    """The ids that the sentences of a document have where nothing else is said."""
    return [key if key is None or n == 1 else f"{key}-{i + 1}" for i in range(n)]


def _ners(value: Any, reading: Reading) -> list[Mention]:
    if type(value) is not list:
        raise InputError(f"mentions are a list, not {value!r}", remedy="write [[first, last, label], ...]")
    found: list[Mention] = []
    for entity in value:
        if type(entity) is not list or len(entity) != 3 or any(type(place) is not int for place in entity[:2]):
            raise InputError(f"{entity!r} is no mention", remedy="write [first, last, label]")
        first, last, label = entity
        mention = Mention(label, ((first, last + 1),))
        if mention in found and reading.repair:
            reading.repaired["mention that was given twice dropped"] += 1
            continue
        found.append(mention)
    return found


def _once(sentence: Sentence, number: int, path: str, reading: Reading, seen: dict[str, int]) -> Sentence | None:
    """A sentence whose id is its own, or has been dropped; None where that is a fault."""
    try:
        return sentence.with_(id=None) if reading.repeats(sentence.id, number, seen) else sentence
    except InputError as error:
        error.path, error.line = path, number
        reading.fault(error)
        return None


def _record(document: list[Sentence]) -> dict[str, Any]:
    """The object of a document."""
    told = document[0].fields.get(DOCUMENT)
    key = told[0] if isinstance(told, list) and told and len(document) > 1 else document[0].id
    ids = [sentence.id for sentence in document]
    if not any(ids):
        key = None
    record: dict[str, Any] = {} if key is None else {"doc_key": key}
    record["sentences"] = [sentence.tokens for sentence in document]
    record["ners"] = [[[m.start, m.end - 1, m.label] for m in sentence.mentions] for sentence in document]
    for sentence in document:
        for name, value in sentence.fields.items():
            if name not in _OWN and name not in _NOT_WRITTEN:
                record.setdefault(name, value)
    if ids != _regular_ids(key, len(document)):
        record["ids"] = ids
    made = [sentence.fields.get("entaug") for sentence in document]
    if any(one is not None for one in made):
        record["entaug"] = made
    return record
