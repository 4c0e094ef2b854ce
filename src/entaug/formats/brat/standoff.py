"""The lines of brat's standoff format, and the texts that their offsets refer to.

One file because parsing, locating and formatting of lines are three views of one grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from entaug.core.data import Span
from entaug.errors import InputError
from entaug.formats.base import ReadReport
from entaug.formats.documents import CharMention
from entaug.formats.offsets import characters_of

__all__ = [
    "BYTE_ORDER_MARK",
    "Faults",
    "MentionLine",
    "OtherLine",
    "convert_offsets",
    "detect_offsets",
    "format_mention",
    "is_kept_verbatim",
    "mentions_in_characters",
    "merge_ranges",
    "parse_lines",
    "parse_mention",
    "parse_other",
    "place_mentions",
    "to_ranges",
    "with_all_references",
]

BYTE_ORDER_MARK = "\ufeff"
# All other characters end a line in brat, even within a mention, so no range may contain them.
_LINE = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_MENTION = re.compile(
    r"(T[A-Za-z]*[0-9]\S*)\t(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*) *(?:\t(.*))?"
)
_ID = re.compile(r"(?:[A-Za-z]+|#[A-Za-z]*)[0-9]\S*")


class MentionLine(NamedTuple):
    """The line of a mention."""

    line: int
    id: str
    label: str
    spans: tuple[Span, ...]
    words: str
    raw: str


class OtherLine(NamedTuple):
    """A line that is not a mention."""

    line: int
    id: str
    references: tuple[str, ...]
    raw: str


class Faults:
    """Collects the errors of a document; with ``--repair`` they are counted instead."""

    def __init__(self, path: Path, reading: ReadReport) -> None:
        self.path, self.reading = path, reading
        self.found: list[InputError] = []

    def report(self, what: str, line: int, repair: str = "line of .ann dropped", remedy: str = "correct it") -> None:
        """Add an error, or count its repair."""
        if self.reading.repair:
            self.reading.repaired[repair] += 1
        else:
            remedy = f"{remedy}, or pass --repair"
            self.found.append(InputError(what, path=str(self.path), line=line, remedy=remedy))

    def raise_any(self) -> None:
        """Raise the first error, if any."""
        if self.found:
            raise self.found[0]


# --------------------------------------------------------------------------------------------------------------- lines


def parse_lines(content: str, faults: Faults) -> tuple[list[MentionLine], list[OtherLine], dict[str, Any]]:
    """Parse the lines of a ``.ann`` file."""
    if "\r" in content and "\n" not in content:
        what, remedy = "lines end with lone carriage returns", "convert it first: tr '\\r' '\\n'"
        raise InputError(what, path=str(faults.path), line=1, remedy=remedy)
    lines = content.removeprefix(BYTE_ORDER_MARK).split("\n")
    layout: dict[str, Any] = {}
    if lines[-1]:
        layout["open"] = True
    else:
        lines.pop()
    if content.count("\r\n") == content.count("\n") > 0:
        layout["crlf"] = True
    parsed: dict[str, MentionLine | OtherLine] = {}
    repeated: list[MentionLine] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.removesuffix("\r")
        if not line.strip():
            faults.reading.notes["empty line of .ann left out"] += 1
            continue
        record = parse_mention(line, number) if line.startswith("T") else parse_other(line, number)
        if record is None:
            faults.report(f"no line of brat's standoff format: {_shorten(line)}", number)
        elif record.id == "*":
            parsed[f"* {number}"] = record
        elif record.id not in parsed:
            parsed[record.id] = record
        elif isinstance(record, MentionLine):
            faults.report(f"id {record.id} is that of line {parsed[record.id].line} too", number, "new id given")
            repeated.append(record)
        else:
            faults.report(f"id {record.id} is that of line {parsed[record.id].line} too", number)
    new_ids = (name for name in (f"T{i}" for i in range(1, len(parsed) + len(repeated) + 1)) if name not in parsed)
    mentions = [record for record in parsed.values() if isinstance(record, MentionLine)]
    mentions += [record._replace(id=id_) for record, id_ in zip(repeated, new_ids, strict=False)]
    others = [record for record in parsed.values() if isinstance(record, OtherLine)]
    known = {mention.id for mention in mentions} | {other.id for other in others}
    kept = []
    for other in others:
        if missing := [name for name in other.references if name not in known]:
            faults.report(f"{other.id} refers to {missing[0]}, which is not there", other.line)
        else:
            kept.append(other)
    return mentions, kept, layout


def parse_mention(line: str, number: int) -> MentionLine | None:
    """Parse the line of a mention."""
    match = _MENTION.fullmatch(line)
    if match is None:
        return None
    pairs = [pair.split() for pair in match[3].split(";")]
    return MentionLine(number, match[1], match[2], tuple([(int(a), int(b)) for a, b in pairs]), match[4] or "", line)


def parse_other(line: str, number: int) -> OtherLine | None:
    """Parse a line that is not a mention."""
    id_, _, rest = line.partition("\t")
    words = rest.partition("\t")[0].split()
    if not words or (id_ != "*" and not _ID.fullmatch(id_)):
        return None
    kind = id_[0]
    references: list[str] | None = None
    if kind in "RE":  # the type of an event includes its trigger
        pairs = [word.partition(":") for word in words[kind == "R" :]]
        if all(role and name for role, _, name in pairs) and (kind == "E" or len(pairs) == 2):
            references = [name for _, _, name in pairs]
    elif kind == "*":
        references = words[1:] if len(words) > 2 else None
    elif kind == "#":
        # A note may refer to the whole document by "*".
        references = [word for word in words[1:] if word != "*"] if len(words) == 2 else None
    elif kind == "N":
        references = [words[1].removeprefix("Annotation:")] if len(words) > 2 and ":" in words[2] else None
    elif kind in "AM":
        references = words[1:2] or None
    return None if references is None else OtherLine(number, id_, tuple(references), line)


def with_all_references(others: Sequence[OtherLine], ids: Iterable[str]) -> list[OtherLine]:
    """Drop lines with references to missing ids, and lines that refer to dropped lines."""
    present = set(ids)
    while True:
        known = present.union(other.id for other in others)
        kept = [other for other in others if known.issuperset(other.references)]
        if len(kept) == len(others):
            return kept
        others = kept


def format_mention(id_: str, label: str, ranges: Sequence[Span], text: str, shift: int) -> str:
    """Format the line of a mention."""
    offsets = ";".join(f"{start + shift} {end + shift}" for start, end in ranges)
    return f"{id_}\t{label} {offsets}\t{' '.join(text[start:end] for start, end in ranges)}"


def _shorten(words: str) -> str:
    return repr(words if len(words) <= 60 else f"{words[:57]}...")


# --------------------------------------------------------------------------------------------------- texts of the lines


def detect_offsets(contents: str, mentions: Sequence[MentionLine]) -> tuple[str, int, dict[str, Any]]:
    """Detect how the offsets of mentions count characters."""
    # brat counts a byte-order mark, and both characters of CRLF. Many tools and some versions of brat do not, so the
    # texts in the lines of mentions decide.
    body = contents.removeprefix(BYTE_ORDER_MARK)
    ways: list[tuple[str, int, dict[str, Any]]] = [(body, 0, {})]
    if body != contents:
        ways = [(body, 1, {"mark": "counted"}), (body, 0, {"mark": "not counted"})]
    if "\r" in body and body.count("\r") == body.count("\n") == body.count("\r\n"):
        bare = body.replace("\r\n", "\n")
        ways += [(bare, shift, {**layout, "text crlf": True}) for _, shift, layout in ways]
    if body and max(body) > "\uffff":
        ways += [(text, shift, {**layout, "offsets": "utf16"}) for text, shift, layout in ways]
    if len(ways) == 1:
        return ways[0]

    def num_matches(way: tuple[str, int, dict[str, Any]]) -> int:
        text, shift, layout = way
        lines = mentions_in_characters(mentions, text, shift) if "offsets" in layout else mentions
        return sum(_matches(mention, text, shift) for mention in lines)

    return max(ways, key=num_matches)


def mentions_in_characters(mentions: Iterable[MentionLine], text: str, shift: int) -> list[MentionLine]:
    """Convert the offsets of mentions from UTF-16 units; those that divide a character are outside the text."""
    known = characters_of(text, "utf16") or {}
    return [convert_offsets(mention, lambda offset: known.get(offset - shift, -1) + shift) for mention in mentions]


def convert_offsets(mention: MentionLine, convert: Callable[[int], int]) -> MentionLine:
    """Convert the offsets of a mention, and those in its line."""
    spans = tuple([(convert(start), convert(end)) for start, end in mention.spans])
    match = _MENTION.fullmatch(mention.raw)
    if match is None:
        return mention._replace(spans=spans)
    offsets = ";".join(f"{start} {end}" for start, end in spans)
    return mention._replace(spans=spans, raw=mention.raw[: match.start(3)] + offsets + mention.raw[match.end(3) :])


def _parts(mention: MentionLine, text: str, shift: int) -> list[str] | None:
    """Return the text at the ranges of a mention; None if they are outside the text."""
    if all(0 <= start - shift < end - shift <= len(text) for start, end in mention.spans):
        return [text[start - shift : end - shift] for start, end in mention.spans]
    return None


def _matches(mention: MentionLine, text: str, shift: int) -> bool:
    """Whether the text at the offsets of a mention is the text in its line, ignoring white space."""
    parts = _parts(mention, text, shift)
    if parts is None:
        return False
    words = mention.words
    if not words.strip() or words.split() == " ".join(parts).split() or _is_exact(mention, parts):
        return True
    return words == "".join(parts)  # as brat joined parts before version 1.3


def _is_exact(mention: MentionLine, parts: Sequence[str]) -> bool:
    """Whether brat would accept the line as it is; after the text there may be a comment."""
    wanted = " ".join(parts)
    words = mention.words
    return words.startswith(wanted) and not words[len(wanted) :][:1].strip() and bool(_LINE.fullmatch(wanted))


def is_kept_verbatim(raw: str, formatted: str, ranges: Sequence[Span], text: str, shift: int) -> bool:
    """Return whether a mention may keep the line that it was read with."""
    before, now = parse_mention(raw, 0), parse_mention(formatted, 0)
    if before is None or now is None or before[:3] != now[:3] or not _LINE.fullmatch(raw):
        return False
    parts = _parts(before, text, shift)
    spans = [(start - shift, end - shift) for start, end in before.spans]
    return parts is not None and _is_exact(before, parts) and to_ranges(text, spans) == tuple(ranges)


def to_ranges(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Convert character ranges to ranges of brat, which contain no line end and no white space at their ends."""
    ranges = []
    for start, end in spans:
        for line in _LINE.finditer(text, start, end):
            if inner := line[0].strip():
                first = line.start() + len(line[0]) - len(line[0].lstrip())
                ranges.append((first, first + len(inner)))
    return tuple(sorted(ranges))


