"""Sampling from causal language models: rows whose text has ended leave the batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from entaug.backends.transformers.base import torch
from entaug.backends.transformers.decoding import GumbelTopK
from entaug.backends.transformers.rows import shared_inputs

__all__ = ["sample_texts"]

_MAX_IDLE = 0.25  # share of rows that have ended, above which they leave the batch; to leave costs a copy of the others


def sample_texts(
    model: Any,
    ids: Any,
    mask: Any,
    sampler: GumbelTopK,
    max_new_tokens: int,
    stop_ids: Collection[int],
    suppressed_ids: Sequence[int],
) -> list[tuple[list[int], bool]]:
    """Continue each input until its text ends.

    ``model.generate`` goes on with all rows until the last text has ended, or is as long as it may be. As texts differ
    in length, that is twice the work and more.

    Args:
        model: a causal language model.
        ids: the inputs, padded on the left, of shape (rows, width).
        mask: their attention mask.
        sampler: draws the tokens.
        max_new_tokens: maximum number of tokens of a text.
        stop_ids: the tokens that end a text.
        suppressed_ids: tokens that are never drawn.

    Returns:
        For each row the tokens of the text without the one that ends it, and whether it has ended.
    """
    texts: list[list[int]] = [[] for _ in range(len(ids))]
    has_ended = [False] * len(ids)
    rows = list(range(len(ids)))  # those in the batch
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.inference_mode():
        options = shared_inputs(model, ids, mask)
        if options:
            ids, positions = ids[:, -1:], positions[:, -1:]
        suppressed = torch.tensor(suppressed_ids, dtype=torch.long, device=ids.device)
        for _ in range(max_new_tokens):
            output = model(
                input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1, **options
            )
            scores = output.logits[:, -1]
            scores.index_fill_(1, suppressed, -torch.inf)
            drawn = sampler.draw(scores, rows)
            tokens = drawn.tolist()
            for row, token in zip(rows, tokens, strict=True):
                has_ended[row] = has_ended[row] or token in stop_ids
                if not has_ended[row]:
                    texts[row].append(token)
            going = [k for k, row in enumerate(rows) if not has_ended[row]]
            if not going:
                break
            options = {"past_key_values": output.past_key_values}
            ids, positions = drawn[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
            if len(going) < (1 - _MAX_IDLE) * len(rows):
                rows = [rows[k] for k in going]
                index = torch.tensor(going, device=ids.device)
                output.past_key_values.batch_select_indices(index)
                ids, positions, mask = ids[index], positions[index], mask[index]
    return list(zip(texts, has_ended, strict=True))
