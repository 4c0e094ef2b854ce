"""The loop by which generators learn: early stopping on pairs held out, and going on where an interruption left it."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from entaug.backends.protocols import TrainingConfig
from entaug.backends.transformers.base import batches, is_out_of_memory, torch, transformers
from entaug.errors import EntaugError, InputError, OutputError, ParameterError

__all__ = ["Outcome", "Row", "learn", "read_learned", "write_learned"]

Row = tuple[list[int], list[int]]
"""Sub-words of an input, and what the model is to say; -100 where nothing is asked."""

_STATE = "state.safetensors"
_IGNORED = -100


class Outcome(NamedTuple):
    """What a fine-tuning came to.

    Args:
        learned: the weights that learned, by name.
        losses: of each epoch: the mean loss of a sub-word, and the same on the pairs held out, if there are any.
        kept: the epoch that these weights are of, from 1.
        left_out: pairs that the model cannot take.
    """

    learned: dict[str, torch.Tensor]
    losses: list[tuple[float, float | None]]
    kept: int
    left_out: int


def learn(
    model: Any,
    rows: Callable[[int], Sequence[Row]],
    fits: Callable[[list[int], list[int]], bool],
    batch: Callable[[Sequence[Row]], dict[str, Any]],
    tuning: TrainingConfig,
    learning_rate: float,
    dtype: Any,
    folder: Path | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> Outcome:
    """Fine-tune a model.

    Args:
        model: of transformers, with a loss of its own; what does not require a gradient stays as it is.
        rows: the rows of an epoch, always as many.
        fits: whether the model can take a row.
        batch_size: what the model is called with for some rows.
        tuning: how.
        learning_rate: learning learning_rate at its highest.
        dtype: what to compute in.
        folder: where the state is kept after each epoch, and looked for at the beginning.
        progress: told of each step.

    Raises:
        InputError: the model can take none of the rows.
        ParameterError: a value of `tuning` that cannot be.
        EntaugError: not even memory for one row; or the loss is no number any more.
    """
    _check(tuning, learning_rate)
    first = rows(0)
    usable = [i for i, row in enumerate(first) if fits(*row)]
    if not usable:
        raise InputError(
            "nothing to learn from that the model can take", remedy="use shorter sentences, or another model"
        )
    order = list(usable)
    Random(f"held out {tuning.seed}").shuffle(order)
    count = round(len(order) * tuning.held_out)
    held, used = sorted(order[:count]), sorted(order[count:])
    run = _Run(model, batch, tuning, learning_rate, dtype, math.ceil(len(used) / tuning.batch_size))
    key = hashlib.sha256(repr((first, tuning, learning_rate, sorted(run.learning))).encode()).hexdigest()
    if folder is not None:
        run.go_on(folder, key)
    watched = [first[i] for i in held]
    while not run.done:
        epoch = len(run.losses)
        now = first if not epoch else rows(epoch)
        # A row drawn anew may be longer than it was; then it is the first one once more.
        chosen = [now[i] if fits(*now[i]) else first[i] for i in used]
        run.epoch(chosen, watched, progress)
        if folder is not None:
            run.keep(folder, key)
    return Outcome(run.best, run.losses, run.kept, len(first) - len(usable))


_FRESH, _FASTER = "trainable_tokens", 10.0  # what peft calls the rows of new tokens, and how much faster they learn


class _Run:
    """A fine-tuning on its way."""

    def __init__(
        self, model: Any, batch: Any, tuning: TrainingConfig, learning_rate: float, dtype: Any, per_epoch: int
    ) -> None:
        self._model = model
        self._batch = batch
        self._tuning = tuning
        self._per_epoch = per_epoch
        self.learning = {name: p for name, p in model.named_parameters() if p.requires_grad}
        # What new tokens mean begins at the words of their labels, and is to leave them within some tens of steps.
        fresh = [name for name in self.learning if _FRESH in name]
        decays = [p for name, p in self.learning.items() if p.ndim > 1 and name not in fresh]
        rest = [p for p in self.learning.values() if p.ndim <= 1]
        groups = [
            {"params": decays, "weight_decay": tuning.weight_decay},
            {"params": rest, "weight_decay": 0.0},
            {"params": [self.learning[name] for name in fresh], "weight_decay": 0.0, "lr": _FASTER * learning_rate},
        ]
        self._optimiser = torch.optim.AdamW([g for g in groups if g["params"]], lr=learning_rate, fused=True)
        self._total = per_epoch * tuning.epochs
        rise = math.ceil(self._total * tuning.warmup_ratio)
        scheduled: Any = transformers.get_linear_schedule_with_warmup
        self._schedule = scheduled(self._optimiser, rise, self._total)
        self._parts = 1  # a step is computed in so many parts, more where memory is short
        self._place = next(iter(self.learning.values())).device
        self._dtype = dtype
        self.losses: list[tuple[float, float | None]] = []
        self.best: dict[str, torch.Tensor] = {}
        self.kept = 0

    @property
    def done(self) -> bool:
        """Whether all epochs are done, or no epoch was better for long enough."""
        epochs = len(self.losses)
        return epochs >= self._tuning.epochs or (
            epochs > 0 and self.losses[-1][1] is not None and epochs - self.kept >= self._tuning.patience
        )

    def epoch(self, rows: Sequence[Row], watched: Sequence[Row], progress: Any) -> None:
        """One pass, and a look at the pairs held out."""
        number = len(self.losses)
        devices = [self._place] if self._place.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed((self._tuning.seed * 1009 + number) % 2**63)
            rng = Random(f"batches {self._tuning.seed} {number}")
            self._model.train()
            losses = []
            lengths = [len(ids) for ids, _ in rows]
            for step, batch in enumerate(
                islice(batches(lengths, self._tuning.batch_size, rng), self._per_epoch), start=1
            ):
                losses.append(self._step([rows[i] for i in batch]))
                if progress is not None:
                    progress(number * self._per_epoch + step, self._total, losses[-1])
        mean = math.fsum(losses) / len(losses)
        outside = self._loss_of(watched) if watched else None
        before = [loss for _, loss in self.losses if loss is not None]
        self.losses.append((mean, outside))
        if outside is None or not before or outside < min(before):
            self.kept = len(self.losses)
            self.best = {name: p.detach().to("cpu", torch.float32, copy=True) for name, p in self.learning.items()}

    def _step(self, rows: list[Row]) -> float:
        """One step of the optimiser."""
        said = sum(_asked(row) for row in rows)
        while True:
            total = 0.0
            size = -(-len(rows) // self._parts)
            try:
                for start in range(0, len(rows), size):
                    part = rows[start : start + size]
                    loss = self._loss(part) * (sum(map(_asked, part)) / said)
                    loss.backward()
                    total += float(loss.detach())
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._optimiser.zero_grad(set_to_none=True)
                if size == 1:
                    raise EntaugError(
                        "out of memory for learning from a single pair",
                        remedy="use a smaller model, adapters, or another device",
                    ) from None
                self._parts *= 2
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
        if not math.isfinite(total):
            raise EntaugError("the loss is no number any more", remedy="use a lower learning_rate")
        torch.nn.utils.clip_grad_norm_(list(self.learning.values()), self._tuning.max_grad_norm)
        self._optimiser.step()
        self._schedule.step()
        self._optimiser.zero_grad(set_to_none=True)
        return total

    def _loss(self, rows: Sequence[Row]) -> Any:
        """Mean loss of the sub-words that were asked for."""
        with torch.autocast(self._place.type, dtype=self._dtype, enabled=self._dtype is not torch.float32):
            return self._model(**self._batch(rows)).loss.float()

    def _loss_of(self, rows: Sequence[Row]) -> float:
        self._model.eval()
        total = 0.0
        ordered = sorted(rows, key=lambda row: len(row[0]))
        size = max(1, self._tuning.batch_size // self._parts)
        with torch.no_grad():
            for start in range(0, len(ordered), size):
                part = ordered[start : start + size]
                total += float(self._loss(part)) * sum(map(_asked, part))
        return total / sum(map(_asked, rows))

    # ------------------------------------------------------------------------------------- interrupted and gone on with

    def keep(self, folder: Path, key: str) -> None:
        """Write the state, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"best.{name}": t for name, t in self.best.items()}
        for name, p in self.learning.items():
            tensors[f"now.{name}"] = p.detach().cpu()
            tensors |= {f"{what}.{name}": t.detach().cpu() for what, t in self._optimiser.state[p].items()}
        schedule = json.dumps(self._schedule.state_dict())
        told = {"key": key, "losses": json.dumps(self.losses), "kept": str(self.kept), "schedule": schedule}
        beside = folder / f"{_STATE}.new"
        save_file({name: t.contiguous() for name, t in tensors.items()}, beside, metadata=told)
        beside.replace(folder / _STATE)

    def go_on(self, folder: Path, key: str) -> None:
        """Read the state that an interrupted run of the same data and settings left, if there is any."""
        from safetensors import safe_open

        try:
            with safe_open(folder / _STATE, "pt") as stream:
                told = stream.metadata() or {}
            if told.get("key") != key:
                return
            tensors = load_file(folder / _STATE)
        except (OSError, SafetensorError):
            return
        for name, p in self.learning.items():
            p.data.copy_(tensors[f"now.{name}"])
            self._optimiser.state[p] = {
                what: tensors[f"{what}.{name}"].to(p.device) for what in ("step", "exp_avg", "exp_avg_sq")
            }
        self.losses = [(a, b) for a, b in json.loads(told["losses"])]
        self.kept = int(told["kept"])
        self.best = {name: tensors[f"best.{name}"] for name in self.learning}
        self._schedule.load_state_dict(json.loads(told["schedule"]))
        for group, now in zip(self._optimiser.param_groups, self._schedule.get_last_lr(), strict=True):
            group["lr"] = now


