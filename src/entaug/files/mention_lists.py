"""Lists of mentions: typed names of the user, from text, JSON lines, or a column of a table."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson

from entaug.config.params import Check
from entaug.errors import EntaugError, InputError, ParameterError, UnknownNameError
from entaug.files.streams import decode_text, extension_of, read_bytes, read_line_chunks

MAX_LENGTH = 300
"""The longest entry in characters: long names of chemicals pass, sentences and cells with descriptions do not."""

_JSON_SUFFIXES = (".jsonl", ".ndjson")
_TABLE_SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_TEXT_FIELDS = ("mention", "text")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WORD = re.compile(r"[^\W_]")
_SEPARATOR = ";"
_FORMS = "FILE=LABEL, FILE.jsonl, or FILE.csv:COLUMN=LABEL"


class ListEntry(NamedTuple):
    """An entry of a list before it is checked."""

    text: str
    label: str | None = None
    line: int | None = None


class MentionList:
    """Mentions by label."""

    # White space is normalised, equal entries of a label are kept once, and entries are sorted, so that neither their
    # order nor the format of the file has an effect.

    def __init__(
        self, name: str, entries: Iterable[str | ListEntry], label: str | None = None, source: str | None = None
    ) -> None:
        self.name = name
        self.source = source
        self.lines: dict[str, int | None] = {}
        self.skipped = 0
        distinct: dict[str, set[str]] = {}
        for entry in entries:
            text, own_label, line = _parts(entry, name)
            text = self._checked(text, line)
            if not _WORD.search(text):
                self.skipped += bool(text)
                continue
            of_label = own_label or label
            if of_label is None:
                remedy = f'write {name}=LABEL, or give each record a "label"'
                raise InputError("has no label", path=source or name, line=line, remedy=remedy)
            distinct.setdefault(of_label, set()).add(text)
            self.lines.setdefault(of_label, line if own_label else None)
        self.texts = {of_label: sorted(texts) for of_label, texts in sorted(distinct.items())}
        if not self.texts:
            remedy = "add mentions, one a line, or leave the list out"
            raise InputError("the list of mentions is empty", path=source or name, remedy=remedy)

    def _checked(self, text: str, line: int | None) -> str:
        """A text with plain spaces, if it can be a mention."""
        problem = None
        if len(text) > MAX_LENGTH:
            remedy = "remove it, or name the right column: a list has one name an entry"
            problem = f"an entry has {len(text):,} characters, which is no mention ({text[:40]!r}...)"
        elif _CONTROL.search(text):
            problem, remedy = f"an entry holds a control character ({text[:40]!r})", "remove it"
        if problem:
            raise InputError(problem, path=self.source or self.name, line=line, remedy=remedy)
        return " ".join(text.split())

    def __len__(self) -> int:
        """Return the number of entries."""
        return sum(map(len, self.texts.values()))

    def __repr__(self) -> str:
        return f"<MentionList {self.name} of {len(self)} entries for {', '.join(self.texts)}>"

    @cached_property
    def digest(self) -> str:
        """A digest of labels and entries."""
        digest = blake2b(digest_size=4)
        for label, texts in self.texts.items():
            digest.update("\0".join((label, *texts)).encode("utf-8", "surrogatepass") + b"\1")
        return digest.hexdigest()

    def check_labels(self, known: Iterable[str]) -> None:
        """Check that the corpus has the labels of this list."""
        labels = set(known)
        for label in self.texts:
            if label not in labels:
                error = UnknownNameError(f"label in {self.name}: the corpus has none that is called", label, labels)
                error.path, error.line = self.source, self.lines.get(label)
                raise error


def _parts(entry: object, name: str) -> ListEntry:
    if isinstance(entry, str):
        return ListEntry(entry)
    if not isinstance(entry, ListEntry):
        raise InputError(f"an entry must be a text, not {entry!r:.40}", path=name, remedy="give strings")
    return entry


# -------------------------------------------------------------------------------------------------------------- reading


def read_mention_list(specification: str) -> MentionList:
    """Read a list of mentions."""
    path, column, label = parse_specification(specification)
    try:
        stat = path.stat()
        version = (stat.st_mtime_ns, stat.st_size)
    except (OSError, ValueError):
        version = (0, 0)  # reading it tells what is wrong
    return _read(path, column, label, version)


@lru_cache(maxsize=32)
def _read(path: Path, column: str | None, label: str | None, version: tuple[int, int]) -> MentionList:
    """The list of a file; it is read once, unless the file changes."""
    del version
    name = path.name if column is None else f"{path.name}:{column}"
    try:
        text = decode_text(read_bytes(path), path).removeprefix("\ufeff")
    except ValueError as error:  # a NUL character in the path
        raise InputError(f"cannot be read ({error})", path=str(path), remedy="check the path") from None
    entries: Iterator[ListEntry]
    if extension_of(path) in _JSON_SUFFIXES:
        entries = _json_entries(text, path)
    elif column is not None:
        entries = _column(text, path, column)
    else:
        chunks = read_line_chunks(path)
        entries = (ListEntry(line, None, first + i) for first, lines in chunks for i, line in enumerate(lines))
    return MentionList(name, entries, label, str(path))


def parse_specification(specification: str) -> tuple[Path, str | None, str | None]:
    """Divide the specification of a list into its parts; names of files may hold the characters that separate these."""
    place, equals, label = specification.rpartition("=")
    if not equals or _exists(specification):
        place, label = specification, ""
    path, column = Path(place), None
    front, colon, back = place.rpartition(":")
    if colon and front and not _exists(path) and not back.startswith(("/", "\\")):
        path, column = Path(front), back
    label, suffix = label.strip(), extension_of(path)
    shown = f"{path.name}:{column}" if column else path.name
    if not str(place).strip():
        raise _error(specification, "names no file", f"write {_FORMS}")
    if suffix in _TABLE_SUFFIXES and not column:
        remedy = f"name the column with the mentions: {path.name}:name={label or 'LABEL'}"
        raise _error(specification, "is a table", remedy)
    if suffix in _JSON_SUFFIXES and column:
        remedy = f'give each record a "mention" and a "label", and write {path.name}'
        raise _error(specification, "is JSON lines, which has no columns", remedy)
    if suffix not in _JSON_SUFFIXES and not label:
        raise _error(specification, "says no label", f"write {shown}=LABEL")
    return path, column, label or None


def _error(specification: str, problem: str, remedy: str) -> ParameterError:
    return ParameterError(f"mentions: {specification!r} {problem}", parameter="mentions", remedy=remedy)


def _json_entries(text: str, path: Path) -> Iterator[ListEntry]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            remedy = 'write {"mention": "...", "label": "..."} in each line'
            raise InputError(f"no JSON ({error})", path=str(path), line=number, remedy=remedy) from None
        known = [record[name] for name in _TEXT_FIELDS if name in record] if isinstance(record, dict) else []
        label = record.get("label") if known else None
        if not known or not isinstance(known[0], str) or not (label is None or (isinstance(label, str) and label)):
            remedy = 'write {"mention": "...", "label": "..."}'
            raise InputError(
                "a record needs a mention and a label, as texts", path=str(path), line=number, remedy=remedy
            )
        yield ListEntry(known[0], label, number)


def _column(text: str, path: Path, column: str) -> Iterator[ListEntry]:
    first = text.split("\n", 1)[0]
    delimiter = _TABLE_SUFFIXES.get(extension_of(path), "\t" if "\t" in first else ",")
    if delimiter not in first:  # semicolons where the comma is the decimal mark; tabs under the name .csv
        delimiter = next((mark for mark in ";\t," if mark in first), delimiter)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        index: int | None = int(column) - 1 if column.isdecimal() else None
        header = index is None
        for row in rows:
            if index is None:
                names = [name.strip() for name in row]
                if column not in names:
                    unknown = UnknownNameError("column", column, names)
                    raise InputError(unknown.message, path=str(path), line=1, remedy=unknown.remedy)
                index = names.index(column)
            elif 0 <= index < len(row):
                yield ListEntry(row[index], None, rows.line_num)
            elif row:
                remedy = "correct the line, or name another column"
                message = f"has {len(row)} columns, so none {'named' if header else 'with the number'} {column}"
                raise InputError(message, path=str(path), line=rows.line_num, remedy=remedy)
    except csv.Error as error:
        remedy = "correct the line, for example its quotes"
        raise InputError(f"no table ({error})", path=str(path), line=rows.line_num, remedy=remedy) from None


# ----------------------------------------------------------------------------------------------------- as a parameter


def mention_lists(value: object) -> list[MentionList]:
    """The lists that a parameter gives."""
    if value is None:
        return []
    if isinstance(value, MentionList):
        return [value]
    if isinstance(value, str):
        return [read_mention_list(part.strip()) for part in _split(value)]
    if isinstance(value, Mapping):
        entries = [ListEntry(text, str(label)) for label, texts in value.items() for text in _texts(texts)]
        return [MentionList("mentions", entries)]
    if isinstance(value, Sequence):
        return [one for item in value for one in mention_lists(item)]
    raise ParameterError(f"mentions must be {_EXPECTED}, not {value!r:.60}", parameter="mentions")


def _exists(place: str | Path) -> bool:
    """Whether there is such a file; several in one text may be too long for the name of one."""
    with contextlib.suppress(OSError):
        return Path(place).exists()
    return False


def _split(value: str) -> list[str]:
    return [value] if _SEPARATOR not in value or _exists(value) else value.split(_SEPARATOR)


def _texts(texts: object) -> Sequence[str]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        message = f"the mentions of a label must be a list of strings, not {texts!r:.60}"
        raise ParameterError(message, parameter="mentions")
    return [_parts(text, "mentions").text for text in texts]


def describe_mention_lists(value: object) -> str | None:
    """The lists of a parameter by name and content, without the place of their files."""
    lists = mention_lists(value)
    return "+".join(f"{one.name}@{one.digest}" for one in lists) if lists else None


def relative_to_folder(value: object, folder: Path) -> object:
    """The lists of a parameter with paths relative to a folder, as plans have them."""
    if isinstance(value, str):
        parts = [value] if _exists(folder / value) else value.split(_SEPARATOR)
        return [str(folder / Path(part.strip()).expanduser()) for part in parts]
    if isinstance(value, list | tuple):
        lists = [relative_to_folder(one, folder) for one in value]
        return [item for part in lists for item in (part if isinstance(part, list) else [part])]
    return value


def _are_readable(value: object) -> bool:
    try:
        mention_lists(value)
    except ParameterError:
        raise
    except EntaugError as error:  # a plan looks for the parameter that an error is about
        raise ParameterError(str(error), parameter="mentions") from None
    return True


_EXPECTED = f"{_FORMS} (several in a list), a MentionList, or a dictionary of lists by label"
MentionLists = Annotated[
    str | MentionList | Sequence[Any] | Mapping[str, Any], Check(_are_readable, f"{_FORMS}; may be repeated")
]
"""A parameter of `mention_lists`."""
