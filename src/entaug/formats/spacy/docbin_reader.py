"""Reader of spaCy's DocBin.

A DocBin consists of packed tables: a row of numbers for each word, and a list of the strings of these numbers. They
are read directly: creating documents of spaCy takes ten times longer, and is not safe with damaged files.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.errors import InputError, MissingExtraError
from entaug.files.streams import read_bytes
from entaug.formats.base import NO_LABELS, ReadReport
from entaug.formats.spacy.packed import read_message, unpacked
from entaug.formats.spacy.words import COLUMNS, WordMention, create_sentence, token_columns, tokens_of
from entaug.formats.token_records import pop_columns, pop_id

__all__ = [
    "COLUMN_ATTRIBUTES",
    "NO_GROUPS",
    "OTHER_USER_DATA",
    "SIGNED_COLUMNS",
    "SPACE_TOKENS",
    "DocBinReader",
    "are_cats",
    "import_spacy",
    "to_plain",
]

_SPAN = struct.Struct(">QQQllll")  # id, kb_id, label, first word, the word after the last, and the same by characters
NO_GROUPS = b"\x90"
"""The packed groups of spans of a document without any."""
COLUMN_ATTRIBUTES = dict(zip(COLUMNS, ("TAG", "POS", "MORPH", "LEMMA", "DEP", "HEAD", "SENT_START"), strict=True))
"""The attribute of each column."""
SIGNED_COLUMNS = ("head", "sent_start")
"""Columns whose numbers are signed integers."""
SPACE_TOKENS = "_space_tokens"
"""Key of user_data: the positions of tokens that are white space."""
OTHER_USER_DATA = "_user_data"
"""Field of a sentence: the entries of user_data whose keys are not strings."""
_DAMAGED = "is no DocBin, or a damaged one"
_REMEDY = "write it anew with spaCy: DocBin(docs=docs).to_disk(path)"


def import_spacy() -> Any:
    """Import spaCy."""
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError(error.name or "spacy", "spacy") from None
    return spacy


class DocBinReader:
    """Reads the documents of a DocBin."""

    def __init__(self, path: Path) -> None:
        import_spacy()
        import numpy as np
        from spacy.attrs import IDS
        from spacy.parts_of_speech import NAMES
        from spacy.strings import StringStore

        self._pos = NAMES
        try:
            data = read_bytes(path)
            message = read_message(data, path)
            attributes = [int(attribute) for attribute in message["attrs"]]
            lengths = np.frombuffer(message["lengths"], dtype="int32").tolist()
            self._number_of_words, self._numbers = message["tokens"]
            self._spaces = np.frombuffer(message["spaces"], dtype="uint8")
            store = StringStore()
            self._strings: dict[int, str] = {store.add(text): str(text) for text in message["strings"]}
            n = len(lengths)
            self._cats = message.get("cats") or [{}] * n
            self._flags = message.get("flags") or [{}] * n
            self._groups = message.get("span_groups") or [b""] * n
            self._user_data = message.get("user_data") or [None] * n
            self._index = {name: attributes.index(id_) for name, id_ in IDS.items() if id_ in attributes}
            fits = min(lengths, default=0) >= 0 and sum(lengths) == self._number_of_words == len(self._spaces)
            lists = (self._cats, self._flags, self._groups, self._user_data)
            if not fits or "ORTH" not in self._index or any(type(p) is not list or len(p) != n for p in lists):
                raise ValueError("its parts do not fit")  # noqa: TRY301
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            raise InputError(f"{_DAMAGED} ({error or type(error).__name__})", path=str(path), remedy=_REMEDY) from None
        self._bounds = [0, *np.cumsum(lengths, dtype="int64").tolist()]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._bounds) - 1

    def has_attribute(self, name: str) -> bool:
        """Whether any word has a value of an attribute."""
        return name in self._index and self._numbers[self._index[name]] is not None

    def groups(self, i: int) -> dict[str, list[tuple[int, ...]]]:
        """Return the groups of spans of a document."""
        try:
            return self._read_groups(i)
        except InputError:
            return {}

    def _read_groups(self, i: int) -> dict[str, list[tuple[int, ...]]]:
        raw = self._groups[i]
        if not raw or raw == NO_GROUPS:
            return {}
        try:
            message = unpacked(raw)
            # Older versions have a list of groups, each with its name.
            named = message.items() if type(message) is dict else [(raw, [unpacked(raw)["name"]]) for raw in message]
            groups = {}
            for packed, names in named:
                spans = [_SPAN.unpack(span) for span in unpacked(packed)["spans"]]
                groups.update({str(name): spans for name in names})
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            raise InputError(f"its groups of spans are damaged ({error})", remedy=_REMEDY) from None
        return groups

    def _string(self, number: int) -> str:
        if not number:
            return ""
        try:
            return self._strings[number]
        except KeyError:
            raise InputError(f"the string of number {number} is missing in it", remedy=_REMEDY) from None

    def _column(self, i: int, attribute: str) -> list[int]:
        """The numbers of the words of a document; zeros if the file does not have the attribute."""
        first, last = self._bounds[i : i + 2]
        numbers = self._numbers[self._index[attribute]] if attribute in self._index else None
        if numbers is None:
            return [0] * (last - first)
        column: list[int] = numbers[first:last].tolist()
        return column

    def read_sentence(self, i: int, group: str | None, reading: ReadReport) -> Sentence | None:
        """Read a document as a sentence."""
        words = [self._string(number) for number in self._column(i, "ORTH")]
        flags = self._spaces[self._bounds[i] : self._bounds[i + 1]].astype(bool).tolist()
        has_spaces = not (isinstance(self._flags[i], dict) and self._flags[i].get("has_unknown_spaces"))
        meta = self._meta(i, reading)
        kept = meta.pop(SPACE_TOKENS, ())
        kept = set(kept) if isinstance(kept, list) and all(type(k) is int for k in kept) else ()
        tokens = tokens_of(words, flags if has_spaces else None, kept)
        if not tokens.tokens:
            return None
        columns = token_columns(self._columns(i), tokens) | pop_columns(meta, len(tokens.tokens))
        mentions = self._mentions(i, group, reading)
        id_ = pop_id(meta)
        meta.pop("id", None)
        return create_sentence(tokens, mentions, columns, meta, id_, reading)

    def _meta(self, i: int, reading: ReadReport) -> dict[str, Any]:
        """The entries of user_data of a document, and its categories."""
        meta: dict[str, Any] = {}
        others: list[Any] = []
        if raw := self._user_data[i]:
            try:
                items = list(unpacked(raw, lists=False).items())
            except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
                raise InputError(f"its user_data is damaged ({error})", remedy=_REMEDY) from None
            for key, value in items:
                try:
                    plain = to_plain(value)
                    if type(key) is str:
                        meta[key] = plain
                    else:
                        others.append([to_plain(key), plain])
                except (TypeError, RecursionError):
                    reading.notes["user_data that is no JSON left out"] += 1
        if others:
            meta[OTHER_USER_DATA] = others
        cats = self._cats[i]
        if isinstance(cats, dict) and cats and are_cats(cats):
            meta["cats"] = cats
        return meta

    def _columns(self, i: int) -> dict[str, list[str]]:
        columns = {}
        has_tree = "HEAD" in self._index and any(self._column(i, "DEP"))
        for name, attribute in COLUMN_ATTRIBUTES.items():
            values = self._column(i, attribute)
            if not has_tree if name in ("dep", "head") else not any(values):
                continue
            if name in SIGNED_COLUMNS:
                signed = (value - (1 << 64) if value >> 63 else value for value in values)
                columns[name] = ["" if name == "sent_start" and not value else str(value) for value in signed]
            elif name == "pos":
                columns[name] = [self._pos.get(value, "") for value in values]
            else:
                columns[name] = [self._string(value) for value in values]
        return columns

    def _mentions(self, i: int, group: str | None, reading: ReadReport) -> list[WordMention]:
        """The mentions of a document."""
        n = self._bounds[i + 1] - self._bounds[i]
        spans = entities = self._entities(i, reading)
        if group is None and not any(self._column(i, "ENT_IOB")):  # as in spaCy, 2 is outside
            reading.notes[NO_LABELS] += 1
        groups = self._read_groups(i)  # also where none is used: damaged ones may hold all mentions
        if others := sorted(name for name, spans in groups.items() if spans and name != group):
            names = ", ".join(map(repr, others))
            reading.notes[f"spans {names} left out (to read a group: --layout spans_key=NAME)"] += 1
        if group is not None:
            spans = [(start, end, label, kb_id, id_) for id_, kb_id, label, start, end, _, _ in groups.get(group, ())]
            left_out = {entity[:3] for entity in entities} - {span[:3] for span in spans}
            if left_out:
                reading.notes[f"entities that are not in the spans {group!r} left out"] += len(left_out)
        mentions = []
        for start, end, label, kb_id, id_ in spans:
            if not 0 <= start < end <= n:
                raise InputError(f"span ({start}, {end}) does not fit its {n} words", remedy=_REMEDY)
            if not label:
                raise InputError(f"the span of words {start + 1} to {end} has no label", remedy="give it one")
            fields = {"kb_id": self._string(kb_id), "id": self._string(id_)}
            fields = {name: value for name, value in fields.items() if value}
            mentions.append(WordMention(start, end, self._string(label), fields))
        return mentions

    def _entities(self, i: int, reading: ReadReport) -> list[tuple[int, int, int, int, int]]:
        """The entities of a document: first word, the word after the last, and the numbers of label, kb_id and id."""
        types = self._column(i, "ENT_TYPE")
        if "ENT_IOB" not in self._index:
            return []
        marks, kb_ids, ids = (self._column(i, attribute) for attribute in ("ENT_IOB", "ENT_KB_ID", "ENT_ID"))
        if 0 in marks and any(marks):
            reading.notes["document with words of which is not known whether they are entities"] += 1
        entities: list[tuple[int, int, int, int, int]] = []
        for k, (mark, type_) in enumerate(zip(marks, types, strict=True)):
            if mark == 1 and entities and entities[-1][1] == k and entities[-1][2] == type_:
                entities[-1] = (entities[-1][0], k + 1, *entities[-1][2:])
            elif mark in (1, 3) and type_:
                if mark == 1:
                    if not reading.repair:
                        what = f"word {k + 1} goes on with an entity {self._string(type_)} that is not there"
                        raise InputError(what, remedy="correct it, or pass --repair to start a mention there")
                    reading.repaired["I- that continues no mention"] += 1
                entities.append((k, k + 1, type_, kb_ids[k], ids[k]))
        return entities


def to_plain(value: Any) -> Any:
    """Convert a value to plain JSON values."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: to_plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is no JSON")


def are_cats(cats: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds categories with their scores."""
    return all(type(name) is str and type(value) in (int, float, bool) for name, value in cats.items())
