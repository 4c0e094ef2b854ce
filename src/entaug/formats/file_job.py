"""Shared functions of the workflows: early checks, opening of input and output, reports of losses."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.backends.instruct import InstructModel, Usage
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, LossError, OutputError, ParameterError
from entaug.files.atomic import follow_link, open_output, output_error
from entaug.files.checkpoints import partial_paths
from entaug.files.streams import STDIN, is_special, is_stdout, rereadable_path
from entaug.formats import CorpusFile, open_file, target
from entaug.formats.base import ReadReport
from entaug.formats.bookkeeping import BOOKKEEPING

__all__ = [
    "LOSS_KINDS",
    "Options",
    "as_predictions",
    "check_apart",
    "check_loss_kinds",
    "check_output",
    "check_rejected_output",
    "instruct_models",
    "locate_losses",
    "notes_on_other_tags",
    "open_corpora",
    "open_target",
    "read_sentences",
    "settle_losses",
    "usage_of_models",
    "write_text",
]

Options = Mapping[str, Any] | None
"""Options of a format by name, as the fields of its dialect."""

LOSS_KINDS = ("id", "text", "column", "field", "tokens", "trees", "place")
"""Kinds of content that some formats cannot store."""
_SAME_KIND = {"ids": "id", "fields": "field", "provenance": "field", "columns": "column"}


# ------------------------------------------------------------------------------------------------- input and output


@contextlib.contextmanager
def open_corpora(
    input: str | Path,
    output: str | Path,
    *,
    force: bool,
    from_format: str | None,
    to_format: str | None,
    read_options: Options,
    write_options: Options,
) -> Iterator[tuple[CorpusFile, CorpusFile]]:
    """Open the input of a workflow and determine the format and layout of its output."""
    with rereadable_path(input) as path:
        source = open_file(path, from_format, **(read_options or {}))
        yield source, open_target(output, to_format, source, write_options, force=force)


def open_target(
    output: str | Path, to_format: str | None, source: CorpusFile | None, options: Options, *, force: bool
) -> CorpusFile:
    """Determine the format and layout of an output, and check that it can be written."""
    to = target(output, to_format, source, **(options or {}))
    if str(output).endswith("/") and not to.is_folder and not to.path.is_dir():
        message = f"is the name of a folder, but {to.format.title} is written as a file"
        raise OutputError(message, path=str(output), remedy="name a file, or make the folder and name a file in it")
    to.check_target(force=force)
    return to


def as_predictions(to: CorpusFile, options: Options) -> CorpusFile:
    """Return an output whose mentions are predictions, where its format tells them from annotations by people."""
    if to.format.name != "label-studio" or (options or {}).get("annotations"):
        return to
    dialect: Any = to.dialect
    return replace(to, dialect=replace(dialect, annotations="predictions"))


def require_mentions(sentences: Iterable[Sentence], path: str | Path, purpose: str = "to learn from") -> None:
    """Check that a corpus that is needed for its mentions has any."""
    if not any(sentence.mentions for sentence in sentences):
        remedy = "check where its labels are (entaug check), and name them: --tag-column or --layout"
        raise InputError(f"has no mentions {purpose}", path=str(path), remedy=remedy)


def read_sentences(
    source: CorpusFile, reading: ReadReport, stage: str = "reading", progress: Progress = no_progress
) -> Iterator[Sentence]:
    """Read sentences and report the progress."""
    total = None if progress is no_progress else source.estimated_sentences()
    done = 0
    for done, sentence in enumerate(source.sentences(reading), start=1):
        if not done % 256:
            progress(stage, done, total)
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
    path = Path(output)
    if is_stdout(output):
        return
    try:
        if path.is_dir() and (path.name in ("", "..") or (any(path.iterdir()) and not (force and folders))):
            remedy = "name a file in it, or for a format of folders a new or empty folder"
            if folders and not force:
                remedy += ", or pass --force to replace a corpus in such a format"
            raise OutputError("is a directory", path=str(path), remedy=remedy)
        for written in (path, *partial_paths(path)):
            if str(input) != STDIN and written.exists() and Path(input).exists() and written.samefile(input):
                message = "is the input; inputs are never overwritten"
                raise OutputError(message, path=str(written), remedy="name another output")
        if is_special(path):
            return
        if Path(input).is_dir() and path.resolve().is_relative_to(Path(input).resolve()):
            raise OutputError("is inside the input", path=str(path), remedy="name an output outside of it")
        if path.is_dir() and str(input) != STDIN and Path(input).resolve().is_relative_to(path.resolve()):
            raise OutputError(
                "contains the input; inputs are never overwritten", path=str(path), remedy="name another output"
            )
        if path.exists() and not force and not path.is_dir():
            raise OutputError("exists", path=str(path), remedy="pass --force to replace it, or name another output")
        with tempfile.TemporaryFile(dir=follow_link(path).parent):
            pass
    except OSError as error:
        raise output_error(path, error) from None


def check_apart(outputs: Iterable[str | Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Check, before any work, that no output would replace a further input."""
    for read in (Path(given) for given in inputs if given is not None and str(given) != STDIN):
        for written in (Path(given) for given in outputs if given is not None and not is_stdout(given)):
            for path in (written, *partial_paths(written)):
                same = path.exists() and read.exists() and path.samefile(read)
                if same or (read.is_dir() and path.resolve().is_relative_to(read.resolve())):
                    message = "is also an input; inputs are never overwritten"
                    raise OutputError(message, path=str(path), remedy="name another output")


