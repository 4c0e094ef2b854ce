"""``entaug train``: train a tagger on a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Unpack

from entaug.backends.language_check import note_on_encoder
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.command import Command, FileSummary, add_parameters, given_parameters
from entaug.commands.options import COMPUTING, JSON, READING, option_in_advance
from entaug.config.params import construct, parameters
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, LossError, ParameterError
from entaug.files.atomic import check_new_folder, make_folder
from entaug.formats.exchange import CorpusData, CorpusFiles, takes_data
from entaug.formats.file_job import FileJob, FileOptions, require_mentions
from entaug.metrics.span_f1 import Scores, score
from entaug.metrics.tables import quantity
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, TrainableTagger, TrainingHistory
from entaug.taggers.relations import THW, RelationProbabilities

_DEFAULT = "linear"
_COMPUTE = ("device", "precision")  # set for all models by the options for computing
_NESTED = ("params", "training")  # tables of an ensemble: the options of its taggers, and those of the training
# What these options say has a meaning with these schedules only.
_SCHEDULES = {"gold_share": ("mixed", "staged"), "first_stage": ("staged",), "gold_learning_rate": ("staged",)}


@dataclass(kw_only=True)
class TrainSummary(FileSummary):
    """Result of `train`."""

    tagger: str = ""
    sentences: int = 0
    labels: list[str] = field(default_factory=list)
    augmented: int = 0
    soft_labels: int = 0
    history: TrainingHistory = field(default_factory=TrainingHistory)
    dev: Scores | None = None

    def count_lines(self) -> Iterator[str]:
        kinds = [f"{self.augmented} augmented"] if self.augmented else []
        kinds += [f"{self.soft_labels} with soft labels"] if self.soft_labels else []
        of_these = f" ({', '.join(kinds)})" if kinds else ""
        sentences, types = quantity(self.sentences, "sentence"), quantity(len(self.labels), "type")
        losses = self.history.losses  # none of a tagger of the user's own that keeps no history
        course = f", {quantity(self.history.steps, 'step')}, loss {losses[-1]:.3f}" if losses else ""
        yield f"{self.tagger}: {sentences}{of_these}, {types}{course}"
        if best := self.history.best_epoch:
            yield f"selected epoch {best} of {len(self.history.dev_f1)}, the best on the dev sentences"
        if self.dev:
            counts = self.dev.micro
            f1, precision, recall = (100 * value for value in (counts.f1, counts.precision, counts.recall))
            yield f"dev: F1 {f1:.1f}, precision {precision:.1f}, recall {recall:.1f}"

    def to_dict(self) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "history"}
        return {**own, **vars(self.history), "dev": self.dev.to_dict() if self.dev else None}


@takes_data("input", "dev", "augmented", lists=["augmented"])
def train(
    input: CorpusData,
    output: str | Path,
    tagger: TrainableTagger | str = _DEFAULT,
    *,
    dev: CorpusData | None = None,
    augmented: CorpusFiles = (),
    config: TaggerTrainingConfig | None = None,
    progress: Progress = no_progress,
    report: Callable[[str], None] = lambda _: None,
    **files: Unpack[FileOptions],
) -> TrainSummary:
    """Train a tagger on a file and save it in a folder.

    To score it: entaug evaluate GOLD FOLDER

    Args:
        input: the training sentences.
        output: a new or empty folder for the tagger.
        tagger: the tagger to train, or the name of one.
        dev: dev sentences, for scores and to keep the best epoch (``checkpoint="best"``).
        augmented: files of augmented sentences, with mentions or soft labels, which the schedule joins with the gold
            ones.
        config: how it is trained, and in which order gold and augmented sentences come.
        progress: the progress callback.
        report: called with notes on the tagger.
        files: how all files are read, see `FileJob`.

    Returns:
        A summary with counts, and the scores on the dev sentences.

    Raises:
        InputError: a file is invalid, or has no mentions or no augmented sentences where these are needed.
        OutputError: the folder exists or cannot be written.

    Example:
        >>> train("train.conll", "tagger", "linaer")
        Traceback (most recent call last):
        ...
        entaug.errors.UnknownNameError: unknown tagger 'linaer'; did you mean 'linear'? (there are: ...)
    """
    summary = TrainSummary(input=str(input), output=str(output))
    output = Path(output)
    check_new_folder(output)  # check before the training, which may take an hour
    config = config or TaggerTrainingConfig()
    job = FileJob(input, **files)
    tagger = TAGGERS[tagger]() if isinstance(tagger, str) else tagger
    sentences = list(job.read_as_input(input))
    require_mentions(sentences, input)
    dev_gold = None if dev is None else job.read_as_input(dev)
    gold, new = _split_by_provenance(sentences, config, str(input))
    known = {(sentence.tokens, sentence.mentions) for sentence in gold}
    for corpus in job.read(*augmented):
        new += [s for s in corpus if s.provenance or (s.tokens, s.mentions) not in known]
    kept = [[s for s in some if not (s.provenance and s.provenance.rejected)] for some in (gold, new)]
    if rejected := len(gold) + len(new) - sum(map(len, kept)):
        report(f"{quantity(rejected, 'rejected sentence')} not used: filters or a review refused them")
        gold, new = kept
    if config.schedule != "shuffled" and not new:
        remedy = "name them as `augmented`, or train on what augment wrote as JSON lines"
        raise InputError(
            f"has no augmented sentences for the schedule {config.schedule}", path=str(input), remedy=remedy
        )
    summary.soft_labels = _check_soft_labels(gold, new)
    summary.sentences, summary.augmented = len(gold) + len(new), len(new)
    for note in note_on_encoder(tagger, gold):
        report(note)

    def show_loss(done: int, total: int, loss: float) -> None:
        progress(f"training, loss {loss:.3f}", done, total)

    try:
        tagger.fit(gold, dev_gold, config, None if progress is no_progress else show_loss, new)
    except LossError as error:
        error.path = str(input)
        error.remedy = "train `tagger=w2ner`, which learns all mentions, or choose: `overlap=outermost` or innermost"
        raise
    make_folder(output.parent)
    tagger.save(output)
    summary.tagger = str(getattr(tagger, "name", type(tagger).__name__))
    summary.labels = list(getattr(tagger, "labels_", ()))
    summary.history = getattr(tagger, "history_", summary.history)
    summary.dev = None if dev_gold is None else score(dev_gold, tagger.predict(dev_gold))
    return summary.finish()


def _split_by_provenance(
    sentences: list[Sentence], config: TaggerTrainingConfig, path: str
) -> tuple[list[Sentence], list[Sentence]]:
    """Gold and augmented sentences of a file; all are gold where the schedule makes no difference."""
    if config.schedule == "shuffled":
        return sentences, []
    gold = [sentence for sentence in sentences if sentence.provenance is None]
    if not gold:
        remedy = "train on the gold sentences, and name this file as `augmented`"
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


def _add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Add the parameters of the chosen tagger, and of the taggers of an ensemble."""
    text = f"one of: {', '.join(TAGGERS)} (default: {_DEFAULT}); their parameters: entaug train --tagger NAME --help"
    parser.add_argument("--tagger", default=_DEFAULT, help=text)
    name = option_in_advance(argv, "--tagger")
    classes = []
    if name or not {"-h", "--help", "--help-all"} & {*argv}:
        classes.append(TAGGERS[name or _DEFAULT])
        members = [parameter.default for parameter in parameters(classes[0]) if parameter.name == "member"]
        classes += [TAGGERS[option_in_advance(argv, "--member") or default] for default in members]
    for title, cls in zip(("tagger", "taggers of the ensemble"), classes, strict=False):
        add_parameters(parser.add_argument_group(f"parameters of the {title}"), cls, without=(*_COMPUTE, *_NESTED))
    parser.set_defaults(classes=classes)
    add_parameters(parser.add_argument_group("training"), TaggerTrainingConfig)


def _values(args: argparse.Namespace) -> dict[str, Any]:
    cls, *members = args.classes
    params = _without_compute(given_parameters(args, cls))
    for member in members:
        params["params"] = _without_compute(given_parameters(args, member))
    settings = given_parameters(args, TaggerTrainingConfig)
    config = TaggerTrainingConfig(**settings)
    for name, schedules in _SCHEDULES.items():
        if name in settings and config.schedule not in schedules:
            remedy = f"add {' or '.join(f'`schedule={one}`' for one in schedules)}"
            raise ParameterError(f"`{name}` has no effect with the schedule {config.schedule}", remedy=remedy)
    return {"tagger": construct(cls, args.tagger, params), "config": config}


def _without_compute(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in _COMPUTE}


COMMAND = Command(
    train,
    {"output": {"required": True, "metavar": "FOLDER"}, "tagger": None, "config": None},
    (JSON, READING, COMPUTING),
    more=_add_options,
    values=_values,
)
