"""The protocol of taggers, the configuration of their training, the registry of taggers, and their text form."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

from entaug.backends.config import BaseTrainingConfig, TrainingProgress
from entaug.backends.protocols import Tagger
from entaug.config.params import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    construct,
    parameters,
    parse_assignments,
)
from entaug.config.registry import Registry
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError, UnknownNameError, one_line

TAGGERS: Registry[Any] = Registry(
    "tagger",
    {
        "linear": "entaug.taggers.flat:LinearTagger",
        "bilstm-crf": "entaug.taggers.flat:BiLSTMCRFTagger",
        "static-bilstm-crf": "entaug.taggers.flat:StaticBiLSTMCRFTagger",
        "ensemble": "entaug.taggers.ensemble:EnsembleTagger",
        "w2ner": "entaug.taggers.w2ner:W2NERTagger",
        "seq2seq": "entaug.taggers.seq2seq:Seq2SeqTagger",
    },
    group="entaug.taggers",
)
"""Classes of taggers by name; third-party packages add theirs through the entry point group ``entaug.taggers``."""

EXPORTED: Registry[Any] = Registry("exported tagger", {"onnx": "entaug.taggers.onnx:OnnxTagger"})
"""Classes of taggers that are loaded, but never created or trained."""

CONFIG_FILE = "tagger.json"
_OF_THE_MACHINE = ("device", "precision")


@dataclass(frozen=True, kw_only=True)
class TaggerTrainingConfig(BaseTrainingConfig):
    """Hyperparameters of training a tagger.

    Args:
        epochs: number of passes over the training sentences, augmented ones included; ignored if `steps` is given.
        steps: number of optimizer steps, whatever the number of sentences; None to train for `epochs`, or without
            them for `default_steps`: 50 times the square root of the number of sentences, at least 300.
        batch_size: sentences of an optimizer step.
        learning_rate: peak learning rate of the pretrained encoder; None for 2e-4, and less for encoders that are
            wider than 384, in proportion to 1 / width², or have more than 6 layers, to 1 / (width * layers) if that is
            less: 1e-4 for 12 layers of 384, 5e-5 for 12 of 768, and 1.9e-5 for 24 of 1024.
        head_learning_rate: peak learning rate of all new weights.
        checkpoint: the weights to keep: ``"last"``, those after the last step, or ``"best"``, those of the epoch with
            the highest F1 on the development sentences.
        schedule: how augmented sentences join the gold ones: ``"shuffled"``, all sentences alike; ``"mixed"``, each
            batch has the share `gold_share` of gold sentences; or ``"staged"``, augmented sentences first, then gold
            sentences alone.
        gold_share: share of gold sentences in a batch; None for a half with the schedule ``"mixed"``, and for none in
            the first stage of ``"staged"``.
        first_stage: share of the steps that the first stage of ``"staged"`` takes.
        gold_learning_rate: peak learning rate of the pretrained encoder in the second stage of ``"staged"``, which
            then begins with a warm-up of its own; the rate of new weights changes in proportion. ``"same"`` for that of
            the first stage; None to go on with one decay over both stages.
        pretraining_epochs: number of passes over the text of all sentences, augmented ones included, in which the
            encoder first learns to predict masked words (Gururangan et al. 2020); it must be a masked language model.
        consistency: weight of the divergence between the tags that two passes with different dropout predict for a
            sentence, added to their mean loss (R-Drop, Liang et al. 2021); 0 for a single pass.
        averaged_share: share of the steps, counted from the end, over which the weights are averaged (Izmailov et al.
            2018); 0 for those after the last step.

    Example:
        >>> TaggerTrainingConfig(epochs=10, batch_size=16).total_steps(100)
        70
        >>> TaggerTrainingConfig(steps=200).total_steps(100)
        200
    """

    epochs: PositiveInt | None = None  # type: ignore[assignment]
    steps: PositiveInt | None = None
    learning_rate: PositiveFloat | None = None
    head_learning_rate: PositiveFloat = 1e-3
    checkpoint: Literal["last", "best"] = "last"
    schedule: Literal["shuffled", "mixed", "staged"] = "shuffled"
    gold_share: Probability | None = None
    first_stage: Probability = 0.7
    gold_learning_rate: PositiveFloat | Literal["same"] | None = None
    pretraining_epochs: NonNegativeInt = 0
    consistency: NonNegativeFloat = 0.0
    averaged_share: Probability = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.averaged_share and self.checkpoint == "best":
            remedy = 'leave it out, or set checkpoint to "last"'
            raise ParameterError(
                "weights of the best epoch are not averaged", parameter="averaged_share", remedy=remedy
            )

    def total_steps(self, num_examples: int) -> int:
        if self.steps is None and self.epochs is None:
            return default_steps(num_examples)
        return self.steps or super().total_steps(num_examples)


def default_steps(num_sentences: int) -> int:
    """The number of optimizer steps of batches of 8 after which training has converged."""
    # 50 times the square root of the number of sentences, at least 300: 40 epochs of 100 sentences, 13 of 1,000, 4 of
    # 10,000. In pilots on 100 sentences F1 no longer rose after 400 to 600 steps.
    return max(300, round(50 * math.sqrt(num_sentences)))


@dataclass
class TrainingHistory:
    """Course of a training."""

    steps: int = 0
    losses: list[float] = field(default_factory=list)
    dev_f1: list[float] = field(default_factory=list)
    best_epoch: int | None = None


@runtime_checkable
class TrainableTagger(Tagger, Protocol):
    """A `Tagger` that can be saved and loaded too; its class is a dataclass of its parameters."""

    def check_requirements(self) -> None:
        """Check that everything that training needs is available.

        Raises:
            MissingModelError: a model is missing.
            ParameterError: the device does not exist.
        """
        ...

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: TaggerTrainingConfig | None = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        """Train from scratch.

        Args:
            train: sentences with gold mentions.
            dev: development sentences, needed to select the best epoch.
            config: the hyperparameters; None for the defaults.
            progress: called after each step.
            augmented: further sentences, which ``config.schedule`` joins with the gold ones. The tagger learns the
                probabilities of tags of those that have some (soft labels), and the mentions of the others.

        Returns:
            The tagger itself.
        """
        ...

    def save(self, folder: str | Path) -> None:
        """Save the tagger: its files, and at last with `write_config` its name, parameters and their checksum.

        Args:
            folder: a folder that is new or empty.
        """
        ...

    def restore(self, folder: Path) -> Self:
        """Load the weights that `save` wrote into a tagger of the same parameters; see `load_tagger`.

        Args:
            folder: the folder of the saved tagger.

        Returns:
            The tagger itself.
        """
        ...


def create_tagger(name: str, **params: Any) -> TrainableTagger:
    """Create a tagger by name."""
    tagger: TrainableTagger = construct(TAGGERS[name], name, params)
    return tagger


def check_has_encoder(name: str) -> None:
    """Check that a tagger has a pretrained encoder, where encoders are named and compared."""
    if "encoder" not in {parameter.name for parameter in parameters(TAGGERS[name])}:
        remedy = "name another, such as linear; `entaug experiment` compares methods with any tagger"
        raise ParameterError(f"{name} has no pretrained encoder", parameter="tagger", remedy=remedy)


class ConfiguredTagger:
    """A tagger that is trained with hyperparameters of its own; all else is that of the tagger."""

    def __init__(self, name: str, tagger: TrainableTagger, config: TaggerTrainingConfig) -> None:
        self.name, self.tagger, self.config = name, tagger, config

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the tagger."""
        if name == "tagger":  # in a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.tagger, name)

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: TaggerTrainingConfig | None = None,
        *more: Any,
        **options: Any,
    ) -> Self:
        self.tagger.fit(train, dev, config or self.config, *more, **options)
        return self


