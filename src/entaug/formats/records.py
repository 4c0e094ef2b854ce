"""Records of JSON formats: reading them one by one, locating their errors, and writing them.

A record is a line of a file, an element of a JSON array, a row of a table or a document of a binary file.
"""

from __future__ import annotations

import contextlib
import gc
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson

from entaug.core.data import Sentence
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import decode_text, extension_of, read_beginning, read_bytes, read_line_chunks
from entaug.formats.base import ReadReport

T = TypeVar("T")

TOKEN_NAMES = ("tokens", "words", "token", "word")
"""Names of fields of tokens."""

_LARGE = 1 << 20  # bytes
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_PEEK_SIZES = (1 << 16, 1 << 24)  # bytes; the second number is used if the first record is longer than the first
_SEPARATOR = re.compile(r"[ \t\r\n,]*")
_ARRAY_OF_RECORDS = re.compile(r"\[\s*[\[{\]]")
_FIRST_PART = re.compile(r'\{\s*("(?:[^"\\]|\\.)*")\s*:\s*\[\s*(?=[\[{])')
_OF_RECORDS = {
    *TOKEN_NAMES,
    *"tokenized_text sentence sentences paragraphs documents messages prompt completion".split(),
}
NO_CHOICE = ""
"""The part to read of a file with several, for formats that have no option for it."""
_TYPES = {list: "an array", dict: "an object", str: "a string", bool: "a truth value", type(None): "null"}


# ------------------------------------------------------------------------------------------------------------- reading


def read_records(
    path: Path | str | None,
    records: Iterable[tuple[int, T]],
    parse: Callable[[int, T], Iterable[Sentence]],
    reading: ReadReport,
    *,
    unit: str | None = "",
    is_whole: bool = True,
) -> Iterator[Sentence]:
    """Convert records to sentences, and locate the errors of each."""
    # An error ends its record; the next record is read if `reading` collects errors.
    lines_of_ids: dict[str, int] = {}
    is_empty = True
    for number, record in records:
        try:
            for sentence in parse(number, record):
                is_empty = False
                reading.line = 0 if unit is None else number
                if sentence.id is None or lines_of_ids.setdefault(sentence.id, number) == number:
                    yield sentence
                    continue
                if not reading.repair:
                    what = f"id {sentence.id!r} is that of line {lines_of_ids[sentence.id]} too"
                    remedy = "give each sentence an id of its own, or pass `repair=True` to drop this one"
                    raise InputError(what, remedy=remedy)  # noqa: TRY301
                reading.repaired["id of another sentence dropped"] += 1
                yield sentence.with_(id=None)
        except InputError as error:
            is_empty = False
            error.remedy = error.remedy or "correct it, or leave it out"
            error.locate(str(path or ""), number if unit == "" else None, f"{unit} {number}" if unit else "")
            reading.fault(error)
    if is_empty and is_whole:
        raise no_sentences(path, reading)


def no_sentences(path: Path | str | None = None, reading: ReadReport | None = None) -> InputError:
    """Create the error for a file without a sentence."""
    left_out = "; ".join(f"{what}: {count}" for what, count in reading.notes.items()) if reading else ""
    message = "no sentence in it" + (f" ({left_out})" if left_out else "")
    return InputError(message, path=str(path) if path else None, remedy="give a file with labelled sentences")


