"""Annotation formats, and the functions that read and write files in them: `read`, `stream` and `write`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from entaug.config.params import Parameter, parameters
from entaug.config.registry import Registry
from entaug.core.corpus import Corpus, CorpusStream
from entaug.core.data import Sentence
from entaug.errors import EntaugError, InputError, OutputError, ParameterError, UnknownNameError
from entaug.files.signatures import identify
from entaug.files.streams import as_path, extension_of, is_special, open_bytes, read_beginning, rereadable_path
from entaug.formats.base import BaseFormat, FormatCapabilities, ReadReport, warn_of_notes
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.records import NO_CHOICE


def _check_format(name: str, format_class: Any) -> None:
    if not (isinstance(format_class, type) and issubclass(format_class, BaseFormat)):
        raise TypeError("it is not a subclass of entaug.formats.base.BaseFormat")
    format_class().dialect()
    if not (format_class.name == name and isinstance(format_class.title, str)):
        raise TypeError(f"its name is not {name!r}, or it has no title")
    if not isinstance(getattr(format_class, "carries", None), FormatCapabilities):
        raise TypeError("it has no class attribute `carries` with a FormatCapabilities")
    for extensions in (format_class.extensions, format_class.foreign_extensions):
        if not (isinstance(extensions, tuple) and all(isinstance(one, str) and one[:1] == "." for one in extensions)):
            raise TypeError(f"its extensions must be a tuple such as ('.abc',), not {extensions!r}")


class _Sign(NamedTuple):
    """The class of a format, and the looks of its files, known without importing it."""

    place: str
    extensions: str  # of its files, divided by spaces
    pattern: str = ""  # a regular expression that their name, NUL, and their beginning match
    foreign: str = ""  # further extensions of files that it reads
    is_folder: bool = False


_ARRAY = r'\0\s*(?:\[|\{\s*"(?!tokens)[^"]*"\s*:\s*\[)'  # or an object of several
_OWN = r'[^\n]*"tokens":\["[^\n]*"entities":\[(?:\]|\{"start":\d+,"end":\d+,"type":)'  # as written by entaug
# In the order of detection: formats with distinctive contents first.
_SIGNS = {
    "brat": _Sign("brat:Brat", ".ann", r"\.(?:ann|txt)\0", is_folder=True),
    "label-studio": _Sign("label_studio:LabelStudio", ".json", _ARRAY),
    "gliner": _Sign("gliner:Gliner", ".json .jsonl .ndjson", '"tokenized_text"'),
    "spacy-json": _Sign("spacy_json:SpacyJson", ".json .jsonl", rf'"paragraphs"|"tokens"\s*:\s*\[\s*[\]{{]|{_ARRAY}'),
    "prodigy": _Sign(
        "prodigy:Prodigy", ".jsonl .json .ndjson", r'"_(?:input|task)_hash"|"(?:spans|tokens)"\s*:\s*\[\s*[\]{]'
    ),
    "doccano": _Sign("doccano:Doccano", ".jsonl .json .ndjson", rf'\0(?!{_OWN})(?s:.*)"(?:text|data)"'),
    "webanno": _Sign("webanno:WebAnno", ".tsv", "#FORMAT=WebAnno"),
    "bioc": _Sign("bioc:BioC", ".xml .json .jsonl", '<collection|"passages"'),
    "cas": _Sign("cas:CasFormat", ".json .zip .xmi", r"XMI|\.xmi|%TYPES"),
    "pubtator": _Sign("pubtator:PubTator", ".pubtator", r"\|t\|"),
    "i2b2": _Sign("i2b2:I2b2", ".con", r"\.con\0", is_folder=True),
    "w2ner": _Sign("w2ner:W2ner", ".json", '"sentence"'),
    "bartner": _Sign("bartner:Bartner", "", r"\n\d+,\d+\S* \S"),
    "bartner-nested": _Sign("bartner:BartnerNested", ".json .jsonl .jsonlines", '"ners"'),
    "docbin": _Sign("docbin:DocBinFormat", ".spacy", r"\0x"),
    "parquet": _Sign("parquet:Parquet", ".parquet", r"\0PAR1"),
    "datasets": _Sign("parquet:DatasetFolder", "", "(?!)", is_folder=True),
    "chat": _Sign("chat:Chat", ".jsonl .json .ndjson", '"(?:messages|completion|output)"'),
    "json": _Sign("json_array:JsonArray", ".json", _ARRAY),
    "jsonl": _Sign("jsonl:Jsonl", ".jsonl .json .ndjson"),
    "table": _Sign("table:Table", ".csv .tsv .xlsx", r"\.xlsx|\0\s*[^\s{\[]"),
    "inline": _Sign("inline:Inline", ".xml .sgml", r"\0\s*[^\s{]"),
    "conll": _Sign("conll.format:Conll", ".conll .tsv .iob2 .iob .bio .conllu .conllup", "", ".csv"),
}
FORMATS: Registry[type[BaseFormat]] = Registry(
    "format",
    {name: f"entaug.formats.{sign.place}" for name, sign in _SIGNS.items()},
    group="entaug.formats",
    check=_check_format,
)
"""The classes of formats by name; third-party packages add some through the entry point group ``entaug.formats``."""

_HEAD_SIZE = 1 << 16  # bytes in which signs are looked for
_DEFAULTS = ("conll", "jsonl")  # the formats of new files with an extension that several formats share
_EQUIVALENT = {"tag_column": "tag_columns", "tag_columns": "tag_column"}  # pairs of options of which one overrides


def find_format(name: str) -> BaseFormat:
    """Create the format of a name."""
    return FORMATS[name]()


def _signs() -> dict[str, _Sign]:
    """The signs of all formats; plug-ins are imported for what they declare."""
    signs = dict(_SIGNS)
    for name in FORMATS:
        if name not in signs:
            with contextlib.suppress(EntaugError):  # a plug-in that cannot be used
                found = find_format(name)
                extensions, foreign = " ".join(found.extensions), " ".join(found.foreign_extensions)
                signs[name] = _Sign("", extensions, "", foreign, found.folder)
    return signs


def _formats_by_extension(path: Path, *, is_read: bool = False) -> list[str]:
    """The formats whose files have the extension of a path; where it is read, also those that may have it."""
    extension = extension_of(path)
    signs = _signs().items() if extension else ()
    return [
        name for name, s in signs if extension in (f"{s.extensions} {s.foreign}" if is_read else s.extensions).split()
    ]


def _default_of(by_extension: list[str], place: int) -> str:
    """The format of a file of which only its extension is known; `place` chooses among particular formats."""
    default = by_extension[place] if by_extension else "conll"
    return next((name for name in by_extension if name in _DEFAULTS), default)


def _looks_like(path: Path) -> Callable[[_Sign], bool]:
    """A function that tells whether a file may have a sign."""
    head = read_beginning(path, _HEAD_SIZE)
    text = f"{path.name.removesuffix('.gz').lower()}\0{head.decode('latin-1').removeprefix('ï»¿')}"
    # The first record of a long file may be cut: what it lacks may follow.
    is_cut = len(head) == _HEAD_SIZE and re.search(r"\0\s*(?:\{|\[)(?!.*[\]}]\r?\n)", text) is not None
    return lambda sign: is_cut or re.search(sign.pattern, text) is not None


def _detect_format(path: Path) -> BaseFormat:
    """Detect the format of a file by its extension, or by its content if the extension is ambiguous or unknown."""
    is_folder = path.is_dir()
    by_extension = [] if is_folder else _formats_by_extension(path, is_read=True)
    if len(by_extension) == 1:
        return find_format(by_extension[0])
    # Content counts for more than an extension that several formats share. CoNLL and JSON lines accept nearly any file
    # and are tried only where the extension is theirs, or that of no format.
    if is_folder:
        names = [name for name, sign in _signs().items() if sign.is_folder]
    else:
        looks_like = _looks_like(path)
        names = [name for name, sign in _signs().items() if looks_like(sign)]
        names = [n for n in names if not by_extension or n in by_extension or n not in _DEFAULTS]
    for candidate in map(find_format, names):
        if candidate.recognises(path):
            return candidate
    if is_folder:
        titles = ", ".join(find_format(name).title for name in names) or "none"
        remedy = f"name a file in it; formats of folders: {titles}"
        raise InputError("is a directory of no known format", path=str(path), remedy=remedy)
    return find_format(_default_of(by_extension, -1))  # the last one is the least particular about contents


def _refuse_foreign(path: Path, format_: BaseFormat) -> None:
    """Refuse a file of a known other kind, which the format would misread or refuse for another reason."""
    kind = None if path.is_dir() else identify(read_beginning(path))
    if kind is None or format_.name == kind.format:
        return
    if format_.name in _DEFAULTS or not format_.recognises(path):
        raise InputError(f"is {kind.name}, not {format_.title}", path=str(path), remedy=kind.remedy)


def _options_of(format_: BaseFormat) -> dict[str, Parameter]:
    dialect_class: Any = format_.dialect_class
    return {parameter.name: parameter for parameter in parameters(dialect_class)}


def _given_options(format_: BaseFormat, options: dict[str, Any]) -> dict[str, Any]:
    """The options that are not None; values in text form, as on the command line, are converted."""
    known = _options_of(format_)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given.keys() - known.keys():
        raise UnknownNameError(f"option of the {format_.name} format:", name, known)
    return {name: known[name].parse(value) if isinstance(value, str) else value for name, value in given.items()}


def is_option(name: str) -> bool:
    """Whether a format has an option of this name."""
    return any(name in _options_of(find_format(one)) for one in _SIGNS)


def open_file(path: str | Path, format: str | None = None, **options: Any) -> CorpusFile:
    """Determine the format and the layout of a file."""
    path = as_path(path)
    try:
        if is_special(path):
            what = "is not a regular file and can be read only once"
            raise InputError(what, path=str(path), remedy="use entaug.read, or save it to a file first")
        if not path.is_dir():
            open_bytes(path).close()  # report a file that is missing or unreadable before anything else
        found = find_format(format) if format else _detect_format(path)
        _refuse_foreign(path, found)
        return CorpusFile(path, found, found.detect_dialect(path, **_given_options(found, options)))
    except OSError as error:  # a folder, or something in it, that may not be read
        what, named = f"cannot be read ({error.strerror or error})", str(error.filename or path)
        raise InputError(what, path=named, remedy="check its permissions") from None


def target(path: str | Path, format: str | None = None, like: CorpusFile | None = None, **options: Any) -> CorpusFile:
    """Determine the format and the layout to write a file in."""
    path = as_path(path)
    by_extension = _formats_by_extension(path)
    extension = extension_of(path)
    is_alike = like is not None and bool(extension) and extension_of(like.path) == extension
    if not format and like is not None and (is_alike or not by_extension or like.format.name in by_extension):
        name = like.format.name
    else:
        name = format or _default_of(by_extension, 0)
    chosen = find_format(name)
    is_chosen = format or by_extension or is_alike or chosen.name == "conll" or chosen.folder
    if extension and not is_chosen and not is_special(path):
        name, known = f"`format='{chosen.name}'`", ", ".join(chosen.extensions) or "no extension"
        remedy = f"pass {name} to write it as the input, or let its name end in {known}"
        raise OutputError(f"no format has the extension {extension!r}", path=str(path), remedy=remedy)
    if chosen.folder and path.suffix.lower() in chosen.extensions:
        message = f"is the name of a file, and {chosen.title} is written as a folder"
        raise OutputError(message, path=str(path), remedy="name a folder")
    given = _given_options(chosen, options)
    dialect = chosen.dialect(**given)
    if like is not None:
        detected = getattr(like.dialect, "__dict__", {})
        if like.format.name == chosen.name:
            inherited = detected.keys() - given.keys() - {_EQUIVALENT.get(name) for name in given}
        else:  # ids and text are written where the source has them, and read again as its texts are
            inherited = {"ids", "texts", "language"} & detected.keys() & vars(dialect).keys() - given.keys()
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
        The sentences. What was repaired, left out or assumed is in ``Corpus.notes``, and each note is an
        `entaug.errors.InputWarning`.

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
    corpus = Corpus(sentences, source, reading.lines())
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
    """Read several files of any formats; those beside an input have its options, but not its part."""
    given = {name: value for name, value in options.items() if value is not None}
    used: set[str] = set()
    corpora = []
    for path in paths:
        with rereadable_path(path) as readable:
            names = _formats_by_extension(readable, is_read=True)
            own = find_format(format) if format and (not names or format in names) else _detect_format(readable)
            known = _options_of(own)
            fitting = {name: value for name, value in given.items() if name in known}
            used |= fitting.keys()
            if beside and "split_name" in known:  # the part that was chosen is one of the input
                fitting["split_name"] = NO_CHOICE
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
        The sentences; each iteration ends with an `entaug.errors.InputWarning` for what was repaired, left out or
        assumed.

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
        warn_of_notes(reading.lines(), str(path), 2)

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
        LossError: the format cannot represent a sentence, for example nested mentions in CoNLL; or two sentences have
            one id, and it is written.
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
