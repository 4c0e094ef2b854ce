"""The workflow behind ``entaug augment``: write gold and augmented sentences to a file.

The output is moved into place only when it is complete. An interrupted run leaves a partial file beside it; the same
call resumes from there and gives the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from entaug._version import __version__
from entaug.augmenters.base import Augmenter
from entaug.augmenters.combined import CombinedAugmenter
from entaug.augmenters.contracts import REVIEWED, Accepted, RunStatistics
from entaug.augmenters.run import Run
from entaug.backends.instruct import Usage
from entaug.data import PLACEHOLDER, Sentence
from entaug.errors import InputError
from entaug.files.atomic import atomic_file
from entaug.files.checkpoints import CheckpointedWriter, DirectWriter, RunWriter
from entaug.files.streams import is_special, is_stdout, open_bytes
from entaug.formats import OpenedFile, find_format
from entaug.formats.base import Reading
from entaug.progress import Progress, no_progress
from entaug.report.review import Review, read_review
from entaug.workflows.common import (
    Options,
    check_apart,
    check_output,
    check_rejected_output,
    locate_losses,
    notes_on_models,
    notes_on_other_tags,
    open_corpora,
    read_sentences,
    usage_of_models,
)
from entaug.workflows.relabel import check_soft_labels, notes_on_soft_labels
from entaug.workflows.statistics import CorpusStatistics

__all__ = ["AugmentSummary", "augment_file", "run_key"]

_BATCH = 64  # source sentences between two checkpoints
_EXAMPLES = 3


@dataclass
class AugmentSummary:
    """Result of `augment_file`.

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
        review: decisions exported from a report, see `entaug.report.review`; sentences rejected there are left out.
        allow_empty: whether no augmented sentence at all is a valid result.
        progress: the progress callback.

    Returns:
        A summary with counts.

    Raises:
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
    augmenter.load()
    check_output(output, input, force=force, folders=True)
    rejected_path = check_rejected_output(rejected, input, output, force=force)
    check_apart([output, rejected], [review])
    decisions = read_review(review, augmenter.name) if review is not None else Review()
    with (
        open_corpora(
            input,
            output,
            force=force,
            from_format=from_format,
            to_format=to_format,
            read_options=read_options,
            write_options=write_options,
        ) as (source, to),
        contextlib.ExitStack() as stack,
    ):
        check_soft_labels(augmenter.teacher_, to)
        summary = AugmentSummary(
            augmenter.name,
            augmenter.signature,
            str(input),
            str(output),
            source.dialect.describe(),
            to.dialect.describe(),
        )
        if is_stdout(output) or is_special(Path(output)):
            stream = sys.stdout.buffer if is_stdout(output) else stack.enter_context(atomic_file(Path(output)))
            rejected_stream = stack.enter_context(atomic_file(rejected_path)) if rejected_path else None
            writer: RunWriter = DirectWriter(stream, to.heading, rejected_stream)
        else:
            settings = (only_new, repair, bool(rejected_path), sorted(map(repr, decisions.decisions.items())))
            writer = CheckpointedWriter(
                Path(output),
                run_key(augmenter, source, to, *settings),
                force=force,
                heading=to.heading,
                rejected=rejected_path,
                finish=lambda draft: to.finish(draft, force=force),
            )
        with writer:
            job = _Job(augmenter, source, to, writer, summary, repair, progress)
            job.fit(copy_gold=not only_new)
            job.run(decisions, with_gold=not only_new, with_rejected=rejected_path is not None)
            if not (summary.statistics.accepted or allow_empty):
                writer.keep_rejected()
                raise _no_sentence_error(summary, has_rejected=rejected_path is not None)
    summary.seconds = time.monotonic() - begun
    return summary


def _no_sentence_error(summary: AugmentSummary, *, has_rejected: bool) -> InputError:
    reasons = [f"{count:,} times {reason}" for reason, count in summary.statistics.missing.most_common(5)]
    message = f"{summary.method} generated no sentence{': ' if reasons else ''}{', '.join(reasons)}"
    why = "the rejected sentences" if has_rejected else "why with --rejected FILE"
    return InputError(message, path=summary.input, remedy=f"see {why}, or try other parameters or methods")


def run_key(augmenter: Augmenter | CombinedAugmenter, source: OpenedFile, to: OpenedFile, *settings: Any) -> str:
    """Return the key of a run; an interrupted run is resumed only by a run with the same key.

    Args:
        augmenter: the method.
        source: the input, of which the content matters.
        to: the output, of which the format and layout matter.
        settings: all other settings that change the output.
    """
    content = ""
    for file in source.source_files():
        with open_bytes(file) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
        content += f"{file.relative_to(source.path) if source.path.is_dir() else ''}{digest}"
    parts = (__version__, augmenter.signature, source.dialect, to.format.name, to.dialect, content, *settings)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass
