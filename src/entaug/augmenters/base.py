"""The base class of augmentation methods.

A method is a dataclass: its fields are its parameters, its `MethodInfo` describes it, and it implements ``_rewrite`` (one
sentence) or ``_rewrite_batch`` (several, for methods with a model). Random streams, duplicates, further attempts,
filters, counts, ids and provenance are the task of `entaug.augmenters.run`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Self

from entaug._version import __version__
from entaug.augmenters.contracts import (
    NO_CANDIDATE,
    NOT_SEEN,
    MethodInfo,
    OutputTarget,
    Rejection,
    Request,
    RunStatistics,
    rejection_for,
)
from entaug.augmenters.run import Run
from entaug.component import Component
from entaug.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters import Filter, apply_filters, create_filters
from entaug.params import PositiveInt

__all__ = [
    "NOT_SEEN",
    "NO_CANDIDATE",
    "Augmenter",
    "MethodInfo",
    "Rejection",
    "Request",
    "source_of",
]

_NOTHING = object()


@dataclass(kw_only=True, eq=False)
class Augmenter(Component, abc.ABC):
    """Base of all methods.

    Args:
        copies: the number of augmented sentences requested per source sentence.
        seed: any integer; together with the sentence and the number of the copy it determines every random choice.
        max_attempts: the number of drafts requested until one is new and passes the filters.
        filters: filters that augmented sentences must pass, by name, with parameters behind a colon, several joined by
            ``+`` (``validity+fluency:margin=1``); or a `entaug.filters.Filter`, or a sequence of these. All filters:
            ``entaug filters``.

    Attributes:
        statistics_: the counts of the latest run (`RunStatistics`).
        progress: called with the steps done, all steps and the loss while a model is trained; None for no calls.

    Example:
        >>> from entaug.augmenters import create_augmenter
        >>> augmenter = create_augmenter("mr", copies=2, seed=13)
        >>> isinstance(augmenter, Augmenter), augmenter.copies
        (True, 2)
    """

    copies: PositiveInt = 1
    seed: int = 0
    max_attempts: PositiveInt = 10
    filters: str | Filter | Sequence[str | Filter] | None = None

    info: ClassVar[MethodInfo]
    window_size: ClassVar[int] = 64
    """The number of sources processed together; results do not depend on it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "info" in vars(cls):
            cls.name = cls.info.name

    def __post_init__(self) -> None:
        self.progress: Callable[[int, int, float], None] | None = None
        self.existing_ids: set[str] = set()
        self._filters_given: object = _NOTHING
        super().__post_init__()

    def validate(self) -> None:
        """See `entaug.params.Configurable.validate`."""
        super().validate()
        for filter_ in create_filters(self.filters):
            if self.info.unconditioned and filter_.needs_source:
                raise ParameterError(
                    f"{self.name} writes without a source, so {filter_.name} has no source to compare with",
                    remedy=filter_.without_source,
                )

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        """Learn from the training corpus, in one pass."""

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        """Draw one new version of a sentence."""
        raise NotImplementedError

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        """Draw a new version for each request; methods with a model override this and batch."""
        return [self._rewrite(request.sentence, request.rng) for request in requests]

    # ------------------------------------------------------------------------------------------------------- for users

    def notes(self) -> list[str]:
        """Return what a user should know about the fitted corpus.

        Returns:
            Lines of text.
        """
        return []

    def advice(self, statistics: RunStatistics) -> list[str]:
        """Return what a user should know about the augmented sentences.

        Args:
            statistics: the counts of a run.

        Returns:
            Lines of text.
        """
        del statistics
        return []

    @property
    def signature(self) -> str:
        """Method, parameters and version, as they stand in provenance; a loaded backend by its full name."""
        values = "|".join(f"{name}={value}" for name, value in self.get_params(loaded=True).items())
        return f"{self.name}|{values}|entaug={__version__}"

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Filter):
            return value.signature
        return super()._plain(name, value) if value != [] else None

    def load(self) -> Self:
        """See `entaug.component.Component.load`; new filters have yet to see the corpus."""
        if self.filters != self._filters_given:
            self.filters_ = [filter_.load() for filter_ in create_filters(self.filters)]
            self._filters_given, self._is_fitted = self.filters, False
        return super().load()

    def fit(self, corpus: Iterable[Sentence]) -> Self:
        """Learn from the training sentences (never from dev or test sentences).

        Args:
            corpus: the sentences; read once.

        Returns:
            This augmenter.

        Raises:
            ParameterError: a parameter has an invalid value.
            InputError: the corpus has no mention, or nothing the method can use.
        """
        self.load()
        survey = _Survey(corpus, self)
        if self.filters_:
            gold = list(survey)
            for filter_ in self.filters_:
                filter_.fit(gold)
            self._fit(gold)
        else:
            self._fit(survey)
        for _ in survey:  # a method that learns nothing has not read the corpus
            pass
        if self.info.needs_mentions and not survey.mentions:
            raise InputError(
                f"no mention in the corpus, and {self.name} needs some",
                path=survey.source,
                remedy="check the tag column",
            )
        if survey.rejected and survey.rejected == survey.with_mentions:
            kinds = [kind for kind in ("nested", "discontinuous") if not getattr(self.info, kind)]
            raise InputError(
                f"every sentence with mentions has {' or '.join(kinds)} ones, and {self.name} cannot carry them",
                path=survey.source,
                remedy="use a method that can, see: entaug methods",
            )
        self.existing_ids = survey.existing_ids
        self._is_fitted = True
        return self

    def augment(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Make augmented sentences.

        Args:
            corpus: the training sentences; read once, streamed.

        Yields:
            At most `copies` new sentences per source, in the order of the sources, each with an id of its own and its
            provenance.

        Raises:
            ParameterError: a parameter has an invalid value, or the method must be fitted first.
        """
        yield from self.run().sentences(corpus)

    def run(
        self, *, target: OutputTarget | None = None, excluded: Callable[[int, str | None], bool] | None = None
    ) -> Run:
        """Start a run, for callers that need all outcomes or continue an earlier run.

        Args:
            target: see `Run`.
            excluded: see `Run`.

        Returns:
            The run; its counts are this augmenter's ``statistics_``.

        Raises:
            ParameterError: a parameter has an invalid value, or the method must be fitted first.
        """
        self.check_ready()
        run = Run([self], target=target, excluded=excluded)
        self.statistics_ = run.statistics
        return run

    def check_ready(self) -> None:
        """Load the backends and check that the method is fitted where it must be.

        Raises:
            ParameterError: a parameter has an invalid value, or the method must be fitted first.
        """
        self.load()
        if (self.info.needs_fit or self.filters_) and not self.is_fitted:
            raise ParameterError(f"{self.name} has not seen the corpus", remedy="call fit(corpus) first")

    # -------------------------------------------------------------------------------------------------------- for runs

    @property
    def attempts(self) -> int:
        """The number of drafts requested for a copy at most; with ``p=0`` no draft differs from another."""
        return 1 if getattr(self, "p", None) == 0 else self.max_attempts

    @property
    def id_infix(self) -> str:
        """What the ids of all sentences that this method makes under its seed have in common."""
        return f"/{self.name}-{self.seed}-"

    @property
    def has_filters(self) -> bool:
        """Whether augmented sentences are filtered."""
        return bool(getattr(self, "filters_", ()))

    def draft(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        """Draw a new version of a sentence for each request.

        Args:
            requests: the sources with their random streams.

        Returns:
            For each request a sentence without id and provenance, or why there is none.
        """
        return self._rewrite_batch(requests)

    def apply_filters(
        self, drafts: Sequence[Sentence | Rejection], sources: Sequence[Sentence]
    ) -> list[Sentence | Rejection]:
        """Replace drafts that a filter rejects by the reason.

        Args:
            drafts: results of `draft`.
            sources: their sources.

        Returns:
            The drafts, rejected ones as `Rejection`.
        """
        results = list(drafts)
        made = [(i, draft) for i, draft in enumerate(results) if not isinstance(draft, Rejection)]
        known = [None if self.info.unconditioned else sources[i] for i, _ in made]
        reasons = apply_filters(self.filters_, [sentence for _, sentence in made], known)
        for (i, _), reason in zip(made, reasons, strict=True):
            if reason is not None:
                results[i] = Rejection(reason)
        return results


class _Survey(Iterable[Sentence]):
    """A corpus read once by `Augmenter.fit`: counts mentions, and leaves out sentences that the method cannot carry."""

    def __init__(self, corpus: Iterable[Sentence], augmenter: Augmenter) -> None:
        self.source = source_of(corpus)
        self.mentions = self.with_mentions = self.rejected = 0
        self.existing_ids: set[str] = set()
        self._info = augmenter.info
        self._id_infix = augmenter.id_infix
        self._sentences = iter(corpus)

    def __iter__(self) -> Iterator[Sentence]:
        for sentence in self._sentences:
            self.mentions += len(sentence.mentions)
            self.with_mentions += bool(sentence.mentions)
            if sentence.id is not None and self._id_infix in sentence.id:
                self.existing_ids.add(sentence.id)
            if rejection_for(sentence, self._info):
                self.rejected += 1
            else:
                yield sentence


def source_of(corpus: object) -> str | None:
    """Return where a corpus comes from, for messages.

    Args:
        corpus: sentences, perhaps with an attribute ``source``.

    Returns:
        The file or other source; None where it is unknown.
    """
    return getattr(corpus, "source", None)
