"""The form that the code of BARTNER reads for discontinuous mentions: three lines a sentence.

Tokens with a space between; mentions; an empty line. Mentions are set off by ``|``, each the first and last token of
each of its spans, and its label: ``0,1 ADR|3,3,6,7 ADR``. Carries tokens and all kinds of mentions, nothing else. The
form for nested mentions is `entaug.formats.research.bartner_nested`.

Yan et al. (2021), A Unified GenerativeAugmenter Framework for Various NER Subtasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entaug.data import Mention, Sentence
from entaug.errors import InputError, LossError
from entaug.files.streams import check_no_nul, read_beginning, read_line_chunks
from entaug.formats.base import FormatCapabilities, Reading

__all__ = ["Bartner", "BartnerDialect"]

_MENTIONS = re.compile(r"\d+,\d+(?:,\d+,\d+)* [^ |]+(?:\|\d+,\d+(?:,\d+,\d+)* [^ |]+)*")
_BEGINNING = 1 << 16
_UNFIT = re.compile("[\n\r\0]")
_REMEDY = "write the first and last token of each span, a space, and the label: 0,1 ADR|3,3,6,7 ADR"


@dataclass(frozen=True)
class BartnerDialect:
    """Nothing differs from file to file."""

    def describe(self) -> str:
        """One line for people."""
        return "BARTNER's lines of tokens and mentions"


class Bartner:
    """The form of BARTNER for discontinuous mentions; see `entaug.formats.base.Format` for the methods."""

    name = "bartner"
    title = "BARTNER's lines"
    extensions: tuple[str, ...] = ()
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=False)

    def recognises(self, path: Path) -> bool:
        """Whether it begins with sentences of three lines, at least one of them with mentions."""
        data = read_beginning(path, _BEGINNING)
        lines = data.decode("utf-8-sig", "replace").replace("\r", "").rstrip("\n").split("\n")
        lines = lines[:-3] if len(data) == _BEGINNING else [*lines, "", ""]  # the last may be cut
        whole = [lines[i : i + 3] for i in range(0, len(lines) - 2, 3)]
        marked = [mentions for _, mentions, _ in whole if mentions]
        known = all(_MENTIONS.fullmatch(mentions) for mentions in marked)
        return bool(marked) and known and all(tokens and not empty for tokens, _, empty in whole)

    def dialect(self, **options: Any) -> BartnerDialect:
        """The dialect; there are no options."""
        return BartnerDialect(**options)

    def look(self, path: Path, **options: Any) -> BartnerDialect:
        """The dialect."""
        del path
        return BartnerDialect(**options)

    def read(
        self, path: Path, dialect: BartnerDialect, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """The sentences of a file, streamed.

        Raises:
            InputError: lines that are not in threes, mentions that do not fit, no sentence at all.
        """
        del dialect
        empty = True
        for number, lines in _threes(path, start, stop):
            fault = _out_of_step(number, lines)
            if fault is not None:  # what a line is is told by its number alone: nothing after it can be read
                fault.path = str(path)
                reading.fault(fault)
                return
            if not lines[0].strip():
                reading.notes["empty sentence left out"] += 1
                continue
            empty = False
            try:
                sentence = Sentence(tuple(lines[0].strip().split(" ")), _mentions(lines[1].strip(), reading))
            except InputError as error:
                error.path, error.line = str(path), number
                reading.fault(error)
                continue
            reading.line = number
            yield sentence
        if empty and stop is None:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def carried(self, sentence: Sentence, dialect: BartnerDialect) -> Sentence:
        """The sentence itself."""
        del dialect
        return sentence

    def dump(self, sentence: Sentence, dialect: BartnerDialect) -> str:
        """Three lines.

        Raises:
            LossError: a token or label that holds white space, or a label with ``|``.
        """
        del dialect
        line = " ".join(sentence.tokens)
        if line.count(" ") != len(sentence) - 1 or _UNFIT.search(line) or line != line.strip():
            token = next(t for t in sentence.tokens if " " in t or _UNFIT.search(t) or t != t.strip())
            raise _refused("token", token, sentence)
        parts = []
        for mention in sentence.mentions:
            if mention.label.split() != [mention.label] or "|" in mention.label or "\0" in mention.label:
                raise _refused("label", mention.label, sentence)
            parts.append(",".join(f"{a},{b - 1}" for a, b in mention.spans) + f" {mention.label}")
        return f"{line}\n{'|'.join(parts)}\n\n"

    def lost(self, sentence: Sentence, dialect: BartnerDialect) -> list[str]:
        """All but tokens and mentions."""
        del dialect
        lost = [f"field {name!r}" for name in sentence.fields] + [f"column {name!r}" for name in sentence.columns]
        return lost + ["id"] * (sentence.id is not None) + ["text"] * (sentence.spaces is not None)


def _refused(what: str, text: str, sentence: Sentence) -> LossError:
    return LossError(
        f"{what} {text!r} holds "
        + ("a NUL character" if "\0" in text else f"white space{' or a bar' * (what == 'label')}"),
        path=sentence.id,
        remedy="write JSON lines",
    )


def _out_of_step(number: int, lines: list[str]) -> InputError | None:
    """What is wrong where three lines are not those of one sentence."""
    remedy = "write three lines a sentence: its tokens, its mentions, an empty one"
    if lines[2].strip():
        return InputError("an empty line is expected after the mentions of a sentence", line=number + 2, remedy=remedy)
    if lines[1].strip() and not lines[0].strip():
        return InputError("mentions follow an empty line of tokens", line=number + 1, remedy=remedy)
    return None


def _threes(path: Path, start: int, stop: int | None) -> Iterator[tuple[int, list[str]]]:
    """The lines by three, and the number of the first; what is missing at the end is empty."""
    held: list[str] = []
    number = 1
    for first, lines in read_line_chunks(path, start, stop):
        check_no_nul(lines, first, path)
        held += lines
        whole = len(held) // 3 * 3
        for i in range(0, whole, 3):
            yield number + i, held[i : i + 3]
        number += whole
        del held[:whole]
    if any(line.strip() for line in held):
        yield number, [*held, "", ""][:3]


def _mentions(line: str, reading: Reading) -> list[Mention]:
    found: list[Mention] = []
    for part in line.split("|") if line else ():
        places, _, label = part.partition(" ")
        try:
            numbers = [int(place) for place in places.split(",")]
        except ValueError:
            numbers = []
        if not label or " " in label or not numbers or len(numbers) % 2:
            raise InputError(f"{part!r} is no mention", remedy=_REMEDY)
        spans = sorted(zip(numbers[::2], [last + 1 for last in numbers[1::2]], strict=True))
        mention = Mention(label, tuple(spans))
        if mention in found and reading.repair:
            reading.repaired["mention that was given twice dropped"] += 1
            continue
        found.append(mention)
    return found
