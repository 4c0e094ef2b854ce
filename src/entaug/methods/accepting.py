"""The last step of an augmentation, in the order of the input: what is new is written and counted.

Drafts come from this process, from several, or from the files of shards.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from entaug.backends.instruct import Usage
from entaug.core.data import PLACEHOLDER, Sentence
from entaug.core.progress import Progress
from entaug.core.provenance import Provenance
from entaug.errors import InputError, LossError
from entaug.files.atomic import atomic_file
from entaug.files.checkpoints import CheckpointedWriter, DirectWriter, RunWriter
from entaug.files.streams import is_special, is_stdout
from entaug.formats import CorpusFile
from entaug.formats.file_job import settle_losses
from entaug.methods.drafting import Made, SourceDrafts
from entaug.methods.statistics import CorpusStatistics
from entaug.methods.types import DUPLICATE, REVIEWED, UNWRITABLE, Accepted, RunStatistics
from entaug.teacher.relabel import notes_on_soft_labels

__all__ = ["Acceptance", "AugmentSummary", "ReviewCounts", "check_any", "open_writer"]

_BATCH = 64  # source sentences between two checkpoints
_EXAMPLES = 3


@dataclass
class AugmentSummary:
    """Result of `entaug.methods.augment.augment_file`."""

    method: str
    signature: str
    input: str
    output: str
    from_format: str
    to_format: str
    before: CorpusStatistics = field(default_factory=CorpusStatistics)
    after: CorpusStatistics = field(default_factory=CorpusStatistics)
    statistics: RunStatistics = field(default_factory=RunStatistics)
    lost: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    examples: list[Accepted] = field(default_factory=list)
    resumed_at: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the examples as plain values, for JSON."""
        return {name: value for name, value in vars(self).items() if name != "examples"}


@dataclass(frozen=True)
class ReviewCounts:
    """Counts of a review."""

    decisions: int = 0
    rejected: int = 0
    others: int = 0


@dataclass
class Acceptance:
    """Writes the drafts that no other source gave before, and notes how far the output is complete."""

    to: CorpusFile
    writer: RunWriter
    summary: AugmentSummary
    progress: Progress
    review: ReviewCounts = ReviewCounts()

    def __post_init__(self) -> None:
        self.filled: set[str] = set()  # the columns in which new words have a placeholder

    def begin(self, *, with_gold: bool) -> None:
        """Take over the counts of the gold sentences, which have been written, or of an interrupted run."""
        summary, state = self.summary, self.writer.state
        self._gold_end = self.writer.offset  # number of bytes of the gold sentences in the output
        if state is not None:
            self._gold_end = state["gold_end"]
            summary.resumed_at = state["sources"]
            summary.statistics.update(state["statistics"])
            summary.after = CorpusStatistics.from_dict(state["after"])
        elif with_gold:
            summary.after = CorpusStatistics.from_dict(summary.before.to_dict())
        else:
            summary.after.mentions.update(dict.fromkeys(summary.before.mentions, 0))

    @property
    def wants_examples(self) -> bool:
        """Whether the summary has too few examples."""
        return len(self.summary.examples) < _EXAMPLES

    def write(self, drafts: Iterable[SourceDrafts]) -> None:
        """Write and count drafts."""
        summary, writer = self.summary, self.writer
        accepted = set(self._accepted_before())
        statistics, after = summary.statistics, summary.after
        texts: list[str] = []
        rejected: list[str] = []
        total = summary.before.sentences
        done = first = summary.resumed_at
        for done, (requested, outcomes, _) in enumerate(drafts, start=first + 1):
            statistics.add_source(requested)
            for outcome in outcomes:
                if not isinstance(outcome, Made):
                    statistics.add_rejected(outcome.reason, is_last=outcome.is_last)
                    if outcome.text is not None:
                        rejected.append(outcome.text)
                    continue
                fingerprint, text, counts, changes, columns, example = outcome
                if fingerprint in accepted:
                    statistics.add_rejected(DUPLICATE.reason, is_last=True)
                    continue
                if text is None:
                    statistics.add_rejected(UNWRITABLE.reason, is_last=True)
                    continue
                if isinstance(text, LossError):
                    raise text
                accepted.add(fingerprint)
                texts.append(text)
                statistics.add_accepted(changes)
                after.add_counts(counts)
                self.filled.update(columns)
                if example is not None and self.wants_examples and self._is_varied(example):
                    summary.examples.append(example)
            if not done % _BATCH:
                writer.write(texts)
                writer.write_rejected(rejected)
                texts.clear()
                rejected.clear()
                writer.checkpoint(self._state(done))
                if not done % (4 * _BATCH):
                    self.progress("augmenting", done, total)
        writer.write(texts)
        writer.write_rejected(rejected)
        self.progress("augmenting", done, total)
        summary.notes += _notes_on_review(self.review, summary)
        summary.notes += notes_on_soft_labels(statistics.relabelled, self.to)
        new = Sentence(["a"], id="a", provenance=Provenance("a"))  # as all new ones, it has an id and provenance
        summary.lost.update(dict.fromkeys(self.to.lost(new), statistics.accepted) if statistics.accepted else {})
        summary.notes += settle_losses(summary.lost, ["all"], self.to)
        if self.filled:
            shown = ", ".join(sorted(self.filled))
            summary.notes.append(f"new words have the placeholder {PLACEHOLDER!r} in other columns ({shown})")

    def _state(self, done: int) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {
            "sources": done,
            "gold_end": self._gold_end,
            "statistics": self.summary.statistics.to_dict(),
            "after": self.summary.after.to_dict(),
        }

    def _accepted_before(self) -> Iterator[int]:
        """Yield the fingerprints of the sentences that an interrupted run has written."""
        if self.writer.state is not None:
            assert isinstance(self.writer, CheckpointedWriter)
            for sentence in self.to.read_draft(self.writer.path, self._gold_end, self.writer.offset):
                yield sentence.fingerprint_number()

    def _is_varied(self, example: Accepted) -> bool:
        """Whether an example is from a new source and its method has fewer examples than its share."""
        examples = self.summary.examples
        methods = [_method_of(one.sentence) for one in examples]
        share = ceil(_EXAMPLES / len(self.summary.method.split("+")))
        is_new = all(example.source is not one.source for one in examples)
        return is_new and methods.count(_method_of(example.sentence)) < share


