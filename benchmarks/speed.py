"""How fast the rule-based methods, check and convert are: on one core, beside augmenty in the same run; on all cores.

Run: make bench (or: python benchmarks/speed.py [--write FILE] [--quick])

Sentences: NCBI-disease train where the real corpora are (ENTAUG_DATA or ../shared/data), else the example, repeated.
Rates are the best of five runs over all sentences, validation and provenance included, start-up and reading not. The
large file is made by repeating real sentences to a million and goes through the command line, in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import entaug
from entaug.augmenters import create_augmenter
from entaug.augmenters.base import Augmenter

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("ENTAUG_DATA", ROOT.parent / "shared" / "data"))
BARS = {"mr": 20_000, "sis": 20_000, "lwtr": 15_000, "sr": 10_000, "check": 50_000, "convert": 50_000}
RUNS = 5


def gold_file(folder: Path) -> tuple[Path, str]:
    """The sentences to measure with, and what they are."""
    real = DATA / "ncbi-disease" / "train.tsv"
    if real.is_file():
        return real, "NCBI-disease train"
    path = folder / "example.conll"
    path.write_bytes((ROOT / "examples" / "corpus" / "train.conll").read_bytes() * 140)
    return path, "the example corpus, 140 times"


def best(run: Callable[[], int]) -> float:
    """Sentences a second: the best of several runs, each of which says how many it handled."""
    rates = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        handled = run()
        rates.append(handled / (time.perf_counter() - begun))
    return max(rates)


def method_rates(gold: entaug.Corpus) -> Iterator[tuple[str, float, str]]:
    """Each method: sources handled a second by augment, then with fit, and for SR also from an empty cache."""
    for name in ("mr", "sis", "lwtr", "sr"):
        fitted = create_augmenter(name).fit(gold)
        made = sum(1 for _ in fitted.augment(gold))

        def again(augmenter: Augmenter = fitted) -> int:
            for _ in augmenter.augment(gold):
                pass
            return len(gold)

        def afresh(name: str = name) -> int:
            for _ in create_augmenter(name).fit(gold).augment(gold):
                pass
            return len(gold)

        with_fit = best(afresh)
        rate = best(again)
        share = made / len(gold)
        yield name, rate, f"{rate * share:,.0f} new sentences/s; {with_fit:,.0f} with fit and loading of word lists"


def file_rates(gold: Path, folder: Path) -> Iterator[tuple[str, float, str]]:
    """Check and convert, reading and writing included."""
    large = folder / "some.conll"
    large.write_bytes(gold.read_bytes() * 3)
    yield "check", best(lambda: entaug.check_file(large).counts.sentences), "CoNLL"
    convert: Callable[..., Any] = lambda a, b: entaug.convert_file(folder / a, folder / b, force=True).counts.sentences  # noqa: E731
    yield "convert", best(lambda: convert("some.conll", "some.jsonl")), "CoNLL to JSON lines"
    yield "convert", best(lambda: convert("some.jsonl", "other.conll")), "JSON lines to CoNLL"


def augmenty_rate(gold: entaug.Corpus) -> float | None:
    """Augmenty's entity replacement at the same level on the same sentences."""
    if importlib.util.find_spec("augmenty") is None:
        return None
    import augmenty
    import spacy
    from spacy.tokens import Doc, Span

    nlp = spacy.blank("en")
    docs = []
    pools: dict[str, list[list[str]]] = {}
    for sentence in gold:
        doc = Doc(nlp.vocab, words=list(sentence.tokens))
        doc.ents = [Span(doc, m.start, m.end, label=m.label) for m in sentence.mentions]
        docs.append(doc)
        for mention in sentence.mentions:
            pools.setdefault(mention.label, []).append(list(sentence.mention_tokens(mention)))
    replace = augmenty.load("ents_replace_v1", level=0.3, ent_dict=pools)

    def run() -> int:
        return sum(1 for _ in augmenty.docs(docs, augmenter=replace, nlp=nlp))

    return best(run)


@contextmanager
def one_core() -> Iterator[None]:
    """Everything inside, children too, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def start_up(*command: str) -> float:
    """Seconds that a command takes, the best of five."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        times.append(time.perf_counter() - begun)
    return min(times)


def large_files(gold: Path, folder: Path, sizes: list[int]) -> Iterator[tuple[str, int, float, float]]:
    """Method, sentences, seconds and megabytes for files of growing size through the command line."""
    blocks = [b.strip("\n") for b in gold.read_text(encoding="utf-8").split("\n\n") if b.strip()]
    # The peak of the process itself: what getrusage tells also counts the process it was forked from.
    measure = (
        "import sys; from entaug.cli.main import main; code = main(); "
        "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM'))); sys.exit(code)"
    )
    for size in sizes:
        path = folder / "large.conll"
        with path.open("w", encoding="utf-8") as out:
            for i in range(size):
                out.write(blocks[i % len(blocks)] + "\n\n")
        for name in ("sis", "mr"):
            command = ["augment", str(path), "--method", name, "--force", "-o", str(folder / "large.out.conll")]
            begun = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", measure, *command], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            yield name, size, time.perf_counter() - begun, int(done.stdout) / 1024


