"""Tampered models, taggers, notes of interrupted runs and checkpoints of trainings: an error, or the right result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from chaos.kills import SCENARIOS, Scenario, new_folder, start, undisturbed
from chaos.tools import Counts, Ended, Tools, check, error_line, names_in
from conftest import EXAMPLE
from entaug.backends.models.catalogue import cache_dir
from helpers.command_line import files_of

__all__ = ["trial"]

_RESUMABLE = tuple(s for s in SCENARIOS if not s.is_heavy and s.command == "augment" and s.output.endswith("onl"))
_TRAINING = tuple(s for s in SCENARIOS if "state" in s.also)


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """One of the kinds of trials; those that compute with models are fewer."""
    kind = rng.choices([interrupted, starter, tagger, model, training], [6, 2, 3, 3, 1])[0]
    done = kind(rng, folder, tools)
    return Counter({kind.__name__: 1}) + Counter(done)


def flip(rng: Random, file: Path) -> None:
    """Change one bit of a file."""
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def damage(rng: Random, file: Path) -> str:
    """Damage a file in one of several ways, and say how."""
    how = rng.choice(["a bit", "a bit", "cut", "gone", "empty", "longer"])
    size = file.stat().st_size
    if how == "a bit":
        flip(rng, file)
    elif how == "cut":
        os.truncate(file, rng.randrange(size))
    elif how == "gone":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    else:
        with file.open("ab") as out:
            out.write(rng.randbytes(rng.randint(1, 40)))
    return f"{file.name}: {how}"


# ---------------------------------------------------------------------------------------------------- interrupted runs


def _left(scenario: Scenario, tools: Tools) -> Path:
    """What a run that was killed left, with a checkpoint to go on from."""

    def make() -> Path:
        whole = undisturbed(scenario, tools)
        for at in range(whole.ended.changes - 4, 0, -1):
            folder = Path(tempfile.mkdtemp(prefix="left-", dir=tools.folder))
            work, temporary = new_folder(scenario, folder, tools)
            start(scenario, list(scenario.argv), work, temporary, tools, at=at, signal=int(signal.SIGKILL)).wait()
            note = work / f"{scenario.output}.partial.json"
            if note.exists() and "offsets" in json.loads(note.read_bytes()):
                return work
        raise AssertionError(f"{scenario.name} never wrote a checkpoint")

    path: Path = tools.once(("left", scenario), make)
    return path


def interrupted(rng: Random, folder: Path, tools: Tools) -> Counts:
    """The note, the partial file or the rejected sentences of an interrupted run are edited."""
    scenario = rng.choice(_RESUMABLE)
    whole = undisturbed(scenario, tools)
    work = folder / "work"
    shutil.copytree(_left(scenario, tools), work)
    (folder / "tmp").mkdir()
    note = work / f"{scenario.output}.partial.json"
    if rng.random() < 0.5:
        what = damage(rng, rng.choice([path for path in sorted(work.iterdir()) if ".partial" in path.name]))
    else:
        content = json.loads(note.read_bytes())
        what = _edited(rng, content)
        note.write_bytes(json.dumps(content).encode())
    ended = start(scenario, list(scenario.argv), work, folder / "tmp", tools).wait()
    if ended.code == 0:
        for name, wanted in whole.results.items():
            check(files_of(work / name) == wanted, f"{scenario.name}: {what}, and {name} differs")
        own, other = _told(ended), _told(whole.ended)
        check(own == other, f"{scenario.name}: {what}, and the summary differs: {own} not {other}")
        return Counter({"right result": 1})
    check(".partial" in error_line(ended, (2, 3)), ended.err)
    check(not (work / scenario.output).exists(), f"{scenario.name}: {what}, an error and a result")
    ended = start(scenario, [*scenario.argv, "--force"], work, folder / "tmp", tools).wait()
    check(ended.code == 0, f"{scenario.name}: {what}, then --force: {ended.err}")
    check(names_in(work) == whole.names, f"{scenario.name}: {what}, left {names_in(work) ^ whole.names}")
    return Counter({"refused": 1})


def _told(ended: Ended) -> list[str]:
    """The lines of a summary, but those on resuming and on single sentences."""
    lines = [line for line in ended.err.splitlines() if "resumed" not in line]
    return [line for line in lines if line.startswith(("  ", "not generated", "wrote")) and "|" not in line]


def _edited(rng: Random, content: dict[str, Any]) -> str:
    """Change one value of a note, at any depth; say which."""
    at: Any = content
    path = []
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return "nothing"
        key = rng.choice(keys)
        path.append(str(key))
        if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.85:
            at = at[key]
            continue
        old = at[key]
        values: list[Any] = [None, -1, 0, "x", [], {}, 10**30, 1.5, True]
        if isinstance(old, int):
            values += [old + 1, old - 1, old + 100] * 3
        at[key] = rng.choice(values)
        if rng.random() < 0.1:
            del at[key]
        return f"{'.'.join(path)} of the note was {str(old)[:40]}, now {at.get(key) if isinstance(at, dict) else ''!s}"


def training(rng: Random, folder: Path, tools: Tools) -> Counts:
    """The state of a training that was killed is damaged: it is trained anew, or there is an error."""
    scenario = rng.choice(_TRAINING)
    whole = undisturbed(scenario, tools)
    work, temporary = new_folder(scenario, folder, tools)
    at = rng.randint(whole.ended.changes // 3, whole.ended.changes)
    start(scenario, list(scenario.argv), work, temporary, tools, at=at, signal=int(signal.SIGKILL)).wait()
    files = [path for path in sorted((work / "state").rglob("*")) if path.is_file() and path.stat().st_size]
    if not files:
        return Counter({"nothing to damage": 1})
    what = damage(rng, rng.choice(files))
    shutil.rmtree(temporary)
    temporary.mkdir()
    force = ["--force"] if (work / scenario.output).exists() else []
    ended = start(scenario, [*scenario.argv, *force], work, temporary, tools).wait()
    if ended.code == 0:
        got = files_of(work / scenario.output)
        check(got == whole.results[scenario.output], f"{scenario.name}: {what}, killed at {at}: another result")
        return Counter({"right result": 1})
    error_line(ended, (2, 3))
    return Counter({"refused": 1})


# -------------------------------------------------------------------------------------------------- taggers and models


def _trained(tools: Tools) -> Path:
    """A tagger, with its scores on the example beside it."""

    def make() -> Path:
        folder = tools.folder / "tagger"
        folder.mkdir()
        argv = ["train", str(EXAMPLE / "dev.conll"), "--encoder", str(tools.model("bert")), "--steps", "6", "-o", "t"]
        ended = tools.heavy.run(argv, folder, env=tools.no_models)
        check(ended.code == 0, ended.err)
        return folder / "t"

    path: Path = tools.once("tagger", make)
    return path


def _same_or_refused(
    rng: Random, folder: Path, tools: Tools, made: Path, run: Callable[[Path], Ended], tamper: Callable[[Path], str]
) -> Counts:
    """Run with a tampered copy: what is printed is what it was, or one line of error."""
    wanted = tools.once(("whole", made), lambda: run(made))
    check(wanted.code == 0, wanted.err)
    copy = folder / made.name
    shutil.copytree(made, copy)
    what = tamper(copy)
    ended = run(copy)
    del rng
    if ended.code == 0:
        check(ended.out.replace(str(copy), "") == wanted.out.replace(str(made), ""), f"{what}: another result")
        return Counter({"right result": 1})
    error_line(ended)
    return Counter({"refused": 1})


def _edit_json(rng: Random, file: Path) -> str:
    content = json.loads(file.read_text(encoding="utf-8"))
    return f"{file.name}: {_edit_and_write(rng, file, content)}"


def _edit_and_write(rng: Random, file: Path, content: dict[str, Any]) -> str:
    what = _edited(rng, content)
    file.write_text(json.dumps(content), encoding="utf-8")
    return what


def tagger(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A saved tagger is tampered with; its results do not change unnoticed."""

    def run(path: Path) -> Ended:
        argv = ["evaluate", str(EXAMPLE / "test.conll"), str(path), "--json"]
        return tools.heavy.run(argv, folder, env=tools.no_models)

    def tamper(copy: Path) -> str:
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        jsons = [path for path in files if path.suffix == ".json"]
        return _edit_json(rng, rng.choice(jsons)) if rng.random() < 0.4 else damage(rng, rng.choice(files))

    return _same_or_refused(rng, folder, tools, _trained(tools), run, tamper)


