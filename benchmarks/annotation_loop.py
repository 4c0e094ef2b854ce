"""A simulated annotation loop: how many sentences `entaug suggest` needs for the F1 of randomly chosen ones.

    .venv/bin/python benchmarks/annotation_loop.py run wnut17 ncbi-disease --seeds 0 1 2
    .venv/bin/python benchmarks/annotation_loop.py run ewt --strategies random uncertainty entropy
    .venv/bin/python benchmarks/annotation_loop.py report

A pool of sentences is drawn from the training part of a corpus. A tagger is trained on the first 50, labels the rest of
the pool, and the sentences that `suggest` puts first are annotated with their gold labels; it is trained anew, and so
on. All trainings have the same number of steps, and each is scored on test sentences. Random choice begins with the
same 50 sentences. Records are lines of ``results/annotation-loop``; finished rounds are not repeated, and a loop goes
on where it ended.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import torch

import entaug
from entaug import Sentence, score
from entaug.taggers.base import ConfiguredTagger, configure_tagger
from entaug.taggers.encoders import LowerLayers
from entaug.teacher.label import label_sentences, most_informative
from places import DATA

RESULTS = Path(__file__).parent / "results"
FOLDER, PAGE = RESULTS / "annotation-loop", RESULTS / "annotation-loop.md"
MARK = "<!-- tables -->"  # in the page: what follows is written by this script


CORPORA = {
    "wnut17": ("wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"),
    "ncbi-disease": ("ncbi-disease/train.tsv", "ncbi-disease/test.tsv"),
    "bc2gm": ("bc2gm/train.tsv", "bc2gm/test.tsv"),
    "tdmsci": ("tdmsci/train_1500_v2.conll", "tdmsci/test_500_v2.conll"),
    "multiconer-en": ("multiconer-v1/15000/en_train.conll", "multiconer-v1/15000/en_dev.conll"),
    "ewt": ("uner/en_ewt/en_ewt-ud-dev.iob2", "uner/en_ewt/en_ewt-ud-test.iob2"),
}
"""Files of the training and of the test part."""
DEVELOPED_ON = ("ewt",)
POOL, TEST = 1500, 800
TAGGER = "trained_layers=1;steps=300"
FIRST = 50
RANDOM_SIZES = (200, 400)
SIZES = (100, 200, 280, 400)
"""Sizes after the first, which all strategies share; a loop ends where it has reached its goal."""
GOAL = 400
"""The number of random sentences whose F1 is to be reached."""


def load(name: str, seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """The pool of a seed, in the order in which random choice takes it, and the test sentences."""
    parts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file in CORPORA[name]:
            read = entaug.read(DATA / file, repair=True)
            parts.append(list({s.tokens: Sentence(s.tokens, s.mentions) for s in read}.values()))
    train, test = parts
    pool = Random(f"pool {seed}").sample(train, min(POOL, len(train)))
    return pool, Random(0).sample(test, min(TEST, len(test)))


# ------------------------------------------------------------------------------------------------------------- the loop


@dataclass
class Loop:
    """The rounds of a strategy on a corpus with a seed."""

    corpus: str
    seed: int
    strategy: str

    @property
    def key(self) -> dict[str, Any]:
        """What all records of the loop have in common."""
        return {"corpus": self.corpus, "seed": self.seed, "strategy": self.strategy}

    def rounds(self, records: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the records of rounds that are not there yet."""
        pool, test = load(self.corpus, self.seed)
        done = {one["size"]: one for one in records if self.key.items() <= one.items()}
        first = {"corpus": self.corpus, "seed": self.seed, "strategy": "first", "size": FIRST}
        chosen = list(range(FIRST))
        tagger: ConfiguredTagger | None = None
        if not any(first.items() <= one.items() for one in records):
            tagger, record = self._train(pool, chosen, test)
            yield {**first, **record}
        goal = math.inf if self.strategy == "random" else goal_of(records, self.corpus, self.seed)["f1"]
        for size in RANDOM_SIZES if self.strategy == "random" else SIZES:
            if size in done:
                chosen, tagger = done[size]["chosen"], None
                if done[size]["f1"] >= goal:
                    return
                continue
            if self.strategy == "random":
                chosen = list(range(size))
            else:
                tagger = tagger or fit([pool[i] for i in chosen], self.seed)
                chosen = [*chosen, *self._choose(pool, chosen, tagger, size - len(chosen))]
            tagger, record = self._train(pool, chosen, test)
            yield {**self.key, "size": size, **record, "chosen": chosen}
            if record["f1"] >= goal:
                return

    def _choose(
        self, pool: Sequence[Sentence], chosen: Sequence[int], tagger: ConfiguredTagger, number: int
    ) -> Iterator[int]:
        """Choose sentences as `suggest` does."""
        taken = set(chosen)
        left = [Sentence(pool[i].tokens, id=str(i)) for i in range(len(pool)) if i not in taken]
        strategy: Any = self.strategy
        best, _ = most_informative(label_sentences(left, tagger), number, strategy=strategy, seed=self.seed)
        return (int(one.sentence.id or "") for one, _ in best)

    def _train(
        self, pool: Sequence[Sentence], chosen: Sequence[int], test: Sequence[Sentence]
    ) -> tuple[ConfiguredTagger, dict[str, Any]]:
        begun = time.process_time()
        sentences = [pool[i] for i in chosen]
        tagger = fit(sentences, self.seed)
        f1 = score(test, tagger.predict([Sentence(s.tokens) for s in test])).micro.f1
        record = {
            "f1": round(100 * f1, 2),
            "tokens": sum(map(len, sentences)),
            "mentions": sum(len(s.mentions) for s in sentences),
            "cpu_seconds": round(time.process_time() - begun, 1),
        }
        return tagger, record


