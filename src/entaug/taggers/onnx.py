"""Exported taggers that predict by ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import onnxruntime
import torch
import transformers

from entaug.core.tags import Overlap
from entaug.errors import ParameterError
from entaug.taggers.encoders import Encoder
from entaug.taggers.export import ONNX_FILE, QUANTIZED_FILE
from entaug.taggers.flat import BiLSTMCRFTagger, CRFDecoder, LinearDecoder, LinearTagger
from entaug.taggers.neural import EncoderTagger


class _Session:
    """An ONNX model with the interface of an encoder of transformers; its vectors are the scores of tags."""

    device = torch.device("cpu")

    def __init__(self, folder: Path, file: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(folder / file, options, providers=providers)
        self.config: Any = transformers.AutoConfig.from_pretrained(folder)

    def set_attn_implementation(self, name: str) -> None:
        """Do nothing: how attention is computed is part of the model."""

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor]:
        inputs = {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()}
        return (torch.from_numpy(self._session.run(None, inputs)[0]),)


class _OnnxEncoder(Encoder):
    """An encoder whose vectors are the scores of tags."""

    def __init__(self, folder: str, file: str) -> None:
        self._file = file
        super().__init__(folder)
        self.size = len(self.model.config.id2label)
        self._device = torch.nn.Parameter(torch.zeros(0))  # by which `in_batches` knows the device

    def _load_model(self, folder: Path) -> Any:
        return _Session(folder, self._file)


@dataclass(kw_only=True, eq=False)
class OnnxTagger(EncoderTagger):
    """A tagger that was exported to ONNX: it predicts like the one that it was made of, and is not trained."""

    # `crf` says whether the scores are those of a conditional random field, `quantized` whether weights of eight bits
    # are used.

    name = "onnx"

    crf: bool = False
    quantized: bool = True
    device: str | None = "cpu"  # where the scores are
    overlap: Overlap = "error"
    checksum: str = field(default="", init=False, repr=False)

    def fit(self, *_: Any, **__: Any) -> Self:
        raise ParameterError("an exported tagger is not trained", remedy="train the one that it was made of")

    def save(self, folder: str | Path) -> None:
        raise ParameterError("an exported tagger is not saved", remedy="copy its folder")

    def attentions(self, *_: Any, **__: Any) -> Any:
        raise ParameterError("an exported tagger has no attentions", remedy="use the one that it was made of")

    def restore_encoder(self, folder: Path, config: dict[str, Any]) -> Encoder:
        encoder = _OnnxEncoder(str(folder), QUANTIZED_FILE if self.quantized else ONNX_FILE)
        self.encoder = encoder.name = config["encoder"]
        self.checksum = str(config["sum"])
        return encoder

    def build_decoder(self, size: int) -> Any:
        if self.crf:
            decoder: Any = CRFDecoder(size, self.labels_, BiLSTMCRFTagger(hidden=0, overlap=self.overlap))
        else:
            decoder = LinearDecoder(size, self.labels_, LinearTagger(overlap=self.overlap))
        decoder.linear = torch.nn.Identity()
        return decoder
