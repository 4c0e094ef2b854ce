"""Sentences as tables of Hugging Face; see `entaug.formats.huggingface.tables` for what is in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import orjson

from entaug.alignment import align_spaces
from entaug.data import Sentence
from entaug.formats.base import ENTITY_FIELDS
from entaug.formats.huggingface.tables import JSON_COLUMN, RESERVED, HfDialect, pyarrow

__all__ = ["table_of"]

_LETTERS = {"IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}
_BATCH = 2000  # rows


def table_of(sentences: Iterable[Sentence], dialect: HfDialect) -> Any:
    """Sentences as a table of pyarrow, with what Hugging Face wants to know of it."""
    pa = pyarrow()
    strings = pa.list_(pa.string())
    tokens: list[Any] = []
    rows: list[Sentence] = []
    remaining = iter(sentences)
    while batch := list(islice(remaining, _BATCH)):
        tokens.append(pa.array([sentence.tokens for sentence in batch], strings))
        rows += batch
    flat = all(sentence.is_flat for sentence in rows)
    made: dict[str, tuple[Any, Any]] = {}  # the values of each column, and what Hugging Face says of them
    text = {"dtype": "string", "_type": "Value"}
    if any(sentence.id is not None for sentence in rows):
        made["id"] = pa.array([sentence.id for sentence in rows], pa.string()), text
    made[dialect.token_column] = pa.chunked_array(tokens, strings), _sequence(text)
    if dialect.mentions == "tags" or (dialect.mentions == "auto" and flat):
        made[dialect.tag_column] = _tags(rows, dialect)
    else:
        made[dialect.entity_column] = _entities(rows)
    rest: list[dict[str, Any]] = [{} for _ in rows]
    if any(sentence.spaces is not None for sentence in rows):
        made["text"] = pa.array(_texts(rows, rest), pa.string()), text
    classes = dict(dialect.classes)
    for name, values in _further(rows, made.keys() | {JSON_COLUMN}, rest).items():
        column = _column(values, classes.get(name))
        if column is None:
            for into, value in zip(rest, values, strict=True):
                if value is not None:
                    into[name] = value
        else:
            made[name] = column
    if any(rest):
        made[JSON_COLUMN] = pa.array([_dumped(more) if more else None for more in rest], pa.string()), text
    features = {name: feature for name, (_, feature) in made.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({name: values for name, (values, _) in made.items()})
    return table.replace_schema_metadata(metadata)


def _sequence(feature: Any) -> Any:
    # A list of structures is a list here too, which all versions read alike.
    return {"feature": feature, "_type": "Sequence"} if "_type" in feature else [feature]


def _tags(rows: Sequence[Sentence], dialect: HfDialect) -> tuple[Any, Any]:
    """The column of tags: numbers with names."""
    pa = pyarrow()
    labels = sorted({mention.label for sentence in rows for mention in sentence.mentions})
    wanted = ["O", *(f"{letter}-{label}" for label in labels for letter in _LETTERS[dialect.scheme])]
    names = [*dialect.names, *(tag for tag in wanted if tag not in dialect.names)]
    number = {tag: i for i, tag in enumerate(names)}
    kind = pa.list_(pa.int64())
    pieces = []
    for start in range(0, len(rows), _BATCH):
        some = rows[start : start + _BATCH]
        pieces.append(pa.array([[number[tag] for tag in s.iob(dialect.scheme)] for s in some], kind))
    return pa.chunked_array(pieces, kind), _sequence({"names": names, "_type": "ClassLabel"})


def _entities(rows: Sequence[Sentence]) -> tuple[Any, Any]:
    """The column of mentions that tags cannot hold."""
    pa = pyarrow()
    number = {"dtype": "int64", "_type": "Value"}
    feature = {"label": {"dtype": "string", "_type": "Value"}, "spans": _sequence(_sequence(number))}
    kind = pa.list_(pa.struct([("label", pa.string()), ("spans", pa.list_(pa.list_(pa.int64())))]))
    entities = [[{"label": m.label, "spans": m.spans} for m in sentence.mentions] for sentence in rows]
    return pa.array(entities, kind), _sequence(feature)


def _texts(rows: Sequence[Sentence], rest: Sequence[dict[str, Any]]) -> list[str | None]:
    """The texts, which tell the spaces; where they do not, these stand in the rest."""
    texts: list[str | None] = []
    for sentence, more in zip(rows, rest, strict=True):
        if sentence.spaces is None:
            # A text that is not that of the tokens is a field.
            held = sentence.fields.get("text")
            texts.append(held if isinstance(held, str) else None)
            continue
        texts.append(sentence.text)
        if align_spaces(sentence.tokens, sentence.text) != sentence.spaces:
            more["_spaces"] = list(sentence.spaces)
    return texts


def _further(rows: Sequence[Sentence], taken: Iterable[str], rest: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Columns and fields by name, a value or None for each row; what may have no column goes to the rest."""
    found: dict[str, list[Any]] = {}
    taken = set(taken)
    of_tokens = {name for sentence in rows for name in sentence.columns} - taken
    for i, (sentence, more) in enumerate(zip(rows, rest, strict=True)):
        for name, values in sentence.columns.items():
            if name in taken:
                more.setdefault("columns", {})[name] = list(values)
            else:
                found.setdefault(name, [None] * len(rows))[i] = list(values)
        for name, value in sentence.fields.items():
            told = name == "text" and sentence.spaces is None and isinstance(value, str)
            if name in ("entaug", ENTITY_FIELDS) or name in of_tokens or (name in taken and not told):
                more.setdefault(name, value)
            elif name not in taken:
                found.setdefault(name, [None] * len(rows))[i] = value
    for name in found.keys() - of_tokens:
        # What would be taken for something else when it is read may have no column.
        values = found[name]
        said = [(value, s) for value, s in zip(values, rows, strict=True) if value is not None]
        odd = name in RESERVED and any(isinstance(value, (list, dict)) for value, _ in said)
        if odd or (said and all(isinstance(value, list) and len(value) == len(s) for value, s in said)):
            for more, value in zip(rest, found.pop(name), strict=True):
                if value is not None:
                    more.setdefault(name, value)
    return found


