"""The way of a sentence through ``entaug augment``: read, fit, draw, write.

What a source gives depends on nothing but the source, its key and the sentences that the method was fitted on (`Work`),
so any process can draw any block of the sources. What depends on all results before is done in the order of the input,
by one process (`Results`): repeats are dropped, the rest is counted and written. So the bytes are the same for any
number of processes.

The output is moved into place only when it is complete. An interrupted run leaves a partial file beside it; the same
call resumes from there and gives the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, tee
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Unpack

from entaug._version import __version__
from entaug.backends.instruct import Usage
from entaug.backends.processes import Workers, check_jobs, number_of_processes
from entaug.config.params import parameters
from entaug.core.corpus import Corpus, CorpusStream, SentenceKeys, is_made_key
from entaug.core.data import Provenance, Sentence
from entaug.core.edits import PLACEHOLDER
from entaug.core.progress import Progress, no_progress
from entaug.errors import EntaugError, InputError, ParameterError
from entaug.files.checkpoints import CheckpointedWriter, RunWriter
from entaug.files.mention_lists import mention_lists
from entaug.files.review import Review, read_review
from entaug.files.streams import open_bytes
from entaug.formats.base import ReadReport, note_lines
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.file_job import (
    FileJob,
    FileOptions,
    instruct_models,
    locate_losses,
    notes_on_other_tags,
    read_sentences,
)
from entaug.formats.files import find_format
from entaug.methods.base import Augmenter, augmenters_of, window_of
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.statistics import CorpusStatistics, sentence_counts
from entaug.methods.types import REVIEWED, Accepted, Rejected, RunStatistics
from entaug.teacher.corrections import count_corrections
from entaug.teacher.relabel import check_soft_labels, count_changes, notes_on_soft_labels

_KEPT = 16 << 20  # bytes of an input whose sentences are kept in memory between the passes
_BATCH = 64  # source sentences between two checkpoints, if these do not take long
_SECONDS = 1.0  # after which a checkpoint does not wait for them
_MOST_BATCHES = 16  # of a block
_EXAMPLES = 3
_EXAMPLE_SOURCES = 64  # of a block whose new sentences are offered as examples


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


def augment_file(
    input: str | Path,
    output: str | Path,
    augmenter: Augmenter | CombinedAugmenter,
    *,
    only_new: bool = False,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    allow_empty: bool = False,
    jobs: int | None = 1,
    executor: Literal["local", "ray"] = "local",
    address: str | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> AugmentSummary:
    r"""Augment a file.

    Args:
        input: the gold training file, or ``"-"`` for standard input.
        output: the file for gold and augmented sentences, or ``"-"`` for standard output.
        augmenter: the method, or several; fitted on the input: here with one process, else in each of them.
        only_new: write the augmented sentences alone.
        rejected: a JSON Lines file for the candidates that filters rejected, with the reasons.
        review: decisions exported from a report, see `entaug.files.review`; sentences rejected there are left out, and
            those corrected there get the labels of the correction.
        allow_empty: whether no augmented sentence at all is a valid result.
        jobs: the number of processes that share the work; None for as many as there are cores, where the input is large
            enough to keep them busy and the method has no models. The output does not depend on it. A script that
            starts processes needs the usual ``if __name__ == "__main__":``.
        executor: who does the work: the processes of this machine, or those of a Ray cluster.
        address: the address of the cluster, ``"auto"`` for one that runs on this machine; by default that of
            ``RAY_ADDRESS``, else a new one on this machine.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`; ``force`` also discards the partial file of another
            interrupted run.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: several processes are wanted for a method that asks a server, or cannot be sent to them.
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
    job = FileJob(input, output, **files)
    rejected_path = job.check([review, *files_of(augmenter)], rejected=rejected)
    has_rejected = rejected_path is not None
    with Augmentation.open(job, augmenter, review, jobs, executor, address, progress) as run:
        run.work.with_rejected = has_rejected
        key = run.key(only_new)
        while True:
            with (
                contextlib.suppress(_KeyClash),  # then all ids are known, and the keys are others
                run.work.target_file.open_run(key, force=job.force, rejected=rejected_path) as writer,
            ):
                summary = run.read(output, writer, copy_gold=not only_new)
                if job.allow_loss:  # by default everything may be lost, and the notes tell what
                    job.settle_losses(summary.lost.copy(), run.work.target_file)
                window = window_of(augmenter.augmenters)
                results = Results(run.work.target_file, writer, summary, progress, not only_new, window)
                results.write(run.drawn(summary.resumed_at, summary.before.sentences, summary.before.sentences))
                results.conclude(run.work.review.counts)
                summary.notes += augmenter.advice(summary.statistics)
                summary.usage = {model.name: model.usage for model in instruct_models(augmenter)}
                if not allow_empty:
                    check_any(summary, writer, has_rejected=has_rejected)
                break
    for one in (augmenter, *augmenter.augmenters):
        one.statistics_ = summary.statistics
    summary.seconds = time.monotonic() - begun
    return summary


# ------------------------------------------------------------------------------------------------ what any process does


class Input(Iterable[Sentence]):
    """The sentences of a file: read again each time, or kept in memory where they are few."""

    def __init__(self, file: CorpusFile, repair: bool) -> None:
        self.source = str(file.path)
        self.file = file
        self._repair = repair
        self._kept: list[Sentence] | None = None
        self._reading = ReadReport()  # that of the kept sentences

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the sentences: each process reads them."""
        return {**vars(self), "_kept": None}

    def __iter__(self) -> Iterator[Sentence]:
        return self.read(ReadReport(repair=self._repair))

    def read(self, reading: ReadReport, progress: Progress = no_progress) -> Iterator[Sentence]:
        """Read the sentences."""
        if self._kept is not None:
            reading.repaired.update(self._reading.repaired)
            reading.notes.update(self._reading.notes)
            yield from self._kept
            return
        sentences = read_sentences(self.file, reading, progress=progress)
        if self.file.size > _KEPT:
            yield from sentences
            return
        kept = []
        for sentence in sentences:
            kept.append(sentence)
            yield sentence
        self._kept, self._reading = kept, reading


class Block(NamedTuple):
    """Consecutive sources that are drawn together."""

    start: int
    stop: int
    with_examples: bool = False


class Drawn(NamedTuple):
    """The outcomes of a source, as plain values that any process can send, or write to a file."""

    # An outcome is the reason why a draft was rejected, whether it was the last one, and its text for the file of
    # rejected sentences; or the fingerprint of a new sentence, its text in the output, its counts, what a teacher
    # changed, the columns with placeholders, and perhaps an example.

    requested: int
    outcomes: Sequence[Sequence[Any]]
    gold: str = ""


@dataclass
class Work:
    """All that a process needs to draw any block of the sources; the method is fitted once in each process."""

    augmenter: Augmenter | CombinedAugmenter
    sentences: Iterable[Sentence]
    target_file: CorpusFile
    review: Review
    signature: str
    with_rejected: bool = False
    with_gold: bool = False
    taken: set[str] = field(default_factory=set)
    notes: list[str] | None = None
    version: str = __version__

    def fit(self, sentences: Iterable[Sentence] | None = None) -> None:
        """Fit the method on all sentences."""
        self._place = 0
        self._sources: Iterator[Sentence] = iter(())
        self.augmenter.fit(self.sentences if sentences is None else sentences)
        self.notes = self.augmenter.notes()

    def fit_here(self) -> None:
        """Load and fit the method in a process that got this work from another."""
        if self.notes is not None:
            return
        self.augmenter.load()
        for there, here in (
            (f"entaug {self.version}", f"entaug {__version__}"),
            (self.signature, signature_before_fit(self.augmenter)),
        ):
            if there != here:
                remedy = "install the same version and models on all machines, and name one `precision` for all of them"
                raise EntaugError(f"a worker has {here}, and the first process {there}", remedy=remedy)

        for model in instruct_models(self.augmenter):
            model.usage.take()  # what the first process had asked before

        def noticed() -> Iterator[Sentence]:
            for sentence in self.sentences:
                notice_id(sentence, self.taken)
                yield sentence

        self.fit(CorpusStream(noticed, getattr(self.sentences, "source", None)))

    def draw(self, block: Block) -> Iterator[Drawn]:
        """Draw the new sentences of a block of the sources."""
        if block.start < self._place or not self._place:
            self._place, self._sources, self._keys = 0, iter(self.sentences), SentenceKeys(self.taken)
        for sentence in islice(self._sources, block.start - self._place):
            self._keys.assign(sentence)
        self._place = block.stop
        sources, to_name = tee(islice(self._sources, block.stop - block.start))
        keys, own_keys = tee(map(self._keys.assign, to_name))
        run = self.augmenter.run(target=self.target_file, review=self.review if self.review.decisions else None)
        keeps_keys = self.target_file.keeps_keys
        left = _EXAMPLE_SOURCES if block.with_examples else 0
        for source, requested, results in run.results(sources, keys):
            key = next(own_keys)
            outcomes = [self._plain(result, with_example=left > 0) for result in results]
            left -= 1
            text = ""
            if self.with_gold:
                text = self.target_file.encode(source.with_(id=key) if keeps_keys else source)
            yield Drawn(requested, outcomes, text)

    def _plain(self, result: Accepted | Rejected, *, with_example: bool) -> tuple[Any, ...]:
        if isinstance(result, Rejected):
            is_written = self.with_rejected and result.sentence is not None
            return result.reason, result.is_last, _as_json(result.sentence) if is_written else None
        sentence, source, fingerprint, text = result
        filled = [
            name
            for name, values in sentence.columns.items()
            if PLACEHOLDER in values and PLACEHOLDER not in source.columns[name]
        ]
        changes = None
        if sentence.provenance and sentence.provenance.details:
            changes = count_changes(sentence) + count_corrections(sentence)
        values = fingerprint, text, sentence_counts(sentence), changes, filled
        return (*values, result) if with_example else values


def files_of(augmenter: Any) -> Iterator[str | None]:
    """The files that methods read besides the corpus, which are no outputs: lists of mentions and prompts."""
    methods: Iterable[Any] = augmenters_of(augmenter)
    for method in methods:
        # `mentions` of another method is no list.
        cls: Any = type(method)
        files = {parameter.name for parameter in parameters(cls) if "relative" in parameter.metadata}
        yield from (one.source for one in mention_lists(method.mentions if "mentions" in files else None))
        yield method.prompt if "prompt" in files else None


def signature_before_fit(augmenter: Augmenter | CombinedAugmenter) -> str:
    """The signature of a method that is not fitted, with the starter models on this machine that it may use."""
    return "|".join([augmenter.signature, *sorted(augmenter.starters)])


def draw_block(work: Work, block: Block | None) -> tuple[list[str], list[Drawn], list[Usage]]:
    """Return the notes of the fitted method, what it drew and what its models were asked; None to fit it only."""
    work.fit_here()
    drawn = list(work.draw(block)) if block else []
    return work.notes or [], drawn, [model.usage.take() for model in instruct_models(work.augmenter)]


def notice_id(sentence: Sentence, taken: set[str]) -> None:
    """Add the id of a sentence if it could be the key of a sentence without an id."""
    if sentence.id is not None and is_made_key(sentence.id):
        taken.add(sentence.id)


def _as_json(sentence: Sentence | None) -> str | None:
    as_json = find_format("jsonl")
    return as_json.dump(sentence, as_json.dialect()) if sentence else None


# ------------------------------------------------------------------------------------------ what the first process does


class _KeyClash(Exception):  # noqa: N818 - internal: the input is read again
    """A sentence without an id was given a key that is the id of a later one."""


class Executor(Protocol):
    """Processes that apply functions to tasks; results come in the order of the tasks."""

    def begin(self, function: Callable[[Any, None], Any], shared: Any) -> None:
        """Let each process apply a function to None, for example to load what it needs."""

    def map(self, function: Callable[[Any, Any], Any], shared: Any, tasks: Iterable[Any]) -> Iterator[Any]:
        """Apply a function to tasks."""


@dataclass
class Augmentation:
    """An augmentation with its input open and its processes started."""

    job: FileJob
    source: CorpusFile
    augmenter: Augmenter | CombinedAugmenter
    work: Work
    progress: Progress
    executor: Executor | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        job: FileJob,
        augmenter: Augmenter | CombinedAugmenter,
        review: str | Path | None,
        jobs: int | None,
        executor: str,
        address: str | None,
        progress: Progress,
    ) -> Iterator[Augmentation]:
        """Load the method, open the input, and start processes."""
        check_jobs(jobs)
        is_shared = jobs != 1 or executor == "ray"
        packed = _packed(augmenter) if is_shared else b""  # before its models are loaded
        augmenter.load()
        decisions = read_review(review, augmenter.name) if review is not None else Review()
        with job.open() as (source, target_file), contextlib.ExitStack() as stack:
            check_soft_labels(augmenter.teacher_, target_file)
            sentences = Input(source, job.repair)
            run = cls(
                job,
                source,
                augmenter,
                Work(augmenter, sentences, target_file, decisions, signature_before_fit(augmenter)),
                progress,
            )
            if executor == "ray":
                from entaug.methods.ray import RayWorkers

                run.work.augmenter = _shared_copy(augmenter, packed)
                run.executor = stack.enter_context(RayWorkers.start(address, augmenter, jobs))
                run.work.sentences = Corpus(sentences, sentences.source)  # other machines do not see the file
            else:
                jobs = jobs or number_of_processes(None, source.size, uses_models=augmenter.uses_models)
                if jobs > 1:
                    run.work.augmenter = _shared_copy(augmenter, packed)
                    run.executor = stack.enter_context(Workers.start(jobs))
            yield run

    def key(self, *settings: Any) -> str:
        """Return the key of the run; an interrupted run is resumed only by a run with the same key."""
        target_file, review = self.work.target_file, self.work.review
        content = ""
        for file in self.source.source_files():  # of a folder the names and the sums of its files
            with open_bytes(file) as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
            content += f"{file.relative_to(self.source.path) if self.source.path.is_dir() else ''}{digest}"
        parts = (
            __version__,
            self.work.signature,
            self.source.dialect,
            target_file.format.name,
            target_file.dialect,
            content,
            self.job.repair,
            sorted(map(repr, [*review.decisions.items(), *review.by_hand.items()])),
            *settings,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def read(self, output: str | Path, writer: RunWriter | None, *, copy_gold: bool) -> AugmentSummary:
        """Read the input: validate and count it, copy it to the output, and fit the method meanwhile."""
        source, work, augmenter, progress = self.source, self.work, self.augmenter, self.progress
        described = source.dialect.describe(), work.target_file.dialect.describe()
        summary = AugmentSummary(augmenter.name, augmenter.signature, str(self.job.input), str(output), *described)
        reading = ReadReport(repair=self.job.repair)
        sentences = self._counted(summary, Input(source, self.job.repair) if self.executor else work.sentences, reading)
        if writer is not None and copy_gold and writer.state is None:
            sentences = self._copied(sentences, writer, reading)
        if self.executor is not None:
            self.executor.begin(draw_block, work)
            for _ in sentences:
                pass
        else:
            augmenter.progress = lambda done, total, loss: progress(f"training, loss {loss:.2f}", done, total)
            work.fit(CorpusStream(lambda: sentences, str(source.path)))
            augmenter.progress = None
        if writer is not None:
            writer.release()
        summary.repaired = reading.repaired
        summary.notes += [*(work.notes or []), *notes_on_other_tags(source), *note_lines(reading.notes)]
        self.notes = summary.notes
        return summary

    def _counted(self, summary: AugmentSummary, sentences: Any, reading: ReadReport) -> Iterator[Sentence]:
        before, lost, target_file = summary.before, summary.lost, self.work.target_file
        for sentence in sentences.read(reading, self.progress):
            before.add(sentence)
            lost.update(target_file.lost(sentence))
            notice_id(sentence, self.work.taken)
            yield sentence

    def _copied(self, sentences: Iterable[Sentence], writer: RunWriter, reading: ReadReport) -> Iterator[Sentence]:
        """Write each sentence to the output, with the id that provenance names it by, then yield it."""
        texts: list[str] = []
        keys, target_file = SentenceKeys(self.work.taken), self.work.target_file
        keeps_keys = target_file.keeps_keys
        with locate_losses(self.source, reading):
            for sentence in sentences:
                texts.append(target_file.encode(sentence.with_(id=keys.assign(sentence)) if keeps_keys else sentence))
                if len(texts) >= _BATCH:
                    writer.write(texts)
                    texts.clear()
                yield sentence
        if keys.clashes():
            raise _KeyClash
        writer.write(texts)

    def drawn(self, start: int, stop: int, total: int) -> Iterator[Drawn]:
        """Draw the new sentences of some of all sources, here or by all processes."""
        if self.executor is None:
            yield from self.work.draw(Block(start, stop, with_examples=True))
            return
        size = block_size(total)
        blocks = (
            Block(max(start, first), min(stop, first + size), with_examples=first <= start)
            for first in range(start - start % size, stop, size)
        )
        is_first = True
        # Without a block, as in an empty part, the method is fitted for its notes.
        tasks = chain(blocks, () if start < stop else (None,))
        for notes, drawn, usage in self.executor.map(draw_block, self.work, tasks):
            for model, used in zip(instruct_models(self.augmenter), usage, strict=True):
                model.usage.add(used)
            if is_first:
                self.notes[:0], is_first = notes, False
            yield from drawn


def block_size(sources: int) -> int:
    """The number of sources of a block, for an input of so many."""
    # A whole number of batches, so that models see the same batches in one process and in many.
    return _BATCH * max(1, min(_MOST_BATCHES, sources // (_BATCH * 64)))


def _packed(augmenter: Augmenter | CombinedAugmenter) -> bytes | Exception:
    """The method as it was created, for processes that load and fit it themselves; or why it cannot be sent to them."""
    try:
        return pickle.dumps(augmenter)
    except Exception as error:  # noqa: BLE001 - of any model
        return error


def _shared_copy(augmenter: Augmenter | CombinedAugmenter, packed: bytes | Exception) -> Any:
    """The method as it was created, for several processes: it can be sent, and asks no server."""
    if isinstance(packed, Exception):
        message = f"{augmenter.name} cannot be sent to other processes ({packed})"
        remedy = "give its models by name"
        if any(method.is_foreign for method in augmenter.augmenters):
            remedy += ", or let its class make what cannot be sent in `_load` or `_fit`, which each process calls"
        raise ParameterError(message, parameter="jobs", remedy=remedy) from packed
    for model in instruct_models(augmenter):
        if model.remote_host is not None:
            raise ParameterError(
                f"{augmenter.name} asks {model.name} behind a server, which one process does with many requests at a "
                "time",
                parameter="jobs",
                remedy="leave out `jobs` and `executor`, and set `concurrency`",
            )
    return pickle.loads(packed)  # noqa: S301 - packed above


# -------------------------------------------------------------------------------------------------------------- writing


@dataclass
class Results:
    """Writes what no other source gave before, in the order of the input, and notes how far the output is complete."""

    target_file: CorpusFile
    writer: RunWriter
    summary: AugmentSummary
    progress: Progress
    with_gold: bool
    window: int = _BATCH

    def __post_init__(self) -> None:
        summary, state = self.summary, self.writer.state
        self._filled: set[str] = set()  # the columns in which new words have a placeholder
        self._gold_end = self.writer.offset  # number of bytes of the gold sentences in the output
        if state is not None:
            self._gold_end = state["gold_end"]
            summary.resumed_at = state["sources"]
            summary.statistics.update(state["statistics"])
            summary.after = CorpusStatistics.from_dict(state["after"])
            assert isinstance(self.writer, CheckpointedWriter)
            written = self.target_file.read_draft(self.writer.path, self._gold_end, self.writer.offset)
            summary.statistics.seen_before(sentence.fingerprint_number() for sentence in written)
        elif self.with_gold:
            summary.after = CorpusStatistics.from_dict(summary.before.to_dict())
        else:
            summary.after.mentions.update(dict.fromkeys(summary.before.mentions, 0))

    def write(self, drawn: Iterable[Drawn]) -> None:
        """Write and count what was drawn, from the first source that an interrupted run did not finish."""
        summary, writer, statistics = self.summary, self.writer, self.summary.statistics
        texts: list[str] = []
        rejected: list[str] = []
        done = first = summary.resumed_at
        total = summary.before.sentences
        saved = time.monotonic()
        self.progress("augmenting", done, total)
        for done, (requested, outcomes, _) in enumerate(drawn, start=first + 1):
            statistics.sources += 1
            statistics.requested += requested
            for outcome in outcomes:
                if len(outcome) == 3:
                    reason, is_last, text = outcome
                    statistics.reject(reason, is_last=is_last)
                    if text is not None:
                        rejected.append(text)
                    continue
                fingerprint, text, counts, changes, filled, *examples = outcome
                if statistics.accept(fingerprint, changes):
                    texts.append(text)
                    summary.after.add_counts(counts)
                    self._filled.update(filled)
                    summary.examples += filter(self._is_varied, examples)
            is_slow = time.monotonic() - saved > _SECONDS
            if not done % (self.window if is_slow else _BATCH):
                saved = time.monotonic()
                writer.write(texts)
                writer.write_rejected(rejected)
                texts.clear()
                rejected.clear()
                writer.checkpoint(
                    {
                        "sources": done,
                        "gold_end": self._gold_end,
                        "statistics": statistics.to_dict(),
                        "after": summary.after.to_dict(),
                    }
                )
                if is_slow or not done % (4 * _BATCH):
                    self.progress("augmenting", done, total)
        writer.write(texts)
        writer.write_rejected(rejected)
        self.progress("augmenting", done, total)

    def conclude(self, review: Sequence[int]) -> None:
        """Add the notes on the whole output."""
        summary = self.summary
        decisions, to_reject, to_correct, others = review
        if others and not decisions:
            summary.notes.append(f"the review covers other methods only; all sentences of {summary.method} are kept")
        if (unknown := to_reject - summary.statistics.missing[REVIEWED.reason]) > 0:
            summary.notes.append(
                f"{unknown:,} of {to_reject:,} sentences that the review rejects were not generated in this run; use "
                "the same file, options, seed and version as before"
            )
        if (unknown := to_correct - summary.statistics.corrected) > 0:
            summary.notes.append(
                f"{unknown:,} of {to_correct:,} sentences that the review corrects were not generated in this run, or "
                "have other labels; use the same file, options, seed and version as before"
            )
        summary.notes += notes_on_soft_labels(summary.statistics.relabelled, self.target_file)
        if count := summary.statistics.accepted:
            new = Sentence(["a"], id="a", provenance=Provenance("a"))  # as all new ones, it has an id and provenance
            summary.lost.update(dict.fromkeys(self.target_file.lost(new), count))
        summary.notes += FileJob(allow_loss=["all"]).settle_losses(summary.lost, self.target_file)
        if self._filled:
            shown = ", ".join(sorted(self._filled))
            summary.notes.append(f"new words have the placeholder {PLACEHOLDER!r} in other columns ({shown})")

    def _is_varied(self, example: Accepted) -> bool:
        """Whether an example is wanted: from a new source, and its method has fewer examples than its share."""
        examples = self.summary.examples
        *methods, own = (one.sentence.provenance and one.sentence.provenance.method for one in (*examples, example))
        share = ceil(_EXAMPLES / len(self.summary.method.split("+")))
        is_new = all(example.source is not one.source for one in examples)
        return len(examples) < _EXAMPLES and is_new and methods.count(own) < share


def check_any(summary: AugmentSummary, writer: RunWriter, *, has_rejected: bool) -> None:
    """Check that there is an augmented sentence."""
    if summary.statistics.accepted:
        return
    writer.keep_rejected()
    reasons = [f"{count:,} times {reason}" for reason, count in summary.statistics.missing.most_common(5)]
    message = f"{summary.method} generated no sentence{': ' if reasons else ''}{', '.join(reasons)}"
    remedy = "try other parameters or methods"
    if any(": " in reason for reason in summary.statistics.rejected):  # by a filter or a teacher
        remedy = f"see {'the rejected sentences' if has_rejected else 'why with `rejected=FILE`'}, or {remedy}"
    raise InputError(message, path=summary.input, remedy=remedy)
