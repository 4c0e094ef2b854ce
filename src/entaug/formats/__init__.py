"""Annotation formats: one file each, all behind `read`, `stream` and `write`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from entaug.corpus import Corpus, CorpusStream
from entaug.data import Sentence
from entaug.errors import InputError, OutputError, ParameterError, UnknownNameError
from entaug.files.streams import as_path, is_special, open_bytes, rereadable_path
from entaug.formats.base import Format, Reading
from entaug.formats.buffered import BufferedFormat
from entaug.formats.opened import OpenedFile
from entaug.params import parameters

__all__ = ["FORMATS", "OpenedFile", "find", "open_file", "read", "read_each", "stream", "target", "write"]

FORMATS = {
    # Those that are told by what they hold come first, those that nearly anything could be last.
    "brat": "entaug.formats.brat.format:Brat",
    "label-studio": "entaug.formats.tools.label_studio:LabelStudio",
    "gliner": "entaug.formats.tools.gliner:Gliner",
    "spacy-json": "entaug.formats.spacy.json:SpacyJson",
    "prodigy": "entaug.formats.tools.prodigy:Prodigy",
    "doccano": "entaug.formats.tools.doccano:Doccano",
    "w2ner": "entaug.formats.research.w2ner:W2ner",
    "bartner": "entaug.formats.research.bartner:Bartner",
    "bartner-nested": "entaug.formats.research.bartner_nested:BartnerNested",
    "docbin": "entaug.formats.spacy.docbin:DocBinFormat",
    "parquet": "entaug.formats.huggingface.format:Parquet",
    "datasets": "entaug.formats.huggingface.format:DatasetFolder",
    "jsonl": "entaug.formats.jsonl:Jsonl",
    "conll": "entaug.formats.conll.format:Conll",
}
_SAME = {"tag_column": "tag_columns", "tag_columns": "tag_column"}  # options that say the same thing
_USUAL = ("conll", "jsonl")  # what an extension that several formats share means for a new file


def find(name: str) -> Format:
    """The format of a name.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    module, _, cls = FORMATS[name].partition(":")
    found: Format = getattr(import_module(module), cls)()
    return found


