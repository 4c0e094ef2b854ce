"""The bytes of spaCy's DocBin as sentences.

They are packed tables: a row of numbers for each word, and a list of the strings that the numbers stand for. They are
read as such: documents of spaCy would take ten times as long, and damaged ones would not be safe to make.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError, MissingExtraError
from entaug.files.streams import read_bytes
from entaug.formats.base import ENTITY_FIELDS, Reading, are_columns
from entaug.formats.documents import BEFORE
from entaug.formats.spacy.documents import (
    COLUMNS,
    Tokens,
    columns_of,
    tokens_of,
)

__all__ = ["COLUMN_ATTRS", "KEPT", "NO_GROUPS", "OTHERS", "OURS", "SIGNED", "Bin", "are_cats", "plain", "spacy_there"]

_MOST = 1 << 31  # bytes at most, unpacked
_SPAN = struct.Struct(">QQQllll")  # id, kb_id, label, first token, one past the last, and the same by characters
NO_GROUPS = b"\x90"
COLUMN_ATTRS = dict(zip(COLUMNS, ("TAG", "POS", "MORPH", "LEMMA", "DEP", "HEAD", "SENT_START"), strict=True))
KEPT = "_space_tokens"  # in user_data: the places of tokens that are white space
OTHERS = "_user_data"  # field: what user_data holds under keys that are no strings
OURS = frozenset(("id", "columns", KEPT))
SIGNED = ("head", "sent_start")
_DAMAGED = "is no DocBin, or a damaged one"
_REMEDY = "write it anew with spaCy: DocBin(docs=docs).to_disk(path)"


def spacy_there() -> Any:
    """spaCy, where it is installed."""
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError(error.name or "spacy", "spacy") from None
    return spacy


# ------------------------------------------------------------------------------------------------------------- reading


class Bin:
    """A DocBin as it lies on the disk.

    Raises:
        InputError: it is damaged.
    """

    def __init__(self, path: Path) -> None:
        spacy_there()
        import numpy as np
        from spacy.attrs import IDS
        from spacy.parts_of_speech import NAMES
        from spacy.strings import StringStore

        self._pos = NAMES
        try:
            message = _unpacked(_inflated(read_bytes(path), path))
            attrs = [int(attr) for attr in message["attrs"]]
            lengths = np.frombuffer(message["lengths"], dtype="int32").tolist()
            self._tokens = np.frombuffer(message["tokens"], dtype="uint64").reshape(-1, len(attrs))
            self._spaces = np.frombuffer(message["spaces"], dtype="uint8")
            store = StringStore()
            self._strings: dict[int, str] = {store.add(text): str(text) for text in message["strings"]}
            n = len(lengths)
            self._cats = message.get("cats") or [{}] * n
            self._flags = message.get("flags") or [{}] * n
            self._groups = message.get("span_groups") or [b""] * n
            self._user_data = message.get("user_data") or [None] * n
            self._at = {name: attrs.index(id_) for name, id_ in IDS.items() if id_ in attrs}
            whole = min(lengths, default=0) >= 0 and sum(lengths) == len(self._tokens) == len(self._spaces)
            lists = (self._cats, self._flags, self._groups, self._user_data)
            if not whole or "ORTH" not in self._at or any(type(part) is not list or len(part) != n for part in lists):
                raise ValueError("its parts do not fit")  # noqa: TRY301
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the bytes were made to be
            raise InputError(f"{_DAMAGED} ({error or type(error).__name__})", path=str(path), remedy=_REMEDY) from None
        self._bounds = [0, *np.cumsum(lengths, dtype="int64").tolist()]

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def has(self, attr: str) -> bool:
        """Whether any token has a value of an attribute."""
        return attr in self._at and bool(self._tokens[:, self._at[attr]].any())

    def groups(self, i: int) -> dict[str, list[tuple[int, ...]]]:
        """The groups of spans of a document; none where they are damaged, which is told when they are read."""
        try:
            return self._read_groups(i)
        except InputError:
            return {}

    def _read_groups(self, i: int) -> dict[str, list[tuple[int, ...]]]:
        raw = self._groups[i]
        if not raw or raw == NO_GROUPS:
            return {}
        try:
            message = _unpacked(raw)
            # Older versions have a list of groups, each with its name.
            named = message.items() if type(message) is dict else [(one, [_unpacked(one)["name"]]) for one in message]
            found = {}
            for packed, keys in named:
                spans = [_SPAN.unpack(span) for span in _unpacked(packed)["spans"]]
                found.update({str(key): spans for key in keys})
        except Exception as error:  # noqa: BLE001 - whatever the bytes were made to be
            raise InputError(f"its groups of spans are damaged ({error})", remedy=_REMEDY) from None
        return found

    def _string(self, key: int) -> str:
        if not key:
            return ""
        try:
            return self._strings[key]
        except KeyError:
            raise InputError(f"the string of number {key} is missing in it", remedy=_REMEDY) from None

    def _column(self, i: int, attr: str) -> list[int]:
        found: list[int] = self._tokens[self._bounds[i] : self._bounds[i + 1], self._at[attr]].tolist()
        return found

    def sentence(self, i: int, spans_key: str | None, reading: Reading) -> Sentence | None:
        """A document as a sentence; None where it has no words.

        Args:
            i: which.
            spans_key: the group of spans that mentions are in; None where they are entities.
            reading: what was met.

        Raises:
            InputError: it is damaged, or a mention does not fit.
        """
        words = [self._string(key) for key in self._column(i, "ORTH")]
        flags = self._spaces[self._bounds[i] : self._bounds[i + 1]].astype(bool).tolist()
        said = self._flags[i]
        unknown = isinstance(said, dict) and bool(said.get("has_unknown_spaces"))
        meta, data = self._meta(i, reading)
        kept = data.pop(KEPT, ())
        kept = set(kept) if isinstance(kept, list) and all(type(k) is int for k in kept) else ()
        tokens = tokens_of(words, None if unknown else flags, kept)
        if not tokens.tokens:
            return None
        if tokens.before:
            meta[BEFORE] = tokens.before
        columns = columns_of(self._annotation(i), tokens)
        more = data.pop("columns", None)
        if are_columns(more, len(tokens.tokens)):
            columns |= {name: tuple(values) for name, values in more.items()}
        elif more is not None:
            meta["columns"] = more
        found = self._mentions(i, spans_key, tokens, reading)
        if any(extra for _, extra in found) and ENTITY_FIELDS not in meta:
            meta[ENTITY_FIELDS] = [extra for _, extra in found]
        name = data.pop("id", None)
        if name is not None and type(name) is not str:
            name = str(name) if type(name) is int else None
        mentions = tuple(m for m, _ in found)
        return Sentence(tokens.tokens, mentions, name, columns=columns, spaces=tokens.spaces, **split_fields(meta))

    def _meta(self, i: int, reading: Reading) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of a document, and what is ours in its user_data."""
        meta: dict[str, Any] = {}
        ours: dict[str, Any] = {}
        others: list[Any] = []
        raw = self._user_data[i]
        if raw:
            try:
                data = _unpacked(raw, lists=False)
                items = list(data.items())
            except Exception as error:  # noqa: BLE001 - whatever the bytes were made to be
                raise InputError(f"its user_data is damaged ({error})", remedy=_REMEDY) from None
            for key, value in items:
                try:
                    held = plain(value)
                    if type(key) is not str:
                        others.append([plain(key), held])
                    elif key in OURS:
                        ours[key] = held
                    else:
                        meta[key] = held
                except (TypeError, RecursionError):
                    reading.notes["user_data that is no JSON left out"] += 1
        if others:
            meta[OTHERS] = others
        cats = self._cats[i]
        if isinstance(cats, dict) and cats and are_cats(cats):
            meta["cats"] = cats
        return meta, ours

    def _annotation(self, i: int) -> dict[str, list[str]]:
        found = {}
        tree = any(self._column(i, "DEP")) if {"DEP", "HEAD"} <= self._at.keys() else False
        for name, attr in COLUMN_ATTRS.items():
            if attr not in self._at or (name in ("dep", "head") and not tree):
                continue
            values = self._column(i, attr)
            if not any(values) and name != "head":
                continue
            if name in SIGNED:
                signed = (value - (1 << 64) if value >> 63 else value for value in values)
                found[name] = ["" if name == "sent_start" and not value else str(value) for value in signed]
            elif name == "pos":
                found[name] = [self._pos.get(value, "") for value in values]
            else:
                found[name] = [self._string(value) for value in values]
        return found

    def _mentions(
        self, i: int, spans_key: str | None, tokens: Tokens, reading: Reading
    ) -> list[tuple[Mention, dict[str, str]]]:
        """The mentions of a document in their order, each with what is said of it."""
        n = len(tokens.counts) - 1
        entities = self._entities(i, reading)
        spans = entities
        if spans_key is not None:
            spans = [
                (start, end, label, kb, id_)
                for id_, kb, label, start, end, _, _ in self._read_groups(i).get(spans_key, ())
            ]
            left = {one[:3] for one in entities} - {one[:3] for one in spans}
            if left:
                reading.notes[f"entities that are not in the spans {spans_key!r} left out"] += len(left)
        found: dict[Mention, dict[str, str]] = {}
        for start, end, label, kb, id_ in spans:
            if not 0 <= start < end <= n:
                raise InputError(f"span ({start}, {end}) does not fit its {n} words", remedy=_REMEDY)
            place = (tokens.counts[start], tokens.counts[end])
            if place[0] == place[1]:
                reading.notes["mention of white space alone left out"] += 1
                continue
            if not label:
                raise InputError(f"the span of words {start + 1} to {end} has no label", remedy="give it one")
            mention = Mention(self._string(label), (place,))
            if mention in found:
                if not reading.repair:
                    remedy = "remove one, or pass --repair"
                    raise InputError(f"mention {mention.label} of words {place} is given twice", remedy=remedy)
                reading.repaired["mention that was given twice dropped"] += 1
                continue
            extra = {"kb_id": self._string(kb), "id": self._string(id_)}
            found[mention] = {name: value for name, value in extra.items() if value}
        return sorted(found.items(), key=lambda pair: (pair[0].spans, pair[0].label))

    def _entities(self, i: int, reading: Reading) -> list[tuple[int, int, int, int, int]]:
        """The entities of a document by words: start, end, and the numbers of label, kb_id and id."""
        if not {"ENT_IOB", "ENT_TYPE"} <= self._at.keys():
            return []
        types = self._column(i, "ENT_TYPE")
        if not any(types):
            return []
        marks = self._column(i, "ENT_IOB")
        if 0 in marks:
            reading.notes["document with words of which is not known whether they are entities"] += 1
        none = [0] * len(types)
        kbs, ids = (self._column(i, attr) if attr in self._at else none for attr in ("ENT_KB_ID", "ENT_ID"))
        found: list[tuple[int, int, int, int, int]] = []
        for k, (mark, type_) in enumerate(zip(marks, types, strict=True)):
            goes_on = mark == 1 and found and found[-1][1] == k and found[-1][2] == type_
            if goes_on:
                found[-1] = (found[-1][0], k + 1, *found[-1][2:])
            elif mark in (1, 3) and type_:
                if mark == 1:
                    if not reading.repair:
                        told = f"word {k + 1} goes on with an entity {self._string(type_)} that is not there"
                        raise InputError(told, remedy="correct it, or pass --repair to start a mention there")
                    reading.repaired["I- with nothing before it"] += 1
                found.append((k, k + 1, type_, kbs[k], ids[k]))
        return found


def _inflated(data: bytes, path: Path) -> bytes:
    unpacking = zlib.decompressobj()
    found = unpacking.decompress(data, _MOST)
    if unpacking.unconsumed_tail:
        raise InputError(f"holds more than {_MOST >> 20:,} MiB", path=str(path), remedy="split it")
    if not unpacking.eof:
        raise ValueError("it ends too early")
    return found


def _unpacked(data: bytes, *, lists: bool = True) -> Any:
    from srsly import msgpack

    # With a hook of our own srsly does not look for all that are installed, each time anew.
    return msgpack.unpackb(data, raw=False, use_list=lists, object_pairs_hook=dict)


def plain(value: Any) -> Any:
    """A value as JSON has it.

    Raises:
        TypeError: it has none.
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(one) for key, one in value.items()}
    raise TypeError(f"{type(value).__name__} is no JSON")


def are_cats(cats: Mapping[Any, Any]) -> bool:
    """Whether these are categories with their scores."""
    return all(type(name) is str and type(value) in (int, float, bool) for name, value in cats.items())
