"""What all backends on PyTorch and transformers share: finding and loading models, devices, precision and batches.

Only safetensors are loaded, never pickles, and never code that comes with a model.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from entaug.backends.compute import compute_settings
from entaug.backends.models.catalogue import MODELS, cache_dir, digest
from entaug.errors import EntaugError, MissingModelError, ParameterError, one_line

# The files that determine what a model answers: weights, configuration and tokenizer.
_WEIGHTS_AND_CONFIG = ("*.safetensors", "config.json", "generation_config.json")
_TOKENIZER = (
    *("tokenizer*.json", "special_tokens_map.json", "added_tokens.json"),
    *("*vocab*", "merges.txt", "*.model", "*.spm"),
)
_FP16_CAPABILITY = (7, 0)  # since Volta: GPUs without bf16 such as the T4
# Parts of the names of families that were trained in bf16 and whose values exceed the range of fp16.
_BEYOND_FP16 = ("t5", "gemma", "pegasus", "switch_transformers", "udop")
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_HUB_FILES = ["README.md", "*.safetensors", "*.json", "*.txt", "*.model", "*.spm"]
_BATCHES_SORTED_TOGETHER = 16
# Models that count positions from behind the padding id lose these positions.
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"})


# -------------------------------------------------------------------------------------------------- finding and loading


def find_model(name: str | Path) -> Path:
    """Find the folder of a model; a model on the hub is downloaded once."""
    folder = Path(name) if Path(name).exists() else _from_hub(str(name))
    if not folder.is_dir():
        raise MissingModelError("is a file, and a model is a folder", path=str(folder), remedy="name its folder")
    if any(folder.glob("*.safetensors")):
        return folder
    if any(any(folder.glob(pattern)) for pattern in ("*.bin", "*.pt", "*.pth")):
        raise MissingModelError(
            f"the model {str(name)!r} has pickled weights only, which can run any code",
            path=str(folder),
            remedy="convert them to safetensors",
        )
    raise MissingModelError("holds no *.safetensors", path=str(folder), remedy="name the folder of a saved model")


def _from_hub(name: str) -> Path:
    """The folder of a model of the hub, downloaded if it is not in its cache."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    tried = f"the model {name!r} is not on this machine: there is no such folder, nor one in {constants.HF_HUB_CACHE}"
    remedy = "give a folder, run without `offline`, or see: entaug list models"
    try:
        folder = Path(snapshot_download(name, local_files_only=True))
        if compute_settings().offline or _is_whole(folder):
            return folder
    except HFValidationError:
        message = f"{name!r} is neither a folder nor a name on the hub"
        raise MissingModelError(message, remedy="see: entaug list models") from None
    except LocalEntryNotFoundError:
        if compute_settings().offline:
            raise MissingModelError(f"{tried} (offline: the hub was not asked)", remedy=remedy) from None
    sys.stderr.write(f"downloading {name} from the hub\n")
    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except OSError as error:  # those of requests are
        message = f"{tried}; {constants.ENDPOINT} answers: {one_line(error)}"
        raise MissingModelError(message, remedy="check the name and the network, give a folder") from None


def _is_whole(folder: Path) -> bool:
    """Whether a folder in the cache of the hub has all weights, which an interrupted download or a tokenizer lack."""
    shards = {
        shard
        for index in folder.glob("*.safetensors.index.json")
        for shard in json.loads(index.read_bytes()).get("weight_map", {}).values()
    }
    has_weights = any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.bin"))
    return has_weights and all((folder / shard).exists() for shard in shards)


def load_pretrained(cls: Any, folder: Path, **options: Any) -> Any:
    """Load a model or tokenizer of transformers from a folder, without access to the network."""
    try:
        with quiet():
            return cls.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError, json.JSONDecodeError) as error:
        raise MissingModelError(
            f"cannot be loaded ({one_line(error)})",
            path=str(folder),
            remedy="download it anew, or run: entaug models verify",
        ) from None


# Weights for other uses than ours, tables of a fixed pattern and a bias of zeros, which are not always stored.
_UNUSED_WEIGHTS = re.compile(r"\bpooler\.|position_ids|positions\.weight$|logits_bias$")


def load_model(cls: Any, folder: Path, *, fault: str = "", remedy: str = "", **options: Any) -> Any:
    """Load a model of transformers, whose weights must all be in the folder."""
    # By itself transformers gives random values to weights that it does not find.
    model, info = load_pretrained(cls, folder, **options, output_loading_info=True)
    missing = sorted(key for key in info["missing_keys"] if not _UNUSED_WEIGHTS.search(key))
    if missing:
        raise MissingModelError(
            f"{fault or 'lacks weights'} ({', '.join(missing[:3])} is not in its files)",
            path=str(folder),
            remedy=remedy or "use a model that was trained for this purpose, or download it anew",
        )
    return model


def unfuse_attention(model: Any, device: torch.device) -> None:
    """Prepare a model for training: on a CPU the backward pass of the fused attention is slow."""
    if device.type == "cpu":
        model.set_attn_implementation("eager")


