"""What the JSON formats of annotation tools share: records, texts whose tokens stand beside them, and what is refused.

Their offsets count characters (code points). The tokens of a text are written beside it as a list of strings, which
these tools keep or ignore, so that the same tokens are read again; without it the text is tokenised.
"""

from __future__ import annotations

import abc
import contextlib
import gc
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from entaug.data import Sentence, Span
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes, read_line_chunks
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, Reading, before_of
from entaug.formats.documents import BEFORE, RANGES, CharMention, Cutting, Text, cut, placed_tokens
from entaug.spacing import infer_spaces

__all__ = [
    "OTHER_TOKENS",
    "TextLines",
    "as_json",
    "beginnings",
    "char_mention",
    "elements",
    "entity_fields",
    "fields_of",
    "firsts_of_array",
    "is_augmented",
    "laid_out",
    "left_over",
    "name_of",
    "nothing_in_it",
    "number_or_name",
    "parsed",
    "record_in",
    "refuse_gaps",
    "tokens_beside",
    "without_place",
    "write_array",
    "written",
]

OTHER_TOKENS = "tokens that are not those of the text: tokenised anew"
"""Note of a record whose tokens are of another text."""
_LARGE = 1 << 20  # bytes
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_BETWEEN = frozenset(" \t\r\n,")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,17})")
_MOST = 1 << 24  # bytes to look at for the first record
_KINDS = {list: "array", str: "string", int: "number", float: "number", bool: "truth value", type(None): "null"}


# ------------------------------------------------------------------------------------------------------------- reading


def parsed(data: str | bytes, remedy: str = "mend the line", *, exact: bool = True) -> Any:
    """The value of a JSON text.

    Args:
        data: the text.
        remedy: what to do where it is no JSON.
        exact: whether numbers of more than 64 bits are to keep their last digits.

    Raises:
        InputError: it is no JSON, nested too deep, has too large a number, or holds nothing.
    """
    collects = gc.isenabled() and len(data) > _LARGE
    if collects:
        gc.disable()  # it would look for cycles again and again among what grows and has none
    try:
        value = orjson.loads(data)
        if exact:
            raw = data.encode() if isinstance(data, str) else data
            # orjson makes a float of a number of more than 64 bits, and loses its last digits.
            return json.loads(data) if _LONG_NUMBER in raw.translate(_DIGITS) else value
    except (RecursionError, ValueError) as error:
        if not data.strip():
            raise nothing_in_it() from None
        deep = isinstance(error, RecursionError) or "depth limit" in str(error)
        if deep or "infinity" in str(error) or not isinstance(error, json.JSONDecodeError):
            what = "nested too deep" if deep else "too large a number"
            raise InputError(f"not JSON that can be read ({what})", remedy="see whether it is the right file") from None
        raise InputError(f"not JSON ({error.msg.split(':')[0]})", remedy=remedy) from None
    finally:
        if collects:
            gc.enable()
    return value


def nothing_in_it() -> InputError:
    """What is said of a file that holds no sentence."""
    return InputError("no sentence in it", remedy="give a file with labelled sentences")


def record_in(value: Any) -> dict[str, Any]:
    """The value, which must be an object.

    Raises:
        InputError: it is none; an empty array is what an empty corpus is written as.
    """
    if type(value) is not dict:
        if value == [] and type(value) is list:
            raise nothing_in_it()
        raise InputError(f"a JSON {_KINDS[type(value)]} where an object is expected", remedy="mend the line")
    return value


def beginnings(path: Path, most: int = 20) -> list[Any]:
    """The values of the first lines of a file; no error, whatever is in it."""
    data = read_beginning(path)
    if b"\n" not in data.strip():
        data = read_beginning(path, _MOST)
    values = []
    for line in data.decode("utf-8-sig", "replace").split("\n")[:most]:
        if line.strip():
            try:
                values.append(parsed(line))
            except InputError:  # the last one may be cut off
                break
    return values


