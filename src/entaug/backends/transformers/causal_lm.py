"""Causal language models of transformers: log-probabilities of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from entaug.backends.transformers.base import TorchBackend

_WORTHWHILE = 4  # common tokens from which a pass of their own takes less time
_COST = 4  # of a token, which takes a row of the whole vocabulary


class TransformersCausalLM(TorchBackend):
    """Any model that ``AutoModelForCausalLM`` loads, as a `entaug.backends.protocols.CausalLM`."""

    # Texts are scored after the model's end-of-text token, as they followed it in training. A text longer than the
    # model takes is scored in windows that overlap by half.

    auto = transformers.AutoModelForCausalLM

    @property
    def _start_id(self) -> int:
        """The id of the token before each text."""
        end_of_text = self.tokenizer.get_vocab().get("<|endoftext|>")
        if end_of_text is not None:
            return int(end_of_text)
        known = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id, 0)
        return next(int(id_) for id_ in known if id_ is not None)

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        rows = self.encode(texts)
        log_probs = [np.zeros(len(row), np.float32) for row in rows]
        longest = self.max_length - 1
        # Each window: its text, its first token, and the first token whose score is taken from it.
        windows: list[tuple[int, int, int]] = []
        for text, row in enumerate(rows):
            windows.append((text, 0, 0))
            start = 0
            while start + longest < len(row):
                first_scored = start + longest
                start = min(start + longest // 2, len(row) - longest)
                windows.append((text, start, first_scored))

        def compute(batch: list[int], width: int) -> None:
            chosen = [windows[i] for i in batch]
            inputs = [[self._start_id, *rows[text][start : start + longest]] for text, start, _ in chosen]
            ids, mask = self.pad(inputs, width)
            with torch.inference_mode():
                logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1]
                values = _gathered(logits, ids[:, 1:])
            for (text, start, first_scored), row, line in zip(chosen, inputs, values, strict=True):
                log_probs[text][first_scored : start + len(row) - 1] = line[first_scored - start : len(row) - 1]

        self.batcher.run([1 + min(longest, len(rows[text])) for text, _, _ in windows], compute, cost=_COST)
        return log_probs

    def log_probs_of_variants(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Compute what `token_log_probs` does, for texts that begin alike: their common beginning is computed once."""
        rows = self.encode(texts)
        common = _common_length(rows) if rows else 0
        longest = max(map(len, rows), default=0)
        if len(texts) < 2 or common < _WORTHWHILE or longest >= self.max_length or longest - common < 2:
            return self.token_log_probs(texts)  # too little is common, or nothing but the last token is not
        with torch.inference_mode():
            beginning = torch.tensor([[self._start_id, *rows[0][:common]]], device=self.device)
            of_beginning = self.model(input_ids=beginning, use_cache=True)
            cache = of_beginning.past_key_values
            cache.batch_repeat_interleave(len(rows))
            # The last token of the longest text predicts nothing.
            ids, mask = self.pad([row[common:] for row in rows], longest - common)
            mask = torch.cat([mask.new_ones(len(rows), common + 1), mask], 1)
            of_ends = self.model(input_ids=ids[:, :-1], attention_mask=mask[:, :-1], past_key_values=cache).logits
            first = of_beginning.logits[:, -1:].expand(len(rows), -1, -1)
            ends = _gathered(torch.cat([first, of_ends], 1), ids)
            shared = _gathered(of_beginning.logits[:, :-1], beginning[:, 1:])[0]
        lengths = [len(row) - common for row in rows]
        return [np.concatenate([shared, end[:n]]) for end, n in zip(ends, lengths, strict=True)]


def _gathered(logits: torch.Tensor, ids: torch.Tensor) -> NDArray[np.float32]:
    """The log-probabilities of tokens."""
    logits = logits.float()
    values: NDArray[np.float32] = (logits.gather(2, ids[:, :, None])[:, :, 0] - logits.logsumexp(2)).cpu().numpy()
    return values


def _common_length(rows: Sequence[Sequence[int]]) -> int:
    """The number of tokens with which all rows begin; each row has one more at least."""
    shortest = min(map(len, rows)) - 1
    return next((i for i in range(shortest) if len({row[i] for row in rows}) > 1), max(0, shortest))
