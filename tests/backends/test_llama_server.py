"""A GGUF file behind a real llama.cpp server, which the tests start and stop.

The server is that of ``make llama``, an environment of its own, or the program ``llama-server``; the model is the
starter model ``smollm2-gguf``. Where one of them is missing, the tests skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE, ROOT
from entaug.backends.chat.gguf import LLAMA_SERVER, GGUFModel, server_command
from entaug.backends.chat.server import ChatServer
from entaug.backends.instruct import ChatRequest, Message
from entaug.backends.models.catalogue import model_path
from entaug.backends.resolve import resolve
from entaug.errors import MissingModelError
from helpers.counting import wait_until

pytest.importorskip("httpx")
pytestmark = pytest.mark.models

OWN = ROOT / ".venv-llama" / "bin" / "python"
QUESTION = ChatRequest((Message("user", "Write a sentence about Lisbon."),), seed=3, max_tokens=12)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GGUFModel]:
    with pytest.MonkeyPatch.context() as patch:
        if LLAMA_SERVER not in os.environ and OWN.exists():
            patch.setenv(LLAMA_SERVER, f"{OWN} -m llama_cpp.server")
        try:
            folder = model_path("smollm2-gguf")
            server_command(folder, 1)
        except MissingModelError as error:
            pytest.skip(f"no llama.cpp server or no GGUF file ({error}): run make llama")
        patch.setenv("ENTAUG_LLM_ANSWERS", str(tmp_path_factory.mktemp("answers") / "answers.sqlite"))
        model = resolve("generator", "smollm2-gguf")
        assert isinstance(model, GGUFModel)
        yield model
        model.close()
        assert model._process.poll() is not None, "the server is stopped"


def test_it_answers_and_answers_are_kept(model: GGUFModel) -> None:
    [answer] = model.answer([QUESTION])
    assert len(answer.text) > 10
    assert model.usage.output_tokens == 12
    assert model.answer([QUESTION]) == [answer]
    assert model.usage.from_cache == 1
    assert model.name.startswith("SmolLM2-135M-Instruct.Q4_1@"), "not the address, which differs each time"
    assert model.remote_host is None


def test_methods_use_it_by_its_address(model: GGUFModel) -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:2]
    assert ChatServer(model._url).answer([QUESTION])[0].text, "the only model of the server"
    options = {"generator": model._url, "max_new_tokens": 30, "max_attempts": 1, "guard": False}
    method: Any = entaug.create_augmenter("rewrite", **options).fit(gold)
    made = list(method.augment(gold))
    known = {(m.label, s.mention_tokens(m)) for s in gold for m in s.mentions}
    assert {(m.label, s.mention_tokens(m)) for s in made for m in s.mentions} <= known
    assert method.generator_.usage.requests == 2
    counts = method.statistics_
    assert len(made) + counts.missing.total() == 2, "nothing is lost"


def test_the_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """However it ends: the watcher's input is closed, and it stops the server."""
    pid_file = tmp_path / "pid"
    server = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    watcher = ROOT / "src" / "entaug" / "backends" / "chat" / "watcher.py"
    process = subprocess.Popen([sys.executable, "-I", watcher, sys.executable, "-c", server], stdin=subprocess.PIPE)
    wait_until(lambda: pid_file.exists() and pid_file.read_text())
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(300) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_server_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"no model")
    program = tmp_path / "server.py"
    program.write_text("raise SystemExit('cannot read the model')\n")
    monkeypatch.setenv(LLAMA_SERVER, f"{sys.executable} {program}")
    with pytest.raises(MissingModelError, match=r"did not start \(cannot read the model\)"):
        GGUFModel(tmp_path / "bad.gguf")
    monkeypatch.setenv(LLAMA_SERVER, "no-such-program-anywhere")
    with pytest.raises(MissingModelError, match="no-such-program-anywhere: No such file"):
        GGUFModel(tmp_path / "bad.gguf")
    monkeypatch.delenv(LLAMA_SERVER)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingModelError, match=r"entaug\[llama-cpp\]"):
        GGUFModel(tmp_path / "bad.gguf")
