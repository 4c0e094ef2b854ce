"""The seeds of the fuzzer: for each, a reader yields sentences or raises an `EntaugError`."""

from __future__ import annotations

from pathlib import Path

import fuzz_formats as fuzz
import pytest

from conftest import ROOT
from entaug.formats import FORMATS

LIBRARIES = {"bioc": "spacy", "brat": "spacy", "chat": "spacy", "cas": "cassis", "docbin": "spacy", "pubtator": "spacy"}
LIBRARIES |= {"parquet": "pyarrow", "datasets": "pyarrow"}
SEEDS = sorted((ROOT / "fuzz" / "seeds").glob("*/*"))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_seed(seed: Path) -> None:
    fuzz.check(seed.parent.name, seed.read_bytes())


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_seeds_that_are_read(name: str) -> None:
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name])
    assert sum(fuzz.check(name, seed.read_bytes()) for seed in SEEDS if seed.parent.name == name) > 1
