"""Prodigy: JSON lines with a text, its tokens, and spans by characters and by tokens.

Tokens are objects with ``text``, ``start``, ``end``, ``id`` and, in newer files, ``ws``: whether a space follows. As in
spaCy, any other white space is a separate token; such tokens are read as white space between words, and written
again. The ``token_end`` of a span is its last token. Spans may overlap (as in ``spans.manual``). Records that were
rejected or ignored are skipped and counted, unless ``answers`` is ``"all"``.

A binary record (``_is_binary``, as of ``ner.teach``) accepts or rejects one suggested span. Such records are merged by
``_input_hash``, as ``data-to-spacy`` does: the accepted spans are the mentions. Whether the text has others is unknown;
such texts are counted. Where another record annotates a text in full, its binary records are left out.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from entaug.core.data import Sentence
from entaug.core.mentions import Mention, Span, sorted_mentions
from entaug.core.tags import flatten
from entaug.errors import InputError, LossError
from entaug.formats.base import ReadReport
from entaug.formats.records import as_object, given_records, parse_json, peek_records, to_json
from entaug.formats.spacy_base import printed_words
from entaug.formats.text import CHAR_RANGES, DOCUMENT, CharMention, Document, UnitDetector, counter
from entaug.formats.text_records import TextLines, TextOptions, layout_text, parse_mention, token_spans
from entaug.formats.token_records import add_other_fields, entity_fields, note_no_labels, pop_id, without

_PARTIAL = (
    "text of binary records, of which only the suggested spans were judged: whether it has other mentions is unknown, "
    "and it is read as if it had none"
)
_REPEATED = "text of another record too (_input_hash), as of several annotators: each record is read"
_OF_MENTION = ("start", "end", "token_start", "token_end", "label")
_OF_TOKEN = frozenset(("text", "start", "end", "id", "ws"))
# Hashes depend on text and spans, and Prodigy computes them again; relations refer to tokens.
_OF_SOURCE = ("_input_hash", "_task_hash", "relations")


@dataclass(frozen=True)
class ProdigyDialect(TextOptions):
    """Layout of a file of Prodigy.

    Args:
        answers: the records to read: ``"accept"`` or ``"all"``.
        ws: whether tokens have the field ``ws``, as since Prodigy 1.10.
    """

    answers: Literal["accept", "all"] = "accept"
    ws: bool = True

    def describe(self) -> str:
        return f"Prodigy, {'accepted' if self.answers == 'accept' else 'all'} records{self.offsets_text}"


class Prodigy(TextLines):
    """The format of Prodigy; see `entaug.formats.base.BaseFormat` for the methods."""

    name = "prodigy"
    title = "Prodigy"
    dialect_class = ProdigyDialect
    reserved_fields = ("text", "tokens", "spans")

    def matches(self, record: dict[str, Any]) -> bool | None:
        # Whether a record has a text and fields that only Prodigy writes.
        if type(record.get("text")) is not str or "entities" in record:
            return False
        if "_input_hash" in record or "_task_hash" in record:
            return True
        lists = [record.get("spans"), record.get("tokens")]
        first = [value[0] for value in lists if type(value) is list and value]
        if first:
            return all(type(item) is dict and "start" in item and "end" in item for item in first)
        return None if lists[0] == [] else False

    def detect(self, path: Path, dialect: ProdigyDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        for record in peek_records(path, 20)[0]:
            tokens = record.get("tokens") if type(record) is dict else None
            if type(tokens) is list and tokens and type(tokens[0]) is dict:
                return {"ws": "ws" in tokens[0]}
        return {}

    def add_ranges(self, record: dict[str, Any], dialect: ProdigyDialect, detector: UnitDetector) -> None:
        given = record.get("tokens") or record.get("spans")
        if type(record.get("text")) is str and type(given) is list:
            ranges = ((i.get("start"), i.get("end"), i.get("text")) for i in given if type(i) is dict)
            detector.add(record["text"], ranges)

    def replaced(self, path: Path, dialect: ProdigyDialect, reading: ReadReport) -> Mapping[int, dict[str, Any] | None]:
        binary: defaultdict[Any, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        others: Counter[str] = Counter()
        complete: set[str] = set()
        with contextlib.suppress(InputError):  # reported when the file is read
            for number, given in given_records(path, dialect.split_name):
                with contextlib.suppress(InputError):
                    record = as_object(parse_json(given) if isinstance(given, str) else given)
                    text = f"hash {record['_input_hash']}" if record.get("_input_hash") is not None else ""
                    is_accepted = record.get("answer", "accept") == "accept"
                    if _is_binary(record):
                        binary[text or number].append((number, record))
                    elif text and (is_accepted or dialect.answers == "all"):
                        others[text] += 1
                        complete |= {text} if is_accepted else set()
        if repeated := others.total() - len(others):
            reading.notes[_REPEATED] += repeated
        replaced: dict[int, dict[str, Any] | None] = {}
        for text, own in binary.items():
            replaced |= dict.fromkeys(number for number, _ in own)
            if text in complete:
                reading.notes["binary record of a text that another record annotates in full, left out"] += len(own)
            else:
                replaced[own[0][0]] = _merge([record for _, record in own], dialect, reading)
        return replaced

    def parse(self, record: dict[str, Any], dialect: ProdigyDialect, reading: ReadReport) -> Document | None:
        answer = record.get("answer", "accept")
        if answer != "accept" and dialect.answers == "accept":
            reading.notes[_left_out(answer)] += 1
            return None
        text, spans, tokens = (record.get(name) for name in ("text", "spans", "tokens"))
        if record.get("_is_binary") is True and type(spans) is list:
            reading.notes[_PARTIAL] += 1
        remedy = 'write {"text": ..., "spans": [...]}'
        if type(text) is not str:
            raise InputError("no string 'text' in the object", remedy=remedy)
        if spans is not None and type(spans) is not list:
            raise InputError("'spans' is not a list", remedy=remedy)
        if spans is None:
            note_no_labels(record, reading, "another format than `format='prodigy'`")
        fields = without(record, self.reserved_fields)
        mentions = [_mention(span) for span in spans or ()]
        return Document(text, mentions, pop_id(fields), fields, token_spans=_words(tokens, text, reading))

    def lost(self, sentence: Sentence, dialect: ProdigyDialect) -> list[str]:
        names = {name for fields in entity_fields(sentence) for name in fields}.intersection(_OF_MENTION)
        lost = super().lost(sentence, dialect) + sorted(f"field {name!r} of mentions" for name in names)
        lost += ["field 'relations'"] * (_is_part(sentence) and "relations" in sentence.fields)
        return lost + ["field 'answer'"] * _hides(sentence, dialect)

    def dump(self, sentence: Sentence, dialect: ProdigyDialect) -> str:
        self.check_contiguous(sentence)
        layout_text(sentence)  # white space in tokens
        if space := next(filter(str.isspace, sentence.tokens), None):
            what = f"sentence {sentence.key}: the token {space!r} is white space, which Prodigy has between words"
            raise LossError(what, remedy="write JSON lines")
        words = printed_words(sentence)
        count = counter(words.text, dialect.offsets)
        places = [(count(start), count(end)) for start, end in words.offsets]
        tokens: list[dict[str, Any]] = [
            {"text": word, "start": start, "end": end, "id": i}
            for i, (word, (start, end)) in enumerate(zip(words.words, places, strict=True))
        ]
        if dialect.ws:
            tokens = [token | {"ws": flag} for token, flag in zip(tokens, words.flags or (), strict=True)]
        record: dict[str, Any] = {} if sentence.id is None else {"id": sentence.id}
        record |= {"text": words.text, "tokens": tokens}
        record["spans"] = [
            {
                "start": places[start][0],
                "end": places[end - 1][1],
                "token_start": start,
                "token_end": end - 1,
                "label": label,
                **without(fields, (*_OF_MENTION, CHAR_RANGES)),
            }
            for start, end, label, fields in words.mentions
        ]
        hidden = ("answer",) * _hides(sentence, dialect)
        add_other_fields(sentence, record, _OF_SOURCE, hidden + _OF_SOURCE * _is_part(sentence))
        return to_json(record, sentence.key).decode() + "\n"


def _is_part(sentence: Sentence) -> bool:
    """Whether a sentence is one of several of a text, whose hashes and relations are not those of its own text."""
    return DOCUMENT in sentence.fields


def _hides(sentence: Sentence, dialect: ProdigyDialect) -> bool:
    """Whether the record of a sentence would be left out in reading for its answer."""
    return dialect.answers == "accept" and sentence.fields.get("answer", "accept") != "accept"


def _left_out(answer: Any) -> str:
    return f"record with the answer {answer!r:.40} left out"


def _is_binary(record: Mapping[str, Any]) -> bool:
    """Whether a record accepts or rejects suggested spans; invalid spans are reported where it is read by itself."""
    spans = record.get("spans")
    if record.get("_is_binary") is not True or record.get("answer") not in ("accept", "reject"):
        return False
    return type(spans) is list and bool(spans) and all(map(_is_span, spans))


def _is_span(span: Any) -> bool:
    if type(span) is not dict or type(span.get("label")) is not str:
        return False
    start, end = span.get("start"), span.get("end")
    return type(start) is int and type(end) is int and 0 <= start < end


def _mention_of(span: Mapping[str, Any]) -> Mention:
    """The label and the offsets of a span."""
    return Mention(span["label"], ((span["start"], span["end"]),))


def _merge(records: Sequence[dict[str, Any]], dialect: ProdigyDialect, reading: ReadReport) -> dict[str, Any] | None:
    """The record of a text with the accepted spans of its binary records; None where none was accepted."""
    accepted = [record for record in records if record["answer"] == "accept"]
    rejected = [record for record in records if record["answer"] == "reject"]
    if dialect.answers == "accept" and rejected:
        reading.notes[_left_out("reject")] += len(rejected)
        if not accepted:
            return None
    spans = {_mention_of(span): span for record in accepted for span in record["spans"]}
    refuted = spans.keys() & {_mention_of(span) for record in rejected for span in record["spans"]}
    kept = flatten(sorted_mentions(spans.keys() - refuted), "outermost")
    for what, count in (
        ("binary record merged with others of its text", len(accepted) - 1),
        ("span that was accepted and rejected, left out", len(refuted)),
        ("accepted span that overlaps a longer one, left out", len(spans) - len(refuted) - len(kept)),
    ):
        if count > 0:
            reading.notes[what] += count
    record = accepted[0] if accepted else rejected[0]
    return {**(record if len(records) == 1 else without(record, ("_task_hash",))), "spans": [spans[m] for m in kept]}


def _mention(span: Any) -> CharMention:
    if type(span) is not dict:
        raise InputError(f"a span must be an object, not {span!r:.80}", remedy="give it start, end and label")
    mention = parse_mention(span)
    return mention._replace(fields=without(mention.fields, _OF_MENTION))


def _words(tokens: Any, text: str, reading: ReadReport) -> list[Span] | None:
    """The characters of the tokens that are not white space; None if they do not match the text."""
    if tokens is None:
        return None
    if type(tokens) is not list:
        raise InputError("'tokens' is not a list", remedy="correct the line")
    words = []
    for token in tokens:
        word = token.get("text") if type(token) is dict else None
        if type(word) is not str:
            raise InputError(f"a token must be an object with a 'text', not {token!r:.80}", remedy="correct the line")
        if further := ", ".join(map(repr, sorted(token.keys() - _OF_TOKEN))):
            reading.notes[f"{further} of tokens left out"] += 1
        words += [word] if word and not word.isspace() else []
    return token_spans(words, text, reading)
