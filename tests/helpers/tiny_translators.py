"""Tiny translation models with random weights, of each kind, built on the spot: they babble."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers

from entaug.backends.transformers.base import quiet

SMALL: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 128,
    "init_std": 0.5,
}


def make(root: Path, sentences: Iterable[Sequence[str]]) -> None:  # noqa: PLR0915
    """Fill a folder with ``marian``, ``m2m``, ``mbart``, ``t5``, ``fsmt``, and ``plain``, which is no translator."""
    hf: Any = transformers  # its configurations are typed too narrowly
    torch.manual_seed(5)
    words = iter(" ".join(tokens) for tokens in sentences)
    trained = root / "sp.model"
    with trained.open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=words, model_writer=stream, vocab_size=400, hard_vocab_limit=False, minloglevel=2
        )
    sp = sentencepiece.SentencePieceProcessor(model_file=str(trained))
    scored = [(sp.id_to_piece(i), sp.get_score(i)) for i in range(3, len(sp))]
    pieces = [piece for piece, _ in scored]

    def saved(name: str, tokenizer: Any, model: Any, end: int, boost: float) -> None:
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias[0, end] = boost  # so that translations end
        # As in trained models of Marian, where decoding starts from it.
        model.get_input_embeddings().weight.data[model.config.pad_token_id] = 0
        model.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)

    with quiet():
        marian = root / "marian"
        marian.mkdir()
        shutil.copy(trained, marian / "source.spm")
        shutil.copy(trained, marian / "target.spm")
        vocabulary = {piece: i for i, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
        (marian / "vocab.json").write_text(json.dumps(vocabulary))
        files = [str(marian / name) for name in ("source.spm", "target.spm", "vocab.json")]
        last = len(vocabulary) - 1
        ids = {"pad_token_id": last, "eos_token_id": 0, "decoder_start_token_id": last, "forced_eos_token_id": 0}
        config: Any = hf.MarianConfig(vocab_size=len(vocabulary), scale_embedding=True, **ids, **SMALL)
        model: Any = hf.MarianMTModel(config)
        model.generation_config.bad_words_ids = [[last]]
        saved("marian", hf.MarianTokenizer(*files, model_max_length=128), model, 0, 5.0)

        (root / "m2m.json").write_text(
            json.dumps({piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])})
        )
        m2m = hf.M2M100Tokenizer(str(root / "m2m.json"), str(trained))
        size = len(pieces) + 4 + len(m2m.lang_code_to_id) + 8
        saved("m2m", m2m, hf.M2M100ForConditionalGeneration(hf.M2M100Config(vocab_size=size, **SMALL)), 2, 0)

        mbart = hf.MBart50Tokenizer(vocab=[("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *scored])
        config = hf.MBartConfig(vocab_size=len(mbart), decoder_start_token_id=2, **SMALL)
        saved("mbart", mbart, hf.MBartForConditionalGeneration(config), 2, 2.0)

        t5 = hf.T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *scored], extra_ids=0)
        task = {"translation_en_to_de": {"prefix": "translate English to German: "}}
        config = hf.T5Config(
            vocab_size=len(t5),
            d_model=32,
            d_kv=16,
            d_ff=64,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
            task_specific_params=task,
        )
        saved("t5", t5, hf.T5ForConditionalGeneration(config), 1, 0)
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,0123456789"
        vocabulary = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *letters])}
        vocabulary |= {f"{letter}</w>": len(vocabulary) + i for i, letter in enumerate(letters)}
        (root / "fsmt.json").write_text(json.dumps(vocabulary))
        (root / "merges.txt").write_text("t h\n")
        both = {f"{side}_vocab_file": str(root / "fsmt.json") for side in ("src", "tgt")}
        fsmt = hf.FSMTTokenizer(langs=["en", "de"], merges_file=str(root / "merges.txt"), **both)
        sizes = {f"{side}_vocab_size": len(vocabulary) for side in ("src", "tgt")}
        saved("fsmt", fsmt, hf.FSMTForConditionalGeneration(hf.FSMTConfig(langs=["en", "de"], **sizes, **SMALL)), 2, 0)

        (root / "plain").mkdir()
        config = hf.BertConfig(vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
        hf.BertModel(config).save_pretrained(root / "plain")
        t5.save_pretrained(root / "plain")
