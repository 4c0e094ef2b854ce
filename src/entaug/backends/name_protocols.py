"""Protocols of what tells names from other words: the usual case of words, and entities with parts of speech."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

__all__ = ["EntityRecognizer", "Recognition", "WordCases"]


@runtime_checkable
class WordCases(Protocol):
    """The case in which words of a language are usually written within a sentence."""

    @property
    def name(self) -> str:
        """The name with all that results depend on, for provenance."""
        ...

    @property
    def language(self) -> str:
        """The ISO 639-1 code of the language."""
        ...

    def usual_case(self, word: str) -> str | None:
        """Look up a word; looking it up again is cheap.

        Args:
            word: a word in any case.

        Returns:
            The word in its usual case; None if it is unknown, or has no usual case.
        """
        ...


class Recognition(NamedTuple):
    """Entities and parts of speech of a sentence.

    Args:
        entities: the first word of each entity, the word after its last one, and its kind.
        pos: for each word its universal part-of-speech tag.
    """

    entities: tuple[tuple[int, int, str], ...]
    pos: tuple[str, ...]


@runtime_checkable
class EntityRecognizer(Protocol):
    """A recogniser of entities, of kinds of its own, in tokenised sentences."""

    @property
    def name(self) -> str:
        """The name with all that results depend on, for provenance."""
        ...

    @property
    def language(self) -> str:
        """The ISO 639-1 code of the language."""
        ...

    def recognize(self, sentences: Sequence[Sequence[str]]) -> list[Recognition]:
        """Recognise the entities of sentences.

        Args:
            sentences: the words of each sentence.

        Returns:
            The result for each sentence, over exactly its words.
        """
        ...
