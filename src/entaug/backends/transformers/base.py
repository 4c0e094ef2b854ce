"""What all backends on PyTorch and transformers share: finding a model, loading it safely, device, precision, batches.

Only safetensors (and GGUF) are loaded, never pickles, and never code that comes with a model.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from entaug.errors import EntaugError, MissingExtraError, MissingModelError, ParameterError
from entaug.models import catalogue as models

try:
    import torch
    import transformers
    from safetensors import SafetensorError
except ImportError as error:
    raise MissingExtraError(error.name or "torch", "models") from None

__all__ = [
    "Batcher",
    "TorchBackend",
    "batches",
    "by_word",
    "choose",
    "find",
    "load",
    "max_length",
    "padded",
    "torch",
    "transformers",
]

_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "*.spm", "*.gguf"]
_SAMPLE = 1 << 20
_POOL = 16  # batches whose rows are sorted by length together


# -------------------------------------------------------------------------------------------------- finding and loading


def find(name: str | Path) -> Path:
    """The folder of a model.

    Args:
        name: a folder, or a name on the hub; what was fetched from there before is not fetched again.

    Raises:
        MissingModelError: there is no such folder, it holds no safetensors, or it would have to be fetched and may not.
    """
    folder = Path(name)
    if folder.is_dir():
        return _checked(folder, str(name))
    if folder.exists():
        raise MissingModelError("is a file, and a model is a folder", path=str(folder), remedy="name its folder")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise MissingExtraError(error.name or "huggingface_hub", "models") from None
    remedy = "give a folder, run without --offline, or see: entaug models list"
    try:
        return _checked(Path(snapshot_download(str(name), local_files_only=True)), str(name))
    except LocalEntryNotFoundError:
        if models.offline_wanted():
            raise MissingModelError(f"the model {name!r} is not on this machine", remedy=remedy) from None
    except HFValidationError:
        raise MissingModelError(
            f"{str(name)!r} is neither a folder nor a name on the hub", remedy="see: entaug models list"
        ) from None
    sys.stderr.write(f"fetching {name} from the hub\n")
    try:
        return _checked(Path(snapshot_download(str(name), allow_patterns=_HUB_FILES)), str(name))
    except (HfHubHTTPError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise MissingModelError(f"the model {name!r} cannot be fetched ({reason})", remedy=remedy) from None


def _checked(folder: Path, name: str) -> Path:
    """A folder, if it holds weights that are safe to load."""
    if any(folder.glob("*.safetensors")) or any(folder.glob("*.gguf")):
        return folder
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")) or any(folder.glob("*.pth")):
        raise MissingModelError(
            f"the model {name!r} has pickled weights only, which can run any code",
            path=str(folder),
            remedy="convert them to safetensors",
        )
    raise MissingModelError("holds no *.safetensors", path=str(folder), remedy="name the folder of a saved model")


def load(cls: Any, folder: Path, **options: Any) -> Any:
    """A model or tokenizer of transformers from a folder, without reaching for the network.

    Args:
        cls: an ``Auto...`` class.
        folder: see `find`.
        options: of ``from_pretrained``.

    Raises:
        MissingModelError: a file is damaged, missing, or not what the class needs.
    """
    try:
        with quiet():
            return cls.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError, json.JSONDecodeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise MissingModelError(
            f"cannot be loaded ({reason})", path=str(folder), remedy="fetch it anew, or run: entaug models verify"
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from writing to the terminal while it loads: what matters becomes an error of ours."""
    logging: Any = transformers.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


