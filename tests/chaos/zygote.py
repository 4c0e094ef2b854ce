"""A process that has imported what is slow to import, and forks a process for each command that is to be disturbed.

Each job is a line of JSON on standard input, each answer one on standard output. ``{"argv": ...}`` starts a process and
answers its number, ``{"wait": PID}`` waits for it. A started process is the program as the command line has it: only
the start of the interpreter is shared.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from typing import Any, NoReturn

_IMPORTED = {
    "light": (
        "entaug.commands.augment",
        "entaug.methods.augment",
        "entaug.commands.convert",
        "entaug.commands.filter",
        "entaug.commands.quality",
        "entaug.commands.report",
        "filelock",
        "matplotlib.backends.backend_agg",
        "matplotlib.figure",
        "pyarrow.parquet",
        "spacy",
    ),
    "heavy": (
        "entaug.commands.augment",
        "entaug.methods.augment",
        "entaug.commands.train",
        "entaug.commands.quality",
        "entaug.commands.report",
        "entaug.backends.resolve",
        "entaug.backends.transformers.masked_lm",
        "entaug.backends.transformers.causal_lm",
        "entaug.backends.transformers.generator",
        "entaug.backends.transformers.lstm",
        "entaug.taggers.flat",
        "transformers.models.auto.modeling_auto",
        "transformers.models.auto.tokenization_auto",
        "transformers.models.bart.modeling_bart",
        "transformers.models.bert.modeling_bert",
        "transformers.models.mpnet.modeling_mpnet",
        "transformers.models.t5.modeling_t5",
        "transformers.models.llama.modeling_llama",
        "sklearn.metrics",
    ),
}
# What a program does to the file system is announced before it is done.
_CHANGES = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.rmtree"}
)


def main() -> None:
    """Serve jobs until standard input ends."""
    for module in _IMPORTED[sys.argv[1]]:
        importlib.import_module(module)
    answers = os.fdopen(os.dup(1), "w")
    print(json.dumps({"ready": True}), file=answers, flush=True)
    while line := _read_line():
        job = json.loads(line)
        if "wait" in job:
            _, status, usage = os.wait4(job["wait"], 0)
            cpu = usage.ru_utime + usage.ru_stime
            answer = {"code": os.waitstatus_to_exitcode(status), "cpu": cpu, "kib": usage.ru_maxrss}
        else:
            answer = {"pid": os.fork()}
            if not answer["pid"]:
                _run(job)
        print(json.dumps(answer), file=answers, flush=True)


def _read_line() -> bytes:
    """One line, without reading further: a process that is started must not find the next ones."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return line


def _run(job: dict[str, Any]) -> NoReturn:
    """Be the program with these arguments, and end."""
    code = 1
    try:
        os.setsid()
        os.chdir(job["cwd"])
        for number, (name, flags) in enumerate(
            [(os.devnull, os.O_RDONLY), (job["out"], os.O_WRONLY | os.O_CREAT), (job["err"], os.O_WRONLY | os.O_CREAT)]
        ):
            os.dup2(os.open(name, flags, 0o666), number)
        os.environ.update(job["env"])
        tempfile.tempdir = None
        if job.get("note_every_batch"):
            from entaug.files import checkpoints

            checkpoints._CHECKPOINT_SECONDS = 0.0
        for name, limit in job.get("limits", {}).items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
        if uid := job.get("uid"):
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        counted = _count_changes(job.get("at"), job.get("signal", 0))
        from entaug.commands.main import main as program

        try:
            code = program([os.fsdecode(os.fsencode(argument)) for argument in job["argv"]])
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        total, counted[0] = counted[0], -(10**9)  # what follows is not of the program
        if job.get("count") and not job.get("uid"):  # another user may not write there
            with open(job["count"], "w", encoding="ascii") as stream:  # noqa: PTH123 - pathlib would be counted alike
                stream.write(str(total))
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        code = 1
    finally:
        os._exit(code)


def _count_changes(at: int | None, number: int) -> list[int]:
    """Count the changes to the file system, and send a signal to this process before the one with a number."""
    counted = [0]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                return
        elif event not in _CHANGES:
            return
        counted[0] += 1
        if counted[0] == at:
            os.kill(os.getpid(), number)

    sys.addaudithook(hook)
    return counted


if __name__ == "__main__":
    # A shell lets what it starts in the background ignore Ctrl-C, and that is handed down.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
