"""A run of one or more methods over a corpus: requests drafts, rejects duplicates, assigns ids and provenance."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from threading import RLock
from typing import Any

from entaug.augmenters.contracts import (
    DUPLICATE,
    REVIEWED,
    UNCHANGED,
    UNWRITABLE,
    Accepted,
    Method,
    Outcome,
    OutputTarget,
    Rejected,
    Rejection,
    Request,
    RunStatistics,
    rejection_for,
)
from entaug.corpus import SentenceKeys
from entaug.data import Sentence
from entaug.errors import LossError
from entaug.provenance import Provenance
from entaug.rng import Streams

__all__ = ["Draft", "Run", "draw"]

_SOFT_LABELS = ("tag_probabilities", "relation_probabilities")  # the fields of soft labels in `Sentence.layout`


class Draft:
    """The state of one requested augmented sentence.

    Args:
        source: the source sentence.
        rng: its random stream.
        copy: the number of the copy, from 1.
        siblings: the contents already accepted for the same source; shared by the drafts of a source.

    Attributes:
        sentence: the accepted sentence; None until one is accepted.
        rejections: all rejections so far, each with the sentence if a teacher or a filter rejected it.
    """

    __slots__ = ("copy", "rejections", "rng", "sentence", "siblings", "source")

    def __init__(self, source: Sentence, rng: Random, copy: int, siblings: set[Any]) -> None:
        self.source = source
        self.rng = rng
        self.copy = copy
        self.siblings = siblings
        self.sentence: Sentence | None = None
        self.rejections: list[tuple[Sentence | None, Rejection]] = []

    def compare(self, sentence: Sentence) -> Rejection | None:
        """Check that a sentence is new.

        Args:
            sentence: a draft.

        Returns:
            `UNCHANGED` if it is equal to the source, `DUPLICATE` if it is equal to a sibling; otherwise None.
        """
        content = (sentence.tokens, sentence.mentions)
        if content == (self.source.tokens, self.source.mentions):
            return UNCHANGED
        return DUPLICATE if content in self.siblings else None

    def accept(self, sentence: Sentence) -> Rejection | None:
        """Accept a sentence if it is new.

        Args:
            sentence: a draft.

        Returns:
            The reason why it is not accepted; None if it is accepted.
        """
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


def draw(method: Method, drafts: Iterable[Draft]) -> None:
    """Generate drafts until each is accepted, finally rejected, or out of attempts.

    Args:
        method: a fitted augmenter.
        drafts: the drafts, in the order of their sources; changed in place.
    """
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
            if method.has_teacher:
                results, refused = _relabelled(method, pending, results)
            if method.has_filters:
                results, filtered = _filtered(method, pending, results)
                refused = [a or b for a, b in zip(refused, filtered, strict=True)]
        again = []
        for draft, result, sentence in zip(pending, results, refused, strict=True):
            rejection = result if isinstance(result, Rejection) else draft.accept(result)
            if rejection is not None:
                draft.rejections.append((sentence, rejection))
                if not rejection.final:
                    again.append(draft)
        pending = again


def _relabelled(
    method: Method, drafts: Sequence[Draft], results: Sequence[Sentence | Rejection]
) -> tuple[list[Sentence | Rejection], list[Sentence | None]]:
    """Return results after the teacher, and the rejected sentences; only new sentences are relabelled."""
    new = [r if isinstance(r, Rejection) else d.compare(r) or r for d, r in zip(drafts, results, strict=True)]
    pairs = method.apply_teacher(new, [draft.source for draft in drafts])
    return [result for result, _ in pairs], [refused for _, refused in pairs]


def _filtered(
    method: Method, drafts: Sequence[Draft], results: Sequence[Sentence | Rejection]
) -> tuple[Sequence[Sentence | Rejection], list[Sentence | None]]:
    """Return results after the filters, and the rejected sentences; only new sentences are filtered."""
    new = [r if isinstance(r, Rejection) else d.compare(r) or r for d, r in zip(drafts, results, strict=True)]
    kept = method.apply_filters(new, [draft.source for draft in drafts])
    refused = [
        before if isinstance(after, Rejection) and not isinstance(before, Rejection) else None
        for before, after in zip(new, kept, strict=True)
    ]
    return kept, refused


class Run:
    """One pass of one or more methods over a corpus.

    Args:
        methods: fitted augmenters; each contributes its copies of a source, in this order.
        target: the output format. Sentences that are equal in this format are duplicates; sentences that it cannot
            store are rejected.
        excluded: called with the fingerprint (as stored in the target) and the id of a sentence; returns whether it was
            rejected in review.

    Attributes:
        statistics: the counts of all sources that `outcomes` has yielded so far.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        *,
        target: OutputTarget | None = None,
        excluded: Callable[[int, str | None], bool] | None = None,
    ) -> None:
        self.statistics = RunStatistics()
        self._target = target
        self._excluded = excluded
        self._methods = [_MethodRun(method) for method in methods]
        self.window_size = min(method.window_size for method in methods)
        self._accepted: set[int] = set()
        self._keys = SentenceKeys()

    def skip(self, source: Sentence) -> None:
        """Skip a source that an earlier, interrupted run has finished.

        Args:
            source: the next sentence of the corpus.
        """
        self._keys.assign(source)

    def remember(self, sentence: Sentence) -> None:
        """Treat a sentence as accepted by an earlier, interrupted run.

        Args:
            sentence: the sentence as stored in the target.
        """
        self._accepted.add(sentence.fingerprint_number())

    def outcomes(self, corpus: Iterable[Sentence]) -> Iterator[tuple[Sentence, list[Outcome]]]:
        """Process a corpus.

        Args:
            corpus: the sentences; read once, streamed.

        Yields:
            Each source with all outcomes of its copies.
        """
        sources = iter(corpus)
        while window := list(islice(sources, self.window_size)):
            keys = [self._keys.assign(source) for source in window]
            drafts = [run.drafts(window, keys) for run in self._methods]
            for i, (source, key) in enumerate(zip(window, keys, strict=True)):
                outcomes = [
                    outcome
                    for run, of_run in zip(self._methods, drafts, strict=True)
                    for draft in of_run[i]
                    for outcome in self._finish(run, draft, key)
                ]
                self.statistics.add(sum(len(of_run[i]) for of_run in drafts), outcomes)
                yield source, outcomes

    def sentences(self, corpus: Iterable[Sentence]) -> Iterator[Sentence]:
        """Process a corpus.

        Args:
            corpus: the sentences; read once, streamed.

        Yields:
            The accepted sentences.
        """
        for _, outcomes in self.outcomes(corpus):
            yield from (outcome.sentence for outcome in outcomes if isinstance(outcome, Accepted))

    def _finish(self, run: _MethodRun, draft: Draft, key: str) -> Iterator[Outcome]:
        """Yield the outcomes of a draft.

        A sentence equal to one from another source is rejected here without requesting another draft. The candidates
        for a source therefore never depend on the other sentences of the corpus.
        """
        filtered = 0
        for number, (sentence, rejection) in enumerate(draft.rejections, start=1):
            signed = None
            if sentence is not None:
                filtered += 1
                signed = run.signed(sentence, draft, key, f"/rejected-{filtered}", rejected=rejection.reason)
            is_last = draft.sentence is None and number == len(draft.rejections)
            yield Rejected(signed, draft.source, rejection.reason, is_last)
        if draft.sentence is not None:
            yield self._final(draft.source, run.signed(draft.sentence, draft, key))

    def _final(self, source: Sentence, sentence: Sentence) -> Outcome:
        """Accept a sentence unless it was rejected in review, is a duplicate, or cannot be written."""
        fingerprint = (self._target.carried(sentence) if self._target else sentence).fingerprint_number()
        if self._excluded is not None and self._excluded(fingerprint, sentence.id):
            return Rejected(None, source, REVIEWED.reason, is_last=True)
        if fingerprint in self._accepted:
            return Rejected(None, source, DUPLICATE.reason, is_last=True)
        encoded = None
        if self._target:
            try:
                encoded = self._target.encode(sentence)
            except LossError:
                self._target.encode(
                    source
                )  # raises an error if even the source cannot be written: another layout is needed
                return Rejected(None, source, UNWRITABLE.reason, is_last=True)
        self._accepted.add(fingerprint)
        return Accepted(sentence, source, encoded)


class _MethodRun:
    """The part of a run that belongs to one method."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self._streams = Streams(method.seed, method.name)
        self._signature = method.signature

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
        own = sentence.provenance if sentence.provenance is not draft.source.provenance else None
        own = own or Provenance()
        # A method that combines sentences names the other sources.
        sources = (key, *own.sources)
        method = self._method.name
        # Of the layout only soft labels hold for a new sentence, where the method has set them.
        before = draft.source.layout
        soft = {n: v for n, v in sentence.layout.items() if n in _SOFT_LABELS and v is not before.get(n)}
        return Sentence(
            sentence.tokens,
            sentence.mentions,
            self._id(key, draft.copy) + suffix,
            sentence.meta if self._method.info.unconditioned else draft.source.meta,
            sentence.columns,
            sentence.spaces,
            soft,
            Provenance(method, self._signature, sources, draft.copy, own.details, rejected),
        )

    def _id(self, key: str, copy: int) -> str:
        """Create an id that no sentence of the corpus has; the corpus may contain output of the same method."""
        wanted = f"{key}{self._method.id_infix}{copy}"
        name, number = wanted, 1
        while name in self._method.existing_ids:
            number += 1
            name = f"{wanted}+{number}"
        return name
