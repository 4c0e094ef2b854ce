"""The linear tagger beside a plain transformers loop: the same model, steps, batch size, rates and seeds.

The plain loop is what tutorials show: AutoModelForTokenClassification, a shuffled DataLoader, padding by batch, AdamW,
a linear schedule, clipping, in fp32. Both are also told what they reach on the test set.

    .venv/bin/python benchmarks/taggers.py --only crossner-ai --write benchmarks/taggers.md
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parent))
import torch
import transformers

import entaug
from entaug.backends.models import catalogue as models
from entaug.core.tags import decode
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig
from entaug.taggers.flat import LinearTagger

DATA = Path(os.environ.get("ENTAUG_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CORPORA = {
    "crossner-ai": ("crossner/ai/train.txt", "crossner/ai/test.txt", 100),
    "ncbi-disease": ("ncbi-disease/train.tsv", "ncbi-disease/test.tsv", 200),
}
STEPS, BATCH, RATE, HEAD_RATE, WARMUP = 120, 16, 2e-4, 1e-3, 0.1


def plain(train: list[Any], test: list[Any], seed: int) -> tuple[float, float]:
    """Seconds and micro-F1 of the plain loop."""
    torch.manual_seed(seed)
    labels = sorted({m.label for s in train for m in s.mentions})
    tags = ["O", *(f"{p}-{label}" for label in labels for p in "BI")]
    folder = models.model_path("minilm")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder, num_labels=len(tags))

    def encoded(sentence: Any, gold: bool) -> dict[str, Any]:
        made = tokenizer(list(sentence.tokens), is_split_into_words=True, truncation=True)
        words, seen, row = made.word_ids(), set(), []
        own = sentence.iob() if gold else []
        for word in words:
            first = word is not None and word not in seen
            row.append(tags.index(own[word]) if first and gold else -100)
            seen.add(word)
        return {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"], "labels": row}

    collate = transformers.DataCollatorForTokenClassification(tokenizer)
    order = torch.Generator().manual_seed(seed)
    rows: Any = [encoded(s, True) for s in train]
    loader: Any = torch.utils.data.DataLoader(rows, batch_size=BATCH, shuffle=True, collate_fn=collate, generator=order)
    head = list(model.classifier.parameters())
    groups = [{"params": list(model.bert.parameters()), "lr": RATE}, {"params": head, "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule: Any = transformers.get_linear_schedule_with_warmup(  # type: ignore[no-untyped-call]
        optimizer, math.ceil(STEPS * WARMUP), STEPS
    )
    model.train()
    done, begun = 0, time.monotonic()
    while done < STEPS:
        for batch in loader:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            done += 1
            if done == STEPS:
                break
    seconds = time.monotonic() - begun
    model.eval()
    found = []
    with torch.inference_mode():
        for sentence in test:
            made = tokenizer(list(sentence.tokens), is_split_into_words=True, truncation=True, return_tensors="pt")
            best = model(**made).logits[0].argmax(-1).tolist()
            row = ["O"] * len(sentence.tokens)
            for at, word in reversed(list(enumerate(made.word_ids()))):
                if word is not None:
                    row[word] = tags[best[at]]
            found.append(sentence.with_(mentions=decode(row, repairs=Counter())))
    return seconds, score(test, found).micro.f1


def ours(precision: Literal["fp32", "bf16"]) -> Callable[[list[Any], list[Any], int], tuple[float, float]]:
    """Seconds and micro-F1 of our tagger."""

    def run(train: list[Any], test: list[Any], seed: int) -> tuple[float, float]:
        marks: list[float] = []
        tagger = LinearTagger(device="cpu", precision=precision)
        config = TaggerTrainingConfig(
            steps=STEPS,
            batch_size=BATCH,
            learning_rate=RATE,
            head_learning_rate=HEAD_RATE,
            warmup_ratio=WARMUP,
            seed=seed,
        )
        tagger.fit(train, config=config, progress=lambda *_: marks.append(time.monotonic()))
        # From the end of the first step, as loading is not the loop; so one step less is counted.
        return (marks[-1] - marks[0]) * STEPS / (STEPS - 1), score(test, tagger.predict(test)).micro.f1

    return run


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CORPORA), help="corpora, with commas between")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, entaug {entaug.__version__}"
    lines = [
        "# The linear tagger beside a plain transformers loop",
        "",
        f"`benchmarks/taggers.py` on {platform.machine()}, {args.threads} threads; {versions}.",
        f"MiniLM, {STEPS} steps of {BATCH} sentences, seeds 0 to {args.seeds - 1}, run in turns.",
        "",
        "| corpus | loop | steps/s | times plain | F1 on test, mean ± sd |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name in args.only.split(","):
        train_file, test_file, n = CORPORA[name]
        train, test = list(entaug.read(DATA / train_file))[:n], list(entaug.read(DATA / test_file))
        loops = {"plain, fp32": plain, "ours, fp32": ours("fp32"), "ours, bf16": ours("bf16")}
        taken: dict[str, list[tuple[float, float]]] = {loop: [] for loop in loops}
        for seed in range(args.seeds):
            for loop, run in loops.items():
                taken[loop].append(run(train, test, seed))
        base = statistics.median(seconds for seconds, _ in taken["plain, fp32"])
        for loop, found in taken.items():
            seconds = statistics.median(s for s, _ in found)
            scores = [100 * f1 for _, f1 in found]
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            cells = (
                name,
                loop,
                f"{STEPS / seconds:.2f}",
                f"{base / seconds:.2f}",
                f"{statistics.mean(scores):.1f} ± {spread:.1f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if args.write:
        args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
