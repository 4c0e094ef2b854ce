"""spaCy's DocBin (``.spacy``), the training data of ``spacy train``.

Each document is a sentence. Flat mentions are the entities of the documents (``doc.ents``), nested ones a group of
spans (``doc.spans["sc"]``). If a file has such a group, the group is read, and entities that are not in it are skipped
and counted; ``mentions="ents"`` reads the entities instead. A single group of another name is read too; among several,
``spans_key`` chooses. Groups that are not read, and documents without annotation, are counted. The id, other columns,
fields and provenance are in ``doc.user_data``; tags, lemmas and trees are attributes of the tokens.
"""

# spaCy packs what is written. What is read are its tables, a row of numbers for each word and the strings of these
# numbers, within bounds: creating documents of spaCy takes ten times longer, is not safe with damaged files, and its
# hooks of msgpack load pickles.

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cache, partial
from pathlib import Path
from typing import Any

from entaug.config.registry import import_extra
from entaug.core.data import Sentence
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import BEFORE, ENTITY_FIELDS, NO_LABELS, ReadReport
from entaug.formats.records import read_records
from entaug.formats.spacy_base import (
    COLUMNS,
    SpacyDialect,
    SpacyFormat,
    WordMention,
    Words,
    create_sentence,
    has_stale_tree,
    token_columns,
    tokens_of,
    words_of,
)
from entaug.formats.token_records import pop_columns, pop_id

_SPAN = struct.Struct(">QQQllll")  # id, kb_id, label, first word, the word after the last, and the same by characters
_NO_GROUPS = b"\x90"
_MENTION_ATTRIBUTES = ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID")
_ATTRIBUTES = dict(zip(COLUMNS, ("TAG", "POS", "MORPH", "LEMMA", "DEP", "HEAD", "SENT_START"), strict=True))
_SIGNED = ("head", "sent_start")  # columns whose numbers are signed integers
_SPACE_TOKENS = "_space_tokens"  # key of user_data: the positions of tokens that are white space
_REMEDY = "write it anew with spaCy: DocBin(docs=docs).to_disk(path)"
_MIN_LIMIT = 1 << 28  # bytes that any file may have unpacked, and ...
_MAX_RATIO = 200  # ... bytes for each packed one; zlib packs a thousand zeros into one
_MAX_ITEMS = 1 << 22  # items that the lists and mappings of any file may have; larger files one for each byte


class DocBinDialect(SpacyDialect):
    """Layout of a DocBin."""

    def describe(self) -> str:
        return f"spaCy DocBin, mentions in {self.describe_mentions('doc.ents', f'doc.spans[{self.spans_key!r}]')}"