def read_learned(path: Path) -> dict[str, torch.Tensor]:
    """Weights that `write_learned` wrote.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot be read ({error})", path=str(path), remedy="fine-tune it again") from None


def write_learned(folder: Path, weights: str, learned: dict[str, torch.Tensor], config: str, text: str) -> None:
    """Write a folder of what was learned, which is there only once it is complete.

    Args:
        folder: not there yet, or empty.
        weights: the name of the file of the weights, of safetensors.
        learned: they, by name.
        config: the name of the file of what they belong to.
        text: what stands in that.

    Raises:
        OutputError: the folder holds something already, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError("is there already", path=str(folder), remedy="name a folder that is new or empty")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
            made = Path(beside, "learned")
            made.mkdir()
            save_file({name: tensor.contiguous() for name, tensor in learned.items()}, made / weights)
            (made / config).write_text(text + "\n", encoding="utf-8")
            if folder.exists():
                folder.rmdir()
            made.rename(folder)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot be written ({reason})", path=str(folder), remedy="name another folder") from None


def _asked(row: Row) -> int:
    return sum(id_ != _IGNORED for id_ in row[1])


def _check(tuning: TrainingConfig, learning_rate: float) -> None:
    for name, least in {"epochs": 1, "batch_size": 1, "patience": 1}.items():
        value = getattr(tuning, name)
        if type(value) is not int or value < least:
            raise ParameterError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if not isinstance(learning_rate, int | float) or not 0 < learning_rate < math.inf:
        raise ParameterError(f"learning_rate must be a number above 0, not {learning_rate!r}")
    if not 0 <= tuning.held_out < 1:
        raise ParameterError(f"held_out must be a share from 0 to less than 1, not {tuning.held_out!r}")
