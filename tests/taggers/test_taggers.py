"""Taggers on tiny models built on the spot: alignment, learning by heart, saving, determinism."""

from __future__ import annotations

import copy
import itertools
import json
import math
import shutil
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE
from entaug.backends.transformers.base import shuffled_batches
from entaug.backends.transformers.encoder import TransformersEncoder
from entaug.commands.main import main
from entaug.core import tags
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import (
    InputError,
    LossError,
    MissingExtraError,
    MissingModelError,
    OutputError,
    ParameterError,
    UnknownNameError,
)
from entaug.metrics.span_f1 import score
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, create_tagger, load_tagger, overlap_of
from entaug.taggers.encoders import Encoder, LowerLayers, StaticEncoder
from entaug.taggers.flat import BiLSTMCRFTagger, CRFDecoder, LinearDecoder, LinearTagger
from entaug.taggers.neural import masked_words
from helpers import tiny

pytestmark = pytest.mark.usefixtures("one_thread")

GOLD = list(entaug.read(EXAMPLE / "train.conll"))[:24]
DEV = list(entaug.read(EXAMPLE / "dev.conll"))[:12]
MIXED = [
    Sentence(f"{a} and {b} pain in {c} arm today".split(), mentions)
    for a, b, c in zip(
        "sharp dull mild old new bad odd weak".split(),
        "slow burning cold hot great small long short".split(),
        "left right upper lower my her his your".split(),
        strict=True,
    )
    for mentions in [
        [
            Mention("ADR", [(0, 1), (3, 4)]),
            Mention("ADR", [(2, 4)]),
            Mention("ADR", [(2, 7)]),
            Mention("PART", [(5, 7)]),
        ]
    ]
]


@pytest.fixture(scope="module", params=["bert", "roberta", "xlm-roberta"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("encoder") / request.param, request.param)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.word_vectors(tmp_path_factory.mktemp("vectors") / "words", GOLD)


def made(name: str, bert: Path, vectors: Path, **params: Any) -> Any:
    own = {"vectors": str(vectors)} if name.startswith("static") else {"encoder": str(bert)}
    if name == "ensemble":
        return create_tagger(name, params={**own, "device": "cpu", "precision": "fp32", **params})
    return create_tagger(name, **{**own, "device": "cpu", "precision": "fp32", **params})


QUICK = TaggerTrainingConfig(epochs=40, batch_size=8, learning_rate=2e-3, head_learning_rate=5e-3)


# ------------------------------------------------------------------------------------------------------------- learning


# w2ner learns by heart in a test below; an ensemble takes three times as long as its members.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("ensemble", "w2ner"))) for name in TAGGERS]
)
def test_learns_by_heart_saves_and_loads(name: str, bert: Path, vectors: Path, tmp_path: Path) -> None:
    # A linear layer alone has to make do with random vectors of two layers.
    training = replace(QUICK, epochs={"linear": 150, "ensemble": 150, "seq2seq": 120, "bilstm-crf": 60}.get(name, 40))
    # Nor does a new decoder have much to learn from with these.
    options = {"dropout": 0.0, "layers": 1} if name == "seq2seq" else {}
    tagger = made(name, bert, vectors, **options).fit(GOLD, config=training)
    found = tagger.predict(GOLD)
    assert [s.tokens for s in found] == [s.tokens for s in GOLD]
    assert score(GOLD, found).micro.f1 > 0.9
    tagger.save(tmp_path / "tagger")
    again = load_tagger(tmp_path / "tagger")
    assert again.predict(DEV) == tagger.predict(DEV)
    assert [p.name for p in tmp_path.iterdir()] == ["tagger"]
    with pytest.raises(OutputError, match="is there already"):
        tagger.save(tmp_path / "tagger")


@pytest.mark.parametrize("name", ["linear", "bilstm-crf"])
@pytest.mark.slow
def test_learns_by_heart_in_fp16(name: str, bert: Path, vectors: Path) -> None:
    # Without a scaled loss its small gradients would vanish.
    training = replace(QUICK, epochs={"linear": 150}.get(name, 60))
    tagger = made(name, bert, vectors, precision="fp16").fit(GOLD[:12], config=training)
    assert score(GOLD[:12], tagger.predict(GOLD[:12])).micro.f1 > 0.9


