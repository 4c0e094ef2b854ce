"""How time and memory of the commands grow with the number of sentences.

Run: python benchmarks/growth.py [--sizes 10000 100000 1000000] [--limit 300] [--write benchmarks/results/growth.md]

Sentences: those of BC2GM train (ENTAUG_DATA or ../shared/data), else of the example corpus; as many more as a size
asks for are the beginning of one with the end of another, both drawn with a fixed seed. No mention is cut. The
augmented file of a size N holds N / 2 gold sentences and what `mr` makes of them. Each command runs in a process of its
own, with one thread; CPU seconds (user and system) and the largest resident memory are those of the process. A size is
left out for a command that the growth so far lets expect more than --limit CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import entaug
from entaug import Sentence
from places import DATA, ROOT

COMMANDS = {
    "check": "check {gold}",
    "convert": "convert {gold} {out}.jsonl",
    "convert to .spacy": "convert {gold} {out}.spacy",
    "check of .spacy": "check {out}.spacy",
    "augment": "augment {half} -m mr -o {out}.augmented.jsonl --quiet",
    "filter": "filter {out}.augmented.jsonl -o {out}.filtered.jsonl --filter duplicates:threshold=0.9",
    "quality": "quality {out}.augmented.jsonl --no-models",
    "report": "report {out}.augmented.jsonl -o {out}.html --no-models",
}
"""The commands; one needs the output of those before it."""


def real_sentences() -> tuple[list[Sentence], str]:
    """The sentences that others are made from, and what they are."""
    path = DATA / "bc2gm" / "train.tsv"
    if path.is_file():
        return list(entaug.read(path)), "BC2GM train"
    return list(entaug.read(ROOT / "examples" / "corpus" / "train.conll")), "the example corpus"


def cuts(sentence: Sentence) -> list[int]:
    """The positions before which a sentence can be cut without cutting a mention."""
    inside = {i for mention in sentence.mentions for i in range(mention.start + 1, mention.end)}
    return [i for i in range(1, len(sentence)) if i not in inside]


def varied(real: Sequence[Sentence], number: int, seed: int = 0) -> Iterator[Sentence]:
    """Yield real sentences in random order, then joined parts of two."""
    rng = Random(seed)
    shuffled = list(real)
    rng.shuffle(shuffled)
    yield from shuffled[:number]
    places = [(sentence, cuts(sentence)) for sentence in shuffled]
    places = [(sentence, own) for sentence, own in places if own]
    for _ in range(number - len(shuffled)):
        (one, ends), (other, starts) = rng.choice(places), rng.choice(places)
        end, start = rng.choice(ends), rng.choice(starts)
        mentions = [mention for mention in one.mentions if mention.end <= end]
        mentions += [mention.shift(end - start) for mention in other.mentions if mention.start >= start]
        yield Sentence(one.tokens[:end] + other.tokens[start:], mentions)


def measured(arguments: Sequence[str]) -> tuple[float, int]:
    """CPU seconds and the largest resident memory, in KiB, of a command."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "entaug", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {said.decode().strip()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS), metavar="COMMAND")
    parser.add_argument("--limit", type=float, default=300, help="CPU seconds that a command may be expected to take")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    real, name = real_sentences()
    table: dict[str, dict[int, str]] = {command: {} for command in args.only}
    last: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory(prefix="entaug-growth-") as folder:
        for size in args.sizes:
            gold, half, out = (str(Path(folder, f"{size}{part}")) for part in (".conll", ".half.conll", ""))
            entaug.write(varied(real, size), gold)
            entaug.write(varied(real, size // 2), half)
            for command in args.only:
                if command in last and last[command][1] * size / last[command][0] > args.limit:
                    table[command][size] = "left out"
                    continue
                try:
                    seconds, memory = measured(COMMANDS[command].format(gold=gold, half=half, out=out).split())
                except SystemExit as error:
                    if "no such file" not in str(error):
                        raise
                    table[command][size] = "left out"  # so was the command that writes its input
                    continue
                last[command] = size, seconds
                table[command][size] = f"{seconds:,.1f} s, {memory / 1024:,.0f} MiB"
                print(f"{size:>9,}  {command:18} {table[command][size]}", flush=True)
            for file in Path(folder).iterdir():
                file.unlink()
    here = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, entaug {entaug.__version__}"
    )
    rows = [
        f"| `entaug {COMMANDS[command].split()[0]}` ({command}) | "
        + " | ".join(table[command].get(n, "") for n in args.sizes)
        + " |"
        for command in args.only
    ]
    commands = [
        f"    entaug {COMMANDS[command].format(gold='N.conll', half='N-half.conll', out='N')}" for command in args.only
    ]
    others = [command for command in COMMANDS if command not in args.only]
    only = f" --only {shlex.join(args.only)}" if others else ""
    page = [
        "# Time and memory by number of sentences",
        "",
        f"`python benchmarks/growth.py --sizes {' '.join(map(str, args.sizes))}{only} --limit {args.limit:g}`: {here}.",
        f"CPU seconds and peak of resident memory of each command, start-up included; sentences of {name}, and joined",
        "parts of two.",
        f"Left out: what was expected to take more than {args.limit:g} CPU seconds (`--limit`), or reads its output.",
        *([f"Not measured here: {', '.join(others)} (without `--only`)."] if others else []),
        "",
        "| command | " + " | ".join(f"{n:,} sentences" for n in args.sizes) + " |",
        "|---|" + "---:|" * len(args.sizes),
        *rows,
        "",
        "The commands:",
        "",
        *commands,
        "",
    ]
    text = "\n".join(page)
    print(text)
    if args.write:
        args.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
