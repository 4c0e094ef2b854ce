from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "corpus"

settings.register_profile(
    "entaug", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("entaug")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The demonstration takes minutes on one core: begun first, it does not end last.
    items.sort(key=lambda item: "the_demo_shows" not in item.name)


def corpora_folder() -> Path:
    return Path(os.environ.get("ENTAUG_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def corpora() -> Path:
    folder = corpora_folder()
    if not (folder / "README.md").is_file():
        pytest.skip(f"the real corpora are not at {folder}: set ENTAUG_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def example() -> Path:
    return EXAMPLE
