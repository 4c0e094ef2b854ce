"""The base class of filters, and their application in order."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, ClassVar, Self

from entaug.backends.component import Component, naming_faults
from entaug.config.params import Check
from entaug.core.data import Sentence
from entaug.errors import EntaugError, InputError, ParameterError

HeldOut = Annotated[Sequence[Sentence], Check(lambda _: True, "sentences (on the command line: --held-out FILE)")]
"""A parameter for dev and test sentences."""


def content_digest(texts: Iterable[Sequence[str]]) -> str:
    """A digest of sentences or mentions, whatever their order and the place of their files, for signatures."""
    digest = blake2b(digest_size=8)
    for words in sorted(set(map(tuple, texts))):
        digest.update(("\0".join(words) + "\1").encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@dataclass(kw_only=True, eq=False)
class Filter(Component, abc.ABC):
    """Base class of filters. A subclass implements ``_judge`` and, if needed, ``_check``, ``_load`` and ``_fit``.

    A decision depends only on the sentence, its source and the training sentences, never on other sentences of the same
    call. The output of a method therefore does not depend on batching or on earlier outputs.
    """

    summary: ClassVar[str]
    """One-line description of the sentences that the filter keeps."""
    reasons: ClassVar[tuple[str, ...]]
    """All reasons for which the filter rejects sentences."""
    without_source: ClassVar[str] = "remove that filter"
    """The remedy in the error for a missing source."""

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _fit(self, gold: Sequence[Sentence]) -> None:
        """Fit the filter to the training sentences."""

    @abc.abstractmethod
    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        """Return for each sentence one of `reasons`, or None if it is kept."""

    def _option(self, kind: str) -> str:
        return f"`filters='{self.name}:{kind}=NAME'`"

    # ------------------------------------------------------------------------------------------------------- for users

    @property
    def needs_source(self) -> bool:
        """Whether every sentence needs a source."""
        return False

    @property
    def spec(self) -> str:
        """The filter and its parameters in the form that `entaug.filters.create_filters` reads."""
        return self._spec(loaded=False)

    @property
    def signature(self) -> str:
        """The filter and its parameters for provenance: like `spec`, but with the full name of a loaded backend."""
        return self._spec(loaded=True)

    def fit(self, gold: Sequence[Sentence]) -> Self:
        """Fit the filter to the training sentences.

        Args:
            gold: the sentences.

        Returns:
            This filter.

        Raises:
            InputError: the sentences lack something that the filter needs, or are in a language that its model does not
                serve.
        """
        self.load()
        self.check_languages(gold)
        with naming_faults(self, "filter"):
            self._fit(gold)
        self._is_fitted = True
        return self

    def judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        """Decide which sentences to reject.

        Args:
            sentences: augmented sentences.
            sources: the source of each sentence; None if it has none.

        Returns:
            For each sentence one of `reasons`; None if it is kept.

        Raises:
            ParameterError: the filter is not fitted.
            InputError: a sentence has no source, and this filter needs it.
        """
        if not self.is_fitted:
            raise ParameterError(f"{self.name} is not fitted", remedy="call fit(gold) first")
        if len(sentences) != len(sources):
            raise ParameterError(f"{len(sources)} sources for {len(sentences)} sentences")
        if self.needs_source and None in sources:
            raise InputError(
                f"a sentence has no source, which the filter {self.name} needs", remedy=self.without_source
            )
        if not sentences:
            return []
        with naming_faults(self, "filter"):
            reasons = self._judge(sentences, sources)
            remedy = "correct the filter, or report it to its authors"
            if len(reasons) != len(sentences):
                raise EntaugError(f"{len(reasons)} decisions for {len(sentences)} sentences", remedy=remedy)
            for reason in reasons:
                if not (reason is None or isinstance(reason, str)):
                    raise EntaugError(f"a decision must be a reason or None, not {reason!r}", remedy=remedy)
        return reasons


def apply_filters(
    filters: Sequence[Filter], sentences: Sequence[Sentence], sources: Sequence[Sentence | None]
) -> list[str | None]:
    """Apply several filters in order; rejected sentences are not passed to later filters."""
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
