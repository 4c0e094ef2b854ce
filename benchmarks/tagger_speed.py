"""Speed of training a tagger on the CPU, beside another version of the library, in one run.

Each version trains in a process of its own with one thread. They take turns, a few steps at a time, so that both see
the same machine; the time of a step is the CPU time of its process, and the figures are medians.

Usage::

    git worktree add --detach BASELINE 122e09c
    python benchmarks/tagger_speed.py speed BASELINE/src --steps 60
    python benchmarks/tagger_speed.py speed BASELINE/src --steps 320 --tagger w2ner --batch-sizes 8
    python benchmarks/tagger_speed.py layers                 # of this version, with fewer layers of MPNet trained
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from places import DATA, ROOT
from records import environment

CORPORA = {
    "crossner-ai": "crossner/ai/train.txt",
    "ncbi-disease": "ncbi-disease/train.tsv",
    "genia-discontinuous": "genia/discontinuous-jsonl/train.jsonl.gz",
}
TAGGERS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "linear": (["crossner-ai", "ncbi-disease"], {}),
    "w2ner": (["genia-discontinuous"], {"head_learning_rate": 0.002}),
}
"""The corpora of a tagger, and settings of its training."""
SENTENCES = 100


def work(tagger: str, corpus: str, batch_size: int, steps: int, seed: int, block: int) -> None:
    """Train, in the process of one version; a line on standard input lets the next block of steps begin."""
    import torch

    import entaug
    from entaug.taggers.base import TaggerTrainingConfig, create_tagger

    torch.set_num_threads(1)
    train = list(islice(entaug.read(DATA / CORPORA[corpus]), SENTENCES))
    begun = [0.0]
    times: list[float] = []

    def progress(done: int, total: int, loss: float) -> None:
        del loss
        times.append(time.process_time() - begun[0])
        if done % block == 0 and done < total:
            _wait(times)
        begun[0] = time.process_time()

    made: Any = create_tagger(tagger, encoder="minilm", device="cpu")
    config = TaggerTrainingConfig(steps=steps, batch_size=batch_size, seed=seed, **TAGGERS[tagger][1])
    _wait(times)
    begun[0] = time.process_time()
    made.fit(train, config=config, progress=progress)
    print(json.dumps({"times": times}), flush=True)


def _wait(times: list[float]) -> None:
    print(json.dumps({"done": len(times)}), flush=True)
    sys.stdin.readline()


def start(sources: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start the process of one version."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "work", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def take_turns(versions: dict[str, Path], *training: object, block: int = 5) -> dict[str, Any]:
    """Train with each version, a block of steps at a time; the results by version."""
    processes = {name: start(sources, *training, 0, block) for name, sources in versions.items()}
    results: dict[str, Any] = {}
    for process in processes.values():
        assert process.stdout is not None
        process.stdout.readline()  # ready
    while len(results) < len(processes):
        for name, process in processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            told = json.loads(process.stdout.readline())
            if "times" in told:
                results[name] = told
    return results


def measure_speed(versions: dict[str, Path], tagger: str, steps: int, batch_sizes: list[int]) -> None:
    """Print a table of steps per second, in the first and in the last quarter of the training."""
    print(environment(1) + "\n")
    print("| corpus | batch | part | steps/s before | steps/s now | ratio |")
    print("|---|---|---|---|---|---|")
    for corpus in TAGGERS[tagger][0]:
        for batch_size in batch_sizes:
            results = take_turns(versions, tagger, corpus, batch_size, steps)
            for part, steps_of in {"first": slice(5, max(6, steps // 4)), "last": slice(-(steps // 4), None)}.items():
                before, now = (1 / statistics.median(results[name]["times"][steps_of]) for name in versions)
                setting = f"{corpus}-{SENTENCES} | {batch_size} | {part}"
                print(f"| {setting} | {before:.2f} | {now:.2f} | {now / before:.2f} |", flush=True)


def measure_layers() -> None:
    """Print a table of the time of a step in the first and the third epoch, by the number of trained layers."""
    import torch

    import entaug
    from entaug.taggers.base import TaggerTrainingConfig, create_tagger

    torch.set_num_threads(1)
    train = list(entaug.read(DATA / CORPORA["crossner-ai"]))[:SENTENCES]
    in_epoch = -(-len(train) // 8)
    medians: dict[int | None, tuple[float, float]] = {}
    for layers in (None, 6, 4, 0):
        clock = [time.process_time()]
        create_tagger("linear", encoder="mpnet", device="cpu", precision="fp32", trained_layers=layers).fit(
            train,
            config=TaggerTrainingConfig(steps=3 * in_epoch, batch_size=8),
            progress=lambda *_, clock=clock: clock.append(time.process_time()),
        )
        times = [after - before for before, after in pairwise(clock)][1:]  # without the first, which warms up
        medians[layers] = statistics.median(times[: in_epoch - 1]), statistics.median(times[2 * in_epoch :])
    print(environment(1) + "\n")
    print("| trained layers of 12 | first epoch, times as fast | third epoch, times as fast |")
    print("|---|---|---|")
    for layers, own in medians.items():
        first, third = (whole / part for whole, part in zip(medians[None], own, strict=True))
        print(f"| {'all' if layers is None else layers} | {first:.2f} | {third:.2f} |")


def main() -> None:
    """Parse the command line."""
    if sys.argv[1:] == ["layers"]:
        measure_layers()
        return
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["speed"])
    parser.add_argument("baseline", type=Path, help="the sources of the version before")
    parser.add_argument("--tagger", choices=TAGGERS, default="linear")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[8, 16])
    args = parser.parse_args()
    versions = {"before": args.baseline.resolve(), "now": ROOT / "src"}
    measure_speed(versions, args.tagger, args.steps, args.batch_sizes)


if __name__ == "__main__":
    main()
