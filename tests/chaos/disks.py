"""Full disks, files and folders that may not be written, two writers at once, and inputs that change in between."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from chaos.kills import SCENARIOS, Scenario, Whole, end_of, new_folder, start, undisturbed
from chaos.tools import Counts, Tools, check, error_line, names_in
from helpers.command_line import files_of

__all__ = ["trial"]

_NOBODY = 65534
_LIGHT = tuple(s for s in SCENARIOS if not s.is_heavy)
_RESUMABLE = tuple(s for s in _LIGHT if s.command == "augment" and s.output.endswith((".conll", ".jsonl")))


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """One of the kinds of trials."""
    kind = rng.choice([full_disk, full_disk, size_limit, size_limit, device, forbidden, two_writers, changed, changed])
    folder.chmod(0o755)
    done = kind(rng, folder, tools)
    return Counter({kind.__name__.replace("_", " "): 1}) + Counter(done)


def _outcome(scenario: Scenario, work: Path, whole: Whole, run: Callable[[], tuple[int, str]]) -> str:
    """Run a command that may lack space: it succeeds, or says so in one line and leaves nothing that looks whole."""
    code, said = run()
    if code == 0:
        return "had room enough"
    check((work / scenario.output).exists() is False, f"{scenario.name}: no space, and a result: {said}")
    inputs = whole.names - {scenario.output, *scenario.also}
    left = names_in(work) - inputs - {"tmp"}
    partial = {f"{name}.partial{end}" for name in (scenario.output, *scenario.also) for end in ("", ".json")}
    check(left <= partial | {*scenario.also}, f"{scenario.name}: no space, and {left} is left: {said}")
    return "ran out of space"


def full_disk(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A file system in memory that is too small, and then large enough."""
    scenario = rng.choice(_LIGHT)
    whole = undisturbed(scenario, tools)
    disk = folder / "disk"
    disk.mkdir()
    sizes = {path.name: path.stat().st_size for path in _inputs(scenario, folder, tools)}
    wanted = sum(len(content) for files in whole.results.values() for content in files.values())
    size = 4096 * len(sizes) + sum(sizes.values()) + int(rng.uniform(0.02, 2.2) * wanted) + 40_000
    with _mounted(disk, size) as mounted:
        if not mounted:
            return Counter({"no right to mount": 1})
        work, temporary = new_folder(scenario, disk, tools)
        if rng.random() < 0.5:
            temporary = folder

        def run() -> tuple[int, str]:
            ended = start(scenario, list(scenario.argv), work, temporary, tools).wait()
            return ended.code, "" if ended.code == 0 else error_line(ended, (3,))

        outcome = _outcome(scenario, work, whole, run)
        subprocess.run(["mount", "-o", f"remount,size={size + (64 << 20)}", str(disk)], check=True)
        if outcome != "had room enough":
            check(temporary == folder or not names_in(temporary), f"left in TMPDIR: {names_in(temporary)}")
            end_of(scenario, list(scenario.argv), work, disk / "tmp", whole, tools)
    return Counter({outcome: 1})


def _inputs(scenario: Scenario, folder: Path, tools: Tools) -> list[Path]:
    probe = folder / "probe"
    probe.mkdir()
    scenario.prepare(probe, tools)
    return [path for path in probe.iterdir() if path.is_file()]


