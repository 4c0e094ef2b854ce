"""How fast the rule-based methods, check and convert are on one core, start-up, large files, and several processes.

Sentences: NCBI-disease train where the real corpora are (ENTAUG_DATA or ../shared/data), else the example, repeated.
Rates are the best of five runs over all sentences, validation and provenance included, start-up and reading not. The
large file is made by repeating real sentences to a million and goes through the command line, in a process of its own.
Times are CPU times, which other work on the machine lengthens little. A part of benchmarks/suite.py.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import entaug
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from places import DATA, ROOT
from records import Measurement

BARS = {
    "mr": 20_000,
    "sis": 20_000,
    "lwtr": 15_000,
    "sr:masked_lm=none": 10_000,
    "check": 50_000,
    "convert": 50_000,
}
METHODS = ("mr", "sis", "lwtr", "sr:masked_lm=none,causal_lm=none,dependency_parser=none")
RUNS = 5


def gold_file(folder: Path, quick: bool) -> tuple[Path, str]:
    """The sentences to measure with, and what they are."""
    real = DATA / "ncbi-disease" / "train.tsv"
    if real.is_file() and not quick:
        return real, "NCBI-disease train"
    times = 4 if quick else 140
    path = folder / "example.conll"
    path.write_bytes((ROOT / "examples" / "corpus" / "train.conll").read_bytes() * times)
    return path, f"the example corpus, {times} times"


def best(run: Callable[[], int], runs: int) -> float:
    """Sentences a second of CPU time: the best of several runs, each of which says how many it handled."""
    rates = []
    for _ in range(runs):
        begun = time.process_time()
        handled = run()
        rates.append(handled / (time.process_time() - begun))
    return max(rates)


def method_rates(gold: entaug.Corpus, runs: int) -> Iterator[tuple[str, float, str]]:
    """Each method: sources handled a second by augment, then with fit, and for SR also from an empty cache."""
    for name in METHODS:
        fitted = entaug.methods.parse_methods(name).fit(gold)
        made = sum(1 for _ in fitted.augment(gold))

        def again(augmenter: Augmenter | CombinedAugmenter = fitted) -> int:
            for _ in augmenter.augment(gold):
                pass
            return len(gold)

        def afresh(name: str = name) -> int:
            for _ in entaug.methods.parse_methods(name).fit(gold).augment(gold):
                pass
            return len(gold)

        with_fit = best(afresh, runs)
        rate = best(again, runs)
        share = made / len(gold)
        yield name, rate, f"{rate * share:,.0f} new sentences/s; {with_fit:,.0f} with fit and loading of word lists"


def file_rates(gold: Path, folder: Path, runs: int) -> Iterator[tuple[str, float, str]]:
    """Check and convert, reading and writing included."""
    three = folder / "some.conll"
    three.write_bytes(gold.read_bytes() * 3)
    yield "check", best(lambda: entaug.check(three).counts.sentences, runs), "CoNLL"
    convert: Callable[..., Any] = lambda a, b: entaug.convert(folder / a, folder / b, force=True).counts.sentences  # noqa: E731
    yield "convert, CoNLL to JSON lines", best(lambda: convert("some.conll", "some.jsonl"), runs), ""
    yield "convert, JSON lines to CoNLL", best(lambda: convert("some.jsonl", "other.conll"), runs), ""


@contextmanager
def one_core() -> Iterator[None]:
    """Everything inside, children too, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def children_seconds() -> float:
    """CPU time of all processes started so far that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def start_up(runs: int, *command: str) -> float:
    """CPU seconds that a command takes, the best of several runs."""
    times = []
    for _ in range(runs):
        begun = children_seconds()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        times.append(children_seconds() - begun)
    return min(times)


# The peak of the process itself: what getrusage tells also counts the process it was forked from.
_PEAK = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
_MEASURED = f"""
import resource, sys
from entaug.commands.main import main
code = main()
times = [sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(times[0], sum(times), {_PEAK})
sys.exit(code)
"""


def augmented(gold: Path, folder: Path, size: int, method: str, *options: str) -> tuple[float, float, float, float]:
    """Augment a file of so many sentences through the command line.

    Returns:
        Wall-clock seconds, CPU seconds of the first process and of all, and the peak of the first one in megabytes.
    """
    blocks = [block.strip("\n") for block in gold.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    path = folder / "large.conll"
    with path.open("w", encoding="utf-8") as out:
        for i in range(size):
            out.write(blocks[i % len(blocks)] + "\n\n")
    command = ["augment", str(path), "-m", method, "--force", "-o", str(folder / "large.out.conll"), *options]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    own, of_all, peak = map(float, done.stdout.split())
    return time.perf_counter() - begun, own, of_all, peak / 1024


def rules(peers: Any, quick: bool) -> Iterator[Measurement]:
    """Methods without models, check and convert on one core, beside augmenty."""
    with tempfile.TemporaryDirectory() as temporary, one_core():
        folder = Path(temporary)
        path, what = gold_file(folder, quick)
        gold = entaug.read(path)
        runs = 1 if quick else RUNS
        on = f"{what}: {len(gold):,} sentences, {sum(map(len, gold)) / len(gold):.1f} tokens each"
        for name, rate, note in [*method_rates(gold, runs), *file_rates(path, folder, runs)]:
            bar = BARS.get(name.partition(",")[0])
            yield Measurement(what=f"`{name}`", value=rate, bar=bar, on=on, note=note)
            if name == "mr" and peers is not None:
                sentences = [[s.tokens, [[m.start, m.end, m.label] for m in s.mentions]] for s in gold]
                seconds = peers("augmenty", sentences=sentences, repeat=runs)["seconds"]
                yield Measurement(
                    what="`mr` beside augmenty's `ents_replace_v1`",
                    value=rate,
                    peer=len(gold) / seconds,
                    bar=2,
                    on=on,
                    note="the same level, 0.3; the peer is not asked for provenance",
                )


def start(peers: Any, quick: bool) -> Iterator[Measurement]:
    """CPU seconds until a command is there."""
    del peers
    for what, *command in (("`import entaug`", "-c", "import entaug"), ("`entaug --help`", "-m", "entaug", "--help")):
        yield Measurement(what=what, value=start_up(1 if quick else RUNS, *command), unit="s", bar=0.5)
    with tempfile.TemporaryDirectory() as temporary:
        gold, out = Path(temporary, "gold.conll"), Path(temporary, "out.conll")
        entaug.write(list(entaug.read(ROOT / "examples" / "corpus" / "train.conll"))[:3], gold)
        # Without the models that check what is written, whose rates are those of other parts.
        for name in (
            "lm:causal_lm=none,dependency_parser=none",
            "bt:check_translations=false,dependency_parser=none,min_similarity=0",
        ):
            command = ["-m", "entaug", "augment", str(gold), "-m", name, "--no-guard", "--force", "-o", str(out)]
            what = f"`augment -m {name}`, three sentences"
            yield Measurement(what=what, value=start_up(1 if quick else 3, *command), unit="s", bar=3)


def large(peers: Any, quick: bool) -> Iterator[Measurement]:
    """Files of growing size through the command line, on one core: rate and peak of memory."""
    del peers
    with tempfile.TemporaryDirectory() as temporary, one_core():
        folder = Path(temporary)
        path, what = gold_file(folder, quick)
        for size in [2_000] if quick else [250_000, 1_000_000]:
            for name in ("mr",) if quick else ("sis", "mr"):
                wall, _, seconds, peak = augmented(path, folder, size, name)
                of = f"`augment -m {name}`, {size:,} sentences"
                yield Measurement(what=of, value=size / seconds, on=what, note=f"{wall:.1f} s by the clock")
                yield Measurement(what=f"{of}, peak", value=peak, unit="MB", bar=500, on=what)


def jobs(peers: Any, quick: bool) -> Iterator[Measurement]:
    """What several processes gain, on all cores: sentences by the clock, and CPU seconds of the first process.

    On a machine with other work the CPU seconds tell more: with enough cores, a run takes about as long as its busiest
    process, which is the first one or, of the others, each with an equal share.
    """
    del peers
    size = 2_000 if quick else 200_000
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, what = gold_file(folder, quick)
        for name in ("mr",) if quick else ("mr", "sis"):
            for number in [n for n in (1, 2, 4, 8, 16) if n <= max(2, cores)]:
                wall, own, of_all, _ = augmented(path, folder, size, name, "--jobs", str(number))
                yield Measurement(
                    what=f"`augment -m {name} --jobs {number}`, all processes",
                    value=size / of_all,
                    on=f"{what}, {size:,} sentences on {cores} cores",
                    note=f"{wall:.1f} s by the clock; CPU {own:.1f} s of the first process, {of_all:.1f} s of all",
                )
