"""The base class of augmentation methods.

A method is a dataclass: its fields are its parameters, its `MethodInfo` describes it, and it implements ``_rewrite``
(one sentence) or ``_rewrite_batch`` (several, for methods with a model). `entaug.methods.base` handles random
streams, duplicates, further attempts, filters, counts, ids and provenance.
"""

from __future__ import annotations

import abc
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice, tee
from random import Random
from threading import RLock
from typing import Annotated, Any, ClassVar, Self

from annotated_types import Interval

from entaug._version import __version__
from entaug.backends.component import Component, code_digest, is_foreign, naming_faults
from entaug.backends.language_check import LoadedModel, check_languages
from entaug.config.params import PositiveInt
from entaug.config.presets import ONLY_IF_SET
from entaug.core.corpus import SentenceKeys
from entaug.core.data import Provenance, Sentence
from entaug.core.rng import Streams
from entaug.errors import EntaugError, InputError, LossError, ParameterError
from entaug.files.review import Review
from entaug.filters import Filter, apply_filters, create_filters
from entaug.filters.label_guard import LabelGuard
from entaug.methods.choice import CandidateScorer, create_scorer
from entaug.methods.types import (
    DUPLICATE,
    GOLD,
    LESS_LIKELY,
    NO_CANDIDATE,
    NOT_SEEN,
    REVIEWED,
    UNCHANGED,
    UNWRITABLE,
    Accepted,
    MethodInfo,
    OutputTarget,
    Rejected,
    Rejection,
    Request,
    RunStatistics,
    rejection_for,
)
from entaug.teacher.corrections import correct_augmented
from entaug.teacher.relabel import Relabeller, count_changes, create_relabeller

__all__ = ["NOT_SEEN", "NO_CANDIDATE", "Augmenter", "MethodInfo", "Rejection", "Request", "Run"]

_SOFT_LABELS = ("tag_probabilities", "relation_probabilities")  # the fields of soft labels in `Sentence.layout`


@dataclass(slots=True, eq=False)
class Draft:
    """The state of one requested augmented sentence."""

    source: Sentence
    rng: Random
    copy: int
    siblings: set[Any]
    gold: set[int]
    attempts: int = 0
    has_ended: bool = False
    sentence: Sentence | None = None
    candidates: dict[Any, Sentence] = field(default_factory=dict)  # by content; with a choice among several
    rejections: list[tuple[Sentence | None, Rejection]] = field(default_factory=list)

    def request(self) -> Request:
        """The request for the next attempt."""
        self.attempts += 1
        return Request(self.source, self.rng, self.copy, self.attempts - 1)

    def compare(self, sentence: Sentence) -> Rejection | None:
        """Check that a sentence is new."""
        content = _content(sentence)
        if content == _content(self.source):
            return UNCHANGED
        if content in self.siblings or content in self.candidates:
            return DUPLICATE
        return GOLD if sentence.fingerprint_number() in self.gold else None

    def take(self, result: Sentence | Rejection, *, is_candidate: bool) -> Rejection | None:
        """Accept a result, or add it to the candidates, if it is new."""
        if isinstance(result, Rejection):
            return result
        rejection = self.compare(result)
        if rejection is None and is_candidate:
            self.candidates[_content(result)] = result
        elif rejection is None:
            self._accept(result)
        return rejection

    def choose(self, scores: Sequence[float]) -> None:
        """Accept the candidate with the highest score that no other copy is; of equal ones the first."""
        ranked = sorted(zip(scores, self.candidates.values(), strict=True), key=lambda scored: -scored[0])
        for score, sentence in ranked:
            if score == -math.inf:
                self.rejections.append((sentence, LESS_LIKELY))
                return
            if _content(sentence) not in self.siblings:
                made = sentence.provenance if sentence.provenance is not self.source.provenance else None
                of_choice = {"candidates": len(ranked), "score": score}
                self._accept(sentence.with_(provenance=(made or Provenance()).with_details(**of_choice)))
                return
        if ranked:
            self.rejections.append((None, DUPLICATE))

    def _accept(self, sentence: Sentence) -> None:
        self.siblings.add(_content(sentence))
        self.sentence = sentence


def _content(sentence: Sentence) -> tuple[Any, Any]:
    return sentence.tokens, sentence.mentions


# Models and parsers keep state between calls, and several augmenters may share one: threads take turns.
_computing = RLock()


