"""Trained taggers in the form of other libraries: transformers, ONNX and spaCy."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file

from entaug import _version
from entaug.backends.transformers.base import quiet
from entaug.config.registry import import_object
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.taggers.base import TrainableTagger, write_config
from entaug.taggers.encoders import Encoder

ONNX_FILE, QUANTIZED_FILE = "model.onnx", "model.int8.onnx"
_SAMPLE = Sentence("Ada Lovelace , 36 , of London wrote this .".split())


def token_classifier(tagger: Any) -> Any:
    """Create a token classifier of transformers with the scores of a tagger; the transitions of a CRF are left out."""
    encoder: Any = getattr(tagger, "_encoder", None)
    decoder: Any = getattr(tagger, "_decoder", None)
    linear = getattr(decoder, "linear", None)
    if type(encoder) is not Encoder or not isinstance(linear, torch.nn.Linear) or getattr(decoder, "lstm", None):
        raise ParameterError(
            f"other libraries have no counterpart of this {tagger.name} tagger",
            remedy="export linear, bilstm-crf with hidden=0, or any tagger with `to='spacy'`",
        )
    config = copy.deepcopy(encoder.model.config)
    config.id2label = dict(enumerate(decoder.tags))
    config.label2id = {tag: i for i, tag in enumerate(decoder.tags)}
    fault = f"the token classifier of {config.model_type} in transformers has other layers than this tagger"
    try:
        with quiet():
            auto: Any = transformers.AutoModelForTokenClassification
            model = auto.from_config(config, attn_implementation="eager")
        base, head = model.base_model, model.classifier
        missing = base.load_state_dict(encoder.model.state_dict(), strict=False).missing_keys
        head.load_state_dict(linear.state_dict())
    except (AttributeError, RuntimeError, ValueError):
        raise ParameterError(fault) from None
    model = model.to(encoder.model.device, torch.float32).eval()
    with torch.inference_mode():
        prepared = encoder.prepare(_SAMPLE.tokens)
        encoder.eval()
        own = linear(encoder([prepared]))[0]
        ids = torch.tensor(prepared.rows, device=own.device)
        first = [prepared.word_indices[0].index(word) for word in range(len(_SAMPLE))]
        other = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, first]
    if missing or not torch.allclose(own, other, atol=1e-3):
        raise ParameterError(fault)
    return model


def export_huggingface(tagger: Any, folder: Path) -> None:
    """Write a token classifier of transformers."""
    with quiet():
        token_classifier(tagger).save_pretrained(folder)
        tagger._encoder.tokenizer.save_pretrained(folder)  # noqa: SLF001


def export_onnx(tagger: Any, folder: Path) -> None:
    """Write an ONNX model in fp32 and in int8, which `entaug.taggers.onnx.OnnxTagger` loads."""
    for needed in ("onnx:load", "onnxscript:script"):  # by torch
        import_object(needed)
    quantize = import_object("onnxruntime.quantization:quantize_dynamic")
    weight_types = import_object("onnxruntime.quantization:QuantType")
    model = token_classifier(tagger).to("cpu")

    class Scores(torch.nn.Module):
        """The model with its scores as output."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            """Compute the scores of tags."""
            logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
            return logits

    ids = torch.full((2, 16), int(model.config.pad_token_id or 0))
    mask = torch.ones_like(ids)
    mask[1, 10:] = 0
    shape = {0: torch.export.Dim("rows", min=1, max=4096), 1: torch.export.Dim("width", min=2, max=4096)}
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Scores().eval(),
            (ids, mask),
            folder / ONNX_FILE,
            input_names=["input_ids", "attention_mask"],
            output_names=["logits"],
            dynamic_shapes={"input_ids": shape, "attention_mask": shape},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
        # Seven bits, as products of eight-bit numbers overflow on processors without VNNI.
        quantize(
            folder / ONNX_FILE,
            folder / QUANTIZED_FILE,
            per_channel=True,
            reduce_range=True,
            weight_type=weight_types.QInt8,
        )
        model.config.save_pretrained(folder)
        tagger._encoder.tokenizer.save_pretrained(folder)  # noqa: SLF001
    decoder = tagger._decoder  # noqa: SLF001
    weights = {f"decoder.{k}": v.contiguous().cpu() for k, v in decoder.state_dict().items() if "linear." not in k}
    save_file(weights, folder / "tagger.safetensors")
    config = {
        "tagger": "onnx",
        "params": {"crf": hasattr(decoder, "crf"), "overlap": tagger.overlap},
        "labels": tagger.labels_,
        "encoder": tagger._encoder.name,  # noqa: SLF001
        "history": {},
        "version": _version.__version__,
    }
    write_config(folder, config)


def export_spacy(tagger: TrainableTagger, folder: Path, language: str) -> None:
    """Write a pipeline of spaCy with the tagger as its component ``entaug_ner``."""
    blank, name = import_object("spacy:blank"), import_object("entaug.taggers.spacy_component:COMPONENT")
    try:
        nlp = blank(language)
    except ImportError:
        raise ParameterError(f"spaCy has no language {language!r}", parameter="language") from None
    component: Any = nlp.add_pipe(name)
    component.tagger = tagger
    nlp.to_disk(folder)


EXPORTS: dict[str, Callable[..., None]] = {
    "huggingface": export_huggingface,
    "onnx": export_onnx,
    "spacy": export_spacy,
}
"""The forms by name; each function writes into an existing, empty folder."""
