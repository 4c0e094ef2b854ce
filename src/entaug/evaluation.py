"""Training and testing a tagger on files: `entaug train` and `entaug evaluate`, as functions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.data import Corpus, Sentence
from entaug.errors import InputError, OutputError
from entaug.formats import read
from entaug.scoring import Scores, score
from entaug.taggers.base import CONFIG, Fitted, Progress, Tagger, Training, load_tagger

__all__ = ["TrainSummary", "is_tagger", "predict_file", "train_file"]


@dataclass
class TrainSummary:
    """What `train_file` did."""

    input: str
    output: str
    sentences: int
    labels: list[str]
    fitted: Fitted = field(default_factory=Fitted)
    dev: Scores | None = None
    seconds: float = 0.0


def train_file(
    input: str | Path,
    output: str | Path,
    tagger: Tagger,
    *,
    dev: str | Path | None = None,
    training: Training | None = None,
    read_options: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> TrainSummary:
    """Train a tagger on a file and save it.

    Args:
        input: the sentences to learn from.
        output: the folder for the tagger; new or empty.
        tagger: a new tagger.
        dev: sentences to choose the best epoch by, and to be scored on.
        training: how.
        read_options: of `entaug.read`, for both files.
        progress: told of each step.

    Returns:
        What was done.

    Raises:
        InputError: a file is faulty, or stands in the other.
        OutputError: the output is there already, or cannot be written.
    """
    begun = time.monotonic()
    output = Path(output)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise OutputError("is there already", path=str(output), remedy="name a folder that is new or empty")
    options = read_options or {}
    gold = read(input, **options)
    watched: Corpus | None = None if dev is None else read(dev, **options)
    tagger.fit(gold, watched, training, progress)
    tagger.save(output)
    return TrainSummary(
        input=str(input),
        output=str(output),
        sentences=len(gold),
        labels=list(gold.labels),
        fitted=getattr(tagger, "fitted_", Fitted()),
        dev=None if watched is None else score(watched, tagger.predict(watched)),
        seconds=time.monotonic() - begun,
    )


def is_tagger(path: str | Path) -> bool:
    """Whether there is a saved tagger."""
    return (Path(path) / CONFIG).is_file()


def predict_file(folder: str | Path, gold: str | Path, **read_options: Any) -> tuple[list[Sentence], list[Sentence]]:
    """The sentences of a file, and what a saved tagger makes of them.

    Raises:
        InputError: there is no tagger, or the file is faulty.
    """
    tagger = load_tagger(folder)
    sentences = list(read(gold, **read_options))
    if not sentences:
        raise InputError("has no sentences", path=str(gold), remedy="name another file")
    return sentences, tagger.predict(sentences)
