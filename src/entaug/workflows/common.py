"""What all jobs on files share: where they may write, how they tell what they do."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from entaug.data import Sentence
from entaug.errors import InputError, LossError, OutputError, ParameterError
from entaug.files.atomic import follow_link, output_error
from entaug.files.sinks import left_by
from entaug.files.streams import STDIN, is_special
from entaug.formats import OpenedFile
from entaug.formats.base import Format, Reading
from entaug.formats.buffered import BufferedFormat, check_replaceable
from entaug.progress import Progress
from entaug.progress import no_progress as silent

__all__ = [
    "LOSSES",
    "STDOUT",
    "Progress",
    "aside_path",
    "check_apart",
    "check_kind",
    "check_losses",
    "check_output",
    "dumped",
    "format_name",
    "guess",
    "refuse_loss",
    "said",
    "silent",
    "watched",
]

STDOUT = ("-", "/dev/stdout")
_BEGINNING = 1 << 18  # bytes looked at to guess the length of a file


def guess(opened: OpenedFile, progress: Progress) -> int | None:
    """About how many sentences a file has, for the time left; from how many its beginning has."""
    if progress is silent or opened.path.suffix == ".gz" or isinstance(opened.format, BufferedFormat):
        return None
    size = opened.path.stat().st_size
    if not size:
        return None  # reading will say so
    beginning = min(size, _BEGINNING)
    faults: list[InputError] = []  # they are told when the file is really read
    reading = Reading(repair=True, on_fault=faults.append)
    found = sum(1 for _ in opened.format.read(opened.path, opened.dialect, reading, 0, beginning))
    return max(1, round(found * size / beginning))


def watched(
    sentences: Iterable[Sentence], what: str, progress: Progress, total: int | None = None
) -> Iterator[Sentence]:
    """The sentences, with progress told on their way."""
    done = 0
    for done, sentence in enumerate(sentences, start=1):
        if not done % 256:
            progress(what, done, total)
        yield sentence
    progress(what, done, done)


def format_name(output: str | Path) -> str | Path:
    """What the output's format is told by; standard output has no extension."""
    return "stdout" if str(output) in STDOUT else output


def check_output(output: str | Path, input: str | Path, *, force: bool, folders: bool = False) -> None:
    """Fail early where the output could not be put in place at the end.

    Args:
        output: where to write.
        input: what is read.
        force: whether what is there may be replaced.
        folders: whether that may be a folder; then `check_kind` has to look at it.

    Raises:
        OutputError: it is the input, or exists and `force` is not given, or its folder cannot be written.
    """
    path = Path(output)
    if str(output) in STDOUT:
        return
    try:
        if path.is_dir() and (path.name in ("", "..") or (any(path.iterdir()) and not (force and folders))):
            remedy = "name a file in it, or for a format of folders a new or empty one"
            if folders and not force:
                remedy += ", or pass --force to replace what such a format wrote"
            raise OutputError("is a directory", path=str(path), remedy=remedy)
        for written in (path, *left_by(path)):
            if str(input) != STDIN and written.exists() and Path(input).exists() and written.samefile(input):
                raise OutputError(
                    "is the input, which is never changed", path=str(written), remedy="name another output"
                )
        if is_special(path):
            return
        if Path(input).is_dir() and path.resolve().is_relative_to(Path(input).resolve()):
            raise OutputError("is inside the input", path=str(path), remedy="name an output outside of it")
        if path.is_dir() and str(input) != STDIN and Path(input).resolve().is_relative_to(path.resolve()):
            raise OutputError("holds the input, which is never changed", path=str(path), remedy="name another output")
        if path.exists() and not force and not path.is_dir():
            raise OutputError("exists", path=str(path), remedy="pass --force to replace it, or name another")
        with tempfile.TemporaryFile(dir=follow_link(path).parent):
            pass
    except OSError as error:
        raise output_error(path, error) from None


