"""All speed comparisons in one command, and the comparison of two runs.

    make bench-all                         # or: python benchmarks/suite.py run --peers .venv-peers/bin/python
    make bench-all ONLY=rules,start        # some parts; the others stay as they were
    make bench-compare                     # or: python benchmarks/suite.py compare benchmarks/speed.json NEW.json

`run` writes the figures as JSON and a page that is made from them. Each part runs in a process of its own with as many
cores and threads as it says. `compare` names what became slower by more than a tenth, and then exits with 1: by the
quotient with the peer of the same run, else with fixed work measured beside (see benchmarks/records.py). Peers live in
an environment of their own (benchmarks/requirements-peers.txt); without it their columns stay empty, and the parts
that consist of nothing else are left out.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from records import Measurement, Part, compared, machine, page, reference, versions

HERE = Path(__file__).parent
RUNS = 2


class PartOf(NamedTuple):
    """Where a part is.

    Args:
        function: its module and function, which is called with the peers and whether it is the short form.
        title: what it is about.
        threads: as many threads on as many cores.
        needs_peers: whether it is nothing without its peers.
    """

    function: str
    title: str
    threads: int = 1
    needs_peers: bool = False


PARTS = {
    "rules": PartOf("speed:rules", "methods without models, check and convert, one core"),
    "start": PartOf("speed:start", "CPU seconds until a command is there"),
    "large": PartOf("speed:large", "large files through the command line, one core"),
    "jobs": PartOf("speed:jobs", "several processes, all cores", threads=0),
    "pll": PartOf("models:pll", "pseudo-log-likelihood", 2, needs_peers=True),
    "bertscore": PartOf("models:bertscore", "BERTScore of all pairs", 2, needs_peers=True),
    "lm": PartOf("models:lm", "replacement by a masked language model", 2, needs_peers=True),
    "generator": PartOf("generators:generator", "fine-tuning and sampling of a generator", 2),
    "bt": PartOf("models:bt", "backtranslation beside one text after the other", 2),
}


class Peers:
    """The peers' environment.

    Args:
        python: its interpreter.
        threads: of torch, there as here.
    """

    def __init__(self, python: str, threads: int = 1) -> None:
        self.python = python
        self.threads = threads

    def __call__(self, name: str, **job: Any) -> dict[str, Any]:
        """A peer's seconds and results."""
        done = subprocess.run(
            [self.python, str(HERE / "peers.py")],
            input=json.dumps({"peer": name, "threads": self.threads, "runs": RUNS, **job}),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def measured(name: str, peers_python: str, quick: bool) -> Part:
    """Measure a part, in this process."""
    part = PARTS[name]
    threads = part.threads or len(os.sched_getaffinity(0))
    if part.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    module, _, function = part.function.partition(":")
    peers = Peers(peers_python, threads) if Path(peers_python).is_file() else None
    before = reference(0.1 if quick else 0.5)
    measurements: list[Measurement] = []
    for one in getattr(importlib.import_module(module), function)(peers, quick):
        measurements.append(one)
        print(f"{name}: {one.what}: {one.value or one.note} {one.unit}", file=sys.stderr, flush=True)
    after = reference(0.1 if quick else 0.5)
    installed = versions()
    if any(one.peer for one in measurements) and peers is not None:
        installed |= {f"peer {package}": version for package, version in peers("versions").items()}
    rates = {work: max(before[work], after[work]) for work in before}
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    return Part(
        quick=quick,
        date=today,
        machine=machine(threads),
        versions=installed,
        rates=rates,
        measurements=measurements,
    )


def read(path: Path) -> dict[str, Part]:
    """The parts of a run, by name."""
    return {name: Part.from_dict(part) for name, part in json.loads(path.read_text(encoding="utf-8")).items()}


def run(args: argparse.Namespace) -> int:
    """Measure the chosen parts, each in a process of its own, and write both files after each."""
    chosen = args.only.split(",") if args.only else list(PARTS)
    if unknown := [name for name in chosen if name not in PARTS]:
        sys.exit(f"no such part: {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    parts = read(args.json) if args.json.is_file() else {}
    for name in chosen:
        if PARTS[name].needs_peers and not Path(args.peers).is_file():
            print(f"{name}: left out, as {args.peers} is not there", file=sys.stderr)
            continue
        threads = PARTS[name].threads or 1
        command = [sys.executable, __file__, "part", name, "--peers", args.peers, *(["--quick"] if args.quick else [])]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled modules are kept, as on users' machines
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=environment)
        if done.returncode:
            sys.exit(f"{name} failed")
        parts[name] = Part.from_dict(json.loads(done.stdout.splitlines()[-1]))
        parts = {name: parts[name] for name in PARTS if name in parts}
        text = json.dumps({name: part.to_dict() for name, part in parts.items()}, indent=1, ensure_ascii=False)
        args.json.write_text(text + "\n", encoding="utf-8")
        args.page.write_text(page(parts, {name: part.title for name, part in PARTS.items()}), encoding="utf-8")
    return 0


def compare(args: argparse.Namespace) -> int:
    """Print what became slower by more than a tenth; 1 if anything did."""
    changes, left_out = compared(read(args.old), read(args.new))
    for text in left_out:
        print(f"not compared: {text}")
    worse = [change for change in changes if change.is_worse]
    for change in sorted(worse, key=lambda change: change.times):
        print(f"slower: {change.name}: {change.times:.2f} times as good ({change.text})")
    print(f"{len(changes)} figures compared, {len(worse)} worse by more than a tenth")
    return int(bool(worse))


def main() -> int:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("run", help="measure, and write JSON and page")
    one.add_argument("--only", help=f"parts, with commas between: {', '.join(PARTS)}")
    one.add_argument("--json", type=Path, default=HERE / "speed.json")
    one.add_argument("--page", type=Path, default=HERE / "speed.md")
    one.set_defaults(act=run)
    part = commands.add_parser("part", help="measure one part, and print it as JSON")
    part.add_argument("name", choices=PARTS)
    part.set_defaults(act=lambda args: print(json.dumps(measured(args.name, args.peers, args.quick).to_dict())) or 0)
    for each in (one, part):
        each.add_argument("--peers", default=str(HERE.parent / ".venv-peers" / "bin" / "python"), help="their Python")
        each.add_argument("--quick", action="store_true", help="a short form, to see that all runs")
    two = commands.add_parser("compare", help="name what became slower by more than a tenth")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    two.set_defaults(act=compare)
    args = parser.parse_args()
    return int(args.act(args))


if __name__ == "__main__":
    sys.exit(main())
