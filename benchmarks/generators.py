"""Fine-tuning and decoding of the starter generator beside the usual loops of peft and transformers, in one run.

A part of benchmarks/suite.py. The peers are a plain `Trainer` with the same low-rank adapters, and `generate` with the
same weights, all in this environment and in the same precision. Training texts are those of `entda`: a list of mentions
and the sentence they are from. Loading is not counted on either side.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

from entaug.backends.config import DecodingConfig, TrainingConfig
from entaug.backends.models import catalogue as models
from entaug.backends.transformers import training
from entaug.backends.transformers.generator import CausalGenerator
from entaug.core.alignment import detokenize
from models import compare, remark, sentences
from places import DATA, ROOT
from records import Measurement
from speed import augmented

BATCH_SIZE = 8
NEW_TOKENS = 96
ROWS = 16  # of a batch in decoding


def pairs(count: int) -> tuple[list[tuple[str, str]], str]:
    """Lists of mentions with their sentences, and what they are."""
    gold, corpus = sentences("crossner/ai/train.txt", count)
    found = []
    for sentence in gold:
        listed = "; ".join(f"{m.label}: {' '.join(sentence.mention_tokens(m))}" for m in sentence.mentions)
        found.append((listed, detokenize(sentence.tokens)))
    return found, corpus


def generator(peers: Any, quick: bool) -> Iterator[Measurement]:
    """An epoch of training, and sampled texts of the trained model."""
    del peers
    texts, corpus = pairs(24 if quick else 96)
    folder = models.model_path("smollm2")
    fitted, seconds = our_epoch(folder, texts)
    for precision in ("bf16", "fp32"):
        theirs = trainer_epoch(folder, texts, precision)
        name = f"fine-tuning with adapters, beside peft and Trainer in {precision}"
        bar = 1.5 if precision == "bf16" else None
        note = f"one epoch in batches of {BATCH_SIZE}: {seconds:.1f} s, theirs {theirs:.1f} s"
        yield compare(name, bar, len(texts) / seconds, len(texts) / theirs, corpus, note)
    yield from decoding(fitted, [source for source, _ in texts] * (1 if quick else 2), corpus)
    with tempfile.TemporaryDirectory() as temporary:
        path, size = DATA / "crossner/ai/train.txt", 3 if quick else 25
        path = path if path.is_file() else ROOT / "examples" / "corpus" / "train.conll"
        wall, _, _, peak = augmented(path, Path(temporary), size, "entda")
        what = f"`augment -m entda`, {size} sentences, peak"
        yield Measurement(what=what, value=peak, unit="MB", bar=2500, on=corpus, note=f"{wall:.0f} s by the clock")


def our_epoch(folder: Any, texts: list[tuple[str, str]]) -> tuple[CausalGenerator, float]:
    """A generator trained for one epoch, and the seconds of its steps but the first, scaled to all."""
    ticks: list[float] = []
    config = TrainingConfig(epochs=1, batch_size=BATCH_SIZE, validation_fraction=0, learning_rate=5e-4)
    fitted = CausalGenerator(folder, device="cpu").fit(
        texts, config, progress=lambda *_: ticks.append(time.perf_counter())
    )
    return fitted, without_first_step(ticks)


def without_first_step(ticks: list[float]) -> float:
    """The seconds of all steps, from the times at which they ended, as if the first had taken as long as the others."""
    return (ticks[-1] - ticks[0]) * len(ticks) / (len(ticks) - 1)


def trainer_epoch(folder: Any, texts: list[tuple[str, str]], precision: str) -> float:
    """The seconds of the same epoch by `Trainer`, without those of its first step, scaled to all steps."""
    import peft
    from transformers import TrainerCallback

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    auto: Any = AutoModelForCausalLM
    model = auto.from_pretrained(folder, dtype=torch.float32)
    rank = training._ADAPTER_RANK  # noqa: SLF001
    adapters = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, adapters)
    examples = []
    for source, target in texts:
        prompt = tokenizer(source + "\n")["input_ids"]
        answer = [*tokenizer(target, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        ids = [*prompt, *answer]
        examples.append(
            {"input_ids": ids, "labels": [*[-100] * len(prompt), *answer], "attention_mask": [1] * len(ids)}
        )
    ticks: list[float] = []

    class Clock(TrainerCallback):
        """The times at which steps end."""

        def on_step_end(self, *_: Any, **__: Any) -> None:
            """Note the time."""
            ticks.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH_SIZE,
            learning_rate=5e-4,
            bf16=precision == "bf16",
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
        )
        Trainer(
            model=model,
            args=arguments,
            train_dataset=examples,
            data_collator=DataCollatorForSeq2Seq(tokenizer, padding=True),
            callbacks=[Clock()],
        ).train()
    return without_first_step(ticks)


def decoding(fitted: CausalGenerator, inputs: list[str], corpus: str) -> Iterator[Measurement]:
    """Sampled texts of the trained generator and of `generate` with its weights, in batches of as many rows."""
    tokenizer, model = fitted.tokenizer, fitted.model
    config = DecodingConfig(
        strategy="sample", num_beams=1, top_k=50, temperature=0.8, max_new_tokens=NEW_TOKENS, drop_unfinished=False
    )
    prompts = sorted((fitted._prompt(text) for text in inputs), key=len)  # noqa: SLF001
    stop_ids = fitted.vocabulary.stop_ids
    fitted.batcher.budget = ROWS * -(-len(prompts[-1]) // 32) * 32

    def ours(seed: int) -> list[int]:
        seeds = [random.Random(f"{seed} {i}").getrandbits(32) for i in range(len(inputs))]
        written = fitted.generate(inputs, config, seeds)
        return [len(tokenizer(text, add_special_tokens=False)["input_ids"]) + 1 for [text] in written]

    def theirs(seed: int) -> list[int]:
        torch.manual_seed(seed)
        lengths = []
        for start in range(0, len(prompts), ROWS):
            rows = prompts[start : start + ROWS]
            ids, mask = fitted.pad(rows, max(map(len, rows)), left=True)
            with torch.inference_mode():
                out = model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    do_sample=True,
                    top_k=50,
                    top_p=1.0,
                    temperature=0.8,
                    max_new_tokens=NEW_TOKENS,
                    pad_token_id=tokenizer.eos_token_id,
                    eos_token_id=stop_ids,
                )
            written = out[:, ids.shape[1] :].tolist()
            lengths += [next((k for k, token in enumerate(row, 1) if token in stop_ids), len(row)) for row in written]
        return lengths

    rates, lengths = {}, {}
    for name, run in (("ours", ours), ("theirs", theirs)):
        begun = time.perf_counter()
        lengths[name] = run(1)
        rates[name] = sum(lengths[name]) / (time.perf_counter() - begun)
    yield compare(
        "sampled tokens of the trained generator, beside generate",
        2,
        rates["ours"],
        rates["theirs"],
        corpus,
        f"{len(inputs)} inputs in batches of {ROWS} rows, {fitted.dtype}; tokens of a text: mean "
        f"{fmean(lengths['ours']):.0f}, theirs {fmean(lengths['theirs']):.0f}",
    )
    again = [fitted.generate(inputs[:1] * ROWS, config, list(range(ROWS))) for _ in range(2)]
    yield remark("the same texts again with the same seeds", str(again[0] == again[1]), "", "")