def load_tokenizer(folder: Path, **options: Any) -> Any:
    """Load the tokenizer of a model."""
    tokenizer = load_pretrained(transformers.AutoTokenizer, folder, **options)
    # Without its files transformers makes a tokenizer that knows special tokens only.
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise MissingModelError(
            "has a tokenizer without a vocabulary (no tokenizer.json)",
            path=str(folder),
            remedy="download the model anew, or save its tokenizer there",
        )
    return tokenizer


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from writing to the terminal: what matters becomes an error."""
    logging: Any = transformers.logging
    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()


def model_name(folder: Path) -> str:
    """The name of a model for provenance: its own name and a digest of its weights, configuration and tokenizer."""
    content = digest(sorted({file for pattern in (*_WEIGHTS_AND_CONFIG, *_TOKENIZER) for file in folder.glob(pattern)}))
    parts = folder.resolve().parts
    # A folder in the hub's cache is named by its revision; the name of the model is three levels above.
    name = parts[-3].removeprefix("models--").replace("--", "/") if "snapshots" in parts[-2:-1] else parts[-1]
    return f"{name}@{content}"


def max_input_length(config: Any, tokenizer: Any) -> int:
    """The number of tokens that a model takes at once, special tokens included."""
    positions = getattr(config, "max_position_embeddings", None) or 1 << 30
    if getattr(config, "model_type", "") in _OFFSET_POSITIONS:
        positions -= 2
    return int(min(positions, tokenizer.model_max_length))


def tokenize_words(tokenizer: Any, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Tokenize the words of a sentence."""
    encoded = tokenizer(list(words), is_split_into_words=True, split_special_tokens=True, verbose=False)
    return encoded["input_ids"], [-1 if word is None else word for word in encoded.word_ids()]


