"""The base class of filters, and their application in order."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from entaug.component import Component
from entaug.data import Sentence
from entaug.errors import InputError, ParameterError

__all__ = ["Filter", "apply_filters"]


@dataclass(kw_only=True, eq=False)
class Filter(Component, abc.ABC):
    """Base of the filters. A subclass implements `_judge`, and what it needs of `_check`, `_load` and `_fit`.

    A decision depends on the sentence, its source and the training sentences alone, never on the other sentences of the
    same call: so what a method makes depends neither on batches nor on what was made before.
    """

    summary: ClassVar[str]
    """What the filter keeps, on one line."""
    reasons: ClassVar[tuple[str, ...]]
    """All reasons for which it rejects sentences."""
    without_source: ClassVar[str] = "leave that filter out"
    """What to do where it needs sources and there are none."""

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _fit(self, gold: Sequence[Sentence]) -> None:
        """Learn from the training sentences."""

    @abc.abstractmethod
    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        """For each sentence one of `reasons`, or None where it is kept."""

    # ------------------------------------------------------------------------------------------------------- for users

    @property
    def needs_source(self) -> bool:
        """Whether sentences without a source cannot be judged."""
        return False

    @property
    def spec(self) -> str:
        """The filter and its parameters in the form that `entaug.filters.create_filters` reads."""
        return self._spec(loaded=False)

    @property
    def signature(self) -> str:
        """The filter and its parameters as they stand in provenance: as `spec`, a loaded backend by its full name."""
        return self._spec(loaded=True)

    def _spec(self, *, loaded: bool) -> str:
        values = {name: value for name, value in self.get_params(loaded=loaded).items() if value is not None}
        texts = [f"{name}={str(v).lower() if isinstance(v, bool) else v}" for name, v in values.items()]
        return f"{self.name}:{','.join(texts)}" if texts else self.name

    def fit(self, gold: Sequence[Sentence]) -> Self:
        """Learn from the training sentences.

        Args:
            gold: the sentences.

        Returns:
            This filter.

        Raises:
            InputError: they lack something that the filter needs.
        """
        self.load()
        self._fit(gold)
        self._is_fitted = True
        return self

    def judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        """Decide which sentences to reject.

        Args:
            sentences: augmented sentences.
            sources: for each the sentence that it was made from; None where there is none.

        Returns:
            For each sentence one of `reasons`; None where it is kept.

        Raises:
            ParameterError: the filter is not fitted.
            InputError: a sentence has no source, and this filter needs it.
        """
        if not self.is_fitted:
            raise ParameterError(f"{self.name} has not seen the training sentences", remedy="call fit(gold) first")
        if len(sentences) != len(sources):
            raise ParameterError(f"{len(sources)} sources for {len(sentences)} sentences")
        if self.needs_source and None in sources:
            raise InputError(f"a sentence has no source, and {self.name} compares with it", remedy=self.without_source)
        return self._judge(sentences, sources) if sentences else []


def apply_filters(
    filters: Sequence[Filter], sentences: Sequence[Sentence], sources: Sequence[Sentence | None]
) -> list[str | None]:
    """Apply several filters in order; a sentence that one rejects is not given to the next.

    Args:
        filters: fitted filters.
        sentences: see `Filter.judge`.
        sources: see `Filter.judge`.

    Returns:
        For each sentence ``"FILTER: REASON"`` of the first filter that rejects it; None where all keep it.

    Example:
        >>> from entaug.filters import create_filters
        >>> source, new = Sentence("Rome burns".split()), Sentence("rome burns".split())
        >>> filters = [filter_.fit([source]) for filter_ in create_filters("validity+duplicates")]
        >>> apply_filters(filters, [new], [source])
        ['duplicates: reads as its source']
    """
    results: list[str | None] = [None] * len(sentences)
    for filter_ in filters:
        kept = [i for i, rejected in enumerate(results) if rejected is None]
        if not kept:
            break
        reasons = filter_.judge([sentences[i] for i in kept], [sources[i] for i in kept])
        for i, reason in zip(kept, reasons, strict=True):
            if reason is not None:
                results[i] = f"{filter_.name}: {reason}"
    return results
