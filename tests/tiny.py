"""Tiny models with random weights, built on the spot: they load like the real ones and take milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

import entaug
from conftest import EXAMPLE

FAST: Any = PreTrainedTokenizerFast  # its constructor has no types
SHAPE: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def lines() -> list[str]:
    return [sentence.text for sentence in entaug.read(EXAMPLE / "train.conll")]


def wordpiece() -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=600, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.decoder = decoders.WordPiece()
    return FAST(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def byte_level(*, causal: bool = False) -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>"] if causal else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(lines(), trainer)
    if causal:
        return FAST(tokenizer_object=tokenizer, eos_token="<|endoftext|>", model_max_length=64)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return _roberta_like(tokenizer)


def unigram() -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(
        lines(), trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>")
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return _roberta_like(tokenizer)


def _roberta_like(tokenizer: Tokenizer) -> Any:
    return FAST(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_max_length=62,
    )


def save(folder: Path, kind: str) -> Path:
    """Write a tiny model and its tokenizer to a folder: ``bert``, ``roberta``, ``xlm-roberta`` or ``llama``."""
    torch.manual_seed(5)
    model: Any
    if kind == "bert":
        tokenizer = wordpiece()
        model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SHAPE))
    elif kind == "llama":
        tokenizer = byte_level(causal=True)
        model = LlamaForCausalLM(
            LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=64, bos_token_id=0, eos_token_id=0, **SHAPE)
        )
    else:
        tokenizer = byte_level() if kind == "roberta" else unigram()
        config, cls = {
            "roberta": (RobertaConfig, RobertaForMaskedLM),
            "xlm-roberta": (XLMRobertaConfig, XLMRobertaForMaskedLM),
        }[kind]
        model = cls(config(vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=1, **SHAPE))
    # Random weights are nearly uniform; larger ones make models that have opinions.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6 if parameter.dim() > 1 else 1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