def _free_lock() -> None:
    """Free the lock in a forked process, whose other threads are gone."""
    global _computing  # noqa: PLW0603
    _computing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_lock)


def draw(method: Augmenter, drafts: Iterable[Draft]) -> None:
    """Generate drafts until each is accepted, finally rejected, or out of attempts."""
    pending = []
    for draft in drafts:
        rejection = rejection_for(draft.source, method.info)
        if rejection:
            draft.rejections.append((None, rejection))
        else:
            pending.append(draft)
    chosen = pending if method.candidates > 1 else []
    limit = method.attempts + method.candidates - 1
    while pending:
        drawn = _drawn_ahead(pending, method.candidates, limit) if method.draws_ahead else pending
        with _computing:
            requests = [draft.request() for draft in drawn]
            results = _checked_results(method, requests) if method.is_foreign else list(method.draft(requests))
            refused: list[Sentence | None] = [None] * len(drawn)
            for check in [_relabelled] * (method.teacher_ is not None) + [_filtered] * bool(method.filters_):
                # Only new sentences are relabelled and filtered.
                results = [
                    r if isinstance(r, Rejection) else d.compare(r) or r for d, r in zip(drawn, results, strict=True)
                ]
                made = {i: result for i, result in enumerate(results) if not isinstance(result, Rejection)}
                checked = check(method, [*made.values()], [drawn[i].source for i in made])
                for i, (sentence, fault) in zip(made, checked, strict=True):
                    results[i] = sentence if fault is None else Rejection(fault)
                    refused[i] = None if fault is None else sentence
        for draft, result, refusal in zip(drawn, results, refused, strict=True):
            if draft.has_ended:
                continue
            reason = draft.take(result, is_candidate=bool(chosen))
            if reason is not None and (refusal is not None or not draft.candidates):
                draft.rejections.append((refusal, reason))
            is_complete = draft.sentence is not None or len(draft.candidates) == method.candidates
            draft.has_ended = is_complete or (reason is not None and reason.final)
        pending = [draft for draft in pending if not draft.has_ended and draft.attempts < limit]
    if chosen:
        with _computing:
            scores = method.scorer_.scores([(draft.source, list(draft.candidates.values())) for draft in chosen])
        for draft, of_draft in zip(chosen, scores, strict=True):
            draft.choose(of_draft)


def _checked_results(method: Augmenter, requests: Sequence[Request]) -> list[Sentence | Rejection]:
    """A method of another package returns a sentence or a rejection for each request."""
    remedy = "correct the method, or report it to its authors"
    with naming_faults(method, "method"):
        results: list[Any] = list(method.draft(requests))
        if len(results) != len(requests):
            raise EntaugError(f"{len(results)} results for {len(requests)} requests", remedy=remedy)
        for request, result in zip(requests, results, strict=True):
            if not isinstance(result, Sentence | Rejection):
                message = f"returned {type(result).__name__}, not a Sentence or a Rejection, for the sentence "
                raise EntaugError(message + request.sentence.key, remedy=remedy)
    return results


def _relabelled(
    method: Augmenter, drafts: Sequence[Sentence], sources: Sequence[Sentence]
) -> Iterable[tuple[Sentence, str | None]]:
    """New sentences with the labels that the teacher gives them, and why it refuses some."""
    assert method.teacher_ is not None
    return method.teacher_.relabel([_own_fields(*pair) for pair in zip(drafts, sources, strict=True)])


def _filtered(
    method: Augmenter, drafts: Sequence[Sentence], sources: Sequence[Sentence]
) -> Iterable[tuple[Sentence, str | None]]:
    """New sentences, and why the filters refuse some."""
    known = [None] * len(drafts) if method.info.unconditioned else sources
    return zip(drafts, apply_filters(method.filters_, drafts, known), strict=True)


def _drawn_ahead(pending: Sequence[Draft], num_candidates: int, limit: int) -> list[Draft]:
    """Drafts as often as they need an attempt in any case, one round after the other."""
    # A model that writes takes many small steps for a batch, however large it is.
    counts = [min(num_candidates - len(draft.candidates), limit - draft.attempts) for draft in pending]
    return [d for n in range(max(counts)) for d, count in zip(pending, counts, strict=True) if n < count]


