"""The input format of the code of BARTNER for discontinuous mentions: three lines per sentence.

The tokens, separated by spaces; the mentions; an empty line. Mentions are separated by ``|``; each is the first and
last token of each of its spans, and its label: ``0,1 ADR|3,3,6,7 ADR``. The format holds tokens and all kinds of
mentions, nothing else. The format for nested mentions is `entaug.formats.research.bartner_nested`.

Yan et al. (2021), A Unified Generative Framework for Various NER Subtasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from entaug.core.data import Mention, Sentence
from entaug.errors import InputError, LossError
from entaug.files.streams import check_characters, read_beginning, read_line_chunks
from entaug.formats.base import BaseFormat, FormatCapabilities, ReadReport
from entaug.formats.records import read_records
from entaug.formats.token_records import unique_mentions

__all__ = ["Bartner", "BartnerDialect"]

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
