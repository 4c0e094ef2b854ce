"""Packed training: the same word vectors and gradients as with padding, and dropout by cheap random bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import EXAMPLE
from entaug.formats import read
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from entaug.taggers.encoders import Encoder
from entaug.taggers.packing import FastDropout, can_pack, replace_dropout
from helpers import tiny

WORDS = [token for sentence in read(EXAMPLE / "train.conll") for token in sentence.tokens]
BATCHES = {
    "different lengths": [WORDS[:7], WORDS[7:9], WORDS[10:22]],
    "equal lengths": [["Kent", "met", "Ana"]] * 3,
    "single words": [["Kent"], ["a"]],
    "one sentence": [WORDS[:5]],
    "longer than the model": [WORDS[:150], ["Kent"], WORDS[30:40]],
    "together longer than the model": [WORDS[i : i + 20] for i in range(0, 160, 20)],
}


@pytest.fixture(scope="module", params=["bert", "roberta", "xlm-roberta"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("encoder") / request.param, request.param)


def _bodies(encoder: Path, pooling: str = "first") -> tuple[Encoder, Encoder]:
    packed, padded = Encoder(str(encoder), pooling), Encoder(str(encoder), pooling)
    assert packed.packs
    padded.packs = False
    padded.model.set_attn_implementation("eager")
    return packed.eval(), padded.eval()


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("pooling", ["first", "max"])
def test_packed_words_have_the_vectors_and_gradients_of_padded_ones(name: str, pooling: str, encoder: Path) -> None:
    packed, padded = _bodies(encoder, pooling)
    prepared = [packed.prepare(words) for words in BATCHES[name]]
    vectors, expected = packed(prepared), padded(prepared)
    torch.testing.assert_close(vectors, expected, rtol=1e-4, atol=1e-4)
    factors = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1))
    (vectors * factors).sum().backward()
    (expected * factors).sum().backward()
    largest = max(float(p.grad.abs().max()) for p in padded.parameters() if p.grad is not None)
    for (parameter, mine), (_, theirs) in zip(packed.named_parameters(), padded.named_parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None), parameter
        # Some gradients are 0 but for rounding, such as that of the bias of keys, which moves all scores alike.
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-5 * largest, msg=parameter)


def test_states_of_packed_words_have_the_precision_of_autocast(encoder: Path) -> None:
    packed, padded = _bodies(encoder)
    prepared = [packed.prepare(words) for words in BATCHES["different lengths"]]
    seen = []
    for layer in packed.model.encoder.layer:
        layer.register_forward_hook(lambda module, args, out: seen.append(out[0].dtype))
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors = packed(prepared)
        assert seen == [torch.bfloat16] * 2
        assert vectors.dtype is torch.float32
        expected = padded(prepared)
    # Steps of bf16 are a 256th; the vectors are of length sqrt(32).
    assert float((vectors - expected).norm() / expected.norm()) < 0.1


def test_only_known_families_with_absolute_positions_are_packed() -> None:
    class Config:
        model_type = "bert"

    assert can_pack(Config())
    for name, value in (("is_decoder", True), ("position_embedding_type", "relative_key"), ("model_type", "gpt2")):
        config = Config()
        setattr(config, name, value)
        assert not can_pack(config)


# ------------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_has_its_rate_and_keeps_the_mean(p: float, dtype: torch.dtype) -> None:
    dropout = FastDropout(p, np.random.default_rng(1)).train()
    states = torch.ones(400, 500, dtype=dtype)
    result = dropout(states)
    assert result.dtype is dtype
    zeros = (result == 0).float()
    # Four standard deviations: of all values, and of the mean of each row and column.
    assert abs(float(zeros.mean()) - p) < 4 * (p * (1 - p) / 200_000) ** 0.5
    assert float((zeros.mean(0) - p).abs().max()) < 5 * (p * (1 - p) / 400) ** 0.5
    kept = result[result != 0].float()
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-2, atol=0)


def test_dropout_does_nothing_without_training_or_probability() -> None:
    states = torch.randn(5, 7)
    assert FastDropout(0.5, np.random.default_rng(1)).eval()(states) is states
    assert FastDropout(0.0, np.random.default_rng(1)).train()(states) is states
    nearly_all = FastDropout(1 - 1e-9, np.random.default_rng(1)).train()
    assert torch.isfinite(nearly_all(torch.zeros(9))).all()
    assert FastDropout(0.5, np.random.default_rng(1)).train()(torch.zeros(0, 3)).shape == (0, 3)


def test_dropout_passes_gradients_of_what_is_kept() -> None:
    states = torch.ones(50, requires_grad=True)
    result = FastDropout(0.5, np.random.default_rng(1)).train()(states)
    result.sum().backward()
    assert states.grad is not None
    torch.testing.assert_close(states.grad, result.detach())


def test_each_dropout_of_a_module_is_replaced() -> None:
    module = torch.nn.Sequential(
        torch.nn.Dropout(0.3), torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Dropout2d())
    )
    replace_dropout(module, -7)
    assert [m.p for m in module.modules() if isinstance(m, FastDropout)] == [0.3, 0.2]
    assert any(type(m) is torch.nn.Dropout2d for m in module.modules())


def test_dropout_differs_between_seeds_and_steps_and_not_between_runs() -> None:
    def draws(seed: int) -> list[Any]:
        module = torch.nn.Sequential(torch.nn.Dropout(0.5))
        replace_dropout(module, seed)
        return [module.train()(torch.ones(64)).tolist() for _ in range(2)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert draws(1)[0] != draws(1)[1]


def test_training_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    # Tiny matrices are computed by one thread, so what could differ are the random numbers.
    encoder = tiny.save(tmp_path / "bert", "bert")
    gold = list(read(EXAMPLE / "train.conll"))[:4]
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            tagger: Any = create_tagger("linear", encoder=str(encoder), device="cpu", precision="bf16")
            tagger.fit(gold, config=TaggerTrainingConfig(steps=2, batch_size=2, learning_rate=1e-3))
            results.append(tagger.history_.losses)
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[2]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-2)
