"""Decoding: draws that are independent of the rest of the batch, diverse beam search, and batches that are refilled."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from entaug.backends.transformers.base import pad_rows
from entaug.backends.transformers.constraints import TokenConstraint

_MIN_FREE = 0.25  # share of the rows that must be free before the next inputs are read: reading costs a step or more
_STEP = 32  # widths are multiples of it, so that kernels add up the values of a text in the same order in any batch
# Largest mean difference from the logits of a text alone, as a share of the standard deviation of the logits.
_TOLERANCE = 1e-3
_TOLERANCE_IN_HALF_PRECISION = 0.1


class GumbelTopK(transformers.LogitsProcessor):
    """Leaves one token a row: drawn from the likeliest ones by the row's own random stream."""

    # The largest of log-probabilities with independent Gumbel noise added is an exact draw from their distribution
    # (Gumbel 1954; Maddison et al. 2014). So greedy decoding after this processor samples, without a random generator
    # that rows share.

    def __init__(self, seeds: Sequence[Sequence[int]], top_k: int, temperature: float) -> None:
        self._streams = [np.random.Generator(np.random.Philox(np.random.SeedSequence(list(seed)))) for seed in seeds]
        self._top_k = top_k
        self._temperature = temperature
        self.log_probs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        drawn = self.draw(scores, range(len(scores)))[:, None]
        wide = scores.float()
        self.log_probs.append(wide.gather(1, drawn)[:, 0] - wide.logsumexp(1))
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn, 0.0)

    def draw(self, scores: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """Draw a token for some rows."""
        likeliest, tokens = torch.topk(scores.float() / self._temperature, min(self._top_k, scores.shape[-1]))
        noise = np.stack([self._streams[row].gumbel(size=self._top_k) for row in rows]).astype(np.float32)
        noisy = likeliest + torch.from_numpy(noise[:, : likeliest.shape[-1]]).to(scores.device)
        return tokens.gather(1, noisy.argmax(dim=1, keepdim=True))[:, 0]


class DiversityPenalty(transformers.LogitsProcessor):
    """Diverse beam search: a continuation is penalised by its rank among those of its beam."""

    # "EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), section 4.2, which refers to Vijayakumar et al.
    # (2016). Its equations 4 and 5 are illegible in our copy; this is our reading of its words, and the formula of Li
    # and Jurafsky (2016): beams are compared by their log-probability minus the penalty for the rank of the last token.
    # Beam search adds up what a processor returns, so the penalty of the last token is given back at the next step.

    def __init__(self, num_beams: int, diversity_penalty: float) -> None:
        self._num_beams = num_beams
        self._penalty = diversity_penalty
        # Beam search takes at most 4 * num_beams continuations of all beams, and the penalty only lowers scores: a
        # continuation further down in its own beam can never be among them.
        self._num_ranked = 4 * num_beams
        self._previous_ids: torch.Tensor | None = None
        self._previous_tokens: torch.Tensor | None = None  # the likeliest continuations of these, in order

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        likeliest, tokens = torch.topk(scores, min(self._num_ranked, scores.shape[1]), dim=1)
        penalised = likeliest - self._penalty * torch.arange(tokens.shape[1], device=scores.device)
        if self._previous_ids is not None and self._previous_tokens is not None:
            # Beams are reordered within an input: find the beam of the previous step that each one continues.
            length = self._previous_ids.shape[1]
            groups = input_ids[:, :-1].view(-1, self._num_beams, 1, length)
            parents = (groups == self._previous_ids.view(-1, 1, self._num_beams, length)).all(-1).int().argmax(-1)
            rows = torch.arange(len(parents), device=parents.device)[:, None] * self._num_beams + parents
            last_rank = (self._previous_tokens[rows.flatten()] == input_ids[:, -1:]).int().argmax(1)
            penalised = penalised + self._penalty * last_rank[:, None]
        self._previous_ids, self._previous_tokens = input_ids.clone(), tokens
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens, penalised)


class SampledText(NamedTuple):
    """A sampled text."""

    ids: list[int]
    has_ended: bool
    mean_log_prob: float


