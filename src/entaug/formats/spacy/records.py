"""The records of spaCy's JSON as sentences, and back.

``docs``
    What ``doc.to_json()`` gives: an object with ``text``, ``tokens`` with character offsets, ``ents``, ``spans``.
``tuples``
    ``[text, {"entities": [[start, end, label]]}]``, what training loops take; ``words`` and ``spaces`` may say what
    the tokens are.
``training``
    What spaCy 2 was trained on: an object with ``paragraphs`` of ``sentences`` of ``tokens``, mentions as BILUO tags.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import sub
from typing import Any, NamedTuple

from entaug.alignment import align_spaces
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError
from entaug.formats.base import ENTITY_FIELDS, Reading
from entaug.formats.documents import BEFORE, DOCUMENT, CharMention, Cutting, Text, cut, documents, joined
from entaug.formats.spacy.documents import annotation_of, columns_of, spread, tokens_of, words_of
from entaug.formats.spacy.training import decoded, from_training, name_in, to_training, token_columns, with_more
from entaug.spacing import infer_spaces

__all__ = ["FORMS", "Layout", "form_of", "records", "sentences_in", "unknown_in"]

FORMS = ("docs", "tuples", "training")
_ANNOTATIONS = frozenset(
    ("cats", "links", "spans", "tags", "pos", "lemmas", "morphs", "deps", "heads", "sent_starts", "ids", "brackets")
)
"""What spaCy lets stand beside ``entities``; it fails on anything else."""
_BY_WORD = frozenset(("tags", "pos", "lemmas", "morphs", "deps", "heads", "sent_starts", "ids", "brackets", "links"))
_REMEDY = "write it as spaCy does"


class Layout(NamedTuple):
    """How records are laid out.

    Args:
        form: one of `FORMS`.
        spans_key: the group of spans that mentions are in; None where they are entities.
        words: whether tuples say what the tokens are.
        fields: whether tuples hold fields that spaCy does not know.
        scheme: that of tags.
        cutting: how texts become tokens where nothing says it.
    """

    form: str
    spans_key: str | None
    words: bool
    fields: bool
    scheme: str
    cutting: Cutting


def unknown_in(said: Mapping[str, Any]) -> bool:
    """Whether there are fields that spaCy fails on beside ``entities``."""
    known = {"entities", "words", "spaces", BEFORE, DOCUMENT, ENTITY_FIELDS}
    return any(name not in _ANNOTATIONS and name not in known for name in said)


def form_of(record: Any) -> str | None:
    """Which of `FORMS` a record has."""
    if isinstance(record, list):
        two = len(record) == 2 and isinstance(record[0], str) and isinstance(record[1], dict)
        return "tuples" if two and record[1].keys() & {"entities", "spans", "cats", "words"} else None
    if not isinstance(record, dict):
        return None
    paragraphs, tokens = record.get("paragraphs"), record.get("tokens")
    if isinstance(paragraphs, list) and all(isinstance(one, dict) and "sentences" in one for one in paragraphs):
        return "training"
    # Prodigy's records have text and such tokens too, but tokens say their words there, and spans are a list.
    if isinstance(record.get("text"), str) and isinstance(tokens, list) and not isinstance(record.get("spans"), list):
        offsets = all(
            isinstance(token, dict) and {"start", "end"} <= token.keys() and "text" not in token for token in tokens[:2]
        )
        return "docs" if offsets and (record.keys() & {"ents", "spans", "sents"} or _numbered(tokens)) else None
    return None


def _numbered(tokens: Sequence[Any]) -> bool:
    return bool(tokens) and all(token.get("id") == i for i, token in enumerate(tokens[:2]))


def sentences_in(record: Any, number: int, layout: Layout, reading: Reading) -> Iterable[Sentence]:
    """The sentences of a record.

    Args:
        record: it.
        number: which it is, from 1.
        layout: how it is laid out.
        reading: what was met.

    Raises:
        InputError: it is none, or a mention does not fit.
    """
    form = form_of(record)
    if form is None:
        raise InputError(
            "neither [text, {...}], nor an object of doc.to_json(), nor one with paragraphs", remedy=_REMEDY
        )
    if form == "training":
        return from_training(record, layout.scheme, reading)
    return (_from_doc if form == "docs" else _from_tuple)(record, number, layout, reading)


# --------------------------------------------------------------------------------------------- texts: docs and tuples


class _Placed(NamedTuple):
    """The words of a text with their places: starts and ends by characters."""

    words: list[str]
    flags: list[bool]
    starts: list[int]
    ends: list[int]


def _with_flags(text: str, words: Sequence[str], flags: Sequence[Any]) -> _Placed | None:
    """Words by characters; None where they are not those of the text."""
    if len(words) != len(flags) or not (set(map(type, words)) <= {str} and all(words)):
        return None
    flags = list(map(bool, flags))
    pieces = [word + " " if flag else word for word, flag in zip(words, flags, strict=True)]
    if "".join(pieces) != text:
        return None
    sizes = list(map(len, words))
    ends = [*map(sub, accumulate(map(len, pieces)), flags)]
    return _Placed(list(words), flags, [*map(sub, ends, sizes)], ends)


def _at(places: Sequence[int], place: int) -> int | None:
    """Where a place is among places."""
    found = bisect_left(places, place)
    return found if found < len(places) and places[found] == place else None


def _char_mentions(found: Any, what: str) -> list[CharMention]:
    """Mentions as ``[start, end, label]`` or as objects with these names."""
    if found is None:
        return []
    if not isinstance(found, list):
        raise InputError(f"{what!r} is not a list", remedy=_REMEDY)
    mentions = []
    for one in found:
        if isinstance(one, dict):
            one = dict(one)  # noqa: PLW2901
            start, end, label = (one.pop(name, None) for name in ("start", "end", "label"))
            fields = {name: value for name, value in one.items() if (name, value) != ("kb_id", "")}
        elif isinstance(one, list) and len(one) in (3, 4):
            start, end, label = one[:3]
            fields = {"kb_id": one[3]} if len(one) == 4 and one[3] else {}
        else:
            raise InputError(f"a mention in {what!r} must be [start, end, label], not {one!r:.60}", remedy=_REMEDY)
        if type(start) is not int or type(end) is not int or type(label) is not str or not label:
            told = f"a mention in {what!r} needs two integers and a label, not {start!r}, {end!r}, {label!r}"
            raise InputError(told[:200], remedy=_REMEDY)
        mentions.append(CharMention(label, ((start, end),), fields))
    return mentions


def _chosen(
    entities: list[CharMention], groups: Any, layout: Layout, reading: Reading
) -> tuple[list[CharMention], dict[str, Any]]:
    """The mentions where the layout says, and the other groups of spans."""
    if groups is None:
        groups = {}
    if not isinstance(groups, dict):
        raise InputError("'spans' is not an object of groups", remedy=_REMEDY)
    if layout.spans_key is None:
        return entities, groups
    mentions = _char_mentions(groups.get(layout.spans_key), layout.spans_key)
    left = {one[:2] for one in entities} - {one[:2] for one in mentions}
    if left:
        reading.notes[f"entities that are not in the spans {layout.spans_key!r} left out"] += len(left)
    return mentions, {key: spans for key, spans in groups.items() if key != layout.spans_key}


def _sentence(
    text: Text, words: _Placed | None, columns: Mapping[str, Sequence[str]], layout: Layout, reading: Reading
) -> Iterable[Sentence]:
    """The sentence of a text with known words; where they are not known, or must be cut, those that are found."""
    how = layout.cutting
    if words is None or how.split != "none":
        return cut(text if words is None else text._replace(tokens=_solid(words.words)), how, reading)
    tokens = tokens_of(words.words, words.flags)
    if not tokens.tokens:
        return ()
    found: dict[Mention, dict[str, Any]] = {}
    for mention in text.mentions:
        start, end = mention.spans[0]
        first, last = _at(words.starts, start), _at(words.ends, end)
        if first is None or last is None or first > last or tokens.counts[first] == tokens.counts[last + 1]:
            # Within a word, outside, or white space: told, left out or mended as for any text.
            return cut(text._replace(tokens=_solid(words.words)), how, reading)
        placed = Mention(mention.label, ((tokens.counts[first], tokens.counts[last + 1]),))
        if placed in found:
            if not reading.repair:
                remedy = "remove one, or pass --repair"
                raise InputError(f"mention {mention.label} ({start}-{end}) is given twice", remedy=remedy)
            reading.repaired["mention that was given twice dropped"] += 1
            continue
        found[placed] = dict(mention.fields)
    meta = dict(text.fields)
    if tokens.before:
        meta[BEFORE] = tokens.before
    order = sorted(found, key=lambda m: (m.spans, m.label))
    if any(found.values()):
        meta[ENTITY_FIELDS] = [found[mention] for mention in order]
    return (
        Sentence(
            tokens.tokens,
            order,
            text.id,
            columns=columns_of(columns, tokens),
            spaces=tokens.spaces,
            **split_fields(meta),
        ),
    )


def _solid(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.isspace()]


def _from_tuple(record: Any, number: int, layout: Layout, reading: Reading) -> Iterable[Sentence]:
    text, said = record[0], dict(record[1])
    entities, words, flags = said.pop("entities", None), said.pop("words", None), said.pop("spaces", None)
    known = solid = None
    if isinstance(words, list) and all(type(word) is str and word for word in words):
        if flags is None:
            flags = [white == " " for white in align_spaces(words, text) or ()]
        known = _with_flags(text, words, flags) if isinstance(flags, list) else None
        solid = _solid(words)
        if known is None and align_spaces(solid, text.lstrip()) is None:
            reading.notes["words that are not those of their text, which was tokenised anew"] += 1
    if isinstance(entities, list) and entities and all(tag is None or isinstance(tag, str) for tag in entities):
        if known is None or len(entities) != len(known.words):
            raise InputError("tags as 'entities', but not one for each of 'words'", remedy=_REMEDY)
        mentions = [
            CharMention(m.label, ((known.starts[m.start], known.ends[m.end - 1]),))
            for m in decoded(entities, "BILOU", reading)
        ]
    else:
        mentions = _char_mentions(entities, "entities")
    mentions, groups = _chosen(mentions, said.pop("spans", None), layout, reading)
    if groups:
        said["spans"] = groups
    # Tuples have no names; the parts of a text need one to be told from those of another.
    name = None if layout.cutting.split == "none" else str(number)
    return _sentence(Text(text, mentions, name, said, solid), known, {}, layout, reading)


def _from_doc(record: Any, number: int, layout: Layout, reading: Reading) -> Iterable[Sentence]:
    del number
    fields = {name: value for name, value in record.items() if name not in ("text", "tokens", "ents", "spans", "sents")}
    text = record["text"]
    tokens = record["tokens"]
    if not all(isinstance(token, dict) for token in tokens):
        raise InputError("a token that is no object", remedy=_REMEDY)
    starts, ends = ([token.get(name) for token in tokens] for name in ("start", "end"))
    known = None
    if tokens and set(map(type, starts + ends)) <= {int}:
        words = [text[a:b] for a, b in zip(starts, ends, strict=True)]
        known = _with_flags(text, words, [b < a for b, a in zip(ends, [*starts[1:], len(text)], strict=True)])
    if tokens and (known is None or known.starts != starts or known.ends != ends):
        raise InputError("its tokens are not those of its text", remedy=_REMEDY)
    mentions = _char_mentions(record.get("ents"), "ents")
    mentions, groups = _chosen(mentions, record.get("spans"), layout, reading)
    if groups:
        fields["spans"] = groups
    columns = token_columns(tokens, reading)
    if "head" in columns:
        columns["head"] = [str(int(value) - i) for i, value in enumerate(columns["head"])]
    sents = record.get("sents")
    if known is not None and isinstance(sents, list) and len(sents) > 1:
        begun = {sent.get("start") for sent in sents if isinstance(sent, dict) and type(sent.get("start")) is int}
        columns["sent_start"] = ["1" if place in begun else "-1" for place in starts]
    name = name_in(fields)
    more = fields.pop("columns", None)
    for sentence in _sentence(Text(text, mentions, name, fields), known, columns, layout, reading):
        yield with_more(sentence, more)


# ------------------------------------------------------------------------------------------------------ and back again


def records(sentences: Iterable[Sentence], layout: Layout) -> Iterator[Any]:
    """The records of sentences."""
    if layout.form == "docs":
        yield from (_to_doc(sentence, layout) for sentence in sentences)
    elif layout.form == "tuples":
        yield from (
            _to_tuple(joined(group), layout, made=group[0].provenance is not None) for group in documents(sentences)
        )
    else:
        yield from to_training(sentences, layout.scheme)


def _spans(mentions: Sequence[tuple[int, int, str, Mapping[str, Any]]], layout: Layout, group: Any) -> dict[str, Any]:
    """Groups of spans: that of the mentions, and others."""
    groups = dict(group) if isinstance(group, dict) else {}
    if layout.spans_key is None:
        return groups
    own = [{"start": a, "end": b, "label": label, "kb_id": "", **extra} for a, b, label, extra in mentions]
    return {**groups, layout.spans_key: own}


def _extras(sentence: Sentence) -> list[Mapping[str, Any]]:
    said = sentence.fields.get(ENTITY_FIELDS)
    fine = isinstance(said, list) and len(said) == len(sentence.mentions) and all(isinstance(one, dict) for one in said)
    return said if fine and isinstance(said, list) else [{}] * len(sentence.mentions)


def _to_doc(sentence: Sentence, layout: Layout) -> dict[str, Any]:
    if sentence.spaces is None:
        sentence = sentence.with_(spaces=infer_spaces(sentence.tokens))
    words = words_of(sentence)
    flags = words.flags or ()
    sizes = [len(word) + flag for word, flag in zip(words.words, flags, strict=True)]
    starts = [0, *accumulate(sizes)]
    ends = [start + len(word) for start, word in zip(starts, words.words, strict=False)]
    annotation = annotation_of(sentence)
    meta = {name: value for name, value in sentence.fields.items() if name not in (ENTITY_FIELDS, BEFORE)}
    groups = None if "entaug" in meta else meta.get("spans")  # said by characters, which are others now
    mentions = [
        (starts[words.places[m.start]], ends[words.places[m.end - 1]], m.label, extra)
        for m, extra in zip(sentence.mentions, _extras(sentence), strict=True)
    ]
    record: dict[str, Any] = {"text": "".join(w + " " * f for w, f in zip(words.words, flags, strict=True))}
    if layout.spans_key is None:
        record["ents"] = [{"start": a, "end": b, "label": label, **extra} for a, b, label, extra in mentions]
    record["tokens"] = tokens = [
        {"id": i, "start": a, "end": b} for i, (a, b) in enumerate(zip(starts, ends, strict=False))
    ]
    columns: dict[str, list[Any]] = {name: spread(words, values, "") for name, values in annotation.native.items()}
    if "sent_start" in columns:
        marks = [i for i, value in enumerate(columns.pop("sent_start")) if value == "1" or not i]
        bounds = zip(marks, [*marks[1:], len(tokens)], strict=True)
        record["sents"] = [{"start": starts[a], "end": ends[b - 1]} for a, b in bounds]
    if "head" in columns:
        heads: list[Any] = [words.places[i + int(head)] for i, head in enumerate(annotation.native["head"])]
        columns["head"] = [i if head == "" else head for i, head in enumerate(spread(words, heads, ""))]
    for name, values in columns.items():
        for token, value in zip(tokens, values, strict=True):
            token[name] = value
    if spans := _spans(mentions, layout, groups):
        record["spans"] = spans
    if sentence.id is not None:
        record["id"] = sentence.id
    if annotation.rest:
        record["columns"] = annotation.rest
    for name, value in meta.items():
        record.setdefault(name, value)
    return record


def _to_tuple(text: Text, layout: Layout, *, made: bool) -> list[Any]:
    said: dict[str, Any] = {}
    mentions = [(m.spans[0][0], m.spans[-1][1], m.label, m.fields) for m in text.mentions]
    if layout.spans_key is None:
        said["entities"] = [[start, end, label] for start, end, label, _ in mentions]
    if layout.words and text.tokens is not None:
        before = _before(text)
        spaces = align_spaces(text.tokens, text.text[len(before) :])
        words = words_of(Sentence(text.tokens, spaces=spaces, meta={BEFORE: before}))
        said["words"], said["spaces"] = list(words.words), list(words.flags or ())
    groups = {} if made else text.fields.get("spans")
    if layout.spans_key is not None:
        own = [[a, b, label, *([extra["kb_id"]] if extra.get("kb_id") else ())] for a, b, label, extra in mentions]
        said["spans"] = {**(groups if isinstance(groups, dict) else {}), layout.spans_key: own}
    elif groups:
        said["spans"] = groups
    for name, value in text.fields.items():
        if (name in _ANNOTATIONS or layout.fields) and not (made and name in _BY_WORD | {"spans"}):
            said.setdefault(name, value)
    return [text.text, said]


def _before(text: Text) -> str:
    """The white space before the first token."""
    first = text.tokens[0] if text.tokens else ""
    size = len(text.text) - len(text.text.lstrip())
    return text.text[: size - (len(first) - len(first.lstrip()))]