def job_rates(
    gold: Path, folder: Path, size: int, numbers: list[int]
) -> Iterator[tuple[str, int, float, float, float]]:
    """Method, processes, wall-clock seconds, CPU seconds of the first process and of all, from file to file.

    On a machine with other work the CPU seconds tell more: with enough cores, a run takes about as long as its busiest
    process, which is the first one or, of the others, each with an equal share.
    """
    blocks = [b.strip("\n") for b in gold.read_text(encoding="utf-8").split("\n\n") if b.strip()]
    path = folder / "jobs.conll"
    path.write_text("".join(blocks[i % len(blocks)] + "\n\n" for i in range(size)), encoding="utf-8")
    measure = (
        "import resource, sys, time; from entaug.cli.main import main; code = main(); "
        "times = [sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]; "
        "print(times[0], sum(times)); sys.exit(code)"
    )
    for name in ("mr", "sis"):
        for jobs in numbers:
            command = ["augment", str(path), "-m", name, "--force", "-o", str(folder / "jobs.out.conll")]
            begun = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", measure, *command, "--jobs", str(jobs)],
                check=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            own, all_ = map(float, done.stdout.split())
            yield name, jobs, time.perf_counter() - begun, own, all_


def machine() -> str:
    """What was measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        cpu = next((x.split(": ")[1] for x in info.read_text().split("\n") if x.startswith("model name")), cpu)
    packages = [name for name in ("entaug", "orjson", "augmenty", "spacy") if importlib.util.find_spec(name)]
    versions = [f"Python {platform.python_version()}", *(f"{p} {importlib.metadata.version(p)}" for p in packages)]
    return f"{cpu}, one core; {', '.join(versions)}"


def report(quick: bool) -> str:
    """The whole measurement as Markdown."""
    lines = ["# Speed", "", "Made by `make bench` (`benchmarks/speed.py`).", "", machine(), ""]
    with tempfile.TemporaryDirectory() as temporary, one_core():
        folder = Path(temporary)
        path, what = gold_file(folder)
        gold = entaug.read(path)
        tokens = sum(map(len, gold))
        lines += [f"{what}: {len(gold):,} sentences, {tokens / len(gold):.1f} tokens each. Seed 0, p 0.3.", ""]
        lines += ["| what | sentences/s | bar | times the bar | notes |", "|---|---:|---:|---:|---|"]
        rates: dict[str, float] = {}
        for name, rate, note in [*method_rates(gold), *file_rates(path, folder)]:
            rates[name] = rate
            lines.append(f"| `{name}` | {rate:,.0f} | {BARS[name]:,} | {rate / BARS[name]:.1f} | {note} |")
            print(lines[-1], flush=True)
        peer = augmenty_rate(gold)
        if peer is not None:
            times = rates["mr"] / peer
            lines.append(
                f"| augmenty `ents_replace_v1` | {peer:,.0f} | | | `mr` is {times:.1f} times as fast (bar: 2) |"
            )
            print(lines[-1], flush=True)
        lines += ["", "| start-up | seconds | bar |", "|---|---:|---:|"]
        lines.append(f"| `import entaug` | {start_up('-c', 'import entaug'):.2f} | 0.5 |")
        lines.append(f"| `entaug --help` | {start_up('-m', 'entaug', '--help'):.2f} | 0.5 |")
        lines += ["", "| large file, `augment --method` | sentences | seconds | sentences/s | peak MB (bar: 500) |"]
        lines.append("|---|---:|---:|---:|---:|")
        sizes = [50_000] if quick else [250_000, 500_000, 1_000_000]
        for name, size, seconds, megabytes in large_files(path, folder, sizes):
            lines.append(f"| `{name}` | {size:,} | {seconds:.1f} | {size / seconds:,.0f} | {megabytes:.0f} |")
            print(lines[-1], flush=True)
    lines += ["", *jobs_table(quick)]
    return "\n".join(lines) + "\n"


def jobs_table(quick: bool) -> list[str]:
    """What several processes gain, on all cores."""
    size = 20_000 if quick else 200_000
    cores = len(os.sched_getaffinity(0))
    numbers = [n for n in (1, 2, 4, 8, 16) if n <= max(2, cores)]
    what = f"{size:,} sentences on {cores} cores"
    lines = [f"| {what} | `--jobs` | seconds | sentences/s | CPU s, first process | CPU s, all |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, _ = gold_file(folder)
        for name, jobs, seconds, own, all_ in job_rates(path, folder, size, numbers):
            rate = f"{size / seconds:,.0f}"
            lines.append(f"| `{name}` | {jobs} | {seconds:.1f} | {rate} | {own:.1f} | {all_:.1f} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure and print, or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the report there")
    parser.add_argument("--quick", action="store_true", help="a smaller large file")
    parser.add_argument("--jobs-only", action="store_true", help="only what several processes gain")
    args = parser.parse_args()
    text = "\n".join(jobs_table(args.quick)) + "\n" if args.jobs_only else report(args.quick)
    if args.write:
        args.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
