"""The parts of the harness, how long each is given, and what is printed."""

from __future__ import annotations

import argparse
import contextlib
import platform
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from random import Random

from chaos import bombs, disks, kills, names, sentences, tampering
from chaos.tools import Counts, Tools

__all__ = ["PARTS", "Result", "main", "run_part"]

Trial = Callable[[Random, Path, Tools], Counts]

PARTS: dict[str, tuple[float, Trial]] = {
    "sentences": (2.0, sentences.trial),
    "kills": (5.0, kills.trial),
    "disks": (1.0, disks.trial),
    "names": (1.0, names.trial),
    "tampering": (1.0, tampering.trial),
    "bombs": (1.0, bombs.trial),
}
"""The parts, each with its share of the time and the function of one trial: with a seed, an empty folder, the tools."""


@dataclass
class Result:
    """What a part did.

    Args:
        counts: the number of trials, and of what was done in them.
        faults: the seed of each trial that failed, and the last line of its traceback.
        seconds: how long it took.
        is_interrupted: whether Ctrl-C ended it, which still gives a record.
    """

    counts: Counts = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0
    is_interrupted: bool = False


def run_part(
    name: str,
    tools: Tools,
    seed: int,
    *,
    seconds: float = float("inf"),
    trials: int | None = None,
    say: Callable[[str], None] = print,
) -> Result:
    """Run trials of a part, the first with the seed and each further one with the next number.

    Args:
        name: the part.
        tools: what trials share.
        seed: the seed of the first trial.
        seconds: no trial is begun after so many seconds.
        trials: the number of trials; None for as many as there is time for.
        say: called with the traceback and the command of each trial that fails.
    """
    result, begun = Result(), time.monotonic()
    _, trial = PARTS[name]
    number = seed
    while time.monotonic() - begun < seconds and (trials is None or number < seed + trials):
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=tools.folder))
        try:
            result.counts.update(trial(Random(f"{name} {number}"), folder, tools))
        except KeyboardInterrupt:
            result.is_interrupted = True
            break
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            result.faults.append((number, " ".join(f"{type(error).__name__}: {error}".split())[:300]))
            command = f"python -m tests.chaos --only {name} --seed {number} --trials 1"
            say(f"{traceback.format_exc()}\nFAILED; to repeat it: {command}\n")
        result.counts["trials"] += 1
        shutil.rmtree(folder, ignore_errors=True)
        number += 1
    result.seconds = time.monotonic() - begun
    return result


@contextlib.contextmanager
def opened_tools() -> Iterator[Tools]:
    """The tools in a temporary folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # for processes of another user
        with Tools(Path(folder)) as tools:
            yield tools


def main(argv: Sequence[str] | None = None) -> int:
    """Run the harness, and print what was done and found as a table of Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to try (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first trial of each part (default: 0)")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated (default: all)")
    parser.add_argument("--trials", type=int, help="the number of trials of each part")
    args = parser.parse_args(argv)
    parts = args.only or list(PARTS)
    total = sum(PARTS[name][0] for name in parts)
    results: dict[str, Result] = {}
    with opened_tools() as tools:
        for name in parts:
            seconds = float("inf") if args.trials else 60 * args.minutes * PARTS[name][0] / total
            results[name] = run_part(name, tools, args.seed, seconds=seconds, trials=args.trials)
            if results[name].is_interrupted:
                break
    sys.stdout.write(_record(results, args.seed) + "\n")
    return int(any(result.faults for result in results.values()))


def _record(results: dict[str, Result], seed: int) -> str:
    packages = ("torch", "transformers", "spacy", "numpy", "safetensors")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    lines = [
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {versions}; seed {seed}",
        "",
        "| part | seconds | trials | what was done | faults |",
        "|---|---|---|---|---|",
    ]
    for name, result in results.items():
        done = ", ".join(f"{n:,} {what}" for what, n in sorted(result.counts.items()) if what != "trials")
        trials = result.counts["trials"]
        lines.append(f"| {name} | {result.seconds:.0f} | {trials} | {done} | {len(result.faults)} |")
    lines += [f"\n{name}, seed {number}: {what}" for name, r in results.items() for number, what in r.faults]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
