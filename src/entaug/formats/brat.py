"""The standoff format of brat: a folder with a text ``NAME.txt`` and its annotations ``NAME.ann`` for each document.

Folders may be nested; the id of a document is its path without the extension. Offsets count the characters of the file,
including a byte-order mark and both characters of CRLF, as in brat. If another way of counting, such as UTF-16 units,
matches the texts of more mentions, it is used; an unchanged document keeps UTF-16 units.

All lines are kept with the sentences: mentions with id and line number, other lines (relations, events, attributes,
normalisations, notes, equivalences) with the first sentence that they refer to. They are written back, in their order,
if their sentences are unchanged and everything that they refer to is present. What is written is as brat writes it: no
byte-order mark, line ends of one character in the ``.ann``, nothing behind the words of a mention.

The sentences that a method made of a document, one of each of its sentences, are a new document for each copy, with
mentions alone: without relations, attributes or notes. The file ``NAME.entaug.json`` holds the offsets of its
sentences and their provenance. brat ignores this file.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, count, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.spacing import stripped
from entaug.errors import InputError, LossError
from entaug.files.folders import safe_file_name, write_documents
from entaug.files.streams import decode_text, read_bytes
from entaug.formats.base import BEFORE, ENTITY_FIELDS, KEPT, FormatCapabilities, ReadReport, before_of
from entaug.formats.documents import DocumentFolder, DocumentOptions, StandoffFormat
from entaug.formats.text import (
    DOCUMENT,
    CharMention,
    Document,
    OffsetUnit,
    characters_of,
    counter,
    group_by_document,
    join_sentences,
    place_tokens,
    split_document,
)
from entaug.formats.token_records import entity_fields

PROVENANCE_SUFFIX = ".entaug.json"
"""Extension of the file with the provenance of a document."""
_BYTE_ORDER_MARK = "\ufeff"
# All other characters end a line in brat, even within a mention, so no range may contain them.
_LINE = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_MENTION = re.compile(
    r"(T[A-Za-z]*[0-9]\S*)\t(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*) *(?:\t(.*))?"
)
_ID = re.compile(r"\*|(?:[A-Za-z]+|#[A-Za-z]*)[0-9]\S*")
# Lines that are no mentions, by the beginning of their id: the form of the second column, and the ids it refers to.
_ATTRIBUTE = (r"\S+ \S+.*", r"^\S+ (\S+)")
_OTHER_LINES = {
    "R": (r"\S+( [^\s:]+:\S+){2}", r" [^\s:]+:(\S+)"),
    "E": (r"[^\s:]+:\S+( [^\s:]+:\S+)*", r"[^\s:]+:(\S+)"),  # the type of an event includes its trigger
    "*": (r"\S+( \S+){2,}", r" (\S+)"),
    "#": (r"\S+ \S+", r" (?!\*$)(\S+)"),  # a note may refer to the whole document by "*"
    "N": (r"\S+ \S+ \S*:.*", r"^\S+ (?:Annotation:)?(\S+)"),
    "A": _ATTRIBUTE,
    "M": _ATTRIBUTE,
}


class Line(NamedTuple):
    """A line of a ``.ann`` file: a mention, which has characters, or another, with the ids that it refers to."""

    number: int
    id: str
    raw: str
    label: str = ""
    spans: tuple[Span, ...] = ()
    words: str = ""
    references: tuple[str, ...] = ()


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
            remedy = f"{remedy}, or pass `repair=True`"
            self.found.append(InputError(what, path=str(self.path), line=line, remedy=remedy))


# --------------------------------------------------------------------------------------------------------------- lines


def parse_lines(content: str, faults: Faults) -> tuple[list[Line], list[Line]]:
    """Parse the lines of a ``.ann`` file: the mentions, and the others, all of whose references are there."""
    if "\r" in content and "\n" not in content:
        what, remedy = "lines end with lone carriage returns", "convert it first: tr '\\r' '\\n'"
        raise InputError(what, path=str(faults.path), line=1, remedy=remedy)
    parsed: dict[str, Line] = {}
    content = content.removeprefix(_BYTE_ORDER_MARK).removesuffix("\n")
    for number, raw in enumerate(content.split("\n") if content else (), start=1):
        text = raw.removesuffix("\r")
        line = parse_line(text, number)
        if not text.strip():
            faults.reading.notes["empty line of .ann left out"] += 1
        elif line is None:
            faults.report(f"no line of brat's standoff format: {_shorten(text)}", number)
        elif line.id not in parsed:
            parsed[f"* {number}" if line.id == "*" else line.id] = line
        else:
            repair = {"repair": "new id given"} if line.spans else {}
            faults.report(f"id {line.id} is that of line {parsed[line.id].number} too", number, **repair)
            if line.spans:
                ids = (f"T{n}" for n in count(1))
                new_id = next(id_ for id_ in ids if id_ not in parsed and f"{id_}\t" not in content)
                parsed[new_id] = line._replace(id=new_id)
    known = {line.id for line in parsed.values()}
    mentions: list[Line] = []
    others: list[Line] = []
    for line in parsed.values():
        if missing := [name for name in line.references if name not in known]:
            faults.report(f"{line.id} refers to {missing[0]}, which is not there", line.number)
        else:
            (mentions if line.spans else others).append(line)
    return mentions, others


def parse_line(raw: str, number: int) -> Line | None:
    """Parse a line; None if it is none of brat's."""
    if raw.startswith("T"):
        if (match := _MENTION.fullmatch(raw)) is None:
            return None
        pairs = [pair.split() for pair in match[3].split(";")]
        return Line(number, match[1], raw, match[2], tuple([(int(a), int(b)) for a, b in pairs]), match[4] or "")
    id_, _, rest = raw.partition("\t")
    column = " ".join(rest.partition("\t")[0].split())
    if not _ID.fullmatch(id_) or id_[0] not in _OTHER_LINES:
        return None
    form, references = _OTHER_LINES[id_[0]]
    if not re.fullmatch(form, column):
        return None
    return Line(number, id_, raw, references=tuple(re.findall(references, column)))


