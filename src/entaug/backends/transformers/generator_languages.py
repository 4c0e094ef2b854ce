"""The special tokens around a text that tell multilingual generators (mBART, M2M100, NLLB) its language."""

from __future__ import annotations

from typing import Any

from entaug.backends.translation.languages import find_code, is_first_token, language_tokens

__all__ = ["GeneratorLanguages"]


class GeneratorLanguages:
    """The languages of a generator, and the special tokens of a text in each."""

    def __init__(self, backend: Any) -> None:
        tokenizer = backend.tokenizer
        tokens = language_tokens(tokenizer)
        self.codes = sorted(tokens)
        self.default: str | None = str(tokenizer.src_lang) if tokens else None
        self._ids = {code: int(tokenizer.convert_tokens_to_ids(token)) for code, token in tokens.items()}
        self._is_first = is_first_token(tokenizer)
        self._usual = (backend.prefix_ids, backend.suffix_ids)

    def around(self, language: str | None) -> tuple[list[int], list[int]]:
        """Return the special tokens before and after a text."""
        prefix, suffix = self._usual
        if language is None or self.default is None:
            return prefix, suffix
        old, new = self._ids[self.default], self._ids[find_code(language, self.codes)]
        return [new if i == old else i for i in prefix], [new if i == old else i for i in suffix]

    def beginning(self, language: str | None, start_id: int) -> list[int]:
        """Return the tokens with which the decoder begins."""
        prefix, suffix = self.around(language)
        return suffix[-1:] if self._is_first and self.default is not None else [start_id, *prefix]
