"""``entaug filter``: remove augmented sentences that filters reject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from entaug.commands.command import Command, FileSummary
from entaug.commands.options import COMPUTING, FILTERS, FORCE, JSON, LOSSES, READING, WRITING, named_filters
from entaug.commands.output import quantity, rejection_lines
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, ParameterError
from entaug.files.review import Review, read_review
from entaug.filters import Filter, apply_filters, create_filters
from entaug.formats.augmented import AugmentedPair, PairedFile
from entaug.formats.file_job import FileJob, FileOptions
from entaug.methods.statistics import CorpusStatistics
from entaug.methods.types import REVIEWED

_WINDOW = 256  # sentences per batch; the result does not depend on it


@dataclass(kw_only=True)
class FilterSummary(FileSummary):
    """Result of `filter`."""

    filters: list[str] = field(default_factory=list)
    gold: int = 0
    filtered: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    after: CorpusStatistics = field(default_factory=CorpusStatistics)

    def count_lines(self) -> Iterator[str]:
        """Return what was kept and rejected, for the user."""
        gold = f", and {quantity(self.gold, 'gold sentence')}" if self.gold else ""
        kept = f"{self.kept:,} of {quantity(self.filtered, 'augmented sentence')} kept"
        yield f"{kept}{gold}: {self.after.sentences:,} written"
        yield from rejection_lines(self.rejected)


def filter(  # noqa: A001
    input: str | Path,
    output: str | Path,
    filters: str | Filter | Sequence[str | Filter],
    *,
    gold: str | Path | None = None,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> FilterSummary:
    """Filter the augmented sentences of a file; gold and kept sentences are written in the order of the input.

    Args:
        input: augmented sentences, with or without the gold ones; or ``"-"``.
        output: the file for the kept sentences, or ``"-"`` for standard output.
        filters: filters, in any form that `entaug.filters.create_filters` accepts.
        gold: the file that was augmented; required if the input holds augmented sentences only, or no provenance.
        rejected: a JSON Lines file for the rejected sentences, with the reason in ``entaug.rejected``.
        review: decisions exported from a report, see `entaug.files.review`: sentences rejected there are left out.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: neither a filter nor a review is given.
        InputError: the input is invalid, holds no augmented sentence, or a filter needs a source that is unknown.
        LossError: the output's format cannot store some content of the input.
        OutputError: an output exists or cannot be written; then none is written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> gold = [Sentence("a b c d e".split()), Sentence("f g".split())]
        >>> _ = entaug.write([*gold, *entaug.create_augmenter("sis").augment(gold)], folder / "all.jsonl")
        >>> summary = filter(folder / "all.jsonl", folder / "good.jsonl", "similarity:min_similarity=0.55")
        >>> summary.gold, summary.kept, dict(summary.rejected)
        (2, 1, {'similarity: too different from its source': 1})
    """
    summary = FilterSummary(input=str(input), output=str(output))
    filters = create_filters(filters)
    if not filters and review is None:
        raise ParameterError("no filter is given", remedy="name a filter with --filter: see entaug list filters")
    decisions = read_review(review) if review is not None else Review()
    job = FileJob(input, output, **files)
    rejected_path = job.check([gold, review], rejected=rejected)
    for filter_ in filters:
        filter_.load()
    with PairedFile.open(job, gold, progress) as file:
        pairs, sentences = file.pairs, file.sentences
        _check_sources(pairs, filters, str(input), gold)
        for filter_ in filters:
            filter_.fit(file.gold)
        rejections = _rejections(pairs, filters, decisions, progress)
        file.write(sentences, rejections, rejected_path)
        summary.from_format, summary.to_format = file.source.dialect.describe(), file.target_file.dialect.describe()
    notes = {note for filter_ in filters for note in filter_.model_notes()}
    unknown = len(decisions.rejected) - rejections.count(REVIEWED.reason)
    if unknown > 0:
        notes.add(f"{unknown:,} of {len(decisions.rejected):,} sentences that the review rejects are not in this file")
    summary.filters = [filter_.signature for filter_ in filters]
    summary.gold = pairs.count(None)
    summary.filtered = len(pairs) - summary.gold
    summary.rejected.update(reason for reason in rejections if reason is not None)
    summary.kept = summary.filtered - summary.rejected.total()
    summary.after = CorpusStatistics.of(s for s, reason in zip(sentences, rejections, strict=True) if reason is None)
    return summary.finish(file.reading, notes)


def _source(pair: AugmentedPair) -> Sentence | None:
    """Return the source of a sentence; None if it was generated without conditioning on it."""
    return None if pair.provenance.details.get("unconditioned") else pair.source


def _check_sources(
    pairs: Sequence[AugmentedPair | None], filters: Sequence[Filter], path: str, gold: str | Path | None
) -> None:
    """Check, before any work, that the source is known wherever a filter needs it."""
    without_source = [pair for pair in pairs if pair is not None and _source(pair) is None]
    for filter_ in filters:
        if without_source and filter_.needs_source:
            count = len(without_source)
            message = f"{count:,} augmented sentences have no known source, which the filter {filter_.name} needs"
            if gold is None and any(pair.source is None for pair in without_source):
                raise InputError(message, path=path, remedy="name the file that was augmented with --gold")
            raise InputError(message, path=path, remedy=filter_.without_source)


def _rejections(
    pairs: Sequence[AugmentedPair | None], filters: Sequence[Filter], review: Review, progress: Progress
) -> list[str | None]:
    """Return the reason for rejecting each sentence; None for gold and kept sentences."""
    reasons = [None if pair is None else pair.rejection for pair in pairs]  # rejections by an earlier run are kept
    for i, pair in enumerate(pairs):
        rejects = pair is not None and review.rejects(pair.augmented.fingerprint_number(), pair.augmented.id)
        if review.decisions and rejects:
            reasons[i] = REVIEWED.reason
    pending = [(i, pair) for i, pair in enumerate(pairs) if pair is not None and reasons[i] is None]
    for start in range(0, len(pending), _WINDOW):
        window = pending[start : start + _WINDOW]
        results = apply_filters(filters, [pair.augmented for _, pair in window], [_source(pair) for _, pair in window])
        for (i, _), reason in zip(window, results, strict=True):
            reasons[i] = reason
        progress("filtering", start + len(window), len(pending))
    return reasons


COMMAND = Command(
    filter,
    {"filters": None, "rejected": {"metavar": "FILE"}},
    (FORCE, LOSSES, JSON, FILTERS, READING, WRITING, COMPUTING),
    values=lambda args: {"filters": named_filters(args)},
)
