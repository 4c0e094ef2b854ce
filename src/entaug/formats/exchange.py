"""Corpora in memory: data frames, documents of spaCy, dictionaries and tuples, by the formats of their files."""

from __future__ import annotations

import functools
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from operator import methodcaller
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import orjson

from entaug.config.registry import import_object
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.progress import in_notebook, show_progress
from entaug.errors import EntaugError, InputError, InputWarning, ParameterError
from entaug.formats.base import warn_of_notes
from entaug.formats.files import read, write
from entaug.formats.parquet import from_datasets

_DATA_FRAME, _DOC_BIN = "pandas:DataFrame", "spacy.tokens:DocBin"
_WANTED = "sentences, dictionaries, tuples of tokens and tags, documents of spaCy, or a data frame"
_TAGGED, _SPANS = 2, 3  # numbers of items: tokens and tags, or text and its spans; start, end and label of a span

_folders: set[Path] = set()  # of corpora in memory that a function works on

P = ParamSpec("P")
R = TypeVar("R")


if TYPE_CHECKING:
    CorpusData = Any
    CorpusFiles = Any
else:  # the options of commands
    CorpusData = str | Path
    CorpusFiles = Sequence[str | Path]
"""What `takes_data` lets a function take where it reads a file, or several: those, or a corpus as for `as_corpus`."""


# --------------------------------------------------------------------------------------------------------- all of them


def as_corpus(data: Iterable[Any]) -> Corpus:
    """Read a corpus in memory, whatever its form: a corpus, or sentences, are taken as they are.

    Args:
        data: sentences; a data frame of pandas, see `from_pandas`; a dataset of Hugging Face, see
            `entaug.formats.from_datasets`; documents of spaCy; dictionaries in any layout of JSON lines; or tuples: of
            tokens and tags, or, as for training spaCy, of a text and its spans, or a dictionary with these as
            ``entities``.

    Returns:
        The sentences.

    Raises:
        InputError: an item is invalid.
        ParameterError: `data` has another form, or its items have several.

    Example:
        >>> as_corpus([(["Ada", "sang"], ["B-PER", "O"])])[0].mentions
        (Mention(label='PER', spans=((0, 1),)),)
        >>> as_corpus([("Ada sang", [(0, 3, "PER")])])[0].tokens
        ('Ada', 'sang')
    """
    if isinstance(data, Corpus):
        return data
    if isinstance(data, Mapping):
        names = ", ".join(map(str, data))[:60]
        advice = f"give one of its parts ({names}), or a list of dictionaries"
        raise ParameterError(f"{_WANTED} are wanted, not a {type(data).__name__}", remedy=advice)
    # A set has another order in each process.
    if isinstance(data, (str, bytes, os.PathLike, set, frozenset)) or not isinstance(data, Iterable):
        remedy = "read files with entaug.read" if isinstance(data, (str, os.PathLike)) else None
        raise ParameterError(f"{_WANTED} are wanted, not {data!r:.60}", remedy=remedy)
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        return from_pandas(data)
    if library == "datasets":
        corpus: Corpus = from_datasets(data)
        return corpus
    items = list(data)
    if all(isinstance(item, Sentence) for item in items):
        return Corpus(items, getattr(data, "source", None))
    if all(type(item).__module__.startswith("spacy.") for item in items):
        return from_spacy(items)
    rows = [_as_row(item, i) for i, item in enumerate(items, 1)]
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, "items.jsonl")
        _write_rows(rows, file)
        return _read(file, "the data", repair=False)


