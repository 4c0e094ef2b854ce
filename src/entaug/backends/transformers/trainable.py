"""Models of transformers that learn from a corpus, whole or by low-rank adapters, and are saved and read again."""

from __future__ import annotations

import abc
import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from entaug.backends.config import TrainingConfig, TrainingProgress
from entaug.backends.transformers.base import TorchBackend, load, quiet, torch, transformers
from entaug.backends.transformers.training import IGNORED, Row, fine_tune, read_weights, save_weights
from entaug.errors import InputError, MissingExtraError, ParameterError

__all__ = ["IGNORED", "MASK", "Tunable", "peft_module"]

MASK = "<mask>"
_CONFIG, _LEARNED = "learned.json", "learned.safetensors"
_RANK = 16

Example = TypeVar("Example")


class Tunable(TorchBackend, abc.ABC, Generic[Example]):
    """A backend that can learn.

    Args:
        name: a folder or a name on the hub.
        device: see `entaug.backends.transformers.base.choose`.
        precision: see `entaug.backends.transformers.base.choose`.
        budget: sub-words of a batch when answering; by default by device.
        adapters: whether low-rank adapters learn (Hu et al. 2022) and not the whole model; by default on a CPU.
    """

    task: str | None = None  # what peft calls it

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | None = None,
        precision: str | None = None,
        budget: int | None = None,
        adapters: bool | None = None,
    ) -> None:
        super().__init__(name, device=device, precision=precision, budget=budget)
        self.adapters = self.device.type == "cpu" if adapters is None else adapters
        self.markers: dict[str, str] = {}
        self.losses: list[tuple[float, float | None]] = []
        """Of each epoch of the fine-tuning: the mean loss of a sub-word, and the same on what was held out."""
        self.kept: int | None = None
        """The epoch whose weights were kept, from 1."""
        self.left_out = 0
        """Examples that were longer than the model takes and not learned from."""
        self.said: int | None = None
        """How many sub-words the longest example has that it learned to say."""
        self._learned: dict[str, Any] = {}

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abc.abstractmethod
    def _row(self, example: Example) -> Row:
        """Sub-words of an example as the model takes them, and what it is to say."""

    @abc.abstractmethod
    def _fits(self, row: Row) -> bool:
        """Whether the model can take a row."""

    @abc.abstractmethod
    def _batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        """What the model is called with to learn from some rows."""

    def _ready(self, model: Any) -> Any:
        """What is done to a model before it answers."""
        return model

    # --------------------------------------------------------------------------------------------------------- learning

    def learn(
        self,
        examples: Callable[[int], Sequence[Example]],
        config: TrainingConfig,
        markers: Mapping[str, str],
        folder: Path | None = None,
        progress: TrainingProgress | None = None,
    ) -> None:
        """Learn, and answer with what was learned from then on.

        Args:
            examples: those of each epoch, always as many.
            config: the hyperparameters.
            markers: pieces of text that are to be one token each, and the words whose meaning each starts from.
            folder: where the state is kept after each epoch.
            progress: told of each step.
        """
        self.tokenizer = self._load_tokenizer()
        self.markers = dict(markers)
        self.model = self._marked(self.dtype if self.adapters else torch.float32)

        def rows(epoch: int) -> list[Row]:
            found = [self._row(example) for example in examples(epoch)]
            if not epoch:
                self.said = max((sum(id_ != IGNORED for id_ in said) for _, said in found), default=None)
            return found

        result = fine_tune(
            self.model,
            rows,
            fits=self._fits,
            collate=self._batch,
            config=config,
            learning_rate=config.learning_rate or (5e-4 if self.adapters else 5e-5),
            dtype=self.dtype,
            checkpoint_dir=folder,
            progress=progress,
        )
        self._learned, self.losses, self.kept = result.weights, result.losses, result.best_epoch
        self.left_out = result.num_skipped
        self._take_up()

    def _marked(self, dtype: Any) -> Any:
        """The model as it was, with tokens for the markers, and with adapters where these are what learns."""
        model = load(self.auto, self.folder, dtype=dtype, **self._options())
        known = len(self.tokenizer)
        starts = {m: self.encode([f" {words}"])[0] for m, words in self.markers.items()}
        new = [m for m in self.markers if not (m == MASK and self.tokenizer.mask_token_id is not None)]
        added = transformers.AddedToken
        self.tokenizer.add_tokens([added(m, lstrip=True, normalized=False, special=False) for m in new])
        count = len(self.tokenizer) - known
        table = model.get_input_embeddings()
        if len(self.tokenizer) > table.weight.shape[0]:
            with quiet():
                model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            table = model.get_input_embeddings()
        with torch.no_grad():
            for weight in {id(w): w for w in (table.weight, _output(model)) if w is not None}.values():
                for marker in new:
                    if starts[marker]:
                        weight[self.tokenizer.convert_tokens_to_ids(marker)] = weight[starts[marker]].mean(0)
        if self.adapters:
            peft = peft_module()
            config = peft.LoraConfig(
                r=_RANK,
                lora_alpha=2 * _RANK,
                target_modules="all-linear",
                trainable_token_indices=list(range(known, known + count)) or None,
                task_type=self.task,
            )
            # The weights that adapters begin with are random, and come from a seed of their own.
            with quiet(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                model = peft.get_peft_model(model, config)
        return model.to(self.device)

    def _take_up(self) -> None:
        """Write with what was learned: the same way after learning and after reading it from a folder."""
        self.tokenizer = self._load_tokenizer()
        model = self._marked(torch.float32)
        wanted = dict(model.named_parameters())
        for name, tensor in self._learned.items():
            if name not in wanted or wanted[name].shape != tensor.shape:
                raise InputError(f"what was learned does not fit the model ({name})", remedy="fine-tune it again")
            wanted[name].data.copy_(tensor)
        if self.adapters:
            model = model.merge_and_unload()
        self.model = self._ready(model.to(self.dtype).eval())
        self.model.requires_grad_(requires_grad=False)

    def _ids(self, text: str) -> list[int]:
        """Sub-words of a text in which markers are one token each."""
        if not self.markers:
            return self.encode([text])[0]
        ids: list[int] = []
        for part in re.split("|".join(f"( *{re.escape(m)})" for m in self.markers), text):
            if part is None or not part:
                continue
            marker = part.lstrip(" ")
            if marker in self.markers:
                own = self.tokenizer.mask_token_id if marker == MASK else None
                ids.append(int(self.tokenizer.convert_tokens_to_ids(marker)) if own is None else own)
            else:
                ids += self.encode([part])[0]
        return ids

    # ----------------------------------------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path) -> None:
        """Write what was learned into a folder that is not there yet or is empty; the model it began with is not.

        Raises:
            OutputError: the folder holds something already, or cannot be written.
            ParameterError: it has learned nothing.
        """
        folder = Path(folder)
        if not self._learned:
            raise ParameterError("it has learned nothing", remedy="fit it")
        config = {
            "model": self.name.rpartition("/")[0],
            "adapters": self.adapters,
            "markers": self.markers,
            "losses": self.losses,
            "kept": self.kept,
            "said": self.said,
        }
        save_weights(folder, _LEARNED, self._learned, _CONFIG, config)

    def restore(self, folder: str | Path) -> Self:
        """One that has learned, as it was saved, from one of the same model.

        Raises:
            InputError: there is nothing that was saved, it is damaged, or it learned from another model.
        """
        made = copy.copy(self)
        made.read(Path(folder))
        return made

    def read(self, folder: Path) -> None:
        """What `restore` does, to this very one."""
        remedy = "name a folder that it was saved to, or fine-tune it again"
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            model, own = str(config["model"]), self.name.rpartition("/")[0]
            self.markers = {str(marker): str(words) for marker, words in config["markers"].items()}
            self.losses = [(mean, outside) for mean, outside in config["losses"]]
            self.kept, self.adapters = int(config["kept"]), bool(config["adapters"])
            self.said = int(config["said"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"holds nothing that was learned ({error})", path=str(folder), remedy=remedy) from None
        if model != own:
            raise InputError(f"learned from {model}, and this is {own}", path=str(folder), remedy=remedy)
        self._learned = read_weights(folder / _LEARNED)
        try:
            self._take_up()
        except InputError as error:
            error.path = str(folder)
            raise


def peft_module() -> Any:
    """The library of adapters."""
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError(error.name or "peft", "models") from None
    return peft


def _output(model: Any) -> Any:
    layer = model.get_output_embeddings()
    return None if layer is None else layer.weight
