"""Parquet files and folders of ``Dataset.save_to_disk``, read and written with pyarrow only; datasets in memory.

Each row is a sentence. Flat mentions are in a column of tags, which are strings or numbers with names (``ClassLabel``);
nested and discontinuous mentions are in a column of entities with ``label`` and ``spans``. Columns of lists with one
value per token become columns of the sentence, all others fields. Fields with values of different types, objects, and
lists of others than strings are stored as JSON in the column ``entaug_fields``.
"""

from __future__ import annotations

import abc
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import Any, Literal

import orjson

from entaug.config.registry import import_extra
from entaug.core.alignment import align_spaces
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.tags import KEEP_SOME, Overlap, describe_scheme
from entaug.errors import InputError, LossError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import ENTITY_FIELDS, FormatCapabilities, ReadReport, warn_of_notes
from entaug.formats.buffered import BufferedFormat
from entaug.formats.records import TOKEN_NAMES, no_sentences, read_records, several_parts
from entaug.formats.token_records import (
    RESERVED,
    SPACES,
    RecordLayout,
    are_tags,
    as_list_of_objects,
    detect_fields,
    parse_record,
    without,
)

JSON_COLUMN = "entaug_fields"
"""Column with the fields that have no separate column, as JSON."""
_ROW_GROUP = 10_000  # rows
_BATCH_SIZE = 2000  # rows
_DICT, _INFO, _STATE = "dataset_dict.json", "dataset_info.json", "state.json"
_DATA = re.compile(r"data-[0-9]{5}-of-[0-9]{5}\.arrow")
_REMEDY = "fetch it anew, or write it again"
_PREFIXES = {"IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES"}


@dataclass(frozen=True)
class HfDialect(RecordLayout):
    """Layout of a table; with ``mentions="auto"``, entities are written if any sentence has nested mentions or gaps.

    Args:
        overlap: the treatment of nested and discontinuous mentions in writing, see `entaug.core.tags.flatten`.
        split_name: the split to read from a folder with several splits.
    """

    ends: Literal["", "exclusive", "inclusive"] = "exclusive"
    overlap: Overlap = "error"
    split_name: str | None = None

    @property
    def tag_name(self) -> str:
        """The column of tags that is written."""
        return self.tag_field or "ner_tags"

    def describe(self) -> str:
        tags, entities = (
            f"{describe_scheme(self.scheme)} tags in {self.tag_name!r}",
            f"mentions in {self.entity_field!r}",
        )
        auto = f"{tags}, or {entities} where there are nested ones"
        where = {"tags": tags, "entities": entities, "auto": auto}
        return f"table, tokens in {self.token_field!r}, {where[self.mentions]}"


@dataclass(frozen=True)
class _Table:
    """A table that is read in batches of some or all columns, and Hugging Face's description of them."""

    schema: Any
    features: Mapping[str, Any]
    batches: Callable[[Sequence[str] | None], Iterator[Any]]


_pyarrow = partial(import_extra, "pyarrow", "datasets")


# ------------------------------------------------------------------------------------------------------------- formats


class TableFormat(BufferedFormat):
    """Base class of formats that hold a table; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    dialect_class = HfDialect

    @abc.abstractmethod
    def open_table(self, path: Path, dialect: HfDialect) -> _Table:
        """Open the table of a file."""

    @abc.abstractmethod
    def write_table(self, table: Any, path: Path, dialect: HfDialect) -> None:
        """Write a table."""

    def detect(self, path: Path, dialect: HfDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        with _faults_named(path):
            return _detect_columns(self.open_table(path, dialect), dialect, options)

    def sentences(self, path: Path, dialect: HfDialect, reading: ReadReport) -> Iterator[Sentence]:
        with _faults_named(path):
            yield from _read_table(self.open_table(path, dialect), dialect, reading, path)

    def check(self, sentence: Sentence, dialect: HfDialect) -> None:
        kept = self.as_stored(sentence, dialect)
        if dialect.mentions == "tags":
            self.check_flat(kept, f"pass {KEEP_SOME}, or write entities")
        try:
            texts = [*sentence.tokens, *(mention.label for mention in kept.mentions), sentence.id or ""]
            texts += [*(sentence.spaces or ()), *sentence.columns, *sentence.fields]
            "".join([*texts, *(value for values in sentence.columns.values() for value in values)]).encode()
            json.dumps(dict(sentence.fields))
        except (TypeError, ValueError, RecursionError) as error:
            raise LossError(f"cannot be written ({error})", path=f"sentence {sentence.key}") from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: HfDialect) -> None:
        self.write_table(create_table((self.as_stored(s, dialect) for s in sentences), dialect), path, dialect)


@contextlib.contextmanager
def _faults_named(path: Path) -> Iterator[None]:
    """Turn the errors of pyarrow into errors that name the file."""
    try:
        yield
    except InputError as error:
        error.path = error.path or str(path)
        raise
    except ParameterError:
        raise
    except (_pyarrow().ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0][:200]
        raise InputError(f"damaged, or not what its name says ({reason})", path=str(path), remedy=_REMEDY) from None


def _features_of(schema: Any, info: Path | None = None) -> dict[str, Any]:
    """Hugging Face's description of the columns."""
    try:
        if info is not None and info.exists():
            features = json.loads(read_bytes(info)).get("features")
        else:
            features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        features = None
    return features if isinstance(features, dict) else {}