class DocBinFormat(SpacyFormat):
    """The format of spaCy's training files; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "docbin"
    title = "spaCy DocBin"
    extensions = (".spacy",)
    dialect_class = DocBinDialect

    def recognises(self, path: Path) -> bool:
        try:
            head = zlib.decompressobj().decompress(read_beginning(path, 4096), 64)
        except zlib.error:
            return False
        return b"\xa7version" in head and b"\xa5attrs" in head

    def detect(self, path: Path, dialect: DocBinDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        if dialect.mentions == "ents":
            return {}
        reader = _Reader(read_bytes(path), str(path))
        groups: set[str] = set()
        for i in range(len(reader)):
            try:
                groups.update(name for name, spans in reader.groups(i).items() if spans)
            except InputError:  # which is reported in reading
                continue
        return self.detect_mentions(path, groups, reader.has_entities, dialect, options)

    def sentences(self, path: Path, dialect: DocBinDialect, reading: ReadReport) -> Iterator[Sentence]:
        reader = _Reader(read_bytes(path), str(path))

        def parse(_number: int, index: int) -> Iterator[Sentence]:
            sentence = reader.read_sentence(index, dialect.group, reading)
            if sentence is None:
                reading.notes["document without words left out"] += 1
            else:
                yield sentence

        return read_records(path, enumerate(range(len(reader)), start=1), parse, reading, unit="document")

    def check(self, sentence: Sentence, dialect: DocBinDialect) -> None:
        super().check(sentence, dialect)
        try:
            words = words_of(self.as_stored(sentence, dialect))
            _packer().pack(_user_data(sentence, [], words.other_columns))
            "".join([*sentence.tokens, *(mention.label for mention in sentence.mentions)]).encode()
            "".join(str(value) for values in words.columns.values() for value in values).encode()
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise LossError(f"cannot be kept in a DocBin ({error})", path=f"sentence {sentence.key}") from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: DocBinDialect) -> None:
        kept, dialect = self.resolve(sentences, dialect)
        pairs = [(sentence, words_of(sentence)) for sentence in kept]
        writer = _Writer({name for _, words in pairs for name in words.columns}, dialect.group)
        for sentence, words in pairs:
            writer.add(sentence, words)
        with atomic_file(path) as out:
            out.write(writer.to_bytes())

    def lost(self, sentence: Sentence, dialect: DocBinDialect) -> list[str]:
        return ["trees of augmented sentences"] * has_stale_tree(sentence)


_import_spacy = partial(import_extra, "spacy", "spacy")


# ----------------------------------------------------------------------------------------------- documents in memory


def sentence_of_doc(doc: Any, group: str | None = None) -> Sentence | None:
    """Convert a document of spaCy to a sentence, as if it were read from a file; None without words."""
    _import_spacy()
    from spacy.tokens import DocBin

    packed = DocBin([*_MENTION_ATTRIBUTES, *_ATTRIBUTES.values()], docs=[doc], store_user_data=True)
    return _Reader(packed.to_bytes(), "doc").read_sentence(0, group, ReadReport())


def doc_of_sentence(sentence: Sentence, vocab: Any, group: str | None = None) -> Any:
    """Convert a sentence to a document of spaCy, as if it were read from a file."""
    DocBinFormat().check(sentence, DocBinDialect(mentions="ents" if group is None else "spans"))
    _import_spacy()
    from spacy.tokens import DocBin

    words = words_of(sentence)
    writer = _Writer(words.columns, group, vocab)
    writer.add(sentence, words)
    return next(iter(DocBin(store_user_data=True).from_bytes(writer.to_bytes()).get_docs(vocab)))


# ------------------------------------------------------------------------------------------------------------- reading


def _inflated(data: bytes) -> bytes:
    """The unpacked bytes of a file, which may be far more than memory holds."""
    limit = max(_MIN_LIMIT, _MAX_RATIO * len(data))
    inflater = zlib.decompressobj()
    inflated = inflater.decompress(data, limit)
    if not inflater.eof:
        is_long = inflater.unconsumed_tail or len(inflated) == limit
        raise ValueError(f"{len(data):,} bytes that hold too many unpacked" if is_long else "it ends too early")
    return inflated


def _unpacked(data: bytes, size: int = 0, *, lists: bool = True) -> Any:
    """The value of packed bytes from a file of a size, without the hooks of all of srsly, and within bounds."""
    from srsly import msgpack

    left = max(_MAX_ITEMS, size)

    def count(items: Sized) -> Sized:
        nonlocal left
        left -= len(items) + 1
        if left < 0:
            raise ValueError("it holds too many items for its size")
        return items

    return msgpack.unpackb(
        data, raw=False, use_list=lists, object_pairs_hook=lambda pairs: count(dict(pairs)), list_hook=count
    )


@cache
def _packer() -> Any:
    from srsly import msgpack

    return msgpack.Packer(use_bin_type=True)


class _Reader:
    """The documents of a DocBin."""

    def __init__(self, data: bytes, source: str) -> None:
        _import_spacy()
        import numpy as np
        from spacy.attrs import IDS
        from spacy.parts_of_speech import NAMES
        from spacy.strings import StringStore

        self._pos = NAMES
        try:
            message = _unpacked(_inflated(data), len(data))
            attributes = [int(attribute) for attribute in message["attrs"]]
            self._index = {name: attributes.index(id_) for name, id_ in IDS.items() if id_ in attributes}
            lengths = np.frombuffer(message["lengths"], dtype="int32").tolist()
            self._rows = np.frombuffer(message["tokens"], dtype="uint64").reshape(-1, len(attributes))
            self._spaces = np.frombuffer(message["spaces"], dtype="uint8")
            store = StringStore()
            self._strings: dict[int, str] = {0: "", **{store.add(text): str(text) for text in message["strings"]}}
            n = len(lengths)
            empty: dict[str, Any] = {"cats": {}, "flags": {}, "span_groups": b"", "user_data": None}
            parts = self._parts = {name: message.get(name) or [value] * n for name, value in empty.items()}
            fits = min(lengths, default=0) >= 0 and sum(lengths) == len(self._rows) == len(self._spaces)
            if not fits or "ORTH" not in self._index or any(type(p) is not list or len(p) != n for p in parts.values()):
                raise ValueError("its parts do not fit")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            what = f"is no DocBin, or a damaged one ({str(error) or type(error).__name__})"
            raise InputError(what, path=source, remedy=_REMEDY) from None
        self._bounds = [0, *np.cumsum(lengths, dtype="int64").tolist()]

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @property
    def has_entities(self) -> bool:
        """Whether any word has the type of an entity."""
        return "ENT_TYPE" in self._index and bool(self._rows[:, self._index["ENT_TYPE"]].any())

    def groups(self, i: int) -> dict[str, list[tuple[int, ...]]]:
        """The groups of spans of a document."""
        raw = self._parts["span_groups"][i]
        if not raw or raw == _NO_GROUPS:
            return {}
        try:
            message = _unpacked(raw)
            groups = {}
            for packed, names in message.items():
                spans = [_SPAN.unpack(span) for span in _unpacked(packed)["spans"]]
                groups.update({str(name): spans for name in names})
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            raise InputError(f"its groups of spans are damaged ({error})", remedy=_REMEDY) from None
        return groups

    def _string(self, number: int) -> str:
        try:
            return self._strings[number]
        except KeyError:
            raise InputError(f"the string of number {number} is missing in it", remedy=_REMEDY) from None

    def _column(self, i: int, attribute: str) -> list[int]:
        """The numbers of the words of a document; zeros if the file does not have the attribute."""
        first, last = self._bounds[i : i + 2]
        if attribute not in self._index:
            return [0] * (last - first)
        column: list[int] = self._rows[first:last, self._index[attribute]].tolist()
        return column

    def read_sentence(self, i: int, group: str | None, reading: ReadReport) -> Sentence | None:
        """A document as a sentence; None without words."""
        words = [self._string(number) for number in self._column(i, "ORTH")]
        spaces = self._spaces[self._bounds[i] : self._bounds[i + 1]].astype(bool).tolist()
        flags = self._parts["flags"][i]
        has_spaces = not (isinstance(flags, dict) and flags.get("has_unknown_spaces"))
        meta = self._meta(i, reading)
        kept = meta.pop(_SPACE_TOKENS, ())
        kept = set(kept) if isinstance(kept, list) and all(type(k) is int for k in kept) else ()
        tokens = tokens_of(words, spaces if has_spaces else None, kept)
        if not tokens.tokens:
            return None
        columns = token_columns(self._columns(i), tokens) | pop_columns(meta, len(tokens.tokens))
        mentions = self._mentions(i, len(words), group, reading)
        id_ = pop_id(meta)
        meta.pop("id", None)
        return create_sentence(tokens, mentions, columns, meta, id_, reading)

    def _meta(self, i: int, reading: ReadReport) -> dict[str, Any]:
        """The entries of user_data of a document, and its categories."""
        meta: dict[str, Any] = {}
        raw = self._parts["user_data"][i]
        try:
            items = _unpacked(raw, lists=False).items() if raw else ()
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            raise InputError(f"its user_data is damaged ({error})", remedy=_REMEDY) from None
        for key, value in items:
            try:
                if type(key) is not str:
                    raise TypeError("its key is no string")  # noqa: TRY301
                meta[key] = _to_plain(value)
            except (TypeError, RecursionError):
                reading.notes["user_data that is no JSON left out"] += 1
        if cats := _cats(self._parts["cats"][i]):
            meta["cats"] = cats
        return meta

    def _columns(self, i: int) -> dict[str, list[str]]:
        columns = {}
        has_tree = "HEAD" in self._index and any(self._column(i, "DEP"))
        for name, attribute in _ATTRIBUTES.items():
            values = self._column(i, attribute)
            if not (has_tree if name in ("dep", "head") else any(values)):
                continue
            if name in _SIGNED:
                signed = (value - (1 << 64) if value >> 63 else value for value in values)
                columns[name] = ["" if name == "sent_start" and not value else str(value) for value in signed]
            else:
                columns[name] = [self._pos.get(v, "") if name == "pos" else self._string(v) for v in values]
        return columns

    def _mentions(self, i: int, n: int, group: str | None, reading: ReadReport) -> list[WordMention]:
        """The mentions of a document with `n` words."""
        spans = entities = self._entities(i, reading)
        if group is None and not any(self._column(i, "ENT_IOB")):  # as in spaCy, 2 is outside
            reading.notes[NO_LABELS] += 1
        groups = self.groups(i)  # also where none is used: damaged ones may hold all mentions
        if others := sorted(name for name, spans in groups.items() if spans and name != group):
            names = ", ".join(map(repr, others))
            reading.notes[f"spans {names} left out (to read a group: `spans_key=NAME`)"] += 1
        if group is not None:
            spans = [(start, end, label, kb_id, id_) for id_, kb_id, label, start, end, _, _ in groups.get(group, ())]
            if left_out := {entity[:3] for entity in entities} - {span[:3] for span in spans}:
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
        marks, *others = (self._column(i, attribute) for attribute in _MENTION_ATTRIBUTES)
        if 0 in marks and any(marks):
            reading.notes["document with words of which is not known whether they are entities"] += 1
        entities: list[tuple[int, int, int, int, int]] = []
        for k, (mark, type_, kb_id, id_) in enumerate(zip(marks, *others, strict=True)):
            if mark == 1 and entities and entities[-1][1:3] == (k, type_):
                entities[-1] = (entities[-1][0], k + 1, *entities[-1][2:])
            elif mark in (1, 3) and type_:
                if mark == 1:
                    if not reading.repair:
                        what = f"word {k + 1} goes on with an entity {self._string(type_)} that is not there"
                        raise InputError(what, remedy="correct it, or pass `repair=True` to start a mention there")
                    reading.repaired["I- that continues no mention"] += 1
                entities.append((k, k + 1, type_, kb_id, id_))
        return entities


def _to_plain(value: Any) -> Any:
    """Convert a value to plain JSON values."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_to_plain(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _to_plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is no JSON")