@pytest.mark.slow
def test_the_grid_learns_nested_and_discontinuous_mentions_by_heart(bert: Path) -> None:
    gold = [*MIXED, *GOLD[:12]]
    tagger = create_tagger("w2ner", encoder=str(bert), device="cpu", precision="fp32")
    tagger.fit(gold, config=TaggerTrainingConfig(epochs=100, batch_size=8, learning_rate=1e-3, head_learning_rate=3e-3))
    found = score(gold, tagger.predict(gold))
    assert found.micro.f1 == 1.0
    assert found.by_kind["discontinuous"].f1 == found.by_kind["inner"].f1 == 1.0


@pytest.mark.parametrize(("name", "options"), [("linear", {}), ("bilstm-crf", {}), ("bilstm-crf", {"hidden": 0})])
def test_confidences_are_those_of_all_taggings_together(
    name: str, options: dict[str, Any], bert: Path, vectors: Path
) -> None:
    gold = [
        Sentence("Ada sang loud".split(), [Mention("PER", [(0, 1)])]),
        Sentence("we saw Bo Diddley".split(), [Mention("PER", [(2, 4)])]),
    ]
    tagger = made(name, bert, vectors, **options).fit(
        gold, config=TaggerTrainingConfig(epochs=10, learning_rate=2e-3, head_learning_rate=5e-3)
    )
    words = gold[0].tokens[:3]
    # Every sequence of O, B-PER and I-PER is some tagging of three words; their probabilities make one. Those in which
    # an I- follows nothing stand for no sentence: a linear layer gives them something, a CRF next to nothing.
    valid = [p for p in itertools.product("OBI", repeat=3) if "OI" not in "O" + "".join(p)]
    tagged = [Sentence(words, tags.decode([t if t == "O" else f"{t}-PER" for t in p])) for p in valid]
    total = math.fsum(value**3 for value in tagger.confidences(tagged))
    assert total == pytest.approx(1.0, abs=1e-4) if name == "bilstm-crf" else 0 < total < 1
    # The likeliest tagging is the one it predicts.
    best = max(zip(tagger.confidences(tagged), tagged, strict=True), key=lambda pair: pair[0])[1]
    [found] = tagger.predict([Sentence(words)])
    assert name == "linear" or best.mentions == found.mentions
    # What it has never seen it holds to be impossible.
    assert tagger.confidences([Sentence(words, [Mention("LOC", [(0, 1)])])]) == [0.0]


def test_a_grid_has_no_confidences(bert: Path) -> None:
    tagger = create_tagger("w2ner", encoder=str(bert), device="cpu", precision="fp32")
    with pytest.raises(ParameterError, match="is not trained"):
        tagger.confidences(GOLD)
    tagger.fit(MIXED, config=TaggerTrainingConfig(steps=1))
    with pytest.raises(ParameterError, match="gives no probabilities"):
        tagger.confidences(GOLD)


def test_attentions_are_those_of_the_encoder_as_it_has_learned(bert: Path, vectors: Path, tmp_path: Path) -> None:
    tagger = made("linear", bert, vectors).fit(GOLD, config=TaggerTrainingConfig(steps=5, learning_rate=1e-3))
    words = [s.tokens for s in GOLD[:6]]
    found = tagger.attentions(words, 2)
    tagger.save(tmp_path / "tagger")
    same = TransformersEncoder(tmp_path / "tagger" / "encoder", precision="fp32", device="cpu").attentions(words, 2)
    plain = TransformersEncoder(bert, precision="fp32", device="cpu").attentions(words, 2)
    for a, b, c in zip(found, same, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        assert np.abs(a - c).max() > 1e-3
    # Each word gives what its sub-words give together: to all words and, unseen here, to the special sub-words.
    pieces = [len(tagger._encoder.tokenizer(word)["input_ids"]) - 2 for word in words[0]]
    heads, layers = 4, 2
    assert all(row.sum() < heads * layers * count for row, count in zip(found[0], pieces, strict=True))
    with pytest.raises(ParameterError, match="layers must be between 1 and 2"):
        tagger.attentions(words, 3)


@pytest.mark.parametrize("name", TAGGERS)
def test_the_same_seed_gives_the_same_tagger_and_leaves_global_chance_alone(
    name: str, bert: Path, vectors: Path, tmp_path: Path
) -> None:
    few = TaggerTrainingConfig(steps=5, batch_size=8, learning_rate=1e-3, seed=3)
    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        training = replace(few, seed=seed)
        made(name, bert, vectors).fit(GOLD, config=training).save(tmp_path / folder)
        torch.rand(3)
        torch.random.set_rng_state(before)
    assert torch.equal(torch.random.get_rng_state(), before)
    first, same, other = (sorted((tmp_path / folder).rglob("*.safetensors")) for folder in "abc")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in same]
    assert all(a.read_bytes() != b.read_bytes() for a, b in zip(first, other, strict=True))


