"""The training loop of generators, masked language models, the LSTM and taggers.

Generators and language models are fine-tuned with early stopping on held-out examples and a checkpoint
after each epoch, from which an interrupted run resumes with the same result.
"""

from __future__ import annotations

import abc
import copy
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from entaug.backends.compute import trim_heap
from entaug.backends.config import BaseTrainingConfig, TrainingConfig, TrainingProgress
from entaug.backends.models.catalogue import file_digest
from entaug.backends.transformers.base import (
    TorchBackend,
    load_model,
    quiet,
    release_memory,
    shuffled_batches,
    unfuse_attention,
)
from entaug.errors import EntaugError, InputError, ParameterError, one_line
from entaug.files.atomic import atomic_folder

IGNORED = -100
"""Label of positions that do not count for the loss."""

MASK = "<mask>"
Row = tuple[list[int], list[int]]
"""Token ids of an input, and labels: token ids, or `IGNORED`."""

Example = TypeVar("Example")

# On a CPU more tokens of a language model at once are not faster, and what is kept for their backward pass is the peak
# of memory of a run.
_MAX_CPU_TOKENS = 512
_STATES = "state-*.pt"
# The files of a trained model, and the key of its checksum.
_CONFIG, _WEIGHTS, _SUM = "learned.json", "learned.safetensors", "sum"
_ADAPTER_RANK = 16
# The embeddings of added tokens, as peft names them. They start from the words of their labels and should move away
# from these within some tens of steps, so their learning rate is higher.
_NEW_TOKENS, _NEW_TOKENS_FACTOR = "trainable_tokens", 10.0