@contextlib.contextmanager
def _mounted(folder: Path, size: int) -> Iterator[bool]:
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(options, capture_output=True, check=False).returncode
    ):
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def size_limit(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A limit on the size of files, as on some clusters."""
    scenario = rng.choice(_LIGHT)
    whole = undisturbed(scenario, tools)
    work, temporary = new_folder(scenario, folder, tools)
    largest = max(len(content) for files in whole.results.values() for content in files.values())
    limit = int(4096 + rng.uniform(0.0, 1.2) * largest)

    def run() -> tuple[int, str]:
        ended = start(scenario, list(scenario.argv), work, temporary, tools, limits={"FSIZE": limit}).wait()
        return ended.code, "" if ended.code == 0 else error_line(ended, (3,))

    outcome = _outcome(scenario, work, whole, run)
    check(not names_in(temporary), f"left in TMPDIR: {names_in(temporary)}")
    if outcome != "had room enough":
        end_of(scenario, list(scenario.argv), work, temporary, whole, tools)
    return Counter({outcome: 1})


def device(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A device that is always full as the output."""
    scenario = rng.choice([s for s in _LIGHT if s.output.endswith((".conll", ".jsonl", ".md"))])
    work, temporary = new_folder(scenario, folder, tools)
    before = names_in(work)
    argv = ["/dev/full" if argument == scenario.output else argument for argument in scenario.argv]
    ended = start(scenario, argv, work, temporary, tools).wait()
    check("No space left" in error_line(ended, (3,)), f"{scenario.name} into /dev/full: {ended.err}")
    check(names_in(work) == before, f"{scenario.name} into /dev/full left {names_in(work) - before}")
    return Counter()


def forbidden(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A folder that this user may not write, or an input that it may not read."""
    if os.geteuid() != 0:
        return Counter({"no right to change the user": 1})
    scenario = rng.choice(_LIGHT)
    work, temporary = new_folder(scenario, folder, tools)
    temporary.chmod(0o777)
    before = names_in(work)
    readable = rng.random() < 0.7
    work.chmod(0o555 if readable else 0o777)
    if not readable:
        next(path for path in sorted(work.iterdir()) if path.name in scenario.argv).chmod(0)
    ended = start(scenario, list(scenario.argv), work, temporary, tools, uid=_NOBODY).wait()
    said = error_line(ended, (3,) if readable else (2,))
    check("Permission denied" in said or "permission" in said, f"{scenario.name}: {said}")
    check(names_in(work) == before, f"{scenario.name} left {names_in(work) - before}")
    check(not names_in(temporary), f"left in TMPDIR: {names_in(temporary)}")
    return Counter()


def two_writers(rng: Random, folder: Path, tools: Tools) -> Counts:
    """The same command twice at once: the result is that of one, and nobody is told a lie."""
    scenario = rng.choice(_LIGHT)
    whole = undisturbed(scenario, tools)
    work, temporary = new_folder(scenario, folder, tools)
    argv = [*scenario.argv, *(["--force"] if rng.random() < 0.5 and scenario.command != "train" else [])]
    processes = [start(scenario, argv, work, temporary, tools) for _ in range(2)]
    if rng.random() < 0.4:
        processes[0].send_after(rng.uniform(0, whole.ended.cpu), signal.SIGKILL)
    ends = [process.wait() for process in processes]
    for ended in ends:
        if ended.code not in (0, -signal.SIGKILL):
            said = error_line(ended, (3,))
            check(
                "is being written by" in said or "exists" in said or "is there" in said or "holds something" in said,
                said,
            )
    if any(ended.code == 0 for ended in ends):
        check(
            files_of(work / scenario.output) == whole.results[scenario.output], f"{scenario.name}: mixed by two writers"
        )
    for path in temporary.iterdir():
        shutil.rmtree(path)
    end_of(scenario, list(scenario.argv), work, temporary, whole, tools)
    return Counter({"one was refused": int(any(ended.code == 3 for ended in ends))})


def changed(rng: Random, folder: Path, tools: Tools) -> Counts:
    """An input that changes between an interruption and the next run, which must refuse or begin anew."""
    scenario = rng.choice(_RESUMABLE)
    whole = undisturbed(scenario, tools)
    work, temporary = new_folder(scenario, folder, tools)
    at = rng.randint(1, whole.ended.changes)
    start(scenario, list(scenario.argv), work, temporary, tools, at=at, signal=int(signal.SIGKILL)).wait()
    gold = work / "gold.conll"
    text = gold.read_text(encoding="utf-8")
    gold.write_text(
        rng.choice(
            [
                text + "Zoe\tB-PER\nsleeps\tO\n\n",
                text.replace("\tO\n", "x\tO\n", 1),
                text[: text.rindex("\n\n", 0, -2) + 2],
            ]
        ),
        encoding="utf-8",
    )
    other = folder / "other"
    other.mkdir()
    fresh, fresh_temporary = new_folder(scenario, other, tools)
    shutil.copy(gold, fresh / "gold.conll")
    check(start(scenario, list(scenario.argv), fresh, fresh_temporary, tools).wait().code == 0, "a fresh run")
    ended = start(scenario, list(scenario.argv), work, temporary, tools).wait()
    if ended.code == 0:
        outcome = "began anew"
    elif "exists; pass --force" in (said := error_line(ended, (3,))):
        outcome = "was complete"
        check(files_of(work / scenario.output) == whole.results[scenario.output], "what was complete has changed")
    else:
        outcome = "refused"
        check("left by an interrupted run with other input" in said, said)
        argv = [*scenario.argv, "--force"]
        ended = start(scenario, argv, work, temporary, tools).wait()
        check(ended.code == 0, ended.err)
    if outcome != "was complete":
        for name in (scenario.output, *scenario.also):
            check(files_of(work / name) == files_of(fresh / name), f"{scenario.name}: {name} is a mixture")
        check(names_in(work) == names_in(fresh), f"left: {names_in(work) ^ names_in(fresh)}")
    return Counter({outcome: 1})
