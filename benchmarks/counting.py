"""What benchmarks of the masked language model share."""

from __future__ import annotations

from typing import Any

from entaug.backends.masked_lm import TransformersMaskedLM


class Counted:
    """A masked language model that counts the hidden places it was asked for."""

    def __init__(self, lm: TransformersMaskedLM) -> None:
        self.lm = lm
        self.name = lm.name
        self.fill = lm.fill
        self.pieces = lm.pieces
        self.rows = 0

    def token_log_probs(self, asked: Any) -> Any:
        """As the model counted for."""
        found = self.lm.token_log_probs(asked)
        self.rows += sum(map(len, found))
        return found