def test_steps_are_taken_as_told_and_progress_is_told(bert: Path) -> None:
    seen: list[tuple[int, int]] = []
    tagger: Any = create_tagger("linear", encoder=str(bert), device="cpu", precision="fp32")
    tagger.fit(
        GOLD,
        config=TaggerTrainingConfig(steps=7, batch_size=10),
        progress=lambda done, total, loss: seen.append((done, total)),
    )
    assert seen == [(i, 7) for i in range(1, 8)]
    assert tagger.history_.steps == 7
    assert len(tagger.history_.losses) == 3  # two epochs of three steps, and one step more


def test_the_best_epoch_on_dev_is_kept(bert: Path) -> None:
    tagger: Any = create_tagger("linear", encoder=str(bert), device="cpu", precision="fp32")
    tagger.fit(GOLD, DEV, TaggerTrainingConfig(epochs=12, batch_size=8, learning_rate=2e-3, checkpoint="best"))
    by_epoch = tagger.history_.dev_f1
    assert len(by_epoch) == 12
    assert tagger.history_.best_epoch == 1 + by_epoch.index(max(by_epoch))
    assert score(DEV, tagger.predict(DEV)).micro.f1 == max(by_epoch)


def test_embeddings_left_out_while_learning_change_nothing(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = TaggerTrainingConfig(steps=6, batch_size=8, learning_rate=1e-3, weight_decay=0)

    def learned() -> Any:
        tagger: Any = create_tagger("linear", encoder=str(bert), device="cpu", precision="fp32")
        return tagger.fit(GOLD, config=training)

    small = learned()
    shape = small._encoder.model.get_input_embeddings().weight.shape
    monkeypatch.setattr(Encoder, "shrink", lambda self, prepared: None)
    whole = learned()
    assert shape == whole._encoder.model.get_input_embeddings().weight.shape
    for (name, one), (_, other) in zip(
        small._encoder.state_dict().items(), whole._encoder.state_dict().items(), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-5), name


@pytest.mark.parametrize("name", TAGGERS)
def test_predictions_do_not_depend_on_company(name: str, bert: Path, vectors: Path) -> None:
    tagger = made(name, bert, vectors).fit(
        GOLD, config=TaggerTrainingConfig(steps=40, batch_size=8, learning_rate=2e-3, head_learning_rate=5e-3)
    )
    together = tagger.predict([*GOLD, *DEV])
    alone = [tagger.predict([sentence])[0] for sentence in [*GOLD, *DEV]]
    assert together == alone
    assert tagger.predict([]) == []


def test_batches_hold_every_sentence_once_a_pass() -> None:
    lengths = [Random(1).randint(1, 40) for _ in range(100)]
    made_batches = shuffled_batches(lengths, 8, Random(2))
    passes = [[next(made_batches) for _ in range(13)] for _ in range(2)]
    for one in passes:
        assert sorted(i for batch in one for i in batch) == list(range(100))
    assert passes[0] != passes[1]
    again = shuffled_batches(lengths, 8, Random(2))
    assert passes[0] == [next(again) for _ in range(13)]
    spread = np.mean([max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in passes[0]])
    assert spread < 8  # of lengths up to 40


# -------------------------------------------------------------------------------------------------------------- bodies


def test_words_have_the_vector_of_their_first_sub_word(encoder: Path) -> None:
    body = Encoder(str(encoder)).eval()
    sentences = [s.tokens for s in GOLD[:6]]
    prepared = [body.prepare(tokens) for tokens in sentences]
    with torch.no_grad():
        together = body(prepared)
        for tokens, pieces, vectors in zip(sentences, prepared, together, strict=True):
            [row], [owners] = pieces
            states = body.model(input_ids=torch.tensor([row])).last_hidden_state[0]
            for word in range(len(tokens)):
                assert torch.allclose(vectors[word], states[owners.index(word)], atol=1e-4)
            assert not vectors[len(tokens) :].any()
    for tokens, pieces in zip(sentences, prepared, strict=True):
        assert sorted({owner for owner in pieces.word_indices[0] if owner >= 0}) == list(range(len(tokens)))


def test_words_have_the_highest_of_their_sub_words(encoder: Path) -> None:
    body = Encoder(str(encoder), "max").eval()
    prepared = [body.prepare(s.tokens) for s in GOLD[:4]]
    with torch.no_grad():
        together = body(prepared)
        for pieces, vectors in zip(prepared, together, strict=True):
            [row], [owners] = pieces
            states = body.model(input_ids=torch.tensor([row])).last_hidden_state[0]
            for word in range(max(owners) + 1):
                own = states[[at for at, owner in enumerate(owners) if owner == word]]
                assert torch.allclose(vectors[word], own.amax(0), atol=1e-4)


def test_long_sentences_are_cut_between_words(encoder: Path) -> None:
    body = Encoder(str(encoder)).eval()
    tokens = [token for s in GOLD for token in s.tokens][:150]
    pieces = body.prepare(tokens)
    assert len(pieces.rows) > 2
    assert max(map(len, pieces.rows)) <= body.max_length
    held = [{owner for owner in owners if owner >= 0} for owners in pieces.word_indices]
    assert sorted(owner for one in held for owner in one) == list(range(150))  # each word in one row alone
    with torch.no_grad():
        assert body([pieces, body.prepare(["Kent"])]).shape == (2, 150, 32)


def test_a_word_longer_than_the_model_is_cut(bert: Path) -> None:
    body = Encoder(str(bert))
    pieces = body.prepare(["a", "xq" * 200, "b"])
    assert max(map(len, pieces.rows)) <= body.max_length
    assert {owner for owners in pieces.word_indices for owner in owners} == {-1, 0, 1, 2}


@pytest.mark.parametrize("odd", ["\u200b", "\u00ad", "\x7f", "\ufeff"])
def test_words_of_which_the_tokenizer_makes_nothing(odd: str, encoder: Path) -> None:
    body = Encoder(str(encoder)).eval()
    with torch.no_grad():
        assert body([body.prepare([odd]), body.prepare(["Ana", odd, odd, "left"])]).shape == (2, 4, 32)


def test_static_words_are_told_by_vector_casing_and_characters(vectors: Path) -> None:
    body = StaticEncoder(str(vectors), "abcdefgh")
    fixed, characters = body.prepare(["Ana", "zzz-unknown", "KENT", "b2" * 40])
    assert fixed.shape == (4, 20)
    assert fixed[:, 16:].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert characters[0] == [1, 1, 2]  # A and n are not in the alphabet
    assert len(characters[3]) == 30
    both = body([body.prepare(["Ana"]), body.prepare(["of", "Kent"])])
    assert both.shape == (2, 2, body.size)
    assert not both[0, 1].any()


def test_characters_are_read_by_an_lstm_whatever_stands_beside(vectors: Path, tmp_path: Path) -> None:
    body = StaticEncoder(str(vectors), "abcdefgh", "lstm")
    assert body.size == StaticEncoder(str(vectors), "abcdefgh").size
    words = ["ab", "ba", "abcdefgh" * 9, "a"]
    alone = [body([body.prepare([word])])[0, 0] for word in words]
    together = body([body.prepare(words), body.prepare(["ab"])])
    for word, own in enumerate(alone):
        assert torch.allclose(together[0, word], own, atol=1e-6)
    assert torch.allclose(together[1, 0], alone[0], atol=1e-6)
    assert not torch.allclose(alone[0], alone[1], atol=1e-3)  # the order of the characters counts
    tagger = create_tagger("static-bilstm-crf", vectors=str(vectors), characters="lstm", device="cpu", precision="fp32")
    tagger.fit(GOLD, config=QUICK)
    assert score(GOLD, tagger.predict(GOLD)).micro.f1 > 0.9
    tagger.save(tmp_path / "tagger")
    again = load_tagger(tmp_path / "tagger")
    assert again.predict(GOLD) == tagger.predict(GOLD)


@pytest.mark.parametrize("name", ["linear", "bilstm-crf", "w2ner"])
def test_an_encoder_without_trained_layers_keeps_its_weights(
    name: str, bert: Path, vectors: Path, tmp_path: Path
) -> None:
    pretrained = Encoder(str(bert)).model.state_dict()
    before = {key: tensor for key, tensor in pretrained.items() if "pooler" not in key}  # which is random and unused
    few = TaggerTrainingConfig(steps=4, batch_size=8, learning_rate=1e-2)
    frozen = made(name, bert, vectors, trained_layers=0).fit(GOLD, config=few)
    free = made(name, bert, vectors).fit(GOLD, config=few)
    after, trained = frozen._encoder.model.state_dict(), free._encoder.model.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert not all(torch.equal(before[key], trained[key]) for key in before)
    assert not frozen._encoder.train().model.training
    head = {key: tensor.clone() for key, tensor in frozen._decoder.state_dict().items()}
    again = made(name, bert, vectors, trained_layers=0).fit(GOLD, config=replace(few, steps=1))
    assert any(not torch.equal(head[key], tensor) for key, tensor in again._decoder.state_dict().items())
    frozen.save(tmp_path / "tagger")
    loaded = load_tagger(tmp_path / "tagger")
    assert loaded.trained_layers == 0  # type: ignore[attr-defined]
    assert loaded.predict(DEV) == frozen.predict(DEV)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "deberta-v2"])
