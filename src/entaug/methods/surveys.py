"""Reading a file in parts, each of which any process can read, and adding up what was found in them."""

from __future__ import annotations

import contextlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from entaug.backends.processes import Workers
from entaug.core.corpus import keyed
from entaug.core.data import Sentence
from entaug.core.progress import Progress
from entaug.errors import EntaugError
from entaug.formats import CorpusFile
from entaug.formats.base import NO_MENTION, ReadReport
from entaug.formats.parts import Part, parts_of
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.statistics import CorpusStatistics

__all__ = [
    "Irregular",
    "PartSurvey",
    "Sharing",
    "SurveyJob",
    "gold_text",
    "in_parts_or_whole",
    "survey_part",
]

T = TypeVar("T")

_PART = 1 << 20  # bytes
_MIN_PART = 1 << 12  # bytes


class Irregular(Exception):  # noqa: N818 - internal: the file is read again, as a whole
    """The parts of a file do not tell all: an error whose line is to be named, or an id in two parts."""


def in_parts_or_whole(run: Callable[[int], T], jobs: int) -> T:
    """Run with processes that read parts of the input; once more with one, where the parts do not tell all."""
    try:
        return run(jobs)
    except Irregular:
        return run(1)


@dataclass(frozen=True)
class SurveyJob:
    """Inputs that all parts of the first pass need."""

    source: CorpusFile
    to: CorpusFile | None
    repair: bool
    with_gold: bool = False
    augmenter: Augmenter | CombinedAugmenter | None = None
    with_sentences: bool = False
    fingerprints: Literal["all", "without id", "none"] = "without id"


@dataclass
class PartSurvey:
    """Results of the first pass over a part."""

    before: CorpusStatistics = field(default_factory=CorpusStatistics)
    lost: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    fingerprints: array[int] = field(default_factory=lambda: array("Q"))
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    text: str = ""
    learned: Any = None
    sentences: list[Sentence] = field(default_factory=list)


def survey_part(job: SurveyJob, part: Part) -> PartSurvey | None:
    """Read a part for the first time."""
    survey = PartSurvey()
    reading = ReadReport(repair=job.repair)
    texts: list[str] = []

    def surveyed() -> Iterator[Sentence]:
        for sentence in part.sentences(job.source, reading):
            survey.before.add(sentence)
            if job.to is not None:
                survey.lost.update(job.to.lost(sentence))
            if sentence.id is not None:
                survey.ids.append(sentence.id)
            if job.fingerprints == "all" or (job.fingerprints == "without id" and sentence.id is None):
                survey.fingerprints.append(sentence.fingerprint_number())
            if job.with_gold and job.to is not None:
                texts.append(job.to.encode(sentence))
            yield sentence

    try:
        if job.augmenter is not None:
            survey.learned = job.augmenter.learn(surveyed())
        else:
            for sentence in surveyed():
                if job.with_sentences:
                    survey.sentences.append(sentence)
    except EntaugError:
        return None
    survey.repaired, survey.notes, survey.text = reading.repaired, reading.notes, "".join(texts)
    return survey


def gold_text(job: SurveyJob, task: tuple[Part, Sequence[int] | None]) -> str:
    """Return the gold sentences of a part, which is valid, as the output has them; see `entaug.core.corpus.keyed`."""
    assert job.to is not None
    part, occurrences = task
    sentences = part.sentences(job.source, ReadReport(repair=job.repair))
    if job.to.keeps_keys:
        sentences = (sentence.with_(id=key) for sentence, key in keyed(sentences, occurrences))
    return "".join(map(job.to.encode, sentences))


@dataclass(frozen=True)
class Sharing:
    """Processes that read the parts of a file."""

    workers: Workers
    source: CorpusFile
    part_size: int

    @classmethod
    @contextlib.contextmanager
    def start(cls, jobs: int, source: CorpusFile) -> Iterator[Sharing | None]:
        """Start processes; they end at the end of the block."""
        if jobs == 1:
            yield None
            return
        with Workers.start(jobs) as workers:
            yield cls(workers, source, max(_MIN_PART, min(_PART, source.size // (4 * jobs))))

    def parts(self, reading: ReadReport) -> Iterator[Part]:
        """Divide the file; the parts are the same each time."""
        return parts_of(self.source, reading, self.part_size)

    def surveys(self, job: SurveyJob, reading: ReadReport, stage: str, progress: Progress) -> Iterator[PartSurvey]:
        """Read all parts."""
        ids: set[str] = set()
        done, total = 0, self.source.estimated_sentences()
        has_mention = False
        for survey in self.workers.map(survey_part, job, self._valid_parts(reading)):
            if survey is None or not ids.isdisjoint(survey.ids):
                raise Irregular
            ids.update(survey.ids)
            reading.repaired.update(survey.repaired)
            reading.notes.update(survey.notes)
            done += survey.before.sentences
            has_mention = has_mention or bool(survey.before.mentions)
            progress(stage, done, total)
            yield survey
        if not done:
            raise Irregular
        if not has_mention:
            reading.notes[NO_MENTION] = 1
        progress(stage, done, done)

    def _valid_parts(self, reading: ReadReport) -> Iterator[Part]:
        try:
            yield from self.parts(reading)
        except EntaugError:
            raise Irregular from None
