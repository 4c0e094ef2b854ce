"""What the parts share: processes that are started and disturbed, tiny models, and the check that finds a fault."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from conftest import EXAMPLE, ROOT

__all__ = ["Counts", "Ended", "FaultError", "Process", "Tools", "check", "error_line", "names_in"]

Counts = Counter[str]
_TICKS = os.sysconf("SC_CLK_TCK")


class FaultError(AssertionError):
    """The program did what it must not do."""


def check(condition: object, message: str) -> None:
    """Raise a `FaultError` unless something holds."""
    if not condition:
        raise FaultError(message)


def names_in(folder: Path) -> set[str]:
    """The names of all entries of a folder, hidden ones included."""
    return {path.name for path in folder.iterdir()}


@dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Args:
        code: the exit code; the negative number of a signal.
        out: standard output.
        err: standard error.
        cpu: seconds of processor time.
        mib: the largest resident memory, in MiB.
        changes: how often it changed the file system, if that was counted.
    """

    code: int
    out: str
    err: str
    cpu: float
    mib: float
    changes: int = 0


def error_line(ended: Ended, codes: Sequence[int] = (2,)) -> str:
    """The one line of an error; a `FaultError` if there is another number of lines, or another exit code."""
    lines = [line for line in ended.err.splitlines() if line.startswith("entaug")]
    said = ended.err[-1500:]
    check("Traceback" not in ended.err, f"a traceback: {said}")
    check(ended.code in codes, f"exit code {ended.code}, not one of {codes}: {said}")
    check(len(lines) == 1, f"{len(lines)} lines of error: {said}")
    check(ended.err.splitlines()[-1] == lines[0], f"the error is not the last line: {said}")
    return lines[0]


@dataclass
class Process:
    """A process of the program that runs."""

    zygote: Zygote
    pid: int
    folder: Path

    def cpu(self) -> float:
        """Its processor time in seconds so far."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return float("inf")
        fields = stat.rpartition(")")[2].split()
        return float("inf") if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / _TICKS

    def send_after(self, seconds: float, number: signal.Signals) -> None:
        """Send a signal when it has used so many seconds of processor time."""
        while self.cpu() < seconds:
            time.sleep(0.002)
        self.send(number)

    def send(self, number: signal.Signals, *, to_group: bool = False) -> None:
        """Send a signal to the process, or to all that it has started, too."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if to_group else os.kill)(self.pid, number)

    def wait(self) -> Ended:
        """Wait until it has ended."""
        answer = self.zygote.ask({"wait": self.pid})
        count = self.folder / "count"
        changes = int(count.read_text() or 0) if count.exists() else 0  # a full disk takes no count
        out, err = ((self.folder / name).read_bytes().decode("utf-8", "replace") for name in ("out", "err"))
        shutil.rmtree(self.folder)
        return Ended(answer["code"], out, err, answer["cpu"], answer["kib"] / 1024, changes)


class Zygote:
    """See ``zygote.py``."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._folder = folder
        self._numbers = iter(range(10**9))
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py")), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
        )
        self._answer()

    def start(self, argv: Sequence[str], cwd: Path, **job: Any) -> Process:
        """Start the program.

        Args:
            argv: its arguments.
            cwd: the folder to run in.
            job: see ``zygote.py``: ``env``, ``limits``, ``uid``, ``note_every_batch``, and ``at`` and ``signal``.
        """
        folder = self._folder / f"process-{next(self._numbers)}"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        for name in ("out", "err"):
            (folder / name).touch()
        outputs = {"out": str(folder / "out"), "err": str(folder / "err"), "count": str(folder / "count")}
        pid = self.ask({"argv": list(argv), "cwd": str(cwd), **outputs, **job, "env": {**job.get("env", {})}})["pid"]
        return Process(self, pid, folder)

    def run(self, argv: Sequence[str], cwd: Path, **job: Any) -> Ended:
        """Start the program and wait for its end."""
        return self.start(argv, cwd, **job).wait()

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Send a job, and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        check(line, "the process that starts the others has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()


ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "ENTAUG_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass
class Tools:
    """What trials share; made when it is first needed.

    Args:
        folder: a folder that holds it.
    """

    folder: Path
    known: dict[Any, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._closing = contextlib.ExitStack()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.close()

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What a function returned when it was first called for a key."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def _zygote(self, kind: str) -> Zygote:
        (self.folder / "empty-cache").mkdir(exist_ok=True)
        zygote = Zygote(kind, self.folder)
        self._closing.callback(zygote.close)
        return zygote

    @cached_property
    def light(self) -> Zygote:
        """Processes that have imported no library of models."""
        return self._zygote("light")

    @cached_property
    def heavy(self) -> Zygote:
        """Processes that have imported PyTorch and transformers."""
        return self._zygote("heavy")

    @property
    def no_models(self) -> dict[str, str]:
        """The environment of a machine on which no starter model is prepared."""
        return {"ENTAUG_CACHE": str(self.folder / "empty-cache")}

    def model(self, kind: str) -> Path:
        """A tiny model with random weights, see ``tiny.save``."""
        from helpers import tiny

        path: Path = self.once(("model", kind), lambda: tiny.save(self.folder / f"tiny-{kind}", kind))
        return path

    @cached_property
    def browser(self) -> Any:
        """Chromium, or None where there is none."""
        from conftest import chromium

        try:
            return self._closing.enter_context(chromium())
        except ImportError:
            return None

    @cached_property
    def gold(self) -> list[str]:
        """The training sentences of the example, each as the text of a block of CoNLL."""
        return [f"{block}\n\n" for block in (EXAMPLE / "train.conll").read_text(encoding="utf-8").strip().split("\n\n")]
