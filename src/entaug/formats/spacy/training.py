"""Conversion between training files of spaCy 2 and sentences: documents of paragraphs of sentences with BILUO tags.

Fields of a document or a paragraph are kept with its first sentence. Sentences of one document are written as one
document again; an augmented sentence becomes a separate document. spaCy's own converter,
`spacy.training.converters.json_to_docs`, creates one document per paragraph, and loses ids and fields of sentences, so
it is not used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from entaug.core.alignment import align_spaces
from entaug.core.data import Mention, Sentence
from entaug.core.tags import encode_canonical
from entaug.errors import InputError
from entaug.formats.base import NO_LABELS, ReadReport
from entaug.formats.spacy.words import (
    COLUMNS,
    Tokens,
    WordMention,
    Words,
    create_sentence,
    token_columns,
    tokens_of,
    words_of,
)
from entaug.formats.text import BEFORE, DOCUMENT
from entaug.formats.token_records import decode_tags, pop_columns, pop_id, without

__all__ = ["columns_of_words", "mentions_of_tags", "read_document", "write_documents"]

PARAGRAPH = "_paragraph"
"""Field of a sentence that is one of several of a document: the id of the document, and the number of its paragraph."""
_DERIVED = ("raw", "sentences", "entities")
_REMEDY = "write it as spaCy does"


# ------------------------------------------------------------------------------------------------------------- reading


def columns_of_words(words: Sequence[Mapping[str, Any]], reading: ReadReport) -> dict[str, list[str]]:
    """Read the annotation of words from their objects."""
    columns: dict[str, list[str]] = {}
    given: set[str] = set().union(*words)
    for name in COLUMNS[:6]:
        if name not in given:
            continue
        values = [word.get(name) for word in words]
        types = set(map(type, values))
        if types == ({int} if name == "head" else {str}):
            columns[name] = list(map(str, values))
        elif types <= {str, type(None)} and name != "head":
            columns[name] = [value or "" for value in values]
        elif types != {type(None)}:
            reading.notes[f"{name} of tokens that is not of its kind left out"] += 1
    if ("dep" in columns) != ("head" in columns):
        columns.pop("dep", None)
        columns.pop("head", None)
    return columns


def mentions_of_tags(tags: Sequence[Any], scheme: str, reading: ReadReport) -> tuple[Mention, ...]:
    """Decode the tags of words."""
    known = ["O" if tag is None or tag == "-" else tag for tag in tags]
    unknown = sum(tag is None or tag == "-" for tag in tags)
    if unknown and unknown == len(known):
        reading.notes[NO_LABELS] += 1
    elif unknown:
        reading.notes["text with words of which is not known whether they are entities"] += 1
    return decode_tags(known, scheme, reading)


def read_document(record: Mapping[str, Any], scheme: str, reading: ReadReport) -> Iterator[Sentence]:
    """Read the sentences of a document."""
    name = record.get("id") if type(record.get("id")) in (str, int) else None
    paragraphs = [(paragraph, list(_checked(paragraph["sentences"]))) for paragraph in record["paragraphs"]]
    paragraphs = [(paragraph, sentences) for paragraph, sentences in paragraphs if any(s["tokens"] for s in sentences)]
    count = sum(bool(sentence["tokens"]) for _, sentences in paragraphs for sentence in sentences)
    ids = _regular_ids(name, count)
    of_document = without(record, ("id", "paragraphs"))
    for index, (paragraph, sentences) in enumerate(paragraphs):
        fields = {k: v for k, v in paragraph.items() if k not in _DERIVED and not (v == [] and k in ("cats", "links"))}
        fields, of_document = of_document | fields, {}
        for sentence, tokens in zip(sentences, _tokens(paragraph.get("raw"), sentences), strict=True):
            if not tokens.tokens:
                continue
            words = sentence["tokens"]
            own = {k: v for k, v in sentence.items() if k != "tokens" and (k, v) != ("brackets", [])}
            id_, columns = pop_id(own), pop_columns(own, len(tokens.tokens))
            meta, fields = fields | own, {}
            if (cats := _cats(meta.get("cats"))) is not None:
                meta["cats"] = cats
            if name is not None and (count > 1 or type(name) is int):
                meta[PARAGRAPH] = [name, index]
            regular_id = next(ids)
            id_ = regular_id if id_ is None else id_
            tags = mentions_of_tags([word.get("ner") for word in words], scheme, reading)
            mentions = [WordMention(m.start, m.end, m.label, {}) for m in tags]
            columns = token_columns(columns_of_words(words, reading), tokens) | columns
            yield create_sentence(tokens, mentions, columns, meta, id_, reading)


def _cats(listed: Any) -> dict[str, Any] | None:
    """Return categories as an object; None if a value is not a list of categories."""
    if type(listed) is not list or not listed:
        return None
    if not all(type(cat) is dict and cat.keys() == {"label", "value"} for cat in listed):
        return None
    cats = {cat["label"]: cat["value"] for cat in listed if type(cat["label"]) is str}
    return cats if len(cats) == len(listed) else None


def _checked(sentences: Any) -> Iterator[dict[str, Any]]:
    """The sentences of a paragraph, each with a list of words."""
    if type(sentences) is not list:
        raise InputError("'sentences' of a paragraph is not a list", remedy=_REMEDY)
    for sentence in sentences:
        words = sentence.get("tokens") if type(sentence) is dict else None
        if type(words) is not list or not all(type(word) is dict for word in words):
            raise InputError("a sentence without a list 'tokens' of objects", remedy=_REMEDY)
        for word in words:
            if type(word.get("orth")) is not str or not word["orth"]:
                raise InputError(f"a token without a string 'orth': {word!r:.60}", remedy=_REMEDY)
        yield sentence


def _tokens(raw: Any, sentences: Sequence[Mapping[str, Any]]) -> Iterator[Tokens]:
    """Yield the tokens of each sentence of a paragraph; unknown white space is taken from its text."""
    words = [word["orth"] for sentence in sentences for word in sentence["tokens"]]
    has_flags = all(type(word.get("space")) is str for sentence in sentences for word in sentence["tokens"])
    spaces, before = None, ""
    if not has_flags and type(raw) is str:
        if words and not words[0].startswith(raw[:1]):
            before = raw[: len(raw) - len(raw.lstrip())]
        spaces = align_spaces(words, raw[len(before) :])
    position = 0
    for sentence in sentences:
        own = [word["orth"] for word in sentence["tokens"]]
        if has_flags:
            yield tokens_of(own, [bool(word["space"]) for word in sentence["tokens"]])
        elif spaces is None:
            yield tokens_of(own, None)
        else:
            own_spaces = spaces[position : position + len(own)]
            yield tokens_of(own, None)._replace(spaces=own_spaces, before="" if position else before)
        position += len(own)


# ------------------------------------------------------------------------------------------------------------- writing


def write_documents(sentences: Iterable[Sentence], scheme: str) -> Iterator[dict[str, Any]]:
    """Convert sentences to documents."""

    def origin(numbered: tuple[int, Sentence]) -> tuple[Any, ...]:
        number, sentence = numbered
        match sentence.fields.get(PARAGRAPH):
            case [name, _] if sentence.provenance is None:
                return True, type(name).__name__, name
        return False, "", number

    for (is_kept, _, name), group in groupby(enumerate(sentences), key=origin):
        members = [sentence for _, sentence in group]
        paragraphs = groupby(members, key=lambda sentence: sentence.fields[PARAGRAPH][1]) if is_kept else [(0, members)]
        name = name if is_kept else members[0].id  # noqa: PLW2901
        ids = _regular_ids(name, len(members))
        record: dict[str, Any] = {} if name is None else {"id": name}
        record["paragraphs"] = [_paragraph(own, ids, scheme) for _, own in paragraphs]
        yield record


def _regular_ids(name: Any, n: int) -> Iterator[str | None]:
    """Yield the default ids of the sentences of a document."""
    for number in range(1, n + 1):
        yield None if name is None else str(name) if n == 1 else f"{name}-{number}"


def _paragraph(sentences: Iterable[Sentence], ids: Iterator[str | None], scheme: str) -> dict[str, Any]:
    """Create a paragraph of sentences; `ids` are their default ids."""
    written: list[dict[str, Any]] = []
    paragraph: dict[str, Any] = {"raw": None, "sentences": written}
    raw = ""
    n = 0
    for sentence in sentences:
        words = words_of(sentence)
        own: dict[str, Any] = {} if sentence.id in (None, next(ids)) else {"id": sentence.id}
        own |= {"tokens": _words(words, n, scheme), "brackets": []}
        written.append(own)
        n += len(words.words)
        if words.flags is not None:
            raw += words.text
        columns = dict(words.other_columns)
        if "sent_start" in words.columns:
            columns["sent_start"] = list(sentence.columns["sent_start"])
        if columns:
            own["columns"] = columns
        of_paragraph = len(written) == 1
        for name, value in sentence.fields.items():
            if name == "cats" and of_paragraph and isinstance(value, dict):
                paragraph[name] = [{"label": label, "value": score} for label, score in value.items()]
            elif name in (
                "cats",
                "brackets",
            ):  # categories that spaCy would not accept, written where it does not read them
                own[name] = value
            elif name not in (PARAGRAPH, BEFORE, DOCUMENT):
                (paragraph if of_paragraph else own).setdefault(name, value)
    paragraph["raw"] = raw or None
    return paragraph


def _words(words: Words, first: int, scheme: str) -> list[dict[str, Any]]:
    """Create the objects of words; `first` is the position of the first word in the document."""
    mentions = [Mention(m.label, ((m.start, m.end),)) for m in words.mentions]
    tags = encode_canonical(len(words.words), mentions, scheme)
    columns = without(words.columns, ("sent_start",))
    objects = []
    for i, word in enumerate(words.words):
        written: dict[str, Any] = {"id": first + i, "orth": word}
        if words.flags is not None:
            written["space"] = " " if words.flags[i] else ""
        written |= {name: values[i] for name, values in columns.items()}
        objects.append(written | {"ner": tags[i]})
    return objects
