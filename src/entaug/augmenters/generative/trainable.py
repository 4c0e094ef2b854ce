"""What methods share that have a model learn from the gold sentences before they use it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Interval

from entaug.augmenters.base import Augmenter
from entaug.backends.config import TrainingConfig
from entaug.errors import InputError, OutputError
from entaug.params import PositiveInt

__all__ = ["TrainableAugmenter"]

_KEY = "key.txt"

Model = TypeVar("Model", bound=Any)
LearningRate = Annotated[float, Interval(gt=0, lt=1)]


@dataclass(kw_only=True, eq=False)
class TrainableAugmenter(Augmenter):
    """Base of the methods whose model learns.

    Args:
        epochs: passes over the gold sentences at most; it stops before when those held out are not learned any better.
        batch_size: sentences of a step.
        learning_rate: learning rate at its highest; none for what suits the model.
        checkpoint_dir: a folder for the model that has learned. What was learned there from the same sentences is used again, and
            a learning that was interrupted goes on; none to learn each time.
    """

    epochs: PositiveInt | None = None
    batch_size: PositiveInt | None = None
    learning_rate: LearningRate | None = None
    checkpoint_dir: str | None = field(default=None, metadata={"local": True})
    max_attempts: PositiveInt = 4

    def _taught(self, model: Model, data: Any, told: object, markers: Mapping[str, str] | None = None) -> Model:
        """A model when it has learned.

        Args:
            model: what learns: it has `fit`, `save`, `restore` and `name`.
            data: what it learns.
            told: what that depends on besides the parameters: what is kept for other sentences is not used.
            markers: see `Generator.fit`; none for a model that takes none.
        """
        tuning = TrainingConfig(
            epochs=self.epochs or 1, batch_size=self.batch_size or 1, learning_rate=self.learning_rate, seed=self.seed
        )
        options: dict[str, Any] = {"progress": self.progress}
        if markers is not None:
            options["new_tokens"] = markers
        made: Model
        if self.checkpoint_dir is None:
            made = model.fit(data, tuning, **options)
            return made
        folder = Path(self.checkpoint_dir)
        how = getattr(model, "adapters", None)
        key = hashlib.sha256(repr((model.name, how, tuning, told, markers)).encode()).hexdigest()
        try:
            if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _KEY).exists())):
                raise OutputError("holds something else", path=str(folder), remedy="name a new folder")
            folder.mkdir(parents=True, exist_ok=True)
            begun = (folder / "learned").exists() or (folder / "state").exists()
            if begun and (folder / _KEY).exists() and (folder / _KEY).read_text().strip() != key:
                raise InputError(
                    "holds a model that learned from other sentences or in another way",
                    path=str(folder),
                    remedy="name a new folder",
                )
            (folder / _KEY).write_text(key + "\n")
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"cannot be used ({reason})", path=str(folder), remedy="name another folder") from None
        if (folder / "learned").exists():
            made = model.restore(folder / "learned")
            return made
        made = model.fit(data, tuning, checkpoint_dir=folder / "state", **options)
        made.save(folder / "learned")
        shutil.rmtree(folder / "state", ignore_errors=True)
        return made
