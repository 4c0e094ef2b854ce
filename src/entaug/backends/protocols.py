"""What methods ask of a backend, and a small deterministic fake of each for tests.

Plain Python at the boundary. Everything that costs is batched or cached behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

__all__ = ["FakeLexicon", "Lexicon", "cased_like"]


@runtime_checkable
class Lexicon(Protocol):
    """Words and their synonyms in one language."""

    @property
    def name(self) -> str:
        """What stands in provenance: enough to tell which data was used."""
        ...

    @property
    def language(self) -> str:
        """ISO 639-1 code."""
        ...

    def synonyms(self, word: str) -> tuple[tuple[str, ...], ...]:
        """What may stand in place of a token, each as one or more tokens.

        In the inflected form and casing of the token, the most usual first, never the token itself; empty where
        nothing fits. Cheap to ask for again.
        """
        ...


def cased_like(words: Iterable[str], model: str) -> tuple[str, ...]:
    """Words in the casing of a model: all upper, a capital first letter, or as they are.

    Example:
        >>> cased_like(["motion", "picture"], "Film"), cased_like(["film"], "MOVIE")
        (('Motion', 'picture'), ('FILM',))
    """
    words = tuple(words)
    if len(model) > 1 and model.isupper():
        return tuple(word.upper() for word in words)
    if model[:1].isupper():
        return (words[0][:1].upper() + words[0][1:], *words[1:])
    return words


class FakeLexicon:
    """A lexicon from a dictionary.

    Args:
        entries: for each lower-cased word its synonyms, words of one separated by a space.
        language: ISO 639-1 code.

    Example:
        >>> FakeLexicon({"film": ["movie"]}).synonyms("Film")
        (('Movie',),)
    """

    def __init__(self, entries: Mapping[str, Iterable[str]], language: str = "en") -> None:
        self._entries = {word: [synonym.split() for synonym in synonyms] for word, synonyms in entries.items()}
        self.language = language
        self.name = "fake"

    def synonyms(self, word: str) -> tuple[tuple[str, ...], ...]:
        """See `Lexicon.synonyms`."""
        found = (cased_like(words, word) for words in self._entries.get(word.lower(), ()))
        return tuple(words for words in found if words != (word,))
