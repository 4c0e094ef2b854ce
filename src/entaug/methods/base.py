"""The base class of augmentation methods.

A method is a dataclass: its fields are its parameters, its `MethodInfo` describes it, and it implements ``_rewrite``
(one sentence) or ``_rewrite_batch`` (several, for methods with a model). `entaug.methods.run` handles random
streams, duplicates, further attempts, filters, counts, ids and provenance.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, ClassVar, Self

from annotated_types import Interval

from entaug._version import __version__
from entaug.backends.component import Component
from entaug.backends.language_check import check_languages
from entaug.config.params import PositiveInt
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.filters import Filter, apply_filters, create_filters
from entaug.filters.label_guard import LabelGuard
from entaug.methods.run import Run
from entaug.methods.types import (
    NO_CANDIDATE,
    NOT_SEEN,
    MethodInfo,
    OutputTarget,
    Rejection,
    Request,
    RunStatistics,
    rejection_for,
)
from entaug.teacher import Relabeller, create_relabeller

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
_GUARDED_ATTEMPTS = 3


@dataclass(kw_only=True, eq=False)
class Augmenter(Component, abc.ABC):
    """Base class of all methods.

    Args:
        copies: the number of augmented sentences requested per source sentence.
        seed: the random seed; the seed, the sentence and the number of the copy determine every random choice.
        max_attempts: the maximum number of candidates generated to obtain one new sentence that passes the filters;
            with the label guard, which refuses many, three times as many (unless it is 1).
        filters: filters that augmented sentences must pass: names with optional parameters, joined by ``+``
            (``validity+fluency:margin=1``), a `entaug.filters.Filter`, or several; see ``entaug list filters``.
        teacher: a teacher that checks and completes the labels of augmented sentences before they are filtered: the
            name or folder of a tagger with optional parameters (``ensemble:labels=mean``), or a
            `entaug.teacher.Relabeller`; none for no teacher.
        guard: whether the label guard refuses sentences with unlabelled names or wrong labels (see
            `entaug.filters.label_guard.LabelGuard`); by default only where a model chooses words. It comes after the
            teacher, which may label the names, and before the filters.

    Attributes:
        statistics_: the counts of the latest run (`RunStatistics`).
        progress: callback during the training of a model, with the finished steps, the total and the loss; or None.

    Example:
        >>> from entaug.methods import create_augmenter
        >>> augmenter = create_augmenter("mr", copies=2, seed=13)
        >>> isinstance(augmenter, Augmenter), augmenter.copies
        (True, 2)
    """

    copies: Annotated[int, Interval(ge=1, le=10_000)] = 1
    seed: int = 0
    max_attempts: PositiveInt = 10
    filters: str | Filter | Sequence[str | Filter] | None = None
    teacher: str | Relabeller | None = None
    guard: bool | None = None
    filters_: list[Filter] = field(init=False, repr=False)
    teacher_: Relabeller | None = field(init=False, repr=False)

    info: ClassVar[MethodInfo]
    window_size: ClassVar[int] = 64
    """The number of source sentences processed in one batch; results do not depend on it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "info" in vars(cls):
            cls.name = cls.info.name

    def __post_init__(self) -> None:
        self.progress: Callable[[int, int, float], None] | None = None
        self.existing_ids: set[str] = set()
        self._filters_given: object = _NOTHING
        self._teacher_given: object = _NOTHING
        super().__post_init__()

    def validate(self) -> None:
        """See `entaug.config.params.Configurable.validate`."""
        super().validate()
        create_relabeller(self.teacher)
        for filter_ in create_filters(self.filters):
            if self.info.unconditioned and filter_.needs_source:
                raise ParameterError(
                    f"{self.name} generates sentences without a source, which the filter {filter_.name} needs",
                    remedy=filter_.without_source,
                )

    # -------------------------------------------------------------------------------------------------- for subclasses

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        """Fit the method to the training corpus, in one pass."""

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        """Generate one new version of a sentence."""
        raise NotImplementedError

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        """Generate a new version for each request; methods with a model override this to use batches."""
        return [self._rewrite(request.sentence, request.rng) for request in requests]

    # ------------------------------------------------------------------------------------------------------- for users

    def notes(self) -> list[str]:
        """Return notes on the fitted corpus for the user, also those of its models, filters and teacher.

        Returns:
            Lines of text.
        """
        parts = (self, *getattr(self, "filters_", ()), getattr(self, "teacher_", None))
        return list(dict.fromkeys(note for part in parts if part is not None for note in part.model_notes()))

    def advice(self, statistics: RunStatistics) -> list[str]:
        """Return notes on the augmented sentences for the user.

        Args:
            statistics: the counts of a run.

        Returns:
            Lines of text.
        """
        del statistics
        return []

    @property
    def signature(self) -> str:
        """Method, parameters and version, as in provenance, with the full names of loaded backends."""
        params = self.get_params(loaded=True)
        if params["teacher"] is None:  # a parameter that most runs do not have
            del params["teacher"]
        del params["guard"]  # among the filters
        for parameter in self._parameters():
            if parameter.metadata.get("only_if_set") and getattr(self, parameter.name) == parameter.default:
                params.pop(parameter.name, None)
        values = "|".join(f"{name}={value}" for name, value in params.items())
        return f"{self.name}|{values}|entaug={__version__}"

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Filter | Relabeller):
            return value.signature
        return super()._plain(name, value) if value != [] else None

    @property
    def uses_guard(self) -> bool:
        """Whether the label guard is on."""
        return self.info.writes_words if self.guard is None else self.guard

    @property
    def guard_(self) -> LabelGuard | None:
        """The label guard, once it is loaded; None if it is off."""
        first = self.filters_[0] if self.uses_guard else None
        return first if isinstance(first, LabelGuard) else None

    def load(self) -> Self:
        """See `Component.load`: also creates teacher and filters, which are not fitted yet."""
        if (self.filters, self.guard) != self._filters_given:
            guard = [LabelGuard()] if self.uses_guard else []
            given = create_filters(self.filters)
            self._load_models({"filters": lambda: [filter_.load() for filter_ in given]})
            self.filters_ = [*(filter_.load() for filter_ in guard), *given]
            self._filters_given, self._is_fitted = (self.filters, self.guard), False
        if self.teacher != self._teacher_given:
            self.teacher_ = create_relabeller(self.teacher)
            self._teacher_given, self._is_fitted = self.teacher, False
        if self.teacher_ is not None:
            self.teacher_.load()
        return super().load()

    def fit(self, corpus: Iterable[Sentence]) -> Self:
        """Fit the method to the training sentences (never to dev or test sentences).

        Args:
            corpus: the sentences; read once.

        Returns:
            This augmenter.

        Raises:
            ParameterError: a parameter has an invalid value.
            InputError: the corpus has no mentions, nothing that the method can use, or a language that its model does
                not serve.
        """
        self.load()
        source, infix, info = source_of(corpus), self.id_infix, self.info
        self.existing_ids = set()
        mentions = with_mentions = unsupported = 0

        def usable() -> Iterator[Sentence]:
            nonlocal mentions, with_mentions, unsupported
            for sentence in check_languages(corpus, self._models(), source):
                if sentence.mentions:
                    mentions += len(sentence.mentions)
                    with_mentions += 1
                if sentence.id is not None and infix in sentence.id:
                    self.existing_ids.add(sentence.id)
                if rejection_for(sentence, info):
                    unsupported += 1
                else:
                    yield sentence

        sentences: Iterable[Sentence] = usable()
        try:
            if self.filters_ or self.teacher_:
                sentences = list(sentences)
                for part in (self.teacher_, *self.filters_):
                    if part:
                        part.fit(sentences)
            self._fit(sentences)
        except InputError as error:
            error.path = error.path or source
            raise
        for _ in sentences:  # a method may not have read the corpus to its end
            pass
        if info.needs_mentions and not mentions:
            remedy = "check the tag column"
            raise InputError(f"the corpus has no mentions, which {self.name} needs", path=source, remedy=remedy)
        if unsupported and unsupported == with_mentions:
            kinds = [kind for kind in ("nested", "discontinuous") if not getattr(info, kind)]
            raise InputError(
                f"every sentence with mentions has {' or '.join(kinds)} mentions, which {self.name} does not support",
                path=source,
                remedy="use another method, see: entaug list methods",
            )
        self._is_fitted = True
        return self

    def hold_out(self, sentences: Iterable[Sentence]) -> bool:
        """Name the dev and test sentences, before `fit`, for methods that leave out what occurs in them.

        Args:
            sentences: the sentences; read only by a method that uses them.

        Returns:
            Whether the method uses them.
        """
        del sentences
        return False

    def augment(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Generate augmented sentences.

        Args:
            corpus: the training sentences; read once, streamed.

        Yields:
            At most `copies` new sentences per source, in the order of the sources, each with a unique id and its
            provenance.

        Raises:
            ParameterError: a parameter has an invalid value, or the method must be fitted first.
        """
        yield from self.run().sentences(corpus)

    def run(
        self, *, target: OutputTarget | None = None, excluded: Callable[[int, str | None], bool] | None = None
    ) -> Run:
        """Create a run, for callers that need all outcomes or continue an earlier run.

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
        """Load the backends and check that the method is fitted, if it needs fitting.

        Raises:
            ParameterError: a parameter has an invalid value, or the method must be fitted first.
        """
        self.load()
        if (self.info.needs_fit or self.filters_ or self.teacher_) and not self.is_fitted:
            raise ParameterError(f"{self.name} is not fitted", remedy="call fit(corpus) first")

    # -------------------------------------------------------------------------------------------------------- for runs

    @property
    def attempts(self) -> int:
        """The maximum number of drafts for a copy; with ``p=0`` all drafts would be equal."""
        if getattr(self, "p", None) == 0:
            return 1
        return self.max_attempts * (_GUARDED_ATTEMPTS if self.uses_guard and self.max_attempts > 1 else 1)

    def copies_of(self, source: Sentence) -> int:
        """Return the number of augmented sentences requested for a source sentence.

        Args:
            source: the source.

        Returns:
            The number; `copies`, unless the method decides for each source.
        """
        del source
        return self.copies

    @property
    def id_infix(self) -> str:
        """The part that the ids of all sentences of this method and seed share."""
        return f"/{self.name}-{self.seed}-"

    @property
    def uses_models(self) -> bool:
        """See `entaug.backends.component.Component`; those of filters and teacher included."""
        return super().uses_models or self.teacher_ is not None or any(f.uses_models for f in self.filters_)

    @property
    def kinds_by_default(self) -> set[str]:
        """See `entaug.backends.component.Component`; those of guard, filters and teacher included."""
        guard = [LabelGuard()] if self.uses_guard else []
        parts = [*guard, *create_filters(self.filters), create_relabeller(self.teacher)]
        return super().kinds_by_default.union(*(part.kinds_by_default for part in parts if part is not None))

    @property
    def has_teacher(self) -> bool:
        """Whether augmented sentences are relabelled."""
        return getattr(self, "teacher_", None) is not None

    @property
    def has_filters(self) -> bool:
        """Whether augmented sentences are filtered."""
        return bool(getattr(self, "filters_", ()))

    def draft(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        """Generate a new version of a sentence for each request.

        Args:
            requests: the sources with their random streams.

        Returns:
            For each request a sentence without id and provenance, or a rejection.
        """
        return self._rewrite_batch(requests)

    def apply_teacher(
        self, drafts: Sequence[Sentence | Rejection], sources: Sequence[Sentence]
    ) -> list[tuple[Sentence | Rejection, Sentence | None]]:
        """Relabel drafts.

        Args:
            drafts: results of `draft`.
            sources: their sources.

        Returns:
            The drafts, those that the teacher rejects as `Rejection` with the sentence.
        """
        results: list[tuple[Sentence | Rejection, Sentence | None]] = [(draft, None) for draft in drafts]
        made = [
            (i, _own_fields(draft, sources[i])) for i, draft in enumerate(drafts) if not isinstance(draft, Rejection)
        ]
        assert self.teacher_ is not None
        for (i, _), relabelled in zip(made, self.teacher_.relabel([draft for _, draft in made]), strict=True):
            sentence, reason = relabelled
            results[i] = (sentence, None) if reason is None else (Rejection(reason), sentence)
        return results

    def apply_filters(
        self, drafts: Sequence[Sentence | Rejection], sources: Sequence[Sentence]
    ) -> list[tuple[Sentence | Rejection, Sentence | None]]:
        """Filter drafts.

        Args:
            drafts: results of `draft`.
            sources: their sources.

        Returns:
            The drafts, those that a filter rejects as `Rejection` with the sentence.
        """
        results: list[tuple[Sentence | Rejection, Sentence | None]] = [(draft, None) for draft in drafts]
        made = [(i, draft) for i, draft in enumerate(drafts) if not isinstance(draft, Rejection)]
        known = [None if self.info.unconditioned else sources[i] for i, _ in made]
        reasons = apply_filters(self.filters_, [sentence for _, sentence in made], known)
        for (i, sentence), reason in zip(made, reasons, strict=True):
            if reason is not None:
                results[i] = Rejection(reason), sentence
        return results


def source_of(corpus: object) -> str | None:
    """Return the origin of a corpus, for messages."""
    return getattr(corpus, "source", None)


def _own_fields(draft: Sentence, source: Sentence) -> Sentence:
    """Return a draft without the fields that an edit takes over from its source and that do not hold for it."""
    changes: dict[str, Any] = {}
    if draft.provenance is source.provenance and source.provenance is not None:
        changes["provenance"] = None
    if draft.layout is source.layout and source.layout:
        changes["layout"] = {}
    return draft.with_(**changes) if changes else draft
