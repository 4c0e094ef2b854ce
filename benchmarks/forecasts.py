"""Whether the forecasts of `entaug advise` come true: 70 % of the sentences are held back, then used.

Of a pool of at most 1,000 sentences of each corpus, 30 % are known. From trainings on parts of these, F1 at twice their
number is forecast, exactly as `entaug advise` does it with three folds and four sizes. Then taggers are trained on
twice as many sentences, those held back included, and tested twice: on the same held-out folds of the known sentences,
and on further sentences of the same corpus, which nothing else uses. Both are compared with the forecast. The prior of
the curve was estimated on the development corpora, which are reported apart. Finished trainings are kept, and records
are enough to compute the page again. Run, from the project's root:

    python benchmarks/forecasts.py run --seeds 1 2 3         # hours; may be interrupted and repeated
    python benchmarks/forecasts.py run --seeds 1 --whole     # ... and at the size of the whole pool
    python benchmarks/forecasts.py page
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shutil
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import orjson

from entaug import __version__
from entaug.core.data import Sentence
from entaug.formats import read
from entaug.metrics.learning_curve import CurvePrior, Estimate, fit_learning_curve
from entaug.metrics.tables import Block, Heading, Table, as_markdown
from entaug.study.curves import CurvePart, CurveRuns, CurveTagger, curve_parts, curve_sizes
from entaug.study.subsets import content_key

RESULTS = Path("benchmarks/results")
RECORDS = RESULTS / "forecasts" / "forecasts.jsonl"
POOL = 1000
KNOWN = 0.3
FOLDS = 3
MAX_TEST = 500
TAGGER = CurveTagger()


def _crossner(domain: str) -> list[str]:
    return [f"crossner/{domain}/{part}.txt" for part in ("train", "dev", "test")]


DEVELOPMENT = ("crossner-ai", "wnut17", "crossner-politics")
"""The corpora that the prior was estimated on."""
CORPORA: dict[str, list[str]] = {  # in the order in which they are measured: short sentences first
    "multiconer-en": ["multiconer-v1/15000/en_train.conll"],
    "uner-en-ewt": [f"uner/en_ewt/en_ewt-ud-{part}.iob2" for part in ("dev", "test")],
    "wnut17": ["wnut17/wnut17train.conll"],
    "ncbi-disease": ["ncbi-disease/train.tsv"],
    "danplus": ["danplus/da_news_train.tsv"],
    "bc2gm": ["bc2gm/train.tsv"],
    "crossner-ai": _crossner("ai"),
    "tdmsci": ["tdmsci/train_1500_v2.conll"],
    "uner-da-ddt": ["uner/da_ddt/da_ddt-ud-train.iob2"],
    "uner-hr-set": ["uner/hr_set/hr_set-ud-train.iob2"],
    "genia-flat": ["genia/nested-jsonl/train.jsonl"],
    "crossner-music": _crossner("music"),
    "crossner-politics": _crossner("politics"),
    "crossner-literature": _crossner("literature"),
    "crossner-science": _crossner("science"),
}


# ---------------------------------------------------------------------------------------------------------------- runs


class Setting(NamedTuple):
    """The sentences of a corpus and a seed: folds of the known ones, those held back, and the test."""

    parts: Sequence[CurvePart]
    known: int
    back: Sequence[Sentence]
    test: Sequence[Sentence]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the curve, as `entaug advise` takes them."""
        return curve_sizes(min(len(part.train) for part in self.parts))

    def truth(self, size: int) -> list[CurvePart]:
        """Each fold with as many sentences to train on as are asked for, held-back ones included."""
        return [CurvePart([*one.train, *self.back[: size - len(one.train)]], one.test) for one in self.parts]