def test_only_the_upper_layers_are_trained(kind: str, vectors: Path, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / kind, kind)
    before = Encoder(str(folder)).model.state_dict()
    few = TaggerTrainingConfig(steps=4, batch_size=8, learning_rate=1e-2)
    tagger = made("linear", folder, vectors, trained_layers=1).fit(GOLD, config=few)
    changed = {key for key, value in tagger._encoder.model.state_dict().items() if not torch.equal(value, before[key])}
    assert changed
    assert all(".1." in key or "pooler" in key for key in changed), "the tiny models have two layers"
    # The first layer of DeBERTa has a convolution, which the model applies to whichever layer it runs first.
    assert tagger._encoder._lower._is_divisible == (kind != "deberta-v2")
    with pytest.raises(ParameterError, match="has 2 layers, not 3"):
        made("linear", folder, vectors, trained_layers=3).fit(GOLD, config=few)


@pytest.mark.parametrize("trained", [0, 1, 2])
def test_what_lower_layers_compute_is_kept(trained: int, bert: Path, vectors: Path, monkeypatch: Any) -> None:
    few = TaggerTrainingConfig(steps=7, batch_size=8, learning_rate=1e-3)
    plain = Encoder(str(bert))
    of_one_row = [sentence for sentence in GOLD if len(plain.prepare(sentence.tokens).rows) == 1][:16]
    made_with: list[dict[str, torch.Tensor]] = []
    computed: list[int] = []
    compute = LowerLayers._lower_states

    def counted(self: LowerLayers, model: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        computed.append(len(ids))
        return compute(self, model, ids, mask)

    monkeypatch.setattr(LowerLayers, "_lower_states", counted)
    for limit, count in ((LowerLayers.LIMIT, len(of_one_row)), (0, 7 * 8)):
        monkeypatch.setattr(LowerLayers, "LIMIT", limit)
        computed.clear()
        tagger = made("linear", bert, vectors, trained_layers=trained).fit(of_one_row, config=few)
        assert sum(computed) == count + (8 if trained else 0), "the first batch is computed once more, to compare"
        assert not tagger._encoder._lower._kept
        made_with.append({**tagger._encoder.model.state_dict(), **tagger._decoder.state_dict()})
    # A model that cannot be divided is run whole.
    monkeypatch.setattr(LowerLayers, "_divides", lambda *_: False)
    whole = made("linear", bert, vectors, trained_layers=trained).fit(of_one_row, config=few)
    made_with.append({**whole._encoder.model.state_dict(), **whole._decoder.state_dict()})
    for other in made_with[1:]:
        assert all(torch.allclose(value, other[key], atol=1e-4) for key, value in made_with[0].items())


def test_upper_layers_are_trained_on_after_an_error_in_a_pass(bert: Path) -> None:
    encoder = Encoder(str(bert), trained_layers=1)
    lower: Any = encoder._lower
    [layer] = lower.upper
    layer.train()
    with pytest.raises(MemoryError), lower._evaluating():
        raise MemoryError
    assert layer.training


# ------------------------------------------------------------------------------------------------------- regularisation


def _weights(tagger: Any) -> dict[str, torch.Tensor]:
    return {**tagger._encoder.model.state_dict(), **tagger._decoder.state_dict()}


def test_weights_are_averaged_over_the_last_steps(bert: Path, vectors: Path) -> None:
    config = TaggerTrainingConfig(steps=4, batch_size=8, learning_rate=1e-3)
    after: list[dict[str, torch.Tensor]] = []
    tagger = made("linear", bert, vectors)
    tagger.fit(GOLD, config=config, progress=lambda *_: after.append(copy.deepcopy(_decoder_weights(tagger))))
    mean = _decoder_weights(made("linear", bert, vectors).fit(GOLD, config=replace(config, averaged_share=0.5)))
    for key, value in mean.items():
        assert torch.allclose(value, (after[2][key] + after[3][key]) / 2, atol=1e-7)
        assert not torch.equal(value, after[3][key])
    with pytest.raises(ParameterError, match="the best epoch are not averaged"):
        TaggerTrainingConfig(averaged_share=0.5, checkpoint="best")


def _decoder_weights(tagger: Any) -> dict[str, torch.Tensor]:
    return dict(tagger._decoder.state_dict())


def test_consistency_brings_passes_with_different_dropout_together(bert: Path, vectors: Path) -> None:
    config = TaggerTrainingConfig(steps=60, batch_size=8, learning_rate=1e-3, head_learning_rate=5e-3)

    def divergence(tagger: Any) -> float:
        torch.manual_seed(1)
        encoder, decoder = tagger._encoder.train(), tagger._decoder.eval()
        batch, words = [encoder.prepare(s.tokens) for s in GOLD], [len(s) for s in GOLD]
        with torch.no_grad():
            one, other = (decoder.log_marginals(encoder(batch), words).exp() for _ in range(2))
        return float((one - other).abs().sum())

    free = made("linear", bert, vectors).fit(GOLD, config=config)
    held = made("linear", bert, vectors).fit(GOLD, config=replace(config, consistency=5.0))
    assert divergence(held) < 0.7 * divergence(free)
    with pytest.raises(ParameterError, match="w2ner gives no probabilities to tags"):
        made("w2ner", bert, vectors).fit(GOLD, config=replace(config, consistency=1.0))
    crf = made("bilstm-crf", bert, vectors).fit(GOLD, config=replace(config, steps=2, consistency=1.0))
    assert math.isfinite(crf.history_.losses[-1])


def test_the_encoder_first_learns_from_the_text(bert: Path, vectors: Path, tmp_path: Path) -> None:
    config = TaggerTrainingConfig(steps=1, batch_size=8, learning_rate=1e-9, head_learning_rate=1e-9)
    plain = made("linear", bert, vectors).fit(GOLD, config=config)
    first, again = (
        made("linear", bert, vectors).fit(GOLD, config=replace(config, pretraining_epochs=2), augmented=DEV)
        for _ in range(2)
    )
    weights = _weights(first)
    assert all(torch.equal(value, weights[key]) for key, value in _weights(again).items())
    far = [key for key, value in _weights(plain).items() if (value - weights[key]).abs().max() > 1e-5]
    assert any("layer.0" in key for key in far)
    assert first._encoder.name == plain._encoder.name
    first.save(tmp_path / "tagger")
    assert load_tagger(tmp_path / "tagger").predict(DEV) == first.predict(DEV)
    with pytest.raises(ParameterError, match="has no encoder to pretrain"):
        made("static-bilstm-crf", bert, vectors).fit(GOLD, config=replace(config, pretraining_epochs=1))


@given(st.integers(1, 30), st.integers(0, 10**6))
def test_masked_words_are_the_text(length: int, seed: int) -> None:
    sentence = Sentence([f"w{i}" for i in range(length)])
    example = masked_words(sentence, Random(seed))
    assert "".join(part for part, _ in example) == sentence.text
    assert 1 <= sum(masked for _, masked in example) <= length


# --------------------------------------------------------------------------------------------------------------- heads


def test_the_loss_of_a_linear_head_by_hand() -> None:
    head = LinearDecoder(2, ["X"], LinearTagger(dropout=0))
    with torch.no_grad():
        head.linear.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [0, 0]]))
        head.linear.bias.zero_()
    one = Sentence(["a", "b"], [Mention("X", [(1, 2)])])
    assert head.tag_ids(one).tolist() == [0, 1]
    vectors = torch.tensor([[[0.0, 0], [0, 0]], [[5.0, 0], [9.0, 9]]])
    loss = head.loss(vectors, [2, 1], [head.targets(one), head.targets(Sentence(["a"]))])
    # Two words with three equal scores, and one with scores 5, 0, 0; the fourth place is no word.
    expected = (2 * np.log(3) + np.log(1 + 2 * np.exp(-5))) / 3
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-6)