class _Job:
    """One call of `augment_file`, with its files open."""

    augmenter: Augmenter | CombinedAugmenter
    source: OpenedFile
    to: OpenedFile
    writer: RunWriter
    summary: AugmentSummary
    repair: bool
    progress: Progress
    gold_end: int = 0  # number of bytes of the gold sentences in the output

    # ------------------------------------------------------------------------------------------------------------- fit

    def fit(self, *, copy_gold: bool) -> None:
        """Fit the method on the input; validate, count and copy the sentences to the output in the same pass."""
        summary, augmenter, progress = self.summary, self.augmenter, self.progress
        reading = Reading(repair=self.repair)
        copy_gold = copy_gold and self.writer.state is None
        sentences = read_sentences(self.source, reading, progress=progress)
        if copy_gold and self.writer.is_resumable:
            sentences = self._copied(sentences, reading)
        augmenter.progress = lambda done, total, loss: progress(f"training, loss {loss:.2f}", done, total)
        augmenter.fit(_NamedCorpus(self._counted(sentences), str(self.source.path)))
        summary.repaired = reading.repaired
        summary.notes += [*augmenter.notes(), *notes_on_models(augmenter), *notes_on_other_tags(self.source)]
        summary.notes += [f"{note} ({n:,} times)" if n > 1 else note for note, n in sorted(reading.notes.items())]
        if (
            copy_gold and not self.writer.is_resumable
        ):  # the input is known to be valid only after it was read to its end
            reading = Reading(repair=self.repair)
            for _ in self._copied(self.source.sentences(reading), reading):
                pass
        self.gold_end = self.writer.offset

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

    # ------------------------------------------------------------------------------------------------------------- run

    def run(self, review: Review, *, with_gold: bool, with_rejected: bool) -> None:
        """Write the augmented sentences, starting where an interrupted run stopped."""
        summary, writer = self.summary, self.writer
        excluded = review.rejects if review.decisions else None
        run = self.augmenter.run(target=self.to, excluded=excluded)
        summary.statistics = run.statistics
        sentences = self.source.sentences(Reading(repair=self.repair))
        if writer.state is None:
            if with_gold:
                summary.after = CorpusStatistics.from_dict(summary.before.to_dict())
            else:
                summary.after.mentions.update(dict.fromkeys(summary.before.mentions, 0))
        else:
            self._resume(run, sentences, writer.state)
        filled: set[str] = set()
        texts: list[str] = []
        rejected: list[str] = []
        as_json = find_format("jsonl")
        total, done, first = summary.before.sentences, summary.resumed_at, summary.resumed_at
        for done, (_, outcomes) in enumerate(run.outcomes(sentences), start=first + 1):
            for outcome in outcomes:
                if isinstance(outcome, Accepted):
                    texts.append(outcome.encoded or "")
                    self._count(outcome, filled)
                elif with_rejected and outcome.sentence is not None:
                    rejected.append(as_json.dump(outcome.sentence, as_json.dialect()))
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
        summary.notes += _notes_on_review(review, summary)
        summary.notes += self.augmenter.advice(run.statistics)
        summary.usage = usage_of_models(self.augmenter)
        summary.notes += notes_on_soft_labels(run.statistics.relabelled, self.to)
        if filled:
            columns = ", ".join(sorted(filled))
            summary.notes.append(f"new words have the placeholder {PLACEHOLDER!r} in other columns ({columns})")

    def _state(self, done: int) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {
            "sources": done,
            "gold_end": self.gold_end,
            "statistics": self.summary.statistics.to_dict(),
            "after": self.summary.after.to_dict(),
        }

    def _resume(self, run: Run, sentences: Iterator[Sentence], state: Any) -> None:
        self.gold_end = state["gold_end"]
        self.summary.resumed_at = state["sources"]
        for _ in range(state["sources"]):
            run.skip(next(sentences))
        assert isinstance(self.writer, CheckpointedWriter)
        for sentence in self.to.read_draft(self.writer.path, self.gold_end, self.writer.offset):
            run.remember(sentence)
        run.statistics.update(state["statistics"])
        self.summary.after = CorpusStatistics.from_dict(state["after"])

    def _count(self, accepted: Accepted, filled: set[str]) -> None:
        """Count an augmented sentence; note the columns in which its new words have a placeholder."""
        summary, (sentence, source, _) = self.summary, accepted
        summary.after.add(sentence)
        if len(summary.examples) < _EXAMPLES and self._is_varied(accepted):
            summary.examples.append(accepted)
        if sentence.columns:
            filled.update(
                name
                for name, values in sentence.columns.items()
                if name not in filled and PLACEHOLDER in values and PLACEHOLDER not in source.columns[name]
            )

    def _is_varied(self, accepted: Accepted) -> bool:
        """Whether an example is from a new source and its method has fewer examples than its share."""
        examples = self.summary.examples
        methods = [_method_of(example.sentence) for example in examples]
        share = ceil(_EXAMPLES / len(self.augmenter.name.split("+")))
        is_new = all(accepted.source is not example.source for example in examples)
        return is_new and methods.count(_method_of(accepted.sentence)) < share


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
