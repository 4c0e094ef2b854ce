"""Base of the taggers: training, prediction, saving and loading of a body with a head."""

from __future__ import annotations

import abc
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, Self, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from entaug import _version
from entaug.backends.config import TrainingProgress
from entaug.backends.transformers.base import choose_device
from entaug.backends.transformers.training import TrainingLoop, isolated_random_state
from entaug.config.params import Configurable, parameters
from entaug.core.data import Mention, Sentence
from entaug.core.soft_labels import TagProbabilities
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import atomic_folder
from entaug.metrics.span_f1 import score
from entaug.taggers.base import CONFIG_FILE, TaggerTrainingConfig, TrainingHistory, damaged_tagger, write_config
from entaug.taggers.batches import batches, compute_in_batches, learning_rate_factor
from entaug.taggers.encoders import Encoder
from entaug.taggers.packing import replace_dropout

__all__ = ["NeuralTagger"]

Result = TypeVar("Result")

_WEIGHTS_FILE = "tagger.safetensors"


@dataclass(kw_only=True, eq=False)
class NeuralTagger(Configurable, abc.ABC):
    """Base of taggers that consist of a body, which computes word vectors, and a head, which predicts mentions.

    Args:
        device: see `entaug.backends.transformers.base.choose_device`.
        precision: precision of the computation, see `entaug.backends.transformers.base.choose_device`; weights and
            optimizer state are kept in fp32.

    Attributes:
        labels_: the labels of the mentions, set by `fit`.
        history_: the course of the training, set by `fit`.
    """

    name: ClassVar[str]
    budget: ClassVar[int] = 4096
    """Size of a prediction batch: sub-words."""
    gives_probabilities: ClassVar[bool] = True
    """Whether it gives probabilities to tags or to relations, which ensembles average and soft labels consist of."""

    device: str | None = None
    precision: Literal["fp32", "bf16", "fp16"] | None = None
    labels_: list[str] = field(default_factory=list, init=False, repr=False)
    history_: TrainingHistory = field(default_factory=TrainingHistory, init=False, repr=False)

    @abc.abstractmethod
    def build_body(self, sentences: Sequence[Sentence]) -> Any:
        """Create the body."""

    @abc.abstractmethod
    def build_head(self, size: int) -> Any:
        """Create the head for `labels_`."""

    @abc.abstractmethod
    def restore_body(self, folder: Path, config: dict[str, Any]) -> Any:
        """Create the body of a saved tagger."""

    @staticmethod
    def batch_cost(length: int) -> int:
        """The share of `budget` that a sentence takes."""
        return length

    def check_requirements(self) -> None:
        """See `entaug.taggers.base.TrainableTagger.check_requirements`."""
        choose_device(self.device, self.precision)

    def get_params(self) -> dict[str, Any]:
        """The parameters by name; they create the same tagger."""
        return {parameter.name: getattr(self, parameter.name) for parameter in parameters(type(self))}

    # -------------------------------------------------------------------------------------------------------- training

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: TaggerTrainingConfig | None = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        """See `entaug.taggers.base.TrainableTagger.fit`."""
        config = config or TaggerTrainingConfig()
        gold = list(train)
        sentences = [*gold, *augmented]
        evaluated = list(dev) if dev is not None and config.checkpoint == "best" else []
        labels = sorted({mention.label for sentence in sentences for mention in sentence.mentions})
        if not labels:
            raise InputError("no mentions to learn from", remedy="train on a corpus that has some")
        if config.checkpoint == "best" and not evaluated:
            remedy = 'give development sentences, or set checkpoint to "last"'
            raise InputError("no dev sentences to select the best epoch by", remedy=remedy)
        self.labels_ = labels
        device, _ = choose_device(self.device, self.precision)
        with isolated_random_state(device):
            torch.manual_seed(config.seed)
            self._body = self.build_body(gold).to(device)
            self._dtype = self._choose_precision()
            if config.learning_rate is None:
                config = replace(config, learning_rate=self._body.default_learning_rate)
            self._head = self.build_head(self._body.size).to(device)
            if device.type == "cpu":
                replace_dropout(torch.nn.ModuleList([self._body, self._head]), config.seed)
            prepared = [self._body.prepare(sentence.tokens) for sentence in sentences]
            self._body.shrink([*prepared, *(self._body.prepare(sentence.tokens) for sentence in evaluated)])
            try:
                self.history_ = self._train(sentences, len(gold), prepared, evaluated, config, progress)
            finally:
                self._body.unshrink()
        self._set_evaluation_mode()
        return self

    def _train(
        self,
        sentences: list[Sentence],
        num_gold: int,
        prepared: list[Any],
        evaluated: list[Sentence],
        config: TaggerTrainingConfig,
        progress: TrainingProgress | None,
    ) -> TrainingHistory:
        targets = [self._head.targets(sentence) for sentence in sentences]
        lengths = [self._body.length(one) for one in prepared]
        dev_f1: list[float] = []
        rng = Random(f"batches {config.seed}")
        total_steps = config.total_steps(len(sentences))
        model = torch.nn.ModuleDict({"body": self._body, "head": self._head})
        pretrained = {id(p) for p in self._body.pretrained()}
        # In the order in which the norm of the gradients is summed: pretrained weights first, and of these matrices.
        trained = sorted(
            ((name, p) for name, p in model.named_parameters() if p.requires_grad),
            key=lambda item: (id(item[1]) not in pretrained, item[1].ndim <= 1),
        )

        def optimizer_options(name: str, parameter: torch.nn.Parameter) -> tuple[float, float]:
            del name
            learning_rate = config.learning_rate if id(parameter) in pretrained else config.head_learning_rate
            assert learning_rate is not None
            return learning_rate, config.weight_decay if parameter.ndim > 1 else 0.0

        def compute_loss(batch: Sequence[int]) -> torch.Tensor:
            vectors = self._body([prepared[i] for i in batch])
            lengths = [len(sentences[i]) for i in batch]
            loss: torch.Tensor = self._head.loss(vectors, lengths, [targets[i] for i in batch])
            return loss

        def evaluate() -> float:
            dev_f1.append(score(evaluated, self.predict(evaluated)).micro.f1)
            return -dev_f1[-1]

        loop = TrainingLoop[int](
            model,
            dict(trained),
            config,
            optimizer_options=optimizer_options,
            compute_loss=compute_loss,
            num_examples=len(sentences),
            dtype=self._dtype,
            learning_rate_factor=learning_rate_factor(config, total_steps, num_gold < len(sentences)),
            progress=progress,
        )
        endless = batches(lengths, num_gold, config, total_steps, rng)
        loop.run(lambda _: endless, evaluate=evaluate if evaluated else None)
        if evaluated:
            loop.load_best_weights()
        losses = [loss for loss, _ in loop.losses]
        return TrainingHistory(loop.steps, losses, dev_f1, loop.best_epoch if evaluated else None)

    # ------------------------------------------------------------------------------------------------------ prediction

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """See `entaug.taggers.base.TrainableTagger.predict`."""
        self._check_fitted()
        sentences = list(sentences)

        def decode(batch: list[Sentence], vectors: Any) -> Iterable[tuple[Mention, ...]]:
            decoded: list[tuple[Mention, ...]] = self._head.decode(vectors, list(map(len, batch)))
            return decoded

        predicted = self._in_batches(sentences, decode)
        return [sentence.with_(mentions=mentions) for sentence, mentions in zip(sentences, predicted, strict=True)]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        """See `entaug.taggers.base.TrainableTagger.tag_probabilities`."""
        self._check_fitted()
        self._check_tag_probabilities()

        def marginals(batch: list[Sentence], vectors: Any) -> Iterable[TagProbabilities]:
            lengths = list(map(len, batch))
            rows = self._head.log_marginals(vectors, lengths).exp().cpu().numpy()
            return [TagProbabilities(self._head.tags, row[:n]) for row, n in zip(rows, lengths, strict=True)]

        return self._in_batches(list(sentences), marginals)

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        """See `entaug.taggers.base.TrainableTagger.confidences`."""
        self._check_fitted()
        self._check_tag_probabilities()
        sentences = list(sentences)
        known = set(self.labels_)
        # Unknown labels and mentions that tags cannot express have the confidence 0.
        indices = [i for i, s in enumerate(sentences) if s.is_flat and known.issuperset(m.label for m in s.mentions)]

        def of_mentions(batch: list[Sentence], vectors: Any) -> Iterable[float]:
            targets = [self._head.tag_ids(sentence) for sentence in batch]
            lengths = list(map(len, batch))
            log_probs = self._head.log_probs(vectors, lengths, targets)
            return [math.exp(log_prob / n) for log_prob, n in zip(log_probs, lengths, strict=True)]

        return self._confidences(sentences, indices, of_mentions)

    def _confidences(
        self,
        sentences: Sequence[Sentence],
        indices: Sequence[int],
        compute: Callable[[list[Sentence], Any], Iterable[float]],
    ) -> list[float]:
        """The confidences that `compute` gives to the sentences with some indices, and 0 for the others."""
        confidences = [0.0] * len(sentences)
        computed = self._in_batches([sentences[i] for i in indices], compute)
        for i, confidence in zip(indices, computed, strict=True):
            confidences[i] = confidence
        return confidences

    def _check_fitted(self) -> None:
        if not self.labels_:
            raise ParameterError(f"this {self.name} tagger is not trained", remedy="call fit, or use load_tagger")

    def _check_tag_probabilities(self) -> None:
        if not hasattr(self._head, "log_probs"):
            raise ParameterError(f"the {self.name} tagger gives no probabilities to tags", remedy="use linear")

    def _set_evaluation_mode(self) -> None:
        self._body.eval()
        self._head.eval()

    def _choose_precision(self) -> torch.dtype:
        model_type = self._body.model.config.model_type if isinstance(self._body, Encoder) else ""
        return choose_device(self.device, self.precision, model_type=model_type)[1]

    def _autocast(self) -> torch.autocast:
        device = next(self._head.parameters()).device.type
        return torch.autocast(device, dtype=self._dtype, enabled=self._dtype is not torch.float32)

    def _in_batches(
        self, sentences: Sequence[Sentence], compute: Callable[[list[Sentence], Any], Iterable[Result]]
    ) -> list[Result]:
        """A result for each sentence; `compute` gets the sentences of a batch and their word vectors."""
        prepared = [self._body.prepare(sentence.tokens) for sentence in sentences]

        def compute_batch(batch: list[int]) -> Iterable[Result]:
            return compute([sentences[i] for i in batch], self._body([prepared[i] for i in batch]))

        self._set_evaluation_mode()
        with torch.inference_mode(), self._autocast():
            lengths = [self._body.length(one) for one in prepared]
            return compute_in_batches(lengths, self.batch_cost, self.budget, compute_batch)

    # ---------------------------------------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path) -> None:
        """See `entaug.taggers.base.TrainableTagger.save`."""
        self._check_fitted()
        with atomic_folder(Path(folder)) as new:
            self._body.save(new)
            weights = {f"head.{name}": tensor for name, tensor in self._head.state_dict().items()}
            if not isinstance(self._body, Encoder):
                weights |= {f"body.{name}": tensor for name, tensor in self._body.state_dict().items()}
            save_file({name: tensor.contiguous().cpu() for name, tensor in weights.items()}, new / _WEIGHTS_FILE)
            config = {
                "tagger": self.name,
                "params": self.get_params(),
                "labels": self.labels_,
                "alphabet": getattr(self._body, "alphabet", None),
                "vocabulary": getattr(self._body, "vocabulary", None),
                "body": self._body.name,
                "history": asdict(self.history_),
                "version": _version.__version__,
                "sums": _sums(new),
            }
            write_config(new, config)

    def restore(self, folder: Path) -> Self:
        """See `entaug.taggers.base.TrainableTagger.restore`."""
        try:
            config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
            self.labels_, self.history_ = list(config["labels"]), TrainingHistory(**config["history"])
            _check_sums(folder, config.get("sums", {}))
            weights = load_file(folder / _WEIGHTS_FILE)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            raise damaged_tagger(folder, error) from None
        device, _ = choose_device(self.device, self.precision)
        self._body = self.restore_body(folder, config).to(device)
        self._dtype = self._choose_precision()
        self._head = self.build_head(self._body.size).to(device)
        try:
            for prefix, part in (("head.", self._head), ("body.", self._body)):
                own = {n.removeprefix(prefix): t for n, t in weights.items() if n.startswith(prefix)}
                if own:
                    part.load_state_dict(own)
        except RuntimeError as error:
            raise damaged_tagger(folder, error) from None
        self._set_evaluation_mode()
        return self


def _sums(folder: Path) -> dict[str, str]:
    """The checksum of each file in a folder, by its path."""
    sums = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CONFIG_FILE):
        with path.open("rb") as stream:
            sums[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return sums


def _check_sums(folder: Path, expected: Mapping[str, str]) -> None:
    """Raise a ValueError unless the files of a folder are those that were saved."""
    actual = _sums(folder)
    for name, checksum in expected.items():
        if actual.get(name) != checksum:
            raise ValueError(f"{name} {'has changed since it was saved' if name in actual else 'is missing'}")