def model(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A model of the user is tampered with: it is another model, by name, or there is an error; never a traceback."""
    made = tools.model("bert")
    gold = folder / "gold.conll"
    gold.write_text("".join(tools.gold[:4]), encoding="utf-8")
    copy = folder / made.name
    shutil.copytree(made, copy)
    how = rng.choice(["damage", "damage", "json", "shape", "tokenizer"])
    if how == "damage":
        what = damage(rng, rng.choice(sorted(copy.iterdir())))
    elif how == "json":
        what = _edit_json(rng, rng.choice(sorted(copy.glob("*.json"))))
    elif how == "shape":
        config = json.loads((copy / "config.json").read_text())
        name = rng.choice(
            ["hidden_size", "vocab_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings"]
        )
        config[name] = rng.choice([config[name] * 2, max(1, config[name] // 2), config[name] + 4])
        (copy / "config.json").write_text(json.dumps(config))
        what = f"{name} = {config[name]}"
    else:
        other = tools.model("llama")
        for file in other.glob("*token*"):
            shutil.copy(file, copy)
        what = "the tokenizer of another model"
    argv = ["augment", "gold.conll", "-m", "lm", "--masked-lm", str(copy), "--no-guard", "-o", "out.jsonl"]
    ended = tools.heavy.run(argv, folder, env=tools.no_models, limits={"CPU": 120})
    if ended.code == 0:
        check((folder / "out.jsonl").exists(), f"{what}: success without a result")
        return Counter({"taken as a model of its own": 1})
    said = error_line(ended)
    check(not (folder / "out.jsonl").exists(), f"{what}: an error and a result")
    nothing = "generated no sentence" in said
    return Counter({"made nothing" if nothing else "refused": 1})


def starter(rng: Random, folder: Path, tools: Tools) -> Counts:
    """A starter model in the cache is damaged, which is seen when it is asked for."""
    source = cache_dir() / "tiny-bert"
    if not source.is_dir():
        return Counter({"no tiny-bert here": 1})
    cache, whole = folder / "cache", folder / "whole"
    for copy in (cache, whole):  # without other models, which the method would use
        shutil.copytree(source, copy / "tiny-bert")
    what = damage(rng, rng.choice([path for path in sorted((cache / "tiny-bert").rglob("*")) if path.is_file()]))
    (folder / "gold.conll").write_text("".join(tools.gold[:20]), encoding="utf-8")
    argv = ["augment", "gold.conll", "-m", "lm", "--masked-lm", "tiny-bert", "-o"]

    def run(folder_of_models: Path, name: str) -> Ended:
        return tools.heavy.run([*argv, name], folder, env={"ENTAUG_CACHE": str(folder_of_models)})

    ended = run(cache, "out.conll")
    if ended.code == 0:
        check(run(whole, "whole.conll").code == 0, "the undamaged one")
        same = (folder / "out.conll").read_bytes() == (folder / "whole.conll").read_bytes()
        check(same, f"{what}: another result")
        return Counter({"right result": 1})
    check("entaug models prepare tiny-bert" in error_line(ended), ended.err)
    return Counter({"refused": 1})
