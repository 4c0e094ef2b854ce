"""Protocols of backends that can do more than those of `entaug.backends.protocols`; methods use it where they can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from entaug.backends.config import DecodingConfig, TrainingConfig, TrainingProgress
from entaug.backends.protocols import Generator, Lexicon, TextPairs

__all__ = ["MultilingualGenerator", "SenseLexicon"]


@runtime_checkable
class MultilingualGenerator(Generator, Protocol):
    """A generator that is told the language of each text, where its model has tokens for languages (mBART)."""

    @property
    def languages_(self) -> Any:
        """The language codes of the model (empty if it has none), and the default one."""
        ...

    def fit(
        self,
        pairs: TextPairs,
        config: TrainingConfig = ...,
        *,
        new_tokens: Mapping[str, str] | None = None,
        checkpoint_dir: Path | None = None,
        progress: TrainingProgress | None = None,
        languages: Sequence[str | None] | None = None,
    ) -> Self:
        """See `Generator.fit`.

        Args:
            pairs: see `Generator.fit`.
            config: see `Generator.fit`.
            new_tokens: see `Generator.fit`.
            checkpoint_dir: see `Generator.fit`.
            progress: see `Generator.fit`.
            languages: the language of each pair, as an ISO 639-1 code or the model's own; None for the default.

        Raises:
            ParameterError: the model does not know a language.
        """
        ...

    def generate(
        self,
        inputs: Sequence[str],
        config: DecodingConfig = ...,
        seeds: Sequence[int] | None = None,
        required: Sequence[Sequence[Sequence[str]]] | None = None,
        forbidden: Sequence[str] = (),
        *,
        languages: Sequence[str | None] | None = None,
    ) -> list[list[str]]:
        """See `Generator.generate`.

        Args:
            inputs: see `Generator.generate`.
            config: see `Generator.generate`.
            seeds: see `Generator.generate`.
            required: see `Generator.generate`.
            forbidden: see `Generator.generate`.
            languages: the language of each text, as in `fit`.
        """
        ...


@runtime_checkable
class SenseLexicon(Lexicon, Protocol):
    """A lexicon that also lists the synonyms of all senses of a word."""

    def synonyms_of_any_sense(self, word: str) -> tuple[tuple[str, ...], ...]:
        """Look up the synonyms of all senses and parts of speech, in the form in which the lexicon lists them.

        Args:
            word: a word of a sentence.

        Returns:
            The synonyms in alphabetical order, each as one or more words; never the word itself.
        """
        ...
