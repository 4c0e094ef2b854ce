"""What steers a generating model: sampling that does not depend on the rest of the batch, and diverse beam search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entaug.backends.torch_base import torch, transformers

__all__ = ["GumbelTopK", "RankPenalty"]


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
        self.log_probs: list[torch.Tensor] = []
        """For each step the log-probability of what was drawn, one a row."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step."""
        del input_ids
        likeliest, tokens = torch.topk(scores.float() / self._temperature, min(self._top_k, scores.shape[-1]))
        noise = np.stack([stream.gumbel(size=self._top_k) for stream in self._streams]).astype(np.float32)
        noisy = likeliest + torch.from_numpy(noise[:, : likeliest.shape[-1]]).to(scores.device)
        drawn = tokens.gather(1, noisy.argmax(dim=1, keepdim=True))
        wide = scores.float()
        self.log_probs.append((wide.gather(1, drawn)[:, 0] - wide.logsumexp(1)).cpu())
        return torch.full_like(scores, float("-inf")).scatter_(1, drawn, 0.0)


class RankPenalty(transformers.LogitsProcessor):
    """Diverse beam search: a continuation is lowered by a penalty times its rank among those of its beam.

    "EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), equations 4 and 5, after Li and Jurafsky (2016):
    what is compared at a step is the log-probability of the whole less the penalty for the last token's rank. Beam
    search sums what a processor returns, so what the last token was lowered by is given back at the next step.

    Args:
        beams: rows of an input.
        penalty: what a rank costs, the paper's gamma; the likeliest continuation has rank 0, so that all beams of an
            input are lowered alike where the paper would begin at 1.

    Example:
        >>> lower = RankPenalty(beams=1, penalty=10.0)
        >>> lower(torch.tensor([[5]]), torch.tensor([[-1.0, -0.5, -3.0]])).tolist()
        [[-11.0, -0.5, -23.0]]
        >>> lower(torch.tensor([[5, 0]]), torch.tensor([[-1.0, -0.5, -3.0]])).tolist()  # 0 had rank 1: 10 given back
        [[-1.0, 9.5, -13.0]]
    """

    def __init__(self, beams: int, penalty: float) -> None:
        self._beams = beams
        self._penalty = penalty
        # Beam search takes at most 4 * beams continuations of all beams together, and ranks only lower: those further
        # down in their own beam can never be among them.
        self._reach = 4 * beams
        self._before: torch.Tensor | None = None  # the ids of the step before
        self._tokens: torch.Tensor | None = None  # and the likeliest tokens behind them, in order

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
        likeliest, tokens = torch.topk(scores, min(self._reach, scores.shape[1]), dim=1)
        lowered = likeliest - self._penalty * torch.arange(tokens.shape[1], device=scores.device)
        if self._before is not None and self._tokens is not None:
            # Which beam of the step before a beam goes on: they are reordered within an input.
            length = self._before.shape[1]
            groups = input_ids[:, :-1].view(-1, self._beams, 1, length)
            parents = (groups == self._before.view(-1, 1, self._beams, length)).all(-1).int().argmax(-1)
            rows = torch.arange(len(parents), device=parents.device)[:, None] * self._beams + parents
            last = (self._tokens[rows.flatten()] == input_ids[:, -1:]).int().argmax(1)
            lowered = lowered + self._penalty * last[:, None]
        self._before, self._tokens = input_ids.clone(), tokens
        return torch.full_like(scores, float("-inf")).scatter_(1, tokens, lowered)