class Parquet(TableFormat):
    """Parquet files."""

    name = "parquet"
    title = "Parquet"
    extensions = (".parquet",)

    def recognises(self, path: Path) -> bool:
        return read_beginning(path, 4) == b"PAR1"

    def open_table(self, path: Path, dialect: HfDialect) -> _Table:
        pa = _pyarrow()
        from pyarrow import parquet

        file = parquet.ParquetFile(pa.BufferReader(read_bytes(path)) if path.suffix == ".gz" else str(path))

        def batches(columns: Sequence[str] | None) -> Iterator[Any]:
            for batch in file.iter_batches(batch_size=_BATCH_SIZE, columns=columns and list(columns)):
                batch.validate(full=True)
                yield batch

        return _Table(file.schema_arrow, _features_of(file.schema_arrow), batches)

    def write_table(self, table: Any, path: Path, dialect: HfDialect) -> None:
        from pyarrow import parquet

        with atomic_file(path) as out:
            parquet.write_table(table, out, row_group_size=_ROW_GROUP)


class DatasetFolder(TableFormat):
    """Folders that ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote."""

    name = "datasets"
    title = "Hugging Face dataset folder"
    folder = True

    def recognises(self, path: Path) -> bool:
        return (path / _DICT).is_file() or ((path / _STATE).is_file() and (path / _INFO).is_file())

    def replaceable(self, path: Path) -> bool:
        files = {file.name: file.is_file() and not file.is_symlink() for file in path.iterdir()}
        is_ours = all(name in (_INFO, _STATE) or _DATA.fullmatch(name) for name in files)
        return {_INFO, _STATE} <= files.keys() and is_ours and all(files.values())

    def open_table(self, path: Path, dialect: HfDialect) -> _Table:
        pa = _pyarrow()
        folder = _part(path, dialect.split_name)
        listed = _read_object(folder / _STATE).get("_data_files")
        files = [one.get("filename") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        names = [name for name in files if isinstance(name, str) and Path(name).name == name]
        if not names or len(names) < len(files):
            raise InputError("names no data files", path=str(folder / _STATE), remedy=_REMEDY)

        def batches(columns: Sequence[str] | None) -> Iterator[Any]:
            for name in names:
                try:
                    with pa.memory_map(str(folder / name)) as mapped, pa.ipc.open_stream(mapped) as stream:
                        for batch in stream:
                            batch.validate(full=True)
                            selected = batch if columns is None else batch.select(columns)
                            yield from (selected.slice(i, _BATCH_SIZE) for i in range(0, len(batch), _BATCH_SIZE))
                except FileNotFoundError:
                    raise InputError("no such file", path=str(folder / name), remedy=_REMEDY) from None

        with pa.memory_map(str(folder / names[0])) as mapped, pa.ipc.open_stream(mapped) as stream:
            schema = stream.schema
        return _Table(schema, _features_of(schema, folder / _INFO), batches)

    def write_table(self, table: Any, path: Path, dialect: HfDialect) -> None:
        pa = _pyarrow()
        path.mkdir()
        name = "data-00000-of-00001.arrow"
        with pa.OSFile(str(path / name), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table, max_chunksize=1000)
        digest = blake2b(digest_size=8)
        with (path / name).open("rb") as written:
            while block := written.read(1 << 20):
                digest.update(block)
        empty = dict.fromkeys(("citation", "description", "homepage", "license"), "")
        info: dict[str, Any] = {**empty, "features": _features_of(table.schema)}
        state: dict[str, Any] = {
            "_data_files": [{"filename": name}],
            "_fingerprint": digest.hexdigest(),
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": dialect.split_name,
        }
        for file, contents in ((_INFO, info), (_STATE, state)):
            (path / file).write_text(json.dumps(contents, indent=2, sort_keys=True), encoding="utf-8")


def _part(path: Path, name: str | None) -> Path:
    """The folder of the split to read."""
    if not (path / _DICT).is_file():
        return path
    listed = _read_object(path / _DICT).get("splits")
    splits = [split for split in listed if isinstance(split, str)] if isinstance(listed, list) else []
    if not splits:
        raise InputError("names no part", path=str(path / _DICT), remedy=_REMEDY)
    name = splits[0] if name is None and len(splits) == 1 else name
    if name is None or name not in splits:
        error = several_parts(splits, name)
        error.path = str(path)
        raise error
    if Path(name).name != name:
        raise InputError(f"a part of the name {name!r}", path=str(path), remedy=_REMEDY)
    return path / name


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError("not a JSON object", path=str(path), remedy=_REMEDY)
    return value


# ---------------------------------------------------------------------------------------------------- types of columns


def _class_names(features: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The names of the numbers of each column of a ``ClassLabel``, or of lists of such."""
    found = {}
    for name, feature in features.items():
        item = feature[0] if isinstance(feature, list) and len(feature) == 1 else feature
        item = item.get("feature", item) if isinstance(item, dict) else {}
        names = item.get("names") if isinstance(item, dict) and item.get("_type") == "ClassLabel" else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            found[name] = tuple(names)
    return found


def _item_type(type_: Any) -> Any:
    """The type of the items of a list; None of any other type."""
    types = _pyarrow().types
    if not (types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)):
        return None
    item = type_.value_type
    return item.value_type if types.is_dictionary(item) else item


def _is_text(type_: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_))


def _is_printed(type_: Any) -> bool:
    """Whether values of a type are read as strings: dates, times, decimal numbers."""
    types = _pyarrow().types
    return bool(types.is_temporal(type_) or types.is_decimal(type_))


def _is_json(type_: Any) -> bool:
    """Whether values of a type have a JSON form."""
    types = _pyarrow().types
    if types.is_dictionary(type_):
        return _is_json(type_.value_type)
    if types.is_struct(type_):
        return all(_is_json(type_.field(i).type) for i in range(type_.num_fields))
    if (item := _item_type(type_)) is not None:
        return _is_json(item)
    tests = (_is_text, types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return any(test(type_) for test in tests)


# ----------------------------------------------------------------------------------------------------------- detection


def _detect_columns(table: _Table, dialect: HfDialect, options: Mapping[str, Any]) -> dict[str, Any]:
    """Detect the layout of a table."""
    columns = [column.name for column in table.schema]
    if len(set(columns)) < len(columns):
        raise InputError("two columns of one name", remedy="rename one")
    for option in ("token_field", "tag_field", "entity_field"):
        if option in options and options[option] not in columns:
            raise InputError(f"no column {options[option]!r}", remedy=f"it has: {', '.join(columns)}")
    rows = list(islice(_rows_of(table, dialect), _BATCH_SIZE))
    tokens = _find_tokens(table, rows, options.get("token_field"))
    found = detect_fields(rows, {**options, "names": dialect.names, "token_field": tokens})
    where = "entities" if "entity_field" in found else "tags" if "tag_field" in found else "auto"
    names = _class_names(table.features).get(found.get("tag_field", ""), ())
    return {"mentions": where, **without(found, ("entities", "label")), "names": names}


def _find_tokens(table: _Table, rows: Sequence[Mapping[str, Any]], given: Any) -> Any:
    """The column of tokens: the one that is given, one with a name of tokens, or the only one of lists of words."""
    items = {column.name: _item_type(column.type) for column in table.schema}
    texts = [name for name, item in items.items() if item is not None and _is_text(item)]
    if given is not None and given not in texts:
        raise InputError(f"the column {given!r} holds no lists of strings", remedy="name another: token_field")
    name = given or next((name for name in TOKEN_NAMES if name in texts), None)
    if name is not None:
        return name
    values = {name: [value for row in rows for value in row[name] or ()] for name in texts}
    candidates = [name for name in texts if not are_tags(values[name], name)]
    if len(candidates) == 1:
        return candidates[0]
    several = f"several could be: {', '.join(candidates)}"
    hint = several if candidates else f"it has: {', '.join(table.schema.names) or 'no column'}"
    raise InputError("no column of tokens is known", remedy=f"name it: token_field; {hint}")


# ------------------------------------------------------------------------------------------------------------- reading


def _values_of(column: Any) -> list[Any]:
    """The values of a column; lists of plain values are converted at once, which is ten times faster."""
    types = _pyarrow().types
    is_list = types.is_list(column.type) or types.is_large_list(column.type)
    if not is_list or types.is_nested(column.type.value_type) or column.null_count:
        return list(column.to_pylist())
    bounds = column.offsets.to_pylist()
    first = bounds[0]
    values = column.values.slice(first, bounds[-1] - first).to_pylist()
    return [values[a - first : b - first] for a, b in pairwise(bounds)]


def _rows_of(table: _Table, dialect: HfDialect, reading: ReadReport | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a table; numbers of classes as their names."""
    pa = _pyarrow()
    types = {column.name: column.type for column in table.schema}
    for name in [name for name, type_ in types.items() if not (_is_json(type_) or _is_printed(type_))]:
        type_ = types.pop(name)
        if reading is not None:
            reading.notes[f"column {name!r} of {type_} left out"] += 1
    classes = _class_names(table.features)
    if dialect.names and dialect.tag_name in classes:
        classes[dialect.tag_name] = dialect.names
    for batch in table.batches(list(types)):
        columns = {}
        for name in types:
            column = batch.column(name)
            values = _values_of(column.cast(pa.string()) if _is_printed(column.type) else column)
            columns[name] = [_named(value, classes[name]) for value in values] if name in classes else values
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(types, row, strict=True))


def _named(value: Any, names: Sequence[str]) -> Any:
    """A number, or those in a list, as their names; what has none stays."""
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return names[value] if type(value) is int and 0 <= value < len(names) else value


def _read_table(table: _Table, dialect: HfDialect, reading: ReadReport, path: Path | None) -> Iterator[Sentence]:
    """Read the sentences of a table."""

    def parse(_number: int, row: dict[str, Any]) -> Iterable[Sentence]:
        return (_parse(row, dialect, reading),)

    return read_records(path, enumerate(_rows_of(table, dialect, reading), start=1), parse, reading, unit="row")


def _parse(row: dict[str, Any], layout: RecordLayout, reading: ReadReport) -> Sentence:
    record = {name: value for name, value in row.items() if value is not None and value == value}  # noqa: PLR0124 - NaN
    others = _fields_of_json(record.pop(JSON_COLUMN, None))
    record |= {name: others.pop(name) for name in ("columns", ENTITY_FIELDS) if name in others}
    if type(others.get(SPACES)) is list:  # the column of texts holds the text of the tokens all the same
        record[SPACES] = others.pop(SPACES)
        record.pop("text", None)
    entities = as_list_of_objects(record.get(layout.entity_field))
    if isinstance(entities, list):  # of structures: a field that one lacks is None
        record[layout.entity_field] = [
            {name: value for name, value in entity.items() if value is not None} if isinstance(entity, dict) else entity
            for entity in entities
        ]
    sentence = parse_record(record, layout, reading, is_own=False)
    return sentence.with_fields({**sentence.fields, **others}) if others else sentence


def _fields_of_json(text: Any) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        fields = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        fields = None
    return fields if isinstance(fields, dict) else {JSON_COLUMN: text}


# ------------------------------------------------------------------------------------------------------------- writing


def create_table(sentences: Iterable[Sentence], dialect: HfDialect) -> Any:
    """Convert sentences to a table."""
    pa = _pyarrow()
    rows = list(sentences)
    columns: dict[str, Any] = {}
    if any(sentence.id is not None for sentence in rows):
        columns["id"] = pa.array([sentence.id for sentence in rows], pa.string())
    columns[dialect.token_field] = _chunked([s.tokens for s in rows], pa.list_(pa.string()))
    is_flat = all(sentence.is_flat for sentence in rows)
    names: list[str] | None = None
    if dialect.mentions == "tags" or (dialect.mentions == "auto" and is_flat):
        columns[dialect.tag_name], names = _tags(rows, dialect)
    else:
        columns[dialect.entity_field] = _entities(rows)
    other: list[dict[str, Any]] = [{} for _ in rows]  # fields without a separate column, by row
    if any(sentence.spaces is not None for sentence in rows):
        columns["text"] = pa.array(list(map(_text, rows, other)), pa.string())
    for name, values in _further_columns(rows, columns.keys() | {JSON_COLUMN}, other).items():
        if (column := _column(values)) is not None:
            columns[name] = column
        else:
            _move(name, values, other)
    if any(other):
        columns[JSON_COLUMN] = pa.array([_dumped(fields) if fields else None for fields in other])
    features = {name: _feature(values.type) for name, values in columns.items()}
    if names is not None:
        features[dialect.tag_name]["feature"] = {"names": names, "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.table(columns).replace_schema_metadata(metadata)


def _chunked(values: Sequence[Any], type_: Any) -> Any:
    """A column in chunks, so that no list of all values is copied at once."""
    pa = _pyarrow()
    starts = range(0, len(values), _BATCH_SIZE)
    return pa.chunked_array([pa.array(values[start : start + _BATCH_SIZE], type_) for start in starts], type_)


def _feature(type_: Any) -> Any:
    """Hugging Face's description of a column that is written."""
    types = _pyarrow().types
    if types.is_struct(type_):
        return {type_.field(i).name: _feature(type_.field(i).type) for i in range(type_.num_fields)}
    if not types.is_list(type_):
        return {"dtype": "float64" if types.is_float64(type_) else str(type_), "_type": "Value"}
    item = _feature(type_.value_type)
    # A list of structures is a list, which all versions read in the same way.
    return {"feature": item, "_type": "Sequence"} if "_type" in item else [item]


def _tags(rows: Sequence[Sentence], dialect: HfDialect) -> tuple[Any, list[str]]:
    """The column of tags, numbers, and their names."""
    pa = _pyarrow()
    labels = sorted({mention.label for sentence in rows for mention in sentence.mentions})
    prefixes = [f"{prefix}-" for prefix in _PREFIXES.get(dialect.scheme, "")] or [""]
    tags = ["O", *(f"{prefix}{label}" for label in labels for prefix in prefixes)]
    names = list(dict.fromkeys([*dialect.names, *tags]))
    number = {tag: i for i, tag in enumerate(names)}
    numbers = [[number[tag] for tag in sentence.iob(dialect.scheme)] for sentence in rows]
    return _chunked(numbers, pa.list_(pa.int64())), names


def _entities(rows: Sequence[Sentence]) -> Any:
    """The column of entities."""
    pa = _pyarrow()
    type_ = pa.list_(pa.struct([("label", pa.string()), ("spans", pa.list_(pa.list_(pa.int64())))]))
    entities = [[{"label": m.label, "spans": m.spans} for m in sentence.mentions] for sentence in rows]
    return pa.array(entities, type_)


def _text(sentence: Sentence, other: dict[str, Any]) -> str | None:
    """The text of a sentence; white space that it does not show is stored in the other fields."""
    if sentence.spaces is None:
        text = sentence.fields.get("text")  # a field, not the text of the tokens
        return text if isinstance(text, str) else None
    if align_spaces(sentence.tokens, sentence.text) != sentence.spaces:
        other[SPACES] = list(sentence.spaces)
    return sentence.text


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
        has_lists = any(isinstance(value, (list, dict)) for value, _ in present)
        is_reserved = name in ("tokens", "entities") or (name in RESERVED and has_lists)
        if is_reserved or (present and all(isinstance(v, list) and len(v) == len(s) for v, s in present)):
            _move(name, columns.pop(name), other)
    return columns


def _column(values: list[Any]) -> Any:
    """A column of strings, numbers or truth values, or of lists of strings; None of others."""
    pa = _pyarrow()
    kinds = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
    given = [value for value in values if value is not None]
    types = set(map(type, given))
    is_list = types == {list}
    items = set(map(type, chain.from_iterable(given))) if is_list else types
    if len(items) != 1 or (is_list and items != {str}) or not items <= kinds.keys():
        return None
    type_ = kinds[items.pop()]
    try:
        return pa.array(values, pa.list_(type_) if is_list else type_)
    except (pa.ArrowException, ValueError, OverflowError):  # half a character, or an integer of more than 64 bits
        return None


def _dumped(fields: dict[str, Any]) -> str:
    try:
        return orjson.dumps(fields).decode()
    except TypeError:  # an integer of more than 64 bits, or a lone surrogate
        return json.dumps(fields)


# --------------------------------------------------------------------------------------------------- datasets in memory


_datasets = partial(import_extra, "datasets", "datasets")


def from_datasets(dataset: Any, *, repair: bool = False, **options: Any) -> Any:
    """Read a dataset of Hugging Face as a corpus.

    Args:
        dataset: a ``Dataset``, ``IterableDataset`` or ``DatasetDict``, or a mapping of names to datasets.
        repair: whether to repair invalid tag sequences instead of raising.
        options: the layout, as the fields of `entaug.formats.parquet.HfDialect`; detected by default.

    Returns:
        A `entaug.Corpus`; for several parts a dict of them.

    Raises:
        InputError: a row is invalid, or no column of tokens is found.
        ParameterError: `dataset` is not a dataset, or an option is not valid.
        MissingExtraError: the package is not installed.

    Example:
        >>> import pytest; datasets = pytest.importorskip("datasets")
        >>> dataset = datasets.Dataset.from_dict({"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]]})
        >>> from_datasets(dataset)[0].mentions
        (Mention(label='PER', spans=((0, 1),)),)
    """
    if isinstance(dataset, Mapping):
        return {str(name): from_datasets(part, repair=repair, **options) for name, part in dataset.items()}
    pa = _pyarrow()
    datasets = _datasets()
    if not isinstance(dataset, (datasets.Dataset, datasets.IterableDataset)):
        raise ParameterError(f"a dataset is wanted, not {type(dataset).__name__}")
    given = {name: value for name, value in options.items() if value is not None}
    dialect = Parquet().dialect(**given)
    arrow = dataset.with_format("arrow")

    def batches(columns: Sequence[str] | None) -> Iterator[Any]:
        for table in arrow.iter(batch_size=2000):
            selected = table if columns is None else table.select(columns)
            yield from selected.combine_chunks().to_batches()

    first = next(batches(None), None)
    if first is None:
        raise no_sentences()
    features = dataset.features.to_dict() if dataset.features is not None else _features_of(first.schema)
    table = _Table(first.schema, features, batches)
    try:
        detected = _detect_columns(table, dialect, given)
        dialect = replace(dialect, **{name: value for name, value in detected.items() if name not in given})
        reading = ReadReport(repair=repair)
        sentences = tuple(_read_table(table, dialect, reading, None))
    except pa.ArrowException as error:
        raise InputError(f"cannot be read ({error})") from None
    corpus = Corpus(sentences, "a dataset", reading.lines())
    warn_of_notes(corpus.notes, "a dataset", 2)
    return corpus


def to_datasets(sentences: Iterable[Sentence] | Mapping[str, Iterable[Sentence]], **options: Any) -> Any:
    """Convert sentences to a dataset of Hugging Face.

    Args:
        sentences: the sentences; or those of each part by its name, which will have the same columns and the same
            numbers for tags.
        options: the layout, as the fields of `entaug.formats.parquet.HfDialect`.

    Returns:
        A ``Dataset``; for several parts a ``DatasetDict``.

    Raises:
        LossError: a dataset cannot represent a sentence.
        MissingExtraError: the package is not installed.

    Example:
        >>> import pytest; datasets = pytest.importorskip("datasets")
        >>> from entaug import Mention
        >>> parts = to_datasets({"train": [Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])]})
        >>> parts["train"].features["ner_tags"].feature.names, parts["train"][0]["ner_tags"]
        (['O', 'B-PER', 'I-PER'], [1, 0])
    """
    datasets = _datasets()
    format_ = Parquet()
    dialect = format_.dialect(**options)
    parts = sentences if isinstance(sentences, Mapping) else {"": sentences}
    rows = {name: list(part) for name, part in parts.items()}
    everything = [sentence for part in rows.values() for sentence in part]
    for sentence in everything:
        format_.check(sentence, dialect)
    table = create_table((format_.as_stored(sentence, dialect) for sentence in everything), dialect)

    def dataset(part: Any, name: str | None) -> Any:
        split = None if name is None else datasets.NamedSplit(name)
        return datasets.Dataset(datasets.table.InMemoryTable(part), split=split)

    if parts is not sentences:
        return dataset(table, dialect.split_name)
    starts = accumulate(map(len, rows.values()), initial=0)
    pairs = zip(rows.items(), starts, strict=False)
    return datasets.DatasetDict({name: dataset(table.slice(start, len(part)), name) for (name, part), start in pairs})
