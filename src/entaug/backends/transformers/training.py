"""The training loop of generators, masked language models, the LSTM and taggers.

Generators and language models are fine-tuned by `fine_tune`, with early stopping on held-out examples and a checkpoint
after each epoch, from which an interrupted run resumes with the same result. One file because checkpoints are the state
of the loop.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from entaug.backends.config import BaseTrainingConfig, TrainingConfig, TrainingProgress
from entaug.backends.transformers.base import release_memory, shuffled_batches, torch
from entaug.errors import EntaugError, InputError
from entaug.files.atomic import atomic_folder

__all__ = [
    "IGNORED",
    "FineTuningResult",
    "Row",
    "TrainingLoop",
    "fine_tune",
    "isolated_random_state",
    "linear_decay",
    "read_weights",
    "save_weights",
]

IGNORED = -100
"""Label of positions that do not count for the loss."""

Row = tuple[list[int], list[int]]
"""Token ids of an input, and labels: token ids, or `IGNORED`."""

Example = TypeVar("Example")

# On a CPU more tokens of a language model at once are not faster, and what is kept for their backward pass is the peak
# of memory of a run.
_MAX_CPU_TOKENS = 512
_STATE = "state.safetensors"
_SUM = "sum"  # the key of the checksum in a configuration
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
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


class TrainingLoop(Generic[Example]):
    """Training by AdamW with warm-up and linear decay of the learning rate, clipped gradients and evaluations."""

    # A batch for which memory does not suffice is computed in parts, weighted so that the gradient stays the same.

    def __init__(
        self,
        module: torch.nn.Module,
        parameters: Mapping[str, torch.nn.Parameter],
        config: BaseTrainingConfig,
        *,
        optimizer_options: Callable[[str, torch.nn.Parameter], tuple[float, float]],
        compute_loss: Callable[[Sequence[Example]], torch.Tensor],
        num_examples: int,
        dtype: torch.dtype = torch.float32,
        weight: Callable[[Example], float] = lambda _: 1,
        learning_rate_factor: Callable[[int], float] | None = None,
        num_parts: Callable[[Sequence[Example]], int] = lambda _: 1,
        progress: TrainingProgress | None = None,
    ) -> None:
        self.parameters = dict(parameters)
        self.losses: list[tuple[float, float | None]] = []
        self.best_epoch = 0
        self.best_weights: dict[str, torch.Tensor] = {}
        self.steps = 0
        self.steps_per_epoch = config.steps_per_epoch(num_examples)
        self.total_steps = config.total_steps(num_examples)
        self._module = module
        self._config = config
        self._compute_loss = compute_loss
        self._weight = weight
        self._progress = progress
        self._dtype = dtype
        self._device = next(iter(self.parameters.values())).device
        self._num_parts = 1  # grows when memory runs out
        self._least_parts = num_parts
        groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
        for name, parameter in self.parameters.items():
            groups.setdefault(optimizer_options(name, parameter), []).append(parameter)
        self._optimizer = torch.optim.AdamW(
            [
                {"params": members, "lr": learning_rate, "weight_decay": decay}
                for (learning_rate, decay), members in groups.items()
            ],
            fused=True,
        )
        # The exponent range of fp16 is small: the loss is scaled so that small gradients do not underflow.
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=dtype is torch.float16)
        factor = learning_rate_factor or linear_decay(self.total_steps, config.num_warmup_steps(self.total_steps))
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
        self._module.eval()
        total = 0.0
        size = max(1, self._config.batch_size // self._num_parts)
        with torch.no_grad():
            for start in range(0, len(examples), size):
                part = examples[start : start + size]
                total += float(self._loss(part)) * self._total_weight(part)
        return total / self._total_weight(examples)

    def _is_exhausted(self, patience: int | None) -> bool:
        is_evaluated = bool(self.losses) and self.losses[-1][1] is not None
        return patience is not None and is_evaluated and len(self.losses) - self.best_epoch >= patience

    def copy_weights(self) -> dict[str, torch.Tensor]:
        """The present values of the parameters."""
        return {name: p.detach().to("cpu", torch.float32, copy=True) for name, p in self.parameters.items()}

    def _run_epoch(self, batches: Iterable[Sequence[Example]]) -> float:
        self._module.train()
        losses = []
        for batch in islice(batches, min(self.steps_per_epoch, self.total_steps - self.steps)):
            losses.append(self._step(list(batch)))
            self.steps += 1
            if self._progress is not None:
                self._progress(self.steps, self.total_steps, losses[-1])
        return math.fsum(losses) / len(losses)

    def _step(self, batch: list[Example]) -> float:
        """One optimizer step; returns its loss."""
        loss = self._backward(batch)
        if not math.isfinite(loss):
            is_fp16 = self._dtype is torch.float16
            remedy = "use precision fp32" if is_fp16 else "use a lower learning_rate"
            raise EntaugError("the loss is not a finite number", remedy=remedy)
        self._scaler.unscale_(self._optimizer)
        torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), self._config.max_grad_norm)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._schedule.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss

    def _backward(self, batch: list[Example]) -> float:
        """Compute the gradients of a batch, in as many parts as memory needs; returns the loss."""
        batch_weight = self._total_weight(batch)
        while True:
            total = 0.0
            size = -(-len(batch) // max(self._num_parts, self._least_parts(batch)))
            try:
                for start in range(0, len(batch), size):
                    part = batch[start : start + size]
                    loss = self._loss(part) * (self._total_weight(part) / batch_weight)
                    self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                    total += float(loss.detach())
            except (RuntimeError, MemoryError) as error:
                self._optimizer.zero_grad(set_to_none=True)
                release_memory(error, size, "training example", "use a smaller model, adapters, or another device")
                self._num_parts = 2 * -(-len(batch) // size)
            else:
                return total

    def _loss(self, examples: Sequence[Example]) -> torch.Tensor:
        with torch.autocast(self._device.type, dtype=self._dtype, enabled=self._dtype is not torch.float32):
            return self._compute_loss(examples).float()

    def _total_weight(self, examples: Sequence[Example]) -> float:
        return sum(map(self._weight, examples))

    # ----------------------------------------------------------------------------------------------------- checkpoints

    def save_state(self, folder: Path, key: str) -> None:
        """Write a checkpoint, which replaces the one before as a whole."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"best.{name}": tensor for name, tensor in self.best_weights.items()}
        for name, parameter in self.parameters.items():
            state = self._optimizer.state[parameter]
            tensors[f"now.{name}"] = parameter.detach().cpu()
            tensors |= {f"{moment}.{name}": state[moment].detach().cpu() for moment in _MOMENTS}
        metadata = {
            "key": key,
            "losses": json.dumps(self.losses),
            "best_epoch": str(self.best_epoch),
            "schedule": json.dumps(self._schedule.state_dict()),
            "scaler": json.dumps(self._scaler.state_dict()),
        }
        metadata["sum"] = _checksum(tensors, metadata)
        temporary = folder / f"{_STATE}.new"
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata=metadata)
        temporary.replace(folder / _STATE)

    def load_state(self, folder: Path, key: str) -> None:
        """Continue from a checkpoint, if there is one of the same key that is as it was written."""
        try:
            with safe_open(folder / _STATE, "pt") as stream:
                metadata = stream.metadata() or {}
            if metadata.get("key") != key:
                return
            tensors = load_file(folder / _STATE)
        except (OSError, SafetensorError):
            return
        if metadata.pop("sum", None) != _checksum(tensors, metadata):
            return
        for name, parameter in self.parameters.items():
            parameter.data.copy_(tensors[f"now.{name}"])
            self._optimizer.state[parameter] = {
                moment: tensors[f"{moment}.{name}"].to(parameter.device) for moment in _MOMENTS
            }
        self.losses = [(loss, result) for loss, result in json.loads(metadata["losses"])]
        self.steps = len(self.losses) * self.steps_per_epoch
        self.best_epoch = int(metadata["best_epoch"])
        best = {name: tensors.get(f"best.{name}") for name in self.parameters}
        self.best_weights = {name: tensor for name, tensor in best.items() if tensor is not None}
        self._schedule.load_state_dict(json.loads(metadata["schedule"]))
        if state := json.loads(metadata.get("scaler", "{}")):  # empty where another precision trained
            self._scaler.load_state_dict(state)
        for group, learning_rate in zip(self._optimizer.param_groups, self._schedule.get_last_lr(), strict=True):
            group["lr"] = learning_rate


