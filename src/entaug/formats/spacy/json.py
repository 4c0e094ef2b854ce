"""spaCy's JSON: documents as ``doc.to_json()`` gives them, tuples for training loops, the training files of spaCy 2.

They are an array, or one record a line; which, and of what form, is told by looking. See
`entaug.formats.spacy.records` for the forms.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from entaug.data import Sentence
from entaug.errors import InputError, LossError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes, read_line_chunks
from entaug.formats.base import FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat, flattened
from entaug.formats.documents import Cutting, cut, joined
from entaug.formats.records import parsed
from entaug.formats.spacy.documents import annotation_of
from entaug.formats.spacy.records import FORMS, Layout, form_of, records, sentences_in, unknown_in
from entaug.tags import OVERLAP, SchemeDetector, canonical_scheme, flatten

__all__ = ["SpacyJson", "SpacyJsonDialect"]

_MENTIONS = ("auto", "ents", "spans")
_SOLID = re.compile(r"[\s,]*")
_LOOKED_AT = 1 << 21  # bytes in which the first record must end to be recognised


@dataclass(frozen=True)
class SpacyJsonDialect:
    """How a JSON file of spaCy is laid out.

    Args:
        form: ``"docs"``, ``"tuples"`` or ``"training"``: see `entaug.formats.spacy.records`.
        lines: whether each line is a record, where else the file is an array; by default as the extension says.
        mentions: where mentions are: ``"ents"``, ``"spans"``, or ``"auto"``: in a group of spans where any sentence
            has nested ones, else in the entities.
        spans_key: the name of the group of spans.
        words: whether tuples say what the tokens are; else texts are tokenised by spaCy's rules.
        fields: whether tuples hold fields that spaCy does not know, on which ``Example.from_dict`` fails.
        scheme: that of the tags of training files.
        overlap: what to write of nested and discontinuous mentions: see `entaug.tags.flatten`.
        language: see `entaug.formats.documents.Cutting`.
        split: likewise.
        misaligned: likewise.
    """

    form: str = "docs"
    lines: bool | None = None
    mentions: str = "auto"
    spans_key: str = "sc"
    words: bool = True
    fields: bool = False
    scheme: str = "BILOU"
    overlap: str = "error"
    language: str = "en"
    split: str = "none"
    misaligned: str = "error"

    def describe(self) -> str:
        """One line for people."""
        what = {"docs": "as of doc.to_json()", "tuples": "training tuples", "training": "training file of spaCy 2"}
        if self.form == "training":
            where = f"mentions as {self.scheme} tags"
        else:
            group = f"spans {self.spans_key!r}"
            auto = f"ents, {group} where there are nested ones"
            where = "mentions in " + {"ents": "ents", "spans": group, "auto": auto}[self.mentions]
        return f"spaCy JSON{' lines' if self.lines else ''}, {what[self.form]}, {where}"

    def layout(self) -> Layout:
        """How its records are laid out."""
        spans_key = self.spans_key if self.mentions == "spans" and self.form != "training" else None
        cutting = Cutting(self.language, self.split, self.misaligned)
        return Layout(self.form, spans_key, self.words, self.fields, self.scheme, cutting)


class SpacyJson(BufferedFormat):
    """spaCy's JSON; see `entaug.formats.base.Format` for the methods."""

    name = "spacy-json"
    title = "spaCy JSON"
    extensions = (".json", ".jsonl")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether the first record is one of spaCy's."""
        return form_of(next(_shown(path), None)) is not None

    def dialect(self, **options: Any) -> SpacyJsonDialect:
        """A dialect from options given by hand."""
        given = {name: value for name, value in options.items() if value is not None}
        if "scheme" in given:
            given["scheme"] = canonical_scheme(given["scheme"])
        made = replace(SpacyJsonDialect(), **given)
        for name, known in (("form", FORMS), ("mentions", _MENTIONS), ("overlap", OVERLAP)):
            if getattr(made, name) not in known:
                raise ParameterError(f"{name} must be one of {', '.join(known)}, not {getattr(made, name)!r}")
        made.layout()
        return made

    def look(self, path: Path, **options: Any) -> SpacyJsonDialect:
        """Find form and layout; faults are left for reading to tell."""
        made = self.dialect(**options)
        groups: Counter[str] = Counter()
        forms: Counter[str] = Counter()
        evidence = SchemeDetector()
        entities = words = unknown = False
        lines = _in_lines(path)
        # All training files have their mentions in the same place, and the first documents show the tags.
        short = form_of(next(_shown(path), None)) == "training"
        everything = (record for _, record in _records(path, lines, Reading(on_fault=lambda _: None), exact=False))
        for record in _shown(path) if short else everything:
            form = form_of(record)
            if form is None:
                continue
            forms[form] += 1
            if form == "training":
                for paragraph in record["paragraphs"]:
                    _tags(paragraph["sentences"], evidence)
                continue
            said = record if form == "docs" else record[1]
            entities = entities or bool(said.get("ents" if form == "docs" else "entities"))
            spans = said.get("spans")
            groups.update(key for key, value in (spans.items() if isinstance(spans, dict) else ()) if value)
            words = words or form == "docs" or "words" in said
            unknown = unknown or (form == "tuples" and unknown_in(said))
        found: dict[str, Any] = {"lines": lines}
        if forms:
            found |= {"form": max(FORMS, key=forms.__getitem__), "words": words, "fields": unknown}
        if evidence.has_mentions:
            found["scheme"] = evidence.scheme()
        key = made.spans_key
        if not options.get("spans_key") and key not in groups and len(groups) == 1 and not entities:
            found["spans_key"] = key = next(iter(groups))
        found["mentions"] = "spans" if key in groups else "ents" if entities else "auto"
        return replace(made, **{name: value for name, value in found.items() if options.get(name) is None})

    def sentences(self, path: Path, dialect: SpacyJsonDialect, reading: Reading) -> Iterator[Sentence]:
        """The sentences of a file.

        Raises:
            InputError: no JSON, a record that is none of spaCy's, a mention that does not fit, an id that was there
                before, no sentence at all.
        """
        layout = dialect.layout()
        lines = _in_lines(path)
        seen: dict[str, int] = {}
        count = 0
        empty = True
        for number, record in _records(path, lines, reading):
            try:
                found = list(sentences_in(record, number, layout, reading))
                for k, sentence in enumerate(found):
                    count += 1
                    if reading.repeats(sentence.id, count, seen):
                        found[k] = sentence.with_(id=None)
            except InputError as error:
                error.stands(str(path), number if lines else None, "" if lines else f"record {number}")
                reading.fault(error)
                empty = False
                continue
            if not found:
                reading.notes["text without words left out"] += 1
                continue
            empty = False
            reading.line = number
            yield from found
        if empty:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def carried(self, sentence: Sentence, dialect: SpacyJsonDialect) -> Sentence:
        """The sentence without the mentions that `overlap` leaves out; tokenised anew where tuples hold no words."""
        if dialect.overlap != "error" and not sentence.is_flat:
            sentence = flattened(sentence, dialect.overlap)
        if dialect.form != "tuples" or dialect.words:
            return sentence
        try:
            found = cut(joined([sentence])._replace(tokens=None), dialect.layout().cutting, Reading())
        except InputError as error:
            remedy = "write words, which say what the tokens are, or pass --misaligned cut"
            raise LossError(error.message, path=f"sentence {_named(sentence)}", remedy=remedy) from None
        return (
            sentence.with_(tokens=found[0].tokens, mentions=found[0].mentions, columns={}, spaces=found[0].spaces)
            if len(found) == 1
            else sentence
        )

    def check(self, sentence: Sentence, dialect: SpacyJsonDialect) -> None:
        """Raise where spaCy has no place for what a sentence holds.

        Raises:
            LossError: a mention with a gap; nested ones where there are but tags or entities; a token of white space;
                with tuples that hold no words, a mention that would begin or end within a token.
        """
        mentions = self.carried(sentence, dialect).mentions
        path = f"sentence {_named(sentence)}"
        if any(not mention.is_contiguous for mention in mentions):
            remedy = "write JSON lines, or leave them out: --overlap outermost or innermost"
            raise LossError("spaCy has no mentions with gaps", path=path, remedy=remedy)
        if dialect.form == "training" or dialect.mentions == "ents":
            try:
                flatten(mentions, "error")
            except LossError as error:
                error.path, error.remedy = path, "pass --overlap outermost or innermost, or write spans"
                raise
        if any(map(str.isspace, sentence.tokens)) and (dialect.form != "training" or sentence.spaces is not None):
            raise LossError("a token of white space alone, which spaCy takes for space", path=path, remedy="remove it")
        try:
            "".join([*sentence.tokens, *(m.label for m in mentions)]).encode()
        except UnicodeEncodeError as error:
            raise LossError(f"cannot be written ({error})", path=path) from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: SpacyJsonDialect) -> None:
        """Write a file, each record on a line of its own."""
        kept: Iterable[Sentence] = sentences
        if dialect.overlap != "error":
            kept = (s if s.is_flat else flattened(s, dialect.overlap) for s in sentences)
        if dialect.mentions == "auto":
            kept = list(kept)
            where = "ents" if all(sentence.is_flat for sentence in kept) else "spans"
            dialect = replace(dialect, mentions=where)
        lines = (
            path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson")) if dialect.lines is None else dialect.lines
        )
        between = b"\n" if lines else b",\n"
        with atomic_file(path) as out:
            out.write(b"" if lines else b"[\n")
            for number, record in enumerate(records(kept, dialect.layout())):
                out.write((between if number else b"") + _json(record))
            out.write(b"\n" if lines else b"\n]\n")

    def lost(self, sentence: Sentence, dialect: SpacyJsonDialect) -> list[str]:
        """What tuples have no place for, and trees of augmented sentences."""
        found = ["trees of augmented sentences"] if annotation_of(sentence).stale else []
        if dialect.form == "tuples":
            found += ["columns"] * bool(sentence.columns) + ["ids"] * (sentence.id is not None)
            if not dialect.fields and unknown_in(sentence.fields):
                found.append("provenance and fields" if sentence.provenance is not None else "fields")
        return found


