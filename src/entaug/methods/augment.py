"""The workflow behind ``entaug augment``: write gold and augmented sentences to a file.

The output is moved into place only when it is complete. An interrupted run leaves a partial file beside it; the same
call resumes from there and gives the same bytes.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

from entaug._version import __version__
from entaug.backends.processes import check_jobs, number_of_processes
from entaug.core.progress import Progress, no_progress
from entaug.files.review import Review, read_review
from entaug.files.streams import open_bytes
from entaug.formats import CorpusFile
from entaug.formats.file_job import Options, check_apart, check_output, check_rejected_output, open_corpora
from entaug.methods.accepting import AugmentSummary, check_any, open_writer
from entaug.methods.augmentation import Augmentation
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.surveys import Sharing, in_parts_or_whole
from entaug.teacher.relabel import check_soft_labels

__all__ = ["AugmentSummary", "augment_file", "content_digest", "new_summary", "processes_for", "run_key"]


def augment_file(
    input: str | Path,
    output: str | Path,
    augmenter: Augmenter | CombinedAugmenter,
    *,
    only_new: bool = False,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: Options = None,
    write_options: Options = None,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    allow_empty: bool = False,
    jobs: int | None = 1,
    progress: Progress = no_progress,
) -> AugmentSummary:
    r"""Augment a file.

    Args:
        input: the gold training file, or ``"-"`` for standard input.
        output: the file for gold and augmented sentences, or ``"-"`` for standard output.
        augmenter: the method, or several; fitted on the input.
        only_new: write the augmented sentences alone.
        force: replace an output that exists, and discard the partial file of another interrupted run.
        repair: repair invalid tag sequences of the input.
        from_format: the format of the input; None to detect it.
        to_format: the format of the output; None for the format of its extension, or else of the input.
        read_options: options of the input's format.
        write_options: options of the output's format.
        rejected: a JSON Lines file for the candidates that filters rejected, with the reasons.
        review: decisions exported from a report, see `entaug.files.review`; sentences rejected there are left out.
        allow_empty: whether no augmented sentence at all is a valid result.
        jobs: the number of processes that share the work of rules; None for as many as there are cores, where the input
            is large enough to keep them busy. The output does not depend on it. A script that starts processes needs
            the usual ``if __name__ == "__main__":``.
        progress: the progress callback.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: several processes are wanted for a method that uses models.
        InputError: the input is invalid, or no sentence was generated; then nothing is written but the rejected ones.
        OutputError: the output exists or cannot be written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\nwell O\n\nBo B-PER\ndances O\n")
        >>> augmenter = entaug.create_augmenter("mr", p=1.0)
        >>> summary = augment_file(folder / "train.conll", folder / "bigger.conll", augmenter)
        >>> summary.statistics.accepted, len(entaug.read(folder / "bigger.conll"))
        (2, 4)
    """
    begun = time.monotonic()
    check_jobs(jobs)
    augmenter.load()
    check_output(output, input, force=force, folders=True)
    rejected_path = check_rejected_output(rejected, input, output, force=force)
    check_apart([output, rejected], [review])
    decisions = read_review(review, augmenter.name) if review is not None else Review()
    with open_corpora(
        input,
        output,
        force=force,
        from_format=from_format,
        to_format=to_format,
        read_options=read_options,
        write_options=write_options,
    ) as (source, to):
        check_soft_labels(augmenter.teacher_, to)

        settings = (only_new, repair, bool(rejected_path), sorted(map(repr, decisions.decisions.items())))

        taken: set[str] = set()

        def attempt(jobs: int) -> AugmentSummary:
            summary = new_summary(augmenter, input, output, source, to)
            with (
                Sharing.start(jobs, source) as sharing,
                open_writer(
                    output,
                    to,
                    lambda: run_key(augmenter, source, to, *settings),
                    force=force,
                    rejected=rejected_path,
                ) as writer,
            ):
                run = Augmentation(augmenter, source, to, writer, summary, repair, progress, sharing, taken)
                run.fit(copy_gold=not only_new)
                run.run(decisions, with_gold=not only_new, with_rejected=rejected_path is not None)
                if not allow_empty:
                    check_any(summary, writer, has_rejected=rejected_path is not None)
            return summary

        summary = in_parts_or_whole(attempt, processes_for(jobs, augmenter, source))
    summary.seconds = time.monotonic() - begun
    return summary


def processes_for(jobs: int | None, augmenter: Augmenter | CombinedAugmenter, source: CorpusFile) -> int:
    """Return the number of processes that share the work; 1 for this one alone."""
    return number_of_processes(jobs, source.size, [augmenter.name] if augmenter.uses_models else [])


def new_summary(
    augmenter: Augmenter | CombinedAugmenter, input: object, output: object, source: CorpusFile, to: CorpusFile
) -> AugmentSummary:
    """Return a summary without any counts."""
    return AugmentSummary(
        augmenter.name, augmenter.signature, str(input), str(output), source.dialect.describe(), to.dialect.describe()
    )


def run_key(augmenter: Augmenter | CombinedAugmenter, source: CorpusFile, to: CorpusFile, *settings: Any) -> str:
    """Return the key of a run; an interrupted run is resumed only by a run with the same key."""
    parts = (
        __version__,
        augmenter.signature,
        source.dialect,
        to.format.name,
        to.dialect,
        content_digest(source),
        *settings,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def content_digest(source: CorpusFile) -> str:
    """Return the sum of an input; of a folder the names and the sums of its files."""
    content = ""
    for file in source.source_files():
        with open_bytes(file) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        content += f"{file.relative_to(source.path) if source.path.is_dir() else ''}{digest}"
    return content