def row_ranges(word_of: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """Divide the sub-words of a sentence into rows; a word is not divided unless it is longer than a row."""
    start = 0
    while start < len(word_of):
        end = min(start + size, len(word_of))
        while start < end < len(word_of) and word_of[end] == word_of[end - 1] != word_of[start]:
            end -= 1
        yield start, end
        start = end


def pad_rows(
    rows: Sequence[Sequence[int]], width: int, pad_id: int, *, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad rows of token ids."""
    ids = torch.full((len(rows), width), pad_id, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for i, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(len(row))
        ids[i, place] = torch.tensor(row)
        mask[i, place] = 1
    return ids, mask


# --------------------------------------------------------------------------------------------------------- languages


def card_languages(folder: Path) -> frozenset[str] | None:
    """Return the languages that a model serves, as the list of starter models or its card (``README.md``) says."""
    if folder.parent == cache_dir() and folder.name in MODELS:
        return frozenset(MODELS[folder.name].languages) or None
    card = folder / "README.md"
    if not card.is_file():
        return None
    import yaml
    from huggingface_hub import metadata_load

    try:
        language = (metadata_load(card) or {}).get("language")
    except (OSError, ValueError, AttributeError, yaml.YAMLError):  # a card that was written by hand
        return None
    entries = [language] if isinstance(language, str) else language if isinstance(language, list) else []
    # YAML reads the code of Norwegian, no, as a truth value.
    codes = {"no" if entry is False else str(entry).lower().replace("_", "-").split("-")[0] for entry in entries}
    return None if "multilingual" in codes else frozenset(codes) or None


# ------------------------------------------------------------------------------------------------ device and precision


def choose_device(
    device: str | None = None, precision: str | None = None, *, model_type: str = ""
) -> tuple[torch.device, torch.dtype]:
    """Choose the device and the precision to compute with."""
    settings = compute_settings()
    device = device or settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    precision = precision or settings.precision
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ParameterError(f"no device {device!r} here", remedy="use cpu, or cuda where there is one") from None
    if precision is None:
        return chosen, _default_precision(chosen, model_type)
    if precision not in _PRECISIONS:
        raise ParameterError(f"precision must be one of {', '.join(_PRECISIONS)}, not {precision!r}")
    return chosen, _PRECISIONS[precision]


def _default_precision(device: torch.device, model_type: str) -> torch.dtype:
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return torch.bfloat16
        has_fp16 = torch.cuda.get_device_capability(device) >= _FP16_CAPABILITY
        stays_in_range = not any(family in model_type for family in _BEYOND_FP16)
        return torch.float16 if has_fp16 and stays_in_range else torch.float32
    # Emulated bf16 is slower than fp32, so only processors with the instructions count: AMX, or those of AVX-512, which
    # are four times as fast on AMD's, but slower than fp32 on Intel's where AMX is missing or hidden from a guest.
    has_bf16 = _supports("amx_tile") or (_supports("avx512_bf16") and not _is_intel())
    return torch.bfloat16 if device.type == "cpu" and has_bf16 else torch.float32


def _supports(instructions: str) -> bool:
    test = getattr(torch.cpu, f"_is_{instructions}_supported", None)
    return test is not None and test()


def _is_intel() -> bool:
    info = Path("/proc/cpuinfo")
    return "GenuineIntel" in (info.read_text("utf-8", "replace") if info.is_file() else platform.processor())


# ------------------------------------------------------------------------------------------------------------- batches


class Batcher:
    """Batches of rows of equal width, within a budget that halves when memory runs out."""

    # The width of a row is its own length rounded up, so that no result depends on the rest of the batch.

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def run(
        self, lengths: Sequence[int], compute: Callable[[list[int], int], None], *, step: int = 8, cost: int = 1
    ) -> None:
        """Compute all rows, the widths of which are multiples of a step, and each token of which has a cost."""
        by_width: dict[int, list[int]] = {}
        for row, length in enumerate(lengths):
            by_width.setdefault(-(-max(1, length) // step) * step, []).append(row)
        for width, rows in sorted(by_width.items()):
            start = 0
            while start < len(rows):
                size = max(1, self.budget // (cost * width))
                try:
                    compute(rows[start : start + size], width)
                except (RuntimeError, MemoryError) as error:
                    self.shrink(error, size, cost * width, width)
                else:
                    start += size

    def shrink(self, error: BaseException, size: int, row_cost: int, width: int) -> None:
        """Halve the budget after a batch for which memory did not suffice; raise any other error."""
        release_memory(error, size, f"text of {width} tokens", "use a smaller model, a shorter text or another device")
        self.budget = max(row_cost, self.budget // 2)


def release_memory(error: BaseException, size: int, item: str, remedy: str) -> None:
    """Give back what is cached on a GPU, so that a smaller batch can be tried after an error."""
    text = str(error).lower()
    if not isinstance(error, torch.OutOfMemoryError | MemoryError) and not any(words in text for words in _NO_MEMORY):
        raise error
    if size == 1:
        raise EntaugError(f"out of memory for a single {item}", remedy=remedy) from None
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def shuffled_batches(lengths: Sequence[int], size: int, rng: Random) -> Iterator[list[int]]:
    """Batches of shuffled rows without end, rows of similar length together."""
    # Each pass contains each row once. Rows are sorted by length only within a group of some batches, so that the
    # batches differ from pass to pass.
    group_size = size * _BATCHES_SORTED_TOGETHER
    while True:
        order = list(range(len(lengths)))
        rng.shuffle(order)
        batches = []
        for start in range(0, len(order), group_size):
            group = sorted(order[start : start + group_size], key=lambda i: lengths[i])
            batches += [group[i : i + size] for i in range(0, len(group), size)]
        rng.shuffle(batches)
        yield from batches


class TorchBackend:
    """Base of the backends on transformers: a tokenizer and a model on a device."""

    auto: Any  # the class of transformers that loads the model

    def __init__(
        self, name: str | Path, *, device: str | None = None, precision: str | None = None, budget: int | None = None
    ) -> None:
        self.folder = find_model(name)
        self.device, self.dtype = choose_device(device, precision)
        if self.dtype is torch.float16:
            config = load_pretrained(transformers.AutoConfig, self.folder)
            _, self.dtype = choose_device(device, precision, model_type=config.model_type)
        self.tokenizer = self._load_tokenizer()
        self._prepare_model()
        precision_names = {dtype: name for name, dtype in _PRECISIONS.items()}
        self.name = f"{model_name(self.folder)}/{precision_names[self.dtype]}"
        self.batcher = Batcher(budget or (32768 if self.device.type == "cuda" else 4096))
        self.prefix_ids, self.suffix_ids = self._special_ids()

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages that the model serves; None if they are not known."""
        return card_languages(self.folder)

    def _load_tokenizer(self) -> Any:
        return load_tokenizer(self.folder)

    def _load_model(self) -> Any:
        return load_model(self.auto, self.folder, dtype=self.dtype)

    def _place_model(self) -> Any:
        """The model on the device, for prediction."""
        return self._load_model().to(self.device).eval().requires_grad_(requires_grad=False)

    def _prepare_model(self) -> None:
        self.model = self._place_model()

    @property
    def max_length(self) -> int:
        """The number of tokens that the model takes at once, special tokens included."""
        return max_input_length(self.model.config, self.tokenizer)

    def _special_ids(self) -> tuple[list[int], list[int]]:
        """The ids of the special tokens that the tokenizer puts before and after a text."""
        plain, with_special = self.encode(["a"])[0], self.encode(["a"], add_special_tokens=True)[0]
        n = len(plain)
        start = next((i for i in range(len(with_special)) if with_special[i : i + n] == plain), 0)
        return with_special[:start], with_special[start + n :]

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> list[list[int]]:
        """Tokenize texts, without truncation; special tokens written in a text, such as ``[MASK]``, are plain text."""
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=add_special_tokens, split_special_tokens=True, verbose=False
        )["input_ids"]
        return ids

    def pad(
        self, rows: Sequence[Sequence[int]], width: int, *, left: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Pad rows of token ids, see `pad_rows`."""
        ids, mask = pad_rows(rows, width, self.tokenizer.pad_token_id or 0, left=left)
        return ids.to(self.device), mask.to(self.device)
