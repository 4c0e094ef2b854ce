"""Conversion of tables of Hugging Face to sentences: each row is a sentence.

Flat mentions are in a column of tags, which are strings or numbers with names (``ClassLabel``); nested and
discontinuous mentions are in a column of entities with ``label`` and ``spans``. Columns of lists with one value per
token become columns of the sentence, all others fields. Fields with values of different types are stored as JSON in the
column ``entaug_fields``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from entaug.core.data import Mention, Sentence, split_fields
from entaug.errors import InputError
from entaug.formats.base import ReadReport, are_columns
from entaug.formats.huggingface.dialect import JSON_COLUMN, HfDialect, Table, import_pyarrow
from entaug.formats.label_fields import (
    LABEL_NAMES,
    TOKEN_NAMES,
    FieldSample,
    as_list_of_objects,
    find_label_fields,
    label_name,
    mentions_of_tags,
    name_of,
    note_no_labels,
    numbers_without_names,
)
from entaug.formats.records import read_records
from entaug.formats.token_records import add_entity_fields, pop_columns, pop_id, pop_spaces, unique_mentions, without

__all__ = ["detect_dialect", "read_table"]

# ----------------------------------------------------------------------------------------------------------- detection


def _class_names(feature: Any) -> tuple[str, ...]:
    """The names of a ``ClassLabel``."""
    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return tuple(names)
    return ()


def _item_names(feature: Any) -> tuple[str, ...]:
    """The names of a list of ``ClassLabel``."""
    if isinstance(feature, list) and len(feature) == 1:
        return _class_names(feature[0])
    return _class_names(feature.get("feature")) if isinstance(feature, dict) else ()


def _item_type(type_: Any) -> Any:
    """The type of the items of a list; None of any other type."""
    types = import_pyarrow().types
    if not (types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)):
        return None
    item = type_.value_type
    return item.value_type if types.is_dictionary(item) else item


def _is_text(type_: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_))


def _is_entities(type_: Any) -> bool:
    """Whether a type is that of entities: a list of structures; in older versions, a structure of lists."""
    types = import_pyarrow().types
    item = _item_type(type_) or type_
    if not types.is_struct(item):
        return False
    names = {item.field(i).name for i in range(item.num_fields)}
    return bool(names & {*LABEL_NAMES}) and ("spans" in names or {"start", "end"} <= names)


def detect_dialect(table: Table, dialect: HfDialect, options: Mapping[str, Any]) -> dict[str, Any]:
    """Detect the layout of a table."""
    types = {column.name: column.type for column in table.schema}
    if len(types) < len(table.schema):
        raise InputError("two columns of one name", remedy="rename one")
    for option in ("token_column", "tag_column", "entity_column"):
        if option in options and options[option] not in types:
            raise InputError(f"no column {options[option]!r}", remedy=f"it has: {', '.join(types)}")
    pa_types = import_pyarrow().types
    items = {name: item for name, type_ in types.items() if (item := _item_type(type_)) is not None}
    texts = [name for name, item in items.items() if _is_text(item)]
    numbers = [name for name, item in items.items() if pa_types.is_integer(item)]
    first = next(table.batches(None), None)
    rows = {} if first is None else {name: _rows(first.column(name)) for name in (*texts, *numbers)}
    item_names = {name: _item_names(table.features.get(name)) for name in numbers}
    sample = FieldSample(
        {name: rows.get(name, ()) for name in texts},
        {name: rows.get(name, ()) for name in numbers},
        [name for name, type_ in types.items() if _is_entities(type_)],
        item_names,
    )
    tokens = options.get("token_column") or next((name for name in TOKEN_NAMES if name in texts), None)
    if tokens is None:
        candidates = [name for name in texts if not sample.is_tag_like(name)]
        if len(candidates) != 1:
            several = f"several could be: {', '.join(candidates)}"
            hint = several if candidates else f"it has: {', '.join(types) or 'no column'}"
            raise InputError("no column of tokens is known", remedy=f"name it: token_column; {hint}")
        [tokens] = candidates
    elif tokens not in texts:
        raise InputError(f"the column {tokens!r} holds no lists of strings", remedy="name another: token_column")
    detected: dict[str, Any] = {"token_column": tokens, "mentions": "auto"}
    found = find_label_fields(sample, tokens, options.get("tag_column"), options.get("entity_column"), dialect.names)
    tags, entities = found.tags, found.entities
    if tags is not None:
        detected |= {"tag_column": tags, "names": found.names, "scheme": found.scheme, "mentions": "tags"}
    if entities is not None:
        detected["entity_column"] = entities
        if "tag_column" not in options or "entity_column" in options:
            detected["mentions"] = "entities"
    others = [name for name in (*texts, *numbers) if name not in (tokens, tags) and (name in texts or item_names[name])]
    detected["columns"] = tuple(_with_value_per_token(table, tokens, others))
    classes = {name: item_names[name] for name in others if item_names.get(name)}
    classes |= {name: names for name in types if (names := _class_names(table.features.get(name)))}
    return detected | {"classes": tuple(classes.items())}


def _with_value_per_token(table: Table, tokens: str, names: Sequence[str]) -> Sequence[str]:
    """Return the columns with one value per token in every row that is not empty."""
    if not names:
        return ()
    import_pyarrow()
    from pyarrow import compute

    fitting = list(names)
    for batch in table.batches([tokens, *names]):
        n = compute.list_value_length(batch.column(tokens))
        for name in tuple(fitting):
            is_equal = compute.equal(n, compute.list_value_length(batch.column(name)))
            if compute.all(is_equal).as_py() is False:
                fitting.remove(name)
    return fitting


# ------------------------------------------------------------------------------------------------------------- reading


def _rows(column: Any) -> list[Any]:
    """Return the values of a column; lists of plain values are converted at once, which is ten times faster."""
    types = import_pyarrow().types
    is_list = types.is_list(column.type) or types.is_large_list(column.type)
    if not is_list or types.is_nested(column.type.value_type) or column.null_count:
        return list(column.to_pylist())
    bounds = column.offsets.to_pylist()
    first = bounds[0]
    values = column.values.slice(first, bounds[-1] - first).to_pylist()
    return [values[a - first : b - first] for a, b in pairwise(bounds)]


def read_table(table: Table, dialect: HfDialect, reading: ReadReport, path: Path | str | None) -> Iterator[Sentence]:
    """Read the sentences of a table."""
    pa = import_pyarrow()
    types = {column.name: column.type for column in table.schema}
    for name in [name for name, type_ in types.items() if not (_is_json(type_) or _is_printed(type_))]:
        reading.notes[f"column {name!r} of {types.pop(name)} left out"] += 1
    if dialect.mentions == "tags" and not dialect.names and dialect.tag_column in types:
        item = _item_type(types[dialect.tag_column])
        if item is not None and pa.types.is_integer(item):
            error = numbers_without_names(dialect.tag_column)
            error.path = str(path) if path else None
            raise error

    def rows() -> Iterator[dict[str, Any]]:
        for batch in table.batches(list(types)):
            columns = [batch.column(name) for name in types]
            values = [_rows(c.cast(pa.string()) if _is_printed(c.type) else c) for c in columns]
            for row in zip(*values, strict=True):
                yield dict(zip(types, row, strict=True))

    classes = dict(dialect.classes)

    def parse(_number: int, row: dict[str, Any]) -> Iterable[Sentence]:
        return (_parse(row, dialect, classes, reading),)

    return read_records(path, enumerate(rows(), start=1), parse, reading, unit="row")


def _is_printed(type_: Any) -> bool:
    """Whether values of a type are read as strings: dates, times, decimal numbers."""
    types = import_pyarrow().types
    return bool(types.is_temporal(type_) or types.is_decimal(type_))


def _is_json(type_: Any) -> bool:
    """Whether values of a type have a JSON form."""
    types = import_pyarrow().types
    if types.is_dictionary(type_):
        return _is_json(type_.value_type)
    if types.is_struct(type_):
        return all(_is_json(type_.field(i).type) for i in range(type_.num_fields))
    if (item := _item_type(type_)) is not None:
        return _is_json(item)
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return _is_text(type_) or any(test(type_) for test in tests)


def _parse(
    row: dict[str, Any], dialect: HfDialect, classes: Mapping[str, Sequence[str]], reading: ReadReport
) -> Sentence:
    tokens = row.pop(dialect.token_column)
    if not isinstance(tokens, list):
        raise InputError(f"no list in {dialect.token_column!r}", remedy="remove the row")
    n = len(tokens)
    mentions: Iterable[Mention] = ()
    extras: Iterable[Mapping[str, Any]] = ()
    column = {"tags": dialect.tag_column, "entities": dialect.entity_column}.get(dialect.mentions)
    labels = row.pop(column, None) if column else None
    if labels is None:
        note_no_labels(row if column is None else {}, (), reading, "tag_column or entity_column")
    elif dialect.mentions == "tags":
        mentions = mentions_of_tags(labels, n, dialect.tag_column, dialect.names, dialect.scheme, reading)
    else:
        entities = _entities(labels, dialect.entity_column)
        of_mentions = unique_mentions(map(_mention, entities), reading)
        mentions, extras = of_mentions, of_mentions.values()
    columns: dict[str, tuple[str, ...]] = {}
    for name in dialect.columns:
        if (values := row.pop(name, None)) is not None:
            named: Any = [name_of(value, classes[name]) for value in values] if name in classes else values
            if not are_columns({name: named}, n):
                raise InputError(f"column {name!r} has no value for each token", remedy="correct the row")
            columns[name] = tuple(named)
    for name, names in classes.items():
        if type(row.get(name)) is int:
            row[name] = name_of(row[name], names)
    meta = {name: value for name, value in row.items() if value is not None and value == value}  # noqa: PLR0124 - NaN
    meta |= _fields_of_json(meta.pop(JSON_COLUMN, None))
    id_ = pop_id(meta)
    add_entity_fields(meta, extras)
    columns |= pop_columns(meta, n)
    spaces = pop_spaces(meta, tokens)
    if are_columns({"": meta.get("_spaces")}, n):
        spaces = tuple(meta.pop("_spaces"))
        meta.pop("text", None)
    return Sentence(tokens, mentions, id_, columns=columns, spaces=spaces, **split_fields(meta))


def _fields_of_json(text: Any) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        fields = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        fields = None
    return fields if isinstance(fields, dict) else {JSON_COLUMN: text}


def _entities(value: Any, column: str) -> list[dict[str, Any]]:
    """The objects of a column of entities."""
    value = [] if value is None else as_list_of_objects(value)
    if not isinstance(value, list) or not all(isinstance(entity, dict) for entity in value):
        raise InputError(f"no list of entities in the column {column!r}", remedy="correct the row")
    return value


def _mention(entity: dict[str, Any]) -> tuple[Mention, dict[str, Any]]:
    """A mention, and its further fields."""
    of_label = label_name(entity)
    label, spans = entity.get(of_label), entity.get("spans")
    taken = (of_label, "start", "end") if spans is None else (of_label, "spans")
    if spans is None:
        spans = [[entity.get("start"), entity.get("end")]]
    if not isinstance(label, str) or not isinstance(spans, list):
        raise InputError(f"an entity without label or place: {entity!r:.80}", remedy="correct the row")
    further = {name: value for name, value in without(entity, taken).items() if value is not None}
    return Mention(label, [tuple(span) if isinstance(span, list) else span for span in spans]), further
