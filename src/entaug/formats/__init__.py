"""Annotation formats, and the functions that read and write files in them: `read`, `stream` and `write`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.config.params import Parameter, parameters
from entaug.config.registry import Registry
from entaug.core.corpus import Corpus, CorpusStream
from entaug.core.data import Sentence
from entaug.errors import InputError, OutputError, ParameterError, UnknownNameError
from entaug.files.signatures import identify
from entaug.files.streams import as_path, is_special, open_bytes, read_beginning, rereadable_path
from entaug.formats.base import BaseFormat, ReadReport, note_lines, warn_of_notes
from entaug.formats.buffered import BufferedFormat
from entaug.formats.corpus_file import CorpusFile

__all__ = ["FORMATS", "CorpusFile", "find_format", "open_file", "read", "read_each", "stream", "target", "write"]


def _check_format(name: str, format_class: Any) -> None:
    if not (isinstance(format_class, type) and issubclass(format_class, BaseFormat)):
        raise TypeError("it is not a subclass of entaug.formats.base.BaseFormat")
    format_class().dialect()
    if not (format_class.name == name and isinstance(format_class.title, str)):
        raise TypeError(f"its name is not {name!r}, or it has no title")


FORMATS: Registry[type[BaseFormat]] = Registry(
    "format",
    {
        # In the order of detection: formats with distinctive contents first.
        "brat": "entaug.formats.brat:Brat",
        "label-studio": "entaug.formats.label_studio:LabelStudio",
        "gliner": "entaug.formats.gliner:Gliner",
        "spacy-json": "entaug.formats.spacy.json:SpacyJson",
        "prodigy": "entaug.formats.prodigy:Prodigy",
        "doccano": "entaug.formats.doccano:Doccano",
        "webanno": "entaug.formats.webanno:WebAnno",
        "bioc": "entaug.formats.bioc:BioC",
        "cas": "entaug.formats.cas:CasFormat",
        "pubtator": "entaug.formats.pubtator:PubTator",
        "i2b2": "entaug.formats.i2b2:I2b2",
        "w2ner": "entaug.formats.w2ner:W2ner",
        "bartner": "entaug.formats.bartner:Bartner",
        "bartner-nested": "entaug.formats.bartner:BartnerNested",
        "docbin": "entaug.formats.spacy.docbin:DocBinFormat",
        "parquet": "entaug.formats.huggingface.format:Parquet",
        "datasets": "entaug.formats.huggingface.format:DatasetFolder",
        "shards": "entaug.formats.shards:Shards",
        "chat": "entaug.formats.chat:Chat",
        "json": "entaug.formats.json_array:JsonArray",
        "jsonl": "entaug.formats.jsonl:Jsonl",
        "table": "entaug.formats.table:Table",
        "inline": "entaug.formats.inline:Inline",
        "conll": "entaug.formats.conll.format:Conll",
    },
    group="entaug.formats",
    check=_check_format,
)
"""The classes of formats by name; third-party packages add some through the entry point group ``entaug.formats``."""

_EQUIVALENT = {
    "tag_column": "tag_columns",
    "tag_columns": "tag_column",
}  # pairs of options of which one overrides the other
_DEFAULTS = ("conll", "jsonl")  # the formats of new files with an extension that several formats share


def find_format(name: str) -> BaseFormat:
    """Create the format of a name."""
    return FORMATS[name]()


def _all_formats() -> list[BaseFormat]:
    return [format_class() for format_class in FORMATS.usable().values()]


def _extension(path: Path) -> str:
    """The extension of a path in lower case, without that of gzip; empty without one."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _formats_by_extension(path: Path, *, is_read: bool = False) -> list[BaseFormat]:
    """The formats whose files have the extension of a path; where it is read, also those that may have it."""
    extension = _extension(path)
    formats = _all_formats() if extension else ()
    return [f for f in formats if extension in (*f.extensions, *(f.foreign_extensions if is_read else ()))]


def _is_folder_format(format_: BaseFormat) -> bool:
    return isinstance(format_, BufferedFormat) and format_.folder


