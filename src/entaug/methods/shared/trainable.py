"""Base class of methods that train a model on the training sentences."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Interval

from entaug.backends.config import TrainingConfig
from entaug.config.params import PositiveInt
from entaug.config.presets import ONLY_IF_SET
from entaug.errors import InputError, OutputError
from entaug.files.locks import lock
from entaug.methods.base import Augmenter

__all__ = ["TrainableAugmenter"]

_KEY_FILE = "key.txt"

Model = TypeVar("Model", bound=Any)
LearningRate = Annotated[float, Interval(gt=0, lt=1)]


@dataclass(kw_only=True, eq=False)
class TrainableAugmenter(Augmenter):
    """Base class of methods that train a model.

    Args:
        epochs: the maximum number of epochs; training stops early when the loss on held-out training sentences no
            longer decreases.
        batch_size: the number of sentences per optimizer step.
        learning_rate: the peak learning rate; none for the default of the model.
        validation_fraction: the share of the training sentences that is held out to stop early and to keep the best
            epoch; 0 to train for all epochs on all sentences.
        patience: the number of epochs without a smaller loss on held-out sentences after which training stops.
        adapters: whether low-rank adapters are trained instead of the whole model; none for adapters on a CPU only.
        checkpoint_dir: a folder for the trained model. A model trained on the same sentences is loaded from it, and an
            interrupted training continues; none to train each time.
    """

    epochs: PositiveInt | None = None
    batch_size: PositiveInt | None = None
    learning_rate: LearningRate | None = None
    validation_fraction: Annotated[float, Interval(ge=0, lt=1)] = field(default=0.1, metadata=ONLY_IF_SET)
    patience: PositiveInt = field(default=2, metadata=ONLY_IF_SET)
    adapters: bool | None = field(default=None, metadata=ONLY_IF_SET)
    checkpoint_dir: str | None = field(default=None, metadata={"local": True})
    max_attempts: PositiveInt = 4

    def _train(
        self, model: Model, data: Any, key: object, markers: Mapping[str, str] | None = None, **more: Any
    ) -> Model:
        """Train a model, or restore it from the checkpoint."""
        config = TrainingConfig(
            epochs=self.epochs or 1,
            batch_size=self.batch_size or 1,
            learning_rate=self.learning_rate,
            validation_fraction=self.validation_fraction,
            patience=self.patience,
            adapters=self.adapters,
            seed=self.seed,
        )
        options: dict[str, Any] = {"progress": self.progress, **more}
        if markers is not None:
            options["new_tokens"] = markers
        if self.checkpoint_dir is None:
            trained: Model = model.fit(data, config, **options)
            return trained
        return self._train_in_folder(Path(self.checkpoint_dir), model, data, config, key, options, more)

    def _train_in_folder(
        self,
        folder: Path,
        model: Model,
        data: Any,
        config: TrainingConfig,
        key: object,
        options: dict[str, Any],
        more: dict[str, Any],
    ) -> Model:
        """Train a model with checkpoints in a folder, or restore it from there."""
        adapters = getattr(model, "adapters", None) if self.adapters is None else self.adapters
        identity = (model.name, adapters, config, key, options.get("new_tokens"), *([more] if more else []))
        _claim(folder, hashlib.sha256(repr(identity).encode()).hexdigest())
        trained: Model
        with lock(folder):  # of several processes one trains, and the others load its model
            if (folder / "learned").exists():
                trained = model.restore(folder / "learned")
                shutil.rmtree(folder / "state", ignore_errors=True)  # of a training that was killed at its very end
                return trained
            trained = model.fit(data, config, checkpoint_dir=folder / "state", **options)
            trained.save(folder / "learned")
            shutil.rmtree(folder / "state", ignore_errors=True)
        return trained


def _claim(folder: Path, key: str) -> None:
    """Create a checkpoint folder, or check that it belongs to the same training."""
    key_file = folder / _KEY_FILE
    try:
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not key_file.exists())):
            raise OutputError("is not a checkpoint folder", path=str(folder), remedy="name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        is_begun = (folder / "learned").exists() or (folder / "state").exists()
        if is_begun and key_file.exists() and key_file.read_text().strip() != key:
            raise InputError(
                "contains a model that was trained on other sentences or with other parameters",
                path=str(folder),
                remedy="name a new folder",
            )
        key_file.write_text(key + "\n")
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot be used ({reason})", path=str(folder), remedy="name another folder") from None