def isolated_random_state(device: torch.device) -> Any:
    """A context in which random numbers of torch may be drawn and seeded without an effect on the caller's."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def linear_decay(total_steps: int, warmup_steps: int) -> Callable[[int], float]:
    """Warm-up and linear decay of a learning rate."""

    def factor(step: int) -> float:
        if step < warmup_steps:
            return step / max(1, warmup_steps)
        return max(0.0, (total_steps - step) / max(1, total_steps - warmup_steps))

    return factor


@dataclass(eq=False)
class TrainingLoop(Generic[Example]):
    """Training by AdamW with warm-up and linear decay of the learning rate, clipped gradients and evaluations."""

    # A batch for which memory does not suffice is computed in parts, weighted so that the gradient stays the same.

    module: torch.nn.Module
    parameters: Mapping[str, torch.nn.Parameter]
    config: BaseTrainingConfig
    _: KW_ONLY
    optimizer_options: Callable[[str, torch.nn.Parameter], tuple[float, float]]
    compute_loss: Callable[[Sequence[Example]], torch.Tensor]
    num_examples: int
    dtype: torch.dtype = torch.float32
    weight: Callable[[Example], float] = lambda _: 1
    learning_rate_factor: Callable[[int], float] | None = None
    num_parts: Callable[[Sequence[Example]], int] = lambda _: 1
    progress: TrainingProgress | None = None

    def __post_init__(self) -> None:
        self.losses: list[tuple[float, float | None]] = []
        self.best_epoch = self.steps = 0
        self.best_weights: dict[str, torch.Tensor] = {}  # empty where nothing is evaluated
        self.steps_per_epoch = self.config.steps_per_epoch(self.num_examples)
        self.total_steps = self.config.total_steps(self.num_examples)
        self._least_parts = 1  # grows when memory runs out
        groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
        for name, parameter in self.parameters.items():
            groups.setdefault(self.optimizer_options(name, parameter), []).append(parameter)
        options = [{"params": group, "lr": rate, "weight_decay": decay} for (rate, decay), group in groups.items()]
        self._optimizer = torch.optim.AdamW(options, fused=True)
        # The exponent range of fp16 is small: the loss is scaled so that small gradients do not underflow.
        self._device = next(iter(self.parameters.values())).device
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=self.dtype is torch.float16)
        warmup_steps = self.config.num_warmup_steps(self.total_steps)
        factor = self.learning_rate_factor or linear_decay(self.total_steps, warmup_steps)
        self._schedule: Any = torch.optim.lr_scheduler.LambdaLR(self._optimizer, factor)

    def run(
        self,
        batches: Callable[[int], Iterable[Sequence[Example]]],
        *,
        evaluate: Callable[[], float] | None = None,
        patience: int | None = None,
        after_epoch: Callable[[], None] | None = None,
    ) -> None:
        """Train until all steps are done or the evaluation result stops falling."""
        while self.steps < self.total_steps and not self._is_exhausted(patience):
            epoch = len(self.losses)
            mean_loss = self._run_epoch(batches(epoch))
            result = evaluate() if evaluate else None
            earlier = [value for _, value in self.losses if value is not None]
            self.losses.append((mean_loss, result))
            if result is None:
                self.best_epoch = len(self.losses)
            elif not earlier or result < min(earlier):
                self.best_epoch, self.best_weights = len(self.losses), self.copy_weights()
            if after_epoch:
                after_epoch()

    def load_best_weights(self) -> None:
        """Give the parameters the values of `best_weights`."""
        for name, parameter in self.parameters.items():
            parameter.data.copy_(self.best_weights[name])

    def mean_loss(self, examples: Sequence[Example]) -> float:
        """The weighted mean loss of examples, in evaluation mode."""
        self.module.eval()
        total = 0.0
        size = max(1, self.config.batch_size // self._least_parts)
        with torch.no_grad():
            for start in range(0, len(examples), size):
                part = examples[start : start + size]
                total += float(self._loss(part)) * self._weight_of(part)
        return total / self._weight_of(examples)

    def _is_exhausted(self, patience: int | None) -> bool:
        is_evaluated = bool(self.losses) and self.losses[-1][1] is not None
        return patience is not None and is_evaluated and len(self.losses) - self.best_epoch >= patience

    def copy_weights(self) -> dict[str, torch.Tensor]:
        """Return the present weights, in fp32 on the CPU."""
        return {name: p.detach().to("cpu", torch.float32, copy=True) for name, p in self.parameters.items()}

    def _run_epoch(self, batches: Iterable[Sequence[Example]]) -> float:
        self.module.train()
        losses = []
        for batch in islice(batches, min(self.steps_per_epoch, self.total_steps - self.steps)):
            losses.append(self._step(list(batch)))
            self.steps += 1
            if self.progress is not None:
                self.progress(self.steps, self.total_steps, losses[-1])
        return math.fsum(losses) / len(losses)

    def _step(self, batch: list[Example]) -> float:
        """One optimizer step; returns its loss."""
        loss = self._backward(batch)
        if not math.isfinite(loss):
            is_fp16 = self.dtype is torch.float16
            remedy = "use precision fp32" if is_fp16 else "use a lower learning_rate"
            raise EntaugError("the loss is not a finite number", remedy=remedy)
        self._scaler.unscale_(self._optimizer)
        torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), self.config.max_grad_norm)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss

    def _backward(self, batch: list[Example]) -> float:
        """Compute the gradients of a batch, in as many parts as memory needs; returns the loss."""
        batch_weight = self._weight_of(batch)
        while True:
            total = 0.0
            size = -(-len(batch) // max(self._least_parts, self.num_parts(batch)))
            try:
                for start in range(0, len(batch), size):
                    part = batch[start : start + size]
                    loss = self._loss(part) * (self._weight_of(part) / batch_weight)
                    self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                    total += float(loss.detach())
            except (RuntimeError, MemoryError) as error:
                self._optimizer.zero_grad(set_to_none=True)
                release_memory(error, size, "training example", "use a smaller model, adapters, or another device")
                self._least_parts = 2 * -(-len(batch) // size)
            else:
                return total

    def _loss(self, examples: Sequence[Example]) -> torch.Tensor:
        with torch.autocast(self._device.type, dtype=self.dtype, enabled=self.dtype is not torch.float32):
            return self.compute_loss(examples).float()

    def _weight_of(self, examples: Sequence[Example]) -> float:
        return sum(map(self.weight, examples))

    # ----------------------------------------------------------------------------------------------------- checkpoints

    def save_state(self, folder: Path, key: str) -> None:
        """Write a checkpoint, which replaces the one before; its name has the checksum."""
        folder.mkdir(parents=True, exist_ok=True)
        earlier = list(folder.glob(_STATES))
        state = {
            "key": key,
            "losses": self.losses,
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
            "weights": {name: parameter.detach() for name, parameter in self.parameters.items()},
            **{name: part.state_dict() for name, part in self._stateful().items()},
        }
        temporary = folder / "state.new"
        torch.save(state, temporary)
        temporary.replace(folder / _STATES.replace("*", file_digest(temporary)))
        for file in earlier:
            file.unlink()

    def load_state(self, folder: Path, key: str) -> None:
        """Continue from a checkpoint, if there is one of the same key that is as it was written."""
        for file in folder.glob(_STATES):
            if file.name != _STATES.replace("*", file_digest(file)):
                continue
            state = torch.load(file, map_location=self._device, weights_only=True)
            if state["key"] != key:
                continue
            for name, parameter in self.parameters.items():
                parameter.data.copy_(state["weights"][name])
            self.losses, self.best_epoch = state["losses"], state["best_epoch"]
            self.best_weights = {name: tensor.cpu() for name, tensor in state["best_weights"].items()}
            self.steps = len(self.losses) * self.steps_per_epoch
            for name, part in self._stateful().items():
                part.load_state_dict(state[name])

    def _stateful(self) -> dict[str, Any]:
        """The parts that have a state, besides the weights."""
        return {"optimizer": self._optimizer, "schedule": self._schedule, "scaler": self._scaler}


def _length(row: Row) -> int:
    return len(row[0])


def _num_predicted(row: Row) -> int:
    return sum(label != IGNORED for label in row[1])


# -------------------------------------------------------------------------------------------------- trained models


class TrainableModel(abc.ABC):
    """Base of models that keep what they were trained to apart from what they started from."""

    saved: ClassVar[Sequence[str]]
    """The attributes that belong to the weights, and are saved with them as JSON."""

    def __init__(self) -> None:
        self.losses: list[tuple[float, float | None]] = []
        self.best_epoch: int | None = None
        self._weights: dict[str, Any] = {}

    # --------------------------------------------------------------------------------------------------- for subclasses

    @property
    @abc.abstractmethod
    def _origin(self) -> str:
        """The name of the model that the training starts from."""

    @abc.abstractmethod
    def _use_weights(self) -> None:
        """Predict with the trained weights from now on; raises InputError or RuntimeError where they do not fit."""

    @abc.abstractmethod
    def _fits(self, row: Row) -> bool:
        """Whether the model can take a row."""

    @abc.abstractmethod
    def _loss(self, rows: Sequence[Row]) -> Any:
        """The mean loss over the predicted tokens of some rows, a scalar tensor."""

    # -------------------------------------------------------------------------------------------------------- training

    def _fine_tune(
        self,
        module: torch.nn.Module,
        rows: Callable[[int], Sequence[Row]],
        config: TrainingConfig,
        *,
        learning_rate: float,
        dtype: torch.dtype,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> None:
        """Fine-tune the parameters of a module that require a gradient, and keep the weights."""
        first_rows = rows(0)
        usable = [i for i, row in enumerate(first_rows) if self._fits(row)]
        if not usable:
            remedy = "use shorter sentences, or another model"
            raise InputError("no training example fits into the model", remedy=remedy)
        shuffled = list(usable)
        Random(f"held out {config.seed}").shuffle(shuffled)
        num_held_out = round(len(shuffled) * config.validation_fraction)
        held_out, used = sorted(shuffled[:num_held_out]), sorted(shuffled[num_held_out:])
        validation = sorted((first_rows[i] for i in held_out), key=_length)

        def optimizer_options(name: str, parameter: torch.nn.Parameter) -> tuple[float, float]:
            if _NEW_TOKENS in name:
                return _NEW_TOKENS_FACTOR * learning_rate, 0.0
            return learning_rate, config.weight_decay if parameter.ndim > 1 else 0.0

        def num_parts(batch: Sequence[Row]) -> int:
            rows = max(1, _MAX_CPU_TOKENS // max(map(_length, batch)))
            return 1 if device.type != "cpu" else -(-len(batch) // rows)

        def batches(epoch: int) -> Iterator[list[Row]]:
            drawn = rows(epoch) if epoch else first_rows
            # A row drawn anew may be too long; then the one of the first epoch takes its place.
            now = [drawn[i] if self._fits(drawn[i]) else first_rows[i] for i in used]
            torch.manual_seed((config.seed * 1009 + epoch) % 2**63)
            rng = Random(f"batches {config.seed} {epoch}")
            for batch in shuffled_batches(list(map(_length, now)), config.batch_size, rng):
                yield [now[i] for i in batch]

        parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        device = next(iter(parameters.values())).device
        loop = TrainingLoop(
            module,
            parameters,
            config,
            optimizer_options=optimizer_options,
            compute_loss=self._loss,
            num_examples=len(used),
            dtype=dtype,
            weight=_num_predicted,
            num_parts=num_parts,
            progress=progress,
        )
        key = hashlib.sha256(repr((first_rows, config, learning_rate, dtype, sorted(parameters))).encode()).hexdigest()
        if checkpoint_dir is not None:
            loop.load_state(checkpoint_dir, key)
        with isolated_random_state(device):
            loop.run(
                batches,
                evaluate=(lambda: loop.mean_loss(validation)) if validation else None,
                patience=config.patience,
                after_epoch=(lambda: loop.save_state(checkpoint_dir, key)) if checkpoint_dir is not None else None,
            )
        self._weights = loop.best_weights or loop.copy_weights()
        self.losses, self.best_epoch = loop.losses, loop.best_epoch

    # ----------------------------------------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path) -> None:
        if not self._weights:
            raise ParameterError("the model is not trained", remedy="fit it")
        config = {"model": self._origin, "losses": self.losses, "best_epoch": self.best_epoch}
        config |= {name: getattr(self, name) for name in self.saved}
        with atomic_folder(Path(folder)) as new:
            save_file({name: tensor.contiguous() for name, tensor in self._weights.items()}, new / _WEIGHTS)
            config[_SUM] = _checksum(config, new / _WEIGHTS)
            (new / _CONFIG).write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def restore(self, folder: str | Path) -> Self:
        restored = copy.copy(self)
        restored._read(Path(folder))  # noqa: SLF001 (its own)
        return restored

    def _read(self, folder: Path) -> None:
        remedy = "name a folder that it was saved to, or train it again"
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            if config["model"] != self._origin:
                message = f"was trained from {config['model']}, and this is {self._origin}"
                raise InputError(message, path=str(folder), remedy="name another folder")
            if config.pop(_SUM) != _checksum(config, folder / _WEIGHTS):
                raise InputError("has changed since it was saved", path=str(folder), remedy="fine-tune it again")
            self.losses = [(loss, validation_loss) for loss, validation_loss in config["losses"]]
            self.best_epoch = config["best_epoch"]
            for name in self.saved:
                setattr(self, name, config[name])
            self._weights = load_file(folder / _WEIGHTS)
            self._use_weights()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
            raise InputError(f"holds no trained model ({one_line(error)})", path=str(folder), remedy=remedy) from None


def _checksum(config: Mapping[str, Any], weights: Path) -> str:
    """The checksum of a configuration and the file of its weights."""
    return hashlib.sha256(f"{json.dumps(config, sort_keys=True)} {file_digest(weights)}".encode()).hexdigest()


class FineTunable(TrainableModel, TorchBackend, Generic[Example]):
    """Base of the backends on transformers that can be fine-tuned."""

    saved = ("adapters", "new_tokens", "untrained_ids", "max_target_length")
    task: str | None = None  # the name that peft has for it

    def __init__(self, name: str | Path, *, adapters: bool | None = None, **options: Any) -> None:
        TrainableModel.__init__(self)
        TorchBackend.__init__(self, name, **options)
        self.adapters = self.device.type == "cpu" if adapters is None else adapters
        self.new_tokens: dict[str, str] = {}
        self.untrained_ids: list[int] = []  # parts of the words of new tokens that no training text has
        self.max_target_length: int | None = None

    @property
    def _origin(self) -> str:
        return self.name.rpartition("/")[0]

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abc.abstractmethod
    def _row(self, example: Example) -> Row:
        """Convert a training example."""

    def _collate(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The keyword arguments of the model for some rows."""
        ids, mask = self.pad([row_ids for row_ids, _ in rows], max(len(row_ids) for row_ids, _ in rows))
        width = max(len(labels) for _, labels in rows)
        labels = [[*row_labels, *[IGNORED] * (width - len(row_labels))] for _, row_labels in rows]
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(labels, device=ids.device)}

    def _loss(self, rows: Sequence[Row]) -> Any:
        return self.model(**self._collate(rows)).loss

    def _finish(self, model: Any) -> Any:
        """Prepare a model for prediction."""
        return model

    # -------------------------------------------------------------------------------------------------------- training

    def fit(
        self,
        examples: Sequence[Example] | Callable[[int], Sequence[Example]],
        config: TrainingConfig = TrainingConfig(),  # noqa: B008 (immutable)
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> Self:
        self = copy.copy(self)  # noqa: PLW0642
        if config.adapters is not None:
            self.adapters = config.adapters
        self.tokenizer = self._load_tokenizer()
        self.new_tokens = dict(new_tokens or {})
        self.model = self._trainable_model(self.dtype if self.adapters else torch.float32)
        unfuse_attention(self.model, self.device)

        def rows(epoch: int) -> list[Row]:
            converted = [self._row(example) for example in (examples(epoch) if callable(examples) else examples)]
            if not epoch:
                lengths = (sum(label != IGNORED for label in labels) for _, labels in converted)
                self.max_target_length = max(lengths, default=None)
                words = sorted({word for text in self.new_tokens.values() for word in text.split()})
                parts = {id_ for row in self.encode([*words, *(f" {word}" for word in words)]) for id_ in row}
                self.untrained_ids = sorted(parts.difference(*(ids for row in converted for ids in row)))
            return converted

        self._fine_tune(
            self.model,
            rows,
            config,
            learning_rate=config.learning_rate or (5e-4 if self.adapters else 5e-5),
            dtype=self.dtype,
            checkpoint_dir=checkpoint_dir,
            progress=progress,
        )
        self.model = None  # its weights are kept; two models at once would be the peak of memory
        trim_heap()
        self._use_weights()
        return self

    def _trainable_model(self, dtype: Any) -> Any:
        """The pretrained model with the new tokens, and with adapters if these are trained."""
        model = load_model(self.auto, self.folder, dtype=dtype)
        vocabulary_size = len(self.tokenizer)
        initial_ids = {token: self.encode([f" {words}"])[0] for token, words in self.new_tokens.items()}
        added = [t for t in self.new_tokens if not (t == MASK and self.tokenizer.mask_token_id is not None)]
        added_token = transformers.AddedToken
        self.tokenizer.add_tokens([added_token(t, lstrip=True, normalized=False, special=False) for t in added])
        table = model.get_input_embeddings()
        if len(self.tokenizer) > table.weight.shape[0]:
            with quiet():
                model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            table = model.get_input_embeddings()
        output_layer = model.get_output_embeddings()
        weights = [table.weight] if output_layer is None else [table.weight, output_layer.weight]
        with torch.no_grad():
            for weight in {id(weight): weight for weight in weights}.values():
                for token in added:
                    if initial_ids[token]:
                        weight[self.tokenizer.convert_tokens_to_ids(token)] = weight[initial_ids[token]].mean(0)
        if self.adapters:
            import peft

            config = peft.LoraConfig(
                r=_ADAPTER_RANK,
                lora_alpha=2 * _ADAPTER_RANK,
                target_modules="all-linear",
                trainable_token_indices=list(range(vocabulary_size, len(self.tokenizer))) or None,
                task_type=self.task,
            )
            # The initial weights of adapters are random, with a seed of their own.
            with quiet(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                model = peft.get_peft_model(model, config)
            module: Any
            for module in model.modules():
                if hasattr(module, "cast_input_dtype_enabled"):
                    module.cast_input_dtype_enabled = False  # autocast casts them; copies in fp32 take memory
        return model.to(self.device)

    def _use_weights(self) -> None:
        self.tokenizer = self._load_tokenizer()
        model = self._trainable_model(torch.float32)
        parameters = dict(model.named_parameters())
        for name, tensor in self._weights.items():
            if name not in parameters or parameters[name].shape != tensor.shape:
                raise InputError(f"the weights do not fit the model ({name})", remedy="train it again")
            parameters[name].data.copy_(tensor)
        if self.adapters:
            model = model.merge_and_unload()
        self.model = self._finish(model.to(self.dtype).eval())
        self.model.requires_grad_(requires_grad=False)
        trim_heap()

    def _ids(self, text: str) -> list[int]:
        """The token ids of a text, in which each of the new tokens is one token."""
        if not self.new_tokens:
            return self.encode([text])[0]
        ids: list[int] = []
        for part in re.split("|".join(f"( *{re.escape(token)})" for token in self.new_tokens), text):
            if part is None or not part:
                continue
            token = part.lstrip(" ")
            if token in self.new_tokens:
                mask_id = self.tokenizer.mask_token_id if token == MASK else None
                ids.append(int(self.tokenizer.convert_tokens_to_ids(token)) if mask_id is None else mask_id)
            else:
                ids += self.encode([part])[0]
        return ids