def firsts_of_array(path: Path, most: int = 100) -> Iterator[Any]:
    """The first values of a JSON array; none where the file is no array, or cannot be read. No error."""
    data = read_beginning(path)
    if not data.decode("utf-8-sig", "replace").lstrip().startswith("["):
        return
    decoder = json.JSONDecoder()
    for size in (0, _MOST):
        text = (read_beginning(path, size) if size else data).decode("utf-8-sig", "replace")
        place = text.index("[") + 1
        values: list[Any] = []
        with contextlib.suppress(ValueError, RecursionError):  # at the end of what was read, or of the array
            while len(values) < most:
                while text[place : place + 1] in _BETWEEN:
                    place += 1
                value, place = decoder.raw_decode(text, place)
                values.append(value)
        if values:
            yield from values
            return


def elements(path: Path) -> Iterator[Any]:
    """The values of a file that is one JSON array; one that is an object is that alone. Those taken are forgotten.

    Raises:
        InputError: it cannot be read, is not UTF-8, or no JSON.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"not UTF-8 (byte 0x{error.object[error.start]:02x})"
        remedy = "convert it first: iconv -f LATIN1 -t UTF-8"
        raise InputError(what, path=str(path), remedy=remedy) from None
    try:
        value = parsed(text, "see whether it is complete")
    except InputError as error:
        error.path = str(path)
        raise
    if type(value) is dict:
        value = [value]
    if type(value) is not list:
        raise InputError("no JSON array of objects", path=str(path), remedy="see whether it is the right file")
    value.reverse()
    while value:
        yield value.pop()


def write_array(path: Path, records: Iterable[str]) -> None:
    """Write records, each a JSON text, as one JSON array.

    Raises:
        OutputError: it cannot be written.
    """
    with atomic_file(path) as out:
        before = b"[\n"
        for record in records:
            out.write(before + record.encode())
            before = b",\n"
        out.write(b"\n]\n" if before == b",\n" else b"[]\n")


def name_of(record: Mapping[str, Any]) -> str | None:
    """The id of a record, where it is a string or a whole number; else it stays a field."""
    value = record.get("id")
    return value if type(value) is str else str(value) if type(value) is int else None


def number_or_name(name: str) -> int | str:
    """An id as tools that number their records have it."""
    return int(name) if _NUMBER.fullmatch(name) else name


def fields_of(record: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """What a record holds besides, an id that is none among it."""
    named = name_of(record) is not None
    return {key: value for key, value in record.items() if not (key in known or (key == "id" and named))}


def char_mention(label: Any, start: Any, end: Any, fields: Mapping[str, Any]) -> CharMention:
    """A mention by characters.

    Raises:
        InputError: the label is no string, or an offset no whole number.
    """
    if type(label) is not str or not label:
        raise InputError(f"a label must be a non-empty string, not {label!r:.80}", remedy="mend the line")
    if type(start) is not int or type(end) is not int:
        raise InputError(f"offsets must be whole numbers, not {start!r:.40} and {end!r:.40}", remedy="mend the line")
    return CharMention(label, ((start, end),), fields)


def tokens_beside(value: Any, text: str, reading: Reading) -> list[Span] | None:
    """Where the tokens stand that a field gives; None where it is no list of the tokens of the text."""
    if type(value) is not list or not value or set(map(type, value)) != {str} or "" in value:
        return None
    places = placed_tokens(value, text)
    if places is None:
        reading.notes[OTHER_TOKENS] += 1
    return places


# ------------------------------------------------------------------------------------------------------------- writing


def is_augmented(sentence: Sentence) -> bool:
    """Whether a sentence was made from another, so that what a tool said of that one is no longer true."""
    return sentence.provenance is not None


def laid_out(sentence: Sentence) -> tuple[str, list[Span]]:
    """The text of a sentence, spaced as in print where nothing is known, and where its tokens stand.

    Raises:
        LossError: the tokens could not be found again, since they begin or end with white space.
    """
    before = before_of(sentence)
    tokens = sentence.tokens
    spaces = infer_spaces(tokens) if sentence.spaces is None else sentence.spaces
    parts = [before] if before else []
    bounds = []
    place = len(before)
    plain = True
    for token, space in zip(tokens, spaces, strict=True):
        end = place + len(token)
        bounds.append((place, end))
        place = end + len(space)
        parts.append(token)
        if space:
            parts.append(space)
            plain = plain and space.isspace()
        plain = plain and not (token[0].isspace() or token[-1].isspace())
    text = "".join(parts)
    if not plain and placed_tokens(tokens, text) != bounds:
        raise LossError(
            f"sentence {sentence.key}: the white space in its tokens cannot be told from that between them in a text",
            remedy="write JSON lines or CoNLL",
        )
    return text, bounds


def refuse_gaps(sentence: Sentence, title: str) -> None:
    """Raise where a mention is discontinuous.

    Raises:
        LossError: one is.
    """
    for mention in sentence.mentions:
        if len(mention.spans) > 1:
            raise LossError(
                f"discontinuous mention ({mention.label} {list(mention.spans)}) has no single start and end, "
                f"and {title} has no others",
                remedy="write JSON lines or brat",
            )


def entity_fields(sentence: Sentence) -> Sequence[Mapping[str, Any]] | None:
    """What is said of each mention besides, where it is of these mentions."""
    said = sentence.fields.get(ENTITY_FIELDS)
    fits = type(said) is list and len(said) == len(sentence.mentions) and all(type(one) is dict for one in said)
    return said if fits else None


def left_over(sentence: Sentence, record: dict[str, Any], but: Collection[str] = ()) -> None:
    """Add the fields of a sentence to its record, where they do not stand in the way of others."""
    for key, value in sentence.fields.items():
        if key not in record and key not in but and key not in (BEFORE, ENTITY_FIELDS):
            record[key] = value


def as_json(value: Any, name: str) -> bytes:
    """The bytes of a JSON value.

    Args:
        value: it.
        name: what names the sentence, for the error.

    Raises:
        LossError: a part of it is no JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError:  # a number of more than 64 bits, or no JSON at all
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise LossError(f"sentence {name} cannot be written as JSON ({error})") from None