class FineTuningResult(NamedTuple):
    """The result of a fine-tuning."""

    weights: dict[str, torch.Tensor]
    losses: list[tuple[float, float | None]]
    best_epoch: int
    num_skipped: int


def fine_tune(
    model: torch.nn.Module,
    rows: Callable[[int], Sequence[Row]],
    *,
    fits: Callable[[Row], bool],
    compute_loss: Callable[[Sequence[Row]], torch.Tensor],
    config: TrainingConfig,
    learning_rate: float,
    dtype: torch.dtype,
    checkpoint_dir: Path | None = None,
    progress: TrainingProgress | None = None,
) -> FineTuningResult:
    """Fine-tune the parameters of a model that require a gradient."""
    first_rows = rows(0)
    usable = [i for i, row in enumerate(first_rows) if fits(row)]
    if not usable:
        raise InputError("no training example fits into the model", remedy="use shorter sentences, or another model")
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

    def epoch_rows(epoch: int) -> list[Row]:
        now = rows(epoch) if epoch else first_rows
        # A row drawn anew may be too long; then the one of the first epoch takes its place.
        return [now[i] if fits(now[i]) else first_rows[i] for i in used]

    def batches(epoch: int) -> Iterator[list[Row]]:
        now = epoch_rows(epoch)
        torch.manual_seed((config.seed * 1009 + epoch) % 2**63)
        rng = Random(f"batches {config.seed} {epoch}")
        for batch in shuffled_batches(list(map(_length, now)), config.batch_size, rng):
            yield [now[i] for i in batch]

    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    device = next(iter(parameters.values())).device
    loop = TrainingLoop(
        model,
        parameters,
        config,
        optimizer_options=optimizer_options,
        compute_loss=compute_loss,
        num_examples=len(used),
        dtype=dtype,
        weight=_num_predicted,
        num_parts=num_parts,
        progress=progress,
    )
    key = hashlib.sha256(repr((first_rows, config, learning_rate, sorted(loop.parameters))).encode()).hexdigest()
    if checkpoint_dir is not None:
        loop.load_state(checkpoint_dir, key)
    with isolated_random_state(device):
        loop.run(
            batches,
            evaluate=(lambda: loop.mean_loss(validation)) if validation else None,
            patience=config.patience,
            after_epoch=(lambda: loop.save_state(checkpoint_dir, key)) if checkpoint_dir is not None else None,
        )
    weights = loop.best_weights or loop.copy_weights()  # without held-out examples, those of the end
    return FineTuningResult(weights, loop.losses, loop.best_epoch, len(first_rows) - len(usable))


