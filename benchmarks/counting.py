"""What benchmarks of the masked language model share."""

from __future__ import annotations

from typing import Any

import numpy as np

from entaug.backends.transformers.masked_lm import TransformersMaskedLM


class Counted:
    """A masked language model that counts the hidden places it was asked for.

    Args:
        lm: the model.
        remembers: whether a place asked for again is not computed again; it is counted again.
    """

    def __init__(self, lm: TransformersMaskedLM, remembers: bool = False) -> None:
        self.lm = lm
        self.name = lm.name
        self.fill = lm.fill
        self.token_offsets = lm.token_offsets
        self.rows = 0
        self._known: dict[tuple[str, int], float] | None = {} if remembers else None

    def token_log_probs(self, asked: Any) -> Any:
        """As the model counted for."""
        found = self.lm.token_log_probs(asked) if self._known is None else self._recalled(list(asked), self._known)
        self.rows += sum(map(len, found))
        return found

    def _recalled(self, asked: list[Any], known: dict[tuple[str, int], float]) -> list[Any]:
        lengths = map(len, self.token_offsets([text for text, _ in asked]))
        wanted = [
            (text, list(range(length)) if places is None else list(places))
            for (text, places), length in zip(asked, lengths, strict=True)
        ]
        new = [(text, [p for p in places if (text, p) not in known]) for text, places in wanted]
        new = [(text, places) for text, places in new if places]
        for (text, places), values in zip(new, self.lm.token_log_probs(new), strict=True):
            known.update(zip([(text, p) for p in places], values.tolist(), strict=True))
        return [np.array([known[text, p] for p in places]) for text, places in wanted]