def test_stray_tags_open_mentions() -> None:
    head = LinearDecoder(2, ["X", "Y"], LinearTagger())
    number = {tag: i for i, tag in enumerate(head.tags)}
    found = head.mentions([number[t] for t in ["I-X", "I-X", "I-Y", "O", "B-Y", "B-Y"]])
    assert [(m.label, m.spans[0]) for m in found] == [("X", (0, 2)), ("Y", (2, 3)), ("Y", (4, 5)), ("Y", (5, 6))]


def test_a_new_crf_never_goes_on_with_what_was_not_opened() -> None:
    torch.manual_seed(1)
    head = CRFDecoder(4, ["X", "Y"], BiLSTMCRFTagger(hidden=3)).eval()
    scores, mask = head._scores(torch.randn(30, 12, 4) * 5, [12] * 30)
    for path in head.crf.decode(scores, mask=mask):
        names = ["O", *(head.tags[i] for i in path)]
        for before, after in pairwise(names):
            assert after[0] != "I" or before[2:] == after[2:]


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", [name for name in TAGGERS if overlap_of(name, {}) is not None])
def test_mentions_that_tags_cannot_carry_are_refused_or_left_out(name: str, bert: Path, vectors: Path) -> None:
    with pytest.raises(LossError, match="overlap='outermost'"):
        made(name, bert, vectors).fit(MIXED, config=TaggerTrainingConfig(steps=1))
    outer = made(name, bert, vectors, overlap="outermost").fit(MIXED, config=TaggerTrainingConfig(steps=1))
    assert outer.labels_ == ["ADR", "PART"]


