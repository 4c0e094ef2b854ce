"""Conversion between records of spaCy's JSON and sentences.

``docs``
    The output of ``doc.to_json()``: an object with ``text``, ``tokens`` with character offsets, ``ents``, ``spans``.
``tuples``
    ``[text, {"entities": [[start, end, label]]}]``, the input of training loops; ``words`` and ``spaces`` may give the
    tokens.
``training``
    The training files of spaCy 2: an object with ``paragraphs`` of ``sentences`` of ``tokens``, mentions as BILUO tags;
    see `entaug.formats.spacy.training`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence
from entaug.core.spacing import infer_spaces
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, NO_LABELS, ReadReport
from entaug.formats.spacy.dialects import SpacyDialect
from entaug.formats.spacy.training import columns_of_words, mentions_of_tags, read_document, write_documents
from entaug.formats.spacy.words import WordMention, create_sentence, token_columns, tokens_of, words_of
from entaug.formats.text import (
    BEFORE,
    DOCUMENT,
    CharMention,
    Document,
    OffsetOptions,
    SegmentationOptions,
    counter,
    group_by_document,
    in_characters,
    join_sentences,
    split_document,
)
from entaug.formats.token_records import pop_columns, pop_id, without

__all__ = ["SpacyJsonDialect", "form_of", "has_unknown_fields", "parse_record", "to_records"]

_ANNOTATIONS = frozenset(
    ("cats", "links", "spans", "tags", "pos", "lemmas", "morphs", "deps", "heads", "sent_starts", "ids", "brackets")
)
"""Names that spaCy accepts in addition to ``entities``; it raises an error for any other name."""
_OF_WORDS = frozenset(("tags", "pos", "lemmas", "morphs", "deps", "heads", "sent_starts", "ids", "brackets", "links"))
_REMEDY = "write it as spaCy does"


@dataclass(frozen=True)
class SpacyJsonDialect(SpacyDialect, OffsetOptions):
    """Layout of a JSON file of spaCy.

    Args:
        form: the form of the records: see `entaug.formats.spacy.json_forms`.
        lines: whether each line is a record; otherwise the file is an array. The default depends on the extension.
        words: whether tuples give the tokens; otherwise texts are tokenized by spaCy's rules.
        fields: whether tuples hold fields that spaCy does not know, on which ``Example.from_dict`` fails.
        scheme: the scheme of the tags of training files.
        split_name: the part to read of a file with several, ``{"train": [...], "dev": [...]}``.
    """

    form: Literal["docs", "tuples", "training"] = "docs"
    lines: bool | None = None
    words: bool = True
    fields: bool = False
    scheme: str = "BILOU"
    split_name: str | None = None

    @property
    def group(self) -> str | None:
        """The group of spans that holds the mentions; None for entities or tags."""
        return None if self.form == "training" else super().group

    def describe(self) -> str:
        """Return a description of the layout."""
        form = {"docs": "as of doc.to_json()", "tuples": "training tuples", "training": "training file of spaCy 2"}
        if self.form == "training":
            where = f"mentions as {self.scheme} tags"
        else:
            group = f"spans {self.spans_key!r}"
            auto = f"ents, {group} where there are nested ones"
            where = "mentions in " + {"ents": "ents", "spans": group, "auto": auto}[self.mentions]
        return f"spaCy JSON{' lines' if self.lines else ''}, {form[self.form]}, {where}{self.offsets_text}"


def has_unknown_fields(fields: Iterable[str]) -> bool:
    """Whether spaCy fails on one of the fields of a tuple."""
    known = {"entities", "words", "spaces", BEFORE, DOCUMENT, ENTITY_FIELDS}
    return not (_ANNOTATIONS | known).issuperset(fields)


def form_of(record: Any) -> str | None:
    """Determine the form of a record."""
    if isinstance(record, list):
        is_pair = len(record) == 2 and isinstance(record[0], str) and isinstance(record[1], dict)
        return "tuples" if is_pair and record[1].keys() & {"entities", "spans", "cats", "words"} else None
    if not isinstance(record, dict):
        return None
    paragraphs, tokens = record.get("paragraphs"), record.get("tokens")
    if isinstance(paragraphs, list) and all(isinstance(one, dict) and "sentences" in one for one in paragraphs):
        return "training"
    # Records of Prodigy also have text and tokens, but their tokens hold texts, and their spans are a list.
    if not isinstance(record.get("text"), str) or not isinstance(tokens, list) or isinstance(record.get("spans"), list):
        return None
    first = tokens[:2]
    has_offsets = all(isinstance(t, dict) and {"start", "end"} <= t.keys() and "text" not in t for t in first)
    is_numbered = bool(first) and has_offsets and all(token.get("id") == i for i, token in enumerate(first))
    return "docs" if has_offsets and (record.keys() & {"ents", "spans", "sents"} or is_numbered) else None


# ------------------------------------------------------------------------------------------------------------- reading


def parse_record(record: Any, number: int, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterable[Sentence]:
    """Read the sentences of a record."""
    form = form_of(record)
    if form == "training":
        return read_document(record, dialect.scheme, reading)
    if form == "tuples":
        return _parse_tuple(record, number, dialect, reading)
    if form == "docs":
        return _parse_doc(record, dialect, reading)
    what = "neither [text, {...}], nor an object of doc.to_json(), nor one with paragraphs"
    raise InputError(what, remedy=_REMEDY)


class _PlacedWords(NamedTuple):
    """Words with flags for the spaces after them, and the characters of each in a text."""

    words: list[str]
    flags: list[bool]
    starts: list[int]
    ends: list[int]


def _place(text: str, words: Sequence[Any], flags: Sequence[Any]) -> _PlacedWords | None:
    """Locate words in their text; return None if they do not match it."""
    if len(words) != len(flags) or not (set(map(type, words)) <= {str} and all(words)):
        return None
    flags = list(map(bool, flags))
    if "".join(word + " " * flag for word, flag in zip(words, flags, strict=True)) != text:
        return None
    starts = [*accumulate((len(word) + flag for word, flag in zip(words, flags, strict=True)), initial=0)][:-1]
    return _PlacedWords(list(words), flags, starts, [start + len(w) for start, w in zip(starts, words, strict=True)])


def _char_mentions(values: Any, name: str) -> list[CharMention]:
    """Mentions from lists ``[start, end, label]`` or objects with these names."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InputError(f"{name!r} is not a list", remedy=_REMEDY)
    mentions = []
    for value in values:
        if isinstance(value, dict):
            start, end, label = (value.get(key) for key in ("start", "end", "label"))
            fields = without(value, ("start", "end", "label", *(("kb_id",) if value.get("kb_id") == "" else ())))
        elif isinstance(value, list) and len(value) in (3, 4):
            start, end, label = value[:3]
            fields = {"kb_id": value[3]} if len(value) == 4 and value[3] else {}
        else:
            raise InputError(f"a mention in {name!r} must be [start, end, label], not {value!r:.60}", remedy=_REMEDY)
        if type(start) is not int or type(end) is not int or type(label) is not str or not label:
            what = f"a mention in {name!r} needs two integers and a label, not {start!r}, {end!r}, {label!r}"
            raise InputError(what[:200], remedy=_REMEDY)
        mentions.append(CharMention(label, ((start, end),), fields))
    return mentions


