"""The standoff format of brat: a folder with a text ``NAME.txt`` and its annotations ``NAME.ann`` for each document.

Folders may be nested; the id of a document is its path without the extension. Offsets count the characters of the file,
including a byte-order mark and both characters of CRLF, as in brat. If another way of counting, such as UTF-16 units,
matches the texts of more mentions, it is used for reading and writing.

All lines are kept with the sentences: mentions with id and line number, other lines (relations, events, attributes,
normalisations, notes, equivalences) with the first sentence that they refer to. They are written back unchanged if
their sentences are unchanged and everything that they refer to is present. An unchanged document is therefore written
back byte for byte, except for empty lines, a byte-order mark and mixed line ends in the ``.ann``, and for mentions
without text or across line ends, which are written as brat writes them.

Each augmented sentence becomes a separate document; the file ``NAME.entaug.json`` holds its sentence offsets and
provenance. brat ignores this file.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from entaug.core.data import Sentence
from entaug.core.mentions import Span
from entaug.core.spacing import infer_spaces
from entaug.errors import InputError, LossError
from entaug.files.folders import (
    holds_document,
    holds_only,
    is_safe_name,
    natural_sort_key,
    safe_file_name,
    walk_files,
    write_documents,
)
from entaug.files.streams import decode_text, read_bytes
from entaug.formats.base import ENTITY_FIELDS, KEPT, FormatCapabilities, ReadReport, before_of
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import read_records
from entaug.formats.text import (
    BEFORE,
    CHAR_RANGES,
    DOCUMENT,
    CharMention,
    Document,
    SegmentationOptions,
    characters_of,
    counter,
    group_by_document,
    join_sentences,
    retokenized,
    split_document,
)
from entaug.formats.text_records import HALF_CHARACTER, check_characters_of, check_mentions

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


PROVENANCE_SUFFIX = ".entaug.json"
"""Extension of the file with the provenance of a document."""
_NEW_LINE = float("inf")  # the line number of new lines


def provenance_file(annotations: Path) -> Path:
    """Return the path of the file with the provenance of a document."""
    return annotations.with_suffix(PROVENANCE_SUFFIX)


# ------------------------------------------------------------------------------------------------------------- reading


def read_document(name: str, annotations: Path, dialect: SegmentationOptions, reading: ReadReport) -> list[Sentence]:
    """Read the sentences of a document."""
    faults = Faults(annotations, reading)
    text_file = annotations.with_suffix(".txt")
    try:
        contents = decode_text(read_bytes(text_file), text_file)
        mention_lines, other_lines, layout = parse_lines(decode_text(read_bytes(annotations), annotations), faults)
        provenance = _read_provenance(provenance_file(annotations))
        text, shift, text_layout = detect_offsets(contents, mention_lines)
        if "offsets" in text_layout:
            mention_lines = mentions_in_characters(mention_lines, text, shift)
            reading.notes["document whose offsets count UTF-16 units, as the texts of its mentions tell"] += 1
        mentions = place_mentions(mention_lines, text, shift, faults)
        faults.raise_any()
        lines = [mention.fields["line"] for mention in mentions]
        starts = None if provenance is None else [start for start, _ in provenance]
        sentences = split_document(
            Document(text, mentions, name, sentence_starts=starts, mention_lines=lines), dialect, reading
        )
    except InputError as error:
        error.others = (*error.others, *(fault for fault in faults.found if fault is not error))
        error.locate(str(annotations))
        raise
    if not sentences:
        reading.notes["document without a token left out"] += 1
        return []
    kept = _with_lines(sentences, other_lines, layout | text_layout, reading)
    if not provenance:
        return kept
    of_sentences = (provenance[max(0, bisect_right(starts or [], s) - 1)][1] for s in _starts(kept, text))
    return [
        sentence if own is None else sentence.with_fields({**sentence.fields, "entaug": own})
        for sentence, own in zip(kept, of_sentences, strict=True)
    ]


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
    sentences: Sequence[Sentence], others: Sequence[OtherLine], layout: Mapping[str, Any], reading: ReadReport
) -> list[Sentence]:
    """Add to each sentence the lines that are written back with it."""
    extras = [sentence.fields.get(ENTITY_FIELDS, []) for sentence in sentences]
    sentence_of = {name: i for i, own in enumerate(extras) for extra in own for name, _ in _names(extra)}
    waiting = with_all_references(others, sentence_of)
    if len(waiting) < len(others):
        reading.notes["line that refers to a mention that was left out, left out too"] += len(others) - len(waiting)
    lines: list[list[tuple[int, str]]] = [[] for _ in sentences]
    n = -1
    while len(waiting) != n:  # a line may refer to a later one
        n, unplaced = len(waiting), []
        for other in waiting:
            homes = [sentence_of[name] for name in other.references if name in sentence_of]
            if homes:
                sentence_of[other.id] = min(homes)
                lines[min(homes)].append((other.line, other.raw))
            else:
                unplaced.append(other)
        waiting = unplaced
    lines[0] += [(other.line, other.raw) for other in waiting]
    # Lines are renumbered without the skipped ones, so that they have the same numbers when read again.
    used = {line for own in extras for extra in own for _, line in _names(extra)} | {n for n, _ in chain(*lines)}
    rank = {line: i for i, line in enumerate(sorted(used), start=1)}
    kept = []
    for i, (sentence, own_extras, own_lines) in enumerate(zip(sentences, extras, lines, strict=True)):
        field: dict[str, Any] = {"of": _digest(sentence)}
        if own_lines:
            field["lines"] = [[rank[line], raw] for line, raw in sorted(own_lines)]
        if layout and not i:
            field["files"] = dict(layout)
        for extra in own_extras:
            extra["line"] = rank[extra["line"]]
            if "also" in extra:
                extra["also"] = [[name, rank[line]] for name, line in extra["also"]]
        kept.append(sentence.with_fields({**sentence.fields, KEPT: field}))
    return kept


def _names(extra: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the ids of a mention and its duplicates, each with its line."""
    return [(extra["id"], extra["line"]), *extra.get("also", ())]