def with_all_references(others: Sequence[Line], ids: Iterable[str]) -> list[Line]:
    """Drop lines with references to missing ids, and lines that refer to dropped lines."""
    present = set(ids)
    while True:
        known = present.union(other.id for other in others)
        kept = [other for other in others if known.issuperset(other.references)]
        if len(kept) == len(others):
            return kept
        others = kept


def _shorten(words: str) -> str:
    return repr(words if len(words) <= 60 else f"{words[:57]}...")


# --------------------------------------------------------------------------------------------------- texts of the lines


def locate(contents: str, mentions: Sequence[Line]) -> tuple[str, list[tuple[Span, ...]], OffsetUnit]:
    """The text, the characters of each mention in it, and the unit of offsets that most of the words agree with."""
    # brat counts a byte-order mark, and both characters of CRLF. Many tools and some versions of brat do not.
    body = contents.removeprefix(_BYTE_ORDER_MARK)
    bodies = [body]
    if "\r" in body and body.count("\r") == body.count("\n") == body.count("\r\n"):
        bodies.append(body.replace("\r\n", "\n"))
    most = -1
    best: tuple[str, list[tuple[Span, ...]], OffsetUnit] = body, [], "characters"
    units: tuple[OffsetUnit, ...] = ("characters", "utf16")
    for unit, text, shift in product(units, bodies, (0,) if body == contents else (1, 0)):
        known = characters_of(text, unit)
        if known is None and unit != "characters":
            continue
        moved = [tuple([(a - shift, b - shift) for a, b in mention.spans]) for mention in mentions]
        if known is not None:  # an offset that divides a character is outside the text
            moved = [tuple([(known.get(a, -1), known.get(b, -1)) for a, b in spans]) for spans in moved]
        found = sum(_agrees(m.words, _parts(text, spans)) for m, spans in zip(mentions, moved, strict=True))
        if found > most:
            most, best = found, (text, moved, unit)
    return best


