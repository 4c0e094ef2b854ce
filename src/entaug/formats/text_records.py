"""Records of annotation tools: a text, and mentions by character offsets.

What offsets count is decided over a file, see `entaug.formats.text`. The tokens of a text are written in an
additional list of strings, which the tools keep or ignore, so that the same tokens are read back; a text without this
list is tokenized.
"""

from __future__ import annotations

import abc
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.spacing import infer_spaces
from entaug.errors import InputError, LossError
from entaug.formats.base import ENTITY_FIELDS, BaseFormat, FormatCapabilities, ReadReport, before_of
from entaug.formats.records import (
    NO_CHOICE,
    as_object,
    numbered_lines,
    parse_json,
    peek_records,
    read_array,
    read_records,
    write_array,
)
from entaug.formats.text import (
    BEFORE,
    CHAR_RANGES,
    CharMention,
    Document,
    OffsetOptions,
    SegmentationOptions,
    UnitDetector,
    in_characters,
    locate_tokens,
    split_document,
)
from entaug.formats.token_records import entity_fields, pop_id, without

OTHER_TOKENS = "tokens that are not those of the text: tokenised anew"
"""Note about a record whose tokens do not match its text."""
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,17})")


# ------------------------------------------------------------------------------------------------------------- reading


def char_mention(label: Any, start: Any, end: Any, fields: Mapping[str, Any]) -> CharMention:
    """Create a mention by characters from the values of a record."""
    if type(label) is not str or not label:
        raise InputError(f"a label must be a non-empty string, not {label!r:.80}", remedy="correct it")
    if type(start) is not int or type(end) is not int:
        raise InputError(f"offsets must be whole numbers, not {start!r:.40} and {end!r:.40}", remedy="correct them")
    return CharMention(label, ((start, end),), fields)


def token_spans(tokens: Any, text: str, reading: ReadReport) -> list[Span] | None:
    """Locate the tokens of a field of a record in its text."""
    if type(tokens) is not list or not tokens or set(map(type, tokens)) != {str} or "" in tokens:
        return None
    spans = locate_tokens(tokens, text)
    if spans is None:
        reading.notes[OTHER_TOKENS] += 1
    return spans


def text_record(
    text: str,
    mentions: Sequence[CharMention],
    record: Mapping[str, Any],
    known: Container[str],
    spans: Sequence[Span] | None = None,
) -> Document:
    """Create a text from the parts of a record."""
    fields = without(record, known)
    return Document(text, mentions, pop_id(fields), fields, token_spans=spans)


def cut_record(text: Document | None, cutting: SegmentationOptions, reading: ReadReport) -> Iterable[Sentence]:
    """Cut the text of a record into sentences."""
    if text is None:
        return ()
    sentences = split_document(text, cutting, reading)
    if not sentences:
        reading.notes["text of white space alone left out"] += 1
    return sentences


# ------------------------------------------------------------------------------------------------------------- writing


def layout_text(sentence: Sentence) -> tuple[str, list[Span]]:
    """Create the text of a sentence; if its white space is unknown, it is inferred as in printed text."""
    before = before_of(sentence)
    tokens = sentence.tokens
    spaces = infer_spaces(tokens) if sentence.spaces is None else sentence.spaces
    parts = [before] if before else []
    spans = []
    offset = len(before)
    is_plain = True
    for token, space in zip(tokens, spaces, strict=True):
        end = offset + len(token)
        spans.append((offset, end))
        offset = end + len(space)
        parts += [token, space] if space else [token]
        is_plain = is_plain and not (token[0].isspace() or token[-1].isspace()) and (not space or space.isspace())
    text = "".join(parts)
    if not is_plain and locate_tokens(tokens, text) != spans:
        raise LossError(
            f"sentence {sentence.key}: the white space in its tokens cannot be told from that between them in a text",
            remedy="write JSON lines or CoNLL",
        )
    return text, spans


def char_spans(
    sentence: Sentence, tokens: Sequence[Span], reserved: Container[str] = (), count: Callable[[int], int] = int
) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """Convert the mentions of a sentence to characters."""
    for mention, fields in zip(sentence.mentions, entity_fields(sentence), strict=True):
        further = {name: value for name, value in fields.items() if name not in reserved and name != CHAR_RANGES}
        yield mention.label, count(tokens[mention.start][0]), count(tokens[mention.end - 1][1]), further


def numeric_id(name: str) -> int | str:
    """Return an id that looks like an integer as an integer, for tools that number their records."""
    return int(name) if _NUMBER.fullmatch(name) else name


def add_other_fields(
    sentence: Sentence, record: dict[str, Any], of_source: Collection[str] = (), written: Collection[str] = ()
) -> None:
    """Add the fields of a sentence to its record, except those whose names are in use."""
    excluded = {BEFORE, ENTITY_FIELDS, *written, *(of_source if sentence.provenance is not None else ())}
    for name, value in sentence.fields.items():
        if name not in excluded:
            record.setdefault(name, value)