def check_apart(outputs: Iterable[str | Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Fail early where something would be written over what is read.

    Args:
        outputs: files or folders that will be written, or none.
        inputs: all that is read besides the main input, which `check_output` looks at.

    Raises:
        OutputError: an output is an input, or lies in one that is a folder.
    """
    for read in (Path(one) for one in inputs if one is not None and str(one) != STDIN):
        for written in (Path(one) for one in outputs if one is not None and str(one) not in STDOUT):
            for path in (written, *left_by(written)):
                same = path.exists() and read.exists() and path.samefile(read)
                if same or (read.is_dir() and path.resolve().is_relative_to(read.resolve())):
                    what = "is read too, and what is read is never changed"
                    raise OutputError(what, path=str(path), remedy="name another output")


def aside_path(rejected: str | Path | None, input: str | Path, output: str | Path, *, force: bool) -> Path | None:
    """Where refused drafts go; fails early where they cannot."""
    if rejected is None:
        return None
    path = Path(rejected)
    if str(rejected) in STDOUT or is_special(path) or path.is_dir():
        raise OutputError("rejected drafts go to a file", path=str(rejected), remedy="name one that ends in .jsonl")
    if str(output) not in STDOUT and path.resolve() == Path(output).resolve():
        raise OutputError("is the output already", path=str(rejected), remedy="name another for rejected drafts")
    check_output(path, input, force=force)
    return path


def check_kind(output: str | Path, format_: Format, *, force: bool) -> None:
    """Fail early where the output is not of the kind that the format is written as.

    Raises:
        OutputError: a stream where a file or a folder is wanted, a file for a folder, or a folder for a file; a folder
            that is not to be replaced.
    """
    path = Path(output)
    folder = isinstance(format_, BufferedFormat) and format_.folder
    if isinstance(format_, BufferedFormat) and (str(output) in STDOUT or is_special(path)):
        remedy = f"name a {'folder' if folder else 'file'} to write to"
        raise OutputError(f"{format_.title} cannot be written to a stream", remedy=remedy)
    if folder and path.is_file():
        raise OutputError("is a file, and a folder is to be written", path=str(output), remedy="name another")
    if isinstance(format_, BufferedFormat) and folder and path.is_dir():
        check_replaceable(format_, path, force=force)
    if not folder and str(output).endswith("/") and not path.is_dir():
        what = f"is the name of a folder, and {format_.title} is written as a file"
        raise OutputError(what, path=str(output), remedy="name a file, or make the folder and name a file in it")
    if not folder and path.is_dir():
        raise OutputError("is a directory", path=str(output), remedy="name a file in it")


def said(notes: Counter[str]) -> list[str]:
    """What was met when the input was read, in words."""
    return [f"{name} ({count:,} times)" if count > 1 else name for name, count in sorted(notes.items())]


def dumped(
    sentence: Sentence, dump: Callable[[Sentence, Any], str], dialect: Any, source: OpenedFile, reading: Reading
) -> str:
    """The text of a sentence that was just read; where it cannot be written, its line is named."""
    try:
        return dump(sentence, dialect)
    except LossError as error:
        error.path, error.line = str(source.path), reading.line or None
        raise


LOSSES = ("id", "text", "column", "field", "tokens", "trees")
"""Kinds of what a format may have no place for; each is told as one of these words and what it is."""
_SAME_KIND = {"ids": "id", "fields": "field", "provenance": "field", "columns": "column"}


def check_losses(lose: Collection[str]) -> None:
    """Raise where something is to be left out that is no kind of loss."""
    for kind in lose:
        if kind not in (*LOSSES, "all"):
            raise ParameterError(
                f"nothing of the kind {kind!r} can be lost", remedy=f"there are: {', '.join(LOSSES)}; or all"
            )


def refuse_loss(lost: Counter[str], lose: Collection[str], to: OpenedFile) -> None:
    """Raise where something would be left out that nobody said to."""
    kinds = {name: _SAME_KIND.get(name.split()[0], name.split()[0]) for name in lost}  # "field 'source'" is a field
    kept = [name for name in lost if "all" not in lose and kinds[name] not in lose]
    if kept:
        shown = ", ".join(f"{name} ({_times(lost[name])})" for name in kept[:5])
        more = f" and {len(kept) - 5} more" if len(kept) > 5 else ""
        asked = ",".join(sorted({kinds[name] for name in kept} | set(lose)))
        remedy = f"pass --lose {asked} to leave that out, or choose another format"
        raise LossError(f"{to.format.title} has no place for {shown}{more}", remedy=remedy)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