def merge_ranges(text: str, ranges: Iterable[Span]) -> tuple[Span, ...]:
    """Merge ranges that are separated only by white space, to compare two mentions."""
    merged: list[Span] = []
    for start, end in ranges:
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = merged[-1][0], end
        else:
            merged.append((start, end))
    return tuple(merged)


def place_mentions(lines: Sequence[MentionLine], text: str, shift: int, faults: Faults) -> list[CharMention]:
    """Locate mentions in their text."""
    fields: dict[tuple[str, tuple[Span, ...]], dict[str, Any]] = {}
    for line in lines:
        spans = _corrected_spans(line, text, shift, faults)
        if spans is None:
            continue
        ranges = to_ranges(text, spans)
        if not ranges or any(end > start for (_, end), (start, _) in pairwise(ranges)):
            what = "has ranges that overlap" if ranges else "is white space alone"
            faults.report(f"{line.id} {what}", line.line, "mention dropped")
            continue
        if ranges != tuple(sorted(spans)):
            faults.reading.notes["white space at the edge of a mention, or a line end within it, left out"] += 1
        if own := fields.get((line.label, ranges)):
            own.setdefault("also", []).append([line.id, line.line])
            continue
        fields[line.label, ranges] = own = {"id": line.id, "line": line.line}
        formatted = format_mention(line.id, line.label, ranges, text, shift)
        if line.raw != formatted and is_kept_verbatim(line.raw, formatted, ranges, text, shift):
            own["raw"] = line.raw
    return [CharMention(label, ranges, own) for (label, ranges), own in fields.items()]


