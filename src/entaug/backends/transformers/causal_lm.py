"""Causal language models of transformers, GGUF files included: log-probabilities and continuations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from entaug.backends.transformers.base import Batcher, TorchBackend, torch, transformers
from entaug.backends.transformers.decoding import GumbelTopK
from entaug.errors import ParameterError

__all__ = ["TransformersCausalLM"]

_SCORED = 1024  # sub-words scored at a time: each costs a row of the whole vocabulary


class TransformersCausalLM(TorchBackend):
    """Any model that ``AutoModelForCausalLM`` loads, as a `entaug.backends.protocols.CausalLM`.

    A folder with a ``.gguf`` file and no safetensors is dequantised while it is loaded, which takes a while. Texts are
    scored from the model's end-of-text id on, as they were in training. A text longer than the model can take is scored
    in windows that overlap by half.

    Args:
        name: a folder or a name on the hub.
        device: see `entaug.backends.transformers.base.choose`.
        precision: see `entaug.backends.transformers.base.choose`.
        budget: sub-words of a batch; by default by device.

    Raises:
        MissingModelError: there is no such model.
    """

    auto = transformers.AutoModelForCausalLM

    @property
    def _start(self) -> int:
        """The id that texts begin behind."""
        marker = self.tokenizer.get_vocab().get("<|endoftext|>")
        if marker is not None:
            return int(marker)
        known = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id, 0)
        return next(int(id_) for id_ in known if id_ is not None)

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """See `entaug.backends.protocols.CausalLM.token_log_probs`."""
        rows = self.encode(texts)
        found = [np.zeros(len(row), np.float32) for row in rows]
        most = self.max_length - 1
        # Each window: its text, where it begins, and from which sub-word on its scores count.
        work: list[tuple[int, int, int]] = []
        for text, row in enumerate(rows):
            work.append((text, 0, 0))
            self.shortened += len(row) > most
            begin = 0
            while begin + most < len(row):
                counted = begin + most
                begin = min(begin + most // 2, len(row) - most)
                work.append((text, begin, counted))

        def compute(batch: list[int], width: int) -> None:
            chosen = [work[i] for i in batch]
            inputs = [[self._start, *rows[text][begin : begin + most]] for text, begin, _ in chosen]
            ids, mask = self.padded(inputs, width)
            with torch.inference_mode():
                logits = self.model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
            values = logits.gather(2, ids[:, 1:, None])[:, :, 0] - logits.logsumexp(2)
            for (text, begin, counted), row, line in zip(chosen, inputs, values.cpu().numpy(), strict=True):
                found[text][counted : begin + len(row) - 1] = line[counted - begin : len(row) - 1]

        batcher = Batcher(min(self.batcher.budget, _SCORED) if self.device.type == "cpu" else self.batcher.budget // 4)
        batcher.run([1 + min(most, len(rows[text])) for text, _, _ in work], compute)
        self.batcher.halved += batcher.halved
        return found

    def generate(
        self,
        prompts: Sequence[str],
        seeds: Sequence[int] | None = None,
        *,
        max_new_tokens: int = 64,
        temperature: float = 1.0,
        top_k: int = 50,
    ) -> list[str]:
        """See `entaug.backends.protocols.CausalLM.generate`.

        Raises:
            ParameterError: another number of seeds than of prompts, or a parameter that cannot be.
        """
        if seeds is not None and len(seeds) != len(prompts):
            raise ParameterError(f"{len(seeds)} seeds for {len(prompts)} prompts")
        if max_new_tokens < 1 or top_k < 1 or temperature <= 0:
            raise ParameterError("max_new_tokens and top_k must be at least 1, and temperature above 0")
        most = max(1, self.max_length - max_new_tokens)
        rows = [row[-most:] or [self._start] for row in self.encode(prompts, special=True)]
        self.shortened += sum(len(row) == most for row in rows)
        made = [""] * len(rows)
        pad = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self._start

        def compute(batch: list[int], width: int) -> None:
            ids = torch.full((len(batch), width), pad)
            mask = torch.zeros((len(batch), width), dtype=torch.long)
            for line, i in enumerate(batch):
                ids[line, width - len(rows[i]) :] = torch.tensor(rows[i])
                mask[line, width - len(rows[i]) :] = 1
            drawing = [] if seeds is None else [GumbelTopK([[seeds[i]] for i in batch], top_k, temperature)]
            with torch.inference_mode():
                out = self.model.generate(
                    input_ids=ids.to(self.device),
                    attention_mask=mask.to(self.device),
                    max_new_tokens=max_new_tokens,
                    do_sample=False,
                    num_beams=1,
                    temperature=None,
                    top_p=None,
                    top_k=None,
                    pad_token_id=pad,
                    logits_processor=transformers.LogitsProcessorList(drawing),
                )
            for i, line in zip(batch, out[:, width:].tolist(), strict=True):
                made[i] = self.tokenizer.decode(line, skip_special_tokens=True)

        self.batcher.run([len(row) for row in rows], compute)
        return made