def _select_mentions(
    entities: list[CharMention], groups: Any, dialect: SpacyJsonDialect, reading: ReadReport
) -> tuple[list[CharMention], dict[str, Any]]:
    """Return the mentions of the dialect's group or entities, and the other groups of spans."""
    groups = {} if groups is None else groups
    if not isinstance(groups, dict):
        raise InputError("'spans' is not an object of groups", remedy=_REMEDY)
    if dialect.group is None:
        return entities, groups
    if dialect.group not in groups:
        others = sorted(name for name, spans in groups.items() if spans)
        listed = f"its other groups are not read: {', '.join(others)}" if others else ""
        reading.notes[f"text without the span group {dialect.group!r}; {listed}" if others else NO_LABELS] += 1
    mentions = _char_mentions(groups.get(dialect.group), dialect.group)
    left_out = {entity[:2] for entity in entities} - {mention[:2] for mention in mentions}
    if left_out:
        reading.notes[f"entities that are not in the spans {dialect.group!r} left out"] += len(left_out)
    return mentions, without(groups, (dialect.group,))


def _create(
    text: Document,
    words: _PlacedWords | None,
    columns: Mapping[str, Sequence[str]],
    cutting: SegmentationOptions,
    reading: ReadReport,
) -> Iterable[Sentence]:
    """Create the sentence of a text with known words; a text without words, or with a given split, is segmented."""
    if words is None:
        return split_document(text, cutting, reading)
    as_text = text._replace(tokens=[word for word in words.words if not word.isspace()])
    if cutting.split != "none":
        return split_document(as_text, cutting, reading)
    tokens = tokens_of(words.words, words.flags)
    if not tokens.tokens:
        return ()
    starts = {start: i for i, start in enumerate(words.starts)}
    ends = {end: i for i, end in enumerate(words.ends, start=1)}
    mentions = []
    for mention in text.mentions:
        first, last = (places.get(place) for places, place in zip((starts, ends), mention.spans[0], strict=True))
        if first is None or last is None or first >= last or tokens.counts[first] == tokens.counts[last]:
            return split_document(as_text, cutting, reading)  # within a word, outside, or white space
        mentions.append(WordMention(first, last, mention.label, mention.fields))
    meta = dict(text.fields)
    return (create_sentence(tokens, mentions, token_columns(columns, tokens), meta, text.id, reading),)