def _length(row: Row) -> int:
    return len(row[0])


def _num_predicted(row: Row) -> int:
    return sum(label != IGNORED for label in row[1])


def _checksum(tensors: Mapping[str, torch.Tensor], notes: Mapping[str, Any]) -> str:
    """The checksum of tensors and of what is saved with them."""
    total = hashlib.sha256(json.dumps(notes, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {tensor.dtype} {list(tensor.shape)} ".encode())
        total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def read_weights(path: Path, config: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Read weights that `save_weights` wrote."""
    remedy = "fine-tune it again"
    try:
        weights: dict[str, torch.Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot be read ({error})", path=str(path), remedy=remedy) from None
    notes = {name: value for name, value in config.items() if name != _SUM}
    if _SUM in config and config[_SUM] != _checksum(weights, notes):
        raise InputError("has changed since it was saved", path=str(path.parent), remedy=remedy)
    return weights


def save_weights(
    folder: Path, weights_name: str, weights: Mapping[str, torch.Tensor], config_name: str, config: Mapping[str, Any]
) -> None:
    """Write trained weights and what is needed to read them into a folder, which appears only once it is complete."""
    with atomic_folder(folder) as new:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, new / weights_name)
        notes = json.loads(json.dumps(config))  # as it will be read
        text = json.dumps({**notes, _SUM: _checksum(weights, notes)}, ensure_ascii=False, indent=1)
        (new / config_name).write_text(text + "\n", encoding="utf-8")