def numbered_lines(
    path: Path, start: int = 0, stop: int | None = None, notes: Counter[str] | None = None
) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers, counted from 1 at `start`; see `read_line_chunks`."""
    for first, lines in read_line_chunks(path, start, stop, notes):
        for number, line in enumerate(lines, start=first):
            if line and not line.isspace():
                yield number, line


def read_array(path: Path, *, exact: bool = True, split_name: str | None = NO_CHOICE) -> Iterator[tuple[int, Any]]:
    """Read the elements of a file that is one JSON array, or of a part of it: ``{"train": [...], "dev": [...]}``."""
    try:
        text = decode_text(read_bytes(path), path).removeprefix("\ufeff")
        value = parse_json(text, "check that the file is complete", exact=exact)
        if parts := _parts(value):
            value = _choose(parts, split_name)
        elif split_name:
            raise InputError(f"has no parts, and none of the name {split_name!r}")  # noqa: TRY301
        elif type(value) is dict:
            value = [value]
        if type(value) is not list:
            what = f"{json_type(value)} where an array of objects is expected"
            raise InputError(what, remedy="check that it is the right file")  # noqa: TRY301
    except InputError as error:
        error.path, error.line = str(path), None
        raise
    del text
    value.reverse()
    for number in range(1, len(value) + 1):
        yield number, value.pop()


def _parts(value: Any) -> dict[str, list[Any]]:
    """The lists of records of an object that has nothing but lists; empty if it is a record itself."""
    if type(value) is not dict or not set(map(type, value.values())) <= {list} or not _OF_RECORDS.isdisjoint(value):
        return {}
    return {name: part for name, part in value.items() if part and set(map(type, part)) <= {dict, list}}


def _choose(parts: Mapping[str, list[Any]], name: str | None) -> list[Any]:
    if not name and len(parts) == 1:
        return next(iter(parts.values()))
    if name is not None and name in parts:
        return parts[name]
    raise several_parts(parts, name)


def several_parts(names: Iterable[str], name: str | None = None) -> InputError:
    """Create the error for a file with several parts, of which `name` is none."""
    listed = list(names)
    what = f"holds no part {name!r}" if name else "holds several parts"
    if name == NO_CHOICE:
        return InputError(f"{what}: {', '.join(listed)}", remedy="give the one to read as a file or folder of its own")
    return InputError(f"{what}: {', '.join(listed)}", remedy=f"choose one, such as `split_name='{listed[0]}'`")


def peek_records(path: Path, limit: int = 100, sizes: Iterable[int] = _PEEK_SIZES) -> tuple[list[Any], bool]:
    """Read the first records of a JSON file, up to the first error; errors are not reported."""
    for size in sizes:
        text = read_beginning(path, size).decode("utf-8-sig", "replace").lstrip()
        is_array = _ARRAY_OF_RECORDS.match(text) is not None
        records = _decoded(text, int(is_array), limit)
        if records or text[:1] not in ("[", "{"):
            break
    if not is_array and len(records) == 1 and (parts := _parts(records[0])):
        return next(iter(parts.values()))[:limit], True
    if not records and (first := _FIRST_PART.match(text)):
        with contextlib.suppress(ValueError):  # an invalid name is reported when the file is read
            if json.loads(first[1]) not in _OF_RECORDS:
                return _decoded(text, first.end(), limit), True
    return records, is_array


def _decoded(text: str, offset: int, limit: int) -> list[Any]:
    """The JSON values from a place of a text on, separated by commas or white space, up to the first error."""
    decoder = json.JSONDecoder()
    values: list[Any] = []
    with contextlib.suppress(ValueError, RecursionError):  # the end of what was read, or of the array
        while len(values) < limit and (separator := _SEPARATOR.match(text, offset)):
            value, offset = decoder.raw_decode(text, separator.end())
            values.append(value)
    return values


def parse_json(data: str | bytes, remedy: str = "correct the line", *, exact: bool = True) -> Any:
    """Parse a JSON text."""
    pauses_gc = gc.isenabled() and len(data) > _LARGE
    if pauses_gc:
        gc.disable()  # the garbage collector would repeatedly traverse a growing tree without cycles
    try:
        value = orjson.loads(data)
        if exact:
            raw = data.encode() if isinstance(data, str) else data
            # orjson converts integers of more than 64 bits to floats.
            return json.loads(data) if _LONG_NUMBER in raw.translate(_DIGITS) else value
    except (RecursionError, ValueError) as error:
        if not data.strip():
            raise no_sentences() from None
        is_deep = isinstance(error, RecursionError) or "depth limit" in str(error)
        if is_deep or "infinity" in str(error) or not isinstance(error, json.JSONDecodeError):
            what = "nested too deep" if is_deep else "too large a number"
            raise InputError(f"not JSON that can be read ({what})", remedy="check that it is the right file") from None
        raise InputError(f"not JSON ({error.msg.split(':')[0]})", remedy=remedy) from None
    finally:
        if pauses_gc:
            gc.enable()
    return value


def json_type(value: object) -> str:
    """Return a description of the type of a JSON value, for example ``"an array"``."""
    return _TYPES.get(type(value), "a number")


def as_object(value: Any, remedy: str = "correct it") -> dict[str, Any]:
    """Check that a JSON value is an object."""
    if type(value) is not dict:
        if type(value) is list and not value:
            raise no_sentences()
        raise InputError(f"{json_type(value)} where an object is expected", remedy=remedy)
    return value


def as_objects(value: Any, name: str, remedy: str) -> list[dict[str, Any]]:
    """Check that a JSON value is an array of objects."""
    if type(value) is not list or not set(map(type, value)) <= {dict}:
        raise InputError(f"{name!r} is not a list of objects", remedy=remedy)
    return value


def given_records(
    path: Path, split_name: str | None = NO_CHOICE, notes: Counter[str] | None = None
) -> Iterator[tuple[int, Any]]:
    """The numbered records of a file: lines, not parsed yet, or the elements of an array."""
    return numbered_lines(path, notes=notes) if has_lines(path) else read_array(path, split_name=split_name)


def has_lines(path: Path) -> bool:
    """Whether each line is a record; otherwise a file is an array, or one record over several lines."""
    records, is_array = peek_records(path, 1)
    if is_array or not records:
        return not is_array
    first = read_beginning(path, _PEEK_SIZES[1]).decode("utf-8-sig", "replace").lstrip().partition("\n")[0]
    return bool(_decoded(first, 0, 1))


def read_given(
    path: Path,
    parse: Callable[[int, Any], Iterable[Sentence]],
    reading: ReadReport,
    split_name: str | None = NO_CHOICE,
    unit: str = "record",
) -> Iterator[Sentence]:
    """Read the records of a file of JSON lines, which are streamed, or of one JSON array."""

    def parse_given(number: int, given: Any) -> Iterable[Sentence]:
        return parse(number, parse_json(given) if type(given) is str else given)

    records = given_records(path, split_name, reading.notes)
    return read_records(path, records, parse_given, reading, unit="" if has_lines(path) else unit)


# ------------------------------------------------------------------------------------------------------------- writing


def to_json(value: Any, name: str) -> bytes:
    """Convert a value to JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer of more than 64 bits, or a value without a JSON form
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise LossError(f"sentence {name} cannot be written as JSON ({error})") from None