def default_tagger(sentences: Iterable[Sentence]) -> str:
    """The name of the tagger for a corpus whose user names none: one that can learn the shapes of its mentions."""
    return "linear" if all(sentence.is_flat for sentence in sentences) else "w2ner"


def configure_tagger(name: str, text: str) -> ConfiguredTagger:
    """Create a tagger with parameters of its own and of its training: ``linear:encoder=mpnet;epochs=20``."""
    names = {parameter.name for parameter in parameters(TAGGERS[name])}
    own: list[str] = []
    of_training: list[str] = []
    for assignment in filter(None, map(str.strip, text.split(";"))):
        is_own = assignment.partition("=")[0].strip() in names
        (own if is_own else of_training).append(assignment)
    tagger = create_tagger(name, **parse_assignments(TAGGERS[name], name, own))
    training = parse_assignments(TaggerTrainingConfig, name, of_training)
    config = construct(TaggerTrainingConfig, f"the training of {name}", training)
    return ConfiguredTagger(f"{name}:{text}", tagger, config)


def overlap_of(name: str, params: Mapping[str, Any]) -> str | None:
    """Which of overlapping mentions a tagger, or those of an ensemble, would learn."""
    defaults = {parameter.name: parameter.default for parameter in parameters(TAGGERS[name])}
    if "member" in defaults:
        return overlap_of(params.get("member", defaults["member"]), params.get("params", {}))
    overlap: str | None = params.get("overlap", defaults.get("overlap"))
    return overlap