def sample_texts(
    model: Any,
    inputs: Sequence[Sequence[int]],
    sampler: GumbelTopK,
    *,
    constraints: Sequence[TokenConstraint] = (),
    max_new_tokens: int,
    stop_ids: Collection[int],
    suppressed_ids: Sequence[int],
    batch_size: int,
) -> list[SampledText]:
    """Continue each input until its text ends."""
    # `model.generate` goes on with a batch until its last text has ended, or is as long as it may be. As texts differ
    # in length, most rows of a batch have ended by then. Here the next inputs take their places ("continuous batching",
    # Yu et al. 2022), and equal inputs are read once.
    texts: list[list[int]] = [[] for _ in inputs]
    log_probs: list[list[float]] = [[] for _ in inputs]
    has_ended = [False] * len(inputs)
    waiting = sorted(range(len(inputs)), key=lambda i: (len(inputs[i]), list(inputs[i])), reverse=True)
    with torch.inference_mode():
        suppressed = torch.tensor(suppressed_ids, dtype=torch.long, device=model.device)
        batch = _Batch(model, min(batch_size, len(inputs)), max(map(len, inputs), default=0) + max_new_tokens)
        while waiting or batch.rows:
            if waiting and len(batch.rows) <= (1 - _MIN_FREE) * batch.size:
                new = [waiting.pop() for _ in range(min(batch.size - len(batch.rows), len(waiting)))]
                batch.add(new, [inputs[i] for i in new])
            rows = batch.rows
            scores = batch.logits().float().index_fill_(1, suppressed, -torch.inf)
            for constraint in constraints:
                scores = constraint.constrain([texts[i] for i in rows], rows, scores)
            drawn = sampler.draw(scores, rows)
            own_log_probs = (scores.gather(1, drawn[:, None])[:, 0] - scores.logsumexp(1)).tolist()
            for i, token, log_prob in zip(rows, drawn.tolist(), own_log_probs, strict=True):
                log_probs[i].append(log_prob)
                has_ended[i] = token in stop_ids
                if not has_ended[i]:
                    texts[i].append(token)
            batch.advance(drawn, [not has_ended[i] and len(texts[i]) < max_new_tokens for i in rows])
    means = [math.fsum(values) / max(1, len(values)) for values in log_probs]
    return [SampledText(*text) for text in zip(texts, has_ended, means, strict=True)]


def supports_refilling(model: Any) -> bool:
    """Whether `sample_texts` computes what a causal language model computes by itself."""
    # Some models keep other states than the keys and values of all tokens, or derive positions from the attention mask.
    config = model.config.get_text_config()
    layers = DynamicCache(config=model.config).layers
    if not layers or any(type(layer) is not DynamicLayer for layer in layers) or _depends_on_width(config):
        return False
    half = config.vocab_size // 2  # the first tokens are special ones
    ids = [half + i % half for i in range(0, 70, 10)]
    inputs, next_ids = [ids[:5], ids[5:]], torch.tensor(ids[:2], device=model.device)
    try:
        with torch.inference_mode():
            batch = _Batch(model, len(inputs), len(ids))
            batch.add(range(len(inputs)), inputs)
            batch.logits()
            batch.advance(next_ids, [True, True])
            ours = batch.logits().float()
            texts = [[*row, ids[i]] for i, row in enumerate(inputs)]
            alone = [model(input_ids=torch.tensor([text], device=model.device)).logits[:, -1] for text in texts]
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return False  # a model of another form, which `generate` knows how to call
    theirs = torch.cat(alone).float()
    tolerance = _TOLERANCE if model.dtype is torch.float32 else _TOLERANCE_IN_HALF_PRECISION
    return bool((ours - theirs).abs().mean() <= tolerance * theirs.std())