# ------------------------------------------------------------------------------------------------------------- writing


def _digest(sentence: Sentence) -> str:
    spaces = "\0".join(sentence.spaces or ()).encode("utf-8", "surrogatepass")
    return blake2b(sentence.fingerprint() + spaces, digest_size=8).hexdigest()


def kept_fields(sentence: Sentence) -> dict[str, Any] | None:
    """Return the lines and layout that were read with a sentence, if it is unchanged."""
    kept, extras = sentence.fields.get(KEPT), sentence.fields.get(ENTITY_FIELDS, [{}] * bool(sentence.mentions))
    if not isinstance(kept, dict) or sentence.spaces is None or kept.get("of") != _digest(sentence):
        return None
    size = len(sentence.text)
    try:
        for extra in extras:
            names, ranges, raw = _names(extra), extra.get(CHAR_RANGES, []), extra.get("raw", "")
            has_names = all(parse_mention(f"{name}\tX 0 1", 0) and type(line) is int for name, line in names)
            has_ranges = all(type(a) is type(b) is int and 0 <= a < b <= size for a, b in ranges)
            if not (has_names and has_ranges and isinstance(raw, str)):
                return None
    except (TypeError, ValueError, LookupError, AttributeError):
        return None
    return kept if len(extras) == len(sentence.mentions) else None


def without_foreign_fields(sentence: Sentence) -> Sentence:
    """Keep the fields of a sentence that are written; one that is unchanged belongs to its document again."""
    kept, old = kept_fields(sentence), sentence.fields
    fields: dict[str, Any] = {}
    if before := before_of(sentence):
        fields[BEFORE] = before
    match old.get(DOCUMENT):
        case [str(name), int(start)]:
            fields[DOCUMENT] = [name, start]
    if kept is not None:
        fields[KEPT] = {**kept, "made": old.get("entaug")}
    name = "entaug" if kept is None else ENTITY_FIELDS
    return sentence.with_fields({**fields, name: old[name]} if name in old else fields)