def with_overlap(name: str, params: Mapping[str, Any], overlap: str) -> dict[str, Any]:
    """Say which of overlapping mentions a tagger, or those of an ensemble, learn; see `overlap_of`."""
    names = {parameter.name for parameter in parameters(TAGGERS[name])}
    if "member" in names:
        return {**params, "params": {**params.get("params", {}), "overlap": overlap}}
    return {**params, "overlap": overlap}


def load_tagger(folder: str | Path) -> TrainableTagger:
    """Load a saved tagger."""
    folder = Path(folder)
    if not folder.exists():
        raise InputError("no such folder", path=str(folder), remedy="check the path")
    try:
        config = read_config(folder)
        name, params, checksum = str(config["tagger"]), {**config["params"]}, config["sum"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        remedy = "name a folder that `entaug train` or `TrainableTagger.save` wrote"
        raise InputError(f"holds no tagger (no readable {CONFIG_FILE})", path=str(folder), remedy=remedy) from None
    if checksum != _checksum(folder, config):
        raise damaged_tagger(folder, "its files are not as they were saved")
    try:
        registry = EXPORTED if name in EXPORTED else TAGGERS
        tagger: TrainableTagger = construct(registry[name], name, params)
    except (UnknownNameError, ParameterError) as error:
        raise damaged_tagger(folder, error) from None
    return tagger.restore(folder)


def read_config(folder: Path) -> dict[str, Any]:
    """Read what `write_config` wrote."""
    return dict(json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8")))


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write the file that `load_tagger` reads, with a checksum of the folder: edited labels would be wrong results."""
    config = json.loads(json.dumps(config))  # as it will be read: keys are strings
    text = json.dumps({**config, "sum": _checksum(folder, config)}, ensure_ascii=False, indent=1)
    (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")


def _checksum(folder: Path, config: Mapping[str, Any]) -> str:
    """The checksum of a configuration, but for the parameters that depend on the machine, and of all other files."""
    params = {name: value for name, value in config["params"].items() if name not in _OF_THE_MACHINE}
    content = {**config, "params": params, "sum": None}
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / CONFIG_FILE):
        with path.open("rb") as stream:
            total.update(path.relative_to(folder).as_posix().encode())
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def damaged_tagger(folder: Path, reason: object) -> InputError:
    """The error for a damaged tagger."""
    return InputError(
        f"holds a damaged tagger ({one_line(reason)[:200]})", path=str(folder), remedy="train the tagger again"
    )
