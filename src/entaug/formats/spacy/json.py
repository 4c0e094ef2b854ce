"""spaCy's JSON: documents as ``doc.to_json()`` returns them, tuples for training loops, the training files of spaCy 2.

A file is an array, or has one record per line; this and the form of the records are detected. See
`entaug.formats.spacy.json_forms` for the forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence, Span
from entaug.core.tags import SchemeDetector
from entaug.errors import InputError, LossError
from entaug.files.streams import read_beginning
from entaug.formats.base import ReadReport
from entaug.formats.records import (
    numbered_lines,
    parse_json,
    peek_records,
    read_array,
    read_records,
    to_json,
    write_array,
)
from entaug.formats.spacy.dialects import SpacyFormat
from entaug.formats.spacy.json_forms import SpacyJsonDialect, form_of, has_unknown_fields, parse_record, to_records
from entaug.formats.spacy.words import has_stale_tree
from entaug.formats.text import UnitDetector, join_sentences, locate_tokens, split_document

__all__ = ["SpacyJson", "SpacyJsonDialect"]

_FORMS = ("docs", "tuples", "training")
_HEAD_SIZE = 1 << 21  # bytes in which the first record must end to be recognised


class SpacyJson(SpacyFormat):
    """spaCy's JSON; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "spacy-json"
    title = "spaCy JSON"
    extensions = (".json", ".jsonl")
    dialect_class = SpacyJsonDialect

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: whether the first record is one of spaCy's."""
        return any(form_of(record) for record in peek_records(path, 1, (_HEAD_SIZE,))[0])

    def detect(self, path: Path, dialect: SpacyJsonDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: lines, form, tokens, and the location of mentions."""
        groups: Counter[str] = Counter()
        forms: Counter[str] = Counter()
        evidence = SchemeDetector()
        units = UnitDetector()
        has_entities = has_words = has_unknown = False
        is_lines = _is_lines(path)
        for record in _records_to_detect_from(path, is_lines, dialect.split_name):
            form = form_of(record)
            if form is None:
                continue
            forms[form] += 1
            if form == "training":
                for paragraph in record["paragraphs"]:
                    _add_tags(paragraph["sentences"], evidence)
                continue
            fields = record if form == "docs" else record[1]
            text = record["text"] if form == "docs" else record[0]
            units.add(text, _ranges(fields), _token_spans(text, record["tokens"] if form == "docs" else fields))
            has_entities = has_entities or bool(fields.get("ents" if form == "docs" else "entities"))
            spans = fields.get("spans")
            groups.update(name for name, values in (spans.items() if isinstance(spans, dict) else ()) if values)
            has_words = has_words or form == "docs" or "words" in fields
            has_unknown = has_unknown or (form == "tuples" and has_unknown_fields(fields))
        detected: dict[str, Any] = {"lines": is_lines} | (units.decide() if dialect.offsets == "auto" else {})
        if forms:
            detected |= {"form": max(_FORMS, key=forms.__getitem__), "words": has_words, "fields": has_unknown}
        if evidence.has_mentions:
            detected["scheme"] = evidence.scheme()
        return detected | self.detect_mentions(path, groups, has_entities, dialect, options)

    def sentences(self, path: Path, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`."""

        def parse(number: int, record: Any) -> Iterable[Sentence]:
            value = parse_json(record) if is_lines else record
            sentences = list(parse_record(value, number, dialect, reading))
            if not sentences:
                reading.notes["text without words left out"] += 1
            return sentences

        is_lines = _is_lines(path)
        dialect.note_offsets(reading)
        if is_lines:
            return read_records(path, numbered_lines(path, notes=reading.notes), parse, reading)
        array = read_array(path, _is_record, split_name=dialect.split_name)
        return read_records(path, array, parse, reading, unit="record")

    def as_stored(self, sentence: Sentence, dialect: SpacyJsonDialect) -> Sentence:
        """See `entaug.formats.base.BaseFormat.as_stored`."""
        # The sentence with the mentions that are kept; tokenized again if tuples hold no words.
        sentence = super().as_stored(sentence, dialect)
        if dialect.form != "tuples" or dialect.words:
            return sentence
        try:
            text = join_sentences([sentence])._replace(tokens=None)
            found = split_document(text, dialect, ReadReport())
        except InputError as error:
            remedy = "write words, which give the tokens, or pass --misaligned cut"
            raise LossError(error.message, path=f"sentence {sentence.key}", remedy=remedy) from None
        if len(found) != 1:
            return sentence
        return found[0].with_(id=sentence.id).with_fields(sentence.fields)

    def check(self, sentence: Sentence, dialect: SpacyJsonDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        path = f"sentence {sentence.key}"
        super().check(sentence, replace(dialect, mentions="ents") if dialect.form == "training" else dialect)
        has_space_token = any(map(str.isspace, sentence.tokens))
        if has_space_token and (dialect.form != "training" or sentence.spaces is not None):
            raise LossError("a token of white space alone, which spaCy takes for space", path=path, remedy="remove it")
        try:
            "".join([*sentence.tokens, *(mention.label for mention in sentence.mentions)]).encode()
        except UnicodeEncodeError as error:
            raise LossError(f"cannot be written ({error})", path=path) from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: SpacyJsonDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`; each record is a line."""
        kept, dialect = self.resolve(sentences, dialect)
        records = (to_json(record, str(number)) for number, record in enumerate(to_records(kept, dialect), start=1))
        has_line_name = path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
        if has_line_name if dialect.lines is None else dialect.lines:
            write_array(path, records, start=b"", separator=b"\n", end=b"\n")
        else:
            write_array(path, records)

    def lost(self, sentence: Sentence, dialect: SpacyJsonDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`: trees of augmented sentences, and content that tuples lack."""
        lost = ["trees of augmented sentences"] * has_stale_tree(sentence)
        if dialect.form == "tuples":
            lost += ["columns"] * bool(sentence.columns) + ["ids"] * (sentence.id is not None)
            if not dialect.fields:
                lost += ["provenance"] * (sentence.provenance is not None)
                lost += ["fields"] * has_unknown_fields(sentence.fields.keys() - {"entaug"})
        return lost


def _ranges(fields: Mapping[str, Any]) -> Iterator[tuple[Any, Any, None]]:
    """The ranges of the mentions of a record; those of tags have none."""
    groups = fields.get("spans")
    lists = [fields.get("ents"), fields.get("entities"), *(groups.values() if isinstance(groups, dict) else ())]
    for value in (value for values in lists if isinstance(values, list) for value in values):
        if isinstance(value, dict):
            yield value.get("start"), value.get("end"), None
        elif isinstance(value, list) and len(value) >= 3:
            yield value[0], value[1], None


def _token_spans(text: str, given: Any) -> list[Span] | None:
    """The characters of the tokens of a document, or those of the words of a tuple; None where there are none."""
    if isinstance(given, list):
        spans = [(token.get("start"), token.get("end")) for token in given if isinstance(token, dict)]
        return [(start, end) for start, end in spans if type(start) is int and type(end) is int]
    words = given.get("words")
    are_words = isinstance(words, list) and all(isinstance(word, str) and word for word in words)
    return locate_tokens([word for word in words if not word.isspace()], text) if are_words else None


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) or form_of(value) is not None


def _records_to_detect_from(path: Path, is_lines: bool, split_name: str | None) -> Iterable[Any]:
    """Return the records for detecting a dialect: all, or only the first of training files, which are uniform."""
    first = peek_records(path, 1 << 20, (_HEAD_SIZE,))[0]
    if first and form_of(first[0]) == "training":
        return first
    if is_lines:
        return _valid_lines(path)
    return (record for _, record in read_array(path, _is_record, exact=False, split_name=split_name))


def _valid_lines(path: Path) -> Iterator[Any]:
    for _, line in numbered_lines(path):
        try:
            yield parse_json(line, exact=False)
        except InputError:
            continue


def _is_lines(path: Path) -> bool:
    """Whether each line is a record, judged by the first line."""
    head = read_beginning(path, _HEAD_SIZE).decode("utf-8-sig", "replace").lstrip()
    try:
        return form_of(parse_json(head.partition("\n")[0], exact=False)) is not None
    except InputError:
        return False


def _add_tags(sentences: Any, evidence: SchemeDetector) -> None:
    for sentence in sentences if isinstance(sentences, list) else ():
        words = sentence.get("tokens") if isinstance(sentence, dict) else None
        tags = [word.get("ner") for word in words if isinstance(word, dict)] if isinstance(words, list) else []
        evidence.update(tag if isinstance(tag, str) and tag != "-" else "O" for tag in tags)
