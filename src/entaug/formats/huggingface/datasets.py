"""Datasets of Hugging Face in memory; needs the package ``datasets``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.errors import InputError, MissingExtraError, ParameterError
from entaug.formats.base import ReadReport, note_lines, warn_of_notes
from entaug.formats.huggingface.dialect import Table, import_pyarrow
from entaug.formats.huggingface.format import Parquet, features_of
from entaug.formats.huggingface.reader import detect_dialect, read_table
from entaug.formats.huggingface.writer import create_table
from entaug.formats.records import no_sentences

__all__ = ["from_datasets", "to_datasets"]


def _import_datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(error.name or "datasets", "datasets") from None
    return datasets


def from_datasets(dataset: Any, *, repair: bool = False, **options: Any) -> Any:
    """Read a dataset of Hugging Face as a corpus.

    Args:
        dataset: a ``Dataset``, ``IterableDataset`` or ``DatasetDict``, or a mapping of names to datasets.
        repair: whether to repair invalid tag sequences instead of raising.
        options: the layout, as the fields of `entaug.formats.huggingface.dialect.HfDialect`; detected by default.

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
    pa = import_pyarrow()
    datasets = _import_datasets()
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
    features = dataset.features.to_dict() if dataset.features is not None else features_of(first.schema)
    table = Table(first.schema, features, batches)
    try:
        detected = detect_dialect(table, dialect, given)
        dialect = replace(dialect, **{name: value for name, value in detected.items() if name not in given})
        reading = ReadReport(repair=repair)
        sentences = tuple(read_table(table, dialect, reading, None))
    except pa.ArrowException as error:
        raise InputError(f"cannot be read ({error})") from None
    corpus = Corpus(sentences, "a dataset", note_lines(reading.notes))
    warn_of_notes(corpus.notes, "a dataset", 2)
    return corpus


def to_datasets(sentences: Iterable[Sentence] | Mapping[str, Iterable[Sentence]], **options: Any) -> Any:
    """Convert sentences to a dataset of Hugging Face.

    Args:
        sentences: the sentences; or those of each part by its name, which will have the same columns and the same
            numbers for tags.
        options: the layout, as the fields of `entaug.formats.huggingface.dialect.HfDialect`.

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
    datasets = _import_datasets()
    format_ = Parquet()
    dialect = format_.dialect(**options)
    parts: dict[str, list[Sentence]] | None = None
    if isinstance(sentences, Mapping):
        parts = {name: list(part) for name, part in sentences.items()}
        rows = [sentence for part in parts.values() for sentence in part]
    else:
        rows = list(sentences)
    for sentence in rows:
        format_.check(sentence, dialect)
    table = create_table((format_.as_stored(sentence, dialect) for sentence in rows), dialect)

    def dataset(part: Any, name: str | None) -> Any:
        split = None if name is None else datasets.NamedSplit(name)
        return datasets.Dataset(datasets.table.InMemoryTable(part), split=split)

    if parts is None:
        return dataset(table, dialect.split_name)
    created = {}
    start = 0
    for name, part in parts.items():
        created[name] = dataset(table.slice(start, len(part)), name)
        start += len(part)
    return datasets.DatasetDict(created)
