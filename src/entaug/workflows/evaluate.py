"""What the commands `subset`, `train` and `evaluate` do, as functions; more of what is in `entaug.workflows.augment`.

Nothing here prints.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.backends.config import TrainingProgress
from entaug.corpus import Corpus
from entaug.data import Sentence
from entaug.errors import InputError, OutputError
from entaug.experiment.subsets import draw, rest
from entaug.files.atomic import atomic_file, check_new_folder, output_error
from entaug.files.sinks import Counts, StreamSink
from entaug.files.streams import STDIN, rereadable_path
from entaug.formats import open_file, read
from entaug.formats.base import Reading
from entaug.formats.buffered import BufferedFormat, write_buffered
from entaug.scoring.span_f1 import Scores, score
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, TrainingHistory, load_tagger
from entaug.workflows.common import STDOUT, Progress, check_kind, check_output, guess, silent, watched

__all__ = ["SubsetSummary", "TrainSummary", "Written", "evaluate_files", "subset_file", "train_file", "write_text"]


@dataclass
class Written:
    """One file of several that were written."""

    path: str
    counts: Counts = field(default_factory=Counts)


@dataclass
class SubsetSummary:
    """What `subset_file` did."""

    input: str
    format: str
    how: str
    seed: int
    counts: Counts = field(default_factory=Counts)
    files: list[Written] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def subset_file(
    input: str | Path,
    folder: str | Path,
    sizes: Sequence[float],
    *,
    how: str = "progressive",
    seed: int = 0,
    with_rest: bool = False,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    progress: Progress = silent,
) -> SubsetSummary:
    """Write subsets of a file in its own layout: ``FOLDER/train.100.conll`` of ``train.conll``.

    Args:
        input: the file, or ``"-"``.
        folder: where they go; made when it is not there.
        sizes: how many sentences each has; see `entaug.experiment.subsets.draw`.
        how: how they are drawn: a key of `entaug.experiment.subsets.DRAWS`.
        seed: of the drawing.
        with_rest: write the sentences that are in no subset too, as ``FOLDER/train.rest.conll``.
        force: replace files that exist.
        repair: mend broken tag sequences.
        from_format: the input's format, found by default.
        read_options: layout of the input given by hand.
        progress: called now and then.

    Raises:
        InputError: the input is faulty, or smaller than a subset.
        OutputError: a file exists or cannot be written. None appears then.
    """
    with rereadable_path(input) as kept:
        try:
            source = open_file(kept, from_format, **(read_options or {}))
            reading = Reading(repair=repair)
            corpus = Corpus(watched(source.sentences(reading), "reading", progress, guess(source, progress)))
            drawn = draw(how, corpus, sizes, seed)
            summary = SubsetSummary(str(input), source.dialect.describe(), how, seed)
            summary.repaired, summary.notes = reading.repaired, reading.notes
            for sentence in corpus:
                summary.counts.add(sentence)
            parts: dict[Any, list[Sentence]] = (
                {**drawn, "rest": rest(corpus, *drawn.values())} if with_rest else {**drawn}
            )
            name = kept.name.removesuffix(".gz")
            suffix = Path(name).suffix + kept.name[len(name) :]
            if str(input) == STDIN:  # which has no extension, and its subsets need one
                suffix = source.format.extensions[0]
            for sentence in {id(one): one for part in parts.values() for one in part}.values():
                summary.lost.update(source.format.lost(sentence, source.dialect))
            paths = {part: Path(folder, f"{Path(name).stem}.{part}{suffix}") for part in parts}
            _make(Path(folder))
            for path in paths.values():
                check_output(path, input, force=force, folders=True)
                check_kind(path, source.format, force=force)
            with contextlib.ExitStack() as stack:  # so that they appear together
                for part, sentences in parts.items():
                    summary.files.append(Written(str(paths[part])))
                    if isinstance(source.format, BufferedFormat):
                        write_buffered(source.format, source.dialect, sentences, paths[part], force=force)
                    else:
                        sink = StreamSink(stack.enter_context(atomic_file(paths[part])), source.heading)
                        sink.write([source.format.dump(sentence, source.dialect) for sentence in sentences])
                    for sentence in sentences:
                        summary.files[-1].counts.add(sentence)
        finally:
            pass
    return summary


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(folder, error) from None


@dataclass
class TrainSummary:
    """What `train_file` did."""

    input: str
    output: str
    sentences: int
    labels: list[str]
    history: TrainingHistory = field(default_factory=TrainingHistory)
    dev: Scores | None = None
    seconds: float = 0.0


def train_file(
    input: str | Path,
    output: str | Path,
    tagger: TrainableTagger,
    *,
    dev: str | Path | None = None,
    config: TaggerTrainingConfig | None = None,
    repair: bool = False,
    from_format: str | None = None,
    read_options: dict[str, Any] | None = None,
    progress: TrainingProgress | None = None,
) -> TrainSummary:
    """Train a tagger on a file and save it.

    Args:
        input: the sentences to learn from.
        output: the folder for the tagger; new or empty.
        tagger: a new tagger.
        dev: sentences to choose the best epoch by, and to be scored on.
        config: the hyperparameters.
        repair: mend broken tag sequences.
        from_format: the format of both files, found by default.
        read_options: layout of both given by hand.
        progress: told of each step.

    Returns:
        What was done.

    Raises:
        InputError: a file is faulty, or there is nothing to learn in it.
        OutputError: the output is there already, or cannot be written.
    """
    begun = time.monotonic()
    output = Path(output)
    check_new_folder(output)
    _make(output.parent)  # before an hour's training, not after it
    if not os.access(output.parent, os.W_OK):
        raise OutputError("cannot be written", path=str(output), remedy="name another folder")
    options = read_options or {}
    gold = read(input, from_format, repair=repair, **options)
    watched = None if dev is None else read(dev, from_format, repair=repair, **options)
    tagger.fit(gold, watched, config, progress)
    tagger.save(output)
    return TrainSummary(
        input=str(input),
        output=str(output),
        sentences=len(gold),
        labels=list(gold.labels),
        history=getattr(tagger, "history_", TrainingHistory()),
        dev=None if watched is None else score(watched, tagger.predict(watched)),
        seconds=time.monotonic() - begun,
    )


def evaluate_files(
    gold: str | Path,
    predicted: str | Path,
    *,
    repair: bool = False,
    from_format: str | None = None,
    read_options: dict[str, Any] | None = None,
) -> Scores:
    """Score the mentions of one file, or those that a tagger finds, against gold ones; see `entaug.scoring.span_f1.score`.

    Args:
        gold: the annotated file.
        predicted: the same sentences with predicted mentions, in whatever format and layout; or the folder of a saved
            tagger.
        repair: mend broken tag sequences.
        from_format: the format of both, found by default.
        read_options: layout of both given by hand.

    Raises:
        InputError: a file is faulty, or they do not hold the same sentences.
    """
    options = read_options or {}
    there = read(gold, from_format, repair=repair, **options)
    if Path(predicted).is_dir():
        return score(there, load_tagger(predicted).predict(there))
    found = read(predicted, from_format, repair=repair, **options)
    try:
        return score(there, found)
    except InputError as error:
        error.path = str(predicted)
        raise


def write_text(text: str, output: str | Path, *, force: bool = False) -> None:
    """Put a text into a file, which appears only when it is complete.

    Args:
        text: what to write.
        output: the file, or ``"-"`` for standard output.
        force: replace a file that exists.

    Raises:
        OutputError: it exists or cannot be written.
    """
    check_output(output, STDIN, force=force)
    if str(output) in STDOUT:
        sys.stdout.write(text)
        return
    with atomic_file(Path(output)) as out:
        out.write(text.encode())