def written(record: Any, name: str) -> str:
    """What `as_json` gives, as text."""
    return as_json(record, name).decode()


def without_place(extra: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """The fields of a mention that may be written beside its label and place."""
    return {key: value for key, value in extra.items() if key not in taken and key != RANGES}


class TextLines(abc.ABC):
    """Base of the formats that have a text a line; see `entaug.formats.base.Format`.

    A text that is cut into several sentences is written as several.
    """

    name: str
    title: str
    extensions: tuple[str, ...] = (".jsonl", ".json", ".ndjson")
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=False, fields=True, spaces=True)

    @abc.abstractmethod
    def tells(self, record: dict[str, Any]) -> bool | None:
        """Whether a record is of this format; None where it may be."""

    @abc.abstractmethod
    def text_in(self, record: dict[str, Any], dialect: Any, reading: Reading) -> Text | None:
        """The text of a record, or None where it is left out, and counted.

        Raises:
            InputError: the record is faulty.
        """

    def recognises(self, path: Path) -> bool:
        """Whether the first lines are objects, and one of them of this format alone."""
        values = beginnings(path)
        for value in values:
            told = self.tells(value) if type(value) is dict else False
            if told is not None:
                return told
        return bool(values)

    def read(
        self, path: Path, dialect: Cutting, reading: Reading, start: int = 0, stop: int | None = None
    ) -> Iterator[Sentence]:
        """The sentences of a file, streamed.

        Raises:
            InputError: a line that is no JSON object, a field that is missing or of the wrong kind, a mention that
                does not fit, an id that was there before, no sentence at all.
        """
        seen: dict[str, int] = {}
        empty = True
        for first, lines in read_line_chunks(path, start, stop):
            for number, line in enumerate(lines, start=first):
                if not line or line.isspace():
                    continue
                try:
                    text = self.text_in(record_in(parsed(line)), dialect, reading)
                    sentences = () if text is None else cut(text, dialect, reading)
                    if text is not None and not sentences:
                        reading.notes["text of white space alone left out"] += 1
                    for sentence in sentences:
                        empty = False
                        reading.line = number
                        twice = sentence.id is not None and reading.repeats(sentence.id, number, seen)
                        yield sentence.with_(id=None) if twice else sentence
                except InputError as error:
                    empty = False
                    error.stands(str(path), number)
                    reading.fault(error)
        if empty and stop is None:
            left = "; ".join(f"{what}: {count}" for what, count in reading.notes.items())
            what = f"no sentence in it ({left})" if left else "no sentence in it"
            raise InputError(what, path=str(path), remedy="give a file with labelled sentences")

    def carried(self, sentence: Sentence, dialect: Any) -> Sentence:
        """The sentence itself: what it does not keep of tokens and mentions is refused."""
        del dialect
        return sentence
