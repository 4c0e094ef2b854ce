"""Conversion of sentences to tables of Hugging Face; see `entaug.formats.huggingface.reader` for their columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from entaug.core.alignment import align_spaces
from entaug.core.data import Sentence
from entaug.formats.base import ENTITY_FIELDS
from entaug.formats.huggingface.dialect import JSON_COLUMN, HfDialect, import_pyarrow
from entaug.formats.label_fields import RESERVED

__all__ = ["create_table"]

_PREFIXES = {"IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES"}
_BATCH_SIZE = 2000  # rows
_TEXT = {"dtype": "string", "_type": "Value"}
_INTEGER = {"dtype": "int64", "_type": "Value"}


def create_table(sentences: Iterable[Sentence], dialect: HfDialect) -> Any:
    """Convert sentences to a table."""
    pa = import_pyarrow()
    rows = list(sentences)
    columns: dict[str, tuple[Any, Any]] = {}  # values and description
    if any(sentence.id is not None for sentence in rows):
        columns["id"] = pa.array([sentence.id for sentence in rows], pa.string()), _TEXT
    columns[dialect.token_column] = _chunked([s.tokens for s in rows], pa.list_(pa.string())), _sequence(_TEXT)
    is_flat = all(sentence.is_flat for sentence in rows)
    if dialect.mentions == "tags" or (dialect.mentions == "auto" and is_flat):
        columns[dialect.tag_column] = _tags(rows, dialect)
    else:
        columns[dialect.entity_column] = _entities(rows)
    other: list[dict[str, Any]] = [{} for _ in rows]  # fields without a separate column, by row
    if any(sentence.spaces is not None for sentence in rows):
        columns["text"] = pa.array(_texts(rows, other), pa.string()), _TEXT
    classes = dict(dialect.classes)
    for name, values in _further_columns(rows, columns.keys() | {JSON_COLUMN}, other).items():
        if (column := _column(values, classes.get(name))) is not None:
            columns[name] = column
        else:
            _move(name, values, other)
    if any(other):
        columns[JSON_COLUMN] = pa.array([_dumped(fields) if fields else None for fields in other]), _TEXT
    features = {name: feature for name, (_, feature) in columns.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({name: values for name, (values, _) in columns.items()})
    return table.replace_schema_metadata(metadata)


def _chunked(values: Sequence[Any], type_: Any) -> Any:
    """A column in chunks, so that no list of all values is copied at once."""
    pa = import_pyarrow()
    starts = range(0, len(values), _BATCH_SIZE)
    return pa.chunked_array([pa.array(values[start : start + _BATCH_SIZE], type_) for start in starts], type_)


def _sequence(feature: Any) -> Any:
    # Write a list of structures as a list, which all versions read in the same way.
    return {"feature": feature, "_type": "Sequence"} if "_type" in feature else [feature]


def _tags(rows: Sequence[Sentence], dialect: HfDialect) -> tuple[Any, Any]:
    """The column of tags: numbers with names."""
    pa = import_pyarrow()
    labels = sorted({mention.label for sentence in rows for mention in sentence.mentions})
    tags = ["O", *(f"{prefix}-{label}" for label in labels for prefix in _PREFIXES[dialect.scheme])]
    names = list(dict.fromkeys([*dialect.names, *tags]))
    number = {tag: i for i, tag in enumerate(names)}
    numbers = [[number[tag] for tag in sentence.iob(dialect.scheme)] for sentence in rows]
    return _chunked(numbers, pa.list_(pa.int64())), _sequence({"names": names, "_type": "ClassLabel"})


def _entities(rows: Sequence[Sentence]) -> tuple[Any, Any]:
    """Create the column of entities."""
    pa = import_pyarrow()
    feature = {"label": _TEXT, "spans": _sequence(_sequence(_INTEGER))}
    type_ = pa.list_(pa.struct([("label", pa.string()), ("spans", pa.list_(pa.list_(pa.int64())))]))
    entities = [[{"label": m.label, "spans": m.spans} for m in sentence.mentions] for sentence in rows]
    return pa.array(entities, type_), _sequence(feature)


def _texts(rows: Sequence[Sentence], other: Sequence[dict[str, Any]]) -> list[str | None]:
    """Return the texts; white space that they do not show is stored in the other fields."""
    texts: list[str | None] = []
    for sentence, fields in zip(rows, other, strict=True):
        if sentence.spaces is None:
            text = sentence.fields.get("text")  # a field, not the text of the tokens
            texts.append(text if isinstance(text, str) else None)
            continue
        texts.append(sentence.text)
        if align_spaces(sentence.tokens, sentence.text) != sentence.spaces:
            fields["_spaces"] = list(sentence.spaces)
    return texts


def _move(name: str, values: Iterable[Any], other: Sequence[dict[str, Any]]) -> None:
    """Move the values of a column to the other fields of the rows."""
    for fields, value in zip(other, values, strict=True):
        if value is not None:
            fields.setdefault(name, value)


def _further_columns(
    rows: Sequence[Sentence], taken: Iterable[str], other: Sequence[dict[str, Any]]
) -> dict[str, list[Any]]:
    """Columns and fields of sentences by name, a value or None for each row; those without a column go to `other`."""
    columns: dict[str, list[Any]] = {}
    taken = set(taken)
    of_tokens = {name for sentence in rows for name in sentence.columns} - taken
    for i, (sentence, fields) in enumerate(zip(rows, other, strict=True)):
        for name, values in sentence.columns.items():
            if name in taken:
                fields.setdefault("columns", {})[name] = list(values)
            else:
                columns.setdefault(name, [None] * len(rows))[i] = list(values)
        for name, value in sentence.fields.items():
            is_text = name == "text" and sentence.spaces is None and isinstance(value, str)
            if name in ("entaug", ENTITY_FIELDS) or name in of_tokens or (name in taken and not is_text):
                fields.setdefault(name, value)
            elif name not in taken:
                columns.setdefault(name, [None] * len(rows))[i] = value
    for name in columns.keys() - of_tokens:
        # A field must not look like a column of tokens, tags or entities.
        present = [(value, s) for value, s in zip(columns[name], rows, strict=True) if value is not None]
        is_reserved = name in RESERVED and any(isinstance(value, (list, dict)) for value, _ in present)
        if is_reserved or (present and all(isinstance(v, list) and len(v) == len(s) for v, s in present)):
            _move(name, columns.pop(name), other)
    return columns


def _column(values: list[Any], names: Sequence[str] | None) -> tuple[Any, Any] | None:
    """Return a column and its description; None if its values are of different types."""
    pa = import_pyarrow()
    if names and (numbered := _numbered(values, names)) is not None:
        return numbered
    try:
        column = pa.array(values)
        is_same = column.to_pylist() == values
    except (pa.ArrowException, ValueError, TypeError, OverflowError, RecursionError):
        return None
    feature = _feature(column.type)
    return (column, feature) if is_same and feature is not None else None


def _numbered(values: list[Any], names: Sequence[str]) -> tuple[Any, Any] | None:
    """Return a column of names as numbers; None if a value is not a name."""
    pa = import_pyarrow()
    of_lists = (value for row in values if isinstance(row, list) for value in row)
    known = list(dict.fromkeys([*names, *of_lists]))
    number = {name: i for i, name in enumerate(known)}
    feature = {"names": known, "_type": "ClassLabel"}
    try:
        if any(isinstance(row, list) for row in values):
            rows = [None if row is None else [number[value] for value in row] for row in values]
            return pa.array(rows, pa.list_(pa.int64())), _sequence(feature)
        return pa.array([None if value is None else number[value] for value in values], pa.int64()), feature
    except (KeyError, TypeError):
        return None


def _feature(type_: Any) -> Any:
    """Return the description of a type; None if it is not a JSON type, or the type of empty values."""
    types = import_pyarrow().types
    if types.is_struct(type_):
        fields = {type_.field(i).name: _feature(type_.field(i).type) for i in range(type_.num_fields)}
        return fields if fields and None not in fields.values() else None
    if types.is_list(type_):
        item = _feature(type_.value_type)
        return None if item is None else _sequence(item)
    tests = {"string": types.is_string, "int64": types.is_int64, "bool": types.is_boolean, "float64": types.is_float64}
    return next(({"dtype": name, "_type": "Value"} for name, test in tests.items() if test(type_)), None)


def _dumped(fields: dict[str, Any]) -> str:
    try:
        return orjson.dumps(fields).decode()
    except TypeError:  # an integer of more than 64 bits, or a lone surrogate
        return json.dumps(fields)
