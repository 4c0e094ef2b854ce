"""What the likeliest valid sequence of tags brings over the likeliest tag of each word, with the same weights.

    python benchmarks/valid_tags.py --data ../shared/data --seeds 2 --steps 400

prints a table of F1 on test for each corpus and seed; see benchmarks/results/valid-tags.md.
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from random import Random

import entaug
from entaug.core import tags
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig, create_tagger


def corpora(data: Path, size: int, num_test: int) -> Iterator[tuple[str, list[entaug.Sentence], list[entaug.Sentence]]]:
    """Name, training sentences and test sentences of each corpus, drawn once."""
    for name, train, test in (
        ("crossner-ai", "crossner/ai/train.txt", "crossner/ai/test.txt"),
        ("ncbi-disease", "ncbi-disease/train.tsv", "ncbi-disease/test.tsv"),
        ("wnut17", "wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"),
    ):
        drawn = []
        for part, number in ((train, size), (test, num_test)):
            sentences = list(entaug.read(data / part))
            drawn.append(Random(f"{name} {part}").sample(sentences, min(number, len(sentences))))
        yield name, drawn[0], drawn[1]


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "numpy"))
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {versions}\n")
    print(
        "| corpus | sentences | seed | tag by tag: F1 | precision | recall | valid sequence: F1 | precision | recall |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, train, test in corpora(args.data, 100, 400):
        for seed in range(1, args.seeds + 1):
            config = TaggerTrainingConfig(steps=args.steps, batch_size=8, seed=seed)
            tagger = create_tagger("linear", encoder="minilm").fit(train, config=config)
            soft = tagger.tag_probabilities(test)
            by_tag = [
                # A stray I- tag begins a mention, as in conlleval.
                sentence.with_(mentions=tags.decode(one.best_tags(), repairs=Counter()))
                for sentence, one in zip(test, soft, strict=True)
            ]
            valid = [sentence.with_(mentions=one.mentions()) for sentence, one in zip(test, soft, strict=True)]
            cells = []
            for predicted in (by_tag, valid):
                micro = score(test, predicted).micro
                cells += [f"{100 * value:.1f}" for value in (micro.f1, micro.precision, micro.recall)]
            print(f"| {name} | {len(train)} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
