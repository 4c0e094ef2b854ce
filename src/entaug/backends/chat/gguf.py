"""GGUF files: a llama.cpp server is started on this machine and asked like any other."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from importlib import util
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from entaug.backends.chat.server import ChatServer
from entaug.backends.models.catalogue import digest
from entaug.errors import MissingModelError

LLAMA_SERVER = "ENTAUG_LLAMA_SERVER"
"""The environment variable with the command that starts a llama.cpp server, if it is not found otherwise."""

_MODULE = "llama_cpp.server"
_CONTEXT = "4096"  # tokens of a prompt and its answer
_START_SECONDS = 600.0  # large models are read slowly
_POLL_SECONDS = 0.2


def server_command(model: Path, port: int) -> list[str]:
    """Return the command that starts a llama.cpp server."""
    # It is that in the environment variable `ENTAUG_LLAMA_SERVER`, else the program `llama-server`, else the module
    # `llama_cpp.server` of this environment.
    if given := os.environ.get(LLAMA_SERVER):
        command = shlex.split(given)
    elif found := shutil.which("llama-server"):
        command = [found]
    elif util.find_spec("llama_cpp") is not None and util.find_spec("uvicorn") is not None:
        command = [sys.executable, "-m", _MODULE]
    else:
        raise MissingModelError(
            "a GGUF file needs a llama.cpp server, and there is none",
            path=str(model),
            remedy="install llama.cpp (the program llama-server), or run: pip install 'entaug[llama-cpp]'",
        )
    command += ["--model", str(model), "--host", "127.0.0.1", "--port", str(port)]
    if _MODULE in command:
        # Without the last option a second request would break off the first.
        return [*command, "--n_ctx", _CONTEXT, "--interrupt_requests", "false"]
    return [*command, "--ctx-size", _CONTEXT, "--parallel", "1"]


class GGUFModel(ChatServer):
    """A GGUF file, served by llama.cpp while this object or its process exists."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if path.is_dir() and len(files := sorted(path.glob("*.gguf"))) == 1:
            path = files[0]
        if not path.is_file():
            raise MissingModelError("there is no such file", path=str(path), remedy="check the path")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._path = path
        self._start(server_command(path, port))
        try:
            self._wait(f"http://127.0.0.1:{port}/v1/models")
            super().__init__(f"http://127.0.0.1:{port}/v1#{path.stem}", name=f"{path.stem}@{digest([path])}")
        except BaseException:
            self.close()
            raise

    def _start(self, command: list[str]) -> None:
        # The server would outlive a killed process: a watcher ends it as soon as its standard input is closed.
        watcher = [sys.executable, "-I", str(Path(__file__).with_name("watcher.py")), *command]
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(  # noqa: S603 (the user's own program)
            watcher, stdin=subprocess.PIPE, stdout=self._log, stderr=self._log, start_new_session=True
        )
        self._finalizer = weakref.finalize(self, _stop, self._process, self._log)  # also called at exit

    def _wait(self, url: str) -> None:
        """Wait until the server answers."""
        opener = build_opener(ProxyHandler({}))
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(URLError, OSError), opener.open(url, timeout=5.0):
                return
            time.sleep(_POLL_SECONDS)
        self._log.seek(0)
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        reason = " ".join((lines or ["without a message"])[-1].split())[:200]
        raise MissingModelError(
            f"the llama.cpp server did not start ({reason})",
            path=str(self._path),
            remedy=f"check the file, and the command in {LLAMA_SERVER} if it is set",
        )

    def close(self) -> None:
        """Stop the server."""
        self._finalizer()


def _stop(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    process.wait()
    log.close()