@contextlib.contextmanager
def open_writer(
    output: str | Path, to: CorpusFile, key: Callable[[], str], *, force: bool, rejected: Path | None
) -> Iterator[RunWriter]:
    """Open the output of an augmentation."""
    with contextlib.ExitStack() as stack:
        if is_stdout(output) or is_special(Path(output)):
            stream = sys.stdout.buffer if is_stdout(output) else stack.enter_context(atomic_file(Path(output)))
            rejected_stream = stack.enter_context(atomic_file(rejected)) if rejected else None
            writer: RunWriter = DirectWriter(stream, to.heading, rejected_stream)
        else:
            writer = CheckpointedWriter(
                Path(output),
                key(),
                force=force,
                heading=to.heading,
                rejected=rejected,
                finish=lambda draft: to.finish(draft, force=force),
            )
        yield stack.enter_context(writer)


def check_any(summary: AugmentSummary, writer: RunWriter, *, has_rejected: bool) -> None:
    """Check that there is an augmented sentence."""
    if summary.statistics.accepted:
        return
    writer.keep_rejected()
    reasons = [f"{count:,} times {reason}" for reason, count in summary.statistics.missing.most_common(5)]
    message = f"{summary.method} generated no sentence{': ' if reasons else ''}{', '.join(reasons)}"
    why = "the rejected sentences" if has_rejected else "why with --rejected FILE"
    raise InputError(message, path=summary.input, remedy=f"see {why}, or try other parameters or methods")


def _notes_on_review(review: ReviewCounts, summary: AugmentSummary) -> list[str]:
    notes = []
    if review.others and not review.decisions:
        notes.append(f"the review covers other methods only; all sentences of {summary.method} are kept")
    unknown = review.rejected - summary.statistics.missing[REVIEWED.reason]
    if unknown > 0:
        notes.append(
            f"{unknown:,} of {review.rejected:,} sentences that the review rejects were not generated in this "
            "run; use the same file, options, seed and version as before"
        )
    return notes


def _method_of(sentence: Sentence) -> str | None:
    return sentence.provenance.method if sentence.provenance else None
