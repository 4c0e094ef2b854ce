"""Backends on transformers, with tiny models built on the spot and loaded through the public path."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import entaug
from conftest import EXAMPLE
from entaug.backends.compute import use_compute_settings
from entaug.backends.protocols import CausalLM, Encoder, MaskedLM
from entaug.backends.resolve import resolve
from entaug.backends.transformers import base
from entaug.backends.transformers.base import Batcher, choose_device, model_name
from entaug.backends.transformers.causal_lm import TransformersCausalLM
from entaug.backends.transformers.decoding import GumbelTopK
from entaug.backends.transformers.encoder import TransformersEncoder
from entaug.backends.transformers.masked_lm import TransformersMaskedLM
from entaug.core.alignment import detokenize
from entaug.errors import EntaugError, MissingModelError, ParameterError, UnknownNameError
from helpers import tiny
from helpers.marks import first_fast

MASKED = pytest.mark.parametrize("kind", first_fast(["bert", "roberta", "xlm-roberta"]))
TEXTS = [
    "Ana Duarte joined Helio Labs in Lisbon.",
    "The new office opened last spring, and it is full.",
    "No.",
    "It rained (a lot) on Monday; nobody came.",
    "The new office opened last spring, and it is full.",
]


def one_mask_at_a_time(lm: TransformersMaskedLM, text: str) -> float:
    """The plain definition, the whole head, no batch."""
    tokenizer: Any = lm.tokenizer
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    total = 0.0
    model = type(lm.model).from_pretrained(lm.folder)
    model.eval()
    for i in range(1, ids.shape[1] - 1):
        hidden = ids.clone()
        hidden[0, i] = tokenizer.mask_token_id
        with torch.no_grad():
            total += float(torch.log_softmax(model(hidden).logits[0, i], -1)[ids[0, i]])
    return total


# ----------------------------------------------------------------------------------------------------------- masked LM


@MASKED
def test_pseudo_log_likelihood_is_that_of_one_mask_at_a_time(kind: str, tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersMaskedLM(tiny_model(kind), device="cpu", precision="fp32", budget=100)
    assert isinstance(lm, MaskedLM)
    scores = entaug.metrics.pseudo_log_likelihood(TEXTS, lm)
    assert scores == pytest.approx([one_mask_at_a_time(lm, text) for text in TEXTS], abs=1e-3)
    assert scores[1] == scores[4]
    words = [7, 10, 1, 8, 10]
    assert entaug.metrics.pseudo_log_likelihood(TEXTS, lm, per_word=True) == pytest.approx(scores / words)


@MASKED
def test_some_places_alone_and_pieces(kind: str, tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersMaskedLM(tiny_model(kind), precision="fp32")
    [whole] = lm.token_log_probs([(TEXTS[0], None)])
    [pieces] = lm.token_offsets(TEXTS[:1])
    assert len(pieces) == len(whole)
    assert "".join(TEXTS[0][a:b] for a, b in pieces).replace(" ", "") == TEXTS[0].replace(" ", "")
    [some, none] = lm.token_log_probs([(TEXTS[0], [3, 1]), (TEXTS[1], [])])
    assert some == pytest.approx(whole[[3, 1]], abs=1e-5)
    assert len(none) == 0
    assert lm.token_offsets([""]) == [[]]


@MASKED
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_a_text_gets_does_not_depend_on_its_company(
    kind: str, precision: str, tiny_model: Callable[[str], Path]
) -> None:
    texts = [detokenize(s.tokens) for s in entaug.read(EXAMPLE / "train.conll")][:40]
    gaps = [[text[: len(text) // 2].rpartition(" ")[0] + " ", None, " the end."] for text in texts]
    small = TransformersMaskedLM(tiny_model(kind), precision=precision, budget=40)
    large = TransformersMaskedLM(tiny_model(kind), precision=precision, budget=10_000)
    # Kernels round differently for matrices of different height: in fp32 in the sixth place, never in the choice. In
    # bf16, which has three digits, kernels of some processors round hidden states and logits differently: there values
    # agree to those digits, and a candidate may differ where two are that close.
    rel = 5e-3 if precision == "bf16" else 0
    for [together], gap in zip(large.fill(gaps, 8), gaps, strict=True):
        [[alone]] = small.fill([gap], 8)
        if precision == "fp32":
            assert [word for word, _ in together] == [word for word, _ in alone]
        assert [value for _, value in together] == pytest.approx([value for _, value in alone], rel=rel, abs=1e-4)
        value_of, last = dict(alone), min(value for _, value in alone)
        for word, value in together:
            assert value == pytest.approx(value_of.get(word, last), rel=rel, abs=1e-4)
    near = pytest.approx(
        entaug.metrics.pseudo_log_likelihood(texts, large), abs=1e-3, rel=2e-3 if precision == "bf16" else 1e-6
    )
    assert [entaug.metrics.pseudo_log_likelihood([text], small)[0] for text in texts] == near


@MASKED
def test_fills_are_whole_words_most_likely_first(kind: str, tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersMaskedLM(tiny_model(kind), precision="fp32")
    [[first, second], [only]] = lm.fill([["The ", None, " of ", None, "."], [None, " came."]], 30)
    for candidates in (first, second, only):
        assert len(candidates) == 30
        assert all(word.isalpha() and len(word) > 1 for word, _ in candidates)
        values = [value for _, value in candidates]
        assert values == sorted(values, reverse=True)
        assert math.exp(values[0]) <= 1
    [[alone]] = lm.fill([["The ", None, " of ", None, "."]], 30, first_only=True)
    assert [word for word, _ in alone] == [word for word, _ in first]
    vocabulary = set(lm.tokenizer.get_vocab())
    for word, _ in first:
        assert word in vocabulary or f"▁{word}" in vocabulary or f"Ġ{word}" in vocabulary
        assert f"##{word}" != word


@MASKED
def test_markers_in_a_text_are_text(kind: str, tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersMaskedLM(tiny_model(kind), precision="fp32")
    mask = lm.tokenizer.mask_token
    assert len(lm.token_offsets([f"a {mask} b"])[0]) > 3
    [[candidates]] = lm.fill([[f"A {mask} and a ", None, "."]], 3)
    assert len(candidates) == 3
    sentence = entaug.Sentence([mask, "came", "back", "late", mask])
    method = entaug.methods.MaskedLMReplacement(masked_lm=lm, copies=3, guard=False, show_source=False, stop_words=None)
    for made in method.fit([sentence]).augment([sentence]):
        assert made.tokens[0] == made.tokens[4] == mask


@MASKED
def test_a_text_that_is_too_long_is_seen_through_windows(kind: str, tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersMaskedLM(tiny_model(kind), precision="fp32")
    long = " ".join(TEXTS * 12)
    [values] = lm.token_log_probs([(long, None)])
    assert len(values) == len(lm.token_offsets([long])[0]) > 2 * lm.max_length
    assert (values < 0).all()
    [candidates] = lm.fill([[long, " And ", None, " then ", long, None]], 4)
    assert [len(c) for c in candidates] == [4, 4]
    limit = lm.max_length - 2
    # The window of the first places is the beginning of the text.
    ids = lm.encode([long])[0]
    beginning = lm.tokenizer.decode(ids[:limit])
    if lm.encode([beginning])[0] == ids[:limit]:
        assert lm.token_log_probs([(beginning, [0])])[0] == pytest.approx(values[:1], abs=1e-4)


def test_the_best_by_likelihood(tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersMaskedLM(tiny_model("bert"), precision="fp32")
    rng = random.Random(4)
    for _ in range(8):
        base = rng.choice(list(entaug.read(EXAMPLE / "train.conll"))).tokens
        candidates = [" ".join(rng.sample(base, len(base))) for _ in range(20)]
        candidates += candidates[:3]
        for per_word in (True, False):
            scores = entaug.metrics.pseudo_log_likelihood(candidates, lm, per_word=per_word)
            wanted = sorted(range(23), key=lambda i: (-scores[i], i))[:5]
            assert entaug.metrics.best_by_likelihood(candidates, 5, lm, per_word=per_word) == wanted
    with pytest.raises(ParameterError, match="at least 1"):
        entaug.metrics.best_by_likelihood(["a"], 0, lm)


# ------------------------------------------------------------------------------------------------------------ encoders


@MASKED
def test_vectors_of_any_layer(kind: str, tiny_model: Callable[[str], Path]) -> None:
    encoder = TransformersEncoder(tiny_model(kind), precision="fp32", budget=64)
    assert isinstance(encoder, Encoder)
    reference = type(encoder.model).from_pretrained(encoder.folder).eval()
    for layer in (0, 1, 2, None):
        found = encoder.token_vectors(TEXTS, layer)
        for text, vectors in zip(TEXTS, found, strict=True):
            ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                states = reference(ids, output_hidden_states=True).hidden_states
            assert vectors == pytest.approx(states[-1 if layer is None else layer][0].numpy(), abs=1e-4)
    with pytest.raises(ParameterError, match="layer"):
        encoder.token_vectors(TEXTS, 3)
    sentences = encoder.sentence_vectors(TEXTS)
    assert np.linalg.norm(sentences, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    assert encoder.sentence_vectors([]).shape == (0, 32)
    long = encoder.token_vectors([" ".join(TEXTS * 9)])[0]
    assert len(long) == len(encoder.encode([" ".join(TEXTS * 9)], add_special_tokens=True)[0])


def test_attentions_between_words(tiny_model: Callable[[str], Path]) -> None:
    encoder = TransformersEncoder(tiny_model("bert"), precision="fp32")
    # With the special tokens, the fourth is one longer than what is read at once: its second part has no word.
    sentences = [["Ana", "unbelievably", "left", "."], ["No"], ["x"] * 150, ["x"] * (encoder.max_length - 1)]
    for layers in (1, 2):
        for words, matrix in zip(sentences, encoder.attentions(sentences, layers), strict=True):
            assert matrix.shape == (len(words), len(words))
            pieces = [len(encoder.encode([word])[0]) for word in words]
            # A sub-word gives 1 in all per head and layer; what is missing goes to the special ones.
            assert (matrix.sum(axis=1) <= np.array(pieces) * 4 * layers + 1e-3).all()
            assert (matrix.sum(axis=1) > 0).all()
    with pytest.raises(ParameterError, match="layers"):
        encoder.attentions(sentences, 3)


def test_bertscore_of_pairs_is_that_of_the_definition(tiny_model: Callable[[str], Path]) -> None:
    encoder = TransformersEncoder(tiny_model("bert"), precision="fp32")
    texts = [*TEXTS, "", *(detokenize(s.tokens) for s in list(entaug.read(EXAMPLE / "train.conll"))[:30])]
    scores = entaug.metrics.pairwise_bertscore(texts, encoder, layer=1)
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in encoder.token_vectors(texts, 1)]
    for i, a in enumerate(unit):
        for j, b in enumerate(unit):
            if 5 in (i, j):
                assert scores[i, j] == 0
                continue
            cosines = a @ b.T
            precision, recall = cosines.max(1)[1:-1].mean(), cosines.max(0)[1:-1].mean()
            assert scores[i, j] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-4)
    assert (scores == scores.T).all()
    assert entaug.metrics.pairwise_bertscore([], encoder).shape == (0, 0)


# ---------------------------------------------------------------------------------------------------------- causal LMs


def test_causal_likelihood(tiny_model: Callable[[str], Path]) -> None:
    lm = TransformersCausalLM(tiny_model("llama"), precision="fp32", budget=128)
    assert isinstance(lm, CausalLM)
    long = " ".join(TEXTS * 12)
    found = lm.token_log_probs([*TEXTS, "", long])
    for text, values in zip(TEXTS, found, strict=False):
        ids = torch.tensor([[0, *lm.encode([text])[0]]])
        with torch.no_grad():
            logits = torch.log_softmax(lm.model(ids).logits[0, :-1], -1)
        assert values == pytest.approx(logits.gather(1, ids[0, 1:, None])[:, 0].numpy(), abs=1e-4)
    assert len(found[5]) == 0
    assert len(found[6]) == len(lm.encode([long])[0])
    assert (found[6] < 0).all()


def test_sampling_is_reproducible_and_as_often_as_is_likely() -> None:
    scores = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    ids = torch.zeros((2000, 1), dtype=torch.long)
    state = torch.get_rng_state()
    sampler = GumbelTopK([[seed] for seed in range(2000)], 3, 1.0)
    drawn = sampler(ids, scores.expand(2000, -1)).argmax(1)
    assert torch.equal(state, torch.get_rng_state()), "no global generator is touched"
    for i in (0, 7, 1999):
        assert GumbelTopK([[i]], 3, 1.0)(ids[:1], scores).argmax(1) == drawn[i], "the rest of the batch does not matter"
    assert float((drawn == 0).float().mean()) == pytest.approx(0.5 / 0.95, abs=0.05)
    assert 3 not in drawn
    assert set(GumbelTopK([[seed] for seed in range(9)], 1, 1.0)(ids[:9], scores.expand(9, -1)).argmax(1).tolist()) == {
        0
    }


# ------------------------------------------------------------------------------------------------- what can go wrong


def test_a_model_without_a_head_is_refused(tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    from transformers import BertModel

    BertModel.from_pretrained(tiny_model("bert")).save_pretrained(tmp_path)
    tiny.wordpiece().save_pretrained(tmp_path)
    with pytest.raises(MissingModelError, match=r"no trained language-model head.*use a masked"):
        TransformersMaskedLM(tmp_path)


def test_a_tokenizer_without_a_mask_is_refused(tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    shutil.copytree(tiny_model("bert"), tmp_path, dirs_exist_ok=True)
    tokenizer = tiny.wordpiece()
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(MissingModelError, match="no mask token"):
        TransformersMaskedLM(tmp_path)


def test_pickles_are_refused(tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    shutil.copytree(tiny_model("bert"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(MissingModelError, match=r"pickled weights only.*convert them to safetensors"):
        resolve("masked_lm", str(tmp_path))


def rename_weights(folder: Path, *, keep: str = "") -> None:
    """Save a model under other names of its weights."""
    path = folder / "model.safetensors"
    weights = {name if keep and keep in name else f"other.{name}": tensor for name, tensor in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("kind", "what"), [("bert", "encoder"), ("bert", "masked_lm"), ("llama", "causal_lm"), ("bart", "generator")]
)
def test_weights_that_are_not_there_are_never_random(
    kind: str, what: str, tmp_path: Path, tiny_model: Callable[[str], Path]
) -> None:
    shutil.copytree(tiny_model(kind), tmp_path, dirs_exist_ok=True)
    resolve(what, str(tmp_path))
    rename_weights(tmp_path, keep="embed")

    def use() -> None:
        backend = resolve(what, str(tmp_path))
        backend.generate(["a"])  # which is loaded when it is used; the others have no such method

    with pytest.raises(MissingModelError, match=r"is not in its files.*(use a|download)"):
        use()


@pytest.mark.parametrize("what", ["encoder", "masked_lm"])
def test_a_model_without_its_tokenizer_is_refused(what: str, tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    shutil.copytree(tiny_model("bert"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(MissingModelError, match=r"(without a vocabulary|cannot be loaded)"):
        resolve(what, str(tmp_path))


@pytest.mark.parametrize("damage", ["cut", "noise", "config", "tokenizer"])
def test_damaged_files_are_one_clear_line(damage: str, tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    shutil.copytree(tiny_model("bert"), tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-1000])
    elif damage == "noise":
        weights.write_bytes(b"\xff" * 100)
    elif damage == "config":
        (tmp_path / "config.json").write_text("{")
    else:
        (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(MissingModelError, match="cannot be loaded") as caught:
        TransformersMaskedLM(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_names_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UnknownNameError, match="mpnet-mlm"):
        resolve("masked_lm", "mpnet_mlm")
    with pytest.raises(MissingModelError, match=r"not on this machine"):
        resolve("masked_lm", "someone/some-model-nobody-has")
    with pytest.raises(MissingModelError, match=r"holds no"):
        resolve("encoder", str(tmp_path))
    with pytest.raises(MissingModelError, match="neither a folder nor a name"):
        resolve("encoder", f"{tmp_path}/not/there/at all")


def test_a_download_that_was_interrupted_goes_on(
    tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    whole, downloads = tiny_model("bert"), 0

    def snapshot_download(name: str, *, local_files_only: bool = False, **_: Any) -> str:
        nonlocal downloads
        if not local_files_only:
            downloads += 1
            shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    shutil.copy(whole / "config.json", tmp_path)
    with use_compute_settings(offline=True), pytest.raises(MissingModelError, match=r"holds no \*.safetensors"):
        resolve("masked_lm", "someone/bert")
    for _ in range(2):
        assert resolve("masked_lm", "someone/bert").fill([("a", None)], 1)
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    resolve("masked_lm", "someone/bert")
    assert downloads == 2, "once for all that is missing, and again for a shard"


@pytest.mark.parametrize("changed", ["tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"])
def test_the_name_of_a_model_covers_all_that_it_answers_by(
    changed: str, tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(tiny_model("bert"), tmp_path / "bert")
    name = model_name(tmp_path / "bert")
    assert name.rpartition("@")[2] == model_name(tiny_model("bert")).rpartition("@")[2]
    (tmp_path / "bert" / "README.md").write_text("a tiny model", encoding="utf-8")
    assert model_name(tmp_path / "bert") == name
    file = tmp_path / "bert" / changed
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert model_name(tmp_path / "bert") != name


def test_device_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("cpu", "fp32") == (torch.device("cpu"), torch.float32)
    monkeypatch.setenv("ENTAUG_DEVICE", "cpu")
    monkeypatch.setenv("ENTAUG_PRECISION", "bf16")
    assert choose_device() == (torch.device("cpu"), torch.bfloat16)
    monkeypatch.delenv("ENTAUG_PRECISION")
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False, raising=False)
    assert choose_device() == (torch.device("cpu"), torch.float32)
    with pytest.raises(ParameterError, match="precision"):
        choose_device("cpu", "fp7")
    with pytest.raises(ParameterError, match="no device"):
        choose_device("toaster")


@pytest.mark.parametrize(
    ("instructions", "is_intel", "expected"),
    [
        ((), True, torch.float32),
        (("amx_tile", "avx512_bf16"), True, torch.bfloat16),
        (("avx512_bf16",), True, torch.float32),  # slower than fp32 there
        (("avx512_bf16",), False, torch.bfloat16),
    ],
)
def test_precision_by_what_the_processor_can(
    monkeypatch: pytest.MonkeyPatch, instructions: tuple[str, ...], is_intel: bool, expected: torch.dtype
) -> None:
    monkeypatch.delenv("ENTAUG_PRECISION", raising=False)
    for name in ("avx512_bf16", "amx_tile"):
        monkeypatch.setattr(torch.cpu, f"_is_{name}_supported", lambda name=name: name in instructions, raising=False)
    monkeypatch.setattr(base, "_is_intel", lambda: is_intel)
    assert choose_device("cpu") == (torch.device("cpu"), expected)


@pytest.mark.parametrize(
    ("has_bf16", "capability", "model_type", "expected"),
    [
        (True, (9, 0), "bert", torch.bfloat16),
        (True, (8, 0), "t5", torch.bfloat16),
        (False, (7, 5), "bert", torch.float16),
        (False, (7, 5), "t5", torch.float32),
        (False, (6, 1), "bert", torch.float32),
    ],
)
def test_precision_by_what_the_gpu_can(
    monkeypatch: pytest.MonkeyPatch, has_bf16: bool, capability: tuple[int, int], model_type: str, expected: torch.dtype
) -> None:
    def empty(*_: Any, **__: Any) -> None:
        """There is a GPU."""

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or has_bf16
    )
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert choose_device("cuda", model_type=model_type) == (torch.device("cuda"), expected)
    assert choose_device("cuda", "fp32", model_type=model_type)[1] is torch.float32


def test_batches_halve_when_memory_runs_out() -> None:
    batcher = Batcher(budget=64)
    done: list[int] = []

    def compute(batch: list[int], width: int) -> None:
        if len(batch) * width > 20:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
        done.extend(batch)

    batcher.run([5, 8, 3, 16, 7], compute)
    assert sorted(done) == [0, 1, 2, 3, 4]
    assert batcher.budget <= 16
    with pytest.raises(EntaugError, match="out of memory for a single text"):
        batcher.run([40], compute)

    def broken(_batch: list[int], _width: int) -> None:
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        batcher.run([1], broken)


def test_names_tell_contents_apart(tmp_path: Path, tiny_model: Callable[[str], Path]) -> None:
    shutil.copytree(tiny_model("bert"), tmp_path / "a")
    shutil.copytree(tiny_model("bert"), tmp_path / "b" / "a")
    one, two = TransformersMaskedLM(tmp_path / "a"), TransformersMaskedLM(tmp_path / "b" / "a")
    assert one.name == two.name
    assert one.name != TransformersMaskedLM(tmp_path / "a", precision="fp32").name or "fp32" in one.name
    weights = tmp_path / "a" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    assert TransformersMaskedLM(tmp_path / "a").name != two.name
