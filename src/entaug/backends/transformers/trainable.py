"""Models that are trained on a corpus, saved and restored; models of transformers wholly or by low-rank adapters."""

from __future__ import annotations

import abc
import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from entaug.backends.compute import trim_heap
from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.transformers.base import TorchBackend, load_model, quiet, torch, transformers
from entaug.backends.transformers.training import IGNORED, FineTuningResult, Row, fine_tune, read_weights, save_weights
from entaug.errors import InputError, ParameterError

__all__ = ["MASK", "FineTunable", "TrainableModel"]

MASK = "<mask>"
_CONFIG, _WEIGHTS = "learned.json", "learned.safetensors"
_ADAPTER_RANK = 16

Example = TypeVar("Example")


class TrainableModel(abc.ABC):
    """Base of models that keep what they were trained to apart from what they started from."""

    def __init__(self) -> None:
        self.losses: list[tuple[float, float | None]] = []
        self.best_epoch: int | None = None
        self._weights: dict[str, Any] = {}

    @abc.abstractmethod
    def _config(self) -> dict[str, Any]:
        """The configuration stored beside the weights, as JSON."""

    @abc.abstractmethod
    def _read_config(self, config: Mapping[str, Any]) -> None:
        """Read what belongs to the weights; raises InputError where they are of another model."""

    @abc.abstractmethod
    def _use_weights(self) -> None:
        """Predict with the trained weights from now on; raises InputError or RuntimeError where they do not fit."""

    def _use_result(self, result: FineTuningResult) -> None:
        self._weights, self.losses, self.best_epoch = result.weights, result.losses, result.best_epoch
        self._use_weights()

    def save(self, folder: str | Path) -> None:
        """See `entaug.backends.protocols.Generator.save`."""
        if not self._weights:
            raise ParameterError("the model is not trained", remedy="fit it")
        config = {**self._config(), "losses": self.losses, "best_epoch": self.best_epoch}
        save_weights(Path(folder), _WEIGHTS, self._weights, _CONFIG, config)

    def restore(self, folder: str | Path) -> Self:
        """See `entaug.backends.protocols.Generator.restore`."""
        restored = copy.copy(self)
        restored._read(Path(folder))  # noqa: SLF001 (its own)
        return restored

    def _read(self, folder: Path) -> None:
        remedy = "name a folder that it was saved to, or train it again"
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            self._read_config(config)
            self.losses = [(loss, validation_loss) for loss, validation_loss in config["losses"]]
            self.best_epoch = int(config["best_epoch"])
            self._weights = read_weights(folder / _WEIGHTS, config)
            self._use_weights()
        except InputError as error:
            error.path = error.path or str(folder)
            raise
        except RuntimeError:
            raise InputError("the weights do not fit the model", path=str(folder), remedy=remedy) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"holds no trained model ({error})", path=str(folder), remedy=remedy) from None


class FineTunable(TrainableModel, TorchBackend, Generic[Example]):
    """Base of the backends on transformers that can be fine-tuned."""

    task: str | None = None  # the name that peft has for it

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | None = None,
        precision: str | None = None,
        budget: int | None = None,
        adapters: bool | None = None,
    ) -> None:
        TrainableModel.__init__(self)
        TorchBackend.__init__(self, name, device=device, precision=precision, budget=budget)
        self.adapters = self.device.type == "cpu" if adapters is None else adapters
        self.new_tokens: dict[str, str] = {}
        self.num_skipped = 0
        self.max_target_length: int | None = None

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abc.abstractmethod
    def _row(self, example: Example) -> Row:
        """Convert a training example."""

    @abc.abstractmethod
    def _fits(self, row: Row) -> bool:
        """Whether the model can take a row."""

    def _collate(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The keyword arguments of the model for some rows."""
        ids, mask = self.pad([row_ids for row_ids, _ in rows], max(len(row_ids) for row_ids, _ in rows))
        width = max(len(labels) for _, labels in rows)
        labels = [[*row_labels, *[IGNORED] * (width - len(row_labels))] for _, row_labels in rows]
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(labels, device=ids.device)}

    def _loss(self, rows: Sequence[Row]) -> Any:
        """The mean loss over the predicted tokens of some rows, a scalar tensor."""
        return self.model(**self._collate(rows)).loss

    def _finish(self, model: Any) -> Any:
        """Prepare a model for prediction."""
        return model

    # -------------------------------------------------------------------------------------------------------- training

    def _fit(
        self,
        examples: Callable[[int], Sequence[Example]],
        config: TrainingConfig,
        new_tokens: Mapping[str, str] | None,
        checkpoint_dir: Path | None,
        progress: TrainingProgress | None,
    ) -> Self:
        """A fine-tuned copy of the model."""
        trained = copy.copy(self)
        if config.adapters is not None:
            trained.adapters = config.adapters
        trained._train(examples, config, dict(new_tokens or {}), checkpoint_dir, progress)  # noqa: SLF001
        return trained

    def _train(
        self,
        examples: Callable[[int], Sequence[Example]],
        config: TrainingConfig,
        new_tokens: dict[str, str],
        checkpoint_dir: Path | None,
        progress: TrainingProgress | None,
    ) -> None:
        self.tokenizer = self._load_tokenizer()
        self.new_tokens = new_tokens
        self.model = self._trainable_model(self.dtype if self.adapters else torch.float32)

        def rows(epoch: int) -> list[Row]:
            converted = [self._row(example) for example in examples(epoch)]
            if not epoch:
                lengths = (sum(label != IGNORED for label in labels) for _, labels in converted)
                self.max_target_length = max(lengths, default=None)
            return converted

        result = fine_tune(
            self.model,
            rows,
            fits=self._fits,
            compute_loss=self._loss,
            config=config,
            learning_rate=config.learning_rate or (5e-4 if self.adapters else 5e-5),
            dtype=self.dtype,
            checkpoint_dir=checkpoint_dir,
            progress=progress,
        )
        self.num_skipped = result.num_skipped
        self.model = None  # its weights are in the result; two models at once would be the peak of memory
        trim_heap()
        self._use_result(result)

    def _trainable_model(self, dtype: Any) -> Any:
        """The pretrained model with the new tokens, and with adapters if these are trained."""
        model = load_model(self.auto, self.folder, dtype=dtype, **self._gguf_options)
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

    # ----------------------------------------------------------------------------------------------- saving and loading

    def _config(self) -> dict[str, Any]:
        return {
            "model": self.name.rpartition("/")[0],
            "adapters": self.adapters,
            "new_tokens": self.new_tokens,
            "max_target_length": self.max_target_length,
        }

    def _read_config(self, config: Mapping[str, Any]) -> None:
        own_name = self.name.rpartition("/")[0]
        self.new_tokens = {str(token): str(words) for token, words in config["new_tokens"].items()}
        self.adapters = bool(config["adapters"])
        self.max_target_length = int(config["max_target_length"])
        if config["model"] != own_name:
            raise InputError(
                f"was trained from {config['model']}, and this is {own_name}", remedy="name another folder"
            )
