"""The time that the runs of a study take, before they are begun."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from statistics import median

from entaug.backends.compute import torch_threads, use_compute_settings
from entaug.core.data import Sentence
from entaug.errors import MissingExtraError, MissingModelError
from entaug.formats import read
from entaug.study.runs import RunSpec
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger

SLOWER = 1.3
"""Trainings beside others, with loading and predicting, compared with a trial."""
_TRIAL_STEPS = 8
_TRIAL_SECONDS = 20.0  # after which a trial ends, if it has two steps to compare
_FORWARD = 1 / 3  # of the time of a step: predicting has no backward pass


class _EnoughError(Exception):
    """A trial has taken long enough."""


def seconds_per_step(
    tagger: TrainableTagger, sentences: Iterable[Sentence], config: TaggerTrainingConfig, *, threads: int
) -> float:
    """The time of a step, by a short trial with so many threads as a training has; 0 for all."""
    times: list[float] = []

    def note(*_: object) -> None:
        times.append(time.monotonic())
        if len(times) > 2 and times[-1] - times[0] > _TRIAL_SECONDS:
            raise _EnoughError

    labelled = (sentence for sentence in sentences if sentence.mentions)
    with contextlib.suppress(_EnoughError), torch_threads(threads):
        tagger.fit(
            list(islice(labelled, config.batch_size * _TRIAL_STEPS)),
            config=replace(config, steps=_TRIAL_STEPS, checkpoint="last"),
            progress=note,
        )
    return median([end - start for start, end in pairwise(times)] or [0.0])


def seconds_left(
    runs: Sequence[RunSpec], seconds: dict[str, float], jobs: int, report: Callable[[str], None]
) -> float | None:
    """The time that runs take which are not among those whose time is known; None if a tagger cannot be tried."""
    # Runs of a tagger take as long for a step as those that are finished; without such, as in a trial.
    groups: dict[object, list[RunSpec]] = defaultdict(list)
    for run in {run.key: run for run in runs}.values():
        groups[repr((run.tagger.name, run.tagger.params, run.training.batch_size))].append(run)
    sizes: dict[Path, int] = {}
    total, num_left = 0.0, 0
    for some in groups.values():
        done = [run for run in some if run.key in seconds]
        left = [run for run in some if run.key not in seconds]
        num_left += len(left)
        if not left:
            continue
        if done:
            rate = sum(seconds[run.key] for run in done) / sum(run.steps for run in done)
            total += rate * sum(run.steps for run in left)
            continue
        largest = max(left, key=lambda run: run.split.num_gold)
        try:
            with use_compute_settings(offline=True):  # a trial downloads nothing
                tagger = largest.tagger.create(largest.split.corpus.overlap)
                rate = seconds_per_step(tagger, read(largest.split.train), largest.training, threads=largest.threads)
        except (MissingExtraError, MissingModelError) as error:
            report(f"no estimate of the time, because {largest.tagger.label} cannot be tried: {error.message}")
            return None
        total += SLOWER * rate * sum(_steps_and_predictions(run, sizes) for run in left)
    return total / min(jobs, max(1, num_left))


def _steps_and_predictions(run: RunSpec, sizes: dict[Path, int]) -> float:
    """The steps of a run, and those that would take as long as its predictions on dev and test."""
    for path in [*run.split.test_files.values(), *([run.split.dev] if run.split.dev else [])]:
        if path not in sizes:
            with path.open("rb") as lines:
                sizes[path] = sum(1 for _ in lines)
    training = run.training
    predicted = float(sum(sizes[path] for path in run.split.test_files.values()))
    if run.split.dev:
        epochs = training.batch_size * run.steps / run.num_planned if training.checkpoint == "best" else 0
        predicted += (1 + epochs) * sizes[run.split.dev]
    return run.steps + _FORWARD * predicted / training.batch_size
