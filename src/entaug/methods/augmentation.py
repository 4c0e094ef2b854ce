"""The two passes of an augmentation over its input, in one process or in several.

What depends on a part of the input alone is in `entaug.methods.surveys` and `entaug.methods.drafting`, and may be
done by any process. What depends on all parts before is done here and in `entaug.methods.accepting`, in the order of
the input. So the output is the same for any number of processes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, tee
from typing import Any

from entaug.core.corpus import SentenceKeys, is_made_key
from entaug.core.data import Sentence
from entaug.core.progress import Progress
from entaug.errors import LossError
from entaug.files.checkpoints import RunWriter
from entaug.files.review import Review
from entaug.formats import CorpusFile
from entaug.formats.base import ReadReport, note_lines
from entaug.formats.file_job import locate_losses, notes_on_other_tags, read_sentences, usage_of_models
from entaug.methods.accepting import Acceptance, AugmentSummary, ReviewCounts
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.drafting import DraftJob, DraftTask, SourceDrafts, draft_part, draft_sources
from entaug.methods.surveys import Irregular, PartSurvey, Sharing, SurveyJob, gold_text

__all__ = ["Augmentation"]

_BATCH = 64  # sentences that are written together


@dataclass
class _PartRecord:
    """Record of a part, kept between the passes."""

    sentences: int
    occurrences: Sequence[int] | None  # see `DraftTask`


@dataclass
class Augmentation:
    """One call of `entaug.methods.augment.augment_file`, with its files open."""

    augmenter: Augmenter | CombinedAugmenter
    source: CorpusFile
    to: CorpusFile
    writer: RunWriter
    summary: AugmentSummary
    repair: bool
    progress: Progress
    sharing: Sharing | None = None
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._names_gold = self.to.keeps_keys
        self._records: list[_PartRecord] = []

    # ------------------------------------------------------------------------------------------------------ first pass

    def fit(self, *, copy_gold: bool) -> None:
        """Fit the method on the input; validate, count and copy the sentences to the output in the same pass."""
        summary, augmenter, progress = self.summary, self.augmenter, self.progress
        copy_gold = copy_gold and self.writer.state is None
        # Of parts that are read at once, the keys are known only after the last of them.
        copies_now = copy_gold and self.writer.is_resumable and not (self.sharing and self._names_gold)
        augmenter.progress = lambda done, total, loss: progress(f"training, loss {loss:.2f}", done, total)
        if self.sharing is None:
            reading = ReadReport(repair=self.repair)
            sentences = read_sentences(self.source, reading, progress=progress)
            if copies_now:
                sentences = self._copied(sentences, reading)
            augmenter.fit(self._named(self._counted(sentences)))
        else:
            reading = self._fit_on_parts(self.sharing, copy_gold=copies_now)
        augmenter.progress = None
        summary.repaired = reading.repaired
        summary.notes += [*augmenter.notes(), *notes_on_other_tags(self.source)]
        summary.notes += note_lines(reading.notes)
        if copy_gold and not copies_now:  # the input is known to be valid only after it was read to its end
            self._copy_again()

    def _named(self, sentences: Iterator[Sentence]) -> _NamedCorpus:
        return _NamedCorpus(sentences, str(self.source.path))

    def _counted(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        for sentence in sentences:
            self.summary.before.add(sentence)
            self.summary.lost.update(self.to.lost(sentence))
            if sentence.id is not None and is_made_key(sentence.id):
                self.taken.add(sentence.id)
            yield sentence

    def _copied(self, sentences: Iterable[Sentence], reading: ReadReport) -> Iterator[Sentence]:
        """Write each sentence to the output, with the id that provenance names it by, then yield it."""
        texts: list[str] = []
        keys = SentenceKeys(self.taken)
        for sentence in sentences:
            named = sentence.with_(id=keys.assign(sentence)) if self._names_gold else sentence
            with locate_losses(self.source, reading):
                texts.append(self.to.encode(named))
            if len(texts) >= _BATCH:
                self.writer.write(texts)
                texts.clear()
            yield sentence
        if keys.clashes():
            raise Irregular
        self.writer.write(texts)

    def _copy_again(self) -> None:
        """Read the input, which is known to be valid, and write its sentences to the output."""
        reading = ReadReport(repair=self.repair)
        if self.sharing is None:
            for _ in self._copied(self.source.sentences(reading), reading):
                pass
            return
        job = SurveyJob(self.source, self.to, self.repair, with_gold=True)
        parts = zip(self.sharing.parts(reading), (record.occurrences for record in self._records), strict=True)
        try:
            for text in self.sharing.workers.map(gold_text, job, parts):
                self.writer.write([text] if text else [])
        except LossError:
            if self.writer.is_resumable:  # one process can name the line
                raise Irregular from None
            raise

    def _fit_on_parts(self, sharing: Sharing, *, copy_gold: bool) -> ReadReport:
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
        reading = ReadReport(repair=self.repair)
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
        keys = SentenceKeys(self.taken)
        for survey in surveys:
            self.taken.update(filter(is_made_key, survey.ids))
            occurrences = array("I", map(keys.occurrence, survey.fingerprints))
            is_plain = occurrences.count(1) == len(occurrences)
            self._records.append(_PartRecord(survey.before.sentences, None if is_plain else occurrences))
            summary.before.update(survey.before)
            summary.lost.update(survey.lost)
            if survey.text:
                self.writer.write([survey.text])
            yield survey
        if keys.clashes():
            raise Irregular

    # ----------------------------------------------------------------------------------------------------- second pass

    def run(self, review: Review, *, with_gold: bool, with_rejected: bool) -> None:
        """Write the augmented sentences, starting where an interrupted run stopped."""
        counts = ReviewCounts(len(review.decisions), len(review.rejected), review.others)
        acceptance = Acceptance(self.to, self.writer, self.summary, self.progress, counts)
        acceptance.begin(with_gold=with_gold)
        job = DraftJob(self.augmenter, self.source, self.to, self.repair, review, with_rejected)
        acceptance.write(self.drafts(job, acceptance, self.summary.resumed_at))
        self.summary.notes += self.augmenter.advice(self.summary.statistics)
        self.summary.usage = usage_of_models(self.augmenter)

    def drafts(
        self, job: DraftJob, acceptance: Acceptance | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[SourceDrafts]:
        """Generate drafts."""
        stop = self.summary.before.sentences if stop is None else stop
        run = job.run()
        run.statistics = self.augmenter.statistics_ = self.summary.statistics
        if self.sharing is not None:
            tasks = self._tasks(self.sharing, acceptance, start, stop)
            for drafts in self.sharing.workers.map(draft_part, job, tasks):
                yield from drafts
            return
        keys = SentenceKeys(self.taken)
        sentences = islice(self.source.sentences(ReadReport(repair=self.repair)), stop)
        for sentence in islice(sentences, start):
            keys.assign(sentence)
        sources, to_name = tee(sentences)
        yield from draft_sources(
            job,
            run,
            sources,
            map(keys.assign, to_name),
            with_examples=lambda: acceptance is not None and acceptance.wants_examples,
            known=acceptance.filled if acceptance is not None else (),
        )

    def _tasks(self, sharing: Sharing, acceptance: Acceptance | None, start: int, stop: int) -> Iterator[DraftTask]:
        first = 0
        parts = sharing.parts(ReadReport(repair=self.repair))
        for part, record in zip(parts, self._records, strict=True):
            last = first + record.sentences
            if first < stop and start < last:
                begin, end = max(0, start - first), min(stop - first, record.sentences)
                wants_examples = acceptance is not None and acceptance.wants_examples
                yield DraftTask(part, record.occurrences, begin, end, wants_examples)
            first = last


class _NamedCorpus(Iterable[Sentence]):
    """An iterable of sentences with the name of their file."""

    def __init__(self, sentences: Iterator[Sentence], source: str) -> None:
        self._sentences = sentences
        self.source = source

    def __iter__(self) -> Iterator[Sentence]:
        return self._sentences
