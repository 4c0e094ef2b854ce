"""Taggers with the multilingual starter encoder beside those with the English one, and the learning rate it needs.

    python benchmarks/multilingual_encoder.py --data ../shared/data -o benchmarks/results/multilingual-encoder

trains the linear tagger on 200 sentences of each language for as many steps with each encoder and learning rate, and
writes the table. Finished trainings are kept in the records, and not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import entaug
from entaug.core.languages import language_name
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from places import write_tables

UNER = {"da": "da_ddt", "hr": "hr_set"}
MULTICONER = ("bn", "de", "en", "es", "hi", "ko", "nl", "tr", "zh")  # the development part of Russian is damaged
SENTENCES, STEPS, BATCH_SIZE, TEST = 200, 500, 8, 500
SETTINGS = (("minilm", 2e-4), ("multilingual-e5", 1e-4), ("multilingual-e5", 2e-4), ("multilingual-e5", 5e-5))


def files(data: Path, language: str) -> tuple[Path, Path]:
    """The files of training and of held-out sentences; those of MultiCoNER are its samples and development parts."""
    if name := UNER.get(language):
        folder = data / "uner" / name
        return folder / f"{name}-ud-train.iob2", folder / f"{name}-ud-test.iob2"
    folder = data / "multiconer-v1"
    return folder / "200" / f"{language}_sample_train.conll", folder / "15000" / f"{language}_dev.conll"


def measure(data: Path, language: str, encoder: str, rate: float, seed: int) -> dict[str, Any]:
    """Train and score one tagger."""
    train, test = (list(entaug.read(path, repair=True)) for path in files(data, language))
    config = TaggerTrainingConfig(steps=STEPS, batch_size=BATCH_SIZE, learning_rate=rate, seed=seed)
    begun = time.process_time()
    tagger = create_tagger("linear", encoder=encoder).fit(train[:SENTENCES], config=config)
    seconds = time.process_time() - begun
    f1 = score(test[:TEST], tagger.predict(test[:TEST])).micro.f1
    key = {"language": language, "encoder": encoder, "learning_rate": rate, "seed": seed}
    return {**key, "f1": round(100 * f1, 2), "seconds": round(seconds)}


def page(records: list[dict[str, Any]]) -> str:
    """Return the table of the means over seeds."""
    settings = [s for s in SETTINGS if any((r["encoder"], r["learning_rate"]) == s for r in records)]
    lines = [
        f"| language | {' | '.join(f'{name}, {rate:g}' for name, rate in settings)} |",
        f"|---|{'---:|' * len(settings)}",
    ]
    by_language: dict[str, list[str]] = {}
    means: list[list[float]] = []
    for language in sorted({r["language"] for r in records}):
        cells = [
            [r["f1"] for r in records if (r["language"], r["encoder"], r["learning_rate"]) == (language, *setting)]
            for setting in settings
        ]
        by_language[language_name(language)] = [f"{mean(cell):.1f}" if cell else "-" for cell in cells]
        if all(cells):
            means.append([mean(cell) for cell in cells])
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in by_language.items()]
    if means:
        average = " | ".join(f"{mean(column):.1f}" for column in zip(*means, strict=True))
        lines.append(f"| mean of {len(means)} | {average} |")
    times = [mean(r["seconds"] for r in records if (r["encoder"], r["learning_rate"]) == s) for s in settings]
    lines.append(f"| seconds of a core | {' | '.join(f'{seconds:.0f}' for seconds in times)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what the records lack, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("-o", "--output", type=Path, required=True, help="OUTPUT.jsonl and OUTPUT.md")
    parser.add_argument("--languages", nargs="+", default=sorted([*UNER, *MULTICONER]))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    store = args.output.with_suffix(".jsonl")
    records = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(r["language"], r["encoder"], r["learning_rate"], r["seed"]) for r in records}
    tasks = [(language, *s, seed) for seed in args.seeds for s in SETTINGS for language in args.languages]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(measure, args.data, *task) for task in tasks if task not in done]):
            records.append(future.result())
            with store.open("a") as stream:
                stream.write(json.dumps(records[-1]) + "\n")
            print(records[-1], flush=True)
    versions = ", ".join(f"{name} {version(name)}" for name in ("entaug", "torch", "transformers"))
    seeds = ", ".join(map(str, sorted({r["seed"] for r in records})))
    about = f"{platform.machine()}, Python {platform.python_version()}, {versions}; seeds {seeds}"
    write_tables(args.output.with_suffix(".md"), f"{page(records)}\n\n{about}\n")


if __name__ == "__main__":
    main()