def test_a_training_that_fails_or_is_interrupted_leaves_an_untrained_tagger(bert: Path, vectors: Path) -> None:
    few = TaggerTrainingConfig(steps=2)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    tagger = made("linear", bert, vectors)
    for sentences, progress, error in ((MIXED, None, LossError), (GOLD, interrupt, KeyboardInterrupt)):
        with pytest.raises(error):
            tagger.fit(sentences, config=few, progress=progress)
        with pytest.raises(ParameterError, match="this linear tagger is not trained"):
            tagger.predict(GOLD)
    assert len(tagger.fit(GOLD, config=few).predict(GOLD)) == len(GOLD)


def test_what_cannot_be_is_refused(bert: Path, tmp_path: Path) -> None:
    for wrong in (
        {"epochs": 0},
        {"batch_size": 1.5},
        {"steps": 0},
        {"learning_rate": 0},
        {"head_learning_rate": float("nan")},
        {"warmup_ratio": 2},
        {"checkpoint": "first"},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            TaggerTrainingConfig(**wrong)
    with pytest.raises(UnknownNameError, match="linear"):
        create_tagger("lineal")
    with pytest.raises(UnknownNameError, match="encoder"):
        create_tagger("linear", encodr="x")
    with pytest.raises(ParameterError, match="dropout"):
        create_tagger("linear", dropout=1.0)
    tagger = create_tagger("linear", encoder=str(bert), device="cpu")
    with pytest.raises(ParameterError, match="not trained"):
        tagger.predict(GOLD)
    with pytest.raises(InputError, match="no mentions"):
        tagger.fit([Sentence(["a"])])
    with pytest.raises(InputError, match="no dev"):
        tagger.fit(GOLD, config=TaggerTrainingConfig(checkpoint="best"))
    with pytest.raises(InputError, match="no tagger"):
        load_tagger(tmp_path)


def test_a_missing_library_is_told_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith("entaug.taggers.") and name != "entaug.taggers.base":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchcrf", None)
    with pytest.raises(MissingExtraError, match=r"entaug\[taggers\]"):
        create_tagger("bilstm-crf")


@pytest.mark.parametrize("name", ["tagger.safetensors", "encoder/model.safetensors", "encoder/tokenizer.json"])
def test_saved_taggers_carry_a_checksum(name: str, bert: Path, tmp_path: Path) -> None:
    tagger = create_tagger("linear", encoder=str(bert))
    tagger.fit(GOLD, config=TaggerTrainingConfig(steps=1))
    tagger.save(tmp_path / "tagger")
    load_tagger(tmp_path / "tagger")
    file = tmp_path / "tagger" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    for damage in (lambda: file.write_bytes(content), file.unlink):
        damage()
        with pytest.raises(InputError, match=r"damaged tagger \(its files are not as they.*train the tagger again"):
            load_tagger(tmp_path / "tagger")


def test_damaged_taggers_are_told(bert: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    create_tagger("linear", encoder=str(bert), device="cpu").fit(GOLD, config=TaggerTrainingConfig(steps=1)).save(whole)
    for number, (name, content) in enumerate(
        [("tagger.json", b"{}"), ("tagger.json", b'{"tagger": "linear", "params": {}}'), ("tagger.safetensors", b"xx")]
    ):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        (folder / name).write_bytes(content)
        with pytest.raises(InputError, match="train"):
            load_tagger(folder)
    config = json.loads((whole / "tagger.json").read_text())
    faults: list[dict[str, Any]] = [{"params": []}, {"params": None}, {"params": {"labels_": 3}}, {"tagger": ["x"]}]
    for wrong in faults:
        (whole / "tagger.json").write_text(json.dumps({**config, **wrong}))
        with pytest.raises(InputError, match="whole: holds"):
            load_tagger(whole)
    for wrong in ({"labels": ["X"]}, {"labels": config["labels"][::-1]}):
        (whole / "tagger.json").write_text(json.dumps({**config, **wrong}))
        with pytest.raises(InputError, match="its files are not as they were saved"):
            load_tagger(whole)
    elsewhere = {**config, "params": {**config["params"], "device": None}}
    (whole / "tagger.json").write_text(json.dumps(elsewhere))
    assert load_tagger(whole)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": 2**64},
        {"seed": 1.5},
        {"steps": True},
        {"learning_rate": True},
        {"weight_decay": False},
        {"max_grad_norm": True},
    ],
)
def test_training_takes_no_odd_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))} must be"):
        TaggerTrainingConfig(**wrong)


