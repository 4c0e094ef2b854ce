"""Records with a text and mentions by character offsets: what the formats of such records share.

What offsets count is decided over a file, see `entaug.formats.text`. The tokens of a text are written in an
additional list of strings, which annotation tools keep or ignore, so that the same tokens are read back; a text without
this list is tokenized.
"""

from __future__ import annotations

import abc
import contextlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.errors import InputError, LossError
from entaug.formats.base import BaseFormat, FormatCapabilities, ReadReport, before_of
from entaug.formats.records import (
    as_object,
    given_records,
    numbered_lines,
    parse_json,
    peek_records,
    read_given,
    read_records,
)
from entaug.formats.text import (
    CHAR_RANGES,
    CharMention,
    Document,
    OffsetOptions,
    SegmentationOptions,
    UnitDetector,
    in_characters,
    locate_tokens,
    place_tokens,
    split_document,
)
from entaug.formats.token_records import entity_fields, label_name, without

OTHER_TOKENS = "tokens that are not those of the text: tokenised anew"
"""Note about a record whose tokens do not match its text."""
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,17})")


@dataclass(frozen=True)
class TextOptions(OffsetOptions):
    """Options of formats with one text per record.

    Args:
        split_name: the part to read of a JSON file with several, ``{"train": [...], "dev": [...]}``.
    """

    split_name: str | None = None


# ------------------------------------------------------------------------------------------------------------- reading


def char_mention(label: Any, start: Any, end: Any, fields: Mapping[str, Any]) -> CharMention:
    """Create a mention by characters from the values of a record."""
    if type(label) is not str or not label:
        raise InputError(f"a label must be a non-empty string, not {label!r:.80}", remedy="correct it")
    if type(start) is not int or type(end) is not int:
        raise InputError(f"offsets must be whole numbers, not {start!r:.40} and {end!r:.40}", remedy="correct them")
    return CharMention(label, ((start, end),), fields)


def parse_mention(value: Any) -> CharMention:
    """A mention ``[start, end, label]``, or an object with these names and perhaps further ones."""
    if type(value) is list and len(value) == 3:
        return char_mention(value[2], value[0], value[1], {})
    if type(value) is not dict:
        what = f"a mention must be [start, end, label] or an object with these, not {value!r:.80}"
        raise InputError(what, remedy="correct it")
    start, end = (n if n in value or f"{n}_offset" not in value else f"{n}_offset" for n in ("start", "end"))
    name = "label" if "label" in value else label_name(value)
    return char_mention(value.get(name), value.get(start), value.get(end), without(value, (name, start, end)))


def token_spans(tokens: Any, text: str, reading: ReadReport) -> list[Span] | None:
    """Locate the tokens of a field of a record in its text."""
    if type(tokens) is not list or not tokens or set(map(type, tokens)) != {str} or "" in tokens:
        return None
    spans = locate_tokens(tokens, text)
    if spans is None:
        reading.notes[OTHER_TOKENS] += 1
    return spans


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
    text, spans = place_tokens(sentence, len(before))
    if locate_tokens(sentence.tokens, before + text) != spans:
        raise LossError(
            f"sentence {sentence.key}: the white space in its tokens cannot be told from that between them in a text",
            remedy="write JSON lines or CoNLL",
        )
    return before + text, spans


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


def decide_offsets(
    path: Path, dialect: OffsetOptions, add: Callable[[Any, UnitDetector], None], *, skips_ascii: bool = False
) -> dict[str, str]:
    """Decide over all records of a file what its offsets count, and return it as options; none where it is given."""
    units = UnitDetector()
    with contextlib.suppress(InputError):  # reported when the file is read
        for _, given in given_records(path, getattr(dialect, "split_name", "")):
            is_plain = isinstance(given, str) and given.isascii() and "\\u" not in given and "\\r\\n" not in given
            if not (skips_ascii and is_plain):
                with contextlib.suppress(InputError):
                    add(parse_json(given, exact=False) if isinstance(given, str) else given, units)
    return units.decide() if dialect.offsets == "auto" else {}


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
        """The text of a record; None for a record that is skipped and counted."""

    def add_ranges(self, record: dict[str, Any], dialect: Any, detector: UnitDetector) -> None:
        """Add the ranges of a record to the evidence for the unit of offsets."""
        text = self.parse(record, dialect, ReadReport(repair=True))
        if text is not None:
            ranges = ((start, end, None) for mention in text.mentions for start, end in mention.spans)
            detector.add(text.text, ranges, text.token_spans)

    def replaced(self, path: Path, dialect: Any, reading: ReadReport) -> Mapping[int, dict[str, Any] | None]:
        """The records that are read in place of those of a file, by line; None for one that is left out."""
        return {}

    def detect_dialect(self, path: Path, **options: Any) -> Any:
        dialect = super().detect_dialect(path, **options)
        if dialect.offsets != "auto":
            return dialect

        def add(record: Any, units: UnitDetector) -> None:
            self.add_ranges(as_object(record), dialect, units)

        return replace(dialect, **decide_offsets(path, dialect, add, skips_ascii=True))

    def recognises(self, path: Path) -> bool:
        records = peek_records(path, 20)[0]
        for record in records:
            matches = self.matches(record) if type(record) is dict else False
            if matches is not None:
                return matches
        return bool(records)

    def read(
        self, path: Path, dialect: TextOptions, reading: ReadReport, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:

        def parse(number: int, given: Any) -> Iterable[Sentence]:
            record = replaced[number] if number in replaced else as_object(given)
            text = None if record is None else self.parse(record, dialect, reading)
            return cut_record(text and in_characters(text, dialect.offsets), dialect, reading)

        replaced = self.replaced(path, dialect, reading) if stop is None and not start else {}
        dialect.note_offsets(reading)
        if stop is None:
            return read_given(path, parse, reading, dialect.split_name)
        lines = numbered_lines(path, start, stop, reading.notes)
        return read_records(path, lines, lambda n, line: parse(n, parse_json(line)), reading, is_whole=False)
