"""What `entaug auto` gains on the settings of a plan, over gold alone with equal steps and hyperparameters.

`auto` gets the training sentences and, with `--unlabelled`, the unlabelled ones of each setting of the plan; the test
sentences are read for the final scores alone. Finished settings are kept in the records, and unfinished ones are
resumed. The methods and taggers of the plan are not used. Run, from the project's root:

    python benchmarks/auto_gains.py benchmarks/results/gains.toml -o benchmarks/results/auto-gains --unlabelled \
        --folds 0 --teacher-encoder mpnet
    entaug report benchmarks/results/auto-gains -o benchmarks/results/auto-gains.md --force
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import orjson

from entaug import __version__, auto
from entaug.core.data import Sentence
from entaug.formats import read
from entaug.metrics.span_f1 import Scores, score
from entaug.study.data import DataSplit, file_digest, prepare_splits, short_hash
from entaug.study.plan import read_plan
from entaug.study.records import RecordStore, RunRecord
from entaug.taggers.base import TaggerTrainingConfig, TrainableTagger, create_tagger, load_tagger


def measure(split: DataSplit, seed: int, options: dict[str, Any], folder: Path) -> tuple[list[RunRecord], float]:
    """Run `auto` and train on gold alone; return the records of both and the duration."""
    start = time.monotonic()
    assert split.test is not None
    gold, test = list(read(split.train)), list(read(split.test))
    output = folder / f"{split.train.stem}.{seed}.{short_hash(options)}"
    unlabelled = [split.unlabelled] if options["unlabelled"] and split.unlabelled else []
    given = {name: value for name, value in options.items() if name != "unlabelled"}
    if not output.exists():
        auto(split.train, output, unlabelled=unlabelled, seed=seed, **given)
    summary = orjson.loads((output / "summary.json").read_bytes())
    tagger = orjson.loads((output / "tagger" / "tagger.json").read_bytes())["tagger"]
    training = TaggerTrainingConfig(steps=summary["steps"], seed=seed)
    baseline = create_tagger(tagger, encoder=given["encoder"]).fit(gold, config=training)
    common: dict[str, Any] = {
        "corpus": split.corpus.name,
        "size": split.size,
        "tagger": tagger,
        "ratio": 0.0,
        "seed": seed,
        "leaks": split.leaks,
        "steps": summary["steps"],
        "environment": {"python": platform.python_version(), "device": f"cpu ({platform.machine()})"},
    }
    shared = {"train": file_digest(split.train), "test": file_digest(split.test), "entaug": __version__, "seed": seed}
    configs = {"gold": {"arm": "gold", "steps": summary["steps"], **shared}, "auto": {"arm": options, **shared}}
    found = {name: summary[name] for name in ("recipe", "chosen")}
    scores = {"gold": _scores(baseline, test), "auto": _scores(load_tagger(output / "tagger"), test)}
    records = []
    name = "auto, unlabelled text" if options["unlabelled"] else "auto"
    for arm, kind in (("gold", "gold"), ("gold-steps", "gold"), (name, "auto")):
        config = {**configs[kind], **({"result": found} if kind == "auto" else {})}
        new = summary["augmented"] if kind == "auto" else 0
        key = short_hash([configs[kind], arm])
        records.append(RunRecord(key=key, arm=arm, new=new, test=scores[kind], config=config, **common))
    shutil.rmtree(output)
    return records, time.monotonic() - start


def _scores(tagger: TrainableTagger, test: list[Sentence]) -> Scores:
    return score(test, tagger.predict(test))


def main() -> None:
    """Measure the settings of a plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--unlabelled", action="store_true", help="give auto the unlabelled sentences of the plan")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--teacher-encoder")
    parser.add_argument("--recipes", nargs="+")
    parser.add_argument("--folds", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--corpora", nargs="+", help="names of corpora; without them all")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    options = {name: getattr(args, name) for name in ("unlabelled", "encoder", "teacher_encoder", "recipes", "folds")}
    args.output.mkdir(parents=True, exist_ok=True)
    store = RecordStore(args.output)
    splits = [s for s in prepare_splits(read_plan(args.plan)) if not args.corpora or s.corpus.name in args.corpora]
    done = {(r.corpus, r.size, r.seed) for r in store.records.values() if r.config.get("arm") == options}
    tasks = [(s, seed) for seed in args.seeds for s in splits if (s.corpus.name, s.size, seed) not in done]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = [pool.submit(measure, split, seed, options, args.output / "unfinished") for split, seed in tasks]
        for future in as_completed(futures):
            records, seconds = future.result()
            for record in records:
                store.append(record, seconds)
            gold, _, with_auto = (record.test.micro.f1 * 100 for record in records)
            result = records[-1].config["result"]
            expected = result["chosen"]["expected"] if result["chosen"] else None
            print(
                f"{records[-1].corpus}, {records[-1].size}, seed {records[-1].seed}: gold {gold:.1f}, auto "
                f"{with_auto:.1f} ({with_auto - gold:+.1f}) with {result['recipe']}, "
                f"expected {expected}, {seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