def _cats(value: Any) -> dict[str, float]:
    """The categories of a document with their scores; empty for anything else."""
    is_valid = isinstance(value, Mapping) and all(
        type(name) is str and type(score) in (int, float, bool) for name, score in value.items()
    )
    return dict(value) if is_valid else {}


# ------------------------------------------------------------------------------------------------------------- writing


def _user_data(sentence: Sentence, space_tokens: Sequence[int], columns: Mapping[str, Any]) -> dict[Any, Any]:
    """The entries of user_data: fields without an attribute in spaCy."""
    fields = dict(sentence.fields)
    if _cats(fields.get("cats")):
        del fields["cats"]
    if sentence.spaces is not None:
        fields.pop(BEFORE, None)
    if _are_native(fields.get(ENTITY_FIELDS), len(sentence.mentions)):
        del fields[ENTITY_FIELDS]
    data: dict[Any, Any] = {} if sentence.id is None else {"id": sentence.id}
    data |= {n: _to_plain(value) for n, value in fields.items() if n not in ("id", "columns", _SPACE_TOKENS)}
    if columns or "columns" in fields:
        data["columns"] = _to_plain(columns or fields["columns"])
    if space_tokens:
        data[_SPACE_TOKENS] = list(space_tokens)
    return data


def _are_native(fields: Any, n: int) -> bool:
    """Whether spaCy has attributes for all fields of mentions."""
    if not (isinstance(fields, list) and len(fields) == n and any(fields) and set(map(type, fields)) == {dict}):
        return False
    return all(name in ("kb_id", "id") and type(v) is str and v for own in fields for name, v in own.items())