def goal_of(records: Iterable[dict[str, Any]], corpus: str, seed: int) -> dict[str, Any]:
    """The record of random choice whose F1 is to be reached; empty if there is none yet."""
    wanted = {"corpus": corpus, "seed": seed, "strategy": "random", "size": GOAL}
    return next((one for one in records if wanted.items() <= one.items()), {})


def fit(sentences: Sequence[Sentence], seed: int) -> ConfiguredTagger:
    """Train the tagger."""
    return configure_tagger("linear", f"{TAGGER};seed={seed}").fit(sentences)


def share_lower_layers() -> None:
    """Keep what the lower layers compute for a sentence: they are not trained, so it is the same in all trainings."""
    shared: dict[tuple[int, ...], torch.Tensor] = {}

    def clear(layers: LowerLayers) -> None:
        layers._kept, layers._bytes = shared, 0  # noqa: SLF001

    setattr(LowerLayers, "clear", clear)  # noqa: B010 - types


def read_records() -> list[dict[str, Any]]:
    """All records so far."""
    lines = (line for file in sorted(FOLDER.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines())
    return [json.loads(line) for line in lines]


def run(corpora: Iterable[str], seeds: Iterable[int], strategies: Sequence[str]) -> None:
    """Run the loops, seed by seed."""
    torch.set_num_threads(1)
    share_lower_layers()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for corpus in corpora:
            for strategy in strategies:
                for record in Loop(corpus, seed, strategy).rounds(read_records()):
                    with (FOLDER / f"{corpus}.jsonl").open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps(record) + "\n")
                    print({name: value for name, value in record.items() if name != "chosen"}, flush=True)


# ------------------------------------------------------------------------------------------------------------- the page


def curve(
    records: Iterable[dict[str, Any]], corpus: str, seed: int, strategy: str, by: str
) -> list[tuple[float, float]]:
    """The amounts of annotation and their F1, the first sentences included."""
    wanted = [
        r for r in records if r["corpus"] == corpus and r["seed"] == seed and r["strategy"] in ("first", strategy)
    ]
    return sorted((float(r[by]), r["f1"]) for r in wanted)


def amount_for(points: Sequence[tuple[float, float]], f1: float) -> float:
    """The amount at which the best F1 so far reaches a value, between two rounds linear in the logarithm."""
    best: list[tuple[float, float]] = []
    for amount, value in points:
        best.append((amount, max(value, best[-1][1] if best else value)))
    for (a, low), (b, high) in pairwise(best):
        if low >= f1:
            return a
        if high >= f1:
            return a * math.exp(math.log(b / a) * (f1 - low) / (high - low))
    return math.inf


def ratio(records: Sequence[dict[str, Any]], corpus: str, seed: int, strategy: str, by: str) -> float | None:
    """The amount for the F1 of random choice, as a share of that of random choice; None if a loop is not finished."""
    goal = goal_of(records, corpus, seed)
    points = curve(records, corpus, seed, strategy, by)
    if not goal or strategy == "random":
        return None
    amount = amount_for(points, goal["f1"])
    return amount / goal[by] if amount < math.inf or len(points) > len(SIZES) else None


