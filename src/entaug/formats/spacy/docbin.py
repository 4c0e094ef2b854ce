"""spaCy's DocBin (``.spacy``): what ``spacy train`` reads.

A document is a sentence. Flat mentions are the entities of the documents (``doc.ents``), nested ones a group of spans
(``doc.spans["sc"]``). Where a file has such a group, it is read, and entities that are not in it are left out and
counted; ``mentions="ents"`` reads the entities instead. The id, further columns, fields and provenance are in
``doc.user_data``; tags, lemmas and trees are where spaCy has them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from entaug.data import Sentence
from entaug.errors import InputError, LossError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat, flattened
from entaug.formats.documents import BEFORE
from entaug.formats.spacy.binary import (
    COLUMN_ATTRS,
    KEPT,
    NO_GROUPS,
    OTHERS,
    OURS,
    SIGNED,
    Bin,
    are_cats,
    plain,
    spacy_there,
)
from entaug.formats.spacy.documents import Annotation, Words, annotation_of, spread, words_of
from entaug.tags import OVERLAP, flatten

__all__ = ["DocBinDialect", "DocBinFormat"]

_MENTION_ATTRS = ("ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID")
_MENTIONS = ("auto", "ents", "spans")


@dataclass(frozen=True)
class DocBinDialect:
    """How a DocBin is laid out.

    Args:
        mentions: where mentions are: ``"ents"``, ``"spans"``, or ``"auto"``: in a group of spans where any sentence
            has nested ones, else in the entities.
        spans_key: the name of the group of spans.
        overlap: what to write of nested and discontinuous mentions: see `entaug.tags.flatten`.
    """

    mentions: str = "auto"
    spans_key: str = "sc"
    overlap: str = "error"

    def describe(self) -> str:
        """One line for people."""
        group = f"doc.spans[{self.spans_key!r}]"
        where = {"ents": "doc.ents", "spans": group, "auto": f"doc.ents, {group} where there are nested ones"}
        return f"spaCy DocBin, mentions in {where[self.mentions]}"


class DocBinFormat(BufferedFormat):
    """The format of spaCy's training files; see `entaug.formats.base.Format` for the methods."""

    name = "docbin"
    title = "spaCy DocBin"
    extensions = (".spacy",)
    carries = FormatCapabilities(nested=True, discontinuous=False, columns=True, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether it begins as a packed DocBin does."""
        try:
            head = zlib.decompressobj().decompress(read_beginning(path, 4096), 64)
        except zlib.error:
            return False
        return b"\xa7version" in head and b"\xa5attrs" in head

    def dialect(self, **options: Any) -> DocBinDialect:
        """A dialect from options given by hand: mentions, spans_key, overlap."""
        made = replace(DocBinDialect(), **{name: value for name, value in options.items() if value is not None})
        for name, known in (("mentions", _MENTIONS), ("overlap", OVERLAP)):
            if getattr(made, name) not in known:
                raise ParameterError(f"{name} must be one of {', '.join(known)}, not {getattr(made, name)!r}")
        return made

    def look(self, path: Path, **options: Any) -> DocBinDialect:
        """Find where the mentions are."""
        made = self.dialect(**options)
        if made.mentions != "auto":
            return made
        bin_ = Bin(path)
        groups = Counter(key for i in range(len(bin_)) for key, spans in bin_.groups(i).items() if spans)
        entities = bin_.has("ENT_TYPE")
        if not options.get("spans_key") and made.spans_key not in groups and len(groups) == 1 and not entities:
            made = replace(made, spans_key=next(iter(groups)))
        where = "spans" if made.spans_key in groups else "ents" if entities else "auto"
        return replace(made, mentions=where)

    def sentences(self, path: Path, dialect: DocBinDialect, reading: Reading) -> Iterator[Sentence]:
        """The documents as sentences.

        Raises:
            InputError: the file is damaged, a mention does not fit, an id was there before, no sentence at all.
        """
        bin_ = Bin(path)
        spans_key = dialect.spans_key if dialect.mentions == "spans" else None
        seen: dict[str, int] = {}
        empty = True
        for i in range(len(bin_)):
            try:
                sentence = bin_.sentence(i, spans_key, reading)
                if sentence is not None and reading.repeats(sentence.id, i + 1, seen):
                    sentence = sentence.with_(id=None)
            except InputError as error:
                error.path, error.message = str(path), f"document {i + 1}: {error.message}"
                reading.fault(error)
                empty = False
                continue
            if sentence is None:
                reading.notes["document without words left out"] += 1
                continue
            empty = False
            reading.line = i + 1
            yield sentence
        if empty:
            raise InputError("no sentence in it", path=str(path), remedy="give a file with labelled sentences")

    def carried(self, sentence: Sentence, dialect: DocBinDialect) -> Sentence:
        """The sentence without the mentions that `overlap` leaves out."""
        if dialect.overlap == "error" or sentence.is_flat:
            return sentence
        return flattened(sentence, dialect.overlap)

    def check(self, sentence: Sentence, dialect: DocBinDialect) -> None:
        """Raise where spaCy has no place for what a sentence holds.

        Raises:
            LossError: a mention with a gap; nested ones where ``mentions="ents"``; a field that is no JSON.
        """
        name = sentence.id or " ".join(sentence.tokens[:6])
        mentions = self.carried(sentence, dialect).mentions
        try:
            if dialect.mentions == "ents" and not sentence.is_flat:
                flatten(mentions, "error")
        except LossError as error:
            error.path, error.remedy = f"sentence {name}", "pass --overlap outermost or innermost, or write spans"
            raise
        if any(not mention.is_contiguous for mention in mentions):
            remedy = "write JSON lines, or leave them out: --overlap outermost or innermost"
            raise LossError("spaCy has no mentions with gaps", path=f"sentence {name}", remedy=remedy)
        try:
            _check_kept(sentence)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise LossError(f"cannot be kept in a DocBin ({error})", path=f"sentence {name}") from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: DocBinDialect) -> None:
        """Write a DocBin."""
        kept = [self.carried(sentence, dialect) for sentence in sentences]
        where = dialect.mentions
        if where == "auto":
            where = "ents" if all(sentence.is_flat for sentence in kept) else "spans"
        with atomic_file(path) as out:
            out.write(_written(kept, None if where == "ents" else dialect.spans_key))

    def lost(self, sentence: Sentence, dialect: DocBinDialect) -> list[str]:
        """Trees of augmented sentences."""
        del dialect
        return ["trees of augmented sentences"] if annotation_of(sentence).stale else []


# ------------------------------------------------------------------------------------------------------------- writing


def _user_data(sentence: Sentence, kept: Sequence[int], rest: Mapping[str, Any]) -> dict[Any, Any]:
    """What spaCy has no other place for."""
    data: dict[Any, Any] = {} if sentence.id is None else {"id": sentence.id}
    for name, value in sentence.fields.items():
        elsewhere = (
            (name == "cats" and _cats(sentence))
            or (name == BEFORE and sentence.spaces is not None)
            or (name == ENTITY_FIELDS and _is_native(value, len(sentence.mentions)))
        )
        if name not in (*OURS, OTHERS) and not elsewhere:
            data[name] = plain(value)
    others = sentence.fields.get(OTHERS)
    for pair in others if isinstance(others, list) else ():
        # ("._.", name, start, end): what is said of characters says nothing any more once words were changed.
        if isinstance(pair, list) and len(pair) == 2:
            key = tuple(pair[0]) if isinstance(pair[0], list) else pair[0]
            if sentence.provenance is None or not isinstance(key, tuple) or key[2:] == (None, None):
                data[key] = plain(pair[1])
    if rest:
        data["columns"] = dict(rest)
    elif "columns" in sentence.fields:
        data["columns"] = plain(sentence.fields["columns"])
    if kept:
        data[KEPT] = list(kept)
    return data


def _check_kept(sentence: Sentence) -> None:
    """Pack what goes to user_data, for the errors that this may raise: TypeError, ValueError, OverflowError."""
    _packed(_user_data(sentence, [], annotation_of(sentence).rest))
    "".join([*sentence.tokens, *(m.label for m in sentence.mentions)]).encode()
    "".join(value for values in annotation_of(sentence).native.values() for value in values).encode()


def _cats(sentence: Sentence) -> dict[str, float]:
    """The categories of a document."""
    cats = sentence.fields.get("cats")
    return dict(cats) if isinstance(cats, dict) and are_cats(cats) else {}


def _is_native(said: Any, n: int) -> bool:
    """Whether what is said of mentions is no more than spaCy has a place for."""
    return (
        isinstance(said, list)
        and len(said) == n
        and all(
            type(extra) is dict and all(name in ("kb_id", "id") and type(v) is str and v for name, v in extra.items())
            for extra in said
        )
        and any(said)
    )


def _written(sentences: Sequence[Sentence], spans_key: str | None) -> bytes:
    """The bytes of a DocBin.

    Args:
        sentences: what to write.
        spans_key: the group of spans for mentions; None where they are entities.
    """
    annotations = [annotation_of(sentence) for sentence in sentences]
    writer = _Writer(sorted({name for annotation in annotations for name in annotation.native}), spans_key)
    for sentence, annotation in zip(sentences, annotations, strict=True):
        writer.add(sentence, annotation)
    writer.bin.strings = set(writer.numbers)
    return bytes(writer.bin.to_bytes())


class _Writer:
    """Fills a DocBin.

    Args:
        columns: those that spaCy has a place for.
        spans_key: the group of spans for mentions; None where they are entities.
    """

    def __init__(self, columns: Sequence[str], spans_key: str | None) -> None:
        spacy = spacy_there()
        from spacy.tokens import DocBin

        attrs = [*_MENTION_ATTRS, *(COLUMN_ATTRS[name] for name in columns)]
        self.bin = DocBin(attrs=attrs, store_user_data=True)
        self.numbers: dict[str, int] = {"": 0}
        self._at = {name: self.bin.attrs.index(spacy.attrs.IDS[name]) for name in ("ORTH", *attrs)}
        self._pos = spacy.parts_of_speech.IDS
        self._vocab = spacy.vocab.Vocab()
        self._spans_key = spans_key

    def _number(self, text: str) -> int:
        found = self.numbers.get(text)
        if found is None:
            self.numbers[text] = found = self._vocab.strings.add(text)
        return found

    def add(self, sentence: Sentence, annotation: Annotation) -> None:
        """Add a sentence as a document."""
        import numpy as np

        words = words_of(sentence)
        size = len(words.words)
        rows = np.zeros((size, len(self.bin.attrs)), dtype="uint64")
        rows[:, self._at["ORTH"]] = [self._number(word) for word in words.words]
        for name, values in annotation.native.items():
            column = np.array(self._column(name, values, words), dtype="int64" if name in SIGNED else "uint64")
            rows[:, self._at[COLUMN_ATTRS[name]]] = column.view("uint64")
        spans = self._spans(sentence, words)
        if self._spans_key is None:
            marks, *others = (rows[:, self._at[attr]] for attr in _MENTION_ATTRS)
            marks[:] = 2
            for first, last, *numbers in spans:
                marks[first:last] = 1
                marks[first] = 3
                for attr, value in zip(others, numbers, strict=True):
                    attr[first:last] = value
        flags = [True] * size if words.flags is None else words.flags
        kept = [words.places[i] for i, token in enumerate(sentence.tokens) if words.flags and token.isspace()]
        self.bin.tokens.append(rows)
        self.bin.spaces.append(np.array(flags, dtype=bool).reshape(size, 1))
        self.bin.flags.append({"has_unknown_spaces": words.flags is None})
        self.bin.cats.append(_cats(sentence))
        self.bin.user_data.append(_packed(_user_data(sentence, kept, annotation.rest)))
        self.bin.span_groups.append(self._group(words, spans))

    def _column(self, name: str, values: Sequence[str], words: Words) -> list[int]:
        """The numbers that stand for a column."""
        if name == "head":
            places = words.places
            moved: list[Any] = [places[i + int(value)] - places[i] for i, value in enumerate(values)]
            return spread(words, moved, 0)
        texts = spread(words, values, "")
        if name == "sent_start":
            return [int(value or 0) for value in texts]
        if name == "pos":
            return [self._pos[value] for value in texts]
        return [self._number(value) for value in texts]

    def _spans(self, sentence: Sentence, words: Words) -> list[tuple[int, int, int, int, int]]:
        """The mentions by words: start, end, and the numbers of label, kb_id and id."""
        said = sentence.fields.get(ENTITY_FIELDS)
        extras = said if isinstance(said, list) and len(said) == len(sentence.mentions) else None
        spans = []
        for k, mention in enumerate(sentence.mentions):
            extra = extras[k] if extras and isinstance(extras[k], dict) else {}
            kb, id_ = (self._number(one) if isinstance(one := extra.get(n), str) else 0 for n in ("kb_id", "id"))
            first, last = words.places[mention.start], words.places[mention.end - 1] + 1
            spans.append((first, last, self._number(mention.label), kb, id_))
        return spans

    def _group(self, words: Words, spans: Sequence[tuple[int, int, int, int, int]]) -> bytes:
        """The group of spans, packed."""
        if self._spans_key is None or not spans:
            return NO_GROUPS
        from spacy.tokens import Doc, Span

        doc = Doc(self._vocab, words=list(words.words), spaces=None if words.flags is None else list(words.flags))
        doc.spans[self._spans_key] = [Span(doc, *one[:3], kb_id=one[3], span_id=one[4]) for one in spans]
        return bytes(doc.spans.to_bytes())


@cache
def _packer() -> Any:
    from srsly import msgpack

    return msgpack.Packer(use_bin_type=True)


def _packed(data: Any) -> bytes:
    return bytes(_packer().pack(data))
