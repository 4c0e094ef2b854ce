"""Sampling from a generating model such that what is drawn for a text does not depend on the rest of its batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entaug.backends.torch_base import torch, transformers

__all__ = ["GumbelTopK"]


class GumbelTopK(transformers.LogitsProcessor):
    """Leaves one token a row: drawn among the likeliest, from the row's own random stream.

    The largest of log-probabilities with independent Gumbel noise added is an exact draw from their distribution
    (Gumbel 1954; Maddison et al. 2014). So greedy decoding behind this samples, and needs no generator that rows share.

    Args:
        seeds: for each row integers that its stream comes from, not negative.
        top_k: how many tokens a draw is among.
        temperature: above 1 for more variety, below for less.
    """

    def __init__(self, seeds: Sequence[Sequence[int]], top_k: int, temperature: float) -> None:
        self._streams = [np.random.Generator(np.random.Philox(np.random.SeedSequence(list(seed)))) for seed in seeds]
        self._top_k = top_k
        self._temperature = temperature

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step."""
        del input_ids
        likeliest, tokens = torch.topk(scores.float() / self._temperature, min(self._top_k, scores.shape[-1]))
        noise = np.stack([stream.gumbel(size=self._top_k) for stream in self._streams]).astype(np.float32)
        noisy = likeliest + torch.from_numpy(noise[:, : likeliest.shape[-1]]).to(scores.device)
        drawn = tokens.gather(1, noisy.argmax(dim=1, keepdim=True))
        return torch.full_like(scores, float("-inf")).scatter_(1, drawn, 0.0)
