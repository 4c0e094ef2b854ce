"""Conversion between documents of brat and sentences; sentences keep the lines that refer to them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.core.spacing import infer_spaces
from entaug.errors import InputError, LossError
from entaug.files.streams import decode_text, read_bytes
from entaug.formats.base import ENTITY_FIELDS, KEPT, ReadReport, before_of
from entaug.formats.brat.standoff import (
    BYTE_ORDER_MARK,
    Faults,
    OtherLine,
    convert_offsets,
    detect_offsets,
    format_mention,
    is_kept_verbatim,
    mentions_in_characters,
    parse_lines,
    parse_mention,
    parse_other,
    place_mentions,
    to_ranges,
    with_all_references,
)
from entaug.formats.documents import BEFORE, CHAR_RANGES, DOCUMENT, Document, group_by_document, join_sentences
from entaug.formats.offsets import counter
from entaug.formats.segmentation import SegmentationOptions, split_document

__all__ = [
    "PROVENANCE_SUFFIX",
    "document_files",
    "group_documents",
    "kept_fields",
    "provenance_file",
    "read_document",
    "without_foreign_fields",
]

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
