"""Encoders: vectors of words do not depend on the padding of their batch, and training not on threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from conftest import EXAMPLE
from entaug.backends.compute import torch_threads
from entaug.formats import read
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from entaug.taggers.encoders import Encoder
from helpers import tiny

WORDS = [token for sentence in read(EXAMPLE / "train.conll") for token in sentence.tokens]
BATCHES = {
    "different lengths": [WORDS[:7], WORDS[7:9], WORDS[10:22]],
    "single words": [["Kent"], ["a"]],
    "longer than the model": [WORDS[:150], ["Kent"], WORDS[30:40]],
    "together longer than the model": [WORDS[i : i + 20] for i in range(0, 160, 20)],
}


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
@pytest.mark.parametrize("pooling", ["first", "max"])
def test_words_have_the_vectors_that_they_have_alone(
    family: str, pooling: Literal["first", "max"], tmp_path: Path
) -> None:
    encoder = Encoder(str(tiny.save(tmp_path / family, family)), pooling).eval()
    for batch in BATCHES.values():
        prepared = [encoder.prepare(words) for words in batch]
        with torch.no_grad():
            together = encoder(prepared)
            for vectors, one, words in zip(together, prepared, batch, strict=True):
                torch.testing.assert_close(vectors[: len(words)], encoder([one])[0], rtol=1e-4, atol=1e-4)
                assert not vectors[len(words) :].any()


def test_training_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    # Tiny matrices are computed by one thread, so what could differ are the random numbers.
    encoder = tiny.save(tmp_path / "bert", "bert")
    gold = list(read(EXAMPLE / "train.conll"))[:4]
    results = []
    for threads in (1, 2, 1):
        tagger: Any = create_tagger("linear", encoder=str(encoder), device="cpu", precision="bf16")
        with torch_threads(threads):
            tagger.fit(gold, config=TaggerTrainingConfig(steps=2, batch_size=2, learning_rate=1e-3))
        results.append(tagger.history_.losses)
    assert results[0] == results[2]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-2)
