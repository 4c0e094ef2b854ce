from __future__ import annotations

import contextlib
import gc
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

# What the collection of tests imports lives until the end: the garbage collector would search it again and again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "corpus"

settings.register_profile(
    "entaug", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("entaug")


# What is run: "fast" (make test-fast), "all" (make test-all), or what CI runs (make test).
_EXTENT = os.environ.get("ENTAUG_TESTS", "")


def examples(number: int) -> int:
    """The number of generated examples of a property test: all in `make test-all`, a part elsewhere."""
    return number if _EXTENT == "all" else max(20, number // (10 if _EXTENT == "fast" else 3))


def corpora_folder() -> Path:
    return Path(os.environ.get("ENTAUG_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def corpora() -> Path:
    folder = corpora_folder()
    if not (folder / "README.md").is_file():
        pytest.skip(f"the real corpora are not at {folder}: set ENTAUG_DATA to their folder")
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PyTorch with one thread: tiny products are slower on several, much so on a busy machine."""
    from entaug.backends.compute import torch_threads

    with torch_threads(1):
        yield


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model of a kind, made once a session; see `tiny.save`."""
    from helpers import tiny

    root = tmp_path_factory.mktemp("models")

    def get(kind: str) -> Path:
        return root / kind if (root / kind).exists() else tiny.save(root / kind, kind)

    return get


@pytest.fixture(scope="session")
def bert(tiny_model: Callable[[str], Path]) -> Path:
    """The folder of a tiny BERT, which tests share and leave as it is."""
    return tiny_model("bert")


@pytest.fixture(autouse=True)
def no_starter_sources(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of names comes from no model that happens to be prepared here, but in tests with models."""
    if "models" not in request.keywords:
        from entaug.backends.resolve import resolve_starter

        def without_models(kind: str) -> Any:
            return resolve_starter(kind) if kind == "dependency_parser" else None

        monkeypatch.setattr("entaug.filters.label_guard.resolve_starter", lambda *_: None)
        monkeypatch.setattr("entaug.methods.synonyms.resolve_starter", without_models)
        monkeypatch.setattr("entaug.methods.shared.word_choice.resolve_starter", without_models)


@pytest.fixture(scope="session")
def kept_process() -> Iterator[Any]:
    """A pool of one process that has imported everything after the first tasks; sets have another order there."""
    from entaug.backends.processes import process_pool

    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    with process_pool(1) as pool:
        with patch.dict(os.environ, PYTHONHASHSEED=seed):
            pool.submit(int).result()  # starts it
        yield pool


@pytest.fixture
def one_other_process(kept_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process for all calls that would start processes for plug-ins or for runs of experiments."""
    for module in ("entaug.testing", "entaug.study.engine"):
        monkeypatch.setattr(f"{module}.process_pool", lambda *_: contextlib.nullcontext(kept_process))


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Chromium of the machine without a window, driven by Playwright; an ImportError where either is missing."""
    from playwright import sync_api

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        raise ImportError("no Chromium on this machine: make browser installs it where it may")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        try:
            launched = stack.enter_context(chromium())
        except ImportError as error:
            pytest.skip(str(error))
        yield launched


@pytest.fixture
def opened(browser: Any, files: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of the fixture `files` in a browser; parameters are its name and options of the browser."""
    from helpers.browser import OpenedFile

    name, options = getattr(request, "param", ("examples", {}))
    one = OpenedFile(browser, files[name], **options)
    yield one
    one.close()


@pytest.fixture(scope="session")
def example() -> Path:
    return EXAMPLE
