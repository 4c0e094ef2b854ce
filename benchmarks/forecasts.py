"""Whether the forecasts of `entaug advise` come true: 70 % of the sentences are held back, then used.

Of a pool of at most 1,000 sentences of each corpus, 30 % are known. From trainings on parts of these, F1 at twice their
number is forecast, exactly as `entaug advise` does it with three folds and four sizes. Then taggers are trained on
twice as many sentences, those held back included, and tested twice: on the same held-out folds of the known sentences,
and on further sentences of the same corpus, which nothing else uses. Both are compared with the forecast. The prior of
the curve was set before anything was measured here, and narrowed afterwards; `prior` says how a prior does that is
chosen for each corpus on the others. Finished trainings are kept, and records are enough to compute the page again.
Run, from the project's root:

    python benchmarks/forecasts.py run --seeds 1 2 3         # hours; may be interrupted and repeated
    python benchmarks/forecasts.py run --seeds 1 --whole     # ... and at the size of the whole pool
    python benchmarks/forecasts.py simulate                  # a minute: curves whose truth is known
    python benchmarks/forecasts.py prior                     # two minutes: the prior chosen on all corpora but one
    python benchmarks/forecasts.py page
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import platform
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import orjson

from entaug import __version__
from entaug.core.data import Sentence
from entaug.core.folds import content_key
from entaug.formats import read
from entaug.metrics.learning_curve import CurvePrior, Estimate, LearningCurve, fit_learning_curve
from entaug.metrics.tables import Block, Heading, Table, as_markdown
from entaug.study.curves import NUM_SIZES, CurvePart, CurveRuns, CurveTagger, curve_parts, curve_sizes

RESULTS = Path("benchmarks/results")
RECORDS = RESULTS / "forecasts" / "forecasts.jsonl"
SIMULATED = RESULTS / "forecasts" / "simulated.jsonl"
SIMULATIONS = 200
POOL = 1000
KNOWN = 0.3
FOLDS = 3
MAX_TEST = 500
TAGGER = CurveTagger()


def _crossner(domain: str) -> list[str]:
    return [f"crossner/{domain}/{part}.txt" for part in ("train", "dev", "test")]


PRIORS = RESULTS / "forecasts" / "priors.jsonl"
BEFORE = CurvePrior(gain_sd=0.06, exponent=0.3, exponent_sd=0.3)
"""The prior that was set before the measurement."""
BUDGETS = {"four sizes, three folds": (4, 3), "three sizes, three folds": (3, 3), "four sizes, one fold": (4, 1)}
"""What of a curve is known: numbers of its sizes and folds."""
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


# --------------------------------------------------------------------------------------------------------- simulations


class Simulated(NamedTuple):
    """A curve fitted to simulated trainings, and the true F1 of all known sentences and of twice as many."""

    curve: LearningCurve
    known: float
    twice: float


def simulate(
    rng: np.random.Generator,
    known: int,
    folds: int = FOLDS,
    sizes: int = NUM_SIZES,
    repeats: int = 1,
    prior: CurvePrior | None = None,
) -> Simulated:
    """Draw a curve from the prior, and trainings from it, with the noise of sentences and of training; fit it."""
    prior = prior or CurvePrior()
    steps = curve_sizes(known * (folds - 1) // folds, sizes)
    doublings = np.log2(np.array([*steps, known, 2 * known]) / steps[-1])
    f1 = np.zeros(1)
    while not 0.05 < f1.min() < f1.max() < 0.95:
        exponent = rng.normal(prior.exponent, prior.exponent_sd)
        level = rng.uniform(0.35, 0.75)
        gain = rng.normal(prior.gain, prior.gain_sd) / (1 - prior.gain) * (1 - level)
        f1 = level + gain * (1 - 2 ** (-exponent * doublings)) / (2**exponent - 1)
    counts = []
    for _ in range(folds):
        gold = rng.poisson(1, known // folds) + 1  # of each sentence, which has an ease of its own
        ease = np.tanh(rng.normal(0, 1, len(gold)))
        rows = []
        for size, one in zip(steps, f1, strict=False):
            own = np.clip(one + rng.normal(0, prior.training_sd_of(size), repeats), 0.02, 0.98)
            correct = rng.binomial(gold, own[:, None] + np.minimum(own, 1 - own)[:, None] * ease).mean(0)
            rows.append(np.stack([correct, gold, gold], axis=1))
        counts.append(np.stack(rows))
    curve = fit_learning_curve(steps, counts, trainings=[repeats] * folds, prior=prior)
    return Simulated(curve, float(f1[-2]), float(f1[-1]))


def simulate_all(_: argparse.Namespace) -> None:
    """Simulate some ways to measure a curve."""
    lines: list[dict[str, Any]] = []
    for known in (100, 300, 1000):
        for folds, sizes, repeats in ((3, 3, 1), (3, 4, 1), (3, 6, 1), (5, 4, 1), (3, 4, 3)):
            rng = np.random.default_rng(known)
            found = [(known, simulate(rng, known, folds, sizes, repeats)) for _ in range(SIMULATIONS)]
            gains = [(one.curve.gain(n, 2 * n).times(100), 100 * (one.twice - one.known)) for n, one in found]
            levels = [(one.curve.f1(2 * n).times(100), 100 * one.twice) for n, one in found]
            steps = folds * repeats * sum(map(TAGGER.num_steps, curve_sizes(known * (folds - 1) // folds, sizes)))
            lines.append({"known": known, "folds": folds, "sizes": sizes, "repeats": repeats, "steps": steps})
            for name, pairs in (("gain", gains), ("f1", levels)):
                lines[-1][f"{name}_error"] = round(statistics.fmean(abs(e.value - truth) for e, truth in pairs), 2)
                lines[-1][f"{name}_covered"] = sum(e.low <= truth <= e.high for e, truth in pairs) / len(pairs)
            lines[-1]["gain_size"] = round(statistics.fmean(truth for _, truth in gains), 2)
            print(lines[-1], flush=True)
    SIMULATED.parent.mkdir(parents=True, exist_ok=True)
    SIMULATED.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def _simulated_table() -> Table:
    rows = []
    for line in map(orjson.loads, SIMULATED.read_bytes().splitlines()):
        cells = [str(line[name]) for name in ("known", "folds", "sizes", "repeats")]
        cells += [f"{line['steps']:,}", f"{line['gain_size']:.1f}"]
        for name in ("gain", "f1"):
            cells += [f"{line[f'{name}_error']:.1f}", f"{line[f'{name}_covered']:.0%}"]
        rows.append(cells)
    head = ["known", "folds", "sizes", "repetitions", "steps", "gain of twice as many"]
    return Table([*head, "error of the gain", "covered", "error of F1", "covered"], rows)


# ----------------------------------------------------------------------------------------------------------- the prior


def choose_priors(_: argparse.Namespace) -> None:
    """Compare forecasts by the former prior, by one that is chosen on the other corpora, and by ours."""
    records = [record for record in read_records(RECORDS) if record["target"] == "twice"]
    numbers = itertools.product((0.12, 0.14, 0.16), (0.03, 0.04, 0.06), (0.1, 0.2, 0.3), (0.1, 0.15, 0.3))
    grid = [CurvePrior(gain=g, gain_sd=gs, exponent=b, exponent_sd=bs) for g, gs, b, bs in numbers]
    lines = []
    for budget, known in BUDGETS.items():
        by_prior = [[on_new_sentences(record, prior, *known) for record in records] for prior in grid]
        scores = np.array([[one.score for one in some] for some in by_prior])
        names = np.array([record["corpus"] for record in records])
        others = [int(scores[:, names != name].sum(1).argmax()) for name in names]
        forecasts = {
            "before": [on_new_sentences(record, BEFORE, *known) for record in records],
            "chosen on the other corpora": [by_prior[best][i] for i, best in enumerate(others)],
            "now": [on_new_sentences(record, None, *known) for record in records],
        }
        for name, some in forecasts.items():
            lines.append({"known": budget, "prior": name, "cells": _summary(some)})
            print(lines[-1], flush=True)
    PRIORS.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def _summary(some: Sequence[Compared]) -> list[str]:
    """Mean error, bias, coverage and mean width of forecasts."""
    return [
        f"{statistics.fmean(abs(one.difference) for one in some):.1f}",
        f"{statistics.fmean(one.difference for one in some):+.1f}",
        f"{sum(one.covers for one in some)} of {len(some)}",
        f"{statistics.fmean(one.forecast.high - one.forecast.low for one in some):.1f}",
    ]


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
    def _sides(self) -> tuple[float, float]:
        """How far the interval reaches below and above the forecast."""
        return self.forecast.value - self.forecast.low, self.forecast.high - self.forecast.value

    @property
    def covers(self) -> bool:
        """Whether the interval covers the truth, whose own error widens it."""
        own, (low, high) = 1.96 * self.error, self._sides
        return -math.hypot(high, own) <= self.difference <= math.hypot(low, own)

    @property
    def score(self) -> float:
        """The logarithm of the density of the truth, if each side of the interval is that of a normal distribution."""
        low, high = self._sides
        mean, own = (
            math.hypot(width / 1.96, self.error) for width in ((low + high) / 2, high if self.difference < 0 else low)
        )
        return -math.log(mean) - (self.difference / own) ** 2 / 2


def on_new_sentences(
    record: dict[str, Any], prior: CurvePrior | None = None, sizes: int = 4, folds: int = 3
) -> Compared:
    """The forecast from the smallest sizes and the first folds of a record for new sentences, and what came."""
    counts = [np.array(fold, float)[:sizes] for fold in record["curve"][:folds]]
    curve = fit_learning_curve(record["sizes"][:sizes], counts, prior=prior)
    new = _new(record)
    error = math.hypot(_training_error(record), _sentence_error(new))
    return Compared(curve.f1(record["size"]).times(100), 100 * _f1(new), 100 * error)


def _new(record: dict[str, Any]) -> Any:
    return np.array(record["new"], float).mean(0)


def _training_error(record: dict[str, Any]) -> float:
    return CurvePrior().training_sd_of(record["size"]) / math.sqrt(len(record["curve"]))


class Outcome(NamedTuple):
    """The forecasts of a record: on new sentences, and on those that the curve was measured on."""

    record: dict[str, Any]
    new: Compared
    same: Compared
    naive: float  # error on the same sentences of a forecast that nothing changes
    sampling: float  # mean absolute error on new sentences of a forecast that errs by the choice of sentences alone

    @classmethod
    def of(cls, record: dict[str, Any]) -> Outcome:
        """Fit the curve of a record, and compare."""
        counts = [np.array(fold, float) for fold in record["curve"]]
        same = np.concatenate([np.array(fold, float) for fold in record["same"]])
        last = np.concatenate([fold[-1] for fold in counts])
        forecast = fit_learning_curve(record["sizes"], counts).f1(record["size"], same_sentences=True)
        error = math.hypot(_training_error(record), _paired_error(same, last))
        return cls(
            record,
            on_new_sentences(record),
            Compared(forecast.times(100), 100 * _f1(same), 100 * error),
            100 * (_f1(last) - _f1(same)),
            100 * math.sqrt(2 / math.pi) * math.hypot(_sentence_error(last), _sentence_error(_new(record))),
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
        "known ones they are. Intervals are 95 %; for *covered* they are widened by the standard error of the F1 that "
        "came (✗: not covered). *Sampling alone*: the mean error on new sentences of a forecast that errs only in that "
        "F1 was measured on just these known sentences, and is compared with F1 on just those new ones. *No change*: "
        "the mean error on the same sentences if the F1 of the largest size measured is taken as the forecast. "
        "*Seconds*: those of the trainings of the curve, of which 16 at once shared the GPU named below."
    )
    measured = {record["corpus"] for record in records}
    if missing := [name for name in CORPORA if name not in measured]:
        blocks.append(f"Measured on {len(measured)} of {len(CORPORA)} corpora; not yet: {', '.join(missing)}.")
    for target, title in (("twice", "At twice the known sentences"), ("whole", "At the size of the whole pool")):
        outcomes = [Outcome.of(record) for record in records if record["target"] == target]
        if outcomes:
            blocks += [Heading(title), *_tables(outcomes)]
    if PRIORS.exists():
        lines = [orjson.loads(line) for line in PRIORS.read_bytes().splitlines()]
        text = (
            "Forecasts for new sentences at twice the known ones, also from parts of the curves, which small budgets "
            "leave. *Before*: the prior that was set before anything was measured. *Chosen on the other corpora*: for "
            "each corpus that of 81 priors which makes what came on the 14 others likeliest. *Now*: somewhat wider "
            "than these, because other taggers and corpora may differ more; it has seen these corpora."
        )
        table = Table(
            ["known", "prior", "mean error", "bias", "covered", "mean width"],
            [[line["known"], line["prior"], *line["cells"]] for line in lines],
        )
        blocks += [Heading("The prior of the curve"), text, table]
    if SIMULATED.exists():
        text = (
            f"{SIMULATIONS} curves a row, drawn from the prior, with F1 from 35 to 75 at the largest size, and noise "
            "of sentences and of training: what the method can reach if the prior is right. Errors are means of "
            "absolute values, in points; steps are those of all trainings."
        )
        blocks += [Heading("Simulated curves, at twice the known sentences"), text, _simulated_table()]
    if machines:
        blocks += [Heading("Environments"), [f"`{machine}`" for machine in machines]]
    (RESULTS / "forecasts.md").write_text(as_markdown(blocks), encoding="utf-8")


def _tables(outcomes: list[Outcome]) -> Iterator[Block]:
    rows = [
        [
            "new sentences",
            *_summary([one.new for one in outcomes]),
            f"{statistics.fmean(o.sampling for o in outcomes):.1f}",
            "-",
        ],
        [
            "same sentences",
            *_summary([one.same for one in outcomes]),
            "-",
            f"{statistics.fmean(abs(o.naive) for o in outcomes):.1f}",
        ],
    ]
    yield Table(["", "mean error", "bias", "covered", "mean width", "sampling alone", "no change"], rows)
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
    command.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir(), "entaug-forecasts"), help="for unfinished work"
    )
    command.add_argument("--keep", action="store_true", help="keep the records of single trainings there")
    commands.add_parser("simulate").set_defaults(call=simulate_all)
    commands.add_parser("prior").set_defaults(call=choose_priors)
    commands.add_parser("page").set_defaults(call=page)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
