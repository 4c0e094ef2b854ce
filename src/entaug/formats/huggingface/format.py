"""Hugging Face: Parquet files and folders of ``Dataset.save_to_disk``, read and written with pyarrow only."""

from __future__ import annotations

import abc
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.errors import InputError, LossError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import FormatCapabilities, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.huggingface.dialect import HfDialect, Table, import_pyarrow
from entaug.formats.huggingface.reader import detect_dialect, read_table
from entaug.formats.huggingface.writer import create_table
from entaug.formats.records import several_parts

__all__ = ["DatasetFolder", "HfDialect", "Parquet", "TableFormat", "features_of"]

_ROW_GROUP = 10_000  # rows
_BATCH_SIZE = 2000  # rows
_DICT, _INFO, _STATE = "dataset_dict.json", "dataset_info.json", "state.json"
_DATA = re.compile(r"data-[0-9]{5}-of-[0-9]{5}\.arrow")
_REMEDY = "fetch it anew, or write it again"


class TableFormat(BufferedFormat):
    """Base class of formats that hold a table; see `entaug.formats.buffered.BufferedFormat` for the methods."""

    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)
    dialect_class = HfDialect

    @abc.abstractmethod
    def open_table(self, path: Path, dialect: HfDialect) -> Table:
        """Open the table of a file."""

    @abc.abstractmethod
    def write_table(self, table: Any, path: Path, dialect: HfDialect) -> None:
        """Write a table."""

    def detect(self, path: Path, dialect: HfDialect, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `entaug.formats.base.BaseFormat.detect`: the columns."""
        with _faults_named(path):
            return detect_dialect(self.open_table(path, dialect), dialect, options)

    def is_empty(self, path: Path) -> bool:
        """Whether a table has no rows."""
        with _faults_named(path):
            return not any(len(batch) for batch in self.open_table(path, self.dialect()).batches(None))

    def sentences(self, path: Path, dialect: HfDialect, reading: ReadReport) -> Iterator[Sentence]:
        """See `entaug.formats.buffered.BufferedFormat.sentences`."""
        with _faults_named(path):
            yield from read_table(self.open_table(path, dialect), dialect, reading, path)

    def check(self, sentence: Sentence, dialect: HfDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.check`: unsupported mentions, text that is not Unicode."""
        kept = self.as_stored(sentence, dialect)
        if dialect.mentions == "tags":
            self.check_flat(kept, "pass --overlap outermost or innermost, or write entities")
        try:
            labels = (mention.label for mention in kept.mentions)
            texts = [*sentence.tokens, *labels, sentence.id or "", *(sentence.spaces or ())]
            "".join([*texts, *sentence.columns, *sentence.fields]).encode()
            "".join(value for values in sentence.columns.values() for value in values).encode()
            json.dumps(dict(sentence.fields))
        except (TypeError, ValueError, RecursionError) as error:
            raise LossError(f"cannot be written ({error})", path=f"sentence {sentence.key}") from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: HfDialect) -> None:
        """See `entaug.formats.buffered.BufferedFormat.write`."""
        table = create_table((self.as_stored(sentence, dialect) for sentence in sentences), dialect)
        self.write_table(table, path, dialect)


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
    except (import_pyarrow().ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n", 1)[0][:200]
        raise InputError(f"damaged, or not what its name says ({reason})", path=str(path), remedy=_REMEDY) from None


def features_of(schema: Any, info: Path | None = None) -> dict[str, Any]:
    """Read Hugging Face's description of the columns."""
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
        """See `entaug.formats.base.BaseFormat.recognises`: it begins as Parquet does."""
        return read_beginning(path, 4) == b"PAR1"

    def open_table(self, path: Path, dialect: HfDialect) -> Table:
        """See `TableFormat.open_table`."""
        del dialect
        pa = import_pyarrow()
        from pyarrow import parquet

        file = parquet.ParquetFile(pa.BufferReader(read_bytes(path)) if path.suffix == ".gz" else str(path))

        def batches(columns: Sequence[str] | None) -> Iterator[Any]:
            for batch in file.iter_batches(batch_size=_BATCH_SIZE, columns=columns and list(columns)):
                batch.validate(full=True)
                yield batch

        return Table(file.schema_arrow, features_of(file.schema_arrow), batches)

    def write_table(self, table: Any, path: Path, dialect: HfDialect) -> None:
        """See `TableFormat.write_table`."""
        del dialect
        from pyarrow import parquet

        with atomic_file(path) as out:
            parquet.write_table(table, out, row_group_size=_ROW_GROUP)


class DatasetFolder(TableFormat):
    """Folders that ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote."""

    name = "datasets"
    title = "Hugging Face dataset folder"
    folder = True

    def recognises(self, path: Path) -> bool:
        """See `entaug.formats.base.BaseFormat.recognises`: it has the files that describe a dataset."""
        return (path / _DICT).is_file() or ((path / _STATE).is_file() and (path / _INFO).is_file())

    def replaceable(self, path: Path) -> bool:
        """See `entaug.formats.buffered.BufferedFormat.replaceable`; folders with several splits are never written."""
        files = {file.name: file.is_file() and not file.is_symlink() for file in path.iterdir()}
        is_ours = all(name in (_INFO, _STATE) or _DATA.fullmatch(name) for name in files)
        return {_INFO, _STATE} <= files.keys() and is_ours and all(files.values())

    def open_table(self, path: Path, dialect: HfDialect) -> Table:
        """See `TableFormat.open_table`."""
        pa = import_pyarrow()
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
        return Table(schema, features_of(schema, folder / _INFO), batches)

    def write_table(self, table: Any, path: Path, dialect: HfDialect) -> None:
        """See `TableFormat.write_table`."""
        pa = import_pyarrow()
        path.mkdir()
        name = "data-00000-of-00001.arrow"
        with pa.OSFile(str(path / name), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table, max_chunksize=1000)
        digest = blake2b(digest_size=8)
        with (path / name).open("rb") as written:
            while block := written.read(1 << 20):
                digest.update(block)
        features = features_of(table.schema)
        info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
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
    """Return the folder of the split to read."""
    if not (path / _DICT).is_file():
        return path
    listed = _read_object(path / _DICT).get("splits")
    splits = [split for split in listed if isinstance(split, str)] if isinstance(listed, list) else []
    name = splits[0] if name is None and len(splits) == 1 else name
    if name is None or name not in splits:
        error = several_parts(splits or ["none"], name)
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
