"""The training files of spaCy 2 as sentences, and back: documents of paragraphs of sentences of tokens with BILUO tags.

What is said of a document or a paragraph stays with its first sentence. Sentences of one document stand together again
when they are written; an augmented sentence is a document of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from entaug.alignment import align_spaces
from entaug.data import Mention, Sentence, split_fields
from entaug.errors import InputError
from entaug.formats.base import Reading
from entaug.formats.documents import BEFORE, DOCUMENT
from entaug.formats.spacy.documents import (
    COLUMNS,
    Tokens,
    Words,
    annotation_of,
    columns_of,
    spread,
    tokens_of,
    words_of,
)
from entaug.tags import InvalidTag, decode_canonical

__all__ = ["decoded", "from_training", "name_in", "to_training", "token_columns", "with_more"]

PARAGRAPH = "_paragraph"
"""Field of a sentence that is one of several of a document: the id of that, and the number of its paragraph."""
_DERIVED = ("raw", "sentences", "entities")
_REMEDY = "write it as spaCy does"


# ------------------------------------------------------------------------------------- what docs have in common with it


def name_in(fields: dict[str, Any]) -> str | None:
    """The id among fields, taken out of them."""
    name = fields.get("id")
    if type(name) not in (str, int):
        return None
    del fields["id"]
    return str(name)


def with_more(sentence: Sentence, more: Any) -> Sentence:
    """A sentence with further columns, where these are some."""
    if more is None:
        return sentence
    fine = type(more) is dict and all(
        type(values) is list and len(values) == len(sentence) and all(type(one) is str for one in values)
        for values in more.values()
    )
    if not fine:
        return sentence.with_fields({**sentence.fields, "columns": more})
    return sentence.with_(columns={**sentence.columns, **{name: tuple(values) for name, values in more.items()}})


def token_columns(tokens: Sequence[dict[str, Any]], reading: Reading) -> dict[str, list[str]]:
    """What tokens say of themselves; "" where one does not."""
    columns: dict[str, list[str]] = {}
    said: set[str] = set().union(*tokens)
    for name in COLUMNS[:6]:
        if name not in said:
            continue
        values = [token.get(name) for token in tokens]
        kinds = set(map(type, values))
        if kinds == ({int} if name == "head" else {str}):
            columns[name] = list(map(str, values))
        elif kinds <= {str, type(None)} and name != "head":
            columns[name] = ["" if value is None else value for value in values]
        elif kinds != {type(None)}:
            reading.notes[f"{name} of tokens that is not of its kind left out"] += 1
    if ("dep" in columns) != ("head" in columns):
        columns = {name: values for name, values in columns.items() if name not in ("dep", "head")}
    return columns


def decoded(tags: Sequence[Any], scheme: str, reading: Reading) -> tuple[Mention, ...]:
    """The mentions of tags; of which is not known whether they are any are none."""
    kinds = set(map(type, tags))
    if not kinds <= {str, type(None)}:
        raise InputError("a tag that is no string", remedy=_REMEDY)
    if None in tags or "-" in tags:
        tags = ["O" if tag is None or tag == "-" else tag for tag in tags]
        if tags.count("O") < len(tags):
            reading.notes["text with words of which is not known whether they are entities"] += 1
    try:
        return decode_canonical(tags, scheme, reading.repaired if reading.repair else None)
    except InvalidTag as fault:
        raise InputError(f"token {fault.index + 1}: {fault.message}", remedy=fault.remedy) from None


# --------------------------------------------------------------------------------------------------- paragraphs: read


def from_training(record: Mapping[str, Any], scheme: str, reading: Reading) -> Iterator[Sentence]:
    """The sentences of a document.

    Raises:
        InputError: it is none, or a tag may not stand where it does.
    """
    name = record.get("id")
    name = name if type(name) in (str, int) else None
    paragraphs = []
    for one in record["paragraphs"]:
        if not isinstance(one["sentences"], list):
            raise InputError("'sentences' of a paragraph is not a list", remedy=_REMEDY)
        paragraphs.append((one, [_checked(sentence) for sentence in one["sentences"]]))
    filled = [(one, sentences) for one, sentences in paragraphs if any(sentence["tokens"] for sentence in sentences)]
    count = sum(bool(sentence["tokens"]) for _, sentences in filled for sentence in sentences)
    number = 0
    for p, (paragraph, sentences) in enumerate(filled):
        fields = {k: v for k, v in paragraph.items() if k not in _DERIVED and not (v == [] and k in ("cats", "links"))}
        if not p:
            fields = {key: value for key, value in record.items() if key not in ("id", "paragraphs")} | fields
        for sentence, found in zip(sentences, _spaced(paragraph.get("raw"), sentences), strict=True):
            if not found.tokens:
                continue
            number += 1
            own = {k: v for k, v in sentence.items() if k not in ("tokens", "columns") and (k, v) != ("brackets", [])}
            said = name_in(own)
            meta, fields = fields | own, {}
            if (cats := _cats(meta.get("cats"))) is not None:
                meta["cats"] = cats
            if name is not None and (count > 1 or type(name) is int):
                meta[PARAGRAPH] = [name, p]
            if found.before:
                meta[BEFORE] = found.before
            if said is None and name is not None:
                said = str(name) if count == 1 else f"{name}-{number}"
            tags = [token.get("ner") for token in sentence["tokens"]]
            mentions = [
                Mention(m.label, ((found.counts[m.start], found.counts[m.end]),))
                for m in decoded(tags, scheme, reading)
                if found.counts[m.start] < found.counts[m.end]
            ]
            columns = columns_of(token_columns(sentence["tokens"], reading), found)
            made = Sentence(found.tokens, mentions, said, columns=columns, spaces=found.spaces, **split_fields(meta))
            yield with_more(made, sentence.get("columns"))


def _cats(listed: Any) -> dict[str, Any] | None:
    """Categories as an object; None where these are none."""
    if not isinstance(listed, list) or not listed:
        return None
    if not all(isinstance(one, dict) and one.keys() == {"label", "value"} for one in listed):
        return None
    found = {one["label"]: one["value"] for one in listed if isinstance(one["label"], str)}
    return found if len(found) == len(listed) else None


def _checked(sentence: Any) -> dict[str, Any]:
    tokens = sentence.get("tokens") if isinstance(sentence, dict) else None
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise InputError("a sentence without a list 'tokens' of objects", remedy=_REMEDY)
    words = [token.get("orth") for token in tokens]
    if not (set(map(type, words)) <= {str} and all(words)):
        odd = next(token for token, word in zip(tokens, words, strict=True) if type(word) is not str or not word)
        raise InputError(f"a token without a string 'orth': {odd!r:.60}", remedy=_REMEDY)
    assert isinstance(sentence, dict)
    return sentence


def _spaced(raw: Any, sentences: Sequence[dict[str, Any]]) -> Iterator[Tokens]:
    """The tokens of each sentence of a paragraph with the white space after them."""
    said = all(isinstance(token.get("space"), str) for sentence in sentences for token in sentence["tokens"])
    words = [token["orth"] for sentence in sentences for token in sentence["tokens"]]
    whites = None
    if not said and isinstance(raw, str):
        before = raw[: len(raw) - len(raw.lstrip())] if words and not words[0].startswith(raw[:1]) else ""
        whites = align_spaces(words, raw[len(before) :])
    place = 0
    for sentence in sentences:
        own = [token["orth"] for token in sentence["tokens"]]
        if said:
            yield tokens_of(own, [bool(token["space"]) for token in sentence["tokens"]])
        else:
            found = tokens_of(own, None)
            first = before if whites is not None and not place else ""
            yield found._replace(spaces=None if whites is None else whites[place : place + len(own)], before=first)
        place += len(own)


def to_training(sentences: Iterable[Sentence], scheme: str) -> Iterator[dict[str, Any]]:
    """The documents of sentences."""

    def origin(numbered: tuple[int, Sentence]) -> tuple[Any, ...]:
        number, sentence = numbered
        told = sentence.fields.get(PARAGRAPH)
        fine = isinstance(told, list) and len(told) == 2 and sentence.provenance is None
        return (True, type(told[0]).__name__, told[0]) if fine and isinstance(told, list) else (False, "", number)

    for (kept, _, origin_name), group in groupby(enumerate(sentences), key=origin):
        own = [sentence for _, sentence in group]
        name = origin_name if kept else own[0].id
        record: dict[str, Any] = {} if name is None else {"id": name}
        record["paragraphs"] = []
        number = 0
        for _, members in groupby(own, key=lambda s: s.fields[PARAGRAPH][1] if kept else None):
            raw: list[str] = []
            made: list[dict[str, Any]] = []
            paragraph: dict[str, Any] = {"raw": None, "sentences": made}
            place = 0
            for sentence in members:
                number += 1
                derived = None if name is None else str(name) if len(own) == 1 else f"{name}-{number}"
                words = words_of(sentence)
                said = {} if sentence.id is None or sentence.id == derived else {"id": sentence.id}
                made.append({**said, "tokens": _tokens(sentence, words, place, scheme), "brackets": []})
                place += len(words.words)
                if words.flags is not None:
                    raw += [word + " " * flag for word, flag in zip(words.words, words.flags, strict=True)]
                rest = dict(annotation_of(sentence).rest)
                if "sent_start" in annotation_of(sentence).native:
                    rest["sent_start"] = list(sentence.columns["sent_start"])
                if rest:
                    made[-1]["columns"] = rest
                into = made[-1] if len(made) > 1 else paragraph
                for key, value in sentence.fields.items():
                    if key == "cats":
                        # Where they are none spaCy would fail on them, and does not look.
                        fine = isinstance(value, dict) and len(made) == 1
                        listed = [{"label": label, "value": score} for label, score in value.items()] if fine else value
                        (paragraph if fine else made[-1])[key] = listed
                    elif key == "brackets":
                        made[-1][key] = value
                    elif key not in (PARAGRAPH, BEFORE, DOCUMENT):
                        into.setdefault(key, value)
            if raw:
                paragraph["raw"] = "".join(raw)
            record["paragraphs"].append(paragraph)
        yield record


def _tokens(sentence: Sentence, words: Words, place: int, scheme: str) -> list[dict[str, Any]]:
    """The tokens of a sentence as objects."""
    spread_out = sentence
    if len(words.words) > len(sentence):
        places = words.places
        mentions = [Mention(m.label, ((places[m.start], places[m.end - 1] + 1),)) for m in sentence.mentions]
        spread_out = Sentence(words.words, mentions)
    tags = spread_out.iob(scheme)
    tokens: list[dict[str, Any]] = [{"id": place + i, "orth": word} for i, word in enumerate(words.words)]
    columns: dict[str, list[Any]] = {
        name: spread(words, values, "") for name, values in annotation_of(sentence).native.items()
    }
    columns.pop("sent_start", None)
    if "head" in columns:
        heads = enumerate(sentence.columns["head"])
        columns["head"] = spread(words, [words.places[i + int(h)] - words.places[i] for i, h in heads], 0)
    for i, token in enumerate(tokens):
        if words.flags is not None:
            token["space"] = " " if words.flags[i] else ""
        for name, values in columns.items():
            token[name] = values[i]
        token["ner"] = tags[i]
    return tokens