def augmenters_of(value: Any) -> tuple[Augmenter, ...]:
    """The augmenter alone, or those of a combination; what is none, such as the class of a method, is refused."""
    if isinstance(value, type) or not hasattr(value, "augmenters"):
        what, call = repr(value), "entaug.create_augmenter(name)"
        if isinstance(value, type):
            what, call = f"the class {value.__name__}", f"{value.__name__}()"
        raise ParameterError(f"expected an augmenter, not {what}", remedy=f"create one: {call}")
    return tuple(value.augmenters)


def window_of(methods: Iterable[Augmenter]) -> int:
    """The number of source sentences processed in one batch: fewer of them if each has several copies."""
    # Halved, so that it divides what a checkpoint ends at, and a resumed run asks models for the same batches.
    return min(max(1, method.window_size >> ((method.copies or 1) - 1).bit_length()) for method in methods)


class Run:
    """One pass of one or more methods over a corpus."""

    # What a source gives depends on nothing but the source and its key (`results`), so any process may compute it, in
    # any order. Whether it repeats what another source gave is decided in order, by `RunStatistics.accept`.

    def __init__(
        self, methods: Sequence[Augmenter], *, target: OutputTarget | None = None, review: Review | None = None
    ) -> None:
        self.statistics = RunStatistics()
        self._target = target
        self._review = review
        self._methods = [_MethodRun(method) for method in methods]
        self._window_size = window_of(methods)

    def results(
        self, sources: Iterable[Sentence], keys: Iterable[str]
    ) -> Iterator[tuple[Sentence, int, list[Accepted | Rejected]]]:
        """Yield sources, each with the number of sentences requested of it and what was made."""
        sources, keys = iter(sources), iter(keys)
        while window := list(islice(sources, self._window_size)):
            keys_of_window = list(islice(keys, len(window)))
            drafts = [run.drafts(window, keys_of_window) for run in self._methods]
            for i, (source, key) in enumerate(zip(window, keys_of_window, strict=True)):
                results: list[Accepted | Rejected] = []
                requested = 0
                for run, of_run in zip(self._methods, drafts, strict=True):
                    requested += len(of_run[i])
                    for draft in of_run[i]:
                        if draft.rejections:
                            results += _rejected(run, draft, key)
                        if draft.sentence is not None:
                            results.append(self._result(source, run.signed(draft.sentence, draft, key)))
                yield source, requested, results

    def sentences(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield the new sentences of a corpus."""
        sources, to_name = tee(corpus)
        statistics = self.statistics
        for _, requested, results in self.results(sources, map(SentenceKeys().assign, to_name)):
            statistics.sources += 1
            statistics.requested += requested
            for result in results:
                if isinstance(result, Rejected):
                    statistics.reject(result.reason, is_last=result.is_last)
                elif statistics.accept(result.fingerprint, count_changes(result.sentence)):
                    yield result.sentence

    def _result(self, source: Sentence, sentence: Sentence) -> Accepted | Rejected:
        """Return a new sentence with its text, unless it was rejected in review or cannot be written."""
        target = self._target
        fingerprint = (sentence if target is None else target.as_stored(sentence)).fingerprint_number()
        if self._review is not None:
            if self._review.rejects(fingerprint, sentence.id):
                return Rejected(None, REVIEWED.reason, is_last=True)
            corrected = correct_augmented(sentence, self._review.changes(fingerprint, sentence.id))
            if corrected is not None:
                sentence = corrected
                fingerprint = (sentence if target is None else target.as_stored(sentence)).fingerprint_number()
        if target is None:
            return Accepted(sentence, source, fingerprint)
        try:
            return Accepted(sentence, source, fingerprint, target.encode(sentence))
        except LossError:
            target.encode(source)  # an error where the format cannot store the source either
            return Rejected(None, UNWRITABLE.reason, is_last=True)


def _rejected(run: _MethodRun, draft: Draft, key: str) -> Iterator[Rejected]:
    """Yield the rejections of a draft."""
    filtered = 0
    for number, (sentence, rejection) in enumerate(draft.rejections, start=1):
        signed = None
        if sentence is not None:
            filtered += 1
            signed = run.signed(sentence, draft, key, f"/rejected-{filtered}", rejected=rejection.reason)
        yield Rejected(signed, rejection.reason, draft.sentence is None and number == len(draft.rejections))


class _MethodRun:
    """The part of a run that belongs to one method."""

    def __init__(self, method: Augmenter) -> None:
        self._method = method
        self._streams = Streams(method.seed, method.name)
        self._signature = method.signature
        self._id_infix = method.id_infix

    def drafts(self, sources: Sequence[Sentence], keys: Sequence[str]) -> list[list[Draft]]:
        """Return the finished drafts of some sources, those of each source in a list."""
        stream = self._streams.stream
        drafts = []
        for source, key in zip(sources, keys, strict=True):
            siblings: set[Any] = set()
            copies = range(1, self._method.copies_of(source) + 1)
            gold = self._method.gold_fingerprints
            drafts.append([Draft(source, stream(key, copy), copy, siblings, gold) for copy in copies])
        draw(self._method, [draft for of_source in drafts for draft in of_source])
        return drafts

    def signed(
        self, sentence: Sentence, draft: Draft, key: str, suffix: str = "", rejected: str | None = None
    ) -> Sentence:
        """Return a sentence with its id and provenance."""
        source, method = draft.source, self._method
        own = sentence.provenance if sentence.provenance is not source.provenance else None
        # A method that combines sentences names the other sources.
        sources, details = ((key, *own.sources), own.details) if own else ((key,), {})
        # Of the layout only soft labels hold for a new sentence, where the method has set them.
        soft = {n: v for n, v in sentence.layout.items() if n in _SOFT_LABELS and v is not source.layout.get(n)}
        return sentence.signed(
            self._id(key, draft.copy) + suffix,
            sentence.meta if method.info.unconditioned else source.meta,
            soft,
            Provenance(method.name, self._signature, sources, draft.copy, details, rejected),
        )

    def _id(self, key: str, copy: int) -> str:
        """Create an id that no sentence of the corpus has; the corpus may contain output of the same method."""
        wanted = f"{key}{self._id_infix}{copy}"
        name, number = wanted, 1
        while name in self._method.existing_ids:
            number += 1
            name = f"{wanted}+{number}"
        return name


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
        candidates: the number of new sentences that are made for each that is kept: the one that reads best and stays
            near its source (see `entaug.methods.choice.CandidateScorer`); 1 for no choice.
        choice: the scores of the choice: ``likelihood`` with optional parameters (``likelihood:nearness=1``), or a
            `entaug.methods.choice.CandidateScorer`.

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
    candidates: Annotated[int, Interval(ge=1, le=1_000)] = field(default=1, metadata=ONLY_IF_SET)
    choice: str | CandidateScorer | None = field(default=None, metadata=ONLY_IF_SET)
    filters_: list[Filter] = field(init=False, repr=False)
    teacher_: Relabeller | None = field(init=False, repr=False)

    info: ClassVar[MethodInfo]
    window_size: ClassVar[int] = 64
    """The number of source sentences processed in one batch, for one copy of each; results do not depend on it."""
    is_foreign: ClassVar[bool] = False
    """Whether the class is not one of entaug, so that its faults are named."""
    draws_ahead: ClassVar[bool] = False
    """Whether all random numbers of a batch of requests are drawn before a model is asked: then several of one draft
    may stand in it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.is_foreign = is_foreign(cls)
        if "info" in vars(cls):
            cls.name = cls.info.name

    def __post_init__(self) -> None:
        self.progress: Callable[[int, int, float], None] | None = None
        self.existing_ids: set[str] = set()
        self.gold_fingerprints: set[int] = set()
        self._filters_given: object = _NOTHING
        self._teacher_given: object = _NOTHING
        self._choice_given: object = _NOTHING
        super().__post_init__()

    def validate(self) -> None:
        """Check all parameters.

        Raises:
            ParameterError: a parameter has an invalid value, or a filter needs a source that the method has not.
        """
        super().validate()
        create_relabeller(self.teacher)
        create_scorer(self.choice)
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
        if not self.is_foreign:
            return [self._rewrite(request.sentence, request.rng) for request in requests]
        results = []
        for request in requests:
            with naming_faults(self, "method", request.sentence):
                results.append(self._rewrite(request.sentence, request.rng))
        return results

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
        return []

    @property
    def augmenters(self) -> tuple[Augmenter, ...]:
        """The augmenter alone, as a `CombinedAugmenter` has those that it combines."""
        return (self,)

    @property
    def signature(self) -> str:
        """Method, parameters and version, as in provenance, with the full names of loaded backends.

        Of methods and filters of other packages also a digest of their code.
        """
        params = self.get_params(loaded=True)
        if params["teacher"] is None:  # a parameter that most runs do not have
            del params["teacher"]
        del params["guard"]  # among the filters
        for parameter in self._parameters():
            if parameter.metadata.get("only_if_set") and getattr(self, parameter.name) == parameter.default:
                params.pop(parameter.name, None)
        if self.candidates > 1:
            params["choice"] = (getattr(self, "scorer_", None) or create_scorer(self.choice)).signature
        values = "|".join(f"{name}={value}" for name, value in params.items())
        parts = (self, *(getattr(self, "filters_", None) or create_filters(self.filters)))
        classes: list[Any] = [type(part) for part in parts]
        codes = dict.fromkeys(code for cls in classes if (code := code_digest(cls)) is not None)
        return "|".join([self.name, values, f"entaug={__version__}", *(f"code={code}" for code in codes)])

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Filter | Relabeller | CandidateScorer):
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
        if self.candidates > 1 and self.choice != self._choice_given:
            self.scorer_ = create_scorer(self.choice).load()
            self._choice_given = self.choice
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
        source, infix, info = getattr(corpus, "source", None), self.id_infix, self.info
        self.existing_ids = set()
        self.gold_fingerprints = set()
        mentions = with_mentions = unsupported = 0

        def usable() -> Iterator[Sentence]:
            nonlocal mentions, with_mentions, unsupported
            for sentence in check_languages(corpus, self._models(), source):
                if sentence.mentions:
                    mentions += len(sentence.mentions)
                    with_mentions += 1
                self.gold_fingerprints.add(sentence.fingerprint_number())
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
            with naming_faults(self, "method") if self.is_foreign else nullcontext():
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

    def check_backends(self) -> None:
        super().check_backends()
        for filter_ in create_filters(self.filters):
            filter_.check_backends()

    def hold_out(self, sentences: Iterable[Sentence]) -> bool:
        """Name the dev and test sentences, before `fit`, for methods that leave out what occurs in them.

        Args:
            sentences: the sentences; read only by a method that uses them.

        Returns:
            Whether the method uses them.
        """
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

    def run(self, *, target: OutputTarget | None = None, review: Review | None = None) -> Run:
        """Create a run, for callers that need all outcomes or continue an earlier run.

        Args:
            target: see `Run`.
            review: decisions about sentences of an earlier run.

        Returns:
            The run; its counts are this augmenter's ``statistics_``.

        Raises:
            ParameterError: a parameter has an invalid value, or the method must be fitted first.
        """
        self.check_ready()
        run = Run([self], target=target, review=review)
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
        return self.copies

    @property
    def id_infix(self) -> str:
        """The part that the ids of all sentences of this method and seed share."""
        return f"/{self.name}-{self.seed}-"

    @property
    def uses_models(self) -> bool:
        if super().uses_models or self.teacher_ is not None or self.candidates > 1:
            return True
        return any(filter_.uses_models for filter_ in self.filters_)

    def _models(self) -> list[LoadedModel]:
        of_choice = self.scorer_._models() if self.candidates > 1 else []  # noqa: SLF001 - a part of this component
        return [*super()._models(), *of_choice]

    @property
    def kinds_by_default(self) -> set[str]:
        guard = [LabelGuard()] if self.uses_guard else []
        scorer = [create_scorer(self.choice)] if self.candidates > 1 else []
        parts = [*guard, *create_filters(self.filters), *scorer, create_relabeller(self.teacher)]
        return super().kinds_by_default.union(*(part.kinds_by_default for part in parts if part is not None))

    @property
    def starters(self) -> set[str]:
        return super().starters.union(*(filter_.starters for filter_ in self.filters_))

    def draft(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        """Generate a new version of a sentence for each request.

        Args:
            requests: the sources with their random streams.

        Returns:
            For each request a sentence without id and provenance, or a rejection.
        """
        return self._rewrite_batch(requests)


def _own_fields(draft: Sentence, source: Sentence) -> Sentence:
    """Return a draft without the fields that an edit takes over from its source and that do not hold for it."""
    changes: dict[str, Any] = {}
    if draft.provenance is source.provenance and source.provenance is not None:
        changes["provenance"] = None
    if draft.layout is source.layout and source.layout:
        changes["layout"] = {}
    return draft.with_(**changes) if changes else draft