def _detect_format(path: Path) -> BaseFormat:
    """Detect the format of a file by its extension, or by its content if the extension is ambiguous or unknown."""
    is_folder = path.is_dir()
    by_extension = [] if is_folder else _formats_by_extension(path, is_read=True)
    if len(by_extension) == 1:
        return by_extension[0]
    # Content counts for more than an extension that several formats share. CoNLL and JSON lines accept nearly any file
    # and are tried only where the extension is theirs, or that of no format.
    names = {f.name for f in by_extension}
    candidates = [f for f in _all_formats() if not names or f.name in names or f.name not in _DEFAULTS]
    if is_folder:
        candidates = [f for f in candidates if _is_folder_format(f)]
    for candidate in candidates:
        if candidate.recognises(path):
            return candidate
    if is_folder:
        titles = ", ".join(f.title for f in candidates) or "none"
        remedy = f"name a file in it; formats of folders: {titles}"
        raise InputError("is a directory of no known format", path=str(path), remedy=remedy)
    # Where nothing is recognised, the last one is the least particular about contents.
    default = by_extension[-1] if by_extension else find_format("conll")
    return next((f for f in by_extension if f.name in _DEFAULTS), default)


def _refuse_foreign(path: Path, format_: BaseFormat) -> None:
    """Refuse a file of a known other kind, which the format would misread or refuse for another reason."""
    kind = None if path.is_dir() else identify(read_beginning(path))
    if kind is None or format_.name == kind.format:
        return
    if format_.name in _DEFAULTS or not format_.recognises(path):
        raise InputError(f"is {kind.name}, not {format_.title}", path=str(path), remedy=kind.remedy)


def _options_of(format_: BaseFormat) -> tuple[Parameter, ...]:
    dialect_class: Any = format_.dialect_class
    return parameters(dialect_class)


def _given_options(format_: BaseFormat, options: dict[str, Any]) -> dict[str, Any]:
    """The options that are not None; values in text form, as on the command line, are converted."""
    known = {parameter.name: parameter for parameter in _options_of(format_)}
    given = {}
    for name, value in options.items():
        if value is None:
            continue
        if name not in known:
            raise UnknownNameError(f"option of the {format_.name} format:", name, known)
        given[name] = known[name].parse(value) if isinstance(value, str) else value
    return given


