"""The two passes of an augmentation over its input, in one process or in several.

What depends on a part of the input alone is in `entaug.workflows.drafting` and may be done by any process. Here is what
depends on all parts before: keys, the fit, duplicates, counts, examples, text and checkpoints, in the order of the
input. So the output is the same for any number of processes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, tee
from math import ceil
from typing import Any

from entaug.augmenters.base import Augmenter
from entaug.augmenters.combined import CombinedAugmenter
from entaug.augmenters.contracts import DUPLICATE, REVIEWED, UNWRITABLE, Accepted, RunStatistics
from entaug.backends.instruct import Usage
from entaug.corpus import SentenceKeys
from entaug.data import PLACEHOLDER, Sentence
from entaug.errors import LossError
from entaug.files.checkpoints import CheckpointedWriter, RunWriter
from entaug.formats import OpenedFile
from entaug.formats.base import Reading
from entaug.progress import Progress
from entaug.report.review import Review
from entaug.workflows.common import (
    locate_losses,
    notes_on_models,
    notes_on_other_tags,
    read_sentences,
    usage_of_models,
)
from entaug.workflows.drafting import DraftJob, DraftTask, Made, SourceDrafts, draft_part, draft_sources
from entaug.workflows.relabel import notes_on_soft_labels
from entaug.workflows.statistics import CorpusStatistics
from entaug.workflows.surveys import PartSurvey, Sharing, SurveyJob, gold_text

__all__ = ["AugmentSummary", "Augmentation"]

_BATCH = 64  # source sentences between two checkpoints
_EXAMPLES = 3


@dataclass
class AugmentSummary:
    """Result of `entaug.workflows.augment.augment_file`.

    Args:
        method: the name of the method.
        signature: method, parameters and version, as in provenance.
        input: the file that was read.
        output: the file that was written.
        from_format: description of the input's format and layout.
        to_format: description of the output's format and layout.
        before: counts of the input.
        after: counts of the output.
        statistics: counts of the run.
        lost: content that the output cannot store, with the number of gold sentences.
        repaired: counts of repairs by kind.
        notes: notes for the user.
        usage: counts of the requests to instruct models, their tokens and their cost, by the name of the model.
        examples: the first augmented sentences, each with its source.
        resumed_at: the number of source sentences that an interrupted run had finished.
        seconds: the duration in seconds.
    """

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


@dataclass
class _PartRecord:
    """What is remembered of a part between the passes."""

    sentences: int
    occurrences: Sequence[int] | None  # see `DraftTask`


@dataclass
class Augmentation:
    """One call of `entaug.workflows.augment.augment_file`, with its files open.

    Args:
        augmenter: the method.
        source: the input.
        to: the output.
        writer: where the output goes.
        summary: filled in.
        repair: whether invalid tag sequences are repaired.
        progress: the progress callback.
        sharing: the processes that share the work; None for this one alone.
    """

    augmenter: Augmenter | CombinedAugmenter
    source: OpenedFile
    to: OpenedFile
    writer: RunWriter
    summary: AugmentSummary
    repair: bool
    progress: Progress
    sharing: Sharing | None = None

    def __post_init__(self) -> None:
        self._gold_end = 0  # number of bytes of the gold sentences in the output
        self._records: list[_PartRecord] = []

    # ------------------------------------------------------------------------------------------------------ first pass

    def fit(self, *, copy_gold: bool) -> None:
        """Fit the method on the input; validate, count and copy the sentences to the output in the same pass.

        Args:
            copy_gold: whether the gold sentences are written.

        Raises:
            InputError: the input is invalid.
            LossError: the output cannot store a gold sentence.
            Irregular: the input has to be read by one process.
        """
        summary, augmenter, progress = self.summary, self.augmenter, self.progress
        copy_gold = copy_gold and self.writer.state is None
        copies_now = copy_gold and self.writer.is_resumable
        augmenter.progress = lambda done, total, loss: progress(f"training, loss {loss:.2f}", done, total)
        if self.sharing is None:
            reading = Reading(repair=self.repair)
            sentences = read_sentences(self.source, reading, progress=progress)
            if copies_now:
                sentences = self._copied(sentences, reading)
            augmenter.fit(self._named(self._counted(sentences)))
        else:
            reading = self._fit_on_parts(self.sharing, copy_gold=copies_now)
        augmenter.progress = None
        summary.repaired = reading.repaired
        summary.notes += [*augmenter.notes(), *notes_on_models(augmenter), *notes_on_other_tags(self.source)]
        summary.notes += [f"{note} ({n:,} times)" if n > 1 else note for note, n in sorted(reading.notes.items())]
        if copy_gold and not copies_now:  # the input is known to be valid only after it was read to its end
            self._copy_again()
        self._gold_end = self.writer.offset

    def _named(self, sentences: Iterator[Sentence]) -> _NamedCorpus:
        return _NamedCorpus(sentences, str(self.source.path))

    def _counted(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        for sentence in sentences:
            self.summary.before.add(sentence)
            self.summary.lost.update(self.to.lost(sentence))
            yield sentence

    def _copied(self, sentences: Iterable[Sentence], reading: Reading) -> Iterator[Sentence]:
        """Write each sentence to the output, then yield it."""
        texts: list[str] = []
        for sentence in sentences:
            with locate_losses(self.source, reading):
                texts.append(self.to.encode(sentence))
            if len(texts) >= _BATCH:
                self.writer.write(texts)
                texts.clear()
            yield sentence
        self.writer.write(texts)

    def _copy_again(self) -> None:
        """Read the input, which is known to be valid, and write its sentences to the output."""
        reading = Reading(repair=self.repair)
        if self.sharing is None:
            for _ in self._copied(self.source.sentences(reading), reading):
                pass
            return
        job = SurveyJob(self.source, self.to, self.repair, with_gold=True)
        for text in self.sharing.workers.map(gold_text, job, self.sharing.parts(reading)):
            self.writer.write([text] if text else [])

    def _fit_on_parts(self, sharing: Sharing, *, copy_gold: bool) -> Reading:
        """Fit the method, with parts of the input read by processes."""
        augmenter = self.augmenter
        in_parts = augmenter.learns_in_parts
        job = SurveyJob(
            self.source,
            self.to,
            self.repair,
            with_gold=copy_gold,
            augmenter=augmenter.load() if in_parts else None,
            with_sentences=not in_parts,
        )
        reading = Reading(repair=self.repair)
        augmenter.progress, progress = None, augmenter.progress  # a callback stays in its process
        surveys = self._merged(sharing.surveys(job, reading, "reading", self.progress))
        if in_parts:
            learned: Any = None
            for survey in surveys:
                if learned is None:
                    learned = survey.learned
                else:
                    learned.update(survey.learned)
            augmenter.fit_learned(learned, str(self.source.path))
        else:
            first = next(surveys)  # the job has been sent, without the callback
            augmenter.progress = progress
            rest = (sentence for survey in surveys for sentence in survey.sentences)
            augmenter.fit(self._named(chain(first.sentences, rest)))
        return reading

    def _merged(self, surveys: Iterable[PartSurvey]) -> Iterator[PartSurvey]:
        """Add up what was found in the parts, and number the sentences of equal content."""
        summary = self.summary
        seen: Counter[int] = Counter()
        for survey in surveys:
            occurrences = array("I")
            for fingerprint in survey.fingerprints:
                seen[fingerprint] += 1
                occurrences.append(seen[fingerprint])
            is_plain = occurrences.count(1) == len(occurrences)
            self._records.append(_PartRecord(survey.before.sentences, None if is_plain else occurrences))
            summary.before.update(survey.before)
            summary.lost.update(survey.lost)
            if survey.text:
                self.writer.write([survey.text])
            yield survey

    # ----------------------------------------------------------------------------------------------------- second pass

    def run(self, review: Review, *, with_gold: bool, with_rejected: bool) -> None:
        """Write the augmented sentences, starting where an interrupted run stopped.

        Args:
            review: the decisions of a reviewer.
            with_gold: whether the output has the gold sentences.
            with_rejected: whether rejected drafts are written.
        """
        summary = self.summary
        if self.writer.state is None:
            if with_gold:
                summary.after = CorpusStatistics.from_dict(summary.before.to_dict())
            else:
                summary.after.mentions.update(dict.fromkeys(summary.before.mentions, 0))
        else:
            summary.resumed_at = self.writer.state["sources"]
        job = DraftJob(self.augmenter, self.source, self.to, self.repair, review, with_rejected)
        filled: set[str] = set()
        self.write(self._drafts(job, filled), filled)
        summary.notes += _notes_on_review(review, summary)
        summary.notes += self.augmenter.advice(summary.statistics)
        summary.usage = usage_of_models(self.augmenter)
        summary.notes += notes_on_soft_labels(summary.statistics.relabelled, self.to)

    def _drafts(self, job: DraftJob, filled: set[str]) -> Iterator[SourceDrafts]:
        """Yield the drafts of the sources that an interrupted run has not finished."""
        run = job.run()
        run.statistics = self.augmenter.statistics_ = self.summary.statistics
        if self.sharing is None:
            keys = SentenceKeys()
            sentences = self.source.sentences(Reading(repair=self.repair))
            for _ in range(self.summary.resumed_at):
                keys.assign(next(sentences))
            sources, to_name = tee(sentences)
            yield from draft_sources(
                job, run, sources, map(keys.assign, to_name), with_examples=self._wants_examples, known=filled
            )
        else:
            for drafts in self.sharing.workers.map(draft_part, job, self._tasks(self.sharing)):
                yield from drafts

    def _wants_examples(self) -> bool:
        return len(self.summary.examples) < _EXAMPLES

    def _tasks(self, sharing: Sharing) -> Iterator[DraftTask]:
        done = self.summary.resumed_at
        parts = sharing.parts(Reading(repair=self.repair))
        for part, record in zip(parts, self._records, strict=True):
            if done < record.sentences:
                yield DraftTask(part, record.occurrences, done, self._wants_examples())
            done = max(0, done - record.sentences)

    def write(self, drafts: Iterable[SourceDrafts], filled: set[str]) -> None:
        """Write the drafts that no other source gave before, count them, and note how far the output is complete.

        Args:
            drafts: the drafts of the sources, in the order of the input.
            filled: the columns in which new words have a placeholder; some are added.
        """
        summary, writer = self.summary, self.writer
        accepted = set(self._resume()) if writer.state is not None else set()
        statistics, after = summary.statistics, summary.after
        texts: list[str] = []
        rejected: list[str] = []
        total = summary.before.sentences
        done = first = summary.resumed_at
        for done, (requested, outcomes) in enumerate(drafts, start=first + 1):
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
                filled.update(columns)
                if example is not None and self._wants_examples() and self._is_varied(example):
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
        if filled:
            shown = ", ".join(sorted(filled))
            summary.notes.append(f"new words have the placeholder {PLACEHOLDER!r} in other columns ({shown})")

    def _state(self, done: int) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {
            "sources": done,
            "gold_end": self._gold_end,
            "statistics": self.summary.statistics.to_dict(),
            "after": self.summary.after.to_dict(),
        }

    def _resume(self) -> Iterator[int]:
        """Go on with the counts of the interrupted run; yield the fingerprints of its sentences."""
        state = self.writer.state
        assert state is not None
        assert isinstance(self.writer, CheckpointedWriter)
        self._gold_end = state["gold_end"]
        self.summary.statistics.update(state["statistics"])
        self.summary.after = CorpusStatistics.from_dict(state["after"])
        for sentence in self.to.read_draft(self.writer.path, self._gold_end, self.writer.offset):
            yield sentence.fingerprint_number()

    def _is_varied(self, example: Accepted) -> bool:
        """Whether an example is from a new source and its method has fewer examples than its share."""
        examples = self.summary.examples
        methods = [_method_of(one.sentence) for one in examples]
        share = ceil(_EXAMPLES / len(self.augmenter.name.split("+")))
        is_new = all(example.source is not one.source for one in examples)
        return is_new and methods.count(_method_of(example.sentence)) < share


class _NamedCorpus(Iterable[Sentence]):
    """An iterable of sentences with the name of their file."""

    def __init__(self, sentences: Iterator[Sentence], source: str) -> None:
        self._sentences = sentences
        self.source = source

    def __iter__(self) -> Iterator[Sentence]:
        return self._sentences


def _notes_on_review(review: Review, summary: AugmentSummary) -> list[str]:
    notes = []
    if review.others and not review.decisions:
        notes.append(f"the review covers other methods only; all sentences of {summary.method} are kept")
    unknown = len(review.rejected) - summary.statistics.missing[REVIEWED.reason]
    if unknown > 0:
        notes.append(
            f"{unknown:,} of {len(review.rejected):,} sentences that the review rejects were not generated in this "
            "run; use the same file, options, seed and version as before"
        )
    return notes


def _method_of(sentence: Sentence) -> str | None:
    return sentence.provenance.method if sentence.provenance else None
