"""A job that reads a file and writes another: the one value that says which, in what formats, and what may be lost."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from entaug.backends.instruct import InstructModel
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.folds import content_key
from entaug.core.progress import Progress, no_progress
from entaug.core.spacing import joined
from entaug.errors import InputError, LossError, OutputError, ParameterError
from entaug.files.atomic import follow_link, open_output, output_error
from entaug.files.checkpoints import partial_paths
from entaug.files.streams import STDIN, as_path, is_special, is_stdout, rereadable_path
from entaug.formats.base import NOT_OF_SPACY, ReadReport
from entaug.formats.bookkeeping import BOOKKEEPING, note_on_bookkeeping
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.files import open_file, read, read_each, target
from entaug.metrics.tables import times

LOSS_KINDS = ("id", "text", "column", "field", "tokens", "trees", "place")
"""Kinds of content that some formats cannot store."""
_SAME_KIND = {"ids": "id", "fields": "field", "provenance": "field", "columns": "column"}


class FileOptions(TypedDict, total=False):
    """The options of a `FileJob`, as keywords of the functions that read or write a file."""

    force: bool
    repair: bool
    from_format: str | None
    to_format: str | None
    read_options: Mapping[str, Any]
    write_options: Mapping[str, Any]
    allow_loss: Collection[str]


@dataclass(frozen=True)
class FileJob:
    """The files that are read and written, and their formats.

    Args:
        input: the file to read, or ``"-"`` for standard input.
        output: the file to write, or ``"-"`` for standard output.
        force: replace an output that exists.
        repair: repair invalid tag sequences, and count the repairs.
        from_format: the format of the input; None to detect it.
        to_format: the format of the output; None for that of its extension, or else of the input.
        read_options: options of the input's format; the value None stands for the default.
        write_options: options of the output's format.
        allow_loss: kinds of content to drop if the output's format cannot store them: ``"id"``, ``"text"`` (the spaces
            between tokens), ``"column"``, ``"field"`` ..., as `LossError` names them, or ``"all"``.

    Raises:
        ParameterError: `allow_loss` names a kind of content that does not exist.

    Example:
        >>> FileJob("train.conll", "train.jsonl", force=True).from_format is None
        True
    """

    input: str | Path = STDIN
    output: str | Path = "-"
    force: bool = False
    repair: bool = False
    from_format: str | None = None
    to_format: str | None = None
    read_options: Mapping[str, Any] = field(default_factory=dict)
    write_options: Mapping[str, Any] = field(default_factory=dict)
    allow_loss: Collection[str] = ()

    def __post_init__(self) -> None:
        for kind in self.allow_loss:
            if kind not in (*LOSS_KINDS, "all"):
                remedy = f"choose from {', '.join(LOSS_KINDS)}, or all"
                raise ParameterError(f"unknown kind of content: {kind!r}", remedy=remedy)

    def check(
        self, inputs: Iterable[str | Path | None] = (), *, rejected: str | Path | None = None, folders: bool = True
    ) -> Path | None:
        """Check, before any work, the output and the file of rejected sentences, which is returned."""
        # `inputs` are further files that are read and must not be overwritten.
        check_apart([self.output, rejected], inputs)
        check_output(self.output, self.input, force=self.force, folders=folders)
        if rejected is None:
            return None
        path = Path(rejected)
        is_output = not is_stdout(self.output) and path.resolve() == Path(self.output).resolve()
        if is_output or is_stdout(rejected) or is_special(path) or path.is_dir():
            message = "rejected sentences are written to a file of their own"
            raise OutputError(message, path=str(rejected), remedy="name one that ends in .jsonl")
        # That of an interrupted run is moved into place before the output, and its note is removed after it.
        is_left = not is_stdout(self.output) and partial_paths(as_path(self.output))[1].exists()
        check_output(path, self.input, force=self.force or is_left)
        return path

    def check_beside(self, path: str | Path, inputs: Iterable[str | Path | None] = ()) -> None:
        """Check, before any work, that a second output is a file of its own that can be written."""
        check_apart([path], inputs)
        check_output(path, self.input, force=self.force)
        if is_stdout(path) or (not is_stdout(self.output) and Path(path).resolve() == Path(self.output).resolve()):
            raise ParameterError(f"{path} must be a file of its own", remedy="name another file")

    def check_log(self, log: str | Path | None, inputs: Iterable[str | Path | None] = ()) -> str:
        """Check the file for a log of changes and return its name: by default beside the output, or none."""
        path = str(log or ("" if is_stdout(self.output) else f"{self.output}.changes.jsonl"))
        if path:
            self.check_beside(path, inputs)
        return path

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[CorpusFile, CorpusFile]]:
        """Open the input, and determine the format and layout of the output."""
        with self.open_input() as source:
            yield source, self.open_output(source)

    @contextlib.contextmanager
    def open_input(self) -> Iterator[CorpusFile]:
        """Open the input."""
        with rereadable_path(self.input) as path:
            yield open_file(path, self.from_format, **self.read_options)

    def open_output(self, source: CorpusFile | None, *, predicted: bool = False) -> CorpusFile:
        """Determine the format and layout of the output, and check that it can be written."""
        # Predicted mentions are marked as such where the format tells them from annotations by people.
        target_file = target(self.output, self.to_format, source, **self.write_options)
        if str(self.output).endswith("/") and not target_file.format.folder and not target_file.path.is_dir():
            message = f"is the name of a folder, but {target_file.format.title} is written as a file"
            remedy = "name a file, or make the folder and name a file in it"
            raise OutputError(message, path=str(self.output), remedy=remedy)
        target_file.check_target(force=self.force)
        if predicted and target_file.format.name == "label-studio" and not self.write_options.get("annotations"):
            dialect: Any = target_file.dialect
            return replace(target_file, dialect=replace(dialect, annotations="predictions"))
        return target_file

    def read_as_input(self, path: str | Path) -> Corpus:
        """Read the input, or a file that has all its options."""
        return read(path, self.from_format, repair=self.repair, **self.read_options)

    def read(self, *paths: str | Path) -> list[Corpus]:
        """Read files that go with the input, by the options of the input."""
        return read_each(paths, self.from_format, repair=self.repair, beside=True, **self.read_options)

    def settle_losses(
        self, lost: Counter[str], target_file: CorpusFile, lines: Mapping[str, int | None] | None = None
    ) -> list[str]:
        """Raise an error for content of the user that would be lost without permission, and take bookkeeping out."""
        note = note_on_bookkeeping(lost, target_file.format.title, target_file.dialect)
        for name in [name for name in lost if name.startswith(BOOKKEEPING)]:
            del lost[name]
        kinds = {name: _SAME_KIND.get(name.split()[0], name.split()[0]) for name in lost}  # "field 'source'" is a field
        rejected = [name for name in lost if "all" not in self.allow_loss and kinds[name] not in self.allow_loss]
        if rejected:
            shown = ", ".join(f"{name} ({times(lost[name])})" for name in rejected[:5])
            more = f" and {len(rejected) - 5} more" if len(rejected) > 5 else ""
            needed = sorted({kinds[name] for name in rejected} | set(self.allow_loss))
            remedy = f"pass `allow_loss={needed}` to drop it, or choose another format"
            if NOT_OF_SPACY.format("en") in rejected:
                language = "`write_options={'language': 'hr'}`"
                remedy = f"if the text is not English, name its language, as in {language}; else {remedy}"
            message = f"{target_file.format.title} cannot store {shown}{more}"
            raise LossError(message, path=str(self.input), line=(lines or {}).get(rejected[0]), remedy=remedy)
        return [note] if note else []


def require_mentions(sentences: Iterable[Sentence], path: str | Path, purpose: str = "to learn from") -> None:
    """Check that a corpus that is needed for its mentions has any."""
    if not any(sentence.mentions for sentence in sentences):
        remedy = "check where its labels are (entaug check), and name them by options such as `tag_column`"
        raise InputError(f"has no mentions {purpose}", path=str(path), remedy=remedy)


def require_unseen(held_out: Iterable[Sentence], file: str | Path, gold: Iterable[Sentence], train: str | Path) -> None:
    """Check that no sentence of a file to test on is a training sentence."""
    keys = set(map(content_key, gold))
    if shared := [sentence for sentence in held_out if content_key(sentence) in keys]:
        message = f"{len(shared):,} of its sentences are in {train} too, one is {joined(shared[0].tokens)[:60]!r}"
        raise InputError(message, path=str(file), remedy="remove them from one of the files")


def read_sentences(
    source: CorpusFile, reading: ReadReport, stage: str = "reading", progress: Progress = no_progress
) -> Iterator[Sentence]:
    """Read sentences and report the progress."""
    done = 0
    for done, sentence in enumerate(source.sentences(reading), start=1):
        if not done % 256:
            progress(stage, done, None)
        yield sentence
    progress(stage, done, done)


@contextlib.contextmanager
def locate_losses(source: CorpusFile, reading: ReadReport) -> Iterator[None]:
    """Add the line of the sentence that was read last to a `LossError` of the block."""
    try:
        yield
    except LossError as error:
        error.path, error.line = str(source.path), reading.line or None
        raise


def write_text(text: str, output: str | Path, *, force: bool = False) -> None:
    """Write a text file atomically."""
    check_output(output, STDIN, force=force)
    with open_output(Path(output)) as out:
        out.write(text.encode(errors="backslashreplace"))  # names of files need not be UTF-8


# ----------------------------------------------------------------------------------------------- checks before any work


def check_output(output: str | Path, input: str | Path, *, force: bool, folders: bool = False) -> None:
    """Check, before any work, that the output can be written at the end."""
    if is_stdout(output):
        return
    path = as_path(output)
    try:
        if path.is_dir() and not (folders and path.name.strip(".")):  # folders are checked with their format
            raise OutputError("is a directory", path=str(path), remedy="name a file in it, or a new folder")
        check_apart([output], [input])
        if is_special(path):
            return
        if path.exists() and not force and not path.is_dir():
            remedy = "pass `force=True` to replace it, or name another output"
            raise OutputError("exists", path=str(path), remedy=remedy)
        with tempfile.TemporaryFile(dir=follow_link(path).parent):
            pass
    except OSError as error:
        raise output_error(path, error) from None


def check_apart(outputs: Iterable[str | Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Check, before any work, that no output would replace an input."""
    written = [as_path(given) for given in outputs if given is not None and not is_stdout(given)]
    for source in (as_path(given) for given in inputs if given is not None and str(given) != STDIN):
        for path in (part for output in written for part in (output, *partial_paths(output))):
            is_same = path.exists() and source.exists() and path.samefile(source)
            is_inside = source.is_dir() and path.resolve().is_relative_to(source.resolve())
            if is_same or is_inside or (path.is_dir() and source.resolve().is_relative_to(path.resolve())):
                relation = "is" if is_same else "is inside" if is_inside else "contains"
                message = f"{relation} an input; inputs are never overwritten"
                raise OutputError(message, path=str(path), remedy="name another output")


def notes_on_other_tags(source: CorpusFile) -> list[str]:
    """Return notes on columns of a file that look like tags, but are not the tag column."""
    return [
        f"column {column} looks like tags too, but only the tag column is kept valid; the column may have invalid "
        "tags in augmented sentences (to select another tag column: `tag_column`)"
        for column in getattr(source.dialect, "other_tag_columns", ())
    ]


def instruct_models(augmenter: Any) -> list[InstructModel]:
    """Return the instruct models of a method."""
    models = [getattr(method, "generator_", None) for method in augmenter.augmenters]
    return [model for model in models if isinstance(model, InstructModel)]