def open_file(path: str | Path, format: str | None = None, **options: Any) -> CorpusFile:
    """Determine the format and the layout of a file."""
    path = as_path(path)
    try:
        is_pipe = is_special(path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
    if is_pipe:
        raise InputError(
            "is not a regular file and can be read only once",
            path=str(path),
            remedy="use entaug.read, or save it to a file first",
        )
    if not path.is_dir():
        open_bytes(path).close()  # report a file that is missing or unreadable before anything else
    try:
        found = find_format(format) if format else _detect_format(path)
        _refuse_foreign(path, found)
        return CorpusFile(path, found, found.detect_dialect(path, **_given_options(found, options)))
    except OSError as error:  # a folder, or something in it, that may not be read
        remedy = "check its permissions"
        named = str(error.filename or path)
        raise InputError(f"cannot be read ({error.strerror or error})", path=named, remedy=remedy) from None


def target(path: str | Path, format: str | None = None, like: CorpusFile | None = None, **options: Any) -> CorpusFile:
    """Determine the format and the layout to write a file in."""
    path = as_path(path)
    by_extension = _formats_by_extension(path)
    extension = _extension(path)
    is_alike = like is not None and bool(extension) and _extension(like.path) == extension
    if format:
        chosen = find_format(format)
    elif like is not None and (is_alike or not by_extension or like.format.name in {f.name for f in by_extension}):
        chosen = find_format(like.format.name)
    else:
        default = by_extension[0] if by_extension else find_format("conll")
        chosen = next((f for f in by_extension if f.name in _DEFAULTS), default)
    is_chosen = format or by_extension or is_alike or chosen.name == "conll" or _is_folder_format(chosen)
    if extension and not is_chosen and not is_special(path):
        known = ", ".join(chosen.extensions)
        remedy = f"pass --to {chosen.name} to write it as the input, or let its name end in {known or 'no extension'}"
        raise OutputError(f"no format has the extension {extension!r}", path=str(path), remedy=remedy)
    if _is_folder_format(chosen) and path.suffix.lower() in chosen.extensions:
        message = f"is the name of a file, and {chosen.title} is written as a folder"
        raise OutputError(message, path=str(path), remedy="name a folder")
    given = _given_options(chosen, options)
    dialect = chosen.dialect(**given)
    if like is not None:
        detected = getattr(like.dialect, "__dict__", {})
        if like.format.name == chosen.name:
            inherited = detected.keys() - given.keys() - {_EQUIVALENT.get(name) for name in given}
        else:  # formats in which ids and text are optional write them where the source has them
            inherited = {"ids", "texts"} & detected.keys() & vars(dialect).keys() - given.keys()
        dialect = replace(dialect, **{name: detected[name] for name in inherited})
        dialect = chosen.prepared(dialect, like.beginning() if like.format.carries.columns else (), given)
    return CorpusFile(path, chosen, dialect)


def read(path: str | Path, format: str | None = None, *, repair: bool = False, **options: Any) -> Corpus:
    r"""Read an annotated file into memory.

    Args:
        path: the file, also gzipped (``.gz``), a folder, or a pipe.
        format: the name of the format; None to detect it from the extension and the content.
        repair: whether to repair invalid tag sequences instead of raising.
        options: options of the format; for CoNLL ``separator``, ``token_column``, ``tag_column``, ``scheme``.

    Returns:
        The sentences. What was left out or assumed is in ``Corpus.notes``, and is an `entaug.errors.InputWarning` each.

    Raises:
        InputError: the file is invalid; the error names the line and a remedy.
        UnknownNameError: there is no such format, or the format has no such option.
        ParameterError: an option has an invalid value.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "a.conll")
        >>> _ = file.write_text("Ada B-PER\nlaughs O\n")
        >>> read(file).labels
        ('PER',)
    """
    with rereadable_path(path) as readable:
        opened = open_file(readable, format, **options)
        return _read(opened, str(path), repair=repair)


def _read(opened: CorpusFile, source: str, *, repair: bool) -> Corpus:
    """Read a file into memory, and warn the caller's caller of the notes on it."""
    reading = ReadReport(repair=repair)
    sentences = tuple(opened.sentences(reading))
    corpus = Corpus(sentences, source, note_lines(reading.notes))
    warn_of_notes(corpus.notes, source)
    return corpus


def read_each(
    paths: Iterable[str | Path],
    format: str | None = None,
    *,
    repair: bool = False,
    beside: bool = False,
    **options: Any,
) -> list[Corpus]:
    """Read several files, which may have different formats."""
    given = {name: value for name, value in options.items() if value is not None}
    used: set[str] = set()
    corpora = []
    for path in paths:
        with rereadable_path(path) as readable:
            names = {f.name for f in _formats_by_extension(readable, is_read=True)}
            own = find_format(format) if format and (not names or format in names) else _detect_format(readable)
            known = {parameter.name for parameter in _options_of(own)}
            fitting = {name: value for name, value in given.items() if name in known}
            used |= fitting.keys()
            opened = open_file(readable, own.name, **fitting)
            corpora.append(_read(opened, str(path), repair=repair))
    if corpora and not beside:
        for name in given.keys() - used:
            raise ParameterError(f"no format of these files has an option {name!r}")
    return corpora


def stream(path: str | Path, format: str | None = None, *, repair: bool = False, **options: Any) -> CorpusStream:
    r"""Read an annotated file lazily: like `read`, but again on each iteration and without loading it into memory.

    Args:
        path: the file, also gzipped (``.gz``), or a folder.
        format: see `read`.
        repair: see `read`.
        options: see `read`.

    Returns:
        The sentences; each iteration ends with an `entaug.errors.InputWarning` for what was left out or assumed.

    Raises:
        InputError: the file is invalid; errors in sentences are raised on iteration.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "a.conll")
        >>> _ = file.write_text("Ada B-PER\nlaughs O\n")
        >>> [str(sentence) for sentence in stream(file)]
        ['[Ada]PER laughs']
    """
    opened = open_file(path, format, **options)

    def sentences() -> Iterator[Sentence]:
        reading = ReadReport(repair=repair)
        yield from opened.sentences(reading)
        warn_of_notes(note_lines(reading.notes), str(path), 2)

    return CorpusStream(sentences, str(path))


def write(
    sentences: Iterable[Sentence],
    path: str | Path,
    format: str | None = None,
    *,
    like: str | Path | None = None,
    **options: Any,
) -> int:
    r"""Write sentences to a file atomically.

    Args:
        sentences: the sentences.
        path: the file; gzipped if it ends in ``.gz``. An existing file is replaced.
        format: the name of the format; by default that of the extension, else CoNLL.
        like: a file whose layout to use.
        options: options of the format; see `read`.

    Returns:
        The number of sentences written.

    Raises:
        LossError: the format cannot represent a sentence, for example nested mentions in CoNLL.
        OutputError: the file cannot be written.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "a.conll")
        >>> write([Sentence.from_iob(["Ada", "laughs"], ["B-PER", "O"])], file)
        1
        >>> file.read_text().split()
        ['Ada', 'B-PER', 'laughs', 'O']
    """
    return target(path, format, None if like is None else open_file(like), **options).write(sentences)
