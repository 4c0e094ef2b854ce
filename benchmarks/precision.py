"""fp32 and bf16 on a processor, side by side in one run: CPU seconds of one thread, in turns, the median of each.

`OMP_NUM_THREADS=1 python benchmarks/precision.py` writes benchmarks/results/precision.md, but for the text above its
table.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

import entaug
from entaug.backends.compute import use_compute_settings
from entaug.backends.resolve import resolve
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from places import DATA, ROOT, write_tables
from records import environment

PRECISIONS = ("fp32", "bf16")
ROUNDS = 3


def tasks() -> dict[str, Callable[[], Any]]:
    """What is measured; models are loaded before."""
    gold = list(islice((s for s in entaug.read(DATA / "crossner/ai/train.txt") if s.mentions), 40))
    pairs = [entaug.formats.AugmentedPair(sentence) for sentence in gold]
    masked, causal = resolve("masked_lm", "mpnet-mlm"), resolve("causal_lm", "smollm2")
    writer = {"copies": 1, "epochs": 1, "max_attempts": 1, "candidates": 1, "guard": False}
    learned = entaug.create_augmenter("entda", **writer).fit(gold[:16])
    config = TaggerTrainingConfig(steps=20, batch_size=8, seed=0)
    return {
        "20 steps of the linear tagger (MiniLM)": lambda: create_tagger("linear", encoder="minilm").fit(
            gold, None, config
        ),
        "an epoch of 16 sentences of `entda` (SmolLM2)": lambda: entaug.create_augmenter("entda", **writer).fit(
            gold[:16]
        ),
        "8 sentences of `entda`": lambda: list(learned.augment(gold[:8])),
        "40 gaps filled (MPNet)": lambda: masked.fill([[*_halves(s), " ."] for s in gold], 20),
        "perplexity of 40 sentences (SmolLM2)": lambda: entaug.metrics.measure_quality(
            pairs, gold, measures=["perplexity"], causal_lm=causal
        ),
    }


def _halves(sentence: entaug.Sentence) -> list[str | None]:
    middle = len(sentence) // 2
    return [" ".join(sentence.tokens[:middle]) + " ", None, " " + " ".join(sentence.tokens[middle:])]


def main() -> None:
    """Measure, and write the page."""
    torch.set_num_threads(1)
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for round_ in range(ROUNDS):
        for precision in PRECISIONS:
            with use_compute_settings(device="cpu", precision=precision):
                for name, task in tasks().items():
                    begun = time.process_time()
                    task()
                    seconds[name, precision].append(time.process_time() - begun)
                    print(round_, precision, name, seconds[name, precision][-1], file=sys.stderr, flush=True)
    lines = [
        f"`benchmarks/precision.py`, {environment(1)}\n",
        "| CPU seconds, one thread | fp32 | bf16 | fp32 is so many times as fast |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(name for name, _ in seconds):
        fp32, bf16 = (statistics.median(seconds[name, precision]) for precision in PRECISIONS)
        lines.append(f"| {name} | {fp32:.1f} | {bf16:.1f} | {bf16 / fp32:.2f} |")
    write_tables(ROOT / "benchmarks" / "results" / "precision.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
