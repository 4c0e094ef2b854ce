"""The base of our taggers: training, prediction, saving and loading of an encoder with a decoder."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice, repeat
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
import transformers
from annotated_types import Interval
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from entaug import _version
from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.protocols import MaskedExample
from entaug.backends.soft_labels import TagProbabilities
from entaug.backends.transformers.base import (
    Batcher,
    choose_device,
    load_pretrained,
    model_name,
    quiet,
    shuffled_batches,
    unfuse_attention,
)
from entaug.backends.transformers.encoder import compute_attentions
from entaug.backends.transformers.masked_lm import TransformersMaskedLM
from entaug.backends.transformers.training import TrainingLoop, isolated_random_state, linear_decay
from entaug.config.params import Check, Configurable, NonNegativeInt, parameters
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, ParameterError
from entaug.files.atomic import atomic_folder
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig, TrainingHistory, damaged_tagger, read_config, write_config
from entaug.taggers.encoders import Encoder, Result, encoder_folder, in_batches

Dropout = Annotated[float, Interval(ge=0, lt=1)]
ModelName = Annotated[str, Check(bool, "an alias, a folder or a name on the hub")]

_WEIGHTS_FILE = "tagger.safetensors"
_MASKED = 0.15  # of the words, in pretraining
_PRETRAINING: dict[str, Any] = {"adapters": False, "validation_fraction": 0.0}


@dataclass(kw_only=True, eq=False)
class NeuralTagger(Configurable, abc.ABC):
    """Base of taggers of an encoder, which computes word vectors, and a decoder, which predicts mentions from them.

    Args:
        device: see `entaug.backends.transformers.base.choose_device`.
        precision: precision of the computation, see `entaug.backends.transformers.base.choose_device`; weights and
            optimizer state are kept in fp32.

    Attributes:
        labels_: the labels of the mentions, set by `fit`.
        history_: the course of the training, set by `fit`.
    """

    name: ClassVar[str]
    decoder_class: ClassVar[Any]
    """The class of the decoder; it takes the size of vectors, the labels, and the tagger for its parameters."""
    gives_probabilities: ClassVar[bool] = True
    """Whether it gives probabilities to tags or to relations, which ensembles average and soft labels consist of."""

    device: str | None = None
    precision: Literal["fp32", "bf16", "fp16"] | None = None
    labels_: list[str] = field(default_factory=list, init=False, repr=False)
    history_: TrainingHistory = field(default_factory=TrainingHistory, init=False, repr=False)
    _encoder: Any = field(init=False, repr=False)
    _decoder: Any = field(init=False, repr=False)

    @abc.abstractmethod
    def build_encoder(self, sentences: Sequence[Sentence]) -> Any:
        """Create the encoder."""

    def build_decoder(self, size: int) -> Any:
        """Create the decoder for `labels_`."""
        return self.decoder_class(size, self.labels_, self)

    @abc.abstractmethod
    def restore_encoder(self, folder: Path, config: dict[str, Any]) -> Any:
        """Create the encoder of a saved tagger."""

    def check_requirements(self) -> None:
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
        if config.consistency and not hasattr(self.decoder_class, "log_marginals"):
            raise ParameterError(f"{self.name} gives no probabilities to tags", parameter="consistency")
        self.labels_ = labels
        try:
            self._learn(gold, sentences, evaluated, config, progress)
        except BaseException:
            self.labels_ = []  # with labels it would count as trained, and predict at random
            raise
        return self

    def _learn(
        self,
        gold: list[Sentence],
        sentences: list[Sentence],
        evaluated: list[Sentence],
        config: TaggerTrainingConfig,
        progress: TrainingProgress | None,
    ) -> None:
        """Build the tagger for the labels, and train it."""
        device, _ = choose_device(self.device, self.precision)
        with isolated_random_state(device):
            torch.manual_seed(config.seed)
            with self._pretrained(sentences, config):
                self._build(self.build_encoder(gold), device)
            if config.learning_rate is None:
                config = replace(config, learning_rate=self._encoder.default_learning_rate)
            prepared = [self._encoder.prepare(sentence.tokens) for sentence in sentences]
            self._encoder.shrink([*prepared, *(self._encoder.prepare(sentence.tokens) for sentence in evaluated)])
            try:
                self.history_ = self._train(sentences, len(gold), prepared, evaluated, config, progress)
            finally:
                self._encoder.unshrink()
        self._set_evaluation_mode()

    def _build(self, encoder: Any, device: torch.device) -> None:
        self._encoder = encoder.to(device)
        model_type = ""
        if isinstance(encoder, Encoder):
            model_type = encoder.model.config.model_type
            unfuse_attention(encoder.model, device)
        self._dtype = choose_device(self.device, self.precision, model_type=model_type)[1]
        self._decoder = self.build_decoder(encoder.size).to(device)

    def _train(
        self,
        sentences: list[Sentence],
        num_gold: int,
        prepared: list[Any],
        evaluated: list[Sentence],
        config: TaggerTrainingConfig,
        progress: TrainingProgress | None,
    ) -> TrainingHistory:
        targets = [self._decoder.targets(sentence) for sentence in sentences]
        lengths = [self._encoder.length(one) for one in prepared]
        dev_f1: list[float] = []
        total_steps = config.total_steps(len(sentences))
        model = torch.nn.ModuleDict({"encoder": self._encoder, "decoder": self._decoder})
        pretrained = {id(p) for p in self._encoder.pretrained()}
        # In the order in which the norm of the gradients is summed: pretrained weights first, and of these matrices.
        trained = sorted(
            ((name, p) for name, p in model.named_parameters() if p.requires_grad),
            key=lambda item: (id(item[1]) not in pretrained, item[1].ndim <= 1),
        )

        def optimizer_options(_: str, parameter: torch.nn.Parameter) -> tuple[float, float]:
            learning_rate = config.learning_rate if id(parameter) in pretrained else config.head_learning_rate
            assert learning_rate is not None
            return learning_rate, config.weight_decay if parameter.ndim > 1 else 0.0

        def compute_loss(batch: Sequence[int]) -> torch.Tensor:
            words = [len(sentences[i]) for i in batch]

            def one_pass() -> tuple[Any, torch.Tensor]:
                vectors = self._encoder([prepared[i] for i in batch])
                loss: torch.Tensor = self._decoder.loss(vectors, words, [targets[i] for i in batch])
                return vectors, loss

            vectors, loss = one_pass()
            if not config.consistency:
                return loss
            others, other_loss = one_pass()
            first, second = (self._decoder.log_marginals(one, words) for one in (vectors, others))
            # The mean of both Kullback-Leibler divergences, for each word.
            divergence = ((first - second) * (first.exp() - second.exp())).sum(-1) / 2
            total: torch.Tensor = config.consistency * divergence[word_mask(words, divergence)].mean()
            return total + (loss + other_loss) / 2

        average = AveragedWeights(dict(trained), total_steps, config.averaged_share)

        def report(done: int, total: int, loss: float) -> None:
            average.update(done)
            if progress is not None:
                progress(done, total, loss)

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
            progress=report,
        )
        endless = batches(lengths, num_gold, config, total_steps, Random(f"batches {config.seed}"))
        loop.run(lambda _: endless, evaluate=evaluate if evaluated else None)
        if evaluated:
            loop.load_best_weights()
        else:
            average.load()
        losses = [loss for loss, _ in loop.losses]
        return TrainingHistory(loop.steps, losses, dev_f1, loop.best_epoch if evaluated else None)

    @contextmanager
    def _pretrained(self, sentences: Sequence[Sentence], config: TaggerTrainingConfig) -> Iterator[None]:
        """Let `build_encoder` use an encoder that has learned from the text of the sentences, if the config asks."""
        if config.pretraining_epochs:
            raise ParameterError(f"{self.name} has no encoder to pretrain", parameter="pretraining_epochs")
        del sentences
        yield

    # ------------------------------------------------------------------------------------------------------ prediction

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        sentences = list(sentences)
        predicted: list[tuple[Mention, ...]] = self._in_batches(
            sentences, lambda batch, vectors: self._decoder.decode(vectors, list(map(len, batch)))
        )
        return [sentence.with_(mentions=mentions) for sentence, mentions in zip(sentences, predicted, strict=True)]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        self._check_gives("log_marginals")

        def marginals(batch: list[Sentence], vectors: Any) -> Iterable[TagProbabilities]:
            rows = self._decoder.log_marginals(vectors, list(map(len, batch))).exp().cpu().numpy()
            return [TagProbabilities(self._decoder.tags, row[: len(s)]) for row, s in zip(rows, batch, strict=True)]

        return self._in_batches(list(sentences), marginals)

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        # Those of unknown labels and of mentions that the decoder cannot express are 0.
        self._check_gives("log_probs")
        sentences, known = list(sentences), set(self.labels_)
        indices = [
            i
            for i, sentence in enumerate(sentences)
            if (sentence.is_flat or not self._decoder.only_flat)
            and known.issuperset(mention.label for mention in sentence.mentions)
        ]
        log_probs: list[tuple[float, int]] = self._in_batches(
            [sentences[i] for i in indices], lambda batch, vectors: self._decoder.log_probs(vectors, batch)
        )
        confidences = [0.0] * len(sentences)
        for i, (log_prob, number) in zip(indices, log_probs, strict=True):
            confidences[i] = math.exp(log_prob / number)
        return confidences

    def _check_fitted(self) -> None:
        if not self.labels_:
            raise ParameterError(f"this {self.name} tagger is not trained", remedy="call fit, or use load_tagger")

    def _check_gives(self, probabilities: str) -> None:
        self._check_fitted()
        if not hasattr(self._decoder, probabilities):
            raise ParameterError(f"the {self.name} tagger gives no probabilities to tags", remedy="use linear")

    def _set_evaluation_mode(self) -> None:
        self._encoder.eval()
        self._decoder.eval()

    def _in_batches(
        self, sentences: Sequence[Sentence], compute: Callable[[list[Sentence], Any], Iterable[Result]]
    ) -> list[Result]:
        """A result for each sentence; `compute` gets the sentences of a batch and their word vectors."""
        self._check_fitted()
        self._decoder.eval()
        return in_batches(self._encoder, sentences, compute, self._dtype)

    # ---------------------------------------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path) -> None:
        self._check_fitted()
        with atomic_folder(Path(folder)) as new:
            self._encoder.save(new)
            parts = {"decoder": self._decoder} if isinstance(self._encoder, Encoder) else self._parts()
            weights = {
                f"{part}.{name}": tensor.contiguous().cpu()
                for part, module in parts.items()
                for name, tensor in module.state_dict().items()
            }
            save_file(weights, new / _WEIGHTS_FILE)
            config = {
                "tagger": self.name,
                "params": self.get_params(),
                "labels": self.labels_,
                "alphabet": getattr(self._encoder, "alphabet", None),
                "encoder": self._encoder.name,
                "history": asdict(self.history_),
                "version": _version.__version__,
            }
            write_config(new, config)

    def restore(self, folder: Path) -> Self:
        config = read_config(folder)
        self.labels_, self.history_ = list(config["labels"]), TrainingHistory(**config["history"])
        self._build(self.restore_encoder(folder, config), choose_device(self.device, self.precision)[0])
        try:
            weights = load_file(folder / _WEIGHTS_FILE)
            for part, module in self._parts().items():
                own = {n.removeprefix(f"{part}."): t for n, t in weights.items() if n.startswith(f"{part}.")}
                if own:
                    module.load_state_dict(own)
        except (OSError, RuntimeError, SafetensorError) as error:
            raise damaged_tagger(folder, error) from None
        self._set_evaluation_mode()
        return self

    def _parts(self) -> dict[str, torch.nn.Module]:
        return {"decoder": self._decoder, "encoder": self._encoder}


def word_mask(lengths: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Mask of the words (sentences, words), False for padding."""
    return torch.arange(like.shape[1], device=like.device)[None] < torch.tensor(lengths, device=like.device)[:, None]


