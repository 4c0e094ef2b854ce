"""A run of one or more methods over a corpus: requests drafts, rejects unusable ones, assigns ids and provenance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, tee
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any

from entaug.core.corpus import SentenceKeys
from entaug.core.data import Provenance, Sentence
from entaug.core.rng import Streams
from entaug.errors import LossError
from entaug.methods.types import (
    DUPLICATE,
    REVIEWED,
    UNCHANGED,
    UNWRITABLE,
    Accepted,
    OutputTarget,
    Rejected,
    Rejection,
    Request,
    RunStatistics,
    rejection_for,
)
from entaug.teacher import count_changes

if TYPE_CHECKING:
    from entaug.methods.base import Augmenter


_SOFT_LABELS = ("tag_probabilities", "relation_probabilities")  # the fields of soft labels in `Sentence.layout`


class Draft:
    """The state of one requested augmented sentence."""

    __slots__ = ("copy", "rejections", "rng", "sentence", "siblings", "source")

    def __init__(self, source: Sentence, rng: Random, copy: int, siblings: set[Any]) -> None:
        self.source = source
        self.rng = rng
        self.copy = copy
        self.siblings = siblings
        self.sentence: Sentence | None = None
        self.rejections: list[tuple[Sentence | None, Rejection]] = []

    def compare(self, sentence: Sentence) -> Rejection | None:
        """Check that a sentence is new."""
        content = (sentence.tokens, sentence.mentions)
        if content == (self.source.tokens, self.source.mentions):
            return UNCHANGED
        return DUPLICATE if content in self.siblings else None

    def accept(self, sentence: Sentence) -> Rejection | None:
        """Accept a sentence if it is new."""
        rejection = self.compare(sentence)
        if rejection is None:
            self.siblings.add((sentence.tokens, sentence.mentions))
            self.sentence = sentence
        return rejection


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
    for attempt in range(method.attempts):
        if not pending:
            return
        with _computing:
            results = method.draft([Request(draft.source, draft.rng, draft.copy, attempt) for draft in pending])
            refused: list[Sentence | None] = [None] * len(pending)
            for is_used, check in (
                (method.has_teacher, method.apply_teacher),
                (method.has_filters, method.apply_filters),
            ):
                if is_used:
                    # Only new sentences are relabelled and filtered.
                    results = [
                        r if isinstance(r, Rejection) else d.compare(r) or r
                        for d, r in zip(pending, results, strict=True)
                    ]
                    pairs = check(results, [draft.source for draft in pending])
                    results = [result for result, _ in pairs]
                    refused = [before or now for before, (_, now) in zip(refused, pairs, strict=True)]
        again = []
        for draft, result, sentence in zip(pending, results, refused, strict=True):
            rejection = result if isinstance(result, Rejection) else draft.accept(result)
            if rejection is not None:
                draft.rejections.append((sentence, rejection))
                if not rejection.final:
                    again.append(draft)
        pending = again


class Run:
    """One pass of one or more methods over a corpus."""

    # What a source gives depends on nothing but the source and its key (`results`), so any process may compute it, in
    # any order. Whether it repeats what another source gave is decided in order, by `RunStatistics.accept`.

    def __init__(
        self,
        methods: Sequence[Augmenter],
        *,
        target: OutputTarget | None = None,
        excluded: Callable[[int, str | None], bool] | None = None,
    ) -> None:
        self.statistics = RunStatistics()
        self._target = target
        self._excluded = excluded
        self._methods = [_MethodRun(method) for method in methods]
        self._window_size = min(method.window_size for method in methods)

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
        if self._excluded is not None and self._excluded(fingerprint, sentence.id):
            return Rejected(None, REVIEWED.reason, is_last=True)
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
            drafts.append([Draft(source, stream(key, copy), copy, siblings) for copy in copies])
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
        return Sentence(
            sentence.tokens,
            sentence.mentions,
            self._id(key, draft.copy) + suffix,
            sentence.meta if method.info.unconditioned else source.meta,
            sentence.columns,
            sentence.spaces,
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
