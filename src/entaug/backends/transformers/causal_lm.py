"""Causal language models of transformers: log-probabilities of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from entaug.backends.transformers.base import TorchBackend

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
        """See `entaug.backends.protocols.CausalLM.token_log_probs`."""
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
                logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
            values = logits.gather(2, ids[:, 1:, None])[:, :, 0] - logits.logsumexp(2)
            for (text, start, first_scored), row, line in zip(chosen, inputs, values.cpu().numpy(), strict=True):
                log_probs[text][first_scored : start + len(row) - 1] = line[first_scored - start : len(row) - 1]

        self.batcher.run([1 + min(longest, len(rows[text])) for text, _, _ in windows], compute, cost=_COST)
        return log_probs
