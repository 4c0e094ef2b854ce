"""The workflow behind ``entaug train``: train a tagger on a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.backends.config import TrainingProgress
from entaug.backends.language_check import note_on_encoder
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.errors import InputError, OutputError
from entaug.files.atomic import check_new_folder, output_error
from entaug.formats import read, read_each
from entaug.formats.file_job import Options, require_mentions
from entaug.metrics.span_f1 import Scores, score
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, TrainingHistory
from entaug.taggers.relations import THW, RelationProbabilities

__all__ = ["TrainSummary", "train_file"]


@dataclass
class TrainSummary:
    """Result of `train_file`."""

    input: str
    output: str
    sentences: int
    labels: list[str]
    augmented: int = 0
    soft_labels: int = 0
    history: TrainingHistory = field(default_factory=TrainingHistory)
    dev: Scores | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "input": self.input,
            "output": self.output,
            "sentences": self.sentences,
            "augmented": self.augmented,
            "soft_labels": self.soft_labels,
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
    augmented: Sequence[str | Path] = (),
    config: TaggerTrainingConfig | None = None,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Options = None,
    progress: TrainingProgress | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> TrainSummary:
    """Train a tagger on a file and save it."""
    begun = time.monotonic()
    output = Path(output)
    _check_output_folder(output)  # check before the training, which may take an hour
    config = config or TaggerTrainingConfig()
    options = read_options or {}
    sentences = list(read(input, from_format, repair=repair, **options))
    require_mentions(sentences, input)
    dev_gold = None if dev is None else read(dev, from_format, repair=repair, **options)
    gold, new = _split_by_provenance(sentences, config, str(input))
    known = {(sentence.tokens, sentence.mentions) for sentence in gold}
    for corpus in read_each(augmented, from_format, repair=repair, beside=True, **options):
        new += [s for s in corpus if s.provenance or (s.tokens, s.mentions) not in known]
    if config.schedule != "shuffled" and not new:
        remedy = "name them with --augmented, or train on what augment wrote as JSON lines or with --provenance"
        raise InputError(
            f"has no augmented sentences for the schedule {config.schedule}", path=str(input), remedy=remedy
        )
    soft_labels = _check_soft_labels(gold, new)
    for note in note_on_encoder(tagger, gold):
        report(note)
    tagger.fit(gold, dev_gold, config, progress, new)
    tagger.save(output)
    return TrainSummary(
        input=str(input),
        output=str(output),
        sentences=len(gold) + len(new),
        augmented=len(new),
        soft_labels=soft_labels,
        labels=list(getattr(tagger, "labels_", ())),
        history=getattr(tagger, "history_", TrainingHistory()),
        dev=None if dev_gold is None else score(dev_gold, tagger.predict(dev_gold)),
        seconds=time.monotonic() - begun,
    )


def _split_by_provenance(
    sentences: list[Sentence], config: TaggerTrainingConfig, path: str
) -> tuple[list[Sentence], list[Sentence]]:
    """Gold and augmented sentences of a file; all are gold where the schedule makes no difference."""
    if config.schedule == "shuffled":
        return sentences, []
    gold = [sentence for sentence in sentences if sentence.provenance is None]
    if not gold:
        remedy = "train on the gold sentences, and name this file with --augmented"
        raise InputError("has augmented sentences only, and none that are gold", path=path, remedy=remedy)
    return gold, [sentence for sentence in sentences if sentence.provenance is not None]


def _check_soft_labels(gold: list[Sentence], augmented: list[Sentence]) -> int:
    """The number of sentences with soft labels, whose types must be those of the gold mentions."""
    types = {mention.label for sentence in gold for mention in sentence.mentions}
    number = 0
    for sentence in (*gold, *augmented):
        flat, any_shape = TagProbabilities.from_sentence(sentence), RelationProbabilities.from_sentence(sentence)
        soft_types = {tag[2:] for tag in (flat.tags if flat else ()) if tag != "O"}
        soft_types |= {name.removeprefix(THW) for name in (any_shape.names if any_shape else ()) if THW in name}
        number += flat is not None or any_shape is not None
        if unknown := sorted(soft_types - types):
            message = f"soft labels have types that no gold mention has: {', '.join(unknown)}"
            beginning = " ".join(sentence.tokens[:6])
            raise InputError(
                f"{message} (in {beginning!r})", remedy="use a teacher that was trained on these sentences"
            )
    return number


def _check_output_folder(folder: Path) -> None:
    check_new_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(folder.parent, error) from None
    if not os.access(folder.parent, os.W_OK):
        raise OutputError("cannot be written", path=str(folder), remedy="name another folder")
