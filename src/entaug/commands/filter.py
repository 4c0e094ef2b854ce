"""``entaug filter``: remove augmented sentences that filters reject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from entaug.commands.command import Command, FileSummary
from entaug.commands.options import COMPUTING, FILTERS, FORCE, JSON, LOSSES, READING, WRITING, named_filters
from entaug.commands.output import label_lines, rejection_lines
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, ParameterError
from entaug.files.review import Review, read_review
from entaug.filters import Filter, apply_filters, create_filters
from entaug.formats.augmented import AugmentedPair, PairedFile
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions, write_text
from entaug.methods.statistics import CorpusStatistics
from entaug.methods.types import REVIEWED
from entaug.metrics.tables import quantity
from entaug.teacher.corrections import correct_augmented, log_lines

_WINDOW = 256  # sentences per batch; the result does not depend on it


@dataclass(kw_only=True)
class FilterSummary(FileSummary):
    """Result of `filter`."""

    filters: list[str] = field(default_factory=list)
    gold: int = 0
    filtered: int = 0
    kept: int = 0
    corrected: int = 0
    corrections: Counter[str] = field(default_factory=Counter)
    log: str = ""
    rejected: Counter[str] = field(default_factory=Counter)
    after: CorpusStatistics = field(default_factory=CorpusStatistics)

    def count_lines(self) -> Iterator[str]:
        gold = f", and {quantity(self.gold, 'gold sentence')}" if self.gold else ""
        kept = f"{self.kept:,} of {quantity(self.filtered, 'augmented sentence')} kept"
        yield f"{kept}{gold}: {self.after.sentences:,} written"
        yield from rejection_lines(self.rejected)
        if self.corrected:
            labels = quantity(self.corrections.total(), "label")
            yield f"{labels} corrected in {quantity(self.corrected, 'augmented sentence')}"
            yield from label_lines(self.corrections)
        if self.log:
            yield f"wrote {self.log}: what was changed"


@takes_data("input", "gold")
def filter(  # noqa: A001
    input: CorpusData,
    output: str | Path,
    filters: str | Filter | Sequence[str | Filter],
    *,
    gold: CorpusData | None = None,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    log: str | Path | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> FilterSummary:
    """Filter the augmented sentences of a file; gold and kept sentences are written in the order of the input.

    Args:
        input: augmented sentences, with or without the gold ones; or ``"-"``.
        output: the file for the kept sentences, or ``"-"`` for standard output.
        filters: filters, in any form that `entaug.filters.create_filters` accepts.
        gold: the corpus that was augmented; required if the input holds augmented sentences only, or no provenance.
        rejected: a JSON Lines file for the rejected sentences, with the reason in ``entaug.rejected``.
        review: decisions exported from a report, see `entaug.files.review`: sentences rejected there are left out, and
            those corrected there get the labels of the correction.
        log: with corrections in the review: the file that lists them, JSON lines; by default the name of the output
            with ``.changes.jsonl``.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: neither a filter nor a review is given, or a log without corrections.
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
        raise ParameterError("no filter is given", remedy="name one as `filters`: see entaug list filters")
    decisions = read_review(review) if review is not None else Review()
    if log is not None and not decisions.by_hand:
        remedy = "leave out `log`" if review is not None else "add `review=FILE`"
        raise ParameterError("only labels corrected in a report are logged, and there are none", remedy=remedy)
    job = FileJob(input, output, **files)
    rejected_path = job.check([gold, review], rejected=rejected)
    summary.log = job.check_log(log, [gold, review]) if decisions.by_hand else ""
    for filter_ in filters:
        filter_.load()
    with PairedFile.open(job, gold, progress) as file:
        pairs, sentences = file.pairs, file.sentences
        refused = _rejected_in_review(pairs, decisions)
        lines = _correct(pairs, sentences, decisions, summary)
        _check_sources(pairs, filters, str(input), gold)
        for filter_ in filters:
            filter_.fit(file.gold)
        rejections = _rejections(pairs, filters, refused, progress)
        summary.lost = file.write(sentences, rejections, rejected_path)
        summary.from_format, summary.to_format = file.source.dialect.describe(), file.target_file.dialect.describe()
    if summary.log:
        write_text("".join(lines), summary.log, force=job.force)
    notes = {note for filter_ in filters for note in filter_.model_notes()}
    unknown = len(decisions.rejected) - rejections.count(REVIEWED.reason)
    if unknown > 0:
        notes.add(f"{unknown:,} of {len(decisions.rejected):,} sentences that the review rejects are not in this file")
    to_correct = len(decisions.corrected)
    lost = to_correct - summary.corrected
    if lost > 0:
        what = f"{lost:,} of {to_correct:,} sentences that the review corrects"
        notes.add(f"{what} are not in this file, or have other labels")
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
                raise InputError(message, path=path, remedy="name the file that was augmented as `gold`")
            raise InputError(message, path=path, remedy=filter_.without_source)


def _rejected_in_review(pairs: Sequence[AugmentedPair | None], review: Review) -> set[int]:
    """Return the places of the sentences that a reviewer rejected."""
    if not review.decisions:
        return set()
    made = ((i, pair.augmented) for i, pair in enumerate(pairs) if pair is not None)
    return {i for i, sentence in made if review.rejects(sentence.fingerprint_number(), sentence.id)}


def _correct(
    pairs: list[AugmentedPair | None], sentences: list[Sentence], review: Review, summary: FilterSummary
) -> list[str]:
    """Give sentences the labels that a reviewer corrected; return the lines of the log."""
    lines: list[str] = []
    for i, pair in enumerate(pairs if review.by_hand else ()):
        if pair is None:
            continue
        sentence = pair.augmented
        changes = review.changes(sentence.fingerprint_number(), sentence.id)
        new = correct_augmented(sentence, changes)
        if new is not None:
            pairs[i], sentences[i] = replace(pair, augmented=new), new
            lines += log_lines(i + 1, sentence, changes)
            summary.corrected += 1
            summary.corrections.update(change.kind for change in changes)
    return lines


def _rejections(
    pairs: Sequence[AugmentedPair | None], filters: Sequence[Filter], refused: set[int], progress: Progress
) -> list[str | None]:
    """Return the reason for rejecting each sentence; None for gold and kept sentences."""
    reasons = [None if pair is None else pair.rejection for pair in pairs]  # rejections by an earlier run are kept
    for i in refused:
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
    {"filters": None},
    (FORCE, LOSSES, JSON, FILTERS, READING, WRITING, COMPUTING),
    values=lambda args: {"filters": named_filters(args)},
)
