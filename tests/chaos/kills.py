"""Signals at random moments to processes of the program; then the same command again, until it ends by itself.

A moment is either a change to the file system, counted by an audit hook in the process itself (so that a trial can be
repeated exactly), or an amount of processor time, measured from outside (so that it falls into any instruction).
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from chaos.tools import Counts, Ended, FaultError, Process, Tools, check, names_in
from helpers.command_line import files_of

__all__ = ["SCENARIOS", "Scenario", "Whole", "end_of", "new_folder", "start", "trial", "tried", "undisturbed"]

_INTERRUPTED = "entaug: interrupted"
_MAX_KILLS = 8  # in a row, before the command may end


@dataclass(frozen=True)
class Scenario:
    """A command that is killed and repeated.

    Args:
        name: what is counted.
        argv: its arguments; relative names are those of files in a folder of its own.
        output: what it writes, a file or a folder.
        prepare: fills the folder with its input.
        is_heavy: whether it computes with PyTorch.
        also: what else it leaves when it has ended, a file or a folder each.
        weight: how often it is drawn.
        has_models: whether it finds the starter models that are prepared here.
    """

    name: str
    argv: Sequence[str]
    output: str
    prepare: Callable[[Path, Tools], object]
    is_heavy: bool = False
    also: Sequence[str] = ()
    weight: float = 1.0
    has_models: bool = False

    @property
    def command(self) -> str:
        """The command alone."""
        return self.argv[0]


def gold(times: int) -> Callable[[Path, Tools], object]:
    """Sentences of the example corpus, repeated; in every repetition other ones."""

    def prepare(folder: Path, tools: Tools) -> None:
        blocks = [re.sub(r"(?m)^([a-z]+)\t", rf"\g<1>{n or ''}\t", block) for n in range(times) for block in tools.gold]
        (folder / "gold.conll").write_text("".join(blocks), encoding="utf-8")

    return prepare


def few(number: int) -> Callable[[Path, Tools], object]:
    """The first sentences of the example corpus, for methods with models."""

    def prepare(folder: Path, tools: Tools) -> None:
        (folder / "gold.conll").write_text("".join(tools.gold[:number]), encoding="utf-8")
        (folder / "dev.conll").write_text("".join(tools.gold[number : 2 * number]), encoding="utf-8")
        for kind in ("bert", "llama"):
            (folder / kind).symlink_to(tools.model(kind))

    return prepare


def short(number: int) -> Callable[[Path, Tools], object]:
    """The shortest sentences of the example corpus, which a tiny generator with random weights completes."""

    def prepare(folder: Path, tools: Tools) -> None:
        blocks = sorted(tools.gold, key=lambda block: block.count("\n"))
        (folder / "gold.conll").write_text("".join(blocks[:number]), encoding="utf-8")
        (folder / "bart").symlink_to(tools.model("bart"))

    return prepare


def augmented(folder: Path, tools: Tools) -> None:
    """Gold and augmented sentences of two methods."""
    made = tools.once("augmented", lambda: _augmented(tools))
    for path in made.iterdir():
        shutil.copy(path, folder)
    (folder / "llama").symlink_to(tools.model("llama"))


def _augmented(tools: Tools) -> Path:
    folder = tools.folder / "augmented"
    folder.mkdir()
    gold(2)(folder, tools)
    for method in ("mr", "sis"):
        ended = tools.light.run(["augment", "gold.conll", "-m", method, "-o", f"{method}.jsonl"], folder)
        check(ended.code == 0, ended.err)
    return folder


def planned(folder: Path, tools: Tools) -> None:
    """An experiment of three runs."""
    few(12)(folder, tools)
    (folder / "test.conll").write_text("".join(tools.gold[24:36]), encoding="utf-8")
    (folder / "plan.toml").write_text(
        'seeds = [1]\nbaselines = ["gold"]\n[training]\nepochs = 1\nbatch_size = 4\n[[taggers]]\nname = "linear"\n'
        'encoder = "bert"\nprecision = "fp32"\n[[corpora]]\nname = "toy"\ntrain = "gold.conll"\ndev = "dev.conll"\n'
        'test = "test.conll"\nsizes = [8]\n[[methods]]\nname = "mr"\n[[methods]]\nname = "sis"\n',
        encoding="utf-8",
    )


def _augment(name: str, *more: str, output: str = "out.conll", **options: Any) -> Scenario:
    return Scenario(f"augment {name}", ("augment", "gold.conll", "-m", name, *more, "-o", output), output, **options)


def _to(format_: str, output: str) -> tuple[Scenario, Scenario]:
    """Methods by rules, and conversion, into a format."""
    return (
        _augment("mr", "--to", format_, "--seed", "3", output=output, prepare=gold(3), weight=0.5),
        Scenario(
            f"convert to {format_}",
            ("convert", "gold.conll", output, "--to", format_, "--allow-loss", "tokens"),
            output,
            gold(3),
            weight=0.5,
        ),
    )


_TRAINED: dict[str, Any] = {"is_heavy": True, "prepare": few(10), "also": ("state",), "weight": 0.6}
_TUNED: dict[str, Any] = {**_TRAINED, "prepare": short(8)}
_GENERATOR = ("--generator", "bart", "--max-new-tokens", "60", "--max-attempts", "6", "--any-language")
_TRAINING = ("--epochs", "2", "--batch-size", "8", "--no-guard", "--checkpoint-dir", "state")

SCENARIOS: tuple[Scenario, ...] = (
    _augment("sis", prepare=gold(4), weight=4),
    _augment(
        "lwtr",
        "--copies",
        "2",
        "--filter",
        "validity",
        "--rejected",
        "no.jsonl",
        prepare=gold(4),
        also=("no.jsonl",),
        weight=2,
    ),
    _augment("mr", "--copies", "3", output="out.jsonl.gz", prepare=gold(4), weight=2),
    _augment("sis+mr", "--only-new", output="out.jsonl", prepare=gold(4), weight=1),
    *_to("docbin", "out.spacy"),
    *_to("parquet", "out.parquet"),
    *_to("datasets", "out"),
    *_to("brat", "out"),
    *_to("label-studio", "out.json"),
    Scenario(
        "filter",
        (
            "filter",
            "mr.jsonl",
            "--filter",
            "validity",
            "--filter",
            "duplicates:threshold=0.7",
            "-o",
            "out.jsonl",
            "--rejected",
            "no.jsonl",
        ),
        "out.jsonl",
        augmented,
        also=("no.jsonl",),
        weight=2,
    ),
    Scenario(
        "filter fluency",
        ("filter", "mr.jsonl", "--filter", "fluency:causal_lm=llama", "-o", "out.jsonl", "--any-language"),
        "out.jsonl",
        augmented,
        is_heavy=True,
        weight=0.4,
    ),
    Scenario("quality", ("quality", "mr.jsonl", "sis.jsonl", "--no-models", "-o", "out.md"), "out.md", augmented),
    Scenario(
        "quality with a model",
        ("quality", "mr.jsonl", "--causal-lm", "llama", "--measures", "perplexity", "--any-language", "-o", "out.md"),
        "out.md",
        augmented,
        is_heavy=True,
        weight=0.4,
    ),
    Scenario(
        "report", ("report", "mr.jsonl", "sis.jsonl", "--no-models", "-o", "out.html"), "out.html", augmented, weight=2
    ),
    Scenario(
        "train",
        (
            "train",
            "gold.conll",
            "--encoder",
            "bert",
            "--steps",
            "4",
            "--batch-size",
            "4",
            "--dev",
            "dev.conll",
            "-o",
            "out",
        ),
        "out",
        few(12),
        is_heavy=True,
        weight=0.8,
    ),
    Scenario("experiment", ("experiment", "plan.toml", "--jobs", "1"), "plan", planned, is_heavy=True, weight=0.3),
    _augment("lm", "--masked-lm", "bert", "--no-guard", prepare=few(70), is_heavy=True, weight=1.5),
    _augment("lm", "--copies", "2", prepare=few(6), is_heavy=True, has_models=True, weight=0.15),
    _augment("melm", "--masked-lm", "bert", *_TRAINING, **_TRAINED),
    _augment("daga", *_TRAINING, **_TRAINED),
    _augment("entda", *_GENERATOR, "--candidates", "1", *_TRAINING, **_TUNED),
    _augment("mulda", *_GENERATOR, *_TRAINING, **_TUNED),
)


@dataclass(frozen=True)
class Whole:
    """An undisturbed run.

    Args:
        ended: how it ended.
        names: all that was in its folder then.
        results: the bytes of its output, and of what else it leaves.
    """

    ended: Ended
    names: set[str]
    results: dict[str, dict[str, bytes]]


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """Kill one command several times, then let it end; and compare with one that was not disturbed."""
    scenario = rng.choices(SCENARIOS, [s.weight for s in SCENARIOS])[0]
    return tried(scenario, rng, folder, tools)


def tried(scenario: Scenario, rng: Random, folder: Path, tools: Tools) -> Counts:
    """One trial of a scenario."""
    whole = undisturbed(scenario, tools)
    counts: Counts = Counter()
    work, temporary = new_folder(scenario, folder, tools)
    argv = list(scenario.argv)
    for _ in range(rng.randint(1, _MAX_KILLS)):
        number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        ended, moment = _disturbed(scenario, argv, work, temporary, number, whole, rng, tools)
        counts["signals"] += 1
        _judge_interrupted(scenario, work, ended, number, whole, f"{number.name} at {moment}")
        if ended.code != 0:
            counts[f"{number.name} that ended it"] += 1
            counts[f"ended {scenario.name}"] += 1
            counts["ended with models"] += scenario.is_heavy
        # A signal while a temporary folder is being removed leaves it to the system, as a kill does.
        counts["left something in TMPDIR"] += bool(names_in(temporary))
        for path in temporary.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if _is_there(scenario, work, whole):
            break
    end_of(scenario, argv, work, temporary, whole, tools)
    return +counts


def start(scenario: Scenario, argv: list[str], work: Path, temporary: Path, tools: Tools, **job: Any) -> Process:
    """Start the command of a scenario in a folder, with a folder for temporary files."""
    zygote = tools.heavy if scenario.is_heavy else tools.light
    env = {"TMPDIR": str(temporary), **({} if scenario.has_models else tools.no_models)}
    return zygote.start(argv, work, env=env, note_every_batch=True, **job)


def new_folder(scenario: Scenario, folder: Path, tools: Tools) -> tuple[Path, Path]:
    """A folder with the input of a scenario, and one for temporary files."""
    work, temporary = folder / "work", folder / "tmp"
    work.mkdir()
    temporary.mkdir()
    scenario.prepare(work, tools)
    return work, temporary


def undisturbed(scenario: Scenario, tools: Tools) -> Whole:
    """What a scenario gives when nothing disturbs it."""
    whole: Whole = tools.once(("whole", scenario), lambda: _run_whole(scenario, tools))
    return whole


def _run_whole(scenario: Scenario, tools: Tools) -> Whole:
    folder = Path(tempfile.mkdtemp(prefix="whole-", dir=tools.folder))
    work, temporary = new_folder(scenario, folder, tools)
    ended = start(scenario, list(scenario.argv), work, temporary, tools).wait()
    check(ended.code == 0, f"{scenario.name} undisturbed: {ended.code} {ended.err}")
    check(not names_in(temporary), f"{scenario.name} undisturbed left {names_in(temporary)}")
    return Whole(ended, names_in(work), results_of(scenario, work))


def results_of(scenario: Scenario, work: Path) -> dict[str, dict[str, bytes]]:
    results = {}
    for name in (scenario.output, *scenario.also):
        if (work / name).exists():
            files = files_of(work / name)
            if scenario.command == "experiment":
                files = {n: content for n, content in files.items() if n == "runs.jsonl" or n.startswith("data")}
            results[name] = files
    return results


def _disturbed(
    scenario: Scenario,
    argv: list[str],
    work: Path,
    temporary: Path,
    number: signal.Signals,
    whole: Whole,
    rng: Random,
    tools: Tools,
) -> tuple[Ended, str]:
    """Run the command, and send a signal at a random moment."""
    if rng.random() < 0.6:
        at = rng.randint(1, max(1, whole.ended.changes))
        process = start(scenario, argv, work, temporary, tools, at=at, signal=int(number))
        return process.wait(), f"change {at} of {whole.ended.changes}"
    seconds = rng.uniform(0.0, 1.05 * whole.ended.cpu)
    process = start(scenario, argv, work, temporary, tools)
    if scenario.command == "experiment":  # its own process computes little
        time.sleep(rng.uniform(0, 2 * whole.ended.cpu + 1))
        process.send(number, to_group=True)
    else:
        process.send_after(seconds, number)
    return process.wait(), f"{seconds:.2f} s of {whole.ended.cpu:.2f}"


def _judge_interrupted(
    scenario: Scenario, work: Path, ended: Ended, number: signal.Signals, whole: Whole, moment: str
) -> None:
    """What must hold after a signal: the output is complete or not there, and the message is one line."""
    told = f"{scenario.name}, {moment}: exit code {ended.code}: {ended.err[-800:]}"
    check("Traceback" not in ended.err, f"a traceback; {told}")
    if number == signal.SIGKILL:
        check(ended.code in (-signal.SIGKILL, 0), told)
    elif ended.code not in (0, -number):  # before it has begun, a process of Python ends by the signal itself
        check(ended.code == 130, told)
        check(ended.err.splitlines()[-1].startswith(_INTERRUPTED), told)
    if ended.code == 0:
        check(_is_there(scenario, work, whole), f"success without a result; {told}")
    results = results_of(scenario, work)
    if scenario.command != "experiment" and scenario.output in results:
        check(results[scenario.output] == whole.results[scenario.output], f"a half-written result; {told}")


def _is_there(scenario: Scenario, work: Path, whole: Whole) -> bool:
    if scenario.command == "experiment":
        return results_of(scenario, work) == whole.results
    return (work / scenario.output).exists()


def end_of(scenario: Scenario, argv: list[str], work: Path, temporary: Path, whole: Whole, tools: Tools) -> None:
    """Run the command to its end, and compare what it leaves with an undisturbed run."""
    if _is_there(scenario, work, whole) and scenario.command not in ("experiment", "train"):
        argv = [*argv, "--force"]
    ended = start(scenario, argv, work, temporary, tools).wait()
    if _is_there(scenario, work, whole) and ended.code == 3 and scenario.command == "train":
        check("is there already" in ended.err, ended.err)
        (work / scenario.output).rename(work / "complete")
        ended = start(scenario, argv, work, temporary, tools).wait()
        check(files_of(work / "complete") == files_of(work / scenario.output), "two trainings differ")
        shutil.rmtree(work / "complete")
    check(ended.code == 0, f"{scenario.name} again: {ended.code} {ended.err}")
    results = results_of(scenario, work)
    for name, wanted in whole.results.items():
        if name in scenario.also and name == "state":
            check(set(results[name]) == set(wanted), f"{name} holds {set(results[name])}, not {set(wanted)}")
            continue
        if results.get(name) != wanted:
            different = [n for n in {*wanted, *results.get(name, {})} if results.get(name, {}).get(n) != wanted.get(n)]
            raise FaultError(f"{scenario.name}: {name} differs from an undisturbed run: {different}")
    check(names_in(work) == whole.names, f"{scenario.name} leaves {names_in(work) ^ whole.names}")
    check(not names_in(temporary), f"{scenario.name} leaves {names_in(temporary)} in TMPDIR")
