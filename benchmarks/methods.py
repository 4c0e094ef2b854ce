"""Every method on the same sentences: what it makes, how fluent and how new, in the shape of the papers' tables.

    .venv/bin/python benchmarks/methods.py --write benchmarks/results/methods.md

The measures are those of ACLM's table 3 and EnTDA's tables 5 and 6, as `entaug quality` has them (what they are:
`entaug list measures`), shares in percent. Perplexity is SmolLM2's, not fine-tuned on the data. What DAGA and MulDA
make, which has no source, is compared with the sentence whose place it takes.

Yield is what was kept of all that was drawn. Times are of the processor, so that other processes hardly change them.
Each method runs in a process of its own, so that its peak of memory is its own; what `--only` leaves out stays as it
was in the file of records beside the table. Both that file and the one with twenty sentences of each method stay out of
the repository: they hold what is left of the corpus's own sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from places import DATA
from records import machine

CORPORA = {
    "crossner-ai": "crossner/ai/train.txt",
    "multiconer-en": "multiconer-v1/15000/en_train.conll",
    "ncbi-disease": "ncbi-disease/train.tsv",
}

MEASURED = {
    "perplexity": "perplexity",
    "diversity-E": "diversity_e",
    "diversity-N": "diversity_n",
    "diversity-L": "diversity_l",
    "TTR": "type_token_ratio",
    "distinct-2": "distinct_2",
}
"""Columns, and the measures of `entaug quality` in them."""


def measure(name: str, corpus: str, sentences: int, copies: int) -> dict[str, Any]:
    """One method, in this process."""
    import entaug
    from entaug.backends.models.catalogue import model_path
    from entaug.backends.transformers.causal_lm import TransformersCausalLM
    from entaug.metrics.quality import MEASURES

    found = {s.key: s for s in islice((s for s in entaug.read(DATA / CORPORA[corpus]) if s.mentions), sentences)}
    gold = list(found.values())
    sources = {s.key: s for s in gold}
    record: dict[str, Any] = {"method": name, "version": entaug.__version__}
    pairs = [entaug.formats.AugmentedPair(s) for s in gold]
    if name != "gold":
        method = entaug.create_augmenter(name, copies=copies)
        begun = time.process_time()
        method.fit(gold)
        fitted = time.process_time()
        made = list(method.augment(gold))
        pairs = [entaug.formats.AugmentedPair(s, sources[s.fields["entaug"]["sources"][0]]) for s in made]
        tally = method.statistics_
        drawn = tally.accepted + tally.rejected.total()
        record |= {
            "signature": method.signature,
            "made": tally.accepted,
            "asked": tally.requested,
            "yield": tally.accepted / max(1, drawn),
            "reasons": dict(tally.rejected.most_common()),
            "learning": fitted - begun,
            "making": time.process_time() - fitted,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            "examples": [str(s) for s in made[:: max(1, len(made) // 20)][:20]],
        }
    lm = TransformersCausalLM(model_path("smollm2"), device="cpu")
    quality = entaug.metrics.measure_quality(pairs, gold, measures=list(MEASURED.values()), causal_lm=lm)
    for column, one in MEASURED.items():
        value = quality.values[one]
        record[column] = 100 * value if value is not None and MEASURES[one].unit == "share" else value
    return record


COLUMNS = (
    "made",
    "yield",
    "perplexity",
    "diversity-E",
    "diversity-N",
    "diversity-L",
    "TTR",
    "distinct-2",
    "learning",
    "making",
    "version",
)


def table(records: dict[str, dict[str, Any]], corpus: str, sentences: int, copies: int) -> str:
    """The records as Markdown."""
    import torch

    lines = [
        "# Every method on the same sentences",
        "",
        f"`benchmarks/methods.py`: {corpus}, the first {sentences} sentences with mentions, {copies} copies, seed 0,",
        "defaults.",
        f"{machine(1)}; Python {platform.python_version()}, torch {torch.__version__}; the last column is",
        "the version of entaug. What the others mean stands at the head of the script; times are CPU seconds.",
        "",
        "| method | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for name, record in records.items():
        cells = []
        for column in COLUMNS:
            value = record.get(column)
            if value is None:
                cells.append("-")
            elif column == "version":
                cells.append(value)
            elif column == "made":
                cells.append(f"{value} of {record['asked']}")
            elif column == "yield":
                cells.append(f"{value:.0%}")
            else:
                cells.append(f"{value:.1f}" if value < 100 else f"{value:.0f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "## Why the others were not kept", ""]
    for name, record in records.items():
        if record.get("reasons"):
            told = "; ".join(f"{reason}: {count}" for reason, count in record["reasons"].items())
            lines.append(f"- {name}: {told}")
    return "\n".join(lines).rstrip() + "\n"


def examples(records: dict[str, dict[str, Any]]) -> str:
    """Twenty sentences of each method, to be read before the table is believed."""
    lines: list[str] = []
    for name, record in records.items():
        lines += [f"### {name}", "", *(f"    {text}" for text in record.get("examples", [])), ""]
    return "\n".join(lines)


def main() -> None:
    """Measure and write."""
    import entaug

    names = ["gold", *entaug.methods.METHODS]
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--corpus", choices=list(CORPORA), default="crossner-ai")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--one", choices=names, help="a method alone, in this process, as JSON")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.corpus, args.sentences, args.copies), ensure_ascii=False))
        return
    kept = args.write.with_suffix(".jsonl") if args.write else None
    records: dict[str, dict[str, Any]] = {}
    if kept and kept.exists():
        records = {r["method"]: r for r in map(json.loads, kept.read_text(encoding="utf-8").splitlines())}
    for name in args.only:
        size = ["--corpus", args.corpus, "--sentences", str(args.sentences), "--copies", str(args.copies)]
        command = [sys.executable, __file__, "--one", name, *size]
        done = subprocess.run(
            command, capture_output=True, check=False, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        if done.returncode:
            print(f"{name} failed: {done.stderr[-2000:]}", flush=True)
            continue
        records[name] = json.loads(done.stdout.splitlines()[-1])
        records = {one: records[one] for one in names if one in records}
        print(name, {k: v for k, v in records[name].items() if k not in ("examples", "signature")}, flush=True)
        if args.write and kept:
            kept.write_text(
                "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records.values()), encoding="utf-8"
            )
            args.write.with_suffix(".examples.md").write_text(examples(records), encoding="utf-8")
            args.write.write_text(table(records, args.corpus, args.sentences, args.copies), encoding="utf-8")


if __name__ == "__main__":
    main()