def group_documents(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Group sentences by document, in their order there."""
    for group in group_by_document(map(without_foreign_fields, sentences)):
        starts = [s.fields[DOCUMENT][1] for s in group if s.provenance is None and DOCUMENT in s.fields]
        if len(starts) < len(group) or starts == sorted(set(starts)):
            yield group
        elif len(set(starts)) == len(starts):
            yield [sentence for _, sentence in sorted(zip(starts, group, strict=True), key=lambda pair: pair[0])]
        else:  # two documents of one name
            bounds = [0, *(i for i, (a, b) in enumerate(pairwise(starts), start=1) if b <= a), len(group)]
            yield from (group[a:b] for a, b in pairwise(bounds))


def document_files(group: Sequence[Sentence], number: int) -> tuple[str, dict[str, str]]:
    """Create the contents of the files of a document."""
    text = join_sentences(group)
    kept = [sentence.fields.get(KEPT, {}) for sentence in group]
    layout = kept[0].get("files")
    layout = layout if isinstance(layout, dict) else {}
    others = [other for field in kept for line, raw in _kept_lines(field) if (other := parse_other(raw, line))]
    shift = int(layout.get("mark") == "counted")
    lines, names = _mention_lines(text, shift, others)
    if layout.get("offsets") == "utf16":
        count = counter(text.text, "utf16")
        lines = [(number, _in_units(raw, lambda offset: count(offset - shift) + shift)) for number, raw in lines]
    unique: dict[str, OtherLine] = {}
    for other in others:
        if other.id not in names:
            unique.setdefault(other.raw if other.id == "*" else other.id, other)
    lines += [(other.line, other.raw) for other in with_all_references(list(unique.values()), names)]
    lines.sort(key=lambda pair: pair[0])
    end = "\r\n" if layout.get("crlf") else "\n"
    body = text.text.replace("\n", "\r\n") if "text crlf" in layout else text.text
    files = {
        ".txt": BYTE_ORDER_MARK * ("mark" in layout) + body,
        ".ann": end.join(line for _, line in lines) + end * (bool(lines) and "open" not in layout),
    }
    provenance = [sentence.fields.get("entaug", field.get("made")) for sentence, field in zip(group, kept, strict=True)]
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


def _kept_lines(field: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the kept lines with their numbers; invalid values of the field are ignored."""
    lines = field.get("lines")
    for pair in lines if isinstance(lines, list) else ():
        match pair:
            case [int(number), str(raw)] if "\n" not in raw:
                yield number, raw


def _starts(group: Sequence[Sentence], text: str) -> list[int]:
    """Return the offsets of sentences in their text."""
    offset = len(before_of(group[0]))
    starts = []
    for sentence in group:
        spaces = infer_spaces(sentence.tokens) if sentence.spaces is None else sentence.spaces
        own = "".join(token + space for token, space in zip(sentence.tokens, spaces, strict=True))
        offset += not text.startswith(own, offset)  # a line end separates sentences that were not adjacent
        starts.append(offset)
        offset += len(own)
    return starts


def _in_units(line: str, count: Callable[[int], int]) -> str:
    mention = parse_mention(line, 0)
    return line if mention is None else convert_offsets(mention, count).raw


def _mention_lines(text: Document, shift: int, others: Iterable[OtherLine]) -> tuple[list[tuple[float, str]], set[str]]:
    """Return the lines of the mentions, each with its number, and the ids that were kept."""
    wanted = []
    kept: set[str] = set()
    for mention in text.mentions:
        for name, line in _names(mention.fields) if "id" in mention.fields else [("", _NEW_LINE)]:
            wanted.append(("" if name in kept else name, line, mention))
            kept |= {name} - {""}
    # New ids must differ from all ids that lines refer to, because such a mention may have been removed.
    taken = kept.union(*(other.references for other in others))
    last_id = max([int(name[1:]) for name in taken if re.fullmatch("T[0-9]{1,15}", name)], default=0)
    lines = []
    for name, line, mention in wanted:
        last_id += not name
        ranges = to_ranges(text.text, mention.spans)
        formatted = format_mention(name or f"T{last_id}", mention.label, ranges, text.text, shift)
        raw = mention.fields.get("raw", "")
        is_verbatim = raw and is_kept_verbatim(raw, formatted, ranges, text.text, shift)
        lines.append((line, raw if is_verbatim else formatted))
    return lines, kept


@dataclass(frozen=True)
class BratDialect(SegmentationOptions):
    """Options of splitting documents into sentences; see `entaug.formats.text.SegmentationOptions`."""

    split: Literal["none", "lines", "sentences"] = "sentences"

    def describe(self) -> str:
        """Return a description of the layout."""
        how = {"none": "not cut", "lines": "cut at line ends", "sentences": "cut into sentences"}
        return f"brat standoff, tokens by the rules for {self.language!r}, texts {how[self.split]}"


class Brat(BufferedFormat):
    """The format of brat; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "brat"
    title = "brat standoff"
    extensions = (".ann",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=True)
    folder = True
    dialect_class = BratDialect
    names_documents = True

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: a text with its annotations, or a folder that holds one."""
        annotations = path.with_suffix(".ann") if path.suffix == ".txt" else path
        return holds_document(annotations, ".ann", lambda file: file.with_suffix(".txt").is_file())

    def files(self, path: Path) -> list[Path]:
        """See `entaug.formats.buffered.BufferedFormat.files`."""
        annotations = [file for _, file in _pairs(path, ReadReport()) if isinstance(file, Path)]
        provenance = (provenance_file(file) for file in annotations)
        texts = (file.with_suffix(".txt") for file in annotations)
        return [*annotations, *texts, *(file for file in provenance if file.is_file())]

    def sentences(self, path: Path, dialect: BratDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat.sentences`; documents are in the order of their names."""
        seen: set[str | None] = set()

        def parse(_number: int, pair: tuple[str, Path | InputError]) -> Iterator[Sentence]:
            name, annotations = pair
            if isinstance(annotations, InputError):
                raise annotations
            for sentence in read_document(name, annotations, dialect, reading):
                yield _with_unique_id(sentence, name, seen)

        return read_records(path, enumerate(_pairs(path, reading)), parse, reading, unit=None)

    def replaceable(self, path: Path) -> bool:
        """See `entaug.formats.buffered.BufferedFormat.replaceable`: pairs of files, and what is written beside them."""
        return holds_only(path, (PROVENANCE_SUFFIX, ".ann", ".txt"), {".ann", ".txt"})

    def as_stored(self, sentence: Sentence, dialect: BratDialect) -> Sentence:
        """See `entaug.formats.base.BaseFormat.as_stored`: tokenized again, and split at the boundaries of mentions."""
        text = join_sentences([without_foreign_fields(sentence)])
        mentions = [m._replace(spans=to_ranges(text.text, m.spans), fields={}) for m in text.mentions]
        read = retokenized(Document(text.text, [m for m in mentions if m.spans]), dialect)
        return sentence if read is None else read.with_(id=sentence.id).with_fields(sentence.fields)

    def check(self, sentence: Sentence, dialect: BratDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`: rejects texts and mentions that brat cannot read."""
        del dialect
        document = join_sentences([without_foreign_fields(sentence)])
        held = document.text + "".join(mention.label for mention in sentence.mentions)
        check_characters_of(sentence, held, HALF_CHARACTER)
        for mention in sentence.mentions:
            if mention.label.split() != [mention.label]:
                raise LossError(f"the label {mention.label!r} holds white space", remedy="rename it, or write jsonl")
        check_mentions(sentence, document, lambda text, spans: merge_ranges(text, to_ranges(text, spans)))

    def lost(self, sentence: Sentence, dialect: BratDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`; also lines of changed sentences, ids, and tokens."""
        written = {BEFORE, DOCUMENT, ENTITY_FIELDS, KEPT, "entaug"}
        lost = [f"column {name!r}" for name in sentence.columns]
        lost += [f"field {name!r}" for name in sentence.fields if name not in written]
        if kept_fields(sentence) is None:
            if KEPT in sentence.fields:
                lost.append("ids of mentions and lines that refer to them, of a sentence that has changed")
            elif ENTITY_FIELDS in sentence.fields:
                lost.append("fields of mentions")
        if sentence.id is not None and DOCUMENT not in sentence.fields and safe_file_name(sentence.id) != sentence.id:
            lost.append("id")
        if self.as_stored(sentence, dialect).tokens != sentence.tokens:
            lost.append("tokens that are not spaCy's")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BratDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.write`."""
        del dialect
        write_documents((document_files(g, n) for n, g in enumerate(group_documents(sentences), start=1)), path)


def _pairs(path: Path, reading: ReadReport) -> Iterator[tuple[str, Path | InputError]]:
    """Yield the name of each document with its ``.ann``, or with the error if a file of the pair is missing."""
    if path.is_dir():
        walked = walk_files(path, lambda reason: reading.notes.update([reason]))
        files = {name: file for name, file in walked if name.endswith((".ann", ".txt"))}
    elif path.suffix in (".ann", ".txt"):
        files = {file.name: file for file in (path.with_suffix(end) for end in (".ann", ".txt")) if file.is_file()}
        if path.with_suffix(".ann").name not in files:
            raise InputError("no .ann file beside it", path=str(path), remedy="name a pair, or a folder")
    else:
        raise InputError("is no .ann and no .txt file", path=str(path), remedy="name one, or a folder of both")
    for name in sorted(files, key=lambda name: natural_sort_key(name[:-4])):
        stem, ending = name[:-4], name[-4:]
        if ending == ".txt":
            if f"{stem}.ann" not in files:
                reading.notes["text without annotations (.txt without .ann) left out"] += 1
        elif f"{stem}.txt" not in files:
            text = files[name].with_suffix(".txt")
            what, remedy = f"no {text.name} beside it", "put the text there that it refers to, or remove it"
            if text.is_symlink() or text.exists():
                what = f"the {text.name} beside it is no regular file, or a link out of the folder"
                remedy = "put a copy of the text there, or remove both"
            yield stem, InputError(what, path=str(files[name]), remedy=remedy)
        elif not is_safe_name(stem):
            what = "a file name that is not UTF-8, or holds control characters"
            yield stem, InputError(what, path=ascii(str(files[name])), remedy="rename it")
        else:
            yield stem, files[name]


def _with_unique_id(sentence: Sentence, document: str, seen: set[str | None]) -> Sentence:
    """Return the sentence with a new id if its id is in use: texts ``a`` and ``a-1`` may both have an ``a-1``."""
    id_, number = sentence.id, 1
    while id_ in seen:
        number += 1
        id_ = f"{sentence.id}+{number}"
    seen.add(id_)
    if number == 1:
        return sentence
    start = len(sentence.fields.get(BEFORE, ""))
    return sentence.with_(id=id_).with_fields({DOCUMENT: [document, start], **sentence.fields})
