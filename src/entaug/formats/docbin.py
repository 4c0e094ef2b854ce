"""spaCy's DocBin (``.spacy``): what ``spacy train`` reads.

A document is a sentence. Flat mentions are the entities of the documents (``doc.ents``), nested ones a group of spans
(``doc.spans["sc"]``). Where a file has such a group, it is read, and entities that are not in it are left out and
counted; ``mentions="ents"`` reads the entities instead. The id, further columns, fields and provenance are in
``doc.user_data``; tags, lemmas and trees are where spaCy has them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from entaug.data import Mention, Sentence
from entaug.errors import InputError, LossError, ParameterError
from entaug.formats.base import ENTITY_FIELDS, Carries, Reading
from entaug.formats.files import atomic, beginning
from entaug.formats.spacy_bin import Bin, check_kept, written
from entaug.formats.spacy_doc import annotation_of
from entaug.formats.whole import Whole
from entaug.tags import OVERLAP, flatten

__all__ = ["DocBinDialect", "DocBinFormat"]

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


class DocBinFormat(Whole):
    """The format of spaCy's training files; see `entaug.formats.base.Format` for the methods."""

    name = "docbin"
    title = "spaCy DocBin"
    extensions = (".spacy",)
    carries = Carries(nested=True, discontinuous=False, columns=True, fields=True, spaces=True)

    def recognises(self, path: Path) -> bool:
        """Whether it begins as a packed DocBin does."""
        try:
            head = zlib.decompressobj().decompress(beginning(path, 4096), 64)
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
        if dialect.overlap == "error" or sentence.flat:
            return sentence
        return _with_mentions(sentence, flatten(sentence.mentions, dialect.overlap))

    def check(self, sentence: Sentence, dialect: DocBinDialect) -> None:
        """Raise where spaCy has no place for what a sentence holds.

        Raises:
            LossError: a mention with a gap; nested ones where ``mentions="ents"``; a field that is no JSON.
        """
        name = sentence.id or " ".join(sentence.tokens[:6])
        mentions = self.carried(sentence, dialect).mentions
        try:
            if dialect.mentions == "ents" and not sentence.flat:
                flatten(mentions, "error")
        except LossError as error:
            error.path, error.remedy = f"sentence {name}", "pass --overlap outermost or innermost, or write spans"
            raise
        if any(not mention.contiguous for mention in mentions):
            remedy = "write JSON lines, or leave them out: --overlap outermost or innermost"
            raise LossError("spaCy has no mentions with gaps", path=f"sentence {name}", remedy=remedy)
        try:
            check_kept(sentence)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise LossError(f"cannot be kept in a DocBin ({error})", path=f"sentence {name}") from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: DocBinDialect) -> None:
        """Write a DocBin."""
        kept = [self.carried(sentence, dialect) for sentence in sentences]
        where = dialect.mentions
        if where == "auto":
            where = "ents" if all(sentence.flat for sentence in kept) else "spans"
        with atomic(path) as out:
            out.write(written(kept, None if where == "ents" else dialect.spans_key))

    def lost(self, sentence: Sentence, dialect: DocBinDialect) -> list[str]:
        """Trees of augmented sentences."""
        del dialect
        return ["trees of augmented sentences"] if annotation_of(sentence).stale else []


def _with_mentions(sentence: Sentence, mentions: Sequence[Mention]) -> Sentence:
    """A sentence with some of its mentions, each with what is said of it."""
    meta = dict(sentence.meta)
    said = meta.get(ENTITY_FIELDS)
    if isinstance(said, list) and len(said) == len(sentence.mentions):
        extras = dict(zip(sentence.mentions, said, strict=True))
        meta[ENTITY_FIELDS] = [extras[mention] for mention in mentions]
    return sentence.with_(mentions=tuple(mentions), meta=meta)
