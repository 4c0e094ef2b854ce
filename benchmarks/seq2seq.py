"""The sequence-to-sequence tagger with a new decoder beside the grid, on nested and discontinuous mentions of GENIA.

    OMP_NUM_THREADS=1 python benchmarks/seq2seq.py --data ../shared/data

trains both on the same sentences for as many steps, and prints a table; see benchmarks/results/seq2seq.md.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random

import torch

import entaug
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig, create_tagger

KINDS = ("flat", "inner", "outer", "discontinuous")


def draw(path: Path, number: int, seed: int, *, with_gaps: bool) -> list[entaug.Sentence]:
    """Draw sentences, half of which have a discontinuous mention if `with_gaps`."""
    sentences = list(entaug.read(path))
    if not with_gaps:
        return Random(seed).sample(sentences, number)
    gaps = [s for s in sentences if any(not m.is_contiguous for m in s.mentions)]
    others = [s for s in sentences if all(m.is_contiguous for m in s.mentions)]
    return [*Random(seed).sample(gaps, number // 2), *Random(seed).sample(others, number - number // 2)]


def row(cells: Sequence[object]) -> None:
    """Print a row of the table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--corpora", nargs="+", default=["nested", "discontinuous"])
    parser.add_argument("--taggers", nargs="+", default=["seq2seq", "w2ner"], help="NAME or seq2seq:REPRESENTATION")
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--test", type=int, default=100)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    print(f"{platform.machine()}, Python {platform.python_version()}, {versions}\n")
    row(["corpus", "tagger", "F1", "precision", "recall", *(f"F1 {kind}" for kind in KINDS), "training", "prediction"])
    row(["---", "---", *["---:"] * (5 + len(KINDS))])
    for corpus in args.corpora:
        folder, gaps = args.data / "genia" / f"{corpus}-jsonl", corpus == "discontinuous"
        [train_file] = [path for path in sorted(folder.glob("train.jsonl*")) if path.suffix in (".jsonl", ".gz")][:1]
        train = draw(train_file, args.sentences, args.seed, with_gaps=gaps)
        test = draw(folder / "test.jsonl", args.test, args.seed, with_gaps=gaps)
        for name in args.taggers:
            base, _, representation = name.partition(":")
            options = {"representation": representation} if representation else {}
            config = TaggerTrainingConfig(steps=args.steps, batch_size=args.batch_size, seed=args.seed)
            begun = time.process_time()
            tagger = create_tagger(base, encoder="minilm", **options).fit(train, config=config)
            trained = time.process_time()
            scores = score(test, tagger.predict(test))
            predicted = time.process_time()
            micro = scores.micro
            kinds = [f"{100 * scores.by_kind[k].f1:.1f}" if k in scores.by_kind else "" for k in KINDS]
            cells = [f"{100 * value:.1f}" for value in (micro.f1, micro.precision, micro.recall)]
            row([corpus, name, *cells, *kinds, f"{trained - begun:.0f} s", f"{predicted - trained:.0f} s"])


if __name__ == "__main__":
    main()