def _parse_tuple(record: Any, number: int, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterable[Sentence]:
    text, fields = record[0], dict(record[1])
    entities, words, flags = (fields.pop(name, None) for name in ("entities", "words", "spaces"))
    placed = tokens = None
    unit: str = dialect.offsets
    if isinstance(words, list) and all(type(word) is str and word for word in words):
        if flags is None:
            flags = [space == " " for space in align_spaces(words, text) or ()]
        placed = _place(text, words, flags) if isinstance(flags, list) else None
        tokens = [word for word in words if not word.isspace()]
        if placed is None and align_spaces(tokens, text.lstrip()) is None:
            reading.notes["words that are not those of their text, which was tokenised anew"] += 1
    if isinstance(entities, list) and entities and all(tag is None or isinstance(tag, str) for tag in entities):
        if placed is None or len(entities) != len(placed.words):
            raise InputError("tags as 'entities', but not one for each of 'words'", remedy=_REMEDY)
        mentions = [
            CharMention(m.label, ((placed.starts[m.start], placed.ends[m.end - 1]),))
            for m in mentions_of_tags(entities, "BILOU", reading)
        ]
        unit = "characters" if dialect.group is None else unit
    else:
        mentions = _char_mentions(entities, "entities")
    mentions, groups = _select_mentions(mentions, fields.pop("spans", None), dialect, reading)
    if entities is None and dialect.group is None:
        reading.notes[NO_LABELS] += 1
    if groups:
        fields["spans"] = groups
    # Tuples have no ids, but the sentences of a segmented text need one to distinguish them from other texts.
    id_ = None if dialect.split == "none" else str(number)
    document = in_characters(Document(text, mentions, id_, fields, tokens), unit)
    return _create(document, placed, {}, dialect, reading)


def _parse_doc(record: Any, dialect: SpacyJsonDialect, reading: ReadReport) -> Iterator[Sentence]:
    fields = without(record, ("text", "tokens", "ents", "spans", "sents"))
    text, words = record["text"], record["tokens"]
    if not all(isinstance(word, dict) for word in words):
        raise InputError("a token that is no object", remedy=_REMEDY)
    starts, ends = ([word.get(name) for word in words] for name in ("start", "end"))
    placed = None
    if words and set(map(type, starts + ends)) <= {int}:
        flags = [end < start for end, start in zip(ends, [*starts[1:], len(text)], strict=True)]
        placed = _place(text, [text[a:b] for a, b in zip(starts, ends, strict=True)], flags)
    if words and (placed is None or placed.starts != starts or placed.ends != ends):
        raise InputError("its tokens are not those of its text", remedy=_REMEDY)
    mentions = _char_mentions(record.get("ents"), "ents")
    mentions, groups = _select_mentions(mentions, record.get("spans"), dialect, reading)
    if record.get("ents") is None and dialect.group is None:
        reading.notes[NO_LABELS] += 1
    if groups:
        fields["spans"] = groups
    columns = columns_of_words(words, reading)
    if "head" in columns:
        columns["head"] = [str(int(head) - i) for i, head in enumerate(columns["head"])]
    sents = record.get("sents")
    if placed is not None and isinstance(sents, list) and len(sents) > 1:
        firsts = {sent.get("start") for sent in sents if isinstance(sent, dict) and type(sent.get("start")) is int}
        columns["sent_start"] = ["1" if start in firsts else "-1" for start in starts]
    document = in_characters(Document(text, mentions, pop_id(fields), fields), dialect.offsets)
    for sentence in _create(document, placed, columns, dialect, reading):
        meta = dict(sentence.fields)
        if other := pop_columns(meta, len(sentence)):
            yield sentence.with_(columns={**sentence.columns, **other}).with_fields(meta)
        else:
            yield sentence


# ------------------------------------------------------------------------------------------------------------- writing


def to_records(sentences: Iterable[Sentence], dialect: SpacyJsonDialect) -> Iterator[Any]:
    """Convert sentences to records."""
    if dialect.form == "docs":
        yield from (_to_doc(sentence, dialect) for sentence in sentences)
    elif dialect.form == "tuples":
        yield from (_to_tuple(group, dialect) for group in group_by_document(sentences))
    else:
        yield from write_documents(sentences, dialect.scheme)


def _to_doc(sentence: Sentence, dialect: SpacyJsonDialect) -> dict[str, Any]:
    if sentence.spaces is None:
        sentence = sentence.with_(spaces=infer_spaces(sentence.tokens))
    words = words_of(sentence)
    offsets = words.offsets
    count = counter(words.text, dialect.offsets)
    record: dict[str, Any] = {"text": words.text}
    if dialect.group is None:
        record["ents"] = [_span(mention, offsets, {}, count) for mention in words.mentions]
    record["tokens"] = tokens = [{"id": i, "start": start, "end": end} for i, (start, end) in enumerate(offsets)]
    columns = dict(words.columns)
    if "sent_start" in columns:
        firsts = [i for i, value in enumerate(columns.pop("sent_start")) if value == "1" or not i]
        bounds = zip(firsts, [*firsts[1:], len(tokens)], strict=True)
        record["sents"] = [{"start": offsets[a][0], "end": offsets[b - 1][1]} for a, b in bounds]
    if "head" in columns:
        columns["head"] = [i + head for i, head in enumerate(columns["head"])]
    for name, values in columns.items():
        for token, value in zip(tokens, values, strict=True):
            token[name] = value
    groups = None if sentence.provenance is not None else sentence.fields.get("spans")  # their offsets have changed
    spans = dict(groups) if isinstance(groups, dict) else {}
    if dialect.group is not None:
        spans[dialect.group] = [_span(mention, offsets, {"kb_id": ""}, count) for mention in words.mentions]
    if spans:
        record["spans"] = spans
    if sentence.id is not None:
        record["id"] = sentence.id
    if words.other_columns:
        record["columns"] = words.other_columns
    for name, value in without(sentence.fields, (ENTITY_FIELDS, BEFORE)).items():
        record.setdefault(name, value)
    return record


def _span(
    mention: WordMention, words: Sequence[tuple[int, int]], default: Mapping[str, Any], count: Callable[[int], int]
) -> dict[str, Any]:
    """The object of a mention, given the characters of each word."""
    start, end = count(words[mention.start][0]), count(words[mention.end - 1][1])
    return {"start": start, "end": end, "label": mention.label, **default, **mention.fields}


def _to_tuple(group: Sequence[Sentence], dialect: SpacyJsonDialect) -> list[Any]:
    text = join_sentences(group)
    is_augmented = group[0].provenance is not None
    fields: dict[str, Any] = {}
    count = counter(text.text, dialect.offsets)
    mentions = [(count(m.spans[0][0]), count(m.spans[-1][1]), m.label, m.fields.get("kb_id")) for m in text.mentions]
    if dialect.group is None:
        fields["entities"] = [mention[:3] for mention in mentions]
    if dialect.words and text.tokens is not None:
        before = _space_before(text)
        spaces = align_spaces(text.tokens, text.text[len(before) :])
        words = words_of(Sentence(text.tokens, spaces=spaces, meta={BEFORE: before}))
        fields["words"], fields["spaces"] = list(words.words), list(words.flags or ())
    groups = None if is_augmented else text.fields.get("spans")
    if dialect.group is not None:
        own = [mention if mention[3] else mention[:3] for mention in mentions]
        fields["spans"] = {**(groups if isinstance(groups, dict) else {}), dialect.group: own}
    elif groups:
        fields["spans"] = groups
    stale = _OF_WORDS | {"spans"} if is_augmented else frozenset()
    for name, value in text.fields.items():
        if (name in _ANNOTATIONS or dialect.fields) and name not in stale:
            fields.setdefault(name, value)
    return [text.text, fields]


def _space_before(text: Document) -> str:
    """The white space before the first token, which may begin with white space itself."""
    first = text.tokens[0] if text.tokens else ""
    size = len(text.text) - len(text.text.lstrip())
    return text.text[: size - (len(first) - len(first.lstrip()))]