def test_taggers_look_for_what_they_need(bert: Path, vectors: Path, tmp_path: Path) -> None:
    for name in TAGGERS:
        made(name, bert, vectors).check_requirements()
        with pytest.raises(ParameterError, match="no device 'cude'"):
            made(name, bert, vectors, device="cude").check_requirements()
    with pytest.raises(MissingModelError, match="neither a folder nor a name"):
        create_tagger("linear", encoder=str(tmp_path / "none")).check_requirements()
    with pytest.raises(ParameterError, match="encoder must be"):
        create_tagger("w2ner", encoder="")
    with pytest.raises(UnknownNameError, match="labels_") as caught:
        create_tagger("linear", labels_=[])
    assert "history_" not in str(caught.value)
    for hidden in (-1, True, 1.5, "9"):
        with pytest.raises(ParameterError, match="hidden must be"):
            create_tagger("static-bilstm-crf", hidden=hidden)


@pytest.mark.parametrize("name", ["linear", "ensemble"])
def test_a_trained_tagger_has_its_encoder(name: str, vectors: Path, tmp_path: Path) -> None:
    encoder = tiny.save(tmp_path / "encoder", "bert")
    made(name, encoder, vectors).fit(GOLD, config=TaggerTrainingConfig(steps=1)).save(tmp_path / "tagger")
    shutil.rmtree(encoder)
    load_tagger(tmp_path / "tagger").check_requirements()
    with pytest.raises(MissingModelError, match="neither a folder nor a name"):
        made(name, encoder, vectors).check_requirements()