def _as_row(item: object, number: int) -> Mapping[Any, Any]:
    """A dictionary or a tuple as an object of JSON lines."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, (tuple, list)) and len(item) == _TAGGED:
        first, second = item
        if isinstance(first, str):
            spans = second.get("entities") if isinstance(second, Mapping) else second
            if isinstance(spans, (tuple, list)) and all(hasattr(s, "__len__") and len(s) == _SPANS for s in spans):
                return {"text": first, "label": spans}
        elif all(hasattr(part, "__len__") and not isinstance(part, (str, Mapping)) for part in item):
            return {"tokens": first, "ner_tags": second}
    raise ParameterError(f"{_WANTED} are wanted, all of one kind; item {number} is {item!r:.60}")


def is_in_memory(path: str | Path) -> bool:
    """Whether a file stands for a corpus that was given in memory, and is gone after the call."""
    return Path(path).parent in _folders


def named_path(path: str | Path) -> Path:
    """The path of a file for what is kept, such as a plan; of a corpus in memory a name that it may be written to."""
    return Path(f"given-{Path(path).name}") if is_in_memory(path) else Path(path)


def takes_data(
    *names: str,
    lists: Sequence[str] = (),
    texts: Sequence[str] = (),
    show: Callable[..., AbstractContextManager[Any]] = show_progress,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function whose arguments of these names are files take corpora in memory too."""
    # Those of `lists` are lists of files, and those of `texts` may be unlabelled. In a notebook the function shows its
    # progress, unless told otherwise.

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs)
            data: dict[str, Any] = {name: given.arguments.get(name) for name in names}
            data = {name: value for name, value in data.items() if not _is_file(value, name in (*lists, *texts))}
            is_shown = "progress" in signature.parameters and "progress" not in kwargs and in_notebook()
            if not data and not is_shown:
                return function(*args, **kwargs)
            for option in ("from_format", "read_options"):
                if data and kwargs.get(option):
                    remedy = "read the files with entaug.read, and give what it returns"
                    raise ParameterError(f"{option} is for files, and {next(iter(data))} is none", remedy=remedy)
            with ExitStack() as stack:
                if is_shown:
                    given.arguments["progress"] = stack.enter_context(show())
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="entaug-")))
                _folders.add(folder)
                stack.callback(_folders.discard, folder)
                for name, value in data.items():
                    given.arguments[name] = folder / f"{name}.jsonl"
                    if name in texts:
                        _write_text(value, given.arguments[name])
                    else:
                        write(as_corpus(value), given.arguments[name])
                    if name in lists:
                        given.arguments[name] = [given.arguments[name]]
                try:
                    result = function(*given.args, **given.kwargs)
                except EntaugError as error:
                    if error.path and is_in_memory(error.path):
                        error.path = Path(error.path).stem
                    raise
                if is_in_memory(str(getattr(result, "input", ""))):
                    result.input = Path(result.input).stem  # type: ignore[attr-defined]
                return result

        return call

    return decorate


def _write_text(data: Any, file: Path) -> None:
    """Write sentences, or dictionaries or a data frame with texts or tokens, as JSON lines."""
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        as_corpus(data)  # says what is wanted
    rows = data.to_dict("records") if hasattr(data, "columns") else data
    rows = [{"text": row} if isinstance(row, str) else row for row in rows]
    if all(isinstance(row, Mapping) for row in rows):
        _write_rows(rows, file)
    else:
        write(as_corpus(rows), file)


def _is_file(value: object, may_be_several: bool) -> bool:
    """Whether an argument names a file or several, or nothing."""
    if value is None or isinstance(value, (str, os.PathLike)):
        return True
    if not (may_be_several and isinstance(value, (tuple, list))):
        return False
    return all(isinstance(one, (str, os.PathLike)) for one in value)


# ---------------------------------------------------------------------------------------------------- pandas and spaCy


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
            _write_rows(fields, file)
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
        what = f"documents of spaCy are wanted, not {type(wrong[0]).__name__}"
        raise ParameterError(what, remedy="give a list of documents")
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, "docs.spacy")
        doc_bin(docs=docs, store_user_data=True).to_disk(file)
        return _read(file, "the documents", repair=repair, **options)


def _write_rows(rows: Iterable[Mapping[Any, Any]], file: Path) -> None:
    """Write objects as JSON lines."""
    with file.open("wb") as out:
        for number, row in enumerate(rows, start=1):
            try:
                out.write(orjson.dumps(row, default=methodcaller("tolist")) + b"\n")
            except TypeError as error:
                what = f"item {number} cannot be written as JSON ({error})"
                raise InputError(what, remedy="make it text or a number, or leave it out") from None


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _read(file: Path, name: str, **options: Any) -> Corpus:
    """Read a temporary file, which is not named in messages."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            corpus = read(file, **options)
    except InputError as error:
        error.path = name
        raise
    warn_of_notes(corpus.notes, name)
    return Corpus(corpus, None, corpus.notes)
