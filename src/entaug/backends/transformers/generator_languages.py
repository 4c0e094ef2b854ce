"""The special tokens around a text that tell multilingual generators (mBART, M2M100, NLLB) its language."""

from __future__ import annotations

from typing import Any

from entaug.backends.translation.languages import find_code, is_first_token, language_tokens

__all__ = ["GeneratorLanguages"]


class GeneratorLanguages:
    """The languages of a generator, and the special tokens of a text in each.

    Args:
        backend: a backend with a tokenizer and its usual special tokens.

    Attributes:
        codes: the model's own codes of languages; empty if it has no such tokens.
        default: the language of texts for which none is given; None if there are no codes.
    """

    def __init__(self, backend: Any) -> None:
        tokenizer = backend.tokenizer
        tokens = language_tokens(tokenizer)
        self.codes = sorted(tokens)
        self.default: str | None = str(tokenizer.src_lang) if tokens else None
        self._ids = {code: int(tokenizer.convert_tokens_to_ids(token)) for code, token in tokens.items()}
        self._is_first = is_first_token(tokenizer)
        self._usual = (backend.prefix_ids, backend.suffix_ids)

    def around(self, language: str | None) -> tuple[list[int], list[int]]:
        """Return the special tokens before and after a text.

        Args:
            language: the language of the text, as an ISO 639-1 code or the model's own; None for the default.

        Raises:
            ParameterError: the model does not know the language.
        """
        prefix, suffix = self._usual
        if language is None or self.default is None:
            return prefix, suffix
        old, new = self._ids[self.default], self._ids[find_code(language, self.codes)]
        return [new if i == old else i for i in prefix], [new if i == old else i for i in suffix]

    def beginning(self, language: str | None, start_id: int) -> list[int]:
        """Return the tokens with which the decoder begins.

        Args:
            language: see `around`.
            start_id: the token with which the decoder of a model without languages begins.
        """
        prefix, suffix = self.around(language)
        return suffix[-1:] if self._is_first and self.default is not None else [start_id, *prefix]
