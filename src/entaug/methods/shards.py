"""The workflows behind ``entaug augment --shard`` and ``entaug merge``: one corpus, augmented by many machines.

The drafts in the file of a shard are not compared with those of other sources. Merging does that, in the order of the
input, so that the output is that of one process.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from entaug.backends.processes import check_jobs
from entaug.core.progress import Progress, no_progress
from entaug.errors import EntaugError, InputError, OutputError, ParameterError
from entaug.files.checkpoints import CheckpointedWriter
from entaug.files.review import Review, read_review
from entaug.files.streams import is_stdout
from entaug.formats import CorpusFile, find_format, target
from entaug.formats.file_job import Options, check_apart, check_output, check_rejected_output, open_corpora
from entaug.methods.accepting import Acceptance, AugmentSummary, ReviewCounts, check_any, open_writer
from entaug.methods.augment import new_summary, processes_for, run_key
from entaug.methods.augmentation import Augmentation
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.drafting import DraftJob, Made, SourceDrafts
from entaug.methods.shard_files import (
    Shard,
    end_line,
    first_line,
    json_line,
    manifest,
    next_sum,
    plain_drafts,
    shard_files,
)
from entaug.methods.statistics import CorpusStatistics
from entaug.methods.surveys import Sharing, in_parts_or_whole
from entaug.teacher.relabel import check_soft_labels

__all__ = ["Shard", "ShardSummary", "augment_shard", "fitted_digest", "merge_shards"]

_BATCH = 64  # sources between two checkpoints


@dataclass
class ShardSummary:
    """Result of `augment_shard`."""

    output: str
    shard: str
    sources: int = 0
    of_sources: int = 0
    drafts: int = 0
    resumed_at: int = 0
    seconds: float = 0.0


def augment_shard(
    input: str | Path,
    folder: str | Path,
    augmenter: Augmenter | CombinedAugmenter,
    shard: Shard,
    *,
    only_new: bool = False,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: Options = None,
    write_options: Options = None,
    review: str | Path | None = None,
    jobs: int | None = 1,
    progress: Progress = no_progress,
) -> ShardSummary:
    r"""Augment a part of a file.

    The method is fitted on the whole file. An interrupted call goes on where it stopped.

    Args:
        input: the gold training file; the same for all shards.
        folder: the folder for the files of the shards.
        augmenter: the method, or several; fitted on the input.
        shard: the part.
        only_new: whether `merge_shards` will write the augmented sentences alone.
        force: replace the file of the shard, and the partial file of another run.
        repair: repair invalid tag sequences of the input.
        from_format: the format of the input; None to detect it.
        to_format: the format that `merge_shards` will write; None for that of the input.
        read_options: options of the input's format.
        write_options: options of the output's format.
        review: decisions exported from a report; sentences rejected there are left out.
        jobs: the number of processes, see `entaug.methods.augment.augment_file`.
        progress: the progress callback.

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
        ...     _ = augment_shard(folder / "train.conll", folder / "shards", augmenter, Shard(number, 2))
        >>> summary = merge_shards([folder / "shards"], folder / "bigger.conll")
        >>> summary.statistics.accepted, len(entaug.read(folder / "bigger.conll"))
        (2, 4)
    """
    begun = time.monotonic()
    check_jobs(jobs)
    augmenter.load()
    if is_stdout(folder):
        raise OutputError("a shard is not written to a stream", remedy="name a folder: --output FOLDER")
    try:
        Path(folder).mkdir(exist_ok=True)
    except OSError as error:
        message = f"is no folder for shards ({error.strerror})"
        raise OutputError(message, path=str(folder), remedy="name a folder, in one that exists") from None
    path = Path(folder, shard.name)
    check_output(path, input, force=force)
    check_apart([path], [review])
    decisions = read_review(review, augmenter.name) if review is not None else Review()
    with open_corpora(
        input,
        path.with_name("merged"),
        force=True,
        from_format=from_format,
        to_format=to_format,
        read_options=read_options,
        write_options=write_options,
    ) as (source, to):
        check_soft_labels(augmenter.teacher_, to)
        settings = (only_new, repair, sorted(map(repr, decisions.decisions.items())))
        key = run_key(augmenter, source, to, *settings)

        taken: set[str] = set()

        def attempt(jobs: int) -> ShardSummary:
            summary = ShardSummary(str(path), str(shard))
            whole = new_summary(augmenter, input, "", source, to)
            with (
                Sharing.start(jobs, source) as sharing,
                CheckpointedWriter(path, f"{key} {shard}", force=force) as writer,
            ):
                run = Augmentation(augmenter, source, to, writer, whole, repair, progress, sharing, taken)
                run.fit(copy_gold=False)
                summary.of_sources = whole.before.sentences
                start, stop = shard.range_of(whole.before.sentences)
                summary.sources = stop - start
                state = writer.state or {"sources": 0, "drafts": 0, "sum": ""}
                summary.resumed_at, summary.drafts = state["sources"], state["drafts"]
                if writer.state is None:
                    counts = ReviewCounts(len(decisions.decisions), len(decisions.rejected), decisions.others)
                    said = manifest(
                        shard,
                        key,
                        whole,
                        to,
                        counts,
                        with_gold=not only_new,
                        fitted=fitted_digest(augmenter),
                    )
                    writer.write([first_line(said)])
                with_rejected = bool(augmenter.filters_) or augmenter.teacher_ is not None
                job = DraftJob(augmenter, source, to, repair, decisions, with_rejected, with_gold=not only_new)
                done, total = summary.resumed_at, state["sum"]
                drafts = run.drafts(job, None, start + done, stop)
                while batch := list(islice(drafts, _BATCH)):
                    lines = [json_line([*plain_drafts(one)]) for one in batch]
                    writer.write(lines)
                    total = reduce(next_sum, lines, total)
                    done += len(batch)
                    summary.drafts += sum(isinstance(o, Made) for one in batch for o in one.outcomes)
                    writer.checkpoint({"sources": done, "drafts": summary.drafts, "sum": total})
                    progress("augmenting", done, summary.sources)
                writer.write([json_line(end_line(done, total))])
            return summary

        summary = in_parts_or_whole(attempt, processes_for(jobs, augmenter, source))
    summary.seconds = time.monotonic() - begun
    return summary


def merge_shards(
    inputs: Iterable[str | Path],
    output: str | Path,
    *,
    force: bool = False,
    rejected: str | Path | None = None,
    allow_empty: bool = False,
    progress: Progress = no_progress,
) -> AugmentSummary:
    r"""Write what one process would have written without shards.

    An interrupted call goes on where it stopped.

    Args:
        inputs: the files of all shards, or folders with them.
        output: the file for gold and augmented sentences, or ``"-"`` for standard output.
        force: replace an output that exists, and discard the partial file of another run.
        rejected: a JSON Lines file for the candidates that filters rejected, with the reasons.
        allow_empty: whether no augmented sentence at all is a valid result.
        progress: the progress callback.

    Returns:
        A summary with counts, without examples.

    Raises:
        InputError: a shard is missing, is not complete, or does not belong to the others; or no sentence was generated.
        OutputError: the output exists or cannot be written, or its name stands for another format.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\nwell O\n\nBo B-PER\ndances O\n")
        >>> augmenter = entaug.create_augmenter("mr", p=1.0)
        >>> _ = augment_shard(folder / "train.conll", folder / "shards", augmenter, Shard(1, 1))
        >>> merge_shards([folder / "shards"], folder / "bigger.conll").before.sentences
        2
    """
    begun = time.monotonic()
    inputs = list(inputs)
    files = shard_files(inputs)
    said = files[0].manifest
    try:
        to = _target(output, said)
        described = {n: said[n] for n in ("method", "signature", "input", "from_format", "to_format", "notes")}
        summary = AugmentSummary(
            output=str(output),
            before=CorpusStatistics.from_dict(said["before"]),
            lost=Counter(said["lost"]),
            repaired=Counter(said["repaired"]),
            **described,
        )
        with_gold, key, review = said["with_gold"], said["key"], ReviewCounts(**said["review"])
    except EntaugError as error:
        error.path = error.path or str(files[0].path)
        raise
    except (LookupError, TypeError, ValueError, AttributeError):
        remedy = "write it again"
        raise InputError("has a damaged first line", path=str(files[0].path), remedy=remedy) from None
    check_apart([output, rejected], [*inputs, *(file.path for file in files)])
    check_output(output, files[0].path, force=force, folders=True)
    to.check_target(force=force)
    rejected_path = check_rejected_output(rejected, files[0].path, output, force=force)
    key = sha256(f"merge {key} {len(files)} {bool(rejected_path)}".encode()).hexdigest()
    with open_writer(output, to, lambda: key, force=force, rejected=rejected_path) as writer:
        if with_gold and writer.state is None:
            for number, file in enumerate(files, start=1):
                for batch in _batches(file.sources()):
                    writer.write([one.gold for one in batch])
                progress("merging", number, len(files))
        acceptance = Acceptance(to, writer, summary, progress, review)
        acceptance.begin(with_gold=with_gold)
        sources = (one for file in files for one in file.sources())
        acceptance.write(islice(sources, summary.resumed_at, None))
        if not allow_empty:
            check_any(summary, writer, has_rejected=rejected_path is not None)
    summary.seconds = time.monotonic() - begun
    return summary


def fitted_digest(augmenter: Augmenter | CombinedAugmenter) -> str | None:
    """Return the sum of what a method learned; None if that cannot be saved without the training sentences."""
    try:
        return sha256(json_line(augmenter.fitted_state()).encode()).hexdigest()
    except (ParameterError, TypeError):
        return None


def _batches(sources: Iterator[SourceDrafts]) -> Iterator[Sequence[SourceDrafts]]:
    while batch := list(islice(sources, _BATCH)):
        yield batch


def _target(output: str | Path, manifest: dict[str, Any]) -> CorpusFile:
    """The output in the format that the shards hold."""
    format_ = find_format(manifest["format"])
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in manifest["dialect"].items()}
    to = CorpusFile(Path(output), format_, format_.dialect_class(**values))
    named = target(output, None, replace(to, path=Path(os.devnull)))  # which has no extension
    if not is_stdout(output) and named.format.name != format_.name:
        raise OutputError(
            f"the shards hold {format_.title}, and this is the name of {named.format.title}",
            path=str(output),
            remedy=f"name a file of the format, or write the shards with --to {named.format.name}",
        )
    return to
