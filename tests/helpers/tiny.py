"""Tiny models with random weights, built on the spot: they load like the real ones and take milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")  # tests with these models skip where it is not installed

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertForTokenClassification,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    MBartConfig,
    MBartForConditionalGeneration,
    MPNetConfig,
    MPNetForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

import entaug
from conftest import EXAMPLE
from entaug.core.data import Sentence

FAST: Any = PreTrainedTokenizerFast  # its constructor has no types
SHAPE: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

_SIDE = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}


def lines() -> list[str]:
    return [sentence.text for sentence in entaug.read(EXAMPLE / "train.conll")]


def wordpiece(texts: list[str] | None = None) -> Any:
    """A tokenizer trained on the example corpus, or a cased one that keeps accents, trained on other texts."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=texts is None)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=special)
    tokenizer.train_from_iterator(texts or lines(), trainer)
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


def unigram(before: str = "<s> ", texts: list[str] | None = None) -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *(["en_XX"] if "en_XX" in before else [])]
    tokenizer.train_from_iterator(
        texts or lines(), trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>")
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{before}$A </s>", special_tokens=[("<s>", 0), ("</s>", 2), ("en_XX", 5)]
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


def save(folder: Path, kind: str, texts: list[str] | None = None) -> Path:
    """Write a tiny model and its tokenizer to a folder: of BERT, RoBERTa, XLM-R, MPNet, DeBERTa, Llama, T5, ...

    The tokenizers of BERT, T5 and XLM-R may be trained on given texts instead of the example corpus.
    """
    torch.manual_seed(5)
    model: Any
    if kind == "bert":
        tokenizer = wordpiece(texts)
        model = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SHAPE))
    elif kind == "llama":
        tokenizer = byte_level(causal=True)
        model = LlamaForCausalLM(
            LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=64, bos_token_id=0, eos_token_id=0, **SHAPE)
        )
    elif kind == "t5":
        tokenizer = unigram(before="", texts=texts)
        size: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
        ids: dict[str, Any] = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
        model = T5ForConditionalGeneration(T5Config(vocab_size=len(tokenizer), **size, **ids))
    elif kind in ("bart", "mbart"):
        tokenizer = byte_level() if kind == "bart" else unigram(before="en_XX ")
        size = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in _SIDE.items()}
        config, cls = {
            "bart": (BartConfig, BartForConditionalGeneration),
            "mbart": (MBartConfig, MBartForConditionalGeneration),
        }[kind]
        ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
        shape = {"d_model": 32, "max_position_embeddings": 64, "forced_bos_token_id": None}
        model = cls(config(vocab_size=len(tokenizer), **shape, **size, **ids))
    else:
        tokenizer = byte_level() if kind == "roberta" else unigram(texts=texts)
        config, cls = {
            "roberta": (RobertaConfig, RobertaForMaskedLM),
            "xlm-roberta": (XLMRobertaConfig, XLMRobertaForMaskedLM),
            "mpnet": (MPNetConfig, MPNetForMaskedLM),
            "deberta-v2": (DebertaV2Config, DebertaV2ForMaskedLM),
        }[kind]
        own = {"relative_attention": True, "conv_kernel_size": 3, "position_buckets": 8} if kind == "deberta-v2" else {}
        model = cls(config(vocab_size=len(tokenizer), max_position_embeddings=64, pad_token_id=1, **SHAPE, **own))
    # Random weights are nearly uniform; larger ones make models that have opinions.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6 if parameter.dim() > 1 and kind != "t5" else 1)  # those of T5 begin large
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def word_vectors(folder: Path, sentences: Iterable[Sentence]) -> Path:
    """Write random vectors of the words of sentences to a new folder."""
    folder.mkdir()
    words = sorted({token.lower() for sentence in sentences for token in sentence.tokens})
    rows = np.random.default_rng(1).normal(size=(len(words), 16)).astype(np.float32)
    np.save(folder / "vectors.npy", rows)
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return folder


def token_classifier(folder: Path, tags: list[str], sentences: Sequence[Sequence[str]], answers: Any = None) -> Path:
    """Write a tiny token classifier; with the number of the tag of each word, it is trained on the sentences."""
    torch.manual_seed(5)
    tokenizer = wordpiece([" ".join(words) for words in sentences])
    labels: dict[str, Any] = {"id2label": dict(enumerate(tags)), "label2id": {tag: i for i, tag in enumerate(tags)}}
    model = BertForTokenClassification(
        BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SHAPE, **labels)
    )
    if answers is not None:
        rows = [tokenizer(list(words), is_split_into_words=True, return_tensors="pt") for words in sentences]
        wanted = [
            torch.tensor([[-100 if word is None else numbers[word] for word in row.word_ids()]])
            for row, numbers in zip(rows, answers, strict=True)
        ]
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for _ in range(12):
            for row, numbers in zip(rows, wanted, strict=True):
                model(**row, labels=numbers).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def gliner(folder: Path) -> Path:
    """Write a tiny GLiNER model with random weights."""
    from gliner import GLiNER, GLiNERConfig

    torch.manual_seed(5)
    tokenizer = wordpiece()
    tokenizer.save_pretrained(folder)
    config = GLiNERConfig(
        model_name=str(folder),
        max_width=4,
        hidden_size=32,
        max_len=48,
        dropout=0.0,
        vocab_size=len(tokenizer),
        encoder_config={"model_type": "bert", "vocab_size": len(tokenizer), "max_position_embeddings": 64, **SHAPE},
    )
    model = GLiNER.from_config(config, backbone_from_pretrained=False)
    model.save_pretrained(str(folder), safe_serialization=True)
    return folder
