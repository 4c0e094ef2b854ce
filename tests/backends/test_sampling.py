"""Sampling with texts that take the places of others, beside ``generate`` of transformers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from entaug.backends.transformers.base import pad_rows  # noqa: E402
from entaug.backends.transformers.decoding import (  # noqa: E402
    GumbelTopK,
    sample_texts,
    supports_refilling,
)

VOCABULARY = 50
SMALL: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDE: dict[str, Any] = {**SMALL, "intermediate_size": 32, "num_key_value_heads": 1, "max_position_embeddings": 128}
LONG_ROPE = {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
# The architecture, its configuration, and whether its cache is that of `sample_texts`.
MODELS: dict[str, tuple[dict[str, Any], bool | None]] = {
    "Llama": (WIDE, True),
    "Qwen2": (WIDE, True),
    "GPT2": ({"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 128}, True),
    "GPTNeoX": ({**SMALL, "intermediate_size": 32}, True),
    "OPT": ({**SMALL, "ffn_dim": 32, "word_embed_proj_dim": 16, "max_position_embeddings": 128}, None),
    "Bloom": ({"vocab_size": VOCABULARY, "hidden_size": 16, "n_layer": 2, "n_head": 2}, False),
    "Falcon": ({**SMALL, "alibi": True, "num_kv_heads": 2}, False),
    "Mistral": ({**WIDE, "sliding_window": 4}, False),
    "GPTNeo": ({**SMALL, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]}, False),
    "Phi3": ({**WIDE, "rope_scaling": LONG_ROPE, "original_max_position_embeddings": 40, "pad_token_id": 0}, False),
    "Mamba": ({"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}, False),
}
INPUTS = [[5, 6, 7], [8], [5, 6, 7], [9, *range(10, 30)], [5, 6, 7], [4, 4], [30, 31], *([40, i] for i in range(9))]
STOP_IDS = frozenset(range(0, VOCABULARY, 9))
SUPPRESSED = [1, 2]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    options = {"bos_token_id": 1, "eos_token_id": 0, "pad_token_id": 0, **MODELS[request.param][0]}
    config = getattr(transformers, f"{request.param}Config")(**options)
    built = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in built.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)  # as the small values at the beginning hide errors of positions
    return request.param, built


def sampled(model: Any, inputs: list[list[int]], batch_size: int, first: int = 0) -> list[tuple[list[int], bool]]:
    sampler = GumbelTopK([[first + i] for i in range(len(inputs))], 40, 1.0)
    texts = sample_texts(
        model, inputs, sampler, max_new_tokens=20, stop_ids=STOP_IDS, suppressed_ids=SUPPRESSED, batch_size=batch_size
    )
    return [(text.ids, text.has_ended) for text in texts]


def generated(model: Any, inputs: list[list[int]]) -> list[tuple[list[int], bool]]:
    width = max(map(len, inputs))
    ids, mask = pad_rows(inputs, width, 0, left=True)
    out = model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=20,
        do_sample=False,
        eos_token_id=sorted(STOP_IDS),
        pad_token_id=0,
        suppress_tokens=SUPPRESSED,
        logits_processor=transformers.LogitsProcessorList([GumbelTopK([[i] for i in range(len(inputs))], 40, 1.0)]),
    )
    texts = []
    for row in out[:, width:].tolist():
        length = next((i for i, id_ in enumerate(row) if id_ in STOP_IDS), len(row))
        texts.append((row[:length], length < len(row)))
    return texts


def test_texts_are_those_of_generate_whatever_the_batch(model: tuple[str, Any]) -> None:
    name, causal_lm = model
    supported = supports_refilling(causal_lm)
    assert supported == MODELS[name][1] or MODELS[name][1] is None
    if not supported:
        return
    expected = generated(causal_lm, INPUTS)
    assert len({len(ids) for ids, _ in expected}) > 4, "texts of different lengths"
    for batch_size in (1, 3, 8, 100):
        assert sampled(causal_lm, INPUTS, batch_size) == expected
    assert sampled(causal_lm, INPUTS[3:4], 1, first=3) == expected[3:4]


def test_the_check_of_a_model_holds_in_half_precision(model: tuple[str, Any]) -> None:
    name, causal_lm = model
    assert supports_refilling(copy.deepcopy(causal_lm).to(torch.bfloat16)) == supports_refilling(causal_lm), name


def test_texts_that_end_make_room_for_others() -> None:
    torch.manual_seed(1)
    causal_lm = transformers.LlamaForCausalLM(transformers.LlamaConfig(**WIDE)).eval()
    shapes: list[tuple[int, ...]] = []
    causal_lm.register_forward_pre_hook(
        lambda module, args, options: shapes.append(tuple(options["input_ids"].shape)), with_kwargs=True
    )
    inputs = [[3 + i % 40] for i in range(200)]
    texts = sampled(causal_lm, inputs, 10)
    tokens = sum(len(ids) + has_ended for ids, has_ended in texts)
    assert sum(rows for rows, _ in shapes) == tokens, "no row is computed after its end"
    longest = [max(len(ids) + ended for ids, ended in texts[i : i + 10]) for i in range(0, 200, 10)]
    assert len(shapes) < 0.7 * sum(longest)
    assert max(rows for rows, _ in shapes) == 10


def test_inputs_may_be_as_long_as_the_positions_of_a_model() -> None:
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=40)
    causal_lm = transformers.AutoModelForCausalLM.from_config(config).eval()
    inputs = [[3 + i % 40 for i in range(length)] for length in (20, 35, 34)]
    sampler = GumbelTopK([[i] for i in range(3)], 40, 1.0)
    texts = sample_texts(
        causal_lm, inputs, sampler, max_new_tokens=5, stop_ids=STOP_IDS, suppressed_ids=SUPPRESSED, batch_size=3
    )
    assert all(text.has_ended or len(text.ids) == 5 for text in texts)


def test_no_inputs_give_no_texts() -> None:
    causal_lm = transformers.LlamaForCausalLM(transformers.LlamaConfig(**WIDE)).eval()
    assert sampled(causal_lm, [], 10) == []
