"""The standoff format of brat: a folder with a text ``NAME.txt`` and its annotations ``NAME.ann`` for each document.

Folders may hold folders; the id of a document is its path without the ending. Offsets count the characters of the
file, a byte-order mark and both characters of CRLF too, as brat does; where only another way of counting fits the
texts that the mentions say they have, that one is taken, and kept.

All lines stay with the sentences: mentions with id and line number, any other line (relations, events, attributes,
normalisations, notes, equivalences) with the first sentence that it speaks of. They are written back where their
sentences are as they were read, and all that a line refers to is there. So a document that nothing happened to comes
back to the byte, but for empty lines, a byte-order mark and mixed line ends in the ``.ann``, and for mentions without
their text or over a line end, which get the form that brat itself gives them.

Augmented sentences become documents of their own; ``NAME.entaug.json`` beside one says where its sentences begin and
how they came about. brat does not look at such a file.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

from entaug.data import Sentence
from entaug.errors import InputError, LossError, OutputError
from entaug.files.folders import is_safe_name, natural_sort_key, safe_file_name, walk_files
from entaug.files.streams import decode_text, read_bytes
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, Reading
from entaug.formats.brat.standoff import (
    MARK,
    Faults,
    Other,
    alive,
    as_bound,
    as_other,
    bound_line,
    lines_of,
    mentions_of,
    merged,
    ranges_of,
    seen_as,
    verbatim,
)
from entaug.formats.buffered import BufferedFormat
from entaug.formats.documents import BEFORE, DOCUMENT, RANGES, Cutting, Text, cut, documents, joined
from entaug.spacing import infer_spaces

__all__ = ["Brat", "BratDialect"]

KEPT = "_brat"
"""Field of a sentence: a digest of what was read (``of``), lines that are no mentions, how the files are laid out."""
_BESIDE = ".entaug.json"
_LOOKED_AT = 20_000  # files of a folder that are looked at to tell what it is
_NEW = float("inf")  # the line of what had none


@dataclass(frozen=True)
class BratDialect(Cutting):
    """How documents become sentences; see `entaug.formats.documents.Cutting`."""

    split: Literal["none", "lines", "sentences"] = "sentences"

    def describe(self) -> str:
        """One line for people."""
        how = {"none": "not cut", "lines": "cut at line ends", "sentences": "cut into sentences"}
        return f"brat standoff, tokens by the rules for {self.language!r}, texts {how[self.split]}"


class Brat(BufferedFormat):
    """The format; see `entaug.formats.base.BaseFormat` and `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "brat"
    title = "brat standoff"
    extensions = (".ann",)
    carries = FormatCapabilities(nested=True, discontinuous=True, columns=False, fields=False, spaces=True)
    folder = True

    def recognises(self, path: Path) -> bool:
        """Whether a folder holds a text with its annotations, or a file is one of the two."""
        try:
            if path.is_dir():
                files = (file for _, file in islice(walk_files(path), _LOOKED_AT) if file.suffix == ".ann")
                return any(file.with_suffix(".txt").is_file() for file in files)
            other = {".ann": ".txt", ".txt": ".ann"}.get(path.suffix)
            return other is not None and path.is_file() and path.with_suffix(other).is_file()
        except (InputError, OSError, ValueError):
            return False

    def dialect(self, **options: Any) -> BratDialect:
        """A dialect from options given by hand: language, split, misaligned."""
        known = {field.name for field in fields(BratDialect)}
        return BratDialect(**{name: value for name, value in options.items() if value is not None and name in known})

    def look(self, path: Path, **options: Any) -> BratDialect:
        """The dialect; nothing of it is found by looking."""
        del path
        return self.dialect(**options)

    def files(self, path: Path) -> list[Path]:
        """See `entaug.formats.buffered.BufferedFormat`."""
        annotations = [file for _, file in _pairs(path, Reading(on_fault=lambda _: None))]
        beside = [_beside(file) for file in annotations]
        return [*annotations, *(file.with_suffix(".txt") for file in annotations), *(b for b in beside if b.is_file())]

    def sentences(self, path: Path, dialect: BratDialect, reading: Reading) -> Iterator[Sentence]:
        """The sentences of all documents of a folder, or of one document, in the order of their names.

        Raises:
            InputError: a line that brat would not read, a mention whose text is not that of the document, a reference
                to what is not there, a half of a pair, no document, no sentence at all.
            MissingExtraError: spaCy is not installed.
        """
        seen: set[str | None] = set()
        faults: list[InputError] = []

        def told(error: InputError) -> None:
            faults.append(error)
            reading.fault(error)

        watched = Reading(reading.repair, told)
        watched.repaired, watched.notes = reading.repaired, reading.notes
        for name, file in _pairs(path, watched):
            for sentence in _document(name, file, dialect, watched):
                yield _named_apart(sentence, name, seen)
        if not seen and not faults:
            remedy = "give a folder with NAME.txt and NAME.ann for each document"
            raise InputError("no sentence in it", path=str(path), remedy=remedy)

    def replaceable(self, path: Path) -> bool:
        """Whether a folder, and those in it, hold pairs of text and annotations, and what we write beside, alone."""
        stems: dict[str, set[str]] = {}
        for folder, folders, names in os.walk(path):
            if any(Path(folder, one).is_symlink() for one in (*folders, *names)):
                return False
            if not (folders or names) or any(one.startswith(".") for one in folders):  # nothing that we ever write
                return False
            for name in names:
                ending = next((end for end in (_BESIDE, ".ann", ".txt") if name.endswith(end)), None)
                if ending is None or name.startswith("."):
                    return False
                stems.setdefault(os.path.join(folder, name.removesuffix(ending)), set()).add(ending)  # noqa: PTH118
        return all({".ann", ".txt"} <= endings for endings in stems.values())

    def carried(self, sentence: Sentence, dialect: BratDialect) -> Sentence:
        """The sentence with the tokens that will be found where it was written, cut where mentions ask for it."""
        text = joined([_prepared(sentence)])
        mentions = [m._replace(spans=ranges_of(text.text, m.spans), fields={}) for m in text.mentions]
        plain = Text(text.text, [m for m in mentions if m.spans], starts=(0,))
        found = cut(plain, replace(dialect, misaligned="cut"), Reading(repair=True))
        if not found:
            return sentence
        return sentence.with_(tokens=found[0].tokens, mentions=found[0].mentions, columns={}, spaces=found[0].spaces)

    def check(self, sentence: Sentence, dialect: BratDialect) -> None:
        """Raise where a sentence cannot be written.

        Raises:
            LossError: it is white space alone, or a mention is, or two are the same but for white space; a label holds
                white space; a character cannot be written as UTF-8.
        """
        del dialect
        who = f"sentence {sentence.key}"
        text = joined([_prepared(sentence)])
        if not text.text.strip():
            raise LossError(f"{who} is white space alone", remedy="leave it out")
        try:
            (text.text + "".join(m.label for m in sentence.mentions)).encode()
        except UnicodeEncodeError:
            raise LossError(f"{who} holds half a character (a surrogate)", remedy="mend it") from None
        seen = set()
        for mention in text.mentions:
            if mention.label.split() != [mention.label]:
                raise LossError(f"the label {mention.label!r} holds white space", remedy="rename it, or write jsonl")
            ranges = merged(text.text, ranges_of(text.text, mention.spans))
            if not ranges:
                raise LossError(f"a mention {mention.label} of {who} is white space alone", remedy="write jsonl")
            if (mention.label, ranges) in seen:
                what = f"two mentions {mention.label} of {who} differ by white space alone"
                raise LossError(what, remedy="write jsonl")
            seen.add((mention.label, ranges))

    def lost(self, sentence: Sentence, dialect: BratDialect) -> list[str]:
        """Columns, fields, tokens that spaCy would not make, lines of a text that has changed, odd ids."""
        ours = {BEFORE, DOCUMENT, ENTITY_FIELDS, KEPT, "entaug"}
        lost = [f"column {name!r}" for name in sentence.columns]
        lost += [f"field {name!r}" for name in sentence.fields if name not in ours]
        if _known(sentence) is None:
            if KEPT in sentence.fields:
                lost.append("ids of mentions and lines that refer to them, of a sentence that has changed")
            elif ENTITY_FIELDS in sentence.fields:
                lost.append("fields of mentions")
        if sentence.id is not None and DOCUMENT not in sentence.fields and safe_file_name(sentence.id) != sentence.id:
            lost.append("id")
        if self.carried(sentence, dialect).tokens != sentence.tokens:
            lost.append("tokens that are not spaCy's")
        return lost

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: BratDialect) -> None:
        """Write a folder: for each document its text and its annotations, and where it was augmented how.

        Raises:
            LossError: provenance that is no JSON.
            OutputError: two documents are in each other's way.
        """
        del dialect
        path.mkdir()
        taken: set[str] = set()
        for number, group in enumerate(_groups(sentences), start=1):
            wanted = name = safe_file_name(_name(group, number))
            copy = 1
            while name in taken:
                copy += 1
                name = f"{wanted}+{copy}"
            taken.add(name)
            for ending, content in _contents(group).items():
                file = path / f"{name}{ending}"
                try:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    with file.open("xb") as out:
                        out.write(content.encode(errors="replace"))
                except (FileExistsError, NotADirectoryError):
                    what = f"document {name!r} is in the way of another"
                    raise OutputError(what, path=str(path), remedy="rename one of them") from None


# --------------------------------------------------------------------------------------------------------------- files


def _pairs(path: Path, reading: Reading) -> Iterator[tuple[str, Path]]:
    """The documents: the name of each, and its ``.ann``."""
    if path.is_dir():
        files = {
            name: file
            for name, file in walk_files(path, lambda reason: reading.notes.update([reason]))
            if name.endswith((".ann", ".txt"))
        }
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
            what, remedy = f"no {text.name} beside it", "put the text there that it speaks of, or remove it"
            if text.is_symlink() or text.exists():
                what = f"the {text.name} beside it is no regular file, or a link out of the folder"
                remedy = "put a copy of the text there, or remove both"
            reading.fault(InputError(what, path=str(files[name]), remedy=remedy))
        elif not is_safe_name(stem):
            told = "a file name that is not UTF-8, or holds control characters"
            reading.fault(InputError(told, path=ascii(str(files[name])), remedy="rename it"))
        else:
            yield stem, files[name]


def _beside(ann: Path) -> Path:
    """The file that says how a document came about."""
    return ann.with_suffix(_BESIDE)


# ------------------------------------------------------------------------------------------------------------- reading


def _document(name: str, ann: Path, dialect: BratDialect, reading: Reading) -> list[Sentence]:
    """The sentences of a document; none where it has a fault that was handed on."""
    faults = Faults(ann, reading)
    txt = ann.with_suffix(".txt")
    try:
        written = decode_text(read_bytes(txt), txt)
        bounds, others, laid = lines_of(decode_text(read_bytes(ann), ann), faults)
        made = _provenance(_beside(ann))
        text, shift, also = seen_as(written, bounds)
        mentions = mentions_of(bounds, text, shift, faults)
        if faults.told:
            return []
        lines = [mention.fields["line"] for mention in mentions]
        starts = None if made is None else [start for start, _ in made]
        sentences = cut(Text(text, mentions, name, starts=starts, lines=lines), dialect, reading)
    except InputError as error:
        error.locate(str(ann))
        reading.fault(error)
        return []
    if not sentences:
        reading.notes["document without a token left out"] += 1
        return []
    kept = _with_lines(sentences, others, laid | also, reading)
    if not made:
        return kept
    places = _starts(kept, text)
    told = [made[max(0, bisect_right(starts or [], place) - 1)][1] for place in places]
    return [s if one is None else s.with_fields({**s.fields, "entaug": one}) for s, one in zip(kept, told, strict=True)]


def _provenance(path: Path) -> list[tuple[int, Any]] | None:
    """Where the sentences of an augmented document begin, and how they came about; None where nothing says so."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        told = [(one["start"], one["entaug"]) for one in json.loads(decode_text(read_bytes(path), path))["sentences"]]
    except (ValueError, TypeError, LookupError, RecursionError):
        told = [(-1, None)]
    starts = [start for start, _ in told]
    if not all(type(start) is int and start >= 0 for start in starts) or starts != sorted(starts):
        remedy = "remove it, or have it written anew"
        raise InputError("is not what entaug writes beside a document", path=str(path), remedy=remedy)
    return told


def _with_lines(
    sentences: Sequence[Sentence], others: Sequence[Other], laid: Mapping[str, Any], reading: Reading
) -> list[Sentence]:
    """The sentences with what is to be written back."""
    home: dict[str, int] = {}
    for i, sentence in enumerate(sentences):
        for extra in sentence.fields.get(ENTITY_FIELDS, ()):
            home |= dict.fromkeys([extra["id"], *(name for name, _ in extra.get("also", ()))], i)
    waiting = alive(others, home)
    if len(waiting) < len(others):
        reading.notes["line that refers to a mention that was left out, left out too"] += len(others) - len(waiting)
    lines: list[list[list[Any]]] = [[] for _ in sentences]
    before = None
    while len(waiting) != before:  # a line may refer to one that stands later
        before, left = len(waiting), []
        for other in waiting:
            places = [home[name] for name in other.refers if name in home]
            if places:
                home[other.id] = min(places)
                lines[min(places)].append([other.line, other.raw])
            else:
                left.append(other)
        waiting = left
    lines[0] += [[other.line, other.raw] for other in waiting]
    # Numbers are those of the lines that are left, so that they are the same when these are read again.
    extras = [sentence.fields.get(ENTITY_FIELDS, []) for sentence in sentences]
    used = {extra["line"] for own in extras for extra in own} | {n for own in lines for n, _ in own}
    used |= {n for own in extras for extra in own for _, n in extra.get("also", ())}
    rank = {n: i for i, n in enumerate(sorted(used), start=1)}
    kept = []
    for number, (sentence, said, own) in enumerate(zip(sentences, extras, lines, strict=True)):
        field: dict[str, Any] = {"of": _digest(sentence)}
        if own:
            field["lines"] = [[rank[n], raw] for n, raw in sorted(own)]
        if laid and not number:
            field["files"] = dict(laid)
        for extra in said:
            extra["line"] = rank[extra["line"]]
            if "also" in extra:
                extra["also"] = [[name, rank[n]] for name, n in extra["also"]]
        kept.append(sentence.with_fields({**sentence.fields, KEPT: field}))
    return kept


def _named_apart(sentence: Sentence, document: str, seen: set[str | None]) -> Sentence:
    """The sentence, by another id where it has that of another: texts ``a`` and ``a-1`` both have an ``a-1``."""
    name, number = sentence.id, 1
    while name in seen:
        number += 1
        name = f"{sentence.id}+{number}"
    seen.add(name)
    if number == 1:
        return sentence
    start = len(sentence.fields.get(BEFORE, ""))
    return sentence.with_(id=name, meta={DOCUMENT: [document, start], **sentence.meta})


# ------------------------------------------------------------------------------------------------------------- writing


def _digest(sentence: Sentence) -> str:
    spaces = "\0".join(sentence.spaces or ()).encode("utf-8", "surrogatepass")
    return blake2b(sentence.fingerprint() + spaces, digest_size=8).hexdigest()


def _known(sentence: Sentence) -> dict[str, Any] | None:
    """What was read with a sentence, where it is what it was then; the fields may be anybody's."""
    kept, extras = sentence.fields.get(KEPT), sentence.fields.get(ENTITY_FIELDS, [{}] * bool(sentence.mentions))
    if not isinstance(kept, dict) or sentence.spaces is None or kept.get("of") != _digest(sentence):
        return None
    size = len(sentence.text)
    try:
        for extra in extras:
            names = [(extra["id"], extra["line"]), *extra.get("also", ())]
            places = extra.get(RANGES, [])
            if not (
                all(as_bound(f"{name}\tX 0 1", 0) and type(line) is int for name, line in names)
                and all(type(a) is type(b) is int and 0 <= a < b <= size for a, b in places)
                and isinstance(extra.get("raw", ""), str)
            ):
                return None
    except (TypeError, ValueError, LookupError, AttributeError):
        return None
    return kept if len(extras) == len(sentence.mentions) else None


def _prepared(sentence: Sentence) -> Sentence:
    """The sentence with no more fields than are written; one that is as it was read belongs to its document again."""
    known, old = _known(sentence), sentence.fields
    meta: dict[str, Any] = {}
    if isinstance(before := old.get(BEFORE), str) and not before.strip():
        meta[BEFORE] = before
    match old.get(DOCUMENT):
        case [str(name), int(start)]:
            meta[DOCUMENT] = [name, start]
    if known is None:
        meta |= {"entaug": old["entaug"]} if "entaug" in old else {}
    else:
        meta |= {ENTITY_FIELDS: old[ENTITY_FIELDS]} if ENTITY_FIELDS in old else {}
        meta[KEPT] = {**known, "made": old.get("entaug")}
    return sentence.with_fields(meta)


def _groups(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences by document, in their order there."""
    for group in documents(map(_prepared, sentences)):
        places = [s.fields[DOCUMENT][1] for s in group if s.provenance is None and DOCUMENT in s.fields]
        if len(places) < len(group) or places == sorted(set(places)):
            yield group
        elif len(set(places)) == len(places):
            yield [sentence for _, sentence in sorted(zip(places, group, strict=True), key=lambda pair: pair[0])]
        else:  # two documents of one name
            cuts = [0, *(i for i, (a, b) in enumerate(pairwise(places), start=1) if b <= a), len(group)]
            yield from (group[a:b] for a, b in pairwise(cuts))


def _name(group: Sequence[Sentence], number: int) -> str:
    """What a document is called; an augmented one by its source, and what ids say of method, seed and copy."""
    first = group[0]
    name = joined(group[:1]).id
    if name is None:
        return f"{number:06d}"
    source, slash, made = (first.id or "").rpartition("/")
    if first.provenance is None:
        return name
    if name != first.id:
        return f"{name}+{made or 'made'}"
    return f"{source}+{made}" if slash else name


def _contents(group: Sequence[Sentence]) -> dict[str, str]:
    """The files of a document: ending, and content."""
    text = joined(group)
    kept = [sentence.fields.get(KEPT, {}) for sentence in group]
    laid = kept[0].get("files")
    laid = laid if isinstance(laid, dict) else {}
    found = [other for field in kept for n, raw in _numbered(field.get("lines")) if (other := as_other(raw, n))]
    lines, names = _bound_lines(text, int(laid.get("mark") == "counted"), found)
    others: dict[str, Other] = {}
    for other in found:
        if other.id not in names:
            others.setdefault(other.raw if other.id == "*" else other.id, other)
    lines += [(other.line, other.raw) for other in alive(list(others.values()), names)]
    lines.sort(key=lambda pair: pair[0])
    end = "\r\n" if laid.get("crlf") else "\n"
    files = {
        ".txt": MARK * ("mark" in laid) + (text.text.replace("\n", "\r\n") if "text crlf" in laid else text.text),
        ".ann": end.join(line for _, line in lines) + end * (bool(lines) and "open" not in laid),
    }
    made = [sentence.fields.get("entaug", field.get("made")) for sentence, field in zip(group, kept, strict=True)]
    if any(one is not None for one in made):
        told = [{"start": a, "entaug": one} for a, one in zip(_starts(group, text.text), made, strict=True)]
        try:
            files[_BESIDE] = json.dumps({"sentences": told}) + "\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise LossError(f"provenance of {group[0].key} cannot be written as JSON ({error})") from None
    return files


def _numbered(lines: object) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, whatever a field holds."""
    for pair in lines if isinstance(lines, list) else ():
        match pair:
            case [int(number), str(raw)] if "\n" not in raw:
                yield number, raw


def _starts(group: Sequence[Sentence], text: str) -> list[int]:
    """Where sentences begin in the text that they make."""
    place = len(group[0].fields.get(BEFORE, ""))
    starts = []
    for sentence in group:
        spaces = infer_spaces(sentence.tokens) if sentence.spaces is None else sentence.spaces
        own = "".join(token + space for token, space in zip(sentence.tokens, spaces, strict=True))
        place += not text.startswith(own, place)  # there is a line end between two that did not touch
        starts.append(place)
        place += len(own)
    return starts


def _bound_lines(text: Text, shift: int, others: Iterable[Other]) -> tuple[list[tuple[float, str]], set[str]]:
    """The lines of the mentions, each with its number (endless where it is new), and the ids that were kept."""
    wanted = []
    kept: set[str] = set()
    for mention in text.mentions:
        told = [(mention.fields["id"], mention.fields["line"])] if "id" in mention.fields else [("", _NEW)]
        for name, line in (*told, *mention.fields.get("also", ())):
            wanted.append(("" if name in kept else name, line, mention))
            kept |= {name} - {""}
    # A new id is none that a line speaks of: what it spoke of may be gone.
    spoken = kept.union(*(other.refers for other in others))
    free = max([int(name[1:]) for name in spoken if re.fullmatch("T[0-9]{1,15}", name)], default=0)
    lines = []
    for name, line, mention in wanted:
        free += not name
        ranges = ranges_of(text.text, mention.spans)
        written = bound_line(name or f"T{free}", mention.label, ranges, text.text, shift)
        raw = mention.fields.get("raw", "")
        lines.append((line, raw if raw and verbatim(raw, written, ranges, text.text, shift) else written))
    return lines, kept
