"""`entaug serve` with the real Label Studio and an annotator that is a script.

Label Studio is that of ``make label-studio``, an environment of its own. Where it is missing, the tests skip. Starting
it with an empty folder takes a minute.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import entaug
from conftest import EXAMPLE, ROOT
from entaug import Sentence
from entaug.formats.label_studio import LabelStudioDialect, regions_of
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from helpers.counting import wait_until

PROGRAM = ROOT / ".venv-ls" / "bin" / "label-studio"
LEGACY = "0123456789abcdef0123456789abcdef01234567"
PASSWORD = "geheim"  # noqa: S105 - of the tests
TASKS = 24
PATIENCE = 1800.0  # seconds, on a machine that does much else
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="Label Studio is not installed: run make label-studio"),
]
# Without these it calls no address of this machine, and takes no key that is set in advance.
SETTINGS = {
    "ML_BLOCK_LOCAL_IP": "false",
    "SSRF_PROTECTION_ENABLED": "false",
    "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
    "COLLECT_ANALYTICS": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(command: list[Any], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)), stdout=out, stderr=out, cwd=log.parent, env={**os.environ, **environment}
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=120)


@dataclass
class Studio:
    """The API of a running server, as a user's script calls it."""

    url: str
    key: str = LEGACY

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Token {LEGACY}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=300) as response:  # noqa: S310
            return json.loads(response.read() or b"null")

    def is_up(self) -> bool:
        try:
            return bool(self("GET", "/health")["status"] == "UP")
        except OSError:
            return False


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder, port = tmp_path_factory.mktemp("label-studio"), free_port()
    command = [PROGRAM, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", port]
    command += ["--data-dir", folder, "--username", "a@example.org", "--password", PASSWORD, "--user-token", LEGACY]
    found = Studio(f"http://127.0.0.1:{port}")
    with running(command, folder / "log", {**SETTINGS, "LABEL_STUDIO_BASE_DATA_DIR": str(folder)}) as process:
        wait_until(lambda: found.is_up() or process.poll() is not None, limit=PATIENCE)
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        # The key that users get today: a personal access token.
        found.key = found("POST", "/api/token/", {})["token"]
        yield found


@pytest.fixture(scope="module")
def gold() -> list[Sentence]:
    return [Sentence(s.tokens, s.mentions) for s in entaug.read(EXAMPLE / "train.conll")]


@contextmanager
def backend(folder: Path, studio: Studio, tagger: Path, *options: Any, password: str = "") -> Iterator[str]:
    """A running `entaug serve`, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "entaug", "serve", tagger, "-o", folder / "taggers", "--port", port]
    command += ["--label-studio", studio.url, *options]
    environment = {"LABEL_STUDIO_API_KEY": studio.key, "ENTAUG_SERVE_PASSWORD": password, "OMP_NUM_THREADS": "1"}
    log = folder / "serve.log"
    with running(command, log, environment) as process:
        wait_until(lambda: "listening" in log.read_text() or process.poll() is not None, limit=PATIENCE)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    assert process.returncode in (0, 130), log.read_text()


def new_project(studio: Studio, gold: list[Sentence]) -> tuple[int, dict[int, Sentence]]:
    """A project that orders tasks by uncertainty, and the gold sentence of each task."""
    labels = sorted({mention.label for sentence in gold for mention in sentence.mentions})
    xml = "".join(f'<Label value="{label}"/>' for label in labels)
    config = f'<View><Labels name="label" toName="text">{xml}</Labels><Text name="text" value="$text"/></View>'
    values = {"title": "NER", "label_config": config, "sampling": "Uncertainty sampling"}
    project = studio("POST", "/api/projects/", values)["id"]
    rows = [{"text": " ".join(s.tokens), "tokens": list(s.tokens), "place": i} for i, s in enumerate(gold)]
    studio("POST", f"/api/projects/{project}/import", rows)
    tasks = studio("GET", f"/api/tasks?project={project}&page_size=1000")["tasks"]
    assert len(tasks) == len(gold)
    return project, {task["id"]: gold[task["data"]["place"]] for task in tasks}


def annotate(studio: Studio, task: int, sentence: Sentence) -> None:
    """Submit the gold labels of a task."""
    spaced = sentence.with_(spaces=[*(" " for _ in sentence.tokens[1:]), ""])
    regions = regions_of([spaced], LabelStudioDialect(offsets="characters"))
    studio("POST", f"/api/tasks/{task}/annotations/", {"result": regions})


def predictions(studio: Studio, project: int) -> dict[str, dict[int, Any]]:
    """The predictions of each version, by task."""
    found: dict[str, dict[int, Any]] = {}
    for one in studio("GET", f"/api/predictions?task__project={project}"):
        found.setdefault(one["model_version"], {})[one["task"]] = one
    return found


def shown_version(studio: Studio, project: int, number: int) -> str:
    """The version of the tagger whose predictions the project shows, as soon as it has a number."""

    def version() -> str:
        return str(studio("GET", f"/api/projects/{project}/")["model_version"])

    wait_until(lambda: version().startswith(f"entaug-{number}-"), limit=PATIENCE)
    return version()


@pytest.fixture(scope="module")
def tagger(
    gold: list[Sentence], tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A trained tagger, which is so small that it only knows sentences it has seen, and the file of these."""
    folder = tmp_path_factory.mktemp("first")
    trained = create_tagger("linear", encoder=str(tiny_model("bert")))
    config = TaggerTrainingConfig(steps=150, learning_rate=2e-3, head_learning_rate=1e-2)
    trained.fit(gold, config=config)
    trained.save(folder / "tagger")
    entaug.write(gold, folder / "train.conll")
    return folder / "tagger", folder / "train.conll"


def test_a_project_from_the_first_prediction_to_the_second_training(
    studio: Studio, gold: list[Sentence], tagger: tuple[Path, Path], tmp_path: Path
) -> None:
    project, sentences = new_project(studio, gold[:TASKS])
    options = ["--train", tagger[1], "--dev", EXAMPLE / "dev.conll", "--every", 4]
    with backend(tmp_path, studio, tagger[0], *options) as url:
        connected = studio("POST", "/api/ml", {"project": project, "url": url, "title": "entaug"})
        assert connected["readable_state"] == "Connected"
        wait_until(lambda: predictions(studio, project), limit=PATIENCE)
        [(version, sent)] = predictions(studio, project).items()
        assert set(sent) == set(sentences), "all tasks"
        regions = [(" ".join(sentences[task].tokens), region) for task in sent for region in sent[task]["result"]]
        assert regions
        for text, region in regions:
            assert text[region["value"]["start"] : region["value"]["end"]] == region["value"]["text"]

        # Label Studio gives the annotator the tasks in the order of their scores.
        done: list[int] = []
        for number in range(4):
            if number:  # connecting chose no version; the first annotation does
                assert shown_version(studio, project, 0) == version
                lowest = min(sent[task]["score"] for task in sent if task not in done)
                task = studio("GET", f"/api/projects/{project}/next")["id"]
                assert sent[task]["score"] == lowest
            else:
                task = min(sent, key=lambda task: sent[task]["score"])
            annotate(studio, task, sentences[task])
            done.append(task)
        version = shown_version(studio, project, 1)
        assert set(predictions(studio, project)[version]) == set(sentences).difference(done)

        # What Label Studio asks itself: the state of the model, a prediction for a task, training by the button.
        [model] = studio("GET", f"/api/ml?project={project}")
        assert (model["readable_state"], model["model_version"]) == ("Connected", version)
        answer = studio("POST", f"/api/ml/{model['id']}/predict/test?random=true")
        assert answer["response"][0]["model_version"] == version
        last = next(task for task in sentences if task not in done)
        annotate(studio, last, sentences[last])
        studio("POST", f"/api/ml/{model['id']}/train", {})
        version = shown_version(studio, project, 2)
        assert "100 more would bring" in (tmp_path / "serve.log").read_text()
    with backend(tmp_path, studio, tagger[0], *options) as url:
        studio("PATCH", f"/api/ml/{model['id']}", {"project": project, "url": url, "title": "entaug"})
        [model] = studio("GET", f"/api/ml?project={project}")
        assert model["model_version"] == version, "a server that is started again goes on"


def test_a_password(studio: Studio, gold: list[Sentence], tagger: tuple[Path, Path], tmp_path: Path) -> None:
    project, _ = new_project(studio, gold[:6])
    with backend(tmp_path, studio, tagger[0], "--train", tagger[1], password=PASSWORD) as url:
        values = {"project": project, "url": url, "title": "entaug"}
        with pytest.raises(urllib.error.HTTPError):
            studio("POST", "/api/ml", values)
        values |= {"auth_method": "BASIC_AUTH", "basic_auth_user": "entaug", "basic_auth_pass": PASSWORD}
        assert studio("POST", "/api/ml", values)["readable_state"] == "Connected"
        wait_until(lambda: predictions(studio, project), limit=PATIENCE)
