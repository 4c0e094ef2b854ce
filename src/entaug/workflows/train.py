"""The workflow behind ``entaug train``: train a tagger on a file."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.backends.config import TrainingProgress
from entaug.errors import OutputError
from entaug.files.atomic import check_new_folder, output_error
from entaug.formats import read
from entaug.scoring.span_f1 import Scores, score
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, TrainingHistory
from entaug.workflows.common import Options

__all__ = ["TrainSummary", "train_file"]


@dataclass
class TrainSummary:
    """Result of `train_file`.

    Args:
        input: the training file.
        output: the folder of the tagger.
        sentences: the number of training sentences.
        labels: the labels of the tagger.
        history: steps, losses and the selected epoch.
        dev: scores on the dev sentences, if given.
        seconds: the duration in seconds.
    """

    input: str
    output: str
    sentences: int
    labels: list[str]
    history: TrainingHistory = field(default_factory=TrainingHistory)
    dev: Scores | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "input": self.input,
            "output": self.output,
            "sentences": self.sentences,
            "labels": self.labels,
            "steps": self.history.steps,
            "losses": self.history.losses,
            "dev_by_epoch": self.history.dev_f1,
            "best_epoch": self.history.best_epoch,
            "dev": self.dev.to_dict() if self.dev else None,
            "seconds": round(self.seconds, 2),
        }


def train_file(
    input: str | Path,
    output: str | Path,
    tagger: TrainableTagger,
    *,
    dev: str | Path | None = None,
    config: TaggerTrainingConfig | None = None,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Options = None,
    progress: TrainingProgress | None = None,
) -> TrainSummary:
    """Train a tagger on a file and save it.

    Args:
        input: the training sentences.
        output: the folder for the tagger; new or empty.
        tagger: a new tagger.
        dev: sentences for selecting the best epoch and for scores.
        config: the hyperparameters.
        repair: repair invalid tag sequences.
        from_format: the format of both files; None to detect it.
        read_options: options of the format of both.
        progress: called after each step.

    Returns:
        A summary of the training.

    Raises:
        InputError: a file is invalid, or holds no mentions to learn.
        OutputError: the output exists already, or cannot be written.
    """
    begun = time.monotonic()
    output = Path(output)
    _check_output_folder(output)  # check before the training, which may take an hour
    options = read_options or {}
    gold = read(input, from_format, repair=repair, **options)
    dev_gold = None if dev is None else read(dev, from_format, repair=repair, **options)
    tagger.fit(gold, dev_gold, config, progress)
    tagger.save(output)
    return TrainSummary(
        input=str(input),
        output=str(output),
        sentences=len(gold),
        labels=list(gold.labels),
        history=getattr(tagger, "history_", TrainingHistory()),
        dev=None if dev_gold is None else score(dev_gold, tagger.predict(dev_gold)),
        seconds=time.monotonic() - begun,
    )


def _check_output_folder(folder: Path) -> None:
    check_new_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(folder.parent, error) from None
    if not os.access(folder.parent, os.W_OK):
        raise OutputError("cannot be written", path=str(folder), remedy="name another folder")