@dataclass(frozen=True)
class TextOptions(OffsetOptions):
    """Options of formats with one text per line.

    Args:
        split_name: the part to read of a JSON file with several, ``{"train": [...], "dev": [...]}``.
    """

    split_name: str | None = None


def _is_array(path: Path) -> bool:
    return peek_records(path, 1)[1]


def given_records(
    path: Path, split_name: str | None = NO_CHOICE, notes: Counter[str] | None = None
) -> Iterator[tuple[int, Any]]:
    """The numbered records of a file: lines, not parsed yet, or the elements of an array."""
    return read_array(path, split_name=split_name) if _is_array(path) else numbered_lines(path, notes=notes)


def parse_record(given: Any, remedy: str = "correct it", *, exact: bool = True) -> dict[str, Any]:
    """The object of a record of `given_records`."""
    return as_object(parse_json(given, exact=exact) if type(given) is str else given, remedy)


def read_objects(
    path: Path,
    parse: Callable[[dict[str, Any]], Iterable[Sentence]],
    reading: ReadReport,
    split_name: str | None = NO_CHOICE,
    remedy: str = "correct it",
) -> Iterator[Sentence]:
    """Read the objects of a file of JSON lines, which are streamed, or of one JSON array."""

    def parse_given(_number: int, given: Any) -> Iterable[Sentence]:
        return parse(parse_record(given, remedy))

    unit = "record" if _is_array(path) else ""
    return read_records(path, given_records(path, split_name, reading.notes), parse_given, reading, unit=unit)


def write_objects(path: Path, records: Iterable[bytes], *, as_array: bool = False) -> None:
    """Write objects as JSON lines, or as one array."""
    if as_array:
        write_array(path, records)
    else:
        write_array(path, records, start=b"", separator=b"\n", end=b"\n")


class TextLines(BaseFormat):
    """Base class of formats with one text per line; see `entaug.formats.base.BaseFormat`."""

    # The sentences that a text is cut into are written as several texts.

    extensions = (".jsonl", ".json", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)

    @abc.abstractmethod
    def matches(self, record: dict[str, Any]) -> bool | None:
        """Whether a record is of this format; None if it is undecided."""

    @abc.abstractmethod
    def parse(self, record: dict[str, Any], dialect: Any, reading: ReadReport) -> Document | None:
        """Return the text of a record; None for a record that is skipped and counted."""

    def add_ranges(self, record: dict[str, Any], dialect: Any, detector: UnitDetector) -> None:
        """Add the ranges of a record to the evidence for the unit of offsets."""
        text = self.parse(record, dialect, ReadReport(repair=True))
        if text is not None:
            ranges = ((start, end, None) for mention in text.mentions for start, end in mention.spans)
            detector.add(text.text, ranges, text.token_spans)

    def replaced(self, path: Path, dialect: Any, reading: ReadReport) -> Mapping[int, dict[str, Any] | None]:
        """The records that are read in place of those of a file, by line; None for one that is left out."""
        del path, dialect, reading
        return {}

    def detect_dialect(self, path: Path, **options: Any) -> Any:
        """See `entaug.formats.base.BaseFormat.detect_dialect`; the unit of offsets is decided over the whole file."""
        dialect = super().detect_dialect(path, **options)
        if dialect.offsets != "auto":
            return dialect
        detector = UnitDetector()
        with contextlib.suppress(InputError):  # reported when the file is read
            for _, given in given_records(path, dialect.split_name):
                if isinstance(given, str) and given.isascii() and "\\u" not in given and "\\r\\n" not in given:
                    continue
                with contextlib.suppress(InputError):
                    self.add_ranges(parse_record(given, exact=False), dialect, detector)
        return replace(dialect, **detector.decide())

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`."""
        # Whether the first records are objects, and the first record with a decision is of this format.
        records = peek_records(path, 20)[0]
        for record in records:
            matches = self.matches(record) if type(record) is dict else False
            if matches is not None:
                return matches
        return bool(records)

    def read(
        self, path: Path, dialect: TextOptions, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """See `entaug.formats.base.BaseFormat.read`: the sentences of a file, streamed if each line is a record."""

        def parse(number: int, given: Any) -> Iterable[Sentence]:
            record = replaced[number] if number in replaced else parse_record(given)
            text = None if record is None else self.parse(record, dialect, reading)
            return cut_record(text and in_characters(text, dialect.offsets), dialect, reading)

        replaced = self.replaced(path, dialect, reading) if stop is None and not start else {}
        dialect.note_offsets(reading)
        if stop is None and _is_array(path):
            return read_records(path, given_records(path, dialect.split_name), parse, reading, unit="record")
        lines = numbered_lines(path, start, stop, reading.notes)
        return read_records(path, lines, parse, reading, is_whole=stop is None)