def check_rejected_output(
    rejected: str | Path | None, input: str | Path, output: str | Path, *, force: bool
) -> Path | None:
    """Check, before any work, that the file of rejected sentences can be written."""
    if rejected is None:
        return None
    path = Path(rejected)
    if is_stdout(rejected) or is_special(path) or path.is_dir():
        message = "rejected sentences are written to a file"
        raise OutputError(message, path=str(rejected), remedy="name one that ends in .jsonl")
    if not is_stdout(output) and path.resolve() == Path(output).resolve():
        message = "is the output already"
        raise OutputError(message, path=str(rejected), remedy="name another file for rejected sentences")
    check_output(path, input, force=force)
    return path


def notes_on_other_tags(source: CorpusFile) -> list[str]:
    """Return notes on columns of a file that look like tags, but are not the tag column."""
    return [
        f"column {column} looks like tags too, but only the tag column is kept valid; the column may have invalid "
        "tags in augmented sentences (to select another tag column: --tag-column)"
        for column in getattr(source.dialect, "other_tag_columns", ())
    ]


def instruct_models(augmenter: Any) -> list[InstructModel]:
    """Return the instruct models of a method."""
    methods = getattr(augmenter, "augmenters", [augmenter])
    models = [getattr(method, "generator_", None) for method in methods]
    return [model for model in models if isinstance(model, InstructModel)]


def usage_of_models(augmenter: Any) -> dict[str, Usage]:
    """Return the counts of the requests to the instruct models of a method."""
    return {model.name: model.usage for model in instruct_models(augmenter)}


# --------------------------------------------------------------------------------------------------------------- losses


def check_loss_kinds(kinds: Collection[str]) -> None:
    """Check the kinds of content that may be dropped."""
    for kind in kinds:
        if kind not in (*LOSS_KINDS, "all"):
            remedy = f"choose from {', '.join(LOSS_KINDS)}, or all"
            raise ParameterError(f"unknown kind of content: {kind!r}", remedy=remedy)


def settle_losses(lost: Counter[str], kinds: Collection[str], to: CorpusFile) -> list[str]:
    """Raise an error for content of the user that would be lost without permission, and take bookkeeping out."""
    note = to.note_on_bookkeeping(lost)
    for name in [name for name in lost if name.startswith(BOOKKEEPING)]:
        del lost[name]
    kind_of = {name: _SAME_KIND.get(name.split()[0], name.split()[0]) for name in lost}  # "field 'source'" is a field
    rejected = [name for name in lost if "all" not in kinds and kind_of[name] not in kinds]
    if rejected:
        shown = ", ".join(f"{name} ({_times(lost[name])})" for name in rejected[:5])
        more = f" and {len(rejected) - 5} more" if len(rejected) > 5 else ""
        needed = ",".join(sorted({kind_of[name] for name in rejected} | set(kinds)))
        remedy = f"pass --lose {needed} to drop it, or choose another format"
        raise LossError(f"{to.format.title} cannot store {shown}{more}", remedy=remedy)
    return [note] if note else []


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