def _parts(text: str, spans: Iterable[Span]) -> list[str]:
    """The text at each range of a mention; empty if any is outside of the text."""
    if all(0 <= start < end <= len(text) for start, end in spans):
        return [text[start:end] for start, end in spans]
    return []


def _agrees(words: str, parts: Sequence[str]) -> bool:
    """Whether the text at the offsets of a mention is the text in its line, ignoring white space."""
    there = " ".join(parts)
    if not parts or not words.strip() or words.split() == there.split():
        return bool(parts)
    is_commented = words.startswith(there) and words[len(there)].isspace()
    return is_commented or words == "".join(parts)  # as brat joined parts before version 1.3


def to_ranges(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Convert character ranges to ranges of brat, which contain no line end and no white space at their ends."""
    lines = (line.span() for span in spans for line in _LINE.finditer(text, *span))
    return tuple(sorted(inner for line in lines for inner in stripped(text, [line])))


def place_mentions(
    lines: Sequence[Line], placed: Sequence[tuple[Span, ...]], text: str, faults: Faults
) -> list[CharMention]:
    """The mentions of a text, with their ids and lines as fields; lines of the same mention are one."""
    fields: dict[tuple[str, tuple[Span, ...]], dict[str, Any]] = {}
    notes = faults.reading.notes
    for line, given in zip(lines, placed, strict=True):
        spans = _corrected(line, given, text, faults)
        if not spans:
            continue
        ranges = to_ranges(text, spans)
        if not ranges or any(end > start for (_, end), (start, _) in pairwise(ranges)):
            what = "has ranges that overlap" if ranges else "is white space alone"
            faults.report(f"{line.id} {what}", line.number, "mention dropped")
            continue
        if ranges != tuple(sorted(spans)):
            notes["white space at the edge of a mention, or a line end within it, left out"] += 1
        if own := fields.get((line.label, ranges)):
            own.setdefault("also", []).append([line.id, line.number])
        else:
            fields[line.label, ranges] = {"id": line.id, "line": line.number}
    return [CharMention(label, ranges, own) for (label, ranges), own in fields.items()]


def _corrected(mention: Line, spans: tuple[Span, ...], text: str, faults: Faults) -> tuple[Span, ...]:
    """The characters of a mention; empty if they cannot be corrected."""
    parts = _parts(text, spans)
    if _agrees(mention.words, parts):
        if len(mention.words.split()) > len(" ".join(parts).split()):
            faults.reading.notes["text behind the words of a mention, taken as a comment, left out"] += 1
        return spans
    moved = _find_nearest(text, mention.words.strip(), spans[0][0]) if len(spans) == 1 else ()
    offsets = _shorten(";".join(f"{start} {end}" for start, end in mention.spans))[1:-1]
    if parts:
        what = f"{mention.id} says {_shorten(mention.words)}, but at {offsets} the text has {_shorten(' '.join(parts))}"
        repair = "text of a mention replaced by that at its offsets"
    else:
        what = f"{mention.id} ({offsets}) is empty, or outside the text of {len(text)} characters"
        repair = "mention outside the text dropped"
    repair = "mention moved to where its text is" if moved else repair
    faults.report(what, mention.number, repair, "correct its offsets")
    return moved or (spans if parts else ())


def _find_nearest(text: str, words: str, offset: int) -> tuple[Span, ...]:
    """The characters of the occurrence of some words that is nearest to an offset; empty if there is none."""
    offset = max(0, offset)
    starts = {text.rfind(words, 0, offset + len(words)), text.find(words, offset)} - {-1} if words else set()
    start = min(starts, key=lambda start: (abs(start - offset), start), default=None)
    return () if start is None else ((start, start + len(words)),)


# ------------------------------------------------------------------------------------------------------------- reading


def _read_provenance(path: Path) -> list[tuple[int, Any]] | None:
    """Read the offsets and the provenance of the sentences of an augmented document; None without a file."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        contents = json.loads(decode_text(read_bytes(path), path))["sentences"]
        provenance = [(sentence["start"], sentence["entaug"]) for sentence in contents]
    except (ValueError, TypeError, LookupError, RecursionError):
        provenance = [(-1, None)]
    starts = [start for start, _ in provenance]
    if not all(type(start) is int and start >= 0 for start in starts) or starts != sorted(starts):
        remedy = "remove it, or have it written anew"
        raise InputError("is not what entaug writes beside a document", path=str(path), remedy=remedy)
    return provenance


def _with_lines(
    sentences: Sequence[Sentence], others: Sequence[Line], reading: ReadReport, layout: Mapping[str, str]
) -> list[Sentence]:
    """Add to each sentence the lines that are written back with it."""
    extras = [sentence.fields.get(ENTITY_FIELDS, []) for sentence in sentences]
    sentence_of = {name: i for i, own in enumerate(extras) for extra in own for name, _ in _names(extra)}
    waiting = with_all_references(others, sentence_of)
    if len(waiting) < len(others):
        reading.notes["line that refers to a mention that was left out, left out too"] += len(others) - len(waiting)
    lines: list[list[Line]] = [[] for _ in sentences]
    while placed := [other for other in waiting if not sentence_of.keys().isdisjoint(other.references)]:
        for other in placed:
            sentence_of[other.id] = home = min(sentence_of[n] for n in other.references if n in sentence_of)
            lines[home].append(other)
        waiting = [other for other in waiting if other not in placed]  # a line may refer to a later one
    lines[0] += waiting
    # Lines are renumbered without the skipped ones, so that they have the same numbers when read again.
    used = {line for own in extras for extra in own for _, line in _names(extra)}
    used |= {line.number for line in chain(*lines)}
    rank = {line: i for i, line in enumerate(sorted(used), start=1)}
    kept = []
    for sentence, own_extras, own_lines in zip(sentences, extras, lines, strict=True):
        for extra in own_extras:
            extra["line"] = rank[extra["line"]]
            if "also" in extra:
                extra["also"] = [[name, rank[line]] for name, line in extra["also"]]
        numbered = sorted([rank[line.number], line.raw] for line in own_lines)
        field = {"of": _digest(sentence), **layout, **({"lines": numbered} if numbered else {})}
        kept.append(sentence.with_fields({**sentence.fields, KEPT: field}))
    return kept


def _names(extra: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the ids of a mention and its duplicates, each with its line."""
    return [(extra["id"], extra["line"]), *extra.get("also", ())]


# ------------------------------------------------------------------------------------------------------------- writing


def _digest(sentence: Sentence) -> str:
    spaces = "\0".join(sentence.spaces or ()).encode("utf-8", "surrogatepass")
    return blake2b(sentence.fingerprint() + spaces, digest_size=8).hexdigest()


def lines_read(sentence: Sentence) -> list[tuple[int, str]] | None:
    """The lines that were read with a sentence, if it is unchanged; in JSON lines its fields may have been edited."""
    kept = sentence.fields.get(KEPT)
    if not isinstance(kept, dict) or sentence.spaces is None or kept.get("of") != _digest(sentence):
        return None
    try:
        names = [(name, int(line)) for extra in entity_fields(sentence) for name, line in _names(extra)]
        lines = [(int(number), str(raw)) for number, raw in kept.get("lines", ()) if "\n" not in raw]
    except (TypeError, ValueError, LookupError):
        return None
    return lines if all(parse_line(f"{name}\tX 0 1", 0) for name, _ in names) else None


def without_foreign_fields(sentence: Sentence) -> Sentence:
    """Keep the fields of a sentence that are written; one that is unchanged belongs to its document again."""
    lines, old = lines_read(sentence), sentence.fields
    fields: dict[str, Any] = {}
    if before := before_of(sentence):
        fields[BEFORE] = before
    match old.get(DOCUMENT):
        case [str(name), int(start)]:
            fields[DOCUMENT] = [name, start]
    if lines is not None:
        fields[KEPT] = {"lines": lines, "unit": old[KEPT].get("unit"), "made": old.get("entaug")}
    name = "entaug" if lines is None else ENTITY_FIELDS
    return sentence.with_fields({**fields, name: old[name]} if name in old else fields)


def group_documents(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Group sentences by document, in their order there."""
    for group in group_by_document(map(without_foreign_fields, sentences)):
        is_gold = all(sentence.provenance is None and DOCUMENT in sentence.fields for sentence in group)
        yield sorted(group, key=lambda sentence: sentence.fields[DOCUMENT][1]) if is_gold else group


def document_files(group: Sequence[Sentence], number: int) -> tuple[str, dict[str, str]]:
    """Create the contents of the files of a document."""
    text = join_sentences(group)
    kept = [sentence.fields.get(KEPT, {}) for sentence in group]
    others = [other for own in kept for n, raw in own.get("lines", ()) if (other := parse_line(raw, n))]
    unit = "utf16" if kept[0].get("unit") == "utf16" else "characters"
    lines, names = _mention_lines(text, others, counter(text.text, unit))
    unique = {other.raw if other.id == "*" else other.id: other for other in others if other.id not in names}
    lines += [(other.number, other.raw) for other in with_all_references(list(unique.values()), names)]
    lines.sort(key=lambda pair: pair[0])
    files = {".txt": text.text, ".ann": "".join(f"{line}\n" for _, line in lines)}
    provenance = [sentence.fields.get("entaug", own.get("made")) for sentence, own in zip(group, kept, strict=True)]
    if any(own is not None for own in provenance):
        starts = _starts(group, text.text)
        written = [{"start": start, "entaug": own} for start, own in zip(starts, provenance, strict=True)]
        try:
            files[PROVENANCE_SUFFIX] = json.dumps({"sentences": written}) + "\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise LossError(f"provenance of {group[0].key} cannot be written as JSON ({error})") from None
    return _document_name(group, number), files


def _document_name(group: Sequence[Sentence], number: int) -> str:
    """Return the name of a document; an augmented one is named by its source, method, seed and copy."""
    first = group[0]
    name = join_sentences(group[:1]).id
    if name is None:
        return f"{number:06d}"
    if first.provenance is None:
        return name
    source, slash, suffix = (first.id or "").rpartition("/")
    if name != first.id:
        return f"{name}+{suffix or 'made'}"
    return f"{source}+{suffix}" if slash else name


def _starts(group: Sequence[Sentence], text: str) -> list[int]:
    """Return the offsets of sentences in their text."""
    offset = len(before_of(group[0]))
    starts = []
    for sentence in group:
        own, _ = place_tokens(sentence)
        offset += not text.startswith(own, offset)  # a line end separates sentences that were not adjacent
        starts.append(offset)
        offset += len(own)
    return starts


def _mention_lines(
    text: Document, others: Iterable[Line], count: Callable[[int], int]
) -> tuple[list[tuple[float, str]], set[str]]:
    """Return the lines of the mentions, each with its number, and the ids that were kept."""
    wanted: list[tuple[str, float, CharMention]] = []
    kept: set[str] = set()
    for mention in text.mentions:
        for name, line in _names(mention.fields) if "id" in mention.fields else [("", float("inf"))]:
            wanted.append(("" if name in kept else name, line, mention))
            kept |= {name} - {""}
    # New ids must differ from all ids that lines refer to, because such a mention may have been removed.
    taken = kept.union(*(other.references for other in others))
    last_id = max([int(name[1:]) for name in taken if re.fullmatch("T[0-9]{1,15}", name)], default=0)
    lines = []
    for name, line, mention in wanted:
        last_id += not name
        ranges = to_ranges(text.text, mention.spans)
        offsets = ";".join(f"{count(start)} {count(end)}" for start, end in ranges)
        words = " ".join(text.text[start:end] for start, end in ranges)
        lines.append((line, f"{name or f'T{last_id}'}\t{mention.label} {offsets}\t{words}"))
    return lines, kept


@dataclass(frozen=True)
class BratDialect(DocumentOptions):
    """Options of splitting documents into sentences; see `entaug.formats.text.SegmentationOptions`."""

    title = "brat standoff"


class Brat(DocumentFolder, StandoffFormat):
    """The format of brat; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "brat"
    title = "brat standoff"
    extensions = (".ann",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=True)
    dialect_class = BratDialect
    beside = (PROVENANCE_SUFFIX,)
    kept_fields = (KEPT, "entaug")
    not_in_text = re.compile("^\ufeff|[\ud800-\udfff]")  # a mark at the beginning would be dropped in reading
    not_in_labels = re.compile(r"\s")

    def read_document(
        self, name: str, annotations: Path, text: Path, dialect: Any, reading: ReadReport
    ) -> list[Sentence]:
        faults = Faults(annotations, reading)
        try:
            contents = decode_text(read_bytes(text), text)
            mention_lines, other_lines = parse_lines(decode_text(read_bytes(annotations), annotations), faults)
            provenance = _read_provenance(annotations.with_suffix(PROVENANCE_SUFFIX))
            body, placed, unit = locate(contents, mention_lines)
            mentions = place_mentions(mention_lines, placed, body, faults)
            if faults.found:
                raise faults.found[0]
            lines = [mention.fields["line"] for mention in mentions]
            starts = None if provenance is None else [start for start, _ in provenance]
            sentences = split_document(
                Document(body, mentions, name, sentence_starts=starts, mention_lines=lines), dialect, reading
            )
        except InputError as error:
            error.others = (*error.others, *(fault for fault in faults.found if fault is not error))
            error.locate(str(annotations))
            raise
        if not sentences:
            reading.notes["document without a token left out"] += 1
            return []
        kept = _with_lines(sentences, other_lines, reading, {} if unit == "characters" else {"unit": unit})
        if unit != "characters":
            reading.notes["document whose offsets count UTF-16 units, as the texts of its mentions tell"] += 1
        if not provenance:
            return kept
        of_sentences = (provenance[max(0, bisect_right(starts or [], s) - 1)][1] for s in _starts(kept, body))
        return [
            sentence if own is None else sentence.with_fields({**sentence.fields, "entaug": own})
            for sentence, own in zip(kept, of_sentences, strict=True)
        ]

    def to_document(self, sentence: Sentence) -> Document:
        document = join_sentences([without_foreign_fields(sentence)])
        mentions = [m._replace(spans=to_ranges(document.text, m.spans)) for m in document.mentions]
        return document._replace(mentions=mentions)

    def place(self, text: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Ranges that are separated only by white space are one, as for a mention over two lines."""
        merged: list[Span] = []
        for start, end in spans:
            if merged and not text[merged[-1][1] : start].strip():
                merged[-1] = merged[-1][0], end
            else:
                merged.append((start, end))
        return tuple(merged)

    def writes_id(self, sentence: Sentence) -> bool:
        return safe_file_name(sentence.id or "") == sentence.id

    def lost(self, sentence: Sentence, dialect: Any) -> list[str]:
        lost = super().lost(sentence, dialect)
        if lines_read(sentence) is None:
            if KEPT in sentence.fields:
                lost.append("ids of mentions and lines that refer to them, of a sentence that has changed")
            elif ENTITY_FIELDS in sentence.fields:
                lost.append("fields of mentions")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BratDialect) -> None:
        write_documents((document_files(g, n) for n, g in enumerate(group_documents(sentences), start=1)), path)
