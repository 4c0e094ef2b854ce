"""Logits processors: sampling that is independent of the rest of the batch, and diverse beam search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from entaug.backends.transformers.base import torch, transformers

__all__ = ["DiversityPenalty", "GumbelTopK"]

_IMPOSSIBLE = float("-inf")


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
        """See `transformers.LogitsProcessor`; called once a step."""
        del input_ids
        drawn = self.draw(scores, range(len(scores)))[:, None]
        wide = scores.float()
        self.log_probs.append(wide.gather(1, drawn)[:, 0] - wide.logsumexp(1))
        return torch.full_like(scores, _IMPOSSIBLE).scatter_(1, drawn, 0.0)

    def draw(self, scores: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """Draw a token for some rows."""
        likeliest, tokens = torch.topk(scores.float() / self._temperature, min(self._top_k, scores.shape[-1]))
        noise = np.stack([self._streams[row].gumbel(size=self._top_k) for row in rows]).astype(np.float32)
        noisy = likeliest + torch.from_numpy(noise[:, : likeliest.shape[-1]]).to(scores.device)
        return tokens.gather(1, noisy.argmax(dim=1, keepdim=True))[:, 0]


class DiversityPenalty(transformers.LogitsProcessor):
    """Diverse beam search: a continuation is penalised by its rank among those of its beam."""

    # "EnTDA: Entity-to-Text based Data Augmentation" (Hu et al. 2023), equations 4 and 5, after Li and Jurafsky (2016):
    # beams are compared by their log-probability minus the penalty for the rank of the last token. Beam search adds up
    # what a processor returns, so the penalty of the last token is given back at the next step.

    def __init__(self, num_beams: int, diversity_penalty: float) -> None:
        self._num_beams = num_beams
        self._penalty = diversity_penalty
        # Beam search takes at most 4 * num_beams continuations of all beams, and the penalty only lowers scores: a
        # continuation further down in its own beam can never be among them.
        self._num_ranked = 4 * num_beams
        self._previous_ids: torch.Tensor | None = None
        self._previous_tokens: torch.Tensor | None = None  # the likeliest continuations of these, in order

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See `transformers.LogitsProcessor`; called once a step, with all beams of all inputs."""
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
        return torch.full_like(scores, _IMPOSSIBLE).scatter_(1, tokens, penalised)