def _depends_on_width(config: Any) -> bool:
    """Whether a model attends to a window, or scales its positions, by the longest text of a batch."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    scales = any(kind in str(rope) for kind in ("dynamic", "longrope"))
    return scales or any(getattr(config, name, None) is not None for name in ("window_size", "attention_types"))


class _Batch:
    """The texts that are being continued, the keys and values of their tokens, and their next tokens."""

    # Each text begins at the first column of the cache, so that its values do not depend on the lengths of the others.

    def __init__(self, model: Any, size: int, max_length: int) -> None:
        self.size = size
        self.rows: list[int] = []
        self._model = model
        self._lengths: list[int] = []  # tokens of each row in the cache
        self._next_ids: Any = torch.zeros(0, dtype=torch.long, device=model.device)
        capacity = _round_up(max_length)
        self._max_width = getattr(model.config.get_text_config(), "max_position_embeddings", None) or capacity
        self._layers = [_Layer(size, capacity) for _ in DynamicCache(config=model.config).layers]
        self._cache = Cache(layers=list(self._layers))
        self._last_read: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}  # its keys and values in each layer

    def add(self, numbers: Sequence[int], inputs: Sequence[Sequence[int]]) -> None:
        """Read inputs and add their texts to the batch."""
        first_row = len(self.rows)
        self.rows += numbers
        self._lengths += [len(ids) - 1 for ids in inputs]  # the last token is read with the next step of the others
        last_ids = torch.tensor([ids[-1] for ids in inputs], dtype=torch.long, device=self._model.device)
        self._next_ids = torch.cat([self._next_ids, last_ids])
        by_width: dict[int, list[int]] = {}
        for i, ids in enumerate(inputs):
            if len(ids) > 1:
                by_width.setdefault(min(_round_up(len(ids) - 1), self._max_width), []).append(i)
        for width, places in by_width.items():
            beginnings = [tuple(inputs[i][:-1]) for i in places]
            states = self._last_read | self._read(sorted(set(beginnings) - set(self._last_read)), width)
            targets = torch.tensor([first_row + i for i in places], device=self._model.device)
            for number, layer in enumerate(self._layers):
                keys, values = zip(*(states[ids][number] for ids in beginnings), strict=True)
                layer.write(targets, torch.stack(keys), torch.stack(values))
            self._last_read = {beginnings[-1]: [(k.clone(), v.clone()) for k, v in states[beginnings[-1]]]}

    def _read(self, inputs: Sequence[tuple[int, ...]], width: int) -> dict[tuple[int, ...], list[tuple[Any, Any]]]:
        """The keys and values of the tokens of inputs in each layer, of shape (heads, width, dimension)."""
        if not inputs:
            return {}
        ids, _ = pad_rows(inputs, width, 0)  # what follows a text does not change what it is to a causal model
        read = self._model.base_model(input_ids=ids.to(self._model.device), use_cache=True).past_key_values
        return {own: [(layer.keys[i], layer.values[i]) for layer in read.layers] for i, own in enumerate(inputs)}

    def logits(self) -> Any:
        """The logits of the next tokens, of shape (rows, vocabulary)."""
        device = self._model.device
        lengths = torch.tensor(self._lengths, dtype=torch.long, device=device)
        width, rows = _round_up(max(self._lengths) + 1), torch.arange(len(self.rows), device=device)
        for layer in self._layers:
            layer.width, layer.places = width, (rows, lengths)
        columns = torch.arange(width, device=device)
        mask = torch.zeros((len(self.rows), 1, 1, width), dtype=self._model.dtype, device=device)
        mask.masked_fill_((columns > lengths[:, None])[:, None, None], torch.finfo(mask.dtype).min)
        output = self._model(
            input_ids=self._next_ids[:, None],
            attention_mask=mask,
            position_ids=lengths[:, None],
            past_key_values=self._cache,
            use_cache=True,
        )
        return output.logits[:, -1]

    def advance(self, ids: Any, is_going: Sequence[bool]) -> None:
        """Add a token to each text, and remove those that have ended."""
        kept = [row for row, goes_on in enumerate(is_going) if goes_on]
        # The last rows take the places of those that have ended: few rows of the cache are copied.
        freed = [row for row in range(len(kept)) if not is_going[row]]
        moved = [row for row in kept if row >= len(kept)]
        order = list(range(len(kept)))
        for target, source in zip(freed, moved, strict=True):
            order[target] = source
        if freed:
            targets, sources = (torch.tensor(rows, device=ids.device) for rows in (freed, moved))
            for layer in self._layers:
                layer.move(sources, targets)
        self.rows = [self.rows[row] for row in order]
        self._lengths = [self._lengths[row] + 1 for row in order]
        self._next_ids = ids[torch.tensor(order, dtype=torch.long, device=ids.device)]


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """The keys and values of one layer for rows of different lengths."""

    keys: Any
    values: Any
    places: tuple[Any, Any]

    def __init__(self, size: int, capacity: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.width = 0
        self._size, self._capacity = size, capacity
        self._num_cleared = 0  # columns

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Add a token to each row, see `DynamicLayer.update`."""
        self._reserve(self.width, key_states, value_states)
        rows, columns = self.places
        self.keys[rows, :, columns], self.values[rows, :, columns] = key_states[:, :, 0], value_states[:, :, 0]
        return self.keys[: len(rows), :, : self.width], self.values[: len(rows), :, : self.width]

    def write(self, rows: Any, key_states: Any, value_states: Any) -> None:
        """Write the beginnings of rows."""
        width = key_states.shape[2]
        self._reserve(width, key_states, value_states)
        self.keys[rows, :, :width], self.values[rows, :, :width] = key_states, value_states

    def move(self, sources: Any, targets: Any) -> None:
        """Copy the columns in use of some rows to others."""
        for states in (self.keys, self.values):
            states[targets, :, : self.width] = states[sources, :, : self.width]

    def _reserve(self, width: int, key_states: Any, value_states: Any) -> None:
        """Make at least `width` columns usable, with zeros where no text has been written yet."""
        # All memory is reserved at once, because arrays that grow fragment it. On a CPU it is taken when it is used.
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = (
                states.new_empty((self._size, states.shape[1], self._capacity, states.shape[3]))
                for states in (key_states, value_states)
            )
        if width > self._num_cleared:
            self.keys[:, :, self._num_cleared : width] = 0
            self.values[:, :, self._num_cleared : width] = 0
            self._num_cleared = width


def _round_up(length: int) -> int:
    return -(-length // _STEP) * _STEP