def content_name(folder: Path) -> str:
    """A model's name and a digest of its content: its configuration; sizes, beginnings and ends of its weights."""
    digest = hashlib.sha256()
    files = sorted(p for pattern in ("*.safetensors", "*.gguf", "*.bin", "config.json") for p in folder.glob(pattern))
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name} {size} ".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(_SAMPLE))
            stream.seek(max(0, size - _SAMPLE))
            digest.update(stream.read(_SAMPLE))
    parts = folder.resolve().parts
    # A folder in the hub's cache is named by its revision; the model's name stands three levels above.
    name = parts[-3].removeprefix("models--").replace("--", "/") if "snapshots" in parts[-2:-1] else parts[-1]
    return f"{name}@{digest.hexdigest()[:8]}"


def max_length(config: Any, tokenizer: Any) -> int:
    """How many sub-words a model takes at once, special ones included."""
    by_config = getattr(config, "max_position_embeddings", None) or 1 << 30
    # Models that number positions from behind the padding id lose these places.
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"):
        by_config -= 2
    return int(min(by_config, tokenizer.model_max_length))


def by_word(tokenizer: Any, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Sub-words of a sentence with special ones, and which word each belongs to: -1 for special ones."""
    encoded = tokenizer(list(words), is_split_into_words=True, split_special_tokens=True, verbose=False)
    return encoded["input_ids"], [-1 if word is None else word for word in encoded.word_ids()]


def padded(rows: Sequence[Sequence[int]], width: int, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of ids as one tensor, filled up with `pad`, and the attention mask."""
    ids = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return ids, mask


# ------------------------------------------------------------------------------------------------ device and precision


def choose(device: str | None = None, precision: str | None = None) -> tuple[torch.device, torch.dtype]:
    """The device and the precision to compute with.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``; by default ``$ENTAUG_DEVICE``, else CUDA where there is.
        precision: ``"fp32"``, ``"bf16"`` or ``"fp16"``; by default ``$ENTAUG_PRECISION``, else bf16 where the device
            computes with it, else fp32.

    Raises:
        ParameterError: there is no such device or precision.
    """
    device = device or os.environ.get("ENTAUG_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
    precision = precision or os.environ.get("ENTAUG_PRECISION")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ParameterError(f"no device {device!r} here", remedy="use cpu, or cuda where there is one") from None
    if precision is None:
        return chosen, torch.bfloat16 if _has_bf16(chosen) else torch.float32
    if precision not in _PRECISIONS:
        raise ParameterError(f"precision must be one of {', '.join(_PRECISIONS)}, not {precision!r}")
    return chosen, _PRECISIONS[precision]


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # Emulated bf16 is slower than fp32, so only processors with the instructions count.
    tests = (getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile"))
    return any(test() for test in tests if test is not None)


# ------------------------------------------------------------------------------------------------------------- batches


class Batcher:
    """Batches of rows of equal width, within a budget that halves when memory runs out.

    A row's width is its length rounded up, whatever stands beside it: so no answer depends on what else is asked.

    Args:
        budget: sub-words of a batch.
        step: widths are multiples of it.
    """

    def __init__(self, budget: int, step: int = 8) -> None:
        self.budget = budget
        self.step = step
        self.halved = 0

    def run(self, lengths: Sequence[int], compute: Callable[[list[int], int], None]) -> None:
        """Have every row computed.

        Args:
            lengths: of each row, in sub-words.
            compute: called with the numbers of some rows and their common width; it keeps the results itself.

        Raises:
            EntaugError: there is not even memory for a single row.
        """
        by_width: dict[int, list[int]] = {}
        for row, length in enumerate(lengths):
            by_width.setdefault(-(-max(1, length) // self.step) * self.step, []).append(row)
        for width, rows in sorted(by_width.items()):
            place = 0
            while place < len(rows):
                many = max(1, self.budget // width)
                try:
                    compute(rows[place : place + many], width)
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error):
                        raise
                    if many == 1:
                        raise EntaugError(
                            f"out of memory for a single text of {width} sub-words",
                            remedy="use a smaller model, a shorter text or another device",
                        ) from None
                    self.budget = max(width, self.budget // 2)
                    self.halved += 1
                    if torch.cuda.is_available():
                        torch.cuda.empty_cache()
                    continue
                place += many


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text


def batches(lengths: Sequence[int], size: int, rng: Random) -> Iterator[list[int]]:
    """Batches of shuffled rows without end, those of like length together.

    Each pass sees each row once. Rows are sorted by length within a pool of some batches only, so that
    batches differ from pass to pass.

    Args:
        lengths: of the rows.
        size: rows of a batch.
        rng: decides.
    """
    while True:
        order = list(range(len(lengths)))
        rng.shuffle(order)
        epoch = []
        for start in range(0, len(order), size * _POOL):
            pool = sorted(order[start : start + size * _POOL], key=lambda i: lengths[i])
            epoch += [pool[i : i + size] for i in range(0, len(pool), size)]
        rng.shuffle(epoch)
        yield from epoch


class TorchBackend:
    """Base of the backends: a tokenizer and a model on a device.

    Args:
        name: a folder or a name on the hub.
        device: see `choose`.
        precision: see `choose`.
        budget: sub-words of a batch; by default by device.
    """

    auto: Any  # the class of transformers that loads the model

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | None = None,
        precision: str | None = None,
        budget: int | None = None,
    ) -> None:
        self.folder = find(name)
        self.device, self.dtype = choose(device, precision)
        self.tokenizer = self._load_tokenizer()
        self.model = self._load_model().to(self.device).eval()
        self.model.requires_grad_(requires_grad=False)
        short = {dtype: name for name, dtype in _PRECISIONS.items()}[self.dtype]
        self.name = f"{content_name(self.folder)}/{short}"
        self.batcher = Batcher(budget or (32768 if self.device.type == "cuda" else 4096))
        self.before, self.after = self._around()
        self.shortened = 0
        """How many texts were longer than the model can take and were handled in parts."""

    def _options(self) -> dict[str, str]:
        """What transformers has to be told to read a GGUF file."""
        files = sorted(self.folder.glob("*.gguf"))
        return {"gguf_file": files[0].name} if files and not any(self.folder.glob("*.safetensors")) else {}

    def _load_tokenizer(self) -> Any:
        return load(transformers.AutoTokenizer, self.folder, **self._options())

    def _load_model(self) -> Any:
        return load(self.auto, self.folder, dtype=self.dtype, **self._options())

    @property
    def max_length(self) -> int:
        """How many sub-words the model takes at once, special ones included."""
        return max_length(self.model.config, self.tokenizer)

    def _around(self) -> tuple[list[int], list[int]]:
        """The special ids that the tokenizer puts before and after a text."""
        plain, whole = self.encode(["a"])[0], self.encode(["a"], special=True)[0]
        start = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
        return whole[:start], whole[start + len(plain) :]

    def encode(self, texts: Sequence[str], *, special: bool = False) -> list[list[int]]:
        """Sub-words of each text, never truncated; markers such as ``[MASK]`` that stand in a text are plain text."""
        ids: list[list[int]] = self._tokenized(texts, special, "input_ids")
        return ids

    def ranges(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Where each sub-word of each text begins and ends in it; (0, 0) where the tokenizer cannot say."""
        if not self.tokenizer.is_fast:
            return [[(0, 0)] * len(row) for row in self.encode(texts)]
        found: list[list[tuple[int, int]]] = self._tokenized(texts, False, "offset_mapping")
        return found

    def _tokenized(self, texts: Sequence[str], special: bool, what: str) -> Any:
        if not texts:
            return []
        return self.tokenizer(
            list(texts),
            add_special_tokens=special,
            split_special_tokens=True,
            return_offsets_mapping=what == "offset_mapping",
            verbose=False,
        )[what]

    def padded(self, rows: Sequence[Sequence[int]], width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of ids as one tensor on the device, and the attention mask."""
        ids, mask = padded(rows, width, self.tokenizer.pad_token_id or 0)
        return ids.to(self.device), mask.to(self.device)