def setting(name: str, seed: int, folder: Path) -> Setting:
    """Draw the sentences of a corpus and a seed."""
    files = [read(folder / file, repair=True) for file in CORPORA[name]]
    # Flat sentences, each once.
    sentences = {content_key(sentence): sentence for some in files for sentence in some if sentence.is_flat}
    drawn = Random(f"{name} {seed}").sample(list(sentences.values()), len(sentences))
    num_test = min(MAX_TEST, len(drawn) // 3)
    test, pool = drawn[:num_test], drawn[num_test:][:POOL]
    known = round(KNOWN * len(pool))
    return Setting(curve_parts(pool[:known], FOLDS, seed), known, pool[known:], test)


def measure(name: str, seed: int, multiple: str, folder: Path, work: Path) -> dict[str, Any]:
    """Train the curve of a setting, and the truth at twice the size or at that of the pool."""
    drawn = setting(name, seed, folder)
    sizes = drawn.sizes
    target = 2 * drawn.known if multiple == "twice" else len(drawn.back) + min(len(one.train) for one in drawn.parts)
    with CurveRuns(drawn.parts, work, seed) as runs:
        runs.run([runs.spec(part, size, TAGGER) for part in range(FOLDS) for size in sizes])
        curve = [runs.counts(part, sizes, TAGGER) for part in range(FOLDS)]
        seconds = 60 * runs.minutes
    with CurveRuns(drawn.truth(target), work, seed, tests={"test": drawn.test}) as runs:
        records = runs.run([runs.spec(part, target, TAGGER) for part in range(FOLDS)])
    return {
        "corpus": name,
        "seed": seed,
        "target": multiple,
        "known": drawn.known,
        "size": target,
        "sizes": sizes,
        "seconds": round(seconds),
        "curve": [counts.astype(int).tolist() for counts in curve],
        "same": [_rows(record.tests["own"]) for record in records],
        "new": [_rows(record.tests["test"]) for record in records],
        "environment": {**records[0].environment, "machine": platform.machine(), "entaug": __version__},
    }


def _rows(scores: Any) -> list[list[int]]:
    return [list(counts) for counts in scores.sentences]


def read_records(path: Path) -> list[dict[str, Any]]:
    """Read the records; an incomplete last line is left out."""
    records = {}
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        record = orjson.loads(line)
        records[record["corpus"], record["seed"], record["target"]] = record
    return list(records.values())


def run(args: argparse.Namespace) -> None:
    """Measure what has no record yet."""
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        for name in args.corpora or CORPORA:
            target = "whole" if args.whole else "twice"
            if any((r["corpus"], r["seed"], r["target"]) == (name, seed, target) for r in read_records(RECORDS)):
                continue
            work = args.work / f"{name}.{seed}"
            work.mkdir(parents=True, exist_ok=True)
            record = measure(name, seed, target, args.data, work)
            with RECORDS.open("ab") as stream:
                stream.write(orjson.dumps(record) + b"\n")
            print(Outcome.of(record).line(), flush=True)
            if not args.keep:
                shutil.rmtree(work)


# ------------------------------------------------------------------------------------------------------------ the page


class Compared(NamedTuple):
    """A forecast and what came: F1 in points."""

    forecast: Estimate
    truth: float
    error: float  # standard error of the truth

    @property
    def difference(self) -> float:
        """Forecast minus truth."""
        return self.forecast.value - self.truth

    @property
    def covers(self) -> bool:
        """Whether the interval covers the truth, whose own error widens it."""
        own = 1.96 * self.error
        low, high = self.forecast.value - self.forecast.low, self.forecast.high - self.forecast.value
        return -math.hypot(high, own) <= self.difference <= math.hypot(low, own)


class Outcome(NamedTuple):
    """The forecasts of a record: on new sentences, and on those that the curve was measured on."""

    record: dict[str, Any]
    new: Compared
    same: Compared
    naive: float  # error on the same sentences of a forecast that nothing changes

    @classmethod
    def of(cls, record: dict[str, Any], prior: CurvePrior | None = None) -> Outcome:
        """Fit the curve of a record, and compare."""
        prior = prior or CurvePrior()
        counts = [np.array(fold, float) for fold in record["curve"]]
        curve = fit_learning_curve(record["sizes"], counts, prior=prior)
        size = record["size"]
        noise = prior.training_sd * math.sqrt(prior.training_size / size / len(counts))
        new = np.array(record["new"], float)
        same = np.concatenate([np.array(fold, float) for fold in record["same"]])
        last = np.concatenate([fold[-1] for fold in counts])
        return cls(
            record,
            Compared(
                curve.f1(size).times(100), 100 * _f1(new.mean(0)), 100 * math.hypot(_sentence_error(new.mean(0)), noise)
            ),
            Compared(
                curve.f1(size, same_sentences=True).times(100),
                100 * _f1(same),
                100 * math.hypot(noise, _paired_error(same, last)),
            ),
            100 * (_f1(last) - _f1(same)),
        )

    def line(self) -> str:
        """The outcome in one line."""
        new, same = ("forecast {} came {}".format(*_cells(one)) for one in (self.new, self.same))
        r = self.record
        return f"{r['corpus']}, seed {r['seed']}, {r['size']}: same sentences {same}; new ones {new}; {r['seconds']} s"


def _f1(counts: Any) -> float:
    correct, predicted, gold = counts.sum(0)
    return float(2 * correct / (predicted + gold))


def _influence(counts: Any) -> Any:
    """How far each sentence moves F1, times their number."""
    found = counts[:, 1] + counts[:, 2]
    return (2 * counts[:, 0] - _f1(counts) * found) / found.mean()


def _sentence_error(counts: Any) -> float:
    """The standard error of F1 that the sampling of sentences gives it."""
    return float(_influence(counts).std(ddof=1) / math.sqrt(len(counts)))


def _paired_error(counts: Any, others: Any) -> float:
    """The standard error of F1 on certain sentences: what chance decides in each of them anew in each training."""
    moved = _influence(counts) - _influence(others)
    return float(moved.std(ddof=1) / math.sqrt(2 * len(counts)))


def page(_: argparse.Namespace) -> None:
    """Write the page from the records."""
    blocks: list[Block] = [Heading("Forecasts of `entaug advise`, and what came", 1)]
    records = read_records(RECORDS)
    machines = sorted({orjson.dumps(r["environment"], option=orjson.OPT_SORT_KEYS).decode() for r in records})
    blocks.append(
        f"Of a pool of at most {POOL:,} sentences of each corpus, {KNOWN:.0%} were known: {FOLDS} folds, four sizes, "
        "MiniLM with a linear head at its default steps. *Same sentences*: the folds that the curve was measured on, "
        "with taggers trained on as many sentences as the forecast is for. *New sentences*: up to "
        f"{MAX_TEST} others of the corpus; besides the forecast, chance decides how much easier or harder than the "
        "known ones they are. Intervals are 95 %; the truth has an error of its own, which widens them for *covered* "
        "(✗: not covered). *No change*: the mean error on the same sentences if the F1 of the largest size measured is "
        "taken as the forecast. *Seconds*: those of the trainings of the curve, on one core."
    )
    for target, title in (("twice", "At twice the known sentences"), ("whole", "At the size of the whole pool")):
        outcomes = [Outcome.of(record) for record in records if record["target"] == target]
        if outcomes:
            blocks += [Heading(title), *_tables(outcomes)]
    blocks += [Heading("Environments"), [f"`{machine}`" for machine in machines]]
    (RESULTS / "forecasts.md").write_text(as_markdown(blocks), encoding="utf-8")


def _tables(outcomes: list[Outcome]) -> Iterator[Block]:
    development = [one for one in outcomes if one.record["corpus"] in DEVELOPMENT]
    others = [one for one in outcomes if one.record["corpus"] not in DEVELOPMENT]
    rows = []
    for name, some in (("other corpora", others), ("development corpora", development), ("all", outcomes)):
        if some:
            corpora = len({one.record["corpus"] for one in some})
            cells = [f"{corpora} ({len(some)})"]
            for kind in ("same", "new"):
                compared: list[Compared] = [getattr(one, kind) for one in some]
                cells += [
                    f"{statistics.fmean(abs(one.difference) for one in compared):.1f}",
                    f"{statistics.fmean(one.difference for one in compared):+.1f}",
                    f"{sum(one.covers for one in compared)} of {len(compared)}",
                    f"{statistics.fmean(one.forecast.high - one.forecast.low for one in compared):.1f}",
                ]
            rows.append([name, *cells, f"{statistics.fmean(abs(one.naive) for one in some):.1f}"])
    same = ["same sentences: mean error", "bias", "covered", "width"]
    new = ["new sentences: mean error", "bias", "covered", "width"]
    yield Table(["", "corpora (settings)", *same, *new, "no change: mean error"], rows)
    yield Table(
        [
            "corpus, seed",
            "known",
            "for",
            "forecast, same sentences",
            "came",
            "forecast, new sentences",
            "came",
            "seconds",
        ],
        [
            [
                f"{one.record['corpus']}, {one.record['seed']}",
                str(one.record["known"]),
                str(one.record["size"]),
                *_cells(one.same),
                *_cells(one.new),
                f"{one.record['seconds']:,}",
            ]
            for one in sorted(outcomes, key=lambda one: (one.record["corpus"], one.record["seed"]))
        ],
    )


def _cells(one: Compared) -> list[str]:
    forecast = f"{one.forecast.value:.1f} ({one.forecast.low:.1f} to {one.forecast.high:.1f})"
    return [forecast, f"{one.truth:.1f}{'' if one.covers else ' ✗'}"]


def main() -> None:
    """Run, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.set_defaults(call=run)
    command.add_argument("--seeds", type=int, nargs="+", default=[1])
    command.add_argument("--corpora", nargs="+", choices=CORPORA, help="without them all")
    command.add_argument("--whole", action="store_true", help="forecast for the whole pool instead of twice the size")
    command.add_argument("--data", type=Path, default=Path(os.environ.get("ENTAUG_DATA", "../shared/data")))
    command.add_argument("--work", type=Path, default=Path("/tmp/forecasts"), help="where unfinished work is kept")  # noqa: S108
    command.add_argument("--keep", action="store_true", help="keep the records of single trainings there")
    commands.add_parser("page").set_defaults(call=page)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