class AveragedWeights:
    """The mean of weights over the last steps of a training."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter], total_steps: int, share: float) -> None:
        self._parameters = list(parameters.values())
        self._first = total_steps - math.floor(share * total_steps) + 1
        self._mean: list[torch.Tensor] = []
        self._count = 0

    def update(self, step: int) -> None:
        """Take account of the weights after a step, counted from 1."""
        if step >= self._first:
            self._count += 1
            now = [parameter.detach() for parameter in self._parameters]
            if self._mean:
                for mean, tensor in zip(self._mean, now, strict=True):
                    mean.lerp_(tensor, 1 / self._count)
            else:
                self._mean = [tensor.clone() for tensor in now]

    def load(self) -> None:
        """Give the parameters their mean values, if there are any."""
        for parameter, mean in zip(self._parameters, self._mean, strict=False):
            parameter.data.copy_(mean)


def batches(
    lengths: Sequence[int], num_gold: int, config: TaggerTrainingConfig, total_steps: int, rng: Random
) -> Iterator[list[int]]:
    """Draw the batches of a training, without end."""
    num_all = len(lengths)
    if config.schedule == "shuffled" or num_gold in (0, num_all):
        while True:
            yield from shuffled_batches(list(lengths), config.batch_size, rng)
    share = config.gold_share
    if share is None:
        share = 0.5 if config.schedule == "mixed" else 0.0
    num_from_gold = round(config.batch_size * share)
    gold = chain.from_iterable(shuffled_batches(lengths[:num_gold], num_from_gold or config.batch_size, rng))
    rest = chain.from_iterable(shuffled_batches(lengths[num_gold:], config.batch_size - num_from_gold or 1, rng))
    augmented = (num_gold + i for i in rest)
    last_mixed = total_steps if config.schedule == "mixed" else round(total_steps * config.first_stage)
    for num in chain(repeat(num_from_gold, last_mixed), repeat(config.batch_size)):
        yield [*islice(gold, num), *islice(augmented, config.batch_size - num)]


def learning_rate_factor(config: TaggerTrainingConfig, total_steps: int, has_augmented: bool) -> Callable[[int], float]:
    """The course of the learning rate: one decay, or one for each stage."""
    if config.schedule != "staged" or config.gold_learning_rate is None or not has_augmented:
        return linear_decay(total_steps, config.num_warmup_steps(total_steps))
    first_steps = round(total_steps * config.first_stage)
    first, second = (
        linear_decay(steps, config.num_warmup_steps(steps)) for steps in (first_steps, total_steps - first_steps)
    )
    assert config.learning_rate is not None
    ratio = 1.0 if config.gold_learning_rate == "same" else config.gold_learning_rate / config.learning_rate
    return lambda step: first(step) if step < first_steps else ratio * second(step - first_steps)


def masked_words(sentence: Sentence, rng: Random) -> MaskedExample:
    """Mask each word of a sentence with a probability of 0.15, at least one."""
    spaces = sentence.spaces or [" "] * len(sentence)
    parts = [before + token for before, token in zip(["", *spaces[:-1]], sentence.tokens, strict=True)]
    masked = [rng.random() < _MASKED for _ in parts]
    masked[rng.randrange(len(masked))] |= not any(masked)
    return list(zip(parts, masked, strict=True))


@dataclass(kw_only=True, eq=False)
class EncoderTagger(NeuralTagger):
    """Base of taggers with a pretrained encoder.

    Args:
        encoder: an alias of the starter set, a folder, or a name on the hub.
        trained_layers: the number of layers of the encoder that are trained, counted from the top; the others, and the
            embeddings, stay as they are, and what they compute for a sentence is kept during training, which is
            faster. 0 for none: word vectors are then features for the new weights. None for the whole encoder.
    """

    pooling: ClassVar[Literal["first", "max"]] = "first"
    encoder_class: ClassVar[type[Encoder]] = Encoder

    encoder: ModelName = "minilm"
    trained_layers: NonNegativeInt | None = None
    _folder: str | None = field(default=None, init=False, repr=False)

    def check_requirements(self) -> None:
        super().check_requirements()
        if not self.labels_:  # a trained tagger has its encoder
            encoder_folder(self.encoder)

    @property
    def can_regularise(self) -> bool:
        """Whether it can be trained with `pretraining_epochs` and `consistency`."""
        config = load_pretrained(transformers.AutoConfig, encoder_folder(self.encoder))
        architectures = config.architectures or ()
        has_head = any(name.endswith("ForMaskedLM") for name in architectures)
        return has_head and hasattr(self.decoder_class, "log_marginals")

    def build_encoder(self, sentences: Sequence[Sentence]) -> Encoder:
        encoder = self.encoder_class(self._folder or self.encoder, self.pooling, trained_layers=self.trained_layers)
        if self._folder:
            encoder.name = model_name(encoder_folder(self.encoder))
        return encoder

    @contextmanager
    def _pretrained(self, sentences: Sequence[Sentence], config: TaggerTrainingConfig) -> Iterator[None]:
        if not config.pretraining_epochs:
            yield
            return
        with TemporaryDirectory(prefix="entaug-encoder-") as folder:
            options = TrainingConfig(epochs=config.pretraining_epochs, seed=config.seed, **_PRETRAINING)
            precision = None if self.precision == "fp16" else self.precision
            model = TransformersMaskedLM(encoder_folder(self.encoder), device=self.device, precision=precision)

            def masked(epoch: int) -> list[MaskedExample]:
                rng = Random(f"masks {config.seed} {epoch}")
                return [masked_words(sentence, rng) for sentence in sentences]

            model = model.fit(masked, options)
            with quiet():
                model.model.base_model.save_pretrained(folder)
                model.tokenizer.save_pretrained(folder)
            self._folder = folder
            try:
                yield
            finally:
                self._folder = None

    def restore_encoder(self, folder: Path, config: dict[str, Any]) -> Encoder:
        encoder = self.encoder_class(str(folder / "encoder"), self.pooling, trained_layers=self.trained_layers)
        encoder.name = config["encoder"]
        return encoder

    def attentions(self, sentences: Sequence[Sequence[str]], layers: int = 4) -> list[NDArray[np.float32]]:
        self._check_fitted()
        encoder = self._encoder
        num_layers = int(encoder.model.config.num_hidden_layers)
        if not 1 <= layers <= num_layers:
            raise ParameterError(f"layers must be between 1 and {num_layers} for {encoder.name}, not {layers!r}")
        encoder.eval()
        with torch.autocast(encoder.model.device.type, dtype=self._dtype, enabled=self._dtype is not torch.float32):
            return compute_attentions(
                encoder.encoder, encoder.tokenizer, encoder.max_length, Batcher(4096), sentences, layers
            )