def _column(values: list[Any], names: Sequence[str] | None) -> tuple[Any, Any] | None:
    """A column with what Hugging Face says of it; None where its values are not of one kind."""
    pa = pyarrow()
    if names:
        coded = _coded(values, names)
        if coded is not None:
            return coded
    try:
        made = pa.array(values)
        same = made.to_pylist() == values
    except (pa.ArrowException, ValueError, TypeError, OverflowError, RecursionError):
        return None
    feature = _feature(made.type)
    return (made, feature) if same and feature is not None else None


def _coded(values: list[Any], names: Sequence[str]) -> tuple[Any, Any] | None:
    """A column of names as numbers."""
    pa = pyarrow()
    known = list(dict.fromkeys([*names, *(v for row in values if isinstance(row, list) for v in row)]))
    number = {name: i for i, name in enumerate(known)}
    feature = {"names": known, "_type": "ClassLabel"}
    try:
        if any(isinstance(row, list) for row in values):
            rows = [None if row is None else [number[value] for value in row] for row in values]
            return pa.array(rows, pa.list_(pa.int64())), _sequence(feature)
        return pa.array([None if value is None else number[value] for value in values], pa.int64()), feature
    except (KeyError, TypeError):
        return None


def _feature(kind: Any) -> Any:
    """What Hugging Face says of a type; None where it is none of JSON's, or nothing is known of it."""
    types = pyarrow().types
    if types.is_struct(kind):
        inner = {kind.field(i).name: _feature(kind.field(i).type) for i in range(kind.num_fields)}
        return inner if inner and None not in inner.values() else None
    if types.is_list(kind):
        of = _feature(kind.value_type)
        return None if of is None else _sequence(of)
    for known, name in ((types.is_string, "string"), (types.is_int64, "int64"), (types.is_boolean, "bool")):
        if known(kind):
            return {"dtype": name, "_type": "Value"}
    return {"dtype": "float64", "_type": "Value"} if types.is_float64(kind) else None


def _dumped(more: dict[str, Any]) -> str:
    try:
        return orjson.dumps(more).decode()
    except TypeError:
        return json.dumps(more)