def _by_extension(path: Path) -> list[Format]:
    """The formats that a file's name speaks for."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return [found for found in map(find, FORMATS) if suffixes and suffixes[-1] in found.extensions]


def _looked_for(path: Path) -> Format:
    """The format of a file: by its extension, and where that is of several or none by its content."""
    folder = path.is_dir()
    named = [] if folder else _by_extension(path)
    if len(named) == 1:
        return named[0]
    # A format of folders may know a file of its own too. What a file holds counts for more than its name where that is
    # of several, but nearly anything could be of the usual ones.
    told = {one.name for one in named}
    candidates = [one for one in map(find, FORMATS) if not named or one.name in told or one.name not in _USUAL]
    among = [one for one in candidates if not folder or (isinstance(one, BufferedFormat) and one.folder)]
    for one in among:
        if one.recognises(path):
            return one
    if folder:
        known = ", ".join(one.title for one in among) or "none"
        raise InputError(
            "is a directory of no known format", path=str(path), remedy=f"name a file in it; known: {known}"
        )
    return next((one for one in named if one.name in _USUAL), find("conll"))


def _fitting(format_: Format, options: dict[str, Any]) -> dict[str, Any]:
    """The options without those left out; one the format does not know is an error."""
    given = {name: value for name, value in options.items() if value is not None}
    dialect: Any = type(format_.dialect())
    known = {parameter.name: parameter for parameter in parameters(dialect)}
    for name, value in given.items():
        if name not in known:
            raise ParameterError(
                f"the {format_.name} format has no option {name!r}", remedy=f"it has: {', '.join(sorted(known))}"
            )
        # As on the command line; formats read lists themselves.
        if isinstance(value, str) and not isinstance(known[name].default, tuple):
            given[name] = known[name].parse(value)
    return given


def open_file(path: str | Path, format: str | None = None, **options: Any) -> OpenedFile:
    """Find a file's format (by name, extension, then content) and layout.

    Args:
        path: the file, ``.gz`` too.
        format: its format, when it should not be found.
        options: layout given by hand, as the fields of the format's dialect.

    Raises:
        InputError: it cannot be read, can be read only once (a pipe), or holds no sentence.
    """
    path = as_path(path)
    try:
        once = is_special(path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=str(path)) from None
    if once:
        raise InputError(
            "is no regular file and could be read only once",
            path=str(path),
            remedy="use entaug.read, or save it to a file first",
        )
    if not path.is_dir():
        open_bytes(path).close()  # missing or unreadable: say so before anything else
    found = find(format) if format else _looked_for(path)
    return OpenedFile(path, found, found.look(path, **_fitting(found, options)))


def target(path: str | Path, format: str | None = None, like: OpenedFile | None = None, **options: Any) -> OpenedFile:
    """The format and layout to write a file in: those of `like` where the format is the same.

    Args:
        path: the file to be written.
        format: its format; by default that of its extension, else that of `like`, else CoNLL.
        like: a file that was read.
        options: layout given by hand.

    Raises:
        OutputError: it is the name of a file, and the format writes folders.
    """
    path = as_path(path)
    named = _by_extension(path)
    if format:
        found = find(format)
    elif like is not None and (not named or like.format.name in {one.name for one in named}):
        found = like.format
    else:
        found = next((one for one in named if one.name in _USUAL), named[0] if named else find("conll"))
    if isinstance(found, BufferedFormat) and found.folder and path.suffix.lower() in found.extensions:
        what = f"is the name of a file, and {found.title} is written as a folder"
        raise OutputError(what, path=str(path), remedy="name a folder")
    given = _fitting(found, options)
    if like is not None and like.format.name == found.name:
        asked = found.dialect(**given)
        told = {*given, *(_SAME.get(name, name) for name in given)}
        return OpenedFile(path, found, replace(asked, **{n: v for n, v in vars(like.dialect).items() if n not in told}))
    # A format that names sentences only where they have names does so when those it is written from have.
    known = getattr(like.dialect, "__dict__", {}) if like is not None else {}
    asked = found.dialect(**given)
    has = type(asked).__dataclass_fields__
    shared = {name: known[name] for name in ("ids", "texts") if name in known and name in has and name not in given}
    return OpenedFile(path, found, found.dialect(**given, **shared))


def read(path: str | Path, format: str | None = None, *, repair: bool = False, **options: Any) -> Corpus:
    r"""Read a labelled file into memory.

    Args:
        path: the file, ``.gz`` too; a pipe is read to its end first.
        format: ``"conll"`` or ``"jsonl"``; found by extension and content by default.
        repair: mend broken tag sequences instead of raising.
        options: layout given by hand: for CoNLL ``separator``, ``token_column``, ``tag_column``, ``scheme``.

    Raises:
        InputError: the file is faulty; the error names line and remedy.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "a.conll")
        >>> _ = file.write_text("Ada B-PER\nlaughs O\n")
        >>> read(file).labels
        ('PER',)
    """
    with rereadable_path(path) as kept:
        opened = open_file(kept, format, **options)
        return Corpus(opened.sentences(Reading(repair=repair)), str(path))


def read_each(
    paths: Iterable[str | Path],
    format: str | None = None,
    *,
    repair: bool = False,
    beside: bool = False,
    **options: Any,
) -> list[Corpus]:
    """Read files that need not be of one format, as one augmented file beside the gold one.

    Args:
        paths: the files.
        format: of those whose name does not say another.
        repair: see `read`.
        beside: whether the options were given for another file, and need fit none of these.
        options: layout given by hand, for the files whose format has such an option.

    Raises:
        InputError: a file is faulty.
        ParameterError: an option that no file's format has.
    """
    given = {name: value for name, value in options.items() if value is not None}
    used: set[str] = set()
    found = []
    for path in paths:
        with rereadable_path(path) as kept:
            by_name = _by_extension(kept)
            own = find(format) if format and (not by_name or format in {o.name for o in by_name}) else None
            own = own or _looked_for(kept)
            fitting = {n: v for n, v in given.items() if n in type(own.dialect()).__dataclass_fields__}
            used |= fitting.keys()
            opened = open_file(kept, own.name, **fitting)
            found.append(Corpus(opened.sentences(Reading(repair=repair)), str(path)))
    if found and not beside:
        for name in given.keys() - used:
            raise ParameterError(f"no file given here is of a format with an option {name!r}")
    return found


def stream(path: str | Path, format: str | None = None, *, repair: bool = False, **options: Any) -> CorpusStream:
    """As `read`, but the file is read anew for each iteration and never lies in memory."""
    opened = open_file(path, format, **options)
    return CorpusStream(lambda: opened.sentences(Reading(repair=repair)), str(path))


def write(
    sentences: Iterable[Sentence],
    path: str | Path,
    format: str | None = None,
    *,
    like: str | Path | None = None,
    **options: Any,
) -> int:
    """Write sentences to a file, which appears only when it is complete.

    Args:
        sentences: what to write.
        path: the file; gzipped when it ends in ``.gz``. One that exists is replaced.
        format: by default that of the extension, else CoNLL.
        like: a file to take the layout from, as the command line takes that of its input.
        options: layout, as for `read`.

    Returns:
        How many sentences were written.

    Raises:
        LossError: the format cannot carry a sentence (nested mentions in CoNLL, say).
        OutputError: the file cannot be written.
    """
    to = target(path, format, None if like is None else open_file(like), **options)
    return to.write(sentences)