def _corrected_spans(mention: MentionLine, text: str, shift: int, faults: Faults) -> tuple[Span, ...] | None:
    """Return the characters of a mention; None if they cannot be corrected."""
    spans = tuple([(start - shift, end - shift) for start, end in mention.spans])
    parts = _parts(mention, text, shift)
    if _matches(mention, text, shift):
        if parts and len(mention.words.split()) > len(" ".join(parts).split()):
            faults.reading.notes[
                "line of .ann with further text after the words of the mention, taken as a comment"
            ] += 1
        return spans
    moved = _find_nearest(text, mention.words.strip(), spans[0][0]) if len(spans) == 1 else None
    offsets = _shorten(";".join(f"{start} {end}" for start, end in mention.spans))[1:-1]
    if parts is None:
        what = f"{mention.id} ({offsets}) is empty, or outside the text of {len(text) + shift} characters"
        repair = "mention outside the text dropped"
    else:
        what = f"{mention.id} says {_shorten(mention.words)}, but at {offsets} the text has {_shorten(' '.join(parts))}"
        repair = "text of a mention replaced by that at its offsets"
    repair = "mention moved to where its text is" if moved else repair
    faults.report(what, mention.line, repair, "correct its offsets")
    return (moved,) if moved else spans if parts else None


def _find_nearest(text: str, words: str, offset: int) -> Span | None:
    """Return the characters of the occurrence of some words that is nearest to an offset."""
    if not words:
        return None
    offset = max(0, offset)
    starts = {text.rfind(words, 0, offset + len(words)), text.find(words, offset)} - {-1}
    start = min(starts, key=lambda start: (abs(start - offset), start), default=None)
    return None if start is None else (start, start + len(words))
