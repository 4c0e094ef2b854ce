"""spaCy's DocBin (``.spacy``), the training data of ``spacy train``.

Each document is a sentence. Flat mentions are the entities of the documents (``doc.ents``), nested ones a group of
spans (``doc.spans["sc"]``). If a file has such a group, the group is read, and entities that are not in it are skipped
and counted; ``mentions="ents"`` reads the entities instead. A single group of another name is read too; among several,
``spans_key`` chooses. Groups that are not read, and documents without annotation, are counted. The id, other columns,
fields and provenance are in ``doc.user_data``; tags, lemmas and trees are attributes of the tokens.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.errors import LossError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning
from entaug.formats.base import ENTITY_FIELDS, ReadReport
from entaug.formats.records import read_records
from entaug.formats.spacy.dialects import SpacyDialect, SpacyFormat
from entaug.formats.spacy.docbin_reader import (
    COLUMN_ATTRIBUTES,
    NO_GROUPS,
    OTHER_USER_DATA,
    SIGNED_COLUMNS,
    SPACE_TOKENS,
    DocBinReader,
    are_cats,
    import_spacy,
    to_plain,
)
from entaug.formats.spacy.words import WordMention, Words, has_stale_tree, words_of
from entaug.formats.text import BEFORE

__all__ = ["DocBinDialect", "DocBinFormat"]

_MENTION_ATTRIBUTES = ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID")


class DocBinDialect(SpacyDialect):
    """Layout of a DocBin."""

    def describe(self) -> str:
        """Return a description of the layout."""
        group = f"doc.spans[{self.spans_key!r}]"
        where = {"ents": "doc.ents", "spans": group, "auto": f"doc.ents, {group} where there are nested ones"}
        return f"spaCy DocBin, mentions in {where[self.mentions]}"


class DocBinFormat(SpacyFormat):
    """The format of spaCy's training files; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    name = "docbin"
    title = "spaCy DocBin"
    extensions = (".spacy",)
    dialect_class = DocBinDialect

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: whether it begins like a packed DocBin."""
        try:
            head = zlib.decompressobj().decompress(read_beginning(path, 4096), 64)
        except zlib.error:
            return False
        return b"\xa7version" in head and b"\xa5attrs" in head

    def detect(self, path: Path, dialect: DocBinDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: the location of mentions."""
        if dialect.mentions == "ents":
            return {}
        reader = DocBinReader(path)
        groups = Counter(name for i in range(len(reader)) for name, spans in reader.groups(i).items() if spans)
        return self.detect_mentions(path, groups, reader.has_attribute("ENT_TYPE"), dialect, options)

    def sentences(self, path: Path, dialect: DocBinDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat`; documents without words are skipped and counted."""
        reader = DocBinReader(path)

        def parse(_number: int, index: int) -> Iterator[Sentence]:
            sentence = reader.read_sentence(index, dialect.group, reading)
            if sentence is None:
                reading.notes["document without words left out"] += 1
            else:
                yield sentence

        return read_records(path, enumerate(range(len(reader)), start=1), parse, reading, unit="document")

    def check(self, sentence: Sentence, dialect: DocBinDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`."""
        super().check(sentence, dialect)
        try:
            words = words_of(self.as_stored(sentence, dialect))
            _packer().pack(_user_data(sentence, [], words.other_columns))
            "".join([*sentence.tokens, *(mention.label for mention in sentence.mentions)]).encode()
            "".join(str(value) for values in words.columns.values() for value in values).encode()
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise LossError(f"cannot be kept in a DocBin ({error})", path=f"sentence {sentence.key}") from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: DocBinDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat`."""
        kept, dialect = self.resolve(sentences, dialect)
        pairs = [(sentence, words_of(sentence)) for sentence in kept]
        writer = _DocBinWriter(sorted({name for _, words in pairs for name in words.columns}), dialect.group)
        for sentence, words in pairs:
            writer.add(sentence, words)
        with atomic_file(path) as out:
            out.write(writer.to_bytes())

    def lost(self, sentence: Sentence, dialect: DocBinDialect) -> list[str]:
        """See `entaug.formats.base.BaseFormat.lost`: trees of augmented sentences."""
        del dialect
        return ["trees of augmented sentences"] * has_stale_tree(sentence)


def _user_data(sentence: Sentence, space_tokens: Sequence[int], columns: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the entries of user_data: fields without an attribute in spaCy."""
    data: dict[Any, Any] = {} if sentence.id is None else {"id": sentence.id}
    for name, value in sentence.fields.items():
        is_elsewhere = (
            name in ("id", "columns", SPACE_TOKENS, OTHER_USER_DATA)
            or (name == "cats" and _cats(sentence))
            or (name == BEFORE and sentence.spaces is not None)
            or (name == ENTITY_FIELDS and _are_native(value, len(sentence.mentions)))
        )
        if not is_elsewhere:
            data[name] = to_plain(value)
    others = sentence.fields.get(OTHER_USER_DATA)
    for pair in others if isinstance(others, list) else ():
        # ("._.", name, start, end): the offsets are invalid after words have changed.
        if isinstance(pair, list) and len(pair) == 2:
            key = tuple(pair[0]) if isinstance(pair[0], list) else pair[0]
            if sentence.provenance is None or not isinstance(key, tuple) or key[2:] == (None, None):
                data[key] = to_plain(pair[1])
    if columns:
        data["columns"] = dict(columns)
    elif "columns" in sentence.fields:
        data["columns"] = to_plain(sentence.fields["columns"])
    if space_tokens:
        data[SPACE_TOKENS] = list(space_tokens)
    return data


def _cats(sentence: Sentence) -> dict[str, float]:
    """The categories of a document."""
    cats = sentence.fields.get("cats")
    return dict(cats) if isinstance(cats, dict) and are_cats(cats) else {}


def _are_native(fields: Any, n: int) -> bool:
    """Whether spaCy has attributes for all fields of mentions."""
    return (
        isinstance(fields, list)
        and len(fields) == n
        and any(fields)
        and all(
            type(own) is dict and all(name in ("kb_id", "id") and type(v) is str and v for name, v in own.items())
            for own in fields
        )
    )


class _DocBinWriter:
    """Collects documents, and packs them."""

    def __init__(self, columns: Sequence[str], group: str | None) -> None:
        spacy = import_spacy()
        from spacy.tokens import DocBin

        attributes = [*_MENTION_ATTRIBUTES, *(COLUMN_ATTRIBUTES[name] for name in columns)]
        self._bin = DocBin(attrs=attributes, store_user_data=True)
        self._numbers: dict[str, int] = {"": 0}
        self._index = {name: self._bin.attrs.index(spacy.attrs.IDS[name]) for name in ("ORTH", *attributes)}
        self._pos = spacy.parts_of_speech.IDS
        self._vocab = spacy.vocab.Vocab()
        self._group = group

    def to_bytes(self) -> bytes:
        """Pack the documents."""
        self._bin.strings = set(self._numbers)
        return bytes(self._bin.to_bytes())

    def _number(self, text: Any) -> int:
        """Return the number of a string; 0 for any other value."""
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
            column = np.array(self._column(name, values), dtype="int64" if name in SIGNED_COLUMNS else "uint64")
            rows[:, self._index[COLUMN_ATTRIBUTES[name]]] = column.view("uint64")
        spans = [self._span(mention) for mention in words.mentions]
        if self._group is None:
            marks, *others = (rows[:, self._index[name]] for name in _MENTION_ATTRIBUTES)
            marks[:] = 2
            for first, last, *numbers in spans:
                marks[first:last] = 1
                marks[first] = 3
                for attribute, value in zip(others, numbers, strict=True):
                    attribute[first:last] = value
        flags = [True] * n if words.flags is None else words.flags
        space_tokens = [
            words.positions[i] for i, token in enumerate(sentence.tokens) if words.flags and token.isspace()
        ]
        self._bin.tokens.append(rows)
        self._bin.spaces.append(np.array(flags, dtype=bool).reshape(n, 1))
        self._bin.flags.append({"has_unknown_spaces": words.flags is None})
        self._bin.cats.append(_cats(sentence))
        self._bin.user_data.append(bytes(_packer().pack(_user_data(sentence, space_tokens, words.other_columns))))
        self._bin.span_groups.append(self._packed_group(words, spans))

    def _column(self, name: str, values: Sequence[Any]) -> list[int]:
        """Return the numbers of the values of a column."""
        if name in SIGNED_COLUMNS:
            return [int(value or 0) for value in values]
        return [self._pos[value] if name == "pos" else self._number(value) for value in values]

    def _span(self, mention: WordMention) -> tuple[int, int, int, int, int]:
        """First word, the word after the last, and the numbers of label, kb_id and id."""
        numbers = [self._number(value) for value in (mention.fields.get("kb_id"), mention.fields.get("id"))]
        return mention.start, mention.end, self._number(mention.label), numbers[0], numbers[1]

    def _packed_group(self, words: Words, spans: Sequence[tuple[int, int, int, int, int]]) -> bytes:
        """The group of spans, packed."""
        if self._group is None or not spans:
            return NO_GROUPS
        from spacy.tokens import Doc, Span

        flags = None if words.flags is None else list(words.flags)
        doc = Doc(self._vocab, words=list(words.words), spaces=flags)
        doc.spans[self._group] = [
            Span(doc, first, last, label, kb_id=kb_id, span_id=id_) for first, last, label, kb_id, id_ in spans
        ]
        return bytes(doc.spans.to_bytes())


@cache
def _packer() -> Any:
    from srsly import msgpack

    return msgpack.Packer(use_bin_type=True)
