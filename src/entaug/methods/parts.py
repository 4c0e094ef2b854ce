"""Parts of an augmentation: what the jobs of an array do, each on any machine, and joining what they made.

A part is a contiguous block of the sources. Its file has a first line that tells what it belongs to, a line with what
was drawn of each source, and a last line with their number and sum. Joining drops repeats in the order of the input, so
that the output is that of one process.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Self, Unpack

import orjson

from entaug._version import __version__
from entaug.core.progress import Progress, no_progress
from entaug.errors import EntaugError, InputError, OutputError, ParameterError
from entaug.files.checkpoints import CheckpointedWriter
from entaug.files.streams import is_stdout, read_line_chunks
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.file_job import FileJob, FileOptions, check_apart
from entaug.formats.files import find_format, target
from entaug.methods.augment import (
    Augmentation,
    AugmentSummary,
    Drawn,
    Results,
    block_size,
    check_any,
    files_of,
)
from entaug.methods.base import Augmenter, window_of
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.statistics import CorpusStatistics

_BATCH = 64  # sources whose text is written at once
_MOST = 99_999  # parts
_PART = re.compile(r"(\d+)/(\d+)")
_SUMMED = "sum"  # of the rest of a first line
_OF_SUMMARY = ("method", "signature", "input", "from_format", "to_format", "lost", "repaired", "notes")


@dataclass(frozen=True)
class Part:
    """A part of the work on a corpus.

    Args:
        number: its number, from 1.
        of: the number of all parts.

    Example:
        >>> Part.parse("3/64").name
        'part-00003-of-00064.jsonl.gz'
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Create a part from its text form.

        Args:
            text: number and total, for example ``"3/64"``.

        Raises:
            ParameterError: it is not of this form, or there is no such part.
        """
        match = _PART.fullmatch(text.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= _MOST:
            remedy = "write it as 3/64; the first is 1/64"
            raise ParameterError(f"`part` {text!r} is not a part of a whole", remedy=remedy)
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"part-{self.number:05}-of-{self.of:05}.jsonl.gz"

    def range_of(self, total: int) -> tuple[int, int]:
        """Return the first source, from 0, and the one after the last: whole blocks, as all processes draw them.

        Args:
            total: the number of all sources.
        """
        size = block_size(total)
        blocks = -(-total // size)
        start, stop = (blocks * number // self.of * size for number in (self.number - 1, self.number))
        return start, min(stop, total)


@dataclass
class PartSummary:
    """Result of `augment_part`."""

    output: str
    part: str
    sources: int = 0
    of_sources: int = 0
    drafts: int = 0
    resumed_at: int = 0
    seconds: float = 0.0


def augment_part(
    input: str | Path,
    folder: str | Path,
    augmenter: Augmenter | CombinedAugmenter,
    part: Part,
    *,
    only_new: bool = False,
    review: str | Path | None = None,
    jobs: int | None = 1,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> PartSummary:
    r"""Augment a part of a file.

    The method is fitted on the whole file. An interrupted call goes on where it stopped.

    Args:
        input: the gold training file; the same for all parts.
        folder: the folder for the files of the parts.
        augmenter: the method, or several; fitted on the input.
        part: the part.
        only_new: whether `merge_parts` will write the augmented sentences alone.
        review: decisions exported from a report; sentences rejected there are left out, and corrected ones corrected.
        jobs: the number of processes, see `entaug.methods.augment.augment_file`.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`; ``force`` also discards the partial file of another
            run.

    Returns:
        A summary with counts.

    Raises:
        InputError: the input is invalid.
        LossError: the output's format cannot store a gold sentence.
        OutputError: the file exists or cannot be written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\nwell O\n\nBo B-PER\ndances O\n")
        >>> for number in (1, 2):
        ...     augmenter = entaug.create_augmenter("mr", p=1.0)
        ...     _ = augment_part(folder / "train.conll", folder / "parts", augmenter, Part(number, 2))
        >>> summary = merge_parts([folder / "parts"], folder / "bigger.conll")
        >>> summary.statistics.accepted, len(entaug.read(folder / "bigger.conll"))
        (2, 4)
    """
    begun = time.monotonic()
    if is_stdout(folder):
        raise OutputError("a part is not written to a stream", remedy="name a folder: `output=FOLDER`")
    try:
        Path(folder).mkdir(exist_ok=True)
    except OSError as error:
        message = f"cannot be a folder of parts ({error.strerror})"
        raise OutputError(message, path=str(folder), remedy="name a folder, in one that exists") from None
    path = Path(folder, part.name)
    job = FileJob(input, path, **files)
    job.check([review, *files_of(augmenter)], folders=False)
    summary = PartSummary(str(path), str(part))
    merged = replace(job, output=path.with_name("merged"), force=True)
    with Augmentation.open(merged, augmenter, review, jobs, "local", None, progress) as run:
        work = run.work
        work.with_gold, work.with_rejected = not only_new, bool(augmenter.filters_) or augmenter.teacher_ is not None
        key = run.key(only_new)
        with CheckpointedWriter(path, f"{key} {part}", force=job.force) as writer:
            whole = run.read("", None, copy_gold=False)
            if job.allow_loss:
                job.settle_losses(whole.lost.copy(), work.target_file)
            summary.of_sources = whole.before.sentences
            start, stop = part.range_of(summary.of_sources)
            summary.sources = stop - start
            state = writer.state or {"sources": 0, "drafts": 0, "sum": ""}
            done, summary.drafts, total = state["sources"], state["drafts"], state["sum"]
            summary.resumed_at = done
            drawn = run.drawn(start + done, stop, summary.of_sources)
            window = window_of(augmenter.augmenters)  # what comes at once
            while batch := list(islice(drawn, window)):
                if not done:  # only now are all notes known
                    writer.write([_first_line(part, key, whole, run)])
                lines = [_json_line([n, [one[:5] for one in outcomes], gold]) for n, outcomes, gold in batch]
                writer.write(lines)
                total = reduce(_next_sum, lines, total)
                done += len(batch)
                summary.drafts += sum(len(outcome) != 3 for one in batch for outcome in one.outcomes)
                writer.checkpoint({"sources": done, "drafts": summary.drafts, "sum": total})
                progress("augmenting", done, summary.sources)
            if not done:
                writer.write([_first_line(part, key, whole, run)])
            writer.write([_json_line({"sources": done, _SUMMED: total})])
    summary.seconds = time.monotonic() - begun
    return summary


def merge_parts(
    inputs: Iterable[str | Path],
    output: str | Path,
    *,
    force: bool = False,
    rejected: str | Path | None = None,
    allow_empty: bool = False,
    progress: Progress = no_progress,
) -> AugmentSummary:
    r"""Write what one process would have written without parts.

    An interrupted call goes on where it stopped.

    Args:
        inputs: the files of all parts, or folders with them.
        output: the file for gold and augmented sentences, or ``"-"`` for standard output.
        force: replace an output that exists, and discard the partial file of another run.
        rejected: a JSON Lines file for the candidates that filters rejected, with the reasons.
        allow_empty: whether no augmented sentence at all is a valid result.
        progress: the progress callback.

    Returns:
        A summary with counts, without examples.

    Raises:
        InputError: a part is missing, is not complete, or does not belong to the others; or no sentence was generated.
        OutputError: the output exists or cannot be written, or its name stands for another format.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\nwell O\n\nBo B-PER\ndances O\n")
        >>> augmenter = entaug.create_augmenter("mr", p=1.0)
        >>> _ = augment_part(folder / "train.conll", folder / "parts", augmenter, Part(1, 1))
        >>> merge_parts([folder / "parts"], folder / "bigger.conll").before.sentences
        2
    """
    begun = time.monotonic()
    inputs = list(inputs)
    files = _part_files(inputs)
    first = files[0].header
    try:
        target_file = _target(output, first)
        told: dict[str, Any] = {name: first[name] for name in _OF_SUMMARY}
        told = {name: Counter(value) if isinstance(value, dict) else value for name, value in told.items()}
        summary = AugmentSummary(output=str(output), before=CorpusStatistics.from_dict(first["before"]), **told)
        with_gold, review = first["with_gold"], first["review"]
        key = sha256(f"merge {first['key']} {len(files)}".encode()).hexdigest()
    except EntaugError as error:
        error.path = error.path or str(files[0].path)
        raise
    except (LookupError, TypeError, ValueError, AttributeError):
        raise files[0].error("has a damaged first line", "write it again") from None
    check_apart([output, rejected], [*inputs, *(file.path for file in files)])
    rejected_path = FileJob(files[0].path, output, force).check(rejected=rejected)
    target_file.check_target(force=force)
    with _naming(files), target_file.open_run(key, force=force, rejected=rejected_path) as writer:
        if with_gold and writer.state is None:
            for number, file in enumerate(files, start=1):
                sources = file.sources()
                while batch := list(islice(sources, _BATCH)):
                    writer.write([one.gold for one in batch])
                progress("merging", number, len(files))
        writer.release()
        results = Results(target_file, writer, summary, progress, with_gold=with_gold)
        results.write(islice((one for file in files for one in file.sources()), summary.resumed_at, None))
        results.conclude(review)
        if not allow_empty:
            check_any(summary, writer, has_rejected=rejected_path is not None)
    summary.seconds = time.monotonic() - begun
    return summary


# ------------------------------------------------------------------------------------------------------- files of parts


class _PartFile:
    """The file of a part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            header = orjson.loads(next(self._lines(), ""))
            if header["entaug"] != "part":
                raise ValueError  # noqa: TRY301
        except (ValueError, LookupError, TypeError):
            raise self.error("is not a part", "name parts as entaug augment writes them") from None
        if header.get("version") != __version__:
            raise self.error("was written by another version", "use one version for all parts")
        try:
            if header.pop(_SUMMED) != _sum_of(header):
                raise ValueError  # noqa: TRY301
            self.part = Part.parse(f"{header.pop('part')}/{header['of']}")
        except (ValueError, LookupError, AttributeError, ParameterError):
            raise self.error("has a damaged first line", "write it again") from None
        self.header: Mapping[str, Any] = header

    def error(self, message: str, remedy: str) -> InputError:
        """Return an error that names the file."""
        return InputError(message, path=str(self.path), remedy=remedy)

    def _lines(self) -> Iterator[str]:
        for _, lines in read_line_chunks(self.path):
            yield from lines

    def sources(self) -> Iterator[Drawn]:
        """Read what was drawn of the sources."""
        start, stop = self.part.range_of(self.header["before"]["sentences"])
        lines = islice(self._lines(), 1, None)
        remedy = f"write part {self.part} again"
        try:
            count, total = 0, ""
            for line in islice(lines, stop - start):
                yield Drawn(*orjson.loads(line))
                count, total = count + 1, _next_sum(total, line)
            end = orjson.loads(next(lines, "0"))
            if not isinstance(end, dict) or end.get("sources") != count or count != stop - start or any(lines):
                raise self.error("is not complete", remedy)
            if end != {"sources": count, _SUMMED: total}:
                raise self.error("was changed after it was written", remedy)
        except (ValueError, TypeError):
            raise self.error("is damaged", remedy) from None


@contextlib.contextmanager
def _naming(files: Sequence[_PartFile]) -> Iterator[None]:
    """Turn what only a file can cause that says odd things, with a right sum, into an error that names one."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise files[0].error("is damaged", f"write part {files[0].part} again") from error


def _part_files(inputs: Iterable[str | Path]) -> list[_PartFile]:
    """Return the files of all parts, in order."""
    files: list[_PartFile] = []
    for path in map(Path, inputs):
        found = sorted(path.glob("part-*-of-*.jsonl*")) if path.is_dir() else [path]
        found = [file for file in found if ".partial" not in file.suffixes]  # of a part that is not finished
        if not found:
            raise InputError("holds no part", path=str(path), remedy="name the folder that parts were written to")
        files += map(_PartFile, found)
    if not files:
        raise ParameterError("no part is given", remedy="name their folder")
    first, by_number = files[0], dict[int, _PartFile]()
    for file in files:
        if differing := [n for n, value in first.header.items() if file.header.get(n) != value]:
            what = "number of parts" if "of" in differing else "input, options, version or models"
            message = f"differs from {first.path} in {what} ({', '.join(differing)})"
            raise file.error(message, "merge the parts of one run")
        if (other := by_number.setdefault(file.part.number, file)) is not file:
            raise file.error(f"is part {file.part}, as is {other.path}", "name one of them")
    of = first.part.of
    if missing := [number for number in range(1, of + 1) if number not in by_number]:
        shown = ", ".join(map(str, missing[:10])) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        message = f"{len(missing)} of {of} parts missing: {shown}"
        remedy = f"write them, as part {missing[0]}/{of}"
        raise InputError(message, path=str(first.path.parent), remedy=remedy)
    return [by_number[number] for number in range(1, of + 1)]


def _first_line(part: Part, key: str, whole: AugmentSummary, run: Augmentation) -> str:
    target_file, dialect = run.work.target_file, run.work.target_file.dialect
    header = {
        "entaug": "part",
        "version": __version__,
        "part": part.number,
        "of": part.of,
        "key": key,
        "format": target_file.format.name,
        "dialect": asdict(dialect),
        "with_gold": run.work.with_gold,
        **{name: getattr(whole, name) for name in _OF_SUMMARY},
        "before": whole.before.to_dict(),
        "review": run.work.review.counts,
    }
    return _json_line({**header, _SUMMED: _sum_of(header)})


def _json_line(value: Any) -> str:
    return orjson.dumps(value).decode() + "\n"


def _sum_of(header: Any) -> str:
    return sha256(orjson.dumps(header, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _next_sum(before: str, line: str) -> str:
    """The sum of all lines up to a line, from that of the lines before it; the first one is empty."""
    return sha256((before + line.rstrip("\n")).encode()).hexdigest()


def _target(output: str | Path, header: Mapping[str, Any]) -> CorpusFile:
    """The output in the format that the parts hold."""
    format_ = find_format(header["format"])
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in header["dialect"].items()}
    target_file = CorpusFile(Path(output), format_, format_.dialect_class(**values))
    named = target(output, None, replace(target_file, path=Path("merged")))  # which has no extension
    if not is_stdout(output) and named.format.name != format_.name:
        raise OutputError(
            f"the parts hold {format_.title}, and this is the name of {named.format.title}",
            path=str(output),
            remedy=f"name a file of the format, or write the parts as {named.format.name}",
        )
    return target_file