def write_array(
    path: Path, records: Iterable[bytes], *, start: bytes = b"[\n", end: bytes = b"\n]\n", separator: bytes = b",\n"
) -> None:
    """Write records to a file."""
    with atomic_file(path) as out:
        is_empty = True
        for record in records:
            out.write((start if is_empty else separator) + record)
            is_empty = False
        out.write(b"[]\n" if is_empty and start else end)


def are_lines(path: Path) -> bool:
    """Whether a file of this name has a record per line."""
    return path.name.lower().removesuffix(".gz").endswith((".jsonl", ".jsonlines", ".ndjson"))


def detect_array(path: Path, *, expected: bool | None = None) -> dict[str, Any]:
    """The option ``array`` of a file whose extension says something else, or what is expected otherwise."""
    if not extension_of(path):  # standard input: the output decides
        return {}
    is_array = not has_lines(path)
    return {"array": is_array} if is_array != (not are_lines(path) if expected is None else expected) else {}


def array_text(array: bool | None) -> str:
    """The option ``array`` in the description of a layout."""
    return "" if array is None else f", {'one JSON array' if array else 'JSON lines'}"


def write_objects(path: Path, records: Iterable[bytes], *, is_array: bool | None) -> None:
    """Write records as one array or as JSON lines; None: as the extension says."""
    if not are_lines(path) if is_array is None else is_array:
        write_array(path, records)
    else:
        write_array(path, records, start=b"", separator=b"\n", end=b"\n")
