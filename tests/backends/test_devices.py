"""Backends and taggers on a device other than the CPU: right placement, the same results, few copies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import entaug
from conftest import EXAMPLE
from entaug.backends.config import DecodingConfig, TrainingConfig
from entaug.backends.transformers.causal_lm import TransformersCausalLM
from entaug.backends.transformers.encoder import TransformersEncoder
from entaug.backends.transformers.generator import CausalGenerator, Seq2SeqGenerator
from entaug.backends.transformers.lstm import LSTMTokenLM
from entaug.backends.transformers.masked_lm import TransformersMaskedLM
from entaug.core.alignment import detokenize
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger
from helpers import tiny
from helpers.marks import first_fast
from helpers.remote_device import remote_device

pytestmark = pytest.mark.usefixtures("one_thread")

GOLD = list(entaug.read(EXAMPLE / "train.conll"))[:16]
TEXTS = [detokenize(sentence.tokens) for sentence in GOLD]
PAIRS = [("red <mask>", "a red house."), ("blue <mask>", "the blue sea."), ("old <mask>", "an old oak.")] * 2
FEW = TrainingConfig(epochs=1, batch_size=4, validation_fraction=0.0)


def test_the_device_refuses_a_mixture_and_counts_copies() -> None:
    with remote_device() as device:
        vector = torch.arange(3.0).to("remote")
        assert vector.device.type == "remote"
        with pytest.raises(RuntimeError, match="two devices"):
            vector + torch.ones(3)
        with pytest.raises((RuntimeError, TypeError)):
            vector.numpy()
        assert (vector * 2).cpu().tolist() == [0, 2, 4]
        assert device.copies == {"to the device": 1, "from the device": 1}


@pytest.mark.parametrize("kind", first_fast(["bert", "roberta", "xlm-roberta"]))
def test_masked_language_models(kind: str, tiny_model: Callable[[str], Path]) -> None:
    gaps = [[text[: len(text) // 2].rpartition(" ")[0] + " ", None, " the end."] for text in TEXTS]

    def results(device: str) -> tuple[Any, Any, Any]:
        lm = TransformersMaskedLM(tiny_model(kind), device=device, precision="fp32")
        scores = entaug.metrics.pseudo_log_likelihood(TEXTS, lm)
        trained = lm.fit(lambda _: [[("Ana Duarte joined", False), (" Helio", True)]] * 4, FEW)
        return scores, lm.fill(gaps, 8), trained.fill(gaps[:2], 4)

    scores, fills, _ = results("cpu")
    with remote_device():
        remote_scores, remote_fills, _ = results("remote")
    assert remote_scores == pytest.approx(scores, abs=1e-3)
    assert [[[word for word, _ in c] for c in f] for f in remote_fills] == [
        [[word for word, _ in c] for c in f] for f in fills
    ]


def test_causal_language_models_and_encoders(tiny_model: Callable[[str], Path]) -> None:
    def results(device: str) -> tuple[Any, Any]:
        lm = TransformersCausalLM(tiny_model("llama"), device=device, precision="fp32")
        encoder = TransformersEncoder(tiny_model("bert"), device=device, precision="fp32")
        return lm.token_log_probs(TEXTS), encoder.sentence_vectors(TEXTS)

    values, vectors = results("cpu")
    with remote_device():
        remote_values, remote_vectors = results("remote")
    for one, other in zip(values, remote_values, strict=True):
        assert other == pytest.approx(one, abs=1e-4)
    assert np.abs(remote_vectors - vectors).max() < 1e-4


GENERATORS = pytest.mark.parametrize("kind", first_fast(["bart", "llama", "t5"]))
DECODINGS = [
    DecodingConfig(strategy="sample", num_beams=1, max_new_tokens=8, drop_unfinished=False),
    DecodingConfig(strategy="sample", num_beams=3, max_new_tokens=8, drop_unfinished=False),
    DecodingConfig(strategy="beam_search", num_beams=3, max_new_tokens=8, drop_unfinished=False),
    DecodingConfig(strategy="diverse_beam_search", num_beams=3, max_new_tokens=8, drop_unfinished=False),
]


def _generator(kind: str) -> Any:
    return CausalGenerator if kind == "llama" else Seq2SeqGenerator


@GENERATORS
@pytest.mark.parametrize("adapters", [True, False])
def test_generators_learn_and_decode(kind: str, adapters: bool, tiny_model: Callable[[str], Path]) -> None:
    inputs = [source for source, _ in PAIRS]
    required = [[["house"]], [["sea"]], [["oak"]]] * 2

    def results(device: str) -> list[Any]:
        model = _generator(kind)(tiny_model(kind), device=device, precision="fp32", adapters=adapters)
        model = model.fit(PAIRS, FEW, new_tokens={"<x>": "person", "<y>": "place"})
        texts = [model.generate(inputs, config, range(len(inputs))) for config in DECODINGS]
        texts += [model.generate(inputs, config, range(len(inputs)), required) for config in DECODINGS]
        marked = DecodingConfig(max_new_tokens=8, marker_rules={"<x>": None, "<y>": {"<x>"}}, drop_unfinished=False)
        return [*texts, model.generate(inputs, marked)]

    # Trainings differ in their dropout, whose random numbers belong to a device, so texts of the same model only.
    trained = results("cpu")
    with remote_device():
        remote = results("remote")
    assert [len(texts) for texts in remote] == [len(texts) for texts in trained]


@GENERATORS
@pytest.mark.parametrize("how", range(len(DECODINGS)))
@pytest.mark.parametrize("constrained", [False, True])
def test_copies_do_not_grow_with_the_batch(
    kind: str, how: int, constrained: bool, tiny_model: Callable[[str], Path]
) -> None:
    copies = []
    config = DECODINGS[how]
    with remote_device() as device:
        model = _generator(kind)(tiny_model(kind), device="remote", precision="fp32")
        for size in (1, 4, 16):
            inputs = [f"{TEXTS[0]} {TEXTS[1]}"[:30]] * size
            required = [[["house"]]] * size if constrained else None
            model.generate(inputs[:1], config, [0], required and required[:1])  # what is computed once
            device.copies.clear()
            texts = model.generate(inputs, config, [0] * size, required)
            copies.append(sum(device.copies.values()))
        cpu = _generator(kind)(tiny_model(kind), device="cpu", precision="fp32")
    assert cpu.generate(inputs, config, [0] * size, required) == texts
    assert copies[1] <= copies[0] + 2
    assert copies[2] <= copies[0] + 2


def test_the_lstm_learns_and_samples() -> None:
    rows = [sentence.tokens for sentence in GOLD]
    with remote_device():
        lm = LSTMTokenLM(embedding=8, hidden=8, device="remote").fit(rows, TrainingConfig(epochs=1))
        assert len(lm.sample([1, 2, 3], max_new_tokens=5)) == 3


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.word_vectors(tmp_path_factory.mktemp("vectors") / "words", GOLD)


TAGGERS = {
    "linear": ["bert", "xlm-roberta"],
    "bilstm-crf": ["bert"],
    "w2ner": ["bert"],
    "static-bilstm-crf": [""],
    "seq2seq": ["bart", "t5", "bert"],
}


CASES = [
    pytest.param(name, kind, marks=() if name == "linear" or not kind else pytest.mark.slow)
    for name, kinds in TAGGERS.items()
    for kind in kinds
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_taggers(name: str, kind: str, tiny_model: Callable[[str], Path], vectors: Path, tmp_path: Path) -> None:
    own = {"encoder": str(tiny_model(kind))} if kind else {"vectors": str(vectors)}
    training = TaggerTrainingConfig(epochs=2, batch_size=8, learning_rate=2e-3, head_learning_rate=5e-3)
    tagger: Any = create_tagger(name, device="cpu", precision="fp32", **own).fit(GOLD, config=training)
    tagger.save(tmp_path / "cpu")
    with remote_device() as device:
        remote: Any = create_tagger(name, device="remote", precision="fp32", **own)
        device.copies.clear()
        remote.fit(GOLD, config=training)
        assert len(remote.predict(GOLD)) == len(GOLD)
        # The tagger that the CPU trained, on the device; what names the device is not part of the checksum.
        path = tmp_path / "cpu" / "tagger.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["params"]["device"] = "remote"
        path.write_text(json.dumps(config), encoding="utf-8")
        moved: Any = load_tagger(tmp_path / "cpu")
        assert moved.predict(GOLD) == tagger.predict(GOLD)
        if name != "w2ner":
            for one, other in zip(moved.confidences(GOLD), tagger.confidences(GOLD), strict=True):
                assert one == pytest.approx(other, abs=1e-4)
