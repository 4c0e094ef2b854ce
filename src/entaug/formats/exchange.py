"""Sentences as data frames of pandas and documents of spaCy, and back: by the formats that their files have."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from entaug.config.registry import import_object
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.formats import read, write

_DATA_FRAME, _DOC_BIN = "pandas:DataFrame", "spacy.tokens:DocBin"


def to_pandas(sentences: Iterable[Sentence]) -> Any:
    """Convert sentences to a data frame of pandas with a row for each.

    Args:
        sentences: the sentences.

    Returns:
        A ``DataFrame`` with the columns of JSON lines of entaug: ``tokens``, ``entities``, and ``id`` and further
        fields where sentences have them.

    Raises:
        MissingExtraError: pandas is not installed.

    Example:
        >>> from entaug import Mention
        >>> frame = to_pandas([Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])])
        >>> frame.entities[0]
        [{'start': 0, 'end': 1, 'type': 'PER'}]
    """
    data_frame = import_object(_DATA_FRAME)
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, "frame.jsonl")
        write(sentences, file)
        return data_frame([orjson.loads(line) for line in file.read_bytes().splitlines()])


def from_pandas(frame: Any, *, repair: bool = False, **options: Any) -> Corpus:
    """Read a data frame of pandas as a corpus.

    Args:
        frame: a ``DataFrame`` with a row for each sentence, with lists of tokens and of tags, or entities, in columns
            as in JSON lines; or with a row for each token or mention, in columns as in a CSV table.
        repair: whether to repair invalid tag sequences instead of raising.
        options: the layout, as options of the format ``json`` or ``table``; detected by default.

    Returns:
        The sentences.

    Raises:
        InputError: a row is invalid, or no column of tokens is found.
        ParameterError: `frame` is not a data frame.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]]})
        >>> from_pandas(frame)[0].mentions
        (Mention(label='PER', spans=((0, 1),)),)
    """
    if not isinstance(frame, import_object(_DATA_FRAME)):
        raise ParameterError(f"a data frame of pandas is wanted, not {type(frame).__name__}")
    rows = frame.to_dict("records")
    has_lists = any(not isinstance(value, str) and hasattr(value, "__len__") for row in rows for value in row.values())
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, f"frame.{'jsonl' if has_lists else 'csv'}")
        if has_lists:
            # A cell without a value is a field that a sentence does not have.
            fields = [{str(key): value for key, value in row.items() if not _is_missing(value)} for row in rows]
            file.write_bytes(b"".join(orjson.dumps(row, default=_as_list) + b"\n" for row in fields))
        else:
            frame.to_csv(file, index=False)
        return _read(file, "the data frame", repair=repair, **options)


def to_spacy(sentences: Iterable[Sentence], nlp: Any = None) -> list[Any]:
    """Convert sentences to documents of spaCy.

    Args:
        sentences: the sentences.
        nlp: the pipeline whose vocabulary the documents have; None for a blank English one.

    Returns:
        A ``Doc`` for each sentence, with its mentions as entities, or in the group of spans ``"sc"`` where some are
        nested.

    Raises:
        LossError: a mention is discontinuous.
        MissingExtraError: spaCy is not installed.

    Example:
        >>> from entaug import Mention
        >>> [doc] = to_spacy([Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])])
        >>> doc.ents[0].text, doc.ents[0].label_
        ('Ada', 'PER')
    """
    doc_bin = import_object(_DOC_BIN)
    vocab = (nlp or import_object("spacy:blank")("en")).vocab
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, "docs.spacy")
        write(sentences, file)
        return list(doc_bin(store_user_data=True).from_disk(file).get_docs(vocab))


def from_spacy(docs: Iterable[Any], *, repair: bool = False, **options: Any) -> Corpus:
    """Read documents of spaCy as a corpus, each as one sentence.

    Args:
        docs: the documents.
        repair: whether to repair invalid tag sequences instead of raising.
        options: the layout, as options of the format ``docbin``, for example the group of spans to read.

    Returns:
        The sentences.

    Raises:
        InputError: a document is invalid, or the mentions are in several groups.
        ParameterError: there is something else than documents.

    Example:
        >>> import spacy
        >>> doc = spacy.tokens.Doc(spacy.blank("en").vocab, words=["Ada", "sang"], ents=["B-PER", "O"])
        >>> from_spacy([doc])[0].mentions
        (Mention(label='PER', spans=((0, 1),)),)
    """
    doc_bin, doc_type = import_object(_DOC_BIN), import_object("spacy.tokens:Doc")
    docs = list(docs)
    if wrong := [doc for doc in docs if not isinstance(doc, doc_type)]:
        raise ParameterError(f"documents of spaCy are wanted, not {type(wrong[0]).__name__}")
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, "docs.spacy")
        doc_bin(docs=docs, store_user_data=True).to_disk(file)
        return _read(file, "the documents", repair=repair, **options)


def _as_list(array: Any) -> Any:
    """The values of an array of NumPy, for JSON."""
    return array.tolist()


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _read(file: Path, name: str, **options: Any) -> Corpus:
    """Read a temporary file, which is not named in messages."""
    try:
        corpus = read(file, **options)
    except InputError as error:
        error.path = name
        raise
    return Corpus(corpus, None, corpus.notes)