def _named(sentence: Sentence) -> str:
    return sentence.id or " ".join(sentence.tokens[:6])


def _json(record: Any) -> bytes:
    try:
        return orjson.dumps(record)
    except TypeError:
        try:
            return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise LossError(f"a field cannot be written as JSON ({error})") from None


def _tags(sentences: Any, evidence: SchemeDetector) -> None:
    for sentence in sentences if isinstance(sentences, list) else ():
        tokens = sentence.get("tokens") if isinstance(sentence, dict) else None
        tags = [token.get("ner") for token in tokens if isinstance(token, dict)] if isinstance(tokens, list) else []
        evidence.update(tag if isinstance(tag, str) and tag != "-" else "O" for tag in tags)


def _shown(path: Path) -> Iterator[Any]:
    """The records that end in the beginning of a file."""
    head = read_beginning(path, _LOOKED_AT).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip()
    reader = json.JSONDecoder()
    place = 1 if head[:1] == "[" and head[1:].lstrip()[:1] in ("[", "{") else 0
    with contextlib.suppress(ValueError, RecursionError):
        while (place := _SOLID.match(head, place).end()) < len(head) and head[place] in "[{":  # type: ignore[union-attr]
            record, place = reader.raw_decode(head, place)
            yield record


def _in_lines(path: Path) -> bool:
    """Whether each line is a record: the first line is one by itself."""
    head = read_beginning(path, _LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    try:
        first = orjson.loads(head)
    except ValueError:
        return False
    return form_of(first) is not None or (isinstance(first, dict) and b"\n" in head)


def _records(path: Path, lines: bool, reading: Reading, *, exact: bool = True) -> Iterator[tuple[int, Any]]:
    """The records, each with the number of its line, or its own.

    Args:
        path: the file.
        lines: whether each line is a record.
        reading: what was met.
        exact: whether numbers of more than 64 bits are to keep their last digits.

    Raises:
        InputError: no JSON, or neither array nor object.
    """
    if lines:
        for first, chunk in read_line_chunks(path):
            for number, line in enumerate(chunk, start=first):
                if not line or line.isspace():
                    continue
                try:
                    record = parsed(line, exact=exact)
                except InputError as error:
                    error.path, error.line = str(path), number
                    reading.fault(error)
                    continue
                yield number, record
        return
    try:
        whole = parsed(read_bytes(path).removeprefix(b"\xef\xbb\xbf"), "mend it, or write it anew", exact=exact)
        if isinstance(whole, dict) or form_of(whole) is not None:
            whole = [whole]
        if not isinstance(whole, list):
            raise InputError("neither an array nor an object", remedy="write it as spaCy does")  # noqa: TRY301
    except InputError as error:
        error.path = error.path or str(path)
        raise
    whole.reverse()
    for number in range(1, len(whole) + 1):
        yield number, whole.pop()  # what was read need not lie in memory any longer
