"""The usual case of words, from the vocabulary of a tokenizer that distinguishes capitals."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import orjson

from entaug.errors import MissingModelError

_FILE = "tokenizer.json"
_SPACES = ("\u0120", "\u2581")  # the characters that stand for a space before a word
_UNKNOWN = 10**9
_CLEARLY = 2  # a form is usual if its place in the vocabulary is at most 1 / _CLEARLY of that of the lower-case form


class TokenizerWordCases:
    """The usual case of words, from the vocabulary of a byte-pair tokenizer."""

    # Byte-pair encoding adds tokens by their frequency in its training text (Sennrich et al. 2016), so the vocabulary
    # is a list of words by frequency, with capitals: in that of SmolLM2 " John" is number 2,322 and " john" number
    # 40,933.

    def __init__(self, folder: str | Path, language: str = "en") -> None:
        self.language = language
        self.name, self._cases = read_word_cases(Path(folder))

    def usual_case(self, word: str) -> str | None:
        return self._cases.get(word.lower())


@lru_cache(maxsize=4)
def read_word_cases(folder: Path) -> tuple[str, dict[str, str]]:
    """Read the usual case of words from a tokenizer."""
    file = folder / _FILE
    try:
        model = orjson.loads(file.read_bytes())["model"]
        vocabulary: dict[str, int] = model["vocab"] if model["type"] == "BPE" else {}
    except (OSError, ValueError, LookupError, TypeError):
        raise MissingModelError(
            "is missing or damaged", path=str(file), remedy="name a folder with the tokenizer of a language model"
        ) from None
    ranks = {token[1:]: rank for token, rank in vocabulary.items() if token[:1] in _SPACES and token[1:].isalpha()}
    if not ranks:
        raise MissingModelError(
            "has no list of words by frequency", path=str(file), remedy="name the tokenizer of a causal language model"
        )
    cases = {}
    for word in sorted({token.lower() for token in ranks}):
        lower = ranks.get(word, _UNKNOWN)
        cased, form = min((ranks.get(form, _UNKNOWN), form) for form in (word.capitalize(), word.upper()))
        if cased * _CLEARLY < lower:
            cases[word] = form
        elif lower < cased:
            cases[word] = word
    return f"{folder.name}-vocabulary-{len(vocabulary)}", cases