def test_a_place_that_cannot_be_written_is_told_before_training(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    steps: list[int] = []
    with pytest.raises(OutputError, match="cannot be written"):
        entaug.train(
            EXAMPLE / "train.conll",
            tmp_path / "file" / "tagger",
            create_tagger("linear", encoder=str(bert), device="cpu"),
            config=TaggerTrainingConfig(steps=2),
            progress=lambda done, *_: steps.append(done),
        )
    assert not steps


# --------------------------------------------------------------------------------------------------------- command line


def test_train_and_evaluate(bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tagger"
    train = ["train", str(EXAMPLE / "train.conll"), "-o", str(folder), "--dev", str(EXAMPLE / "dev.conll")]
    train += [
        "--encoder",
        str(bert),
        "--epochs",
        "3",
        "--learning-rate",
        "0.002",
        "--device",
        "cpu",
        "--checkpoint",
        "best",
    ]
    assert main([*train, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 3 * 13
    assert told["labels"] == ["EVENT", "LOC", "ORG", "PER", "PRODUCT"]
    assert main(["evaluate", str(EXAMPLE / "dev.conll"), str(folder), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores == told["dev"]
    assert entaug.evaluate(EXAMPLE / "dev.conll", folder).to_dict() == scores
    assert main(train) == 3  # it is there already
    assert "is there already" in capsys.readouterr().err
    assert main(["evaluate", str(EXAMPLE / "dev.conll"), str(tmp_path)]) == 2
    assert "no tagger" in capsys.readouterr().err