class _Writer:
    """Collects documents, which spaCy packs."""

    def __init__(self, columns: Collection[str], group: str | None, vocab: Any = None) -> None:
        spacy = _import_spacy()
        from spacy.tokens import DocBin

        attributes = [*_MENTION_ATTRIBUTES, *(_ATTRIBUTES[name] for name in sorted(columns))]
        self._bin = DocBin(attrs=attributes, store_user_data=True)
        self._numbers: dict[str, int] = {"": 0}
        self._index = {name: self._bin.attrs.index(spacy.attrs.IDS[name]) for name in ("ORTH", *attributes)}
        self._pos = spacy.parts_of_speech.IDS
        self._vocab = spacy.vocab.Vocab() if vocab is None else vocab
        self._group = group

    def to_bytes(self) -> bytes:
        """Pack the documents."""
        self._bin.strings = set(self._numbers)
        return bytes(self._bin.to_bytes())

    def _number(self, text: Any) -> int:
        """The number of a string; 0 for any other value."""
        if not isinstance(text, str):
            return 0
        if text not in self._numbers:
            self._numbers[text] = self._vocab.strings.add(text)
        return self._numbers[text]

    def add(self, sentence: Sentence, words: Words) -> None:
        """Add a sentence as a document."""
        import numpy as np

        n = len(words.words)
        rows = np.zeros((n, len(self._bin.attrs)), dtype="uint64")
        rows[:, self._index["ORTH"]] = [self._number(word) for word in words.words]
        for name, values in words.columns.items():
            if name in _SIGNED:
                numbers: Any = np.array([int(value or 0) for value in values], dtype="int64").view("uint64")
            else:
                numbers = [self._pos[value] if name == "pos" else self._number(value) for value in values]
            rows[:, self._index[_ATTRIBUTES[name]]] = numbers
        spans = [
            (m.start, m.end, *map(self._number, (m.label, m.fields.get("kb_id"), m.fields.get("id"))))
            for m in words.mentions
        ]
        if self._group is None:
            marks, *others = (rows[:, self._index[name]] for name in _MENTION_ATTRIBUTES)
            marks[:] = 2
            for first, last, *numbers_of_span in spans:
                marks[first:last] = 1
                marks[first] = 3
                for attribute, value in zip(others, numbers_of_span, strict=True):
                    attribute[first:last] = value
        flags = [True] * n if words.flags is None else words.flags
        space_tokens = [p for p, token in zip(words.positions, sentence.tokens, strict=True) if token.isspace()]
        user_data = _user_data(sentence, space_tokens if words.flags else (), words.other_columns)
        self._bin.tokens.append(rows)
        self._bin.spaces.append(np.array(flags, dtype=bool).reshape(n, 1))
        self._bin.flags.append({"has_unknown_spaces": words.flags is None})
        self._bin.cats.append(_cats(sentence.fields.get("cats")))
        self._bin.user_data.append(bytes(_packer().pack(user_data)))
        self._bin.span_groups.append(self._packed_group(words, spans))

    def _packed_group(self, words: Words, spans: Sequence[tuple[int, ...]]) -> bytes:
        """The group of spans, packed."""
        if self._group is None or not spans:
            return _NO_GROUPS
        from spacy.tokens import Doc, Span

        doc = Doc(self._vocab, words=list(words.words), spaces=None if words.flags is None else list(words.flags))
        doc.spans[self._group] = [
            Span(doc, first, last, label, kb_id=kb_id, span_id=id_) for first, last, label, kb_id, id_ in spans
        ]
        return bytes(doc.spans.to_bytes())
