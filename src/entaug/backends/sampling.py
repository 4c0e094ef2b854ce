"""Sampling that depends on a text's own seed alone, not on what else is in the batch or on any global generator.

Adding Gumbel noise to log-probabilities and taking the largest is drawing from them exactly (Gumbel 1954); so seeded
noise per row and step turns greedy decoding into sampling.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entaug.backends.torch_base import torch, transformers

__all__ = ["SeededSampling"]


class SeededSampling(transformers.LogitsProcessor):
    """Turn greedy decoding into sampling, row by row.

    Args:
        seeds: one a row.
        temperature: above 1 for more variety, below for less.
        top_k: how many sub-words a draw is among.
    """

    def __init__(self, seeds: Sequence[int], temperature: float = 1.0, top_k: int = 50) -> None:
        self._generators = [np.random.Generator(np.random.Philox(seed % 2**64)) for seed in seeds]
        self._temperature = temperature
        self._top_k = top_k

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores of the next sub-word with each row's own noise, all but the likeliest `top_k` out of reach."""
        del input_ids
        best = scores.float().topk(min(self._top_k, scores.shape[1]), dim=1)
        noise = np.stack([generator.gumbel(size=best.values.shape[1]) for generator in self._generators])
        noisy = best.values / self._temperature + torch.from_numpy(noise).to(best.values)
        drawn = torch.full_like(scores, -torch.inf)
        return drawn.scatter(1, best.indices, noisy.to(scores.dtype))
