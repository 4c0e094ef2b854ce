"""The drafts of a part of the input of an augmentation. They depend on no other part, so any process can make them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, tee
from typing import NamedTuple

from entaug.core.corpus import keyed
from entaug.core.data import PLACEHOLDER, Sentence
from entaug.errors import LossError
from entaug.files.review import Review
from entaug.formats import CorpusFile, find_format
from entaug.formats.base import ReadReport
from entaug.formats.parts import Part
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.run import Candidate, Run
from entaug.methods.statistics import SentenceCounts, sentence_counts
from entaug.methods.types import Accepted, Rejected
from entaug.teacher import count_changes

__all__ = [
    "DraftJob",
    "DraftTask",
    "Dropped",
    "Made",
    "SourceDrafts",
    "draft_part",
    "draft_sources",
]

_EXAMPLE_SOURCES = 64  # sources of a part whose new sentences are offered as examples


class Made(NamedTuple):
    """A new sentence, for the process that writes it."""

    fingerprint: int
    text: str | LossError | None
    counts: SentenceCounts
    changes: Counter[str] | None = None
    filled: tuple[str, ...] = ()
    example: Accepted | None = None


class Dropped(NamedTuple):
    """A draft that was not accepted."""

    reason: str
    is_last: bool
    text: str | None = None


class SourceDrafts(NamedTuple):
    """The drafts of a source sentence."""

    requested: int
    outcomes: Sequence[Made | Dropped]
    gold: str = ""


@dataclass(frozen=True)
class DraftJob:
    """Inputs that all parts of the second pass need."""

    augmenter: Augmenter | CombinedAugmenter
    source: CorpusFile
    to: CorpusFile
    repair: bool
    review: Review
    with_rejected: bool
    with_gold: bool = False

    def run(self) -> Run:
        """Create a run of the method."""
        excluded = self.review.rejects if self.review.decisions else None
        return self.augmenter.run(target=self.to, excluded=excluded)


class DraftTask(NamedTuple):
    """A part of the input in the second pass."""

    part: Part
    occurrences: Sequence[int] | None
    start: int
    stop: int
    with_examples: bool = False


def draft_part(job: DraftJob, task: DraftTask) -> list[SourceDrafts]:
    """Generate the new sentences of a part."""
    sources: list[Sentence] = []
    keys: list[str] = []
    sentences = islice(task.part.sentences(job.source, ReadReport(repair=job.repair)), task.stop)
    for sentence, key in islice(keyed(sentences, task.occurrences), task.start, None):
        sources.append(sentence)
        keys.append(key)
    left = iter([task.with_examples] * _EXAMPLE_SOURCES)
    return list(draft_sources(job, job.run(), sources, keys, with_examples=lambda: next(left, False)))


def draft_sources(
    job: DraftJob,
    run: Run,
    sources: Iterable[Sentence],
    keys: Iterable[str],
    *,
    with_examples: Callable[[], bool],
    known: Container[str] = (),
) -> Iterator[SourceDrafts]:
    """Generate the new sentences of sources."""
    as_json = find_format("jsonl")
    dialect = as_json.dialect()

    def finished(result: Candidate | Rejected, *, is_example: bool) -> Made | Dropped:
        if isinstance(result, Rejected):
            is_written = job.with_rejected and result.sentence is not None
            text = as_json.dump(result.sentence, dialect) if is_written and result.sentence else None
            return Dropped(result.reason, result.is_last, text)
        sentence, source, fingerprint = result
        encoded: str | LossError | None
        try:
            encoded = run.encode(result)
        except LossError as error:  # of no consequence if the sentence turns out to be a duplicate
            encoded = error
        filled = _filled_columns(sentence, source, known) if sentence.columns else ()
        changes = count_changes(sentence) if sentence.provenance and sentence.provenance.details else None
        example = Accepted(sentence, source) if is_example else None
        return Made(fingerprint, encoded, sentence_counts(sentence), changes, filled, example)

    def gold_text(source: Sentence, key: str) -> str:
        return job.to.encode(source.with_(id=key) if keeps_keys else source)

    keeps_keys = job.to.keeps_keys
    keys, own_keys = tee(keys)
    for (source, requested, results), key in zip(run.candidates(sources, keys), own_keys, strict=True):
        is_example = with_examples()
        outcomes = [finished(result, is_example=is_example) for result in results]
        yield SourceDrafts(requested, outcomes, gold_text(source, key) if job.with_gold else "")


def _filled_columns(sentence: Sentence, source: Sentence, known: Container[str]) -> tuple[str, ...]:
    """The columns in which new words have a placeholder."""
    return tuple(
        name
        for name, values in sentence.columns.items()
        if name not in known and PLACEHOLDER in values and PLACEHOLDER not in source.columns[name]
    )