def shown(ratios: Sequence[float]) -> str:
    """The median and range of some shares, in percent."""
    if not ratios:
        return "-"
    text = [f"{100 * x:.0f}" if x < math.inf else f"> {100 * SIZES[-1] / GOAL:.0f}" for x in sorted(ratios)]
    middle = (
        text[len(text) // 2]
        if len(text) % 2
        else f"{100 * fmean(sorted(ratios)[len(text) // 2 - 1 : len(text) // 2 + 1]):.0f}"
    )
    return middle if len(text) == 1 else f"{middle} ({text[0]} to {text[-1]})"


def tables(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The tables of the page."""
    corpora = [name for name in CORPORA if any(r["corpus"] == name for r in records)]
    for corpus in corpora:
        seeds = sorted({r["seed"] for r in records if r["corpus"] == corpus})
        sizes = [FIRST, *SIZES]
        yield f"\n## {corpus}{' *' if corpus in DEVELOPED_ON else ''}, seeds {', '.join(map(str, seeds))}\n\n"
        yield f"| choice | {' | '.join(map(str, sizes))} | sentences, % | tokens, % |\n"
        yield f"|---|{'---:|' * (len(sizes) + 2)}\n"
        for strategy in sorted(
            {r["strategy"] for r in records if r["corpus"] == corpus} - {"first"}, key=lambda s: (s != "random", s)
        ):
            own = [r for r in records if r["corpus"] == corpus and r["strategy"] in ("first", strategy)]
            cells = [[r["f1"] for r in own if r["size"] == size] for size in sizes]
            found = {
                by: [x for s in seeds if (x := ratio(records, corpus, s, strategy, by)) is not None]
                for by in ("size", "tokens")
            }
            shares = ["100", "100"] if strategy == "random" else [shown(found["size"]), shown(found["tokens"])]
            means = [f"{fmean(cell):.1f}" if cell else "-" for cell in cells]
            yield f"| {' | '.join([strategy, *means, *shares])} |\n"


def summary(records: Sequence[dict[str, Any]], strategy: str) -> Iterator[str]:
    """The share over all corpora but those on which the choice was developed."""
    for by, name in (("size", "sentences"), ("tokens", "tokens")):
        means = {}
        for corpus in CORPORA:
            seeds = {r["seed"] for r in records if r["corpus"] == corpus}
            found = [x for s in sorted(seeds) if (x := ratio(records, corpus, s, strategy, by)) is not None]
            if found and corpus not in DEVELOPED_ON:
                limit = 1.0 if by == "size" else max(1.0, *(x for x in found if x < math.inf), 1.0)
                means[corpus] = fmean(math.log(min(x, limit)) for x in found)
        if len(means) < 3:
            continue
        middle, error = fmean(means.values()), stdev(means.values()) / len(means) ** 0.5
        quantile = {3: 4.30, 4: 3.18, 5: 2.78}[len(means)]  # of the t distribution
        low, high = (100 * math.exp(middle + sign * quantile * error) for sign in (-1, 1))
        values = ", ".join(f"{corpus} {100 * math.exp(value):.0f}" for corpus, value in means.items())
        yield (
            f"- `{strategy}`: {100 * math.exp(middle):.0f} % of the {name} (95 % interval over {len(means)} corpora "
            f"{low:.0f} to {high:.0f}): {values}\n"
        )


def report() -> None:
    """Write the tables into the page."""
    records = read_records()
    head = PAGE.read_text("utf-8").partition(MARK)[0] if PAGE.exists() else "# A simulated annotation loop\n\n"
    strategies = sorted({r["strategy"] for r in records} - {"first", "random"})
    lines = [f"{MARK}\n\n## For the F1 of {GOAL} random sentences\n\n"]
    lines += [line for strategy in strategies for line in summary(records, strategy)]
    lines += tables(records)
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "numpy"))
    lines.append(f"\n{platform.machine()}, one thread, Python {platform.python_version()}, {packages}.\n")
    PAGE.write_text(head + "".join(lines), "utf-8")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("corpora", nargs="+", choices=list(CORPORA))
    running.add_argument("--seeds", nargs="+", type=int, default=[0])
    running.add_argument("--strategies", nargs="+", default=["random", "uncertainty"])
    commands.add_parser("report")
    args = parser.parse_args()
    if args.command == "run":
        run(args.corpora, args.seeds, args.strategies)
    else:
        report()


if __name__ == "__main__":
    main()
