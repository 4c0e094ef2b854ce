"""Hugging Face: Parquet files, folders of ``Dataset.save_to_disk``, and datasets in memory.

Files are read and written by pyarrow alone; only `from_datasets` and `to_datasets` need ``datasets``.
"""

from __future__ import annotations

import abc
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from entaug.corpus import Corpus
from entaug.data import Sentence
from entaug.errors import InputError, LossError, MissingExtraError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import read_beginning, read_bytes
from entaug.formats.base import FormatCapabilities, Reading
from entaug.formats.buffered import BufferedFormat, flattened
from entaug.formats.huggingface.columns import table_of
from entaug.formats.huggingface.tables import HfDialect, Source, found_in, pyarrow, sentences_of
from entaug.tags import OVERLAP, canonical_scheme, flatten

__all__ = ["DatasetFolder", "HfDialect", "Parquet", "from_datasets", "to_datasets"]

_MENTIONS = ("auto", "tags", "entities")
_ROWS = 10_000  # of a row group
_DICT, _INFO, _STATE = "dataset_dict.json", "dataset_info.json", "state.json"
_DATA = re.compile(r"data-[0-9]{5}-of-[0-9]{5}\.arrow")
_REMEDY = "fetch it anew, or write it again"


def _dialect(options: Mapping[str, Any]) -> HfDialect:
    """A dialect from options given by hand."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("token_column", "tag_column", "entity_column"):
        if not isinstance(given.get(name, ""), str):
            raise ParameterError(f"{name} must be the name of a column, not {given[name]!r}")
    if isinstance(given.get("names"), str):
        given["names"] = tuple(name.strip() for name in given["names"].split(","))
    if "scheme" in given:
        given["scheme"] = canonical_scheme(given["scheme"])
    made = replace(HfDialect(), **given)
    for name, known in (("mentions", _MENTIONS), ("overlap", OVERLAP)):
        if getattr(made, name) not in known:
            raise ParameterError(f"{name} must be one of {', '.join(known)}, not {getattr(made, name)!r}")
    return made


class _Tables(BufferedFormat, abc.ABC):
    """What both have in common; see `entaug.formats.base.Format` for the methods."""

    carries = FormatCapabilities(nested=True, discontinuous=True, columns=True, fields=True, spaces=True)

    @abc.abstractmethod
    def _source(self, path: Path, dialect: HfDialect) -> Source:
        """The table of a file."""

    @abc.abstractmethod
    def _put(self, table: Any, path: Path, dialect: HfDialect) -> None:
        """Write a table."""

    def dialect(self, **options: Any) -> HfDialect:
        """A dialect from options given by hand."""
        return _dialect(options)

    def look(self, path: Path, **options: Any) -> HfDialect:
        """Find the columns."""
        given = self.dialect(**options)
        pa = pyarrow()
        try:
            return found_in(self._source(path, given), given, options)
        except InputError as error:
            error.path = error.path or str(path)
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, error) from None

    def sentences(self, path: Path, dialect: HfDialect, reading: Reading) -> Iterator[Sentence]:
        """The rows as sentences.

        Raises:
            InputError: the file is damaged, a row is no sentence, an id was there before, no sentence at all.
        """
        pa = pyarrow()
        try:
            yield from sentences_of(self._source(path, dialect), dialect, reading, str(path))
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise _damaged(path, error) from None

    def carried(self, sentence: Sentence, dialect: HfDialect) -> Sentence:
        """The sentence without the mentions that `overlap` leaves out."""
        if dialect.overlap == "error" or sentence.is_flat:
            return sentence
        return flattened(sentence, dialect.overlap)

    def check(self, sentence: Sentence, dialect: HfDialect) -> None:
        """Raise where a table has no place for what a sentence holds.

        Raises:
            LossError: mentions that overlap or have gaps, and tags are wanted; text that is no Unicode.
        """
        path = f"sentence {sentence.id or ' '.join(sentence.tokens[:6])}"
        mentions = self.carried(sentence, dialect).mentions
        if dialect.mentions == "tags":
            try:
                flatten(mentions, "error")
            except LossError as error:
                error.path, error.remedy = path, "pass --overlap outermost or innermost, or write entities"
                raise
        try:
            held = [*sentence.tokens, *(m.label for m in mentions), sentence.id or "", *(sentence.spaces or ())]
            "".join([*held, *sentence.columns, *sentence.fields]).encode()
            "".join(value for values in sentence.columns.values() for value in values).encode()
            json.dumps(dict(sentence.fields))
        except (TypeError, ValueError, RecursionError) as error:
            raise LossError(f"cannot be written ({error})", path=path) from None

    def write(self, sentences: Iterable[Sentence], path: Path, dialect: HfDialect) -> None:
        """Write a table."""
        self._put(table_of((self.carried(sentence, dialect) for sentence in sentences), dialect), path, dialect)


def _damaged(path: Path, error: Exception) -> InputError:
    told = str(error).split("\n", 1)[0][:200]
    return InputError(f"damaged, or not what its name says ({told})", path=str(path), remedy=_REMEDY)


def _features(schema: Any, path: Path | None = None) -> dict[str, Any]:
    """What Hugging Face says of the columns: beside the file, or in it."""
    try:
        if path is not None and path.exists():
            found = json.loads(read_bytes(path)).get("features")
        else:
            found = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


class Parquet(_Tables):
    """Parquet files."""

    name = "parquet"
    title = "Parquet"
    extensions = (".parquet",)

    def recognises(self, path: Path) -> bool:
        """Whether it begins as Parquet does."""
        return read_beginning(path, 4) == b"PAR1"

    def _source(self, path: Path, dialect: HfDialect) -> Source:
        del dialect
        pa = pyarrow()
        from pyarrow import parquet

        file = parquet.ParquetFile(pa.BufferReader(read_bytes(path)) if path.suffix == ".gz" else str(path))
        schema = file.schema_arrow

        def batches(columns: Sequence[str] | None) -> Iterator[Any]:
            wanted = None if columns is None else list(columns)
            for batch in file.iter_batches(batch_size=2000, columns=wanted):
                batch.validate(full=True)
                yield batch

        return Source(schema, _features(schema), batches)

    def _put(self, table: Any, path: Path, dialect: HfDialect) -> None:
        del dialect
        from pyarrow import parquet

        with atomic_file(path) as out:
            parquet.write_table(table, out, row_group_size=_ROWS)


class DatasetFolder(_Tables):
    """Folders that ``Dataset.save_to_disk`` wrote, or ``DatasetDict.save_to_disk``."""

    name = "datasets"
    title = "Hugging Face dataset folder"
    folder = True

    def recognises(self, path: Path) -> bool:
        """Whether the files are in it that tell of such a folder."""
        return (path / _DICT).is_file() or ((path / _STATE).is_file() and (path / _INFO).is_file())

    def replaceable(self, path: Path) -> bool:
        """Whether a folder holds what tells of a dataset, and its data, alone: several parts are more than we write."""
        names = {file.name for file in path.iterdir() if file.is_file() and not file.is_symlink()}
        ours = {_INFO, _STATE} <= names and all(name in (_INFO, _STATE) or _DATA.fullmatch(name) for name in names)
        return ours and len(names) == sum(1 for _ in path.iterdir())

    def _source(self, path: Path, dialect: HfDialect) -> Source:
        pa = pyarrow()
        folder = self._split(path, dialect.split_name)
        state = _object(folder / _STATE)
        listed = state.get("_data_files")
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
                            for start in range(0, len(batch), 2000):
                                yield (batch if columns is None else batch.select(columns)).slice(start, 2000)
                except FileNotFoundError:
                    raise InputError("no such file", path=str(folder / name), remedy=_REMEDY) from None

        with pa.memory_map(str(folder / names[0])) as mapped, pa.ipc.open_stream(mapped) as stream:
            schema = stream.schema
        return Source(schema, _features(schema, folder / _INFO), batches)

    def _split(self, path: Path, wanted: str | None) -> Path:
        """The folder of the part to read."""
        if not (path / _DICT).is_file():
            return path
        listed = _object(path / _DICT).get("splits")
        splits = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
        if wanted is None and len(splits) == 1:
            wanted = splits[0]
        if wanted not in splits:
            told = "holds several parts" if wanted is None else f"holds no part {wanted!r}"
            remedy = f"choose one with split_name: {', '.join(splits)}"
            raise InputError(told, path=str(path), remedy=remedy)
        assert wanted is not None
        if Path(wanted).name != wanted:
            raise InputError(f"a part of the name {wanted!r}", path=str(path), remedy=_REMEDY)
        return path / wanted

    def _put(self, table: Any, path: Path, dialect: HfDialect) -> None:
        pa = pyarrow()
        path.mkdir()
        name = "data-00000-of-00001.arrow"
        with pa.OSFile(str(path / name), "wb") as out, pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table, max_chunksize=1000)
        digest = blake2b(digest_size=8)
        with (path / name).open("rb") as written:
            while block := written.read(1 << 20):
                digest.update(block)
        info = {"citation": "", "description": "", "features": _features(table.schema), "homepage": "", "license": ""}
        state: dict[str, Any] = {
            "_data_files": [{"filename": name}],
            "_fingerprint": digest.hexdigest(),
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": dialect.split_name,
        }
        for file, held in ((_INFO, info), (_STATE, state)):
            (path / file).write_text(json.dumps(held, indent=2, sort_keys=True), encoding="utf-8")


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("not a JSON object", path=str(path), remedy=_REMEDY)
    return found


# ----------------------------------------------------------------------------------------------------------- in memory


def _datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(error.name or "datasets", "datasets") from None
    return datasets


def from_datasets(dataset: Any, *, repair: bool = False, **options: Any) -> Any:
    """A dataset of Hugging Face as a corpus.

    Args:
        dataset: a ``Dataset`` or ``IterableDataset``; or a ``DatasetDict``, or any mapping of such.
        repair: mend broken tag sequences instead of raising.
        options: layout given by hand, as the fields of `HfDialect`.

    Returns:
        A `entaug.Corpus`; for several parts a dict of them.

    Raises:
        InputError: a row is no sentence; no column of tokens is known.
        MissingExtraError: the package is not installed.

    Example:
        >>> import pytest; datasets = pytest.importorskip("datasets")
        >>> made = datasets.Dataset.from_dict({"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]]})
        >>> from_datasets(made)[0].mentions
        (Mention(label='PER', spans=((0, 1),)),)
    """
    if isinstance(dataset, Mapping):
        return {str(name): from_datasets(part, repair=repair, **options) for name, part in dataset.items()}
    pa = pyarrow()
    datasets = _datasets()
    if not isinstance(dataset, (datasets.Dataset, datasets.IterableDataset)):
        raise ParameterError(f"a dataset is wanted, not {type(dataset).__name__}")
    given = _dialect(options)
    arrow = dataset.with_format("arrow")

    def batches(columns: Sequence[str] | None) -> Iterator[Any]:
        for table in arrow.iter(batch_size=2000):
            wanted = table if columns is None else table.select(columns)
            yield from wanted.combine_chunks().to_batches()

    first = next(batches(None), None)
    if first is None:
        raise InputError("no sentence in it", remedy="give one with labelled sentences")
    features = dataset.features.to_dict() if dataset.features is not None else _features(first.schema)
    source = Source(first.schema, features, batches)
    try:
        dialect = found_in(source, given, options)
        return Corpus(sentences_of(source, dialect, Reading(repair=repair), None), "a dataset")
    except pa.ArrowException as error:
        raise InputError(f"cannot be read ({error})") from None


def to_datasets(sentences: Iterable[Sentence] | Mapping[str, Iterable[Sentence]], **options: Any) -> Any:
    """Sentences as a dataset of Hugging Face.

    Args:
        sentences: the sentences; or those of each part by its name, which will have the same columns and the same
            numbers for tags.
        options: layout given by hand, as the fields of `HfDialect`.

    Returns:
        A ``Dataset``; for several parts a ``DatasetDict``.

    Raises:
        LossError: it cannot hold a sentence.
        MissingExtraError: the package is not installed.

    Example:
        >>> import pytest; datasets = pytest.importorskip("datasets")
        >>> from entaug import Mention
        >>> made = to_datasets({"train": [Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])]})
        >>> made["train"].features["ner_tags"].feature.names, made["train"][0]["ner_tags"]
        (['O', 'B-PER', 'I-PER'], [1, 0])
    """
    datasets = _datasets()
    format_ = Parquet()
    dialect = format_.dialect(**options)
    parts: dict[str, list[Sentence]] | None = None
    if isinstance(sentences, Mapping):
        parts = {name: list(part) for name, part in sentences.items()}
        every = [one for part in parts.values() for one in part]
    else:
        every = list(sentences)
    for sentence in every:
        format_.check(sentence, dialect)
    table = table_of((format_.carried(sentence, dialect) for sentence in every), dialect)

    def dataset(piece: Any, name: str | None) -> Any:
        split = None if name is None else datasets.NamedSplit(name)
        return datasets.Dataset(datasets.table.InMemoryTable(piece), split=split)

    if parts is None:
        return dataset(table, dialect.split_name)
    made = {}
    start = 0
    for name, part in parts.items():
        made[name] = dataset(table.slice(start, len(part)), name)
        start += len(part)
    return datasets.DatasetDict(made)
