"""The lines of brat's standoff format, and the texts that their offsets are of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from entaug.data import Span
from entaug.errors import InputError
from entaug.formats.base import Reading
from entaug.formats.documents import CharMention

__all__ = [
    "MARK",
    "Bound",
    "Faults",
    "Other",
    "alive",
    "as_bound",
    "as_other",
    "bound_line",
    "lines_of",
    "mentions_of",
    "merged",
    "ranges_of",
    "seen_as",
    "verbatim",
]

MARK = "\ufeff"
# What ends a line for brat, within a mention too: no range may hold one.
_LINE = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_BOUND = re.compile(r"(T[A-Za-z]*[0-9]\S*)\t(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*) *(?:\t(.*))?")
_ID = re.compile(r"(?:[A-Za-z]+|#[A-Za-z]*)[0-9]\S*")


class Bound(NamedTuple):
    """A mention as its line has it: where it is, and what its text is said to be."""

    line: int
    id: str
    label: str
    spans: tuple[Span, ...]
    said: str
    raw: str


class Other(NamedTuple):
    """A line that is no mention, and the ids that it refers to."""

    line: int
    id: str
    refers: tuple[str, ...]
    raw: str


class Faults:
    """The faults of a document, which is left out when one was told. With --repair they are counted instead."""

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path, self.reading, self.told = path, reading, False

    def __call__(self, what: str, line: int, mended: str = "line of .ann dropped", remedy: str = "mend it") -> None:
        """Tell a fault, or count what is done about it."""
        if self.reading.repair:
            self.reading.repaired[mended] += 1
            return
        self.told = True
        self.reading.fault(InputError(what, path=str(self.path), line=line, remedy=f"{remedy}, or pass --repair"))


# ---------------------------------------------------------------------------------------------------------------- lines


def lines_of(content: str, faults: Faults) -> tuple[list[Bound], list[Other], dict[str, Any]]:
    """The mentions and other lines of annotations, and what is unusual about how they are laid out."""
    if "\r" in content and "\n" not in content:
        told, remedy = "lines end with lone carriage returns", "convert it first: tr '\\r' '\\n'"
        raise InputError(told, path=str(faults.path), line=1, remedy=remedy)
    lines = content.removeprefix(MARK).split("\n")
    laid: dict[str, Any] = {}
    if lines[-1]:
        laid["open"] = True
    else:
        lines.pop()
    if content.count("\r\n") == content.count("\n") > 0:
        laid["crlf"] = True
    found: dict[str, Bound | Other] = {}
    twice: list[Bound] = []
    for number, whole in enumerate(lines, start=1):
        line = whole.removesuffix("\r")
        if not line.strip():
            faults.reading.notes["empty line of .ann left out"] += 1
            continue
        one = as_bound(line, number) if line.startswith("T") else as_other(line, number)
        if one is None:
            faults(f"no line of brat's standoff format: {_short(line)}", number)
        elif one.id != "*" and one.id in found:
            bound = isinstance(one, Bound)
            faults(f"id {one.id} is that of line {found[one.id].line} too", number, *["new id given"] * bound)
            twice += [one] if isinstance(one, Bound) else []
        else:
            found[one.id if one.id != "*" else f"* {number}"] = one
    free = (name for name in (f"T{i}" for i in range(1, len(found) + len(twice) + 1)) if name not in found)
    bounds = [one for one in found.values() if isinstance(one, Bound)]
    bounds += [one._replace(id=name) for one, name in zip(twice, free, strict=False)]
    others = [one for one in found.values() if isinstance(one, Other)]
    known = {*(one.id for one in bounds), *(one.id for one in others)}
    for one in [*others]:
        if missing := [name for name in one.refers if name not in known]:
            faults(f"{one.id} refers to {missing[0]}, which is not there", one.line)
            others.remove(one)
    return bounds, others, laid


def as_bound(line: str, number: int) -> Bound | None:
    r"""A line that holds a mention; None where it does not.

    Example:
        >>> as_bound("T1\tLOC 0 5;16 21\tNorth Italy", 7)[:4]
        (7, 'T1', 'LOC', ((0, 5), (16, 21)))
    """
    found = _BOUND.fullmatch(line)
    if found is None:
        return None
    pairs = [place.split() for place in found[3].split(";")]
    return Bound(number, found[1], found[2], tuple([(int(a), int(b)) for a, b in pairs]), found[4] or "", line)


def as_other(line: str, number: int) -> Other | None:
    r"""A line that holds something else; None where it does not.

    Example:
        >>> as_other("R1\tPart-of Arg1:T3 Arg2:T1", 7)[:3]
        (7, 'R1', ('T3', 'T1'))
    """
    name, _, rest = line.partition("\t")
    words = rest.partition("\t")[0].split()
    if not words or (name != "*" and not _ID.fullmatch(name)):
        return None
    kind = name[0]
    refers: list[str] | None = None
    if kind in "RE":  # the type of an event comes with its trigger
        pairs = [word.partition(":") for word in words[kind == "R" :]]
        if all(role and one for role, _, one in pairs) and (kind == "E" or len(pairs) == 2):
            refers = [one for _, _, one in pairs]
    elif kind == "*":
        refers = words[1:] if len(words) > 2 else None
    elif kind == "#":
        # A note may speak of the document, as "*".
        refers = [word for word in words[1:] if word != "*"] if len(words) == 2 else None
    elif kind == "N":
        refers = [words[1].removeprefix("Annotation:")] if len(words) > 2 and ":" in words[2] else None
    elif kind in "AM":
        refers = words[1:2] or None
    return None if refers is None else Other(number, name, tuple(refers), line)


def alive(others: Sequence[Other], names: Iterable[str]) -> list[Other]:
    """The lines all of whose references are there, in the end."""
    there = set(names)
    while True:
        known = there.union(one.id for one in others)
        left = [one for one in others if known.issuperset(one.refers)]
        if len(left) == len(others):
            return left
        others = left


def bound_line(name: str, label: str, ranges: Sequence[Span], text: str, shift: int) -> str:
    """The line of a mention; `shift` is what offsets count besides the text."""
    where = ";".join(f"{start + shift} {end + shift}" for start, end in ranges)
    return f"{name}\t{label} {where}\t{' '.join(text[start:end] for start, end in ranges)}"


def _short(words: str) -> str:
    return repr(words if len(words) <= 60 else f"{words[:57]}...")


# ------------------------------------------------------------------------------------------------- lines and their text


def seen_as(written: str, bounds: Sequence[Bound]) -> tuple[str, int, dict[str, Any]]:
    """The text that offsets are of, what they count besides, and what the file has besides.

    brat counts a byte-order mark, and both characters of CRLF. Many tools do not, and some versions of brat: so what
    the mentions say of their texts decides.
    """
    body = written.removeprefix(MARK)
    ways: list[tuple[str, int, dict[str, Any]]] = [(body, 0, {})]
    if body != written:
        ways = [(body, 1, {"mark": "counted"}), (body, 0, {"mark": "not counted"})]
    if "\r" in body and body.count("\r") == body.count("\n") == body.count("\r\n"):
        bare = body.replace("\r\n", "\n")
        ways += [(bare, shift, {**how, "text crlf": True}) for _, shift, how in ways]
    if len(ways) == 1:
        return ways[0]
    fitting = (way for way in ways if all(_agrees(bound, way[0], way[1]) for bound in bounds))
    return next(fitting, ways[0])


def _parts(bound: Bound, text: str, shift: int) -> list[str] | None:
    """What stands at the offsets of a mention; None where they are not in the text."""
    if all(0 <= start - shift < end - shift <= len(text) for start, end in bound.spans):
        return [text[start - shift : end - shift] for start, end in bound.spans]
    return None


def _agrees(bound: Bound, text: str, shift: int) -> bool:
    """Whether a mention has the text that it says it has; how white space is written does not matter."""
    parts = _parts(bound, text, shift)
    if parts is None:
        return False
    if not bound.said.strip() or bound.said.split() == " ".join(parts).split() or _exact(bound, parts):
        return True
    return bound.said == "".join(parts)  # so brat had parts before version 1.3


def _exact(bound: Bound, parts: Sequence[str]) -> bool:
    """Whether brat would take the line as it is; after the text there may be a comment."""
    wanted = " ".join(parts)
    return bound.said.startswith(wanted) and not bound.said[len(wanted) :][:1].strip() and bool(_LINE.fullmatch(wanted))


def verbatim(raw: str, line: str, ranges: Sequence[Span], text: str, shift: int) -> bool:
    """Whether a mention may have the line that it came with instead of the one that is made for it."""
    came, made = as_bound(raw, 0), as_bound(line, 0)
    if came is None or made is None or came[:3] != made[:3] or not _LINE.fullmatch(raw):
        return False
    parts = _parts(came, text, shift)
    spans = [(start - shift, end - shift) for start, end in came.spans]
    return parts is not None and _exact(came, parts) and ranges_of(text, spans) == tuple(ranges)


def ranges_of(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    r"""Ranges of characters as brat has them: none holds a line end, or begins or ends with white space.

    Example:
        >>> ranges_of("in New \n York", [(3, 13)])
        ((3, 6), (9, 13))
    """
    found = []
    for start, end in spans:
        for line in _LINE.finditer(text, start, end):
            if inner := line[0].strip():
                first = line.start() + len(line[0]) - len(line[0].lstrip())
                found.append((first, first + len(inner)))
    return tuple(sorted(found))


def merged(text: str, ranges: Iterable[Span]) -> tuple[Span, ...]:
    """Ranges with white space alone between them as one: so two mentions are compared."""
    found: list[Span] = []
    for start, end in ranges:
        if found and not text[found[-1][1] : start].strip():
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return tuple(found)


def mentions_of(bounds: Sequence[Bound], text: str, shift: int, faults: Faults) -> list[CharMention]:
    """The mentions of a text. A second one of the same label and place is another name of the first."""
    found: dict[tuple[str, tuple[Span, ...]], CharMention] = {}
    also: dict[tuple[str, tuple[Span, ...]], list[list[Any]]] = {}
    for bound in bounds:
        spans = _settled(bound, text, shift, faults)
        if spans is None:
            continue
        ranges = ranges_of(text, spans)
        if not ranges or any(end > start for (_, end), (start, _) in pairwise(ranges)):
            what = "has ranges that overlap" if ranges else "is white space alone"
            faults(f"{bound.id} {what}", bound.line, "mention dropped")
            continue
        if ranges != tuple(sorted(spans)):
            faults.reading.notes["white space at the edge of a mention, or a line end within it, left out"] += 1
        key = bound.label, ranges
        if key in found:
            also.setdefault(key, []).append([bound.id, bound.line])
            continue
        extra: dict[str, Any] = {"id": bound.id, "line": bound.line}
        line = bound_line(bound.id, bound.label, ranges, text, shift)
        if bound.raw != line and verbatim(bound.raw, line, ranges, text, shift):
            extra["raw"] = bound.raw
        found[key] = CharMention(bound.label, ranges, extra)
    return [m if key not in also else m._replace(fields={**m.fields, "also": also[key]}) for key, m in found.items()]


def _settled(bound: Bound, text: str, shift: int, faults: Faults) -> tuple[Span, ...] | None:
    """Where a mention is in the text; None where that cannot be mended."""
    spans = tuple([(start - shift, end - shift) for start, end in bound.spans])
    if _agrees(bound, text, shift):
        return spans
    parts = _parts(bound, text, shift)
    moved = _nearest(text, bound.said.strip(), spans[0][0]) if len(spans) == 1 else None
    where = _short(";".join(f"{start} {end}" for start, end in bound.spans))[1:-1]
    if parts is None:
        told = f"{bound.id} ({where}) is empty, or outside the text of {len(text) + shift} characters"
        mended = "mention outside the text dropped"
    else:
        told = f"{bound.id} says {_short(bound.said)}, but at {where} the text has {_short(' '.join(parts))}"
        mended = "text of a mention replaced by that at its offsets"
    faults(told, bound.line, "mention moved to where its text is" if moved else mended, "mend its offsets")
    return (moved,) if moved else spans if parts else None


def _nearest(text: str, wanted: str, place: int) -> Span | None:
    """Where a text has some words, nearest to a place."""
    if not wanted:
        return None
    place = max(0, place)
    found = {text.rfind(wanted, 0, place + len(wanted)), text.find(wanted, place)} - {-1}
    start = min(found, key=lambda start: (abs(start - place), start), default=None)
    return None if start is None else (start, start + len(wanted))
